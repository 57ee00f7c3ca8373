package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sqe/rangerclient/model"
)

// Loss is a change, of SQE or of somebody else, that a later write erased whose author
// did not know of it.
type Loss struct {
	Service, Policy string
	Role            string // instead of a policy: whose members these were
	ID              int64
	Version         int64     // that erased it
	By              string    // who wrote that, if the server tells
	At              time.Time // when that was written; zero: unknown
	Noticed         time.Time
	What            []string // such as "allow items of user ann"; no text of a policy
	// Restored: it was written again, at that time.
	Restored time.Time
	// Doubt says why it was not; "" when it is not asked for.
	Doubt string

	base, want *model.Policy
}

// String is the loss for an administrator.
func (l Loss) String() string {
	by := ""
	if l.By != "" {
		by = " by " + l.By
	}
	if l.Role != "" {
		left := "it is left so: " + l.Doubt
		if !l.Restored.IsZero() {
			left = "it was written again"
		} else if l.Doubt == "" {
			left = "it is left so (reapply-lost-grants is off)"
		}
		return fmt.Sprintf("role %q, as it was saved%s, %s; %s", l.Role, by, strings.Join(l.What, ", "), left)
	}
	out := fmt.Sprintf("policy %q (id %d) in service %s: version %d, written%s without knowledge of the one before, erased %s", l.Policy, l.ID, l.Service, l.Version, by, strings.Join(l.What, ", "))
	switch {
	case !l.Restored.IsZero():
		return out + "; it was written again"
	case l.Doubt != "":
		return out + "; it was not written again: " + l.Doubt
	}
	return out + "; it was not written again (reapply-lost-grants is off): repeat the statements that made it"
}

// watched is what a Writer knows of the policies that it looks after.
type watched struct {
	mu      sync.Mutex
	checked map[int64]int64 // by policy, the version up to which all is accounted for
	// suspect policies bear no trace of SQE, and their history does.
	suspect    map[int64]bool
	lookedBack bool
	losses     map[int64]Loss
	lost       int64
	again      int64
	reapply    bool
	report     func(Loss)
	now        func() time.Time
}

// kept is how long a loss is shown, unless it is made up for before.
const kept = 24 * time.Hour

// WatchLosses says whether what was lost is to be written again, and who is told of
// it. It is called before the Writer is used.
func (w *Writer) WatchLosses(reapply bool, report func(Loss)) {
	w.watched.reapply, w.watched.report = reapply, report
}

// account notes that the versions up to one hold what the one before held, or leave
// out what their author meant to.
func (w *watched) account(id, from, to int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.checked[id]; from == 0 || ok && was >= from && was < to {
		w.checked[id] = to
	}
}

// version is the one up to which a policy is accounted for; 0: none is.
func (w *watched) version(id int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checked[id]
}

// behind reports whether a policy has versions in which something may be lost that is to
// be written again.
func (w *Writer) behind(p *model.Policy) bool {
	v := w.watched.version(p.ID)
	return w.watched.reapply && v != 0 && v < p.Version
}

func (w *watched) forget(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.checked, id)
	delete(w.suspect, id)
	delete(w.losses, id)
}

func (w *watched) add(l Loss) {
	w.mu.Lock()
	if was, ok := w.losses[l.ID]; !ok || was.Version != l.Version {
		w.lost++
	}
	if !l.Restored.IsZero() {
		w.again++
	}
	w.losses[l.ID] = l
	w.mu.Unlock()
	if w.report != nil {
		w.report(l)
	}
}

// Losses lists what was lost in the last day and not made up for, and what was written
// again; the counters count since the start.
func (w *Writer) Losses() (losses []Loss, lost, restored int64) {
	w.watched.mu.Lock()
	defer w.watched.mu.Unlock()
	for id, l := range w.watched.losses {
		if w.watched.now().Sub(l.Noticed) > kept {
			delete(w.watched.losses, id)
		}
	}
	losses = slices.SortedFunc(maps.Values(w.watched.losses), func(a, b Loss) int { return cmp.Compare(a.ID, b.ID) })
	return losses, w.watched.lost, w.watched.again
}

// Look compares policies, as a list or a download has them, with what is known of
// them, and finds in their history what stale writes erased. It is written again when
// that is asked for. restored says whether something was. Of a policy that was not
// looked at before, its own history says what an earlier run of the server had seen
// (see unseen).
func (w *Writer) Look(ctx context.Context, list []*model.Policy) (restored bool, err error) {
	var errs []error
	for _, p := range list {
		w.watched.mu.Lock()
		checked, known := w.watched.checked[p.ID]
		if !known && !w.watched.suspect[p.ID] && (!traces(p) || knew(p)) {
			w.watched.checked[p.ID], known, checked = p.Version, true, p.Version
		}
		w.watched.mu.Unlock()
		if known && checked >= p.Version {
			continue
		}
		done, err := w.exclusive(ctx)
		if err != nil {
			return restored, err
		}
		yes, err := w.look(ctx, p.ID, checked, known)
		done()
		restored = restored || yes
		if KindOf(err) != "" {
			w.watched.account(p.ID, checked, p.Version) // its history is not to be read
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	return restored, errors.Join(errs...)
}

// knew reports whether a policy is one that SQE wrote in knowledge of the version before.
func knew(p *model.Policy) bool {
	from := stamped(p)
	return len(from) > 0 && slices.Max(from) == p.Version-1
}

// strangers bounds how many policies without a trace of SQE are looked at when a server
// starts, and traceless how many of their last versions.
const (
	strangers = 200
	traceless = 8
)

// LookBack looks, once, into the history of policies that bear no trace of SQE: whoever
// writes back what was there before SQE's first statement erases the traces as well.
// It marks those whose history has one, for Look. Of very many it looks at those that
// changed last.
func (w *Writer) LookBack(ctx context.Context, list []*model.Policy) error {
	w.watched.mu.Lock()
	first := !w.watched.lookedBack
	w.watched.lookedBack = true
	var open []*model.Policy
	for _, p := range list {
		if _, known := w.watched.checked[p.ID]; first && !known && !traces(p) && p.Version > 1 {
			open = append(open, p)
		}
	}
	w.watched.mu.Unlock()
	slices.SortStableFunc(open, func(a, b *model.Policy) int {
		return cmp.Or(cmp.Compare(b.UpdateTime, a.UpdateTime), cmp.Compare(b.ID, a.ID))
	})
	for _, p := range open[:min(len(open), strangers)] {
		if err := w.lookBack(ctx, p.ID); KindOf(err) == "" && err != nil {
			w.watched.mu.Lock()
			w.watched.lookedBack = false
			w.watched.mu.Unlock()
			return err
		}
	}
	return nil
}

func (w *Writer) lookBack(ctx context.Context, id int64) error {
	now, err := absent(w.server.Policy(ctx, id))
	if now == nil || err != nil {
		return err
	}
	r, err := newReplay(ctx, w.server, now)
	if err != nil {
		return err
	}
	earlier := r.before(now.Version)
	for _, v := range earlier[:min(len(earlier), traceless)] {
		p, err := r.at(ctx, v)
		if err != nil {
			return err
		}
		if traces(p) {
			w.watched.mu.Lock()
			w.watched.suspect[id] = true
			w.watched.mu.Unlock()
			return nil
		}
	}
	return nil
}

// The doubts about what happened before a server looked.
const (
	doubtBefore = "it was lost before this server looked, and statements since then may have counted with it"
	doubtOld    = "it was lost more than a day before this server looked, so it may have been accepted since"
	doubtTime   = "it was lost before this server looked, and the policy server does not say when"
)

// unseen replays a policy of which this run of the server knows nothing. The last
// version that SQE wrote, in knowledge of the one before, is what every statement of
// SQE has counted with: one that would have changed nothing because of a loss makes a
// version too (see Acknowledge). So what was erased after it is as what is found at a
// poll; of what was erased before it is only told.
func (w *Writer) unseen(ctx context.Context, r *replay, now *model.Policy) (out *replayed, since int64, err error) {
	earliest := r.known[max(0, len(r.known)-horizon/2)]
	for _, v := range slices.Backward(r.known) {
		if v < earliest {
			break
		}
		p, err := r.at(ctx, v)
		if err != nil {
			return nil, 0, err
		}
		if !knew(p) {
			continue
		}
		if out, err = r.run(ctx, v); err != nil {
			return nil, 0, err
		}
		if out.lossy != 0 {
			if at := r.seen[out.lossy].UpdateTime; out.doubt == "" && at == 0 {
				out.doubt = doubtTime
			} else if out.doubt == "" && w.watched.now().Sub(time.UnixMilli(at)) > kept {
				out.doubt = doubtOld
			}
			return out, v, nil
		}
		break
	}
	if out, err = r.run(ctx, earliest); err == nil && out.lossy != 0 && out.doubt == "" {
		out.doubt = doubtBefore
	}
	return out, earliest, err
}

// Acknowledge is for a statement that changes nothing of a policy. When somebody erased
// something of it that is not written again, the statement has counted with that: a
// version with the same content says so to whoever looks at the history later.
func (w *Writer) Acknowledge(ctx context.Context, id int64) error {
	done, err := w.exclusive(ctx)
	if err != nil {
		return err
	}
	defer done()
	now, err := absent(w.server.Policy(ctx, id))
	if now == nil || err != nil || knew(now) {
		return err
	}
	r, err := newReplay(ctx, w.server, now)
	if err != nil {
		return err
	}
	out, _, err := w.unseen(ctx, r, now)
	if err != nil || out.lossy == 0 {
		return err
	}
	return newPush(w, now, clone(now)).run(context.WithoutCancel(ctx))
}

// look is Look for one policy; whoever calls it has the turn to write.
func (w *Writer) look(ctx context.Context, id, checked int64, known bool) (restored bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.after)
	defer cancel()
	for n := range attempts {
		if n > 0 {
			if err := w.sleep(ctx); err != nil {
				return restored, err
			}
		}
		now, err := absent(w.server.Policy(ctx, id))
		if err != nil {
			return restored, err
		}
		if now == nil {
			w.watched.forget(id)
			return restored, nil
		}
		r, err := newReplay(ctx, w.server, now)
		if err != nil {
			return restored, err
		}
		since := checked
		var out *replayed
		if known = known && slices.Contains(r.known, since); known {
			out, err = r.run(ctx, since)
		} else {
			out, since, err = w.unseen(ctx, r, now)
		}
		if err != nil {
			return restored, err
		}
		if out.lossy == 0 {
			w.settled(id, since, now)
			return restored, nil
		}
		l := w.loss(r, now, out)
		again := w.watched.reapply && out.doubt == ""
		if again && !same(out.want, now) {
			push := newPush(w, now, out.want)
			switch err := push.run(ctx); {
			case err == nil:
				restored = true
				l.Restored = w.watched.now()
				w.watched.add(l)
				checked, known = since, true
				continue // somebody may have overwritten that in turn
			case KindOf(err) == Conflict, KindOf(err) == NotFound, errors.As(err, new(*MergeConflict)):
				continue
			default:
				return restored, err
			}
		}
		if !again {
			w.watched.add(l)
		}
		w.settled(id, since, now)
		return restored, nil
	}
	return restored, fmt.Errorf("policy %d is changed by others all the time", id)
}

// settled notes that a policy was looked at. What was lost and is there again is
// lost no more.
func (w *Writer) settled(id, since int64, now *model.Policy) {
	w.watched.mu.Lock()
	defer w.watched.mu.Unlock()
	w.watched.checked[id] = max(now.Version, w.watched.checked[id])
	if l, ok := w.watched.losses[id]; ok && l.Restored.IsZero() && l.Version <= since && holds(l.base, l.want, now) {
		delete(w.watched.losses, id)
	}
}

func (w *Writer) loss(r *replay, now *model.Policy, out *replayed) Loss {
	l := Loss{
		Service: now.Service, Policy: now.Name, ID: now.ID, Version: out.lossy, Noticed: w.watched.now(), What: out.lost, Doubt: out.doubt,
		base: now, want: out.want,
	}
	if p := r.seen[out.lossy]; p != nil {
		l.By = p.UpdatedBy
		if p.UpdateTime != 0 {
			l.At = time.UnixMilli(p.UpdateTime)
		}
	}
	return l
}
