package engine

import (
	"context"
	"slices"
	"sync"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/plan"
	"sqe/policy"
)

// ahead notices that a statement goes through names one after the other, as those
// of information_schema do, so that a catalog behind a network can be asked for the
// next ones together. The zero value has noticed nothing.
type ahead struct {
	mu        sync.Mutex
	databases walk
	tables    map[string]*walk // by database
}

// walk is a way through a list.
type walk struct {
	names []string
	steps int
	// to is how far what comes next was asked for.
	to int
}

// How many steps make a walk, and how many names are asked for together.
const (
	aWalk     = 2
	mostAhead = 64
)

// next is what to ask for before name is, and what comes after it.
func (w *walk) next(name string) []string {
	i := slices.Index(w.names, name)
	if w.steps++; i < 0 || w.steps < aWalk || i < w.to {
		return nil
	}
	w.to = min(i+mostAhead, len(w.names))
	return w.names[i:w.to]
}

// listed is told the databases in the order in which they were given.
func (a *ahead) listed(databases []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.databases = walk{names: databases}
}

// named is told the tables of a database in the order in which they were given.
func (a *ahead) named(database string, tables []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tables == nil {
		a.tables = map[string]*walk{}
	}
	if a.tables[database] == nil {
		a.tables[database] = &walk{names: tables}
	}
}

// namesAhead has the names of the databases that come after one asked for.
func (r relations) namesAhead(ctx context.Context, cat catalog.Catalog, database string) {
	p, ok := cat.(catalog.Preloader)
	if !ok {
		return
	}
	r.st.ahead.mu.Lock()
	next := r.st.ahead.databases.next(database)
	r.st.ahead.mu.Unlock()
	var namespaces [][]string
	for _, d := range next {
		if full, other, err := r.st.engine.catalogs.Resolve(d, "x"); err == nil && other == cat {
			namespaces = append(namespaces, full.Namespace)
		}
	}
	if len(namespaces) > 1 {
		p.PreloadNames(ctx, namespaces)
	}
}

// tablesAhead has the tables that come after one asked for, as far as the principal
// may read them.
func (r relations) tablesAhead(ctx context.Context, cat catalog.Catalog, database, name string) {
	p, ok := cat.(catalog.Preloader)
	if !ok {
		return
	}
	r.st.ahead.mu.Lock()
	var next []string
	if w := r.st.ahead.tables[database]; w != nil {
		next = w.next(name)
	}
	r.st.ahead.mu.Unlock()
	var tables []plan.TableName
	for _, n := range next {
		full, _, err := r.st.engine.catalogs.Resolve(database, n)
		if err != nil {
			continue
		}
		if d, err := r.st.authorize(policy.TableObject(full), policy.TableDataRead); err == nil && d.Allow {
			tables = append(tables, full)
		}
	}
	if len(tables) > 1 {
		p.PreloadTables(ctx, tables)
	}
}

// named has the tables that a statement names, as far as the principal may read them:
// binding asks for one after the other.
func (r relations) named(ctx context.Context, sql *parse.SQL) {
	if !slices.ContainsFunc(r.st.engine.catalogs.All(), func(c catalog.Catalog) bool { _, ok := c.(catalog.Preloader); return ok }) {
		return
	}
	tables := map[catalog.Preloader][]plan.TableName{}
	for _, n := range parse.Names(sql.AST) {
		if n.Database == "" {
			n.Database = r.st.session.vars.Database()
		}
		name, _ := metadataSuffix(n.Name)
		full, cat, err := r.st.engine.catalogs.Resolve(n.Database, name)
		if err != nil {
			continue
		}
		p, ok := cat.(catalog.Preloader)
		if !ok || slices.ContainsFunc(tables[p], func(o plan.TableName) bool { return o.Key() == full.Key() }) {
			continue
		}
		if d, err := r.st.authorize(policy.TableObject(full), policy.TableDataRead); err == nil && d.Allow {
			tables[p] = append(tables[p], full)
		}
	}
	for p, names := range tables {
		if len(names) > 1 {
			p.PreloadTables(ctx, names)
		}
	}
}

// visibleAhead has the names in the namespaces that the principal may see only for
// what is in them.
func (r relations) visibleAhead(ctx context.Context, cat catalog.Catalog, namespaces [][]string) {
	p, ok := cat.(catalog.Preloader)
	if !ok {
		return
	}
	var unclear [][]string
	for _, ns := range namespaces {
		if d, err := r.st.authorize(policy.Object{Catalog: cat.Name(), Namespace: ns}, policy.NamespaceList); err == nil && !d.Visible {
			unclear = append(unclear, ns)
		}
	}
	if len(unclear) > 1 {
		p.PreloadNames(ctx, unclear)
	}
}
