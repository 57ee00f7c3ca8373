//go:build e2e

package rustberg

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// catalogServer is Rustberg, in a process of its own.
type catalogServer struct {
	// Address is that of the REST catalog, Files the folder of its tables.
	Address, Files string
	cmd            *exec.Cmd
	log            *logged
}

// logged is what a process wrote.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startCatalog starts an empty catalog with its files in folder, for tokens of the
// issuer.
func startCatalog(folder, issuer string) (*catalogServer, error) {
	program := filepath.Join(sqetest.Cache(), "rustberg", "bin", "rustberg")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("rustberg is missing: run tests/install rustberg (%w)", err)
	}
	port, err := sqetest.FreePort()
	if err != nil {
		return nil, err
	}
	c := &catalogServer{Address: fmt.Sprintf("http://127.0.0.1:%d", port), Files: filepath.Join(folder, "warehouse"), log: &logged{}}
	for _, d := range []string{c.Files, filepath.Join(folder, "registry")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	// Five rejected tokens would lock this address out for five minutes: no limits.
	config := fmt.Sprintf(`
[server]
host = "127.0.0.1"
port = %[1]d

[server.auth]
api_key_enabled = false
jwt_enabled = true
policy_file = "%[2]s/policies.cedar"

[server.auth.jwt]
issuer = "%[3]s"
audiences = ["polaris"]
roles_claim = "roles"

[tls]
enabled = false
insecure_http = true

[storage]
catalog_url = "file://%[2]s/registry"
warehouse_location = "file://%[2]s/warehouse"

[rate_limit]
enabled = false
track_auth_failures = false

[audit]
sink = "file"
path = "%[2]s/audit.jsonl"
`, port, folder, issuer)
	for name, text := range map[string]string{"rustberg.toml": config, "policies.cedar": administrators} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	// Variables of its own would beat the file: it gets none. Built without TLS it does
	// not heed insecure_http in the file; the option counts.
	c.cmd = sqetest.Owned(exec.Command(program, "--insecure-http", "--config", filepath.Join(folder, "rustberg.toml")))
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = []string{"HOME=" + folder}, c.log, c.log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(c.Address + "/ready")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return c, nil
			}
		}
		if time.Since(start) > 2*time.Minute || c.cmd.Process.Signal(syscall.Signal(0)) != nil {
			return nil, errors.Join(fmt.Errorf("rustberg did not start: %w\n%s", err, c.log), c.Stop())
		}
	}
}

// Stop ends the catalog.
func (c *catalogServer) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	err := c.cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return nil
	}
	return err
}

// ask sends a request to the catalog itself as somebody, and returns the status and
// the answer.
func ask(t testing.TB, name, method, path string, body any) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, lake.Address+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+people.Token(t, name))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}

// control is the status with which the catalog itself answers somebody who loads a
// table.
func control(t testing.TB, name, table string) int {
	t.Helper()
	status, _ := ask(t, name, http.MethodGet, path(table), nil)
	return status
}

func path(table string) string {
	schema, name, _ := strings.Cut(table, ".")
	return "/v1/namespaces/" + schema + "/tables/" + name
}

// administrators is the policy that is always there. The groups of Cedar are the
// roles of the token; carol has sqe_admin.
const administrators = `permit(principal in Rustberg::Group::"sqe_admin", action, resource) when { resource.tenant == principal.tenant };
`

// look is the right to see something, and to read it.
const look = `action in [Rustberg::Action::"Read", Rustberg::Action::"List"]`

// policies are those of the catalog from now on, beside the one for administrators.
// They are in force when it returns.
func policies(t testing.TB, texts ...string) {
	t.Helper()
	status, answer := ask(t, "carol", http.MethodPut, "/management/v1/policies", map[string]string{"source": administrators + strings.Join(texts, "\n")})
	if status != http.StatusOK {
		t.Fatalf("the catalog takes no policies: %d %s", status, answer)
	}
}

// group and person are principals of Cedar. A person is known by the subject of the
// token, which is another one after each start of Keycloak.
func group(role string) string { return `principal in Rustberg::Group::"` + role + `"` }

func person(t testing.TB, name string) string {
	t.Helper()
	var claims struct{ Sub string }
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(people.Token(t, name), ".")[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil || claims.Sub == "" {
		t.Fatalf("the token of %s has no subject: %v", name, err)
	}
	return `principal == Rustberg::User::"` + claims.Sub + `"`
}

// resource names one of Cedar.
func resource(kind, name string) string {
	return `resource == Rustberg::` + kind + `::"default\u{1F}` + strings.ReplaceAll(name, ".", `\u{1F}`) + `"`
}

func table(name string) string     { return resource("Table", name) }
func view(name string) string      { return resource("View", name) }
func namespace(name string) string { return resource("Namespace", name) }

// inside is a namespace and all that is in it.
func inside(name string) string { return strings.Replace(namespace(name), "==", "in", 1) }

func permit(who, what, where string) string {
	return "permit(" + who + ", " + what + ", " + where + ");"
}

func forbid(who, what, where string) string {
	return "forbid(" + who + ", " + what + ", " + where + ");"
}

// restrict is a permission to read under a filter, in JSON, and with masks on
// columns; either may be empty.
func restrict(who, where, filter, masks string) string {
	var b strings.Builder
	for name, text := range map[string]string{"row_filter": filter, "column_mask": masks} {
		if text != "" {
			fmt.Fprintf(&b, "@%s(%s)\n", name, quote(text))
		}
	}
	return b.String() + permit(who, look, where)
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// finds lets somebody see that a namespace is there, but nothing in it.
func finds(who, name string) string {
	return permit(who, `action == Rustberg::Action::"List"`, `resource == Rustberg::Tenant::"default"`) + "\n" + permit(who, look, namespace(name))
}
