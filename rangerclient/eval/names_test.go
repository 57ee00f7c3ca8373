package eval

import (
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
