package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// Insert is INSERT [INTO] table [(columns)] {VALUES ... | query | DEFAULT VALUES |
// SET ...}, and INSERT OVERWRITE [TABLE] table [PARTITION (...)] query.
type Insert struct {
	Table     TableRef
	Overwrite bool
	// Partition is what PARTITION (column [= value], ...) named; Value is nil for a
	// column without one.
	Partition []PartitionValue
	// Columns are the columns that the rows are for; nil: all of the table.
	Columns []string
	// ByName takes the columns of the query by their names, not by their places.
	ByName bool
	// Source yields the rows; nil for DEFAULT VALUES. Rows that the statement lists
	// are the query VALUES ROW(...), ..., with NULL in the place of each DEFAULT.
	Source *SQL
	// Rows are the listed rows, a part of Source.AST; nil for another query. Each
	// value is for its column, whatever the others in its place are.
	Rows sqlparser.Values
	// Defaults is where DEFAULT stood in the rows, in their order.
	Defaults []Cell
	Params   int
}

// Cell is a place in listed rows, both from 0.
type Cell struct{ Row, Column int }

// PartitionValue is column [= value] of PARTITION (...).
type PartitionValue struct {
	Column string
	Value  *Expr
}

func (*Insert) statement() {}

func (p *parser) insert(params int) (Statement, error) {
	in := &Insert{Params: params}
	if err := p.modifiers("INSERT", "low_priority", "high_priority", "delayed"); err != nil {
		return nil, err
	}
	in.Overwrite = p.accept("overwrite")
	p.accept("into")
	p.accept("table")
	var err error
	if in.Table, err = p.table("the name of a table"); err != nil {
		return nil, err
	}
	p.tables++
	for {
		switch {
		case p.word(0) == "partition" && in.Partition == nil && in.Columns == nil && !in.ByName:
			p.pos++
			if in.Partition, err = p.partitionValues(); err != nil {
				return nil, err
			}
			continue
		case p.at("(") && in.Columns == nil && !in.ByName && !p.queryAhead():
			if in.Columns, err = p.insertColumns(Target{Table: in.Table}); err != nil {
				return nil, err
			}
			continue
		case p.word(0) == "by" && p.word(1) == "name" && in.Columns == nil && !in.ByName:
			p.pos += 2
			in.ByName = true
			continue
		case p.word(0) == "as" || p.nameAhead(0) && !reserved[p.word(0)] && p.word(0) != "default" && p.word(0) != "value":
			return nil, p.expected("VALUES, a query, DEFAULT VALUES, BY NAME or columns in brackets: the table of an INSERT has no alias")
		}
		break
	}
	return in, p.insertSource(in)
}

// queryAhead reports whether a query in brackets begins at the current token.
func (p *parser) queryAhead() bool {
	for i := p.pos; i < len(p.tokens); i++ {
		if p.tokens[i].kind == punct && p.str(i) == "(" {
			continue
		}
		switch p.word(i - p.pos) {
		case "select", "with", "values":
			return true
		case "table":
			// TABLE t, and no column that is called so.
			return i+1 < len(p.tokens) && (p.tokens[i+1].kind == word || p.tokens[i+1].kind == quoted)
		}
		return false
	}
	return false
}

func (p *parser) insertSource(in *Insert) error {
	var err error
	switch w := p.word(0); {
	case w == "default" && p.word(1) == "values" && in.Columns == nil && !in.ByName && !in.Overwrite:
		p.pos += 2
	case w == "set" && in.Columns == nil && !in.ByName && !in.Overwrite:
		return p.insertSet(in)
	case w == "values" || w == "value":
		if in.ByName {
			return syntaxAt(p.text, p.tokens[p.pos].start, "BY NAME needs a query, VALUES have no names")
		}
		if err = p.values(in); err != nil {
			return err
		}
	default:
		if in.Columns != nil && len(in.Columns) == 0 {
			return p.expected("VALUES (): there are no columns")
		}
		to := len(p.tokens)
		if i := p.duplicateKey(); i >= 0 {
			to = i
		}
		if p.pos == to {
			return p.expected("VALUES, a query or DEFAULT VALUES")
		}
		if in.Source, err = p.query(to); err != nil {
			return err
		}
	}
	return p.insertTail()
}

// duplicateKey is the index of ON DUPLICATE outside brackets, -1 without one.
func (p *parser) duplicateKey() int {
	depth := 0
	for i := p.pos; i < len(p.tokens); i++ {
		switch p.tokens[i].kind {
		case punct:
			switch p.str(i) {
			case "(":
				depth++
			case ")":
				depth--
			}
		case word:
			if depth == 0 && p.word(i-p.pos) == "on" && p.word(i-p.pos+1) == "duplicate" && p.word(i-p.pos+2) == "key" {
				return i
			}
		}
	}
	return -1
}

// insertColumns reads (column, ...) of a table. An empty list is not nil.
func (p *parser) insertColumns(t Target) ([]string, error) {
	p.pos++
	out := []string{}
	if p.acceptPunct(")") {
		return out, nil
	}
	seen := map[string]bool{}
	for {
		at := p.pos
		path, err := p.identPath("the name of a column")
		if err != nil {
			return nil, err
		}
		path = t.unqualified(path)
		name := path[len(path)-1]
		if seen[strings.ToLower(name)] {
			return nil, syntaxAt(p.text, p.tokens[at].start, "the column stands twice")
		}
		if len(path) > 1 {
			return nil, syntaxAt(p.text, p.tokens[at].start, "expected the name of a column alone; a field inside a column cannot be inserted by itself")
		}
		seen[strings.ToLower(name)] = true
		out = append(out, name)
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, p.need(")")
		}
	}
}

// partitionValues reads (column [= value], ...).
func (p *parser) partitionValues() ([]PartitionValue, error) {
	if err := p.need("("); err != nil {
		return nil, err
	}
	var out []PartitionValue
	for {
		name, err := p.ident("the name of a column")
		if err != nil {
			return nil, err
		}
		v := PartitionValue{Column: name}
		if p.acceptPunct("=") {
			e, err := p.expr("a value")
			if err != nil {
				return nil, err
			}
			v.Value = &e
		}
		out = append(out, v)
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, p.need(")")
		}
	}
}

// values reads VALUES [ROW] (...), ... into one query. The rows are folded and
// parsed at once: there may be very many.
func (p *parser) values(in *Insert) error {
	start := p.pos
	p.pos++
	f := &folder{inner: true, replaced: map[int]string{0: "VALUES"}}
	width, row, cells := -1, 0, 0
	for ; ; row++ {
		at := p.pos
		open := "ROW("
		if p.accept("row") {
			open = "("
		}
		if !p.at("(") {
			return p.expected("( and the values of a row")
		}
		if row == 0 && open != "(" && p.tokens[p.pos].after {
			open = " ROW(" // VALUES(...)
		}
		f.replaced[p.pos-start] = open
		p.pos++
		n, err := p.rowValues(in, f, start, row, cells)
		if err != nil {
			return err
		}
		cells += n
		switch {
		case width < 0:
			width = n
		case n != width:
			return syntaxAt(p.text, p.tokens[at].start, "expected %d values in this row as in the first one, found %d", width, n)
		}
		if !p.acceptPunct(",") {
			break
		}
	}
	if columns := in.Columns; columns != nil && len(columns) != width {
		return syntaxAt(p.text, p.tokens[start].start, "expected a value for each of the %d columns, found %d in a row", len(columns), width)
	}
	if width == 0 {
		if row > 0 {
			return refuse("VALUES of several empty rows", "insert DEFAULT VALUES once for each row")
		}
		in.Columns = nil
		return nil // () is DEFAULT VALUES
	}
	sub := &parser{text: p.text, tokens: p.tokens[start:p.pos]}
	if err := sub.refusedParts(); err != nil {
		return err
	}
	f.tokens = sub.tokens
	text, ast, err := sub.grammar(f, "", "")
	if err != nil {
		return err
	}
	if in.Rows = listed(ast); in.Rows == nil {
		return fault.New(fault.Syntax, "syntax error: the values cannot be parsed")
	}
	if err := p.countTables(ast); err != nil {
		return err
	}
	before := p.paramsBefore(start)
	in.Source = &SQL{Text: text, AST: ast, Kind: Query, Param: before, Params: p.paramsBefore(p.pos) - before}
	return nil
}

// rowValues passes the values of a row behind its bracket and returns how many
// there are. before is how many the rows before it have.
func (p *parser) rowValues(in *Insert, f *folder, start, row, before int) (int, error) {
	if p.acceptPunct(")") {
		return 0, nil
	}
	for column := 0; ; column++ {
		if before+column >= MaxLiterals {
			return 0, fault.New(fault.Limit, "the statement lists more than %d values; divide it, or load them from a file", MaxLiterals)
		}
		end := p.exprEnd()
		switch {
		case end == p.pos:
			return 0, p.expected("a value")
		case end == p.pos+1 && p.word(0) == "default":
			f.replaced[p.pos-start] = "NULL"
			in.Defaults = append(in.Defaults, Cell{row, column})
		}
		p.pos = end
		if p.acceptPunct(",") {
			continue
		}
		return column + 1, p.need(")")
	}
}

// listed are the rows of VALUES ROW(...), ...
func listed(ast sqlparser.Statement) sqlparser.Values {
	s, ok := ast.(*sqlparser.Select)
	if !ok || len(s.From) != 1 {
		return nil
	}
	t, ok := s.From[0].(*sqlparser.AliasedTableExpr)
	if !ok {
		return nil
	}
	v, ok := t.Expr.(*sqlparser.ValuesStatement)
	if !ok {
		return nil
	}
	return v.Rows
}

// insertSet reads SET column = value, ..., which is a row of values.
func (p *parser) insertSet(in *Insert) error {
	p.pos++
	set, err := p.assignments(Target{Table: in.Table}, "on", "as")
	if err != nil {
		return err
	}
	if err := p.insertTail(); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("VALUES ROW(")
	for i, a := range set {
		if len(a.Column) > 1 {
			return syntaxAt(p.text, a.Start, "expected the name of a column alone; a field inside a column cannot be inserted by itself")
		}
		in.Columns = append(in.Columns, a.Column[0])
		if i > 0 {
			b.WriteString(", ")
		}
		if a.Default {
			in.Defaults = append(in.Defaults, Cell{0, i})
			b.WriteString("NULL")
			continue
		}
		b.WriteString(a.Value.Text)
	}
	b.WriteString(")")
	ast, err := sqlparser.Parse(b.String())
	if in.Rows = listed(ast); err != nil || in.Rows == nil {
		return fault.New(fault.Syntax, "syntax error: the values cannot be parsed")
	}
	in.Source = &SQL{Text: b.String(), AST: ast, Kind: Query, Params: in.Params}
	return nil
}

// insertTail reads the end of an INSERT and refuses what may follow it.
func (p *parser) insertTail() error {
	if p.word(0) == "on" && p.word(1) == "duplicate" {
		return refuse("ON DUPLICATE KEY UPDATE", "Iceberg tables have no unique keys; "+useMerge)
	}
	if p.word(0) == "as" {
		return refuse("an alias of the new row", "it serves ON DUPLICATE KEY UPDATE; "+useMerge)
	}
	if p.word(0) == "returning" {
		return refuse("INSERT ... RETURNING", "SELECT the rows by the values that were given")
	}
	return p.end()
}
