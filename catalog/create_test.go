package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

func fld(name string, t arrow.DataType) plan.Field { return plan.Field{Name: name, Type: t} }

func req(f plan.Field) plan.Field {
	f.Required = true
	return f
}

// lake is a catalog with an empty namespace ns.
func lake(t testing.TB) (*SQL, string) {
	t.Helper()
	dir := t.TempDir()
	c := open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"ns"}, nil, false))
	return c, dir
}

var humans = TableDefinition{Fields: []plan.Field{req(fld("id", plan.Int64)), fld("ssn", plan.String), fld("born", plan.Timestamp)}}

func made(t testing.TB, c *SQL, n string, d TableDefinition) *plan.Table {
	t.Helper()
	out, created, err := c.CreateTable(ctx, name("ns", n), d, CreateOptions{})
	must(t, err)
	if !created {
		t.Fatal("not created")
	}
	return out
}

func loaded(t testing.TB, c *SQL, n string) *plan.Table {
	t.Helper()
	out, err := c.Table(ctx, name("ns", n), plan.AsOf{}, "")
	must(t, err)
	return out
}

// rows appends rows, a JSON list of objects, through a transaction.
func rows(text string) TableChange {
	return func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		schema, err := table.SchemaToArrowSchema(t.Handle.(*Handle).Schema, nil, false, false)
		if err != nil {
			return err
		}
		data, err := array.TableFromJSON(memory.DefaultAllocator, schema, []string{text})
		if err != nil {
			return err
		}
		defer data.Release()
		return tx.AppendTable(ctx, data, data.NumRows(), nil)
	}
}

func appended(t testing.TB, c *SQL, n, text string) *plan.Table {
	t.Helper()
	out, err := c.Commit(ctx, name("ns", n), rows(text))
	must(t, err)
	return out
}

// scanned counts the rows of a table as iceberg-go reads it.
func scanned(t testing.TB, tb *plan.Table) int64 {
	t.Helper()
	_, records, err := tb.Handle.(*Handle).Table.Scan().ToArrowRecords(ctx)
	must(t, err)
	n := int64(0)
	for r, err := range records {
		must(t, err)
		n += r.NumRows()
		r.Release()
	}
	return n
}

func wants(t testing.TB, what string, err error, kind fault.Kind, text string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v (%v), want %v with %q", what, err, fault.KindOf(err), kind, text)
	}
}

func files(t testing.TB, dir string) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(dir, "ware house%41"), func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}

func every(version int) TableDefinition {
	d := TableDefinition{FormatVersion: version, Comment: "all of them", Properties: map[string]string{"k": "v"}, Fields: []plan.Field{
		req(plan.Field{Name: "b", Type: plan.Bool, Doc: "truth"}), fld("i", plan.Int32), fld("l", plan.Int64), fld("f", plan.Float32), fld("d", plan.Float64),
		fld("dec", plan.Decimal(38, 10)), fld("day", plan.Date), fld("clock", plan.Time), fld("ts", plan.Timestamp), fld("tz", plan.TimestampTZ),
		fld("s", plan.String), fld("u", plan.UUID), fld("fix", &arrow.FixedSizeBinaryType{ByteWidth: 5}), fld("bin", plan.Binary),
		{Name: "st", Type: arrow.StructOf(), Children: []plan.Field{req(plan.Field{Name: "a", Type: plan.Int32, Doc: "inner"}), fld("b", plan.UUID)}},
		fld("li", arrow.ListOfField(arrow.Field{Name: "element", Type: plan.Decimal(9, 2)})),
		fld("m", arrow.MapOf(plan.String, arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: plan.Date, Nullable: true})))),
	}}
	if version == 3 {
		d.Fields = append(d.Fields, fld("ns", plan.TimestampNS), fld("nstz", plan.TimestampTZNS))
	}
	return d
}

// withoutIDs is what of a field a definition says.
func withoutIDs(fields []plan.Field) []plan.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].ID = 0
		out[i].Children = withoutIDs(out[i].Children)
		out[i].Type = nil
	}
	return out
}

// TestEveryType: a table has the columns of its definition, as SQE and as iceberg-go
// read it, and its definition gives the same table again.
func TestEveryType(t *testing.T) {
	for _, version := range []int{2, 3} {
		c, _ := lake(t)
		got := made(t, c, "t", every(version))
		again := loaded(t, c, "t")
		if !reflect.DeepEqual(got.Fields, again.Fields) || !reflect.DeepEqual(got.Properties, again.Properties) || got.UUID != again.UUID || got.Version != again.Version {
			t.Errorf("version %d: what is returned and what is read differ", version)
		}
		ice, err := c.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"})
		must(t, err)
		var types []string
		for _, f := range ice.Schema().Fields() {
			types = append(types, fmt.Sprintf("%d %s", f.ID, f.Type))
		}
		want := `1 boolean|2 int|3 long|4 float|5 double|6 decimal(38, 10)|7 date|8 time|9 timestamp|10 timestamptz|11 string|12 uuid|13 fixed[5]|14 binary|`
		if text := strings.Join(types, "|"); !strings.HasPrefix(text, want) || ice.Metadata().Version() != version {
			t.Errorf("version %d: %s (version %d)", version, text, ice.Metadata().Version())
		}
		st, _ := again.FieldNamed("st")
		if len(st.Children) != 2 || !st.Children[0].Required || st.Children[0].Doc != "inner" || st.Children[1].ID != st.Children[0].ID+1 {
			t.Errorf("%+v", st)
		}
		if again.Properties["comment"] != "all of them" || again.Properties["k"] != "v" || len(again.Properties) != 2 {
			t.Errorf("properties %v", again.Properties)
		}
		d, err := DefinitionOf(again)
		must(t, err)
		like := made(t, c, "like", d)
		if !reflect.DeepEqual(withoutIDs(like.Fields), withoutIDs(again.Fields)) || !reflect.DeepEqual(like.Fields, again.Fields) || like.UUID == again.UUID {
			t.Errorf("version %d: LIKE differs: %+v", version, like.Fields)
		}
		if like.Handle.(*Handle).Table.Location() == again.Handle.(*Handle).Table.Location() || like.Properties["comment"] != "all of them" {
			t.Error("LIKE shares the place, or lacks the comment")
		}
	}
}

func TestLayout(t *testing.T) {
	c, _ := lake(t)
	d := every(2)
	d.Partitions = []PartitionField{
		{Path: []string{"ts"}, Transform: "days"},
		{Path: []string{"st", "a"}, Transform: "BUCKET", Arg: 16},
		{Path: []string{"s"}, Transform: "truncate", Arg: 4, Name: "start"},
		{Path: []string{"l"}},
		{Path: []string{"day"}, Transform: "month"},
		{Path: []string{"tz"}, Transform: "hour"},
	}
	d.Sort = []SortField{{Path: []string{"s"}, NullsFirst: true}, {Path: []string{"ts"}, Transform: "day", Desc: true}}
	got := made(t, c, "t", d)
	spec := got.Handle.(*Handle).Table.Spec()
	if text := spec.String(); !strings.Contains(text, "ts_day: day(9)") || !strings.Contains(text, "st.a_bucket: bucket[16]") || !strings.Contains(text, "start: truncate[4](11)") ||
		!strings.Contains(text, "l: identity(3)") || !strings.Contains(text, "tz_hour") {
		t.Error(text)
	}
	if text := got.Handle.(*Handle).Table.SortOrder().String(); !strings.Contains(text, "asc") || !strings.Contains(text, "desc") {
		t.Error(text)
	}
	like, err := DefinitionOf(loaded(t, c, "t"))
	must(t, err)
	again := made(t, c, "like", like)
	if a, b := again.Handle.(*Handle).Table.Spec(), got.Handle.(*Handle).Table.Spec(); !a.CompatibleWith(&b) || again.Handle.(*Handle).Table.SortOrder().String() != got.Handle.(*Handle).Table.SortOrder().String() {
		t.Errorf("LIKE: %s, %s", a.String(), again.Handle.(*Handle).Table.SortOrder())
	}
}

func TestCreateRefusals(t *testing.T) {
	c, dir := lake(t)
	made(t, c, "taken", humans)
	must(t, createView(c, name("ns", "view"), "SELECT 1"))
	before := len(files(t, dir))
	with := func(f func(*TableDefinition)) TableDefinition {
		d := every(2)
		f(&d)
		return d
	}
	part := func(p PartitionField) TableDefinition {
		return with(func(d *TableDefinition) { d.Partitions = []PartitionField{p} })
	}
	prop := func(k, v string) TableDefinition {
		return with(func(d *TableDefinition) { d.Properties = map[string]string{k: v} })
	}
	column := func(f plan.Field) TableDefinition {
		return with(func(d *TableDefinition) { d.Fields = append(d.Fields, f) })
	}
	for what, d := range map[string]TableDefinition{
		"no columns": {}, "no name": column(fld("", plan.Int32)), "twice": column(fld("B", plan.Int32)), "no type": column(plan.Field{Name: "x"}),
		"a type that is none": column(fld("x", plan.Null)), "half a number": column(fld("x", arrow.FixedWidthTypes.Float16)), "reserved": column(fld("_FILE", plan.Int32)),
		"nanoseconds in version 2": column(fld("x", plan.TimestampNS)), "an empty struct": column(fld("x", arrow.StructOf())),
		"a default in version 2": column(plan.Field{Name: "x", Type: plan.Int32, Default: &plan.Literal{Value: int64(1), Typ: plan.Int32}}),
		"partition of a list":    part(PartitionField{Path: []string{"li"}}), "partition of a float by bucket": part(PartitionField{Path: []string{"d"}, Transform: "bucket", Arg: 3}),
		"no number": part(PartitionField{Path: []string{"s"}, Transform: "bucket"}), "a number": part(PartitionField{Path: []string{"ts"}, Transform: "day", Arg: 3}),
		"no such transform": part(PartitionField{Path: []string{"s"}, Transform: "zorder"}), "the name of a column": part(PartitionField{Path: []string{"ts"}, Transform: "day", Name: "s"}),
		"two times of one column": with(func(d *TableDefinition) {
			d.Partitions = []PartitionField{{Path: []string{"ts"}, Transform: "day"}, {Path: []string{"ts"}, Transform: "year"}}
		}),
		"a text by day": part(PartitionField{Path: []string{"s"}, Transform: "day"}),
		"partitioned twice": with(func(d *TableDefinition) {
			d.Partitions = []PartitionField{{Path: []string{"s"}}, {Path: []string{"s"}, Name: "z"}}
		}),
		"sorted by a map": with(func(d *TableDefinition) { d.Sort = []SortField{{Path: []string{"m"}}} }),
		"version 1":       with(func(d *TableDefinition) { d.FormatVersion = 1 }), "version 4": prop("format-version", "4"), "two versions": prop("format-version", "3"),
		"tags": prop(TagsProperty, "{}"), "tags by name": prop(" SQE.Column-Tags", "{}"), "a uuid": prop("uuid", "x"), "no property name": prop("", "x"),
		"data elsewhere": prop("write.data.path", "/etc"), "metadata elsewhere": prop("write.metadata.path", "s3://x/y"), "a name mapping": prop("schema.name-mapping.default", "[]"),
	} {
		_, _, err := c.CreateTable(ctx, name("ns", "t"), d, CreateOptions{})
		wants(t, what, err, fault.BadStatement, "")
	}
	for _, path := range [][]string{{"none"}, {"st", "z"}, {"s", "z"}, {"li", "element"}, nil} {
		_, _, err := c.CreateTable(ctx, name("ns", "t"), part(PartitionField{Path: path}), CreateOptions{})
		wants(t, fmt.Sprint(path), err, fault.NoColumn, "")
	}
	for _, n := range []string{"taken", "view"} {
		_, _, err := c.CreateTable(ctx, name("ns", n), humans, CreateOptions{})
		wants(t, n, err, fault.Exists, n)
	}
	for _, o := range []IfTaken{Keep, Replace} {
		_, _, err := c.CreateTable(ctx, name("ns", "view"), humans, CreateOptions{IfTaken: o})
		wants(t, "over a view", err, fault.Exists, "view")
	}
	if _, created, err := c.CreateTable(ctx, name("ns", "taken"), humans, CreateOptions{IfTaken: Keep}); err != nil || created {
		t.Errorf("IF NOT EXISTS: %v, %v", created, err)
	}
	boom := errors.New("boom")
	_, _, err := c.CreateTable(ctx, name("ns", "t"), humans, CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, t *plan.Table) error { return boom }})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	if after := len(files(t, dir)); after != before {
		t.Errorf("refusals left %d files", after-before)
	}
	// Names become no paths.
	for _, n := range []string{"../../../up", "a/b", "..", ".", "a b%2e", "日本", strings.Repeat("y", 255)} {
		got := made(t, c, n, humans)
		if !below(c.props["warehouse"], got.Handle.(*Handle).Table.MetadataLocation()) {
			t.Errorf("%q lies at %s", n, got.Handle.(*Handle).Table.MetadataLocation())
		}
		if _, err := c.Table(ctx, name("ns", n), plan.AsOf{}, ""); err != nil {
			t.Errorf("%q: %v", n, err)
		}
	}
}

// TestCreateFilled: a table appears with its rows or not at all.
func TestCreateFilled(t *testing.T) {
	c, dir := lake(t)
	fill := rows(`[{"id": 1, "ssn": "a"}, {"id": 2}]`)
	got, _, err := c.CreateTable(ctx, name("ns", "t"), humans, CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		if _, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("the table is there before it is filled: %v", err)
		}
		return fill(ctx, tx, tb)
	}})
	must(t, err)
	if scanned(t, got) != 2 || scanned(t, loaded(t, c, "t")) != 2 || got.SnapshotID == 0 {
		t.Error("rows are missing")
	}
	before := files(t, dir)
	boom := errors.New("boom")
	_, _, err = c.CreateTable(ctx, name("ns", "u"), humans, CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		return errors.Join(fill(ctx, tx, tb), boom)
	}})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	for _, f := range files(t, dir) {
		if !slices.Contains(before, f) && !strings.HasSuffix(f, ".parquet") {
			t.Errorf("left %s", f) // data files are the filler's
		}
	}
	if _, err := c.Table(ctx, name("ns", "u"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("half a table: %v", err)
	}
	// A panic of the filler is an error.
	_, _, err = c.CreateTable(ctx, name("ns", "u"), humans, CreateOptions{Fill: func(context.Context, *table.Transaction, *plan.Table) error { panic("x") }})
	if err == nil {
		t.Error("no error")
	}
	// Another table takes the name while this one is being filled.
	_, _, err = c.CreateTable(ctx, name("ns", "u"), humans, CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		made(t, c, "u", humans)
		return fill(ctx, tx, tb)
	}})
	wants(t, "taken meanwhile", err, fault.Exists, "u")
	if n := scanned(t, loaded(t, c, "u")); n != 0 {
		t.Errorf("%d rows in the table of another", n)
	}
}

// TestReplace: the history stays, and no field of the new table has an id that the
// old one ever had.
func TestReplace(t *testing.T) {
	c, _ := lake(t)
	d := humans
	d.Partitions, d.Sort, d.Properties = []PartitionField{{Path: []string{"born"}, Transform: "day"}}, []SortField{{Path: []string{"id"}}}, map[string]string{"old": "1"}
	d.Tags = []TaggedPath{{Path: []string{"ssn"}, Tags: []plan.Tag{{Name: "PII"}}}}
	first := made(t, c, "t", d)
	if len(first.Tags[2]) != 1 {
		t.Fatalf("tags %v", first.Tags)
	}
	full := appended(t, c, "t", `[{"id": 1, "ssn": "a"}]`)
	_, err := c.AlterTable(ctx, name("ns", "t"), []Change{AddColumn{Path: []string{"gone"}, Field: fld("", plan.Int32)}, DropColumn{Path: []string{"born"}}})
	wants(t, "a partition column", err, fault.BadStatement, "born_day")
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{AddColumn{Path: []string{"gone"}, Field: fld("", plan.Int32)}})
	must(t, err)
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{DropColumn{Path: []string{"gone"}}})
	must(t, err)

	next := TableDefinition{Fields: []plan.Field{fld("ssn", plan.String), fld("id", plan.Int64)}, Comment: "new", Partitions: []PartitionField{{Path: []string{"id"}}}}
	got, created, err := c.CreateTable(ctx, name("ns", "t"), next, CreateOptions{IfTaken: Replace})
	must(t, err)
	if !created || got.UUID != first.UUID || got.SnapshotID != 0 || scanned(t, got) != 0 {
		t.Errorf("%v %s %d", created, got.UUID, got.SnapshotID)
	}
	if got.Fields[0].ID != 5 || got.Fields[1].ID != 6 {
		t.Errorf("fields %+v", got.Fields)
	}
	if got.Properties["comment"] != "new" || got.Properties["old"] != "" {
		t.Errorf("properties %v", got.Properties)
	}
	// The tag stays with the field that had it, and is inherited by its name's heir.
	if len(got.Tags[2]) != 1 || len(got.Tags[5]) != 1 || !got.Tags[5][0].Inherited || len(got.Tags[6]) != 0 {
		t.Errorf("tags %+v", got.Tags)
	}
	old, err := c.Table(ctx, name("ns", "t"), plan.AsOf{Snapshot: full.SnapshotID}, "")
	must(t, err)
	if old.Fields[1].ID != 2 || len(old.Tags[2]) != 1 {
		t.Errorf("the old snapshot %+v", old.Fields)
	}
	if n := scanned(t, appended(t, c, "t", `[{"id": 7, "ssn": "b"}, {"id": 8}]`)); n != 2 {
		t.Errorf("%d rows", n)
	}
	// With rows in the same commit.
	got, _, err = c.CreateTable(ctx, name("ns", "t"), humans, CreateOptions{IfTaken: Replace, Fill: rows(`[{"id": 3}]`)})
	must(t, err)
	if scanned(t, loaded(t, c, "t")) != 1 || got.Fields[0].ID != 7 || len(got.Tags[8]) != 1 {
		t.Errorf("%+v %+v", got.Fields, got.Tags)
	}
	boom := errors.New("boom")
	_, _, err = c.CreateTable(ctx, name("ns", "t"), next, CreateOptions{IfTaken: Replace, Fill: func(context.Context, *table.Transaction, *plan.Table) error { return boom }})
	if again := loaded(t, c, "t"); !errors.Is(err, boom) || again.Version != got.Version {
		t.Errorf("%v", err)
	}
	v2 := humans
	v2.FormatVersion = 3
	_, _, err = c.CreateTable(ctx, name("ns", "t"), v2, CreateOptions{IfTaken: Replace})
	must(t, err)
	v2.FormatVersion = 2
	_, _, err = c.CreateTable(ctx, name("ns", "t"), v2, CreateOptions{IfTaken: Replace})
	wants(t, "an older version", err, fault.BadStatement, "version")
	if _, created, err := c.CreateTable(ctx, name("ns", "fresh"), humans, CreateOptions{IfTaken: Replace}); err != nil || !created {
		t.Errorf("replacing nothing: %v, %v", created, err)
	}
	if _, err := c.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"}); err != nil {
		t.Error(err)
	}
}
