package duck

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// grouped begins a block over in that computes over many rows: nothing may be
// added to it but its columns.
func (c *compiler) grouped(in plan.Node) (*block, error) {
	b, err := c.input(in)
	if err != nil {
		return nil, err
	}
	if !b.bare() {
		b = c.wrap(b)
	}
	b.closed = true
	b.items = []string{}
	return b, nil
}

func (c *compiler) aggregate(n *plan.Aggregate) (*block, error) {
	b, err := c.grouped(n.Input)
	if err != nil {
		return nil, err
	}
	var group []string
	seen := map[plan.ColumnID]bool{}
	for _, k := range n.Keys {
		if seen[k.ID] {
			continue
		}
		seen[k.ID] = true
		s, err := c.as(k.Expr, k.Type)
		if err != nil {
			return nil, err
		}
		b.items = append(b.items, s+" AS "+columnName(k.ID))
		group = append(group, itoa(len(b.items)))
	}
	for _, a := range n.Aggs {
		s, err := c.aggregateCall(a.Call, a.Type, "")
		if err != nil {
			return nil, err
		}
		b.items = append(b.items, s+" AS "+columnName(a.ID))
	}
	if len(b.items) == 0 {
		b.items = []string{"count(*) AS none"}
	}
	if len(group) > 0 {
		b.group = " GROUP BY " + strings.Join(group, ", ")
	}
	return b, nil
}

// aggregateCall writes an aggregate; over is "" or the text of an OVER clause.
func (c *compiler) aggregateCall(a plan.AggCall, t arrow.DataType, over string) (string, error) {
	st, err := sqlType(t)
	if err != nil {
		return "", err
	}
	refuse := func() (string, error) {
		types := make([]string, len(a.Args))
		for i, x := range a.Args {
			types[i] = typeName(x.Type())
		}
		return "", fault.New(fault.Unsupported, "the function %s cannot be computed for (%s)", a.Func.Name, strings.Join(types, ", "))
	}
	if a.Distinct && over != "" {
		return "", fault.New(fault.Unsupported, "%s(DISTINCT) cannot be used with OVER", a.Func.Name)
	}
	args, err := c.exprs(a.Args)
	if err != nil {
		return "", err
	}
	distinct := ""
	if a.Distinct {
		distinct = "DISTINCT "
	}
	call := func(name string, args ...string) string {
		return name + "(" + distinct + strings.Join(args, ", ") + ")" + over
	}
	arg := func(i int) arrow.DataType { return a.Args[i].Type() }
	number := func(to arrow.DataType) (string, error) {
		if len(a.Args) != 1 || (!plan.IsNumeric(arg(0)) && arg(0).ID() != arrow.BOOL && !isNull(arg(0))) {
			return refuse()
		}
		return castExpr(args[0], arg(0), to, false)
	}
	switch a.Func.Name {
	case "count":
		switch {
		case len(args) == 0:
			return "count(*)" + over, nil
		case len(args) == 1:
			return call("count", args[0]), nil
		case a.Distinct:
			// Rows in which any argument is NULL do not count.
			nulls := make([]string, len(args))
			for i, x := range args {
				nulls[i] = x + " IS NOT NULL"
			}
			return call("count", "CASE WHEN "+strings.Join(nulls, " AND ")+" THEN row("+strings.Join(args, ", ")+") END"), nil
		}
	case "sum":
		if isFloat(t) {
			x, err := number(plan.Float64)
			return finite(call("sum", x)), err
		}
		d, ok := t.(*arrow.Decimal128Type)
		if !ok {
			return refuse()
		}
		p, s := int32(19), int32(0)
		if isDecimal(arg(0)) {
			p, s = plan.DecimalParams(arg(0))
		}
		if s != d.Scale {
			return refuse()
		}
		if !isDecimal(arg(0)) {
			x, err := number(plan.Int64)
			return cast(call("sum", x), st), err
		}
		x, err := number(plan.Decimal(p, s))
		return cast(call("sum", x), st), err
	case "avg":
		if isFloat(t) {
			x, err := number(plan.Float64)
			return finite(call("avg", x)), err
		}
		if isDecimal(arg(0)) {
			p, s := plan.DecimalParams(arg(0))
			x, err := number(plan.Decimal(p, s))
			if err != nil {
				return "", err
			}
			return quotient(unscaled(call("sum", x), s), cast(call("count", x), "HUGEINT"), s, t)
		}
		x, err := number(plan.Int64)
		if err != nil {
			return "", err
		}
		return quotient(cast(call("sum", x), "HUGEINT"), cast(call("count", x), "HUGEINT"), 0, t)
	case "min", "max":
		if len(args) != 1 {
			return refuse()
		}
		if _, err := comparison(arg(0)); err != nil {
			return refuse()
		}
		return cast(a.Func.Name+"("+args[0]+")"+over, st), nil
	case "any_value":
		if len(args) == 1 {
			return cast("any_value("+args[0]+")"+over, st), nil
		}
	case "stddev_pop", "stddev_samp", "var_pop", "var_samp":
		x, err := number(plan.Float64)
		return finite(call(a.Func.Name, x)), err
	case "bit_and", "bit_or", "bit_xor":
		if len(args) != 1 || !plan.IsInteger(arg(0)) {
			return refuse()
		}
		x, err := number(plan.Int64)
		if err != nil {
			return "", err
		}
		empty := "0"
		if a.Func.Name == "bit_and" {
			// MySQL gives 2^64-1, which is unsigned.
			empty = "-1"
		}
		return "coalesce(" + call(a.Func.Name, x) + ", " + cast(quote(empty), "BIGINT") + ")", nil
	case "group_concat":
		return c.groupConcat(a, args, over, refuse)
	case "json_arrayagg":
		if len(args) != 1 || over != "" || a.Distinct {
			return refuse()
		}
		x, err := jsonValue(args[0], arg(0))
		return "CASE WHEN count(*) > 0 THEN cast(json_group_array(" + x + ") AS VARCHAR) END", err
	case "json_objectagg":
		// MySQL keeps the last value of a key, in an order that is not defined.
		return refuse()
	}
	return refuse()
}

func (c *compiler) groupConcat(a plan.AggCall, args []string, over string, refuse func() (string, error)) (string, error) {
	if len(args) != 1 || over != "" {
		return refuse()
	}
	x, err := toText(args[0], a.Args[0].Type())
	if err != nil {
		return "", err
	}
	sep, err := text(a.Sep)
	if err != nil {
		return "", err
	}
	distinct := ""
	if a.Distinct {
		distinct = "DISTINCT "
	}
	order := ""
	if len(a.OrderBy) > 0 {
		keys, err := c.sortKeys(a.OrderBy)
		if err != nil {
			return "", err
		}
		if a.Distinct {
			// DuckDB orders distinct values only by themselves.
			for _, k := range a.OrderBy {
				s, err := c.expr(k.Expr)
				if err != nil {
					return "", err
				}
				if s != args[0] || s != x {
					return "", fault.New(fault.Unsupported, "GROUP_CONCAT(DISTINCT) can be ordered only by its own argument")
				}
			}
		}
		if len(keys) > 0 {
			order = " ORDER BY " + strings.Join(keys, ", ")
		}
	}
	return "string_agg(" + distinct + x + ", " + sep + order + ")", nil
}

func (c *compiler) window(n *plan.Window) (*block, error) {
	b, err := c.grouped(n.Input)
	if err != nil {
		return nil, err
	}
	for _, col := range unique(n.Input.Columns()) {
		b.items = append(b.items, columnName(col.ID))
	}
	for _, it := range n.Items {
		s, err := c.windowCall(it)
		if err != nil {
			return nil, err
		}
		b.items = append(b.items, s+" AS "+columnName(it.ID))
	}
	return b, nil
}

func (c *compiler) windowCall(w plan.WindowItem) (string, error) {
	over, err := c.over(w)
	if err != nil {
		return "", err
	}
	if w.Call.Func.Kind == plan.AggregateFunction {
		return c.aggregateCall(w.Call, w.Type, over)
	}
	st, err := sqlType(w.Type)
	if err != nil {
		return "", err
	}
	args, err := c.exprs(w.Call.Args)
	if err != nil {
		return "", err
	}
	name := w.Call.Func.Name
	switch name {
	case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist":
		args = nil
	case "ntile":
		if n, err := positive(w.Call, 0); err != nil {
			return "", err
		} else if n == 0 {
			return "", fault.New(fault.BadStatement, "Incorrect arguments to ntile")
		}
	case "lag", "lead":
		if len(args) > 1 {
			n, err := positive(w.Call, 1)
			if err != nil {
				return "", err
			}
			args[1] = itoa(int(n))
		}
		if len(args) > 2 {
			if args[2], err = c.as(w.Call.Args[2], w.Call.Args[0].Type()); err != nil {
				return "", err
			}
		}
	case "first_value", "last_value":
	case "nth_value":
		n, err := positive(w.Call, 1)
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", fault.New(fault.BadStatement, "Incorrect arguments to nth_value")
		}
		args[1] = itoa(int(n))
	default:
		return "", fault.New(fault.Unsupported, "the window function %s cannot be computed", name)
	}
	return cast(name+"("+strings.Join(args, ", ")+")"+over, st), nil
}

// positive is a literal argument that is an integer, not negative.
func positive(a plan.AggCall, i int) (int64, error) {
	if l, ok := a.Args[i].(*plan.Literal); ok {
		if n, ok := l.Value.(int64); ok && n >= 0 {
			return n, nil
		}
	}
	return 0, fault.New(fault.Unsupported, "argument %d of the window function %s must be a constant integer that is not negative", i+1, a.Func.Name)
}

func (c *compiler) over(w plan.WindowItem) (string, error) {
	var parts []string
	if len(w.PartitionBy) > 0 {
		keys, err := c.exprs(w.PartitionBy)
		if err != nil {
			return "", err
		}
		parts = append(parts, "PARTITION BY "+strings.Join(keys, ", "))
	}
	keys, err := c.sortKeys(w.OrderBy)
	if err != nil {
		return "", err
	}
	if len(keys) > 0 {
		parts = append(parts, "ORDER BY "+strings.Join(keys, ", "))
	}
	if w.Frame != nil {
		unit := "RANGE"
		if w.Frame.Rows {
			unit = "ROWS"
		}
		start, err := c.bound(w, w.Frame.Start)
		if err != nil {
			return "", err
		}
		end, err := c.bound(w, w.Frame.End)
		if err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("%s BETWEEN %s AND %s", unit, start, end))
	}
	return " OVER (" + strings.Join(parts, " ") + ")", nil
}

func (c *compiler) bound(w plan.WindowItem, b plan.Bound) (string, error) {
	word := ""
	switch b.Kind {
	case plan.UnboundedPreceding:
		return "UNBOUNDED PRECEDING", nil
	case plan.UnboundedFollowing:
		return "UNBOUNDED FOLLOWING", nil
	case plan.CurrentRow:
		return "CURRENT ROW", nil
	case plan.Preceding:
		word = " PRECEDING"
	case plan.Following:
		word = " FOLLOWING"
	}
	l, ok := b.Offset.(*plan.Literal)
	if !ok || word == "" {
		return "", fault.New(fault.Unsupported, "the frame of a window must have constant bounds")
	}
	if n, ok := l.Value.(int64); ok {
		if n < 0 {
			return "", fault.New(fault.BadStatement, "the frame of a window has a negative bound")
		}
		if w.Frame.Rows {
			return itoa(int(n)) + word, nil
		}
	}
	if w.Frame.Rows || len(w.OrderBy) != 1 || !plan.IsNumeric(w.OrderBy[0].Expr.Type()) || !plan.IsNumeric(l.Typ) {
		return "", fault.New(fault.Unsupported, "a RANGE frame needs one numeric ORDER BY key and numeric bounds")
	}
	s, err := c.expr(l)
	return s + word, err
}
