//go:build e2e

package policyserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// TestScripts makes the calls of administrators' scripts as they are written
// outside: with ids as texts, looking first and creating what is missing, adding
// members one by one, twice in a row.
func TestScripts(t *testing.T) {
	group, user, role, service := prefix+"s_group", prefix+"s_user", prefix+"s_role", prefix+"s_hive"
	t.Cleanup(func() {
		_ = server.DeleteService(ctx, service)
		_ = server.DeleteRole(ctx, role)
		_ = server.DeleteUser(ctx, user)
		_ = server.DeleteGroup(ctx, group)
	})
	object := func(method, path string, body any) map[string]any {
		t.Helper()
		r := send(t, account, method, path, body)
		switch {
		case method == "GET" && (r.status == 404 || r.status == 400):
			return nil
		case r.status == 204:
			return nil
		case r.status != 200:
			t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
		}
		var out map[string]any
		if err := json.Unmarshal(r.body, &out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, r.body)
		}
		return out
	}
	id := func(o map[string]any) string { return fmt.Sprintf("%.0f", o["id"]) }
	for round := range 2 {
		g := object("GET", "xusers/groups/groupName/"+group, nil)
		if (g == nil) != (round == 0) {
			t.Fatalf("round %d: %v", round, g)
		}
		if g == nil {
			g = object("POST", "xusers/secure/groups", map[string]any{"name": group, "description": group, "isVisible": 1, "groupSource": 0})
		}
		u := object("GET", "xusers/users/userName/"+user, nil)
		if u == nil {
			u = object("POST", "xusers/secure/users", map[string]any{
				"name": user, "firstName": user, "lastName": "", "password": password, "status": 1, "isVisible": 1, "userSource": 0,
				"userRoleList": []string{"ROLE_USER"}, "groupIdList": []string{}, "otherAttributes": `{"dept": "x"}`,
			})
		}
		if u["password"] == password {
			t.Error("a password is answered")
		}
		if ids, _ := u["groupIdList"].([]any); len(ids) == 0 {
			object("POST", "xusers/groupusers", map[string]any{"name": group, "parentGroupId": g["id"], "userId": u["id"]})
		} else if fmt.Sprintf("%.0f", ids[0]) != id(g) {
			t.Errorf("groups %v", ids)
		}
		r := object("GET", "public/v2/api/roles/name/"+role, nil)
		if r == nil {
			object("POST", "public/v2/api/roles", map[string]any{"name": role, "users": []any{}})
		} else {
			r["users"] = []any{map[string]any{"name": user, "isAdmin": false}}
			r = object("PUT", "public/v2/api/roles/"+id(r), r)
			if users, _ := r["users"].([]any); len(users) != 1 {
				t.Errorf("%v", r)
			}
		}
		if object("GET", "public/v2/api/servicedef/name/hive", nil)["name"] != "hive" {
			t.Error("there is no definition of hive")
		}
		s := object("GET", "public/v2/api/service/name/"+service, nil)
		if s == nil {
			configs := map[string]any{"username": account, "password": "unused", "jdbc.driverClassName": "none", "jdbc.url": "none", "policy.download.auth.users": "*"}
			s = object("POST", "public/v2/api/service", map[string]any{"name": service, "type": "hive", "isEnabled": true, "configs": configs, "tagService": tagService})
			for _, p := range must[[]*model.Policy](t)(server.Policies(ctx, service)) {
				object("DELETE", "public/v2/api/policy/"+itoa(p.ID), nil)
			}
		} else {
			s["configs"].(map[string]any)["tag.download.auth.users"] = user
			s = object("PUT", "public/v2/api/service/"+id(s), s)
		}
		if s["tagService"] != tagService {
			t.Errorf("%v", s)
		}
	}
	if g := must[*model.User](t)(server.User(ctx, user)).Groups; !slices.Equal(g, []string{group}) {
		t.Errorf("groups %v", g)
	}
	for _, d := range documents[:2] { // "*" lets every user in, and the other key this one
		if r := d.get(t, user, service, -1); r.status != 200 {
			t.Errorf("%s: %d %s", d.name, r.status, r.body)
		}
	}
	u := object("GET", "xusers/users/userName/"+user, nil)
	if send(t, account, "DELETE", "public/v2/api/roles/name/"+role, nil).status != 204 ||
		send(t, account, "DELETE", "public/v2/api/service/name/"+service, nil).status != 204 ||
		send(t, account, "DELETE", "xusers/secure/users/id/"+id(u)+"?forceDelete=true", nil).status != 204 {
		t.Error("not everything is removed")
	}
	_, err := server.User(ctx, user)
	wantKind(t, err, admin.NotFound, "a removed user")
}
