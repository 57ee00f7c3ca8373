package parse

import (
	"strings"
)

// Transform is a partition transform of the Iceberg specification, of a column.
type Transform struct {
	// Name is identity, bucket, truncate, year, month, day, hour or void.
	Name string
	// Arg is the number of buckets or the width; 0 for the other transforms.
	Arg int
	// Column is the path of a column, or of a field inside one.
	Column []string
}

// PartitionField is a field of the partitioning. Name is "" when none was given.
type PartitionField struct {
	Transform
	Name string
}

// SortField is a field of the sort order.
type SortField struct {
	Transform
	Desc       bool
	NullsFirst bool
}

// Property is a property of a table, view or schema.
type Property struct{ Key, Value string }

var transforms = map[string]string{
	"identity": "identity", "bucket": "bucket", "truncate": "truncate", "void": "void",
	"year": "year", "years": "year", "month": "month", "months": "month", "day": "day", "days": "day", "date": "day",
	"hour": "hour", "hours": "hour", "date_hour": "hour",
}

const aTransform = "a column, or BUCKET(n, column), TRUNCATE(width, column), YEAR, MONTH, DAY, HOUR of a column"

// transform reads column or transform(column).
func (p *parser) transform() (Transform, error) {
	if p.pos+1 < len(p.tokens) && p.tokens[p.pos].kind == word && p.str(p.pos+1) == "(" {
		t := Transform{Name: transforms[p.word(0)]}
		if t.Name == "" {
			return t, p.expected(aTransform)
		}
		p.pos += 2
		sized := t.Name == "bucket" || t.Name == "truncate"
		first := sized && p.pos < len(p.tokens) && p.tokens[p.pos].kind == number
		if first {
			if err := p.size(&t); err != nil {
				return t, err
			}
			if err := p.need(","); err != nil {
				return t, err
			}
		}
		var err error
		if t.Column, err = p.identPath("the name of a column"); err != nil {
			return t, err
		}
		if sized && !first {
			if err := p.need(","); err != nil {
				return t, err
			}
			if err := p.size(&t); err != nil {
				return t, err
			}
		}
		return t, p.need(")")
	}
	column, err := p.identPath(aTransform)
	return Transform{Name: "identity", Column: column}, err
}

// size reads the number of buckets or the width of a transform.
func (p *parser) size(t *Transform) error {
	at := p.pos
	n, err := p.integer("a number", 1<<31-1)
	if err == nil && n < 1 {
		err = syntaxAt(p.text, p.tokens[at].start, "expected a number of at least 1")
	}
	t.Arg = int(n)
	return err
}

// partitioning reads (transform [AS name], ...).
func (p *parser) partitioning() ([]PartitionField, error) {
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []PartitionField
	for {
		t, err := p.transform()
		if err != nil {
			return nil, err
		}
		f := PartitionField{Transform: t}
		if p.accept("as") {
			if f.Name, err = p.ident("the name of a partition field"); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			if !p.acceptPunct(")") {
				return nil, p.expected(", or ) (a partition column is one of the table's columns and has no type here)")
			}
			return out, nil
		}
	}
}

// sortFields reads transform [ASC | DESC] [NULLS {FIRST | LAST}], ... NULLs are first
// where nothing else is said, last with DESC, as in Iceberg's other writers.
func (p *parser) sortFields() ([]SortField, error) {
	var out []SortField
	for {
		t, err := p.transform()
		if err != nil {
			return nil, err
		}
		f := SortField{Transform: t}
		if f.Desc = p.accept("desc"); !f.Desc {
			p.accept("asc")
		}
		switch f.NullsFirst = !f.Desc; {
		case p.accept("nulls", "first"):
			f.NullsFirst = true
		case p.accept("nulls", "last"):
			f.NullsFirst = false
		case p.word(0) == "nulls":
			p.pos++
			return nil, p.expected("FIRST or LAST")
		}
		out = append(out, f)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

// sortOrder reads sort fields, with or without brackets around them.
func (p *parser) sortOrder() ([]SortField, error) {
	brackets := p.acceptPunct("(")
	out, err := p.sortFields()
	if err == nil && brackets {
		err = p.need(")")
	}
	return out, err
}

// propertyKey reads the name of a property: quoted, or bare with dots and hyphens.
func (p *parser) propertyKey() (string, error) {
	const what = "the name of a property in quotes"
	if p.pos < len(p.tokens) && p.tokens[p.pos].kind == word {
		return p.looseName(what)
	}
	return p.name(what)
}

// properties reads ('key' = 'value', ...).
func (p *parser) properties() ([]Property, error) {
	if err := p.need("("); err != nil {
		return nil, err
	}
	out, err := p.propertyList()
	if err != nil {
		return nil, err
	}
	if !p.acceptPunct(")") {
		return nil, p.expected(", or )")
	}
	return out, nil
}

// propertyList reads 'key' [=] 'value', ...
func (p *parser) propertyList() ([]Property, error) {
	var out []Property
	seen := map[string]bool{}
	for {
		at := p.pos
		key, err := p.propertyKey()
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the property stands twice")
		}
		seen[key] = true
		if !p.acceptPunct("=") && (p.pos >= len(p.tokens) || p.tokens[p.pos].kind != str) {
			return nil, p.expected("=")
		}
		value, err := p.propertyValue()
		if err != nil {
			return nil, err
		}
		out = append(out, Property{key, value})
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

// propertyValue reads a string, a number, TRUE or FALSE, as text.
func (p *parser) propertyValue() (string, error) {
	sign := ""
	if p.at("-") && p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].kind == number {
		p.pos++
		sign = "-"
	}
	switch w := p.word(0); {
	case p.pos < len(p.tokens) && p.tokens[p.pos].kind == number:
		p.pos++
		return sign + p.str(p.pos-1), nil
	case w == "true" || w == "false":
		p.pos++
		return w, nil
	}
	return p.textValue("a value in quotes")
}

// propertyKeys reads ('key', ...).
func (p *parser) propertyKeys() ([]string, error) {
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []string
	for {
		key, err := p.propertyKey()
		if err != nil {
			return nil, err
		}
		out = append(out, key)
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	if !p.acceptPunct(")") {
		return nil, p.expected(", or )")
	}
	return out, nil
}

// propertiesAhead takes the words that introduce properties; long ones first.
func (p *parser) propertiesAhead() bool {
	for _, words := range [][]string{{"tblproperties"}, {"dbproperties"}, {"with", "properties"}, {"with", "dbproperties"}, {"with", "tblproperties"}, {"properties"}} {
		if p.accept(words...) {
			return true
		}
	}
	if p.word(0) == "with" && p.pos+1 < len(p.tokens) && p.str(p.pos+1) == "(" {
		p.pos++
		return true
	}
	return false
}

// merged adds properties; one that is there already is an error.
func (p *parser) merged(to, more []Property, at int) ([]Property, error) {
	seen := make(map[string]bool, len(to))
	for _, t := range to {
		seen[t.Key] = true
	}
	for _, m := range more {
		if seen[m.Key] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "a property stands twice")
		}
	}
	return append(to, more...), nil
}

// joined is the path of a column for comparisons, which are without case.
func joined(path []string) string { return strings.ToLower(strings.Join(path, "\x00")) }
