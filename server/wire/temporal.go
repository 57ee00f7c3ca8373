package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// The years that MySQL's date types have.
const minYear, maxYear = 0, 9999

// civil converts days since 1970-01-01 to the proleptic Gregorian calendar.
// Algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
func civil(days int64) (year int64, month, day int) {
	z := days + 719_468
	era := floorDiv(z, 146_097)
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy-(153*mp+2)/5) + 1
	year = yoe + era*400
	if mp < 10 {
		return year, int(mp) + 3, day
	}
	return year + 1, int(mp) - 9, day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// dates writes DATE.
func (e *Encoder) dates(arr arrow.Array) put {
	var day func(i int) int64
	switch a := arr.(type) {
	case *array.Date32:
		v := a.Date32Values()
		day = func(i int) int64 { return int64(v[i]) }
	case *array.Date64:
		v := a.Date64Values()
		day = func(i int) int64 { return floorDiv(int64(v[i]), 86_400_000) }
	default:
		return nil
	}
	return func(dst []byte, i int) []byte {
		y, m, d := civil(day(i))
		if y < minYear || y > maxYear {
			e.refuse("date")
			return dst
		}
		if e.binary {
			return append(dst, 4, byte(y), byte(y>>8), byte(m), byte(d))
		}
		return appendDate(append(dst, 10), y, m, d)
	}
}

// timestamps writes DATETIME(6), in UTC when the type has a time zone. Digits
// beyond the microsecond are cut off.
func (e *Encoder) timestamps(arr arrow.Array) put {
	a, ok := arr.(*array.Timestamp)
	if !ok {
		return nil
	}
	v := a.TimestampValues()
	micros := perMicro(arr.DataType().(*arrow.TimestampType).Unit)
	return func(dst []byte, i int) []byte {
		t, fits := micros(int64(v[i]))
		days := floorDiv(t, microsPerDay)
		y, m, d := civil(days)
		if !fits || y < minYear || y > maxYear {
			e.refuse("timestamp")
			return dst
		}
		rest := t - days*microsPerDay
		if e.binary {
			return appendBinaryDatetime(dst, y, m, d, rest)
		}
		dst = appendDate(append(dst, 26), y, m, d)
		return appendClock(append(dst, ' '), rest)
	}
}

// perMicro converts a number of units to microseconds, rounding down, and
// reports whether the result fits.
func perMicro(u arrow.TimeUnit) func(int64) (int64, bool) {
	scale := func(by int64) func(int64) (int64, bool) {
		return func(x int64) (int64, bool) {
			y := x * by
			return y, y/by == x
		}
	}
	switch u {
	case arrow.Second:
		return scale(microsPerSecond)
	case arrow.Millisecond:
		return scale(1000)
	case arrow.Nanosecond:
		return func(x int64) (int64, bool) { return floorDiv(x, 1000), true }
	}
	return func(x int64) (int64, bool) { return x, true }
}

func appendBinaryDatetime(dst []byte, y int64, m, d int, rest int64) []byte {
	micro := uint32(rest % microsPerSecond)
	s := rest / microsPerSecond
	n := byte(11)
	switch {
	case rest == 0:
		n = 4
	case micro == 0:
		n = 7
	}
	dst = append(dst, n, byte(y), byte(y>>8), byte(m), byte(d))
	if n > 4 {
		dst = append(dst, byte(s/3600), byte(s/60%60), byte(s%60))
	}
	if n > 7 {
		dst = binary.LittleEndian.AppendUint32(dst, micro)
	}
	return dst
}

// maxTime is the end of MySQL's TIME, 838:59:59.999999 in microseconds.
const maxTime = (839*3600)*microsPerSecond - 1

// times writes TIME(6). Beyond a time of day it may be negative and longer than a
// day, as MySQL's TIME is.
func (e *Encoder) times(arr arrow.Array) put {
	var value func(i int) (int64, bool)
	switch a := arr.(type) {
	case *array.Time64:
		v, micros := a.Time64Values(), perMicro(arr.DataType().(*arrow.Time64Type).Unit)
		value = func(i int) (int64, bool) { return micros(int64(v[i])) }
	case *array.Time32:
		v, micros := a.Time32Values(), perMicro(arr.DataType().(*arrow.Time32Type).Unit)
		value = func(i int) (int64, bool) { return micros(int64(v[i])) }
	default:
		return nil
	}
	return func(dst []byte, i int) []byte {
		t, fits := value(i)
		if !fits || t > maxTime || t < -maxTime {
			e.refuse("time")
			return dst
		}
		sign := byte(0)
		if t < 0 {
			sign, t = 1, -t
		}
		if !e.binary {
			at := len(dst)
			dst = append(dst, 0)
			if sign == 1 {
				dst = append(dst, '-')
			}
			dst = appendClock(dst, t)
			dst[at] = byte(len(dst) - at - 1)
			return dst
		}
		if t == 0 {
			return append(dst, 0)
		}
		s, micro := t/microsPerSecond, uint32(t%microsPerSecond)
		n := byte(8)
		if micro != 0 {
			n = 12
		}
		dst = append(dst, n, sign)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(s/86_400))
		dst = append(dst, byte(s/3600%24), byte(s/60%60), byte(s%60))
		if n == 12 {
			dst = binary.LittleEndian.AppendUint32(dst, micro)
		}
		return dst
	}
}
