package parse

import "strings"

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
		if item.Exempt = p.word(0) == "none" && p.word(1) == "to"; item.Exempt {
			p.pos++
		}
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
	case item.Exempt && item.Text != "":
		return syntaxAt(p.text, at, "ROW FILTER NONE takes no USING: its principals see all rows")
	case item.Filter && !item.Exempt && item.Text == "":
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
