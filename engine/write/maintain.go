package write

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// icebergReader opens files.
type icebergReader = icebergio.IO

// ExpireOptions say which snapshots are expired. A snapshot that a branch or tag
// names is never expired, nor is the present one.
type ExpireOptions struct {
	// OlderThan is the least age of a snapshot; 0 is what the table's properties say,
	// which is five days where they say nothing.
	OlderThan time.Duration
	// RetainLast is how many snapshots of a branch stay at least; 0 is what the table's
	// properties say, which is 1 where they say nothing.
	RetainLast int
	// Progress is told, as files are deleted, how many of how many.
	Progress func(done, of int)
}

// Deleted counts files that were deleted, by what they held.
type Deleted struct {
	Data, PositionDeletes, EqualityDeletes, Manifests, ManifestLists, Statistics int
}

// Maintained says what maintenance did.
type Maintained struct {
	Table     *plan.Table
	Snapshots int // that were expired
	Files     int // that were deleted
	// Expired counts the files that ExpireSnapshots deleted.
	Expired Deleted
	// Orphans are the files that RemoveOrphans deleted, or would delete.
	Orphans []string
	// Left are files that could not be deleted, for the operator; a later
	// RemoveOrphans finds them.
	Left []string
}

// shared refuses to delete files of a table that may share them with others.
func shared(t *plan.Table) error {
	if strings.EqualFold(t.Properties["gc.enabled"], "false") {
		return fault.New(fault.BadStatement, "Table '%s' may share its files with others (gc.enabled is false); they are not deleted", t.Name)
	}
	return nil
}

// ExpireSnapshots expires old snapshots, and deletes the files that no other snapshot
// needs. A table whose property gc.enabled is false may share its files and is
// refused. With an error after the commit, Snapshots of what is returned says that
// there was one; a later RemoveOrphans finds the files that were not deleted.
func ExpireSnapshots(ctx context.Context, target *plan.Table, e ExpireOptions, o Options) (Maintained, error) {
	j, err := maintain(ctx, target, o)
	if err != nil {
		return Maintained{}, err
	}
	out := Maintained{Table: target}
	var before table.Metadata
	var opts []table.ExpireSnapshotsOpt
	if e.OlderThan > 0 {
		opts = append(opts, table.WithOlderThan(e.OlderThan))
	}
	if e.RetainLast > 0 {
		opts = append(opts, table.WithRetainLast(e.RetainLast))
	}
	// Who looks for orphans does not look at these files before they are deleted here.
	opts = append(opts, table.WithPostCommit(false))
	_, err = j.run(func() error {
		return j.commit(func(_ context.Context, tx *table.Transaction, t *plan.Table) error {
			if err := shared(t); err != nil {
				return err
			}
			before = t.Handle.(*catalog.Handle).Table.Metadata()
			return tx.ExpireSnapshots(opts...)
		})
	})
	if err != nil {
		return out, err
	}
	out.Table = j.result.Table
	after := out.Table.Handle.(*catalog.Handle).Table.Metadata()
	out.Snapshots = len(before.Snapshots()) - len(after.Snapshots())
	if out.Snapshots == 0 {
		return out, nil
	}
	gone, err := j.unreferenced(ctx, before, after)
	if err != nil {
		return out, j.failure(err)
	}
	paths := make([]string, len(gone))
	for i, f := range gone {
		paths[i] = f.path
	}
	err = deleteFiles(ctx, j.target.fs, paths, j.remove, func(i int, err error) {
		if err != nil {
			out.Left = append(out.Left, paths[i])
		} else {
			out.Files++
			*gone[i].count(&out.Expired)++
		}
		if e.Progress != nil {
			e.Progress(i+1, len(gone))
		}
	})
	if err != nil {
		return out, j.failure(err)
	}
	return out, nil
}

// expired is a file that no snapshot needs.
type expired struct {
	path  string
	count func(*Deleted) *int
}

// unreferenced lists the files that metadata needs no longer: data files first and
// manifest lists last, so that what is left of an end in between can be found again.
func (j *job) unreferenced(ctx context.Context, before, after table.Metadata) ([]expired, error) {
	keep := newReferences()
	for _, s := range after.Snapshots() {
		if err := keep.snapshot(ctx, j.target.fs, s); err != nil {
			return nil, err
		}
	}
	keep.statistics(after)
	drop := newReferences()
	for _, s := range before.Snapshots() {
		if after.SnapshotByID(s.SnapshotID) != nil {
			continue
		}
		drop.skip = keep.manifests
		if err := drop.snapshot(ctx, j.target.fs, s); err != nil {
			return nil, err
		}
	}
	drop.statistics(before)
	var out []expired
	add := func(drop, keep map[string]bool, count func(*Deleted) *int) {
		for _, p := range slices.Sorted(maps.Keys(drop)) {
			if !keep[p] {
				out = append(out, expired{p, count})
			}
		}
	}
	add(drop.files[iceberg.EntryContentData], keep.files[iceberg.EntryContentData], func(d *Deleted) *int { return &d.Data })
	add(drop.files[iceberg.EntryContentPosDeletes], keep.files[iceberg.EntryContentPosDeletes], func(d *Deleted) *int { return &d.PositionDeletes })
	add(drop.files[iceberg.EntryContentEqDeletes], keep.files[iceberg.EntryContentEqDeletes], func(d *Deleted) *int { return &d.EqualityDeletes })
	add(drop.stats, keep.stats, func(d *Deleted) *int { return &d.Statistics })
	add(drop.manifests, keep.manifests, func(d *Deleted) *int { return &d.Manifests })
	add(drop.lists, keep.lists, func(d *Deleted) *int { return &d.ManifestLists })
	return out, nil
}

// references are the files that snapshots name.
type references struct {
	lists, manifests, stats map[string]bool
	files                   map[iceberg.ManifestEntryContent]map[string]bool
	skip                    map[string]bool // manifests not to be read
}

func newReferences() *references {
	return &references{
		lists: map[string]bool{}, manifests: map[string]bool{}, stats: map[string]bool{},
		files: map[iceberg.ManifestEntryContent]map[string]bool{
			iceberg.EntryContentData: {}, iceberg.EntryContentPosDeletes: {}, iceberg.EntryContentEqDeletes: {},
		},
	}
}

func (r *references) statistics(m table.Metadata) {
	for s := range m.Statistics() {
		r.stats[s.StatisticsPath] = true
	}
	for s := range m.PartitionStatistics() {
		r.stats[s.StatisticsPath] = true
	}
}

func (r *references) snapshot(ctx context.Context, storage icebergReader, s table.Snapshot) error {
	if s.ManifestList != "" {
		r.lists[s.ManifestList] = true
	}
	manifests, err := s.Manifests(storage)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if r.manifests[m.FilePath()] || r.skip[m.FilePath()] {
			continue
		}
		r.manifests[m.FilePath()] = true
		if err := ctx.Err(); err != nil {
			return err
		}
		// Deleted entries too: an earlier snapshot, or one that a tag keeps, may name
		// them, and a file that nothing names is found by RemoveOrphans.
		for e, err := range m.Entries(storage, false) {
			if err != nil {
				return err
			}
			if e.Status() != iceberg.EntryStatusDELETED {
				files, ok := r.files[e.DataFile().ContentType()]
				if !ok {
					return fault.New(fault.Corrupt, "A manifest names a file of an unknown kind")
				}
				files[e.DataFile().FilePath()] = true
			}
		}
	}
	return nil
}

// spellings are the names that a file may have in the file system: file:/a, file:///a
// and /a are one file, and a percent sign in a location of a local file is itself for
// some writers and begins an escape for others. The first takes it for itself.
func spellings(location string) []string {
	scheme, rest, found := strings.Cut(location, ":")
	if !found || strings.ContainsAny(scheme, "/\\") {
		return []string{path.Clean(location)}
	}
	if !strings.EqualFold(scheme, "file") {
		return []string{location}
	}
	raw := rest
	if r, authority := strings.CutPrefix(rest, "//"); authority {
		_, r, _ = strings.Cut(r, "/")
		raw = "/" + r
	}
	out := []string{path.Clean(raw)}
	if u, err := url.Parse(location); err == nil && path.Clean(u.Path) != out[0] {
		out = append(out, path.Clean(u.Path))
	}
	return out
}

// remove deletes a file, under the first of its names that is there.
func (j *job) remove(location string) error {
	names := spellings(location)
	if len(names) == 1 {
		return j.target.fs.Remove(location)
	}
	err := fs.ErrNotExist
	for _, p := range names {
		if err = j.target.fs.Remove(p); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}
