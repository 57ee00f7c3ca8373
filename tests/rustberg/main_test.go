//go:build e2e

package rustberg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/keycloaktest"
	"sqe/tests/sqetest"
)

const storePassword = "Store-passw0rd"

// The parts of a run, one of each.
var (
	kc     *keycloaktest.Keycloak
	lake   *catalogServer
	sqe    *sqetest.Server
	folder string
	people = &keycloaktest.People{}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if folder, err = os.MkdirTemp("", "sqe-rustberg-"); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if kc, err = keycloaktest.Start(filepath.Join(folder, "keycloak")); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, kc.Stop()) }()
	if lake, err = startCatalog(filepath.Join(folder, "lake"), kc.Issuer("sqe")); err != nil {
		return 1, err
	}
	if err := startSQE(); err != nil {
		return 1, errors.Join(err, lake.Stop())
	}
	people.Keycloak, people.Server = kc, sqe
	code = m.Run()
	err = errors.Join(people.Close(), sqe.Stop(), lake.Stop(), people.Leaked(sqe, storePassword))
	if strings.Contains(sqe.Output(), "panic") {
		err = errors.Join(err, errors.New("sqe panicked"))
	}
	if code != 0 || err != nil {
		fmt.Fprintf(os.Stderr, "sqe wrote:\n%s\nthe catalog wrote:\n%s\n", tail(sqe.Output()), tail(lake.log.String()))
	}
	return code, err
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

// startSQE starts a server with the catalog, under two names: lake is asked again
// after a second, slow after five, as by default.
func startSQE() error {
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = sqetest.FreePort(); err != nil {
			return err
		}
	}
	config := fmt.Sprintf(`
[server]
port = %d

[ops]
address = "127.0.0.1:%d"

[[identity-providers]]
name = "keycloak"
issuer = %q
audience = ["sqe"]
admin-roles = ["sqe_admin", "data_engineer"]

[[catalogs]]
name = "lake"
kind = "rest"
uri = %q
warehouse = %q
visibility-max-age = "1s"
default = true

[[catalogs]]
name = "slow"
kind = "rest"
uri = %[4]q
warehouse = %[5]q

[policystore]
path = "policies.db"
admin-password-file = "store-admin.password"
listen = "127.0.0.1:%[6]d"
plain-http = true

[[policies]]
name = "store"
kind = "store"
polaris-service = "polaris"
data-service = "hive"

[audit]
file = "audit.jsonl"
`, ports[0], ports[2], kc.Issuer("sqe"), lake.Address, lake.Files, ports[1])
	for name, text := range map[string]string{"sqe.toml": config, "store-admin.password": storePassword + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var err error
	if sqe, err = sqetest.Serve(filepath.Join(folder, "sqe.toml"), ports[0]); err != nil {
		return err
	}
	if err := openGate(fmt.Sprintf("http://127.0.0.1:%d/service", ports[1])); err != nil {
		return errors.Join(err, sqe.Stop())
	}
	return nil
}

// openGate lets everybody do everything by SQE's own policies. The store is told of
// the one person of whom a test has more policies.
func openGate(store string) error {
	call := func(method, path string, body, into any) error {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		req, err := http.NewRequest(method, store+path, bytes.NewReader(text))
		if err != nil {
			return err
		}
		req.SetBasicAuth("admin", storePassword)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
		return json.NewDecoder(resp.Body).Decode(into)
	}
	err := call(http.MethodPost, "/xusers/secure/users", map[string]any{"name": "ext_auditor", "firstName": "ext_auditor", "status": 1, "userRoleList": []string{"ROLE_USER"}}, &struct{}{})
	if err != nil {
		return err
	}
	var definition struct{ AccessTypes []struct{ Name string } }
	if err := call(http.MethodGet, "/public/v2/api/servicedef/name/polaris", nil, &definition); err != nil {
		return err
	}
	var accesses []any
	for _, a := range definition.AccessTypes {
		accesses = append(accesses, map[string]any{"type": a.Name, "isAllowed": true})
	}
	resources := map[string]any{}
	for _, level := range []string{"root", "catalog", "namespace", "table"} {
		resources[level] = map[string]any{"values": []string{"*"}}
		if level == "root" {
			continue
		}
		err := call(http.MethodPost, "/public/v2/api/policy", map[string]any{
			"service": "polaris", "name": "everything in each " + level, "policyType": 0, "isEnabled": true, "resources": resources,
			"policyItems": []any{map[string]any{"groups": []string{"public"}, "accesses": accesses}},
		}, &struct{}{})
		if err != nil {
			return err
		}
	}
	return nil
}

// as runs a statement as somebody.
func as(t testing.TB, name, statement string) sqetest.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return sqetest.Ask(ctx, people.Session(t, name), statement)
}

// patience is how long a change of policies may take to be seen.
const patience = 2 * time.Minute

// becomes waits until a statement is answered so, and returns how long that took.
func becomes(t testing.TB, name, statement, want string) time.Duration {
	t.Helper()
	start, got := time.Now(), ""
	for time.Since(start) < patience {
		if got = as(t, name, statement).Said(); got == want {
			return time.Since(start)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: %s\n%s\nwant\n%s", name, statement, got, want)
	return 0
}

// is holds a statement to its answer.
func is(t testing.TB, name, statement, want string) {
	t.Helper()
	if got := as(t, name, statement).Said(); got != want {
		t.Errorf("%s: %s\n%s\nwant\n%s", name, statement, got, want)
	}
}

// does runs a statement that must succeed.
func does(t testing.TB, name, statement string) {
	t.Helper()
	if a := as(t, name, statement); a.Err != nil {
		t.Fatalf("%s: %s: %v", name, statement, a.Err)
	}
}

// fails runs a statement that must be refused with a text.
func fails(t testing.TB, name, statement, text string) {
	t.Helper()
	if got := as(t, name, statement).Said(); !strings.HasPrefix(got, "ERROR: ") || !strings.Contains(got, text) {
		t.Errorf("%s: %s\n%s\nwant an error with\n%s", name, statement, got, text)
	}
}
