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
	out, reason, err := t.try(n)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return t.finish(out, n)
	}
	return nil, fault.New(fault.Unsupported, "%s is not supported; docs/sql.md lists what is", reason)
}

// whole translates a tree that has to be translated whole.
func (t *translator) whole(n sql.Node) (plan.Node, error) {
	out, reason, err := t.try(n)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return nil, fault.New(fault.Unsupported, "%s is not supported here; docs/sql.md lists what is", reason)
	}
	return t.finish(out, nil)
}

// finish drops what loose grouping did not need and checks the plan.
func (t *translator) finish(n plan.Node, bound sql.Node) (plan.Node, error) {
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
	used := map[plan.ColumnID]bool{}
	for _, c := range n.Columns() {
		used[c.ID] = true
	}
	plan.Walk(n, func(n plan.Node) bool {
		for _, e := range n.Exprs() {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				if r, ok := e.(*plan.Ref); ok {
					used[r.ID] = true
				}
				return true
			})
		}
		return true
	})
	full := sql.LoadSqlMode(t.ctx).ModeEnabled(sql.OnlyFullGroupBy)
	return plan.Transform(n, func(n plan.Node) (plan.Node, error) {
		a, ok := n.(*plan.Aggregate)
		if !ok {
			return n, nil
		}
		kept := make([]plan.AggItem, 0, len(a.Aggs))
		for _, it := range a.Aggs {
			name, implicit := t.implicit[it.ID]
			switch {
			case implicit && !used[it.ID]:
				continue
			case implicit && full:
				return nil, fault.New(fault.BadStatement, "column '%s' is neither in GROUP BY nor in an aggregate (sql_mode=only_full_group_by); add it to GROUP BY or use ANY_VALUE(%s)", name, name)
			}
			kept = append(kept, it)
		}
		if len(kept) == len(a.Aggs) {
			return n, nil
		}
		c := *a
		c.Aggs = kept
		return &c, nil
	})
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
