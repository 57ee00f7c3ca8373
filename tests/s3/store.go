package s3

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// The credentials of the store.
const (
	AccessKey = "SQETESTACCESSKEY0001"
	SecretKey = "sqe-test-secret-0123456789abcdefghij"
)

// Store is a running VersityGW above a folder.
type Store struct {
	Endpoint string
	Dir      string // each bucket is a folder in it
	address  string
	cmd      *exec.Cmd
	// log is where it writes down each request, and iam the socket of what it asks
	// about keys; "" for none.
	log, iam string
}

// root is the environment with the credentials of the store.
var root = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}

// gateway is the program of the store.
func gateway(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(sqetest.Cache(), "bin", "versitygw")
	if _, err := os.Stat(bin); err != nil {
		t.Fatal("the object store is missing: run tests/install")
	}
	return bin
}

// StartStore starts a store with the bucket "lake". It ends with the test.
func StartStore(t testing.TB) *Store {
	t.Helper()
	port, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: t.TempDir(), address: fmt.Sprintf("127.0.0.1:%d", port)}
	s.Endpoint = "http://" + s.address
	if err := os.Mkdir(filepath.Join(s.Dir, "lake"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Start starts the process, once more after Stop.
func (s *Store) Start(t testing.TB) {
	t.Helper()
	args := []string{"--quiet", "--port", s.address}
	if s.log != "" {
		args = append(args, "--access-log", s.log)
	}
	if s.iam != "" {
		args = append(args, "--iam-standalone-endpoint", s.iam)
	}
	s.cmd = sqetest.Owned(exec.Command(gateway(t), append(args, "posix", s.Dir)...))
	s.cmd.Env = append(os.Environ(), root...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2400 { // two minutes: a busy machine may be many times slower
		if c, err := net.DialTimeout("tcp", s.address, time.Second); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the object store does not listen")
}

// Stop ends the process.
func (s *Store) Stop(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Freeze stops the process, so that connections are taken and nothing answers, until
// Thaw.
func (s *Store) Freeze(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Store) Thaw(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Store) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
