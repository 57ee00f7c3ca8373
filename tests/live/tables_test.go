//go:build e2e

package live

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/apache/iceberg-go/io" // the local file system
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the catalog's database
)

// lake is an Iceberg catalog as another engine sees it.
type lake struct {
	db  *sql.DB
	cat *icesql.Catalog
}

// openLake makes or opens <dir>/<name>.db, whose tables lie in <dir>/<name>.
func openLake(dir, name string) (*lake, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	cat, err := icesql.NewCatalog(name, db, icesql.SQLite, iceberg.Properties{
		"warehouse": "file://" + filepath.Join(dir, name), "init_catalog_tables": "true",
	})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &lake{db: db, cat: cat}, nil
}

var ordersSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "amount", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "ssn", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "signed_on", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
}, nil)

const ordersRows = `[
 {"id": 1, "region": "EU", "amount": 10.0, "ssn": "111-11-1111", "email": "a@x", "signed_on": "2021-05-04"},
 {"id": 2, "region": "US", "amount": 20.0, "ssn": "222-22-2222", "email": "b@x", "signed_on": "2022-06-05"},
 {"id": 3, "region": "EU", "amount": 30.0, "ssn": "333-33-3333", "email": "c@x", "signed_on": "2023-07-06"}]`

// create makes a table with rows, in a namespace that may exist.
func (l *lake) create(t testing.TB, namespace, name string, schema *arrow.Schema, rows string) {
	t.Helper()
	ctx := context.Background()
	id := table.Identifier(strings.Split(namespace, "."))
	for i := range id {
		if err := l.cat.CreateNamespace(ctx, id[:i+1], nil); err != nil && !strings.Contains(err.Error(), "exists") {
			t.Fatal(err)
		}
	}
	s, err := table.ArrowSchemaToIcebergWithFreshIDs(schema, false)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := l.cat.CreateTable(ctx, append(id, name), s, catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	r, err := array.NewRecordReader(schema, []arrow.RecordBatch{rec})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if _, err := tbl.Append(ctx, r, nil); err != nil {
		t.Fatal(err)
	}
}

// change commits one change of a table as another engine does.
func (l *lake) change(t testing.TB, namespace, name string, edit func(tx *table.Transaction) error) {
	t.Helper()
	ctx := context.Background()
	tbl, err := l.cat.LoadTable(ctx, append(table.Identifier(strings.Split(namespace, ".")), name))
	if err != nil {
		t.Fatal(err)
	}
	tx := tbl.NewTransaction()
	if err := edit(tx); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

func (l *lake) renameColumn(t testing.TB, namespace, name, from, to string) {
	t.Helper()
	l.change(t, namespace, name, func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).RenameColumn([]string{from}, to).Commit()
	})
}

func (l *lake) dropColumn(t testing.TB, namespace, name, column string) {
	t.Helper()
	l.change(t, namespace, name, func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).DeleteColumn([]string{column}).Commit()
	})
}

func (l *lake) addColumn(t testing.TB, namespace, name, column string, typ iceberg.Type) {
	t.Helper()
	l.change(t, namespace, name, func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).AddColumn([]string{column}, typ, "", false, nil).Commit()
	})
}

func (l *lake) setProperty(t testing.TB, namespace, name, key, value string) {
	t.Helper()
	l.change(t, namespace, name, func(tx *table.Transaction) error {
		return tx.SetProperties(iceberg.Properties{key: value})
	})
}
