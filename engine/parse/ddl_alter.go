package parse

import "strings"

// alterReader reads the actions of ALTER TABLE.
type alterReader struct {
	typeReader
	a     *AlterTable
	added map[string]bool // columns, by joined
}

func (p *parser) alterTableDDL() (Statement, error) {
	p.pos += 2
	if params, err := checkLiterals(p.tokens); err != nil {
		return nil, err
	} else if params > 0 {
		return nil, p.noParameters("ALTER TABLE has no parameters")
	}
	r := &alterReader{typeReader: typeReader{parser: p}, a: &AlterTable{IfExists: p.accept("if", "exists")}, added: map[string]bool{}}
	var err error
	if r.a.Table, err = p.table("the name of a table"); err != nil {
		return nil, err
	}
	p.tables++
	for n := 1; ; n++ {
		at := p.pos
		actions, err := r.action()
		if err != nil {
			return nil, err
		}
		for _, x := range actions {
			if err := r.alone(x, at); err != nil {
				return nil, err
			}
			r.a.Actions = append(r.a.Actions, x)
		}
		if more, err := p.more(n); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	r.a.Warnings = r.warnings
	return r.a, p.end()
}

// alone refuses a new name of the table, a branch or a tag beside other actions:
// catalogs do not commit them together.
func (r *alterReader) alone(x AlterAction, at int) error {
	single := func(x AlterAction) bool {
		switch x.(type) {
		case *RenameTo, *CreateRef, *DropRef:
			return true
		}
		return false
	}
	if len(r.a.Actions) > 0 && (single(x) || single(r.a.Actions[0])) {
		return syntaxAt(r.text, r.tokens[at].start, "RENAME TO, BRANCH and TAG stand alone; write two statements")
	}
	return nil
}

const anAction = "ADD, DROP, RENAME, ALTER, MODIFY or CHANGE COLUMN, PARTITION FIELD, SET, UNSET, WRITE ORDERED BY, COMMENT, BRANCH or TAG"

func (r *alterReader) action() ([]AlterAction, error) {
	one := func(x AlterAction, err error) ([]AlterAction, error) { return []AlterAction{x}, err }
	switch r.word(0) {
	case "create", "replace":
		if r.accept("replace", "partition", "field") {
			return one(r.replacePartition())
		}
		return one(r.createRef())
	case "add":
		return r.add()
	case "drop":
		return r.dropAction()
	case "rename":
		return one(r.renameAction())
	case "alter", "modify", "change":
		return r.changeColumn()
	case "write":
		return one(r.write())
	case "set", "unset":
		return one(r.setAction())
	case "comment":
		r.pos++
		text, err := r.comment()
		return one(&SetComment{text}, err)
	}
	ok, err := r.ignored()
	if err == nil && !ok {
		err = r.expected(anAction)
	}
	return nil, err
}

// ignored passes what MySQL's clients send and has no effect here.
func (r *alterReader) ignored() (bool, error) {
	switch w := r.word(0); w {
	case "enable", "disable":
		if r.word(1) == "keys" {
			r.pos += 2
			return true, nil
		}
	case "algorithm", "lock":
		r.pos++
		r.acceptPunct("=")
		_, err := r.name("DEFAULT or the name of a way")
		return true, err
	case "force":
		r.pos++
		return true, nil
	case "order":
		return false, refuse("ALTER TABLE ... ORDER BY", "write WRITE ORDERED BY")
	case "convert":
		if r.word(1) == "to" {
			r.pos += 2
			if ok, err := r.charset(); err != nil || !ok {
				return ok, err
			}
			r.warn(warnCharset)
			_, err := r.charset()
			return true, err
		}
	case "discard", "import", "coalesce", "reorganize", "exchange", "analyze", "check", "optimize", "rebuild", "repair", "remove", "truncate":
		return false, refuse("ALTER TABLE ... "+strings.ToUpper(w), "Iceberg tables have none of MySQL's partitions and tablespaces")
	}
	return r.tableOption()
}

// position reads FIRST or AFTER column.
func (r *alterReader) position() (Position, error) {
	switch {
	case r.accept("first"):
		return Position{First: true}, nil
	case r.accept("after"):
		path, err := r.identPath("the name of a column")
		if err != nil {
			return Position{}, err
		}
		return Position{After: path[len(path)-1]}, nil
	}
	return Position{}, nil
}

func (r *alterReader) add() ([]AlterAction, error) {
	r.pos++
	if r.accept("partition", "field") {
		f, err := r.partitionField()
		return []AlterAction{&AddPartition{f}}, err
	}
	switch r.word(0) {
	case "partition":
		return nil, refuse("ADD PARTITION", "partitions come with their rows; ADD PARTITION FIELD changes the partitioning")
	case "column", "columns":
		r.pos++
	default:
		identifier, ok, err := r.constraint()
		if err != nil {
			return nil, err
		}
		if identifier != nil {
			s := &SetIdentifier{}
			for _, c := range identifier {
				s.Columns = append(s.Columns, []string{c})
			}
			return []AlterAction{s}, nil
		}
		if ok {
			return nil, nil
		}
	}
	missing := r.accept("if", "not", "exists")
	if !r.acceptPunct("(") {
		x, err := r.addColumn(missing)
		return []AlterAction{x}, err
	}
	var out []AlterAction
	for {
		x, err := r.addColumn(missing)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if more, err := r.more(len(out)); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	if !r.acceptPunct(")") {
		return nil, r.expected(", or )")
	}
	return out, nil
}

func (r *alterReader) addColumn(missing bool) (*AddColumn, error) {
	a := &AddColumn{IfNotExists: missing}
	at := r.pos
	path, err := r.identPath("the name of a column")
	if err != nil {
		return nil, err
	}
	last := len(path) - 1
	a.Name = path[last]
	if last > 0 {
		a.Parent = path[:last]
	}
	if r.added[joined(path)] {
		return nil, syntaxAt(r.text, r.tokens[at].start, "the column is added twice")
	}
	r.added[joined(path)] = true
	if err := r.columnRest(&a.ColumnDef); err != nil {
		return nil, err
	}
	if a.Key {
		return nil, refuse("ADD COLUMN ... PRIMARY KEY", "add the column, then ADD PRIMARY KEY (column)")
	}
	a.Position, err = r.position()
	return a, err
}

func (r *alterReader) dropAction() ([]AlterAction, error) {
	r.pos++
	switch w := r.word(0); {
	case r.accept("partition", "field"):
		d, err := r.oldPartition()
		return []AlterAction{&d}, err
	case w == "partition":
		return nil, refuse("DROP PARTITION", "DELETE its rows; DROP PARTITION FIELD changes the partitioning")
	case (w == "branch" || w == "tag") && (r.nameAhead(1) || r.word(1) == "if"):
		r.pos++
		d := &DropRef{Tag: w == "tag", IfExists: r.accept("if", "exists")}
		var err error
		d.Name, err = r.refName(w)
		return []AlterAction{d}, err
	case r.accept("identifier", "fields"):
		columns, err := r.paths()
		return []AlterAction{&DropIdentifier{columns}}, err
	case r.accept("primary", "key"):
		return []AlterAction{&SetIdentifier{}}, nil
	case (w == "index" || w == "key" || w == "constraint" || w == "check") && r.nameAhead(1), w == "foreign" && r.word(1) == "key":
		if r.pos++; w == "foreign" {
			r.pos++
		}
		r.warn(warnIndex)
		_, err := r.ident("the name of a key")
		return nil, err
	}
	if !r.accept("column") {
		r.accept("columns")
	}
	d := &DropColumn{IfExists: r.accept("if", "exists")}
	if !r.acceptPunct("(") {
		var err error
		d.Column, err = r.identPath("the name of a column")
		return []AlterAction{d}, err
	}
	columns, err := r.paths()
	if err != nil {
		return nil, err
	}
	var out []AlterAction
	for _, c := range columns {
		out = append(out, &DropColumn{Column: c, IfExists: d.IfExists})
	}
	if !r.acceptPunct(")") {
		return nil, r.expected(", or )")
	}
	return out, nil
}

// paths reads path, ...; it ends before a comma that another action follows only
// when brackets end it, so it takes all.
func (r *alterReader) paths() ([][]string, error) {
	var out [][]string
	for {
		path, err := r.identPath("the name of a column")
		if err != nil {
			return nil, err
		}
		out = append(out, path)
		if more, err := r.more(len(out)); err != nil || !more {
			return out, err
		}
	}
}

func (r *alterReader) renameAction() (AlterAction, error) {
	r.pos++
	switch {
	case r.word(0) == "index" || r.word(0) == "key":
		return nil, refuse("RENAME INDEX", "Iceberg tables have no indexes")
	case r.accept("column"):
		c := &RenameColumn{}
		var err error
		if c.Column, err = r.identPath("the name of a column"); err != nil {
			return nil, err
		}
		if !r.accept("to") {
			return nil, r.expected("TO")
		}
		c.To, err = r.ident("the new name of the column")
		return c, err
	}
	if !r.accept("to") {
		r.accept("as")
	}
	ref, err := r.table("the new name of the table")
	return &RenameTo{ref}, err
}

func (r *alterReader) changeColumn() ([]AlterAction, error) {
	how := r.word(0)
	r.pos++
	if how == "alter" {
		switch r.word(0) {
		case "index", "check", "constraint":
			return nil, refuse("ALTER TABLE ... ALTER "+strings.ToUpper(r.word(0)), "Iceberg tables have none")
		}
	}
	r.accept("column")
	c := &ChangeColumn{}
	var err error
	if c.Column, err = r.identPath("the name of a column"); err != nil {
		return nil, err
	}
	var rename *RenameColumn
	switch how {
	case "change":
		to, err := r.ident("the new name of the column")
		if err != nil {
			return nil, err
		}
		if last := c.Column[len(c.Column)-1]; to != last {
			rename = &RenameColumn{Column: c.Column, To: to}
		}
		err = r.definition(c)
		if err != nil {
			return nil, err
		}
	case "modify":
		if err := r.definition(c); err != nil {
			return nil, err
		}
	default:
		if err := r.alterations(c); err != nil {
			return nil, err
		}
	}
	out := []AlterAction{c}
	if rename != nil {
		out = append(out, rename)
	}
	return out, nil
}

// definition reads type [attribute ...] [FIRST | AFTER column].
func (r *alterReader) definition(c *ChangeColumn) error {
	d := ColumnDef{}
	at := r.pos
	if err := r.columnRest(&d); err != nil {
		return err
	}
	if d.Key {
		return refuse("PRIMARY KEY of a changed column", "use ADD PRIMARY KEY (column)")
	}
	c.Type = &d.Type
	switch {
	case d.Required:
		c.Required = &d.Required
	case d.Nullable:
		required := false
		c.Required = &required
	}
	if d.Commented {
		c.Comment = &d.Comment
	}
	if c.Default = d.Default; d.Default != nil {
		c.SetDefault = true
	}
	if r.pos == at {
		return r.expected(aType)
	}
	var err error
	c.Position, err = r.position()
	return err
}

// alterations reads what ALTER COLUMN changes, each at most once.
func (r *alterReader) alterations(c *ChangeColumn) error {
	seen := map[string]bool{}
	for n := 0; ; n++ {
		at := r.pos
		what, err := r.alteration(c)
		if err != nil {
			return err
		}
		if what == "" {
			if n == 0 {
				return r.expected("TYPE, SET DATA TYPE, SET or DROP NOT NULL, SET or DROP DEFAULT, COMMENT, FIRST or AFTER")
			}
			return nil
		}
		if seen[what] {
			return syntaxAt(r.text, r.tokens[at].start, "the clause stands twice")
		}
		seen[what] = true
	}
}

func (r *alterReader) alteration(c *ChangeColumn) (what string, err error) {
	required := func(b bool) (string, error) { c.Required = &b; return "null", nil }
	switch {
	case r.accept("type"), r.accept("set", "data", "type"), r.accept("set", "type"):
		if err := r.field(); err != nil {
			return "", err
		}
		t, err := r.typ(1)
		c.Type = &t
		return "type", err
	case r.accept("set", "not", "null"):
		return required(true)
	case r.accept("drop", "not", "null"):
		return required(false)
	case r.accept("set", "default"):
		c.Default, err = r.defaultValue()
		c.SetDefault = true
		return "default", err
	case r.accept("drop", "default"):
		c.SetDefault = true
		return "default", nil
	case r.accept("comment"):
		text, err := r.comment()
		c.Comment = &text
		return "comment", err
	case r.word(0) == "first" || r.word(0) == "after":
		c.Position, err = r.position()
		return "position", err
	case r.accept("set", "visible"), r.accept("set", "invisible"):
		r.warn(warnVisibility)
		return "visible", nil
	}
	return "", nil
}

// partitionField reads transform [AS name].
func (r *alterReader) partitionField() (PartitionField, error) {
	t, err := r.transform()
	f := PartitionField{Transform: t}
	if err == nil && r.accept("as") {
		f.Name, err = r.ident("the name of a partition field")
	}
	return f, err
}

// oldPartition reads a transform or the name of a partition field.
func (r *alterReader) oldPartition() (DropPartition, error) {
	t, err := r.transform()
	d := DropPartition{Transform: t}
	if t.Name == "identity" && len(t.Column) == 1 {
		d.Name = t.Column[0]
	}
	return d, err
}

func (r *alterReader) replacePartition() (AlterAction, error) {
	x := &ReplacePartition{}
	var err error
	if x.Old, err = r.oldPartition(); err != nil {
		return nil, err
	}
	if !r.accept("with") {
		return nil, r.expected("WITH")
	}
	x.New, err = r.partitionField()
	return x, err
}

// write reads WRITE [LOCALLY] ORDERED BY fields, or WRITE UNORDERED.
func (r *alterReader) write() (AlterAction, error) {
	r.pos++
	if r.accept("unordered") {
		return &SetSortOrder{}, nil
	}
	if r.word(0) == "distributed" {
		return nil, refuse("WRITE DISTRIBUTED BY", "one process writes; use WRITE ORDERED BY")
	}
	s := &SetSortOrder{Local: r.accept("locally")}
	if !r.accept("ordered", "by") {
		return nil, r.expected("ORDERED BY or UNORDERED")
	}
	var err error
	s.Fields, err = r.sortOrder()
	return s, err
}

func (r *alterReader) setAction() (AlterAction, error) {
	unset := r.word(0) == "unset"
	r.pos++
	switch {
	case !unset && r.accept("identifier", "fields"):
		columns, err := r.paths()
		return &SetIdentifier{columns}, err
	case !unset && r.word(0) == "location":
		return nil, refuse("SET LOCATION", "the catalog decides where a table lies")
	case unset && r.propertiesAhead():
		u := &UnsetProperties{IfExists: r.accept("if", "exists")}
		var err error
		u.Keys, err = r.propertyKeys()
		return u, err
	case !unset && r.propertiesAhead():
		if !r.at("(") {
			list, err := r.propertyList()
			return &SetProperties{list}, err
		}
		list, err := r.properties()
		return &SetProperties{list}, err
	}
	if unset {
		return nil, r.expected("TBLPROPERTIES or TAGS")
	}
	return nil, r.expected("TBLPROPERTIES, TAGS or IDENTIFIER FIELDS")
}
