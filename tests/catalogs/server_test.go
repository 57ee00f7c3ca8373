//go:build e2e

package catalogs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/plan"
	"sqe/tests/catalogstest"
	"sqe/tests/sqetest"
)

var catalogSection = regexp.MustCompile(`(?s)\[\[catalogs\]\]\n.*?\n\n`)

// serve starts an sqe with the users and policies of the demo, and in the place of
// its catalog another one.
func serve(t testing.TB, section string) *sqetest.Server {
	t.Helper()
	dir := t.TempDir()
	prepared, err := sqetest.Demo(dir)
	if err == nil {
		err = prepared.Stop()
	}
	must(t, err)
	path := filepath.Join(dir, "sqe.toml")
	text, err := os.ReadFile(path)
	must(t, err)
	changed := catalogSection.ReplaceAllString(string(text), "[[catalogs]]\nname = \"demo\"\n"+section+"\n\n")
	if changed == string(text) {
		t.Fatal("the demo's configuration has no catalog")
	}
	must(t, os.WriteFile(path, []byte(changed), 0o600))
	s, err := sqetest.Serve(path, prepared.Port)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil || strings.Contains(s.Output(), "panic") {
			t.Errorf("%v\n%s", err, s.Output())
		}
	})
	return s
}

// TestServer: a MySQL client works with tables in each kind of catalog as with those
// in SQLite, and policies govern it.
func TestServer(t *testing.T) {
	for name, section := range map[string]func(t *testing.T) string{
		"rest": func(t *testing.T) string {
			s := StartREST(t)
			running = s
			return fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"none\"\nvisibility-max-age = \"0s\"\nwarehouse = %q", s.Address, s.Warehouse)
		},
		"postgres": func(t *testing.T) string {
			s := StartPostgres(t)
			return fmt.Sprintf("kind = \"postgres\"\ndsn = %q\nwarehouse = %q", s.Address, s.Warehouse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, section(t))
			admin, dave := s.Open("admin"), s.Open("dave")
			defer admin.Close()
			defer dave.Close()
			ask := func(want string, statement string) {
				t.Helper()
				got := sqetest.Ask(ctx, admin, statement)
				if got.Err != nil {
					t.Fatalf("%s: %v\n%s", statement, got.Err, s.Output())
				}
				if text := fmt.Sprint(got.Rows); want != "" && text != want {
					t.Errorf("%s: %s, want %s", statement, text, want)
				}
			}
			for _, x := range [][2]string{
				{"CREATE DATABASE shop", ""},
				{"CREATE TABLE shop.orders (id BIGINT NOT NULL, region VARCHAR(20), amount DECIMAL(10,2), at DATETIME)", ""},
				{"INSERT INTO shop.orders VALUES (1, 'EU', 10.50, '2026-01-01 10:00:00'), (2, 'US', 20, NULL), (3, NULL, 30, NULL)", ""},
				{"SELECT id, region, amount FROM shop.orders ORDER BY id", "[[1 EU 10.50] [2 US 20.00] [3 ␀ 30.00]]"},
				{"UPDATE shop.orders SET amount = amount * 2 WHERE region = 'EU'", ""},
				{"DELETE FROM shop.orders WHERE id = 2", ""},
				{"SELECT SUM(amount), COUNT(*) FROM shop.orders", "[[51.00 2]]"},
				{"CREATE TABLE shop.late AS SELECT id, amount FROM shop.orders WHERE id > 1", ""},
				{"SELECT * FROM shop.late", "[[3 30.00]]"},
				{"CREATE VIEW shop.eu AS SELECT id FROM shop.orders WHERE region = 'EU'", ""},
				{"SELECT * FROM shop.eu", "[[1]]"},
				{"ALTER TABLE shop.orders ADD COLUMN note VARCHAR(10)", ""},
				{"ALTER TABLE shop.orders RENAME COLUMN region TO area", ""},
				{"SELECT area, note FROM shop.orders WHERE id = 1", "[[EU ␀]]"},
				{"SHOW TABLES IN shop", "[[eu] [late] [orders]]"},
				{"SELECT COUNT(*) > 2 FROM shop.`orders$snapshots`", "[[1]]"},
				{"SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1", "[[eu] [late] [orders]]"},
				{"RENAME TABLE shop.late TO shop.moved", ""},
				{"SELECT COUNT(*) FROM shop.moved", "[[1]]"},
				{"DROP TABLE shop.moved", ""},
			} {
				ask(x[1], x[0])
			}
			for _, statement := range []string{"SELECT * FROM shop.orders", "SELECT * FROM shop.eu", "INSERT INTO shop.orders (id) VALUES (9)", "DROP TABLE shop.orders"} {
				if got := sqetest.Ask(ctx, dave, statement); got.Err == nil {
					t.Errorf("dave: %s: %v", statement, got.Rows)
				}
			}
			if got := sqetest.Ask(ctx, dave, "SHOW DATABASES"); got.Err != nil || strings.Contains(fmt.Sprint(got.Rows), "shop") {
				t.Errorf("dave: %v %v", got.Rows, got.Err)
			}
			ask("[[2]]", "SELECT COUNT(*) FROM shop.orders")
			if name == "rest" {
				foreignFile(t, s)
			}
		})
	}
}

// running is the REST catalog of the running test.
var running *Server

// foreignFile: a table to which somebody added a file of this machine from outside
// the catalog's folder is refused, though it lies where another catalog has its own.
func foreignFile(t *testing.T, s *sqetest.Server) {
	admin := s.Open("admin")
	defer admin.Close()
	// A writer that is not confined.
	c := catalogstest.REST(rest.Options{URI: running.Address}, "/")(t)
	defer c.Close()
	orders := plan.TableName{Catalog: "lake", Namespace: []string{"shop"}, Name: "orders"}
	must(t, second(c.Commit(ctx, orders, catalogstest.Rows(`[{"id": 7}]`))))
	before, err := c.Table(ctx, orders, plan.AsOf{}, "")
	must(t, err)
	files, err := before.Handle.(*catalog.Handle).Table.Scan().PlanFiles(ctx)
	must(t, err)
	text, err := os.ReadFile(strings.TrimPrefix(strings.TrimPrefix(files[0].File.FilePath(), "file://"), "file:"))
	must(t, err)
	outside := filepath.Join(s.Dir, "warehouse", "stolen.parquet")
	must(t, os.WriteFile(outside, text, 0o600))
	must(t, second(c.Commit(ctx, orders, func(ctx context.Context, tx *table.Transaction, now *plan.Table) error {
		b, err := iceberg.NewDataFileBuilder(now.Handle.(*catalog.Handle).Table.Spec(), iceberg.EntryContentData, "file:"+outside, iceberg.ParquetFile, nil, nil, nil, 1, int64(len(text)))
		if err != nil {
			return err
		}
		return tx.AddDataFiles(ctx, []iceberg.DataFile{b.Build()}, nil)
	})))
	for _, statement := range []string{"SELECT COUNT(*) FROM shop.orders", "SELECT * FROM shop.orders", "DELETE FROM shop.orders WHERE id = 7"} {
		got := sqetest.Ask(ctx, admin, statement+" -- afresh")
		if got.Err == nil || !strings.Contains(got.Err.Error(), "outside the folder") {
			t.Errorf("%s: %v %v", statement, got.Rows, got.Err)
		}
	}
}
