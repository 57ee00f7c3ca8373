package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestOwnTemp: what a server that died put aside is deleted, and nothing else; what
// belongs to one that lives is not.
func TestOwnTemp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tmp")
	put := func() {
		t.Helper()
		for _, name := range []string{"duckdb_temp_storage_DEFAULT-0.tmp", "duckdb_temp_block-7.block", "mine"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("rows"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := func() []string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	own := func() func() {
		t.Helper()
		release, err := ownTemp(dir)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	own()()
	put()
	release := own()
	if got := names(); !slices.Equal(got, []string{"lock", "mine"}) {
		t.Errorf("after a server that died: %v", got)
	}
	put()
	own()()
	if got := names(); len(got) != 4 {
		t.Errorf("beside a server that lives: %v", got)
	}
	release()
	own()()
	if got := names(); !slices.Equal(got, []string{"lock", "mine"}) {
		t.Errorf("after that server: %v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ownTemp(filepath.Join(dir, "file")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
