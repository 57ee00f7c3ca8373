//go:build e2e

package tpch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

const testScale = 0.01

// eachQuery runs f for the 22 queries as sub-tests.
func eachQuery(t *testing.T, f func(ctx context.Context, t *testing.T, text string)) {
	t.Helper()
	for n := 1; n <= 22; n++ {
		t.Run(fmt.Sprintf("q%02d", n), func(t *testing.T) {
			text, err := Query(n, testScale)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			f(ctx, t, text)
		})
	}
}

// TestOracle: DuckDB alone answers every query, and the comparison tells a wrong
// result from a right one.
func TestOracle(t *testing.T) {
	data, err := Generate(t.Context(), testScale)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openDuck(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	empty := 0
	eachQuery(t, func(ctx context.Context, t *testing.T, text string) {
		rows, err := fetch(ctx, db, text)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			empty++
			return
		}
		if d := difference(rows, rows); d != "" {
			t.Errorf("differs from itself: %s", d)
		}
		if difference(rows[1:], rows) == "" {
			t.Error("a missing row is not noticed")
		}
	})
	if empty > 3 {
		t.Errorf("%d queries have no rows", empty)
	}
}

// TestQueries: through the protocol every query answers as DuckDB alone does on
// the same files.
func TestQueries(t *testing.T) {
	s := serve(t, testScale)
	db := s.open(t, "root")
	eachQuery(t, func(ctx context.Context, t *testing.T, text string) {
		got, err := fetch(ctx, db, text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fetch(ctx, s.duck, text)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(got, want); d != "" {
			t.Error(d)
		}
	})
}

// TestGovernedQueries: under policies every query answers as the query into which
// the filter and the masks were typed by hand, on both sides.
func TestGovernedQueries(t *testing.T) {
	s := serve(t, testScale)
	pat, root := s.open(t, "pat"), s.open(t, "root")
	changed := 0
	eachQuery(t, func(ctx context.Context, t *testing.T, text string) {
		hand := byHand(text)
		got, err := fetch(ctx, pat, text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fetch(ctx, root, hand)
		if err != nil {
			t.Fatalf("%v\n%s", err, hand)
		}
		if d := difference(got, want); d != "" {
			t.Errorf("against the query by hand: %s", d)
		}
		oracle, err := fetch(ctx, s.duck, strings.ReplaceAll(hand, "AS CHAR", "AS VARCHAR"))
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(got, oracle); d != "" {
			t.Errorf("against DuckDB alone: %s", d)
		}
		raw, err := fetch(ctx, s.duck, text)
		if err != nil {
			t.Fatal(err)
		}
		if difference(got, raw) != "" {
			changed++
		}
	})
	if changed < 8 {
		t.Errorf("the policies change the answers of %d queries only: the test proves little", changed)
	}
}
