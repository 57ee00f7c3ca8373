package bind

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"sqe/fault"
	"sqe/plan"
)

// expr translates an expression. Its conversions, which MySQL makes silently,
// are explicit in the result.
func (t *translator) expr(e sql.Expression) plan.Expr {
	if t.rows != nil {
		return t.key(t.rows.expr(t, e))
	}
	return t.key(t.bare(e))
}

func (t *translator) bare(e sql.Expression) plan.Expr {
	switch e := e.(type) {
	case *expression.GetField:
		c, ok := t.lookup(e.Id())
		if !ok {
			if name, withheld := t.withheld[e.Id()]; withheld {
				refuse(fault.Withheld, "column '%s' is withheld: a policy masks it in a way that cannot be applied; leave it out", name)
			}
			if c, ok = t.workColumn(e.Table(), e.Name()); ok {
				return reference(c)
			}
			cannot("a column that its input does not have")
		}
		return reference(c)
	case *argumentOf:
		return t.expr(e.Child)
	case *expression.Alias:
		return t.expr(e.Child)
	case *expression.Literal:
		l, err := literalOf(e.Value(), e.Type())
		if err != nil {
			cannot("a literal: " + err.Error())
		}
		return l
	case *expression.And:
		return t.logic("and", e.LeftChild, e.RightChild)
	case *expression.Or:
		return t.logic("or", e.LeftChild, e.RightChild)
	case *expression.Xor:
		return t.call("xor", t.condition(e.LeftChild), t.condition(e.RightChild))
	case *expression.Not:
		return t.not(e.Child)
	case *expression.IsNull:
		return t.call("is_null", t.expr(e.Child))
	case *expression.IsTrue:
		if strings.HasSuffix(strings.ToLower(e.String()), "is false") {
			return t.call("is_false", t.condition(e.Child))
		}
		return t.call("is_true", t.condition(e.Child))
	case *expression.Equals:
		return t.comparison("eq", e.Left(), e.Right())
	case *expression.NullSafeEquals:
		return t.comparison("null_safe_eq", e.Left(), e.Right())
	case *expression.LessThan:
		return t.comparison("lt", e.Left(), e.Right())
	case *expression.LessThanOrEqual:
		return t.comparison("le", e.Left(), e.Right())
	case *expression.GreaterThan:
		return t.comparison("gt", e.Left(), e.Right())
	case *expression.GreaterThanOrEqual:
		return t.comparison("ge", e.Left(), e.Right())
	case *expression.Between:
		v := t.expr(e.Val)
		return t.call("and", t.compare("ge", v, t.expr(e.Lower)), t.compare("le", v, t.expr(e.Upper)))
	case *expression.InTuple:
		return t.in(e.Left(), e.Right())
	case *expression.Like:
		return t.like(e)
	case *expression.Case:
		return t.caseExpr(e)
	case *expression.UnaryMinus:
		x := t.number(t.expr(e.Child), "-")
		if l, ok := x.(*plan.Literal); ok {
			if n, ok := negated(l); ok {
				return n
			}
		}
		return t.call("neg", x)
	case *expression.Arithmetic:
		return t.arithmetic(e)
	case *expression.Div:
		l, r := exactLiterals(t.number(t.expr(e.LeftChild), "/"), t.number(t.expr(e.RightChild), "/"))
		return t.call("div", l, r)
	case *expression.IntDiv:
		return t.call("int_div", t.number(t.expr(e.LeftChild), "DIV"), t.number(t.expr(e.RightChild), "DIV"))
	case *expression.Mod:
		l, r := t.number(t.expr(e.LeftChild), "%"), t.number(t.expr(e.RightChild), "%")
		typ := unify(l.Type(), r.Type())
		return t.call("mod", t.cast(l, typ), t.cast(r, typ))
	case *expression.Convert:
		return t.convert(e)
	case *expression.Binary:
		return t.cast(t.expr(e.Child), plan.Binary)
	case *expression.CollatedExpression:
		// Binary collations are what everything has.
		if c, _ := e.CollationCoercibility(t.ctx); c == sql.Collation_Default || c == sql.Collation_binary || strings.HasSuffix(c.Name(), "_bin") {
			return t.expr(e.Child())
		}
		cannot("a collation other than binary")
	case *expression.SystemVar, *expression.UserVar:
		return t.folded(e)
	case *expression.BindVar:
		refuse(fault.BadStatement, "the statement has a parameter without a value")
	case *gmsplan.Subquery:
		return t.scalar(e)
	case *gmsplan.InSubquery:
		return t.inSubquery(e)
	case *gmsplan.ExistsSubquery:
		return &plan.Subquery{Kind: plan.ExistsSubquery, Plan: t.subplan(e.Query.Query), Typ: plan.Bool}
	case *function.Substring:
		return t.substring(e)
	case sql.FunctionExpression:
		return t.function(e)
	}
	if _, ok := e.(sql.Aggregation); ok {
		cannot("an aggregate in a place where there is no group")
	}
	cannot("the expression " + strings.ToLower(strings.TrimLeft(typeName(e), "*")))
	return nil
}

// call makes a call of the catalogue.
func (t *translator) call(name string, args ...plan.Expr) plan.Expr {
	c, err := plan.NewCall(name, args...)
	if err != nil {
		if _, known := plan.Lookup(name); !known {
			cannot("the function " + strings.ToUpper(name))
		}
		cannot("the function " + strings.ToUpper(name) + " with arguments of these types")
	}
	return c
}

// condition translates an expression as a truth value.
func (t *translator) condition(e sql.Expression) plan.Expr { return t.truth(t.expr(e)) }

// truth is a value as MySQL sees it where it wants a truth value.
func (t *translator) truth(x plan.Expr) plan.Expr {
	switch {
	case x.Type().ID() == arrow.BOOL:
		return x
	case x.Type().ID() == arrow.NULL:
		return null(plan.Bool)
	case plan.IsNumeric(x.Type()):
		return t.compare("ne", x, integer(0))
	}
	if l, ok := x.(*plan.Literal); ok && plan.IsString(l.Typ) {
		if n, ok := parseNumber(l.Value.(string)); ok {
			return t.truth(n)
		}
	}
	cannot("a text, date or other value in the place of a condition")
	return nil
}

// logic flattens chains of AND and OR: the binder makes them as deep as they are
// long.
func (t *translator) logic(op string, l, r sql.Expression) plan.Expr {
	var args []plan.Expr
	stack := []sql.Expression{r, l}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if a, ok := e.(*expression.And); ok && op == "and" {
			stack = append(stack, a.RightChild, a.LeftChild)
			continue
		}
		if o, ok := e.(*expression.Or); ok && op == "or" {
			stack = append(stack, o.RightChild, o.LeftChild)
			continue
		}
		args = append(args, t.condition(e))
	}
	return t.call(op, args...)
}

// not negates; NOT of a comparison is the opposite comparison, which reads better
// and prunes.
func (t *translator) not(e sql.Expression) plan.Expr {
	x := t.condition(e)
	if c, ok := x.(*plan.Call); ok {
		if c.Func.Name == "eq" {
			return t.call("ne", c.Operands...)
		}
	}
	return t.call("not", x)
}

func (t *translator) comparison(op string, l, r sql.Expression) plan.Expr {
	lt, lok := l.(expression.Tuple)
	rt, rok := r.(expression.Tuple)
	if lok && rok {
		if len(lt) != len(rt) {
			refuse(fault.BadStatement, "Operand should contain %d column(s)", len(lt))
		}
		if op != "eq" && op != "null_safe_eq" {
			cannot("an ordering of rows")
		}
		args := make([]plan.Expr, len(lt))
		for i := range lt {
			args[i] = t.comparison(op, lt[i], rt[i])
		}
		if len(args) == 1 {
			return args[0]
		}
		return t.call("and", args...)
	}
	if lok || rok {
		cannot("a comparison of a row with a value")
	}
	return t.compare(op, t.expr(l), t.expr(r))
}

// in translates value IN (list).
func (t *translator) in(l, r sql.Expression) plan.Expr {
	list, ok := r.(expression.Tuple)
	if !ok {
		cannot("IN of something else than a list")
	}
	if _, isRow := l.(expression.Tuple); isRow {
		var args []plan.Expr
		for _, item := range list {
			args = append(args, t.comparison("eq", l, item))
		}
		if len(args) == 1 {
			return args[0]
		}
		return t.call("or", args...)
	}
	v := t.expr(l)
	// All items that end up at one type with the value make an In, the others
	// comparisons of their own.
	groups := map[string]*plan.In{}
	var order []string
	for _, item := range list {
		c := t.compare("eq", v, t.expr(item))
		cmp, ok := c.(*plan.Call)
		if !ok || cmp.Func.Name != "eq" {
			key := "other" + string(rune(len(order)))
			groups[key] = nil
			order = append(order, key)
			groups[key] = &plan.In{Operand: c}
			continue
		}
		key := cmp.Operands[0].Type().String()
		g := groups[key]
		if g == nil {
			g = &plan.In{Operand: cmp.Operands[0]}
			groups[key] = g
			order = append(order, key)
		}
		g.List = append(g.List, cmp.Operands[1])
	}
	var args []plan.Expr
	for _, key := range order {
		switch g := groups[key]; {
		case len(g.List) == 0:
			args = append(args, g.Operand)
		case len(g.List) == 1:
			args = append(args, t.call("eq", g.Operand, g.List[0]))
		default:
			args = append(args, g)
		}
	}
	if len(args) == 1 {
		return args[0]
	}
	return t.call("or", args...)
}

func (t *translator) like(e *expression.Like) plan.Expr {
	v, p := t.expr(e.Left()), t.expr(e.Right())
	if v.Type().ID() == arrow.BINARY || p.Type().ID() == arrow.BINARY || plan.IsJSON(v.Type()) {
		cannot("LIKE on binary or JSON")
	}
	out := &plan.Like{Operand: t.cast(v, plan.String), Pattern: t.cast(p, plan.String), Escape: '\\'}
	if e.Escape != nil {
		l, ok := t.expr(e.Escape).(*plan.Literal)
		s, isText := "", false
		if ok {
			s, isText = l.Value.(string)
		}
		switch {
		case ok && l.Value == nil:
		case !isText || utf8.RuneCountInString(s) > 1:
			refuse(fault.BadStatement, "Incorrect arguments to ESCAPE; it takes one character")
		case s == "":
			out.Escape = 0
		default:
			out.Escape, _ = utf8.DecodeRuneInString(s)
		}
	}
	if _, constant := out.Pattern.(*plan.Literal); !constant {
		cannot("LIKE with a pattern that is no literal")
	}
	return out
}

func (t *translator) caseExpr(e *expression.Case) plan.Expr {
	out := &plan.Case{}
	var operand plan.Expr
	if e.Expr != nil {
		operand = t.expr(e.Expr)
	}
	var typ arrow.DataType = plan.Null
	for _, b := range e.Branches {
		w := plan.When{}
		if operand != nil {
			w.Cond = t.compare("eq", operand, t.expr(b.Cond))
		} else {
			w.Cond = t.condition(b.Cond)
		}
		w.Then = t.expr(b.Value)
		typ = unify(typ, w.Then.Type())
		out.Whens = append(out.Whens, w)
	}
	if e.Else != nil {
		out.Else = t.expr(e.Else)
		typ = unify(typ, out.Else.Type())
	}
	out.Typ = typ
	for i := range out.Whens {
		out.Whens[i].Then = t.cast(out.Whens[i].Then, typ)
	}
	if out.Else != nil {
		out.Else = t.cast(out.Else, typ)
	}
	return out
}

// folded evaluates an expression that is constant within a statement.
func (t *translator) folded(e sql.Expression) plan.Expr {
	v, err := e.Eval(t.ctx, nil)
	if err != nil {
		panic(failure{err})
	}
	typ := e.Type()
	if u, ok := e.(*expression.UserVar); ok {
		if ut, _, err := t.ctx.GetUserVariable(t.ctx, u.Name); err == nil && ut != nil {
			typ = ut
		}
	}
	l, err := literalOf(v, typ)
	if err != nil {
		cannot("the value of a variable: " + err.Error())
	}
	return l
}

// now is the time of the statement, the same wherever it is asked for.
func (t *translator) now() time.Time { return t.ctx.QueryTime().UTC() }

// nullable reports whether an expression may be NULL, as far as it is easy to
// see.
func nullable(e plan.Expr) bool {
	l, ok := e.(*plan.Literal)
	return !ok || l.Value == nil
}
