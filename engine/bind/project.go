package bind

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/plan"
)

// project translates a list of expressions over in.
func (t *translator) project(in plan.Node, exprs []sql.Expression) plan.Node {
	have := map[plan.ColumnID]bool{}
	for _, c := range in.Columns() {
		have[c.ID] = true
	}
	p := &plan.Project{Input: in}
	for _, e := range exprs {
		if g, ok := e.(*expression.GetField); ok && g.Id() == 0 && g.Name() == "" {
			continue // the column that stands for the lack of a table
		}
		name := displayName(e)
		id := idOf(e)
		x := t.computed(e, have)
		var col plan.Column
		if r, ok := x.(*plan.Ref); ok && have[r.ID] {
			// A column that passes through keeps its id.
			col = plan.Column{ID: r.ID, Name: name, Type: r.Typ, Nullable: true}
			for _, c := range in.Columns() {
				if c.ID == r.ID {
					col.Nullable = c.Nullable
				}
			}
		} else {
			col = t.columnOf(x, name)
		}
		p.Items = append(p.Items, plan.Item{Column: col, Expr: x})
		t.define(id, col)
	}
	return t.accept(p)
}

// computed translates an expression of a list. The binder repeats an alias above
// the projection that computes it: what the input has is not computed again.
func (t *translator) computed(e sql.Expression, have map[plan.ColumnID]bool) plan.Expr {
	if a, ok := e.(*expression.Alias); ok && a.Id() != 0 {
		if c, ok := t.scope.cols[a.Id()]; ok && have[c.ID] {
			return reference(c)
		}
	}
	return t.expr(e)
}

func (t *translator) columnOf(e plan.Expr, name string) plan.Column {
	return plan.Column{ID: t.ids.New(), Name: name, Type: e.Type(), Nullable: nullable(e)}
}

func displayName(e sql.Expression) string {
	if n, ok := e.(sql.Nameable); ok {
		return n.Name()
	}
	return gmsplan.AliasSubqueryString(e)
}

// idOf is the id under which expressions above refer to e, 0 when there is none.
func idOf(e sql.Expression) sql.ColumnId {
	if i, ok := e.(sql.IdExpression); ok {
		return i.Id()
	}
	return 0
}
