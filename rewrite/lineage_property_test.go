package rewrite

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sqe/plan"
)

var lineageSeed = flag.Uint64("lineage-seed", 1, "seed of TestLineageHoldsWhatMatters; 0: a new one for each run")

// TestLineageHoldsWhatMatters makes plans by chance, changes one field of a table and
// looks which columns of the result have other values: each must be derived from the
// field. The first column of every node is a row number that nothing changes, by which
// rows are joined and grouped, so that rows stay what they are.
func TestLineageHoldsWhatMatters(t *testing.T) {
	seed := *lineageSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	changed, spared := 0, 0
	for range 150 {
		g := &lineageGenerator{rng: rng, rows: map[*plan.Table][][]string{}}
		root := g.node(3)
		find := Lineage(root)
		before := g.eval(root, nil)
		// In an order of its own, so that a seed stands for one run.
		tables := slices.SortedFunc(maps.Keys(g.rows), func(a, b *plan.Table) int { return strings.Compare(a.Name.Name, b.Name.Name) })
		for _, table := range tables {
			rows := g.rows[table]
			for field := 1; field < len(rows[0]); field++ {
				old := rows[rng.IntN(len(rows))]
				was := old[field]
				old[field] = "changed"
				after := g.eval(root, nil)
				old[field] = was
				for i, c := range root.Columns() {
					differs := slices.ContainsFunc(before, func([]string) bool { return len(before) != len(after) })
					for r := range before {
						differs = differs || before[r][i] != after[r][i]
					}
					derived := slices.ContainsFunc(find(c.ID), func(s FieldSource) bool { return s.Table == table && s.Field == field+1 })
					if differs && !derived {
						t.Fatalf("seed %d: column #%d changes with field %d of %s and is not derived from it\n%s", seed, c.ID, field+1, table.Name, plan.Format(root))
					}
					if differs {
						changed++
					}
					if !derived {
						spared++
					}
				}
			}
		}
	}
	if changed < 150 || spared < 150 {
		t.Errorf("seed %d: %d changed, %d not derived: the plans show nothing", seed, changed, spared)
	}
}

type lineageGenerator struct {
	rng  *rand.Rand
	ids  plan.IDs
	rows map[*plan.Table][][]string
}

func (g *lineageGenerator) column() plan.Column {
	return plan.Column{ID: g.ids.New(), Name: "c", Type: plan.String}
}

func (g *lineageGenerator) scan() plan.Node {
	t := &plan.Table{Name: plan.TableName{Catalog: "l", Namespace: []string{"n"}, Name: fmt.Sprintf("t%d", len(g.rows))}}
	s := &plan.Scan{Table: t}
	for id := range 4 {
		t.Fields = append(t.Fields, plan.Field{ID: id + 1, Name: fmt.Sprintf("f%d", id+1), Type: plan.String})
		s.Cols = append(s.Cols, plan.ScanColumn{Column: g.column(), FieldID: id + 1})
	}
	for r := range 3 {
		row := []string{fmt.Sprint(r)}
		for range 3 {
			row = append(row, string(rune('a'+g.rng.IntN(3))))
		}
		g.rows[t] = append(g.rows[t], row)
	}
	return s
}

func (g *lineageGenerator) ref(in []plan.Column) plan.Expr {
	c := in[1+g.rng.IntN(len(in)-1)]
	return &plan.Ref{ID: c.ID, Typ: c.Type}
}

func first(n plan.Node) *plan.Ref { return &plan.Ref{ID: n.Columns()[0].ID, Typ: plan.String} }

func (g *lineageGenerator) expr(in []plan.Column, depth int) plan.Expr {
	if depth == 0 {
		return g.ref(in)
	}
	next := func() plan.Expr { return g.expr(in, depth-1) }
	switch g.rng.IntN(6) {
	case 0:
		return plan.MustCall("concat", next(), next())
	case 1:
		return &plan.Case{Whens: []plan.When{{Cond: plan.MustCall("eq", next(), next()), Then: next()}}, Else: next(), Typ: plan.String}
	case 2:
		s := g.scan()
		f := &plan.Filter{Input: s, Cond: plan.MustCall("eq", g.ref(s.Columns()), next())}
		a := &plan.Aggregate{Input: f, Aggs: []plan.AggItem{{Column: g.column(), Call: g.max(f, depth-1)}}}
		return &plan.Subquery{Kind: plan.ScalarSubquery, Plan: a, Typ: plan.String}
	case 3:
		s := g.scan()
		f := &plan.Filter{Input: s, Cond: plan.MustCall("eq", g.ref(s.Columns()), next())}
		return &plan.Case{Whens: []plan.When{{Cond: &plan.Subquery{Kind: plan.ExistsSubquery, Plan: f}, Then: next()}}, Else: next(), Typ: plan.String}
	}
	return g.ref(in)
}

func (g *lineageGenerator) max(in plan.Node, depth int) plan.AggCall {
	f, _ := plan.Lookup("max")
	return plan.AggCall{Func: f, Args: []plan.Expr{g.expr(in.Columns(), depth)}}
}

func (g *lineageGenerator) project(in plan.Node, depth int) plan.Node {
	p := &plan.Project{Input: in, Items: []plan.Item{{Column: g.column(), Expr: first(in)}}}
	for range 3 {
		p.Items = append(p.Items, plan.Item{Column: g.column(), Expr: g.expr(in.Columns(), depth)})
	}
	return p
}

func (g *lineageGenerator) node(depth int) plan.Node {
	if depth == 0 {
		return g.scan()
	}
	switch g.rng.IntN(5) {
	case 0:
		l, r := g.node(depth-1), g.node(depth-1)
		return g.project(&plan.Join{Kind: plan.Inner, Left: l, Right: r, On: plan.MustCall("eq", first(l), first(r))}, 1)
	case 1:
		s := &plan.SetOp{Kind: plan.Union, All: true, Left: g.project(g.node(depth-1), 1), Right: g.project(g.node(depth-1), 1)}
		for range s.Left.Columns() {
			s.Cols = append(s.Cols, g.column())
		}
		return s
	case 2:
		in := g.node(depth - 1)
		a := &plan.Aggregate{Input: in, Keys: []plan.Item{{Column: g.column(), Expr: first(in)}}}
		for range 2 {
			a.Aggs = append(a.Aggs, plan.AggItem{Column: g.column(), Call: g.max(in, 2)})
		}
		return a
	case 3:
		in := g.node(depth - 1)
		return &plan.Window{Input: in, Items: []plan.WindowItem{{Column: g.column(), Call: g.max(in, 1), PartitionBy: []plan.Expr{g.expr(in.Columns(), 1)}}}}
	}
	return g.project(g.node(depth-1), 2)
}

type env map[plan.ColumnID]string

// eval runs a plan, row by row; outer are the values of the query around it.
func (g *lineageGenerator) eval(n plan.Node, outer env) [][]string {
	bind := func(cols []plan.Column, row []string) env {
		out := env{}
		for k, v := range outer {
			out[k] = v
		}
		for i, c := range cols {
			out[c.ID] = row[i]
		}
		return out
	}
	var out [][]string
	switch n := n.(type) {
	case *plan.Scan:
		return g.rows[n.Table]
	case *plan.Project:
		for _, r := range g.eval(n.Input, outer) {
			var row []string
			for _, it := range n.Items {
				row = append(row, g.value(it.Expr, bind(n.Input.Columns(), r)))
			}
			out = append(out, row)
		}
	case *plan.Filter:
		for _, r := range g.eval(n.Input, outer) {
			if g.value(n.Cond, bind(n.Input.Columns(), r)) == "true" {
				out = append(out, r)
			}
		}
	case *plan.Join:
		right := g.eval(n.Right, outer)
		for _, l := range g.eval(n.Left, outer) {
			for _, r := range right {
				if row := append(slices.Clone(l), r...); g.value(n.On, bind(n.Columns(), row)) == "true" {
					out = append(out, row)
				}
			}
		}
	case *plan.SetOp:
		return append(slices.Clone(g.eval(n.Left, outer)), g.eval(n.Right, outer)...)
	case *plan.Aggregate:
		var keys []string
		groups := map[string][][]string{}
		for _, r := range g.eval(n.Input, outer) {
			key := ""
			for _, k := range n.Keys {
				key += g.value(k.Expr, bind(n.Input.Columns(), r))
			}
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key] = append(groups[key], r)
		}
		if len(n.Keys) == 0 && len(keys) == 0 {
			keys = []string{""}
		}
		for _, k := range keys {
			var row []string
			if len(n.Keys) > 0 {
				row = append(row, k)
			}
			for _, a := range n.Aggs {
				most := ""
				for _, r := range groups[k] {
					most = max(most, g.value(a.Call.Args[0], bind(n.Input.Columns(), r)))
				}
				row = append(row, most)
			}
			out = append(out, row)
		}
	case *plan.Window:
		rows := g.eval(n.Input, outer)
		for _, r := range rows {
			it := n.Items[0]
			part := g.value(it.PartitionBy[0], bind(n.Input.Columns(), r))
			most := ""
			for _, o := range rows {
				if e := bind(n.Input.Columns(), o); g.value(it.PartitionBy[0], e) == part {
					most = max(most, g.value(it.Call.Args[0], e))
				}
			}
			out = append(out, append(slices.Clone(r), most))
		}
	default:
		panic(fmt.Sprintf("%T", n))
	}
	return out
}

func (g *lineageGenerator) value(e plan.Expr, in env) string {
	switch e := e.(type) {
	case *plan.Ref:
		return in[e.ID]
	case *plan.Call:
		a := make([]string, len(e.Operands))
		for i, o := range e.Operands {
			a[i] = g.value(o, in)
		}
		if e.Func.Name == "concat" {
			return strings.Join(a, "")
		}
		return fmt.Sprint(a[0] == a[1])
	case *plan.Case:
		if g.value(e.Whens[0].Cond, in) == "true" {
			return g.value(e.Whens[0].Then, in)
		}
		return g.value(e.Else, in)
	case *plan.Subquery:
		rows := g.eval(e.Plan, in)
		if e.Kind == plan.ExistsSubquery {
			return fmt.Sprint(len(rows) > 0)
		}
		return rows[0][0]
	}
	panic(fmt.Sprintf("%T", e))
}
