package bind

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// fromTarget begins FROM with a name for the target, which changes replaces.
func fromTarget(q *queryText, t parse.Target, where *parse.Expr) {
	q.WriteString(" FROM " + quoteName(aliased(t)))
	if where != nil {
		q.WriteString(" WHERE ")
		q.expr(*where)
	}
}

// soleTarget finds the target as the only table of FROM.
func soleTarget(sel *sqlparser.Select) *sqlparser.AliasedTableExpr {
	if len(sel.From) != 1 {
		return nil
	}
	t, _ := sel.From[0].(*sqlparser.AliasedTableExpr)
	return t
}

func (w *writeBinder) delete(s *parse.Delete) (*plan.Write, error) {
	if err := w.find(s.Table, true); err != nil {
		return nil, err
	}
	if s.Where != nil {
		if err := aggregates(*s.Where); err != nil {
			return nil, err
		}
	}
	q := &queryText{all: w.args}
	q.WriteString("SELECT 1, 1")
	fromTarget(q, s.Target, s.Where)
	p, tr, err := w.changes(q, s.Target, soleTarget)
	if err != nil {
		return nil, err
	}
	items := w.place(p)
	return &plan.Write{
		Target: w.target.Table, Rows: tr.accept(&plan.Project{Input: p.Input, Items: items}),
		Branches: []plan.WriteBranch{{Op: plan.DeleteRow}}, File: items[0].ID, Pos: items[1].ID,
	}, nil
}

func (w *writeBinder) update(s *parse.Update) (*plan.Write, error) {
	if err := w.find(s.Table, true); err != nil {
		return nil, err
	}
	fields := w.assigned(s.Set)
	q := &queryText{all: w.args}
	q.WriteString("SELECT 1, 1")
	var exprs []parse.Expr
	if s.Where != nil {
		exprs = append(exprs, *s.Where)
	}
	for _, a := range s.Set {
		if !a.Default {
			exprs = append(exprs, a.Value)
			q.WriteString(", ")
			q.expr(a.Value)
		}
	}
	if err := aggregates(exprs...); err != nil {
		return nil, err
	}
	kept := w.keep(q, s.Target, [][]plan.Field{fields})
	fromTarget(q, s.Target, s.Where)
	p, tr, err := w.changes(q, s.Target, soleTarget)
	if err != nil {
		return nil, err
	}
	items := w.place(p)
	branch := plan.WriteBranch{Op: plan.UpdateRow, Values: map[int]plan.ColumnID{}}
	visible := w.visible(p.Input)
	// MySQL assigns from left to right: a column that was assigned before has its
	// new value.
	made := map[plan.ColumnID]plan.Expr{}
	next := 2
	for i, a := range s.Set {
		f := fields[i]
		var x plan.Expr
		if a.Default {
			x = w.fill(f)
		} else {
			x = p.Items[next].Expr
			next++
			for _, id := range plan.Refs(x) {
				if before, again := made[id]; again && (before == nil || !plan.Deterministic(before)) {
					refuse(fault.Unsupported, "the value of column '%s' refers to a column that the statement assigns before it, in a way that cannot be computed; assign it first", f.Name)
				}
			}
			x = tr.assign(inline(x, made), f)
		}
		it := w.column(f, x)
		items = append(items, it)
		branch.Values[f.ID] = it.ID
		if c, ok := visible[f.ID]; ok {
			made[c.ID] = nil
			if sameColumnType(c, x) {
				made[c.ID] = x
			}
		}
	}
	items, keep := w.kept(p, kept, items)
	return &plan.Write{
		Target: w.target.Table, Rows: tr.accept(&plan.Project{Input: p.Input, Items: items}),
		Branches: []plan.WriteBranch{branch}, File: items[0].ID, Pos: items[1].ID, Kept: keep,
	}, nil
}

// keep adds to the list of a query, as its last items, the columns of the target that
// some UPDATE does not assign; assigned has the fields of each. A nested column is
// left out: in a query it is JSON.
func (w *writeBinder) keep(q *queryText, t parse.Target, assigned [][]plan.Field) []plan.Field {
	var out []plan.Field
	for _, f := range w.target.Table.Fields {
		always := !slices.ContainsFunc(assigned, func(fields []plan.Field) bool {
			return !slices.ContainsFunc(fields, func(a plan.Field) bool { return a.ID == f.ID })
		})
		if always || plan.IsNested(f.Type) || f.Type.ID() == arrow.NULL || w.target.Withheld[f.ID] {
			continue
		}
		q.WriteString(", " + quoteName(aliased(t)) + "." + quoteName(f.Name))
		out = append(out, f)
	}
	return out
}

// kept adds the columns of keep to the items of a write.
func (w *writeBinder) kept(p *plan.Project, fields []plan.Field, items []plan.Item) ([]plan.Item, map[int]plan.ColumnID) {
	out := map[int]plan.ColumnID{}
	for i, f := range fields {
		r, ok := p.Items[len(p.Items)-len(fields)+i].Expr.(*plan.Ref)
		if !ok || !arrow.TypeEqual(r.Typ, f.Type) {
			continue
		}
		// Of an outer join it may be NULL.
		it := plan.Item{Column: plan.Column{ID: w.ids.New(), Name: f.Name, Type: f.Type, Nullable: true}, Expr: r}
		items = append(items, it)
		out[f.ID] = it.ID
	}
	return items, out
}

// assigned are the fields of assignments.
func (w *writeBinder) assigned(set []parse.Assignment) []plan.Field {
	out := make([]plan.Field, len(set))
	for i, a := range set {
		out[i] = w.field(a.Column...)
		if slices.ContainsFunc(out[:i], func(f plan.Field) bool { return f.ID == out[i].ID }) {
			refuse(fault.BadStatement, "Column '%s' is assigned twice", out[i].Name)
		}
	}
	return out
}

// visible are the columns of the target's fields that expressions over n refer to.
func (w *writeBinder) visible(n plan.Node) map[int]plan.Column {
	out := map[int]plan.Column{}
	var visit func(n plan.Node)
	visit = func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Scan:
			if !slices.ContainsFunc(n.Cols, func(c plan.ScanColumn) bool { return plan.IsVirtual(c.FieldID) }) {
				return
			}
			for _, c := range n.Cols {
				out[c.FieldID] = c.Column
			}
		case *plan.Project:
			visit(n.Input)
			for _, it := range n.Items {
				// A nested column is seen as JSON.
				c, ok := it.Expr.(*plan.Call)
				if !ok || c.Func.Name != "to_json" {
					continue
				}
				r, ok := c.Operands[0].(*plan.Ref)
				if !ok {
					continue
				}
				for id, old := range out {
					if old.ID == r.ID {
						out[id] = it.Column
					}
				}
			}
		default:
			for _, in := range n.Inputs() {
				visit(in)
			}
		}
	}
	visit(n)
	return out
}
