package parse

import (
	"strings"
	"time"
)

// Grantee is a principal in a policy. Kind is "user", "group" or "role".
type Grantee struct{ Kind, Name string }

// PolicyItem is COLUMN MASK mask TO grantees [ON COLUMN columns] [USING (text)],
// or ROW FILTER TO grantees USING (text).
type PolicyItem struct {
	Exempt   bool   // ROW FILTER NONE
	Filter   bool   // a row filter
	Mask     string // upper case when it was written without quotes
	Grantees []Grantee
	// Text is what stands in the brackets of USING, without comments.
	Text string
}

// CreatePolicy is CREATE [OR REPLACE] POLICY name ON {TABLE table | TAG tag} item,
// ... [options]. All items are of one kind, masks or row filters.
type CreatePolicy struct {
	Replace bool
	Name    string
	Table   *TableRef // nil when the policy is on a tag
	Tag     string
	// Columns of a mask on a table; dotted for a field inside a column.
	Columns  []string
	Items    []PolicyItem
	Comment  string
	Override bool
	Disabled bool
	// From and Until are zero when there is no such bound; UTC.
	From, Until time.Time
}

// AlterPolicy is ALTER POLICY name clause, ... Nil and empty members were not
// named.
type AlterPolicy struct {
	Name     string
	Add      []PolicyItem
	First    bool
	Remove   []Grantee
	Rename   *string
	Comment  *string
	Override *bool
	Disabled *bool
	From     *time.Time // zero: no bound
	Until    *time.Time
}

// DropPolicy is DROP POLICY [IF EXISTS] name.
type DropPolicy struct {
	Name     string
	IfExists bool
}

func (*CreatePolicy) statement() {}
func (*AlterPolicy) statement()  {}
func (*DropPolicy) statement()   {}

// policyDDL parses CREATE, ALTER and DROP POLICY; nil when the statement is none
// of them.
func (p *parser) policyDDL() (Statement, error) {
	switch {
	case p.accept("create", "policy"):
		return p.createPolicy(false)
	case p.accept("create", "or", "replace", "policy"):
		return p.createPolicy(true)
	case p.accept("alter", "policy"):
		return p.alterPolicy()
	case p.accept("drop", "policy"):
		d := &DropPolicy{IfExists: p.accept("if", "exists")}
		var err error
		if d.Name, err = p.looseName("the name of a policy"); err != nil {
			return nil, err
		}
		return d, p.end()
	}
	return nil, nil
}

func (p *parser) createPolicy(replace bool) (Statement, error) {
	c := &CreatePolicy{Replace: replace}
	var err error
	if c.Name, err = p.looseName("the name of a policy"); err != nil {
		return nil, err
	}
	switch {
	case p.accept("on", "table"):
		ref, err := p.tableRef()
		if err != nil {
			return nil, err
		}
		c.Table = &ref
	case p.accept("on", "tag"):
		if c.Tag, err = p.looseName("the name of a tag"); err != nil {
			return nil, err
		}
	default:
		return nil, p.expected("ON TABLE or ON TAG")
	}
	l := itemList{columns: c.Table != nil}
	if err := p.items(&l); err != nil {
		return nil, err
	}
	c.Items, c.Columns = l.items, l.named
	if c.Table != nil && !c.Items[0].Filter && len(c.Columns) == 0 {
		return nil, p.expected("ON COLUMN: a column mask on a table names its columns")
	}
	return c, p.policyOptions(c)
}

// policyOptions reads what follows the items, each at most once.
func (p *parser) policyOptions(c *CreatePolicy) error {
	seen := map[string]bool{}
	for p.pos < len(p.tokens) {
		w := p.word(0)
		key := w
		if w == "enabled" {
			key = "disabled"
		}
		if seen[key] {
			return syntaxAt(p.text, p.tokens[p.pos].start, "%s stands twice", strings.ToUpper(w))
		}
		seen[key] = true
		var err error
		switch {
		case p.accept("comment"):
			c.Comment, err = p.comment()
		case p.accept("priority"):
			c.Override, err = p.priority()
		case p.accept("valid"):
			var from, until *time.Time
			if from, until, err = p.valid(); err == nil {
				if from != nil {
					c.From = *from
				}
				if until != nil {
					c.Until = *until
				}
			}
		case p.accept("disabled"):
			c.Disabled = true
		case p.accept("enabled"):
		default:
			return p.expected("COMMENT, PRIORITY, VALID, DISABLED, ENABLED or the end of the statement")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) comment() (string, error) {
	p.acceptPunct("=")
	return p.textValue("a comment in quotes")
}

func (p *parser) priority() (override bool, err error) {
	switch {
	case p.accept("override"):
		return true, nil
	case p.accept("normal"):
		return false, nil
	}
	return false, p.expected("OVERRIDE or NORMAL")
}

// valid reads what follows VALID: ALWAYS, or FROM and UNTIL with a time or NONE.
func (p *parser) valid() (from, until *time.Time, err error) {
	if p.accept("always") {
		return &time.Time{}, &time.Time{}, nil
	}
	start := p.pos
	if p.accept("from") {
		if from, err = p.bound(); err != nil {
			return nil, nil, err
		}
	}
	if p.accept("until") {
		if until, err = p.bound(); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case from == nil && until == nil:
		return nil, nil, p.expected("FROM, UNTIL or ALWAYS")
	case from != nil && until != nil && !from.IsZero() && !until.IsZero() && !until.After(*from):
		return nil, nil, syntaxAt(p.text, p.tokens[start].start, "UNTIL is not after FROM")
	}
	return from, until, nil
}

var timeLayouts = []string{
	"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
}

// bound reads a time, or NONE.
func (p *parser) bound() (*time.Time, error) {
	if p.accept("none") {
		return &time.Time{}, nil
	}
	const what = "a time like '2026-12-31 23:59:59' (UTC, whole seconds), or NONE"
	text, err := p.textValue(what)
	if err != nil {
		return nil, err
	}
	for _, layout := range timeLayouts {
		// A year before 1 or of a zero time would mean no bound.
		if t, err := time.Parse(layout, text); err == nil && t.Nanosecond() == 0 && t.Year() >= 1000 {
			t = t.UTC()
			return &t, nil
		}
	}
	p.pos--
	return nil, p.expected(what)
}

func (p *parser) alterPolicy() (Statement, error) {
	a := &AlterPolicy{}
	var err error
	if a.Name, err = p.looseName("the name of a policy"); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		if err := p.alterClause(a); err != nil {
			return nil, err
		}
		if more, err := p.more(n); err != nil || !more {
			if err == nil {
				err = p.end()
			}
			return a, err
		}
	}
}

func (p *parser) alterClause(a *AlterPolicy) error {
	at := p.pos
	twice := func(set bool) error {
		if set {
			return syntaxAt(p.text, p.tokens[at].start, "the clause stands twice")
		}
		return nil
	}
	var err error
	switch {
	case p.accept("add"):
		if err = twice(a.Add != nil); err == nil {
			a.First = p.accept("first")
			l := itemList{alter: true}
			err = p.items(&l)
			a.Add = l.items
		}
	case p.accept("remove"):
		var more []Grantee
		more, err = p.grantees(true)
		a.Remove = append(a.Remove, more...)
	case p.accept("rename", "to"):
		if err = twice(a.Rename != nil); err == nil {
			var name string
			name, err = p.looseName("the new name of the policy")
			a.Rename = &name
		}
	case p.accept("set", "comment"):
		if err = twice(a.Comment != nil); err == nil {
			var text string
			text, err = p.comment()
			a.Comment = &text
		}
	case p.accept("set", "priority"):
		if err = twice(a.Override != nil); err == nil {
			var override bool
			override, err = p.priority()
			a.Override = &override
		}
	case p.accept("set", "valid"):
		if err = twice(a.From != nil || a.Until != nil); err == nil {
			a.From, a.Until, err = p.valid()
		}
	case p.accept("enable"), p.accept("disable"):
		if err = twice(a.Disabled != nil); err == nil {
			disabled := strings.EqualFold(p.str(at), "disable")
			a.Disabled = &disabled
		}
	default:
		return p.expected("ADD, REMOVE, RENAME TO, SET COMMENT, SET PRIORITY, SET VALID, ENABLE or DISABLE")
	}
	return err
}

// clauseAhead reports whether a clause of ALTER POLICY begins at offset i. A
// grantee whose name is such a word is quoted.
func (p *parser) clauseAhead(i int) bool {
	switch p.word(i) {
	case "add":
		return p.word(i+1) == "first" || p.itemAhead(i+1)
	case "rename":
		return p.word(i+1) == "to"
	case "set":
		w := p.word(i + 1)
		return w == "comment" || w == "priority" || w == "valid"
	case "remove", "enable", "disable":
		return true
	}
	return false
}
