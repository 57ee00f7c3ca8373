package duck

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

func initMath() {
	// The result is NULL outside the domain, as in MySQL.
	domain := map[string]string{
		"sqrt": "% >= 0", "ln": "% > 0", "log2": "% > 0", "log10": "% > 0", "asin": "abs(%) <= 1", "acos": "abs(%) <= 1",
		// Only files can hold an infinity.
		"sin": "isfinite(%)", "cos": "isfinite(%)", "tan": "isfinite(%)",
	}
	for _, name := range []string{"sqrt", "exp", "ln", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			x, err := c.number(e, 0, plan.Float64)
			s := name + "(" + x + ")"
			if name == "exp" || name == "degrees" {
				s = finite(s)
			}
			if d, ok := domain[name]; ok {
				s = "CASE WHEN " + strings.ReplaceAll(d, "%", x) + " THEN " + s + " END"
			}
			return s, err
		}
	}
	scalars["cot"] = func(c *compiler, e *plan.Call) (string, error) {
		x, err := c.number(e, 0, plan.Float64)
		return native("cot", x), err
	}
	scalars["pow"] = func(c *compiler, e *plan.Call) (string, error) {
		a, b, err := c.numbers(e, plan.Float64)
		return native("pow", a, b), err
	}
	scalars["atan2"] = func(c *compiler, e *plan.Call) (string, error) {
		a, b, err := c.numbers(e, plan.Float64)
		return "atan2(" + a + ", " + b + ")", err
	}
	// log(base, x)
	scalars["log"] = func(c *compiler, e *plan.Call) (string, error) {
		b, err := c.number(e, 0, plan.Float64)
		if err != nil {
			return "", err
		}
		x, err := c.number(e, 1, plan.Float64)
		return "CASE WHEN " + b + " > 0 AND " + b + " <> 1 AND " + x + " > 0 THEN ln(" + x + ") / ln(" + b + ") END", err
	}
	scalars["pi"] = func(*compiler, *plan.Call) (string, error) { return "pi()", nil }
	scalars["rand"] = func(c *compiler, e *plan.Call) (string, error) {
		if len(e.Operands) > 0 {
			// A seed promises a sequence that only MySQL makes.
			return "", refused(e)
		}
		return "random()", nil
	}
	for _, name := range []string{"floor", "ceil"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			t := e.Operands[0].Type()
			switch {
			case isFloat(t):
				x, err := c.number(e, 0, plan.Float64)
				return name + "(" + x + ")", err
			case isDecimal(t):
				p, s := plan.DecimalParams(t)
				x, err := c.number(e, 0, plan.Decimal(p, s))
				return cast(name+"("+x+")", "BIGINT"), err
			}
			return c.number(e, 0, plan.Int64)
		}
	}
	for name, mode := range map[string]string{"round": "TRUE", "truncate": "FALSE"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			n := "CAST('0' AS BIGINT)"
			var err error
			if len(e.Operands) == 2 {
				if n, err = c.number(e, 1, plan.Int64); err != nil {
					return "", err
				}
			}
			if isFloat(e.Typ) {
				x, err := c.number(e, 0, plan.Float64)
				return native("round_double", x, n, mode), err
			}
			x, s, err := c.decimalArgument(e, 0)
			if err != nil {
				return "", err
			}
			v := native("round_digits", unscaled(x, s), n, cast(quote(itoa(int(s))), "BIGINT"), mode)
			d, ok := e.Typ.(*arrow.Decimal128Type)
			if !ok {
				if s != 0 {
					return "", refused(e)
				}
				return cast(v, "BIGINT"), nil
			}
			if d.Scale != s {
				return "", refused(e)
			}
			st, err := sqlType(e.Typ)
			return cast(native("scaled_"+itoa(int(s)), v), st), err
		}
	}
}
