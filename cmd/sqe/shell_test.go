package main

import (
	"bytes"
	"slices"
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

// TestChangesRows: which texts are asked for the number of rows that they changed.
func TestChangesRows(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t VALUES (1)": true, "  delete\nFROM t;\n": true, "Update t SET a = 1 ;": true, "MERGE INTO t USING s": true,
		"SELECT 1": false, "insert": true, "": false, "INSERT INTO t VALUES ('a;b');": true, "INSERTED": false,
		"EXPLAIN INSERT INTO t VALUES (1)": false, "CALL system.rewrite_data_files('t')": false,
	} {
		if got := changesRows(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestFirst: a text is cut into statements as the server reads them.
func TestFirst(t *testing.T) {
	for text, want := range map[string][]string{
		"SELECT 1":                                                   {"SELECT 1"},
		"SET @a = 1; SET @b = 2;\nSELECT ';' ;":                      {"SET @a = 1;", " SET @b = 2;", "\nSELECT ';' ;"},
		"INSERT INTO t VALUES ('a;b'); -- ;\n":                       {"INSERT INTO t VALUES ('a;b'); -- ;\n"},
		"/* ; */ DELETE FROM t; CALL system.rewrite_data_files('t')": {"/* ; */ DELETE FROM t;", " CALL system.rewrite_data_files('t')"},
		"SELEC 1; SELECT 2":                                          {"SELEC 1; SELECT 2"},
		"":                                                           {""},
	} {
		var got []string
		for rest := text; ; {
			var one string
			one, rest = first(rest)
			if got = append(got, one); rest == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
