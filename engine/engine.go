package engine

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/audit"
	"sqe/catalog"
	"sqe/engine/bind"
	"sqe/engine/duck"
	"sqe/engine/parse"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// Options are the parts that an Engine is made of. All are required except
// Observer, Log, Administrators and Principals.
type Options struct {
	Catalogs *catalog.Registry
	Sources  []policy.Source
	Duck     *duck.Instance
	Scans    *scan.Planner
	Masks    masks.Options
	Audit    audit.Sink
	// StatementTimeout ends a statement; 0: never.
	StatementTimeout time.Duration
	// WriteMemory bounds the rows that are being written and are not in files yet, of
	// all statements together; 0: 256 MiB.
	WriteMemory int64
	// RowLimit bounds what the row executor is fed and yields.
	RowLimit bind.Limits
	Version  string
	Observer Observer
	Log      *slog.Logger
	// Administrators write policies. None: statements that do are refused. The first
	// one gets new policies.
	Administrators []policy.Administrator
	// Import says which files statements may read.
	Import Import
	// Principals tells what this server knows of a user by itself, for SHOW
	// EFFECTIVE POLICY FOR USER; nil: nothing.
	Principals func(name string) (identity.Principal, bool)
	// TagLineage says, by the name of the catalog that is written to, what happens to
	// tags of the columns that values come from; without an entry they are carried.
	TagLineage map[string]TagLineage
	// ManagedBy says where access to a catalog is managed, by its name, when that is
	// not here.
	ManagedBy map[string]string
}

// Observer counts statements. Its arguments hold no values and no names of data.
type Observer interface {
	Statement(kind, outcome string, seconds float64, rows int64)
	Foreign(reason string)
}

// Engine runs statements. It is safe for concurrent use.
type Engine struct {
	catalogs  *catalog.Registry
	sources   []policy.Source
	binder    *bind.Binder
	duck      *duck.Instance
	scans     *scan.Planner
	masks     masks.Options
	audit     audit.Sink
	timeout   time.Duration
	rowLimit  bind.Limits
	observer  Observer
	log       *slog.Logger
	memo      *memo
	writing   writeMemory
	processes processes
	broken    brokenPolicies

	imports        Import
	administrators []policy.Administrator
	projecting     catalog.Turns // while tags of a table go to it and to policy servers
	principals     func(name string) (identity.Principal, bool)
	tagLineage     map[string]TagLineage
	managedBy      map[string]string
}

// New makes an engine.
func New(o Options) *Engine {
	e := &Engine{
		catalogs: o.Catalogs, sources: o.Sources, duck: o.Duck, scans: o.Scans, masks: o.Masks,
		audit: o.Audit, timeout: o.StatementTimeout, rowLimit: o.RowLimit,
		observer: o.Observer, log: o.Log, memo: newMemo(4096),
		projecting: catalog.NewTurns(), administrators: o.Administrators, principals: o.Principals, imports: o.Import, tagLineage: o.TagLineage, managedBy: o.ManagedBy,
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.writing.total = o.WriteMemory
	if e.writing.total <= 0 {
		e.writing.total = 256 << 20
	}
	if e.observer == nil {
		e.observer = nobody{}
	}
	e.binder = bind.New(bind.Options{Version: o.Version, Accepts: duck.Accepts, DefaultDatabase: ""})
	return e
}

type nobody struct{}

func (nobody) Statement(string, string, float64, int64) {}
func (nobody) Foreign(string)                           {}

// KillQuery cancels the running statement of a session.
func (e *Engine) KillQuery(id uint32, by identity.Principal) error {
	return e.processes.kill(id, true, by)
}

// SetConnectionCloser tells the engine how KILL closes a connection.
func (e *Engine) SetConnectionCloser(f func(id uint32)) {
	e.processes.mu.Lock()
	defer e.processes.mu.Unlock()
	e.processes.closer = f
}

// Status is the condition of every policy source.
func (e *Engine) Status() []policy.Status {
	out := make([]policy.Status, len(e.sources))
	for i, s := range e.sources {
		out[i] = s.Status()
	}
	return out
}

// govern is the way of a statement from SQL to a plan that may run.
func (st *statement) govern(ctx context.Context, sql *parse.SQL, args []plan.Literal) (plan.Node, *rewrite.Record, error) {
	bound, err := st.bind(ctx, sql, args)
	if err != nil {
		return nil, nil, err
	}
	return st.governBound(ctx, bound)
}

func (st *statement) bind(ctx context.Context, sql *parse.SQL, args []plan.Literal) (*bind.Bound, error) {
	relations{st}.prefetchNamed(ctx, parse.NamesOf(sql), st.session.vars.Database())
	return st.engine.binder.Bind(ctx, st.session.vars, relations{st}, sql, args)
}

// governBound is govern of a statement that was bound.
func (st *statement) governBound(ctx context.Context, bound *bind.Bound) (plan.Node, *rewrite.Record, error) {
	st.session.vars.SetWarnings(slices.Concat(bound.Warnings, st.absent))
	governed, record, err := rewrite.Govern(bound.Plan, bound.IDs, func(s *plan.Scan) (*rewrite.Bound, error) {
		return st.bound(ctx, s.Table)
	}, st.saltBytes)
	if err != nil {
		return nil, nil, err
	}
	if err := rewrite.Verify(governed); err != nil {
		return nil, nil, err
	}
	governed = rewrite.Pushdown(governed)
	// Moving predicates may not open what the rewrite closed.
	return governed, record, rewrite.Verify(governed)
}

// run executes a governed plan.
func (st *statement) run(ctx context.Context, n plan.Node) (Rows, error) {
	if rows, ok := constant(n); ok {
		return rows, nil
	}
	inputs := func(s *plan.Scan) (*scan.Input, error) { return st.engine.scans.Plan(ctx, s) }
	f, ok := n.(*plan.Foreign)
	if !ok {
		if by := byRow(n); len(by) > 0 {
			st.engine.observer.Foreign(by[0])
		}
		return st.engine.duck.Run(ctx, n, inputs)
	}
	if f.Reason != "" {
		st.engine.observer.Foreign(f.Reason)
	}
	children := make([]bind.Rows, len(f.Children))
	for i, c := range f.Children {
		children[i] = &lazyRows{open: func() (Rows, error) { return st.engine.duck.Run(ctx, c, inputs) }}
	}
	return st.engine.binder.RunForeign(ctx, st.session.vars, relations{st}, f, children, st.engine.rowLimit)
}

// lazyRows starts with the first Next and ends with the last one. The row
// executor reads each of its inputs whole before the next, so that a statement
// with several never holds more than one place in the executor: statements that
// each hold one and wait for another would wait for ever.
type lazyRows struct {
	open func() (Rows, error)
	rows Rows
	done bool
}

// Next implements Rows.
func (l *lazyRows) Next() (arrow.RecordBatch, error) {
	if l.done {
		return nil, io.EOF
	}
	if l.rows == nil {
		rows, err := l.open()
		if err != nil {
			return nil, err
		}
		l.rows = rows
	}
	b, err := l.rows.Next()
	if isEOF(err) {
		if cerr := l.Close(); cerr != nil {
			return nil, cerr
		}
	}
	return b, err
}

// Close implements Rows.
func (l *lazyRows) Close() error {
	l.done = true
	if l.rows == nil {
		return nil
	}
	rows := l.rows
	l.rows = nil
	return rows.Close()
}

// unsupported is the refusal of statements that the engine does not have.
func unsupported(what string) error {
	return fault.New(fault.Unsupported, "%s is not supported; docs/sql.md lists what is", what)
}
