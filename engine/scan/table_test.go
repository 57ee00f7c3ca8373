package scan

import (
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"go.uber.org/goleak"

	"sqe/fault"
	"sqe/plan"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The pool of database/sql ends with the catalog, a moment later.
		goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

func (l *lake) evolve(t *table.Table, f func(*table.UpdateSchema) *table.UpdateSchema) *table.Table {
	l.Helper()
	tx := t.NewTransaction()
	l.must(f(tx.UpdateSchema(true, true)).Commit())
	t, err := tx.Commit(ctx)
	l.must(err)
	return t
}

func (l *lake) equalityDelete(t *table.Table, ids []int, rows string) *table.Table {
	l.Helper()
	var fields []iceberg.NestedField
	for _, f := range t.Schema().Fields() {
		for _, id := range ids {
			if f.ID == id {
				fields = append(fields, f)
			}
		}
	}
	as, err := table.SchemaToArrowSchema(iceberg.NewSchema(0, fields...), nil, true, false)
	l.must(err)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, as, strings.NewReader(rows))
	l.must(err)
	var seq iter.Seq2[arrow.RecordBatch, error] = func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }
	tx := t.NewTransaction()
	l.must(tx.CommitEqualityDeletes(ctx, ids, seq, nil))
	t, err = tx.Commit(ctx)
	l.must(err)
	return t
}

// TestEqualityDeletes: they hold for older rows alone, also when the key columns
// are not read, were renamed or were dropped, and NULL is a key like any other.
func TestEqualityDeletes(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			tb := l.create("t", simple(), version, nil, nil)
			tb = l.append(tb, `[{"id":1,"name":"a","n":10},{"id":2,"name":"b","n":20},{"id":3,"name":null,"n":30},{"id":4,"name":"d","n":40}]`)
			tb = l.equalityDelete(tb, []int{2}, `[{"name":"b"},{"name":null}]`)
			tb = l.append(tb, `[{"id":5,"name":"b","n":50}]`)
			s := scanOfTable(l.load("t", plan.AsOf{}))
			l.want(l.read(s), "1|a|10", "4|d|40", "5|b|50")
			l.want(l.read(scanOfTable(s.Table, "id")), "1", "4", "5")
			in := l.plan(scanOfTable(s.Table, "n"))
			if len(in.Files) != 1 {
				t.Errorf("%d files to read directly, want the newer one alone", len(in.Files))
			}

			tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"name"}, "label") })
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}), "id", "label")), "1|a", "4|d", "5|b")
			tb = l.equalityDelete(tb, []int{1, 3}, `[{"id":4,"n":40},{"id":1,"n":999}]`)
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}), "id", "label")), "1|a", "5|b")
			tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"n"}) })
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), "1|a", "5|b")

			// A column that no file has, alone.
			l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
				return u.AddColumn([]string{"late"}, iceberg.PrimitiveTypes.Int32, "", false, nil)
			})
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}), "late")), "(null)", "(null)")
		})
	}
}

// TestPositionDeletesAcrossSplits: a file that is planned as several splits is one
// file, and its deletes hold in every part.
func TestPositionDeletesAcrossSplits(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			l := newLake(t)
			tb := l.create("t", simple(), version, nil, iceberg.Properties{
				"write.delete.mode": "merge-on-read", "write.parquet.row-group-limit": "100", "read.split.target-size": "1000",
			})
			tb = l.append(tb, liveObjects(0, 1000))
			tasks, err := tb.Scan().PlanFiles(ctx)
			l.must(err)
			if len(tasks) < 2 {
				t.Fatal("the file was not split: the test shows nothing")
			}
			in := l.plan(scanOfTable(l.load("t", plan.AsOf{})))
			if len(in.Files) != 1 || in.Rows != 1000 {
				t.Errorf("%d files and %d rows, want 1 and 1000", len(in.Files), in.Rows)
			}
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), rowsText(0, 1000)...)
			var gone []int
			for i := 50; i < 1000; i += 100 {
				gone = append(gone, i)
				tb, err = tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(i)), nil)
				l.must(err)
			}
			l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), rowsText(0, 1000, gone...)...)
		})
	}
}

// TestEvolution: columns are found by field id. Clean files and files with deletes
// give the same.
func TestEvolution(t *testing.T) {
	for _, mode := range []string{"clean", "deletes"} {
		t.Run(mode, func(t *testing.T) {
			l := newLake(t)
			schema := iceberg.NewSchema(0,
				col(1, "id", iceberg.PrimitiveTypes.Int32), col(2, "a", iceberg.PrimitiveTypes.String),
				col(3, "b", iceberg.PrimitiveTypes.String), col(4, "f", iceberg.PrimitiveTypes.Float32),
				col(5, "d", iceberg.DecimalTypeOf(5, 2)))
			tb := l.create("t", schema, "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
			tb = l.append(tb, `[{"id":2147483647,"a":"a1","b":"b1","f":1.5,"d":"123.45"},{"id":0,"a":"gone","b":"gone","f":0,"d":"0.00"}]`)
			if mode == "deletes" {
				var err error
				tb, err = tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int32(0)), nil)
				l.must(err)
			}
			first := tb.CurrentSnapshot().SnapshotID
			tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
				return u.UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}}).
					UpdateColumn([]string{"f"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Float64, Valid: true}}).
					UpdateColumn([]string{"d"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.DecimalTypeOf(12, 2), Valid: true}}).
					RenameColumn([]string{"a"}, "x").DeleteColumn([]string{"b"})
			})
			// The names a and b come back for other columns, swapped.
			tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"x"}, "b") })
			tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
				return u.AddColumn([]string{"a"}, iceberg.PrimitiveTypes.String, "", false, nil)
			})
			l.append(tb, `[{"id":9007199254740993,"b":"b2","f":1e300,"d":"1234567890.12","a":"a2"}]`)
			gone := "0|gone|0|0|(null)"
			want := []string{"2147483647|a1|1.5|123.45|(null)", "9007199254740993|b2|1e+300|1234567890.12|a2"}
			if mode == "clean" {
				want = append(want, gone)
			}
			s := scanOfTable(l.load("t", plan.AsOf{}))
			l.want(l.read(s), want...)
			if in := l.plan(s); mode == "clean" && (in.Stream != nil || in.Files[0].Columns[0].Type.ID() == in.Files[1].Columns[0].Type.ID()) {
				t.Errorf("stream %v: want both files, of different types", in.Stream != nil)
			}
			// The old snapshot has the old names and types.
			old := l.load("t", plan.AsOf{Snapshot: first})
			want = []string{"2147483647|a1|b1|1.5|123.45"}
			if mode == "clean" {
				want = append(want, "0|gone|gone|0|0")
			}
			l.want(l.read(scanOfTable(old)), want...)
			if got := fmt.Sprint(old.Formerly[2]); got != "[x b]" {
				t.Errorf("other names of field 2: %s", got)
			}
		})
	}
}

// TestNested: nested columns are read directly when their fields are those of the
// table, else by field id in the stream.
func TestNested(t *testing.T) {
	l := newLake(t)
	schema := iceberg.NewSchema(0,
		col(1, "id", iceberg.PrimitiveTypes.Int64),
		col(2, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{
			col(5, "a", iceberg.PrimitiveTypes.Int32), col(6, "b", iceberg.PrimitiveTypes.String),
		}}),
		col(3, "l", &iceberg.ListType{ElementID: 7, Element: iceberg.PrimitiveTypes.String}),
		col(4, "m", &iceberg.MapType{KeyID: 8, KeyType: iceberg.PrimitiveTypes.String, ValueID: 9, ValueType: iceberg.PrimitiveTypes.Int64}))
	tb := l.create("t", schema, "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb = l.append(tb, `[{"id":1,"s":{"a":1,"b":"x"},"l":["p",null],"m":[{"key":"k","value":7}]},
		{"id":2,"s":null,"l":null,"m":null},{"id":3,"s":{"a":null,"b":null},"l":[],"m":[]}]`)
	s := scanOfTable(l.load("t", plan.AsOf{}))
	if in := l.plan(s); len(in.Files) != 1 || in.Stream != nil {
		t.Fatalf("%d files, stream %v", len(in.Files), in.Stream != nil)
	}
	all := []string{`1|{"a":1,"b":"x"}|["p",null]|[{"key":"k","value":7}]`, `2|(null)|(null)|(null)`, `3|{"a":null,"b":null}|[]|[]`}
	l.want(l.read(s), all...)

	tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.RenameColumn([]string{"s", "a"}, "c")
	})
	tb = l.evolve(tb, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"s", "a"}, iceberg.PrimitiveTypes.String, "", false, nil).
			UpdateColumn([]string{"s", "c"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
	})
	l.append(tb, `[{"id":4,"s":{"c":4,"b":"y","a":"new"},"l":["q"],"m":[]}]`)
	s = scanOfTable(l.load("t", plan.AsOf{}))
	if in := l.plan(s); len(in.Files) != 1 || in.Stream == nil {
		t.Errorf("%d files, stream %v: the older file has other fields inside s", len(in.Files), in.Stream != nil)
	}
	l.want(l.read(scanOfTable(s.Table, "id", "s")),
		`1|{"a":null,"b":"x","c":1}`, `2|(null)`, `3|{"a":null,"b":null,"c":null}`, `4|{"a":"new","b":"y","c":4}`)
	if in := l.plan(scanOfTable(s.Table, "id", "l", "m")); in.Stream != nil {
		t.Error("columns without a change inside are read directly")
	}
}

// TestPrimitives: every type at its limits, in clean files and beside deletes.
func TestPrimitives(t *testing.T) {
	fields := []struct {
		name   string
		typ    iceberg.Type
		values []string // JSON; null is added
		show   []string
	}{
		{"boolean", iceberg.PrimitiveTypes.Bool, []string{"false", "true"}, nil},
		{"int", iceberg.PrimitiveTypes.Int32, []string{"-2147483648", "2147483647"}, nil},
		{"long", iceberg.PrimitiveTypes.Int64, []string{"-9223372036854775808", "9223372036854775807"}, nil},
		{"float", iceberg.PrimitiveTypes.Float32, []string{"-3.4028235e38", "1.4e-45"}, []string{"-3.4028235e+38", "1e-45"}},
		{"double", iceberg.PrimitiveTypes.Float64, []string{"-1.7976931348623157e308", "5e-324"}, []string{"-1.7976931348623157e+308", "5e-324"}},
		{"decimal9", iceberg.DecimalTypeOf(9, 2), []string{`"-9999999.99"`, `"9999999.99"`}, []string{"-9999999.99", "9999999.99"}},
		{"decimal18", iceberg.DecimalTypeOf(18, 0), []string{`"-999999999999999999"`, `"999999999999999999"`}, []string{"-999999999999999999", "999999999999999999"}},
		{"decimal38", iceberg.DecimalTypeOf(38, 10), []string{`"-9999999999999999999999999999.9999999999"`, `"0.0000000001"`}, []string{"-9999999999999999999999999999.9999999999", "1e-10"}},
		{"date", iceberg.PrimitiveTypes.Date, []string{`"0001-01-01"`, `"9999-12-31"`}, []string{"0001-01-01", "9999-12-31"}},
		{"time", iceberg.PrimitiveTypes.Time, []string{`"00:00:00.000000"`, `"23:59:59.999999"`}, []string{"00:00:00.000000", "23:59:59.999999"}},
		{"timestamp", iceberg.PrimitiveTypes.Timestamp, []string{`"0001-01-01 00:00:00"`, `"9999-12-31 23:59:59.999999"`}, []string{"0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"}},
		{"timestamptz", iceberg.PrimitiveTypes.TimestampTz, []string{`"1969-12-31 23:59:59.999999Z"`, `"9999-12-31 23:59:59.999999Z"`}, []string{"1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"}},
		{"string", iceberg.PrimitiveTypes.String, []string{`""`, `"\u00e4\ud83d\ude00\u0000z"`}, []string{"", "\u00e4\U0001F600\x00z"}},
		{"uuid", iceberg.PrimitiveTypes.UUID, []string{`"00000000-0000-0000-0000-000000000000"`, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`}, []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
		{"fixed", iceberg.FixedTypeOf(3), []string{`"AAAA"`, `"////"`}, []string{"AAAA", "////"}},
		{"binary", iceberg.PrimitiveTypes.Binary, []string{`""`, `"AP8="`}, []string{"", "AP8="}},
		{"timestamp_ns", iceberg.PrimitiveTypes.TimestampNs, []string{`"1677-09-21 00:12:43.145224193"`, `"2262-04-11 23:47:16.854775807"`}, []string{"1677-09-21T00:12:43.145224193", "2262-04-11T23:47:16.854775807"}},
		{"timestamptz_ns", iceberg.PrimitiveTypes.TimestampTzNs, []string{`"1969-12-31 23:59:59.999999999Z"`, `"1970-01-01 00:00:00.000000001Z"`}, []string{"1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00.000000001Z"}},
	}
	for _, f := range fields {
		t.Run(f.name, func(t *testing.T) {
			l := newLake(t)
			schema := iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", f.typ))
			tb := l.create("t", schema, "3", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
			var rows, want []string
			show := f.show
			if show == nil {
				show = f.values
			}
			for i, v := range append(f.values, "null") {
				rows = append(rows, fmt.Sprintf(`{"id":%d,"v":%s}`, i, v))
				if v == "null" {
					want = append(want, fmt.Sprintf("%d|(null)", i))
				} else {
					want = append(want, fmt.Sprintf("%d|%s", i, show[i]))
				}
			}
			rows = append(rows, `{"id":99,"v":null}`)
			tb = l.append(tb, "["+strings.Join(rows, ",")+"]")
			s := scanOfTable(l.load("t", plan.AsOf{}))
			in := l.plan(s)
			if direct := len(in.Files) == 1; direct == isZonedNanos(s.Cols[1].Type) {
				t.Errorf("%+v: read by the executor %v", s.Cols[1].Type, direct)
			}
			l.want(l.read(s), append(want[:len(want):len(want)], "99|(null)")...)
			_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(99)), nil)
			l.must(err)
			s = scanOfTable(l.load("t", plan.AsOf{}))
			if in := l.plan(s); in.Stream == nil {
				t.Fatal("no stream: the test shows nothing")
			}
			l.want(l.read(s), want...)
		})
	}
}

// TestTimeTravel selects by id, by time, by branch and by tag.
func TestTimeTravel(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, nil)
	empty := l.load("t", plan.AsOf{})
	l.want(l.read(scanOfTable(empty)))
	tb = l.append(tb, liveObjects(0, 1))
	first := *tb.CurrentSnapshot()
	time.Sleep(5 * time.Millisecond)
	tb = l.append(tb, liveObjects(1, 2))
	tx := tb.NewTransactionOnBranch("dev")
	l.must(tx.AppendTable(ctx, l.rows(tb.Schema(), liveObjects(7, 8)), 10, nil))
	_, err := tx.Commit(ctx)
	l.must(err)
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), rowsText(0, 2)...)
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{Snapshot: first.SnapshotID}))), rowsText(0, 1)...)
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{Time: time.UnixMilli(first.TimestampMs)}))), rowsText(0, 1)...)
	l.want(l.read(scanOfTable(l.load("t", plan.AsOf{Ref: "main"}))), rowsText(0, 2)...)
	dev := l.read(scanOfTable(l.load("t", plan.AsOf{Ref: "dev"})))
	if len(dev) == 0 || dev[len(dev)-1] != "7|n7|70" {
		t.Errorf("branch dev: %v", dev)
	}
	name := plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: "t"}
	for _, at := range []plan.AsOf{{Snapshot: 1}, {Ref: "none"}, {Time: time.UnixMilli(first.TimestampMs - 1)}} {
		if _, err := l.catalog.Table(ctx, name, at, ""); !fault.Is(err, fault.BadStatement) {
			t.Errorf("%+v: %v", at, err)
		}
	}
}

// TestNewCommitIsSeen: nothing that is cached hides a commit.
func TestNewCommitIsSeen(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "2", nil, nil)
	for i := range 3 {
		tb = l.append(tb, liveObjects(i, i+1))
		l.want(l.read(scanOfTable(l.load("t", plan.AsOf{}))), rowsText(0, i+1)...)
	}
}

// TestBroken: a data file that is missing or cut is an error that names the table
// and no path, never fewer rows.
func TestBroken(t *testing.T) {
	for _, how := range []string{"missing", "cut", "empty"} {
		for _, deletes := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " deletes=", deletes), func(t *testing.T) {
				l := newLake(t)
				tb := l.create("t", simple(), "2", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
				tb = l.append(tb, liveObjects(0, 100))
				tasks, err := tb.Scan().PlanFiles(ctx)
				l.must(err)
				path := localPath(tasks[0].File.FilePath())
				if deletes {
					_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(3)), nil)
					l.must(err)
				}
				body, err := os.ReadFile(path)
				l.must(err)
				switch how {
				case "missing":
					l.must(os.Remove(path))
				case "cut":
					l.must(os.WriteFile(path, body[:len(body)/2], 0o600))
				case "empty":
					l.must(os.WriteFile(path, nil, 0o600))
				}
				s := scanOfTable(l.load("t", plan.AsOf{}))
				_, err = l.planner.Plan(ctx, s)
				if !fault.Is(err, fault.Corrupt) {
					t.Fatalf("got %v, want a fault", err)
				}
				if strings.Contains(err.Error(), "/") || strings.Contains(err.Error(), ".parquet") || !strings.Contains(err.Error(), "lake.ns.t") {
					t.Errorf("text %q", err)
				}
			})
		}
	}
}

// TestClose: a reader that is left early leaves nothing running.
func TestClose(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "3", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	for i := range 4 {
		tb = l.append(tb, liveObjects(i*100, i*100+100))
	}
	_, err := tb.Delete(ctx, iceberg.LessThan(iceberg.Reference("n"), int32(100000)), nil)
	l.must(err)
	_ = tb
	l.planner = New(Options{BatchRows: 7})
	tb2 := l.create("u", simple(), "3", nil, iceberg.Properties{"write.delete.mode": "merge-on-read"})
	tb2 = l.append(tb2, liveObjects(0, 1000))
	_, err = tb2.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
	l.must(err)
	s := scanOfTable(l.load("u", plan.AsOf{}))
	in := l.plan(s)
	r, err := in.Stream.Open(ctx, []int{0})
	l.must(err)
	b, err := r.Next()
	l.must(err)
	if b.NumRows() > 7 {
		t.Errorf("a batch of %d rows", b.NumRows())
	}
	b.Release()
	l.must(r.Close())
	if _, err := r.Next(); err == nil {
		t.Error("a closed reader still reads")
	}
}
