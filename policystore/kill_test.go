package policystore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// idleAfter makes the victim write so many policies and then wait to be killed.
const idleAfter = "POLICYSTORE_TEST_IDLE_AFTER"

// victimFile makes the test binary a process that writes to that store until it is
// killed.
const victimFile = "POLICYSTORE_TEST_VICTIM"

// victim creates policies, updates each once, and says what was answered.
func victim(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	last, _ := strconv.Atoi(os.Getenv(idleAfter))
	for n := 0; err == nil; n++ {
		if last > 0 && n == last {
			fmt.Println("idle")
			select {}
		}
		var p *model.Policy
		if p, err = s.CreatePolicy(ctx, access(fmt.Sprintf("table%d", n), "select")); err != nil {
			break
		}
		fmt.Printf("%d %d\n", p.ID, p.Version)
		p.Description = "changed"
		if p, err = s.UpdatePolicy(ctx, p); err == nil {
			fmt.Printf("%d %d\n", p.ID, p.Version)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// access is a policy that lets alice do something on a table of hive.
func access(table string, types ...string) *model.Policy {
	i := &model.Item{Users: []string{"alice"}}
	for _, a := range types {
		i.Accesses = append(i.Accesses, model.Access{Type: a})
	}
	return &model.Policy{
		Service: "hive", Name: "access " + table, PolicyItems: []*model.Item{i},
		Resources: map[string]model.Resource{"database": {Values: []string{"db"}}, "table": {Values: []string{table}}, "column": {Values: []string{"*"}}},
	}
}

// Whenever a writer is killed, the file opens, has everything that was answered,
// and counts every change once.
func TestKilledWriter(t *testing.T) {
	for round := range 4 {
		path := seededFile(t)
		answered := map[int64]int64{}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimFile+"="+path)
		out := get(cmd.StdoutPipe())(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var killed *time.Timer
		for lines.Scan() {
			var id, version int64
			if n, _ := fmt.Sscan(lines.Text(), &id, &version); n == 2 {
				answered[id] = version
			}
			if killed == nil {
				killed = time.AfterFunc(time.Duration(40+70*round)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if killed == nil {
			t.Fatal("the writer wrote nothing")
		}
		_ = cmd.Wait()
		killed.Stop()
		intact(t, open(t, path, Options{}), answered)
	}
}

// Once a change is answered it is in the file itself: a log beside it that is lost,
// or garbled, or not copied, loses nothing.
func TestLostLog(t *testing.T) {
	const policies = 12
	for name, lose := range map[string]func(t *testing.T, path string) string{
		"nothing lost": func(_ *testing.T, path string) string { return path },
		"removed": func(t *testing.T, path string) string {
			if err := errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"garbled": func(t *testing.T, path string) string {
			if err := os.WriteFile(path+"-wal", bytes.Repeat([]byte("garbled "), 4096), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"not copied": func(t *testing.T, path string) string {
			to := filepath.Join(t.TempDir(), "copy.db")
			if err := os.WriteFile(to, get(os.ReadFile(path))(t), 0o600); err != nil {
				t.Fatal(err)
			}
			return to
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := seededFile(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), victimFile+"="+path, fmt.Sprintf("%s=%d", idleAfter, policies))
			out := get(cmd.StdoutPipe())(t)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			answered := map[int64]int64{}
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "idle"; {
				var id, version int64
				if n, _ := fmt.Sscan(lines.Text(), &id, &version); n == 2 {
					answered[id] = version
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if len(answered) < policies {
				t.Fatalf("the writer made %d policies", len(answered))
			}
			intact(t, open(t, lose(t, path), Options{}), answered)
		})
	}
}

// A reader that stays on an old state for long holds no writer up for long, and what
// was written meanwhile is not lost.
func TestSlowReader(t *testing.T) {
	path := seededFile(t)
	s, other := open(t, path, Options{}), open(t, path, Options{})
	reading, done := make(chan struct{}), make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		finished <- other.read(t.Context(), func(q *tx) error {
			_, err := q.roles()
			close(reading)
			<-done
			return err
		})
	}()
	<-reading
	begin := time.Now()
	first := get(s.CreatePolicy(t.Context(), access("meanwhile", "select")))(t)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("a reader held a writer up for %s", took)
	}
	close(done)
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	second := get(s.CreatePolicy(t.Context(), access("later", "select")))(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, get(os.ReadFile(path))(t), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, copied, Options{})
	must(t)(c.Policy(t.Context(), first.ID))
	must(t)(c.Policy(t.Context(), second.ID))
}

// intact checks a store whose policies of hive were only created and updated.
func intact(t *testing.T, s *Store, answered map[int64]int64) {
	t.Helper()
	found := map[int64]int64{}
	changes := int64(0)
	for _, p := range get(s.Policies(t.Context(), "hive"))(t) {
		found[p.ID] = p.Version
		changes += p.Version
		if versions := get(s.PolicyVersions(t.Context(), p.ID))(t); int64(len(versions)) != p.Version {
			t.Errorf("policy %d is of version %d and has %d versions", p.ID, p.Version, len(versions))
		}
	}
	for id, version := range answered {
		if found[id] < version {
			t.Errorf("version %d of policy %d was answered, and %d is there", version, id, found[id])
		}
	}
	if len(answered) == 0 {
		t.Error("nothing was answered")
	}
	if got := get(s.Service(t.Context(), "hive"))(t).PolicyVersion; got != 1+changes {
		t.Errorf("the policy version is %d after %d changes", got, changes)
	}
	if entries := get(s.History(t.Context(), HistoryFilter{What: "policy"}))(t); int64(len(entries)) != changes {
		t.Errorf("the history has %d entries of %d changes", len(entries), changes)
	}
	// It still works.
	must(t)(s.CreatePolicy(t.Context(), access("afterwards", "select")))
}
