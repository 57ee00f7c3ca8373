package parse

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// tokenKind classifies a token.
type tokenKind uint8

const (
	word     tokenKind = iota // keyword or unquoted identifier
	quoted                    // `identifier`
	str                       // string, also x'..', b'..' and n'..'
	number                    // 1, 1.5, .5, 1e9, 0x1F
	variable                  // @name, @@name
	param                     // ?
	punct                     // operators and brackets, one token each
)

// token is a piece of the statement: text[start:end].
type token struct {
	kind       tokenKind
	start, end int
	// after says that the token follows the one before it without a gap.
	after bool
}

// lexError is a text that has no tokens: an unterminated string or comment, or a
// character that SQL does not have.
type lexError struct {
	at   int
	what string
}

func (e *lexError) Error() string { return e.what }

func letter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$' || b >= utf8.RuneSelf
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func space(b byte) bool {
	return b == ' ' || b == '\n' || b == '\t' || b == '\r' || b == '\f' || b == '\v'
}

// lexer cuts text into tokens. The content of an executable comment (/*! ... */)
// is part of the statement, as in MySQL.
type lexer struct {
	text string
	pos  int
	exec bool // inside /*! ... */
	// head is the first words of the statement, as far as they say whether it holds
	// policy texts.
	head   []string
	braces bool // the statement holds policy texts, with {col} and ${{...}}
	colons bool // the statement holds types, with STRUCT<name: type>
}

// policyHeads begin the statements that hold policy texts.
var policyHeads = []string{"create policy", "create or replace policy", "alter policy"}

// typeHeads begin the statements that hold types.
var typeHeads = []string{"create table", "create or replace table", "alter table"}

// note looks at the token that was read last.
func (l *lexer) note(tok token) {
	s := l.text[tok.start:tok.end]
	switch {
	case tok.kind == punct && s == ";":
		l.head, l.braces, l.colons = l.head[:0], false, false
		return
	case len(l.head) >= 4:
		return
	case tok.kind != word || len(s) > len("replace"):
		s = ""
	}
	l.head = append(l.head, strings.ToLower(s))
	head := strings.Join(l.head, " ")
	l.braces = l.braces || slices.Contains(policyHeads, head)
	l.colons = l.colons || slices.Contains(typeHeads, head)
}

// newest is the version that SQE tells clients, for /*!80013 ... */.
const newest = 80099

// skip passes blanks and comments.
func (l *lexer) skip() *lexError {
	t := l.text
	for l.pos < len(t) {
		rest := t[l.pos:]
		switch {
		case space(t[l.pos]):
			l.pos++
		case t[l.pos] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				l.pos += i + 1
			} else {
				l.pos = len(t)
			}
		case l.exec && strings.HasPrefix(rest, "*/"):
			l.exec = false
			l.pos += 2
		case strings.HasPrefix(rest, "/*!") && !l.exec:
			i, version := 3, 0
			for i < len(rest) && i < 9 && digit(rest[i]) {
				version = version*10 + int(rest[i]-'0')
				i++
			}
			if version > newest {
				end := strings.Index(rest, "*/")
				if end < 0 {
					return &lexError{l.pos, "the comment does not end"}
				}
				l.pos += end + 2
				continue
			}
			l.exec = true
			l.pos += i
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return &lexError{l.pos, "the comment does not end"}
			}
			l.pos += end + 4
		default:
			return nil
		}
	}
	if l.exec {
		return &lexError{len(t), "the comment does not end"}
	}
	return nil
}

// next returns the next token; ok is false at the end of the text.
func (l *lexer) next() (tok token, ok bool, err *lexError) {
	before := l.pos
	if err := l.skip(); err != nil {
		return token{}, false, err
	}
	t := l.text
	if l.pos >= len(t) {
		return token{}, false, nil
	}
	start := l.pos
	tok = token{start: start, after: start == before}
	c := t[start]
	switch {
	case c == 0:
		return tok, false, &lexError{start, "a NUL byte"}
	case (c == 'x' || c == 'X' || c == 'b' || c == 'B' || c == 'n' || c == 'N') && start+1 < len(t) && t[start+1] == '\'':
		l.pos++
		tok.kind = str
		err = l.quotedText('\'', true, "the string does not end")
	case letter(c):
		tok.kind = word
		l.word()
	case digit(c) || c == '.' && start+1 < len(t) && digit(t[start+1]):
		l.number(&tok)
	case c == '\'' || c == '"':
		tok.kind = str
		err = l.quotedText(c, true, "the string does not end")
	case c == '`':
		tok.kind = quoted
		err = l.quotedText('`', false, "the quoted name does not end")
	case c == '@':
		tok.kind = variable
		err = l.variable()
	case c == '?':
		tok.kind = param
		l.pos++
	default:
		tok.kind = punct
		err = l.punct()
	}
	tok.end = l.pos
	if err == nil {
		l.note(tok)
	}
	return tok, err == nil, err
}

func (l *lexer) word() {
	for l.pos < len(l.text) && (letter(l.text[l.pos]) || digit(l.text[l.pos])) {
		l.pos++
	}
}

// number reads a number, or a word that starts with digits (MySQL's names may).
func (l *lexer) number(tok *token) {
	tok.kind = number
	t, start := l.text, l.pos
	digits := func(ok func(byte) bool) {
		for l.pos < len(t) && ok(t[l.pos]) {
			l.pos++
		}
	}
	if t[start] == '0' && start+1 < len(t) && (t[start+1] == 'x' || t[start+1] == 'b') {
		l.pos += 2
		digits(func(b byte) bool { return digit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' })
	} else {
		digits(digit)
		if l.pos < len(t) && t[l.pos] == '.' {
			l.pos++
			digits(digit)
		}
		if l.pos < len(t) && (t[l.pos] == 'e' || t[l.pos] == 'E') {
			i := l.pos + 1
			if i < len(t) && (t[i] == '+' || t[i] == '-') {
				i++
			}
			if i < len(t) && digit(t[i]) {
				l.pos = i
				digits(digit)
			}
		}
	}
	if l.pos < len(t) && letter(t[l.pos]) && !strings.Contains(t[start:l.pos], ".") {
		tok.kind = word
		l.word()
	}
}

// quotedText passes a string or a quoted name. A doubled quote stands for itself.
func (l *lexer) quotedText(quote byte, escapes bool, what string) *lexError {
	start := l.pos
	t := l.text
	for i := start + 1; i < len(t); i++ {
		switch {
		case t[i] == '\\' && escapes:
			i++
		case t[i] == quote:
			if i+1 < len(t) && t[i+1] == quote {
				i++
				continue
			}
			l.pos = i + 1
			return nil
		}
	}
	return &lexError{start, what}
}

func (l *lexer) variable() *lexError {
	l.pos++
	t := l.text
	if l.pos < len(t) && t[l.pos] == '@' {
		l.pos++
	}
	for {
		switch {
		case l.pos < len(t) && t[l.pos] == '`':
			if err := l.quotedText('`', false, "the quoted name does not end"); err != nil {
				return err
			}
		case l.pos < len(t) && (t[l.pos] == '\'' || t[l.pos] == '"'):
			if err := l.quotedText(t[l.pos], true, "the quoted name does not end"); err != nil {
				return err
			}
		default:
			l.word()
		}
		if l.pos+1 < len(t) && t[l.pos] == '.' && (letter(t[l.pos+1]) || digit(t[l.pos+1]) || t[l.pos+1] == '`') {
			l.pos++
			continue
		}
		return nil
	}
}

var operators = []string{"->>", "<=>", ":=", "->", "<<", ">>", "<=", ">=", "<>", "!=", "&&", "||"}

func (l *lexer) punct() *lexError {
	rest := l.text[l.pos:]
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.pos += len(op)
			return nil
		}
	}
	if !strings.ContainsRune("=,()+-*/%^~&|<>!.;", rune(rest[0])) && !(l.braces && strings.IndexByte("{}[]:", rest[0]) >= 0) && !(l.colons && rest[0] == ':') {
		return &lexError{l.pos, "a character that SQL does not have"}
	}
	l.pos++
	return nil
}

// unquoteName is the name that a word or quoted token stands for.
func unquoteName(text string) string {
	if len(text) >= 2 && text[0] == '`' {
		return strings.ReplaceAll(text[1:len(text)-1], "``", "`")
	}
	return text
}

// quoteName is the token for a name.
func quoteName(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
