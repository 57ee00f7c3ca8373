package catalog

import (
	"context"
	"math"
	"sync"

	"github.com/apache/iceberg-go/table"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sqe/catalog/rest"
	"sqe/plan"
)

// defaultMemory is how many bytes a catalog keeps of what it knows.
const defaultMemory = 128 << 20

// retained keeps what a catalog knows, up to a number of bytes: the least used goes
// first. What several entries hold together, as the tables of several principals hold
// the same metadata, counts once. Sizes are estimates.
type retained struct {
	most int64

	mu      sync.Mutex
	size    int64
	entries *simplelru.LRU[any, held]
	shared  map[any]*share
}

// held is an entry: its own size, and the key of what it shares, if any.
type held struct {
	is     any
	own    int64
	shares any
}

// share is held by some entries.
type share struct {
	size    int64
	holders int
}

// sharing is what an entry holds together with others; the zero value is nothing.
type sharing struct {
	key  any
	size int64
}

func newRetained(most int64) *retained {
	m := &retained{most: most, shared: map[any]*share{}}
	m.entries, _ = simplelru.NewLRU(math.MaxInt, func(_ any, e held) { m.release(e) }) // is positive
	return m
}

// release takes an entry that was removed out of the sizes. It runs under the lock.
func (m *retained) release(e held) {
	m.size -= e.own
	if s := m.shared[e.shares]; s != nil {
		if s.holders--; s.holders == 0 {
			m.size -= s.size
			delete(m.shared, e.shares)
		}
	}
}

// recall is what is kept of a key. That counts as a use of it unless ctx is aside.
func recall[T any](ctx context.Context, m *retained, key any) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	find := m.entries.Get
	if rest.IsAside(ctx) {
		find = m.entries.Peek
	}
	e, ok := find(key)
	if !ok {
		var none T
		return none, false
	}
	return e.is.(T), true
}

// remember keeps a value, unless ctx is aside. own is its size without what it shares.
func (m *retained) remember(ctx context.Context, key, value any, own int64, with sharing) {
	if rest.IsAside(ctx) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries.Remove(key)
	if with.key != nil {
		s := m.shared[with.key]
		if s == nil {
			s = &share{size: with.size}
			m.shared[with.key] = s
			m.size += s.size
		}
		s.holders++
	}
	m.size += own
	m.entries.Add(key, held{is: value, own: own, shares: with.key})
	m.shrink()
}

// grew tells that a value that may still be kept has become larger.
func (m *retained) grew(key, value any, by int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries.Peek(key); ok && e.is == value {
		e.own += by
		m.size += by
		m.entries.Add(key, e) // it is being used
		m.shrink()
	}
}

// shrink removes the least used. The last one stays, however large it is: a statement
// would have it read again each time it is named.
func (m *retained) shrink() {
	for m.size > m.most && m.entries.Len() > 1 {
		m.entries.RemoveOldest()
	}
}

// forget removes a key.
func (m *retained) forget(key any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries.Remove(key)
}

// forgetIf removes the keys that are meant.
func (m *retained) forgetIf(meant func(key any) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.entries.Keys() {
		if meant(key) {
			m.entries.Remove(key)
		}
	}
}

// Sizes in memory, in bytes, as measured: of an entry with its keys, of what is made of a
// table or a view besides its fields, of a field, and of the small parts of metadata.
const (
	entrySize    = 300
	planSize     = 4 << 10
	fieldSize    = 250
	metadataSize = 2 << 10
	columnSize   = 180
	snapshotSize = 500
	pairSize     = 64
)

// sizeOfMetadata estimates the size of metadata.
func sizeOfMetadata(m table.Metadata) int64 {
	size := metadataSize
	pairs := func(p map[string]string) {
		for k, v := range p {
			size += len(k) + len(v) + pairSize
		}
	}
	for _, s := range m.Schemas() {
		size += columnSize * (1 + s.NumFields() + s.HighestFieldID()/4) // nested fields have ids too
	}
	for _, s := range m.Snapshots() {
		size += snapshotSize + len(s.ManifestList)
		if s.Summary != nil {
			pairs(s.Summary.Properties)
		}
	}
	for range m.SnapshotLogs() {
		size += pairSize
	}
	for e := range m.PreviousFiles() {
		size += pairSize + len(e.MetadataFile)
	}
	for range m.Refs() {
		size += 4 * pairSize
	}
	pairs(m.Properties())
	return int64(size)
}

// sizeOfTable estimates the size of what is made of a table, without its metadata.
func sizeOfTable(t *plan.Table) int64 {
	size := planSize + sizeOfFields(t.Fields)
	for _, names := range t.Formerly {
		size += pairSize * (1 + len(names))
	}
	for _, tags := range t.Tags {
		size += 4 * pairSize * len(tags)
	}
	return int64(size)
}

func sizeOfFields(fields []plan.Field) int {
	size := 0
	for _, f := range fields {
		size += fieldSize + len(f.Name) + len(f.Doc) + sizeOfFields(f.Children)
	}
	return size
}

func sizeOfView(v *View) int64 {
	size := planSize + len(v.SQL) + sizeOfFields(v.Fields)
	for k, x := range v.Properties {
		size += len(k) + len(x) + pairSize
	}
	return int64(size)
}

// sizeOfList estimates the size of a list of names, or of namespaces.
func sizeOfList(list any) int64 {
	size := 0
	switch list := list.(type) {
	case []string:
		for _, s := range list {
			size += 16 + len(s)
		}
	case [][]string:
		for _, ns := range list {
			size += 24 + int(sizeOfList(ns))
		}
	}
	return int64(size)
}
