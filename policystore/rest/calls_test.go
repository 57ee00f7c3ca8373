package rest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/fault"
	"sqe/rangerclient/model"
)

// TestDownloadsOfOldPlugins: they send a password to the path without "secure".
// What is allowed there is what is allowed elsewhere.
func TestDownloadsOfOldPlugins(t *testing.T) {
	f := newFace(t, Options{})
	for path, users := range map[string][2]string{
		"plugins/policies/download/hive": {"plugin", "steward"}, "tags/download/hive": {"tagger", "plugin"},
		"roles/download/hive": {"plugin", "granter"}, "xusers/download/hive": {"lister", "plugin"},
	} {
		f.want(400, "Unauthenticated access not allowed", f.ask("", "GET", "/service/"+path, nil))
		f.want(401, "", f.ask("", "GET", "/service/"+path, nil, func(r *http.Request) { r.SetBasicAuth("plugin", "wrong") }))
		f.want(200, "hive", f.ask(users[0], "GET", "/service/"+path, nil))
		f.want(403, "permission to download", f.ask(users[1], "GET", "/service/"+path, nil))
	}
}

func TestPluginInfo(t *testing.T) {
	f := newFace(t, Options{})
	const url = "/service/plugins/secure/policies/download/hive?pluginId=trino@host1-hive&lastKnownVersion="
	w := f.ask("plugin", "GET", url+"-1", nil)
	var doc model.ServicePolicies
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	f.want(304, "", f.ask("plugin", "GET", fmt.Sprint(url, *doc.PolicyVersion), nil))
	f.want(304, "", f.ask("plugin", "GET", strings.ReplaceAll(fmt.Sprint(url, *doc.PolicyVersion), "host1", "host2"), nil))
	f.want(403, "", f.ask("steward", "GET", url+"-1&pluginId=never", nil))
	var infos []pluginInfo
	if err := json.Unmarshal(f.ask("admin", "GET", "/service/public/v2/api/plugins/info", nil).Body.Bytes(), &infos); err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprint(*doc.PolicyVersion)
	if len(infos) != 2 || infos[0].AppType != "trino" || infos[0].HostName != "host1" || infos[0].Info["policyActiveVersion"] != version || infos[0].Info["policyDownloadedVersion"] != version || infos[1].Info["policyDownloadedVersion"] != "" {
		t.Errorf("%+v", infos)
	}
	f.want(200, `"pluginInfoList":[{`, f.ask("auditor", "GET", "/service/plugins/plugins/info", nil))
	f.want(403, "", f.ask("plain", "GET", "/service/plugins/plugins/info", nil))
	for i := range maxPlugins + 50 {
		f.ask("plugin", "GET", fmt.Sprintf("/service/plugins/secure/policies/download/hive?lastKnownVersion=%s&pluginId=a@h%d", version, i), nil)
	}
	if n := len(f.plugins.list("", "")); n != maxPlugins {
		t.Errorf("%d plugins are remembered", n)
	}
}

func TestServiceAdmins(t *testing.T) {
	f := newFace(t, Options{})
	const policy = "/service/public/v2/api/policy"
	other := policyOf("p", "t")
	other.Service = "open"
	for _, user := range []string{"steward", "member"} {
		w := f.ask(user, "POST", policy, policyOf("of "+user, user))
		f.want(200, `"version":1`, w)
		var p model.Policy
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		// The history names who it was.
		f.want(200, `"createdBy":"`+user, f.ask(user, "GET", fmt.Sprintf("%s/%d", policy, p.ID), nil))
		f.want(200, `"version":2`, f.ask(user, "PUT", fmt.Sprintf("%s/%d", policy, p.ID), p))
		f.want(200, `"value":"1,2"`, f.ask(user, "GET", fmt.Sprintf("/service/plugins/policy/%d/versionList", p.ID), nil))
		f.want(200, "of "+user, f.ask(user, "GET", policy, nil))
		f.want(403, "delegated-admin", f.ask("plugin", "GET", fmt.Sprintf("%s/%d", policy, p.ID), nil))
		f.want(403, "delegated-admin", f.ask("plugin", "GET", fmt.Sprintf("/service/plugins/policy/%d/versionList", p.ID), nil))
		f.want(403, "delegated-admin", f.ask("plugin", "GET", fmt.Sprintf("/service/plugins/policy/%d/version/1", p.ID), nil))
		// Whether there is a policy is for those who may read it.
		f.want(200, "of "+user, f.ask(user, "GET", "/service/public/v2/api/service/hive/policy/of%20"+user, nil))
		f.want(404, "Not found", f.ask(user, "GET", "/service/public/v2/api/service/hive/policy/nosuch", nil))
		for _, path := range []string{"hive/policy/of%20" + user, "hive/policy/nosuch", "nosuch/policy/nosuch"} {
			f.want(403, "delegated-admin", f.ask("plugin", "GET", "/service/public/v2/api/service/"+path, nil))
		}
		f.want(403, "delegated-admin", f.ask("auditor", "PUT", fmt.Sprintf("%s/%d", policy, p.ID), p))
		f.want(200, "of "+user, f.ask("auditor", "GET", fmt.Sprintf("%s/%d", policy, p.ID), nil))
		moved := p
		moved.Service = "open"
		f.want(400, "", f.ask(user, "PUT", fmt.Sprintf("%s/%d", policy, p.ID), moved))
		// "*" names no administrator.
		f.want(403, "delegated-admin", f.ask(user, "POST", policy, other))
		f.want(204, "", f.ask(user, "DELETE", fmt.Sprintf("%s/%d", policy, p.ID), nil))
	}
	f.want(200, "[]", f.ask("plain", "GET", policy, nil))
}

func TestUsersOfOthers(t *testing.T) {
	f := newFace(t, Options{})
	const path = "/service/xusers/users/userName/"
	f.want(403, "", f.ask("plain", "GET", path+"admin", nil))
	f.want(403, "", f.ask("plain", "GET", path+"nosuch", nil))
	f.want(200, `"name":"plain"`, f.ask("plain", "GET", path+"plain", nil))
	f.want(200, `"name":"plain"`, f.ask("auditor", "GET", path+"plain", nil))
	f.want(405, "", f.ask("plain", "DELETE", path+"plain", nil))
}

func TestHiddenPassword(t *testing.T) {
	f := newFace(t, Options{})
	w := f.ask("admin", "GET", "/service/public/v2/api/service/name/hive", nil)
	f.want(200, `"password":"*****"`, w)
	var s model.Service
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	s.Description = "changed"
	f.want(200, "changed", f.ask("admin", "PUT", fmt.Sprintf("/service/public/v2/api/service/%d", s.ID), s))
	s.Configs["password"] = "another-secret"
	f.want(200, `"password":"*****"`, f.ask("admin", "PUT", fmt.Sprintf("/service/public/v2/api/service/%d", s.ID), s))
	for _, path := range []string{"service", "service/name/hive", fmt.Sprintf("service/%d", s.ID)} {
		w := f.ask("admin", "GET", "/service/public/v2/api/"+path, nil)
		f.want(200, `"password":"*****"`, w)
		if strings.Contains(w.Body.String(), "secret") {
			t.Error(w.Body)
		}
	}
}

func TestSearch(t *testing.T) {
	f := newFace(t, Options{})
	ctx := context.Background()
	for i, table := range []string{"orders", "ord*", "cust", "a/b"} {
		p := policyOf(fmt.Sprintf("p%d %s", i, table), table)
		p.PolicyLabels = []string{"lab" + fmt.Sprint(i)}
		if i == 2 {
			no := false
			p.Enabled = &no
			p.PolicyItems[0].Users, p.PolicyItems[0].Groups = nil, []string{"admins_of_hive"}
		}
		if _, err := f.store.CreatePolicy(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"":                           "0123",
		"serviceName=hive":           "0123",
		"serviceName=open":           "",
		"serviceName=nosuch":         "",
		"serviceType=polaris":        "",
		"policyName=p1+ord*":         "1",
		"policyNamePartial=ORD":      "01",
		"policyLabelsPartial=lab":    "0123",
		"policyLabelsPartial=lab3":   "3",
		"policyLabel=lab":            "",
		"policyType=0":               "0123",
		"policyType=1":               "",
		"isEnabled=false":            "2",
		"user=plain":                 "013",
		"group=admins_of_hive":       "2",
		"role=plain":                 "",
		"resource:table=orders":      "01",
		"resource:table=ORDX":        "1",
		"resource:table=a/b":         "3",
		"resource:column=x":          "0123",
		"resource:udf=x":             "",
		"pageSize=2":                 "01",
		"pageSize=2&startIndex=3":    "3",
		"startIndex=9":               "",
		"sortType=desc":              "3210",
		"sortBy=policyName&foo=bar":  "0123",
		"zoneName=z":                 "",
		"resourceSignature=whatever": "0123", // a Ranger Admin does not know it either
	} {
		w := f.ask("admin", "GET", "/service/public/v2/api/policy?"+query, nil)
		var found []map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil {
			t.Fatal(query, w.Body)
		}
		got := ""
		for _, p := range found {
			got += p["name"].(string)[1:2]
			for _, left := range []string{"resourceSignature", "createdBy", "updatedBy", "createTime", "updateTime"} {
				if _, ok := p[left]; ok {
					t.Errorf("a search answers with %s", left)
				}
			}
		}
		if got != want {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	f.want(400, "policyType", f.ask("admin", "GET", "/service/public/v2/api/policy?policyType=x", nil))
	f.want(400, "pageSize", f.ask("admin", "GET", "/service/public/v2/api/policy?pageSize=-1", nil))
	f.want(200, `"totalCount":4`, f.ask("admin", "GET", "/service/plugins/policies?pageSize=1", nil))
	f.want(200, `["lab0","lab1","lab2","lab3"]`, f.ask("admin", "GET", "/service/plugins/policyLabels", nil))
	f.want(200, "p3 a/b", f.ask("admin", "GET", "/service/public/v2/api/service/hive/policy/p3%20a%2Fb", nil))
}

func TestGrant(t *testing.T) {
	f := newFace(t, Options{})
	ctx := context.Background()
	send := func(user, verb string, change func(q map[string]any)) (int, string) {
		q := map[string]any{
			"grantor": "steward", "resource": map[string]string{"database": "d", "table": "T", "column": "*"},
			"users": []string{"plain"}, "accessTypes": []string{"SELECT"},
		}
		if change != nil {
			change(q)
		}
		w := f.ask(user, "POST", "/service/plugins/secure/services/"+verb+"/hive?pluginId=x", q)
		return w.Code, w.Body.String()
	}
	allowed := func() string {
		policies, err := f.store.Policies(ctx, "hive")
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, p := range policies {
			for kind, items := range map[string][]*model.Item{"allow": p.PolicyItems, "deny": p.DenyPolicyItems} {
				for _, i := range items {
					for _, a := range i.Accesses {
						for _, n := range slices.Concat(i.Users, i.Groups, i.Roles) {
							text := kind + " " + a.Type + " " + n
							if i.DelegateAdmin {
								text += "+"
							}
							out = append(out, text)
						}
					}
				}
			}
		}
		slices.Sort(out)
		return strings.Join(slices.Compact(out), ", ")
	}
	for name, c := range map[string]struct {
		user   string
		change func(q map[string]any)
		status int
	}{
		"a user without rights":              {"plain", func(q map[string]any) { q["grantor"] = "plain" }, 403},
		"a user in the name of an admin":     {"plain", func(q map[string]any) { q["grantor"] = "admin" }, 403},
		"a plugin for a user without rights": {"granter", func(q map[string]any) { q["grantor"] = "plain" }, 403},
		"a plugin for itself":                {"granter", func(q map[string]any) { q["grantor"] = "granter" }, 403},
		"a downloading plugin":               {"plugin", nil, 403},
		"an unknown grantor":                 {"granter", func(q map[string]any) { q["grantor"] = "nosuch" }, 403},
		"an unknown grantee":                 {"granter", func(q map[string]any) { q["users"] = []string{"nosuch"} }, 403},
		"nobody":                             {"granter", func(q map[string]any) { q["users"] = nil }, 400},
		"nothing":                            {"granter", func(q map[string]any) { q["accessTypes"] = nil }, 400},
	} {
		if status, body := send(c.user, "grant", c.change); status != c.status || allowed() != "" {
			t.Errorf("%s: %d %s, now %s", name, status, body, allowed())
		}
	}
	step := func(user, verb, want string, change func(q map[string]any)) {
		t.Helper()
		if status, body := send(user, verb, change); status != 200 || allowed() != want {
			t.Errorf("%d %s; %s, want %s", status, body, allowed(), want)
		}
	}
	step("granter", "revoke", "", nil) // nothing to revoke
	step("granter", "grant", "allow select plain", nil)
	step("granter", "grant", "allow select plain, allow update plain+", func(q map[string]any) {
		q["accessTypes"], q["delegateAdmin"] = []string{"update"}, true
	})
	step("admin", "grant", "allow select plain, allow select plugin, allow update plain+", func(q map[string]any) {
		q["users"], q["resource"] = []string{"plugin"}, map[string]string{"database": "D", "table": "t", "column": "*"}
	})
	if policies, _ := f.store.Policies(ctx, "hive"); len(policies) != 1 || !strings.HasPrefix(policies[0].Name, "grant-") {
		t.Errorf("%+v", policies)
	}
	step("steward", "revoke", "allow select plugin, allow update plain", nil)
	step("steward", "revoke", "allow select plugin", func(q map[string]any) { q["replaceExistingPermissions"] = true })
	// A denial of the very same user ends; one of a group does not.
	p := policyOf("deny", "x")
	p.PolicyItems = nil
	p.DenyPolicyItems = []*model.Item{{Users: []string{"plain"}, Groups: []string{"admins_of_hive"}, Accesses: []model.Access{{Type: "select"}}}}
	if _, err := f.store.CreatePolicy(ctx, p); err != nil {
		t.Fatal(err)
	}
	step("steward", "grant", "allow select plain, allow select plugin, deny select admins_of_hive", func(q map[string]any) {
		q["resource"] = map[string]string{"database": "d", "table": "x", "column": "*"}
	})
	w := f.ask("steward", "POST", "/service/plugins/secure/services/grant/nosuch", map[string]any{})
	f.want(404, "", w)
	f.want(400, "Unauthenticated", f.ask("admin", "POST", "/service/plugins/services/grant/hive", map[string]any{}))
}

// TestRoleCalls: an account of a plugin speaks for a user, and it is the user's
// rights that count.
func TestRoleCalls(t *testing.T) {
	f := newFace(t, Options{})
	ctx := context.Background()
	if _, err := f.store.CreateRole(ctx, &model.Role{Name: "r", Users: []model.Member{{Name: "member", IsAdmin: true}, {Name: "lister"}}}); err != nil {
		t.Fatal(err)
	}
	members := func() string {
		r, err := f.store.Role(ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, m := range r.Users {
			out = append(out, fmt.Sprint(m.Name, m.IsAdmin))
		}
		return strings.Join(out, " ")
	}
	const before = "membertrue listerfalse"
	grant := func(user, verb, grantor, grantee string) int {
		q := grantRole{Grantor: grantor, TargetRoles: []string{"r"}, Users: []string{grantee}}
		return f.ask(user, "PUT", "/service/public/v2/api/roles/"+verb+"/hive", q).Code
	}
	for _, c := range []struct{ user, grantor string }{
		{"plain", "plain"}, {"plain", ""}, {"lister", "lister"}, {"plain", "member"}, {"plain", "admin"}, {"steward", "plain"}, {"steward", "lister"}, {"steward", "nosuch"}, {"granter", "admin"}, {"auditor", "auditor"},
	} {
		if code := grant(c.user, "grant", c.grantor, "plain"); code != 400 || members() != before {
			t.Errorf("%+v: %d, %s", c, code, members())
		}
	}
	for _, c := range []struct{ user, grantor string }{{"admin", ""}, {"steward", ""}, {"steward", "steward"}, {"steward", "member"}, {"steward", "admin"}, {"member", "member"}, {"admin", "member"}} {
		if code := grant(c.user, "grant", c.grantor, "plain"); code != 200 || members() != before+" plainfalse" {
			t.Errorf("%+v: %d, %s", c, code, members())
		}
		if code := grant(c.user, "revoke", c.grantor, "plain"); code != 200 || members() != before {
			t.Errorf("%+v: %d, %s", c, code, members())
		}
	}
	const path = "/service/public/v2/api/roles"
	f.want(400, "permission", f.ask("steward", "POST", path+"?serviceName=hive", model.Role{Name: "new", CreatedByUser: "plain"}))
	f.want(400, "permission", f.ask("steward", "POST", path+"?serviceName=open", model.Role{Name: "new"}))
	f.want(400, "permission", f.ask("steward", "POST", path, model.Role{Name: "new"}))
	f.want(400, "permission", f.ask("plain", "POST", path+"?serviceName=hive", model.Role{Name: "new", CreatedByUser: "steward"}))
	f.want(200, "new", f.ask("steward", "POST", path+"?serviceName=hive", model.Role{Name: "new", CreatedByUser: "steward"}))
	f.want(400, "permission", f.ask("steward", "DELETE", path+"/name/new?serviceName=hive&execUser=plain", nil))
	f.want(400, "permission", f.ask("steward", "DELETE", path+"/name/new", nil))
	f.want(204, "", f.ask("steward", "DELETE", path+"/name/new?serviceName=hive&execUser=steward", nil))
	f.want(400, "get details for r", f.ask("lister", "GET", path+"/name/r", nil))
	f.want(200, "member", f.ask("steward", "GET", path+"/name/r?serviceName=hive&execUser=member", nil))
	f.want(400, "get details for r", f.ask("steward", "GET", path+"/name/r?serviceName=hive&execUser=lister", nil))
	f.want(200, "member", f.ask("auditor", "GET", path+"/name/r", nil))
	f.want(400, "", f.ask("steward", "GET", path+"/names?serviceName=hive&execUser=plain", nil))
	f.want(200, `["r"]`, f.ask("steward", "GET", path+"/names?serviceName=hive&execUser=steward", nil))
	f.want(200, `["r"]`, f.ask("lister", "GET", path+"/user/lister", nil))
	f.want(400, "", f.ask("lister", "GET", path+"/user/member", nil))
}

// Roles are not granted in a circle, as in Ranger, and who made a role is who asked.
func TestRolesInACircle(t *testing.T) {
	f := newFace(t, Options{})
	const path = "/service/public/v2/api/roles"
	for _, name := range []string{"a", "b", "c", "d"} {
		f.want(200, `"createdByUser":"admin"`, f.ask("admin", "POST", path+"?serviceName=hive", model.Role{Name: name, CreatedByUser: "steward"}))
	}
	roles := func() string {
		all, err := f.store.Roles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range all {
			out = append(out, r.Name+fmt.Sprint(memberNames(r.Roles)))
		}
		return strings.Join(out, " ")
	}
	grant := func(status int, says, want string, members []string, to ...string) {
		t.Helper()
		f.want(status, says, f.ask("admin", "PUT", path+"/grant/hive", grantRole{TargetRoles: to, Roles: members}))
		if got := roles(); got != want {
			t.Errorf("the roles are %s, want %s", got, want)
		}
	}
	grant(200, "", "a[b] b[] c[] d[]", []string{"b"}, "a")
	grant(200, "", "a[b] b[c] c[] d[]", []string{"c"}, "b")
	grant(400, "Invalid role grant", "a[b] b[c] c[] d[]", []string{"a"}, "b")
	grant(400, "Invalid role grant", "a[b] b[c] c[] d[]", []string{"a"}, "c")
	grant(400, "Invalid role grant", "a[b] b[c] c[] d[]", []string{"d", "a"}, "d", "c")
	grant(400, "Invalid role grant", "a[b] b[c] c[] d[]", []string{"d", "c"}, "c", "d")
	grant(200, "", "a[b c] b[c] c[] d[]", []string{"c"}, "a") // no circle
	grant(200, "", "a[b c] b[c] c[d] d[]", []string{"d"}, "c")
	f.want(200, "", f.ask("admin", "PUT", path+"/revoke/hive", grantRole{TargetRoles: []string{"b"}, Roles: []string{"c"}}))
	f.want(200, "", f.ask("admin", "PUT", path+"/grant/hive", grantRole{TargetRoles: []string{"c"}, Roles: []string{"b"}})) // not any more
}

func TestAudit(t *testing.T) {
	var got []string
	f := newFace(t, Options{Audit: func(_ context.Context, user, service string, event json.RawMessage) error {
		got = append(got, user+" "+service+string(event))
		return nil
	}})
	f.want(200, "2", f.ask("plugin", "POST", auditPath+"?serviceName=hive&appId=trino", `[{"a":1},{"a":2}]`))
	f.want(200, "1", f.ask("admin", "POST", auditPath+"?serviceName=open", `[{"a":3}]`))
	for user, status := range map[string]int{"": 401, "tagger": 403, "plain": 403, "auditor": 403} {
		f.want(status, "", f.ask(user, "POST", auditPath+"?serviceName=hive", `[{"a":4}]`))
	}
	f.want(403, "", f.ask("plugin", "POST", auditPath+"?serviceName=nosuch", `[{"a":4}]`))
	f.want(400, "", f.ask("admin", "POST", auditPath+"?serviceName=nosuch", `[{"a":4}]`))
	f.want(400, "", f.ask("plugin", "POST", auditPath+"?serviceName=hive", `{"a":4}`))
	if fmt.Sprint(got) != `[plugin hive{"a":1} plugin hive{"a":2} admin open{"a":3}]` {
		t.Error(got)
	}
	f = newFace(t, Options{})
	event := `[{"repo":"hive","reqUser":"bob","evtTime":"2026-01-01 10:00:00.000","access":"select","resource":"d/t/c","result":0,"policy":7,"reqData":"SELECT 'a secret'"}]`
	f.want(200, "1", f.ask("plugin", "POST", auditPath+"?serviceName=hive", event))
	if log := f.log.String(); !strings.Contains(log, "user=bob") || !strings.Contains(log, "allowed=false") || !strings.Contains(log, "policy=7") || strings.Contains(log, "secret") {
		t.Error(log)
	}
}

func TestListen(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", ""} {
		if s, err := Listen(address, nil, handler); !fault.Is(err, fault.Config) {
			t.Errorf("%q: %v %v", address, s, err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	for _, certificate := range []*tls.Certificate{nil, {Certificate: [][]byte{der}, PrivateKey: key}} {
		s, err := Listen("127.0.0.1:0", certificate, handler)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		get := func(scheme string, most uint16) error {
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: most}}}
			defer c.CloseIdleConnections()
			r, err := c.Get(scheme + "://" + s.Addr().String())
			if err == nil {
				_ = r.Body.Close()
				if r.StatusCode != 200 {
					err = fmt.Errorf("status %d", r.StatusCode)
				}
			}
			return err
		}
		if certificate == nil {
			if err := get("http", 0); err != nil {
				t.Error(err)
			}
		} else {
			if err := get("https", tls.VersionTLS12); err != nil {
				t.Error(err)
			}
			if get("https", tls.VersionTLS11) == nil || get("http", 0) == nil {
				t.Error("an old TLS, or none, is spoken")
			}
		}
		if _, err := Listen(s.Addr().String(), nil, handler); !fault.Is(err, fault.Config) {
			t.Errorf("the port is taken: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestManyConnections: connections that say nothing take no more than the places,
// and those that wait for one get it.
func TestManyConnections(t *testing.T) {
	s, err := Listen("127.0.0.1:0", nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	l := s.listener.(*bounded)
	const places = 50
	l.places = make(chan struct{}, places)
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	var open []net.Conn
	for range places + 20 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for len(l.places) < places {
		time.Sleep(time.Millisecond)
	}
	answer := make(chan error, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		r, err := client.Get("http://" + s.Addr().String())
		if err == nil {
			err = r.Body.Close()
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Fatalf("there was a place: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, c := range open {
		_ = c.Close()
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(l.places); n != 0 {
		t.Errorf("%d places are not free", n)
	}
}
