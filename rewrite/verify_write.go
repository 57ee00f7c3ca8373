package rewrite

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// VerifyWrite is Verify for what GovernWrite makes. Besides, it holds that
//
//   - the place of a row is read in one guard, of the target, and nowhere else;
//   - the place of a changed row is what that guard yields, unchanged, so that
//     rows that the guard hides cannot be changed;
//   - every value is a column of the rows.
//
// Like Verify it shares no code with what makes the plan.
func VerifyWrite(w *plan.Write) error {
	if w.Target == nil || len(w.Branches) == 0 {
		return violation("a statement changes nothing")
	}
	v := &verifier{target: w.Target}
	if err := v.outside(w.Rows); err != nil {
		return err
	}
	if err := v.changes(w); err != nil {
		return err
	}
	return v.finish()
}

// changes checks what a write says of its rows.
func (v *verifier) changes(w *plan.Write) error {
	cols := map[plan.ColumnID]plan.Column{}
	for _, c := range w.Rows.Columns() {
		cols[c.ID] = c
	}
	places := false
	for _, b := range w.Branches {
		if b.Op < plan.InsertRow || b.Op > plan.DeleteRow {
			return violation("it is not known which change a row is")
		}
		if w.Overwrite && b.Op != plan.InsertRow {
			return violation("rows are replaced and changed at once")
		}
		places = places || b.Op != plan.InsertRow
		for field, id := range b.Values {
			_, isField := w.Target.Field(field)
			if _, ok := cols[id]; !ok || !isField || b.Op == plan.DeleteRow {
				return violation("a value of a new row is not one of the statement")
			}
		}
	}
	if len(w.Branches) > 1 {
		if c, ok := cols[w.Branch]; !ok || c.Type.ID() != arrow.INT64 {
			return violation("it is not known which change a row is")
		}
	}
	if !places {
		return nil
	}
	return placed(w.Rows, w.File, w.Pos)
}

// placed checks that the columns are the place of rows that one guard shows.
func placed(n plan.Node, file, pos plan.ColumnID) error {
	f, okFile := origin(n, file, plan.FileField)
	p, okPos := origin(n, pos, plan.PositionField)
	if !okFile || !okPos || f != p {
		return violation("the place of a changed row is not one that a guard shows")
	}
	return nil
}

// origin finds the guard that yields a virtual column, which nothing in between may
// compute.
func origin(n plan.Node, id plan.ColumnID, field int) (*plan.Guard, bool) {
	yields := func(n plan.Node) bool {
		return slices.ContainsFunc(n.Columns(), func(c plan.Column) bool { return c.ID == id })
	}
	for n != nil && yields(n) {
		switch in := n.(type) {
		case *plan.Filter:
			n = in.Input
		case *plan.Join:
			if n = in.Left; !yields(n) {
				n = in.Right
			}
		case *plan.Project:
			i := slices.IndexFunc(in.Items, func(it plan.Item) bool { return it.ID == id })
			r, ok := in.Items[i].Expr.(*plan.Ref)
			if !ok {
				return nil, false
			}
			n, id = in.Input, r.ID
		case *plan.Guard:
			return in, shows(in, id, field)
		default:
			return nil, false
		}
	}
	return nil, false
}

// shows reports whether a guard yields the field unchanged under the id.
func shows(g *plan.Guard, id plan.ColumnID, field int) bool {
	p, ok := g.Input.(*plan.Project)
	if !ok {
		return false
	}
	var in plan.Node = p.Input
	if f, ok := in.(*plan.Filter); ok {
		in = f.Input
	}
	scan, ok := in.(*plan.Scan)
	if !ok {
		return false
	}
	i := slices.IndexFunc(p.Items, func(it plan.Item) bool { return it.ID == id })
	if i < 0 {
		return false
	}
	r, ok := p.Items[i].Expr.(*plan.Ref)
	return ok && slices.ContainsFunc(scan.Cols, func(c plan.ScanColumn) bool { return c.ID == r.ID && c.FieldID == field })
}

// VerifyChanges checks what Complete makes, also after Pushdown: its shape is
//
//	[Project(the row, permitted)] over Project(the row) over
//	[Left Join by place with a raw Scan of the target, right of] the governed rows,
//
// with nothing between. Of the raw scan, each column goes into its own field of the
// new row, as it is or in the form that a writer converts back, and nowhere else;
// only the check of the new row, which is a policy's and reads no table of the user,
// refers to it then.
func VerifyChanges(c *Changes) error {
	if c.Target == nil || c.Target.Metadata != "" {
		return violation("a statement changes nothing")
	}
	v := &verifier{target: c.Target}
	if f, ok := c.Rows.(*plan.Foreign); ok {
		if c.Op != 0 || c.File != 0 || c.Pos != 0 || c.Permitted != 0 {
			return violation("the row executor changes rows")
		}
		if err := v.outside(f); err != nil {
			return err
		}
		return v.finish()
	}
	top, ok := c.Rows.(*plan.Project)
	if !ok {
		return violation("the changes of a statement have another form")
	}
	row := top
	if c.Permitted != 0 {
		if row, ok = top.Input.(*plan.Project); !ok {
			return violation("the check of new rows has another form")
		}
	}
	in := row.Input
	var raw *plan.Scan
	var join *plan.Join
	if j, ok := in.(*plan.Join); ok {
		if s, ok := j.Right.(*plan.Scan); ok {
			raw, join, in = s, j, j.Left
		}
	}
	if err := v.outside(in); err != nil {
		return err
	}
	by := int32(0)
	if raw != nil {
		v.guards++
		by = v.guards
		if err := v.raw(join, raw, c.Target, by); err != nil {
			return err
		}
		if err := placed(in, operand(join.On, 0), operand(join.On, 1)); err != nil {
			return err
		}
	}
	if err := v.row(c, row, in, raw, by); err != nil {
		return err
	}
	if c.Permitted != 0 {
		if err := v.permitted(c, top, row); err != nil {
			return err
		}
	}
	return v.finish()
}

// operand is the left column of comparison i of the condition of the join by place.
func operand(on plan.Expr, i int) plan.ColumnID {
	return on.Args()[i].Args()[0].(*plan.Ref).ID
}

// raw checks the scan outside of guards and its join.
func (v *verifier) raw(j *plan.Join, s *plan.Scan, target *plan.Table, by int32) error {
	if s.Table != target || s.Definer || s.Prune != nil {
		return violation("a table is read outside a guard")
	}
	fields := map[plan.ColumnID]int{}
	for _, c := range s.Cols {
		if !v.own(c.ID, by) {
			return violation("a raw column is made twice")
		}
		fields[c.ID] = c.FieldID
		if f, ok := target.Field(c.FieldID); ok && sameType(f.Type, c.Type) {
			continue
		}
		if c.FieldID != plan.FileField && c.FieldID != plan.PositionField {
			return violation("a raw column is none of its table")
		}
	}
	and, ok := j.On.(*plan.Call)
	if !ok || j.Kind != plan.Left || j.Lateral || and.Func.Name != "and" || len(and.Operands) != 2 {
		return violation("raw rows are joined in another way than by their place")
	}
	for i, field := range []int{plan.FileField, plan.PositionField} {
		eq, ok := and.Operands[i].(*plan.Call)
		if !ok || eq.Func.Name != "eq" || len(eq.Operands) != 2 {
			return violation("raw rows are joined in another way than by their place")
		}
		l, okLeft := eq.Operands[0].(*plan.Ref)
		r, okRight := eq.Operands[1].(*plan.Ref)
		if !okLeft || !okRight || v.ownerOf(l.ID) != 0 || fields[r.ID] != field {
			return violation("raw rows are joined in another way than by their place")
		}
	}
	return nil
}

// row checks the projection of the new row.
func (v *verifier) row(c *Changes, p *plan.Project, in plan.Node, raw *plan.Scan, by int32) error {
	for i := range p.Items {
		it := &p.Items[i]
		field := slices.Index(c.Fields, it.ID)
		switch {
		case field >= len(c.Target.Fields), it.ID <= 0:
			return violation("a new row has more columns than its table")
		case field >= 0:
			if err := v.value(it.Expr, c.Target.Fields[field].ID, raw, by); err != nil {
				return err
			}
		case it.ID == c.File, it.ID == c.Pos:
			if _, ok := it.Expr.(*plan.Ref); !ok {
				return violation("the place of a changed row is computed")
			}
			fallthrough
		case it.ID == c.Op:
			if err := v.plain(it.Expr); err != nil {
				return err
			}
		default:
			return violation("the changes of a statement have a column more")
		}
		if !v.own(it.ID, made) {
			return violation("a raw column is shown under its own id")
		}
	}
	has := func(id plan.ColumnID) bool {
		return slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.ID == id })
	}
	if !has(c.Op) || len(c.Fields) != 0 && len(c.Fields) != len(c.Target.Fields) || slices.ContainsFunc(c.Fields, func(id plan.ColumnID) bool { return !has(id) }) {
		return violation("the changes of a statement lack a column")
	}
	if c.File == 0 && c.Pos == 0 && raw == nil {
		if len(c.Kept) > 0 {
			return violation("a new row keeps a value of no old one")
		}
		return nil
	}
	source := func(id plan.ColumnID) plan.ColumnID {
		for i := range p.Items {
			if r, ok := p.Items[i].Expr.(*plan.Ref); ok && p.Items[i].ID == id {
				return r.ID
			}
		}
		return 0
	}
	if err := placed(in, source(c.File), source(c.Pos)); err != nil {
		return err
	}
	place, _ := origin(in, source(c.File), plan.FileField)
	for field, id := range c.Kept {
		if g, ok := origin(in, id, field); !ok || g != place {
			return violation("a kept value is not that of the old row as it is")
		}
	}
	return nil
}

// value checks the new value of a field: a value of the statement, the raw value of
// the same field, or one of them by the branch of the row.
func (v *verifier) value(e plan.Expr, field int, raw *plan.Scan, by int32) error {
	if ok, err := v.kept(e, field, raw, by); ok || err != nil {
		return err
	}
	c, ok := e.(*plan.Case)
	if !ok {
		return v.plain(e)
	}
	for _, w := range c.Whens {
		if err := v.plain(w.Cond); err != nil {
			return err
		}
		if err := v.plain(w.Then); err != nil {
			return err
		}
	}
	if c.Else == nil {
		return nil
	}
	if ok, err := v.kept(c.Else, field, raw, by); ok || err != nil {
		return err
	}
	return v.plain(c.Else)
}

// kept reports whether e is a raw column, which then must be that of the field.
func (v *verifier) kept(e plan.Expr, field int, raw *plan.Scan, by int32) (bool, error) {
	inner := e
	switch x := e.(type) {
	case *plan.Call:
		if x.Func.Name == "to_json" {
			inner = x.Operands[0]
		}
	case *plan.Cast:
		inner = x.Operand
	}
	r, ok := inner.(*plan.Ref)
	if !ok || by == 0 || v.ownerOf(r.ID) != by {
		return false, nil
	}
	if !slices.ContainsFunc(raw.Cols, func(c plan.ScanColumn) bool { return c.ID == r.ID && c.FieldID == field }) {
		return false, violation("a raw value goes into another column")
	}
	return true, nil
}

// plain checks an expression that may not refer to raw columns.
func (v *verifier) plain(e plan.Expr) error {
	var err error
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref:
			if v.ownerOf(e.ID) != 0 {
				err = violation("an expression of a statement refers to a raw column")
			}
		case *plan.Subquery:
			err = violation("a sub-query stands in a new row")
		}
		return err == nil
	})
	return err
}

// permitted checks the projection that adds the check of new rows: it passes the row
// on and computes nothing else.
func (v *verifier) permitted(c *Changes, top, row *plan.Project) error {
	if len(top.Items) != len(row.Items)+1 {
		return violation("the check of new rows has another form")
	}
	for i := range row.Items {
		r, ok := top.Items[i].Expr.(*plan.Ref)
		if !ok || r.ID != row.Items[i].ID || top.Items[i].ID != r.ID || !sameType(top.Items[i].Type, row.Items[i].Type) {
			return violation("the check of new rows changes them")
		}
	}
	check := top.Items[len(row.Items)]
	if check.ID != c.Permitted || check.Type.ID() != arrow.BOOL || check.Expr.Type().ID() != arrow.BOOL || len(c.Fields) == 0 {
		return violation("the check of new rows is no condition")
	}
	// What it makes is its own, like in a guard; what it reads besides is the row.
	v.guards++
	by := v.guards
	scope := map[plan.ColumnID]bool{}
	for i := range row.Items {
		scope[row.Items[i].ID] = true
	}
	if err := v.policy(check.Expr, by, scope); err != nil {
		return err
	}
	if !v.own(check.ID, made) {
		return violation("a column is made twice")
	}
	return nil
}

// policy checks an expression of a policy over the columns in scope.
func (v *verifier) policy(e plan.Expr, by int32, scope map[plan.ColumnID]bool) error {
	var err error
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref:
			if !scope[e.ID] {
				err = violation("the check of new rows refers to a column of elsewhere")
			}
		case *plan.Subquery:
			err = v.definerOver(e.Plan, by, scope)
		}
		return err == nil
	})
	return err
}

// definerOver is definer for a sub-query that may refer to the columns in scope too.
func (v *verifier) definerOver(n plan.Node, by int32, scope map[plan.ColumnID]bool) error {
	var err error
	plan.Walk(n, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Scan:
			if !n.Definer || slices.ContainsFunc(n.Cols, func(c plan.ScanColumn) bool { return plan.IsVirtual(c.FieldID) }) {
				err = violation("the check of new rows reads a table with the rights of the user")
			}
		case *plan.Guard, *plan.Foreign:
			err = violation("the check of new rows holds a piece that cannot stand there")
		}
		plan.Defined(n, func(id plan.ColumnID) {
			if !v.own(id, by) {
				err = violation("a column of a policy is made twice")
			}
		})
		return err == nil
	})
	if err != nil {
		return err
	}
	plan.Walk(n, func(n plan.Node) bool {
		for _, e := range n.Exprs() {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				if r, ok := e.(*plan.Ref); ok && v.ownerOf(r.ID) != by && !scope[r.ID] {
					err = violation("the check of new rows refers to a column of elsewhere")
				}
				return err == nil
			})
		}
		return err == nil
	})
	return err
}
