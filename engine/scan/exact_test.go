package scan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/plan"
)

// located adds the columns _file and _pos to a scan.
func located(s *plan.Scan) *plan.Scan {
	s.Cols = append(s.Cols,
		plan.ScanColumn{Column: plan.Column{ID: 1000, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
		plan.ScanColumn{Column: plan.Column{ID: 1001, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField})
	return s
}

// streamed reads a scan's stream; the value of _file is replaced by its number in
// the order of first appearance when sorted.
func (l *lake) streamed(s *plan.Scan) []string {
	l.Helper()
	in := l.plan(s)
	if in.Stream == nil {
		l.Fatal("no stream: the test shows nothing")
	}
	all := make([]int, len(s.Cols))
	for i := range all {
		all[i] = i
	}
	return l.readStream(s, in.Stream, all)
}

// TestPositions: the position of a row is its number in the file, whatever is
// deleted before it, in every form of deletes.
func TestPositions(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			tb := l.create("t", simple(), version, nil, iceberg.Properties{"write.delete.mode": "merge-on-read", "write.parquet.row-group-limit": "40"})
			tb = l.append(tb, liveObjects(0, 200))
			location := ""
			tasks, err := tb.Scan().PlanFiles(ctx)
			l.must(err)
			location = tasks[0].File.FilePath()
			in := l.plan(located(scanOfTable(l.load("t", plan.AsOf{}), "id")))
			if in.Stream != nil || len(in.Files) != 1 || in.Files[0].Location != location ||
				in.Files[0].Columns[1].Virtual != plan.FileField || in.Files[0].Columns[2].Virtual != plan.PositionField {
				t.Fatalf("%+v", in)
			}
			for _, id := range []int64{0, 41, 42, 199} {
				tb, err = tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), id), nil)
				l.must(err)
			}
			var want []string
			for i := range 200 {
				if !slices.Contains([]int{0, 41, 42, 199}, i) {
					want = append(want, fmt.Sprintf("%d|%s|%d", i, location, i))
				}
			}
			l.planner = New(Options{BatchRows: 7})
			l.want(sorted(l.streamed(located(scanOfTable(l.load("t", plan.AsOf{}), "id")))), want...)
		})
	}
}

// TestPositionsWithEqualityDeletes: rows that an equality delete ends are not there,
// also when the compared column was widened since or is not read.
func TestPositionsWithEqualityDeletes(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, nil)
	tb = l.append(tb, `[{"id":1,"name":"a","n":10},{"id":2,"name":"b","n":null},{"id":3,"name":"c","n":10},{"id":4,"name":"d","n":5}]`)
	tx := tb.NewTransaction()
	schema, err := table.SchemaToArrowSchema(iceberg.NewSchema(0, col(3, "n", iceberg.PrimitiveTypes.Int32)), nil, true, false)
	l.must(err)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"n":10},{"n":null}]`))
	l.must(err)
	files, err := tx.WriteEqualityDeletes(ctx, []int{3}, func(yield func(r arrow.RecordBatch, err error) bool) { yield(rec, nil) })
	l.must(err)
	rd := tx.NewRowDelta(nil)
	rd.AddDeletes(files...)
	l.must(rd.Commit(ctx))
	tb, err = tx.Commit(ctx)
	l.must(err)
	check := func() {
		t.Helper()
		var got []string
		for _, r := range l.streamed(located(scanOfTable(l.load("t", plan.AsOf{}), "id"))) {
			p := strings.Split(r, "|")
			got = append(got, p[0]+"@"+p[2])
		}
		l.want(got, "4@3")
	}
	check()
	l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.RenameColumn([]string{"n"}, "m").
			UpdateColumn([]string{"n"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
	})
	check()
}

// TestPositionsOfNested: files whose nested columns changed since have positions, and
// the same values as without.
func TestPositionsOfNested(t *testing.T) {
	l := newLake(t)
	schema := iceberg.NewSchema(0,
		col(1, "id", iceberg.PrimitiveTypes.Int64),
		col(2, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{
			col(5, "a", iceberg.PrimitiveTypes.Int32), col(6, "b", iceberg.PrimitiveTypes.String),
		}}),
		col(3, "l", &iceberg.ListType{ElementID: 7, Element: &iceberg.StructType{FieldList: []iceberg.NestedField{
			col(10, "x", iceberg.PrimitiveTypes.Int32), col(11, "y", iceberg.PrimitiveTypes.Bool),
		}}}),
		col(4, "m", &iceberg.MapType{KeyID: 8, KeyType: iceberg.PrimitiveTypes.String, ValueID: 9, ValueType: iceberg.PrimitiveTypes.Float32}))
	tb := l.create("t", schema, "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, `[{"id":1,"s":{"a":1,"b":"x"},"l":[{"x":1,"y":true},null],"m":[{"key":"k","value":7.5}]},
		{"id":2,"s":null,"l":null,"m":null},{"id":3,"s":{"a":null,"b":null},"l":[],"m":[]}]`)
	widen := func(t iceberg.Type) table.ColumnUpdate {
		return table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: t, Valid: true}}
	}
	tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.RenameColumn([]string{"s", "a"}, "c").UpdateColumn([]string{"s", "a"}, widen(iceberg.PrimitiveTypes.Int64)).
			UpdateColumn([]string{"m", "value"}, widen(iceberg.PrimitiveTypes.Float64)).
			DeleteColumn([]string{"l", "element", "x"})
	})
	l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"s", "a"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	s := scanOfTable(l.load("t", plan.AsOf{}))
	plain := l.read(s)
	l.want(plain, `1|{"a":null,"b":"x","c":1}|[{"y":true},null]|[{"key":"k","value":7.5}]`, `2|(null)|(null)|(null)`, `3|{"a":null,"b":null,"c":null}|[]|[]`)
	var got []string
	for i, r := range l.streamed(located(s)) {
		p := strings.Split(r, "|")
		if p[5] != fmt.Sprint(i) {
			t.Errorf("row %d has position %s", i, p[5])
		}
		got = append(got, strings.Join(p[:4], "|"))
	}
	l.want(sorted(got), plain...)
}

// TestRowLineage: rows have the ids that iceberg-go gives them.
func TestRowLineage(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "3", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, liveObjects(0, 3))
	tb = l.append(tb, liveObjects(10, 13))
	tb, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(11)), nil)
	l.must(err)
	_, rows, err := tb.Scan(table.WithSelectedFields("id"), table.WithRowLineage()).ToArrowRecords(ctx)
	l.must(err)
	var want []string
	for b, err := range rows {
		l.must(err)
		want = append(want, rowsOf(b)...)
	}
	if len(want) != 5 {
		t.Fatalf("%v", want)
	}
	s := scanOfTable(l.load("t", plan.AsOf{}), "id")
	s.Cols = append(s.Cols,
		plan.ScanColumn{Column: plan.Column{ID: 1000, Name: "_row_id", Type: plan.Int64}, FieldID: plan.RowIDField},
		plan.ScanColumn{Column: plan.Column{ID: 1001, Name: "_last", Type: plan.Int64}, FieldID: plan.LastUpdatedField})
	l.want(sorted(l.streamed(s)), sorted(want)...)
}

// TestReservedNames: a file with a column of a name that executors use themselves is
// streamed when positions are wanted.
func TestReservedNames(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", iceberg.NewSchema(0, col(1, "File_Row_Number", iceberg.PrimitiveTypes.Int64)), "2", nil, nil)
	l.append(tb, `[{"File_Row_Number":7}]`)
	s := scanOfTable(l.load("t", plan.AsOf{}))
	if in := l.plan(s); in.Stream != nil {
		t.Error("without positions the file is read directly")
	}
	got := l.streamed(located(s))
	if len(got) != 1 || !strings.HasPrefix(got[0], "7|") || !strings.HasSuffix(got[0], "|0") {
		t.Errorf("%v", got)
	}
}

// TestReadTask reads single files, clean or not, in order.
func TestReadTask(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, liveObjects(0, 30))
	l.append(tb, liveObjects(100, 130))
	pt := l.load("t", plan.AsOf{})
	tasks, err := l.planner.Tasks(ctx, pt)
	l.must(err)
	if len(tasks) != 2 {
		t.Fatalf("%d tasks", len(tasks))
	}
	for _, tk := range tasks {
		r, err := l.planner.ReadTask(ctx, located(scanOfTable(pt, "id")), tk)
		l.must(err)
		at := 0
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			for _, row := range rowsOf(b) {
				p := strings.Split(row, "|")
				if p[1] != tk.File.FilePath() || p[2] != fmt.Sprint(at) {
					t.Errorf("row %d: %s", at, row)
				}
				at++
			}
			b.Release()
		}
		l.must(r.Close())
		if at != 30 {
			t.Errorf("%d rows", at)
		}
		gone, err := l.planner.Deleted(ctx, pt, tk)
		l.must(err)
		if gone.Cardinality() != 0 {
			t.Errorf("%d deleted", gone.Cardinality())
		}
	}
	l.must(os.Remove(localPath(tasks[0].File.FilePath())))
	r, err := l.planner.ReadTask(ctx, located(scanOfTable(pt, "id")), tasks[0])
	if err == nil {
		_, err = r.Next()
		_ = r.Close()
	}
	if err == nil || strings.Contains(err.Error(), ".parquet") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestPercentSigns: a percent sign in a location is itself where such a file is
// there, else it begins an escape.
func TestPercentSigns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/raw%20x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"file://" + dir + "/raw%20x": dir + "/raw%20x",
		"file:" + dir + "/raw%20x":   dir + "/raw%20x",
		"file://" + dir + "/not%20x": dir + "/not x",
		"file://" + dir + "/100%/x":  dir + "/100%/x",
		dir + "/raw%20x":             dir + "/raw%20x",
		"s3://bucket/a%20b":          "",
	} {
		if got := localPath(location); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
	}
}
