package duck

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sqe/fault"
	"sqe/plan"
)

// isZonedNanos reports whether t is an instant with nanoseconds.
func isZonedNanos(t arrow.DataType) bool {
	ts, ok := t.(*arrow.TimestampType)
	return ok && ts.Unit == arrow.Nanosecond && ts.TimeZone != ""
}

// hasZonedNanos reports whether t is or holds an instant with nanoseconds, which
// DuckDB would cut to microseconds.
func hasZonedNanos(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StructType:
		return slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return hasZonedNanos(f.Type) })
	case *arrow.MapType:
		return hasZonedNanos(t.KeyType()) || hasZonedNanos(t.ItemType())
	case arrow.ListLikeType:
		return hasZonedNanos(t.Elem())
	}
	return isZonedNanos(t)
}

// sameLayout reports whether two types have the same values in the same layout.
func sameLayout(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.StructType:
		b := b.(*arrow.StructType)
		if a.NumFields() != b.NumFields() {
			return false
		}
		for i := range a.NumFields() {
			if a.Field(i).Name != b.Field(i).Name || !sameLayout(a.Field(i).Type, b.Field(i).Type) {
				return false
			}
		}
		return true
	case *arrow.MapType:
		b := b.(*arrow.MapType)
		return sameLayout(a.KeyType(), b.KeyType()) && sameLayout(a.ItemType(), b.ItemType())
	case *arrow.ListType:
		return sameLayout(a.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.LargeListType:
		return sameLayout(a.Elem(), b.(*arrow.LargeListType).Elem())
	case *arrow.TimestampType:
		b := b.(*arrow.TimestampType)
		return a.Unit == b.Unit && (a.TimeZone == "") == (b.TimeZone == "")
	}
	return arrow.TypeEqual(a, b)
}

// logicalType is the DuckDB type of a stream's column, to be destroyed.
func logicalType(t arrow.DataType) (duckdb.LogicalType, error) {
	simple := func(id duckdb.Type) (duckdb.LogicalType, error) { return duckdb.CreateLogicalType(id), nil }
	if plan.IsUUID(t) {
		return simple(duckdb.TypeUUID)
	}
	if plan.IsNested(t) && hasZonedNanos(t) {
		return duckdb.LogicalType{}, fault.New(fault.Unsupported, "a timestamptz_ns inside a nested column cannot be read")
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return simple(duckdb.TypeBoolean)
	case *arrow.Int8Type:
		return simple(duckdb.TypeTinyInt)
	case *arrow.Int16Type:
		return simple(duckdb.TypeSmallInt)
	case *arrow.Int32Type:
		return simple(duckdb.TypeInteger)
	case *arrow.Int64Type:
		return simple(duckdb.TypeBigInt)
	case *arrow.Uint8Type:
		return simple(duckdb.TypeUTinyInt)
	case *arrow.Uint16Type:
		return simple(duckdb.TypeUSmallInt)
	case *arrow.Uint32Type:
		return simple(duckdb.TypeUInteger)
	case *arrow.Uint64Type:
		return simple(duckdb.TypeUBigInt)
	case *arrow.Float32Type:
		return simple(duckdb.TypeFloat)
	case *arrow.Float64Type:
		return simple(duckdb.TypeDouble)
	case *arrow.StringType, *arrow.LargeStringType:
		return simple(duckdb.TypeVarchar)
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return simple(duckdb.TypeBlob)
	case *arrow.Date32Type:
		return simple(duckdb.TypeDate)
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			return simple(duckdb.TypeTime)
		}
	case *arrow.TimestampType:
		switch {
		case t.Unit == arrow.Nanosecond:
			return simple(duckdb.TypeTimestampNS)
		case t.Unit == arrow.Microsecond && t.TimeZone == "":
			return simple(duckdb.TypeTimestamp)
		case t.Unit == arrow.Microsecond:
			return simple(duckdb.TypeTimestampTZ)
		}
	case *arrow.Decimal128Type:
		return duckdb.CreateDecimalType(uint8(t.Precision), uint8(t.Scale)), nil
	case *arrow.StructType:
		types := make([]duckdb.LogicalType, 0, t.NumFields())
		names := make([]string, 0, t.NumFields())
		defer func() {
			for i := range types {
				duckdb.DestroyLogicalType(&types[i])
			}
		}()
		for _, f := range t.Fields() {
			lt, err := logicalType(f.Type)
			if err != nil {
				return lt, err
			}
			types, names = append(types, lt), append(names, f.Name)
		}
		return duckdb.CreateStructType(types, names), nil
	case *arrow.MapType:
		k, err := logicalType(t.KeyType())
		if err != nil {
			return k, err
		}
		defer duckdb.DestroyLogicalType(&k)
		v, err := logicalType(t.ItemType())
		if err != nil {
			return v, err
		}
		defer duckdb.DestroyLogicalType(&v)
		return duckdb.CreateMapType(k, v), nil
	case *arrow.ListType, *arrow.LargeListType:
		e, err := logicalType(t.(arrow.ListLikeType).Elem())
		if err != nil {
			return e, err
		}
		defer duckdb.DestroyLogicalType(&e)
		return duckdb.CreateListType(e), nil
	}
	return duckdb.LogicalType{}, fault.New(fault.Unsupported, "a column of type %s cannot be read", typeName(t))
}
