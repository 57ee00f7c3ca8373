package rewrite

import (
	"slices"

	"sqe/plan"
)

// Pushdown tells the scans of a governed plan which rows they need not yield
// (plan.Scan.Prune): those that a row filter hides, and those that the user's own
// conditions drop. Nothing is removed above: pruning is advice.
//
// A condition of the user goes below a guard only if it refers to unmasked
// columns of that guard alone, is the same for the same row always, and can never
// fail: then what it reveals by being evaluated early is what it says anyway. A
// condition on a masked column would be compared with raw statistics.
//
// A guard that hides rows takes less: which of its files have no row for a condition
// follows from hidden rows too. So no condition reaches it past an expression that can fail,
// which the executor may compute for rows that the condition drops: whether the statement
// fails would tell of the hidden ones.
func Pushdown(root plan.Node) plan.Node { return push(root, conditions{}) }

// conditions hold for every needed row of a node.
type conditions struct {
	all  []plan.Expr
	sure []plan.Expr // those of all beside and below which nothing can fail
	// risk: a condition above can fail, and the executor may compute it before one that
	// stands below.
	risk bool
}

// also adds conditions.
func (c conditions) also(cond plan.Expr) conditions {
	more := conjuncts(cond)
	c.all = append(c.all[:len(c.all):len(c.all)], more...)
	if fails(cond) {
		c.risk = true
	}
	if c.risk {
		c.sure = nil
	} else {
		c.sure = append(c.sure[:len(c.sure):len(c.sure)], more...)
	}
	return c
}

func (c conditions) through(items []plan.Item) conditions {
	c.all, c.sure = through(c.all, items), through(c.sure, items)
	return c
}

// none are no conditions, for what stands below.
func (c conditions) none() conditions { return conditions{risk: c.risk} }

// past are the conditions below a node that computes these expressions.
func (c conditions) past(exprs ...plan.Expr) conditions {
	if slices.ContainsFunc(exprs, fails) {
		c.sure = nil
	}
	return c
}

// fails reports whether an expression, with the plans in it, can raise an error.
func fails(e plan.Expr) bool {
	found := false
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.RowCall:
			found = true
		case *plan.Call:
			found = found || e.Func.Partial != nil && e.Func.Partial(plan.Types(e.Operands))
		case *plan.Cast:
			found = found || !plan.Total(&plan.Cast{Operand: &plan.Ref{Typ: e.Operand.Type()}, Typ: e.Typ, Try: e.Try})
		case *plan.Subquery:
			// One that gives a value fails on a second row.
			found = found || e.Kind == plan.ScalarSubquery
			plan.Walk(e.Plan, func(n plan.Node) bool {
				if _, ok := n.(*plan.Guard); ok {
					return false
				}
				found = found || slices.ContainsFunc(n.Exprs(), fails)
				return !found
			})
		}
		return !found
	})
	return found
}

// push pushes conditions that every needed row of n fulfils.
func push(n plan.Node, conds conditions) plan.Node {
	if g, ok := n.(*plan.Guard); ok {
		return pushGuard(g, conds)
	}
	conds = conds.past(n.Exprs()...)
	switch n := n.(type) {
	case *plan.Filter:
		return inputs(n, conds.also(n.Cond))
	case *plan.Sort, *plan.Distinct:
		// Rows that are equal fulfil the same conditions, so that DISTINCT keeps the
		// same ones.
		return inputs(n, conds)
	case *plan.Project:
		return inputs(n, conds.through(n.Items))
	case *plan.Aggregate:
		// A condition on the keys drops whole groups. Without keys there is a row
		// even for no input, so nothing may go below.
		if len(n.Keys) == 0 {
			return inputs(n, conds.none())
		}
		conds.sure = nil // a sum may become too much
		return inputs(n, conds.through(n.Keys))
	case *plan.Join:
		return pushJoin(n, conds)
	case *plan.SetOp:
		// For EXCEPT and INTERSECT it would hold as well, but is not worth the proof.
		if n.Kind != plan.Union {
			return inputs(n, conds.none())
		}
		return subplans(n.WithInputs([]plan.Node{
			push(n.Left, conds.through(positional(n.Cols, n.Left))),
			push(n.Right, conds.through(positional(n.Cols, n.Right))),
		}))
	}
	// Limit, Window, Recursive and Foreign depend on rows that a condition above
	// them drops.
	return inputs(n, conds.none())
}

// inputs rebuilds n with the conditions pushed into every input.
func inputs(n plan.Node, conds conditions) plan.Node {
	in := n.Inputs()
	if len(in) > 0 {
		out := make([]plan.Node, len(in))
		for i, c := range in {
			out[i] = push(c, conds)
		}
		n = n.WithInputs(out)
	}
	return subplans(n)
}

// subplans treats the plans of sub-queries on their own: conditions of the outer
// query do not hold for their rows.
func subplans(n plan.Node) plan.Node {
	out, _ := plan.MapExprs(n, func(e plan.Expr) (plan.Expr, error) {
		s, ok := e.(*plan.Subquery)
		if !ok {
			return e, nil
		}
		c := *s
		c.Plan = push(s.Plan, conditions{})
		return &c, nil
	})
	return out
}

func pushJoin(n *plan.Join, conds conditions) plan.Node {
	on := conds.none()
	both := conds
	if n.On != nil {
		on, both = on.also(n.On), conds.also(n.On)
		conds.risk = both.risk
	}
	// A row of an outer side is kept whether or not On holds, and a condition
	// above may be true of the NULLs that stand in for a missing row.
	var left, right conditions
	switch n.Kind {
	case plan.Inner, plan.Cross:
		left, right = both, both
	case plan.Semi:
		left, right = both, on
	case plan.Left, plan.Anti:
		left, right = conds, on
	case plan.Right:
		left, right = on, conds
	}
	return subplans(n.WithInputs([]plan.Node{push(n.Left, left), push(n.Right, right)}))
}

// through rewrites conditions over the items of a node into ones over its input
// and leaves out those that refer to anything else or to an item that may not be
// evaluated for other rows.
func through(conds []plan.Expr, items []plan.Item) []plan.Expr {
	if len(conds) == 0 {
		return nil
	}
	var out []plan.Expr
	for _, c := range conds {
		if e, ok := substitute(c, items, nil); ok {
			out = append(out, e)
		}
	}
	return out
}

// substitute replaces every column of e by the expression of the item that makes
// it. It fails when e refers to anything else, to an item in except, or has a
// sub-query. Conditions name few columns, so that a search beats a map.
func substitute(e plan.Expr, items []plan.Item, except map[plan.ColumnID]bool) (plan.Expr, bool) {
	ok := true
	out, _ := plan.TransformExpr(e, func(e plan.Expr) (plan.Expr, error) {
		switch e := e.(type) {
		case *plan.Ref:
			for i := range items {
				if items[i].ID == e.ID && !except[e.ID] {
					return items[i].Expr, nil
				}
			}
			ok = false
		case *plan.Subquery:
			ok = false
		}
		return e, nil
	})
	return out, ok
}

func positional(cols []plan.Column, in plan.Node) []plan.Item {
	from := in.Columns()
	items := make([]plan.Item, 0, len(cols))
	for i, c := range cols {
		if i < len(from) {
			items = append(items, plan.Item{Column: c, Expr: &plan.Ref{ID: from[i].ID, Typ: from[i].Type, Name: from[i].Name}})
		}
	}
	return items
}

func pushGuard(g *plan.Guard, from conditions) plan.Node {
	conds := from.all
	if g.Filtered {
		conds = from.sure
	}
	project, ok := g.Input.(*plan.Project)
	if !ok {
		return g
	}
	in := project.Input
	filter, filtered := in.(*plan.Filter)
	if filtered {
		in = filter.Input
	}
	scan, ok := in.(*plan.Scan)
	if !ok {
		return g
	}
	prune := make([]plan.Expr, 0, 4)
	if scan.Prune != nil {
		prune = append(prune, scan.Prune)
	}
	if filtered {
		// The row filter itself: its author may see raw values, yet a part that can
		// fail must not be evaluated for other rows or in another order.
		for _, c := range conjuncts(filter.Cond) {
			if harmless(c) {
				prune = append(prune, c)
			}
		}
	}
	for _, c := range conds {
		// Only columns that pass through as they are can be pruned by; Verify has
		// seen that every other one is in Masked.
		if e, ok := substitute(c, project.Items, g.Masked); ok && harmless(e) {
			prune = append(prune, e)
		}
	}
	if len(prune) == 0 {
		return g
	}
	s := *scan
	s.Prune = conjunction(prune)
	var below plan.Node = &s
	if filtered {
		below = filter.WithInputs([]plan.Node{below})
	}
	return g.WithInputs([]plan.Node{project.WithInputs([]plan.Node{below})})
}

// harmless reports whether evaluating e early, on any row and any number of
// times, does nothing but decide. Without a column it would prune nothing.
func harmless(e plan.Expr) bool {
	return plan.Total(e) && plan.Deterministic(e) && len(plan.Refs(e)) > 0
}

// conjuncts splits a condition at its ANDs.
func conjuncts(e plan.Expr) []plan.Expr {
	c, ok := e.(*plan.Call)
	if !ok || c.Func.Name != "and" {
		return []plan.Expr{e}
	}
	var out []plan.Expr
	for _, a := range c.Operands {
		out = append(out, conjuncts(a)...)
	}
	return out
}
