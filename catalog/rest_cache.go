package catalog

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// absentFor is how long it is kept, within the bound, that something is not there or
// may not be seen. It is much shorter than the bound: whoever is given a right tries at
// once. A name is asked for four times a second at most.
const absentFor = 250 * time.Millisecond

// scoped is what a principal asked for: a kind and a name.
type scoped struct{ scope, what string }

// The kinds of scoped.what.
const (
	tableKind      = "table "
	definitionKind = "definition " // a table without access to its rows
	viewKind       = "view "
)

// MetadataOnly marks a statement that defines things and neither reads nor writes rows.
// Of a catalog that decides as the user, no access to the rows is asked for then: who may
// change a definition need not be one who may read. The files of tables that are loaded
// with such a context cannot be opened.
func MetadataOnly(ctx context.Context) context.Context { return rest.MetadataOnly(ctx) }

// Aside marks a context in which the server looks around for itself. What is kept is
// used, and what is read is not kept: a walk through all tables would take the place of
// those that statements read again and again.
func Aside(ctx context.Context) context.Context { return rest.Aside(ctx) }

// tableScoped is a table as it is asked for with ctx. Who may see the definition may not
// be one who may read the rows.
func tableScoped(ctx context.Context, scope string, name plan.TableName) scoped {
	if rest.IsMetadataOnly(ctx) {
		return scoped{scope, definitionKind + name.Key()}
	}
	return scoped{scope, tableKind + name.Key()}
}

type kept[T any] struct {
	is    T
	until time.Time
}

// absence is what the catalog did not show to a scope, and what was said of it.
type absence struct {
	err error // the fault; nil: an empty list
	// refused is the answer of the catalog when it was a refusal, and object what it was
	// about: the operator is told each time.
	refused error
	object  plan.TableName
	until   time.Time
}

// Keys of what is not a table or view that was shown.
type (
	listKey   scoped
	absentKey scoped
)

// restCache keeps answers of the catalog by who asked: of tables *restTable, of views
// kept[*View], by listKey kept[any] and by absentKey absence.
type restCache struct {
	*retained

	changing sync.Mutex
	// changes counts what this process changed: what was asked for before a change is
	// not kept after it.
	changes uint64
}

// now is the count of changes, to be taken before the catalog is asked.
func (k *restCache) now() uint64 {
	k.changing.Lock()
	defer k.changing.Unlock()
	return k.changes
}

// add keeps an answer, unless something was changed since it was asked for.
func (k *restCache) add(before uint64, add func()) {
	k.changing.Lock()
	defer k.changing.Unlock()
	if before == k.changes {
		add()
	}
}

// changed forgets the lists, what was absent and, of a table or view, what is known.
func (c *REST) changed(names ...plan.TableName) {
	k := &c.cache
	k.changing.Lock()
	defer k.changing.Unlock()
	k.changes++
	changed := map[string]bool{}
	for _, n := range names {
		changed[tableKind+n.Key()], changed[definitionKind+n.Key()], changed[viewKind+n.Key()] = true, true, true
	}
	k.forgetIf(func(key any) bool {
		shown, ok := key.(scoped)
		return !ok || changed[shown.what]
	})
}

// absence is the fault that is kept of an object that was not shown; false: none is.
func (c *REST) absence(ctx context.Context, key scoped, asked time.Time) (ok bool, err error) {
	a, ok := recall[absence](ctx, c.cache.retained, absentKey(key))
	if !ok || !asked.Before(a.until) {
		return false, nil
	}
	if a.refused != nil {
		c.refused(ctx, a.refused, a.object)
	}
	return true, a.err
}

// missed keeps that an object was not shown, and returns the fault. cause is what the
// catalog answered. Other faults pass.
func (c *REST) missed(ctx context.Context, key scoped, asked time.Time, before uint64, err, cause error, object plan.TableName) error {
	life := min(absentFor, c.bound)
	if life <= 0 || err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
		return err
	}
	a := absence{err: err, object: object, until: asked.Add(life)}
	if statusOf(cause) == http.StatusForbidden {
		a.refused = cause
	}
	c.cache.add(before, func() { c.cache.remember(ctx, absentKey(key), a, entrySize, sharing{}) })
	return err
}

// isView reports whether the scope was shown a view of that name within the bound: it
// was no table then.
func (c *REST) isView(ctx context.Context, scope string, name plan.TableName, asked time.Time) bool {
	v, ok := recall[kept[*View]](ctx, c.cache.retained, scoped{scope, viewKind + name.Key()})
	return ok && asked.Before(v.until)
}

// errHidden: the principal may not look.
var errHidden = errors.New("hidden")

// listed keeps a list for as long as the right to see it. What ask says is hidden is
// an empty list.
func listed[T any](ctx context.Context, c *REST, what string, object plan.TableName, ask func() (T, error)) (T, error) {
	var none T
	scope, err := c.client.Scope(ctx)
	if err != nil {
		return none, c.failed(ctx, err)
	}
	key, asked := scoped{scope, what}, c.now()
	if k, ok := recall[kept[any]](ctx, c.cache.retained, listKey(key)); ok && asked.Before(k.until) {
		return k.is.(T), nil
	}
	if ok, err := c.absence(ctx, key, asked); ok {
		return none, err
	}
	before := c.cache.now()
	list, err := ask()
	if errors.Is(err, errHidden) {
		return none, c.missed(ctx, key, asked, before, nil, err, object)
	}
	if err != nil {
		return none, c.missed(ctx, key, asked, before, err, err, object)
	}
	c.cache.add(before, func() {
		c.cache.remember(ctx, listKey(key), kept[any]{list, asked.Add(c.bound)}, entrySize+sizeOfList(any(list)), sharing{})
	})
	return list, nil
}

// statementCache holds what was prefetched and is for one statement alone.
type statementCache struct {
	mu     sync.Mutex
	tables map[*REST]map[scoped]prefetched
}

// prefetched is a table that was prefetched, or the fault.
type prefetched struct {
	table  *restTable
	err    error
	before uint64 // the count of changes when it was asked for
}

type statementKey struct{}

// WithStatement begins a statement: what a Preloader may not keep any longer it keeps
// for the statement of the context.
func WithStatement(ctx context.Context) context.Context {
	return context.WithValue(ctx, statementKey{}, &statementCache{tables: map[*REST]map[scoped]prefetched{}})
}

// keepForStatement keeps a table for the first one who asks in the statement of ctx.
func keepForStatement(ctx context.Context, c *REST, key scoped, p prefetched) {
	s, ok := ctx.Value(statementKey{}).(*statementCache)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[c] == nil {
		s.tables[c] = map[scoped]prefetched{}
	}
	s.tables[c][key] = p
}

// takeForStatement takes what was kept for the statement of ctx, unless something was
// changed since it was asked for.
func takeForStatement(ctx context.Context, c *REST, key scoped) (prefetched, bool) {
	s, ok := ctx.Value(statementKey{}).(*statementCache)
	if !ok {
		return prefetched{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.tables[c][key]
	delete(s.tables[c], key)
	return p, ok && p.before == c.cache.now()
}

// PreloadNames implements Preloader.
func (c *REST) PreloadNames(ctx context.Context, namespaces [][]string) {
	if c.bound <= 0 {
		return
	}
	var work []func()
	for _, ns := range namespaces {
		work = append(work, func() { _, _ = c.Tables(ctx, ns) }, func() { _, _ = c.Views(ctx, ns) })
	}
	c.preload(ctx, work)
}

// Preload implements Preloader. A name is looked for as binding will: a table first.
func (c *REST) Preload(ctx context.Context, wanted []Wanted) {
	scope, err := c.client.Scope(ctx)
	if err != nil {
		return
	}
	var work []func()
	for _, w := range wanted {
		if c.kept(ctx, scope, w) {
			continue
		}
		work = append(work, func() {
			if w.Table {
				key, before := tableScoped(ctx, scope, w.Name), c.cache.now()
				t, err := c.load(ctx, w.Name, false)
				// What failed is not asked for again by binding: somebody waits.
				if c.bound <= 0 || err != nil || t.vended {
					keepForStatement(ctx, c, key, prefetched{t, err, before})
				}
				if !fault.Is(err, fault.NotFound) {
					return
				}
			}
			if w.View && c.bound > 0 {
				_, _ = c.View(ctx, w.Name)
			}
		})
	}
	c.preload(ctx, work)
}

// kept reports whether it is known what a scope is shown of a name.
func (c *REST) kept(ctx context.Context, scope string, w Wanted) bool {
	now := c.now()
	if t, ok := recall[*restTable](ctx, c.cache.retained, scoped{scope, tableKind + w.Name.Key()}); ok && w.Table {
		t.mu.Lock()
		defer t.mu.Unlock()
		return now.Before(t.until)
	}
	return w.View && c.isView(ctx, scope, w.Name, now)
}

// preload does several things at a time.
func (c *REST) preload(ctx context.Context, work []func()) {
	if len(work) == 0 {
		return
	}
	// What the server says of itself is asked for once, and not by each of them.
	if _, err := c.client.HasViews(ctx); err != nil {
		return
	}
	var g errgroup.Group
	g.SetLimit(parallelRequests)
	for _, w := range work {
		g.Go(func() error { w(); return nil })
	}
	_ = g.Wait()
}
