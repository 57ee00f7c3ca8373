package oidc

import (
	"context"
	"errors"
	"testing"
	"time"

	"sqe/fault"
	"sqe/identity"
)

// TestIDTokens: with token-use = "id" ID tokens for this server's client count and no
// others, and no access token does; they prove nothing to other services, and their
// sessions end with them. Without it they are refused (TestTokenAttacks).
func TestIDTokens(t *testing.T) {
	i, p := setup(t, func(o *Options) { o.IDTokens, o.Audiences = true, []string{"sqe-cli", "sqe-web"} })
	good := i.Claims("alice")
	good["aud"], good["typ"], good["at_hash"], good["nonce"] = "sqe-cli", "ID", "x", "y"
	for name, x := range map[string]struct {
		claims map[string]any
		want   identity.Reason
	}{
		"as Keycloak makes it":        {good, ""},
		"without a kind and azp":      {with(with(with(good, "typ", nil), "azp", nil), "at_hash", nil), ""},
		"for two clients of ours":     {with(good, "aud", []string{"sqe-cli", "sqe-web"}), ""},
		"access token":                {with(good, "typ", "Bearer"), ReasonType},
		"access token without a kind": {with(with(good, "typ", nil), "scope", "openid"), ReasonType},
		"access token of Entra":       {with(with(good, "typ", nil), "scp", "read"), ReasonType},
		"refresh token":               {with(good, "typ", "Refresh"), ReasonType},
		"logout token":                {with(with(good, "typ", nil), "events", map[string]any{}), ReasonType},
		"without a subject":           {with(good, "sub", nil), ReasonType},
		"without its time":            {with(good, "iat", nil), ReasonType},
		"for another client":          {with(good, "aud", "other"), ReasonAudience},
		"for another client too":      {with(good, "aud", []string{"sqe-cli", "other"}), ReasonAudience},
		"issued to another client":    {with(good, "azp", "other"), ReasonAuthorizedParty},
		"expired":                     {with(good, "exp", time.Now().Add(-time.Minute).Unix()), ReasonExpired},
	} {
		l, err := p.Authenticate(context.Background(), "alice", i.Sign(x.claims), here)
		if identity.ReasonOf(err) != x.want || (err == nil) != (x.want == "") {
			t.Errorf("%s: %v, reason %q, want %q", name, err, identity.ReasonOf(err), x.want)
		}
		if err == nil && (l.Principal.Name != "alice" || l.Credential != nil) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if idToken(map[string]any{"typ": "at+jwt"}, good) || !idToken(map[string]any{"typ": "JWT"}, good) || !idToken(map[string]any{}, good) {
		t.Error("the kind in the header does not count")
	}
	for name, change := range map[string]func(*Options){
		"passwords":     func(o *Options) { o.Passwords, o.ClientID = true, "x" },
		"services":      func(o *Options) { o.ServiceClients = []string{"etl"} },
		"introspection": func(o *Options) { o.IntrospectionInterval, o.ClientID = time.Minute, "x" },
	} {
		o := Options{Name: "x", Issuer: "x", Audiences: []string{"x"}, IDTokens: true}
		if _, err := New(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := New(o); !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIDTokenExpires: the session of an ID token ends with it.
func TestIDTokenExpires(t *testing.T) {
	i, p, c := clocked(t, func(o *Options) { o.IDTokens = true })
	l, err := p.Authenticate(context.Background(), "", i.Sign(with(with(i.Claims("alice"), "typ", "ID"), "aud", "sqe")), nil)
	if identity.ReasonOf(err) != ReasonAuthorizedParty {
		t.Fatal("issued to another client than it is for:", l.Principal, err)
	}
	l, err = p.Authenticate(context.Background(), "", i.Sign(with(with(with(i.Claims("alice"), "typ", "ID"), "aud", "sqe"), "azp", "sqe")), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.move(4 * time.Minute)
	if who, err := l.Continue(context.Background()); err != nil || who.Name != "alice" {
		t.Fatal(who, err)
	}
	c.move(2 * time.Minute)
	if _, err := l.Continue(context.Background()); !errors.Is(err, identity.ErrOver) {
		t.Error(err)
	}
}
