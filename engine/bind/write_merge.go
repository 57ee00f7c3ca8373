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

// merge binds MERGE as a SELECT over the join of its sides: the list holds a 1 twice,
// where the place of a target row comes to stand, and then every condition and value of
// every WHEN clause.
func (w *writeBinder) merge(s *parse.Merge) (*plan.Write, error) {
	if err := w.find(s.Table, true); err != nil {
		return nil, err
	}
	l := &mergeList{writeBinder: w, source: s.Source.Alias, text: &queryText{all: w.args}, exprs: []parse.Expr{s.On}, next: 2}
	l.text.WriteString("SELECT 1, 1")
	matches := map[parse.MergeMatch]bool{}
	branches := make([]mergeBranch, len(s.Clauses))
	for i, c := range s.Clauses {
		if c.Match > parse.NotMatchedBySource {
			return nil, fault.New(fault.Internal, "a WHEN clause of another kind")
		}
		matches[c.Match] = true
		branches[i] = l.branch(c)
	}
	if err := aggregates(l.exprs...); err != nil {
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
	kept := w.keep(l.text, s.Target, updates)
	j := mergeJoinOf(matches[parse.NotMatched], matches[parse.NotMatchedBySource])
	j.write(l.text, s)
	p, t, err := w.changes(l.text, s.Target, j.target)
	if err != nil {
		return nil, err
	}
	m := &merger{writeBinder: w, t: t, p: p, once: matches[parse.Matched]}
	if err := m.join(j); err != nil {
		return nil, err
	}
	return m.write(branches, kept)
}

// mergeList writes the list of the query of a MERGE.
type mergeList struct {
	*writeBinder
	source string // alias
	text   *queryText
	exprs  []parse.Expr // of the condition of the join and of the list
	next   int          // index of the next item
}

// add puts an expression into the list and returns its index.
func (l *mergeList) add(e parse.Expr) int {
	l.exprs = append(l.exprs, e)
	l.text.WriteString(", ")
	l.text.expr(e)
	l.next++
	return l.next - 1
}

// value puts a value for a field into the list, unless it is DEFAULT.
func (l *mergeList) value(f plan.Field, isDefault bool, e parse.Expr) mergeValue {
	if isDefault {
		return mergeValue{f, -1}
	}
	return mergeValue{f, l.add(e)}
}

// branch puts the condition and the values of a WHEN clause into the list.
func (l *mergeList) branch(c parse.MergeClause) mergeBranch {
	b := mergeBranch{clause: c, and: -1}
	if c.And != nil {
		b.and = l.add(*c.And)
	}
	switch {
	case c.Action == parse.MergeDelete:
	case c.Star:
		for _, f := range l.target.Table.Fields {
			l.assignable(f)
			l.text.WriteString(", " + quoteName(l.source) + "." + quoteName(f.Name))
			b.values = append(b.values, mergeValue{f, l.next})
			l.next++
		}
	case c.Action == parse.MergeUpdate:
		for i, f := range l.assigned(c.Set) {
			b.values = append(b.values, l.value(f, c.Set[i].Default, c.Set[i].Value))
		}
	default:
		fields := l.mergeFields(c)
		if len(fields) != len(c.Values) {
			refuse(fault.BadStatement, "Column count doesn't match value count: WHEN NOT MATCHED THEN INSERT gives %d values for %d columns", len(c.Values), len(fields))
		}
		for i, f := range fields {
			b.values = append(b.values, l.value(f, c.Values[i].Default, c.Values[i].Expr))
		}
	}
	return b
}

// mergeJoin is how the sides of a MERGE are joined.
type mergeJoin struct {
	kind  plan.JoinKind
	words string
	// targetFirst: the target stands on the left, the side whose rows all count.
	targetFirst bool
	// unmatched: rows of the target without one of the source count.
	unmatched bool
}

// mergeJoinOf is the join for a MERGE that inserts rows of the source without one of the
// target, and acts on rows of the target without one of the source (unmatched).
func mergeJoinOf(inserts, unmatched bool) mergeJoin {
	switch {
	case unmatched && inserts:
		return mergeJoin{kind: plan.Full, words: "FULL OUTER JOIN", unmatched: true}
	case unmatched:
		return mergeJoin{kind: plan.Left, words: "LEFT JOIN", targetFirst: true, unmatched: true}
	case inserts:
		return mergeJoin{kind: plan.Left, words: "LEFT JOIN"}
	}
	return mergeJoin{kind: plan.Inner, words: "JOIN"}
}

// write writes the FROM clause.
func (j mergeJoin) write(q *queryText, s *parse.Merge) {
	first, second := s.Source.Text, quoteName(aliased(s.Target))
	if j.targetFirst {
		first, second = second, first
	}
	q.WriteString(" FROM " + first + " " + j.words + " " + second + " ON ")
	q.params(s.Source.Param, s.Source.Params)
	q.expr(s.On)
}

// target finds the target in the parsed query; nil when the join is not in its FROM
// clause as it was written.
func (j mergeJoin) target(sel *sqlparser.Select) *sqlparser.AliasedTableExpr {
	if len(sel.From) != 1 {
		return nil
	}
	parsed, ok := sel.From[0].(*sqlparser.JoinTableExpr)
	if !ok {
		return nil
	}
	side := parsed.RightExpr
	if j.targetFirst {
		side = parsed.LeftExpr
	}
	at, _ := side.(*sqlparser.AliasedTableExpr)
	return at
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
func (m *merger) join(how mergeJoin) error {
	j, ok := m.p.Input.(*plan.Join)
	file, isRef := m.p.Items[0].Expr.(*plan.Ref)
	switch {
	case !ok || !isRef || j.Lateral:
		return fault.New(fault.Unsupported, "the source and the condition of the MERGE cannot be joined in this form; use a query in brackets as the source")
	case how.kind == plan.Inner && j.Kind == plan.Cross:
	case j.Kind != how.kind:
		return fault.New(fault.Internal, "the join of a MERGE is one of another kind")
	}
	c := *j
	source, target := &c.Left, &c.Right
	if how.targetFirst {
		source, target = target, source
	}
	m.source, m.target, m.in = columnSet(*source), columnSet(*target), &c
	if !m.target[file.ID] {
		return fault.New(fault.Internal, "the sides of a MERGE are exchanged")
	}
	if how.kind == plan.Full || how.kind == plan.Left && !how.targetFirst {
		m.noTarget = m.t.call("is_null", file)
	}
	if !how.unmatched {
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
