package catalog

import (
	"slices"
	"testing"

	"sqe/fault"
	"sqe/plan"
)

func TestSplitDatabase(t *testing.T) {
	for text, want := range map[string][]string{
		"a": {"a"}, "a.b.c": {"a", "b", "c"}, `a\.b.c`: {"a.b", "c"}, `a\\.b`: {`a\`, "b"}, `\.`: {"."}, "ä.日本": {"ä", "日本"},
	} {
		got, err := SplitDatabase(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if back := JoinDatabase(want...); back != text {
			t.Errorf("%q joins to %q", want, back)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a..b", `a\`, `a\b`} {
		if got, err := SplitDatabase(text); !fault.Is(err, fault.NoDatabase) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func FuzzSplitDatabase(f *testing.F) {
	for _, s := range []string{"a.b", `a\.b`, `\\`, "", "..", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts, err := SplitDatabase(s)
		if err == nil && JoinDatabase(parts...) != s {
			t.Errorf("%q splits to %q, which joins to %q", s, parts, JoinDatabase(parts...))
		}
	})
}

// named is a catalog of which only the name is asked.
type named struct {
	Catalog
	name string
}

func (n named) Name() string { return n.name }
func (n named) Close() error { return nil }

func TestRegistry(t *testing.T) {
	r, err := NewRegistry(named{name: "lake"}, named{name: "other"}, named{name: "a.b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		database, catalog string
		namespace         []string
		back              string // "" is database
	}{
		{"bank", "lake", []string{"bank"}, ""},
		{"bank.eu", "lake", []string{"bank", "eu"}, ""},
		{"lake.bank", "lake", []string{"bank"}, "bank"},
		{"other.bank.eu", "other", []string{"bank", "eu"}, ""},
		{"other", "lake", []string{"other"}, ""}, // one part is never a catalog
		{"lake.other.x", "lake", []string{"other", "x"}, ""},
		{"lake.lake", "lake", []string{"lake"}, "lake"},
		{"lake.lake.lake", "lake", []string{"lake", "lake"}, ""},
		{`a\.b.x`, "a.b", []string{"x"}, ""},
		{"a.b.x", "lake", []string{"a", "b", "x"}, ""},
	} {
		name, cat, err := r.Resolve(c.database, "t")
		if err != nil {
			t.Errorf("%s: %v", c.database, err)
			continue
		}
		want := plan.TableName{Catalog: c.catalog, Namespace: c.namespace, Name: "t"}
		if name.Key() != want.Key() || cat.Name() != c.catalog {
			t.Errorf("%s: %v in %s, want %v", c.database, name, cat.Name(), want)
		}
		back := c.back
		if back == "" {
			back = c.database
		}
		if got := r.Database(name.Catalog, name.Namespace); got != back {
			t.Errorf("%s: Database gives %q, want %q", c.database, got, back)
		}
	}
	if _, _, err := r.Resolve("", "t"); !fault.Is(err, fault.NoDatabase) {
		t.Errorf("no database: %v", err)
	}
	if _, _, err := r.Resolve("a", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("no name: %v", err)
	}
	for _, list := range [][]Catalog{nil, {named{}}, {named{name: "x"}, named{name: "x"}}} {
		if _, err := NewRegistry(list...); !fault.Is(err, fault.Config) {
			t.Errorf("%v: %v", list, err)
		}
	}
	if _, ok := r.Get("none"); ok || len(r.All()) != 3 || r.Default().Name() != "lake" {
		t.Error("Get, All or Default")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
