//go:build e2e

package keycloak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sqe/identity/oidc/oidctest"
	"sqe/tests/sqetest"
)

// tokenClient runs a client that knows MySQL's method for tokens.
type tokenClient func(user, file string, more ...string) *exec.Cmd

// tokenClients are Oracle's: the connector of Python by itself and with the C library
// of MySQL, which the command mysql has too, and that of Java.
func tokenClients(t *testing.T) map[string]tokenClient {
	t.Helper()
	s := serve(t, "expiry", provider(`clock-skew = "0s"`)+usersLast)
	programs := filepath.Join(sqetest.Root(), "tests", "keycloak", "clients")
	python := func(kind string, environment ...string) tokenClient {
		return func(user, file string, more ...string) *exec.Cmd {
			args := append([]string{filepath.Join(programs, "tokens.py"), kind, strconv.Itoa(s.Port), user, file}, more...)
			cmd := exec.CommandContext(within(t, patience), filepath.Join(sqetest.Cache(), "venv", "bin", "python"), args...)
			cmd.Env = append(os.Environ(), environment...)
			return cmd
		}
	}
	jars, err := filepath.Glob(filepath.Join(sqetest.Cache(), "java", "mysql-connector-j-*.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatal("MySQL Connector/J is not installed; run tests/install:", jars, err)
	}
	classes := t.TempDir()
	if out, err := exec.CommandContext(within(t, patience), "javac", "-cp", jars[0], "-d", classes, filepath.Join(programs, "Tokens.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return map[string]tokenClient{
		"python":   python("pure"),
		"python C": python("c", "PYTHONPATH="+filepath.Join(sqetest.Cache(), "connector-c")),
		"java": func(user, file string, more ...string) *exec.Cmd {
			args := append([]string{"-cp", classes + string(os.PathListSeparator) + jars[0], "Tokens", strconv.Itoa(s.Port), user, file}, more...)
			return exec.CommandContext(within(t, patience), "java", args...)
		},
	}
}

// TestOpenIDClients: real clients log in with a file that holds an access token, by
// MySQL's method for tokens, over TLS, and are refused with one that is not good, with
// the reason in the audit log.
func TestOpenIDClients(t *testing.T) {
	clients := tokenClients(t)
	s := serve(t, "expiry", provider(`clock-skew = "0s"`)+usersLast)
	dir := t.TempDir()
	file := func(name, token string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(fleet.secret(token)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := kc.Token(t, "sqe-cli", "anna_analyst", "scope", "openid")
	key := realKey(t, "sqe")
	anna := file("anna", good.Access)
	expired := file("expired", kc.Token(t, "sqe-short", "anna_analyst").Access)
	deadline := time.Now().Add(3500 * time.Millisecond) // its life
	const denied = "Access denied for user 'anna_analyst'@'127.0.0.1'"
	cases := []struct{ name, user, file, want, reason string }{
		{"good", "anna_analyst", anna, "", ""},
		{"9 KB", "anna_analyst", file("wide", kc.Token(t, "sqe-wide", "anna_analyst").Access), "", ""},
		{"of another realm", "anna_analyst", file("foreign", kc.TokenOf(t, "other", "sqe-cli", "alice").Access), denied, "nobody"},
		{"for another service", "anna_analyst", file("audience", kc.Token(t, "other-app", "anna_analyst").Access), denied, "audience"},
		{"another key with this id", "anna_analyst", file("forged", oidctest.Forge(jose.RS256, oidctest.NewKey(jose.RS256), map[string]any{"kid": key.KeyID, "typ": "JWT"}, claimsOf(t, good.Access))), denied, "signature"},
		{"of somebody else", "anna_analyst", file("carol", kc.Token(t, "sqe-cli", "carol").Access), denied, "user"},
		{"ID token", "anna_analyst", file("id", good.ID), denied, "token-type"},
		{"good again", "anna_analyst", anna, "", ""},
		{"expired", "anna_analyst", expired, denied + ": the token has expired", "expired"},
	}
	for _, c := range cases {
		if c.name == "expired" {
			time.Sleep(time.Until(deadline))
		}
		for name, client := range clients {
			before := len(logins(t, s))
			out, err := client(c.user, c.file).CombinedOutput()
			if err != nil {
				t.Fatalf("%s, %s: %v: %s", name, c.name, err, out)
			}
			events := logins(t, s)[before:]
			if c.want == "" {
				if string(out) != "as anna_analyst@127.0.0.1\nas anna_analyst@127.0.0.1\n" {
					t.Errorf("%s, %s: %s", name, c.name, out)
				}
				continue
			}
			if !strings.HasPrefix(string(out), "error 1045 ") || !strings.Contains(string(out), c.want) {
				t.Errorf("%s, %s: %s", name, c.name, out)
			}
			if len(events) != 1 || events[0].Reason != c.reason {
				t.Errorf("%s, %s: audited as %+v", name, c.name, events)
			}
			// Who logs in well is not made to wait for the failures before.
			if got := login(t, s, "anna_analyst", good.Access); got.Err != nil {
				t.Fatal(got.Err)
			}
		}
	}
	// Without TLS these clients do not send a token; that the server takes none then is
	// tested in package server.
	for name, client := range clients {
		before := len(logins(t, s))
		out, _ := client("anna_analyst", anna, "plain").CombinedOutput()
		if text := string(out); !strings.HasPrefix(text, "error") || strings.Contains(text, "1045") {
			t.Errorf("%s, without TLS: %s", name, out)
		}
		if events := logins(t, s)[before:]; len(events) != 0 {
			t.Errorf("%s, without TLS: %+v", name, events)
		}
	}
}
