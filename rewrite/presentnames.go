package rewrite

import (
	"slices"
	"strings"

	"sqe/plan"
)

// presentNames is the table with its columns under the names that they have now, which
// are those that texts of policies mean: a name may have been another column's when the
// schema of a snapshot was made. A column that is gone keeps its name unless that is one
// of today's; then no text can mean it. A nested column whose fields went by other names
// is left out as well, since texts find them by name where nothing can be mapped.
func presentNames(t *plan.Table) *plan.Table {
	if t.Present == nil {
		return t
	}
	out := *t
	out.Fields = make([]plan.Field, 0, len(t.Fields))
	for _, f := range t.Fields {
		i := slices.IndexFunc(t.Present, func(p plan.Field) bool { return p.ID == f.ID })
		switch {
		case i >= 0 && sameNames(f.Children, t.Present[i].Children):
			f.Name = t.Present[i].Name
		case i >= 0, slices.ContainsFunc(t.Present, func(p plan.Field) bool { return strings.EqualFold(p.Name, f.Name) }):
			continue
		}
		out.Fields = append(out.Fields, f)
	}
	return &out
}

// ownName is the table for the text of a mask, and the name that its own column has there:
// that column is in the text whatever it is called now, unless another one has its name.
func ownName(named *plan.Table, f plan.Field) (out *plan.Table, name string, ok bool) {
	if now, ok := named.Field(f.ID); ok {
		return named, now.Name, true
	}
	if slices.ContainsFunc(named.Fields, func(x plan.Field) bool { return strings.EqualFold(x.Name, f.Name) }) {
		return nil, "", false
	}
	with := *named
	with.Fields = append(slices.Clone(named.Fields), f)
	return &with, f.Name, true
}

// sameNames reports whether fields with the same id, and no others, have the same name
// in both, at any depth.
func sameNames(then, now []plan.Field) bool {
	for _, a := range then {
		for _, b := range now {
			same := a.ID == b.ID
			if same != strings.EqualFold(a.Name, b.Name) || same && !sameNames(a.Children, b.Children) {
				return false
			}
		}
	}
	return true
}
