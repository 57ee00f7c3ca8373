//go:build e2e

package writes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/engine/write"
	"sqe/plan"
)

var ctx = context.Background()

// python is the interpreter that tests/install puts into its folder.
func python(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SQE_CACHE")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "sqe")
	}
	path := filepath.Join(dir, "venv", "bin", "python")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("the Python environment is missing: run tests/install spark")
	}
	return path
}

type lake struct {
	*testing.T
	dir     string
	catalog *catalog.SQL
	options write.Options
	tables  map[string][][]string // what each is to hold: values as PyIceberg shows them
}

func newLake(t *testing.T) *lake {
	t.Helper()
	dir := t.TempDir()
	c, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), dir, catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Iceberg().CreateNamespace(ctx, table.Identifier{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	return &lake{t, dir, c, write.Options{Committer: c, Planner: scan.New(scan.Options{})}, map[string][][]string{}}
}

func (l *lake) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func (l *lake) create(name, version string, s *iceberg.Schema, partition []iceberg.PartitionField, props iceberg.Properties) *plan.Table {
	l.Helper()
	all := iceberg.Properties{"format-version": version}
	for k, v := range props {
		all[k] = v
	}
	spec := iceberg.NewPartitionSpec(partition...)
	_, err := l.catalog.Iceberg().CreateTable(ctx, table.Identifier{"ns", name}, s, icebergcatalog.WithPartitionSpec(&spec), icebergcatalog.WithProperties(all))
	l.must(err)
	return l.load(name)
}

func (l *lake) load(name string) *plan.Table {
	l.Helper()
	t, err := l.catalog.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
	l.must(err)
	return t
}

type batches struct{ list []arrow.RecordBatch }

func (b *batches) Next() (arrow.RecordBatch, error) {
	if len(b.list) == 0 {
		return nil, io.EOF
	}
	next := b.list[0]
	b.list = b.list[1:]
	return next, nil
}

func (b *batches) Close() error { return nil }

func (l *lake) append(name, text string) {
	l.Helper()
	t := l.load(name)
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(text))
	l.must(err)
	_, err = write.Append(ctx, t, &batches{[]arrow.RecordBatch{rec}}, l.options)
	l.must(err)
}

// end deletes the rows with these ids.
func (l *lake) end(name string, gone ...int64) {
	l.Helper()
	t := l.load(name)
	s := &plan.Scan{Table: t, Cols: []plan.ScanColumn{
		{Column: plan.Column{ID: 1, Name: "id", Type: plan.Int64}, FieldID: 1},
		{Column: plan.Column{ID: 2, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
		{Column: plan.Column{ID: 3, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField},
	}}
	tasks, err := l.options.Planner.Tasks(ctx, t)
	l.must(err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "op", Type: plan.Int8}, {Name: "_file", Type: plan.String, Nullable: true}, {Name: "_pos", Type: plan.Int64, Nullable: true},
	}, nil))
	for _, tk := range tasks {
		r, err := l.options.Planner.ReadTask(ctx, s, tk)
		l.must(err)
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			ids, files, positions := rec.Column(0).(*array.Int64), rec.Column(1).(*array.String), rec.Column(2).(*array.Int64)
			for i := range ids.Len() {
				if slices.Contains(gone, ids.Value(i)) {
					b.Field(0).(*array.Int8Builder).Append(write.Delete)
					b.Field(1).(*array.StringBuilder).Append(files.Value(i))
					b.Field(2).(*array.Int64Builder).Append(positions.Value(i))
				}
			}
		}
		l.must(r.Close())
	}
	res, err := write.Change(ctx, t, &batches{[]arrow.RecordBatch{b.NewRecordBatch()}}, write.Layout{Command: write.DeleteCommand, Op: 0, File: 1, Position: 2}, l.options)
	l.must(err)
	if res.Deleted != int64(len(gone)) {
		l.Fatalf("%d rows deleted of %d", res.Deleted, len(gone))
	}
}

// check has PyIceberg read every table.
func (l *lake) check() {
	l.Helper()
	args := []string{"pyiceberg_read.py", filepath.Join(l.dir, "catalog.db"), "lake"}
	for name := range l.tables {
		args = append(args, "ns."+name)
	}
	slices.Sort(args[3:])
	cmd := exec.Command(python(l.T), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	body, err := cmd.Output()
	if err != nil {
		text := stderr.String()
		l.Fatalf("%v\n%s", err, text[max(0, len(text)-3000):])
	}
	var got map[string]struct {
		Rows [][]*string `json:"rows"`
		Lost []string    `json:"lost"`
	}
	l.must(json.Unmarshal(body, &got))
	for name, want := range l.tables {
		l.Run(name, func(t *testing.T) {
			var rows [][]string
			for _, r := range got["ns."+name].Rows {
				var row []string
				for _, v := range r {
					if v == nil {
						row = append(row, "NULL")
					} else {
						row = append(row, *v)
					}
				}
				rows = append(rows, row)
			}
			if fmt.Sprint(rows) != fmt.Sprint(want) {
				t.Errorf("PyIceberg reads\n%v\nwant\n%v", rows, want)
			}
			if lost := got["ns."+name].Lost; len(lost) > 0 {
				t.Errorf("filters do not find %v", lost)
			}
		})
	}
}

func col(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

// TestPyIceberg: PyIceberg reads tables of every type and partition transform, after
// appends and deletes of both modes, and its filters find every row.
func TestPyIceberg(t *testing.T) {
	l := newLake(t)
	types := []struct {
		name         string
		typ          iceberg.Type
		values, show []string
		transforms   []iceberg.Transform
	}{
		{"bool", iceberg.PrimitiveTypes.Bool, []string{"true", "false"}, []string{"true", "false"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{"int", iceberg.PrimitiveTypes.Int32, []string{"-2147483640", "-7", "2147483647"}, []string{"-2147483640", "-7", "2147483647"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}, iceberg.TruncateTransform{Width: 10}}},
		{"long", iceberg.PrimitiveTypes.Int64, []string{"-9223372036854775800", "-7", "9223372036854775807"}, []string{"-9223372036854775800", "-7", "9223372036854775807"}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 7}, iceberg.TruncateTransform{Width: 10}}},
		{"double", iceberg.PrimitiveTypes.Float64, []string{"-0.5", "1e100"}, []string{"-0.5", "1e+100"}, nil},
		{"float", iceberg.PrimitiveTypes.Float32, []string{"-0.5", "2.25"}, []string{"-0.5", "2.25"}, nil},
		{"decimal", iceberg.DecimalTypeOf(9, 2), []string{`"-10.65"`, `"9999999.99"`}, []string{"-10.65", "9999999.99"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}, iceberg.TruncateTransform{Width: 50}}},
		{"wide", iceberg.DecimalTypeOf(38, 10), []string{`"-9999999999999999999999999999.9999999999"`, `"0.0000000001"`}, []string{"-9999999999999999999999999999.9999999999", "0.0000000001"}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 7}}},
		{"date", iceberg.PrimitiveTypes.Date, []string{`"0001-01-01"`, `"1969-12-31"`, `"2024-02-29"`}, []string{"0001-01-01", "1969-12-31", "2024-02-29"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}}},
		{"ts", iceberg.PrimitiveTypes.Timestamp, []string{`"1969-12-31 23:59:59.999999"`, `"2024-02-29 13:00:00"`}, []string{"1969-12-31 23:59:59.999999", "2024-02-29 13:00:00"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}, iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}}},
		{"tz", iceberg.PrimitiveTypes.TimestampTz, []string{`"1969-12-31 23:59:59.999999Z"`, `"2024-02-29 13:00:00Z"`}, []string{"1969-12-31 23:59:59.999999", "2024-02-29 13:00:00"}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 7}, iceberg.DayTransform{}, iceberg.HourTransform{}}},
		{"string", iceberg.PrimitiveTypes.String, []string{`"a/b=c d%"`, `"\u00e4\u00f6\u00fc\ud83d\ude00zzzzzzzzzzzzzzzzzzzzz"`}, []string{"a/b=c d%", "äöü😀zzzzzzzzzzzzzzzzzzzzz"}, []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}, iceberg.TruncateTransform{Width: 4}}},
		{"uuid", iceberg.PrimitiveTypes.UUID, []string{`"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`}, []string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, nil},
		{"binary", iceberg.PrimitiveTypes.Binary, []string{`"AP8AAQIDBAUGBwgJCgsMDQ4PEBES"`}, []string{"00ff000102030405060708090a0b0c0d0e0f101112"}, []iceberg.Transform{iceberg.BucketTransform{NumBuckets: 7}, iceberg.TruncateTransform{Width: 3}}},
	}
	for _, ty := range types {
		for i, tr := range append([]iceberg.Transform{nil}, ty.transforms...) {
			name := fmt.Sprintf("%s_%d", ty.name, i)
			var partition []iceberg.PartitionField
			if tr != nil {
				partition = []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: tr}}
			}
			l.create(name, "2", iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", ty.typ)), partition, nil)
			text := ""
			for k, v := range append(slices.Clone(ty.values), "null") {
				text += fmt.Sprintf(`{"id":%d,"v":%s},`, k, v)
				show := "NULL"
				if k < len(ty.show) {
					show = ty.show[k]
				}
				l.tables[name] = append(l.tables[name], []string{fmt.Sprint(k), show})
			}
			l.append(name, "["+text[:len(text)-1]+"]")
		}
	}
	nested := iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64),
		col(2, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{col(5, "a", iceberg.PrimitiveTypes.Int32), col(6, "b", iceberg.PrimitiveTypes.String)}}),
		col(3, "l", &iceberg.ListType{ElementID: 7, Element: iceberg.PrimitiveTypes.Date}),
		col(4, "m", &iceberg.MapType{KeyID: 8, KeyType: iceberg.PrimitiveTypes.String, ValueID: 9, ValueType: iceberg.DecimalTypeOf(9, 2)}))
	l.create("nested", "2", nested, nil, nil)
	l.append("nested", `[{"id":1,"s":{"a":1,"b":"x"},"l":["2024-02-29",null],"m":[{"key":"k","value":"1.50"}]},{"id":2,"s":null,"l":null,"m":null}]`)
	l.tables["nested"] = [][]string{{"1", "{a:1,b:x}", "[2024-02-29,None]", "[[k,1.50]]"}, {"2", "NULL", "NULL", "NULL"}}

	l.deleted()
	l.check()
	l.compare()
}

// deleted makes tables of every version and mode, of which rows are deleted before and
// after the partitioning changes, as they are then and after maintenance.
func (l *lake) deleted() {
	l.Helper()
	for _, version := range []string{"1", "2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			if version == "1" && mode == "merge-on-read" {
				continue
			}
			for kind, maintain := range map[string]func(string){"deletes": func(string) {}, "manifests": l.mergeManifests, "rewritten": l.rewrite} {
				name := kind + "_v" + version + "_" + mode[:1]
				l.deletedFrom(name, version, mode)
				maintain(name)
			}
		}
	}
}

func (l *lake) deletedFrom(name, version, mode string) {
	l.Helper()
	s := iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", iceberg.PrimitiveTypes.String))
	l.create(name, version, s, []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "v", Transform: iceberg.IdentityTransform{}}}, iceberg.Properties{"write.delete.mode": mode})
	l.append(name, `[{"id":1,"v":"a"},{"id":2,"v":"a"},{"id":3,"v":"b"},{"id":4,"v":"b"},{"id":5,"v":"a"}]`)
	l.end(name, 1, 4)
	// The partitioning changes: later deletes are about files of both specs.
	ice, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", name})
	l.must(err)
	tx := ice.NewTransaction()
	l.must(tx.UpdateSpec(true).RemoveField("v").AddField("id", iceberg.BucketTransform{NumBuckets: 2}, "b").Commit())
	_, err = tx.Commit(ctx)
	l.must(err)
	l.append(name, `[{"id":6,"v":"a"}]`)
	l.append(name, `[{"id":7,"v":"c"},{"id":8,"v":"c"}]`)
	l.end(name, 2, 7)
	l.tables[name] = [][]string{{"3", "b"}, {"5", "a"}, {"6", "a"}, {"8", "c"}}
}

func (l *lake) mergeManifests(name string) {
	l.Helper()
	before, added, err := write.RewriteManifests(ctx, l.load(name), l.options)
	l.must(err)
	if before < 2 || added < 1 || added >= before {
		l.Errorf("%s: %d manifests became %d", name, before, added)
	}
}

// rewrite writes every file anew, and leaves nothing of what was before.
func (l *lake) rewrite(name string) {
	l.Helper()
	ids := l.rowIDs(name)
	res, err := write.RewriteDataFiles(ctx, l.load(name), write.RewriteOptions{All: true}, l.options)
	l.must(err)
	expired, err := write.ExpireSnapshots(ctx, l.load(name), write.ExpireOptions{OlderThan: time.Millisecond}, l.options)
	l.must(err)
	orphans, err := write.RemoveOrphans(ctx, l.load(name), write.OrphanOptions{DryRun: true}, l.options)
	l.must(err)
	if res.RemovedFiles < 2 || expired.Snapshots < 4 || expired.Expired.Data < 2 || len(orphans.Orphans) > 0 || fmt.Sprint(l.rowIDs(name)) != fmt.Sprint(ids) {
		l.Errorf("%s: %+v, then %+v, and %d orphans; row ids %v, before %v", name, res, expired, len(orphans.Orphans), l.rowIDs(name), ids)
	}
}

// TestSpark: Spark reads tables with deletes of both modes and versions, sees the same
// row ids, and deletes go on from one engine to the other.
func TestSpark(t *testing.T) {
	l := newLake(t)
	l.deleted()
	args := []string{"spark_read.py", l.dir, filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(python(t)))), "java"), "lake"}
	before := map[string]map[int64]int64{}
	for name := range l.tables {
		args = append(args, "ns."+name)
		before[name] = l.rowIDs(name)
	}
	cmd := exec.Command(python(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	body, err := cmd.Output()
	if err != nil {
		text := stderr.String()
		t.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	var got map[string]struct {
		Rows   [][]string `json:"rows"`
		RowIDs [][]int64  `json:"row_ids"`
	}
	l.must(json.Unmarshal(body, &got))
	for name, want := range l.tables {
		spark := got["ns."+name]
		if fmt.Sprint(spark.Rows) != fmt.Sprint(want) {
			t.Errorf("%s: Spark reads\n%v\nwant\n%v", name, spark.Rows, want)
		}
		if strings.Contains(name, "_v3_") && len(spark.RowIDs) != len(want) {
			t.Errorf("%s: Spark gives %d row ids", name, len(spark.RowIDs))
		}
		for _, r := range spark.RowIDs {
			if id, ok := before[name][r[0]]; !ok || id != r[1] {
				t.Errorf("%s: row %d has the id %d for Spark and %d here", name, r[0], r[1], id)
			}
		}
		// Spark has deleted row 3; here goes another one of the same files.
		after := l.rowIDs(name)
		if _, ok := after[3]; ok || len(after) != len(want)-1 {
			t.Errorf("%s: %d rows after Spark's delete: %v", name, len(after), after)
		}
		l.end(name, 8)
		if left := l.rowIDs(name); len(left) != len(want)-2 {
			t.Errorf("%s: %v", name, left)
		}
	}
}

// rowIDs are the ids of rows by their column id; -1 where there are none.
func (l *lake) rowIDs(name string) map[int64]int64 {
	l.Helper()
	t := l.load(name)
	s := &plan.Scan{Table: t, Cols: []plan.ScanColumn{
		{Column: plan.Column{ID: 1, Name: "id", Type: plan.Int64}, FieldID: 1},
		{Column: plan.Column{ID: 2, Name: "_row_id", Type: plan.Int64}, FieldID: plan.RowIDField},
	}}
	tasks, err := l.options.Planner.Tasks(ctx, t)
	l.must(err)
	out := map[int64]int64{}
	for _, tk := range tasks {
		r, err := l.options.Planner.ReadTask(ctx, s, tk)
		l.must(err)
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			ids, rows := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64)
			for i := range ids.Len() {
				out[ids.Value(i)] = -1
				if rows.IsValid(i) {
					out[ids.Value(i)] = rows.Value(i)
				}
			}
			b.Release()
		}
		l.must(r.Close())
	}
	return out
}

// compare has the engine's executor read every table, as files where it can, and
// compares with what engine/scan reads by itself.
func (l *lake) compare() {
	l.Helper()
	in, err := duck.Open(duck.Config{Roots: []string{l.dir}, MemoryLimit: 1 << 30})
	l.must(err)
	defer func() { l.must(in.Close()) }()
	files, streams := 0, 0
	for name := range l.tables {
		t := l.load(name)
		s := &plan.Scan{Table: t}
		for i, f := range t.Fields {
			if !plan.IsNested(f.Type) {
				s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: plan.ColumnID(i + 1), Name: f.Name, Type: f.Type, Nullable: true}, FieldID: f.ID})
			}
		}
		s.Cols = append(s.Cols,
			plan.ScanColumn{Column: plan.Column{ID: 100, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
			plan.ScanColumn{Column: plan.Column{ID: 101, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField})
		input, err := l.options.Planner.Plan(ctx, s)
		l.must(err)
		files += len(input.Files)
		if input.Stream != nil {
			streams++
		}
		rows, err := in.Run(ctx, s, func(*plan.Scan) (*scan.Input, error) { return input, nil })
		l.must(err)
		got := l.texts(rows)
		l.must(rows.Close())
		var want []string
		tasks, err := l.options.Planner.Tasks(ctx, t)
		l.must(err)
		for _, tk := range tasks {
			r, err := l.options.Planner.ReadTask(ctx, s, tk)
			l.must(err)
			want = append(want, l.texts(r)...)
			l.must(r.Close())
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(got) == 0 || !slices.Equal(got, want) {
			l.Errorf("%s: the executor reads\n%v\nwant\n%v", name, got, want)
		}
	}
	if files == 0 || streams == 0 {
		l.Errorf("%d files and %d streams: the test shows less than it should", files, streams)
	}
}

func (l *lake) texts(r interface {
	Next() (arrow.RecordBatch, error)
},
) []string {
	l.Helper()
	var out []string
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		l.must(err)
		for i := range int(b.NumRows()) {
			row := ""
			for _, c := range b.Columns() {
				row += c.ValueStr(i) + "|"
			}
			out = append(out, row)
		}
		b.Release()
	}
}
