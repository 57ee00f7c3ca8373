//go:build e2e

package rustberg

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestFilters: conditions as the catalog sends them, with the rows for which Iceberg's
// expressions are true: NULL is not equal to anything.
func TestFilters(t *testing.T) {
	sales(t, "filters")
	who := group("auditor")
	for _, x := range []struct{ filter, want string }{
		{`{"type":"not-eq","term":"region","value":"EU"}`, "2\n3"},
		{`{"type":"in","term":"region","values":["EU","UK"]}`, "1\n4"},
		{`{"type":"not-in","term":"region","values":["EU","UK"]}`, "2\n3"},
		{`{"type":"is-null","term":"region"}`, "3"},
		{`{"type":"not-null","term":"region"}`, "1\n2\n4"},
		{`{"type":"lt","term":"id","value":3}`, "1\n2"},
		{`{"type":"gt-eq","term":"amount","value":"3.50"}`, "3\n4"},
		{`{"type":"lt","term":"region","value":"F"}`, "1\n4"},
		{`{"type":"starts-with","term":"region","value":"E"}`, "1\n4"},
		{`{"type":"not-starts-with","term":"region","value":"E"}`, "2\n3"},
		{`{"type":"not","child":` + eu + `}`, "2\n3"},
		{`{"type":"and","left":` + eu + `,"right":{"type":"gt","term":"code","value":100}}`, "4"},
		{`{"type":"or","left":` + us + `,"right":{"type":"is-null","term":"region"}}`, "2\n3"},
	} {
		policies(t, finds(who, "filters"), restrict(who, table("filters.orders"), x.filter, ""))
		status, raw := ask(t, "ext_auditor", http.MethodGet, path("filters.orders"), nil)
		if status != http.StatusOK || !strings.Contains(string(raw), "required-row-filter") || strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"required-row-filter":false`) {
			t.Errorf("%s: the catalog sends no such filter: %d", x.filter, status)
			continue
		}
		becomes(t, "ext_auditor", "SELECT id FROM filters.orders ORDER BY id", x.want)
		is(t, "ext_auditor", "SELECT COUNT(*) FROM filters.orders", fmt.Sprint(strings.Count(x.want, "\n")+1))
	}
	// Two permissions at once: the rows of both, and masks that both have.
	policies(t, finds(who, "filters"), restrict(who, table("filters.orders"), us, "amount,code"), restrict(person(t, "ext_auditor"), table("filters.orders"), `{"type":"is-null","term":"region"}`, "code"))
	becomes(t, "ext_auditor", "SELECT id, amount, code FROM filters.orders ORDER BY id", "2|2.50|0\n3|3.50|0")
	// One without a restriction lifts the others: so the catalog has it.
	policies(t, finds(who, "filters"), restrict(who, table("filters.orders"), us, "amount,code"), permit(person(t, "ext_auditor"), look, table("filters.orders")))
	becomes(t, "ext_auditor", "SELECT id, amount, code FROM filters.orders ORDER BY id", "1|1.50|100\n2|2.50|200\n3|3.50|300\n4|9.50|400")
}

// TestNobodyElse: the restrictions of one person never act for another one, nor are
// they lifted by another one's, on one server at the same time.
func TestNobodyElse(t *testing.T) {
	sales(t, "mine")
	policies(t, auditor("mine", eu, "amount"),
		finds(group("data_analyst"), "mine"), restrict(person(t, "bob"), table("mine.orders"), us, "code"), restrict(person(t, "anna_analyst"), table("mine.orders"), "", "customer.ssn"),
		finds(group("data_engineer"), "mine"), permit(group("data_engineer"), look, table("mine.orders")))
	want := map[string]string{
		"carol": "1|1.50|100|111\n2|2.50|200|222\n3|3.50|300|NULL\n4|9.50|400|444", "alice": "1|1.50|100|111\n2|2.50|200|222\n3|3.50|300|NULL\n4|9.50|400|444",
		"ext_auditor": "1|NULL|100|111\n4|NULL|400|444", "bob": "2|2.50|0|222", "anna_analyst": "1|1.50|100|null\n2|2.50|200|null\n3|3.50|300|NULL\n4|9.50|400|null",
	}
	const statement = "SELECT id, amount, code, customer->>'$.ssn' FROM mine.orders ORDER BY id"
	for name, rows := range want {
		becomes(t, name, statement, rows)
	}
	var wg sync.WaitGroup
	for name, rows := range want {
		wg.Go(func() {
			for i := range 40 {
				// The same text for all, and one that nobody sent before.
				is(t, name, statement, rows)
				is(t, name, fmt.Sprintf("%s LIMIT %d", statement, 100+i), rows)
				is(t, name, "SELECT COUNT(*) FROM mine.orders", fmt.Sprint(strings.Count(rows, "\n")+1))
			}
		})
	}
	wg.Wait()
}

// TestRunTime: a restriction that comes, changes and goes at run time acts within the
// bound, and at no time between are other rows shown than those of one of the two.
func TestRunTime(t *testing.T) {
	sales(t, "moving")
	const statement = "SELECT id, amount, code FROM moving.orders ORDER BY id"
	last := ""
	for _, x := range []struct{ filter, masks, want string }{
		{"", "", "1|1.50|100\n2|2.50|200\n3|3.50|300\n4|9.50|400"},
		{eu, "amount", "1|NULL|100\n4|NULL|400"},
		{us, "amount", "2|NULL|200"},
		{us, "code", "2|2.50|0"},
		{"", "code", "1|1.50|0\n2|2.50|0\n3|3.50|0\n4|9.50|0"},
		{`{"type":"and","left":` + eu + `,"right":` + us + `}`, "code", ""},
		{"", "", "1|1.50|100\n2|2.50|200\n3|3.50|300\n4|9.50|400"},
	} {
		policies(t, auditor("moving", x.filter, x.masks))
		for got := "?"; got != x.want; {
			if got = as(t, "ext_auditor", statement).Said(); got != x.want && got != last && last != "" {
				t.Fatalf("neither before nor after: %s", got)
			}
			if t.Failed() {
				return
			}
			last = got
		}
		last = x.want
	}
}

// TestBothSources: a row filter and masks of SQE's own policies on the same table act
// with those of the catalog, and neither lifts what the other asks for.
func TestBothSources(t *testing.T) {
	sales(t, "twice")
	policies(t, auditor("twice", eu, "amount,code"))
	const statement = "SELECT id, region, amount, code FROM twice.orders ORDER BY id"
	becomes(t, "ext_auditor", statement, "1|EU|NULL|0\n4|EU|NULL|0")
	defer func() {
		for _, name := range []string{"twice_rows", "twice_region", "twice_amount", "twice_code"} {
			does(t, "carol", "DROP POLICY IF EXISTS "+name)
		}
	}()
	does(t, "carol", "CREATE POLICY twice_rows ON TABLE twice.orders ROW FILTER TO USER ext_auditor USING (amount < 5)")
	becomes(t, "ext_auditor", statement, "1|EU|NULL|0")
	// A filter looks at the true values, and cannot open rows that the catalog hides.
	does(t, "carol", "CREATE OR REPLACE POLICY twice_rows ON TABLE twice.orders ROW FILTER TO USER ext_auditor USING (amount < 5 OR region = 'US')")
	becomes(t, "ext_auditor", statement, "1|EU|NULL|0")
	does(t, "carol", "CREATE POLICY twice_region ON TABLE twice.orders COLUMN MASK CUSTOM TO USER ext_auditor USING ('somewhere') ON COLUMN region")
	becomes(t, "ext_auditor", statement, "1|somewhere|NULL|0")
	// Two masks on one column: NULL is stronger than what a policy of SQE puts there, and
	// than the constant of the catalog.
	does(t, "carol", "CREATE POLICY twice_amount ON TABLE twice.orders COLUMN MASK CUSTOM TO USER ext_auditor USING (amount * 2) ON COLUMN amount")
	does(t, "carol", "CREATE POLICY twice_code ON TABLE twice.orders COLUMN MASK MASK_NULL TO USER ext_auditor ON COLUMN code")
	becomes(t, "ext_auditor", statement, "1|somewhere|NULL|NULL")
	is(t, "carol", statement, "1|EU|1.50|100\n2|US|2.50|200\n3|NULL|3.50|300\n4|EU|9.50|400")
	// What SQE's policies exempt the catalog still hides.
	does(t, "carol", "CREATE OR REPLACE POLICY twice_amount ON TABLE twice.orders COLUMN MASK MASK_NONE TO USER ext_auditor ON COLUMN amount")
	does(t, "carol", "CREATE OR REPLACE POLICY twice_code ON TABLE twice.orders COLUMN MASK MASK_NONE TO USER ext_auditor ON COLUMN code")
	does(t, "carol", "CREATE OR REPLACE POLICY twice_rows ON TABLE twice.orders ROW FILTER NONE TO USER ext_auditor")
	becomes(t, "ext_auditor", statement, "1|somewhere|NULL|0\n4|somewhere|NULL|0")
}

// TestUnfit: a filter that does not fit a table hides all its rows; a mask on a column
// that has another name now closes the table.
func TestUnfit(t *testing.T) {
	sales(t, "unfit")
	who := group("auditor")
	all := []string{finds(who, "unfit"), restrict(who, inside("unfit"), eu, "amount")}
	policies(t, all...)
	becomes(t, "ext_auditor", "SELECT id, amount FROM unfit.orders ORDER BY id", "1|NULL\n4|NULL")
	status, raw := ask(t, "ext_auditor", http.MethodGet, path("unfit.names"), nil)
	if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"required-row-filter":false`) {
		t.Fatalf("the catalog sends no constant: %d", status)
	}
	becomes(t, "ext_auditor", "SELECT name FROM unfit.names", "")
	is(t, "ext_auditor", "SELECT COUNT(*), MAX(code) FROM unfit.names", "0|NULL")
	is(t, "ext_auditor", "SELECT id FROM unfit.orders WHERE code IN (SELECT code FROM unfit.names)", "")
	is(t, "carol", "SELECT COUNT(*), MAX(code) FROM unfit.names", "5|400")

	does(t, "carol", "ALTER TABLE unfit.orders RENAME COLUMN amount TO price")
	if got := control(t, "ext_auditor", "unfit.orders"); got != http.StatusForbidden {
		t.Fatalf("the catalog answers %d", got)
	}
	becomes(t, "ext_auditor", count("unfit.orders"), fmt.Sprintf(hidden, "unfit.orders"))
	is(t, "carol", "SELECT id, price FROM unfit.orders WHERE id = 1", "1|1.50")
	policies(t, finds(who, "unfit"), restrict(who, inside("unfit"), eu, "price"))
	becomes(t, "ext_auditor", "SELECT id, price FROM unfit.orders ORDER BY id", "1|NULL\n4|NULL")
}

// TestWrites: a restricted person with the right to change a table changes no row that
// they do not see, makes none that they would not see, and carries no value away that
// they do not see.
func TestWrites(t *testing.T) {
	sales(t, "changed")
	who := group("auditor")
	mine := []string{finds(who, "changed"), permit(who, `action == Rustberg::Action::"Create"`, namespace("changed")), permit(who, "action", table("changed.names"))}
	for _, name := range []string{"taken", "plain"} {
		mine = append(mine, permit(who, "action", table("changed."+name)))
	}
	write := permit(who, `action in [Rustberg::Action::"Update", Rustberg::Action::"Delete"]`, table("changed.orders"))
	policies(t, append(mine, write, restrict(who, table("changed.orders"), eu, "amount,code,customer.ssn"))...)
	const raw = "1|EU|1.50|100\n2|US|2.50|200\n3|NULL|3.50|300\n4|EU|9.50|400"
	const statement = "SELECT id, region, amount, code FROM changed.orders ORDER BY id"
	becomes(t, "ext_auditor", statement, "1|EU|NULL|0\n4|EU|NULL|0")
	const (
		planned = "plans its scans itself, so that rows can be added and not changed"
		removes = "a row filter hides rows of table"
		makes   = "would make rows in table 'orders' that its row filter hides from you"
	)
	for _, change := range []struct{ statement, why string }{
		{"UPDATE changed.orders SET region = 'EU'", planned},
		{"UPDATE changed.orders SET amount = amount", "is masked for you"},
		{"UPDATE changed.orders SET region = CAST(amount AS CHAR) WHERE id = 1", planned},
		{"DELETE FROM changed.orders", planned},
		{"DELETE FROM changed.orders WHERE amount > 0", planned},
		{"MERGE INTO changed.orders o USING changed.names n ON o.code = n.code WHEN MATCHED THEN UPDATE SET region = n.name", planned},
		{"TRUNCATE TABLE changed.orders", removes},
		{"INSERT OVERWRITE TABLE changed.orders SELECT * FROM changed.orders", removes},
		{"INSERT INTO changed.orders (id, region, amount, code) VALUES (6, 'US', 1, 1)", makes},
		{"INSERT INTO changed.orders (id, region, amount, code) VALUES (6, NULL, 1, 1)", makes},
	} {
		fails(t, "ext_auditor", change.statement, change.why)
	}
	is(t, "carol", statement, raw)
	// A row that they see they may add, with values of their own.
	does(t, "ext_auditor", "INSERT INTO changed.orders (id, region, amount, code) VALUES (5, 'EU', 7, 700)")
	becomes(t, "ext_auditor", statement, "1|EU|NULL|0\n4|EU|NULL|0\n5|EU|NULL|0")
	is(t, "carol", statement, raw+"\n5|EU|7.00|700")
	// What is carried to another table is what was shown.
	for _, s := range []string{
		"CREATE TABLE changed.taken AS SELECT id, region, amount, code, customer FROM changed.orders WHERE id < 5",
		"CREATE TABLE changed.plain (id BIGINT, amount DECIMAL(20,4), code BIGINT, ssn VARCHAR(20))",
		"INSERT INTO changed.plain SELECT id, amount * 10, code + 1, customer->>'$.ssn' FROM changed.orders WHERE id < 5",
		"INSERT INTO changed.names SELECT amount, code, 'taken' FROM changed.orders WHERE amount IS NULL OR amount > 0",
		"UPDATE changed.names SET code = (SELECT MAX(code) + 5 FROM changed.orders) WHERE name = 'taken'",
		"UPDATE changed.names SET name = 'found' WHERE code IN (SELECT code FROM changed.orders)",
		"DELETE FROM changed.names WHERE amount = (SELECT MAX(amount) FROM changed.orders)",
	} {
		does(t, "ext_auditor", s)
	}
	is(t, "carol", "SELECT * FROM changed.taken ORDER BY id", `1|EU|NULL|0|{"ssn":null,"name":"ann"}`+"\n"+`4|EU|NULL|0|{"ssn":null,"name":"dan"}`)
	is(t, "carol", "SELECT * FROM changed.plain ORDER BY id", "1|NULL|1|null\n4|NULL|1|null")
	is(t, "carol", "SELECT * FROM changed.names ORDER BY code, name", "NULL|0|found\nNULL|5|taken\nNULL|5|taken\nNULL|5|taken\n1.50|100|one\n2.50|200|two\n3.50|300|three\n9.50|400|four")
	is(t, "carol", statement, raw+"\n5|EU|7.00|700")
}
