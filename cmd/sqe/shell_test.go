package main

import (
	"bytes"
	"testing"
)

// TestPrintRow: a text of several lines stays in its column, and can be copied.
func TestPrintRow(t *testing.T) {
	var out bytes.Buffer
	printRow(&out, []string{"p", "CREATE POLICY p\n  COMMENT 'x'", "7"})
	printRow(&out, []string{"", ""})
	if want := "p\tCREATE POLICY p\t7\n\t  COMMENT 'x'\t\n\t\n"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
	if got := printable("a\nb\x1b", false); got != "a·b·" {
		t.Errorf("%q", got)
	}
}
