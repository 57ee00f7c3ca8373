package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sqe/rangerclient/model"
)

// Place says which policy of a service is meant.
type Place struct {
	Service string
	// ID, when not 0, says it all.
	ID int64
	// Name in a zone ("" is none), when not empty.
	Zone, Name string
	// Type and Resources find a policy by exactly what it is on, when there is
	// neither id nor name. Of several, one without schedule, conditions and
	// override is meant: those restrict when and for whom a policy acts.
	Type      int
	Resources map[string]model.Resource
	// Plain: only one without these, that is enabled.
	Plain bool
}

// EditFunc makes of a policy what it is to be: nil for none. It gets a copy that
// it may change, or nil when there is none, and may be called again with a newer
// one. Its errors are returned as they are, and nothing is written.
type EditFunc func(p *model.Policy) (*model.Policy, error)

// Lost says that the outcome of a write is not known, or that what it overwrote
// could not be brought back.
type Lost struct {
	Policy string
	What   string
	cause  error
}

// Error implements error.
func (e *Lost) Error() string { return fmt.Sprintf("policy %q: %s", e.Policy, e.What) }

// Unwrap gives the cause.
func (e *Lost) Unwrap() error { return e.cause }

// Writer is the one way in which SQE changes policies of a server. There is one
// Writer for each server in a process: it does one edit at a time.
//
// An edit reads the policy, changes a copy and sends it once. A Ranger Admin
// compares no versions, so two writers that read the same version overwrite each
// other; but it counts them and keeps every one. When the version of what was
// stored is not one above what was read, somebody else's policy was overwritten:
// it is fetched from the history, merged (see merge) with what was sent, and the
// result is sent in turn. When both changed the same, theirs is put back and the
// edit fails with a MergeConflict: whoever asked for it looks again. A policy that
// was deleted while somebody changed it is made again, and the edit fails likewise.
// An answer that does not come is made up for by reading.
type Writer struct {
	server Server
	lock   chan struct{}
	pause  func(attempt int) time.Duration
	after  time.Duration // how long an edit may take once something was sent

	watched watched
}

// NewWriter makes the Writer of a server.
func NewWriter(s Server) *Writer {
	return &Writer{
		server: s, lock: make(chan struct{}, 1), after: 30 * time.Second,
		pause: func(attempt int) time.Duration {
			return time.Duration(10+rand.IntN(40*(attempt+1))) * time.Millisecond
		},
		watched: watched{checked: map[int64]int64{}, suspect: map[int64]bool{}, losses: map[int64]Loss{}, now: time.Now},
	}
}

// Server is what it writes to.
func (w *Writer) Server() Server { return w.server }

// attempts bounds how often one edit is read and sent again.
const attempts = 8

// Edit changes, makes or deletes a policy and labels it with the author of ctx
// (see Label). It returns the policy as it is stored, nil when there is none.
func (w *Writer) Edit(ctx context.Context, at Place, edit EditFunc) (*model.Policy, error) {
	return w.edit(ctx, at, func(p *model.Policy) (*model.Policy, error) {
		before := clone(p)
		out, err := edit(p)
		if err == nil && out != nil && !same(before, out) {
			label(out, AuthorOf(ctx))
		}
		return out, err
	})
}

// exclusive waits for the turn to write.
func (w *Writer) exclusive(ctx context.Context) (done func(), err error) {
	select {
	case w.lock <- struct{}{}:
		return func() { <-w.lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// edit is Edit without labels, for copies of what is elsewhere.
func (w *Writer) edit(ctx context.Context, at Place, edit EditFunc) (*model.Policy, error) {
	done, err := w.exclusive(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	for n := 0; ; n++ {
		out, err := w.once(ctx, at, edit)
		again := &retry{}
		if !errors.As(err, &again) {
			return out, err
		}
		if n == attempts-1 {
			return nil, again.cause
		}
		select {
		case <-time.After(w.pause(n)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// retry says that nothing was written and that reading again may help.
type retry struct{ cause error }

func (r *retry) Error() string { return r.cause.Error() }

func (w *Writer) once(ctx context.Context, at Place, edit EditFunc) (*model.Policy, error) {
	base, err := w.find(ctx, at)
	if err == nil && base != nil && w.behind(base) {
		// What was lost comes back first: an edit must not count with its absence.
		if _, err = w.look(ctx, base.ID, w.watched.version(base.ID), true); err == nil || KindOf(err) != "" {
			base, err = w.find(ctx, at)
		}
	}
	if err != nil {
		return nil, err
	}
	ours, err := edit(clone(base))
	if err != nil {
		return nil, err
	}
	if same(base, ours) {
		return base, nil
	}
	// What was sent is seen through to its end, whether or not somebody waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.after)
	defer cancel()
	switch {
	case base == nil:
		return w.create(ctx, at, ours)
	case ours == nil:
		return nil, w.delete(ctx, base)
	}
	return w.update(ctx, base, ours)
}

// find reads the policy; nil when there is none.
func (w *Writer) find(ctx context.Context, at Place) (*model.Policy, error) {
	switch {
	case at.ID != 0:
		return absent(w.server.Policy(ctx, at.ID))
	case at.Name != "":
		p, err := absent(w.server.PolicyNamed(ctx, at.Service, at.Zone, at.Name))
		if p == nil || err != nil {
			return nil, err
		}
		// Some answers leave members out; that by id does not.
		return absent(w.server.Policy(ctx, p.ID))
	}
	list, err := w.server.Policies(ctx, at.Service)
	if err != nil {
		return nil, err
	}
	want := &model.Policy{Service: at.Service, ZoneName: at.Zone, PolicyType: at.Type, Resources: at.Resources}
	found := slices.DeleteFunc(list, func(p *model.Policy) bool { return !sameResources(p, want) || at.Plain && special(p) > 0 })
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(found, func(a, b *model.Policy) int { return special(a) - special(b) })
	return absent(w.server.Policy(ctx, found[0].ID))
}

// special counts what makes a policy more than one on its resources.
func special(p *model.Policy) int {
	n := 0
	for _, yes := range []bool{len(p.ValiditySchedules) > 0, len(p.Conditions) > 0, p.PolicyPriority != 0, !p.IsEnabled()} {
		if yes {
			n++
		}
	}
	return n
}

// sameResources reports whether two policies are on exactly the same.
func sameResources(a, b *model.Policy) bool {
	a, b = normal(a), normal(b)
	return a.PolicyType == b.PolicyType && a.ZoneName == b.ZoneName && text(a.Resources) == text(b.Resources) &&
		text(a.AdditionalResources) == text(b.AdditionalResources)
}

func absent(p *model.Policy, err error) (*model.Policy, error) {
	if KindOf(err) == NotFound {
		return nil, nil
	}
	return p, err
}

func (w *Writer) create(ctx context.Context, at Place, ours *model.Policy) (*model.Policy, error) {
	ours.ID, ours.GUID, ours.Version = 0, "", 0
	stamp(ours, []int64{0})
	p, err := w.server.CreatePolicy(ctx, ours)
	switch kind := KindOf(err); {
	case err == nil:
		// Whoever changes it from now on has read it.
		w.watched.account(p.ID, 0, 1)
		return w.server.Policy(ctx, p.ID)
	case kind == Conflict:
		return nil, &retry{err}
	case kind == Exists:
		// Somebody may have made it meanwhile; then it is one to change.
		if found, e := w.find(ctx, at); e == nil && found != nil {
			return nil, &retry{err}
		}
		return nil, w.occupied(ctx, ours, err)
	case kind != "":
		return nil, err
	}
	found, e := absent(w.server.PolicyNamed(ctx, ours.Service, ours.ZoneName, ours.Name))
	if e == nil && found != nil {
		if found, e = absent(w.server.Policy(ctx, found.ID)); e == nil && same(found, ours) {
			return found, nil
		}
	}
	return nil, &Lost{ours.Name, "the server did not answer, and the policy is not there now; look again before repeating", errors.Join(err, e)}
}

// occupied completes a refusal with the name of the policy that is in the way.
func (w *Writer) occupied(ctx context.Context, ours *model.Policy, refusal error) error {
	e := &Error{}
	if !errors.As(refusal, &e) || e.Code == 3006 {
		return refusal
	}
	list, err := w.server.Policies(ctx, ours.Service)
	if err != nil {
		return refusal
	}
	for _, p := range list {
		if p.ID != ours.ID && sameResources(p, ours) && p.PolicyPriority == ours.PolicyPriority {
			out := *e
			out.Name = p.Name
			return &out
		}
	}
	return refusal
}

func (w *Writer) update(ctx context.Context, base, ours *model.Policy) (*model.Policy, error) {
	p := newPush(w, base, ours)
	err := p.run(ctx)
	clash := &MergeConflict{}
	switch kind := KindOf(err); {
	case err == nil:
		now, err := p.confirm(ctx)
		if err == nil {
			w.watched.account(base.ID, base.Version, now.Version)
		}
		return now, err
	case errors.As(err, &clash):
		// Somebody's change is overwritten and cannot be had together with this
		// one: it comes first.
		back := *p
		back.want = p.others
		if err := back.run(ctx); err != nil {
			return nil, &Lost{ours.Name, fmt.Sprintf("it was changed at the same time by somebody else, and that change could not be put back: compare its versions %d and later", base.Version), err}
		}
		return nil, fmt.Errorf("policy %q was changed by somebody else at the same time: %w; nothing of this change was kept", ours.Name, err)
	case p.written && kind == NotFound:
		return nil, &retry{&Lost{ours.Name, "somebody else deleted it while it was changed", err}}
	case p.written:
		return nil, &Lost{ours.Name, fmt.Sprintf("somebody else changed it at the same time, and both changes could not be brought together: compare its versions %d and later", base.Version), err}
	case kind == NotFound, kind == Conflict:
		return nil, &retry{err}
	case kind == Exists:
		return nil, w.occupied(ctx, ours, err)
	}
	return nil, err
}

// put sends a policy once. known is the last version that was seen.
func (w *Writer) put(ctx context.Context, known, want *model.Policy) (*model.Policy, error) {
	stored, err := w.server.UpdatePolicy(ctx, want)
	if err == nil || KindOf(err) != "" {
		return stored, err
	}
	versions, e := w.server.PolicyVersions(ctx, known.ID)
	for _, v := range versions {
		if v <= known.Version {
			continue
		}
		p, e2 := w.server.PolicyAt(ctx, known.ID, v)
		if e2 == nil && same(p, want) {
			p.Version = v
			return p, nil
		}
		e = errors.Join(e, e2)
	}
	return nil, &Lost{want.Name, "the server did not answer, and the change is not there now; look again before repeating", errors.Join(err, e)}
}

func (w *Writer) delete(ctx context.Context, base *model.Policy) error {
	err := w.server.DeletePolicy(ctx, base.ID)
	w.watched.forget(base.ID)
	switch kind := KindOf(err); {
	case kind == NotFound:
		return nil
	case kind == Conflict:
		return &retry{err}
	case kind != "":
		return err
	case err != nil:
		if now, e := absent(w.server.Policy(ctx, base.ID)); e != nil || now != nil {
			return &Lost{base.Name, "the server did not answer, and the policy is still there; look again before repeating", errors.Join(err, e)}
		}
	default:
		if now, e := absent(w.server.Policy(ctx, base.ID)); e != nil || now != nil {
			return &Lost{base.Name, "the server said that it is deleted, but it cannot be seen that it is; look again", e}
		}
	}
	// Where the history outlives the policy it says whether the deleted one was
	// the one that was read.
	versions, err := w.server.PolicyVersions(ctx, base.ID)
	if err != nil || len(versions) == 0 || slices.Max(versions) <= base.Version {
		return nil
	}
	last, err := w.server.PolicyAt(ctx, base.ID, slices.Max(versions))
	if err != nil || same(last, base) {
		return nil
	}
	last.ID, last.GUID, last.Version = 0, "", 0
	if _, err := w.server.CreatePolicy(ctx, last); KindOf(err) == Exists || KindOf(err) == Conflict {
		return &retry{err} // who changed it made it again
	} else if err != nil {
		return &Lost{base.Name, "it was deleted while somebody else changed it, and could not be made again: restore it from its history", err}
	}
	return fmt.Errorf("policy %q was changed by somebody else while it was deleted: %w; it is there again", base.Name, &MergeConflict{[]string{"its existence"}})
}

func (w *Writer) sleep(ctx context.Context) error {
	select {
	case <-time.After(w.pause(1)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The labels of policies that SQE writes.
const (
	LabelManaged = "managed-by:sqe"
	LabelBy      = "sqe:by=" // and the name of who changed it last
)

// label marks a policy as written by SQE for an author. Labels of others stay. A
// policy without description gets one that says who made it and from where.
func label(p *model.Policy, by Author) {
	p.PolicyLabels = slices.DeleteFunc(p.PolicyLabels, func(l string) bool { return strings.HasPrefix(l, LabelBy) })
	p.PolicyLabels = append(p.PolicyLabels, LabelManaged)
	if by.User != "" {
		p.PolicyLabels = append(p.PolicyLabels, LabelBy+by.User)
	}
	p.PolicyLabels = set(p.PolicyLabels)
	if p.Description == "" && by.User != "" && p.ID == 0 {
		p.Description = "Made with SQE by " + by.User
		if by.From != "" {
			p.Description += " from " + by.From
		}
	}
}
