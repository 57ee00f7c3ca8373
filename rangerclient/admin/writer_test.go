package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

func testWriter(f *fake) *Writer {
	w := NewWriter(f)
	w.pause = func(int) time.Duration { return time.Millisecond }
	return w
}

// stored puts a policy on the fake.
func stored(t *testing.T, f *fake, p *model.Policy) *model.Policy {
	t.Helper()
	out, err := f.store("create", p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func adding(i *model.Item) EditFunc {
	return func(p *model.Policy) (*model.Policy, error) {
		if p == nil {
			return masks(i), nil
		}
		p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, i)
		return p, nil
	}
}

var author = WithAuthor(context.Background(), Author{User: "root", From: "10.0.0.7"})

func users(p *model.Policy) (out []string) {
	for _, i := range p.DataMaskPolicyItems {
		out = append(out, i.Users...)
	}
	slices.Sort(out)
	return out
}

func wantUsers(t *testing.T, f *fake, id int64, want ...string) {
	t.Helper()
	p, err := f.Policy(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := users(p); !slices.Equal(got, want) {
		t.Errorf("version %d masks for %v, want %v", p.Version, got, want)
	}
}

func TestEdit(t *testing.T) {
	f := lake()
	w := testWriter(f)
	at := Place{Service: "lake", Name: "m"}
	p, err := w.Edit(author, at, adding(mask("MASK", "alice")))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.PolicyLabels, []string{"managed-by:sqe", "sqe:by=root"}) || p.Description != "Made with SQE by root from 10.0.0.7" {
		t.Errorf("labels %q, description %q", p.PolicyLabels, p.Description)
	}
	f.foreign(p, func(p *model.Policy) { p.PolicyLabels = append(p.PolicyLabels, "theirs", "sqe:by=other") })
	at = Place{Service: "lake", Type: model.MaskPolicy, Resources: on("database", "d", "table", "t", "column", "c")}
	if p, err = w.Edit(author, at, adding(mask("MASK", "bob"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, p.ID, "alice", "bob")
	if !slices.Equal(p.PolicyLabels, []string{"managed-by:sqe", "sqe:by=root", "theirs"}) || p.Version != 3 {
		t.Errorf("labels %q, version %d", p.PolicyLabels, p.Version)
	}
	writes := f.writes
	if _, err := w.Edit(author, at, func(p *model.Policy) (*model.Policy, error) { return p, nil }); err != nil || f.writes != writes {
		t.Errorf("an edit that changes nothing: %v, %d writes", err, f.writes-writes)
	}
	no := errors.New("no")
	if _, err := w.Edit(author, at, func(p *model.Policy) (*model.Policy, error) { p.Name = "x"; return p, no }); err != no || f.writes != writes {
		t.Errorf("an edit that refuses: %v, %d writes", err, f.writes-writes)
	}
	gone, err := w.Edit(author, at, func(*model.Policy) (*model.Policy, error) { return nil, nil })
	if err != nil || gone != nil || len(f.policies) != 0 {
		t.Errorf("deleted: %v, %v, %d left", gone, err, len(f.policies))
	}
}

// TestEditFindsExactResources: a policy on more, or with a schedule, is another.
func TestEditFindsExactResources(t *testing.T) {
	f := lake()
	wide := masks(mask("MASK", "x"))
	wide.Name, wide.Resources = "wide", on("database", "d", "table", "t", "column", "c,e")
	timed := masks(mask("MASK", "x"))
	timed.Name, timed.ValiditySchedules = "timed", []model.Schedule{{StartTime: "2026/01/01 00:00:00"}}
	plain := masks(mask("MASK", "x"))
	plain.Name = "plain"
	stored(t, f, wide)
	stored(t, f, timed)
	want := stored(t, f, plain)
	p, err := testWriter(f).Edit(author, Place{Service: "lake", Type: model.MaskPolicy, Resources: on("column", "c", "table", "t", "database", "d")}, adding(mask("MASK", "bob")))
	if err != nil || p.ID != want.ID {
		t.Fatalf("edited %v, %v; want policy %d", p, err, want.ID)
	}
}

// once makes a hook that acts on the first write only.
func once(do func(op string, id int64) error) func(string, int64) error {
	done := false
	return func(op string, id int64) error {
		if done {
			return nil
		}
		done = true
		return do(op, id)
	}
}

func TestOverwrittenIsMerged(t *testing.T) {
	for _, foreign := range []int{1, 2, 3} {
		f := lake()
		base := stored(t, f, masks(mask("MASK", "alice")))
		last := base
		f.before = once(func(string, int64) error {
			for n := range foreign {
				f.foreign(last, func(p *model.Policy) {
					*p = *deep(last)
					p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", fmt.Sprint("x", n)))
				})
				last = f.policies[base.ID]
			}
			return nil
		})
		p, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob")))
		if err != nil {
			t.Fatal(err)
		}
		wantUsers(t, f, p.ID, append([]string{"alice", "bob"}, []string{"x0", "x1", "x2"}[:foreign]...)...)
	}
}

// TestForeignDenySurvives is the reason for the merge: a deny that somebody wrote
// between the read and the write of a grant is there afterwards.
func TestForeignDenySurvives(t *testing.T) {
	f := lake()
	base := stored(t, f, granting(allow("alice", "select")))
	f.before = once(func(string, int64) error {
		f.foreign(base, func(p *model.Policy) { p.DenyPolicyItems = []*model.Item{allow("mallory", "select")} })
		return nil
	})
	p, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "g"}, func(p *model.Policy) (*model.Policy, error) {
		p.PolicyItems = append(p.PolicyItems, allow("bob", "select"))
		return p, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.DenyPolicyItems) != 1 || len(p.PolicyItems) != 2 {
		t.Errorf("stored %s", text(p))
	}
}

func TestConflictPutsTheirsBack(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	f.before = once(func(string, int64) error {
		f.foreign(base, func(p *model.Policy) {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "bob"))
		})
		return nil
	})
	_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK_NONE", "bob")))
	var clash *MergeConflict
	if !errors.As(err, &clash) {
		t.Fatalf("got %v, want a conflict", err)
	}
	p := f.policies[base.ID]
	if len(p.DataMaskPolicyItems) != 2 || p.DataMaskPolicyItems[1].DataMaskInfo.DataMaskType != "MASK_NULL" {
		t.Errorf("their mask is lost: %s", text(p))
	}
}

// TestConflictWithTwo: the change of one is merged, that of another cannot be; both
// theirs are there in the end.
func TestConflictWithTwo(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	n := 0
	f.before = func(string, int64) error {
		n++
		switch n {
		case 1:
			f.foreign(base, func(p *model.Policy) {
				p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", "carol"))
			})
		case 2:
			f.foreign(base, func(p *model.Policy) {
				p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "bob"))
			})
		}
		return nil
	}
	_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK_NONE", "bob")))
	var clash *MergeConflict
	if !errors.As(err, &clash) {
		t.Fatalf("got %v, want a conflict", err)
	}
	wantUsers(t, f, base.ID, "alice", "bob", "carol")
	for _, i := range f.policies[base.ID].DataMaskPolicyItems {
		if exempts(i) {
			t.Errorf("the exemption is stored: %s", text(f.policies[base.ID]))
		}
	}
}

func TestOptimisticLock(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	n := 0
	f.before = func(string, int64) error {
		if n++; n <= 3 {
			f.foreign(f.policies[base.ID], func(p *model.Policy) {
				*p = *deep(f.policies[base.ID])
				p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", fmt.Sprint("x", n)))
			})
			return &Error{Kind: Conflict, Reason: "OptimisticLockException"}
		}
		return nil
	}
	if _, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, base.ID, "alice", "bob", "x1", "x2", "x3")

	n = -1000
	if _, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "never"))); KindOf(err) != Conflict {
		t.Errorf("got %v, want the conflict after a bounded number of attempts", err)
	}
	if n != -1000+attempts {
		t.Errorf("%d attempts", n+1000)
	}
}

// TestLockWhileMerging: the write that merges is refused once; what it brings back
// is not lost.
func TestLockWhileMerging(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	n := 0
	f.before = func(string, int64) error {
		switch n++; n {
		case 1:
			f.foreign(base, func(p *model.Policy) {
				p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", "carol"))
			})
		case 2:
			f.foreign(f.policies[base.ID], func(p *model.Policy) {
				p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", "dave"))
			})
			return &Error{Kind: Conflict}
		}
		return nil
	}
	if _, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, base.ID, "alice", "bob", "carol", "dave")
}

func TestLostAnswers(t *testing.T) {
	lost := errors.New("connection reset")
	for _, c := range []struct {
		name  string
		hook  func(f *fake, do func(string, int64) error)
		there bool
	}{
		{"after the write", func(f *fake, do func(string, int64) error) { f.after = do }, true},
		{"before the write", func(f *fake, do func(string, int64) error) { f.before = do }, false},
	} {
		for _, op := range []string{"create", "update", "delete"} {
			t.Run(op+" "+c.name, func(t *testing.T) {
				f := lake()
				if op != "create" {
					stored(t, f, masks(mask("MASK", "alice")))
				}
				sent := 0
				c.hook(f, func(string, int64) error { sent++; return lost })
				edit := adding(mask("MASK", "bob"))
				if op == "delete" {
					edit = func(*model.Policy) (*model.Policy, error) { return nil, nil }
				}
				_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, edit)
				var l *Lost
				if c.there && err != nil || !c.there && (!errors.As(err, &l) || !errors.Is(err, lost)) {
					t.Errorf("got %v", err)
				}
				if sent != 1 {
					t.Errorf("sent %d times", sent)
				}
			})
		}
	}
}

// TestLostAnswerAndOverwritten: the answer that would have said that somebody was
// overwritten does not come; the history says it.
func TestLostAnswerAndOverwritten(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	f.before = once(func(string, int64) error {
		f.foreign(base, func(p *model.Policy) {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "carol"))
		})
		return nil
	})
	f.after = once(func(string, int64) error { return context.DeadlineExceeded })
	if _, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, base.ID, "alice", "bob", "carol")
}

func TestCreatedMeanwhile(t *testing.T) {
	for _, named := range []bool{true, false} {
		f := lake()
		f.before = once(func(string, int64) error { stored(t, f, masks(mask("MASK_NULL", "carol"))); return nil })
		at := Place{Service: "lake", Name: "m"}
		if !named {
			at = Place{Service: "lake", Type: model.MaskPolicy, Resources: masks().Resources}
		}
		p, err := testWriter(f).Edit(author, at, adding(mask("MASK", "bob")))
		if err != nil {
			t.Fatal(err)
		}
		wantUsers(t, f, p.ID, "bob", "carol")
	}
}

func TestOccupied(t *testing.T) {
	f := lake()
	other := masks(mask("MASK", "x"))
	other.Name = "the other one"
	stored(t, f, other)
	_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob")))
	var e *Error
	if !errors.As(err, &e) || e.Kind != Exists || e.Name != "the other one" {
		t.Errorf("got %v, want a refusal that names the other policy", err)
	}
}

func TestDeletedWhileChanged(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	f.before = once(func(string, int64) error {
		f.foreign(base, func(p *model.Policy) {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "carol"))
		})
		return nil
	})
	_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, func(*model.Policy) (*model.Policy, error) { return nil, nil })
	var clash *MergeConflict
	if !errors.As(err, &clash) || len(f.policies) != 1 {
		t.Fatalf("got %v and %d policies, want a conflict and the policy", err, len(f.policies))
	}
	for id := range f.policies {
		wantUsers(t, f, id, "alice", "carol")
	}
}

// TestOverwrittenAfterwards: somebody with an old copy writes right after; that is
// told, and not fought.
func TestOverwrittenAfterwards(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	f.after = once(func(string, int64) error {
		f.foreign(base, func(p *model.Policy) { p.Description = "old copy" })
		return nil
	})
	_, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob")))
	var l *Lost
	if !errors.As(err, &l) {
		t.Errorf("got %v, want to be told", err)
	}
	wantUsers(t, f, base.ID, "alice")
}

// TestCallerGone: what was sent is seen through although nobody waits any more.
func TestCallerGone(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "alice")))
	ctx, cancel := context.WithCancel(author)
	f.before = once(func(string, int64) error {
		cancel()
		f.foreign(base, func(p *model.Policy) {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "carol"))
		})
		return nil
	})
	if _, err := testWriter(f).Edit(ctx, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "bob"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, base.ID, "alice", "bob", "carol")
}

// TestRemovedStaysRemoved: somebody with an old version, in which a mask was that
// has been taken away since on purpose, does not bring it back.
func TestRemovedStaysRemoved(t *testing.T) {
	f := lake()
	base := stored(t, f, masks(mask("MASK", "a")))
	// As SQEs do it: 2 and 3 were made from 1, 4 merges them, 5 takes x away.
	sqe := func(from []int64, users ...string) {
		p := deep(base)
		p.DataMaskPolicyItems = nil
		for _, u := range users {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK", u))
		}
		stamp(p, from)
		if _, err := f.store("update", p); err != nil {
			t.Fatal(err)
		}
	}
	sqe([]int64{1}, "a", "x")
	sqe([]int64{1}, "a", "y")
	sqe([]int64{3, 2}, "a", "x", "y")
	sqe([]int64{4}, "a", "y")
	f.before = once(func(string, int64) error { sqe([]int64{2}, "a", "x", "z"); return nil })
	if _, err := testWriter(f).Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", "w"))); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, f, base.ID, "a", "w", "y", "z")
	if got := stamped(f.policies[base.ID]); !slices.Equal(got, []int64{7, 6}) {
		t.Errorf("made from %v", got)
	}
}

// TestWriters: several processes add at the same time; nothing is lost.
func TestWriters(t *testing.T) {
	for round := range 4 {
		f := lake()
		f.before = func(string, int64) error { time.Sleep(time.Millisecond); return nil }
		writers(t, f, 2+round%2, 8, func(string) {})
	}
}

// writers lets processes edit one policy of a server at the same time. make makes
// a user.
func writers(t *testing.T, s Server, processes, edits int, make func(name string)) {
	t.Helper()
	make("alice")
	base, err := s.CreatePolicy(context.Background(), masks(mask("MASK", "alice")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"alice"}
	for n := range processes {
		for k := range edits {
			name := fmt.Sprintf("w%d-%d", n, k)
			make(name)
			want = append(want, name)
		}
	}
	var wg sync.WaitGroup
	for n := range processes {
		w := NewWriter(s)
		w.pause = func(int) time.Duration { return time.Millisecond }
		for k := range edits {
			name := fmt.Sprintf("w%d-%d", n, k)
			wg.Go(func() {
				_, err := w.Edit(author, Place{Service: "lake", Name: "m"}, adding(mask("MASK", name)))
				// A merge by another process may take longer than this one waits for
				// it; the change must be there all the same.
				if l := (*Lost)(nil); err != nil && (!errors.As(err, &l) || !strings.Contains(l.What, "right after")) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(want)
	p, err := s.Policy(context.Background(), base.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := users(p); !slices.Equal(got, want) {
		t.Errorf("version %d masks for %v, want %v", p.Version, got, want)
	}
}
