package grants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// plain is a writer as scripts are: it reads a policy, takes its time, and writes back
// what it read with a change of its own, whatever was written meanwhile. It never
// merges.
func plain(ctx context.Context, s admin.Server, id int64, think time.Duration, change func(*model.Policy)) error {
	p, err := s.Policy(ctx, id)
	if err != nil {
		return err
	}
	time.Sleep(think)
	change(p)
	_, err = s.UpdatePolicy(ctx, p)
	return err
}

// gives adds or takes a right of a user that no statement of the tests is about.
func gives(n int) func(*model.Policy) {
	return func(p *model.Policy) {
		yes := true
		mine := func(i *model.Item) bool { return slices.Contains(i.Users, "other") }
		p.Description = fmt.Sprint("changed by hand, ", n)
		if n%2 == 1 && slices.ContainsFunc(p.PolicyItems, mine) {
			p.PolicyItems = slices.DeleteFunc(p.PolicyItems, mine)
		} else if !slices.ContainsFunc(p.PolicyItems, mine) {
			p.PolicyItems = append(p.PolicyItems, &model.Item{Users: []string{"other"}, Accesses: []model.Access{{Type: "table-list", Allowed: &yes}}})
		}
	}
}

// TestStaleWriter: two servers grant and revoke, while a plain writer writes older
// versions back. After one poll more the policies are those of the statements one
// after the other. It prints for how long a policy was wrong.
func TestStaleWriter(t *testing.T) {
	ctx := context.Background()
	server, administrator := administrators(t)
	const poll = 100 * time.Millisecond
	var mu sync.Mutex
	var wrong time.Duration
	restored := 0
	lost := func(l admin.Loss) {
		mu.Lock()
		defer mu.Unlock()
		if l.Restored.IsZero() {
			t.Errorf("not written again: %s", l)
			return
		}
		restored++
		wrong = max(wrong, l.Restored.Sub(l.At))
	}
	var both []*admin.Administrator
	for range 2 {
		both = append(both, administrator(server(), true, lost))
	}
	look := func(a *admin.Administrator) error {
		list, err := server().Policies(ctx, "polaris")
		if err == nil {
			err = a.Look(ctx, list, nil)
		}
		return err
	}
	ended := make(chan struct{})
	var others sync.WaitGroup
	for _, a := range both {
		others.Go(func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(poll):
					if err := look(a); err != nil && !strings.Contains(err.Error(), "all the time") {
						t.Errorf("a poll: %v", err)
					}
				}
			}
		})
	}
	var stale atomic.Int64
	others.Go(func() {
		rng, hand := rand.New(rand.NewPCG(7, 7)), server()
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-time.After(time.Duration(rng.IntN(20)) * time.Millisecond):
			}
			list, err := hand.Policies(ctx, "polaris")
			if err != nil || len(list) == 0 {
				continue
			}
			err = plain(ctx, hand, list[rng.IntN(len(list))].ID, time.Duration(rng.IntN(60))*time.Millisecond, gives(n))
			switch admin.KindOf(err) {
			case "":
				if err != nil {
					t.Errorf("the plain writer: %v", err)
				}
				stale.Add(1)
			case admin.NotFound, admin.Conflict, admin.Invalid:
			default:
				t.Errorf("the plain writer: %v", err)
			}
		}
	})
	want := map[string]bool{}
	var wait sync.WaitGroup
	for n, a := range both {
		k, rng := a.Grants(), rand.New(rand.NewPCG(uint64(n), 5))
		wait.Go(func() {
			for range 100 {
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // so that the plain writer has its turns
				table, user := []string{"a", "b", "c", "d"}[2*n+rng.IntN(2)], []string{"ann", "ben"}[rng.IntN(2)]
				verb := []grants.Verb{grants.Grant, grants.Grant, grants.Revoke}[rng.IntN(3)]
				_, err := k.Apply(ctx, policy.Author{User: "root"}, grantOn(verb, table, user))
				for tries := 0; fault.Is(err, fault.Conflict) && tries < 100; tries++ { // as the error says: repeat it
					_, err = k.Apply(ctx, policy.Author{User: "root"}, grantOn(verb, table, user))
				}
				if err != nil {
					t.Errorf("%s on %s for %s: %v", verb, table, user, err)
				}
				mu.Lock()
				want[table+" "+user] = verb == grants.Grant
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	close(ended)
	others.Wait()
	if err := look(both[0]); err != nil {
		t.Fatal(err)
	}
	is, err := both[1].Grants().Access(ctx)
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
	if stale.Load() < 20 || restored == 0 {
		t.Errorf("%d plain writes, %d changes restored", stale.Load(), restored)
	}
	t.Logf("200 statements, %d plain writes, %d lost changes written again; a policy was wrong for at most %s with a poll every %s", stale.Load(), restored, wrong.Round(time.Millisecond), poll)
}

// TestLost: what a stale write erased is told, and written again only where that is
// asked for and nobody can have meant it.
func TestLost(t *testing.T) {
	ctx := context.Background()
	yes := true
	reads := []model.Access{{Type: "table-list", Allowed: &yes}}
	type hands struct {
		*testing.T
		server admin.Server
		id     int64
		apply  func(verb grants.Verb, user string)
	}
	// version is the policy as it was, changed and written back.
	version := func(h *hands, v int64, change func(*model.Policy)) {
		h.Helper()
		p, err := h.server.PolicyAt(ctx, h.id, v)
		if err != nil {
			h.Fatal(err)
		}
		p.ID = h.id
		change(p)
		if _, err := h.server.UpdatePolicy(ctx, p); err != nil {
			h.Fatal(err)
		}
	}
	other := func(p *model.Policy) {
		p.PolicyItems = append(p.PolicyItems, &model.Item{Users: []string{"other"}, Accesses: reads})
	}
	without := func(user string) func(*model.Policy) {
		return func(p *model.Policy) {
			p.PolicyItems = slices.DeleteFunc(p.PolicyItems, func(i *model.Item) bool { return slices.Contains(i.Users, user) })
		}
	}
	for name, c := range map[string]struct {
		do func(*hands)
		// who reads at the end, when lost changes are written again and when not
		again, off []string
		lost       string // in what is told; "": nothing
		doubt      bool
	}{
		"a grant": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 1, other) },
			[]string{"ann", "ben", "other"},
			[]string{"ann", "other"},
			"allow items of user ben", false,
		},
		"a revoke": {
			func(h *hands) { h.apply(grants.Grant, "ben"); h.apply(grants.Revoke, "ann"); version(h, 2, other) },
			[]string{"ben", "other"},
			[]string{"ann", "ben", "other"},
			"allow items of user ann", false,
		},
		"two, one after the other": {
			func(h *hands) {
				h.apply(grants.Grant, "ben")
				version(h, 1, other)
				version(h, 1, func(p *model.Policy) { p.Description = "x" })
			},
			[]string{"ann", "ben"},
			[]string{"ann"},
			"allow items of user ben", false,
		},
		"taken by hand": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 2, without("ben")) },
			[]string{"ann"},
			[]string{"ann"},
			"", false,
		},
		"taken by a script that knows no options": {
			func(h *hands) {
				h.apply(grants.Grant, "ben")
				version(h, 2, func(p *model.Policy) { without("ben")(p); p.Options = nil })
			},
			[]string{"ann"},
			[]string{"ann"},
			"", false,
		},
		"an old version put back": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 1, func(*model.Policy) {}) },
			[]string{"ann"},
			[]string{"ann"},
			"allow items of user ben", true,
		},
		"only added to": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 2, other) },
			[]string{"ann", "ben", "other"},
			[]string{"ann", "ben", "other"},
			"", false,
		},
		"and granted again": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 1, other); h.apply(grants.Grant, "ben") },
			[]string{"ann", "ben", "other"},
			[]string{"ann", "ben", "other"},
			"", false,
		},
		"and revoked": {
			func(h *hands) { h.apply(grants.Grant, "ben"); version(h, 1, other); h.apply(grants.Revoke, "ben") },
			[]string{"ann", "other"},
			nil, "", false,
		},
	} {
		for _, reapply := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", ", reapply), func(t *testing.T) {
				server, administrator := administrators(t)
				var told []admin.Loss
				a := administrator(server(), reapply, func(l admin.Loss) { told = append(told, l) })
				h := &hands{T: t, server: server()}
				h.apply = func(verb grants.Verb, user string) {
					t.Helper()
					if _, err := a.Grants().Apply(ctx, policy.Author{User: "root"}, grantOn(verb, "t", user)); err != nil {
						t.Fatal(err)
					}
				}
				look := func() {
					t.Helper()
					list, err := h.server.Policies(ctx, "polaris")
					if err == nil {
						err = a.Look(ctx, list, nil)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				h.apply(grants.Grant, "ann")
				list, err := h.server.Policies(ctx, "polaris")
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range list {
					if strings.HasSuffix(p.Name, "-t") {
						h.id = p.ID
					}
				}
				look()
				c.do(h)
				look()
				look() // a second time nothing is found
				want := c.off
				if reapply {
					want = c.again
				}
				if want == nil {
					return // without restoring the order of events decides
				}
				p, err := h.server.Policy(ctx, h.id)
				if err != nil {
					t.Fatal(err)
				}
				var who []string
				for _, i := range p.PolicyItems {
					who = append(who, i.Users...)
				}
				slices.Sort(who)
				if who = slices.Compact(who); !slices.Equal(who, want) {
					t.Errorf("%v read, want %v", who, want)
				}
				if c.lost == "" {
					if reapply && name == "and revoked" || reapply && name == "and granted again" {
						return // it was restored before the statement
					}
					if notes, _, _ := a.Notes(); len(notes) > 0 && name != "and granted again" {
						t.Errorf("told: %v", notes)
					}
					return
				}
				if len(told) != 1 || !slices.Contains(told[0].What, c.lost) || told[0].Restored.IsZero() == (reapply && !c.doubt) || (told[0].Doubt != "") != c.doubt {
					t.Errorf("told: %v", told)
				}
				notes, lost, restored := a.Notes()
				if len(notes) != 1 || lost != 1 || (restored == 1) != (reapply && !c.doubt) {
					t.Errorf("%v, %d lost, %d restored", notes, lost, restored)
				}
			})
		}
	}
}

// TestLostStatus: SHOW POLICY STATUS tells an administrator what was lost, after the
// next poll, and nobody else.
func TestLostStatus(t *testing.T) {
	l, ctx := openOver(t, "rest"), context.Background()
	l.root("GRANT SELECT ON customers TO ann")
	l.root("GRANT SELECT ON customers TO ben")
	p, err := l.store.PolicyNamed(ctx, "polaris", "", "sqe-grant-lake-bank-customers")
	if err != nil {
		t.Fatal(err)
	}
	l.source.Watch(l.administrator)
	old, err := l.store.PolicyAt(ctx, p.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	old.ID, old.Description = p.ID, "by hand"
	if _, err := l.store.UpdatePolicy(ctx, old); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		rows, _, err := l.ask("root", "SHOW POLICY STATUS")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(rows, "erased allow items of user ben") {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("not told: %s", rows)
		}
	}
	if rows, _, err := l.ask("ann", "SHOW POLICY STATUS"); err != nil || strings.Contains(rows, "erased") {
		t.Errorf("ann is told: %s %v", rows, err)
	}
}
