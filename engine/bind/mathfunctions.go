package bind

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

	"sqe/plan"
)

// round is ROUND and TRUNCATE. The number of places is a literal, and narrows the
// scale of a decimal.
func (t *translator) round(name string, args []sql.Expression) plan.Expr {
	x := t.number(t.expr(args[0]), strings.ToUpper(name))
	places := int64(0)
	if len(args) > 1 {
		l, ok := t.expr(args[1]).(*plan.Literal)
		if !ok {
			cannot(strings.ToUpper(name) + " with places that are no literal")
		}
		if l.Value == nil {
			return null(x.Type())
		}
		if places, ok = l.Value.(int64); !ok {
			cannot(strings.ToUpper(name) + " with places that are no integer")
		}
	}
	r := t.call(name, x, integer(places))
	if !arrow.IsDecimal(x.Type().ID()) {
		return r
	}
	p, s := plan.DecimalParams(x.Type())
	to := int32(max(places, 0))
	if to >= s {
		return r
	}
	// One more digit before the point: 9.99 rounds to 10.0.
	return &plan.Cast{Operand: r, Typ: plan.Decimal(min(38, max(p-s+to+1, 1)), to)}
}

func (t *translator) logarithm(e sql.Expression, args []sql.Expression) plan.Expr {
	a := make([]plan.Expr, len(args))
	for i, x := range args {
		a[i] = t.argument('d', "log", t.expr(x))
	}
	switch s := strings.ToLower(e.String()); {
	case len(a) == 2:
		return t.call("log", a...)
	case len(a) == 1 && strings.HasPrefix(s, "log2("):
		return t.call("log2", a...)
	case len(a) == 1 && strings.HasPrefix(s, "log10("):
		return t.call("log10", a...)
	case len(a) == 1:
		return t.call("ln", a...)
	}
	cannot("this form of LOG")
	return nil
}
