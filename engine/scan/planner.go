package scan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// Options of a Planner. The zero value is right for most servers.
type Options struct {
	// CachedSnapshots is how many snapshots' lists of files are kept in memory; 0 is 256.
	CachedSnapshots int
	// CachedFiles is how many files these lists may hold together, of which each
	// takes some kilobytes with its statistics; 0 is 200,000.
	CachedFiles int
	// CachedLayouts is of how many data files the layout of columns is kept in
	// memory; 0 is 100,000. Files of the same layout share one.
	CachedLayouts int
	// BatchRows is the most rows of a batch of a Stream; 0 is 8,192.
	BatchRows int
	// Workers is how many files a Stream reads at once; 0 is the number of
	// processors, at most 4.
	Workers int
	// Ahead is how many bytes may be read from object stores in advance, of all
	// statements together; 0 is 256 MiB.
	Ahead int
}

// Planner plans scans. It is safe for concurrent use; what it caches is immutable
// (snapshots and data files) and the same for every principal.
type Planner struct {
	snapshots *lru.Cache[snapshotKey, *snapshot]
	layouts   *lru.Cache[layoutKey, *layout]
	shared    *interner
	// verified are the files whose pages were all decoded once.
	verified  *lru.Cache[string, struct{}]
	batchRows int
	workers   int
	// ahead bounds the memory for what is read from object stores in advance.
	ahead *semaphore.Weighted

	mu        sync.Mutex // for adding to snapshots
	files     int        // in snapshots
	mostFiles int
}

// layoutKey: which columns are found in a file depends on the table's name
// mapping when the file holds no field ids.
type layoutKey struct{ path, mapping string }

// New makes a Planner.
func New(o Options) *Planner {
	positive := func(n, or int) int {
		if n > 0 {
			return n
		}
		return or
	}
	p := &Planner{
		batchRows: positive(o.BatchRows, 8192),
		workers:   positive(o.Workers, min(4, runtime.GOMAXPROCS(0))),
		ahead:     semaphore.NewWeighted(int64(positive(o.Ahead, 256<<20))),
		shared:    &interner{byText: map[string]*layout{}},
	}
	p.mostFiles = positive(o.CachedFiles, 200_000)
	p.snapshots, _ = lru.NewWithEvict(positive(o.CachedSnapshots, 256), // sizes are positive
		func(_ snapshotKey, s *snapshot) { p.files -= len(s.files) })
	p.layouts, _ = lru.New[layoutKey, *layout](positive(o.CachedLayouts, 100_000))
	p.verified, _ = lru.New[string, struct{}](positive(o.CachedLayouts, 100_000))
	return p
}

// Plan finds the data of a scan. A data or manifest file that is missing or broken
// is fault.Corrupt, one of a kind that SQE does not read fault.Unsupported.
func (p *Planner) Plan(ctx context.Context, s *plan.Scan) (*Input, error) {
	h, ok := s.Table.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("scan of a table that no catalog loaded")
	}
	if s.Table.Metadata != "" {
		if h.ServerPlanned() && !slices.Contains([]string{"snapshots", "history", "refs"}, s.Table.Metadata) {
			return nil, fault.New(fault.Denied, "The catalog of table '%s' plans its scans itself, so that its manifests are not read", s.Table.Name)
		}
		return &Input{Stream: &metadataStream{handle: h, table: s.Table, cols: s.Cols}, Rows: -1}, nil
	}
	if h.Snapshot == nil {
		return &Input{}, nil
	}
	find := p.snapshot
	if h.ServerPlanned() {
		find = p.planned
	}
	snap, err := find(ctx, s.Table, h)
	if err != nil {
		return nil, err
	}
	files := snap.files
	if s.Prune != nil {
		files = prune(files, s)
	}
	layouts, err := p.layoutsOf(ctx, s.Table, h, files)
	if err != nil {
		return nil, err
	}
	return p.input(s, h, files, layouts)
}

// remember keeps the files of a snapshot, within the bounds of the cache.
func (p *Planner) remember(key snapshotKey, s *snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshots.Contains(key) || len(s.files) > p.mostFiles {
		return
	}
	p.files += len(s.files)
	p.snapshots.Add(key, s)
	for p.files > p.mostFiles {
		p.snapshots.RemoveOldest()
	}
}

// input sorts the files into those that an executor reads itself and the rest.
func (p *Planner) input(s *plan.Scan, h *catalog.Handle, files []*dataFile, layouts []*layout) (*Input, error) {
	in := &Input{}
	var rest []task
	// Files of one layout have the same columns, unless a value comes from the
	// partition of the file.
	columnsOf := make(map[*layout][]FileColumn, 1)
	for i, f := range files {
		in.Rows += f.rows
		l := layouts[i]
		var columns []FileColumn
		var constants map[int]*plan.Literal
		direct := f.path != "" && !f.deletes && l != nil
		if l != nil {
			columns = columnsOf[l]
			if columns == nil {
				var perFile bool
				var err error
				if columns, perFile, err = l.columns(s, h, f); err != nil {
					return nil, err
				}
				if !perFile {
					columnsOf[l] = columns
				}
			}
			for k, c := range columns {
				if !readable(c, s.Cols[k].Type) {
					direct = false
				}
			}
			constants = f.constants(s, h, l)
			direct = direct && !l.hides(s.Cols)
		}
		if direct {
			in.Files = append(in.Files, File{Path: f.path, Location: f.task.File.FilePath(), Rows: f.rows, Columns: columns})
			continue
		}
		rest = append(rest, task{FileScanTask: f.task, constants: constants, layout: l})
	}
	if len(rest) > 0 {
		stream := &taskStream{planner: p, handle: h, table: s.Table, cols: s.Cols, tasks: rest}
		if s.Prune != nil {
			stream.condition = compiler{scan: s}.condition(s.Prune)
		}
		in.Stream = stream
	}
	return in, nil
}

// layoutsOf finds the layout of each file, parallel to files; nil for a file that
// is not local.
func (p *Planner) layoutsOf(ctx context.Context, t *plan.Table, h *catalog.Handle, files []*dataFile) ([]*layout, error) {
	out := make([]*layout, len(files))
	mapping := t.Properties[nameMappingProperty]
	var g *errgroup.Group
	for i, f := range files {
		if f.path == "" {
			continue
		}
		key := layoutKey{f.path, mapping}
		if l, ok := p.layouts.Get(key); ok {
			out[i] = l
			continue
		}
		if g == nil {
			g, ctx = errgroup.WithContext(ctx)
			g.SetLimit(8)
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return broken(ctx, err, t)
			}
			l, err := readLayout(f.path, h.Table.NameMapping())
			if err != nil {
				return broken(ctx, err, t)
			}
			l = p.shared.same(l)
			p.layouts.Add(key, l)
			out[i] = l
			return nil
		})
	}
	if g == nil {
		return out, nil
	}
	return out, g.Wait()
}

// broken classifies an error of reading a data, delete or manifest file. Its text
// names the table and never a path.
func broken(ctx context.Context, err error, t *plan.Table) error {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, err, "The statement took too long and was ended")
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return fault.Wrap(fault.Cancelled, err, "The statement was cancelled")
	case catalog.StorageFault(err, "") != nil:
		return catalog.StorageFault(err, fmt.Sprintf("table '%s'", t.Name))
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Corrupt, err, "A file of table '%s' is missing; restore it, or read an older snapshot", t.Name)
	case errors.Is(err, os.ErrPermission):
		return fault.Wrap(fault.Unavailable, err, "A file of table '%s' may not be read by the server; correct its permissions", t.Name)
	}
	return fault.Wrap(fault.Corrupt, err, "A file of table '%s' cannot be read; restore it, or read an older snapshot", t.Name)
}
