package restrictions

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/policy"
)

func filtered(filter string) string { return `{"required-row-filter": ` + filter + `}` }

// TestSpecification: the predicates of the specification over every combination of
// values that it gives a truth value for.
func TestSpecification(t *testing.T) {
	in := open(t)
	region := []record{{2: "EU"}, {2: "US"}, {2: nil}}
	qty := []record{{5: int64(5)}, {5: int64(10)}, {5: nil}}
	score := []record{{11: 1.5}, {11: math.NaN()}, {11: nil}}
	ref := func(id int) string { return fmt.Sprintf(`{"type":"reference","id":%d}`, id) }
	two := func(op string, id int, right string) string {
		return fmt.Sprintf(`{"type":%q,"left":%s,"right":%s}`, op, ref(id), right)
	}
	one := func(op string, id int) string { return fmt.Sprintf(`{"type":%q,"child":%s}`, op, ref(id)) }
	not := func(p string) string { return `{"type":"not","child":` + p + `}` }
	for _, c := range []struct {
		name, filter string
		data         []record
		keep         []int64
	}{
		{"I1", two("eq", 2, `"EU"`), region, []int64{0}},
		{"I1 object", two("eq", 2, `{"type":"literal","value":"EU"}`), region, []int64{0}},
		{"I1 typed", two("eq", 2, `{"type":"literal","value":"EU","data-type":"string"}`), region, []int64{0}},
		{"I1 term", `{"type":"eq","term":` + ref(2) + `,"value":"EU"}`, region, []int64{0}},
		{"I1 term object", `{"type":"eq","term":` + ref(2) + `,"value":{"type":"literal","value":"EU"}}`, region, []int64{0}},
		{"I2", two("not-eq", 2, `"EU"`), region, []int64{1, 2}},
		{"I3", not(two("eq", 2, `"EU"`)), region, []int64{1, 2}},
		{"not not", not(not(two("eq", 2, `"EU"`))), region, []int64{0}},
		{"I4", two("lt", 5, `10`), qty, []int64{0}},
		{"I5", not(two("gt-eq", 5, `10`)), qty, []int64{0, 2}},
		{"I6", two("gt", 5, `5`), qty, []int64{1}},
		{"lt-eq", two("lt-eq", 5, `5`), qty, []int64{0}},
		{"gt-eq", two("gt-eq", 5, `10`), qty, []int64{1}},
		{"I7 in", `{"type":"in","child":` + ref(2) + `,"values":["EU"]}`, region, []int64{0}},
		{"I7 not-in", `{"type":"not-in","child":` + ref(2) + `,"values":{"type":"literals","values":["EU"],"data-type":"string"}}`, region, []int64{1, 2}},
		{"in term", `{"type":"in","term":` + ref(2) + `,"values":["EU", {"type":"literal","value":"US"}]}`, region, []int64{0, 1}},
		{"in nothing", `{"type":"in","child":` + ref(2) + `,"values":[]}`, region, nil},
		{"not in nothing", `{"type":"not-in","child":` + ref(2) + `,"values":[]}`, region, []int64{0, 1, 2}},
		{"I8", `{"type":"lt-eq","left":10,"right":` + ref(5) + `}`, qty, []int64{1}},
		{"I9", `{"type":"and","left":` + one("not-null", 2) + `,"right":` + two("not-eq", 2, `"EU"`) + `}`, region, []int64{1}},
		{"or", `{"type":"or","left":` + one("is-null", 2) + `,"right":` + two("eq", 2, `"EU"`) + `}`, region, []int64{0, 2}},
		{"I10", two("gt", 11, `1.0`), score, []int64{0}},
		{"gt-eq NaN", two("gt-eq", 11, `1.0`), score, []int64{0}},
		{"I11", not(two("gt", 11, `1.0`)), score, []int64{1, 2}},
		{"I12", two("not-eq", 11, `1.5`), score, []int64{1, 2}},
		{"lt NaN", two("lt", 11, `2.0`), score, []int64{0}},
		{"literal lt NaN", `{"type":"lt","left":1.0,"right":` + ref(11) + `}`, score, []int64{0}},
		{"I13 is-nan", one("is-nan", 11), score, []int64{1}},
		{"I13 not-nan", one("not-nan", 11), score, []int64{0, 2}},
		{"itself", two("lt-eq", 11, ref(11)), score, []int64{0, 1, 2}},
		{"I17", two("lt", 5, `2147483648`), qty, []int64{0, 1}},
		{"I21", two("starts-with", 2, `"E"`), region, []int64{0}},
		{"I21 not", two("not-starts-with", 2, `"E"`), region, []int64{1, 2}},
		{"is-null", one("is-null", 2), region, []int64{2}},
		{"is-null term", `{"type":"is-null","term":` + ref(2) + `}`, region, []int64{2}},
		{"I22", `false`, region, nil},
		{"older false", `{"type":"false"}`, region, nil},
		{"false object", `{"type":"literal","value":false}`, region, nil},
		{"true", `true`, region, []int64{0, 1, 2}},
		{"older true", `{"type":"true"}`, region, []int64{0, 1, 2}},
		{"null", `null`, region, []int64{0, 1, 2}},
		{"if_else", `{"type":"eq","left":{"type":"apply","function":{"catalog":"iceberg_functions","identifier":["if_else"]},"arguments":[` + one("is-null", 2) + `,"EU",` + ref(2) + `]},"right":"EU"}`, region, []int64{0, 2}},
		{"month", `{"type":"eq","left":{"type":"apply","function":{"catalog":"iceberg_functions","identifier":["month"]},"arguments":[` + ref(7) + `]},"right":672}`, []record{{7: arrow.Date32(20454)}, {7: arrow.Date32(20453)}, {7: nil}}, []int64{0}},
		{"older transform", `{"type":"eq","term":{"type":"transform","transform":"truncate[1]","term":` + ref(2) + `},"value":"E"}`, region, []int64{0}},
		{"inside a struct", two("gt", 22, `17`), []record{{22: int64(18)}, {22: int64(17)}, {22: nil}, {20: "null"}}, []int64{0}},
		{"struct is null", one("is-null", 20), []record{{22: int64(18)}, {20: "null"}}, []int64{1}},
		{"column and column", two("eq", 2, ref(3)), []record{{2: "a", 3: "a"}, {2: "a", 3: "b"}, {2: nil, 3: nil}, {2: "a"}}, []int64{0, 2}},
		{"columns lt-eq", two("lt-eq", 2, ref(3)), []record{{2: "a", 3: "b"}, {2: nil, 3: nil}, {2: nil, 3: "a"}}, []int64{0, 1}},
		{"int and long", two("eq", 5, ref(18)), []record{{5: int64(1), 18: int64(1)}, {5: int64(1), 18: int64(1) + 1<<32}}, []int64{0}},
		{"decimal", two("eq", 6, `"14.20"`), []record{{6: decimal128.FromI64(1420)}, {6: decimal128.FromI64(142)}}, []int64{0}},
		{"wide decimal", two("lt", 6, `"123456789012.00"`), []record{{6: decimal128.FromI64(1420)}, {6: nil}}, []int64{0}},
		{"date", two("lt-eq", 7, `{"type":"literal","value":"2026-01-31","data-type":"date"}`), []record{{7: arrow.Date32(20484)}, {7: arrow.Date32(20485)}}, []int64{0}},
		{"timestamp", two("gt", 8, `"1970-01-01T00:00:00.000001"`), []record{{8: arrow.Timestamp(1)}, {8: arrow.Timestamp(2)}}, []int64{1}},
		{"timestamptz", two("eq", 9, `"1970-01-01T00:00:01+00:00"`), []record{{9: arrow.Timestamp(1000000)}, {9: arrow.Timestamp(1)}}, []int64{0}},
		{"timestamp_ns", two("eq", 17, `"1970-01-01T00:00:00.000000001"`), []record{{17: arrow.Timestamp(1)}, {17: arrow.Timestamp(2)}}, []int64{0}},
		{"time", two("lt", 13, `"00:00:01.500000"`), []record{{13: arrow.Time64(1499999)}, {13: arrow.Time64(1500000)}}, []int64{0}},
		{"uuid", two("lt", 14, `"80000000-0000-0000-0000-000000000000"`), []record{{14: slices.Repeat([]byte{0x7f}, 16)}, {14: slices.Repeat([]byte{0xff}, 16)}}, []int64{0}},
		{"fixed", two("gt", 15, `"7Fffff"`), []record{{15: []byte{0x80, 0, 0}}, {15: []byte{0x7f, 0xff, 0xff}}}, []int64{0}},
		{"binary", two("eq", 16, `""`), []record{{16: []byte{}}, {16: []byte{0}}, {16: nil}}, []int64{0}},
		{"boolean", two("lt", 12, `true`), []record{{12: true}, {12: false}, {12: nil}}, []int64{1}},
		{"boolean eq false", two("eq", 12, `false`), []record{{12: true}, {12: false}, {12: nil}}, []int64{1}},
		{"float", two("eq", 10, `0.1`), []record{{10: float64(float32(0.1))}, {10: 0.25}}, []int64{0}},
		{"float and a longer number", two("lt", 10, `0.100000001`), []record{{10: float64(float32(0.1))}, {10: 0.25}}, nil},
		{"bytes order", two("lt", 2, `"a"`), []record{{2: "B"}, {2: "ä"}}, []int64{0}},
		{"zero", two("eq", 11, `0.0`), []record{{11: math.Copysign(0, -1)}, {11: 1.0}}, []int64{0}},
		{"text with zero byte", two("eq", 2, `"a\u0000b"`), []record{{2: "a\x00b"}, {2: "a"}}, []int64{0}},
		{"pair of surrogates", two("eq", 2, `"\ud83d\ude00"`), []record{{2: "😀"}, {2: "a"}}, []int64{0}},
	} {
		got, err := kept(t, in, filtered(c.filter), c.data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		slices.Sort(got)
		if !slices.Equal(got, c.keep) {
			t.Errorf("%s keeps %v, want %v", c.name, got, c.keep)
		}
	}
}

// TestRefused: what is not understood completely refuses the table, and the reason
// holds no value.
func TestRefused(t *testing.T) {
	in := open(t)
	const ref = `{"type":"reference","id":2}`
	apply := func(f, args string) string {
		return `{"type":"eq","left":{"type":"apply","function":` + f + `,"arguments":[` + args + `]},"right":1}`
	}
	iceberg := func(name string) string {
		return `{"catalog":"iceberg_functions","identifier":["` + name + `"]}`
	}
	cases := map[string]string{
		"I14 null":             filtered(`{"type":"eq","left":` + ref + `,"right":null}`),
		"I15 NaN":              filtered(`{"type":"gt","left":{"type":"reference","id":11},"right":"NaN"}`),
		"I16 type":             filtered(`{"type":"eq","left":` + ref + `,"right":5}`),
		"I18 name":             filtered(`{"type":"eq","left":{"type":"reference","name":"region"},"right":"sekret"}`),
		"older name":           filtered(`{"type":"eq","term":"region","value":"sekret"}`),
		"older reference":      filtered(`{"type":"eq","term":{"type":"reference","term":"region"},"value":"sekret"}`),
		"id and name":          filtered(`{"type":"eq","left":{"type":"reference","id":2,"name":"region"},"right":"sekret"}`),
		"I19 id":               filtered(`{"type":"eq","left":{"type":"reference","id":99},"right":1}`),
		"id of another schema": filtered(`{"type":"is-null","child":{"type":"reference","id":60}}`),
		"I20 unknown":          filtered(`{"type":"between","left":` + ref + `,"right":"sekret"}`),
		"no type":              filtered(`{"left":` + ref + `,"right":"sekret"}`),
		"column as condition":  filtered(ref),
		"text as condition":    filtered(`"sekret"`),
		"additional member":    filtered(`{"type":"eq","left":` + ref + `,"right":"sekret","also":1}`),
		"both spellings":       filtered(`{"type":"eq","left":` + ref + `,"term":` + ref + `,"right":"sekret","value":"sekret"}`),
		"value is no constant": filtered(`{"type":"eq","term":` + ref + `,"value":` + ref + `}`),
		"term is a constant":   filtered(`{"type":"eq","term":{"type":"literal","value":"a"},"value":"a"}`),
		"two members":          filtered(`{"type":"eq","type":"not-eq","left":` + ref + `,"right":"sekret"}`),
		"two filters":          `{"required-row-filter": false, "required-row-filter": true}`,
		"unknown member":       `{"required-sort": []}`,
		"no object":            `[]`,
		"a text":               `"sekret"`,
		"no JSON":              `{"required-row-filter": `,
		"something behind":     `{} {}`,
		"bad UTF-8":            filtered(`{"type":"eq","left":` + ref + ",\"right\":\"\xff\"}"),
		"half a character":     filtered(`{"type":"eq","left":` + ref + `,"right":"\ud800"}`),
		"starts-with column":   filtered(`{"type":"starts-with","left":` + ref + `,"right":` + ref + `}`),
		"starts-with of int":   filtered(`{"type":"starts-with","left":{"type":"reference","id":5},"right":"1"}`),
		"is-nan of text":       filtered(`{"type":"is-nan","child":` + ref + `}`),
		"null of a constant":   filtered(`{"type":"is-null","child":"sekret"}`),
		"in with null":         filtered(`{"type":"in","child":` + ref + `,"values":["a",null]}`),
		"in with a column":     filtered(`{"type":"in","child":` + ref + `,"values":[` + ref + `]}`),
		"in of an object":      filtered(`{"type":"in","child":` + ref + `,"values":{"type":"list","values":["a"]}}`),
		"two constants":        filtered(`{"type":"eq","left":1,"right":1}`),
		"list as constant":     filtered(`{"type":"eq","left":` + ref + `,"right":["a"]}`),
		"fraction for int":     filtered(`{"type":"eq","left":{"type":"reference","id":5},"right":1.5}`),
		"too large":            filtered(`{"type":"eq","left":{"type":"reference","id":18},"right":9223372036854775808}`),
		"infinite":             filtered(`{"type":"eq","left":{"type":"reference","id":11},"right":1e999}`),
		"other scale":          filtered(`{"type":"eq","left":{"type":"reference","id":6},"right":"1.5"}`),
		"decimal as number":    filtered(`{"type":"eq","left":{"type":"reference","id":6},"right":1.50}`),
		"no such day":          filtered(`{"type":"eq","left":{"type":"reference","id":7},"right":"2026-02-30"}`),
		"zone for timestamp":   filtered(`{"type":"eq","left":{"type":"reference","id":8},"right":"2026-01-01T00:00:00+00:00"}`),
		"no zone":              filtered(`{"type":"eq","left":{"type":"reference","id":9},"right":"2026-01-01T00:00:00"}`),
		"another zone":         filtered(`{"type":"eq","left":{"type":"reference","id":9},"right":"2026-01-01T00:00:00+01:00"}`),
		"nanos for micros":     filtered(`{"type":"eq","left":{"type":"reference","id":8},"right":"2026-01-01T00:00:00.000000001"}`),
		"nanos out of range":   filtered(`{"type":"eq","left":{"type":"reference","id":17},"right":"2500-01-01T00:00:00"}`),
		"length of fixed":      filtered(`{"type":"eq","left":{"type":"reference","id":15},"right":"00"}`),
		"date and timestamp":   filtered(`{"type":"eq","left":{"type":"reference","id":7},"right":{"type":"reference","id":8}}`),
		"zones":                filtered(`{"type":"eq","left":{"type":"reference","id":9},"right":{"type":"reference","id":8}}`),
		"int and double":       filtered(`{"type":"eq","left":{"type":"reference","id":5},"right":{"type":"reference","id":11}}`),
		"declared otherwise":   filtered(`{"type":"eq","left":` + ref + `,"right":{"type":"literal","value":1,"data-type":"int"}}`),
		"declared unknown":     filtered(`{"type":"eq","left":` + ref + `,"right":{"type":"literal","value":"a","data-type":"text"}}`),
		"structs compared":     filtered(`{"type":"eq","left":{"type":"reference","id":20},"right":{"type":"reference","id":20}}`),
		"inside a list":        filtered(`{"type":"eq","left":{"type":"reference","id":31},"right":"a"}`),
		"inside a map":         filtered(`{"type":"is-null","child":{"type":"reference","id":42}}`),
		"unreadable":           filtered(`{"type":"is-null","child":{"type":"reference","id":50}}`),
		"function by name":     filtered(apply(`"year"`, `{"type":"reference","id":7}`)),
		"foreign function":     filtered(apply(`{"catalog":"sql_functions","identifier":["year"]}`, `{"type":"reference","id":7}`)),
		"unknown function":     filtered(apply(iceberg("week"), `{"type":"reference","id":7}`)),
		"hour of date":         filtered(apply(iceberg("hour"), `{"type":"reference","id":7}`)),
		"year of text":         filtered(apply(iceberg("year"), ref)),
		"no bucket":            filtered(apply(iceberg("bucket"), `0,`+ref)),
		"bucket of double":     filtered(apply(iceberg("bucket"), `4,{"type":"reference","id":11}`)),
		"arguments":            filtered(apply(iceberg("year"), ref+`,`+ref)),
		"older void":           filtered(`{"type":"eq","term":{"type":"transform","transform":"void","term":` + ref + `},"value":"E"}`),
		"older without width":  filtered(`{"type":"eq","term":{"type":"transform","transform":"bucket","term":` + ref + `},"value":1}`),
		"if_else types":        filtered(`{"type":"eq","left":{"type":"apply","function":` + iceberg("if_else") + `,"arguments":[true,` + ref + `,{"type":"reference","id":5}]},"right":"a"}`),
		"deep":                 filtered(strings.Repeat(`{"type":"not","child":`, 300) + `true` + strings.Repeat(`}`, 300)),
		"projections":          `{"required-column-projections": {}}`,
		"projection":           `{"required-column-projections": ["mask-alphanum"]}`,
		"parameters":           `{"required-column-projections": [{"action":"mask-alphanum","field-id":2,"parameters":{}}]}`,
		"no id":                `{"required-column-projections": [{"action":"mask-alphanum"}]}`,
		"id is text":           `{"required-column-projections": [{"action":"mask-alphanum","field-id":"2"}]}`,
		"id is a fraction":     `{"required-column-projections": [{"action":"mask-alphanum","field-id":2.0}]}`,
		"two on one":           `{"required-column-projections": [{"action":"mask-alphanum","field-id":2},{"action":"mask-alphanum","field-id":2}]}`,
		"around another":       `{"required-column-projections": [{"action":"replace-with-null","field-id":20},{"action":"mask-alphanum","field-id":21}]}`,
		"around in a list":     `{"required-column-projections": [{"action":"mask-alphanum","field-id":31},{"action":"replace-with-null","field-id":30}]}`,
		"key of a map":         `{"required-column-projections": [{"action":"mask-alphanum","field-id":41}]}`,
		"unknown field":        `{"required-column-projections": [{"action":"mask-alphanum","field-id":99}]}`,
	}
	for name, raw := range cases {
		got, err := kept(t, in, raw, []record{{2: "a"}})
		if !broken(err) {
			t.Errorf("%s: %v, %v, want a refusal", name, got, err)
			continue
		}
		why := Compile([]byte(raw), orders()).Refuse
		if why == "" || strings.Contains(why, "sekret") || strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: the reason is %q", name, why)
		}
	}
}

// TestBeneath: an action inside a column that cannot be read concerns that column alone.
func TestBeneath(t *testing.T) {
	raw := `{"required-column-projections": [{"action":"mask-alphanum","field-id":51},{"action":"mask-alphanum","field-id":2}]}`
	r := Compile([]byte(raw), orders())
	if r.Refuse != "" || len(r.Columns) != 2 || r.Columns[2].Kind != policy.Mask {
		t.Fatalf("%+v", r)
	}
	if c := r.Columns[50]; c.Kind != policy.Forbid || !c.Fail || !strings.Contains(c.Why, "field id 51") {
		t.Errorf("%+v", c)
	}
}

// TestNothing: what demands nothing restricts nothing.
func TestNothing(t *testing.T) {
	for _, raw := range []string{
		"", "null", "{}", `{"required-row-filter": null, "required-column-projections": null}`,
		`{"required-row-filter": true, "required-column-projections": []}`,
	} {
		if r := Compile([]byte(raw), orders()); !r.Unrestricted() {
			t.Errorf("%s restricts: %+v", raw, r)
		}
	}
	if r := Compile([]byte(filtered("false")), orders()); r.Unrestricted() {
		t.Error("the filter false restricts nothing")
	}
}
