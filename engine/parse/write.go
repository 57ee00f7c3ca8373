package parse

// write parses a statement that changes rows, tables, views or schemas; nil when
// it is none. What MySQL has besides (users) stays with its grammar.
func (p *parser) write() (Statement, error) {
	stmt, err := p.dml()
	if stmt == nil && err == nil {
		stmt, err = p.ddl()
	}
	if stmt == nil && err == nil {
		stmt, err = p.load()
	}
	if err != nil || stmt == nil {
		return nil, err
	}
	return stmt, p.countTables(nil)
}

// Params is the number of ? placeholders in a statement.
func Params(stmt Statement) int {
	switch s := stmt.(type) {
	case *SQL:
		return s.Params
	case *Explain:
		return Params(s.Stmt)
	case *ExplainPolicy:
		return Params(s.Stmt)
	case *CreateTable:
		return s.Params
	case *Insert:
		return s.Params
	case *Update:
		return s.Params
	case *Delete:
		return s.Params
	case *Merge:
		return s.Params
	}
	return 0
}

// IsWrite reports whether a statement changes rows, tables, views or schemas, or
// would.
func IsWrite(stmt Statement) bool {
	switch s := stmt.(type) {
	case *SQL:
		return s.Kind == Write
	case *CreateSchema, *DropSchema, *AlterSchema, *CreateTable, *DropTable, *Truncate, *RenameTable, *AlterTable,
		*CreateView, *DropView, *AlterView, *Insert, *Update, *Delete, *Merge, *Call,
		*Load, *CreateTableFrom:
		return true
	}
	return false
}
