package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/servicedef"
)

// lakeOf is a REST catalog of so many namespaces, each with so many tables.
type lakeOf struct {
	namespaces, tables int

	mu       sync.Mutex
	requests []string
	fail     func(path string) bool
}

const lakeMetadata = `{"format-version": 2, "table-uuid": "c60b831c-6f48-4b72-94d5-%012d", "location": "file:///nowhere/%s",
	"last-sequence-number": 0, "last-updated-ms": 1796010571207, "last-column-id": 2, "current-schema-id": 0,
	"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": true, "type": "long"},
	{"id": 2, "name": "email", "required": false, "type": "string"}]}],
	"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
	"sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "current-snapshot-id": -1, "refs": {}, "snapshots": []}`

func (m *lakeOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests = append(m.requests, r.URL.Path)
	fail := m.fail != nil && m.fail(r.URL.Path)
	m.mu.Unlock()
	if fail {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	say := func(x any) { _ = json.NewEncoder(w).Encode(x) }
	switch {
	case parts[0] == "config":
		say(map[string]any{"endpoints": []string{}})
	case len(parts) == 1 && r.URL.Query().Get("parent") == "":
		var all [][]string
		for i := range m.namespaces {
			all = append(all, []string{fmt.Sprintf("ns%02d", i)})
		}
		say(map[string]any{"namespaces": all})
	case len(parts) == 1:
		say(map[string]any{"namespaces": []any{}})
	case len(parts) == 3:
		var all []any
		for i := range m.tables {
			all = append(all, map[string]any{"namespace": []string{parts[1]}, "name": fmt.Sprintf("t%02d", i)})
		}
		say(map[string]any{"identifiers": all})
	default:
		say(map[string]any{
			"metadata-location": "file:/nowhere/" + parts[1] + "/" + parts[3] + "/metadata/00000-x.metadata.json",
			"metadata":          json.RawMessage(fmt.Sprintf(lakeMetadata, len(parts[3]), parts[1]+"/"+parts[3])),
		})
	}
}

// seen counts the requests since it was last called, and those for tables.
func (m *lakeOf) seen() (all, tables int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, path := range m.requests {
		if strings.Count(path, "/") == 5 {
			tables++
		}
	}
	all = len(m.requests)
	m.requests = nil
	return all, tables
}

func (m *lakeOf) open(t testing.TB, name string, tokens rest.Tokens) catalog.Catalog {
	t.Helper()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	client, err := rest.NewHTTP(rest.HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(rest.Options{URI: server.URL, Tokens: tokens, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.OpenREST(name, c, catalog.RESTOptions{Bound: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cat.Close() })
	return cat
}

// masking are policies that mask columns, each "catalog.schema.table.column" with wildcards.
func masking(t testing.TB, columns ...string) []policy.Source {
	t.Helper()
	var policies []any
	for i, c := range columns {
		resources := map[string]any{}
		for k, v := range strings.Split(c, ".") {
			resources[[]string{"catalog", "schema", "table", "column"}[k]] = map[string]any{"values": []string{v}}
		}
		policies = append(policies, map[string]any{
			"id": i + 1, "isEnabled": true, "service": "data", "name": fmt.Sprint("mask ", c), "policyType": 1, "resources": resources,
			"dataMaskPolicyItems": []any{map[string]any{
				"users": []string{"ann"}, "accesses": []any{map[string]any{"type": "select", "isAllowed": true}}, "dataMaskInfo": map[string]any{"dataMaskType": "MASK"},
			}},
		})
	}
	definition, err := servicedef.JSON("trino")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"serviceName": "data", "policyVersion": 1, "policies": policies, "serviceDef": definition})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policies_data.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := rangerclient.OpenFolder(rangerclient.FolderConfig{Name: "folder", Dir: dir, DataService: "data"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if status := s.Status(); !status.Loaded || len(status.Problems) > 0 {
		t.Fatalf("%+v", status)
	}
	return []policy.Source{s}
}

// TestTargetsAreGentle: of a catalog of 2,000 tables what policies name is listed, and
// the tables loaded of which they name columns; the number is that of a look at all.
func TestTargetsAreGentle(t *testing.T) {
	const lists = 51 // of the namespaces, and below each
	for _, x := range []struct {
		name            string
		columns         []string
		missing         int
		tables, besides int // requests
	}{
		{"no policies", nil, 0, 0, 0},
		{"a column of a table", []string{"lake.ns07.t03.email"}, 0, 1, lists + 1},
		{"a column that is not there", []string{"lake.ns07.t03.phone", "lake.ns08.t03.email"}, 1, 2, lists + 2},
		{"a table that is not there", []string{"lake.ns07.none.email"}, 1, 0, lists + 1},
		{"all columns", []string{"lake.*.*.*"}, 0, 0, lists + 50},
		{"a column of all tables", []string{"lake.*.*.email"}, 0, 16, lists + 50},
		{"a column of no table of a schema", []string{"lake.ns07.*.phone"}, 1, 40, lists + 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := &lakeOf{namespaces: 50, tables: 40}
			catalogs, err := catalog.NewRegistry(m.open(t, "lake", rest.Anonymous()))
			if err != nil {
				t.Fatal(err)
			}
			sources := masking(t, x.columns...)
			var looked targets
			start := time.Now()
			if !looked.compare(t.Context(), catalogs, sources, 0) {
				t.Error("it could not look")
			}
			all, tables := m.seen()
			if besides := all - tables; tables != x.tables || besides != x.besides && besides != x.besides+1 { // the configuration
				t.Errorf("%d requests for tables and %d others, want %d and %d", tables, besides, x.tables, x.besides)
			}
			t.Logf("%d requests, %s", all, time.Since(start).Round(time.Millisecond))
			every, _, problems := allTables(t.Context(), catalogs)
			if len(every) != 2000 || len(problems) > 0 {
				t.Fatalf("%d tables, %v", len(every), problems)
			}
			if full := silent(sources, every); looked.Missing() != x.missing || full != x.missing {
				t.Errorf("%d findings, with all tables %d, want %d", looked.Missing(), full, x.missing)
			}
		})
	}
}

// TestTargetsUnknown: a catalog that does not answer, or decides as the user, makes no
// findings about what it holds.
func TestTargetsUnknown(t *testing.T) {
	sources := masking(t, "lake.ns00.none.email", "lake.ns00.t00.phone", "lake.ns00.t01.phone", "other.ns00.t00.email")
	m := &lakeOf{namespaces: 1, tables: 2}
	lake, other := m.open(t, "lake", rest.Anonymous()), &lakeOf{namespaces: 1, tables: 1}
	registry := func(second catalog.Catalog) *catalog.Registry {
		r, err := catalog.NewRegistry(lake, second)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var looked targets
	service := registry(other.open(t, "other", rest.Anonymous()))
	if !looked.compare(t.Context(), service, sources, 0) || looked.Missing() != 3 {
		t.Errorf("%d findings", looked.Missing())
	}
	m.fail = func(path string) bool { return strings.HasSuffix(path, "/tables/t01") }
	if !looked.compare(t.Context(), service, sources, 0) || looked.Missing() != 2 {
		t.Errorf("%d findings where a table cannot be loaded", looked.Missing())
	}
	m.fail = func(string) bool { return true }
	if looked.compare(t.Context(), service, sources, 0) || looked.Missing() != 2 {
		t.Errorf("%d findings of a catalog that is down, want those of before", looked.Missing())
	}
	m.fail = nil
	m.seen()
	if !looked.compare(t.Context(), registry(other.open(t, "other", rest.User("other"))), sources, 0) || looked.Missing() != 0 {
		t.Errorf("%d findings where a catalog decides as the user", looked.Missing())
	}
	if all, tables := m.seen(); tables > 0 {
		t.Errorf("%d requests for tables, of %d", tables, all)
	}
}

// TestTargetsKeepNothing: what the server looks at for itself takes no place from what
// statements read, and is not kept for them.
func TestTargetsKeepNothing(t *testing.T) {
	m := &lakeOf{namespaces: 1, tables: 40}
	lake := m.open(t, "lake", rest.Anonymous())
	catalogs, err := catalog.NewRegistry(lake)
	if err != nil {
		t.Fatal(err)
	}
	read := func(table string) {
		if _, err := lake.Table(t.Context(), plan.TableName{Catalog: "lake", Namespace: []string{"ns00"}, Name: table}, plan.AsOf{}, ""); err != nil {
			t.Fatal(err)
		}
	}
	read("t07")
	m.seen()
	var looked targets
	if !looked.compare(t.Context(), catalogs, masking(t, "lake.ns00.*.phone"), 0) || looked.Missing() != 1 {
		t.Errorf("%d findings", looked.Missing())
	}
	if _, tables := m.seen(); tables != 39 {
		t.Errorf("%d requests for tables, want those that no statement read", tables)
	}
	read("t07")
	if all, _ := m.seen(); all != 0 {
		t.Error("what a statement read is no longer kept")
	}
	read("t08")
	if _, tables := m.seen(); tables != 1 {
		t.Error("what the server looked at is kept")
	}
}

// TestTargetsEnd: the comparison waits between its requests, and ends when the server does.
func TestTargetsEnd(t *testing.T) {
	m := &lakeOf{namespaces: 1, tables: 200}
	catalogs, err := catalog.NewRegistry(m.open(t, "lake", rest.Anonymous()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int64
	m.fail = func(path string) bool {
		if asked.Add(1) == targetsBurst {
			cancel()
		}
		return false
	}
	var looked targets
	if looked.compare(ctx, catalogs, masking(t, "lake.ns00.*.phone"), time.Hour) || looked.Missing() != 0 {
		t.Error("it came to an end")
	}
	if n := asked.Load(); n > targetsBurst+2 {
		t.Errorf("%d requests without a pause", n)
	}
}
