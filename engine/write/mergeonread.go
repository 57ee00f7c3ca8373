package write

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/google/uuid"

	"sqe/fault"
	"sqe/plan"
)

func (c *change) mergeOnRead() error {
	files := c.ordered()
	var deletes, superseded []iceberg.DataFile
	var err error
	if version(c.target.table) >= 3 {
		deletes, superseded, err = c.deletionVectors(files)
	} else {
		deletes, err = c.positionDeletes(files)
	}
	if err != nil {
		return err
	}
	c.result.DeleteFiles = len(deletes)
	tasks := make([]table.FileScanTask, len(files))
	for i, f := range files {
		tasks[i] = f.task
	}
	return c.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if err := c.unchanged(ctx, t, tasks); err != nil {
			return err
		}
		added := make([]iceberg.DataFile, len(c.new))
		for i, f := range c.new {
			added[i] = f.build(nil)
		}
		return tx.NewRowDelta(c.summary()).AddRows(added...).AddDeletes(deletes...).RemoveDeletes(superseded...).Commit(ctx)
	})
}

// deletionVectors writes one vector for each file, in one Puffin file. A vector holds
// all that is deleted from its file, so that it takes the place of the one before.
func (c *change) deletionVectors(files []*ended) (added, superseded []iceberg.DataFile, err error) {
	specs := map[int32]*iceberg.PartitionSpec{}
	for _, s := range c.target.handle.Table.Metadata().PartitionSpecs() {
		specs[int32(s.ID())] = &s
	}
	w := dv.NewDVWriter(c.target.fs, func(id int32) *iceberg.PartitionSpec { return specs[id] })
	for _, f := range files {
		before, err := c.o.Planner.Deleted(c.ctx, c.target.table, f.task)
		if err != nil {
			return nil, nil, err
		}
		before.Or(f.positions)
		w.Load(f.task.File.FilePath(), before, f.task.File.SpecID(), f.task.File.Partition())
		superseded = append(superseded, f.task.DeletionVectorFiles...)
	}
	location := c.target.locations.NewDataLocation(fmt.Sprintf("00000-0-%s-deletes.puffin", uuid.NewString()))
	c.staged.add(location)
	added, err = w.Flush(c.ctx, location)
	return added, superseded, err
}

// deleteGranularity says how many data files a position delete file is about: those
// of a partition, which is the default, or one.
const deleteGranularity = "write.delete.granularity"

// positionDeletes writes position delete files, each under the partition and the
// partition spec of the data files that it is about: elsewhere it would not be found.
func (c *change) positionDeletes(files []*ended) ([]iceberg.DataFile, error) {
	groups := map[string][]*ended{}
	for _, f := range files {
		key := fmt.Sprintf("%d%s", f.task.File.SpecID(), partitionKey(f.task.File.Partition()))
		if c.target.table.Properties[deleteGranularity] == "file" {
			key = f.task.File.FilePath()
		}
		groups[key] = append(groups[key], f)
	}
	schema, err := table.SchemaToArrowSchema(iceberg.PositionalDeleteSchema, nil, true, false)
	if err != nil {
		return nil, err
	}
	props := iceberg.Properties{}
	maps.Copy(props, c.target.handle.Table.Metadata().Properties())
	props[metricsDefault] = "full" // readers find the files by these bounds
	l, err := newLayout(schema, iceberg.PositionalDeleteSchema, table.UnsortedSortOrder, props)
	if err != nil {
		return nil, err
	}
	id := uuid.NewString()
	var out []iceberg.DataFile
	for n, key := range slices.Sorted(maps.Keys(groups)) {
		d, err := c.positionDelete(l, groups[key], fmt.Sprintf("%05d-0-%s-deletes.parquet", n+1, id))
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// positionDelete writes one file. The data files are in the order of their paths.
func (c *change) positionDelete(l *layout, files []*ended, name string) (iceberg.DataFile, error) {
	location := c.target.locations.NewDataLocation(name)
	c.staged.add(location)
	f := &openFile{layout: l}
	closed := false
	defer func() {
		if !closed {
			f.abort()
		}
	}()
	if err := f.create(c.target.fs, location); err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, l.schema)
	defer b.Release()
	paths, positions := b.Field(0).(*array.StringBuilder), b.Field(1).(*array.Int64Builder)
	flush := func() error {
		if positions.Len() == 0 {
			return nil
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		rec := b.NewRecordBatch()
		defer rec.Release()
		return f.write(rec)
	}
	for _, e := range files {
		path := e.task.File.FilePath()
		for p := range e.positions.Positions() {
			paths.Append(path)
			positions.Append(int64(p))
			if positions.Len() >= maxPiece {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	done, err := f.close()
	if err != nil {
		return nil, err
	}
	closed = true
	of := files[0].task.File
	spec := c.target.handle.Table.Metadata().PartitionSpecByID(int(of.SpecID()))
	if spec == nil {
		return nil, fault.New(fault.Corrupt, "A data file of table '%s' has a partition specification that the table does not have", c.target.table.Name)
	}
	build, err := iceberg.NewDataFileBuilder(*spec, iceberg.EntryContentPosDeletes, location, iceberg.ParquetFile, of.Partition(), nil, nil, done.rows, done.size)
	if err != nil {
		return nil, err
	}
	build.ColumnSizes(done.sizes).ValueCounts(done.metrics.values).NullValueCounts(done.metrics.nulls).
		LowerBoundValues(done.metrics.lower).UpperBoundValues(done.metrics.upper).SplitOffsets(done.splits)
	if len(files) == 1 {
		build.ReferencedDataFile(of.FilePath())
	}
	return build.Build(), nil
}
