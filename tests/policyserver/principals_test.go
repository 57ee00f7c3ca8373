//go:build e2e

package policyserver

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func userStore(t *testing.T) *model.UserStore {
	t.Helper()
	u, err := model.DecodeUserStore(documents[3].get(t, engine, hive, -1).body)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUsersAndGroups(t *testing.T) {
	group := prefix + "team"
	g := must[*model.Group](t)(server.CreateGroup(ctx, &model.Group{Name: group, Description: "d", Attributes: map[string]string{"site": "north"}}))
	t.Cleanup(func() { _ = server.DeleteGroup(ctx, group) })
	if g.ID == 0 || g.Description != "d" || g.Attributes["site"] != "north" {
		t.Errorf("%+v", g)
	}
	_, err := server.CreateGroup(ctx, &model.Group{Name: group})
	wantKind(t, err, admin.Exists, "the same group")
	name := prefix + "new.user"
	u := &model.User{
		Name: name, FirstName: "New", LastName: "Üser", Email: name + "@example.com", Description: "d", Groups: []string{group, readers},
		Attributes: map[string]string{"dept": "sales", "quote": "o'neil \"x\""}, Password: password, AdminRoles: []string{"ROLE_USER"},
	}
	before := *userStore(t).Version
	made := must[*model.User](t)(server.CreateUser(ctx, u))
	t.Cleanup(func() { _ = server.DeleteUser(ctx, name) })
	check := func(got *model.User) {
		t.Helper()
		if got.Name != name || got.FirstName != u.FirstName || got.LastName != u.LastName || got.Email != u.Email || !slices.Equal(got.Groups, slices.Sorted(slices.Values(u.Groups))) || got.Attributes["dept"] != u.Attributes["dept"] || got.Attributes["quote"] != u.Attributes["quote"] || !slices.Contains(got.AdminRoles, "ROLE_USER") || got.Password != "" {
			t.Errorf("%+v, want %+v", got, u)
		}
	}
	check(made)
	check(must[*model.User](t)(server.User(ctx, name)))
	all := must[[]*model.User](t)(server.Users(ctx))
	at := slices.IndexFunc(all, func(x *model.User) bool { return x.Name == name })
	if at < 0 {
		t.Fatal("the user is not in the list")
	}
	check(all[at])
	store := userStore(t)
	if *store.Version <= before || store.UserAttrMapping[name]["dept"] != "sales" || store.GroupAttrMapping[group]["site"] != "north" || !slices.Contains(store.UserGroupMapping[name], group) || !slices.Contains(store.UserGroupMapping[name], readers) {
		t.Errorf("user store %d: %v %v", *store.Version, store.UserAttrMapping[name], store.UserGroupMapping[name])
	}
	_, err = server.CreateUser(ctx, u)
	wantKind(t, err, admin.Exists, "the same user")
	_, err = server.CreateUser(ctx, &model.User{Name: prefix + "x", Password: "short", FirstName: "x"})
	wantKind(t, err, admin.Invalid, "a weak password")
	_, err = server.CreateUser(ctx, &model.User{Name: prefix + "x", Password: password, FirstName: "x", Groups: []string{prefix + "nosuch"}})
	wantKind(t, err, admin.UnknownPrincipal, "an unknown group")
	// A change leaves the password.
	u.Password, u.Groups, u.Attributes = "", []string{readers}, map[string]string{"dept": "hr", "quote": ""}
	changed := must[*model.User](t)(server.UpdateUser(ctx, u))
	if !slices.Equal(changed.Groups, []string{readers}) || changed.Attributes["dept"] != "hr" {
		t.Errorf("%+v", changed)
	}
	if r := send(t, name, "GET", "xusers/users/userName/"+name, nil); r.status != 200 && r.status != 403 {
		t.Errorf("the password does not hold any more: %d", r.status)
	}
	u.Password = "An0ther" + password
	must[*model.User](t)(server.UpdateUser(ctx, u))
	if r := send(t, name, "GET", "public/v2/api/policy", nil); r.status != 401 {
		t.Errorf("the old password: %d", r.status)
	}
	// Who is named somewhere is not deleted.
	p := create(t, on(t, "orders", &model.Item{Users: []string{name}, Groups: []string{group}, Accesses: []model.Access{{Type: "select"}}}))
	wantKind(t, server.DeleteUser(ctx, name), admin.InUse, "a user of a policy")
	wantKind(t, server.DeleteGroup(ctx, group), admin.InUse, "a group of a policy")
	if got := must[*model.Policy](t)(server.Policy(ctx, p.ID)); got.Version != 1 || len(got.PolicyItems[0].Users) != 1 {
		t.Errorf("%+v", got)
	}
	if err := server.DeletePolicy(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if err := server.DeleteUser(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := server.DeleteGroup(ctx, group); err != nil {
		t.Fatal(err)
	}
	_, err = server.User(ctx, name)
	wantKind(t, err, admin.NotFound, "a deleted user")
	_, err = server.Group(ctx, group)
	wantKind(t, err, admin.NotFound, "a deleted group")
	wantKind(t, server.DeleteUser(ctx, name), admin.NotFound, "deleting the user again")
	wantKind(t, server.DeleteGroup(ctx, group), admin.NotFound, "deleting the group again")
	if store := userStore(t); store.UserGroupMapping[name] != nil || store.UserAttrMapping[name] != nil || store.GroupAttrMapping[group] != nil {
		t.Error("the user store still has them")
	}
}

func TestRoles(t *testing.T) {
	download := func() map[string]*model.Role {
		r, err := model.DecodeRoles(documents[2].get(t, engine, hive, -1).body)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]*model.Role{"": {ID: *r.RoleVersion}}
		for _, x := range r.RangerRoles {
			out[x.Name] = x
		}
		return out
	}
	before := download()[""].ID
	inner, outer := prefix+"inner", prefix+"outer"
	want := &model.Role{Name: inner, Description: "d", Users: []model.Member{{Name: bob}, {Name: alice, IsAdmin: true}}, Groups: []model.Member{{Name: readers}}}
	made := must[*model.Role](t)(server.CreateRole(ctx, want))
	t.Cleanup(func() { _ = server.DeleteRole(ctx, inner) })
	if made.ID == 0 || made.Description != "d" || !slices.Equal(made.Users, want.Users) || !slices.Equal(made.Groups, want.Groups) {
		t.Errorf("%+v", made)
	}
	must[*model.Role](t)(server.CreateRole(ctx, &model.Role{Name: outer, Roles: []model.Member{{Name: inner}}}))
	t.Cleanup(func() { _ = server.DeleteRole(ctx, outer) })
	got := download()
	if got[""].ID <= before || got[outer] == nil || got[outer].Roles[0].Name != inner || !got[inner].Users[1].IsAdmin {
		t.Errorf("roles %d after %d: %+v", got[""].ID, before, got[outer])
	}
	if byName := must[*model.Role](t)(server.Role(ctx, outer)); byName.ID != got[outer].ID {
		t.Errorf("%+v", byName)
	}
	_, err := server.CreateRole(ctx, want)
	wantKind(t, err, admin.Exists, "the same role")
	for what, r := range map[string]*model.Role{
		"user": {Users: []model.Member{{Name: prefix + "ghost"}}}, "group": {Groups: []model.Member{{Name: prefix + "ghost"}}}, "role": {Roles: []model.Member{{Name: prefix + "ghost"}}},
	} {
		r.Name = prefix + "bad"
		_, err := server.CreateRole(ctx, r)
		wantKind(t, err, admin.UnknownPrincipal, "an unknown "+what)
	}
	_, err = server.Role(ctx, prefix+"nosuch")
	wantKind(t, err, admin.NotFound, "an unknown role")
	// A cycle is taken; whoever evaluates must survive it.
	made.Roles, made.Users = []model.Member{{Name: outer}}, []model.Member{{Name: carol}}
	if changed := must[*model.Role](t)(server.UpdateRole(ctx, made)); len(changed.Users) != 1 || changed.Roles[0].Name != outer || changed.ID != made.ID {
		t.Errorf("%+v", changed)
	}
	made.Roles = nil
	must[*model.Role](t)(server.UpdateRole(ctx, made))
	// The calls that change members.
	change := map[string]any{"grantor": account, "targetRoles": []string{inner}, "users": []string{bob}, "grantOption": true}
	send(t, account, "PUT", "public/v2/api/roles/grant/"+hive, change).into(t, 200, nil)
	has := func(option bool) bool {
		return slices.Contains(must[*model.Role](t)(server.Role(ctx, inner)).Users, model.Member{Name: bob, IsAdmin: option})
	}
	if !has(true) {
		t.Error("the role is not granted")
	}
	change["grantOption"] = false
	send(t, account, "PUT", "public/v2/api/roles/revoke/"+hive, change).into(t, 200, nil)
	if has(true) || has(false) {
		t.Error("the role is not revoked")
	}
	if r := send(t, carol, "PUT", "public/v2/api/roles/grant/"+hive, change); r.status != 400 || has(false) {
		t.Errorf("a user without rights grants a role: %d %s", r.status, r.body)
	}
	p := create(t, on(t, "orders", &model.Item{Roles: []string{inner}, Accesses: []model.Access{{Type: "select"}}}))
	wantKind(t, server.DeleteRole(ctx, inner), admin.InUse, "a role of a policy")
	if err := server.DeletePolicy(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{outer, inner} {
		if err := server.DeleteRole(ctx, name); err != nil {
			t.Fatal(err)
		}
		wantKind(t, server.DeleteRole(ctx, name), admin.NotFound, "deleting the role again")
	}
	if now := download(); now[inner] != nil || now[outer] != nil {
		t.Error("deleted roles are downloaded")
	}
	// Who may create a role.
	r := model.Role{Name: prefix + "by_engine"}
	if got := send(t, engine, "POST", "public/v2/api/roles", r); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
	send(t, engine, "POST", "public/v2/api/roles?serviceName="+hive, r).into(t, 200, nil)
	if err := server.DeleteRole(ctx, r.Name); err != nil {
		t.Error(err)
	}
}

// TestGrantCalls are those of plugins, such as Hive's for GRANT in SQL.
func TestGrantCalls(t *testing.T) {
	q := map[string]any{
		"grantor": engine, "resource": map[string]string{"database": database(t), "table": "orders", "column": "*"},
		"users": []string{bob}, "accessTypes": []string{"select", "update"}, "enableAudit": true,
	}
	path := "plugins/secure/services/%s/" + hive + "?pluginId=test"
	find := func() *model.Policy {
		t.Helper()
		for _, p := range must[[]*model.Policy](t)(server.Policies(ctx, hive)) {
			if slices.Equal(p.Resources["database"].Values, []string{database(t)}) {
				return p
			}
		}
		return nil
	}
	var status struct{ StatusCode int }
	send(t, engine, "POST", fmt.Sprintf(path, "grant"), q).into(t, 200, &status)
	p := find()
	if status.StatusCode != 0 || p == nil || len(p.PolicyItems) != 1 || p.PolicyItems[0].Users[0] != bob || len(p.PolicyItems[0].Accesses) != 2 {
		t.Fatalf("%+v", p)
	}
	t.Cleanup(func() { _ = server.DeletePolicy(ctx, p.ID) })
	q["accessTypes"] = []string{"update"}
	send(t, engine, "POST", fmt.Sprintf(path, "revoke"), q).into(t, 200, nil)
	if p := find(); len(p.PolicyItems) != 1 || len(p.PolicyItems[0].Accesses) != 1 || p.PolicyItems[0].Accesses[0].Type != "select" {
		t.Errorf("%+v", p.PolicyItems)
	}
	q["accessTypes"] = []string{"select"}
	send(t, engine, "POST", fmt.Sprintf(path, "revoke"), q).into(t, 200, nil)
	if p := find(); p == nil || len(p.PolicyItems) != 0 {
		t.Errorf("%+v", p)
	}
	q["grantor"] = carol
	send(t, carol, "POST", fmt.Sprintf(path, "grant"), q).into(t, 403, nil)
	q["grantor"], q["users"] = engine, []string{prefix + "ghost"}
	send(t, engine, "POST", fmt.Sprintf(path, "grant"), q).into(t, 403, nil)
	if p := find(); p == nil || len(p.PolicyItems) != 0 {
		t.Errorf("%+v", p)
	}
}
