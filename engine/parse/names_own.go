package parse

import (
	"strings"

	"sqe/fault"
)

// MaxNames bounds a list of names, items or tags in a statement of SQE's own.
const MaxNames = 10_000

// TableRef is a table as a statement names it. Database is a database name
// (JoinDatabase), "" for the current database of the session.
type TableRef struct{ Database, Name string }

// nameAhead reports whether the token at offset i can begin a name.
func (p *parser) nameAhead(i int) bool {
	i += p.pos
	if i >= len(p.tokens) {
		return false
	}
	switch t := p.tokens[i]; t.kind {
	case word, quoted:
		return true
	case str:
		return p.text[t.start] == '\'' || p.text[t.start] == '"'
	}
	return false
}

// name reads a name of one part: bare, `quoted`, "quoted" or 'quoted'.
func (p *parser) name(what string) (string, error) {
	if !p.nameAhead(0) {
		return "", p.expected(what)
	}
	name := unquoteName(p.str(p.pos))
	if p.tokens[p.pos].kind == str {
		name = unquoteString(p.str(p.pos))
		p.noteName(p.pos)
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return "", syntaxAt(p.text, p.tokens[p.pos].start, "expected %s, the name is empty or holds a NUL byte", what)
	}
	p.pos++
	return name, nil
}

// noteName notes that a string is a name, for Fingerprint.
func (p *parser) noteName(i int) {
	if p.named == nil {
		p.named = map[int]bool{}
	}
	p.named[p.tokens[i].start] = true
}

// looseName reads the name of a principal, a policy or a tag. A bare one may hold
// the characters that such names often have (data-team, first.last,
// alice@example.com): it ends at a blank, a comma or a bracket.
func (p *parser) looseName(what string) (string, error) {
	if p.pos >= len(p.tokens) || p.tokens[p.pos].kind != word {
		return p.name(what)
	}
	start := p.tokens[p.pos].start
	end := p.tokens[p.pos].end
	for p.pos++; p.pos < len(p.tokens) && p.tokens[p.pos].after; p.pos++ {
		t := p.tokens[p.pos]
		joins := t.kind == word || t.kind == number || t.kind == variable && !strings.ContainsAny(p.str(p.pos), "`'\"")
		if t.kind == punct {
			switch p.str(p.pos) {
			case ".", "-", "/", "+":
				joins = true
			}
		}
		if !joins {
			break
		}
		end = t.end
	}
	return p.text[start:end], nil
}

// columnName reads a column, or the dotted path of a field inside one.
func (p *parser) columnName() (string, error) {
	const what = "the name of a column"
	n, err := p.name(what)
	if err != nil {
		return "", err
	}
	for p.acceptPunct(".") {
		part, err := p.name("the name of a field inside the column")
		if err != nil {
			return "", err
		}
		n += "." + part
	}
	return n, nil
}

// tableRef reads a table name of any depth.
func (p *parser) tableRef() (TableRef, error) {
	var parts []string
	for {
		part, err := p.name("the name of a table")
		if err != nil {
			return TableRef{}, err
		}
		if parts = append(parts, part); !p.acceptPunct(".") {
			return tableRefOf(parts), nil
		}
	}
}

// tableRefOf is the table that the parts name. A single part before the table is
// a whole database name, as SHOW DATABASES prints it.
func tableRefOf(parts []string) TableRef {
	last := len(parts) - 1
	ref := TableRef{Name: parts[last]}
	switch last {
	case 0:
	case 1:
		ref.Database = parts[0]
	default:
		ref.Database = JoinDatabase(parts[:last]...)
	}
	return ref
}

// textValue reads a string.
func (p *parser) textValue(what string) (string, error) {
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == str && p.nameAhead(0) {
		p.pos++
		return unquoteString(p.str(p.pos - 1)), nil
	}
	return "", p.expected(what)
}

// more reports whether a list goes on: it takes a comma. n is how long the list
// is.
func (p *parser) more(n int) (bool, error) {
	if !p.acceptPunct(",") {
		return false, nil
	}
	if n >= MaxNames {
		return false, fault.New(fault.Limit, "the statement lists more than %d names; divide it into several statements", MaxNames)
	}
	return true, nil
}
