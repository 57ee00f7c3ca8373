package engine

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"

	"sqe/plan"
	"sqe/rewrite"
)

// memo remembers what the data gate said, so that a warm statement does not ask
// and bind again. Its key holds everything that an answer may depend on: the
// version of every policy source, the whole principal, and the version, schema
// and snapshot of the table. What depends on more (the time, the request) is not
// kept.
type memo struct {
	mu      sync.Mutex
	max     int
	entries map[memoKey]*list.Element
	order   *list.List // most recently used first
}

type memoKey struct{ policies, principal, table string }

type memoEntry struct {
	key     memoKey
	bound   *rewrite.Bound
	read    []*plan.Table // mapping tables that policy texts read
	expires time.Time     // zero: with the policy version
}

func newMemo(max int) *memo {
	return &memo{max: max, entries: map[memoKey]*list.Element{}, order: list.New()}
}

// get returns the remembered answer, or makes and remembers it. current is asked
// for every mapping table of a remembered answer: an answer that was bound
// against an older version of one is made again.
func (m *memo) get(ctx context.Context, key memoKey, resolve func() (*rewrite.Bound, []*plan.Table, time.Time, error), current func(context.Context, *plan.Table) bool) (*rewrite.Bound, error) {
	m.mu.Lock()
	el, ok := m.entries[key]
	if ok {
		m.order.MoveToFront(el)
	}
	m.mu.Unlock()
	if ok {
		e := el.Value.(*memoEntry)
		valid := e.expires.IsZero() || time.Now().Before(e.expires)
		for _, t := range e.read {
			valid = valid && current(ctx, t)
		}
		if valid {
			return e.bound, nil
		}
	}
	bound, read, expires, err := resolve()
	if err != nil {
		return nil, err
	}
	if !expires.IsZero() && !time.Now().Before(expires) {
		return bound, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.entries[key]; ok {
		m.order.Remove(old)
	}
	m.entries[key] = m.order.PushFront(&memoEntry{key: key, bound: bound, read: read, expires: expires})
	for m.order.Len() > m.max {
		last := m.order.Back()
		delete(m.entries, last.Value.(*memoEntry).key)
		m.order.Remove(last)
	}
	return bound, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
