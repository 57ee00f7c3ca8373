package grants

import (
	"maps"
	"slices"
	"strings"

	"sqe/policy"
)

// Difference is one thing that a change adds to a policy or takes from it.
type Difference struct {
	Added bool
	// Effect is "allow", "deny", "grant option" or "label".
	Effect  string
	Grantee policy.Grantee // of a label: none
	What    []string       // access types, or the label
}

// Diff says what differs between two policies on the same resource, for each
// grantee; nil is no policy.
func Diff(before, after *Policy) []Difference {
	b, a := facts(before), facts(after)
	keys := maps.Clone(b)
	maps.Copy(keys, a)
	var out []Difference
	for _, k := range slices.SortedFunc(maps.Keys(keys), factKey.compare) {
		if gone := minus(b[k], a[k]); len(gone) > 0 {
			out = append(out, Difference{false, k.effect, k.grantee, gone})
		}
		if added := minus(a[k], b[k]); len(added) > 0 {
			out = append(out, Difference{true, k.effect, k.grantee, added})
		}
	}
	return out
}

type factKey struct {
	effect  string
	grantee policy.Grantee
}

func (k factKey) compare(o factKey) int {
	return strings.Compare(k.effect+"\x00"+string(k.grantee.Kind)+"\x00"+k.grantee.Name, o.effect+"\x00"+string(o.grantee.Kind)+"\x00"+o.grantee.Name)
}

func facts(p *Policy) map[factKey][]string {
	out := map[factKey][]string{}
	if p == nil {
		return out
	}
	add := func(effect string, list []Item, only func(*Item) bool) {
		for i := range list {
			if x := &list[i]; !x.Fixed && only(x) {
				for _, g := range x.grantees() {
					k := factKey{effect, g}
					out[k] = union(out[k], x.Types)
				}
			}
		}
	}
	add("allow", p.Allow, func(*Item) bool { return true })
	add("grant option", p.Allow, func(i *Item) bool { return i.Delegate })
	add("deny", p.Deny, func(*Item) bool { return true })
	if len(p.Labels) > 0 {
		out[factKey{effect: "label"}] = p.Labels
	}
	return out
}
