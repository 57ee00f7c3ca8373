package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

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
