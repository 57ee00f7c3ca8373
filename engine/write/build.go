package write

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// appendTo appends a value of iceberg-go's Go types.
func appendTo(b array.Builder, v any) error {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		if v, ok := v.(bool); ok {
			b.Append(v)
			return nil
		}
	case *array.Int32Builder:
		if v, ok := v.(int32); ok {
			b.Append(v)
			return nil
		}
	case *array.Int64Builder:
		if v, ok := v.(int64); ok {
			b.Append(v)
			return nil
		}
	case *array.Float32Builder:
		if v, ok := v.(float32); ok {
			b.Append(v)
			return nil
		}
	case *array.Float64Builder:
		if v, ok := v.(float64); ok {
			b.Append(v)
			return nil
		}
	case *array.Date32Builder:
		switch v := v.(type) {
		case iceberg.Date:
			b.Append(arrow.Date32(v))
			return nil
		case int32:
			b.Append(arrow.Date32(v))
			return nil
		}
	case *array.Time64Builder:
		if v, ok := v.(iceberg.Time); ok {
			b.Append(arrow.Time64(v))
			return nil
		}
	case *array.TimestampBuilder:
		switch v := v.(type) {
		case iceberg.Timestamp:
			b.Append(arrow.Timestamp(v))
			return nil
		case iceberg.TimestampNano:
			b.Append(arrow.Timestamp(v))
			return nil
		}
	case *array.Decimal128Builder:
		if v, ok := v.(iceberg.Decimal); ok {
			b.Append(v.Val)
			return nil
		}
	case *array.StringBuilder:
		if v, ok := v.(string); ok {
			b.Append(v)
			return nil
		}
	case *array.BinaryBuilder:
		if v, ok := v.([]byte); ok {
			b.Append(v)
			return nil
		}
	case *array.FixedSizeBinaryBuilder:
		switch v := v.(type) {
		case []byte:
			b.Append(v)
			return nil
		case uuid.UUID:
			b.Append(v[:])
			return nil
		}
	}
	return fmt.Errorf("a value of %T for a column of type %s", v, b.Type())
}
