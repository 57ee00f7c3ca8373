package parse

import "strings"

// indexDDL parses CREATE INDEX and DROP INDEX. Iceberg tables have no indexes, so both
// are an ALTER TABLE that changes nothing and warns: clients that make a table send
// its indexes after it, and with an error they would leave it empty.
// nil is returned when the statement is none of them.
//
// https://dev.mysql.com/doc/refman/8.0/en/create-index.html
// https://dev.mysql.com/doc/refman/8.0/en/drop-index.html
func (p *parser) indexDDL() (Statement, error) {
	warning, i := warnIndex, 1
	switch p.word(1) {
	case "unique":
		warning, i = warnUnique, 2
	case "fulltext", "spatial":
		i = 2
	}
	create := p.word(0) == "create"
	if p.word(i) != "index" || !create && i == 2 {
		return nil, nil
	}
	if params, err := checkLiterals(p.tokens); err != nil {
		return nil, err
	} else if params > 0 {
		return nil, p.noParameters(strings.ToUpper(p.word(0)) + " INDEX has no parameters")
	}
	p.pos += i + 1
	r := &alterReader{typeReader: typeReader{parser: p}}
	a := &AlterTable{}
	if create {
		p.accept("if", "not", "exists")
	} else {
		p.accept("if", "exists")
	}
	if _, err := p.ident("the name of an index"); err != nil {
		return nil, err
	}
	if err := r.keyMethod(); err != nil {
		return nil, err
	}
	if !p.accept("on") {
		return nil, p.expected("ON and the name of a table")
	}
	var err error
	if a.Table, err = p.table("the name of a table"); err != nil {
		return nil, err
	}
	p.tables++
	if create {
		if !p.at("(") {
			return nil, p.expected("( and the columns of the index")
		}
		if _, _, err := r.key(false); err != nil {
			return nil, err
		}
	}
	for p.word(0) == "algorithm" || p.word(0) == "lock" {
		if _, err := r.ignored(); err != nil {
			return nil, err
		}
	}
	a.Warnings = []string{warning}
	return a, p.end()
}
