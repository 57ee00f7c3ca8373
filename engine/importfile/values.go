package importfile

import (
	"bytes"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/fault"
	"sqe/plan"
)

// textType is the Arrow type that the text of a field becomes. Of what it does not
// know the writer makes the value from text: UUIDs, and nested columns from JSON.
func textType(t arrow.DataType) arrow.DataType {
	switch {
	case plan.IsUUID(t), plan.IsJSON(t), plan.IsNested(t):
		return plan.String
	}
	switch t.ID() {
	case arrow.FIXED_SIZE_BINARY, arrow.BINARY, arrow.LARGE_BINARY:
		return plan.Binary
	case arrow.BOOL, arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DATE32, arrow.TIME64, arrow.TIMESTAMP:
		return t
	}
	return plan.String
}

// appendText appends the value of a text to the builder of a textType; false when it
// is no value of the type.
func appendText(b array.Builder, v []byte) bool {
	if s, ok := b.(*array.StringBuilder); ok {
		if !utf8.Valid(v) {
			return false
		}
		s.BinaryBuilder.Append(v)
		return true
	}
	if s, ok := b.(*array.BinaryBuilder); ok {
		s.Append(v)
		return true
	}
	v = bytes.Trim(v, " \t")
	switch b := b.(type) {
	case *array.BooleanBuilder:
		x, ok := parseBool(v)
		b.Append(x)
		return ok
	case *array.Int32Builder:
		x, err := strconv.ParseInt(string(v), 10, 32)
		b.Append(int32(x))
		return err == nil
	case *array.Int64Builder:
		x, err := strconv.ParseInt(string(v), 10, 64)
		b.Append(x)
		return err == nil
	case *array.Float32Builder:
		if _, ok := parseNumber(v); !ok {
			return false
		}
		x, err := strconv.ParseFloat(string(v), 32)
		b.Append(float32(x))
		return err == nil
	case *array.Float64Builder:
		if _, ok := parseNumber(v); !ok {
			return false
		}
		x, err := strconv.ParseFloat(string(v), 64)
		b.Append(x)
		return err == nil
	case *array.Decimal128Builder:
		t := b.Type().(*arrow.Decimal128Type)
		x, ok := parseDecimal(v, t.Precision, t.Scale)
		b.Append(x)
		return ok
	case *array.Date32Builder:
		x, ok := parseDate(v)
		b.Append(arrow.Date32(x))
		return ok
	case *array.Time64Builder:
		x, ok := parseClock(v, 6)
		b.Append(arrow.Time64(x))
		return ok
	case *array.TimestampBuilder:
		t := b.Type().(*arrow.TimestampType)
		digits := 6
		if t.Unit == arrow.Nanosecond {
			digits = 9
		}
		x, zoned, ok := parseInstant(v, digits)
		if zoned && t.TimeZone == "" {
			return false
		}
		b.Append(arrow.Timestamp(x))
		return ok
	}
	return false
}

// textType is that of the text of a field, or of the constant in its place.
func (c Column) textType() arrow.DataType {
	if c.At < 0 && c.Fill != nil {
		return storage(c.Fill.Typ)
	}
	return textType(c.Field.Type)
}

func storage(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// constant is a column of the value of a column that the file does not have.
func constant(c Column, rows int) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, c.textType())
	defer b.Release()
	for range rows {
		if err := appendConstant(b, c); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// appendConstant appends that value to a builder of a column's textType.
func appendConstant(b array.Builder, c Column) error {
	if c.Fill == nil || c.Fill.Value == nil {
		b.AppendNull()
		return nil
	}
	ok := false
	switch v := c.Fill.Value.(type) {
	case bool:
		ok = appendTo[*array.BooleanBuilder](b, v)
	case int64:
		ok = appendTo[*array.Int64Builder](b, v) || appendTo[*array.Int32Builder](b, int32(v))
	case float64:
		ok = appendTo[*array.Float64Builder](b, v) || appendTo[*array.Float32Builder](b, float32(v))
	case decimal128.Num:
		ok = appendTo[*array.Decimal128Builder](b, v)
	case arrow.Date32:
		ok = appendTo[*array.Date32Builder](b, v)
	case arrow.Time64:
		ok = appendTo[*array.Time64Builder](b, v)
	case arrow.Timestamp:
		ok = appendTo[*array.TimestampBuilder](b, v)
	case string:
		ok = appendTo[*array.StringBuilder](b, v)
	case []byte:
		ok = appendTo[*array.BinaryBuilder](b, v) || appendTo[*array.FixedSizeBinaryBuilder](b, v)
	}
	if !ok {
		return fault.New(fault.Unsupported, "the default value of column '%s' cannot be written; the file must have the column", c.Field.Name)
	}
	return nil
}

func appendTo[B interface{ Append(T) }, T any](b array.Builder, v T) bool {
	to, ok := b.(B)
	if ok {
		to.Append(v)
	}
	return ok
}

func parseBool(v []byte) (value, ok bool) {
	switch {
	case len(v) == 1:
		return v[0] == '1', v[0] == '0' || v[0] == '1'
	case bytes.EqualFold(v, []byte("true")):
		return true, true
	case bytes.EqualFold(v, []byte("false")):
		return false, true
	}
	return false, false
}

// number is a decimal number: digits * 10^exponent.
type number struct {
	negative bool
	digits   []byte // without leading zeros
	exponent int
	whole    bool // written without a point and an exponent
}

// parseNumber reads [sign] digits [. digits] [e [sign] digits].
func parseNumber(v []byte) (n number, ok bool) {
	n.whole = true
	i := 0
	if i < len(v) && (v[i] == '-' || v[i] == '+') {
		n.negative = v[i] == '-'
		i++
	}
	seen := false
	n.digits = make([]byte, 0, 40)
	for point := false; i < len(v); i++ {
		switch c := v[i]; {
		case c >= '0' && c <= '9':
			seen = true
			if len(n.digits) > 0 || c != '0' {
				n.digits = append(n.digits, c)
			}
			if point {
				n.exponent--
			}
			continue
		case c == '.' && !point:
			point, n.whole = true, false
			continue
		}
		break
	}
	if !seen {
		return n, false
	}
	if i < len(v) && (v[i] == 'e' || v[i] == 'E') {
		n.whole = false
		e, err := strconv.Atoi(string(v[i+1:]))
		if err != nil || e > 100_000 || e < -100_000 {
			return n, false
		}
		n.exponent += e
		i = len(v)
	}
	return n, i == len(v)
}

// parseDecimal reads a number exactly.
func parseDecimal(v []byte, precision, scale int32) (d decimal128.Num, ok bool) {
	n, ok := parseNumber(v)
	if !ok {
		return d, false
	}
	// Zeros at the end lose nothing.
	for n.exponent < -int(scale) && len(n.digits) > 0 && n.digits[len(n.digits)-1] == '0' {
		n.digits = n.digits[:len(n.digits)-1]
		n.exponent++
	}
	if len(n.digits) == 0 {
		return d, true
	}
	shift := n.exponent + int(scale)
	if shift < 0 || len(n.digits)+shift > int(precision) {
		return d, false
	}
	for range shift {
		n.digits = append(n.digits, '0')
	}
	if len(n.digits) <= 18 {
		x, err := strconv.ParseInt(string(n.digits), 10, 64)
		if n.negative {
			x = -x
		}
		return decimal128.FromI64(x), err == nil
	}
	x, ok := new(big.Int).SetString(string(n.digits), 10)
	if !ok {
		return d, false
	}
	if n.negative {
		x.Neg(x)
	}
	return decimal128.FromBigInt(x), true
}

func digitsOf(v []byte) (n int, ok bool) {
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(v) > 0
}

// parseDate reads YYYY-MM-DD as days since 1970.
func parseDate(v []byte) (days int32, ok bool) {
	if len(v) != 10 || v[4] != '-' || v[7] != '-' {
		return 0, false
	}
	y, ok1 := digitsOf(v[:4])
	m, ok2 := digitsOf(v[5:7])
	d, ok3 := digitsOf(v[8:])
	if !ok1 || !ok2 || !ok3 || y < 1 || m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if t.Day() != d {
		return 0, false
	}
	return int32(t.Unix() / 86400), true
}

// parseClock reads HH:MM[:SS[.digits]] as units of which 10^digits are a second.
func parseClock(v []byte, digits int) (units int64, ok bool) {
	if len(v) < 5 || v[2] != ':' {
		return 0, false
	}
	h, ok1 := digitsOf(v[:2])
	m, ok2 := digitsOf(v[3:5])
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	s, part := 0, 0
	if v = v[5:]; len(v) > 0 {
		if len(v) < 3 || v[0] != ':' {
			return 0, false
		}
		if s, ok = digitsOf(v[1:3]); !ok || s > 59 {
			return 0, false
		}
		if v = v[3:]; len(v) > 0 {
			if v[0] != '.' || len(v) < 2 || len(v) > 30 {
				return 0, false
			}
			v = v[1:]
			for len(v) > digits {
				if v[len(v)-1] != '0' {
					return 0, false
				}
				v = v[:len(v)-1]
			}
			if part, ok = digitsOf(v); !ok {
				return 0, false
			}
			for range digits - len(v) {
				part *= 10
			}
		}
	}
	unit := int64(1)
	for range digits {
		unit *= 10
	}
	return int64(h*3600+m*60+s)*unit + int64(part), true
}

// parseInstant reads a date, or a date and a time with a blank or T between them, and
// Z, UTC or an offset behind it, as units since 1970.
func parseInstant(v []byte, digits int) (units int64, zoned, ok bool) {
	if len(v) < 10 {
		return 0, false, false
	}
	days, ok := parseDate(v[:10])
	if !ok {
		return 0, false, false
	}
	unit := int64(1)
	for range digits {
		unit *= 10
	}
	if digits == 9 && (days < -106751 || days > 106750) {
		return 0, false, false // beyond what an int64 of nanoseconds holds
	}
	units = int64(days) * 86400 * unit
	if v = v[10:]; len(v) == 0 {
		return units, false, true
	}
	if v[0] != ' ' && v[0] != 'T' {
		return 0, false, false
	}
	v = v[1:]
	offset := 0
	switch i := bytes.IndexAny(v, "+-Zz U"); {
	case i < 0:
	default:
		zone := bytes.TrimLeft(v[i:], " ")
		if offset, ok = parseOffset(zone); !ok {
			return 0, false, false
		}
		v, zoned = v[:i], true
	}
	clock, ok := parseClock(v, digits)
	return units + clock - int64(offset)*unit, zoned, ok
}

// parseOffset reads Z, UTC, +HH, +HHMM or +HH:MM as seconds.
func parseOffset(v []byte) (seconds int, ok bool) {
	if s := string(v); s == "Z" || s == "z" || s == "UTC" {
		return 0, true
	}
	if len(v) < 3 || v[0] != '+' && v[0] != '-' {
		return 0, false
	}
	sign := 1
	if v[0] == '-' {
		sign = -1
	}
	h, ok := digitsOf(v[1:3])
	rest := v[3:]
	if len(rest) == 3 && rest[0] == ':' {
		rest = rest[1:]
	}
	m := 0
	if ok && len(rest) > 0 {
		m, ok = digitsOf(rest)
		ok = ok && len(rest) == 2
	}
	return sign * (h*3600 + m*60), ok && h <= 18 && m <= 59
}
