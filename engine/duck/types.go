package duck

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// sqlType is the DuckDB type that holds the values of a plan type. JSON is held
// as text; an instant with nanoseconds as TIMESTAMP_NS in UTC, since DuckDB has
// no type of its own for it.
func sqlType(t arrow.DataType) (string, error) {
	switch {
	case plan.IsUUID(t):
		return "UUID", nil
	case plan.IsJSON(t):
		return "VARCHAR", nil
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return "BOOLEAN", nil
	case *arrow.Int8Type:
		return "TINYINT", nil
	case *arrow.Int16Type:
		return "SMALLINT", nil
	case *arrow.Int32Type:
		return "INTEGER", nil
	case *arrow.Int64Type:
		return "BIGINT", nil
	case *arrow.Uint8Type:
		return "UTINYINT", nil
	case *arrow.Uint16Type:
		return "USMALLINT", nil
	case *arrow.Uint32Type:
		return "UINTEGER", nil
	case *arrow.Uint64Type:
		return "UBIGINT", nil
	case *arrow.Float32Type:
		return "FLOAT", nil
	case *arrow.Float64Type:
		return "DOUBLE", nil
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return "VARCHAR", nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType, *arrow.BinaryViewType:
		return "BLOB", nil
	case *arrow.Date32Type:
		return "DATE", nil
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			return "TIME", nil
		}
	case *arrow.TimestampType:
		switch {
		case t.Unit == arrow.Nanosecond:
			return "TIMESTAMP_NS", nil
		case t.Unit == arrow.Microsecond && t.TimeZone == "":
			return "TIMESTAMP", nil
		case t.Unit == arrow.Microsecond:
			return "TIMESTAMPTZ", nil
		}
	case *arrow.Decimal128Type:
		if t.Precision >= 1 && t.Precision <= 38 && t.Scale >= 0 && t.Scale <= t.Precision {
			return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale), nil
		}
	case *arrow.NullType:
		return "INTEGER", nil
	case *arrow.StructType:
		if t.NumFields() == 0 {
			break
		}
		parts := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			ft, err := sqlType(f.Type)
			if err != nil {
				return "", err
			}
			name, err := quoteName(f.Name)
			if err != nil {
				return "", err
			}
			parts[i] = name + " " + ft
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")", nil
	case *arrow.MapType:
		k, err := sqlType(t.KeyType())
		if err != nil {
			return "", err
		}
		v, err := sqlType(t.ItemType())
		if err != nil {
			return "", err
		}
		return "MAP(" + k + ", " + v + ")", nil
	case arrow.ListLikeType:
		e, err := sqlType(t.Elem())
		if err != nil {
			return "", err
		}
		return e + "[]", nil
	}
	return "", fault.New(fault.Unsupported, "values of type %s cannot be computed with", typeName(t))
}

// typeName names a type for an error text.
func typeName(t arrow.DataType) string {
	if t == nil {
		return "unknown"
	}
	return t.String()
}

// quoteName quotes an identifier of a data file.
func quoteName(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", fault.New(fault.Unsupported, "a column has a name that cannot be used: it is empty or holds a zero byte")
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`, nil
}

func isFloat(t arrow.DataType) bool   { return arrow.IsFloating(t.ID()) }
func isDecimal(t arrow.DataType) bool { return arrow.IsDecimal(t.ID()) }
func isNull(t arrow.DataType) bool    { return t.ID() == arrow.NULL }

// isExact reports whether t is an integer, boolean or decimal: computed exactly.
func isExact(t arrow.DataType) bool {
	return plan.IsInteger(t) || isDecimal(t) || t.ID() == arrow.BOOL
}

func isBinary(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY, arrow.BINARY_VIEW:
		return true
	}
	return false
}

func isTimestamp(t arrow.DataType) bool { return t.ID() == arrow.TIMESTAMP }

func isNanos(t arrow.DataType) bool {
	ts, ok := t.(*arrow.TimestampType)
	return ok && ts.Unit == arrow.Nanosecond
}

func isInstant(t arrow.DataType) bool {
	ts, ok := t.(*arrow.TimestampType)
	return ok && ts.Unit == arrow.Microsecond && ts.TimeZone != ""
}
