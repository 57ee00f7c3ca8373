package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTwoSources holds the table of docs/policies.md on two policy sources against
// Merge.
func TestTwoSources(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, ok := strings.Cut(string(text), "**Two policy sources.**")
	if !ok {
		t.Fatal("docs/policies.md has no such table")
	}
	var table [][]string
	for _, line := range strings.Split(behind, "\n") {
		switch {
		case strings.HasPrefix(line, "|---"):
			continue
		case !strings.HasPrefix(line, "|"):
			if len(table) > 0 {
				behind = ""
			}
		case behind != "":
			var cells []string
			for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
				c, _, _ = strings.Cut(strings.TrimSpace(c), " (")
				cells = append(cells, strings.Trim(c, "`"))
			}
			table = append(table, cells)
		}
	}
	// What a source may say, in each form that a source may give it.
	fixed := func(action string) ColumnRule {
		return ColumnRule{Kind: Fixed, Action: action}
	}
	says := []struct {
		name  string
		forms []*Restrictions
	}{
		{"nothing", []*Restrictions{{Complete: true}}},
		{"MASK_NONE", []*Restrictions{only(mask("s", "MASK_NONE")), {Complete: true, Exempt: []Exemption{{Origin: origin("s")}}}}},
		{"a mask", []*Restrictions{only(mask("s", "MASK_HASH"))}},
		{"another mask", []*Restrictions{only(custom("s", "left({col}, 1)"))}},
		{"a constant", []*Restrictions{only(fixed("one"))}},
		{"another constant", []*Restrictions{only(fixed("another"))}},
		{"NULL", []*Restrictions{only(rule("s", Nullify)), only(mask("s", "MASK_NULL")), only(mask("s", "iceberg:replace-with-null"))}},
		{"withheld", []*Restrictions{only(rule("s", Forbid))}},
		{"refused", []*Restrictions{{Complete: true, Refuse: "undecided"}, {}, nil, only(ColumnRule{})}},
	}
	names := make([]string, len(says))
	for i, s := range says {
		names[i] = s.name
	}
	if len(table) != len(says)+1 || !slices.Equal(table[0][1:], names) {
		t.Fatalf("the table has %d rows and the columns %q, want %q", len(table), table[0], names)
	}
	for i, one := range says {
		if row := table[i+1]; row[0] != one.name || len(row) != len(says)+1 {
			t.Fatalf("row %q, want %q", row, one.name)
		}
		for k, other := range says {
			want := table[i+1][k+1]
			for _, a := range one.forms {
				for _, b := range other.forms {
					if got := outcome(Merge(a, b)); got != want {
						t.Errorf("%s and %s: %s, want %s\n%+v\n%+v", one.name, other.name, got, want, a, b)
					}
				}
			}
		}
	}
}

// outcome is what becomes of field 7 in the words of the table.
func outcome(r *Restrictions) string {
	rule, ok := r.Columns[7]
	switch {
	case r.Refuse != "" || !r.Complete:
		return "refused"
	case !ok || !rule.Masks():
		return "raw"
	case rule.Kind == Forbid:
		return "withheld"
	case rule.strength() == strengthNull:
		return "NULL"
	case rule.Kind == Fixed && rule.Action == "one":
		return "a constant"
	case rule.Kind == Fixed:
		return "another constant"
	case rule.Action == "MASK_HASH":
		return "a mask"
	}
	return "another mask"
}
