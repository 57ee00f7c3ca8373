//go:build e2e

package stack

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// second starts another SQE, as the guide's second configuration has it: the policies
// come over REST from the store of the first one, as from a Ranger Admin. It
// reaches the catalog at address; more are lines of its section.
func second(t testing.TB, address string, more ...string) *sqetest.Server {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile(filepath.Join(folder, "sqe.toml"))
	must(err)
	policies, err := rangerPolicies()
	must(err)
	_, rest, _ := strings.Cut(string(first), "[[identity-providers]]")
	// What comes first of the two: the store of the suite, or a Ranger Admin.
	sections, _, _ := strings.Cut(rest, "[policystore]")
	sections, _, _ = strings.Cut(sections, "[[policies]]")
	sections, err = replaced(sections, "default = true\n", "default = true\n"+strings.Join(more, "\n")+"\n", lake.Address, address)
	must(err)
	port, err := sqetest.FreePort()
	must(err)
	operations, err := sqetest.FreePort()
	must(err)
	dir := t.TempDir()
	config := fmt.Sprintf("[server]\nport = %d\n\n[ops]\naddress = \"127.0.0.1:%d\"\n\n[[identity-providers]]%s\n%s", port, operations, sections, policies)
	for name, text := range map[string]string{"sqe.toml": config, "store-admin.password": admin.password, "engine.password": engine.password} {
		must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if out, err := sqetest.Run("check", "-c", filepath.Join(dir, "sqe.toml")); err != nil {
		t.Fatalf("sqe check: %v\n%s", err, out)
	}
	s, err := sqetest.Serve(filepath.Join(dir, "sqe.toml"), port)
	must(err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := people.Leaked(s, admin.password, engine.password); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(tail(s.Output()))
		}
	})
	return s
}

// TestOwnGate: a catalog that lets people see metadata without the right to data
// opens no table for them, whatever it permits: SQE asks for the right to read data.
// The policies come as from a Ranger Admin.
func TestOwnGate(t *testing.T) {
	schema(t, "own", "t")
	s := second(t, lake.Address, `access-delegation = "none"`, `visibility-max-age = "0s"`)
	bob := people.Login(t, s, "bob", people.Token(t, "bob"))
	asks := func(want string) {
		t.Helper()
		got := ""
		for start := time.Now(); time.Since(start) < patience; time.Sleep(20 * time.Millisecond) {
			if got = sqetest.Ask(within(t, patience), bob, count("own.t")).Said(); got == want {
				return
			}
		}
		t.Fatalf("%s, want %s", got, want)
	}
	does(t, "carol", "GRANT USE ON SCHEMA own TO USER bob")
	does(t, "carol", "GRANT SELECT, MONITOR, ALTER ON own.t TO USER bob")
	asks("1")
	does(t, "carol", "REVOKE SELECT ON own.t FROM USER bob")
	asks("ERROR: SELECT command denied to user 'bob' for table 't'; ask an administrator for SELECT on it")
	// The catalog goes on to show the metadata, which is all that it is asked for.
	controls(t, "bob", path("own.t"), http.StatusForbidden)
	if a := sqetest.Ask(within(t, patience), bob, "ALTER TABLE own.t ADD COLUMN note VARCHAR(10)"); a.Err != nil {
		t.Errorf("the right to change the table is gone too: %v", a.Err)
	}
	asks("ERROR: SELECT command denied to user 'bob' for table 't'; ask an administrator for SELECT on it")
	is(t, "alice", "SELECT note FROM own.t", "NULL")
}

// TestCatalogFaults: a catalog that is slow, down, or does not take the token any
// more is told apart from a table that is not there; afterwards everything works.
func TestCatalogFaults(t *testing.T) {
	lake.ours(t)
	schema(t, "faults", "t")
	agrees(t, "alice", "faults.t", true)
	s := second(t, lake.Address, `timeout = "1s"`, `visibility-max-age = "0s"`)
	alice := people.Login(t, s, "alice", people.Token(t, "alice"))
	asks := func(what string, number uint16, text string) {
		t.Helper()
		for _, statement := range []string{count("faults.t"), "SHOW TABLES IN faults", "SHOW DATABASES", count("faults.nothing")} {
			a := sqetest.Ask(within(t, patience), alice, statement)
			if a.Number() != number || !strings.Contains(a.Said(), text) {
				t.Errorf("%s: %s: %d %s", what, statement, a.Number(), a.Said())
			}
		}
	}
	works := func() {
		t.Helper()
		// A catalog that starts, or a busy one, may take longer than the second that it is
		// given here.
		got := ""
		for start := time.Now(); time.Since(start) < patience; time.Sleep(20 * time.Millisecond) {
			if got = sqetest.Ask(within(t, patience), alice, count("faults.t")).Said(); got == "1" {
				return
			}
		}
		t.Fatal(got)
	}
	works()
	lake.Freeze(t)
	asks("slow", 1429, "does not answer")
	lake.Thaw(t)
	works()

	if err := lake.Stop(); err != nil {
		t.Error(err)
	}
	asks("down", 1429, "does not answer")
	// The other server, within the bound of what it may know: its own catalog works.
	is(t, "static", "SELECT 1", "1")
	if err := lake.Start(); err != nil {
		t.Fatal(err)
	}
	works()
	agrees(t, "bob", "faults.t", false)

	// A token that the catalog does not take any more: it knows no clock skew, while a
	// session lasts a little longer than its token.
	var token string
	var short sqetest.Querier
	for try := 1; ; try++ {
		token = kc.Token(t, "sqe-short", "alice").Access
		begun := time.Now()
		short = people.Login(t, s, "alice", token)
		got := sqetest.Ask(within(t, patience), short, count("faults.t")).Said()
		if got == "1" {
			break
		}
		slow := strings.Contains(got, "does not answer in time") || time.Since(begun) > 2*time.Second
		if !slow || try == 20 {
			t.Fatalf("a token of three seconds, at once: %s", got)
		}
	}
	time.Sleep(3500 * time.Millisecond)
	if status, _, err := ask(within(t, patience), http.MethodGet, lake.Address+path("faults.t"), token, nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("the catalog takes an expired token: %d %v", status, err)
	}
	a := sqetest.Ask(within(t, patience), short, count("faults.t"))
	if a.Number() != 1045 || !strings.Contains(a.Said(), "refuses the token of this session") {
		t.Errorf("a token that the catalog refuses: %d %s", a.Number(), a.Said())
	}
}
