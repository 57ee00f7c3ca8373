package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
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
	return j.run(func() error {
		return j.overwrite(what == Partitions, func(added []*dataFile) (covering, error) { return j.covers(what, added), nil })
	})
}

// PartitionValue is a column that a table is partitioned by. Value holds one element,
// which may be NULL; nil: whatever the rows have. A column with a value must be one
// that the table is partitioned by as it is.
type PartitionValue struct {
	Field int
	Value arrow.Array
}

// OverwritePartition is Overwrite of the partitions that have all the given values,
// whether or not new rows are in them. The new rows must have the values too. Without
// values it replaces the partitions of which new rows are in.
func OverwritePartition(ctx context.Context, target *plan.Table, values []PartitionValue, rows Rows, o Options) (Result, error) {
	j, err := begin(ctx, target, rows, o)
	if err != nil {
		return Result{}, err
	}
	return j.run(func() error {
		match, err := j.matching(values)
		if err != nil {
			return err
		}
		return j.overwrite(match == nil, func(added []*dataFile) (covering, error) {
			if match == nil {
				return j.covers(Partitions, added), nil
			}
			for _, f := range added {
				if ok, err := match(f.build(nil)); err != nil || !ok {
					return nil, errors.Join(err, errors.New("a new row is in another partition than the one that is replaced"))
				}
			}
			return match, nil
		})
	})
}

// PartitionedBy gives the ids of the top-level columns that decide in which partition a
// new row of a table lies.
func PartitionedBy(t *plan.Table) ([]int, error) {
	h, ok := t.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("a table that no catalog loaded")
	}
	var out []int
	spec := h.Table.Spec()
	for _, pf := range spec.Fields() {
		for _, id := range pf.SourceIDs {
			path, _, ok := pathTo(h.Schema.Fields(), id)
			if !ok {
				continue // a column that is gone
			}
			out = append(out, h.Schema.Field(path[0]).ID)
		}
	}
	return out, nil
}

// covering says whether a data file is replaced.
type covering func(iceberg.DataFile) (bool, error)

// matching finds the files of the partitions with the given values; nil without
// values.
func (j *job) matching(values []PartitionValue) (covering, error) {
	want := map[int]string{} // by partition field
	for _, v := range values {
		f, ok := j.target.table.Field(v.Field)
		if !ok {
			return nil, errors.New("a partition is named by a column that the table does not have")
		}
		id := 0
		for _, pf := range j.target.spec.Fields() {
			_, identity := pf.Transform.(iceberg.IdentityTransform)
			if len(pf.SourceIDs) == 1 && pf.SourceID() == v.Field && (identity || v.Value == nil) {
				id = pf.FieldID
			}
		}
		if id == 0 {
			return nil, fault.New(fault.BadStatement, "Table '%s' is not partitioned by column '%s' as it is, so that PARTITION cannot name it; SHOW CREATE TABLE shows the partitioning", j.target.table.Name.Name, f.Name)
		}
		if v.Value == nil {
			continue
		}
		key, err := j.partitionValue(f, v.Value)
		if err != nil {
			return nil, err
		}
		want[id] = key
	}
	if len(want) == 0 {
		return nil, nil
	}
	spec := int32(j.target.spec.ID())
	return func(f iceberg.DataFile) (bool, error) {
		if f.SpecID() != spec {
			return false, j.olderSpec()
		}
		have := f.Partition()
		for id, key := range want {
			if partitionKey(map[int]any{id: have[id]}) != key {
				return false, nil
			}
		}
		return true, nil
	}, nil
}

// partitionValue is what partitionKey says of one value.
func (j *job) partitionValue(f plan.Field, value arrow.Array) (string, error) {
	at := slices.IndexFunc(j.target.schema.Fields(), func(c iceberg.NestedField) bool { return c.ID == f.ID })
	if at < 0 || value.Len() != 1 {
		return "", errors.New("a partition is named by no single value")
	}
	a, err := convertColumn(j.ctx, value, f, j.target.arrow.Field(at).Type)
	if err != nil {
		return "", err
	}
	defer a.Release()
	p, err := newPartitioner(j.target.spec, j.target.schema, 1)
	if err != nil {
		return "", err
	}
	for _, pf := range p.fields {
		if pf.apply == nil || len(pf.path) != 1 || pf.path[0] != at {
			continue
		}
		if _, identity := pf.transform.(iceberg.IdentityTransform); !identity {
			continue
		}
		if a.IsNull(0) {
			return "", nil
		}
		read, err := valueReader(a, pf.source)
		if err != nil {
			return "", err
		}
		return partitionKey(map[int]any{pf.id: pf.apply(read(0))}), nil
	}
	return "", errors.New("a partition is named by a column that is none of its own")
}

func (j *job) olderSpec() error {
	return fault.New(fault.Unsupported, "Table '%s' has files from before its partitioning was changed, so that single partitions cannot be replaced; rewrite the data files of the table first", j.target.table.Name)
}

// overwrite writes the new rows and replaces what they cover. onlyNew: without new
// rows there is nothing to replace.
func (j *job) overwrite(onlyNew bool, covers func(added []*dataFile) (covering, error)) error {
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
	if onlyNew && len(added) == 0 {
		return nil
	}
	covered, err := covers(added)
	if err != nil {
		return err
	}
	replaced, err := j.replaced(j.ctx, j.target.table, covered)
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
			now, err := j.replaced(ctx, t, covered)
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
func (j *job) covers(what What, added []*dataFile) covering {
	spec := int32(j.target.spec.ID())
	if what == All || j.target.spec.IsUnpartitioned() {
		return func(iceberg.DataFile) (bool, error) { return true, nil }
	}
	in := map[string]bool{}
	for _, f := range added {
		in[partitionKey(f.build(nil).Partition())] = true
	}
	return func(f iceberg.DataFile) (bool, error) {
		if f.SpecID() != spec {
			return false, j.olderSpec()
		}
		return in[partitionKey(f.Partition())], nil
	}
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

func (j *job) replaced(ctx context.Context, t *plan.Table, covers covering) ([]table.FileScanTask, error) {
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
