package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
)

// grantResolver finds the objects of statements about access.
type grantResolver struct {
	*statement
	revoke bool // what is gone may be named
	all    bool // whoever asks may know of everything
	notes  []string
	// lists are the answers of catalogs: a statement asks once for each.
	lists map[string]listAnswer
}

type listAnswer struct {
	names [][]string
	err   error
}

func (r *grantResolver) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

// object is what a name means for a privilege, by its name in the profile.
func (r *grantResolver) object(ctx context.Context, o parse.GrantObject, privilege string) (grants.Object, error) {
	_, deepest := grants.Binds(privilege)
	switch {
	case o.Future:
		r.note("FUTURE is as ALL: policies have no words for what does not exist yet alone, so what exists now is covered too")
		fallthrough
	case o.All && o.In == parse.OnCatalog:
		if o.In != parse.OnCatalog {
			break
		}
		c, err := r.catalog(o.Parts[0])
		return grants.Object{Catalog: c, Namespace: []string{grants.Any}, Name: grants.Any, View: o.Kind == parse.OnView}, err
	case o.Everywhere:
		return r.everywhere(deepest)
	case o.Star:
		schema, err := r.namedSchema(ctx, o)
		if err != nil {
			return schema, err
		}
		return r.star(schema, privilege, deepest)
	case o.Kind == parse.OnCatalog:
		c, err := r.catalog(o.Parts[0])
		return grants.Object{Catalog: c}, err
	case !o.All && o.Kind == parse.OnSchema:
		return r.namedSchema(ctx, o)
	case !o.All && o.Kind == parse.OnDatabase:
		return r.database(ctx, o)
	}
	if o.All {
		schema, err := r.namedSchema(ctx, o)
		schema.Name, schema.View = grants.Any, o.Kind == parse.OnView
		return schema, err
	}
	return r.table(ctx, o, privilege)
}

func (r *grantResolver) catalog(name string) (string, error) {
	if _, ok := r.engine.catalogs.Get(name); !ok && !r.all {
		return "", fault.New(fault.NotFound, "there is no catalog '%s', or you may not use it", name)
	} else if !ok {
		return "", fault.New(fault.NotFound, "there is no catalog '%s'; the catalogs are %s", name, strings.Join(r.catalogs(), ", "))
	}
	return name, nil
}

func (st *statement) catalogs() []string {
	var out []string
	for _, c := range st.engine.catalogs.All() {
		out = append(out, c.Name())
	}
	return out
}

func (r *grantResolver) schema(o parse.GrantObject) (grants.Object, error) {
	database := ""
	if len(o.Parts) > 0 {
		database = o.Database()
	}
	if database == "" {
		database = r.session.Database()
	}
	if database == "" {
		return grants.Object{}, fault.New(fault.NoDatabase, "No database selected")
	}
	full, _, err := r.engine.catalogs.Resolve(database, "x")
	if err != nil {
		return grants.Object{}, unknownDatabase(database)
	}
	return grants.Object{Catalog: full.Catalog, Namespace: full.Namespace}, nil
}

// errNotGranted refuses grants on what belongs to no catalog.
var errNotGranted = fault.New(fault.BadStatement, "nothing is granted on information_schema: everybody may read it, and it shows each what they may see")

// notGranted reports whether a statement would give something on a database that the
// server itself makes.
func (r *grantResolver) notGranted(o grants.Object) bool {
	return !r.revoke && len(o.Namespace) == 1 && strings.EqualFold(o.Namespace[0], "information_schema")
}

// namedSchema is schema, for a statement that names it as one. Whoever may know is told
// when there is none.
func (r *grantResolver) namedSchema(ctx context.Context, o parse.GrantObject) (grants.Object, error) {
	out, err := r.schema(o)
	if err == nil && r.notGranted(out) {
		err = errNotGranted
	}
	if err != nil || r.revoke || !r.all {
		return out, err
	}
	cat, ok := r.engine.catalogs.Get(out.Catalog)
	if !ok {
		return out, nil
	}
	// A catalog that does not answer now is no reason not to grant.
	has, err := r.hasNamespace(ctx, cat, out.Namespace)
	if err != nil {
		return out, nil
	}
	if err := r.sameInPolicies(ctx, cat, out, has); err != nil {
		return out, err
	}
	if !has {
		hint := ""
		if _, ok := r.engine.catalogs.Get(strings.Join(out.Namespace, ".")); ok {
			hint = " (there is a catalog of that name: ON CATALOG " + out.Namespace[0] + ")"
		}
		r.note("there is no schema %s now; the statement is about one that will bear the name%s", out, hint)
	}
	return out, nil
}

// sameInPolicies looks for what differs from the object of a grant by upper and lower
// case alone: policies do not tell them apart, so that whatever is given on the one is
// given on the other. When only the other one is there it is the one that was meant.
// Whoever may not know of everything is told nothing.
func (r *grantResolver) sameInPolicies(ctx context.Context, cat catalog.Catalog, o grants.Object, exists bool) error {
	if r.revoke || !r.all {
		return nil
	}
	other, ok := r.alike(ctx, cat, o)
	switch {
	case !ok:
		return nil
	case !exists:
		return fault.New(fault.BadStatement, "there is no '%s' but '%s', and policies do not tell upper and lower case apart: name that", o, other)
	}
	r.note("it is also for %s: policies do not tell upper and lower case apart", other)
	return nil
}

// alike finds a schema, or a table or view, whose name differs from one by upper and
// lower case alone. It asks for what lies beside the levels of the name and nowhere else.
// Of a catalog that does not answer nothing is known.
func (r *grantResolver) alike(ctx context.Context, cat catalog.Catalog, o grants.Object) (grants.Object, bool) {
	level := [][]string{nil}
	for _, n := range o.Namespace {
		var next [][]string
		for _, parent := range level {
			below, _ := r.namespacesIn(ctx, cat, parent)
			for _, ns := range below {
				if strings.EqualFold(ns[len(ns)-1], n) {
					next = append(next, ns)
				}
			}
		}
		level = next
	}
	for _, ns := range level {
		same := slices.Equal(ns, o.Namespace)
		out := grants.Object{Catalog: o.Catalog, Namespace: ns}
		if o.Name == "" {
			if !same {
				return out, true
			}
			continue
		}
		tables, _ := r.tablesIn(ctx, cat, ns)
		views, _ := r.viewsIn(ctx, cat, ns)
		for _, n := range append(slices.Clone(tables), views...) {
			if out.Name = n; strings.EqualFold(n, o.Name) && !(same && n == o.Name) {
				return out, true
			}
		}
	}
	return o, false
}

// targets are the objects for which a privilege is meant, by the word that was written
// and its name in the profile. MySQL's stars have the meaning that they have there, or
// none.
func (r *grantResolver) targets(ctx context.Context, o parse.GrantObject, written, privilege string, s *grants.Statement) ([]grants.Object, error) {
	star := o.Star || o.Everywhere
	switch {
	case star && written == "USAGE" && o.Everywhere && s.Verb != grants.Deny:
		r.note("USAGE ON *.* is MySQL's word for no privilege, so nothing is done; USE ON SCHEMA name lets one find a schema")
		return nil, nil
	case star && written == "USAGE":
		return nil, fault.New(fault.BadStatement, "USAGE on a star is MySQL's word for no privilege; USE ON SCHEMA name lets one find a schema")
	case star && privilege == grants.All && s.Verb == grants.Revoke && !s.Option:
		return r.everything(o)
	case o.Everywhere && privilege == grants.All:
		return nil, fault.New(fault.BadStatement, "%s %s ON *.* has no one meaning: what is about the catalog itself is given ON CATALOG name, what is in it with SELECT, MODIFY, ALTER, DROP ON ALL TABLES IN CATALOG name", s.Verb, privilege)
	case o.All && o.Kind != parse.OnView && !r.revoke && (privilege == "SELECT VIEW" || privilege == "DROP VIEW"):
		return nil, fault.New(fault.BadStatement, "%s is for views; write %s ON ALL VIEWS", privilege, strings.Replace(privilege, " VIEW", "", 1))
	}
	object, err := r.object(ctx, o, privilege)
	return []grants.Object{object}, err
}

// everything is on what grants with a star are written: REVOKE ALL with the same star
// takes them back. What single tables and schemas have of their own stays, as in MySQL.
func (r *grantResolver) everything(o parse.GrantObject) ([]grants.Object, error) {
	var out []grants.Object
	if o.Everywhere {
		catalog, err := r.everywhere(grants.CatalogLevel)
		if err != nil {
			return nil, err
		}
		schemas := grants.Object{Catalog: catalog.Catalog, Namespace: []string{grants.Any}}
		out = append(out, catalog, schemas)
	} else {
		schema, err := r.schema(o)
		if err != nil {
			return nil, err
		}
		out = append(out, schema)
	}
	tables := out[len(out)-1]
	tables.Name = grants.Any
	r.note("ALL on a star takes back what was granted on %s as a whole; what is granted on something in it by name stays (SHOW GRANTS TO lists it)", tables)
	out = append(out, tables)
	slices.Reverse(out) // the way goes last
	return out, nil
}

// database is DATABASE name: a schema, or the catalog of that name when there is no
// such schema.
func (r *grantResolver) database(ctx context.Context, o parse.GrantObject) (grants.Object, error) {
	schema, err := r.schema(o)
	if err != nil {
		return schema, err
	}
	if _, ok := r.engine.catalogs.Get(o.Database()); !ok || len(o.Parts) != 1 {
		return r.namedSchema(ctx, o)
	}
	has, err := r.hasNamespace(ctx, r.engine.catalogs.Default(), schema.Namespace)
	if err == nil && has && !r.all {
		has, err = r.visible(policy.Object{Catalog: schema.Catalog, Namespace: schema.Namespace}, policy.NamespaceList)
	}
	if err != nil || has {
		return schema, err
	}
	r.note("DATABASE %s is taken for the catalog: there is no schema of that name; ON CATALOG says so", o.Parts[0])
	return grants.Object{Catalog: o.Parts[0]}, nil
}

// everywhere is MySQL's *.*, which is one thing where there is one catalog.
func (r *grantResolver) everywhere(deepest grants.Level) (grants.Object, error) {
	all := r.catalogs()
	if len(all) > 1 && !r.all {
		return grants.Object{}, fault.New(fault.BadStatement, "*.* may be all of several catalogs; name one: ON ALL TABLES IN CATALOG name, or ON CATALOG name")
	}
	if len(all) > 1 {
		return grants.Object{}, fault.New(fault.BadStatement, "*.* may be all of several catalogs (%s); name one: ON ALL TABLES IN CATALOG %s, or ON CATALOG %s", strings.Join(all, ", "), all[0], all[0])
	}
	switch deepest {
	case grants.TableLevel:
		r.note("*.* is all tables of catalog %s; views are granted with ON ALL VIEWS IN CATALOG %s", all[0], all[0])
		return grants.Object{Catalog: all[0], Namespace: []string{grants.Any}, Name: grants.Any}, nil
	case grants.NamespaceLevel:
		return grants.Object{Catalog: all[0], Namespace: []string{grants.Any}}, nil
	}
	return grants.Object{Catalog: all[0]}, nil
}

// star is MySQL's db.*.
func (r *grantResolver) star(schema grants.Object, privilege string, deepest grants.Level) (grants.Object, error) {
	switch deepest {
	case grants.CatalogLevel:
		return schema, fault.New(fault.BadStatement, "%s ON %s.* has no one meaning: %s is a privilege on a catalog. Name what is to be allowed: SELECT, MODIFY, ALTER, DROP ON ALL TABLES IN SCHEMA, and USE, CREATE, CREATE VIEW ON SCHEMA", privilege, schema, privilege)
	case grants.TableLevel:
		r.note("%s.* is all tables of %s; views are granted with ON ALL VIEWS IN SCHEMA", schema, schema)
		schema.Name = grants.Any
	}
	return schema, nil
}

// table is a table or view. Without a word for which it is the catalog tells.
func (r *grantResolver) table(ctx context.Context, o parse.GrantObject, privilege string) (grants.Object, error) {
	name, err := r.tableName(o.Table())
	if err != nil {
		return grants.Object{}, err
	}
	out := grants.Object{Catalog: name.Catalog, Namespace: name.Namespace, Name: name.Name, View: o.Kind == parse.OnView}
	cat, ok := r.engine.catalogs.Get(name.Catalog)
	if !ok {
		return out, missing(o.Table().Database, name.Name)
	}
	isTable, isView, err := r.kindOf(ctx, cat, out)
	if err == nil && !r.all {
		// Nobody learns from a refusal what there is.
		if isTable {
			isTable, err = r.visible(policy.Object{Catalog: out.Catalog, Namespace: out.Namespace, Name: out.Name}, policy.TableList)
		}
		if isView && err == nil {
			isView, err = r.visible(policy.Object{Catalog: out.Catalog, Namespace: out.Namespace, Name: out.Name, View: true}, policy.ViewList)
		}
	}
	forViews := !r.revoke && (privilege == "SELECT VIEW" || privilege == "DROP VIEW")
	switch {
	case err != nil:
		return out, err
	case r.notGranted(out):
		return out, errNotGranted
	case forViews && isTable:
		return out, fault.New(fault.BadStatement, "'%s' is a table, and %s is for views; write %s ON TABLE %s", out, privilege, strings.Replace(privilege, " VIEW", "", 1), out)
	case o.Kind == parse.OnNothing && (isView && !isTable || forViews):
		out.View = true
	case o.Kind == parse.OnTable && isView:
		return out, fault.New(fault.BadStatement, "'%s' is a view; write ON VIEW %s", out, out)
	case o.Kind == parse.OnView && isTable:
		return out, fault.New(fault.BadStatement, "'%s' is a table; write ON TABLE %s", out, out)
	}
	if err := r.sameInPolicies(ctx, cat, out, isTable || isView); err != nil {
		return out, err
	}
	if !isTable && !isView && !r.revoke && r.all {
		hint := ""
		if schema := []string{out.Name}; len(o.Parts) == 1 {
			if has, err := r.hasNamespace(ctx, cat, schema); err == nil && has {
				hint = " (there is a schema of that name: ON SCHEMA " + out.Name + ")"
			}
		}
		r.note("there is no table or view %s now; the statement is about one that will bear the name%s", out, hint)
	}
	return out, nil
}

// visible reports whether the principal may know of an object.
func (st *statement) visible(o policy.Object, p policy.Privilege) (bool, error) {
	d, err := st.authorize(o, p)
	return d.Visible, err
}

// kindOf says what bears a name in the catalog.
func (r *grantResolver) kindOf(ctx context.Context, cat catalog.Catalog, o grants.Object) (isTable, isView bool, err error) {
	tables, err := r.tablesIn(ctx, cat, o.Namespace)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NoDatabase) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	views, err := r.viewsIn(ctx, cat, o.Namespace)
	return slices.Contains(tables, o.Name), slices.Contains(views, o.Name), err
}

// hasNamespace asks for what is beside a namespace, and not for all there are.
func (r *grantResolver) hasNamespace(ctx context.Context, cat catalog.Catalog, namespace []string) (bool, error) {
	if len(namespace) == 0 {
		return false, nil
	}
	all, err := r.namespacesIn(ctx, cat, namespace[:len(namespace)-1])
	return slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, namespace) }), err
}
