//go:build e2e

package catalogs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sqe/tests/sqetest"
)

// Server is a catalog in another process.
type Server struct {
	// Address is that of the REST catalog, or the DSN of the database.
	Address string
	// Warehouse is the folder of its files.
	Warehouse string

	cmd   *exec.Cmd
	in    io.WriteCloser
	log   *bytes.Buffer
	ended chan struct{}
	stop  func()
}

// StartREST starts the REST catalog of Apache Iceberg's own tests. It has neither
// logins nor rights.
func StartREST(t testing.TB) *Server {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	prepare := exec.Command(filepath.Join(filepath.Dir(here), "..", "e2e", "stack", "iceberg-rest"))
	prepare.Stderr = os.Stderr
	command, err := prepare.Output()
	if err != nil {
		t.Fatalf("the REST catalog could not be prepared: %v", err)
	}
	dir := t.TempDir()
	s := &Server{Warehouse: filepath.Join(dir, "warehouse"), log: &bytes.Buffer{}, ended: make(chan struct{})}
	if err := os.Mkdir(s.Warehouse, 0o755); err != nil {
		t.Fatal(err)
	}
	s.cmd = sqetest.Owned(exec.Command("bash", "-c", strings.TrimSpace(string(command)), "bash", dir))
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = func() { _ = s.in.Close() }
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			text := s.log.String()
			t.Logf("the REST catalog wrote:\n%s", text[max(0, len(text)-4000):])
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	port, bad := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || bad != nil {
		t.Fatalf("the REST catalog did not start: %v %q", err, line)
	}
	s.Address = fmt.Sprintf("http://127.0.0.1:%d", port)
	return s
}

// Stop ends the server.
func (s *Server) Stop() {
	select {
	case <-s.ended:
		return
	default:
	}
	s.stop()
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
	close(s.ended)
}

// StartPostgres starts an empty PostgreSQL server. Its binaries are those of the
// system.
func StartPostgres(t testing.TB) *Server {
	t.Helper()
	bin, err := postgresBinaries()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &Server{Warehouse: filepath.Join(dir, "warehouse"), log: &bytes.Buffer{}, ended: make(chan struct{})}
	data := filepath.Join(dir, "data")
	for _, d := range []string{s.Warehouse, data} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// PostgreSQL does not run as root.
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		nobody := 65534
		attr.Credential = &syscall.Credential{Uid: uint32(nobody), Gid: uint32(nobody)}
		if err := os.Chown(data, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	// The folder above must be passable for that user.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "sqe", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")
	initdb.SysProcAttr, initdb.Dir = attr, data
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=200")
	s.cmd.SysProcAttr, s.cmd.Dir, s.cmd.Stderr = attr, data, s.log
	sqetest.Owned(s.cmd)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = func() { _ = s.cmd.Process.Signal(os.Interrupt) }
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			text := s.log.String()
			t.Logf("PostgreSQL wrote:\n%s", text[max(0, len(text)-4000):])
		}
	})
	s.Address = fmt.Sprintf("postgres://sqe@127.0.0.1:%d/postgres?sslmode=disable", port)
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), s.Address)
		if err == nil {
			_ = c.Close(context.Background())
			return s
		}
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("PostgreSQL did not start: %v", err)
		}
	}
}

// postgresBinaries is the folder of the newest PostgreSQL here.
func postgresBinaries() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	// Debian keeps them out of the path.
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(all) == 0 {
		return "", errors.New("PostgreSQL is missing; tests/install installs it")
	}
	slices.Sort(all)
	return filepath.Dir(all[len(all)-1]), nil
}
