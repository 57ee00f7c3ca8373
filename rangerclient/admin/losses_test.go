package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/policy"
	"sqe/rangerclient/model"
)

// observed is a fake that notes whose history is asked for, and may not show it.
type observed struct {
	*fake
	asked []int64
	fails func(id int64) error
}

func (o *observed) PolicyVersions(ctx context.Context, id int64) ([]int64, error) {
	o.asked = append(o.asked, id)
	if o.fails != nil {
		if err := o.fails(id); err != nil {
			return nil, err
		}
	}
	return o.fake.PolicyVersions(ctx, id)
}

// history is a server with a policy to which SQE added for two people, in two versions.
func history(t *testing.T) (*observed, *Writer, Place) {
	t.Helper()
	o := &observed{fake: lake()}
	at := Place{Service: "lake", Name: "m"}
	w := watchful(o, true, nil)
	for _, u := range []string{"ann", "ben"} {
		if _, err := w.Edit(author, at, adding(mask("MASK", u))); err != nil {
			t.Fatal(err)
		}
	}
	return o, w, at
}

// moment is when the tests of losses take place.
var moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func watchful(s Server, reapply bool, told *[]Loss) *Writer {
	w := NewWriter(s)
	w.pause = func(int) time.Duration { return time.Millisecond }
	w.watched.now = func() time.Time { return moment }
	w.WatchLosses(reapply, func(l Loss) {
		if told != nil {
			*told = append(*told, l)
		}
	})
	return w
}

func (o *observed) list(t *testing.T, service string) []*model.Policy {
	t.Helper()
	all, err := o.Policies(context.Background(), service)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// stale writes a version again that somebody had read long ago, changed, at a time.
func (o *observed) stale(t *testing.T, id, version int64, at time.Time) {
	t.Helper()
	p, err := o.PolicyAt(context.Background(), id, version)
	if err != nil {
		t.Fatal(err)
	}
	o.foreign(p, func(p *model.Policy) {
		if p.ID, p.UpdateTime = id, 0; !at.IsZero() {
			p.UpdateTime = at.UnixMilli()
		}
		p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", "other"))
	})
}

// TestWhenLost: of what was erased before a server started only that is written again
// of which the policy server says that it was within the last day; and what was told is
// shown for a day.
func TestWhenLost(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		at    time.Time
		doubt string
	}{
		"just before":       {moment.Add(-time.Minute), ""},
		"almost a day ago":  {moment.Add(-kept + time.Minute), ""},
		"more than a day":   {moment.Add(-kept - time.Minute), doubtOld},
		"nobody knows when": {time.Time{}, doubtTime},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := history(t)
			id := o.list(t, "lake")[0].ID
			o.stale(t, id, 1, c.at)
			var told []Loss
			w := watchful(o, true, &told)
			for n := range 2 {
				restored, err := w.Look(ctx, o.list(t, "lake"))
				if err != nil || restored != (c.doubt == "" && n == 0) {
					t.Errorf("look %d: restored %v, %v", n, restored, err)
				}
			}
			want := []string{"ann", "ben", "other"}
			if c.doubt != "" {
				want = []string{"ann", "other"}
			}
			wantUsers(t, o.fake, id, want...)
			if len(told) != 1 || told[0].Doubt != c.doubt || told[0].Restored.IsZero() != (c.doubt != "") || !told[0].At.Equal(c.at) && !c.at.IsZero() {
				t.Errorf("told %v", told)
			}
			for after, n := range map[time.Duration]int{kept: 1, kept + time.Second: 0} {
				w := watchful(o, true, nil)
				w.watched.losses[id] = told[0]
				w.watched.now = func() time.Time { return moment.Add(after) }
				if all, _, _ := w.Losses(); len(all) != n {
					t.Errorf("after %s %v is shown", after, all)
				}
			}
		})
	}
}

// TestAcknowledge: a statement that counts with a loss makes a version that says so, once;
// where nothing is lost it makes none.
func TestAcknowledge(t *testing.T) {
	ctx := context.Background()
	o, w, _ := history(t)
	id := o.list(t, "lake")[0].ID
	version := func() int64 { return o.list(t, "lake")[0].Version }
	for name, x := range map[string]*Writer{"the same server": w, "another one": watchful(o, false, nil)} {
		if err := x.Acknowledge(ctx, id); err != nil || version() != 2 {
			t.Errorf("%s, nothing lost: version %d, %v", name, version(), err)
		}
	}
	// What somebody adds in knowledge of all is no loss.
	o.stale(t, id, 2, moment)
	if err := w.Acknowledge(ctx, id); err != nil || version() != 3 {
		t.Errorf("added to: version %d, %v", version(), err)
	}
	o.stale(t, id, 1, moment)
	for range 2 {
		if err := w.Acknowledge(ctx, id); err != nil || version() != 5 {
			t.Errorf("lost: version %d, %v", version(), err)
		}
	}
	wantUsers(t, o.fake, id, "ann", "other")
	var told []Loss
	if restored, err := watchful(o, true, &told).Look(ctx, o.list(t, "lake")); err != nil || restored || len(told) > 0 {
		t.Errorf("after it was acknowledged: restored %v, told %v, %v", restored, told, err)
	}
	if err := w.Acknowledge(ctx, id+99); err != nil {
		t.Errorf("a policy that is gone: %v", err)
	}
}

// TestUnreadableHistory: a history that the server does not give is not asked for again
// until the policy changes; one that could not be had now is.
func TestUnreadableHistory(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		err   error
		again bool
	}{"forbidden": {&Error{Kind: Forbidden, Reason: "no"}, false}, "no answer": {errors.New("no answer"), true}} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := history(t)
			id := o.list(t, "lake")[0].ID
			o.stale(t, id, 1, moment)
			o.fails = func(int64) error { return c.err }
			w := watchful(o, true, nil)
			for n := range 2 {
				o.asked = nil
				_, err := w.Look(ctx, o.list(t, "lake"))
				if (err != nil) != c.again || (len(o.asked) > 0) != (n == 0 || c.again) {
					t.Errorf("look %d: %v, asked %v", n, err, o.asked)
				}
			}
			o.fails = nil
			if restored, err := w.Look(ctx, o.list(t, "lake")); err != nil || restored != c.again {
				t.Errorf("when it may be had: restored %v, %v", restored, err)
			}
		})
	}
}

// TestLookBack: of policies without a trace of SQE those that changed last are looked at,
// once, each with a few of its versions; one in whose history SQE wrote is looked after.
func TestLookBack(t *testing.T) {
	ctx := context.Background()
	o := &observed{fake: lake()}
	ids := map[string]int64{}
	plain := func(n int, changed time.Time) *model.Policy {
		p := masks(mask("MASK", "ann"))
		p.Name, p.Resources = fmt.Sprint("p", n), on("database", fmt.Sprint("d", n), "table", "t", "column", "c")
		o.next++
		p.ID, p.Version, p.UpdateTime = o.next, 2, changed.UnixMilli()
		first := deep(p)
		first.Version = 1
		o.policies[p.ID], o.history[p.ID] = p, []*model.Policy{first, deep(p)}
		return deep(p)
	}
	// SQE wrote so many versions ago, and somebody writes on from what was there before.
	written := func(name string, n, ago int, changed time.Time) {
		p := plain(n, changed)
		ids[name] = p.ID
		if _, err := testWriter(o.fake).Edit(author, Place{Service: "lake", Name: p.Name}, adding(mask("MASK", "ben"))); err != nil {
			t.Fatal(err)
		}
		for i := range ago {
			p.Description, p.UpdateTime = fmt.Sprint("by hand ", i), changed.UnixMilli()
			if _, err := o.store("update", p); err != nil {
				t.Fatal(err)
			}
		}
	}
	written("recent", 1001, 1, moment.Add(time.Hour))
	written("deep", 1002, traceless, moment.Add(time.Hour))
	written("too deep", 1003, traceless+1, moment.Add(time.Hour))
	written("long ago", 1004, 1, moment.Add(-time.Hour))
	for n := range strangers {
		plain(n, moment.Add(time.Duration(n)*time.Second))
	}
	list := o.list(t, "lake")
	w := watchful(o, true, nil)
	o.fails = func(int64) error { return errors.New("no answer") }
	if err := w.LookBack(ctx, list); err == nil {
		t.Error("no answer, and no error")
	}
	o.fails, o.asked = nil, nil
	if err := w.LookBack(ctx, list); err != nil {
		t.Fatal(err)
	}
	if len(o.asked) != strangers || slices.Contains(o.asked, ids["long ago"]) || !slices.Contains(o.asked, ids["recent"]) {
		t.Errorf("it looks at %d policies", len(o.asked))
	}
	for name, want := range map[string]bool{"recent": true, "deep": true, "too deep": false, "long ago": false} {
		if got := w.watched.suspect[ids[name]]; got != want {
			t.Errorf("%s: it is looked after: %v", name, got)
		}
	}
	if len(w.watched.suspect) != 2 {
		t.Errorf("%d policies are looked after", len(w.watched.suspect))
	}
	o.asked = nil
	if err := w.LookBack(ctx, list); err != nil || len(o.asked) > 0 {
		t.Errorf("a second time it looks at %v: %v", o.asked, err)
	}
	if _, err := w.Look(ctx, list); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, o.fake, ids["recent"], "ann", "ben")
	wantUsers(t, o.fake, ids["long ago"], "ann")
}

// TestTrimmedHistory: when the version that was seen last is not in the history any more
// its last known ones decide.
func TestTrimmedHistory(t *testing.T) {
	ctx := context.Background()
	o, w, _ := history(t)
	id := o.list(t, "lake")[0].ID
	if _, err := w.Look(ctx, o.list(t, "lake")); err != nil {
		t.Fatal(err)
	}
	o.stale(t, id, 2, moment)
	o.history[id] = o.history[id][2:]
	if restored, err := w.Look(ctx, o.list(t, "lake")); err != nil || restored {
		t.Errorf("restored %v, %v", restored, err)
	}
	wantUsers(t, o.fake, id, "ann", "ben", "other")
}

// TestMembersOfGone: a member who is gone from the policy server, and a role that is, are
// nothing lost; what was told of the others is shown for a day, and then forgotten.
func TestMembersOfGone(t *testing.T) {
	ctx := context.Background()
	f := lake()
	now := moment
	a, _ := administrator(t, f, func(c *Config) { c.ReapplyLost = true })
	a.writer.watched.now = func() time.Time { return now }
	team := &model.Role{Name: "team", Users: []model.Member{{Name: "ann"}, {Name: "ben"}}}
	f.roles, f.users = []*model.Role{team}, []*model.User{{Name: "ann"}, {Name: "ben"}}
	given := []policy.Grantee{{Kind: policy.UserGrantee, Name: "ann"}, {Kind: policy.UserGrantee, Name: "ben"}}
	if err := a.keeper.members.remember(deep(team), given, true); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		t.Helper()
		if err := a.Look(ctx, nil, deep(f.roles)); err != nil {
			t.Fatal(err)
		}
		notes, _, _ := a.Notes()
		return strings.Join(notes, "\n")
	}
	if got := look(); got != "" {
		t.Errorf("as it was written: %s", got)
	}
	f.users = f.users[:1] // ben is gone
	f.roles[0] = &model.Role{Name: "team"}
	if got := look(); !strings.Contains(got, "lacks the user ann") || strings.Contains(got, "ben") {
		t.Errorf("both are missing, and ben is gone: %s", got)
	}
	now = moment.Add(kept)
	if got := look(); !strings.Contains(got, "ann") {
		t.Errorf("within the day: %q", got)
	}
	now = moment.Add(kept + time.Second)
	if got := look(); got != "" || len(a.keeper.members.wrote) != 0 {
		t.Errorf("after a day: %s, %d remembered", got, len(a.keeper.members.wrote))
	}
	// A role that is gone.
	if err := a.keeper.members.remember(deep(team), given, true); err != nil {
		t.Fatal(err)
	}
	listed := deep(f.roles) // of a download from before
	listed[0].Description = "by hand"
	f.roles = nil
	if err := a.Look(ctx, nil, listed); err != nil {
		t.Fatal(err)
	}
	if notes, _, _ := a.Notes(); len(notes) > 0 || len(a.keeper.members.wrote) != 0 {
		t.Errorf("a role that is gone: %v, %d remembered", notes, len(a.keeper.members.wrote))
	}
}
