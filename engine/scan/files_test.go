package scan

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// plainFile writes a Parquet file without field ids.
func (l *lake) plainFile(schema *arrow.Schema, rows string) string {
	l.Helper()
	data, err := array.TableFromJSON(memory.DefaultAllocator, schema, []string{rows})
	l.must(err)
	defer data.Release()
	path := filepath.Join(l.TempDir(), "plain.parquet")
	f, err := os.Create(path)
	l.must(err)
	l.must(pqarrow.WriteTable(data, f, 1024, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps()))
	return path
}

func (l *lake) addFile(t *table.Table, path string) *table.Table {
	l.Helper()
	tx := t.NewTransaction()
	l.must(tx.AddFiles(ctx, []string{path}, nil, false))
	t, err := tx.Commit(ctx)
	l.must(err)
	return t
}

var idAndName = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// TestNameMapping: files without field ids are read by the table's name mapping,
// and refused without one.
func TestNameMapping(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.addFile(tb, l.plainFile(idAndName, `[{"id":1,"name":"a"},{"id":2,"name":"b"}]`))
	s := scanOfTable(l.load("t", plan.AsOf{}))
	if s.Table.Properties[nameMappingProperty] == "" {
		t.Fatal("the table has no name mapping: the test shows nothing")
	}
	l.want(l.read(s), "1|a|(null)", "2|b|(null)")
	if in := l.plan(s); len(in.Files) != 1 {
		t.Error("the file is not read directly")
	}
	// After a rename the mapping still knows the old name.
	tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"name"}, "label") })
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}), "id", "label")), "1|a", "2|b")
	tb, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil)
	l.must(err)
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}), "id", "label")), "1|a")

	tx := tb.NewTransaction()
	l.must(tx.RemoveProperties([]string{nameMappingProperty}))
	_, err = tx.Commit(ctx)
	l.must(err)
	if _, err := l.planner.Plan(ctx, scanOfTable(l.load("t", plan.AsOf{}))); !fault.Is(err, fault.Corrupt) {
		t.Errorf("files without field ids and without a mapping: %v", err)
	}
}

// TestPartitionColumnNotInFile: the value of an identity partition stands for a
// column that the file does not have, in clean files and beside deletes.
func TestPartitionColumnNotInFile(t *testing.T) {
	l := newLake(t)
	spec := []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "name", Transform: iceberg.IdentityTransform{}}}
	tb := l.create("t", simple(), "2", spec, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, `[{"id":1,"name":"a","n":1},{"id":2,"name":"a","n":2},{"id":3,"name":"b","n":3}]`)
	// Take the column out of the files, as they look after a migration from Hive.
	tasks, err := tb.Scan().PlanFiles(ctx)
	l.must(err)
	ids := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"1"})},
	}, nil)
	for _, task := range tasks {
		rows := `[{"id":1},{"id":2}]`
		if task.File.Count() == 1 {
			rows = `[{"id":3}]`
		}
		body, err := os.ReadFile(l.plainFile(ids, rows))
		l.must(err)
		l.must(os.WriteFile(localPath(task.File.FilePath()), body, 0o600))
	}
	s := scanOfTable(l.load("t", plan.AsOf{}))
	l.want(l.read(s), "1|a|(null)", "2|a|(null)", "3|b|(null)")
	if in := l.plan(s); len(in.Files) != 2 {
		t.Error("the files are not read directly")
	}
	in := l.plan(s)
	st := &taskStream{planner: l.planner, handle: l.handle(s.Table), table: s.Table, cols: s.Cols}
	snap, err := l.planner.snapshot(ctx, s.Table, st.handle)
	l.must(err)
	layouts, err := l.planner.layoutsOf(ctx, s.Table, st.handle, snap.files)
	l.must(err)
	for i, f := range snap.files {
		tk := f.task
		tk.Length = int64(fileSize(t, f.path))
		st.tasks = append(st.tasks, task{FileScanTask: tk, constants: f.constants(s, st.handle, layouts[i]), layout: layouts[i]})
	}
	l.want(sorted(l.readStream(s, st, []int{1, 0})), "a|1", "a|2", "b|3")
	l.want(sorted(l.readStream(s, st, []int{1})), "a", "a", "b")
	if in.Rows != 3 {
		t.Errorf("%d rows", in.Rows)
	}
}

func fileSize(t *testing.T, path string) int {
	t.Helper()
	i, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(i.Size())
}

// TestInitialDefaults: a column with a default has it in older files.
func TestInitialDefaults(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64)), "3", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, `[{"id":1},{"id":2}]`)
	tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"s"}, iceberg.PrimitiveTypes.String, "", false, iceberg.NewLiteral("def")).
			AddColumn([]string{"n"}, iceberg.PrimitiveTypes.Int32, "", false, iceberg.NewLiteral(int32(7))).
			AddColumn([]string{"f"}, iceberg.PrimitiveTypes.Float64, "", false, iceberg.NewLiteral(1.5)).
			AddColumn([]string{"b"}, iceberg.PrimitiveTypes.Bool, "", false, iceberg.NewLiteral(true)).
			AddColumn([]string{"d"}, iceberg.PrimitiveTypes.Date, "", false, iceberg.NewLiteral(iceberg.Date(19000)))
	})
	tb = l.append(tb, `[{"id":3,"s":"own","n":1,"f":2.5,"b":false,"d":"2000-01-01"},{"id":4}]`)
	old := "def|7|1.5|true|2022-01-08"
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), "1|"+old, "2|"+old, "3|own|1|2.5|false|2000-01-01", "4|(null)|(null)|(null)|(null)|(null)")
	_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil)
	l.must(err)
	s := scanOfTable(l.load("t", plan.AsOf{}))
	if l.plan(s).Stream == nil {
		t.Fatal("no stream: the test shows nothing")
	}
	l.want(l.read(s), "1|"+old, "3|own|1|2.5|false|2000-01-01", "4|(null)|(null)|(null)|(null)|(null)")
}

func TestDefaultOf(t *testing.T) {
	for _, c := range []struct {
		in   any
		typ  arrow.DataType
		want string // "" is refused
	}{
		{float64(5), plan.Int64, "5"},
		{float64(1 << 53), plan.Int64, ""}, // digits may be lost
		{"14.20", plan.Decimal(9, 2), "14.2"},
		{"2017-11-16", plan.Date, "2017-11-16"},
		{"22:31:08.123456", plan.Time, "22:31:08.123456"},
		{"2017-11-16T22:31:08.123456", plan.Timestamp, "2017-11-16T22:31:08.123456"},
		{"2017-11-16T22:31:08+00:00", plan.TimestampTZ, "2017-11-16T22:31:08Z"},
		{"2017-11-16T22:31:08.123456789", plan.TimestampNS, "2017-11-16T22:31:08.123456789"},
		{"f79c3e09-677c-4bbd-a479-3f349cb785e7", plan.UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
		{"00ff", plan.Binary, "AP8="},
		{map[string]any{}, plan.Binary, ""},
	} {
		l, ok := defaultOf(c.in, c.typ)
		if ok != (c.want != "") {
			t.Errorf("%v as %s: %v", c.in, c.typ, ok)
			continue
		}
		if !ok {
			continue
		}
		a, err := constant(l, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.ValueStr(1); got != c.want || a.Len() != 2 {
			t.Errorf("%v as %s: %s", c.in, c.typ, got)
		}
	}
}

// TestMetadataTables: every column of every metadata table can be read.
func TestMetadataTables(t *testing.T) {
	l := newLake(t)
	spec := []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}}}
	tb := l.create("t", simple(), "2", spec, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, `[{"id":1,"name":"a","n":1},{"id":2,"name":"a","n":2},{"id":3,"name":"b","n":3}]`)
	first := tb.CurrentSnapshot().SnapshotID
	_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil)
	l.must(err)
	for kind, want := range map[string]struct{ now, then int }{
		"snapshots": {2, 2}, "history": {2, 2}, "refs": {1, 1}, "manifests": {2, 1}, "files": {3, 2}, "partitions": {2, 2},
	} {
		for at, rows := range map[int64]int{0: want.now, first: want.then} {
			mt, err := l.catalog.Table(ctx, l.load("t", plan.AsOf{}).Name, plan.AsOf{Snapshot: at}, kind)
			l.must(err)
			got := l.read(scanOfTable(mt))
			if len(got) != rows {
				t.Errorf("%s at %d: %d rows: %v", kind, at, len(got), got)
			}
			if kind == "partitions" && at == 0 && !strings.HasPrefix(got[0], "p=a|0|2|1|") {
				t.Errorf("partitions: %v", got)
			}
			if kind == "files" && at == first && !strings.Contains(strings.Join(got, "\n"), `{"key":"id","value":"3"}`) {
				t.Errorf("files show no limits: %v", got)
			}
		}
	}
}

// TestDamagedPages: a file with deletes whose pages are damaged is an error, and
// never ends the process.
func TestDamagedPages(t *testing.T) {
	for _, kind := range []string{"position", "equality"} {
		t.Run(kind, func(t *testing.T) { damagedPages(t, kind) })
	}
}

func damagedPages(t *testing.T, kind string) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, liveObjects(0, 2000))
	tasks, err := tb.Scan().PlanFiles(ctx)
	l.must(err)
	path := localPath(tasks[0].File.FilePath())
	if kind == "equality" {
		l.equalityDelete(tb, []int{1}, `[{"id":3}]`)
	} else {
		_, err = tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(3)), nil)
		l.must(err)
	}
	s := scanOfTable(l.load("t", plan.AsOf{}))
	good, err := os.ReadFile(path)
	l.must(err)
	r := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for range 150 {
		bad := slices.Clone(good)
		for range 1 + r.IntN(20) {
			bad[4+r.IntN(len(bad)-8)] = byte(r.Uint32())
		}
		l.must(os.WriteFile(path, bad, 0o600))
		l.planner = New(Options{})
		in, err := l.planner.Plan(ctx, s)
		if err == nil && in.Stream != nil {
			err = drain(in.Stream)
		}
		if err != nil {
			failed++
			if !fault.Is(err, fault.Corrupt) {
				t.Fatalf("%v", err)
			}
		}
	}
	if failed < 50 {
		t.Errorf("only %d of 150 damaged files were noticed", failed)
	}
}

func drain(st Stream) error {
	r, err := st.Open(ctx, []int{0, 1, 2})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}
