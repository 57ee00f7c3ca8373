package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// ColumnDef is a column as a statement defines it.
type ColumnDef struct {
	Field
	// Default is a literal; nil without one, and for DEFAULT NULL.
	Default *Expr
	// Nullable says that NULL was written: an ALTER takes NOT NULL away.
	Nullable bool
	// Commented says that a comment was written, which may be empty.
	Commented bool
	// Key says that the column alone is the PRIMARY KEY.
	Key bool
}

// Warnings that columns, keys and options give.
const (
	warnIncrement  = "AUTO_INCREMENT has no effect: give the values in INSERT"
	warnUnique     = "UNIQUE keys are not enforced"
	warnPrimary    = "the PRIMARY KEY is kept as the table's identifier fields; that it is unique is not enforced"
	warnIndex      = "indexes have no effect: Iceberg tables have none; partition or sort the table"
	warnForeign    = "FOREIGN KEYs are not enforced"
	warnCheck      = "CHECK constraints are not enforced"
	warnVisibility = "columns are always VISIBLE"
	warnOptions    = "table options of MySQL (ENGINE, CHARSET, ROW_FORMAT, ...) have no effect"
)

// column reads name type [attribute ...].
func (r *typeReader) column() (ColumnDef, error) {
	c := ColumnDef{}
	var err error
	if c.Name, err = r.ident("the name of a column"); err != nil {
		return c, err
	}
	return c, r.columnRest(&c)
}

// columnRest reads what follows the name of a column.
func (r *typeReader) columnRest(c *ColumnDef) error {
	if err := r.field(); err != nil {
		return err
	}
	var err error
	if c.Type, err = r.typ(1); err != nil {
		return err
	}
	for {
		at := r.pos
		if err := r.attribute(c); err != nil {
			return err
		}
		if r.pos == at {
			return nil
		}
	}
}

// attribute reads one attribute of a column, or nothing when none follows.
func (r *typeReader) attribute(c *ColumnDef) error {
	switch {
	case r.accept("not", "null"):
		c.Required = true
	case r.accept("null"):
		c.Nullable = true
	case r.accept("default"):
		e, err := r.defaultValue()
		c.Default = e
		return err
	case r.accept("comment"):
		r.acceptPunct("=")
		text, err := r.textValue("a comment in quotes")
		c.Comment, c.Commented = text, true
		return err
	case r.accept("auto_increment"):
		r.warn(warnIncrement)
		c.Required = true
	case r.accept("primary", "key"), r.accept("key"):
		r.warn(warnPrimary)
		c.Key, c.Required = true, true
	case r.accept("unique"):
		r.accept("key")
		r.warn(warnUnique)
	case r.accept("visible"), r.accept("invisible"):
		r.warn(warnVisibility)
	case r.word(0) == "on" && r.word(1) == "update":
		return refuse("ON UPDATE of a column", "give the value in UPDATE")
	case r.word(0) == "generated", r.word(0) == "as" && r.pos+1 < len(r.tokens) && r.str(r.pos+1) == "(":
		return refuse("a generated column", "compute it in a view, or partition by YEAR, MONTH, DAY, HOUR, BUCKET or TRUNCATE of a column")
	case r.accept("references"):
		return r.references()
	case r.word(0) == "constraint" || r.word(0) == "check":
		return r.inlineCheck()
	case r.accept("column_format"), r.accept("storage"):
		r.warn(warnOptions)
		_, err := r.ident("DEFAULT or the name of a format")
		return err
	default:
		ok, err := r.charset()
		if ok {
			r.warn(warnCharset)
		}
		return err
	}
	return nil
}

// inlineCheck passes [CONSTRAINT [name]] CHECK (condition) [[NOT] ENFORCED].
func (r *typeReader) inlineCheck() error {
	if r.accept("constraint") && r.word(0) != "check" {
		if _, err := r.ident("the name of a constraint"); err != nil {
			return err
		}
		switch r.word(0) {
		case "primary", "unique", "references", "not", "null":
			return nil // the next attribute
		}
	}
	if !r.accept("check") {
		return r.expected("CHECK")
	}
	return r.checkRest()
}

func (r *typeReader) checkRest() error {
	r.warn(warnCheck)
	if !r.at("(") {
		return r.expected("(")
	}
	to, err := r.closing()
	if err != nil {
		return err
	}
	r.pos = to + 1
	if r.accept("not", "enforced") || r.accept("enforced") {
		return nil
	}
	return nil
}

// defaultValue reads the literal of DEFAULT.
func (r *typeReader) defaultValue() (*Expr, error) {
	if r.accept("null") {
		return nil, nil
	}
	const advice = "a default is a literal in the table's metadata; give the value in INSERT"
	switch w := r.word(0); w {
	case "current_timestamp", "current_date", "current_time", "now", "localtime", "localtimestamp", "uuid":
		return nil, refuse("the default "+strings.ToUpper(w), advice)
	}
	if r.at("(") {
		return nil, refuse("a default that is an expression", advice)
	}
	from := r.pos
	if r.at("-") || r.at("+") {
		r.pos++
	} else if w := r.word(0); (w == "date" || w == "time" || w == "timestamp") && r.pos+1 < len(r.tokens) && r.tokens[r.pos+1].kind == str {
		r.pos++
	}
	if r.pos >= len(r.tokens) || r.tokens[r.pos].kind != number && r.tokens[r.pos].kind != str && r.word(0) != "true" && r.word(0) != "false" {
		return nil, r.expected("a literal")
	}
	r.pos++
	if r.at("(") {
		return nil, refuse("a default that is an expression", advice)
	}
	p := &parser{text: r.text, tokens: r.tokens[from:r.pos]}
	e, err := p.expr("a literal")
	if err != nil {
		return nil, err
	}
	switch x := e.AST.(type) {
	case *sqlparser.SQLVal, sqlparser.BoolVal:
	case *sqlparser.UnaryExpr:
		if _, ok := x.Expr.(*sqlparser.SQLVal); !ok {
			return nil, refuse("a default that is an expression", advice)
		}
	default:
		return nil, refuse("a default that is an expression", advice)
	}
	return &e, nil
}

// references passes table [(columns)] [MATCH x] [ON DELETE x] [ON UPDATE x].
func (r *typeReader) references() error {
	r.warn(warnForeign)
	if _, err := r.table("the name of a table"); err != nil {
		return err
	}
	if r.at("(") {
		if _, err := r.keyParts(); err != nil {
			return err
		}
	}
	for {
		switch {
		case r.accept("match", "full"), r.accept("match", "partial"), r.accept("match", "simple"), r.accept("not", "enforced"):
		case r.accept("on", "delete"), r.accept("on", "update"):
			if !r.accept("cascade") && !r.accept("restrict") && !r.accept("no", "action") && !r.accept("set", "null") && !r.accept("set", "default") {
				return r.expected("CASCADE, RESTRICT, NO ACTION, SET NULL or SET DEFAULT")
			}
		default:
			return nil
		}
	}
}

// keyParts reads (column [(length)] [ASC | DESC], ...) of a key.
func (r *typeReader) keyParts() ([]string, error) {
	if err := r.need("("); err != nil {
		return nil, err
	}
	var out []string
	for {
		if r.at("(") {
			to, err := r.closing() // an index of an expression
			if err != nil {
				return nil, err
			}
			r.pos = to + 1
			out = append(out, "")
		} else {
			name, err := r.ident("the name of a column")
			if err != nil {
				return nil, err
			}
			if _, err := r.numbers(0, 1); err != nil {
				return nil, err
			}
			out = append(out, name)
		}
		if !r.accept("asc") {
			r.accept("desc")
		}
		if more, err := r.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			return out, r.need(")")
		}
	}
}

// constraint reads a key, an index or a constraint of a table; ok is false when
// none begins here. identifier is the primary key.
func (r *typeReader) constraint() (identifier []string, ok bool, err error) {
	start := r.pos
	if r.accept("constraint") {
		switch r.word(0) {
		case "primary", "unique", "foreign", "check":
		default:
			if _, err := r.ident("the name of a constraint"); err != nil {
				return nil, false, err
			}
		}
	}
	named := r.pos > start
	switch {
	case r.accept("primary", "key"):
		r.warn(warnPrimary)
		return r.key(true)
	case r.accept("foreign", "key"):
		if !r.at("(") {
			if _, err := r.ident("the name of a key"); err != nil {
				return nil, false, err
			}
		}
		if _, err := r.keyParts(); err != nil {
			return nil, false, err
		}
		if !r.accept("references") {
			return nil, false, r.expected("REFERENCES")
		}
		return nil, true, r.references()
	case r.word(0) == "check" && r.pos+1 < len(r.tokens) && r.str(r.pos+1) == "(":
		r.pos++
		return nil, true, r.checkRest()
	case r.word(0) == "unique" && (named || r.keyAhead(1)):
		r.pos++
		if !r.accept("key") {
			r.accept("index")
		}
		r.warn(warnUnique)
		return r.key(false)
	case !named && (r.word(0) == "fulltext" || r.word(0) == "spatial") && r.keyAhead(1):
		r.pos++
		if !r.accept("key") {
			r.accept("index")
		}
		r.warn(warnIndex)
		return r.key(false)
	case !named && (r.word(0) == "key" || r.word(0) == "index") && r.keyAhead(1):
		r.pos++
		r.warn(warnIndex)
		return r.key(false)
	case named:
		return nil, false, r.expected("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK")
	}
	return nil, false, nil
}

// keyAhead reports whether [KEY | INDEX] [name] [USING x] (columns) follows at
// offset i; a column that is called key or unique is followed by a type and no
// bracket with names.
func (r *typeReader) keyAhead(i int) bool {
	if w := r.word(i); w == "key" || w == "index" {
		return true
	}
	punctuation := func(i int) bool { return r.pos+i < len(r.tokens) && r.str(r.pos+i) == "(" }
	if punctuation(i) {
		return true
	}
	if _, isType := plainTypes[r.word(i)]; isType {
		return false
	}
	return r.nameAhead(i) && (r.word(i+1) == "using" || punctuation(i+1) && r.pos+i+2 < len(r.tokens) && r.tokens[r.pos+i+2].kind != number)
}

// key reads [name] [USING x] (columns) [option ...].
func (r *typeReader) key(primary bool) (identifier []string, ok bool, err error) {
	if !r.at("(") && r.word(0) != "using" {
		if _, err := r.ident("the name of a key"); err != nil {
			return nil, false, err
		}
	}
	if err := r.keyMethod(); err != nil {
		return nil, false, err
	}
	at := r.pos
	columns, err := r.keyParts()
	if err != nil {
		return nil, false, err
	}
	if primary {
		for _, c := range columns {
			if c == "" {
				return nil, false, syntaxAt(r.text, r.tokens[at].start, "expected columns: a PRIMARY KEY holds no expressions")
			}
		}
		identifier = columns
	}
	for {
		switch {
		case r.word(0) == "using":
			if err := r.keyMethod(); err != nil {
				return nil, false, err
			}
		case r.accept("key_block_size"):
			r.acceptPunct("=")
			if _, err := r.integer("a number", 1<<31-1); err != nil {
				return nil, false, err
			}
		case r.accept("comment"):
			if _, err := r.textValue("a comment in quotes"); err != nil {
				return nil, false, err
			}
		case r.accept("with", "parser"):
			if _, err := r.ident("the name of a parser"); err != nil {
				return nil, false, err
			}
		case r.accept("visible"), r.accept("invisible"), r.accept("not", "enforced"):
		default:
			return identifier, true, nil
		}
	}
}

func (r *typeReader) keyMethod() error {
	if r.accept("using") && !r.accept("btree") && !r.accept("hash") {
		return r.expected("BTREE or HASH")
	}
	return nil
}

// tableOption passes one option of MySQL's CREATE TABLE that has no effect here;
// ok is false when none follows.
func (r *typeReader) tableOption() (ok bool, err error) {
	if ok, err := r.charset(); ok || err != nil {
		r.warn(warnCharset)
		return ok, err
	}
	switch w := r.word(0); w {
	case "engine", "auto_increment", "row_format", "key_block_size", "stats_persistent", "stats_auto_recalc", "stats_sample_pages", "avg_row_length",
		"max_rows", "min_rows", "pack_keys", "checksum", "delay_key_write", "compression", "encryption", "insert_method", "secondary_engine",
		"engine_attribute", "secondary_engine_attribute", "autoextend_size", "type":
		r.pos++
		r.acceptPunct("=")
		if r.pos >= len(r.tokens) || r.tokens[r.pos].kind == punct || r.tokens[r.pos].kind == variable || r.tokens[r.pos].kind == param {
			return false, r.expected("a value of the option")
		}
		r.pos++
		r.warn(warnOptions)
		return true, nil
	case "data", "index":
		if r.word(1) == "directory" {
			return false, refuse(strings.ToUpper(w)+" DIRECTORY", "the catalog decides where a table lies")
		}
	case "location":
		return false, refuse("LOCATION", "the catalog decides where a table lies")
	case "tablespace", "connection", "password", "union":
		return false, refuse("the option "+strings.ToUpper(w), "leave it out")
	case "partition":
		return false, refuse("PARTITION BY", "write PARTITIONED BY (column, YEAR(column), BUCKET(16, column), ...)")
	}
	return false, nil
}
