package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sqe/fault"
	"sqe/grants"
	"sqe/rangerclient/model"
)

// written is an edit that was made.
type written struct {
	before, after *model.Policy
}

// undo takes back what was written, the last first, and says how that went. left is
// what could not be taken back; nil: everything was.
func (k *keeper) undo(ctx context.Context, done []written, failed grants.Change, cause error) (left []written, err error) {
	cause = k.fault(cause, k.service())
	kind, text := fault.KindOf(cause), cause.Error()
	where := "the policy for " + failed.Resource.String()
	if len(done) == 0 {
		return nil, fault.Wrap(kind, cause, "%s: %s; nothing was changed", where, text)
	}
	var names []string
	for _, w := range slices.Backward(done) {
		if err := k.restore(ctx, w); err != nil {
			left, names = append(left, w), append(names, w.name())
			cause = errors.Join(cause, err)
		}
	}
	if len(left) > 0 {
		return left, fault.Wrap(kind, cause, "%s: %s. Of what was written before, the policies %s could not be taken back: look at them, and repeat the statement or REVOKE it", where, text, strings.Join(names, ", "))
	}
	if err := k.done(ctx, "that nothing was changed"); err != nil {
		return nil, err
	}
	return nil, fault.Wrap(kind, cause, "%s: %s. What was written before (%d) was taken back; nothing was changed", where, text, len(done))
}

func (w written) name() string {
	if w.after != nil {
		return w.after.Name
	}
	return w.before.Name
}

// restore makes a policy what it was before an edit, with what others changed since.
func (k *keeper) restore(ctx context.Context, w written) error {
	if same(w.before, w.after) {
		return nil
	}
	p := w.before
	if p == nil {
		p = w.after
	}
	at := Place{Service: p.Service, ID: p.ID}
	if w.after == nil {
		at = Place{Service: p.Service, Zone: p.ZoneName, Type: p.PolicyType, Resources: p.Resources, Plain: true}
	}
	_, err := k.writer.edit(ctx, at, func(now *model.Policy) (*model.Policy, error) {
		switch {
		case same(now, w.after):
			return clone(w.before), nil
		case now == nil || w.after == nil:
			return nil, errors.New("it was made or deleted by somebody else")
		case w.before == nil:
			// Somebody uses what was made: what was put there goes, theirs stays.
			blank := clone(w.after)
			blank.PolicyItems, blank.DenyPolicyItems, blank.PolicyLabels = nil, nil, []string{LabelManaged}
			return merge(w.after, now, blank)
		}
		return merge(w.after, now, w.before)
	})
	return err
}
