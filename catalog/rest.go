package catalog

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// REST is an Iceberg REST catalog. It answers for the principal of the context
// with that principal's token, or for the service (rest.Tokens).
//
// What the catalog answered to one principal is never given to another one: all
// that is cached is kept by the scope of the token (rest.Token.Scope) and used for
// RESTOptions.Bound at most; then the catalog is asked again. An answer with
// credentials is not kept at all. What may not be seen is not found.
type REST struct {
	common
	client *rest.Client
	local  string
	stores ObjectStores
	bound  time.Duration
	log    *slog.Logger
	told   func(context.Context, Refusal)
	now    func() time.Time

	tables *lru.Cache[scoped, *restTable]
	views  *lru.Cache[scoped, kept[*View]]
	lists  *lru.Cache[scoped, kept[any]]

	// vends: answers hold credentials, so that none is kept.
	vends atomic.Bool

	mu sync.Mutex
	// changes counts what this process changed: what was asked for before a change is
	// not kept after it.
	changes uint64
}

// scoped is what a principal asked for.
type scoped struct{ scope, what string }

type kept[T any] struct {
	is    T
	until time.Time
}

// restTable is a loaded table of one scope.
type restTable struct {
	table   *table.Table
	answer  *rest.Table
	root    string
	planner func(context.Context, *Handle) ([]table.FileScanTask, error)
	until   time.Time
	vended  bool // it opens files with credentials of one statement
	mu      sync.Mutex
	plans   map[planKey]*plan.Table
}

// RESTOptions say how a REST catalog is used.
type RESTOptions struct {
	// Local is the folder below which files with a local location are read and
	// written; "" permits none.
	Local string
	// Objects says how object stores are reached.
	Objects ObjectStores
	// Bound is how old the right to see something may be; 0 is 5 s, less than 0 asks
	// each time.
	Bound time.Duration
	// CachedTables is how many loaded tables are kept in memory, of all principals
	// together; 0 is 1,000.
	CachedTables int
	// Log is told what the catalog refused; nil is slog's default.
	Log *slog.Logger
	// Refused is told it too, nil: nobody. It must not ask the catalog.
	Refused func(context.Context, Refusal)
}

// Refusal is what the catalog does not permit the principal of a context.
type Refusal struct {
	// Operation is the call in words: "load table", "list views", "commit table".
	Operation string
	// Object has no name where it is a namespace, and no namespace where it is the
	// catalog.
	Object plan.TableName
}

const defaultBound = 5 * time.Second

// OpenREST takes over a client. It sends nothing: there may be no principal yet.
func OpenREST(name string, client *rest.Client, o RESTOptions) (*REST, error) {
	if o.Bound == 0 {
		o.Bound = defaultBound
	}
	if o.CachedTables == 0 {
		o.CachedTables = 1000
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &REST{
		common: common{name: name, writers: newWriters(), attempts: maxAttempts},
		client: client, local: o.Local, stores: o.Objects, bound: o.Bound, log: o.Log, told: o.Refused, now: time.Now,
	}
	c.backend = c
	var err error
	if c.tables, err = lru.New[scoped, *restTable](o.CachedTables); err != nil {
		return nil, fault.Wrap(fault.Config, err, "The number of cached tables of catalog '%s' must be positive", name)
	}
	c.views, _ = lru.New[scoped, kept[*View]](o.CachedTables) // is positive
	c.lists, _ = lru.New[scoped, kept[any]](o.CachedTables)
	return c, nil
}

// Close implements Catalog.
func (c *REST) Close() error {
	c.client.Close()
	return nil
}

func (c *REST) storedName() string { return c.name }

func (c *REST) changesNow() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// changed forgets the lists and, of a table or view, what is known.
func (c *REST) changed(names ...plan.TableName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.lists.Purge()
	for _, n := range names {
		for _, k := range c.tables.Keys() {
			if k.what == n.Key() {
				c.tables.Remove(k)
			}
		}
		for _, k := range c.views.Keys() {
			if k.what == n.Key() {
				c.views.Remove(k)
			}
		}
	}
}

// errHidden: the principal may not look.
var errHidden = errors.New("hidden")

// listed keeps a list for as long as the right to see it. What ask says is hidden is
// an empty list, which is not kept.
func listed[T any](ctx context.Context, c *REST, what string, ask func() (T, error)) (T, error) {
	var none T
	scope, err := c.client.Scope(ctx)
	if err != nil {
		return none, c.failed(ctx, err)
	}
	key, asked := scoped{scope, what}, c.now()
	if k, ok := c.lists.Get(key); ok && asked.Before(k.until) {
		return k.is.(T), nil
	}
	before := c.changesNow()
	list, err := ask()
	if errors.Is(err, errHidden) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before == c.changes {
		c.lists.Add(key, kept[any]{list, asked.Add(c.bound)})
	}
	return list, nil
}

// How wide and deep namespaces are asked for.
const (
	together       = 16
	deepest        = 32
	mostNamespaces = 100_000
)

// Namespaces implements Catalog. It asks for the namespaces below each one, several
// at a time; below one that the principal may not look into there are none.
func (c *REST) Namespaces(ctx context.Context) ([][]string, error) {
	all, err := listed(ctx, c, "namespaces", func() ([][]string, error) { return c.allNamespaces(ctx) })
	return slices.Clone(all), err
}

func (c *REST) allNamespaces(ctx context.Context) ([][]string, error) {
	var out [][]string
	level := [][]string{nil}
	for depth := 0; len(level) > 0; depth++ {
		if depth > deepest || len(out) > mostNamespaces {
			return nil, fault.New(fault.Limit, "Catalog '%s' has more than %d namespaces, or they are nested deeper than %d", c.name, mostNamespaces, deepest)
		}
		found := make([][][]string, len(level))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(together)
		for i, parent := range level {
			g.Go(func() (err error) {
				found[i], err = c.client.Namespaces(gctx, parent)
				hidden := c.hides(ctx, err, plan.TableName{Namespace: parent})
				switch {
				case len(parent) == 0 && hidden:
					return errHidden
				case hidden, len(parent) > 0 && rest.Is(err, http.StatusNotFound):
					return nil // it may not be looked into, or was dropped
				}
				return err
			})
		}
		if err := g.Wait(); errors.Is(err, errHidden) {
			return nil, err
		} else if err != nil {
			return nil, c.failed(ctx, err)
		}
		level = slices.Concat(found...)
		out = append(out, level...)
	}
	slices.SortFunc(out, slices.Compare)
	return slices.CompactFunc(out, slices.Equal), nil
}

// Tables implements Catalog.
func (c *REST) Tables(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, "tables", namespace, c.client.Tables)
}

// Views implements Catalog.
func (c *REST) Views(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, "views", namespace, c.client.Views)
}

func (c *REST) names(ctx context.Context, kind string, namespace []string, ask func(context.Context, []string) ([]string, error)) ([]string, error) {
	all, err := listed(ctx, c, kind+" "+JoinDatabase(namespace...), func() ([]string, error) {
		names, err := ask(ctx, namespace)
		if c.hides(ctx, err, plan.TableName{Namespace: namespace}) {
			// The namespace may be seen in the list above it: nothing in it may.
			return nil, errHidden
		}
		if err != nil {
			return nil, c.namespaceFault(ctx, err, namespace)
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	})
	return slices.Clone(all), err
}

// Table implements Catalog.
func (c *REST) Table(ctx context.Context, name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error) {
	if metadata != "" {
		if _, ok := metadataFields(metadata); !ok {
			return nil, missing(name)
		}
	}
	t, err := c.load(ctx, name, false)
	if err != nil {
		return nil, err
	}
	return t.plan(name, at, metadata)
}

func (c *REST) fresh(ctx context.Context, name plan.TableName) (*plan.Table, error) {
	t, err := c.load(ctx, name, true)
	if err != nil {
		return nil, err
	}
	return t.plan(name, plan.AsOf{}, "")
}

// load asks the catalog for a table, unless it answered this principal within the
// bound. afresh: it is asked in any case.
func (c *REST) load(ctx context.Context, name plan.TableName, afresh bool) (*restTable, error) {
	scope, err := c.client.Scope(ctx)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	key, asked := scoped{scope, name.Key()}, c.now()
	old, ok := c.tables.Get(key)
	etag := ""
	if ok {
		old.mu.Lock()
		until := old.until
		old.mu.Unlock()
		if !afresh && asked.Before(until) {
			return old, nil
		}
		etag = old.answer.ETag
	}
	before := c.changesNow()
	answer, err := c.client.LoadTable(ctx, name.Namespace, name.Name, etag)
	if err == nil && answer == nil {
		if before == c.changesNow() {
			old.mu.Lock()
			old.until = asked.Add(c.bound)
			old.mu.Unlock()
		}
		return old, nil
	}
	if err != nil {
		c.tables.Remove(key)
		return nil, c.tableFault(ctx, err, name, true)
	}
	loaded, err := c.admit(name, answer, nil)
	if err != nil {
		c.tables.Remove(key)
		return nil, err
	}
	loaded.until = asked.Add(c.bound)
	c.mu.Lock()
	defer c.mu.Unlock()
	secret := vended(answer)
	c.vends.Store(secret)
	if before == c.changes && !secret {
		c.tables.Add(key, loaded)
	}
	return loaded, nil
}

// admit makes a table of an answer. It refuses one whose scans it cannot plan. opened
// is how its files are opened where the answer, such as that to a commit, gives no
// credentials; nil: as the answer says.
func (c *REST) admit(name plan.TableName, answer *rest.Table, opened table.FSysF) (*restTable, error) {
	if m := answer.ScanPlanning(); m != "client" && m != "server" {
		return nil, fault.New(fault.Unsupported, "The catalog demands a way to plan the scans of table '%s' that SQE does not know; the table is refused", name)
	}
	return &restTable{table: c.tableAt(name, answer, opened), answer: answer, root: c.local, vended: opened != nil || vended(answer), planner: c.planner(name), plans: map[planKey]*plan.Table{}}, nil
}

// vended reports whether an answer holds credentials, which are for one statement.
func vended(t *rest.Table) bool {
	if len(t.Credentials) > 0 {
		return true
	}
	for k := range t.Config {
		for _, part := range []string{"s3.", "gcs.", "adls.", "client.", "oss.", "token", "header."} {
			if strings.HasPrefix(k, part) {
				return true
			}
		}
	}
	return false
}

func (t *restTable) plan(name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error) {
	key := planKey{snapshot: at.Snapshot, ref: at.Ref, metadata: metadata}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.plans[key]; ok && at.Time.IsZero() {
		return p, nil
	}
	p, err := planTable(t.table, name, at, metadata)
	if err != nil {
		return nil, err
	}
	h := p.Handle.(*Handle)
	h.ReadRestrictions, h.confined, h.root, h.vended = t.answer.ReadRestrictions, true, t.root, t.vended
	if t.answer.ScanPlanning() == "server" {
		h.planner = t.planner
	}
	if at.Time.IsZero() && len(t.plans) < 100 {
		t.plans[key] = p
	}
	return p, nil
}

// tableAt is the table of an answer. It cannot commit by itself.
func (c *REST) tableAt(name plan.TableName, answer *rest.Table, opened table.FSysF) *table.Table {
	meta := answer.Metadata
	switch {
	case opened != nil && !vended(answer):
	case objects.Is(meta.Location()):
		opened = c.granted(name, answer)
	default:
		opened = func(context.Context) (icebergio.IO, error) { return confine(meta.Location(), c.local) }
	}
	return table.New(append(slices.Clone(name.Namespace), name.Name), meta, answer.Location, opened, committed{})
}

func (c *REST) with(base *table.Table, name plan.TableName, meta table.Metadata) *table.Table {
	return table.New(append(slices.Clone(name.Namespace), name.Name), meta, base.MetadataLocation(), base.FS, committed{})
}

func (c *REST) evict(t *plan.Table) { c.changed(t.Name) }

func (c *REST) hasTable(ctx context.Context, name plan.TableName) error {
	_, err := c.load(ctx, name, true)
	return err
}

// PreloadNames implements Preloader.
func (c *REST) PreloadNames(ctx context.Context, namespaces [][]string) {
	var work []func()
	for _, ns := range namespaces {
		work = append(work, func() { _, _ = c.Tables(ctx, ns) }, func() { _, _ = c.Views(ctx, ns) })
	}
	c.preload(ctx, work)
}

// PreloadTables implements Preloader.
func (c *REST) PreloadTables(ctx context.Context, names []plan.TableName) {
	var work []func()
	for _, n := range names {
		work = append(work, func() {
			if !c.vends.Load() {
				_, _ = c.load(ctx, n, false)
			}
		})
	}
	c.preload(ctx, work)
}

// preload does several things at a time, where their answers are kept.
func (c *REST) preload(ctx context.Context, work []func()) {
	if c.bound <= 0 {
		return
	}
	// What the server says of itself is asked for once, and not by each of them.
	if _, err := c.client.HasViews(ctx); err != nil {
		return
	}
	var g errgroup.Group
	g.SetLimit(together)
	for _, w := range work {
		g.Go(func() error { w(); return nil })
	}
	_ = g.Wait()
}
