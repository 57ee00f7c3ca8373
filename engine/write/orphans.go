package write

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// leastAge is the least age of an orphan: younger files may belong to a write that
// has not committed yet.
const leastAge = time.Hour

// OrphanOptions say which files are removed.
type OrphanOptions struct {
	// OlderThan is the least age of a file, an hour or more unless DryRun.
	OlderThan time.Duration
	// DryRun finds the files and leaves them.
	DryRun bool
	// Listed is told, as the folders of the table are looked through, how many files
	// were seen; Progress, as files are deleted, how many of how many.
	Listed   func(files int)
	Progress func(done, of int)
}

// RemoveOrphans deletes the files in the table's folders that nothing names: no
// snapshot, no metadata file in the log of the table, no statistics. Files younger
// than OlderThan stay, and so do folders that hold another table. A table whose
// property gc.enabled is false may share its files and is refused.
func RemoveOrphans(ctx context.Context, target *plan.Table, r OrphanOptions, o Options) (Maintained, error) {
	out := Maintained{Table: target}
	if r.OlderThan < leastAge && !r.DryRun {
		return out, fault.New(fault.BadStatement, "Only files that are older than %s can be orphans; younger ones may belong to a statement that still runs", leastAge)
	}
	j, err := maintain(ctx, target, o)
	if err != nil {
		return out, err
	}
	// What the table names is read before its folders are.
	deadline := time.Now().Add(-r.OlderThan)
	var now state
	read := func() error {
		_, err := j.run(func() error {
			return j.commit(func(_ context.Context, _ *table.Transaction, t *plan.Table) error {
				h := t.Handle.(*catalog.Handle)
				now = state{h.Table.Metadata(), h.Table.MetadataLocation()}
				return shared(t)
			})
		})
		return err
	}
	if err := read(); err != nil {
		return out, err
	}
	orphans, err := j.orphans(ctx, now, deadline, r.Listed)
	if err != nil {
		return out, j.failure(err)
	}
	// Another engine may have put old files into the table meanwhile.
	before := now.location
	if err := read(); err != nil {
		return out, err
	}
	if now.location != before {
		used, err := j.named(ctx, now)
		if err != nil {
			return out, j.failure(err)
		}
		orphans = slices.DeleteFunc(orphans, func(p string) bool { return used[spellings(p)[0]] })
	}
	if r.DryRun {
		out.Orphans = orphans
		return out, nil
	}
	err = deleteFiles(ctx, j.target.fs, orphans, j.target.fs.Remove, func(i int, err error) {
		if err != nil {
			out.Left = append(out.Left, orphans[i])
		} else {
			out.Files++
			out.Orphans = append(out.Orphans, orphans[i])
		}
		if r.Progress != nil {
			r.Progress(i+1, len(orphans))
		}
	})
	if err != nil {
		return out, j.failure(err)
	}
	return out, nil
}

// state is a table at one moment.
type state struct {
	meta     table.Metadata
	location string // of the metadata
}

// named are the spellings of every file that a table names.
func (j *job) named(ctx context.Context, t state) (map[string]bool, error) {
	named := newReferences()
	for _, s := range t.meta.Snapshots() {
		if err := named.snapshot(ctx, j.target.fs, s); err != nil {
			return nil, err
		}
	}
	named.statistics(t.meta)
	used := map[string]bool{}
	use := func(location string) {
		for _, p := range spellings(location) {
			used[p] = true
		}
	}
	use(t.location)
	sets := []map[string]bool{named.lists, named.manifests, named.stats}
	for _, files := range named.files {
		sets = append(sets, files)
	}
	for _, set := range sets {
		for p := range set {
			use(p)
		}
	}
	for e := range t.meta.PreviousFiles() {
		use(e.MetadataFile)
	}
	return used, nil
}

// orphans lists the files in the folder of a table that it does not name.
func (j *job) orphans(ctx context.Context, t state, deadline time.Time, listed func(int)) ([]string, error) {
	list, ok := j.target.fs.(icebergio.ListableIO)
	if !ok {
		return nil, fault.New(fault.Unsupported, "Table '%s' lies in a kind of storage that SQE cannot list", j.target.table.Name)
	}
	used, err := j.named(ctx, t)
	if err != nil {
		return nil, err
	}
	type found struct{ path, dir string }
	var candidates []found
	foreign := map[string]bool{}
	seen := 0
	err = list.WalkDir(t.meta.Location(), func(p string, d fs.DirEntry, err error) error {
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
		if seen++; listed != nil && seen%1000 == 0 {
			listed(seen)
		}
		plain := spellings(p)[0]
		dir := path.Dir(plain)
		if strings.HasSuffix(plain, ".metadata.json") && !used[plain] && dir != path.Dir(spellings(t.location)[0]) {
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
