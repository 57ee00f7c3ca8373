package duck

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// like matches byte-wise with % and _ (one character); escape has at most one
// byte. An escape character at the end stands for itself.
func like(s, p, escape []byte) bool {
	var backS, backP []byte
	star := false
	for len(s) > 0 || len(p) > 0 {
		if len(p) > 0 {
			switch {
			case len(escape) == 1 && p[0] == escape[0]:
				lit := p
				if len(p) > 1 {
					lit = p[1:]
				}
				if len(s) > 0 && s[0] == lit[0] {
					s, p = s[1:], lit[1:]
					continue
				}
			case p[0] == '%':
				p = p[1:]
				backS, backP, star = s, p, true
				continue
			case p[0] == '_':
				if len(s) > 0 {
					_, w := utf8.DecodeRune(s)
					s, p = s[w:], p[1:]
					continue
				}
			case len(s) > 0 && s[0] == p[0]:
				s, p = s[1:], p[1:]
				continue
			}
		}
		if !star || len(backS) == 0 {
			return false
		}
		_, w := utf8.DecodeRune(backS)
		backS = backS[w:]
		s, p = backS, backP
	}
	return true
}

// decimalSyntax splits [sign] digits [. digits] [e [sign] digits] between spaces.
func decimalSyntax(s string) (sign, whole, frac, exp string, ok bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = "-"
		}
		s = s[1:]
	}
	digits := func() string {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		d := s[:n]
		s = s[n:]
		return d
	}
	whole = digits()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		frac = digits()
	}
	if whole == "" && frac == "" {
		return sign, whole, frac, exp, false
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '-' || s[0] == '+') {
			exp, s = s[:1], s[1:]
		}
		d := digits()
		if d == "" || len(d) > 4 {
			return sign, whole, frac, exp, false
		}
		exp += d
	}
	return sign, whole, frac, exp, s == ""
}

// numberText is a text that is a number of MySQL's syntax in a form that DuckDB
// reads the same; NULL for another text.
func numberText(dst []byte, in []vector, i int) ([]byte, bool) {
	sign, whole, frac, exp, ok := decimalSyntax(in[0].string(i))
	if !ok {
		return dst, false
	}
	if whole == "" {
		whole = "0"
	}
	dst = append(append(dst, sign...), whole...)
	if frac != "" {
		dst = append(append(dst, '.'), frac...)
	}
	if exp != "" {
		if v, err := strconv.ParseFloat(sign+whole+"."+frac+"0e"+exp, 64); err != nil || math.IsInf(v, 0) {
			return dst, false
		}
		dst = append(append(dst, 'e'), exp...)
	}
	return dst, true
}

// integerText is the integer that MySQL reads at the beginning of a text that is
// a number: it stops at a point or an exponent.
func integerText(dst []byte, in []vector, i int) ([]byte, bool) {
	sign, whole, _, _, ok := decimalSyntax(in[0].string(i))
	if !ok {
		return dst, false
	}
	if whole == "" {
		whole = "0"
	}
	return append(append(dst, sign...), whole...), true
}
