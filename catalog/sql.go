package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	icebergsql "github.com/apache/iceberg-go/catalog/sql"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
	_ "modernc.org/sqlite" // driver "sqlite"

	"sqe/catalog/objects"
	"sqe/fault"
	"sqe/plan"
)

// SQL is a catalog in the two tables of Iceberg's JDBC catalog, iceberg_tables and
// iceberg_namespace_properties, which PyIceberg, Spark and others open as well.
//
// Where a table is now is asked of the database each time, so that a commit of
// another process is seen at once; what lies there is immutable and cached by its
// location. Every principal gets the same answers: the gates stand before it.
type SQL struct {
	common
	stored  string
	db      *database
	iceberg *icebergsql.Catalog
	props   iceberg.Properties
	files   storage
	// hasViews is false for the old layout, without a column for the kind of row.
	hasViews bool

	locate, locateView *sql.Stmt

	// memory keeps *table.Table by tableKey, *plan.Table by planKey and *View by viewKey.
	memory *retained
}

// tableKey: a renamed table keeps its metadata location.
type tableKey struct{ location, name string }

type viewKey tableKey

type planKey struct {
	tableKey
	snapshot int64
	ref      string
	metadata string
}

// SQLOptions say how to open a catalog. The zero value opens an existing one and
// keeps 128 MiB of metadata in memory.
type SQLOptions struct {
	// Create makes the database file and its folder when they are missing.
	Create bool
	// StoredName is the catalog's name in the database, where one file may hold
	// several catalogs; "" is the name that it has here.
	StoredName string
	// Memory is how many bytes are kept of metadata; 0 is 128 MiB.
	Memory int64
	// Objects opens the warehouse where that is in an object store ("s3://bucket/folder").
	Objects *objects.Client
}

// OpenSQLite opens an SQL catalog in an SQLite file. warehouse is the folder (or
// the URI) for new tables; "" is the folder of the file.
//
// A file that is missing, that cannot be written or that is no such catalog is
// fault.Unavailable.
func OpenSQLite(name, path, warehouse string, o SQLOptions) (*SQL, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, unavailable(name, err)
	}
	if warehouse == "" {
		warehouse = filepath.Dir(path)
	}
	if warehouse, err = location(warehouse); err != nil {
		return nil, unavailable(name, err)
	}
	mode := "rw"
	switch _, err := os.Stat(path); {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, unavailable(name, err)
	case !o.Create:
		return nil, fault.Wrap(fault.Unavailable, err, "The file of catalog '%s' does not exist; correct its path in the configuration", name)
	default:
		mode = "rwc"
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The folder of catalog '%s' cannot be created; choose one that this user may write", name)
		}
	}
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() +
		"?mode=" + mode +
		// A writer waits for another one from the start of its transaction: one that
		// has read before it waits would be refused at once.
		"&_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, unavailable(name, err)
	}
	// A connection runs its pragmas when it is opened: keep those that were used.
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	c, err := newSQL(name, &database{DB: db}, icebergsql.SQLite, iceberg.Properties{
		"warehouse": warehouse, "init_catalog_tables": "true",
	}, o)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return c, nil
}

// newSQL takes over db, which it closes with the catalog.
func newSQL(name string, db *database, dialect icebergsql.SupportedDialect, props iceberg.Properties, o SQLOptions) (*SQL, error) {
	c := &SQL{
		common: common{name: name, warehouse: props["warehouse"], writers: newWriters(), attempts: maxAttempts},
		stored: o.StoredName, db: db, props: props,
	}
	c.backend = c
	if objects.Is(c.warehouse) {
		if _, _, ok := place(c.warehouse); !ok || o.Objects == nil {
			return nil, fault.New(fault.Config, "The warehouse of catalog '%s' is in an object store: it is written as s3://bucket/folder, and needs credentials", name)
		}
		c.files.client = o.Objects
	}
	c.files.warehouse = c.warehouse
	if c.stored == "" {
		c.stored = name
	}
	ice, err := icebergsql.NewCatalog(c.stored, db.DB, dialect, props)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "Catalog '%s' cannot be opened: it is not an Iceberg SQL catalog, or this user may not write it", name)
	}
	c.iceberg = ice
	kind := ""
	if rows, err := db.Query(`SELECT iceberg_type FROM iceberg_tables WHERE 1 = 0`); err == nil {
		c.hasViews = true
		kind = ` AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)`
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, unavailable(name, err)
		}
	}
	const find = `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`
	if c.locate, err = db.Prepare(find + kind); err != nil {
		return nil, unavailable(name, err)
	}
	if c.hasViews {
		if c.locateView, err = db.Prepare(find + ` AND iceberg_type = 'VIEW'`); err != nil {
			return nil, unavailable(name, err)
		}
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Memory < 0 {
		return nil, fault.New(fault.Config, "The memory for the metadata of catalog '%s' must be positive", name)
	}
	c.memory = newRetained(o.Memory)
	return c, nil
}

// Iceberg is the catalog for writers, who must load a table afresh before they
// change it.
func (c *SQL) Iceberg() icebergcatalog.Catalog { return c.iceberg }

// Close implements Catalog.
func (c *SQL) Close() error {
	err := c.iceberg.Close()
	for _, s := range []*sql.Stmt{c.locate, c.locateView} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, c.db.Close())
}

const allNamespaces = `SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?
	UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?`

// Namespaces implements Catalog. A namespace that only appears as the parent of
// another one exists, as in other implementations of this catalog.
func (c *SQL) Namespaces(ctx context.Context) ([][]string, error) {
	keys, err := c.list(ctx, allNamespaces, c.stored, c.stored)
	if err != nil {
		return nil, err
	}
	return withParents(keys), nil
}

// NamespacesIn implements Catalog.
func (c *SQL) NamespacesIn(ctx context.Context, parent []string) ([][]string, error) {
	all, err := c.Namespaces(ctx)
	return slices.DeleteFunc(all, func(ns []string) bool {
		return len(ns) != len(parent)+1 || !slices.Equal(ns[:len(parent)], parent)
	}), err
}

func withParents(keys []string) [][]string {
	seen := map[string]bool{}
	var out [][]string
	for _, k := range keys {
		ns := namespaceOf(k)
		for n := 1; n <= len(ns); n++ {
			id := strings.Join(ns[:n], "\x1f")
			if !seen[id] {
				seen[id] = true
				out = append(out, ns[:n:n])
			}
		}
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

const namesOfAll = `SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?`

// Tables implements Catalog.
func (c *SQL) Tables(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, namesOfAll+c.onlyTables(), namespace)
}

// Views implements Catalog.
func (c *SQL) Views(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, namesOfAll+c.onlyViews(), namespace)
}

// names lists tables or views, and tells an empty namespace from none.
func (c *SQL) names(ctx context.Context, query string, namespace []string) ([]string, error) {
	out, err := c.list(ctx, query+` ORDER BY table_name`, c.stored, namespaceKey(namespace))
	if err != nil || len(out) > 0 {
		slices.Sort(out) // byte order, whatever the database thinks
		return out, err
	}
	all, err := c.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, namespace) }) {
		return nil, fault.New(fault.NotFound, "Unknown database '%s'", JoinDatabase(namespace...))
	}
	return nil, nil
}

func (c *SQL) list(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := c.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	return c.scanned(ctx, rows)
}

// scanned reads the texts of a query and closes it.
func (c *SQL) scanned(ctx context.Context, rows *sql.Rows) ([]string, error) {
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, c.failed(ctx, err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		return nil, c.failed(ctx, err)
	}
	return out, nil
}

// Table implements Catalog.
func (c *SQL) Table(ctx context.Context, name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error) {
	if metadata != "" {
		if _, ok := metadataFields(metadata); !ok {
			return nil, missing(name)
		}
	}
	location, err := c.location(ctx, c.locate, name)
	if err != nil {
		return nil, err
	}
	key := planKey{tableKey: tableKey{location, name.Key()}, snapshot: at.Snapshot, ref: at.Ref, metadata: metadata}
	if at.Time.IsZero() {
		if t, ok := recall[*plan.Table](ctx, c.memory, key); ok {
			return t, nil
		}
	}
	loaded, err := c.load(ctx, name, key.tableKey)
	if err != nil {
		return nil, err
	}
	t, err := planTable(loaded, name, at, metadata)
	if err != nil {
		return nil, err
	}
	if at.Time.IsZero() {
		c.memory.remember(ctx, key, t, entrySize+sizeOfTable(t), c.metadata(key.location, loaded))
	}
	return t, nil
}

func (c *SQL) fresh(ctx context.Context, name plan.TableName) (*plan.Table, error) {
	return c.Table(ctx, name, plan.AsOf{}, "")
}

func (c *SQL) hasTable(ctx context.Context, name plan.TableName) error {
	_, err := c.location(ctx, c.locate, name)
	return err
}

func (c *SQL) hasView(ctx context.Context, name plan.TableName) error {
	_, err := c.location(ctx, c.locateView, name)
	return err
}

func (c *SQL) storedName() string { return c.stored }

// location asks where the metadata of a table or view lies now.
func (c *SQL) location(ctx context.Context, find *sql.Stmt, name plan.TableName) (string, error) {
	if find == nil {
		return "", missing(name)
	}
	var location sql.NullString
	err := find.QueryRowContext(ctx, c.stored, namespaceKey(name.Namespace), name.Name).Scan(&location)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", missing(name)
	case err != nil:
		return "", c.failed(ctx, err)
	case !location.Valid || location.String == "":
		return "", fault.New(fault.Corrupt, "The catalog has no metadata for '%s'; drop and register it again", name)
	}
	return location.String, nil
}

func (c *SQL) load(ctx context.Context, name plan.TableName, key tableKey) (t *table.Table, err error) {
	if t, ok := recall[*table.Table](ctx, c.memory, key); ok {
		return t, nil
	}
	err = guarded(func() error {
		ident := append(slices.Clone(name.Namespace), name.Name)
		t, err = table.NewFromLocation(ctx, ident, key.location, c.files.of(key.location), readOnly{c})
		return err
	})
	if err != nil {
		return nil, broken(ctx, err, name)
	}
	c.memory.remember(ctx, key, t, entrySize, c.metadata(key.location, t))
	return t, nil
}

// metadata are what all that is made of a table at a location holds.
func (c *SQL) metadata(location string, t *table.Table) sharing {
	return sharing{location, sizeOfMetadata(t.Metadata())}
}

// View implements Catalog.
func (c *SQL) View(ctx context.Context, name plan.TableName) (*View, error) {
	location, err := c.location(ctx, c.locateView, name)
	if err != nil {
		return nil, err
	}
	key := tableKey{location, name.Key()}
	if v, ok := recall[*View](ctx, c.memory, viewKey(key)); ok {
		return v, nil
	}
	var loaded *view.View
	err = guarded(func() error {
		loaded, err = readView(ctx, append(slices.Clone(name.Namespace), name.Name), location, c.files)
		return err
	})
	if err != nil {
		return nil, broken(ctx, err, name)
	}
	v, err := planView(loaded, name, c.stored)
	if err != nil {
		return nil, err
	}
	c.memory.remember(ctx, viewKey(key), v, entrySize+sizeOfView(v), sharing{})
	return v, nil
}

// failed classifies an error of the database.
func (c *SQL) failed(ctx context.Context, err error) error {
	if f := interrupted(ctx, err); f != nil {
		return f
	}
	return unavailable(c.name, err)
}

func unavailable(name string, err error) error {
	return fault.Wrap(fault.Unavailable, err, "Catalog '%s' does not answer; try again, or ask an administrator to look at the log", name)
}

// broken classifies an error of reading a metadata file.
func broken(ctx context.Context, err error, name plan.TableName) error {
	switch {
	case interrupted(ctx, err) != nil:
		return interrupted(ctx, err)
	case StorageFault(err, "") != nil:
		return StorageFault(err, "'"+name.String()+"'")
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Corrupt, err, "The metadata file of '%s' is missing; restore it or register an older one", name)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Unavailable, err, "The metadata file of '%s' may not be read by the server; correct its permissions", name)
	case errors.Is(err, icebergio.ErrIOSchemeNotFound):
		return fault.Wrap(fault.Unsupported, err, "'%s' lies in a kind of storage that SQE cannot read", name)
	}
	return fault.Wrap(fault.Corrupt, err, "The metadata file of '%s' cannot be understood; restore it or register an older one", name)
}

func interrupted(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, err, "The statement took too long and was ended")
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return fault.Wrap(fault.Cancelled, err, "The statement was cancelled")
	}
	return nil
}

// guarded turns a panic over a malformed file into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic over a metadata file or in a change")
		}
	}()
	return f()
}

// encodedNamespace marks namespaces of which a part holds a dot; they are stored
// as a JSON list behind it. Source: the SQL catalog of iceberg-go.
const encodedNamespace = "__iceberg_namespace_v1__:"

func namespaceKey(ns []string) string {
	plain := strings.Join(ns, ".")
	if !strings.Contains(plain, encodedNamespace) && !slices.ContainsFunc(ns, func(p string) bool { return strings.Contains(p, ".") }) {
		return plain
	}
	b, err := json.Marshal(ns)
	if err != nil {
		return plain // strings always marshal
	}
	return encodedNamespace + string(b)
}

func namespaceOf(key string) []string {
	if list, ok := strings.CutPrefix(key, encodedNamespace); ok {
		var ns []string
		if json.Unmarshal([]byte(list), &ns) == nil && len(ns) > 0 && namespaceKey(ns) == key {
			return ns
		}
	}
	return strings.Split(key, ".")
}
