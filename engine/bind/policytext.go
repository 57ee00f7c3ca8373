package bind

import (
	"context"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// Provide gives the value of a session function of policy texts for a principal.
// args are its literal arguments.
type Provide func(p identity.Principal, args []plan.Literal) (plan.Literal, error)

// provided is a session function that was called. It implements
// sql.FunctionExpression.
type provided struct {
	expression.NaryExpression
	name    string
	literal *plan.Literal
	value   sql.Expression
}

// FunctionName implements sql.FunctionExpression.
func (p *provided) FunctionName() string { return p.name }

// Description implements sql.FunctionExpression.
func (p *provided) Description() string { return "a function of the session" }

// String implements sql.Expression.
func (p *provided) String() string { return p.name + "()" }

// Type implements sql.Expression.
func (p *provided) Type() sql.Type { return p.value.Type() }

// IsNullable implements sql.Expression.
func (p *provided) IsNullable() bool { return true }

// Eval implements sql.Expression.
func (p *provided) Eval(ctx *sql.Context, row sql.Row) (any, error) { return p.value.Eval(ctx, row) }

// WithChildren implements sql.Expression.
func (p *provided) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	c := *p
	c.ChildExpressions = children
	return &c, nil
}

// Function implements sql.FunctionProvider: it comes before the built-in
// functions.
func (provider) Function(ctx *sql.Context, name string) (sql.Function, bool) {
	st := stateOf(ctx)
	name = strings.ToLower(name)
	f, ok := st.functions[name]
	if !ok {
		if additional[name] {
			return sql.FunctionN{Name: name, Fn: func(args ...sql.Expression) (sql.Expression, error) {
				return &planned{NaryExpression: expression.NaryExpression{ChildExpressions: args}, name: name}, nil
			}}, true
		}
		f, ok := inUTC[name]
		return f, ok
	}
	return sql.FunctionN{Name: name, Fn: func(args ...sql.Expression) (sql.Expression, error) {
		literals := make([]plan.Literal, len(args))
		for i, a := range args {
			l, ok := a.(*expression.Literal)
			if !ok {
				return nil, fault.New(fault.BadStatement, "%s takes literals", name)
			}
			v, err := literalOf(l.Value(), l.Type())
			if err != nil {
				return nil, fault.New(fault.BadStatement, "%s takes literals", name)
			}
			literals[i] = *v
		}
		v, err := f(st.session.principal, literals)
		if err != nil {
			return nil, err
		}
		e, err := argument(v)
		if err != nil {
			return nil, err
		}
		if b, ok := v.Value.(bool); ok {
			e = expression.NewLiteral(b, types.Boolean)
		}
		return &provided{NaryExpression: expression.NaryExpression{ChildExpressions: args}, name: name, literal: &v, value: e}, nil
	}}, true
}

// sessionFunctions are what policy texts may call beside SQL's functions: the
// name of the principal without a host.
var sessionFunctions = map[string]Provide{
	"current_user": func(p identity.Principal, _ []plan.Literal) (plan.Literal, error) { return *text(p.Name), nil },
	"session_user": func(p identity.Principal, _ []plan.Literal) (plan.Literal, error) { return *text(p.Name), nil },
	"user":         func(p identity.Principal, _ []plan.Literal) (plan.Literal, error) { return *text(p.Name), nil },
	"is_role_in_session": func(p identity.Principal, args []plan.Literal) (plan.Literal, error) {
		role, ok := "", false
		if len(args) == 1 {
			role, ok = args[0].Value.(string)
		}
		if !ok {
			return plan.Literal{}, fault.New(fault.BadStatement, "is_role_in_session takes the name of a role")
		}
		active := p.Roles
		if p.ActiveRoles != nil {
			active = p.ActiveRoles
		}
		for _, r := range active {
			if r == role {
				return *boolean(true), nil
			}
		}
		return *boolean(false), nil
	},
}

// Condition binds the text of a row filter over one table. The scan has every
// column of the table; the expression is boolean and refers to them. Names in
// sub-queries resolve through rel, and the scans inside them are marked Definer.
func (b *Binder) Condition(ctx context.Context, s *Session, rel Relations, table *plan.Table, text string) (*plan.Scan, plan.Expr, error) {
	return b.policyText(ctx, s, rel, table, text, true)
}

// Value binds the text of a mask over one table, as Condition does; the
// expression has the type that the text gives it.
func (b *Binder) Value(ctx context.Context, s *Session, rel Relations, table *plan.Table, text string) (*plan.Scan, plan.Expr, error) {
	return b.policyText(ctx, s, rel, table, text, false)
}

// alias is the name under which the text's table is bound. The table's own name
// is used, so that the text may qualify its columns.
func policyStatement(table *plan.Table, text string) (*parse.SQL, error) {
	st, rest, err := parse.Parse("SELECT " + text + "\n")
	if err != nil {
		return nil, err
	}
	sqlStmt, ok := st.(*parse.SQL)
	if !ok || rest != "" || sqlStmt.Params != 0 {
		return nil, fault.New(fault.Syntax, "the text is not one expression")
	}
	sel, ok := sqlStmt.AST.(*sqlparser.Select)
	if !ok || len(sel.SelectExprs) != 1 || len(sel.From) != 0 || sel.Where != nil || sel.GroupBy != nil || sel.Having != nil || sel.OrderBy != nil || sel.Limit != nil || sel.With != nil || sel.Window != nil {
		return nil, fault.New(fault.Syntax, "the text is not one expression")
	}
	item, ok := sel.SelectExprs[0].(*sqlparser.AliasedExpr)
	if !ok || !item.As.IsEmpty() {
		return nil, fault.New(fault.Syntax, "the text is not one expression")
	}
	if _, ok := item.Expr.(sqlparser.ValTuple); ok {
		return nil, fault.New(fault.Syntax, "the text is not one expression")
	}
	sel.From = sqlparser.TableExprs{&sqlparser.AliasedTableExpr{
		Expr: sqlparser.TableName{Name: sqlparser.NewTableIdent(table.Name.Name), DbQualifier: sqlparser.NewTableIdent(policyDatabase)},
	}}
	return &parse.SQL{AST: sel, Kind: parse.Query}, nil
}

// policyDatabase is the database of the protected table while its text is bound.
// A NUL byte cannot be typed, so no text can name it.
const policyDatabase = "\x00protected"

// protected answers for the protected table and leaves every other name to the
// rights of the policy.
type protected struct {
	Relations
	table *plan.Table
}

func (p protected) Relation(ctx context.Context, database, name string, at plan.AsOf) (*Relation, error) {
	if database == policyDatabase {
		return &Relation{Table: p.table}, nil
	}
	return p.Relations.Relation(ctx, database, name, at)
}

func (b *Binder) policyText(ctx context.Context, s *Session, rel Relations, table *plan.Table, text string, condition bool) (scan *plan.Scan, e plan.Expr, err error) {
	st, err := policyStatement(table, text)
	if err != nil {
		return nil, nil, err
	}
	state := newStatement(protected{Relations: rel, table: table}, s)
	state.definer = true
	state.functions = sessionFunctions
	scan, e, err = b.bindPolicyText(ctx, s, state, st, condition)
	if err != nil {
		return nil, nil, state.fault(err, st.AST)
	}
	return scan, e, nil
}

func (b *Binder) bindPolicyText(ctx context.Context, s *Session, state *statement, st *parse.SQL, condition bool) (scan *plan.Scan, e plan.Expr, err error) {
	defer recovered(&err)
	if err := deterministic(st.AST); err != nil {
		return nil, nil, err
	}
	tagArguments(st.AST)
	sctx := b.context(ctx, s, state)
	node, _, err := b.bindAST(sctx, st.AST)
	if err != nil {
		return nil, nil, err
	}
	t := &translator{binder: b, ctx: sctx, state: state, ids: &plan.IDs{}}
	n, err := t.whole(node)
	if err != nil {
		return nil, nil, err
	}
	p, ok := n.(*plan.Project)
	if !ok || len(p.Items) != 1 {
		return nil, nil, fault.New(fault.Unsupported, "the text uses an aggregate or window function outside of a sub-query")
	}
	e = p.Items[0].Expr
	in := p.Input
	// Projections between the scan and the expression are inlined: what they
	// compute is a function of the raw row.
	for {
		inner, ok := in.(*plan.Project)
		if !ok {
			break
		}
		made := map[plan.ColumnID]plan.Expr{}
		for _, it := range inner.Items {
			made[it.ID] = it.Expr
		}
		e = inline(e, made)
		in = inner.Input
	}
	if scan, ok = in.(*plan.Scan); !ok {
		return nil, nil, fault.New(fault.Unsupported, "the text uses an aggregate or window function outside of a sub-query")
	}
	// The protected table itself is not a table that the text reads.
	own := *scan
	own.Definer = false
	if condition {
		e = t.truth(e)
	}
	return &own, e, nil
}

// inline replaces columns by what computes them, in sub-queries too.
func inline(e plan.Expr, made map[plan.ColumnID]plan.Expr) plan.Expr {
	out, err := plan.TransformExpr(e, func(e plan.Expr) (plan.Expr, error) {
		switch e := e.(type) {
		case *plan.Ref:
			if x, ok := made[e.ID]; ok {
				return x, nil
			}
		case *plan.Subquery:
			p, err := plan.Transform(e.Plan, func(n plan.Node) (plan.Node, error) {
				return plan.MapExprs(n, func(e plan.Expr) (plan.Expr, error) {
					if r, ok := e.(*plan.Ref); ok {
						if x, ok := made[r.ID]; ok {
							return x, nil
						}
					}
					return e, nil
				})
			})
			if err != nil {
				return nil, err
			}
			c := *e
			c.Plan = p
			return &c, nil
		}
		return e, nil
	})
	if err != nil {
		panic(failure{err})
	}
	return out
}

// volatileFunctions may not stand in a policy text: the same row must get the same
// answer whenever it is asked for.
var volatileFunctions = map[string]bool{
	"rand": true, "uuid": true, "random_bytes": true, "sysdate": true, "connection_id": true, "found_rows": true, "row_count": true,
	"last_insert_id": true, "last_insert_uuid": true,
}

// deterministic refuses what may give the same row two answers, and what the user
// could set.
func deterministic(ast sqlparser.SQLNode) error {
	var found error
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.FuncExpr:
			if volatileFunctions[strings.ToLower(n.Name.String())] {
				found = fault.New(fault.Unsupported, "the text uses the function %s, which may give the same row two answers", strings.ToLower(n.Name.String()))
			}
		case *sqlparser.ColName:
			if strings.HasPrefix(n.Name.String(), "@") {
				found = fault.New(fault.Unsupported, "the text uses a variable")
			}
		}
		return found == nil, nil
	}, ast)
	return found
}
