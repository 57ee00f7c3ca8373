//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sqe/tests/lab"
	"sqe/tests/sqetest"
)

// definitions is a laboratory in which root and pat may change things: pat, who is
// governed, all of people and what begins with "own", root everything; max nothing.
func definitions(t *testing.T) *sqetest.Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ddl")
	policies := lab.NewPolicies()
	everything := []string{"catalog-content-manage"}
	policies.Allow("root", "", "", everything...)
	policies.Allow("root", "*", "", everything...)
	policies.Allow("root", "*", "*", everything...)
	policies.Allow("pat", lab.Namespace, "", "table-create", "view-create")
	for _, name := range []string{"people", "own*"} {
		policies.Allow("pat", lab.Namespace, name, "table-metadata-full", "table-data-write", "view-metadata-full")
	}
	err := errors.Join(
		os.MkdirAll(dir, 0o700), lab.Build(context.Background(), dir), policies.Write(filepath.Join(dir, "policies")),
		os.WriteFile(filepath.Join(dir, "mask.key"), []byte(lab.HashKey+"\n"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	config, port, err := sqetest.Config(dir, lab.Catalog, []string{"root", "pat", "max"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("%v\n%s", err, s.Output())
		}
	})
	return s
}

// only is the one value of an answer.
func only(a sqetest.Answer) string {
	if len(a.Rows) != 1 || len(a.Rows[0]) != 1 {
		return a.Text()
	}
	return a.Rows[0][0]
}

// TestDefinitions: what a MySQL client defines is there for the next statement of
// another one, with the policies that act on it.
func TestDefinitions(t *testing.T) {
	s := definitions(t)
	as := func(user, text string) sqetest.Answer {
		t.Helper()
		database := sqetest.Database(lab.Namespace)
		if user == "max" { // to whom it is unknown
			database = sqetest.Database("")
		}
		return sqetest.Ask(within(t, patience), s.Conn(t, user, database), text)
	}
	do := func(user, text string) {
		t.Helper()
		if a := as(user, text); a.Err != nil {
			t.Errorf("%s: %s: %v", user, text, a.Err)
		}
	}
	see := func(user, text, want string) {
		t.Helper()
		if a := as(user, text); a.Err != nil || only(a) != want {
			t.Errorf("%s: %s: %v\n%s\nwant\n%s", user, text, a.Err, a.Text(), want)
		}
	}
	refuse := func(user, text string, number uint16, says string) {
		t.Helper()
		if a := as(user, text); a.Number() != number || !strings.Contains(a.Err.Error(), says) {
			t.Errorf("%s: %s: %v, want error %d with %q", user, text, a.Err, number, says)
		}
	}

	do("pat", "CREATE TABLE own1 (id BIGINT NOT NULL COMMENT 'key', at DATETIME(6), note TEXT) COMMENT 'of pat' PARTITIONED BY (DAY(at)) TBLPROPERTIES ('owner' = 'pat')")
	do("pat", "ALTER TABLE own1 ADD COLUMN amount DECIMAL(12,2) AFTER id, SET TBLPROPERTIES ('owner' = 'pat and friends')")
	if a := as("pat", "SHOW CREATE TABLE own1"); a.Err != nil || !strings.Contains(a.Text(), "`amount` decimal(12,2)") || !strings.Contains(a.Text(), "PARTITIONED BY (DAY(`at`)") ||
		!strings.Contains(a.Text(), "'owner' = 'pat and friends'") || !strings.Contains(a.Text(), "COMMENT='of pat'") {
		t.Errorf("%v %s", a.Err, a.Text())
	}
	see("root", "SELECT COUNT(*) FROM own1", "0")
	do("pat", "RENAME TABLE own1 TO own2")
	do("pat", "CREATE TABLE own3 LIKE own2")
	do("pat", "DROP TABLE own2, own3")
	refuse("pat", "SELECT * FROM own2", 1146, "doesn't exist")

	// Who may not know of a table learns nothing; who may, the right that is lacking.
	refuse("max", "DROP TABLE lab.people", 1146, "Table 'lab.people' doesn't exist")
	refuse("max", "DROP TABLE lab.nothing", 1146, "Table 'lab.nothing' doesn't exist")
	refuse("max", "CREATE TABLE lab.own4 (a INT)", 1049, "Unknown database 'lab'")
	refuse("pat", "DROP TABLE orders", 1142, "table-drop")
	refuse("pat", "ALTER TABLE orders ADD COLUMN a INT", 1142, "table-schema-add")
	refuse("pat", "CREATE SCHEMA elsewhere", 1142, "namespace-create")
	refuse("pat", "CREATE TABLE people (a INT)", 1050, "already exists")
	do("root", "CREATE SCHEMA elsewhere")
	do("root", "DROP SCHEMA elsewhere")

	// No change of a table is a way around its policies.
	raw, masked := only(as("root", "SELECT ssn FROM people WHERE id = 1")), only(as("pat", "SELECT ssn FROM people WHERE id = 1"))
	if raw == masked || raw == "" || masked == "" {
		t.Fatalf("%q and %q", raw, masked)
	}
	refuse("pat", "ALTER TABLE people DROP COLUMN region", 1142, "only an administrator")
	refuse("pat", "ALTER TABLE people RENAME COLUMN region TO r", 1142, "only an administrator")
	refuse("pat", "RENAME TABLE people TO own5", 1142, "only an administrator")
	refuse("pat", "CREATE OR REPLACE TABLE people (id BIGINT)", 1142, "only an administrator")
	refuse("pat", "ALTER TABLE people SET TBLPROPERTIES ('sqe.tags' = '{}')", 1210, "tags")
	do("pat", "ALTER TABLE people RENAME COLUMN ssn TO social")
	see("pat", "SELECT social FROM people WHERE id = 1", masked)
	do("pat", "ALTER TABLE people ADD COLUMN ssn TEXT")
	see("pat", "SELECT social FROM people WHERE id = 1", masked)
	see("root", "SELECT social FROM people WHERE id = 1", raw)

	do("root", "CREATE VIEW own_view AS SELECT social FROM people WHERE id = 1")
	see("pat", "SELECT * FROM own_view", masked)
	see("root", "SELECT * FROM own_view", raw)
	do("pat", "CREATE OR REPLACE VIEW own_view AS SELECT COUNT(*) AS n FROM people WHERE region <> 'EU'")
	see("pat", "SELECT * FROM own_view", "0")
	if a := as("root", "SELECT * FROM own_view"); a.Err != nil || only(a) == "0" {
		t.Errorf("%v %s", a.Err, a.Text())
	}
	do("pat", "DROP VIEW own_view")

	do("pat", "ALTER TABLE people CREATE TAG before_all")
	refuse("pat", "CALL system.set_current_snapshot(table => 'lab.people', ref => 'before_all')", 1142, "under a row filter")
	do("root", "CALL system.set_current_snapshot(table => 'lab.people', ref => 'before_all')")
	see("pat", "SELECT COUNT(*) FROM people FOR VERSION AS OF 'before_all' WHERE region <> 'EU'", "0")

	log, err := os.ReadFile(filepath.Join(s.Dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"kind":"ddl"`, `"privileges":["table-snapshot-ref-set"]`, `"privilege":"table-policy-detach"`, `"privilege":"namespace-create"`} {
		if !strings.Contains(string(log), part) {
			t.Errorf("the audit log has no %s", part)
		}
	}
}
