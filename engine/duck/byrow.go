package duck

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/fault"
	"sqe/plan"
)

// evaluators are those of running statements by key, as sources are.
var evaluators sync.Map

// evaluator is a plan.RowCall of a statement. DuckDB calls a native function with its
// key and the operands.
type evaluator struct {
	key   string
	call  *plan.RowCall
	texts []bool // of the operands
	ctx   context.Context

	mu  sync.Mutex
	err error
}

func newEvaluator(call *plan.RowCall) *evaluator {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails (crypto/rand)
	texts := make([]bool, len(call.Operands))
	for i, o := range call.Operands {
		t, err := rowOperand(o.Type())
		texts[i] = err == nil && (t == "VARCHAR" || t == "BLOB")
	}
	return &evaluator{key: hex.EncodeToString(key[:]), call: call, texts: texts}
}

func (e *evaluator) begin(ctx context.Context) {
	e.ctx = ctx
	evaluators.Store(e.key, e)
}

func (e *evaluator) end() { evaluators.Delete(e.key) }

// failure is the fault for an error of an evaluation, nil when there was none. DuckDB
// may evaluate a call of constants ahead and drop the error.
func (e *evaluator) failure() error {
	e.mu.Lock()
	err := e.err
	e.mu.Unlock()
	var f *fault.Fault
	if err == nil || errors.As(err, &f) {
		return err
	}
	return fault.Wrap(fault.Internal, err, "the statement could not be computed")
}

// fail ends the statement.
func (e *evaluator) fail(err error) {
	e.mu.Lock()
	if e.err == nil {
		e.err = err
	}
	e.mu.Unlock()
	panic(nativeError(rowMark + e.call.Name))
}

// rowResults are the native functions for RowCalls, by what they give.
var rowResults = map[string]nativeType{
	"long": longType, "ulong": ulongType, "double": doubleType, "date": dateType, "time": timeType, "timestamp": timestampType,
	"text": textType, "blob": blobType, "null": intType,
}

// rowResult names the function for a type, and the type that it gives.
func rowResult(t arrow.DataType) (name string, gives arrow.DataType, ok bool) {
	switch {
	case plan.IsJSON(t):
		return "text", plan.JSON, true
	case arrow.TypeEqual(t, plan.Time):
		return "time", t, true
	case arrow.TypeEqual(t, plan.Timestamp):
		return "timestamp", t, true
	}
	switch t.ID() {
	case arrow.INT64:
		return "long", t, true
	case arrow.UINT64:
		return "ulong", t, true
	case arrow.FLOAT64:
		return "double", t, true
	case arrow.DATE32:
		return "date", t, true
	case arrow.STRING, arrow.DECIMAL128: // digits, so that one function does for all
		return "text", plan.String, true
	case arrow.BINARY:
		return "blob", t, true
	case arrow.NULL:
		return "null", t, true
	}
	return "", nil, false
}

// rowOperand is the DuckDB type in which an operand is handed over.
func rowOperand(t arrow.DataType) (string, error) {
	switch {
	case plan.IsNested(t):
		return "", fault.New(fault.Unsupported, "values of type %s cannot be computed row by row", typeName(t))
	case plan.IsUUID(t):
		return "VARCHAR", nil
	case t.ID() == arrow.DECIMAL128:
		_, scale := plan.DecimalParams(t)
		return "DECIMAL(38," + itoa(int(scale)) + ")", nil // of one width
	}
	return sqlType(t)
}

func (c *compiler) rowCall(e *plan.RowCall) (string, error) {
	name, gives, ok := rowResult(e.Typ)
	if !ok || len(e.Operands) == 0 {
		return "", fault.New(fault.Unsupported, "the function %s cannot be computed row by row", e.Name)
	}
	key := ""
	if c.inputs != nil {
		ev := newEvaluator(e)
		c.evaluators = append(c.evaluators, ev)
		key = ev.key
	}
	args := []string{quote(key)}
	for _, o := range e.Operands {
		s, err := c.expr(o)
		if err != nil {
			return "", err
		}
		t, err := rowOperand(o.Type())
		if err != nil {
			return "", err
		}
		args = append(args, cast(s, t))
	}
	if e.Volatile {
		name += "_volatile"
	}
	t, err := sqlType(e.Typ)
	if err != nil {
		return "", err
	}
	s := native("row_"+name, args...)
	if !arrow.TypeEqual(gives, e.Typ) {
		return cast(s, t), nil
	}
	return s, nil
}

func init() {
	for name, t := range rowResults {
		register("row_"+name, evaluate, t, textType)
		natives[len(natives)-1].varargs = true
		register("row_"+name+"_volatile", evaluate, t, textType)
		natives[len(natives)-1].varargs, natives[len(natives)-1].volatile = true, true
	}
}

// evaluate is the native function.
func evaluate(in []vector, out *output) {
	v, ok := evaluators.Load(in[0].string(0))
	if !ok {
		panic(nativeError(rowMark + "unknown"))
	}
	e := v.(*evaluator)
	if len(in)-1 != len(e.call.Operands) {
		e.fail(errors.New("another number of operands"))
	}
	// Rows may share one text, and each gets its own: few at a time when they are long.
	for from := 0; from < out.n; {
		to, size := from+1, e.size(in[1:], from)
		if size > maxVector {
			noMemory()
		}
		for ; to < min(out.n, from+maxRows); to++ {
			if size += e.size(in[1:], to); size > maxOperands {
				break
			}
		}
		if err := cancelled(e.ctx); err != nil {
			e.fail(err)
		}
		if err := e.rows(in[1:], out, from, to); err != nil {
			e.fail(err)
		}
		from = to
	}
}

// How many rows are computed at a time, and how many bytes of text they have.
const (
	maxRows     = 256
	maxOperands = 4 << 20
)

// size is how many bytes of text the operands of a row have.
func (e *evaluator) size(in []vector, i int) int {
	n := 0
	for j, v := range in {
		if e.texts[j] && !v.null(i) {
			n += len(v.bytes(i))
		}
	}
	return n
}

// rows computes the rows from (inclusive) to to (exclusive).
func (e *evaluator) rows(in []vector, out *output, from, to int) error {
	operands := make([]arrow.Array, len(in))
	defer func() {
		for _, a := range operands {
			if a != nil {
				a.Release()
			}
		}
	}()
	for i, o := range e.call.Operands {
		a, err := arrayOf(in[i], from, to, o.Type())
		if err != nil {
			return err
		}
		operands[i] = a
	}
	a, err := e.call.Rows.Eval(e.ctx, operands, to-from)
	if err != nil {
		return err
	}
	defer a.Release()
	if a.Len() != to-from || !arrow.TypeEqual(a.DataType(), e.call.Typ) {
		return errors.New("values of another type or number")
	}
	return give(out, from, a)
}

// fill appends values of a vector, of which convert makes what the builder takes.
func fill[T, U any](v vector, from, to int, b interface {
	Append(U)
	AppendNull()
}, convert func(T) U,
) {
	for i := from; i < to; i++ {
		if v.null(i) {
			b.AppendNull()
		} else {
			b.Append(convert(at[T](v, i)))
		}
	}
}

func itself[T any](x T) T { return x }

// hugeint is DuckDB's.
type hugeint struct {
	low  uint64
	high int64
}

// arrayOf copies the rows from (inclusive) to to (exclusive) of a vector, of a type that
// rowOperand gives, into an array of the plan's type; a UUID becomes text.
func arrayOf(v vector, from, to int, t arrow.DataType) (arrow.Array, error) {
	if isNull(t) {
		return array.NewNull(to - from), nil
	}
	if plan.IsUUID(t) {
		t = plan.String
	}
	if t.ID() == arrow.FIXED_SIZE_BINARY {
		t = plan.Binary
	}
	builder := array.NewBuilder(memory.DefaultAllocator, t)
	defer builder.Release()
	builder.Reserve(to - from)
	inner := builder
	if x, ok := builder.(*array.ExtensionBuilder); ok {
		inner = x.StorageBuilder()
	}
	switch b := inner.(type) {
	case *array.BooleanBuilder:
		fill(v, from, to, b, itself[bool])
	case *array.Int8Builder:
		fill(v, from, to, b, itself[int8])
	case *array.Int16Builder:
		fill(v, from, to, b, itself[int16])
	case *array.Int32Builder:
		fill(v, from, to, b, itself[int32])
	case *array.Int64Builder:
		fill(v, from, to, b, itself[int64])
	case *array.Uint8Builder:
		fill(v, from, to, b, itself[uint8])
	case *array.Uint16Builder:
		fill(v, from, to, b, itself[uint16])
	case *array.Uint32Builder:
		fill(v, from, to, b, itself[uint32])
	case *array.Uint64Builder:
		fill(v, from, to, b, itself[uint64])
	case *array.Float32Builder:
		fill(v, from, to, b, itself[float32])
	case *array.Float64Builder:
		fill(v, from, to, b, itself[float64])
	case *array.Decimal128Builder:
		fill(v, from, to, b, func(h hugeint) decimal128.Num { return decimal128.New(h.high, h.low) })
	case *array.Date32Builder:
		fill(v, from, to, b, itself[arrow.Date32])
	case *array.Time64Builder:
		fill(v, from, to, b, itself[arrow.Time64])
	case *array.TimestampBuilder:
		fill(v, from, to, b, itself[arrow.Timestamp])
	case *array.StringBuilder:
		for i := from; i < to; i++ {
			if v.null(i) {
				b.AppendNull()
			} else {
				b.Append(v.string(i))
			}
		}
	case *array.BinaryBuilder:
		for i := from; i < to; i++ {
			if v.null(i) {
				b.AppendNull()
			} else {
				b.Append(v.bytes(i))
			}
		}
	default:
		return nil, errors.New("an operand of another type")
	}
	return builder.NewArray(), nil
}

var (
	errTime = fault.New(fault.OutOfRange, "a time of the statement is negative or longer than a day, which can be shown and not computed with")
	errText = fault.New(fault.OutOfRange, "a function of the statement makes a text that is not valid UTF-8")
)

func take[T any](out *output, from int, a interface {
	IsNull(int) bool
	Len() int
	Value(int) T
},
) {
	for i := range a.Len() {
		if !a.IsNull(i) {
			set(out, from+i, a.Value(i))
		}
	}
}

// give makes an array the result for the rows that begin at from.
func give(out *output, from int, a arrow.Array) error {
	if x, ok := a.(array.ExtensionArray); ok {
		a = x.Storage()
	}
	switch a := a.(type) {
	case *array.Int64:
		take(out, from, a)
	case *array.Uint64:
		take(out, from, a)
	case *array.Float64:
		take(out, from, a)
	case *array.Date32:
		take(out, from, a)
	case *array.Timestamp:
		take(out, from, a)
	case *array.Time64:
		const day = 24 * 60 * 60 * 1_000_000
		for i := range a.Len() {
			if !a.IsNull(i) && (a.Value(i) < 0 || a.Value(i) >= day) {
				return errTime
			}
		}
		take(out, from, a)
	case *array.Decimal128:
		_, scale := plan.DecimalParams(a.DataType())
		for i := range a.Len() {
			if !a.IsNull(i) {
				out.text(from+i, a.Value(i).ToString(scale))
			}
		}
	case *array.String:
		for i := range a.Len() {
			if a.IsNull(i) {
				continue
			}
			if !utf8.ValidString(a.Value(i)) {
				return errText
			}
			out.text(from+i, a.Value(i))
		}
	case *array.Binary:
		for i := range a.Len() {
			if !a.IsNull(i) {
				out.text(from+i, string(a.Value(i)))
			}
		}
	case *array.Null:
	default:
		return errors.New("a result of another type")
	}
	return nil
}
