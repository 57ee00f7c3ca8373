package bind

import (
	"fmt"

	"github.com/dolthub/go-mysql-server/sql"

	"sqe/fault"
	"sqe/plan"
)

// root translates a whole statement: into a plan, or into a Foreign over the
// largest pieces that can be translated.
func (t *translator) root(n sql.Node, flags *sql.QueryFlags) (plan.Node, error) {
	out, reason, err := t.tryByRow(n)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return t.finish(out)
	}
	return t.foreign(n, flags, reason)
}

// whole translates a tree that has to be translated whole.
func (t *translator) whole(n sql.Node) (plan.Node, error) {
	out, reason, err := t.tryByRow(n)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return nil, fault.New(fault.Unsupported, "%s is not supported here; docs/sql.md lists what is", reason)
	}
	return t.finish(out)
}

// finish drops what loose grouping did not need and checks the plan.
func (t *translator) finish(n plan.Node) (plan.Node, error) {
	n, err := t.dropImplicit(n)
	if err != nil {
		return nil, err
	}
	if err := wellFormed(n); err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the statement uses names in a way that is not supported; give tables and columns distinct aliases")
	}
	return n, nil
}

// dropImplicit removes columns that an Aggregate picks from any row and that
// nothing uses. One that is used is an error under ONLY_FULL_GROUP_BY.
func (t *translator) dropImplicit(n plan.Node) (plan.Node, error) {
	if len(t.implicit) == 0 {
		return n, nil
	}
	// Columns that a list only passes on do not count as uses of what is below.
	used := map[plan.ColumnID]bool{}
	for _, c := range n.Columns() {
		used[c.ID] = true
	}
	out := t.prune(n, used)
	if !sql.LoadSqlMode(t.ctx).ModeEnabled(sql.OnlyFullGroupBy) {
		return out, nil
	}
	var err error
	plan.Walk(out, func(n plan.Node) bool {
		if a, ok := n.(*plan.Aggregate); ok {
			for _, it := range a.Aggs {
				if name, implicit := t.implicit[it.ID]; implicit && err == nil {
					err = fault.New(fault.BadStatement, "column '%s' is neither in GROUP BY nor in an aggregate (sql_mode=only_full_group_by); add it to GROUP BY or use ANY_VALUE(%s)", name, name)
				}
			}
		}
		return err == nil
	})
	return out, err
}

// prune drops items of projections and implicit columns of aggregates that
// nothing above uses. used holds the columns that are used above n, and gets those
// that n uses.
func (t *translator) prune(n plan.Node, used map[plan.ColumnID]bool) plan.Node {
	switch p := n.(type) {
	case *plan.Project:
		items := make([]plan.Item, 0, len(p.Items))
		for _, it := range p.Items {
			if used[it.ID] {
				items = append(items, it)
			}
		}
		n = &plan.Project{Input: p.Input, Items: items}
		if _, known := p.Input.(*plan.Scan); known {
			n = p
		}
	case *plan.Aggregate:
		c := *p
		c.Aggs = make([]plan.AggItem, 0, len(p.Aggs))
		for _, it := range p.Aggs {
			if _, implicit := t.implicit[it.ID]; !implicit || used[it.ID] {
				c.Aggs = append(c.Aggs, it)
			}
		}
		n = &c
	case *plan.Distinct, *plan.SetOp, *plan.Recursive:
		// Every column matters, by position.
		for _, in := range n.Inputs() {
			for _, c := range in.Columns() {
				used[c.ID] = true
			}
		}
	}
	exprs := n.Exprs()
	changed := false
	for i, e := range exprs {
		x, _ := plan.TransformExpr(e, func(e plan.Expr) (plan.Expr, error) {
			switch e := e.(type) {
			case *plan.Ref:
				if it, passes := passedOn(n, i); !passes || it != e.ID {
					used[e.ID] = true
				}
			case *plan.Subquery:
				s := *e
				for _, c := range e.Plan.Columns() {
					used[c.ID] = true
				}
				s.Plan = t.prune(e.Plan, used)
				return &s, nil
			}
			return e, nil
		})
		changed = changed || x != e
		exprs[i] = x
	}
	if changed {
		n = n.WithExprs(exprs)
	}
	in := n.Inputs()
	if len(in) == 0 {
		return n
	}
	out := make([]plan.Node, len(in))
	// The right side first: a lateral one uses columns of the left.
	for i := len(in) - 1; i >= 0; i-- {
		out[i] = t.prune(in[i], used)
	}
	return n.WithInputs(out)
}

// passedOn is the id of item i of a Project when it only passes a column on.
func passedOn(n plan.Node, i int) (plan.ColumnID, bool) {
	p, ok := n.(*plan.Project)
	if !ok || i >= len(p.Items) {
		return 0, false
	}
	r, ok := p.Items[i].Expr.(*plan.Ref)
	return p.Items[i].ID, ok && r.ID == p.Items[i].ID
}

// wellFormed checks that every expression refers to columns of the input of its
// node, or of an enclosing query: the binder works with names in places, and a
// mistake there must be an error, not another column.
func wellFormed(n plan.Node) error { return checkNode(n, map[plan.ColumnID]bool{}) }

func checkNode(n plan.Node, outer map[plan.ColumnID]bool) error {
	visible := outer
	if in := n.Inputs(); len(in) > 0 {
		visible = make(map[plan.ColumnID]bool, len(outer)+8)
		for id := range outer {
			visible[id] = true
		}
		for i, c := range in {
			scope := outer
			if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
				scope = visible
			}
			if err := checkNode(c, scope); err != nil {
				return err
			}
			if j, ok := n.(*plan.Join); !ok || i == 0 || j.On != nil {
				for _, col := range c.Columns() {
					visible[col.ID] = true
				}
			}
		}
	}
	for _, e := range n.Exprs() {
		if err := checkExpr(e, visible); err != nil {
			return err
		}
	}
	return nil
}

func checkExpr(e plan.Expr, visible map[plan.ColumnID]bool) error {
	var err error
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref:
			if !visible[e.ID] {
				err = fmt.Errorf("column %d is not in scope", e.ID)
			}
		case *plan.Subquery:
			if subErr := checkNode(e.Plan, visible); subErr != nil {
				err = subErr
			}
		}
		return err == nil
	})
	return err
}
