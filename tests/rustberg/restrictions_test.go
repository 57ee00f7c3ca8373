//go:build e2e

package rustberg

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	eu = `{"type":"eq","term":"region","value":"EU"}`
	us = `{"type":"eq","term":"region","value":"US"}`
)

// sales makes a database with the table orders, which has rows of several regions,
// and the table names, with a row for each amount and code that orders has or shows.
func sales(t testing.TB, name string) {
	t.Helper()
	policies(t)
	for _, statement := range []string{
		"CREATE DATABASE %[1]s",
		"CREATE TABLE %[1]s.orders (id BIGINT NOT NULL, region VARCHAR(10), amount DECIMAL(10,2), code BIGINT NOT NULL, customer STRUCT<ssn: STRING, name: STRING>) PARTITIONED BY (region)",
		`INSERT INTO %[1]s.orders VALUES (1, 'EU', 1.5, 100, '{"ssn": "111", "name": "ann"}'), (2, 'US', 2.5, 200, '{"ssn": "222", "name": "ben"}'),
			(3, NULL, 3.5, 300, NULL), (4, 'EU', 9.5, 400, '{"ssn": "444", "name": "dan"}')`,
		"CREATE TABLE %[1]s.names (amount DECIMAL(10,2), code BIGINT, name VARCHAR(10))",
		"INSERT INTO %[1]s.names VALUES (1.5, 100, 'one'), (2.5, 200, 'two'), (3.5, 300, 'three'), (9.5, 400, 'four'), (NULL, 0, 'shown')",
	} {
		does(t, "carol", fmt.Sprintf(statement, name))
	}
}

// auditor lets ext_auditor read orders under a filter and with masks, and the names.
func auditor(name, filter, masks string) string {
	who := group("auditor")
	return strings.Join([]string{finds(who, name), restrict(who, table(name+".orders"), filter, masks), permit(who, look, table(name+".names"))}, "\n")
}

// plans is how often the catalog was asked to plan a scan of a table so far.
func plans(table string) int {
	schema, name, _ := strings.Cut(table, ".")
	return strings.Count(lake.log.String(), "/v1/namespaces/"+schema+"/tables/"+name+"/plan")
}

// TestValues: whatever a statement does with a restricted table, it sees the rows that
// the filter lets through, with the columns as they are shown.
func TestValues(t *testing.T) {
	sales(t, "shown")
	does(t, "carol", "CREATE VIEW shown.v AS SELECT id, amount, customer->>'$.ssn' AS ssn FROM shown.orders WHERE amount IS NULL OR amount > 0")
	all := auditor("shown", eu, "amount,code,customer.ssn")
	policies(t, all, permit(group("auditor"), look, view("shown.v")))

	// What the catalog says: one column becomes NULL, the required one a constant, and
	// SQE must ask for plans.
	status, raw := ask(t, "ext_auditor", http.MethodGet, path("shown.orders"), nil)
	for _, part := range []string{`"required-row-filter"`, `"replace-with-null"`, `"mask-to-fixed-value"`, `"scan-planning-mode":"server"`} {
		if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(string(raw), " ", ""), part) {
			t.Fatalf("the catalog restricts nothing: %d, no %s", status, part)
		}
	}
	if _, raw = ask(t, "carol", http.MethodGet, path("shown.orders"), nil); strings.Contains(string(raw), "required-row-filter") {
		t.Fatal("the catalog restricts carol")
	}
	before := plans("shown.orders")
	for _, x := range []struct{ statement, open, shown string }{
		{
			"SELECT * FROM shown.orders ORDER BY id",
			`1|EU|1.50|100|{"ssn":"111","name":"ann"}` + "\n" + `2|US|2.50|200|{"ssn":"222","name":"ben"}` + "\n3|NULL|3.50|300|NULL\n" + `4|EU|9.50|400|{"ssn":"444","name":"dan"}`,
			`1|EU|NULL|0|{"ssn":null,"name":"ann"}` + "\n" + `4|EU|NULL|0|{"ssn":null,"name":"dan"}`,
		},
		{"SELECT COUNT(*), COUNT(amount), MAX(amount), SUM(code), MIN(code) FROM shown.orders", "4|4|9.50|1000|100", "2|0|NULL|0|0"},
		{"SELECT id FROM shown.orders WHERE amount > 0 ORDER BY id", "1\n2\n3\n4", ""},
		{"SELECT id FROM shown.orders WHERE amount = 9.5 OR code = 100 OR customer->>'$.ssn' = '444' ORDER BY id", "1\n4", ""},
		{"SELECT id FROM shown.orders WHERE amount IS NULL AND code = 0 ORDER BY id", "", "1\n4"},
		{"SELECT id FROM shown.orders WHERE region = 'US' OR region IS NULL ORDER BY id", "2\n3", ""},
		{"SELECT id FROM shown.orders WHERE NOT region = 'EU' ORDER BY id", "2", ""},
		{"SELECT id FROM shown.orders WHERE id IN (2, 3)  ORDER BY id", "2\n3", ""},
		{"SELECT region, COUNT(*) FROM shown.orders GROUP BY region ORDER BY region", "NULL|1\nEU|2\nUS|1", "EU|2"},
		{"SELECT amount, code, COUNT(*) FROM shown.orders GROUP BY amount, code ORDER BY amount", "1.50|100|1\n2.50|200|1\n3.50|300|1\n9.50|400|1", "NULL|0|2"},
		{"SELECT id FROM shown.orders GROUP BY id HAVING MAX(amount) > 2 ORDER BY id", "2\n3\n4", ""},
		{"SELECT DISTINCT code FROM shown.orders ORDER BY code", "100\n200\n300\n400", "0"},
		{"SELECT id FROM shown.orders ORDER BY amount DESC, id", "4\n3\n2\n1", "1\n4"},
		{"SELECT id, RANK() OVER (ORDER BY code DESC) FROM shown.orders ORDER BY id", "1|4\n2|3\n3|2\n4|1", "1|1\n4|1"},
		{"SELECT o.id, n.name FROM shown.orders o JOIN shown.names n ON n.code = o.code ORDER BY 1", "1|one\n2|two\n3|three\n4|four", "1|shown\n4|shown"},
		{"SELECT o.id, n.name FROM shown.orders o LEFT JOIN shown.names n ON n.amount = o.amount ORDER BY 1", "1|one\n2|two\n3|three\n4|four", "1|NULL\n4|NULL"},
		{"SELECT name FROM shown.names n WHERE EXISTS (SELECT 1 FROM shown.orders o WHERE o.amount = n.amount) ORDER BY 1", "four\none\nthree\ntwo", ""},
		{"SELECT name FROM shown.names WHERE code IN (SELECT code FROM shown.orders) ORDER BY 1", "four\none\nthree\ntwo", "shown"},
		{"SELECT a.id, b.id FROM shown.orders a JOIN shown.orders b ON a.code = b.code AND a.id < b.id", "", "1|4"},
		{"SELECT (SELECT MAX(code) FROM shown.orders), (SELECT COUNT(*) FROM shown.orders WHERE amount > 1)", "400|4", "0|0"},
		{"WITH o AS (SELECT * FROM shown.orders) SELECT id, amount FROM o UNION ALL SELECT -id, amount FROM o ORDER BY id", "-4|9.50\n-3|3.50\n-2|2.50\n-1|1.50\n1|1.50\n2|2.50\n3|3.50\n4|9.50", "-4|NULL\n-1|NULL\n1|NULL\n4|NULL"},
		{"SELECT customer->>'$.ssn', customer->>'$.name' FROM shown.orders WHERE region = 'EU' ORDER BY id", "111|ann\n444|dan", "null|ann\nnull|dan"},
		{"SELECT * FROM shown.v WHERE id <> 3 ORDER BY id", "1|1.50|111\n2|2.50|222\n4|9.50|444", "1|NULL|null\n4|NULL|null"},
		{"SELECT COUNT(*) FROM shown.v WHERE amount > 5", "1", "0"},
		{"SELECT id, amount FROM shown.orders WHERE id = 1 FOR UPDATE", "1|1.50", "1|NULL"},
	} {
		is(t, "carol", x.statement, x.open)
		is(t, "ext_auditor", x.statement, x.shown)
	}
	if after := plans("shown.orders"); after <= before {
		t.Error("the catalog was not asked to plan")
	}
	// What shows files, and with them hidden rows.
	for _, statement := range []string{"SELECT * FROM shown.`orders$files`", "SELECT * FROM shown.`orders$partitions`", "SELECT * FROM shown.`orders$manifests`"} {
		fails(t, "ext_auditor", statement, "")
		does(t, "carol", statement)
	}
	// An old snapshot is under the demands of today.
	a := as(t, "carol", "SELECT snapshot_id FROM shown.`orders$snapshots`")
	if a.Err != nil || len(a.Rows) != 1 {
		t.Fatalf("snapshots: %v %v", a.Rows, a.Err)
	}
	old := "SELECT id, amount FROM shown.orders FOR VERSION AS OF " + a.Rows[0][0] + " ORDER BY id"
	is(t, "carol", old, "1|1.50\n2|2.50\n3|3.50\n4|9.50")
	is(t, "ext_auditor", old, "1|NULL\n4|NULL")
}

// TestExplain: who may see policies is told what the catalog demands and that it is
// the catalog; who may not, in general words. Alice administers SQE here.
func TestExplain(t *testing.T) {
	sales(t, "told")
	policies(t, auditor("told", eu, "amount"), finds(group("data_engineer"), "told"), restrict(group("data_engineer"), table("told.orders"), us, "code"))
	becomes(t, "ext_auditor", count("told.orders"), "2")
	becomes(t, "alice", count("told.orders"), "1")
	const explain = "EXPLAIN POLICY SELECT * FROM told.orders"
	is(t, "ext_auditor", explain, "lake.told.orders||rows are filtered||\nlake.told.orders|amount|column shows NULL||")
	is(t, "carol", explain, "lake.told.orders||no restriction||")
	is(t, "alice", explain, `lake.told.orders||rows are filtered|read-restrictions (source lake)|{"left":{"id":2,"type":"reference"},"right":{"type":"literal","value":"US"},"type":"eq"}
lake.told.orders|code|column shows a constant|read-restrictions (source lake)|iceberg:mask-to-fixed-value`)
	for _, statement := range []string{"EXPLAIN POLICY FORMAT JSON SELECT * FROM told.orders", "SHOW EFFECTIVE POLICY ON told.orders"} {
		if got := as(t, "alice", statement).Said(); !strings.Contains(got, "read-restrictions") || !strings.Contains(got, "US") || strings.Contains(got, "EU") || strings.Contains(got, "amount") {
			t.Errorf("alice: %s: %s", statement, got)
		}
		if got := as(t, "ext_auditor", statement).Said(); strings.HasPrefix(got, "ERROR") || strings.Contains(got, "EU") || strings.Contains(got, "read-restrictions") {
			t.Errorf("ext_auditor: %s: %s", statement, got)
		}
		if got := as(t, "carol", statement).Said(); strings.HasPrefix(got, "ERROR") || strings.Contains(got, "read-restrictions") {
			t.Errorf("carol: %s: %s", statement, got)
		}
	}
	// What the catalog demands of one it tells that one alone.
	if got := as(t, "alice", "SHOW EFFECTIVE POLICY FOR USER ext_auditor ON TABLE told.orders").Said(); strings.Contains(got, "EU") || strings.Contains(got, "amount") {
		t.Errorf("alice about ext_auditor: %s", got)
	}
}
