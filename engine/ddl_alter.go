package engine

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// alterTable is ALTER TABLE.
func (st *statement) alterTable(ctx context.Context, x *parse.AlterTable) (*Result, error) {
	o, err := st.named(x.Table)
	if err != nil {
		return nil, err
	}
	for _, a := range x.Actions {
		switch a := a.(type) {
		case *parse.RenameTo, *parse.CreateRef, *parse.DropRef:
			if len(x.Actions) > 1 {
				return nil, fault.New(fault.Unsupported, "RENAME, and a change of a branch or tag, cannot stand beside other actions: they are no part of one change; write a statement for each")
			}
			if to, ok := a.(*parse.RenameTo); ok {
				return st.ifExists(x)(st.renameTo(ctx, o, x.Table, to.Table))
			}
		}
	}
	return st.ifExists(x)(st.altered(ctx, o, x))
}

// ifExists makes a warning of the error that there is no table, where the statement
// says so.
func (st *statement) ifExists(x *parse.AlterTable) func(*Result, error) (*Result, error) {
	return func(res *Result, err error) (*Result, error) {
		if x.IfExists && fault.Is(err, fault.NotFound) {
			return st.warned(append(x.Warnings, err.Error())), nil
		}
		return res, err
	}
}

// renameTo renames a table; a new name without a database stays in the old one.
func (st *statement) renameTo(ctx context.Context, o *object, from, to parse.TableRef) (*Result, error) {
	if to.Database == "" {
		to.Database = o.database
	}
	return st.renameTables(ctx, []parse.Rename{{From: from, To: to}})
}

// altered makes the changes of the statement, as one.
func (st *statement) altered(ctx context.Context, o *object, x *parse.AlterTable) (*Result, error) {
	rights := rightsOf(x.Actions)
	if len(rights) == 0 { // nothing of the statement has an effect
		rights = []policy.Privilege{tableSchemaAdd}
	}
	if err := st.mayTable(ctx, "ALTER", o, rights...); err != nil {
		return nil, err
	}
	t, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	if len(x.Actions) == 1 {
		switch a := x.Actions[0].(type) {
		case *parse.CreateRef:
			_, err = o.changer.SetRef(ctx, o.TableName, refOf(a), refMode(a))
			return st.done(x.Warnings, st.ofVersion(ctx, o, err))
		case *parse.DropRef:
			_, err = o.changer.DropRef(ctx, o.TableName, a.Name, !a.Tag, a.IfExists)
			return st.done(x.Warnings, st.ofVersion(ctx, o, err))
		}
	}
	notes, err := st.mayChangeColumns(o, t, x.Actions)
	if err != nil {
		return nil, err
	}
	var changes []catalog.Change
	for _, a := range x.Actions {
		more, err := st.change(ctx, t, a)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	if len(changes) > 0 {
		if _, err := o.changer.AlterTable(ctx, o.TableName, changes); err != nil {
			return nil, o.hidden(err)
		}
	}
	return st.warned(append(x.Warnings, notes...)), nil
}

func (st *statement) done(notes []string, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	return st.warned(notes), nil
}

func refOf(a *parse.CreateRef) catalog.Ref {
	r := catalog.Ref{
		Name: a.Name, Branch: !a.Tag, MinSnapshots: int(a.MinSnapshots),
		MaxAge: time.Duration(a.MaxRefAge) * time.Millisecond, MaxSnapshotAge: time.Duration(a.MaxSnapshotAge) * time.Millisecond,
	}
	if a.Snapshot != nil {
		r.Snapshot = *a.Snapshot
	}
	return r
}

func refMode(a *parse.CreateRef) catalog.RefMode {
	switch {
	case a.Create && a.Replace:
		return catalog.CreateOrReplaceRef
	case a.Replace:
		return catalog.ReplaceRef
	case a.IfNotExists:
		return catalog.CreateRefIfMissing
	}
	return catalog.CreateRef
}

// rightsOf are the rights that the actions of ALTER TABLE need.
func rightsOf(actions []parse.AlterAction) []policy.Privilege {
	var out []policy.Privilege
	need := func(list ...policy.Privilege) {
		for _, p := range list {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case *parse.AddColumn, *parse.DropColumn, *parse.RenameColumn, *parse.ChangeColumn, *parse.SetIdentifier, *parse.DropIdentifier:
			need(tableSchemaAdd, tableSchemaSet)
		case *parse.AddPartition, *parse.DropPartition, *parse.ReplacePartition:
			need(tableSpecAdd)
		case *parse.SetSortOrder:
			need(tableSortAdd, tableSortSet)
		case *parse.SetProperties:
			need(tablePropsSet)
			for _, p := range a.Properties {
				if p.Key == "format-version" {
					need(tableFormat)
				}
			}
		case *parse.UnsetProperties:
			need(tablePropsRemove)
		case *parse.SetComment:
			need(tablePropsSet)
		case *parse.CreateRef:
			need(tableRefSet)
		case *parse.DropRef:
			need(tableRefRemove)
		default:
			// An action that nobody thought of is one that nobody may do.
			need("service-access-manage")
		}
	}
	return out
}

// change is an action of ALTER TABLE as changes of the catalog.
func (st *statement) change(ctx context.Context, t *plan.Table, a parse.AlterAction) ([]catalog.Change, error) {
	one := func(c catalog.Change) ([]catalog.Change, error) { return []catalog.Change{c}, nil }
	switch a := a.(type) {
	case *parse.AddColumn:
		f, err := st.column(ctx, a.ColumnDef)
		return []catalog.Change{catalog.AddColumn{
			Path: append(slices.Clone(a.Parent), a.Name), Field: f, Position: positionOf(a.Position), IfNotExists: a.IfNotExists,
		}}, err
	case *parse.DropColumn:
		return one(catalog.DropColumn{Path: a.Column, IfExists: a.IfExists})
	case *parse.RenameColumn:
		return one(catalog.RenameColumn{Path: a.Column, To: a.To})
	case *parse.ChangeColumn:
		return st.changeColumn(ctx, t, a)
	case *parse.AddPartition:
		if err := st.mayLayOut(ctx, t, a.Field.Column); err != nil {
			return nil, err
		}
		return one(catalog.AddPartition{Field: partitionOf(a.Field)})
	case *parse.DropPartition:
		return one(catalog.DropPartition{Field: oldPartition(t, a)})
	case *parse.ReplacePartition:
		if err := st.mayLayOut(ctx, t, a.New.Column); err != nil {
			return nil, err
		}
		return one(catalog.ReplacePartition{Old: oldPartition(t, &a.Old), New: partitionOf(a.New)})
	case *parse.SetSortOrder:
		for _, f := range a.Fields {
			if err := st.mayLayOut(ctx, t, f.Column); err != nil {
				return nil, err
			}
		}
		return one(catalog.SetSort{Fields: sortOf(a.Fields)})
	case *parse.SetProperties:
		set, err := properties(a.Properties)
		return []catalog.Change{catalog.SetProperties{Properties: set}}, err
	case *parse.UnsetProperties:
		return []catalog.Change{catalog.RemoveProperties{Names: a.Keys}}, has(t.Properties, a.Keys, a.IfExists)
	case *parse.SetComment:
		return one(catalog.CommentTable{Comment: a.Comment})
	case *parse.SetIdentifier:
		return one(catalog.SetIdentifiers{Paths: a.Columns})
	case *parse.DropIdentifier:
		return one(catalog.DropIdentifiers{Paths: a.Columns})
	}
	return nil, unsupported("this action of ALTER TABLE")
}

// mayLayOut refuses to order rows by a column whose values the user does not see: where
// rows stand would tell of them.
func (st *statement) mayLayOut(ctx context.Context, t *plan.Table, path []string) error {
	b, err := st.bound(ctx, t)
	if err != nil || len(path) == 0 {
		return err
	}
	if f, ok := t.FieldNamed(path[0]); ok && b.Hides(f.ID) {
		return fault.New(fault.Denied, "column '%s' of table '%s' is masked for you, and where rows stand would tell of its values; ask an administrator to change the layout", f.Name, t.Name.Name)
	}
	return nil
}

func positionOf(p parse.Position) catalog.Position {
	return catalog.Position{First: p.First, After: p.After}
}

// oldPartition is the partition field that is meant: the one of the name, when there
// is one, before that of a column.
func oldPartition(t *plan.Table, a *parse.DropPartition) catalog.PartitionField {
	if d, err := catalog.DefinitionOf(t); err == nil && a.Name != "" {
		if slices.ContainsFunc(d.Partitions, func(p catalog.PartitionField) bool { return strings.EqualFold(p.Name, a.Name) }) {
			return catalog.PartitionField{Name: a.Name}
		}
	}
	return catalog.PartitionField{Path: a.Column, Transform: a.Transform.Name, Arg: a.Arg}
}

// changeColumn is ALTER, MODIFY or CHANGE COLUMN.
func (st *statement) changeColumn(ctx context.Context, t *plan.Table, a *parse.ChangeColumn) ([]catalog.Change, error) {
	var out []catalog.Change
	old, known := fieldAt(t.Fields, a.Column)
	if a.Type != nil {
		typ, _, err := columnType(*a.Type)
		if err != nil {
			return nil, err
		}
		// A nested column that is changed in another way is named with its type too.
		if !known || !plan.IsNested(old.Type) || !sameType(old, *a.Type) {
			out = append(out, catalog.WidenColumn{Path: a.Column, Type: typ})
		}
	}
	if a.Required != nil {
		switch {
		case !*a.Required:
			out = append(out, catalog.DropRequired{Path: a.Column})
		case !known || !old.Required:
			return nil, fault.New(fault.BadStatement, "Column '%s' cannot become NOT NULL: rows that are there may have no value for it", strings.Join(a.Column, "."))
		}
	}
	if a.Comment != nil {
		out = append(out, catalog.CommentColumn{Path: a.Column, Doc: *a.Comment})
	}
	if a.SetDefault {
		set := catalog.SetDefault{Path: a.Column}
		if a.Default != nil {
			if !known {
				return nil, fault.New(fault.NoColumn, "Unknown column '%s'", strings.Join(a.Column, "."))
			}
			v, err := st.defaultOf(ctx, strings.Join(a.Column, "."), a.Default, old.Type)
			if err != nil {
				return nil, err
			}
			set.Value = v
		}
		out = append(out, set)
	}
	if a.Position != (parse.Position{}) {
		out = append(out, catalog.MoveColumn{Path: a.Column, Position: positionOf(a.Position)})
	}
	return out, nil
}

// sameType reports whether a nested column has the type of the statement; comments
// inside do not count.
func sameType(f plan.Field, t parse.Type) bool {
	if len(f.Children) != len(t.Fields) {
		return false
	}
	if len(f.Children) == 0 {
		typ, _, err := columnType(t)
		return err == nil && typ.Fingerprint() == f.Type.Fingerprint()
	}
	for i, c := range f.Children {
		if f.Type.ID() != nestedID[t.Kind] || !strings.EqualFold(c.Name, t.Fields[i].Name) || c.Required != t.Fields[i].Required || !sameType(c, t.Fields[i].Type) {
			return false
		}
	}
	return true
}

// fieldAt finds a field by its path, as the catalog does: exactly, else without
// case; what is inside a list or a map also without "element" and "value".
func fieldAt(fields []plan.Field, path []string) (plan.Field, bool) {
	if len(path) == 0 {
		return plan.Field{}, false
	}
	i := slices.IndexFunc(fields, func(f plan.Field) bool { return f.Name == path[0] })
	if i < 0 {
		i = slices.IndexFunc(fields, func(f plan.Field) bool { return strings.EqualFold(f.Name, path[0]) })
	}
	if i < 0 {
		return plan.Field{}, false
	}
	f, rest := fields[i], path[1:]
	for len(rest) > 0 && len(f.Children) > 0 && f.Type.ID() != nestedID[parse.TypeStruct] {
		member := f.Children[len(f.Children)-1]
		if strings.EqualFold(rest[0], "key") && len(f.Children) == 2 {
			member, rest = f.Children[0], rest[1:]
		} else if strings.EqualFold(rest[0], member.Name) {
			rest = rest[1:]
		}
		f = member
	}
	if len(rest) == 0 {
		return f, true
	}
	return fieldAt(f.Children, rest)
}

// mayChangeColumns refuses to those who may not apply policies what would change
// what policies mean: to drop a column that carries a tag, and to drop, rename or
// add one of a name that the text of a row filter or mask has. An administrator is
// told of the texts.
func (st *statement) mayChangeColumns(o *object, t *plan.Table, actions []parse.AlterAction) (notes []string, err error) {
	var names [][]string // that come or go
	var dropped, renamed bool
	for _, a := range actions {
		switch a := a.(type) {
		case *parse.AddColumn:
			names = append(names, append(slices.Clone(a.Parent), a.Name))
			renamed = true
		case *parse.DropColumn:
			names = append(names, a.Column)
			dropped = true
		case *parse.RenameColumn:
			to := append(slices.Clone(a.Column[:len(a.Column)-1]), a.To)
			names = append(names, a.Column, to)
			renamed = true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	g, err := st.governed(t)
	if err != nil {
		return nil, err
	}
	for _, path := range names {
		if !g.says(path[len(path)-1]) {
			continue
		}
		if st.principal.Admin {
			notes = append(notes, "the text of a row filter or mask on table '"+o.Name+"' has the name '"+path[len(path)-1]+"': look at it, for it means another column now, or none")
			continue
		}
		return nil, st.governedRefusal(o, "drop, rename or add", "column '"+strings.Join(path, ".")+"' of table '"+o.Name+"': a policy of the table has its name in a text")
	}
	if st.principal.Admin || !dropped || !g.carries() {
		return notes, nil
	}
	if renamed {
		return nil, fault.New(fault.Unsupported, "columns of a table with tags cannot be dropped in one statement with others that are renamed or added; write a statement for each")
	}
	for _, a := range actions {
		d, ok := a.(*parse.DropColumn)
		if !ok {
			continue
		}
		if f, ok := fieldAt(t.Fields, d.Column); ok && g.tagged(f) {
			return nil, st.governedRefusal(o, "drop", "column '"+strings.Join(d.Column, ".")+"' of table '"+o.Name+"': it carries a tag")
		}
	}
	return notes, nil
}

// tagged reports whether a field, or one inside it, has a tag.
func (g *governance) tagged(f plan.Field) bool {
	return len(g.table.Tags[f.ID]) > 0 || g.Tagged[f.ID] || slices.ContainsFunc(f.Children, g.tagged)
}

var ordinaryName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// says reports whether a text of a policy has the name, as a word or, when it is no
// ordinary one, anywhere. It may find too much: a word in quotes, a column of
// another table.
func (g *governance) says(name string) bool {
	for _, text := range g.Texts {
		if !ordinaryName.MatchString(name) {
			if strings.Contains(strings.ToLower(text), strings.ToLower(name)) {
				return true
			}
			continue
		}
		if regexp.MustCompile(`(?i)(^|[^A-Za-z0-9_$])` + name + `($|[^A-Za-z0-9_$])`).MatchString(text) {
			return true
		}
	}
	return false
}

// callTable finds the table of CALL.
func (st *statement) callTable(x *parse.Call) (*object, error) {
	ref := x.Table
	if x.Catalog != "" {
		if _, ok := st.engine.catalogs.Get(x.Catalog); !ok {
			return nil, fault.New(fault.NotFound, "there is no catalog '%s'", x.Catalog)
		}
		if ref.Database == "" {
			return nil, fault.New(fault.BadStatement, "name the table with its database")
		}
		if levels := parse.SplitDatabase(ref.Database); levels[0] != x.Catalog {
			ref.Database = parse.JoinDatabase(append([]string{x.Catalog}, levels...)...)
		}
	}
	return st.named(ref)
}

// call is CALL of a procedure that moves a table to another snapshot.
func (st *statement) call(ctx context.Context, x *parse.Call) (*Result, error) {
	o, err := st.callTable(x)
	if err != nil {
		return nil, err
	}
	if err := st.mayTable(ctx, "CALL", o, tableRefSet); err != nil {
		return nil, err
	}
	before, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	// Other rows come and go with the snapshot than the principal sees.
	seen, err := st.bound(ctx, before)
	if err != nil {
		return nil, err
	}
	if seen.Filtered() {
		st.restricted(before)
		return nil, fault.New(fault.Denied, "table '%s' cannot be moved to another snapshot under a row filter: rows that you do not see would come or go; ask an administrator", o.Name)
	}
	var after *plan.Table
	switch to := (plan.AsOf{Snapshot: x.Snapshot, Ref: x.Ref}); x.Procedure {
	case parse.RollbackToSnapshot:
		after, err = o.changer.Rollback(ctx, o.TableName, to)
	case parse.RollbackToTimestamp:
		after, err = o.changer.Rollback(ctx, o.TableName, plan.AsOf{Time: *x.Time})
	case parse.SetCurrentSnapshot:
		after, err = o.changer.SetCurrent(ctx, o.TableName, to)
	}
	if err != nil {
		return nil, st.ofVersion(ctx, o, err)
	}
	return st.counts(ctx, before, []string{"previous_snapshot_id", "current_snapshot_id"}, before.SnapshotID, after.SnapshotID)
}
