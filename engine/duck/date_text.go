package duck

import (
	"strconv"
	"strings"
	"time"
)

// parseMoment reads a date, with or without a time, as MySQL does: parts with any
// punctuation between them, or digits alone.
func parseMoment(s string) (micros int64, ok bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if n := len(s); (n == 8 || n == 14) && strings.Trim(s, "0123456789") == "" {
		s = s[:4] + "-" + s[4:6] + "-" + s[6:]
		if n == 14 {
			s = s[:10] + " " + s[10:12] + ":" + s[12:14] + ":" + s[14:]
		}
	}
	var parts [6]int
	at := 0
	number := func(width int) (int, bool) {
		n, v := 0, 0
		for at+n < len(s) && n < width && '0' <= s[at+n] && s[at+n] <= '9' {
			v = v*10 + int(s[at+n]-'0')
			n++
		}
		at += n
		return v, n > 0
	}
	for k := range parts {
		if k > 0 {
			if at == len(s) {
				if k < 3 {
					return 0, false
				}
				break
			}
			switch sep := s[at]; {
			case k == 3 && (sep == ' ' || sep == 'T'):
			case k != 3 && sep != ' ' && isPunct(sep):
			default:
				return 0, false
			}
			at++
		}
		width := 2
		if k == 0 {
			width = 4
		}
		start := at
		v, ok := number(width)
		if !ok {
			return 0, false
		}
		if k == 0 && at-start <= 2 {
			// Two digits of a year: 70 to 99 are of the 20th century.
			if v < 70 {
				v += 2000
			} else {
				v += 1900
			}
		}
		parts[k] = v
	}
	var frac int64
	if at < len(s) && s[at] == '.' {
		at++
		scale := secondMicros
		round := false
		for n := 0; at < len(s) && '0' <= s[at] && s[at] <= '9'; at++ {
			if n < 6 {
				scale /= 10
				frac += int64(s[at]-'0') * scale
			} else if n == 6 {
				round = s[at] >= '5'
			}
			n++
		}
		if round {
			frac++
		}
	}
	if at != len(s) {
		return 0, false
	}
	y, m, d := parts[0], parts[1], parts[2]
	if m < 1 || m > 12 || d < 1 || parts[3] > 23 || parts[4] > 59 || parts[5] > 59 {
		return 0, false
	}
	t := time.Date(y, time.Month(m), d, parts[3], parts[4], parts[5], 0, time.UTC)
	if t.Day() != d {
		return 0, false
	}
	micros = t.UnixMicro() + frac
	return micros, inRange(micros)
}

func isPunct(c byte) bool { return c > ' ' && c < 0x7f && !alphanumeric(rune(c)) }

// parseTime reads [D ]HH:MM[:SS[.ffffff]] within one day.
func parseTime(s string) (micros int64, ok bool) {
	t, frac, _ := strings.Cut(strings.Trim(s, " \t\n\v\f\r"), ".")
	parts := strings.Split(t, ":")
	if len(parts) < 2 || len(parts) > 3 || len(frac) > 6 || strings.Trim(frac, "0123456789") != "" {
		return 0, false
	}
	limits := []int64{23, 59, 59}
	scale := []int64{3600, 60, 1}
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 8)
		if err != nil || int64(v) > limits[i] {
			return 0, false
		}
		micros += int64(v) * scale[i] * secondMicros
	}
	if frac != "" {
		v, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
		if err != nil {
			return 0, false
		}
		micros += v
	}
	return micros, true
}

// parsable reports whether strToDate knows every specifier of a format.
func parsable(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] == '%' {
			i++
			if i == len(format) || !strings.ContainsRune("YymcdebMHkhIlisSfpTrjaWwUuVvXx%", rune(format[i])) {
				return false
			}
		}
	}
	return true
}

// strToDate is MySQL's STR_TO_DATE for the specifiers of parsable.
func strToDate(s, format string) (micros int64, ok bool) {
	format = strings.NewReplacer("%T", "%H:%i:%S", "%r", "%I:%i:%S %p").Replace(format)
	r := dateReader{rest: s}
	for i := 0; i < len(format); i++ {
		r.rest = strings.TrimLeft(r.rest, " ")
		switch c := format[i]; {
		case c == ' ':
		case c == '%':
			i++
			if !r.specifier(format[i]) {
				return 0, false
			}
		case !r.character(c):
			return 0, false
		}
	}
	return r.micros()
}

// dateReader reads the parts of a date and time from the front of a text.
type dateReader struct {
	rest                                   string
	year, month, day, hour, minute, second int
	microsecond                            int
	halfDay, afternoon                     bool // the hour is one of twelve; PM
	yearDay, weekday, week, weekYear       int  // 0: not read; Monday is 1. A week of 0 is set by weekRead
	weekRead, sundayFirst, weekOfYear      bool // weekOfYear: %V or %v, which go with the years %X and %x
	yearSundayFirst                        bool // of weekYear
}

// specifier reads what one specifier of a format asks for. false: the text does not
// have it.
func (r *dateReader) specifier(c byte) bool {
	switch c {
	case 'Y':
		return r.number(&r.year, 4, 0, 9999)
	case 'y':
		ok := r.number(&r.year, 2, 0, 99)
		if r.year < 70 {
			r.year += 100
		}
		r.year += 1900
		return ok
	case 'm', 'c':
		return r.number(&r.month, 2, 0, 99)
	case 'd', 'e':
		return r.number(&r.day, 2, 0, 99)
	case 'H', 'k':
		return r.number(&r.hour, 2, 0, 23)
	case 'h', 'I', 'l':
		r.halfDay = true
		return r.number(&r.hour, 2, 1, 12)
	case 'i':
		return r.number(&r.minute, 2, 0, 59)
	case 's', 'S':
		return r.number(&r.second, 2, 0, 59)
	case 'f':
		before := len(r.rest)
		ok := r.number(&r.microsecond, 6, 0, 999_999)
		for digits := before - len(r.rest); digits < 6; digits++ {
			r.microsecond *= 10
		}
		return ok
	case 'p':
		r.afternoon = r.afternoon || r.hasPrefix("PM")
		return r.word("AM") || r.word("PM")
	case 'b':
		return r.monthName(func(name string) string { return name[:3] })
	case 'M':
		return r.monthName(func(name string) string { return name })
	case 'j':
		return r.number(&r.yearDay, 3, 1, 366)
	case 'W', 'a':
		return r.dayName(c == 'a')
	case 'w':
		ok := r.number(&r.weekday, 1, 0, 6)
		if r.weekday == 0 {
			r.weekday = 7
		}
		return ok
	case 'U', 'u', 'V', 'v':
		r.weekRead, r.sundayFirst, r.weekOfYear = true, c == 'U' || c == 'V', c == 'V' || c == 'v'
		low := 0
		if r.weekOfYear {
			low = 1
		}
		return r.number(&r.week, 2, low, 53)
	case 'X', 'x':
		r.yearSundayFirst = c == 'X'
		return r.number(&r.weekYear, 4, 1, 9999)
	case '%':
		return r.character('%')
	}
	return true
}

// dayName reads the name of a day of the week, or its first three letters.
func (r *dateReader) dayName(short bool) bool {
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := d.String()
		if short {
			name = name[:3]
		}
		if r.word(name) {
			r.weekday = (int(d)+6)%7 + 1
			return true
		}
	}
	return false
}

// dayOfWeek is the date of a week and a day in it, as MySQL counts weeks. false: the
// specifiers do not go together.
func (r *dateReader) dayOfWeek() (time.Time, bool) {
	year := r.year
	if r.weekOfYear {
		year = r.weekYear
	}
	if r.weekOfYear && (r.weekYear == 0 || r.yearSundayFirst != r.sundayFirst) || !r.weekOfYear && r.weekYear != 0 {
		return time.Time{}, false
	}
	first := time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)
	days := (r.week - 1) * 7
	if r.sundayFirst {
		if d := int(first.Weekday()); d > 0 {
			days += 7 - d
		}
		days += r.weekday % 7
	} else {
		d := (int(first.Weekday()) + 6) % 7
		if d > 3 {
			days += 7
		}
		days += r.weekday - 1 - d
	}
	return first.AddDate(0, 0, days), true
}

// number reads up to width digits of a number between low and high.
func (r *dateReader) number(into *int, width, low, high int) bool {
	n := 0
	*into = 0
	for n < len(r.rest) && n < width && '0' <= r.rest[n] && r.rest[n] <= '9' {
		*into = *into*10 + int(r.rest[n]-'0')
		n++
	}
	r.rest = r.rest[n:]
	return n > 0 && low <= *into && *into <= high
}

// character reads c.
func (r *dateReader) character(c byte) bool {
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// hasPrefix reports whether a word comes next, in whatever case.
func (r *dateReader) hasPrefix(word string) bool {
	return len(r.rest) >= len(word) && strings.EqualFold(r.rest[:len(word)], word)
}

// word reads a word, in whatever case.
func (r *dateReader) word(word string) bool {
	if !r.hasPrefix(word) {
		return false
	}
	r.rest = r.rest[len(word):]
	return true
}

// monthName reads the name of a month, in the form given.
func (r *dateReader) monthName(form func(name string) string) bool {
	for m := time.January; m <= time.December; m++ {
		if r.word(form(m.String())) {
			r.month = int(m)
			return true
		}
	}
	return false
}

// micros is the moment that was read, in microseconds since 1970. false: there is none.
func (r *dateReader) micros() (int64, bool) {
	switch {
	case r.yearDay > 0:
		d := time.Date(r.year, time.January, r.yearDay, 0, 0, 0, 0, time.UTC)
		r.year, r.month, r.day = d.Year(), int(d.Month()), d.Day()
	case r.weekRead && r.weekday > 0:
		d, ok := r.dayOfWeek()
		if !ok {
			return 0, false
		}
		r.year, r.month, r.day = d.Year(), int(d.Month()), d.Day()
	}
	if r.month < 1 || r.month > 12 || r.day < 1 || r.afternoon && !r.halfDay {
		return 0, false
	}
	hour := r.hour
	if r.halfDay {
		hour %= 12
	}
	if r.afternoon {
		hour += 12
	}
	t := time.Date(r.year, time.Month(r.month), r.day, hour, r.minute, r.second, 0, time.UTC)
	if t.Day() != r.day {
		return 0, false
	}
	return t.UnixMicro() + int64(r.microsecond), true
}
