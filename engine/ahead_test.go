package engine

import (
	"fmt"
	"slices"
	"testing"
)

// TestWalk: going through a list is noticed at the second step, and what comes next
// is asked for once.
func TestWalk(t *testing.T) {
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprint(i))
	}
	w := walk{names: names}
	if got := w.next("0", false); got != nil {
		t.Errorf("one step is no walk: %q", got)
	}
	var asked []string
	for _, n := range names[1:] {
		asked = append(asked, w.next(n, false)...)
		if !slices.Contains(asked, n) {
			t.Fatalf("%s was not asked for ahead", n)
		}
	}
	if !slices.Equal(asked, names[1:]) {
		t.Errorf("%q", asked)
	}
	if w := (walk{names: names}); len(w.next("0", true)) != mostAhead {
		t.Error("a walk that is known of begins with the first step")
	}
	if got := w.next("elsewhere", false); got != nil {
		t.Errorf("a name that is not in the list: %q", got)
	}
}
