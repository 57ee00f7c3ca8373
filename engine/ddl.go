package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// The access types that statements which define things ask for beside those of
// reading. Source: the polaris service definition.
const (
	namespaceCreate   policy.Privilege = "namespace-create"
	namespaceDrop     policy.Privilege = "namespace-drop"
	namespaceWrite    policy.Privilege = "namespace-properties-write"
	tableCreate       policy.Privilege = "table-create"
	tableDrop         policy.Privilege = "table-drop"
	tableDataWrite    policy.Privilege = "table-data-write"
	tableSchemaAdd    policy.Privilege = "table-schema-add"
	tableSchemaSet    policy.Privilege = "table-schema-set-current"
	tableSpecAdd      policy.Privilege = "table-partition-spec-add"
	tableSortAdd      policy.Privilege = "table-sort-order-add"
	tableSortSet      policy.Privilege = "table-sort-order-set-default"
	tablePropsSet     policy.Privilege = "table-properties-set"
	tablePropsRemove  policy.Privilege = "table-properties-remove"
	tableFormat       policy.Privilege = "table-format-version-upgrade"
	tableRefSet       policy.Privilege = "table-snapshot-ref-set"
	tableRefRemove    policy.Privilege = "table-snapshot-ref-remove"
	viewCreate        policy.Privilege = "view-create"
	viewDrop          policy.Privilege = "view-drop"
	viewWrite         policy.Privilege = "view-properties-write"
	mostDefinitionTry                  = 5
)

// ddl runs a statement that changes schemas, tables or views but no rows.
func (st *statement) ddl(ctx context.Context, stmt parse.Statement) (*Result, error) {
	ctx = catalog.MetadataOnly(ctx)
	switch x := stmt.(type) {
	case *parse.CreateSchema:
		return st.createSchema(ctx, x)
	case *parse.DropSchema:
		return st.dropSchema(ctx, x)
	case *parse.AlterSchema:
		return st.alterSchema(ctx, x)
	case *parse.CreateTable:
		return st.createTable(ctx, x)
	case *parse.DropTable:
		return st.dropTables(ctx, x)
	case *parse.RenameTable:
		return st.renameTables(ctx, x.Renames)
	case *parse.AlterTable:
		return st.alterTable(ctx, x)
	case *parse.CreateView:
		return st.createView(ctx, x)
	case *parse.DropView:
		return st.dropViews(ctx, x)
	case *parse.AlterView:
		return st.alterView(ctx, x)
	case *parse.Call:
		return st.call(ctx, x)
	}
	return nil, unsupported("this statement")
}

// isDDL reports whether a statement defines things and changes no rows.
func isDDL(stmt parse.Statement) bool {
	switch x := stmt.(type) {
	case *parse.CreateTable:
		return x.Query == nil
	case *parse.CreateSchema, *parse.DropSchema, *parse.AlterSchema, *parse.DropTable, *parse.RenameTable, *parse.AlterTable,
		*parse.CreateView, *parse.DropView, *parse.AlterView:
		return true
	case *parse.Call:
		switch x.Procedure {
		case parse.RollbackToSnapshot, parse.RollbackToTimestamp, parse.SetCurrentSnapshot:
			return true
		}
	}
	return false
}

// object is a table or view that a statement names, before anybody was asked
// whether there is one.
type object struct {
	plan.TableName
	catalog catalog.Catalog
	changer catalog.Changer
	// database is that of the statement, for messages.
	database string
}

func (o *object) missing() error { return missing(o.database, o.Name) }

// view is the object for the gate when it is a view.
func (o *object) view() policy.Object {
	v := policy.TableObject(o.TableName)
	v.View = true
	return v
}

// named finds the catalog of a table or view.
func (st *statement) named(ref parse.TableRef) (*object, error) {
	o := &object{database: ref.Database}
	if o.database == "" {
		o.database = st.session.Database()
	}
	if o.database == "" {
		return nil, fault.New(fault.NoDatabase, "No database selected")
	}
	var err error
	if o.TableName, o.catalog, err = st.engine.catalogs.Resolve(o.database, ref.Name); err != nil {
		return nil, o.missingAs(ref.Name)
	}
	o.changer, err = catalog.Changing(o.catalog)
	return o, err
}

func (o *object) missingAs(name string) error { return missing(o.database, name) }

// may asks the object gate for rights on an object, all of which are needed. It
// returns the first that is lacking, and whether the principal may see the object.
func (st *statement) may(o policy.Object, rights ...policy.Privilege) (lacking policy.Privilege, visible bool, err error) {
	var by []policy.Origin
	for _, p := range rights {
		d, err := st.authorize(o, p)
		if err != nil {
			return "", false, err
		}
		visible = visible || d.Visible
		if d.Allow {
			by = append(by, d.By...)
			continue
		}
		st.denied(o, p, d)
		if lacking == "" {
			lacking = p
		}
	}
	if lacking == "" {
		st.changed = append(st.changed, permission{object: o, rights: rights, by: by})
	}
	return lacking, visible, nil
}

// permission is what the object gate let the principal change, for the audit log.
type permission struct {
	object policy.Object
	rights []policy.Privilege
	by     []policy.Origin
}

// deniedRight is the refusal of somebody who may know of the object.
func (st *statement) deniedRight(command, kind, name string, right policy.Privilege) error {
	return fault.New(fault.Denied, "%s command denied to user '%s' for %s '%s'; it needs the right %s, ask an administrator for it", command, st.principal.Name, kind, name, right)
}

// mayTable asks for rights on a table. Whoever may not see it learns that it does
// not exist, as one would of a table that does not.
func (st *statement) mayTable(ctx context.Context, command string, o *object, rights ...policy.Privilege) error {
	lacking, visible, err := st.may(policy.TableObject(o.TableName), rights...)
	if err != nil || lacking == "" {
		return err
	}
	if visible {
		if there, err := o.there(ctx, false); err == nil && there {
			return st.deniedRight(command, "table", o.Name, lacking)
		}
	}
	return o.missing()
}

// mayView is mayTable for views.
func (st *statement) mayView(ctx context.Context, command string, o *object, rights ...policy.Privilege) error {
	lacking, visible, err := st.may(o.view(), rights...)
	if err != nil || lacking == "" {
		return err
	}
	if visible {
		names, err := o.catalog.Views(ctx, o.Namespace)
		if err == nil && slices.Contains(names, o.Name) {
			return st.deniedRight(command, "view", o.Name, lacking)
		}
	}
	return o.missing()
}

// mayCreate asks for the right to create in the namespace of a new table or view.
func (st *statement) mayCreate(ctx context.Context, command, kind string, o *object, right policy.Privilege) error {
	if _, meta := metadataSuffix(o.Name); meta != "" {
		return fault.New(fault.BadStatement, "the name '%s' is that of a metadata table; choose another one", o.Name)
	}
	lacking, visible, err := st.may(policy.Object{Catalog: o.TableName.Catalog, Namespace: o.Namespace}, right)
	if err != nil || lacking == "" {
		return err
	}
	if !visible {
		if visible, err = (relations{st}).HasDatabase(ctx, o.database); err != nil {
			return err
		}
	} else if has, err := st.hasNamespace(ctx, o.catalog, o.Namespace); err != nil || !has {
		visible = false
	}
	if visible {
		return st.deniedRight(command, kind, o.Name, lacking)
	}
	return unknownDatabase(o.database)
}

func unknownDatabase(name string) error {
	return fault.New(fault.NoDatabase, "Unknown database '%s'", name)
}

func (st *statement) hasNamespace(ctx context.Context, cat catalog.Catalog, namespace []string) (bool, error) {
	all, err := cat.Namespaces(ctx)
	return slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, namespace) }), err
}

// load loads a table for whose change the gate was asked.
func (o *object) load(ctx context.Context) (*plan.Table, error) {
	t, err := o.catalog.Table(ctx, o.TableName, plan.AsOf{}, "")
	return t, o.hidden(err)
}

// hidden gives the error of a catalog for a name that is not there the text that
// it has for one that may not be seen.
func (o *object) hidden(err error) error {
	if fault.Is(err, fault.NotFound) {
		return o.missing()
	}
	return err
}

// occupied says what has a name.
type occupied uint8

const (
	free occupied = iota
	byTable
	byView
	byHidden // by something of which the principal may not know
)

// occupant finds what has a name.
func (st *statement) occupant(ctx context.Context, o *object) (occupied, error) {
	tables, err := o.catalog.Tables(ctx, o.Namespace)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NoDatabase) {
		return free, unknownDatabase(o.database)
	}
	if err != nil {
		return free, err
	}
	views, err := o.catalog.Views(ctx, o.Namespace)
	if err != nil {
		return free, err
	}
	if len(tables)+len(views) == 0 {
		if has, err := st.hasNamespace(ctx, o.catalog, o.Namespace); err != nil || !has {
			return free, cmp.Or(err, unknownDatabase(o.database))
		}
	}
	var kind occupied
	var as policy.Object
	rights := []policy.Privilege{policy.TableList, policy.TableDataRead}
	switch {
	case slices.Contains(tables, o.Name):
		kind, as = byTable, policy.TableObject(o.TableName)
	case slices.Contains(views, o.Name):
		kind, as, rights = byView, o.view(), []policy.Privilege{policy.ViewList, policy.ViewProps}
	default:
		return free, nil
	}
	var last policy.Decision
	for _, p := range rights {
		d, err := st.authorize(as, p)
		if err != nil {
			return free, err
		}
		if d.Visible {
			return kind, nil
		}
		last = d
	}
	st.denied(as, rights[0], last)
	return byHidden, nil
}

// taken is the one error for a name that something has of which the principal may
// not know, whatever it is.
func (o *object) taken() error {
	return fault.New(fault.Exists, "the name '%s' cannot be used in database '%s'; choose another one", o.Name, o.database)
}

func (o *object) exists(kind occupied) error {
	switch kind {
	case byTable:
		return fault.New(fault.Exists, "Table '%s' already exists", o.Name)
	case byView:
		return fault.New(fault.Exists, "Table '%s' already exists: it is a view", o.Name)
	}
	return o.taken()
}

// properties are the properties of a statement, checked for what no statement may
// say.
func properties(list []parse.Property) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list {
		if err := checkPlace(p.Key); err != nil {
			return nil, err
		}
		out[p.Key] = p.Value
	}
	return out, nil
}

// places are properties that say where files lie.
var places = []string{"location", "write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"}

func checkPlace(key string) error {
	if slices.Contains(places, strings.ToLower(strings.TrimSpace(key))) {
		return fault.New(fault.BadStatement, "the property '%s' cannot be set or removed: the catalog decides where files lie", key)
	}
	return nil
}

// has refuses to remove properties that are not there.
func has(props map[string]string, keys []string, ifExists bool) error {
	for _, k := range keys {
		if err := checkPlace(k); err != nil {
			return err
		}
		if _, ok := props[k]; !ok && !ifExists {
			return fault.New(fault.BadStatement, "there is no property '%s'; UNSET ... IF EXISTS ignores what is not there", k)
		}
	}
	return nil
}
