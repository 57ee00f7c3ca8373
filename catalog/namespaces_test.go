package catalog

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"sqe/fault"
)

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
	wants(t, "the mark", c.UpdateNamespace(ctx, []string{"ns"}, map[string]string{"exists": "x"}, nil), fault.BadStatement, "catalog")
	wants(t, "the mark", c.UpdateNamespace(ctx, []string{"ns"}, nil, []string{"exists"}), fault.BadStatement, "catalog")
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
	_, err = c.DropTable(ctx, name("ns", "t"), false)
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
