package rangerclient

import (
	"slices"
	"testing"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// learned are the tables of which nothing but the names is known, and those loaded that
// Unknown asks for, until it asks for none.
func learned(t testing.TB, st *State, tables []*plan.Table) (known []*plan.Table, loaded int) {
	t.Helper()
	full := map[string]*plan.Table{}
	for _, x := range tables {
		full[x.Name.Key()] = x
		if st.NamesTablesOf(x.Name.Catalog, x.Name.Namespace) {
			known = append(known, &plan.Table{Name: x.Name})
		}
	}
	for {
		next := st.Unknown(known)
		if len(next) == 0 {
			return known, loaded
		}
		for _, x := range next {
			i := slices.Index(known, x)
			if i < 0 || len(x.Fields) > 0 {
				t.Fatalf("%s is not one of the unknown tables", x.Name)
			}
			known[i] = full[x.Name.Key()]
			loaded++
		}
	}
}

// TestReach: what is found silent with all tables loaded is found with those that are
// asked for, and these are not more than policies name columns of.
func TestReach(t *testing.T) {
	tables := func() []*plan.Table {
		var out []*plan.Table
		for _, ns := range []string{"s", "other"} {
			for i := range 100 {
				x := table("c."+ns+".t"+string(rune('a'+i/10))+string(rune('0'+i%10)), "id", "email")
				out = append(out, x)
			}
		}
		out[57] = table("c.s.tf7", "id", "phone")
		return out
	}
	deny := func(b *build, res string) {
		b.policy(&b.data, model.AccessPolicy, res).DenyPolicyItems = []*model.Item{item("ann", "select")}
	}
	for _, x := range []struct {
		name, typ      string
		make           func(b *build)
		silent, loaded int
		named, other   bool
	}{
		{"nothing", "hive", func(b *build) { b.tagMask("PII", "ann: MASK") }, 0, 0, false, false},
		{"rows", "hive", func(b *build) {
			b.filter(&b.data, "database=s table=ta0|none", "", "ann: 1 = 0")
		}, 1, 0, true, false},
		{"every column", "trino", func(b *build) { b.mask("catalog=c schema=s table=t* column=*", "ann: MASK") }, 0, 0, true, false},
		{"columns of a table", "hive", func(b *build) {
			b.mask("database=s table=ta0|tb1 column=email|none", "ann: MASK")
		}, 2, 2, true, false},
		{"a column of every table", "trino", func(b *build) { b.mask("catalog=c schema=* table=* column=email", "ann: MASK") }, 0, fewTables, true, true},
		{"a column of one table of many", "trino", func(b *build) { b.mask("catalog=c schema=s table=* column=phone", "ann: MASK") }, 0, 4 * fewTables, true, false},
		{"a column of none", "trino", func(b *build) { b.mask("catalog=c schema=s table=* column=none", "ann: MASK") }, 1, 100, true, false},
		{"a denied column", "trino", func(b *build) { deny(b, "catalog=c schema=other table=ta1 column=none") }, 1, 1, false, true},
		{"an allowed column", "trino", func(b *build) {
			b.policy(&b.data, model.AccessPolicy, "catalog=c schema=other table=ta1 column=none").PolicyItems = []*model.Item{item("ann", "select")}
		}, 0, 0, false, false},
	} {
		b := newBuild(t)
		b.typ = x.typ
		x.make(b)
		st, all := b.state(Options{}), tables()
		known, loaded := learned(t, st, all)
		full, got := found(st, policy.Silent, all...), found(st, policy.Silent, known...)
		if !slices.Equal(full, got) || len(got) != x.silent || loaded != x.loaded {
			t.Errorf("%s: %q with %d tables, %q with all; want %d with %d", x.name, got, loaded, full, x.silent, x.loaded)
		}
		if any := st.NamesTablesOf("", nil); any != (x.named || x.other) || st.NamesTablesOf("c", []string{"s"}) != x.named || st.NamesTablesOf("c", []string{"other"}) != x.other {
			t.Errorf("%s: names tables: %v", x.name, any)
		}
	}
	// What the policy server tags is compared as well.
	b := newBuild(t)
	st := b.serverTags(Options{}, map[string]string{"database=s table=ta0 column=none": "PII"})
	if known, loaded := learned(t, st, tables()); loaded != 1 || len(found(st, policy.Silent, known...)) != 1 {
		t.Errorf("tagged: %d loaded, %q", loaded, found(st, policy.Silent, known...))
	}
}

// TestReachOfMany: the same of a large installation, with patterns that stand for nothing.
func TestReachOfMany(t *testing.T) {
	for _, typ := range []string{"hive", "trino"} {
		st, tables := manyTables(t, typ, 1000, 300)
		known, loaded := learned(t, st, tables)
		full, got := found(st, policy.Silent, tables...), found(st, policy.Silent, known...)
		if len(full) == 0 || !slices.Equal(full, got) {
			t.Errorf("%s: %d findings with all tables, %d with %d", typ, len(full), len(got), loaded)
		}
	}
}

// TestUnknownColumns: nothing is said of the columns of a table that could not be loaded.
func TestUnknownColumns(t *testing.T) {
	b := newBuild(t)
	b.typ = "trino"
	b.mask("catalog=c schema=s table=t column=none", "ann: MASK")
	b.mask("catalog=c schema=s table=t* column=nowhere", "ann: MASK")
	st := b.state(Options{})
	if got := found(st, policy.Silent, table("c.s.t", "id"), table("c.s.t2", "id")); len(got) != 2 {
		t.Errorf("both known: %q", got)
	}
	if got := found(st, policy.Silent, &plan.Table{Name: table("c.s.t").Name}, table("c.s.t2", "id")); len(got) != 0 {
		t.Errorf("one unknown: %q", got)
	}
}
