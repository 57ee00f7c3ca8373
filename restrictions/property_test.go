package restrictions

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/transform"
)

// world makes random predicates together with what they mean, by the specification's
// rules on plain values.
type world struct{ *rand.Rand }

type meaning func(record) bool

type operand struct {
	json  any
	value func(record) any
	kind  string
}

// kinds of columns and which columns they have.
var columnsOf = map[string][]int{
	"text": {2, 3, 21}, "int": {5, 18, 22}, "decimal": {6}, "date": {7}, "stamp": {8}, "zoned": {9}, "float": {10, 11},
	"bool": {12}, "time": {13}, "uuid": {14}, "fixed": {15}, "binary": {16}, "nano": {17},
}

func (w world) pick(list ...string) string { return list[w.IntN(len(list))] }

var kindNames = func() (out []string) {
	for k := range columnsOf {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}()

// sample is a value of a kind, from so few that equal ones meet.
func (w world) sample(kind string, id int) any {
	n := int64(w.IntN(7) - 3)
	switch kind {
	case "text":
		return w.pick("", "EU", "EU-1", "US", "ä", "a😀b", "Z", "'")
	case "int":
		if id == 18 && w.IntN(3) == 0 {
			return n << 40
		}
		return n
	case "decimal":
		return decimal128.FromI64(n * 50)
	case "date":
		return arrow.Date32(n * 40)
	case "stamp", "zoned":
		return arrow.Timestamp(n * 1_800_000_000)
	case "nano":
		return arrow.Timestamp(n*1_800_000_000_000 + int64(w.IntN(2)))
	case "float":
		if id != 0 && w.IntN(4) == 0 {
			return math.NaN()
		}
		return []float64{-0.5, math.Copysign(0, -1), 0, 0.25, 1.5}[w.IntN(5)]
	case "bool":
		return n > 0
	case "time":
		return arrow.Time64((n + 3) * 3_600_000_000)
	case "uuid":
		return slices.Repeat([]byte{byte(n)}, 16)
	case "fixed":
		return slices.Repeat([]byte{byte(n)}, 3)
	}
	return slices.Repeat([]byte{byte(n)}, w.IntN(3))
}

func (w world) record() record {
	r := record{}
	for kind, ids := range columnsOf {
		for _, id := range ids {
			if w.IntN(4) > 0 {
				r[id] = w.sample(kind, id)
			}
		}
	}
	if w.IntN(6) == 0 {
		r[20], r[21], r[22] = "null", nil, nil
	}
	return r
}

// bare is a value as JSON; typed is its type.
func bare(kind string, v any) (out any, dataType string) {
	switch v := v.(type) {
	case string, bool:
		return v, map[string]string{"text": "string", "bool": "boolean"}[kind]
	case int64:
		return v, "long"
	case float64:
		return json.Number(fmt.Sprint(v)), "double"
	case decimal128.Num:
		return v.ToString(2), "decimal(10, 2)"
	case arrow.Date32:
		return v.ToTime().Format(time.DateOnly), "date"
	case arrow.Time64:
		return v.ToTime(arrow.Microsecond).Format("15:04:05.000000"), "time"
	case arrow.Timestamp:
		switch kind {
		case "stamp":
			return time.UnixMicro(int64(v)).UTC().Format("2006-01-02T15:04:05.000000"), "timestamp"
		case "zoned":
			return time.UnixMicro(int64(v)).UTC().Format("2006-01-02T15:04:05.000000+00:00"), "timestamptz"
		}
		return time.Unix(0, int64(v)).UTC().Format("2006-01-02T15:04:05.000000000"), "timestamp_ns"
	case []byte:
		h := strings.ToUpper(hex.EncodeToString(v))
		switch kind {
		case "uuid":
			h = strings.ToLower(h)
			return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-"), "uuid"
		case "fixed":
			return h, "fixed[3]"
		}
		return h, "binary"
	}
	panic(v)
}

func (w world) constant(kind string) operand {
	v := w.sample(kind, 0)
	j, dataType := bare(kind, v)
	switch w.IntN(3) {
	case 0:
		j = map[string]any{"type": "literal", "value": j}
	case 1:
		j = map[string]any{"type": "literal", "value": j, "data-type": dataType}
	}
	return operand{j, func(record) any { return v }, kind}
}

func (w world) column(kind string) operand {
	ids := columnsOf[kind]
	id := ids[w.IntN(len(ids))]
	return operand{map[string]any{"type": "reference", "id": id}, func(r record) any { return r[id] }, kind}
}

// expression is a column or a function of one, of some kind.
func (w world) expression(depth int) operand {
	if depth > 0 {
		switch w.IntN(8) {
		case 0:
			return w.dated()
		case 1:
			return w.bucket()
		case 2:
			return w.cut()
		case 3:
			kind := kindNames[w.IntN(len(kindNames))]
			p, holds := w.predicate(depth - 1)
			x, y := w.column(kind), w.column(kind)
			if w.IntN(2) == 0 {
				y = w.constant(kind)
			}
			return operand{function("if_else", p, x.json, y.json), func(r record) any {
				if holds(r) {
					return x.value(r)
				}
				return y.value(r)
			}, kind}
		}
	}
	return w.column(kindNames[w.IntN(len(kindNames))])
}

func function(name string, arguments ...any) any {
	return map[string]any{
		"type": "apply", "function": map[string]any{"catalog": "iceberg_functions", "identifier": []any{name}}, "arguments": arguments,
	}
}

// dated is a transform of a date or timestamp.
func (w world) dated() operand {
	c := w.column(w.pick("date", "stamp", "zoned", "nano"))
	name := w.pick("year", "month", "day", "hour")
	if name == "hour" && c.kind == "date" {
		name = "year"
	}
	kind := "int"
	if name == "day" {
		kind = "date"
	}
	j := function(name, c.json)
	if w.IntN(2) == 0 {
		j = map[string]any{"type": "transform", "transform": name, "term": c.json}
	}
	return operand{j, func(r record) any {
		var at time.Time
		switch v := c.value(r).(type) {
		case nil:
			return nil
		case arrow.Date32:
			at = v.ToTime()
		case arrow.Timestamp:
			at = time.UnixMicro(int64(v)).UTC()
			if c.kind == "nano" {
				at = time.Unix(0, int64(v)).UTC()
			}
		}
		switch name {
		case "year":
			return int64(at.Year() - 1970)
		case "month":
			return int64((at.Year()-1970)*12 + int(at.Month()) - 1)
		case "day":
			return arrow.Date32FromTime(at)
		}
		return int64(math.Floor(at.Sub(time.Unix(0, 0)).Hours()))
	}, kind}
}

func (w world) bucket() operand {
	c := w.column(w.pick("text", "int", "decimal", "date", "stamp", "zoned", "nano", "time", "uuid", "fixed", "binary"))
	n := int64(1 + w.IntN(5))
	j := function("bucket", n, c.json)
	if w.IntN(2) == 0 {
		j = map[string]any{"type": "transform", "transform": fmt.Sprintf("bucket[%d]", n), "term": c.json}
	}
	return operand{j, func(r record) any {
		switch v := c.value(r).(type) {
		case string:
			return transform.Bucket(n, []byte(v))
		case []byte:
			return transform.Bucket(n, v)
		case int64:
			return transform.BucketInteger(n, v)
		case decimal128.Num:
			return transform.BucketDecimal(n, v)
		case arrow.Date32:
			return transform.BucketInteger(n, int64(v))
		case arrow.Time64:
			return transform.BucketInteger(n, int64(v))
		case arrow.Timestamp:
			if c.kind == "nano" {
				return transform.BucketInteger(n, transform.Floor(int64(v), 1000))
			}
			return transform.BucketInteger(n, int64(v))
		}
		return nil
	}, "int"}
}

func (w world) cut() operand {
	c := w.column(w.pick("text", "int", "decimal", "binary"))
	n := int64(1 + w.IntN(5))
	return operand{function("truncate", n, c.json), func(r record) any {
		switch v := c.value(r).(type) {
		case string:
			return string([]rune(v)[:min(len([]rune(v)), int(n))])
		case []byte:
			return v[:min(len(v), int(n))]
		case int64:
			return transform.TruncateInteger(n, v)
		case decimal128.Num:
			return transform.TruncateDecimal(n, v)
		}
		return nil
	}, c.kind}
}

// compare says whether a is less than, equal to or greater than b; neither is NULL or
// NaN.
func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		if a == b.(float64) {
			return 0
		}
		return cmp.Compare(a, b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case bool:
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) // "false" is less than "true"
	case decimal128.Num:
		return a.Cmp(b.(decimal128.Num))
	case arrow.Date32:
		return cmp.Compare(a, b.(arrow.Date32))
	case arrow.Time64:
		return cmp.Compare(a, b.(arrow.Time64))
	case arrow.Timestamp:
		return cmp.Compare(a, b.(arrow.Timestamp))
	}
	panic(fmt.Sprintf("%T", a))
}

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && math.IsNaN(f)
}

// relate is the truth of a comparison.
func relate(op string, a, b any) bool {
	same := (a == nil && b == nil) || (isNaN(a) && isNaN(b))
	odd := a == nil || b == nil || isNaN(a) || isNaN(b)
	switch op {
	case "eq":
		return same || (!odd && compare(a, b) == 0)
	case "not-eq":
		return !relate("eq", a, b)
	case "lt":
		return !odd && compare(a, b) < 0
	case "gt":
		return !odd && compare(a, b) > 0
	case "lt-eq":
		return same || (!odd && compare(a, b) <= 0)
	}
	return same || (!odd && compare(a, b) >= 0)
}

func (w world) predicate(depth int) (any, meaning) {
	if depth > 0 && w.IntN(2) == 0 {
		l, left := w.predicate(depth - 1)
		if w.IntN(3) == 0 {
			return map[string]any{"type": "not", "child": l}, func(r record) bool { return !left(r) }
		}
		r, right := w.predicate(depth - 1)
		if w.IntN(2) == 0 {
			return map[string]any{"type": "and", "left": l, "right": r}, func(x record) bool { return left(x) && right(x) }
		}
		return map[string]any{"type": "or", "left": l, "right": r}, func(x record) bool { return left(x) || right(x) }
	}
	x := w.expression(depth)
	member := w.pick("child", "term")
	switch w.IntN(8) {
	case 0:
		null := w.IntN(2) == 0
		return map[string]any{"type": map[bool]string{true: "is-null", false: "not-null"}[null], member: x.json},
			func(r record) bool { return (x.value(r) == nil) == null }
	case 1:
		x = w.column("float")
		nan := w.IntN(2) == 0
		return map[string]any{"type": map[bool]string{true: "is-nan", false: "not-nan"}[nan], member: x.json},
			func(r record) bool { return isNaN(x.value(r)) == nan }
	case 2:
		return w.in(x, member)
	case 3:
		x = w.column("text")
		y := w.constant("text")
		starts := w.IntN(2) == 0
		return map[string]any{"type": map[bool]string{true: "starts-with", false: "not-starts-with"}[starts], "left": x.json, "right": y.json},
			func(r record) bool {
				s, ok := x.value(r).(string)
				return (ok && strings.HasPrefix(s, y.value(r).(string))) == starts
			}
	}
	op := w.pick("eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq")
	y := w.constant(x.kind)
	if w.IntN(3) == 0 {
		y = w.column(x.kind)
	} else if w.IntN(3) == 0 {
		return map[string]any{"type": op, "term": x.json, "value": y.json}, func(r record) bool { return relate(op, x.value(r), y.value(r)) }
	}
	if w.IntN(3) == 0 {
		x, y = y, x
	}
	return map[string]any{"type": op, "left": x.json, "right": y.json}, func(r record) bool { return relate(op, x.value(r), y.value(r)) }
}

func (w world) in(x operand, member string) (any, meaning) {
	var list []any
	var values []any
	var dataType string
	for range w.IntN(4) {
		v := w.sample(x.kind, 0)
		j, d := bare(x.kind, v)
		list, values, dataType = append(list, j), append(values, v), d
	}
	var all any = append([]any{}, list...)
	if len(list) > 0 && w.IntN(2) == 0 {
		all = map[string]any{"type": "literals", "values": list, "data-type": dataType}
	}
	in := w.IntN(2) == 0
	return map[string]any{"type": map[bool]string{true: "in", false: "not-in"}[in], member: x.json, "values": all},
		func(r record) bool {
			return slices.ContainsFunc(values, func(v any) bool { return relate("eq", x.value(r), v) }) == in
		}
}

// TestRandomFilters compares what the executor makes of random filters, through the
// guard and with its pruning, with what the specification says of each row.
func TestRandomFilters(t *testing.T) {
	in := open(t)
	filters := 1500
	if testing.Short() {
		filters = 200
	}
	none, all := 0, 0
	for seed := range filters {
		w := world{rand.New(rand.NewPCG(uint64(seed), 6))}
		data := make([]record, 60)
		for i := range data {
			data[i] = w.record()
		}
		p, holds := w.predicate(3)
		raw, err := json.Marshal(map[string]any{"required-row-filter": p})
		if err != nil {
			t.Fatal(err)
		}
		got, err := kept(t, in, string(raw), data)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, raw, err)
		}
		slices.Sort(got)
		var want []int64
		for i, r := range data {
			if holds(r) {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(got, want) {
			for i, r := range data {
				if i := int64(i); slices.Contains(got, i) != slices.Contains(want, i) {
					t.Fatalf("seed %d: %s\nrow %v: kept %v, want %v", seed, raw, r, slices.Contains(got, i), slices.Contains(want, i))
				}
			}
		}
		switch len(want) {
		case 0:
			none++
		case len(data):
			all++
		}
	}
	// The filters are worth asking only if most of them divide the rows.
	if none+all > filters/2 {
		t.Errorf("%d of %d filters keep no row, %d all", none, filters, all)
	}
}
