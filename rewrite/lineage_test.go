package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/plan"
)

// TestLineage runs testdata/lineage/*: for each column of a plan the fields that it
// is derived from. bound looks at the plan of the statement, governed at what Govern
// makes of it, both at the two of them.
func TestLineage(t *testing.T) {
	datadriven.Walk(t, "testdata/lineage", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := lineageText(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func lineageText(d *datadriven.TestData) (out string, err error) {
	defer recovered(&err)
	w := newWorld()
	var text []string
	for _, line := range strings.Split(d.Input, "\n") {
		if !w.directive(line) {
			text = append(text, line)
		}
	}
	b := newBuilder(w.tables)
	root, err := b.plan(strings.Join(text, "\n"))
	if err != nil {
		return "", err
	}
	var find func(plan.ColumnID) []FieldSource
	switch d.Cmd {
	case "bound":
		find = Lineage(root)
	case "governed", "both":
		governed, _, err := w.govern(root, &b.ids)
		if err != nil {
			return "", err
		}
		if find = Lineage(governed); d.Cmd == "both" {
			find = Lineage(root, governed)
		}
	default:
		return "", fmt.Errorf("no command %s", d.Cmd)
	}
	for _, c := range root.Columns() {
		out += c.Name + ":"
		for _, s := range find(c.ID) {
			f, _ := s.Table.Field(s.Field)
			out += " " + s.Table.Name.Name + "." + f.Name
			if s.Same && plan.IsNested(f.Type) {
				out += " (the same)"
			}
		}
		out += "\n"
	}
	return out, nil
}

// TestLineageOfUnknown: a column that the plan does not make counts as made of
// everything that it reads; one that it makes does not.
func TestLineageOfUnknown(t *testing.T) {
	b := newBuilder(testTables())
	root, err := b.plan("(project ((a id)) (scan people))")
	if err != nil {
		t.Fatal(err)
	}
	find := Lineage(root)
	if got := find(root.Columns()[0].ID); len(got) != 1 {
		t.Errorf("a column of the plan: %v", got)
	}
	if got := find(b.ids.New()); len(got) != len(b.tables["people"].Fields) {
		t.Errorf("a column of nothing: %v", got)
	}
}
