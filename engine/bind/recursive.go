package bind

import (
	"strings"

	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

type workTable struct {
	table *gmsplan.RecursiveTable
	name  string
	id    int
	cols  []plan.Column
}

func (t *translator) recursive(n *gmsplan.RecursiveCte) plan.Node {
	u := n.Union()
	// Conversions that the binder inserted stand on both sides.
	l, r := inserted(n.Left(), n.Right())
	t.push()
	anchor := t.node(l)
	t.pop()
	t.recursions++
	rec := &plan.Recursive{ID: t.recursions, Name: n.Name(), All: !u.Distinct}
	names := n.Working.Schema()
	for i, c := range anchor.Columns() {
		typ := c.Type
		if i < len(names) {
			c.Name = names[i].Name
		}
		if typ.ID() == plan.Null.ID() {
			typ = plan.String
		}
		rec.Cols = append(rec.Cols, plan.Column{ID: t.ids.New(), Name: c.Name, Type: typ, Nullable: true})
	}
	t.work = append(t.work, workTable{table: n.Working, name: n.Name(), id: rec.ID, cols: rec.Cols})
	t.push()
	step := t.node(r)
	t.pop()
	t.work = t.work[:len(t.work)-1]
	if len(step.Columns()) != len(rec.Cols) {
		refuse(fault.BadStatement, "The used SELECT statements have a different number of columns")
	}
	rec.Anchor, rec.Step = t.retype(anchor, rec.Cols), t.retype(step, rec.Cols)
	for i, id := range ids(n.Columns()) {
		if i < len(rec.Cols) {
			t.define(id, rec.Cols[i])
		}
	}
	out := t.accept(rec)
	if len(u.SortFields) > 0 {
		out = t.sort(out, u.SortFields)
	}
	if u.Limit != nil {
		out = t.limit(out, t.count(u.Limit), 0)
	}
	return out
}

func (t *translator) workTable(n *gmsplan.RecursiveTable) plan.Node {
	for i := len(t.work) - 1; i >= 0; i-- {
		w := t.work[i]
		if !strings.EqualFold(w.name, n.Name()) && w.table != n {
			continue
		}
		out := &plan.WorkTable{ID: w.id}
		for _, c := range w.cols {
			c.ID = t.ids.New()
			out.Cols = append(out.Cols, c)
		}
		for i, id := range ids(n.Columns()) {
			if i < len(out.Cols) {
				t.define(id, out.Cols[i])
			}
		}
		t.nameWork(n.Name(), n, out)
		return t.accept(out)
	}
	cannot("a recursive query outside of its definition")
	return nil
}

// nameWork makes the columns of a use of a work table known by name.
func (t *translator) nameWork(table string, n *gmsplan.RecursiveTable, out plan.Node) {
	if t.scope.work == nil {
		t.scope.work = map[[2]string]plan.Column{}
	}
	cols := out.Columns()
	for i, c := range n.Schema() {
		if i < len(cols) {
			t.scope.work[[2]string{strings.ToLower(table), strings.ToLower(c.Name)}] = cols[i]
		}
	}
}

// workColumn finds a column of a work table by its name.
func (t *translator) workColumn(table, name string) (plan.Column, bool) {
	key := [2]string{strings.ToLower(table), strings.ToLower(name)}
	for s := t.scope; s != nil; s = s.parent {
		if c, ok := s.work[key]; ok {
			return c, true
		}
	}
	return plan.Column{}, false
}
