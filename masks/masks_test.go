package masks

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/plan"
)

var allActions = []string{
	Redact, ShowLast4, ShowFirst4, Hash, Null, None, DateShowYear,
	IcebergAlphanum, IcebergShowFirst4, IcebergShowLast4, IcebergNull, IcebergFixed,
	IcebergTruncateYear, IcebergTruncateMonth, IcebergSHA256Global, IcebergSHA256QueryOnly,
}

func field(t arrow.DataType) plan.Field { return plan.Field{ID: 1, Name: "c", Type: t} }

// textCases are worked values of Ranger's text masks: with and without
// short-values = "keep" they differ in the last column only.
var textCases = []struct {
	action, in, want, keepShort string
}{
	{ShowLast4, "111-11-1111", "xxx-xx-1111", ""},
	{ShowFirst4, "111-11-1111", "111-xx-xxxx", ""},
	{ShowFirst4, "abcdefgh", "abcdxxxx", ""},
	{ShowLast4, "184729103", "xxxxx9103", ""},
	{ShowLast4, "abcde", "xbcde", ""},
	{ShowLast4, "ABcdé", "xBcdé", ""},
	{Redact, "Ab9-z", "Xxn-x", ""},
	{Redact, "Sanne de Vries", "Xxxxx xx Xxxxx", ""},
	{Redact, "EU", "XX", ""},
	{Redact, "Иван", "Xxxx", ""},
	{Redact, "北京1", "xxn", ""},
	{Redact, "שלום", "xxxx", ""},
	{Redact, "ǅ", "x", ""},                      // title case is not upper case
	{Redact, "²Ⅷ٣①", "nnnn", ""},                // No, Nl, Nd, No
	{Redact, "e\u0301t\u00e9", "x\u0301xx", ""}, // a combining mark passes through
	{Redact, "नमस्ते", "xxx्xx", ""},            // vowel signs are alphabetic, virama is not
	{Redact, "ⒶⓐªA", "XxxX", ""},
	{Redact, "a😀_ \t\n", "x😀_ \t\n", ""},
	{Redact, "", "", ""},
	{ShowLast4, "", "", ""},
	{ShowFirst4, "", "", ""},
	{ShowLast4, "ab", "xx", "ab"},
	{ShowFirst4, "A1-é", "xx-x", "A1-é"},
	{ShowLast4, "1234", "xxxx", "1234"},
	{ShowFirst4, "北京12", "xxxx", "北京12"},
	{ShowLast4, "a\xffbcdef", "xxxcdef", ""}, // no byte that is not text is shown
	{ShowLast4, "abcdef\xff", "xxxdefx", ""}, // not even where characters are kept
	{Redact, "\ufffd", "\ufffd", ""},         // U+FFFD itself is a character
}

func TestRangerText(t *testing.T) {
	for _, c := range textCases {
		if got := both(t, c.action, field(plan.String), c.in, Options{}); got != c.want {
			t.Errorf("%s(%q) = %q, want %q", c.action, c.in, got, c.want)
		}
		want := c.want
		if c.keepShort != "" {
			want = c.keepShort
		}
		if got := both(t, c.action, field(plan.String), c.in, Options{KeepShort: true}); got != want {
			t.Errorf("with short values kept: %s(%q) = %q, want %q", c.action, c.in, got, want)
		}
	}
}

// TestShortValuesAreHidden: by default no show-4 mask of Ranger gives back a text
// that has a letter or digit, whatever its length up to the kept characters.
func TestShortValuesAreHidden(t *testing.T) {
	for _, s := range []string{"a", "1", "ab", "é", "北京12", "A1b2"} {
		for _, action := range []string{ShowFirst4, ShowLast4} {
			if got := both(t, action, field(plan.String), s, Options{}); got == s || strings.ContainsAny(got.(string), s) {
				t.Errorf("%s shows %q as %q", action, s, got)
			}
			if got := both(t, action, field(plan.String), s, Options{KeepShort: true}); got != s {
				t.Errorf("%s with short values kept shows %q as %q", action, s, got)
			}
		}
	}
}

// TestClassesKeepLength: one character in, one character out.
func TestClassesKeepLength(t *testing.T) {
	for _, c := range textCases {
		got, _ := Apply(c.action, field(plan.String), c.in, Options{})
		if n := utf8.RuneCountInString(got.(string)); n != utf8.RuneCountInString(c.in) {
			t.Errorf("%s(%q) has %d characters", c.action, c.in, n)
		}
	}
	if got := Classes("北京1", ClassMask{Upper: "X", Lower: "x", Digit: "n", KeepLast: 1}); got != "xx1" {
		t.Errorf("last one shown: %q", got)
	}
	if got := Classes("a1-B", ClassMask{Other: "U", Digit: ""}); got != "a1UB" {
		t.Errorf("an empty replacement must keep the class: %q", got)
	}
	if got := Classes("abc", ClassMask{Lower: "x", KeepFirst: 2, KeepLast: 2, WholeWhenShort: true}); got != "xxx" {
		t.Errorf("both ends together are longer than the text: %q", got)
	}
}

func TestHash(t *testing.T) {
	for _, c := range []struct{ key, in, want string }{
		{"sqe-ac-e2e-mask-key", "a@x", "491c535df5b10e029c37a1a2a49638fe8db57b96d0b83dac522fc0d6cf701109"},
		{"sqe-ac-e2e-mask-key", "b@x", "e38ff56157e4e2dd387e7e0fd085ba18dbe36132ee3e8ac0af93177f35813c85"},
		{"sqe-ac-e2e-mask-key", "c@x", "136bdc217df93c518ff03832f856d060be664ed5d22539151d4e10d6bd6ecd33"},
		{"pepper", "123-45-6789", "40966d99be0fda85dac0b2f8d9f00b434b89b0d3e2b3f4bdcbf1dd31a2b7092f"},
	} {
		if got := both(t, Hash, field(plan.String), c.in, Options{HashKey: []byte(c.key)}); got != c.want {
			t.Errorf("HMAC(%q) = %v", c.in, got)
		}
	}
	o := Options{HashKey: []byte("pepper")}
	digest := HMAC([]byte{42, 0, 0, 0}, o.HashKey)
	want := int64(int32(uint32(digest[0]) | uint32(digest[1])<<8 | uint32(digest[2])<<16 | uint32(digest[3])<<24))
	if got := both(t, Hash, field(plan.Int32), int64(42), o); got != want {
		t.Errorf("int 42: %v, want %v", got, want)
	}
	if got := both(t, Hash, field(plan.Int64), int64(42), o); got == int64(42) || got == want {
		t.Errorf("long 42: %v", got)
	}
	digest = HMAC([]byte{0, 0xff}, o.HashKey)
	if got := both(t, Hash, field(plan.Binary), []byte{0, 0xff}, o); !bytes.Equal(got.([]byte), digest) {
		t.Errorf("binary: %x", got)
	}
	for _, n := range []int{1, 2, 31, 32} {
		f := field(&arrow.FixedSizeBinaryType{ByteWidth: n})
		value := bytes.Repeat([]byte{7}, n)
		if got := both(t, Hash, f, value, o).([]byte); !bytes.Equal(got, HMAC(value, o.HashKey)[:n]) {
			t.Errorf("fixed(%d): %x", n, got)
		}
	}
	for _, typ := range []arrow.DataType{&arrow.FixedSizeBinaryType{ByteWidth: 33}, plan.Decimal(10, 2), plan.Date, plan.Bool, plan.Float64, plan.UUID, plan.Timestamp} {
		if got := both(t, Hash, field(typ), sample(typ), o); got != nil {
			t.Errorf("%s: %v, want NULL", typ, got)
		}
	}
	// Keys longer than a block are hashed first (RFC 2104).
	both(t, Hash, field(plan.String), "x", Options{HashKey: bytes.Repeat([]byte("k"), 65)})
	both(t, Hash, field(plan.String), "x", Options{HashKey: bytes.Repeat([]byte("k"), 64)})
}

// TestHashNeedsKey: without a key no type gets an unkeyed hash, a NULL or the raw
// value.
func TestHashNeedsKey(t *testing.T) {
	for _, typ := range []arrow.DataType{plan.String, plan.Int32, plan.Decimal(10, 2)} {
		if _, err := build(Hash, field(typ), &plan.Ref{ID: 1, Typ: typ}, Options{}); err == nil {
			t.Errorf("%s was hashed without a key", typ)
		}
		if _, err := Apply(Hash, field(typ), sample(typ), Options{}); err == nil {
			t.Errorf("%s was hashed without a key", typ)
		}
	}
	if o := (Options{}); !o.NeedsKey(Hash) || o.NeedsKey(Redact) || o.NeedsKey(IcebergSHA256Global) {
		t.Error("MASK_HASH alone needs a key")
	}
}

// TestKeyIsNotPrinted: neither the key nor the salt is in the text of a plan.
func TestKeyIsNotPrinted(t *testing.T) {
	o := Options{HashKey: []byte("the key itself"), Salt: []byte("the salt itself, long")}
	for _, action := range []string{Hash, IcebergSHA256QueryOnly} {
		e, err := build(action, field(plan.String), &plan.Ref{ID: 1, Typ: plan.String}, o)
		if err != nil {
			t.Fatal(err)
		}
		got := plan.FormatExpr(e)
		if strings.Contains(got, "itself") || strings.Contains(got, hex.EncodeToString([]byte("itself"))) || !strings.Contains(got, "bytes>") {
			t.Errorf("%s", got)
		}
	}
}

// sample is some value of a type, in the representation of plan.Literal.
func sample(t arrow.DataType) any {
	switch {
	case plan.IsString(t):
		return "Sample 1"
	case plan.IsUUID(t):
		return bytes.Repeat([]byte{1}, 16)
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return true
	case *arrow.Int32Type, *arrow.Int64Type:
		return int64(42)
	case *arrow.Float32Type, *arrow.Float64Type:
		return 1.5
	case *arrow.Decimal128Type:
		return decimal128.FromI64(1234)
	case *arrow.Date32Type:
		return arrow.Date32(19919)
	case *arrow.Time64Type:
		return arrow.Time64(1)
	case *arrow.TimestampType:
		return arrow.Timestamp(1)
	case *arrow.BinaryType:
		return []byte{1, 2, 3}
	case *arrow.FixedSizeBinaryType:
		return bytes.Repeat([]byte{1}, t.ByteWidth)
	}
	return []any{"nested"}
}

var allTypes = []arrow.DataType{
	plan.Bool, plan.Int32, plan.Int64, plan.Float32, plan.Float64, plan.Decimal(38, 10), plan.Date, plan.Time,
	plan.Timestamp, plan.TimestampTZ, plan.TimestampNS, plan.TimestampTZNS, plan.String, arrow.BinaryTypes.LargeString,
	plan.UUID, plan.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 16}, &arrow.FixedSizeBinaryType{ByteWidth: 40},
	arrow.StructOf(arrow.Field{Name: "a", Type: plan.Int64}, arrow.Field{Name: "b", Type: arrow.ListOf(plan.String)}),
	arrow.ListOf(plan.String), arrow.MapOf(plan.String, plan.Int64),
}

// treats says which types each action treats; on the others Ranger's actions give
// NULL and Iceberg's cannot be built. (MASK_NULL, MASK_NONE and
// replace-with-null treat every type, mask-to-fixed-value every type here.)
var treats = map[string]func(arrow.DataType) bool{
	Redact: plan.IsString, ShowFirst4: plan.IsString, ShowLast4: plan.IsString, DateShowYear: plan.IsTemporal,
	Hash: func(t arrow.DataType) bool {
		f, ok := t.(*arrow.FixedSizeBinaryType)
		return hashable(t) || (ok && f.ByteWidth <= 32)
	},
	IcebergAlphanum: plan.IsString, IcebergShowFirst4: plan.IsString, IcebergShowLast4: plan.IsString,
	IcebergTruncateYear: plan.IsTemporal, IcebergTruncateMonth: plan.IsTemporal,
	IcebergSHA256Global: hashable, IcebergSHA256QueryOnly: hashable,
}

func hashable(t arrow.DataType) bool {
	return plan.IsString(t) || t.ID() == arrow.INT32 || t.ID() == arrow.INT64 || t.ID() == arrow.BINARY
}

// TestEveryActionOnEveryType: the type stays, NULL stays NULL (but for the fixed
// value), the raw value never comes out, and Iceberg's actions refuse the types
// that their specification does not list.
func TestEveryActionOnEveryType(t *testing.T) {
	o := Options{HashKey: []byte("k"), Salt: make([]byte, 16)}
	for _, action := range allActions {
		if !known[action] {
			t.Errorf("%s is not known", action)
		}
		for _, typ := range allTypes {
			f := field(typ)
			test, limited := treats[action]
			iceberg := strings.HasPrefix(action, "iceberg:")
			if limited && iceberg && !test(typ) {
				if _, err := build(action, f, &plan.Ref{ID: 1, Typ: typ}, o); err == nil {
					t.Errorf("%s applies to %s", action, typ)
				}
				if _, err := Apply(action, f, sample(typ), o); err == nil {
					t.Errorf("Apply: %s applies to %s", action, typ)
				}
				continue
			}
			if got := both(t, action, f, nil, o); (got == nil) == (action == IcebergFixed) {
				t.Errorf("%s of a NULL of %s is %v", action, typ, got)
			}
			raw := sample(typ)
			got := both(t, action, f, raw, o)
			switch {
			case action == None:
				if !equal(got, raw) {
					t.Errorf("%s changes %s", action, typ)
				}
			case action == Null || action == IcebergNull || (limited && !test(typ)):
				if got != nil {
					t.Errorf("%s of %s is %v, want NULL", action, typ, got)
				}
			case got == nil || equal(got, raw):
				t.Errorf("%s of %s is %v", action, typ, got)
			}
		}
	}
}

func TestRequiredField(t *testing.T) {
	f := plan.Field{ID: 1, Name: "c", Type: plan.String, Required: true}
	if _, err := New(IcebergNull, f, Options{}); err == nil {
		t.Error("replace-with-null applies to a required field")
	}
	if got := both(t, Null, f, "x", Options{}); got != nil {
		t.Error("MASK_NULL does not")
	}
}

func TestCannotBeBuilt(t *testing.T) {
	f := field(plan.String)
	for _, c := range []struct {
		action string
		o      Options
	}{
		{"", Options{}},
		{"mask", Options{}},
		{"MASK_SHOW_LAST_5", Options{}},
		{"iceberg:", Options{}},
		{"iceberg:mask-to-default", Options{}},
		{"mask-alphanum", Options{}},
		{CustomSQL, Options{}},
		{IcebergSHA256QueryOnly, Options{}},
		{IcebergSHA256QueryOnly, Options{Salt: make([]byte, 15)}},
	} {
		if _, err := New(c.action, f, c.o); err == nil {
			t.Errorf("%q was built", c.action)
		}
		if _, err := Apply(c.action, f, "raw", c.o); err == nil {
			t.Errorf("%q was applied", c.action)
		}
	}
	if known["MASK_SHOW_LAST_5"] || !known[CustomSQL] {
		t.Error("the vocabulary")
	}
}

func TestFixedValue(t *testing.T) {
	person := arrow.StructOf(
		arrow.Field{Name: "name", Type: plan.String, Nullable: true},
		arrow.Field{Name: "born", Type: plan.Date},
		arrow.Field{Name: "tags", Type: arrow.ListOf(plan.String)},
		arrow.Field{Name: "home", Type: arrow.StructOf(arrow.Field{Name: "zip", Type: plan.Int32})})
	for _, c := range []struct {
		typ  arrow.DataType
		want any
	}{
		{plan.Bool, false},
		{plan.Int32, int64(0)},
		{plan.Float64, float64(0)},
		{plan.Decimal(10, 2), decimal128.Num{}},
		{plan.String, "XXXXXXXX"},
		{plan.Date, arrow.Date32(0)},
		{plan.Time, arrow.Time64(0)},
		{plan.TimestampTZNS, arrow.Timestamp(0)},
		{plan.UUID, make([]byte, 16)},
		{plan.Binary, []byte{}},
		{&arrow.FixedSizeBinaryType{ByteWidth: 3}, []byte{0, 0, 0}},
		{arrow.MapOf(plan.String, plan.Int64), []any{}},
		{person, []any{"XXXXXXXX", arrow.Date32(0), []any{}, []any{int64(0)}}},
	} {
		for _, raw := range []any{nil, sample(c.typ)} {
			if got := both(t, IcebergFixed, field(c.typ), raw, Options{}); !equal(got, c.want) {
				t.Errorf("%s: %v", c.typ, got)
			}
		}
	}
	if math.Signbit(both(t, IcebergFixed, field(plan.Float64), -1.5, Options{}).(float64)) {
		t.Error("the fixed value of a double is negative zero")
	}
	for _, typ := range []arrow.DataType{arrow.Null, arrow.StructOf(arrow.Field{Name: "unknown", Type: arrow.Null})} {
		if _, err := New(IcebergFixed, field(typ), Options{}); err == nil {
			t.Errorf("%s has a fixed value", typ)
		}
	}
}

// TestTruncateLimits: no value makes a truncation fail or wrap around.
func TestTruncateLimits(t *testing.T) {
	for _, c := range []struct {
		typ       arrow.DataType
		in        int64
		year      int64
		ok        bool
		text      string
		monthDiff bool
	}{
		{plan.Date, 0, 0, true, "1970-01-01", false},
		{plan.Date, 10957, 10957, true, "2000-01-01", false},
		{plan.Date, 11322, 10957, true, "2000-12-31", true},
		{plan.Date, -719528, -719528, true, "0000-01-01", false},
		{plan.Date, -719529, -719893, true, "-001-12-31", true},
		{plan.Date, math.MinInt32, 0, false, "", false},
		{plan.Date, math.MaxInt32, 2147483455, true, "", true},
		{plan.TimestampNS, math.MinInt64, 0, false, "1677-09-21", false},
		{plan.TimestampNS, math.MaxInt64, 9214646400000000000, true, "2262-04-11", true},
		{plan.Timestamp, math.MinInt64, 0, false, "", false},
	} {
		got, ok := Truncate("year", c.in, c.typ)
		if got != c.year || ok != c.ok {
			t.Errorf("year of %s %d (%s): %d, %v; want %d, %v", c.typ, c.in, c.text, got, ok, c.year, c.ok)
		}
		month, ok := Truncate("month", c.in, c.typ)
		if ok && (month < got || month > c.in || (month != got) != c.monthDiff) {
			t.Errorf("month of %s %d: %d", c.typ, c.in, month)
		}
	}
	// Against the calendar of the standard library, around every new year.
	for year := -1000; year <= 4000; year++ {
		first := firstOfMonth(int64(year), 1)
		for _, day := range []int64{first, first + 58, first + 59, first + 364} {
			at := arrow.Date32(day).ToTime()
			y, m := civil(day)
			if int64(at.Year()) != y || int64(at.Month()) != m || firstOfMonth(y, m) != day-int64(at.Day())+1 {
				t.Fatalf("day %d is %v, not %d-%d", day, at, y, m)
			}
		}
	}
}

type vectors struct {
	String []map[string]*string     `json:"string"`
	Int    []map[string]json.Number `json:"int"`
	Long   []map[string]json.Number `json:"long"`
	Binary []map[string]string      `json:"binary"`
	Local  map[string]any           `json:"query-local"`
	Trunc  []struct {
		Type  string
		In    *json.Number
		Text  *string
		Year  *json.Number `json:"truncate-to-year"`
		Month *json.Number `json:"truncate-to-month"`
	} `json:"truncate"`
}

// TestIcebergVectors runs testdata/iceberg_mask_vectors.json: values worked out
// from the specification of Iceberg's read restrictions.
func TestIcebergVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/iceberg_mask_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	cases := 0
	check := func(action string, typ arrow.DataType, in, want any, o Options) {
		t.Helper()
		cases++
		if got := both(t, "iceberg:"+action, field(typ), in, o); !equal(got, want) {
			t.Errorf("%s(%v) = %v, want %v", action, in, got, want)
		}
	}
	str := func(s *string) any {
		if s == nil {
			return nil
		}
		return *s
	}
	for _, c := range v.String {
		for action, want := range c {
			if action != "in" {
				check(action, plan.String, str(c["in"]), str(want), Options{})
			}
		}
	}
	number := func(n json.Number) any {
		if n == "" {
			return nil
		}
		i, err := n.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	for _, c := range v.Int {
		check("sha-256-global", plan.Int32, number(c["in"]), number(c["sha-256-global"]), Options{})
	}
	for _, c := range v.Long {
		check("sha-256-global", plan.Int64, number(c["in"]), number(c["sha-256-global"]), Options{})
	}
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range v.Binary {
		check("sha-256-global", plan.Binary, unhex(c["inHex"]), unhex(c["sha-256-global"]), Options{})
	}
	salt := Options{Salt: unhex(v.Local["saltHex"].(string))}
	for k, want := range v.Local {
		typ, in, ok := strings.Cut(k, " ")
		switch {
		case !ok:
		case typ == "string":
			check("sha-256-query-local", plan.String, in, want, salt)
		case typ == "int":
			n, _ := strconv.ParseInt(in, 10, 64)
			check("sha-256-query-local", plan.Int32, n, number(want.(json.Number)), salt)
		case typ == "binary":
			check("sha-256-query-local", plan.Binary, unhex(in), unhex(want.(string)), salt)
		default:
			t.Errorf("no type %s", typ)
		}
	}
	types := map[string]arrow.DataType{
		"date": plan.Date, "timestamp": plan.Timestamp, "timestamptz": plan.TimestampTZ,
		"timestamp_ns": plan.TimestampNS, "timestamptz_ns": plan.TimestampTZNS,
	}
	for _, c := range v.Trunc {
		typ := types[c.Type]
		stored := func(n *json.Number) any {
			if n == nil {
				return nil
			}
			if c.Type == "date" {
				return arrow.Date32(number(*n).(int64))
			}
			return arrow.Timestamp(number(*n).(int64))
		}
		check("truncate-to-year", typ, stored(c.In), stored(c.Year), Options{})
		check("truncate-to-month", typ, stored(c.In), stored(c.Month), Options{})
		if got := both(t, DateShowYear, field(typ), stored(c.In), Options{}); !equal(got, stored(c.Year)) {
			t.Errorf("MASK_DATE_SHOW_YEAR(%v) = %v", c.Text, got)
		}
	}
	if cases < 60 {
		t.Errorf("only %d cases ran", cases)
	}
}

func TestCustom(t *testing.T) {
	word := &plan.Literal{Value: "x", Typ: plan.String}
	e, err := Custom(word, field(plan.String))
	if err != nil || e != plan.Expr(word) {
		t.Errorf("an expression of the column's type changed: %v", err)
	}
	e, err = Custom(word, field(plan.Int64))
	if c, ok := e.(*plan.Cast); err != nil || !ok || !c.Try || !arrow.TypeEqual(c.Typ, plan.Int64) || !plan.Total(e) {
		t.Errorf("text in a number column: %v, %v", e, err)
	}
	e, err = Custom(&plan.Literal{Typ: plan.Null}, field(plan.Date))
	if l, ok := e.(*plan.Literal); err != nil || !ok || l.Value != nil || !arrow.TypeEqual(l.Typ, plan.Date) {
		t.Errorf("NULL in a date column: %v, %v", e, err)
	}
	for _, typ := range []arrow.DataType{arrow.ListOf(plan.String), arrow.StructOf(arrow.Field{Name: "a", Type: plan.String})} {
		if _, err := Custom(word, field(typ)); err == nil {
			t.Errorf("text became %s", typ)
		}
	}
	if _, err := Custom(&plan.Literal{Value: "{}", Typ: plan.JSON}, field(plan.String)); err == nil {
		t.Error("JSON became text")
	}
}

func FuzzText(f *testing.F) {
	for _, c := range textCases {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, action := range []string{Redact, ShowFirst4, ShowLast4, IcebergAlphanum, IcebergShowFirst4, IcebergShowLast4} {
			for _, rendering := range []Rendering{RenderSQE, RenderTrino, RenderSpark} {
				got, err := Apply(action, field(plan.String), s, Options{Rendering: rendering})
				if err != nil {
					t.Fatal(err)
				}
				if !utf8.ValidString(got.(string)) {
					t.Errorf("%s(%q) = %q is not text", action, s, got)
				}
				if utf8.RuneCountInString(got.(string)) != utf8.RuneCountInString(s) {
					t.Errorf("%s(%q) = %q has another length", action, s, got)
				}
			}
		}
	})
}
