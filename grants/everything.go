package grants

import (
	"slices"
	"strings"

	"sqe/policy"
)

// everything takes all that a grantee was given by name, the deepest first, so that
// nothing is needed any more on the way. Whoever may not take something back is told
// nothing of it.
func (r *run) everything(g policy.Grantee) error {
	if err := checkGrantee(g); err != nil {
		return err
	}
	found := false
	for _, at := range r.before.given(g) {
		if r.Elsewhere[at.Catalog] {
			continue
		}
		p := r.now.At(at)
		have := held(p.allow(), g, false)
		if len(have) == 0 && len(p.labelled(grantLabel, g)) == 0 || !r.may(at, have) || len(have) == 0 && !r.Administrator {
			continue
		}
		found = true
		if err := r.revokeAll(at.Object(), g); err != nil {
			return err
		}
	}
	if !found {
		r.notice("there is nothing of the %s %s to take back", g.Kind, g.Name)
	}
	if r.Administrator {
		r.left(g)
	}
	return nil
}

// left tells what a grantee still has by name, and what is denied to it.
func (r *run) left(g policy.Grantee) {
	var special, deny []string
	for _, p := range r.now.Policies {
		if r.Elsewhere[first(p.Elements["catalog"])] {
			continue
		}
		names := func(i Item) bool { return i.names(g) }
		if _, plain := p.resource(); slices.ContainsFunc(p.Allow, func(i Item) bool { return names(i) && (!plain || i.Fixed) }) {
			special = append(special, p.Name)
		}
		if slices.ContainsFunc(p.Deny, names) {
			deny = append(deny, p.Name)
		}
	}
	if len(special) > 0 {
		r.notice("the %s %s is also named in policies with patterns, conditions or several objects, which are left as they are: %s; change them in the policy server", g.Kind, g.Name, strings.Join(special, ", "))
	}
	if len(deny) > 0 {
		r.notice("what is denied to the %s %s still is, by %s; REVOKE it by name to lift that", g.Kind, g.Name, strings.Join(deny, ", "))
	}
}

func (p *Policy) allow() []Item {
	if p == nil {
		return nil
	}
	return p.Allow
}

// given are the resources of plain policies that name a grantee, the deepest first.
func (s *Snapshot) given(g policy.Grantee) []Resource {
	var out []Resource
	for _, p := range s.Policies {
		at, plain := p.resource()
		if plain && s.At(at) == p && (len(held(p.Allow, g, false)) > 0 || len(p.labelled(grantLabel, g)) > 0) {
			out = append(out, at)
		}
	}
	slices.SortStableFunc(out, func(a, b Resource) int { return depth(b) - depth(a) })
	return out
}
