package grants

import (
	"slices"
	"strings"

	"sqe/policy"
)

// delegated are the types that identities may pass on for a resource. What is denied to
// one of them it may not pass on either.
func (s *Snapshot) delegated(at Resource, identities []policy.Grantee) []string {
	var out, denied []string
	for _, p := range s.Policies {
		for i := range p.Deny {
			if x := &p.Deny[i]; (p.on(at) || p.covers(at)) && slices.ContainsFunc(identities, x.names) {
				denied = union(denied, x.Types)
			}
		}
		if !p.on(at) {
			continue
		}
		for i := range p.Allow {
			x := &p.Allow[i]
			if x.Delegate && !x.Fixed && slices.ContainsFunc(identities, x.names) {
				out = union(out, x.Types)
			}
		}
	}
	return minus(out, denied)
}

// PassesOn reports whether identities may pass a privilege on an object on.
func (s *Snapshot) PassesOn(privilege string, o Object, identities []policy.Grantee) bool {
	_, steps, err := Plan(s.Root, privilege, o)
	if err != nil {
		return false
	}
	named := steps[len(steps)-1]
	return len(named.Types) > 0 && subset(named.Types, s.delegated(named.Resource, identities))
}

// on reports whether a policy without restrictions is on a resource, by name or as
// one of all of them.
func (p *Policy) on(at Resource) bool {
	if slices.ContainsFunc(p.Special, func(s string) bool { return s != SeveralResources }) {
		return false
	}
	want := at.Elements()
	if len(p.Elements) != len(want) {
		return false
	}
	for e, v := range want {
		if !slices.ContainsFunc(p.Elements[e], func(x string) bool {
			if x == v || x == Any && (e != "table" || slices.Contains(p.Elements["namespace"], Any)) {
				return true
			}
			// All tables of a schema are those directly in it.
			within, all := strings.CutSuffix(x, Any)
			name, in := strings.CutPrefix(v, within)
			return all && e == "table" && (within == "" || strings.HasSuffix(within, "/")) && in && !strings.Contains(name, "/")
		}) {
			return false
		}
	}
	return true
}

// SeveralResources is the Special of a policy whose elements have more than one
// value each, and that is plain otherwise.
const SeveralResources = "several resources"
