//go:build e2e

package policyserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// filled is a policy as a server returns it: missing flags stand for their
// defaults, and what the server adds is left out.
func filled(p *model.Policy) *model.Policy {
	b, _ := json.Marshal(p)
	c := &model.Policy{}
	_ = json.Unmarshal(b, c)
	yes := true
	if c.Enabled == nil {
		c.Enabled = &yes
	}
	if c.AuditEnabled == nil {
		c.AuditEnabled = &yes
	}
	for _, list := range [][]*model.Item{c.PolicyItems, c.DenyPolicyItems, c.AllowExceptions, c.DenyExceptions, c.DataMaskPolicyItems, c.RowFilterPolicyItems} {
		for _, i := range list {
			for k := range i.Accesses {
				i.Accesses[k].Type = strings.ToLower(i.Accesses[k].Type)
				if i.Accesses[k].Allowed == nil {
					i.Accesses[k].Allowed = &yes
				}
			}
		}
	}
	c.ID, c.GUID, c.Version, c.ResourceSignature, c.ServiceType = 0, "", 0, "", ""
	c.CreatedBy, c.UpdatedBy, c.CreateTime, c.UpdateTime = "", "", 0, 0
	return c
}

// same compares policies but for what the server adds and the order of labels.
func same(want, got *model.Policy) string {
	return cmp.Diff(filled(want), filled(got), cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare))
}

// whole has every part of a policy that is not about masks and filters.
func whole(t *testing.T) *model.Policy {
	p := on(t, "orders", allow(alice, "SELECT", "update"), &model.Item{Groups: []string{readers}, Accesses: []model.Access{{Type: "select"}}, DelegateAdmin: true})
	p.Description = "all of it: ü € \"quoted\" <b>"
	p.PolicyLabels = []string{"managed-by:sqe", prefix + "team:sales"}
	p.PolicyItems = append(p.PolicyItems, &model.Item{
		Roles: []string{analyst}, Accesses: []model.Access{{Type: "read"}},
		Conditions: []model.Condition{{Type: "_expression", Values: []string{"USER.dept == 'analytics'"}}},
	})
	p.DenyPolicyItems = []*model.Item{allow(bob, "update")}
	p.AllowExceptions = []*model.Item{allow(carol, "select")}
	p.DenyExceptions = []*model.Item{allow(carol, "update")}
	p.Conditions = []model.Condition{{Type: "_expression", Values: []string{"true"}}}
	p.PolicyPriority = 1
	p.ValiditySchedules = []model.Schedule{{StartTime: "2026/01/01 00:00:00", EndTime: "2036/12/31 23:59:59", TimeZone: "Europe/Berlin"}}
	p.AdditionalResources = []map[string]model.Resource{{"database": {Values: []string{database(t)}}, "table": {Values: []string{"extra*"}}, "column": {Values: []string{"c1", "c2"}, Excludes: true}}}
	return p
}

func TestPolicyLife(t *testing.T) {
	want := whole(t)
	before := must[*model.Service](t)(server.Service(ctx, hive))
	made := create(t, want)
	if d := same(want, made); d != "" {
		t.Errorf("created policies differ:\n%s", d)
	}
	if made.ID == 0 || made.GUID == "" || made.Version != 1 || made.ServiceType != "hive" || made.CreatedBy == "" || made.CreateTime == 0 || len(made.ResourceSignature) != 64 {
		t.Errorf("%+v", made)
	}
	after := must[*model.Service](t)(server.Service(ctx, hive))
	if after.PolicyVersion <= before.PolicyVersion {
		t.Errorf("policy version %d after %d", after.PolicyVersion, before.PolicyVersion)
	}
	// However it is found, it is whole.
	byID := must[*model.Policy](t)(server.Policy(ctx, made.ID))
	byName := must[*model.Policy](t)(server.PolicyNamed(ctx, hive, "", want.Name))
	var byGUID model.Policy
	send(t, account, "GET", "public/v2/api/policy/guid/"+made.GUID+"?serviceName="+hive, nil).into(t, 200, &byGUID)
	for name, p := range map[string]*model.Policy{"id": byID, "name": byName, "guid": &byGUID} {
		if d := same(want, p); d != "" || p.ID != made.ID || p.ResourceSignature == "" {
			t.Errorf("by %s:\n%s", name, d)
		}
	}
	all := must[[]*model.Policy](t)(server.Policies(ctx, hive))
	at := slices.IndexFunc(all, func(p *model.Policy) bool { return p.ID == made.ID })
	if at < 0 || same(want, all[at]) != "" || all[at].ResourceSignature != "" || all[at].CreatedBy != "" {
		t.Errorf("in the list: %d", at)
	}
	if !slices.IsSortedFunc(all, func(a, b *model.Policy) int { return int(a.ID - b.ID) }) {
		t.Error("the list is not sorted by id")
	}
	// A change replaces everything; the version that is sent counts for nothing.
	next := on(t, "orders", allow(bob, "select"))
	next.ID, next.Version, next.PolicyLabels = made.ID, 77, []string{prefix + "other"}
	changed := must[*model.Policy](t)(server.UpdatePolicy(ctx, next))
	if d := same(next, changed); d != "" || changed.Version != 2 || changed.ID != made.ID || changed.GUID != made.GUID || changed.CreateTime != made.CreateTime {
		t.Errorf("version %d, guid %s:\n%s", changed.Version, changed.GUID, d)
	}
	// Also when nothing changes.
	if again := must[*model.Policy](t)(server.UpdatePolicy(ctx, next)); again.Version != 3 {
		t.Errorf("version %d", again.Version)
	}
	if v := must[*model.Service](t)(server.Service(ctx, hive)).PolicyVersion; v != after.PolicyVersion+2 {
		t.Errorf("policy version %d after two changes of %d", v, after.PolicyVersion)
	}
	// The history.
	if v := must[[]int64](t)(server.PolicyVersions(ctx, made.ID)); !slices.Equal(v, []int64{1, 2, 3}) {
		t.Errorf("versions %v", v)
	}
	var list struct{ Value string }
	send(t, account, "GET", fmt.Sprintf("plugins/policy/%d/versionList", made.ID), nil).into(t, 200, &list)
	if list.Value != "1,2,3" {
		t.Errorf("version list %q", list.Value)
	}
	for version, p := range map[int64]*model.Policy{1: want, 2: next, 3: next} {
		if d := same(p, must[*model.Policy](t)(server.PolicyAt(ctx, made.ID, version))); d != "" {
			t.Errorf("version %d:\n%s", version, d)
		}
	}
	_, err := server.PolicyAt(ctx, made.ID, 4)
	wantKind(t, err, admin.NotFound, "a version that is not yet")
	if err := server.DeletePolicy(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	_, err = server.Policy(ctx, made.ID)
	wantKind(t, err, admin.NotFound, "a deleted policy")
	_, err = server.PolicyNamed(ctx, hive, "", want.Name)
	wantKind(t, err, admin.NotFound, "a deleted policy by name")
	wantKind(t, server.DeletePolicy(ctx, made.ID), admin.NotFound, "deleting it again")
	_, err = server.UpdatePolicy(ctx, next)
	wantKind(t, err, admin.NotFound, "changing it")
	// Name and resource are free again.
	create(t, whole(t))
}

// TestPolicyNames: a name is any text.
func TestPolicyNames(t *testing.T) {
	for i, name := range []string{
		"sqe: POLARIS/warehouse/sales/orders", "a b+c", "100%", "ünï € 表", "x&y=z?#;", `back\slash`, "quote'\"s", ".", "..", "<script>",
	} {
		p := on(t, fmt.Sprintf("t%d", i), allow(bob, "select"))
		p.Name = name
		made := create(t, p)
		got, err := server.PolicyNamed(ctx, hive, "", name)
		if err != nil || got.ID != made.ID || got.Name != name {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := server.CreatePolicy(ctx, p); admin.KindOf(err) != admin.Exists {
			t.Errorf("%q again: %v", name, err)
		}
	}
}

func TestPolicyRefusals(t *testing.T) {
	first := create(t, on(t, "orders", allow(bob, "select")))
	taken := on(t, "orders", allow(alice, "select"))
	taken.Name += " other"
	_, err := server.CreatePolicy(ctx, taken)
	wantKind(t, err, admin.Exists, "the same resource")
	if e, ok := err.(*admin.Error); !ok || e.Code != 3010 || e.Name != first.Name {
		t.Errorf("the policy in the way is not named: %+v", err)
	}
	named := on(t, "customers", allow(alice, "select"))
	named.Name = first.Name
	_, err = server.CreatePolicy(ctx, named)
	wantKind(t, err, admin.Exists, "the same name")
	for what, change := range map[string]func(p *model.Policy){
		"user": func(p *model.Policy) { p.PolicyItems[0].Users = []string{prefix + "ghost"} },
		"group": func(p *model.Policy) {
			p.DenyPolicyItems = []*model.Item{{Groups: []string{prefix + "ghost"}, Accesses: []model.Access{{Type: "select"}}}}
		},
		"role": func(p *model.Policy) { p.PolicyItems[0].Roles = []string{prefix + "ghost"} },
	} {
		p := on(t, "t_"+what, allow(alice, "select"))
		change(p)
		_, err := server.CreatePolicy(ctx, p)
		wantKind(t, err, admin.UnknownPrincipal, "an unknown "+what)
		if e, ok := err.(*admin.Error); !ok || e.Name != prefix+"ghost" {
			t.Errorf("an unknown %s is not named: %+v", what, err)
		}
	}
	for what, change := range map[string]func(p *model.Policy){
		"an unknown access":        func(p *model.Policy) { p.PolicyItems[0].Accesses[0].Type = "fly" },
		"no principal":             func(p *model.Policy) { p.PolicyItems[0].Users = nil },
		"no access":                func(p *model.Policy) { p.PolicyItems[0].Accesses = nil },
		"an unknown element":       func(p *model.Policy) { p.Resources["planet"] = model.Resource{Values: []string{"x"}} },
		"no resource":              func(p *model.Policy) { p.Resources = nil },
		"no name":                  func(p *model.Policy) { p.Name = "" },
		"an unknown condition":     func(p *model.Policy) { p.Conditions = []model.Condition{{Type: "nosuch", Values: []string{"x"}}} },
		"a malformed time":         func(p *model.Policy) { p.ValiditySchedules = []model.Schedule{{StartTime: "tomorrow"}} },
		"a mask type that is none": func(p *model.Policy) { mask(p, "MASK_BOGUS") },
		"a filter on a column":     func(p *model.Policy) { rows(p, "true") },
		"another access in a filter": func(p *model.Policy) {
			rows(p, "true")
			delete(p.Resources, "column")
			p.RowFilterPolicyItems[0].Accesses[0].Type = "update"
		},
	} {
		p := on(t, "bad", allow(alice, "select"))
		change(p)
		_, err := server.CreatePolicy(ctx, p)
		wantKind(t, err, admin.Invalid, what)
	}
	p := on(t, "lost", allow(alice, "select"))
	p.Service = prefix + "nosuch"
	_, err = server.CreatePolicy(ctx, p)
	wantKind(t, err, admin.NotFound, "an unknown service")
	p = on(t, "lost", allow(alice, "select"))
	p.ZoneName = prefix + "nosuch"
	_, err = server.CreatePolicy(ctx, p)
	wantKind(t, err, admin.NotFound, "an unknown zone")
	moved := on(t, "orders", allow(bob, "select"))
	moved.ID, moved.PolicyType = first.ID, model.RowFilterPolicy
	_, err = server.UpdatePolicy(ctx, moved)
	wantKind(t, err, admin.Invalid, "another type of policy")
	// None of it left anything behind.
	for _, p := range must[[]*model.Policy](t)(server.Policies(ctx, hive)) {
		if strings.HasPrefix(p.Name, t.Name()) && p.ID != first.ID {
			t.Errorf("left behind: %s", p.Name)
		}
	}
	if p := must[*model.Policy](t)(server.Policy(ctx, first.ID)); p.Version != 1 {
		t.Errorf("version %d of a policy that nobody changed", p.Version)
	}
}

func mask(p *model.Policy, kind string) {
	p.PolicyType = model.MaskPolicy
	p.Resources["column"] = model.Resource{Values: []string{"c"}}
	p.PolicyItems[0].DataMaskInfo = &model.DataMaskInfo{DataMaskType: kind}
	p.DataMaskPolicyItems, p.PolicyItems = p.PolicyItems, nil
}

func rows(p *model.Policy, expr string) {
	p.PolicyType = model.RowFilterPolicy
	p.PolicyItems[0].RowFilterInfo = &model.RowFilterInfo{FilterExpr: &expr}
	p.RowFilterPolicyItems, p.PolicyItems = p.PolicyItems, nil
}

// TestMasksAndFilters: items keep their order, which decides.
func TestMasksAndFilters(t *testing.T) {
	m := on(t, "customers", allow(alice, "select"))
	mask(m, "MASK")
	for i, kind := range []string{"MASK_SHOW_LAST_4", "MASK_SHOW_FIRST_4", "MASK_HASH", "MASK_NULL", "MASK_NONE", "MASK_DATE_SHOW_YEAR", "CUSTOM"} {
		item := allow([]string{bob, carol}[i%2], "select")
		item.DataMaskInfo = &model.DataMaskInfo{DataMaskType: kind}
		if kind == "CUSTOM" {
			item.DataMaskInfo.ValueExpr = "concat('x', {col})"
		}
		m.DataMaskPolicyItems = append(m.DataMaskPolicyItems, item)
	}
	if d := cmp.Diff(filled(m).DataMaskPolicyItems, filled(create(t, m)).DataMaskPolicyItems, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	f := on(t, "customers", allow(carol, "select"))
	f.Name += " rows"
	rows(f, "region = 'EU'")
	delete(f.Resources, "column")
	second := allow(alice, "select")
	expr := "region IN (SELECT r FROM m WHERE u = current_user())"
	second.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &expr}
	f.RowFilterPolicyItems = append(f.RowFilterPolicyItems, second)
	if d := cmp.Diff(filled(f).RowFilterPolicyItems, filled(create(t, f)).RowFilterPolicyItems, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	tag := &model.Policy{Service: tagService, Name: t.Name(), PolicyType: model.MaskPolicy, Resources: map[string]model.Resource{"tag": {Values: []string{"PII"}}}}
	item := allow(alice, "hive:select")
	item.DataMaskInfo = &model.DataMaskInfo{DataMaskType: "hive:MASK_HASH"}
	tag.DataMaskPolicyItems = []*model.Item{item}
	if d := same(tag, create(t, tag)); d != "" {
		t.Error(d)
	}
	item.Accesses[0].Type = "select"
	tag.Name, tag.Resources = t.Name()+" bare", map[string]model.Resource{"tag": {Values: []string{"OTHER"}}}
	_, err := server.CreatePolicy(ctx, tag)
	wantKind(t, err, admin.Invalid, "a tag policy whose access names no service type")
	poly := &model.Policy{Service: polaris, Name: t.Name(), PolicyType: model.MaskPolicy, Resources: map[string]model.Resource{"root": {Values: []string{"*"}}}, DataMaskPolicyItems: []*model.Item{allow(alice, "catalog-list")}}
	poly.DataMaskPolicyItems[0].DataMaskInfo = &model.DataMaskInfo{DataMaskType: "MASK"}
	_, err = server.CreatePolicy(ctx, poly)
	wantKind(t, err, admin.Invalid, "a mask where the service type has none")
}

// TestCoexistence: only the equal combination of what makes a policy's signature
// is refused.
func TestCoexistence(t *testing.T) {
	create(t, on(t, "v", allow(bob, "select")))
	no := false
	for what, change := range map[string]func(p *model.Policy){
		"priority": func(p *model.Policy) { p.PolicyPriority = 1 },
		"schedule": func(p *model.Policy) {
			p.ValiditySchedules = []model.Schedule{{EndTime: "2036/12/31 23:59:59", TimeZone: "UTC"}}
		},
		"condition": func(p *model.Policy) {
			p.Conditions = []model.Condition{{Type: "_expression", Values: []string{"true"}}}
		},
		"disabled": func(p *model.Policy) { p.Enabled = &no },
		"case":     func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"V"}} },
	} {
		p := on(t, "v", allow(bob, "select"))
		p.Name += " " + what
		change(p)
		create(t, p)
		if what == "disabled" {
			continue
		}
		p.Name += " again"
		_, err := server.CreatePolicy(ctx, p)
		wantKind(t, err, admin.Exists, what+" twice")
	}
}

func TestSearch(t *testing.T) {
	label := prefix + "search"
	var ids []int64
	for i, table := range []string{"orders", "ord*", "cust"} {
		p := on(t, table, allow([]string{alice, bob, bob}[i], "select"))
		p.PolicyLabels = []string{label, fmt.Sprint(label, i)}
		ids = append(ids, create(t, p).ID)
	}
	find := func(query string) []int64 {
		t.Helper()
		var found []*model.Policy
		send(t, account, "GET", "public/v2/api/policy?serviceName="+hive+"&pageSize=1000&"+query, nil).into(t, 200, &found)
		var out []int64
		for _, p := range found {
			if slices.Contains(ids, p.ID) {
				out = append(out, p.ID)
			}
		}
		slices.Sort(out)
		return out
	}
	for query, want := range map[string][]int64{
		"policyLabelsPartial=" + label:                                ids,
		"policyLabelsPartial=" + label + "1":                          ids[1:2],
		"policyNamePartial=" + t.Name() + "+ord":                      ids[:2],
		"policyName=" + t.Name() + "+cust":                            ids[2:],
		"user=" + alice:                                               ids[:1],
		"policyType=2":                                                nil,
		"resource:database=" + database(t) + "&resource:table=orders": ids[:2],
	} {
		if got := find(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	var paged []int64
	for start := 0; ; start++ {
		var page []*model.Policy
		send(t, account, "GET", fmt.Sprintf("public/v2/api/service/%s/policy?policyLabelsPartial=%s&startIndex=%d&pageSize=1", hive, label, start), nil).into(t, 200, &page)
		if len(page) == 0 {
			break
		}
		if len(page) > 1 || start > 5 {
			t.Fatalf("page %d has %d policies", start, len(page))
		}
		paged = append(paged, page[0].ID)
	}
	if slices.Sort(paged); !slices.Equal(paged, ids) {
		t.Errorf("pages: %v", paged)
	}
	var labels []string
	send(t, account, "GET", "plugins/policyLabels", nil).into(t, 200, &labels)
	if !slices.Contains(labels, label) || !slices.Contains(labels, label+"2") {
		t.Errorf("labels %v", labels)
	}
	var none []*model.Policy
	send(t, account, "GET", "public/v2/api/policy?serviceName="+prefix+"nosuch", nil).into(t, 200, &none)
	send(t, carol, "GET", "public/v2/api/policy?serviceName="+hive, nil).into(t, 200, &none)
	if len(none) > 0 {
		t.Errorf("a user who may nothing finds %d policies", len(none))
	}
}

// TestByNameCalls are the calls of scripts.
func TestByNameCalls(t *testing.T) {
	p := on(t, "orders", allow(bob, "select"))
	create(t, p)
	path := "public/v2/api/service/" + hive + "/policy/" + esc(p.Name)
	var got model.Policy
	p.Description = "by name"
	send(t, account, "PUT", path, p).into(t, 200, &got)
	if got.Version != 2 || got.Description != "by name" {
		t.Errorf("%+v", got)
	}
	p.Description = "if exists"
	send(t, account, "POST", "public/v2/api/policy?updateIfExists=true", p).into(t, 200, &got)
	if got.Version != 3 || got.Description != "if exists" {
		t.Errorf("%+v", got)
	}
	remove := "public/v2/api/policy?servicename=" + hive + "&policyname=" + strings.ReplaceAll(p.Name, " ", "%20")
	send(t, account, "DELETE", remove, nil).into(t, 204, nil)
	send(t, account, "DELETE", remove, nil).into(t, 404, nil)
	p.Name, p.PolicyItems = p.Name+" new", []*model.Item{allow(prefix+"made", "select")}
	send(t, account, "POST", "public/v2/api/policy?createPrincipalsIfAbsent=true", p).into(t, 200, &got)
	if u, err := server.User(ctx, prefix+"made"); err != nil || u.Name != prefix+"made" {
		t.Errorf("%v %v", u, err)
	}
	if err := server.DeletePolicy(ctx, got.ID); err != nil {
		t.Error(err)
	}
}

// TestServiceAdministrators may change the policies of their service.
func TestServiceAdministrators(t *testing.T) {
	steward, err := admin.OpenREST(admin.RESTConfig{URL: base, Username: keyUsers["service.admin.users"], Password: password, AllowHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	p := on(t, "orders", allow(bob, "select"))
	made := must[*model.Policy](t)(steward.CreatePolicy(ctx, p))
	p.ID = made.ID
	if v := must[*model.Policy](t)(steward.UpdatePolicy(ctx, p)).Version; v != 2 {
		t.Errorf("version %d", v)
	}
	if err := steward.DeletePolicy(ctx, made.ID); err != nil {
		t.Error(err)
	}
	for key, user := range keyUsers {
		if key == "service.admin.users" {
			continue
		}
		other, err := admin.OpenREST(admin.RESTConfig{URL: base, Username: user, Password: password, AllowHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Name = t.Name() + " of " + user
		_, err = other.CreatePolicy(ctx, p)
		wantKind(t, err, admin.Forbidden, key)
	}
}
