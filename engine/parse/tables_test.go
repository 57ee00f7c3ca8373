package parse

import (
	"fmt"
	"strings"
	"testing"

	"sqe/fault"
)

func doubling(n int) string {
	parts := []string{"c0 AS (SELECT 1 AS x FROM t)"}
	for i := 1; i <= n; i++ {
		parts = append(parts, fmt.Sprintf("c%d AS (SELECT x FROM c%d UNION SELECT x + 1 FROM c%d)", i, i-1, i-1))
	}
	return strings.Join(parts, ", ")
}

// TestTables: a statement that uses tables too often is refused before anybody
// works on it, however it says so.
func TestTables(t *testing.T) {
	joins := func(n int) string {
		return "SELECT 1 FROM t c0" + strings.Repeat(" JOIN t USING (x)", n-1)
	}
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"joins", joins(MaxJoined), true},
		{"one join more", joins(MaxJoined + 1), false},
		{"a list", "SELECT 1 FROM t" + strings.Repeat(", t", MaxJoined), false},
		{"in brackets", "SELECT 1 FROM (t" + strings.Repeat(", t", MaxJoined) + ")", false},
		{"doubled eight times", "WITH " + doubling(8) + " SELECT 1 FROM c8", true},
		{"doubled forty times", "WITH " + doubling(40) + " SELECT 1 FROM c40", false},
		{"a sub-query in each place", "SELECT 1" + strings.Repeat(" UNION SELECT (SELECT 1 FROM t)", MaxTables+1), false},
		{"in a derived table", "SELECT * FROM (WITH " + doubling(40) + " SELECT 1 FROM c40) d", false},
		{"in EXISTS", "SELECT 1 WHERE EXISTS (WITH " + doubling(40) + " SELECT 1 FROM c40)", false},
		{"as a source of rows", "INSERT INTO t WITH " + doubling(40) + " SELECT 1 FROM c40", false},
		{"a name of another database", "WITH " + doubling(40) + " SELECT 1 FROM db.c40", true},
		{"recursion", "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Parse(c.text)
			if c.ok && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !c.ok && !fault.Is(err, fault.Limit) {
				t.Errorf("not refused: %v", err)
			}
		})
	}
}

func TestLiterals(t *testing.T) {
	text := func(n int) string { return "SELECT 1 IN (1" + strings.Repeat(",1", n-2) + ")" }
	if _, _, err := Parse(text(MaxLiterals)); err != nil {
		t.Errorf("refused: %v", err)
	}
	if _, _, err := Parse(text(MaxLiterals + 1)); !fault.Is(err, fault.Limit) {
		t.Errorf("not refused: %v", err)
	}
}
