package engine

import (
	"fmt"
	"slices"
	"testing"
)

// TestListWalk: going through a list is noticed at the second lookup, and what comes next
// is asked for once.
func TestListWalk(t *testing.T) {
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprint(i))
	}
	w := listWalk{names: names}
	if got := w.batch("0", false); got != nil {
		t.Errorf("one lookup is no walk: %q", got)
	}
	var asked []string
	for _, n := range names[1:] {
		asked = append(asked, w.batch(n, false)...)
		if !slices.Contains(asked, n) {
			t.Fatalf("%s was not prefetched", n)
		}
	}
	if !slices.Equal(asked, names[1:]) {
		t.Errorf("%q", asked)
	}
	if w := (listWalk{names: names}); len(w.batch("0", true)) != prefetchBatch {
		t.Error("a walk that is known of begins with the first lookup")
	}
	if got := w.batch("elsewhere", false); got != nil {
		t.Errorf("a name that is not in the list: %q", got)
	}
}
