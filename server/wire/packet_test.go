package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/go-cmp/cmp"

	"sqe/fault"
	"sqe/plan"
)

// TestSplit: packets around the largest size arrive whole, and the numbers go on.
func TestSplit(t *testing.T) {
	for _, n := range []int{0, 1, maxPayload - 1, maxPayload, maxPayload + 1, 2 * maxPayload} {
		var s sink
		w := NewWriter(&s, 0)
		w.Sequence(254)
		body := bytes.Repeat([]byte{7}, n)
		if err := errors.Join(w.packet([]byte("first")), w.packet(body), w.packet([]byte("last")), w.Flush()); err != nil {
			t.Fatal(err)
		}
		r := NewReader(&s)
		r.Expect(254)
		for _, want := range [][]byte{[]byte("first"), body, []byte("last")} {
			got, err := r.Packet(64 << 20)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d: %d bytes, want %d: %v", n, len(got), len(want), err)
			}
		}
	}
}

func TestReaderLimits(t *testing.T) {
	packet := func(n int, seq byte, body string) string {
		return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}) + body
	}
	for _, tt := range []struct {
		name, in string
		want     error
	}{
		{"too large", packet(101, 0, strings.Repeat("x", 101)), ErrTooLarge},
		{"out of order", packet(1, 3, "x"), ErrSequence},
		{"cut off", packet(50, 0, "x"), io.ErrUnexpectedEOF},
		{"ended", "", io.EOF},
		{"cut head", "\x01\x00", io.ErrUnexpectedEOF},
	} {
		if _, err := NewReader(strings.NewReader(tt.in)).Packet(100); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if got, err := NewReader(strings.NewReader(packet(100, 0, strings.Repeat("x", 100)))).Packet(100); err != nil || len(got) != 100 {
		t.Error(len(got), err)
	}
}

// TestUnfinishedPacket: what was begun and not ended is not sent.
func TestUnfinishedPacket(t *testing.T) {
	var s sink
	w := NewWriter(&s, 0)
	_ = append(w.Begin(), "half of a row"...)
	if err := errors.Join(w.packet([]byte("error")), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != "\x05\x00\x00\x00error" {
		t.Errorf("%q", got)
	}
}

func TestOK(t *testing.T) {
	db := "bank"
	for _, tt := range []struct {
		name string
		o    OK
		caps uint32
		want string
	}{
		{"statement", OK{Affected: 300, Status: 2, Warnings: 1}, 0, "00" + "fc2c01" + "00" + "0200" + "0100"},
		{"end of rows, old", OK{EOF: true, Status: 10, Warnings: 3}, 0, "fe" + "0300" + "0a00"},
		{"end of rows", OK{EOF: true, Status: 10, Warnings: 3}, ClientDeprecateEOF, "fe" + "00" + "00" + "0a00" + "0300"},
		{"database, untracked", OK{Status: 2, Database: &db}, 0, "00" + "00" + "00" + "0200" + "0000"},
		{"database", OK{Status: 2, Database: &db}, ClientSessionTrack, "00" + "00" + "00" + "0240" + "0000" + "00" + "07" + "01" + "05" + "04" + hex.EncodeToString([]byte("bank"))},
	} {
		var s sink
		w := NewWriter(&s, 0)
		if err := errors.Join(w.OK(tt.o, tt.caps), w.Flush()); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(s.Bytes()[4:]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	var s sink
	w := NewWriter(&s, 0)
	text := strings.Repeat("é", 300)
	if err := errors.Join(w.Error(Error{Number: 1064, State: "42000", Text: text}, ClientProtocol41), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := s.String()[4:]; got != "\xff\x28\x04#42000"+strings.Repeat("é", 256) {
		t.Errorf("%q", got)
	}
}

func response(change func(flags *uint32, b *[]byte)) []byte {
	flags := ClientProtocol41 | ClientSecureConnection | ClientPluginAuth | ClientConnectWithDB | ClientConnectAttrs | ClientPluginAuthLenenc
	body := []byte("alice\x00\x03abcbank\x00caching_sha2_password\x00")
	attrs := []byte("\x03_os\x05Linux\x0cprogram_name\x05mysql")
	body = append(append(body, byte(len(attrs))), attrs...)
	if change != nil {
		change(&flags, &body)
	}
	head := make([]byte, 32)
	head[0], head[1], head[2], head[3] = byte(flags), byte(flags>>8), byte(flags>>16), byte(flags>>24)
	return append(head, body...)
}

func TestParseResponse(t *testing.T) {
	r, err := ParseResponse(response(nil))
	if err != nil {
		t.Fatal(err)
	}
	if r.User != "alice" || string(r.Auth) != "abc" || r.Database != "bank" || r.Method != MethodCachingSHA2 || r.Program != "mysql" {
		t.Errorf("%+v", r)
	}
	for _, without := range []uint32{ClientProtocol41, ClientSecureConnection} {
		if _, err := ParseResponse(response(func(f *uint32, _ *[]byte) { *f &^= without })); !errors.Is(err, ErrMalformed) {
			t.Errorf("without %x: %v", without, err)
		}
	}
	whole := response(nil)
	attrs := len(whole) - len("\x1f\x03_os\x05Linux\x0cprogram_name\x05mysql")
	for n := range attrs {
		if _, err := ParseResponse(whole[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func FuzzParseResponse(f *testing.F) {
	f.Add(response(nil))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = ParseResponse(data) })
}

// execution builds the body of COM_STMT_EXECUTE with one parameter.
func execution(typ Type, unsigned bool, value string) []byte {
	flag := byte(0)
	if unsigned {
		flag = 0x80
	}
	return append([]byte{9, 0, 0, 0, 0, 1, 0, 0, 0, 0 /* nulls */, 1, byte(typ), flag}, value...)
}

func TestArguments(t *testing.T) {
	num := func(s string) decimal128.Num {
		n, err := decimal128.FromString(s, 38, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tt := range []struct {
		name     string
		typ      Type
		unsigned bool
		value    string
		want     plan.Literal
	}{
		{"tiny", TypeTiny, false, "\xff", plan.Literal{Value: int64(-1), Typ: plan.Int64}},
		{"unsigned tiny", TypeTiny, true, "\xff", plan.Literal{Value: uint64(255), Typ: plan.Uint64}},
		{"short", TypeShort, false, "\xfe\xff", plan.Literal{Value: int64(-2), Typ: plan.Int64}},
		{"year", TypeYear, false, "\xe8\x07", plan.Literal{Value: int64(2024), Typ: plan.Int64}},
		{"long", TypeLong, false, "\x00\x00\x00\x80", plan.Literal{Value: int64(math.MinInt32), Typ: plan.Int64}},
		{"longlong", TypeLongLong, true, "\xff\xff\xff\xff\xff\xff\xff\xff", plan.Literal{Value: uint64(math.MaxUint64), Typ: plan.Uint64}},
		{"float", TypeFloat, false, "\x00\x00\x00\x3f", plan.Literal{Value: 0.5, Typ: plan.Float64}},
		{"double", TypeDouble, false, "\x00\x00\x00\x00\x00\x00\xf0\x3f", plan.Literal{Value: 1.0, Typ: plan.Float64}},
		{"string", TypeVarString, false, "\x02\xc3\xa9", plan.Literal{Value: "é", Typ: plan.String}},
		{"empty string", TypeVarString, false, "\x00", plan.Literal{Value: "", Typ: plan.String}},
		{"string of bytes", TypeString, false, "\x01\xff", plan.Literal{Value: []byte{0xff}, Typ: plan.Binary}},
		{"blob", TypeBlob, false, "\x01a", plan.Literal{Value: []byte("a"), Typ: plan.Binary}},
		{"decimal", TypeNewDecimal, false, "\x06-12.50", plan.Literal{Value: num("-1250"), Typ: plan.Decimal(4, 2)}},
		{"small decimal", TypeNewDecimal, false, "\x050.001", plan.Literal{Value: num("1"), Typ: plan.Decimal(3, 3)}},
		{"date", TypeDate, false, "\x04\xe8\x07\x02\x1d", plan.Literal{Value: arrow.Date32(19_782), Typ: plan.Date}},
		{"datetime of a day", TypeDatetime, false, "\x04\xb2\x07\x01\x01", plan.Literal{Value: arrow.Timestamp(0), Typ: plan.Timestamp}},
		{"datetime", TypeDatetime, false, "\x07\xe7\x07\x0b\x0e\x16\x0d\x14", plan.Literal{Value: arrow.Timestamp(1_700_000_000_000_000), Typ: plan.Timestamp}},
		{"microseconds", TypeTimestamp, false, "\x0b\xe7\x07\x0b\x0e\x16\x0d\x14\x05\x00\x00\x00", plan.Literal{Value: arrow.Timestamp(1_700_000_000_000_005), Typ: plan.Timestamp}},
		{"time zero", TypeTime, false, "\x00", plan.Literal{Value: arrow.Time64(0), Typ: plan.Time}},
		{"time", TypeTime, false, "\x08\x01\x01\x00\x00\x00\x02\x03\x04", plan.Literal{Value: arrow.Time64(-((26*60+3)*60 + 4) * 1_000_000), Typ: plan.Time}},
		{"time with microseconds", TypeTime, false, "\x0c\x00\x00\x00\x00\x00\x00\x00\x01\x05\x00\x00\x00", plan.Literal{Value: arrow.Time64(1_000_005), Typ: plan.Time}},
		{"null type", TypeNull, false, "", plan.Literal{Typ: plan.Null}},
	} {
		x, err := ParseExecution(execution(tt.typ, tt.unsigned, tt.value))
		if err != nil || x.ID != 9 {
			t.Fatal(tt.name, x.ID, err)
		}
		got, types, err := x.Arguments(1, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !cmp.Equal(got[0].Value, tt.want.Value, cmp.AllowUnexported(decimal128.Num{})) || !arrow.TypeEqual(got[0].Typ, tt.want.Typ) {
			t.Errorf("%s: %v %s, want %v %s", tt.name, got[0].Value, got[0].Typ, tt.want.Value, tt.want.Typ)
		}
		if len(types) != 1 || types[0] != (ParamType{tt.typ, tt.unsigned}) {
			t.Errorf("%s: types %v", tt.name, types)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		typ   Type
		value string
		want  fault.Kind // Internal stands for ErrMalformed
	}{
		{"zero date", TypeDate, "\x00", fault.BadStatement},
		{"31 February", TypeDate, "\x04\xe8\x07\x02\x1f", fault.BadStatement},
		{"hour 24", TypeDatetime, "\x07\xe8\x07\x02\x01\x18\x00\x00", fault.BadStatement},
		{"odd length", TypeDatetime, "\x05\xe8\x07\x02\x01\x18", fault.Internal},
		{"minute 60", TypeTime, "\x08\x00\x00\x00\x00\x00\x00\x3c\x00", fault.BadStatement},
		{"decimal text", TypeNewDecimal, "\x04abcd", fault.BadStatement},
		{"decimal exponent", TypeNewDecimal, "\x031e5", fault.BadStatement},
		{"decimal empty", TypeNewDecimal, "\x00", fault.BadStatement},
		{"decimal of 39 digits", TypeNewDecimal, "\x27" + strings.Repeat("9", 39), fault.OutOfRange},
		{"geometry", TypeGeometry, "\x01x", fault.Unsupported},
		{"cut off", TypeLongLong, "\x01", fault.Internal},
		{"long string", TypeString, "\xfe\xff\xff\xff\xff\xff\xff\xff\xffx", fault.Internal},
	} {
		x, err := ParseExecution(execution(tt.typ, false, tt.value))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = x.Arguments(1, nil, nil)
		if tt.want == fault.Internal && !errors.Is(err, ErrMalformed) || tt.want != fault.Internal && !fault.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	x, err := ParseExecution([]byte{9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.Arguments(1, nil, nil); !errors.Is(err, ErrMalformed) {
		t.Error("types never sent:", err)
	}
	if args, _, err := x.Arguments(1, []ParamType{{Type: TypeNull}}, nil); err != nil || args[0].Value != nil {
		t.Error("types of the last execution:", args, err)
	}
	for _, body := range []string{"", "\x01\x00\x00\x00\x00\x02\x00\x00\x00"} {
		if _, err := ParseExecution([]byte(body)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(execution(TypeDatetime, false, "\x07\xe7\x07\x0b\x0e\x16\x0d\x14"), 1)
	f.Add(execution(TypeNewDecimal, false, "\x06-12.50"), 1)
	f.Fuzz(func(_ *testing.T, data []byte, params int) {
		if x, err := ParseExecution(data); err == nil {
			_, _, _ = x.Arguments(params&0xff, nil, map[int][]byte{1: {1}})
		}
	})
}
