//go:build e2e

package catalogs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
			return fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"none\"\nwarehouse = %q", s.Address, s.Warehouse)
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
		})
	}
}
