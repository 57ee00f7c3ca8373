package grants

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sqe/grants"
	"sqe/policy"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// TestLostBefore: what others erased while no server ran, or just before one stopped, is
// found after the start by the history of the policies alone. It is written again where
// no statement has counted with its absence and nobody can have meant it.
func TestLostBefore(t *testing.T) {
	ctx := context.Background()
	yes := true
	item := func(user string) *model.Item {
		return &model.Item{Users: []string{user}, Accesses: []model.Access{{Type: "table-list", Allowed: &yes}}}
	}
	other := func(p *model.Policy) { p.PolicyItems = append(p.PolicyItems, item("other")) }
	type run struct {
		*testing.T
		server admin.Server
		start  func(reapply bool) *admin.Administrator
		id     int64
		told   []admin.Loss
	}
	apply := func(r *run, a *admin.Administrator, verb grants.Verb, user string) {
		r.Helper()
		if _, err := a.Grants().Apply(ctx, policy.Author{User: "root"}, grantOn(verb, "t", user)); err != nil {
			r.Fatal(err)
		}
	}
	// stale writes back a version with a change.
	stale := func(r *run, v int64, change func(*model.Policy)) {
		r.Helper()
		if r.id == 0 {
			list, err := r.server.Policies(ctx, "polaris")
			if err != nil {
				r.Fatal(err)
			}
			for _, p := range list {
				if strings.HasSuffix(p.Name, "-t") || p.Name == "by hand" {
					r.id = p.ID
				}
			}
		}
		p, err := r.server.PolicyAt(ctx, r.id, v)
		if err != nil {
			r.Fatal(err)
		}
		p.ID = r.id
		change(p)
		if _, err := r.server.UpdatePolicy(ctx, p); err != nil {
			r.Fatal(err)
		}
	}
	both := func(r *run, reapply bool) *admin.Administrator {
		a := r.start(reapply)
		apply(r, a, grants.Grant, "ann")
		apply(r, a, grants.Grant, "ben")
		return a
	}
	for name, c := range map[string]struct {
		do    func(*run)
		want  []string // who reads after the start of a server that writes lost changes again
		doubt string   // of what is told; "": none, so it was written again
		quiet bool     // nothing is told
	}{
		"while down": {
			func(r *run) { both(r, true); stale(r, 1, other) },
			[]string{"ann", "ben", "other"},
			"", false,
		},
		"a revoke, while down": {
			func(r *run) {
				a := both(r, true)
				apply(r, a, grants.Revoke, "ann")
				stale(r, 2, other)
			},
			[]string{"ben", "other"},
			"", false,
		},
		"twice, while down": {
			func(r *run) {
				both(r, true)
				stale(r, 1, other)
				stale(r, 3, func(p *model.Policy) { p.Description = "by hand" })
			},
			[]string{"ann", "ben", "other"},
			"", false,
		},
		"by one who knew none of SQE's versions": {
			func(r *run) {
				p, err := r.server.CreatePolicy(ctx, &model.Policy{
					Service: "polaris", Name: "by hand", Enabled: &yes, PolicyItems: []*model.Item{item("cat")},
					Resources: map[string]model.Resource{
						"root": {Values: []string{"*"}}, "catalog": {Values: []string{"lake"}}, "namespace": {Values: []string{"sales"}}, "table": {Values: []string{"eu/t"}},
					},
				})
				if err != nil {
					r.Fatal(err)
				}
				r.id = p.ID
				both(r, true)
				stale(r, 1, other)
			},
			[]string{"ann", "ben", "cat", "other"},
			"", false,
		},
		"on purpose": {
			func(r *run) {
				both(r, true)
				stale(r, 2, func(p *model.Policy) {
					p.PolicyItems = slices.DeleteFunc(p.PolicyItems, func(i *model.Item) bool { return slices.Equal(i.Users, []string{"ben"}) })
					for _, i := range p.PolicyItems {
						i.Users = slices.DeleteFunc(i.Users, func(u string) bool { return u == "ben" })
					}
				})
			},
			[]string{"ann"},
			"", true,
		},
		"on purpose, over what was lost": {
			// Who removed ann had seen the version without ben.
			func(r *run) {
				both(r, true)
				stale(r, 1, other)
				stale(r, 3, func(p *model.Policy) {
					p.PolicyItems = slices.DeleteFunc(p.PolicyItems, func(i *model.Item) bool { return slices.Equal(i.Users, []string{"ann"}) })
				})
			},
			[]string{"ben", "other"},
			"", false,
		},
		"an old version put back": {
			func(r *run) { both(r, true); stale(r, 1, func(*model.Policy) {}) },
			[]string{"ann"},
			"which may be meant", false,
		},
		"and a statement that changed something since": {
			func(r *run) {
				a := both(r, false)
				stale(r, 1, other)
				apply(r, a, grants.Revoke, "ann")
			},
			[]string{"other"},
			"", true,
		},
		"and a statement that had nothing to change since": {
			// The REVOKE was meant for what was erased already.
			func(r *run) {
				a := both(r, false)
				stale(r, 1, other)
				apply(r, a, grants.Revoke, "ben")
			},
			[]string{"ann", "other"},
			"", true,
		},
		"and somebody wrote since what a statement had counted with": {
			func(r *run) {
				a := both(r, false)
				stale(r, 1, other)
				apply(r, a, grants.Revoke, "ben")
				stale(r, 4, func(p *model.Policy) { p.Description = "by hand" })
			},
			[]string{"ann", "other"},
			"before this server looked", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, administrator := administrators(t)
			r := &run{T: t, server: server()}
			if _, err := server().CreateUser(ctx, &model.User{Name: "cat", Password: "Passw0rd-of-tests"}); err != nil {
				t.Fatal(err)
			}
			r.start = func(reapply bool) *admin.Administrator {
				return administrator(server(), reapply, func(l admin.Loss) { r.told = append(r.told, l) })
			}
			c.do(r)
			r.told = nil
			for range 2 { // after another start nothing is done again
				a := r.start(true)
				for range 2 {
					list, err := r.server.Policies(ctx, "polaris")
					if err == nil {
						err = a.Look(ctx, list, nil)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if r.id == 0 {
				t.Fatal("the test wrote nothing")
			}
			p, err := r.server.Policy(ctx, r.id)
			if err != nil {
				t.Fatal(err)
			}
			var who []string
			for _, i := range p.PolicyItems {
				who = append(who, i.Users...)
			}
			slices.Sort(who)
			if who = slices.Compact(who); !slices.Equal(who, c.want) {
				t.Errorf("%v read, want %v; told: %v", who, c.want, r.told)
			}
			switch {
			case c.quiet && len(r.told) > 0:
				t.Errorf("told: %v", r.told)
			case c.quiet:
			case len(r.told) == 0 || c.doubt == "" && (len(r.told) != 1 || r.told[0].Restored.IsZero()):
				t.Errorf("told: %v", r.told)
			case c.doubt != "" && (!r.told[0].Restored.IsZero() || !strings.Contains(r.told[0].Doubt, c.doubt)):
				t.Errorf("told: %v", r.told)
			}
		})
	}
}
