package grants

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"sqe/fault"
)

//go:embed profile.json
var profileJSON []byte

// seeds are the access types that a privilege asks for on each level, before what
// they imply is added and exclude is taken away.
type seeds struct {
	Catalog   []string `json:"catalog"`
	Namespace []string `json:"namespace"`
	Table     []string `json:"table"`
	Exclude   []string `json:"exclude"`
}

func (s seeds) of(l Level) []string {
	return [...][]string{nil, s.Catalog, s.Namespace, s.Table}[l]
}

// profile is the table of privileges.
type profile struct {
	Version    int                 `json:"version"`
	Privileges map[string]seeds    `json:"privileges"`
	Aliases    map[string]string   `json:"aliases"`
	Implies    map[string][]string `json:"implies"`
}

// the is the profile, read once.
var the = sync.OnceValue(func() *profile {
	p := &profile{}
	if err := json.Unmarshal(profileJSON, p); err != nil {
		panic("grants: " + err.Error()) // a part of the program
	}
	if len(p.Implies) == 0 || len(p.Privileges) == 0 {
		panic("grants: the profile says nothing")
	}
	return p
})

// The privileges that the package itself speaks of.
const (
	All       = "ALL"
	selecting = "SELECT"
	viewing   = "SELECT VIEW"
	using     = "USE"
)

// Privileges are the names of all privileges, without aliases, sorted.
func Privileges() []string { return slices.Sorted(maps.Keys(the().Privileges)) }

// Aliases are other names of privileges.
func Aliases() map[string]string { return maps.Clone(the().Aliases) }

// Canonical is the name of a privilege in the profile. Blanks and letter case do
// not matter.
func Canonical(name string) (string, error) {
	n := strings.ToUpper(strings.Join(strings.Fields(name), " "))
	if to, ok := the().Aliases[n]; ok {
		n = to
	}
	if _, ok := the().Privileges[n]; !ok {
		return "", fault.New(fault.BadStatement, "there is no privilege %s; the privileges are %s, and %s", n, strings.Join(Privileges(), ", "), strings.Join(slices.Sorted(maps.Keys(the().Aliases)), ", "))
	}
	return n, nil
}

// onView is what a privilege is called for a view.
func onView(privilege string) (string, error) {
	switch privilege {
	case selecting, viewing:
		return viewing, nil
	case "DROP", "DROP VIEW":
		return "DROP VIEW", nil
	}
	if _, level := Binds(privilege); level < TableLevel {
		return privilege, nil // refused with its level
	}
	return "", fault.New(fault.BadStatement, "%s means nothing on a view; a view takes SELECT and DROP, and CREATE VIEW on its schema lets one make views", privilege)
}

// Binds is the deepest level of a privilege.
func Binds(privilege string) (known bool, l Level) {
	s, ok := the().Privileges[privilege]
	switch {
	case !ok:
		return false, 0
	case len(s.Table) > 0:
		return true, TableLevel
	case len(s.Namespace) > 0:
		return true, NamespaceLevel
	}
	return true, CatalogLevel
}

// closure adds to access types what they imply, and sorts them.
func closure(types []string) []string {
	have := map[string]bool{}
	var add func([]string)
	add = func(list []string) {
		for _, t := range list {
			if !have[t] {
				have[t] = true
				add(the().Implies[t])
			}
		}
	}
	add(types)
	return slices.Sorted(maps.Keys(have))
}

// Needs are the access types that using a privilege on a level asks for; what they
// imply is not among them. Without any, the privilege means nothing there.
func Needs(privilege string, l Level) []string {
	return slices.Clone(the().Privileges[privilege].of(l))
}

// unenforced are the types that a privilege on tables leaves out and that others of it
// imply, and those others. A policy without them gives them all the same: whoever
// evaluates it adds what its types imply.
func unenforced(privilege string) (left, by []string) {
	s := the().Privileges[privilege]
	for _, t := range s.Table {
		if implied := intersection(closure([]string{t}), s.Exclude); len(implied) > 0 {
			left, by = union(left, implied), append(by, t)
		}
	}
	return left, by
}

// traversal is what finding anything below a namespace takes there.
var traversal = []string{"namespace-list", "namespace-properties-read"}

// Step is what a grant needs on one resource.
type Step struct {
	Resource Resource
	Types    []string // sorted
	// Named is the resource that the statement names; the others lead to it.
	Named bool
}

// Plan is what a privilege on an object takes, outermost first. The privilege is
// returned as the profile calls it on such an object. One that does not reach as
// deep as the object is refused.
func Plan(root, privilege string, o Object) (string, []Step, error) {
	name, err := Canonical(privilege)
	if err != nil {
		return "", nil, err
	}
	if err := o.check(); err != nil {
		return "", nil, err
	}
	if o.View {
		if name, err = onView(name); err != nil {
			return "", nil, err
		}
	}
	s := the().Privileges[name]
	if _, deepest := Binds(name); o.Level() > deepest {
		return "", nil, fault.New(fault.BadStatement, "%s is a privilege on a %s and cannot be given on a %s: nothing is given on more than what was named. Name the %s (ON %s ...), or a privilege that a %s has", name, deepest, o.Level(), deepest, onWords[deepest], o.Level())
	}
	var out []Step
	for _, a := range append(o.above(), o) {
		types := closure(s.of(a.Level()))
		if a.Level() == NamespaceLevel && a.Name == "" && len(a.Namespace) < len(o.Namespace) {
			types = closure(traversal) // only on the way to the namespace
		}
		types = slices.DeleteFunc(types, func(t string) bool { return slices.Contains(s.Exclude, t) })
		out = append(out, Step{Resource: a.resource(root), Types: types})
	}
	out[len(out)-1].Named = true
	return name, out, nil
}

var onWords = map[Level]string{CatalogLevel: "CATALOG", NamespaceLevel: "SCHEMA", TableLevel: "TABLE"}
