package bind

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

	"sqe/plan"
)

// choice is IF(c, a, b) with both results of one type.
func (t *translator) choice(c, a, b plan.Expr) plan.Expr {
	typ := unify(a.Type(), b.Type())
	return &plan.Case{Whens: []plan.When{{Cond: c, Then: t.cast(a, typ)}}, Else: t.cast(b, typ), Typ: typ}
}

// common calls a function whose arguments have one type.
func (t *translator) common(name string, args []sql.Expression) plan.Expr {
	out := make([]plan.Expr, len(args))
	var typ arrow.DataType = plan.Null
	for i, a := range args {
		out[i] = t.expr(a)
		typ = unify(typ, out[i].Type())
	}
	for i := range out {
		out[i] = t.cast(out[i], typ)
	}
	return t.call(name, out...)
}

// extreme is GREATEST and LEAST. MySQL compares mixed types in ways of their own.
func (t *translator) extreme(name string, args []sql.Expression) plan.Expr {
	var typ arrow.DataType = plan.Null
	for _, a := range args {
		u, ok := plan.CommonType(typ, t.expr(a).Type())
		if !ok {
			cannot(strings.ToUpper(name) + " of mixed types")
		}
		typ = u
	}
	return t.common(name, args)
}
