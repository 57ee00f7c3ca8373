//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/tests/sqetest"
)

// The services that the tests make on the policy server.
const (
	dataService    = "sqe_live_hive"
	tagService     = "sqe_live_tag"
	polarisService = "sqe_live_polaris"
)

// The user with which sqe asks the policy server, and its password.
const (
	engineUser     = "sqe_live_engine"
	enginePassword = "Passw0rd1"
)

// pollInterval of every sqe under test, and maxStaleness and timeout of those whose
// policy server fails. The others wait longer: what they ask is answered late when the
// machine is busy.
const (
	pollInterval = 200 * time.Millisecond
	maxStaleness = 4 * time.Second
	timeout      = time.Second
)

// The parts of a run, made once.
var (
	server *adminAPI // the policy server itself
	front  *proxy    // the policy server as sqe reaches it
	sqe    *sqetest.Server
	sales  *lake // catalog sales_wh
	ops    *lake // catalog ops_wh
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "sqe-live-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	url, user := os.Getenv("SQE_RANGER_URL"), os.Getenv("SQE_RANGER_ADMIN")
	if url == "" {
		stop, address, err := startStore(filepath.Join(dir, "policies.db"), "Admin-passw0rd")
		if err != nil {
			return 1, err
		}
		defer stop()
		url, user = address, "admin:Admin-passw0rd"
	}
	name, password, _ := strings.Cut(user, ":")
	server = &adminAPI{base: strings.TrimRight(url, "/") + "/service/", user: name, password: password}
	if err := server.prepare(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.cleanUp()) }()
	if front, err = newProxy(url); err != nil {
		return 1, err
	}
	defer front.stop()
	if sales, err = openLake(dir, "sales_wh"); err != nil {
		return 1, err
	}
	if ops, err = openLake(dir, "ops_wh"); err != nil {
		return 1, err
	}
	config, port, err := writeConfig(dir, dir, "http://"+front.address, nil)
	if err != nil {
		return 1, err
	}
	if sqe, err = sqetest.Serve(config, port); err != nil {
		return 1, err
	}
	code = m.Run()
	err = sqe.Stop()
	if strings.Contains(sqe.Output(), "panic") {
		err = errors.Join(err, fmt.Errorf("sqe panicked:\n%s", sqe.Output()))
	}
	return code, err
}

// startStore serves an embedded store on a free port.
func startStore(path, adminPassword string) (stop func(), url string, err error) {
	store, err := policystore.Open(context.Background(), path, policystore.Options{AdminPassword: adminPassword})
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = store.Close()
		return nil, "", err
	}
	h := &http.Server{Handler: rest.New(store, rest.Options{}), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.Serve(l) }()
	return func() {
		_ = h.Close()
		_ = store.Close()
	}, "http://" + l.Addr().String(), nil
}

// people of the tests: their groups and roles as the identity provider says.
var people = []struct{ name, groups, roles string }{
	{"carol", `["governance"]`, `["sqe_admin", "engineer", "analyst"]`},
	{"bob", `["engineering"]`, `["engineer", "analyst"]`},
	{"alice", `["analytics"]`, `["analyst"]`},
	{"dave", `[]`, `[]`},
}

// writeConfig writes <dir>/sqe.toml for a server over the tables in lakes that
// asks the policy server at url. more replaces or adds lines of [[policies]].
func writeConfig(dir, lakes, url string, more map[string]string) (path string, port int, err error) {
	if port, err = sqetest.FreePort(); err != nil {
		return "", 0, err
	}
	operations, err := sqetest.FreePort()
	if err != nil {
		return "", 0, err
	}
	hash, err := sqetest.HashPassword("demo")
	if err != nil {
		return "", 0, err
	}
	policies := map[string]string{
		"name": `"ranger"`, "kind": `"ranger"`, "url": fmt.Sprintf("%q", url), "username": fmt.Sprintf("%q", engineUser),
		"password": fmt.Sprintf("%q", enginePassword), "admin-username": fmt.Sprintf("%q", server.user),
		"admin-password": fmt.Sprintf("%q", server.password), "polaris-service": fmt.Sprintf("%q", polarisService),
		"data-service": fmt.Sprintf("%q", dataService), "poll-interval": fmt.Sprintf("%q", pollInterval),
		"max-staleness": `"10m"`, "timeout": `"30s"`, "snapshot-file": `"snapshot.json"`,
	}
	for k, v := range more {
		policies[k] = v
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\naddress = \"127.0.0.1\"\nport = %d\n\n[ops]\naddress = \"127.0.0.1:%d\"\n\n", port, operations)
	for i, name := range []string{"sales_wh", "ops_wh"} {
		fmt.Fprintf(&b, "[[catalogs]]\nname = %q\nkind = \"sqlite\"\npath = %q\nwarehouse = %q\ndefault = %t\n\n",
			name, filepath.Join(lakes, name+".db"), filepath.Join(lakes, name), i == 0)
	}
	b.WriteString("[[policies]]\n")
	for k, v := range policies {
		fmt.Fprintf(&b, "%s = %s\n", k, v)
	}
	b.WriteString("\n[masks]\nhash-key = \"sqe-ac-e2e-mask-key\"\n\n")
	for _, p := range people {
		fmt.Fprintf(&b, "[[users]]\nname = %q\npassword-hash = %q\ngroups = %s\nroles = %s\nadmin = %t\n\n", p.name, hash, p.groups, p.roles, p.name == "carol")
	}
	path = filepath.Join(dir, "sqe.toml")
	return path, port, os.WriteFile(path, []byte(b.String()), 0o600)
}

// as runs a text as somebody on a connection of its own.
func as(t testing.TB, user, text string) sqetest.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return sqetest.Ask(ctx, sqe.Conn(t, user), text)
}

// rows is an answer as one line for each row, values separated by "|".
func rows(a sqetest.Answer) string {
	if a.Err != nil {
		return "error: " + a.Err.Error()
	}
	out := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		out[i] = strings.ReplaceAll(strings.Join(r, "|"), sqetest.Null, "NULL")
	}
	return strings.Join(out, "\n")
}

// patience is how long a change on the policy server may take to act.
const patience = 2 * time.Minute

// becomes waits until somebody's answer is want.
func becomes(t testing.TB, user, text, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = rows(as(t, user, text)); got == want {
			return
		}
	}
	t.Fatalf("%s as %s:\n%s\nnot within %s:\n%s", text, user, got, patience, want)
}

// is holds that somebody's answer is want now.
func is(t testing.TB, user, text, want string) {
	t.Helper()
	if got := rows(as(t, user, text)); got != want {
		t.Errorf("%s as %s:\n%s\nwant:\n%s", text, user, got, want)
	}
}
