package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sqe/audit"
	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// gate is a policy source with an object gate: grants by user, object and right.
type gate struct {
	mu     sync.Mutex
	grants map[string]bool
	asked  []string // "right object" that were asked for
	state  gateState
}

func (g *gate) Name() string { return "gate" }
func (g *gate) State() (policy.State, error) {
	return &gateState{gate: g, governs: g.state.governs, restrict: g.state.restrict}, nil
}
func (g *gate) Status() policy.Status { return policy.Status{Source: "gate", Loaded: true} }
func (g *gate) grant(user, object string, rights ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range rights {
		g.grants[user+" "+r+" "+object] = true
	}
}

func (g *gate) revoke(user, object string, rights ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range rights {
		delete(g.grants, user+" "+r+" "+object)
	}
}

// rights are those that were asked since the last call, without those of reading.
func (g *gate) rights() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, a := range g.asked {
		right, _, _ := strings.Cut(a, " ")
		switch policy.Privilege(right) {
		case policy.TableList, policy.ViewList, policy.NamespaceList:
			continue
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	g.asked = nil
	slices.Sort(out)
	return out
}

type gateState struct {
	*gate
	governs  func(t *plan.Table) policy.Governance
	restrict func(p identity.Principal, t *plan.Table) *policy.Restrictions
}

func objectName(o policy.Object) string {
	name := o.Catalog
	if len(o.Namespace) > 0 {
		name = strings.Join(o.Namespace, ".")
	}
	if o.Name != "" {
		name += "." + o.Name
	}
	if o.View {
		name += " (view)"
	}
	return name
}

func (s *gateState) Version() string { return "1" }

func (s *gateState) Roles(identity.Principal) []string { return nil }

// Authorize grants everything to root and sue, to others what they have on the object or on
// all objects below its namespace (ns.*).
func (s *gateState) Authorize(p identity.Principal, o policy.Object, right policy.Privilege) policy.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := func(r policy.Privilege) bool {
		below := strings.Join(o.Namespace, ".") + ".*"
		return p.Name == "root" || p.Name == "sue" || s.grants[p.Name+" "+string(r)+" "+objectName(o)] || o.Name != "" && s.grants[p.Name+" "+string(r)+" "+below]
	}
	s.asked = append(s.asked, string(right)+" "+objectName(o))
	d := policy.Decision{Allow: has(right), Reason: policy.NoGrant, By: []policy.Origin{{Source: "gate", Policy: "grants", ID: 1}}}
	shows := []policy.Privilege{policy.TableList, policy.TableDataRead}
	if o.View {
		shows = []policy.Privilege{policy.ViewList, policy.ViewProps}
	}
	if o.Name == "" {
		shows = []policy.Privilege{policy.NamespaceList}
	}
	d.Visible = slices.ContainsFunc(shows, has)
	return d
}

func (s *gateState) Restrict(p identity.Principal, t *plan.Table) (*policy.Restrictions, error) {
	if s.restrict != nil {
		return s.restrict(p, t), nil
	}
	return &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}, nil
}

func (s *gateState) Governs(t *plan.Table) policy.Governance {
	if s.governs == nil {
		return policy.Governance{}
	}
	return s.governs(t)
}

var _ policy.Governor = (*gateState)(nil)

type ddlFixture struct {
	*fixture
	t       *testing.T
	gate    *gate
	catalog *catalog.SQL
	// root may do everything and administers policies; sue may do everything and
	// administers nothing; bob may do what a test grants; nobody may see nothing.
	root, sue, bob, nobody *engine.Session
}

func openDDL(t *testing.T) *ddlFixture {
	t.Helper()
	return openDDLWith(t, func(*engine.Options) {})
}

func openDDLWith(t *testing.T, change func(*engine.Options)) *ddlFixture {
	t.Helper()
	f := &ddlFixture{t: t, gate: &gate{grants: map[string]bool{}}}
	f.fixture = openWith(t, func(o *engine.Options) {
		o.Sources = []policy.Source{f.gate}
		f.catalog = o.Catalogs.Default().(*catalog.SQL)
		change(o)
	})
	open := func(p identity.Principal, id uint32) *engine.Session {
		s, err := f.Open(p, engine.ConnInfo{ID: id, RemoteAddr: "test", Database: "bank"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	f.root = open(identity.Principal{Name: "root", Admin: true}, 1)
	f.sue = open(identity.Principal{Name: "sue"}, 2)
	f.bob = open(identity.Principal{Name: "bob"}, 3)
	f.nobody = open(identity.Principal{Name: "nobody"}, 4)
	return f
}

// may grants rights on an object, with blanks between them.
func (f *ddlFixture) may(user, object, rights string) {
	f.gate.grant(user, object, strings.Fields(rights)...)
}

func (f *ddlFixture) do(s *engine.Session, text string) {
	f.t.Helper()
	if _, err := query(s, text); err != nil {
		f.t.Fatalf("%s: %v (%s)", text, err, fault.KindOf(err))
	}
}

func (f *ddlFixture) table(name string) *plan.Table {
	f.t.Helper()
	t, err := f.catalog.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}, plan.AsOf{}, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return t
}

func (f *ddlFixture) names(s *engine.Session) string {
	f.t.Helper()
	out, err := query(s, "SHOW TABLES")
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.ReplaceAll(out, "\n", " ")
}

func warnings(t *testing.T, s *engine.Session) string {
	t.Helper()
	out, err := query(s, "SHOW WARNINGS")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rightsOfStatements are statements as root runs them one after the other, and the
// rights that they ask for.
var rightsOfStatements = []struct{ statement, rights string }{
	{"CREATE SCHEMA shop COMMENT 'sales' WITH PROPERTIES ('owner' = 'ann')", "namespace-create lake"},
	{"CREATE SCHEMA shop.eu", "namespace-create shop"},
	{"ALTER SCHEMA shop SET PROPERTIES ('owner' = 'eve')", "namespace-properties-write shop"},
	{"ALTER SCHEMA shop UNSET PROPERTIES ('owner')", "namespace-properties-write shop"},
	{"CREATE TABLE shop.t (id BIGINT NOT NULL, c INT, at TIMESTAMP)", "table-create shop"},
	{"CREATE TABLE shop.eu.t LIKE shop.t", "table-create shop.eu, table-properties-read shop.t"},
	{
		"CREATE OR REPLACE TABLE shop.t (id BIGINT NOT NULL, c INT, at TIMESTAMP, s STRUCT<a INT>)",
		"table-create shop, table-drop shop.t, table-partition-spec-add shop.t, table-properties-remove shop.t, table-properties-set shop.t, " +
			"table-schema-add shop.t, table-schema-set-current shop.t, table-snapshot-ref-remove shop.t, table-sort-order-add shop.t, table-sort-order-set-default shop.t",
	},
	{"ALTER TABLE shop.t ADD COLUMN d INT FIRST", "table-schema-add shop.t, table-schema-set-current shop.t"},
	{"ALTER TABLE shop.t RENAME COLUMN d TO e", "table-schema-add shop.t, table-schema-set-current shop.t"},
	{"ALTER TABLE shop.t MODIFY COLUMN e BIGINT COMMENT 'wider' AFTER c", "table-schema-add shop.t, table-schema-set-current shop.t"},
	{"ALTER TABLE shop.t ALTER COLUMN id DROP NOT NULL", "table-schema-add shop.t, table-schema-set-current shop.t"},
	{"ALTER TABLE shop.t DROP COLUMN e", "table-schema-add shop.t, table-schema-set-current shop.t"},
	{"ALTER TABLE shop.t ADD PARTITION FIELD DAY(at)", "table-partition-spec-add shop.t"},
	{"ALTER TABLE shop.t REPLACE PARTITION FIELD DAY(at) WITH MONTH(at)", "table-partition-spec-add shop.t"},
	{"ALTER TABLE shop.t DROP PARTITION FIELD MONTH(at)", "table-partition-spec-add shop.t"},
	{"ALTER TABLE shop.t WRITE ORDERED BY id DESC", "table-sort-order-add shop.t, table-sort-order-set-default shop.t"},
	{"ALTER TABLE shop.t SET TBLPROPERTIES ('a' = 'b')", "table-properties-set shop.t"},
	{"ALTER TABLE shop.t SET TBLPROPERTIES ('format-version' = '3')", "table-format-version-upgrade shop.t, table-properties-set shop.t"},
	{"ALTER TABLE shop.t UNSET TBLPROPERTIES ('a')", "table-properties-remove shop.t"},
	{"ALTER TABLE shop.t COMMENT 'orders'", "table-properties-set shop.t"},
	{"CREATE TABLE shop.made AS SELECT c FROM shop.t", "table-create shop, table-data-read shop.t, table-data-write shop.made"},
	{"INSERT INTO shop.t (id) VALUES (1)", "table-data-read shop.t, table-data-write shop.t"},
	{"UPDATE shop.t SET c = 1", "table-data-read shop.t, table-data-write shop.t"},
	{"MERGE INTO shop.t USING shop.made AS s ON t.c = s.c WHEN NOT MATCHED BY SOURCE THEN DELETE", "table-data-read shop.made, table-data-read shop.t, table-data-write shop.t"},
	{"INSERT INTO shop.t (id) VALUES (1)", "table-data-read shop.t, table-data-write shop.t"},
	{"DELETE FROM shop.t WHERE id = 1", "table-data-read shop.t, table-data-write shop.t"},
	{"INSERT INTO shop.t (id) VALUES (1)", "table-data-read shop.t, table-data-write shop.t"},
	{"TRUNCATE TABLE shop.t", "table-data-read shop.t, table-data-write shop.t"},
	{"DROP TABLE shop.made", "table-drop shop.made"},
	{"ALTER TABLE customers CREATE BRANCH audit", "table-snapshot-ref-set bank.customers"},
	{"ALTER TABLE customers CREATE TAG q1 RETAIN 5 DAYS", "table-snapshot-ref-set bank.customers"},
	{"ALTER TABLE customers DROP TAG q1", "table-snapshot-ref-remove bank.customers"},
	{"CALL system.set_current_snapshot(table => 'bank.customers', ref => 'audit')", "table-snapshot-ref-set bank.customers"},
	{
		"CALL system.rewrite_data_files(table => 'bank.customers', options => map('rewrite-all', 'true'))",
		"table-data-write bank.customers, table-snapshot-add bank.customers, table-snapshot-ref-set bank.customers",
	},
	{"CALL system.rewrite_manifests('bank.customers')", "table-data-write bank.customers, table-snapshot-add bank.customers, table-snapshot-ref-set bank.customers"},
	{"ALTER TABLE customers DROP BRANCH audit", "table-snapshot-ref-remove bank.customers"},
	{
		"CALL system.expire_snapshots(table => 'bank.customers', older_than => '2199-01-01 00:00:00')",
		"table-data-write bank.customers, table-snapshot-ref-remove bank.customers, table-snapshots-remove bank.customers",
	},
	{"CALL system.remove_orphan_files('bank.customers')", "table-data-write bank.customers"},
	{"ALTER TABLE shop.t RENAME TO t2", "table-create shop, table-data-read shop.t, table-drop shop.t"},
	{"RENAME TABLE shop.t2 TO shop.eu.t3", "table-create shop.eu, table-data-read shop.t2, table-drop shop.t2"},
	{"CREATE VIEW shop.v AS SELECT id FROM shop.eu.t3", "table-data-read shop.eu.t3, view-create shop"},
	{"CREATE OR REPLACE VIEW shop.v AS SELECT 1 AS one", "view-create shop, view-properties-write shop.v (view)"},
	{"ALTER VIEW shop.v AS SELECT 2 AS two", "view-properties-write shop.v (view)"},
	{"ALTER VIEW shop.v SET TBLPROPERTIES ('a' = 'b')", "view-properties-write shop.v (view)"},
	{"ALTER VIEW shop.v RENAME TO w", "view-create shop, view-drop shop.v (view)"},
	{"DROP VIEW shop.w", "view-drop shop.w (view)"},
	{"DROP TABLE shop.eu.t3", "table-drop shop.eu.t3"},
	{"DROP TABLE shop.eu.t PURGE", "table-data-write shop.eu.t, table-drop shop.eu.t"},
	{"DROP SCHEMA shop.eu", "namespace-drop shop.eu"},
	{"DROP SCHEMA shop", "namespace-drop shop"},
}

// TestRightsOfStatements: each statement asks for these rights. Whoever has them
// all may run it, and whoever lacks one may not; then nothing changes.
func TestRightsOfStatements(t *testing.T) {
	f := openDDL(t)
	for _, x := range rightsOfStatements {
		wanted := strings.Split(x.rights, ", ")
		kind := "ddl"
		if strings.Contains(x.statement, "CALL") && !strings.Contains(x.statement, "set_current") {
			kind = "maintenance"
		}
		switch word, _, _ := strings.Cut(x.statement, " "); {
		case word == "INSERT", word == "UPDATE", word == "DELETE", word == "MERGE", word == "TRUNCATE", strings.Contains(x.statement, "made AS"):
			kind = "write"
		}
		for _, lacking := range wanted {
			if strings.Contains(x.statement, "OR REPLACE") { // who may not see it learns less
				f.may("bob", "shop.t", "table-list")
				f.may("bob", "shop.v (view)", "view-list")
			}
			for _, r := range wanted {
				right, on, _ := strings.Cut(r, " ")
				if f.gate.grant("bob", on, right); r == lacking {
					f.gate.revoke("bob", on, right)
				}
			}
			before := f.state()
			_, err := query(f.bob, x.statement)
			if !fault.Is(err, fault.Denied) && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
				t.Errorf("%s without %s: %v", x.statement, lacking, err)
			}
			if after := f.state(); after != before {
				t.Errorf("%s without %s changed\n%s\ninto\n%s", x.statement, lacking, before, after)
			}
			right, on, _ := strings.Cut(lacking, " ")
			if e := f.journal.last(); e.Outcome == "ok" || !slices.ContainsFunc(e.Denials, func(d audit.Denial) bool { return d.Privilege == right }) || e.Kind != kind {
				t.Errorf("%s: the audit event does not say that %s on %s was refused: %+v", x.statement, right, on, e)
			}
		}
		for _, r := range wanted {
			right, on, _ := strings.Cut(r, " ")
			f.gate.grant("bob", on, right)
		}
		f.gate.rights()
		before := f.state()
		f.do(f.bob, x.statement)
		if got := strings.Join(f.gate.rights(), ", "); got != x.rights {
			t.Errorf("%s asks for\n%s\nwant\n%s", x.statement, got, x.rights)
		}
		if after := f.state(); after == before && !slices.ContainsFunc([]string{"set_current", "rewrite_manifests", "remove_orphan"}, func(s string) bool { return strings.Contains(x.statement, s) }) {
			t.Errorf("%s changed nothing", x.statement)
		}
		if e := f.journal.last(); e.Outcome != "ok" || len(e.Denials) > 0 {
			t.Errorf("%s: the audit event is %+v", x.statement, e)
		}
		f.gate.mu.Lock()
		f.gate.grants = map[string]bool{}
		f.gate.mu.Unlock()
	}
}

// state is everything that the catalog holds, as text.
func (f *ddlFixture) state() string {
	ctx := context.Background()
	all, err := f.catalog.Namespaces(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	var b strings.Builder
	for _, ns := range all {
		props, err := f.catalog.NamespaceProperties(ctx, ns)
		if err != nil {
			f.t.Fatal(err)
		}
		b.WriteString(strings.Join(ns, ".") + " " + sortedText(props) + "\n")
		tables, err := f.catalog.Tables(ctx, ns)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, n := range tables {
			t, err := f.catalog.Table(ctx, plan.TableName{Catalog: "lake", Namespace: ns, Name: n}, plan.AsOf{}, "")
			if err != nil {
				f.t.Fatal(err)
			}
			b.WriteString(t.Name.String() + " " + t.Version + "\n")
		}
		views, err := f.catalog.Views(ctx, ns)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, n := range views {
			v, err := f.catalog.View(ctx, plan.TableName{Catalog: "lake", Namespace: ns, Name: n})
			if err != nil {
				f.t.Fatal(err)
			}
			b.WriteString(v.Name.String() + " " + v.Version + "\n")
		}
	}
	return b.String()
}

func sortedText(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// TestChangesAreAudited: the audit event of a statement that changes something
// says what, by which rights, and which policy gave them.
func TestChangesAreAudited(t *testing.T) {
	f := openDDL(t)
	f.do(f.root, "ALTER TABLE customers ADD COLUMN extra INT")
	e := f.journal.last()
	want := []audit.Change{{
		Object: "lake.bank.customers", Path: []string{"lake", "bank", "customers"}, Privileges: []string{"table-schema-add", "table-schema-set-current"},
		By: []policy.Origin{{Source: "gate", Policy: "grants", ID: 1}},
	}}
	if diff := cmp.Diff(want, e.Changes); diff != "" || e.Kind != "ddl" || e.Outcome != "ok" {
		t.Errorf("%+v\n%s", e, diff)
	}
	f.may("bob", "bank.customers", "table-list")
	refused(t, f.bob, "ALTER TABLE customers DROP COLUMN extra", fault.Denied)
	if e := f.journal.last(); len(e.Changes) > 0 || len(e.Denials) != 2 || e.Outcome != "denied" {
		t.Errorf("%+v", e)
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
