package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"golang.org/x/sync/errgroup"

	"sqe/catalog"
	"sqe/plan"
)

func (c *change) copyOnWrite(schema *iceberg.Schema) error {
	var tasks []table.FileScanTask
	var rest []*ended // files of which rows are left
	for _, e := range c.ordered() {
		tasks = append(tasks, e.task)
		gone := e.positions.Cardinality()
		if len(e.task.EqualityDeleteFiles) == 0 {
			before, err := c.o.Planner.Deleted(c.ctx, c.target.table, e.task)
			if err != nil {
				return err
			}
			gone += before.Cardinality()
		}
		if gone < e.task.File.Count() {
			rest = append(rest, e)
		}
	}
	copied, err := c.copyFiles(schema, rest)
	if err != nil {
		return err
	}
	added := append(c.new[:len(c.new):len(c.new)], copied...)
	c.result.RemovedFiles = len(tasks)
	return c.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if err := c.unchanged(ctx, t, tasks); err != nil {
			return err
		}
		return c.stageReplace(ctx, tx, t, tasks, added)
	})
}

// copyFiles writes the rows of files that stay. Each worker has a writer of its own,
// which keeps the rows in their order, and its share of the memory.
func (c *change) copyFiles(schema *iceberg.Schema, files []*ended) ([]*dataFile, error) {
	workers := min(c.o.Workers, len(files))
	if workers == 0 {
		return nil, nil
	}
	share := *c.job
	share.o.MemoryBytes = max(1, c.o.MemoryBytes/int64(workers))
	share.o.OpenFiles = max(1, c.o.OpenFiles/workers)
	share.o.Progress = nil // who changes some rows may not know how many others there are
	group, ctx := errgroup.WithContext(c.ctx)
	share.ctx = ctx
	done := make([]*writer, workers)
	for i := range workers {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic while a data file was rewritten: %T\n%s", p, debug.Stack())
				}
			}()
			w, err := share.newWriter(schema, 1)
			if err != nil {
				return err
			}
			defer w.stop()
			done[i] = w
			for k := i * len(files) / workers; k < (i+1)*len(files)/workers; k++ {
				if err := share.copyRows(w, files[k].task, files[k].positions); err != nil {
					return err
				}
			}
			return w.close()
		})
	}
	if err := group.Wait(); err != nil {
		if c.ctx.Err() != nil {
			return nil, c.ctx.Err()
		}
		return nil, err
	}
	var out []*dataFile
	for _, w := range done {
		c.count(w.files)
		out = append(out, w.files...)
	}
	return out, nil
}

// copyRows writes the live rows of a file but those at the given positions, in their
// order and, with row lineage, under their ids.
func (j *job) copyRows(w *writer, t table.FileScanTask, without *dv.RoaringPositionBitmap) error {
	withIDs := w.layout.iceberg != j.target.schema
	s := &plan.Scan{Table: j.target.table}
	var ids plan.IDs
	add := func(id int, name string, t arrow.DataType) {
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: name, Type: t, Nullable: true}, FieldID: id})
	}
	for _, f := range j.target.table.Fields {
		add(f.ID, f.Name, f.Type)
	}
	n := len(s.Cols)
	add(plan.PositionField, "_pos", plan.Int64)
	if withIDs {
		add(plan.RowIDField, "_row_id", plan.Int64)
		add(plan.LastUpdatedField, "_last_updated_sequence_number", plan.Int64)
	}
	r, err := j.o.Planner.ReadTask(j.ctx, s, t)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = j.copyBatch(w, b, n, withIDs, without)
		b.Release()
		if err != nil {
			return err
		}
	}
}

func (j *job) copyBatch(w *writer, b arrow.RecordBatch, n int, withIDs bool, without *dv.RoaringPositionBitmap) error {
	if without != nil {
		positions := b.Column(n).(*array.Int64)
		var rows []int32
		for i := range positions.Len() {
			if !without.Contains(uint64(positions.Value(i))) {
				rows = append(rows, int32(i))
			}
		}
		if len(rows) == 0 {
			return nil
		}
		var err error
		if b, err = take(j.ctx, b, rows); err != nil {
			return err
		}
		defer b.Release()
	}
	rec, err := j.target.convert(j.ctx, b, j.target.columns(0))
	if err != nil {
		return err
	}
	defer rec.Release()
	if !withIDs {
		return w.write(rec)
	}
	all, err := j.target.extended(rec, b.Column(n+1), b.Column(n+2))
	if err != nil {
		return err
	}
	defer all.Release()
	return w.write(all)
}

// stageReplace takes data files out of the table, with the deletes that were about
// them alone, and puts others in.
func (j *job) stageReplace(ctx context.Context, tx *table.Transaction, t *plan.Table, remove []table.FileScanTask, added []*dataFile) error {
	gone, dead, err := j.removal(ctx, t, remove)
	if err != nil {
		return err
	}
	return tx.ReplaceFiles(ctx, gone, j.numbered(t, added), dead, j.summary(), table.WithoutAutoNameMapping())
}

// removal lists data files and the delete files that nothing needs without them.
func (j *job) removal(ctx context.Context, t *plan.Table, remove []table.FileScanTask) (gone, dead []iceberg.DataFile, err error) {
	h := t.Handle.(*catalog.Handle)
	paths := map[string]struct{}{}
	for _, tk := range remove {
		gone = append(gone, tk.File)
		paths[tk.File.FilePath()] = struct{}{}
		dead = append(dead, tk.DeletionVectorFiles...)
	}
	if h.Snapshot != nil && len(remove) > 0 {
		positions, err := table.CollectDeadPositionDeletes(ctx, j.target.fs, h.Snapshot, paths)
		if err != nil {
			return nil, nil, err
		}
		dead = append(dead, positions...)
	}
	return gone, dead, nil
}

// numbered makes manifest entries. iceberg-go wants the first row id of files that
// replace others said, from version 3 on; it is out of the range that the snapshot
// is given.
func (j *job) numbered(t *plan.Table, files []*dataFile) []iceberg.DataFile {
	out := make([]iceberg.DataFile, len(files))
	v3 := version(t) >= 3
	next := t.Handle.(*catalog.Handle).Table.Metadata().NextRowID()
	for i, f := range files {
		if v3 {
			first := next
			out[i] = f.build(&first)
			next += f.rows
		} else {
			out[i] = f.build(nil)
		}
	}
	return out
}
