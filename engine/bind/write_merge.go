package bind

import (
	"slices"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// mergeValue is a value of a branch: an expression of the bound query, or a
// constant.
type mergeValue struct {
	field plan.Field
	item  int // index into the bound list, -1 for the default
}

type mergeBranch struct {
	clause parse.MergeClause
	and    int // index of the condition in the bound list, -1 without one
	values []mergeValue
}

func (w *writeBinder) merge(s *parse.Merge) (*plan.Write, error) {
	if err := w.find(s.Table, true); err != nil {
		return nil, err
	}
	q := &queryText{all: w.args}
	q.WriteString("SELECT 1, 1")
	exprs := []parse.Expr{s.On}
	next := 2
	add := func(e parse.Expr) int {
		exprs = append(exprs, e)
		q.WriteString(", ")
		q.expr(e)
		next++
		return next - 1
	}
	var matched, inserts, unmatched bool
	branches := make([]mergeBranch, len(s.Clauses))
	for i, c := range s.Clauses {
		b := mergeBranch{clause: c, and: -1}
		if c.And != nil {
			b.and = add(*c.And)
		}
		switch c.Match {
		case parse.Matched:
			matched = true
		case parse.NotMatched:
			inserts = true
		case parse.NotMatchedBySource:
			unmatched = true
		default:
			return nil, fault.New(fault.Internal, "a WHEN clause of another kind")
		}
		switch {
		case c.Action == parse.MergeDelete:
		case c.Star:
			for _, f := range w.target.Table.Fields {
				w.assignable(f)
				q.WriteString(", " + quoteName(s.Source.Alias) + "." + quoteName(f.Name))
				b.values = append(b.values, mergeValue{f, next})
				next++
			}
		case c.Action == parse.MergeUpdate:
			for j, f := range w.assigned(c.Set) {
				v := mergeValue{f, -1}
				if a := c.Set[j]; !a.Default {
					v.item = add(a.Value)
				}
				b.values = append(b.values, v)
			}
		default:
			fields := w.mergeFields(c)
			if len(fields) != len(c.Values) {
				refuse(fault.BadStatement, "Column count doesn't match value count: WHEN NOT MATCHED THEN INSERT gives %d values for %d columns", len(c.Values), len(fields))
			}
			for j, f := range fields {
				v := mergeValue{f, -1}
				if x := c.Values[j]; !x.Default {
					v.item = add(x.Expr)
				}
				b.values = append(b.values, v)
			}
		}
		branches[i] = b
	}
	if err := aggregates(exprs...); err != nil {
		return nil, err
	}
	var updates [][]plan.Field
	for _, b := range branches {
		if b.clause.Action != parse.MergeUpdate {
			continue
		}
		var fields []plan.Field
		for _, v := range b.values {
			fields = append(fields, v.field)
		}
		updates = append(updates, fields)
	}
	kept := w.keep(q, s.Target, updates)
	kind, words := plan.Inner, "JOIN"
	switch {
	case unmatched && inserts:
		kind, words = plan.Full, "FULL OUTER JOIN"
	case unmatched, inserts:
		kind, words = plan.Left, "LEFT JOIN"
	}
	// The side whose rows all count stands first.
	targetFirst := unmatched && !inserts
	first, second := s.Source.Text, quoteName(aliased(s.Target))
	if targetFirst {
		first, second = second, first
	}
	q.WriteString(" FROM " + first + " " + words + " " + second + " ON ")
	q.params(s.Source.Param, s.Source.Params)
	q.expr(s.On)
	p, t, err := w.changes(q, s.Target, func(sel *sqlparser.Select) *sqlparser.AliasedTableExpr {
		if len(sel.From) != 1 {
			return nil
		}
		j, ok := sel.From[0].(*sqlparser.JoinTableExpr)
		if !ok {
			return nil
		}
		side := j.RightExpr
		if targetFirst {
			side = j.LeftExpr
		}
		at, _ := side.(*sqlparser.AliasedTableExpr)
		return at
	})
	if err != nil {
		return nil, err
	}
	m := &merger{writeBinder: w, t: t, p: p, once: matched}
	if err := m.join(kind, targetFirst, unmatched); err != nil {
		return nil, err
	}
	return m.write(branches, kept)
}

// mergeFields are the fields of WHEN NOT MATCHED THEN INSERT.
func (w *writeBinder) mergeFields(c parse.MergeClause) []plan.Field {
	var out []plan.Field
	if c.Columns == nil {
		for _, f := range w.target.Table.Fields {
			out = append(out, w.assignable(f))
		}
		return out
	}
	for _, name := range c.Columns {
		f := w.field(name)
		if slices.ContainsFunc(out, func(o plan.Field) bool { return o.ID == f.ID }) {
			refuse(fault.BadStatement, "Column '%s' specified twice", f.Name)
		}
		out = append(out, f)
	}
	return out
}

// merger makes the changes of a MERGE out of the bound join.
type merger struct {
	*writeBinder
	t    *translator
	p    *plan.Project
	in   *plan.Join
	once bool
	// noTarget and noSource say that a row of the join has none of theirs; nil: it
	// always has.
	noTarget, noSource plan.Expr
	// The columns of the two sides.
	target, source map[plan.ColumnID]bool
}

func columnSet(n plan.Node) map[plan.ColumnID]bool {
	out := map[plan.ColumnID]bool{}
	for _, c := range n.Columns() {
		out[c.ID] = true
	}
	return out
}

// join finds the join, and marks rows of the source where they may be missing. The
// place of a row of the target is never NULL, so that it tells whether there is one.
func (m *merger) join(kind plan.JoinKind, targetFirst, mark bool) error {
	j, ok := m.p.Input.(*plan.Join)
	file, isRef := m.p.Items[0].Expr.(*plan.Ref)
	switch {
	case !ok || !isRef || j.Lateral:
		return fault.New(fault.Unsupported, "the source and the condition of the MERGE cannot be joined in this form; use a query in brackets as the source")
	case kind == plan.Inner && j.Kind == plan.Cross:
	case j.Kind != kind:
		return fault.New(fault.Internal, "the join of a MERGE is one of another kind")
	}
	c := *j
	source, target := &c.Left, &c.Right
	if targetFirst {
		source, target = target, source
	}
	m.source, m.target, m.in = columnSet(*source), columnSet(*target), &c
	if !m.target[file.ID] {
		return fault.New(fault.Internal, "the sides of a MERGE are exchanged")
	}
	if kind == plan.Full || kind == plan.Left && !targetFirst {
		m.noTarget = m.t.call("is_null", file)
	}
	if !mark {
		return nil
	}
	there := plan.Column{ID: m.ids.New(), Name: "source", Type: plan.Bool}
	marked := &plan.Project{Input: *source}
	for _, c := range (*source).Columns() {
		marked.Items = append(marked.Items, plan.Item{Column: c, Expr: reference(c)})
	}
	marked.Items = append(marked.Items, plan.Item{Column: there, Expr: boolean(true)})
	*source = marked
	m.noSource = m.t.call("is_null", reference(there))
	return nil
}

// when is the condition under which the clause acts.
func (m *merger) when(b mergeBranch) plan.Expr {
	var parts []plan.Expr
	there := func(missing plan.Expr) {
		if missing != nil {
			parts = append(parts, m.t.call("not", missing))
		}
	}
	switch b.clause.Match {
	case parse.NotMatched:
		parts = append(parts, m.noTarget)
	case parse.NotMatchedBySource:
		parts = append(parts, m.noSource)
	default:
		there(m.noTarget)
		there(m.noSource)
	}
	if b.and >= 0 {
		x := m.t.truth(m.p.Items[b.and].Expr)
		m.scope(b, x)
		parts = append(parts, x)
	}
	switch len(parts) {
	case 0:
		return boolean(true)
	case 1:
		return parts[0]
	}
	return m.t.call("and", parts...)
}

// scope refuses columns of the side that a clause has no row of.
func (m *merger) scope(b mergeBranch, e plan.Expr) {
	missing, side, where := m.target, "target", "NOT MATCHED"
	switch b.clause.Match {
	case parse.Matched:
		return
	case parse.NotMatchedBySource:
		missing, side, where = m.source, "source", "NOT MATCHED BY SOURCE"
	}
	if slices.ContainsFunc(plan.Refs(e), func(id plan.ColumnID) bool { return missing[id] }) {
		refuse(fault.BadStatement, "WHEN %s refers to a column of the %s, which has no such row", where, side)
	}
}

// write is Project(values) over Filter(a clause acts) over Project(which one) over
// the join, so that values are computed for the rows of their clause only.
func (m *merger) write(branches []mergeBranch, kept []plan.Field) (*plan.Write, error) {
	which := &plan.Case{Typ: plan.Int64}
	for i, b := range branches {
		which.Whens = append(which.Whens, plan.When{Cond: m.when(b), Then: integer(int64(i))})
	}
	chosen := plan.Item{Column: plan.Column{ID: m.ids.New(), Name: "branch", Type: plan.Int64, Nullable: true}, Expr: which}
	inner := &plan.Project{Input: m.in}
	for _, c := range m.in.Columns() {
		inner.Items = append(inner.Items, plan.Item{Column: c, Expr: reference(c)})
	}
	inner.Items = append(inner.Items, chosen)
	acts := &plan.Filter{Input: m.t.accept(inner), Cond: m.t.call("not", m.t.call("is_null", reference(chosen.Column)))}
	items := m.place(m.p)
	branch := plan.Item{Column: plan.Column{ID: m.ids.New(), Name: "branch", Type: plan.Int64}, Expr: reference(chosen.Column)}
	items = append(items, branch)
	out := &plan.Write{Target: m.state.target.Table, Branch: branch.ID, File: items[0].ID, Pos: items[1].ID, Once: m.once}
	for i, b := range branches {
		wb := plan.WriteBranch{Op: plan.UpdateRow}
		switch b.clause.Action {
		case parse.MergeDelete:
			wb.Op = plan.DeleteRow
		case parse.MergeInsert:
			wb.Op = plan.InsertRow
		}
		if wb.Op != plan.DeleteRow {
			wb.Values = map[int]plan.ColumnID{}
		}
		for _, v := range b.values {
			var x plan.Expr
			if v.item < 0 {
				x = m.fill(v.field)
			} else {
				x = m.p.Items[v.item].Expr
				m.scope(b, x)
				x = m.t.assign(x, v.field)
			}
			if _, isLiteral := x.(*plan.Literal); !isLiteral && len(branches) > 1 {
				x = &plan.Case{Whens: []plan.When{{Cond: m.t.call("eq", reference(chosen.Column), integer(int64(i))), Then: x}}, Typ: x.Type()}
			}
			it := m.column(v.field, x)
			it.Nullable = it.Nullable || len(branches) > 1
			items = append(items, it)
			wb.Values[v.field.ID] = it.ID
		}
		if wb.Op == plan.InsertRow {
			for _, f := range m.state.target.Table.Fields {
				if _, given := wb.Values[f.ID]; !given {
					m.fill(f)
				}
			}
		}
		out.Branches = append(out.Branches, wb)
	}
	items, out.Kept = m.kept(m.p, kept, items)
	out.Rows = m.t.accept(&plan.Project{Input: acts, Items: items})
	return out, nil
}
