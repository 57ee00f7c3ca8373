package rewrite

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// Verify checks that a plan can show nothing but what guards let through. It runs
// on every statement and shares no code with Govern, so that a defect there ends
// in an error and not in a leak. It holds that
//
//   - every Scan is the bottom of a Guard: Guard(Project([Filter](Scan))), over
//     the table that the guard names;
//   - inside a guard, expressions refer to columns of its own scan only (and, in
//     the filter, of the filter's own sub-queries);
//   - a column of the guard that is not exactly a raw column is in Guard.Masked;
//   - scans marked Definer stand in sub-queries of a guard's filter and nowhere
//     else, and only such scans stand there;
//   - a policy computes nothing by row: what does is bound for one statement of a user;
//   - no column made inside a guard is referred to, or made again, outside;
//   - nothing reads where a row lies (VerifyWrite is for statements that do).
//
// It cannot know whether a mask or filter is the right one.
func Verify(root plan.Node) error {
	v := &verifier{}
	if err := v.outside(root); err != nil {
		return err
	}
	return v.finish()
}

// finish checks the references that were collected.
func (v *verifier) finish() error {
	// Only now are the columns of every guard known, whatever the order of nodes.
	for _, id := range v.refs {
		if v.ownerOf(id) != 0 {
			return violation("an expression above a guard refers to a raw column")
		}
	}
	return nil
}

func violation(what string) error {
	return fault.New(fault.Internal, "the plan breaks a rule of protection (%s) and does not run", what)
}

type verifier struct {
	// owner holds for each column id the number of the guard in which it is made;
	// made says that it is made outside.
	owner  []int32
	guards int32
	refs   []plan.ColumnID // of expressions outside guards
	// target is the table of which guards may show the place of a row; nil in a query.
	target *plan.Table
}

const made int32 = -1

func (v *verifier) ownerOf(id plan.ColumnID) int32 {
	if id <= 0 || int(id) >= len(v.owner) || v.owner[id] == made {
		return 0
	}
	return v.owner[id]
}

// own notes who makes a column. A node may pass a column on under its id, so that
// the same owner may make it again, but nobody else.
func (v *verifier) own(id plan.ColumnID, by int32) bool {
	if id <= 0 {
		return false
	}
	for int(id) >= len(v.owner) {
		v.owner = append(v.owner, make([]int32, max(64, len(v.owner)))...)
	}
	if v.owner[id] != 0 && v.owner[id] != by {
		return false
	}
	v.owner[id] = by
	return true
}

// outside checks what is not in a guard.
func (v *verifier) outside(n plan.Node) error {
	switch n := n.(type) {
	case *plan.Scan:
		return violation("a table is read outside a guard")
	case *plan.Guard:
		return v.guard(n)
	}
	ok := true
	plan.Defined(n, func(id plan.ColumnID) { ok = ok && v.own(id, made) })
	if !ok {
		return violation("a column is made twice")
	}
	var err error
	for _, e := range n.Exprs() {
		plan.WalkExpr(e, func(e plan.Expr) bool {
			switch e := e.(type) {
			case *plan.Ref:
				v.refs = append(v.refs, e.ID)
			case *plan.Subquery:
				if err == nil {
					err = v.outside(e.Plan)
				}
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	for _, in := range n.Inputs() {
		if err := v.outside(in); err != nil {
			return err
		}
	}
	return nil
}

// guard checks one guard.
func (v *verifier) guard(g *plan.Guard) error {
	v.guards++
	by := v.guards
	// The shape is exact: a node more could duplicate, reorder or drop rows before
	// the filter sees them.
	project, ok := g.Input.(*plan.Project)
	if !ok {
		return violation("a guard has no projection")
	}
	in := project.Input
	filter, filtered := in.(*plan.Filter)
	if filtered {
		in = filter.Input
	}
	scan, ok := in.(*plan.Scan)
	switch {
	case !ok:
		return violation("a guard holds more than filter and scan")
	case scan.Definer || scan.Table == nil || scan.Table != g.Table:
		return violation("a guard reads another table than it names")
	case filtered != g.Filtered:
		return violation("a guard does not say whether it filters")
	}
	for _, c := range scan.Cols {
		if !v.own(c.ID, by) {
			return violation("a raw column is made twice")
		}
		if plan.IsVirtual(c.FieldID) && (scan.Table != v.target || c.FieldID != plan.FileField && c.FieldID != plan.PositionField) {
			return violation("a query reads where a row lies")
		}
	}
	if scan.Prune != nil {
		if err := v.inside(scan.Prune, by, false); err != nil {
			return err
		}
	}
	if filtered {
		if err := v.inside(filter.Cond, by, true); err != nil {
			return err
		}
	}
	for i := range project.Items {
		it := &project.Items[i]
		ref, raw := it.Expr.(*plan.Ref)
		switch {
		case raw && v.ownerOf(ref.ID) != by:
			return violation("a guard shows a column of elsewhere")
		case raw && !sameType(ref.Typ, it.Type), !raw && !sameType(it.Expr.Type(), it.Type):
			return violation("a mask changes the type of its column")
		case !raw && !g.Masked[it.ID]:
			return violation("a computed column of a guard is not marked as masked")
		}
		if !raw {
			if err := v.inside(it.Expr, by, false); err != nil {
				return err
			}
		}
		// Last, so that an item cannot vouch for its own expression.
		if !v.own(it.ID, made) {
			return violation("a guard shows a raw column under its own id")
		}
	}
	return nil
}

// inside checks an expression inside a guard.
func (v *verifier) inside(e plan.Expr, by int32, subqueries bool) error {
	var err error
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref:
			if v.ownerOf(e.ID) != by {
				err = violation("a policy refers to a column of elsewhere")
			}
		case *plan.RowCall:
			err = violation("a policy computes by row")
		case *plan.Subquery:
			if !subqueries {
				err = violation("a sub-query stands in a mask")
				break
			}
			err = v.definer(e.Plan, by)
		}
		return err == nil
	})
	return err
}

// definer checks the plan of a sub-query of a filter: what it makes belongs to
// the guard, and it reads tables of the policy only.
func (v *verifier) definer(n plan.Node, by int32) error {
	var err error
	plan.Walk(n, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Scan:
			if !n.Definer {
				err = violation("a filter reads a table with the rights of the user")
			}
			if slices.ContainsFunc(n.Cols, func(c plan.ScanColumn) bool { return plan.IsVirtual(c.FieldID) }) {
				err = violation("a filter reads where a row lies")
			}
		case *plan.Guard, *plan.Foreign:
			err = violation("a filter holds a piece that cannot stand there")
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
			// Sub-queries inside are visited by Walk itself.
			plan.WalkExpr(e, func(e plan.Expr) bool {
				if r, ok := e.(*plan.Ref); ok && v.ownerOf(r.ID) != by {
					err = violation("a policy refers to a column of elsewhere")
				}
				if _, ok := e.(*plan.RowCall); ok {
					err = violation("a policy computes by row")
				}
				return err == nil
			})
		}
		return err == nil
	})
	return err
}

// sameType is TypeEqual, fast for the types that are shared values.
func sameType(a, b arrow.DataType) bool { return a == b || arrow.TypeEqual(a, b) }
