package rewrite

import (
	"slices"
	"testing"

	"sqe/policy"
)

// TestLinesTellEarlierNames: a policy that reaches a column by another name than
// its own says by which; those who may not see policies are not told.
func TestLinesTellEarlierNames(t *testing.T) {
	origin := func(earlier string) *policy.Origin {
		return &policy.Origin{Policy: "p", Source: "s", Tag: "PII", TagFrom: "table", Earlier: earlier}
	}
	r := &Record{Tables: []TableRecord{{
		Table: "c.n.t", Used: []int{1, 2, 3, 4},
		Filters: []FilterRecord{{Effect: rowsFiltered, SQL: "x = 1", Origin: origin("old")}},
		Columns: []ColumnRecord{
			{Field: 1, Column: "tax", Effect: columnMasked, Action: "MASK", Origin: origin("ssn"), top: 1},
			{Field: 2, Column: "ssn", Effect: columnMasked, Action: "MASK", Origin: origin("ssn"), top: 2},
			{Field: 3, Column: "mail", Effect: columnMasked, Action: "MASK", Origin: origin(""), top: 3},
			{Field: 4, Column: "b", Effect: columnNull, Origin: origin(""), Also: []policy.Origin{*origin("a")}, top: 4},
		},
	}}}
	want := []string{
		"x = 1; through the earlier name old",
		"MASK; through the earlier name ssn",
		"MASK; through a tag that was put on another column of the name ssn",
		"MASK",
		"through the earlier name a",
	}
	lines := r.Lines()
	if len(lines) != len(want) {
		t.Fatalf("%+v", lines)
	}
	for i, l := range lines {
		if l.Why != want[i] {
			t.Errorf("%s: %q, want %q", l.Column, l.Why, want[i])
		}
	}
	if lines[3].Policy != "p (source s, tag PII of the table)" {
		t.Errorf("policy %q", lines[3].Policy)
	}
	for _, l := range r.Public().Lines() {
		if l.Why != "" || l.Policy != "" {
			t.Errorf("everybody is told %+v", l)
		}
	}
}

// TestLinesOfExemptions: those of rows and of columns that the statement uses, a
// field inside a column counting as the column; of a metadata table all of them.
func TestLinesOfExemptions(t *testing.T) {
	exempts := []ExemptRecord{
		{Origin: policy.Origin{Policy: "rows"}},
		{Field: 1, Column: "a", Origin: policy.Origin{Policy: "on a"}, top: 1},
		{Field: 3, Column: "b.c", Origin: policy.Origin{Policy: "on b.c"}, top: 2},
		{Field: 4, Column: "d", Origin: policy.Origin{Policy: "on d"}, top: 4},
	}
	r := &Record{Tables: []TableRecord{{Table: "t", Used: []int{1, 2}, Exempt: exempts}, {Table: "t", Metadata: "files", Used: []int{4}, Exempt: exempts}}}
	want := []Line{
		{"t", "", exempt, "rows", ""},
		{"t", "a", exempt, "on a", ""},
		{"t", "b.c", exempt, "on b.c", ""},
		{"t$files", "", exempt, "rows", ""},
		{"t$files", "a", exempt, "on a", ""},
		{"t$files", "b.c", exempt, "on b.c", ""},
		{"t$files", "d", exempt, "on d", ""},
	}
	if got := r.Lines(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := r.Public().Lines(); len(got) != 0 {
		t.Errorf("everybody is told %+v", got)
	}
}
