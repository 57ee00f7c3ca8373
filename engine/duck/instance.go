package duck

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sqe/fault"
	"sqe/plan"
)

// Config says what an instance may use.
type Config struct {
	// MemoryLimit is what DuckDB may allocate in bytes, over all statements; 0: its
	// own default (80% of the machine). Beyond it, operators spill into TempDir.
	MemoryLimit int64
	// Threads computes with that many threads, over all statements; 0: one for
	// each processor.
	Threads int
	// TempDir is the directory for spilled data; "": nothing is spilled.
	TempDir string
	// MaxTempSize bounds the spilled data in bytes; 0: no bound.
	MaxTempSize int64
	// Roots are the directories that DuckDB may read: those of the warehouses and
	// of the cache of remote files.
	Roots []string
	// MaxConcurrent statements run at once, the others wait; 0: 16.
	MaxConcurrent int
	// QueueTimeout bounds the wait; 0: only the statement's own time limit does.
	QueueTimeout time.Duration
}

// Instance is one locked-down DuckDB. It is safe for concurrent use.
type Instance struct {
	config Config
	slots  chan struct{}

	budget textBudget

	running, queued, refused, restarts atomic.Int64

	mu      sync.Mutex
	current *database
	closed  bool
}

// database is one DuckDB. An internal error of DuckDB makes it refuse everything
// from then on; the instance then starts another.
type database struct {
	handle  duckdb.Database
	idle    []duckdb.Connection
	open    int  // connections that a statement holds
	retired bool // to be closed after the last of them
}

// Open starts an instance. Its settings are locked for good.
func Open(config Config) (*Instance, error) {
	if config.MaxConcurrent <= 0 {
		config.MaxConcurrent = 16
	}
	db, err := start(config)
	if err != nil {
		return nil, err
	}
	in := &Instance{config: config, slots: make(chan struct{}, config.MaxConcurrent), current: db}
	in.budget.limit, in.budget.maxSpill, in.budget.dir = config.MemoryLimit/2, config.MaxTempSize, config.TempDir
	if in.budget.limit == 0 {
		in.budget.limit = 8 * maxKept
	}
	return in, nil
}

// start opens, configures and locks a DuckDB.
func start(config Config) (*database, error) {
	settings, err := settings(config)
	if err != nil {
		return nil, err
	}
	var msg string
	var options duckdb.Config
	if duckdb.CreateConfig(&options) != duckdb.StateSuccess {
		return nil, fault.New(fault.Config, "DuckDB could not be started")
	}
	defer duckdb.DestroyConfig(&options)
	db := &database{}
	if duckdb.OpenExt("", &db.handle, options, &msg) != duckdb.StateSuccess {
		return nil, fault.Wrap(fault.Config, errors.New(msg), "DuckDB could not be started")
	}
	conn, err := db.connect()
	if err == nil {
		err = errors.Join(registerNatives(conn, config.MemoryLimit), registerStreams(conn))
	}
	for _, s := range settings {
		if err == nil {
			err = execute(conn, s)
		}
	}
	if err != nil {
		if conn.Ptr != nil {
			duckdb.Disconnect(&conn)
		}
		duckdb.Close(&db.handle)
		return nil, fault.Wrap(fault.Config, err, "DuckDB refused its configuration; check memory-limit, threads, the temporary directory and the warehouse directories")
	}
	db.idle = append(db.idle, conn)
	return db, nil
}

// settings lists the statements that configure an instance. The order matters:
// the directories must be named before external access goes, and the lock is
// last.
func settings(c Config) ([]string, error) {
	roots := make([]string, 0, len(c.Roots))
	for _, r := range c.Roots {
		abs, err := filepath.Abs(r)
		if err != nil || strings.ContainsRune(r, 0) || abs == string(filepath.Separator) {
			return nil, fault.New(fault.Config, "a warehouse directory is not usable: it must be a directory below the root of the file system")
		}
		roots = append(roots, quote(strings.TrimRight(abs, "/")+"/"))
		// A root may itself be reached through a link.
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			roots = append(roots, quote(strings.TrimRight(real, "/")+"/"))
		}
	}
	out := []string{
		"SET allowed_directories=[" + strings.Join(roots, ", ") + "]",
		"SET temp_directory=" + quote(c.TempDir),
		"SET autoinstall_known_extensions=false",
		"SET autoload_known_extensions=false",
		"SET allow_community_extensions=false",
		"SET allow_unsigned_extensions=false",
		"SET allow_persistent_secrets=false",
		"SET GLOBAL TimeZone='UTC'",
		"SET GLOBAL default_null_order='nulls_first_on_asc_last_on_desc'",
		"SET GLOBAL ieee_floating_point_ops=false",
		"SET GLOBAL scalar_subquery_error_on_multiple_rows=true",
		"SET GLOBAL preserve_insertion_order=false",
		"SET GLOBAL parquet_metadata_cache=true",
	}
	if c.MemoryLimit > 0 {
		out = append(out, fmt.Sprintf("SET memory_limit='%dB'", c.MemoryLimit))
	}
	if c.Threads > 0 {
		out = append(out, fmt.Sprintf("SET threads=%d", c.Threads))
	}
	if c.TempDir != "" && c.MaxTempSize > 0 {
		out = append(out, fmt.Sprintf("SET max_temp_directory_size='%dB'", c.MaxTempSize))
	}
	// DuckDB sets this for a connection only; the text of a statement is this package's.
	out = append(out, "SET allowed_configs=['enable_caching_operators']")
	return append(out, "SET enable_external_access=false", "SET lock_configuration=true"), nil
}

// connectionSettings are those that a database has for one connection.
var connectionSettings = []string{
	// Operators that wait for a full chunk copy its rows, each with its texts, which no limit counts.
	"SET enable_caching_operators=false",
}

func (db *database) connect() (duckdb.Connection, error) {
	var conn duckdb.Connection
	if duckdb.Connect(db.handle, &conn) != duckdb.StateSuccess {
		return conn, errors.New("DuckDB gave no connection")
	}
	for _, s := range connectionSettings {
		if err := execute(conn, s); err != nil {
			duckdb.Disconnect(&conn)
			return duckdb.Connection{}, err
		}
	}
	return conn, nil
}

// execute runs a statement of this package whose result does not matter.
func execute(conn duckdb.Connection, text string) error {
	var res duckdb.Result
	defer duckdb.DestroyResult(&res)
	if duckdb.Query(conn, text, &res) != duckdb.StateSuccess {
		return &engineError{text: duckdb.ResultError(&res)}
	}
	return nil
}

// retire closes the database when nothing uses it any more. The instance is
// locked.
func (db *database) retire() {
	db.retired = true
	for i := range db.idle {
		duckdb.Disconnect(&db.idle[i])
	}
	db.idle = nil
	if db.open == 0 {
		duckdb.Close(&db.handle)
	}
}

// Close ends the instance. Every statement should have ended; one that has not
// keeps its database open until then, and Close reports it.
func (in *Instance) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	in.current.retire()
	if n := in.current.open; n > 0 {
		return errorf("%d statements still run", n)
	}
	return nil
}

// take gives a connection to one statement.
func (in *Instance) take() (duckdb.Connection, *database, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return duckdb.Connection{}, nil, fault.New(fault.Unavailable, "the server is stopping")
	}
	db := in.current
	if n := len(db.idle); n > 0 {
		conn := db.idle[n-1]
		db.idle = db.idle[:n-1]
		db.open++
		return conn, db, nil
	}
	conn, err := db.connect()
	if err != nil {
		return conn, nil, fault.Wrap(fault.Internal, err, "the statement could not be computed")
	}
	db.open++
	return conn, db, nil
}

// give takes a connection back. Only one whose statement ended by itself is used
// again.
func (in *Instance) give(conn duckdb.Connection, db *database, reuse bool) {
	in.mu.Lock()
	if reuse && !db.retired && len(db.idle) < in.config.MaxConcurrent {
		db.open--
		db.idle = append(db.idle, conn)
		in.mu.Unlock()
		return
	}
	in.mu.Unlock()
	duckdb.Disconnect(&conn) // waits for what still runs on it
	in.mu.Lock()
	defer in.mu.Unlock()
	db.open--
	if db.retired && db.open == 0 {
		duckdb.Close(&db.handle)
	}
}

// replace starts another database in the place of one that refuses to work.
func (in *Instance) replace(broken *database) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.current != broken {
		return
	}
	db, err := start(in.config)
	if err != nil {
		return // the next statement that fails tries again
	}
	in.restarts.Add(1)
	in.current = db
	broken.retire()
}

// admit waits for a free slot.
func (in *Instance) admit(ctx context.Context) error {
	select {
	case in.slots <- struct{}{}:
		return nil
	default:
	}
	in.queued.Add(1)
	defer in.queued.Add(-1)
	var timeout <-chan time.Time
	if in.config.QueueTimeout > 0 {
		t := time.NewTimer(in.config.QueueTimeout)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case in.slots <- struct{}{}:
		return nil
	case <-timeout:
		in.refused.Add(1)
		return fault.New(fault.Limit, "%d statements are running and none ended within %s; try again later, or raise max-concurrent or queue-timeout", in.config.MaxConcurrent, in.config.QueueTimeout)
	case <-ctx.Done():
		return cancelled(ctx)
	}
}

// Run compiles a governed plan and starts it. The rows must be closed; ctx ends
// them. Columns of the batches are parallel to n.Columns(); see Rows for their
// types.
func (in *Instance) Run(ctx context.Context, n plan.Node, inputs Inputs) (*Rows, error) {
	if err := cancelled(ctx); err != nil {
		return nil, err
	}
	c := &compiler{inputs: inputs, store: newTextStore(n.Columns())}
	text, err := c.compile(n)
	if err != nil {
		return nil, err
	}
	if err := in.admit(ctx); err != nil {
		return nil, err
	}
	conn, db, err := in.take()
	if err != nil {
		<-in.slots
		return nil, err
	}
	in.running.Add(1)
	r := newRows(ctx, in, db, conn, n.Columns(), c.streams, c.evaluators, c.store)
	if err := r.start(text, small(n, c.rows)); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Ping runs the smallest query.
func (in *Instance) Ping(ctx context.Context) error {
	rows, err := in.Run(ctx, &plan.Values{Rows: [][]plan.Expr{{}}}, nil)
	if err != nil {
		return err
	}
	b, err := rows.Next()
	if err == nil {
		b.Release()
	}
	return errors.Join(err, rows.Close())
}

// Stats is the load of an instance.
type Stats struct {
	Running, Queued int64
	Refused         int64 // statements that waited too long, since the start
	Restarts        int64 // databases replaced after an internal error of DuckDB
	// Memory and Spilled are bytes that DuckDB holds now, -1 when it does not say.
	Memory, Spilled int64
}

// Stats measures the load.
func (in *Instance) Stats() Stats {
	s := Stats{Running: in.running.Load(), Queued: in.queued.Load(), Refused: in.refused.Load(), Restarts: in.restarts.Load(), Memory: -1, Spilled: -1}
	conn, db, err := in.take()
	if err != nil {
		return s
	}
	defer func() { in.give(conn, db, true) }()
	var res duckdb.Result
	defer duckdb.DestroyResult(&res)
	const q = "SELECT sum(memory_usage_bytes)::BIGINT, sum(temporary_storage_bytes)::BIGINT FROM duckdb_memory()"
	if duckdb.Query(conn, q, &res) == duckdb.StateSuccess {
		if chunk := duckdb.FetchChunk(res); chunk.Ptr != nil {
			s.Memory, s.Spilled = firstInt64(chunk, 0), firstInt64(chunk, 1)
			duckdb.DestroyDataChunk(&chunk)
		}
	}
	return s
}

// firstInt64 is the BIGINT in the first row of a column, -1 when there is none.
func firstInt64(chunk duckdb.DataChunk, column duckdb.IdxT) int64 {
	if duckdb.DataChunkGetSize(chunk) == 0 {
		return -1
	}
	v := duckdb.DataChunkGetVector(chunk, column)
	if valid := duckdb.VectorGetValidity(v); valid != nil && !duckdb.ValidityRowIsValid(valid, 0) {
		return -1
	}
	return *(*int64)(duckdb.VectorGetData(v))
}
