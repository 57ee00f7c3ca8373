package plan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// The types that expressions use beside those that take parameters.
var (
	Bool    arrow.DataType = arrow.FixedWidthTypes.Boolean
	Int8    arrow.DataType = arrow.PrimitiveTypes.Int8
	Int32   arrow.DataType = arrow.PrimitiveTypes.Int32
	Int64   arrow.DataType = arrow.PrimitiveTypes.Int64
	Uint64  arrow.DataType = arrow.PrimitiveTypes.Uint64
	Float32 arrow.DataType = arrow.PrimitiveTypes.Float32
	Float64 arrow.DataType = arrow.PrimitiveTypes.Float64
	String  arrow.DataType = arrow.BinaryTypes.String
	Binary  arrow.DataType = arrow.BinaryTypes.Binary
	Date    arrow.DataType = arrow.FixedWidthTypes.Date32
	Time    arrow.DataType = arrow.FixedWidthTypes.Time64us
	// Timestamp is Iceberg's timestamp, without a time zone.
	Timestamp arrow.DataType = &arrow.TimestampType{Unit: arrow.Microsecond}
	// TimestampTZ is Iceberg's timestamptz, an instant shown in UTC.
	TimestampTZ arrow.DataType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	// TimestampNS and TimestampTZNS are Iceberg v3's nanosecond types.
	TimestampNS   arrow.DataType = &arrow.TimestampType{Unit: arrow.Nanosecond}
	TimestampTZNS arrow.DataType = &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	Null          arrow.DataType = arrow.Null
	// UUID is Iceberg's uuid; shown as text of 36 characters.
	UUID arrow.DataType = extensions.NewUUIDType()
)

var jsonType = func() arrow.DataType {
	t, err := extensions.NewJSONType(arrow.BinaryTypes.String)
	if err != nil {
		panic(err) // the storage type is a constant of this package
	}
	return t
}()

// JSON is JSON text: what a struct, list or map becomes above its scan.
var JSON = jsonType

// Decimal is DECIMAL(precision, scale), precision at most 38.
func Decimal(precision, scale int32) arrow.DataType {
	return &arrow.Decimal128Type{Precision: precision, Scale: scale}
}

// IsString reports whether t is text (JSON is not).
func IsString(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING
}

// IsJSON reports whether t is JSON text.
func IsJSON(t arrow.DataType) bool { return arrow.TypeEqual(t, JSON) }

// IsUUID reports whether t is UUID.
func IsUUID(t arrow.DataType) bool { return arrow.TypeEqual(t, UUID) }

// IsInteger reports whether t is an integer type (booleans are not).
func IsInteger(t arrow.DataType) bool { return arrow.IsInteger(t.ID()) }

// IsNumeric reports whether t is an integer, float or decimal type.
func IsNumeric(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}

// IsTemporal reports whether t is a date or timestamp type.
func IsTemporal(t arrow.DataType) bool {
	return t.ID() == arrow.DATE32 || t.ID() == arrow.TIMESTAMP
}

// IsNested reports whether t is a struct, list or map.
func IsNested(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRUCT, arrow.LIST, arrow.LARGE_LIST, arrow.MAP:
		return true
	}
	return false
}
