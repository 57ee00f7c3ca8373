//go:build e2e

package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// set is one set of policies in the form of each engine.
type set struct {
	Type     string         `json:"type"`
	Policies map[string]any `json:"policies"`
	Tags     any            `json:"tags"`
	Roles    any            `json:"roles"`
	Users    any            `json:"users"`
	// StoreGroups: the groups of the user store count.
	StoreGroups bool      `json:"storeGroups,omitempty"`
	Requests    []request `json:"requests"`
	Measure     float64   `json:"measure,omitempty"` // seconds

	docs eval.Documents
}

// convert goes through JSON.
func convert(t testing.TB, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func pointer(v int64) *int64 { return &v }

func member(names ...string) []model.Member {
	var out []model.Member
	for _, n := range names {
		out = append(out, model.Member{Name: n})
	}
	return out
}

// finish completes the documents by definitions; both engines read the same.
func (s *set) finish(t testing.TB, d eval.Documents) {
	t.Helper()
	d.Policies.ServiceDef = &model.ServiceDef{}
	d.Policies.TagPolicies.ServiceDef = &model.ServiceDef{}
	convert(t, d.Policies, &s.Policies)
	for typ, at := range map[string]map[string]any{s.Type: s.Policies, "tag": s.Policies["tagPolicies"].(map[string]any)} {
		def, err := definition(typ)
		if err != nil {
			t.Fatal(err)
		}
		at["serviceDef"] = def
	}
	p := &model.ServicePolicies{}
	convert(t, s.Policies, p)
	d.Policies = p
	s.Tags, s.Roles, s.Users = d.Tags, d.Roles, d.Users
	s.docs = d
}

func (g *generator) set(t testing.TB, requests int) *set {
	t.Helper()
	s := &set{Type: g.typ, StoreGroups: g.maybe(30)}
	sp := &model.ServicePolicies{ServiceName: "s", PolicyVersion: pointer(1), ServiceConfig: model.Strings{}}
	tp := &model.TagPolicies{ServiceName: "tag", PolicyVersion: pointer(1)}
	sp.TagPolicies = tp
	id := int64(0)
	add := func(list *[]*model.Policy, n, kind int, tag bool) {
		if g.typ == "polaris" && kind != model.AccessPolicy {
			return
		}
		for range n {
			id++
			*list = append(*list, g.policy(id, kind, tag))
		}
	}
	add(&sp.Policies, 2+g.IntN(7), model.AccessPolicy, false)
	add(&sp.Policies, 1+g.IntN(5), model.MaskPolicy, false)
	add(&sp.Policies, 1+g.IntN(5), model.RowFilterPolicy, false)
	add(&tp.Policies, g.IntN(4), model.AccessPolicy, true)
	add(&tp.Policies, g.IntN(4), model.MaskPolicy, true)
	add(&tp.Policies, g.IntN(3), model.RowFilterPolicy, true)
	for n := range g.IntN(7) - 4 {
		name := fmt.Sprintf("z%d", n)
		z := &model.ZonePolicies{ZoneName: name, Resources: g.zoneResources(), ContainsAssociatedTagService: g.maybe(50)}
		add(&z.Policies, 1+g.IntN(3), model.AccessPolicy, false)
		add(&z.Policies, g.IntN(3), model.MaskPolicy, false)
		add(&z.Policies, g.IntN(3), model.RowFilterPolicy, false)
		for _, p := range z.Policies {
			p.ZoneName = name
		}
		for _, p := range tp.Policies {
			if g.maybe(30) {
				p.ZoneName = name
			}
		}
		if sp.SecurityZones == nil {
			sp.SecurityZones = map[string]*model.ZonePolicies{}
		}
		sp.SecurityZones[name] = z
	}
	if g.maybe(6) {
		sp.ServiceConfig["ranger.plugin.super.users"] = "u3"
	}
	if g.maybe(4) {
		sp.ServiceConfig["ranger.plugin.super.groups"] = "Grp"
	}
	s.finish(t, eval.Documents{Policies: sp, Tags: g.tags(), Roles: g.roles(), Users: g.users()})
	for range requests {
		s.Requests = append(s.Requests, g.request())
	}
	return s
}

func (g *generator) zoneResources() []map[string][]string {
	var out []map[string][]string
	for range 1 + g.IntN(2) {
		h := hierarchies[g.typ][0]
		m := map[string][]string{}
		for _, l := range h[:1+g.IntN(min(3, len(h)))] {
			m[l.name] = g.some(1, append([]string{"*"}, l.names...)...)
			if l.name == "database" || l.name == "schema" || l.name == "namespace" {
				m[l.name] = []string{g.one("zoned", "zo*", l.names[2])}
			}
		}
		out = append(out, m)
	}
	return out
}

func (g *generator) tags() *model.ServiceTags {
	tags := &model.ServiceTags{Op: "add_or_update", ServiceName: "s", TagVersion: pointer(1), Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	for n, typ := range []string{"A", "B", "C", "Pïi"} {
		attributes := model.Strings{"level": g.one("1", "3")}
		if g.maybe(60) {
			attributes["expiry_date"] = g.now.AddDate(0, 0, g.IntN(14)-7).Format(g.one("2006/01/02", "2006/01/02 15:04:05", "2006-01-02T15:04:05.000Z"))
		}
		tags.Tags[fmt.Sprint(n+1)] = model.Tag{ID: int64(n + 1), Type: typ, Attributes: attributes, ValidityPeriods: g.schedules()}
	}
	h := hierarchies[g.typ][0]
	for n := range g.IntN(7) {
		r := model.ServiceResource{ID: int64(n + 1), ResourceElements: g.resources(h[:1+g.IntN(len(h))], g.maybe(15), false)}
		tags.ServiceResources = append(tags.ServiceResources, r)
		ids := []int64{int64(1 + g.IntN(4))}
		if second := int64(1 + g.IntN(4)); g.maybe(25) && !slices.Contains(ids, second) {
			ids = append(ids, second)
		}
		tags.ResourceToTagIDs[fmt.Sprint(n+1)] = ids
	}
	return tags
}

// roles are nested, sometimes in a circle.
func (g *generator) roles() *model.Roles {
	r := &model.Roles{ServiceName: "s", RoleVersion: pointer(1), RangerRoles: []*model.Role{
		{ID: 1, Name: "r1", Users: member("u1"), Roles: member("r3")},
		{ID: 2, Name: "r2", Groups: member(g.one("g1", "g2", "public")), Roles: member("r1")},
		{ID: 3, Name: "r3", Users: member(g.one("u2", "u3"))},
		{ID: 4, Name: "rölle", Users: member("ü4"), Groups: member("gröup")},
	}}
	if g.maybe(25) {
		r.RangerRoles[2].Roles = member("r2")
	}
	if g.maybe(25) {
		r.RangerRoles[3].Roles = member("rölle", "r2")
	}
	return r
}

func (g *generator) users() *model.UserStore {
	return &model.UserStore{
		Version: pointer(1), UserGroupMapping: map[string][]string{"u1": {"g1"}, "u2": {"Grp", "gröup"}},
		GroupAttrMapping: map[string]map[string]string{"g1": {"dept": "x"}, "g2": {"dept": "y", "floor": "2"}},
		UserAttrMapping: map[string]map[string]string{
			"u1": {"region": "EU", "level": "3", "sites": "x,y", "dept": "x"}, "u2": {"region": "US", "level": "1", "sites": "y"},
			"u3": {"region": "EU", "level": "2", "sites": "x"}, "ü4": {"region": "ÄÖ", "level": "7", "sites": "ü,z"},
		},
	}
}
