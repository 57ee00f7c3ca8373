// Package tpch makes the tables of the TPC-H benchmark, loads them into an
// Iceberg catalog and holds its 22 queries.
//
// Invariants: the data files of the Iceberg tables are the Parquet files that the
// generator wrote, so DuckDB alone can read the very same bytes; the queries have
// the specification's validation parameters and are the same text for both
// sides. The package is for tests and benchmarks; nothing of the product may
// import it.
package tpch

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/apache/iceberg-go/io" // the local file system
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the catalog's database

	"sqe/tests/sqetest"
)

// Tables are the names of the tables, parents before children.
var Tables = []string{"region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"}

// Namespace is where Load puts the tables.
const Namespace = "tpch"

//go:embed queries/*.sql
var queries embed.FS

// Query is the text of query 1 to 22 at a scale factor. Query 11 depends on it.
func Query(n int, scale float64) (string, error) {
	text, err := queries.ReadFile(fmt.Sprintf("queries/q%02d.sql", n))
	if err != nil {
		return "", err
	}
	fraction := strconv.FormatFloat(0.0001/scale, 'f', -1, 64)
	return strings.TrimSpace(strings.ReplaceAll(string(text), "{fraction}", fraction)), nil
}

// Generate makes the Parquet files of a scale factor, once, and returns their
// folder: one file per table, "<table>.parquet".
func Generate(ctx context.Context, scale float64) (string, error) {
	dir := filepath.Join(sqetest.Cache(), "tpch", "sf"+strconv.FormatFloat(scale, 'f', -1, 64))
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	generator := filepath.Join(sqetest.Cache(), "venv", "bin", "tpchgen-cli")
	cmd := exec.CommandContext(ctx, generator, "parquet", "--overwrite", "-s", strconv.FormatFloat(scale, 'f', -1, 64), "-o", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the TPC-H generator (tests/install installs it): %w\n%s", err, out)
	}
	return dir, os.WriteFile(done, nil, 0o644)
}

// Load makes an Iceberg catalog in SQLite, <dir>/catalog.db, under the given
// catalog name, and the tables of scale in it, in namespace Namespace. The data
// files are hard links to (or copies of) the generated files.
func Load(ctx context.Context, dir, catalogName string, scale float64) (err error) {
	from, err := Generate(ctx, scale)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cat, closeCatalog, err := open(dir, catalogName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeCatalog()) }()
	if err := cat.CreateNamespace(ctx, table.Identifier{Namespace}, nil); err != nil {
		return err
	}
	for _, name := range Tables {
		data := filepath.Join(dir, Namespace, name, "data", name+".parquet")
		if err := link(filepath.Join(from, name+".parquet"), data); err != nil {
			return err
		}
		schema, err := schemaOf(data)
		if err != nil {
			return err
		}
		t, err := cat.CreateTable(ctx, catalog.ToIdentifier(Namespace, name), schema, catalog.WithLocation("file://"+filepath.Join(dir, Namespace, name)))
		if err != nil {
			return err
		}
		tx := t.NewTransaction()
		if err := tx.AddFiles(ctx, []string{"file://" + data}, nil, false); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := tx.Commit(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// DeleteDay deletes the rows of lineitem that were shipped on one day (about one
// in 2,500), merge-on-read: the data file stays, a delete file says which rows are
// gone.
func DeleteDay(ctx context.Context, dir, catalogName, day string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	cat, closeCatalog, err := open(dir, catalogName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeCatalog()) }()
	t, err := cat.LoadTable(ctx, table.Identifier{Namespace, "lineitem"})
	if err != nil {
		return err
	}
	tx := t.NewTransaction()
	if err := tx.SetProperties(iceberg.Properties{table.WriteDeleteModeKey: "merge-on-read"}); err != nil {
		return err
	}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return err
	}
	if err := tx.Delete(ctx, iceberg.EqualTo(iceberg.Reference("l_shipdate"), iceberg.Date(at.Unix()/86400)), nil); err != nil {
		return err
	}
	_, err = tx.Commit(ctx)
	return err
}

// open opens the catalog <dir>/catalog.db.
func open(dir, catalogName string) (*icesql.Catalog, func() error, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "catalog.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, nil, err
	}
	cat, err := icesql.NewCatalog(catalogName, db, icesql.SQLite, iceberg.Properties{
		"warehouse": "file://" + dir, "init_catalog_tables": "true",
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return cat, db.Close, nil
}

// schemaOf is the Iceberg schema of a Parquet file that carries field ids.
func schemaOf(path string) (*iceberg.Schema, error) {
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	arrowReader, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	s, err := arrowReader.Schema()
	if err != nil {
		return nil, err
	}
	return table.ArrowSchemaToIceberg(s, false, nil)
}

// link makes to another name of the file from, or a copy where that is not
// possible.
func link(from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
