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

// ShowPolicies is SHOW POLICIES [ON TABLE table | ON TAG tag] [FOR {USER | ROLE |
// GROUP} name] [LIKE 'pattern'].
type ShowPolicies struct {
	Table *TableRef
	Tag   string
	For   *Grantee
	Like  *string
}

// ShowCreatePolicy is SHOW CREATE POLICY name.
type ShowCreatePolicy struct{ Name string }

// ShowMaskingPolicies is SHOW MASKING POLICIES, or SHOW MASKING POLICY [name].
type ShowMaskingPolicies struct{ Name string }

// ShowEffectivePolicy is SHOW EFFECTIVE POLICY [FOR USER name] ON [TABLE] table.
// User is "" for oneself.
type ShowEffectivePolicy struct {
	User  string
	Table TableRef
}

func (*CreatePolicy) statement()        {}
func (*AlterPolicy) statement()         {}
func (*DropPolicy) statement()          {}
func (*ShowPolicies) statement()        {}
func (*ShowCreatePolicy) statement()    {}
func (*ShowMaskingPolicies) statement() {}
func (*ShowEffectivePolicy) statement() {}

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

// itemAhead reports whether an item of a policy begins at offset i.
func (p *parser) itemAhead(i int) bool {
	return p.word(i) == "column" && p.word(i+1) == "mask" || p.word(i) == "row" && p.word(i+1) == "filter"
}

// itemList is the items of a policy while they are read.
type itemList struct {
	items   []PolicyItem
	columns bool     // ON COLUMN is allowed
	named   []string // the columns that were named
	alter   bool     // the items stand in ALTER POLICY
}

func (p *parser) items(l *itemList) error {
	for {
		if err := p.item(l); err != nil {
			return err
		}
		if p.pos < len(p.tokens) && p.str(p.pos) == "," && p.itemAhead(1) {
			if _, err := p.more(len(l.items)); err != nil {
				return err
			}
			continue
		}
		return nil
	}
}

func (p *parser) item(l *itemList) error {
	if p.pos >= len(p.tokens) {
		return p.expected("COLUMN MASK or ROW FILTER")
	}
	item, at := PolicyItem{}, p.tokens[p.pos].start
	switch {
	case p.accept("row", "filter"):
		item.Filter = true
	case p.accept("column", "mask"):
		bare := p.word(0) != ""
		mask, err := p.looseName("the name of a mask (MASK, MASK_NULL, CUSTOM, ...)")
		if err != nil {
			return err
		}
		if item.Mask = mask; bare {
			item.Mask = strings.ToUpper(mask)
		}
	default:
		return p.expected("COLUMN MASK or ROW FILTER")
	}
	if len(l.items) > 0 && l.items[0].Filter != item.Filter {
		return syntaxAt(p.text, at, "a policy holds column masks or row filters, not both; make two policies")
	}
	if !p.accept("to") {
		return p.expected("TO")
	}
	var err error
	if item.Grantees, err = p.grantees(l.alter); err != nil {
		return err
	}
	if err := p.itemTail(&item, l); err != nil {
		return err
	}
	custom := strings.EqualFold(item.Mask, "CUSTOM")
	switch {
	case item.Filter && item.Text == "":
		return p.expected("USING (condition): a ROW FILTER requires USING")
	case custom && item.Text == "":
		return p.expected("USING (expression): a CUSTOM COLUMN MASK requires USING")
	case !item.Filter && !custom && item.Text != "":
		return syntaxAt(p.text, at, "only a CUSTOM COLUMN MASK takes USING")
	}
	l.items = append(l.items, item)
	return nil
}

// itemTail reads ON COLUMN and USING of an item.
func (p *parser) itemTail(item *PolicyItem, l *itemList) error {
	named := false
	for {
		switch at := p.pos; {
		case p.word(0) == "on" && p.word(1) == "column" && !named:
			switch {
			case item.Filter:
				return p.expected("USING: a ROW FILTER is on the whole table")
			case l.alter:
				return p.expected("USING or the next clause: the columns of a policy stay as they are")
			case !l.columns:
				return p.expected("USING or the next item: a policy on a tag acts on the columns that carry the tag")
			}
			p.pos += 2
			named = true
			columns, err := p.columnList()
			if err != nil {
				return err
			}
			if l.named != nil && !sameNames(l.named, columns) {
				return syntaxAt(p.text, p.tokens[at].start, "the items of a policy are on the same columns; make two policies")
			}
			l.named = columns
		case p.word(0) == "using" && item.Text == "":
			text, err := p.using()
			if err != nil {
				return err
			}
			item.Text = text
		default:
			return nil
		}
	}
}

func (p *parser) columnList() ([]string, error) {
	var out []string
	for {
		n, err := p.columnName()
		if err != nil {
			return nil, err
		}
		out = append(out, n)
		if p.itemAhead(1) {
			return out, nil
		}
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.EqualFold(a[i], b[i]) {
			return false
		}
	}
	return true
}

// grantees reads [USER | ROLE | GROUP] name, ... | PUBLIC. The kind holds for the
// names after it until another kind is named; a list without one is of users.
// PUBLIC is the group of everybody.
func (p *parser) grantees(alter bool) ([]Grantee, error) {
	var out []Grantee
	kind := "user"
	for {
		switch w := p.word(0); w {
		case "user", "role", "group":
			if p.nameAhead(1) {
				kind = w
				p.pos++
			}
		case "on", "using", "to":
			return nil, p.expected("USER, ROLE or GROUP and a name")
		}
		g := Grantee{Kind: kind}
		if w := p.word(0); w == "public" && (kind == "user" || kind == "group") {
			g.Kind = "group"
		}
		var err error
		if g.Name, err = p.looseName("the name of a user, role or group"); err != nil {
			return nil, err
		}
		if g.Kind == "group" && strings.EqualFold(g.Name, "public") {
			g.Name = "public"
		}
		out = append(out, g)
		if p.itemAhead(1) || alter && p.clauseAhead(1) {
			return out, nil
		}
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

// using reads USING (text). The text is that of the statement without its
// comments.
func (p *parser) using() (string, error) {
	p.pos++
	if !p.acceptPunct("(") {
		return "", p.expected("( and the text of the policy")
	}
	var b strings.Builder
	f := folder{text: p.text, tokens: p.tokens, copied: p.tokens[p.pos-1].end}
	for depth := 1; p.pos < len(p.tokens); p.pos++ {
		t := p.tokens[p.pos]
		switch {
		case t.kind == param:
			return "", syntaxAt(p.text, t.start, "the text of a policy has no parameters")
		case t.kind == punct && p.str(p.pos) == "(":
			depth++
		case t.kind == punct && p.str(p.pos) == ")":
			depth--
		}
		if depth == 0 {
			if b.Len() == 0 {
				return "", p.expected("the text of the policy")
			}
			p.pos++
			return b.String(), nil
		}
		f.out.Reset()
		f.blanks(t.start)
		if b.Len() > 0 {
			b.WriteString(f.out.String())
		}
		b.WriteString(p.str(p.pos))
		f.copied = t.end
	}
	return "", p.expected(") after the text of the policy")
}

// showPolicies parses the SHOW statements about policies and tags; nil when the
// statement is none of them.
func (p *parser) showPolicies() (Statement, error) {
	var err error
	switch {
	case p.accept("show", "policies"):
		return p.policyList()
	case p.accept("show", "create", "policy"):
		s := &ShowCreatePolicy{}
		if s.Name, err = p.looseName("the name of a policy"); err != nil {
			return nil, err
		}
		return s, p.end()
	case p.accept("show", "masking", "policies"):
		return &ShowMaskingPolicies{}, p.end()
	case p.accept("show", "masking", "policy"):
		s := &ShowMaskingPolicies{}
		if p.pos < len(p.tokens) {
			if s.Name, err = p.looseName("the name of a policy"); err != nil {
				return nil, err
			}
		}
		return s, p.end()
	case p.accept("show", "effective", "policy"):
		s := &ShowEffectivePolicy{}
		if p.accept("for") {
			p.accept("user")
			if s.User, err = p.looseName("the name of a user"); err != nil {
				return nil, err
			}
		}
		if s.Table, err = p.onTable(); err != nil {
			return nil, err
		}
		return s, p.end()
	case p.accept("show", "tags"):
		s := &ShowTags{}
		if s.Table, err = p.onTable(); err != nil {
			return nil, err
		}
		return s, p.end()
	}
	return nil, nil
}

// onTable reads ON [TABLE] table.
func (p *parser) onTable() (TableRef, error) {
	if !p.accept("on") {
		return TableRef{}, p.expected("ON and the name of a table")
	}
	if p.word(0) == "table" && p.nameAhead(1) {
		p.pos++
	}
	return p.tableRef()
}

func (p *parser) policyList() (Statement, error) {
	s := &ShowPolicies{}
	var err error
	switch {
	case p.accept("on", "tag"):
		if s.Tag, err = p.looseName("the name of a tag"); err != nil {
			return nil, err
		}
	case p.word(0) == "on":
		ref, err := p.onTable()
		if err != nil {
			return nil, err
		}
		s.Table = &ref
	}
	if p.accept("for") {
		list, err := p.grantees(false)
		if err != nil {
			return nil, err
		}
		if len(list) > 1 {
			return nil, p.expected("one principal")
		}
		s.For = &list[0]
	}
	if p.accept("like") {
		pattern, err := p.textValue("a pattern in quotes")
		if err != nil {
			return nil, err
		}
		s.Like = &pattern
	}
	return s, p.end()
}
