package scan

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// Tasks lists the live data files of a table's snapshot, each once and whole, with
// the deletes that apply to it. It is for engine/write.
func (p *Planner) Tasks(ctx context.Context, t *plan.Table) ([]table.FileScanTask, error) {
	h, ok := t.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("a table that no catalog loaded")
	}
	if h.Snapshot == nil {
		return nil, nil
	}
	if h.ServerPlanned() {
		// Such a plan may leave out what the principal does not see.
		return nil, fault.New(fault.Denied, "The catalog of table '%s' plans its scans itself, so that rows can be added and not changed", t.Name)
	}
	snap, err := p.snapshot(ctx, t, h)
	if err != nil {
		return nil, err
	}
	out := make([]table.FileScanTask, len(snap.files))
	for i, f := range snap.files {
		out[i] = f.task
	}
	return out, nil
}

// ReadTask reads the live rows of one data file in their order, whatever the form of
// the file. The scan's Prune is not looked at.
func (p *Planner) ReadTask(ctx context.Context, s *plan.Scan, t table.FileScanTask) (Reader, error) {
	h, ok := s.Table.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("scan of a table that no catalog loaded")
	}
	f, err := newDataFile(t, h, s.Table)
	if err != nil {
		return nil, err
	}
	layouts, err := p.layoutsOf(ctx, s.Table, h, []*dataFile{f})
	if err != nil {
		return nil, err
	}
	one := task{FileScanTask: t, layout: layouts[0]}
	if one.layout != nil {
		if _, _, err := one.layout.columns(s, h, f); err != nil {
			return nil, err
		}
		one.constants = f.constants(s, h, one.layout)
	}
	stream := &taskStream{planner: p, handle: h, table: s.Table, cols: s.Cols, tasks: []task{one}}
	all := make([]int, len(s.Cols))
	for i := range all {
		all[i] = i
	}
	return stream.Open(ctx, all)
}

// Deleted is the set of positions of a data file that position deletes or a deletion
// vector end; equality deletes are not among them.
func (p *Planner) Deleted(ctx context.Context, t *plan.Table, f table.FileScanTask) (*dv.RoaringPositionBitmap, error) {
	h, ok := t.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("a table that no catalog loaded")
	}
	var out *dv.RoaringPositionBitmap
	err := guarded(func() (err error) {
		in := &positions{stream: &taskStream{planner: p, handle: h, table: t}, files: map[string]map[string]*dv.RoaringPositionBitmap{}}
		out, err = in.of(ctx, task{FileScanTask: f})
		return err
	})
	if err != nil {
		return nil, broken(ctx, err, t)
	}
	return out, nil
}

// Has reports whether a data file holds a top-level column, by its field id.
func (p *Planner) Has(ctx context.Context, t *plan.Table, f table.FileScanTask, field int) (bool, error) {
	h, ok := t.Handle.(*catalog.Handle)
	if !ok {
		return false, errors.New("a table that no catalog loaded")
	}
	d, err := newDataFile(f, h, t)
	if err != nil {
		return false, err
	}
	layouts, err := p.layoutsOf(ctx, t, h, []*dataFile{d})
	if err != nil {
		return false, err
	}
	l := layouts[0]
	if l == nil {
		err := guarded(func() error {
			r, err := openParquet(ctx, h, f.File.FilePath())
			if err != nil {
				return err
			}
			defer func() { _ = r.Close() }()
			s, err := pqarrow.FromParquet(r.MetaData().Schema, &pqarrow.ArrowReadProperties{}, nil)
			if err != nil {
				return err
			}
			l, err = newLayout(s, h.Table.NameMapping())
			return err
		})
		if err != nil {
			return false, broken(ctx, err, t)
		}
	}
	_, ok = l.byID[field]
	return ok, nil
}
