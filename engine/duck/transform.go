package duck

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/plan"
	"sqe/transform"
)

// micros is an operand as BIGINT, microseconds since 1970 in UTC, rounded down.
func (c *compiler) micros(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if !isTimestamp(t) {
		return "", refused(e)
	}
	s, err := c.expr(e.Operands[i])
	if isNanos(t) {
		return native("floor_micros", "epoch_ns("+s+")"), err
	}
	return "epoch_us(" + utc(s, t) + ")", err
}

// width is the first operand of bucket and truncate.
func (c *compiler) width(e *plan.Call) (string, error) {
	n, err := constant[int64](e, 0)
	if err != nil {
		return "", err
	}
	if n <= 0 {
		return "", refused(e)
	}
	return c.as(e.Operands[0], plan.Int64)
}

func (c *compiler) bucket(e *plan.Call) (string, error) {
	n, err := c.width(e)
	if err != nil {
		return "", err
	}
	t := e.Operands[1].Type()
	if isTimestamp(t) {
		s, err := c.micros(e, 1)
		return native("bucket_long", n, s), err
	}
	s, err := c.expr(e.Operands[1])
	if err != nil {
		return "", err
	}
	switch {
	case plan.IsUUID(t):
		return native("bucket_blob", n, "unhex(replace(CAST("+s+" AS VARCHAR), '-', ''))"), nil
	case plan.IsString(t):
		return native("bucket_text", n, s), nil
	case isBinary(t):
		return native("bucket_blob", n, s), nil
	case t.ID() == arrow.INT32, t.ID() == arrow.INT64:
		return native("bucket_long", n, cast(s, "BIGINT")), nil
	case t.ID() == arrow.DATE32:
		return native("bucket_long", n, "date_diff('day', DATE '1970-01-01', "+s+")"), nil
	case t.ID() == arrow.TIME64:
		return native("bucket_time", n, s), nil
	case isDecimal(t):
		return native("bucket_decimal", n, cast(s, "VARCHAR")), nil
	}
	return "", refused(e)
}

func (c *compiler) truncated(e *plan.Call) (string, error) {
	w, err := c.width(e)
	if err != nil {
		return "", err
	}
	s, err := c.expr(e.Operands[1])
	if err != nil {
		return "", err
	}
	switch t := e.Operands[1].Type(); {
	case plan.IsString(t):
		return native("truncate_text", w, s), nil
	case isBinary(t) && !plan.IsUUID(t):
		return native("bytes_first", s, w), nil
	case t.ID() == arrow.INT32:
		return native("truncate_int", w, s), nil
	case t.ID() == arrow.INT64:
		return native("truncate_long", w, s), nil
	case isDecimal(t):
		to, err := sqlType(e.Typ)
		return cast(native("truncate_decimal", w, cast(s, "VARCHAR")), to), err
	}
	return "", refused(e)
}

// exactNumber reads the text of a decimal, whatever its precision.
func exactNumber(s string) (decimal128.Num, int32, bool) {
	scale := int32(0)
	for i := range s {
		if s[i] == '.' {
			scale = int32(len(s) - i - 1)
		}
	}
	n, err := decimal128.FromString(s, 38, scale)
	return n, scale, err == nil
}

func init() {
	for _, name := range []string{"iceberg_year", "iceberg_month"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			s, err := c.day(e, 0)
			return native(name, s), err
		}
	}
	scalars["iceberg_day"] = func(c *compiler, e *plan.Call) (string, error) { return c.day(e, 0) }
	scalars["iceberg_hour"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.micros(e, 0)
		return native("iceberg_hour", s), err
	}
	scalars["iceberg_bucket"] = func(c *compiler, e *plan.Call) (string, error) { return c.bucket(e) }
	scalars["iceberg_truncate"] = func(c *compiler, e *plan.Call) (string, error) { return c.truncated(e) }

	register("iceberg_year", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.Year(int64(at[int32](in[0], i)))))
	}), intType, dateType)
	register("iceberg_month", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.Month(int64(at[int32](in[0], i)))))
	}), intType, dateType)
	register("iceberg_hour", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.Hour(at[int64](in[0], i))))
	}), intType, longType)
	register("floor_micros", rows(func(in []vector, out *output, i int) {
		set(out, i, transform.Floor(at[int64](in[0], i), 1000))
	}), longType, longType)
	register("bucket_long", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.BucketInteger(at[int64](in[0], i), at[int64](in[1], i))))
	}), intType, longType, longType)
	register("bucket_time", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.BucketInteger(at[int64](in[0], i), at[int64](in[1], i))))
	}), intType, longType, timeType)
	bytes := rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.Bucket(at[int64](in[0], i), in[1].bytes(i))))
	})
	register("bucket_text", bytes, intType, longType, textType)
	register("bucket_blob", bytes, intType, longType, blobType)
	register("bucket_decimal", rows(func(in []vector, out *output, i int) {
		v, _, ok := exactNumber(in[1].string(i))
		if !ok {
			outOfRange()
		}
		set(out, i, int32(transform.BucketDecimal(at[int64](in[0], i), v)))
	}), intType, longType, textType)
	register("truncate_int", rows(func(in []vector, out *output, i int) {
		set(out, i, int32(transform.TruncateInteger(at[int64](in[0], i), int64(at[int32](in[1], i)))))
	}), intType, longType, intType)
	register("truncate_long", rows(func(in []vector, out *output, i int) {
		set(out, i, transform.TruncateInteger(at[int64](in[0], i), at[int64](in[1], i)))
	}), longType, longType, longType)
	register("truncate_decimal", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		v, scale, ok := exactNumber(in[1].string(i))
		if !ok {
			outOfRange()
		}
		return append(dst, transform.TruncateDecimal(at[int64](in[0], i), v).ToString(scale)...), true
	}), textType, longType, textType)
	register("truncate_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return append(dst, transform.TruncateText(at[int64](in[0], i), in[1].string(i))...), true
	}), textType, longType, textType)
}
