package eval

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

var errPattern = errors.New("it puts a name or attribute that holds characters of patterns into a pattern (LIKE, REGEXP)")

// What is special in a pattern of LIKE, and in a regular expression. With ESCAPE any
// character may be.
const (
	likeCharacters   = `%_\`
	regexpCharacters = likeCharacters + `.^$*+?()[]{}|`
)

// place is where in an SQL text patterns stand. It follows the text word by word and
// finds too much rather than too little: what is in the operand of LIKE or REGEXP, in an
// argument of a function that takes a pattern and, where the text has patterns at all,
// in what a sub-query selects.
type place struct {
	quote   byte   // 0, or the quote that is open
	special string // of all the patterns of the text
	depth   int
	open    []opened
	call    string // a function whose parenthesis may come next
}

// opened is a part of a text in which values are in a pattern.
type opened struct {
	kind    string // "operand", "call" or "select"
	depth   int
	special string
}

var patternFunctions = map[string]string{
	"regexp_like": regexpCharacters, "regexp_instr": regexpCharacters, "regexp_substr": regexpCharacters, "regexp_replace": regexpCharacters,
	"json_search": likeCharacters,
}

var patternOperators = map[string]string{"like": likeCharacters, "rlike": regexpCharacters, "regexp": regexpCharacters}

// endOfOperand are the words that end the operand of LIKE at its depth.
var endOfOperand = []string{
	"and", "or", "xor", "escape", "where", "from", "group", "order", "having", "limit", "union", "except", "intersect", "as", "is", "in", "between", "then", "when", "else",
	"like", "rlike", "regexp",
}

// newPlace looks for which patterns the text has.
func newPlace(text string) *place {
	p := &place{}
	escape := false
	eachWord(text, func(w string, _ byte) {
		if c := patternOperators[w] + patternFunctions[w]; len(c) > len(p.special) {
			p.special = c
		}
		escape = escape || w == "escape"
	})
	if escape && p.special != "" {
		p.special = "" // see admits
		p.open = append(p.open, opened{kind: "escape"})
	}
	return p
}

// eachWord calls fn with the words of a text outside of quotes, in lower case, and with
// its other characters.
func eachWord(text string, fn func(word string, symbol byte)) {
	quote := byte(0)
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case isWord(c):
			from := i
			for i < len(text) && isWord(text[i]) {
				i++
			}
			fn(strings.ToLower(text[from:i]), 0)
			continue
		default:
			fn("", c)
		}
		i++
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// word follows a word outside of quotes.
func (p *place) word(w string) {
	p.call = ""
	if slices.Contains(endOfOperand, w) {
		p.end("operand")
	}
	switch special, operator := patternOperators[w]; {
	case operator:
		p.open = append(p.open, opened{"operand", p.depth, special})
	case w == "case":
		p.depth++
	case w == "end":
		p.leave()
	case w == "select":
		p.open = append(p.open, opened{"select", p.depth, p.special})
	case w == "from":
		p.end("select")
	case patternFunctions[w] != "":
		p.call = w
	}
}

// symbol follows a character outside of quotes and words.
func (p *place) symbol(c byte) {
	switch c {
	case ' ', '\t', '\n', '\r':
		return
	case '(':
		p.depth++
		if p.call != "" {
			p.open = append(p.open, opened{"call", p.depth, patternFunctions[p.call]})
		}
	case ')':
		p.leave()
	case ',':
		p.end("operand")
	}
	p.call = ""
}

func (p *place) leave() {
	p.depth--
	for n := len(p.open); n > 0 && p.open[n-1].kind != "escape" && p.open[n-1].depth > p.depth; n-- {
		p.open = p.open[:n-1]
	}
}

func (p *place) end(kind string) {
	if n := len(p.open); n > 0 && p.open[n-1].kind == kind && p.open[n-1].depth == p.depth {
		p.open = p.open[:n-1]
	}
}

// within reports whether what comes next is in a pattern.
func (p *place) within() bool {
	return slices.ContainsFunc(p.open, func(o opened) bool {
		return o.kind == "operand" || o.kind == "call" || o.kind == "select" && (o.special != "" || p.escapes())
	})
}

func (p *place) escapes() bool { return len(p.open) > 0 && p.open[0].kind == "escape" }

// admits refuses values that would be more than themselves in the pattern in which they
// are put: people may choose their names and attributes, and must not choose by them
// which rows a policy shows.
func (p *place) admits(values ...string) error {
	if !p.within() {
		return nil
	}
	for _, v := range values {
		for _, c := range v {
			letter := c >= 0x80 || c == ' ' || isWord(byte(c)) && c != '_'
			if p.escapes() && !letter || slices.ContainsFunc(p.open, func(o opened) bool { return strings.ContainsRune(o.special, c) }) {
				return errPattern
			}
		}
	}
	return nil
}

// nameFunctions give the name of who asks; the value is whether they need parentheses.
var nameFunctions = map[string]bool{"current_user": false, "session_user": true, "user": true}

var callsName = regexp.MustCompile(`(?i)current_user|(session_)?user\s*\(`)

// InPattern reports whether an SQL text of a policy puts a name or attribute of who asks
// into a pattern.
func InPattern(text string) bool {
	// Most texts have neither, and there may be many thousands.
	if text == "" || !strings.Contains(text, "${{") && !callsName.MatchString(text) {
		return false
	}
	if p := newPlace(text); p.special == "" && !p.escapes() {
		return false
	}
	found := false
	_, _ = (&Request{Subject: &Subject{}}).walk(text, func(p *place, _ string, _ bool) (string, error) {
		found = found || p.within()
		return "", nil
	})
	return found
}
