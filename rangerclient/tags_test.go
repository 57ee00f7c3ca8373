package rangerclient

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// serverTags gives tags of the policy server to resources: "database=s table=t
// column=c" -> "PII,X".
func (b *build) serverTags(o Options, on map[string]string) *State {
	b.t.Helper()
	one := int64(1)
	tags := &model.ServiceTags{ServiceName: "data", TagVersion: &one, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	keys := make([]string, 0, len(on))
	for k := range on {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, res := range keys {
		id := int64(i + 1)
		tags.ServiceResources = append(tags.ServiceResources, model.ServiceResource{ID: id, ResourceElements: resources(res)})
		for n, name := range strings.Split(on[res], ",") {
			tag := id*100 + int64(n)
			tags.Tags[fmt.Sprint(tag)] = model.Tag{ID: tag, Type: name}
			tags.ResourceToTagIDs[fmt.Sprint(id)] = append(tags.ResourceToTagIDs[fmt.Sprint(id)], tag)
		}
	}
	st := b.state(o)
	st.docs.tableTags = tags
	return newState("test", st.options, st.docs, st.now)
}

// TestTagOrigins: a tag counts wherever it is kept, a tag that both keep counts
// once, and the answer says where it is kept and by which name it acts.
func TestTagOrigins(t *testing.T) {
	b := newBuild(t)
	b.tagMask("PII", "ann: MASK_HASH")
	b.filter(&b.tags, "tag=REGIONAL", "hive:", "ann: region = 'EU'")
	ann := identity.Principal{Name: "ann"}
	const onSSN, onOld = "database=s table=t column=ssn", "database=s table=t column=old"
	for name, x := range map[string]struct {
		server        map[string]string
		table         []plan.Tag
		formerly      []string
		from, earlier string
	}{
		"the server":           {server: map[string]string{onSSN: "PII"}, from: "policy server"},
		"the table":            {table: []plan.Tag{{Name: "PII"}}, from: "table"},
		"both":                 {server: map[string]string{onSSN: "PII"}, table: []plan.Tag{{Name: "PII"}}, from: "table and policy server"},
		"other attributes":     {server: map[string]string{onSSN: "PII"}, table: []plan.Tag{{Name: "PII", Attributes: map[string]string{"a": "b"}}}, from: "policy server"},
		"renamed, the server":  {server: map[string]string{onOld: "PII"}, formerly: []string{"old"}, from: "policy server", earlier: "old"},
		"renamed, the table":   {table: []plan.Tag{{Name: "PII", Earlier: "old"}}, formerly: []string{"old"}, from: "table", earlier: "old"},
		"of another column":    {table: []plan.Tag{{Name: "PII", Earlier: "ssn", Inherited: true}}, from: "table", earlier: "ssn"},
		"its own in the past":  {table: []plan.Tag{{Name: "PII", Earlier: "ssn"}}, from: "table"},
		"renamed, both differ": {server: map[string]string{onSSN: "PII"}, table: []plan.Tag{{Name: "PII", Earlier: "old"}}, formerly: []string{"old"}, from: "table and policy server"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := table("c.s.t", "id", "ssn")
			tab.Tags[2], tab.Formerly[2] = x.table, x.formerly
			r, err := b.serverTags(Options{}, x.server).Restrict(ann, tab)
			if err != nil {
				t.Fatal(err)
			}
			o := r.Columns[2].Origin
			if len(r.Columns) != 1 || r.Columns[2].Action != "MASK_HASH" || o.Tag != "PII" || o.TagFrom != x.from || o.Earlier != x.earlier {
				t.Errorf("%+v", r.Columns)
			}
		})
	}
	// Nobody else is affected, and a tag of an earlier name filters.
	tab := table("c.s.t", "id", "ssn", "region")
	tab.Formerly[2] = []string{"old"}
	st := b.serverTags(Options{}, map[string]string{onOld: "PII,REGIONAL"})
	if got := masksOf(t, st, identity.Principal{Name: "eve"}, tab); len(got) != 0 {
		t.Errorf("eve: %v", got)
	}
	r, err := st.Restrict(ann, tab)
	if err != nil || len(r.Filters) != 1 || r.Filters[0].Origin.Earlier != "old" || r.Filters[0].Origin.Tag != "REGIONAL" {
		t.Errorf("%+v %v", r.Filters, err)
	}
	got := st.TableTags(tab)
	if len(got) != 1 || fmt.Sprint(got[2]) != "[PII REGIONAL]" {
		t.Errorf("tags of the server: %v", got)
	}
}

// TestInheritedTags: a tag that may be another column's takes and never gives.
func TestInheritedTags(t *testing.T) {
	b := newBuild(t)
	b.tagMask("PII", "ann: MASK_HASH")
	b.tagMask("PUBLIC", "ann: MASK_NONE")
	b.mask("database=s table=t column=ssn", "ann: MASK_NULL")
	b.filter(&b.tags, "tag=ALL", "hive:", "ann: ")
	b.filter(&b.tags, "tag=FEW", "hive:", "ann: few")
	ann := identity.Principal{Name: "ann"}
	own := func(n string) plan.Tag { return plan.Tag{Name: n} }
	other := func(n string) plan.Tag { return plan.Tag{Name: n, Earlier: "c", Inherited: true} }
	for _, x := range []struct {
		column  string
		tags    []plan.Tag
		want    string
		filters int
	}{
		{"ssn", nil, "MASK_NULL", 0},
		{"ssn", []plan.Tag{own("PUBLIC")}, "", 0}, // the control
		{"ssn", []plan.Tag{other("PUBLIC")}, "MASK_NULL", 0},
		{"c", []plan.Tag{other("PII")}, "MASK_HASH", 0},
		{"c", []plan.Tag{own("PUBLIC"), other("PII")}, "MASK_HASH", 0},
		{"c", []plan.Tag{own("PII"), other("PUBLIC")}, "MASK_HASH", 0},
		{"ssn", []plan.Tag{other("PII")}, "MASK_NULL", 0}, // two masks
		{"c", []plan.Tag{other("FEW")}, "", 1},
		{"c", []plan.Tag{own("FEW"), other("ALL")}, "", 1},
	} {
		tab := table("c.s.t", "id", x.column)
		tab.Tags[2] = x.tags
		st := b.state(Options{})
		got := masksOf(t, st, ann, tab)
		if got[2] != x.want || got[1] != "" {
			t.Errorf("%s %v: %v, want %s", x.column, x.tags, got, x.want)
		}
		r, err := st.Restrict(ann, tab)
		if err != nil || len(r.Filters) != x.filters {
			t.Errorf("%s %v: filters %+v %v", x.column, x.tags, r.Filters, err)
		}
	}
}

// TestCheckTags: tags of the server on what never existed are reported, others are
// not.
func TestCheckTags(t *testing.T) {
	tab := table("c.s.t", "id", "tax")
	tab.Formerly[2] = []string{"ssn"}
	for _, x := range []struct {
		typ, resource, want string
	}{
		{"hive", "database=s table=t column=ssn", ""},
		{"hive", "database=S table=T column=TAX", ""},
		{"hive", "database=c.s table=t", ""},
		{"hive", "database=s table=t column=s*", ""},
		{"hive", "database=* table=none column=none", "on tables *.none, and no catalog has such a table"},
		{"hive", "database=* table=t column=n*", "on column n*, which no table that it names ever had"},
		{"hive", "database=* table=t column=s*", ""},
		{"hive", "database=s table=t column=none", "on column none, which table c.s.t never had"},
		{"hive", "database=s table=none column=ssn", "on table s.none, which no catalog has"},
		{"trino", "catalog=c schema=s table=t column=none", "on column none, which table c.s.t never had"},
		{"trino", "catalog=d schema=s table=t column=tax", "on table d.s.t, which no catalog has"},
		{"trino", "catalog=c schema=s table=t column=tax", ""},
	} {
		b := newBuild(t)
		b.typ = x.typ
		got := found(b.serverTags(Options{}, map[string]string{x.resource: "PII"}), policy.Silent, tab)
		switch {
		case x.want == "" && len(got) > 0:
			t.Errorf("%s: %q", x.resource, got)
		case x.want != "" && (len(got) != 1 || !strings.Contains(got[0], x.want) || !strings.Contains(got[0], "PII")):
			t.Errorf("%s: %q, want %s", x.resource, got, x.want)
		}
	}
}
