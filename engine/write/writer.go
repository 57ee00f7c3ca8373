package write

import (
	"context"
	"fmt"
	"path"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
)

// maxPiece is how many rows are encoded between two looks at the context.
const maxPiece = 32 << 10

// writer spreads rows over data files by their partition. Each lane is a goroutine
// that has files of its own: the rows of a partition go to one lane, those of a table
// without partitions to the lanes in turn, but to the first alone while they are few.
type writer struct {
	job    *job
	layout *layout
	parts  *partitioner
	order  *sorter // nil: as they come
	id     string

	ctx     context.Context
	cancel  context.CancelCauseFunc
	lanes   []*lane
	next    int
	stopped bool
	// room bounds the bytes of the pieces that wait for lanes.
	room    *semaphore.Weighted
	waiting int64
	routed  int64 // bytes that were given to lanes
	number  atomic.Int64
	rows    atomic.Int64

	mu    sync.Mutex
	files []*dataFile
}

type lane struct {
	w      *writer
	input  chan piece
	done   chan struct{}
	open   map[*partition]*openFile
	memory int64 // bound
	files  int   // bound
	chunk  int64 // so much of a partition is encoded at once
	clock  int64
	// writing is how many of the open files are there already.
	writing int
}

// piece is rows on their way to a lane. held is how much of the room of the writer
// they take.
type piece struct {
	part *partition
	rec  arrow.RecordBatch
	held int64
}

// waitingPieces is how many pieces may wait for a lane, if there is room for them:
// enough that the input goes on while a lane encodes.
const waitingPieces = 64

// newWriter makes a writer of files with the given columns. With one worker, rows
// keep their order.
func (j *job) newWriter(schema *iceberg.Schema, workers int) (*writer, error) {
	columns := j.target.arrow
	if schema != j.target.schema {
		var err error
		if schema, columns, err = j.target.withLineage(); err != nil {
			return nil, err
		}
	}
	l, err := newLayout(columns, schema, j.target.order, j.target.handle.Table.Metadata().Properties())
	if err != nil {
		return nil, err
	}
	parts, err := newPartitioner(j.target.spec, j.target.schema, workers)
	if err != nil {
		return nil, err
	}
	w := &writer{job: j, layout: l, parts: parts, id: uuid.NewString()}
	if w.order, err = newSorter(j.target.order, j.target.schema); err != nil {
		return nil, err
	}
	memory := max(1<<20, j.o.MemoryBytes/int64(workers))
	l.group = min(l.group, memory/2)
	chunk := min(4<<20, memory/8)
	w.waiting = 2 * chunk * int64(workers)
	w.room = semaphore.NewWeighted(w.waiting)
	w.ctx, w.cancel = context.WithCancelCause(j.ctx)
	for range workers {
		ln := &lane{
			w: w, input: make(chan piece, waitingPieces), done: make(chan struct{}), open: map[*partition]*openFile{},
			memory: memory, files: max(1, j.o.OpenFiles/workers), chunk: chunk,
		}
		w.lanes = append(w.lanes, ln)
		go ln.run()
	}
	return w, nil
}

// aloneBytes is up to how much of a table without partitions goes to the first lane.
const aloneBytes = 32 << 20

// write takes rows with the columns of the files. It keeps what it needs of rec.
func (w *writer) write(rec arrow.RecordBatch) error {
	for from := int64(0); from < rec.NumRows(); from += maxPiece {
		part := rec.NewSlice(from, min(from+maxPiece, rec.NumRows()))
		err := w.route(part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) route(rec arrow.RecordBatch) error {
	if len(w.parts.fields) == 0 {
		at := 0
		if w.routed > aloneBytes {
			at = w.idlest()
		}
		w.routed += sizeOf(rec)
		rec.Retain()
		return w.send(at, piece{rec: rec})
	}
	parts, rows, err := w.parts.split(rec)
	if err != nil {
		return err
	}
	if len(parts) == 1 {
		rec.Retain()
		return w.send(parts[0].lane, piece{part: parts[0], rec: rec})
	}
	for i, p := range parts {
		taken, err := take(w.ctx, rec, rows[i])
		if err != nil {
			return w.cause(err)
		}
		if err := w.send(p.lane, piece{part: p, rec: taken}); err != nil {
			return err
		}
	}
	return nil
}

// idlest is the lane for which the fewest pieces wait, of several the one after the
// last.
func (w *writer) idlest() int {
	best := (w.next + 1) % len(w.lanes)
	for i := range w.lanes {
		at := (w.next + 1 + i) % len(w.lanes)
		if len(w.lanes[at].input) < len(w.lanes[best].input) {
			best = at
		}
	}
	w.next = best
	return best
}

func (w *writer) send(lane int, p piece) error {
	p.held = min(sizeOf(p.rec), w.waiting)
	if w.room.Acquire(w.ctx, p.held) != nil {
		p.rec.Release()
		return context.Cause(w.ctx)
	}
	select {
	case w.lanes[lane].input <- p:
		return nil
	case <-w.ctx.Done():
		p.rec.Release()
		w.room.Release(p.held)
		return context.Cause(w.ctx)
	}
}

// cause is why the writer stopped, when it did.
func (w *writer) cause(err error) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return err
}

// stop gives up what is not finished, and waits for every goroutine of the writer.
func (w *writer) stop() {
	if w.stopped {
		return
	}
	w.stopped = true
	w.cancel(errStopped)
	for _, l := range w.lanes {
		close(l.input)
	}
	for _, l := range w.lanes {
		<-l.done
	}
}

// finish closes the files, which are in w.files then; when the input failed, it stops.
// The job counts them.
func (w *writer) finish(failed error) error {
	if failed != nil {
		w.stop()
		return nil
	}
	err := w.close()
	if err == nil {
		w.job.count(w.files)
	}
	return err
}

// close closes the files. It waits for every goroutine of the writer.
func (w *writer) close() error {
	w.stopped = true
	for _, l := range w.lanes {
		close(l.input)
	}
	for _, l := range w.lanes {
		<-l.done
	}
	err := context.Cause(w.ctx)
	w.cancel(nil)
	return err
}

func (j *job) count(files []*dataFile) {
	j.result.Files += len(files)
	for _, f := range files {
		j.result.Bytes += f.size
	}
}

func (l *lane) run() {
	defer close(l.done)
	defer func() {
		if p := recover(); p != nil {
			l.w.cancel(fmt.Errorf("panic while writing a data file: %T\n%s", p, debug.Stack()))
		}
		for _, f := range l.open {
			f.abort()
		}
		for p := range l.input {
			p.rec.Release()
		}
	}()
	for p := range l.input {
		if l.w.ctx.Err() != nil {
			p.rec.Release()
			return
		}
		err := l.add(p)
		p.rec.Release()
		l.w.room.Release(p.held)
		if err != nil {
			l.w.cancel(err)
			return
		}
	}
	for part := range l.open {
		if l.w.ctx.Err() != nil {
			return
		}
		if err := l.close(part); err != nil {
			l.w.cancel(err)
			return
		}
	}
}

func (l *lane) add(p piece) error {
	f := l.open[p.part]
	if f == nil {
		f = &openFile{layout: l.w.layout, part: p.part, spec: l.w.parts.spec}
		l.open[p.part] = f
	}
	l.clock++
	f.used = l.clock
	p.rec.Retain()
	f.pending = append(f.pending, p.rec)
	f.waiting += sizeOf(p.rec)
	switch {
	case l.w.order != nil:
		// Rows are compressed to a third or so; a file that came out small is no harm.
		if f.waiting >= 2*l.w.layout.target {
			return l.close(p.part)
		}
	case f.waiting >= l.chunk:
		if err := l.encode(f); err != nil {
			return err
		}
		if f.size() >= l.w.layout.target {
			return l.close(p.part)
		}
	}
	n := l.w.rows.Add(p.rec.NumRows())
	if l.w.job.o.Progress != nil {
		l.w.job.o.Progress(n)
	}
	return l.shrink()
}

// encode puts the waiting rows of a partition into its file.
func (l *lane) encode(f *openFile) error {
	if f.out == nil {
		if l.writing >= l.files {
			if err := l.close(l.oldest()); err != nil {
				return err
			}
		}
		if err := l.create(f); err != nil {
			return err
		}
	}
	for len(f.pending) > 0 {
		rec := f.pending[0]
		f.pending = f.pending[1:]
		err := f.write(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	f.waiting = 0
	return nil
}

// shrink encodes rows, ends row groups or closes files, largest first, until the
// bound holds. A sorted file is sorted as a whole, so that it is closed.
func (l *lane) shrink() error {
	for {
		var sum int64
		var largest *partition
		var f *openFile
		for part, o := range l.open {
			sum += o.waiting + o.buffered
			if f == nil || o.waiting+o.buffered > f.waiting+f.buffered {
				largest, f = part, o
			}
		}
		if sum <= l.memory {
			return nil
		}
		if l.w.order != nil || f.waiting+f.buffered < 64<<10 {
			if err := l.close(largest); err != nil {
				return err
			}
			continue
		}
		if err := l.encode(f); err != nil {
			return err
		}
		before := f.buffered
		if err := f.flush(); err != nil {
			return err
		}
		if f.buffered >= before {
			if err := l.close(largest); err != nil {
				return err
			}
		}
	}
}

func (l *lane) oldest() *partition {
	var oldest *partition
	var f *openFile
	for part, o := range l.open {
		if o.out != nil && (f == nil || o.used < f.used) {
			oldest, f = part, o
		}
	}
	return oldest
}

func (l *lane) create(f *openFile) error {
	name := fmt.Sprintf("%05d-0-%s.parquet", l.w.number.Add(1), l.w.id)
	if f.part != nil && f.part.path != "" {
		name = path.Join(f.part.path, name)
	}
	location := l.w.job.target.locations.NewDataLocation(name)
	l.w.job.staged.add(location)
	if err := f.create(l.w.job.target.fs, location); err != nil {
		return err
	}
	l.writing++
	return nil
}

func (l *lane) close(part *partition) error {
	f := l.open[part]
	sorted := 0
	if l.w.order != nil && len(f.pending) > 0 {
		if err := l.w.order.sort(l.w.ctx, f); err != nil {
			return err
		}
		sorted = l.w.job.target.order.OrderID()
	}
	if err := l.encode(f); err != nil {
		return err
	}
	delete(l.open, part)
	l.writing--
	done, err := f.close()
	if err != nil {
		f.abort()
		return err
	}
	done.sortOrder = sorted
	l.w.mu.Lock()
	l.w.files = append(l.w.files, done)
	l.w.mu.Unlock()
	return nil
}

// take makes a batch of some rows of another.
func take(ctx context.Context, rec arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	if n := len(rows); n > 0 && int(rows[n-1]-rows[0]) == n-1 {
		return rec.NewSlice(int64(rows[0]), int64(rows[0])+int64(n)), nil
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(rows, nil)
	at := b.NewArray()
	defer at.Release()
	return takeRows(ctx, rec, at)
}

func takeRows(ctx context.Context, rec arrow.RecordBatch, at arrow.Array) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, c := range rec.Columns() {
		plain, err := relabelled(c, storage(c.DataType()))
		if err != nil {
			return nil, err
		}
		taken, err := compute.TakeArrayOpts(ctx, plain, at, compute.TakeOptions{BoundsCheck: false})
		plain.Release()
		if err != nil {
			return nil, err
		}
		out, err := relabelled(taken, rec.Schema().Field(i).Type)
		taken.Release()
		if err != nil {
			return nil, err
		}
		cols = append(cols, out)
	}
	return array.NewRecordBatch(rec.Schema(), cols, int64(at.Len())), nil
}
