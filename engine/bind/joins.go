package bind

import (
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/plan"
)

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
	for _, c := range j.Columns() {
		if c.Nullable {
			t.redefine(c)
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
