package write

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// convert makes a batch of exactly the table's columns, in the types of its data
// files. Values are taken exactly or refused.
func (t *target) convert(ctx context.Context, b arrow.RecordBatch, columns []int) (arrow.RecordBatch, error) {
	if len(columns) != len(t.table.Fields) {
		return nil, fmt.Errorf("%d columns for %d of the table", len(columns), len(t.table.Fields))
	}
	cols := make([]arrow.Array, 0, len(columns))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, at := range columns {
		if at < 0 || at >= int(b.NumCols()) {
			return nil, fmt.Errorf("column %d of a batch of %d", at, b.NumCols())
		}
		c, err := convertColumn(ctx, b.Column(at), t.table.Fields[i], t.arrow.Field(i).Type)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(t.arrow, cols, b.NumRows()), nil
}

func convertColumn(ctx context.Context, a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	out, err := cast(ctx, a, f, want)
	if err != nil {
		return nil, err
	}
	if err := checkColumn(out, f, nil); err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}

func cast(ctx context.Context, a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	have := storage(a.DataType())
	w := storage(want)
	switch {
	case a.NullN() == a.Len() && a.Len() > 0, have.ID() == arrow.NULL:
		return nulls(want, a.Len())
	case sameLayout(have, w):
		return relabelled(a, want)
	case arrow.IsInteger(have.ID()) && w.ID() == arrow.DECIMAL128:
		return wholeDecimals(ctx, a, f, want)
	case arrow.IsInteger(have.ID()) && w.ID() == arrow.BOOL:
		return truths(ctx, a, f)
	case plan.IsUUID(f.Type) && have.ID() == arrow.STRING:
		return parseUUIDs(a, f, want)
	case w.ID() == arrow.FIXED_SIZE_BINARY && have.ID() == arrow.BINARY:
		return fixedBytes(a, f, want)
	case plan.IsNested(f.Type) && have.ID() == arrow.STRING:
		return fromJSON(a, f, want)
	case have.ID() == arrow.LARGE_STRING && w.ID() == arrow.STRING, have.ID() == arrow.LARGE_BINARY && w.ID() == arrow.BINARY,
		have.ID() == arrow.TIMESTAMP && w.ID() == arrow.TIMESTAMP, have.ID() == arrow.DATE32 && w.ID() == arrow.TIMESTAMP,
		numeric(have) && numeric(w):
		if t, ok := w.(*arrow.TimestampType); ok && have.ID() == arrow.TIMESTAMP && have.(*arrow.TimestampType).Unit == t.Unit {
			return relabelled(a, want) // the same instants; only the zone is named otherwise
		}
		// The text of the error would hold the value.
		out, err := compute.CastArray(ctx, a, compute.SafeCastOptions(w))
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, outOfRange(f)
		}
		defer out.Release()
		return relabelled(out, want)
	}
	return nil, fault.New(fault.BadStatement, "Column '%s' has the type %s; a value of type %s cannot be put into it, use CAST", f.Name, plan.TypeName(f.Type), plan.TypeName(a.DataType()))
}

func nulls(t arrow.DataType, n int) (arrow.Array, error) {
	a := array.MakeArrayOfNull(memory.DefaultAllocator, storage(t), n)
	defer a.Release()
	return relabelled(a, t)
}

func numeric(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || t.ID() == arrow.DECIMAL128
}

func outOfRange(f plan.Field) error {
	return fault.New(fault.OutOfRange, "A value for column '%s' is out of range of its type, or would lose digits", f.Name)
}

// wholeDecimals makes decimals of integers. (The cast of package compute asks that
// every integer of the type would fit: arrow-go 18.8.0.)
func wholeDecimals(ctx context.Context, a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	wide, err := compute.CastArray(ctx, a, compute.SafeCastOptions(plan.Int64))
	if err != nil {
		return nil, outOfRange(f)
	}
	defer wide.Release()
	in := wide.(*array.Int64)
	t := want.(*arrow.Decimal128Type)
	b := array.NewDecimal128Builder(memory.DefaultAllocator, t)
	defer b.Release()
	b.Reserve(in.Len())
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
			continue
		}
		v, err := decimal128.FromI64(in.Value(i)).Rescale(0, t.Scale)
		if err != nil {
			return nil, outOfRange(f)
		}
		b.Append(v)
	}
	return b.NewArray(), nil
}

// truths makes booleans of MySQL's 0 and 1.
func truths(ctx context.Context, a arrow.Array, f plan.Field) (arrow.Array, error) {
	wide, err := compute.CastArray(ctx, a, compute.SafeCastOptions(plan.Int64))
	if err != nil {
		return nil, outOfRange(f)
	}
	defer wide.Release()
	in := wide.(*array.Int64)
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range in.Len() {
		switch {
		case in.IsNull(i):
			b.AppendNull()
		case in.Value(i) != 0 && in.Value(i) != 1:
			return nil, outOfRange(f)
		default:
			b.Append(in.Value(i) == 1)
		}
	}
	return b.NewArray(), nil
}

func parseUUIDs(a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	in := a.(*array.String)
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 16})
	defer b.Release()
	b.Reserve(in.Len())
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
			continue
		}
		u, err := uuid.Parse(in.Value(i))
		if err != nil {
			return nil, fault.New(fault.OutOfRange, "A value for column '%s' is no UUID", f.Name)
		}
		b.Append(u[:])
	}
	out := b.NewArray()
	defer out.Release()
	return relabelled(out, want)
}

func fixedBytes(a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	in := a.(*array.Binary)
	t := storage(want).(*arrow.FixedSizeBinaryType)
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.Reserve(in.Len())
	for i := range in.Len() {
		switch {
		case in.IsNull(i):
			b.AppendNull()
		case len(in.Value(i)) != t.ByteWidth:
			return nil, fault.New(fault.OutOfRange, "A value for column '%s' does not have %d bytes", f.Name, t.ByteWidth)
		default:
			b.Append(in.Value(i))
		}
	}
	out := b.NewArray()
	defer out.Release()
	return relabelled(out, want)
}

// checkColumn refuses NULL where the schema requires a value, and decimals with more
// digits than their type. live says for which rows the value counts; nil is all.
func checkColumn(a arrow.Array, f plan.Field, live func(int) bool) error {
	if f.Required && a.NullN() > 0 {
		for i := range a.Len() {
			if a.IsNull(i) && (live == nil || live(i)) {
				return fault.New(fault.NullValue, "Column '%s' cannot be null", f.Name)
			}
		}
	}
	inner := live
	if a.NullN() > 0 {
		inner = func(i int) bool { return a.IsValid(i) && (live == nil || live(i)) }
	}
	switch a := a.(type) {
	case *array.Decimal128:
		limit := a.DataType().(*arrow.Decimal128Type).Precision
		for i, v := range a.Values() {
			if (inner == nil || inner(i)) && !fits(v, limit) {
				return outOfRange(f)
			}
		}
	case *array.Struct:
		for i, c := range f.Children {
			if err := checkColumn(a.Field(i), c, inner); err != nil {
				return err
			}
		}
	case *array.Map:
		live := covered(a.Len(), a.ValueOffsets, inner)
		if err := checkColumn(a.Keys(), f.Children[0], live); err != nil {
			return err
		}
		return checkColumn(a.Items(), f.Children[1], live)
	case *array.List:
		return checkColumn(a.ListValues(), f.Children[0], covered(a.Len(), a.ValueOffsets, inner))
	}
	return nil
}

func fits(v decimal128.Num, precision int32) bool { return v.FitsInPrecision(precision) }

// covered says which elements belong to a list that counts; an element outside every
// list, or in one that does not count, does not.
func covered(lists int, offsets func(int) (int64, int64), live func(int) bool) func(int) bool {
	var set []bool
	for i := range lists {
		if live == nil || live(i) {
			from, to := offsets(i)
			if int(to) > len(set) {
				set = append(set, make([]bool, int(to)-len(set))...)
			}
			for k := from; k < to; k++ {
				set[k] = true
			}
		}
	}
	return func(i int) bool { return i < len(set) && set[i] }
}

func storage(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// sameLayout reports whether values of both types lie alike in memory and mean the
// same: they differ in names, nullability, field ids or an extension alone.
func sameLayout(have, want arrow.DataType) bool {
	h, w := storage(have), storage(want)
	if h.ID() != w.ID() {
		return false
	}
	switch w := w.(type) {
	case *arrow.StructType:
		hs := h.(*arrow.StructType)
		if hs.NumFields() != w.NumFields() {
			return false
		}
		for i, f := range w.Fields() {
			if hs.Field(i).Name != f.Name || !sameLayout(hs.Field(i).Type, f.Type) {
				return false
			}
		}
		return true
	case *arrow.MapType:
		hm := h.(*arrow.MapType)
		return sameLayout(hm.KeyType(), w.KeyType()) && sameLayout(hm.ItemType(), w.ItemType())
	case *arrow.ListType:
		return sameLayout(h.(*arrow.ListType).Elem(), w.Elem())
	}
	return arrow.TypeEqual(h, w)
}

// relabelled gives an array another type of the same layout.
func relabelled(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	d := relabel(a.Data(), want)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func relabel(d arrow.ArrayData, want arrow.DataType) arrow.ArrayData {
	var inner []arrow.DataType
	switch w := storage(want).(type) {
	case *arrow.StructType:
		for _, f := range w.Fields() {
			inner = append(inner, f.Type)
		}
	case *arrow.MapType:
		inner = []arrow.DataType{w.Elem()}
	case *arrow.ListType:
		inner = []arrow.DataType{w.Elem()}
	}
	children := make([]arrow.ArrayData, len(inner))
	for i, t := range inner {
		children[i] = relabel(d.Children()[i], t)
	}
	out := array.NewData(want, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	for _, c := range children {
		c.Release()
	}
	return out
}
