package bind

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"sqe/plan"
)

var (
	stringType   = types.CreateLongText(sql.Collation_Default)
	datetimeType = types.MustCreateDatetimeType(sqltypes.Datetime, 6)
	uuidType     = types.MustCreateString(sqltypes.Char, 36, sql.Collation_Default)
)

// gmsType is the MySQL type that a column of an Iceberg type has.
func gmsType(t arrow.DataType) sql.Type {
	switch {
	case plan.IsJSON(t), plan.IsNested(t):
		return types.JSON
	case plan.IsUUID(t):
		return uuidType
	}
	switch t.ID() {
	case arrow.BOOL:
		return types.Boolean
	case arrow.INT8:
		return types.Int8
	case arrow.INT16:
		return types.Int16
	case arrow.INT32:
		return types.Int32
	case arrow.INT64:
		return types.Int64
	case arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return types.Uint32
	case arrow.UINT64:
		return types.Uint64
	case arrow.FLOAT32:
		return types.Float32
	case arrow.FLOAT64:
		return types.Float64
	case arrow.DECIMAL128, arrow.DECIMAL256:
		p, s := plan.DecimalParams(t)
		return types.MustCreateDecimalType(uint8(p), uint8(s))
	case arrow.DATE32:
		return types.Date
	case arrow.TIME64:
		return types.Time
	case arrow.TIMESTAMP:
		return datetimeType
	case arrow.STRING, arrow.LARGE_STRING:
		return stringType
	case arrow.NULL:
		return types.Null
	}
	return types.LongBlob
}

// arrowType is the inverse, for what the row executor computes. ok is false for
// types that results cannot have.
func arrowType(t sql.Type) (typ arrow.DataType, ok bool) {
	switch {
	case t == nil, t == types.Null:
		return plan.Null, true
	case types.IsJSON(t):
		return plan.JSON, true
	case types.IsDecimal(t):
		d, ok := t.(sql.DecimalType)
		if !ok {
			return nil, false
		}
		// A value that needs more digits than there are is out of range when it comes.
		return plan.Decimal(int32(min(d.Precision(), 38)), int32(d.Scale())), true
	case types.IsEnum(t), types.IsSet(t):
		return plan.String, true
	}
	switch t.Type() {
	case sqltypes.Int8, sqltypes.Int16, sqltypes.Int24, sqltypes.Int32, sqltypes.Int64, sqltypes.Year,
		sqltypes.Uint8, sqltypes.Uint16, sqltypes.Uint24, sqltypes.Uint32:
		return plan.Int64, true
	case sqltypes.Uint64, sqltypes.Bit:
		return plan.Uint64, true
	case sqltypes.Float32, sqltypes.Float64:
		return plan.Float64, true
	case sqltypes.Date:
		return plan.Date, true
	case sqltypes.Time:
		return plan.Time, true
	case sqltypes.Datetime, sqltypes.Timestamp:
		return plan.Timestamp, true
	case sqltypes.Text, sqltypes.VarChar, sqltypes.Char:
		return plan.String, true
	case sqltypes.Blob, sqltypes.VarBinary, sqltypes.Binary:
		return plan.Binary, true
	}
	return nil, false
}
