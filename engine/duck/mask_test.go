package duck

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/scan"
	"sqe/masks"
	"sqe/plan"
)

// randomText is a text of up to 20 characters, ASCII more often than not.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	plain := r.IntN(2) == 0
	for range r.IntN(21) {
		switch {
		case plain || r.IntN(3) > 0:
			b.WriteByte(byte(r.IntN(128)))
		case r.IntN(2) == 0:
			b.WriteRune(rune(r.IntN(0x3000)))
		default:
			c := rune(r.IntN(0x110000))
			if c >= 0xd800 && c < 0xe000 {
				c = 0xfffd
			}
			b.WriteRune(c)
		}
	}
	return b.String()
}

// masked computes a mask over values in DuckDB, in the order of the values.
func masked(t *testing.T, in *Instance, typ arrow.DataType, values arrow.Array, mask masks.Mask) []string {
	t.Helper()
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range values.Len() {
		ids.Append(int64(i))
	}
	b := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "n", Type: plan.Int64}, {Name: "v", Type: typ, Nullable: true}}, nil), []arrow.Array{ids.NewArray(), values}, int64(values.Len()))
	s := scanOf(1, column{"n", plan.Int64, ""}, column{"v", typ, ""})
	p := &plan.Project{Input: s, Items: []plan.Item{item(10, ref(s, 0)), item(11, mask(ref(s, 1)))}}
	rows, err := run(t, in, &plan.Project{
		Input: &plan.Sort{Input: p, Keys: []plan.SortKey{asc(&plan.Ref{ID: 10, Typ: plan.Int64})}},
		Items: []plan.Item{item(11, &plan.Ref{ID: 11, Typ: p.Items[1].Type})},
	}, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b}}}))
	if err != nil {
		t.Fatalf("%v: %v", err, unwrapped(err))
	}
	return rows
}

// shown is a value of masks.Apply as show prints it.
func shown(v any, t arrow.DataType) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return fmt.Sprintf("%x", v)
	case arrow.Date32:
		return v.FormattedString()
	case arrow.Timestamp:
		b := array.NewTimestampBuilder(memory.DefaultAllocator, t.(*arrow.TimestampType))
		b.Append(v)
		return show(b.NewArray(), 0)
	}
	return fmt.Sprint(v)
}

// TestMasks compares every action with its plain definition.
func TestMasks(t *testing.T) {
	in := open(t, Config{})
	r := rand.New(rand.NewPCG(1, 2))
	const n = 5000
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	longs := array.NewInt64Builder(memory.DefaultAllocator)
	blobs := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	fixes := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, fixed3)
	dates := array.NewDate32Builder(memory.DefaultAllocator)
	stamps := array.NewTimestampBuilder(memory.DefaultAllocator, plan.Timestamp.(*arrow.TimestampType))
	zoned := array.NewTimestampBuilder(memory.DefaultAllocator, plan.TimestampTZ.(*arrow.TimestampType))
	nanos := array.NewTimestampBuilder(memory.DefaultAllocator, plan.TimestampNS.(*arrow.TimestampType))
	values := map[string][]any{}
	add := func(name string, v any) { values[name] = append(values[name], v) }
	for i := range n {
		if i%50 == 49 {
			for _, b := range []array.Builder{texts, ints, longs, blobs, fixes, dates, stamps, zoned, nanos} {
				b.AppendNull()
			}
			for _, k := range []string{"text", "int", "long", "blob", "fixed", "date", "stamp", "zoned", "nanos"} {
				add(k, nil)
			}
			continue
		}
		s := randomText(r)
		texts.Append(s)
		add("text", s)
		v := int32(r.Uint32())
		ints.Append(v)
		add("int", int64(v))
		l := int64(r.Uint64())
		longs.Append(l)
		add("long", l)
		blobs.Append([]byte(s))
		add("blob", []byte(s))
		f := []byte{byte(i), byte(i >> 8), 7}
		fixes.Append(f)
		add("fixed", f)
		d := arrow.Date32(r.IntN(2_000_000) - 1_000_000)
		dates.Append(d)
		add("date", d)
		ts := arrow.Timestamp(r.Int64N(1<<60) - 1<<59)
		stamps.Append(ts)
		add("stamp", ts)
		zoned.Append(ts)
		add("zoned", ts)
		ns := arrow.Timestamp(int64(r.Uint64()))
		nanos.Append(ns)
		add("nanos", ns)
	}
	columns := map[string]struct {
		typ arrow.DataType
		arr arrow.Array
	}{
		"text": {plan.String, texts.NewArray()}, "int": {plan.Int32, ints.NewArray()}, "long": {plan.Int64, longs.NewArray()},
		"blob": {plan.Binary, blobs.NewArray()}, "fixed": {fixed3, fixes.NewArray()}, "date": {plan.Date, dates.NewArray()},
		"stamp": {plan.Timestamp, stamps.NewArray()}, "zoned": {plan.TimestampTZ, zoned.NewArray()}, "nanos": {plan.TimestampNS, nanos.NewArray()},
	}
	actions := []string{
		masks.Redact, masks.ShowFirst4, masks.ShowLast4, masks.Hash, masks.Null, masks.DateShowYear,
		masks.IcebergAlphanum, masks.IcebergShowFirst4, masks.IcebergShowLast4, masks.IcebergNull, masks.IcebergFixed,
		masks.IcebergTruncateYear, masks.IcebergTruncateMonth, masks.IcebergSHA256Global, masks.IcebergSHA256QueryOnly,
	}
	for name, c := range columns {
		f := plan.Field{Name: name, Type: c.typ}
		for _, action := range actions {
			for _, variant := range []masks.Options{
				{},
				{KeepShort: true},
				{Rendering: masks.RenderTrino},
				{Rendering: masks.RenderTrino, KeepShort: true, UnkeyedHash: true},
				{Rendering: masks.RenderSpark},
				{Rendering: masks.RenderSpark, KeepShort: true, UnkeyedHash: true},
			} {
				o := variant
				o.HashKey, o.Salt = []byte("sqe-ac-e2e-mask-key"), []byte("0123456789abcdef")
				m, err := masks.New(action, f, o)
				if err != nil {
					continue
				}
				for i, got := range masked(t, in, c.typ, c.arr, m) {
					v, err := masks.Apply(action, f, values[name][i], o)
					if err != nil {
						t.Fatal(err)
					}
					if want := shown(v, c.typ); got != want {
						t.Errorf("%s (%+v) of the %s %v gives %q, want %q", action, variant, name, values[name][i], got, want)
						break
					}
				}
			}
		}
	}
}

// Class masks with every kind of replacement, beyond those of the actions.
func TestClassMasks(t *testing.T) {
	in := open(t, Config{})
	r := rand.New(rand.NewPCG(3, 4))
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	var values []string
	for range 3000 {
		s := randomText(r)
		texts.Append(s)
		values = append(values, s)
	}
	arr := texts.NewArray()
	for _, c := range []masks.ClassMask{
		{Upper: "X", Lower: "x", Digit: "n", Other: "*", KeepFirst: 1, KeepLast: 2},
		{Upper: "Ж", Lower: "", Digit: "##", Other: "", KeepFirst: 3},
		{KeepLast: 3, WholeWhenShort: true},
		{Digit: "0"},
		{Upper: "\x00", Lower: "'", Other: " ", WholeWhenShort: true},
	} {
		m := func(raw plan.Expr) plan.Expr {
			return call("mask_classes", raw, c.Upper, c.Lower, c.Digit, c.Other, c.KeepFirst, c.KeepLast, c.WholeWhenShort)
		}
		for i, got := range masked(t, in, plan.String, arr, m) {
			if want := masks.Classes(values[i], c); got != want {
				t.Errorf("%+v of %q gives %q, want %q", c, values[i], got, want)
				break
			}
		}
	}
	for _, f := range []struct {
		name string
		want func(string) string
	}{
		{"lower", func(s string) string { return strings.Map(lowerRune, s) }},
		{"reverse", func(s string) string {
			rs := []rune(s)
			for i, j := 0, len(rs)-1; i < j; i, j = i+1, j-1 {
				rs[i], rs[j] = rs[j], rs[i]
			}
			return string(rs)
		}},
	} {
		for i, got := range masked(t, in, plan.String, arr, func(raw plan.Expr) plan.Expr { return call(f.name, raw) }) {
			if want := f.want(values[i]); got != want {
				t.Errorf("%s(%q) gives %q, want %q", f.name, values[i], got, want)
				break
			}
		}
	}
}

func lowerRune(r rune) rune { return unicode.ToLower(r) }
