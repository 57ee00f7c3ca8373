package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/engine/bind"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// createView is CREATE VIEW, and ALTER VIEW ... AS. The query is bound once as who
// creates the view, so that what is wrong with it is found now; whoever reads it
// binds it again with rights of their own.
func (st *statement) createView(ctx context.Context, x *parse.CreateView) (*Result, error) {
	o, err := st.named(x.View)
	if err != nil {
		return nil, err
	}
	if x.Alter {
		err = st.mayView(ctx, "ALTER VIEW", o, viewWrite)
	} else {
		err = st.mayCreate(ctx, "CREATE VIEW", "view", o, viewCreate)
	}
	if err != nil {
		return nil, err
	}
	props, err := properties(x.Properties)
	if err != nil {
		return nil, err
	}
	d := catalog.ViewDefinition{SQL: viewText(x), Namespace: o.Namespace, Properties: props, Comment: x.Comment}
	if d.Fields, err = st.viewFields(ctx, o, x, d.SQL); err != nil {
		return nil, err
	}
	for range mostDefinitionTry {
		created, err := st.storeView(ctx, o, d, x)
		switch {
		case fault.Is(err, fault.Conflict) && ctx.Err() == nil:
			continue // something took the name meanwhile
		case fault.Is(err, fault.NoDatabase):
			return nil, unknownDatabase(o.database)
		case err != nil:
			return nil, err
		case !created:
			return st.warned(append(x.Warnings, "view '"+o.Name+"' exists")), nil
		}
		return st.warned(x.Warnings), nil
	}
	return nil, fault.New(fault.Conflict, "the name '%s' is taken and given up by others all the time; nothing was changed, try again", o.Name)
}

// storeView stores a view whose name may be taken. fault.Conflict: it was taken
// meanwhile.
func (st *statement) storeView(ctx context.Context, o *object, d catalog.ViewDefinition, x *parse.CreateView) (created bool, err error) {
	options := catalog.ViewOptions{IfTaken: catalog.Refuse}
	kind := free
	if !x.Alter {
		if kind, err = st.occupant(ctx, o); err != nil {
			return false, err
		}
	}
	switch {
	case x.Alter:
		// Who may change a view need not be able to see it.
		if names, err := o.catalog.Views(ctx, o.Namespace); err != nil || !slices.Contains(names, o.Name) {
			if err == nil {
				err = o.missing()
			}
			return false, err
		}
		options.IfTaken = catalog.Replace
	case kind == byView && x.IfNotExists:
		return false, nil
	case kind == byView && x.Replace:
		if err := st.mayView(ctx, "CREATE OR REPLACE VIEW", o, viewWrite); err != nil {
			return false, err
		}
		options.IfTaken = catalog.Replace
	case kind != free:
		return false, o.exists(kind)
	}
	created, err = o.changer.CreateView(ctx, o.TableName, d, options)
	if fault.Is(err, fault.Exists) {
		err = fault.Wrap(fault.Conflict, err, "the name '%s' was taken meanwhile", o.Name)
	}
	return created && err == nil, err
}

// viewText is the query with the names that the statement gives its columns.
func viewText(x *parse.CreateView) string {
	if len(x.Columns) == 0 {
		return x.Text
	}
	names := make([]string, len(x.Columns))
	for i, c := range x.Columns {
		names[i] = quoteName(c.Name)
	}
	return "SELECT * FROM (" + x.Text + ") AS " + quoteName(x.View.Name) + " (" + strings.Join(names, ", ") + ")"
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// viewFields binds the query of a view as its creator and gives its columns.
func (st *statement) viewFields(ctx context.Context, o *object, x *parse.CreateView, text string) ([]plan.Field, error) {
	stmt, rest, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	sql, ok := stmt.(*parse.SQL)
	if !ok || rest != "" || sql.Kind != parse.Query {
		return nil, fault.New(fault.BadStatement, "a view is one query")
	}
	names := &viewNames{relations: relations{st}, home: st.session.Database(), view: o.TableName}
	session := st.engine.binder.NewSession(0, st.principal, st.session.info.RemoteAddr)
	session.SetDatabase(currentDatabase)
	_, columns, err := st.engine.binder.Describe(ctx, session, names, sql)
	if err != nil {
		return nil, err
	}
	if home, _, err := st.engine.catalogs.Resolve(names.home, o.Name); names.unqualified && (err != nil || home.Key() != o.Key()) {
		return nil, fault.New(fault.BadStatement, "the view is in another database than the current one, where its tables without a database would be looked for; name them with their database, or USE that of the view")
	}
	// It must bind in the way of those who read it, too.
	names.self = &catalog.View{Name: o.TableName, SQL: text, Catalog: o.TableName.Catalog, Namespace: o.Namespace}
	read, _, err := parse.Parse("SELECT * FROM " + quoteName(o.Name))
	if err != nil {
		return nil, err
	}
	if _, _, err := st.engine.binder.Describe(ctx, session, names, read.(*parse.SQL)); err != nil {
		return nil, fault.Wrap(fault.KindOf(err), err, "the query cannot be that of a view: %s", err)
	}
	if len(x.Columns) > 0 && len(x.Columns) != len(columns) {
		return nil, fault.New(fault.BadStatement, "the view names %d columns, and its query has %d", len(x.Columns), len(columns))
	}
	fields := make([]plan.Field, len(columns))
	for i, c := range columns {
		fields[i] = plan.Field{Name: c.Name, Type: stored(c.Type)}
		if len(x.Columns) > 0 {
			fields[i].Name, fields[i].Doc = x.Columns[i].Name, x.Columns[i].Comment
		}
	}
	return fields, nil
}

// stored is the type under which other engines see a column of a view.
func stored(t arrow.DataType) arrow.DataType {
	switch t.ID() {
	case arrow.NULL:
		return plan.String
	case arrow.UINT64:
		return plan.Decimal(20, 0)
	case arrow.DECIMAL256:
		_, scale := plan.DecimalParams(t)
		return plan.Decimal(38, min(scale, 38))
	}
	return t
}

// currentDatabase stands for the current database while the query of a view is
// bound. A NUL byte cannot be typed, so no text can name it.
const currentDatabase = "\x00current"

// viewNames answers for the query of a view that is created, and notes what of the
// text depends on where it stands. It implements bind.Relations.
type viewNames struct {
	relations
	home        string
	view        plan.TableName
	unqualified bool
	// self is the view that is created, once its query was bound by itself.
	self *catalog.View
}

// Relation implements bind.Relations.
func (v *viewNames) Relation(ctx context.Context, database, name string, at plan.AsOf) (*bind.Relation, error) {
	if database == currentDatabase && v.self != nil && name == v.view.Name {
		return &bind.Relation{View: v.self}, nil
	}
	if database == currentDatabase {
		if database = v.home; database == "" {
			return nil, fault.New(fault.NoDatabase, "No database selected")
		}
		v.unqualified = true
	}
	if full, _, err := v.st.engine.catalogs.Resolve(database, name); err == nil && full.Key() == v.view.Key() {
		return nil, fault.New(fault.BadStatement, "the query of view '%s' refers to the view itself", v.view.Name)
	}
	return v.relations.Relation(ctx, database, name, at)
}

// dropViews is DROP VIEW. All rights are asked, and all views looked for, before the
// first one is dropped.
func (st *statement) dropViews(ctx context.Context, x *parse.DropView) (*Result, error) {
	drop, notes, err := st.dropTargets(x.Views, "view", x.IfExists, func(o *object) error {
		if err := st.mayView(ctx, "DROP VIEW", o, viewDrop); err != nil {
			return err
		}
		names, err := o.catalog.Views(ctx, o.Namespace)
		if err == nil && !slices.Contains(names, o.Name) {
			err = o.missing()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, o := range drop {
		if err := o.changer.DropView(ctx, o.TableName, x.IfExists); err != nil {
			return nil, partly(o.hidden(err), i, "dropped")
		}
	}
	return st.warned(notes), nil
}

// alterView is ALTER VIEW with properties or a new name.
func (st *statement) alterView(ctx context.Context, x *parse.AlterView) (*Result, error) {
	o, err := st.named(x.View)
	if err != nil {
		return nil, err
	}
	if x.RenameTo != nil {
		return st.renameView(ctx, o, *x.RenameTo)
	}
	if err := st.mayView(ctx, "ALTER VIEW", o, viewWrite); err != nil {
		return nil, err
	}
	v, err := o.catalog.View(ctx, o.TableName)
	if err != nil {
		return nil, o.hidden(err)
	}
	if v.Catalog != o.TableName.Catalog {
		return nil, fault.New(fault.Unsupported, "view '%s' looks its names up in another catalog; the engine that wrote it has to change it", o.Name)
	}
	set, err := properties(x.Set)
	if err != nil {
		return nil, err
	}
	if err := has(v.Properties, x.Unset, x.UnsetIfExists); err != nil {
		return nil, err
	}
	props := maps.Clone(v.Properties)
	if props == nil {
		props = map[string]string{}
	}
	maps.Copy(props, set)
	for _, k := range x.Unset {
		delete(props, k)
	}
	d := catalog.ViewDefinition{SQL: v.SQL, Fields: v.Fields, Namespace: v.Namespace, Properties: props}
	_, err = o.changer.CreateView(ctx, o.TableName, d, catalog.ViewOptions{IfTaken: catalog.Replace})
	return st.done(nil, err)
}

// renameView is ALTER VIEW ... RENAME TO; a new name without a database stays in the
// old one.
func (st *statement) renameView(ctx context.Context, from *object, ref parse.TableRef) (*Result, error) {
	if ref.Database == "" {
		ref.Database = from.database
	}
	to, err := st.named(ref)
	if err != nil {
		return nil, err
	}
	if from.TableName.Catalog != to.TableName.Catalog {
		return nil, fault.New(fault.Unsupported, "a view cannot be renamed into another catalog; create it there")
	}
	if err := st.mayView(ctx, "RENAME", from, viewDrop); err != nil {
		return nil, err
	}
	if err := st.mayCreate(ctx, "RENAME", "view", to, viewCreate); err != nil {
		return nil, err
	}
	names, err := from.catalog.Views(ctx, from.Namespace)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, from.Name) {
		return nil, from.missing()
	}
	kind, err := st.occupant(ctx, to)
	if err != nil {
		return nil, err
	}
	if kind != free {
		return nil, to.exists(kind)
	}
	return st.done(nil, renaming{from, to, true}.run(ctx))
}
