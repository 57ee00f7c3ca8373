package catalog

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// mostExact bounds the whole numbers that a reader which takes JSON numbers for
// floats, as iceberg-go does, writes again as they were.
const mostExact = 1 << 53

const (
	dateLayout = time.DateOnly
	timeLayout = "15:04:05.999999999"
)

// storedDefault is a default as it stands in the metadata. Source: Iceberg
// specification, appendix C, "JSON single-value serialization". Values are given
// in that form already, because iceberg-go has one of its own for dates and times.
func storedDefault(column string, l *plan.Literal, t arrow.DataType) (any, error) {
	if l == nil || l.Value == nil {
		return nil, nil
	}
	bad := func(why string) error {
		return fault.New(fault.BadStatement, "The default of column '%s' cannot be stored: %s", column, why)
	}
	if plan.IsUUID(t) {
		if b, ok := l.Value.([]byte); ok {
			if u, err := uuid.FromBytes(b); err == nil {
				return u.String(), nil
			}
		}
		return nil, bad("it is no UUID")
	}
	switch typ := t.(type) {
	case *arrow.BooleanType:
		if v, ok := l.Value.(bool); ok {
			return v, nil
		}
	case *arrow.Int32Type, *arrow.Int64Type:
		if v, ok := l.Value.(int64); ok {
			if typ.ID() == arrow.INT32 && int64(int32(v)) != v {
				return nil, bad("it is out of range")
			}
			if v >= mostExact || v <= -mostExact {
				return nil, bad("whole numbers of 2^53 and more are not read exactly by every engine")
			}
			return v, nil
		}
	case *arrow.Float32Type, *arrow.Float64Type:
		if v, ok := l.Value.(float64); ok {
			if typ.ID() == arrow.FLOAT32 {
				v = float64(float32(v))
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, bad("it is no finite number")
			}
			return v, nil
		}
	case *arrow.Decimal128Type:
		if v, ok := l.Value.(decimal128.Num); ok {
			from, ok := l.Typ.(*arrow.Decimal128Type)
			if !ok || from.Scale != typ.Scale || !v.FitsInPrecision(typ.Precision) {
				return nil, bad("it does not have the digits of the column")
			}
			return v.ToString(typ.Scale), nil
		}
	case *arrow.StringType:
		if v, ok := l.Value.(string); ok {
			return v, nil
		}
	case *arrow.BinaryType:
		if v, ok := l.Value.([]byte); ok {
			return hex.EncodeToString(v), nil
		}
	case *arrow.FixedSizeBinaryType:
		if v, ok := l.Value.([]byte); ok {
			if len(v) != typ.ByteWidth {
				return nil, bad("it does not have the length of the column")
			}
			return hex.EncodeToString(v), nil
		}
	case *arrow.Date32Type:
		if v, ok := l.Value.(arrow.Date32); ok {
			return v.ToTime().Format(dateLayout), nil
		}
	case *arrow.Time64Type:
		if v, ok := l.Value.(arrow.Time64); ok {
			return v.ToTime(typ.Unit).Format("15:04:05.000000"), nil
		}
	case *arrow.TimestampType:
		if v, ok := l.Value.(arrow.Timestamp); ok {
			layout := "2006-01-02T15:04:05.000000"
			if typ.Unit == arrow.Nanosecond {
				layout += "000"
			}
			if typ.TimeZone != "" {
				layout += "+00:00"
			}
			return v.ToTime(typ.Unit).UTC().Format(layout), nil
		}
	default:
		return nil, bad("a column of its type has none but NULL")
	}
	return nil, bad("it is not of the type of the column")
}

// loadedDefault is a default of plan.Field.
func loadedDefault(v any, t arrow.DataType) *plan.Literal {
	if v == nil {
		return nil
	}
	if l, ok := defaultLiteral(v, t); ok {
		return l
	}
	return &plan.Literal{}
}

// defaultLiteral is the inverse of storedDefault; false for a value that is not
// read exactly.
func defaultLiteral(v any, t arrow.DataType) (*plan.Literal, bool) {
	out := func(v any, ok bool) (*plan.Literal, bool) {
		if !ok {
			return nil, false
		}
		return &plan.Literal{Value: v, Typ: t}, true
	}
	s, isText := v.(string)
	if plan.IsUUID(t) {
		u, err := uuid.Parse(s)
		return out(u[:], isText && err == nil)
	}
	switch typ := t.(type) {
	case *arrow.BooleanType:
		b, ok := v.(bool)
		return out(b, ok)
	case *arrow.Int32Type, *arrow.Int64Type:
		switch n := v.(type) {
		case int64:
			return out(n, true)
		case float64:
			return out(int64(n), n == math.Trunc(n) && math.Abs(n) < mostExact)
		}
	case *arrow.Float32Type, *arrow.Float64Type:
		f, ok := v.(float64)
		return out(f, ok)
	case *arrow.Decimal128Type:
		d, err := decimal128.FromString(s, typ.Precision, typ.Scale)
		return out(d, isText && err == nil)
	case *arrow.StringType:
		return out(s, isText)
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		b, err := hex.DecodeString(s)
		return out(b, isText && err == nil)
	case *arrow.Date32Type:
		d, err := time.Parse(dateLayout, s)
		return out(arrow.Date32FromTime(d), isText && err == nil)
	case *arrow.Time64Type:
		d, err := time.Parse(timeLayout, s)
		return out(arrow.Time64(d.Sub(d.Truncate(24*time.Hour)).Microseconds()), isText && err == nil)
	case *arrow.TimestampType:
		if typ.TimeZone == "" {
			s += "Z"
		}
		d, err := time.Parse("2006-01-02T"+timeLayout+"Z07:00", strings.Replace(s, "ZZ", "Z", 1))
		if typ.Unit == arrow.Nanosecond {
			return out(arrow.Timestamp(d.UnixNano()), isText && err == nil)
		}
		return out(arrow.Timestamp(d.UnixMicro()), isText && err == nil)
	}
	return nil, false
}
