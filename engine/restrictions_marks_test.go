package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sqe/catalog"
)

// TestCatalogMarks: rows that a catalog restricts later are hidden from the next
// statement on, or from the end of visibility-max-age on, although its ETags stand for the
// metadata alone and these stay as they are, also for a statement prepared before. With
// trust-etags they stay in sight: so the catalog of this test does say "not modified".
func TestCatalogMarks(t *testing.T) {
	const q = "SELECT id FROM " + persons + " ORDER BY id"
	filter := func(id int) string {
		return fmt.Sprintf(`{"required-row-filter":{"type":"eq","left":%s,"right":%d}}`, reference(idColumn), id)
	}
	for _, trusted := range []bool{false, true} {
		t.Run(fmt.Sprint("trusted ", trusted), func(t *testing.T) {
			h := openHubWith(t, catalog.RESTOptions{Bound: -1, TrustETags: trusted})
			h.mu.Lock()
			h.marks = true
			h.mu.Unlock()
			ann, eve := h.session(t, "ann"), h.session(t, "eve")
			const whole = "1\n2\n3"
			must(t, eve, q, whole)
			must(t, ann, q, whole)
			p, err := eve.Prepare(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct{ raw, want string }{
				{filter(2), "2"},
				{filter(1), "1"},
				{"", whole},
				{filter(3), "3"},
				{`{"required-row-filter":false}`, ""},
				{action("replace-with-null", nameColumn), whole},
			} {
				h.demand("eve", x.raw)
				want := x.want
				if trusted {
					want = whole
				}
				must(t, eve, q, want)
				res, err := eve.Execute(context.Background(), p, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := print(res); err != nil || got != want {
					t.Errorf("prepared: %s (%v), want %s", got, err, want)
				}
				must(t, ann, q, whole)
			}
			name := "NULL"
			if trusted {
				name = "bob"
			}
			must(t, eve, "SELECT name FROM "+persons+" WHERE id = 2", name)
			if trusted != (h.unmodified > 0) {
				t.Errorf("%d times not modified", h.unmodified)
			}
		})
	}
	t.Run("bound", func(t *testing.T) {
		// What was shown may be shown again within the bound, and never after it.
		const bound = 300 * time.Millisecond
		h := openHubWith(t, catalog.RESTOptions{Bound: bound})
		h.mu.Lock()
		h.marks = true
		h.mu.Unlock()
		eve := h.session(t, "eve")
		must(t, eve, q, "1\n2\n3")
		h.demand("eve", filter(2))
		time.Sleep(bound)
		must(t, eve, q, "2")
	})
}
