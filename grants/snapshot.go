package grants

import (
	"slices"
	"strings"

	"sqe/policy"
)

// Policy is an access policy as far as grants are concerned.
type Policy struct {
	ID, Version int64
	Name        string
	// Elements is what it is on, by element, each with its values. Two policies on
	// the same resource differ in what Special says.
	Elements map[string][]string
	// Special says what makes it more than a plain policy on one resource
	// ("conditions", "validity", "override", "disabled", "several resources", ...). A
	// special policy is never changed.
	Special []string
	Labels  []string
	Allow   []Item
	Deny    []Item
	// Exceptions: it has exceptions from its items, which stay as they are.
	Exceptions bool
	CreatedBy  string
	CreatedAt  int64 // epoch milliseconds; 0: unknown
}

// Item gives access types to principals.
type Item struct {
	Users, Groups, Roles []string
	Types                []string
	Delegate             bool // its principals may give the types to others
	// Fixed items hold what the package has no word for, such as conditions; they
	// are not changed. Index is the place of such an item in its list.
	Fixed bool
	Index int
}

// Snapshot is all access policies of a service.
type Snapshot struct {
	// Root is the first element of the resources that are written.
	Root     string
	Policies []*Policy
	// Nested: all tables of a schema are also those of the schemas inside it.
	Nested bool
}

// resource is what a plain policy is on.
func (p *Policy) resource() (Resource, bool) {
	if len(p.Special) > 0 {
		return Resource{}, false
	}
	r := Resource{}
	for element, to := range map[string]*string{"root": &r.Root, "catalog": &r.Catalog, "namespace": &r.Namespace, "table": &r.Table} {
		if v := p.Elements[element]; len(v) > 0 {
			*to = v[0]
		}
	}
	return r, r.Catalog != ""
}

// At finds the plain policy on exactly a resource; nil: there is none.
func (s *Snapshot) At(r Resource) *Policy {
	for _, p := range s.Policies {
		if have, ok := p.resource(); ok && have == r {
			return p
		}
	}
	return nil
}

// With is the snapshot with another policy, or none (nil), on a resource.
func (s *Snapshot) With(r Resource, p *Policy) *Snapshot {
	out := &Snapshot{Root: s.Root, Nested: s.Nested}
	for _, x := range s.Policies {
		if have, ok := x.resource(); !ok || have != r {
			out.Policies = append(out.Policies, x)
		}
	}
	if p != nil {
		out.Policies = append(out.Policies, p)
	}
	return out
}

// clone is a copy that may be changed.
func (p *Policy) clone() *Policy {
	out := *p
	out.Labels = slices.Clone(p.Labels)
	out.Allow, out.Deny = cloneItems(p.Allow), cloneItems(p.Deny)
	return &out
}

func cloneItems(list []Item) []Item {
	out := slices.Clone(list)
	for i := range out {
		x := &out[i]
		x.Users, x.Groups, x.Roles, x.Types = slices.Clone(x.Users), slices.Clone(x.Groups), slices.Clone(x.Roles), slices.Clone(x.Types)
	}
	return out
}

// of is the list of the item in which a grantee is named.
func (i *Item) of(k policy.GranteeKind) *[]string {
	switch k {
	case policy.UserGrantee:
		return &i.Users
	case policy.GroupGrantee:
		return &i.Groups
	}
	return &i.Roles
}

func (i *Item) names(g policy.Grantee) bool { return slices.Contains(*i.of(g.Kind), g.Name) }

func (i *Item) empty() bool { return len(i.Users)+len(i.Groups)+len(i.Roles) == 0 }

// grantees are all that an item names.
func (i *Item) grantees() []policy.Grantee {
	var out []policy.Grantee
	for _, k := range []policy.GranteeKind{policy.UserGrantee, policy.GroupGrantee, policy.RoleGrantee} {
		for _, n := range *i.of(k) {
			out = append(out, policy.Grantee{Kind: k, Name: n})
		}
	}
	return out
}

// held are the types that items give to a grantee by its own name, without those
// of items that have conditions.
func held(items []Item, g policy.Grantee, delegate bool) []string {
	var out []string
	for i := range items {
		if x := &items[i]; !x.Fixed && x.names(g) && (x.Delegate || !delegate) {
			out = union(out, x.Types)
		}
	}
	return out
}

// give adds types for a grantee to a list of items. What it has with the right to
// pass it on it keeps so.
func give(items []Item, g policy.Grantee, types []string, delegate bool) []Item {
	types = minus(types, held(items, g, delegate))
	if len(types) == 0 {
		return items
	}
	if delegate {
		items = take(items, g, types, false)
	}
	for i := range items {
		x := &items[i]
		if !x.Fixed && x.Delegate == delegate && slices.Equal(x.grantees(), []policy.Grantee{g}) {
			x.Types = union(x.Types, types)
			return items
		}
	}
	x := Item{Types: union(nil, types), Delegate: delegate}
	*x.of(g.Kind) = []string{g.Name}
	return append(items, x)
}

// take takes types from a grantee. An item that others share is divided. With
// delegated false the types that may be passed on stay.
func take(items []Item, g policy.Grantee, types []string, delegated bool) []Item {
	var out []Item
	for _, x := range items {
		rest := minus(x.Types, types)
		if x.Fixed || !x.names(g) || len(rest) == len(x.Types) || x.Delegate && !delegated {
			out = append(out, x)
			continue
		}
		mine := Item{Types: rest, Delegate: x.Delegate}
		*mine.of(g.Kind) = []string{g.Name}
		names := x.of(g.Kind)
		*names = minus(*names, []string{g.Name})
		if !x.empty() {
			out = append(out, x)
		}
		if len(rest) > 0 {
			out = append(out, mine)
		}
	}
	return out
}

// union is both sets as one, sorted.
func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}

func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return !slices.Contains(b, x) })
}

func subset(a, b []string) bool { return len(minus(a, b)) == 0 }

// The labels of policies. Grants and grantors are told in the words that other
// systems share; what only SQE needs has its own prefix.
const (
	grantLabel     = "chm:"           // TYPE:name:PRIVILEGE: there is such a grant
	grantorLabel   = "chm-grantor:"   // TYPE:name:grantor
	traversalLabel = "sqe:traversal=" // TYPE:name:access type: given on the way to something below
	denyLabel      = "sqe:deny="      // TYPE:name:PRIVILEGE: there is such a denial
	denierLabel    = "sqe:denied-by=" // TYPE:name:who denied
	managedLabel   = "managed-by:sqe"
)

func label(prefix string, g policy.Grantee, what string) string {
	return prefix + strings.ToUpper(string(g.Kind)) + ":" + g.Name + ":" + what
}

// parseLabel takes a label apart. The type stands left and what it says right, so
// that a name may hold colons.
func parseLabel(prefix, l string) (g policy.Grantee, what string, ok bool) {
	l, ok = strings.CutPrefix(l, prefix)
	kind, rest, more := strings.Cut(l, ":")
	i := strings.LastIndexByte(rest, ':')
	if !ok || !more || i <= 0 {
		return g, "", false
	}
	g = policy.Grantee{Kind: policy.GranteeKind(strings.ToLower(kind)), Name: rest[:i]}
	return g, rest[i+1:], strings.ToUpper(kind) == kind
}

// labelled lists what the labels of a kind say about a grantee.
func (p *Policy) labelled(prefix string, g policy.Grantee) []string {
	if p == nil {
		return nil
	}
	var out []string
	for _, l := range p.Labels {
		if who, what, ok := parseLabel(prefix, l); ok && who == g {
			out = union(out, []string{what})
		}
	}
	return out
}

// grants are the privileges that the labels of the policy give a grantee; those
// that the profile does not know are left out.
func (p *Policy) grants(g policy.Grantee) []string {
	return slices.DeleteFunc(p.labelled(grantLabel, g), func(n string) bool { _, ok := the().Privileges[n]; return !ok })
}

func (p *Policy) addLabel(l string) { p.Labels = union(p.Labels, []string{l}) }

func (p *Policy) dropLabel(l string) { p.Labels = minus(p.Labels, []string{l}) }
