package catalog

import (
	"context"
	"sync"

	"sqe/plan"
)

// writers lets one change of a table run at a time in this process.
type writers struct {
	mu   sync.Mutex
	held map[string]*writer
}

type writer struct {
	place   chan struct{}
	waiting int // those that hold or want the place
}

func newWriters() *writers { return &writers{held: map[string]*writer{}} }

func (w *writers) enter(ctx context.Context, name plan.TableName) (leave func(), err error) {
	key := name.Key()
	w.mu.Lock()
	t := w.held[key]
	if t == nil {
		t = &writer{place: make(chan struct{}, 1)}
		w.held[key] = t
	}
	t.waiting++
	w.mu.Unlock()
	forget := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(w.held, key)
		}
	}
	select {
	case t.place <- struct{}{}:
		return func() { <-t.place; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, interrupted(ctx, ctx.Err())
	}
}

// Turns lets one at a time do something with a table. The zero value is not for use.
type Turns struct{ *writers }

// NewTurns makes turns of its own: they do not wait for changes of tables.
func NewTurns() Turns { return Turns{newWriters()} }

// Take waits for the turn on a table, as long as ctx lives; give ends it.
func (t Turns) Take(ctx context.Context, name plan.TableName) (give func(), err error) {
	return t.enter(ctx, name)
}
