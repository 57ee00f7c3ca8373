package grants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/grants"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// servers makes a policy server, and gives clients of it and what several servers of
// SQE write with.
func servers(t *testing.T) (server func() *admin.REST, keeper func(admin.Server) grants.Keeper) {
	t.Helper()
	server, administrator := administrators(t)
	return server, func(s admin.Server) grants.Keeper { return administrator(s, false, nil).Grants() }
}

// administrators is servers, with a choice of what becomes of lost changes.
func administrators(t *testing.T) (server func() *admin.REST, administrator func(s admin.Server, reapply bool, lost func(admin.Loss)) *admin.Administrator) {
	t.Helper()
	ctx := context.Background()
	store, err := policystore.Open(ctx, filepath.Join(t.TempDir(), "policies.db"), policystore.Options{AdminPassword: "Passw0rd-of-tests"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() { _ = store.Close() })
	for _, s := range []*model.Service{{Name: "hive", Type: "hive", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}, {Name: "polaris", Type: "polaris"}} {
		_, err := store.CreateService(ctx, s)
		must(err)
	}
	for _, u := range []string{"ann", "ben", "other"} {
		_, err := store.CreateUser(ctx, &model.User{Name: u, Password: "Passw0rd-of-tests"})
		must(err)
	}
	face := httptest.NewServer(rest.New(store, rest.Options{}))
	t.Cleanup(face.Close)
	server = func() *admin.REST {
		r, err := admin.OpenREST(admin.RESTConfig{URL: face.URL, Username: "admin", Password: "Passw0rd-of-tests"})
		must(err)
		return r
	}
	administrator = func(s admin.Server, reapply bool, lost func(admin.Loss)) *admin.Administrator {
		a, err := admin.New(s, admin.Config{
			Source: "ranger", DataService: "hive", PolarisService: "polaris", Reload: func(context.Context) error { return nil },
			ReapplyLost: reapply, Lost: lost,
		})
		must(err)
		return a
	}
	return server, administrator
}

func grantOn(verb grants.Verb, table, user string) *grants.Statement {
	return &grants.Statement{
		Verb: verb, Targets: []grants.Target{{Privilege: "SELECT", Object: grants.Object{Catalog: "lake", Namespace: []string{"sales", "eu"}, Name: table}}},
		Grantees: []policy.Grantee{{Kind: policy.UserGrantee, Name: user}}, By: "root", Administrator: true,
	}
}

// TestAnotherTakesTheWay: while a server grants something, another one takes back the
// last grant for which the way was there, on which the first one relies.
func TestAnotherTakesTheWay(t *testing.T) {
	ctx := context.Background()
	server, keeper := servers(t)
	second := keeper(server())
	if _, err := second.Apply(ctx, policy.Author{User: "root"}, grantOn(grants.Grant, "a", "ann")); err != nil {
		t.Fatal(err)
	}
	l := &lake{T: t}
	met := 0
	l.fails = func(name string) error {
		if !strings.HasSuffix(name, "-b") || met > 0 {
			return nil
		}
		met++
		_, err := second.Apply(ctx, policy.Author{User: "root"}, grantOn(grants.Revoke, "a", "ann"))
		return err
	}
	first := keeper(failing{server(), l})
	if _, err := first.Apply(ctx, policy.Author{User: "root"}, grantOn(grants.Grant, "b", "ann")); err != nil || met != 1 {
		t.Fatal(err, met)
	}
	is, err := first.Access(ctx)
	if err != nil {
		t.Fatal(err)
	}
	should, err := grantOn(grants.Grant, "b", "ann").Run(&grants.Snapshot{Root: is.Root})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := say(is), say(should.After); got != want {
		t.Errorf("there is\n%s\nwant\n%s", got, want)
	}
}

// TestRealm: a policy on the one root that there is, as Polaris names it, is used as
// it stands, and none is made beside it.
func TestRealm(t *testing.T) {
	l, ctx := open(t), context.Background()
	yes := true
	one := func(v string) model.Resource { return model.Resource{Values: []string{v}} }
	by, err := l.store.CreatePolicy(ctx, &model.Policy{
		Service: "polaris", Name: "by hand", Enabled: &yes,
		Resources:   map[string]model.Resource{"root": one("POLARIS"), "catalog": one("lake"), "namespace": one("bank"), "table": one("customers")},
		PolicyItems: []*model.Item{{Users: []string{"ann", "ben"}, Accesses: []model.Access{{Type: "table-data-read", Allowed: &yes}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.root("GRANT SELECT ON customers TO dan")
	l.root("REVOKE SELECT ON customers FROM ann")
	for user, may := range map[string]bool{"ann": false, "ben": true, "dan": true, "cat": false} {
		if _, _, err := l.ask(user, "SELECT COUNT(*) FROM customers"); (err == nil) != may {
			t.Errorf("%s: %v", user, err)
		}
	}
	l.root("REVOKE SELECT ON customers FROM dan")
	after, err := l.store.Policy(ctx, by.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(after.PolicyItems) != 1 || !slices.Equal(after.PolicyItems[0].Users, []string{"ben"}) || after.Resources["root"].Values[0] != "POLARIS" {
		t.Errorf("the policy is %+v", after)
	}
	if list, err := l.store.Policies(ctx, "polaris"); err != nil || len(list) != 1 {
		t.Errorf("%d policies, %v", len(list), err)
	}
}

// TestOneRole: two servers change the members of one role at the same time, and lose
// none; one that goes away meanwhile does not come back.
func TestOneRole(t *testing.T) {
	ctx := context.Background()
	server, keeper := servers(t)
	s := server()
	if _, err := s.CreateRole(ctx, &model.Role{Name: "team", Users: []model.Member{{Name: "other", IsAdmin: true}}}); err != nil {
		t.Fatal(err)
	}
	const each = 20
	for n := range 2 * each {
		if _, err := s.CreateUser(ctx, &model.User{Name: fmt.Sprint("member", n), Password: "Passw0rd-of-tests"}); err != nil {
			t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	for n := range 2 {
		k := keeper(server())
		wait.Go(func() {
			for i := range each {
				who := []policy.Grantee{{Kind: policy.UserGrantee, Name: fmt.Sprint("member", n*each+i)}}
				if err := k.AlterRole(ctx, policy.Author{User: "root"}, "team", who, nil); err != nil {
					t.Errorf("%v: %v", who, err)
				}
				if i%3 != 0 {
					continue
				}
				if err := k.AlterRole(ctx, policy.Author{User: "root"}, "team", nil, who); err != nil {
					t.Errorf("%v: %v", who, err)
				}
			}
		})
	}
	wait.Wait()
	role, err := s.Role(ctx, "team")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, m := range role.Users {
		if got = append(got, m.Name); m.Name == "other" && !m.IsAdmin {
			t.Error("other may not hand the role on any more")
		}
	}
	for n := range 2 * each {
		if n%each%3 != 0 {
			want = append(want, fmt.Sprint("member", n))
		}
	}
	want = append(want, "other")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("members are %v, want %v", got, want)
	}
}

// TestTwoServers: two servers grant and revoke at the same time, for the same users,
// while somebody else writes to the same policies as a Ranger Admin's users do, who
// look before they write. In the end the policies are those of the grants that there
// are, one after the other.
func TestTwoServers(t *testing.T) {
	ctx := context.Background()
	server, keeper := servers(t)
	tables := []string{"a", "b", "c", "d"}
	// Each server has its own tables of each user: what the end must be is known, and
	// both are on the way through the same schemas.
	var mu sync.Mutex
	want := map[string]bool{}
	var slowest time.Duration
	var wait sync.WaitGroup
	for n := range 2 {
		k := keeper(server())
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		wait.Go(func() {
			for range 100 {
				table, user := tables[2*n+rng.IntN(2)], []string{"ann", "ben"}[rng.IntN(2)]
				verb := []grants.Verb{grants.Grant, grants.Revoke}[rng.IntN(2)]
				began := time.Now()
				if _, err := k.Apply(ctx, policy.Author{User: "root"}, grantOn(verb, table, user)); err != nil {
					t.Errorf("%s on %s for %s: %v", verb, table, user, err)
				}
				mu.Lock()
				slowest = max(slowest, time.Since(began))
				want[table+" "+user] = verb == grants.Grant
				mu.Unlock()
			}
		})
	}
	// The third one gives a right of its own on whatever policy there is, and takes it
	// back, through a writer that merges.
	ended := make(chan struct{})
	w := admin.NewWriter(server())
	var third sync.WaitGroup
	third.Go(func() {
		yes := true
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			list, err := w.Server().Policies(ctx, "polaris")
			if err != nil || len(list) == 0 {
				continue
			}
			p := list[n%len(list)]
			_, err = w.Edit(ctx, admin.Place{Service: "polaris", ID: p.ID}, func(p *model.Policy) (*model.Policy, error) {
				if p == nil {
					return nil, nil
				}
				mine := func(i *model.Item) bool { return slices.Contains(i.Users, "other") }
				if slices.ContainsFunc(p.PolicyItems, mine) {
					p.PolicyItems = slices.DeleteFunc(p.PolicyItems, mine)
				} else {
					p.PolicyItems = append(p.PolicyItems, &model.Item{Users: []string{"other"}, Accesses: []model.Access{{Type: "table-list", Allowed: &yes}}})
				}
				return p, nil
			})
			if err != nil && !strings.Contains(err.Error(), "changed by somebody else") && !strings.Contains(err.Error(), "deleted by somebody else") {
				t.Errorf("the third writer: %v", err)
			}
		}
	})
	wait.Wait()
	close(ended)
	third.Wait()
	// One after the other, on a server of their own.
	k := keeper(server())
	is, err := k.Access(ctx)
	if err != nil {
		t.Fatal(err)
	}
	should := &grants.Snapshot{Root: is.Root}
	for key, granted := range want {
		table, user, _ := strings.Cut(key, " ")
		if granted {
			out, err := grantOn(grants.Grant, table, user).Run(should)
			if err != nil {
				t.Fatal(err)
			}
			should = out.After
		}
	}
	if got, want := say(is), say(should); got != want {
		t.Errorf("together:\n%s\none after the other:\n%s", got, want)
	}
	t.Logf("200 statements; the slowest took %s", slowest.Round(time.Millisecond))
}

// say is who may do what by a snapshot, without what the third writer did.
func say(s *grants.Snapshot) string {
	var out []string
	for _, p := range s.Policies {
		for _, i := range p.Allow {
			for _, u := range i.Users {
				if u != "other" {
					for _, x := range i.Types {
						out = append(out, fmt.Sprint(p.Elements, " ", u, " ", x))
					}
				}
			}
		}
		for _, l := range p.Labels {
			if strings.HasPrefix(l, "chm") || strings.HasPrefix(l, "sqe:traversal") {
				out = append(out, fmt.Sprint(p.Elements, " ", l))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "\n")
}
