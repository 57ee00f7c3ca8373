package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// replaceRights are needed, on the table itself, beside the right to create: a table
// that is replaced loses its rows and gets another definition.
var replaceRights = []policy.Privilege{
	tableDrop, tableSchemaAdd, tableSchemaSet, tableSpecAdd, tableSortAdd, tableSortSet, tablePropsSet, tablePropsRemove, tableRefRemove,
}

// createTable is CREATE TABLE with columns, and CREATE TABLE LIKE.
func (st *statement) createTable(ctx context.Context, x *parse.CreateTable) (*Result, error) {
	o, err := st.named(x.Table)
	if err != nil {
		return nil, err
	}
	if err := st.mayCreate(ctx, "CREATE", "table", o, tableCreate); err != nil {
		return nil, err
	}
	d, err := st.tableDefinition(ctx, x)
	if err != nil {
		return nil, err
	}
	for range mostDefinitionTry {
		created, err := st.createNamed(ctx, o, d, ifTaken(x), nil)
		switch {
		case fault.Is(err, fault.Conflict) && ctx.Err() == nil:
			continue // something took the name meanwhile
		case fault.Is(err, fault.NoDatabase):
			return nil, unknownDatabase(o.database)
		case err != nil:
			return nil, err
		case !created:
			return st.warned(append(x.Warnings, "table '"+o.Name+"' exists")), nil
		}
		return st.warned(x.Warnings), nil
	}
	return nil, fault.New(fault.Conflict, "the name '%s' is taken and given up by others all the time; nothing was changed, try again", o.Name)
}

// ifTaken is what the statement says of a table that exists.
func ifTaken(x *parse.CreateTable) catalog.IfTaken {
	switch {
	case x.IfNotExists:
		return catalog.Keep
	case x.Replace:
		return catalog.Replace
	}
	return catalog.Refuse
}

// createNamed creates a table of a name that may be taken, with the rows of fill if
// there is one. fault.Conflict: it was taken meanwhile.
func (st *statement) createNamed(ctx context.Context, o *object, d catalog.TableDefinition, taken catalog.IfTaken, fill catalog.TableChange) (created bool, err error) {
	kind, err := st.occupant(ctx, o)
	if err != nil {
		return false, err
	}
	options := catalog.CreateOptions{IfTaken: catalog.Refuse, Fill: fill}
	switch {
	case kind == byTable && taken == catalog.Keep:
		return false, nil
	case kind == byTable && taken == catalog.Replace:
		if err := st.mayReplace(ctx, o); err != nil {
			return false, err
		}
		options.IfTaken = catalog.Replace
	case kind != free:
		return false, o.exists(kind)
	}
	_, _, err = o.changer.CreateTable(ctx, o.TableName, d, options)
	if fault.Is(err, fault.Exists) {
		err = fault.Wrap(fault.Conflict, err, "the name '%s' was taken meanwhile", o.Name)
	}
	return err == nil, err
}

// mayReplace asks whether the principal may give a table another definition. One
// that policies or tags are on needs the right to apply policies: a column of
// another name is not the one that they name.
func (st *statement) mayReplace(ctx context.Context, o *object) error {
	if err := st.mayTable(ctx, "CREATE OR REPLACE", o, replaceRights...); err != nil {
		return err
	}
	if st.principal.Admin {
		return nil
	}
	t, err := o.load(ctx)
	if err != nil {
		return err
	}
	g, err := st.governed(t)
	if err != nil {
		return err
	}
	if g.Named || len(g.Texts) > 0 || g.carries() {
		return st.governedRefusal(o, "replace", "table '"+o.Name+"', which policies or tags are on; DROP it and CREATE it anew, or ask an administrator")
	}
	return nil
}

// governedRefusal is the refusal of what only those may do who may apply policies.
func (st *statement) governedRefusal(o *object, privilege, what string) error {
	st.denied(policy.TableObject(o.TableName), tablePolicies, policy.Decision{Visible: true, Reason: policy.NoGrant})
	return fault.New(fault.Denied, "only an administrator of this server may %s %s", privilege, what)
}

// tablePolicies is what the audit log names for it.
const tablePolicies policy.Privilege = "table-policy-detach"

// tableDefinition is what the table is to be.
func (st *statement) tableDefinition(ctx context.Context, x *parse.CreateTable) (d catalog.TableDefinition, err error) {
	props, err := properties(x.Properties)
	if err != nil {
		return d, err
	}
	if x.Like != nil {
		source, err := st.named(*x.Like)
		if err != nil {
			return d, err
		}
		if err := st.mayTable(ctx, "CREATE TABLE LIKE", source, policy.TableProps); err != nil {
			return d, err
		}
		t, err := source.load(ctx)
		if err != nil {
			return d, err
		}
		if d, err = catalog.DefinitionOf(t); err != nil {
			return d, err
		}
		if err := st.hideDefaults(ctx, t, &d); err != nil {
			return d, err
		}
		maps.Copy(d.Properties, props)
		if props["format-version"] != "" {
			d.FormatVersion = 0
		}
	} else {
		d.Properties = props
		for _, c := range x.Columns {
			f, err := st.column(ctx, c)
			if err != nil {
				return d, err
			}
			d.Fields = append(d.Fields, f)
		}
		for _, p := range x.Partitioned {
			d.Partitions = append(d.Partitions, partitionOf(p))
		}
		d.Sort = sortOf(x.Sorted)
	}
	for _, name := range x.Identifier {
		d.Identifiers = append(d.Identifiers, []string{name})
	}
	if x.Comment != "" {
		d.Comment = x.Comment
	}
	return d, nil
}

func partitionOf(p parse.PartitionField) catalog.PartitionField {
	return catalog.PartitionField{Path: p.Column, Transform: p.Transform.Name, Arg: p.Arg, Name: p.Name}
}

func sortOf(list []parse.SortField) []catalog.SortField {
	var out []catalog.SortField
	for _, s := range list {
		out = append(out, catalog.SortField{Path: s.Column, Transform: s.Name, Arg: s.Arg, Desc: s.Desc, NullsFirst: s.NullsFirst})
	}
	return out
}

// dropTables is DROP TABLE. All rights are asked, and all tables looked for, before
// the first one is dropped.
func (st *statement) dropTables(ctx context.Context, x *parse.DropTable) (*Result, error) {
	rights := []policy.Privilege{tableDrop}
	if x.Purge {
		rights = append(rights, tableDataWrite)
	}
	drop, notes, err := st.dropTargets(x.Tables, "table", x.IfExists, func(o *object) error {
		if err := st.mayTable(ctx, "DROP", o, rights...); err != nil {
			return err
		}
		there, err := o.there(ctx, len(x.Tables) == 1)
		if err == nil && !there {
			err = o.missing()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, o := range drop {
		purged, err := o.changer.DropTable(ctx, o.TableName, x.Purge)
		if x.IfExists && fault.Is(err, fault.NotFound) {
			notes = append(notes, o.missing().Error())
			continue
		}
		if err != nil {
			return nil, partly(o.hidden(err), i, "dropped")
		}
		if purged.Left > 0 {
			notes = append(notes, fmt.Sprintf("%d files of table '%s' were left: they lie outside of its folder, or could not be deleted", purged.Left, o.Name))
		}
	}
	return st.warned(notes), nil
}

// dropTargets are the objects that a DROP names, each of them looked at by check, which
// asks for the rights and whether there is such an object. The notes tell of those that
// IF EXISTS leaves out.
func (st *statement) dropTargets(refs []parse.TableRef, kind string, ifExists bool, check func(*object) error) (drop []*object, notes []string, err error) {
	for _, ref := range refs {
		o, err := st.named(ref)
		if err == nil {
			err = check(o)
		}
		if ifExists && fault.Is(err, fault.NotFound) {
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(drop, func(other *object) bool { return other.Key() == o.Key() }) {
			return nil, nil, fault.New(fault.BadStatement, "Not unique %s: '%s'", kind, o.Name)
		}
		drop = append(drop, o)
	}
	return drop, notes, nil
}

// there reports whether there is such a table, as far as that can be told. A catalog
// may want a right of its own to list a schema, and lists nothing without it: then a
// table is there that can be read. With assume, what is not listed is left to whoever
// goes on with it.
func (o *object) there(ctx context.Context, assume bool) (bool, error) {
	names, err := o.catalog.Tables(ctx, o.Namespace)
	if err != nil || slices.Contains(names, o.Name) {
		return err == nil, err
	}
	if len(names) > 0 || assume {
		return len(names) == 0, nil
	}
	switch _, err := o.load(ctx); {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// partly says how far a statement came that failed at its n-th object.
func partly(err error, n int, what string) error {
	if n == 0 {
		return err
	}
	return fault.Wrap(fault.KindOf(err), err, "%s; the first %d of the statement were %s", err, n, what)
}

// renaming is one step of RENAME TABLE.
type renaming struct {
	from, to *object
	view     bool
}

// run renames, with a fault that says of each name what its user may know.
func (r renaming) run(ctx context.Context) error {
	err := r.rename(ctx, r.from, r.to)
	switch {
	case fault.Is(err, fault.Exists):
		err = r.to.taken()
	case fault.Is(err, fault.NoDatabase):
		err = unknownDatabase(r.to.database)
	}
	return r.from.hidden(err)
}

// undo gives the old name back, also when the statement was cancelled.
func (r renaming) undo(ctx context.Context) error {
	return r.rename(context.WithoutCancel(ctx), r.to, r.from)
}

func (r renaming) rename(ctx context.Context, from, to *object) error {
	if r.view {
		return from.changer.RenameView(ctx, from.TableName, to.TableName)
	}
	return from.changer.RenameTable(ctx, from.TableName, to.TableName)
}

// renameTables is RENAME TABLE, of tables and views, in the order of the statement.
// All rights are asked before the first one is renamed; when one fails, those
// before it get their names back.
func (st *statement) renameTables(ctx context.Context, list []parse.Rename) (*Result, error) {
	var steps []renaming
	// now is what an earlier step has given a name: names may go round.
	now := map[string]*object{}
	for _, x := range list {
		r := renaming{}
		var err error
		if r.from, err = st.named(x.From); err != nil {
			return nil, err
		}
		if r.to, err = st.named(x.To); err != nil {
			return nil, err
		}
		if r.from.TableName.Catalog != r.to.TableName.Catalog {
			return nil, fault.New(fault.Unsupported, "a table cannot be renamed into another catalog; create it there with CREATE TABLE ... AS")
		}
		origin := now[r.from.Key()]
		if origin == nil {
			origin = r.from
		}
		if r.view, err = st.mayRename(ctx, origin, r.to); err != nil {
			return nil, err
		}
		delete(now, r.from.Key())
		now[r.to.Key()] = origin
		steps = append(steps, r)
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if err := st.keepsPolicies(ctx, now[key], steps, key); err != nil {
			return nil, err
		}
	}
	for i, r := range steps {
		kind, err := st.occupant(ctx, r.to)
		if err == nil && kind != free {
			err = r.to.exists(kind)
		}
		if err == nil {
			err = r.run(ctx)
		}
		if err == nil {
			continue
		}
		for done := i - 1; done >= 0; done-- {
			if steps[done].undo(ctx) != nil {
				return nil, partly(err, done+1, "renamed and could not get their names back")
			}
		}
		return nil, err
	}
	return st.warned(nil), nil
}

// mayRename asks for the rights to rename a table, or a view when the principal may
// rename no table of that name. Who renames a table must be able to read it: under
// its new name others may, or the principal itself.
func (st *statement) mayRename(ctx context.Context, from, to *object) (view bool, err error) {
	refused := len(st.denial)
	tableErr := st.mayTable(ctx, "RENAME", from, tableDrop, policy.TableDataRead)
	if tableErr == nil {
		there, err := from.there(ctx, false)
		if err != nil {
			return false, err
		}
		if there {
			return false, st.mayCreate(ctx, "RENAME", "table", to, tableCreate)
		}
		tableErr = from.missing()
	}
	if !fault.Is(tableErr, fault.NotFound) {
		return false, tableErr
	}
	if err := st.mayView(ctx, "RENAME", from, viewDrop); err != nil {
		return false, err
	}
	names, err := from.catalog.Views(ctx, from.Namespace)
	if err != nil {
		return false, err
	}
	if !slices.Contains(names, from.Name) {
		return false, from.missing()
	}
	st.denial = st.denial[:refused] // it is a view: nothing was refused
	return true, st.mayCreate(ctx, "RENAME", "view", to, viewCreate)
}

// keepsPolicies refuses to give a table a name under which the policies treat it
// otherwise, to everybody who may not apply policies.
func (st *statement) keepsPolicies(ctx context.Context, from *object, steps []renaming, key string) error {
	i := slices.IndexFunc(steps, func(r renaming) bool { return r.to.Key() == key })
	to := steps[i].to
	if st.principal.Admin || steps[i].view || from.Key() == key {
		return nil
	}
	t, err := from.load(ctx)
	if err != nil {
		return err
	}
	before, err := st.governed(t)
	if err != nil {
		return err
	}
	renamed := *t
	renamed.Name = to.TableName
	after, err := st.governed(&renamed)
	if err != nil {
		return err
	}
	if slices.Equal(before.By, after.By) || len(before.By) == 0 && !before.carries() {
		return nil
	}
	return st.governedRefusal(from, "rename", fmt.Sprintf("table '%s' to '%s': policies find it by its name, and would act otherwise on the new one", from.Name, to.Name))
}

// governance is what the policies of all sources say of a table, whoever asks.
type governance struct {
	policy.Governance
	table *plan.Table
}

// carries reports whether the table or a column has a tag.
func (g *governance) carries() bool { return len(g.table.Tags) > 0 || len(g.Tagged) > 0 }

// governed asks every source. One that cannot tell counts as one that governs the
// table under this name and under no other.
func (st *statement) governed(t *plan.Table) (*governance, error) {
	states, err := st.policies()
	if err != nil {
		return nil, err
	}
	out := &governance{table: t}
	out.Tagged = map[int]bool{}
	for i, s := range states {
		source := st.engine.sources[i].Name() + "\x00"
		g, ok := s.(policy.Governor)
		if !ok {
			out.By, out.Named = append(out.By, source+t.Name.Key()), true
			continue
		}
		x := g.Governs(t)
		for _, by := range x.By {
			out.By = append(out.By, source+by)
		}
		out.Named = out.Named || x.Named
		out.Texts = append(out.Texts, x.Texts...)
		maps.Copy(out.Tagged, x.Tagged)
	}
	return out, nil
}
