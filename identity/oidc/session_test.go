package oidc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sqe/fault"
	"sqe/identity"
	"sqe/identity/oidc/oidctest"
)

// clock is a time that stands still until a test moves it.
type clock struct {
	mu   sync.Mutex
	time time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

func clocked(t testing.TB, change func(*Options)) (*oidctest.Issuer, *Provider, *clock) {
	t.Helper()
	i, p := setup(t, change)
	c := &clock{time: time.Now()}
	p.now, i.Now = c.now, c.now
	return i, p, c
}

func passwords(o *Options) {
	o.Passwords, o.ClientID, o.ClientSecret = true, oidctest.Client, oidctest.Secret
}

// TestSessionExpires: a session without a token to refresh with ends with its
// token, for good, and gives no credential afterwards.
func TestSessionExpires(t *testing.T) {
	i, p, c := clocked(t, nil)
	ctx := context.Background()
	raw := i.Sign(i.Claims("alice"))
	l, err := p.Authenticate(ctx, "", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := l.Continue(ctx); err != nil || who.Name != "alice" {
		t.Fatal(who, err)
	}
	if got, err := l.Credential.Token(ctx); err != nil || got != raw {
		t.Fatal(err)
	}
	i.Down(true) // nobody needs to be asked
	c.move(4 * time.Minute)
	if _, err := l.Continue(ctx); err != nil {
		t.Error("before its time:", err)
	}
	c.move(2 * time.Minute)
	for range 2 {
		if who, err := l.Continue(ctx); !fault.Is(err, fault.Auth) || !errors.Is(err, identity.ErrOver) || !who.IsZero() || !strings.Contains(err.Error(), "expired") {
			t.Error(who, err)
		}
		if got, err := l.Credential.Token(ctx); !errors.Is(err, identity.ErrOver) || got != "" {
			t.Error(err)
		}
		c.move(-6 * time.Minute) // a clock that goes back revives nothing
	}
}

// TestClockSkew: clocks may differ by as much as the setting says, in both directions and
// for as long as the session lasts, and by no more.
func TestClockSkew(t *testing.T) {
	i, p, c := clocked(t, func(o *Options) { o.ClockSkew = time.Minute })
	ctx := context.Background()
	at := func(d time.Duration) int64 { return c.now().Add(d).Unix() }
	for _, x := range []struct {
		claim string
		at    time.Duration
		want  identity.Reason // "": taken
	}{
		{"exp", -30 * time.Second, ""},
		{"exp", -90 * time.Second, ReasonExpired},
		{"nbf", 30 * time.Second, ""},
		{"nbf", 90 * time.Second, ReasonNotYetValid},
		{"iat", 30 * time.Second, ""},
		{"iat", 90 * time.Second, ReasonNotYetValid},
	} {
		if _, err := p.Authenticate(ctx, "", i.Sign(with(i.Claims("alice"), x.claim, at(x.at))), nil); (err == nil) != (x.want == "") || identity.ReasonOf(err) != x.want {
			t.Errorf("%s %s from now: %v, want %q", x.claim, x.at, err, x.want)
		}
	}
	l, err := p.Authenticate(ctx, "", i.Sign(with(i.Claims("alice"), "exp", at(-30*time.Second))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Continue(ctx); err != nil {
		t.Error("within the skew:", err)
	}
	c.move(time.Minute)
	if _, err := l.Continue(ctx); !errors.Is(err, identity.ErrOver) {
		t.Error("beyond the skew:", err)
	}
}

// TestPasswords: a password is exchanged; the token that comes back is verified as
// any other, and refreshed when its time is nearly over, with the groups and roles
// of that time.
func TestPasswords(t *testing.T) {
	i, p, c := clocked(t, passwords)
	ctx := context.Background()
	l, err := p.Authenticate(ctx, "alice", "alice-pw", nil)
	if err != nil || l.Principal.Name != "alice" {
		t.Fatal(err)
	}
	first, err := l.Credential.Token(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, login := range map[string][2]string{"wrong": {"alice", "x"}, "empty": {"alice", ""}, "long": {"alice", strings.Repeat("x", 5000)}, "control": {"alice\n", "alice\n-pw"}} {
		if _, err := p.Authenticate(ctx, login[0], login[1], nil); !fault.Is(err, fault.Auth) || identity.ReasonOf(err) != identity.ReasonPassword {
			t.Errorf("%s: %v", name, err)
		}
	}
	i.Give(10*time.Minute, map[string]any{"groups": []string{"sales"}})
	c.move(280 * time.Second)
	if who, err := l.Continue(ctx); err != nil || who.Groups[0] != "sales" {
		t.Fatal("no new token before the end of the old one:", who, err)
	}
	if next, err := l.Credential.Token(ctx); err != nil || next == first {
		t.Error("the old token:", err)
	}
	// A provider that is away for a while ends nothing before its time.
	i.Down(true)
	c.move(575 * time.Second)
	if _, err := l.Continue(ctx); err != nil {
		t.Error("a token that still counts:", err)
	}
	c.move(30 * time.Second)
	if _, err := l.Continue(ctx); !fault.Is(err, fault.Unavailable) || errors.Is(err, identity.ErrOver) {
		t.Error("expired, and nobody to ask:", err)
	}
	i.Down(false)
	c.move(2 * time.Second)
	if _, err := l.Continue(ctx); err != nil {
		t.Error("the provider is back:", err)
	}
	// Another name never becomes this session's.
	i.Give(10*time.Minute, map[string]any{"preferred_username": "root"})
	c.move(10 * time.Minute)
	if _, err := l.Continue(ctx); !errors.Is(err, identity.ErrOver) {
		t.Error("the session went on as somebody else:", err)
	}
	if _, err := p.Authenticate(ctx, "alice", "alice-pw", nil); identity.ReasonOf(err) != ReasonUser {
		t.Error("a token of somebody else for a password:", err)
	}
	i.Give(10*time.Minute, map[string]any{"aud": "other"})
	if _, err := p.Authenticate(ctx, "alice", "alice-pw", nil); identity.ReasonOf(err) != ReasonAudience {
		t.Error("a token for somebody else for a password:", err)
	}
}

// TestRefreshRefused: what the provider refuses to renew is over, before its time.
func TestRefreshRefused(t *testing.T) {
	i, p, c := clocked(t, passwords)
	l, err := p.Authenticate(context.Background(), "alice", "alice-pw", nil)
	if err != nil {
		t.Fatal(err)
	}
	i.End(l.Credential.(*session).refresh)
	c.move(280 * time.Second)
	if _, err := l.Continue(context.Background()); !errors.Is(err, identity.ErrOver) {
		t.Error(err)
	}
}

// TestServiceClients: clients of the list log in with their secret, others do not.
func TestServiceClients(t *testing.T) {
	_, p := setup(t, func(o *Options) { o.ServiceClients = []string{"etl"} })
	ctx := context.Background()
	l, err := p.Authenticate(ctx, "etl", "etl-secret", nil)
	if err != nil || l.Principal.Name != "service-account-etl" {
		t.Fatal(l.Principal, err)
	}
	if _, err := p.Authenticate(ctx, "etl", "wrong", nil); identity.ReasonOf(err) != identity.ReasonPassword {
		t.Error(err)
	}
	for _, user := range []string{"other", "ETL", "", "alice"} {
		if p.Recognizes(user, user+"-secret") {
			t.Errorf("%q is recognised", user)
		}
	}
}

// TestIntrospection: with an interval each login is asked about, and each session
// at most that long after the last time; what was ended is out, and while the
// provider does not answer nothing goes on.
func TestIntrospection(t *testing.T) {
	i, p, c := clocked(t, func(o *Options) {
		o.ClientID, o.ClientSecret, o.IntrospectionInterval = oidctest.Client, oidctest.Secret, time.Minute
	})
	ctx := context.Background()
	raw := i.Sign(i.Claims("alice"))
	l, err := p.Authenticate(ctx, "", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.move(50 * time.Second)
	asked := i.Asked("/introspect")
	for range 3 {
		if _, err := l.Continue(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := i.Asked("/introspect"); n != asked {
		t.Errorf("asked %d times within the bound", n-asked)
	}
	i.Down(true)
	c.move(11 * time.Second)
	if _, err := l.Continue(ctx); !fault.Is(err, fault.Unavailable) || errors.Is(err, identity.ErrOver) {
		t.Error("nobody to ask:", err)
	}
	i.Down(false)
	if _, err := l.Continue(ctx); err != nil {
		t.Error("the provider is back:", err)
	}
	i.End(raw)
	if _, err := l.Continue(ctx); err != nil {
		t.Error("within the bound:", err)
	}
	c.move(time.Minute)
	if _, err := l.Continue(ctx); !errors.Is(err, identity.ErrOver) {
		t.Error("a token that was ended:", err)
	}
	if _, err := p.Authenticate(ctx, "", raw, nil); !fault.Is(err, fault.Auth) || identity.ReasonOf(err) != ReasonInactive {
		t.Error("a token that was ended opens a session:", err)
	}
}

// TestRotation: a new key is found without a restart, tokens with made-up keys make
// the server ask no more often than its bound, and a key that the provider dropped
// counts no longer than keys-max-age.
func TestRotation(t *testing.T) {
	i, p, c := clocked(t, func(o *Options) { o.KeysMaxAge = time.Hour })
	ctx := context.Background()
	old := i.Sign(with(i.Claims("alice"), "exp", time.Now().Add(3*time.Hour).Unix()))
	if _, err := p.Authenticate(ctx, "", old, nil); err != nil {
		t.Fatal(err)
	}
	c.move(refetch)
	i.Rotate(jose.ES256)
	fresh := i.Sign(i.Claims("alice"))
	if _, err := p.Authenticate(ctx, "", fresh, nil); err != nil {
		t.Fatal("the new key:", err)
	}
	if _, err := p.Authenticate(ctx, "", old, nil); identity.ReasonOf(err) != ReasonUnknownKey {
		t.Error("a key that was dropped:", err)
	}
	asked := i.Asked("/keys")
	for range 100 {
		_, _ = p.Authenticate(ctx, "", oidctest.Forge(jose.EdDSA, oidctest.NewKey(jose.EdDSA), map[string]any{"kid": "made-up"}, i.Claims("alice")), nil)
	}
	if n := i.Asked("/keys"); n > asked+1 {
		t.Errorf("keys were asked for %d times", n-asked)
	}
	if _, err := p.Authenticate(ctx, "", fresh, nil); err != nil {
		t.Error("while keys are made up:", err)
	}
	// While the provider is away its keys are good for their time, and not longer.
	i.Down(true)
	c.move(30 * time.Minute)
	long := i.Sign(with(i.Claims("alice"), "exp", time.Now().Add(3*time.Hour).Unix()))
	if _, err := p.Authenticate(ctx, "", long, nil); err != nil {
		t.Error("within keys-max-age:", err)
	}
	c.move(31 * time.Minute)
	if _, err := p.Authenticate(ctx, "", long, nil); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "does not answer") {
		t.Error("beyond keys-max-age:", err)
	}
	asked = i.Asked("/.well-known/openid-configuration")
	for range 20 {
		_, _ = p.Authenticate(ctx, "", long, nil)
	}
	if n := i.Asked("/.well-known/openid-configuration"); n > asked+1 {
		t.Errorf("a provider that is away was asked %d times", n-asked)
	}
	i.Down(false)
	c.move(pause)
	if _, err := p.Authenticate(ctx, "", long, nil); err != nil {
		t.Error("the provider is back:", err)
	}
}

// TestTogether: many logins at once share one question, and one session may be
// asked from several goroutines.
func TestTogether(t *testing.T) {
	i, p := setup(t, nil)
	raw := i.Sign(i.Claims("alice"))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			l, err := p.Authenticate(context.Background(), "alice", raw, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				wg.Go(func() {
					if _, err := l.Credential.Token(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	wg.Wait()
	if n := i.Asked("/keys"); n != 1 {
		t.Errorf("keys were asked for %d times", n)
	}
}

// TestAway: a provider that does not answer is said to be that, not an intruder.
func TestAway(t *testing.T) {
	i, p := setup(t, passwords)
	i.Down(true)
	for _, password := range []string{i.Sign(i.Claims("alice")), "alice-pw"} {
		_, err := identity.NewChain(p).Authenticate(context.Background(), "alice", password, here)
		if !fault.Is(err, fault.Unavailable) || err.Error() != "the identity provider does not answer; try again later" {
			t.Error(err)
		}
	}
}

func BenchmarkLogin(b *testing.B) {
	i, p := setup(b, nil)
	raw := i.Sign(i.Claims("alice"))
	for b.Loop() {
		if _, err := p.Authenticate(context.Background(), "alice", raw, here); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContinue(b *testing.B) {
	i, p := setup(b, nil)
	l, err := p.Authenticate(context.Background(), "alice", i.Sign(i.Claims("alice")), here)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := l.Continue(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
