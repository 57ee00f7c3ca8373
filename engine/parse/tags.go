package parse

// Tag is a tag in a statement. Value is "" when none was given.
type Tag struct{ Name, Value string }

// TagChange adds tags to a column or takes them from it. Column is dotted for a
// field inside a column, and "" for the table itself.
type TagChange struct {
	Column string
	// Unset takes the tags away; without Tags: all of them.
	Unset bool
	Tags  []Tag
}

// AlterTags is ALTER TABLE table with one of
//
//	SET TAGS (column = ('tag', ...), ...)
//	UNSET TAGS (column, ...)
//	{MODIFY | ALTER} [COLUMN] column SET TAG tag [= 'value'], ...
//	{MODIFY | ALTER} [COLUMN] column UNSET TAG tag, ...
//	SET TAG tag [= 'value'], ...
//	UNSET TAG tag, ...
//
// No column stands twice in Changes.
type AlterTags struct {
	Table   TableRef
	Changes []TagChange
}

// AlterMaskingPolicy is ALTER TABLE table {MODIFY | ALTER} [COLUMN] column SET
// MASKING POLICY policy, or UNSET MASKING POLICY [policy]: it sets the tag that
// the policy is on, or takes it away. Policy is "" when UNSET names none.
type AlterMaskingPolicy struct {
	Table  TableRef
	Column string
	Unset  bool
	Policy string
}

// ReprojectTags is CALL system.reproject_column_tags(table => 'name' | namespace
// => 'name' | catalog => 'name'). One member is set; Namespace is a database name
// (JoinDatabase).
type ReprojectTags struct {
	Table     *TableRef
	Namespace string
	Catalog   string
}

// ShowTags is SHOW TAGS ON [TABLE] table.
type ShowTags struct{ Table TableRef }

func (*AlterTags) statement()          {}
func (*AlterMaskingPolicy) statement() {}
func (*ReprojectTags) statement()      {}
func (*ShowTags) statement()           {}

// alterTable parses the forms of ALTER TABLE that are about tags; nil when the
// statement is another one. Until that is certain nothing is an error.
func (p *parser) alterTable() (Statement, error) {
	p.pos += 2
	table, err := p.tableRef()
	if err != nil {
		return nil, nil
	}
	a := &AlterTags{Table: table}
	switch {
	case p.accept("set", "tags"):
		err = p.columnTags(a)
	case p.accept("unset", "tags"):
		err = p.unsetColumns(a)
	case p.accept("set", "tag"):
		err = p.tags(a, "", false)
	case p.accept("unset", "tag"):
		err = p.tags(a, "", true)
	case p.word(0) == "modify" || p.word(0) == "alter":
		p.pos++
		if p.word(0) == "column" && p.nameAhead(1) && p.word(1) != "set" && p.word(1) != "unset" {
			p.pos++
		}
		column, columnErr := p.columnName()
		if columnErr != nil {
			return nil, nil
		}
		switch {
		case p.accept("set", "tag"):
			err = p.tags(a, column, false)
		case p.accept("unset", "tag"):
			err = p.tags(a, column, true)
		case p.accept("set", "masking", "policy"):
			m := &AlterMaskingPolicy{Table: table, Column: column}
			if m.Policy, err = p.looseName("the name of a policy"); err != nil {
				return nil, err
			}
			return m, p.end()
		case p.accept("unset", "masking", "policy"):
			m := &AlterMaskingPolicy{Table: table, Column: column, Unset: true}
			if p.pos < len(p.tokens) {
				if m.Policy, err = p.looseName("the name of a policy"); err != nil {
					return nil, err
				}
			}
			return m, p.end()
		default:
			return nil, nil
		}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a, p.end()
}

// columnTags reads (column = (tag, ...), ...).
func (p *parser) columnTags(a *AlterTags) error {
	if !p.acceptPunct("(") {
		return p.expected("( and column = ('tag', ...)")
	}
	for {
		at := p.pos
		column, err := p.columnName()
		if err != nil {
			return err
		}
		if err := p.once(a, column, at); err != nil {
			return err
		}
		if !p.acceptPunct("=") {
			return p.expected("=")
		}
		if !p.acceptPunct("(") {
			return p.expected("( and tags")
		}
		c := TagChange{Column: column}
		for {
			name, err := p.looseName("the name of a tag")
			if err != nil {
				return err
			}
			c.Tags = append(c.Tags, Tag{Name: name})
			if more, err := p.more(len(c.Tags)); err != nil {
				return err
			} else if !more {
				break
			}
		}
		if !p.acceptPunct(")") {
			return p.expected(", or )")
		}
		a.Changes = append(a.Changes, c)
		if more, err := p.more(len(a.Changes)); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if !p.acceptPunct(")") {
		return p.expected(", or )")
	}
	return nil
}

// unsetColumns reads (column, ...).
func (p *parser) unsetColumns(a *AlterTags) error {
	if !p.acceptPunct("(") {
		return p.expected("( and columns")
	}
	for {
		at := p.pos
		column, err := p.columnName()
		if err != nil {
			return err
		}
		if err := p.once(a, column, at); err != nil {
			return err
		}
		a.Changes = append(a.Changes, TagChange{Column: column, Unset: true})
		if more, err := p.more(len(a.Changes)); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if !p.acceptPunct(")") {
		return p.expected(", or )")
	}
	return nil
}

// once refuses a column that the statement named before.
func (p *parser) once(a *AlterTags, column string, at int) error {
	for _, c := range a.Changes {
		if c.Column == column {
			return syntaxAt(p.text, p.tokens[at].start, "the column stands twice")
		}
	}
	return nil
}

// tags reads tag [= 'value'], ... for one column or the table.
func (p *parser) tags(a *AlterTags, column string, unset bool) error {
	c := TagChange{Column: column, Unset: unset}
	for {
		name, err := p.looseName("the name of a tag")
		if err != nil {
			return err
		}
		t := Tag{Name: name}
		if !unset && p.acceptPunct("=") {
			if t.Value, err = p.textValue("a value in quotes"); err != nil {
				return err
			}
		}
		c.Tags = append(c.Tags, t)
		if more, err := p.more(len(c.Tags)); err != nil {
			return err
		} else if !more {
			break
		}
	}
	a.Changes = append(a.Changes, c)
	return nil
}

// call parses CALL of the procedures that SQE has; nil for another one.
func (p *parser) call() (Statement, error) {
	if p.word(1) != "system" || p.pos+3 >= len(p.tokens) || p.str(p.pos+2) != "." || p.word(3) != "reproject_column_tags" {
		return p.procedure()
	}
	p.pos += 4
	if !p.acceptPunct("(") {
		return nil, p.expected("(")
	}
	const one = "table => 'name', namespace => 'name' or catalog => 'name'"
	what := p.word(0)
	switch what {
	case "table", "namespace", "catalog":
	default:
		return nil, p.expected(one)
	}
	p.pos++
	if !p.acceptPunct("=") || !p.acceptPunct(">") {
		return nil, p.expected("=>")
	}
	at := p.pos
	name, err := p.textValue("a name in quotes")
	if err != nil {
		return nil, err
	}
	p.noteName(at)
	levels := SplitDatabase(name)
	for _, l := range levels {
		if l == "" {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the name is empty, or a part of it is")
		}
	}
	out := &ReprojectTags{}
	switch what {
	case "table":
		last := len(levels) - 1
		ref := TableRef{Name: levels[last]}
		if last > 0 {
			ref.Database = JoinDatabase(levels[:last]...)
		}
		out.Table = &ref
	case "namespace":
		out.Namespace = JoinDatabase(levels...)
	case "catalog":
		out.Catalog = name
	}
	if !p.acceptPunct(")") {
		return nil, p.expected(")")
	}
	return out, p.end()
}
