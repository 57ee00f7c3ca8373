package duck

import "sqe/plan"

// risks are the errors that a statement can raise on values. What the executor computes
// for which rows before it fails, it does not promise: it follows filters, whose order is
// its own, and the statistics of files, which are of hidden rows too.
type risks struct {
	// condition: one that can fail must come after the row filter below it, so that its
	// error does not tell of a hidden row.
	condition bool
	// any: whether an error comes must not follow from statistics. The executor folds
	// "n > 5 AND fails(n)" when no row of the file has such an n, and passes over parts of
	// files in which no key of a join can be.
	any bool
}

func risksOf(n plan.Node) risks {
	partial := map[plan.ColumnID]bool{}
	var found risks
	last := last(n)
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
	examine := func(n plan.Node, e plan.Expr) bool {
		ok := total(e)
		found.any = found.any || !ok && !(last[n] && strict(e))
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
			found.condition = !examine(n, n.Cond) || found.condition
		case *plan.Join:
			found.condition = (n.On != nil && !examine(n, n.On)) || found.condition
		case *plan.Project:
			for _, it := range n.Items {
				if !examine(n, it.Expr) {
					partial[it.ID] = true
				}
			}
		case *plan.Aggregate:
			for _, it := range n.Keys {
				if !examine(n, it.Expr) {
					partial[it.ID] = true
				}
			}
			for _, a := range n.Aggs {
				for _, e := range a.Call.Args {
					examine(n, e)
				}
				for _, k := range a.Call.OrderBy {
					examine(n, k.Expr)
				}
				// The others add up, or collect, what may become too much.
				switch a.Call.Func.Name {
				case "count", "min", "max", "any_value", "bit_and", "bit_or", "bit_xor":
				default:
					found.any = found.any || !last[n]
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
		case *plan.Window:
			found.any = true // a sum may become too much
			for _, e := range n.Exprs() {
				examine(n, e)
			}
		default:
			for _, e := range n.Exprs() {
				examine(n, e)
			}
		}
	}
	visit(n)
	return found
}

// last are the nodes that compute for each row that there is at last: nothing above them
// drops one, so that what fails there fails whatever statistics say.
func last(n plan.Node) map[plan.Node]bool {
	out := map[plan.Node]bool{}
	for {
		switch x := n.(type) {
		case *plan.Project:
			out[n] = true
			n = x.Input
		case *plan.Sort:
			n = x.Input
		case *plan.Aggregate:
			out[n] = true
			return out
		default:
			return out
		}
	}
}

// strict reports whether all of e is computed for each row. AND, CASE and their like may
// leave out a part that fails when statistics decide another one.
func strict(e plan.Expr) bool {
	ok := true
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref, *plan.Literal, *plan.Cast:
		case *plan.Call:
			switch e.Func.Name {
			case "add", "sub", "mul", "div", "neg", "round":
			default:
				ok = false
			}
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// opaque hides from the executor what it knows of the columns of a guard. Without rows that
// are hidden that is those with a mask alone: of the others the statement's user sees all.
func (c *compiler) opaque(n *plan.Guard, b *block) *block {
	cols := unique(n.Columns())
	if len(cols) == 0 || (!n.Filtered && len(n.Masked) == 0) {
		return b
	}
	b = c.wrap(b)
	for _, col := range cols {
		name := columnName(col.ID)
		if n.Filtered || n.Masked[col.ID] {
			// The greatest of one value is that value, of any type, without statistics.
			name = "greatest(" + name + ") AS " + name
		}
		b.items = append(b.items, name)
	}
	return b
}
