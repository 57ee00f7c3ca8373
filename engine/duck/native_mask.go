package duck

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"sqe/masks"
)

// classTable is ClassMask for the ASCII characters.
type classTable [128]byte

// maskTable makes the table of a class mask; false when a replacement is more
// than one byte, so that the table cannot hold it.
func maskTable(c masks.ClassMask) (t classTable, ok bool) {
	for _, s := range []string{c.Upper, c.Lower, c.Digit, c.Other} {
		if len(s) > 1 || (len(s) == 1 && s[0] >= 0x80) {
			return t, false
		}
	}
	for i := range t {
		t[i] = masks.Classes(string(rune(i)), masks.ClassMask{Upper: c.Upper, Lower: c.Lower, Digit: c.Digit, Other: c.Other, ASCII: c.ASCII})[0]
	}
	return t, true
}

// kept is how many characters at each end of an ASCII text stay.
func kept(n, first, last int, wholeWhenShort bool) (int, int) {
	if n > first+last {
		return first, last
	}
	if wholeWhenShort {
		return 0, 0
	}
	return n, 0
}

// maskASCII appends the masked text.
func maskASCII(dst, b []byte, first, last int, t *classTable) []byte {
	start := len(dst)
	dst = append(dst, b...)
	part := dst[start+first : len(dst)-last]
	for k, c := range part {
		part[k] = t[c&0x7f]
	}
	return dst
}

func maskClasses(in []vector, out *output, asciiOnly bool) {
	// All arguments but the first are constants of the query.
	c := masks.ClassMask{
		Upper: strings.Clone(in[1].string(0)), Lower: strings.Clone(in[2].string(0)), Digit: strings.Clone(in[3].string(0)), Other: strings.Clone(in[4].string(0)),
		KeepFirst: int(at[int64](in[5], 0)), KeepLast: int(at[int64](in[6], 0)), WholeWhenShort: at[bool](in[7], 0), ASCII: asciiOnly,
	}
	t, tabled := maskTable(c)
	for i := range out.n {
		if in[0].null(i) {
			continue
		}
		b := in[0].bytes(i)
		if !tabled || !ascii(b) {
			out.text(i, masks.Classes(in[0].string(i), c))
			continue
		}
		out.begin(i)
		first, last := kept(len(b), c.KeepFirst, c.KeepLast, c.WholeWhenShort)
		out.bytes = maskASCII(out.bytes, b, first, last, &t)
		out.end(i)
	}
}

func init() {
	for name, asciiOnly := range map[string]bool{"mask_classes": false, "mask_ascii_classes": true} {
		register(name, func(in []vector, out *output) {
			maskClasses(in, out, asciiOnly)
		}, textType, textType, textType, textType, textType, textType, longType, longType, boolType)
	}

	var alphanum classTable
	for i := range alphanum {
		alphanum[i] = masks.Alphanum(string(rune(i)), 0, 0)[0]
	}
	register("mask_alphanum", func(in []vector, out *output) {
		keepFirst, keepLast := int(at[int64](in[1], 0)), int(at[int64](in[2], 0))
		for i := range out.n {
			if in[0].null(i) {
				continue
			}
			b := in[0].bytes(i)
			if !ascii(b) {
				out.text(i, masks.Alphanum(in[0].string(i), keepFirst, keepLast))
				continue
			}
			out.begin(i)
			first, last := kept(len(b), keepFirst, keepLast, false)
			out.bytes = maskASCII(out.bytes, b, first, last, &alphanum)
			out.end(i)
		}
	}, textType, textType, longType, longType)

	register("sha256", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		s := sha256.Sum256(in[0].bytes(i))
		return append(dst, s[:]...), true
	}), blobType, blobType)
	register("hmac_sha256", func(in []vector, out *output) {
		var h hash.Hash
		for i := range out.n {
			if in[0].null(i) {
				continue
			}
			if h == nil {
				// The key is a constant of the query.
				h = hmac.New(sha256.New, in[1].bytes(0))
			}
			h.Reset()
			h.Write(in[0].bytes(i))
			out.begin(i)
			out.bytes = h.Sum(out.bytes)
			out.end(i)
		}
	}, blobType, blobType, blobType)
	register("hex_lower", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return hex.AppendEncode(dst, in[0].bytes(i)), true
	}), textType, blobType)
	register("bytes_first", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		b := in[0].bytes(i)
		return append(dst, b[:min(max(0, at[int64](in[1], i)), int64(len(b)))]...), true
	}), blobType, blobType, longType)
	register("int_bytes_le", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return binary.LittleEndian.AppendUint32(dst, uint32(at[int32](in[0], i))), true
	}), blobType, intType)
	register("long_bytes_le", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return binary.LittleEndian.AppendUint64(dst, uint64(at[int64](in[0], i))), true
	}), blobType, longType)
	register("bytes_int_le", rows(func(in []vector, out *output, i int) {
		if b := in[0].bytes(i); len(b) >= 4 {
			set(out, i, int32(binary.LittleEndian.Uint32(b)))
		}
	}), intType, blobType)
	register("bytes_long_le", rows(func(in []vector, out *output, i int) {
		if b := in[0].bytes(i); len(b) >= 8 {
			set(out, i, int64(binary.LittleEndian.Uint64(b)))
		}
	}), longType, blobType)
}
