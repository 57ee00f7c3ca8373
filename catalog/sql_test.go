package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *SQL {
	t.Helper()
	c, err := OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "ware house%41"), SQLOptions{Create: true})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func name(ns string, n string) plan.TableName {
	return plan.TableName{Catalog: "lake", Namespace: strings.Split(ns, "/"), Name: n}
}

func create(t testing.TB, c *SQL, n plan.TableName, s *iceberg.Schema, props iceberg.Properties) *table.Table {
	t.Helper()
	for i := range n.Namespace {
		ok, err := c.Iceberg().CheckNamespaceExists(ctx, n.Namespace[:i+1])
		must(t, err)
		if !ok {
			must(t, c.Iceberg().CreateNamespace(ctx, n.Namespace[:i+1], nil))
		}
	}
	tb, err := c.Iceberg().CreateTable(ctx, append(slices.Clone(n.Namespace), n.Name), s, icebergcatalog.WithProperties(props))
	must(t, err)
	return tb
}

func col(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

var one = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true, Doc: "the key"},
	col(2, "ssn", iceberg.PrimitiveTypes.String))

func TestNames(t *testing.T) {
	c := open(t, t.TempDir())
	create(t, c, name("a/b/c", "t2"), one, nil)
	create(t, c, name("a/b/c", "t1"), one, nil)
	create(t, c, name("x.y/z", "T"), one, nil)
	must(t, createView(c, name("a", "v"), "SELECT 1"))
	got, err := c.Namespaces(ctx)
	must(t, err)
	if want := "[[a] [a b] [a b c] [x.y] [x.y z]]"; fmt.Sprint(got) != want {
		t.Errorf("namespaces %v", got)
	}
	tables, err := c.Tables(ctx, []string{"a", "b", "c"})
	if err != nil || fmt.Sprint(tables) != "[t1 t2]" {
		t.Errorf("tables %v, %v", tables, err)
	}
	tables, err = c.Tables(ctx, []string{"a"})
	if err != nil || len(tables) != 0 {
		t.Errorf("a view among the tables %v, %v", tables, err)
	}
	views, err := c.Views(ctx, []string{"a"})
	if err != nil || fmt.Sprint(views) != "[v]" {
		t.Errorf("views %v, %v", views, err)
	}
	for _, ns := range [][]string{{"none"}, {"a.b"}, {"x", "y"}, {"x"}} {
		if _, err := c.Tables(ctx, ns); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", ns, err)
		}
	}
	for _, n := range []plan.TableName{name("x.y/z", "T"), name("a/b/c", "t1")} {
		if got, err := c.Table(ctx, n, plan.AsOf{}, ""); err != nil || got.Name.Key() != n.Key() {
			t.Errorf("%s: %v", n, err)
		}
	}
	for _, n := range []plan.TableName{name("x.y/z", "t"), name("x/y/z", "T"), name("a.b/c", "t1"), name("a", "v")} {
		if _, err := c.Table(ctx, n, plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", n, err)
		}
	}
	if _, err := c.Table(ctx, name("a/b/c", "t1"), plan.AsOf{}, "secrets"); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown metadata table: %v", err)
	}
}

func TestTypes(t *testing.T) {
	c := open(t, t.TempDir())
	s := iceberg.NewSchema(0,
		col(1, "boolean", iceberg.PrimitiveTypes.Bool), col(2, "int", iceberg.PrimitiveTypes.Int32), col(3, "long", iceberg.PrimitiveTypes.Int64),
		col(4, "float", iceberg.PrimitiveTypes.Float32), col(5, "double", iceberg.PrimitiveTypes.Float64), col(6, "decimal", iceberg.DecimalTypeOf(38, 10)),
		col(7, "date", iceberg.PrimitiveTypes.Date), col(8, "time", iceberg.PrimitiveTypes.Time), col(9, "timestamp", iceberg.PrimitiveTypes.Timestamp),
		col(10, "timestamptz", iceberg.PrimitiveTypes.TimestampTz), col(11, "string", iceberg.PrimitiveTypes.String), col(12, "uuid", iceberg.PrimitiveTypes.UUID),
		col(13, "fixed", iceberg.FixedTypeOf(5)), col(14, "binary", iceberg.PrimitiveTypes.Binary),
		col(15, "ns", iceberg.PrimitiveTypes.TimestampNs), col(16, "nstz", iceberg.PrimitiveTypes.TimestampTzNs),
		col(17, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 18, Name: "a", Type: iceberg.PrimitiveTypes.Int32, Required: true}, col(19, "b", iceberg.PrimitiveTypes.UUID)}}),
		col(20, "l", &iceberg.ListType{ElementID: 21, Element: iceberg.PrimitiveTypes.String}),
		col(22, "m", &iceberg.MapType{KeyID: 23, KeyType: iceberg.PrimitiveTypes.String, ValueID: 24, ValueType: iceberg.PrimitiveTypes.Date}),
		col(25, "variant", iceberg.VariantType{}), col(26, "unknown", iceberg.UnknownType{}),
		col(27, "deep", &iceberg.ListType{ElementID: 28, Element: iceberg.VariantType{}}),
	)
	create(t, c, name("ns", "t"), s, iceberg.Properties{"format-version": "3"})
	got, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	want := map[string]arrow.DataType{
		"boolean": plan.Bool, "int": plan.Int32, "long": plan.Int64, "float": plan.Float32, "double": plan.Float64, "decimal": plan.Decimal(38, 10),
		"date": plan.Date, "time": plan.Time, "timestamp": plan.Timestamp, "timestamptz": plan.TimestampTZ, "string": plan.String, "uuid": plan.UUID,
		"fixed": &arrow.FixedSizeBinaryType{ByteWidth: 5}, "binary": plan.Binary, "ns": plan.TimestampNS, "nstz": plan.TimestampTZNS,
		"s": arrow.StructOf(arrow.Field{Name: "a", Type: plan.Int32}, arrow.Field{Name: "b", Type: plan.UUID, Nullable: true}),
		"l": arrow.ListOf(plan.String), "m": arrow.MapOf(plan.String, plan.Date),
		"variant": plan.Null, "unknown": plan.Null, "deep": plan.Null,
	}
	if len(got.Fields) != len(want) {
		t.Errorf("%d fields", len(got.Fields))
	}
	for _, f := range got.Fields {
		if !arrow.TypeEqual(f.Type, want[f.Name]) {
			t.Errorf("%s: %s, want %s", f.Name, f.Type, want[f.Name])
		}
	}
	m, _ := got.FieldNamed("m")
	st, _ := got.FieldNamed("s")
	if len(got.Beneath) != 1 || got.Beneath[28] != 27 {
		t.Errorf("inside columns that cannot be read: %v", got.Beneath)
	}
	if m.Children[0].ID != 23 || m.Children[1].ID != 24 || st.Children[0].ID != 18 || !st.Children[0].Required || st.Children[1].ID != 19 {
		t.Errorf("children %+v %+v", m.Children, st.Children)
	}
}

// TestFormerNames: other names count whether they are older or newer than the
// schema that is shown.
func TestFormerNames(t *testing.T) {
	c := open(t, t.TempDir())
	tb := create(t, c, name("ns", "t"), one, nil)
	evolve := func(f func(*table.UpdateSchema) *table.UpdateSchema) {
		t.Helper()
		tx := tb.NewTransaction()
		must(t, f(tx.UpdateSchema(true, true)).Commit())
		var err error
		tb, err = tx.Commit(ctx)
		must(t, err)
	}
	evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"ssn"}, "secret") })
	evolve(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"ssn"}, iceberg.PrimitiveTypes.String, "", false, nil)
	})
	evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"ssn"}) })
	got, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	if f, _ := got.Field(2); f.Name != "secret" || fmt.Sprint(got.Formerly[2]) != "[ssn]" {
		t.Errorf("field 2 is %s, formerly %v", f.Name, got.Formerly[2])
	}
	if fmt.Sprint(got.Formerly[3]) != "[ssn]" || got.Formerly[1] != nil {
		t.Errorf("formerly %v", got.Formerly)
	}
	if f, _ := got.Field(1); !f.Required || f.Doc != "the key" {
		t.Errorf("%+v", f)
	}
}

func TestTagsOfTable(t *testing.T) {
	c := open(t, t.TempDir())
	tb := create(t, c, name("ns", "t"), one, iceberg.Properties{TagsProperty: `{"2":[{"name":"PII"}]}`})
	for _, kind := range []string{"", "files"} {
		got, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, kind)
		must(t, err)
		if len(got.Tags[2]) != 1 || got.Tags[2][0].Name != "PII" {
			t.Errorf("%q: tags %v", kind, got.Tags)
		}
	}
	tx := tb.NewTransaction()
	must(t, tx.SetProperties(iceberg.Properties{TagsProperty: `{"ssn":[{"name":"PII"}]}`}))
	_, err := tx.Commit(ctx)
	must(t, err)
	for _, kind := range []string{"", "files"} {
		if _, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, kind); !fault.Is(err, fault.PolicyBroken) {
			t.Errorf("%q: tags that cannot be read: %v", kind, err)
		}
	}
}

func createView(c *SQL, n plan.TableName, text string) error {
	_, err := c.CreateView(ctx, n, ViewDefinition{SQL: text, Fields: Fields(one)}, ViewOptions{})
	return err
}

func TestViews(t *testing.T) {
	c := open(t, t.TempDir())
	create(t, c, name("ns", "t"), one, nil)
	_, err := c.CreateView(ctx, name("ns", "v"), ViewDefinition{SQL: "SELECT id FROM t", Fields: Fields(one), Comment: "x"}, ViewOptions{})
	must(t, err)
	v, err := c.View(ctx, name("ns", "v"))
	must(t, err)
	if v.SQL != "SELECT id FROM t" || v.Catalog != "lake" || fmt.Sprint(v.Namespace) != "[ns]" || len(v.Fields) != 2 || v.Properties["comment"] != "x" || v.UUID == "" {
		t.Errorf("%+v", v)
	}
	for _, n := range []string{"v", "t"} {
		if err := createView(c, name("ns", n), "SELECT 1"); !fault.Is(err, fault.Exists) {
			t.Errorf("a second %s: %v", n, err)
		}
	}
	if err := createView(c, name("none", "v"), "SELECT 1"); !fault.Is(err, fault.NoDatabase) {
		t.Errorf("no namespace: %v", err)
	}
	// iceberg-go reads it, and its own view has a dialect that is not ours.
	must(t, c.iceberg.CreateView(ctx, table.Identifier{"ns", "w"}, one, "SELECT 1", nil))
	if _, err := c.iceberg.LoadView(ctx, table.Identifier{"ns", "v"}); err != nil {
		t.Error(err)
	}
	if _, err := c.View(ctx, name("ns", "w")); !fault.Is(err, fault.Unsupported) {
		t.Errorf("another dialect: %v", err)
	}
	if _, err := c.View(ctx, name("ns", "t")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a table as a view: %v", err)
	}
}

// TestOtherProcess: what another connection commits is seen at once.
func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	c, other := open(t, dir), open(t, dir)
	tb := create(t, c, name("ns", "t"), one, nil)
	before, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	same, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	if same != before {
		t.Error("an unchanged table is loaded anew")
	}
	tx := tb.NewTransaction()
	must(t, tx.SetProperties(iceberg.Properties{"k": "v"}))
	_, err = tx.Commit(ctx)
	must(t, err)
	after, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	if after.Properties["k"] != "v" || after.Version == before.Version {
		t.Error("a commit was not seen")
	}
	_, err = c.Iceberg().RenameTable(ctx, table.Identifier{"ns", "t"}, table.Identifier{"ns", "u"})
	must(t, err)
	if _, err := other.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("the old name: %v", err)
	}
	if got, err := other.Table(ctx, name("ns", "u"), plan.AsOf{}, ""); err != nil || got.Name.Name != "u" {
		t.Errorf("the new name: %v", err)
	}
}

// TestOldLayout: a catalog without the column for views, as older writers make it.
func TestOldLayout(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	create(t, c, name("ns", "t"), one, nil)
	must(t, c.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, "catalog.db"))
	must(t, err)
	_, err = db.Exec(`ALTER TABLE iceberg_tables DROP COLUMN iceberg_type`)
	must(t, err)
	must(t, db.Close())
	c = open(t, dir)
	if got, err := c.Tables(ctx, []string{"ns"}); err != nil || fmt.Sprint(got) != "[t]" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.Views(ctx, []string{"ns"}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); err != nil {
		t.Error(err)
	}
	if _, err := c.View(ctx, name("ns", "t")); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := createView(c, name("ns", "v"), "SELECT 1"); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

// TestFaults: what is broken has a kind, and a text without a path.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	check := func(what string, err error, kind fault.Kind) {
		t.Helper()
		if !fault.Is(err, kind) {
			t.Errorf("%s: %v (%v), want %v", what, err, fault.KindOf(err), kind)
			return
		}
		if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "metadata.json") || strings.Contains(err.Error(), "file:") {
			t.Errorf("%s: the text holds a path: %s", what, err)
		}
	}
	_, err := OpenSQLite("lake", filepath.Join(dir, "none.db"), "", SQLOptions{})
	check("a missing file", err, fault.Unavailable)
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("opening made the file")
	}
	must(t, os.WriteFile(filepath.Join(dir, "text.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
	_, err = OpenSQLite("lake", filepath.Join(dir, "text.db"), "", SQLOptions{})
	check("no database", err, fault.Unavailable)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = OpenSQLite("lake", filepath.Join(dir, "file", "x", "catalog.db"), "", SQLOptions{Create: true})
	check("a folder that cannot be made", err, fault.Unavailable)

	c := open(t, dir)
	create(t, c, name("ns", "t"), one, nil)
	good, err := c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	var location string
	must(t, c.db.QueryRow(`SELECT metadata_location FROM iceberg_tables`).Scan(&location))
	body, err := os.ReadFile(good.Handle.(*Handle).Table.MetadataLocation())
	if err != nil {
		matches, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*", "metadata", "*.json"))
		if len(matches) != 1 {
			t.Fatalf("metadata files: %v", matches)
		}
		body, err = os.ReadFile(matches[0])
		must(t, err)
	}
	set := func(to any) {
		_, err := c.db.Exec(`UPDATE iceberg_tables SET metadata_location = ?`, to)
		must(t, err)
	}
	broken := map[string]string{
		"cut": string(body[:len(body)/2]), "empty": "", "list": "[]", "null": "null", "another format": `{"format-version": 99}`,
		"no schema": strings.Replace(string(body), `"current-schema-id":0`, `"current-schema-id":7`, 1),
	}
	i := 0
	for what, text := range broken {
		i++
		path := filepath.Join(dir, fmt.Sprintf("%d.metadata.json", i))
		must(t, os.WriteFile(path, []byte(text), 0o600))
		set(path)
		_, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
		check(what, err, fault.Corrupt)
	}
	set(filepath.Join(dir, "gone.metadata.json"))
	_, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	check("a missing metadata file", err, fault.Corrupt)
	set("s3://bucket/x.metadata.json")
	_, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	check("storage that is not built in", err, fault.Unsupported)
	set(nil)
	_, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	check("no location", err, fault.Corrupt)
	set(location)
	if _, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, ""); err != nil {
		t.Errorf("the control: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.Table(cancelled, name("ns", "t"), plan.AsOf{}, "")
	check("cancelled", err, fault.Cancelled)
	must(t, c.Close())
	_, err = c.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	check("a closed catalog", err, fault.Unavailable)
}
