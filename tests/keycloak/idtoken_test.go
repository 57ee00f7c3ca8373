//go:build e2e

package keycloak

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// TestIDTokens: with token-use = "id" the ID token of the client that it is for opens a
// session, also from sqe login, and no other token does.
func TestIDTokens(t *testing.T) {
	section := strings.Replace(provider(`token-use = "id"`, `roles-claims = ["roles"]`), `["sqe"]`, `["sqe-cli"]`, 1)
	s := serve(t, "id", section)
	tokens := kc.Token(t, "sqe-cli", "anna_analyst", "scope", "openid")
	other := kc.Token(t, "sqe-paths", "anna_analyst", "scope", "openid")
	if got, err := login(t, s, "anna_analyst", tokens.ID).One(); err != nil || got != "anna_analyst@127.0.0.1" {
		t.Error(got, err)
	}
	for name, x := range map[string]struct{ token, reason string }{
		"access token":               {tokens.Access, "token-type"},
		"ID token of another client": {other.ID, "audience"},
		"refresh token":              {tokens.Refresh, "algorithm"},
		"altered":                    {tokens.ID[:len(tokens.ID)-8] + "AAAAAAAA", "signature"},
	} {
		if got := login(t, s, "", x.token); got.Number() != 1045 {
			t.Errorf("%s: %s", name, got.Text())
		}
		if e := logins(t, s); e[len(e)-1].Reason != x.reason {
			t.Errorf("%s: %+v", name, e[len(e)-1])
		}
	}
	out, err := sqetest.Run("check", "-c", filepath.Join(s.Dir, "sqe.toml"))
	if err != nil || !strings.Contains(out, "stays in until the ID token expires") {
		t.Errorf("sqe check: %v, %s", err, out)
	}

	sqe, err := sqetest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	h := home{t, t.TempDir()}
	h.login(sqe, s, "anna_analyst", "--id-token")
	token, problem, err := h.run(sqe, "token")
	if token = fleet.secret(strings.TrimSpace(token)); err != nil || fmt.Sprint(claimsOf(t, token)["typ"]) != "ID" {
		t.Fatal("no ID token:", problem, err)
	}
	out, problem, err = h.run(sqe, "sql", "-e", "SELECT CURRENT_USER()")
	if err != nil || !strings.Contains(out, "anna_analyst@127.0.0.1") {
		t.Error("sqe sql:", out, problem, err)
	}
}
