package rangerclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// build makes documents of short texts.
type build struct {
	t       testing.TB
	typ     string // of the data service
	data    []*model.Policy
	tags    []*model.Policy
	objects []*model.Policy
	roles   []*model.Role
	users   *model.UserStore
	config  model.Strings
}

func newBuild(t testing.TB) *build { return &build{t: t, typ: "hive"} }

// resources reads "database=a|b table=!c" (! excludes).
func resources(text string) map[string]model.Resource {
	out := map[string]model.Resource{}
	for _, f := range strings.Fields(text) {
		k, v, _ := strings.Cut(f, "=")
		v, excludes := strings.CutPrefix(v, "!")
		out[k] = model.Resource{Values: strings.Split(v, "|"), Excludes: excludes}
	}
	return out
}

// who reads "user alice group sales role r public".
func who(i *model.Item, text string) *model.Item {
	f := strings.Fields(text)
	for n := 0; n < len(f); n++ {
		switch f[n] {
		case "public":
			i.Groups = append(i.Groups, "public")
		case "group":
			n++
			i.Groups = append(i.Groups, f[n])
		case "role":
			n++
			i.Roles = append(i.Roles, f[n])
		default:
			i.Users = append(i.Users, f[n])
		}
	}
	return i
}

func item(principals string, accesses ...string) *model.Item {
	i := &model.Item{}
	for _, a := range accesses {
		i.Accesses = append(i.Accesses, model.Access{Type: a})
	}
	return who(i, principals)
}

func (b *build) policy(list *[]*model.Policy, kind int, res string) *model.Policy {
	id := int64(len(b.data) + len(b.tags) + len(b.objects) + 1)
	p := &model.Policy{ID: id, Name: fmt.Sprintf("p%03d", id), PolicyType: kind, Resources: resources(res), Version: 1}
	*list = append(*list, p)
	return p
}

// mask adds a mask policy of items "principals: TYPE [expression]".
func (b *build) mask(res string, items ...string) *model.Policy {
	p := b.policy(&b.data, model.MaskPolicy, res)
	p.DataMaskPolicyItems = maskItems("", items)
	return p
}

func (b *build) tagMask(tag string, items ...string) *model.Policy {
	p := b.policy(&b.tags, model.MaskPolicy, "tag="+tag)
	p.DataMaskPolicyItems = maskItems(b.typ+":", items)
	return p
}

func maskItems(prefix string, items []string) []*model.Item {
	var out []*model.Item
	for _, text := range items {
		principals, rest, _ := strings.Cut(text, ": ")
		kind, expr, _ := strings.Cut(rest, " ")
		i := item(principals, prefix+"select")
		i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: prefix + kind, ValueExpr: expr}
		out = append(out, i)
	}
	return out
}

// filter adds a row filter policy of items "principals: expression".
func (b *build) filter(list *[]*model.Policy, res, prefix string, items ...string) *model.Policy {
	p := b.policy(list, model.RowFilterPolicy, res)
	for _, text := range items {
		principals, expr, _ := strings.Cut(text, ": ")
		i := item(principals, prefix+"select")
		i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &expr}
		p.RowFilterPolicyItems = append(p.RowFilterPolicyItems, i)
	}
	return p
}

func (b *build) object(res string, items ...*model.Item) *model.Policy {
	p := b.policy(&b.objects, model.AccessPolicy, res)
	p.PolicyItems = items
	return p
}

func (b *build) state(o Options) *State {
	b.t.Helper()
	if err := o.check(); err != nil {
		b.t.Fatal(err)
	}
	def := func(typ string) *model.ServiceDef {
		d, err := servicedef.Definition(typ)
		if err != nil {
			b.t.Fatal(err)
		}
		return d
	}
	one := int64(1)
	d := &documents{
		tables: &model.ServicePolicies{
			ServiceName: "data", PolicyVersion: &one, ServiceDef: def(b.typ), Policies: b.data, ServiceConfig: b.config,
			TagPolicies: &model.TagPolicies{ServiceName: "tag", ServiceDef: def("tag"), Policies: b.tags},
		},
		objects: &model.ServicePolicies{ServiceName: "polaris", PolicyVersion: &one, ServiceDef: def("polaris"), Policies: b.objects},
		roles:   &model.Roles{RoleVersion: &one, RangerRoles: b.roles}, users: b.users, fingerprint: "1",
	}
	// As they come over the wire.
	for _, x := range []any{d.tables, d.objects} {
		text, err := json.Marshal(x)
		if err != nil {
			b.t.Fatal(err)
		}
		if _, err := model.DecodePolicies(text, map[bool]string{true: "data", false: "polaris"}[x == any(d.tables)]); err != nil {
			b.t.Fatal(err)
		}
	}
	return newState("test", o, d, func() time.Time { return time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC) })
}

func masksOf(t *testing.T, st policy.State, p identity.Principal, tab *plan.Table) map[int]string {
	t.Helper()
	r, err := st.Restrict(p, tab)
	if err != nil {
		t.Fatal(err)
	}
	if r.Refuse != "" {
		return map[int]string{0: "refused"}
	}
	out := map[int]string{}
	for id, rule := range r.Columns {
		switch rule.Kind {
		case policy.Forbid:
			out[id] = "withheld"
			if rule.Why == "" || rule.Action != "" {
				t.Errorf("field %d: %+v", id, rule)
			}
		case policy.Mask, policy.Nullify:
			out[id] = rule.Action
		default:
			t.Errorf("field %d: %+v", id, rule)
		}
	}
	return out
}

func same(a, b map[int]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestNames: how a policy's names meet a table.
func TestNames(t *testing.T) {
	ann := identity.Principal{Name: "ann"}
	for _, x := range []struct {
		name    string
		typ     string
		options Options
		res     string
		table   string
		want    bool
	}{
		{"namespace", "hive", Options{}, "database=bank table=t column=c", "wh.bank.t", true},
		{"catalog in front", "hive", Options{}, "database=wh.bank table=t column=c", "wh.bank.t", true},
		{"another catalog in front", "hive", Options{}, "database=wh2.bank table=t column=c", "wh.bank.t", false},
		{"nested", "hive", Options{}, "database=a.b table=t column=c", "wh.a.b.t", true},
		{"nested with catalog", "hive", Options{}, "database=wh.a.b table=t column=c", "wh.a.b.t", true},
		{"last level alone", "hive", Options{}, "database=b table=t column=c", "wh.a.b.t", false},
		{"last level, as the original", "hive", Options{DatabaseKey: KeyOriginal}, "database=b table=t column=c", "wh.a.b.t", true},
		{"namespace only", "hive", Options{DatabaseKey: KeyNamespace}, "database=wh.bank table=t column=c", "wh.bank.t", false},
		{"catalog only", "hive", Options{DatabaseKey: KeyCatalogNamespace}, "database=bank table=t column=c", "wh.bank.t", false},
		{"catalog only, named", "hive", Options{DatabaseKey: KeyCatalogNamespace}, "database=wh.bank table=t column=c", "wh.bank.t", true},
		{"case", "hive", Options{}, "database=BANK table=T column=C", "wh.bank.t", true},
		{"trino", "trino", Options{}, "catalog=wh schema=bank table=t column=c", "wh.bank.t", true},
		{"trino, another catalog", "trino", Options{}, "catalog=wh2 schema=bank table=t column=c", "wh.bank.t", false},
		{"trino, wildcards", "trino", Options{}, "catalog=* schema=b*k table=? column=?", "wh.bank.t", true},
		{"trino, wildcard that does not match", "trino", Options{}, "catalog=* schema=b*k table=? column=d*", "wh.bank.t", false},
		{"trino, nested", "trino", Options{}, "catalog=wh schema=a.b table=t column=c", "wh.a.b.t", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBuild(t)
			b.typ = x.typ
			b.mask(x.res, "ann: MASK_NULL")
			want := map[int]string{}
			if x.want {
				want[2] = "MASK_NULL"
			}
			if got := masksOf(t, b.state(x.options), ann, table(x.table, "id", "c")); !same(got, want) {
				t.Errorf("masks %v, want %v", got, want)
			}
		})
	}
}

// TestFormerNames: a rename does not unmask, a name that returns does not open.
func TestFormerNames(t *testing.T) {
	b := newBuild(t)
	b.mask("database=s table=t column=ssn", "steward: MASK_NONE", "public: MASK_HASH")
	b.mask("database=s table=t column=note", "public: MASK_NONE")
	b.mask("database=s table=t column=other", "public: MASK_NULL")
	st := b.state(Options{})
	ann, steward := identity.Principal{Name: "ann"}, identity.Principal{Name: "steward"}

	renamed := table("c.s.t", "id", "tax_id")
	renamed.Formerly[2] = []string{"ssn"}
	if got := masksOf(t, st, ann, renamed); !same(got, map[int]string{2: "MASK_HASH"}) {
		t.Errorf("renamed: %v", got)
	}
	if got := masksOf(t, st, steward, renamed); len(got) != 0 {
		t.Errorf("renamed, exempt: %v", got)
	}
	r, err := st.Restrict(ann, renamed)
	if err != nil || r.Columns[2].Origin.Earlier != "ssn" {
		t.Errorf("the earlier name is not told: %+v %v", r.Columns, err)
	}
	r, err = st.Restrict(ann, table("c.s.t", "id", "ssn"))
	if err != nil || r.Columns[2].Origin.ID == 0 || r.Columns[2].Origin.Earlier != "" {
		t.Errorf("the present name is told as an earlier one: %+v %v", r.Columns, err)
	}
	returned := table("c.s.t", "tax_id", "ssn")
	returned.Formerly[1] = []string{"ssn"}
	if got := masksOf(t, st, ann, returned); !same(got, map[int]string{1: "MASK_HASH", 2: "MASK_HASH"}) {
		t.Errorf("a column took the old name: %v", got)
	}
	swapped := table("c.s.t", "id", "note") // ssn renamed to a name that is exempt
	swapped.Formerly[2] = []string{"ssn"}
	if got := masksOf(t, st, ann, swapped); !same(got, map[int]string{2: "MASK_HASH"}) {
		t.Errorf("renamed to an exempt name: %v", got)
	}
	both := table("c.s.t", "id", "other")
	both.Formerly[2] = []string{"ssn"}
	if got := masksOf(t, st, ann, both); !same(got, map[int]string{2: "MASK_NULL"}) {
		t.Errorf("two masks by two names: %v", got)
	}
	if got := masksOf(t, st, ann, table("c.s.t", "id", "tax_id")); len(got) != 0 {
		t.Errorf("a column that never had the name is masked: %v", got)
	}
	r, err = st.Restrict(ann, table("c.s.t", "id", "tax_id"))
	if err != nil || len(r.Notes) != 3 {
		t.Errorf("masks on columns that never existed: %q %v", r.Notes, err)
	}
}

func nested() *plan.Table {
	t := table("c.s.t", "id")
	field := func(id int, name string, typ arrow.DataType, children ...plan.Field) plan.Field {
		return plan.Field{ID: id, Name: name, Type: typ, Children: children}
	}
	email, phone := field(10, "email", plan.String), field(11, "phone", plan.String)
	contact := field(2, "contact", arrow.StructOf(arrow.Field{Name: "email", Type: plan.String}, arrow.Field{Name: "phone", Type: plan.String}), email, phone)
	street := field(13, "street", plan.String)
	address := arrow.StructOf(arrow.Field{Name: "street", Type: plan.String})
	addresses := field(3, "addresses", arrow.ListOf(address), field(12, "element", address, street))
	prefs := field(4, "prefs", arrow.MapOf(plan.String, plan.String), field(14, "key", plan.String), field(15, "value", plan.String))
	t.Fields = append(t.Fields, contact, addresses, prefs)
	return t
}

func TestNestedFields(t *testing.T) {
	ann := identity.Principal{Name: "ann"}
	for _, x := range []struct {
		masks []string
		want  map[int]string
	}{
		{[]string{"contact.email ann: MASK_HASH"}, map[int]string{10: "MASK_HASH"}},
		{[]string{"CONTACT.Phone ann: MASK_NULL"}, map[int]string{11: "MASK_NULL"}},
		{[]string{"contact.former ann: MASK_NULL"}, map[int]string{11: "MASK_NULL"}},
		{[]string{"kontakt.former ann: MASK_NULL"}, map[int]string{11: "MASK_NULL"}},
		{[]string{"email ann: MASK_NULL"}, map[int]string{}},
		{[]string{"addresses.element.street ann: MASK"}, map[int]string{13: "MASK"}},
		{[]string{"addresses.street ann: MASK"}, map[int]string{13: "MASK"}},
		{[]string{"addresses.element ann: MASK_NULL"}, map[int]string{12: "MASK_NULL"}},
		{[]string{"prefs.value ann: MASK"}, map[int]string{15: "MASK"}},
		{[]string{"prefs ann: MASK_NULL", "prefs.value ann: MASK"}, map[int]string{4: "MASK_NULL"}},
		{[]string{"contact ann: CUSTOM f({col})", "contact.email ann: MASK"}, map[int]string{2: "withheld"}},
		{[]string{"contact ann: CUSTOM f({col})", "contact.email bob: MASK"}, map[int]string{2: "CUSTOM"}},
	} {
		b := newBuild(t)
		for _, m := range x.masks {
			column, rest, _ := strings.Cut(m, " ")
			b.mask("database=s table=t column="+column, rest)
		}
		tab := nested()
		tab.Formerly[11], tab.Formerly[2] = []string{"former"}, []string{"kontakt"}
		if got := masksOf(t, b.state(Options{}), ann, tab); !same(got, x.want) {
			t.Errorf("%q: %v, want %v", x.masks, got, x.want)
		}
	}
}

// TestIcebergTags: tags of table properties act like those of Ranger's tag store,
// by field id.
func TestIcebergTags(t *testing.T) {
	b := newBuild(t)
	b.tagMask("PII", "group hr: MASK_NONE", "group sales: MASK", "public: MASK_NULL")
	b.filter(&b.tags, "tag=REGIONAL", "hive:", "group sales: region = 'EU'")
	b.mask("database=s table=t column=ssn", "group sales: MASK_HASH", "group other: MASK_HASH")
	b.filter(&b.data, "database=s table=t", "", "group sales: amount < 5")
	tab := table("c.s.t", "id", "ssn", "mail")
	tab.Tags = map[int][]plan.Tag{2: {{Name: "PII"}}}
	sales, hr := identity.Principal{Name: "x", Groups: []string{"sales"}}, identity.Principal{Name: "y", Groups: []string{"hr"}}
	st := b.state(Options{})
	for _, x := range []struct {
		st   policy.State
		p    identity.Principal
		tags map[int][]plan.Tag
		want map[int]string
	}{
		{st, sales, map[int][]plan.Tag{2: {{Name: "PII"}}}, map[int]string{2: "MASK"}},
		{b.state(Options{MaskPrecedence: ResourceMasksFirst}), sales, map[int][]plan.Tag{2: {{Name: "PII"}}}, map[int]string{2: "MASK_HASH"}},
		{st, hr, map[int][]plan.Tag{2: {{Name: "PII"}}}, map[int]string{}},
		{st, identity.Principal{Name: "z"}, map[int][]plan.Tag{2: {{Name: "PII"}}}, map[int]string{2: "MASK_NULL"}},
		{st, sales, nil, map[int]string{2: "MASK_HASH"}},
		{st, sales, map[int][]plan.Tag{3: {{Name: "other"}, {Name: "PII"}}}, map[int]string{2: "MASK_HASH", 3: "MASK"}},
		{st, sales, map[int][]plan.Tag{0: {{Name: "PII"}}}, map[int]string{1: "MASK", 2: "MASK", 3: "MASK"}},
	} {
		tab.Tags = x.tags
		if got := masksOf(t, x.st, x.p, tab); !same(got, x.want) {
			t.Errorf("%s, tags %v: %v, want %v", x.p.Name, x.tags, got, x.want)
		}
	}
	// A tag filter holds beside the resource filter; a tag on a column is enough.
	for _, x := range []struct {
		st   policy.State
		tags map[int][]plan.Tag
		want string
	}{
		{st, nil, "amount < 5"},
		{st, map[int][]plan.Tag{0: {{Name: "REGIONAL"}}}, "region = 'EU' and amount < 5"},
		{st, map[int][]plan.Tag{3: {{Name: "REGIONAL"}}}, "amount < 5 and region = 'EU'"},
		{b.state(Options{FilterCombination: FiltersAsRanger}), map[int][]plan.Tag{0: {{Name: "REGIONAL"}}}, "region = 'EU'"},
		{b.state(Options{FilterCombination: FiltersAsRanger}), map[int][]plan.Tag{3: {{Name: "REGIONAL"}}}, "amount < 5"},
	} {
		tab.Tags = x.tags
		r, err := x.st.Restrict(sales, tab)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Filters {
			got = append(got, f.SQL)
		}
		if strings.Join(got, " and ") != x.want {
			t.Errorf("tags %v: filters %q, want %q", x.tags, got, x.want)
		}
	}
}

// TestFailClosed: what cannot be applied withholds its column or refuses the
// table; it never leaves a value raw. Each case has a control: another user, whom
// the policy does not concern, is not affected.
func TestFailClosed(t *testing.T) {
	unknownCondition := []model.Condition{{Type: "no-such"}}
	for name, x := range map[string]struct {
		make func(b *build)
		want map[int]string
	}{
		"unknown mask type":       {func(b *build) { b.mask("database=s table=t column=a", "ann: MASK_OF_TOMORROW") }, map[int]string{1: "withheld"}},
		"mask type in lower case": {func(b *build) { b.mask("database=s table=t column=a", "ann: mask") }, map[int]string{1: "withheld"}},
		"no mask type": {func(b *build) {
			b.mask("database=s table=t column=a", "ann: MASK").DataMaskPolicyItems[0].DataMaskInfo = nil
		}, map[int]string{1: "withheld"}},
		"CUSTOM without expression":     {func(b *build) { b.mask("database=s table=t column=a", "ann: CUSTOM") }, map[int]string{1: "withheld"}},
		"CUSTOM with unknown macro":     {func(b *build) { b.mask("database=s table=t column=a", "ann: CUSTOM f(${{rm.rf}})") }, map[int]string{1: "withheld"}},
		"CUSTOM with missing attribute": {func(b *build) { b.mask("database=s table=t column=a", "ann: CUSTOM f(${{USER.none}})") }, map[int]string{1: "withheld"}},
		"mask of another kind by tag": {func(b *build) {
			b.tagMask("T", "ann: MASK").DataMaskPolicyItems[0].DataMaskInfo.DataMaskType = "trino:MASK"
		}, map[int]string{1: "withheld"}},
		"undecided mask": {func(b *build) {
			b.mask("database=s table=t column=a", "ann: MASK").DataMaskPolicyItems[0].Conditions = unknownCondition
		}, map[int]string{0: "refused"}},
		"undecided mask policy": {func(b *build) { b.mask("database=s table=t column=a", "ann: MASK").Conditions = unknownCondition }, map[int]string{0: "refused"}},
		"undecided exemption": {func(b *build) {
			b.mask("database=s table=t column=a", "ann: MASK_NONE", "ann: MASK").DataMaskPolicyItems[0].Conditions = unknownCondition
		}, map[int]string{1: "MASK"}},
		"undecided filter": {func(b *build) {
			b.filter(&b.data, "database=s table=t", "", "ann: x = 1").RowFilterPolicyItems[0].Conditions = unknownCondition
		}, map[int]string{0: "refused"}},
		"filter with unknown macro":     {func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: x = ${{require('fs')}}") }, map[int]string{0: "refused"}},
		"filter with missing attribute": {func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: x = ${{USER.none}}") }, map[int]string{0: "refused"}},
		"filter with a macro in a name": {func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: `${{USER._name}}` = 1") }, map[int]string{0: "refused"}},
		"filter with an open macro":     {func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: x = ${{USER._name") }, map[int]string{0: "refused"}},
		"mask with a broken schedule": {func(b *build) {
			b.mask("database=s table=t column=a", "ann: MASK").ValiditySchedules = []model.Schedule{{EndTime: "later"}}
		}, map[int]string{0: "refused"}},
		"mask in lower case access": {func(b *build) {
			b.mask("database=s table=t column=a", "ann: MASK").DataMaskPolicyItems[0].Accesses[0].Type = "SELECT"
		}, map[int]string{1: "MASK"}},
		"mask with an undecided resource": {func(b *build) { b.mask("database=s table=t column=${{x}}", "ann: MASK") }, map[int]string{0: "refused"}},
		"select denied on a column": {func(b *build) {
			b.policy(&b.data, model.AccessPolicy, "database=s table=t column=a").DenyPolicyItems = []*model.Item{item("ann", "select")}
		}, map[int]string{1: "withheld"}},
		"select denied under an undecided condition": {func(b *build) {
			p := b.policy(&b.data, model.AccessPolicy, "database=s table=t column=a")
			p.DenyPolicyItems = []*model.Item{item("ann", "select")}
			p.DenyPolicyItems[0].Conditions = unknownCondition
		}, map[int]string{1: "withheld"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuild(t)
			x.make(b)
			tab := table("c.s.t", "a", "b")
			tab.Tags = map[int][]plan.Tag{1: {{Name: "T"}}}
			st := b.state(Options{})
			if got := masksOf(t, st, identity.Principal{Name: "ann"}, tab); !same(got, x.want) {
				t.Errorf("%v, want %v", got, x.want)
			}
			if got := masksOf(t, st, identity.Principal{Name: "bob"}, tab); len(got) != 0 {
				t.Errorf("bob: %v", got)
			}
		})
	}
	st := newBuild(t).state(Options{})
	if _, err := st.Restrict(identity.Principal{}, table("c.s.t", "a")); err == nil {
		t.Error("nobody gets an answer")
	}
	for _, tab := range []*plan.Table{nil, {}, {Name: plan.TableName{Catalog: "c", Name: "t"}}} {
		if _, err := st.Restrict(identity.Principal{Name: "ann"}, tab); err == nil {
			t.Error("a table without a full name gets an answer")
		}
	}
}

// TestRoles: roles of the role store and asserted ones, nested; a session with
// fewer roles never sees more.
func TestRoles(t *testing.T) {
	b := newBuild(t)
	b.roles = []*model.Role{
		{Name: "outer", Roles: []model.Member{{Name: "inner"}}},
		{Name: "inner", Users: []model.Member{{Name: "ann"}}, Roles: []model.Member{{Name: "outer"}, {Name: "asserted"}}},
		{Name: "auditor", Users: []model.Member{{Name: "ann"}}},
		{Name: "staff", Groups: []model.Member{{Name: "sales"}}},
	}
	b.users = &model.UserStore{UserGroupMapping: map[string][]string{"sam": {"sales"}}}
	b.mask("database=s table=t column=a", "role auditor: MASK_NONE", "role outer: MASK")
	b.object("root=POLARIS catalog=c namespace=s table=t", item("role auditor", "table-data-read")).DenyPolicyItems = []*model.Item{item("role outer", "table-drop")}
	st := b.state(Options{})
	for _, x := range []struct {
		p    identity.Principal
		want string
	}{
		{identity.Principal{Name: "ann"}, "auditor inner outer"},
		{identity.Principal{Name: "bea", Roles: []string{"asserted"}}, "asserted inner outer"},
		{identity.Principal{Name: "sam"}, "staff"},
		{identity.Principal{Name: "x", Groups: []string{"sales"}}, "staff"},
		{identity.Principal{}, ""},
	} {
		if got := strings.Join(st.Roles(x.p), " "); got != x.want {
			t.Errorf("%+v: roles %q, want %q", x.p, got, x.want)
		}
	}
	o := policy.Object{Catalog: "c", Namespace: []string{"s"}, Name: "t"}
	for _, x := range []struct {
		active []string
		mask   map[int]string
		reads  bool
	}{
		{nil, map[int]string{}, true},
		{[]string{"auditor"}, map[int]string{}, true},
		{[]string{"inner"}, map[int]string{1: "MASK"}, false},
		{[]string{}, map[int]string{1: "MASK"}, false},
		{[]string{"someone else's"}, map[int]string{1: "MASK"}, false},
	} {
		p := identity.Principal{Name: "ann", ActiveRoles: x.active}
		if got := masksOf(t, st, p, table("c.s.t", "a")); !same(got, x.mask) {
			t.Errorf("active %q: %v, want %v", x.active, got, x.mask)
		}
		if d := st.Authorize(p, o, policy.TableDataRead); d.Allow != x.reads {
			t.Errorf("active %q: %+v", x.active, d)
		}
		if d := st.Authorize(p, o, "table-drop"); d.Reason != policy.ExplicitDeny {
			t.Errorf("active %q: a deny for an inactive role is gone: %+v", x.active, d)
		}
	}
	identityOnly := b.state(Options{Groups: GroupsFromIdentity})
	if got := identityOnly.Roles(identity.Principal{Name: "sam"}); len(got) != 0 {
		t.Errorf("groups of the user store count: %v", got)
	}
	rangerOnly := b.state(Options{Groups: GroupsFromRanger})
	if got := rangerOnly.Roles(identity.Principal{Name: "x", Groups: []string{"sales"}}); len(got) != 0 {
		t.Errorf("groups of the identity provider count: %v", got)
	}
}

// TestNestedNamespaces: the spellings that Polaris' authorizer asks for, with the
// one difference that a wildcard in table stops at a level for what gives.
func TestNestedNamespaces(t *testing.T) {
	table := func(name string) policy.Object {
		p := strings.Split(name, "/")
		return policy.Object{Catalog: "c", Namespace: p[:len(p)-1], Name: p[len(p)-1]}
	}
	namespace := func(name string) policy.Object {
		return policy.Object{Catalog: "c", Namespace: strings.Split(name, "/")}
	}
	questions := []struct {
		o    policy.Object
		priv policy.Privilege
	}{
		{table("sales/eu/orders"), policy.TableDataRead},
		{table("sales/orders"), policy.TableDataRead},
		{namespace("sales/eu"), policy.NamespaceProps},
		{namespace("sales"), policy.NamespaceProps},
	}
	for _, x := range []struct{ res, want, denied string }{
		{"namespace=sales.eu table=orders", "----", "----"},
		{"namespace=sales/eu table=orders", "----", "----"},
		{"namespace=sales table=eu/orders", "y---", "y---"},
		{"namespace=sales table=orders", "-y--", "-y--"},
		{"namespace=sales table=eu/*", "y---", "y---"},
		{"namespace=sales table=*", "-y-y", "yy-y"}, // Polaris: yy-y
		{"namespace=s* table=*", "-yyy", "yyyy"},
		{"namespace=sales", "---y", "---y"},
		{"namespace=sales/eu", "--y-", "--y-"},
		{"namespace=sales/*", "--y-", "--y-"},
		{"namespace=sales.eu", "----", "----"},
		{"namespace=* table=*", "yyyy", "yyyy"},
	} {
		b := newBuild(t)
		b.object("root=POLARIS catalog=c "+x.res, item("public", "table-data-read", "namespace-properties-read"))
		d := newBuild(t)
		d.object("root=* catalog=* namespace=* table=*", item("public", "table-data-read", "namespace-properties-read"))
		d.object("root=POLARIS catalog=c " + x.res).DenyPolicyItems = []*model.Item{item("public", "table-data-read", "namespace-properties-read")}
		allowed, denied := "", ""
		for _, q := range questions {
			mark := map[bool]string{true: "y", false: "-"}
			allowed += mark[b.state(Options{}).Authorize(identity.Principal{Name: "x"}, q.o, q.priv).Allow]
			denied += mark[d.state(Options{}).Authorize(identity.Principal{Name: "x"}, q.o, q.priv).Reason == policy.ExplicitDeny]
		}
		if allowed != x.want || denied != x.denied {
			t.Errorf("%s: allows %s, want %s; denies %s, want %s", x.res, allowed, x.want, denied, x.denied)
		}
	}
	// A slash in a name is not a level.
	b := newBuild(t)
	b.object("root=POLARIS catalog=c namespace=sales table=*", item("public", "table-data-read"))
	if d := b.state(Options{}).Authorize(identity.Principal{Name: "x"}, policy.Object{Catalog: "c", Namespace: []string{"sales"}, Name: "a/b"}, policy.TableDataRead); !d.Allow {
		t.Errorf("a table with a slash in its name: %+v", d)
	}
	if d := b.state(Options{}).Authorize(identity.Principal{Name: "x"}, policy.Object{Catalog: "c", Namespace: []string{"sales", "a"}, Name: "b"}, policy.TableDataRead); d.Allow {
		t.Errorf("a nested table passes for one with a slash in its name: %+v", d)
	}
}

func TestObjects(t *testing.T) {
	b := newBuild(t)
	b.object("root=POLARIS catalog=c namespace=s table=t|v", item("ann", "table-data-read"), item("vic", "view-properties-read"), item("meta", "table-list"))
	b.object("root=POLARIS catalog=c namespace=s table=t").DenyPolicyItems = []*model.Item{item("group banned", "table-data-read")}
	b.object("root=POLARIS catalog=c", item("ann", "catalog-content-manage"))
	st := b.state(Options{})
	tab, view := policy.Object{Catalog: "c", Namespace: []string{"s"}, Name: "t"}, policy.Object{Catalog: "c", Namespace: []string{"s"}, Name: "v", View: true}
	for _, x := range []struct {
		p              identity.Principal
		o              policy.Object
		priv           policy.Privilege
		allow, visible bool
		reason         policy.Reason
	}{
		{identity.Principal{Name: "ann"}, tab, policy.TableDataRead, true, true, policy.Granted},
		{identity.Principal{Name: "ann"}, tab, policy.TableList, true, true, policy.Granted}, // implied
		{identity.Principal{Name: "ann"}, tab, "table-drop", false, true, policy.NoGrant},
		{identity.Principal{Name: "ann"}, view, policy.ViewProps, false, false, policy.NoGrant},
		{identity.Principal{Name: "vic"}, view, policy.ViewProps, true, true, policy.Granted},
		{identity.Principal{Name: "vic"}, view, policy.ViewList, true, true, policy.Granted},
		{identity.Principal{Name: "meta"}, tab, policy.TableDataRead, false, true, policy.NoGrant},
		{identity.Principal{Name: "ann", Groups: []string{"banned"}}, tab, policy.TableDataRead, false, false, policy.ExplicitDeny}, // the deny implies table-list
		{identity.Principal{Name: "eve"}, tab, policy.TableDataRead, false, false, policy.NoGrant},
		{identity.Principal{Name: "ann"}, policy.Object{Catalog: "c"}, policy.CatalogList, true, true, policy.Granted},
		{identity.Principal{Name: "ann"}, policy.Object{Catalog: "c", Namespace: []string{"s"}}, policy.NamespaceList, false, false, policy.NoGrant}, // what is granted above is not granted below
		{identity.Principal{Name: "ann"}, policy.Object{Catalog: "c", Name: "t"}, policy.TableDataRead, false, false, policy.NoGrant},
	} {
		if d := st.Authorize(x.p, x.o, x.priv); d.Allow != x.allow || d.Visible != x.visible || d.Reason != x.reason {
			t.Errorf("%s %s %+v: %+v", x.p.Name, x.priv, x.o, d)
		}
	}
	none := b.state(Options{})
	none.objects = nil
	if d := none.Authorize(identity.Principal{Name: "ann"}, tab, policy.TableDataRead); d.Reason != policy.NotDecided || d.Allow || d.Visible {
		t.Errorf("a source without an object gate: %+v", d)
	}
}

// TestExpires: an answer that the clock can change says when.
func TestExpires(t *testing.T) {
	b := newBuild(t)
	b.mask("database=s table=t column=a", "ann: MASK").ValiditySchedules = []model.Schedule{{EndTime: "2026/06/15 12:00:00"}}
	r, err := b.state(Options{}).Restrict(identity.Principal{Name: "ann"}, table("c.s.t", "a"))
	if err != nil || !r.Expires.Equal(time.Date(2026, 6, 15, 12, 0, 0, int(time.Millisecond), time.UTC)) {
		t.Errorf("%v %v", r.Expires, err)
	}
	// What concerns other tables does not shorten the answer.
	r, err = b.state(Options{}).Restrict(identity.Principal{Name: "ann"}, table("c.s.u", "a"))
	if err != nil || !r.Expires.IsZero() {
		t.Errorf("%v %v", r.Expires, err)
	}
	late := newBuild(t)
	late.mask("database=s table=t column=a", "ann: MASK").DataMaskPolicyItems[0].Conditions = []model.Condition{{Type: "_expression", Values: []string{"IS_ACCESS_TIME_AFTER('2026/01/01')"}}}
	r, err = late.state(Options{}).Restrict(identity.Principal{Name: "ann"}, table("c.s.t", "a"))
	if err != nil || len(r.Columns) != 1 || !r.Expires.Equal(time.Date(2026, 6, 15, 10, 0, 1, 0, time.UTC)) {
		t.Errorf("%+v %v", r, err)
	}
	r, err = newBuild(t).state(Options{}).Restrict(identity.Principal{Name: "ann"}, table("c.s.t", "a"))
	if err != nil || !r.Expires.IsZero() || !r.Unrestricted() {
		t.Errorf("%+v %v", r, err)
	}
}

// TestSwap: readers see one state whole while the documents change.
func TestSwap(t *testing.T) {
	dir := captured(t)
	s, _ := openCaptured(t, dir, Options{})
	body := string(read(t, "policies_download_hive.json"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	tab := table("lake.sales.orders", "id", "region")
	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				st, err := s.State()
				if err != nil {
					t.Error(err)
					return
				}
				v := st.(*State).docs.versions()["policies/hive"]
				r, err := st.Restrict(identity.Principal{Name: "bob"}, tab)
				if err != nil || len(r.Filters) != 1 || v > 51 && r.Filters[0].SQL != fmt.Sprintf("v = %d", v) {
					t.Errorf("version %d: %+v %v", v, r, err)
					return
				}
				s.Status()
			}
		}()
	}
	for v := 52; v < 90; v++ {
		text := strings.Replace(body, `"policyVersion": 51`, fmt.Sprintf(`"policyVersion": %d`, v), 1)
		text = strings.Replace(text, `"region = 'US'"`, fmt.Sprintf(`"v = %d"`, v), 1)
		write(t, dir, "policies_hive.json", []byte(text))
		if err := s.Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}
