package bind

import (
	"context"
	"slices"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// BoundWrite is a statement that changes rows and that was bound. Its plan is not
// governed yet: it must not run as it is.
type BoundWrite struct {
	Write *plan.Write
	IDs   *plan.IDs
	// Partition is what INSERT OVERWRITE ... PARTITION named, in its order. Whether
	// the table is partitioned by these columns is not checked here.
	Partition []Partition
	// Warnings for the user, one sentence each.
	Warnings []string
}

// Partition is one column of PARTITION (...), by the id of its field.
type Partition struct {
	Field int
	// Value is nil when the rows tell it. Its type is that of the field.
	Value *plan.Literal
}

// BindWrite resolves an INSERT, UPDATE, DELETE or MERGE and translates it into a
// query over the target and the sources, whose rows are the changes. Every name in
// it resolves through rel and every expression as in a query. args are the values
// of its placeholders, in order.
//
// Columns of the rows have the types of the fields that they are for, but for
// these, which the writer converts exactly or refuses: JSON for a struct, list or
// map; text for a UUID; binary of any length for fixed bytes; and whatever the row
// executor makes of the source of an INSERT (plan.Foreign, then the root). In what
// changes old rows the row executor computes expressions only (plan.RowCall).
func (b *Binder) BindWrite(ctx context.Context, s *Session, rel Relations, stmt parse.Statement, args []plan.Literal) (*BoundWrite, error) {
	w := &writeBinder{binder: b, session: s, state: newStatement(rel, s), args: args, ids: &plan.IDs{}}
	out, err := w.bind(ctx, stmt)
	if err != nil {
		return nil, w.state.fault(err, w.ast)
	}
	return out, nil
}

// writeBinder binds one statement that changes rows.
type writeBinder struct {
	binder  *Binder
	session *Session
	state   *statement
	args    []plan.Literal
	ids     *plan.IDs
	ctx     *sql.Context
	target  *Relation
	ast     sqlparser.SQLNode // of the query that was bound last, for messages
	stars   []string          // warnings
}

func (w *writeBinder) bind(ctx context.Context, stmt parse.Statement) (out *BoundWrite, err error) {
	defer recovered(&err)
	if n := parse.Params(stmt); n != len(w.args) {
		return nil, fault.New(fault.BadStatement, "the statement has %d parameters, %d values were given", n, len(w.args))
	}
	w.ctx = w.binder.context(ctx, w.session, w.state)
	if err := checkMode(w.ctx); err != nil {
		return nil, err
	}
	out = &BoundWrite{IDs: w.ids}
	switch s := stmt.(type) {
	case *parse.Insert:
		out.Write, out.Partition, err = w.insert(s)
	case *parse.Delete:
		out.Write, err = w.delete(s)
	case *parse.Update:
		out.Write, err = w.update(s)
	case *parse.Merge:
		out.Write, err = w.merge(s)
	default:
		return nil, fault.New(fault.Internal, "a statement of another kind is to change rows")
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(w.stars)
	out.Warnings = slices.Compact(w.stars)
	return out, nil
}

// find resolves the table that the statement changes. read says that its rows are
// read under that name too.
func (w *writeBinder) find(ref parse.TableRef, read bool) error {
	database := ref.Database
	if database == "" {
		database = w.session.gms.GetCurrentDatabase()
	}
	if database == noDatabase {
		return errNoDatabase
	}
	var err error
	if read {
		w.target, err = w.state.relation(w.ctx, database, ref.Name, plan.AsOf{})
	} else {
		w.target, err = w.state.rel.Relation(w.ctx, database, ref.Name, plan.AsOf{})
	}
	switch {
	case err != nil:
		return err
	case w.target.Table == nil:
		return fault.New(fault.Unsupported, "'%s' is a view and its rows cannot be changed; change the tables that it reads", ref.Name)
	case w.target.Table.Metadata != "":
		return fault.New(fault.Unsupported, "'%s' shows the metadata of a table and its rows cannot be changed", ref.Name)
	}
	if read {
		w.state.target = w.target
	}
	return nil
}

// field is the field of the target that a column of the statement names.
func (w *writeBinder) field(path ...string) plan.Field {
	if len(path) > 1 {
		if f, ok := w.target.Table.FieldNamed(path[0]); ok && plan.IsNested(f.Type) {
			refuse(fault.Unsupported, "a field inside a column cannot be assigned; assign the whole column '%s'", f.Name)
		}
		refuse(fault.NoColumn, "Unknown column '%s' in the list of columns; the columns that are assigned are those of the table that changes", strings.Join(path, "."))
	}
	f, ok := w.target.Table.FieldNamed(path[0])
	if !ok {
		refuse(fault.NoColumn, "Unknown column '%s' in the list of columns", path[0])
	}
	return w.assignable(f)
}

// assignable refuses a withheld field.
func (w *writeBinder) assignable(f plan.Field) plan.Field {
	if w.target.Withheld[f.ID] {
		refuse(fault.Withheld, "column '%s' of '%s' is withheld: a policy masks it in a way that cannot be applied, so it cannot be assigned; leave it out", f.Name, w.target.Table.Name.Name)
	}
	return f
}

// queryText composes the text of a query, with the values of its placeholders in the
// order in which they stand in it.
type queryText struct {
	strings.Builder
	all, args []plan.Literal
}

func (q *queryText) expr(e parse.Expr) {
	q.WriteString("(" + e.Text + ")")
	q.params(e.Param, e.Params)
}

func (q *queryText) params(from, n int) { q.args = append(q.args, q.all[from:from+n]...) }

func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// Names of what only this package may name: no name in a statement holds a NUL
// byte (uncommon sees to it).
const (
	targetTable    = "\x00target"
	fileColumn     = "\x00file"
	positionColumn = "\x00pos"
)

// virtualFields are what the stub of a target has besides its fields.
var virtualFields = []plan.Field{
	{ID: plan.FileField, Name: "_file", Type: plan.String, Required: true},
	{ID: plan.PositionField, Name: "_pos", Type: plan.Int64, Required: true},
}

// targetStub is the stub of the table that changes, with its virtual columns.
func (st *statement) targetStub() *stub {
	s := newStub(st.target, targetTable, st)
	for i, name := range []string{fileColumn, positionColumn} {
		f := virtualFields[i]
		s.fields = append(s.fields, f)
		s.schema = append(s.schema, &sql.Column{Name: name, Type: gmsType(f.Type), Source: targetTable})
	}
	return s
}

// aliased is the name of the target in expressions.
func aliased(t parse.Target) string {
	if t.Alias != "" {
		return t.Alias
	}
	return t.Table.Name
}

// changes binds a query whose first two columns are written as 1, 1 and become the
// place of the target's row. at finds the target in FROM.
func (w *writeBinder) changes(q *queryText, t parse.Target, at func(*sqlparser.Select) *sqlparser.AliasedTableExpr) (*plan.Project, *translator, error) {
	st := &parse.SQL{Text: q.String(), Kind: parse.Query}
	ast, err := prepareAST(st)
	if err != nil {
		return nil, nil, err
	}
	w.ast = ast
	if err := uncommon(ast); err != nil {
		return nil, nil, err
	}
	sel, ok := ast.(*sqlparser.Select)
	if !ok || len(sel.SelectExprs) < 2 {
		return nil, nil, fault.New(fault.Internal, "the query of a statement that changes rows has another form")
	}
	name := aliased(t)
	for i, c := range []string{fileColumn, positionColumn} {
		item, ok := sel.SelectExprs[i].(*sqlparser.AliasedExpr)
		if !ok {
			return nil, nil, fault.New(fault.Internal, "the query of a statement that changes rows has another form")
		}
		item.Expr = &sqlparser.ColName{Name: sqlparser.NewColIdent(c), Qualifier: sqlparser.TableName{Name: sqlparser.NewTableIdent(name)}}
		item.InputExpression = ""
	}
	from := at(sel)
	if from == nil {
		return nil, nil, fault.New(fault.Internal, "the query of a statement that changes rows has another form")
	}
	database := t.Table.Database
	if database == "" {
		database = w.session.gms.GetCurrentDatabase()
	}
	from.Expr = sqlparser.TableName{Name: sqlparser.NewTableIdent(targetTable), DbQualifier: sqlparser.NewTableIdent(database)}
	from.As = sqlparser.NewTableIdent(name)
	node, _, err := w.binder.buildAST(w.ctx, ast, st.Text, q.args)
	if err != nil {
		return nil, nil, err
	}
	if err := w.state.checkNatural(ast); err != nil {
		return nil, nil, err
	}
	w.stars = append(w.stars, w.state.starWarnings(ast)...)
	tr := w.translator()
	n, err := tr.whole(node)
	if err != nil {
		return nil, nil, err
	}
	p, ok := n.(*plan.Project)
	if !ok || len(p.Items) != len(sel.SelectExprs) {
		return nil, nil, errAggregate
	}
	if err := placed(p); err != nil {
		return nil, nil, err
	}
	return p, tr, nil
}

var errAggregate = fault.New(fault.BadStatement, "Invalid use of group function: aggregates and window functions stand in sub-queries of a statement that changes rows")

func (w *writeBinder) translator() *translator {
	return &translator{binder: w.binder, ctx: w.ctx, state: w.state, ids: w.ids, byRow: true}
}

// placed checks that each row of p is a row of the target (or of a join with it),
// and that its virtual columns are read nowhere but in the first two columns.
func placed(p *plan.Project) error {
	virtual := map[plan.ColumnID]bool{}
	plan.Walk(p, func(n plan.Node) bool {
		if s, ok := n.(*plan.Scan); ok {
			for _, c := range s.Cols {
				if plan.IsVirtual(c.FieldID) {
					virtual[c.ID] = true
				}
			}
		}
		return true
	})
	if len(virtual) != len(virtualFields) {
		return fault.New(fault.Internal, "the table that changes is read twice under one name")
	}
	for i := range 2 {
		r, ok := p.Items[i].Expr.(*plan.Ref)
		if !ok || !virtual[r.ID] {
			return fault.New(fault.Internal, "the place of a changed row is not known")
		}
	}
	elsewhere := false
	look := func(e plan.Expr) {
		for _, id := range plan.Refs(e) {
			elsewhere = elsewhere || virtual[id]
		}
	}
	for _, it := range p.Items[2:] {
		look(it.Expr)
	}
	var below func(n plan.Node) error
	below = func(n plan.Node) error {
		switch n := n.(type) {
		case *plan.Scan, *plan.Values:
			return nil
		case *plan.Project:
			for _, it := range n.Items {
				if r, ok := it.Expr.(*plan.Ref); !ok || r.ID != it.ID {
					look(it.Expr)
				}
			}
		case *plan.Filter:
			look(n.Cond)
		case *plan.Join:
			if n.On != nil {
				look(n.On)
			}
			for _, in := range n.Inputs() {
				if !yields(in, virtual) {
					continue // a source is any query
				}
				if err := below(in); err != nil {
					return err
				}
			}
			return nil
		default:
			return errAggregate
		}
		return below(n.Inputs()[0])
	}
	if err := below(p.Input); err != nil {
		return err
	}
	if elsewhere {
		return fault.New(fault.Internal, "the place of a changed row is read by an expression")
	}
	return nil
}

func yields(n plan.Node, ids map[plan.ColumnID]bool) bool {
	return slices.ContainsFunc(n.Columns(), func(c plan.Column) bool { return ids[c.ID] })
}

// uncommon refuses names with a NUL byte, which are this package's own.
func uncommon(ast sqlparser.SQLNode) error {
	bad := false
	check := func(names ...string) {
		for _, s := range names {
			bad = bad || strings.ContainsRune(s, 0)
		}
	}
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.ColName:
			check(n.Name.String(), n.Qualifier.Name.String(), n.Qualifier.DbQualifier.String())
		case sqlparser.TableName:
			check(n.Name.String(), n.DbQualifier.String())
		case *sqlparser.StarExpr:
			check(n.TableName.Name.String(), n.TableName.DbQualifier.String())
		case *sqlparser.AliasedExpr:
			check(n.As.String())
		case *sqlparser.AliasedTableExpr:
			check(n.As.String())
		case *sqlparser.CommonTableExpr:
			check(n.As.String())
		}
		return !bad, nil
	}, ast)
	if bad {
		return fault.New(fault.Syntax, "syntax error: a name holds a NUL byte")
	}
	return nil
}

// aggregates refuses an aggregate or window function outside of a sub-query, which
// would make groups of the changed rows.
func aggregates(exprs ...parse.Expr) error {
	found := false
	for _, e := range exprs {
		_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
			switch n := n.(type) {
			case *sqlparser.Subquery:
				return false, nil
			case *sqlparser.FuncExpr:
				found = found || aggregating[strings.ToLower(n.Name.String())] || n.Over != nil
			case *sqlparser.GroupConcatExpr:
				found = true
			}
			return !found, nil
		}, e.AST)
	}
	if found {
		return errAggregate
	}
	return nil
}

// column makes a fresh column of the rows.
func (w *writeBinder) column(f plan.Field, e plan.Expr) plan.Item {
	return plan.Item{
		Column: plan.Column{ID: w.ids.New(), Name: f.Name, Type: e.Type(), Nullable: !f.Required && nullable(e)},
		Expr:   e,
	}
}

// place makes fresh columns of the place of a row. Where it may be missing (an
// outer join) they may be NULL.
func (w *writeBinder) place(p *plan.Project) []plan.Item {
	out := make([]plan.Item, 2)
	for i, f := range virtualFields {
		it := p.Items[i]
		out[i] = plan.Item{Column: plan.Column{ID: w.ids.New(), Name: f.Name, Type: f.Type, Nullable: it.Nullable}, Expr: it.Expr}
	}
	return out
}
