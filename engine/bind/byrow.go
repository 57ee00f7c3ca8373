package bind

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"sqe/fault"
	"sqe/plan"
)

// rowCalls lets a translation compute with go-mysql-server what has no place in the
// plan, one expression at a time: it becomes a plan.RowCall whose operands are the
// largest parts of it that do have a place. In the plan it is a function like any other,
// so that a policy acts on what its operands read, and a writer knows of which row a
// value is.
type rowCalls struct {
	// accepted are expressions that the executor was asked about.
	accepted map[plan.Expr]bool
	steps    int
	session  *Session // of the row executor; made when it is needed
}

func newRowCalls() *rowCalls { return &rowCalls{accepted: map[plan.Expr]bool{}} }

// maxRowSteps bounds the work for one statement: an expression that cannot be
// translated is looked at again with what is around it.
const maxRowSteps = 200_000

// expr translates e, by a RowCall where nothing else does.
func (r *rowCalls) expr(t *translator, e sql.Expression) plan.Expr {
	r.step()
	var x plan.Expr
	scope, work := t.scope, t.work
	reason := why(func() {
		x = t.bare(e)
		r.check(t, x)
	})
	if reason != "" {
		t.scope, t.work = scope, work
		x = r.call(t, e, reason)
	}
	r.accepted[x] = true
	return x
}

func (r *rowCalls) step() {
	if r.steps++; r.steps > maxRowSteps {
		refuse(fault.Limit, "the statement has too many expressions beside one that runs row by row; make it smaller, or leave out the functions that docs/sql.md gives to the row executor")
	}
}

// check asks the executor about what one step of a translation made.
func (r *rowCalls) check(t *translator, x plan.Expr) {
	switch x.(type) {
	case *plan.Ref, *plan.Literal:
		return
	}
	var known func(e plan.Expr) plan.Expr
	known = func(e plan.Expr) plan.Expr {
		if _, constant := e.(*plan.Literal); constant {
			return e // a constant decides about what can be computed
		}
		if r.accepted[e] {
			return &plan.Ref{ID: 1, Typ: e.Type()}
		}
		args := e.Args()
		if len(args) == 0 {
			return e
		}
		out := make([]plan.Expr, len(args))
		for i, a := range args {
			out[i] = known(a)
		}
		return e.WithArgs(out)
	}
	acceptExpr(t, known(x))
}

// acceptExpr asks the executor about an expression.
func acceptExpr(t *translator, x plan.Expr) {
	t.accept(&plan.Project{Input: &plan.Values{Rows: [][]plan.Expr{{}}}, Items: []plan.Item{{Column: plan.Column{ID: 1, Type: x.Type()}, Expr: x}}})
}

// call makes a RowCall of e.
func (r *rowCalls) call(t *translator, e sql.Expression, reason string) plan.Expr {
	switch e.(type) {
	case *expression.GetField, expression.Tuple, *expression.Interval, *expression.Star, sql.Aggregation, sql.WindowAdaptableExpression:
		cannot(reason)
	}
	l := &rowOperands{splitter: &splitter{translator: t, retyped: map[sql.ColumnId]sql.Type{}, lastID: firstLeafID}, calls: r, reason: reason}
	x := l.lower(e)
	constant := len(l.operands) == 0
	if constant {
		l.operand(integer(0)) // something to make a row of
	}
	const column = 2 // beyond it, the other side of a comparison says how
	c, force := sql.GetCoercibility(t.ctx, x)
	if types.IsText(x.Type()) && force <= column && c != sql.Collation_Default && c != sql.Collation_binary && !strings.HasSuffix(c.Name(), "_bin") {
		// What compares the text must know how, and the plan compares bytes.
		cannot("a collation other than binary")
	}
	out, err := l.finish(x)
	if err != nil {
		cannot(reason)
	}
	if constant && !out.Volatile {
		if v, ok := computed(t.ctx, out); ok {
			return v
		}
	}
	return out
}

// computed is the value of a call that does not depend on a row; false where it fails,
// which the statement does when it comes to it.
func computed(ctx context.Context, c *plan.RowCall) (*plan.Literal, bool) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Append(0)
	row := b.NewArray()
	defer row.Release()
	a, err := c.Rows.Eval(ctx, []arrow.Array{row}, 1)
	if err != nil {
		return nil, false
	}
	defer a.Release()
	if a.IsNull(0) {
		return null(c.Typ), true
	}
	out := &plan.Literal{Typ: c.Typ}
	switch a := a.(type) {
	case *array.Int64:
		out.Value = a.Value(0)
	case *array.Uint64:
		out.Value = a.Value(0)
	case *array.Float64:
		out.Value = a.Value(0)
	case *array.Decimal128:
		out.Value = a.Value(0)
	case *array.Date32:
		out.Value = a.Value(0)
	case *array.Timestamp:
		out.Value = a.Value(0)
	case *array.String:
		out.Value = strings.Clone(a.Value(0))
	default:
		return nil, false
	}
	return out, true
}

// rowOperands divides an expression into one for the row executor and its operands.
type rowOperands struct {
	*splitter
	calls    *rowCalls
	reason   string
	operands []plan.Expr
	columns  []plan.Column
	ids      []sql.ColumnId
	schema   sql.Schema
}

// operand is the place of an operand in the row executor's expression.
func (l *rowOperands) operand(x plan.Expr) sql.Expression {
	for i, o := range l.operands {
		if same(o, x) {
			return expression.NewGetField(int(l.ids[i]), l.schema[i].Type, l.schema[i].Name, true)
		}
	}
	l.lastID++
	typ, name := gmsType(x.Type()), "operand"
	l.operands = append(l.operands, x)
	l.columns = append(l.columns, plan.Column{ID: plan.ColumnID(len(l.operands)), Name: name, Type: x.Type(), Nullable: true})
	l.ids = append(l.ids, l.lastID)
	l.schema = append(l.schema, &sql.Column{Name: name, Type: typ, Nullable: true})
	return expression.NewGetField(int(l.lastID), typ, name, true)
}

// lower makes operands of the largest parts of e that have a place in the plan.
func (l *rowOperands) lower(e sql.Expression) sql.Expression {
	l.calls.step()
	switch e := e.(type) {
	case *expression.Literal:
		return e
	case *expression.UserVar, *expression.SystemVar:
		// The statement's own session has them, and they do not change in it.
		v, err := e.Eval(l.ctx, nil)
		if err != nil {
			panic(failure{err})
		}
		return expression.NewLiteral(v, e.Type())
	case sql.Aggregation, sql.WindowAdaptableExpression:
		cannot(l.reason)
	case *expression.Alias, *argumentOf, *expression.DistinctExpression, *expression.Interval, expression.Tuple:
		return l.descend(e, l.lower)
	}
	x, ok := l.strict(e)
	_, calls := e.(sql.FunctionExpression)
	if ok && (calls || refers(x)) {
		return l.operand(x)
	}
	switch e.(type) {
	case *expression.GetField, *gmsplan.Subquery, *gmsplan.InSubquery, *gmsplan.ExistsSubquery:
		cannot(l.reason)
	}
	return l.descend(e, l.lower)
}

// strict translates an expression without RowCalls.
func (l *rowOperands) strict(e sql.Expression) (plan.Expr, bool) {
	t := l.translator
	scope, work, rows := t.scope, t.work, t.rows
	defer func() { t.scope, t.work, t.rows = scope, work, rows }()
	t.rows = nil
	var x plan.Expr
	reason := why(func() {
		x = t.expr(e)
		acceptExpr(t, x)
		if _, ok := x.(*plan.Ref); ok && plan.IsNested(x.Type()) {
			cannot(l.reason)
		}
	})
	return x, reason == ""
}

// finish makes the call.
func (l *rowOperands) finish(x sql.Expression) (*plan.RowCall, error) {
	t := l.translator
	items := make([]plan.Item, len(l.columns))
	for i, c := range l.columns {
		items[i] = plan.Item{Column: c, Expr: l.operands[i]}
	}
	shape := &plan.Project{Input: &plan.Values{Rows: [][]plan.Expr{{}}}, Items: items}
	node := l.retype(gmsplan.NewProject([]sql.Expression{x}, l.leaf(shape, l.ids, l.schema)))
	typ, ok := arrowType(node.Schema()[0].Type)
	if !ok {
		return nil, errors.New("a value of a type that no column has")
	}
	if l.calls.session == nil {
		l.calls.session = t.state.session.detached(t.ctx)
	}
	ev := &rowEvaluator{binder: t.binder, session: l.calls.session, expr: x, columns: l.columns, typ: typ, at: t.ctx.QueryTime()}
	sctx, _ := ev.context(t.ctx, nil)
	var err error
	if ev.node, err = t.binder.analyzer.Analyze(sctx, node, nil, &sql.QueryFlags{}); err != nil {
		return nil, err
	}
	call := &plan.RowCall{Name: rowName(x), Rows: ev, Operands: l.operands, Typ: typ}
	sql.Inspect(x, func(e sql.Expression) bool {
		if v, ok := e.(sql.NonDeterministicExpression); ok && v.IsNonDeterministic() {
			call.Volatile = true
		}
		switch e := e.(type) { // what is wrapped does not say it
		case *bounded:
			call.Volatile = call.Volatile || e.name == "random_bytes"
		}
		return true
	})
	acceptExpr(t, call)
	return call, nil
}

// rowName names the function of an expression, without its arguments.
func rowName(e sql.Expression) string {
	if f, ok := e.(sql.FunctionExpression); ok {
		return strings.ToLower(f.FunctionName())
	}
	switch e := e.(type) {
	case *bounded:
		return e.name
	case *linearRegexp:
		return e.name
	case *baseConversion:
		return "conv"
	}
	name := typeName(e)
	return strings.TrimPrefix(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]), "checked")
}

// detached is a session with the variables of this one, for evaluation beside the
// statement: its warnings, whose texts hold values, are nobody's.
func (s *Session) detached(ctx *sql.Context) *Session {
	out := &Session{
		gms:       &boundedSession{BaseSession: sql.NewBaseSessionWithClientServer("", s.gms.Client(), s.gms.ID()), sizes: map[string]int64{}},
		principal: s.principal,
	}
	own := sql.NewContext(ctx, sql.WithSession(out.gms))
	for name, value := range s.gms.GetAllSessionVariables() {
		_ = out.gms.InitSessionVariable(own, name, value) // as in NewSession
	}
	out.gms.SetCurrentDatabase(s.gms.GetCurrentDatabase())
	return out
}

// rowEvaluator computes an expression of go-mysql-server over rows of its operands. It
// implements plan.RowEvaluator.
type rowEvaluator struct {
	binder  *Binder
	session *Session
	expr    sql.Expression // as it was bound, for Same
	node    sql.Node       // a list of the expression over a leafTable
	columns []plan.Column  // of the leafTable
	typ     arrow.DataType
	at      time.Time
	// Expressions keep what they computed last, and no promise for threads.
	mu sync.Mutex
}

func (r *rowEvaluator) context(ctx context.Context, rows []sql.Row) (*sql.Context, *statement) {
	state := newStatement(noRelations{}, r.session)
	state.feed = []*feed{{columns: r.columns, done: true, read: rows}}
	out := r.binder.context(ctx, r.session, state)
	out.SetQueryTime(r.at)
	return out, state
}

// Same implements plan.RowEvaluator. Of two it may say no too often.
func (r *rowEvaluator) Same(other plan.RowEvaluator) bool {
	o, ok := other.(*rowEvaluator)
	return ok && (r == o || arrow.TypeEqual(r.typ, o.typ) && reflect.DeepEqual(r.expr, o.expr))
}

// Eval implements plan.RowEvaluator.
func (r *rowEvaluator) Eval(ctx context.Context, operands []arrow.Array, n int) (out arrow.Array, err error) {
	defer recovered(&err)
	rows := make([]sql.Row, n)
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows[i] = make(sql.Row, len(operands))
		for j, a := range operands {
			if rows[i][j], _, err = rowValue(a, i); err != nil {
				return nil, err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sctx, state := r.context(ctx, rows)
	defer r.session.gms.ClearWarnings()
	iter, err := r.binder.analyzer.ExecBuilder.Build(sctx, r.node, nil)
	if err != nil {
		return nil, state.runFault(err)
	}
	defer func() { _ = iter.Close(sctx) }()
	b := array.NewBuilder(memory.DefaultAllocator, r.typ)
	defer b.Release()
	b.Reserve(n)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := iter.Next(sctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, state.runFault(err)
		}
		if len(row) != 1 || b.Len() == n {
			return nil, fault.New(fault.Internal, "the row executor yields another number of values than it was asked for")
		}
		if _, err := appendValue(sctx, b, r.typ, row[0]); err != nil {
			return nil, fault.Wrap(fault.OutOfRange, err, "a value cannot be computed: it is out of range or of a wrong form")
		}
		if textBytes(b) > maxRowTexts {
			return nil, fault.New(fault.Limit, "the texts that a function makes for a few hundred rows are longer than 64 MiB together; make them shorter, or for fewer rows")
		}
	}
	if b.Len() != n {
		return nil, fault.New(fault.Internal, "the row executor yields another number of values than it was asked for")
	}
	return b.NewArray(), nil
}

// maxRowTexts bounds the texts that one evaluation makes.
const maxRowTexts = 64 << 20

// textBytes is how many bytes of text a builder has.
func textBytes(b array.Builder) int {
	switch b := b.(type) {
	case *array.ExtensionBuilder:
		return textBytes(b.StorageBuilder())
	case *array.StringBuilder:
		return b.DataLen()
	case *array.BinaryBuilder:
		return b.DataLen()
	}
	return 0
}
