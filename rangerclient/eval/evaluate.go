package eval

import (
	"cmp"
	"slices"

	"sqe/rangerclient/model"
)

type tagCandidate struct {
	pol *Policy
	tag *Tag
	m   matched
}

// tagCandidates lists the tag policies for the tags of the request, in order.
func (e *Engine) tagCandidates(kind int, q *Request, zone string, zoneTagged bool) []tagCandidate {
	t := e.tagPolicies
	if t == nil || len(q.Tags) == 0 {
		return nil
	}
	var out []tagCandidate
	for i := range q.Tags {
		tag := &q.Tags[i]
		holds := decided(len(tag.validity) == 0 || q.valid(tag.validity))
		if tag.undecided {
			holds = unknown
		}
		if holds == no || tag.Match == NoMatch {
			continue
		}
		// A tag above the resource counts as one on it.
		m := matched{typ: tag.Match, narrow: true, undecided: holds == unknown}
		if m.typ == Ancestor {
			m.typ = Self
		}
		consider := func(p *Policy) {
			if zoneTagged && p.Zone != zone || !zoneTagged && p.Zone != "" {
				return
			}
			out = append(out, tagCandidate{p, tag, m})
		}
		for _, p := range t.byTag[kind][tag.Type] {
			consider(p)
		}
		if len(t.others[kind]) > 0 {
			only := &Request{elements: []part{{name: "tag", names: []name{{text: tag.Type, folded: fold(tag.Type)}}}}, Subject: q.Subject, ClientIP: q.ClientIP}
			for _, p := range t.others[kind] {
				if best(p.resources, only, t.def).typ == Self {
					consider(p)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b tagCandidate) int {
		switch kind {
		case model.AccessPolicy:
			return cmp.Compare(a.pol.rank, b.pol.rank)
		case model.MaskPolicy:
			return cmp.Or(cmp.Compare(a.tag.Match, b.tag.Match), cmp.Compare(a.pol.nameRank, b.pol.nameRank))
		}
		return cmp.Compare(a.pol.nameRank, b.pol.nameRank)
	})
	return out
}

// Phases selects the policies that are asked. Ranger's engine asks those of tags first.
type Phases uint8

const (
	TagPolicies Phases = 1 << iota
	ResourcePolicies
	AllPolicies = TagPolicies | ResourcePolicies
)

// evaluate is Ranger's main algorithm: tag policies, then resource policies.
func (e *Engine) evaluate(kind int, q *Request, which Phases) result {
	ret := result{earlier: q.Earlier}
	if e.super(q.Subject) {
		ret.allowed, ret.determined, ret.super = true, true, true
		return ret
	}
	ret.kept = &outcome{}
	zone, zoneTagged := "", false
	if len(e.zones) > 0 {
		zone, zoneTagged = e.zoneOf(q)
	}
	if which&TagPolicies != 0 {
		for _, c := range e.tagCandidates(kind, q, zone, zoneTagged) {
			t := ret
			q.tag, q.current = c.tag, c.pol
			c.pol.apply(q, c.m, &t)
			if t.allowed && !c.pol.hasDeny {
				t.determined = true
			}
			if !ret.determined && (t.determined || !ret.allowed && t.allowed) {
				ret = t
			}
			if ret.determined {
				break
			}
		}
		q.tag, q.current = nil, nil
	}
	if ret.allowed {
		ret.determined = true
	}
	allowedByTags := ret.determined && ret.allowed
	deniedByTags := ret.determined && !ret.allowed
	if which&ResourcePolicies == 0 || ret.refuse != "" {
		return ret
	}
	ret.determined = false
	repo := e.repos[zone]
	if repo == nil {
		repo = e.repos[""]
	}
	var buf [16]*indexed
	cands := repo[kind].find(q, q.Access == "" || q.Below || allowedByTags || deniedByTags, buf[:0])
	if len(cands) > 1 {
		slices.SortFunc(cands, func(a, b *indexed) int { return cmp.Compare(a.pol.rank, b.pol.rank) })
	}
	var last *Policy
	for _, c := range cands {
		p := c.pol
		if p == last {
			continue // the same policy by another of its resource maps
		}
		last = p
		q.current = p
		m := best(p.resources, q, e.kinds[kind])
		if m.typ == NoMatch && !((allowedByTags || deniedByTags) && p.likely(q, e.kinds[kind])) || p.valid(q) == no {
			continue
		}
		switch {
		case deniedByTags:
			ret.determined = ret.priority >= p.Priority
		case ret.allowed && kind == model.AccessPolicy:
			ret.determined = ret.priority > p.Priority
		case ret.allowed:
			ret.determined = ret.priority >= p.Priority
		}
		p.apply(q, m, &ret)
		// Ranger takes it that no denial can follow a policy that carries none. After
		// tags have allowed that is wrong, and so it is when the policy is only near
		// the resource: denials of lower priority are then not looked at. Likewise an
		// allow over a tag's denial, by a policy that carries denials, stands only when
		// another policy is near the resource.
		if ret.allowed && !p.hasDeny {
			ret.determined = true
		}
		if ret.determined {
			break
		}
	}
	q.current = nil
	switch {
	case ret.determined:
	case deniedByTags:
		ret.allowed = false
	case allowedByTags:
		ret.allowed = true
	}
	return ret
}
