package duck

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest text that a function makes. MySQL's bound is the
// packet size of the connection.
const maxText = 16 << 20

func tooLong() { panic(nativeError(limitMark + "text")) }

func ascii(b []byte) bool {
	for len(b) >= 8 {
		if (uint64(b[0])|uint64(b[1])|uint64(b[2])|uint64(b[3])|uint64(b[4])|uint64(b[5])|uint64(b[6])|uint64(b[7]))&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offset is the byte position of character n, or len(b) when b is shorter.
func offset(b []byte, n int64) int {
	if n <= 0 {
		return 0
	}
	if n >= int64(len(b)) {
		return len(b)
	}
	if ascii(b) {
		return int(n)
	}
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, w := utf8.DecodeRune(b[at:])
		at += w
	}
	return at
}

func chars(b []byte) int64 { return int64(utf8.RuneCount(b)) }

func mapRunes(f func(rune) rune, lo, hi byte) func([]byte, []vector, int) ([]byte, bool) {
	return func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		if ascii(b) {
			for _, c := range b {
				if lo <= c && c <= hi {
					c ^= 0x20
				}
				dst = append(dst, c)
			}
			return dst, true
		}
		for len(b) > 0 {
			r, w := utf8.DecodeRune(b)
			if r == utf8.RuneError && w == 1 {
				dst = append(dst, b[0])
			} else {
				dst = utf8.AppendRune(dst, f(r))
			}
			b = b[w:]
		}
		return dst, true
	}
}

// substr is MySQL's SUBSTR(b, pos, n).
func substr(b []byte, pos, n int64) []byte {
	if pos == 0 || n <= 0 {
		return nil
	}
	if pos < 0 {
		if pos += chars(b) + 1; pos <= 0 {
			return nil
		}
	}
	b = b[offset(b, pos-1):]
	return b[:offset(b, n)]
}

func trimLeft(b, rem []byte) []byte {
	for len(rem) > 0 && bytes.HasPrefix(b, rem) {
		b = b[len(rem):]
	}
	return b
}

func trimRight(b, rem []byte) []byte {
	for len(rem) > 0 && bytes.HasSuffix(b, rem) {
		b = b[:len(b)-len(rem)]
	}
	return b
}

// pad appends n characters of the repeated padding.
func pad(dst, padding []byte, n int64) []byte {
	length := chars(padding)
	for ; n >= length; n -= length {
		dst = append(dst, padding...)
	}
	return append(dst, padding[:offset(padding, n)]...)
}

func padded(left bool) func([]byte, []vector, int) ([]byte, bool) {
	return func(dst []byte, in []vector, i int) ([]byte, bool) {
		b, n, padding := in[0].bytes(i), at[int64](in[1], i), in[2].bytes(i)
		if n < 0 {
			return dst, false
		}
		have := chars(b)
		if n <= have {
			return append(dst, b[:offset(b, n)]...), true
		}
		if len(padding) == 0 {
			return dst, true
		}
		if n > maxText || (n-have)*int64(len(padding))/chars(padding) > maxText {
			tooLong()
		}
		if left {
			return append(pad(dst, padding, n-have), b...), true
		}
		return pad(append(dst, b...), padding, n-have), true
	}
}

func soundexCode(r rune) byte {
	const codes = "01230120022455012623010202" // A to Z
	if 'a' <= r && r <= 'z' {
		r -= 0x20
	}
	if 'A' <= r && r <= 'Z' {
		return codes[r-'A']
	}
	return '0'
}

// soundex is MySQL's: the original algorithm (vowels go first, then duplicates),
// of any length, at least four characters.
func soundex(dst, b []byte) []byte {
	start := len(dst)
	var last byte
	n := 0
	for len(b) > 0 {
		r, w := utf8.DecodeRune(b)
		b = b[w:]
		if !unicode.IsLetter(r) {
			continue
		}
		code := soundexCode(r)
		if n == 0 {
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
			n, last = 1, code
			continue
		}
		if code != '0' && code != last {
			dst = append(dst, code)
			n++
			last = code
		}
	}
	if len(dst) == start {
		return dst
	}
	for ; n < 4; n++ {
		dst = append(dst, '0')
	}
	return dst
}

func unhex(dst, b []byte) ([]byte, bool) {
	digit := func(c byte) (byte, bool) {
		switch {
		case '0' <= c && c <= '9':
			return c - '0', true
		case 'a' <= c && c <= 'f':
			return c - 'a' + 10, true
		case 'A' <= c && c <= 'F':
			return c - 'A' + 10, true
		}
		return 0, false
	}
	if len(b)%2 == 1 {
		v, ok := digit(b[0])
		if !ok {
			return dst, false
		}
		dst, b = append(dst, v), b[1:]
	}
	for ; len(b) > 0; b = b[2:] {
		h, ok := digit(b[0])
		l, ok2 := digit(b[1])
		if !ok || !ok2 {
			return dst, false
		}
		dst = append(dst, h<<4|l)
	}
	return dst, true
}

func init() {
	register("lower", textRows(mapRunes(unicode.ToLower, 'A', 'Z')), textType, textType)
	register("upper", textRows(mapRunes(unicode.ToUpper, 'a', 'z')), textType, textType)
	register("reverse", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		for len(b) > 0 {
			_, w := utf8.DecodeLastRune(b)
			dst = append(dst, b[len(b)-w:]...)
			b = b[:len(b)-w]
		}
		return dst, true
	}), textType, textType)
	register("soundex", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return soundex(dst, in[0].bytes(i)), true
	}), textType, textType)
	register("quote", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		dst = append(dst, '\'')
		for _, c := range in[0].bytes(i) {
			switch c {
			case '\'', '\\':
				dst = append(dst, '\\', c)
			case 0:
				dst = append(dst, '\\', '0')
			case 26:
				dst = append(dst, '\\', 'Z')
			default:
				dst = append(dst, c)
			}
		}
		return append(dst, '\''), true
	}), textType, textType)
	register("trim", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		rem := in[1].bytes(i)
		return append(dst, trimRight(trimLeft(in[0].bytes(i), rem), rem)...), true
	}), textType, textType, textType)
	register("ltrim", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return append(dst, trimLeft(in[0].bytes(i), in[1].bytes(i))...), true
	}), textType, textType, textType)
	register("rtrim", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return append(dst, trimRight(in[0].bytes(i), in[1].bytes(i))...), true
	}), textType, textType, textType)
	register("left", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		return append(dst, b[:offset(b, at[int64](in[1], i))]...), true
	}), textType, textType, longType)
	register("right", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b, n := in[0].bytes(i), at[int64](in[1], i)
		if n <= 0 {
			return dst, true
		}
		return append(dst, b[offset(b, chars(b)-n):]...), true
	}), textType, textType, longType)
	register("substr", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return append(dst, substr(in[0].bytes(i), at[int64](in[1], i), at[int64](in[2], i))...), true
	}), textType, textType, longType, longType)
	register("repeat", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b, n := in[0].bytes(i), at[int64](in[1], i)
		if len(b) == 0 || n <= 0 {
			return dst, true
		}
		if n > maxText/int64(len(b)) {
			tooLong()
		}
		for range n {
			dst = append(dst, b...)
		}
		return dst, true
	}), textType, textType, longType)
	register("lpad", textRows(padded(true)), textType, textType, longType, textType)
	register("rpad", textRows(padded(false)), textType, textType, longType, textType)
	register("insert_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b, pos, n, s := in[0].bytes(i), at[int64](in[1], i), at[int64](in[2], i), in[3].bytes(i)
		have := chars(b)
		if pos < 1 || pos > have {
			return append(dst, b...), true
		}
		dst = append(append(dst, b[:offset(b, pos-1)]...), s...)
		if n < 0 || n > have-pos+1 {
			return dst, true
		}
		return append(dst, b[offset(b, pos-1+n):]...), true
	}), textType, textType, longType, longType, textType)
	register("substring_index", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b, d, n := in[0].bytes(i), in[1].bytes(i), at[int64](in[2], i)
		if len(d) == 0 || n == 0 {
			return dst, true
		}
		if n > 0 {
			end := 0
			for ; n > 0; n-- {
				k := bytes.Index(b[end:], d)
				if k < 0 {
					return append(dst, b...), true
				}
				end += k + len(d)
			}
			return append(dst, b[:end-len(d)]...), true
		}
		start := len(b)
		for ; n < 0; n++ {
			k := bytes.LastIndex(b[:start], d)
			if k < 0 {
				return append(dst, b...), true
			}
			start = k
		}
		return append(dst, b[start+len(d):]...), true
	}), textType, textType, textType, longType)
	register("ascii", rows(func(in []vector, out *output, i int) {
		if b := in[0].bytes(i); len(b) > 0 {
			set(out, i, int64(b[0]))
		} else {
			set(out, i, int64(0))
		}
	}), longType, textType)
	register("ord", rows(func(in []vector, out *output, i int) {
		b, v := in[0].bytes(i), int64(0)
		if len(b) > 0 {
			_, w := utf8.DecodeRune(b)
			for _, c := range b[:w] {
				v = v<<8 | int64(c)
			}
		}
		set(out, i, v)
	}), longType, textType)
	register("locate", rows(func(in []vector, out *output, i int) {
		needle, b, from := in[0].bytes(i), in[1].bytes(i), at[int64](in[2], i)
		v := int64(0)
		if from >= 1 && from <= chars(b)+1 {
			start := offset(b, from-1)
			if k := bytes.Index(b[start:], needle); k >= 0 {
				v = from + chars(b[start:start+k])
			}
		}
		set(out, i, v)
	}), longType, textType, textType, longType)
	register("find_in_set", rows(func(in []vector, out *output, i int) {
		s, list, v := in[0].bytes(i), in[1].bytes(i), int64(0)
		if bytes.IndexByte(s, ',') < 0 && len(list) > 0 {
			n := int64(0)
			for part := range bytes.SplitSeq(list, []byte{','}) {
				n++
				if bytes.Equal(part, s) {
					v = n
					break
				}
			}
		}
		set(out, i, v)
	}), longType, textType, textType)
	register("commas", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		s := in[0].string(i)
		if strings.HasPrefix(s, "-") {
			dst, s = append(dst, '-'), s[1:]
		}
		whole, frac, _ := strings.Cut(s, ".")
		for k, c := range []byte(whole) {
			if k > 0 && (len(whole)-k)%3 == 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, c)
		}
		if frac != "" {
			dst = append(append(dst, '.'), frac...)
		}
		return dst, true
	}), textType, textType)
	register("like", rows(func(in []vector, out *output, i int) {
		set(out, i, like(in[0].bytes(i), in[1].bytes(i), in[2].bytes(i)))
	}), boolType, textType, textType, textType)
	register("hex_number", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		start := len(dst)
		dst = strconv.AppendUint(dst, uint64(at[int64](in[0], i)), 16)
		copy(dst[start:], bytes.ToUpper(dst[start:]))
		return dst, true
	}), textType, longType)
	register("sha2", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		switch at[int64](in[1], i) {
		case 0, 256:
			s := sha256.Sum256(b)
			return hex.AppendEncode(dst, s[:]), true
		case 224:
			s := sha256.Sum224(b)
			return hex.AppendEncode(dst, s[:]), true
		case 384:
			s := sha512.Sum384(b)
			return hex.AppendEncode(dst, s[:]), true
		case 512:
			s := sha512.Sum512(b)
			return hex.AppendEncode(dst, s[:]), true
		}
		return dst, false
	}), textType, blobType, longType)
	register("unhex", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return unhex(dst, in[0].bytes(i))
	}), blobType, textType)
	register("unhex_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		start := len(dst)
		dst, ok := unhex(dst, in[0].bytes(i))
		return dst, ok && utf8.Valid(dst[start:])
	}), textType, textType)
	register("utf8_text", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		return append(dst, b...), utf8.Valid(b)
	}), textType, blobType)
	register("number_text", textRows(numberText), textType, textType)
	register("integer_text", textRows(integerText), textType, textType)
}
