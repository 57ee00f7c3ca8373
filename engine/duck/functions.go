package duck

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// scalar writes a call of one function. It returns text of exactly the type of
// the call.
type scalar func(c *compiler, e *plan.Call) (string, error)

// scalars is every scalar function that can be computed.
var scalars = map[string]scalar{}

func (c *compiler) call(e *plan.Call) (string, error) {
	f, ok := scalars[e.Func.Name]
	if !ok {
		return "", fault.New(fault.Unsupported, "the function %s cannot be computed", e.Func.Name)
	}
	s, err := f(c, e)
	if err != nil {
		return "", err
	}
	for _, o := range e.Operands {
		if l, ok := o.(*plan.Literal); ok && l.Value == nil {
			// DuckDB folds many calls with a NULL to one without a type.
			t, err := sqlType(e.Typ)
			return cast(s, t), err
		}
	}
	return s, nil
}

// flattened lists the operands of nested calls of one associative function:
// DuckDB bounds the depth of expressions, not their number.
func flattened(e *plan.Call) []plan.Expr {
	var out []plan.Expr
	todo := []plan.Expr{e}
	for len(todo) > 0 {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c, ok := x.(*plan.Call); ok && c.Func == e.Func {
			for i := len(c.Operands) - 1; i >= 0; i-- {
				todo = append(todo, c.Operands[i])
			}
			continue
		}
		out = append(out, x)
	}
	return out
}

// refused is the fault for a function that cannot take these arguments.
func refused(e *plan.Call) error {
	types := make([]string, len(e.Operands))
	for i, o := range e.Operands {
		types[i] = typeName(o.Type())
	}
	return fault.New(fault.Unsupported, "the function %s cannot be computed for (%s)", e.Func.Name, strings.Join(types, ", "))
}

// constant is the value of a literal argument.
func constant[T any](e *plan.Call, i int) (T, error) {
	var zero T
	if i < len(e.Operands) {
		if l, ok := e.Operands[i].(*plan.Literal); ok {
			if v, ok := l.Value.(T); ok {
				return v, nil
			}
		}
	}
	return zero, fault.New(fault.Unsupported, "argument %d of the function %s must be a constant of the right type", i+1, e.Func.Name)
}

// number is the operand as a value of type t; text is not a number.
func (c *compiler) number(e *plan.Call, i int, t arrow.DataType) (string, error) {
	from := e.Operands[i].Type()
	if !plan.IsNumeric(from) && from.ID() != arrow.BOOL && !isNull(from) {
		return "", refused(e)
	}
	s, err := c.expr(e.Operands[i])
	if err != nil {
		return "", err
	}
	return castExpr(s, from, t, false)
}

// text is the operand as text.
func (c *compiler) text(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if plan.IsNested(t) || isBinary(t) {
		return "", refused(e)
	}
	return c.as(e.Operands[i], plan.String)
}

func (c *compiler) texts(e *plan.Call) ([]string, error) {
	out := make([]string, len(e.Operands))
	for i := range out {
		s, err := c.text(e, i)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// typed converts a text of type from to the type of the call.
func typed(e *plan.Call, s string, from arrow.DataType) (string, error) {
	return converted(s, from, e.Typ)
}

func init() {
	for name, op := range map[string]string{"and": " AND ", "or": " OR "} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			operands := flattened(e)
			parts := make([]string, len(operands))
			for i, o := range operands {
				s, err := c.condition(o)
				if err != nil {
					return "", err
				}
				parts[i] = s
			}
			return "(" + strings.Join(parts, op) + ")", nil
		}
	}
	condition := func(format func(a string) string) scalar {
		return func(c *compiler, e *plan.Call) (string, error) {
			a, err := c.condition(e.Operands[0])
			if err != nil {
				return "", err
			}
			return format(a), nil
		}
	}
	scalars["not"] = condition(func(a string) string { return "(NOT " + a + ")" })
	scalars["is_true"] = condition(func(a string) string { return "(" + a + " IS NOT DISTINCT FROM TRUE)" })
	scalars["is_false"] = condition(func(a string) string { return "(" + a + " IS NOT DISTINCT FROM FALSE)" })
	scalars["is_null"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.expr(e.Operands[0])
		return "(" + a + " IS NULL)", err
	}
	scalars["is_nan"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.number(e, 0, plan.Float64)
		return "isnan(" + a + ")", err
	}
	scalars["xor"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.condition(e.Operands[0])
		if err != nil {
			return "", err
		}
		b, err := c.condition(e.Operands[1])
		return "(" + a + " <> " + b + ")", err
	}
	for name, op := range map[string]string{
		"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "null_safe_eq": "IS NOT DISTINCT FROM",
	} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			t, err := comparison(e.Operands[0].Type(), e.Operands[1].Type())
			if err != nil {
				return "", err
			}
			a, err := c.as(e.Operands[0], t)
			if err != nil {
				return "", err
			}
			b, err := c.as(e.Operands[1], t)
			return "(" + a + " " + op + " " + b + ")", err
		}
	}
	scalars["coalesce"] = func(c *compiler, e *plan.Call) (string, error) {
		parts := make([]string, len(e.Operands))
		for i, o := range e.Operands {
			s, err := c.as(o, e.Typ)
			if err != nil {
				return "", err
			}
			parts[i] = s
		}
		return "coalesce(" + strings.Join(parts, ", ") + ")", nil
	}
	for _, name := range []string{"greatest", "least"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			if _, err := comparison(e.Typ); err != nil {
				return "", err
			}
			parts := make([]string, len(e.Operands))
			nulls := make([]string, len(e.Operands))
			for i, o := range e.Operands {
				s, err := c.as(o, e.Typ)
				if err != nil {
					return "", err
				}
				parts[i], nulls[i] = s, s+" IS NOT NULL"
			}
			if len(parts) == 1 {
				return parts[0], nil
			}
			return "CASE WHEN " + strings.Join(nulls, " AND ") + " THEN " + name + "(" + strings.Join(parts, ", ") + ") END", nil
		}
	}
	scalars["nullif"] = func(c *compiler, e *plan.Call) (string, error) {
		t, err := comparison(e.Operands[0].Type(), e.Operands[1].Type())
		if err != nil {
			return "", err
		}
		a, err := c.as(e.Operands[0], t)
		if err != nil {
			return "", err
		}
		b, err := c.as(e.Operands[1], t)
		if err != nil {
			return "", err
		}
		v, err := c.as(e.Operands[0], e.Typ)
		return "CASE WHEN " + a + " = " + b + " THEN NULL ELSE " + v + " END", err
	}
	scalars["barrier"] = func(c *compiler, e *plan.Call) (string, error) {
		return c.as(e.Operands[0], e.Typ)
	}
	initArithmetic()
	initText()
	initDate()
	initMath()
	initJSON()
}

func itoa(i int) string { return strconv.Itoa(i) }
