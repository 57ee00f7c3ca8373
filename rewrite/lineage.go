package rewrite

import (
	"cmp"
	"slices"

	"sqe/plan"
)

// FieldSource is a top-level field of a table from which values come. Where a value
// comes from a part of a struct, list or map, it is the whole of it.
type FieldSource struct {
	Table *plan.Table
	Field int
	// Same: the values are those of the field, or JSON of them, and come from it in no
	// other way, so that what is inside one stands at its place.
	Same bool
}

// Lineage tells for every column of plans of one statement from which fields its
// values are derived: every field of which a change may change a value of the
// column, when the rows stay what they are. roots are plans of the same columns,
// bound and governed: a field that a mask reads is known from the governed one.
//
// That is what expressions read, with the conditions of a CASE; what an aggregate
// takes, and by which order; what a window function takes, with its partition and
// order; and of a sub-query in an expression what it yields and all its conditions,
// for they decide the value. The conditions of rows, WHERE and ON, say which rows
// there are and do not count, nor do the row filters of policies. What the row
// executor computes is derived from all that it is given. A masked column is derived
// from its field even where the mask does not read it. A column of which nothing is
// known is derived from everything.
func Lineage(roots ...plan.Node) func(plan.ColumnID) []FieldSource {
	f := newFlow()
	f.whole = true
	for _, r := range roots {
		f.plan(r)
	}
	return func(id plan.ColumnID) []FieldSource {
		// The fields of which the values are the same, and those of which not.
		same, other := map[FieldSource]bool{}, map[FieldSource]bool{}
		f.reach(id, func(id plan.ColumnID, exact bool) bool {
			fields := f.fields[id]
			if !f.known.has(id) {
				fields, exact = f.everything(), false
			}
			for _, s := range fields {
				if exact {
					same[s] = true
				} else {
					other[s] = true
				}
			}
			return true
		})
		out := make([]FieldSource, 0, len(same)+len(other))
		for s := range other {
			out = append(out, s)
		}
		for s := range same {
			if !other[s] {
				s.Same = true
				out = append(out, s)
			}
		}
		slices.SortFunc(out, func(a, b FieldSource) int {
			return cmp.Or(cmp.Compare(a.Table.Name.Key(), b.Table.Name.Key()), cmp.Compare(a.Table.Metadata, b.Table.Metadata),
				cmp.Compare(a.Table.SnapshotID, b.Table.SnapshotID), cmp.Compare(a.Field, b.Field))
		})
		return out
	}
}

// flow is which columns of a plan the values of its columns come from.
type flow struct {
	// whole: also what only decides about a value counts, and fields are noted.
	whole bool
	from  map[plan.ColumnID][]plan.ColumnID
	// same are those of from that yield the same values.
	same map[[2]plan.ColumnID]bool
	// fields are those of scans, by column.
	fields map[plan.ColumnID][]FieldSource
	known  columnSet
	scans  []*plan.Scan
}

func newFlow() *flow {
	return &flow{from: map[plan.ColumnID][]plan.ColumnID{}, same: map[[2]plan.ColumnID]bool{}, fields: map[plan.ColumnID][]FieldSource{}}
}

// reach visits a column and those that it comes from, until visit says no. exact: by
// a way on which values stay the same; a column may be visited in both ways.
func (f *flow) reach(id plan.ColumnID, visit func(id plan.ColumnID, exact bool) bool) {
	type at struct {
		id    plan.ColumnID
		exact bool
	}
	seen := map[at]bool{}
	stack := []at{{id, true}}
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[x] {
			continue
		}
		seen[x] = true
		if !visit(x.id, x.exact) {
			return
		}
		for _, from := range f.from[x.id] {
			stack = append(stack, at{from, x.exact && f.same[[2]plan.ColumnID{x.id, from}]})
		}
	}
}

// everything is all fields that the plan reads.
func (f *flow) everything() []FieldSource {
	var out []FieldSource
	for _, s := range f.scans {
		for _, x := range s.Table.Fields {
			out = append(out, FieldSource{Table: s.Table, Field: x.ID})
		}
	}
	return out
}

func (f *flow) add(id plan.ColumnID, from ...plan.ColumnID) {
	f.known.add(id)
	f.from[id] = append(f.from[id], from...)
}

// equal is add of a column with the same values. No pair of columns is connected in
// another way as well: an item has one expression.
func (f *flow) equal(id, from plan.ColumnID) {
	f.add(id, from)
	f.same[[2]plan.ColumnID{id, from}] = true
}

// item is a computed column.
func (f *flow) item(it plan.Item) {
	e := it.Expr
	if c, ok := e.(*plan.Call); ok && c.Func.Name == "to_json" && len(c.Operands) == 1 {
		e = c.Operands[0]
	}
	if r, ok := e.(*plan.Ref); ok {
		f.equal(it.ID, r.ID)
		return
	}
	f.exprs(it.ID, it.Expr)
}

func (f *flow) exprs(id plan.ColumnID, list ...plan.Expr) {
	f.known.add(id)
	for _, e := range list {
		f.add(id, f.values(e)...)
	}
}

func (f *flow) call(id plan.ColumnID, c plan.AggCall) {
	f.exprs(id, c.Args...)
	if f.whole {
		f.order(id, c.OrderBy)
	}
}

func (f *flow) order(id plan.ColumnID, keys []plan.SortKey) {
	for _, k := range keys {
		f.exprs(id, k.Expr)
	}
}

func (f *flow) byPosition(cols []plan.Column, in plan.Node) {
	for i, c := range in.Columns() {
		if i < len(cols) {
			f.equal(cols[i].ID, c.ID)
		}
	}
}

func (f *flow) plan(root plan.Node) {
	recursive := map[int][]plan.Column{}
	plan.Walk(root, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Scan:
			f.scan(n)
		case *plan.Guard:
			f.guard(n)
		case *plan.Project:
			for _, it := range n.Items {
				f.item(it)
			}
		case *plan.Aggregate:
			for _, it := range n.Keys {
				f.item(it)
			}
			for _, it := range n.Aggs {
				f.call(it.ID, it.Call)
			}
		case *plan.Window:
			for _, it := range n.Items {
				f.window(it)
			}
		case *plan.Values:
			for i, c := range n.Cols {
				f.known.add(c.ID)
				for _, r := range n.Rows {
					if i < len(r) {
						f.exprs(c.ID, r[i])
					}
				}
			}
		case *plan.SetOp:
			f.byPosition(n.Cols, n.Left)
			f.byPosition(n.Cols, n.Right)
		case *plan.Recursive:
			recursive[n.ID] = n.Cols
			f.byPosition(n.Cols, n.Anchor)
			f.byPosition(n.Cols, n.Step)
		case *plan.Foreign:
			// What the row executor does is not known.
			for _, c := range n.Cols {
				f.known.add(c.ID)
				for _, in := range n.Children {
					for _, x := range in.Columns() {
						f.add(c.ID, x.ID)
					}
				}
			}
		}
		return true
	})
	plan.Walk(root, func(n plan.Node) bool {
		if t, ok := n.(*plan.WorkTable); ok {
			for i, c := range recursive[t.ID] {
				if i < len(t.Cols) {
					f.equal(t.Cols[i].ID, c.ID)
				}
			}
		}
		return true
	})
}

func (f *flow) scan(s *plan.Scan) {
	if !f.whole || s.Table == nil {
		return
	}
	f.scans = append(f.scans, s)
	for _, c := range s.Cols {
		f.known.add(c.ID)
		if !plan.IsVirtual(c.FieldID) { // where a row lies is no value of it
			f.fields[c.ID] = append(f.fields[c.ID], FieldSource{Table: s.Table, Field: c.FieldID})
		}
	}
}

// guard gives masked columns their field: a mask that is a constant reads none. Who
// makes guards keeps the names of columns, and a name that is not the table's counts
// as every field.
func (f *flow) guard(g *plan.Guard) {
	if !f.whole || g.Table == nil {
		return
	}
	for _, c := range g.Columns() {
		if !g.Masked[c.ID] {
			continue
		}
		n := len(f.fields[c.ID])
		for _, x := range g.Table.Fields {
			if x.Name == c.Name {
				f.fields[c.ID] = append(f.fields[c.ID], FieldSource{Table: g.Table, Field: x.ID})
			}
		}
		if len(f.fields[c.ID]) == n {
			for _, x := range g.Table.Fields {
				f.fields[c.ID] = append(f.fields[c.ID], FieldSource{Table: g.Table, Field: x.ID})
			}
		}
	}
}

func (f *flow) window(it plan.WindowItem) {
	f.call(it.ID, it.Call)
	if !f.whole {
		return
	}
	f.exprs(it.ID, it.PartitionBy...)
	f.order(it.ID, it.OrderBy)
	if it.Frame != nil {
		for _, b := range []plan.Bound{it.Frame.Start, it.Frame.End} {
			if b.Offset != nil {
				f.exprs(it.ID, b.Offset)
			}
		}
	}
}

// values are the columns whose values e may yield or compute with. When only values
// count, the conditions of a CASE and of a sub-query are none of them.
func (f *flow) values(e plan.Expr) []plan.ColumnID {
	var out []plan.ColumnID
	var visit func(plan.Expr)
	visit = func(e plan.Expr) {
		switch e := e.(type) {
		case *plan.Ref:
			out = append(out, e.ID)
			return
		case *plan.Case:
			if f.whole {
				break
			}
			for _, w := range e.Whens {
				visit(w.Then)
			}
			if e.Else != nil {
				visit(e.Else)
			}
			return
		case *plan.Subquery:
			if e.Kind == plan.ScalarSubquery || f.whole && e.Kind == plan.InSubquery {
				for _, c := range e.Plan.Columns() {
					out = append(out, c.ID)
				}
			}
			if f.whole {
				out = append(out, f.conditions(e.Plan)...)
			}
		}
		for _, a := range e.Args() {
			visit(a)
		}
	}
	visit(e)
	return out
}

// conditions are the columns that decide which rows a sub-query has. What a policy
// hides is not among them.
func (f *flow) conditions(root plan.Node) []plan.ColumnID {
	var out []plan.ColumnID
	take := func(list ...plan.Expr) {
		for _, e := range list {
			out = append(out, f.values(e)...)
		}
	}
	all := func(n plan.Node) {
		for _, c := range n.Columns() {
			out = append(out, c.ID)
		}
	}
	var visit func(plan.Node)
	visit = func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Guard:
			return
		case *plan.Filter, *plan.Join, *plan.Sort:
			take(n.Exprs()...)
		case *plan.Aggregate:
			for _, it := range n.Keys {
				take(it.Expr)
			}
		case *plan.Distinct, *plan.SetOp, *plan.Recursive:
			all(n)
		}
		for _, in := range n.Inputs() {
			visit(in)
		}
	}
	visit(root)
	return out
}
