package bind

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

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
