//go:build e2e

package s3

import (
	"path/filepath"
	"testing"

	"sqe/catalog"
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

// TestStatements: every kind of statement on tables in a store.
func TestStatements(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "", "")
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, name VARCHAR(100), n INT)",
		"INSERT INTO ns.t VALUES (1, 'a', 10), (2, 'b', 20), (3, NULL, 30)")
	l.wants("SELECT group_concat(concat(id, coalesce(name, '-'), n) ORDER BY id) FROM ns.t", "1a10,2b20,3-30")
	l.wants("SELECT count(*) FROM ns.t", "3")
	l.wants("SELECT count(*) FROM ns.t WHERE n > 15", "2")
}
