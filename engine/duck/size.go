package duck

import "sqe/plan"

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
