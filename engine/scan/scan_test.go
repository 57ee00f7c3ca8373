package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

var ctx = context.Background()

// lake is a catalog in a folder of the test.
type lake struct {
	testing.TB
	catalog *catalog.SQL
	planner *Planner
}

func newLake(t testing.TB) *lake {
	t.Helper()
	dir := t.TempDir()
	c, err := catalog.OpenSQLite("lake", dir+"/catalog.db", dir, catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Iceberg().CreateNamespace(ctx, table.Identifier{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	return &lake{t, c, New(Options{})}
}

func (l *lake) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func (l *lake) create(name string, s *iceberg.Schema, version string, partition []iceberg.PartitionField, props iceberg.Properties) *table.Table {
	l.Helper()
	all := iceberg.Properties{"format-version": version}
	for k, v := range props {
		all[k] = v
	}
	spec := iceberg.NewPartitionSpec(partition...)
	t, err := l.catalog.Iceberg().CreateTable(ctx, table.Identifier{"ns", name}, s, icebergcatalog.WithPartitionSpec(&spec), icebergcatalog.WithProperties(all))
	l.must(err)
	return t
}

func (l *lake) append(t *table.Table, rows string) *table.Table {
	l.Helper()
	t, err := t.AppendTable(ctx, l.rows(t.Schema(), rows), 1024, nil)
	l.must(err)
	return t
}

func (l *lake) rows(s *iceberg.Schema, rows string) arrow.Table {
	l.Helper()
	schema, err := table.SchemaToArrowSchema(s, nil, false, false)
	l.must(err)
	data, err := array.TableFromJSON(memory.DefaultAllocator, schema, []string{rows})
	l.must(err)
	return data
}

func (l *lake) load(name string, at plan.AsOf) *plan.Table {
	l.Helper()
	t, err := l.catalog.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: name}, at, "")
	l.must(err)
	return t
}

// scan makes a plan.Scan of the named columns, all of them when there are none.
func scanOfTable(t *plan.Table, names ...string) *plan.Scan {
	s := &plan.Scan{Table: t}
	var ids plan.IDs
	for _, f := range t.Fields {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: f.Name, Type: f.Type, Nullable: !f.Required}, FieldID: f.ID})
	}
	return s
}

func (l *lake) plan(s *plan.Scan) *Input {
	l.Helper()
	in, err := l.planner.Plan(ctx, s)
	l.must(err)
	return in
}

// read gives every row of a scan as text, sorted.
func (l *lake) read(s *plan.Scan) []string {
	l.Helper()
	in := l.plan(s)
	var out []string
	for _, f := range in.Files {
		out = append(out, l.readFile(s, f)...)
	}
	if in.Stream != nil {
		all := make([]int, len(s.Cols))
		for i := range all {
			all[i] = i
		}
		out = append(out, l.readStream(s, in.Stream, all)...)
	}
	slices.Sort(out)
	return out
}

func (l *lake) readStream(s *plan.Scan, st Stream, columns []int) []string {
	l.Helper()
	r, err := st.Open(ctx, columns)
	l.must(err)
	defer func() { l.must(r.Close()) }()
	var out []string
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		l.must(err)
		for i, c := range columns {
			if got, want := b.Column(i).DataType(), s.Cols[c].Type; !arrow.TypeEqual(got, want) {
				l.Errorf("column %s has type %s in the stream, want %s", s.Cols[c].Name, got, want)
			}
		}
		out = append(out, rowsOf(b)...)
		b.Release()
	}
}

// readFile reads a file as an executor does: by the names and defaults of its
// columns, with nothing of Iceberg.
func (l *lake) readFile(s *plan.Scan, f File) []string {
	l.Helper()
	r, err := file.OpenParquetFile(f.Path, false)
	l.must(err)
	defer func() { _ = r.Close() }()
	pr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	l.must(err)
	t, err := pr.ReadTable(ctx)
	l.must(err)
	if t.NumRows() != f.Rows {
		l.Errorf("file has %d rows, File says %d", t.NumRows(), f.Rows)
	}
	out := make([]string, t.NumRows())
	cells := make([][]string, t.NumRows())
	for i, c := range f.Columns {
		if c.Name == "" {
			v := "(null)"
			if c.Default.Value != nil {
				a, err := constant(c.Default, 1)
				l.must(err)
				v = a.ValueStr(0)
			}
			for k := range cells {
				cells[k] = append(cells[k], v)
			}
			continue
		}
		at := t.Schema().FieldIndices(c.Name)
		if len(at) != 1 {
			l.Fatalf("file has %d columns %q", len(at), c.Name)
		}
		k := 0
		for _, chunk := range t.Column(at[0]).Data().Chunks() {
			if arrow.TypeEqual(storage(chunk.DataType()), storage(s.Cols[i].Type)) {
				chunk, err = retype(chunk, s.Cols[i].Type)
				l.must(err)
			}
			for j := range chunk.Len() {
				cells[k] = append(cells[k], chunk.ValueStr(j))
				k++
			}
		}
	}
	for i, c := range cells {
		out[i] = strings.Join(c, "|")
	}
	return out
}

func rowsOf(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, c.ValueStr(i))
		}
		out[i] = strings.Join(cells, "|")
	}
	return out
}

func (l *lake) want(got []string, want ...string) {
	l.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func col(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func simple() *iceberg.Schema {
	return iceberg.NewSchema(0,
		col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "name", iceberg.PrimitiveTypes.String), col(3, "n", iceberg.PrimitiveTypes.Int32))
}

func liveObjects(from, to int) string {
	var b []string
	for i := from; i < to; i++ {
		b = append(b, fmt.Sprintf(`{"id": %d, "name": "n%d", "n": %d}`, i, i, i*10))
	}
	return "[" + strings.Join(b, ",") + "]"
}

func rowsText(from, to int, without ...int) []string {
	var out []string
	for i := from; i < to; i++ {
		if !slices.Contains(without, i) {
			out = append(out, fmt.Sprintf("%d|n%d|%d", i, i, i*10))
		}
	}
	return out
}

// TestDeletes: a deleted row never comes back, and its file never goes to an
// executor that knows nothing of deletes.
func TestDeletes(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			if version == "1" && mode == "merge-on-read" {
				continue // version 1 has no delete files
			}
			t.Run("v"+version+" "+mode, func(t *testing.T) {
				l := newLake(t)
				tb := l.create("t", simple(), version, nil, iceberg.Properties{"write.delete.mode": mode})
				tb = l.append(tb, liveObjects(0, 4))
				tb = l.append(tb, liveObjects(10, 14))
				l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), append(rowsText(0, 4), rowsText(10, 14)...)...)
				before := tb.CurrentSnapshot().SnapshotID

				_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil)
				l.must(err)
				s := scanOfTable(l.load("t", plan.AsOf{}))
				in := l.plan(s)
				if mode == "merge-on-read" {
					if len(in.Files) != 1 || in.Stream == nil {
						t.Errorf("%d files and stream %v: want the file without deletes alone", len(in.Files), in.Stream != nil)
					}
					// Any column on its own, and none, see the same rows.
					l.want(sorted(l.readStream(s, in.Stream, []int{1})), "n0", "n1", "n3")
					l.want(sorted(l.readStream(s, in.Stream, nil)), "", "", "")
				} else if in.Stream != nil {
					t.Error("a table without delete files has a stream")
				}
				l.want(l.read(s), append(rowsText(0, 4, 2), rowsText(10, 14)...)...)
				l.want(l.read(scanOfTable(l.load("t", plan.AsOf{Snapshot: before}))), append(rowsText(0, 4), rowsText(10, 14)...)...)
			})
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func (l *lake) handle(t *plan.Table) *catalog.Handle { return t.Handle.(*catalog.Handle) }

// TestCacheBound: the lists of files are forgotten when they hold too many.
func TestCacheBound(t *testing.T) {
	l := newLake(t)
	l.planner = New(Options{CachedFiles: 5})
	tb := l.create("t", simple(), "2", nil, nil)
	for i := range 8 {
		tb = l.append(tb, liveObjects(i, i+1))
		l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), rowsText(0, i+1)...)
		if l.planner.files > 5 || l.planner.files < 0 {
			t.Errorf("%d files are kept", l.planner.files)
		}
	}
	if l.planner.files != 5 {
		t.Errorf("%d files are kept at the end", l.planner.files)
	}
}
