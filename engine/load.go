package engine

import (
	"context"
	"errors"
	"strings"

	"sqe/catalog"
	"sqe/engine/importfile"
	"sqe/engine/parse"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
)

// isLoad reports whether a statement takes rows from a file.
func isLoad(stmt parse.Statement) bool {
	switch stmt.(type) {
	case *parse.Load, *parse.CreateTableFrom:
		return true
	}
	return false
}

// loadFile runs a statement that takes rows from a file.
func (st *statement) loadFile(ctx context.Context, stmt parse.Statement) (*Result, error) {
	switch x := stmt.(type) {
	case *parse.Load:
		return st.load(ctx, x)
	case *parse.CreateTableFrom:
		return st.createFrom(ctx, x)
	}
	return nil, unsupported("this statement")
}

// load is LOAD DATA [LOCAL] INFILE. Rights and columns are looked at before the file
// is asked for.
func (st *statement) load(ctx context.Context, x *parse.Load) (*Result, error) {
	o, err := st.mayWrite(ctx, "LOAD", x.Table)
	if err != nil {
		return nil, err
	}
	t, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	if len(b.Record().Filters) > 0 {
		return nil, fault.New(fault.Unsupported, "LOAD DATA into table '%s', on which you have a row filter, is not supported; load the file into a new table (CREATE TABLE ... FROM INFILE), then INSERT INTO ... SELECT, which checks new rows", o.Name)
	}
	listed, err := st.targets(t, x.File.Columns)
	if err != nil {
		return nil, err
	}
	in, err := st.openInfile(ctx, &x.File, x.File.ByName, len(listed))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	columns, err := in.into(t, &x.File, listed)
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		if _, withheld := b.Withheld()[c.Field.ID]; withheld && c.At >= 0 {
			return nil, fault.New(fault.Withheld, "column '%s' of table '%s' is withheld: a policy on it cannot be applied, so it cannot be assigned; leave it out or ask an administrator", c.Field.Name, o.Name)
		}
	}
	rows, err := in.Rows(ctx, columns)
	if err != nil {
		return nil, err
	}
	options, done := st.loadOptions(o)
	defer done()
	res, err := write.Append(ctx, t, rows, options)
	if err != nil {
		return nil, err
	}
	st.wrote()
	return &Result{Affected: uint64(res.Inserted)}, nil
}

func (st *statement) loadOptions(o *object) (write.Options, func()) {
	options, done := st.writeOptions(o)
	options.Progress = func(rows int64) { st.progress("loading: " + counted(rows) + " rows") }
	return options, done
}

// targets are the columns of a table to which the fields of a file go: those that the
// statement lists, where nil is a field that is passed over, else all.
func (st *statement) targets(t *plan.Table, names []string) ([]*plan.Field, error) {
	if names == nil {
		out := make([]*plan.Field, len(t.Fields))
		for i := range out {
			out[i] = &t.Fields[i]
		}
		return out, nil
	}
	out := make([]*plan.Field, len(names))
	for i, n := range names {
		if n == "" {
			continue
		}
		f, ok := t.FieldNamed(n)
		if !ok {
			return nil, fault.New(fault.NoColumn, "Unknown column '%s' in table '%s'", n, t.Name.Name)
		}
		for _, other := range out[:i] {
			if other != nil && other.ID == f.ID {
				return nil, fault.New(fault.BadStatement, "Column '%s' specified twice", f.Name)
			}
		}
		out[i] = &f
	}
	return out, nil
}

// into says which column of the file goes to which column of a table, parallel to
// the columns of the table.
func (in *infile) into(t *plan.Table, f *parse.Infile, listed []*plan.Field) ([]importfile.Column, error) {
	from := map[int]int{} // field id to column of the file
	if in.named {
		names := in.Names()
		for _, target := range listed {
			if target == nil {
				return nil, fault.New(fault.BadStatement, "a field cannot be passed over where columns are found by name; name those that you want")
			}
			at, err := find(names, target.Name)
			if err != nil {
				return nil, err
			}
			switch {
			case at >= 0:
				from[target.ID] = at
			case f.Columns != nil:
				return nil, fault.New(fault.NoColumn, "The file has no column '%s'", target.Name)
			}
		}
		if f.Columns == nil {
			for _, n := range names {
				if _, ok := t.FieldNamed(n); !ok {
					return nil, fault.New(fault.NoColumn, "The file has a column '%s' that table '%s' does not have; name the columns that you want in brackets at the end of the statement", n, t.Name.Name)
				}
			}
		}
	} else {
		for i, target := range listed {
			if target != nil {
				from[target.ID] = i
			}
		}
	}
	out := make([]importfile.Column, len(t.Fields))
	for i, c := range t.Fields {
		at, ok := from[c.ID]
		out[i] = importfile.Column{At: at, Field: c}
		if ok {
			continue
		}
		if out[i].At = -1; c.Default != nil {
			out[i].Fill = c.Default
		} else if c.Required {
			return nil, fault.New(fault.NullValue, "Column '%s' cannot be null, and the file has no values for it", c.Name)
		}
	}
	return out, nil
}

// find is the index of a name: exactly, else alone without case; -1 for none.
func find(names []string, name string) (int, error) {
	found := -1
	for i, n := range names {
		if n == name {
			return i, nil
		}
		if strings.EqualFold(n, name) {
			if found >= 0 {
				return -1, fault.New(fault.BadStatement, "The file has several columns for '%s' whose names differ in case", name)
			}
			found = i
		}
	}
	return found, nil
}

// createFrom is CREATE TABLE ... FROM [LOCAL] INFILE.
func (st *statement) createFrom(ctx context.Context, x *parse.CreateTableFrom) (*Result, error) {
	o, err := st.named(x.Create.Table)
	if err != nil {
		return nil, err
	}
	if err := st.mayCreate(ctx, "CREATE", "table", o, tableCreate); err != nil {
		return nil, err
	}
	if err := st.mayFill(o); err != nil {
		return nil, err
	}
	d, err := st.tableDefinition(ctx, x.Create)
	if err != nil {
		return nil, err
	}
	if exists, err := st.place(ctx, o, x.Create); err != nil {
		return nil, err
	} else if exists {
		return st.warned([]string{"table '" + o.Name + "' exists"}), nil
	}
	in, err := st.openInfile(ctx, &x.File, x.File.Columns == nil, len(x.File.Columns))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st.progress("reading the file")
	all, err := in.Fields(ctx, x.File.Columns)
	if err != nil {
		return nil, err
	}
	var columns []importfile.Column
	for i, f := range all {
		if x.File.Columns != nil && x.File.Columns[i] == "" {
			continue
		}
		d.Fields = append(d.Fields, f)
		columns = append(columns, importfile.Column{At: i, Field: f})
	}
	options, done := st.loadOptions(o)
	defer done()
	rows := func(*plan.Table) (write.Rows, error) { return in.Rows(ctx, columns) }
	res, err := write.Fill(ctx, rows, options, func(ctx context.Context, fill catalog.TableChange) error {
		created, err := st.createFilled(ctx, o, d, x.Create, fill)
		if err == nil && !created {
			return errKept // an earlier try may have written rows
		}
		return err
	})
	switch {
	case errors.Is(err, errKept):
		return st.warned(append(x.Create.Warnings, "table '"+o.Name+"' exists")), nil
	case fault.Is(err, fault.NoDatabase):
		return nil, unknownDatabase(o.database)
	case err != nil:
		return nil, err
	}
	out := st.warned(x.Create.Warnings)
	out.Affected = uint64(res.Inserted)
	return out, nil
}

// place looks, before the file is asked for, whether the name of a new table is free,
// or of a table that the principal may replace. exists: there is one, and IF NOT
// EXISTS leaves it alone.
func (st *statement) place(ctx context.Context, o *object, c *parse.CreateTable) (exists bool, err error) {
	kind, err := st.occupant(ctx, o)
	switch {
	case err != nil:
		return false, err
	case kind == byTable && c.IfNotExists:
		return true, nil
	case kind == byTable && c.Replace:
		return false, st.mayReplace(ctx, o)
	case kind != free:
		return false, o.exists(kind)
	}
	return false, nil
}
