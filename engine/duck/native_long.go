package duck

import "bytes"

// The functions whose results may be longer than each of their operands. DuckDB's own
// ones have no bound, and it does not count the texts of the rows at hand: one statement
// without a table could take all memory of the machine.

// total is how many bytes the texts of a row have; NULL has none.
func total(in []vector, i int) int {
	n := 0
	for _, v := range in {
		if !v.null(i) {
			n += len(v.bytes(i))
		}
	}
	return n
}

// concatenated appends the texts of a row.
func concatenated(dst []byte, in []vector, i int) ([]byte, bool) {
	if total(in, i) > maxText {
		tooLong()
	}
	for _, v := range in {
		dst = append(dst, v.bytes(i)...)
	}
	return dst, true
}

// joined is CONCAT_WS: the first text stands between the others that are not NULL.
func joined(in []vector, out *output) {
	for i := range out.n {
		if in[0].null(i) {
			continue
		}
		separator, rest := in[0].bytes(i), in[1:]
		// Compared by division: there may be many separators, each of them long.
		if free := maxText - total(rest, i); free < 0 || len(separator) > 0 && len(rest)-1 > free/len(separator) {
			tooLong()
		}
		out.begin(i)
		first := true
		for _, v := range rest {
			if v.null(i) {
				continue
			}
			if !first {
				out.bytes = append(out.bytes, separator...)
			}
			first = false
			out.bytes = append(out.bytes, v.bytes(i)...)
		}
		out.end(i)
	}
}

// replaced is REPLACE.
func replaced(dst []byte, in []vector, i int) ([]byte, bool) {
	s, from, to := in[0].bytes(i), in[1].bytes(i), in[2].bytes(i)
	if len(from) == 0 {
		return append(dst, s...), true
	}
	if more := len(to) - len(from); more > 0 && bytes.Count(s, from) > max(0, maxText-len(s))/more {
		tooLong()
	}
	for {
		k := bytes.Index(s, from)
		if k < 0 {
			return append(dst, s...), true
		}
		dst = append(append(dst, s[:k]...), to...)
		s = s[k+len(from):]
	}
}

// hexadecimal is HEX of bytes.
func hexadecimal(dst []byte, in []vector, i int) ([]byte, bool) {
	const digits = "0123456789ABCDEF"
	b := in[0].bytes(i)
	if len(b) > maxText/2 {
		tooLong()
	}
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst, true
}

// room gives the first text when all of them together have room in a result.
func room(in []vector, out *output) {
	sum := 0
	for i := range out.n {
		n := total(in, i)
		if n > maxText {
			tooLong()
		}
		if sum += n; sum > maxVector {
			noMemory()
		}
		if !in[0].null(i) {
			out.begin(i)
			out.bytes = append(out.bytes, in[0].bytes(i)...)
			out.end(i)
		}
	}
}

func init() {
	for _, f := range []struct {
		name string
		run  func([]vector, *output)
	}{{"concat", textRows(concatenated)}, {"concat_ws", joined}, {"room", room}} {
		register(f.name, f.run, textType, textType)
		natives[len(natives)-1].varargs = true
	}
	register("replace", textRows(replaced), textType, textType, textType, textType)
	register("hex", textRows(hexadecimal), textType, blobType)
}
