package scan

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

type snapshotKey struct {
	version, table string
	snapshot       int64
	schema         int
}

// snapshot is every live data file of a snapshot, each once.
type snapshot struct{ files []*dataFile }

// dataFile is one data file with what applies to it.
type dataFile struct {
	task    table.FileScanTask
	path    string // of a local file, else ""
	deletes bool
	rows    int64
	stats   stats
	spec    *iceberg.PartitionSpec
	// partition holds the values of spec by partition field id; a null is absent
	// or nil.
	partition map[int]any
}

// stats are the statistics of a file by field id. What is absent is unknown.
type stats struct {
	values, nulls, nans map[int]int64
	lower, upper        map[int][]byte
}

func (p *Planner) snapshot(ctx context.Context, t *plan.Table, h *catalog.Handle) (*snapshot, error) {
	key := snapshotKey{t.Version, t.Name.Key(), h.Snapshot.SnapshotID, h.Schema.ID}
	if s, ok := p.snapshots.Get(key); ok {
		return s, nil
	}
	s, err := found(ctx, t, h, func() ([]table.FileScanTask, error) {
		scan, err := scanOf(h)
		if err != nil {
			return nil, err
		}
		defer func() { _ = scan.Close() }()
		return scan.PlanFiles(ctx)
	})
	if err == nil {
		p.remember(key, s)
	}
	return s, err
}

// planned is the snapshot as the catalog plans a scan of it for the principal. It is
// asked each time.
func (p *Planner) planned(ctx context.Context, t *plan.Table, h *catalog.Handle) (*snapshot, error) {
	return found(ctx, t, h, func() ([]table.FileScanTask, error) { return h.PlanOnServer(ctx) })
}

// found makes a snapshot of what a plan of it holds.
func found(ctx context.Context, t *plan.Table, h *catalog.Handle, tasksOf func() ([]table.FileScanTask, error)) (*snapshot, error) {
	var tasks []table.FileScanTask
	err := guarded(func() (err error) {
		if tasks, err = tasksOf(); err != nil {
			return err
		}
		for _, tk := range tasks {
			for _, d := range tk.DeleteFiles {
				if !h.Within(d.FilePath()) {
					return nil // newDataFile says so; it must not be opened here
				}
			}
		}
		return attribute(ctx, tasks)
	})
	if err != nil {
		return nil, broken(ctx, err, t)
	}
	s := &snapshot{files: make([]*dataFile, 0, len(tasks))}
	seen := make(map[string]bool, len(tasks))
	for _, tk := range tasks {
		// A large file is planned as several splits: one task here reads it whole.
		if seen[tk.File.FilePath()] {
			continue
		}
		seen[tk.File.FilePath()] = true
		tk.Start, tk.Length = 0, tk.File.FileSizeBytes()
		f, err := newDataFile(tk, h, t)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

func newDataFile(tk table.FileScanTask, h *catalog.Handle, t *plan.Table) (*dataFile, error) {
	d := tk.File
	if d.FileFormat() != iceberg.ParquetFile {
		return nil, fault.New(fault.Unsupported, "Table '%s' has data files of the format %s; SQE reads Parquet", t.Name, d.FileFormat())
	}
	if len(d.KeyMetadata()) > 0 {
		return nil, fault.New(fault.Unsupported, "Table '%s' has encrypted data files, which SQE does not read", t.Name)
	}
	for _, all := range [][]iceberg.DataFile{{d}, tk.DeleteFiles, tk.EqualityDeleteFiles, tk.DeletionVectorFiles} {
		for _, one := range all {
			if !h.Within(one.FilePath()) {
				return nil, fault.New(fault.Unsupported, "Table '%s' has a file outside the folder from which files of its catalog are read", t.Name)
			}
		}
	}
	f := &dataFile{
		task: tk, rows: d.Count(), path: localPath(d.FilePath()),
		deletes: len(tk.DeleteFiles)+len(tk.EqualityDeleteFiles)+len(tk.DeletionVectorFiles) > 0,
		stats: stats{
			values: d.ValueCounts(), nulls: d.NullValueCounts(), nans: d.NaNValueCounts(),
			lower: d.LowerBoundValues(), upper: d.UpperBoundValues(),
		},
		spec:      h.Table.Metadata().PartitionSpecByID(int(d.SpecID())),
		partition: d.Partition(),
	}
	if f.spec == nil {
		return nil, fault.New(fault.Corrupt, "A data file of table '%s' has a partition specification that the table does not have", t.Name)
	}
	return f, nil
}

// scanOf is iceberg-go's scan of exactly the snapshot and schema of h.
func scanOf(h *catalog.Handle, opts ...table.ScanOption) (*table.Scan, error) {
	id := h.Snapshot.SnapshotID
	meta := h.Table.Metadata()
	own := h.Snapshot.SchemaID == nil && h.Schema.ID == meta.CurrentSchema().ID ||
		h.Snapshot.SchemaID != nil && h.Schema.ID == *h.Snapshot.SchemaID
	if own {
		return h.Table.Scan(append(opts, table.WithSnapshotID(id))...), nil
	}
	if h.Schema.ID != meta.CurrentSchema().ID {
		return nil, errors.New("neither the schema of the snapshot nor of the table")
	}
	if now := meta.CurrentSnapshot(); now != nil && now.SnapshotID == id {
		return h.Table.Scan(opts...), nil
	}
	for name, ref := range meta.Refs() {
		if ref.SnapshotID == id && ref.SnapshotRefType == table.BranchRef {
			return h.Table.Scan(opts...).UseRef(name)
		}
	}
	return nil, fmt.Errorf("no branch at snapshot %d", id)
}

// localPath is the path of a file in the local file system, "" for any other
// location. Writers spell it as a path, as file:/path and as file:///path.
func localPath(location string) string {
	scheme, _, found := strings.Cut(location, ":")
	if !found || strings.ContainsAny(scheme, "/\\") {
		return location
	}
	if !strings.EqualFold(scheme, "file") {
		return ""
	}
	u, err := url.Parse(location)
	if err != nil {
		// A percent sign that begins no escape: itself.
		u, err = url.Parse(strings.ReplaceAll(location, "%", "%25"))
	}
	if err != nil || (u.Host != "" && !strings.EqualFold(u.Host, "localhost")) {
		return ""
	}
	// Writers disagree about a percent sign: for Hadoop and PyIceberg it is itself, for
	// iceberg-go it begins an escape.
	if strings.Contains(u.RawPath+u.EscapedPath(), "%") {
		raw := location[len(scheme)+1:]
		if rest, authority := strings.CutPrefix(raw, "//"); authority {
			raw = rest[len(u.Host):]
		}
		if _, err := os.Lstat(raw); err == nil {
			return raw
		}
	}
	return u.Path
}

// guarded turns a panic over a malformed file into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic while reading a file")
		}
	}()
	return f()
}
