package bind

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

func (t *translator) setOp(n *gmsplan.SetOp) plan.Node {
	l, r := inserted(n.Left(), n.Right())
	leftIDs := outputs(l)
	t.push()
	left := t.node(l)
	t.pop()
	t.push()
	right := t.node(r)
	t.pop()
	lc, rc := left.Columns(), right.Columns()
	if len(lc) != len(rc) {
		refuse(fault.BadStatement, "The used SELECT statements have a different number of columns")
	}
	s := &plan.SetOp{All: !n.Distinct}
	switch n.SetOpType {
	case gmsplan.UnionType:
		s.Kind = plan.Union
	case gmsplan.IntersectType:
		s.Kind = plan.Intersect
	case gmsplan.ExceptType:
		s.Kind = plan.Except
	}
	s.Cols = make([]plan.Column, len(lc))
	for i := range lc {
		typ := unify(lc[i].Type, rc[i].Type)
		s.Cols[i] = plan.Column{ID: t.ids.New(), Name: lc[i].Name, Type: typ, Nullable: lc[i].Nullable || rc[i].Nullable}
	}
	s.Left, s.Right = t.retype(left, s.Cols), t.retype(right, s.Cols)
	if len(leftIDs) == len(s.Cols) {
		for i, id := range leftIDs {
			t.define(id, s.Cols[i])
		}
	}
	out := t.accept(s)
	if len(n.SortFields) > 0 {
		out = t.sort(out, n.SortFields)
	}
	count, offset := int64(-1), int64(0)
	if n.Limit != nil {
		count = t.count(n.Limit)
	}
	if n.Offset != nil {
		offset = t.count(n.Offset)
	}
	if count >= 0 || offset > 0 {
		out = t.limit(out, count, offset)
	}
	return out
}

// outputs lists the ids of go-mysql-server for the columns that a node yields, in
// order; 0 for an expression without an id.
func outputs(n sql.Node) []sql.ColumnId {
	of := func(exprs []sql.Expression) []sql.ColumnId {
		out := make([]sql.ColumnId, len(exprs))
		for i, e := range exprs {
			out[i] = idOf(e)
		}
		return out
	}
	switch n := n.(type) {
	case *gmsplan.Project:
		return of(n.Projections)
	case *gmsplan.GroupBy:
		return of(n.SelectedExprs)
	case *gmsplan.Window:
		return of(n.SelectExprs)
	case *gmsplan.JoinNode:
		l := outputs(n.Left())
		if n.Op.IsPartial() {
			return l
		}
		return append(l[:len(l):len(l)], outputs(n.Right())...)
	case *gmsplan.SetOp:
		return outputs(n.Left())
	case gmsplan.TableIdNode:
		return ids(n.Columns())
	}
	if c := n.Children(); len(c) == 1 {
		return outputs(c[0])
	}
	return nil
}

// inserted strips the projections with conversions that the binder puts under a
// set operation whose sides have different types: its conversions are not MySQL's.
func inserted(l, r sql.Node) (sql.Node, sql.Node) {
	lp, ok1 := l.(*gmsplan.Project)
	rp, ok2 := r.(*gmsplan.Project)
	if !ok1 || !ok2 || len(lp.Projections) != len(rp.Projections) {
		return l, r
	}
	converts := false
	for i := range lp.Projections {
		for _, e := range []sql.Expression{lp.Projections[i], rp.Projections[i]} {
			switch e := e.(type) {
			case *expression.GetField:
			case *expression.Alias:
				if e.Id() != 0 || e.Unreferencable() {
					return l, r
				}
				switch c := e.Child.(type) {
				case *expression.GetField:
				case *expression.Convert:
					if _, ok := c.Child.(*expression.GetField); !ok {
						return l, r
					}
					converts = true
				default:
					return l, r
				}
			default:
				return l, r
			}
		}
	}
	if !converts {
		return l, r
	}
	return lp.Child, rp.Child
}

// retype casts the columns of n to the types of cols.
func (t *translator) retype(n plan.Node, cols []plan.Column) plan.Node {
	have := n.Columns()
	items := make([]plan.Item, len(have))
	changed := false
	seen := map[plan.ColumnID]bool{}
	for i, c := range have {
		e := t.cast(reference(c), cols[i].Type)
		items[i] = plan.Item{Column: c, Expr: e}
		if _, kept := e.(*plan.Ref); !kept || seen[c.ID] {
			changed = true
			items[i].Column = plan.Column{ID: t.ids.New(), Name: c.Name, Type: e.Type(), Nullable: c.Nullable}
		}
		seen[c.ID] = true
	}
	if !changed {
		return n
	}
	return t.accept(&plan.Project{Input: n, Items: items})
}
