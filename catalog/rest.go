package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
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
// credentials is for one statement (WithStatement). What may not be seen is not found.
type REST struct {
	common
	client *rest.Client
	local  string
	stores ObjectStores
	bound  time.Duration
	marks  bool // RESTOptions.TrustETags
	log    *slog.Logger
	told   func(context.Context, Refusal)
	now    func() time.Time

	cache restCache
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
	grew    func(by int64) // tells that there are more plans; nil where it is not kept
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
	// TrustETags says that an ETag of this catalog changes with whatever it says of a
	// table to a principal, or that it demands nothing of reads. Only then is a table
	// loaded again with the mark of the last answer: by the specification an ETag stands
	// for the metadata, so that "not modified" would keep restrictions that the catalog
	// has changed since, for as long as the table stays as it is.
	TrustETags bool
	// Memory is how many bytes are kept of what the catalog answered, for all principals
	// together; 0 is 128 MiB. The metadata of answers that are not kept need half of it.
	Memory int64
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
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &REST{
		common: common{name: name, writers: newWriters(), attempts: maxAttempts},
		client: client, local: o.Local, stores: o.Objects, bound: o.Bound, marks: o.TrustETags, log: o.Log, told: o.Refused, now: time.Now,
	}
	c.backend = c
	if o.Memory < 0 {
		return nil, fault.New(fault.Config, "The memory for the metadata of catalog '%s' must be positive", name)
	}
	c.cache.retained = newRetained(o.Memory / 2)
	client.KeepMetadata(o.Memory / 2)
	return c, nil
}

// Probe is that of the client: whether there is a catalog at all, asked without a token.
func (c *REST) Probe(ctx context.Context) error { return c.client.Probe(ctx) }

// PerUser is that of the client.
func (c *REST) PerUser() bool { return c.client.PerUser() }

// Close implements Catalog.
func (c *REST) Close() error {
	c.client.Close()
	return nil
}

func (c *REST) storedName() string { return c.name }

// How many requests of one call run at a time, and how deep and wide namespaces may be.
const (
	parallelRequests = 32
	deepest          = 32
	mostNamespaces   = 100_000
)

// Namespaces implements Catalog. It asks for the namespaces below each one, several
// at a time; below one that the principal may not look into there are none.
func (c *REST) Namespaces(ctx context.Context) ([][]string, error) {
	all, err := listed(ctx, c, "namespaces", plan.TableName{}, func() ([][]string, error) { return c.allNamespaces(ctx) })
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
		g.SetLimit(parallelRequests)
		if rest.IsAside(ctx) {
			g.SetLimit(1) // nobody waits
		}
		for i, parent := range level {
			g.Go(func() (err error) {
				found[i], err = c.namespacesIn(gctx, ctx, parent)
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

// NamespacesIn implements Catalog, with one question.
func (c *REST) NamespacesIn(ctx context.Context, parent []string) ([][]string, error) {
	all, err := listed(ctx, c, "namespaces in "+JoinDatabase(parent...), plan.TableName{Namespace: parent}, func() ([][]string, error) {
		found, err := c.namespacesIn(ctx, ctx, parent)
		if err != nil && !errors.Is(err, errHidden) {
			return nil, c.failed(ctx, err)
		}
		slices.SortFunc(found, slices.Compare)
		return slices.CompactFunc(found, slices.Equal), err
	})
	return slices.Clone(all), err
}

// namespacesIn asks for the namespaces in one; who is the context of the principal whom
// it may be hidden from.
func (c *REST) namespacesIn(ctx, who context.Context, parent []string) ([][]string, error) {
	found, err := c.client.Namespaces(ctx, parent)
	hidden := c.hides(who, err, plan.TableName{Namespace: parent})
	switch {
	case len(parent) == 0 && hidden:
		return nil, fmt.Errorf("%w: %w", errHidden, err)
	case hidden, len(parent) > 0 && (rest.Is(err, http.StatusNotFound) || errors.Is(err, rest.ErrName)):
		return nil, nil // it may not be looked into, or was dropped
	}
	return found, err
}

// Tables implements Catalog.
func (c *REST) Tables(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, "tables", namespace, c.client.Tables)
}

// Views implements Catalog.
func (c *REST) Views(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, "views", namespace, c.client.Views)
}

// names lists what is in a namespace. Nothing is in one that may not be looked into,
// which may be in the list above it, and so in one that is missing: nobody can tell.
func (c *REST) names(ctx context.Context, kind string, namespace []string, ask func(context.Context, []string) ([]string, error)) ([]string, error) {
	all, err := listed(ctx, c, kind+" "+JoinDatabase(namespace...), plan.TableName{Namespace: namespace}, func() ([]string, error) {
		names, err := ask(ctx, namespace)
		if err != nil {
			if err := c.namespaceFault(ctx, err, namespace); !fault.Is(err, fault.NoDatabase) {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w", errHidden, err)
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
	key, asked := tableScoped(ctx, scope, name), c.now()
	if !afresh {
		if p, ok := takeForStatement(ctx, c, key); ok {
			return p.table, p.err
		}
	}
	old, ok := recall[*restTable](ctx, c.cache.retained, key)
	etag := ""
	if ok {
		old.mu.Lock()
		until := old.until
		old.mu.Unlock()
		if !afresh && asked.Before(until) {
			return old, nil
		}
		if c.marks {
			etag = old.answer.ETag
		}
	} else if !afresh {
		if ok, err := c.absence(ctx, key, asked); ok {
			return nil, err
		}
		if c.isView(ctx, scope, name, asked) {
			return nil, missing(name)
		}
	}
	before := c.cache.now()
	answer, err := c.client.LoadTable(ctx, name.Namespace, name.Name, etag)
	if err == nil && (answer == nil || ok && old.stands(answer, c.marks)) {
		if before == c.cache.now() {
			old.mu.Lock()
			old.until = c.until(old.answer, asked)
			old.mu.Unlock()
		}
		return old, nil
	}
	if err != nil {
		c.cache.forget(key)
		return nil, c.missed(ctx, key, asked, before, c.tableFault(ctx, err, name, true), err, name)
	}
	loaded, err := c.admit(name, answer, nil, c.loadedAgain(name, answer))
	if err != nil {
		c.cache.forget(key)
		return nil, err
	}
	if rest.IsMetadataOnly(ctx) {
		loaded.table = table.New(loaded.table.Identifier(), answer.Metadata, answer.Location, unopened, committed{})
	}
	loaded.until = c.until(answer, asked)
	if !loaded.vended {
		c.cache.add(before, func() {
			loaded.grew = func(by int64) { c.cache.grew(key, loaded, by) }
			c.cache.remember(ctx, key, loaded, entrySize, sharing{answer.Location, sizeOfMetadata(answer.Metadata)})
		})
	}
	return loaded, nil
}

// stands reports whether another answer to the same scope says word for word what the
// one to t did. So t is as good, with the plans that were made of it.
func (t *restTable) stands(now *rest.Table, marks bool) bool {
	was := t.answer
	return !t.vended && !secret(now) && now.Location == was.Location && now.Metadata == was.Metadata &&
		(now.ReadRestrictions == nil) == (was.ReadRestrictions == nil) && bytes.Equal(now.ReadRestrictions, was.ReadRestrictions) &&
		maps.Equal(now.Config, was.Config) && (!marks || now.ETag == was.ETag)
}

// until is the time to which an answer to what was asked is used again. A plan of the
// catalog is one of this moment: under what the catalog demanded a while ago it would
// show rows that were right at no time. So a table that the catalog plans is asked for
// in each statement.
func (c *REST) until(answer *rest.Table, asked time.Time) time.Time {
	if answer.ScanPlanning() == "server" {
		return asked
	}
	return asked.Add(c.bound)
}

// admit makes a table of an answer. It refuses one whose scans it cannot plan. opened
// is how its files are opened where the answer, such as that to a commit, gives no
// credentials; nil: as the answer says. again renews the credentials of the answer.
func (c *REST) admit(name plan.TableName, answer *rest.Table, opened table.FSysF, again asking) (*restTable, error) {
	if m := answer.ScanPlanning(); m != "client" && m != "server" {
		return nil, fault.New(fault.Unsupported, "The catalog demands a way to plan the scans of table '%s' that SQE does not know; the table is refused", name)
	}
	return &restTable{table: c.tableAt(name, answer, opened, again), answer: answer, root: c.local, vended: opened != nil || secret(answer), planner: c.planner(name), plans: map[planKey]*plan.Table{}}, nil
}

// unopened is how the files are opened of a table that was loaded without access to
// its rows: not at all.
func unopened(context.Context) (icebergio.IO, error) {
	return nil, fault.New(fault.Internal, "rows were asked for in a statement about definitions")
}

// secret reports whether an answer holds credentials, which are for one statement.
func secret(t *rest.Table) bool {
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
		if t.grew != nil {
			t.grew(sizeOfTable(p))
		}
	}
	return p, nil
}

// tableAt is the table of an answer. It cannot commit by itself.
func (c *REST) tableAt(name plan.TableName, answer *rest.Table, opened table.FSysF, again asking) *table.Table {
	meta := answer.Metadata
	switch {
	case opened != nil && !secret(answer):
	case objects.Is(meta.Location()):
		opened = c.granted(name, answer, again)
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
