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

// ahead notices that a statement goes through names one after the other, as those
// of information_schema do, so that a catalog behind a network can be asked for the
// next ones together. The zero value has noticed nothing.
type ahead struct {
	mu        sync.Mutex
	databases walk
	tables    map[string]*walk // by database
	expected  map[string]bool  // the names that were asked for together
}

// first reports whether a name is expected for the first time.
func (a *ahead) first(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.expected == nil {
		a.expected = map[string]bool{}
	}
	if a.expected[key] {
		return false
	}
	a.expected[key] = true
	return true
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

// walking reports whether the list is gone through.
func (w *walk) walking() bool { return w.steps >= aWalk }

// next is what to ask for before name is, and what comes after it. sure: the list is gone
// through, whatever was seen of it.
func (w *walk) next(name string, sure bool) []string {
	i := slices.Index(w.names, name)
	if w.steps++; i < 0 || !w.walking() && !sure || i < w.to {
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
	next := r.st.ahead.databases.next(database, false)
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
		// Who goes through the databases goes through the tables of each.
		next = w.next(name, r.st.ahead.databases.walking())
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

// expect has what a statement names asked for together, as far as the principal may
// read it: binding asks for one after the other. Names without a database are in the
// one given.
func (r relations) expect(ctx context.Context, names []parse.Named, database string) {
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
		if !ok || !r.st.ahead.first(full.Key()) {
			continue
		}
		if w := r.wanted(full); w.Table || w.View {
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

// wanted is as what the principal may read a name.
func (r relations) wanted(name plan.TableName) catalog.Wanted {
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

// expectView is expect of the query of a view, whose names without a database are in
// that of the view.
func (r relations) expectView(ctx context.Context, text, database string) {
	if stmt, rest, err := parse.Parse(text); err == nil && rest == "" {
		r.expect(ctx, parse.NamesOf(stmt), database)
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
