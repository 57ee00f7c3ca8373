package catalogstest

import (
	"errors"
	"slices"
	"testing"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

func (s *suite) namespaces(t *testing.T) {
	namespace(t, s.c, "n1")
	wants(t, "twice", s.c.CreateNamespace(ctx, []string{"n1"}, nil, false), fault.Exists)
	must(t, s.c.CreateNamespace(ctx, []string{"n1"}, nil, true))
	must(t, s.c.CreateNamespace(ctx, []string{"n1", "in"}, map[string]string{"k": "v", "x": "y"}, false))
	must(t, s.c.CreateNamespace(ctx, []string{"n1", "in", "side"}, nil, false))
	all, err := s.c.Namespaces(ctx)
	must(t, err)
	for _, want := range [][]string{{"n1"}, {"n1", "in"}, {"n1", "in", "side"}} {
		if !slices.ContainsFunc(all, func(ns []string) bool { return slices.Equal(ns, want) }) {
			t.Errorf("%q is not among %q", want, all)
		}
	}
	for _, x := range []struct {
		parent, in []string
		among      bool // others may be there
	}{{nil, []string{"n1"}, true}, {[]string{"n1"}, []string{"n1", "in"}, false}, {[]string{"n1", "in"}, []string{"n1", "in", "side"}, false}} {
		got, err := s.c.NamespacesIn(ctx, x.parent)
		must(t, err)
		if !slices.ContainsFunc(got, func(ns []string) bool { return slices.Equal(ns, x.in) }) || !x.among && len(got) != 1 ||
			slices.ContainsFunc(got, func(ns []string) bool { return len(ns) != len(x.in) }) {
			t.Errorf("in %q there are %q", x.parent, got)
		}
	}
	for _, parent := range [][]string{{"n1", "in", "side"}, {"n2"}} {
		if got, err := s.c.NamespacesIn(ctx, parent); err != nil || len(got) > 0 {
			t.Errorf("in %q there are %q: %v", parent, got, err)
		}
	}
	must(t, s.c.UpdateNamespace(ctx, []string{"n1", "in"}, map[string]string{"k": "w", "n": "1"}, []string{"x"}))
	props, err := s.c.NamespaceProperties(ctx, []string{"n1", "in"})
	must(t, err)
	if props["k"] != "w" || props["n"] != "1" || props["x"] != "" {
		t.Error(props)
	}
	wants(t, "one that holds another", s.c.DropNamespace(ctx, []string{"n1"}, false), fault.BadStatement)
	made(t, s.c, plan.TableName{Catalog: "lake", Namespace: []string{"n1", "in", "side"}, Name: "t"}, people)
	wants(t, "one that holds a table", s.c.DropNamespace(ctx, []string{"n1", "in", "side"}, false), fault.BadStatement)
	_, err = s.c.DropTable(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"n1", "in", "side"}, Name: "t"}, true)
	must(t, err)
	for _, ns := range [][]string{{"n1", "in", "side"}, {"n1", "in"}, {"n1"}} {
		must(t, s.c.DropNamespace(ctx, ns, false))
	}
	wants(t, "missing", s.c.DropNamespace(ctx, []string{"n1"}, false), fault.NoDatabase)
	must(t, s.c.DropNamespace(ctx, []string{"n1"}, true))
	if all, err = s.c.Namespaces(ctx); err != nil || slices.ContainsFunc(all, func(ns []string) bool { return ns[0] == "n1" }) {
		t.Errorf("%q %v", all, err)
	}
	// A catalog may say of a missing namespace that it holds nothing.
	if names, err := s.c.Tables(ctx, []string{"n1"}); len(names) > 0 || err != nil && !fault.Is(err, fault.NoDatabase) && !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing namespace holds %q: %v", names, err)
	}
	for _, err := range []error{
		second(s.c.NamespaceProperties(ctx, []string{"n1"})),
		s.c.UpdateNamespace(ctx, []string{"n1"}, map[string]string{"a": "b"}, nil),
	} {
		if !fault.Is(err, fault.NoDatabase) && !fault.Is(err, fault.NotFound) {
			t.Errorf("a missing namespace: %v", err)
		}
	}
}

func (s *suite) tables(t *testing.T) {
	namespace(t, s.c, "tables")
	n := in("tables", "t")
	tb := made(t, s.c, n, people)
	if tb.UUID == "" || tb.Version == "" || len(tb.Fields) != 3 || !tb.Fields[0].Required {
		t.Errorf("%+v", tb)
	}
	same := load(t, s.c, n)
	if same.UUID != tb.UUID || same.Version != tb.Version {
		t.Errorf("created %s, loaded %s", tb.Version, same.Version)
	}
	wants(t, "twice", third(s.c.CreateTable(ctx, n, people, catalog.CreateOptions{})), fault.Exists)
	kept, created, err := s.c.CreateTable(ctx, n, people, catalog.CreateOptions{IfTaken: catalog.Keep})
	if err != nil || created || kept.UUID != tb.UUID {
		t.Errorf("keep: %v %v", created, err)
	}
	wants(t, "no such namespace", third(s.c.CreateTable(ctx, in("nowhere", "t"), people, catalog.CreateOptions{})), fault.NoDatabase)
	wants(t, "no such table", second(s.c.Table(ctx, in("tables", "u"), plan.AsOf{}, "")), fault.NotFound)
	wants(t, "no such table in no namespace", second(s.c.Table(ctx, in("nowhere", "u"), plan.AsOf{}, "")), fault.NotFound)
	if names, err := s.c.Tables(ctx, []string{"tables"}); err != nil || !slices.Equal(names, []string{"t"}) {
		t.Errorf("%q %v", names, err)
	}
	made(t, s.c, in("tables", "other"), people)
	wants(t, "a name that is taken", s.c.RenameTable(ctx, n, in("tables", "other")), fault.Exists)
	wants(t, "a namespace that is not there", s.c.RenameTable(ctx, n, in("nowhere", "t")), fault.NoDatabase)
	wants(t, "a table that is not there", s.c.RenameTable(ctx, in("tables", "u"), in("tables", "v")), fault.NotFound)
	must(t, s.c.RenameTable(ctx, n, in("tables", "u")))
	if names, err := s.c.Tables(ctx, []string{"tables"}); err != nil || !slices.Equal(names, []string{"other", "u"}) {
		t.Errorf("%q %v", names, err)
	}
	if load(t, s.c, in("tables", "u")).UUID != tb.UUID {
		t.Error("another table after the rename")
	}
	wants(t, "the old name", second(s.c.Table(ctx, n, plan.AsOf{}, "")), fault.NotFound)
	p, err := s.c.DropTable(ctx, in("tables", "u"), true)
	if err != nil || s.Purged && p.Deleted == 0 {
		t.Errorf("%+v %v", p, err)
	}
	wants(t, "dropped", second(s.c.DropTable(ctx, in("tables", "u"), false)), fault.NotFound)
}

func (s *suite) views(t *testing.T) {
	namespace(t, s.c, "views")
	n := in("views", "v")
	d := catalog.ViewDefinition{SQL: "SELECT 1 AS a", Fields: []plan.Field{field("a", plan.Int64)}, Comment: "one", Properties: map[string]string{"k": "v"}}
	created, err := s.c.CreateView(ctx, n, d, catalog.ViewOptions{})
	if err != nil || !created {
		t.Fatalf("%v %v", created, err)
	}
	v, err := s.c.View(ctx, n)
	must(t, err)
	if v.SQL != d.SQL || v.Catalog != "lake" || !slices.Equal(v.Namespace, []string{"views"}) || v.Properties["comment"] != "one" || v.Properties["k"] != "v" || len(v.Fields) != 1 || v.UUID == "" {
		t.Errorf("%+v", v)
	}
	wants(t, "twice", second(s.c.CreateView(ctx, n, d, catalog.ViewOptions{})), fault.Exists)
	if created, err := s.c.CreateView(ctx, n, d, catalog.ViewOptions{IfTaken: catalog.Keep}); err != nil || created {
		t.Errorf("keep: %v %v", created, err)
	}
	two := catalog.ViewDefinition{SQL: "SELECT 2 AS b, 'x' AS c", Fields: []plan.Field{field("b", plan.Int64), field("c", plan.String)}}
	must(t, second(s.c.CreateView(ctx, n, two, catalog.ViewOptions{IfTaken: catalog.Replace})))
	w, err := s.c.View(ctx, n)
	must(t, err)
	if w.SQL != two.SQL || w.UUID != v.UUID || w.Version == v.Version || len(w.Fields) != 2 || w.Properties["k"] != "" {
		t.Errorf("%+v", w)
	}
	// Back to what it was.
	must(t, second(s.c.CreateView(ctx, n, d, catalog.ViewOptions{IfTaken: catalog.Replace})))
	if w, err = s.c.View(ctx, n); err != nil || w.SQL != d.SQL {
		t.Errorf("%+v %v", w, err)
	}
	wants(t, "a view is no table", second(s.c.Table(ctx, n, plan.AsOf{}, "")), fault.NotFound)
	made(t, s.c, in("views", "t"), people)
	wants(t, "a table is no view", second(s.c.View(ctx, in("views", "t"))), fault.NotFound)
	wants(t, "a view in the place of a table", second(s.c.CreateView(ctx, in("views", "t"), d, catalog.ViewOptions{IfTaken: catalog.Replace})), fault.Exists)
	wants(t, "a table in the place of a view", third(s.c.CreateTable(ctx, n, people, catalog.CreateOptions{IfTaken: catalog.Replace})), fault.Exists)
	must(t, s.c.RenameView(ctx, n, in("views", "w")))
	if names, err := s.c.Views(ctx, []string{"views"}); err != nil || !slices.Equal(names, []string{"w"}) {
		t.Errorf("%q %v", names, err)
	}
	if names, err := s.c.Tables(ctx, []string{"views"}); err != nil || !slices.Equal(names, []string{"t"}) {
		t.Errorf("%q %v", names, err)
	}
	must(t, s.c.DropView(ctx, in("views", "w"), false))
	wants(t, "dropped", s.c.DropView(ctx, in("views", "w"), false), fault.NotFound)
	must(t, s.c.DropView(ctx, in("views", "w"), true))
	wants(t, "dropped", second(s.c.View(ctx, in("views", "w"))), fault.NotFound)
}

func (s *suite) metadataTables(t *testing.T) {
	namespace(t, s.c, "meta")
	n := in("meta", "t")
	made(t, s.c, n, people)
	must(t, second(s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))))
	for _, m := range []string{"snapshots", "history", "refs", "files", "manifests", "partitions"} {
		tb, err := s.c.Table(ctx, n, plan.AsOf{}, m)
		must(t, err)
		if tb.Metadata != m || len(tb.Fields) == 0 {
			t.Errorf("%s: %+v", m, tb)
		}
	}
	wants(t, "no such metadata table", second(s.c.Table(ctx, n, plan.AsOf{}, "nothing")), fault.NotFound)
}

// oddNames: what can be named is found under that name and no other.
func (s *suite) oddNames(t *testing.T) {
	for _, odd := range []string{"with blank", "ünïcödé", "a.b", "50%", "sl/ash", "qu'ote", "plus+sign", "quest?ion", "ha#sh", "Upper", "a%2Eb", "semi;colon", "日本"} {
		if s.Unusable != nil && s.Unusable(odd) {
			continue
		}
		ns := []string{"odd", odd}
		if _, err := s.c.NamespaceProperties(ctx, ns[:1]); err != nil {
			namespace(t, s.c, "odd")
		}
		err := s.c.CreateNamespace(ctx, ns, nil, false)
		n := plan.TableName{Catalog: "lake", Namespace: ns, Name: odd}
		if s.Refuses != nil && s.Refuses(odd) {
			if err == nil {
				_, _, err = s.c.CreateTable(ctx, n, people, catalog.CreateOptions{})
			}
			if err == nil {
				err = second(s.c.Commit(ctx, n, Rows(`[{"id": 1}]`)))
			}
			if !fault.Is(err, fault.BadStatement) && !fault.Is(err, fault.Corrupt) {
				t.Errorf("%q: %v (%v)", odd, err, errors.Unwrap(err))
			}
			continue
		}
		must(t, err)
		all, err := s.c.Namespaces(ctx)
		must(t, err)
		if !slices.ContainsFunc(all, func(n []string) bool { return slices.Equal(n, ns) }) {
			t.Errorf("%q is not among %q", ns, all)
		}
		made(t, s.c, n, people)
		must(t, second(s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))))
		if names, err := s.c.Tables(ctx, ns); err != nil || !slices.Equal(names, []string{odd}) {
			t.Errorf("%q %v", names, err)
		}
		if counted(t, load(t, s.c, n)) != 1 {
			t.Errorf("%q has not one row", odd)
		}
	}
}
