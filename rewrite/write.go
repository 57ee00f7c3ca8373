package rewrite

import (
	"maps"
	"slices"

	"sqe/fault"
	"sqe/plan"
)

// GovernWrite governs a statement that changes rows: its Rows become what Govern
// makes of a query, so that the user changes rows that the user sees, by values
// that the user sees. The place of a row of the target passes through its guard as
// it is. w does not change.
//
// It fails as Govern does; with fault.Withheld when a withheld column is assigned;
// with fault.Denied when INSERT OVERWRITE would remove rows that a filter may hide; and
// with fault.Denied when a column gets values that its own mask made, which
// would replace what the mask hides by the mask; and with fault.Denied when an UPDATE
// keeps a value that the user does not see and assigns what a policy looks at to
// show it, or together with it.
func GovernWrite(w *plan.Write, ids *plan.IDs, lookup func(*plan.Scan) (*Bound, error), salt func() []byte) (*plan.Write, *Record, error) {
	target, err := boundTarget(w, lookup)
	if err != nil {
		return nil, nil, err
	}
	if w.Overwrite && len(target.filters) > 0 {
		return nil, nil, fault.New(fault.Denied, "a row filter hides rows of table '%s' from you, and INSERT OVERWRITE would remove them; use DELETE and INSERT", w.Target.Name)
	}
	for _, b := range w.Branches {
		for id := range b.Values {
			f, ok := w.Target.Field(id)
			if !ok {
				return nil, nil, fault.New(fault.Internal, "a value is for a column that table '%s' does not have", w.Target.Name)
			}
			if _, withheld := target.withheld[id]; withheld {
				return nil, nil, fault.New(fault.Withheld, "column '%s' of table '%s' is withheld: a policy on it cannot be applied, so it cannot be assigned; leave it out or ask an administrator", f.Name, w.Target.Name)
			}
		}
	}
	if err := ownMasks(w, lookup); err != nil {
		return nil, nil, err
	}
	if err := unveils(w, target); err != nil {
		return nil, nil, err
	}
	out := *w
	out.Rows, out.Kept = keepable(w, target)
	g := &governor{ids: ids, lookup: lookup, salt: salt, target: w.Target, kept: out.Kept}
	rows, record, err := g.govern(out.Rows)
	if err != nil {
		return nil, nil, err
	}
	if len(target.filters) > 0 {
		g.note(target, nil) // new rows must fulfil them, whether or not old ones are read
	}
	out.Rows = rows
	return &out, record, nil
}

// unveils refuses an UPDATE by which the user could learn a value that it keeps and
// that the user does not see as it is. There are two ways: a mask reads a column that
// is assigned, so that it may show the value afterwards; and a row filter reads
// a column that is assigned beside the value, so that whether the new row is permitted
// tells of the value.
func unveils(w *plan.Write, target *Bound) error {
	for _, b := range w.Branches {
		if b.Op != plan.UpdateRow {
			continue
		}
		// reads looks for an assigned column, and for one that is kept and hidden.
		reads := func(t *template, but int) (assigned, hidden bool) {
			for _, r := range t.reads {
				_, own := b.Values[r.FieldID]
				assigned = assigned || own && r.FieldID != but
				hidden = hidden || !own && target.Hides(r.FieldID)
			}
			return assigned, hidden
		}
		for _, f := range w.Target.Fields {
			c := target.columns[f.ID]
			if _, own := b.Values[f.ID]; own || c == nil || c.custom == nil {
				continue
			}
			if assigned, _ := reads(c.custom, f.ID); assigned {
				return fault.New(fault.Denied, "column '%s' of table '%s' is masked for you, and the statement assigns a column that decides how; leave that column out, or ask an administrator", f.Name, w.Target.Name)
			}
		}
		for _, f := range target.filters {
			if assigned, hidden := reads(f, 0); assigned && hidden {
				return fault.New(fault.Denied, "a row filter of table '%s' reads a column that the statement assigns together with one that is masked for you; leave the column out, or ask an administrator", w.Target.Name)
			}
		}
	}
	return nil
}

// keepable leaves out the kept columns that the user does not see as they are: a mask
// must not be kept in the place of what it hides.
func keepable(w *plan.Write, target *Bound) (plan.Node, map[int]plan.ColumnID) {
	top, ok := w.Rows.(*plan.Project)
	if !ok {
		return w.Rows, nil
	}
	kept, drop := map[int]plan.ColumnID{}, map[plan.ColumnID]bool{}
	for field, id := range w.Kept {
		if target.Hides(field) {
			drop[id] = true
			continue
		}
		kept[field] = id
	}
	if len(drop) == 0 {
		return w.Rows, kept
	}
	items := slices.DeleteFunc(slices.Clone(top.Items), func(it plan.Item) bool { return drop[it.ID] })
	return &plan.Project{Input: top.Input, Items: items}, kept
}

func boundTarget(w *plan.Write, lookup func(*plan.Scan) (*Bound, error)) (*Bound, error) {
	if w.Target == nil || w.Target.Metadata != "" || len(w.Branches) == 0 {
		return nil, fault.New(fault.Internal, "a statement changes nothing that can be changed")
	}
	b, err := lookup(&plan.Scan{Table: w.Target})
	if err != nil {
		return nil, err
	}
	if b == nil || !sameTable(b.table, w.Target) {
		return nil, fault.New(fault.Internal, "the restrictions of table '%s' are those of another table or version", w.Target.Name)
	}
	return b, nil
}

// ownMasks refuses values of a column that come from the same column of the same
// table where a mask is on it. Conditions under which a value is taken do not count.
func ownMasks(w *plan.Write, lookup func(*plan.Scan) (*Bound, error)) error {
	from := newFlow()
	from.plan(w.Rows)
	masked := map[plan.ColumnID]int{} // field id
	var err error
	plan.Walk(w.Rows, func(n plan.Node) bool {
		s, ok := n.(*plan.Scan)
		if !ok || s.Table == nil || s.Table.Name.Key() != w.Target.Name.Key() || s.Table.Metadata != "" {
			return err == nil
		}
		var b *Bound
		if b, err = lookup(s); err != nil {
			return false
		}
		for _, c := range s.Cols {
			if b != nil && b.columns[c.FieldID] != nil {
				masked[c.ID] = c.FieldID
			}
		}
		return true
	})
	if err != nil || len(masked) == 0 {
		return err
	}
	for _, b := range w.Branches {
		// The same column is named each time.
		for _, field := range slices.Sorted(maps.Keys(b.Values)) {
			own := false
			from.reach(b.Values[field], func(id plan.ColumnID, _ bool) bool {
				own = masked[id] == field
				return !own
			})
			if own {
				f, _ := w.Target.Field(field)
				return fault.New(fault.Denied, "column '%s' of table '%s' is masked for you, and the statement would write its mask over it; leave the column out, or give it a value of its own", f.Name, w.Target.Name)
			}
		}
	}
	return nil
}
