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

// result is the state of an evaluation.
type result struct {
	allowed, determined bool
	priority            int
	policy              *Policy
	via                 string
	tag                 *Tag
	super               bool
	earlier             string // Request.Earlier

	item   *item   // mask or filter item that matched, nil when none
	source *Policy // the policy of item
	tagged *Tag
	refuse string
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
	switch p.Kind {
	case model.AccessPolicy:
		p.applyAccess(q, m, holds, r)
	case model.MaskPolicy:
		p.applyMask(q, holds, r)
	case model.RowFilterPolicy:
		p.applyFilter(q, holds, r)
	}
}

func (p *Policy) applyAccess(q *Request, m matched, holds tri, r *result) {
	deny := func(via string) {
		r.allowed, r.determined = false, true
		r.priority, r.policy, r.via = p.Priority, p, via
	}
	if i, via := first(p.deny, q, true); i != nil {
		if x, _ := first(p.denyExcept, q, false); x == nil || holds == unknown {
			deny(via)
			return
		}
	}
	if i, via := first(p.allow, q, false); i != nil && holds == yes && m.narrow {
		if x, _ := first(p.allowExcept, q, true); x == nil {
			if !r.allowed {
				r.allowed = true
				r.priority, r.policy, r.via = p.Priority, p, via
			}
			return
		}
	} else if i != nil && !p.denyAllElse {
		return
	}
	if p.denyAllElse {
		deny("")
	}
}

func (r *result) take(p *Policy, q *Request, i *item, via string) {
	r.item, r.source, r.tagged = i, p, q.tag
	if !r.allowed {
		r.allowed = true
		r.priority, r.policy, r.via = p.Priority, p, via
	}
}

func (r *result) refused(p *Policy, why string) {
	r.refuse = fmt.Sprintf("policy %d %q of service %s: %s", p.ID, p.Name, p.Service, why)
	r.allowed, r.determined, r.policy = true, true, p
}

func (p *Policy) applyMask(q *Request, holds tri, r *result) {
	for _, i := range p.masks {
		exempt := i.mask.DataMaskType == MaskNone && i.broken == ""
		via, t := i.match(q, !exempt)
		switch t = t.and(holds); {
		case t == yes:
			r.take(p, q, i, via)
			return
		case t == unknown && !exempt:
			r.refused(p, "whether its mask applies cannot be decided")
			return
		}
	}
}

func (p *Policy) applyFilter(q *Request, holds tri, r *result) {
	for _, i := range p.filters {
		exempt := i.filter == nil || strings.TrimSpace(*i.filter) == ""
		via, t := i.match(q, !exempt)
		switch t = t.and(holds); {
		case t == yes && i.filter == nil:
			return // Ranger: produces nothing, and later items are not tried
		case t == yes:
			r.take(p, q, i, via)
			return
		case t == unknown && !exempt:
			r.refused(p, "whether its row filter applies cannot be decided")
			return
		}
	}
}
