package bind

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

// subplan translates the query of a sub-query expression in a scope of its own.
func (t *translator) subplan(n sql.Node) plan.Node {
	t.push()
	defer t.pop()
	return t.node(n)
}

func (t *translator) scalar(e *gmsplan.Subquery) plan.Expr {
	p := t.subplan(e.Query)
	cols := p.Columns()
	if len(cols) != 1 {
		refuse(fault.BadStatement, "Operand should contain 1 column")
	}
	return &plan.Subquery{Kind: plan.ScalarSubquery, Plan: p, Typ: cols[0].Type}
}

func (t *translator) inSubquery(e *gmsplan.InSubquery) plan.Expr {
	sub, ok := e.Right().(*gmsplan.Subquery)
	if !ok {
		cannot("IN of something else than a query")
	}
	if _, isRow := e.Left().(expression.Tuple); isRow {
		return t.rowInSubquery(e.Left().(expression.Tuple), sub)
	}
	operand := t.expr(e.Left())
	p := t.subplan(sub.Query)
	cols := p.Columns()
	if len(cols) != 1 {
		refuse(fault.BadStatement, "Operand should contain 1 column")
	}
	// The types of both sides become those of a comparison.
	c, ok := t.compare("eq", operand, reference(cols[0])).(*plan.Call)
	if !ok || c.Func.Name != "eq" {
		cannot("IN (query) over types that do not compare directly")
	}
	right := c.Operands[1]
	if _, direct := right.(*plan.Ref); !direct {
		col := plan.Column{ID: t.ids.New(), Name: cols[0].Name, Type: right.Type(), Nullable: true}
		p = t.accept(&plan.Project{Input: p, Items: []plan.Item{{Column: col, Expr: right}}})
	}
	return &plan.Subquery{Kind: plan.InSubquery, Operand: c.Operands[0], Plan: p, Typ: plan.Bool}
}

// rowInSubquery translates (a, b) IN (query) as EXISTS. It is the same only where
// nothing is NULL, or under a filter that wants true.
func (t *translator) rowInSubquery(row expression.Tuple, sub *gmsplan.Subquery) plan.Expr {
	operands := make([]plan.Expr, len(row))
	for i, e := range row {
		operands[i] = t.expr(e)
		if nullable(operands[i]) {
			cannot("IN (query) over several columns that may be NULL")
		}
	}
	p := t.subplan(sub.Query)
	cols := p.Columns()
	if len(cols) != len(row) {
		refuse(fault.BadStatement, "Operand should contain %d column(s)", len(row))
	}
	conds := make([]plan.Expr, len(row))
	for i, c := range cols {
		if c.Nullable {
			cannot("IN (query) over several columns that may be NULL")
		}
		conds[i] = t.compare("eq", operands[i], reference(c))
	}
	f := t.accept(&plan.Filter{Input: p, Cond: t.call("and", conds...)})
	return &plan.Subquery{Kind: plan.ExistsSubquery, Plan: f, Typ: plan.Bool}
}
