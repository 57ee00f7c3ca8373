package eval

import (
	"fmt"
	"testing"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// TestNamesArePlain: whatever somebody is called, or has in an attribute, stands for
// itself where a policy puts it: it is no wildcard, no expression and not the owner.
func TestNamesArePlain(t *testing.T) {
	def, err := servicedef.Definition("hive")
	if err != nil {
		t.Fatal(err)
	}
	allow := func(database, table string, users ...string) *model.Policy {
		return &model.Policy{
			Resources:   map[string]model.Resource{"database": {Values: []string{database}}, "table": {Values: []string{table}}, "column": {Values: []string{"*"}}},
			PolicyItems: []*model.Item{{Users: users, Accesses: []model.Access{{Type: "select"}}}},
		}
	}
	own, home, dept := allow("home_{USER}", "*", "{USER}"), allow("h", "{USER}_*", "{USER}"), allow("d", "${{USER.dept}}*", "{USER}")
	exact, owned := allow("d", "${{USER.dept}}", "{USER}"), allow("o", "*", "{OWNER}")
	both := allow("b", "{USER}-{OWNER}", "{USER}")
	for _, x := range []struct {
		policy                            *model.Policy
		user, dept, database, table, with string // with: the owner
		want                              bool
	}{
		{own, "ann", "", "home_ann", "t", "", true},
		{own, "*", "", "home_ann", "t", "", false},
		{own, "{OWNER}", "", "home_bob", "t", "bob", false},
		{own, "{OWNER}", "", "home_{OWNER}", "t", "bob", true},
		{own, "${{USER.dept}}", "ann", "home_ann", "t", "", false},
		{home, "ann", "", "h", "ann_x", "", true},
		{home, "*", "", "h", "ann_x", "", false},
		{home, "a?n", "", "h", "ann_x", "", false},
		{dept, "ann", "sales", "d", "sales2", "", true},
		{dept, "ann", "*", "d", "sales2", "", false},
		{dept, "ann", "{USER}", "d", "ann2", "", false},
		{dept, "ann", "{USER}", "d", "{USER}2", "", true},
		{exact, "ann", "sales", "d", "sales", "", true},
		{exact, "ann", "*", "d", "sales", "", false},
		{exact, "ann", "*", "d", "*", "", true},
		{owned, "bob", "", "o", "t", "bob", true},
		{owned, "{OWNER}", "", "o", "t", "bob", false},
		{owned, "{OWNER}", "", "o", "t", "{OWNER}", true},
		{both, "ann", "", "b", "ann-bob", "bob", true},
		{both, "{OWNER}", "", "b", "bob-bob", "bob", false},
	} {
		x.policy.ID, x.policy.Name, x.policy.Service = 1, "p", "hive"
		e := Compile(Documents{Policies: &model.ServicePolicies{ServiceName: "hive", ServiceDef: def, Policies: []*model.Policy{x.policy}}}, Options{})
		attributes := map[string]string{"dept": x.dept}
		q := NewRequest(e.Subject(x.user, nil, nil, nil, attributes), "select", time.Now()).With("database", false, x.database).With("table", false, x.table).With("column", false, "c")
		q.Owner = x.with
		if got := e.Access(q).Allowed; got != x.want {
			t.Errorf("%v, %v for %q with dept %q on %s.%s of %q: allowed %v", x.policy.Resources["database"].Values, x.policy.Resources["table"].Values, x.user, x.dept, x.database, x.table, x.with, got)
		}
	}

	// What cannot be decided gives nothing, and a denial of it stands.
	deny := allow("h", "{USER}_*", "{USER}")
	deny.ID, deny.Name, deny.Service, deny.PolicyItems, deny.DenyPolicyItems = 2, "deny", "hive", nil, deny.PolicyItems
	all := allow("h", "*", "{USER}")
	all.ID, all.Name, all.Service = 1, "all", "hive"
	e := Compile(Documents{Policies: &model.ServicePolicies{ServiceName: "hive", ServiceDef: def, Policies: []*model.Policy{all, deny}}}, Options{})
	for user, want := range map[string]bool{"ann": false, "bob": true, "*": false} {
		q := NewRequest(e.Subject(user, nil, nil, nil, nil), "select", time.Now()).With("database", false, "h").With("table", false, "ann_x").With("column", false, "c")
		if got := e.Access(q).Allowed; got != want {
			t.Errorf("denied what is called after them, %q on h.ann_x: allowed %v", user, got)
		}
	}
}

// TestNamesReachNoLevels: a name or attribute with a separator of levels in it gives
// nothing in the levels below, and what it takes there stays taken. In Ranger's engine it is
// one as good as any other.
func TestNamesReachNoLevels(t *testing.T) {
	engine := func(service string, policies ...*model.Policy) *Engine {
		def, err := servicedef.Definition(service)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range policies {
			p.ID, p.Name, p.Service = int64(i+1), fmt.Sprint("p", i), service
		}
		return Compile(Documents{Policies: &model.ServicePolicies{ServiceName: service, ServiceDef: def, Policies: policies}}, Options{})
	}
	namespace := func(values []string, excludes, deny bool) *model.Policy {
		any := model.Resource{Values: []string{"*"}}
		p := &model.Policy{Resources: map[string]model.Resource{"root": any, "catalog": any, "namespace": {Values: values, Excludes: excludes}}}
		items := []*model.Item{{Users: []string{"{USER}"}, Accesses: []model.Access{{Type: "namespace-list"}}}}
		if deny {
			p.DenyPolicyItems = items
		} else {
			p.PolicyItems = items
		}
		return p
	}
	list := func(e *Engine, user, dept, namespace string) bool {
		q := NewRequest(e.Subject(user, nil, nil, nil, map[string]string{"dept": dept}), "namespace-list", time.Now())
		return e.Access(q.With("root", false, "r").With("catalog", false, "c").With("namespace", false, namespace)).Allowed
	}
	own, home, dept := namespace([]string{"{USER}"}, false, false), namespace([]string{"home/{USER}"}, false, false), namespace([]string{"${{USER.dept}}*"}, false, false)
	for _, x := range []struct {
		policies              []*model.Policy
		user, dept, namespace string
		want                  bool
	}{
		{[]*model.Policy{own}, "ann", "", "ann", true},
		{[]*model.Policy{own}, "sales/eu", "", "sales/eu", false},
		{[]*model.Policy{own}, `a\/b`, "", `a\/b`, false},
		{[]*model.Policy{own}, "ann.smith", "", "ann.smith", true}, // no separator here
		{[]*model.Policy{own}, "a,b", "", "a", false},
		{[]*model.Policy{own}, "a%", "", "ab", false},
		{[]*model.Policy{home}, "ann", "", "home/ann", true},
		{[]*model.Policy{home}, "ann/secret", "", "home/ann/secret", false},
		{[]*model.Policy{dept}, "ann", "sales", "sales/eu", true},
		{[]*model.Policy{dept}, "ann", "sales/eu", "sales/eu1", false},
		// What is taken.
		{[]*model.Policy{namespace([]string{"*"}, false, false), namespace([]string{"{USER}"}, false, true)}, "sales/eu", "", "sales/eu", false},
		{[]*model.Policy{namespace([]string{"*"}, false, false), namespace([]string{"{USER}"}, false, true)}, "sales/eu", "", "sales/us", true},
		// All but one.
		{[]*model.Policy{namespace([]string{"{USER}"}, true, false)}, "sales/eu", "", "sales/eu", false},
		{[]*model.Policy{namespace([]string{"{USER}"}, true, false)}, "sales/eu", "", "sales/us", true},
		{[]*model.Policy{namespace([]string{"*"}, false, false), namespace([]string{"{USER}"}, true, true)}, "sales/eu", "", "sales/eu", false},
		{[]*model.Policy{namespace([]string{"*"}, false, false), namespace([]string{"{USER}"}, true, true)}, "ann", "", "ann", true},
	} {
		if got := list(engine("polaris", x.policies...), x.user, x.dept, x.namespace); got != x.want {
			t.Errorf("%v for %q with dept %q in %q: allowed %v", x.policies[len(x.policies)-1].Resources["namespace"], x.user, x.dept, x.namespace, got)
		}
	}

	// An exemption from masks and filters gives; a mask takes.
	on := func(database string, kind int) *model.Policy {
		return &model.Policy{PolicyType: kind, PolicyPriority: 1, Resources: map[string]model.Resource{
			"database": {Values: []string{database}}, "table": {Values: []string{"t"}}, "column": {Values: []string{"c"}},
		}}
	}
	mask := func(p *model.Policy, name string) *model.Policy {
		p.DataMaskPolicyItems = []*model.Item{{Users: []string{"{USER}"}, Accesses: []model.Access{{Type: "select"}}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: name}}}
		return p
	}
	ask := func(user, database, first, second string) MaskAnswer {
		all := mask(on("bank", model.MaskPolicy), second) // wildcards are none in mask policies
		all.PolicyPriority = 0
		e := engine("hive", mask(on("{USER}", model.MaskPolicy), first), all)
		q := NewRequest(e.Subject(user, nil, nil, nil, nil), "select", time.Now()).With("database", false, database, "lake."+database).With("table", false, "t").With("column", false, "c")
		return e.Mask(q, TagsFirst)
	}
	for _, x := range []struct {
		user, first, second string
		exempt              bool
		kind                string
	}{
		{"bank", "MASK_NONE", "MASK_NULL", true, ""},
		{"lake.bank", "MASK_NONE", "MASK_NULL", false, "MASK_NULL"},
		{"bank", "MASK_NULL", "MASK_NONE", false, "MASK_NULL"},
		{"lake.bank", "MASK_NULL", "MASK_NONE", false, "MASK_NULL"},
		{"other", "MASK_NULL", "MASK_NONE", true, ""},
	} {
		if got := ask(x.user, "bank", x.first, x.second); got.Exempt != x.exempt || got.Type != x.kind {
			t.Errorf("%s on {USER} and %s on all, for %s: %+v", x.first, x.second, x.user, got)
		}
	}
}
