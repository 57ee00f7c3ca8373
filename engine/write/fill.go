package write

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// Filling writes the rows of a table that is being created, before anybody sees it.
// It is for one table and one goroutine.
type Filling struct {
	open   func(context.Context) (Rows, error)
	o      Options
	result Result
	files  *staged // of the last try
}

// NewFilling makes a filling. open yields the rows, with the columns of the table in
// their order; it is called again at each try: another table has other fields. The
// options need no committer.
func NewFilling(open func(context.Context) (Rows, error), o Options) *Filling {
	return &Filling{open: open, o: o}
}

// Fill is a catalog.TableChange, for catalog.CreateOptions. When it fails it has
// removed what it wrote.
func (f *Filling) Fill(ctx context.Context, tx *table.Transaction, target *plan.Table) error {
	if err := f.discard(nil); err != nil {
		return err
	}
	rows, err := f.open(ctx)
	if err != nil {
		return err
	}
	o := f.o
	in := &inside{tx: tx, table: target}
	o.Committer = in
	j, err := begin(ctx, target, rows, o)
	if err != nil {
		return err
	}
	in.job = j
	if f.result, err = j.run(j.append); err != nil {
		return err
	}
	f.files = &staged{fs: j.target.fs, paths: in.paths}
	return nil
}

// End must be called with the error of the creation. When the table did not come to be
// it removes what was written; of a table of which that is not known it leaves
// everything. It returns the error.
func (f *Filling) End(err error) error {
	if err == nil || errors.Is(err, catalog.ErrUnknown) {
		return err
	}
	return f.discard(err)
}

// Result is that of the last try. Its table is not the one that was created.
func (f *Filling) Result() Result { return f.result }

func (f *Filling) discard(cause error) error {
	f.result = Result{}
	if f.files == nil {
		return cause
	}
	files := f.files
	f.files = nil
	return files.discard(cause)
}

// inside is a Committer that leaves the commit to whoever began the transaction.
type inside struct {
	tx    *table.Transaction
	table *plan.Table
	job   *job
	paths []string
}

// Commit implements Committer.
func (i *inside) Commit(ctx context.Context, _ plan.TableName, change catalog.TableChange) (*plan.Table, error) {
	if err := change(ctx, i.tx, i.table); err != nil {
		return nil, err
	}
	i.paths = slices.Clone(i.job.staged.paths)
	return i.table, nil
}
