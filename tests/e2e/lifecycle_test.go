//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// running starts a statement that ends when it is ended, and waits until the server runs it.
// It returns the id of its connection and where its answer will come.
func running(t *testing.T, s *sqetest.Server, ctx context.Context, user string) (id string, answer <-chan sqetest.Answer) {
	t.Helper()
	conn := s.Conn(t, user, sqetest.Database("lab"))
	id, err := sqetest.Ask(ctx, conn, "SELECT CONNECTION_ID()").One()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan sqetest.Answer, 1)
	go func() {
		done <- sqetest.Ask(ctx, conn, slow("age + 0 >= 0")+" AND b.age * c.age - d.age + e.age > -1 AND a.id * 31 % 7 + b.id % 5 <> 99")
	}()
	watcher := s.Conn(t, "root")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		a := sqetest.Ask(within(t, patience), watcher, "SHOW FULL PROCESSLIST")
		for _, r := range a.Rows {
			if r[0] == id && strings.Contains(strings.ToLower(strings.Join(r, " ")), "people") {
				return id, done
			}
		}
	}
	t.Fatal("the statement does not run")
	return "", nil
}

func TestKillQuery(t *testing.T) {
	s := labServer(t)
	ctx := within(t, 2*patience)
	id, answer := running(t, s, ctx, "root")
	// Somebody else may not, and learns nothing.
	if a := sqetest.Ask(ctx, s.Conn(t, "pat"), "KILL QUERY "+id); a.Number() != 1094 && a.Number() != 1095 {
		t.Errorf("pat kills a statement of root: %v", a.Err)
	}
	select {
	case a := <-answer:
		t.Fatalf("the statement ended too early: %s", a.Text())
	case <-time.After(300 * time.Millisecond):
	}
	if a := sqetest.Ask(ctx, s.Conn(t, "root"), "KILL QUERY "+id); a.Err != nil {
		t.Fatal(a.Err)
	}
	a := <-answer
	if a.Number() != 1317 {
		t.Errorf("the killed statement: %v, want error 1317", a.Err)
	}
}

func TestKillConnection(t *testing.T) {
	s := labServer(t)
	ctx := within(t, 2*patience)
	id, answer := running(t, s, ctx, "pat")
	if a := sqetest.Ask(ctx, s.Conn(t, "root"), "KILL "+id); a.Err != nil {
		t.Fatal(a.Err)
	}
	if a := <-answer; a.Err == nil {
		t.Errorf("the statement of a killed connection was answered: %v", a.Rows)
	}
	gone(t, s, "root", "people")
}

// TestDisconnect: a client that goes away ends its statement.
func TestDisconnect(t *testing.T) {
	s := labServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, answer := running(t, s, ctx, "root")
	cancel() // the driver closes the connection
	<-answer
	gone(t, s, "root", "people")
}

func TestStatementTimeout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	s, err := startLab(dir, map[string]string{"server": "statement-timeout = \"1s\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	a := sqetest.Ask(within(t, patience), s.Conn(t, "root", sqetest.Database("lab")), slow("age >= 0")+" AND b.age * c.age - d.age + e.age > -1")
	if a.Number() != 3024 {
		t.Errorf("%s, want error 3024", a.Text())
	}
	healthy(t, s, "root")
}

// TestRestart: a second start finds what the first left, also after a crash.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	var first string
	for i := range 3 {
		s, err := sqetest.Demo(dir)
		if err != nil {
			t.Fatal(err)
		}
		a := sqetest.Ask(within(t, patience), s.Conn(t, "alice"), "SELECT * FROM bank.customers ORDER BY 1")
		if a.Err != nil || len(a.Rows) == 0 {
			t.Error(a.Text())
		}
		if i == 0 {
			first = a.Text()
		} else if a.Text() != first {
			t.Errorf("start %d answers %s, the first %s", i+1, a.Text(), first)
		}
		if i == 1 {
			err = s.Crash()
		} else {
			err = s.Stop()
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPortInUse(t *testing.T) {
	out, err := sqetest.Run("demo", "--dir", filepath.Join(t.TempDir(), "demo"), "--port", fmt.Sprint(demo.Port), "--no-tour")
	if err == nil || !strings.Contains(out, fmt.Sprintf("port %d is in use", demo.Port)) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestUnusableFolder: a file in the way, and a file system that refuses.
func TestUnusableFolder(t *testing.T) {
	var ports [2]int
	for i := range ports {
		port, err := sqetest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = port
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Permissions do not bind root, the kernel's own file system does.
	for _, dir := range []string{filepath.Join(file, "demo"), "/sys/demo"} {
		out, err := sqetest.Run("demo", "--dir", dir, "--port", fmt.Sprint(ports[0]), "--ops-port", fmt.Sprint(ports[1]), "--no-tour")
		if err == nil || !strings.Contains(out, "--dir") || strings.Contains(out, "goroutine ") {
			t.Errorf("%s: %v: %s", dir, err, out)
		}
	}
}

// TestShutdown: an interrupt ends the server although a statement runs and a
// client is connected.
func TestShutdown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	s, err := startLab(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, answer := running(t, s, within(t, 2*patience), "root")
	started := time.Now()
	if err := s.Stop(); err != nil {
		t.Errorf("%v\n%s", err, tail(s.Output()))
	}
	t.Logf("it took %s", time.Since(started).Round(time.Millisecond))
	<-answer // an error or the result, but not silence
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args []string
		ok   bool
		says string
	}{
		{[]string{"version"}, true, "sqe "},
		{[]string{"help"}, true, "serve"},
		{[]string{"nonsense"}, false, "nonsense"},
		{[]string{"demo", "--nonsense"}, false, "nonsense"},
		{[]string{"check", "-c", filepath.Join(demo.Dir, "sqe.toml")}, true, ""},
	} {
		out, err := sqetest.Run(c.args...)
		if (err == nil) != c.ok || !strings.Contains(out, c.says) {
			t.Errorf("sqe %v: %v\n%s", c.args, err, out)
		}
	}
}
