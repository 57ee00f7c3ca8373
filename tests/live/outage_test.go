//go:build e2e

package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// stale is the MySQL error number of a refusal because policies are too old.
const stale = 9001

// frail has the test ask another server over the same tables, which waits neither long
// for the policy server nor for long without it, and whose policy server can fail.
func frail(t *testing.T) {
	t.Helper()
	before, behind := sqe, front
	t.Cleanup(func() { sqe, front = before, behind })
	var err error
	if front, err = newProxy(behind.target.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.stop)
	config, port, err := writeConfig(t.TempDir(), before.Dir, "http://"+front.address, map[string]string{
		"max-staleness": fmt.Sprintf("%q", maxStaleness), "timeout": fmt.Sprintf("%q", timeout),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil || strings.Contains(s.Output(), "panic") {
			t.Errorf("%v\n%s", err, s.Output())
		}
	})
	sqe = s
}

// waitStale waits until a statement is refused because policies are too old, and
// holds that until then nothing raw was shown.
func waitStale(t testing.TB, text, masked string) {
	t.Helper()
	for deadline := time.Now().Add(maxStaleness + patience); ; time.Sleep(50 * time.Millisecond) {
		a := as(t, "bob", text)
		if a.Number() == stale {
			return
		}
		if got := rows(a); got != masked {
			t.Fatalf("during the outage bob gets:\n%s", got)
		}
		if time.Now().After(deadline) {
			t.Fatalf("bob is still answered %s after the policy server failed", maxStaleness+patience)
		}
	}
}

// Whatever way the policy server fails: the policies of before hold until the
// bound, then every governed statement is refused with an error of its own, and
// what is not governed works; when the server works again, so does everything.
func TestOutageFailsClosedAndRecovers(t *testing.T) {
	frail(t)
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders ORDER BY id"
	masked := "xxx-xx-1111\nxxx-xx-2222\nxxx-xx-3333"
	mask(t, ns, "orders", "ssn", "MASK_SHOW_LAST_4", "", "engineer")
	becomes(t, "bob", q, masked)
	outage := func(name string, begin, end func()) {
		t.Run(name, func(t *testing.T) {
			begin()
			waitStale(t, q, masked)
			for _, user := range []string{"alice", "carol"} {
				if a := as(t, user, q); a.Number() != stale {
					t.Errorf("%s: %s", user, a.Text())
				}
			}
			is(t, "bob", "SELECT 1", "1")
			status := as(t, "carol", "SHOW POLICY STATUS")
			if row := listed(t, status, "ranger"); row["fresh"] != "no" || row["last_error"] == "" {
				t.Errorf("SHOW POLICY STATUS: %s", status.Text())
			}
			if strings.Contains(as(t, "bob", "SHOW POLICY STATUS").Text(), front.address) {
				t.Error("bob sees where the policy server is")
			}
			end()
			becomes(t, "bob", q, masked)
			becomes(t, "alice", q, "111-11-1111\n222-22-2222\n333-33-3333")
		})
	}
	outage("stopped", front.stop, func() {
		if err := front.start(); err != nil {
			t.Fatal(err)
		}
	})
	for _, f := range []fault{status500, empty, slow, redirects} {
		outage(string(f), func() { front.fail(f) }, func() { front.fail(works) })
	}
}

// Bodies that are not what they should be leave the policies of before in place
// and count as failed polls.
func TestBadBodiesAreNotUsed(t *testing.T) {
	frail(t)
	ns := orders(t)
	q := "SELECT ssn FROM " + ns + ".orders WHERE id = 1"
	mask(t, ns, "orders", "ssn", "MASK_SHOW_LAST_4", "", "engineer")
	becomes(t, "bob", q, "xxx-xx-1111")
	for _, f := range []fault{garbage, truncated, otherService} {
		t.Run(string(f), func(t *testing.T) {
			front.fail(f)
			defer func() {
				front.fail(works)
				becomes(t, "bob", q, "xxx-xx-1111")
			}()
			waitStale(t, q, "xxx-xx-1111")
		})
	}
	t.Run("older versions", func(t *testing.T) {
		id := mask(t, ns, "orders", "email", "MASK_NULL", "", "engineer")
		email := "SELECT email FROM " + ns + ".orders WHERE id = 1"
		becomes(t, "bob", email, "NULL")
		front.remember(true)
		for deadline := time.Now().Add(patience); front.remembered() < documents; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d documents were asked for", front.remembered())
			}
		}
		front.remember(false)
		drop(t, id)
		becomes(t, "bob", email, "a@x")
		id = mask(t, ns, "orders", "email", "MASK_SHOW_FIRST_4", "", "engineer")
		becomes(t, "bob", email, "x@x")
		front.fail(olderVersions)
		waitStale(t, email, "x@x")
		front.fail(works)
		becomes(t, "bob", email, "x@x")
		drop(t, id)
	})
}

// After a wrong password nothing is asked for a minute: five lock an account.
func TestWrongPasswordIsNotRepeated(t *testing.T) {
	wrong, err := newProxy(front.target.String())
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.stop()
	wrong.fail(wrongPassword)
	config, port, err := writeConfig(t.TempDir(), sqe.Dir, "http://"+wrong.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, refused := wrong.count(); refused > 0 {
			break
		}
	}
	time.Sleep(10 * pollInterval)
	if _, refused := wrong.count(); refused == 0 || refused > 2 {
		t.Errorf("%d requests with a wrong password", refused)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if a := sqetest.Ask(ctx, s.Conn(t, "bob"), "SELECT * FROM ac1.orders"); a.Number() != stale {
		t.Errorf("without policies: %s", a.Text())
	}
}

// A restart during an outage starts from the stored policies, within the bound,
// and a stored file that somebody damaged is not used.
func TestRestartDuringAnOutage(t *testing.T) {
	ns := orders(t)
	mask(t, ns, "orders", "ssn", "MASK_SHOW_LAST_4", "", "engineer")
	becomes(t, "bob", "SELECT ssn FROM "+ns+".orders WHERE id = 1", "xxx-xx-1111")
	dir := sqe.Dir
	snapshot := filepath.Join(dir, "snapshot.json")
	// Policies act first and are stored then.
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(snapshot); err == nil && strings.Contains(string(text), "sqe-live-"+ns+"-orders-ssn") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the policies are not stored")
		}
	}
	info, err := os.Stat(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the stored policies have mode %o", info.Mode().Perm())
	}
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprintf("damaged=%t", damaged), func(t *testing.T) {
			text, err := os.ReadFile(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if damaged {
				text = text[:len(text)/2]
			}
			own := filepath.Join(t.TempDir(), "snapshot.json")
			if err := os.WriteFile(own, text, 0o600); err != nil {
				t.Fatal(err)
			}
			// The configuration of the server under test, with a server that is away and
			// a longer bound, beside the same tables.
			config, port, err := writeConfig(t.TempDir(), dir, "http://"+front.address, map[string]string{
				"snapshot-file": fmt.Sprintf("%q", own),
			})
			if err != nil {
				t.Fatal(err)
			}
			front.fail(status500)
			defer front.fail(works)
			s, err := sqetest.Serve(config, port)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Stop() }()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			a := sqetest.Ask(ctx, s.Conn(t, "bob"), "SELECT ssn FROM "+ns+".orders WHERE id = 1")
			switch {
			case damaged && a.Number() != stale:
				t.Errorf("with a damaged file: %s", a.Text())
			case !damaged && rows(a) != "xxx-xx-1111":
				t.Errorf("from the stored file: %s", a.Text())
			}
		})
	}
}
