package admin

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// beside is a stored mask for public on customers.iban, changed.
func beside(change func(*model.Policy)) *model.Policy {
	p := masks(mask("MASK_SHOW_LAST_4"))
	p.DataMaskPolicyItems[0].Groups = []string{"public"}
	p.Name, p.Resources = "old", on("database", "eu.retail", "table", "customers", "column", "iban")
	if change != nil {
		change(p)
	}
	return p
}

// TestOverlaps: which stored policies stand beside a new one, and which comes
// first. The names are those that the source reads.
func TestOverlaps(t *testing.T) {
	disabled := false
	resources := func(pairs ...string) func(*model.Policy) {
		return func(p *model.Policy) { p.Resources = on(pairs...) }
	}
	scheduled := func(from, until string) func(*model.Policy) {
		return func(p *model.Policy) {
			p.ValiditySchedules = []model.Schedule{{StartTime: from, EndTime: until, TimeZone: "UTC"}}
		}
	}
	exact := &policy.Overlap{Name: "old", Columns: []string{"iban"}, Exact: true, First: true}
	hive := map[string]struct {
		key    rangerclient.DatabaseKey
		change func(*model.Policy)
		want   *policy.Overlap
	}{
		"without the catalog":           {"", nil, exact},
		"with the catalog":              {"", resources("database", "bank.eu.retail", "table", "customers", "column", "iban"), exact},
		"in capital letters":            {"", resources("database", "EU.Retail", "table", "CUSTOMERS", "column", "IBAN"), exact},
		"other catalog":                 {"", resources("database", "b.eu.retail", "table", "customers", "column", "iban"), nil},
		"a name that is not read":       {rangerclient.KeyNamespace, resources("database", "bank.eu.retail", "table", "customers", "column", "iban"), nil},
		"a name that is read":           {rangerclient.KeyNamespace, nil, exact},
		"the catalog is asked for":      {rangerclient.KeyCatalogNamespace, nil, nil},
		"the last level":                {rangerclient.KeyOriginal, resources("database", "retail", "table", "customers", "column", "iban"), exact},
		"not the last level":            {"", resources("database", "retail", "table", "customers", "column", "iban"), nil},
		"other column":                  {"", resources("database", "eu.retail", "table", "customers", "column", "email"), nil},
		"other table":                   {"", resources("database", "eu.retail", "table", "customer", "column", "iban"), nil},
		"a * that Ranger does not know": {"", resources("database", "eu.retail", "table", "*", "column", "iban"), nil},
		"several tables": {"", func(p *model.Policy) {
			p.Resources["table"] = model.Resource{Values: []string{"payments", "customers"}}
		}, exact},
		"additional resources": {"", func(p *model.Policy) {
			p.AdditionalResources = []map[string]model.Resource{p.Resources}
			p.Resources = on("database", "x", "table", "y", "column", "z")
		}, exact},
		"all but others": {"", func(p *model.Policy) {
			p.Resources["table"] = model.Resource{Values: []string{"payments"}, Excludes: true}
		}, &policy.Overlap{Name: "old", Columns: []string{"iban"}, First: true}},
		"all but this": {"", func(p *model.Policy) {
			p.Resources["table"] = model.Resource{Values: []string{"customers"}, Excludes: true}
		}, nil},
		"disabled":         {"", func(p *model.Policy) { p.Enabled = &disabled }, nil},
		"a row filter":     {"", func(p *model.Policy) { p.PolicyType = model.RowFilterPolicy }, nil},
		"other zone":       {"", func(p *model.Policy) { p.ZoneName = "z" }, nil},
		"expired":          {"", scheduled("", "2001/01/01 00:00:00"), nil},
		"later":            {"", scheduled("2098/01/01 00:00:00", ""), exact},
		"override":         {"", func(p *model.Policy) { p.PolicyPriority = 1 }, &policy.Overlap{Name: "old", Columns: []string{"iban"}, Exact: true, Override: true, First: true}},
		"of the same name": {"", func(p *model.Policy) { p.Name = "m" }, nil},
	}
	for name, c := range hive {
		t.Run(name, func(t *testing.T) { expectOverlap(t, "lake", c.key, c.change, c.want, nil) })
	}
	trino := func(table string) func(*model.Policy) {
		return resources("catalog", "bank", "schema", "eu.retail", "table", table, "column", "iban")
	}
	expectOverlap(t, "presto", "", trino("customers"), exact, nil)
	expectOverlap(t, "presto", "", trino("cust*"), &policy.Overlap{Name: "old", Columns: []string{"iban"}, First: true}, nil)
	expectOverlap(t, "presto", "", trino("pay*"), nil, nil)
	expectOverlap(t, "presto", "", resources("catalog", "b", "schema", "eu.retail", "table", "customers", "column", "iban"), nil, nil)
	// What is to be written: disabled, on a tag, an override, with its own time.
	expectOverlap(t, "lake", "", nil, nil, func(d *policy.Definition) { d.Disabled = true })
	expectOverlap(t, "lake", "", nil, nil, func(d *policy.Definition) { d.Tag, d.Table, d.Columns = "PII", plan.TableName{}, nil })
	expectOverlap(t, "lake", "", nil, &policy.Overlap{Name: "old", Columns: []string{"iban"}, Exact: true}, func(d *policy.Definition) { d.Override = true })
	expectOverlap(t, "lake", "", scheduled("2098/01/01 00:00:00", ""), nil, func(d *policy.Definition) { d.ValidUntil = time.Date(2097, 1, 1, 0, 0, 0, 0, time.UTC) })
	expectOverlap(t, "lake", "", nil, exact, func(d *policy.Definition) { d.Columns = []string{"email", "iban"} })
}

func expectOverlap(t *testing.T, service string, key rangerclient.DatabaseKey, change func(*model.Policy), want *policy.Overlap, wanted func(*policy.Definition)) {
	t.Helper()
	f := lake()
	a, _ := administrator(t, f, func(c *Config) { c.DataService, c.Options.DatabaseKey = service, key })
	p := beside(change)
	p.Service = service
	stored(t, f, p)
	d := maskOn("iban")
	if wanted != nil {
		wanted(&d)
	}
	got, err := a.Overlaps(context.Background(), d, 0)
	if err != nil || len(got) > 1 || (len(got) == 1) != (want != nil) || want != nil && fmt.Sprint(got[0]) != fmt.Sprint(*want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestOverlapsOfStored: a policy that is changed is compared as it will be, in its
// zone, and not with itself.
func TestOverlapsOfStored(t *testing.T) {
	ctx := context.Background()
	f := lake()
	a, _ := administrator(t, f, nil)
	first := stored(t, f, beside(nil))
	second := stored(t, f, beside(func(p *model.Policy) {
		p.Name, p.Resources = "second", on("database", "bank.eu.retail", "table", "customers", "column", "iban")
	}))
	zoned := stored(t, f, beside(func(p *model.Policy) {
		p.Name, p.ZoneName = "zoned", "z"
	}))
	d := maskOn("iban")
	d.Name = "second"
	expect := func(id int64, d policy.Definition, want string) {
		t.Helper()
		got, err := a.Overlaps(ctx, d, id)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	expect(second.ID, d, "[{old [iban] true false true}]")
	d.Name = "z" // by name the last
	expect(first.ID, d, "[{second [iban] true false true}]")
	expect(zoned.ID, d, "[]")
	d.Name = "a" // by name the first
	expect(second.ID, d, "[{old [iban] true false false}]")
	d.Name, d.Override = "second", true
	expect(second.ID, d, "[{old [iban] true false false}]")
}
