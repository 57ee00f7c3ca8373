package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/policy"
	"sqe/rangerclient/model"
)

// TestLedger: what is remembered of roles is there after a start, in its order, also when
// a crash cut the last line off; what is of no use any more makes the file shorter.
func TestLedger(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "state", "roles.jsonl")
	open := func(at time.Time) *memberships {
		t.Helper()
		m, err := openMemberships(file, at)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	user := func(n string) policy.Grantee { return policy.Grantee{Kind: policy.UserGrantee, Name: n} }
	say := func(m *memberships) string {
		var out []string
		for _, key := range m.inOrder() {
			_, told := m.losses[key]
			out = append(out, fmt.Sprint(key.role, " ", key.who(), " ", m.wrote[key].in, " ", told))
		}
		return strings.Join(out, ", ")
	}
	expect := func(m *memberships, want string) {
		t.Helper()
		if got := say(m); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
	}
	m := open(now)
	expect(m, "")
	if _, err := os.Stat(file); err == nil {
		t.Error("a file for nothing")
	}
	team, other := &model.Role{Name: "team"}, &model.Role{Name: "other"}
	must(m.remember(team, []policy.Grantee{user("ann"), user("ben")}, true))
	must(m.remember(other, []policy.Grantee{user("ann")}, true))
	must(m.remember(team, []policy.Grantee{user("ann")}, false))
	must(m.add(membership{"team", user("ben")}, Loss{Role: "team", Noticed: now, What: []string{"x"}}))
	want := "team user ben true true, other user ann true false, team user ann false false"
	expect(m, want)
	expect(open(now), want)
	expect(open(now.Add(2*kept)), "other user ann true false, team user ann false false")
	body, err := os.ReadFile(file)
	must(err)
	must(os.WriteFile(file, append(body, `{"role":"te`...), 0o600))
	m = open(now)
	expect(m, want)
	must(m.drop(membership{"team", user("ben")}))
	must(m.forget("other"))
	expect(open(now), "team user ann false false")
	for range 200 {
		must(m.remember(team, []policy.Grantee{user("ann")}, true))
	}
	before, err := os.Stat(file)
	must(err)
	expect(open(now), "team user ann true false")
	after, err := os.Stat(file)
	must(err)
	if after.Size() > before.Size()/10 || after.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, then %d, %s", before.Size(), after.Size(), after.Mode())
	}
	expect(open(now), "team user ann true false")
}
