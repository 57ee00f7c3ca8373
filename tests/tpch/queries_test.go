//go:build e2e

package tpch

import "testing"

// TestOracle: DuckDB alone answers every query, and the comparison tells a wrong
// result from a right one.
func TestOracle(t *testing.T) {
	ctx := t.Context()
	data, err := Generate(ctx, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openDuck(ctx, data)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	empty := 0
	for n := 1; n <= 22; n++ {
		text, err := Query(n, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := fetch(ctx, db, text)
		if err != nil {
			t.Errorf("query %d: %v", n, err)
			continue
		}
		if len(rows) == 0 {
			empty++
			continue
		}
		if d := difference(rows, rows); d != "" {
			t.Errorf("query %d differs from itself: %s", n, d)
		}
		if difference(rows[1:], rows) == "" {
			t.Errorf("query %d: a missing row is not noticed", n)
		}
	}
	if empty > 3 {
		t.Errorf("%d queries have no rows", empty)
	}
}
