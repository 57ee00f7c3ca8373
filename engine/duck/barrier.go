package duck

import "sqe/plan"

// risky reports whether a condition of the statement can raise an error on a
// value. DuckDB does not promise to evaluate it after a row filter below, so that
// the error could tell of a hidden row; filtered guards then get a barrier.
func risky(n plan.Node) bool {
	partial := map[plan.ColumnID]bool{}
	found := false
	var visit func(plan.Node)
	total := func(e plan.Expr) bool {
		ok := true
		plan.WalkExpr(e, func(e plan.Expr) bool {
			switch e := e.(type) {
			case *plan.Ref:
				ok = ok && !partial[e.ID]
			case *plan.Subquery:
				visit(e.Plan)
				ok = ok && e.Kind != plan.ScalarSubquery
			case *plan.Call:
				ok = ok && (e.Func.Partial == nil || !e.Func.Partial(plan.Types(e.Operands)))
			case *plan.RowCall:
				ok = false
			case *plan.Cast:
				ok = ok && plan.Total(&plan.Cast{Operand: &plan.Ref{Typ: e.Operand.Type()}, Typ: e.Typ, Try: e.Try})
			}
			return true
		})
		return ok
	}
	visit = func(n plan.Node) {
		if _, ok := n.(*plan.Guard); ok {
			return // what a policy computes comes before its guard
		}
		for _, in := range n.Inputs() {
			visit(in)
		}
		switch n := n.(type) {
		case *plan.Filter:
			found = found || !total(n.Cond)
		case *plan.Join:
			found = found || (n.On != nil && !total(n.On))
		case *plan.Project:
			for _, it := range n.Items {
				if !total(it.Expr) {
					partial[it.ID] = true
				}
			}
		case *plan.Aggregate:
			for _, it := range n.Keys {
				if !total(it.Expr) {
					partial[it.ID] = true
				}
			}
			for _, a := range n.Aggs {
				for _, e := range a.Call.Args {
					total(e) // sub-queries inside
				}
			}
		case *plan.SetOp, *plan.Recursive:
			cols := n.Columns()
			for _, in := range n.Inputs() {
				for i, c := range in.Columns() {
					if partial[c.ID] && i < len(cols) {
						partial[cols[i].ID] = true
					}
				}
			}
		default:
			for _, e := range n.Exprs() {
				total(e)
			}
		}
	}
	visit(n)
	return found
}
