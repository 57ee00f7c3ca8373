package duck

/*
#include "native.h"
void sqeStreamBind(void *info);
void sqeStreamInit(void *info);
void sqeStreamLocal(void *info);
void sqeStreamRead(void *info, void *output);
void sqeStreamDelete(void *p);
*/
import "C"

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// streamFunction is the table function that reads a source by its key.
const streamFunction = "sqe_stream"

// batchesAhead is how many batches a reader may be ahead of DuckDB.
const batchesAhead = 2

// sources are the sources of running statements by key.
var sources sync.Map

// source is one scan whose rows are streamed into DuckDB. The key is random, so
// that no text can name the source of another statement.
type source struct {
	key    string
	cols   []plan.ScanColumn
	stream scan.Stream
	rows   int64

	ctx     context.Context
	conn    duckdb.Connection
	readers sync.WaitGroup

	mu    sync.Mutex
	err   error
	feeds []*feed
}

func newSource(n *plan.Scan, in *scan.Input) *source {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails (crypto/rand)
	return &source{key: hex.EncodeToString(key[:]), cols: n.Cols, stream: in.Stream, rows: in.Rows}
}

func (s *source) begin(ctx context.Context, conn duckdb.Connection) {
	s.ctx, s.conn = ctx, conn
	sources.Store(s.key, s)
}

// end waits for the readers, whose context has ended, and frees what they read
// ahead.
func (s *source) end() {
	sources.Delete(s.key)
	s.readers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		for b := range f.batches {
			b.Release()
		}
	}
	s.feeds = nil
}

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// failure is the fault for the error of a reader, nil when there was none.
func (s *source) failure() error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	if c := cancelled(s.ctx); c != nil {
		return c
	}
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	return fault.Wrap(fault.Internal, err, "the rows of a table could not be read")
}

// feed is one pass of DuckDB over a source: a goroutine reads batches, DuckDB's
// threads take them from a channel. (A Go iterator cannot be resumed from the
// threads of DuckDB.)
type feed struct {
	source *source
	schema duckdb.ArrowConvertedSchema
	// place[k] is the column of a batch for the k-th column that DuckDB asked for,
	// -1 for one without values (a row number that nobody reads).
	place   []int
	types   []arrow.DataType
	batches chan arrow.RecordBatch
}

// piece is what one thread of DuckDB is reading.
type piece struct {
	batch arrow.RecordBatch
	off   int64
}

func (f *feed) read(columns []int) {
	s := f.source
	defer s.readers.Done()
	defer close(f.batches)
	defer func() {
		if p := recover(); p != nil {
			s.fail(fmt.Errorf("panic in a stream: %T\n%s", p, debug.Stack()))
		}
	}()
	reader, err := s.stream.Open(s.ctx, columns)
	if err != nil {
		s.fail(err)
		return
	}
	defer func() { _ = reader.Close() }()
	for {
		b, err := reader.Next()
		if err == io.EOF {
			return
		}
		if err == nil {
			b, err = f.checked(b)
		}
		if err != nil {
			s.fail(err)
			return
		}
		select {
		case f.batches <- b:
		case <-s.ctx.Done():
			b.Release()
			s.fail(context.Cause(s.ctx))
			return
		}
	}
}

// checked makes sure that a batch has the layout that DuckDB was told: it would
// read wrong memory otherwise. It takes the batch over.
func (f *feed) checked(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if int(b.NumCols()) != len(f.types) {
		n := b.NumCols()
		b.Release()
		return nil, fmt.Errorf("a stream gave %d columns for %d", n, len(f.types))
	}
	zoned := false
	for i, t := range f.types {
		if have := b.Column(i).DataType(); !sameLayout(have, t) {
			b.Release()
			return nil, fmt.Errorf("a stream gave %s for %s", have, t)
		}
		zoned = zoned || isZonedNanos(t)
	}
	if !zoned {
		return b, nil
	}
	defer b.Release()
	cols := make([]arrow.Array, len(f.types))
	fields := make([]arrow.Field, len(f.types))
	for i := range f.types {
		c := b.Column(i)
		fields[i] = b.Schema().Field(i)
		if isZonedNanos(c.DataType()) {
			d := c.Data()
			fields[i].Type = plan.TimestampNS
			nd := array.NewData(plan.TimestampNS, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
			c = array.MakeFromData(nd)
			nd.Release()
			defer c.Release()
		}
		cols[i] = c
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows()), nil
}

// registerStreams makes the table function known to a database.
func registerStreams(conn duckdb.Connection) error {
	tf := duckdb.CreateTableFunction()
	defer duckdb.DestroyTableFunction(&tf)
	duckdb.TableFunctionSetName(tf, streamFunction)
	key := duckdb.CreateLogicalType(duckdb.TypeVarchar)
	duckdb.TableFunctionAddParameter(tf, key)
	duckdb.DestroyLogicalType(&key)
	duckdb.TableFunctionSetBind(tf, unsafe.Pointer(C.sqeStreamBind))
	duckdb.TableFunctionSetInit(tf, unsafe.Pointer(C.sqeStreamInit))
	duckdb.TableFunctionSetLocalInit(tf, unsafe.Pointer(C.sqeStreamLocal))
	duckdb.TableFunctionSetFunction(tf, unsafe.Pointer(C.sqeStreamRead))
	duckdb.TableFunctionSupportsProjectionPushdown(tf, true)
	if duckdb.RegisterTableFunction(conn, tf) != duckdb.StateSuccess {
		return errors.New("DuckDB refused the table function")
	}
	return nil
}

// hold keeps a Go value alive for DuckDB until sqeStreamDelete.
func hold(v any) unsafe.Pointer {
	p := C.malloc(8)
	*(*uintptr)(p) = uintptr(cgo.NewHandle(v))
	return p
}

func held[T any](p unsafe.Pointer) T { return cgo.Handle(*(*uintptr)(p)).Value().(T) }

//export sqeStreamDelete
func sqeStreamDelete(p unsafe.Pointer) {
	h := cgo.Handle(*(*uintptr)(p))
	switch v := h.Value().(type) {
	case *feed:
		duckdb.DestroyArrowConvertedSchema(&v.schema)
	case *piece:
		if v.batch != nil {
			v.batch.Release()
			v.batch = nil
		}
	}
	h.Delete()
	C.free(p)
}

// caught turns a panic of a callback into an error of the query; a panic that
// reaches C ends the process.
func caught(report func(string)) {
	if p := recover(); p != nil {
		report(streamMark + fmt.Sprintf("panic %T\n%s", p, debug.Stack()))
	}
}

//export sqeStreamBind
func sqeStreamBind(p unsafe.Pointer) {
	info := duckdb.BindInfo{Ptr: p}
	report := func(msg string) { duckdb.BindSetError(info, msg) }
	defer caught(report)
	v := duckdb.BindGetParameter(info, 0)
	key := duckdb.GetVarchar(v)
	duckdb.DestroyValue(&v)
	found, ok := sources.Load(key)
	if !ok {
		report(streamMark + "unknown source")
		return
	}
	s := found.(*source)
	for i, col := range s.cols {
		t, err := logicalType(col.Type)
		if err != nil {
			s.fail(err)
			report(streamMark + "type")
			return
		}
		duckdb.BindAddResultColumn(info, fmt.Sprintf("f%d", i), t)
		duckdb.DestroyLogicalType(&t)
	}
	if len(s.cols) == 0 {
		t := duckdb.CreateLogicalType(duckdb.TypeBoolean)
		duckdb.BindAddResultColumn(info, "none", t)
		duckdb.DestroyLogicalType(&t)
	}
	if s.rows >= 0 {
		duckdb.BindSetCardinality(info, duckdb.IdxT(s.rows), false)
	}
	duckdb.BindSetBindData(info, hold(s), unsafe.Pointer(C.sqeStreamDelete))
}

//export sqeStreamInit
func sqeStreamInit(p unsafe.Pointer) {
	info := duckdb.InitInfo{Ptr: p}
	defer caught(func(msg string) { duckdb.InitSetError(info, msg) })
	s := held[*source](duckdb.InitGetBindData(info))
	f := &feed{source: s, batches: make(chan arrow.RecordBatch, batchesAhead)}
	asked := make([]int, int(duckdb.InitGetColumnCount(info)))
	var columns []int
	for k := range asked {
		asked[k] = -1
		if i := uint64(duckdb.InitGetColumnIndex(info, duckdb.IdxT(k))); i < uint64(len(s.cols)) {
			asked[k] = int(i)
			columns = append(columns, int(i))
		}
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	fields := make([]arrow.Field, len(columns))
	for i, col := range columns {
		t := s.cols[col].Type
		f.types = append(f.types, t)
		if isZonedNanos(t) {
			t = plan.TimestampNS
		}
		fields[i] = arrow.Field{Name: fmt.Sprintf("f%d", col), Type: t, Nullable: true}
	}
	for _, a := range asked {
		f.place = append(f.place, slices.Index(columns, a))
	}
	schema, ed := duckdb.SchemaFromArrow(s.conn, arrow.NewSchema(fields, nil))
	if err := dataError(&ed); err != nil {
		s.fail(err)
		duckdb.InitSetError(info, streamMark+"schema")
		return
	}
	f.schema = schema
	s.mu.Lock()
	s.feeds = append(s.feeds, f)
	s.mu.Unlock()
	s.readers.Add(1)
	go f.read(columns)
	duckdb.InitSetMaxThreads(info, duckdb.IdxT(runtime.GOMAXPROCS(0)))
	duckdb.InitSetInitData(info, hold(f), unsafe.Pointer(C.sqeStreamDelete))
}

//export sqeStreamLocal
func sqeStreamLocal(p unsafe.Pointer) {
	info := duckdb.InitInfo{Ptr: p}
	defer caught(func(msg string) { duckdb.InitSetError(info, msg) })
	duckdb.InitSetInitData(info, hold(&piece{}), unsafe.Pointer(C.sqeStreamDelete))
}

//export sqeStreamRead
func sqeStreamRead(p, out unsafe.Pointer) {
	info := duckdb.FunctionInfo{Ptr: p}
	report := func(msg string) { duckdb.FunctionSetError(info, msg) }
	defer caught(report)
	f := held[*feed](duckdb.FunctionGetInitData(info))
	l := held[*piece](duckdb.FunctionGetLocalInitData(info))
	chunk := duckdb.DataChunk{Ptr: out}
	for l.batch == nil || l.off >= l.batch.NumRows() {
		if l.batch != nil {
			l.batch.Release()
			l.batch = nil
		}
		select {
		case b, ok := <-f.batches:
			if !ok {
				f.source.mu.Lock()
				failed := f.source.err != nil
				f.source.mu.Unlock()
				if failed {
					report(streamMark + "reader")
				}
				duckdb.DataChunkSetSize(chunk, 0)
				return
			}
			l.batch, l.off = b, 0
		case <-f.source.ctx.Done():
			report(streamMark + "cancelled")
			return
		}
	}
	n := min(l.batch.NumRows()-l.off, int64(duckdb.VectorSize()))
	if len(f.types) > 0 {
		part := l.batch.NewSlice(l.off, l.off+n)
		data, ed := duckdb.DataChunkFromArrow(f.source.conn, part, f.schema)
		part.Release()
		if err := dataError(&ed); err != nil {
			f.source.fail(err)
			report(streamMark + "batch")
			return
		}
		for k, i := range f.place {
			if i >= 0 {
				duckdb.VectorReferenceVector(duckdb.DataChunkGetVector(chunk, duckdb.IdxT(k)), duckdb.DataChunkGetVector(data, duckdb.IdxT(i)))
			}
		}
		duckdb.DestroyDataChunk(&data)
	}
	l.off += n
	duckdb.DataChunkSetSize(chunk, duckdb.IdxT(n))
}
