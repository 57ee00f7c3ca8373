//go:build e2e

package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// needed lists, for statements about what lies in the schema %s, the rights with which
// SQE runs them, and those with which the catalog does beside them: docs/sql.md has
// both. The schema holds the tables t and u of one row and the view v; .s in a right is
// the schema itself.
var needed = []struct{ statement, rights, also string }{
	{"CREATE SCHEMA %s.below", "namespace-create .s", ""},
	{"ALTER SCHEMA %s SET PROPERTIES ('owner' = 'eve')", "namespace-properties-write .s", ""},
	{"CREATE TABLE %s.made (id BIGINT)", "table-create .s", ""},
	{"CREATE TABLE %s.made LIKE %s.t", "table-create .s, table-properties-read t", ""},
	{"ALTER TABLE %s.t ADD COLUMN c INT", "table-schema-add t, table-schema-set-current t", "table-properties-read t"},
	{"ALTER TABLE %s.t ADD PARTITION FIELD region", "table-partition-spec-add t", "table-properties-write t"},
	{"ALTER TABLE %s.t WRITE ORDERED BY id", "table-sort-order-add t, table-sort-order-set-default t", "table-properties-read t"},
	{"ALTER TABLE %s.t SET TBLPROPERTIES ('a' = 'b')", "table-properties-set t", "table-properties-read t"},
	{"ALTER TABLE %s.t UNSET TBLPROPERTIES ('c')", "table-properties-remove t", "table-properties-read t"},
	{"ALTER TABLE %s.t CREATE TAG q1", "table-snapshot-ref-set t", "table-properties-read t"},
	{"ALTER TABLE %s.t DROP TAG old", "table-snapshot-ref-remove t", "table-properties-read t"},
	{"CALL system.set_current_snapshot(table => '%s.t', ref => 'old')", "table-snapshot-ref-set t", "table-properties-read t"},
	{"CALL system.expire_snapshots(table => '%s.t', older_than => '2199-01-01 00:00:00')", "table-data-write t, table-snapshots-remove t, table-snapshot-ref-remove t", ""},
	{"CALL system.rewrite_data_files(table => '%s.t', options => map('rewrite-all', 'true'))", "table-data-write t, table-snapshot-add t, table-snapshot-ref-set t", ""},
	{"CALL system.remove_orphan_files('%s.t')", "table-data-write t", ""},
	{"RENAME TABLE %s.t TO %s.other", "table-drop t, table-data-read t, table-create .s", ""},
	{"DROP TABLE %s.t", "table-drop t", ""},
	{"DROP TABLE %s.t PURGE", "table-drop t, table-data-write t", ""},
	{"CREATE TABLE %s.made AS SELECT id FROM %s.t", "table-create .s, table-data-write made, table-data-read t", "table-data-write .s"},
	{"SELECT COUNT(*) FROM %s.t", "table-data-read t", ""},
	{"INSERT INTO %s.t (id) VALUES (2)", "table-data-write t", ""},
	{"INSERT INTO %s.t SELECT * FROM %s.u", "table-data-write t, table-data-read u", ""},
	{"UPDATE %s.t SET region = 'US'", "table-data-write t", ""},
	{"DELETE FROM %s.t WHERE id = 1", "table-data-write t", ""},
	{"TRUNCATE TABLE %s.t", "table-data-write t", ""},
	{"CREATE VIEW %s.made AS SELECT id FROM %s.t", "view-create .s, table-data-read t", ""},
	{"SELECT * FROM %s.v", "view-properties-read v, table-data-read u", ""},
	{"CREATE OR REPLACE VIEW %s.v AS SELECT 1 AS one", "view-create .s, view-properties-write v", ""},
	{"ALTER VIEW %s.v AS SELECT 2 AS two", "view-properties-write v", "view-list .s"},
	{"ALTER VIEW %s.v RENAME TO w", "view-drop v, view-create .s", ""},
	{"DROP VIEW %s.v", "view-drop v", "view-list .s"},
	{"SHOW CREATE TABLE %s.t", "table-data-read t", ""},
}

// TestRights: with the rights that SQE asks for, and nothing else, each statement
// passes the catalog too; without one of them SQE refuses it by itself. The two gates
// never disagree.
func TestRights(t *testing.T) {
	implied := impliedRights(t)
	type attempt struct {
		statement, schema, lacks string
		rights                   []string
	}
	var attempts []attempt
	for i, n := range needed {
		all := strings.Split(n.rights, ", ")
		for j := -1; j < len(all); j++ {
			a := attempt{schema: fmt.Sprintf("rights_%d_%d", i, j+1), rights: slices.Clone(all)}
			if j >= 0 {
				a.lacks, a.rights = all[j], slices.Delete(a.rights, j, j+1)
			}
			// What every grant brings for the way to its object.
			a.rights = append(a.rights, "namespace-properties-read .s")
			if n.also != "" {
				a.rights = append(a.rights, n.also)
			}
			if slices.ContainsFunc(a.rights, func(r string) bool { return slices.Contains(implied[r], a.lacks) }) {
				continue // it comes with another one
			}
			a.statement = strings.ReplaceAll(n.statement, "%s", a.schema)
			attempts = append(attempts, a)
		}
	}
	if len(attempts) < 2*len(needed) {
		t.Fatalf("%d attempts for %d statements", len(attempts), len(needed))
	}

	does(t, "carol", "GRANT CREATE NAMESPACE ON CATALOG lake TO USER alice")
	everything := []string{"namespace-metadata-full", "table-create", "view-create"}
	allow(t, "alice", "rights_*", "", everything...)
	allow(t, "alice", "rights_*", "*", "table-metadata-full", "table-data-write", "view-metadata-full")
	allow(t, "anna_analyst", "", "", "namespace-list")
	for _, a := range attempts {
		byObject := map[string][]string{}
		for _, r := range a.rights {
			right, on, _ := strings.Cut(r, " ")
			byObject[on] = append(byObject[on], right)
		}
		for on, rights := range byObject {
			allow(t, "anna_analyst", a.schema, strings.TrimPrefix(on, ".s"), rights...)
		}
	}
	for _, a := range attempts {
		does(t, "alice", "CREATE DATABASE "+a.schema)
		does(t, "alice", "CREATE TABLE "+a.schema+".t (id BIGINT, region VARCHAR(10)) TBLPROPERTIES ('c' = 'd')")
		does(t, "alice", "INSERT INTO "+a.schema+".t VALUES (1, 'EU')")
		if strings.Contains(a.statement, "old") {
			does(t, "alice", "ALTER TABLE "+a.schema+".t CREATE TAG old")
		}
		if strings.Contains(a.statement, ".u") || strings.Contains(a.statement, ".v") {
			does(t, "alice", "CREATE TABLE "+a.schema+".u AS SELECT * FROM "+a.schema+".t")
			does(t, "alice", "CREATE VIEW "+a.schema+".v AS SELECT id FROM "+a.schema+".u")
		}
	}
	// The catalog has read the last policy, and so all of them.
	allow(t, "anna_analyst", "rights_last", "t", "table-data-read")
	does(t, "alice", "CREATE DATABASE rights_last")
	does(t, "alice", "CREATE TABLE rights_last.t (id BIGINT)")
	controls(t, "anna_analyst", path("rights_last.t"), http.StatusOK)

	before := disagreements(t, "[a-z ]+")
	for _, a := range attempts {
		got := as(t, "anna_analyst", a.statement)
		switch {
		case a.lacks == "" && got.Err != nil:
			t.Errorf("%s with %s: %v", a.statement, a.rights, got.Err)
		case a.lacks != "" && got.Err == nil:
			t.Errorf("%s without %s: %v", a.statement, a.lacks, got.Rows)
		}
		if now := disagreements(t, "[a-z ]+"); now != before {
			t.Errorf("%s with %s, without %q: SQE let through what the catalog refused", a.statement, a.rights, a.lacks)
			before = now
		}
	}
	t.Logf("%d statements with their rights, %d attempts", len(needed), len(attempts))
}

// allow writes a policy for one person on the lake, a schema of it or what is in that,
// for as long as the test runs.
func allow(t testing.TB, user, schema, table string, rights ...string) {
	t.Helper()
	is := func(v string) map[string]any { return map[string]any{"values": []string{v}} }
	resources := map[string]any{"root": is("POLARIS"), "catalog": is("lake")}
	if schema != "" {
		resources["namespace"] = is(schema)
	}
	if table != "" {
		resources["table"] = is(table)
	}
	var accesses []any
	for _, r := range rights {
		accesses = append(accesses, map[string]any{"type": r, "isAllowed": true})
	}
	remove := put(t, map[string]any{
		"service": "polaris", "name": fmt.Sprint("allow ", user, schema, table, rights), "policyType": 0, "isEnabled": true, "resources": resources,
		"policyItems": []any{map[string]any{"users": []string{user}, "accesses": accesses}},
	})
	t.Cleanup(remove)
}

// impliedRights are, for each right on an object as in needed, those that it brings.
func impliedRights(t testing.TB) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sqetest.Root(), "rangerclient", "servicedef", "polaris.json"))
	if err != nil {
		t.Fatal(err)
	}
	var service struct {
		AccessTypes []struct {
			Name          string
			ImpliedGrants []string
		}
	}
	if err := json.Unmarshal(text, &service); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, a := range service.AccessTypes {
		for _, on := range []string{".s", "t", "u", "v", "made"} {
			for _, i := range a.ImpliedGrants {
				out[a.Name+" "+on] = append(out[a.Name+" "+on], i+" "+on)
			}
		}
	}
	return out
}
