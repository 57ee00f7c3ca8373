package parse

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// Parse takes the first statement of a text. rest is what follows it, a suffix of
// text, "" when nothing but blanks, comments and semicolons does. Errors are
// fault.Syntax with the place, fault.Unsupported for a statement that is refused
// by name, and fault.Limit.
func Parse(text string) (stmt Statement, rest string, err error) {
	if len(text) > MaxBytes {
		return nil, "", fault.New(fault.Limit, "the statement is longer than %d MB; load data in smaller pieces", MaxBytes>>20)
	}
	defer func() {
		// The MySQL grammar's code is not ours: whatever it panics about is a
		// statement that it does not take. The value may hold text of the statement.
		if p := recover(); p != nil {
			stmt, rest, err = nil, "", fault.Wrap(fault.Syntax, fmt.Errorf("panic of the parser: %T", p), "syntax error: the statement cannot be parsed")
		}
	}()
	tokens, end, err := cut(text)
	if err != nil {
		return nil, "", err
	}
	if len(tokens) == 0 {
		return nil, "", fault.New(fault.Syntax, "the statement is empty")
	}
	p := &parser{text: text, tokens: tokens}
	stmt, err = p.statement()
	if err != nil {
		return nil, "", err
	}
	return stmt, trim(text[end:]), nil
}

// cut reads the tokens of the first statement that has any; end is the offset
// behind it and its semicolon.
func cut(text string) (tokens []token, end int, err error) {
	l := &lexer{text: text}
	for {
		tok, ok, lexErr := l.next()
		if lexErr != nil {
			return nil, 0, syntaxAt(text, lexErr.at, "%s", lexErr.what)
		}
		if !ok {
			return tokens, len(text), checkDepth(text, tokens)
		}
		if tok.kind == punct && text[tok.start:tok.end] == ";" {
			if len(tokens) == 0 {
				continue
			}
			if l.exec {
				return nil, 0, syntaxAt(text, tok.start, "a semicolon inside a comment that is executed")
			}
			return tokens, tok.end, checkDepth(text, tokens)
		}
		tokens = append(tokens, tok)
	}
}

// trim drops a rest that holds no statement.
func trim(rest string) string {
	l := &lexer{text: rest}
	for {
		tok, ok, err := l.next()
		switch {
		case err != nil:
			return rest // its own error comes when it is parsed
		case !ok:
			return ""
		case tok.kind == punct && rest[tok.start:tok.end] == ";":
			continue
		}
		return rest
	}
}

// syntaxAt is a fault.Syntax that points at an offset of the text.
func syntaxAt(text string, at int, format string, args ...any) error {
	at = min(max(at, 0), len(text))
	line := 1 + strings.Count(text[:at], "\n")
	column := at - (strings.LastIndexByte(text[:at], '\n') + 1)
	return fault.New(fault.Syntax, "syntax error at line %d, column %d: %s", line, column+1, fmt.Sprintf(format, args...))
}

// parser reads one statement.
type parser struct {
	text   string
	tokens []token
	pos    int
	// tables counts the uses of tables that were read so far.
	tables int
	// counted is how many placeholders stand before the token at countedAt.
	countedAt, counted int
	// named are the starts of strings that were read as names.
	named map[int]bool
}

func (p *parser) str(i int) string { return p.text[p.tokens[i].start:p.tokens[i].end] }

// word is the keyword at offset i from the current token, in lower case.
func (p *parser) word(i int) string {
	i += p.pos
	if i >= len(p.tokens) || p.tokens[i].kind != word {
		return ""
	}
	return strings.ToLower(p.str(i))
}

// accept takes the keywords when all of them follow.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if p.word(i) != w {
			return false
		}
	}
	p.pos += len(words)
	return true
}

func (p *parser) acceptPunct(s string) bool {
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == punct && p.str(p.pos) == s {
		p.pos++
		return true
	}
	return false
}

// expected is the error that something else stands at the current token.
func (p *parser) expected(what string) error {
	if p.pos >= len(p.tokens) {
		return syntaxAt(p.text, p.tokens[len(p.tokens)-1].end, "expected %s, the statement ends here", what)
	}
	return syntaxAt(p.text, p.tokens[p.pos].start, "expected %s, found %s", what, p.describe(p.pos))
}

// describe names a token in a message without repeating a literal.
func (p *parser) describe(i int) string {
	return describe(p.text, p.tokens[i])
}

func describe(text string, t token) string {
	switch t.kind {
	case str:
		return "a string"
	case number:
		return "a number"
	}
	s := text[t.start:t.end]
	if len(s) > 64 {
		return "a long name"
	}
	return "'" + s + "'"
}

func (p *parser) end() error {
	if p.pos < len(p.tokens) {
		return p.expected("the end of the statement")
	}
	return nil
}

// statement parses what begins at the current token: a statement of SQE's own, a
// refused one, or SQL.
func (p *parser) statement() (Statement, error) {
	if s, ok, err := p.own(); ok || err != nil {
		return s, err
	}
	if err := p.refused(); err != nil {
		return nil, err
	}
	return p.sql()
}

// sql gives the rest of the tokens to the MySQL grammar.
func (p *parser) sql() (*SQL, error) {
	kind := p.kind()
	tokens := p.tokens[p.pos:]
	if kind == Transaction && p.word(0) != "savepoint" {
		// These have no content that matters, and the grammar knows few of them.
		return &SQL{Text: p.text[tokens[0].start:tokens[len(tokens)-1].end], Kind: kind, Step: p.step()}, nil
	}
	for wrapped(p.text, tokens) {
		tokens = tokens[1 : len(tokens)-1]
		p.pos++
	}
	params, err := checkLiterals(tokens)
	if err != nil {
		return nil, err
	}
	folded, ast, err := p.grammar(&folder{tokens: tokens}, "", "")
	if err != nil {
		return nil, err
	}
	if err := p.countTables(ast); err != nil {
		return nil, err
	}
	return &SQL{Text: folded, AST: ast, Kind: kind, Params: params}, nil
}

// checkLiterals bounds the values in a statement and counts its placeholders.
func checkLiterals(tokens []token) (params int, err error) {
	literals := 0
	for _, t := range tokens {
		switch t.kind {
		case param:
			params++
		case str, number:
			literals++
		}
	}
	if literals > MaxLiterals {
		return 0, fault.New(fault.Limit, "the statement holds more than %d values; divide it, or put them into a table and join it", MaxLiterals)
	}
	return params, nil
}

// grammar folds the tokens of f and gives them to the MySQL grammar between a
// prefix and a suffix.
func (p *parser) grammar(f *folder, prefix, suffix string) (string, sqlparser.Statement, error) {
	f.text, f.copied = p.text, f.tokens[0].start
	folded := f.run()
	ast, err := sqlparser.Parse(prefix + folded + suffix)
	if err != nil {
		return "", nil, p.located(&folder{tokens: f.tokens, inner: f.inner, from: f.from, replaced: f.replaced}, len(prefix), err)
	}
	return folded, ast, nil
}

// wrapped reports whether brackets stand around the whole statement, which the
// grammar does not take.
func wrapped(text string, tokens []token) bool {
	depth := 0
	for i, t := range tokens {
		if t.kind != punct {
			if depth == 0 {
				return false
			}
			continue
		}
		switch text[t.start:t.end] {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return i == len(tokens)-1 && i > 1
		}
	}
	return false
}

// kind tells the kind of an SQL statement by its first word.
func (p *parser) kind() Kind {
	switch p.word(0) {
	case "select", "with", "values", "table":
		return Query
	case "show", "describe", "desc", "explain":
		return Show
	case "set":
		return Set
	case "begin", "start", "commit", "rollback", "savepoint", "release", "lock", "unlock":
		return Transaction
	case "create", "alter", "drop", "rename", "replace":
		return Write // of what SQE's own grammar does not know
	case "":
		return Query // (SELECT ...)
	}
	return Other
}

// step tells what a statement does to a transaction.
func (p *parser) step() TransactionStep {
	switch p.word(0) {
	case "begin", "start":
		for i := range len(p.tokens) - p.pos {
			if p.word(i) == "read" && p.word(i+1) == "only" {
				return BeginReadOnly
			}
		}
		return BeginStep
	case "commit":
		return CommitStep
	case "rollback":
		return RollbackStep
	}
	return NoStep
}

var position = regexp.MustCompile(`position (\d+)`)

// located turns an error of the MySQL grammar, which counts in the folded text
// and the prefix before it, into one that points at the text of the user.
func (p *parser) located(f *folder, prefix int, err error) error {
	if strings.Contains(err.Error(), "max nesting level") {
		return fault.New(fault.Limit, "the statement nests too many queries; write the inner ones as WITH queries or views")
	}
	m := position.FindStringSubmatch(err.Error())
	if m == nil || errors.Is(err, sqlparser.ErrEmpty) {
		return fault.Wrap(fault.Syntax, errors.New("the grammar gave no position"), "syntax error: the statement cannot be parsed")
	}
	at, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return fault.New(fault.Syntax, "syntax error: the statement cannot be parsed")
	}
	at -= prefix
	// The grammar reports a place behind the token that it does not take.
	tokens := f.tokens
	offset := tokens[0].start
	f.text, f.copied = p.text, tokens[0].start
	f.trace = func(out, in int) {
		if out < at-1 {
			offset = in
		}
	}
	folded := f.run()
	i := 0
	for i+1 < len(tokens) && tokens[i+1].start <= offset {
		i++
	}
	if at > len(folded) && i == len(tokens)-1 {
		if f.inner {
			return syntaxAt(p.text, tokens[i].end, "more was expected after %s", describe(p.text, tokens[i]))
		}
		return syntaxAt(p.text, tokens[i].end, "the statement ends where more was expected, after %s", describe(p.text, tokens[i]))
	}
	return syntaxAt(p.text, offset, "unexpected %s", describe(p.text, tokens[i]))
}
