package write

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// RewriteOptions say which data files are rewritten. The zero value takes those that
// are worth it.
type RewriteOptions struct {
	// SmallerThan is the size in bytes below which a file is small; 0 is three quarters
	// of the target size of the table.
	SmallerThan int64
	// MinFiles is how many small files of a partition are worth merging; 0 is 2.
	MinFiles int
	// All rewrites every file.
	All bool
	// Progress is told, before and after each file, how many of how many were read.
	Progress func(done, of int)
}

// RewriteDataFiles merges small data files of a partition, applies deletes to the
// files that have some, and brings files from before a change of the partitioning
// under the present one. Rows do not change, and keep their ids. Files that others
// change meanwhile are fault.Conflict.
func RewriteDataFiles(ctx context.Context, target *plan.Table, r RewriteOptions, o Options) (Result, error) {
	j, err := begin(ctx, target, nil, o)
	if err != nil {
		return Result{}, err
	}
	return j.run(func() error { return j.rewrite(r) })
}

func (j *job) rewrite(r RewriteOptions) error {
	if j.o.Planner == nil {
		return errors.New("a rewrite without a planner")
	}
	tasks, err := j.o.Planner.Tasks(j.ctx, j.target.table)
	if err != nil {
		return err
	}
	schema := j.target.schema
	if version(j.target.table) >= 3 {
		if schema, _, err = j.target.withLineage(); err != nil {
			return err
		}
	}
	l, err := newLayout(j.target.arrow, j.target.schema, j.target.order, j.target.handle.Table.Metadata().Properties())
	if err != nil {
		return err
	}
	chosen := j.choose(tasks, r, l.target)
	if len(chosen) == 0 {
		return nil
	}
	// With one worker the files of a partition end up in few files; it takes the files
	// in the order of their partitions, so that few are open.
	w, err := j.newWriter(schema, 1)
	if err != nil {
		return err
	}
	defer w.stop()
	told := func(done int) {
		if r.Progress != nil {
			r.Progress(done, len(chosen))
		}
	}
	told(0)
	for i, t := range chosen {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		if err := j.copyRows(w, t, nil); err != nil {
			return err
		}
		j.result.RemovedBytes += t.File.FileSizeBytes()
		told(i + 1)
	}
	if err := w.finish(nil); err != nil {
		return err
	}
	j.result.RemovedFiles = len(chosen)
	return j.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if err := j.unchanged(ctx, t, chosen); err != nil {
			return err
		}
		gone, dead, err := j.removal(ctx, t, chosen)
		if err != nil {
			return err
		}
		if len(chosen) == len(tasks) && t.SnapshotID == j.target.table.SnapshotID {
			// Nothing is left for any delete to apply to.
			if dead, err = liveDeletes(j.target.fs, t.Handle.(*catalog.Handle)); err != nil {
				return err
			}
		}
		j.result.RemovedDeleteFiles = len(dead)
		rw := tx.NewRewrite(j.summary())
		for _, f := range append(gone, dead...) {
			rw.DeleteFile(f)
		}
		for _, f := range w.files {
			rw.AddDataFile(f.build(nil))
		}
		return rw.Commit(ctx)
	})
}

// choose picks the files that are worth rewriting, those of one partition together.
func (j *job) choose(tasks []table.FileScanTask, r RewriteOptions, size int64) []table.FileScanTask {
	if r.SmallerThan == 0 {
		r.SmallerThan = size / 4 * 3
	}
	if r.MinFiles == 0 {
		r.MinFiles = 2
	}
	groups := map[string][]table.FileScanTask{}
	var keys []string
	for _, t := range tasks {
		key := partitionKey(t.File.Partition())
		if t.File.SpecID() != int32(j.target.spec.ID()) {
			key = "old " + key
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], t)
	}
	slices.Sort(keys)
	var out []table.FileScanTask
	for _, key := range keys {
		var small, must []table.FileScanTask
		for _, t := range groups[key] {
			switch {
			case r.All, t.File.SpecID() != int32(j.target.spec.ID()), len(deletesOf(t)) > 0:
				must = append(must, t)
			case t.File.FileSizeBytes() < r.SmallerThan:
				small = append(small, t)
			}
		}
		if len(small)+len(must) >= max(2, r.MinFiles) || len(must) > 0 && len(small) > 0 {
			must = append(must, small...)
		}
		out = append(out, must...)
	}
	return out
}

// RewriteManifests merges the manifests of the present snapshot that are small. It
// reports how many went and came.
func RewriteManifests(ctx context.Context, target *plan.Table, o Options) (rewritten, added int, err error) {
	j, err := maintain(ctx, target, o)
	if err != nil {
		return 0, 0, err
	}
	_, err = j.run(func() error {
		return j.commit(func(ctx context.Context, tx *table.Transaction, _ *plan.Table) error {
			res, err := tx.RewriteManifests(ctx)
			if err != nil {
				return err
			}
			rewritten, added = len(res.RewrittenManifests), len(res.AddedManifests)
			return nil
		})
	})
	return rewritten, added, err
}
