package write

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Maintained says what maintenance did.
type Maintained struct {
	Table     *plan.Table
	Snapshots int // that were expired
	Files     int // that were deleted
	// Left are files that could not be deleted, for the operator; a later
	// RemoveOrphans finds them.
	Left []string
}

// ExpireSnapshots expires old snapshots, and deletes the files that no other snapshot
// needs.
func ExpireSnapshots(ctx context.Context, target *plan.Table, e ExpireOptions, o Options) (Maintained, error) {
	j, err := begin(ctx, target, nil, o)
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
	for i, p := range gone {
		if err := ctx.Err(); err != nil {
			return out, j.failure(err)
		}
		if err := j.remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out.Left = append(out.Left, p)
		} else {
			out.Files++
		}
		if e.Progress != nil {
			e.Progress(i+1, len(gone))
		}
	}
	return out, nil
}

// unreferenced lists the files that metadata needs no longer: data files first and
// manifest lists last, so that what is left of an end in between can be found again.
func (j *job) unreferenced(ctx context.Context, before, after table.Metadata) ([]string, error) {
	keep := newReferences()
	for _, s := range after.Snapshots() {
		if err := keep.snapshot(ctx, j.target.fs, s); err != nil {
			return nil, err
		}
	}
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
	var out []string
	for _, set := range []struct{ drop, keep map[string]bool }{{drop.files, keep.files}, {drop.manifests, keep.manifests}, {drop.lists, keep.lists}} {
		var some []string
		for p := range set.drop {
			if !set.keep[p] {
				some = append(some, p)
			}
		}
		slices.Sort(some)
		out = append(out, some...)
	}
	return out, nil
}

// references are the files that snapshots name.
type references struct {
	lists, manifests, files map[string]bool
	skip                    map[string]bool // manifests not to be read
}

func newReferences() *references {
	return &references{lists: map[string]bool{}, manifests: map[string]bool{}, files: map[string]bool{}}
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
				r.files[e.DataFile().FilePath()] = true
			}
		}
	}
	return nil
}

// leastAge is the least age of an orphan: younger files may belong to a write that
// has not committed yet.
const leastAge = time.Hour

// RemoveOrphans deletes the files in the table's folders that nothing names: no
// snapshot, no metadata file in the log of the table, no statistics. Files younger
// than olderThan stay, and so do folders that hold another table. A table whose
// property gc.enabled is false may share its files and is refused.
func RemoveOrphans(ctx context.Context, target *plan.Table, olderThan time.Duration, o Options) (Maintained, error) {
	out := Maintained{Table: target}
	if olderThan < leastAge {
		return out, fault.New(fault.BadStatement, "Only files that are older than %s can be orphans; younger ones may belong to a statement that still runs", leastAge)
	}
	if o.Committer == nil {
		return out, errors.New("maintenance without a committer")
	}
	j, err := begin(ctx, target, nil, o)
	if err != nil {
		return out, err
	}
	if strings.EqualFold(target.Properties["gc.enabled"], "false") {
		return out, fault.New(fault.BadStatement, "Table '%s' may share its files with others (gc.enabled is false); they are not removed", target.Name)
	}
	// What the table names is read before its folders are, from its present state.
	deadline := time.Now().Add(-olderThan)
	var meta table.Metadata
	var location string
	if _, err := j.run(func() error {
		return j.commit(func(_ context.Context, _ *table.Transaction, t *plan.Table) error {
			h := t.Handle.(*catalog.Handle)
			meta, location = h.Table.Metadata(), h.Table.MetadataLocation()
			return nil
		})
	}); err != nil {
		return out, err
	}
	orphans, err := j.orphans(ctx, meta, location, deadline)
	if err != nil {
		return out, j.failure(err)
	}
	for _, p := range orphans {
		if err := ctx.Err(); err != nil {
			return out, j.failure(err)
		}
		if err := j.target.fs.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out.Left = append(out.Left, p)
			continue
		}
		out.Files++
	}
	return out, nil
}

func (j *job) orphans(ctx context.Context, meta table.Metadata, location string, deadline time.Time) ([]string, error) {
	list, ok := j.target.fs.(icebergio.ListableIO)
	if !ok {
		return nil, fault.New(fault.Unsupported, "Table '%s' lies in a kind of storage that SQE cannot list", j.target.table.Name)
	}
	named := newReferences()
	for _, s := range meta.Snapshots() {
		if err := named.snapshot(ctx, j.target.fs, s); err != nil {
			return nil, err
		}
	}
	used := map[string]bool{}
	use := func(location string) {
		for _, p := range spellings(location) {
			used[p] = true
		}
	}
	use(location)
	for _, set := range []map[string]bool{named.lists, named.manifests, named.files} {
		for p := range set {
			use(p)
		}
	}
	for e := range meta.PreviousFiles() {
		use(e.MetadataFile)
	}
	for s := range meta.Statistics() {
		use(s.StatisticsPath)
	}
	for s := range meta.PartitionStatistics() {
		use(s.StatisticsPath)
	}
	root := meta.Location()
	type found struct{ path, dir string }
	var candidates []found
	foreign := map[string]bool{}
	err := list.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		plain := spellings(p)[0]
		dir := path.Dir(plain)
		if strings.HasSuffix(plain, ".metadata.json") && !used[plain] && dir != path.Dir(spellings(location)[0]) {
			// Another table lies in this folder, or in the one above.
			foreign[dir] = true
			if path.Base(dir) == "metadata" {
				foreign[path.Dir(dir)] = true
			}
		}
		if used[plain] || path.Base(plain) == "version-hint.text" {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info.ModTime().Before(deadline) {
			candidates = append(candidates, found{p, dir})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files of a table: %w", err)
	}
	var out []string
	for _, c := range candidates {
		inside := false
		for d := c.dir; d != "/" && d != "." && !inside; d = path.Dir(d) {
			inside = foreign[d]
		}
		if !inside {
			out = append(out, c.path)
		}
	}
	return out, nil
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
