package duck

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sqe/plan"
)

// Rows is the running result of one statement. It is used by one goroutine at a
// time. DuckDB computes ahead by about one megabyte (long texts are with the text store),
// so a client that stops reading stops the statement.
//
// The Arrow type of a column is that of the plan with these layouts: UUID is text
// of 36 characters, JSON is text, fixed and binary are binary, the NULL type is
// int32 with every value null, and TimestampTZNS is a timestamp in nanoseconds
// without a zone, in UTC.
type Rows struct {
	ctx     context.Context
	in      *Instance
	db      *database
	conn    duckdb.Connection
	columns []plan.Column
	streams []*source
	calls   []*evaluator
	texts   *textStore // nil: the result has no texts

	stmt    duckdb.PreparedStatement
	pending duckdb.PendingResult
	res     duckdb.Result
	options duckdb.ArrowOptions
	schema  *arrow.Schema
	parts   parts // what Next has of the last chunk
	err     error // what Next returns from now on
	cancel  context.CancelCauseFunc
	stop    func() bool
	over    chan struct{} // closed when the interrupter has ended

	mu   sync.Mutex
	busy bool // DuckDB is computing

	closed bool
}

func newRows(ctx context.Context, in *Instance, db *database, conn duckdb.Connection, columns []plan.Column, streams []*source, calls []*evaluator, k *textStore) *Rows {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Rows{ctx: ctx, in: in, db: db, conn: conn, columns: columns, streams: streams, calls: calls, texts: k, over: make(chan struct{})}
	r.cancel = cancel
	for _, s := range streams {
		s.begin(ctx, conn)
	}
	for _, e := range calls {
		e.begin(ctx)
	}
	if k != nil {
		k.begin(&in.budget)
	}
	r.stop = context.AfterFunc(ctx, r.interrupt)
	return r
}

// interrupt stops DuckDB. It asks again until the call has returned, since a
// request between two steps of DuckDB is lost.
func (r *Rows) interrupt() {
	defer close(r.over)
	for {
		r.mu.Lock()
		busy := r.busy
		if busy {
			duckdb.Interrupt(r.conn)
		}
		r.mu.Unlock()
		if !busy {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// call runs f, which calls DuckDB, so that it can be interrupted.
func (r *Rows) call(f func()) error {
	r.mu.Lock()
	if err := cancelled(r.ctx); err != nil {
		r.mu.Unlock()
		return err
	}
	r.busy = true
	r.mu.Unlock()
	f()
	r.mu.Lock()
	r.busy = false
	r.mu.Unlock()
	return nil
}

// start runs the query until its first rows; a small one to its end.
func (r *Rows) start(text string, small bool) error {
	var msg string
	err := r.call(func() {
		if small {
			if duckdb.Query(r.conn, text, &r.res) != duckdb.StateSuccess {
				msg = duckdb.ResultError(&r.res)
			}
			return
		}
		if duckdb.Prepare(r.conn, text, &r.stmt) != duckdb.StateSuccess {
			msg = duckdb.PrepareError(r.stmt)
			return
		}
		if duckdb.PendingPreparedStreaming(r.stmt, &r.pending) != duckdb.StateSuccess {
			msg = duckdb.PendingError(r.pending)
			return
		}
		if duckdb.ExecutePending(r.pending, &r.res) != duckdb.StateSuccess {
			msg = duckdb.ResultError(&r.res)
		}
	})
	if err != nil {
		return r.fail(err)
	}
	if msg != "" {
		return r.fail(r.failure(msg))
	}
	return r.describe()
}

// describe learns the Arrow schema of the result.
func (r *Rows) describe() error {
	n := duckdb.ColumnCount(&r.res)
	names := make([]string, n)
	types := make([]duckdb.LogicalType, n)
	for i := range types {
		types[i] = duckdb.ColumnLogicalType(&r.res, duckdb.IdxT(i))
		if i < len(r.columns) {
			names[i] = r.columns[i].Name
		}
	}
	defer func() {
		for i := range types {
			duckdb.DestroyLogicalType(&types[i])
		}
	}()
	r.options = duckdb.ResultGetArrowOptions(&r.res)
	schema, ed := duckdb.NewArrowSchema(r.options, types, names)
	if err := dataError(&ed); err != nil {
		return r.fail(r.failure(err.Error()))
	}
	r.schema = schema
	return nil
}

func dataError(ed *duckdb.ErrorData) error {
	defer duckdb.DestroyErrorData(ed)
	if ed.Ptr == nil || !duckdb.ErrorDataHasError(*ed) {
		return nil
	}
	return &engineError{text: duckdb.ErrorDataMessage(*ed)}
}

func (r *Rows) fail(err error) error {
	r.err = err
	return err
}

// failure is the fault for an error text of DuckDB, or of a stream when it was
// one that failed.
func (r *Rows) failure(msg string) error {
	if invalidated(msg) {
		r.in.replace(r.db)
	}
	for _, s := range r.streams {
		if err := s.failure(); err != nil {
			return err
		}
	}
	if strings.Contains(msg, rowMark) && r.ctx.Err() == nil {
		for _, e := range r.calls {
			if err := e.failure(); err != nil {
				return err
			}
		}
	}
	if r.texts != nil && strings.Contains(msg, memoryMark) {
		if err := r.texts.failure(); err != nil {
			msg += ": " + err.Error() // the cause, for the log
		}
	}
	return failure(r.ctx, msg)
}

// Next is the next batch, to be released by the caller, or io.EOF.
func (r *Rows) Next() (arrow.RecordBatch, error) {
	for {
		if r.err != nil {
			return nil, r.err
		}
		b, err := r.next()
		if err != nil {
			return nil, r.fail(err)
		}
		if b.NumRows() > 0 {
			return b, nil
		}
		b.Release()
	}
}

func (r *Rows) next() (arrow.RecordBatch, error) {
	if len(r.parts.ends) > 0 {
		return r.part()
	}
	r.parts.close()
	var chunk duckdb.DataChunk
	var msg string
	if err := r.call(func() {
		chunk = duckdb.FetchChunk(r.res)
		if chunk.Ptr == nil {
			// The end and an error look the same.
			msg = duckdb.ResultError(&r.res)
		}
	}); err != nil {
		return nil, err
	}
	if chunk.Ptr == nil {
		if msg != "" {
			return nil, r.failure(msg)
		}
		for _, s := range r.streams {
			if err := s.failure(); err != nil {
				return nil, err
			}
		}
		if err := cancelled(r.ctx); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	r.parts = parts{chunk: chunk}
	if len(r.columns) == 0 {
		return array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, int64(duckdb.DataChunkGetSize(chunk))), nil
	}
	p, ok := batchesOf(chunk, r.texts)
	if !ok {
		return nil, r.failure(memoryMark + "row")
	}
	if len(p.ends) > 1 || p.held != nil {
		r.parts = p
		return r.part()
	}
	b, ed := duckdb.DataChunkToArrowArray(r.options, r.schema, chunk)
	if err := dataError(&ed); err != nil {
		return nil, r.failure(err.Error())
	}
	return b, nil
}

// part is the next batch of a chunk that comes in several.
func (r *Rows) part() (arrow.RecordBatch, error) {
	if err := cancelled(r.ctx); err != nil {
		return nil, err
	}
	b, err := r.parts.next(r.options, r.schema, r.texts)
	if err != nil {
		return nil, r.failure(err.Error())
	}
	return b, nil
}

// Close ends the statement and frees what it holds. It may be called again.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	ended := r.err == io.EOF
	if !r.stop() {
		<-r.over
	}
	r.cancel(nil)
	r.parts.close()
	if r.options.Ptr != nil {
		duckdb.DestroyArrowOptions(&r.options)
	}
	duckdb.DestroyResult(&r.res)
	if r.pending.Ptr != nil {
		duckdb.DestroyPending(&r.pending)
	}
	if r.stmt.Ptr != nil {
		duckdb.DestroyPrepare(&r.stmt)
	}
	r.in.give(r.conn, r.db, ended)
	for _, s := range r.streams {
		s.end()
	}
	for _, e := range r.calls {
		e.end()
	}
	if r.texts != nil {
		r.texts.end()
	}
	r.in.running.Add(-1)
	<-r.in.slots
	return nil
}
