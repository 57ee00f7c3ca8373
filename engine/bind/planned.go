package bind

import (
	"fmt"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// additional lists functions that go-mysql-server does not have and the catalogue
// of plans does, and QUOTE, whose answer for NULL is another one there.
var additional = map[string]bool{
	"truncate": true, "makedate": true, "insert": true, "version": true, "session_user": true, "system_user": true,
	"quote": true,
}

// inUTC lists functions that go-mysql-server does not have, and what they are in a
// session whose times are in UTC, as all are.
var inUTC = map[string]sql.Function{
	"utc_date": sql.Function0{Name: "utc_date", Fn: function.NewCurrDate},
	"utc_time": sql.FunctionN{Name: "utc_time", Fn: function.NewCurrTime},
}

// planned is a call of such a function: it can only be translated, never run by
// the row executor. It implements sql.FunctionExpression.
type planned struct {
	expression.NaryExpression
	name string
}

// FunctionName implements sql.FunctionExpression.
func (p *planned) FunctionName() string { return p.name }

// Description implements sql.FunctionExpression.
func (p *planned) Description() string { return "a function of plans" }

// String implements sql.Expression.
func (p *planned) String() string { return fmt.Sprintf("%s(%v)", p.name, p.ChildExpressions) }

// Type implements sql.Expression. The translator derives its own.
func (p *planned) Type() sql.Type { return types.LongText }

// IsNullable implements sql.Expression.
func (p *planned) IsNullable() bool { return true }

// Eval implements sql.Expression.
func (p *planned) Eval(*sql.Context, sql.Row) (any, error) {
	return nil, fmt.Errorf("the function %s runs in plans only", p.name)
}

// WithChildren implements sql.Expression.
func (p *planned) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	return &planned{NaryExpression: expression.NaryExpression{ChildExpressions: children}, name: p.name}, nil
}
