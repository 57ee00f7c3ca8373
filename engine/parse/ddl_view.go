package parse

import "strings"

// ViewColumn is a column in the list behind the name of a view.
type ViewColumn struct{ Name, Comment string }

// CreateView is CREATE [OR REPLACE] VIEW [IF NOT EXISTS] view [(columns)] [COMMENT
// 'text'] [TBLPROPERTIES (...)] AS query, and ALTER VIEW view AS query.
type CreateView struct {
	View        TableRef
	Replace     bool
	IfNotExists bool
	// Alter says that the view exists.
	Alter      bool
	Columns    []ViewColumn
	Comment    string
	Properties []Property
	// Query is folded, Text is it as it was written, without comments.
	Query *SQL
	Text  string
	// Warnings say what has no effect.
	Warnings []string
}

// DropView is DROP VIEW [IF EXISTS] view, ...
type DropView struct {
	Views    []TableRef
	IfExists bool
}

// AlterView is ALTER VIEW view with SET or UNSET TBLPROPERTIES (...), or RENAME TO.
type AlterView struct {
	View          TableRef
	Set           []Property
	Unset         []string
	UnsetIfExists bool
	RenameTo      *TableRef
}

func (*CreateView) statement() {}
func (*DropView) statement()   {}
func (*AlterView) statement()  {}

const (
	warnInvoker   = "DEFINER and SQL SECURITY have no effect: a view runs with the rights of who reads it"
	warnAlgorithm = "ALGORITHM of a view has no effect"
)

// createView parses CREATE VIEW from its first word, and the forms of ALTER VIEW
// that define the view anew.
func (p *parser) createView(alter bool) (Statement, error) {
	start := p.pos
	p.pos++
	c := &CreateView{Alter: alter}
	c.Replace = !alter && p.accept("or", "replace")
	r := &typeReader{parser: p}
	if err := r.viewAttributes(); err != nil {
		return nil, err
	}
	if !p.accept("view") {
		p.pos = start
		return nil, nil
	}
	at := p.pos
	if !alter {
		if c.IfNotExists = p.accept("if", "not", "exists"); c.IfNotExists && c.Replace {
			return nil, syntaxAt(p.text, p.tokens[at].start, "OR REPLACE and IF NOT EXISTS exclude each other")
		}
	}
	var err error
	if c.View, err = p.table("the name of a view"); err != nil {
		return nil, err
	}
	c.Warnings = r.warnings
	return c, p.viewRest(c)
}

// viewAttributes passes ALGORITHM, DEFINER and SQL SECURITY.
func (r *typeReader) viewAttributes() error {
	for {
		switch {
		case r.accept("algorithm"):
			r.warn(warnAlgorithm)
			if err := r.need("="); err != nil {
				return err
			}
			if !r.accept("undefined") && !r.accept("merge") && !r.accept("temptable") {
				return r.expected("UNDEFINED, MERGE or TEMPTABLE")
			}
		case r.accept("definer"):
			r.warn(warnInvoker)
			if err := r.need("="); err != nil {
				return err
			}
			if r.accept("current_user") {
				if r.acceptPunct("(") && !r.acceptPunct(")") {
					return r.expected(")")
				}
				continue
			}
			if _, err := r.name("a user"); err != nil {
				return err
			}
			if r.pos < len(r.tokens) && r.tokens[r.pos].kind == variable {
				r.pos++ // @'host'
			}
		case r.accept("sql", "security", "invoker"):
		case r.accept("sql", "security", "definer"):
			r.warn(warnInvoker)
		default:
			return nil
		}
	}
}

// viewRest reads what follows the name of a view.
func (p *parser) viewRest(c *CreateView) error {
	var err error
	if p.at("(") {
		if c.Columns, err = p.viewColumns(); err != nil {
			return err
		}
	}
	commented := false
	for !p.accept("as") {
		at := p.pos
		switch {
		case p.word(0) == "comment" && !commented:
			p.pos++
			commented = true
			c.Comment, err = p.comment()
		case p.propertiesAhead():
			var more []Property
			if more, err = p.properties(); err == nil {
				c.Properties, err = p.merged(c.Properties, more, at)
			}
		default:
			err = p.expected("AS and a query")
		}
		if err != nil {
			return err
		}
	}
	for i := max(p.pos, len(p.tokens)-4); i < len(p.tokens); i++ {
		if w := p.word(i - p.pos); w == "with" && strings.EqualFold(p.str(len(p.tokens)-1), "option") {
			return refuse("WITH CHECK OPTION", "views cannot be written to")
		}
	}
	from := p.pos
	if c.Query, err = p.query(len(p.tokens)); err != nil {
		return err
	}
	if c.Query.Params > 0 {
		return p.noParameters("a view has no parameters")
	}
	c.Text = p.plainText(from, len(p.tokens))
	return nil
}

// plainText is the text of the tokens, without comments.
func (p *parser) plainText(from, to int) string {
	f := folder{text: p.text, tokens: p.tokens, copied: p.tokens[from].start}
	for i := from; i < to; i++ {
		f.write(i, i+1, p.str(i))
	}
	return f.out.String()
}

func (p *parser) viewColumns() ([]ViewColumn, error) {
	p.pos++
	var out []ViewColumn
	seen := map[string]bool{}
	for {
		at := p.pos
		c := ViewColumn{}
		var err error
		if c.Name, err = p.ident("the name of a column"); err != nil {
			return nil, err
		}
		if seen[strings.ToLower(c.Name)] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the column stands twice")
		}
		seen[strings.ToLower(c.Name)] = true
		if p.accept("comment") {
			if c.Comment, err = p.textValue("a comment in quotes"); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
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

func (p *parser) alterView() (Statement, error) {
	start := p.pos
	p.pos += 2
	a := &AlterView{}
	var err error
	if a.View, err = p.table("the name of a view"); err != nil {
		return nil, err
	}
	switch {
	case p.accept("rename", "to"):
		ref, err := p.table("the new name of the view")
		if err != nil {
			return nil, err
		}
		a.RenameTo = &ref
	case p.accept("set"):
		if !p.propertiesAhead() {
			return nil, p.expected("TBLPROPERTIES")
		}
		a.Set, err = p.properties()
	case p.accept("unset"):
		if !p.propertiesAhead() {
			return nil, p.expected("TBLPROPERTIES")
		}
		a.UnsetIfExists = p.accept("if", "exists")
		a.Unset, err = p.propertyKeys()
	default:
		p.pos = start
		return p.createView(true)
	}
	if err != nil {
		return nil, err
	}
	return a, p.end()
}
