package duck

import (
	"testing"

	"sqe/plan"
)

// TestCorrelated puts sub-queries wherever an expression can stand.
func TestCorrelated(t *testing.T) {
	everyScan(t, func(t *testing.T, in *Instance, inputs Inputs) {
		s, u, w := scanOf(1, people...), scanOf(21, people...), scanOf(41, people...)
		byID := func(n plan.Node) plan.Node { return &plan.Sort{Input: n, Keys: []plan.SortKey{asc(ref(n, 0))}} }
		ids := &plan.Project{Input: s, Items: []plan.Item{item(1, ref(s, 0)), item(3, ref(s, 2)), item(4, ref(s, 3))}}
		scalar := func(n plan.Node) *plan.Subquery {
			return &plan.Subquery{Kind: plan.ScalarSubquery, Plan: n, Typ: n.Columns()[0].Type}
		}
		exists := func(n plan.Node) *plan.Subquery { return &plan.Subquery{Kind: plan.ExistsSubquery, Plan: n} }
		sameDept := &plan.Filter{Input: u, Cond: call("eq", ref(u, 3), ref(s, 3))}
		count := &plan.Aggregate{Input: sameDept, Aggs: []plan.AggItem{agg(60, "count")}}
		maxPay := &plan.Aggregate{Input: sameDept, Aggs: []plan.AggItem{agg(61, "max", ref(u, 2))}}
		only := func(c plan.Expr) plan.Node {
			f := &plan.Filter{Input: ids, Cond: c}
			return byID(&plan.Project{Input: f, Items: []plan.Item{item(70, ref(ids, 0))}})
		}
		show := func(e plan.Expr) plan.Node {
			return byID(&plan.Project{Input: ids, Items: []plan.Item{item(70, ref(ids, 0)), item(71, e)}})
		}
		t.Run("count", func(t *testing.T) {
			want(t, in, show(scalar(count)), inputs, "NULL|3", "1|2", "2|2", "3|3", "4|3")
		})
		t.Run("count of nothing is 0", func(t *testing.T) {
			none := &plan.Aggregate{Input: &plan.Filter{Input: u, Cond: call("eq", ref(u, 1), call("concat", ref(s, 3), "!"))}, Aggs: []plan.AggItem{agg(62, "count")}}
			want(t, in, show(scalar(none)), inputs, "NULL|0", "1|0", "2|0", "3|0", "4|0")
		})
		t.Run("filter by the greatest", func(t *testing.T) {
			want(t, in, only(call("eq", ref(s, 2), scalar(maxPay))), inputs, "2", "3")
		})
		t.Run("exists or", func(t *testing.T) {
			more := &plan.Filter{Input: u, Cond: call("gt", ref(u, 2), ref(s, 2))}
			want(t, in, only(call("or", call("not", exists(more)), call("eq", ref(s, 0), 1))), inputs, "1", "2", "4")
		})
		t.Run("in", func(t *testing.T) {
			names := &plan.Project{Input: &plan.Filter{Input: u, Cond: call("le", ref(u, 0), ref(s, 0))}, Items: []plan.Item{item(63, ref(u, 3))}}
			inside := &plan.Subquery{Kind: plan.InSubquery, Operand: ref(s, 3), Plan: names}
			want(t, in, only(call("not", inside)), inputs, "NULL")
		})
		t.Run("case", func(t *testing.T) {
			e := &plan.Case{Whens: []plan.When{{Cond: call("gt", scalar(count), 2), Then: lit("many")}}, Else: lit("few"), Typ: plan.String}
			want(t, in, show(e), inputs, "NULL|many", "1|few", "2|few", "3|many", "4|many")
		})
		t.Run("order and limit inside", func(t *testing.T) {
			top := &plan.Project{
				Input: &plan.Limit{Input: &plan.Sort{Input: sameDept, Keys: []plan.SortKey{desc(ref(u, 0))}}, Count: 1},
				Items: []plan.Item{item(64, ref(u, 1))},
			}
			want(t, in, show(scalar(top)), inputs, "NULL|dan", "1|bob", "2|bob", "3|dan", "4|dan")
		})
		t.Run("two levels", func(t *testing.T) {
			deep := &plan.Filter{Input: w, Cond: call("and", call("eq", ref(w, 3), ref(s, 3)), call("gt", ref(w, 0), ref(u, 0)))}
			outer := &plan.Aggregate{Input: &plan.Filter{Input: u, Cond: exists(deep)}, Aggs: []plan.AggItem{agg(65, "count")}}
			want(t, in, show(scalar(outer)), inputs, "NULL|3", "1|1", "2|1", "3|3", "4|3")
		})
		t.Run("union inside", func(t *testing.T) {
			part := func(id plan.ColumnID, n *plan.Scan) plan.Node {
				return &plan.Project{Input: &plan.Filter{Input: n, Cond: call("eq", ref(n, 0), ref(s, 0))}, Items: []plan.Item{item(id, ref(n, 0))}}
			}
			set := &plan.SetOp{Kind: plan.Union, Left: part(66, u), Right: part(67, w), Cols: []plan.Column{{ID: 68, Type: plan.Int32}}}
			want(t, in, show(scalar(set)), inputs, "NULL|NULL", "1|1", "2|2", "3|3", "4|4")
		})
		t.Run("in an aggregate and a key", func(t *testing.T) {
			a := &plan.Aggregate{
				Input: s,
				Keys:  []plan.Item{item(80, scalar(count))},
				Aggs:  []plan.AggItem{agg(81, "sum", call("add", ref(s, 0), scalar(count)))},
			}
			want(t, in, byID(a), inputs, "2|7", "3|13")
		})
		t.Run("in a sort key", func(t *testing.T) {
			n := &plan.Sort{Input: ids, Keys: []plan.SortKey{desc(scalar(count)), asc(ref(s, 0))}}
			want(t, in, &plan.Project{Input: n, Items: []plan.Item{item(82, ref(s, 0))}}, inputs, "NULL", "3", "4", "1", "2")
		})
		t.Run("in a join condition", func(t *testing.T) {
			few := &plan.Values{Cols: []plan.Column{{ID: 90, Type: plan.Int64}}, Rows: [][]plan.Expr{{lit(2)}, {lit(3)}}}
			j := &plan.Join{Kind: plan.Inner, Left: ids, Right: few, On: call("eq", scalar(count), &plan.Ref{ID: 90, Typ: plan.Int64})}
			want(t, in, byID(&plan.Project{Input: j, Items: []plan.Item{item(91, ref(s, 0)), item(92, &plan.Ref{ID: 90, Typ: plan.Int64})}}), inputs,
				"NULL|3", "1|2", "2|2", "3|3", "4|3")
		})
		t.Run("lateral with order and limit", func(t *testing.T) {
			top := &plan.Project{
				Input: &plan.Limit{Input: &plan.Sort{Input: sameDept, Keys: []plan.SortKey{asc(ref(u, 1))}}, Count: 1, Offset: 1},
				Items: []plan.Item{item(95, ref(u, 1))},
			}
			j := &plan.Join{Kind: plan.Inner, Left: ids, Right: top, Lateral: true}
			want(t, in, byID(&plan.Project{Input: j, Items: []plan.Item{item(96, ref(s, 0)), item(97, ref(top, 0))}}), inputs,
				"NULL|cem", "1|bob", "2|bob", "3|cem", "4|cem")
		})
	})
}
