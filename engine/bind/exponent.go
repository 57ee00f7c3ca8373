package bind

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"sqe/fault"
)

// exponent is a text where the row executor takes it for a number. The library
// writes out a decimal with all its zeros, so that '1e9999999' takes minutes and
// '1e2147483647' the memory of the machine, and nothing interrupts it.
type exponent struct{ sql.Expression }

// hugeExponent matches numbers beyond every type of MySQL.
var hugeExponent = regexp.MustCompile(`^[\s\x00]*[-+]?[0-9.]+[eE][-+]?0*[1-9][0-9]{3}`)

// numeric lists functions that take a text argument for a DECIMAL.
var numeric = map[string]bool{
	"round": true, "abs": true, "ceil": true, "ceiling": true, "floor": true, "sign": true, "format": true, "mod": true, "div": true, "greatest": true,
	"least": true, "sum": true, "avg": true, "pow": true, "power": true, "exp": true, "sqrt": true, "conv": true, "bin": true, "truncate": true, "interval": true,
}

// checkExponents looks at the texts that an expression takes for numbers.
func checkExponents(e sql.Expression) (sql.Expression, error) {
	children := e.Children()
	takes := false
	switch x := e.(type) {
	case *expression.Convert:
		if types.IsNumber(x.Type()) && len(children) == 1 && types.IsText(children[0].Type()) {
			return e.WithChildren(&castText{UnaryExpression: expression.UnaryExpression{Child: children[0]}, to: x.Type()})
		}
	case *expression.Alias, *argumentOf, expression.Tuple, *expression.SetField, *expression.CollatedExpression:
	case *expression.IsNull, *expression.ConvertUsing, *expression.Binary, *expression.Like: // text stays text
	case *expression.Case:
		takes = x.Expr != nil
	case sql.FunctionExpression:
		name := strings.ToLower(x.FunctionName())
		takes = numeric[name] || name == "nullif" && mixed(children) // it compares
	default:
		takes = mixed(children)
	}
	if !takes {
		return e, nil
	}
	out, changed := make([]sql.Expression, len(children)), false
	for i, c := range children {
		var did bool
		out[i], did = guardText(c)
		changed = changed || did
	}
	if !changed {
		return e, nil
	}
	return e.WithChildren(out...)
}

func guardText(e sql.Expression) (sql.Expression, bool) {
	if t, ok := e.(expression.Tuple); ok {
		out, changed := make(expression.Tuple, len(t)), false
		for i, c := range t {
			var did bool
			out[i], did = guardText(c)
			changed = changed || did
		}
		return out, changed
	}
	if _, sub := e.(sql.Aggregation); sub || !types.IsText(e.Type()) {
		return e, false
	}
	switch e.(type) {
	case *expression.GetField, *expression.Literal, *expression.UserVar, *expression.Convert, *bounded, sql.FunctionExpression, *expression.Case:
		return &exponent{e}, true
	}
	return e, false
}

// mixed reports whether something else than text stands beside text.
func mixed(list []sql.Expression) bool {
	text, other := false, len(list) == 1
	var visit func([]sql.Expression)
	visit = func(list []sql.Expression) {
		for _, e := range list {
			if t, ok := e.(expression.Tuple); ok {
				visit(t)
			} else if types.IsText(e.Type()) {
				text = true
			} else {
				other = true
			}
		}
	}
	visit(list)
	return text && other
}

// Children implements sql.Expression. What is guarded may be a column itself,
// which the library must find: it says there which value of the row it is.
func (x *exponent) Children() []sql.Expression { return []sql.Expression{x.Expression} }

// WithChildren implements sql.Expression.
func (x *exponent) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	if len(children) != 1 {
		return nil, sql.ErrInvalidChildrenNumber.New(x, len(children), 1)
	}
	return &exponent{children[0]}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (x *exponent) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, x.Expression)
}

// Eval implements sql.Expression.
func (x *exponent) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	v, err := x.Expression.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	huge := false
	switch v := v.(type) {
	case string:
		huge = hugeExponent.MatchString(v)
	case []byte:
		huge = hugeExponent.Match(v)
	}
	if huge {
		return nil, fault.New(fault.OutOfRange, "a text that is taken for a number has an exponent that no number may have")
	}
	return v, nil
}

// castText is a text of which CAST makes a number. go-mysql-server takes what is none
// for 0 and wraps what is out of range around.
type castText struct {
	expression.UnaryExpression
	to sql.Type
}

var castSyntax = regexp.MustCompile(`^[ \t\n\v\f\r]*([-+]?)([0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]{1,4})?[ \t\n\v\f\r]*$`)

// Type implements sql.Expression.
func (c *castText) Type() sql.Type { return c.Child.Type() }

// String implements sql.Expression.
func (c *castText) String() string { return c.Child.String() }

// CollationCoercibility implements sql.CollationCoercible.
func (c *castText) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, c.Child)
}

// WithChildren implements sql.Expression.
func (c *castText) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	if len(children) != 1 {
		return nil, sql.ErrInvalidChildrenNumber.New(c, len(children), 1)
	}
	return &castText{UnaryExpression: expression.UnaryExpression{Child: children[0]}, to: c.to}, nil
}

// Eval implements sql.Expression.
func (c *castText) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	v, err := c.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	s, err := textOf(ctx, v)
	if err != nil {
		return nil, err
	}
	m := castSyntax.FindStringSubmatch(s)
	if m == nil || m[2] == "" && len(m[3]) < 2 {
		return nil, errCast
	}
	s = strings.TrimSpace(s)
	switch {
	case types.IsFloat(c.to):
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return nil, errCast
		}
		return s, nil
	case types.IsDecimal(c.to):
		d, err := decimal.NewFromString(s)
		to, ok := c.to.(sql.DecimalType)
		if err != nil || !ok || d.Round(int32(to.Scale())).Abs().Cmp(decimal.New(1, int32(to.Precision())-int32(to.Scale()))) >= 0 {
			return nil, errCast
		}
		return s, nil
	}
	// MySQL stops at the point.
	n, ok := new(big.Int).SetString(m[1]+"0"+m[2], 10)
	if !ok || !n.IsInt64() && !(types.IsUnsigned(c.to) && n.IsUint64()) {
		return nil, errCast
	}
	return n.String(), nil
}

var errCast = fault.New(fault.OutOfRange, "a text is no number, date or time, or is out of the range of the type that it is converted to")
