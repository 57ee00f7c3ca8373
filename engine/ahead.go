package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/plan"
	"sqe/policy"
)

// readAhead notices that a statement goes through lists of names one after the other,
// as those of information_schema do, so that a catalog behind a network can be asked
// for the next ones in one go. It belongs to one statement; the zero value has noticed
// nothing.
type readAhead struct {
	mu         sync.Mutex
	databases  listWalk
	tables     map[string]*listWalk // by database
	prefetched map[string]bool      // the tables and views that the text names, by key
}

// claim reports whether nobody claimed the name before, so that it is prefetched once.
func (a *readAhead) claim(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.prefetched == nil {
		a.prefetched = map[string]bool{}
	}
	if a.prefetched[key] {
		return false
	}
	a.prefetched[key] = true
	return true
}

// listWalk is how far a statement went through a list of names.
type listWalk struct {
	names []string
	// lookups counts what was asked for since the list was given.
	lookups int
	// prefetchedTo is the index behind the last name that was prefetched.
	prefetchedTo int
}

const (
	// walkLookups is the number of lookups that make a walk of a list: one alone may be
	// of a statement that names a table.
	walkLookups = 2
	// prefetchBatch is the most names that are prefetched in one go.
	prefetchBatch = 64
)

// walking reports whether the statement goes through the whole list.
func (w *listWalk) walking() bool { return w.lookups >= walkLookups }

// batch notes the lookup of name and returns what to prefetch before it: name and
// those after it, nothing where that was done. With sure, the statement is known to go
// through the list from its first lookup on.
func (w *listWalk) batch(name string, sure bool) []string {
	w.lookups++
	i := slices.Index(w.names, name)
	if i < w.prefetchedTo || !w.walking() && !sure {
		return nil
	}
	w.prefetchedTo = min(i+prefetchBatch, len(w.names))
	return w.names[i:w.prefetchedTo]
}

// setDatabases notes the list of databases that the statement was given.
func (a *readAhead) setDatabases(databases []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.databases = listWalk{names: databases}
}

// setTables notes the list of tables of a database that the statement was given.
func (a *readAhead) setTables(database string, tables []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tables == nil {
		a.tables = map[string]*listWalk{}
	}
	if a.tables[database] == nil {
		a.tables[database] = &listWalk{names: tables}
	}
}

// prefetchNames asks the catalog for the names in the database and in those after it,
// when the statement goes through databases.
func (r relations) prefetchNames(ctx context.Context, cat catalog.Catalog, database string) {
	p, ok := cat.(catalog.Preloader)
	if !ok {
		return
	}
	r.st.ahead.mu.Lock()
	next := r.st.ahead.databases.batch(database, false)
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

// prefetchTables asks the catalog for the table and for those after it, as far as the
// principal may read them, when the statement goes through the tables of the database.
func (r relations) prefetchTables(ctx context.Context, cat catalog.Catalog, database, name string) {
	p, ok := cat.(catalog.Preloader)
	if !ok {
		return
	}
	r.st.ahead.mu.Lock()
	var next []string
	if w := r.st.ahead.tables[database]; w != nil {
		// Who goes through the databases goes through the tables of each.
		next = w.batch(name, r.st.ahead.databases.walking())
	}
	r.st.ahead.mu.Unlock()
	var tables []catalog.Wanted
	for _, n := range next {
		full, _, err := r.st.engine.catalogs.Resolve(database, n)
		if err != nil {
			continue
		}
		if d, err := r.st.authorize(policy.TableObject(full), policy.TableDataRead); err == nil && d.Allow {
			tables = append(tables, catalog.Wanted{Name: full, Table: true})
		}
	}
	if len(tables) > 1 {
		p.Preload(ctx, tables)
	}
}

// prefetchNamed asks catalogs in one go for what the text of a statement names, as far
// as the principal may read it: binding asks for one after the other. Names without a
// database are in the one given.
func (r relations) prefetchNamed(ctx context.Context, names []parse.Named, database string) {
	wanted := map[catalog.Preloader][]catalog.Wanted{}
	for _, n := range names {
		if n.Database == "" {
			n.Database = database
		}
		if n.Database == "" || slices.ContainsFunc(systemDatabases, func(own string) bool { return strings.EqualFold(n.Database, own) }) {
			continue
		}
		name, _ := metadataSuffix(n.Name)
		full, cat, err := r.st.engine.catalogs.Resolve(n.Database, name)
		if err != nil {
			continue
		}
		p, ok := cat.(catalog.Preloader)
		if !ok || !r.st.ahead.claim(full.Key()) {
			continue
		}
		if w := r.readableAs(full); w.Table || w.View {
			wanted[p] = append(wanted[p], w)
		}
	}
	var g sync.WaitGroup
	for p, all := range wanted {
		if len(all) > 1 || len(wanted) > 1 {
			g.Go(func() { p.Preload(ctx, all) })
		}
	}
	g.Wait()
}

// readableAs says whether the principal may read the name as a table and as a view.
func (r relations) readableAs(name plan.TableName) catalog.Wanted {
	object := policy.TableObject(name)
	view := object
	view.View = true
	w := catalog.Wanted{Name: name}
	if d, err := r.st.authorize(object, policy.TableDataRead); err == nil {
		w.Table = d.Allow
	}
	if d, err := r.st.authorize(view, policy.ViewProps); err == nil {
		w.View = d.Allow
	}
	return w
}

// prefetchView is prefetchNamed for the query of a view, whose names without a database
// are in that of the view.
func (r relations) prefetchView(ctx context.Context, text, database string) {
	if stmt, rest, err := parse.Parse(text); err == nil && rest == "" {
		r.prefetchNamed(ctx, parse.NamesOf(stmt), database)
	}
}

// prefetchUnlisted asks the catalog for the names in those namespaces that the
// principal may not list, and sees only when it may see something in them.
func (r relations) prefetchUnlisted(ctx context.Context, cat catalog.Catalog, namespaces [][]string) {
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
