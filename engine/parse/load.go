package parse

import (
	"strings"
)

// Infile is a file from which a statement takes rows.
type Infile struct {
	// Name is as the statement gives it: a file of the server or, Local, of the client.
	Name  string
	Local bool
	// Format is "parquet" or "csv"; "" when the name says which.
	Format string
	// How a text file is written; nil when the statement does not say.
	Terminated, Enclosed, Escaped, Lines *string
	// Ignore is how many lines are passed over before the first row; -1 when the
	// statement does not say.
	Ignore int64
	// ByName finds columns by the names in the file, not by their places.
	ByName bool
	// Columns are the columns of the table, in the order of the file; "" is a column
	// of the file that is passed over. nil: none were named.
	Columns []string
}

// Load is LOAD DATA [LOCAL] INFILE 'name' INTO TABLE table.
type Load struct {
	Table TableRef
	File  Infile
}

// CreateTableFrom is CREATE TABLE ... FROM [LOCAL] INFILE 'name': the columns are
// those of the file. Create has neither columns nor a query.
type CreateTableFrom struct {
	Create *CreateTable
	File   Infile
}

func (*Load) statement()            {}
func (*CreateTableFrom) statement() {}

// load parses LOAD DATA; nil when it is something else.
func (p *parser) load() (Statement, error) {
	if p.word(0) != "load" || p.word(1) != "data" {
		return nil, nil
	}
	p.pos += 2
	for p.accept("low_priority") || p.accept("concurrent") {
		continue // they say when the statement runs
	}
	out := &Load{}
	var err error
	if err = p.infile(&out.File); err != nil {
		return nil, err
	}
	switch p.word(0) {
	case "replace":
		return nil, refuse("LOAD DATA ... REPLACE", "load into a new table, then "+useMerge)
	case "ignore":
		return nil, refuse("LOAD DATA ... IGNORE INTO", "a statement does all of its work or none; leave IGNORE out")
	}
	if !p.accept("into", "table") {
		return nil, p.expected("INTO TABLE")
	}
	if out.Table, err = p.table("the name of a table"); err != nil {
		return nil, err
	}
	p.tables++
	return out, p.infileClauses(&out.File)
}

// infile reads [LOCAL] INFILE 'name'.
func (p *parser) infile(f *Infile) error {
	f.Ignore = -1
	f.Local = p.accept("local")
	if !p.accept("infile") {
		return p.expected("INFILE or LOCAL INFILE")
	}
	at := p.pos
	var err error
	if f.Name, err = p.textValue("the name of a file, in quotes"); err != nil {
		return err
	}
	if f.Name == "" || strings.ContainsRune(f.Name, 0) {
		return syntaxAt(p.text, p.tokens[at].start, "expected the name of a file, the name is empty or holds a NUL byte")
	}
	return nil
}

// infileClauses reads what follows, in any order, each at most once, and the columns,
// which are last.
func (p *parser) infileClauses(f *Infile) error {
	seen := map[string]bool{}
	for p.pos < len(p.tokens) {
		at, err := p.pos, error(nil)
		clause := p.word(0)
		switch {
		case p.accept("format"):
			if f.Format = p.word(0); f.Format != "parquet" && f.Format != "csv" {
				return p.expected("PARQUET or CSV")
			}
			p.pos++
		case p.accept("character", "set"), p.accept("charset"):
			clause = "character"
			err = p.fileCharset()
		case p.accept("fields"), p.accept("columns"):
			clause = "fields"
			err = p.fieldFormat(f)
		case p.accept("lines"):
			err = p.lineFormat(f)
		case p.accept("ignore"):
			if f.Ignore, err = p.integer("how many lines", 1<<31); err == nil && !p.accept("lines") && !p.accept("rows") {
				err = p.expected("LINES")
			}
		case p.accept("by", "name"):
			f.ByName = true
		case p.at("("):
			clause = "columns"
			f.Columns, err = p.fileColumns()
		case clause == "set":
			return refuse("LOAD DATA ... SET", "load into a table of its own, then INSERT INTO ... SELECT")
		case clause == "partition":
			return refuse("LOAD DATA ... PARTITION", "leave it out: rows find their partitions")
		default:
			for _, t := range p.tokens[p.pos:] {
				if t.kind == param {
					return p.noParameters("a file is named in the statement itself, which has no parameters here")
				}
			}
			return p.expected("FORMAT, FIELDS, LINES, IGNORE n LINES, BY NAME, columns in brackets, or the end of the statement")
		}
		if err != nil {
			return err
		}
		if seen[clause] {
			return syntaxAt(p.text, p.tokens[at].start, "the clause stands twice")
		}
		if seen["columns"] && clause != "columns" {
			return syntaxAt(p.text, p.tokens[at].start, "the columns in brackets are the last clause")
		}
		seen[clause] = true
	}
	if f.Format == "parquet" && (seen["fields"] || seen["lines"] || seen["ignore"] || seen["character"]) {
		return refuse("FIELDS, LINES, IGNORE or CHARACTER SET of a Parquet file", "leave it out: the file says itself how it is written")
	}
	return nil
}

// fileCharset reads the name of a character set: text is UTF-8.
func (p *parser) fileCharset() error {
	at := p.pos
	name, err := p.name("the name of a character set")
	if err != nil {
		return err
	}
	switch strings.ToLower(name) {
	case "utf8", "utf8mb3", "utf8mb4", "ascii":
		return nil
	}
	return syntaxAt(p.text, p.tokens[at].start, "files are read as UTF-8 (utf8mb4); convert the file")
}

// fieldFormat reads TERMINATED BY, [OPTIONALLY] ENCLOSED BY and ESCAPED BY.
func (p *parser) fieldFormat(f *Infile) error {
	for n := 0; ; n++ {
		at := p.pos
		var to **string
		most := 1
		switch {
		case p.accept("terminated", "by"):
			to, most = &f.Terminated, 8
		case p.accept("optionally", "enclosed", "by"), p.accept("enclosed", "by"):
			to = &f.Enclosed
		case p.accept("escaped", "by"):
			to = &f.Escaped
		case n == 0:
			return p.expected("TERMINATED BY, ENCLOSED BY or ESCAPED BY")
		default:
			return nil
		}
		if *to != nil {
			return syntaxAt(p.text, p.tokens[at].start, "the clause stands twice")
		}
		var err error
		if *to, err = p.separator(most, to == &f.Terminated); err != nil {
			return err
		}
	}
}

// lineFormat reads TERMINATED BY.
func (p *parser) lineFormat(f *Infile) error {
	if p.word(0) == "starting" {
		return refuse("LINES STARTING BY", "take the prefix off the lines of the file")
	}
	if !p.accept("terminated", "by") {
		return p.expected("TERMINATED BY")
	}
	var err error
	f.Lines, err = p.separator(8, true)
	return err
}

// separator reads a string of at most so many bytes of ASCII.
func (p *parser) separator(most int, required bool) (*string, error) {
	at := p.pos
	s, err := p.textValue("a character in quotes")
	if err != nil {
		return nil, err
	}
	if len(s) > most || required && s == "" || strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || r == 0 }) {
		return nil, syntaxAt(p.text, p.tokens[at].start, "expected at most %d characters of ASCII, and one at least where fields or lines end", most)
	}
	return &s, nil
}

// fileColumns reads (column | @variable, ...); a variable passes a column over.
func (p *parser) fileColumns() ([]string, error) {
	p.pos++
	out := []string{}
	seen := map[string]bool{}
	for {
		at := p.pos
		if _, ok := p.userVariable(); ok {
			out = append(out, "")
		} else {
			name, err := p.ident("the name of a column, or @name to pass a field over")
			if err != nil {
				return nil, err
			}
			if seen[strings.ToLower(name)] {
				return nil, syntaxAt(p.text, p.tokens[at].start, "the column stands twice")
			}
			seen[strings.ToLower(name)] = true
			out = append(out, name)
		}
		if more, err := p.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, p.need(")")
		}
	}
}

// tableFrom makes CREATE TABLE ... FROM of what was read.
func tableFrom(c *CreateTable, f *Infile) (Statement, error) {
	if c.Columns != nil || c.Like != nil || c.Query != nil {
		return nil, refuse("CREATE TABLE with columns, LIKE or a query, and FROM INFILE", "CREATE the TABLE, then LOAD DATA INFILE ... INTO TABLE")
	}
	return &CreateTableFrom{Create: c, File: *f}, nil
}
