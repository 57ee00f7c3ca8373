//go:build e2e

package policyserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// document is one of the downloads of plugins.
type document struct {
	name, path, known string
	version           func(t *testing.T, r reply) int64
}

var documents = []document{
	{"policies", "plugins/secure/policies/download/", "lastKnownVersion", func(t *testing.T, r reply) int64 {
		var d model.ServicePolicies
		r.into(t, 200, &d)
		return *d.PolicyVersion
	}},
	{"tags", "tags/secure/download/", "lastKnownVersion", func(t *testing.T, r reply) int64 {
		var d model.ServiceTags
		r.into(t, 200, &d)
		return *d.TagVersion
	}},
	{"roles", "roles/secure/download/", "lastKnownRoleVersion", func(t *testing.T, r reply) int64 {
		var d model.Roles
		r.into(t, 200, &d)
		return *d.RoleVersion
	}},
	{"users", "xusers/secure/download/", "lastKnownUserStoreVersion", func(t *testing.T, r reply) int64 {
		var d model.UserStore
		r.into(t, 200, &d)
		return *d.Version
	}},
}

func (d document) get(t *testing.T, user, service string, known any) reply {
	t.Helper()
	return send(t, user, "GET", fmt.Sprintf("%s%s?%s=%v&pluginId=test@host-%s", d.path, service, d.known, known, service), nil)
}

func TestKnownVersions(t *testing.T) {
	for _, d := range documents {
		v := d.version(t, d.get(t, engine, hive, -1))
		if r := d.get(t, engine, hive, v); r.status != 304 || len(r.body) > 0 {
			t.Errorf("%s: %d %s for the present version", d.name, r.status, r.body)
		}
		for _, known := range []any{-1, 0, v - 1, v + 1, v + 1000} {
			if r := d.get(t, engine, hive, known); r.status != 200 || d.version(t, r) != v {
				t.Errorf("%s: %d for version %v of %d", d.name, r.status, known, v)
			}
		}
		if r := send(t, engine, "GET", d.path+hive, nil); r.status != 200 {
			t.Errorf("%s: %d without a version", d.name, r.status)
		}
		if r := d.get(t, engine, hive, "abc"); r.status != 404 || len(r.body) > 0 || r.header.Get("Content-Type") != "" {
			t.Errorf("%s: %d %s for a version that is none", d.name, r.status, r.body)
		}
		if r := d.get(t, engine, prefix+"nosuch", -1); r.status != 404 || len(r.body) == 0 {
			t.Errorf("%s: %d %s for an unknown service", d.name, r.status, r.body)
		}
	}
	if r := send(t, engine, "GET", "plugins/secure/tags/download/"+hive, nil); r.status != 404 || len(r.body) > 0 {
		t.Errorf("a path that does not exist: %d %s", r.status, r.body)
	}
}

// TestWhoDownloads is the table of what each key of a service permits.
func TestWhoDownloads(t *testing.T) {
	permitted := map[string]string{
		"policy.download.auth.users": "policies roles", "policy.grantrevoke.auth.users": "policies", "tag.download.auth.users": "tags",
		"userstore.download.auth.users": "users", "service.admin.users": "",
	}
	check := func(user, may string) {
		t.Helper()
		for _, d := range documents {
			want := 403
			if slices.Contains(strings.Fields(may), d.name) {
				want = 200
			}
			if r := d.get(t, user, hive, -1); r.status != want {
				t.Errorf("%s of %s: %d %s, want %d", d.name, user, r.status, r.body, want)
			}
		}
	}
	for key, user := range keyUsers {
		check(user, permitted[key])
	}
	check(account, "policies tags roles users")
	check(engine, "policies tags roles users")
	check(alice, "")
	check(bob, "")
}

func TestPolicyDownload(t *testing.T) {
	policies := documents[0]
	no := false
	active := create(t, on(t, "orders", allow(bob, "select")))
	disabled := on(t, "off", allow(bob, "select"))
	disabled.Enabled = &no
	create(t, disabled)
	later := on(t, "later", allow(bob, "select"))
	later.ValiditySchedules = []model.Schedule{{StartTime: "2099/01/01 00:00:00", EndTime: "2099/12/31 00:00:00", TimeZone: "UTC"}}
	create(t, later)
	tag := create(t, &model.Policy{
		Service: tagService, Name: t.Name(), Resources: map[string]model.Resource{"tag": {Values: []string{"PII"}}},
		PolicyItems: []*model.Item{allow(bob, "hive:select")},
	})
	r := policies.get(t, engine, hive, -1)
	doc, err := model.DecodePolicies(r.body, hive)
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []*model.Policy) []string {
		var out []string
		for _, p := range list {
			out = append(out, p.Name)
			if p.ResourceSignature != "" || p.CreatedBy != "" || p.UpdateTime != 0 {
				t.Errorf("%s: a download does not tell who changed a policy", p.Name)
			}
		}
		return out
	}
	got := names(doc.Policies)
	if !slices.Contains(got, active.Name) || slices.Contains(got, disabled.Name) || !slices.Contains(got, later.Name) {
		t.Errorf("policies %v", got)
	}
	if doc.TagPolicies == nil || doc.TagPolicies.ServiceName != tagService || doc.TagPolicies.ServiceDef == nil || doc.TagPolicies.ServiceDef.Name != "tag" || !slices.Contains(names(doc.TagPolicies.Policies), tag.Name) {
		t.Errorf("tag policies %+v", doc.TagPolicies)
	}
	if doc.ServiceDef.Name != "hive" || doc.ServiceDef.DataMaskDef == nil || len(doc.ServiceDef.Resources) < 5 || doc.ServiceID == 0 || doc.AuditMode == "" {
		t.Errorf("definition %+v, service %d, audit %q", doc.ServiceDef, doc.ServiceID, doc.AuditMode)
	}
	for key := range doc.ServiceConfig {
		if key == "password" || key == "username" || key == "policy.download.auth.users" {
			t.Errorf("the download tells %s", key)
		}
	}
	// A change of a tag policy moves the services that are linked to it; roles,
	// users and tags do not.
	version := func(service string) int64 { return policies.version(t, policies.get(t, engine, service, -1)) }
	beforeHive, beforePolaris := version(hive), version(polaris)
	must[*model.Policy](t)(server.UpdatePolicy(ctx, tag))
	if version(hive) <= beforeHive || version(polaris) <= beforePolaris {
		t.Error("the change of a tag policy does not reach the linked services")
	}
	beforeHive = version(hive)
	role := must[*model.Role](t)(server.CreateRole(ctx, &model.Role{Name: prefix + "moving", Users: []model.Member{{Name: bob}}}))
	if err := server.DeleteRole(ctx, role.Name); err != nil {
		t.Error(err)
	}
	if version(hive) != beforeHive {
		t.Error("a change of roles moves policies")
	}
	// Every change is seen by the next download.
	for range 3 {
		p := must[*model.Policy](t)(server.UpdatePolicy(ctx, active))
		doc, err := model.DecodePolicies(policies.get(t, engine, hive, beforeHive).body, hive)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(doc.Policies, func(x *model.Policy) bool { return x.ID == p.ID })
		if *doc.PolicyVersion <= beforeHive || at < 0 || doc.Policies[at].Version != p.Version {
			t.Errorf("version %d after %d, policy at %d", *doc.PolicyVersion, beforeHive, at)
		}
		beforeHive = *doc.PolicyVersion
	}
}

func TestDisabledService(t *testing.T) {
	name := prefix + "off"
	if err := makeService(&model.Service{Name: name, Type: "polaris"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.DeleteService(ctx, name) })
	s := must[*model.Service](t)(server.Service(ctx, name))
	if r := documents[0].get(t, engine, name, -1); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	no := false
	s.Enabled = &no
	must[*model.Service](t)(server.UpdateService(ctx, s))
	if r := documents[0].get(t, engine, name, -1); r.status != 400 || len(r.body) == 0 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestServices(t *testing.T) {
	name := prefix + "service"
	if err := makeService(&model.Service{Name: name, Type: "hive", Description: "d"}); err != nil {
		t.Fatal(err)
	}
	s := must[*model.Service](t)(server.Service(ctx, name))
	if s.ID == 0 || s.Type != "hive" || s.Configs["password"] != "*****" || s.Configs["jdbc.url"] != "none" || s.TagService != "" || !s.IsEnabled() {
		t.Errorf("%+v", s)
	}
	_, err := server.CreateService(ctx, &model.Service{Name: name, Type: "hive", Configs: s.Configs})
	wantKind(t, err, admin.Exists, "the same name")
	_, err = server.CreateService(ctx, &model.Service{Name: prefix + "x", Type: prefix + "nosuch"})
	wantKind(t, err, admin.NotFound, "an unknown type")
	_, err = server.CreateService(ctx, &model.Service{Name: prefix + "x", Type: "hive"})
	wantKind(t, err, admin.Invalid, "without what the type needs")
	s.TagService, s.Description = tagService, "changed"
	s.Configs[prefix+"key"] = "value"
	if s = must[*model.Service](t)(server.UpdateService(ctx, s)); s.TagService != tagService || s.Description != "changed" || s.Configs[prefix+"key"] != "value" {
		t.Errorf("%+v", s)
	}
	all := must[[]*model.Service](t)(server.Services(ctx))
	if !slices.ContainsFunc(all, func(x *model.Service) bool { return x.Name == name && x.ID == s.ID }) {
		t.Error("it is not in the list")
	}
	p := on(t, "t", allow(bob, "select"))
	p.Service = name
	p = must[*model.Policy](t)(server.CreatePolicy(ctx, p))
	if err := server.DeleteService(ctx, name); err != nil {
		t.Fatal(err)
	}
	_, err = server.Service(ctx, name)
	wantKind(t, err, admin.NotFound, "a deleted service")
	_, err = server.Policy(ctx, p.ID)
	wantKind(t, err, admin.NotFound, "a policy of a deleted service")
	_, err = server.Policies(ctx, name)
	wantKind(t, err, admin.NotFound, "policies of a deleted service")
	wantKind(t, server.DeleteService(ctx, name), admin.NotFound, "deleting it again")
	for _, kind := range []string{"hive", "polaris", "tag"} {
		if def, err := server.ServiceDef(ctx, kind); err != nil || len(def) < 100 {
			t.Errorf("%s %v", def, err)
		}
	}
	_, err = server.ServiceDef(ctx, prefix+"nosuch")
	wantKind(t, err, admin.NotFound, "an unknown definition")
	if defs, err := server.ServiceDefs(ctx); err != nil || len(defs) < 3 {
		t.Errorf("%d definitions, %v", len(defs), err)
	}
}
