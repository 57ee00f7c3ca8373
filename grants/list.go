package grants

import (
	"cmp"
	"slices"
	"strings"

	"sqe/policy"
)

// Row is a grant or a denial, read from a policy.
type Row struct {
	Privilege string // of the profile; or access types, where no privilege is meant
	Object    string
	Grantee   policy.Grantee
	Deny      bool
	Option    bool // may be passed on
	// By says who granted, At when the policy was made (epoch milliseconds; 0: unknown).
	By     []string
	At     int64
	Policy string
	// Way: the right only leads to what was granted inside.
	Way bool
	// Only says when it holds: "validity", "conditions", ...; nil: always.
	Only []string
}

// List reads the policies as grants: those that labels tell, then those that the
// access types amount to, then access types of which no privilege is made.
func (s *Snapshot) List() []Row {
	var out []Row
	for _, p := range s.Policies {
		out = append(out, s.rows(p, p.Allow, false)...)
		out = append(out, s.rows(p, p.Deny, true)...)
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), cmp.Compare(a.Grantee.Kind, b.Grantee.Kind), strings.Compare(a.Grantee.Name, b.Grantee.Name))
	})
	return out
}

func (s *Snapshot) rows(p *Policy, items []Item, deny bool) []Row {
	var all []policy.Grantee
	for i := range items {
		for _, g := range items[i].grantees() {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	var out []Row
	for _, g := range all {
		out = append(out, s.rowsOf(p, items, g, deny)...)
	}
	return out
}

func (s *Snapshot) rowsOf(p *Policy, items []Item, g policy.Grantee, deny bool) []Row {
	r, plain := p.resource()
	if !plain {
		r = Resource{Catalog: first(p.Elements["catalog"]), Namespace: first(p.Elements["namespace"]), Table: first(p.Elements["table"])}
	}
	by := p.labelled(grantorLabel, g)
	if deny {
		by = p.labelled(denierLabel, g)
	}
	if len(by) == 0 && p.CreatedBy != "" {
		by = []string{p.CreatedBy}
	}
	base := Row{Object: p.place(), Grantee: g, Deny: deny, By: by, At: p.CreatedAt, Policy: p.Name, Only: p.Special}
	if slices.Equal(p.Special, []string{SeveralResources}) {
		base.Only = nil
	}
	types, option := held(items, g, false), held(items, g, true)
	var out []Row
	add := func(privilege string, what []string) {
		row := base
		row.Privilege, row.Option = privilege, len(what) > 0 && subset(what, option)
		out = append(out, row)
		types = minus(types, what)
	}
	known := p.grants(g)
	if deny {
		known = p.labelled(denyLabel, g)
	}
	given := types
	var told []string
	for _, privilege := range known {
		if what := planned(r.Root, privilege, r.Object(), r); len(what) > 0 && len(intersection(what, given)) > 0 {
			add(privilege, what)
			told = union(told, what)
		}
	}
	if way := intersection(minus(p.labelled(traversalLabel, g), told), types); !deny && len(way) > 0 {
		row := base
		row.Privilege, row.Way, row.By = strings.Join(way, ", "), true, nil
		out = append(out, row)
		types = minus(types, way)
	}
	for _, privilege := range bySize(r) {
		what := planned(r.Root, privilege, r.Object(), r)
		if len(what) > 0 && subset(what, given) && len(intersection(what, types)) > 0 {
			add(privilege, what)
		}
	}
	if len(types) > 0 {
		add(strings.Join(types, ", "), types)
	}
	var conditional []string
	for i := range items {
		if x := &items[i]; x.Fixed && x.names(g) {
			conditional = union(conditional, x.Types)
		}
	}
	if len(conditional) > 0 {
		row := base
		row.Privilege, row.Only = strings.Join(conditional, ", "), union(base.Only, []string{"conditions"})
		out = append(out, row)
	}
	return out
}

// bySize are the privileges that are given on a resource of the level, those that
// take most first.
func bySize(r Resource) []string {
	size := func(p string) int { return len(planned(r.Root, p, r.Object(), r)) }
	var out []string
	for _, p := range Privileges() {
		if _, deepest := Binds(p); deepest == r.Level() || p == using && r.Level() == CatalogLevel {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return size(b) - size(a) })
	return out
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// place is what the policy is on, as a dotted name.
func (p *Policy) place() string {
	if r, ok := p.resource(); ok {
		return r.Object().String()
	}
	var parts []string
	for _, e := range []string{"catalog", "namespace", "table"} {
		if v := p.Elements[e]; len(v) > 0 {
			parts = append(parts, strings.Join(v, "|"))
		}
	}
	return strings.Join(parts, ".")
}

// Of is the part of the snapshot that rows were read from.
func (s *Snapshot) Of(rows []Row) *Snapshot {
	names := map[string]bool{}
	for _, r := range rows {
		names[r.Policy] = true
	}
	return &Snapshot{Root: s.Root, Policies: slices.DeleteFunc(slices.Clone(s.Policies), func(p *Policy) bool { return !names[p.Name] })}
}

// On is the part of the snapshot that says something about an object: policies on
// it, on all things like it, and on what is inside.
func (s *Snapshot) On(o Object) *Snapshot {
	at := o.resource(s.Root)
	out := &Snapshot{Root: s.Root}
	for _, p := range s.Policies {
		if p.on(at) || p.covers(at) {
			out.Policies = append(out.Policies, p)
			continue
		}
		r, plain := p.resource()
		r.Root = at.Root
		if plain && above(at, r) || !plain && o.Level() < TableLevel && p.below(at) {
			out.Policies = append(out.Policies, p)
		}
	}
	return out
}

// covers reports whether a policy, of whatever restrictions, is on a resource by a
// value or a pattern. One on everything inside is on the resource itself, too.
func (p *Policy) covers(at Resource) bool {
	want := at.Elements()
	for e, v := range want {
		if e != "root" && !slices.ContainsFunc(p.Elements[e], func(x string) bool { return match(x, v) }) {
			return false
		}
	}
	for e, values := range p.Elements {
		if _, ok := want[e]; !ok && !slices.Contains(values, Any) {
			return false
		}
	}
	return true
}

// match matches * and ? of policies.
func match(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
