// Package transform holds Iceberg's transforms as plain functions: the definitions
// that the plan functions iceberg_year, iceberg_month, iceberg_day, iceberg_hour,
// iceberg_bucket and iceberg_truncate are held to, and that executors may call.
//
// The functions are total and pure. The package must never know tables or policies.
//
// Source: Iceberg table specification, "Partition Transforms" and appendix B.
package transform

import (
	"encoding/binary"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/twmb/murmur3"
)

const hourMicros = 3_600_000_000

// Year counts the years since 1970 of a day (days since 1970-01-01).
func Year(day int64) int64 {
	y, _ := civil(day)
	return y - 1970
}

// Month counts the months since 1970-01 of a day.
func Month(day int64) int64 {
	y, m := civil(day)
	return (y-1970)*12 + m - 1
}

// Day is the day of an instant in microseconds since 1970.
func Day(micros int64) int64 { return Floor(micros, 24*hourMicros) }

// Hour counts the hours since 1970 of an instant in microseconds.
func Hour(micros int64) int64 { return Floor(micros, hourMicros) }

// Floor is a / b rounded down, for b > 0.
func Floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil is the year and month (1 to 12) of a day in the proleptic Gregorian
// calendar.
func civil(day int64) (year, month int64) {
	// Years that begin in March, in eras of 400 years: the leap day comes last.
	z := day + 719_468
	era := Floor(z, 146_097)
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	year, month = yoe+era*400, mp+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month
}

// Bucket is the number of the bucket, of n > 0, of the bytes of a value.
func Bucket(n int64, b []byte) int64 {
	return int64(murmur3.Sum32(b)&0x7fffffff) % n
}

// BucketInteger is Bucket of an integer, of days, and of microseconds.
func BucketInteger(n, v int64) int64 {
	return Bucket(n, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// BucketDecimal is Bucket of the unscaled value of a decimal.
func BucketDecimal(n int64, v decimal128.Num) int64 {
	return Bucket(n, minimal(v.BigInt()))
}

// minimal is the shortest two's complement of a number, most significant byte first.
func minimal(v *big.Int) []byte {
	if v.Sign() >= 0 {
		b := v.Bytes()
		if len(b) == 0 || b[0] >= 0x80 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	// The magnitude of -v-1 has the inverted bits.
	b := new(big.Int).Not(v).Bytes()
	if len(b) == 0 || b[0] >= 0x80 {
		b = append([]byte{0}, b...)
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// TruncateInteger is the greatest multiple of w > 0 that is not greater than v. It
// wraps below the least number of the type, like the Iceberg reference
// implementation; the caller narrows the result to the type of the value.
func TruncateInteger(w, v int64) int64 {
	r := v % w
	if r < 0 {
		r += w
	}
	return v - r
}

// TruncateDecimal is TruncateInteger of the unscaled value.
func TruncateDecimal(w int64, v decimal128.Num) decimal128.Num {
	r := new(big.Int).Mod(v.BigInt(), big.NewInt(w)) // of Euclid: never negative
	return v.Sub(decimal128.FromBigInt(r))
}

// TruncateText is the first w characters (Unicode scalar values).
func TruncateText(w int64, s string) string {
	for i := range s {
		if w == 0 {
			return s[:i]
		}
		w--
	}
	return s
}

// TruncateBytes is the first w bytes.
func TruncateBytes(w int64, b []byte) []byte { return b[:min(int64(len(b)), w)] }
