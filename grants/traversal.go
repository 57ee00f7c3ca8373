package grants

import (
	"slices"
	"strings"

	"sqe/policy"
)

// basics are the types that a grant may have put on the levels above it.
var basics = map[Level][]string{
	CatalogLevel:   {"namespace-list"},
	NamespaceLevel: {"namespace-list", "namespace-properties-read", "view-list"},
}

// planned are the types that a privilege takes on a resource when it is given on
// the object of another one, on the way to it or itself.
func planned(root, privilege string, o Object, at Resource) []string {
	o.View = privilege == viewing || privilege == "DROP VIEW"
	_, steps, err := Plan(root, privilege, o)
	if err != nil {
		return nil // a label of another system, for a name that cannot be granted on
	}
	for _, s := range steps {
		if s.Resource == at {
			return s.Types
		}
	}
	return nil
}

// explained are the types that the grants of a grantee on the policy itself need.
func (s *Snapshot) explained(p *Policy, g policy.Grantee, but string) []string {
	if p == nil {
		return nil
	}
	r, _ := p.resource()
	var out []string
	for _, privilege := range p.grants(g) {
		if privilege != but {
			out = union(out, planned(r.Root, privilege, r.Object(), r))
		}
	}
	return out
}

// needed are the types that a grantee needs on a resource to reach what it was
// given below it, by whomever.
func (s *Snapshot) needed(r Resource, g policy.Grantee) []string { return s.needs(r, g, true) }

// needs is needed, or with all false what grants need of which labels tell.
func (s *Snapshot) needs(r Resource, g policy.Grantee, all bool) []string {
	var out []string
	for _, p := range s.Policies {
		at, plain := p.resource()
		if !plain {
			if all && p.below(r) && slices.ContainsFunc(p.Allow, func(i Item) bool { return i.names(g) }) {
				out = union(out, basics[r.Level()])
			}
			continue
		}
		if at == r || !above(r, at) {
			continue
		}
		for _, privilege := range p.grants(g) {
			out = union(out, planned(r.Root, privilege, at.Object(), r))
		}
		if !all {
			continue
		}
		// What no grant explains was given by somebody else, who knows what for.
		rest := minus(heldAlso(p.Allow, g), s.explained(p, g, ""))
		rest = minus(rest, p.labelled(traversalLabel, g))
		if len(rest) > 0 {
			types := basics[CatalogLevel]
			if r.Level() == NamespaceLevel {
				types = traversal
				if slices.ContainsFunc(rest, func(t string) bool { return strings.HasPrefix(t, "view-") }) {
					types = basics[NamespaceLevel]
				}
			}
			out = union(out, types)
		}
	}
	return out
}

// heldAlso is held with the items that have conditions.
func heldAlso(items []Item, g policy.Grantee) []string {
	var out []string
	for i := range items {
		if items[i].names(g) {
			out = union(out, items[i].Types)
		}
	}
	return out
}

// above reports whether a resource holds another one.
func above(r, at Resource) bool {
	if r.Catalog != at.Catalog {
		return false
	}
	for _, o := range at.Object().above() {
		if x := o.resource(r.Root); x == r {
			return true
		}
	}
	return false
}

// below reports whether a special policy may be on something below a resource.
func (p *Policy) below(r Resource) bool {
	matches := func(element, value string) bool {
		return slices.ContainsFunc(p.Elements[element], func(v string) bool { return v == value || strings.ContainsAny(v, "*?{") })
	}
	if !matches("catalog", r.Catalog) {
		return false
	}
	if r.Level() == CatalogLevel {
		return len(p.Elements["namespace"]) > 0
	}
	first, _, _ := strings.Cut(r.Namespace, "/")
	return matches("namespace", first) && len(p.Elements["table"]) > 0 ||
		slices.ContainsFunc(p.Elements["namespace"], func(v string) bool { return strings.HasPrefix(v, r.Namespace+"/") })
}

// settle makes the traversal labels of a grantee on a policy what they must be:
// types that are there only on the way to something stay as long as that needs
// them. It returns the types that nothing needs any more.
func (s *Snapshot) settle(p *Policy, g policy.Grantee) (surplus []string) {
	r, _ := p.resource()
	needed := s.needed(r, g)
	own := s.explained(p, g, "")
	for _, t := range p.labelled(traversalLabel, g) {
		if slices.Contains(own, t) {
			p.dropLabel(label(traversalLabel, g, t)) // a grant on the resource itself has it
		} else if !slices.Contains(needed, t) {
			p.dropLabel(label(traversalLabel, g, t))
			surplus = append(surplus, t)
		}
	}
	return surplus
}
