package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"sqe/catalog"
	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
)

// roleSource is a source whose role reader may read everything, and which gives
// roles of its own to ann.
type roleSource struct {
	*source
	mu    sync.Mutex
	given []string
}

type roleState struct {
	policy.State
	given []string
}

func (g *roleSource) State() (policy.State, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err := g.source.State()
	return roleState{s, slices.Clone(g.given)}, err
}

func (s roleState) Roles(p identity.Principal) []string {
	if p.Name == "ann" {
		return s.given
	}
	return nil
}

func (s roleState) Authorize(p identity.Principal, o policy.Object, priv policy.Privilege) policy.Decision {
	held := append(slices.Clone(p.Roles), s.Roles(p)...)
	if p.ActiveRoles != nil {
		held = slices.DeleteFunc(held, func(r string) bool { return !slices.Contains(p.ActiveRoles, r) })
	}
	ok := slices.Contains(held, "reader")
	return policy.Decision{Allow: ok, Visible: ok, Reason: policy.NoGrant}
}

// lease is a login that a test ends and changes.
type lease struct {
	mu  sync.Mutex
	who identity.Principal
	err error
}

func (l *lease) Continue(context.Context) (identity.Principal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.who, l.err
}

func (l *lease) set(p identity.Principal, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.who, l.err = p, err
}

// bearer is a credential.
type bearer string

func (b bearer) Token(context.Context) (string, error) { return string(b), nil }

// watched is a catalog that remembers for whom it was asked.
type watched struct {
	catalog.Catalog
	mu     sync.Mutex
	tokens []string
}

func (w *watched) Table(ctx context.Context, name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error) {
	w.mu.Lock()
	token := "none"
	if c, ok := identity.CredentialFrom(ctx); ok {
		token, _ = c.Token(ctx)
	}
	if p, _ := identity.FromContext(ctx); !slices.Contains(w.tokens, p.Name+" "+token) {
		w.tokens = append(w.tokens, p.Name+" "+token)
	}
	w.mu.Unlock()
	return w.Catalog.Table(ctx, name, at, metadata)
}

func openGranting(t *testing.T, given ...string) (*fixture, *roleSource, *watched) {
	t.Helper()
	var g *roleSource
	var w *watched
	f := openWith(t, func(o *engine.Options) {
		g = &roleSource{source: o.Sources[0].(*source), given: given}
		w = &watched{Catalog: o.Catalogs.All()[0]}
		registry, err := catalog.NewRegistry(w)
		if err != nil {
			t.Fatal(err)
		}
		o.Sources, o.Catalogs = []policy.Source{g}, registry
	})
	return f, g, w
}

func login(t *testing.T, f *fixture, l identity.Login) *engine.Session {
	t.Helper()
	s, err := f.OpenLogin(l, engine.ConnInfo{ID: 3, RemoteAddr: "test", Database: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const countCustomers = "SELECT count(*) FROM bank.customers"

// TestSetRole: a session is narrowed to roles of its principal, those of the login
// and those of the policy source alike, and to no others; a reset undoes it.
func TestSetRole(t *testing.T) {
	f, g, _ := openGranting(t, "reader")
	s := login(t, f, identity.Login{Principal: identity.Principal{Name: "ann", Roles: []string{"clerk"}}})
	reads := func() bool {
		_, err := query(s, countCustomers)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, x := range []struct {
		text string
		want bool
	}{
		{"SET ROLE NONE", false},
		{"SET ROLE ALL", true},
		{"SET ROLE clerk", false},
		{"SET ROLE DEFAULT", true},
		{"SET ROLE reader", true},
		{"SET ROLE 'clerk', reader", true},
	} {
		if _, err := query(s, x.text); err != nil {
			t.Errorf("%s: %v", x.text, err)
		}
		if got := reads(); got != x.want {
			t.Errorf("after %s ann reads: %v", x.text, got)
		}
	}
	if e := f.journal.last(); !slices.Equal(e.Roles, []string{"clerk", "reader"}) {
		t.Errorf("recorded with the roles %v", e.Roles)
	}
	for _, role := range []string{"Reader", "`reader `", "admin", "''"} {
		if _, err := query(s, "SET ROLE "+role); !fault.Is(err, fault.Denied) {
			t.Errorf("SET ROLE %s: %v", role, err)
		}
	}
	if _, err := query(s, "SET ROLE clerk"); err != nil || reads() {
		t.Error(err)
	}
	s.Reset()
	if !reads() {
		t.Error("a reset keeps the roles")
	}
	// A role that is taken away is gone, active or not.
	if _, err := query(s, "SET ROLE reader"); err != nil || !reads() {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.given = nil
	g.mu.Unlock()
	if reads() {
		t.Error("an active role outlives its grant")
	}
}

// TestSessionFollowsLogin: each statement asks the login, runs with the groups and
// roles of now and its credential, and is refused and recorded when it is over.
func TestSessionFollowsLogin(t *testing.T) {
	f, _, w := openGranting(t)
	l := &lease{who: identity.Principal{Name: "bob", Roles: []string{"reader"}}}
	s := login(t, f, identity.Login{Principal: l.who, Credential: bearer("bob's token"), Continue: l.Continue})
	other := login(t, f, identity.Login{Principal: identity.Principal{Name: "eve", Roles: []string{"reader"}}})
	for _, x := range []*engine.Session{s, other, s} {
		if _, err := query(x, countCustomers); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	if !slices.Equal(w.tokens, []string{"bob bob's token", "eve none"}) {
		t.Errorf("the catalog was asked with %q", w.tokens)
	}
	w.mu.Unlock()

	if _, err := query(s, "SET ROLE reader"); err != nil {
		t.Fatal(err)
	}
	l.set(identity.Principal{Name: "bob"}, nil)
	if _, err := query(s, countCustomers); !fault.Is(err, fault.NotFound) {
		t.Error("a role that the login lost still counts:", err)
	}
	l.set(identity.Principal{Name: "bob", Roles: []string{"reader"}}, nil)
	if _, err := query(s, countCustomers); err != nil {
		t.Error(err)
	}
	for _, refused := range []error{identity.Over("the token of this session has expired"), fault.New(fault.Unavailable, "the identity provider does not answer")} {
		l.set(identity.Principal{}, refused)
		if _, err := query(s, countCustomers); !errors.Is(err, refused) {
			t.Errorf("%v, want %v", err, refused)
		}
		if e := f.journal.last(); e.User != "bob" || e.Error != refused.Error() {
			t.Errorf("recorded as %+v", e)
		}
		if err := s.Use(context.Background(), "bank"); !errors.Is(err, refused) {
			t.Error("USE:", err)
		}
		if _, err := s.Prepare(context.Background(), countCustomers); !errors.Is(err, refused) {
			t.Error("Prepare:", err)
		}
		if err := s.Ping(context.Background()); (err != nil) != errors.Is(refused, identity.ErrOver) {
			t.Errorf("a ping: %v, after %v", err, refused)
		}
	}
	l.set(identity.Principal{Name: "root", Roles: []string{"reader"}, Admin: true}, nil)
	if _, err := query(s, countCustomers); !fault.Is(err, fault.Internal) {
		t.Error("a session became another principal's:", err)
	}
	if s.Principal().Name != "bob" {
		t.Error(s.Principal())
	}
}
