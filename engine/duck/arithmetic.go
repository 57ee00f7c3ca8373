package duck

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// decimalArgument is an operand as a decimal of its own scale (an integer has
// scale 0).
func (c *compiler) decimalArgument(e *plan.Call, i int) (s string, precision, scale int32, err error) {
	t := e.Operands[i].Type()
	if t.ID() == arrow.BOOL || isNull(t) {
		precision, scale = 1, 0
	} else {
		precision, scale = plan.DecimalParams(t)
	}
	s, err = c.number(e, i, plan.Decimal(precision, scale))
	return s, precision, scale, err
}

func initArithmetic() {
	for name, op := range map[string]string{"add": "+", "sub": "-", "mul": "*"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			d, ok := e.Typ.(*arrow.Decimal128Type)
			if !ok {
				a, err := c.number(e, 0, e.Typ)
				if err != nil {
					return "", err
				}
				b, err := c.number(e, 1, e.Typ)
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
				a, _, sa, err := c.decimalArgument(e, 0)
				if err != nil {
					return "", err
				}
				b, _, sb, err := c.decimalArgument(e, 1)
				if err != nil {
					return "", err
				}
				if sa+sb > 38 {
					return "", refused(e)
				}
				return cast("("+a+" * "+b+")", t), nil
			}
			wide := plan.Decimal(38, d.Scale)
			a, err := c.number(e, 0, wide)
			if err != nil {
				return "", err
			}
			b, err := c.number(e, 1, wide)
			return cast("("+a+" "+op+" "+b+")", t), err
		}
	}
	scalars["div"] = func(c *compiler, e *plan.Call) (string, error) {
		if isFloat(e.Typ) {
			a, err := c.number(e, 0, plan.Float64)
			if err != nil {
				return "", err
			}
			b, err := c.number(e, 1, plan.Float64)
			return finite("(" + a + " / " + b + ")"), err
		}
		a, _, sa, err := c.decimalArgument(e, 0)
		if err != nil {
			return "", err
		}
		b, _, sb, err := c.decimalArgument(e, 1)
		if err != nil {
			return "", err
		}
		return quotient(unscaled(a, sa), unscaled(b, sb), sa-sb, e.Typ)
	}
	scalars["int_div"] = func(c *compiler, e *plan.Call) (string, error) {
		x, y := e.Operands[0].Type(), e.Operands[1].Type()
		if plan.IsInteger(x) && plan.IsInteger(y) {
			a, err := c.number(e, 0, plan.Int64)
			if err != nil {
				return "", err
			}
			b, err := c.number(e, 1, plan.Int64)
			return "(" + a + " // " + b + ")", err
		}
		if isFloat(x) || isFloat(y) {
			// MySQL divides floats here as decimals, which cannot be told from values.
			return "", refused(e)
		}
		a, _, sa, err := c.decimalArgument(e, 0)
		if err != nil {
			return "", err
		}
		b, _, sb, err := c.decimalArgument(e, 1)
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
		a, err := c.number(e, 0, t)
		if err != nil {
			return "", err
		}
		b, err := c.number(e, 1, t)
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
