package masks

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

var (
	fnDateTrunc = function("date_trunc")
	yearUnit    = text("year")
	// truncateUnit is the unit of Iceberg's truncating actions.
	truncateUnit = map[string]plan.Expr{IcebergTruncateYear: yearUnit, IcebergTruncateMonth: text("month")}
)

func truncateMask(unit plan.Expr, t arrow.DataType) Mask {
	return func(raw plan.Expr) plan.Expr { return call(fnDateTrunc, t, unit, raw) }
}

// Truncate is the definition of the plan function date_trunc(unit, value) for the
// units "year" and "month": the first instant of the value's year or month in the
// proleptic Gregorian calendar, in UTC, in the type of the value. A start that the
// type cannot hold (the first year of nanosecond timestamps begins before they
// do) gives NULL, here ok false, so that no value makes a mask fail.
//
// value is in the unit of the type: days, microseconds or nanoseconds since the
// epoch.
func Truncate(unit string, value int64, t arrow.DataType) (start int64, ok bool) {
	perDay, least := unitsPerDay(t)
	day := floorDiv(value, perDay)
	y, m := civil(day)
	if unit == "year" {
		m = 1
	}
	first := firstOfMonth(y, m)
	if first < floorDiv(least, perDay) || (first == floorDiv(least, perDay) && least%perDay != 0) {
		return 0, false
	}
	return first * perDay, true
}

// unitsPerDay is how many units of t a day has, and the least value of t.
func unitsPerDay(t arrow.DataType) (perDay, least int64) {
	ts, ok := t.(*arrow.TimestampType)
	if !ok {
		return 1, math.MinInt32
	}
	if ts.Unit == arrow.Nanosecond {
		return 86_400_000_000_000, math.MinInt64
	}
	return 86_400_000_000, math.MinInt64
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil is the year and month of a day since the epoch. The calendar repeats
// every 400 years (146097 days); counting years from March puts the leap day at
// the end of the year.
func civil(day int64) (year, month int64) {
	day += 719468 // from 0000-03-01
	era := floorDiv(day, 146097)
	d := day - era*146097
	y := (d - d/1460 + d/36524 - d/146096) / 365
	inYear := d - (365*y + y/4 - y/100)
	m := (5*inYear+2)/153 + 3
	if m > 12 {
		m -= 12
		y++
	}
	return y + era*400, m
}

// firstOfMonth is the day since the epoch of the first of a month.
func firstOfMonth(year, month int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	y := year - era*400
	return era*146097 + 365*y + y/4 - y/100 + (153*(month-3)+2)/5 - 719468
}
