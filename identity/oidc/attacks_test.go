package oidc

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"sqe/fault"
	"sqe/identity"
	"sqe/identity/oidc/oidctest"
)

var here = &net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 4711}

// setup is a provider of its own for a test.
func setup(t testing.TB, change func(*Options)) (*oidctest.Issuer, *Provider) {
	t.Helper()
	i := oidctest.New()
	t.Cleanup(i.Close)
	o := Options{Name: "test", Issuer: i.URL, Audiences: []string{"sqe"}, Claims: Claims{Groups: "groups", Roles: []string{"realm_access.roles"}}}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return i, p
}

func with(claims map[string]any, name string, v any) map[string]any {
	claims = maps.Clone(claims)
	claims[name] = v
	if v == nil {
		delete(claims, name)
	}
	return claims
}

// plain is a token without a signature.
func plain(header string, claims map[string]any, signature string) string {
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(b) + "." + signature
}

// TestTokenAttacks: every token that is not exactly as it must be is refused, each
// for its reason, with an error that tells the client nothing; the good one beside
// it is taken.
func TestTokenAttacks(t *testing.T) {
	i, p := setup(t, func(o *Options) { o.AuthorizedParties = []string{"sqe-cli"}; o.ClockSkew = 10 * time.Second })
	other := oidctest.New()
	t.Cleanup(other.Close)
	public, kid := i.Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := i.Claims("alice")
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	header := map[string]any{"kid": kid, "typ": "JWT"}
	signed := i.Sign(good)
	parts := strings.Split(signed, ".")

	// The issuer is real, the key somebody else's.
	forged := oidctest.New()
	t.Cleanup(forged.Close)
	forged.Rotate(jose.RS256)

	for name, x := range map[string]struct {
		user, token string
		want        identity.Reason
	}{
		"no audience":                {"", i.Sign(with(good, "aud", nil)), ReasonAudience},
		"empty audience":             {"", i.Sign(with(good, "aud", []string{})), ReasonAudience},
		"wrong audience":             {"", i.Sign(with(good, "aud", "polaris")), ReasonAudience},
		"audience of another case":   {"", i.Sign(with(good, "aud", "SQE")), ReasonAudience},
		"audience of another form":   {"", i.Sign(with(good, "aud", []any{"sqe", 1})), ReasonMalformed},
		"wrong issuer":               {"", i.Sign(with(good, "iss", i.URL+"/")), identity.ReasonNobody},
		"no issuer":                  {"", i.Sign(with(good, "iss", nil)), identity.ReasonNobody},
		"issuer of another realm":    {"", other.Sign(other.Claims("alice")), identity.ReasonNobody},
		"key of another realm":       {"", other.Sign(with(good, "iss", i.URL)), ReasonSignature},
		"expired":                    {"", i.Sign(with(good, "exp", in(-time.Minute))), ReasonExpired},
		"no expiry":                  {"", i.Sign(with(good, "exp", nil)), ReasonClaims},
		"expiry of another form":     {"", i.Sign(with(good, "exp", "never")), ReasonMalformed},
		"expiry beyond time":         {"", i.Sign(with(good, "exp", 1e30)), ReasonClaims},
		"expired, and not for us":    {"", i.Sign(with(with(good, "exp", in(-time.Minute)), "aud", "x")), ReasonAudience},
		"not yet valid":              {"", i.Sign(with(good, "nbf", in(time.Minute))), ReasonNotYetValid},
		"issued in the future":       {"", i.Sign(with(good, "iat", in(time.Minute))), ReasonNotYetValid},
		"alg none":                   {"", plain(`{"alg":"none","typ":"JWT","kid":"`+kid+`"}`, good, ""), ReasonAlgorithm},
		"alg None":                   {"", plain(`{"alg":"None","typ":"JWT","kid":"`+kid+`"}`, good, ""), ReasonAlgorithm},
		"alg none, signed":           {"", plain(`{"alg":"none","typ":"JWT","kid":"`+kid+`"}`, good, parts[2]), ReasonAlgorithm},
		"HMAC with the PEM":          {"", oidctest.Forge(jose.HS256, asPEM, header, good), ReasonAlgorithm},
		"HMAC with the DER":          {"", oidctest.Forge(jose.HS512, der, header, good), ReasonAlgorithm},
		"RS256 with an HMAC":         {"", plain(`{"alg":"RS256","typ":"JWT","kid":"`+kid+`"}`, good, strings.Split(oidctest.Forge(jose.HS256, asPEM, header, good), ".")[2]), ReasonSignature},
		"another algorithm":          {"", plain(`{"alg":"PS256","typ":"JWT","kid":"`+kid+`"}`, good, parts[2]), ReasonUnknownKey},
		"unknown key id":             {"", oidctest.Forge(jose.RS256, newRSA(t), map[string]any{"kid": "made-up"}, good), ReasonUnknownKey},
		"no key id":                  {"", oidctest.Forge(jose.RS256, newRSA(t), nil, good), ReasonUnknownKey},
		"key within the token":       {"", oidctest.Forge(jose.RS256, newRSA(t), map[string]any{"kid": "made-up", "jku": other.URL + "/keys"}, good), ReasonUnknownKey},
		"key id of the issuer":       {"", oidctest.Forge(jose.RS256, newRSA(t), header, good), ReasonSignature},
		"claims exchanged":           {"", parts[0] + "." + strings.Split(i.Sign(i.Claims("root")), ".")[1] + "." + parts[2], ReasonSignature},
		"signature cut":              {"", signed[:len(signed)-4], ReasonSignature},
		"no signature":               {"", parts[0] + "." + parts[1] + ".", ReasonSignature},
		"line break within":          {"", signed[:40] + "\n" + signed[40:], ReasonMalformed},
		"blank at the end":           {"", signed + " ", ReasonMalformed},
		"name in another case":       {"Alice", signed, ReasonUser},
		"name with a blank":          {"alice ", signed, ReasonUser},
		"name of somebody else":      {"root", signed, ReasonUser},
		"name with NUL":              {"", i.Sign(with(good, "preferred_username", "alice\x00")), ReasonName},
		"name with a line break":     {"", i.Sign(with(good, "preferred_username", "alice\nroot")), ReasonName},
		"name that is no text":       {"", i.Sign(with(good, "preferred_username", []string{"alice"})), ReasonName},
		"empty name":                 {"", i.Sign(with(good, "preferred_username", "")), ReasonName},
		"no name":                    {"", i.Sign(with(good, "preferred_username", nil)), ReasonName},
		"groups of another form":     {"", i.Sign(with(good, "groups", map[string]any{"a": "b"})), ReasonClaims},
		"roles of another form":      {"", i.Sign(with(good, "realm_access", map[string]any{"roles": []any{true}})), ReasonClaims},
		"group with a control":       {"", i.Sign(with(good, "groups", []string{"a\tb"})), ReasonClaims},
		"large":                      {"", i.Sign(with(good, "padding", strings.Repeat("x", 45_000))), ReasonTooLarge},
		"ID token":                   {"", i.Sign(with(with(good, "typ", "ID"), "at_hash", "x")), ReasonType},
		"ID token without typ":       {"", i.Sign(with(with(good, "typ", nil), "at_hash", "x")), ReasonType},
		"refresh token":              {"", i.Sign(with(good, "typ", "Refresh")), ReasonType},
		"logout token":               {"", i.Sign(with(with(good, "typ", nil), "events", map[string]any{})), ReasonType},
		"another kind of token":      {"", oidctest.Forge(jose.RS256, newRSA(t), map[string]any{"kid": kid, "typ": "dpop+jwt"}, good), ReasonSignature},
		"issued to another client":   {"", i.Sign(with(good, "azp", "other-app")), ReasonAuthorizedParty},
		"issued to nobody":           {"", i.Sign(with(good, "azp", nil)), ReasonAuthorizedParty},
		"client_id that is not azp":  {"", i.Sign(with(with(good, "azp", "other-app"), "client_id", "sqe-cli")), ReasonAuthorizedParty},
		"no token":                   {"alice", "alice-pw", identity.ReasonNobody},
		"three words":                {"alice", "a.b.c", identity.ReasonNobody},
		"a header that is no object": {"alice", "W10.W10.W10", identity.ReasonNobody},
	} {
		t.Run(name, func(t *testing.T) {
			chain := identity.NewChain(p) // one of its own: failures are limited
			got, err := chain.Authenticate(context.Background(), x.user, x.token, here)
			if !fault.Is(err, fault.Auth) || identity.ReasonOf(err) != x.want || !got.Principal.IsZero() || got.Credential != nil {
				t.Fatalf("%+v, %v, reason %q, want %q", got, err, identity.ReasonOf(err), x.want)
			}
			text := "Access denied for user '" + x.user + "'@'10.0.0.1'"
			if x.want == ReasonExpired {
				text += ": the token has expired; get a new one (sqe login)"
			}
			if err.Error() != text {
				t.Errorf("the client is told %q", err)
			}
			for e := err; e != nil; e = unwrap(e) {
				for _, part := range strings.Split(x.token, ".") {
					if len(part) > 20 && strings.Contains(e.Error(), part) {
						t.Error("the error holds a part of the token")
					}
				}
			}
			// The positive control: the same provider takes the good token.
			got, err = chain.Authenticate(context.Background(), "alice", signed, here)
			if err != nil || got.Principal.Name != "alice" {
				t.Fatalf("the good token: %+v, %v", got.Principal, err)
			}
		})
	}
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

func newRSA(t testing.TB) any {
	t.Helper()
	return oidctest.NewKey(jose.RS256)
}

// TestAlgorithms: signatures by every algorithm of the list are taken, and by none
// that the configuration leaves out.
func TestAlgorithms(t *testing.T) {
	for _, name := range SupportedAlgorithms {
		i, p := setup(t, nil)
		i.Rotate(jose.SignatureAlgorithm(name))
		if l, err := p.Authenticate(context.Background(), "", i.Sign(i.Claims("alice")), nil); err != nil || l.Principal.Name != "alice" {
			t.Errorf("%s: %v, reason %q", name, err, identity.ReasonOf(err))
		}
	}
	i, p := setup(t, func(o *Options) { o.Algorithms = []string{"ES256"} })
	if _, err := p.Authenticate(context.Background(), "", i.Sign(i.Claims("alice")), nil); identity.ReasonOf(err) != ReasonAlgorithm {
		t.Error(err)
	}
	if _, err := New(Options{Name: "x", Issuer: "x", Audiences: []string{"x"}, Algorithms: []string{"HS256"}}); !fault.Is(err, fault.Config) {
		t.Error("HS256 can be configured:", err)
	}
}

// TestClaims: who a token makes, by the configuration.
func TestClaims(t *testing.T) {
	i, p := setup(t, func(o *Options) {
		o.Claims = Claims{
			Name: "name.login", Groups: "groups", Roles: []string{"realm_access.roles", "https://example.com/roles", "resource_access.sqe.roles"},
			Attributes:      map[string]string{"department": "department", "level": "level", "tags": "tags", "missing": "missing", "cleared": "cleared"},
			StripGroupSlash: true,
		}
		o.Prefix, o.AdminRoles, o.AdminGroups = "p:", []string{"boss"}, []string{"org/admins"}
	})
	claims := i.Claims("x")
	maps.Copy(claims, map[string]any{
		"name": map[string]any{"login": "Ann Lee "}, "groups": []string{"/org/team", "other"}, "https://example.com/roles": "single",
		"resource_access": map[string]any{"sqe": map[string]any{"roles": []string{"analyst", "writer"}}},
		"department":      "HR", "level": json.Number("12345678901234567890"), "tags": []string{"a", "b"}, "cleared": true,
	})
	l, err := p.Authenticate(context.Background(), "p:Ann Lee ", i.Sign(claims), nil)
	if err != nil {
		t.Fatal(err, identity.ReasonOf(err))
	}
	want := identity.Principal{
		Name: "p:Ann Lee ", Groups: []string{"p:org/team", "p:other"}, Roles: []string{"p:analyst", "p:single", "p:writer"},
		Attributes: map[string]string{"department": "HR", "level": "12345678901234567890", "tags": "a,b", "cleared": "true"},
	}
	if diff := cmp.Diff(want, l.Principal); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]map[string]any{
		"by role":  with(claims, "https://example.com/roles", "boss"),
		"by group": with(claims, "groups", []string{"/org/admins"}),
	} {
		if l, err := p.Authenticate(context.Background(), "", i.Sign(c), nil); err != nil || !l.Principal.Admin {
			t.Errorf("an administrator %s: %+v, %v", name, l.Principal, err)
		}
	}
}

// TestTwoProviders: the provider whose issuer a token names decides alone, and who
// it makes is never who another provider makes.
func TestTwoProviders(t *testing.T) {
	a, first := setup(t, nil)
	b, second := setup(t, func(o *Options) { o.Prefix = "b:" })
	chain := identity.NewChain(first, second)
	ctx := context.Background()
	if l, err := chain.Authenticate(ctx, "", a.Sign(a.Claims("alice")), nil); err != nil || l.Principal.Name != "alice" {
		t.Error(l.Principal, err)
	}
	l, err := chain.Authenticate(ctx, "", b.Sign(b.Claims("alice")), nil)
	if err != nil || l.Principal.Name != "b:alice" || l.Principal.Groups[0] != "b:analytics" || l.Principal.Roles[0] != "b:analyst" {
		t.Error(l.Principal, err)
	}
	// A token of one that says to be the other's.
	if l, err := chain.Authenticate(ctx, "", b.Sign(a.Claims("alice")), nil); identity.ReasonOf(err) != ReasonSignature {
		t.Error(l.Principal, err)
	}
	if l, err := chain.Authenticate(ctx, "alice", b.Sign(b.Claims("alice")), nil); identity.ReasonOf(err) != ReasonUser {
		t.Error(l.Principal, err)
	}
}

// FuzzToken: whatever is sent in place of a token, nobody gets in but who signed
// tokens name, and nothing panics.
func FuzzToken(f *testing.F) {
	i, p := setup(f, nil)
	good := i.Sign(i.Claims("alice"))
	parts := strings.Split(good, ".")
	for _, seed := range []string{good, "", ".", "..", "...", parts[0] + ".." + parts[2], plain(`{"alg":"none"}`, i.Claims("alice"), ""), plain(`{"alg":{}}`, map[string]any{"iss": []int{1}}, "x"), parts[0] + "." + parts[1] + "." + parts[2][:8]} {
		f.Add("alice", seed)
	}
	f.Fuzz(func(t *testing.T, user, raw string) {
		p.Recognizes(user, raw)
		l, err := p.Authenticate(context.Background(), user, raw, here)
		if err == nil && (l.Principal.Name != "alice" || !strings.HasPrefix(raw, parts[0]+"."+parts[1]+".")) {
			t.Errorf("%q opens a session of %q", raw, l.Principal.Name)
		}
		if err != nil && !fault.Is(err, fault.Auth) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}
