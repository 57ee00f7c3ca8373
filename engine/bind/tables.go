package bind

import (
	"github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/plan"
)

// table translates a stub table into a Scan. Nested columns become JSON in a
// Project directly above it.
func (t *translator) table(n *gmsplan.ResolvedTable) plan.Node {
	if gmsplan.IsDualTable(n.Table) {
		return &plan.Values{Rows: [][]plan.Expr{{}}}
	}
	s, ok := n.Table.(*stub)
	if !ok {
		cannot("a table of information_schema")
	}
	out, cols := t.scan(s)
	for i, id := range ids(n.Columns()) {
		if f := s.fields[i]; s.relation.Withheld[f.ID] {
			// SHOW lists it; nothing may read it.
			if t.withheld == nil {
				t.withheld = map[sql.ColumnId]string{}
			}
			t.withheld[id] = f.Name
			continue
		}
		t.define(id, cols[0])
		cols = cols[1:]
	}
	return out
}

// scan makes the Scan of a stub, and its columns with nested ones as JSON.
func (t *translator) scan(s *stub) (plan.Node, []plan.Column) {
	scan := &plan.Scan{Table: s.relation.Table, Definer: t.state.definer}
	nested := false
	for _, f := range s.fields {
		if s.relation.Withheld[f.ID] {
			continue
		}
		scan.Cols = append(scan.Cols, plan.ScanColumn{
			Column:  plan.Column{ID: t.ids.New(), Name: f.Name, Type: f.Type, Nullable: !f.Required},
			FieldID: f.ID,
		})
		nested = nested || plan.IsNested(f.Type)
	}
	t.accept(scan)
	cols := scan.Columns()
	if !nested {
		return scan, cols
	}
	items := make([]plan.Item, len(cols))
	for i, c := range cols {
		items[i] = plan.Item{Column: c, Expr: reference(c)}
		if plan.IsNested(c.Type) {
			items[i] = plan.Item{
				Column: plan.Column{ID: t.ids.New(), Name: c.Name, Type: plan.JSON, Nullable: c.Nullable},
				Expr:   plan.MustCall("to_json", reference(c)),
			}
		}
	}
	p := &plan.Project{Input: scan, Items: items}
	return t.accept(p), p.Columns()
}

func reference(c plan.Column) *plan.Ref { return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name} }

// subqueryAlias translates a derived table, a view or a common table expression:
// a query block of its own, whose columns get new names and no new values.
func (t *translator) subqueryAlias(n *gmsplan.SubqueryAlias) plan.Node {
	t.push()
	child := t.node(n.Child)
	t.pop()
	cols := child.Columns()
	outer := ids(n.Columns())
	if len(outer) != len(cols) {
		cannot("a derived table whose columns are not known")
	}
	for i, id := range outer {
		t.define(id, cols[i])
	}
	return child
}

// values translates literal rows.
func (t *translator) values(tuples [][]sql.Expression, set sql.ColSet) plan.Node {
	v := &plan.Values{Rows: make([][]plan.Expr, len(tuples))}
	var typs []plan.Column
	for i, tuple := range tuples {
		for j, e := range tuple {
			x := t.expr(e)
			v.Rows[i] = append(v.Rows[i], x)
			if i == 0 {
				typs = append(typs, plan.Column{Type: x.Type(), Name: displayName(e)})
				continue
			}
			typs[j].Type = unify(typs[j].Type, x.Type())
		}
	}
	for j := range typs {
		typs[j].ID = t.ids.New()
		for i := range v.Rows {
			v.Rows[i][j] = t.cast(v.Rows[i][j], typs[j].Type)
			typs[j].Nullable = typs[j].Nullable || nullable(v.Rows[i][j])
		}
	}
	v.Cols = typs
	for i, id := range ids(set) {
		if i < len(typs) {
			t.define(id, typs[i])
		}
	}
	return t.accept(v)
}
