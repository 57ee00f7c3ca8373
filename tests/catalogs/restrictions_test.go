//go:build e2e

package catalogs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sqe/tests/sqetest"
)

// restricting stands before a REST catalog and adds what it demands of reads to its
// answers about tables of a name. It says "not modified" to whoever sends a mark.
func restricting(t *testing.T, address, table string, demands *atomic.Value) string {
	to, err := url.Parse(address)
	must(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Accept-Encoding")
	}}
	proxy.ModifyResponse = func(r *http.Response) error {
		raw, _ := demands.Load().(string)
		if raw == "" || r.Request.Method != http.MethodGet || r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Request.URL.Path, "/tables/"+table) {
			return nil
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		var answer map[string]json.RawMessage
		if err := json.Unmarshal(text, &answer); err != nil {
			return err
		}
		answer["read-restrictions"] = json.RawMessage(raw)
		if text, err = json.Marshal(answer); err != nil {
			return err
		}
		r.Header.Set("ETag", `"metadata"`)
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return nil
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The metadata are as they were, and marks say nothing of what is added here.
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRestrictions: what a catalog demands of fields inside columns a MySQL client gets
// to see; what cannot be masked there fails the statements that read the column alone.
func TestRestrictions(t *testing.T) {
	var demands atomic.Value
	rest := StartREST(t)
	s := serve(t, fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"none\"\nvisibility-max-age = \"0s\"\nwarehouse = %q",
		restricting(t, rest.Address, "nested", &demands), rest.Warehouse))
	db := s.Open("admin")
	defer db.Close()
	ask := func(statement, want string) {
		t.Helper()
		got := sqetest.Ask(ctx, db, statement)
		if text := fmt.Sprint(got.Rows); got.Err != nil || want != "" && text != want {
			t.Errorf("%s: %v %s, want %s", statement, got.Err, text, want)
		}
	}
	refused := func(statement string) {
		t.Helper()
		got := sqetest.Ask(ctx, db, statement)
		if got.Err == nil || !strings.Contains(got.Err.Error(), "withheld") || strings.Contains(got.Err.Error(), "raw") {
			t.Errorf("%s: %v %v", statement, got.Err, got.Rows)
		}
	}
	ask("CREATE DATABASE shop", "")
	ask("CREATE TABLE shop.nested (id BIGINT, person STRUCT<ssn: STRING, age: INT>, tags ARRAY<STRING>)", "")
	ask(`INSERT INTO shop.nested VALUES (1, '{"ssn": "123-45-6789", "age": 42}', '["raw"]')`, "")
	ask("SELECT person, tags FROM shop.nested", `[[{"ssn":"123-45-6789","age":42} ["raw"]]]`)
	// Ids: columns first, then what is inside them.
	demands.Store(`{"required-column-projections": [{"action": "show-last-4", "field-id": 4}, {"action": "sha-256-global", "field-id": 5}]}`)
	ask("SELECT id, person, tags FROM shop.nested", `[[1 {"ssn":"nnn-nn-6789","age":-290282264} ["raw"]]]`)
	ask("SELECT COUNT(*) FROM shop.nested WHERE person->>'$.ssn' = '123-45-6789'", "[[0]]")
	demands.Store(`{"required-column-projections": [{"action": "replace-with-null", "field-id": 6}]}`)
	refused("SELECT tags FROM shop.nested")
	refused("SELECT * FROM shop.nested")
	refused("SELECT 1 FROM (SELECT tags FROM shop.nested) x")
	ask("SELECT id, person FROM shop.nested", `[[1 {"ssn":"123-45-6789","age":42}]]`)
	ask("SELECT COUNT(*) FROM shop.nested", "[[1]]")
	demands.Store("")
	ask("SELECT tags FROM shop.nested", `[[["raw"]]]`)
}
