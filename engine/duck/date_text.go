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

func isPunct(c byte) bool { return c > ' ' && c < 0x7f && !alnum(rune(c)) }

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
			if i == len(format) || !strings.ContainsRune("YymcdebMHkhIlisSfpTr%", rune(format[i])) {
				return false
			}
		}
	}
	return true
}

// strToDate is MySQL's STR_TO_DATE for the specifiers of parsable.
func strToDate(s, format string) (micros int64, ok bool) {
	format = strings.NewReplacer("%T", "%H:%i:%S", "%r", "%I:%i:%S %p").Replace(format)
	y, m, d, h, min, sec := 0, 0, 0, 0, 0, 0
	var us int64
	pm, half := false, false
	number := func(width int) (int, bool) {
		n, v := 0, 0
		for n < len(s) && n < width && '0' <= s[n] && s[n] <= '9' {
			v = v*10 + int(s[n]-'0')
			n++
		}
		s = s[n:]
		return v, n > 0
	}
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c == ' ' {
			s = strings.TrimLeft(s, " ")
			continue
		}
		if c != '%' {
			s = strings.TrimLeft(s, " ")
			if s == "" || s[0] != c {
				return 0, false
			}
			s = s[1:]
			continue
		}
		i++
		s = strings.TrimLeft(s, " ")
		ok := true
		switch format[i] {
		case 'Y':
			y, ok = number(4)
		case 'y':
			if y, ok = number(2); y < 70 {
				y += 2000
			} else {
				y += 1900
			}
		case 'm', 'c':
			m, ok = number(2)
		case 'd', 'e':
			d, ok = number(2)
		case 'H', 'k':
			h, ok = number(2)
			ok = ok && h < 24
		case 'h', 'I', 'l':
			h, ok = number(2)
			ok = ok && h >= 1 && h <= 12
			half = true
		case 'i':
			min, ok = number(2)
			ok = ok && min < 60
		case 's', 'S':
			sec, ok = number(2)
			ok = ok && sec < 60
		case 'f':
			before := len(s)
			var v int
			v, ok = number(6)
			us = int64(v)
			for k := before - len(s); k < 6; k++ {
				us *= 10
			}
		case 'p':
			switch {
			case len(s) >= 2 && strings.EqualFold(s[:2], "AM"):
			case len(s) >= 2 && strings.EqualFold(s[:2], "PM"):
				pm = true
			default:
				return 0, false
			}
			s = s[2:]
		case 'b', 'M':
			ok = false
			for k := time.January; k <= time.December; k++ {
				name := k.String()
				if format[i] == 'b' {
					name = name[:3]
				}
				if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
					m, ok, s = int(k), true, s[len(name):]
					break
				}
			}
		case '%':
			if s == "" || s[0] != '%' {
				return 0, false
			}
			s = s[1:]
		}
		if !ok {
			return 0, false
		}
	}
	if m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	if half {
		if h %= 12; pm {
			h += 12
		}
	} else if pm {
		return 0, false
	}
	t := time.Date(y, time.Month(m), d, h, min, sec, 0, time.UTC)
	if t.Day() != d {
		return 0, false
	}
	return t.UnixMicro() + us, true
}
