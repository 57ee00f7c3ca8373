//go:build e2e

package grants

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// TestDemo: grants of a MySQL client on the server of the demo act for the next
// statement of another one.
func TestDemo(t *testing.T) {
	s, err := sqetest.Demo(filepath.Join(t.TempDir(), "demo"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("%v\n%s", err, s.Output())
		}
	})
	ctx := context.Background()
	conns := map[string]sqetest.Querier{}
	as := func(user, text string) sqetest.Answer {
		t.Helper()
		if conns[user] == nil {
			conns[user] = s.Conn(t, user)
		}
		return sqetest.Ask(ctx, conns[user], text)
	}
	do := func(text string) {
		t.Helper()
		if a := as("admin", text); a.Err != nil {
			t.Fatalf("%s: %v", text, a.Err)
		}
	}
	const read = "SELECT COUNT(*) FROM bank.branch_access"
	if a := as("alice", read); a.Err == nil {
		t.Fatal("alice reads before she may")
	}
	began := time.Now()
	do("GRANT SELECT ON bank.branch_access TO ROLE analyst")
	if a := as("alice", read); a.Err != nil {
		t.Fatal(a.Err)
	}
	granted := time.Since(began)
	if a := as("bob", read); a.Err == nil {
		t.Error("bob, who is no analyst, reads")
	}
	if a := as("alice", "SHOW GRANTS"); a.Err != nil || !strings.Contains(a.Text(), "GRANT SELECT ON `bank`.`branch_access`") {
		t.Errorf("SHOW GRANTS: %s %v", a.Text(), a.Err)
	}
	if a := as("alice", "GRANT SELECT ON bank.branch_access TO bob"); a.Err == nil || !strings.Contains(a.Err.Error(), "GRANT command denied") {
		t.Errorf("alice grants: %v", a.Err)
	}
	do("DENY SELECT ON bank.branch_access TO USER alice")
	if a := as("alice", read); a.Err == nil {
		t.Error("alice reads what is denied")
	}
	if a := as("admin", "CHECK ACCESS SELECT ON bank.branch_access FOR USER alice"); a.Err != nil || a.Rows[0][0] != "0" {
		t.Errorf("CHECK ACCESS: %s %v", a.Text(), a.Err)
	}
	do("REVOKE SELECT ON bank.branch_access FROM USER alice")
	if a := as("alice", read); a.Err != nil {
		t.Error(a.Err)
	}
	began = time.Now()
	do("REVOKE SELECT ON bank.branch_access FROM ROLE analyst")
	if a := as("alice", read); a.Err == nil {
		t.Error("alice reads after the grant is taken back")
	}
	t.Logf("from GRANT to the first rows %s, from REVOKE to the first refusal %s", granted.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	// Policies of the demo are as they were.
	if a := as("alice", "SELECT COUNT(*) FROM bank.customers"); a.Err != nil {
		t.Error(a.Err)
	}
}
