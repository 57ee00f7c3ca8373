package duck

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// decimalArgument is an operand as a decimal of its own scale (an integer has
// scale 0).
func (c *compiler) decimalArgument(e *plan.Call, i int) (s string, scale int32, err error) {
	t := e.Operands[i].Type()
	precision := int32(1)
	if t.ID() != arrow.BOOL && !isNull(t) {
		precision, scale = plan.DecimalParams(t)
	}
	s, err = c.number(e, i, plan.Decimal(precision, scale))
	return s, scale, err
}

// numbers are the two operands as numbers of one type.
func (c *compiler) numbers(e *plan.Call, t arrow.DataType) (a, b string, err error) {
	if a, err = c.number(e, 0, t); err != nil {
		return "", "", err
	}
	b, err = c.number(e, 1, t)
	return a, b, err
}

// decimalArguments are the two operands as decimals of their own scales.
func (c *compiler) decimalArguments(e *plan.Call) (a string, sa int32, b string, sb int32, err error) {
	if a, sa, err = c.decimalArgument(e, 0); err != nil {
		return "", 0, "", 0, err
	}
	b, sb, err = c.decimalArgument(e, 1)
	return a, sa, b, sb, err
}

func initArithmetic() {
	for name, op := range map[string]string{"add": "+", "sub": "-", "mul": "*"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			d, ok := e.Typ.(*arrow.Decimal128Type)
			if !ok {
				a, b, err := c.numbers(e, e.Typ)
				if err != nil {
					return "", err
				}
				if isFloat(e.Typ) {
					return finite("(" + a + " " + op + " " + b + ")"), nil
				}
				return "(" + a + " " + op + " " + b + ")", nil
			}
			t, err := sqlType(d)
			if err != nil {
				return "", err
			}
			if op == "*" {
				a, sa, b, sb, err := c.decimalArguments(e)
				if err != nil {
					return "", err
				}
				if sa+sb > 38 {
					return "", refused(e)
				}
				pa, _ := plan.DecimalParams(e.Operands[0].Type())
				pb, _ := plan.DecimalParams(e.Operands[1].Type())
				if pa <= 18 && pb <= 18 && pa+pb > 18 {
					// Of two operands of 64 bits DuckDB keeps the product in 64 bits too,
					// whether it fits or not.
					a = cast(a, fmt.Sprintf("DECIMAL(19,%d)", sa))
				}
				return cast("("+a+" * "+b+")", t), nil
			}
			wide := sumOperand(e.Operands, d.Scale)
			a, b, err := c.numbers(e, wide)
			return cast("("+a+" "+op+" "+b+")", t), err
		}
	}
	scalars["div"] = func(c *compiler, e *plan.Call) (string, error) {
		if isFloat(e.Typ) {
			a, b, err := c.numbers(e, plan.Float64)
			return finite("(" + a + " / " + b + ")"), err
		}
		a, sa, b, sb, err := c.decimalArguments(e)
		if err != nil {
			return "", err
		}
		return quotient(unscaled(a, sa), unscaled(b, sb), sa-sb, e.Typ)
	}
	scalars["int_div"] = func(c *compiler, e *plan.Call) (string, error) {
		x, y := e.Operands[0].Type(), e.Operands[1].Type()
		if plan.IsInteger(x) && plan.IsInteger(y) {
			a, b, err := c.numbers(e, plan.Int64)
			return "(" + a + " // " + b + ")", err
		}
		if isFloat(x) || isFloat(y) {
			// MySQL divides floats here as decimals, which cannot be told from values.
			return "", refused(e)
		}
		a, sa, b, sb, err := c.decimalArguments(e)
		if err != nil {
			return "", err
		}
		return cast(native("int_div", unscaled(a, sa), unscaled(b, sb), itoa(int(sb-sa))), "BIGINT"), nil
	}
	scalars["mod"] = func(c *compiler, e *plan.Call) (string, error) {
		t := e.Typ
		if t.ID() == arrow.BOOL || isNull(t) {
			t = plan.Int64
		}
		a, b, err := c.numbers(e, t)
		if err != nil {
			return "", err
		}
		return typed(e, "("+a+" % nullif("+b+", 0))", t)
	}
	scalars["neg"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.number(e, 0, e.Typ)
		return "(- " + a + ")", err
	}
	scalars["abs"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.number(e, 0, e.Typ)
		return "abs(" + a + ")", err
	}
	scalars["sign"] = func(c *compiler, e *plan.Call) (string, error) {
		t := e.Operands[0].Type()
		if t.ID() == arrow.BOOL || isNull(t) {
			t = plan.Int64
		}
		a, err := c.number(e, 0, t)
		return cast("sign("+a+")", "BIGINT"), err
	}
}

// sumOperand is the type in which the operands of a sum or difference are added.
// DuckDB computes with 64 bits, which is much faster, where the result has at most
// 18 digits; at the border it would raise an error instead of taking more.
func sumOperand(operands []plan.Expr, scale int32) arrow.DataType {
	whole := int32(1)
	for _, o := range operands {
		t := o.Type()
		if !isDecimal(t) && !plan.IsInteger(t) {
			return plan.Decimal(38, scale)
		}
		p, s := plan.DecimalParams(t)
		if s > scale {
			return plan.Decimal(38, scale) // rounding may carry into another digit
		}
		whole = max(whole, p-s)
	}
	if whole+scale > 17 {
		return plan.Decimal(38, scale)
	}
	return plan.Decimal(whole+scale, scale)
}

// finite turns a float beyond the range into an error, as MySQL does.
func finite(s string) string { return native("finite", s) }

// unscaled is the digits of a decimal as an integer.
func unscaled(s string, scale int32) string {
	return native(fmt.Sprintf("unscaled_%d", scale), cast(s, fmt.Sprintf("DECIMAL(38,%d)", scale)))
}

// quotient is a / b * 10^-scale as a value of the decimal type t, rounded half
// away from zero; NULL when b is 0. a and b are HUGEINT.
func quotient(a, b string, scale int32, t arrow.DataType) (string, error) {
	d, ok := t.(*arrow.Decimal128Type)
	if !ok {
		return "", errorf("a quotient of type %s", t)
	}
	st, err := sqlType(t)
	if err != nil {
		return "", err
	}
	q := native("divide", a, b, itoa(int(d.Scale-scale)))
	return cast(native(fmt.Sprintf("scaled_%d", d.Scale), q), st), nil
}
