// Package sqetest starts a built sqe for tests and asks it as a client does.
//
// Invariants: a server that was started is stopped by its process id, also when
// its test fails; everything that it printed is kept and can be searched. The
// package looks at sqe from outside and must never import its packages.
package sqetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// patience is how long a server may take for what it does at once. It is for what hangs:
// a machine that is busy with other things may be many times slower than it is alone.
const patience = 2 * time.Minute

// Server is a running sqe.
type Server struct {
	Dir  string // where its state lies
	Port int
	cmd  *exec.Cmd
	out  *output
	done chan error
}

// output is what a process printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Root is the folder of the repository.
func Root() string {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(string(bytes.TrimSpace(out)))
}

// Binary is the path of the built sqe: SQE_BIN, or bin/sqe of the repository.
func Binary() (string, error) {
	path := os.Getenv("SQE_BIN")
	if path == "" {
		path = filepath.Join(Root(), "bin", "sqe")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no sqe to test: run make build first (%w)", err)
	}
	return path, nil
}

// Cache is the folder that tests/install filled.
func Cache() string {
	if dir := os.Getenv("SQE_CACHE"); dir != "" {
		return dir
	}
	dir := os.Getenv("XDG_CACHE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			panic(err)
		}
		dir = filepath.Join(home, ".cache")
	}
	return filepath.Join(dir, "sqe")
}

// Demo starts `sqe demo` on a free port with its state in dir.
func Demo(dir string, args ...string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	operations, err := FreePort()
	if err != nil {
		return nil, err
	}
	return Start(dir, port, append([]string{
		"demo", "--dir", dir, "--port", fmt.Sprint(port), "--ops-port", fmt.Sprint(operations), "--no-tour",
	}, args...)...)
}

// Start runs sqe with these arguments and waits until it listens on port.
func Start(dir string, port int, args ...string) (*Server, error) {
	s, err := launch(args...)
	if err != nil {
		return nil, err
	}
	s.Dir, s.Port = dir, port
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		select {
		case err := <-s.done:
			return nil, fmt.Errorf("sqe %v ended before it listened: %w\n%s", args, err, s.out)
		default:
		}
		c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err == nil {
			_ = c.Close()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	err = s.Stop()
	return nil, errors.Join(fmt.Errorf("sqe %v does not listen on port %d\n%s", args, port, s.out), err)
}

func launch(args ...string) (*Server, error) {
	bin, err := Binary()
	if err != nil {
		return nil, err
	}
	s := &Server{cmd: Owned(exec.Command(bin, args...)), out: &output{}, done: make(chan error, 1)}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	return s, nil
}

// Run runs sqe to its end and returns what it printed and how it ended.
func Run(args ...string) (string, error) {
	s, err := launch(args...)
	if err != nil {
		return "", err
	}
	select {
	case err := <-s.done:
		return s.out.String(), err
	case <-time.After(patience):
		return s.out.String(), errors.Join(fmt.Errorf("still running after %s", patience), s.Stop())
	}
}

// HashPassword is what [[users]] password-hash takes for a password.
func HashPassword(password string) (string, error) {
	bin, err := Binary()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(bin, "hash-password")
	cmd.Stdin = strings.NewReader(password + "\n")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("sqe hash-password: %w", err)
	}
	hash := regexp.MustCompile(`\$argon2id\$\S+`).Find(out)
	if hash == nil {
		return "", fmt.Errorf("sqe hash-password printed no argon2id hash: %s", out)
	}
	return string(hash), nil
}

// Config writes <dir>/sqe.toml for a server with one catalog, <dir>/catalog.db,
// whose warehouse is dir, with the policies in <dir>/policies and these users, all
// with the password "demo". settings are further lines by section, under
// "data-service" the name of the service for the data gate (hive when absent), and
// under "catalogs" the [[catalogs]] sections that take the place of that one.
func Config(dir, catalog string, users []string, settings map[string]string) (path string, port int, err error) {
	ports := [2]int{}
	for i := range ports {
		if ports[i], err = FreePort(); err != nil {
			return "", 0, err
		}
	}
	hash, err := HashPassword("demo")
	if err != nil {
		return "", 0, err
	}
	dataService := settings["data-service"]
	if dataService == "" {
		dataService = "hive"
	}
	catalogs := settings["catalogs"]
	if catalogs == "" {
		catalogs = fmt.Sprintf(`[[catalogs]]
name = %q
kind = "sqlite"
path = "catalog.db"
warehouse = "."
default = true
`, catalog)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `[server]
address = "127.0.0.1"
port = %d
%s
[engine]
%s
[ops]
address = "127.0.0.1:%d"

%s
[[policies]]
name = "folder"
kind = "folder"
directory = "policies"
polaris-service = "polaris"
data-service = %q
poll-interval = "1s"
max-staleness = "60s"
%s

[masks]
hash-key-file = "mask.key"
%s

[audit]
file = "audit.jsonl"

`, ports[0], settings["server"], settings["engine"], ports[1], catalogs, dataService, settings["policies"], settings["masks"])
	for _, u := range users {
		fmt.Fprintf(&b, "[[users]]\nname = %q\npassword-hash = %q\n", u, hash)
		if u == "root" {
			b.WriteString("admin = true\n")
		}
		b.WriteString("\n")
	}
	path = filepath.Join(dir, "sqe.toml")
	return path, ports[0], os.WriteFile(path, []byte(b.String()), 0o600)
}

// Serve starts `sqe serve` with the configuration that Config wrote.
func Serve(config string, port int) (*Server, error) {
	return Start(filepath.Dir(config), port, "serve", "-c", config)
}

// Pid is the process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// PeakResident is the highest resident memory of the server so far, in bytes.
func (s *Server) PeakResident(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	t.Fatal("the system does not tell the peak of resident memory")
	return 0
}

// Addr is host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Output is everything that the server printed.
func (s *Server) Output() string { return s.out.String() }

var operations = regexp.MustCompile(`(?m)^\[ops\]\naddress = "([^"]+)"`)

// Operations is the address of the metrics and health endpoints, from the
// configuration in the server's folder.
func (s *Server) Operations() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "sqe.toml"))
	if err != nil {
		return "", err
	}
	m := operations.FindSubmatch(text)
	if m == nil {
		return "", errors.New("the configuration has no address for metrics")
	}
	return "http://" + string(m[1]), nil
}

// Stop ends the server as Ctrl-C does, and kills it when it does not end (an error).
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.done:
		s.done <- err
		return err
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		return fmt.Errorf("sqe did not end within %s of an interrupt", patience)
	}
}

// Crash kills the server without any notice.
func (s *Server) Crash() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.done
	s.done <- nil
	return nil
}

// Alive reports whether the process still runs.
func (s *Server) Alive() bool { return s.cmd.Process.Signal(syscall.Signal(0)) == nil }

// Option changes the settings of a client.
type Option func(*mysql.Config)

// Database selects a database at login.
func Database(name string) Option { return func(c *mysql.Config) { c.DBName = name } }

// Open opens a pool of connections of a user of the demo.
func (s *Server) Open(user string, options ...Option) *sql.DB {
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", s.Addr()
	c.User, c.Passwd = user, "demo"
	c.MultiStatements, c.AllowCleartextPasswords = true, true
	c.Timeout = patience
	c.Logger = quiet{}
	c.TLS = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} // the certificate was made a moment ago
	for _, o := range options {
		o(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

// quiet drops the driver's own log: tests see the errors.
type quiet struct{}

func (quiet) Print(...any) {}

// Conn is one connection of a user; it is closed with the test.
func (s *Server) Conn(t testing.TB, user string, options ...Option) *sql.Conn {
	t.Helper()
	db := s.Open(user, options...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = db.Close()
	})
	return conn
}
