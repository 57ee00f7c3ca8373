package bind

import (
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"sqe/fault"
	"sqe/plan"
)

// temporal is a date or timestamp; a literal text is read as one.
func (t *translator) temporal(x plan.Expr, name string) plan.Expr {
	if plan.IsTemporal(x.Type()) {
		return x
	}
	l, ok := x.(*plan.Literal)
	if !ok || l.Value == nil {
		if ok {
			return null(plan.Timestamp)
		}
		cannot("the function " + strings.ToUpper(name) + " on something else than a date")
	}
	s, isText := l.Value.(string)
	if i, isInt := l.Value.(int64); isInt {
		s, isText = strconv.FormatInt(i, 10), true
	}
	if !isText {
		cannot("the function " + strings.ToUpper(name) + " on something else than a date")
	}
	at, hasTime, ok := parseTemporal(s)
	if !ok {
		refuse(fault.BadStatement, "%s is given a text that is no date; write 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'", strings.ToUpper(name))
	}
	if hasTime {
		return timestampLiteral(at)
	}
	return dateLiteral(at)
}

func (t *translator) toDate(x plan.Expr) plan.Expr {
	x = t.temporal(x, "date")
	return t.cast(x, plan.Date)
}

func (t *translator) toTimestamp(x plan.Expr) plan.Expr {
	x = t.temporal(x, "timestamp")
	return t.cast(x, plan.Timestamp)
}

var extracted = map[string]string{
	"YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
	"MICROSECOND": "microsecond", "WEEK": "week",
}

func (t *translator) extract(_ sql.Expression, args []sql.Expression) plan.Expr {
	l, ok := t.expr(args[0]).(*plan.Literal)
	unit := ""
	if ok {
		unit, _ = l.Value.(string)
	}
	name, ok := extracted[strings.ToUpper(unit)]
	if !ok {
		cannot("EXTRACT of a combined unit")
	}
	x := t.temporal(t.expr(args[1]), "extract")
	if name == "week" {
		return t.call("week", x, integer(0))
	}
	return t.call(name, x)
}

func (t *translator) week(name string, args []sql.Expression) plan.Expr {
	mode := integer(0)
	if len(args) > 1 {
		l, ok := t.expr(args[1]).(*plan.Literal)
		if !ok || l.Value == nil {
			cannot(strings.ToUpper(name) + " with a mode that is no literal")
		}
		mode = l
	}
	return t.call(name, t.temporal(t.expr(args[0]), name), mode)
}

// dateAdd is DATE_ADD, ADDDATE and the like: a date and an interval, or days.
func (t *translator) dateAdd(args []sql.Expression, subtract bool) plan.Expr {
	if len(args) != 2 {
		cannot("this form of DATE_ADD")
	}
	if i, ok := args[1].(*expression.Interval); ok {
		return t.addInterval(args[0], i, subtract)
	}
	return t.addInterval(args[0], expression.NewInterval(args[1], "DAY"), subtract)
}

var intervals = map[string]bool{
	"YEAR": true, "QUARTER": true, "MONTH": true, "WEEK": true, "DAY": true, "HOUR": true, "MINUTE": true, "SECOND": true, "MICROSECOND": true,
}

func (t *translator) addInterval(date sql.Expression, i *expression.Interval, subtract bool) plan.Expr {
	unit := strings.ToUpper(i.Unit)
	if !intervals[unit] {
		cannot("an interval of a combined unit")
	}
	amount := t.number(t.expr(i.Child), "INTERVAL")
	if l, ok := amount.(*plan.Literal); ok && l.Value != nil {
		// INTERVAL '90' DAY is text that is a number.
		if f, isFloat := l.Value.(float64); isFloat && f == float64(int64(f)) {
			amount = integer(int64(f))
		}
	}
	if !plan.IsInteger(amount.Type()) {
		cannot("an interval with a fraction")
	}
	if subtract {
		if l, ok := amount.(*plan.Literal); ok {
			if n, ok := negated(l); ok {
				amount = n
				subtract = false
			}
		}
		if subtract {
			amount = t.call("neg", amount)
		}
	}
	raw := t.expr(date)
	x := t.temporal(raw, "DATE_ADD")
	switch unit {
	case "HOUR", "MINUTE", "SECOND", "MICROSECOND":
		if x.Type().ID() == arrow.DATE32 {
			x = t.cast(x, plan.Timestamp)
		}
	}
	if xl, ok := x.(*plan.Literal); ok {
		if al, ok := amount.(*plan.Literal); ok {
			if folded, ok := addLiteral(xl, al, unit); ok {
				return folded
			}
		}
	}
	return t.call("date_add", x, amount, text(strings.ToLower(unit)))
}

// formatHasTime reports whether a STR_TO_DATE format reads a time of day.
func formatHasTime(f string) bool {
	for i := 0; i+1 < len(f); i++ {
		if f[i] == '%' {
			if strings.IndexByte("HhIiklprSsTf", f[i+1]) >= 0 {
				return true
			}
			i++
		}
	}
	return false
}

func (t *translator) strToDate(_ sql.Expression, args []sql.Expression) plan.Expr {
	f, ok := t.expr(args[1]).(*plan.Literal)
	format := ""
	if ok {
		format, ok = f.Value.(string)
	}
	if !ok {
		cannot("STR_TO_DATE with a format that is no literal")
	}
	x := t.argument('s', "str_to_date", t.expr(args[0]))
	if formatHasTime(format) {
		return t.call("str_to_date_timestamp", x, f)
	}
	return t.call("str_to_date_date", x, f)
}

func timeUnit(nanos int64) time.Duration { return time.Duration(nanos) }

// addLiteral adds an interval to a literal date, with MySQL's rule that a day
// beyond the end of a month is its last day. ok is false when the result is no
// date (beyond year 9999).
func addLiteral(x, amount *plan.Literal, unit string) (plan.Expr, bool) {
	if x.Value == nil || amount.Value == nil {
		return null(x.Typ), true
	}
	n, ok := amount.Value.(int64)
	if !ok || n > 1e15 || n < -1e15 {
		return nil, false
	}
	var at time.Time
	switch v := x.Value.(type) {
	case arrow.Date32:
		at = v.ToTime()
	case arrow.Timestamp:
		ts, ok := x.Typ.(*arrow.TimestampType)
		if !ok {
			return nil, false
		}
		at = v.ToTime(ts.Unit)
	default:
		return nil, false
	}
	months := map[string]int64{"YEAR": 12, "QUARTER": 3, "MONTH": 1}
	units := map[string]time.Duration{
		"WEEK": 7 * 24 * time.Hour, "DAY": 24 * time.Hour, "HOUR": time.Hour, "MINUTE": time.Minute, "SECOND": time.Second, "MICROSECOND": time.Microsecond,
	}
	if m, ok := months[unit]; ok {
		if n > 120000 || n < -120000 {
			return nil, false
		}
		first := time.Date(at.Year(), at.Month()+time.Month(n*m), 1, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		at = first.AddDate(0, 0, min(at.Day(), last)-1)
	} else {
		u := units[unit]
		// In days first: a Duration spans 292 years only.
		perDay := int64(24 * time.Hour / min(u, 24*time.Hour))
		if u >= 24*time.Hour {
			if n > 4e6 || n < -4e6 {
				return nil, false
			}
			at = at.AddDate(0, 0, int(n*int64(u/(24*time.Hour))))
		} else {
			days := n / perDay
			if days > 4e6 || days < -4e6 {
				return nil, false
			}
			at = at.AddDate(0, 0, int(days)).Add(time.Duration(n%perDay) * u)
		}
	}
	if at.Year() > 9999 || at.Year() < 0 {
		return nil, false
	}
	if x.Typ.ID() == arrow.DATE32 {
		return dateLiteral(at), true
	}
	return timestampLiteral(at), true
}
