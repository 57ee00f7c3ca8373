package engine

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/plan"
)

// constant is the one row of a statement that only yields literals (SELECT 1,
// SELECT @@version): clients send such statements all the time, and they need no
// executor. ok is false for every other plan.
func constant(n plan.Node) (rows Rows, ok bool) {
	p, ok := n.(*plan.Project)
	if !ok {
		return nil, false
	}
	v, ok := p.Input.(*plan.Values)
	if !ok || len(v.Rows) != 1 || len(v.Cols) != 0 {
		return nil, false
	}
	fields := make([]arrow.Field, len(p.Items))
	for i, it := range p.Items {
		if _, literal := it.Expr.(*plan.Literal); !literal {
			return nil, false
		}
		fields[i] = arrow.Field{Name: it.Name, Type: storage(it.Type), Nullable: true}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, it := range p.Items {
		if !appendLiteral(b.Field(i), it.Expr.(*plan.Literal).Value) {
			return nil, false
		}
	}
	return &oneBatch{batch: b.NewRecordBatch()}, true
}

// storage is the type that holds the values: JSON is text.
func storage(t arrow.DataType) arrow.DataType {
	if plan.IsJSON(t) {
		return plan.String
	}
	return t
}

// appendLiteral appends a value of plan.Literal. It reports false when the
// builder does not take it.
func appendLiteral(b array.Builder, value any) bool {
	if value == nil {
		b.AppendNull()
		return true
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return appendValue[bool](b, value)
	case *array.Int8Builder:
		v, ok := value.(int64)
		b.Append(int8(v))
		return ok
	case *array.Int32Builder:
		v, ok := value.(int64)
		b.Append(int32(v))
		return ok
	case *array.Int64Builder:
		return appendValue[int64](b, value)
	case *array.Uint64Builder:
		return appendValue[uint64](b, value)
	case *array.Float64Builder:
		return appendValue[float64](b, value)
	case *array.StringBuilder:
		return appendValue[string](b, value)
	case *array.BinaryBuilder:
		return appendValue[[]byte](b, value)
	case *array.Decimal128Builder:
		return appendValue[decimal128.Num](b, value)
	case *array.Date32Builder:
		return appendValue[arrow.Date32](b, value)
	case *array.Time64Builder:
		return appendValue[arrow.Time64](b, value)
	case *array.TimestampBuilder:
		return appendValue[arrow.Timestamp](b, value)
	}
	return false
}

// appendValue appends a value of the type that the builder takes.
func appendValue[T any](b interface{ Append(v T) }, value any) bool {
	v, ok := value.(T)
	b.Append(v)
	return ok
}
