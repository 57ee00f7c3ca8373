//go:build e2e

package catalogs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// many is a REST catalog of so many namespaces, each with so many tables, that takes
// its time for each answer.
type many struct {
	*httptest.Server
	namespaces, tables int
	delay              time.Duration
	requests           atomic.Int64
	// Of tables, so many were sent.
	whole atomic.Int64
	// Of tables, now are answered and most were at a time.
	now, most atomic.Int64
	// together, when it is not nil, has tables wait until so many are asked for at a time.
	together atomic.Pointer[gathering]
}

// gathering is of so many.
type gathering struct {
	of   int64
	here chan struct{}
	once sync.Once
}

// wait returns when so many are here, or nobody more came for long, or there are not more
// than a statement asks for before it knows that it will want all.
func (g *gathering) wait(here *atomic.Int64, delay time.Duration) {
	for end := time.Now().Add(20 * time.Second); ; {
		if now := here.Load(); now >= g.of || time.Now().After(end) {
			g.once.Do(func() { close(g.here) })
		}
		select {
		case <-g.here:
			return
		case <-time.After(delay):
			if here.Load() <= 2 {
				return
			}
		}
	}
}

func startMany(t testing.TB, namespaces, tables int, delay time.Duration) *many {
	m := &many{namespaces: namespaces, tables: tables, delay: delay}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

const manyMetadata = `{"format-version": 2, "table-uuid": "c60b831c-6f48-4b72-94d5-%012d", "location": "file:///nowhere/%s/%s",
	"last-sequence-number": 0, "last-updated-ms": 1796010571207, "last-column-id": 3, "current-schema-id": 0,
	"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": true, "type": "long"},
	{"id": 2, "name": "region", "required": false, "type": "string"}, {"id": 3, "name": "amount", "required": false, "type": "decimal(10, 2)"}]}],
	"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
	"sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "current-snapshot-id": -1, "refs": {}, "snapshots": []}`

func (m *many) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if len(parts) == 4 && parts[2] == "tables" {
		now := m.now.Add(1)
		defer m.now.Add(-1)
		for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
		}
		if g := m.together.Load(); g != nil {
			g.wait(&m.now, m.delay)
		}
	}
	time.Sleep(m.delay)
	w.Header().Set("Content-Type", "application/json")
	say := func(x any) { _ = json.NewEncoder(w).Encode(x) }
	switch {
	case parts[0] == "config":
		say(map[string]any{"overrides": map[string]string{}, "endpoints": []string{"GET /v1/{prefix}/namespaces/{namespace}/views/{view}"}})
	case len(parts) == 1 && r.URL.Query().Get("parent") == "":
		var all [][]string
		for i := range m.namespaces {
			all = append(all, []string{fmt.Sprintf("ns%02d", i)})
		}
		say(map[string]any{"namespaces": all})
	case len(parts) == 1:
		say(map[string]any{"namespaces": []any{}})
	case len(parts) == 3 && parts[2] == "tables":
		var all []any
		for i := range m.tables {
			all = append(all, map[string]any{"namespace": []string{parts[1]}, "name": fmt.Sprintf("t%02d", i)})
		}
		say(map[string]any{"identifiers": all})
	case len(parts) == 3 && parts[2] == "views":
		say(map[string]any{"identifiers": []any{}})
	case len(parts) == 4 && parts[2] == "tables":
		m.whole.Add(1)
		say(map[string]any{
			"metadata-location": "file:/nowhere/" + parts[1] + "/" + parts[3] + "/metadata/00000-x.metadata.json",
			"metadata":          json.RawMessage(fmt.Sprintf(manyMetadata, len(parts[3]), parts[1], parts[3])),
		})
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"error": {"message": "no", "type": "NoSuchViewException", "code": 404}}`)
	}
}

// TestManyTables: a tool that reads information_schema of 2,000 tables in 50
// namespaces from a catalog that takes 20 ms for each answer waits for seconds: tables are
// asked for together, some thirty at a time, and once. They stay in memory: another look
// within the bound asks for none of them. The policies name none of them, so the server
// loads none for itself.
func TestManyTables(t *testing.T) {
	m := startMany(t, 50, 40, 20*time.Millisecond)
	s := serve(t, fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"none\"\nvisibility-max-age = \"1h\"", m.URL))
	db := s.Open("admin")
	defer db.Close()
	for i, x := range []struct{ statement, want string }{
		{"SELECT COUNT(*) FROM information_schema.columns WHERE table_schema LIKE 'ns%'", "[[6000]]"},
		{"SELECT COUNT(*) FROM information_schema.columns WHERE table_schema LIKE 'ns%'", "[[6000]]"},
		{"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema LIKE 'ns%'", "[[2000]]"},
		{"SHOW TABLES IN ns07", ""},
	} {
		before, start := m.requests.Load(), time.Now()
		m.most.Store(0)
		m.whole.Store(0)
		if i == 0 {
			m.together.Store(&gathering{of: 24, here: make(chan struct{})})
		}
		got := sqetest.Ask(ctx, db, x.statement)
		took, requests := time.Since(start), m.requests.Load()-before
		t.Logf("%s: %s, %d requests, %d for tables, %d of them at a time", x.statement, took.Round(time.Millisecond), requests, m.whole.Load(), m.most.Load())
		if got.Err != nil || x.want != "" && fmt.Sprint(got.Rows) != x.want {
			t.Errorf("%s: %v %v", x.statement, got.Rows, got.Err)
		}
		switch tables, most := m.whole.Load(), m.most.Load(); {
		case i == 0 && (tables != 2000 || most > 40 || most < 24):
			t.Errorf("%s: %d requests for tables, %d at a time", x.statement, tables, most)
		case i > 0 && tables != 0:
			t.Errorf("%s: %d requests for tables that are known", x.statement, tables)
		}
	}
}
