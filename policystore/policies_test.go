package policystore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func TestUpdatePolicy(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	p := get(s.CreatePolicy(ctx, access("t", "select")))(t)
	other := get(s.CreatePolicy(ctx, access("other", "select")))(t)
	version := func() int64 { return get(s.Service(ctx, "hive"))(t).PolicyVersion }
	before := version()

	// Nothing changes, and it is a new version all the same.
	same := get(s.UpdatePolicy(ctx, p))(t)
	if same.Version != 2 || version() != before+1 {
		t.Errorf("version %d of the policy, %d of the service after %d", same.Version, version(), before)
	}
	// Everything is replaced; who made it, its guid and its number stay.
	n := changed(access("t", "update"), func(n *model.Policy) {
		n.ID, n.GUID, n.Version, n.Name = p.ID, "another", 77, "renamed"
	})
	u := get(s.UpdatePolicy(as("carol"), n))(t)
	if u.Version != 3 || u.GUID != p.GUID || u.CreatedBy != "admin" || u.UpdatedBy != "carol" || u.Name != "renamed" ||
		u.PolicyItems[0].Accesses[0].Type != "update" || u.CreateTime != p.CreateTime {
		t.Errorf("the replaced policy is %+v", u)
	}
	must(t)(s.PolicyNamed(ctx, "hive", "", "renamed"))
	_, err := s.PolicyNamed(ctx, "hive", "", p.Name)
	refused(t, err, admin.NotFound, 0)

	before = version()
	for name, c := range map[string]struct {
		change func(*model.Policy)
		kind   admin.Kind
		code   int
	}{
		"unknown id":      {func(p *model.Policy) { p.ID = 999 }, admin.NotFound, 3004},
		"another's name":  {func(p *model.Policy) { p.Name = other.Name }, admin.Exists, 3006},
		"another's place": {func(p *model.Policy) { p.Resources = other.Resources }, admin.Exists, 3010},
		"another type":    {func(p *model.Policy) { p.PolicyType = model.MaskPolicy }, admin.Invalid, 3028},
		"another service": {func(p *model.Policy) { *p = *onPolaris(); p.ID = u.ID }, admin.Invalid, 3027},
	} {
		bad := must1(copyOf(u))
		c.change(bad)
		_, err := s.UpdatePolicy(ctx, bad)
		t.Log(name)
		refused(t, err, c.kind, c.code)
	}
	if version() != before {
		t.Error("a refused update moved the version")
	}
	if got := get(s.Policy(ctx, u.ID))(t); got.Version != 3 {
		t.Errorf("version %d after refused updates", got.Version)
	}
}

// What a caller does to a document afterwards does not reach the store.
func TestDocumentsBelongToTheCaller(t *testing.T) {
	s := seeded(t)
	sent := access("t", "SELECT")
	p := get(s.CreatePolicy(as("admin"), sent))(t)
	if sent.PolicyItems[0].Accesses[0].Type != "SELECT" || sent.ID != 0 {
		t.Error("the sent document was changed")
	}
	p.PolicyItems[0].Users[0] = "bob"
	if got := get(s.Policy(t.Context(), p.ID))(t).PolicyItems[0].Users[0]; got != "alice" {
		t.Errorf("the stored policy names %s", got)
	}
}

// Of writers that want the same place or name exactly one wins; none loses what it
// was told.
func TestConcurrentWriters(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	const writers = 8
	race := func(create func(n int) error) (won int, lost []error) {
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for n := range writers {
			wg.Go(func() { errs[n] = create(n) })
		}
		wg.Wait()
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				lost = append(lost, err)
			}
		}
		return won, lost
	}
	won, lost := race(func(n int) error {
		_, err := s.CreatePolicy(ctx, changed(access("t", "select"), func(p *model.Policy) { p.Name = fmt.Sprint("writer ", n) }))
		return err
	})
	if won != 1 {
		t.Errorf("%d policies on one resource", won)
	}
	for _, err := range lost {
		refused(t, err, admin.Exists, 3010)
	}
	if won, lost = race(func(n int) error {
		_, err := s.CreatePolicy(ctx, access(fmt.Sprint("t", n), "select"))
		return err
	}); won != writers {
		t.Errorf("%d of %d policies on different resources: %v", won, writers, lost)
	}
	p := get(s.PolicyNamed(ctx, "hive", "", "access t1"))(t)
	if won, lost = race(func(n int) error {
		_, err := s.UpdatePolicy(ctx, changed(access("t1", "select"), func(u *model.Policy) { u.ID, u.Description = p.ID, fmt.Sprint(n) }))
		return err
	}); won != writers {
		t.Errorf("%d of %d updates: %v", won, writers, lost)
	}
	seen := map[string]bool{}
	for _, v := range get(s.PolicyVersions(ctx, p.ID))(t) {
		seen[get(s.PolicyAt(ctx, p.ID, v))(t).Description] = true
	}
	if len(seen) != writers+1 {
		t.Errorf("%d of %d versions are kept", len(seen), writers+1)
	}
}

// Two processes: one store each on the same file.
func TestTwoProcesses(t *testing.T) {
	path := seededFile(t)
	a, b := open(t, path, Options{}), open(t, path, Options{})
	if body := get(b.DownloadPolicies(t.Context(), "hive", -1))(t); strings.Contains(string(body), "access t") {
		t.Fatal("there is a policy already")
	}
	var wg sync.WaitGroup
	for n := range 10 {
		for _, s := range []*Store{a, b} {
			wg.Go(func() {
				_, err := s.CreatePolicy(as("admin"), access(fmt.Sprint("t", n), "select"))
				if err != nil && admin.KindOf(err) != admin.Exists {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if n := len(get(a.Policies(t.Context(), "hive"))(t)); n != 10 {
		t.Errorf("%d policies", n)
	}
	if body := get(b.DownloadPolicies(t.Context(), "hive", -1))(t); strings.Count(string(body), `"name":"access t`) != 10 {
		t.Error("a download does not show what the other process wrote")
	}
}

func TestHistory(t *testing.T) {
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	s := open(t, seededFile(t), Options{Now: at.now})
	p := get(s.CreatePolicy(as("alice"), access("t", "select")))(t)
	at.at = at.at.Add(time.Hour)
	p.Description = "second"
	must(t)(s.UpdatePolicy(as("bob"), p))
	at.at = at.at.Add(time.Hour)
	if err := s.DeletePolicy(context.Background(), p.ID); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range get(s.History(t.Context(), HistoryFilter{What: "policy", ID: p.ID}))(t) {
		got = append(got, fmt.Sprint(c.Time.Format("15:04"), " ", c.User, " ", c.From, " ", c.Action, " ", c.Name, " ", c.Service, " ", c.Version))
	}
	want := []string{"14:00   delete access t hive 2", "13:00 bob 192.0.2.7 update access t hive 2", "12:00 alice 192.0.2.7 create access t hive 1"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The versions of a deleted policy are kept, and its id is not given again.
	if v := get(s.PolicyVersions(t.Context(), p.ID))(t); len(v) != 2 || v[0] != 1 || v[1] != 2 {
		t.Errorf("versions %v", v)
	}
	first := get(s.PolicyAt(t.Context(), p.ID, 1))(t)
	if first.Description != "" || first.CreatedBy != "alice" || first.UpdatedBy != "alice" || get(s.PolicyAt(t.Context(), p.ID, 2))(t).Description != "second" {
		t.Errorf("version 1 is %+v", first)
	}
	_, err := s.PolicyAt(t.Context(), p.ID, 3)
	refused(t, err, admin.NotFound, 0)
	_, err = s.PolicyVersions(t.Context(), 999)
	refused(t, err, admin.NotFound, 0)
	if again := get(s.CreatePolicy(as("alice"), access("t", "select")))(t); again.ID <= p.ID || again.Version != 1 {
		t.Errorf("the new policy has id %d and version %d", again.ID, again.Version)
	}
	for _, c := range []struct {
		f    HistoryFilter
		want int
	}{
		{HistoryFilter{What: "policy"}, 4},
		{HistoryFilter{What: "policy", User: "bob"}, 1},
		{HistoryFilter{Service: "hive", Name: "access t"}, 4},
		{HistoryFilter{What: "policy", Since: at.at}, 2},
		{HistoryFilter{What: "policy", Until: at.at.Add(-time.Hour)}, 2},
		{HistoryFilter{What: "policy", Limit: 3}, 3},
		{HistoryFilter{What: "role"}, 4},
		{HistoryFilter{What: "nothing"}, 0},
	} {
		if got := get(s.History(t.Context(), c.f))(t); len(got) != c.want {
			t.Errorf("%+v yields %d changes, want %d", c.f, len(got), c.want)
		}
	}
	page := get(s.History(t.Context(), HistoryFilter{What: "policy", Limit: 1}))(t)
	if next := get(s.History(t.Context(), HistoryFilter{What: "policy", Before: page[0].Seq}))(t); len(next) != 3 {
		t.Errorf("the second page has %d changes", len(next))
	}
}

// Everything is there after the file was opened again, and only its owner reads it.
func TestReopen(t *testing.T) {
	path := seededFile(t)
	s := open(t, path, Options{})
	ctx := as("admin")
	p := get(s.CreatePolicy(ctx, access("t", "select")))(t)
	must(t)(s.CreateZone(ctx, fixtureOf[model.Zone](t, "zone_create_request")))
	if err := s.ImportTags(ctx, fixtureOf[model.ServiceTags](t, "tags_import_request")); err != nil {
		t.Fatal(err)
	}
	all := func(s *Store) (bodies string) {
		for _, f := range []func(context.Context, string, int64) ([]byte, error){s.DownloadPolicies, s.DownloadTags, s.DownloadRoles, s.DownloadUserStore} {
			bodies += string(get(f(ctx, "hive", -1))(t)) + "\n"
		}
		return bodies
	}
	before := all(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{AdminPassword: "An0ther one"})
	if all(s) != before {
		t.Error("downloads differ after the file was opened again")
	}
	same(t, "the policy", get(s.Policy(ctx, p.ID))(t), get(encode(p))(t))
	must(t)(s.Login(ctx, "admin", adminPassword))
	_, err := s.Login(ctx, "admin", "An0ther one")
	refused(t, err, admin.Unauthenticated, 0)
	private := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if mode := get(stat(path + suffix))(t); mode != 0o600 {
				t.Errorf("%s is of mode %o", suffix, mode)
			}
		}
	}
	private()
}
