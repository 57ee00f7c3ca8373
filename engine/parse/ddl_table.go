package parse

import (
	"strings"
)

// CreateTable is CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table with columns, a
// query, or LIKE table.
type CreateTable struct {
	Table       TableRef
	Replace     bool
	IfNotExists bool
	Columns     []ColumnDef
	// Identifier are the columns of the PRIMARY KEY: the identifier fields.
	Identifier  []string
	Partitioned []PartitionField
	Sorted      []SortField
	Properties  []Property
	Comment     string
	Like        *TableRef
	// Query is that of CREATE TABLE AS; nil without one. NoData takes its columns
	// and no rows.
	Query  *SQL
	NoData bool
	Params int
	// Warnings say what has no effect.
	Warnings []string
}

// DropTable is DROP TABLE [IF EXISTS] table, ... [PURGE].
type DropTable struct {
	Tables   []TableRef
	IfExists bool
	Purge    bool
}

// Truncate is TRUNCATE [TABLE] table.
type Truncate struct{ Table TableRef }

// RenameTable is RENAME TABLE table TO table, ...
type RenameTable struct{ Renames []Rename }

// Rename is one table, or view, and its new name.
type Rename struct{ From, To TableRef }

func (*CreateTable) statement() {}
func (*DropTable) statement()   {}
func (*Truncate) statement()    {}
func (*RenameTable) statement() {}

// ddl parses a statement about schemas, tables and views; nil when it is none.
func (p *parser) ddl() (Statement, error) {
	switch p.word(0) {
	case "create":
		return p.create()
	case "drop":
		return p.drop()
	case "alter":
		switch p.word(1) {
		case "table":
			return p.alterTableDDL()
		case "view":
			return p.alterView()
		case "schema", "database", "namespace":
			return p.alterSchema()
		case "algorithm", "definer", "sql":
			return p.createView(true)
		}
	case "truncate":
		p.pos++
		p.accept("table")
		t := &Truncate{}
		var err error
		if t.Table, err = p.table("the name of a table"); err != nil {
			return nil, err
		}
		return t, p.end()
	case "rename":
		return p.rename()
	}
	return nil, nil
}

// create parses CREATE of a table, a view or a schema.
func (p *parser) create() (Statement, error) {
	i := 1
	if p.word(1) == "or" && p.word(2) == "replace" {
		i = 3
	}
	switch w := p.word(i); w {
	case "temporary", "external", "transient", "unlogged":
		if p.word(i+1) == "table" || p.word(i+1) == "view" {
			return nil, refuse("CREATE "+strings.ToUpper(w+" "+p.word(i+1)), "every table and view is one of the catalog")
		}
	case "materialized":
		return nil, refuse("CREATE MATERIALIZED VIEW", "use CREATE TABLE ... AS and INSERT OVERWRITE")
	case "table":
		p.pos += i + 1
		return p.createTable(i == 3)
	case "view", "algorithm", "definer", "sql":
		return p.createView(false)
	case "schema", "database", "namespace":
		if i == 3 {
			return nil, refuse("CREATE OR REPLACE "+strings.ToUpper(w), "use CREATE "+strings.ToUpper(w)+" IF NOT EXISTS")
		}
		p.pos += 2
		return p.createSchema()
	}
	return p.indexDDL()
}

func (p *parser) createTable(replace bool) (Statement, error) {
	params, err := checkLiterals(p.tokens)
	if err != nil {
		return nil, err
	}
	c := &CreateTable{Replace: replace, Params: params}
	at := p.pos
	if c.IfNotExists = p.accept("if", "not", "exists"); c.IfNotExists && replace {
		return nil, syntaxAt(p.text, p.tokens[at].start, "OR REPLACE and IF NOT EXISTS exclude each other")
	}
	if c.Table, err = p.table("the name of a table"); err != nil {
		return nil, err
	}
	p.tables++
	r := &typeReader{parser: p}
	switch {
	case p.word(0) == "like", p.at("(") && p.pos+1 < len(p.tokens) && strings.EqualFold(p.str(p.pos+1), "like") && p.tokens[p.pos+1].kind == word:
		brackets := p.acceptPunct("(")
		p.pos++
		ref, err := p.table("the name of a table")
		if err != nil {
			return nil, err
		}
		p.tables++
		c.Like = &ref
		if brackets {
			if err := p.need(")"); err != nil {
				return nil, err
			}
		}
	case p.at("(") && !p.queryAhead():
		if err := r.columns(c); err != nil {
			return nil, err
		}
	}
	if err := r.tableClauses(c); err != nil {
		return nil, err
	}
	c.Warnings = r.warnings
	if r.from != nil {
		if params > 0 {
			return nil, p.noParameters("a table definition has no parameters")
		}
		return tableFrom(c, r.from)
	}
	switch {
	case c.Query != nil && c.Columns != nil:
		return nil, refuse("CREATE TABLE with columns and a query", "name and type the columns in the query: SELECT CAST(a AS DECIMAL(10,2)) AS b")
	case c.Like != nil && (c.Query != nil || c.Partitioned != nil || c.Sorted != nil):
		return nil, refuse("CREATE TABLE LIKE with a query, PARTITIONED BY or SORTED BY", "ALTER the new table")
	case c.Query == nil && c.Columns == nil && c.Like == nil:
		return nil, p.expected("columns in brackets, AS and a query, LIKE and a table, or FROM INFILE")
	case c.Query == nil && params > 0:
		return nil, p.noParameters("a table definition has no parameters")
	}
	return c, nil
}

// noParameters is the error that points at the first placeholder.
func (p *parser) noParameters(what string) error {
	for _, t := range p.tokens {
		if t.kind == param {
			return syntaxAt(p.text, t.start, "%s", what)
		}
	}
	return p.expected(what)
}

// columns reads (column | constraint, ...).
func (r *typeReader) columns(c *CreateTable) error {
	r.pos++
	seen := map[string]int{}
	primary := false
	for n := 1; ; n++ {
		at := r.pos
		identifier, ok, err := r.constraint()
		if err != nil {
			return err
		}
		switch {
		case !ok:
			col, err := r.column()
			if err != nil {
				return err
			}
			if _, twice := seen[strings.ToLower(col.Name)]; twice {
				return syntaxAt(r.text, r.tokens[at].start, "the column stands twice")
			}
			seen[strings.ToLower(col.Name)] = len(c.Columns)
			if c.Columns = append(c.Columns, col); col.Key {
				identifier = []string{col.Name}
			}
		}
		if identifier != nil {
			if primary {
				return syntaxAt(r.text, r.tokens[at].start, "there are two PRIMARY KEYs")
			}
			primary, c.Identifier = true, identifier
		}
		if more, err := r.more(n); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if !r.acceptPunct(")") {
		return r.expected(", or )")
	}
	if len(c.Columns) == 0 {
		return syntaxAt(r.text, r.tokens[r.pos-1].start, "expected a column")
	}
	for _, name := range c.Identifier {
		i, ok := seen[strings.ToLower(name)]
		if !ok {
			return syntaxAt(r.text, r.tokens[r.pos-1].start, "the PRIMARY KEY names a column that the table does not have")
		}
		c.Columns[i].Required = true
	}
	return nil
}

// tableClauses reads what follows the columns, in any order, each at most once,
// and the query, which is last.
func (r *typeReader) tableClauses(c *CreateTable) error {
	seen := map[string]bool{}
	once := func(clause string, at int) error {
		if seen[clause] {
			return syntaxAt(r.text, r.tokens[at].start, "%s stands twice", clause)
		}
		seen[clause] = true
		return nil
	}
	for r.pos < len(r.tokens) {
		at := r.pos
		var err error
		switch {
		case r.accept("partitioned", "by"):
			if err = once("PARTITIONED BY", at); err == nil {
				c.Partitioned, err = r.partitioning()
			}
		case r.accept("sorted", "by"), r.accept("ordered", "by"):
			if err = once("SORTED BY", at); err == nil {
				c.Sorted, err = r.sortOrder()
			}
		case r.accept("comment"):
			if err = once("COMMENT", at); err == nil {
				c.Comment, err = r.comment()
			}
		case r.word(0) == "using":
			if r.word(1) != "iceberg" {
				return refuse("a table of another format than Iceberg", "leave USING out")
			}
			r.pos += 2
		case r.word(0) == "stored" || r.word(0) == "clustered" || r.word(0) == "distributed" || r.word(0) == "row" && r.word(1) == "format":
			return refuse(strings.ToUpper(r.word(0)+" "+r.word(1)), "set the format by the property write.format.default and buckets by PARTITIONED BY (BUCKET(n, column))")
		case r.propertiesAhead():
			var more []Property
			if more, err = r.properties(); err == nil {
				c.Properties, err = r.merged(c.Properties, more, at)
			}
		case r.word(0) == "ignore" || r.word(0) == "replace":
			return refuse("CREATE TABLE ... "+strings.ToUpper(r.word(0))+" of a query", "Iceberg tables have no unique keys; leave it out")
		case r.word(0) == "from" && (r.word(1) == "infile" || r.word(1) == "local"):
			r.pos++
			r.from = &Infile{}
			if err := r.infile(r.from); err != nil {
				return err
			}
			return r.infileClauses(r.from)
		case r.accept("as"):
			return r.tableQuery(c)
		case r.queryWord():
			return r.tableQuery(c)
		default:
			ok, err := r.tableOption()
			if err != nil {
				return err
			}
			if !ok {
				return r.expected("PARTITIONED BY, SORTED BY, TBLPROPERTIES, COMMENT, AS and a query, or the end of the statement")
			}
		}
		if err != nil {
			return err
		}
		if c.Columns != nil && r.at(",") && r.pos+1 < len(r.tokens) && r.tokens[r.pos+1].kind == word {
			r.pos++ // options may have commas between them
		}
	}
	return nil
}

// queryWord reports whether a query begins at the current token.
func (p *parser) queryWord() bool {
	switch p.word(0) {
	case "select", "with", "values", "table":
		return true
	}
	return p.at("(") && p.queryAhead()
}

// tableQuery reads the query of CREATE TABLE AS.
func (r *typeReader) tableQuery(c *CreateTable) error {
	to := len(r.tokens)
	tail := &parser{text: r.text, tokens: r.tokens, pos: max(r.pos, to-3)}
	if tail.accept("with", "no", "data") {
		c.NoData = true
		to -= 3
	}
	var err error
	if c.Query, err = r.query(to); err != nil {
		return err
	}
	r.pos = len(r.tokens)
	return nil
}

// drop parses DROP of tables, views or a schema.
func (p *parser) drop() (Statement, error) {
	var err error
	switch p.word(1) {
	case "temporary":
		return nil, refuse("DROP TEMPORARY TABLE", "there are no temporary tables")
	case "table", "tables":
		p.pos += 2
		d := &DropTable{IfExists: p.accept("if", "exists")}
		if d.Tables, err = p.tableList("the name of a table"); err != nil {
			return nil, err
		}
		// MySQL takes these words too, and they do nothing.
		if !p.accept("restrict") {
			p.accept("cascade")
		}
		d.Purge = p.accept("purge")
		return d, p.end()
	case "view":
		p.pos += 2
		d := &DropView{IfExists: p.accept("if", "exists")}
		if d.Views, err = p.tableList("the name of a view"); err != nil {
			return nil, err
		}
		if !p.accept("restrict") {
			p.accept("cascade")
		}
		return d, p.end()
	case "schema", "database", "namespace":
		p.pos += 2
		return p.dropSchema()
	}
	return p.indexDDL()
}

// rename parses RENAME TABLE table TO table, ...
func (p *parser) rename() (Statement, error) {
	if p.word(1) != "table" && p.word(1) != "tables" {
		return nil, nil
	}
	p.pos += 2
	out := &RenameTable{}
	for {
		from, err := p.table("the name of a table")
		if err != nil {
			return nil, err
		}
		if !p.accept("to") {
			return nil, p.expected("TO")
		}
		to, err := p.table("the new name of the table")
		if err != nil {
			return nil, err
		}
		out.Renames = append(out.Renames, Rename{from, to})
		if more, err := p.more(len(out.Renames)); err != nil {
			return nil, err
		} else if !more {
			return out, p.end()
		}
	}
}
