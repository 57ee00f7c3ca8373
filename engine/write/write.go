// Package write puts rows into Iceberg tables: it owns data files, delete files and
// their clean-up.
//
// Invariants: rows become visible all at once, by a commit of the catalog, or not at
// all; a change of rows is committed only onto a table whose changed files are as
// they were read; whatever fails, is cancelled or panics leaves no file behind that
// could be removed, and a file that a commit may have made visible is never removed;
// memory is bounded by Options whatever the number of rows. Values are written
// exactly or refused: a NULL in a required column, a number out of range and a lost
// digit are faults that name the column and never the value.
//
// The package decides nothing about access and knows no policy: rows that come here
// are what a governed plan yielded.
package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// Rows yields batches until io.EOF. The caller releases each batch. It is used by
// one goroutine at a time.
type Rows interface {
	Next() (arrow.RecordBatch, error)
	Close() error
}

// Committer commits a change of a table. change is called again, with the table as
// it then is, when another writer was faster. A table that others do not leave alone
// is fault.Conflict. Of an error with catalog.ErrUnknown it is not known whether the
// change was made. A catalog.Changer is one.
type Committer interface {
	Commit(ctx context.Context, name plan.TableName, change catalog.TableChange) (*plan.Table, error)
}

// Options of a write. The zero value of each member but Committer and Planner is
// right for most.
type Options struct {
	Committer Committer
	// Planner finds and reads the files of the table. Append does not need it.
	Planner *scan.Planner
	// MemoryBytes is about how much memory rows may take that are not in files yet;
	// 0 is 256 MiB. What a batch of the input takes, and what changed positions take
	// (a few bits for each row), is not in it.
	MemoryBytes int64
	// OpenFiles is how many data files may be open at once; 0 is 256. With more
	// partitions at once, files are closed early and others opened.
	OpenFiles int
	// Workers is how many files are encoded at once; 0 is the number of processors, at
	// most 4.
	Workers int
	// Hidden reports whether who writes does not see the values of a top-level column as
	// they are. When the sort order has such a column, rows are not sorted: their order
	// would tell of its values. nil: they see all.
	Hidden func(field int) bool
	// Summary is added to the summary of the snapshot.
	Summary map[string]string
	// Progress is told, from any goroutine, how many rows were taken by now. Rows that
	// are copied with files of which others change do not count.
	Progress func(rows int64)
}

func (o Options) withDefaults() Options {
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 256 << 20
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = 256
	}
	if o.Workers <= 0 {
		o.Workers = min(4, runtime.GOMAXPROCS(0))
	}
	o.Workers = min(o.Workers, o.OpenFiles)
	return o
}

// Result says what a write did.
type Result struct {
	// Table is the table after the commit; the target when nothing was to be done.
	Table *plan.Table
	// Inserted, Updated and Deleted count rows. Deleted is -1 when it is not known,
	// which an Overwrite of files with equality deletes leaves open.
	Inserted, Updated, Deleted int64
	// Files and Bytes are of the data files that were added, DeleteFiles counts the
	// files of deletes, RemovedFiles the data files that left the table.
	Files, DeleteFiles, RemovedFiles int
	Bytes                            int64
	// RemovedBytes, of data files, and RemovedDeleteFiles are those of a rewrite.
	RemovedBytes       int64
	RemovedDeleteFiles int
}

// Append adds rows with the columns of the target, in their order. It closes rows.
// Others may commit meanwhile; rows are then added to what they made of the table,
// unless they changed its schema, which is fault.Conflict.
func Append(ctx context.Context, target *plan.Table, rows Rows, o Options) (Result, error) {
	j, err := begin(ctx, target, rows, o)
	if err != nil {
		return Result{}, err
	}
	return j.run(j.append)
}

func (j *job) append() error {
	w, err := j.newWriter(j.target.schema, j.o.Workers)
	if err != nil {
		return err
	}
	if j.result.Inserted, err = j.fill(w, j.target.columns(0)); err != nil {
		return err
	}
	if len(w.files) == 0 {
		return nil
	}
	return j.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		return j.stageAppend(ctx, tx, t, w.files)
	})
}

// job is one write.
type job struct {
	ctx    context.Context
	o      Options
	target *target
	rows   Rows
	staged *staged
	result Result
}

func begin(ctx context.Context, t *plan.Table, rows Rows, o Options) (j *job, err error) {
	defer func() {
		if err != nil && rows != nil {
			_ = rows.Close()
		}
	}()
	tg, err := newTarget(ctx, t)
	if err != nil {
		return nil, err
	}
	return newJob(ctx, tg, rows, o)
}

// maintain begins a job that writes no rows.
func maintain(ctx context.Context, t *plan.Table, o Options) (*job, error) {
	tg, err := stored(ctx, t)
	if err != nil {
		return nil, err
	}
	return newJob(ctx, tg, nil, o)
}

func newJob(ctx context.Context, tg *target, rows Rows, o Options) (*job, error) {
	if o.Committer == nil {
		return nil, errors.New("a write without a committer")
	}
	if o.Hidden != nil && tg.sortsBy(o.Hidden) {
		tg.order = table.UnsortedSortOrder
	}
	return &job{
		ctx: ctx, o: o.withDefaults(), target: tg, rows: rows, staged: &staged{fs: tg.fs},
		result: Result{Table: tg.table},
	}, nil
}

// run does the work of a job, and cleans up when it fails in any way.
func (j *job) run(work func() error) (res Result, err error) {
	finished := false
	defer func() {
		if j.rows != nil {
			_ = j.rows.Close() // what it yielded is all that counts
		}
		if !finished || err != nil {
			// A panic goes on after the clean-up.
			err = j.staged.discard(err)
			res = Result{}
		}
	}()
	err = work()
	finished = true
	if err != nil {
		return Result{}, j.failure(err)
	}
	return j.result, nil
}

// failure classifies an error.
func (j *job) failure(err error) error {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(j.ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, err, "The statement took too long and was ended")
	case errors.Is(err, context.Canceled) || j.ctx.Err() != nil:
		return fault.Wrap(fault.Cancelled, err, "The statement was cancelled")
	}
	if f := catalog.StorageFault(err, fmt.Sprintf("table '%s'", j.target.table.Name)); f != nil {
		return f
	}
	return fault.Wrap(fault.Unavailable, err, "The files of table '%s' cannot be written; nothing was changed. An administrator must look at the log", j.target.table.Name)
}

// fill writes every row of the input, whose columns are found at the given indexes.
func (j *job) fill(w *writer, columns []int) (int64, error) {
	var n int64
	defer w.stop()
	err := j.each(func(b arrow.RecordBatch) error {
		rec, err := j.target.convert(j.ctx, b, columns)
		if err != nil {
			return err
		}
		defer rec.Release()
		n += rec.NumRows()
		return w.write(rec)
	})
	return n, errors.Join(err, w.finish(err))
}

// each hands out the batches of the input.
func (j *job) each(do func(arrow.RecordBatch) error) error {
	for {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		b, err := j.rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = do(b)
		b.Release()
		if err != nil {
			return err
		}
	}
}

// commit commits what stage stages on each state of the table that it meets.
func (j *job) commit(stage func(context.Context, *table.Transaction, *plan.Table) error) error {
	t, err := j.o.Committer.Commit(j.ctx, j.target.table.Name, func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if t.UUID != j.target.table.UUID {
			return fault.New(fault.Conflict, "Table '%s' was replaced by another one meanwhile; nothing was changed, try again", t.Name)
		}
		h, ok := t.Handle.(*catalog.Handle)
		if !ok {
			return errors.New("a table that no catalog loaded")
		}
		if h.Table.Metadata().CurrentSchema().ID != j.target.schema.ID {
			return fault.New(fault.Conflict, "The columns of table '%s' were changed meanwhile; nothing was changed, try again", t.Name)
		}
		return stage(ctx, tx, t)
	})
	if err != nil {
		if errors.Is(err, catalog.ErrUnknown) {
			j.staged.keep()
		}
		return err
	}
	j.staged.keep()
	j.result.Table = t
	return nil
}

func (j *job) summary() iceberg.Properties { return iceberg.Properties(j.o.Summary) }

// stageAppend adds data files to the table. Version 3 gives rows their ids when the
// manifest is written, which iceberg-go leaves to its row deltas.
func (j *job) stageAppend(ctx context.Context, tx *table.Transaction, t *plan.Table, files []*dataFile) error {
	added := make([]iceberg.DataFile, len(files))
	for i, f := range files {
		added[i] = f.build(nil)
	}
	if version(t) >= 3 {
		return tx.NewRowDelta(j.summary()).AddRows(added...).Commit(ctx)
	}
	return tx.AddDataFiles(ctx, added, j.summary(), table.WithoutAutoNameMapping(), table.WithoutDuplicateCheck())
}

func version(t *plan.Table) int { return t.Handle.(*catalog.Handle).Table.Metadata().Version() }
