package bind

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/shopspring/decimal"

	"sqe/fault"
)

// maxText is the length, in bytes, that a value of the row executor may have: that
// of the other executor, and of a packet to the client.
const maxText = 16 << 20

// maxProduced is how many times its limit of bytes a statement may produce in
// values of functions that make their arguments longer. Sorting, grouping and
// variables may keep any of them.
const maxProduced = 4

// bounded is a call in the row executor whose result can be longer than its
// arguments: it fails before a value that is too long is made. go-mysql-server has
// no such bounds, and memory that the process cannot get ends the process.
type bounded struct {
	sql.Expression
	name string
}

// lengthens lists the functions whose results can be longer than their arguments.
var lengthens = func() map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(`
		repeat space lpad rpad replace concat concat_ws insert format char hex unhex quote to_base64 from_base64 upper ucase lower lcase
		json_array json_array_append json_array_insert json_insert json_merge json_merge_patch json_merge_preserve json_object json_pretty json_quote
		json_replace json_set json_search json_keys json_unquote group_concat random_bytes date_format time_format convert cast`) {
		out[n] = true
	}
	return out
}()

// collected is an argument of an aggregate that keeps it for its result. The rows of a
// join share their values; in the result each has its own.
type collected struct{ sql.Expression }

// WithChildren implements sql.Expression.
func (c *collected) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	e, err := c.Expression.WithChildren(children...)
	if err != nil {
		return nil, err
	}
	return &collected{e}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (c *collected) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, c.Expression)
}

// Eval implements sql.Expression.
func (c *collected) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	v, err := c.Expression.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	return v, stateOf(ctx).produce(maxProduced * sizeOf(v, 1<<40))
}

// bound wraps an expression of the row executor that can make its arguments
// longer, and the arguments of aggregates that collect them.
func bound(e sql.Expression) sql.Expression {
	switch e.(type) {
	case *bounded, *linearRegexp, *baseConversion:
		return e
	}
	switch e.(type) {
	case *aggregation.JsonArray, *aggregation.JSONObjectAgg:
		args := slices.Clone(e.Children())
		for i, a := range args {
			if _, again := a.(*collected); !again {
				args[i] = &collected{a}
			}
		}
		if out, err := e.WithChildren(args...); err == nil {
			return out
		}
	}
	if _, ok := e.(sql.Aggregation); ok {
		return e
	}
	f, ok := e.(sql.FunctionExpression)
	if !ok {
		return e
	}
	name := strings.ToLower(f.FunctionName())
	if _, ok := regexpArguments[name]; ok {
		return &linearRegexp{Expression: e, name: name}
	}
	if name == "conv" {
		return &baseConversion{e}
	}
	if lengthens[name] {
		return &bounded{Expression: e, name: name}
	}
	return e
}

// WithChildren implements sql.Expression.
func (b *bounded) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	e, err := b.Expression.WithChildren(children...)
	if err != nil {
		return nil, err
	}
	return &bounded{Expression: e, name: b.name}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (b *bounded) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, b.Expression)
}

// Eval implements sql.Expression.
func (b *bounded) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	children := b.Children()
	values := make([]any, len(children))
	constants := make([]sql.Expression, len(children))
	for i, c := range children {
		v, err := c.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		values[i], constants[i] = v, expression.NewLiteral(v, c.Type())
	}
	if needs, ok := b.length(ctx, values); ok && needs > maxText {
		return nil, errTooLong()
	}
	e, err := b.Expression.WithChildren(constants...)
	if err != nil {
		return nil, err
	}
	v, err := e.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	size := sizeOf(v, maxText+1)
	if size > maxText {
		return nil, errTooLong()
	}
	return v, stateOf(ctx).produce(size)
}

func errTooLong() error {
	return fault.New(fault.Limit, "a text result is longer than 16 MiB")
}

// length is how long the result will be in bytes, at least, for functions whose
// results are not bounded by the sum of their arguments or may be many times that.
// ok is false where that is not known, or one of the values is NULL.
func (b *bounded) length(ctx *sql.Context, values []any) (n int64, ok bool) {
	text := func(i int) (string, bool) {
		if i >= len(values) || values[i] == nil {
			return "", false
		}
		s, err := textOf(ctx, values[i])
		return s, err == nil
	}
	number := func(i int) (int64, bool) {
		if i >= len(values) || values[i] == nil {
			return 0, false
		}
		// Out of range becomes the largest number, text that is none 0.
		v, _, err := types.Float64.Convert(ctx, values[i])
		f, isFloat := v.(float64)
		if !isFloat || err != nil && f == 0 {
			return 0, false
		}
		return int64(min(max(f, 0), 1<<40)), true
	}
	switch b.name {
	case "repeat":
		s, isText := text(0)
		n, isNumber := number(1)
		return int64(len(s)) * min(n, maxText+1), isText && isNumber
	case "space":
		return number(0)
	case "lpad", "rpad":
		return number(1)
	case "replace":
		s, ok1 := text(0)
		from, ok2 := text(1)
		to, ok3 := text(2)
		if !ok1 || !ok2 || !ok3 {
			return 0, false
		}
		if from == "" {
			return int64(len(s)), true
		}
		return int64(len(s)) + int64(strings.Count(s, from))*int64(len(to)-len(from)), true
	}
	for _, v := range values {
		n += sizeOf(v, maxText+1)
	}
	return n, b.name == "concat" || b.name == "concat_ws"
}

// sizeOf is about how many bytes a value takes as text. It stops counting at most.
func sizeOf(v any, most int64) int64 {
	switch v := v.(type) {
	case string:
		return int64(len(v))
	case []byte:
		return int64(len(v))
	case []any:
		n := int64(2)
		for _, x := range v {
			if n += 2 + sizeOf(x, most-n); n > most {
				break
			}
		}
		return n
	case map[string]any:
		n := int64(2)
		for k, x := range v {
			if n += int64(len(k)) + 6 + sizeOf(x, most-n); n > most {
				break
			}
		}
		return n
	case sql.JSONWrapper:
		x, err := v.ToInterface()
		if err != nil {
			return 0
		}
		if _, again := x.(sql.JSONWrapper); again {
			return most
		}
		return sizeOf(x, most)
	}
	return 8
}

// produce counts what functions of the row executor made in this statement.
func (st *statement) produce(n int64) error {
	st.produced += n
	if st.limits.Bytes > 0 && st.produced/maxProduced > st.limits.Bytes {
		return exceeded(st.limits, 0, st.produced)
	}
	return st.rows.add(n / maxProduced)
}

// boundedSession is the library's session with a bound on what user variables hold.
type boundedSession struct {
	*sql.BaseSession
	sizes map[string]int64
}

// maxVariables is how many bytes the user variables of a session may hold.
const maxVariables = 4 * maxText

// SetUserVariable implements sql.Session.
func (s *boundedSession) SetUserVariable(ctx *sql.Context, name string, value any, typ sql.Type) error {
	key := strings.ToLower(name)
	total := int64(len(key)) + 64 + sizeOf(value, maxVariables)
	size := total
	for k, n := range s.sizes {
		if k != key {
			total += n
		}
	}
	if total > maxVariables {
		return fault.New(fault.Limit, "the user variables of a session hold at most 64 MiB; set some to NULL that are no longer used")
	}
	s.sizes[key] = size
	return s.BaseSession.SetUserVariable(ctx, name, value, typ)
}

// noSelectLimit is the value of sql_select_limit that bounds nothing: the library's
// default, which it compares with.
const noSelectLimit = int64(math.MaxInt32)

// SetSessionVariable implements sql.Session. Tools lift sql_select_limit by setting it
// to MySQL's default, which does not fit the library's type, or to any other number that
// no answer reaches.
func (s *boundedSession) SetSessionVariable(ctx *sql.Context, name string, value any) error {
	if strings.EqualFold(name, "sql_select_limit") {
		if n, err := decimal.NewFromString(fmt.Sprint(value)); err == nil && n.GreaterThan(decimal.NewFromInt(noSelectLimit)) {
			value = noSelectLimit
		}
	}
	return s.BaseSession.SetSessionVariable(ctx, name, value)
}

// boundedCasts refuses CAST to a text of a length that no value may have:
// BINARY(n) is padded to it.
func boundedCasts(ast sqlparser.SQLNode) error {
	var err error
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if t, ok := n.(*sqlparser.ConvertType); ok && t.Length != nil {
			if v, convErr := strconv.ParseInt(string(t.Length.Val), 10, 64); convErr != nil || v > maxText {
				err = fault.New(fault.Limit, "CAST to a length of more than 16 MiB is not possible")
			}
		}
		return err == nil, nil
	}, ast)
	return err
}
