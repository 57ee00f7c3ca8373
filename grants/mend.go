package grants

import (
	"slices"
	"strings"

	"sqe/policy"
)

// Mend gives the grantees of a statement what they lack on the way to what they were
// granted below what the statement named. It is for after a statement: of two that
// were done at the same moment one may have taken back what the other one relied on.
func (s *Statement) Mend(now *Snapshot) *Outcome {
	r := &run{Statement: &Statement{Verb: Grant, By: s.By, Administrator: true}, before: now, now: now}
	places := s.places(now.Root)
	if s.Everything {
		// What another statement gave meanwhile.
		for _, g := range s.Grantees {
			for _, at := range now.given(g) {
				if o := at.Object(); o.check() == nil {
					for _, above := range append(o.above(), o) {
						if at := above.resource(now.Root); at.Level() < TableLevel && !slices.Contains(places, at) {
							places = append(places, at)
						}
					}
				}
			}
		}
	}
	for _, at := range places {
		for _, g := range s.Grantees {
			missing := now.needs(at, g, false)
			if p := r.now.At(at); p != nil {
				missing = minus(missing, held(p.Allow, g, false))
			}
			if len(missing) == 0 {
				continue
			}
			r.edit(at, func(p *Policy) {
				p.Allow = give(p.Allow, g, missing, false)
				for _, t := range missing {
					p.addLabel(label(traversalLabel, g, t))
				}
			})
		}
	}
	return r.outcome()
}

// Resources are those of the statement, with the way to each.
func (s *Statement) Resources(root string) []Resource {
	out := s.places(root)
	for _, t := range s.Targets {
		if at := t.Object.resource(root); t.Object.check() == nil && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// places are the resources of catalogs and namespaces that the statement may change.
func (s *Statement) places(root string) []Resource {
	var out []Resource
	for _, t := range s.Targets {
		if t.Object.check() != nil {
			continue
		}
		for _, o := range append(t.Object.above(), t.Object) {
			if at := o.resource(root); at.Level() < TableLevel && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// Clean takes back rights that lead to nothing: those that a statement of SQE or of
// another system with the same profile left on catalogs and namespaces for somebody
// who was granted nothing there and nothing inside.
func Clean(now *Snapshot, by string) *Outcome {
	r := &run{Statement: &Statement{Verb: Revoke, By: by, Administrator: true}, before: now, now: now}
	all := slices.Clone(now.Policies)
	slices.SortStableFunc(all, func(a, b *Policy) int { return cleanDepth(b) - cleanDepth(a) })
	for _, p := range all {
		at, plain := p.resource()
		if !plain || at.Level() == TableLevel || !ours(p.Name) {
			continue
		}
		var who []policy.Grantee
		for i := range p.Allow {
			who = append(who, p.Allow[i].grantees()...)
		}
		for _, g := range who {
			p := r.now.At(at)
			if p == nil {
				break
			}
			have := held(p.Allow, g, false)
			if len(have) == 0 || len(p.grants(g)) > 0 || !subset(have, basics[at.Level()]) || len(held(p.Allow, g, true)) > 0 {
				continue
			}
			// The most that a grant may have put there is not more than what is taken.
			surplus := minus(have, r.now.needed(at, g))
			if len(surplus) == 0 {
				continue
			}
			r.edit(at, func(p *Policy) {
				p.Allow = take(p.Allow, g, surplus, false)
				for _, t := range surplus {
					p.dropLabel(label(traversalLabel, g, t))
				}
			})
			r.notice("%s %s had %s on %s for nothing", g.Kind, g.Name, strings.Join(surplus, ", "), at)
		}
	}
	return r.outcome()
}

func cleanDepth(p *Policy) int {
	if at, ok := p.resource(); ok {
		return depth(at)
	}
	return 0
}
