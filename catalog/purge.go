package catalog

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// purge deletes the files of a table that is in no catalog any more: those that its
// metadata names, and of these only what lies in the folder of the table (or where
// its properties have files written) and in the warehouse. What another engine
// added from elsewhere is not the table's to delete. iceberg-go's PurgeFiles goes
// by names alone, and takes the whole folder, which may be that of two tables.
func (c *SQL) purge(ctx context.Context, t *table.Table) Purged {
	var out Purged
	files := map[string]bool{} // whether it may be deleted
	meta := t.Metadata()
	folders := []string{meta.Location()}
	for _, key := range placeProperties {
		if p := meta.Properties()[key]; p != "" && key != "location" {
			folders = append(folders, p)
		}
	}
	add := func(file string) {
		if file == "" {
			return
		}
		if _, seen := files[file]; !seen {
			files[file] = below(c.props["warehouse"], file) &&
				slices.ContainsFunc(folders, func(f string) bool { return below(f, file) })
		}
	}
	data, whole := c.dataFiles(ctx, t, add)
	if !whole {
		out.Left++
	}
	add(t.MetadataLocation())
	for m := range meta.PreviousFiles() {
		add(m.MetadataFile)
	}
	for s := range meta.Statistics() {
		add(s.StatisticsPath)
	}
	for s := range meta.PartitionStatistics() {
		add(s.StatisticsPath)
	}
	keepData := !meta.Properties().GetBool("gc.enabled", true)
	storage, err := t.FS(ctx)
	var many []string // of an object store
	bulk, isBulk := storage.(icebergio.BulkRemovableIO)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err != nil || !files[file] || (keepData && data[file]) {
			out.Left++
			continue
		}
		if isBulk {
			many = append(many, file)
			continue
		}
		switch err := storage.Remove(file); {
		case err == nil:
			out.Deleted++
			removeEmpty(meta.Location(), file)
		case !errors.Is(err, fs.ErrNotExist):
			out.Left++
		}
	}
	if isBulk {
		done, _ := bulk.DeleteFiles(ctx, many) // it tells which
		out.Deleted += len(done)
		out.Left += len(many) - len(done)
	}
	return out
}

// removeEmpty deletes the folders above a local file that hold nothing any more, up
// to that of its table.
func removeEmpty(folder, file string) {
	store, folder, ok := place(folder)
	if !ok || store != "file" || !below(folder, file) {
		return
	}
	_, file, _ = place(file)
	for dir := path.Dir(file); dir == folder || below(folder, dir); dir = path.Dir(dir) {
		// A folder that holds something is not deleted by this.
		if os.Remove(filepath.FromSlash(dir)) != nil {
			return
		}
	}
}

// dataFiles adds the files of all snapshots, and tells which hold data. whole is
// false when a manifest cannot be read.
func (c *SQL) dataFiles(ctx context.Context, t *table.Table, add func(string)) (data map[string]bool, whole bool) {
	data, whole = map[string]bool{}, true
	storage, err := t.FS(ctx)
	if err != nil {
		return data, false
	}
	read := map[string]bool{}
	for _, s := range t.Metadata().Snapshots() {
		add(s.ManifestList)
		err := guarded(func() error {
			manifests, err := s.Manifests(storage)
			if err != nil {
				return err
			}
			for _, m := range manifests {
				if read[m.FilePath()] {
					continue
				}
				read[m.FilePath()] = true
				add(m.FilePath())
				for e, err := range m.Entries(storage, false) {
					if err != nil {
						return err
					}
					add(e.DataFile().FilePath())
					data[e.DataFile().FilePath()] = true
				}
			}
			return nil
		})
		whole = whole && err == nil
	}
	return data, whole
}
