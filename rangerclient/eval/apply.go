package eval

import (
	"fmt"
	"strings"

	"sqe/rangerclient/model"
)

// valid reports whether the policy's schedules hold.
func (p *Policy) valid(q *Request) tri {
	if p.undecided {
		return unknown
	}
	if len(p.schedules) == 0 || q.valid(p.schedules) {
		return yes
	}
	return no
}

// outcome is what one policy says.
type outcome struct {
	allowed  bool // or masked, filtered
	priority int
	policy   *Policy
	via      string
	tag      *Tag  // the tag that brought the policy
	item     *item // of a mask or filter
}

// result is the state of an evaluation.
type result struct {
	outcome
	determined bool
	super      bool
	earlier    string // Request.Earlier
	refuse     string

	// kept is what counts of all policies so far, of tags and resources alike. Each
	// policy that is evaluated, also one that says nothing, makes it the result:
	// after a tag has denied, a policy of higher priority on the resource that does
	// not allow lets the denial stand, and ends the evaluation.
	kept *outcome
}

// merge counts what a policy says; one is nil when it says nothing. Source:
// RangerDefaultPolicyEvaluator.evaluatePolicyItems.
func (r *result) merge(kind int, one *outcome) {
	old := r.kept
	if one != nil {
		switch {
		case old.policy == nil:
			*old = *one
		case one.priority > old.priority:
			*old = *one
		case one.priority == old.priority && old.allowed && (!one.allowed || kind != model.AccessPolicy):
			*old = *one
		}
	}
	if old.policy != nil {
		r.outcome, r.determined = *old, !old.allowed
	}
}

// apply evaluates the policy for the request, whose resource relates to the
// policy's as m says.
func (p *Policy) apply(q *Request, m matched, r *result) {
	if r.determined {
		return
	}
	switch m.typ {
	case NoMatch, Ancestor:
		return
	case Descendant:
		if q.Access != "" && !q.Below {
			return
		}
	}
	holds := p.valid(q)
	if m.undecided {
		holds = holds.and(unknown)
	}
	for _, c := range p.conditions {
		if holds == no {
			return
		}
		holds = holds.and(c.holds(q))
	}
	if holds == no {
		return
	}
	q.doubt = q.doubt || holds == unknown
	if p.empty {
		return // Ranger does not get as far as its items
	}
	switch p.Kind {
	case model.AccessPolicy:
		p.applyAccess(q, m, holds, r)
	case model.MaskPolicy:
		p.applyMask(q, m, holds, r)
	case model.RowFilterPolicy:
		p.applyFilter(q, m, holds, r)
	}
}

func (p *Policy) applyAccess(q *Request, m matched, holds tri, r *result) {
	one := &outcome{priority: p.Priority, policy: p, tag: q.tag}
	deny, via := first(p.deny, q, true)
	if deny != nil && holds == yes {
		if x, _ := first(p.denyExcept, q, false); x != nil {
			deny = nil
		}
	}
	if deny == nil {
		var allow *item
		if allow, via = first(p.allow, q, false); allow != nil && holds == yes && m.narrow && !m.crossed {
			x, _ := first(p.allowExcept, q, true)
			one.allowed = x == nil
		}
		if !one.allowed && !p.denyAllElse {
			one = nil
		} else if !one.allowed {
			via = ""
		}
	}
	if one != nil {
		one.via = via
	}
	r.merge(model.AccessPolicy, one)
}

func (r *result) take(p *Policy, q *Request, i *item, via string) {
	one := &outcome{allowed: true, priority: p.Priority, policy: p, via: via, tag: q.tag, item: i}
	if i == nil {
		one = nil
	}
	r.merge(p.Kind, one)
}

func (r *result) refused(p *Policy, why string) {
	r.refuse = fmt.Sprintf("policy %d %q of service %s: %s", p.ID, p.Name, p.Service, why)
	r.allowed, r.determined, r.policy, r.priority = true, true, p, p.Priority
}

func (p *Policy) applyMask(q *Request, m matched, holds tri, r *result) {
	for _, i := range p.masks {
		exempt := i.mask.DataMaskType == MaskNone && i.broken == ""
		via, t := i.match(q, !exempt)
		if exempt && m.crossed {
			continue // it gives
		}
		switch t = t.and(holds); {
		case t == yes:
			r.take(p, q, i, via)
			return
		case t == unknown && !exempt:
			r.refused(p, "whether its mask applies cannot be decided")
			return
		}
	}
	r.take(p, q, nil, "")
}

func (p *Policy) applyFilter(q *Request, m matched, holds tri, r *result) {
	for _, i := range p.filters {
		exempt := i.filter == nil || strings.TrimSpace(*i.filter) == ""
		via, t := i.match(q, !exempt)
		if exempt && m.crossed {
			continue // it gives
		}
		switch t = t.and(holds); {
		case t == yes && i.filter == nil:
			// Ranger: produces nothing, and later items are not tried.
			r.take(p, q, nil, "")
			return
		case t == yes:
			r.take(p, q, i, via)
			return
		case t == unknown && !exempt:
			r.refused(p, "whether its row filter applies cannot be decided")
			return
		}
	}
	r.take(p, q, nil, "")
}
