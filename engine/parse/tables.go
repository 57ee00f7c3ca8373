package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// The bounds of how many tables a statement may name. The work of choosing an
// order of joins grows faster than the square of their number, and a common table
// expression that is used twice in the next one doubles with each.
const (
	// MaxJoined is MySQL's own bound of tables in one FROM clause.
	MaxJoined = 61
	// MaxTables bounds the uses of tables in a statement, with each common table
	// expression counted at each of its uses.
	MaxTables = 256
)

// countTables adds the uses of tables in a part of the statement to those that
// were read before, and refuses too many.
func (p *parser) countTables(ast sqlparser.SQLNode) error {
	n, err := 0, error(nil)
	if ast != nil {
		n, err = tableCounter{}.node(ast, nil)
	}
	if p.tables += n; err == nil && p.tables > MaxTables {
		err = fault.New(fault.Limit, "the statement uses tables more than %d times (a common table expression counts at each use); divide it into several statements", MaxTables)
	}
	return err
}

// uses is the number of uses of tables in common table expressions, by name.
type uses map[string]int

type tableCounter struct{}

// node counts the uses of tables in and below n. The count stops growing past the
// bound, so that it cannot overflow.
func (c tableCounter) node(n sqlparser.SQLNode, outer uses) (int, error) {
	total := 0
	err := sqlparser.Walk(func(x sqlparser.SQLNode) (bool, error) {
		var count int
		var err error
		switch x := x.(type) {
		case *sqlparser.Select:
			if x == nil {
				return false, nil
			}
			count, err = c.selection(x, outer)
		case *sqlparser.SetOp:
			if x == nil {
				return false, nil
			}
			count, err = c.setOp(x, outer)
		case *sqlparser.AliasedTableExpr:
			name, ok := x.Expr.(sqlparser.TableName)
			if !ok {
				return true, nil
			}
			count = 1
			if n, found := outer[strings.ToLower(name.Name.String())]; found && name.DbQualifier.IsEmpty() {
				count = max(1, n)
			}
		default:
			return true, nil
		}
		total = min(total+count, MaxTables+1)
		return false, err
	}, n)
	return total, err
}

// with counts the common table expressions in the order in which they see each
// other.
func (c tableCounter) with(w *sqlparser.With, outer uses) (uses, error) {
	if w == nil {
		return outer, nil
	}
	inner := make(uses, len(outer)+len(w.Ctes))
	for k, v := range outer {
		inner[k] = v
	}
	for _, cte := range w.Ctes {
		n, err := c.node(cte.AliasedTableExpr.Expr, inner)
		if err != nil {
			return nil, err
		}
		inner[strings.ToLower(cte.As.String())] = n
	}
	return inner, nil
}

func (c tableCounter) selection(s *sqlparser.Select, outer uses) (int, error) {
	inner, err := c.with(s.With, outer)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, part := range []sqlparser.SQLNode{s.SelectExprs, s.From, s.Where, s.GroupBy, s.Having, s.OrderBy, s.Limit} {
		n, err := c.node(part, inner)
		if err != nil {
			return 0, err
		}
		total = min(total+n, MaxTables+1)
	}
	joined := 0
	for _, f := range s.From {
		joined += leaves(f)
	}
	if joined > MaxJoined {
		return 0, fault.New(fault.Limit, "Too many tables; at most %d can be used in a join", MaxJoined)
	}
	return total, nil
}

func (c tableCounter) setOp(s *sqlparser.SetOp, outer uses) (int, error) {
	inner, err := c.with(s.With, outer)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, part := range []sqlparser.SQLNode{s.Left, s.Right, s.OrderBy, s.Limit} {
		n, err := c.node(part, inner)
		if err != nil {
			return 0, err
		}
		total = min(total+n, MaxTables+1)
	}
	return total, nil
}

// leaves is the number of tables and derived tables that a FROM clause joins.
func leaves(t sqlparser.TableExpr) int {
	switch t := t.(type) {
	case *sqlparser.JoinTableExpr:
		return leaves(t.LeftExpr) + leaves(t.RightExpr)
	case *sqlparser.ParenTableExpr:
		n := 0
		for _, x := range t.Exprs {
			n += leaves(x)
		}
		return n
	}
	return 1
}
