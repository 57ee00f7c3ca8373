//go:build e2e

package keycloak

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// example is a section of configuration that docs/keycloak.md shows, for the
// Keycloak of the suite.
func example(t testing.TB, n int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sqetest.Root(), "docs", "keycloak.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) <= n {
		t.Fatalf("docs/keycloak.md has %d examples", len(found))
	}
	const shown = "https://keycloak.example/realms/lake"
	if !strings.Contains(found[n][1], shown) {
		t.Fatalf("the example names no %s", shown)
	}
	return "\n" + strings.ReplaceAll(found[n][1], shown, kc.Issuer("sqe"))
}

// TestGuide: the configurations of docs/keycloak.md work as the page says.
func TestGuide(t *testing.T) {
	s := serve(t, "guide", example(t, 0))
	if got, err := login(t, s, "", kc.Token(t, "sqe-cli", "carol").Access).One(); err != nil || got != "carol@127.0.0.1" {
		t.Error(got, err)
	}
	if got := login(t, s, "", kc.Token(t, "sqe-short", "carol").Access); got.Number() != 1045 {
		t.Error("another client's token:", got.Text())
	}
	out, err := sqetest.Run("check", "-c", filepath.Join(s.Dir, "sqe.toml"))
	if !strings.Contains(out, "stays in until the token expires; set introspection-interval") {
		t.Errorf("sqe check: %v, %s", err, out)
	}

	if err := os.MkdirAll(filepath.Join(folder, "guide-passwords"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "guide-passwords", "client.secret"), []byte("sqe-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fleet.secret("sqe-secret")
	s = serve(t, "guide-passwords", example(t, 1))
	for user, password := range map[string]string{"alice": "alice-pw", "etl": "etl-secret", "": kc.Token(t, "sqe-cli", "bob").Access} {
		if got := login(t, s, user, password); got.Err != nil {
			t.Errorf("%s: %s", user, got.Text())
		}
	}
	out, err = sqetest.Run("check", "-c", filepath.Join(s.Dir, "sqe.toml"))
	if err != nil || !strings.Contains(out, "is out after at most 30s") {
		t.Errorf("sqe check: %v, %s", err, out)
	}
}

// TestCheck: sqe check tells that a provider is not there, or is another one, and a
// server does not start with one that is configured by half; it does start while
// its provider is away.
func TestCheck(t *testing.T) {
	s := serve(t, "tokens", provider())
	text, err := os.ReadFile(filepath.Join(s.Dir, "sqe.toml"))
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(string(text), "\n[[identity-providers]]")
	u, err := url.Parse(kc.Base)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ sections, want string }{
		"away":                   {strings.ReplaceAll(provider(), kc.Base, "http://127.0.0.1:1"), "its metadata cannot be read"},
		"another name":           {strings.ReplaceAll(provider(), u.Host, "localhost:"+u.Port()), "issuer must be exactly that"},
		"no audience":            {strings.ReplaceAll(provider(), `audience = ["sqe"]`, ""), "audience is missing"},
		"no such realm":          {strings.ReplaceAll(provider(), "realms/sqe", "realms/none"), "its metadata cannot be read"},
		"in order":               {provider(), "set introspection-interval"},
		"wrong secret":           {provider(strings.ReplaceAll(introspecting, "sqe-secret", "nonsense")), "does not let this server ask about tokens (answer 401)"},
		"wrong client":           {provider("client-id = \"nobody\"\nclient-secret = \"x\"\npasswords = true"), "does not take the client of passwords"},
		"no passwords":           {provider("client-id = \"polaris\"\nclient-secret = \"polaris-secret\"\npasswords = true"), "turn on direct access grants for the client polaris"},
		"in order with a client": {provider(introspecting + "\npasswords = true"), "in order"},
	} {
		path := filepath.Join(s.Dir, "check.toml")
		if err := os.WriteFile(path, []byte(base+x.sections), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := sqetest.Run("check", "-c", path)
		if !strings.Contains(out, x.want) || (err == nil) != strings.HasPrefix(name, "in order") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		if name == "no audience" {
			if out, err := sqetest.Run("serve", "-c", path); err == nil || !strings.Contains(out, x.want) {
				t.Errorf("a server with half a provider: %v, %s", err, out)
			}
		}
	}
	away := serve(t, "away", strings.ReplaceAll(provider(), kc.Base, "http://127.0.0.1:1"))
	if got := login(t, away, "dave", "demo"); got.Err != nil {
		t.Error("a user of the configuration:", got.Text())
	}
	token := kc.Token(t, "sqe-cli", "anna_analyst").Access
	if got := login(t, away, "", token); got.Number() != 1045 {
		t.Error("a token of an issuer that is not configured:", got.Text())
	}
}
