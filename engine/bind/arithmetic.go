package bind

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"sqe/plan"
)

func (t *translator) arithmetic(e *expression.Arithmetic) plan.Expr {
	if i, ok := e.RightChild.(*expression.Interval); ok {
		return t.addInterval(e.LeftChild, i, e.Op == "-")
	}
	if i, ok := e.LeftChild.(*expression.Interval); ok && e.Op == "+" {
		return t.addInterval(e.RightChild, i, false)
	}
	names := map[string]string{"+": "add", "-": "sub", "*": "mul"}
	name, ok := names[e.Op]
	if !ok {
		cannot("the operator " + e.Op)
	}
	l, r := exactLiterals(t.number(t.expr(e.LeftChild), e.Op), t.number(t.expr(e.RightChild), e.Op))
	if x, ok := foldIntegers(name, l, r); ok {
		return x
	}
	return t.call(name, l, r)
}

// foldIntegers computes +, - and * of integer literals that do not overflow.
func foldIntegers(name string, l, r plan.Expr) (plan.Expr, bool) {
	a, ok1 := l.(*plan.Literal)
	b, ok2 := r.(*plan.Literal)
	if !ok1 || !ok2 {
		return nil, false
	}
	x, ok1 := a.Value.(int64)
	y, ok2 := b.Value.(int64)
	const small = 1 << 31
	if !ok1 || !ok2 || x >= small || x <= -small || y >= small || y <= -small {
		return nil, false
	}
	switch name {
	case "add":
		return integer(x + y), true
	case "sub":
		return integer(x - y), true
	default:
		return integer(x * y), true
	}
}

// exactLiterals gives an integer literal beside a decimal the digits that it has:
// as a BIGINT it would count as 19.
func exactLiterals(l, r plan.Expr) (plan.Expr, plan.Expr) {
	narrow := func(x, other plan.Expr) plan.Expr {
		lit, ok := x.(*plan.Literal)
		if !ok || !arrow.IsDecimal(other.Type().ID()) || !plan.IsInteger(lit.Typ) {
			return x
		}
		if d, ok := decimalOf(lit); ok {
			if n, ok := decimalLiteral(d); ok {
				return n
			}
		}
		return x
	}
	return narrow(l, r), narrow(r, l)
}
