package write

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

// errJSON is why a JSON text does not fit a nested column. It holds no value.
var errJSON = errors.New("does not fit")

// fromJSON reads a nested column from JSON text in the form of the engine's to_json:
// a struct and a map are objects, a list is an array, binary values are hexadecimal.
// What the type does not say (an unknown field, a digit too many) is refused.
func fromJSON(a arrow.Array, f plan.Field, want arrow.DataType) (arrow.Array, error) {
	var text func(int) string
	switch s := storageOf(a).(type) {
	case *array.String:
		text = s.Value
	default:
		return nil, errors.New("JSON that is no text")
	}
	b := array.NewBuilder(memory.DefaultAllocator, f.Type)
	defer b.Release()
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		d := json.NewDecoder(strings.NewReader(text(i)))
		d.UseNumber()
		var v any
		err := d.Decode(&v)
		if err == nil {
			if _, more := d.Token(); !errors.Is(more, io.EOF) {
				err = errJSON
			}
		}
		if err == nil {
			err = appendJSON(b, v, f)
		}
		if err != nil {
			return nil, fault.New(fault.OutOfRange, "A JSON text for column '%s' does not fit its type %s", f.Name, plan.TypeName(f.Type))
		}
	}
	out := b.NewArray()
	defer out.Release()
	return relabelled(out, want)
}

func storageOf(a arrow.Array) arrow.Array {
	if e, ok := a.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return a
}

func appendJSON(b array.Builder, v any, f plan.Field) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		o, ok := v.(map[string]any)
		if !ok {
			return errJSON
		}
		b.Append(true)
		found := 0
		for i, c := range f.Children {
			inner, ok := o[c.Name]
			if ok {
				found++
			}
			if err := appendJSON(b.FieldBuilder(i), inner, c); err != nil {
				return err
			}
		}
		if found != len(o) {
			return errJSON
		}
		return nil
	case *array.MapBuilder:
		o, ok := v.(map[string]any)
		if !ok {
			return errJSON
		}
		keys := make([]string, 0, len(o))
		for k := range o {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b.Append(true)
		for _, k := range keys {
			if err := appendJSON(b.KeyBuilder(), keyValue(k, f.Children[0]), f.Children[0]); err != nil {
				return err
			}
			if err := appendJSON(b.ItemBuilder(), o[k], f.Children[1]); err != nil {
				return err
			}
		}
		return nil
	case *array.ListBuilder:
		list, ok := v.([]any)
		if !ok {
			return errJSON
		}
		b.Append(true)
		for _, x := range list {
			if err := appendJSON(b.ValueBuilder(), x, f.Children[0]); err != nil {
				return err
			}
		}
		return nil
	case *array.BooleanBuilder:
		x, ok := v.(bool)
		if !ok {
			return errJSON
		}
		b.Append(x)
		return nil
	}
	switch v := v.(type) {
	case json.Number:
		return appendNumber(b, v.String(), f)
	case string:
		return appendText(b, v, f)
	}
	return errJSON
}

// keyValue is a key of a JSON object, which is always text, as a value of the type.
func keyValue(k string, f plan.Field) any {
	switch {
	case plan.IsNumeric(f.Type):
		return json.Number(k)
	case f.Type.ID() == arrow.BOOL && (k == "true" || k == "false"):
		return k == "true"
	}
	return k
}

func appendNumber(b array.Builder, s string, f plan.Field) error {
	switch b := b.(type) {
	case *array.Int32Builder:
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return errJSON
		}
		b.Append(int32(n))
	case *array.Int64Builder:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errJSON
		}
		b.Append(n)
	case *array.Float32Builder:
		n, err := strconv.ParseFloat(s, 32)
		if err != nil || math.IsInf(n, 0) {
			return errJSON
		}
		b.Append(float32(n))
	case *array.Float64Builder:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(n, 0) {
			return errJSON
		}
		b.Append(n)
	case *array.Decimal128Builder:
		t := f.Type.(*arrow.Decimal128Type)
		if _, digits, found := strings.Cut(s, "."); strings.ContainsAny(s, "eE") || found && len(strings.TrimRight(digits, "0")) > int(t.Scale) {
			return errJSON
		}
		n, err := decimal128.FromString(s, 38, t.Scale)
		if err != nil || !fits(n, t.Precision) {
			return errJSON
		}
		b.Append(n)
	default:
		return errJSON
	}
	return nil
}

func appendText(b array.Builder, s string, f plan.Field) error {
	if plan.IsUUID(f.Type) {
		u, err := uuid.Parse(s)
		if err != nil {
			return errJSON
		}
		e, ok := b.(interface{ Append(uuid.UUID) })
		if !ok {
			return errJSON
		}
		e.Append(u)
		return nil
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(s)
	case *array.BinaryBuilder:
		x, err := hex.DecodeString(s)
		if err != nil {
			return errJSON
		}
		b.Append(x)
	case *array.FixedSizeBinaryBuilder:
		x, err := hex.DecodeString(s)
		if err != nil || len(x) != b.Type().(*arrow.FixedSizeBinaryType).ByteWidth {
			return errJSON
		}
		b.Append(x)
	case *array.Date32Builder:
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return errJSON
		}
		b.Append(arrow.Date32FromTime(t))
	case *array.Time64Builder:
		t, err := time.Parse("15:04:05.999999", s)
		if err != nil {
			return errJSON
		}
		b.Append(arrow.Time64(t.Sub(t.Truncate(24 * time.Hour)).Microseconds()))
	case *array.TimestampBuilder:
		return appendTimestamp(b, s, f)
	case *array.Float32Builder, *array.Float64Builder, *array.Decimal128Builder:
		return appendNumber(b, s, f)
	default:
		return errJSON
	}
	return nil
}

func appendTimestamp(b *array.TimestampBuilder, s string, f plan.Field) error {
	typ := f.Type.(*arrow.TimestampType)
	s = strings.Replace(s, "T", " ", 1)
	t, err := time.Parse("2006-01-02 15:04:05.999999999", strings.TrimSuffix(s, "Z"))
	if err != nil {
		if t, err = time.Parse("2006-01-02 15:04:05.999999999Z07:00", s); err != nil || typ.TimeZone == "" {
			return errJSON
		}
	}
	switch {
	case typ.Unit == arrow.Nanosecond:
		if t.Year() < 1678 || t.Year() > 2261 {
			return errJSON
		}
		b.Append(arrow.Timestamp(t.UnixNano()))
	case t.Nanosecond()%1000 != 0:
		return errJSON
	default:
		b.Append(arrow.Timestamp(t.UnixMicro()))
	}
	return nil
}
