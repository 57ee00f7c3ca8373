package bind

import (
	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// same reports whether two expressions are equal by structure.
func same(a, b plan.Expr) bool {
	switch a := a.(type) {
	case *plan.Ref:
		b, ok := b.(*plan.Ref)
		return ok && a.ID == b.ID
	case *plan.Literal:
		b, ok := b.(*plan.Literal)
		if !ok || !arrow.TypeEqual(a.Typ, b.Typ) {
			return false
		}
		if x, isBytes := a.Value.([]byte); isBytes {
			y, _ := b.Value.([]byte)
			return string(x) == string(y)
		}
		return a.Value == b.Value
	case *plan.Call:
		b, ok := b.(*plan.Call)
		return ok && a.Func == b.Func && !a.Func.Volatile && sameAll(a.Operands, b.Operands)
	case *plan.RowCall:
		b, ok := b.(*plan.RowCall)
		return ok && !a.Volatile && !b.Volatile && a.Rows.Same(b.Rows) && sameAll(a.Operands, b.Operands)
	case *plan.Case:
		b, ok := b.(*plan.Case)
		return ok && len(a.Whens) == len(b.Whens) && (a.Else == nil) == (b.Else == nil) && sameAll(a.Args(), b.Args())
	case *plan.Cast:
		b, ok := b.(*plan.Cast)
		return ok && a.Try == b.Try && arrow.TypeEqual(a.Typ, b.Typ) && same(a.Operand, b.Operand)
	case *plan.In:
		b, ok := b.(*plan.In)
		return ok && sameAll(a.Args(), b.Args())
	case *plan.Like:
		b, ok := b.(*plan.Like)
		return ok && a.Escape == b.Escape && sameAll(a.Args(), b.Args())
	case *plan.Subquery:
		b, ok := b.(*plan.Subquery)
		return ok && a.Kind == b.Kind && sameAll(a.Args(), b.Args()) && plan.Deterministic(a) && !concise(a.Plan) && shape(a.Plan) == shape(b.Plan)
	}
	return a == b
}

func sameAll(a, b []plan.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

// shape is a text that is equal for plans that differ only in the ids of the
// columns that they make.
func shape(n plan.Node) string {
	var ids plan.IDs
	ids.Reserve(1 << 30) // beyond every id of a statement
	return plan.Format(plan.Renumber(n, &ids, nil))
}

// concise reports a plan that is not printed whole: of a binary literal the length is
// shown alone, and of what runs row by row the name.
func concise(n plan.Node) bool {
	found := false
	plan.Walk(n, func(n plan.Node) bool {
		for _, e := range n.Exprs() {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				switch e := e.(type) {
				case *plan.Literal:
					_, isBytes := e.Value.([]byte)
					found = found || isBytes
				case *plan.RowCall:
					found = true
				}
				return !found
			})
		}
		return !found
	})
	return found
}
