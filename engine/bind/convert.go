package bind

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"sqe/fault"
	"sqe/plan"
)

// convert translates CAST and CONVERT.
func (t *translator) convert(e *expression.Convert) plan.Expr {
	// The target shows in the text only: convert(child, type(length,scale)).
	target := strings.TrimSuffix(strings.TrimPrefix(e.String(), "convert("+e.Child.String()+", "), ")")
	name, params, _ := strings.Cut(target, "(")
	x := t.expr(e.Child)
	from := x.Type()
	var length, scale int64
	if params != "" {
		l, s, _ := strings.Cut(strings.TrimSuffix(params, ")"), ",")
		length, _ = strconv.ParseInt(l, 10, 64)
		scale, _ = strconv.ParseInt(s, 10, 64)
	}
	if from.ID() == arrow.NULL {
		to, ok := arrowType(e.Type())
		if !ok {
			cannot("this CAST")
		}
		return null(to)
	}
	switch strings.ToLower(name) {
	case expression.ConvertToChar, expression.ConvertToNChar:
		s := t.cast(x, plan.String)
		if length > 0 {
			s = t.call("left", s, integer(length))
		}
		return s
	case expression.ConvertToBinary:
		if length > 0 {
			cannot("CAST AS BINARY(n)")
		}
		return t.cast(x, plan.Binary)
	case expression.ConvertToDate:
		return t.toDate(x)
	case expression.ConvertToDatetime:
		return t.toTimestamp(x)
	case expression.ConvertToSigned:
		if text := t.textColumn(x); text != nil {
			return &plan.Cast{Operand: text, Typ: plan.Int64}
		}
		x = t.castNumber(x)
		if plan.IsInteger(x.Type()) {
			return t.cast(x, plan.Int64)
		}
		// Rounds half away from zero.
		return &plan.Cast{Operand: t.call("round", x, integer(0)), Typ: plan.Int64}
	case expression.ConvertToDecimal:
		if length == 0 {
			length = 10
		}
		if length > 38 {
			refuse(fault.Unsupported, "DECIMAL has at most 38 digits")
		}
		to := plan.Decimal(int32(length), int32(scale))
		if text := t.textColumn(x); text != nil {
			return &plan.Cast{Operand: text, Typ: to}
		}
		x = t.castNumber(x)
		if l, ok := x.(*plan.Literal); ok {
			if c, ok := castLiteral(l, to); ok {
				return c
			}
		}
		if !plan.IsInteger(x.Type()) {
			x = t.call("round", x, integer(scale))
		}
		return &plan.Cast{Operand: x, Typ: to}
	case expression.ConvertToDouble, expression.ConvertToReal:
		if text := t.textColumn(x); text != nil {
			return &plan.Cast{Operand: text, Typ: plan.Float64}
		}
		return t.cast(t.castNumber(x), plan.Float64)
	case expression.ConvertToFloat:
		return t.cast(t.cast(t.castNumber(x), plan.Float64), plan.Float32)
	case expression.ConvertToJSON:
		return t.argument('j', "CAST AS JSON", x)
	}
	cannot("CAST AS " + strings.ToUpper(name))
	return nil
}

// textColumn is a text that is no literal; nil for another value. CAST of it to a
// number fails where it is none: MySQL's warning could tell of rows that nobody sees.
func (t *translator) textColumn(x plan.Expr) plan.Expr {
	if _, constant := x.(*plan.Literal); constant || !plan.IsString(x.Type()) {
		return nil
	}
	return x
}

// castNumber is the number that CAST reads from a value.
func (t *translator) castNumber(x plan.Expr) plan.Expr {
	if l, ok := x.(*plan.Literal); ok && plan.IsString(l.Typ) && l.Value != nil {
		if n, ok := parseNumber(l.Value.(string)); ok {
			return n
		}
		refuse(fault.BadStatement, "CAST of a text that is no number; MySQL would use the number at its beginning and warn")
	}
	return t.number(x, "CAST")
}
