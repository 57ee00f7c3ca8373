package rest

import (
	"crypto/sha256"
	"math"
	"sync"

	"github.com/apache/iceberg-go/table"
	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// metadata are those of answers, by their content: of the many principals who may see a
// table each is sent the same. Who was sent nothing has nothing to find here.
type metadata struct {
	mu      sync.Mutex
	most    int64 // of bytes
	size    int64
	entries *lru.LRU[[sha256.Size]byte, parsed]
}

// parsed are metadata, and the length of their text.
type parsed struct {
	is   table.Metadata
	size int64
}

// textToMemory is how much larger metadata are in memory than their text, as measured.
const textToMemory = 3

// keptMetadata is what is remembered unless somebody says otherwise, in bytes.
const keptMetadata = 64 << 20

// KeepMetadata bounds what is remembered of metadata, in bytes of memory, and forgets
// what there is.
func (c *Client) KeepMetadata(most int64) { c.metadata.make(most / textToMemory) }

// make bounds the texts of what is remembered, in bytes.
func (m *metadata) make(most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most, m.size = most, 0
	m.entries, _ = lru.NewLRU(math.MaxInt, func(_ [sha256.Size]byte, p parsed) { m.size -= p.size })
}

// parse reads metadata. The answer is shared and must not be changed. It is remembered
// when keep is set.
func (m *metadata) parse(text []byte, keep bool) (table.Metadata, error) {
	key := sha256.Sum256(text)
	m.mu.Lock()
	find := m.entries.Get
	if !keep {
		find = m.entries.Peek
	}
	p, ok := find(key)
	m.mu.Unlock()
	if ok {
		return p.is, nil
	}
	err := guarded(func() (err error) {
		p.is, err = table.ParseMetadataBytes(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !keep {
		return p.is, nil
	}
	p.size = int64(len(text))
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.entries.Contains(key) {
		m.entries.Add(key, p)
		m.size += p.size
	}
	for m.size > m.most && m.entries.Len() > 1 {
		m.entries.RemoveOldest()
	}
	return p.is, nil
}
