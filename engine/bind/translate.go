package bind

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

// translator turns the bound tree of one statement into a plan.
type translator struct {
	binder *Binder
	ctx    *sql.Context
	state  *statement
	ids    *plan.IDs
	scope  *scope
	// work holds the recursive queries that are being translated, by the name
	// under which go-mysql-server's work table knows them.
	work       []workTable
	recursions int
	defined    int
	withheld   map[sql.ColumnId]string // columns that may be listed and not read
	// implicit holds the columns that an Aggregate picks from any row of a group
	// because something above may need them (loose GROUP BY), with their names.
	implicit map[plan.ColumnID]string
}

type workTable struct {
	table *gmsplan.RecursiveTable
	name  string
	id    int
	cols  []plan.Column
}

// maxColumns bounds the columns that one translation defines. It is more than
// half of what the binder's ids can tell apart, and each id is defined where it is
// made.
const maxColumns = 60000

// scope maps the column ids of go-mysql-server to columns of the plan, for one
// query block. A use of a common table expression copies the tree with its ids;
// the scope of the copy then hides the outer meaning of the same ids.
type scope struct {
	parent *scope
	cols   map[sql.ColumnId]plan.Column
	// keys are grouping expressions of the block's Aggregate, as expressions over
	// its output, with the columns that hold them.
	keys []groupKey
	// work holds the columns of work tables by the name of the table (or its alias)
	// and of the column, in lower case: the binder gives a use of a work table new
	// ids that the node does not know.
	work map[[2]string]plan.Column
}

type groupKey struct {
	expr plan.Expr
	col  plan.Column
}

func (t *translator) push() { t.scope = &scope{parent: t.scope, cols: map[sql.ColumnId]plan.Column{}} }
func (t *translator) pop()  { t.scope = t.scope.parent }

func (t *translator) define(id sql.ColumnId, c plan.Column) {
	if id == 0 {
		return
	}
	// The binder counts columns in 16 bits and does not notice when they overflow.
	t.defined++
	if id >= firstLeafID || t.defined > maxColumns {
		refuse(fault.Limit, "the statement handles too many columns (tables, derived tables and expressions together at most %d); name the columns that are needed in place of *", firstLeafID)
	}
	t.scope.cols[id] = c
}

func (t *translator) lookup(id sql.ColumnId) (plan.Column, bool) {
	for s := t.scope; s != nil; s = s.parent {
		if c, ok := s.cols[id]; ok {
			return c, true
		}
	}
	return plan.Column{}, false
}

// untranslatable says that a tree, or a part of it, has no place in the plan. It
// is a failure that the row executor may still help with.
type untranslatable struct{ reason string }

func (e untranslatable) Error() string { return e.reason }

// cannot stops translation. The reason names a construct, never a value.
func cannot(reason string) { panic(failure{untranslatable{reason}}) }

// try translates a tree in an own scope. reason is not "" when it has no place in
// the plan; refusals come as errors.
func (t *translator) try(n sql.Node) (out plan.Node, reason string, err error) {
	saved, savedWork := t.scope, t.work
	savedIDs := *t.ids
	defer func() {
		t.scope, t.work = saved, savedWork
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			*t.ids = savedIDs
			if u, ok := f.err.(untranslatable); ok {
				reason = u.reason
				return
			}
			err = f.err
		}
	}()
	t.push()
	t.defined = 0
	out = t.node(n)
	return out, "", nil
}

// accept asks the executor about a node that was made.
func (t *translator) accept(n plan.Node) plan.Node {
	if t.binder.options.Accepts != nil {
		if err := t.binder.options.Accepts(n); err != nil {
			cannot(err.Error())
		}
	}
	return n
}

// node translates a relational node. The columns that it yields are defined in
// the current scope.
func (t *translator) node(n sql.Node) plan.Node {
	switch n := n.(type) {
	case *gmsplan.ResolvedTable:
		return t.table(n)
	case *gmsplan.TableAlias:
		out := t.node(n.Child)
		if r, ok := n.Child.(*gmsplan.RecursiveTable); ok {
			t.nameWork(n.Name(), r, out)
		}
		return out
	case *gmsplan.SubqueryAlias:
		return t.subqueryAlias(n)
	case *gmsplan.Filter:
		in := t.node(n.Child)
		return t.accept(&plan.Filter{Input: in, Cond: t.condition(n.Expression)})
	case *gmsplan.Having:
		in := t.node(n.Child)
		return t.accept(&plan.Filter{Input: in, Cond: t.condition(n.Cond)})
	case *gmsplan.Project:
		in := t.node(n.Child)
		return t.project(in, n.Projections)
	case *gmsplan.GroupBy:
		in := t.node(n.Child)
		return t.groupBy(in, n)
	case *gmsplan.Window:
		in := t.node(n.Child)
		return t.window(in, n)
	case *gmsplan.Distinct:
		return t.distinct(n.Child)
	case *gmsplan.OrderedDistinct:
		return t.distinct(n.Child)
	case *gmsplan.Sort:
		in := t.node(n.Child)
		return t.sort(in, n.SortFields)
	case *gmsplan.Limit:
		in := t.node(n.Child)
		return t.limit(in, t.count(n.Limit), 0)
	case *gmsplan.Offset:
		in := t.node(n.Child)
		return t.limit(in, -1, t.count(n.Offset))
	case *gmsplan.JoinNode:
		return t.join(n)
	case *gmsplan.SetOp:
		return t.setOp(n)
	case *gmsplan.RecursiveCte:
		return t.recursive(n)
	case *gmsplan.RecursiveTable:
		return t.workTable(n)
	case *gmsplan.ValueDerivedTable:
		return t.values(n.ExpressionTuples, n.Columns())
	case *gmsplan.EmptyTable:
		return t.values(nil, sql.ColSet{})
	}
	cannot("the operation " + nodeName(n))
	return nil
}

// nodeName names the kind of a node of go-mysql-server for a reason.
func nodeName(n sql.Node) string {
	switch n := n.(type) {
	case *gmsplan.JSONTable:
		return "JSON_TABLE"
	case *gmsplan.ResolvedTable:
		return "of a table of information_schema"
	case sql.TableFunction:
		return "of a table function"
	default:
		s := strings.TrimPrefix(typeName(n), "*plan.")
		return strings.TrimPrefix(s, "*")
	}
}

func ids(set sql.ColSet) []sql.ColumnId {
	out := make([]sql.ColumnId, 0, set.Len())
	set.ForEach(func(id sql.ColumnId) { out = append(out, id) })
	return out
}

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

func (t *translator) columnOf(e plan.Expr, name string) plan.Column {
	return plan.Column{ID: t.ids.New(), Name: name, Type: e.Type(), Nullable: nullable(e)}
}

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

// distinct translates DISTINCT. The binder puts ORDER BY below it, where its
// order would be lost: it moves above.
func (t *translator) distinct(child sql.Node) plan.Node {
	in := t.node(child)
	p, ok := in.(*plan.Project)
	if !ok {
		return t.accept(&plan.Distinct{Input: in})
	}
	s, ok := p.Input.(*plan.Sort)
	if !ok {
		return t.accept(&plan.Distinct{Input: in})
	}
	made := map[plan.ColumnID]bool{}
	for _, it := range p.Items {
		made[it.ID] = true
	}
	keys := make([]plan.SortKey, len(s.Keys))
	for i, k := range s.Keys {
		keys[i] = k
		for _, it := range p.Items {
			if same(it.Expr, k.Expr) {
				keys[i].Expr = reference(it.Column)
				break
			}
		}
		plan.WalkExpr(keys[i].Expr, func(e plan.Expr) bool {
			if r, ok := e.(*plan.Ref); ok && !made[r.ID] {
				refuse(fault.BadStatement, "an ORDER BY expression is not in the SELECT list, which DISTINCT needs")
			}
			return true
		})
	}
	d := t.accept(&plan.Distinct{Input: &plan.Project{Input: s.Input, Items: p.Items}})
	return t.accept(&plan.Sort{Input: d, Keys: keys})
}

func (t *translator) sort(in plan.Node, fields sql.SortFields) plan.Node {
	var keys []plan.SortKey
	for _, f := range fields {
		e := t.expr(f.Column)
		if _, constant := e.(*plan.Literal); constant {
			continue
		}
		keys = append(keys, sortKey(e, f.Order == sql.Descending))
	}
	if len(keys) == 0 {
		return in
	}
	return t.accept(&plan.Sort{Input: in, Keys: keys})
}

// sortKey is a key in MySQL's order: NULL first ascending, last descending.
func sortKey(e plan.Expr, desc bool) plan.SortKey {
	return plan.SortKey{Expr: e, Desc: desc, NullsFirst: !desc}
}

// limit puts a Limit on in, below a Project so that it stays beside its Sort.
func (t *translator) limit(in plan.Node, count, offset int64) plan.Node {
	switch in := in.(type) {
	case *plan.Project:
		if _, isScan := in.Input.(*plan.Scan); !isScan {
			return t.accept(&plan.Project{Input: t.limit(in.Input, count, offset), Items: in.Items})
		}
	case *plan.Limit:
		// OFFSET comes as a node of its own below LIMIT.
		if in.Count < 0 && offset == 0 {
			return t.accept(&plan.Limit{Input: in.Input, Count: count, Offset: in.Offset})
		}
	}
	return t.accept(&plan.Limit{Input: in, Count: count, Offset: offset})
}

// count is the value of LIMIT or OFFSET.
func (t *translator) count(e sql.Expression) int64 {
	l, ok := t.expr(e).(*plan.Literal)
	if ok {
		if i, isInt := l.Value.(int64); isInt && i >= 0 {
			return i
		}
	}
	refuse(fault.BadStatement, "LIMIT and OFFSET take a number that is not negative")
	return 0
}

var joinKinds = map[gmsplan.JoinType]struct {
	kind    plan.JoinKind
	lateral bool
}{
	gmsplan.JoinTypeCross:        {plan.Cross, false},
	gmsplan.JoinTypeInner:        {plan.Inner, false},
	gmsplan.JoinTypeSemi:         {plan.Semi, false},
	gmsplan.JoinTypeAnti:         {plan.Anti, false},
	gmsplan.JoinTypeLeftOuter:    {plan.Left, false},
	gmsplan.JoinTypeRightOuter:   {plan.Right, false},
	gmsplan.JoinTypeFullOuter:    {plan.Full, false},
	gmsplan.JoinTypeUsing:        {plan.Inner, false},
	gmsplan.JoinTypeUsingLeft:    {plan.Left, false},
	gmsplan.JoinTypeUsingRight:   {plan.Right, false},
	gmsplan.JoinTypeLateralCross: {plan.Cross, true},
	gmsplan.JoinTypeLateralInner: {plan.Inner, true},
	gmsplan.JoinTypeLateralLeft:  {plan.Left, true},
}

func (t *translator) join(n *gmsplan.JoinNode) plan.Node {
	k, ok := joinKinds[n.Op]
	if !ok {
		cannot("this kind of join")
	}
	left := t.node(n.Left())
	right := t.node(n.Right())
	j := &plan.Join{Kind: k.kind, Left: left, Right: right, Lateral: k.lateral}
	if n.Filter != nil {
		j.On = t.condition(n.Filter)
	}
	if l, isLit := j.On.(*plan.Literal); isLit && l.Value == true && (j.Kind == plan.Inner || j.Kind == plan.Cross) {
		j.On = nil
	}
	switch {
	case j.On == nil && j.Kind == plan.Inner:
		j.Kind = plan.Cross
	case j.On != nil && j.Kind == plan.Cross:
		j.Kind = plan.Inner
	case j.On == nil && j.Kind != plan.Cross:
		j.On = boolean(true)
	}
	// Where a side may be missing its columns may be NULL.
	for s := t.scope; s == t.scope; s = s.parent {
		for _, c := range j.Columns() {
			if c.Nullable {
				t.redefine(c)
			}
		}
	}
	return t.accept(j)
}

// redefine updates what the scope knows about a column.
func (t *translator) redefine(c plan.Column) {
	for id, old := range t.scope.cols {
		if old.ID == c.ID && !old.Nullable {
			old.Nullable = true
			t.scope.cols[id] = old
		}
	}
}

// outputs lists the ids of go-mysql-server for the columns that a node yields, in
// order; 0 for an expression without an id.
func outputs(n sql.Node) []sql.ColumnId {
	of := func(exprs []sql.Expression) []sql.ColumnId {
		out := make([]sql.ColumnId, len(exprs))
		for i, e := range exprs {
			out[i] = idOf(e)
		}
		return out
	}
	switch n := n.(type) {
	case *gmsplan.Project:
		return of(n.Projections)
	case *gmsplan.GroupBy:
		return of(n.SelectedExprs)
	case *gmsplan.Window:
		return of(n.SelectExprs)
	case *gmsplan.JoinNode:
		l := outputs(n.Left())
		if n.Op.IsPartial() {
			return l
		}
		return append(l[:len(l):len(l)], outputs(n.Right())...)
	case *gmsplan.SetOp:
		return outputs(n.Left())
	case gmsplan.TableIdNode:
		return ids(n.Columns())
	}
	if c := n.Children(); len(c) == 1 {
		return outputs(c[0])
	}
	return nil
}

// inserted strips the projections with conversions that the binder puts under a
// set operation whose sides have different types: its conversions are not MySQL's.
func inserted(l, r sql.Node) (sql.Node, sql.Node) {
	lp, ok1 := l.(*gmsplan.Project)
	rp, ok2 := r.(*gmsplan.Project)
	if !ok1 || !ok2 || len(lp.Projections) != len(rp.Projections) {
		return l, r
	}
	converts := false
	for i := range lp.Projections {
		for _, e := range []sql.Expression{lp.Projections[i], rp.Projections[i]} {
			switch e := e.(type) {
			case *expression.GetField:
			case *expression.Alias:
				if e.Id() != 0 || e.Unreferencable() {
					return l, r
				}
				switch c := e.Child.(type) {
				case *expression.GetField:
				case *expression.Convert:
					if _, ok := c.Child.(*expression.GetField); !ok {
						return l, r
					}
					converts = true
				default:
					return l, r
				}
			default:
				return l, r
			}
		}
	}
	if !converts {
		return l, r
	}
	return lp.Child, rp.Child
}

func (t *translator) setOp(n *gmsplan.SetOp) plan.Node {
	l, r := inserted(n.Left(), n.Right())
	leftIDs := outputs(l)
	t.push()
	left := t.node(l)
	t.pop()
	t.push()
	right := t.node(r)
	t.pop()
	lc, rc := left.Columns(), right.Columns()
	if len(lc) != len(rc) {
		refuse(fault.BadStatement, "The used SELECT statements have a different number of columns")
	}
	s := &plan.SetOp{All: !n.Distinct}
	switch n.SetOpType {
	case gmsplan.UnionType:
		s.Kind = plan.Union
	case gmsplan.IntersectType:
		s.Kind = plan.Intersect
	case gmsplan.ExceptType:
		s.Kind = plan.Except
	}
	s.Cols = make([]plan.Column, len(lc))
	for i := range lc {
		typ := unify(lc[i].Type, rc[i].Type)
		s.Cols[i] = plan.Column{ID: t.ids.New(), Name: lc[i].Name, Type: typ, Nullable: lc[i].Nullable || rc[i].Nullable}
	}
	s.Left, s.Right = t.retype(left, s.Cols), t.retype(right, s.Cols)
	if len(leftIDs) == len(s.Cols) {
		for i, id := range leftIDs {
			t.define(id, s.Cols[i])
		}
	}
	out := t.accept(s)
	if len(n.SortFields) > 0 {
		out = t.sort(out, n.SortFields)
	}
	count, offset := int64(-1), int64(0)
	if n.Limit != nil {
		count = t.count(n.Limit)
	}
	if n.Offset != nil {
		offset = t.count(n.Offset)
	}
	if count >= 0 || offset > 0 {
		out = t.limit(out, count, offset)
	}
	return out
}

// retype casts the columns of n to the types of cols.
func (t *translator) retype(n plan.Node, cols []plan.Column) plan.Node {
	have := n.Columns()
	items := make([]plan.Item, len(have))
	changed := false
	seen := map[plan.ColumnID]bool{}
	for i, c := range have {
		e := t.cast(reference(c), cols[i].Type)
		items[i] = plan.Item{Column: c, Expr: e}
		if _, kept := e.(*plan.Ref); !kept || seen[c.ID] {
			changed = true
			items[i].Column = plan.Column{ID: t.ids.New(), Name: c.Name, Type: e.Type(), Nullable: c.Nullable}
		}
		seen[c.ID] = true
	}
	if !changed {
		return n
	}
	return t.accept(&plan.Project{Input: n, Items: items})
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
