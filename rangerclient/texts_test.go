package rangerclient

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sqe/plan"
)

// TestTexts: the texts of every policy on the table are found, whatever it names
// the table by, and no other ones.
func TestTexts(t *testing.T) {
	tab := table("c.s.t", "id", "a", "b")
	tab.Formerly[2] = []string{"old"}
	tab.Tags = map[int][]plan.Tag{0: {{Name: "WHOLE"}}, 3: {{Name: "PII"}}}
	for name, x := range map[string]struct {
		typ  string
		o    Options
		make func(b *build)
		want string // "SQL" or "column: SQL (masked columns)"
	}{
		"filter":                                 {"hive", Options{}, func(b *build) { b.filter(&b.data, "database=S table=T|x", "", "ann: a = 1", "bob: ") }, "a = 1"},
		"filter, catalog named":                  {"hive", Options{}, func(b *build) { b.filter(&b.data, "database=c.s table=t", "", "ann: a = 1") }, "a = 1"},
		"filter, another catalog":                {"hive", Options{}, func(b *build) { b.filter(&b.data, "database=d.s table=t", "", "ann: a = 1") }, ""},
		"filter, wildcards":                      {"trino", Options{}, func(b *build) { b.filter(&b.data, "catalog=* schema=? table=t*", "", "ann: a = 1") }, "a = 1"},
		"filter, other wildcards":                {"trino", Options{}, func(b *build) { b.filter(&b.data, "catalog=* schema=?? table=t*", "", "ann: a = 1") }, ""},
		"filter with a macro":                    {"hive", Options{}, func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: a = ${{USER.x}}") }, ""},
		"disabled":                               {"hive", Options{}, func(b *build) { no := false; b.filter(&b.data, "database=s table=t", "", "ann: a = 1").Enabled = &no }, ""},
		"filter of a tag":                        {"hive", Options{}, func(b *build) { b.filter(&b.tags, "tag=WHOLE", "hive:", "ann: a = 1") }, "a = 1"},
		"filter of another tag":                  {"hive", Options{}, func(b *build) { b.filter(&b.tags, "tag=OTHER", "hive:", "ann: a = 1") }, ""},
		"filter of a tag, elsewhere":             {"hive", Options{}, func(b *build) { b.filter(&b.tags, "tag=WHOLE", "trino:", "ann: a = 1") }, ""},
		"filter of a tag on a column":            {"hive", Options{}, func(b *build) { b.filter(&b.tags, "tag=PII", "hive:", "ann: a = 1") }, "a = 1"},
		"filter of a tag on a column, as Ranger": {"hive", Options{FilterCombination: FiltersAsRanger}, func(b *build) { b.filter(&b.tags, "tag=PII", "hive:", "ann: a = 1") }, ""},
		"mask":                                   {"hive", Options{}, func(b *build) { b.mask("database=s table=t column=A", "ann: CUSTOM f({col})", "bob: MASK") }, "a: f({col}) ()"},
		"mask, earlier name":                     {"hive", Options{}, func(b *build) { b.mask("database=s table=t column=old", "ann: CUSTOM f({col})") }, "a: f({col}) ()"},
		"mask, wildcards":                        {"trino", Options{}, func(b *build) { b.mask("catalog=* schema=s table=t column=?", "ann: CUSTOM f({col})") }, "a: f({col}) (b); b: f({col}) (a)"},
		"mask of a tag":                          {"hive", Options{}, func(b *build) { b.tagMask("PII", "ann: CUSTOM f({col})") }, "b: f({col}) ()"},
		"mask of another tag":                    {"hive", Options{}, func(b *build) { b.tagMask("OTHER", "ann: CUSTOM f({col})") }, ""},
		"another mask for the same user": {"hive", Options{}, func(b *build) {
			b.mask("database=s table=t column=a", "ann: CUSTOM f({col})")
			b.tagMask("PII", "public: MASK")
		}, "a: f({col}) (b)"},
		"another mask for somebody else": {"hive", Options{}, func(b *build) {
			b.mask("database=s table=t column=a", "ann: CUSTOM f({col})")
			b.mask("database=s table=t column=b", "bob group ann: MASK", "ann: MASK_NONE")
		}, "a: f({col}) ()"},
		"a mask without a text": {"hive", Options{}, func(b *build) { b.mask("database=s table=t column=a", "ann: CUSTOM", "bob: MASK") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuild(t)
			b.typ = x.typ
			x.make(b)
			var got []string
			for _, text := range b.state(x.o).Texts(tab) {
				if text.ID == 0 || text.Policy == "" || text.Service == "" {
					t.Errorf("%+v", text)
				}
				s := text.SQL
				if text.Column != "" {
					s = fmt.Sprintf("%s: %s (%s)", text.Column, text.SQL, strings.Join(text.Masked, ", "))
				}
				got = append(got, s)
			}
			slices.Sort(got)
			if strings.Join(got, "; ") != x.want {
				t.Errorf("%q, want %q", got, x.want)
			}
		})
	}
}

func BenchmarkTexts(b *testing.B) {
	for _, typ := range []string{"hive", "trino"} {
		b.Run(typ+", 10000 policies, 1000 tables", func(b *testing.B) {
			st, tables := manyTables(b, typ, 10_000, 1_000)
			for b.Loop() {
				for _, t := range tables {
					st.Texts(t)
				}
			}
		})
	}
}
