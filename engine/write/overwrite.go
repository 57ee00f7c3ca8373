package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// What says which rows an Overwrite replaces.
type What uint8

const (
	// All replaces every row of the table; without new rows it empties it.
	All What = iota
	// Partitions replaces the partitions of which new rows are in, and leaves others
	// alone. Of a table without partitions it replaces all rows.
	Partitions
)

// Overwrite replaces rows of the target by others, which have its columns in their
// order. It closes rows; nil is no rows. Every replaced file must be as it was, and
// nobody may have added rows to what is replaced: else fault.Conflict.
func Overwrite(ctx context.Context, target *plan.Table, what What, rows Rows, o Options) (Result, error) {
	j, err := begin(ctx, target, rows, o)
	if err != nil {
		return Result{}, err
	}
	return j.run(func() error { return j.overwrite(what) })
}

func (j *job) overwrite(what What) error {
	if j.o.Planner == nil {
		return errors.New("an overwrite without a planner")
	}
	var added []*dataFile
	if j.rows != nil {
		w, err := j.newWriter(j.target.schema, j.o.Workers)
		if err != nil {
			return err
		}
		if j.result.Inserted, err = j.fill(w, j.target.columns(0)); err != nil {
			return err
		}
		added = w.files
	}
	if what == Partitions && len(added) == 0 {
		return nil
	}
	covers, err := j.covers(what, added)
	if err != nil {
		return err
	}
	replaced, err := j.replaced(j.ctx, j.target.table, covers)
	if err != nil {
		return err
	}
	if err := j.countDeleted(replaced); err != nil {
		return err
	}
	if len(replaced) == 0 && len(added) == 0 {
		return nil
	}
	j.result.RemovedFiles = len(replaced)
	return j.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if t.SnapshotID != j.target.table.SnapshotID {
			now, err := j.replaced(ctx, t, covers)
			if err != nil {
				return err
			}
			if len(now) != len(replaced) {
				return fault.New(fault.Conflict, "Rows of table '%s' that the statement replaces were changed by others meanwhile; nothing was changed, try again", t.Name)
			}
			if err := j.unchanged(ctx, t, replaced); err != nil {
				return err
			}
		}
		if len(replaced) == 0 {
			return j.stageAppend(ctx, tx, t, added)
		}
		return j.stageReplace(ctx, tx, t, replaced, added)
	})
}

// covers gives whether a data file is replaced.
func (j *job) covers(what What, added []*dataFile) (func(iceberg.DataFile) (bool, error), error) {
	spec := int32(j.target.spec.ID())
	if what == All || j.target.spec.IsUnpartitioned() {
		return func(iceberg.DataFile) (bool, error) { return true, nil }, nil
	}
	in := map[string]bool{}
	for _, f := range added {
		in[partitionKey(f.build(nil).Partition())] = true
	}
	return func(f iceberg.DataFile) (bool, error) {
		if f.SpecID() != spec {
			return false, fault.New(fault.Unsupported, "Table '%s' has files from before its partitioning was changed, so that single partitions cannot be replaced; rewrite the data files of the table first", j.target.table.Name)
		}
		return in[partitionKey(f.Partition())], nil
	}, nil
}

// partitionKey is a text that differs for different partitions of one spec.
func partitionKey(values map[int]any) string {
	key := ""
	for _, id := range slices.Sorted(maps.Keys(values)) {
		if v := values[id]; v != nil {
			key += fmt.Sprintf("/%d=%q", id, fmt.Sprint(v))
		}
	}
	return key
}

func (j *job) replaced(ctx context.Context, t *plan.Table, covers func(iceberg.DataFile) (bool, error)) ([]table.FileScanTask, error) {
	tasks, err := j.o.Planner.Tasks(ctx, t)
	if err != nil {
		return nil, err
	}
	var out []table.FileScanTask
	for _, tk := range tasks {
		is, err := covers(tk.File)
		if err != nil {
			return nil, err
		}
		if is {
			out = append(out, tk)
		}
	}
	return out, nil
}

func (j *job) countDeleted(replaced []table.FileScanTask) error {
	for _, tk := range replaced {
		if len(tk.EqualityDeleteFiles) > 0 {
			j.result.Deleted = -1
			return nil
		}
		j.result.Deleted += tk.File.Count()
		if len(tk.DeleteFiles)+len(tk.DeletionVectorFiles) == 0 {
			continue
		}
		gone, err := j.o.Planner.Deleted(j.ctx, j.target.table, tk)
		if err != nil {
			return err
		}
		j.result.Deleted -= gone.Cardinality()
	}
	return nil
}

// liveDeletes lists every live delete file of a snapshot.
func liveDeletes(fs icebergReader, h *catalog.Handle) ([]iceberg.DataFile, error) {
	manifests, err := h.Snapshot.Manifests(fs)
	if err != nil {
		return nil, err
	}
	var out []iceberg.DataFile
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			continue
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			out = append(out, e.DataFile())
		}
	}
	return out, nil
}
