package duck

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// int128 is DuckDB's HUGEINT and the storage of DECIMAL(38, s).
type int128 struct {
	lo uint64
	hi int64
}

func (a int128) abs() (v uint128, negative bool) {
	if a.hi >= 0 {
		return uint128{hi: uint64(a.hi), lo: a.lo}, false
	}
	lo, c := bits.Sub64(0, a.lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.hi), c)
	return uint128{hi: hi, lo: lo}, true
}

type uint128 struct{ hi, lo uint64 }

func (u uint128) big() *big.Int {
	b := new(big.Int).SetUint64(u.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(u.lo))
}

func (u uint128) signed(negative bool) (int128, bool) {
	if u.hi>>63 != 0 {
		return int128{}, false
	}
	if !negative {
		return int128{lo: u.lo, hi: int64(u.hi)}, true
	}
	lo, c := bits.Sub64(0, u.lo, 0)
	hi, _ := bits.Sub64(0, u.hi, c)
	return int128{lo: lo, hi: int64(hi)}, true
}

var powers = func() [20]uint64 {
	var p [20]uint64
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// divide is a * 10^shift / b, rounded half away from zero or truncated. b is not
// zero. ok is false when the result does not fit.
func divide(a, b int128, shift int, round bool) (int128, bool) {
	x, nx := a.abs()
	y, ny := b.abs()
	if shift >= 0 && shift < 20 && x.hi == 0 && y.hi == 0 {
		hi, lo := bits.Mul64(x.lo, powers[shift])
		if hi < y.lo {
			q, r := bits.Div64(hi, lo, y.lo)
			u := uint128{lo: q}
			if round && r >= y.lo-r {
				lo, c := bits.Add64(u.lo, 1, 0)
				u = uint128{hi: c, lo: lo}
			}
			return u.signed(nx != ny)
		}
	}
	p, q := x.big(), y.big()
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		p.Mul(p, ten)
	} else {
		q.Mul(q, ten)
	}
	r := new(big.Int)
	p.QuoRem(p, q, r)
	if round && r.Lsh(r, 1).Cmp(q) >= 0 {
		p.Add(p, big.NewInt(1))
	}
	if p.BitLen() > 127 {
		return int128{}, false
	}
	var u uint128
	u.lo = new(big.Int).And(p, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	u.hi = new(big.Int).Rsh(p, 64).Uint64()
	return u.signed(nx != ny)
}

func outOfRange() { panic(nativeError(rangeMark + "out of range")) }

func init() {
	for s := range uint8(39) {
		move := rows(func(in []vector, out *output, i int) { set(out, i, at[int128](in[0], i)) })
		register("unscaled_"+strconv.Itoa(int(s)), move, hugeType, decimalType(s))
		register("scaled_"+strconv.Itoa(int(s)), func(in []vector, out *output) {
			rows(func(in []vector, out *output, i int) {
				v := at[int128](in[0], i)
				if u, _ := v.abs(); u.hi > maxDecimal.hi || (u.hi == maxDecimal.hi && u.lo > maxDecimal.lo) {
					outOfRange()
				}
				set(out, i, v)
			})(in, out)
		}, decimalType(s), hugeType)
	}
	division := func(round bool) func([]vector, *output) {
		return rows(func(in []vector, out *output, i int) {
			b := at[int128](in[1], i)
			if b == (int128{}) {
				return
			}
			v, ok := divide(at[int128](in[0], i), b, int(at[int32](in[2], i)), round)
			if !ok {
				outOfRange()
			}
			set(out, i, v)
		})
	}
	register("divide", division(true), hugeType, hugeType, hugeType, intType)
	register("int_div", division(false), hugeType, hugeType, hugeType, intType)
	register("finite", rows(func(in []vector, out *output, i int) {
		v := at[float64](in[0], i)
		if math.IsInf(v, 0) {
			outOfRange()
		}
		set(out, i, v) // NaN comes only out of files
	}), doubleType, doubleType)
	// digits is a float as decimal text, without exponent, from which a decimal is
	// rounded as MySQL does.
	register("digits", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		v := at[float64](in[0], i)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return dst, false
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64), true
	}), textType, doubleType)
	register("double_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return appendFloat(dst, at[float64](in[0], i), -1, 64), true
	}), textType, doubleType)
	register("float_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return appendFloat(dst, float64(at[float32](in[0], i)), 6, 32), true
	}), textType, floatType)
}

// maxDecimal is 10^38 - 1.
var maxDecimal = func() uint128 {
	b := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	b.Sub(b, big.NewInt(1))
	return uint128{hi: new(big.Int).Rsh(b, 64).Uint64(), lo: new(big.Int).And(b, new(big.Int).SetUint64(math.MaxUint64)).Uint64()}
}()

// appendFloat writes a float as MySQL shows it: without an exponent while the
// decimal point is within 15 digits of the first digit.
func appendFloat(dst []byte, v float64, precision, size int) []byte {
	if v == 0 {
		return append(dst, '0')
	}
	p := precision
	if p > 0 {
		p--
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], v, 'e', p, size)
	// d.ddde±xx
	neg := e[0] == '-'
	if neg {
		e = e[1:]
	}
	k := len(e) - 1
	for k > 0 && e[k] != 'e' {
		k--
	}
	if k == 0 {
		return append(dst, e...) // NaN or infinity: cannot occur in MySQL
	}
	exp, _ := strconv.Atoi(string(e[k+1:]))
	digits := append([]byte{e[0]}, e[min(2, k):k]...)
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if neg {
		dst = append(dst, '-')
	}
	point := exp + 1 // digits before the decimal point
	switch {
	case point > 15 || point <= -15:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(exp), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	case len(digits) <= point:
		dst = append(dst, digits...)
		for range point - len(digits) {
			dst = append(dst, '0')
		}
		return dst
	}
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...)
}
