package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// tagServer is an administrator whose server takes tags. It keeps those of one
// table, and looks at every step whether what must act acts.
type tagServer struct {
	*store
	projects bool
	tags     map[string][]string
	fail     map[int]error // by the number of the call, from 1
	half     bool          // a call that fails has done half of its work
	calls    int
	after    func()
}

func (s *tagServer) Projects() bool { return s.projects }

func (s *tagServer) ProjectTags(_ context.Context, _ policy.Author, _ *plan.Table, before, after map[string][]string) error {
	s.calls++
	err := s.fail[s.calls]
	if err != nil && !s.half {
		return err
	}
	for column, tags := range before {
		s.tags[column] = slices.DeleteFunc(slices.Clone(s.tags[column]), func(t string) bool {
			return slices.Contains(tags, t) && !slices.Contains(after[column], t)
		})
	}
	for column, tags := range after {
		for _, t := range tags {
			if !slices.Contains(s.tags[column], t) && !slices.Contains(before[column], t) {
				s.tags[column] = append(s.tags[column], t)
			}
		}
	}
	maps.DeleteFunc(s.tags, func(_ string, tags []string) bool { return len(tags) == 0 })
	if s.after != nil {
		s.after()
	}
	return err
}

type tagFixture struct {
	*fixture
	t         *testing.T
	server    *tagServer
	catalog   *catalog.SQL
	root, eve *engine.Session
	ann       *engine.Session
}

// openTags: eve sees columns with the tag SECRET as NULL and those with LAST
// masked; eve and ann may read, root may administer only.
func openTags(t *testing.T) *tagFixture {
	t.Helper()
	return openTagsWith(t, func(*engine.Options) {})
}

func openTagsWith(t *testing.T, change func(*engine.Options)) *tagFixture {
	t.Helper()
	f := &tagFixture{t: t, server: &tagServer{store: &store{name: "test"}, tags: map[string][]string{}, fail: map[int]error{}}}
	f.fixture = openWith(t, func(o *engine.Options) {
		o.Administrators = []policy.Administrator{f.server}
		f.catalog = o.Catalogs.Default().(*catalog.SQL)
		change(o)
	})
	f.server.source = f.source
	f.source.set(func(s *state) {
		s.restrict = func(p identity.Principal, t *plan.Table) *policy.Restrictions {
			r := &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
			for id, tags := range t.Tags {
				for _, tag := range tags {
					o := policy.Origin{Source: "test", Policy: "mask", Tag: tag.Name, Earlier: tag.Earlier}
					switch {
					case p.Name == "ann":
					case tag.Name == "SECRET":
						r.Columns[id] = policy.ColumnRule{Kind: policy.Nullify, Origin: o}
					case tag.Name == "LAST":
						r.Columns[id] = policy.ColumnRule{Kind: policy.Mask, Action: "MASK_SHOW_LAST_4", Origin: o}
					case tag.Name == "GONE":
						r.Columns[id] = policy.ColumnRule{Kind: policy.Forbid, Why: "test", Origin: o}
					}
				}
			}
			return r
		}
	})
	f.root = f.as(t, identity.Principal{Name: "root", Admin: true})
	f.ann = f.as(t, identity.Principal{Name: "ann"})
	f.eve = f.as(t, identity.Principal{Name: "eve"})
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id, iban)", "")
	return f
}

func (f *tagFixture) table() *plan.Table {
	f.t.Helper()
	t, err := f.catalog.Table(context.Background(), plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: "customers"}, plan.AsOf{}, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return t
}

// byColumn is the tags of the table by column.
func (f *tagFixture) byColumn() map[string][]string {
	f.t.Helper()
	s, err := catalog.ReadTags(f.table())
	if err != nil {
		f.t.Fatal(err)
	}
	return s.ByColumn()
}

// foreign changes the table as another engine does.
func (f *tagFixture) foreign(change func(tx *table.Transaction) error) {
	f.t.Helper()
	ctx := context.Background()
	t, err := f.catalog.Iceberg().LoadTable(ctx, table.Identifier{"bank", "customers"})
	if err != nil {
		f.t.Fatal(err)
	}
	tx := t.NewTransaction()
	if err := change(tx); err != nil {
		f.t.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		f.t.Fatal(err)
	}
}

const firstID = "SELECT national_id FROM bank.customers WHERE cust_id = 1"

func TestSetTags(t *testing.T) {
	f := openTags(t)
	must(t, f.eve, firstID, "184729103")
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id SET TAG LAST = 'true'", "")
	must(t, f.eve, firstID, "xxxxx9103")
	must(t, f.ann, firstID, "184729103")
	must(t, f.ann, "SHOW TAGS ON bank.customers", "national_id|LAST|table")
	if a := f.table().Tags[column(f.table(), "national_id")]; len(a) != 1 || a[0].Attributes["value"] != "true" {
		t.Errorf("the value of the tag is lost: %+v", a)
	}
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = ('LAST', EXTRA), phone = (SECRET))", "")
	must(t, f.eve, "SHOW TAGS ON customers", "national_id|EXTRA|table\nnational_id|LAST|table\nphone|SECRET|table")
	must(t, f.eve, "SELECT phone, national_id FROM customers WHERE cust_id = 1", "NULL|xxxxx9103")
	must(t, f.root, "ALTER TABLE bank.customers ALTER COLUMN national_id UNSET TAG LAST", "")
	must(t, f.eve, firstID, "184729103")
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id, phone)", "")
	must(t, f.root, "SHOW TAGS ON lake.bank.customers", "")
	must(t, f.eve, "SELECT phone IS NULL FROM customers WHERE cust_id = 1", "false")
	if e := f.journal.last(); e.Outcome != "ok" {
		t.Errorf("%+v", e)
	}
	must(t, f.root, "ALTER TABLE bank.customers SET TAG WHOLE", "")
	must(t, f.root, "SHOW TAGS ON bank.customers", "|WHOLE|table")
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAG WHOLE", "")
	for _, c := range []struct {
		text string
		kind fault.Kind
	}{
		{"ALTER TABLE bank.customers SET TAGS (nowhere = (A))", fault.NoColumn},
		{"ALTER TABLE bank.customers SET TAGS (phone = (A), nowhere = (A))", fault.NoColumn},
		{"ALTER TABLE bank.nowhere SET TAGS (a = (A))", fault.NotFound},
		{"ALTER TABLE nowhere.customers SET TAGS (a = (A))", fault.NotFound},
		{"SHOW TAGS ON bank.nowhere", fault.NotFound},
		{"CALL system.reproject_column_tags(table => 'bank.customers')", fault.Unsupported},
	} {
		refused(t, f.root, c.text, c.kind)
	}
	if got := f.byColumn(); len(got) != 0 {
		t.Errorf("a statement that failed set %v", got)
	}
}

// TestWhoMayTag: nobody but an administrator changes tags; everybody sees them who
// may see the table, but not those of withheld columns.
func TestWhoMayTag(t *testing.T) {
	f := openTags(t)
	f.server.policies = []policy.Stored{{Definition: policy.Definition{Name: "p", Kind: policy.MaskDefinition, Tag: "LAST", Items: []policy.Item{{Mask: "MASK_NULL"}}}}}
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (LAST), phone = (GONE))", "")
	version := f.table().Version
	for _, text := range []string{
		"ALTER TABLE bank.customers UNSET TAGS (national_id)",
		"ALTER TABLE bank.customers SET TAGS (national_id = (A))",
		"ALTER TABLE bank.customers MODIFY COLUMN national_id SET TAG A",
		"ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET TAG LAST",
		"ALTER TABLE bank.customers MODIFY COLUMN national_id SET MASKING POLICY p",
		"ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET MASKING POLICY",
		"ALTER TABLE bank.nowhere UNSET TAGS (national_id)",
		"CALL system.reproject_column_tags(table => 'bank.customers')",
	} {
		refused(t, f.eve, text, fault.Denied)
		if f.table().Version != version {
			t.Fatalf("%s changed the table", text)
		}
	}
	must(t, f.eve, "SHOW TAGS ON bank.customers", "national_id|LAST|table")
	must(t, f.ann, "SHOW TAGS ON bank.customers", "national_id|LAST|table\nphone|GONE|table")
	must(t, f.root, "SHOW TAGS ON bank.customers", "national_id|LAST|table\nphone|GONE|table")
	mallory := f.as(t, identity.Principal{Name: "mallory"})
	there := refused(t, mallory, "SHOW TAGS ON bank.customers", fault.NotFound)
	none := refused(t, mallory, "SHOW TAGS ON bank.customerz", fault.NotFound)
	if strings.ReplaceAll(there.Error(), "customers", "customerz") != none.Error() {
		t.Errorf("%q and %q tell the two apart", there, none)
	}
	refused(t, f.eve, "ALTER TABLE bank.customers SET TBLPROPERTIES ('sqe.column-tags' = '{}')", fault.BadStatement)
	refused(t, f.eve, "ALTER TABLE bank.customers UNSET TBLPROPERTIES IF EXISTS ('sqe.column-tags', 'sqe.tags')", fault.BadStatement)
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id)", "")
	must(t, f.eve, firstID, "184729103")
}

// TestTagsOfOtherEngines: what other engines do to a tagged table opens nothing.
func TestTagsOfOtherEngines(t *testing.T) {
	f := openTags(t)
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (LAST))", "")
	f.foreign(func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).RenameColumn([]string{"national_id"}, "tax_id").Commit()
	})
	must(t, f.eve, "SELECT tax_id FROM bank.customers WHERE cust_id = 1", "xxxxx9103")
	must(t, f.ann, "SELECT tax_id FROM bank.customers WHERE cust_id = 1", "184729103")
	must(t, f.root, "SHOW TAGS ON bank.customers", "tax_id|LAST|table (put on the earlier name national_id)")
	if got, err := query(f.as(t, identity.Principal{Name: "eve", Admin: true}), "EXPLAIN POLICY SELECT tax_id FROM bank.customers"); err != nil || !strings.Contains(got, "through the earlier name national_id") {
		t.Errorf("%s %v", got, err)
	}
	// A dropped column bequeaths no tag to a new one, and the new one does not open.
	f.foreign(func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).DeleteColumn([]string{"tax_id"}).Commit()
	})
	f.foreign(func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).AddColumn([]string{"national_id"}, iceberg.PrimitiveTypes.String, "", false, nil).Commit()
	})
	must(t, f.root, "SHOW TAGS ON bank.customers", "")
	must(t, f.root, "SHOW WARNINGS", "Warning|1105|column national_id took the name of a column with the tag LAST: it is treated as tagged until SET TAGS or UNSET TAGS on it says otherwise")
	must(t, f.eve, firstID, "NULL")
	if got, err := query(f.as(t, identity.Principal{Name: "eve", Admin: true}), "EXPLAIN POLICY SELECT national_id FROM bank.customers"); err != nil || !strings.Contains(got, "another column of the name national_id") {
		t.Errorf("%s %v", got, err)
	}
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id)", "")
	if got := f.table().Tags[column(f.table(), "national_id")]; len(got) != 0 {
		t.Errorf("UNSET TAGS left %v", got)
	}
	// Tags by name, as the Rust SQE writes them.
	f.foreign(func(tx *table.Transaction) error {
		return tx.SetProperties(iceberg.Properties{catalog.ColumnTagsProperty: `{"phone":["SECRET"]}`})
	})
	must(t, f.eve, "SELECT phone FROM bank.customers WHERE cust_id = 1", "NULL")
	must(t, f.ann, "SELECT phone IS NULL FROM bank.customers WHERE cust_id = 1", "false")
	// Tags that cannot be read refuse the table, for everybody.
	f.foreign(func(tx *table.Transaction) error {
		return tx.SetProperties(iceberg.Properties{catalog.ColumnTagsProperty: `{"phone":["SECRET"]`})
	})
	for _, s := range []*engine.Session{f.ann, f.eve} {
		refused(t, s, "SELECT cust_id FROM bank.customers", fault.PolicyBroken)
		refused(t, s, "SELECT count(*) FROM bank.`customers$files`", fault.PolicyBroken)
		refused(t, s, "SHOW TAGS ON bank.customers", fault.PolicyBroken)
	}
	refused(t, f.root, "ALTER TABLE bank.customers SET TAGS (phone = (SECRET))", fault.PolicyBroken)
	refused(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (phone)", fault.PolicyBroken)
	must(t, f.ann, "SELECT count(*) FROM bank.payments", "24")
}

func TestMaskingPolicies(t *testing.T) {
	f := openTags(t)
	mask := []policy.Item{{Mask: "MASK_SHOW_LAST_4"}}
	f.server.policies = []policy.Stored{
		{Definition: policy.Definition{Name: "Last Four", Kind: policy.MaskDefinition, Tag: "LAST", Items: mask}},
		{Definition: policy.Definition{Name: "asleep", Kind: policy.MaskDefinition, Tag: "SECRET", Items: mask, Disabled: true}},
		{Definition: policy.Definition{Name: "on_email", Kind: policy.MaskDefinition, Columns: []string{"phone"}, Items: mask}, Resources: "database=bank, table=customers, column=phone"},
		{Definition: policy.Definition{Name: "several", Kind: policy.MaskDefinition, Items: mask}, Resources: "tag=A,B"},
		{Definition: policy.Definition{Name: "rows", Kind: policy.FilterDefinition, Tag: "LAST", Items: []policy.Item{{SQL: "1 = 1"}}}},
		{Definition: policy.Definition{Name: "nothing", Kind: policy.MaskDefinition, Tag: "N"}},
		{Definition: policy.Definition{Name: "twice", Kind: policy.MaskDefinition, Tag: "A", Items: mask}},
		{Definition: policy.Definition{Name: "TWICE", Kind: policy.MaskDefinition, Tag: "B", Items: mask}},
	}
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id SET MASKING POLICY \"last four\"", "")
	must(t, f.eve, firstID, "xxxxx9103")
	must(t, f.ann, firstID, "184729103")
	must(t, f.root, "SHOW TAGS ON bank.customers", "national_id|LAST|table")
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (KEPT))", "")
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET MASKING POLICY", "")
	must(t, f.eve, firstID, "184729103")
	must(t, f.root, "SHOW TAGS ON bank.customers", "national_id|KEPT|table")
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id SET MASKING POLICY asleep", "")
	must(t, f.root, "SHOW WARNINGS", "Warning|1105|the policy 'asleep' is disabled: it masks nothing until ALTER POLICY enables it")
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET MASKING POLICY asleep", "")
	must(t, f.root, "SHOW TAGS ON bank.customers", "national_id|KEPT|table")
	for name, c := range map[string]struct {
		kind  fault.Kind
		words []string
	}{
		"on_email": {fault.BadStatement, []string{"resource masking policy", "cross product"}},
		"several":  {fault.BadStatement, []string{"several tags"}},
		"rows":     {fault.BadStatement, []string{"has no mask", "SHOW MASKING POLICIES"}},
		"nothing":  {fault.BadStatement, []string{"has no mask"}},
		"none":     {fault.NotFound, []string{"SHOW MASKING POLICIES"}},
		"Twice":    {fault.BadStatement, []string{"several policies"}},
	} {
		err := refused(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN phone SET MASKING POLICY "+name, c.kind)
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not mention %q", name, err, w)
			}
		}
	}
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN phone SET MASKING POLICY twice", "")
	must(t, f.root, "SHOW TAGS ON bank.customers", "national_id|KEPT|table\nphone|A|table")
}

// TestProjectedTags: tags of the table and of the server agree after every
// statement, one that fails leaves both as they were, and at no step is a tag in
// neither that is there before and after.
func TestProjectedTags(t *testing.T) {
	down := fault.New(fault.Unavailable, "the policy server does not answer")
	for _, c := range []struct {
		text  string
		calls int // of the server when all goes well
		after string
	}{
		{"ALTER TABLE bank.customers SET TAGS (national_id = (NEW))", 1, "map[national_id:[LAST NEW] phone:[SECRET]]"},
		{"ALTER TABLE bank.customers UNSET TAGS (phone)", 1, "map[national_id:[LAST]]"},
		{"ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET TAG LAST", 1, "map[phone:[SECRET]]"},
		{"ALTER TABLE bank.customers SET TAGS (national_id = (LAST))", 0, "map[national_id:[LAST] phone:[SECRET]]"},
	} {
		for fail := range c.calls + 1 {
			for _, half := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", strings.TrimPrefix(c.text, "ALTER TABLE bank.customers "), fail, half), func(t *testing.T) {
					f := openTags(t)
					f.server.projects = true
					must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (LAST), phone = (SECRET))", "")
					before := fmt.Sprint(f.byColumn())
					f.server.calls, f.server.half = 0, half
					f.server.after = func() {
						for column, tags := range map[string]string{"national_id": "LAST", "phone": "SECRET"} {
							kept := strings.Contains(c.after, tags)
							if acts := slices.Contains(append(f.byColumn()[column], f.server.tags[column]...), tags); kept && !acts {
								t.Errorf("a step has taken %s from %s", tags, column)
							}
						}
					}
					if fail > 0 {
						f.server.fail[fail] = down
						err := refused(t, f.root, c.text, fault.Unavailable)
						if !strings.Contains(err.Error(), "were not changed") {
							t.Errorf("%v", err)
						}
						if got := fmt.Sprint(f.byColumn()); got != before || fmt.Sprint(f.server.tags) != before {
							t.Errorf("table %s, server %v, before %s", got, f.server.tags, before)
						}
						must(t, f.eve, "SELECT phone, national_id FROM customers WHERE cust_id = 1", "NULL|xxxxx9103")
						delete(f.server.fail, fail)
					}
					f.server.calls = 0
					must(t, f.root, c.text, "")
					if got := fmt.Sprint(f.byColumn()); got != c.after || fmt.Sprint(f.server.tags) != c.after || f.server.calls != c.calls {
						t.Errorf("table %s, server %v after %d calls, want %s", got, f.server.tags, f.server.calls, c.after)
					}
				})
			}
		}
	}
}

// TestUnfinishedProjection: when undoing fails as well the more restrictive side
// stays, the error says so, and the statement or CALL mends it.
func TestUnfinishedProjection(t *testing.T) {
	f := openTags(t)
	f.server.projects = true
	down := fault.New(fault.Unavailable, "the policy server does not answer")
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (LAST))", "")
	// The tag is on the server alone.
	f.server.tags["national_id"] = []string{"LAST", "STALE"}
	must(t, f.root, "ALTER TABLE bank.customers MODIFY COLUMN national_id UNSET TAG STALE", "")
	if got := fmt.Sprint(f.server.tags); got != "map[national_id:[LAST]]" {
		t.Errorf("the server keeps %s", got)
	}
	// The server knows the column by the name that it had.
	f.foreign(func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).RenameColumn([]string{"national_id"}, "tax_id").Commit()
	})
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (tax_id)", "")
	if len(f.server.tags) != 0 || len(f.byColumn()) != 0 {
		t.Errorf("table %v, server %v", f.byColumn(), f.server.tags)
	}
	f.foreign(func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).RenameColumn([]string{"tax_id"}, "national_id").Commit()
	})
	must(t, f.root, "ALTER TABLE bank.customers SET TAG WHOLE", "")
	if got := fmt.Sprint(f.server.tags); got != "map[:[WHOLE]]" {
		t.Errorf("the server has %s", got)
	}
	must(t, f.root, "ALTER TABLE bank.customers UNSET TAG WHOLE", "")
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (national_id = (LAST))", "")
	// The table changes while the server is told.
	f.server.fail[f.server.calls+1] = down
	f.server.half = true
	f.server.after = func() {
		f.server.after = nil
		f.foreign(func(tx *table.Transaction) error {
			return tx.SetProperties(iceberg.Properties{catalog.ColumnTagsProperty: `{"phone":["SECRET"]}`})
		})
	}
	err := refused(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (national_id)", fault.Unavailable)
	if !strings.Contains(err.Error(), "reproject_column_tags") {
		t.Errorf("%v", err)
	}
	if got := fmt.Sprint(f.byColumn()); got != "map[phone:[SECRET]]" {
		t.Errorf("what another engine wrote is lost: %s", got)
	}
	must(t, f.root, "CALL system.reproject_column_tags(table => 'bank.customers')", "lake.bank.customers|projected|1|")
	if !slices.Contains(f.server.tags["phone"], "SECRET") {
		t.Errorf("the server has %v", f.server.tags)
	}
	f.server.fail[f.server.calls+1] = down
	must(t, f.root, "CALL system.reproject_column_tags(table => 'bank.customers')", "lake.bank.customers|error|0|the policy server does not answer")
	refused(t, f.root, "CALL system.reproject_column_tags(table => 'bank.nowhere')", fault.NotFound)
	refused(t, f.root, "CALL system.reproject_column_tags(catalog => 'nowhere')", fault.NotFound)
	for _, text := range []string{"namespace => 'bank'", "catalog => 'lake'"} {
		got, err := query(f.root, "CALL system.reproject_column_tags("+text+")")
		if err != nil || !strings.Contains(got, "lake.bank.customers|projected|1|") || !strings.Contains(got, "lake.bank.payments|skipped|0|no column has a tag") {
			t.Errorf("%s: %s %v", text, got, err)
		}
	}
}

// TestTagsWithoutPolicy: a tag that no policy is on is set, and said to do nothing;
// one that differs in case only is named.
func TestTagsWithoutPolicy(t *testing.T) {
	f := openTags(t)
	on := func(name, tag string, disabled bool) policy.Stored {
		return policy.Stored{Definition: policy.Definition{Name: name, Kind: policy.MaskDefinition, Tag: tag, Disabled: disabled}}
	}
	several := on("several", "B", false)
	several.Resources, several.Beyond = "tag=B,Card", []string{"several tags"}
	f.server.policies = []policy.Stored{on("p", "PII", false), on("q", "OFF", true), on("r", "Mixed", true), on("s", "Mixed", false), several}
	for tags, want := range map[string]string{
		"PII": "", "Mixed": "", "B": "", "Card": "", // the controls
		"pii":          "no policy is on the tag 'pii', but one is on 'PII'",
		"CARD":         "no policy is on the tag 'CARD', but one is on 'Card'",
		"NOTHING":      "no policy is on the tag 'NOTHING', so it does nothing yet",
		"OFF":          "every policy on the tag 'OFF' is disabled",
		"PII, pii":     "no policy is on the tag 'pii'",
		"PII, Unknown": "no policy is on the tag 'Unknown', so",
	} {
		for _, statement := range []string{
			"ALTER TABLE bank.customers SET TAGS (iban = (" + tags + "))", "ALTER TABLE bank.customers ALTER COLUMN iban SET TAG " + tags,
		} {
			must(t, f.root, statement, "")
			got, err := query(f.root, "SHOW WARNINGS")
			if err != nil || !strings.Contains(got, want) || (got == "") != (want == "") || strings.Contains(got, "\n") {
				t.Errorf("%s: warned %q, %v; want %q", statement, got, err, want)
			}
			must(t, f.root, "ALTER TABLE bank.customers UNSET TAGS (iban)", "")
			if got, _ := query(f.root, "SHOW WARNINGS"); got != "" {
				t.Errorf("taking tags away warned %q", got)
			}
		}
	}
	// When the policies cannot be listed the tags are set all the same.
	f.server.err = fault.New(fault.Unavailable, "the policy server does not answer")
	must(t, f.root, "ALTER TABLE bank.customers SET TAGS (iban = (PII))", "")
	if got, _ := query(f.root, "SHOW WARNINGS"); !strings.Contains(got, "not known now") || len(f.byColumn()["iban"]) != 1 {
		t.Errorf("warned %q, tags %v", got, f.byColumn())
	}
}
