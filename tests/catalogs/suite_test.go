//go:build e2e

package catalogs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// kind is a kind of catalog.
type kind struct {
	name string
	// open gives an opener of one empty catalog: what it opens are independent of each
	// other, as in several processes.
	open func(t *testing.T) func() changer
	// cannot are names of namespaces, tables and views that this one refuses.
	cannot func(name string) bool
	// purged: it says how many files were deleted.
	purged bool
}

type changer interface {
	catalog.Catalog
	catalog.Changer
}

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func wants(t testing.TB, what string, err error, k fault.Kind) {
	t.Helper()
	if !fault.Is(err, k) {
		t.Errorf("%s: %v (%v), want %v", what, err, errors.Unwrap(err), k)
	}
}

var kinds = []kind{
	{
		name: "sqlite", purged: true,
		open: func(t *testing.T) func() changer {
			dir := t.TempDir()
			return func() changer {
				c, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), dir, catalog.SQLOptions{Create: true})
				must(t, err)
				return c
			}
		},
	},
	{
		name: "postgres", purged: true,
		open: func(t *testing.T) func() changer {
			s := StartPostgres(t)
			return func() changer {
				c, err := catalog.OpenPostgres("lake", s.Address, s.Warehouse, catalog.SQLOptions{})
				must(t, err)
				return c
			}
		},
	},
	{
		name: "rest-plain",
		open: func(t *testing.T) func() changer {
			s := StartREST(t)
			return func() changer { return openREST(t, s, rest.Options{}) }
		},
		// Levels of namespaces are parted by a dot there, and its web server refuses an
		// escaped slash or percent sign. Locations are made of names: none with ? or #.
		cannot: func(n string) bool { return strings.ContainsAny(n, "./%?#") },
	},
}

// given is the REST catalog of SQE_CATALOG_URI, if there is one: a Polaris, say. What
// the suite makes there it leaves, so the catalog must be a new one. SQE_CATALOG_NAME
// is what it calls itself, SQE_CATALOG_TOKEN a token that may do everything, and
// SQE_CATALOG_FOLDER where its files lie, which this machine shares.
func given() []kind {
	uri := os.Getenv("SQE_CATALOG_URI")
	if uri == "" {
		return nil
	}
	return []kind{{
		name: "rest-given",
		open: func(t *testing.T) func() changer {
			return func() changer {
				return openREST(t, &Server{Address: uri, Warehouse: os.Getenv("SQE_CATALOG_FOLDER")}, rest.Options{
					Warehouse: os.Getenv("SQE_CATALOG_NAME"), Tokens: rest.Static("lake", os.Getenv("SQE_CATALOG_TOKEN"), ""),
				})
			}
		},
		// Polaris refuses these, others an escaped slash or percent sign.
		cannot: func(n string) bool { return strings.ContainsAny(n, `./\%:*?"<>|#+;`+"`") },
	}}
}

// openREST opens a REST catalog that asks for no token.
func openREST(t testing.TB, s *Server, o rest.Options) *catalog.REST {
	t.Helper()
	h, err := rest.NewHTTP(rest.HTTPOptions{})
	must(t, err)
	o.URI, o.HTTP = s.Address, h
	if o.Tokens == nil {
		o.Tokens = rest.Anonymous()
	}
	client, err := rest.New(o)
	must(t, err)
	c, err := catalog.OpenREST("lake", client, catalog.RESTOptions{Local: s.Warehouse})
	must(t, err)
	return c
}

// TestConformance: what holds for every kind of catalog.
func TestConformance(t *testing.T) {
	for _, k := range append(slices.Clone(kinds), given()...) {
		t.Run(k.name, func(t *testing.T) {
			open := k.open(t)
			var all []changer
			openOne := func() changer {
				c := open()
				all = append(all, c)
				return c
			}
			t.Cleanup(func() {
				for _, c := range all {
					must(t, c.Close())
				}
			})
			c := openOne()
			other := openOne()
			meddler = func(n plan.TableName) error { return second(other.Commit(ctx, n, rows(`[{"id": 8}]`))) }
			for _, part := range []struct {
				name string
				run  func(*testing.T, kind, changer)
			}{
				{"Namespaces", namespaces},
				{"Tables", tables},
				{"Layout", layout},
				{"Alter", alter},
				{"Fill", fill},
				{"Replace", replace},
				{"Commits", commits},
				{"Refs", refs},
				{"Tags", tags},
				{"Views", views},
				{"MetadataTables", metadataTables},
				{"OddNames", oddNames},
			} {
				t.Run(part.name, func(t *testing.T) { part.run(t, k, c) })
			}
			t.Run("Writers", func(t *testing.T) { writers(t, openOne(), openOne()) })
		})
	}
}

func in(ns string, name string) plan.TableName {
	return plan.TableName{Catalog: "lake", Namespace: []string{ns}, Name: name}
}

func namespace(t testing.TB, c changer, ns ...string) {
	t.Helper()
	must(t, c.CreateNamespace(ctx, ns, nil, false))
}

func field(name string, t arrow.DataType) plan.Field { return plan.Field{Name: name, Type: t} }

var people = catalog.TableDefinition{Fields: []plan.Field{{Name: "id", Type: plan.Int64, Required: true}, field("ssn", plan.String), field("born", plan.Timestamp)}}

func made(t testing.TB, c changer, n plan.TableName, d catalog.TableDefinition) *plan.Table {
	t.Helper()
	out, created, err := c.CreateTable(ctx, n, d, catalog.CreateOptions{})
	must(t, err)
	if !created {
		t.Fatalf("%s was not created", n)
	}
	return out
}

func load(t testing.TB, c changer, n plan.TableName) *plan.Table {
	t.Helper()
	out, err := c.Table(ctx, n, plan.AsOf{}, "")
	must(t, err)
	return out
}

// rows appends rows, a JSON list of objects.
func rows(text string) catalog.TableChange {
	return func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		schema, err := table.SchemaToArrowSchema(t.Handle.(*catalog.Handle).Schema, nil, true, false)
		if err != nil {
			return err
		}
		r, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(text))
		if err != nil {
			return err
		}
		defer r.Release()
		data := array.NewTableFromRecords(schema, []arrow.RecordBatch{r})
		defer data.Release()
		return tx.AppendTable(ctx, data, 1000, nil)
	}
}

// counted reads the table and counts its rows.
func counted(t testing.TB, tb *plan.Table) int64 {
	t.Helper()
	h := tb.Handle.(*catalog.Handle)
	if h.Snapshot == nil {
		return 0
	}
	got, err := h.Table.Scan(table.WithSnapshotID(h.Snapshot.SnapshotID)).ToArrowTable(ctx)
	must(t, err)
	defer got.Release()
	return got.NumRows()
}

func namespaces(t *testing.T, k kind, c changer) {
	namespace(t, c, "n1")
	wants(t, "twice", c.CreateNamespace(ctx, []string{"n1"}, nil, false), fault.Exists)
	must(t, c.CreateNamespace(ctx, []string{"n1"}, nil, true))
	must(t, c.CreateNamespace(ctx, []string{"n1", "in"}, map[string]string{"k": "v", "x": "y"}, false))
	must(t, c.CreateNamespace(ctx, []string{"n1", "in", "side"}, nil, false))
	all, err := c.Namespaces(ctx)
	must(t, err)
	for _, want := range [][]string{{"n1"}, {"n1", "in"}, {"n1", "in", "side"}} {
		if !slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, want) }) {
			t.Errorf("%q is not among %q", want, all)
		}
	}
	must(t, c.UpdateNamespace(ctx, []string{"n1", "in"}, map[string]string{"k": "w", "n": "1"}, []string{"x"}))
	props, err := c.NamespaceProperties(ctx, []string{"n1", "in"})
	must(t, err)
	if props["k"] != "w" || props["n"] != "1" || props["x"] != "" {
		t.Error(props)
	}
	wants(t, "one that holds another", c.DropNamespace(ctx, []string{"n1"}, false), fault.BadStatement)
	made(t, c, plan.TableName{Catalog: "lake", Namespace: []string{"n1", "in", "side"}, Name: "t"}, people)
	wants(t, "one that holds a table", c.DropNamespace(ctx, []string{"n1", "in", "side"}, false), fault.BadStatement)
	_, err = c.DropTable(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"n1", "in", "side"}, Name: "t"}, true, false)
	must(t, err)
	for _, ns := range [][]string{{"n1", "in", "side"}, {"n1", "in"}, {"n1"}} {
		must(t, c.DropNamespace(ctx, ns, false))
	}
	wants(t, "missing", c.DropNamespace(ctx, []string{"n1"}, false), fault.NoDatabase)
	must(t, c.DropNamespace(ctx, []string{"n1"}, true))
	if all, err = c.Namespaces(ctx); err != nil || slices.ContainsFunc(all, func(ns []string) bool { return ns[0] == "n1" }) {
		t.Errorf("%q %v", all, err)
	}
	for _, err := range []error{
		second(c.Tables(ctx, []string{"n1"})), second(c.NamespaceProperties(ctx, []string{"n1"})),
		c.UpdateNamespace(ctx, []string{"n1"}, map[string]string{"a": "b"}, nil),
	} {
		if !fault.Is(err, fault.NoDatabase) && !fault.Is(err, fault.NotFound) {
			t.Errorf("a missing namespace: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func tables(t *testing.T, k kind, c changer) {
	namespace(t, c, "tables")
	n := in("tables", "t")
	tb := made(t, c, n, people)
	if tb.UUID == "" || tb.Version == "" || len(tb.Fields) != 3 || !tb.Fields[0].Required {
		t.Errorf("%+v", tb)
	}
	same := load(t, c, n)
	if same.UUID != tb.UUID || same.Version != tb.Version {
		t.Errorf("created %s, loaded %s", tb.Version, same.Version)
	}
	wants(t, "twice", third(c.CreateTable(ctx, n, people, catalog.CreateOptions{})), fault.Exists)
	kept, created, err := c.CreateTable(ctx, n, people, catalog.CreateOptions{IfTaken: catalog.Keep})
	if err != nil || created || kept.UUID != tb.UUID {
		t.Errorf("keep: %v %v", created, err)
	}
	wants(t, "no such namespace", third(c.CreateTable(ctx, in("nowhere", "t"), people, catalog.CreateOptions{})), fault.NoDatabase)
	wants(t, "no such table", second(c.Table(ctx, in("tables", "u"), plan.AsOf{}, "")), fault.NotFound)
	wants(t, "no such table in no namespace", second(c.Table(ctx, in("nowhere", "u"), plan.AsOf{}, "")), fault.NotFound)
	if names, err := c.Tables(ctx, []string{"tables"}); err != nil || !slices.Equal(names, []string{"t"}) {
		t.Errorf("%q %v", names, err)
	}
	made(t, c, in("tables", "other"), people)
	wants(t, "a name that is taken", c.RenameTable(ctx, n, in("tables", "other")), fault.Exists)
	wants(t, "a namespace that is not there", c.RenameTable(ctx, n, in("nowhere", "t")), fault.NoDatabase)
	wants(t, "a table that is not there", c.RenameTable(ctx, in("tables", "u"), in("tables", "v")), fault.NotFound)
	must(t, c.RenameTable(ctx, n, in("tables", "u")))
	if names, err := c.Tables(ctx, []string{"tables"}); err != nil || !slices.Equal(names, []string{"other", "u"}) {
		t.Errorf("%q %v", names, err)
	}
	if load(t, c, in("tables", "u")).UUID != tb.UUID {
		t.Error("another table after the rename")
	}
	wants(t, "the old name", second(c.Table(ctx, n, plan.AsOf{}, "")), fault.NotFound)
	p, err := c.DropTable(ctx, in("tables", "u"), true, false)
	if err != nil || k.purged && p.Deleted == 0 {
		t.Errorf("%+v %v", p, err)
	}
	wants(t, "dropped", second(c.DropTable(ctx, in("tables", "u"), false, false)), fault.NotFound)
	must(t, second(c.DropTable(ctx, in("tables", "u"), false, true)))
}

func layout(t *testing.T, _ kind, c changer) {
	namespace(t, c, "layout")
	d := catalog.TableDefinition{
		Fields: []plan.Field{
			{Name: "id", Type: plan.Int64, Required: true},
			field("at", plan.Timestamp), field("name", plan.String),
			{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: plan.Int32, Nullable: true}, arrow.Field{Name: "y", Type: plan.String, Nullable: true})},
			{Name: "l", Type: arrow.ListOf(plan.String)},
			{Name: "m", Type: arrow.MapOf(plan.String, plan.Int64)},
			field("amount", &arrow.Decimal128Type{Precision: 12, Scale: 3}), field("day", arrow.FixedWidthTypes.Date32), field("f", plan.Float64),
		},
		Identifiers: [][]string{{"id"}},
		Partitions:  []catalog.PartitionField{{Path: []string{"at"}, Transform: "day"}, {Path: []string{"name"}, Transform: "bucket", Arg: 4}, {Path: []string{"s", "x"}}},
		Sort:        []catalog.SortField{{Path: []string{"name"}, Desc: true, NullsFirst: true}},
		Properties:  map[string]string{"write.metadata.previous-versions-max": "7", "own": "1"},
		Comment:     "rows",
	}
	for _, version := range []int{2, 3} {
		d.FormatVersion = version
		tb := made(t, c, in("layout", fmt.Sprint("t", version)), d)
		got, err := catalog.DefinitionOf(load(t, c, tb.Name))
		must(t, err)
		text := func(d catalog.TableDefinition) string {
			b, err := json.Marshal([]any{d.Identifiers, d.Partitions, d.Sort, d.Comment, d.FormatVersion, d.Properties["own"]})
			must(t, err)
			return string(b)
		}
		want := d
		want.Partitions = slices.Clone(d.Partitions)
		for i, name := range []string{"at_day", "name_bucket", "s.x"} {
			want.Partitions[i].Name = name
		}
		want.Partitions[2].Transform, want.Sort = "identity", []catalog.SortField{{Path: []string{"name"}, Transform: "identity", Desc: true, NullsFirst: true}}
		if text(got) != text(want) {
			t.Errorf("%s\nwant %s", text(got), text(want))
		}
		for i, f := range got.Fields {
			if f.Name != d.Fields[i].Name || !arrow.TypeEqual(f.Type, load(t, c, tb.Name).Fields[i].Type) {
				t.Errorf("%+v", f)
			}
		}
	}
}

func alter(t *testing.T, _ kind, c changer) {
	namespace(t, c, "alter")
	n := in("alter", "t")
	before := made(t, c, n, people)
	tb, err := c.AlterTable(ctx, n, []catalog.Change{
		catalog.AddColumn{Path: []string{"note"}, Field: plan.Field{Type: plan.String, Doc: "free"}, Position: catalog.Position{After: "id"}},
		catalog.RenameColumn{Path: []string{"ssn"}, To: "social"},
		catalog.DropColumn{Path: []string{"born"}},
		catalog.AddPartition{Field: catalog.PartitionField{Path: []string{"id"}, Transform: "bucket", Arg: 8}},
		catalog.SetSort{Fields: []catalog.SortField{{Path: []string{"id"}}}},
		catalog.SetProperties{Properties: map[string]string{"a": "1", "b": "2"}},
		catalog.CommentTable{Comment: "c"},
	})
	must(t, err)
	var names []string
	for _, f := range load(t, c, n).Fields {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"id", "note", "social"}) || tb.UUID != before.UUID || tb.Version == before.Version || tb.Properties["b"] != "2" {
		t.Errorf("%q %+v", names, tb)
	}
	if old, _ := before.FieldNamed("ssn"); tb.Fields[2].ID != old.ID {
		t.Error("another field after a rename")
	}
	tb, err = c.AlterTable(ctx, n, []catalog.Change{
		catalog.RemoveProperties{Names: []string{"a"}},
		catalog.CommentTable{},
		catalog.DropPartition{Field: catalog.PartitionField{Path: []string{"id"}, Transform: "bucket", Arg: 8}},
		catalog.SetProperties{Properties: map[string]string{"format-version": "3"}},
	})
	must(t, err)
	d, err := catalog.DefinitionOf(load(t, c, n))
	must(t, err)
	if d.FormatVersion != 3 || d.Comment != "" || len(d.Partitions) != 0 || tb.Properties["a"] != "" {
		t.Errorf("%+v", d)
	}
	wants(t, "no such column", second(c.AlterTable(ctx, n, []catalog.Change{catalog.DropColumn{Path: []string{"x"}}})), fault.NoColumn)
	wants(t, "a place elsewhere", second(c.AlterTable(ctx, n, []catalog.Change{catalog.SetProperties{Properties: map[string]string{"write.data.path": "file:///etc"}}})), fault.BadStatement)
	wants(t, "no such table", second(c.AlterTable(ctx, in("alter", "x"), []catalog.Change{catalog.CommentTable{Comment: "x"}})), fault.NotFound)
}

func fill(t *testing.T, _ kind, c changer) {
	namespace(t, c, "fill")
	n := in("fill", "t")
	tb, created, err := c.CreateTable(ctx, n, people, catalog.CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, e *plan.Table) error {
		if _, err := c.Table(ctx, n, plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("it is there before it is filled: %v", err)
		}
		return rows(`[{"id": 1}, {"id": 2, "ssn": "x"}]`)(ctx, tx, e)
	}})
	must(t, err)
	if !created || counted(t, tb) != 2 || counted(t, load(t, c, n)) != 2 {
		t.Error("not two rows")
	}
	boom := fault.New(fault.OutOfRange, "boom")
	_, _, err = c.CreateTable(ctx, in("fill", "u"), people, catalog.CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, e *plan.Table) error {
		return errors.Join(rows(`[{"id": 1}]`)(ctx, tx, e), boom)
	}})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	wants(t, "what was not filled", second(c.Table(ctx, in("fill", "u"), plan.AsOf{}, "")), fault.NotFound)
}

func replace(t *testing.T, _ kind, c changer) {
	namespace(t, c, "replace")
	n := in("replace", "t")
	old := made(t, c, n, people)
	must(t, second(c.Commit(ctx, n, rows(`[{"id": 1}]`))))
	first := load(t, c, n)
	tb, created, err := c.CreateTable(ctx, n, catalog.TableDefinition{Fields: []plan.Field{field("id", plan.String), field("x", plan.Int32)}},
		catalog.CreateOptions{IfTaken: catalog.Replace, Fill: rows(`[{"id": "a", "x": 1}, {"id": "b"}, {"id": "c"}]`)})
	must(t, err)
	if !created || tb.UUID != old.UUID || counted(t, load(t, c, n)) != 3 || tb.Fields[0].ID == old.Fields[0].ID {
		t.Errorf("%v %+v", created, tb)
	}
	past, err := c.Table(ctx, n, plan.AsOf{Snapshot: first.SnapshotID}, "")
	must(t, err)
	if counted(t, past) != 1 || len(past.Fields) != 3 {
		t.Errorf("the past: %+v", past)
	}
}

func commits(t *testing.T, _ kind, c changer) {
	namespace(t, c, "commits")
	n := in("commits", "t")
	made(t, c, n, people)
	one, err := c.Commit(ctx, n, rows(`[{"id": 1}]`))
	must(t, err)
	two, err := c.Commit(ctx, n, rows(`[{"id": 2}, {"id": 3}]`))
	must(t, err)
	if counted(t, two) != 3 || counted(t, load(t, c, n)) != 3 || one.Version == two.Version {
		t.Error("not three rows")
	}
	past, err := c.Table(ctx, n, plan.AsOf{Snapshot: one.SnapshotID}, "")
	must(t, err)
	if counted(t, past) != 1 {
		t.Error("the past has changed")
	}
	same, err := c.Commit(ctx, n, func(context.Context, *table.Transaction, *plan.Table) error { return nil })
	if err != nil || same.Version != two.Version {
		t.Errorf("nothing staged: %v", err)
	}
	// Another writer is faster: the change is made anew on what it left.
	calls := 0
	tb, err := c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		if calls++; calls == 1 {
			must(t, meddler(n))
		}
		return rows(`[{"id": 9}]`)(ctx, tx, tb)
	})
	must(t, err)
	if calls != 2 || counted(t, tb) != 5 {
		t.Errorf("%d calls, %d rows", calls, counted(t, tb))
	}
	must(t, second(c.Rollback(ctx, n, plan.AsOf{Snapshot: one.SnapshotID})))
	if counted(t, load(t, c, n)) != 1 {
		t.Error("not rolled back")
	}
	wants(t, "no such table", second(c.Commit(ctx, in("commits", "x"), rows(`[{"id": 1}]`))), fault.NotFound)
}

// meddler commits a row as another process would: past the locks of this one.
var meddler func(plan.TableName) error

func refs(t *testing.T, _ kind, c changer) {
	namespace(t, c, "refs")
	n := in("refs", "t")
	made(t, c, n, people)
	one, err := c.Commit(ctx, n, rows(`[{"id": 1}]`))
	must(t, err)
	must(t, second(c.SetRef(ctx, n, catalog.Ref{Name: "dev", Branch: true}, catalog.CreateRef)))
	must(t, second(c.SetRef(ctx, n, catalog.Ref{Name: "v1"}, catalog.CreateRef)))
	wants(t, "twice", second(c.SetRef(ctx, n, catalog.Ref{Name: "v1"}, catalog.CreateRef)), fault.Exists)
	must(t, second(c.CommitBranch(ctx, n, "dev", rows(`[{"id": 2}]`))))
	must(t, second(c.Commit(ctx, n, rows(`[{"id": 3}, {"id": 4}]`))))
	for ref, want := range map[string]int64{"": 3, "main": 3, "dev": 2, "v1": 1} {
		at, err := c.Table(ctx, n, plan.AsOf{Ref: ref}, "")
		must(t, err)
		if got := counted(t, at); got != want {
			t.Errorf("%q has %d rows, want %d", ref, got, want)
		}
	}
	must(t, second(c.SetRef(ctx, n, catalog.Ref{Name: "v1", Snapshot: load(t, c, n).SnapshotID}, catalog.ReplaceRef)))
	must(t, second(c.SetCurrent(ctx, n, plan.AsOf{Snapshot: one.SnapshotID})))
	if counted(t, load(t, c, n)) != 1 {
		t.Error("another snapshot is current")
	}
	must(t, second(c.DropRef(ctx, n, "dev", true, false)))
	wants(t, "dropped", second(c.Table(ctx, n, plan.AsOf{Ref: "dev"}, "")), fault.BadStatement)
}

func tags(t *testing.T, _ kind, c changer) {
	namespace(t, c, "tags")
	n := in("tags", "t")
	d := people
	d.Tags = []catalog.TaggedPath{{Path: []string{"ssn"}, Tags: []plan.Tag{{Name: "PII", Attributes: map[string]string{"level": "high"}}}}}
	tb := made(t, c, n, d)
	ssn := func(tb *plan.Table) []plan.Tag {
		f, ok := tb.FieldNamed("ssn")
		if !ok {
			t.Fatal("no column ssn")
		}
		return tb.Tags[f.ID]
	}
	for _, x := range []*plan.Table{tb, load(t, c, n)} {
		if got := ssn(x); len(got) != 1 || got[0].Name != "PII" || got[0].Attributes["level"] != "high" {
			t.Errorf("%+v", x.Tags)
		}
	}
	_, err := c.AlterTable(ctx, n, []catalog.Change{catalog.AddColumn{Path: []string{"x"}, Field: plan.Field{Type: plan.Int32}}})
	must(t, err)
	if len(ssn(load(t, c, n))) != 1 {
		t.Error("the tag is lost")
	}
}

func views(t *testing.T, _ kind, c changer) {
	namespace(t, c, "views")
	n := in("views", "v")
	d := catalog.ViewDefinition{SQL: "SELECT 1 AS a", Fields: []plan.Field{field("a", plan.Int64)}, Comment: "one", Properties: map[string]string{"k": "v"}}
	created, err := c.CreateView(ctx, n, d, catalog.ViewOptions{})
	if err != nil || !created {
		t.Fatalf("%v %v", created, err)
	}
	v, err := c.View(ctx, n)
	must(t, err)
	if v.SQL != d.SQL || v.Catalog != "lake" || !slices.Equal(v.Namespace, []string{"views"}) || v.Properties["comment"] != "one" || v.Properties["k"] != "v" || len(v.Fields) != 1 || v.UUID == "" {
		t.Errorf("%+v", v)
	}
	wants(t, "twice", second(c.CreateView(ctx, n, d, catalog.ViewOptions{})), fault.Exists)
	if created, err := c.CreateView(ctx, n, d, catalog.ViewOptions{IfTaken: catalog.Keep}); err != nil || created {
		t.Errorf("keep: %v %v", created, err)
	}
	two := catalog.ViewDefinition{SQL: "SELECT 2 AS b, 'x' AS c", Fields: []plan.Field{field("b", plan.Int64), field("c", plan.String)}}
	must(t, second(c.CreateView(ctx, n, two, catalog.ViewOptions{IfTaken: catalog.Replace})))
	w, err := c.View(ctx, n)
	must(t, err)
	if w.SQL != two.SQL || w.UUID != v.UUID || w.Version == v.Version || len(w.Fields) != 2 || w.Properties["k"] != "" {
		t.Errorf("%+v", w)
	}
	// Back to what it was.
	must(t, second(c.CreateView(ctx, n, d, catalog.ViewOptions{IfTaken: catalog.Replace})))
	if w, err = c.View(ctx, n); err != nil || w.SQL != d.SQL {
		t.Errorf("%+v %v", w, err)
	}
	wants(t, "a view is no table", second(c.Table(ctx, n, plan.AsOf{}, "")), fault.NotFound)
	made(t, c, in("views", "t"), people)
	wants(t, "a table is no view", second(c.View(ctx, in("views", "t"))), fault.NotFound)
	wants(t, "a view in the place of a table", second(c.CreateView(ctx, in("views", "t"), d, catalog.ViewOptions{IfTaken: catalog.Replace})), fault.Exists)
	wants(t, "a table in the place of a view", third(c.CreateTable(ctx, n, people, catalog.CreateOptions{IfTaken: catalog.Replace})), fault.Exists)
	must(t, c.RenameView(ctx, n, in("views", "w")))
	if names, err := c.Views(ctx, []string{"views"}); err != nil || !slices.Equal(names, []string{"w"}) {
		t.Errorf("%q %v", names, err)
	}
	if names, err := c.Tables(ctx, []string{"views"}); err != nil || !slices.Equal(names, []string{"t"}) {
		t.Errorf("%q %v", names, err)
	}
	must(t, c.DropView(ctx, in("views", "w"), false))
	wants(t, "dropped", c.DropView(ctx, in("views", "w"), false), fault.NotFound)
	must(t, c.DropView(ctx, in("views", "w"), true))
	wants(t, "dropped", second(c.View(ctx, in("views", "w"))), fault.NotFound)
}

func metadataTables(t *testing.T, _ kind, c changer) {
	namespace(t, c, "meta")
	n := in("meta", "t")
	made(t, c, n, people)
	must(t, second(c.Commit(ctx, n, rows(`[{"id": 1}]`))))
	for _, m := range []string{"snapshots", "history", "refs", "files", "manifests", "partitions"} {
		tb, err := c.Table(ctx, n, plan.AsOf{}, m)
		must(t, err)
		if tb.Metadata != m || len(tb.Fields) == 0 {
			t.Errorf("%s: %+v", m, tb)
		}
	}
	wants(t, "no such metadata table", second(c.Table(ctx, n, plan.AsOf{}, "nothing")), fault.NotFound)
}

// oddNames: what can be named is found under that name and no other.
func oddNames(t *testing.T, k kind, c changer) {
	for _, odd := range []string{"with blank", "ünïcödé", "a.b", "50%", "sl/ash", "qu'ote", "plus+sign", "quest?ion", "ha#sh", "Upper", "a%2Eb", "semi;colon", "日本"} {
		ns := []string{"odd", odd}
		if _, err := c.NamespaceProperties(ctx, ns[:1]); err != nil {
			namespace(t, c, "odd")
		}
		err := c.CreateNamespace(ctx, ns, nil, false)
		if k.cannot != nil && k.cannot(odd) {
			if err == nil {
				_, _, err = c.CreateTable(ctx, plan.TableName{Catalog: "lake", Namespace: ns, Name: odd}, people, catalog.CreateOptions{})
			}
			wants(t, odd, err, fault.BadStatement)
			continue
		}
		must(t, err)
		all, err := c.Namespaces(ctx)
		must(t, err)
		if !slices.ContainsFunc(all, func(n []string) bool { return slices.Equal(n, ns) }) {
			t.Errorf("%q is not among %q", ns, all)
		}
		n := plan.TableName{Catalog: "lake", Namespace: ns, Name: odd}
		made(t, c, n, people)
		must(t, second(c.Commit(ctx, n, rows(`[{"id": 1}]`))))
		if names, err := c.Tables(ctx, ns); err != nil || !slices.Equal(names, []string{odd}) {
			t.Errorf("%q %v", names, err)
		}
		if counted(t, load(t, c, n)) != 1 {
			t.Errorf("%q has not one row", odd)
		}
	}
}

// writers: eight of them in two processes. Each commits or is told of a conflict,
// and nothing is lost or doubled.
func writers(t *testing.T, both ...changer) {
	namespace(t, both[0], "writers")
	n := in("writers", "t")
	made(t, both[0], n, people)
	var mu sync.Mutex
	done := map[int]bool{}
	conflicts := 0
	for round := range 6 {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				id := round*8 + w
				c := both[w%2]
				var err error
				if w == 7 && round%2 == 0 {
					_, err = c.AlterTable(ctx, n, []catalog.Change{catalog.AddColumn{Path: []string{fmt.Sprint("c", id)}, Field: field("", plan.Int32)}})
				} else {
					_, err = c.Commit(ctx, n, rows(fmt.Sprintf(`[{"id": %d}]`, id)))
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done[id] = true
				case fault.Is(err, fault.Conflict):
					conflicts++
				default:
					t.Errorf("%d: %v (%v)", id, err, errors.Unwrap(err))
				}
			})
		}
		wg.Wait()
	}
	if len(done)+conflicts != 48 || len(done) < 44 {
		t.Errorf("%d commits and %d conflicts", len(done), conflicts)
	}
	for _, c := range both {
		var got *plan.Table
		// The other process may see what was a moment ago.
		must(t, second(c.Commit(ctx, n, func(_ context.Context, _ *table.Transaction, now *plan.Table) error {
			got = now
			return nil
		})))
		var want int64
		for id := range done {
			if id%8 == 7 && id/8%2 == 0 {
				if _, ok := got.FieldNamed(fmt.Sprint("c", id)); !ok {
					t.Errorf("column %d is lost", id)
				}
			} else {
				want++
			}
		}
		if n := counted(t, got); n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}
}
