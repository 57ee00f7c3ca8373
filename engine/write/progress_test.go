package write

import (
	"sync/atomic"
	"testing"
)

// TestProgressOfChanges: the progress of a change tells of the rows that change, and not
// of those beside them, which who changes rows may not see.
func TestProgressOfChanges(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: "2", props: modesOf(mode)})
		l.append("t", objects(0, 1000))
		tb := l.load("t")
		var most atomic.Int64
		o := l.options()
		o.Progress = func(rows int64) {
			for old := most.Load(); rows > old && !most.CompareAndSwap(old, rows); old = most.Load() {
			}
		}
		edits := []edit{{op: Update, id: 3, to: 3, name: "x"}, {op: Update, id: 4, to: 4, name: "y"}, {op: Delete, id: 5}}
		_, err := Change(ctx, tb, changes(l.places(tb), edits), changeLayout(UpdateCommand), o)
		l.must(err)
		if n := most.Load(); n != 2 {
			t.Errorf("%s: %d rows were told of two new ones", mode, n)
		}
		if n := len(l.read("t")); n != 999 {
			t.Errorf("%s: %d rows are left", mode, n)
		}
	}
}
