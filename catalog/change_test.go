package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
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

func TestNamespaces(t *testing.T) {
	c, dir := lake(t)
	must(t, c.CreateNamespace(ctx, []string{"a", "b.c"}, map[string]string{"owner": "ann", "comment": "x"}, false))
	wants(t, "twice", c.CreateNamespace(ctx, []string{"ns"}, nil, false), fault.Exists, "ns")
	must(t, c.CreateNamespace(ctx, []string{"ns"}, nil, true))
	props, err := c.NamespaceProperties(ctx, []string{"a", "b.c"})
	if err != nil || !maps.Equal(props, map[string]string{"owner": "ann", "comment": "x"}) {
		t.Errorf("properties %v, %v", props, err)
	}
	must(t, c.UpdateNamespace(ctx, []string{"a", "b.c"}, map[string]string{"owner": "bob", "k": "v"}, []string{"comment", "none"}))
	if props, err = c.NamespaceProperties(ctx, []string{"a", "b.c"}); err != nil || !maps.Equal(props, map[string]string{"owner": "bob", "k": "v"}) {
		t.Errorf("properties %v, %v", props, err)
	}
	// A namespace that is there for its child alone takes properties as well.
	must(t, c.UpdateNamespace(ctx, []string{"a"}, map[string]string{"k": "v"}, nil))
	must(t, c.UpdateNamespace(ctx, []string{"a"}, nil, []string{"k"}))
	for what, err := range map[string]error{
		"update": c.UpdateNamespace(ctx, []string{"none"}, map[string]string{"k": "v"}, nil),
		"drop":   c.DropNamespace(ctx, []string{"none"}, false),
		"load":   func() error { _, err := c.NamespaceProperties(ctx, []string{"none"}); return err }(),
	} {
		wants(t, what, err, fault.NoDatabase, "none")
	}
	must(t, c.DropNamespace(ctx, []string{"none"}, true))
	wants(t, "both", c.UpdateNamespace(ctx, []string{"ns"}, map[string]string{"k": "v"}, []string{"k"}), fault.BadStatement, "both")
	wants(t, "tags", c.CreateNamespace(ctx, []string{"x"}, map[string]string{TagsProperty: "{}"}, false), fault.BadStatement, "SET TAGS")
	for _, place := range []string{"/etc", "file:///tmp", "s3://bucket/x", dir, filepath.Join(dir, "ware house%41", "..", "x"), "relative", "file:///" + dir + "/ware house%41/../y"} {
		wants(t, place, c.UpdateNamespace(ctx, []string{"ns"}, map[string]string{"location": place}, nil), fault.BadStatement, "warehouse")
	}
	must(t, c.UpdateNamespace(ctx, []string{"ns"}, map[string]string{"location": filepath.Join(dir, "ware house%41", "here")}, nil))
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		wants(t, "a bad name", c.CreateNamespace(ctx, []string{bad}, nil, false), fault.BadStatement, "name")
	}

	// What is not empty stays.
	wants(t, "a child", c.DropNamespace(ctx, []string{"a"}, false), fault.BadStatement, "b")
	made(t, c, "t", humans)
	wants(t, "a table", c.DropNamespace(ctx, []string{"ns"}, true), fault.BadStatement, "not empty")
	_, err = c.DropTable(ctx, name("ns", "t"), false, false)
	must(t, err)
	must(t, createView(c, name("ns", "v"), "SELECT 1"))
	wants(t, "a view", c.DropNamespace(ctx, []string{"ns"}, true), fault.BadStatement, "not empty")
	must(t, c.DropView(ctx, name("ns", "v"), false))
	must(t, c.DropNamespace(ctx, []string{"ns"}, false))
	must(t, c.DropNamespace(ctx, []string{"a", "b.c"}, false))
	must(t, c.DropNamespace(ctx, []string{"a"}, false))
	if all, err := c.Namespaces(ctx); err != nil || len(all) != 0 {
		t.Errorf("left %v, %v", all, err)
	}
	_, _, err = c.CreateTable(ctx, name("ns", "t"), humans, CreateOptions{})
	wants(t, "no namespace", err, fault.NoDatabase, "ns")
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
		{Path: []string{"ts"}, Transform: "days"}, {Path: []string{"st", "a"}, Transform: "BUCKET", Arg: 16}, {Path: []string{"s"}, Transform: "truncate", Arg: 4, Name: "start"},
		{Path: []string{"l"}}, {Path: []string{"day"}, Transform: "month"}, {Path: []string{"tz"}, Transform: "hour"},
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
		"a type that is none": column(fld("x", plan.Null)), "unsigned": column(fld("x", plan.Uint64)), "reserved": column(fld("_FILE", plan.Int32)),
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
	got, _, err = c.CreateTable(ctx, name("ns", "t"), v2, CreateOptions{IfTaken: Replace})
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

func TestDropAndRename(t *testing.T) {
	c, dir := lake(t)
	other := open(t, dir)
	must(t, c.CreateNamespace(ctx, []string{"x", "y"}, nil, false))
	keep := made(t, c, "keep", humans)
	appended(t, c, "keep", `[{"id": 1}]`)
	made(t, c, "t", humans)
	appended(t, c, "t", `[{"id": 1}]`)
	if _, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); err != nil {
		t.Error(err)
	}
	must(t, c.RenameTable(ctx, name("ns", "t"), name("x/y", "u")))
	for _, cat := range []*SQL{c, other} {
		if _, err := cat.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("the old name: %v", err)
		}
		if got, err := cat.Table(ctx, name("x/y", "u"), plan.AsOf{}, ""); err != nil || scanned(t, got) != 1 {
			t.Errorf("the new name: %v", err)
		}
	}
	must(t, createView(c, name("ns", "v"), "SELECT 1"))
	for what, f := range map[string]func() (error, fault.Kind){
		"a table that is not there": func() (error, fault.Kind) {
			return c.RenameTable(ctx, name("ns", "none"), name("ns", "z")), fault.NotFound
		},
		"a view as a table": func() (error, fault.Kind) {
			return c.RenameTable(ctx, name("ns", "v"), name("ns", "z")), fault.NotFound
		},
		"onto a table": func() (error, fault.Kind) {
			return c.RenameTable(ctx, name("x/y", "u"), name("ns", "keep")), fault.Exists
		},
		"onto a view": func() (error, fault.Kind) {
			return c.RenameTable(ctx, name("x/y", "u"), name("ns", "v")), fault.Exists
		},
		"to no namespace": func() (error, fault.Kind) {
			return c.RenameTable(ctx, name("x/y", "u"), name("none", "u")), fault.NoDatabase
		},
		"to another catalog": func() (error, fault.Kind) {
			to := name("ns", "z")
			to.Catalog = "other"
			return c.RenameTable(ctx, name("x/y", "u"), to), fault.Unsupported
		},
		"drop of none": func() (error, fault.Kind) {
			_, err := c.DropTable(ctx, name("ns", "none"), false, false)
			return err, fault.NotFound
		},
		"drop of a view": func() (error, fault.Kind) {
			_, err := c.DropTable(ctx, name("ns", "v"), true, false)
			return err, fault.NotFound
		},
	} {
		err, kind := f()
		wants(t, what, err, kind, "")
	}
	if _, err := c.DropTable(ctx, name("ns", "none"), true, true); err != nil {
		t.Error(err)
	}

	// Without a purge every file stays; a new table of the name has its own.
	must(t, c.RenameTable(ctx, name("x/y", "u"), name("ns", "t")))
	before := len(files(t, dir))
	if got, err := c.DropTable(ctx, name("ns", "t"), false, false); err != nil || got != (Purged{}) || len(files(t, dir)) != before {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a dropped table: %v", err)
	}
	again := made(t, c, "t", humans)
	appended(t, c, "t", `[{"id": 1}, {"id": 2}]`)
	appended(t, c, "t", `[{"id": 3}]`)

	// A purge takes the files of the table, and nothing that lies elsewhere: a data
	// file of another table and one outside the warehouse.
	outside := filepath.Join(dir, "outside.parquet")
	foreign := keep.Handle.(*Handle).Table.Location()
	var parquet string
	for _, f := range files(t, dir) {
		if strings.HasSuffix(f, ".parquet") && strings.Contains(f, filepath.Base(foreign)) {
			parquet = f
		}
	}
	body, err := os.ReadFile(parquet)
	must(t, err)
	must(t, os.WriteFile(outside, body, 0o600))
	_, err = c.Commit(ctx, name("ns", "t"), func(ctx context.Context, tx *table.Transaction, _ *plan.Table) error {
		return tx.AddFiles(ctx, []string{outside, parquet}, nil, false)
	})
	if err != nil {
		t.Logf("files with field ids are not added: %v", err)
		must(t, addForeign(c, again.Name, outside, parquet))
	}
	got, err := c.DropTable(ctx, name("ns", "t"), true, false)
	must(t, err)
	if got.Left != 2 || got.Deleted < 8 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("a purge deleted a file outside the warehouse")
	}
	if n := scanned(t, loaded(t, c, "keep")); n != 1 {
		t.Error("a purge deleted a file of another table")
	}
	for _, f := range files(t, dir) {
		if strings.Contains(f, filepath.Base(again.Handle.(*Handle).Table.Location())) {
			t.Errorf("left %s", f)
		}
	}
	// A table whose metadata is lost can be dropped, and not purged.
	lost := made(t, c, "lost", humans)
	must(t, os.Remove(mustPath(lost.Version)))
	c.tables.Purge()
	_, err = c.DropTable(ctx, name("ns", "lost"), true, false)
	wants(t, "a purge of a broken table", err, fault.Corrupt, "PURGE")
	_, err = c.DropTable(ctx, name("ns", "lost"), false, false)
	must(t, err)
}

func mustPath(location string) string {
	_, p, _ := place(location)
	return p
}

// addForeign adds data files by their paths alone.
func addForeign(c *SQL, n plan.TableName, paths ...string) error {
	_, err := c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		var list []iceberg.DataFile
		for _, p := range paths {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			b, err := iceberg.NewDataFileBuilder(t.Handle.(*Handle).Table.Spec(), iceberg.EntryContentData, p, iceberg.ParquetFile, nil, nil, nil, 1, info.Size())
			if err != nil {
				return err
			}
			list = append(list, b.Build())
		}
		return tx.AddDataFiles(ctx, list, nil)
	})
	return err
}

func TestViewChanges(t *testing.T) {
	c, dir := lake(t)
	d := ViewDefinition{SQL: "SELECT 1", Fields: []plan.Field{fld("a", plan.Int32)}, Properties: map[string]string{"k": "v"}, Namespace: []string{"else", "where"}}
	made(t, c, "t", humans)
	create := func(n string, o IfTaken) (bool, error) {
		return c.CreateView(ctx, name("ns", n), d, ViewOptions{IfTaken: o})
	}
	if ok, err := create("v", Refuse); !ok || err != nil {
		t.Fatal(ok, err)
	}
	v, err := c.View(ctx, name("ns", "v"))
	must(t, err)
	if v.SQL != "SELECT 1" || fmt.Sprint(v.Namespace) != "[else where]" || v.Properties["k"] != "v" || len(v.Fields) != 1 {
		t.Errorf("%+v", v)
	}
	_, err = create("v", Refuse)
	wants(t, "twice", err, fault.Exists, "v")
	for _, o := range []IfTaken{Refuse, Keep, Replace} {
		_, err = create("t", o)
		wants(t, "over a table", err, fault.Exists, "t")
	}
	d.SQL, d.Fields, d.Properties, d.Comment = "SELECT 'b'", []plan.Field{fld("b", plan.String)}, nil, "second"
	if ok, err := create("v", Keep); ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := create("v", Replace); !ok || err != nil {
		t.Fatal(ok, err)
	}
	w, err := c.View(ctx, name("ns", "v"))
	must(t, err)
	if w.UUID != v.UUID || w.SQL != "SELECT 'b'" || w.Fields[0].Name != "b" || w.Properties["k"] != "" || w.Properties["comment"] != "second" || w.Version == v.Version {
		t.Errorf("%+v", w)
	}
	meta, err := c.iceberg.LoadView(ctx, table.Identifier{"ns", "v"})
	must(t, err)
	if len(meta.Versions()) != 2 || meta.CurrentVersion().Representations[0].Dialect != "sqe" {
		t.Errorf("%d versions", len(meta.Versions()))
	}
	must(t, c.RenameView(ctx, name("ns", "v"), name("ns", "w")))
	wants(t, "a table as a view", c.RenameView(ctx, name("ns", "t"), name("ns", "z")), fault.NotFound, "t")
	wants(t, "onto a table", c.RenameView(ctx, name("ns", "w"), name("ns", "t")), fault.Exists, "t")
	wants(t, "drop of a table", c.DropView(ctx, name("ns", "t"), false), fault.NotFound, "t")
	wants(t, "drop of none", c.DropView(ctx, name("ns", "v"), false), fault.NotFound, "v")
	must(t, c.DropView(ctx, name("ns", "v"), true))
	if v, err := c.View(ctx, name("ns", "w")); err != nil || v.SQL != "SELECT 'b'" {
		t.Errorf("%+v, %v", v, err)
	}
	// Text in another dialect would stay what it was.
	must(t, c.iceberg.CreateView(ctx, table.Identifier{"ns", "spark"}, one, "SELECT 1", nil))
	_, err = create("spark", Replace)
	wants(t, "another dialect", err, fault.Unsupported, "dialect")
	must(t, c.DropView(ctx, name("ns", "w"), false))
	if _, err := c.View(ctx, name("ns", "w")); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	d.SQL = ""
	_, err = create("x", Refuse)
	wants(t, "no text", err, fault.BadStatement, "text")
	d.SQL, d.Properties = "SELECT 1", map[string]string{TagsProperty: "{}"}
	_, err = create("x", Refuse)
	wants(t, "tags", err, fault.BadStatement, "SET TAGS")
	d.Properties = nil
	for _, n := range []string{"../../up", "a/b"} {
		if _, err := create(n, Refuse); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
		t.Error("a name became a path")
	}
}

func TestRefs(t *testing.T) {
	c, _ := lake(t)
	made(t, c, "t", humans)
	n := name("ns", "t")
	_, err := c.SetRef(ctx, n, Ref{Name: "x", Branch: true}, CreateRef)
	wants(t, "no snapshot", err, fault.BadStatement, "no snapshot")
	first := appended(t, c, "t", `[{"id": 1}]`)
	second := appended(t, c, "t", `[{"id": 2}]`)
	tb, err := c.SetRef(ctx, n, Ref{Name: "x", Branch: true, Snapshot: first.SnapshotID, MaxAge: time.Hour, MaxSnapshotAge: time.Minute, MinSnapshots: 3}, CreateRef)
	must(t, err)
	r := refOf(tb.Handle.(*Handle).Table.Metadata(), "x")
	if r.SnapshotID != first.SnapshotID || *r.MaxRefAgeMs != 3600000 || *r.MaxSnapshotAgeMs != 60000 || *r.MinSnapshotsToKeep != 3 || tb.SnapshotID != second.SnapshotID {
		t.Errorf("%+v", r)
	}
	_, err = c.SetRef(ctx, n, Ref{Name: "v1"}, CreateRef)
	must(t, err)
	for what, f := range map[string]func() (error, fault.Kind){
		"twice":          func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "v1"}, CreateRef)), fault.Exists },
		"a tag a branch": func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "v1", Branch: true}, CreateOrReplaceRef)), fault.Exists },
		"replace none":   func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "v2"}, ReplaceRef)), fault.BadStatement },
		"no snapshot":    func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "v2", Snapshot: 42}, CreateRef)), fault.BadStatement },
		"main":           func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "main", Branch: true}, ReplaceRef)), fault.BadStatement },
		"a tag that keeps": func() (error, fault.Kind) {
			return refErr(c.SetRef(ctx, n, Ref{Name: "v2", MinSnapshots: 1}, CreateRef)), fault.BadStatement
		},
		"negative":      func() (error, fault.Kind) { return refErr(c.SetRef(ctx, n, Ref{Name: "v2", MaxAge: -1}, CreateRef)), fault.BadStatement },
		"drop none":     func() (error, fault.Kind) { return refErr(c.DropRef(ctx, n, "none", true, false)), fault.BadStatement },
		"drop main":     func() (error, fault.Kind) { return refErr(c.DropRef(ctx, n, "main", true, false)), fault.BadStatement },
		"drop as a tag": func() (error, fault.Kind) { return refErr(c.DropRef(ctx, n, "x", false, false)), fault.BadStatement },
		"write a tag":   func() (error, fault.Kind) { return refErr(c.CommitBranch(ctx, n, "v1", rows(`[{"id": 9}]`))), fault.BadStatement },
		"write none":    func() (error, fault.Kind) { return refErr(c.CommitBranch(ctx, n, "none", rows(`[{"id": 9}]`))), fault.BadStatement },
	} {
		err, kind := f()
		wants(t, what, err, kind, "")
	}
	_, err = c.CommitBranch(ctx, n, "x", rows(`[{"id": 3}]`))
	must(t, err)
	for ref, want := range map[string]int64{"main": 2, "x": 2, "v1": 2} {
		at, err := c.Table(ctx, n, plan.AsOf{Ref: ref}, "")
		must(t, err)
		total := at.Handle.(*Handle).Snapshot.Summary.Properties["total-records"]
		if total != fmt.Sprint(want) {
			t.Errorf("%s has %s rows", ref, total)
		}
	}
	if same, err := c.SetRef(ctx, n, Ref{Name: "v1", Snapshot: first.SnapshotID}, CreateRefIfMissing); err != nil || refOf(same.Handle.(*Handle).Table.Metadata(), "v1").SnapshotID != second.SnapshotID {
		t.Error(err)
	}
	if moved, err := c.SetRef(ctx, n, Ref{Name: "v1", Snapshot: first.SnapshotID}, ReplaceRef); err != nil || refOf(moved.Handle.(*Handle).Table.Metadata(), "v1").SnapshotID != first.SnapshotID {
		t.Error(err)
	}
	_, err = c.DropRef(ctx, n, "none", true, true)
	must(t, err)
	tb, err = c.DropRef(ctx, n, "v1", false, false)
	must(t, err)
	if refOf(tb.Handle.(*Handle).Table.Metadata(), "v1") != nil {
		t.Error("the tag is there")
	}

	// Rollback.
	branch := refOf(tb.Handle.(*Handle).Table.Metadata(), "x")
	for what, f := range map[string]plan.AsOf{"none": {}, "a ref": {Ref: "x"}, "no such": {Snapshot: 42}, "no ancestor": {Snapshot: branch.SnapshotID}, "too early": {Time: time.Unix(1, 0)}} {
		_, err := c.Rollback(ctx, n, f)
		wants(t, what, err, fault.BadStatement, "")
	}
	if same, err := c.Rollback(ctx, n, plan.AsOf{Time: time.Now().Add(time.Hour)}); err != nil || same.Version != tb.Version {
		t.Errorf("to the present: %v", err)
	}
	back, err := c.Rollback(ctx, n, plan.AsOf{Snapshot: first.SnapshotID})
	must(t, err)
	if back.SnapshotID != first.SnapshotID || scanned(t, loaded(t, c, "t")) != 1 {
		t.Error("no rollback")
	}
	third := appended(t, c, "t", `[{"id": 4}]`)
	if scanned(t, third) != 2 {
		t.Error("a write after a rollback")
	}
	at := time.UnixMilli(first.Handle.(*Handle).Snapshot.TimestampMs)
	if back, err = c.Rollback(ctx, n, plan.AsOf{Time: at}); err != nil || back.SnapshotID != first.SnapshotID {
		t.Errorf("to a time: %v", err)
	}
}

func refErr(_ *plan.Table, err error) error { return err }

// TestDefaults: a default is read back as it was given, here and in iceberg-go, and
// later commits do not change it.
func TestDefaults(t *testing.T) {
	c, dir := lake(t)
	num, err := decimal128.FromString("-12.30", 9, 2)
	must(t, err)
	values := map[string]plan.Literal{
		"b": {Value: true, Typ: plan.Bool}, "i": {Value: int64(-7), Typ: plan.Int32}, "l": {Value: int64(1<<53 - 1), Typ: plan.Int64}, "f": {Value: 1.5, Typ: plan.Float32},
		"d": {Value: 0.1, Typ: plan.Float64}, "dec": {Value: num, Typ: plan.Decimal(9, 2)}, "day": {Value: arrow.Date32(-1), Typ: plan.Date}, "clock": {Value: arrow.Time64(86399999999), Typ: plan.Time},
		"ts": {Value: arrow.Timestamp(1_700_000_000_123_456), Typ: plan.Timestamp}, "tz": {Value: arrow.Timestamp(-1), Typ: plan.TimestampTZ}, "s": {Value: "Zürich \"🏦\"", Typ: plan.String},
		"u": {Value: []byte("0123456789abcdef"), Typ: plan.UUID}, "fix": {Value: []byte{0, 1, 255}, Typ: &arrow.FixedSizeBinaryType{ByteWidth: 3}}, "bin": {Value: []byte{0xde}, Typ: plan.Binary},
		"ns": {Value: arrow.Timestamp(1_700_000_000_123_456_789), Typ: plan.TimestampNS}, "nstz": {Value: arrow.Timestamp(-1), Typ: plan.TimestampTZNS},
	}
	d := TableDefinition{FormatVersion: 3, Fields: []plan.Field{fld("id", plan.Int64)}}
	var adds []Change
	for _, k := range slices.Sorted(maps.Keys(values)) {
		v := values[k]
		d.Fields = append(d.Fields, plan.Field{Name: k, Type: v.Typ, Default: &v})
		adds = append(adds, AddColumn{Path: []string{"added_" + k}, Field: req(plan.Field{Type: v.Typ, Default: &v})})
	}
	made(t, c, "t", d)
	appended(t, c, "t", `[{"id": 1}]`)
	_, err = c.AlterTable(ctx, name("ns", "t"), adds)
	must(t, err)
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{SetProperties{map[string]string{"another": "commit"}}})
	must(t, err)
	again := open(t, dir)
	tb, err := again.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	for k, v := range values {
		f, _ := tb.FieldNamed(k)
		if f.Default == nil || !reflect.DeepEqual(*f.Default, v) || f.Initial != nil {
			t.Errorf("%s: %+v", k, f.Default)
		}
		f, _ = tb.FieldNamed("added_" + k)
		if f.Default == nil || !reflect.DeepEqual(*f.Default, v) || f.Initial == nil || !reflect.DeepEqual(*f.Initial, v) || !f.Required {
			t.Errorf("added %s: %+v %+v", k, f.Default, f.Initial)
		}
	}
	v := values["i"]
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{SetDefault{[]string{"i"}, &plan.Literal{Value: int64(8), Typ: plan.Int32}}, SetDefault{[]string{"l"}, nil}})
	must(t, err)
	tb = loaded(t, c, "t")
	if f, _ := tb.FieldNamed("i"); f.Default.Value != int64(8) {
		t.Errorf("%+v", f.Default)
	}
	if f, _ := tb.FieldNamed("l"); f.Default != nil {
		t.Errorf("%+v", f.Default)
	}
	for what, l := range map[string]plan.Literal{
		"large": {Value: int64(1 << 53), Typ: plan.Int64}, "a text": {Value: "x", Typ: plan.String},
	} {
		_, err := c.AlterTable(ctx, name("ns", "t"), []Change{SetDefault{[]string{"l"}, &l}})
		wants(t, what, err, fault.BadStatement, "default")
	}
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{AddColumn{Path: []string{"x"}, Field: req(fld("", plan.Int32))}})
	wants(t, "required without a default", err, fault.BadStatement, "required")
	made(t, c, "v2", humans)
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{AddColumn{Path: []string{"x"}, Field: plan.Field{Type: v.Typ, Default: &v}}})
	wants(t, "version 2", err, fault.BadStatement, "version 3")
	// Both in one statement.
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{SetProperties{map[string]string{"format-version": "3"}}, AddColumn{Path: []string{"x"}, Field: plan.Field{Type: v.Typ, Default: &v}}})
	must(t, err)
	ice, err := c.Iceberg().LoadTable(ctx, table.Identifier{"ns", "v2"})
	if err != nil || ice.Metadata().Version() != 3 {
		t.Error(err)
	}
}
