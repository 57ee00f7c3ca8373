package grants

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sqe/fault"
)

//go:embed testdata/fixtures.json
var fixtures []byte

func object(parts []string) Object {
	o := Object{Catalog: parts[0]}
	if len(parts) > 1 {
		o.Namespace = parts[1:2]
	}
	if len(parts) > 2 {
		o.Name = parts[2]
	}
	return o
}

// TestFixtures: the plans that every system that shares the profile must make.
func TestFixtures(t *testing.T) {
	var doc struct {
		Fixtures []struct {
			Privilege string
			Object    []string
			Policies  []struct {
				Resource map[string]string
				Types    []string
			}
		}
		Rejects []struct {
			Privilege string
			Object    []string
			Binds     string
		}
	}
	if err := json.Unmarshal(fixtures, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Fixtures) != 26 || len(doc.Rejects) != 9 || the().Version != 5 {
		t.Fatalf("%d fixtures, %d rejects of version %d", len(doc.Fixtures), len(doc.Rejects), the().Version)
	}
	for _, f := range doc.Fixtures {
		name := f.Privilege + " on " + strings.Join(f.Object, ".")
		_, steps, err := Plan(Any, f.Privilege, object(f.Object))
		if err != nil || len(steps) != len(f.Policies) {
			t.Errorf("%s: %d steps, %v", name, len(steps), err)
			continue
		}
		for i, want := range f.Policies {
			got := steps[i]
			if text(got.Resource.Elements()) != text(want.Resource) || !slices.Equal(got.Types, want.Types) || got.Named != (i == len(steps)-1) {
				t.Errorf("%s, step %d: %+v\nwant %+v", name, i, got, want)
			}
		}
	}
	for _, r := range doc.Rejects {
		name := r.Privilege + " on " + strings.Join(r.Object, ".")
		_, steps, err := Plan(Any, r.Privilege, object(r.Object))
		if !fault.Is(err, fault.BadStatement) || !strings.Contains(err.Error(), "privilege on a "+r.Binds) || steps != nil {
			t.Errorf("%s: %v, %v", name, steps, err)
		}
	}
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestProfile(t *testing.T) {
	if n := len(Privileges()); n != 15 {
		t.Errorf("%d privileges", n)
	}
	if n := len(Aliases()); n != 13 {
		t.Errorf("%d aliases", n)
	}
	if n := len(the().Implies); n != 69 {
		t.Errorf("%d access types", n)
	}
	for a, to := range Aliases() {
		if got, err := Canonical(strings.ToLower(a)); err != nil || got != to {
			t.Errorf("%s is %s, %v", a, got, err)
		}
	}
	if got, err := Canonical("  create \n  schema "); err != nil || got != "CREATE NAMESPACE" {
		t.Errorf("%q, %v", got, err)
	}
	for _, none := range []string{"", "OWNERSHIP", "SELECT INSERT", "GRANT OPTION"} {
		if _, err := Canonical(none); !fault.Is(err, fault.BadStatement) {
			t.Errorf("%q: %v", none, err)
		}
	}
	for name, s := range the().Privileges {
		for _, l := range []Level{CatalogLevel, NamespaceLevel, TableLevel} {
			for _, x := range append(s.of(l), s.Exclude...) {
				if _, ok := the().Implies[x]; !ok {
					t.Errorf("%s: the access type %s is unknown", name, x)
				}
			}
		}
	}
}

// TestNested: namespaces inside others, as Polaris asks for them.
func TestNested(t *testing.T) {
	for _, c := range []struct {
		privilege string
		object    Object
		want      string
	}{
		{
			"SELECT",
			Object{Catalog: "wh", Namespace: []string{"sales", "eu"}, Name: "orders"},
			"catalog=wh: namespace-list; catalog=wh, namespace=sales: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=sales/eu: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=sales, table=eu/orders: table-data-read table-list table-properties-read",
		},
		{
			"SELECT",
			Object{Catalog: "wh", Namespace: []string{"a", "b", "c"}, Name: Any},
			"catalog=wh: namespace-list; catalog=wh, namespace=a: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=a/b: namespace-list namespace-properties-read; catalog=wh, namespace=a/b/c: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=a, table=b/c/*: table-data-read table-list table-properties-read",
		},
		{
			"CREATE",
			Object{Catalog: "wh", Namespace: []string{"sales", "eu"}},
			"catalog=wh: namespace-list; catalog=wh, namespace=sales: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=sales/eu: namespace-list namespace-properties-read table-create table-list",
		},
		{
			"SELECT",
			Object{Catalog: "wh", Namespace: []string{Any}, Name: Any},
			"catalog=wh: namespace-list; catalog=wh, namespace=*: namespace-list namespace-properties-read; " +
				"catalog=wh, namespace=*, table=*: table-data-read table-list table-properties-read",
		},
		{
			"SELECT",
			Object{Catalog: "wh", Namespace: []string{"a.b"}, Name: "v", View: true},
			"catalog=wh: namespace-list; catalog=wh, namespace=a.b: namespace-list namespace-properties-read view-list; " +
				"catalog=wh, namespace=a.b, table=v: view-list view-properties-read",
		},
	} {
		_, steps, err := Plan(Any, c.privilege, c.object)
		var got []string
		for _, s := range steps {
			got = append(got, s.Resource.String()+": "+strings.Join(s.Types, " "))
		}
		if text := strings.Join(got, "; "); err != nil || text != c.want {
			t.Errorf("%s on %s: %s, %v", c.privilege, c.object, text, err)
		}
		if back := steps[len(steps)-1].Resource.Object(); back.String() != c.object.String() {
			t.Errorf("%s comes back as %s", c.object, back)
		}
	}
}

func TestRefusedNames(t *testing.T) {
	for _, o := range []Object{
		{},
		{Catalog: "wh", Name: "t"},
		{Catalog: "w*", Namespace: []string{"n"}},
		{Catalog: "wh", Namespace: []string{"a/b"}},
		{Catalog: "wh", Namespace: []string{"a", ""}, Name: "t"},
		{Catalog: "wh", Namespace: []string{"a", Any}, Name: Any},
		{Catalog: "wh", Namespace: []string{Any}, Name: "t"},
		{Catalog: "wh", Namespace: []string{"n"}, Name: "a b"},
		{Catalog: "wh", Namespace: []string{"n"}, Name: "{USER}"},
		{Catalog: "wh", Namespace: []string{"n"}, Name: `a\b`},
	} {
		if _, steps, err := Plan(Any, "SELECT", o); !fault.Is(err, fault.BadStatement) || steps != nil {
			t.Errorf("%+v: %v, %v", o, steps, err)
		}
	}
	for _, p := range []string{"INSERT", "ALTER", "APPLY POLICY", "MONITOR"} {
		if _, _, err := Plan(Any, p, Object{Catalog: "wh", Namespace: []string{"n"}, Name: "v", View: true}); !fault.Is(err, fault.BadStatement) {
			t.Errorf("%s on a view: %v", p, err)
		}
	}
}
