package scan

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"sqe/plan"
)

// literalOf makes a literal of type t from a value as iceberg-go gives it.
func literalOf(v any, t arrow.DataType) (*plan.Literal, bool) {
	out := func(v any) (*plan.Literal, bool) { return &plan.Literal{Value: v, Typ: t}, true }
	if plan.IsUUID(t) {
		switch v := v.(type) {
		case uuid.UUID:
			return out(v[:])
		case []byte:
			if len(v) == 16 {
				return out(v)
			}
		}
		return nil, false
	}
	switch typ := t.(type) {
	case *arrow.BooleanType:
		if b, ok := v.(bool); ok {
			return out(b)
		}
	case *arrow.Int32Type, *arrow.Int64Type:
		if i, ok := integer(v); ok {
			return out(i)
		}
	case *arrow.Float32Type, *arrow.Float64Type:
		switch f := v.(type) {
		case float32:
			return out(float64(f))
		case float64:
			return out(f)
		}
	case *arrow.Decimal128Type:
		switch d := v.(type) {
		case iceberg.Decimal:
			if d.Scale == int(typ.Scale) {
				return out(d.Val)
			}
		case iceberg.DecimalLiteral:
			if d.Scale == int(typ.Scale) {
				return out(d.Val)
			}
		}
	case *arrow.Date32Type:
		if i, ok := integer(v); ok {
			return out(arrow.Date32(i))
		}
	case *arrow.Time64Type:
		if i, ok := integer(v); ok {
			return out(arrow.Time64(i))
		}
	case *arrow.TimestampType:
		if i, ok := integer(v); ok {
			return out(arrow.Timestamp(i))
		}
	case *arrow.StringType:
		if s, ok := v.(string); ok {
			return out(s)
		}
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		if b, ok := v.([]byte); ok {
			return out(b)
		}
	}
	return nil, false
}

// integer is the number in any of the types that iceberg-go stores as one.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case iceberg.Date:
		return int64(v), true
	case iceberg.Time:
		return int64(v), true
	case iceberg.Timestamp:
		return int64(v), true
	case iceberg.TimestampNano:
		return int64(v), true
	}
	return 0, false
}

// defaultOf reads an initial default, which is a JSON value in the form of the
// Iceberg specification, appendix C. false for one that cannot be had exactly: a
// long beyond 2^53 has lost digits on the way here.
func defaultOf(v any, t arrow.DataType) (*plan.Literal, bool) {
	if l, ok := literalOf(v, t); ok {
		return l, true
	}
	out := func(v any) (*plan.Literal, bool) { return &plan.Literal{Value: v, Typ: t}, true }
	if f, ok := v.(float64); ok {
		if f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
			return nil, false
		}
		// iceberg-go writes the defaults of dates and times as numbers.
		return literalOf(int64(f), t)
	}
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	if plan.IsUUID(t) {
		u, err := uuid.Parse(s)
		if err != nil {
			return nil, false
		}
		return out(u[:])
	}
	switch typ := t.(type) {
	case *arrow.Decimal128Type:
		d, err := decimal128.FromString(s, typ.Precision, typ.Scale)
		if err != nil {
			return nil, false
		}
		return out(d)
	case *arrow.Date32Type:
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return nil, false
		}
		return out(arrow.Date32FromTime(d))
	case *arrow.Time64Type:
		d, err := time.Parse("15:04:05.999999999", s)
		if err != nil {
			return nil, false
		}
		return out(arrow.Time64(d.Sub(d.Truncate(24 * time.Hour)).Microseconds()))
	case *arrow.TimestampType:
		d, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", strings.TrimSuffix(s, "Z")+zone(s))
		if err != nil {
			return nil, false
		}
		if typ.Unit == arrow.Nanosecond {
			return out(arrow.Timestamp(d.UnixNano()))
		}
		return out(arrow.Timestamp(d.UnixMicro()))
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		b, err := hex.DecodeString(s)
		if err != nil {
			return nil, false
		}
		return out(b)
	}
	return nil, false
}

// zone completes a timestamp that names no zone.
func zone(s string) string {
	if len(s) > 19 && strings.ContainsAny(s[19:], "+-") {
		return ""
	}
	return "Z"
}
