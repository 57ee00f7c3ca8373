package parse

import (
	"slices"
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

func (*Insert) statement() {}
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
			if in.Columns, err = p.insertColumns(); err != nil {
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

// insertColumns reads (column, ...). An empty list is not nil.
func (p *parser) insertColumns() ([]string, error) {
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
	width, row := -1, 0
	for ; ; row++ {
		at := p.pos
		open := "ROW("
		if p.accept("row") {
			open = "("
		}
		if !p.at("(") {
			return p.expected("( and the values of a row")
		}
		f.replaced[p.pos-start] = open
		p.pos++
		n, err := p.rowValues(in, f, start, row)
		if err != nil {
			return err
		}
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
// there are.
func (p *parser) rowValues(in *Insert, f *folder, start, row int) (int, error) {
	if p.acceptPunct(")") {
		return 0, nil
	}
	for column := 0; ; column++ {
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
	return p.end()
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
func (t Target) unqualified(path []string) []string {
	if t.Alias != "" {
		if len(path) > 1 && path[0] == t.Alias {
			return path[1:]
		}
		return path
	}
	for i := len(path) - 1; i > 0; i-- {
		ref := tableRefOf(path[:i])
		if ref == t.Table || i == 1 && ref.Name == t.Table.Name {
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
