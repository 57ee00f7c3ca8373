package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// long is the body of an answer that counts how many like it are read at a time beyond
// what each may have without waiting.
type long struct {
	left, read int64
	counted    bool
	now, most  *atomic.Int64
}

func (l *long) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	if !l.counted && l.read >= short {
		l.counted = true
		n := l.now.Add(1)
		for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
		}
	}
	n := min(int64(len(p)), l.left)
	l.left -= n
	l.read += n
	return int(n), nil
}

func (l *long) Close() error { return nil }

// TestLongAnswers: long answers that come together are read as far as there is room for
// them, those of unknown length one by one, and all are read whole.
func TestLongAnswers(t *testing.T) {
	const most, size, n = 16 << 20, 6 << 20, 6
	for said, together := range map[int64]int64{-1: 1, size: 2} {
		c, err := New(Options{URI: "http://localhost", Tokens: Anonymous(), HTTP: &http.Client{}, MaxAnswer: most})
		if err != nil {
			t.Fatal(err)
		}
		var now, peak atomic.Int64
		var g sync.WaitGroup
		for range n {
			g.Go(func() {
				l := &long{left: size, now: &now, most: &peak}
				body, release, err := c.body(&http.Response{Body: l, ContentLength: said, Request: &http.Request{}})
				if err != nil || len(body) != size || !l.counted {
					t.Errorf("%d bytes, %v", len(body), err)
				}
				now.Add(-1)
				release()
			})
		}
		g.Wait()
		if peak.Load() > together {
			t.Errorf("a length of %d: %d answers at a time, want %d at most", said, peak.Load(), together)
		}
	}
	// Who waits for room can be interrupted; what is longer than it may be is cut off.
	c, err := New(Options{URI: "http://localhost", Tokens: Anonymous(), HTTP: &http.Client{}, MaxAnswer: most})
	if err != nil {
		t.Fatal(err)
	}
	var now, peak atomic.Int64
	body, release, err := c.body(&http.Response{Body: &long{left: 1 << 40, now: &now, most: &peak}, ContentLength: -1, Request: &http.Request{}})
	if err != nil || len(body) != most+1 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := c.body(&http.Response{Body: &long{left: size, now: &now, most: &peak}, ContentLength: -1, Request: (&http.Request{}).WithContext(ctx)}); err == nil {
		t.Error("there was room for two")
	}
	release()
}

// TestMetadataAreShared: metadata of the same text are read once, and what is remembered
// is bounded by the length of the texts.
func TestMetadataAreShared(t *testing.T) {
	text := func(i int) []byte {
		return []byte(strings.ReplaceAll(`{"format-version": 2, "table-uuid": "c60b831c-6f48-4b72-94d5-000000000000", "location": "file:///x/N",
			"last-sequence-number": 0, "last-updated-ms": 1796010571207, "last-column-id": 1, "current-schema-id": 0,
			"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": true, "type": "long"}]}],
			"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
			"sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "current-snapshot-id": -1, "refs": {}, "snapshots": []}`, "N", fmt.Sprint(i)))
	}
	var m metadata
	m.make(int64(3 * len(text(1))))
	first, err := m.parse(text(1), true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.parse(text(1), true); err != nil || again != first {
		t.Error("the same text was read twice")
	}
	for i := range 10 {
		got, err := m.parse(text(i), true)
		if err != nil || got.Location() != fmt.Sprint("file:///x/", i) {
			t.Errorf("%d: %v %v", i, got, err)
		}
	}
	if n := m.entries.Len(); n != 3 || m.size > m.most {
		t.Errorf("%d are remembered, of %d bytes", n, m.size)
	}
	if _, err := m.parse([]byte(`{}`), true); err == nil || m.entries.Len() != 3 {
		t.Errorf("what are no metadata: %v", err)
	}
}
