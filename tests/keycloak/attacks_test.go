//go:build e2e

package keycloak

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sqe/identity/oidc/oidctest"
	"sqe/tests/sqetest"
)

// event is what a test reads of an audit event.
type event struct {
	Type, User, Outcome, Error, Reason string
	Connection                         uint32
}

// logins are the login events of a server so far.
func logins(t testing.TB, s *sqetest.Server) []event {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []event
	for line := range strings.Lines(string(text)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "login" {
			out = append(out, e)
		}
	}
	return out
}

// realKey is the key with which Keycloak signs the tokens of a realm.
func realKey(t testing.TB, realm string) jose.JSONWebKey {
	t.Helper()
	resp, err := http.Get(kc.Issuer(realm) + "/protocol/openid-connect/certs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(body, &set); err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		if k.Use == "sig" && k.Algorithm == "RS256" {
			return k
		}
	}
	t.Fatal("no key")
	return jose.JSONWebKey{}
}

func claimsOf(t testing.TB, token string) map[string]any {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func changed(claims map[string]any, pairs ...any) map[string]any {
	out := maps.Clone(claims)
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(out, pairs[i].(string))
		}
	}
	return out
}

func unsigned(header string, claims map[string]any, signature string) string {
	b, _ := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(b) + "." + signature
}

// TestTokenAttacks: tokens of a real Keycloak that are for somebody else or no
// access tokens, and tokens that somebody made up beside its real key, open
// nothing: each is refused with one and the same text, and audited with its reason.
// The good token beside each of them is taken.
func TestTokenAttacks(t *testing.T) {
	made := oidctest.New()
	t.Cleanup(made.Close)
	// Keycloak makes a key for ES256 when it is first asked for such a token: before
	// the server fetches its keys.
	elliptic := kc.Token(t, "sqe-es", "alice").Access
	second := "\n[[identity-providers]]\nname = \"made up\"\nissuer = \"" + made.URL + "\"\naudience = [\"sqe\"]\nprefix = \"made:\"\nclock-skew = \"2s\"\n"
	s := serve(t, "attacks", provider(`authorized-parties = ["sqe", "sqe-cli", "sqe-short", "sqe-big", "sqe-hs", "sqe-wide", "sqe-es"]`, `clock-skew = "0s"`)+second+usersLast)

	good := kc.Token(t, "sqe-cli", "alice", "scope", "openid")
	claims := claimsOf(t, good.Access)
	key := realKey(t, "sqe")
	der, err := x509.MarshalPKIXPublicKey(key.Key)
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	header := map[string]any{"kid": key.KeyID, "typ": "JWT"}
	parts := strings.Split(good.Access, ".")
	short := kc.Token(t, "sqe-short", "alice").Access
	time.Sleep(3500 * time.Millisecond) // its life
	mine := made.Claims("alice")
	soon := time.Now().Add(time.Minute).Unix()

	attacks := []struct{ name, user, token, reason string }{
		{"no audience", "", kc.Token(t, "other-app", "alice").Access, "audience"},
		{"wrong audience", "", kc.Token(t, "polaris-app", "alice").Access, "audience"},
		{"issued to another client", "", kc.Token(t, "sqe-paths", "alice").Access, "authorized-party"},
		{"expired", "", short, "expired"},
		{"ID token", "", good.ID, "token-type"},
		{"refresh token", "", good.Refresh, "algorithm"},
		{"signed with a shared secret by Keycloak", "", kc.Token(t, "sqe-hs", "alice").Access, "algorithm"},
		{"of 60 KB", "", kc.Token(t, "sqe-big", "alice").Access, "token-too-large"},
		{"of another realm", "", kc.TokenOf(t, "other", "sqe-cli", "alice").Access, "nobody"},
		{"of another realm, in this one's name", "", unsigned(`{"alg":"RS256","kid":"`+realKey(t, "other").KeyID+`"}`, claims, parts[2]), "unknown-key"},
		{"wrong issuer", "", made.Sign(changed(mine, "iss", made.URL+"/")), "nobody"},
		{"this issuer, another key", "", made.Sign(claims), "unknown-key"},
		{"this issuer, another key with this id", "", oidctest.Forge(jose.RS256, oidctest.NewKey(jose.RS256), header, claims), "signature"},
		{"alg none", "", unsigned(`{"alg":"none","kid":"`+key.KeyID+`"}`, claims, ""), "algorithm"},
		{"alg none with the signature", "", unsigned(`{"alg":"none","kid":"`+key.KeyID+`"}`, claims, parts[2]), "algorithm"},
		{"HMAC with the public key (PEM)", "", oidctest.Forge(jose.HS256, asPEM, header, claims), "algorithm"},
		{"HMAC with the public key (DER)", "", oidctest.Forge(jose.HS256, der, header, claims), "algorithm"},
		{"HMAC said to be RS256", "", parts[0] + "." + parts[1] + "." + strings.Split(oidctest.Forge(jose.HS256, asPEM, header, claims), ".")[2], "signature"},
		{"unknown key id", "", oidctest.Forge(jose.RS256, oidctest.NewKey(jose.RS256), map[string]any{"kid": "made-up"}, claims), "unknown-key"},
		{"other claims under the signature", "", parts[0] + "." + strings.Split(unsigned("{}", changed(claims, "preferred_username", "carol"), ""), ".")[1] + "." + parts[2], "signature"},
		{"not yet valid", "", made.Sign(changed(mine, "nbf", soon)), "not-yet-valid"},
		{"issued in the future", "", made.Sign(changed(mine, "iat", soon)), "not-yet-valid"},
		{"without an expiry", "", made.Sign(changed(mine, "exp", nil)), "claims"},
		{"name with NUL", "", made.Sign(changed(mine, "preferred_username", "alice\x00")), "name"},
		{"without a name", "", made.Sign(changed(mine, "preferred_username", nil)), "name"},
		{"name in another case", "Alice", good.Access, "user"},
		{"name with a blank", "alice ", good.Access, "user"},
		{"name of somebody else", "carol", good.Access, "user"},
		{"name without the prefix of its provider", "alice", made.Sign(mine), "user"},
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			before := logins(t, s)
			got := login(t, s, a.user, a.token)
			want := "Access denied for user '" + a.user + "'@'127.0.0.1'"
			if a.reason == "expired" {
				want += ": the token has expired; get a new one (sqe login)"
			}
			if got.Number() != 1045 || !strings.HasSuffix(got.Err.Error(), want) {
				t.Errorf("the client is told %v", got.Text())
			}
			events := logins(t, s)[len(before):]
			if len(events) != 1 || events[0].Outcome != "denied" || events[0].Reason != a.reason || events[0].User != a.user {
				t.Errorf("audited as %+v, want reason %s", events, a.reason)
			}
			// The positive control, which also forgets the failures of the name.
			user, token, who := a.user, good.Access, "alice@127.0.0.1"
			if user != "" {
				user = "alice"
			}
			if got, err := login(t, s, user, token).One(); err != nil || got != who {
				t.Errorf("the good token: %s, %v", got, err)
			}
		})
	}
	if got, err := login(t, s, "", made.Sign(mine)).One(); err != nil || got != "made:alice@127.0.0.1" {
		t.Errorf("the good token of the other provider: %s, %v", got, err)
	}
	for name, token := range map[string]string{"9 KB": kc.Token(t, "sqe-wide", "alice").Access, "ES256": elliptic} {
		if got, err := login(t, s, "alice", token).One(); err != nil || got != "alice@127.0.0.1" {
			t.Errorf("a good token, %s: %s, %v", name, got, err)
		}
	}
}
