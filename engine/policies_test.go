package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// openStore is a fixture with an administrator.
func openStore(t *testing.T) (*fixture, *store) {
	t.Helper()
	s := &store{name: "test"}
	f := openWith(t, func(o *engine.Options) {
		o.Administrators = []policy.Administrator{s}
		o.Principals = func(name string) (identity.Principal, bool) {
			return identity.Principal{Name: name, Roles: []string{"teller"}}, name == "ann"
		}
	})
	s.source = f.source
	return f, s
}

func (f *fixture) as(t *testing.T, p identity.Principal) *engine.Session {
	t.Helper()
	s, err := f.Open(p, engine.ConnInfo{ID: 7, RemoteAddr: "10.0.0.1:5000", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestPolicySQL runs testdata/policies: statements of an administrator (admin, who
// may read no data), and of users, with what they answer and what was written.
func TestPolicySQL(t *testing.T) {
	datadriven.Walk(t, "testdata/policies", func(t *testing.T, path string) {
		f, s := openStore(t)
		sessions := map[string]*engine.Session{
			"admin": f.as(t, identity.Principal{Name: "admin", Admin: true}),
			"ann":   f.as(t, identity.Principal{Name: "ann", Roles: []string{"teller"}}),
			"bob":   f.as(t, identity.Principal{Name: "bob"}),
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "stored" {
				s.mu.Lock()
				defer s.mu.Unlock()
				i := s.find(strings.TrimSpace(d.Input))
				if i < 0 {
					return "none\n"
				}
				return fmt.Sprintf("%+v\n", s.policies[i].Definition)
			}
			session, ok := sessions[d.Cmd]
			if !ok {
				t.Fatalf("%s: nobody is called %s", d.Pos, d.Cmd)
			}
			before := s.changes
			res, _, err := session.Query(context.Background(), d.Input)
			var b strings.Builder
			if err != nil {
				fmt.Fprintf(&b, "%s: %v\n", fault.KindOf(err), err)
				if s.changes != before {
					t.Errorf("%s: the statement failed and changed something", d.Pos)
				}
			} else {
				rows, err := print(res)
				if err != nil {
					return err.Error() + "\n"
				}
				var names []string
				for _, c := range res.Columns {
					names = append(names, c.Name)
				}
				if len(names) > 0 {
					fmt.Fprintln(&b, strings.Join(names, "|"))
				}
				if rows != "" {
					fmt.Fprintln(&b, rows)
				}
				if res.Warnings > 0 {
					warnings, _ := query(session, "SHOW WARNINGS")
					fmt.Fprintln(&b, warnings)
				}
				if b.Len() == 0 {
					fmt.Fprintln(&b, "ok")
				}
			}
			e := f.journal.last()
			if strings.Contains(e.Statement, "secret") || strings.Contains(e.Error, "secret") {
				t.Errorf("%s: the audit log holds a text: %s %s", d.Pos, e.Statement, e.Error)
			}
			return b.String()
		})
	})
}

// adminStatements need an administrator, whatever they name.
var adminStatements = []string{
	"CREATE POLICY %s ON TABLE bank.customers COLUMN MASK MASK_NULL TO USER ann ON COLUMN iban",
	"CREATE OR REPLACE POLICY %s ON TABLE bank.customers COLUMN MASK MASK_NULL TO USER ann ON COLUMN phone",
	"ALTER POLICY %s SET COMMENT 'x'", "SHOW CREATE POLICY %s", "SHOW MASKING POLICY %s", "SHOW POLICIES LIKE '%s'",
	"SHOW EFFECTIVE POLICY FOR USER %s ON bank.customers", "DROP POLICY %s", "DROP POLICY IF EXISTS %s",
}

func TestPoliciesNeedAnAdministrator(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	ann := f.as(t, identity.Principal{Name: "ann"})
	if _, err := query(admin, "CREATE POLICY there ON TABLE bank.customers COLUMN MASK MASK_HASH TO USER eve ON COLUMN phone"); err != nil {
		t.Fatal(err)
	}
	before := s.changes
	for _, text := range adminStatements {
		var texts []string
		for _, name := range []string{"there", "nowhere"} {
			_, err := query(ann, fmt.Sprintf(text, name))
			if !fault.Is(err, fault.Denied) {
				t.Errorf("%s: %v", text, err)
				continue
			}
			texts = append(texts, err.Error())
			if e := f.journal.last(); e.Outcome != "denied" || e.User != "ann" {
				t.Errorf("%s: audited as %+v", text, e)
			}
		}
		if len(texts) == 2 && texts[0] != texts[1] {
			t.Errorf("%s: the refusal tells whether the policy exists: %q", text, texts)
		}
	}
	for _, text := range []string{"SHOW POLICIES", "SHOW MASKING POLICIES", "SHOW POLICIES ON TABLE nowhere.t"} {
		if _, err := query(ann, text); !fault.Is(err, fault.Denied) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s.changes != before {
		t.Error("a refused statement changed something")
	}
	// The control: all of them work for an administrator.
	for i, text := range adminStatements {
		name := "there"
		if i == 0 {
			name = "new"
		}
		if _, err := query(admin, fmt.Sprintf(text, name)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, a := range s.authors {
		if a != (policy.Author{User: "admin", From: "10.0.0.1:5000"}) {
			t.Errorf("written by %+v", a)
		}
	}
}

// TestPolicyActsAtOnce: the statement after a change sees it, in every session.
func TestPolicyActsAtOnce(t *testing.T) {
	f, _ := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	ann := f.as(t, identity.Principal{Name: "ann"})
	const q = "SELECT iban IS NULL, COUNT(*) FROM customers GROUP BY 1"
	expect := func(want string) {
		t.Helper()
		if got, err := query(ann, q); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	write := func(text string) {
		t.Helper()
		if _, err := query(admin, text); err != nil {
			t.Fatal(err)
		}
	}
	expect("false|12")
	for range 3 {
		write("CREATE POLICY p ON TABLE bank.customers COLUMN MASK MASK_NULL TO USER ann ON COLUMN iban")
		expect("true|12")
		write("ALTER POLICY p DISABLE")
		expect("false|12")
		write("ALTER POLICY p ENABLE")
		expect("true|12")
		write("ALTER POLICY p ADD FIRST COLUMN MASK MASK_NONE TO USER ann")
		expect("false|12")
		write("DROP POLICY p")
		expect("false|12")
	}
	// Writing policies gives no right to data.
	if _, err := query(admin, q); !fault.Is(err, fault.NotFound) {
		t.Errorf("the administrator reads data: %v", err)
	}
}

// TestPolicyAdministrators: without one nothing can be written, with several each
// policy is changed where it is.
func TestPolicyAdministrators(t *testing.T) {
	none := open(t)
	admin := none.as(t, identity.Principal{Name: "admin", Admin: true})
	for _, text := range []string{"SHOW POLICIES", "DROP POLICY IF EXISTS p", "CREATE POLICY p ON TAG t ROW FILTER TO PUBLIC USING (true)"} {
		if _, err := query(admin, text); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "configure one") {
			t.Errorf("%s: %v", text, err)
		}
	}
	one, two := &store{name: "one"}, &store{name: "two"}
	f := openWith(t, func(o *engine.Options) { o.Administrators = []policy.Administrator{one, two} })
	one.source, two.source = f.source, f.source
	admin = f.as(t, identity.Principal{Name: "admin", Admin: true})
	two.policies = []policy.Stored{{Definition: policy.Definition{
		Name: "old", Kind: policy.FilterDefinition, Tag: "T", Items: []policy.Item{{Grantees: []policy.Grantee{{Kind: "user", Name: "x"}}, SQL: "true"}},
	}}}
	for _, text := range []string{
		"CREATE POLICY new ON TAG t ROW FILTER TO PUBLIC USING (true)", "ALTER POLICY old DISABLE",
		"CREATE OR REPLACE POLICY old ON TAG t ROW FILTER TO PUBLIC USING (false)", "CREATE OR REPLACE POLICY new ON TAG u ROW FILTER TO PUBLIC USING (false)",
	} {
		if _, err := query(admin, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(one.policies) != 1 || len(two.policies) != 1 || one.changes != 2 || two.changes != 2 {
		t.Errorf("%d and %d policies, %d and %d changes", len(one.policies), len(two.policies), one.changes, two.changes)
	}
	if got, err := query(admin, "SHOW MASKING POLICIES"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := query(admin, "SHOW POLICIES"); err != nil || strings.Count(got, "\n") != 1 || !strings.Contains(got, "|one|") || !strings.Contains(got, "|two|") {
		t.Errorf("%q, %v", got, err)
	}
	two.policies[0].Name = "new"
	if _, err := query(admin, "DROP POLICY new"); !fault.Is(err, fault.BadStatement) || one.changes != 2 || two.changes != 2 {
		t.Errorf("a name that two sources have: %v", err)
	}
	if _, err := query(admin, "DROP POLICY gone"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a name that no source has: %v", err)
	}
	two.err = fault.New(fault.Unavailable, "the policy server does not answer")
	if _, err := query(admin, "SHOW POLICIES"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an outage: %v", err)
	}
}

// TestShowCreateRoundTrip: what SHOW CREATE POLICY says makes the same policy
// again.
func TestShowCreateRoundTrip(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	for _, text := range []string{
		"CREATE POLICY `a ``b` ON TABLE customers COLUMN MASK MASK_NULL TO USER 'o''neil', ROLE \"a\"\"b\", PUBLIC ON COLUMN iban, DOB",
		"CREATE POLICY b ON TABLE profiles COLUMN MASK CUSTOM TO GROUP `g,h` USING (CASE WHEN {col} > 1 AND ')' <> '\\'' THEN \"1\" ELSE '2' END), COLUMN MASK MASK_NONE TO USER x ON COLUMN cust_id COMMENT 'a\\\\b\\n''c' DISABLED",
		"CREATE POLICY c ON TAG `x y` ROW FILTER TO ROLE r USING (a = ${{USER.a}} OR b IN (1, 2)) PRIORITY OVERRIDE VALID FROM '2026-01-01 00:00:01'",
		"CREATE POLICY d ON TAG t COLUMN MASK MASK_HASH TO USER a, COLUMN MASK MASK TO USER b VALID UNTIL '2099-01-01'",
	} {
		if _, err := query(admin, text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		i := len(s.policies) - 1
		before := s.policies[i].Definition
		shown, err := query(admin, "SHOW CREATE POLICY `"+strings.ReplaceAll(before.Name, "`", "``")+"`")
		_, create, _ := strings.Cut(shown, "|CREATE")
		if err != nil || create == "" {
			t.Errorf("%s: %q, %v", text, shown, err)
			continue
		}
		s.policies = s.policies[:i]
		if _, err := query(admin, "CREATE"+create); err != nil {
			t.Errorf("%s: %v", create, err)
			continue
		}
		if after := s.policies[i].Definition; !reflect.DeepEqual(after, before) {
			t.Errorf("%s\nbecame %+v\nwas    %+v", create, after, before)
		}
	}
}

// TestShowsWhatProtectsNothing: what the source says of a policy stands beside it.
func TestShowsWhatProtectsNothing(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	s.policies = []policy.Stored{
		{ID: 4, Definition: policy.Definition{Name: "a", Kind: policy.MaskDefinition, Table: plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: "customers"}, Columns: []string{"gone"}}},
		{ID: 5, Definition: policy.Definition{Name: "b", Kind: policy.AccessDefinition}, Resources: "root=*", Beyond: []string{"conditions"}},
	}
	loaded, bound := 0, 0
	filter := func(id int64, sql string) policy.PolicyText {
		return policy.PolicyText{Policy: "a", ID: id, SQL: sql}
	}
	texts := []policy.PolicyText{filter(4, "cust_id > 0"), filter(4, "nothing > 0"), filter(6, "nothing > 1"), {Policy: "a", ID: 4, SQL: "concat({col}, phone)", Column: "iban", Masked: []string{"phone"}}}
	f.source.set(func(st *state) {
		st.findings = func(tables []*plan.Table) []policy.Finding {
			loaded = len(tables)
			return []policy.Finding{
				{Kind: policy.Silent, Policy: "a", ID: 4, Text: "names column gone"},
				{Kind: policy.Advice, Policy: "a", ID: 4, Text: "is old"},
				{Kind: policy.Silent, Service: "other", Policy: "a", ID: 4, Text: "is of another service"},
				{Kind: policy.Silent, Policy: "a", ID: 6, Text: "is another"},
				{Kind: policy.Advice, Text: "there are no roles"},
			}
		}
		st.texts = func(t *plan.Table) []policy.PolicyText { bound++; return texts }
	})
	show := func(statement string) []string {
		t.Helper()
		got, err := query(admin, statement)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(got, "\n")
	}
	lines := show("SHOW POLICIES")
	for _, want := range []string{"|names column gone; is old; on table lake.bank.customers: ", "Unknown column 'nothing'", `names column "phone", which is masked too|4|`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s\nlacks %s", lines[0], want)
		}
	}
	if all := strings.Join(lines, "\n"); len(lines) != 2 || strings.Contains(all, "another") || strings.Contains(all, "> 1") || !strings.Contains(lines[1], "|root=*|") || !strings.Contains(lines[1], "|NORMAL|||5|") {
		t.Errorf("%s", all)
	}
	if loaded != 1 || bound != 1 {
		t.Errorf("%d tables were loaded, of %d the texts", loaded, bound)
	}
	// Of a policy that is disabled nothing is said: it is meant to do nothing.
	s.policies[0].Disabled = true
	if lines := show("SHOW POLICIES LIKE 'a'"); strings.Contains(lines[0], "names column gone") || strings.Contains(lines[0], "Unknown") {
		t.Errorf("%s", lines[0])
	}
	s.policies[0].Disabled = false
	// The work is bounded, and what was not done is told.
	texts = nil
	for range 2000 {
		texts = append(texts, filter(4, "cust_id > 0"))
	}
	if lines := show("SHOW POLICIES"); !strings.Contains(lines[0], "texts that were not bound now") {
		t.Errorf("%s", lines[0])
	}
	texts = texts[:10]
	if lines := show("SHOW POLICIES"); strings.Contains(lines[0], "not bound") {
		t.Errorf("%s", lines[0])
	}
	// One that denies may be on any table.
	s.policies[1].Items = []policy.Item{{Deny: true}}
	if show("SHOW POLICIES"); loaded < 2 {
		t.Errorf("%d tables were loaded", loaded)
	}
}

// TestPoliciesOfServers: names as a policy server writes them, without a catalog or
// with patterns, and items that SQL does not write.
func TestPoliciesOfServers(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	user := []policy.Grantee{{Kind: policy.UserGrantee, Name: "x"}}
	filter := func(name string, table plan.TableName, sql string) policy.Stored {
		return policy.Stored{Definition: policy.Definition{Name: name, Kind: policy.FilterDefinition, Table: table, Disabled: true, Items: []policy.Item{{Grantees: user, SQL: sql, Exempt: sql == ""}}}}
	}
	bank := plan.TableName{Namespace: []string{"bank"}, Name: "customers"}
	s.policies = []policy.Stored{
		filter("good", bank, "cust_id > 0"), filter("bad", bank, "nothing > 0"), filter("exemption", bank, ""),
		filter("pattern", plan.TableName{Namespace: []string{"*"}, Name: "customers"}, "nothing > 0"),
		filter("gone", plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: "nothing"}, "nothing > 0"),
	}
	for name, want := range map[string]string{"good": "", "bad": "Unknown column 'nothing'", "exemption": "", "pattern": "several tables", "gone": "no table 'lake.bank.nothing'"} {
		res, _, err := admin.Query(context.Background(), "ALTER POLICY "+name+" ENABLE")
		told := ""
		if err != nil {
			told = err.Error()
		} else if res.Warnings > 0 {
			told, _ = query(admin, "SHOW WARNINGS")
		}
		if !strings.Contains(told, want) || want == "" && told != "" || (err != nil) != (name == "bad") {
			t.Errorf("%s: %q", name, told)
		}
	}
	got, err := query(admin, "SHOW POLICIES ON TABLE customers")
	if err != nil || strings.Count(got, "\n") != 3 || strings.Contains(got, "gone") || !strings.Contains(got, "|bank.customers|") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestHashNeedsAKey: a mask that the server cannot make is not written.
func TestHashNeedsAKey(t *testing.T) {
	s := &store{name: "test"}
	f := openWith(t, func(o *engine.Options) {
		o.Administrators, o.Masks = []policy.Administrator{s}, masks.Options{}
	})
	s.source = f.source
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	const text = "CREATE POLICY p ON TABLE customers COLUMN MASK %s TO USER ann ON COLUMN iban"
	if _, err := query(admin, fmt.Sprintf(text, "MASK_HASH")); !fault.Is(err, fault.BadStatement) || !strings.Contains(err.Error(), "masks.hash-key-file") || s.changes != 0 {
		t.Errorf("%v", err)
	}
	if _, err := query(admin, fmt.Sprintf(text, "MASK")); err != nil || s.changes != 1 {
		t.Errorf("%v", err)
	}
}

// TestTagsOfThePolicyServer: a policy on a tag is checked where the policy server
// puts the tag, too.
func TestTagsOfThePolicyServer(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	const text = "CREATE OR REPLACE POLICY p ON TAG far ROW FILTER TO USER ann USING (pay_id > 0)"
	warned := func(want uint16) {
		t.Helper()
		res, _, err := admin.Query(context.Background(), text)
		if err != nil || res.Warnings != want {
			t.Errorf("%+v, %v", res, err)
		}
	}
	warned(1) // nothing carries the tag
	f.source.set(func(st *state) {
		st.tags = func(t *plan.Table) map[int][]string {
			if t.Name.Name == "payments" {
				return map[int][]string{0: {"far"}}
			}
			return nil
		}
	})
	warned(0)
	f.source.set(func(st *state) {
		st.tags = func(*plan.Table) map[int][]string { return map[int][]string{1: {"near", "far"}} }
	})
	before := s.changes
	if _, err := query(admin, text); !fault.Is(err, fault.BadStatement) || !strings.Contains(err.Error(), "pay_id") || s.changes != before {
		t.Errorf("%v", err)
	}
}

// TestStalePolicies: policies that are too old for data can be seen and mended.
func TestStalePolicies(t *testing.T) {
	f, s := openStore(t)
	admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
	if _, err := query(admin, "CREATE POLICY p ON TABLE customers ROW FILTER TO USER ann USING (true)"); err != nil {
		t.Fatal(err)
	}
	f.source.mu.Lock()
	f.source.err = fault.New(fault.PolicyStale, "policies are older than 60 s")
	f.source.mu.Unlock()
	if _, err := query(f.as(t, identity.Principal{Name: "ann"}), "SELECT 1 FROM customers"); !fault.Is(err, fault.PolicyStale) {
		t.Errorf("data is read: %v", err)
	}
	got, err := query(admin, "SHOW POLICIES")
	if err != nil || !strings.Contains(got, "|not checked: policies are older than 60 s|") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := query(admin, "SHOW EFFECTIVE POLICY ON customers"); !fault.Is(err, fault.PolicyStale) {
		t.Errorf("%v", err)
	}
	if _, err := query(admin, "ALTER POLICY p DISABLE"); err != nil || !s.policies[0].Disabled {
		t.Errorf("%v", err)
	}
}

// TestShowPoliciesNamesOtherSources: what the list cannot show is told, and nothing
// where it shows all.
func TestShowPoliciesNamesOtherSources(t *testing.T) {
	for _, c := range []struct{ administers, want string }{{"test", ""}, {"other", "policies of the source 'test' are not listed"}} {
		f := openWith(t, func(o *engine.Options) { o.Administrators = []policy.Administrator{&store{name: c.administers}} })
		admin := f.as(t, identity.Principal{Name: "admin", Admin: true})
		if _, err := query(admin, "SHOW POLICIES"); err != nil {
			t.Fatal(err)
		}
		if got, err := query(admin, "SHOW WARNINGS"); err != nil || !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("an administrator of %s is warned %q, %v", c.administers, got, err)
		}
	}
}
