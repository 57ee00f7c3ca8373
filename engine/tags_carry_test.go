package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// carryFixture is openTags with tables that are written: bank.sink and, in another
// catalog, vault.safe.sink, both with the columns a, b and c.
type carryFixture struct {
	*tagFixture
	vault *catalog.SQL
}

func openCarry(t *testing.T, mode engine.TagLineage, projects bool) *carryFixture {
	t.Helper()
	f := &carryFixture{}
	dir := t.TempDir()
	var err error
	if f.vault, err = catalog.OpenSQLite("vault", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "warehouse"), catalog.SQLOptions{Create: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.vault.Close() })
	f.tagFixture = openTagsWith(t, func(o *engine.Options) {
		registry, err := catalog.NewRegistry(o.Catalogs.Default(), f.vault)
		if err != nil {
			t.Fatal(err)
		}
		o.Catalogs = registry
		o.TagLineage = map[string]engine.TagLineage{"lake": mode}
	})
	ctx := context.Background()
	if err := f.vault.CreateNamespace(ctx, []string{"safe"}, nil, false); err != nil {
		t.Fatal(err)
	}
	d := catalog.TableDefinition{Fields: []plan.Field{{Name: "a", Type: plan.String}, {Name: "b", Type: plan.String}, {Name: "c", Type: plan.String}}}
	for c, name := range map[*catalog.SQL]plan.TableName{f.catalog: lakeTable("sink"), f.vault: vaultTable} {
		if _, _, err := c.CreateTable(ctx, name, d, catalog.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (SECRET), phone = (LAST), iban = (FREE))", "")
	f.server.projects = projects
	return f
}

func lakeTable(name string) plan.TableName {
	return plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: name}
}

var vaultTable = plan.TableName{Catalog: "vault", Namespace: []string{"safe"}, Name: "sink"}

// tagsOf prints the tags of the columns of a table: "a=SECRET,LAST b=LAST".
func (f *carryFixture) tagsOf(name plan.TableName) string {
	f.t.Helper()
	c := f.catalog
	if name.Catalog == "vault" {
		c = f.vault
	}
	t, err := c.Table(context.Background(), name, plan.AsOf{}, "")
	if err != nil {
		f.t.Fatal(err)
	}
	set, err := catalog.ReadTags(t)
	if err != nil {
		f.t.Fatal(err)
	}
	by := set.ByColumn()
	var out []string
	for _, column := range slices.Sorted(maps.Keys(by)) {
		out = append(out, column+"="+strings.Join(slices.Sorted(slices.Values(by[column])), ","))
	}
	return strings.Join(out, " ")
}

func nothing(context.Context, *table.Transaction, *plan.Table) error { return nil }

func (f *carryFixture) insert(s *engine.Session, text string) ([]string, error) {
	return engine.CarryInto(context.Background(), s, text, f.catalog, nothing)
}

func TestCarryTags(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	for _, x := range []struct{ text, want string }{
		{"INSERT INTO bank.sink SELECT full_name, full_name, 'x' FROM bank.customers", ""},
		{"INSERT INTO bank.sink (b, a) SELECT national_id, full_name FROM bank.customers", "b=SECRET"},
		{"INSERT INTO bank.sink (a) SELECT concat(full_name, phone) FROM bank.customers", "a=LAST b=SECRET"},
		{"INSERT INTO bank.sink (b) SELECT max(phone) FROM bank.customers GROUP BY full_name", "a=LAST b=LAST,SECRET"},
		// Conditions of rows do not count, conditions of values do.
		{"INSERT INTO bank.sink (c) SELECT c.full_name FROM bank.customers c JOIN bank.customers d ON c.national_id = d.national_id WHERE d.phone LIKE '0%'", "a=LAST b=LAST,SECRET"},
		{"INSERT INTO bank.sink (c) SELECT IF(national_id = '184729103', 'y', 'n') FROM bank.customers", "a=LAST b=LAST,SECRET c=SECRET"},
	} {
		if _, err := f.insert(f.eve, x.text); err != nil {
			t.Fatalf("%s: %v", x.text, err)
		}
		if got := f.tagsOf(lakeTable("sink")); got != x.want {
			t.Errorf("%s: %q, want %q", x.text, got, x.want)
		}
	}
	if got := f.tagsOf(vaultTable); got != "" {
		t.Errorf("the other table has %s", got)
	}
	must(t, f.eve, "SHOW TAGS ON bank.sink", "a|LAST|table (carried)\nb|LAST|table (carried)\nb|SECRET|table (carried)\nc|SECRET|table (carried)")
	// An administrator makes a tag the column's own, or takes it away.
	must(t, f.root, "ALTER TABLE bank.sink SET TAGS (a = (LAST))", "")
	must(t, f.root, "ALTER TABLE bank.sink UNSET TAGS (c)", "")
	must(t, f.eve, "SHOW TAGS ON bank.sink", "a|LAST|table\nb|LAST|table (carried)\nb|SECRET|table (carried)")
}

// TestTagsTravel: the statements themselves, with rows.
func TestTagsTravel(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	must(t, f.ann, "CREATE TABLE bank.made AS SELECT cust_id, national_id AS nid, upper(full_name) AS who, phone FROM bank.customers WHERE cust_id = 1", "")
	must(t, f.ann, "SHOW WARNINGS", "Warning|1105|column 'phone' gets the tag LAST with the rows: it is made from column 'phone' of table 'lake.bank.customers'\n"+
		"Warning|1105|column 'nid' gets the tag SECRET with the rows: it is made from column 'national_id' of table 'lake.bank.customers'")
	who, err := query(f.ann, "SELECT who, nid FROM bank.made")
	if err != nil || !strings.HasSuffix(who, "|184729103") {
		t.Errorf("%s %v", who, err)
	}
	must(t, f.eve, "SELECT who, nid FROM bank.made", strings.TrimSuffix(who, "184729103")+"NULL")
	must(t, f.ann, "CREATE TABLE bank.plain (cust_id BIGINT, x STRING)", "")
	must(t, f.ann, "INSERT INTO bank.plain VALUES (1, 'free')", "")
	must(t, f.eve, "SELECT x FROM bank.plain", "free")
	must(t, f.ann, "UPDATE bank.plain SET x = (SELECT max(nid) FROM bank.made)", "")
	must(t, f.ann, "SELECT x FROM bank.plain", "184729103")
	must(t, f.eve, "SELECT x FROM bank.plain", "NULL")
	must(t, f.ann, "CREATE TABLE bank.other (x STRING)", "")
	must(t, f.ann, "INSERT OVERWRITE bank.other SELECT concat('id ', x) FROM bank.plain", "")
	must(t, f.ann, "SELECT x FROM bank.other", "id 184729103")
	must(t, f.eve, "SELECT x FROM bank.other", "NULL")
	// A mask is stored as the value that it is, and is tagged as the column is.
	must(t, f.eve, "CREATE TABLE bank.masked AS SELECT phone FROM bank.customers WHERE cust_id = 1", "")
	must(t, f.eve, "SHOW TAGS ON bank.masked", "phone|LAST|table (carried)")
	// Nothing changed is nothing put.
	must(t, f.ann, "CREATE TABLE bank.none (x STRING)", "")
	must(t, f.ann, "INSERT INTO bank.none SELECT national_id FROM bank.customers WHERE cust_id < 0", "")
	must(t, f.ann, "SHOW TAGS ON bank.none", "")
}

// TestNestedTagsTravel: what is inside a column keeps its place while the column is
// passed on, and the whole column carries the tag when anything else is made of it.
func TestNestedTagsTravel(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	must(t, f.root, "ALTER TABLE bank.profiles SET TAGS (contact.email = (SECRET))", "")
	must(t, f.ann, "CREATE TABLE bank.made AS SELECT cust_id, contact, json_extract(contact, '$.phone') AS phone, tags FROM bank.profiles", "")
	const want = "contact.email|SECRET|table (carried)\nphone|SECRET|table (carried)"
	must(t, f.ann, "SHOW TAGS ON bank.made", want)
	must(t, f.ann, "INSERT INTO bank.made (cust_id, contact) SELECT cust_id, contact FROM bank.profiles", "")
	must(t, f.ann, "SHOW WARNINGS", "")
	must(t, f.ann, "SHOW TAGS ON bank.made", want)
	if got, err := query(f.eve, "SELECT json_extract(contact, '$.email'), json_extract(contact, '$.phone') IS NULL FROM bank.made WHERE cust_id = 1"); err != nil || !strings.Contains(got, "false") || strings.Contains(got, "@") {
		t.Errorf("%s %v", got, err)
	}
	must(t, f.ann, "CREATE TABLE bank.text AS SELECT CAST(contact AS CHAR) AS c FROM bank.profiles", "")
	must(t, f.ann, "SHOW TAGS ON bank.text", "c|SECRET|table (carried)")
}

// TestCarryInUpdate: a column that is assigned from other columns, and one that an
// update leaves alone.
func TestCarryInUpdate(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	if _, err := f.insert(f.ann, "UPDATE bank.sink SET a = (SELECT max(national_id) FROM bank.customers) WHERE c = 'x'"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=SECRET" {
		t.Errorf("UPDATE: %s", got)
	}
	if _, err := f.insert(f.ann, "UPDATE bank.sink SET b = upper(a)"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=SECRET b=SECRET" {
		t.Errorf("UPDATE of the same table: %s", got)
	}
	if _, err := f.insert(f.ann, "MERGE INTO bank.sink t USING bank.customers s ON t.a = s.phone WHEN MATCHED THEN UPDATE SET c = s.iban WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.full_name, s.national_id)"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=SECRET b=SECRET c=FREE" {
		t.Errorf("MERGE: %s", got)
	}
}

// TestCarriedTagsRestrict: a carried tag masks, and does not give.
func TestCarriedTagsRestrict(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	if _, err := f.insert(f.eve, "INSERT INTO bank.sink (a) SELECT national_id FROM bank.customers"); err != nil {
		t.Fatal(err)
	}
	c, err := f.catalog.Table(context.Background(), lakeTable("sink"), plan.AsOf{}, "")
	if err != nil {
		t.Fatal(err)
	}
	tags := c.Tags[1]
	if len(tags) != 1 || !tags[0].Inherited || !tags[0].Carried || tags[0].Earlier != "" {
		t.Errorf("%+v", tags)
	}
	got, err := query(f.as(t, identity.Principal{Name: "eve", Admin: true}), "EXPLAIN POLICY SELECT a, b FROM bank.sink")
	if err != nil || got != "lake.bank.sink|a|column shows NULL|mask (source test, tag SECRET)|" {
		t.Errorf("%s %v", got, err)
	}
}

// TestCarryTwice: what is there already makes no commit, and is no reason to refuse
// or warn.
func TestCarryTwice(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	const text = "INSERT INTO bank.sink (a) SELECT national_id FROM bank.customers"
	notes, err := f.insert(f.eve, text)
	if err != nil || len(notes) != 1 || notes[0] != "column 'a' gets the tag SECRET with the rows: it is made from column 'national_id' of table 'lake.bank.customers'" {
		t.Errorf("%v %v", notes, err)
	}
	before, _ := f.catalog.Table(context.Background(), lakeTable("sink"), plan.AsOf{}, "")
	notes, err = f.insert(f.eve, text)
	after, _ := f.catalog.Table(context.Background(), lakeTable("sink"), plan.AsOf{}, "")
	if err != nil || len(notes) != 0 || before.Version != after.Version {
		t.Errorf("%v %v %s %s", notes, err, before.Version, after.Version)
	}
}

// TestCarryWhatSourcesSay: tags of the policy server, of the table and of another
// catalog travel as well; one that the server gives the target is there already.
func TestCarryWhatSourcesSay(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id, phone, iban)", "")
	must(t, f.root, "ALTER TABLE bank.payments SET TAG INTERNAL", "")
	f.source.set(func(s *state) {
		s.tags = func(t *plan.Table) map[int][]string {
			switch t.Name.Name {
			case "customers":
				return map[int][]string{column(t, "national_id"): {"SERVER"}}
			case "sink":
				return map[int][]string{1: {"SERVER"}}
			}
			return nil
		}
	})
	if _, err := f.insert(f.ann, "INSERT INTO bank.sink SELECT national_id, national_id, full_name FROM bank.customers"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "b=SERVER" {
		t.Errorf("tags of the server: %s", got)
	}
	if _, err := f.insert(f.ann, "INSERT INTO bank.sink (c) SELECT counterparty_iban FROM bank.payments"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "b=SERVER c=INTERNAL" {
		t.Errorf("tags of the table: %s", got)
	}
	if _, err := engine.CarryInto(context.Background(), f.ann, "INSERT INTO `vault.safe`.sink (a) SELECT c FROM bank.sink", f.vault, nothing); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(vaultTable); got != "a=INTERNAL" {
		t.Errorf("into another catalog: %s", got)
	}
	if _, err := f.insert(f.ann, "INSERT INTO bank.sink (a) SELECT a FROM `vault.safe`.sink"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=INTERNAL b=SERVER c=INTERNAL" {
		t.Errorf("from another catalog: %s", got)
	}
	// Bounds of files are values of the data; counts are not.
	if _, err := engine.CarryInto(context.Background(), f.ann, "INSERT INTO `vault.safe`.sink (b, c) SELECT CAST(record_count AS CHAR), lower_bounds FROM bank.`customers$files`", f.vault, nothing); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(vaultTable); got != "a=INTERNAL c=SERVER" {
		t.Errorf("from a metadata table: %s", got)
	}
}

func TestWarnOfTags(t *testing.T) {
	f := openCarry(t, engine.WarnOfTags, false)
	notes, err := f.insert(f.eve, "INSERT INTO bank.sink (a, b) SELECT national_id, full_name FROM bank.customers")
	if err != nil || len(notes) != 1 || notes[0] != "column 'a' is made from column 'national_id' of table 'lake.bank.customers', which has the tag SECRET, and does not get it" {
		t.Errorf("%q %v", notes, err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "" {
		t.Errorf("tags were put: %s", got)
	}
	// The catalog that is written to decides.
	if _, err := engine.CarryInto(context.Background(), f.eve, "INSERT INTO `vault.safe`.sink (a) SELECT national_id FROM bank.customers", f.vault, nothing); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(vaultTable); got != "a=SECRET" {
		t.Errorf("the other catalog: %s", got)
	}
}

func TestRefuseTags(t *testing.T) {
	f := openCarry(t, engine.RefuseTags, false)
	staged := false
	change := func(context.Context, *table.Transaction, *plan.Table) error { staged = true; return nil }
	const text = "INSERT INTO bank.sink (a, b) SELECT national_id, full_name FROM bank.customers"
	_, err := engine.CarryInto(context.Background(), f.eve, text, f.catalog, change)
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "column 'a' is made from column 'national_id' of table 'lake.bank.customers', which has the tag SECRET") || strings.Contains(err.Error(), "'b'") || staged {
		t.Errorf("%v, staged %v", err, staged)
	}
	// What has the tags already is no matter.
	must(t, f.root, "ALTER TABLE bank.sink SET TAGS (a = (SECRET))", "")
	if _, err := engine.CarryInto(context.Background(), f.eve, text, f.catalog, change); err != nil || !staged {
		t.Errorf("%v, staged %v", err, staged)
	}
	files := f.files()
	refused(t, f.eve, "INSERT INTO bank.sink (b) SELECT concat(national_id, 'x') FROM bank.customers", fault.Denied)
	refused(t, f.eve, "UPDATE bank.sink SET b = a", fault.Denied)
	refused(t, f.eve, "CREATE TABLE bank.made AS SELECT national_id FROM bank.customers", fault.Denied)
	if now := f.files(); now != files {
		t.Errorf("%d files, there were %d", now, files)
	}
	must(t, f.ann, "CREATE TABLE bank.made AS SELECT full_name FROM bank.customers", "")
	if _, err := f.create(f.eve, "new", "SELECT national_id FROM bank.customers"); !fault.Is(err, fault.Denied) {
		t.Errorf("a new table: %v", err)
	}
	if _, err := f.create(f.eve, "new", "SELECT full_name FROM bank.customers"); err != nil {
		t.Errorf("a new table without tags: %v", err)
	}
}

// files counts the files of the lake.
func (f *carryFixture) files() int {
	f.t.Helper()
	place, _, ok := strings.Cut(strings.TrimPrefix(f.table().Version, "file://"), "/warehouse/")
	if !ok {
		f.t.Fatal(f.table().Version)
	}
	n := 0
	if err := filepath.WalkDir(filepath.Join(place, "warehouse"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	}); err != nil || n == 0 {
		f.t.Fatal(n, err)
	}
	return n
}

func (f *carryFixture) create(s *engine.Session, name, text string) ([]string, error) {
	return engine.CarryNew(context.Background(), s, lakeTable(name), text, func(fields []plan.Field, tags []catalog.TaggedPath) (bool, error) {
		_, created, err := f.catalog.CreateTable(context.Background(), lakeTable(name), catalog.TableDefinition{Fields: fields, Tags: tags}, catalog.CreateOptions{IfTaken: catalog.Keep})
		return created, err
	})
}

func TestCarryIntoNewTable(t *testing.T) {
	f := openCarry(t, engine.CarryTags, true)
	if _, err := f.create(f.eve, "new", "SELECT national_id AS n, full_name, length(phone) AS l FROM bank.customers"); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("new")); got != "l=LAST n=SECRET" {
		t.Errorf("%s", got)
	}
	if got := f.server.tags; len(got["n"]) != 1 || len(got["l"]) != 1 || len(got["full_name"]) != 0 {
		t.Errorf("on the policy server: %v", got)
	}
	must(t, f.eve, "SHOW TAGS ON bank.new", "l|LAST|table (carried)\nn|SECRET|table (carried)")
	// A table that was there keeps what it has, and the server hears of nothing.
	f.server.tags = map[string][]string{}
	if _, err := f.create(f.eve, "sink", "SELECT national_id AS a FROM bank.customers"); err != nil {
		t.Fatal(err)
	}
	if len(f.server.tags) != 0 || f.tagsOf(lakeTable("sink")) != "" {
		t.Errorf("%v %s", f.server.tags, f.tagsOf(lakeTable("sink")))
	}
}

// TestCarryToServer: tags are on the policy server before the rows are there, and not
// when the rows are not.
func TestCarryToServer(t *testing.T) {
	f := openCarry(t, engine.CarryTags, true)
	const text = "INSERT INTO bank.sink (a) SELECT national_id FROM bank.customers"
	ctx := context.Background()
	boom := errors.New("boom")
	f.server.calls = 0
	f.server.fail = map[int]error{1: boom}
	staged := false
	_, err := engine.CarryInto(ctx, f.eve, text, f.catalog, func(context.Context, *table.Transaction, *plan.Table) error { staged = true; return nil })
	if !errors.Is(err, boom) || staged || f.tagsOf(lakeTable("sink")) != "" || len(f.server.tags) != 0 {
		t.Errorf("the server failed: %v, staged %v, tags %s, on the server %v", err, staged, f.tagsOf(lakeTable("sink")), f.server.tags)
	}
	f.server.fail = nil
	var seen []string
	_, err = engine.CarryInto(ctx, f.eve, text, f.catalog, func(context.Context, *table.Transaction, *plan.Table) error {
		seen = slices.Clone(f.server.tags["a"])
		return boom
	})
	if !errors.Is(err, boom) || !slices.Contains(seen, "SECRET") || f.tagsOf(lakeTable("sink")) != "" || len(f.server.tags) != 0 {
		t.Errorf("the commit failed: %v, at that moment %v, tags %s, on the server %v", err, seen, f.tagsOf(lakeTable("sink")), f.server.tags)
	}
	if _, err = f.insert(f.eve, text); err != nil {
		t.Fatal(err)
	}
	if f.tagsOf(lakeTable("sink")) != "a=SECRET" || !slices.Contains(f.server.tags["a"], "SECRET") {
		t.Errorf("tags %s, on the server %v", f.tagsOf(lakeTable("sink")), f.server.tags)
	}
	calls := f.server.calls
	if _, err = f.insert(f.eve, text); err != nil || f.server.calls != calls {
		t.Errorf("%v, the server was asked again", err)
	}
}

// TestCarryBesideOthers: tags that others set between the binding of a statement and
// its commit stay.
func TestCarryBesideOthers(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	h := &held{SQL: f.catalog, before: func(context.Context) {
		must(t, f.root, "ALTER TABLE bank.sink SET TAGS (a = (OTHER), c = (MORE))", "")
	}}
	if _, err := engine.CarryInto(context.Background(), f.eve, "INSERT INTO bank.sink (a) SELECT national_id FROM bank.customers", h, nothing); err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=OTHER,SECRET c=MORE" {
		t.Errorf("%s", got)
	}
}

// TestNothingToCarry: without tags nobody asks a catalog or makes a commit.
func TestNothingToCarry(t *testing.T) {
	f := openCarry(t, engine.RefuseTags, true)
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id, phone, iban)", "")
	calls := f.server.calls
	before, _ := f.catalog.Table(context.Background(), lakeTable("sink"), plan.AsOf{}, "")
	notes, err := f.insert(f.eve, "INSERT INTO bank.sink (a) SELECT national_id FROM bank.customers")
	after, _ := f.catalog.Table(context.Background(), lakeTable("sink"), plan.AsOf{}, "")
	if err != nil || len(notes) != 0 || f.server.calls != calls || before.Version != after.Version {
		t.Errorf("%v %v, %d calls", notes, err, f.server.calls-calls)
	}
}

// TestCarryPastMasks: what a mask reads brings its tags, and a masked value those of
// its own column; the message tells no column that the user did not name.
func TestCarryPastMasks(t *testing.T) {
	f := openCarry(t, engine.CarryTags, false)
	f.source.set(func(s *state) {
		s.restrict = func(_ identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
			if t.Name.Name == "customers" {
				r.Columns[column(t, "full_name")] = policy.ColumnRule{Kind: policy.Mask, Action: masks.CustomSQL, SQL: "concat('x', phone)"}
				r.Columns[column(t, "iban")] = policy.ColumnRule{Kind: policy.Nullify}
			}
			return r
		}
	})
	notes, err := f.insert(f.eve, "INSERT INTO bank.sink (a, b, c) SELECT full_name, iban, nationality FROM bank.customers")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.tagsOf(lakeTable("sink")); got != "a=LAST b=FREE" {
		t.Errorf("%s", got)
	}
	if len(notes) != 2 || strings.Contains(notes[0], "phone") || !strings.Contains(notes[0], "what a mask reads") {
		t.Errorf("%v", notes)
	}
}
