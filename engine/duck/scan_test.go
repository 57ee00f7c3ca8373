package duck

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

var (
	fixed3   = &arrow.FixedSizeBinaryType{ByteWidth: 3}
	person   = arrow.StructOf(arrow.Field{Name: "First", Type: plan.String, Nullable: true}, arrow.Field{Name: "key", Type: plan.Binary, Nullable: true}, arrow.Field{Name: "born", Type: plan.Date, Nullable: true})
	tags     = arrow.ListOf(plan.Timestamp)
	counts   = arrow.MapOf(plan.String, plan.Decimal(5, 2))
	everyCol = []column{
		{"b", plan.Bool, `[true, null]`},
		{"i", plan.Int32, `[-2147483648, null]`},
		{"l", plan.Int64, `[-9223372036854775808, null]`},
		{"f", plan.Float32, `[1.5, null]`},
		{"d", plan.Float64, `[-0.1, null]`},
		{"dec", plan.Decimal(38, 10), `["1234567890123456789012345678.0123456789", null]`},
		{"date", plan.Date, `["1969-12-31", null]`},
		{"time", plan.Time, `["23:59:59.999999", null]`},
		{"ts", plan.Timestamp, `["1969-12-31 23:59:59.999999", null]`},
		{"tz", plan.TimestampTZ, `["2024-02-29 10:11:12.000001Z", null]`},
		{"ns", plan.TimestampNS, `["2024-02-29 10:11:12.123456789", null]`},
		{"s", plan.String, `["héllo\u0000'", null]`},
		{"bin", plan.Binary, `["AP8=", null]`},
		{"fix", fixed3, `["AQID", null]`},
		{"st", person, `[{"First": "ann", "key": "AP8=", "born": "2000-02-29"}, null]`},
		{"li", tags, `[["2024-01-01 00:00:00", null], null]`},
		{"ma", counts, `[[{"key": "a", "value": "1.50"}], null]`},
	}
)

// uuids is not made by array.FromJSON.
func uuids(t *testing.T) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, plan.UUID)
	defer b.Release()
	if err := b.AppendValueFromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8"); err != nil {
		t.Fatal(err)
	}
	b.AppendNull()
	return b.NewArray()
}

func withUUID(t *testing.T, b arrow.RecordBatch) arrow.RecordBatch {
	fields := append(b.Schema().Fields(), arrow.Field{Name: "u", Type: plan.UUID, Nullable: true})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), append(b.Columns(), uuids(t)), b.NumRows())
}

func TestTypes(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	cols := append(append([]column(nil), everyCol...), column{"u", plan.UUID, ""})
	b := withUUID(t, batch(t, everyCol...))
	path := writeFile(t, dir, "types.parquet", b)
	s := scanOf(1, cols...)
	items := []plan.Item{}
	for i, c := range cols {
		e := plan.Expr(ref(s, i))
		if plan.IsNested(c.typ) {
			e = call("to_json", e)
		}
		items = append(items, item(plan.ColumnID(100+i), e))
	}
	n := &plan.Sort{Input: &plan.Project{Input: s, Items: items}, Keys: []plan.SortKey{desc(&plan.Ref{ID: 101, Typ: plan.Int32})}}
	wantRows := []string{
		"true|-2147483648|-9223372036854775808|1.5|-0.1|1234567890123456789012345678.0123456789|1969-12-31|23:59:59.999999|1969-12-31 23:59:59.999999|" +
			"2024-02-29 10:11:12.000001Z|2024-02-29 10:11:12.123456789|héllo\x00'|00ff|010203|" +
			`{"First":"ann","key":"00ff","born":"2000-02-29"}|["2024-01-01 00:00:00.000000",null]|{"a":1.5}|6ba7b810-9dad-11d1-80b4-00c04fd430c8`,
		strings.TrimSuffix(strings.Repeat("NULL|", len(cols)), "|"),
	}
	t.Run("file", func(t *testing.T) {
		want(t, in, n, fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}}), wantRows...)
	})
	t.Run("stream", func(t *testing.T) {
		want(t, in, n, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b}}}), wantRows...)
	})
	t.Run("both", func(t *testing.T) {
		a := &plan.Aggregate{Input: n.Input, Aggs: []plan.AggItem{agg(200, "count")}}
		want(t, in, a, fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}, Stream: &stream{batches: []recordBatch{b}}}), "4")
	})
	t.Run("zoned nanoseconds", func(t *testing.T) {
		c := column{"z", plan.TimestampTZNS, `["2024-02-29 10:11:12.123456789Z"]`}
		b := batch(t, c)
		s := scanOf(1, c)
		want(t, in, s, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b}}}), "2024-02-29 10:11:12.123456789")
		p := writeFile(t, dir, "z.parquet", b)
		_, err := run(t, in, s, fixed(&scan.Input{Files: []scan.File{fileOf(p, c)}}))
		if !fault.Is(err, fault.Unsupported) {
			t.Errorf("a file with timestamptz_ns: %v", err)
		}
	})
	t.Run("the layouts of the result", func(t *testing.T) {
		r, err := in.Run(t.Context(), s, fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		for i, c := range cols {
			want := c.typ
			switch {
			case plan.IsUUID(c.typ):
				want = plan.String
			case c.typ == arrow.DataType(fixed3):
				want = plan.Binary
			case plan.IsNested(c.typ):
				continue
			}
			if have := b.Column(i).DataType(); !arrow.TypeEqual(have, want) {
				t.Errorf("column %s arrives as %s, want %s", c.name, have, want)
			}
			if have := b.Schema().Field(i).Name; have != c.name {
				t.Errorf("column %s is called %q", c.name, have)
			}
		}
	})
}

func TestSchemaEvolution(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	// The table is (id BIGINT, price DECIMAL(12,2), note VARCHAR, region VARCHAR).
	table := []column{{"id", plan.Int64, ""}, {"price", plan.Decimal(12, 2), ""}, {"note", plan.String, ""}, {"region", plan.String, ""}}
	old := batch(t, column{"note", plan.Decimal(5, 2), `["1.25"]`}, column{"price", plan.Int32, `[7]`}) // price was called note; id price
	now := batch(t, column{"region", plan.String, `["us"]`}, column{"note", plan.String, `["n"]`}, column{"price", plan.Decimal(12, 2), `["2.50"]`}, column{"id", plan.Int64, `[8]`})
	files := []scan.File{
		{Path: writeFile(t, dir, "region=xx/old.parquet", old), Columns: []scan.FileColumn{
			{Name: "price", Type: plan.Int32}, {Name: "note", Type: plan.Decimal(5, 2)}, {}, {Default: lit("eu")},
		}},
		fileOf(writeFile(t, dir, "region=yy/now.parquet", now), table...),
	}
	s := scanOf(1, table...)
	n := &plan.Sort{Input: s, Keys: []plan.SortKey{asc(ref(s, 0))}}
	want(t, in, n, fixed(&scan.Input{Files: files}), "7|1.25|NULL|eu", "8|2.50|n|us")
	want(t, in, &plan.Filter{Input: s, Cond: call("eq", ref(s, 3), "eu")}, fixed(&scan.Input{Files: files}), "7|1.25|NULL|eu")
	want(t, in, &plan.Filter{Input: s, Cond: call("gt", ref(s, 0), 7)}, fixed(&scan.Input{Files: files}), "8|2.50|n|us")
}

// Characters of file names that mean something in a pattern, and names of columns
// that mean something in SQL.
func TestStrangeNames(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	b := func(v string) arrow.RecordBatch {
		return batch(t, column{`we"ird; DROP`, plan.String, `["` + v + `"]`}, column{"select", plan.String, `["s"]`})
	}
	cols := []column{{`we"ird; DROP`, plan.String, ""}, {"select", plan.String, ""}}
	s := scanOf(1, cols...)
	writeFile(t, dir, "x1.parquet", b("wrong"))
	writeFile(t, dir, "y.parquet", b("wrong"))
	for _, name := range []string{"x[1].parquet", "*.parquet", "?.parquet", "it's.parquet", "a=1/b%20c.parquet", "x{1,2}.parquet", `x\y.parquet`, "[!a].parquet", "ü ☃.parquet", "**/z.parquet"} {
		path := writeFile(t, dir, name, b("right"))
		want(t, in, s, fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}}), "right|s")
	}
	twins := []column{{"a", plan.String, `["lower"]`}, {"A", plan.String, `["upper"]`}}
	path := writeFile(t, dir, "twins.parquet", batch(t, twins...))
	if _, err := run(t, in, scanOf(1, twins...), fixed(&scan.Input{Files: []scan.File{fileOf(path, twins...)}})); !fault.Is(err, fault.Unsupported) {
		t.Errorf("columns that differ only in case: %v", err)
	}
}

func TestStructs(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	c := column{"st", person, `[{"First": "ann", "key": "AP8=", "born": "2000-02-29"}, {"First": null, "key": null, "born": null}, null]`}
	path := writeFile(t, dir, "s.parquet", batch(t, c))
	inputs := fixed(&scan.Input{Files: []scan.File{fileOf(path, c)}})
	s := scanOf(1, c)
	first, err := plan.NewStructField(ref(s, 0), "First")
	if err != nil {
		t.Fatal(err)
	}
	masked := &plan.Call{Func: mustLookup("struct_set"), Operands: []plan.Expr{ref(s, 0), lit("First"), call("concat", first, "!")}, Typ: person}
	n := &plan.Project{Input: s, Items: []plan.Item{item(10, first), item(11, call("to_json", masked))}}
	want(t, in, n, inputs, `ann|{"First":"ann!","key":"00ff","born":"2000-02-29"}`, `NULL|{"First":null,"key":null,"born":null}`, "NULL|NULL")
	made, err := plan.NewStruct(person, []plan.Expr{lit("x"), lit([]byte{1}), null(plan.Date)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, in, &plan.Project{Input: one, Items: []plan.Item{item(1, call("to_json", made))}}, nil, `{"First":"x","key":"01","born":null}`)
	for _, ty := range []arrow.DataType{tags, counts} {
		e, err := plan.NewEmpty(ty)
		if err != nil {
			t.Fatal(err)
		}
		want(t, in, &plan.Project{Input: one, Items: []plan.Item{item(1, call("to_json", e))}}, nil, map[bool]string{true: "[]", false: "{}"}[ty == arrow.DataType(tags)])
	}
	deep := arrow.ListOf(arrow.StructOf(arrow.Field{Name: "m", Type: arrow.MapOf(plan.String, arrow.ListOf(plan.Binary)), Nullable: true}))
	d := column{"d", deep, `[[{"m": [{"key": "k", "value": ["AQ==", null]}]}]]`}
	p := writeFile(t, dir, "d.parquet", batch(t, d))
	sd := scanOf(1, d)
	want(t, in, &plan.Project{Input: sd, Items: []plan.Item{item(9, call("to_json", ref(sd, 0)))}},
		fixed(&scan.Input{Files: []scan.File{fileOf(p, d)}}), `[{"m":{"k":["01",null]}}]`)
}

func mustLookup(name string) *plan.Function {
	f, ok := plan.Lookup(name)
	if !ok {
		panic(name)
	}
	return f
}
