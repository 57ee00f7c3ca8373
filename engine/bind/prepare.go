package bind

import (
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
)

// argumentOf wraps an argument of an aggregate or window function. The binder
// takes two calls for the same one when their texts are equal without regard to
// case, so that sum(a = 'X') would be sum(a = 'x'); the tag keeps them apart. It
// also remembers the clauses of GROUP_CONCAT, which the library keeps to itself.
type argumentOf struct {
	expression.UnaryExpression
	tag    string
	concat *sqlparser.GroupConcatExpr
}

// WithResolvedChildren implements sqlparser.Injectable.
func (a *argumentOf) WithResolvedChildren(children []any) (any, error) {
	if len(children) != 1 {
		return nil, fmt.Errorf("an argument has one expression, not %d", len(children))
	}
	child, ok := children[0].(sql.Expression)
	if !ok {
		return nil, fmt.Errorf("an argument is no expression")
	}
	return &argumentOf{UnaryExpression: expression.UnaryExpression{Child: child}, tag: a.tag, concat: a.concat}, nil
}

// String implements sql.Expression, and names the injected expression.
func (a *argumentOf) String() string { return a.tag }

// Type implements sql.Expression.
func (a *argumentOf) Type() sql.Type { return a.Child.Type() }

// Eval implements sql.Expression.
func (a *argumentOf) Eval(ctx *sql.Context, row sql.Row) (any, error) { return a.Child.Eval(ctx, row) }

// WithChildren implements sql.Expression.
func (a *argumentOf) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	if len(children) != 1 {
		return nil, sql.ErrInvalidChildrenNumber.New(a, len(children), 1)
	}
	return &argumentOf{UnaryExpression: expression.UnaryExpression{Child: children[0]}, tag: a.tag, concat: a.concat}, nil
}

var aggregating = map[string]bool{
	"avg": true, "bit_and": true, "bit_or": true, "bit_xor": true, "count": true, "json_arrayagg": true, "json_objectagg": true,
	"max": true, "min": true, "std": true, "stddev_pop": true, "stddev_samp": true, "stddev": true, "sum": true, "var_pop": true,
	"var_samp": true, "variance": true, "any_value": true, "first_value": true, "last_value": true, "lag": true, "lead": true,
}

// prepareAST parses the statement anew (binding changes the tree) and wraps the
// arguments of aggregates.
func prepareAST(st *parse.SQL) (sqlparser.Statement, error) {
	ast, err := sqlparser.Parse(st.Text)
	if err != nil {
		return nil, fault.Wrap(fault.Syntax, err, "syntax error: the statement cannot be parsed")
	}
	tagArguments(ast)
	return ast, nil
}

func tagArguments(ast sqlparser.SQLNode) {
	tags := map[string]string{}
	tag := func(e sqlparser.SelectExpr, concat *sqlparser.GroupConcatExpr) {
		a, ok := e.(*sqlparser.AliasedExpr)
		if !ok {
			return
		}
		switch a.Expr.(type) {
		case *sqlparser.ColName, *sqlparser.SQLVal, *sqlparser.Subquery, sqlparser.InjectedExpr, *sqlparser.NullVal, sqlparser.BoolVal:
			if concat == nil {
				return
			}
		}
		key := sqlparser.String(a.Expr)
		if concat != nil {
			key = sqlparser.String(concat) + "/" + key
		}
		if tags[key] == "" {
			tags[key] = fmt.Sprintf("argument%d", len(tags)+1)
		}
		a.Expr = sqlparser.InjectedExpr{Expression: &argumentOf{tag: tags[key], concat: concat}, Children: sqlparser.Exprs{a.Expr}}
	}
	var visit func(n sqlparser.SQLNode) (bool, error)
	visit = func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.FuncExpr:
			if aggregating[strings.ToLower(n.Name.String())] {
				for i, e := range n.Exprs {
					if i == 0 || !strings.HasPrefix(strings.ToLower(n.Name.String()), "l") {
						tag(e, nil)
					}
				}
			}
		case *sqlparser.GroupConcatExpr:
			original := *n
			original.Exprs = append(sqlparser.SelectExprs(nil), n.Exprs...)
			for i, e := range n.Exprs {
				if a, ok := e.(*sqlparser.AliasedExpr); ok {
					c := *a
					original.Exprs[i] = &c
				}
			}
			for _, e := range n.Exprs {
				tag(e, &original)
			}
		}
		return true, nil
	}
	_ = sqlparser.Walk(visit, ast)
}
