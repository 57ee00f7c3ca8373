//go:build e2e

package tpch

import (
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/engine/scan"
	"sqe/engine/write"
	"sqe/plan"
)

// kept are rows in memory that can be handed out again and again.
type kept struct {
	list []arrow.RecordBatch
	at   int
}

func (k *kept) Next() (arrow.RecordBatch, error) {
	if k.at == len(k.list) {
		return nil, io.EOF
	}
	k.list[k.at].Retain()
	k.at++
	return k.list[k.at-1], nil
}

func (k *kept) Close() error { return nil }

// BenchmarkWrite compares an append of lineitem from memory with DuckDB's COPY TO
// Parquet of the same rows with the same compression and row groups, and deletes of
// one row in a hundred by both modes.
func BenchmarkWrite(b *testing.B) {
	ctx := b.Context()
	data, err := Generate(ctx, *scale)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	rows, n := load(ctx, b, filepath.Join(data, "lineitem.parquet"))
	db, err := sql.Open("duckdb", "")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	exec := func(text string) error { _, err := db.ExecContext(ctx, text); return err }
	if err := exec("CREATE TABLE lineitem AS SELECT * FROM read_parquet('" + filepath.Join(data, "lineitem.parquet") + "')"); err != nil {
		b.Fatal(err)
	}
	c, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), dir, catalog.SQLOptions{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Iceberg().CreateNamespace(ctx, table.Identifier{"ns"}, nil); err != nil {
		b.Fatal(err)
	}
	schema, err := schemaOf(filepath.Join(data, "lineitem.parquet"))
	if err != nil {
		b.Fatal(err)
	}
	o := write.Options{Committer: c, Planner: scan.New(scan.Options{})}
	create := func(name, mode string, partition ...iceberg.PartitionField) *plan.Table {
		b.Helper()
		spec := iceberg.NewPartitionSpec(partition...)
		_, err := c.Iceberg().CreateTable(ctx, table.Identifier{"ns", name}, schema, icebergcatalog.WithPartitionSpec(&spec),
			icebergcatalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": mode}))
		if err != nil {
			b.Fatal(err)
		}
		t, err := c.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	b.ResetTimer()
	for range b.N {
		out := filepath.Join(dir, "copy.parquet")
		plain := create("plain", "merge-on-read")
		var res write.Result
		appended, copied := versus(b, 3, func() error {
			var err error
			if res, err = write.Overwrite(ctx, plain, write.All, &kept{list: rows}, o); err == nil {
				plain = res.Table
			}
			return err
		}, func() error {
			return exec("COPY lineitem TO '" + out + "' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1048576)")
		})
		if res.Inserted != n {
			b.Fatalf("%d rows of %d", res.Inserted, n)
		}
		byMonth := create("by_month", "copy-on-write", iceberg.PartitionField{SourceIDs: []int{11}, FieldID: 1000, Name: "m", Transform: iceberg.MonthTransform{}})
		start := time.Now()
		months, err := write.Append(ctx, byMonth, &kept{list: rows}, o)
		if err != nil {
			b.Fatal(err)
		}
		partitioned := time.Since(start)
		info, err := os.Stat(out)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("append of %d rows: %s in %d files of %d MB; COPY: %s, %d MB; ratio %.2f; by month: %s in %d files of %d MB", n, appended, res.Files, res.Bytes>>20, copied, info.Size()>>20, float64(appended)/float64(copied), partitioned, months.Files, months.Bytes>>20)
		copyTable := create("cow", "copy-on-write")
		first, err := write.Append(ctx, copyTable, &kept{list: rows}, o)
		if err != nil {
			b.Fatal(err)
		}
		for name, t := range map[string]*plan.Table{"merge-on-read": plain, "copy-on-write": first.Table} {
			changes := hundredth(ctx, b, o.Planner, t)
			start := time.Now()
			res, err := write.Change(ctx, t, changes, write.Layout{Command: write.DeleteCommand, Op: 0, File: 1, Position: 2}, o)
			if err != nil {
				b.Fatal(err)
			}
			b.Logf("delete of %d rows by %s: %s", res.Deleted, name, time.Since(start))
		}
	}
}

// load reads a Parquet file into memory.
func load(ctx context.Context, b *testing.B, path string) ([]arrow.RecordBatch, int64) {
	b.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	p, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: 64 << 10}, memory.DefaultAllocator)
	if err != nil {
		b.Fatal(err)
	}
	rr, err := p.GetRecordReader(ctx, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer rr.Release()
	var out []arrow.RecordBatch
	var n int64
	for rr.Next() {
		rec := rr.RecordBatch()
		rec.Retain()
		out = append(out, rec)
		n += rec.NumRows()
	}
	if err := rr.Err(); err != nil {
		b.Fatal(err)
	}
	return out, n
}

// hundredth ends one row in a hundred of every file.
func hundredth(ctx context.Context, b *testing.B, p *scan.Planner, t *plan.Table) *kept {
	b.Helper()
	tasks, err := p.Tasks(ctx, t)
	if err != nil {
		b.Fatal(err)
	}
	out := &kept{}
	for _, tk := range tasks {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
			{Name: "op", Type: plan.Int8}, {Name: "_file", Type: plan.String, Nullable: true}, {Name: "_pos", Type: plan.Int64, Nullable: true},
		}, nil))
		for i := int64(0); i < tk.File.Count(); i += 100 {
			rb.Field(0).(*array.Int8Builder).Append(write.Delete)
			rb.Field(1).(*array.StringBuilder).Append(tk.File.FilePath())
			rb.Field(2).(*array.Int64Builder).Append(i)
		}
		out.list = append(out.list, rb.NewRecordBatch())
	}
	return out
}
