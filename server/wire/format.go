package wire

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
)

func append32(dst []byte, x uint32) []byte { return binary.LittleEndian.AppendUint32(dst, x) }
func append64(dst []byte, x uint64) []byte { return binary.LittleEndian.AppendUint64(dst, x) }

func appendInt(dst []byte, x int64) []byte   { return strconv.AppendInt(dst, x, 10) }
func appendUint(dst []byte, x uint64) []byte { return strconv.AppendUint(dst, x, 10) }

// append2 appends two decimal digits.
func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendDate appends YYYY-MM-DD for a year of at most four digits.
func appendDate(dst []byte, y int64, m, d int) []byte {
	dst = append2(dst, int(y)/100)
	dst = append2(dst, int(y)%100)
	dst = append2(append(dst, '-'), m)
	return append2(append(dst, '-'), d)
}

// appendClock appends HH:MM:SS.ffffff for a number of microseconds; hours take
// as many digits as they need, at least two.
func appendClock(dst []byte, micros int64) []byte {
	s, f := micros/microsPerSecond, int(micros%microsPerSecond)
	if h := s / 3600; h < 100 {
		dst = append2(dst, int(h))
	} else {
		dst = appendInt(dst, h)
	}
	dst = append2(append(dst, ':'), int(s/60%60))
	dst = append2(append(dst, ':'), int(s%60))
	dst = append2(append(dst, '.'), f/10_000)
	dst = append2(dst, f/100%100)
	return append2(dst, f%100)
}

// appendFloatCell appends a length and the shortest text that reads back as x, in
// the form that MySQL chooses: without an exponent for 1e-15 <= |x| < 1e15, else
// as 1.5e300 or 1e-16 (my_gcvt in MySQL's strings/dtoa.cc). bits is 32 or 64.
func appendFloatCell(dst []byte, x float64, bits int) []byte {
	at := len(dst)
	dst = append(dst, 0)
	abs := math.Abs(x)
	if abs == 0 || abs >= 1e-15 && abs < 1e15 {
		dst = strconv.AppendFloat(dst, x, 'f', -1, bits)
	} else {
		dst = appendExponent(dst, x, bits)
	}
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// appendExponent appends 1.5e300, where strconv has 1.5e+300 and 1e-05.
func appendExponent(dst []byte, x float64, bits int) []byte {
	at := len(dst)
	dst = strconv.AppendFloat(dst, x, 'e', -1, bits)
	e := at
	for dst[e] != 'e' {
		e++
	}
	digits := e + 1
	from := digits
	if dst[from] == '-' {
		digits++
	}
	from++
	for from < len(dst)-1 && dst[from] == '0' {
		from++
	}
	return append(dst[:digits], dst[from:]...)
}

// appendDecimal appends a length and x / 10^scale.
func appendDecimal(dst []byte, x int64, scale int) []byte {
	at := len(dst)
	dst = append(dst, 0)
	u := uint64(x)
	if x < 0 {
		dst = append(dst, '-')
		u = -u
	}
	digits := len(dst)
	dst = appendUint(dst, u)
	dst = point(dst, digits, scale)
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// appendBigDecimal is appendDecimal for any size; at most 78 digits.
func appendBigDecimal(dst []byte, x *big.Int, scale int) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if x.Sign() < 0 {
		dst = append(dst, '-')
		x = new(big.Int).Neg(x)
	}
	digits := len(dst)
	dst = x.Append(dst, 10)
	dst = point(dst, digits, scale)
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// point puts the decimal point into the digits that start at from, with zeros in
// front as needed.
func point(dst []byte, from, scale int) []byte {
	if scale == 0 {
		return dst
	}
	if missing := scale + 1 - (len(dst) - from); missing > 0 {
		for range missing {
			dst = append(dst, '0')
		}
		copy(dst[from+missing:], dst[from:len(dst)-missing])
		for i := range missing {
			dst[from+i] = '0'
		}
	}
	dst = append(dst, 0)
	whole := len(dst) - 1 - scale
	copy(dst[whole+1:], dst[whole:len(dst)-1])
	dst[whole] = '.'
	return dst
}

// appendUUID appends the 36 characters of a UUID of 16 bytes.
func appendUUID(dst, u []byte) []byte {
	dst = append(hex.AppendEncode(dst, u[:4]), '-')
	dst = append(hex.AppendEncode(dst, u[4:6]), '-')
	dst = append(hex.AppendEncode(dst, u[6:8]), '-')
	dst = append(hex.AppendEncode(dst, u[8:10]), '-')
	return hex.AppendEncode(dst, u[10:16])
}
