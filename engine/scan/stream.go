package scan

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// task is a data file that is read here: one with deletes, one that is not local,
// or one whose columns need more than a widening cast.
type task struct {
	table.FileScanTask
	// constants are the values of columns that the file does not have, by field
	// id; one that is in neither is NULL.
	constants map[int]*plan.Literal
	layout    *layout // nil when the file is not local
}

// taskStream reads tasks.
type taskStream struct {
	planner *Planner
	handle  *catalog.Handle
	table   *plan.Table
	cols    []plan.ScanColumn
	tasks   []task
	// condition is what the rows of a row group may be under the scan's Prune; nil: all
	// are read.
	condition condition
}

// Open implements Stream. Several workers read different files, each at most one
// batch ahead of what has been taken, so that memory is bounded by the number of
// workers and the size of a batch and of a row group.
func (s *taskStream) Open(ctx context.Context, columns []int) (Reader, error) {
	want := make([]plan.ScanColumn, len(columns))
	for i, c := range columns {
		want[i] = s.cols[c]
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &channelReader{ctx: ctx, cancel: cancel, batches: make(chan batch), table: s.table}
	queue := make(chan task, len(s.tasks))
	for _, t := range s.tasks {
		queue <- t
	}
	close(queue)
	deletes := &positions{stream: s, files: map[string]map[string]*dv.RoaringPositionBitmap{}}
	var wg sync.WaitGroup
	for range min(s.width(), len(s.tasks)) {
		wg.Go(func() {
			for t := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := guarded(func() error { return s.read(ctx, t, want, deletes, r.batches) }); err != nil {
					select {
					case r.batches <- batch{err: err}:
					case <-ctx.Done():
					}
					return
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(r.batches)
	}()
	return r, nil
}

// width is how many files are read at once. Those in an object store spend most of
// their time on the way.
func (s *taskStream) width() int {
	if slices.ContainsFunc(s.tasks, task.remote) {
		return max(s.planner.workers, 8)
	}
	return s.planner.workers
}

// remote reports whether the file lies in an object store.
func (t task) remote() bool { return localPath(t.File.FilePath()) == "" }

// read sends the rows of one task.
func (s *taskStream) read(ctx context.Context, t task, want []plan.ScanColumn, deletes *positions, out chan<- batch) error {
	t = t.placed(want)
	if err := s.readDirect(ctx, t, want, deletes, out); !errors.Is(err, errNotDirect) {
		return err
	}
	if numbersRows(want) {
		return fault.New(fault.Unsupported, "Table '%s' has a data file, or deletes of one, in a form in which SQE cannot tell where a row lies; rewrite the data files of the table", s.table.Name)
	}
	if err := s.verify(ctx, t); err != nil {
		return err
	}
	names, err := s.selected(t, want)
	if err != nil {
		return err
	}
	scan, err := scanOf(s.handle, table.WithSelectedFields(names...), table.WithMaxConcurrency(1), table.WithArrowBatchSize(s.planner.batchRows))
	if err != nil {
		return err
	}
	defer func() { _ = scan.Close() }()
	_, records, err := scan.ReadTasks(ctx, []table.FileScanTask{t.FileScanTask})
	if err != nil {
		return err
	}
	for rec, err := range records {
		if err != nil {
			return err
		}
		shaped, err := shape(rec, want, t.constants, s.table)
		rec.Release()
		if err != nil {
			return err
		}
		select {
		case out <- batch{rec: shaped}:
		case <-ctx.Done():
			shaped.Release()
			return ctx.Err()
		}
	}
	return nil
}

// selected names the columns to read. At least one must be in the file, even when
// none is wanted: rows are counted by one, and iceberg-go cannot read a file of
// which it needs no column.
func (s *taskStream) selected(t task, want []plan.ScanColumn) ([]string, error) {
	var names []string
	found := false
	add := func(f plan.Field) {
		names = append(names, f.Name)
		found = found || t.has(f.ID)
	}
	for _, c := range want {
		if t.constants[c.FieldID] != nil {
			continue
		}
		f, ok := s.table.Field(c.FieldID)
		if !ok {
			return nil, errors.New("scan of a field that the table does not have")
		}
		add(f)
	}
	if !found {
		f, ok := s.cheapest(t)
		if !ok {
			return nil, fault.New(fault.Unsupported, "Table '%s' has a file with deletes and with none of today's columns, which SQE cannot read; rewrite the data files of the table", s.table.Name)
		}
		add(f)
	}
	for _, n := range names {
		// A dot in a name reads like a path into a struct: read everything.
		if strings.Contains(n, ".") {
			return []string{"*"}, nil
		}
	}
	return names, nil
}

// has reports whether the file has a column; of a file that is not local it is
// taken for granted.
func (t task) has(id int) bool {
	if t.layout == nil {
		return true
	}
	_, ok := t.layout.byID[id]
	return ok
}

// cheapest is the smallest column of the table that is in the file.
func (s *taskStream) cheapest(t task) (plan.Field, bool) {
	var best plan.Field
	width := 0
	for _, f := range s.table.Fields {
		w := 1000
		switch t := f.Type.(type) {
		case *arrow.NullType:
			continue
		case arrow.FixedWidthDataType:
			w = t.BitWidth()
		case arrow.NestedType:
			w = 10_000
		}
		if t.has(f.ID) && (best.ID == 0 || w < width) {
			best, width = f, w
		}
	}
	return best, best.ID != 0
}

type batch struct {
	rec arrow.RecordBatch
	err error
}

// channelReader is the Reader of what goroutines send. (Pulling an iterator on the
// goroutine of the caller is not possible: executors call from foreign threads.)
type channelReader struct {
	ctx     context.Context
	cancel  context.CancelFunc
	batches chan batch
	table   *plan.Table
	failed  error
	once    sync.Once
}

// Next implements Reader.
func (r *channelReader) Next() (arrow.RecordBatch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	b, ok := <-r.batches
	switch {
	case ok && b.err == nil:
		return b.rec, nil
	case ok:
		r.failed = broken(r.ctx, b.err, r.table)
	case r.ctx.Err() != nil:
		r.failed = broken(r.ctx, r.ctx.Err(), r.table)
	default:
		r.failed = io.EOF
	}
	return nil, r.failed
}

// Close implements Reader. It waits until every goroutine of the reader has ended.
func (r *channelReader) Close() error {
	r.once.Do(func() {
		r.cancel()
		for b := range r.batches {
			if b.rec != nil {
				b.rec.Release()
			}
		}
		if r.failed == nil {
			r.failed = errors.New("read from a closed reader")
		}
	})
	return nil
}
