package bind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"sqe/fault"
	"sqe/plan"
)

// Rows yields Arrow batches until io.EOF. The caller releases each batch and
// closes the rows.
type Rows interface {
	Next() (arrow.RecordBatch, error)
	Close() error
}

// Limits bound what the row executor is fed, and what it yields. 0 is no bound.
type Limits struct {
	Rows  int64
	Bytes int64
	// Together bounds the bytes of all statements of a Binder that run at a time.
	Together int64
}

// RunForeign runs a foreign tree over the rows of its children. It closes the
// children, also when it fails. Batches have the types of f.Cols.
func (b *Binder) RunForeign(ctx context.Context, s *Session, rel Relations, f *plan.Foreign, children []Rows, limits Limits) (out Rows, err error) {
	closeAll := func() {
		for _, c := range children {
			_ = c.Close()
		}
	}
	var rows shared
	defer func() {
		if err != nil {
			closeAll()
			rows.end()
		}
	}()
	defer recovered(&err)
	h, ok := f.Handle.(*foreign)
	if !ok || len(children) != len(f.Children) {
		return nil, fault.New(fault.Internal, "a foreign plan without a tree, or with %d children for %d", len(children), len(f.Children))
	}
	state := newStatement(rel, s)
	state.limits, state.narrow = limits, h.narrow
	rows = shared{of: &b.rows, limit: limits.Together}
	state.rows = &rows
	state.feed = make([]*feed, len(children))
	for i, c := range children {
		state.feed[i] = &feed{rows: c, columns: f.Children[i].Columns(), limits: limits, shared: &rows}
	}
	sctx := b.context(ctx, s, state)
	node, err := b.analyzer.Analyze(sctx, h.node, nil, h.flags)
	if err != nil {
		return nil, state.runFault(err)
	}
	iter, err := b.analyzer.ExecBuilder.Build(sctx, node, nil)
	if err != nil {
		return nil, state.runFault(err)
	}
	fields := make([]arrow.Field, len(f.Cols))
	for i, c := range f.Cols {
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}
	}
	return &foreignRows{
		ctx: sctx, state: state, iter: iter, columns: f.Cols, schema: arrow.NewSchema(fields, nil), limits: limits, none: h.ok,
		session: s, closeChildren: func() { closeAll(); rows.end() },
	}, nil
}

// runFault is fault for errors of execution. Their texts may hold values.
func (st *statement) runFault(err error) error {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	out := st.fault(err, nil)
	if fault.Is(out, fault.BadStatement) && errors.Unwrap(out) != nil {
		return fault.Wrap(fault.OutOfRange, err, "a value cannot be computed: it is out of range or of a wrong form")
	}
	return out
}

// feed holds the rows of a child, read once.
type feed struct {
	rows    Rows
	columns []plan.Column
	limits  Limits
	shared  *shared
	done    bool
	read    []sql.Row
	bytes   int64
}

// shared counts what a statement holds of the bytes that all statements have together.
type shared struct {
	of    *atomic.Int64
	limit int64 // 0: no bound
	bytes int64
}

func (s *shared) add(n int64) error {
	if s == nil || s.limit == 0 {
		return nil
	}
	s.bytes += n
	if s.of.Add(n) > s.limit {
		return fault.New(fault.Limit, "the statements that run row by row hold too much memory together (limit %d bytes, which memory-limit sets); try again later, filter or group more before, or use functions that EXPLAIN does not list as run by the row executor", s.limit)
	}
	return nil
}

// end gives back what the statement holds.
func (s *shared) end() {
	if s.of != nil {
		s.of.Add(-s.bytes)
		s.bytes = 0
	}
}

func (f *feed) all() ([]sql.Row, error) {
	for !f.done {
		batch, err := f.rows.Next()
		if errors.Is(err, io.EOF) {
			f.done = true
			break
		}
		if err != nil {
			return nil, err
		}
		err = f.take(batch)
		batch.Release()
		if err != nil {
			return nil, err
		}
	}
	return f.read, nil
}

func (f *feed) take(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != len(f.columns) {
		return fault.New(fault.Internal, "a child of the row executor yields %d columns for %d", batch.NumCols(), len(f.columns))
	}
	for i := range int(batch.NumRows()) {
		row := make(sql.Row, len(f.columns))
		bytes := 24 + 16*int64(len(row))
		for j := range row {
			v, size, err := rowValue(batch.Column(j), i)
			if err != nil {
				return err
			}
			row[j] = v
			bytes += size
		}
		f.bytes += bytes
		f.read = append(f.read, row)
		if err := f.shared.add(bytes); err != nil {
			return err
		}
		if err := exceeded(f.limits, int64(len(f.read)), f.bytes); err != nil {
			return err
		}
	}
	return nil
}

func exceeded(l Limits, rows, bytes int64) error {
	if l.Rows > 0 && rows > l.Rows || l.Bytes > 0 && bytes > l.Bytes {
		return fault.New(fault.Limit, "a part of this statement runs row by row, for which it reads too much (limit %d rows, %d bytes); filter or group more before it, or use functions that EXPLAIN does not list as run by the row executor", l.Rows, l.Bytes)
	}
	return nil
}

// rowValue is the value of a cell as go-mysql-server has it, and its size.
func rowValue(a arrow.Array, i int) (v any, size int64, err error) {
	if a.IsNull(i) {
		return nil, 0, nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return int8(1), 1, nil
		}
		return int8(0), 1, nil
	case *array.Int8:
		return a.Value(i), 8, nil
	case *array.Int16:
		return a.Value(i), 8, nil
	case *array.Int32:
		return a.Value(i), 8, nil
	case *array.Int64:
		return a.Value(i), 8, nil
	case *array.Uint8:
		return uint32(a.Value(i)), 8, nil
	case *array.Uint16:
		return uint32(a.Value(i)), 8, nil
	case *array.Uint32:
		return a.Value(i), 8, nil
	case *array.Uint64:
		return a.Value(i), 8, nil
	case *array.Float32:
		return a.Value(i), 8, nil
	case *array.Float64:
		return a.Value(i), 8, nil
	case *array.Decimal128:
		_, s := plan.DecimalParams(a.DataType())
		return decimal.NewFromBigInt(a.Value(i).BigInt(), -s), 40, nil
	case *array.Date32:
		return a.Value(i).ToTime(), 24, nil
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return a.Value(i).ToTime(unit), 24, nil
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		d := time.Duration(a.Value(i)) * unit.Multiplier()
		return types.Timespan(d.Microseconds()), 8, nil
	case *array.String:
		s := strings.Clone(a.Value(i)) // the text lies in the batch, which goes back before the row is used
		return s, int64(len(s)), nil
	case *array.LargeString:
		s := strings.Clone(a.Value(i))
		return s, int64(len(s)), nil
	case *array.Binary:
		s := append([]byte(nil), a.Value(i)...)
		return s, int64(len(s)), nil
	case *array.FixedSizeBinary:
		s := append([]byte(nil), a.Value(i)...)
		return s, int64(len(s)), nil
	case array.ExtensionArray:
		if plan.IsUUID(a.DataType()) {
			s := a.ValueStr(i)
			return s, int64(len(s)), nil
		}
		v, size, err := rowValue(a.Storage(), i)
		if s, ok := v.(string); ok && plan.IsJSON(a.DataType()) {
			j, _, convErr := types.JSON.Convert(context.Background(), s)
			if convErr != nil {
				return nil, 0, fault.Wrap(fault.OutOfRange, convErr, "a JSON value cannot be read")
			}
			return j, size * 4, err
		}
		return v, size, err
	case *array.Null:
		return nil, 0, nil
	}
	return nil, 0, fault.New(fault.Unsupported, "a column of this type cannot be used in a part of the statement that runs row by row")
}

// leafTable yields the rows of a child. It implements sql.Table.
type leafTable struct {
	child   int
	schema  sql.Schema
	columns []int // of the child, parallel to schema
}

// Name implements sql.Table. No statement can name it, so that no rule of
// go-mysql-server that works with names touches it.
func (l *leafTable) Name() string               { return "\x00leaf" + strconv.Itoa(l.child) }
func (l *leafTable) String() string             { return l.Name() }
func (l *leafTable) Schema() sql.Schema         { return l.schema }
func (l *leafTable) Collation() sql.CollationID { return sql.Collation_Default }

// Partitions implements sql.Table.
func (l *leafTable) Partitions(*sql.Context) (sql.PartitionIter, error) {
	return sql.PartitionsToPartitionIter(onePartition{}), nil
}

type onePartition struct{}

// Key implements sql.Partition.
func (onePartition) Key() []byte { return []byte{0} }

// PartitionRows implements sql.Table.
func (l *leafTable) PartitionRows(ctx *sql.Context, _ sql.Partition) (sql.RowIter, error) {
	st := stateOf(ctx)
	if l.child >= len(st.feed) {
		return nil, errStub
	}
	rows, err := st.feed[l.child].all()
	if err != nil {
		return nil, err
	}
	return &leafIter{rows: rows, columns: l.columns}, nil
}

type leafIter struct {
	rows    []sql.Row
	columns []int
}

// Next implements sql.RowIter.
func (l *leafIter) Next(*sql.Context) (sql.Row, error) {
	if len(l.rows) == 0 {
		return nil, io.EOF
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	out := make(sql.Row, len(l.columns))
	for i, c := range l.columns {
		out[i] = row[c]
	}
	return out, nil
}

// Close implements sql.RowIter.
func (l *leafIter) Close(*sql.Context) error { return nil }

// foreignRows yields what the row executor computes.
type foreignRows struct {
	ctx           *sql.Context
	state         *statement
	iter          sql.RowIter
	columns       []plan.Column
	schema        *arrow.Schema
	limits        Limits
	none          bool
	session       *Session
	closeChildren func()
	rows, bytes   int64
	finished      bool
	closed        bool
}

const batchRows = 1024

// Next implements Rows.
func (r *foreignRows) Next() (out arrow.RecordBatch, err error) {
	defer recovered(&err)
	if r.finished {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, r.schema)
	defer b.Release()
	n := 0
	for n < batchRows {
		row, err := r.iter.Next(r.ctx)
		if errors.Is(err, io.EOF) {
			r.finished = true
			break
		}
		if err != nil {
			return nil, r.state.runFault(err)
		}
		if r.none {
			continue
		}
		if len(row) != len(r.columns) {
			return nil, fault.New(fault.Internal, "the row executor yields %d columns for %d", len(row), len(r.columns))
		}
		for i, v := range row {
			size, err := appendValue(r.ctx, b.Field(i), r.columns[i].Type, v)
			if err != nil {
				return nil, fault.Wrap(fault.OutOfRange, err, "a value of column '%s' cannot be shown in the type of the column", r.columns[i].Name)
			}
			r.bytes += size
		}
		n++
		r.rows++
		if err := exceeded(r.limits, r.rows, r.bytes); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		return nil, io.EOF
	}
	return b.NewRecordBatch(), nil
}

// Close implements Rows. The warnings that the row executor made are dropped:
// their texts hold values.
func (r *foreignRows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	err := r.iter.Close(r.ctx)
	r.closeChildren()
	r.session.restoreWarnings()
	if err != nil {
		return r.state.runFault(err)
	}
	return nil
}

// appendValue adds a value of go-mysql-server to a column and returns its size.
func appendValue(ctx *sql.Context, b array.Builder, typ arrow.DataType, v any) (int64, error) {
	if w, ok := v.(sql.AnyWrapper); ok {
		u, err := w.UnwrapAny(ctx)
		if err != nil {
			return 0, err
		}
		v = u
	}
	if v == nil {
		b.AppendNull()
		return 0, nil
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		x, _, err := types.Int64.Convert(ctx, v)
		if err != nil {
			return 0, err
		}
		if u, big := v.(uint64); big && u > math.MaxInt64 {
			return 0, fmt.Errorf("out of range")
		}
		b.Append(x.(int64))
		return 8, nil
	case *array.Uint64Builder:
		x, _, err := types.Uint64.Convert(ctx, v)
		if err != nil {
			return 0, err
		}
		b.Append(x.(uint64))
		return 8, nil
	case *array.Float64Builder:
		x, _, err := types.Float64.Convert(ctx, v)
		if err != nil {
			return 0, err
		}
		b.Append(x.(float64))
		return 8, nil
	case *array.Decimal128Builder:
		p, s := plan.DecimalParams(typ)
		x, _, err := types.InternalDecimalType.Convert(ctx, v)
		if err != nil {
			return 0, err
		}
		d := x.(decimal.Decimal).Shift(s).Round(0)
		if int32(len(d.Abs().BigInt().String())) > p {
			return 0, fmt.Errorf("out of range")
		}
		b.Append(decimal128.FromBigInt(d.BigInt()))
		return 16, nil
	case *array.Date32Builder:
		t, ok := v.(time.Time)
		if !ok {
			return 0, fmt.Errorf("no date")
		}
		b.Append(arrow.Date32FromTime(t))
		return 4, nil
	case *array.TimestampBuilder:
		t, ok := v.(time.Time)
		if !ok {
			return 0, fmt.Errorf("no timestamp")
		}
		b.Append(arrow.Timestamp(t.UnixMicro()))
		return 8, nil
	case *array.Time64Builder:
		x, _, err := types.Time.Convert(ctx, v)
		if err != nil {
			return 0, err
		}
		b.Append(arrow.Time64(x.(types.Timespan).AsMicroseconds()))
		return 8, nil
	case *array.StringBuilder:
		s, err := textOf(ctx, v)
		if err != nil {
			return 0, err
		}
		b.Append(s)
		return int64(len(s)), nil
	case *array.BinaryBuilder:
		s, err := textOf(ctx, v)
		if err != nil {
			return 0, err
		}
		b.Append([]byte(s))
		return int64(len(s)), nil
	case *array.ExtensionBuilder:
		return appendValue(ctx, b.StorageBuilder(), plan.String, v)
	case *array.NullBuilder:
		return 0, fmt.Errorf("a value in a column of NULLs")
	}
	return 0, fmt.Errorf("no column of type %s", typ)
}

func textOf(ctx *sql.Context, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case sql.JSONWrapper:
		return types.JsonToMySqlString(v)
	}
	x, _, err := types.LongText.Convert(ctx, v)
	if err != nil {
		return "", err
	}
	s, ok := x.(string)
	if !ok {
		return "", fmt.Errorf("no text")
	}
	return s, nil
}

// checkedArithmetic is integer arithmetic with MySQL's error for a result out of
// range, where the row executor's own wraps around.
type checkedArithmetic struct{ *expression.Arithmetic }

// WithChildren implements sql.Expression.
func (c *checkedArithmetic) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	n, err := c.Arithmetic.WithChildren(children...)
	if err != nil {
		return nil, err
	}
	a, ok := n.(*expression.Arithmetic)
	if !ok {
		return n, nil
	}
	return &checkedArithmetic{Arithmetic: a}, nil
}

// Eval implements sql.Expression.
func (c *checkedArithmetic) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	if !types.IsSigned(c.LeftChild.Type()) || !types.IsSigned(c.RightChild.Type()) {
		return c.Arithmetic.Eval(ctx, row)
	}
	l, err := c.LeftChild.Eval(ctx, row)
	if err != nil || l == nil {
		return nil, err
	}
	r, err := c.RightChild.Eval(ctx, row)
	if err != nil || r == nil {
		return nil, err
	}
	lv, _, err1 := types.Int64.Convert(ctx, l)
	rv, _, err2 := types.Int64.Convert(ctx, r)
	if err1 != nil || err2 != nil {
		return nil, errors.Join(err1, err2)
	}
	x, y := decimal.NewFromInt(lv.(int64)), decimal.NewFromInt(rv.(int64))
	var out decimal.Decimal
	switch c.Op {
	case "+":
		out = x.Add(y)
	case "-":
		out = x.Sub(y)
	default:
		out = x.Mul(y)
	}
	if !out.BigInt().IsInt64() {
		return nil, fault.New(fault.OutOfRange, "BIGINT value is out of range")
	}
	return out.IntPart(), nil
}
