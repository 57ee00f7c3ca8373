package policystore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// victimFile makes the test binary a process that writes to that store until it is
// killed.
const victimFile = "POLICYSTORE_TEST_VICTIM"

// victim creates policies, updates each once, and says what was answered.
func victim(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	for n := 0; err == nil; n++ {
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
