package engine

import (
	"context"
	"slices"
	"strings"

	"sqe/catalog"
	"sqe/engine/bind"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/restrictions"
)

// relations answers what binding asks about names, for one statement: through
// both gates. It implements bind.Relations.
type relations struct{ st *statement }

// missing is the one error for a table that does not exist and for one that the
// principal may not know of.
func missing(database, name string) error {
	return fault.New(fault.NotFound, "Table '%s.%s' doesn't exist, or you may not use it", database, name)
}

// metadataSuffix splits "t$snapshots" into the table and the kind of metadata
// table; kind is "" for an ordinary name.
func metadataSuffix(name string) (table, kind string) {
	if i := strings.LastIndexByte(name, '$'); i > 0 && i < len(name)-1 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// Relation implements bind.Relations.
func (r relations) Relation(ctx context.Context, database, name string, at plan.AsOf) (*bind.Relation, error) {
	base, kind := metadataSuffix(name)
	full, cat, err := r.st.engine.catalogs.Resolve(database, base)
	if err != nil {
		return nil, missing(database, name)
	}
	object := policy.TableObject(full)
	// The gate is asked before the catalog, so that the answer for a forbidden
	// name takes the same way whether or not the table exists.
	read, err := r.st.authorize(object, policy.TableDataRead)
	if err != nil {
		return nil, err
	}
	if read.Allow {
		r.prefetchTables(ctx, cat, database, base)
		rel, err := r.readable(ctx, cat, full, at, kind, read)
		if !fault.Is(err, fault.NotFound) {
			return rel, err
		}
	}
	if kind == "" {
		view := object
		view.View = true
		d, err := r.st.authorize(view, policy.ViewProps)
		if err != nil {
			return nil, err
		}
		if d.Allow {
			v, err := cat.View(ctx, full)
			if err == nil {
				r.prefetchView(ctx, v.SQL, database)
				return &bind.Relation{View: v}, nil
			}
			if !fault.Is(err, fault.NotFound) {
				return nil, err
			}
		}
	}
	if !read.Allow {
		r.st.denied(object, policy.TableDataRead, read)
		if read.Visible {
			// Only a table that really exists may be told apart: the principal sees
			// it in SHOW TABLES.
			if names, err := cat.Tables(ctx, full.Namespace); err == nil && slices.Contains(names, full.Name) {
				return nil, fault.New(fault.Denied, "SELECT command denied to user '%s' for table '%s'; ask an administrator for SELECT on it", r.st.principal.Name, full.Name)
			}
		}
	}
	return nil, missing(database, name)
}

// readable is a table that the object gate lets the principal read.
func (r relations) readable(ctx context.Context, cat catalog.Catalog, full plan.TableName, at plan.AsOf, kind string, read policy.Decision) (*bind.Relation, error) {
	if kind != "" && !at.IsZero() {
		// Whether there is such a version is nothing for those who may not read the
		// metadata of the present one.
		now, err := cat.Table(ctx, full, plan.AsOf{}, kind)
		if err != nil {
			return nil, err
		}
		if _, err := r.st.bound(ctx, now); err != nil {
			return nil, err
		}
	}
	t, err := cat.Table(ctx, full, at, kind)
	if err != nil {
		if !at.IsZero() {
			err = r.st.unreadable(ctx, cat, full, err)
		}
		return nil, err
	}
	r.st.allowed = append(r.st.allowed, grant{t, read.By, read.ByAddress})
	rel, err := r.table(ctx, t)
	if err != nil && kind == "" && !at.IsZero() {
		err = r.st.unreadable(ctx, cat, full, err)
	}
	return rel, err
}

// table asks the data gate which columns are withheld.
func (r relations) table(ctx context.Context, t *plan.Table) (*bind.Relation, error) {
	bound, err := r.st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	withheld := map[int]bool{}
	for id := range bound.Withheld() {
		withheld[id] = !bound.Fails(id)
	}
	return &bind.Relation{Table: t, Withheld: withheld}, nil
}

// Databases implements bind.Relations.
func (r relations) Databases(ctx context.Context) ([]string, error) {
	var out []string
	for _, cat := range r.st.engine.catalogs.All() {
		namespaces, err := r.st.namespaces(ctx, cat)
		if err != nil {
			return nil, err
		}
		r.prefetchUnlisted(ctx, cat, namespaces)
		for _, ns := range namespaces {
			ok, err := r.visibleNamespace(ctx, cat, ns)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, r.st.engine.catalogs.Database(cat.Name(), ns))
			}
		}
	}
	r.st.ahead.setDatabases(out)
	return out, nil
}

// namespaces lists those of a catalog for a list of everything. Of a catalog that
// decides by the token of the user a session without a token has none, and is warned
// of that.
func (st *statement) namespaces(ctx context.Context, cat catalog.Catalog) ([][]string, error) {
	all, err := cat.Namespaces(ctx)
	if err == nil || !catalog.WithoutToken(err) {
		return all, err
	}
	note := "catalog '" + cat.Name() + "' is left out: it decides by the token of the user, and this session has none"
	if !slices.Contains(st.absent, note) {
		st.absent = append(st.absent, note)
	}
	st.session.vars.AddWarning(note)
	return nil, nil
}

// visibleNamespace reports whether the principal may know of the namespace:
// because it may list it, or because it may see something in it.
func (r relations) visibleNamespace(ctx context.Context, cat catalog.Catalog, ns []string) (bool, error) {
	d, err := r.st.authorize(policy.Object{Catalog: cat.Name(), Namespace: ns}, policy.NamespaceList)
	if err != nil || d.Visible {
		return err == nil, err
	}
	tables, views, err := r.names(ctx, cat, ns)
	return len(tables)+len(views) > 0, err
}

// HasDatabase implements bind.Relations.
func (r relations) HasDatabase(ctx context.Context, database string) (bool, error) {
	full, cat, err := r.st.engine.catalogs.Resolve(database, "x")
	if err != nil {
		return false, nil
	}
	d, err := r.st.authorize(policy.Object{Catalog: cat.Name(), Namespace: full.Namespace}, policy.NamespaceList)
	if err != nil {
		return false, err
	}
	namespaces, err := cat.Namespaces(ctx)
	if err != nil {
		return false, err
	}
	exists := false
	for _, ns := range namespaces {
		exists = exists || slices.Equal(ns, full.Namespace)
	}
	if d.Visible {
		return exists, nil
	}
	// The catalog is asked for names also where there is no such namespace: how long the
	// answer takes does not tell the two apart.
	tables, views, err := r.names(ctx, cat, full.Namespace)
	if !exists {
		if _, after := cat.Views(ctx, full.Namespace); err == nil {
			err = after
		}
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NoDatabase) {
			err = nil
		}
		return false, err
	}
	return len(tables)+len(views) > 0, err
}

// Names implements bind.Relations.
func (r relations) Names(ctx context.Context, database string) (tables, views []string, err error) {
	full, cat, err := r.st.engine.catalogs.Resolve(database, "x")
	if err != nil {
		return nil, nil, fault.New(fault.NoDatabase, "Unknown database '%s'", database)
	}
	r.prefetchNames(ctx, cat, database)
	tables, views, err = r.names(ctx, cat, full.Namespace)
	r.st.ahead.setTables(database, tables)
	return tables, views, err
}

func (r relations) names(ctx context.Context, cat catalog.Catalog, ns []string) (tables, views []string, err error) {
	visible := func(all []string, view bool, privs ...policy.Privilege) ([]string, error) {
		var out []string
		for _, name := range all {
			o := policy.Object{Catalog: cat.Name(), Namespace: ns, Name: name, View: view}
			for _, p := range privs {
				d, err := r.st.authorize(o, p)
				if err != nil {
					return nil, err
				}
				if d.Visible {
					out = append(out, name)
					break
				}
			}
		}
		return out, nil
	}
	all, err := cat.Tables(ctx, ns)
	if err != nil {
		return nil, nil, err
	}
	if tables, err = visible(all, false, policy.TableList, policy.TableDataRead); err != nil {
		return nil, nil, err
	}
	if all, err = cat.Views(ctx, ns); err != nil {
		return nil, nil, err
	}
	views, err = visible(all, true, policy.ViewList, policy.ViewProps)
	return tables, views, err
}

// definer answers names in a policy text: with the rights of the policy, without
// either gate. What it finds is read only inside that policy's own expression
// (rewrite.Verify holds the plan to that). It implements bind.Relations.
type definer struct {
	st *statement
	// home is the database in which unqualified names of the text are looked up:
	// that of the table that the policy protects.
	home string
	// read collects the tables that the text reads, for the cache to notice their
	// changes.
	read *[]*plan.Table
}

// Relation implements bind.Relations.
func (d definer) Relation(ctx context.Context, database, name string, at plan.AsOf) (*bind.Relation, error) {
	if database == "" {
		database = d.home
	}
	full, cat, err := d.st.engine.catalogs.Resolve(database, name)
	if err != nil {
		return nil, missing(database, name)
	}
	t, err := cat.Table(ctx, full, at, "")
	if err != nil {
		return nil, err
	}
	// The rights of a policy are not above the catalog's demand of this principal's
	// reads: what it restricts is not read whole in order to decide about others.
	if !restrictions.Compile(catalog.ReadRestrictions(t), t).Unrestricted() {
		return nil, fault.New(fault.Unsupported, "a policy reads table '%s', which its catalog restricts for you", name)
	}
	*d.read = append(*d.read, t)
	return &bind.Relation{Table: t}, nil
}

// Databases implements bind.Relations.
func (definer) Databases(context.Context) ([]string, error) { return nil, nil }

// HasDatabase implements bind.Relations.
func (d definer) HasDatabase(_ context.Context, database string) (bool, error) {
	_, _, err := d.st.engine.catalogs.Resolve(database, "x")
	return err == nil, nil
}

// Names implements bind.Relations.
func (definer) Names(context.Context, string) (tables, views []string, err error) {
	return nil, nil, nil
}

var (
	_ bind.Relations = relations{}
	_ bind.Relations = definer{}
)
