package engine_test

import (
	"slices"
	"strings"
	"testing"

	"sqe/audit"
	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// governs makes policies that are on the tables of some names.
func (f *ddlFixture) governs(of map[string]policy.Governance) {
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	f.gate.state.governs = func(t *plan.Table) policy.Governance { return of[t.Name.Name] }
}

// onlyAdministrators holds that sue, who has every right, is refused and root, who
// may apply policies too, is not; for sue nothing changes.
func (f *ddlFixture) onlyAdministrators(statement string) {
	f.t.Helper()
	before := f.state()
	err := refused(f.t, f.sue, statement, fault.Denied)
	if !strings.Contains(err.Error(), "only an administrator") {
		f.t.Errorf("%s: %v", statement, err)
	}
	if e := f.journal.last(); e.Outcome != "denied" || !slices.ContainsFunc(e.Denials, func(d audit.Denial) bool { return d.Privilege == "table-policy-detach" }) {
		f.t.Errorf("%s: the audit event is %+v", statement, e)
	}
	if after := f.state(); after != before {
		f.t.Errorf("%s changed\n%s\ninto\n%s", statement, before, after)
	}
	f.do(f.root, statement)
}

// TestReplaceGoverned: a table with policies or tags is replaced by nobody who may
// not apply policies. Without them, or by dropping it first, everybody may who has
// the rights.
func TestReplaceGoverned(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE TABLE named (a INT)")
	f.do(f.root, "CREATE TABLE everywhere (a INT)")
	f.do(f.root, "CREATE TABLE tagged (a INT)")
	f.do(f.root, "CREATE TABLE outside (a INT)")
	f.do(f.root, "ALTER TABLE tagged SET TAGS (a = (PII))")
	f.governs(map[string]policy.Governance{
		"named": {By: []string{"mask"}, Named: true}, "everywhere": {By: []string{"mask of all"}}, "outside": {Tagged: map[int]bool{1: true}},
		"filtered": {By: []string{"filter of all"}, Texts: []string{"a = 1"}},
	})
	f.do(f.root, "CREATE TABLE filtered (a INT)")
	for _, name := range []string{"named", "tagged", "outside", "filtered"} {
		f.onlyAdministrators("CREATE OR REPLACE TABLE " + name + " (b INT)")
		// The same name is found by the same policies, and the rows are gone.
		f.do(f.sue, "DROP TABLE "+name)
		f.do(f.sue, "CREATE TABLE "+name+" (b INT)")
	}
	f.do(f.sue, "CREATE OR REPLACE TABLE everywhere (b INT)")
	f.do(f.sue, "CREATE OR REPLACE TABLE payments (b INT)")
}

// TestRenameGoverned: a table gets no name under which policies treat it otherwise.
func TestRenameGoverned(t *testing.T) {
	f := openDDL(t)
	f.governs(map[string]policy.Governance{
		"named": {By: []string{"one"}, Named: true}, "alike": {By: []string{"one"}, Named: true}, "other": {By: []string{"one", "two"}, Named: true},
	})
	f.do(f.root, "CREATE TABLE named (a INT)")
	f.do(f.root, "CREATE TABLE free (a INT)")
	f.do(f.root, "CREATE TABLE tagged (a INT)")
	f.do(f.root, "ALTER TABLE tagged SET TAG INTERNAL")
	f.do(f.sue, "ALTER TABLE named RENAME TO alike")
	f.do(f.sue, "RENAME TABLE alike TO tmp, tmp TO named")
	f.onlyAdministrators("ALTER TABLE named RENAME TO unknown")
	f.do(f.root, "ALTER TABLE unknown RENAME TO named")
	f.onlyAdministrators("RENAME TABLE named TO other")
	f.do(f.root, "RENAME TABLE other TO named")
	f.onlyAdministrators("RENAME TABLE named TO tmp, free TO named, tmp TO free")
	f.do(f.root, "RENAME TABLE named TO tmp, free TO named, tmp TO free")
	f.do(f.sue, "RENAME TABLE free TO alike") // more acts on it now, on what nothing did
	f.onlyAdministrators("RENAME TABLE tagged TO other")
	f.do(f.root, "RENAME TABLE other TO tagged")
	f.do(f.sue, "RENAME TABLE tagged TO labelled")
}

// TestRenameUnread: a table that one may drop and not read gets no name under which
// one may.
func TestRenameUnread(t *testing.T) {
	f := openDDL(t)
	f.may("bob", "bank.customers", "table-list table-drop")
	f.may("bob", "mine", "table-create namespace-list")
	f.may("bob", "mine.*", "table-data-read")
	f.do(f.root, "CREATE SCHEMA mine")
	if err := refused(t, f.bob, "RENAME TABLE customers TO mine.customers", fault.Denied); !strings.Contains(err.Error(), "table-data-read") {
		t.Error(err)
	}
	f.may("bob", "bank.customers", "table-data-read")
	f.do(f.bob, "RENAME TABLE customers TO mine.customers")
}

// TestColumnsUnderPolicies: a column that carries a tag is dropped, and one whose
// name a text of a policy has comes or goes, only by those who may apply policies.
func TestColumnsUnderPolicies(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE TABLE g (id INT, region STRING, `odd name` INT, tagged INT, st STRUCT<inner1: INT, inner2: INT>, plain INT, other INT)")
	f.do(f.root, "ALTER TABLE g SET TAGS (tagged = (PII), st.inner1 = (PII))")
	f.governs(map[string]policy.Governance{"g": {By: []string{"x"}, Named: true, Texts: []string{"REGION = 'EU' and `odd name` > 1", "concat({col}, ${{USER.site}}, coming)"}}})
	for _, text := range []string{
		"DROP COLUMN tagged", "DROP COLUMN st.inner1", "DROP COLUMN st", "DROP COLUMN region", "RENAME COLUMN region TO elsewhere", "RENAME COLUMN plain TO COMING",
		"ADD COLUMN coming INT", "DROP COLUMN `odd name`", "RENAME COLUMN st.inner2 TO region", "ADD COLUMN st.Region INT",
	} {
		before := f.state()
		err := refused(t, f.sue, "ALTER TABLE g "+text, fault.Denied)
		if strings.Contains(err.Error(), "EU") || strings.Contains(err.Error(), "USER") {
			t.Errorf("the error has the text of a policy: %v", err)
		}
		if f.state() != before {
			t.Errorf("%s changed the table", text)
		}
	}
	// Nor by way of other names in one statement.
	refused(t, f.sue, "ALTER TABLE g RENAME COLUMN plain TO away, RENAME COLUMN tagged TO plain, DROP COLUMN plain", fault.Unsupported)
	for _, text := range []string{"DROP COLUMN plain", "RENAME COLUMN tagged TO tagged2", "ADD COLUMN more INT", "ALTER COLUMN region COMMENT 'x'", "RENAME COLUMN other TO regional"} {
		f.do(f.sue, "ALTER TABLE g "+text)
	}
	must(t, f.root, "SHOW TAGS ON g", "st.inner1|PII|table\ntagged2|PII|table")
	f.do(f.root, "ALTER TABLE g DROP COLUMN region, DROP COLUMN tagged2")
	if got := warnings(t, f.root); !strings.Contains(got, "region") {
		t.Errorf("root is not told of the text: %s", got)
	}
	// A new column of the name of a tagged one does not open.
	f.do(f.sue, "ALTER TABLE g ADD COLUMN tagged2 INT")
	g := f.table("g")
	if tags := g.Tags[column(g, "tagged2")]; len(tags) != 1 || tags[0].Name != "PII" {
		t.Errorf("%+v", tags)
	}
}

// unknowing is a policy state that cannot tell what it governs.
type unknowing struct{ policy.State }

type unknowingSource struct{ *gate }

func (s unknowingSource) State() (policy.State, error) {
	state, err := s.gate.State()
	return unknowing{state}, err
}

// TestUnknowingSource: a source that cannot tell whether its policies find a table
// by its name counts as one whose do.
func TestUnknowingSource(t *testing.T) {
	f := &ddlFixture{t: t, gate: &gate{grants: map[string]bool{}}}
	f.fixture = openWith(t, func(o *engine.Options) {
		o.Sources = []policy.Source{unknowingSource{f.gate}}
		f.catalog = o.Catalogs.Default().(*catalog.SQL)
	})
	f.sue, f.root = f.session(t, "sue"), f.as(t, identity.Principal{Name: "root", Admin: true})
	f.do(f.sue, "CREATE TABLE bank.t (a INT)")
	f.onlyAdministrators("CREATE OR REPLACE TABLE bank.t (b INT)")
	f.onlyAdministrators("ALTER TABLE bank.t RENAME TO u")
	f.do(f.sue, "ALTER TABLE bank.u ADD COLUMN c INT")
	f.do(f.sue, "DROP TABLE bank.u")
}

// TestMasksFollow: a mask stays on its column through every change of the table, for
// the session that made it and for others, at once.
func TestMasksFollow(t *testing.T) {
	f := openDDL(t)
	id := column(f.table("customers"), "national_id")
	f.gate.mu.Lock()
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if _, ok := t.Field(id); ok && p.Name == "sue" {
			r.Columns[id] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_SHOW_LAST_4", Origin: policy.Origin{Source: "gate", Policy: "m", ID: 2}}
		}
		return r
	}
	f.gate.mu.Unlock()
	see := func(column string) {
		t.Helper()
		q := "SELECT " + column + " FROM customers WHERE cust_id = 1"
		must(t, f.sue, q, "xxxxx9103")
		must(t, f.root, q, "184729103")
	}
	see("national_id")
	for _, x := range [][2]string{
		{"ALTER TABLE customers RENAME COLUMN national_id TO tax_id", "tax_id"},
		{"ALTER TABLE customers ADD COLUMN national_id STRING FIRST", "tax_id"},
		{"ALTER TABLE customers MODIFY COLUMN tax_id STRING COMMENT 'x' FIRST", "tax_id"},
		{"ALTER TABLE customers SET TBLPROPERTIES ('a' = 'b')", "tax_id"},
		{"ALTER TABLE customers CREATE TAG v1", "tax_id"},
		{"ALTER TABLE customers DROP COLUMN nationality", "tax_id"},
	} {
		f.do(f.sue, x[0])
		see(x[1])
	}
	must(t, f.sue, "SELECT national_id FROM customers WHERE cust_id = 1", "NULL")
	// Nor does another table with the column's definition, or a view, open it.
	f.do(f.sue, "CREATE VIEW v AS SELECT tax_id FROM customers WHERE cust_id = 1")
	must(t, f.sue, "SELECT * FROM v", "xxxxx9103")
	must(t, f.root, "SELECT * FROM v", "184729103")
	f.do(f.root, "CREATE VIEW w AS SELECT tax_id FROM customers WHERE cust_id = 1")
	must(t, f.sue, "SELECT * FROM w", "xxxxx9103")
}

// TestDefaultsUnderMasks: the default of a masked column is a value of its rows, and
// shows to nobody who sees the column masked, nor in a table that is made like it.
func TestDefaultsUnderMasks(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "CREATE TABLE d (a INT, s STRING DEFAULT 'plain') TBLPROPERTIES ('format-version' = '3')")
	f.do(f.root, "ALTER TABLE d ADD COLUMN secret STRING DEFAULT '184729103'")
	id := column(f.table("d"), "secret")
	f.gate.mu.Lock()
	f.gate.state.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
		r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		if t.Name.Name == "d" && p.Name == "sue" {
			r.Columns[id] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_SHOW_LAST_4", Origin: policy.Origin{Source: "gate", Policy: "m", ID: 2}}
		}
		return r
	}
	f.gate.mu.Unlock()
	f.do(f.sue, "CREATE TABLE e LIKE d")
	for s, want := range map[*engine.Session]bool{f.root: true, f.sue: false} {
		got, err := query(s, "SHOW CREATE TABLE d")
		if err != nil || strings.Contains(got, "184729103") != want || !strings.Contains(got, "plain") {
			t.Errorf("%s, %v", got, err)
		}
	}
	if got := f.created("e"); strings.Contains(got, "184729103") || !strings.Contains(got, "plain") {
		t.Error(got)
	}
}
