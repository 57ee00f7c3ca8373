//go:build e2e

package stack

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// cast makes the roles of the rows known: bob and anna_analyst are analysts,
// anna_analyst is an engineer too, and ext_auditor is nothing.
func cast(t testing.TB) {
	t.Helper()
	if _, status := called(t, http.MethodGet, "xusers/users/userName/ext_auditor", nil); status != http.StatusOK {
		call(t, http.MethodPost, "xusers/secure/users", object{"name": "ext_auditor", "firstName": "ext_auditor", "status": 1, "userRoleList": []string{"ROLE_USER"}})
	}
	for _, s := range []string{"CREATE ROLE IF NOT EXISTS analyst, engineer", "GRANT analyst TO USER bob, USER anna_analyst", "GRANT engineer TO USER anna_analyst"} {
		does(t, "carol", s)
	}
}

// orders makes a schema of three orders and of an empty table, for rows of the table of
// live tests. What the test grants on it is taken back in the end.
func orders(t testing.TB, name string, numbers ...int) (rows []row) {
	t.Helper()
	cast(t)
	schema(t, name, "audit", "later")
	does(t, "alice", "CREATE TABLE "+name+".orders (id BIGINT, region VARCHAR(10), amount DECIMAL(10,2))")
	does(t, "alice", "INSERT INTO "+name+".orders VALUES (1, 'EU', 10), (2, 'US', 20), (3, 'EU', 30)")
	for _, n := range numbers {
		rows = append(rows, row{t, n})
	}
	return rows
}

// do runs a statement of the administrator, which must succeed at once.
func do(t testing.TB, statement string) {
	t.Helper()
	if a := as(t, "carol", statement); a.Err != nil {
		t.Fatalf("%s: %v", statement, a.Err)
	}
}

// TestRowReads is rows 4, 6 and 10: nobody reads before a grant, a role reads exactly
// the rows with it, and nobody after it.
func TestRowReads(t *testing.T) {
	r := orders(t, "readers", 4, 6, 10)
	for _, who := range []string{"bob", "anna_analyst", "ext_auditor"} {
		r[0].both(who, reading, "readers.orders", never)
		r[0].both(who, entering, "readers.orders", never)
	}
	r[0].both("alice", reading, "readers.orders", may)
	do(t, "GRANT SELECT ON readers.orders TO ROLE analyst")
	r[1].both("bob", reading, "readers.orders", may)
	r[1].both("bob", entering, "readers.orders", may)
	is(t, "bob", "SELECT region, amount FROM readers.orders ORDER BY id", "EU|10.00\nUS|20.00\nEU|30.00")
	var columns []string
	for _, f := range metadata(t, "bob", "readers", "orders").Schemas[0].Fields {
		columns = append(columns, f.Name)
	}
	if got := strings.Join(columns, " "); got != "id region amount" {
		t.Errorf("the catalog shows bob %s", got)
	}
	r[1].both("ext_auditor", reading, "readers.orders", never)
	r[1].both("bob", reading, "readers.audit", never)
	r[2].both("anna_analyst", reading, "readers.orders", may)
	do(t, "REVOKE SELECT ON readers.orders FROM ROLE analyst")
	for _, who := range []string{"bob", "anna_analyst"} {
		r[2].both(who, reading, "readers.orders", ended)
		r[2].both(who, entering, "readers.orders", ended)
	}
	r[2].both("alice", reading, "readers.orders", may)
}

// TestRowOthersWrites is row 3: what one inserts and another one deletes is what both see
// next, and the catalog shows both the same snapshot.
func TestRowOthersWrites(t *testing.T) {
	r := orders(t, "others", 3)[0]
	do(t, "GRANT SELECT, INSERT ON others.orders TO ROLE analyst, USER carol")
	t.Cleanup(func() { do(t, "REVOKE INSERT ON others.orders FROM USER carol") })
	r.both("carol", reading, "others.orders", may)
	is(t, "carol", count("others.orders"), "3")
	before := metadata(t, "carol", "others", "orders").Current
	does(t, "bob", "INSERT INTO others.orders VALUES (909, 'EU', 1.0)")
	is(t, "carol", "SELECT COUNT(*) FROM others.orders WHERE id = 909", "1")
	after := metadata(t, "carol", "others", "orders").Current
	if after == before || after != metadata(t, "bob", "others", "orders").Current {
		t.Errorf("the snapshot of carol is %d, and was %d", after, before)
	}
	result, err := people.Session(t, "carol").ExecContext(within(t, patience), "DELETE FROM others.orders WHERE id = 909")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Errorf("%d rows are deleted, %v", n, err)
	}
	is(t, "bob", "SELECT COUNT(*) FROM others.orders WHERE id = 909", "0")
	if got := metadata(t, "bob", "others", "orders").Current; got == after {
		t.Error("the catalog shows bob the snapshot before the deletion")
	}
	r.both("bob", inserting, "others.orders", may)
	r.both("ext_auditor", inserting, "others.orders", never)
}

// TestRowTakenBack is row 5: what statements wrote is there, and is gone after REVOKE,
// while policies of others with wider patterns stay, and act.
func TestRowTakenBack(t *testing.T) {
	r := orders(t, "seeded", 5)[0]
	one := func(v string) object { return object{"values": []string{v}} }
	seed := object{
		"service": "polaris", "name": "seed of carol", "policyType": 0, "isEnabled": true, "resources": object{"root": one("*"), "catalog": one("*"), "namespace": one("seeded"), "table": one("*")},
		"policyItems": []any{object{"users": []string{"carol"}, "accesses": []any{object{"type": "table-data-read", "isAllowed": true}, object{"type": "table-properties-read", "isAllowed": true}}}},
	}
	t.Cleanup(put(t, seed))
	before := len(policies(t, "seeded"))
	do(t, "GRANT SELECT ON seeded.orders TO ROLE analyst, USER ext_auditor")
	written := slices.DeleteFunc(policies(t, "seeded"), func(p object) bool { return !strings.HasPrefix(p["name"].(string), "sqe-grant-") })
	if len(policies(t, "seeded")) <= before || len(written) == 0 {
		t.Errorf("%d policies, and %d before", len(policies(t, "seeded")), before)
	}
	r.both("bob", reading, "seeded.orders", may)
	r.both("ext_auditor", reading, "seeded.orders", may)
	do(t, "REVOKE SELECT ON seeded.orders FROM ROLE analyst, USER ext_auditor")
	if after := policies(t, "seeded"); len(after) != before || !slices.ContainsFunc(after, func(p object) bool { return p["name"] == "seed of carol" }) {
		t.Errorf("%d policies, and %d before: %v", len(after), before, after)
	}
	r.both("bob", reading, "seeded.orders", ended)
	r.both("ext_auditor", reading, "seeded.orders", ended)
	r.both("carol", reading, "seeded.orders", may)
}

// TestRowRoleAndUser is row 7: a grant to a role and one to a user are each for their own.
func TestRowRoleAndUser(t *testing.T) {
	r := orders(t, "apiece", 7)[0]
	do(t, "GRANT SELECT ON apiece.orders TO ROLE engineer")
	do(t, "GRANT SELECT ON apiece.audit TO USER bob")
	t.Cleanup(func() { do(t, "REVOKE SELECT ON apiece.audit FROM USER bob") })
	r.both("anna_analyst", reading, "apiece.orders", may)
	is(t, "anna_analyst", "SELECT id FROM apiece.orders ORDER BY id", "1\n2\n3")
	r.both("bob", reading, "apiece.audit", may)
	r.both("bob", reading, "apiece.orders", never)
	r.both("anna_analyst", reading, "apiece.audit", never)
	r.both("ext_auditor", reading, "apiece.orders", never)
	r.both("ext_auditor", reading, "apiece.audit", never)
}

// TestRowWriting is row 8: to write is more than to read, and to drop, to rename, to
// change and to make something else again.
func TestRowWriting(t *testing.T) {
	r := orders(t, "writes", 8)[0]
	do(t, "GRANT SELECT ON writes.orders TO ROLE analyst")
	do(t, "GRANT INSERT ON writes.orders TO ROLE engineer")
	r.both("anna_analyst", inserting, "writes.orders", may)
	r.both("bob", reading, "writes.orders", may)
	is(t, "bob", "SELECT COUNT(*) FROM writes.orders", "4")
	for _, d := range []deed{inserting, dropping, altering, renaming, creating, creatingView} {
		r.both("bob", d, "writes.orders", never)
	}
	for _, d := range []deed{dropping, renaming, creating, creatingView} {
		r.both("anna_analyst", d, "writes.orders", never)
	}
	is(t, "bob", "SELECT COUNT(*) FROM writes.orders", "4")
	// The controls.
	r.both("alice", creating, "writes.orders", may)
	r.both("alice", creatingView, "writes.orders", may)
	does(t, "alice", "CREATE TABLE writes.gone (id BIGINT)")
	does(t, "alice", "CREATE TABLE writes.gone_too (id BIGINT)")
	do(t, "GRANT DROP ON TABLE writes.gone, writes.gone_too TO ROLE engineer")
	do(t, "GRANT SELECT ON TABLE writes.gone, writes.gone_too TO ROLE engineer")
	do(t, "GRANT ALTER ON writes.audit TO ROLE engineer")
	do(t, "GRANT SELECT ON writes.audit TO ROLE engineer")
	r.both("anna_analyst", altering, "writes.audit", may)
	// The right to drop is enough for both, without one to list the schema.
	controls(t, "anna_analyst", path("writes.gone"), http.StatusOK)
	if a := as(t, "anna_analyst", "DROP TABLE writes.gone"); a.Err != nil {
		t.Errorf("DROP TABLE: %v", a.Err)
	}
	q := dropping.request(t, "writes", "gone_too", "")
	if status, text := sent(t, "anna_analyst", q); status != q.status {
		t.Errorf("%s: %d %s", q.path, status, text)
	}
	for _, gone := range []string{"writes.gone", "writes.gone_too"} {
		if got := control(t, "alice", path(gone)); got != http.StatusNotFound {
			t.Errorf("%s is still there: %d", gone, got)
		}
	}
}

// TestRowDenied is row 9: what somebody denies in the policy server comes before what is
// granted, for those who are denied.
func TestRowDenied(t *testing.T) {
	r := orders(t, "barred", 9)[0]
	do(t, "GRANT SELECT ON barred.audit TO ROLE analyst, ROLE engineer")
	r.both("bob", reading, "barred.audit", may)
	r.both("anna_analyst", reading, "barred.audit", may)
	for _, p := range policies(t, "barred") {
		if slices.Equal(onLevel(p, "table"), []string{"audit"}) {
			p["denyPolicyItems"] = []object{{"roles": []string{"engineer"}, "accesses": []object{{"type": "table-properties-read", "isAllowed": true}, {"type": "table-data-read", "isAllowed": true}}}}
			call(t, http.MethodPut, fmt.Sprintf("public/v2/api/policy/%.0f", p["id"]), p)
		}
	}
	r.both("anna_analyst", reading, "barred.audit", ended)
	r.both("bob", reading, "barred.audit", may)
	do(t, "REVOKE ALL ON TABLE barred.audit FROM ROLE engineer")
	r.both("anna_analyst", reading, "barred.audit", may)
}

// TestRowShown is rows 17, 18 and 19: SHOW GRANTS says to whom, by whom and when; the
// policies say it too; and CHECK ACCESS says what then happens at both gates.
func TestRowShown(t *testing.T) {
	r := orders(t, "shown", 17, 18, 19)
	do(t, "GRANT SELECT ON shown.orders TO ROLE analyst")
	a := as(t, "carol", "SHOW GRANTS ON shown.orders")
	if got := a.Said(); !strings.Contains(got, "SELECT|lake.shown.orders|ROLE|analyst|ALLOW|carol|20") {
		t.Errorf("SHOW GRANTS: %s", got)
	}
	for _, line := range a.Rows {
		if when, err := time.Parse(time.RFC3339, line[6]); err != nil || time.Since(when).Abs() > time.Hour {
			t.Errorf("granted at %s: %v", line[6], err)
		}
	}
	for _, p := range policies(t, "shown") {
		if labels := fmt.Sprint(p["policyLabels"]); slices.Equal(onLevel(p, "table"), []string{"orders"}) && (!strings.Contains(labels, "chm:ROLE:analyst:SELECT") || !strings.Contains(labels, "chm-grantor:ROLE:analyst:carol") || !strings.Contains(labels, "sqe:by=carol")) {
			t.Errorf("the policy says %s", labels)
		}
	}
	r[0].both("bob", reading, "shown.orders", may)
	r[0].both("ext_auditor", reading, "shown.orders", never)
	do(t, "GRANT SELECT ON shown.orders TO ROLE engineer")
	got := as(t, "carol", "SHOW GRANTS ON shown.orders").Said()
	for _, want := range []string{"|ROLE|analyst|", "|ROLE|engineer|"} {
		if !strings.Contains(got, want) {
			t.Errorf("SHOW GRANTS has no %s: %s", want, got)
		}
	}
	r[1].both("anna_analyst", reading, "shown.orders", may)
	r[1].both("ext_auditor", reading, "shown.orders", never)
	do(t, "GRANT SELECT ON shown.audit TO USER bob")
	t.Cleanup(func() { do(t, "REVOKE SELECT ON shown.audit FROM USER bob") })
	for who, want := range map[string]struct {
		says string
		is   outcome
	}{"bob": {"1|allowed", may}, "ext_auditor": {"0|", never}, "anna_analyst": {"0|", never}, "alice": {"1|allowed", may}} {
		if got := as(t, "carol", "CHECK ACCESS SELECT ON shown.audit FOR USER "+who).Said(); !strings.HasPrefix(got, want.says) {
			t.Errorf("%s: %s", who, got)
		}
		r[2].both(who, reading, "shown.audit", want.is)
	}
}

// TestRowAllTables is row 26: a grant on all tables of a schema is for one that is made
// later, too.
func TestRowAllTables(t *testing.T) {
	r := orders(t, "every", 26)[0]
	r.both("bob", reading, "every.orders", never)
	do(t, `GRANT SELECT ON ALL TABLES IN SCHEMA lake.every TO ROLE "analyst"`)
	r.both("bob", reading, "every.orders", may)
	does(t, "alice", "CREATE TABLE every.extra (id BIGINT)")
	does(t, "alice", "INSERT INTO every.extra VALUES (7)")
	r.both("bob", reading, "every.extra", may)
	is(t, "bob", "SELECT id FROM every.extra", "7")
	r.both("bob", inserting, "every.extra", never)
	r.both("ext_auditor", reading, "every.extra", never)
	do(t, "REVOKE SELECT ON ALL TABLES IN SCHEMA lake.every FROM ROLE analyst")
	r.both("bob", reading, "every.extra", ended)
	r.both("bob", reading, "every.orders", ended)
}

// TestRowWriteTakenBack is row 27: without the right to write one still reads, when that
// was granted by itself.
func TestRowWriteTakenBack(t *testing.T) {
	r := orders(t, "less", 27)[0]
	do(t, "GRANT SELECT, INSERT ON less.orders TO ROLE analyst")
	r.both("bob", inserting, "less.orders", may)
	do(t, "REVOKE INSERT ON less.orders FROM ROLE analyst")
	r.both("bob", inserting, "less.orders", ended)
	r.both("bob", reading, "less.orders", may)
	do(t, "REVOKE SELECT ON less.orders FROM ROLE analyst")
	r.both("bob", reading, "less.orders", ended)
	r.both("alice", inserting, "less.orders", may)
}

// TestRowTheWay is row 28: a grant on one table gives what leads to it and nothing beside
// it; REVOKE takes all of it, for the last one that needs it.
func TestRowTheWay(t *testing.T) {
	r := orders(t, "way", 28)[0]
	r.both("ext_auditor", listing, "way.orders", never)
	r.both("ext_auditor", reading, "way.orders", never)
	if got := control(t, "ext_auditor", inLake("/namespaces")); got != http.StatusForbidden {
		t.Errorf("the catalog lists its schemas to ext_auditor: %d", got)
	}
	do(t, "GRANT SELECT ON way.orders TO USER ext_auditor")
	for want, at := range map[string][]string{
		"namespace-list": {"lake"}, "namespace-list namespace-properties-read": {"lake", "way"},
		"table-data-read table-list table-properties-read": {"lake", "way", "orders"}, "": {"lake", "way", "audit"},
	} {
		if got := given(t, "policyItems", "users", "ext_auditor", at...); got != want {
			t.Errorf("ext_auditor has %q on %v, want %q", got, at, want)
		}
	}
	r.both("ext_auditor", reading, "way.orders", may)
	r.both("ext_auditor", entering, "way.orders", may)
	controls(t, "ext_auditor", inLake("/namespaces"), http.StatusOK)
	r.both("ext_auditor", reading, "way.audit", never)
	// To list tables takes USE at the catalog, which SQE asks as the user; then SQE lists
	// what one may see, and the catalog everything.
	if got := control(t, "ext_auditor", inLake("/namespaces/way/tables")); got != http.StatusForbidden {
		t.Errorf("the catalog lists the tables: %d", got)
	}
	is(t, "ext_auditor", "SHOW TABLES IN way", "")
	do(t, "GRANT USE ON SCHEMA way TO USER ext_auditor")
	r.both("ext_auditor", listing, "way.orders", may)
	becomes(t, "ext_auditor", "SHOW TABLES IN way", "orders")
	if _, text := sent(t, "ext_auditor", request{method: http.MethodGet, path: inLake("/namespaces/way/tables")}); !strings.Contains(text, `"audit"`) {
		t.Errorf("the catalog lists %s", text)
	}
	do(t, "REVOKE USE ON SCHEMA way FROM USER ext_auditor")
	r.both("ext_auditor", reading, "way.orders", may)
	do(t, "REVOKE SELECT ON way.orders FROM USER ext_auditor")
	r.both("ext_auditor", reading, "way.orders", ended)
	r.both("ext_auditor", entering, "way.orders", ended)
	controls(t, "ext_auditor", inLake("/namespaces"), http.StatusForbidden)
	for _, at := range [][]string{{"lake"}, {"lake", "way"}, {"lake", "way", "orders"}} {
		if got := given(t, "policyItems", "users", "ext_auditor", at...); got != "" {
			t.Errorf("ext_auditor still has %q on %v", got, at)
		}
	}
	r.both("alice", reading, "way.orders", may)
}

// TestRowSchemas is row 29: what is listed is that of the catalog that is named.
func TestRowSchemas(t *testing.T) {
	r := orders(t, "only_here", 29)[0]
	do(t, "GRANT SELECT ON only_here.orders TO USER bob")
	do(t, "GRANT SELECT ON archive.bank.customers TO USER bob")
	do(t, "GRANT USE ON SCHEMA only_here TO USER bob")
	t.Cleanup(func() {
		do(t, "REVOKE SELECT ON only_here.orders FROM USER bob")
		do(t, "REVOKE USE ON SCHEMA only_here FROM USER bob")
		do(t, "REVOKE SELECT ON archive.bank.customers FROM USER bob")
	})
	r.both("bob", listing, "only_here.orders", may)
	r.both("ext_auditor", listing, "only_here.orders", never)
	listed := strings.Split(as(t, "bob", "SHOW DATABASES").Said(), "\n")
	for name, want := range map[string]bool{"only_here": true, "archive.bank": true, "bank": false, "archive.only_here": false} {
		if slices.Contains(listed, name) != want {
			t.Errorf("SHOW DATABASES has %s: %v", name, listed)
		}
	}
	is(t, "bob", "SHOW TABLES IN only_here", "orders")
	is(t, "bob", "SHOW TABLES IN `archive.bank`", "customers")
	status, text := sent(t, "bob", request{method: http.MethodGet, path: inLake("/namespaces")})
	if status != http.StatusOK || !strings.Contains(text, `"only_here"`) || strings.Contains(text, `"bank"`) {
		t.Errorf("the catalog lists %d %s", status, text)
	}
	if a := as(t, "carol", "GRANT USE ON CATALOG nowhere TO USER bob"); a.Err == nil || !strings.Contains(a.Said(), "nowhere") {
		t.Errorf("an unknown catalog: %s", a.Said())
	}
}

// TestRowNotMoved is row 30: INSERT does not say that one may move a table, give it
// another identity or format, and no statement does that. The catalog itself adds what
// the types of a policy imply, whatever the policy leaves out: of that GRANT warns.
func TestRowNotMoved(t *testing.T) {
	r := orders(t, "settled", 30)[0]
	granted := as(t, "carol", "GRANT INSERT ON settled.orders TO ROLE engineer")
	if granted.Err != nil {
		t.Fatal(granted.Err)
	}
	r.both("anna_analyst", inserting, "settled.orders", may)
	types := given(t, "policyItems", "roles", "engineer", "lake", "settled", "orders")
	if len(strings.Fields(types)) <= 5 || !strings.Contains(types, "table-data-write") {
		t.Errorf("INSERT is %s", types)
	}
	for _, no := range []string{"table-location-set", "table-uuid-assign", "table-format-version-upgrade", "table-properties-write"} {
		if strings.Contains(types, no) {
			t.Errorf("INSERT is also %s", no)
		}
	}
	for _, statement := range []string{"SET TBLPROPERTIES ('location' = '/elsewhere')", "SET TBLPROPERTIES ('write.data.path' = '/elsewhere')"} {
		if a := as(t, "anna_analyst", "ALTER TABLE settled.orders "+statement); a.Err == nil {
			t.Errorf("%s is done", statement)
		}
	}
	was := metadata(t, "alice", "settled", "orders").Location
	for _, q := range []request{
		update("settled", "orders", "SET_TABLE_LOCATION", "", object{"action": "set-location", "location": was}),
		update("settled", "orders", "UPGRADE_TABLE_FORMAT_VERSION", "", object{"action": "upgrade-format-version", "format-version": 2}),
	} {
		status, text := sent(t, "anna_analyst", q)
		wrong := forbidden(status, text, "anna_analyst", q.operation)
		if t.Logf("row 30 | anna_analyst: %s | REST: %d", q.operation, status); wrong == "" {
			continue
		}
		if status != http.StatusOK {
			t.Error(wrong)
		}
		if !strings.Contains(fmt.Sprint(granted.Warnings), "table-location-set") {
			t.Errorf("%s is permitted, and GRANT does not say so: %v", q.operation, granted.Warnings)
		}
		status, text = sent(t, "bob", q)
		if wrong := forbidden(status, text, "bob", q.operation); wrong != "" {
			t.Error(wrong)
		}
	}
	if now := metadata(t, "alice", "settled", "orders").Location; now != was {
		t.Errorf("the table lies at %s", now)
	}
	r.both("bob", inserting, "settled.orders", never)
}

// TestRowDeny is row 31: DENY closes what is granted, is there once however often it is
// said, and is lifted.
func TestRowDeny(t *testing.T) {
	r := orders(t, "closed", 31)[0]
	do(t, "GRANT SELECT ON closed.orders TO ROLE analyst")
	r.both("bob", reading, "closed.orders", may)
	do(t, `DENY SELECT ON closed.orders TO ROLE "analyst"`)
	do(t, `DENY SELECT ON closed.orders TO ROLE "analyst"`)
	r.both("bob", reading, "closed.orders", ended)
	r.both("anna_analyst", reading, "closed.orders", ended)
	r.both("alice", reading, "closed.orders", may)
	n := 0
	for _, p := range policies(t, "closed") {
		items, _ := p["denyPolicyItems"].([]any)
		n += len(items)
	}
	if n != 1 {
		t.Errorf("%d denials", n)
	}
	do(t, "REVOKE SELECT ON closed.orders FROM ROLE analyst")
	do(t, "GRANT SELECT ON closed.orders TO ROLE analyst")
	r.both("bob", reading, "closed.orders", may)
	// To a group, which the policy server knows: both act.
	do(t, "DENY SELECT ON closed.orders TO GROUP analytics")
	r.both("bob", reading, "closed.orders", ended)
	r.both("alice", reading, "closed.orders", may)
	do(t, "REVOKE SELECT ON closed.orders FROM GROUP analytics")
	r.both("bob", reading, "closed.orders", may)
}

// TestRowWhoGrants is rows 32, 33 and 34: who is no administrator grants nothing, an owner
// passes on what it owns and denies nothing; and what was refused changes nothing, at
// either gate.
func TestRowWhoGrants(t *testing.T) {
	r := orders(t, "owned", 32, 33, 34)
	before, _ := json.Marshal(policies(t, ""))
	a := as(t, "ext_auditor", "GRANT SELECT ON owned.orders TO USER bob")
	if a.Number() != 1142 || !strings.Contains(a.Said(), "GRANT command denied to user 'ext_auditor'") {
		t.Errorf("ext_auditor grants: %d %s", a.Number(), a.Said())
	}
	if after, _ := json.Marshal(policies(t, "")); string(after) != string(before) {
		t.Error("a statement that was refused changed policies")
	}
	caughtUp(t, "owned.later")
	r[0].both("bob", reading, "owned.orders", never)
	do(t, "GRANT SELECT ON owned.orders TO USER bob")
	r[0].both("bob", reading, "owned.orders", may)
	do(t, "REVOKE SELECT ON owned.orders FROM USER bob")
	r[0].both("bob", reading, "owned.orders", ended)

	do(t, "GRANT SELECT ON owned.orders TO USER ext_auditor WITH GRANT OPTION")
	do(t, "GRANT USE ON SCHEMA owned TO USER bob")
	t.Cleanup(func() {
		do(t, "REVOKE ALL ON TABLE owned.orders FROM USER ext_auditor, USER bob")
		do(t, "REVOKE USE ON SCHEMA owned FROM USER bob")
	})
	if a := as(t, "ext_auditor", "GRANT SELECT ON owned.orders TO USER bob"); a.Err != nil {
		t.Fatal(a.Err)
	}
	if got := given(t, "policyItems", "users", "bob", "lake", "owned", "orders"); !strings.Contains(got, "table-data-read") {
		t.Errorf("bob has %s", got)
	}
	r[1].both("bob", reading, "owned.orders", may)
	for _, refused := range []string{"GRANT SELECT ON owned.audit TO USER bob", "GRANT INSERT ON owned.orders TO USER bob", "GRANT SELECT ON ALL TABLES IN SCHEMA owned TO USER bob"} {
		if a := as(t, "ext_auditor", refused); a.Number() != 1142 {
			t.Errorf("%s: %s", refused, a.Said())
		}
	}
	caughtUp(t, "owned.later")
	r[1].both("bob", reading, "owned.audit", never)
	r[1].both("bob", inserting, "owned.orders", never)

	if a := as(t, "ext_auditor", "DENY SELECT ON owned.orders TO USER bob"); a.Number() != 1142 || !strings.Contains(a.Said(), "DENY") {
		t.Errorf("an owner denies: %d %s", a.Number(), a.Said())
	}
	caughtUp(t, "owned.later")
	r[2].both("bob", reading, "owned.orders", may)
	do(t, "DENY SELECT ON owned.orders TO USER bob")
	r[2].both("bob", reading, "owned.orders", ended)
	r[2].both("ext_auditor", reading, "owned.orders", may)
}

// TestRowViews: views are objects of their own for both gates, as tables are.
func TestRowViews(t *testing.T) {
	orders(t, "looks")
	r := row{t, 0}
	does(t, "alice", "CREATE VIEW looks.v AS SELECT id FROM looks.orders")
	r.both("bob", viewing, "looks.v", never)
	do(t, "GRANT SELECT ON VIEW looks.v TO ROLE analyst")
	do(t, "GRANT SELECT ON TABLE looks.orders TO ROLE analyst")
	r.both("bob", viewing, "looks.v", may)
	r.both("bob", droppingView, "looks.v", never)
	do(t, "REVOKE SELECT ON VIEW looks.v FROM ROLE analyst")
	r.both("bob", viewing, "looks.v", ended)
	r.both("bob", reading, "looks.orders", may)
	r.both("bob", founding, "looks.v", never)
	r.both("alice", founding, "looks.v", may)
	do(t, "GRANT DROP ON VIEW looks.v TO ROLE engineer")
	do(t, "GRANT SELECT ON VIEW looks.v TO ROLE engineer")
	controls(t, "anna_analyst", inLake("/namespaces/looks/views/v"), http.StatusOK)
	does(t, "anna_analyst", "DROP VIEW looks.v")
	if got := control(t, "alice", inLake("/namespaces/looks/views/v")); got != http.StatusNotFound && got != http.StatusForbidden {
		t.Errorf("the view is still there: %d", got)
	}
}

// TestGrantTimes prints how long it takes from GRANT to the first answer of a query and
// of the catalog, and from REVOKE to the first refusal of each, and when at worst.
func TestGrantTimes(t *testing.T) {
	cast(t)
	const rounds = 7
	var tables []string
	for n := range rounds {
		tables = append(tables, fmt.Sprint("t", n))
	}
	schema(t, "ages", append(tables, "later")...)
	took := map[string][]time.Duration{}
	wait := func(what string, begun time.Time, f func() bool) time.Duration {
		for time.Since(begun) < patience {
			if f() {
				return time.Since(begun)
			}
			time.Sleep(2 * time.Millisecond)
		}
		t.Errorf("%s: not within %s", what, patience)
		return patience
	}
	people.Session(t, "bob")
	for _, name := range tables {
		// A table that nobody has asked for yet, and the catalog up to date.
		caughtUp(t, "ages.later")
		table := "ages." + name
		for _, step := range []struct {
			statement, what string
			allowed         bool
		}{{"GRANT SELECT ON " + table + " TO USER bob", "GRANT", true}, {"REVOKE SELECT ON " + table + " FROM USER bob", "REVOKE", false}} {
			begun := time.Now()
			do(t, step.statement)
			took[step.what+" itself"] = append(took[step.what+" itself"], time.Since(begun))
			var both sync.WaitGroup
			var mu sync.Mutex
			for way, answers := range map[string]func() bool{
				"SQE":  func() bool { return (as(t, "bob", count(table)).Err == nil) == step.allowed },
				"REST": func() bool { return (control(t, "bob", path(table)) == http.StatusOK) == step.allowed },
			} {
				both.Go(func() {
					d := wait(step.what+" by "+way, begun, answers)
					mu.Lock()
					defer mu.Unlock()
					took[step.what+" until "+way] = append(took[step.what+" until "+way], d)
				})
			}
			both.Wait()
		}
	}
	for _, what := range []string{"GRANT itself", "GRANT until SQE", "GRANT until REST", "REVOKE itself", "REVOKE until SQE", "REVOKE until REST"} {
		d := took[what]
		slices.Sort(d)
		t.Logf("%-18s median %4d ms, at most %4d ms", what, d[len(d)/2].Milliseconds(), d[len(d)-1].Milliseconds())
	}
}

// TestRowsProven prints the table of the rows and holds it to be whole: every row was
// allowed and refused to somebody, by SQE and by the catalog.
func TestRowsProven(t *testing.T) {
	if f := flag.Lookup("test.run"); f != nil && f.Value.String() != "" {
		t.Log("only some of the tests run")
	}
	proven.Lock()
	defer proven.Unlock()
	seen := map[int]map[bool]bool{}
	slices.SortStableFunc(proven.lines, func(a, b evidence) int { return a.row - b.row })
	var table strings.Builder
	for _, l := range proven.lines {
		if seen[l.row] == nil {
			seen[l.row] = map[bool]bool{}
		}
		seen[l.row][l.allowed] = true
		fmt.Fprintf(&table, "%2d | %-12s | %-30s | %-60.60s | %s\n", l.row, l.who, l.what, l.statement, l.way)
	}
	t.Logf("row, who, what, SQE, REST:\n%s", table.String())
	for _, n := range []int{3, 4, 5, 6, 7, 8, 9, 10, 17, 18, 19, 26, 27, 28, 29, 30, 31, 32, 33, 34} {
		if s := seen[n]; s == nil && flag.Lookup("test.run").Value.String() != "" {
			continue
		} else if !s[true] || !s[false] {
			t.Errorf("row %d: allowed %v, refused %v", n, s[true], s[false])
		}
	}
}
