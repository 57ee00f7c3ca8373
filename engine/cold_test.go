package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sqe/fault"
	"sqe/plan"
)

// TestCold: the first statement of a principal asks the catalog for what it needs and
// nothing else, for all tables that it names at once; the second one asks nothing.
func TestCold(t *testing.T) {
	table := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, "GET /v1/namespaces/shop/tables/"+n)
		}
		return out
	}
	view := func(n string) []string {
		return []string{"GET /v1/namespaces/shop/tables/" + n, "GET /v1/namespaces/shop/views/" + n}
	}
	const three = "SELECT COUNT(*) FROM orders JOIN items USING (cust_id) JOIN people USING (cust_id)"
	n := 0
	for statement, x := range map[string]struct {
		together int
		asks     []string
		kind     fault.Kind // 0: it succeeds
	}{
		"SELECT COUNT(*) FROM orders": {1, table("orders"), 0},
		three:                         {3, table("orders", "items", "people"), 0},
		"EXPLAIN " + three:            {3, table("orders", "items", "people"), 0},
		"EXPLAIN POLICY " + three:     {3, table("orders", "items", "people"), 0},
		"SELECT COUNT(*) FROM orders a JOIN orders b USING (cust_id)":                                                                            {1, table("orders"), 0},
		"SELECT (SELECT COUNT(*) FROM items), (SELECT COUNT(*) FROM people) FROM orders WHERE EXISTS (SELECT 1 FROM `orders$snapshots`) LIMIT 1": {3, table("items", "orders", "people"), 0},
		"SELECT * FROM v":                             {2, slices.Concat(view("v"), table("orders", "items")), 0},
		"SELECT * FROM w":                             {2, slices.Concat(view("w"), view("v"), table("orders", "items")), 0},
		"SELECT COUNT(*) FROM v JOIN w USING (n)":     {2, slices.Concat(view("w"), view("v"), table("orders", "items")), 0},
		"SELECT COUNT(*) FROM people JOIN v ON 1 = 1": {1, slices.Concat(view("v"), table("people", "orders", "items")), 0},
		"INSERT INTO orders SELECT items.* FROM items JOIN people USING (cust_id) WHERE 1 = 0":                                                  {3, table("orders", "items", "people"), 0},
		"EXPLAIN DELETE FROM orders WHERE cust_id IN (SELECT cust_id FROM items)":                                                               {2, table("orders", "items"), 0},
		"EXPLAIN UPDATE orders SET phone = (SELECT MAX(phone) FROM items)":                                                                      {2, table("orders", "items"), 0},
		"EXPLAIN MERGE INTO orders USING items AS s ON orders.cust_id = s.cust_id WHEN MATCHED AND EXISTS (SELECT 1 FROM people) THEN DELETE":   {3, table("orders", "items", "people"), 0},
		"SELECT * FROM absent JOIN nothing USING (id)":                                                                                          {0, slices.Concat(view("absent"), view("nothing")), fault.NotFound},
		"SELECT t.table_name FROM information_schema.tables t JOIN information_schema.schemata s ON t.table_schema = s.schema_name WHERE 1 = 0": {0, nil, 0},
	} {
		n++
		t.Run(fmt.Sprint("statement", n), func(t *testing.T) {
			t.Log(statement)
			s := openShop(t, time.Hour)
			// Nobody has asked for what sue may see but which databases there are.
			s.together(x.together)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			run := func() {
				t.Helper()
				res, _, err := s.sue.Query(ctx, statement)
				if err == nil {
					_, err = print(res)
				}
				if x.kind == 0 && err != nil || x.kind != 0 && !fault.Is(err, x.kind) {
					t.Fatalf("%v, want %v", err, x.kind)
				}
			}
			run()
			got, want := s.seen(), slices.Sorted(slices.Values(x.asks))
			if x.asks != nil && !slices.Equal(got, want) {
				t.Errorf("cold it asks\n%q, want\n%q", got, want)
			}
			run()
			if got := s.seen(); len(got) != 0 && x.kind == 0 {
				t.Errorf("warm it asks %q", got)
			}
		})
	}
	t.Run("prepared", func(t *testing.T) {
		s := openShop(t, time.Hour)
		s.together(3)
		p, err := s.sue.Prepare(context.Background(), three)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.seen(); len(got) != 3 {
			t.Errorf("to prepare it asks %q", got)
		}
		res, err := s.sue.Execute(context.Background(), p, []plan.Literal{})
		if err == nil {
			_, err = print(res)
		}
		if got := s.seen(); err != nil || len(got) != 0 {
			t.Errorf("to execute it asks %q: %v", got, err)
		}
	})
	// Nothing is kept: the statement has what was asked for ahead all the same.
	t.Run("without a bound", func(t *testing.T) {
		s := openShop(t, -1)
		for range 2 {
			s.together(3)
			if _, err := query(s.sue, three); err != nil {
				t.Fatal(err)
			}
			if got := s.seen(); len(got) != 3 {
				t.Errorf("it asks %q", got)
			}
		}
	})
}

// TestWhatIsMadeIsThere: what a session made is there at once, for it and for others who
// were told a moment before that there is no such thing.
func TestWhatIsMadeIsThere(t *testing.T) {
	s := openShop(t, time.Hour)
	refused(t, s.sue, "SELECT * FROM made", fault.NotFound)
	refused(t, s.root, "SELECT * FROM made", fault.NotFound)
	if _, err := query(s.root, "CREATE TABLE made (a INT)"); err != nil {
		t.Fatal(err)
	}
	must(t, s.sue, "SELECT COUNT(*) FROM made", "12")
	must(t, s.root, "SELECT COUNT(*) FROM made", "12")
}
