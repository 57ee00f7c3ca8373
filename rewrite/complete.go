package rewrite

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// The values of Changes.Op.
const (
	RowDeleted  = 0
	RowUpdated  = 1
	RowInserted = 2
)

// Changes is a governed Write with whole new rows, for a writer. Its plan reads raw
// values of columns that an UPDATE keeps: nothing but a writer of the same table
// may have its rows.
type Changes struct {
	Target *plan.Table
	// Rows yields one row for each change, with the columns below.
	Rows plan.Node
	// Op is one of RowDeleted, RowUpdated and RowInserted, of type Int8. 0 when Rows
	// is a plan.Foreign, whose rows are all inserted.
	Op plan.ColumnID
	// File and Pos are the place of the old row, NULL where there is none; 0 when
	// every row is inserted.
	File, Pos plan.ColumnID
	// Fields are the columns of the new row, parallel to the fields of Target; nil when
	// every row is deleted. A 0 among them (of a plan.Foreign only) is the constant in
	// Fill at its index.
	Fields []plan.ColumnID
	Fill   []*plan.Literal
	// Kept are the columns of the governed rows that a field keeps its value from, by
	// the id of the field: the user sees it as it is.
	Kept map[int]plan.ColumnID
	// Permitted is a boolean column, never NULL: whether the new row fulfils the row
	// filters of Target. The statement must fail, and change nothing, when it is false
	// in any row. 0 when there is no filter.
	Permitted plan.ColumnID
}

// Complete makes the whole new rows of a governed statement (of GovernWrite). What
// an UPDATE or MERGE keeps of a row is read by a scan of the target that stands
// outside of guards and is joined by the place of the row, which is one that the user
// sees. No expression of the user can refer to that scan: its columns become
// columns of the new row, and the row filters of the table are asked about it.
func Complete(w *plan.Write, ids *plan.IDs, lookup func(*plan.Scan) (*Bound, error)) (*Changes, error) {
	target, err := boundTarget(w, lookup)
	if err != nil {
		return nil, err
	}
	c := &completion{w: w, ids: ids, filters: target.filters, out: &Changes{Target: w.Target}}
	if f, ok := w.Rows.(*plan.Foreign); ok {
		return c.foreign(f)
	}
	return c.complete()
}

type completion struct {
	w       *plan.Write
	ids     *plan.IDs
	filters []*template
	out     *Changes
	cols    map[plan.ColumnID]plan.Column // of the governed rows
	raw     map[int]plan.Column           // by field id: of the raw scan
}

// foreign leaves the rows of the row executor as they are.
func (c *completion) foreign(f *plan.Foreign) (*Changes, error) {
	if len(c.w.Branches) != 1 || c.w.Branches[0].Op != plan.InsertRow {
		return nil, fault.New(fault.Internal, "the row executor is to change rows")
	}
	if len(c.filters) > 0 {
		return nil, fault.New(fault.Unsupported, "table '%s' has a row filter that new rows must fulfil, which is not possible with this query (%s)", c.w.Target.Name, f.Reason)
	}
	c.out.Rows = f
	for _, field := range c.w.Target.Fields {
		id := c.w.Branches[0].Values[field.ID]
		c.out.Fields = append(c.out.Fields, id)
		var l *plan.Literal
		if id == 0 {
			l = fill(field)
		}
		c.out.Fill = append(c.out.Fill, l)
	}
	return c.out, nil
}

// fill is the value of a field for which an INSERT gives none.
func fill(f plan.Field) *plan.Literal {
	if f.Default != nil && f.Default.Typ != nil {
		return f.Default
	}
	return &plan.Literal{Typ: f.Type}
}

func (c *completion) complete() (*Changes, error) {
	c.cols = map[plan.ColumnID]plan.Column{}
	for _, col := range c.w.Rows.Columns() {
		c.cols[col.ID] = col
	}
	changesRows, bringsRows, inserts, removes := false, false, false, false
	for _, b := range c.w.Branches {
		changesRows = changesRows || b.Op != plan.InsertRow
		bringsRows = bringsRows || b.Op != plan.DeleteRow
		inserts = inserts || b.Op == plan.InsertRow
		removes = removes || b.Op == plan.DeleteRow
	}
	in := c.w.Rows
	if kept := c.kept(); len(kept) > 0 {
		in = c.join(kept)
	}
	p := &plan.Project{Input: in}
	add := func(name string, e plan.Expr, nullable bool) plan.Column {
		col := plan.Column{ID: c.ids.New(), Name: name, Type: e.Type(), Nullable: nullable}
		p.Items = append(p.Items, plan.Item{Column: col, Expr: e})
		return col
	}
	op := add("op", c.choose(plan.Int8, func(b plan.WriteBranch) plan.Expr { return opLiteral(b.Op) }, nil), false)
	c.out.Op = op.ID
	if changesRows {
		c.out.File = add("_file", c.ref(c.w.File), inserts).ID
		c.out.Pos = add("_pos", c.ref(c.w.Pos), inserts).ID
	}
	c.out.Rows = p
	if !bringsRows {
		return c.out, nil
	}
	row := map[int]plan.Column{}
	for _, f := range c.w.Target.Fields {
		e, err := c.field(f)
		if err != nil {
			return nil, err
		}
		col := add(f.Name, e, true)
		row[f.ID] = col
		c.out.Fields = append(c.out.Fields, col.ID)
	}
	if len(c.filters) == 0 {
		return c.out, nil
	}
	return c.permit(p, op, row, removes)
}

// permit adds whether the new row fulfils the filters, which see its raw values.
func (c *completion) permit(p *plan.Project, op plan.Column, row map[int]plan.Column, removes bool) (*Changes, error) {
	var err error
	conditions := make([]plan.Expr, len(c.filters))
	for i, f := range c.filters {
		conditions[i] = f.instantiate(c.ids, func(s plan.ScanColumn) plan.ColumnID {
			col, ok := row[s.FieldID]
			switch {
			case !ok:
				err = fault.New(fault.Internal, "a row filter of table '%s' reads a column that the table does not have", c.w.Target.Name)
			case !sameType(col.Type, s.Type):
				err = fault.New(fault.Unsupported, "a row filter of table '%s' reads column '%s', which this statement cannot assign", c.w.Target.Name, s.Name)
			}
			return col.ID
		})
	}
	if err != nil {
		return nil, err
	}
	var holds plan.Expr = plan.MustCall("is_true", conjunction(conditions))
	if removes {
		holds = &plan.Case{
			Whens: []plan.When{{Cond: plan.MustCall("eq", ref(op), opLiteral(plan.DeleteRow)), Then: &plan.Literal{Value: true, Typ: plan.Bool}}},
			Else:  holds, Typ: plan.Bool,
		}
	}
	out := &plan.Project{Input: p}
	for _, it := range p.Items {
		out.Items = append(out.Items, plan.Item{Column: it.Column, Expr: ref(it.Column)})
	}
	permitted := plan.Column{ID: c.ids.New(), Name: "permitted", Type: plan.Bool}
	out.Items = append(out.Items, plan.Item{Column: permitted, Expr: holds})
	c.out.Rows, c.out.Permitted = out, permitted.ID
	return c.out, nil
}

func ref(c plan.Column) *plan.Ref { return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name} }

func (c *completion) ref(id plan.ColumnID) *plan.Ref { return ref(c.cols[id]) }

func opLiteral(op plan.WriteOp) *plan.Literal {
	v := map[plan.WriteOp]int64{plan.DeleteRow: RowDeleted, plan.UpdateRow: RowUpdated, plan.InsertRow: RowInserted}[op]
	return &plan.Literal{Value: v, Typ: plan.Int8}
}

// keeps reports whether some branch keeps the field.
func (c *completion) keeps(f plan.Field) bool {
	return slices.ContainsFunc(c.w.Branches, func(b plan.WriteBranch) bool {
		_, assigned := b.Values[f.ID]
		return b.Op == plan.UpdateRow && !assigned
	})
}

// kept are the fields that some branch keeps and that the governed rows do not have.
func (c *completion) kept() []plan.Field {
	var out []plan.Field
	for _, f := range c.w.Target.Fields {
		if id, ok := c.w.Kept[f.ID]; ok && sameType(c.cols[id].Type, f.Type) {
			continue
		}
		if c.keeps(f) {
			out = append(out, f)
		}
	}
	return out
}

// join brings the raw values of the kept fields to the changes.
func (c *completion) join(kept []plan.Field) plan.Node {
	c.raw = map[int]plan.Column{}
	scan := &plan.Scan{Table: c.w.Target}
	add := func(f plan.Field) plan.Column {
		col := plan.Column{ID: c.ids.New(), Name: f.Name, Type: f.Type, Nullable: !f.Required}
		scan.Cols = append(scan.Cols, plan.ScanColumn{Column: col, FieldID: f.ID})
		return col
	}
	for _, f := range kept {
		c.raw[f.ID] = add(f)
	}
	file := add(plan.Field{ID: plan.FileField, Name: "_file", Type: plan.String, Required: true})
	pos := add(plan.Field{ID: plan.PositionField, Name: "_pos", Type: plan.Int64, Required: true})
	return &plan.Join{
		Kind: plan.Left, Left: c.w.Rows, Right: scan,
		On: plan.MustCall("and", plan.MustCall("eq", c.ref(c.w.File), ref(file)), plan.MustCall("eq", c.ref(c.w.Pos), ref(pos))),
	}
}

// choose takes a value by the branch of the row; other is for branches of which value
// gives nil.
func (c *completion) choose(t arrow.DataType, value func(plan.WriteBranch) plan.Expr, other plan.Expr) plan.Expr {
	if c.w.Branch == 0 || len(c.w.Branches) == 1 {
		if e := value(c.w.Branches[0]); e != nil {
			return e
		}
		return other
	}
	out := &plan.Case{Typ: t, Else: other}
	for i, b := range c.w.Branches {
		if e := value(b); e != nil {
			at := &plan.Literal{Value: int64(i), Typ: plan.Int64}
			out.Whens = append(out.Whens, plan.When{Cond: plan.MustCall("eq", c.ref(c.w.Branch), at), Then: e})
		}
	}
	if len(out.Whens) == 0 {
		return other
	}
	return out
}

// field is the new value of a field.
func (c *completion) field(f plan.Field) (plan.Expr, error) {
	raw, kept := c.raw[f.ID]
	// Some values are for the writer to convert, and then all are.
	t := f.Type
	for _, b := range c.w.Branches {
		if id, ok := b.Values[f.ID]; ok && !sameType(c.cols[id].Type, f.Type) {
			t = c.cols[id].Type
		}
	}
	var err error
	as := func(e plan.Expr) plan.Expr {
		x, ok := converted(e, t)
		if !ok {
			err = fault.New(fault.Unsupported, "the values for column '%s' of table '%s' are of several kinds; use CAST, or a statement for each", f.Name, c.w.Target.Name)
		}
		return x
	}
	var other plan.Expr
	if id, ok := c.w.Kept[f.ID]; ok && !kept && c.keeps(f) {
		other = as(c.ref(id))
		if c.out.Kept == nil {
			c.out.Kept = map[int]plan.ColumnID{}
		}
		c.out.Kept[f.ID] = id
	}
	if kept {
		other = as(ref(raw))
	}
	out := c.choose(t, func(b plan.WriteBranch) plan.Expr {
		id, assigned := b.Values[f.ID]
		switch {
		case assigned:
			return as(c.ref(id))
		case b.Op == plan.InsertRow:
			return as(fill(f))
		}
		return nil
	}, other)
	if out == nil {
		return nil, fault.New(fault.Internal, "a new row has no value for a column")
	}
	return out, err
}

// converted is a value as one of the types that a writer converts back exactly.
func converted(e plan.Expr, t arrow.DataType) (plan.Expr, bool) {
	from := e.Type()
	if sameType(from, t) {
		return e, true
	}
	if l, ok := e.(*plan.Literal); ok && l.Value == nil {
		return &plan.Literal{Typ: t}, true
	}
	switch {
	case plan.IsNested(from) && plan.IsJSON(t):
		return plan.MustCall("to_json", e), true
	case plan.IsUUID(from) && plan.IsString(t), from.ID() == arrow.FIXED_SIZE_BINARY && t.ID() == arrow.BINARY:
		return &plan.Cast{Operand: e, Typ: t}, true
	}
	return e, false
}
