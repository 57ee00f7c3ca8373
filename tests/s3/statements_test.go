//go:build e2e

package s3

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/catalog"
	"sqe/tests/sqetest"
)

// createCatalog makes an empty catalog file.
func createCatalog(t *testing.T, path, name string) {
	t.Helper()
	c, err := catalog.OpenSQLite(name, path, filepath.Dir(path), catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStatements: every kind of statement on tables in a store, with the answers of the
// same statements on a disk beside them.
func TestStatements(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "", "")
	l.do("CREATE SCHEMA ns", "CREATE SCHEMA disk.ns")
	both := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			l.do(strings.ReplaceAll(text, "@", ""), strings.ReplaceAll(text, "@", "disk."))
		}
	}
	same := func(text string, rows int) {
		t.Helper()
		a, b := l.ask(strings.ReplaceAll(text, "@", "")), l.ask(strings.ReplaceAll(text, "@", "disk."))
		if a.Err != nil || b.Err != nil || fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) || len(a.Rows) != rows {
			t.Errorf("%s:\n%v %v\n%v %v, want %d rows", text, a.Rows, a.Err, b.Rows, b.Err, rows)
		}
	}
	both("CREATE TABLE @ns.t (id BIGINT, name VARCHAR(100), n INT, d DECIMAL(10,2), at DATETIME(6), js JSON)",
		"INSERT INTO @ns.t VALUES (1, 'a', 10, 1.25, '2024-01-02 03:04:05', '{\"x\": 1}'), (2, 'b', 20, 2.5, NULL, NULL), (3, NULL, 30, NULL, NULL, '[1]')")
	same("SELECT * FROM @ns.t ORDER BY id", 3)
	same("SELECT count(*), sum(n) FROM @ns.t WHERE n > 15 AND name IS NOT NULL", 1)
	both("UPDATE @ns.t SET n = n + 1 WHERE id >= 2", "DELETE FROM @ns.t WHERE id = 1",
		"INSERT INTO @ns.t (id, name, n) SELECT id + 10, 'copied', n FROM @ns.t")
	same("SELECT * FROM @ns.t ORDER BY id", 4)
	both("CREATE TABLE @ns.src (id BIGINT, n INT)", "INSERT INTO @ns.src VALUES (2, 200), (50, 500)",
		"MERGE INTO @ns.t AS t USING @ns.src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)")
	same("SELECT id, n FROM @ns.t ORDER BY id", 5)
	same("SELECT t.id, s.n FROM @ns.t t JOIN @ns.src s ON t.id = s.id ORDER BY 1", 2)
	both("CREATE TABLE @ns.c AS SELECT id, upper(name) AS name FROM @ns.t", "ALTER TABLE @ns.c ADD COLUMN more INT", "UPDATE @ns.c SET more = 7 WHERE id > 10")
	same("SELECT * FROM @ns.c ORDER BY id", 5)
	same("SELECT count(*) FROM @ns.`t$snapshots`", 1)
	if got := l.one("SELECT min(file_path) FROM ns.`t$files`"); !strings.HasPrefix(got, "s3://lake/wh/") {
		t.Errorf("a file is at %s", got)
	}
	// Deletes that are merged when they are read.
	both("CREATE TABLE @ns.m (id BIGINT, v VARCHAR(20)) COMMENT 'm'",
		"ALTER TABLE @ns.m SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')",
		"INSERT INTO @ns.m SELECT id, concat('v', id) FROM @ns.t", "INSERT INTO @ns.m VALUES (100, 'w'), (101, 'x')",
		"DELETE FROM @ns.m WHERE id IN (2, 100)", "UPDATE @ns.m SET v = 'new' WHERE id = 101")
	same("SELECT * FROM @ns.m ORDER BY id", 5)
	same("SELECT count(*) FROM @ns.m", 1)
	// Partitions with values that a path has to escape.
	both("CREATE TABLE @ns.p (id BIGINT, k VARCHAR(20)) PARTITIONED BY (k)",
		"INSERT INTO @ns.p VALUES (1, 'a b'), (2, '50%'), (3, 'x/y'), (4, 'ü?#'), (5, ''), (6, NULL)")
	same("SELECT * FROM @ns.p ORDER BY id", 6)
	same("SELECT id FROM @ns.p WHERE k = '50%'", 1)
	same("SELECT id FROM @ns.p WHERE k = 'x/y'", 1)
	both("DELETE FROM @ns.p WHERE k = 'a b'", "TRUNCATE TABLE @ns.src")
	same("SELECT * FROM @ns.p ORDER BY id", 5)
	same("SELECT count(*) FROM @ns.src", 1)
	// Nothing of a table is left that was dropped with its files.
	before := len(stored(t, store))
	l.do("DROP TABLE ns.c PURGE")
	after := stored(t, store)
	if len(after) >= before {
		t.Errorf("%d files before DROP PURGE, %d after", before, len(after))
	}
	for _, f := range after {
		if strings.Contains(f, "/c-") {
			t.Errorf("%s was left", f)
		}
	}
	l.do("CREATE OR REPLACE VIEW ns.v AS SELECT id FROM ns.t")
	l.wants("SELECT count(*) FROM ns.v", "5")
	a := l.ask("EXPLAIN SELECT * FROM ns.t WHERE n > 5")
	if a.Err != nil {
		t.Error(a.Err)
	}
	a = l.ask("EXPLAIN POLICY SELECT * FROM ns.t WHERE n > 5")
	if a.Err != nil {
		t.Error(a.Err)
	}
	// A restart finds everything.
	l.stop()
	l.start()
	l.wants("SELECT count(*) FROM ns.t", "5")
}

// TestMaintenance: snapshots that expire, files that are rewritten, files that nothing
// names.
func TestMaintenance(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "", "")
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, n INT)")
	for i := range 6 {
		l.do(fmt.Sprintf("INSERT INTO ns.t VALUES (%d, %d)", i, i))
	}
	l.do("DELETE FROM ns.t WHERE id = 0")
	l.do("CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true'))")
	l.wants("SELECT count(*) FROM ns.`t$files` WHERE content = 0", "1")
	l.wants("SELECT group_concat(id ORDER BY id) FROM ns.t", "1,2,3,4,5")
	before := len(stored(t, store))
	l.do("CALL system.expire_snapshots(table => 'ns.t', older_than => '2999-01-01 00:00:00', retain_last => 1)")
	if after := len(stored(t, store)); after >= before {
		t.Errorf("%d files before, %d after", before, after)
	}
	// A file that nothing names, and one that is too young to be told from one of a
	// statement that still runs.
	var folder string
	for _, f := range stored(t, store) {
		if strings.HasSuffix(f, ".parquet") {
			folder = filepath.Dir(f)
		}
	}
	old, young := filepath.Join(folder, "old.parquet"), filepath.Join(folder, "young.parquet")
	for _, f := range []string{old, young} {
		l.must(os.WriteFile(f, []byte("x"), 0o644))
	}
	past := time.Now().Add(-100 * time.Hour)
	l.must(os.Chtimes(old, past, past))
	l.do("CALL system.remove_orphan_files(table => 'ns.t')")
	if _, err := os.Stat(old); err == nil {
		t.Error("the orphan is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
	l.wants("SELECT group_concat(id ORDER BY id) FROM ns.t", "1,2,3,4,5")
}

// TestTogether: writers and readers at the same time, each with an answer of one state.
func TestTogether(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "", "[object-cache]\nsize = \"4MiB\"\n")
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, pair BIGINT)", "INSERT INTO ns.t VALUES (0, 0), (1, 0)")
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 5 {
				n := w*100 + i + 1
				if a := sqetest.Ask(ctx, l.client, fmt.Sprintf("INSERT INTO ns.t VALUES (%d, %d), (%d, %d)", 2*n, n, 2*n+1, n)); a.Err != nil {
					t.Error(a.Err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				a := sqetest.Ask(ctx, l.client, "SELECT count(*) FROM (SELECT pair FROM ns.t GROUP BY pair HAVING count(*) <> 2) x")
				if a.Err != nil || a.Rows[0][0] != "0" {
					t.Error(a.Rows, a.Err)
				}
			}
		})
	}
	wg.Wait()
	l.wants("SELECT count(*) FROM ns.t", "32")
}
