package masks

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// ClassMask replaces the characters of a text by what class they are in.
type ClassMask struct {
	// What stands for a character of the class; "" keeps the character.
	Upper, Lower, Digit, Other string
	// The number of characters at each end that stay as they are.
	KeepFirst, KeepLast int
	// WholeWhenShort masks every character of a text that has no more characters
	// than are kept; without it such a text stays raw.
	WholeWhenShort bool
	// ASCII counts as letters and digits only those of ASCII; every other
	// character is Other.
	ASCII bool
}

// Classes is the definition of the plan function
//
//	mask_classes(s, upper, lower, digit, other, keep_first, keep_last, whole_when_short)
//
// NULL gives NULL. Characters are Unicode scalar values. The first keep_first and
// last keep_last stay; with no more characters than are kept in all, the text
// stays raw, or with whole_when_short every character is masked. Of the others
//
//   - numbers (Nd, Nl, No) become digit,
//   - upper-case letters (Lu, Other_Uppercase) become upper,
//   - all other alphabetic characters, those of scripts without case included (L,
//     Other_Alphabetic), become lower,
//   - the rest becomes other.
//
// A class whose replacement is the empty text stays as it is. A byte that is not
// part of valid UTF-8 counts as a character and becomes lower (x when that is
// empty), wherever it stands.
//
// mask_ascii_classes is the same with the classes A-Z, a-z and 0-9; every other
// character becomes other.
//
// For text of ASCII alone (byte_length = char_length) this is a translate of 62
// characters between substr(s, 1, keep_first) and the last keep_last characters;
// with nothing kept it is translate alone.
func Classes(s string, c ClassMask) string {
	n := utf8.RuneCountInString(s)
	first, last := keep(n, c.KeepFirst, c.KeepLast)
	if n <= c.KeepFirst+c.KeepLast {
		if !c.WholeWhenShort {
			first, last = n, 0
		} else {
			first, last = 0, 0
		}
	}
	var b strings.Builder
	b.Grow(len(s))
	i := 0
	for at, r := range s {
		width := runeWidth(s[at:], r)
		switch {
		case r == utf8.RuneError && width == 1:
			b.WriteString(orElse(c.Lower, "x"))
		case i < first || i >= n-last:
			b.WriteRune(r)
		default:
			b.WriteString(orElse(c.class(r), s[at:at+width]))
		}
		i++
	}
	return b.String()
}

// class is the replacement of a character, "" to keep it. Numbers come first, so
// that letter-like numerals (Ⅷ) are numbers.
func (c ClassMask) class(r rune) string {
	switch {
	case c.ASCII && r >= utf8.RuneSelf:
		return c.Other
	case unicode.IsNumber(r):
		return c.Digit
	case unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r):
		return c.Upper
	case unicode.IsLetter(r) || unicode.Is(unicode.Other_Alphabetic, r):
		return c.Lower
	}
	return c.Other
}

// alphanumKeep is what Iceberg's text actions keep.
var alphanumKeep = map[string]struct{ first, last int }{
	IcebergAlphanum:   {},
	IcebergShowFirst4: {first: 4},
	IcebergShowLast4:  {last: 4},
}

// Alphanum is the definition of the plan function
//
//	mask_alphanum(s, keep_first, keep_last)
//
// NULL gives NULL. Characters are Unicode scalar values. A text with no more
// characters than are kept stays as it is. Of the others ASCII digits become n,
// the six characters ( ) , . - @ stay, and everything else becomes x. A byte that
// is not part of valid UTF-8 becomes x, wherever it stands. Source: Iceberg's
// REST specification, actions mask-alphanum, show-first-4, show-last-4.
func Alphanum(s string, keepFirst, keepLast int) string {
	n := utf8.RuneCountInString(s)
	first, last := keep(n, keepFirst, keepLast)
	var b strings.Builder
	b.Grow(len(s))
	i := 0
	for at, r := range s {
		switch {
		case r == utf8.RuneError && runeWidth(s[at:], r) == 1:
			b.WriteByte('x')
		case i < first || i >= n-last:
			b.WriteRune(r)
		case '0' <= r && r <= '9':
			b.WriteByte('n')
		case strings.ContainsRune("(),.-@", r):
			b.WriteRune(r)
		default:
			b.WriteByte('x')
		}
		i++
	}
	return b.String()
}

// keep limits the numbers of kept characters to what there is.
func keep(n, first, last int) (int, int) {
	if n <= first+last {
		return n, 0
	}
	return first, last
}

// runeWidth tells an invalid byte (one byte) from U+FFFD itself (three).
func runeWidth(s string, r rune) int {
	if r == utf8.RuneError {
		_, w := utf8.DecodeRuneInString(s)
		return w
	}
	return utf8.RuneLen(r)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

var (
	fnClasses      = function("mask_classes")
	fnASCIIClasses = function("mask_ascii_classes")
	fnAlphanum     = function("mask_alphanum")
)

func classMask(c ClassMask, t arrow.DataType) Mask {
	fixed := []plan.Expr{
		text(c.Upper), text(c.Lower), text(c.Digit), text(c.Other),
		integer(c.KeepFirst), integer(c.KeepLast), boolean(c.WholeWhenShort),
	}
	f := fnClasses
	if c.ASCII {
		f = fnASCIIClasses
	}
	return func(raw plan.Expr) plan.Expr {
		return call(f, t, append([]plan.Expr{raw}, fixed...)...)
	}
}

func alphanumMask(first, last int, t arrow.DataType) Mask {
	f, l := integer(first), integer(last)
	return func(raw plan.Expr) plan.Expr { return call(fnAlphanum, t, raw, f, l) }
}
