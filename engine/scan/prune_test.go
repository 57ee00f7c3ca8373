package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"sqe/plan"
)

// record is a row of the table of TestPruneKeepsEveryRow; nil is NULL.
type record struct {
	id int64
	n  any // int32 as int64
	d  any // date as days
	ts any // microseconds
	s  any
}

var pruneSchema = iceberg.NewSchema(0,
	col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "n", iceberg.PrimitiveTypes.Int32),
	col(3, "d", iceberg.PrimitiveTypes.Date), col(4, "ts", iceberg.PrimitiveTypes.Timestamp),
	col(5, "s", iceberg.PrimitiveTypes.String), col(6, "dec", iceberg.DecimalTypeOf(9, 2)))

func maybe(r *rand.Rand, v any) any {
	if r.IntN(8) == 0 {
		return nil
	}
	return v
}

func show(v any, how func(any) string) string {
	if v == nil {
		return "null"
	}
	return how(v)
}

func (r record) json() string {
	return fmt.Sprintf(`{"id":%d,"n":%s,"d":%s,"ts":%s,"s":%s,"dec":%s}`, r.id,
		show(r.n, func(v any) string { return fmt.Sprint(v) }),
		show(r.d, func(v any) string { return `"` + arrow.Date32(v.(int64)).FormattedString() + `"` }),
		show(r.ts, func(v any) string {
			return `"` + arrow.Timestamp(v.(int64)).ToTime(arrow.Microsecond).Format("2006-01-02 15:04:05.000000") + `"`
		}),
		show(r.s, func(v any) string { return fmt.Sprintf("%q", v) }),
		show(r.n, func(v any) string { return fmt.Sprintf(`"%d.50"`, v) }))
}

func (r record) value(name string) any {
	switch name {
	case "id":
		return r.id
	case "n":
		return r.n
	case "d":
		return r.d
	case "ts":
		return r.ts
	case "s":
		return r.s
	}
	return nil
}

// eval is what a condition is on a row: true, false or nil.
func eval(e plan.Expr, r record, names map[plan.ColumnID]string) any {
	switch e := e.(type) {
	case *plan.Ref:
		return r.value(names[e.ID])
	case *plan.Cast:
		return eval(e.Operand, r, names) // widening only
	case *plan.Literal:
		switch v := e.Value.(type) {
		case arrow.Date32:
			return int64(v)
		case arrow.Timestamp:
			return int64(v)
		}
		return e.Value
	case *plan.In:
		var out any = false
		for _, x := range e.List {
			switch eval(plan.MustCall("eq", e.Operand, x), r, names) {
			case true:
				return true
			case nil:
				out = nil
			}
		}
		return out
	case *plan.Like:
		v, ok := eval(e.Operand, r, names).(string)
		if !ok {
			return nil
		}
		return strings.HasPrefix(v, strings.TrimSuffix(e.Pattern.(*plan.Literal).Value.(string), "%"))
	case *plan.Call:
		var args []any
		for _, o := range e.Operands {
			args = append(args, eval(o, r, names))
		}
		switch e.Func.Name {
		case "and":
			switch {
			case slices.Contains(args, any(false)):
				return false
			case slices.Contains(args, nil):
				return nil
			}
			return true
		case "or":
			switch {
			case slices.Contains(args, any(true)):
				return true
			case slices.Contains(args, nil):
				return nil
			}
			return false
		case "not":
			if args[0] == nil {
				return nil
			}
			return !args[0].(bool)
		case "is_null":
			return args[0] == nil
		}
		if args[0] == nil || args[1] == nil {
			return nil
		}
		c := 0
		switch a := args[0].(type) {
		case int64:
			b := args[1].(int64)
			switch {
			case a < b:
				c = -1
			case a > b:
				c = 1
			}
		case string:
			c = strings.Compare(a, args[1].(string))
		}
		return map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[e.Func.Name]
	}
	panic(fmt.Sprintf("%T", e))
}

// TestPruneKeepsEveryRow: whatever the partitioning and the condition, a row for
// which the condition is true is read.
func TestPruneKeepsEveryRow(t *testing.T) {
	specs := map[string][]iceberg.PartitionField{
		"none": nil,
		"year": {{SourceIDs: []int{3}, FieldID: 1000, Name: "p", Transform: iceberg.YearTransform{}}},
		"month, bucket": {
			{SourceIDs: []int{4}, FieldID: 1000, Name: "p", Transform: iceberg.MonthTransform{}},
			{SourceIDs: []int{1}, FieldID: 1001, Name: "q", Transform: iceberg.BucketTransform{NumBuckets: 3}},
		},
		"day":               {{SourceIDs: []int{3}, FieldID: 1000, Name: "p", Transform: iceberg.DayTransform{}}},
		"hour":              {{SourceIDs: []int{4}, FieldID: 1000, Name: "p", Transform: iceberg.HourTransform{}}},
		"bucket text":       {{SourceIDs: []int{5}, FieldID: 1000, Name: "p", Transform: iceberg.BucketTransform{NumBuckets: 4}}},
		"truncate text":     {{SourceIDs: []int{5}, FieldID: 1000, Name: "p", Transform: iceberg.TruncateTransform{Width: 1}}},
		"truncate number":   {{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.TruncateTransform{Width: 10}}},
		"identity":          {{SourceIDs: []int{5}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}}},
		"identity of dates": {{SourceIDs: []int{3}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}}},
	}
	for name, spec := range specs {
		for _, metrics := range []string{"full", "none"} {
			t.Run(name+" metrics="+metrics, func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, uint64(len(name))))
				l := newLake(t)
				tb := l.create("t", pruneSchema, "2", spec, iceberg.Properties{"write.metadata.metrics.default": metrics})
				var all []record
				for range 4 {
					var objs []string
					for range 6 {
						rec := record{
							id: int64(len(all)), n: maybe(r, int64(r.IntN(60)-30)), d: maybe(r, int64(r.IntN(1500)-700)),
							ts: maybe(r, int64(r.IntN(40)-20)*7_200_000_000+int64(r.IntN(3))), s: maybe(r, string(rune('a'+r.IntN(4)))+string(rune('a'+r.IntN(3)))),
						}
						all = append(all, rec)
						objs = append(objs, rec.json())
					}
					tb = l.append(tb, "["+strings.Join(objs, ",")+"]")
				}
				s := scanOfTable(l.load("t", plan.AsOf{}))
				names := map[plan.ColumnID]string{}
				for _, c := range s.Cols {
					names[c.ID] = c.Name
				}
				files := len(l.plan(s).Files)
				left := 0
				for range 80 {
					s.Prune = randomCondition(r, s, all, 2)
					in := l.plan(s)
					left += files - len(in.Files)
					read := map[string]bool{}
					for _, row := range l.read(s) {
						id, _, _ := strings.Cut(row, "|")
						if read[id] {
							t.Fatalf("row %s was read twice", id)
						}
						read[id] = true
					}
					for _, rec := range all {
						if eval(s.Prune, rec, names) == true && !read[fmt.Sprint(rec.id)] {
							t.Fatalf("row %s is lost under %s", rec.json(), plan.FormatExpr(s.Prune))
						}
					}
				}
				if left == 0 && (metrics == "full" || spec != nil) {
					t.Error("nothing was ever pruned")
				}
			})
		}
	}
}

func randomCondition(r *rand.Rand, s *plan.Scan, all []record, depth int) plan.Expr {
	if depth > 0 && r.IntN(2) == 0 {
		a, b := randomCondition(r, s, all, depth-1), randomCondition(r, s, all, depth-1)
		switch r.IntN(3) {
		case 0:
			return plan.MustCall("and", a, b)
		case 1:
			return plan.MustCall("or", a, b)
		}
		return plan.MustCall("not", a)
	}
	c := s.Cols[r.IntN(5)] // all but dec
	ref := &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}
	literal := func() *plan.Literal {
		v := all[r.IntN(len(all))].value(c.Name)
		if i, ok := v.(int64); ok {
			i += int64(r.IntN(3) - 1)
			v = i
			switch c.Name {
			case "d":
				v = arrow.Date32(i)
			case "ts":
				v = arrow.Timestamp(i)
			}
		}
		return &plan.Literal{Value: v, Typ: c.Type}
	}
	switch r.IntN(8) {
	case 0:
		return plan.MustCall("is_null", ref)
	case 1:
		return &plan.In{Operand: ref, List: []plan.Expr{literal(), literal(), literal()}}
	case 2:
		if c.Name == "s" {
			if p, ok := literal().Value.(string); ok {
				return &plan.Like{Operand: ref, Pattern: &plan.Literal{Value: p[:1+r.IntN(2)] + "%", Typ: plan.String}, Escape: '\\'}
			}
		}
	case 3:
		if c.Name == "n" {
			wide := &plan.Cast{Operand: ref, Typ: plan.Int64}
			lit := literal()
			lit.Typ = plan.Int64
			return plan.MustCall("lt", lit, wide)
		}
	}
	return plan.MustCall([]string{"eq", "ne", "lt", "le", "gt", "ge"}[r.IntN(6)], ref, literal())
}

// TestPruneCounts: how many of ten files, of ten rows each, are left.
func TestPruneCounts(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, nil)
	for i := range 10 {
		tb = l.append(tb, liveObjects(i*10, i*10+10))
	}
	s := scanOfTable(l.load("t", plan.AsOf{}))
	ref := func(i int) *plan.Ref { return &plan.Ref{ID: s.Cols[i].ID, Typ: s.Cols[i].Type} }
	long := func(v int64) plan.Expr { return &plan.Literal{Value: v, Typ: plan.Int64} }
	text := func(v string) plan.Expr { return &plan.Literal{Value: v, Typ: plan.String} }
	cast := func(e plan.Expr, t arrow.DataType) plan.Expr { return &plan.Cast{Operand: e, Typ: t} }
	dec, err := decimal128.FromString("55.5", 10, 1)
	l.must(err)
	for _, c := range []struct {
		name string
		cond plan.Expr
		want int
	}{
		{"point", plan.MustCall("eq", ref(0), long(42)), 1},
		{"literal first", plan.MustCall("gt", long(25), ref(0)), 3},
		{"list", &plan.In{Operand: ref(0), List: []plan.Expr{long(1), long(99), long(1000)}}, 2},
		{"none", plan.MustCall("lt", ref(0), long(0)), 0},
		{"not", plan.MustCall("not", plan.MustCall("ge", ref(0), long(20))), 2},
		{"range", plan.MustCall("and", plan.MustCall("ge", ref(0), long(35)), plan.MustCall("le", ref(0), long(44))), 2},
		{"is null", plan.MustCall("is_null", ref(1)), 0},
		{"prefix", &plan.Like{Operand: ref(1), Pattern: text("n4_"), Escape: '\\'}, 2}, // n4 and n40 to n49
		{"starts_with", plan.MustCall("starts_with", ref(1), text("x")), 0},
		{"cast to bigint", plan.MustCall("eq", cast(ref(2), plan.Int64), long(420)), 1},
		{"cast to double", plan.MustCall("lt", cast(ref(0), plan.Float64), &plan.Literal{Value: 9.5, Typ: plan.Float64}), 1},
		{"cast to decimal", plan.MustCall("gt", cast(ref(0), plan.Decimal(20, 1)), &plan.Literal{Value: dec, Typ: plan.Decimal(10, 1)}), 5},
		{"null literal", plan.MustCall("eq", ref(0), &plan.Literal{Typ: plan.Int64}), 0},
		{"unknown function", plan.MustCall("eq", plan.MustCall("lower", ref(1)), text("n1")), 10},
		{"narrowing cast", plan.MustCall("eq", cast(ref(0), plan.String), text("1")), 10},
		{"unknown or known", plan.MustCall("or", plan.MustCall("eq", plan.MustCall("lower", ref(1)), text("n1")), plan.MustCall("eq", ref(0), long(1))), 10},
		{"unknown and known", plan.MustCall("and", plan.MustCall("eq", plan.MustCall("lower", ref(1)), text("n1")), plan.MustCall("eq", ref(0), long(1))), 1},
		{"false", &plan.Literal{Value: false, Typ: plan.Bool}, 0},
		{"true", &plan.Literal{Value: true, Typ: plan.Bool}, 10},
	} {
		s.Prune = c.cond
		if got := len(l.plan(s).Files); got != c.want {
			t.Errorf("%s: %d files, want %d", c.name, got, c.want)
		}
	}
}

// TestPruneNaN: a NaN is greater than every number to the executor, and the limits
// of a file say nothing of it.
func TestPruneNaN(t *testing.T) {
	file := func(nans map[int]int64) []*dataFile {
		low, _ := iceberg.Float64Literal(1).MarshalBinary()
		high, _ := iceberg.Float64Literal(2).MarshalBinary()
		return []*dataFile{{spec: iceberg.UnpartitionedSpec, stats: stats{
			values: map[int]int64{1: 3}, nulls: map[int]int64{1: 0}, nans: nans,
			lower: map[int][]byte{1: low}, upper: map[int][]byte{1: high},
		}}}
	}
	s := &plan.Scan{Cols: []plan.ScanColumn{{Column: plan.Column{ID: 1, Type: plan.Float64}, FieldID: 1}}}
	over := plan.MustCall("gt", &plan.Ref{ID: 1, Typ: plan.Float64}, &plan.Literal{Value: 5.0, Typ: plan.Float64})
	for _, c := range []struct {
		nans map[int]int64
		want int
	}{{map[int]int64{1: 0}, 0}, {map[int]int64{1: 1}, 1}, {nil, 1}} {
		s.Prune = over
		if got := len(prune(file(c.nans), s)); got != c.want {
			t.Errorf("NaN counts %v: %d files, want %d", c.nans, got, c.want)
		}
	}
	s.Prune = plan.MustCall("gt", &plan.Ref{ID: 1, Typ: plan.Float64}, &plan.Literal{Value: math.NaN(), Typ: plan.Float64})
	if len(prune(file(map[int]int64{1: 0}), s)) != 1 {
		t.Error("a comparison with NaN prunes")
	}
}
