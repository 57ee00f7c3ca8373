package bind

import (
	"github.com/dolthub/go-mysql-server/sql"

	"sqe/fault"
	"sqe/plan"
)

// distinct translates DISTINCT. The binder puts ORDER BY below it, where its
// order would be lost: it moves above.
func (t *translator) distinct(child sql.Node) plan.Node {
	in := t.node(child)
	p, ok := in.(*plan.Project)
	if !ok {
		return t.accept(&plan.Distinct{Input: in})
	}
	s, ok := p.Input.(*plan.Sort)
	if !ok {
		return t.accept(&plan.Distinct{Input: in})
	}
	made := map[plan.ColumnID]bool{}
	for _, it := range p.Items {
		made[it.ID] = true
	}
	keys := make([]plan.SortKey, len(s.Keys))
	for i, k := range s.Keys {
		keys[i] = k
		for _, it := range p.Items {
			if same(it.Expr, k.Expr) {
				keys[i].Expr = reference(it.Column)
				break
			}
		}
		plan.WalkExpr(keys[i].Expr, func(e plan.Expr) bool {
			if r, ok := e.(*plan.Ref); ok && !made[r.ID] {
				refuse(fault.BadStatement, "an ORDER BY expression is not in the SELECT list, which DISTINCT needs")
			}
			return true
		})
	}
	d := t.accept(&plan.Distinct{Input: &plan.Project{Input: s.Input, Items: p.Items}})
	return t.accept(&plan.Sort{Input: d, Keys: keys})
}

func (t *translator) sort(in plan.Node, fields sql.SortFields) plan.Node {
	var keys []plan.SortKey
	for _, f := range fields {
		e := t.expr(f.Column)
		if _, constant := e.(*plan.Literal); constant {
			continue
		}
		keys = append(keys, sortKey(e, f.Order == sql.Descending))
	}
	if len(keys) == 0 {
		return in
	}
	return t.accept(&plan.Sort{Input: in, Keys: keys})
}

// sortKey is a key in MySQL's order: NULL first ascending, last descending.
func sortKey(e plan.Expr, desc bool) plan.SortKey {
	return plan.SortKey{Expr: e, Desc: desc, NullsFirst: !desc}
}

// limit puts a Limit on in, below a Project so that it stays beside its Sort.
func (t *translator) limit(in plan.Node, count, offset int64) plan.Node {
	switch in := in.(type) {
	case *plan.Project:
		if _, isScan := in.Input.(*plan.Scan); !isScan {
			return t.accept(&plan.Project{Input: t.limit(in.Input, count, offset), Items: in.Items})
		}
	case *plan.Limit:
		// OFFSET comes as a node of its own below LIMIT.
		if in.Count < 0 && offset == 0 {
			return t.accept(&plan.Limit{Input: in.Input, Count: count, Offset: in.Offset})
		}
	}
	return t.accept(&plan.Limit{Input: in, Count: count, Offset: offset})
}

// count is the value of LIMIT or OFFSET.
func (t *translator) count(e sql.Expression) int64 {
	l, ok := t.expr(e).(*plan.Literal)
	if ok {
		if i, isInt := l.Value.(int64); isInt && i >= 0 {
			return i
		}
	}
	refuse(fault.BadStatement, "LIMIT and OFFSET take a number that is not negative")
	return 0
}
