package scan

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/plan"
)

// shape makes a batch of exactly the wanted columns, in their order and of their
// types, from what was read. Columns are found by field id.
func shape(rec arrow.RecordBatch, want []plan.ScanColumn, constants map[int]*plan.Literal, t *plan.Table) (arrow.RecordBatch, error) {
	byID := make(map[int]int, rec.NumCols())
	for i, f := range rec.Schema().Fields() {
		id := -1
		if v, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
			id, _ = strconv.Atoi(v)
		} else if tf, ok := t.FieldNamed(f.Name); ok && tf.Name == f.Name {
			id = tf.ID
		}
		byID[id] = i
	}
	return assemble(want, rec.NumRows(), func(_ int, w plan.ScanColumn) (arrow.Array, error) {
		if lit := constants[w.FieldID]; lit != nil {
			return constant(lit, int(rec.NumRows()))
		}
		if at, ok := byID[w.FieldID]; ok {
			return retype(rec.Column(at), w.Type)
		}
		return nil, fmt.Errorf("field %d was not read", w.FieldID)
	})
}

// assemble makes a batch of the wanted columns, asking for each in its order. The
// arrays that column returns become the batch's.
func assemble(want []plan.ScanColumn, rows int64, column func(i int, w plan.ScanColumn) (arrow.Array, error)) (arrow.RecordBatch, error) {
	fields := make([]arrow.Field, len(want))
	cols := make([]arrow.Array, 0, len(want))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, w := range want {
		fields[i] = arrow.Field{Name: w.Name, Type: w.Type, Nullable: true}
		col, err := column(i, w)
		if err != nil {
			return nil, err
		}
		cols = append(cols, col)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rows), nil
}

// retype gives an array the type of the plan. Both have the same layout in memory:
// they differ in names of inner fields, in nullability or in an extension. Any
// other difference is an error.
func retype(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), want, arrow.CheckMetadata()) {
		a.Retain()
		return a, nil
	}
	d, err := relabel(a.Data(), want)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

func relabel(d arrow.ArrayData, want arrow.DataType) (arrow.ArrayData, error) {
	have := storage(d.DataType())
	if have.ID() != storage(want).ID() {
		return nil, fmt.Errorf("a column of type %s was read as %s", want, d.DataType())
	}
	var inner []arrow.DataType
	switch w := storage(want).(type) {
	case *arrow.StructType:
		for _, f := range w.Fields() {
			inner = append(inner, f.Type)
		}
	case *arrow.MapType:
		inner = []arrow.DataType{w.ElemField().Type}
	case *arrow.ListType:
		inner = []arrow.DataType{w.Elem()}
	default:
		if !arrow.TypeEqual(have, storage(want)) {
			return nil, fmt.Errorf("a column of type %s was read as %s", want, d.DataType())
		}
	}
	if len(inner) != len(d.Children()) {
		return nil, fmt.Errorf("a column of type %s was read as %s", want, d.DataType())
	}
	children := make([]arrow.ArrayData, len(inner))
	for i, t := range inner {
		c, err := relabel(d.Children()[i], t)
		if err != nil {
			for _, done := range children[:i] {
				done.Release()
			}
			return nil, err
		}
		children[i] = c
	}
	out := array.NewData(want, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	for _, c := range children {
		c.Release()
	}
	return out, nil
}

func storage(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// constant is a column of one value.
func constant(l *plan.Literal, rows int) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, storage(l.Typ))
	defer b.Release()
	for range rows {
		if !appendValue(b, l.Value) {
			return nil, fmt.Errorf("a constant of type %s cannot be made", l.Typ)
		}
	}
	a := b.NewArray()
	defer a.Release()
	return retype(a, l.Typ)
}

func appendValue(b array.Builder, v any) bool {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		if v, ok := v.(bool); ok {
			b.Append(v)
			return true
		}
	case *array.Int32Builder:
		if v, ok := v.(int64); ok {
			b.Append(int32(v))
			return true
		}
	case *array.Int64Builder:
		if v, ok := v.(int64); ok {
			b.Append(v)
			return true
		}
	case *array.Float32Builder:
		if v, ok := v.(float64); ok {
			b.Append(float32(v))
			return true
		}
	case *array.Float64Builder:
		if v, ok := v.(float64); ok {
			b.Append(v)
			return true
		}
	case *array.Decimal128Builder:
		if v, ok := v.(decimal128.Num); ok {
			b.Append(v)
			return true
		}
	case *array.Date32Builder:
		if v, ok := v.(arrow.Date32); ok {
			b.Append(v)
			return true
		}
	case *array.Time64Builder:
		if v, ok := v.(arrow.Time64); ok {
			b.Append(v)
			return true
		}
	case *array.TimestampBuilder:
		if v, ok := v.(arrow.Timestamp); ok {
			b.Append(v)
			return true
		}
	case *array.StringBuilder:
		if v, ok := v.(string); ok {
			b.Append(v)
			return true
		}
	case *array.BinaryBuilder:
		if v, ok := v.([]byte); ok {
			b.Append(v)
			return true
		}
	case *array.FixedSizeBinaryBuilder:
		if v, ok := v.([]byte); ok && len(v) == b.Type().(*arrow.FixedSizeBinaryType).ByteWidth {
			b.Append(v)
			return true
		}
	}
	return false
}
