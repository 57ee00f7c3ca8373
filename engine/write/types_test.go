package write

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/plan"
)

// everyType are the types of Iceberg with values at their limits: JSON for Arrow, the
// text of engine/scan, and the bounds of the file in hexadecimal.
var everyType = []struct {
	name         string
	typ          iceberg.Type
	values, show []string
	lower, upper string
}{
	{"boolean", iceberg.PrimitiveTypes.Bool, []string{"false", "true"}, nil, "00", "01"},
	{"int", iceberg.PrimitiveTypes.Int32, []string{"-2147483648", "2147483647"}, nil, "00000080", "ffffff7f"},
	{"long", iceberg.PrimitiveTypes.Int64, []string{"-9223372036854775808", "9223372036854775807"}, nil, "0000000000000080", "ffffffffffffff7f"},
	{"float", iceberg.PrimitiveTypes.Float32, []string{"-3.4028235e38", "1.4e-45"}, []string{"-3.4028235e+38", "1e-45"}, "ffff7fff", "01000000"},
	{"double", iceberg.PrimitiveTypes.Float64, []string{"-1.7976931348623157e308", "0"}, []string{"-1.7976931348623157e+308", "0"}, "ffffffffffffefff", "0000000000000000"},
	{"decimal9", iceberg.DecimalTypeOf(9, 2), []string{`"-9999999.99"`, `"1.28"`}, []string{"-9999999.99", "1.28"}, "c4653601", "0080"},
	{"decimal18", iceberg.DecimalTypeOf(18, 0), []string{`"-999999999999999999"`, `"-1"`}, []string{"-999999999999999999", "-1"}, "f21f494c589c0001", "ff"},
	{"decimal38", iceberg.DecimalTypeOf(38, 10), []string{`"-9999999999999999999999999999.9999999999"`, `"0.0000000001"`}, []string{"-9999999999999999999999999999.9999999999", "1e-10"}, "b4c4b357a5793b85f675ddc000000001", "01"},
	{"date", iceberg.PrimitiveTypes.Date, []string{`"0001-01-01"`, `"9999-12-31"`}, []string{"0001-01-01", "9999-12-31"}, "c606f5ff", "a0c02c00"},
	{"time", iceberg.PrimitiveTypes.Time, []string{`"00:00:00.000000"`, `"23:59:59.999999"`}, []string{"00:00:00.000000", "23:59:59.999999"}, "0000000000000000", "ff5fd71d14000000"},
	{"timestamp", iceberg.PrimitiveTypes.Timestamp, []string{`"1969-12-31 23:59:59.999999"`, `"9999-12-31 23:59:59.999999"`}, []string{"1969-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"}, "ffffffffffffffff", ""},
	{"timestamptz", iceberg.PrimitiveTypes.TimestampTz, []string{`"1969-12-31 23:59:59.999999Z"`, `"9999-12-31 23:59:59.999999Z"`}, []string{"1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"}, "ffffffffffffffff", ""},
	{"string", iceberg.PrimitiveTypes.String, []string{`""`, `"\u00e4\ud83d\ude00\u0000z"`}, []string{"", "\u00e4\U0001F600\x00z"}, "", hex.EncodeToString([]byte("\u00e4\U0001F600\x00z"))},
	{"uuid", iceberg.PrimitiveTypes.UUID, []string{`"00000000-0000-0000-0000-000000000000"`, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`}, []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"}, strings.Repeat("00", 16), strings.Repeat("ff", 16)},
	{"fixed", iceberg.FixedTypeOf(3), []string{`"AAAA"`, `"////"`}, []string{"AAAA", "////"}, "000000", "ffffff"},
	{"binary", iceberg.PrimitiveTypes.Binary, []string{`""`, `"AP8="`}, []string{"", "AP8="}, "", "00ff"},
	{"timestamp_ns", iceberg.PrimitiveTypes.TimestampNs, []string{`"1677-09-21 00:12:43.145224193"`, `"2262-04-11 23:47:16.854775807"`}, []string{"1677-09-21T00:12:43.145224193", "2262-04-11T23:47:16.854775807"}, "0100000000000080", "ffffffffffffff7f"},
	{"timestamptz_ns", iceberg.PrimitiveTypes.TimestampTzNs, []string{`"1969-12-31 23:59:59.999999999Z"`, `"1970-01-01 00:00:00.000000001Z"`}, []string{"1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00.000000001Z"}, "ffffffffffffffff", "0100000000000000"},
	{"struct", &iceberg.StructType{FieldList: []iceberg.NestedField{col(10, "a", iceberg.PrimitiveTypes.UUID), {ID: 11, Name: "b", Type: iceberg.PrimitiveTypes.Int32, Required: true}}}, []string{`{"a":"00000000-0000-0000-0000-000000000001","b":5}`, `{"a":null,"b":-1}`}, []string{`{"a":"00000000-0000-0000-0000-000000000001","b":5}`, `{"a":null,"b":-1}`}, "", ""},
	{"list", &iceberg.ListType{ElementID: 10, Element: iceberg.DecimalTypeOf(9, 2)}, []string{`["1.50",null]`, `[]`}, []string{`["1.5",null]`, `[]`}, "", ""},
	{"map", &iceberg.MapType{KeyID: 10, KeyType: iceberg.PrimitiveTypes.String, ValueID: 11, ValueType: &iceberg.ListType{ElementID: 12, Element: iceberg.PrimitiveTypes.Date}}, []string{`[{"key":"k","value":["2024-02-29"]}]`, `[]`}, []string{`[{"key":"k","value":["2024-02-29"]}]`, `[]`}, "", ""},
	{"deep", &iceberg.ListType{ElementID: 10, Element: &iceberg.StructType{FieldList: []iceberg.NestedField{col(11, "m", &iceberg.MapType{KeyID: 12, KeyType: iceberg.PrimitiveTypes.Int64, ValueID: 13, ValueType: iceberg.PrimitiveTypes.Bool})}}}, []string{`[{"m":[{"key":1,"value":true}]},null]`}, []string{`[{"m":[{"key":1,"value":true}]},null]`}, "", ""},
}

// TestTypes writes every type, in one file and over partitions, changes rows beside it
// and reads the same again.
func TestTypes(t *testing.T) {
	for _, ty := range everyType {
		for _, partitioned := range []bool{false, true} {
			t.Run(fmt.Sprint(ty.name, " ", partitioned), func(t *testing.T) {
				l := newLake(t)
				c := creation{schema: iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", ty.typ)), version: "3", props: modesOf("copy-on-write")}
				if partitioned {
					c.partition = []iceberg.PartitionField{{SourceIDs: []int{1}, FieldID: 1000, Name: "p", Transform: iceberg.BucketTransform{NumBuckets: 2}}}
				}
				l.create("t", c)
				show := ty.show
				if show == nil {
					show = ty.values
				}
				var text, want []string
				n := 0
				for range 5 {
					for i, v := range append(slices.Clone(ty.values), "null") {
						shown := "(null)"
						if i < len(show) {
							shown = show[i]
						}
						text = append(text, fmt.Sprintf(`{"id":%d,"v":%s}`, n, v))
						want = append(want, fmt.Sprintf("%d|%s", n, shown))
						n++
					}
				}
				l.append("t", "["+strings.Join(text, ",")+"]")
				l.want(l.read("t"), slices.Clone(want)...)
				if files := l.dataFiles("t"); !partitioned && ty.lower+ty.upper != "" {
					lower, upper := hex.EncodeToString(files[0].LowerBoundValues()[2]), hex.EncodeToString(files[0].UpperBoundValues()[2])
					if ty.upper != "" && upper != ty.upper || lower != ty.lower {
						// -0.0 stands for both zeros below.
						t.Errorf("bounds %s and %s, want %s and %s", lower, upper, ty.lower, ty.upper)
					}
					if files[0].NullValueCounts()[2] != 5 || files[0].ValueCounts()[2] != int64(n) {
						t.Errorf("%d nulls of %d", files[0].NullValueCounts()[2], files[0].ValueCounts()[2])
					}
				}
				// Copy-on-write reads and writes them once more.
				tb := l.load("t")
				at := l.places(tb)
				b := array.NewRecordBuilder(spoiling, changeSchema)
				b.Field(0).AppendNull()
				b.Field(1).(*array.Int64Builder).Append(at[0].pos)
				b.Field(2).AppendNull()
				b.Field(3).(*array.Int8Builder).Append(Delete)
				b.Field(4).AppendNull()
				b.Field(5).(*array.StringBuilder).Append(at[0].file)
				_, err := Change(ctx, tb, &batches{list: []arrow.RecordBatch{b.NewRecordBatch()}}, changeLayout(DeleteCommand), l.options())
				l.must(err)
				l.want(l.read("t"), want[1:]...)
				// iceberg-go and the engine's planner agree on the number of rows.
				ice, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"})
				l.must(err)
				data, err := ice.Scan().ToArrowTable(ctx)
				l.must(err)
				if int(data.NumRows()) != n-1 {
					t.Errorf("iceberg-go reads %d rows of %d", data.NumRows(), n-1)
				}
			})
		}
	}
}

// TestJSON: nested columns can be given as the JSON text that the engine makes of
// them.
func TestJSON(t *testing.T) {
	l := newLake(t)
	schema := iceberg.NewSchema(0, col(1, "v", &iceberg.StructType{FieldList: []iceberg.NestedField{
		col(2, "b", iceberg.PrimitiveTypes.Bool), col(3, "i", iceberg.PrimitiveTypes.Int32), col(4, "f", iceberg.PrimitiveTypes.Float32),
		col(5, "d", iceberg.DecimalTypeOf(9, 2)), col(6, "date", iceberg.PrimitiveTypes.Date), col(7, "time", iceberg.PrimitiveTypes.Time),
		col(8, "ts", iceberg.PrimitiveTypes.Timestamp), col(9, "tz", iceberg.PrimitiveTypes.TimestampTz), col(10, "s", iceberg.PrimitiveTypes.String),
		col(11, "u", iceberg.PrimitiveTypes.UUID), col(12, "fix", iceberg.FixedTypeOf(2)), col(13, "bin", iceberg.PrimitiveTypes.Binary),
		col(14, "ns", iceberg.PrimitiveTypes.TimestampNs), col(15, "l", &iceberg.ListType{ElementID: 16, Element: iceberg.PrimitiveTypes.Int64}),
		col(17, "m", &iceberg.MapType{KeyID: 18, KeyType: iceberg.PrimitiveTypes.Int64, ValueID: 19, ValueType: iceberg.PrimitiveTypes.Float64}),
	}}))
	l.create("t", creation{schema: schema, version: "3"})
	tb := l.load("t")
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append(`{"b":true,"i":-5,"f":0.5,"d":1.50,"date":"2024-02-29","time":"10:11:12.000001","ts":"2024-02-29 10:11:12.000001","tz":"2024-02-29 10:11:12.000001Z",` +
		`"s":"\u00e4","u":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","fix":"00ff","bin":"","ns":"2024-02-29 10:11:12.000000001","l":[1,null],"m":{"2":0.5,"10":null}}`)
	b.Append(`{}`)
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: plan.String, Nullable: true}}, nil), []arrow.Array{b.NewArray()}, 2)
	_, err := Append(ctx, tb, &batches{list: []arrow.RecordBatch{rec}}, l.options())
	l.must(err)
	l.want(l.read("t"),
		`{"b":true,"bin":"","d":"1.5","date":"2024-02-29","f":0.5,"fix":"AP8=","i":-5,"l":[1,null],"m":[{"key":10,"value":null},{"key":2,"value":0.5}],"ns":"2024-02-29T10:11:12.000000001","s":"ä","time":"10:11:12.000001","ts":"2024-02-29T10:11:12.000001","tz":"2024-02-29T10:11:12.000001Z","u":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`,
		`{"b":null,"bin":null,"d":null,"date":null,"f":null,"fix":null,"i":null,"l":null,"m":null,"ns":null,"s":null,"time":null,"ts":null,"tz":null,"u":null}`)
}

// TestEvolution: rows go under the field ids of today, whatever the names were.
func TestEvolution(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		l := newLake(t)
		schema := iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "a", iceberg.PrimitiveTypes.Int32), col(3, "b", iceberg.PrimitiveTypes.String),
			col(4, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{col(5, "x", iceberg.PrimitiveTypes.Int32), col(6, "y", iceberg.PrimitiveTypes.String)}}))
		l.create("t", creation{schema: schema, version: "2", props: modesOf(mode)})
		l.append("t", `[{"id":1,"a":1,"b":"b1","s":{"x":1,"y":"y1"}},{"id":2,"a":2,"b":"b2","s":null},{"id":3,"a":3,"b":"b3","s":{"x":3,"y":"y3"}}]`)
		l.evolve("t", func(u *table.UpdateSchema) *table.UpdateSchema {
			return u.RenameColumn([]string{"a"}, "c").DeleteColumn([]string{"b"}).RenameColumn([]string{"s", "x"}, "z").
				UpdateColumn([]string{"a"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
		})
		l.evolve("t", func(u *table.UpdateSchema) *table.UpdateSchema {
			return u.AddColumn([]string{"a"}, iceberg.PrimitiveTypes.String, "", false, nil).AddColumn([]string{"s", "x"}, iceberg.PrimitiveTypes.Date, "", false, nil)
		})
		l.append("t", `[{"id":4,"c":9007199254740993,"a":"new","s":{"z":4,"y":"y4","x":"2024-01-01"}}]`)
		tb := l.load("t")
		at := l.places(tb)
		b := array.NewRecordBuilder(spoiling, changeSchema)
		for _, id := range []int64{2, 4} {
			b.Field(0).AppendNull()
			b.Field(1).(*array.Int64Builder).Append(at[id].pos)
			b.Field(2).AppendNull()
			b.Field(3).(*array.Int8Builder).Append(Delete)
			b.Field(4).AppendNull()
			b.Field(5).(*array.StringBuilder).Append(at[id].file)
		}
		_, err := Change(ctx, tb, &batches{list: []arrow.RecordBatch{b.NewRecordBatch()}}, changeLayout(DeleteCommand), l.options())
		l.must(err)
		l.append("t", `[{"id":5,"c":5,"a":"a5","s":null}]`)
		l.want(l.read("t"), `1|1|{"x":null,"y":"y1","z":1}|(null)`, `3|3|{"x":null,"y":"y3","z":3}|(null)`, `5|5|(null)|a5`)
	}
}

// TestBounds: text and binary bounds are cut as the properties say, upwards above; a
// value that cannot be cut upwards has no bound, and NaN is in none.
func TestBounds(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{
		schema: iceberg.NewSchema(0, col(1, "s", iceberg.PrimitiveTypes.String), col(2, "whole", iceberg.PrimitiveTypes.String), col(3, "counts", iceberg.PrimitiveTypes.Int64),
			col(4, "none", iceberg.PrimitiveTypes.Int64), col(5, "max", iceberg.PrimitiveTypes.String), col(6, "f", iceberg.PrimitiveTypes.Float64), col(7, "bin", iceberg.PrimitiveTypes.Binary)),
		version: "2",
		props: iceberg.Properties{
			"write.metadata.metrics.default": "truncate(2)", "write.metadata.metrics.column.whole": "full",
			"write.metadata.metrics.column.counts": "counts", "write.metadata.metrics.column.none": "none",
		},
	})
	l.append("t", `[{"s":"abc","whole":"abcdefghijklmnopqrstuvwxyz","counts":1,"none":1,"max":"\udbff\udfff\udbff\udfff\udbff\udfff","f":1.5,"bin":"/////w=="},
		{"s":"xy\ud7ff","whole":"b","counts":null,"none":null,"max":"a","f":-2.5,"bin":"AQID"},{"s":"z\ud7ffa","whole":"b","counts":null,"none":null,"max":"a","f":0,"bin":"AQID"}]`)
	d := l.dataFiles("t")[0]
	check := func(id int, lower, upper string) {
		t.Helper()
		if lo, up := string(d.LowerBoundValues()[id]), string(d.UpperBoundValues()[id]); lo != lower || up != upper {
			t.Errorf("field %d: %q and %q, want %q and %q", id, lo, up, lower, upper)
		}
	}
	check(1, "ab", "z\ue000")
	check(2, "abcdefghijklmnopqrstuvwxyz", "b")
	check(3, "", "")
	check(5, "a", "")
	check(7, "\x01\x02", "")
	if _, ok := d.ValueCounts()[4]; ok || d.NullValueCounts()[3] != 2 || d.ValueCounts()[3] != 3 {
		t.Errorf("counts %v %v", d.ValueCounts(), d.NullValueCounts())
	}
	if d.ColumnSizes()[1] == 0 || len(d.SplitOffsets()) != 1 || d.SplitOffsets()[0] != 4 {
		t.Errorf("sizes %v, offsets %v", d.ColumnSizes(), d.SplitOffsets())
	}
	f := array.NewFloat64Builder(memory.DefaultAllocator)
	f.AppendValues([]float64{nan, 1, nan}, nil)
	c := columnsOf([]iceberg.NestedField{col(1, "f", iceberg.PrimitiveTypes.Float64)}, map[int]mode{1: {counts: true, bounds: true}})
	c[0].add(f.NewArray(), nil)
	m := (&metrics{columns: c}).result()
	if m.nans[1] != 2 || !bytes.Equal(m.lower[1], m.upper[1]) {
		t.Errorf("%+v", m)
	}
}

var nan = func() float64 { z := 0.0; return z / z }()

// TestSorted: with a sort order each file is sorted, and says so.
func TestSorted(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2", sort: []table.SortField{
		{SourceIDs: []int{3}, Transform: iceberg.IdentityTransform{}, Direction: table.SortDESC, NullOrder: table.NullsLast},
		{SourceIDs: []int{2}, Transform: iceberg.TruncateTransform{Width: 2}, Direction: table.SortASC, NullOrder: table.NullsFirst},
	}})
	l.append("t", objects(0, 30), `[{"id":99,"name":null,"n":null}]`, objects(30, 60))
	last, lastName, rows := int32(1<<30), "", 0
	l.each(scanOf(l.load("t"), false), func(b arrow.RecordBatch) {
		n, names := b.Column(2).(*array.Int32), b.Column(1).(*array.String)
		for i := range n.Len() {
			rows++
			if n.IsNull(i) {
				if rows != 61 {
					t.Errorf("NULL in row %d", rows)
				}
				continue
			}
			if n.Value(i) > last || n.Value(i) == last && names.Value(i)[:2] < lastName {
				t.Errorf("row %d: %d %s after %d %s", rows, n.Value(i), names.Value(i), last, lastName)
			}
			last, lastName = n.Value(i), names.Value(i)[:2]
		}
	})
	d := l.dataFiles("t")
	if rows != 61 || len(d) != 1 || d[0].SortOrderID() == nil || *d[0].SortOrderID() != l.load("t").Handle.(*catalog.Handle).Table.SortOrder().OrderID() {
		t.Errorf("%d rows in %d files", rows, len(d))
	}
}

// TestManyPartitions: with more partitions than files may be open, and with little
// memory, every row arrives.
func TestManyPartitions(t *testing.T) {
	for _, memory := range []int64{0, 1} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: "2", partition: []iceberg.PartitionField{{SourceIDs: []int{1}, FieldID: 1000, Name: "p", Transform: iceberg.BucketTransform{NumBuckets: 40}}}})
		tb := l.load("t")
		o := l.options()
		o.OpenFiles, o.MemoryBytes = 4, memory
		res, err := Append(ctx, tb, l.rows(tb, objects(0, 500), objects(500, 1000)), o)
		l.must(err)
		l.want(l.read("t"), rowsText(0, 1000)...)
		if res.Files < 40 {
			t.Errorf("%d files", res.Files)
		}
	}
}

// TestTake: rows of a batch are taken as they are, NULLs and booleans among them.
func TestTake(t *testing.T) {
	b := array.NewRecordBuilder(spoiling, arrow.NewSchema([]arrow.Field{
		{Name: "b", Type: plan.Bool, Nullable: true},
		{Name: "n", Type: plan.Int64, Nullable: true},
		{Name: "s", Type: plan.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(plan.Bool), Nullable: true},
	}, nil))
	for i := range 5000 {
		if i%7 == 0 {
			for _, f := range b.Fields() {
				f.AppendNull()
			}
			continue
		}
		b.Field(0).(*array.BooleanBuilder).Append(i%3 == 0)
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint(i))
		b.Field(3).(*array.ListBuilder).Append(true)
		for k := range i % 4 {
			b.Field(3).(*array.ListBuilder).ValueBuilder().(*array.BooleanBuilder).Append((i+k)%2 == 0)
		}
	}
	whole := b.NewRecordBatch()
	for _, from := range []int64{0, 3, 1001} {
		rec := whole.NewSlice(from, whole.NumRows())
		all := rowsOf(rec)
		var rows []int32
		var want []string
		for i := range int(rec.NumRows()) {
			if (i*i+i/3)%5 < 2 {
				rows = append(rows, int32(i))
				want = append(want, all[i])
			}
		}
		got, err := take(ctx, rec, rows)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rowsOf(got), want) {
			t.Errorf("from %d: other rows", from)
		}
	}
}
