package masks

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/plan"
)

// fixedText is the constant for text. Source: Iceberg's REST specification,
// action mask-to-fixed-value, as all constants here.
const fixedText = "XXXXXXXX"

// fixedValue is the constant of a type that is not nested, as a value of
// plan.Literal.
func fixedValue(t arrow.DataType) (any, bool) {
	switch {
	case plan.IsString(t):
		return fixedText, true
	case plan.IsUUID(t):
		return make([]byte, 16), true
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return false, true
	case *arrow.Int32Type, *arrow.Int64Type:
		return int64(0), true
	case *arrow.Float32Type, *arrow.Float64Type:
		return float64(0), true
	case *arrow.Decimal128Type:
		return decimal128.Num{}, true
	case *arrow.Date32Type:
		return arrow.Date32(0), true
	case *arrow.Time64Type:
		return arrow.Time64(0), true
	case *arrow.TimestampType:
		return arrow.Timestamp(0), true
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		return []byte{}, true
	case *arrow.FixedSizeBinaryType:
		return make([]byte, t.ByteWidth), true
	}
	return nil, false
}

// fixedExpr is the constant of any type that has one: lists and maps are empty,
// and every field of a struct has its own constant, also an optional one.
func fixedExpr(t arrow.DataType) (plan.Expr, error) {
	if v, ok := fixedValue(t); ok {
		return &plan.Literal{Value: v, Typ: t}, nil
	}
	st, ok := t.(*arrow.StructType)
	if !ok {
		e, err := plan.NewEmpty(t)
		if err != nil {
			return nil, fmt.Errorf("%s does not apply to type %s", IcebergFixed, plan.TypeName(t))
		}
		return e, nil
	}
	values := make([]plan.Expr, st.NumFields())
	for i := range values {
		var err error
		if values[i], err = fixedExpr(st.Field(i).Type); err != nil {
			return nil, err
		}
	}
	return plan.NewStruct(st, values)
}

// fixedGo is fixedExpr as a Go value: []any in the order of the fields for a
// struct, an empty []any for a list or map.
func fixedGo(t arrow.DataType) (any, error) {
	if v, ok := fixedValue(t); ok {
		return v, nil
	}
	if st, ok := t.(*arrow.StructType); ok {
		values := make([]any, st.NumFields())
		for i := range values {
			var err error
			if values[i], err = fixedGo(st.Field(i).Type); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
	if plan.IsNested(t) {
		return []any{}, nil
	}
	return nil, fmt.Errorf("%s does not apply to type %s", IcebergFixed, plan.TypeName(t))
}
