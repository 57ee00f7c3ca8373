package catalog

import (
	"context"
	"sync"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// recorder knows which files a transaction made: those of a step that failed in the
// middle are in no snapshot that could be asked.
type recorder struct {
	mu    sync.Mutex
	made  []string
	plain icebergio.WriteFileIO // where they were made
}

// of is the table of a transaction whose files are recorded. It cannot commit itself.
func (r *recorder) of(base *table.Table) *table.Table {
	storage := func(ctx context.Context) (icebergio.IO, error) {
		plain, err := base.FS(ctx)
		if err != nil {
			return nil, err
		}
		w, ok := plain.(icebergio.WriteFileIO)
		if !ok {
			return plain, nil // it makes no files
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.plain = w
		return recordedStorage{w, r, base.Metadata()}, nil
	}
	return table.New(base.Identifier(), base.Metadata(), base.MetadataLocation(), storage, committed{})
}

func (r *recorder) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, name)
}

// discard deletes the files, as well as it can.
func (r *recorder) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.made {
		_ = r.plain.Remove(name)
	}
	r.made = nil
}

// recordedStorage is a storage that tells a recorder of each file before it is made.
type recordedStorage struct {
	icebergio.WriteFileIO
	to   *recorder
	meta table.Metadata
}

// Create implements icebergio.WriteFileIO.
func (s recordedStorage) Create(name string) (icebergio.FileWriter, error) {
	s.to.note(name)
	w, err := s.WriteFileIO.Create(name)
	if err != nil || !isManifestList(name) {
		return w, err
	}
	return &summarized{to: w, meta: s.meta}, nil
}

// WriteFile implements icebergio.WriteFileIO.
func (s recordedStorage) WriteFile(name string, body []byte) error {
	s.to.note(name)
	return s.WriteFileIO.WriteFile(name, body)
}
