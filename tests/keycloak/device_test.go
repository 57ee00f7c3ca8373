//go:build e2e

package keycloak

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sqe/tests/sqetest"
)

// insecureJar keeps cookies that a browser would send over https alone: Keycloak
// marks them so on plain http too.
type insecureJar struct{ *cookiejar.Jar }

func (j insecureJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		c.Secure = false
	}
	j.Jar.SetCookies(u, cookies)
}

var (
	formAction = regexp.MustCompile(`<form[^>]*action="([^"]+)"`)
	hidden     = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// confirm does in a browser what a person does there: log in and say yes.
func confirm(address, user string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: insecureJar{jar}, Timeout: patience}
	page := func(resp *http.Response, err error) (string, error) {
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("status %d: %s", resp.StatusCode, body)
		}
		return string(body), err
	}
	submit := func(text string, values url.Values) (string, error) {
		action := formAction.FindStringSubmatch(text)
		if action == nil {
			return "", fmt.Errorf("no form: %s", text)
		}
		for _, f := range hidden.FindAllStringSubmatch(text, -1) {
			values.Set(f[1], html.UnescapeString(f[2]))
		}
		return page(browser.PostForm(kc.Base+strings.TrimPrefix(html.UnescapeString(action[1]), kc.Base), values))
	}
	text, err := page(browser.Get(address))
	if err != nil {
		return err
	}
	if text, err = submit(text, url.Values{"username": {user}, "password": {user + "-pw"}}); err != nil {
		return err
	}
	_, err = submit(text, url.Values{"accept": {"Yes"}})
	return err
}

// home is a person's home folder, with a login of sqe.
type home struct {
	t   *testing.T
	dir string
}

func (h home) environment() []string {
	return append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME="+filepath.Join(h.dir, ".config"), "USER=somebody-else")
}

func (h home) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(within(h.t, patience), name, args...)
	cmd.Env = h.environment()
	return cmd
}

// run runs a command to its end.
func (h home) run(name string, args ...string) (stdout, stderr string, err error) {
	h.t.Helper()
	var out, problems bytes.Buffer
	cmd := h.command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// login runs sqe login for a server, and a browser beside it. It returns what it said.
func (h home) login(sqe string, s *sqetest.Server, user string, more ...string) string {
	h.t.Helper()
	cmd := h.command(sqe, append([]string{"login", "--issuer", kc.Issuer("sqe"), "-P", fmt.Sprint(s.Port)}, more...)...)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if address := strings.TrimSpace(lines.Text()); strings.HasPrefix(address, "http") {
			if err := confirm(address, user); err != nil {
				h.t.Error(err)
				_ = cmd.Process.Kill()
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "Logged in as "+user+".") {
		h.t.Fatalf("%v: %s", err, said.String())
	}
	return said.String()
}

// TestDeviceLogin: sqe login in the terminal and a browser beside it; then sqe
// token, sqe sql and clients of MySQL with the option file just work, and sqe
// logout ends it.
func TestDeviceLogin(t *testing.T) {
	s := serve(t, "tokens", provider())
	sqe, err := sqetest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	h := home{t, t.TempDir()}
	if _, problem, err := h.run(sqe, "token"); err == nil || !strings.Contains(problem, "sqe login") {
		t.Errorf("nobody is logged in: %s", problem)
	}
	said := h.login(sqe, s, "anna_analyst")

	folder := filepath.Join(h.dir, ".config", "sqe")
	for _, name := range []string{"login.json", "my.cnf"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	token, problem, err := h.run(sqe, "token")
	if err != nil || strings.Count(token, ".") != 2 {
		t.Fatal(problem, err)
	}
	token = fleet.secret(strings.TrimSpace(token))
	if strings.Contains(said, token) {
		t.Error("sqe login shows the token")
	}
	if got, err := login(t, s, "", token).One(); err != nil || got != "anna_analyst@127.0.0.1" {
		t.Error("the token of sqe token:", got, err)
	}
	out, problem, err := h.run(sqe, "sql", "-e", "SELECT CURRENT_USER()")
	if err != nil || !strings.Contains(out, "anna_analyst@127.0.0.1") {
		t.Error("sqe sql:", out, problem, err)
	}
	for _, client := range []string{"mysql", "mariadb"} {
		path, err := exec.LookPath(client)
		if err != nil {
			t.Fatal(err)
		}
		out, problem, err := h.run(path, "--defaults-file="+filepath.Join(folder, "my.cnf"), "-BN", "-e", "SELECT CURRENT_USER()")
		if err != nil || strings.TrimSpace(out) != "anna_analyst@127.0.0.1" {
			t.Errorf("%s with the option file: %s %s %v", client, out, problem, err)
		}
	}

	// Another login may be named; the token is not shown for it.
	if _, problem, err := h.run(sqe, "sql", "-u", "root", "-e", "SELECT 1"); err == nil || !strings.Contains(problem, "SQE_PASSWORD") {
		t.Error("another user:", problem, err)
	}
	// A token that has expired is renewed.
	path := filepath.Join(folder, "login.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	past := regexp.MustCompile(`"expires": "[^"]*"`).ReplaceAll(text, []byte(`"expires": "2020-01-01T00:00:00Z"`))
	if err := os.WriteFile(path, past, 0o600); err != nil {
		t.Fatal(err)
	}
	next, problem, err := h.run(sqe, "token")
	if next = fleet.secret(strings.TrimSpace(next)); err != nil || next == token || strings.Count(next, ".") != 2 {
		t.Error("not renewed:", problem, err)
	}
	if options, err := os.ReadFile(filepath.Join(folder, "my.cnf")); err != nil || !strings.Contains(string(options), next) {
		t.Error("the option file has the old token:", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, problem, err := h.run(sqe, "token"); err == nil || !strings.Contains(problem, "chmod 600") {
		t.Error("a login that others may read:", problem, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}

	if out, problem, err := h.run(sqe, "logout"); err != nil || !strings.Contains(out, "logged out") {
		t.Error(out, problem, err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 0 {
		t.Error("left behind:", left)
	}
	if got := login(t, serve(t, "introspection", provider(introspecting)), "", next); got.Number() != 1045 {
		t.Error("the login goes on at the provider:", got.Text())
	}
}
