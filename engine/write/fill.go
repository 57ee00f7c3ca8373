package write

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// Fill writes rows into a table that is being created. create must create it with
// the change that it is given as catalog.CreateOptions.Fill, which may be called
// again with another table: rows then yields them again. When create fails, the files
// are removed, unless it is not known whether the table is there.
func Fill(ctx context.Context, rows func(t *plan.Table) (Rows, error), o Options, create func(context.Context, catalog.TableChange) error) (res Result, err error) {
	var last *job
	finished := false
	defer func() {
		if last == nil || finished && (err == nil || errors.Is(err, catalog.ErrUnknown)) {
			return
		}
		// A panic goes on after the clean-up.
		err = last.staged.discard(err)
		if last.target.handle.Snapshot == nil && last.target.handle.Table.MetadataLocation() == "" {
			last.staged.folders(last.target.handle.Table.Location())
		}
		res = Result{}
	}()
	err = create(ctx, func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if last != nil {
			if err := last.staged.discard(nil); err != nil {
				return err
			}
			last = nil
		}
		in, err := rows(t)
		if err != nil {
			return err
		}
		j, err := begin(ctx, t, in, o)
		if err != nil {
			return err
		}
		last = j
		defer func() { _ = in.Close() }() // what it yielded is all that counts
		if err := j.stageRows(ctx, tx); err != nil {
			return j.failure(err)
		}
		res = j.result
		return nil
	})
	finished = true
	return res, err
}

// stageRows writes the rows and adds their files to the table of the job.
func (j *job) stageRows(ctx context.Context, tx *table.Transaction) error {
	w, err := j.newWriter(j.target.schema, j.o.Workers)
	if err != nil {
		return err
	}
	if j.result.Inserted, err = j.fill(w, j.target.columns(0)); err != nil || len(w.files) == 0 {
		return err
	}
	return j.stageAppend(ctx, tx, j.target.table, w.files)
}
