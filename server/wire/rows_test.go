package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"sqe/fault"
	"sqe/plan"
)

// sink is a connection that keeps what is written.
type sink struct {
	net.Conn
	bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error)      { return s.Buffer.Write(p) }
func (s *sink) Read(p []byte) (int, error)       { return s.Buffer.Read(p) }
func (s *sink) Close() error                     { return nil }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func build(t arrow.DataType, add func(array.Builder)) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	add(b)
	return b.NewArray()
}

// encode gives the packets of the rows of one column.
func encode(t *testing.T, typ arrow.DataType, arr arrow.Array, p Protocol) ([][]byte, error) {
	t.Helper()
	columns := []plan.Column{{Name: "c", Type: typ, Nullable: true}}
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType(), Nullable: true}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{arr}, int64(arr.Len()))
	defer batch.Release()
	var s sink
	w := NewWriter(&s, 0)
	err := NewEncoder(columns, p).Write(w, batch)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	r := NewReader(&s)
	for s.Len() > 0 || r.Buffered() > 0 {
		p, err := r.Packet(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out, err
}

// textOf decodes a row of one column of the text protocol.
func textOf(t *testing.T, p []byte) string {
	t.Helper()
	if len(p) == 1 && p[0] == nullMarker {
		return "NULL"
	}
	c := cursor{data: p}
	s := string(c.lenencBytes())
	if c.bad || len(c.data) > 0 {
		t.Fatalf("row %x", p)
	}
	return s
}

func decimals128(values ...string) func(array.Builder) {
	return func(b array.Builder) {
		for _, v := range values {
			n, ok := new(big.Int).SetString(v, 10)
			if !ok {
				panic(v)
			}
			b.(*array.Decimal128Builder).Append(decimal128.FromBigInt(n))
		}
	}
}

// values of every type: declared type, array, text, and the bytes of the binary
// protocol after the header and the NULL bitmap.
type caseOf struct {
	name     string
	declared arrow.DataType
	array    arrow.Array
	text     []string
	binary   []string // hex; NULL is "null"
}

func cases() []caseOf {
	nan, inf := math.NaN(), math.Inf(-1)
	f64 := func(vs ...float64) arrow.Array {
		return build(plan.Float64, func(b array.Builder) { b.(*array.Float64Builder).AppendValues(vs, nil) })
	}
	micros := func(t arrow.DataType, vs ...arrow.Timestamp) arrow.Array {
		return build(t, func(b array.Builder) { b.(*array.TimestampBuilder).AppendValues(vs, nil) })
	}
	lent := func(s string) string { return hex.EncodeToString(append([]byte{byte(len(s))}, s...)) }
	return []caseOf{
		{
			"bool", plan.Bool, build(plan.Bool, func(b array.Builder) {
				b.(*array.BooleanBuilder).AppendValues([]bool{true, false}, nil)
				b.AppendNull()
			}),
			[]string{"1", "0", "NULL"},
			[]string{"01", "00", "null"},
		},
		{
			"bool as int8", plan.Bool, build(plan.Int8, func(b array.Builder) { b.(*array.Int8Builder).AppendValues([]int8{1, 0}, nil) }),
			[]string{"1", "0"},
			[]string{"01", "00"},
		},
		{
			"int32", plan.Int32, build(plan.Int32, func(b array.Builder) {
				b.(*array.Int32Builder).AppendValues([]int32{math.MinInt32, -1, math.MaxInt32}, nil)
			}),
			[]string{"-2147483648", "-1", "2147483647"},
			[]string{"00000080", "ffffffff", "ffffff7f"},
		},
		{
			"int32 as int64", plan.Int32, build(plan.Int64, func(b array.Builder) {
				b.(*array.Int64Builder).AppendValues([]int64{math.MinInt32, math.MaxInt32}, nil)
			}),
			[]string{"-2147483648", "2147483647"},
			[]string{"00000080", "ffffff7f"},
		},
		{
			"int64 as int32", plan.Int64, build(plan.Int32, func(b array.Builder) { b.(*array.Int32Builder).AppendValues([]int32{-2, 7}, nil) }),
			[]string{"-2", "7"},
			[]string{"feffffffffffffff", "0700000000000000"},
		},
		{
			"int64", plan.Int64, build(plan.Int64, func(b array.Builder) {
				b.(*array.Int64Builder).AppendValues([]int64{math.MinInt64, math.MaxInt64}, nil)
			}),
			[]string{"-9223372036854775808", "9223372036854775807"},
			[]string{"0000000000000080", "ffffffffffffff7f"},
		},
		{
			"uint64", plan.Uint64, build(plan.Uint64, func(b array.Builder) { b.(*array.Uint64Builder).AppendValues([]uint64{0, math.MaxUint64}, nil) }),
			[]string{"0", "18446744073709551615"},
			[]string{"0000000000000000", "ffffffffffffffff"},
		},
		// The texts are what MySQL 8.0 prints.
		{
			"double", plan.Float64, f64(0, 1, -1.5, 0.1, 1e14, 999999999999999, 1e15, 1.5e300, 1e-5, 1e-15, 1e-16, -2.5e-200, 1234567890123456789, nan, inf, math.SmallestNonzeroFloat64),
			[]string{"0", "1", "-1.5", "0.1", "100000000000000", "999999999999999", "1e15", "1.5e300", "0.00001", "0.000000000000001", "1e-16", "-2.5e-200", "1.2345678901234568e18", "NULL", "NULL", "5e-324"},
			nil,
		},
		{"double binary", plan.Float64, f64(1, nan), []string{"1", "NULL"}, []string{"000000000000f03f", "null"}},
		{
			"float", plan.Float32, build(plan.Float32, func(b array.Builder) {
				b.(*array.Float32Builder).AppendValues([]float32{0.1, 16777216, 3.4028235e38}, nil)
			}),
			[]string{"0.1", "16777216", "3.4028235e38"},
			[]string{"cdcccc3d", "0000804b", "ffff7f7f"},
		},
		{
			"double as float", plan.Float64, build(plan.Float32, func(b array.Builder) { b.(*array.Float32Builder).AppendValues([]float32{0.5}, nil) }),
			[]string{"0.5"},
			[]string{"000000000000e03f"},
		},
		{
			"decimal", plan.Decimal(38, 3), build(plan.Decimal(38, 3), decimals128("0", "1", "-1", "12345", "-999999", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "9223372036854775808", "-9223372036854775808")),
			[]string{"0.000", "0.001", "-0.001", "12.345", "-999.999", "99999999999999999999999999999999999.999", "-99999999999999999999999999999999999.999", "9223372036854775.808", "-9223372036854775.808"},
			nil,
		},
		{"decimal binary", plan.Decimal(5, 0), build(plan.Decimal(5, 0), decimals128("-42")), []string{"-42"}, []string{lent("-42")}},
		{"decimal256", plan.Decimal(38, 2), build(&arrow.Decimal256Type{Precision: 60, Scale: 2}, func(b array.Builder) {
			n, _ := new(big.Int).SetString("-123456789012345678901234567890123456789012345678901234567890", 10)
			b.(*array.Decimal256Builder).Append(decimal256.FromBigInt(n))
		}), []string{"-1234567890123456789012345678901234567890123456789012345678.90"}, nil},
		{"decimal64", plan.Decimal(18, 1), build(&arrow.Decimal64Type{Precision: 18, Scale: 1}, func(b array.Builder) {
			b.(*array.Decimal64Builder).Append(decimal.Decimal64(-15))
		}), []string{"-1.5"}, nil},
		{"date", plan.Date, build(plan.Date, func(b array.Builder) {
			b.(*array.Date32Builder).AppendValues([]arrow.Date32{0, -1, 19_782, -719_528, 2_932_896}, nil)
		}), []string{"1970-01-01", "1969-12-31", "2024-02-29", "0000-01-01", "9999-12-31"}, []string{"04b2070101", "04b1070c1f", "04e807021d", "0400000101", "040f270c1f"}},
		{
			"timestamp", plan.Timestamp, micros(plan.Timestamp, 0, -1, 1_700_000_000_000_000, 1_700_000_000_123_456, 253_402_300_799_999_999),
			[]string{"1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999", "2023-11-14 22:13:20.000000", "2023-11-14 22:13:20.123456", "9999-12-31 23:59:59.999999"},
			[]string{"04b2070101", "0bb1070c1f173b3b3f420f00", "07e7070b0e160d14", "0be7070b0e160d1440e20100", "0b0f270c1f173b3b3f420f00"},
		},
		{"timestamptz", plan.TimestampTZ, micros(plan.TimestampTZ, 1_700_000_000_000_000), []string{"2023-11-14 22:13:20.000000"}, nil},
		{"timestamp ns", plan.TimestampNS, micros(plan.TimestampNS, 1_999, -1), []string{"1970-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999"}, nil},
		{"timestamp s", plan.Timestamp, micros(&arrow.TimestampType{Unit: arrow.Second}, 1), []string{"1970-01-01 00:00:01.000000"}, nil},
		{
			"time", plan.Time, build(plan.Time, func(b array.Builder) {
				b.(*array.Time64Builder).AppendValues([]arrow.Time64{0, 86_399_999_999, -3_600_000_000, 100 * 3600 * 1_000_000}, nil)
			}),
			[]string{"00:00:00.000000", "23:59:59.999999", "-01:00:00.000000", "100:00:00.000000"},
			[]string{"00", "0c0000000000173b3b3f420f00", "080100000000010000", "080004000000040000"},
		},
		{"string", plan.String, build(plan.String, func(b array.Builder) {
			b.(*array.StringBuilder).AppendValues([]string{"", "é", strings.Repeat("x", 300)}, nil)
		}), []string{"", "é", strings.Repeat("x", 300)}, []string{"00", "02c3a9", "fc2c01" + strings.Repeat("78", 300)}},
		{"large string", plan.String, build(arrow.BinaryTypes.LargeString, func(b array.Builder) { b.(*array.LargeStringBuilder).Append("a") }), []string{"a"}, nil},
		{"string view", plan.String, build(arrow.BinaryTypes.StringView, func(b array.Builder) {
			b.(*array.StringViewBuilder).Append("short")
			b.AppendNull()
			b.(*array.StringViewBuilder).Append("longer than twelve bytes")
		}), []string{"short", "NULL", "longer than twelve bytes"}, nil},
		{"dictionary", plan.String, dictionary(), []string{"b", "NULL", "a", "NULL", "b"}, []string{"0162", "null", "0161", "null", "0162"}},
		{"binary", plan.Binary, build(plan.Binary, func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte{0, 0xfb, 0xff}) }), []string{"\x00\xfb\xff"}, []string{"0300fbff"}},
		{"fixed", &arrow.FixedSizeBinaryType{ByteWidth: 2}, build(&arrow.FixedSizeBinaryType{ByteWidth: 2}, func(b array.Builder) {
			b.(*array.FixedSizeBinaryBuilder).Append([]byte("ab"))
		}), []string{"ab"}, nil},
		{"uuid", plan.UUID, array.NewExtensionArrayWithStorage(plan.UUID.(arrow.ExtensionType), build(&arrow.FixedSizeBinaryType{ByteWidth: 16}, func(b array.Builder) {
			b.(*array.FixedSizeBinaryBuilder).Append([]byte("\xff\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"))
			b.AppendNull()
		})), []string{"ff234567-89ab-cdef-0123-456789abcdef", "NULL"}, nil},
		{"uuid as storage", plan.UUID, build(&arrow.FixedSizeBinaryType{ByteWidth: 16}, func(b array.Builder) {
			b.(*array.FixedSizeBinaryBuilder).Append(make([]byte, 16))
		}), []string{"00000000-0000-0000-0000-000000000000"}, nil},
		{"json as text", plan.JSON, build(plan.String, func(b array.Builder) { b.(*array.StringBuilder).Append(`{"a":1}`) }), []string{`{"a":1}`}, nil},
		{"null", plan.Null, build(plan.Null, func(b array.Builder) { b.AppendNull() }), []string{"NULL"}, []string{"null"}},
		{"null for int", plan.Int32, build(plan.Null, func(b array.Builder) { b.AppendNull() }), []string{"NULL"}, []string{"null"}},
	}
}

// dictionary has a NULL index and a NULL in the dictionary.
func dictionary() arrow.Array {
	t := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: plan.String}
	values := build(plan.String, func(b array.Builder) {
		b.(*array.StringBuilder).Append("a")
		b.(*array.StringBuilder).Append("b")
		b.AppendNull()
	})
	indices := build(plan.Int8, func(b array.Builder) {
		i := b.(*array.Int8Builder)
		i.Append(1)
		i.AppendNull()
		i.Append(0)
		i.Append(2)
		i.Append(1)
	})
	return array.NewDictionaryArray(t, indices, values)
}

func TestRows(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			for start := range int64(2) { // also as a slice: offsets must be honoured
				if start >= int64(c.array.Len()) {
					continue
				}
				arr := array.NewSlice(c.array, start, int64(c.array.Len()))
				packets, err := encode(t, c.declared, arr, TextProtocol)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range packets {
					got = append(got, textOf(t, p))
				}
				if diff := cmp.Diff(c.text[start:], got); diff != "" {
					t.Errorf("text from row %d: %s", start, diff)
				}
				if packets, err = encode(t, c.declared, arr, BinaryProtocol); err != nil {
					t.Fatal(err)
				}
				got = nil
				for _, p := range packets {
					switch {
					case p[0] != 0:
						t.Fatalf("row %x", p)
					case p[1] == 1<<2 && len(p) == 2:
						got = append(got, "null")
					default:
						got = append(got, hex.EncodeToString(p[2:]))
					}
				}
				if c.binary != nil {
					if diff := cmp.Diff(c.binary[start:], got); diff != "" {
						t.Errorf("binary from row %d: %s", start, diff)
					}
				}
			}
			if _, err := definitionOf(plan.Column{Type: c.declared}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDates compares the calendar with the standard library over all years that
// MySQL has.
func TestDates(t *testing.T) {
	first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 86_400
	last := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).Unix() / 86_400
	for d := first; d <= last; d++ {
		y, m, day := civil(d)
		want := time.Unix(d*86_400, 0).UTC()
		if int(y) != want.Year() || m != int(want.Month()) || day != want.Day() {
			t.Fatalf("day %d: %d-%d-%d, want %s", d, y, m, day, want)
		}
	}
}

// TestRefused: what MySQL cannot represent is an error without the value, and
// nothing of the row is sent. The row before it is.
func TestRefused(t *testing.T) {
	dates := build(plan.Date, func(b array.Builder) { b.(*array.Date32Builder).AppendValues([]arrow.Date32{0, 2_932_897}, nil) })
	before := build(plan.Date, func(b array.Builder) { b.(*array.Date32Builder).AppendValues([]arrow.Date32{0, -719_529}, nil) })
	stamps := build(plan.Timestamp, func(b array.Builder) {
		b.(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{0, 253_402_300_800_000_000}, nil)
	})
	seconds := build(&arrow.TimestampType{Unit: arrow.Second}, func(b array.Builder) {
		b.(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{0, math.MaxInt64}, nil)
	})
	times := build(plan.Time, func(b array.Builder) { b.(*array.Time64Builder).AppendValues([]arrow.Time64{0, maxTime + 1}, nil) })
	ints := build(plan.Int64, func(b array.Builder) { b.(*array.Int64Builder).AppendValues([]int64{0, 1 << 31}, nil) })
	tests := []struct {
		name       string
		t          arrow.DataType
		arr        arrow.Array
		binaryOnly bool
	}{
		{"date", plan.Date, dates, false},
		{"date before", plan.Date, before, false},
		{"timestamp", plan.Timestamp, stamps, false},
		{"timestamp of seconds", plan.Timestamp, seconds, false},
		{"time", plan.Time, times, false},
		{"integer", plan.Int32, ints, true},
	}
	for _, tt := range tests {
		for _, p := range []Protocol{TextProtocol, BinaryProtocol} {
			if tt.binaryOnly && p == TextProtocol {
				continue
			}
			packets, err := encode(t, tt.t, tt.arr, p)
			if !fault.Is(err, fault.OutOfRange) || len(packets) != 1 {
				t.Errorf("%s, protocol %d: %d rows, %v", tt.name, p, len(packets), err)
			}
			if err != nil && strings.ContainsAny(err.Error(), "0123456789") {
				t.Errorf("%s: the error may hold a value: %v", tt.name, err)
			}
		}
	}
}

// TestMismatch: an array that is not of the declared kind is an error, not
// another value.
func TestMismatch(t *testing.T) {
	text := build(plan.String, func(b array.Builder) { b.(*array.StringBuilder).Append("1") })
	number := build(plan.Int64, func(b array.Builder) { b.(*array.Int64Builder).Append(1) })
	scale := build(plan.Decimal(10, 3), decimals128("1"))
	for _, tt := range []struct {
		t   arrow.DataType
		arr arrow.Array
	}{{plan.Int64, text}, {plan.Bool, text}, {plan.Date, number}, {plan.Timestamp, number}, {plan.Time, number}, {plan.String, number}, {plan.Decimal(10, 2), scale}, {plan.Decimal(10, 2), number}, {plan.Float64, number}, {plan.UUID, number}, {plan.Binary, number}} {
		if packets, err := encode(t, tt.t, tt.arr, TextProtocol); err == nil {
			t.Errorf("%s as %s: %q", tt.t, tt.arr.DataType(), packets)
		}
	}
	var s sink
	batch := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	if err := NewEncoder([]plan.Column{{Type: plan.Int32}}, TextProtocol).Write(NewWriter(&s, 0), batch); err == nil {
		t.Error("a batch without the columns")
	}
}

func TestDefine(t *testing.T) {
	for _, tt := range []struct {
		c    plan.Column
		want string
	}{
		{plan.Column{Name: "a", Type: plan.Bool}, "{a 1 1 1 0 63}"},
		{plan.Column{Name: "a", Type: plan.Int64, Nullable: true}, "{a 8 20 128 0 63}"},
		{plan.Column{Name: "a", Type: plan.Uint64}, "{a 8 20 161 0 63}"},
		{plan.Column{Name: "a", Type: plan.Float64}, "{a 5 22 128 31 63}"},
		{plan.Column{Name: "a", Type: plan.Decimal(10, 2)}, "{a 246 12 129 2 63}"},
		{plan.Column{Name: "a", Type: plan.Decimal(10, 0)}, "{a 246 11 129 0 63}"},
		{plan.Column{Name: "a", Type: plan.TimestampTZ}, "{a 12 26 129 6 63}"},
		{plan.Column{Name: "a", Type: plan.String}, "{a 252 4294967295 17 0 45}"},
		{plan.Column{Name: "a", Type: plan.Binary}, "{a 252 4294967295 145 0 63}"},
		{plan.Column{Name: "a", Type: plan.JSON}, "{a 245 4294967295 145 0 63}"},
		{plan.Column{Name: "a", Type: plan.UUID}, "{a 254 144 1 0 45}"},
	} {
		d, err := definitionOf(tt.c)
		if got := fmt.Sprint(d); err != nil || got != tt.want {
			t.Errorf("%s: %s, want %s (%v)", tt.c.Type, got, tt.want, err)
		}
	}
	for _, bad := range []arrow.DataType{arrow.ListOf(plan.Int32), arrow.StructOf(arrow.Field{Name: "secret", Type: plan.Int32}), arrow.FixedWidthTypes.Duration_s, nil} {
		if _, err := definitionOf(plan.Column{Type: bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
