package masks

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// eval computes an expression of this package by the definitions of the plan
// functions, so that what New composes can be compared with Apply. ref is the
// value of the column.
func eval(t *testing.T, e plan.Expr, ref any) any {
	t.Helper()
	switch e := e.(type) {
	case *plan.Ref:
		return ref
	case *plan.Literal:
		return e.Value
	case *plan.Call:
		args := make([]any, len(e.Operands))
		for i, a := range e.Operands {
			args[i] = eval(t, a, ref)
		}
		return evalCall(t, e, args)
	}
	t.Fatalf("a mask holds %T", e)
	return nil
}

func evalCall(t *testing.T, e *plan.Call, args []any) any {
	t.Helper()
	switch e.Func.Name {
	case "make_struct":
		return args
	case "empty_list", "empty_map":
		return []any{}
	}
	if slices.Contains(args, nil) {
		return nil
	}
	switch e.Func.Name {
	case "md5":
		sum := md5.Sum([]byte(args[0].(string)))
		return hex.EncodeToString(sum[:])
	case "upper":
		return strings.ToUpper(args[0].(string))
	case "mask_classes", "mask_ascii_classes":
		return Classes(args[0].(string), ClassMask{
			Upper: args[1].(string), Lower: args[2].(string), Digit: args[3].(string), Other: args[4].(string),
			KeepFirst: int(args[5].(int64)), KeepLast: int(args[6].(int64)), WholeWhenShort: args[7].(bool),
			ASCII: e.Func.Name == "mask_ascii_classes",
		})
	case "mask_alphanum":
		return Alphanum(args[0].(string), int(args[1].(int64)), int(args[2].(int64)))
	case "utf8_bytes":
		return []byte(args[0].(string))
	case "sha256":
		sum := sha256.Sum256(args[0].([]byte))
		return sum[:]
	case "hmac_sha256":
		// By the pads, as an executor that has SHA-256 only.
		inner, outer := hmacPads(args[1].([]byte))
		sum := sha256.Sum256(slices.Concat(inner, args[0].([]byte)))
		sum = sha256.Sum256(slices.Concat(outer, sum[:]))
		return sum[:]
	case "hex_lower":
		return hex.EncodeToString(args[0].([]byte))
	case "bytes_concat":
		return slices.Concat(args[0].([]byte), args[1].([]byte))
	case "bytes_first":
		return args[0].([]byte)[:args[1].(int64)]
	case "int_bytes_le":
		return binary.LittleEndian.AppendUint32(nil, uint32(int32(args[0].(int64))))
	case "long_bytes_le":
		return binary.LittleEndian.AppendUint64(nil, uint64(args[0].(int64)))
	case "bytes_int_le":
		return int64(int32(binary.LittleEndian.Uint32(args[0].([]byte))))
	case "bytes_long_le":
		return int64(binary.LittleEndian.Uint64(args[0].([]byte)))
	case "date_trunc":
		v, err := truncateGo(args[0].(string), e.Typ, args[1])
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatalf("a mask calls %s, which has no definition here", e.Func.Name)
	return nil
}

// both is the masked value by Apply and by the expression, which must agree.
func both(t *testing.T, action string, f plan.Field, value any, o Options) any {
	t.Helper()
	want, err := Apply(action, f, value, o)
	if err != nil {
		t.Fatalf("%s of %s: %v", action, f.Type, err)
	}
	e, err := build(action, f, &plan.Ref{ID: 1, Typ: f.Type, Name: "c"}, o)
	if err != nil {
		t.Fatalf("%s of %s: %v", action, f.Type, err)
	}
	if !arrow.TypeEqual(e.Type(), f.Type) {
		t.Errorf("%s makes %s out of %s", action, e.Type(), f.Type)
	}
	if !plan.Total(e) || !plan.Deterministic(e) {
		t.Errorf("%s of %s can fail or differ: %s", action, f.Type, plan.FormatExpr(e))
	}
	if got := eval(t, e, value); !equal(got, want) {
		t.Errorf("%s(%v): the expression gives %v, Apply gives %v", action, value, got, want)
	}
	return want
}

func equal(a, b any) bool {
	if x, ok := a.([]byte); ok {
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	}
	return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b)
}

// hmacPads gives the two blocks of 64 bytes with which an executor that has only
// SHA-256 computes HMAC: sha256(outer || sha256(inner || message)).
func hmacPads(key []byte) (inner, outer []byte) {
	const block = 64
	if len(key) > block {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	inner, outer = make([]byte, block), make([]byte, block)
	copy(inner, key)
	copy(outer, key)
	for i := range inner {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	return inner, outer
}

// build is New applied to one expression.
func build(action string, f plan.Field, col plan.Expr, o Options) (plan.Expr, error) {
	m, err := New(action, f, o)
	if err != nil {
		return nil, err
	}
	return m(col), nil
}
