package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// Expr is an expression inside a statement of SQE's own grammar. Its names are
// not resolved.
type Expr struct {
	// Text is the expression in the MySQL grammar: folded and without comments.
	// It is one whole expression, so that it may stand in brackets in another text.
	Text string
	AST  sqlparser.Expr // of Text; its placeholders count from :v1
	// Start and End are its offsets, in bytes, in the text that was parsed.
	Start, End int
	// Param is the index of its first placeholder in the statement, Params how
	// many it has.
	Param, Params int
}

// Source is a table or a derived table with its alias, as it stands in a FROM
// clause.
type Source struct {
	// Text is folded; AST is that of Text, its placeholders count from :v1.
	Text string
	AST  *sqlparser.AliasedTableExpr
	// Table is nil for a derived table.
	Table *TableRef
	// Alias is the name of the source in expressions.
	Alias         string
	Param, Params int
}

// Target is the table that a statement changes, with its alias in expressions (""
// when it has none).
type Target struct {
	Table TableRef
	Alias string
}

// reserved are words that are a name only in quotes: what most often stands where
// a name was forgotten.
var reserved = map[string]bool{
	"add": true, "alter": true, "and": true, "as": true, "by": true, "case": true, "create": true, "delete": true, "drop": true, "exists": true,
	"for": true, "from": true, "group": true, "having": true, "if": true, "in": true, "insert": true, "into": true, "is": true, "join": true, "like": true,
	"limit": true, "not": true, "null": true, "on": true, "or": true, "order": true, "select": true, "set": true, "table": true, "then": true,
	"union": true, "update": true, "using": true, "values": true, "when": true, "where": true, "with": true,
}

// ident reads a name of one part: a bare word or a `quoted` one.
func (p *parser) ident(what string) (string, error) {
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == word && reserved[p.word(0)] {
		return "", p.expected(what)
	}
	return p.identPart(what)
}

// identPart reads a part of a dotted name behind the first, which may be any word.
func (p *parser) identPart(what string) (string, error) {
	at := p.pos
	name, err := p.identifier(what)
	if err == nil && (name == "" || strings.ContainsRune(name, 0)) {
		err = syntaxAt(p.text, p.tokens[at].start, "expected %s, the name is empty or holds a NUL byte", what)
	}
	return name, err
}

// identPath reads a dotted name.
func (p *parser) identPath(what string) ([]string, error) {
	first, err := p.ident(what)
	if err != nil {
		return nil, err
	}
	path := []string{first}
	for p.acceptPunct(".") {
		if len(path) >= MaxTypeNesting {
			return nil, fault.New(fault.Limit, "a name has more than %d parts", MaxTypeNesting)
		}
		part, err := p.identPart("the next part of the name")
		if err != nil {
			return nil, err
		}
		path = append(path, part)
	}
	return path, nil
}

// table reads the name of a table or view.
func (p *parser) table(what string) (TableRef, error) {
	parts, err := p.identPath(what)
	if err != nil {
		return TableRef{}, err
	}
	return tableRefOf(parts), nil
}

// tableList reads names of tables with commas between them.
func (p *parser) tableList(what string) ([]TableRef, error) {
	var out []TableRef
	for {
		ref, err := p.table(what)
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

// target reads the table that a statement changes, and its alias. A word of no
// begins the next clause.
func (p *parser) target(no ...string) (Target, error) {
	ref, err := p.table("the name of a table")
	if err != nil {
		return Target{}, err
	}
	p.tables++
	t := Target{Table: ref}
	if p.accept("as") {
		t.Alias, err = p.ident("an alias")
		return t, err
	}
	if p.pos >= len(p.tokens) {
		return t, nil
	}
	switch w := p.word(0); p.tokens[p.pos].kind {
	case word:
		if reserved[w] {
			return t, nil
		}
		for _, n := range no {
			if w == n {
				return t, nil
			}
		}
	case quoted:
	default:
		return t, nil
	}
	t.Alias, err = p.ident("an alias")
	return t, err
}

// at reports whether the punctuation stands at the current token.
func (p *parser) at(s string) bool {
	return p.pos < len(p.tokens) && p.tokens[p.pos].kind == punct && p.str(p.pos) == s
}

// need takes the punctuation or says that it was expected.
func (p *parser) need(s string) error {
	if !p.acceptPunct(s) {
		return p.expected(s)
	}
	return nil
}

// closing is the index of the bracket that closes the one at the current token.
func (p *parser) closing() (int, error) {
	depth := 0
	for i := p.pos; i < len(p.tokens); i++ {
		if p.tokens[i].kind != punct {
			continue
		}
		switch p.str(i) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i, nil
			}
		}
	}
	p.pos = len(p.tokens)
	return 0, p.expected(")")
}

// paramsBefore is the number of placeholders before token i. It is fast when i
// only grows.
func (p *parser) paramsBefore(i int) int {
	if i < p.countedAt {
		p.countedAt, p.counted = 0, 0
	}
	for ; p.countedAt < i; p.countedAt++ {
		if p.tokens[p.countedAt].kind == param {
			p.counted++
		}
	}
	return p.counted
}

// query reads the tokens up to index to as a query.
func (p *parser) query(to int) (*SQL, error) {
	const what = "a query (SELECT, WITH, TABLE, VALUES)"
	if p.pos >= to {
		return nil, p.expected(what)
	}
	switch p.word(0) {
	case "select", "with", "values", "table":
	default:
		if !p.at("(") {
			return nil, p.expected(what)
		}
	}
	sub := &parser{text: p.text, tokens: p.tokens[p.pos:to]}
	if err := sub.refusedParts(); err != nil {
		return nil, err
	}
	s, err := sub.sql()
	if err != nil {
		return nil, err
	}
	if _, ok := s.AST.(sqlparser.SelectStatement); !ok {
		return nil, p.expected(what)
	}
	if p.tables += sub.tables; p.tables > MaxTables {
		return nil, p.countTables(nil)
	}
	s.Param = p.paramsBefore(p.pos)
	p.pos = to
	return s, nil
}

// exprEnd is the index of the token behind the expression that begins at the
// current one: a comma, a closing bracket or one of the words, outside brackets
// and CASE.
func (p *parser) exprEnd(stops ...string) int {
	depth, cases := 0, 0
	for i := p.pos; i < len(p.tokens); i++ {
		switch s := p.str(i); p.tokens[i].kind {
		case punct:
			switch s {
			case "(":
				depth++
			case ")":
				if depth--; depth < 0 {
					return i
				}
			case ",":
				if depth == 0 {
					return i
				}
			}
		case word:
			if depth > 0 || i > 0 && p.tokens[i-1].kind == punct && p.str(i-1) == "." {
				continue
			}
			w := p.word(i - p.pos)
			switch {
			case w == "case":
				cases++
			case w == "end" && cases > 0:
				cases--
			case cases == 0:
				for _, stop := range stops {
					if w == stop {
						return i
					}
				}
			}
		}
	}
	return len(p.tokens)
}

// expr reads an expression that ends before a comma, a closing bracket or one of
// the words.
func (p *parser) expr(what string, stops ...string) (Expr, error) {
	to := p.exprEnd(stops...)
	if to == p.pos {
		return Expr{}, p.expected(what)
	}
	e := Expr{Start: p.tokens[p.pos].start, End: p.tokens[to-1].end}
	sub := &parser{text: p.text, tokens: p.tokens[p.pos:to]}
	if err := sub.refusedParts(); err != nil {
		return Expr{}, err
	}
	text, ast, err := sub.grammar(&folder{tokens: sub.tokens, inner: true}, "SELECT (", ")")
	if err != nil {
		return Expr{}, err
	}
	one, ok := soleExpr(ast).(*sqlparser.ParenExpr)
	if !ok {
		return Expr{}, syntaxAt(p.text, e.Start, "expected %s; a query as a value stands in brackets", what)
	}
	if err := p.countTables(one.Expr); err != nil {
		return Expr{}, err
	}
	e.Text, e.AST = text, one.Expr
	e.Param, e.Params = p.paramsBefore(p.pos), p.paramsBefore(to)-p.paramsBefore(p.pos)
	p.pos = to
	return e, nil
}

// soleExpr is the only expression of SELECT expression, nil for another
// statement.
func soleExpr(ast sqlparser.Statement) sqlparser.Expr {
	s, ok := ast.(*sqlparser.Select)
	if !ok || len(s.SelectExprs) != 1 || len(s.From) != 0 {
		return nil
	}
	e, ok := s.SelectExprs[0].(*sqlparser.AliasedExpr)
	if !ok || !e.As.IsEmpty() {
		return nil
	}
	return e.Expr
}

// source reads a table or a derived table up to one of the words.
func (p *parser) source(stops ...string) (Source, error) {
	const what = "the name of a table, or a query in brackets with an alias"
	to := p.exprEnd(stops...)
	if to == p.pos {
		return Source{}, p.expected(what)
	}
	sub := &parser{text: p.text, tokens: p.tokens[p.pos:to]}
	if err := sub.refusedParts(); err != nil {
		return Source{}, err
	}
	f := &folder{tokens: sub.tokens, inner: true, from: true}
	text, ast, err := sub.grammar(f, "SELECT 1 FROM ", "")
	if err != nil {
		return Source{}, err
	}
	s := Source{Text: text, Param: p.paramsBefore(p.pos), Params: p.paramsBefore(to) - p.paramsBefore(p.pos)}
	sel, ok := ast.(*sqlparser.Select)
	if ok && len(sel.From) == 1 && sel.Where == nil && len(sel.GroupBy) == 0 && sel.Having == nil && len(sel.OrderBy) == 0 && sel.Limit == nil && len(sel.Window) == 0 && sel.Lock == "" {
		s.AST, ok = sel.From[0].(*sqlparser.AliasedTableExpr)
	} else {
		ok = false
	}
	if !ok || s.AST.Lateral {
		return Source{}, syntaxAt(p.text, sub.tokens[0].start, "expected %s; a join stands inside such a query", what)
	}
	s.Alias = s.AST.As.String()
	if name, ok := s.AST.Expr.(sqlparser.TableName); ok {
		s.Table = &TableRef{Database: name.DbQualifier.String(), Name: name.Name.String()}
		if s.Alias == "" {
			s.Alias = s.Table.Name
		}
	}
	if s.Alias == "" {
		return Source{}, p.expected("an alias after the query")
	}
	if err := p.countTables(s.AST); err != nil {
		return Source{}, err
	}
	p.pos = to
	return s, nil
}
