package admin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

func hive(key rangerclient.DatabaseKey) *language {
	return &language{component: "hive", service: "lake", tagService: "tags", databaseKey: key}
}

var trino = &language{component: "trino", service: "presto", tagService: "tags"}

var customers = plan.TableName{Catalog: "bank", Namespace: []string{"eu", "retail"}, Name: "customers"}

func to(kind policy.GranteeKind, names ...string) (out []policy.Grantee) {
	for _, n := range names {
		out = append(out, policy.Grantee{Kind: kind, Name: n})
	}
	return out
}

func maskOn(columns ...string) policy.Definition {
	return policy.Definition{
		Name: "m", Kind: policy.MaskDefinition, Table: customers, Columns: columns,
		Items: []policy.Item{{Grantees: to(policy.RoleGrantee, "analyst"), Mask: "MASK_NULL"}},
	}
}

func TestDatabase(t *testing.T) {
	for key, want := range map[rangerclient.DatabaseKey]string{
		rangerclient.KeyBoth: "bank.eu.retail", rangerclient.KeyCatalogNamespace: "bank.eu.retail",
		rangerclient.KeyNamespace: "eu.retail", rangerclient.KeyOriginal: "eu.retail",
	} {
		p, err := hive(key).policyFor(maskOn("iban"))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Resources["database"].Values; !slices.Equal(got, []string{want}) {
			t.Errorf("key %q: database %q, want %q", key, got, want)
		}
	}
	p, err := trino.policyFor(maskOn("iban"))
	if err != nil {
		t.Fatal(err)
	}
	if got := resources(p); got != "catalog=bank, schema=eu.retail, table=customers, column=iban" {
		t.Errorf("trino: %s", got)
	}
}

func TestPolicyOnTag(t *testing.T) {
	for _, l := range []*language{hive(""), trino} {
		d := policy.Definition{Name: "t", Kind: policy.MaskDefinition, Tag: "PII", Items: []policy.Item{
			{Grantees: to(policy.GroupGrantee, policy.Public), Mask: "CUSTOM", SQL: "upper({col})"},
		}}
		p, err := l.policyFor(d)
		if err != nil {
			t.Fatal(err)
		}
		i := p.DataMaskPolicyItems[0]
		if p.Service != "tags" || i.Accesses[0].Type != l.component+":select" || i.DataMaskInfo.DataMaskType != l.component+":CUSTOM" || i.DataMaskInfo.ValueExpr != "upper({col})" {
			t.Errorf("%s", text(p))
		}
		d.Kind, d.Items[0].Mask = policy.FilterDefinition, ""
		if p, err = l.policyFor(d); err != nil {
			t.Fatal(err)
		}
		if p.PolicyType != model.RowFilterPolicy || p.RowFilterPolicyItems[0].Accesses[0].Type != l.component+":select" {
			t.Errorf("%s", text(p))
		}
	}
}

func TestRefusedDefinitions(t *testing.T) {
	item := func(change func(*policy.Item)) func(*policy.Definition) {
		return func(d *policy.Definition) { change(&d.Items[0]) }
	}
	filter := func(d *policy.Definition) { d.Kind, d.Columns = policy.FilterDefinition, nil; d.Items[0].Mask = "" }
	for _, c := range []struct {
		what   string
		change func(*policy.Definition)
	}{
		{"needs a name", func(d *policy.Definition) { d.Name = "" }},
		{"CUSTOM COLUMN MASK requires USING", item(func(i *policy.Item) { i.Mask = "custom" })},
		{"only a CUSTOM COLUMN MASK has USING", item(func(i *policy.Item) { i.SQL = "secret" })},
		{"ROW FILTER requires USING", filter},
		{"leave out ON COLUMN", func(d *policy.Definition) { filter(d); d.Columns = []string{"a"} }},
		{"needs ON COLUMN", func(d *policy.Definition) { d.Columns = nil }},
		{"on a table or on a tag", func(d *policy.Definition) { d.Tag = "PII" }},
		{"on a table or on a tag", func(d *policy.Definition) { d.Table = plan.TableName{} }},
		{"docs/grants.md", func(d *policy.Definition) { d.Kind = policy.AccessDefinition }},
		{"pattern", func(d *policy.Definition) { d.Columns = []string{"a*"} }},
		{"pattern", func(d *policy.Definition) { d.Table.Name = "a?" }},
		{"pattern", func(d *policy.Definition) { d.Table.Name = "{USER}" }},
		{"pattern", func(d *policy.Definition) { d.Table.Namespace = []string{"*"} }},
		{"pattern", func(d *policy.Definition) { d.Table.Catalog = "*" }},
		{"another database", func(d *policy.Definition) { d.Table.Namespace = []string{"a.b"} }},
		{"another database", func(d *policy.Definition) { d.Table.Catalog = "a.b" }},
		{"names nobody", item(func(i *policy.Item) { i.Grantees = nil })},
		{"more than one user", item(func(i *policy.Item) { i.Grantees = to(policy.UserGrantee, "{OWNER}") })},
		{"not user, group or role", item(func(i *policy.Item) { i.Grantees = to("", "x") })},
		{"ends before", func(d *policy.Definition) { d.ValidFrom, d.ValidUntil = time.Unix(2, 0), time.Unix(1, 0) }},
		{"no privileges", item(func(i *policy.Item) { i.Deny = true })},
	} {
		d := maskOn("iban")
		if _, err := hive("").policyFor(d); err != nil {
			t.Fatal(err) // the control: it is the change that is refused
		}
		c.change(&d)
		_, err := hive("").policyFor(d)
		if err == nil || !strings.Contains(err.Error(), c.what) || !strings.HasPrefix(err.Error(), "CREATE POLICY") {
			t.Errorf("%q: got %v", c.what, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the text of a mask is in a fault: %v", err)
		}
	}
	l := hive("")
	l.tagService = ""
	if _, err := l.policyFor(policy.Definition{Name: "t", Kind: policy.MaskDefinition, Tag: "PII", Items: maskOn("a").Items}); !fault.Is(err, fault.BadStatement) {
		t.Errorf("without a tag service: %v", err)
	}
}

// TestRoundTrip: what is written is read back as it was, and nothing is beyond.
func TestRoundTrip(t *testing.T) {
	languages := []*language{hive(rangerclient.KeyBoth), hive(rangerclient.KeyCatalogNamespace), trino}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 6))
		word := func() string {
			return []string{"a", "B", "größe", "x y", "o'c", "n-1", "日本", `q"t`, "a,b"}[r.IntN(9)]
		}
		words := func() (out []string) {
			for range 1 + r.IntN(3) {
				out = append(out, word())
			}
			return set(out)
		}
		d := policy.Definition{Name: word(), Description: []string{"", "why"}[r.IntN(2)], Disabled: r.IntN(2) == 0, Override: r.IntN(2) == 0, Kind: policy.MaskDefinition}
		if r.IntN(2) == 0 {
			d.ValidFrom = time.Unix(int64(r.IntN(1e9)), 0).UTC()
			if r.IntN(2) == 0 {
				d.ValidUntil = d.ValidFrom.Add(time.Duration(r.IntN(1000)) * time.Second)
			}
		}
		if r.IntN(2) == 0 {
			d.Kind = policy.FilterDefinition
		}
		if r.IntN(2) == 0 {
			d.Tag = word()
		} else {
			d.Table = plan.TableName{Catalog: word(), Namespace: words(), Name: word()}
			if d.Kind == policy.MaskDefinition {
				d.Columns = words()
			}
		}
		for range 1 + r.IntN(3) {
			i := policy.Item{Grantees: slices.Concat(to(policy.UserGrantee, words()...), to(policy.GroupGrantee, words()...), to(policy.RoleGrantee, words()...))}
			switch {
			case d.Kind == policy.FilterDefinition && r.IntN(3) == 0:
				i.Exempt = true
			case d.Kind == policy.FilterDefinition:
				i.SQL = fmt.Sprintf("a = %d", r.IntN(9))
			case r.IntN(2) == 0:
				i.Mask, i.SQL = "CUSTOM", " upper({col}) "
			default:
				i.Mask = "MASK_HASH"
			}
			d.Items = append(d.Items, i)
		}
		for _, l := range languages {
			p, err := l.policyFor(d)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got := l.stored(normal(p))
			if len(got.Beyond) > 0 {
				t.Errorf("seed %d: beyond: %q", seed, got.Beyond)
			}
			if diff := cmp.Diff(d, got.Definition, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, %s (-written +read):\n%s", seed, l.component, diff)
			}
			again, err := l.policyFor(got.Definition)
			if err != nil || !same(again, p) {
				t.Fatalf("seed %d: written again: %v\n%s\n%s", seed, err, text(again), text(p))
			}
		}
	}
}

// TestValidityIsNeverShorter: fractions of seconds widen it.
func TestValidityIsNeverShorter(t *testing.T) {
	d := maskOn("a")
	d.ValidFrom = time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600))
	d.ValidUntil = time.Date(2026, 1, 2, 3, 4, 6, 1, time.FixedZone("", 3600))
	p, err := hive("").policyFor(d)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.ValiditySchedules[0]; s.StartTime != "2026/01/02 02:04:05" || s.EndTime != "2026/01/02 02:04:07" || s.TimeZone != "UTC" {
		t.Errorf("%+v", s)
	}
}

func TestBeyond(t *testing.T) {
	no := false
	plain, err := hive("").policyFor(maskOn("iban"))
	if err != nil {
		t.Fatal(err)
	}
	if b := hive("").stored(plain).Beyond; len(b) > 0 {
		t.Fatalf("a plain policy is beyond: %q", b)
	}
	for want, change := range map[string]func(*model.Policy){
		beyondConditions: func(p *model.Policy) { p.Conditions = []model.Condition{{Type: "x"}} },
		beyondExceptions: func(p *model.Policy) { p.DenyExceptions = []*model.Item{allow("a", "select")} },
		beyondExcludes:   func(p *model.Policy) { p.Resources["column"] = model.Resource{Values: []string{"a"}, Excludes: true} },
		beyondRecursive:  func(p *model.Policy) { p.Resources["column"] = model.Resource{Values: []string{"a"}, Recursive: true} },
		beyondSchedules:  func(p *model.Policy) { p.ValiditySchedules = make([]model.Schedule, 2) },
		beyondRecurrences: func(p *model.Policy) {
			p.ValiditySchedules = []model.Schedule{{Recurrences: make([]model.Recurrence, 1)}}
		},
		beyondTimes:      func(p *model.Policy) { p.ValiditySchedules = []model.Schedule{{StartTime: "tomorrow"}} },
		beyondResources:  func(p *model.Policy) { p.Resources["udf"] = model.Resource{Values: []string{"f"}} },
		beyondTables:     func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"a", "b"}} },
		beyondWildcards:  func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"a*"}} },
		beyondDenyAll:    func(p *model.Policy) { p.DenyAllElse = true },
		beyondDelegate:   func(p *model.Policy) { p.DataMaskPolicyItems[0].DelegateAdmin = true },
		beyondAccesses:   func(p *model.Policy) { p.DataMaskPolicyItems[0].Accesses = accesses("update") },
		beyondVariables:  func(p *model.Policy) { p.DataMaskPolicyItems[0].Users = []string{"{OWNER}"} },
		beyondNoMask:     func(p *model.Policy) { p.DataMaskPolicyItems[0].DataMaskInfo = nil },
		beyondMaskSQL:    func(p *model.Policy) { p.DataMaskPolicyItems[0].DataMaskInfo.ValueExpr = "x" },
		beyondAudit:      func(p *model.Policy) { p.AuditEnabled = &no },
		beyondKind:       func(p *model.Policy) { p.PolicyType = model.AuditPolicy },
		beyondNoGrantees: func(p *model.Policy) { p.DataMaskPolicyItems[0].Roles = nil },
		beyondPriority:   func(p *model.Policy) { p.PolicyPriority = 2 },
		beyondOptions:    func(p *model.Policy) { p.Options = map[string]any{"x": 1} },
		beyondAllowedFalse: func(p *model.Policy) {
			p.PolicyType, p.PolicyItems = 0, []*model.Item{{Users: []string{"a"}, Accesses: []model.Access{{Type: "select", Allowed: &no}}}}
		},
		beyondTags: func(p *model.Policy) { p.Resources = on("tag", "A,B") },
		beyondComponents: func(p *model.Policy) {
			p.Resources = on("tag", "A")
			p.DataMaskPolicyItems[0].Accesses = accesses("trino:select")
			p.DataMaskPolicyItems[0].DataMaskInfo.DataMaskType = "trino:MASK"
		},
	} {
		p := clone(plain)
		change(p)
		if got := hive("").stored(p).Beyond; !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

func TestReadAccess(t *testing.T) {
	p := &model.Policy{ID: 7, Service: "objects", Name: "g", Resources: on("root", "*", "catalog", "bank", "namespace", "eu.retail", "table", "customers"), PolicyItems: []*model.Item{allow("alice", "table-read-data")}, DenyPolicyItems: []*model.Item{allow("bob", "table-drop")}, UpdateTime: 1000}
	got := hive("").stored(p)
	if got.Kind != policy.AccessDefinition || len(got.Items) != 2 || got.Items[0].Deny || !got.Items[1].Deny || got.Items[1].Privileges[0] != "table-drop" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(customers, got.Table); diff != "" || got.Resources != "root=*, catalog=bank, namespace=eu.retail, table=customers" {
		t.Errorf("%s %s", diff, got.Resources)
	}
}
