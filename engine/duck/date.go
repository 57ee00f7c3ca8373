package duck

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// moment is an operand as TIMESTAMP in UTC. Nanoseconds are cut to microseconds.
func (c *compiler) moment(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if !plan.IsTemporal(t) && !isNull(t) {
		return "", refused(e)
	}
	s, err := c.expr(e.Operands[i])
	return "TRY_CAST(" + s + " AS TIMESTAMP)", err
}

// day is an operand as DATE in UTC.
func (c *compiler) day(e *plan.Call, i int) (string, error) {
	t := e.Operands[i].Type()
	if !plan.IsTemporal(t) && !isNull(t) {
		return "", refused(e)
	}
	s, err := c.expr(e.Operands[i])
	if t.ID() == arrow.DATE32 {
		return s, err
	}
	return cast(utc(s, t), "DATE"), err
}

func onDay(format string) scalar {
	return func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.day(e, 0)
		return strings.Replace(format, "%", s, 1), err
	}
}

// units that date_add and timestampdiff know.
var units = []string{"microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}

func (c *compiler) unit(e *plan.Call, i int) (string, error) {
	u, err := constant[string](e, i)
	if err != nil {
		return "", err
	}
	u = strings.ToLower(u)
	if !slices.Contains(units, u) {
		return "", fault.New(fault.Unsupported, "the unit of %s cannot be computed; use one of %s", e.Func.Name, strings.ToUpper(strings.Join(units, ", ")))
	}
	return u, nil
}

func initDate() {
	days := map[string]string{
		"year": "year(%)", "quarter": "quarter(%)", "month": "month(%)", "day": "day(%)",
		"dayofweek": "(dayofweek(%) + 1)", "weekday": "(isodow(%) - 1)", "dayofyear": "dayofyear(%)",
		"to_days": "(date_diff('day', DATE '1970-01-01', %) + 719528)",
	}
	for name, f := range days {
		scalars[name] = onDay("CAST(" + f + " AS BIGINT)")
	}
	times := map[string]string{
		"hour": "hour(%)", "minute": "minute(%)", "second": "second(%)", "microsecond": "(microsecond(%) % 1000000)",
		"time_to_sec": "(microsecond(%) // 1000000 + 60 * minute(%) + 3600 * hour(%))",
	}
	for name, f := range times {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			var s string
			var err error
			if e.Operands[0].Type().ID() == arrow.TIME64 {
				s, err = c.expr(e.Operands[0])
			} else {
				s, err = c.moment(e, 0)
			}
			return cast(strings.ReplaceAll(strings.ReplaceAll(f, "(%)", "("+s+")"), "%)", s+")"), "BIGINT"), err
		}
	}
	scalars["unix_timestamp"] = func(c *compiler, e *plan.Call) (string, error) {
		s, err := c.moment(e, 0)
		return native("unix_timestamp", s), err
	}
	for _, name := range []string{"week", "yearweek"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			s, err := c.day(e, 0)
			if err != nil {
				return "", err
			}
			mode := cast("'0'", "BIGINT")
			if len(e.Operands) == 2 {
				if mode, err = c.number(e, 1, plan.Int64); err != nil {
					return "", err
				}
			}
			return native(name, s, mode), nil
		}
	}
	scalars["dayname"] = onDay("dayname(%)")
	scalars["monthname"] = onDay("monthname(%)")
	scalars["last_day"] = onDay("last_day(%)")
	scalars["date_format"] = func(c *compiler, e *plan.Call) (string, error) {
		f, err := constant[string](e, 1)
		if err != nil {
			return "", err
		}
		s, err := c.moment(e, 0)
		if err != nil {
			return "", err
		}
		q, err := text(f)
		return native("date_format", s, q), err
	}
	converts := func(t arrow.DataType) scalar {
		return func(c *compiler, e *plan.Call) (string, error) {
			from := e.Operands[0].Type()
			s, err := c.expr(e.Operands[0])
			if err != nil {
				return "", err
			}
			if !plan.IsTemporal(from) && !plan.IsString(from) && !isNull(from) {
				return "", refused(e)
			}
			return castExpr(s, from, t, true)
		}
	}
	scalars["to_date"] = converts(plan.Date)
	scalars["to_timestamp"] = converts(plan.Timestamp)
	scalars["from_days"] = func(c *compiler, e *plan.Call) (string, error) {
		n, err := c.number(e, 0, plan.Int64)
		return native("from_days", n), err
	}
	scalars["makedate"] = func(c *compiler, e *plan.Call) (string, error) {
		y, err := c.number(e, 0, plan.Int64)
		if err != nil {
			return "", err
		}
		d, err := c.number(e, 1, plan.Int64)
		return native("makedate", y, d), err
	}
	scalars["from_unixtime"] = func(c *compiler, e *plan.Call) (string, error) {
		n, err := c.number(e, 0, plan.Decimal(38, 6))
		return native("from_unixtime", unscaled(n, 6)), err
	}
	scalars["datediff"] = func(c *compiler, e *plan.Call) (string, error) {
		a, err := c.day(e, 0)
		if err != nil {
			return "", err
		}
		b, err := c.day(e, 1)
		return "date_diff('day', " + b + ", " + a + ")", err
	}
	scalars["timestampdiff"] = func(c *compiler, e *plan.Call) (string, error) {
		u, err := c.unit(e, 0)
		if err != nil {
			return "", err
		}
		a, err := c.moment(e, 1)
		if err != nil {
			return "", err
		}
		b, err := c.moment(e, 2)
		return native("timestampdiff", quote(u), a, b), err
	}
	scalars["date_add"] = dateAdd
	scalars["date_trunc"] = func(c *compiler, e *plan.Call) (string, error) {
		u, err := constant[string](e, 0)
		if err != nil {
			return "", err
		}
		u = strings.ToLower(u)
		if u != "year" && u != "month" && u != "day" {
			return "", refused(e)
		}
		s, err := c.as(e.Operands[1], e.Typ)
		if err != nil {
			return "", err
		}
		name := "date_trunc_timestamp"
		switch {
		case e.Typ.ID() == arrow.DATE32:
			name = "date_trunc_date"
		case isNanos(e.Typ):
			name = "date_trunc_nanos"
		case isInstant(e.Typ):
			name = "date_trunc_instant"
		}
		return native(name, quote(u), s), nil
	}
	for name, f := range map[string]string{"str_to_date_date": "str_to_date", "str_to_date_timestamp": "str_to_timestamp"} {
		scalars[name] = func(c *compiler, e *plan.Call) (string, error) {
			format, err := constant[string](e, 1)
			if err != nil {
				return "", err
			}
			if !parsable(format) {
				return "", fault.New(fault.Unsupported, "the format of STR_TO_DATE uses a specifier that cannot be computed; use %%Y %%y %%m %%c %%d %%e %%b %%M %%j %%W %%a %%w %%U %%u %%V %%v %%X %%x %%H %%k %%h %%I %%l %%i %%s %%S %%f %%p %%T %%r")
			}
			s, err := c.text(e, 0)
			if err != nil {
				return "", err
			}
			q, err := text(format)
			return native(f, s, q), err
		}
	}
}

func dateAdd(c *compiler, e *plan.Call) (string, error) {
	u, err := c.unit(e, 2)
	if err != nil {
		return "", err
	}
	t := e.Operands[0].Type()
	isDate := t.ID() == arrow.DATE32
	if isNanos(t) || (isDate && slices.Index(units, u) < slices.Index(units, "day")) {
		return "", refused(e)
	}
	var n string
	if at := e.Operands[1].Type(); u == "second" && (isDecimal(at) || isFloat(at)) {
		// Seconds may have a fraction.
		if n, err = c.number(e, 1, plan.Decimal(38, 6)); err != nil {
			return "", err
		}
		n, u = "TRY_CAST("+unscaled(n, 6)+" AS BIGINT)", "microsecond"
	} else if n, err = c.number(e, 1, plan.Int64); err != nil {
		return "", err
	}
	s, err := c.moment(e, 0)
	if err != nil {
		return "", err
	}
	st, err := sqlType(e.Typ)
	return cast(native("date_add", s, n, quote(u)), st), err
}
