package parse

import (
	"strings"
)

// Merge is MERGE INTO table [[AS] alias] USING source ON condition WHEN ...
type Merge struct {
	Target
	Source  Source
	On      Expr
	Clauses []MergeClause
	Params  int
}

// MergeMatch says for which rows a clause is.
type MergeMatch uint8

// The kinds of WHEN clauses.
const (
	Matched            MergeMatch = iota // a row of the target with one of the source
	NotMatched                           // a row of the source without one of the target
	NotMatchedBySource                   // a row of the target without one of the source
)

// MergeAction says what a clause does.
type MergeAction uint8

// The actions of WHEN clauses.
const (
	MergeUpdate MergeAction = iota
	MergeDelete
	MergeInsert
)

// MergeClause is WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN action. The
// first clause of its kind whose condition holds acts.
type MergeClause struct {
	Match  MergeMatch
	And    *Expr
	Action MergeAction
	// Star is UPDATE SET * or INSERT *: the columns of the source by their names.
	Star bool
	Set  []Assignment // of UPDATE
	// Columns of INSERT; nil: all of the table. Values has one for each; Default
	// has no Value.
	Columns []string
	Values  []MergeValue
}

// MergeValue is a value of INSERT, or DEFAULT, which has none.
type MergeValue struct {
	Expr
	Default bool
}

func (*Merge) statement() {}

func (p *parser) merge(params int) (Statement, error) {
	if !p.accept("into") {
		return nil, p.expected("INTO")
	}
	m := &Merge{Params: params}
	var err error
	if m.Target, err = p.target(); err != nil {
		return nil, err
	}
	if !p.accept("using") {
		return nil, p.expected("USING and a table or a query")
	}
	if m.Source, err = p.source("on", "when"); err != nil {
		return nil, err
	}
	name := m.Alias
	if name == "" {
		name = m.Table.Name
	}
	if strings.EqualFold(name, m.Source.Alias) {
		return nil, syntaxAt(p.text, p.tokens[p.pos-1].start, "the target and the source have the same name; give one of them an alias")
	}
	if !p.accept("on") {
		return nil, p.expected("ON and a condition")
	}
	if m.On, err = p.expr("a condition", "when"); err != nil {
		return nil, err
	}
	always := map[MergeMatch]bool{}
	for p.pos < len(p.tokens) {
		at := p.pos
		c, err := p.mergeClause(m.Target)
		if err != nil {
			return nil, err
		}
		if always[c.Match] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the clause is never reached: one of its kind before it has no condition")
		}
		always[c.Match] = c.And == nil
		m.Clauses = append(m.Clauses, c)
		if len(m.Clauses) > MaxNames {
			_, err := p.more(MaxNames)
			return nil, err
		}
	}
	if len(m.Clauses) == 0 {
		return nil, p.expected("WHEN MATCHED or WHEN NOT MATCHED")
	}
	return m, nil
}

func (p *parser) mergeClause(t Target) (MergeClause, error) {
	c := MergeClause{}
	switch {
	case p.accept("when", "matched"):
	case p.accept("when", "not", "matched"):
		c.Match = NotMatched
		if p.accept("by") {
			switch {
			case p.accept("source"):
				c.Match = NotMatchedBySource
			case p.accept("target"):
			default:
				return c, p.expected("SOURCE or TARGET")
			}
		}
	default:
		return c, p.expected("WHEN MATCHED or WHEN NOT MATCHED")
	}
	if p.accept("and") {
		e, err := p.expr("a condition", "then", "when")
		if err != nil {
			return c, err
		}
		c.And = &e
	}
	if !p.accept("then") {
		return c, p.expected("THEN")
	}
	if c.Match == NotMatched {
		if !p.accept("insert") {
			return c, p.expected("INSERT: the target has no such row")
		}
		c.Action = MergeInsert
		return c, p.mergeInsert(&c, t)
	}
	switch {
	case p.accept("delete"):
		c.Action = MergeDelete
		return c, nil
	case p.accept("update"):
	case c.Match == NotMatchedBySource:
		return c, p.expected("UPDATE SET or DELETE: the source has no such row")
	default:
		return c, p.expected("UPDATE SET or DELETE")
	}
	set := p.accept("set")
	if p.at("*") {
		if c.Match == NotMatchedBySource {
			return c, p.expected("SET column = value: the source has no such row")
		}
		p.pos++
		c.Star = true
		return c, nil
	}
	if !set {
		return c, p.expected("SET")
	}
	var err error
	c.Set, err = p.assignments(t, "when")
	return c, err
}

func (p *parser) mergeInsert(c *MergeClause, t Target) error {
	if p.acceptPunct("*") {
		c.Star = true
		return nil
	}
	var err error
	if p.at("(") {
		if c.Columns, err = p.insertColumns(t); err != nil {
			return err
		}
	}
	if !p.accept("values") {
		return p.expected("VALUES")
	}
	at := p.pos
	if err := p.need("("); err != nil {
		return err
	}
	for {
		v := MergeValue{}
		if p.word(0) == "default" && p.exprEnd() == p.pos+1 {
			p.pos++
			v.Default = true
		} else if v.Expr, err = p.expr("a value"); err != nil {
			return err
		}
		c.Values = append(c.Values, v)
		if more, err := p.more(len(c.Values)); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if err := p.need(")"); err != nil {
		return err
	}
	if c.Columns != nil && len(c.Columns) != len(c.Values) {
		return syntaxAt(p.text, p.tokens[at].start, "expected a value for each of the %d columns, found %d", len(c.Columns), len(c.Values))
	}
	return nil
}
