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
	if err := uniqueTables(ast); err != nil {
		return nil, err
	}
	if err := boundedCasts(ast); err != nil {
		return nil, err
	}
	if listDepth(ast) > maxListDepth {
		return nil, fault.New(fault.Limit, "queries in SELECT lists nest more than %d deep; write the inner ones as WITH queries", maxListDepth)
	}
	tagArguments(ast)
	return ast, nil
}

// tagArguments wraps the arguments of the aggregates of a statement. The tags of
// each query block differ: the binder would take an aggregate of a sub-query for
// one of the same text in an enclosing query.
func tagArguments(ast sqlparser.SQLNode) {
	(&tagger{}).block(ast)
}

type tagger struct{ blocks int }

func (g *tagger) block(root sqlparser.SQLNode) {
	g.blocks++
	block := g.blocks
	tags := map[string]string{}
	tag := func(e sqlparser.SelectExpr, concat *sqlparser.GroupConcatExpr) {
		a, ok := e.(*sqlparser.AliasedExpr)
		if !ok {
			return
		}
		if _, again := a.Expr.(sqlparser.InjectedExpr); again {
			return
		}
		key := sqlparser.String(a.Expr)
		if concat != nil {
			key = sqlparser.String(concat) + "/" + key
		}
		if tags[key] == "" {
			tags[key] = fmt.Sprintf("argument%d_%d", block, len(tags)+1)
		}
		a.Expr = sqlparser.InjectedExpr{Expression: &argumentOf{tag: tags[key], concat: concat}, Children: sqlparser.Exprs{a.Expr}}
	}
	// The binder drops a sort expression whose text, without regard to case, it has
	// seen before, in an enclosing query too.
	order := func(list sqlparser.OrderBy) {
		for i, o := range list {
			switch o.Expr.(type) {
			case *sqlparser.ColName, *sqlparser.SQLVal, sqlparser.InjectedExpr:
				continue
			}
			list[i].Expr = sqlparser.InjectedExpr{
				Expression: &argumentOf{tag: fmt.Sprintf("order%d_%d", block, i+1)}, Children: sqlparser.Exprs{o.Expr},
			}
		}
	}
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			if n != root {
				g.block(n)
				return false, nil
			}
			order(n.OrderBy)
		case *sqlparser.FuncExpr:
			if name := strings.ToLower(n.Name.String()); aggregating[name] {
				for i, e := range n.Exprs {
					// The offset of LAG and LEAD has to stay a literal.
					if i == 0 || name != "lag" && name != "lead" {
						tag(e, nil)
					}
				}
			}
		case *sqlparser.GroupConcatExpr:
			original := *n
			original.Exprs = make(sqlparser.SelectExprs, len(n.Exprs))
			for i, e := range n.Exprs {
				original.Exprs[i] = e
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
	}, root)
}

// uniqueTables refuses two tables of one name in a FROM clause. MySQL takes them
// when their databases differ; the binder would mix up their columns.
func uniqueTables(ast sqlparser.SQLNode) error {
	var err error
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		s, ok := n.(*sqlparser.Select)
		if !ok {
			return err == nil, nil
		}
		seen := map[string]bool{}
		var visit func(sqlparser.TableExpr)
		visit = func(e sqlparser.TableExpr) {
			switch e := e.(type) {
			case *sqlparser.AliasedTableExpr:
				name := e.As.String()
				if t, isTable := e.Expr.(sqlparser.TableName); isTable && name == "" {
					name = t.Name.String()
				}
				if key := strings.ToLower(name); key != "" {
					if seen[key] {
						err = fault.New(fault.BadStatement, "Not unique table/alias: '%s'; give each table an alias of its own", name)
					}
					seen[key] = true
				}
			case *sqlparser.JoinTableExpr:
				visit(e.LeftExpr)
				visit(e.RightExpr)
			case *sqlparser.ParenTableExpr:
				for _, x := range e.Exprs {
					visit(x)
				}
			}
		}
		for _, e := range s.From {
			visit(e)
		}
		return err == nil, nil
	}, ast)
	return err
}

// maxListDepth bounds queries inside the SELECT lists of queries: the binder's work
// doubles with each level.
const maxListDepth = 10

// listDepth is how deep queries nest in expressions.
func listDepth(root sqlparser.SQLNode) int {
	deepest := 0
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		s, ok := n.(*sqlparser.Select)
		if !ok || n == root {
			return true, nil
		}
		d := listDepth(s)
		if len(s.From) == 0 || inList(s) {
			d++
		}
		deepest = max(deepest, d)
		return false, nil
	}, root)
	return deepest
}

// inList reports whether a query has queries in its SELECT list.
func inList(s *sqlparser.Select) bool {
	found := false
	for _, e := range s.SelectExprs {
		_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
			if _, ok := n.(*sqlparser.Subquery); ok {
				found = true
			}
			return !found, nil
		}, e)
	}
	return found
}
