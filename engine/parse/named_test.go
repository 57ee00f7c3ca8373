package parse

import (
	"fmt"
	"testing"
)

// TestNames: tables are found wherever a query names them, and common table
// expressions are none.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1": "[]",
		"SELECT * FROM a, s.b JOIN s.b USING (x)":                                                              "[{ a} {s b}]",
		"SELECT * FROM lake.s.a JOIN b ON 1 = 1":                                                               "[{lake.s a} { b}]",
		"SELECT (SELECT 1 FROM c) FROM a WHERE EXISTS (SELECT 1 FROM b) UNION SELECT 1 FROM d":                 "[{ c} { a} { b} { d}]",
		"WITH x AS (SELECT 1 FROM a), y AS (SELECT 1 FROM x JOIN b) SELECT * FROM y JOIN s.x":                  "[{ a} { b} {s x}]",
		"WITH RECURSIVE r AS (SELECT 1 AS n FROM a UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r": "[{ a}]",
		"SELECT * FROM (SELECT * FROM a) d JOIN b FOR SYSTEM_TIME AS OF '2026-01-01' ON 1 = 1":                 "[{ a} { b}]",
	} {
		stmt, _, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := []Named{}
		got = append(got, namesIn(stmt.(*SQL).AST)...)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// TestNamesOf: a statement that changes rows names the table that it changes and all
// that it reads.
func TestNamesOf(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM a JOIN s.b":                                        "[{ a} {s b}]",
		"INSERT INTO s.t SELECT * FROM a WHERE x IN (SELECT 1 FROM b)":    "[{s t} { a} { b}]",
		"INSERT INTO t VALUES (1)":                                        "[{ t}]",
		"DELETE FROM t WHERE EXISTS (SELECT 1 FROM a)":                    "[{ t} { a}]",
		"DELETE FROM t":                                                   "[{ t}]",
		"UPDATE t SET x = (SELECT 1 FROM a) WHERE y IN (SELECT 1 FROM b)": "[{ t} { a} { b}]",
		"MERGE INTO t USING s.a AS s ON t.id = s.id AND EXISTS (SELECT 1 FROM b) WHEN MATCHED AND EXISTS (SELECT 1 FROM c) THEN UPDATE SET x = (SELECT 1 FROM d) WHEN NOT MATCHED THEN INSERT (x) VALUES ((SELECT 1 FROM e))": "[{ t} {s a} { b} { c} { d} { e}]",
		"MERGE INTO t USING (SELECT * FROM a) AS s ON t.id = s.id WHEN MATCHED THEN DELETE": "[{ t} { a}]",
		"DROP TABLE t": "[]",
	} {
		stmt, _, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(NamesOf(stmt)); got != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
