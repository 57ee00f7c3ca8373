// Package keycloaktest gives tests a real Keycloak, with the realms sqe and other of
// the folder realms.
//
// Users of realm sqe have the password "<name>-pw": alice (group engineering, role
// data_engineer), bob and anna_analyst (analytics, data_analyst), carol
// (governance, data_steward and sqe_admin), ext_auditor (external, auditor), and
// disabled_dan, whose account is disabled. Clients: sqe (secret sqe-secret; may
// introspect and exchange tokens), sqe-cli (public, device flow), etl (secret
// etl-secret, a service), polaris (secret polaris-secret), sqe-short (tokens of 3
// seconds), sqe-paths (groups with their full path), sqe-es and sqe-hs (tokens
// signed with ES256 and HS256), sqe-wide and sqe-big (tokens of 9 and of 60 KB),
// other-app (tokens without an audience), polaris-app (tokens for polaris). Realm
// other has an alice and a client sqe of its own.
//
// With SQE_KEYCLOAK, the folder of one that "keycloak start" began, tests of
// several packages share it. A Keycloak that a test started ends with it.
package keycloaktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sqe/tests/sqetest"
)

// Keycloak is a running Keycloak.
type Keycloak struct {
	Base string // http://host:port
	dir  string
	own  bool
}

func script() string {
	return filepath.Join(sqetest.Root(), "tests", "keycloaktest", "keycloak")
}

// Start finds the shared Keycloak, or starts one with its state in dir.
func Start(dir string) (*Keycloak, error) {
	k := &Keycloak{dir: os.Getenv("SQE_KEYCLOAK")}
	if k.dir == "" {
		k.dir, k.own = dir, true
		cmd := exec.Command(script(), "start", dir)
		cmd.Env = append(os.Environ(), fmt.Sprintf("SQE_TEST_OWNER=%d", os.Getpid()))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("keycloak: %w\n%s", err, out)
		}
	}
	base, err := os.ReadFile(filepath.Join(k.dir, "base"))
	if err != nil {
		return nil, fmt.Errorf("keycloak in %s does not run: %w", k.dir, err)
	}
	k.Base = strings.TrimSpace(string(base))
	return k, nil
}

// Stop ends a Keycloak that Start began.
func (k *Keycloak) Stop() error {
	if !k.own {
		return nil
	}
	out, err := exec.Command(script(), "stop", k.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("keycloak: %w\n%s", err, out)
	}
	return nil
}

// Freeze stops the process, so that connections are taken and nothing answers,
// until Thaw.
func (k *Keycloak) Freeze(t testing.TB) { k.signal(t, syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (k *Keycloak) Thaw(t testing.TB) { k.signal(t, syscall.SIGCONT) }

func (k *Keycloak) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(-pid, s)
	}
	if err != nil {
		t.Fatal("keycloak:", err)
	}
}

// Issuer is the issuer of a realm.
func (k *Keycloak) Issuer(realm string) string { return k.Base + "/realms/" + realm }

// Tokens is an answer of the token endpoint.
type Tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Error   string `json:"error"`
}

// Ask posts a form to an endpoint of a realm ("token", "logout", "auth/device") and
// returns the status and the answer.
func (k *Keycloak) Ask(realm, endpoint string, form ...string) (int, []byte, error) {
	v := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		v.Add(form[i], form[i+1])
	}
	resp, err := http.PostForm(k.Issuer(realm)+"/protocol/openid-connect/"+endpoint, v)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// Token gets the tokens of a user of realm sqe from a client.
func (k *Keycloak) Token(t testing.TB, client, user string, more ...string) Tokens {
	t.Helper()
	return k.TokenOf(t, "sqe", client, user, more...)
}

// TokenOf gets the tokens of a user of a realm from a client.
func (k *Keycloak) TokenOf(t testing.TB, realm, client, user string, more ...string) Tokens {
	t.Helper()
	form := append([]string{"grant_type", "password", "client_id", client, "username", user, "password", user + "-pw"}, more...)
	status, body, err := k.Ask(realm, "token", form...)
	var out Tokens
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil || out.Access == "" {
		t.Fatalf("no token of %s from %s: status %d, %s, %v", user, client, status, out.Error, err)
	}
	return out
}

// Logout ends the session of a refresh token.
func (k *Keycloak) Logout(t testing.TB, client, refresh string) {
	t.Helper()
	status, body, err := k.Ask("sqe", "logout", "client_id", client, "refresh_token", refresh)
	if err != nil || status != http.StatusNoContent {
		t.Fatalf("logout: status %d, %s, %v", status, body, err)
	}
}

// Admin calls the administration of a realm, such as PUT "users/<id>", with a JSON
// body (nil: none), and decodes the answer into out (nil: not).
func (k *Keycloak) Admin(t testing.TB, method, realm, path string, in, out any) {
	t.Helper()
	_, body, err := k.Ask("master", "token", "grant_type", "password", "client_id", "admin-cli", "username", "admin", "password", "admin")
	var admin Tokens
	if err == nil {
		err = json.Unmarshal(body, &admin)
	}
	if err != nil || admin.Access == "" {
		t.Fatalf("no token of the administrator: %s, %v", admin.Error, err)
	}
	var content bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&content).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, k.Base+"/admin/realms/"+realm+"/"+path, &content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+admin.Access)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: status %d, %s", method, path, resp.StatusCode, text)
	}
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
}

// Enable enables or disables a user of realm sqe.
func (k *Keycloak) Enable(t testing.TB, user string, enabled bool) {
	t.Helper()
	var found []map[string]any
	k.Admin(t, http.MethodGet, "sqe", "users?exact=true&username="+user, nil, &found)
	if len(found) != 1 {
		t.Fatalf("%d users %s", len(found), user)
	}
	found[0]["enabled"] = enabled
	k.Admin(t, http.MethodPut, "sqe", "users/"+found[0]["id"].(string), found[0], nil)
}
