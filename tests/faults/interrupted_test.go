//go:build e2e

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// staging waits until a statement has begun to write files.
func (s *site) staging(before []string) {
	s.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for len(s.files()) == len(before) {
		if time.Now().After(deadline) {
			s.Fatalf("no file was written within two minutes\n%s", s.log())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// gone waits until the files of a statement whose client does not wait are deleted.
func (s *site) gone(before []string) {
	s.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for (len(s.files()) != len(before) || len(s.hollow()) > 0) && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
}

// long are statements that write for minutes.
func long() map[string]string { return bulk(100_000_000) }

// TestTimeout: a statement that takes longer than server.statement-timeout changes
// nothing and leaves no file.
func TestTimeout(t *testing.T) {
	s := newSite(t, catalogKinds[0], 1, map[string]string{"server": `statement-timeout = "3s"`})
	s.small(modes[0].properties)
	before := s.files()
	for name, text := range long() {
		_, err := s.exec(0, text)
		s.refused(name, err, 3024, "")
		s.same(name, before)
		s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	}
	s.do("INSERT INTO s.t VALUES (3, 'c')", bulk(100)["CREATE"])
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows+"\n3 c")
}

// TestKillQuery: a statement that is ended in the middle of its files changes nothing
// and leaves no file, and its connection goes on.
func TestKillQuery(t *testing.T) {
	s := newSite(t, catalogKinds[0], 1, nil)
	s.small(modes[0].properties)
	before := s.files()
	for name, text := range long() {
		conn := s.servers[0].Conn(t, "root")
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		id, err := sqetest.Ask(ctx, conn, "SELECT CONNECTION_ID()").One()
		s.must(err)
		result := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(ctx, text)
			result <- err
		}()
		s.staging(before)
		if list := s.see("SHOW PROCESSLIST"); !strings.Contains(list, id) || strings.Contains(list, secret) {
			t.Errorf("the process list: %s", list)
		}
		s.do("KILL QUERY " + id)
		s.refused(name, <-result, 1317, "")
		s.same(name, before)
		if _, err := conn.ExecContext(ctx, "INSERT INTO s.t VALUES (3, 'c')"); err != nil {
			t.Errorf("after KILL QUERY: %v", err)
		}
		s.want("SELECT id, v FROM s.t ORDER BY id", smallRows+"\n3 c")
		s.do("DELETE FROM s.t WHERE id = 3", fmt.Sprintf("CALL system.expire_snapshots(table => 's.t', older_than => '%s')", tomorrow()))
		before = s.files()
	}
}

// TestClientGone: the statement of a client that goes away leaves no file either.
func TestClientGone(t *testing.T) {
	s := newSite(t, catalogKinds[0], 1, map[string]string{"server": `shutdown-timeout = "1s"`})
	s.small(modes[1].properties)
	before := s.files()
	for _, name := range []string{"INSERT", "CREATE"} {
		text := long()[name]
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			_, err := s.pools[0].ExecContext(ctx, text) // which closes the connection
			result <- err
		}()
		s.staging(before)
		cancel()
		start := time.Now()
		if err := <-result; err == nil {
			t.Fatalf("%s: no error", name)
		}
		s.gone(before)
		t.Logf("%s: the files were gone after %s", name, time.Since(start).Round(time.Millisecond))
		s.same(name, before)
		s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
	}
	// A server that is told to stop in the middle of a write.
	go func() { _, _ = s.exec(0, long()["INSERT"]) }()
	s.staging(before)
	s.must(s.servers[0].Stop())
	s.same("stopped", before)
	s.start(0)
	s.want("SELECT id, v FROM s.t ORDER BY id", smallRows)
}
