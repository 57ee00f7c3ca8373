package bind

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation/window"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
	"sqe/plan"
)

// groupBy translates an aggregation. The binder lists the aggregates and the
// columns that something above uses; which of these are functions of the group is
// seen only when that was translated (finish).
func (t *translator) groupBy(in plan.Node, n *gmsplan.GroupBy) plan.Node {
	g := &grouping{translator: t, out: &plan.Aggregate{Input: in}, input: map[plan.ColumnID]plan.Column{}, picked: map[plan.ColumnID]plan.Column{}}
	for _, c := range in.Columns() {
		g.input[c.ID] = c
	}
	for _, e := range n.GroupByExprs {
		g.key(e, len(n.GroupByExprs) > 1)
	}
	// What stands above refers to the output, so the meaning of ids changes only
	// after every expression below was translated.
	columns := make([]plan.Column, len(n.SelectedExprs))
	for i, e := range n.SelectedExprs {
		columns[i] = g.selected(e)
	}
	// A grouping expression may be written again above, over columns that are
	// picked: it is the key there.
	for _, k := range g.out.Keys {
		if _, isRef := k.Expr.(*plan.Ref); isRef {
			continue
		}
		t.scope.keys = append(t.scope.keys, groupKey{expr: mapRefs(k.Expr, g.pick), col: k.Column})
	}
	// Every column of the input that may be named above now means its value in the
	// group.
	for id, c := range t.scope.cols {
		if p, ok := g.picked[c.ID]; ok {
			t.scope.cols[id] = p
		}
	}
	for i, e := range n.SelectedExprs {
		t.define(idOf(e), columns[i])
	}
	return t.accept(g.out)
}

// grouping is an aggregation that is being translated.
type grouping struct {
	*translator
	out   *plan.Aggregate
	input map[plan.ColumnID]plan.Column
	// picked are the columns of the output for those of the input that are no keys.
	picked map[plan.ColumnID]plan.Column
}

// key adds a grouping expression. A constant beside others groups nothing.
func (g *grouping) key(e sql.Expression, others bool) {
	x := g.expr(e)
	if _, constant := x.(*plan.Literal); constant && others {
		return
	}
	if _, known := g.keyOf(x); known {
		return
	}
	column := g.columnOf(x, displayName(e))
	if r, ok := x.(*plan.Ref); ok {
		if c, own := g.input[r.ID]; own {
			column = c
		}
	}
	g.out.Keys = append(g.out.Keys, plan.Item{Column: column, Expr: x})
}

// keyOf is the key that an expression over the input is.
func (g *grouping) keyOf(x plan.Expr) (plan.Column, bool) {
	for _, k := range g.out.Keys {
		if same(k.Expr, x) {
			return k.Column, true
		}
	}
	return plan.Column{}, false
}

// pick is what a column of the input is in the output: a key, or the value of any row of
// the group.
func (g *grouping) pick(r *plan.Ref) plan.Expr {
	for _, k := range g.out.Keys {
		if kr, ok := k.Expr.(*plan.Ref); ok && kr.ID == r.ID {
			return reference(k.Column)
		}
	}
	c, own := g.input[r.ID]
	if !own {
		return r // a column of an enclosing query
	}
	p, ok := g.picked[r.ID]
	if !ok {
		f, _ := plan.Lookup("any_value")
		p = plan.Column{ID: g.ids.New(), Name: c.Name, Type: c.Type, Nullable: true}
		g.picked[r.ID] = p
		g.out.Aggs = append(g.out.Aggs, plan.AggItem{Column: p, Call: plan.AggCall{Func: f, Args: []plan.Expr{reference(c)}}})
		if g.implicit == nil {
			g.implicit = map[plan.ColumnID]string{}
		}
		g.implicit[p.ID] = c.Name
	}
	return reference(p)
}

// selected is the column of the output for an expression that the binder lists: an
// aggregate, a key or a picked column.
func (g *grouping) selected(e sql.Expression) plan.Column {
	if call, name, ok := g.aggregate(e); ok {
		typ, err := call.Func.Result(plan.Types(call.Args))
		if err != nil {
			refuse(fault.BadStatement, "%s does not take arguments of these types", strings.ToUpper(call.Func.Name))
		}
		column := plan.Column{ID: g.ids.New(), Name: name, Type: typ, Nullable: call.Func.Name != "count"}
		g.out.Aggs = append(g.out.Aggs, plan.AggItem{Column: column, Call: call})
		return column
	}
	x := g.expr(e)
	if column, ok := g.keyOf(x); ok {
		return column
	}
	r, ok := mapRefs(x, g.pick).(*plan.Ref)
	if !ok {
		cannot("an expression beside the aggregates")
	}
	for _, c := range g.out.Columns() {
		if c.ID == r.ID {
			return c
		}
	}
	return plan.Column{ID: r.ID, Type: r.Typ, Name: r.Name, Nullable: true}
}

// mapRefs replaces column references in e, but not in the plans of sub-queries.
func mapRefs(e plan.Expr, f func(*plan.Ref) plan.Expr) plan.Expr {
	out, err := plan.TransformExpr(e, func(e plan.Expr) (plan.Expr, error) {
		if r, ok := e.(*plan.Ref); ok {
			return f(r), nil
		}
		return e, nil
	})
	if err != nil {
		panic(failure{err}) // never: f gives no errors
	}
	return out
}

// key replaces an expression that the block groups by with the column that holds
// it.
func (t *translator) key(e plan.Expr) plan.Expr {
	if len(t.scope.keys) == 0 {
		return e
	}
	for _, k := range t.scope.keys {
		if same(k.expr, e) {
			return reference(k.col)
		}
	}
	return e
}

var aggregateNames = map[string]string{
	"*aggregation.Sum": "sum", "*aggregation.Avg": "avg", "*aggregation.Min": "min", "*aggregation.Max": "max",
	"*aggregation.Count": "count", "*aggregation.CountDistinct": "count", "*aggregation.AnyValue": "any_value",
	"*aggregation.StdDevPop": "stddev_pop", "*aggregation.StdDevSamp": "stddev_samp", "*aggregation.VarPop": "var_pop",
	"*aggregation.VarSamp": "var_samp", "*aggregation.BitAnd": "bit_and", "*aggregation.BitOr": "bit_or", "*aggregation.BitXor": "bit_xor",
	"*aggregation.JsonArray": "json_arrayagg", "*aggregation.JSONObjectAgg": "json_objectagg", "*aggregation.GroupConcat": "group_concat",
	"*aggregation.First": "", "*aggregation.Last": "",
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// aggregate translates an aggregate function; ok is false when e is none.
func (t *translator) aggregate(e sql.Expression) (call plan.AggCall, name string, ok bool) {
	agg, isAgg := e.(sql.Aggregation)
	if !isAgg {
		return call, "", false
	}
	fn, known := aggregateNames[typeName(agg)]
	if !known || fn == "" {
		cannot("the aggregate function " + typeName(agg))
	}
	call.Func, _ = plan.Lookup(fn)
	if call.Func == nil {
		cannot("the aggregate function " + strings.ToUpper(fn))
	}
	name = strings.ToLower(gmsplan.AliasSubqueryString(e))
	args := e.Children()
	if g, isConcat := agg.(*aggregation.GroupConcat); isConcat {
		return t.groupConcat(g, call), name, true
	}
	if _, distinct := agg.(*aggregation.CountDistinct); distinct {
		call.Distinct = true
		if len(args) > 1 {
			call.Args = []plan.Expr{t.rowKey(args)}
			return call, name, true
		}
	}
	for _, a := range args {
		if d, isDistinct := a.(*expression.DistinctExpression); isDistinct {
			call.Distinct = true
			a = d.Child
		}
		call.Args = append(call.Args, t.expr(a))
	}
	if fn == "count" && !call.Distinct && len(call.Args) == 1 {
		if l, isLit := call.Args[0].(*plan.Literal); isLit && l.Value != nil {
			call.Args = nil // count(*)
			return call, name, true
		}
	}
	t.aggregateArguments(fn, call.Args)
	return call, name, true
}

// rowKey is a text that differs for different rows of values and is NULL when one
// of them is: COUNT(DISTINCT a, b) leaves such rows out.
func (t *translator) rowKey(args []sql.Expression) plan.Expr {
	var parts []plan.Expr
	for i, a := range args {
		s := t.cast(t.expr(a), plan.String)
		if i < len(args)-1 {
			parts = append(parts, t.cast(t.call("char_length", s), plan.String), text(":"))
		}
		parts = append(parts, s)
	}
	return t.call("concat", parts...)
}

// aggregateArguments makes the conversions of an aggregate's arguments explicit.
func (t *translator) aggregateArguments(fn string, args []plan.Expr) {
	switch fn {
	case "sum", "avg", "stddev_pop", "stddev_samp", "var_pop", "var_samp":
		args[0] = t.number(args[0], strings.ToUpper(fn))
		if strings.HasPrefix(fn, "std") || strings.HasPrefix(fn, "var") {
			args[0] = t.cast(args[0], plan.Float64)
		}
	case "bit_and", "bit_or", "bit_xor":
		if !plan.IsInteger(args[0].Type()) {
			cannot("a bit aggregate of something else than an integer")
		}
	}
}

func (t *translator) groupConcat(g *aggregation.GroupConcat, call plan.AggCall) plan.AggCall {
	// The children are the sort expressions, then the concatenated ones, of which
	// each knows the clauses.
	var concat *sqlparser.GroupConcatExpr
	var order []sql.Expression
	var parts []plan.Expr
	for _, e := range g.Children() {
		if a, ok := e.(*argumentOf); ok && a.concat != nil {
			concat = a.concat
			parts = append(parts, t.cast(t.expr(a.Child), plan.String))
			continue
		}
		order = append(order, e)
	}
	if concat == nil || len(parts) != len(concat.Exprs) || len(order) != len(concat.OrderBy) {
		cannot("this form of GROUP_CONCAT")
	}
	call.Distinct = concat.Distinct != ""
	call.Sep = ","
	if !concat.Separator.DefaultSeparator {
		call.Sep = concat.Separator.SeparatorString
	}
	call.Args = parts[:1]
	if len(parts) > 1 {
		call.Args = []plan.Expr{t.call("concat", parts...)}
	}
	for i, e := range order {
		call.OrderBy = append(call.OrderBy, sortKey(t.expr(e), concat.OrderBy[i].Direction == sqlparser.DescScr))
	}
	return call
}

// window translates window functions: a Window adds them to the columns of in.
func (t *translator) window(in plan.Node, n *gmsplan.Window) plan.Node {
	w := &plan.Window{Input: in}
	for _, e := range n.SelectExprs {
		f, ok := e.(sql.WindowAdaptableExpression)
		if !ok {
			if x := t.expr(e); idOf(e) != 0 {
				if r, isRef := x.(*plan.Ref); isRef {
					for _, c := range in.Columns() {
						if c.ID == r.ID {
							t.define(idOf(e), c)
						}
					}
				}
			}
			continue
		}
		item := t.windowItem(f)
		w.Items = append(w.Items, item)
		t.define(idOf(e), item.Column)
	}
	if len(w.Items) == 0 {
		return in
	}
	return t.accept(w)
}

func (t *translator) windowItem(f sql.WindowAdaptableExpression) plan.WindowItem {
	var item plan.WindowItem
	def := f.Window()
	var call plan.AggCall
	if fn := aggregateNames[typeName(f)]; fn != "" {
		call = t.windowAggregate(f)
	} else {
		call = t.windowFunction(f)
	}
	item.Call = call
	typ, err := call.Func.Result(plan.Types(call.Args))
	if err != nil {
		refuse(fault.BadStatement, "%s does not take arguments of these types", strings.ToUpper(call.Func.Name))
	}
	item.Column = plan.Column{ID: t.ids.New(), Name: call.Func.Name, Type: typ, Nullable: true}
	if def == nil {
		refuse(fault.BadStatement, "%s needs an OVER clause", strings.ToUpper(call.Func.Name))
	}
	for _, p := range def.PartitionBy {
		item.PartitionBy = append(item.PartitionBy, t.expr(p))
	}
	for _, s := range def.OrderBy {
		item.OrderBy = append(item.OrderBy, sortKey(t.expr(s.Column), s.Order == sql.Descending))
	}
	switch call.Func.Name {
	case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead":
		return item // these work on the whole partition, whatever the frame
	}
	if def.Frame != nil {
		item.Frame = t.frame(def)
		if len(item.OrderBy) == 0 && item.Frame.Start.Kind == plan.UnboundedPreceding && item.Frame.End.Kind == plan.UnboundedFollowing {
			item.Frame = nil // the default without an order
		}
	}
	return item
}

// windowAggregate is aggregate for a function with a window.
func (t *translator) windowAggregate(f sql.WindowAdaptableExpression) plan.AggCall {
	switch f.(type) {
	case *aggregation.GroupConcat:
		cannot("GROUP_CONCAT as a window function")
	case *aggregation.CountDistinct:
		cannot("DISTINCT in a window function")
	}
	fn := aggregateNames[typeName(f)]
	call := plan.AggCall{}
	call.Func, _ = plan.Lookup(fn)
	if call.Func == nil || len(f.Children()) == 0 {
		cannot("the window function " + typeName(f))
	}
	// What follows the argument among the children belongs to the window.
	arg := f.Children()[0]
	if _, isDistinct := arg.(*expression.DistinctExpression); isDistinct {
		cannot("DISTINCT in a window function")
	}
	call.Args = []plan.Expr{t.expr(arg)}
	if l, isLit := call.Args[0].(*plan.Literal); isLit && l.Value != nil && fn == "count" {
		call.Args = nil
		return call
	}
	t.aggregateArguments(fn, call.Args)
	return call
}

func (t *translator) windowFunction(f sql.WindowAdaptableExpression) plan.AggCall {
	name := ""
	var args []plan.Expr
	switch f := f.(type) {
	case *window.RowNumber:
		name = "row_number"
	case *window.Rank:
		name = "rank"
	case *window.DenseRank:
		name = "dense_rank"
	case *window.PercentRank:
		name = "percent_rank"
	case *window.NTile:
		// The bucket count shows in the text only.
		count, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(f.String()), "ntile("), ")")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n <= 0 {
			cannot("this form of NTILE")
		}
		name, args = "ntile", []plan.Expr{integer(n)}
	case *window.FirstValue:
		name, args = "first_value", []plan.Expr{t.expr(f.Child)}
	case *window.LastValue:
		name, args = "last_value", []plan.Expr{t.expr(f.Child)}
	case *window.Lag:
		name, args = "lag", t.shifted(f.ChildExpressions, f.String(), "lag")
	case *window.Lead:
		name, args = "lead", t.shifted(f.ChildExpressions, f.String(), "lead")
	}
	fn, ok := plan.Lookup(name)
	if !ok {
		cannot("the window function " + typeName(f))
	}
	if len(args) == 3 {
		typ := unify(args[0].Type(), args[2].Type())
		args[0], args[2] = t.cast(args[0], typ), t.cast(args[2], typ)
	}
	return plan.AggCall{Func: fn, Args: args}
}

// shifted gives the arguments of LAG and LEAD. The offset shows in the text of
// the expression only: name(child, offset, ...
func (t *translator) shifted(children []sql.Expression, text, name string) []plan.Expr {
	rest, ok := strings.CutPrefix(strings.ToLower(text), strings.ToLower(name+"("+children[0].String()+", "))
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	offset, err := strconv.ParseInt(rest[:digits], 10, 64)
	if !ok || err != nil {
		cannot("this form of " + strings.ToUpper(name))
	}
	args := []plan.Expr{t.expr(children[0]), integer(offset)}
	if len(children) > 1 {
		args = append(args, t.expr(children[1]))
	}
	return args
}

// frame translates an explicit frame, nil for the default one.
func (t *translator) frame(def *sql.WindowDefinition) *plan.Frame {
	f := def.Frame
	out := &plan.Frame{Rows: strings.Contains(typeName(f), ".Rows")}
	offset := func(e sql.Expression) plan.Expr {
		x := t.expr(e)
		if _, ok := x.(*plan.Literal); !ok {
			cannot("a window frame with an offset that is no literal")
		}
		return x
	}
	switch {
	case f.UnboundedPreceding():
		out.Start = plan.Bound{Kind: plan.UnboundedPreceding}
	case f.StartNPreceding() != nil:
		out.Start = plan.Bound{Kind: plan.Preceding, Offset: offset(f.StartNPreceding())}
	case f.StartNFollowing() != nil:
		out.Start = plan.Bound{Kind: plan.Following, Offset: offset(f.StartNFollowing())}
	default:
		out.Start = plan.Bound{Kind: plan.CurrentRow}
	}
	switch {
	case f.UnboundedFollowing():
		out.End = plan.Bound{Kind: plan.UnboundedFollowing}
	case f.EndNPreceding() != nil:
		out.End = plan.Bound{Kind: plan.Preceding, Offset: offset(f.EndNPreceding())}
	case f.EndNFollowing() != nil:
		out.End = plan.Bound{Kind: plan.Following, Offset: offset(f.EndNFollowing())}
	default:
		out.End = plan.Bound{Kind: plan.CurrentRow}
	}
	if !out.Rows && (out.Start.Offset != nil || out.End.Offset != nil) {
		cannot("a window frame RANGE with an offset")
	}
	return out
}
