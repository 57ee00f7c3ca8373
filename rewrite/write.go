package rewrite

import (
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
// would replace what the mask hides by the mask.
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
	g := &governor{ids: ids, lookup: lookup, salt: salt, target: w.Target}
	rows, record, err := g.govern(w.Rows)
	if err != nil {
		return nil, nil, err
	}
	if len(target.filters) > 0 {
		g.note(target, nil) // new rows must fulfil them, whether or not old ones are read
	}
	out := *w
	out.Rows = rows
	return &out, record, nil
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
	from := sources(w.Rows)
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
		for field, value := range b.Values {
			seen := map[plan.ColumnID]bool{}
			stack := []plan.ColumnID{value}
			for len(stack) > 0 {
				id := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if seen[id] {
					continue
				}
				seen[id] = true
				if masked[id] == field {
					f, _ := w.Target.Field(field)
					return fault.New(fault.Denied, "column '%s' of table '%s' is masked for you, and the statement would write its mask over it; leave the column out, or give it a value of its own", f.Name, w.Target.Name)
				}
				stack = append(stack, from[id]...)
			}
		}
	}
	return nil
}

// sources tells for every column of a plan which columns its values are made of.
func sources(root plan.Node) map[plan.ColumnID][]plan.ColumnID {
	out := map[plan.ColumnID][]plan.ColumnID{}
	add := func(id plan.ColumnID, e plan.Expr) { out[id] = append(out[id], values(e)...) }
	byPosition := func(cols []plan.Column, in plan.Node) {
		for i, c := range in.Columns() {
			if i < len(cols) {
				out[cols[i].ID] = append(out[cols[i].ID], c.ID)
			}
		}
	}
	recursive := map[int][]plan.Column{}
	plan.Walk(root, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Project:
			for _, it := range n.Items {
				add(it.ID, it.Expr)
			}
		case *plan.Aggregate:
			for _, it := range n.Keys {
				add(it.ID, it.Expr)
			}
			for _, it := range n.Aggs {
				for _, a := range it.Call.Args {
					add(it.ID, a)
				}
			}
		case *plan.Window:
			for _, it := range n.Items {
				for _, a := range it.Call.Args {
					add(it.ID, a)
				}
			}
		case *plan.Values:
			for _, r := range n.Rows {
				for i, e := range r {
					if i < len(n.Cols) {
						add(n.Cols[i].ID, e)
					}
				}
			}
		case *plan.SetOp:
			byPosition(n.Cols, n.Left)
			byPosition(n.Cols, n.Right)
		case *plan.Recursive:
			recursive[n.ID] = n.Cols
			byPosition(n.Cols, n.Anchor)
			byPosition(n.Cols, n.Step)
		case *plan.Foreign:
			// What the row executor does is not known.
			for _, c := range n.Cols {
				for _, in := range n.Children {
					for _, x := range in.Columns() {
						out[c.ID] = append(out[c.ID], x.ID)
					}
				}
			}
		}
		return true
	})
	plan.Walk(root, func(n plan.Node) bool {
		if t, ok := n.(*plan.WorkTable); ok {
			for i, c := range recursive[t.ID] {
				if i < len(t.Cols) {
					out[t.Cols[i].ID] = append(out[t.Cols[i].ID], c.ID)
				}
			}
		}
		return true
	})
	return out
}

// values are the columns whose values e may yield or compute with; the conditions
// of a CASE are none of them.
func values(e plan.Expr) []plan.ColumnID {
	var out []plan.ColumnID
	var visit func(plan.Expr)
	visit = func(e plan.Expr) {
		switch e := e.(type) {
		case *plan.Ref:
			out = append(out, e.ID)
			return
		case *plan.Case:
			for _, w := range e.Whens {
				visit(w.Then)
			}
			if e.Else != nil {
				visit(e.Else)
			}
			return
		case *plan.Subquery:
			if e.Kind == plan.ScalarSubquery {
				for _, c := range e.Plan.Columns() {
					out = append(out, c.ID)
				}
			}
		}
		for _, a := range e.Args() {
			visit(a)
		}
	}
	visit(e)
	return out
}
