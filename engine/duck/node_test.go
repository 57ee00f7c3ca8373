package duck

import (
	"testing"

	"sqe/engine/scan"
	"sqe/plan"
)

var people = []column{
	{"id", plan.Int32, `[1, 2, 3, 4, null]`},
	{"name", plan.String, `["ann", "bob", "cem", "dan", null]`},
	{"pay", plan.Decimal(10, 2), `["10.50", "20.25", "5.00", null, "1.00"]`},
	{"dept", plan.String, `["a", "a", "b", "b", "b"]`},
}

// sources of the same rows, in files and in a stream.
func everyScan(t *testing.T, test func(t *testing.T, in *Instance, inputs Inputs)) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	b := batch(t, people...)
	path := writeFile(t, dir, "people.parquet", b)
	t.Run("file", func(t *testing.T) {
		test(t, in, fixed(&scan.Input{Files: []scan.File{fileOf(path, people...)}, Rows: 5}))
	})
	t.Run("stream", func(t *testing.T) {
		test(t, in, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b.NewSlice(0, 2), b.NewSlice(2, 5)}}, Rows: 5}))
	})
	t.Run("both", func(t *testing.T) {
		first := writeFile(t, dir, "first.parquet", b.NewSlice(0, 2))
		test(t, in, fixed(&scan.Input{Files: []scan.File{fileOf(first, people...)}, Stream: &stream{batches: []recordBatch{b.NewSlice(2, 5)}}, Rows: -1}))
	})
}

func asc(e plan.Expr) plan.SortKey  { return plan.SortKey{Expr: e, NullsFirst: true} }
func desc(e plan.Expr) plan.SortKey { return plan.SortKey{Expr: e, Desc: true} }

func item(id plan.ColumnID, e plan.Expr) plan.Item {
	return plan.Item{Column: plan.Column{ID: id, Type: e.Type(), Nullable: true}, Expr: e}
}

func TestScanFilterIsApplied(t *testing.T) {
	everyScan(t, func(t *testing.T, in *Instance, inputs Inputs) {
		s := scanOf(1, people...)
		want(t, in, &plan.Sort{Input: s, Keys: []plan.SortKey{asc(ref(s, 0))}}, inputs,
			"NULL|NULL|1.00|b", "1|ann|10.50|a", "2|bob|20.25|a", "3|cem|5.00|b", "4|dan|NULL|b")
		want(t, in, &plan.Filter{Input: s, Cond: call("eq", ref(s, 1), "bob")}, inputs, "2|bob|20.25|a")
		want(t, in, &plan.Project{
			Input: &plan.Filter{Input: s, Cond: call("gt", ref(s, 2), dec("9.00"))},
			Items: []plan.Item{item(10, ref(s, 3))},
		}, inputs, "a", "a")
		want(t, in, &plan.Aggregate{
			Input: &plan.Filter{Input: s, Cond: call("eq", ref(s, 1), "nobody")},
			Aggs:  []plan.AggItem{agg(11, "count")},
		}, inputs, "0")
		want(t, in, &plan.Aggregate{Input: s, Aggs: []plan.AggItem{agg(11, "count")}}, inputs, "5")
	})
}

func agg(id plan.ColumnID, name string, args ...plan.Expr) plan.AggItem {
	f, ok := plan.Lookup(name)
	if !ok {
		panic(name)
	}
	t, err := f.Result(plan.Types(args))
	if err != nil {
		panic(err)
	}
	return plan.AggItem{Column: plan.Column{ID: id, Type: t}, Call: plan.AggCall{Func: f, Args: args}}
}

func TestNodes(t *testing.T) {
	everyScan(t, func(t *testing.T, in *Instance, inputs Inputs) {
		s := scanOf(1, people...)
		u := scanOf(21, people...)
		byID := func(n plan.Node) plan.Node { return &plan.Sort{Input: n, Keys: []plan.SortKey{asc(ref(n, 0))}} }
		ids := &plan.Project{Input: s, Items: []plan.Item{item(1, ref(s, 0))}}

		t.Run("aggregate", func(t *testing.T) {
			a := &plan.Aggregate{
				Input: s,
				Keys:  []plan.Item{item(40, ref(s, 3))},
				Aggs: []plan.AggItem{
					agg(41, "count"), agg(42, "count", ref(s, 1)), agg(43, "sum", ref(s, 0)), agg(44, "avg", ref(s, 2)),
					agg(45, "min", ref(s, 1)), agg(46, "max", ref(s, 2)), agg(47, "sum", ref(s, 2)), agg(48, "avg", ref(s, 0)),
				},
			}
			want(t, in, byID(a), inputs, "a|2|2|3|15.375000|ann|20.25|30.75|1.5000", "b|3|2|7|3.000000|cem|5.00|6.00|3.5000")
		})
		t.Run("project over sort and limit", func(t *testing.T) {
			n := &plan.Project{
				Input: &plan.Limit{Input: &plan.Sort{Input: s, Keys: []plan.SortKey{desc(ref(s, 2))}}, Count: 2, Offset: 1},
				Items: []plan.Item{item(50, call("concat", ref(s, 1), "!"))},
			}
			want(t, in, n, inputs, "ann!", "cem!")
		})
		t.Run("distinct", func(t *testing.T) {
			p := &plan.Project{Input: s, Items: []plan.Item{item(60, ref(s, 3))}}
			want(t, in, byID(&plan.Distinct{Input: p}), inputs, "a", "b")
		})
		t.Run("joins", func(t *testing.T) {
			on := call("eq", ref(s, 0), call("add", ref(u, 0), 1))
			join := func(k plan.JoinKind) plan.Node {
				j := &plan.Join{Kind: k, Left: ids, Right: &plan.Project{Input: u, Items: []plan.Item{item(21, ref(u, 0))}}, On: on}
				keys := []plan.SortKey{asc(ref(j, 0))}
				if k != plan.Semi && k != plan.Anti {
					keys = append(keys, asc(ref(j, 1)))
				}
				return &plan.Sort{Input: j, Keys: keys}
			}
			want(t, in, join(plan.Inner), inputs, "2|1", "3|2", "4|3")
			want(t, in, join(plan.Left), inputs, "NULL|NULL", "1|NULL", "2|1", "3|2", "4|3")
			want(t, in, join(plan.Right), inputs, "NULL|NULL", "NULL|4", "2|1", "3|2", "4|3")
			want(t, in, join(plan.Full), inputs, "NULL|NULL", "NULL|NULL", "NULL|4", "1|NULL", "2|1", "3|2", "4|3")
			want(t, in, join(plan.Semi), inputs, "2", "3", "4")
			want(t, in, join(plan.Anti), inputs, "NULL", "1")
		})
		t.Run("cross", func(t *testing.T) {
			a := &plan.Aggregate{Input: &plan.Join{Kind: plan.Cross, Left: s, Right: u}, Aggs: []plan.AggItem{agg(70, "count")}}
			want(t, in, a, inputs, "25")
		})
		t.Run("lateral", func(t *testing.T) {
			right := &plan.Aggregate{
				Input: &plan.Filter{Input: u, Cond: call("lt", ref(u, 0), ref(s, 0))},
				Aggs:  []plan.AggItem{agg(71, "count")},
			}
			j := &plan.Join{Kind: plan.Cross, Left: ids, Right: right, Lateral: true}
			want(t, in, byID(j), inputs, "NULL|0", "1|0", "2|1", "3|2", "4|3")
			l := &plan.Join{Kind: plan.Left, Left: ids, Right: right, Lateral: true, On: call("gt", &plan.Ref{ID: 71, Typ: plan.Int64}, 1)}
			want(t, in, byID(l), inputs, "NULL|NULL", "1|NULL", "2|NULL", "3|2", "4|3")
		})
		t.Run("set operations", func(t *testing.T) {
			few := &plan.Values{Cols: []plan.Column{{ID: 80, Type: plan.Int64}}, Rows: [][]plan.Expr{{lit(3)}, {lit(3)}, {lit(9)}}}
			set := func(k plan.SetKind, all bool) plan.Node {
				return byID(&plan.SetOp{Kind: k, All: all, Left: few, Right: ids, Cols: []plan.Column{{ID: 81, Type: plan.Int64}}})
			}
			want(t, in, set(plan.Union, true), inputs, "NULL", "1", "2", "3", "3", "3", "4", "9")
			want(t, in, set(plan.Union, false), inputs, "NULL", "1", "2", "3", "4", "9")
			want(t, in, set(plan.Intersect, true), inputs, "3")
			want(t, in, set(plan.Intersect, false), inputs, "3")
			want(t, in, set(plan.Except, true), inputs, "3", "9")
			want(t, in, set(plan.Except, false), inputs, "9")
		})
		t.Run("sub-queries", func(t *testing.T) {
			inner := &plan.Project{Input: &plan.Filter{Input: u, Cond: call("eq", ref(u, 3), "a")}, Items: []plan.Item{item(90, ref(u, 0))}}
			have := &plan.Subquery{Kind: plan.InSubquery, Operand: ref(s, 0), Plan: inner}
			want(t, in, byID(&plan.Filter{Input: ids, Cond: have}), inputs, "1", "2")
			// id NOT IN (a set that holds NULL) is never true.
			withNull := &plan.Project{Input: u, Items: []plan.Item{item(91, ref(u, 0))}}
			none := &plan.Subquery{Kind: plan.InSubquery, Operand: call("add", ref(s, 0), 100), Plan: withNull}
			want(t, in, &plan.Filter{Input: ids, Cond: call("not", none)}, inputs)
			correlated := &plan.Filter{Input: u, Cond: call("eq", ref(u, 0), call("add", ref(s, 0), 2))}
			exists := &plan.Subquery{Kind: plan.ExistsSubquery, Plan: correlated}
			want(t, in, byID(&plan.Filter{Input: ids, Cond: exists}), inputs, "1", "2")
			name := &plan.Project{Input: correlated, Items: []plan.Item{item(92, ref(u, 1))}}
			scalar := &plan.Subquery{Kind: plan.ScalarSubquery, Plan: name, Typ: plan.String}
			want(t, in, byID(&plan.Project{Input: ids, Items: []plan.Item{item(93, ref(s, 0)), item(94, scalar)}}), inputs,
				"NULL|NULL", "1|cem", "2|dan", "3|NULL", "4|NULL")
		})
		t.Run("window", func(t *testing.T) {
			w := func(id plan.ColumnID, name string, frame *plan.Frame, args ...plan.Expr) plan.WindowItem {
				f, _ := plan.Lookup(name)
				ty, err := f.Result(plan.Types(args))
				if err != nil {
					t.Fatal(err)
				}
				return plan.WindowItem{
					Column: plan.Column{ID: id, Type: ty}, Call: plan.AggCall{Func: f, Args: args},
					PartitionBy: []plan.Expr{ref(s, 3)}, OrderBy: []plan.SortKey{asc(ref(s, 0))}, Frame: frame,
				}
			}
			n := &plan.Window{Input: ids2(s), Items: []plan.WindowItem{
				w(100, "row_number", nil), w(101, "sum", nil, ref(s, 0)), w(102, "lag", nil, ref(s, 0)),
				w(103, "sum", &plan.Frame{Rows: true, Start: plan.Bound{Kind: plan.Preceding, Offset: lit(1)}, End: plan.Bound{Kind: plan.CurrentRow}}, ref(s, 0)),
				w(104, "avg", nil, ref(s, 0)), w(105, "first_value", nil, ref(s, 0)), w(106, "lead", nil, ref(s, 0), lit(1), lit(7)),
				w(107, "nth_value", nil, ref(s, 0), lit(2)), w(108, "ntile", nil, lit(2)), w(109, "rank", nil), w(110, "cume_dist", nil),
			}}
			want(t, in, &plan.Sort{Input: n, Keys: []plan.SortKey{asc(ref(n, 1)), asc(ref(n, 0))}}, inputs,
				"1|a|1|1|NULL|1|1.0000|1|2|NULL|1|1|0.5", "2|a|2|3|1|3|1.5000|1|7|2|2|2|1",
				"NULL|b|1|NULL|NULL|NULL|NULL|NULL|3|NULL|1|1|0.3333333333333333", "3|b|2|3|NULL|3|3.0000|NULL|4|3|1|2|0.6666666666666666", "4|b|3|7|3|7|3.5000|NULL|7|3|2|3|1")
		})
	})
}

// ids2 is the id and the department.
func ids2(s *plan.Scan) plan.Node {
	return &plan.Project{Input: s, Items: []plan.Item{item(1, ref(s, 0)), item(4, ref(s, 3))}}
}
