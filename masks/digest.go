package masks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// HMAC is the definition of the plan function hmac_sha256(bytes, key): the 32
// bytes of HMAC-SHA256 (RFC 2104) with a literal key; NULL gives NULL.
func HMAC(message, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil)
}

// The plan functions below are defined as follows; every one gives NULL for NULL.
//
//	utf8_bytes(text)          the bytes of the text
//	sha256(bytes)             32 bytes
//	hex_lower(bytes)          lower-case hexadecimal text
//	bytes_concat(a, b)        a followed by b
//	bytes_first(bytes, n)     the first n bytes (all, when there are fewer); n is a literal
//	int_bytes_le(INT)         4 bytes, little-endian, two's complement
//	long_bytes_le(BIGINT)     8 bytes, likewise
//	bytes_int_le(bytes)       the first 4 bytes read as such an INT
//	bytes_long_le(bytes)      the first 8 bytes read as such a BIGINT
//
// bytes_int_le and bytes_long_le are given digests only; for fewer bytes than
// they need they give NULL.
var (
	fnUTF8      = function("utf8_bytes")
	fnSHA256    = function("sha256")
	fnHMAC      = function("hmac_sha256")
	fnHex       = function("hex_lower")
	fnConcat    = function("bytes_concat")
	fnFirst     = function("bytes_first")
	fnIntBytes  = function("int_bytes_le")
	fnLongBytes = function("long_bytes_le")
	fnBytesInt  = function("bytes_int_le")
	fnBytesLong = function("bytes_long_le")
)

// digest says how values of one type become bytes and a digest becomes a value.
type digest struct {
	toBytes   Mask
	fromBytes Mask
	encode    func(any) []byte
	decode    func([]byte) any
}

// digestOf is the digest of a type, or false for types that are not hashed.
// FIXED(n) up to 32 bytes is hashed by Ranger's action only: Iceberg's
// specification does not list it.
func digestOf(t arrow.DataType, fixedToo bool) (digest, bool) {
	same := func(e plan.Expr) plan.Expr { return e }
	switch {
	case plan.IsString(t):
		return digest{
			toBytes:   func(e plan.Expr) plan.Expr { return call(fnUTF8, plan.Binary, e) },
			fromBytes: func(e plan.Expr) plan.Expr { return call(fnHex, t, e) },
			encode:    func(v any) []byte { return []byte(v.(string)) },
			decode:    func(b []byte) any { return hex.EncodeToString(b) },
		}, true
	case t.ID() == arrow.INT32:
		return digest{
			toBytes:   func(e plan.Expr) plan.Expr { return call(fnIntBytes, plan.Binary, e) },
			fromBytes: func(e plan.Expr) plan.Expr { return call(fnBytesInt, t, e) },
			encode:    func(v any) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v.(int64))) },
			decode:    func(b []byte) any { return int64(int32(binary.LittleEndian.Uint32(b))) },
		}, true
	case t.ID() == arrow.INT64:
		return digest{
			toBytes:   func(e plan.Expr) plan.Expr { return call(fnLongBytes, plan.Binary, e) },
			fromBytes: func(e plan.Expr) plan.Expr { return call(fnBytesLong, t, e) },
			encode:    func(v any) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v.(int64))) },
			decode:    func(b []byte) any { return int64(binary.LittleEndian.Uint64(b)) },
		}, true
	case t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY:
		return digest{
			toBytes:   same,
			fromBytes: same,
			encode:    func(v any) []byte { return v.([]byte) },
			decode:    func(b []byte) any { return b },
		}, true
	}
	fixed, ok := t.(*arrow.FixedSizeBinaryType)
	if !ok || !fixedToo || fixed.ByteWidth > sha256.Size {
		return digest{}, false
	}
	n := integer(fixed.ByteWidth)
	return digest{
		toBytes:   same,
		fromBytes: func(e plan.Expr) plan.Expr { return call(fnFirst, t, e, n) },
		encode:    func(v any) []byte { return v.([]byte) },
		decode:    func(b []byte) any { return b[:fixed.ByteWidth] },
	}, true
}

// mask hashes with the given function from bytes to bytes.
func (d digest) mask(hash Mask) Mask {
	return func(raw plan.Expr) plan.Expr { return d.fromBytes(hash(d.toBytes(raw))) }
}

func plainSHA(e plan.Expr) plan.Expr { return call(fnSHA256, plan.Binary, e) }

func keyed(key []byte) Mask {
	k := &plan.Literal{Value: key, Typ: plan.Binary}
	return func(e plan.Expr) plan.Expr { return call(fnHMAC, plan.Binary, e, k) }
}

func salted(salt []byte) Mask {
	s := &plan.Literal{Value: salt, Typ: plan.Binary}
	return func(e plan.Expr) plan.Expr { return plainSHA(call(fnConcat, plan.Binary, s, e)) }
}
