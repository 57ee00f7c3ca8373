package parse

// CreateSchema is CREATE {SCHEMA | DATABASE | NAMESPACE} [IF NOT EXISTS] name
// [COMMENT 'text'] [WITH PROPERTIES (...)]. Name is a database name
// (JoinDatabase).
type CreateSchema struct {
	Name        string
	IfNotExists bool
	Comment     string
	Properties  []Property
	// Warnings say what has no effect.
	Warnings []string
}

// DropSchema is DROP {SCHEMA | DATABASE | NAMESPACE} [IF EXISTS] name [RESTRICT].
// A schema that is not empty stays.
type DropSchema struct {
	Name     string
	IfExists bool
}

// AlterSchema is ALTER {SCHEMA | DATABASE | NAMESPACE} name SET PROPERTIES (...) or
// UNSET PROPERTIES [IF EXISTS] (...).
type AlterSchema struct {
	Name          string
	Set           []Property
	Unset         []string
	UnsetIfExists bool
	// Warnings say what has no effect.
	Warnings []string
}

func (*CreateSchema) statement() {}
func (*DropSchema) statement()   {}
func (*AlterSchema) statement()  {}

// schemaName reads the name of a schema.
func (p *parser) schemaName() (string, error) {
	parts, err := p.identPath("the name of a schema")
	if err != nil {
		return "", err
	}
	if len(parts) == 1 {
		// One name is a whole database name, as SHOW DATABASES prints it.
		return parts[0], nil
	}
	return JoinDatabase(parts...), nil
}

// schemaOption passes an option of MySQL's databases that has no effect here.
func (r *typeReader) schemaOption() (bool, error) {
	if ok, err := r.charset(); ok || err != nil {
		r.warn(warnCharset)
		return ok, err
	}
	i := 0
	if r.word(0) == "default" {
		i = 1
	}
	if r.word(i) != "encryption" {
		return false, nil
	}
	r.pos += i + 1
	r.acceptPunct("=")
	r.warn("ENCRYPTION of a schema has no effect")
	_, err := r.textValue("'Y' or 'N'")
	return true, err
}

func (p *parser) createSchema() (Statement, error) {
	c := &CreateSchema{IfNotExists: p.accept("if", "not", "exists")}
	var err error
	if c.Name, err = p.schemaName(); err != nil {
		return nil, err
	}
	r := &typeReader{parser: p}
	commented := false
	for p.pos < len(p.tokens) {
		at := p.pos
		switch {
		case p.word(0) == "comment" && !commented:
			p.pos++
			commented = true
			c.Comment, err = p.comment()
		case p.word(0) == "location":
			return nil, refuse("LOCATION", "the catalog decides where a schema lies")
		case p.propertiesAhead():
			var more []Property
			if more, err = p.properties(); err == nil {
				c.Properties, err = p.merged(c.Properties, more, at)
			}
		default:
			var ok bool
			if ok, err = r.schemaOption(); err == nil && !ok {
				err = p.expected("COMMENT, WITH PROPERTIES or the end of the statement")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	c.Warnings = r.warnings
	return c, nil
}

func (p *parser) dropSchema() (Statement, error) {
	d := &DropSchema{IfExists: p.accept("if", "exists")}
	var err error
	if d.Name, err = p.schemaName(); err != nil {
		return nil, err
	}
	if p.word(0) == "cascade" {
		return nil, refuse("DROP SCHEMA ... CASCADE", "drop its tables and views first")
	}
	p.accept("restrict")
	return d, p.end()
}

func (p *parser) alterSchema() (Statement, error) {
	p.pos += 2
	a := &AlterSchema{}
	var err error
	if a.Name, err = p.schemaName(); err != nil {
		return nil, err
	}
	r := &typeReader{parser: p}
	switch {
	case p.accept("set", "location"):
		return nil, refuse("SET LOCATION", "the catalog decides where a schema lies")
	case p.word(0) == "rename":
		return nil, refuse("RENAME of a schema", "create another one and rename its tables into it")
	case p.accept("set"):
		if !p.propertiesAhead() {
			return nil, p.expected("PROPERTIES")
		}
		a.Set, err = p.properties()
	case p.accept("unset"):
		if !p.propertiesAhead() {
			return nil, p.expected("PROPERTIES")
		}
		a.UnsetIfExists = p.accept("if", "exists")
		a.Unset, err = p.propertyKeys()
	default:
		for n := 0; ; n++ {
			ok, err := r.schemaOption()
			if err != nil {
				return nil, err
			}
			if !ok && n == 0 {
				return nil, p.expected("SET PROPERTIES or UNSET PROPERTIES")
			}
			if !ok {
				break
			}
		}
		a.Warnings = r.warnings
	}
	if err != nil {
		return nil, err
	}
	return a, p.end()
}
