package duck

import (
	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// smallResult is how many rows are fetched at once instead of streamed: it spares
// DuckDB a second planning of the query, which is half the time of a lookup.
const smallResult = 4096

// unbounded stands for a number of rows that is not known or too large to matter.
const unbounded = int64(1) << 40

// size is an upper bound of the rows that a node yields. rows knows the scans.
func size(n plan.Node, rows map[*plan.Scan]int64) int64 {
	of := func(i int) int64 { return size(n.Inputs()[i], rows) }
	switch n := n.(type) {
	case *plan.Scan:
		if r, ok := rows[n]; ok && r >= 0 {
			return min(r, unbounded)
		}
		return unbounded
	case *plan.Values:
		return int64(len(n.Rows))
	case *plan.Filter, *plan.Project, *plan.Window, *plan.Distinct, *plan.Sort, *plan.Guard:
		return of(0)
	case *plan.Limit:
		if n.Count >= 0 {
			return min(n.Count, of(0))
		}
		return of(0)
	case *plan.Aggregate:
		if len(n.Keys) == 0 {
			return 1
		}
		return of(0)
	case *plan.SetOp:
		return min(unbounded, of(0)+of(1))
	case *plan.Join:
		l := of(0)
		switch n.Kind {
		case plan.Semi, plan.Anti:
			return l
		case plan.Inner, plan.Cross:
			if r := of(1); l < unbounded && r <= unbounded/max(1, l) {
				return l * r
			}
		}
	}
	return unbounded
}

// makers are the functions whose texts may be longer than their operands.
var makers = map[string]bool{
	"concat": true, "concat_ws": true, "replace": true, "hex": true, "insert_text": true, "repeat": true, "space": true, "lpad": true, "rpad": true,
	"quote": true, "json_array": true, "json_object": true,
	"group_concat": true, "json_arrayagg": true, "json_objectagg": true,
}

// longLiteral is how long a text of a statement may be that any number of rows repeat.
const longLiteral = 1 << 10

// widens reports whether a plan makes long texts. DuckDB does not count those of a
// result that it holds as a whole, where each row has its own.
func widens(n plan.Node) bool {
	found := false
	plan.Walk(n, func(n plan.Node) bool {
		if a, ok := n.(*plan.Aggregate); ok {
			for _, x := range a.Aggs {
				found = found || makers[x.Call.Func.Name]
			}
		}
		for _, e := range n.Exprs() {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				switch e := e.(type) {
				case *plan.Call:
					found = found || makers[e.Func.Name]
				case *plan.RowCall:
					found = true
				case *plan.Literal:
					switch v := e.Value.(type) {
					case string:
						found = found || len(v) > longLiteral
					case []byte:
						found = found || len(v) > longLiteral
					}
				case *plan.Subquery:
					found = found || widens(e.Plan)
				}
				return !found
			})
		}
		return !found
	})
	return found
}

// small reports whether the result of a plan is held as a whole.
func small(n plan.Node, rows map[*plan.Scan]int64) bool {
	if size(n, rows) > smallResult {
		return false
	}
	for _, c := range n.Columns() {
		if id := c.Type.ID(); id == arrow.STRING || id == arrow.BINARY || plan.IsNested(c.Type) || plan.IsJSON(c.Type) {
			return !widens(n)
		}
	}
	return true
}
