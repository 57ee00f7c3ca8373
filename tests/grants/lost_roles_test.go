package grants

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sqe/policy"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// TestLostMembers: a role that somebody saves as it was before, without whom a statement
// made a member or with whom one took out, is told of, by name; it is told no more when
// it is again as it was said. What others change beside that, and what statements
// change, is nothing lost.
func TestLostMembers(t *testing.T) {
	for _, sink := range sinks {
		t.Run(sink, func(t *testing.T) { lostMembers(openOver(t, sink)) })
	}
}

func lostMembers(l *lake) {
	t, ctx := l.T, admin.WithAuthor(context.Background(), admin.Author{User: "script"})
	role := func() *model.Role {
		t.Helper()
		r, err := l.store.Role(ctx, "empty")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	save := func(r *model.Role) {
		t.Helper()
		if _, err := l.store.UpdateRole(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	notes := func() string {
		t.Helper()
		if err := l.administrator.Look(ctx, nil, []*model.Role{role()}); err != nil {
			t.Fatal(err)
		}
		n, _, _ := l.administrator.Notes()
		return strings.Join(n, "\n")
	}
	lost := func() int64 { _, n, _ := l.administrator.Notes(); return n }
	l.root("GRANT empty TO ann, GROUP eu")
	stale := role()
	l.root("GRANT empty TO ben")
	l.root("REVOKE empty FROM GROUP eu")
	if n := notes(); n != "" || lost() != 0 {
		t.Errorf("before: %s", n)
	}
	// Somebody saves a form that was opened before both statements.
	stale.Description = "by hand"
	save(stale)
	n := notes()
	for _, want := range []string{`role "empty", as it was saved by script, `, "lacks the user ben, who was made a member", "has the group eu again, who was taken out", "reapply-lost-grants is off"} {
		if !strings.Contains(n, want) {
			t.Errorf("no %q in\n%s", want, n)
		}
	}
	if strings.Contains(n, "ann") || lost() != 2 || notes() != n || lost() != 2 {
		t.Errorf("%d: %s", lost(), n)
	}
	// It is what decides, until a statement says it again.
	l.root("GRANT SELECT ON customers TO ROLE empty")
	l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ann": true})
	l.root("GRANT empty TO ben")
	if n := notes(); strings.Contains(n, "ben") || !strings.Contains(n, "group eu") {
		t.Errorf("after one statement: %s", n)
	}
	l.root("REVOKE empty FROM GROUP eu")
	if n := notes(); n != "" {
		t.Errorf("after both: %s", n)
	}
	l.may("SELECT COUNT(*) FROM customers", map[string]bool{"ann": true, "ben": true, "dan": false})
	// A change beside them.
	by := role()
	by.Users = append(by.Users, model.Member{Name: "dan"})
	save(by)
	l.root("REVOKE empty FROM ann")
	if n := notes(); n != "" || lost() != 2 {
		t.Errorf("a change beside: %s", n)
	}
	l.root("REVOKE SELECT ON customers FROM ROLE empty")
	l.root("DROP ROLE empty")
	if err := l.administrator.Look(ctx, nil, nil); err != nil {
		t.Error(err)
	}
	if n, _, _ := l.administrator.Notes(); len(n) > 0 {
		t.Errorf("a role that is dropped: %v", n)
	}
}

// TestLostMembersOfAnother: a member that another server of SQE takes out is nothing
// lost.
func TestLostMembersOfAnother(t *testing.T) {
	ctx := context.Background()
	server, administrator := administrators(t)
	var mu sync.Mutex
	told := 0
	lost := func(admin.Loss) { mu.Lock(); told++; mu.Unlock() }
	one, two := administrator(server(), true, lost), administrator(server(), true, lost)
	s := server()
	if _, err := s.CreateRole(ctx, &model.Role{Name: "team"}); err != nil {
		t.Fatal(err)
	}
	ann := []policy.Grantee{{Kind: policy.UserGrantee, Name: "ann"}}
	if err := one.Grants().AlterRole(ctx, policy.Author{User: "root"}, "team", ann, nil); err != nil {
		t.Fatal(err)
	}
	if err := two.Grants().AlterRole(ctx, policy.Author{User: "root"}, "team", nil, ann); err != nil {
		t.Fatal(err)
	}
	roles, err := s.Roles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*admin.Administrator{one, two} {
		if err := a.Look(ctx, nil, roles); err != nil {
			t.Error(err)
		}
		if n, _, _ := a.Notes(); len(n) > 0 {
			t.Errorf("%v", n)
		}
	}
	if told > 0 {
		t.Errorf("%d lost", told)
	}
}

// TestLostMembersAgain: a role that is saved from a form which was opened before the last
// statements, some of which gave and some of which took, is made again what they said,
// with what the form changed beside. Whatever may be meant is left as it is.
func TestLostMembersAgain(t *testing.T) {
	ctx := context.Background()
	user := func(names ...string) (out []policy.Grantee) {
		for _, n := range names {
			out = append(out, policy.Grantee{Kind: policy.UserGrantee, Name: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		reapply bool
		before  func(r *model.Role) // changes that are seen before
		save    func(r *model.Role)
		restart bool
		again   bool
		doubt   string
	}{
		"a stale form":                 {true, nil, func(r *model.Role) { r.Description = "by hand" }, false, true, ""},
		"a stale form with a member":   {true, nil, func(r *model.Role) { r.Users = append(r.Users, model.Member{Name: "dan"}) }, false, true, ""},
		"not asked for":                {false, nil, func(r *model.Role) { r.Description = "by hand" }, false, false, "is off"},
		"nothing beside":               {true, nil, func(*model.Role) {}, false, false, "may be meant"},
		"nothing beside what is known": {true, func(r *model.Role) { r.Description = "by hand" }, func(r *model.Role) { r.Description = "by hand" }, false, false, "may be meant"},
		"one direction":                {true, nil, func(r *model.Role) { r.Description, r.Users = "by hand", r.Users[:1] }, false, false, "may be meant"},
		"all but the last statement":   {true, nil, func(r *model.Role) { r.Description, r.Users = "by hand", nil }, false, false, "may be meant"},
		"while down":                   {true, nil, func(r *model.Role) { r.Description = "by hand" }, true, false, "before this server looked"},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := administrators(t)
			s, file := server(), filepath.Join(t.TempDir(), "state", "roles.jsonl")
			// Somebody with an account of one's own, whom the store knows as another one.
			if _, err := s.CreateUser(ctx, &model.User{Name: "script", Password: "Passw0rd-of-tests", AdminRoles: []string{"ROLE_SYS_ADMIN"}}); err != nil {
				t.Fatal(err)
			}
			for _, u := range []string{"cat", "dan"} {
				if _, err := s.CreateUser(ctx, &model.User{Name: u, Password: "Passw0rd-of-tests"}); err != nil {
					t.Fatal(err)
				}
			}
			hand, err := admin.OpenREST(admin.RESTConfig{URL: s.Name()[strings.Index(s.Name(), "http"):], Username: "script", Password: "Passw0rd-of-tests"})
			if err != nil {
				t.Fatal(err)
			}
			var told []admin.Loss
			start := func() *admin.Administrator {
				a, err := admin.New(server(), admin.Config{
					Source: "ranger", DataService: "hive", PolarisService: "polaris", Reload: func(context.Context) error { return nil },
					ReapplyLost: c.reapply, Lost: func(l admin.Loss) { told = append(told, l) }, RolesFile: file,
				})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			role := func() *model.Role {
				t.Helper()
				r, err := hand.Role(ctx, "team")
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			save := func(r *model.Role) {
				t.Helper()
				if _, err := hand.UpdateRole(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			look := func(a *admin.Administrator) {
				t.Helper()
				if err := a.Look(ctx, nil, []*model.Role{role()}); err != nil {
					t.Fatal(err)
				}
			}
			a := start()
			if _, err := s.CreateRole(ctx, &model.Role{Name: "team", Users: []model.Member{{Name: "cat"}, {Name: "ann"}}}); err != nil {
				t.Fatal(err)
			}
			stale := role()
			alter := func(add, remove []policy.Grantee) {
				t.Helper()
				if err := a.Grants().AlterRole(ctx, policy.Author{User: "root"}, "team", add, remove); err != nil {
					t.Fatal(err)
				}
			}
			alter(user("ben"), nil)
			alter(nil, user("ann"))
			look(a)
			if c.before != nil {
				r := role()
				c.before(r)
				save(r)
				look(a)
			}
			slices.SortFunc(stale.Users, func(a, b model.Member) int { return -strings.Compare(a.Name, b.Name) })
			c.save(stale)
			save(stale)
			if c.restart {
				a = start()
			}
			look(a)
			look(a)
			var who []string
			for _, m := range role().Users {
				who = append(who, m.Name)
			}
			if has := slices.Contains(who, "ben") && !slices.Contains(who, "ann"); has != c.again || slices.Contains(who, "dan") != (name == "a stale form with a member") {
				t.Errorf("members are %v; told: %v", who, told)
			}
			if len(told) == 0 || told[0].Restored.IsZero() == c.again || told[0].By != "script" || !strings.Contains(told[0].String(), c.doubt) {
				t.Errorf("told: %v", told)
			}
			notes, lost, restored := a.Notes()
			if len(notes) != len(told) || lost != int64(len(told)) || (restored > 0) != c.again {
				t.Errorf("%q, %d lost, %d restored; told %v", notes, lost, restored, told)
			}
			// What was told is told by the next run too, and not as something new.
			n := len(told)
			next := start()
			look(next)
			if more, lost, _ := next.Notes(); len(told) != n || lost != 0 || !c.again && len(more) != len(notes) {
				t.Errorf("after a start: %q, %d lost, told %v", more, lost, told[n:])
			}
		})
	}
}
