//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// from connects from another address of the loopback interface.
func from(address string) sqetest.Option {
	mysql.RegisterDialContext(address, func(ctx context.Context, to string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(ctx, "tcp", to)
	})
	return func(c *mysql.Config) { c.Net = address }
}

// TestClientAddress: conditions on the client's address, in both gates, decide by the
// address of the connection and nothing else; one user at two addresses at the same
// time gets two answers, and the audit log tells the two apart.
func TestClientAddress(t *testing.T) {
	dir := t.TempDir()
	p := lab.PoliciesOf(lab.Namespace, "people")
	p.Filter("people", "1 = 0")
	p.When("REQ.clientIPAddress != '127.0.0.2'")
	p.Allow("pat", lab.Namespace, "orders", "table-list", "table-properties-read", "table-data-read")
	p.When("ctx.getClientIPAddress() == '127.0.0.2'")
	if err := errors.Join(lab.Build(t.Context(), dir), p.Write(filepath.Join(dir, "policies")), os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	config, port, err := sqetest.Config(dir, lab.Catalog, []string{"root", "pat"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })

	people, orders := "SELECT count(*) > 0 FROM "+lab.Namespace+".people", "SELECT count(*) > 0 FROM "+lab.Namespace+".orders"
	inside, outside := server.Conn(t, "pat", from("127.0.0.2")), server.Conn(t, "pat", from("127.0.0.3"))
	for range 3 {
		for _, c := range []struct {
			conn   sqetest.Querier
			people string
			orders bool
		}{{inside, "1", true}, {outside, "0", false}} {
			if got, err := sqetest.Ask(within(t, patience), c.conn, people).One(); err != nil || got != c.people {
				t.Errorf("people: %q, want %q: %v", got, c.people, err)
			}
			a := sqetest.Ask(within(t, patience), c.conn, orders)
			if got, err := a.One(); c.orders && (err != nil || got != "1") || !c.orders && a.Number() != 1146 {
				t.Errorf("orders: %q, %v", got, a.Err)
			}
		}
	}
	// An administrator is told that the address counts, for the address of the session.
	text := sqetest.Ask(within(t, patience), server.Conn(t, "root", from("127.0.0.3")), "SHOW EFFECTIVE POLICY FOR USER pat ON "+lab.Namespace+".people").Text()
	if !strings.Contains(text, "looks at the address of the client (127.0.0.3)") || !strings.Contains(text, "1 = 0") {
		t.Errorf("%s", text)
	}
	// What a client says of its address does not count: the header of a proxy is no login.
	raw, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}).DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patience))
	if _, err := raw.Write([]byte("PROXY TCP4 127.0.0.2 127.0.0.1 50000 3306\r\n")); err != nil {
		t.Fatal(err)
	}
	var answer []byte
	for buffer := make([]byte, 4096); ; {
		n, err := raw.Read(buffer)
		if answer = append(answer, buffer[:n]...); err != nil {
			break
		}
	}
	if !strings.Contains(string(answer), "SQE") || strings.Count(string(answer), "08S01") != 1 {
		t.Errorf("the header of a proxy: %q", answer)
	}
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.2", "127.0.0.3"} {
		if !strings.Contains(string(log), `"remote":"`+address+":") {
			t.Errorf("the audit log does not have %s", address)
		}
	}
}
