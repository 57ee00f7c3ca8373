package duck

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/fault"
	"sqe/plan"
)

// literal writes a constant of exactly its type.
func literal(l *plan.Literal) (string, error) {
	t, err := sqlType(l.Typ)
	if err != nil {
		return "", err
	}
	if l.Value == nil {
		if isNull(l.Typ) {
			return "NULL", nil
		}
		return "CAST(NULL AS " + t + ")", nil
	}
	switch v := l.Value.(type) {
	case bool:
		if l.Typ.ID() == arrow.BOOL {
			return strings.ToUpper(strconv.FormatBool(v)), nil
		}
	case int64:
		if plan.IsInteger(l.Typ) {
			return cast(quote(strconv.FormatInt(v, 10)), t), nil
		}
	case uint64:
		if plan.IsInteger(l.Typ) {
			return cast(quote(strconv.FormatUint(v, 10)), t), nil
		}
	case float64:
		if isFloat(l.Typ) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return "", fault.New(fault.OutOfRange, "a number of the statement is out of range")
			}
			return cast(quote(strconv.FormatFloat(v, 'g', -1, 64)), t), nil
		}
	case string:
		if plan.IsString(l.Typ) || plan.IsJSON(l.Typ) {
			return text(v)
		}
	case []byte:
		if plan.IsUUID(l.Typ) {
			if len(v) == 16 {
				h := hex.EncodeToString(v)
				return cast(quote(h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:]), t), nil
			}
		} else if isBinary(l.Typ) {
			return blob(v), nil
		}
	case decimal128.Num:
		if d, ok := l.Typ.(*arrow.Decimal128Type); ok {
			return cast(quote(v.ToString(d.Scale)), t), nil
		}
	case arrow.Date32:
		if l.Typ.ID() == arrow.DATE32 {
			return fmt.Sprintf("make_date(%s)", cast(quote(strconv.Itoa(int(v))), "INTEGER")), nil
		}
	case arrow.Time64:
		if l.Typ.ID() == arrow.TIME64 && v >= 0 && int64(v) < 24*int64(time.Hour/time.Microsecond) {
			return cast(quote(time.UnixMicro(int64(v)).UTC().Format("15:04:05.000000")), t), nil
		}
	case arrow.Timestamp:
		if ts, ok := l.Typ.(*arrow.TimestampType); ok {
			n := cast(quote(strconv.FormatInt(int64(v), 10)), "BIGINT")
			if ts.Unit == arrow.Nanosecond {
				return "make_timestamp_ns(" + n + ")", nil
			}
			s := "make_timestamp(" + n + ")"
			if ts.TimeZone != "" {
				return cast(s, t), nil
			}
			return s, nil
		}
	}
	return "", fault.New(fault.Unsupported, "a constant of type %s cannot be used", typeName(l.Typ))
}

// cast converts without an error handler; operands that cannot be converted
// raise an error.
func cast(expr, sqlType string) string { return "CAST(" + expr + " AS " + sqlType + ")" }

// quote writes text that is known to hold no zero byte.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// text writes any valid UTF-8 text. The query text ends at a zero byte, so a
// value with one is written in hexadecimal.
func text(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fault.New(fault.Unsupported, "a text of the statement is not valid UTF-8; use a binary string (x'...')")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "decode(" + blob([]byte(s)) + ")", nil
	}
	return quote(s), nil
}

func blob(b []byte) string { return "unhex('" + hex.EncodeToString(b) + "')" }
