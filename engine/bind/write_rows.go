package bind

import (
	"slices"

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
	return &plan.Write{
		Target: w.target.Table, Rows: tr.accept(&plan.Project{Input: p.Input, Items: items}),
		Branches: []plan.WriteBranch{branch}, File: items[0].ID, Pos: items[1].ID,
	}, nil
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
