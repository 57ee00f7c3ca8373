package engine

import (
	"sync"

	"sqe/engine/write"
)

// writeOptions are those of a write to the table o; done gives back the memory that
// they hold.
func (st *statement) writeOptions(o *object) (opts write.Options, done func()) {
	memory, done := st.engine.writing.take()
	return write.Options{
		Committer: o.changer, Planner: st.engine.scans, MemoryBytes: memory,
		Progress: func(rows int64) { st.progress("writing: " + counted(rows) + " rows") },
	}, done
}

// leastWriteMemory is what a statement gets when others have the rest.
const leastWriteMemory = 16 << 20

// writeMemory shares the memory for rows that are being written.
type writeMemory struct {
	mu    sync.Mutex
	total int64
	taken int64
}

// take gives a statement half of what is left. Nobody waits: a small write must not
// stand behind a large one.
func (m *writeMemory) take() (bytes int64, give func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes = max((m.total-m.taken)/2, leastWriteMemory)
	m.taken += bytes
	return bytes, sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.taken -= bytes
	})
}
