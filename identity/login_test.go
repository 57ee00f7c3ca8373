package identity

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/fault"
)

// weak is the weakest hash that is allowed, so that tests are quick.
func weak(t *testing.T, password string) string {
	t.Helper()
	h := passwordHash{memory: 8 << 10, time: 1, lanes: 1, salt: []byte("salt of a test  ")}
	h.key = h.derive(password, 32)
	return h.String()
}

func static(t *testing.T) *Static {
	t.Helper()
	s, err := NewStatic([]User{
		{Principal: Principal{Name: "alice", Groups: []string{"g"}, Attributes: map[string]string{"k": "v"}}, PasswordHash: weak(t, "right")},
		{Principal: Principal{Name: "Alice"}, PasswordHash: weak(t, "other")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var here = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}

// TestLogin: the right password gives the principal; everything else gives one
// and the same error and nobody.
func TestLogin(t *testing.T) {
	c := NewChain(static(t))
	ctx := context.Background()
	for range 2 { // the second time from the cache
		p, err := c.Authenticate(ctx, "alice", "right", here)
		if err != nil || p.Principal.Name != "alice" || p.Principal.Groups[0] != "g" {
			t.Fatal(p, err)
		}
	}
	for _, tt := range [][2]string{{"alice", "wrong"}, {"alice", ""}, {"alice", "right "}, {"alice", "other"}, {"ALICE", "right"}, {"alice ", "right"}, {"Alice", "right"}} {
		p, err := c.Authenticate(ctx, tt[0], tt[1], here)
		if !fault.Is(err, fault.Auth) || !p.Principal.IsZero() || err.Error() != "Access denied for user '"+tt[0]+"'@'10.0.0.1'" {
			t.Errorf("%q: %+v %v", tt, p, err)
		}
	}
	for _, user := range []string{"", "nobody"} {
		for _, a := range []Authenticator{NewChain(static(t)), static(t), NewChain()} {
			if p, err := a.Authenticate(ctx, user, "right", nil); !fault.Is(err, fault.Auth) || !p.Principal.IsZero() || err.Error() != "Access denied for user '"+user+"'@''" {
				t.Errorf("%q: %+v %v", user, p, err)
			}
		}
	}
}

// TestPrincipalIsACopy: what a session does to its principal no other one sees.
func TestPrincipalIsACopy(t *testing.T) {
	s := static(t)
	p, err := s.Authenticate(context.Background(), "alice", "right", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Principal.Groups[0], p.Principal.Attributes["k"] = "admins", "x"
	p, err = s.Authenticate(context.Background(), "alice", "right", nil)
	if err != nil || p.Principal.Groups[0] != "g" || p.Principal.Attributes["k"] != "v" {
		t.Error(p, err)
	}
}

// TestSimilarTime: an unknown user takes as long as a wrong password. The hash is
// strong here, so that the difference would be plain.
func TestSimilarTime(t *testing.T) {
	hash, err := HashPassword("right")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStatic([]User{{Principal: Principal{Name: "alice"}, PasswordHash: hash}})
	if err != nil {
		t.Fatal(err)
	}
	c := NewChain(s)
	least := func(user string) time.Duration {
		best := time.Hour
		for range 5 {
			begin := time.Now()
			_, _ = c.Authenticate(context.Background(), user, "wrong", nil)
			best = min(best, time.Since(begin))
		}
		return best
	}
	// What else the machine does may slow down the one and not the other, but not always.
	for try := 1; ; try++ {
		known, unknown := least("alice"), least("nobody")
		if known <= 4*unknown && unknown <= 4*known {
			break
		}
		if try == 10 {
			t.Fatalf("a wrong password takes %s, an unknown user %s", known, unknown)
		}
	}
}

// TestCacheIsBound: the cache of verified passwords does not survive another
// hash, another user or another password.
func TestCacheIsBound(t *testing.T) {
	h := newHasher(nil)
	one, err := parseHash(weak(t, "right"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if ok, err := h.verify(ctx, "alice", "right", one); !ok || err != nil {
		t.Fatal(ok, err)
	}
	// With every place taken only what the cache knows is answered.
	for range cap(h.slots) {
		h.slots <- struct{}{}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if ok, err := h.verify(done, "alice", "right", one); !ok || err != nil {
		t.Error("not from the cache:", ok, err)
	}
	other := one
	other.salt = []byte("another salt....")
	for _, tt := range []struct {
		user, password string
		hash           passwordHash
	}{{"alice", "wrong", one}, {"bob", "right", one}, {"alice", "right", other}, {"alicer", "ight", one}} {
		if ok, err := h.verify(done, tt.user, tt.password, tt.hash); ok || !fault.Is(err, fault.Limit) {
			t.Errorf("%s %s: %v %v", tt.user, tt.password, ok, err)
		}
	}
}

// TestFlood: however many logins come at once, few hash at the same time.
func TestFlood(t *testing.T) {
	s := static(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { _, _ = s.Authenticate(context.Background(), "alice", "wrong", nil) })
	}
	wg.Wait()
	if n := len(s.hasher.slots); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

type provider struct {
	token string
	err   error
	asked int
}

func (p *provider) Recognizes(_, password string) bool { return strings.HasPrefix(password, "tok-") }

func (p *provider) Authenticate(_ context.Context, user, password string, remote net.Addr) (Login, error) {
	p.asked++
	if p.err != nil {
		return Login{}, p.err
	}
	if password != p.token {
		return Login{}, Denied(user, remote, ReasonPassword)
	}
	return Login{Principal: Principal{Name: "from-token"}}, nil
}

// TestChain: the first provider that recognises a login decides, also when it
// denies and when it fails.
func TestChain(t *testing.T) {
	p := &provider{token: "tok-1"}
	users, err := NewStatic([]User{{Principal: Principal{Name: "alice"}, PasswordHash: weak(t, "tok-2")}, {Principal: Principal{Name: "bob"}, PasswordHash: weak(t, "pw")}})
	if err != nil {
		t.Fatal(err)
	}
	c := NewChain(p, users)
	ctx := context.Background()
	if got, err := c.Authenticate(ctx, "alice", "tok-1", nil); err != nil || got.Principal.Name != "from-token" {
		t.Error(got, err)
	}
	// tok-2 is alice's password, but tokens are the first provider's.
	if got, err := c.Authenticate(ctx, "alice", "tok-2", nil); !fault.Is(err, fault.Auth) {
		t.Error(got, err)
	}
	if got, err := c.Authenticate(ctx, "bob", "pw", nil); err != nil || got.Principal.Name != "bob" {
		t.Error(got, err)
	}
	p.err = fault.New(fault.Unavailable, "the identity provider does not answer")
	if got, err := c.Authenticate(ctx, "alice", "tok-1", nil); !fault.Is(err, fault.Unavailable) || !got.Principal.IsZero() {
		t.Error(got, err)
	}
	p.err, p.token = nil, ""
	zero := NewChain(zeroProvider{})
	if got, err := zero.Authenticate(ctx, "x", "y", nil); !fault.Is(err, fault.Auth) || !got.Principal.IsZero() {
		t.Error("a provider that gives nobody:", got, err)
	}
}

type zeroProvider struct{}

func (zeroProvider) Recognizes(_, _ string) bool { return true }
func (zeroProvider) Authenticate(context.Context, string, string, net.Addr) (Login, error) {
	return Login{}, nil
}

// TestAttempts: failures make a name at an address wait, then the address; other
// addresses are untouched; time heals; a success forgets.
func TestAttempts(t *testing.T) {
	c := NewChain(static(t))
	now := time.Unix(0, 0)
	c.limit.now = func() time.Time { return now }
	ctx := context.Background()
	login := func(user, password, host string) error {
		_, err := c.Authenticate(ctx, user, password, &net.TCPAddr{IP: net.ParseIP(host)})
		return err
	}
	for i := range failuresByName {
		if err := login("alice", "wrong", "10.0.0.1"); !fault.Is(err, fault.Auth) {
			t.Fatal(i, err)
		}
	}
	if err := login("alice", "right", "10.0.0.1"); !fault.Is(err, fault.Limit) || !strings.Contains(err.Error(), "wait 7 seconds") {
		t.Error("the right password after too many wrong ones:", err)
	}
	if err := login("alice", "right", "10.0.0.2"); err != nil {
		t.Error("another address:", err)
	}
	if err := login("Alice", "other", "10.0.0.1"); err != nil {
		t.Error("another name:", err)
	}
	now = now.Add(forgetByName + time.Second)
	if err := login("alice", "right", "10.0.0.1"); err != nil {
		t.Error("after waiting:", err)
	}
	for i := range failuresByName {
		if err := login("alice", "wrong", "10.0.0.1"); !fault.Is(err, fault.Auth) {
			t.Fatal("a success did not forget:", i, err)
		}
	}
	now = now.Add(time.Hour)
	blocked := false
	for i := range 2 * failuresByAddress {
		if err := login("user"+string(rune('a'+i%26))+string(rune('a'+i/26)), "x", "10.0.0.9"); fault.Is(err, fault.Limit) {
			blocked = i == failuresByAddress
			break
		}
	}
	if !blocked {
		t.Error("an address that tries many names is not limited where it should be")
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	a := newAttempts(100)
	for i := range 10_000 {
		a.failed("host", strings.Repeat("x", i))
	}
	if len(a.by) > 100 || a.order.Len() != len(a.by) {
		t.Error(len(a.by), a.order.Len())
	}
}

func TestHashes(t *testing.T) {
	hash, err := HashPassword("pass word é")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := HashPassword("pass word é"); again == hash {
		t.Error("no salt")
	}
	h, err := parseHash(hash)
	if err != nil || !h.verify("pass word é") || h.verify("pass word e") || h.String() != hash {
		t.Error(hash, err)
	}
	if _, err := HashPassword(""); err == nil {
		t.Error("an empty password has a hash")
	}
	good := weak(t, "x")
	if _, err := parseHash(good); err != nil {
		t.Fatal(err)
	}
	for _, replace := range [][2]string{
		{"argon2id", "argon2i"},
		{"v=19", "v=16"},
		{"m=8192", "m=8191"},
		{"m=8192", "m=99999999"},
		{"t=1", "t=0"},
		{"t=1", "t=99"},
		{"p=1", "p=0"},
		{"p=1", "p=1,x=2"},
		{"m=8192,t=1,p=1", "t=1,m=8192,p=1"},
		{"$", ""},
		{h.String(), ""},
		{"c2FsdCBvZiBhIHRlc3QgIA", "c2E"},
		{"c2FsdCBvZiBhIHRlc3QgIA", "!"},
	} {
		bad := strings.Replace(good, replace[0], replace[1], 1)
		_, err := parseHash(bad)
		if bad != good && (err == nil || !strings.Contains(err.Error(), "sqe hash-password") || strings.Contains(err.Error(), "c2FsdC")) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestNewStatic(t *testing.T) {
	_, err := NewStatic([]User{
		{Principal: Principal{Name: "a"}, PasswordHash: "demo"},
		{Principal: Principal{Name: ""}, PasswordHash: weak(t, "x")},
		{Principal: Principal{Name: "b"}, PasswordHash: weak(t, "x")},
		{Principal: Principal{Name: "b"}, PasswordHash: weak(t, "x")},
	})
	if !fault.Is(err, fault.Config) || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "demo") {
		t.Error(err)
	}
}

func TestContext(t *testing.T) {
	ctx := context.Background()
	if p, ok := FromContext(ctx); ok || !p.IsZero() {
		t.Error(p, ok)
	}
	if _, ok := FromContext(WithPrincipal(ctx, Principal{})); ok {
		t.Error("nobody is somebody")
	}
	if p, ok := FromContext(WithPrincipal(ctx, Principal{Name: "a"})); !ok || p.Name != "a" {
		t.Error(p, ok)
	}
}
