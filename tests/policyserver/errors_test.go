//go:build e2e

package policyserver

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sqe/rangerclient/model"
)

// captured is what a Ranger Admin 2.9.0 answered.
type captured struct {
	Status int
	Body   json.RawMessage
}

type refusalBody struct {
	StatusCode  int
	MsgDesc     string
	MessageList []struct{ Name, RbKey, Message string }
}

// TestCapturedErrors asks what was asked when the answers were captured, and wants
// them again: status, code, text and messages, with the names of the test.
func TestCapturedErrors(t *testing.T) {
	text, err := os.ReadFile("../../rangerclient/admin/testdata/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]captured
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	first := create(t, on(t, "orders", allow(bob, "select")))
	role := must[*model.Role](t)(server.CreateRole(ctx, &model.Role{Name: prefix + "errors"}))
	t.Cleanup(func() { _ = server.DeleteRole(ctx, role.Name) })
	const policy = "public/v2/api/policy"
	post := func(change func(p *model.Policy)) func() reply {
		return func() reply {
			p := on(t, "other", allow(bob, "select"))
			change(p)
			return send(t, account, "POST", policy, p)
		}
	}
	get := func(user, path string) func() reply {
		return func() reply { return send(t, user, "GET", path, nil) }
	}
	nosuch := prefix + "nosuch"
	for _, c := range []struct {
		name    string
		ask     func() reply
		replace []string // in the captured text: old, new, ...
		part    string   // the text holds this and the code; what else it holds differs from server to server
	}{
		{name: "wrong password", ask: func() reply {
			return send(t, prefix+"no such user", "GET", "public/v2/api/service", nil) // a wrong password would count
		}},
		{name: "no credentials", ask: get("", "public/v2/api/service")},
		{name: "download: user not in policy.download.auth.users", ask: get(alice, "plugins/secure/policies/download/"+hive+"?lastKnownVersion=-1")},
		{name: "download: unknown service", ask: get(engine, "plugins/secure/policies/download/"+nosuch+"?lastKnownVersion=-1"), part: "RANGER_ERROR_SERVICE_NOT_FOUND: ServiceName=" + nosuch},
		{name: "download: number malformed", ask: get(engine, "plugins/secure/policies/download/"+hive+"?lastKnownVersion=abc")},
		{name: "download: unsecured path", ask: get("", "plugins/policies/download/"+hive+"?lastKnownVersion=-1")},
		{name: "tags download: not allowed", ask: get(alice, "tags/secure/download/"+hive+"?lastKnownVersion=-1")},
		{name: "tags import: not an admin", ask: func() reply {
			return send(t, engine, "PUT", "tags/importservicetags", map[string]any{"op": "add_or_update", "serviceName": hive})
		}},
		{name: "policy: unknown service", ask: post(func(p *model.Policy) { p.Service = nosuch }), replace: []string{"nosuch", nosuch}},
		{name: "policy: unknown user", ask: post(func(p *model.Policy) { p.PolicyItems[0].Users = []string{nosuch} }), replace: []string{"ghost", nosuch}},
		{name: "policy: unknown group", ask: post(func(p *model.Policy) { p.PolicyItems[0].Groups = []string{nosuch} }), replace: []string{"ghosts", nosuch}},
		{name: "policy: unknown role", ask: post(func(p *model.Policy) { p.PolicyItems[0].Roles = []string{nosuch} }), replace: []string{"ghost_role", nosuch}},
		{name: "policy: unknown access type", ask: post(func(p *model.Policy) { p.PolicyItems[0].Accesses[0].Type = "fly" }), part: "reason[Invalid access type: access type=[fly], valid access types=[["},
		{name: "policy: unknown resource", ask: post(func(p *model.Policy) {
			p.Resources = map[string]model.Resource{"planet": {Values: []string{"x"}}}
		}), part: "reason[Invalid resources specified. hive policy can specify values for one of the following resource sets: "},
		{name: "policy: same resource", ask: post(func(p *model.Policy) { p.Resources = first.Resources }), replace: []string{"select sales", first.Name, "service=[hive]", "service=[" + hive + "]"}},
		{name: "policy: same name", ask: post(func(p *model.Policy) { p.Name = first.Name }), part: "reason[Another policy already exists for this name: policy-id=["},
		{name: "policy: caller lacks delegated admin", ask: func() reply {
			return send(t, bob, "POST", policy, on(t, "other", allow(bob, "select")))
		}, replace: []string{"'bob'", "'" + bob + "'"}},
		{name: "policy: item without principals", ask: post(func(p *model.Policy) { p.PolicyItems[0].Users = nil })},
		{name: "policy: unknown mask type", ask: post(func(p *model.Policy) { mask(p, "MASK_BOGUS"); p.Name = "n" }), replace: []string{"service='hive'", "service='" + hive + "'"}},
		{name: "policy: mask on a service type without masks", ask: post(func(p *model.Policy) {
			mask(p, "MASK")
			p.Service, p.Resources = polaris, map[string]model.Resource{"root": {Values: []string{"*"}}}
			p.DataMaskPolicyItems[0].Accesses[0].Type = "catalog-list"
		})},
		{name: "policy: delete missing id", ask: func() reply { return send(t, account, "DELETE", policy+"/999999", nil) }},
		{name: "policy: get missing name", ask: get(account, "public/v2/api/service/"+hive+"/policy/"+nosuch)},
		{name: "role: duplicate", ask: func() reply {
			return send(t, account, "POST", "public/v2/api/roles", model.Role{Name: role.Name})
		}, replace: []string{"auditor", role.Name}},
		{name: "role: unknown user", ask: func() reply {
			return send(t, account, "POST", "public/v2/api/roles", model.Role{Name: prefix + "r", Users: []model.Member{{Name: nosuch}}})
		}, replace: []string{"ghost", nosuch}},
		{name: "role: delete missing", ask: func() reply { return send(t, account, "DELETE", "public/v2/api/roles/name/"+nosuch, nil) }, replace: []string{"nosuch", nosuch}},
		{name: "role: get missing", ask: get(account, "public/v2/api/roles/name/"+nosuch), replace: []string{"nosuch", nosuch}},
		{name: "service: get missing", ask: get(account, "public/v2/api/service/name/"+nosuch)},
		{name: "zone: overlap", ask: func() reply {
			zone := func(name, db string) *model.Zone {
				return &model.Zone{Name: name, Services: map[string]model.ZoneService{hive: {Resources: []map[string][]string{{"database": {db}, "table": {"*"}}}}}, AdminUsers: []string{alice}, AuditUsers: []string{alice}}
			}
			made := must[*model.Zone](t)(server.CreateZone(ctx, zone(prefix+"eu", "sqect_eu_*")))
			defer func() { _ = server.DeleteZone(ctx, made.Name) }()
			return send(t, account, "POST", "public/v2/api/zones", zone(prefix+"eu2", "sqect_eu_x"))
		}, part: "reason[Multiple zones:[["},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, ok := answers[c.name]
			if !ok {
				t.Fatal("no such answer was captured")
			}
			delete(answers, c.name)
			got := c.ask()
			if got.status != want.Status {
				t.Errorf("status %d, want %d: %s", got.status, want.Status, got.body)
			}
			if want.Body[0] == '"' {
				var page string
				if err := json.Unmarshal(want.Body, &page); err != nil {
					t.Fatal(err)
				}
				if (page == "") != (len(got.body) == 0) || strings.Contains(page, "<html") != strings.Contains(string(got.body), "<html") {
					t.Errorf("%s, want %s", got.body, page)
				}
				return
			}
			var w, g refusalBody
			if err := json.Unmarshal(want.Body, &w); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got.body, &g); err != nil {
				t.Fatalf("%v: %s", err, got.body)
			}
			if want.Status == 401 && got.header.Get("Content-Type") != "" {
				t.Errorf("content type %s", got.header.Get("Content-Type"))
			}
			if g.StatusCode != w.StatusCode || len(g.MessageList) != len(w.MessageList) || len(w.MessageList) > 0 && g.MessageList[0] != w.MessageList[0] {
				t.Errorf("%s, want %s", got.body, want.Body)
			}
			code := regexp.MustCompile(`error code\[\d+\]`)
			text := strings.NewReplacer(c.replace...).Replace(w.MsgDesc)
			switch {
			case c.part != "":
				if !strings.Contains(g.MsgDesc, c.part) || code.FindString(g.MsgDesc) != code.FindString(w.MsgDesc) {
					t.Errorf("%q, want %q", g.MsgDesc, text)
				}
			case strings.TrimSpace(g.MsgDesc) != strings.TrimSpace(text):
				t.Errorf("%q, want %q", g.MsgDesc, text)
			}
		})
	}
	delete(answers, "policy: simultaneous PUT, the loser") // TestConcurrent
	for name := range answers {
		t.Errorf("%s: captured, and not asked", name)
	}
}

// TestBrokenRequests are refused and change nothing.
func TestBrokenRequests(t *testing.T) {
	for _, body := range []string{"{", "[]", `"x"`, `{"id":"x"}`, `{"policyItems":{}}`} {
		if r := send(t, account, "POST", "public/v2/api/policy", body); r.status != 400 {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	for path, status := range map[string]int{"public/v2/api/nosuch": 404, "nosuch": 404} {
		if r := send(t, account, "GET", path, nil); r.status != status {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	// Only administrators see users, services and zones, and change anything.
	for path, methods := range map[string]string{
		"public/v2/api/service": "GET", "xusers/secure/users": "POST", "xusers/secure/groups": "POST",
		"public/v2/api/servicedef/": "POST",
	} {
		if r := send(t, carol, methods, path, map[string]any{"name": prefix + "x", "type": "hive"}); r.status != 403 {
			t.Errorf("%s %s: %d %s", methods, path, r.status, r.body)
		}
	}
}
