package duck

import "math"

// roundDouble rounds half away from zero, or truncates, at n decimal digits
// (before the point when n is negative), in the arithmetic of MySQL: a value times
// a power of ten.
func roundDouble(v float64, n int64, round bool) float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	if n > 400 {
		return v
	}
	if n < -400 {
		return 0
	}
	p := math.Pow(10, math.Abs(float64(n)))
	scaled := v / p
	if n >= 0 {
		scaled = v * p
	}
	if math.IsInf(p, 0) && n < 0 {
		return 0
	}
	if math.IsInf(scaled, 0) || math.IsInf(p, 0) {
		return v
	}
	if round {
		scaled = math.RoundToEven(scaled)
	} else {
		scaled = math.Trunc(scaled)
	}
	if n >= 0 {
		return scaled / p
	}
	return scaled * p
}

func init() {
	register("round_double", rows(func(in []vector, out *output, i int) {
		v := roundDouble(at[float64](in[0], i), at[int64](in[1], i), at[bool](in[2], i))
		if math.IsInf(v, 0) {
			outOfRange()
		}
		set(out, i, v)
	}), doubleType, doubleType, longType, boolType)
	// round_digits(digits, n, scale, round): the digits of a decimal of that scale,
	// rounded or cut at n places after the point.
	register("round_digits", rows(func(in []vector, out *output, i int) {
		v, n, scale := at[int128](in[0], i), at[int64](in[1], i), at[int64](in[2], i)
		drop := scale - n
		switch {
		case drop <= 0:
			set(out, i, v)
			return
		case drop > 39:
			set(out, i, int128{})
			return
		}
		q, ok := divide(v, int128{lo: 1}, -int(drop), at[bool](in[3], i))
		if ok {
			q, ok = divide(q, int128{lo: 1}, int(drop), false)
		}
		if !ok {
			outOfRange()
		}
		set(out, i, q)
	}), hugeType, hugeType, longType, longType, boolType)
	register("pow", rows(func(in []vector, out *output, i int) {
		v := math.Pow(at[float64](in[0], i), at[float64](in[1], i))
		if math.IsInf(v, 0) || math.IsNaN(v) {
			outOfRange()
		}
		set(out, i, v)
	}), doubleType, doubleType, doubleType)
	register("cot", rows(func(in []vector, out *output, i int) {
		v := 1 / math.Tan(at[float64](in[0], i))
		if math.IsInf(v, 0) || math.IsNaN(v) {
			outOfRange()
		}
		set(out, i, v)
	}), doubleType, doubleType)
}
