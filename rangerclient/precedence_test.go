package rangerclient

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// grid is a table of docs/policies.md: the names of rows (one cell or several) and
// columns, and what stands where they cross.
type grid struct {
	columns []string
	rows    [][]string
	keys    int // leading cells of a row that name it
}

// readGrid reads the first table behind the line that holds the title. Cells may
// end in the number of a remark, "(3)".
func readGrid(t *testing.T, title string, keys int) grid {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, ok := strings.Cut(string(text), title)
	if !ok {
		t.Fatalf("docs/policies.md has no table %q", title)
	}
	g := grid{keys: keys}
	for _, line := range strings.Split(behind, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			if len(g.rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			c, _, _ = strings.Cut(strings.TrimSpace(c), " (")
			cells = append(cells, strings.ReplaceAll(c, "`", ""))
		}
		switch {
		case strings.HasPrefix(line, "|---"):
		case g.columns == nil:
			g.columns = cells[keys:]
		default:
			g.rows = append(g.rows, cells)
		}
	}
	return g
}

// each calls fn for every cell, after making sure that the table has exactly these
// rows and columns.
func (g grid) each(t *testing.T, rows, columns []string, fn func(row []string, column, want string)) {
	t.Helper()
	var have []string
	for _, r := range g.rows {
		have = append(have, strings.Join(r[:g.keys], ", "))
		if len(r) != g.keys+len(g.columns) {
			t.Fatalf("row %q has %d cells", r, len(r))
		}
	}
	if !slices.Equal(have, rows) || !slices.Equal(g.columns, columns) {
		t.Fatalf("rows %q and columns %q, want %q and %q", have, g.columns, rows, columns)
	}
	for _, r := range g.rows {
		for i, c := range g.columns {
			fn(r[:g.keys], c, r[g.keys+i])
		}
	}
}

// sides are what one side may say of a column, in the order of the tables.
var sides = []string{"nothing", "a mask", "MASK_NONE", "a denial", "a mask that cannot be built", "a mask that cannot be decided"}

// side adds to list the policy of one side that says so to ann.
func (b *build) side(list *[]*model.Policy, says, res, prefix, mask string) *model.Policy {
	text := ""
	switch says {
	case "nothing":
		return nil
	case "a denial":
		p := b.policy(list, model.AccessPolicy, res)
		p.DenyPolicyItems = []*model.Item{item("ann", prefix+"select")}
		return p
	case "a mask", "a mask that cannot be decided":
		text = mask
	case "MASK_NONE":
		text = "MASK_NONE"
	case "a mask that cannot be built":
		text = "MASK_OF_TOMORROW"
	default:
		b.t.Fatalf("no side says %q", says)
	}
	p := b.policy(list, model.MaskPolicy, res)
	p.DataMaskPolicyItems = maskItems(prefix, []string{"ann: " + text})
	if says == "a mask that cannot be decided" {
		p.DataMaskPolicyItems[0].Conditions = []model.Condition{{Type: "no-such"}}
	}
	return p
}

const (
	tagsMask      = "MASK_HASH"
	resourcesMask = "MASK_SHOW_LAST_4"
)

// cell is what becomes of the column a in words of the tables.
func cell(t *testing.T, st policy.State, user string, tab *plan.Table) string {
	t.Helper()
	r := restrict(t, st, user, tab)
	if r.Refuse != "" {
		return "refused"
	}
	rule, ok := r.Columns[1]
	if _, other := r.Columns[2]; other {
		t.Error("the rule is on another column too")
	}
	switch {
	case !ok:
		return "raw"
	case rule.Kind == policy.Forbid:
		return "withheld"
	case rule.Action == tagsMask && rule.Origin.Tag == "T":
		return "the tag's"
	case rule.Action == resourcesMask && rule.Origin.Tag == "":
		return "the resource's"
	}
	return fmt.Sprintf("%+v", rule)
}

// places are where a tag is kept, and kinds of data services: neither changes
// what acts.
func places(t *testing.T, make func(typ string) *build, o Options, tags map[string]string, fn func(where string, st policy.State, tab *plan.Table)) {
	t.Helper()
	for typ, res := range map[string]string{"hive": "database=s table=t", "trino": "catalog=c schema=s table=t"} {
		b := make(typ)
		ids := map[int][]plan.Tag{}
		server := map[string]string{}
		for column, tag := range tags {
			id := 0
			if column != "" {
				id = int(column[0]-'a') + 1
				server[res+" column="+column] = tag
			} else {
				server[res] = tag
			}
			ids[id] = []plan.Tag{{Name: tag}}
		}
		tab := table("c.s.t", "a", "b")
		tab.Tags = ids
		fn(typ+", tags of the table", b.state(o), tab)
		fn(typ+", tags of the policy server", b.serverTags(o, server), table("c.s.t", "a", "b"))
	}
}

func onColumn(typ string) string {
	if typ == "trino" {
		return "catalog=c schema=s table=t column=a"
	}
	return "database=s table=t column=a"
}

// TestColumnPrecedence holds the tables of docs/policies.md against what happens.
func TestColumnPrecedence(t *testing.T) {
	for title, o := range map[string]Options{
		"`mask-precedence = \"tag\"`, the default":                   {},
		"`mask-precedence = \"resource\"`: what becomes of a column": {MaskPrecedence: ResourceMasksFirst},
	} {
		readGrid(t, title, 1).each(t, sides, sides, func(row []string, tag, want string) {
			make := func(typ string) *build {
				b := newBuild(t)
				b.typ = typ
				b.side(&b.data, row[0], onColumn(typ), "", resourcesMask)
				b.side(&b.tags, tag, "tag=T", typ+":", tagsMask)
				return b
			}
			places(t, make, o, map[string]string{"a": "T"}, func(where string, st policy.State, tab *plan.Table) {
				if got := cell(t, st, "ann", tab); got != want {
					t.Errorf("%s: resource %s, tag %s: %s, want %s (%s)", title, row[0], tag, got, want, where)
				}
				if got := cell(t, st, "bob", tab); got != "raw" {
					t.Errorf("%s: resource %s, tag %s: bob, whom no policy names: %s (%s)", title, row[0], tag, got, where)
				}
			})
			// Restriction over mask: a denial beside them withholds the column, also on
			// the side that masks it.
			for _, side := range []string{"the resource", "the tag"} {
				denied := func(typ string) *build {
					b := make(typ)
					if side == "the tag" {
						b.side(&b.tags, "a denial", "tag=T", typ+":", "")
					} else {
						b.side(&b.data, "a denial", onColumn(typ), "", "")
					}
					return b
				}
				places(t, denied, o, map[string]string{"a": "T"}, func(where string, st policy.State, tab *plan.Table) {
					if got := cell(t, st, "ann", tab); got != "withheld" {
						t.Errorf("%s: resource %s, tag %s, denied by %s: %s (%s)", title, row[0], tag, side, got, where)
					}
				})
			}
		})
	}
}

// TestMaskOverride: a mask policy that is an override comes before the side that
// mask-precedence prefers, and only then.
func TestMaskOverride(t *testing.T) {
	for _, o := range []Options{{}, {MaskPrecedence: ResourceMasksFirst}} {
		for _, override := range []string{"", "resource", "tag", "both"} {
			for _, says := range sides[1:] {
				if says == "a denial" {
					continue
				}
				first := "tag"
				if o.MaskPrecedence == ResourceMasksFirst {
					first = "resource"
				}
				if override == "resource" || override == "tag" {
					first = override
				}
				// The one that acts says this, the other one masks.
				b := newBuild(t)
				resource, tag := "a mask", says
				want := map[string]string{"a mask": "the tag's", "MASK_NONE": "raw", "a mask that cannot be built": "withheld", "a mask that cannot be decided": "refused"}[says]
				if first == "resource" {
					resource, tag = says, "a mask"
					if says == "a mask" {
						want = "the resource's"
					}
				}
				r := b.side(&b.data, resource, onColumn("hive"), "", resourcesMask)
				x := b.side(&b.tags, tag, "tag=T", "hive:", tagsMask)
				if override == "resource" || override == "both" {
					r.PolicyPriority = 1
				}
				if override == "tag" || override == "both" {
					x.PolicyPriority = 1
				}
				tab := table("c.s.t", "a", "b")
				tab.Tags = map[int][]plan.Tag{1: {{Name: "T"}}}
				if got := cell(t, b.state(o), "ann", tab); got != want {
					t.Errorf("mask-precedence %q, override %q: resource %s, tag %s: %s, want %s", o.MaskPrecedence, override, resource, tag, got, want)
				}
			}
		}
	}
}

// TestFilterOverride: an exemption that is an override lifts the filter of a tag
// where the filters are combined as Ranger does, and only there.
func TestFilterOverride(t *testing.T) {
	for _, x := range []struct {
		o        Options
		priority int
		want     int
	}{
		{Options{}, 0, 1},
		{Options{}, 1, 1},
		{Options{FilterCombination: FiltersAsRanger}, 0, 1},
		{Options{FilterCombination: FiltersAsRanger}, 1, 0},
	} {
		b := newBuild(t)
		b.filter(&b.data, "database=s table=t", "", "ann: ").PolicyPriority = x.priority
		b.filter(&b.tags, "tag=T", "hive:", "ann: t = 1")
		tab := table("c.s.t", "a")
		tab.Tags = map[int][]plan.Tag{0: {{Name: "T"}}}
		if got := restrict(t, b.state(x.o), "ann", tab); len(got.Filters) != x.want || got.Refuse != "" {
			t.Errorf("%+v, priority %d: %+v", x.o, x.priority, got)
		}
	}
}

var filterSides = []string{"nothing", "a filter", "an exemption", "undecided"}

func (b *build) filterSide(list *[]*model.Policy, says, res, prefix, sql string) {
	switch says {
	case "nothing":
		return
	case "an exemption":
		sql = ""
	}
	p := b.filter(list, res, prefix, "ann: "+sql)
	if says == "undecided" {
		p.RowFilterPolicyItems[0].Conditions = []model.Condition{{Type: "no-such"}}
	}
}

// TestFilterPrecedence holds the tables of docs/policies.md against what happens.
func TestFilterPrecedence(t *testing.T) {
	identities := []identity.Principal{{Name: "ann"}, {Name: "bob"}}
	test := func(title string, o Options, resource, onTable, onColumn, want string) {
		make := func(typ string) *build {
			b := newBuild(t)
			b.typ = typ
			res := "database=s table=t"
			if typ == "trino" {
				res = "catalog=c schema=s table=t"
			}
			b.filterSide(&b.data, resource, res, "", "r = 1")
			b.filterSide(&b.tags, onTable, "tag=T", typ+":", "t = 1")
			b.filterSide(&b.tags, onColumn, "tag=C", typ+":", "c = 1")
			return b
		}
		places(t, make, o, map[string]string{"": "T", "b": "C"}, func(where string, st policy.State, tab *plan.Table) {
			for _, p := range identities {
				r, err := st.Restrict(p, tab)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, f := range r.Filters {
					names = append(names, strings.ToUpper(f.SQL[:1]))
				}
				slices.SortFunc(names, func(a, b string) int { return strings.Index("RTC", a) - strings.Index("RTC", b) })
				got := strings.Join(names, " and ")
				switch {
				case r.Refuse != "":
					got = "refused"
				case got == "":
					got = "all rows"
				}
				should := want
				if p.Name == "bob" {
					should = "all rows"
				}
				if got != should {
					t.Errorf("%s: resource %s, tag on the table %s, tag on a column %s: %s sees %s, want %s (%s)", title, resource, onTable, onColumn, p.Name, got, should, where)
				}
			}
		})
	}
	var pairs []string
	for _, a := range filterSides {
		for _, b := range filterSides {
			pairs = append(pairs, a+", "+b)
		}
	}
	all := "`filter-combination = \"all\"`, the default"
	readGrid(t, all, 2).each(t, pairs, filterSides, func(row []string, column, want string) {
		test(all, Options{}, row[0], row[1], column, want)
	})
	// Tags on columns bring no filter then.
	ranger := "`filter-combination = \"ranger\"`: which rows"
	readGrid(t, ranger, 1).each(t, filterSides, filterSides, func(row []string, tag, want string) {
		for _, column := range filterSides {
			test(ranger, Options{FilterCombination: FiltersAsRanger}, row[0], tag, column, want)
		}
	})
}
