package rewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sqe/fault"
	"sqe/plan"
)

// TestGolden runs testdata/*: one file for each rule of the rewriter, which says
// in its first line what must hold. A case is lines of policies, then a plan in
// the notation of notation_test.go.
//
// Commands: govern prints the governed plan, pushdown the plan after Pushdown,
// prepare which columns of a table are withheld and why, record the record as
// JSON, lines and public its rows of EXPLAIN POLICY. Every plan is verified.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasPrefix(path, "testdata/write/") || strings.HasPrefix(path, "testdata/lineage/") {
			return // TestWriteGolden, TestLineage
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := golden(d)
			if err != nil {
				var f *fault.Fault
				if errors.As(err, &f) {
					s := fmt.Sprintf("%s: %s\n", f.Kind, f.Text)
					if c := errors.Unwrap(f); c != nil {
						s += "cause: " + c.Error() + "\n"
					}
					return s
				}
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func golden(d *datadriven.TestData) (out string, err error) {
	defer recovered(&err)
	w := newWorld()
	var text []string
	for _, line := range strings.Split(d.Input, "\n") {
		if !w.directive(line) {
			text = append(text, line)
		}
	}
	if d.Cmd == "prepare" {
		b, err := w.prepare(w.tables[strings.TrimSpace(strings.Join(text, ""))])
		if err != nil {
			return "", err
		}
		return withheldText(b), nil
	}
	b := newBuilder(w.tables)
	root, err := b.plan(strings.Join(text, "\n"))
	if err != nil {
		return "", err
	}
	before := plan.Format(root)
	governed, record, err := w.govern(root, &b.ids)
	if err != nil {
		return "", err
	}
	if plan.Format(root) != before {
		return "", errors.New("Govern changed the plan that it was given")
	}
	if err := Verify(governed); err != nil {
		return "", err
	}
	switch d.Cmd {
	case "govern":
		return plan.Format(governed), nil
	case "pushdown":
		pushed := Pushdown(governed)
		if err := Verify(pushed); err != nil {
			return "", err
		}
		return plan.Format(pushed), nil
	case "record":
		text, err := json.MarshalIndent(record, "", " ")
		return string(text) + "\n", err
	case "lines", "public":
		if d.Cmd == "public" {
			record = record.Public()
		}
		var b strings.Builder
		for _, l := range record.Lines() {
			fmt.Fprintf(&b, "%s | %s | %s | %s | %s\n", l.Table, l.Column, l.Effect, l.Policy, l.Why)
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("no command %s", d.Cmd)
}

func withheldText(b *Bound) string {
	ids := make([]int, 0, len(b.Withheld()))
	for id := range b.Withheld() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var out strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&out, "%d: %s\n", id, b.Withheld()[id])
	}
	if out.Len() == 0 {
		return "nothing is withheld\n"
	}
	return out.String()
}
