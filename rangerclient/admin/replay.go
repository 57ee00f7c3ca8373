package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// A replay goes through the versions of a policy once more and brings every change
// to what there was, each taken for what its author changed: the difference to the
// version that the author had read. What the policy would be then, and is not, some
// stale write has erased.
//
// Which version an author had read nobody says. SQE stamps what it writes; whoever
// changes the policy otherwise sends the stamp of the version that was read back
// with it. So a version that bears the stamp of an older one than its predecessor
// was made without knowledge of what came between. A version without any trace of
// SQE, over one that has, was made from one before SQE's first. A version that is,
// word for word, an older one may be a form that was saved twice, or may be meant
// to take everything back: that cannot be known.
type replay struct {
	server Server
	id     int64
	seen   map[int64]*model.Policy
	known  []int64 // versions in the history, ascending
}

// replayed is the outcome of a replay.
type replayed struct {
	want *model.Policy
	// lossy is the last version that erased something; 0: none did.
	lossy int64
	// doubt says why what was erased may have been meant to go, or why it cannot be
	// brought together with what there is; "": neither.
	doubt string
	// lost is what was erased in doubt, and so is not in want.
	lost []string
}

// horizon bounds how many versions a replay reads before the one where it begins.
const horizon = 64

func newReplay(ctx context.Context, s Server, now *model.Policy) (*replay, error) {
	r := &replay{server: s, id: now.ID, seen: map[int64]*model.Policy{now.Version: now}}
	versions, err := s.PolicyVersions(ctx, now.ID)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v <= now.Version {
			r.known = append(r.known, v)
		}
	}
	if !slices.Contains(r.known, now.Version) {
		return nil, fmt.Errorf("the history of policy %d lacks version %d", now.ID, now.Version)
	}
	return r, nil
}

func (r *replay) at(ctx context.Context, version int64) (*model.Policy, error) {
	if p := r.seen[version]; p != nil {
		return p, nil
	}
	p, err := r.server.PolicyAt(ctx, r.id, version)
	if err != nil {
		return nil, fmt.Errorf("version %d of policy %d cannot be read: %w", version, r.id, err)
	}
	p.ID, p.Version = r.id, version
	r.seen[version] = p
	return p, nil
}

// before lists the versions before one, the latest first, as far as they are looked
// at.
func (r *replay) before(version int64) []int64 {
	var out []int64
	for _, v := range slices.Backward(r.known) {
		if v < version && v >= version-horizon {
			out = append(out, v)
		}
	}
	return out
}

func stampOf(p *model.Policy) string {
	s, _ := p.Options[stampOption].(string)
	return s
}

// traces reports whether a policy shows that SQE wrote it, or one that it was made
// from.
func traces(p *model.Policy) bool {
	return stampOf(p) != "" || slices.Contains(p.PolicyLabels, LabelManaged)
}

// parent is the version that one was made from; known says that it must be so.
func (r *replay) parent(ctx context.Context, version int64) (parent int64, known bool, err error) {
	this, err := r.at(ctx, version)
	if err != nil {
		return 0, false, err
	}
	earlier := r.before(version)
	if len(earlier) == 0 {
		return 0, false, nil
	}
	stamp, previous := stampOf(this), earlier[0]
	if from := stamped(this); len(from) > 0 && slices.Max(from) == version-1 {
		return from[0], true, nil // SQE's own: a copy of a stamp names older versions
	}
	var bearers []int64
	for _, v := range earlier {
		p, err := r.at(ctx, v)
		if err != nil {
			return 0, false, err
		}
		if stamp != "" && stampOf(p) == stamp || stamp == "" && !traces(this) && !traces(p) {
			bearers = append(bearers, v)
		}
		if v == previous && len(bearers) == 1 {
			return previous, true, nil
		}
	}
	if from := stamped(this); len(from) > 0 && len(bearers) == 0 && slices.Max(from) < version {
		return from[0], true, nil // SQE's own
	}
	if len(bearers) == 0 {
		return previous, false, nil
	}
	best, least := int64(0), 0
	for _, v := range bearers { // the latest first
		if d := distance(r.seen[v], this); best == 0 || d < least {
			best, least = v, d
		}
	}
	return best, true, nil
}

// run replays the versions after one.
func (r *replay) run(ctx context.Context, since int64) (*replayed, error) {
	want, err := r.at(ctx, since)
	if err != nil {
		return nil, err
	}
	out := &replayed{want: clone(want)}
	for _, v := range r.known {
		if v <= since {
			continue
		}
		this, err := r.at(ctx, v)
		if err != nil {
			return nil, err
		}
		from, known, err := r.parent(ctx, v)
		if err != nil {
			return nil, err
		}
		if from == 0 {
			from = since
		}
		base, err := r.at(ctx, from)
		if err != nil {
			return nil, err
		}
		doubt := ""
		before := r.before(v)
		stale := known && len(before) > 0 && from != before[0] && !slices.Contains(stamped(this), before[0])
		if stale && same(base, this) {
			doubt = fmt.Sprintf("it is again what it was at version %d, which may be meant", from)
		}
		merged, err := merge(base, this, out.want)
		if clash := (*MergeConflict)(nil); errors.As(err, &clash) && lastWins(clash, out.want, this) {
			merged, err = merge(base, this, out.want)
		}
		if clash := (*MergeConflict)(nil); errors.As(err, &clash) {
			doubt = "both changed " + strings.Join(clash.What, ", ")
		} else if err != nil {
			return nil, err
		}
		if doubt != "" {
			out.lossy, out.doubt = v, doubt
			out.lost = differences(out.want, this)
			merged = this
		} else if stale && !same(merged, this) {
			out.lossy = v
		}
		out.want = clone(merged)
	}
	last := r.seen[r.known[len(r.known)-1]]
	if same(out.want, last) && len(out.lost) == 0 {
		return &replayed{want: last}, nil
	}
	if out.lost = set(append(out.lost, differences(out.want, last)...)); len(out.lost) == 0 {
		return &replayed{want: last}, nil // only who wrote
	}
	return out, nil
}

// differences says in words where a policy lacks or adds to what it is to say. It
// has no text of a filter or a mask.
func differences(want, is *model.Policy) []string {
	w, i := facts(want), facts(is)
	var out []string
	for _, k := range keys(w, i) {
		if w[k] == i[k] {
			continue
		}
		word, rest, _ := strings.Cut(k, " ")
		switch word {
		case "label":
			if !strings.HasPrefix(rest, LabelBy) && rest != LabelManaged {
				out = append(out, "labels")
			}
			continue
		case "resource", "settings":
			out = append(out, word)
			continue
		}
		for _, l := range lists {
			if who, ok := strings.CutPrefix(k, l.name+" "); ok {
				rest = who
				if i := strings.IndexAny(rest, "{\x00"); i > 0 {
					rest = rest[:i]
				}
				out = append(out, l.name+" of "+strings.TrimSpace(rest))
				break
			}
		}
	}
	return set(out)
}

// knew reports whether the last version was made by somebody who knew of another one.
func (r *replay) knew(ctx context.Context, version int64) (bool, error) {
	v := r.known[len(r.known)-1]
	for v > version {
		from, known, err := r.parent(ctx, v)
		if err != nil || !known || from >= v {
			return false, err
		}
		v = from
	}
	return v == version, nil
}

// settings are what only ever one writer of a policy can have set; the last one did.
var settings = map[string]func(to, from *model.Policy){
	"name":          func(to, from *model.Policy) { to.Name = from.Name },
	"description":   func(to, from *model.Policy) { to.Description = from.Description },
	"priority":      func(to, from *model.Policy) { to.PolicyPriority = from.PolicyPriority },
	"enabled":       func(to, from *model.Policy) { to.Enabled = from.Enabled },
	"audit":         func(to, from *model.Policy) { to.AuditEnabled = from.AuditEnabled },
	"deny all else": func(to, from *model.Policy) { to.DenyAllElse = from.DenyAllElse },
	"conditions":    func(to, from *model.Policy) { to.Conditions = from.Conditions },
	"validity":      func(to, from *model.Policy) { to.ValiditySchedules = from.ValiditySchedules },
	"options":       func(to, from *model.Policy) { to.Options = clone(from).Options },
}

// lastWins ends a conflict that is about settings alone: what was granted must not be
// lost for a description.
func lastWins(c *MergeConflict, want, last *model.Policy) bool {
	for _, what := range c.What {
		if settings[what] == nil {
			return false
		}
	}
	for _, what := range c.What {
		settings[what](want, last)
	}
	return true
}
