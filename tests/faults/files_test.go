//go:build e2e

package faults

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the catalog's database

	"sqe/tests/lab"
)

// files are those in the warehouse.
func (s *site) files() []string {
	s.Helper()
	return s.filesIn(s.warehouse)
}

func (s *site) filesIn(dir string) []string {
	s.Helper()
	var out []string
	s.must(filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return err
	}))
	return out
}

// metadata is where an embedded catalog says that a table of the schema s is.
func (s *site) metadata(name string) string {
	s.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "catalog.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	s.must(err)
	defer db.Close()
	var location string
	s.must(db.QueryRow("SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = 's' AND table_name = ?", lab.Catalog, name).Scan(&location))
	return local(location)
}

func local(location string) string {
	_, path, ok := strings.Cut(location, "file://")
	if !ok {
		return location
	}
	return path
}

// hollow are the folders of tables that hold no file.
func (s *site) hollow() []string {
	s.Helper()
	root := filepath.Join(s.warehouse, "s.db")
	entries, err := os.ReadDir(root)
	s.must(err)
	var out []string
	for _, e := range entries {
		if len(s.filesIn(filepath.Join(root, e.Name()))) == 0 {
			out = append(out, e.Name())
		}
	}
	return out
}

// unnamed are the files in a table's folder that neither its metadata nor any of its
// snapshots names, and folder is the folder.
func (s *site) unnamed(name string) (files []string, folder string) {
	s.Helper()
	at := s.metadata(name)
	body, err := os.ReadFile(at)
	s.must(err)
	if strings.HasSuffix(at, ".gz.metadata.json") {
		z, err := gzip.NewReader(bytes.NewReader(body))
		s.must(err)
		body, err = io.ReadAll(z)
		s.must(err)
	}
	meta, err := table.ParseMetadataBytes(body)
	s.must(err)
	named := map[string]bool{at: true}
	for e := range meta.PreviousFiles() {
		named[local(e.MetadataFile)] = true
	}
	storage := icebergio.LocalFS{}
	for _, snapshot := range meta.Snapshots() {
		named[local(snapshot.ManifestList)] = true
		manifests, err := snapshot.Manifests(storage)
		s.must(err)
		for _, m := range manifests {
			named[local(m.FilePath())] = true
			for e, err := range m.Entries(storage, true) { // what a snapshot took out is not its own
				s.must(err)
				named[local(e.DataFile().FilePath())] = true
			}
		}
	}
	folder = local(meta.Location())
	for _, f := range s.filesIn(folder) {
		if !named[f] {
			files = append(files, f)
		}
		delete(named, f)
	}
	// Nothing of what the table names may be missing.
	for f := range named {
		s.Errorf("table %s names %s, which is not there", name, f)
	}
	slices.Sort(files)
	return files, folder
}

// tomorrow is a time that every file is older than.
func tomorrow() string { return time.Now().UTC().Add(24 * time.Hour).Format("2006-01-02 15:04:05") }

// orphans are the files that the server takes for orphans of a table, whatever their
// age.
func (s *site) orphans(name string) []string {
	s.Helper()
	text := s.see("CALL system.remove_orphan_files(table => 's." + name + "', older_than => '" + tomorrow() + "', dry_run => true)")
	return paths(text)
}

func paths(lines string) []string {
	if lines == "" {
		return nil
	}
	var out []string
	for _, l := range strings.Split(lines, "\n") {
		out = append(out, local(l))
	}
	slices.Sort(out)
	return out
}

// sweep checks that the server finds the orphans of a table and no other files, has
// it remove them, and checks that the table is as before.
func (s *site) sweep(name, contents string) (removed int) {
	s.Helper()
	want, folder := s.unnamed(name)
	before := s.see(contents)
	if got := s.orphans(name); !slices.Equal(got, want) {
		s.Errorf("orphans of %s: %d files\n%s\nwant %d\n%s", name, len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
	// Young files stay, whoever asks. What a killed expire_snapshots left may have been made
	// old below, in another round.
	young := time.Now()
	for _, f := range s.filesIn(folder) {
		s.must(os.Chtimes(f, young, young))
	}
	s.see("CALL system.remove_orphan_files(table => 's." + name + "')")
	if got, _ := s.unnamed(name); !slices.Equal(got, want) {
		s.Errorf("files of %s that had just been written were removed: %d left of %d", name, len(got), len(want))
	}
	old := time.Now().Add(-4 * 24 * time.Hour)
	for _, f := range s.filesIn(folder) {
		s.must(os.Chtimes(f, old, old))
	}
	if got := paths(s.see("CALL system.remove_orphan_files(table => 's." + name + "')")); !slices.Equal(got, want) {
		s.Errorf("removed from %s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if left, _ := s.unnamed(name); len(left) > 0 {
		s.Errorf("left in the folder of %s: %v", name, left)
	}
	if after := s.see(contents); after != before {
		s.Errorf("%s held\n%s\nbefore its orphans were removed, and now\n%s", name, before, after)
	}
	return len(want)
}

// clean checks that a table has no orphans.
func (s *site) clean(name string) {
	s.Helper()
	if files, _ := s.unnamed(name); len(files) > 0 {
		s.Errorf("%d files that nothing names are left in the folder of %s, such as %s", len(files), name, files[0])
	}
}
