package grants

import (
	"context"
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
	for _, want := range []string{`role "empty", as it was saved by script, `, "lacks the user ben, who was made a member", "has the group eu again, who was taken out", "may be meant"} {
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
