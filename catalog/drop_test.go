package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

func TestDropAndRename(t *testing.T) {
	c, dir := lake(t)
	other := open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"x", "y"}, nil, false))
	keep := made(t, c, "keep", humans)
	appended(t, c, "keep", `[{"id": 1}]`)
	made(t, c, "t", humans)
	appended(t, c, "t", `[{"id": 1}]`)
	if _, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); err != nil {
		t.Error(err)
	}
	must(t, c.RenameTable(ctx, name("ns", "t"), name("x/y", "u")))
	for _, cat := range []*SQL{c, other} {
		if _, err := cat.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("the old name: %v", err)
		}
		if got, err := cat.Table(ctx, name("x/y", "u"), plan.AsOf{}, ""); err != nil || scanned(t, got) != 1 {
			t.Errorf("the new name: %v", err)
		}
	}
	must(t, createView(c, name("ns", "v"), "SELECT 1"))
	for what, f := range map[string]func() (fault.Kind, error){
		"a table that is not there": func() (fault.Kind, error) {
			return fault.NotFound, c.RenameTable(ctx, name("ns", "none"), name("ns", "z"))
		},
		"a view as a table": func() (fault.Kind, error) {
			return fault.NotFound, c.RenameTable(ctx, name("ns", "v"), name("ns", "z"))
		},
		"onto a table": func() (fault.Kind, error) {
			return fault.Exists, c.RenameTable(ctx, name("x/y", "u"), name("ns", "keep"))
		},
		"onto a view": func() (fault.Kind, error) {
			return fault.Exists, c.RenameTable(ctx, name("x/y", "u"), name("ns", "v"))
		},
		"to no namespace": func() (fault.Kind, error) {
			return fault.NoDatabase, c.RenameTable(ctx, name("x/y", "u"), name("none", "u"))
		},
		"to another catalog": func() (fault.Kind, error) {
			to := name("ns", "z")
			to.Catalog = "other"
			return fault.Unsupported, c.RenameTable(ctx, name("x/y", "u"), to)
		},
		"drop of none": func() (fault.Kind, error) {
			_, err := c.DropTable(ctx, name("ns", "none"), false)
			return fault.NotFound, err
		},
		"drop of a view": func() (fault.Kind, error) {
			_, err := c.DropTable(ctx, name("ns", "v"), true)
			return fault.NotFound, err
		},
	} {
		kind, err := f()
		wants(t, what, err, kind, "")
	}

	// Without a purge every file stays; a new table of the name has its own.
	must(t, c.RenameTable(ctx, name("x/y", "u"), name("ns", "t")))
	before := len(files(t, dir))
	if got, err := c.DropTable(ctx, name("ns", "t"), false); err != nil || got != (Purged{}) || len(files(t, dir)) != before {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a dropped table: %v", err)
	}
	again := made(t, c, "t", humans)
	appended(t, c, "t", `[{"id": 1}, {"id": 2}]`)
	appended(t, c, "t", `[{"id": 3}]`)

	// A purge takes the files of the table, and nothing that lies elsewhere: a data
	// file of another table and one outside the warehouse.
	outside := filepath.Join(dir, "outside.parquet")
	foreign := keep.Handle.(*Handle).Table.Location()
	var parquet string
	for _, f := range files(t, dir) {
		if strings.HasSuffix(f, ".parquet") && strings.Contains(f, filepath.Base(foreign)) {
			parquet = f
		}
	}
	body, err := os.ReadFile(parquet)
	must(t, err)
	must(t, os.WriteFile(outside, body, 0o600))
	_, err = c.Commit(ctx, name("ns", "t"), func(ctx context.Context, tx *table.Transaction, _ *plan.Table) error {
		return tx.AddFiles(ctx, []string{outside, parquet}, nil, false)
	})
	if err != nil {
		t.Logf("files with field ids are not added: %v", err)
		must(t, addForeign(c, again.Name, outside, parquet))
	}
	got, err := c.DropTable(ctx, name("ns", "t"), true)
	must(t, err)
	if got.Left != 2 || got.Deleted < 8 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("a purge deleted a file outside the warehouse")
	}
	if n := scanned(t, loaded(t, c, "keep")); n != 1 {
		t.Error("a purge deleted a file of another table")
	}
	for _, f := range files(t, dir) {
		if strings.Contains(f, filepath.Base(again.Handle.(*Handle).Table.Location())) {
			t.Errorf("left %s", f)
		}
	}
	if _, err := os.Stat(mustPath(again.Handle.(*Handle).Table.Location())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left the folder of a table: %v", err)
	}
	// A table whose metadata is lost can be dropped, and not purged.
	lost := made(t, c, "lost", humans)
	must(t, os.Remove(mustPath(lost.Version)))
	c.memory.forgetIf(func(any) bool { return true })
	_, err = c.DropTable(ctx, name("ns", "lost"), true)
	wants(t, "a purge of a broken table", err, fault.Corrupt, "PURGE")
	_, err = c.DropTable(ctx, name("ns", "lost"), false)
	must(t, err)
}

func mustPath(location string) string {
	_, p, _ := place(location)
	return p
}

// addForeign adds data files by their paths alone.
func addForeign(c *SQL, n plan.TableName, paths ...string) error {
	_, err := c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		var list []iceberg.DataFile
		for _, p := range paths {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			b, err := iceberg.NewDataFileBuilder(t.Handle.(*Handle).Table.Spec(), iceberg.EntryContentData, p, iceberg.ParquetFile, nil, nil, nil, 1, info.Size())
			if err != nil {
				return err
			}
			list = append(list, b.Build())
		}
		return tx.AddDataFiles(ctx, list, nil)
	})
	return err
}
