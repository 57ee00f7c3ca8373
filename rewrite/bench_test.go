package rewrite

import (
	"context"
	"fmt"
	"testing"

	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// wide is a table of 200 columns of which every tenth is masked, with a row
// filter that reads a mapping table.
func wide(i int) (*plan.Table, *policy.Restrictions) {
	t := &plan.Table{Name: plan.TableName{Catalog: "lake", Namespace: []string{"wide"}, Name: fmt.Sprintf("t%d", i)}, Version: "v1"}
	r := &policy.Restrictions{
		Complete: true, Columns: map[int]policy.ColumnRule{},
		Filters: []policy.RowFilter{{SQL: "(exists (filter (and (eq regions.region c7) (eq employee 'alice')) (scan regions)))"}},
	}
	actions := []string{masks.Redact, masks.ShowLast4, masks.Hash, masks.Null}
	for c := range 200 {
		t.Fields = append(t.Fields, plan.Field{ID: c + 1, Name: fmt.Sprintf("c%d", c), Type: plan.String})
		if c%10 == 0 {
			r.Columns[c+1] = policy.ColumnRule{Kind: policy.Mask, Action: actions[c/10%len(actions)], Origin: policy.Origin{Policy: "p"}}
		}
	}
	return t, r
}

// statement is a join of n wide tables that uses the given number of columns of
// each.
func statement(b testing.TB, n, columns int) (plan.Node, *builder, map[*plan.Table]*Bound) {
	tables := testTables()
	bound := map[*plan.Table]*Bound{}
	w := newBuilder(tables)
	var root plan.Node
	var items []plan.Item
	for i := range n {
		t, r := wide(i)
		tables[t.Name.Name] = t
		x, err := Prepare(context.Background(), t, r, &binder{tables: tables}, masks.Options{HashKey: []byte("k")})
		if err != nil {
			b.Fatal(err)
		}
		bound[t] = x
		s := w.scan(t.Name.Name, t.Name.Name)
		for _, c := range s.Cols[:columns] {
			items = append(items, plan.Item{Column: w.column(c.Name, c.Type), Expr: &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}})
		}
		if root == nil {
			root = s
		} else {
			root = &plan.Join{Kind: plan.Cross, Left: root, Right: s}
		}
	}
	cond := plan.MustCall("eq", items[1].Expr, &plan.Literal{Value: "x", Typ: plan.String})
	return &plan.Project{Input: &plan.Filter{Input: root, Cond: cond}, Items: items}, w, bound
}

// once is what every statement pays: look up, rewrite, verify, push down.
func once(root plan.Node, ids *plan.IDs, bound map[*plan.Table]*Bound) error {
	n, _, err := Govern(root, ids, func(s *plan.Scan) (*Bound, error) { return bound[s.Table], nil }, nil)
	if err != nil {
		return err
	}
	if err := Verify(n); err != nil {
		return err
	}
	Pushdown(n)
	return nil
}

func stage(b *testing.B, tables, columns int) {
	root, w, bound := statement(b, tables, columns)
	b.ReportAllocs()
	for b.Loop() {
		ids := w.ids
		if err := once(root, &ids, bound); err != nil {
			b.Fatal(err)
		}
	}
}

// The targets are 50 µs for one table and 1 ms for ten tables of 200 columns.

func BenchmarkGovernOneTable(b *testing.B) { stage(b, 1, 10) }

func BenchmarkGovernOneTableAllColumns(b *testing.B) { stage(b, 1, 200) }

func BenchmarkGovernTenTables(b *testing.B) { stage(b, 10, 200) }
