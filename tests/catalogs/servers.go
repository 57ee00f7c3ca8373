//go:build e2e

package catalogs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
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
	s.cmd = exec.Command("bash", "-c", strings.TrimSpace(string(command)), "bash", dir)
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
	_ = s.in.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
	close(s.ended)
}
