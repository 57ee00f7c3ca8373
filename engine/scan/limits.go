package scan

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/plan"
)

// family groups types whose values compare with one another.
type family uint8

const (
	boolean family = iota + 1
	whole
	float
	decimal
	text
	octets
	date
	clock
	instant
)

// value is a literal or a limit. whole, date, clock and boolean use num; instant
// uses num for microseconds and nano for the rest; decimal is big / 10^scale.
type value struct {
	family family
	num    int64
	nano   int64
	float  float64
	text   string
	big    *big.Int
	scale  int32
}

func valueOf(l *plan.Literal) (value, bool) {
	switch v := l.Value.(type) {
	case bool:
		if v {
			return value{family: boolean, num: 1}, true
		}
		return value{family: boolean}, true
	case int64:
		return value{family: whole, num: v}, true
	case uint64:
		return value{family: whole, num: int64(v)}, v <= math.MaxInt64
	case float64:
		if l.Typ.ID() == arrow.FLOAT32 {
			v = float64(float32(v))
		}
		return value{family: float, float: v}, !math.IsNaN(v)
	case string:
		return value{family: text, text: v}, plan.IsString(l.Typ)
	case []byte:
		// UUIDs compare as bytes here and as numbers elsewhere: their limits are
		// not to be trusted.
		return value{family: octets, text: string(v)}, !plan.IsUUID(l.Typ)
	case decimal128.Num:
		t, ok := l.Typ.(*arrow.Decimal128Type)
		if !ok {
			return value{}, false
		}
		return value{family: decimal, big: v.BigInt(), scale: t.Scale}, true
	case arrow.Date32:
		return value{family: date, num: int64(v)}, true
	case arrow.Time64:
		return value{family: clock, num: int64(v)}, true
	case arrow.Timestamp:
		t, ok := l.Typ.(*arrow.TimestampType)
		if !ok {
			return value{}, false
		}
		return timestamp(int64(v), t.Unit)
	}
	return value{}, false
}

func timestamp(v int64, unit arrow.TimeUnit) (value, bool) {
	switch unit {
	case arrow.Microsecond:
		return value{family: instant, num: v}, true
	case arrow.Nanosecond:
		us := v / 1000
		if v%1000 < 0 {
			us--
		}
		return value{family: instant, num: us, nano: v - us*1000}, true
	}
	return value{}, false
}

// decode reads a limit in the single-value serialization of the Iceberg
// specification, appendix D. A column that was widened since has limits of its
// old type.
func decode(raw []byte, t arrow.DataType) (value, bool) {
	num := func() (int64, bool) {
		switch len(raw) {
		case 4:
			return int64(int32(binary.LittleEndian.Uint32(raw))), true
		case 8:
			return int64(binary.LittleEndian.Uint64(raw)), true
		}
		return 0, false
	}
	if plan.IsUUID(t) {
		return value{}, false
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		if len(raw) != 1 {
			return value{}, false
		}
		v := value{family: boolean}
		if raw[0] != 0 {
			v.num = 1
		}
		return v, true
	case *arrow.Int32Type, *arrow.Int64Type:
		n, ok := num()
		return value{family: whole, num: n}, ok
	case *arrow.Date32Type:
		n, ok := num()
		return value{family: date, num: n}, ok && len(raw) == 4
	case *arrow.Time64Type:
		n, ok := num()
		return value{family: clock, num: n}, ok && len(raw) == 8
	case *arrow.TimestampType:
		n, ok := num()
		if !ok || len(raw) != 8 {
			return value{}, false
		}
		return timestamp(n, t.Unit)
	case *arrow.Float32Type, *arrow.Float64Type:
		var f float64
		switch len(raw) {
		case 4:
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		case 8:
			f = math.Float64frombits(binary.LittleEndian.Uint64(raw))
		default:
			return value{}, false
		}
		return value{family: float, float: f}, !math.IsNaN(f)
	case *arrow.Decimal128Type:
		if len(raw) == 0 || len(raw) > 16 {
			return value{}, false
		}
		n := new(big.Int).SetBytes(raw)
		if raw[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
		}
		return value{family: decimal, big: n, scale: t.Scale}, true
	case *arrow.StringType:
		return value{family: text, text: string(raw)}, true
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		return value{family: octets, text: string(raw)}, true
	}
	return value{}, false
}

// compare orders two values of one family.
func (v value) compare(o value) (int, bool) {
	if v.family != o.family {
		return 0, false
	}
	switch v.family {
	case float:
		switch {
		case v.float < o.float:
			return -1, true
		case v.float > o.float:
			return 1, true
		}
		return 0, true
	case text, octets:
		return bytes.Compare([]byte(v.text), []byte(o.text)), true
	case decimal:
		s := max(v.scale, o.scale)
		return rescale(v.big, s-v.scale).Cmp(rescale(o.big, s-o.scale)), true
	}
	switch {
	case v.num != o.num:
		if v.num < o.num {
			return -1, true
		}
		return 1, true
	case v.nano != o.nano:
		if v.nano < o.nano {
			return -1, true
		}
		return 1, true
	}
	return 0, true
}

func rescale(n *big.Int, by int32) *big.Int {
	if by == 0 {
		return n
	}
	return new(big.Int).Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(by)), nil))
}

// monotone reports whether a cast never turns the order of two values round, so
// that the cast limits are limits of the cast values.
func monotone(from, to arrow.DataType) bool {
	switch {
	case arrow.TypeEqual(from, to):
		return true
	case plan.IsInteger(from):
		return plan.IsNumeric(to) && to.ID() != arrow.FLOAT32
	case from.ID() == arrow.FLOAT32:
		return to.ID() == arrow.FLOAT64
	case arrow.IsDecimal(from.ID()):
		_, s := plan.DecimalParams(from)
		_, ts := plan.DecimalParams(to)
		return to.ID() == arrow.FLOAT64 || arrow.IsDecimal(to.ID()) && ts >= s
	case from.ID() == arrow.DATE32:
		return to.ID() == arrow.TIMESTAMP
	case from.ID() == arrow.TIMESTAMP:
		f, okF := from.(*arrow.TimestampType)
		t, okT := to.(*arrow.TimestampType)
		return okF && okT && (f.Unit == t.Unit || t.Unit == arrow.Nanosecond)
	}
	return false
}

// cast follows a monotone cast.
func (v value) cast(to arrow.DataType) (value, bool) {
	switch {
	case v.family == whole && plan.IsInteger(to):
		return v, true
	case v.family == whole && to.ID() == arrow.FLOAT64:
		return value{family: float, float: float64(v.num)}, true
	case v.family == whole && arrow.IsDecimal(to.ID()):
		_, s := plan.DecimalParams(to)
		return value{family: decimal, big: rescale(big.NewInt(v.num), s), scale: s}, true
	case v.family == float && arrow.IsFloating(to.ID()):
		return v, true
	case v.family == decimal && to.ID() == arrow.FLOAT64:
		f, _ := new(big.Rat).SetFrac(v.big, rescale(big.NewInt(1), v.scale)).Float64()
		return value{family: float, float: f}, true
	case v.family == decimal && arrow.IsDecimal(to.ID()):
		return v, true
	case v.family == date && to.ID() == arrow.TIMESTAMP:
		return value{family: instant, num: v.num * 86_400_000_000}, true
	case v.family == instant && to.ID() == arrow.TIMESTAMP:
		return v, true
	case v.family == boolean && to.ID() == arrow.BOOL, v.family == text && plan.IsString(to),
		v.family == octets && !plan.IsString(to), v.family == date && to.ID() == arrow.DATE32, v.family == clock && to.ID() == arrow.TIME64:
		return v, true
	}
	return value{}, false
}
