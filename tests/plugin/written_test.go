//go:build e2e

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
	"sqe/policystore"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// written keeps the policies that are sent to a server, each text once.
type written struct {
	admin.Server
	mu   sync.Mutex
	seen map[string]bool
	list []json.RawMessage
}

func (w *written) keep(p *model.Policy) {
	copied := *p
	copied.ID, copied.GUID, copied.Version, copied.Options = 0, "", 0, nil
	copied.CreateTime, copied.UpdateTime = 0, 0
	text, err := json.Marshal(&copied)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen[string(text)] {
		w.seen[string(text)] = true
		w.list = append(w.list, text)
	}
}

func (w *written) CreatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	w.keep(p)
	return w.Server.CreatePolicy(ctx, p)
}

func (w *written) UpdatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	w.keep(p)
	return w.Server.UpdatePolicy(ctx, p)
}

// TestWritten: every policy that grants, denials and revokes write, of all fixtures and
// of random sequences, is good to Ranger's own validator.
func TestWritten(t *testing.T) {
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := policystore.Open(ctx, filepath.Join(t.TempDir(), "policies.db"), policystore.Options{})
	must(err)
	defer store.Close()
	for _, s := range []*model.Service{{Name: "hive", Type: "hive", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}, {Name: "polaris", Type: "polaris"}} {
		_, err := store.CreateService(ctx, s)
		must(err)
	}
	grantees := []policy.Grantee{
		{Kind: policy.UserGrantee, Name: "ann"},
		{Kind: policy.UserGrantee, Name: "Zo\u00eb O'Neil"},
		{Kind: policy.UserGrantee, Name: "a:b@c.example"},
		{Kind: policy.GroupGrantee, Name: "eu"},
		{Kind: policy.RoleGrantee, Name: "teller"},
		{Kind: policy.GroupGrantee, Name: policy.Public},
	}
	for _, g := range grantees {
		switch {
		case g.Kind == policy.UserGrantee:
			_, err = store.CreateUser(ctx, &model.User{Name: g.Name, Password: "Passw0rd-of-tests"})
		case g.Kind == policy.RoleGrantee:
			_, err = store.CreateRole(ctx, &model.Role{Name: g.Name})
		case g.Name != policy.Public:
			_, err = store.CreateGroup(ctx, &model.Group{Name: g.Name})
		}
		must(err)
	}
	sent := &written{Server: store, seen: map[string]bool{}}
	a, err := admin.New(sent, admin.Config{Source: "store", DataService: "hive", PolarisService: "polaris", Reload: func(context.Context) error { return nil }})
	must(err)
	k := a.Grants()
	apply := func(verb grants.Verb, privilege string, o grants.Object, g policy.Grantee, option bool) {
		t.Helper()
		_, err := k.Apply(ctx, policy.Author{User: "root"}, &grants.Statement{
			Verb: verb, Targets: []grants.Target{{Privilege: privilege, Object: o}}, Grantees: []policy.Grantee{g}, Option: option, By: "root", Administrator: true,
		})
		if err != nil && !fault.Is(err, fault.BadStatement) {
			t.Fatalf("%s %s on %s to %s: %v", verb, privilege, o, g.Name, err)
		}
	}
	text, err := os.ReadFile("../../grants/testdata/fixtures.json")
	must(err)
	var doc struct {
		Fixtures []struct {
			Privilege string
			Object    []string
		}
	}
	must(json.Unmarshal(text, &doc))
	if len(doc.Fixtures) != 26 {
		t.Fatalf("%d fixtures", len(doc.Fixtures))
	}
	for _, f := range doc.Fixtures {
		o := grants.Object{Catalog: f.Object[0]}
		if len(f.Object) > 1 {
			o.Namespace = f.Object[1:2]
		}
		if len(f.Object) > 2 {
			o.Name = f.Object[2]
		}
		for i, g := range grantees {
			apply(grants.Grant, f.Privilege, o, g, i%2 == 0)
			apply(grants.Deny, f.Privilege, o, g, false)
			apply(grants.Revoke, f.Privilege, o, g, i%3 == 0)
			apply(grants.Revoke, "ALL", o, g, false)
		}
	}
	objects := []grants.Object{
		{Catalog: "lake"},
		{Catalog: "lake", Namespace: []string{"bank"}},
		{Catalog: "lake", Namespace: []string{"sales", "eu", "de"}},
		{Catalog: "lake", Namespace: []string{grants.Any}, Name: grants.Any},
		{Catalog: "lake", Namespace: []string{"sales", "eu"}, Name: grants.Any},
		{Catalog: "lake", Namespace: []string{"sales", "eu"}, Name: "t"},
		{Catalog: "lake", Namespace: []string{"bank"}, Name: "v", View: true},
		{Catalog: "lake", Namespace: []string{"\u540d\u524d"}, Name: "t\u00e9l\u00e9-1.2"},
		{Catalog: "lake", Namespace: []string{"bank"}, Name: strings.Repeat("long", 60)},
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 11))
		for range 120 {
			verb := []grants.Verb{grants.Grant, grants.Grant, grants.Deny, grants.Revoke}[rng.IntN(4)]
			privileges := grants.Privileges()
			apply(verb, privileges[rng.IntN(len(privileges))], objects[rng.IntN(len(objects))], grantees[rng.IntN(len(grantees))], verb != grants.Deny && rng.IntN(4) == 0)
		}
	}
	if len(sent.list) < 300 {
		t.Fatalf("%d policies were written", len(sent.list))
	}
	definition, err := store.ServiceDef(ctx, "polaris")
	must(err)
	j := start(t)
	validate := func(policies []json.RawMessage, others ...json.RawMessage) []string {
		t.Helper()
		j.send(t, map[string]any{"validate": policies, "others": others, "serviceDef": definition, "service": "polaris"})
		var reply struct{ Refused []string }
		j.receive(t, &reply)
		if len(reply.Refused) != len(policies) {
			t.Fatalf("%d answers for %d policies", len(reply.Refused), len(policies))
		}
		return reply.Refused
	}
	for i, why := range validate(sent.list) {
		if why != "" {
			t.Errorf("%s\nis refused: %s", sent.list[i], why)
		}
	}
	t.Logf("%d policies", len(sent.list))
	// The controls: the validator refuses, with the codes that a Ranger Admin answers with.
	last := string(sent.list[len(sent.list)-1])
	for code, broken := range map[string]string{
		"3022": strings.Replace(last, `"type":"`, `"type":"fly-`, 1),
		"3011": strings.Replace(last, `"catalog":{`, `"planet":{`, 1),
		"3020": emptied(t, last),
		"3007": strings.Replace(last, `"service":"polaris"`, `"service":"nosuch"`, 1),
	} {
		if broken == last {
			t.Errorf("%s: nothing is broken in %s", code, last)
		}
		if why := validate([]json.RawMessage{json.RawMessage(broken)})[0]; !strings.Contains(why, "["+code+"]") {
			t.Errorf("code %s: %q for\n%s", code, why, broken)
		}
	}
}

// emptied is a policy whose items name nobody.
func emptied(t *testing.T, text string) string {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, list := range []string{"policyItems", "denyPolicyItems"} {
		items, _ := p[list].([]any)
		for _, i := range items {
			for _, who := range []string{"users", "groups", "roles"} {
				delete(i.(map[string]any), who)
				n++
			}
		}
	}
	out, err := json.Marshal(p)
	if err != nil || n == 0 {
		t.Fatal(fmt.Sprint(n, " items, ", err))
	}
	return string(out)
}
