package bind

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

func (w *writeBinder) insert(s *parse.Insert) (*plan.Write, []Partition, error) {
	if err := w.find(s.Table, false); err != nil {
		return nil, nil, err
	}
	partition, err := w.partition(s)
	if err != nil {
		return nil, nil, err
	}
	fields := w.insertFields(s, partition)
	r, err := w.source(s, fields)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range partition {
		if p.Value == nil {
			continue
		}
		if r.project == nil {
			return nil, nil, fault.New(fault.Unsupported, "PARTITION with a value is not possible with a query that is not translated whole; give the column in the query")
		}
		f, _ := w.target.Table.Field(p.Field)
		r.add(w.column(f, p.Value), f)
	}
	// What nothing was given for gets its default, which must exist.
	for _, f := range w.target.Table.Fields {
		if _, given := r.values[f.ID]; !given {
			w.fill(f)
		}
	}
	return &plan.Write{
		Target: w.target.Table, Overwrite: s.Overwrite, Rows: r.rows(),
		Branches: []plan.WriteBranch{{Op: plan.InsertRow, Values: r.values}},
	}, partition, nil
}

// rowSource is what the source of an INSERT yields.
type rowSource struct {
	root    plan.Node // without project
	project *plan.Project
	values  map[int]plan.ColumnID
	t       *translator
}

func (r *rowSource) add(it plan.Item, f plan.Field) {
	r.project.Items = append(r.project.Items, it)
	r.values[f.ID] = it.ID
}

func (r *rowSource) rows() plan.Node {
	if r.project == nil {
		return r.root
	}
	return r.t.accept(r.project)
}

// partition binds PARTITION (...).
func (w *writeBinder) partition(s *parse.Insert) ([]Partition, error) {
	var out []Partition
	for _, p := range s.Partition {
		f := w.field(p.Column)
		if slices.ContainsFunc(out, func(o Partition) bool { return o.Field == f.ID }) {
			refuse(fault.BadStatement, "Column '%s' stands twice in PARTITION", f.Name)
		}
		one := Partition{Field: f.ID}
		if p.Value != nil {
			q := &queryText{all: w.args}
			q.WriteString("SELECT ")
			q.expr(*p.Value)
			n, t, err := w.query(q.String(), q.args, false)
			if err != nil {
				return nil, err
			}
			if project, ok := n.(*plan.Project); ok && len(project.Items) == 1 {
				one.Value, _ = t.assign(project.Items[0].Expr, f).(*plan.Literal)
			}
			if one.Value == nil {
				refuse(fault.BadStatement, "the value of column '%s' in PARTITION is not a constant of its type", f.Name)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// insertFields are the fields for the columns of the source, by position; nil when
// they go by name.
func (w *writeBinder) insertFields(s *parse.Insert, partition []Partition) []plan.Field {
	fixed := func(f plan.Field) bool {
		return slices.ContainsFunc(partition, func(p Partition) bool { return p.Field == f.ID && p.Value != nil })
	}
	var out []plan.Field
	switch {
	case s.ByName, s.Source == nil:
		return nil
	case s.Columns == nil:
		for _, f := range w.target.Table.Fields {
			if !fixed(f) {
				out = append(out, w.assignable(f))
			}
		}
		return out
	}
	for _, name := range s.Columns {
		f := w.field(name)
		if fixed(f) || slices.ContainsFunc(out, func(o plan.Field) bool { return o.ID == f.ID }) {
			refuse(fault.BadStatement, "Column '%s' specified twice", f.Name)
		}
		out = append(out, f)
	}
	return out
}

// query binds a query of the statement. foreign says that the row executor may run
// it.
func (w *writeBinder) query(text string, args []plan.Literal, foreign bool) (plan.Node, *translator, error) {
	node, flags, err := w.node(text, args)
	if err != nil {
		return nil, nil, err
	}
	t := w.translator()
	if !foreign {
		n, err := t.whole(node)
		return n, t, err
	}
	n, err := t.root(node, flags)
	return n, t, err
}

func (w *writeBinder) node(text string, args []plan.Literal) (sql.Node, *sql.QueryFlags, error) {
	ast, err := prepareAST(&parse.SQL{Text: text, Kind: parse.Query})
	if err != nil {
		return nil, nil, err
	}
	w.ast = ast
	node, flags, err := w.binder.buildAST(w.ctx, ast, text, args)
	if err != nil {
		return nil, nil, err
	}
	if err := w.state.checkNatural(ast); err != nil {
		return nil, nil, err
	}
	w.stars = append(w.stars, w.state.starWarnings(ast)...)
	return node, flags, nil
}

// source binds what yields the rows.
func (w *writeBinder) source(s *parse.Insert, fields []plan.Field) (*rowSource, error) {
	if s.Source == nil {
		one := &plan.Values{Rows: [][]plan.Expr{{}}}
		return &rowSource{t: w.translator(), values: map[int]plan.ColumnID{}, project: &plan.Project{Input: one}}, nil
	}
	args := w.args[s.Source.Param : s.Source.Param+s.Source.Params]
	node, flags, err := w.node(s.Source.Text, args)
	if err != nil {
		return nil, err
	}
	if s.Rows != nil {
		r, reason, err := w.rows(s, node, fields)
		if err != nil || reason == "" {
			return r, err
		}
		if len(s.Defaults) > 0 {
			return nil, fault.New(fault.Unsupported, "%s is not supported beside DEFAULT; insert these rows by themselves, without the column", reason)
		}
	}
	t := w.translator()
	n, err := t.root(node, flags)
	if err != nil {
		return nil, err
	}
	cols := n.Columns()
	if fields == nil {
		fields = w.byName(cols)
	}
	if len(cols) != len(fields) {
		refuse(fault.BadStatement, "Column count doesn't match value count: the query yields %d columns for %d; name the columns of the table", len(cols), len(fields))
	}
	out := &rowSource{t: t, root: n, values: map[int]plan.ColumnID{}}
	if _, ok := n.(*plan.Foreign); ok {
		for i, f := range fields {
			if !storable(cols[i].Type, f) {
				mismatch(reference(cols[i]), f)
			}
			out.values[f.ID] = cols[i].ID
		}
		return out, nil
	}
	out.project = &plan.Project{Input: n}
	exprs := make([]plan.Expr, len(cols))
	if p, ok := n.(*plan.Project); ok {
		out.project.Input = p.Input
		for i := range p.Items {
			exprs[i] = p.Items[i].Expr
		}
	} else {
		for i, c := range cols {
			exprs[i] = reference(c)
		}
	}
	for i, f := range fields {
		it := w.column(f, t.assign(constant(exprs[i], out.project.Input), f))
		out.add(it, f)
	}
	return out, nil
}

// byName finds the fields for columns of a query by their names.
func (w *writeBinder) byName(cols []plan.Column) []plan.Field {
	out := make([]plan.Field, len(cols))
	for i, c := range cols {
		f, ok := w.target.Table.FieldNamed(c.Name)
		if !ok {
			refuse(fault.NoColumn, "Unknown column '%s' in the table: BY NAME takes the names of the query's columns; give it the name of a column by AS", c.Name)
		}
		out[i] = w.assignable(f)
		if slices.ContainsFunc(out[:i], func(o plan.Field) bool { return o.ID == f.ID }) {
			refuse(fault.BadStatement, "Column '%s' specified twice", f.Name)
		}
	}
	return out
}

// constant is the literal that a column of n always has, so that it is read as one
// of the column that it goes into; else e.
func constant(e plan.Expr, n plan.Node) plan.Expr {
	r, ok := e.(*plan.Ref)
	for ok {
		switch in := n.(type) {
		case *plan.Project:
			i := slices.IndexFunc(in.Items, func(it plan.Item) bool { return it.ID == r.ID })
			if i < 0 {
				return e
			}
			if l, isLiteral := in.Items[i].Expr.(*plan.Literal); isLiteral {
				return l
			}
			if r, ok = in.Items[i].Expr.(*plan.Ref); !ok {
				return e
			}
			n = in.Input
		case *plan.Filter, *plan.Sort, *plan.Limit, *plan.Distinct:
			n = in.Inputs()[0]
		default:
			return e
		}
	}
	return e
}

// storable reports whether the writer may convert values of a type that the row
// executor yields. Whether a value fits is its own question, which it asks.
func storable(from arrow.DataType, f plan.Field) bool {
	to := storedType(f)
	switch {
	case arrow.TypeEqual(from, to), from.ID() == arrow.NULL:
		return true
	case plan.IsJSON(to), plan.IsJSON(from), plan.IsString(to), to.ID() == arrow.BOOL, from.ID() == arrow.BOOL:
		return false
	case plan.IsUUID(to):
		return plan.IsString(from)
	case to.ID() == arrow.FIXED_SIZE_BINARY:
		return from.ID() == arrow.BINARY
	case plan.IsNumeric(to):
		return plan.IsNumeric(from)
	case to.ID() == arrow.TIMESTAMP:
		return plan.IsTemporal(from)
	}
	return false
}

// rows translates rows that the statement lists: each value is for its column,
// whatever stands above and below it. reason is not "" when a value has no place in
// a plan.
func (w *writeBinder) rows(s *parse.Insert, node sql.Node, fields []plan.Field) (out *rowSource, reason string, err error) {
	table := listedRows(node)
	if table == nil || len(table.ExpressionTuples) != len(s.Rows) {
		return nil, "", fault.New(fault.Internal, "the listed rows are bound in another form")
	}
	t := w.translator()
	t.push()
	defer t.pop()
	v := &plan.Values{Rows: make([][]plan.Expr, len(table.ExpressionTuples))}
	defaults := s.Defaults
	var byRow *rowCalls
	for i, tuple := range table.ExpressionTuples {
		if len(tuple) != len(fields) {
			refuse(fault.BadStatement, "Column count doesn't match value count at row %d", i+1)
		}
		v.Rows[i] = make([]plan.Expr, len(tuple))
		for j, e := range tuple {
			if len(defaults) > 0 && defaults[0] == (parse.Cell{Row: i, Column: j}) {
				defaults = defaults[1:]
				v.Rows[i][j] = w.fill(fields[j])
				continue
			}
			var x plan.Expr
			reason := why(func() { x = t.expr(e) })
			if reason != "" {
				if byRow == nil {
					byRow = newRowCalls()
				}
				t.rows = byRow
				if again := why(func() { x = t.expr(e) }); again != "" {
					return nil, reason, nil
				}
				t.rows = nil
			}
			v.Rows[i][j] = t.assign(x, fields[j])
		}
	}
	values := map[int]plan.ColumnID{}
	for j, f := range fields {
		c := plan.Column{ID: w.ids.New(), Name: f.Name, Type: storedType(f)}
		for i := range v.Rows {
			x := v.Rows[i][j]
			if i == 0 {
				c.Type = x.Type()
			}
			if !arrow.TypeEqual(x.Type(), c.Type) {
				return nil, "", fault.New(fault.Unsupported, "the values for column '%s' are of several kinds; insert the rows that compute it by themselves", f.Name)
			}
			c.Nullable = c.Nullable || nullable(x) && !f.Required
		}
		v.Cols = append(v.Cols, c)
		values[f.ID] = c.ID
	}
	if reason := why(func() { t.accept(v) }); reason != "" {
		return nil, reason, nil
	}
	for _, r := range v.Rows {
		for _, e := range r {
			if err := checkExpr(e, nil); err != nil {
				return nil, "", fault.Wrap(fault.Unsupported, err, "a value uses names in a way that is not supported; use INSERT ... SELECT")
			}
		}
	}
	// Columns pass through, so that more can stand beside them.
	p := &plan.Project{Input: v}
	for _, c := range v.Cols {
		p.Items = append(p.Items, plan.Item{Column: c, Expr: reference(c)})
	}
	return &rowSource{t: t, project: p, values: values}, "", nil
}

// why runs a translation and says why it has no place in the plan.
func why(translate func()) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			f, isFailure := p.(failure)
			if !isFailure {
				panic(p)
			}
			u, cannot := f.err.(untranslatable)
			if !cannot {
				panic(p)
			}
			reason = u.reason
		}
	}()
	translate()
	return ""
}

// listedRows finds the rows below what go-mysql-server puts around them.
func listedRows(n sql.Node) *gmsplan.ValueDerivedTable {
	for {
		if v, ok := n.(*gmsplan.ValueDerivedTable); ok {
			return v
		}
		if len(n.Children()) != 1 {
			return nil
		}
		n = n.Children()[0]
	}
}
