package parse

import (
	"slices"
	"strings"

	"sqe/fault"
)

// Update is UPDATE table [[AS] alias] SET ... [WHERE condition].
type Update struct {
	Target
	Set    []Assignment
	Where  *Expr
	Params int
}

// Assignment is column = value. Column has the parts of a field inside a column;
// the name or alias of the table before it is gone. Default marks DEFAULT, which
// has no value.
type Assignment struct {
	Column  []string
	Value   Expr
	Default bool
	Start   int // the offset of the column, in bytes, in the text that was parsed
}

// Delete is DELETE FROM table [[AS] alias] [WHERE condition].
type Delete struct {
	Target
	Where  *Expr
	Params int
}

func (*Update) statement() {}
func (*Delete) statement() {}

func refuse(what, advice string) error {
	return fault.New(fault.Unsupported, "%s is not supported; %s", what, advice)
}

const useMerge = "use MERGE INTO ... USING ... ON ... WHEN MATCHED THEN UPDATE SET ... WHEN NOT MATCHED THEN INSERT ..."

// dml parses a statement that changes rows; nil when it is none.
func (p *parser) dml() (Statement, error) {
	switch w := p.word(0); w {
	case "insert", "update", "delete", "merge":
		p.pos++
		params, err := checkLiterals(p.tokens[p.pos:])
		if err != nil {
			return nil, err
		}
		switch w {
		case "insert":
			return p.insert(params)
		case "update":
			return p.update(params)
		case "delete":
			return p.deletion(params)
		}
		return p.merge(params)
	case "replace":
		if p.word(1) == "table" {
			return nil, refuse("REPLACE TABLE", "use CREATE OR REPLACE TABLE")
		}
		if p.word(1) != "" || p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].kind == quoted {
			return nil, refuse("REPLACE", "it would delete rows by their primary key, which Iceberg tables do not have; "+useMerge)
		}
	case "with":
		return nil, p.withWrite()
	}
	return nil, nil
}

// withWrite refuses a common table expression before a statement that changes
// rows.
func (p *parser) withWrite() error {
	depth := 0
	for i := p.pos + 1; i < len(p.tokens); i++ {
		switch s := p.str(i); p.tokens[i].kind {
		case punct:
			switch s {
			case "(":
				depth++
			case ")":
				depth--
			}
		case word:
			if depth > 0 || !p.closes(i-1) {
				continue
			}
			switch w := strings.ToUpper(s); w {
			case "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE":
				return refuse("WITH before "+w, "write it inside: INSERT INTO t WITH ... SELECT, WHERE x IN (WITH ... SELECT), MERGE INTO t USING (WITH ... SELECT) AS s")
			}
		}
	}
	return nil
}

func (p *parser) closes(i int) bool {
	return p.tokens[i].kind == punct && p.str(i) == ")"
}

// modifiers passes the words of MySQL that change when a statement runs, and
// refuses IGNORE.
func (p *parser) modifiers(statement string, words ...string) error {
	for {
		switch w := p.word(0); {
		case w == "ignore":
			return refuse(statement+" IGNORE", "a statement does all of its work or none; leave the rows out by WHERE, or "+useMerge)
		case w != "" && slices.Contains(words, w):
			p.pos++
		default:
			return nil
		}
	}
}

// assignments reads column = value, ...
func (p *parser) assignments(t Target, stops ...string) ([]Assignment, error) {
	var out []Assignment
	seen := map[string]bool{}
	for {
		at := p.pos
		path, err := p.identPath("the name of a column")
		if err != nil {
			return nil, err
		}
		a := Assignment{Column: t.unqualified(path), Start: p.tokens[at].start}
		key := strings.ToLower(strings.Join(a.Column, "\x00"))
		if seen[key] {
			return nil, syntaxAt(p.text, a.Start, "the column stands twice")
		}
		seen[key] = true
		if err := p.need("="); err != nil {
			return nil, err
		}
		if p.word(0) == "default" && p.exprEnd(stops...) == p.pos+1 {
			p.pos++
			a.Default = true
		} else if a.Value, err = p.expr("a value", stops...); err != nil {
			return nil, err
		}
		out = append(out, a)
		if more, err := p.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

// unqualified drops the alias or the name of the table from the path of a column.
// A table and a struct column of one name: the table is meant.
func (t Target) unqualified(path []string) []string {
	if t.Alias != "" {
		if len(path) > 1 && strings.EqualFold(path[0], t.Alias) {
			return path[1:]
		}
		return path
	}
	for i := len(path) - 1; i > 0; i-- {
		ref := tableRefOf(path[:i])
		if ref == t.Table || i == 1 && strings.EqualFold(ref.Name, t.Table.Name) {
			return path[i:]
		}
	}
	return path
}

func (p *parser) update(params int) (Statement, error) {
	u := &Update{Params: params}
	err := p.modifiers("UPDATE", "low_priority")
	if err != nil {
		return nil, err
	}
	if u.Target, err = p.target("partition", "cross", "inner", "left", "natural", "right", "straight_join"); err != nil {
		return nil, err
	}
	if !p.accept("set") {
		switch p.word(0) {
		case "join", "cross", "inner", "left", "natural", "right", "straight_join":
			return nil, refuse("UPDATE of several tables", useMerge)
		}
		if p.at(",") {
			return nil, refuse("UPDATE of several tables", useMerge)
		}
		return nil, p.expected("SET")
	}
	if u.Set, err = p.assignments(u.Target, "where", "order", "limit", "from", "returning"); err != nil {
		return nil, err
	}
	if p.word(0) == "from" {
		return nil, refuse("UPDATE ... FROM", useMerge)
	}
	u.Where, err = p.where("UPDATE")
	return u, err
}

// where reads [WHERE condition] and the end of the statement.
func (p *parser) where(statement string) (*Expr, error) {
	var out *Expr
	if p.accept("where") {
		e, err := p.expr("a condition", "order", "limit", "group", "having", "returning")
		if err != nil {
			return nil, err
		}
		out = &e
	}
	switch p.word(0) {
	case "order", "limit":
		return nil, refuse(statement+" with ORDER BY or LIMIT", "name the rows by WHERE")
	case "returning":
		return nil, refuse("RETURNING", "SELECT the rows")
	}
	return out, p.end()
}

func (p *parser) deletion(params int) (Statement, error) {
	d := &Delete{Params: params}
	const several = "DELETE of several tables"
	const advice = "name the rows of one table: DELETE FROM t WHERE id IN (SELECT ...), or MERGE INTO ... WHEN MATCHED THEN DELETE"
	err := p.modifiers("DELETE", "low_priority", "quick")
	if err != nil {
		return nil, err
	}
	if !p.accept("from") {
		for i := p.pos; i < len(p.tokens); i++ {
			if p.word(i-p.pos) == "from" {
				return nil, refuse(several, advice)
			}
		}
		return nil, p.expected("FROM")
	}
	if d.Target, err = p.target("partition", "cross", "inner", "left", "natural", "right", "straight_join", "returning"); err != nil {
		return nil, err
	}
	switch p.word(0) {
	case "join", "using", "cross", "inner", "left", "natural", "right", "straight_join":
		return nil, refuse(several, advice)
	}
	if p.at(",") || p.at(".") {
		return nil, refuse(several, advice)
	}
	d.Where, err = p.where("DELETE")
	return d, err
}
