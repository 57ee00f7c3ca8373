package duck

import (
	"math"
	"strconv"
	"time"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/masks"
	"sqe/plan"
)

const (
	secondMicros = int64(1_000_000)
	dayMicros    = 86_400 * secondMicros
	// epochDays is MySQL's TO_DAYS('1970-01-01').
	epochDays = 719528
)

// The least and the greatest day of MySQL's dates, 0000-01-01 and 9999-12-31.
var firstDay, lastDay = dayNumber(0, 1, 1), dayNumber(9999, 12, 31)

func dayNumber(y, m, d int) int64 {
	return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix() / 86400
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func dayOf(days int32) time.Time { return time.Unix(int64(days)*86400, 0).UTC() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// inRange reports whether an instant is one of MySQL's DATETIME.
func inRange(micros int64) bool {
	d := floorDiv(micros, dayMicros)
	return d >= firstDay && d <= lastDay
}

// week is MySQL's WEEK. Bits of mode: 1 Monday is the first day of a week, 2 weeks
// count from 1 to 53 (else from 0), 4 turns round whether week 1 is the first with
// four days of the year or the first that begins in it.
func week(t time.Time, mode int64) (year, week int) {
	mondayFirst := mode&1 != 0
	weekYear := mode&2 != 0
	firstWeekday := mode&4 != 0
	if !mondayFirst {
		firstWeekday = !firstWeekday
	}
	// firstWeekday true: week 1 begins with the first day of the week in the year.
	year = t.Year()
	days := t.YearDay() - 1
	jan1 := int(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Weekday())
	if mondayFirst {
		jan1 = (jan1 + 6) % 7
	}
	if t.Month() == 1 && t.Day() <= 7-jan1 {
		if !weekYear && ((firstWeekday && jan1 != 0) || (!firstWeekday && jan1 >= 4)) {
			return year, 0
		}
		if weekYear && ((firstWeekday && jan1 != 0) || (!firstWeekday && jan1 >= 4)) {
			year--
			n := yearDays(year)
			days += n
			jan1 = (jan1 + 53*7 - n) % 7
		}
	}
	var since int
	if (firstWeekday && jan1 != 0) || (!firstWeekday && jan1 >= 4) {
		since = days - (7 - jan1)
	} else {
		since = days + jan1
	}
	if weekYear && since >= 52*7 {
		jan1 = (jan1 + yearDays(year)) % 7
		if (!firstWeekday && jan1 < 4) || (firstWeekday && jan1 == 0) {
			return year + 1, 1
		}
	}
	return year, since/7 + 1
}

func yearDays(y int) int { return time.Date(y, 12, 31, 0, 0, 0, 0, time.UTC).YearDay() }

func two(dst []byte, n int) []byte { return append(dst, byte('0'+n/10%10), byte('0'+n%10)) }

func digits(dst []byte, n, width int) []byte {
	s := strconv.Itoa(n)
	for range width - len(s) {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

func twelve(h int) int {
	if h %= 12; h == 0 {
		return 12
	}
	return h
}

// dateFormat is MySQL's DATE_FORMAT.
func dateFormat(dst []byte, t time.Time, format string) []byte {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			dst = append(dst, format[i])
			continue
		}
		i++
		switch format[i] {
		case 'a':
			dst = append(dst, t.Weekday().String()[:3]...)
		case 'b':
			dst = append(dst, t.Month().String()[:3]...)
		case 'c':
			dst = strconv.AppendInt(dst, int64(t.Month()), 10)
		case 'D':
			d := t.Day()
			dst = strconv.AppendInt(dst, int64(d), 10)
			suffix := "th"
			if d/10 != 1 {
				switch d % 10 {
				case 1:
					suffix = "st"
				case 2:
					suffix = "nd"
				case 3:
					suffix = "rd"
				}
			}
			dst = append(dst, suffix...)
		case 'd':
			dst = two(dst, t.Day())
		case 'e':
			dst = strconv.AppendInt(dst, int64(t.Day()), 10)
		case 'f':
			dst = digits(dst, t.Nanosecond()/1000, 6)
		case 'H':
			dst = two(dst, t.Hour())
		case 'h', 'I':
			dst = two(dst, twelve(t.Hour()))
		case 'i':
			dst = two(dst, t.Minute())
		case 'j':
			dst = digits(dst, t.YearDay(), 3)
		case 'k':
			dst = strconv.AppendInt(dst, int64(t.Hour()), 10)
		case 'l':
			dst = strconv.AppendInt(dst, int64(twelve(t.Hour())), 10)
		case 'M':
			dst = append(dst, t.Month().String()...)
		case 'm':
			dst = two(dst, int(t.Month()))
		case 'p':
			dst = append(dst, meridiem(t)...)
		case 'r':
			dst = append(two(append(two(append(two(dst, twelve(t.Hour())), ':'), t.Minute()), ':'), t.Second()), ' ')
			dst = append(dst, meridiem(t)...)
		case 'S', 's':
			dst = two(dst, t.Second())
		case 'T':
			dst = two(append(two(append(two(dst, t.Hour()), ':'), t.Minute()), ':'), t.Second())
		case 'U':
			_, w := week(t, 0)
			dst = two(dst, w)
		case 'u':
			_, w := week(t, 1)
			dst = two(dst, w)
		case 'V':
			_, w := week(t, 2)
			dst = two(dst, w)
		case 'v':
			_, w := week(t, 3)
			dst = two(dst, w)
		case 'W':
			dst = append(dst, t.Weekday().String()...)
		case 'w':
			dst = strconv.AppendInt(dst, int64(t.Weekday()), 10)
		case 'X':
			y, _ := week(t, 2)
			dst = digits(dst, y, 4)
		case 'x':
			y, _ := week(t, 3)
			dst = digits(dst, y, 4)
		case 'Y':
			dst = digits(dst, t.Year(), 4)
		case 'y':
			dst = two(dst, t.Year()%100)
		default:
			dst = append(dst, format[i])
		}
	}
	return dst
}

func meridiem(t time.Time) string {
	if t.Hour() < 12 {
		return "AM"
	}
	return "PM"
}

// addMonths moves to the same day of another month, or its last day.
func addMonths(t time.Time, n int64) (time.Time, bool) {
	if n > 120_000 || n < -120_000 {
		return t, false
	}
	months := int64(t.Year())*12 + int64(t.Month()) - 1 + n
	y, m := int(floorDiv(months, 12)), int(months-floorDiv(months, 12)*12)+1
	last := time.Date(y, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(y, time.Month(m), min(t.Day(), last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC), true
}

var unitMicros = map[string]int64{
	"microsecond": 1, "second": secondMicros, "minute": 60 * secondMicros, "hour": 3600 * secondMicros,
	"day": dayMicros, "week": 7 * dayMicros,
}

var unitMonths = map[string]int64{"month": 1, "quarter": 3, "year": 12}

// addUnits is value + n units; false beyond MySQL's range.
func addUnits(micros, n int64, unit string) (int64, bool) {
	if per, ok := unitMicros[unit]; ok {
		if n > math.MaxInt64/per || n < -math.MaxInt64/per {
			return 0, false
		}
		sum := micros + n*per
		if (n > 0) != (sum > micros) && n != 0 {
			return 0, false
		}
		return sum, inRange(sum)
	}
	per := unitMonths[unit]
	if n > 1_000_000 || n < -1_000_000 {
		return 0, false
	}
	t, ok := addMonths(moment(micros), n*per)
	if !ok {
		return 0, false
	}
	return t.UnixMicro(), inRange(t.UnixMicro())
}

// timestampDiff is the number of whole units from a to b.
func timestampDiff(unit string, a, b int64) int64 {
	if per, ok := unitMicros[unit]; ok {
		return (b - a) / per
	}
	if b < a {
		return -timestampDiff(unit, b, a)
	}
	x, y := moment(a), moment(b)
	months := int64(y.Year()-x.Year())*12 + int64(y.Month()) - int64(x.Month())
	inMonth := func(t time.Time) int64 {
		return int64(t.Day())*dayMicros + int64(t.Hour())*3600*secondMicros + int64(t.Minute())*60*secondMicros + int64(t.Second())*secondMicros + int64(t.Nanosecond()/1000)
	}
	if inMonth(y) < inMonth(x) {
		months--
	}
	return months / unitMonths[unit]
}

// truncate is masks.Truncate, with the unit day beside.
func truncate(unit string, v int64, t arrow.DataType, perDay int64) (int64, bool) {
	if unit == "day" {
		return floorDiv(v, perDay) * perDay, true
	}
	return masks.Truncate(unit, v, t)
}

func init() {
	register("week", rows(func(in []vector, out *output, i int) {
		_, w := week(dayOf(at[int32](in[0], i)), at[int64](in[1], i)&7)
		set(out, i, int64(w))
	}), longType, dateType, longType)
	register("yearweek", rows(func(in []vector, out *output, i int) {
		y, w := week(dayOf(at[int32](in[0], i)), at[int64](in[1], i)&7|2)
		set(out, i, int64(y)*100+int64(w))
	}), longType, dateType, longType)
	register("date_format", textRows(func(dst []byte, in []vector, i int) ([]byte, bool) {
		return dateFormat(dst, moment(at[int64](in[0], i)), in[1].string(i)), true
	}), textType, timestampType, textType)
	register("unix_timestamp", rows(func(in []vector, out *output, i int) {
		// MySQL gives 0 before 1970.
		set(out, i, max(0, floorDiv(at[int64](in[0], i), secondMicros)))
	}), longType, timestampType)
	register("from_unixtime", rows(func(in []vector, out *output, i int) {
		v := at[int128](in[0], i)
		// MySQL's greatest is 3001-01-18 23:59:59.999999.
		if v.hi == 0 && v.lo < 32536771200*1_000_000 {
			set(out, i, int64(v.lo))
		}
	}), timestampType, hugeType)
	register("from_days", rows(func(in []vector, out *output, i int) {
		n := at[int64](in[0], i)
		if n >= 366 && n-epochDays <= lastDay {
			set(out, i, int32(n-epochDays))
		}
	}), dateType, longType)
	register("makedate", rows(func(in []vector, out *output, i int) {
		y, d := at[int64](in[0], i), at[int64](in[1], i)
		if d <= 0 || y < 0 || y > 9999 || d > 4_000_000 {
			return
		}
		if y < 70 {
			y += 2000
		} else if y < 100 {
			y += 1900
		}
		if v := dayNumber(int(y), 1, 1) + d - 1; v <= lastDay {
			set(out, i, int32(v))
		}
	}), dateType, longType, longType)
	register("timestampdiff", rows(func(in []vector, out *output, i int) {
		set(out, i, timestampDiff(in[0].string(i), at[int64](in[1], i), at[int64](in[2], i)))
	}), longType, textType, timestampType, timestampType)
	register("date_add", rows(func(in []vector, out *output, i int) {
		if v, ok := addUnits(at[int64](in[0], i), at[int64](in[1], i), in[2].string(i)); ok {
			set(out, i, v)
		}
	}), timestampType, timestampType, longType, textType)
	register("date_trunc_date", rows(func(in []vector, out *output, i int) {
		if v, ok := truncate(in[0].string(i), int64(at[int32](in[1], i)), plan.Date, 1); ok {
			set(out, i, int32(v))
		}
	}), dateType, textType, dateType)
	for name, p := range map[string]struct {
		id     nativeType
		typ    arrow.DataType
		perDay int64
	}{
		"date_trunc_timestamp": {timestampType, plan.Timestamp, dayMicros},
		"date_trunc_instant":   {nativeType{id: duckdb.TypeTimestampTZ}, plan.TimestampTZ, dayMicros},
		"date_trunc_nanos":     {nativeType{id: duckdb.TypeTimestampNS}, plan.TimestampNS, dayMicros * 1000},
	} {
		register(name, rows(func(in []vector, out *output, i int) {
			if v, ok := truncate(in[0].string(i), at[int64](in[1], i), p.typ, p.perDay); ok {
				set(out, i, v)
			}
		}), p.id, textType, p.id)
	}
	register("parse_date", rows(func(in []vector, out *output, i int) {
		if v, ok := parseMoment(in[0].string(i)); ok {
			set(out, i, int32(floorDiv(v, dayMicros)))
		}
	}), dateType, textType)
	register("parse_timestamp", rows(func(in []vector, out *output, i int) {
		if v, ok := parseMoment(in[0].string(i)); ok {
			set(out, i, v)
		}
	}), timestampType, textType)
	register("parse_time", rows(func(in []vector, out *output, i int) {
		if v, ok := parseTime(in[0].string(i)); ok {
			set(out, i, v)
		}
	}), timeType, textType)
	register("str_to_date", rows(func(in []vector, out *output, i int) {
		if v, ok := strToDate(in[0].string(i), in[1].string(i)); ok {
			set(out, i, int32(floorDiv(v, dayMicros)))
		}
	}), dateType, textType, textType)
	register("str_to_timestamp", rows(func(in []vector, out *output, i int) {
		if v, ok := strToDate(in[0].string(i), in[1].string(i)); ok {
			set(out, i, v)
		}
	}), timestampType, textType, textType)
}
