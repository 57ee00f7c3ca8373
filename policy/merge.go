package policy

import (
	"slices"
	"strings"
	"time"
)

// Merge combines what several sources say about one table and one principal into
// what holds. Every source restricts; none can lift what another one asks for.
//
//   - A source that refuses, did not decide (Complete false) or is missing (nil)
//     refuses the table; so do no sources at all.
//   - Filters are all applied.
//   - On one field Forbid beats Nullify beats Fixed beats Mask. Equal rules of two
//     sources are one. Two different ones of the same strength become Nullify:
//     applying one mask to the result of another obeys neither policy and can open
//     what each closes (the first four characters, then hashed, are few enough to
//     try them all).
//   - MASK_NONE is the word of a source that it masks nothing; it yields to every
//     other rule.
//
// A rule on a field inside another field that has a rule too needs the schema to
// be noticed; package rewrite does so when it prepares a table.
func Merge(restrictions ...*Restrictions) *Restrictions {
	out := &Restrictions{Complete: len(restrictions) > 0, Columns: map[int]ColumnRule{}}
	var refused []string
	if len(restrictions) == 0 {
		refused = append(refused, "no policy source decided")
	}
	for _, r := range restrictions {
		if r == nil {
			out.Complete = false
			refused = append(refused, "a policy source gave no answer")
			continue
		}
		switch {
		case !r.Complete && r.Refuse == "":
			refused = append(refused, "a policy source did not decide")
		case r.Refuse != "":
			refused = append(refused, r.Refuse)
		}
		out.Complete = out.Complete && r.Complete
		out.Filters = append(out.Filters, r.Filters...)
		out.Exempt = append(out.Exempt, r.Exempt...)
		out.Notes = append(out.Notes, r.Notes...)
		out.ByAddress = out.ByAddress || r.ByAddress
		out.Uncacheable = out.Uncacheable || r.Uncacheable
		out.Expires = earlier(out.Expires, r.Expires)
		// In the order of ids, so that origins and notes do not depend on the map.
		for _, id := range sortedIDs(r.Columns) {
			rule := r.Columns[id]
			if rule.strength() == 0 {
				refused = append(refused, "a column rule has no kind")
				continue
			}
			out.add(id, rule, r.Also[id])
		}
	}
	out.Refuse = strings.Join(refused, "; ")
	return out
}

// add merges one rule into out.
func (r *Restrictions) add(id int, rule ColumnRule, also []Origin) {
	old, ok := r.Columns[id]
	if !ok {
		r.Columns[id] = rule
		r.also(id, also...)
		return
	}
	switch {
	case old.Kind == rule.Kind && old.Action == rule.Action && old.SQL == rule.SQL:
		old.Fail = old.Fail || rule.Fail
		r.Columns[id] = old
		r.also(id, rule.Origin)
		r.also(id, also...)
	case old.strength() > rule.strength():
		r.overruled(id, rule)
	case old.strength() < rule.strength():
		r.overruled(id, old)
		r.Columns[id] = rule
		delete(r.Also, id)
		r.also(id, also...)
	case rule.Kind == Forbid || rule.strength() == strengthNull:
		// Two ways to say the same; the first reason is as good as the second. Two
		// spellings of NULL become the one that applies to required fields as well.
		if rule.Kind != Forbid {
			old.Kind, old.Action = Nullify, ""
			r.Columns[id] = old
		}
		r.also(id, rule.Origin)
		r.also(id, also...)
	case rule.strength() == strengthNone:
		r.also(id, rule.Origin)
	default:
		r.Columns[id] = ColumnRule{Kind: Nullify, Why: "two policy sources mask it in different ways", Origin: old.Origin}
		r.also(id, rule.Origin)
		r.also(id, also...)
	}
}

func (r *Restrictions) also(id int, origins ...Origin) {
	if len(origins) == 0 {
		return
	}
	if r.Also == nil {
		r.Also = map[int][]Origin{}
	}
	for _, o := range origins {
		if r.Columns[id].Origin != o && !slices.Contains(r.Also[id], o) {
			r.Also[id] = append(r.Also[id], o)
		}
	}
}

// overruled keeps the origin of a "no mask" that another source did not share:
// the policy exempted the principal as far as its own source goes.
func (r *Restrictions) overruled(id int, rule ColumnRule) {
	if rule.strength() == strengthNone {
		r.Exempt = append(r.Exempt, Exemption{FieldID: id, Origin: rule.Origin})
	}
}

// The strengths of rules. Some masks are stronger than their kind says, because
// what they leave is a constant.
const (
	strengthNone = iota + 1
	strengthMask
	strengthFixed
	strengthNull
	strengthForbid
)

// strength orders rules; 0 is an invalid one.
func (r ColumnRule) strength() int {
	switch r.Kind {
	case Forbid:
		return strengthForbid
	case Nullify:
		return strengthNull
	case Fixed:
		return strengthFixed
	case Mask:
		switch r.Action {
		case "MASK_NONE":
			return strengthNone
		case "MASK_NULL", "iceberg:replace-with-null":
			return strengthNull
		case "iceberg:mask-to-fixed-value":
			return strengthFixed
		case "":
			return 0
		}
		return strengthMask
	}
	return 0
}

// Masks reports whether the rule changes or withholds anything: all do but
// MASK_NONE.
func (r ColumnRule) Masks() bool { return r.strength() != strengthNone }

// MergeDecisions combines the answers of several sources of the object gate: all
// that decide must allow, and at least one must decide. The object may be known
// of only when every source that decides lets it be seen.
func MergeDecisions(decisions ...Decision) Decision {
	out := Decision{Reason: NotDecided}
	decided, allowed, visible, byAddress := 0, 0, 0, false
	var granted, denied []Origin
	for _, d := range decisions {
		if d.Reason == NotDecided {
			// A source without an object gate; whatever else it says is no answer.
			continue
		}
		decided++
		byAddress = byAddress || d.ByAddress
		if d.Visible || d.Allow {
			visible++
		}
		if d.Allow {
			allowed++
			granted = append(granted, d.By...)
			continue
		}
		denied = append(denied, d.By...)
		if rank(d.Reason) > rank(out.Reason) || out.Reason == NotDecided {
			out.Reason = d.Reason
		}
	}
	if decided == 0 {
		return out
	}
	out.Visible, out.ByAddress = visible == decided, byAddress
	if allowed == decided {
		return Decision{Allow: true, Visible: true, Reason: Granted, By: granted, ByAddress: byAddress}
	}
	out.By = denied
	return out
}

// rank orders the reasons of denials by how much they explain.
func rank(r Reason) int {
	switch r {
	case ExplicitDeny:
		return 3
	case SourceError:
		return 2
	case NoGrant:
		return 1
	}
	return 0
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func sortedIDs[T any](m map[int]T) []int {
	ids := make([]int, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
