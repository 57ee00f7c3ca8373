//go:build e2e

package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// restCatalog is the REST catalog, in a process of its own.
type restCatalog struct {
	Address string
	// Prefix stands in its paths, and Files is the folder of its tables.
	Prefix, Files string

	command, file string
	cmd           *exec.Cmd
	in            io.WriteCloser
	log           *logged
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

// startCatalog starts the catalog lake at port, with its files in folder, for tokens
// of the issuer and policies of the policy server.
func startCatalog(folder string, port int, issuer, policies, user, password string) (*restCatalog, error) {
	stack := filepath.Join(sqetest.Root(), "tests", "e2e", "stack", "ranger-catalog")
	var trouble bytes.Buffer
	prepare := exec.Command(stack)
	prepare.Stderr = &trouble
	command, err := prepare.Output()
	if err != nil {
		return nil, fmt.Errorf("the catalog could not be prepared: %w\n%s", err, &trouble)
	}
	if err := os.MkdirAll(filepath.Join(folder, "warehouse"), 0o755); err != nil {
		return nil, err
	}
	const plugin = "ranger.plugin.polaris."
	var properties strings.Builder
	for k, v := range map[string]string{
		"catalog": "lake", "root": "POLARIS", "folder": folder, "port": fmt.Sprint(port), "issuer": issuer,
		"keys": issuer + "/protocol/openid-connect/certs", "audience": "polaris", "service": "polaris",
		"operations":                                       filepath.Join(sqetest.Root(), "tests", "stack", "java", "operations.txt"),
		plugin + "policy.rest.url":                         policies,
		plugin + "policy.source.impl":                      "org.apache.ranger.admin.client.RangerAdminRESTClient",
		plugin + "policy.pollIntervalMs":                   fmt.Sprint(pollInterval.Milliseconds()),
		plugin + "policy.rest.client.username":             user,
		plugin + "policy.rest.client.password":             password,
		plugin + "policy.rest.client.connection.timeoutMs": "3000",
		plugin + "policy.rest.client.read.timeoutMs":       "5000",
		plugin + "policy.rest.client.max.retry.attempts":   "1",
		plugin + "policy.cache.dir":                        folder,
		plugin + "use.rangerGroups":                        "true",
		plugin + "enable.implicit.userstore.enricher":      "true",
	} {
		fmt.Fprintf(&properties, "%s=%s\n", k, v)
	}
	file := filepath.Join(folder, "catalog.properties")
	if err := os.WriteFile(file, []byte(properties.String()), 0o600); err != nil {
		return nil, err
	}
	c := &restCatalog{
		Address: fmt.Sprintf("http://127.0.0.1:%d", port), Files: filepath.Join(folder, "warehouse"), command: strings.TrimSpace(string(command)), file: file, log: &logged{},
	}
	return c, c.Start()
}

// Start starts it, also again after Stop: with the tables that it had.
func (c *restCatalog) Start() error {
	c.cmd = sqetest.Owned(exec.Command("bash", "-c", c.command, "bash", c.file))
	c.cmd.Stderr = c.log
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.in, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "ready" {
		return errors.Join(fmt.Errorf("the catalog did not start: %w %q\n%s", err, line, c.log), c.Stop())
	}
	return nil
}

// ours is for what only a catalog that the suite started can be asked: to stop, or
// for its database.
func (c *restCatalog) ours(t *testing.T) {
	t.Helper()
	if c.cmd == nil {
		t.Skip("the catalog is another one's")
	}
}

// Stop ends the catalog, if the suite started it.
func (c *restCatalog) Stop() error {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
	_ = c.in.Close()
	timer := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	return c.cmd.Wait()
}

// Freeze stops the process, so that connections are taken and nothing answers, until
// Thaw.
func (c *restCatalog) Freeze(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP)
	stopped := regexp.MustCompile(`(?m)^State:\tT`)
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(threads, func(thread string) bool {
			text, err := os.ReadFile(thread)
			return err == nil && !stopped.Match(text)
		}) {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatal("the catalog does not stop")
		}
	}
}

// Thaw undoes Freeze.
func (c *restCatalog) Thaw(t testing.TB) { c.signal(t, syscall.SIGCONT) }

func (c *restCatalog) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request to a REST server with a token, and returns the status and the
// answer.
func ask(ctx context.Context, method, address, token string, body any) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, in)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Iceberg-Access-Delegation", "vended-credentials")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}
