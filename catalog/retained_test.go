package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog/rest"
	"sqe/plan"
)

// TestMemory: what is kept is bounded in bytes, what entries share counts once, and the
// sizes come out even whatever is done.
func TestMemory(t *testing.T) {
	m := newRetained(10_000)
	model := map[string]int{} // generation of each key that may be kept
	check := func() {
		t.Helper()
		var size int64
		holders := map[any]int{}
		for _, k := range m.entries.Keys() {
			e, _ := m.entries.Peek(k)
			size += e.own
			if e.shares != nil {
				holders[e.shares]++
			}
		}
		for k, s := range m.shared {
			size += s.size
			if s.holders != holders[k] || s.holders == 0 {
				t.Fatalf("%v is held by %d, counted %d", k, holders[k], s.holders)
			}
		}
		if size != m.size || size > m.most && m.entries.Len() > 1 || len(holders) != len(m.shared) {
			t.Fatalf("%d entries of %d bytes, counted %d", m.entries.Len(), size, m.size)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		key := fmt.Sprint("k", r.IntN(60))
		switch r.IntN(8) {
		case 0:
			m.forget(key)
			delete(model, key)
		case 1:
			m.grew(key, model[key], int64(r.IntN(300)))
		case 2, 3:
			if v, ok := recall[int](ctx, m, key); ok && v != model[key] {
				t.Fatalf("%s is %d, want %d", key, v, model[key])
			}
		default:
			with := sharing{}
			if n := r.IntN(10); n < 6 {
				with = sharing{fmt.Sprint("s", n), int64(500 * n)}
			}
			model[key] = i
			m.remember(ctx, key, i, int64(r.IntN(900)), with)
			if _, ok := recall[int](ctx, m, key); !ok {
				t.Fatal("what was just added is not kept")
			}
		}
		check()
	}
	m.remember(ctx, "huge", 1, 1<<40, sharing{})
	if _, ok := recall[int](ctx, m, "huge"); !ok || m.entries.Len() != 1 {
		t.Error("the only one is not kept")
	}
	m.remember(ctx, "small", 1, 1, sharing{})
	if _, ok := recall[int](ctx, m, "huge"); ok || m.size != 1 {
		t.Error("it is kept beside another one")
	}
	m.remember(Aside(ctx), "aside", 1, 1, sharing{})
	if _, ok := recall[int](ctx, m, "aside"); ok {
		t.Error("what was read aside is kept")
	}
	m.forgetIf(func(any) bool { return true })
	if m.size != 0 || len(m.shared) != 0 {
		t.Errorf("%d bytes of nothing", m.size)
	}
}

// wideMetadata are metadata of so many columns and snapshots.
func wideMetadata(t testing.TB, n, columns, snapshots int) table.Metadata {
	t.Helper()
	var fields, kept []string
	for i := range columns {
		fields = append(fields, fmt.Sprintf(`{"id": %d, "name": "column_%d", "required": false, "type": "string"}`, i+1, i))
	}
	for i := range snapshots {
		kept = append(kept, fmt.Sprintf(`{"snapshot-id": %d, "sequence-number": %[1]d, "timestamp-ms": 1796010571207, "manifest-list": "s3://lake/ns/t%d/metadata/snap-%[1]d-1-c60b831c-6f48-4b72-94d5-000000000000.avro",
			"schema-id": 0, "summary": {"operation": "append", "added-data-files": "4", "added-records": "1000", "total-records": "100000", "total-data-files": "400"}}`, i+1, n))
	}
	m, err := table.ParseMetadataBytes(fmt.Appendf(nil, `{"format-version": 2, "table-uuid": "c60b831c-6f48-4b72-94d5-%012d", "location": "s3://lake/ns/t%d",
		"last-sequence-number": %d, "last-updated-ms": 1796010571207, "last-column-id": %d, "current-schema-id": 0,
		"schemas": [{"type": "struct", "schema-id": 0, "fields": [%s]}], "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
		"last-partition-id": 999, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
		"current-snapshot-id": -1, "refs": {}, "snapshots": [%s]}`, n, n, snapshots, columns, strings.Join(fields, ","), strings.Join(kept, ",")))
	must(t, err)
	return m
}

// TestSizes: the estimates are not far from what tables take in memory.
func TestSizes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, x := range []struct{ tables, columns, snapshots int }{{2000, 3, 1}, {500, 50, 10}, {20, 10, 1000}, {50, 1000, 0}} {
		var kept []*plan.Table
		var size int64
		before := heap()
		for i := range x.tables {
			m := wideMetadata(t, i, x.columns, x.snapshots)
			p, err := planTable(table.New([]string{"ns", "t"}, m, "s3://lake/ns/t/metadata/x.metadata.json", nil, nil), name("ns", "t"), plan.AsOf{}, "")
			must(t, err)
			kept = append(kept, p)
			size += sizeOfTable(p) + sizeOfMetadata(m) + entrySize
		}
		real := heap() - before
		runtime.KeepAlive(kept)
		t.Logf("%d tables of %d columns and %d snapshots: %d bytes each, estimated %d", x.tables, x.columns, x.snapshots, real/int64(x.tables), size/int64(x.tables))
		if size < real/2 || size > 2*real {
			t.Errorf("%+v: %d bytes, estimated %d", x, real, size)
		}
	}
}

// TestRESTSharesMetadata: the metadata of a table that several principals were shown count
// once, and none of them is shown what another one was.
func TestRESTSharesMetadata(t *testing.T) {
	f := newFakeREST(t)
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: time.Hour})
	must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
	one := c.cache.size
	f.seen()
	must(t, second(c.Table(as("bob"), orders, plan.AsOf{}, "")))
	if got := f.seen(); len(got) == 0 {
		t.Error("bob was not asked for")
	}
	if two := c.cache.size; two >= 2*one || two <= one || len(c.cache.shared) != 1 {
		t.Errorf("%d bytes for one, %d for two", one, two)
	}
	c.changed(orders)
	if c.cache.size != 0 {
		t.Errorf("%d bytes are left", c.cache.size)
	}
}

// TestRESTManyTables: a walk through 2,000 tables finds them kept the second time, and
// after the bound each is asked for again: with its mark where marks are trusted.
func TestRESTManyTables(t *testing.T) {
	t.Run("default", func(t *testing.T) { walkManyTables(t, false, [3][2]int{{2000, 0}, {0, 0}, {2000, 0}}) })
	t.Run("trusted", func(t *testing.T) { walkManyTables(t, true, [3][2]int{{2000, 0}, {0, 0}, {0, 2000}}) })
}

func walkManyTables(t *testing.T, trusted bool, wants [3][2]int) {
	f := newFakeREST(t)
	loads, marks := 0, 0
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		n, ok := strings.CutPrefix(r.URL.Path, "/v1/namespaces/sales/tables/t")
		if !ok {
			return false
		}
		w.Header().Set("ETag", `"`+n+`"`)
		if r.Header.Get("If-None-Match") == `"`+n+`"` {
			marks++
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		loads++
		var i int
		_, _ = fmt.Sscan(n, &i)
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata-location": "file:" + f.dir + "/t" + n + "/x.metadata.json", "metadata": wideMetadata(t, i, 10, 2)})
		return true
	}
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: time.Hour, TrustETags: trusted})
	now := time.Now()
	c.now = func() time.Time { return now }
	alice := as("alice")
	for walk, want := range wants {
		if walk == 2 {
			now = now.Add(2 * time.Hour)
		}
		loads, marks = 0, 0
		for i := range 2000 {
			must(t, second(c.Table(alice, name("sales", fmt.Sprint("t", i)), plan.AsOf{}, "")))
		}
		if loads != want[0] || marks != want[1] {
			t.Errorf("walk %d: %d loads and %d with a mark, want %d", walk, loads, marks, want)
		}
	}
}
