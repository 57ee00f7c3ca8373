package grants

import (
	"slices"
	"strings"
	"unicode"

	"sqe/fault"
	"sqe/policy"
)

// Level is how deep an object lies.
type Level uint8

// The levels. A view is on the level of tables.
const (
	CatalogLevel Level = iota + 1
	NamespaceLevel
	TableLevel
)

// String is the word for the level in messages.
func (l Level) String() string {
	return [...]string{"", "catalog", "namespace", "table"}[l]
}

// Any stands for all names of a level.
const Any = "*"

// Object is what a privilege is given on: a catalog, a namespace of any depth, or
// a table or view. Name may be Any (all tables, or all views, of the namespace),
// and then Namespace may be the one level Any (of the catalog).
type Object struct {
	Catalog   string
	Namespace []string
	Name      string
	View      bool
}

// Level is the level of the object.
func (o Object) Level() Level {
	switch {
	case o.Name != "":
		return TableLevel
	case len(o.Namespace) > 0:
		return NamespaceLevel
	}
	return CatalogLevel
}

// String is the object as a dotted name.
func (o Object) String() string {
	parts := append([]string{o.Catalog}, o.Namespace...)
	if o.Name != "" {
		parts = append(parts, o.Name)
	}
	return strings.Join(parts, ".")
}

// Policy is the object as the object gate is asked about it.
func (o Object) Policy() policy.Object {
	return policy.Object{Catalog: o.Catalog, Namespace: o.Namespace, Name: o.Name, View: o.View}
}

// Wild reports whether the object stands for all tables or views of something.
func (o Object) Wild() bool { return o.Name == Any }

// check refuses names that the policy server would read as something else.
func (o Object) check() error {
	if o.Catalog == "" {
		return fault.New(fault.BadStatement, "the object needs its catalog: write catalog.namespace.table")
	}
	if o.Name != "" && len(o.Namespace) == 0 {
		return fault.New(fault.BadStatement, "the table needs its namespace: write catalog.namespace.table")
	}
	everywhere := len(o.Namespace) == 1 && o.Namespace[0] == Any
	if everywhere && o.Name != "" && o.Name != Any {
		return fault.New(fault.BadStatement, "a table is in one namespace; name it")
	}
	names := []string{o.Catalog}
	if !everywhere {
		names = append(names, o.Namespace...)
	}
	if o.Name != "" && o.Name != Any {
		names = append(names, o.Name)
	}
	for _, n := range names {
		if n == "" {
			return fault.New(fault.BadStatement, "a part of the name %s is empty", o)
		}
		if i := strings.IndexFunc(n, func(r rune) bool {
			return strings.ContainsRune(`/?#%\*{}`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
		}); i >= 0 {
			return fault.New(fault.BadStatement, "the name '%s' holds a blank or one of / ? # %% \\ * { }, which policies read as something else; access to such an object is given with a pattern, in the policy server", n)
		}
	}
	return nil
}

// Resource is what a policy is on, in the words of the polaris service. An empty
// element is absent. Deeper namespaces are written as Polaris asks for them: of a
// table in a.b.c the namespace is "a" and the table "b/c/name"; the namespace
// itself is "a/b/c".
type Resource struct{ Root, Catalog, Namespace, Table string }

// Level is the level of the resource.
func (r Resource) Level() Level {
	switch {
	case r.Table != "":
		return TableLevel
	case r.Namespace != "":
		return NamespaceLevel
	}
	return CatalogLevel
}

// Elements are the elements that are there, with their names.
func (r Resource) Elements() map[string]string {
	out := map[string]string{"root": r.Root, "catalog": r.Catalog}
	if r.Namespace != "" {
		out["namespace"] = r.Namespace
	}
	if r.Table != "" {
		out["table"] = r.Table
	}
	return out
}

// String is the resource without its root, as it is shown.
func (r Resource) String() string {
	s := "catalog=" + r.Catalog
	if r.Namespace != "" {
		s += ", namespace=" + r.Namespace
	}
	if r.Table != "" {
		s += ", table=" + r.Table
	}
	return s
}

// Object is the object that a resource of one value in each element is for.
func (r Resource) Object() Object {
	o := Object{Catalog: r.Catalog}
	if r.Namespace != "" {
		o.Namespace = strings.Split(r.Namespace, "/")
	}
	if r.Table != "" {
		rest := strings.Split(r.Table, "/")
		o.Namespace = append(o.Namespace, rest[:len(rest)-1]...)
		o.Name = rest[len(rest)-1]
	}
	return o
}

// resource is the object in the words of the service.
func (o Object) resource(root string) Resource {
	r := Resource{Root: root, Catalog: o.Catalog}
	switch o.Level() {
	case TableLevel:
		r.Namespace = o.Namespace[0]
		r.Table = strings.Join(append(slices.Clone(o.Namespace[1:]), o.Name), "/")
	case NamespaceLevel:
		r.Namespace = strings.Join(o.Namespace, "/")
	}
	return r
}

// above are the objects that hold this one, the catalog first.
func (o Object) above() []Object {
	if o.Level() == CatalogLevel {
		return nil
	}
	out := []Object{{Catalog: o.Catalog}}
	depth := len(o.Namespace)
	if o.Name == "" {
		depth--
	}
	for i := 1; i <= depth; i++ {
		out = append(out, Object{Catalog: o.Catalog, Namespace: o.Namespace[:i:i]})
	}
	return out
}
