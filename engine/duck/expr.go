package duck

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// condition writes an expression as a truth value.
func (c *compiler) condition(e plan.Expr) (string, error) {
	s, err := c.expr(e)
	if err != nil {
		return "", err
	}
	return truth(s, e.Type())
}

func truth(s string, t arrow.DataType) (string, error) {
	switch {
	case t.ID() == arrow.BOOL:
		return s, nil
	case isNull(t):
		return cast(s, "BOOLEAN"), nil
	case plan.IsNumeric(t):
		return "(" + s + " <> 0)", nil
	}
	return "", fault.New(fault.Unsupported, "a value of type %s cannot be used as a condition", typeName(t))
}

// expr writes an expression. The text can stand anywhere an operand can.
func (c *compiler) expr(e plan.Expr) (string, error) {
	switch e := e.(type) {
	case *plan.Ref:
		return columnName(e.ID), nil
	case *plan.Literal:
		return literal(e)
	case *plan.Call:
		return c.call(e)
	case *plan.RowCall:
		return c.rowCall(e)
	case *plan.Case:
		return c.caseExpr(e)
	case *plan.Cast:
		s, err := c.expr(e.Operand)
		if err != nil {
			return "", err
		}
		return castExpr(s, e.Operand.Type(), e.Typ, e.Try)
	case *plan.In:
		return c.in(e)
	case *plan.Like:
		return c.like(e)
	case *plan.Subquery:
		return c.subquery(e)
	}
	return "", fault.New(fault.Unsupported, "this kind of expression cannot be computed (%T)", e)
}

func (c *compiler) exprs(list []plan.Expr) ([]string, error) {
	out := make([]string, len(list))
	for i, e := range list {
		s, err := c.expr(e)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// as writes an expression as a value of type t.
func (c *compiler) as(e plan.Expr, t arrow.DataType) (string, error) {
	s, err := c.expr(e)
	if err != nil {
		return "", err
	}
	return converted(s, e.Type(), t)
}

func (c *compiler) caseExpr(e *plan.Case) (string, error) {
	t, err := sqlType(e.Typ)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("CASE")
	for _, w := range e.Whens {
		cond, err := c.condition(w.Cond)
		if err != nil {
			return "", err
		}
		then, err := c.as(w.Then, e.Typ)
		if err != nil {
			return "", err
		}
		b.WriteString(" WHEN " + cond + " THEN " + then)
	}
	if e.Else != nil {
		s, err := c.as(e.Else, e.Typ)
		if err != nil {
			return "", err
		}
		b.WriteString(" ELSE " + s)
	}
	b.WriteString(" END")
	if len(e.Whens) == 0 {
		return "", errorf("CASE without WHEN")
	}
	return cast(b.String(), t), nil
}

// comparison is the type in which values of the types are compared.
func comparison(types ...arrow.DataType) (arrow.DataType, error) {
	t := types[0]
	whole, scale := int32(0), int32(0)
	nanos := 0
	for _, u := range types {
		if isDecimal(u) || plan.IsInteger(u) {
			p, s := plan.DecimalParams(u)
			whole, scale = max(whole, p-s), max(scale, s)
		}
		if isNanos(u) {
			nanos++
		}
	}
	for _, u := range types[1:] {
		if isBinary(t) && isBinary(u) {
			continue
		}
		var ok bool
		if t, ok = plan.CommonType(t, u); !ok {
			return nil, fault.New(fault.Unsupported, "values of types %s and %s cannot be compared", typeName(types[0]), typeName(u))
		}
	}
	if (isDecimal(t) && whole+scale > 38) || (isNanos(t) && nanos < len(types)) {
		// No type holds both exactly, and a comparison must not fail.
		return nil, fault.New(fault.Unsupported, "values of types %s and %s cannot be compared", typeName(types[0]), typeName(types[len(types)-1]))
	}
	if plan.IsJSON(t) || plan.IsNested(t) {
		return nil, fault.New(fault.Unsupported, "values of type %s cannot be compared", typeName(t))
	}
	return t, nil
}

func (c *compiler) in(e *plan.In) (string, error) {
	if len(e.List) == 0 {
		return "FALSE", nil
	}
	t, err := comparison(append(plan.Types([]plan.Expr{e.Operand}), plan.Types(e.List)...)...)
	if err != nil {
		return "", err
	}
	x, err := c.as(e.Operand, t)
	if err != nil {
		return "", err
	}
	list := make([]string, len(e.List))
	for i, v := range e.List {
		if list[i], err = c.as(v, t); err != nil {
			return "", err
		}
	}
	return "(" + x + " IN (" + strings.Join(list, ", ") + "))", nil
}

func (c *compiler) like(e *plan.Like) (string, error) {
	for _, t := range []arrow.DataType{e.Operand.Type(), e.Pattern.Type()} {
		if !plan.IsString(t) && !isNull(t) {
			return "", fault.New(fault.Unsupported, "LIKE takes text, not %s", typeName(t))
		}
	}
	x, err := c.as(e.Operand, plan.String)
	if err != nil {
		return "", err
	}
	if e.Escape > 0x7f || (e.Escape != 0 && e.Escape < 0x20) {
		return "", fault.New(fault.Unsupported, "the ESCAPE character of LIKE is not a printable ASCII character")
	}
	if l, ok := e.Pattern.(*plan.Literal); ok && l.Value != nil {
		p, ok := l.Value.(string)
		if !ok {
			return "", errorf("LIKE pattern is a %T", l.Value)
		}
		s, err := text(completeEscape(p, e.Escape))
		if err != nil {
			return "", err
		}
		s = "(" + x + " LIKE " + s
		if e.Escape != 0 && strings.ContainsRune(p, e.Escape) {
			// Only without ESCAPE does DuckDB search for a prefix, suffix or part.
			s += " ESCAPE " + quote(string(e.Escape))
		}
		return s + ")", nil
	}
	p, err := c.as(e.Pattern, plan.String)
	if err != nil {
		return "", err
	}
	esc := ""
	if e.Escape != 0 {
		esc = string(e.Escape)
	}
	return native("like", x, p, quote(esc)), nil
}

// completeEscape makes an escape character at the end of a pattern stand for
// itself, as MySQL reads it; DuckDB raises an error.
func completeEscape(pattern string, escape rune) string {
	if escape == 0 {
		return pattern
	}
	open := false
	for _, r := range pattern {
		open = !open && r == escape
	}
	if open {
		return pattern + string(escape)
	}
	return pattern
}

func (c *compiler) subquery(e *plan.Subquery) (string, error) {
	shallow := c.shallow
	c.shallow = false
	b, err := c.node(e.Plan)
	c.shallow = shallow
	if err != nil {
		return "", err
	}
	cols := e.Plan.Columns()
	if e.Kind == plan.ExistsSubquery {
		return "EXISTS (SELECT 1 FROM (" + b.String() + ") AS " + c.alias() + ")", nil
	}
	if len(cols) != 1 {
		return "", errorf("a sub-query has %d columns", len(cols))
	}
	if e.Kind == plan.ScalarSubquery {
		s, err := converted("("+b.String()+")", cols[0].Type, e.Typ)
		return s, err
	}
	t, err := comparison(e.Operand.Type(), cols[0].Type)
	if err != nil {
		return "", err
	}
	x, err := c.as(e.Operand, t)
	if err != nil {
		return "", err
	}
	v, err := converted(columnName(cols[0].ID), cols[0].Type, t)
	if err != nil {
		return "", err
	}
	return "(" + x + " IN (SELECT " + v + " FROM (" + b.String() + ") AS " + c.alias() + "))", nil
}

// native calls one of the package's own scalar functions.
func native(name string, args ...string) string {
	return "sqe_" + name + "(" + strings.Join(args, ", ") + ")"
}
