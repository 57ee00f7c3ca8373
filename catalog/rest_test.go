package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// fakeREST is a REST catalog with one table, whose behaviour a test changes.
type fakeREST struct {
	*httptest.Server
	dir string

	mu       sync.Mutex
	meta     table.Metadata
	version  int
	requests []string
	// before answers a request in place of the catalog.
	before func(w http.ResponseWriter, r *http.Request) bool
	// extra are more members of the answers of loadTable.
	extra map[string]any
	// lost answers a commit in place of the catalog, before it is done or after.
	lost func(w http.ResponseWriter, done bool) bool
}

func newFakeREST(t testing.TB) *fakeREST {
	t.Helper()
	f := &fakeREST{dir: t.TempDir()}
	text, err := os.ReadFile(filepath.Join("testdata", "polaris", "table.json"))
	must(t, err)
	var answer struct{ Metadata json.RawMessage }
	must(t, json.Unmarshal(bytes.ReplaceAll(text, []byte("file:///warehouse"), []byte("file://"+f.dir)), &answer))
	f.meta, err = table.ParseMetadataBytes(answer.Metadata)
	must(t, err)
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeREST) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error": {"message": "no", "type": %q, "code": %d, "stack": ["a", "b"]}}`, kind, status)
}

func (f *fakeREST) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	if f.before != nil && f.before(w, r) {
		return
	}
	say := func(x any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x)
	}
	answer := func() map[string]any {
		out := map[string]any{"metadata-location": fmt.Sprintf("file:%s/lake/sales/orders/metadata/%05d-x.metadata.json", f.dir, f.version), "metadata": f.meta}
		for k, v := range f.extra {
			out[k] = v
		}
		return out
	}
	switch r.Method + " " + r.URL.EscapedPath() {
	case "GET /v1/config":
		say(map[string]any{
			"overrides": map[string]string{"uri": "http://elsewhere.example", "token": "stolen"},
			"endpoints": []string{"GET /v1/{prefix}/namespaces/{namespace}/views/{view}", "POST https://elsewhere.example/token"},
		})
	case "GET /v1/namespaces":
		switch r.URL.Query().Get("parent") {
		case "":
			say(map[string]any{"namespaces": [][]string{{"sales"}, {"hr"}}})
		case "sales":
			say(map[string]any{"namespaces": [][]string{{"sales", "eu"}}})
		default:
			say(map[string]any{"namespaces": [][]string{}})
		}
	case "GET /v1/namespaces/sales", "GET /v1/namespaces/hr":
		say(map[string]any{"namespace": []string{"sales"}, "properties": map[string]string{}})
	case "GET /v1/namespaces/sales/tables":
		say(map[string]any{"identifiers": []any{map[string]any{"namespace": []string{"sales"}, "name": "orders"}}})
	case "GET /v1/namespaces/sales/views":
		say(map[string]any{"identifiers": []any{}})
	case "GET /v1/namespaces/sales/tables/orders":
		tag := fmt.Sprintf(`"%d"`, f.version)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		say(answer())
	case "POST /v1/namespaces/sales/tables/orders":
		if f.lost != nil && f.lost(w, false) {
			return
		}
		var commit struct {
			Requirements table.Requirements
			Updates      table.Updates
		}
		if err := json.NewDecoder(r.Body).Decode(&commit); err != nil {
			refuse(w, 400, "BadRequestException")
			return
		}
		for _, q := range commit.Requirements {
			if q.Validate(f.meta) != nil {
				refuse(w, 409, "CommitFailedException")
				return
			}
		}
		meta, err := table.UpdateTableMetadata(f.meta, commit.Updates, "")
		if err != nil {
			refuse(w, 400, "BadRequestException")
			return
		}
		f.meta = meta
		f.version++
		if f.lost != nil && f.lost(w, true) {
			return
		}
		say(answer())
	default:
		refuse(w, 404, "NoSuchTableException")
	}
}

var orders = name("sales", "orders")

func (f *fakeREST) open(t testing.TB) *REST {
	return remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: time.Hour})
}

// TestRESTFaults: what is not an answer about a table is never "no such table".
func TestRESTFaults(t *testing.T) {
	f := newFakeREST(t)
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	page := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	kind := func(status int, name string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, status, name); return true }
	}
	for what, x := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		kind   fault.Kind
		text   string
	}{
		"nothing amiss":      {nil, 0, ""},
		"404 of a proxy":     {page(404, "<html>Not Found</html>"), fault.Unavailable, "does not answer as an Iceberg REST catalog"},
		"404 of the config":  {kind(404, "NotFoundException"), fault.Unavailable, "does not answer as an Iceberg REST catalog"},
		"a page":             {page(200, "<html>Welcome</html>"), fault.Unavailable, "does not answer as an Iceberg REST catalog"},
		"half of an answer":  {page(200, `{"metadata": {"format`), fault.Unavailable, "does not answer as an Iceberg REST catalog"},
		"nothing":            {page(200, ""), fault.Unavailable, "does not answer as an Iceberg REST catalog"},
		"401 without a body": {page(401, ""), fault.Auth, "refuses the token of this session"},
		"419":                {kind(419, "AuthenticationTimeoutException"), fault.Auth, "refuses the token of this session"},
		"403":                {kind(403, "ForbiddenException"), fault.NotFound, "Table 'lake.sales.orders' doesn't exist"},
		"403 of a proxy":     {page(403, "<html>"), fault.NotFound, "Table 'lake.sales.orders' doesn't exist"},
		"400":                {kind(400, "BadRequestException"), fault.BadStatement, "refuses such a name"},
		"429":                {kind(429, "TooManyRequests"), fault.Unavailable, "too much to do"},
		"500":                {kind(500, "RuntimeException"), fault.Unavailable, "does not answer; try again"},
		"501":                {kind(501, "UnsupportedOperationException"), fault.Unsupported, "does not support this"},
		"503":                {page(503, ""), fault.Unavailable, "does not answer; try again"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, fault.Unavailable, "does not answer as"},
		"a redirect to http": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusMovedPermanently)
			return true
		}, fault.Unavailable, "does not answer as"},
		"a redirect in place": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("again") == "" && r.URL.Path == "/v1/config" {
				http.Redirect(w, r, r.URL.Path+"?again=1", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}, 0, ""},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"a": `)
			return true
		}, fault.Unavailable, "does not answer; try again"},
		"longer than it says": {func(w http.ResponseWriter, _ *http.Request) bool {
			conn, to, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = to.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n" + `{"overrides": {}, "defaults": {}}`)
				_ = to.Flush()
				_ = conn.Close()
			}
			return true
		}, fault.Unavailable, "does not answer as"},
		"stuck in the middle": {func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.WriteString(w, `{"a": `)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}, fault.Unavailable, "does not answer in time"},
		"not HTTP": {func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n")
				_ = conn.Close()
			}
			return true
		}, fault.Unavailable, "does not answer; try again"},
		"429 for a while": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, fault.Unavailable, "too much to do"},
		"503 for a while": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}, fault.Unavailable, "does not answer; try again"},
		"401 for the table": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/orders") {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			return false
		}, fault.Auth, "refuses the token of this session"},
		"404 in another form": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/orders") {
				return page(404, `{"message": "no route"}`)(w, r)
			}
			return false
		}, fault.Unavailable, "does not answer as"},
		"broken metadata": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/orders") {
				return false
			}
			_, _ = io.WriteString(w, `{"metadata-location": "x", "metadata": {"format-version": 9}}`)
			return true
		}, fault.Corrupt, "cannot be understood"},
		"no metadata": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/orders") {
				return false
			}
			_, _ = io.WriteString(w, `{"metadata-location": "x"}`)
			return true
		}, fault.Unavailable, "does not answer as"},
		"compressed": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v1/config" {
				return false
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `{"overrides": {}}`)
			_ = z.Close()
			return true
		}, 0, ""},
	} {
		t.Run(what, func(t *testing.T) {
			f.mu.Lock()
			f.before = x.before
			f.mu.Unlock()
			_, err := f.open(t).Table(as("alice"), orders, plan.AsOf{}, "")
			if x.text == "" {
				must(t, err)
				return
			}
			wants(t, what, err, x.kind, x.text)
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "alice") {
					t.Errorf("the token is shown: %v", e)
				}
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("the token went to another server")
	}
	f.mu.Lock()
	f.before = nil
	f.mu.Unlock()
	// Down, slow, and ended by the user.
	c := f.open(t)
	stopped, cancel := context.WithCancel(as("alice"))
	cancel()
	_, err := c.Table(stopped, orders, plan.AsOf{}, "")
	wants(t, "cancelled", err, fault.Cancelled, "cancelled")
	late, cancel := context.WithTimeout(as("alice"), time.Nanosecond)
	defer cancel()
	_, err = c.Table(late, orders, plan.AsOf{}, "")
	wants(t, "timeout of the statement", err, fault.Timeout, "took too long")
	f.mu.Lock()
	f.before = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	f.mu.Unlock()
	_, err = c.Table(as("alice"), orders, plan.AsOf{}, "")
	wants(t, "slow", err, fault.Unavailable, "does not answer in time")
	f.mu.Lock()
	f.before = nil
	f.mu.Unlock()
	must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
	f.Close()
	_, err = c.Table(as("bob"), orders, plan.AsOf{}, "")
	wants(t, "down", err, fault.Unavailable, "does not answer; try again")
}

func second[T any](_ T, err error) error { return err }

// TestRESTUntrusted: a connection that TLS refuses is not tried again, is told from a
// server that is away, and no token goes over it.
func TestRESTUntrusted(t *testing.T) {
	f := newFakeREST(t)
	secure := httptest.NewUnstartedServer(f)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := "https" + strings.TrimPrefix(f.URL, "http")
	for what, address := range map[string]string{"an unknown certificate": secure.URL, "no TLS": plain} {
		_, err := remote(t, address, rest.Options{}, RESTOptions{Local: f.dir}).Table(as("alice"), orders, plan.AsOf{}, "")
		wants(t, what, err, fault.Unavailable, "a connection that this server trusts")
	}
	if got := f.seen(); len(got) != 0 {
		t.Errorf("requests went over it: %q", got)
	}
}

// TestRESTAnswersAreBounded: what is too large is refused, compressed or not.
func TestRESTAnswersAreBounded(t *testing.T) {
	f := newFakeREST(t)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"endpoints": ["`)
		for range 100 {
			_, _ = z.Write(bytes.Repeat([]byte("a"), 1<<16))
		}
		_, _ = io.WriteString(z, `"]}`)
		_ = z.Close()
		return true
	}
	c := remote(t, f.URL, rest.Options{MaxAnswer: 1 << 20}, RESTOptions{})
	_, err := c.Namespaces(as("alice"))
	wants(t, "huge", err, fault.Unavailable, "does not answer")
	if !strings.Contains(errors.Unwrap(err).Error(), "larger than 1048576 bytes") {
		t.Error(errors.Unwrap(err))
	}
}

// TestRESTRepeats: what reads is asked again when the server wishes, what changes
// something never.
func TestRESTRepeats(t *testing.T) {
	f := newFakeREST(t)
	left := 0
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if left--; left >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	c := f.open(t)
	must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
	f.seen()
	f.mu.Lock()
	left = 2
	f.mu.Unlock()
	must(t, second(c.fresh(as("alice"), orders)))
	if n := len(f.seen()); n != 3 {
		t.Errorf("%d requests", n)
	}
	f.mu.Lock()
	left = 1
	f.mu.Unlock()
	err := c.CreateNamespace(as("alice"), []string{"x"}, nil, false)
	if !fault.Is(err, fault.Unavailable) || len(f.seen()) != 1 {
		t.Errorf("a change: %v", err)
	}
}

// TestRESTApart: what one user got is never given to another one, and what was
// withdrawn is gone within the bound.
func TestRESTApart(t *testing.T) {
	f := newFakeREST(t)
	c := f.open(t)
	now := time.Now()
	c.now, c.bound = func() time.Time { return now }, 5*time.Second
	barred := map[string]bool{"Bearer bob": true}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if barred[r.Header.Get("Authorization")] && r.URL.Path != "/v1/config" {
			refuse(w, 403, "ForbiddenException")
			return true
		}
		return false
	}
	bar := func(user string, yes bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		barred["Bearer "+user] = yes
	}
	sees := func(user string, want bool) {
		t.Helper()
		_, err := c.Table(as(user), orders, plan.AsOf{}, "")
		if (err == nil) != want || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s sees the table: %v, want %v", user, err, want)
		}
		names, err := c.Tables(as(user), []string{"sales"})
		if err != nil || (len(names) == 1) != want {
			t.Errorf("%s lists %q %v, want %v", user, names, err, want)
		}
		all, err := c.Namespaces(as(user))
		if err != nil || (len(all) == 3) != want {
			t.Errorf("%s lists %q %v, want %v", user, all, err, want)
		}
	}
	sees("alice", true)
	sees("bob", false)
	sees("alice", true)
	f.seen()
	sees("alice", true)
	if got := f.seen(); len(got) != 0 {
		t.Errorf("asked within the bound: %q", got)
	}
	// A right that is withdrawn.
	bar("alice", true)
	now = now.Add(4900 * time.Millisecond)
	sees("alice", true) // the bound
	now = now.Add(200 * time.Millisecond)
	sees("alice", false)
	bar("alice", false)
	sees("alice", false) // a refusal is kept
	now = now.Add(absentFor)
	sees("alice", true) // and not as long as what was shown
	bar("bob", false)
	now = now.Add(absentFor)
	sees("bob", true)
	// Nothing has changed: the catalog is asked, and need not say it all again.
	now = now.Add(6 * time.Second)
	first, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
	must(t, err)
	now = now.Add(6 * time.Second)
	again, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
	if err != nil || first != again {
		t.Errorf("loaded anew: %v", err)
	}
	// The mark of another one is not sent.
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer carol" && r.Header.Get("If-None-Match") != "" {
			t.Error("a mark that carol never got")
		}
		return false
	}
	sees("carol", true)
	// The same name with another token is another scope.
	if _, err := c.Table(as("alice"), orders, plan.AsOf{}, ""); err != nil {
		t.Error(err)
	}
}

// TestRESTOwnChanges: what this process changed shows at once.
func TestRESTOwnChanges(t *testing.T) {
	f := newFakeREST(t)
	c := f.open(t)
	before, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
	must(t, err)
	must(t, second(c.Table(as("bob"), orders, plan.AsOf{}, "")))
	set := func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{"a": "b"}, nil, nil
	}
	after, err := c.UpdateProperties(as("alice"), orders, set)
	must(t, err)
	for _, user := range []string{"alice", "bob"} {
		got, err := c.Table(as(user), orders, plan.AsOf{}, "")
		if err != nil || got.Version == before.Version || got.Version != after.Version || got.Properties["a"] != "b" {
			t.Errorf("%s: %+v %v", user, got, err)
		}
	}
}

// TestRESTRestrictions: what the catalog demands of reads comes with the table, to the
// byte, and to nobody else; also after a commit, whose answer does not hold it.
func TestRESTRestrictions(t *testing.T) {
	f := newFakeREST(t)
	c := f.open(t)
	c.bound = -1
	for raw, comes := range map[string]bool{
		`null`: false, `{}`: true, `{"required-row-filter":false}`: true, `{"new-thing":1}`: true, `[]`: true, `0`: true,
		`{"required-row-filter":false,"required-row-filter":true}`: true,
	} {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			f.extra = nil
			if r.Header.Get("Authorization") == "Bearer alice" && r.Method == http.MethodGet {
				f.extra = map[string]any{"read-restrictions": json.RawMessage(raw)}
			}
			return false
		}
		f.version++
		got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
		must(t, err)
		if demand := ReadRestrictions(got); comes != (demand != nil) || (comes && string(demand) != raw) {
			t.Errorf("%s comes as %s", raw, demand)
		}
		got, err = c.Commit(as("alice"), orders, func(_ context.Context, tx *table.Transaction, _ *plan.Table) error {
			return tx.SetProperties(map[string]string{"a": raw})
		})
		must(t, err)
		if demand := ReadRestrictions(got); comes != (demand != nil) || (comes && string(demand) != raw) {
			t.Errorf("after a commit %s is %s", raw, demand)
		}
		got, err = c.Table(as("bob"), orders, plan.AsOf{}, "")
		must(t, err)
		if ReadRestrictions(got) != nil {
			t.Errorf("bob gets what alice got: %s", ReadRestrictions(got))
		}
	}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/orders") {
			return false
		}
		_, _ = io.WriteString(w, `{"read-restrictions": {"required-row-filter": false}, "metadata": {}, "read-restrictions": null}`)
		return true
	}
	f.version++
	_, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
	wants(t, "two demands", err, fault.Unavailable, "does not answer as")
	f.before = nil
	for mode, refused := range map[string]bool{"client": false, "CLIENT": false, "": false, "server": false, "Server": false, "other": true, "catalog": true} {
		f.extra = map[string]any{"config": map[string]string{"scan-planning-mode": mode}}
		f.version++
		got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
		if refused {
			wants(t, mode, err, fault.Unsupported, "a way to plan")
			continue
		}
		must(t, err)
		if h := got.Handle.(*Handle); h.ServerPlanned() != strings.EqualFold(mode, "server") {
			t.Errorf("%q: planned by the server: %v", mode, h.ServerPlanned())
		}
	}
	for _, file := range []string{"table-restricted", "table-restricted-other", "table-restricted-plain"} {
		text, err := os.ReadFile(filepath.Join("testdata", "rustberg", file+".json"))
		must(t, err)
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/orders") {
				_, _ = w.Write(text)
				return true
			}
			return false
		}
		got, err := c.Table(as("ext_auditor"), orders, plan.AsOf{}, "")
		must(t, err)
		if ReadRestrictions(got) == nil || !got.Handle.(*Handle).ServerPlanned() {
			t.Errorf("%s is not restricted", file)
		}
	}
}

// TestRESTPlanned: what the catalog plans it plans now, so its demands must be of now
// as well, however old an answer may be otherwise.
func TestRESTPlanned(t *testing.T) {
	for mode, again := range map[string]bool{"client": false, "server": true} {
		f := newFakeREST(t)
		c := f.open(t)
		f.extra = map[string]any{"config": map[string]string{"scan-planning-mode": mode}}
		for range 3 {
			_, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
			must(t, err)
		}
		if asked := f.seen(); len(asked) > 2 != again {
			t.Errorf("%s: asked for %q", mode, asked)
		}
	}
}

// TestRESTVended: credentials that the catalog adds are for one statement.
func TestRESTVended(t *testing.T) {
	f := newFakeREST(t)
	c := f.open(t)
	for _, extra := range []map[string]any{
		{"config": map[string]string{"s3.secret-access-key": "hush"}},
		{"storage-credentials": []any{map[string]any{"prefix": "s3://b", "config": map[string]string{"s3.session-token": "hush"}}}},
	} {
		f.extra = extra
		f.version++
		for range 2 {
			f.seen()
			got, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
			must(t, err)
			if text := fmt.Sprintf("%+v", got); strings.Contains(text, "hush") {
				t.Errorf("a secret is shown: %s", text)
			}
			if n := len(f.seen()); n == 0 {
				t.Error("an answer with credentials was kept")
			}
		}
	}
}

// TestRESTLocal: a catalog is another party; its metadata do not lead to files of
// this machine beyond one folder.
func TestRESTLocal(t *testing.T) {
	f := newFakeREST(t)
	must(t, os.MkdirAll(filepath.Join(f.dir, "lake", "in"), 0o755))
	must(t, os.WriteFile(filepath.Join(f.dir, "lake", "in", "x"), []byte("x"), 0o644))
	out := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(out, []byte("secret"), 0o644))
	must(t, os.Symlink(out, filepath.Join(f.dir, "lake", "link")))
	must(t, os.Symlink(out, filepath.Join(f.dir, "lake", "l%69nk2")))
	fs, err := confine("file://"+f.dir+"/lake", f.dir)
	must(t, err)
	for _, yes := range []string{f.dir + "/lake/in/x", "file:" + f.dir + "/lake/in/x", "file://" + f.dir + "/lake/in/x", "file://localhost" + f.dir + "/lake/in/x"} {
		file, err := fs.Open(yes)
		if err != nil {
			t.Errorf("%s: %v", yes, err)
			continue
		}
		must(t, file.Close())
	}
	w := fs.(confined)
	for _, no := range []string{
		out, "file:" + out, "file://" + out, f.dir + "/../" + filepath.Base(out), "file:" + f.dir + "/lake/../../x", f.dir + "/lake/link", "file://" + f.dir + "/lake/l%69nk2", f.dir + "x/y",
		"file://other" + f.dir + "/lake/in/x", "s3://b" + f.dir + "/lake/in/x", "in/x", "file:in/x", "", "file://" + f.dir + "/lake/%2e%2e/%2e%2e/x",
	} {
		_, open := fs.Open(no)
		_, read := w.ReadFile(no)
		_, create := w.Create(no)
		for op, err := range map[string]error{"open": open, "read": read, "create": create, "write": w.WriteFile(no, nil), "remove": fs.Remove(no), "walk": w.WalkDir(no, nil), "removeall": w.RemoveAll(no)} {
			if err == nil {
				t.Errorf("%s %q is possible", op, no)
			} else if strings.Contains(err.Error(), out) {
				t.Errorf("%s shows a path: %v", op, err)
			}
		}
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "secret" {
		t.Errorf("%q %v", got, err)
	}
	for location, kind := range map[string]fault.Kind{"file:///etc": fault.Unsupported, "s3://b/t": fault.Unsupported, "relative": fault.Corrupt, "file://" + f.dir: fault.Unsupported} {
		if _, err := confine(location, f.dir); !fault.Is(err, kind) {
			t.Errorf("%s: %v", location, err)
		}
	}
	if _, err := confine("file://"+f.dir+"/lake", ""); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without a folder: %v", err)
	}
}

// TestRESTUnknown: when the catalog does not say whether it took a commit, it is
// asked; and what is not known is said to be so.
func TestRESTUnknown(t *testing.T) {
	set := func(v string) PropertyChange {
		return func(*plan.Table, map[string]string) (map[string]string, []string, error) {
			return map[string]string{"a": v}, nil, nil
		}
	}
	for what, x := range map[string]struct {
		lost  func(w http.ResponseWriter, done bool) bool
		known bool
	}{
		"done and 500": {func(w http.ResponseWriter, done bool) bool {
			if done {
				w.WriteHeader(500)
			}
			return done
		}, true},
		"done and no answer": {func(w http.ResponseWriter, done bool) bool {
			if done {
				panic(http.ErrAbortHandler)
			}
			return false
		}, true},
		"not done and 502": {func(w http.ResponseWriter, done bool) bool {
			if !done {
				w.WriteHeader(502)
			}
			return !done
		}, false},
		"done and nonsense": {func(w http.ResponseWriter, done bool) bool {
			if done {
				_, _ = io.WriteString(w, "<html>")
			}
			return done
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFakeREST(t)
			c := f.open(t)
			f.lost = x.lost
			got, err := c.UpdateProperties(as("alice"), orders, set("1"))
			switch {
			case x.known:
				if err != nil || got.Properties["a"] != "1" {
					t.Errorf("%v", err)
				}
			default:
				wants(t, what, err, fault.Unavailable, "it is not known whether")
				if !errors.Is(err, ErrUnknown) {
					t.Errorf("no ErrUnknown: %v", err)
				}
			}
			if n := len(slices.DeleteFunc(f.seen(), func(r string) bool { return !strings.HasPrefix(r, "POST") })); n != 1 {
				t.Errorf("%d commits were sent", n)
			}
		})
	}
	// A refusal is a refusal.
	f := newFakeREST(t)
	c := f.open(t)
	f.lost = func(w http.ResponseWriter, done bool) bool { refuse(w, 400, "BadRequestException"); return true }
	_, err := c.UpdateProperties(as("alice"), orders, set("1"))
	if errors.Is(err, ErrUnknown) || !fault.Is(err, fault.BadStatement) {
		t.Errorf("a refusal: %v", err)
	}
}

// TestRESTService: in the service's name everybody gets the same answers, a token
// is got when there is need, and one that is refused is replaced once.
func TestRESTService(t *testing.T) {
	f := newFakeREST(t)
	var issued atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_secret") != "hush" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "PRINCIPAL_ROLE:ALL" {
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error": "unauthorized_client", "error_description": "The client is not authorized"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"access_token": "service-%d", "token_type": "bearer", "expires_in": 3600}`, issued.Add(1))
	}))
	defer endpoint.Close()
	service := func(secret string) *REST {
		return remote(t, f.URL, rest.Options{Tokens: rest.Service(rest.ClientCredentials{
			Catalog: "lake", URL: endpoint.URL, ID: "sqe", Secret: secret, Scope: "PRINCIPAL_ROLE:ALL", HTTP: http.DefaultClient,
		})}, RESTOptions{Local: f.dir, Bound: time.Hour})
	}
	valid := "Bearer service-1"
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != valid {
			w.WriteHeader(401)
			return true
		}
		return false
	}
	c := service("hush")
	must(t, second(c.Table(ctx, orders, plan.AsOf{}, "")))
	f.seen()
	must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
	if got := f.seen(); len(got) != 0 || issued.Load() != 1 {
		t.Errorf("%q, %d tokens", got, issued.Load())
	}
	f.mu.Lock()
	valid = "Bearer service-2"
	f.mu.Unlock()
	must(t, second(c.fresh(ctx, orders)))
	if issued.Load() != 2 {
		t.Errorf("%d tokens", issued.Load())
	}
	f.mu.Lock()
	valid = "Bearer none"
	f.mu.Unlock()
	_, err := c.fresh(ctx, orders)
	wants(t, "refused", err, fault.Unavailable, "refuses the credentials of this server")
	if issued.Load() != 3 {
		t.Errorf("%d tokens", issued.Load())
	}
	_, err = service("wrong").Table(ctx, orders, plan.AsOf{}, "")
	wants(t, "wrong secret", err, fault.Unavailable, "cannot be got")
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "wrong") {
			t.Errorf("the secret is shown: %v", e)
		}
	}
	// A token in a file, which others renew.
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	f.mu.Lock()
	valid = "Bearer first"
	f.mu.Unlock()
	c = remote(t, f.URL, rest.Options{Tokens: rest.Static("lake", "", file)}, RESTOptions{Local: f.dir})
	must(t, second(c.fresh(ctx, orders)))
	f.mu.Lock()
	valid = "Bearer second"
	f.mu.Unlock()
	must(t, os.WriteFile(file, []byte("second\n"), 0o600))
	must(t, second(c.fresh(ctx, orders)))
	must(t, os.Remove(file))
	_, err = c.fresh(ctx, orders)
	wants(t, "no file", err, fault.Unavailable, "cannot be read")
}

// TestRESTLog: what the catalog refused is in the log of the operator, and no token.
func TestRESTLog(t *testing.T) {
	f := newFakeREST(t)
	var log bytes.Buffer
	told := 0
	c := remote(t, f.URL, rest.Options{}, RESTOptions{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Refused: func(context.Context, Refusal) { told++ },
	})
	now := time.Now()
	c.now = func() time.Time { return now } // what is refused is kept
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/config") {
			return false
		}
		refuse(w, 403, "ForbiddenException")
		return true
	}
	for range 3 {
		_, err := c.Table(as("the-token-of-alice"), orders, plan.AsOf{}, "")
		wants(t, "hidden", err, fault.NotFound, "doesn't exist")
	}
	text := log.String()
	if n := strings.Count(text, "catalog refused"); n != 1 || told != 3 {
		t.Errorf("one refusal that three statements met is logged %d times and counted %d times", n, told)
	}
	if !strings.Contains(text, "ForbiddenException") || !strings.Contains(text, "catalog=lake") {
		t.Errorf("the log says nothing: %s", text)
	}
	if strings.Contains(strings.ReplaceAll(text, "principal=the-token-of-alice", ""), "the-token-of-alice") {
		t.Errorf("the log holds the token: %s", text)
	}
}

// TestRESTLists: pages are followed to their end and not in circles, and a server
// that does not heed the parent leads nowhere.
func TestRESTLists(t *testing.T) {
	f := newFakeREST(t)
	page := func(w http.ResponseWriter, names []string, next string) {
		var ids []map[string]any
		for _, n := range names {
			ids = append(ids, map[string]any{"namespace": []string{"sales"}, "name": n})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"identifiers": ids, "next-page-token": next})
	}
	circle := false
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/v1/namespaces":
			_, _ = io.WriteString(w, `{"namespaces": [["sales"], ["b"], ["b"], ["x", "y"]]}`)
		case !strings.HasSuffix(r.URL.Path, "/tables"):
			return false
		case circle:
			page(w, []string{"a"}, "again")
		case q.Get("pageToken") == "":
			page(w, []string{"b", "a"}, "2 ä&")
		case q.Get("pageToken") == "2 ä&":
			page(w, []string{"c"}, "")
		}
		return true
	}
	c := f.open(t)
	if got, err := c.Tables(as("alice"), []string{"sales"}); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := c.Namespaces(as("alice")); err != nil || !slices.EqualFunc(got, [][]string{{"b"}, {"sales"}}, slices.Equal) {
		t.Errorf("%q %v", got, err)
	}
	f.mu.Lock()
	circle = true
	f.mu.Unlock()
	_, err := c.Tables(as("bob"), []string{"sales"})
	wants(t, "in a circle", err, fault.Unavailable, "does not answer as")
}

// TestRESTNames: names reach the server as they are, or not at all.
func TestRESTNames(t *testing.T) {
	for _, separator := range []string{"%1F", "%2E", "."} {
		f := newFakeREST(t)
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v1/config" {
				return false
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"overrides": map[string]string{"namespace-separator": separator, "prefix": "a/b%7Cc"}})
			return true
		}
		c := f.open(t)
		_, _ = c.Table(as("alice"), orders, plan.AsOf{}, "") // asks for the configuration
		f.seen()
		for _, x := range []struct {
			ns   []string
			name string
			want string
		}{
			{[]string{"a", "b"}, "t", "/v1/a/b%7Cc/namespaces/a" + map[bool]string{true: "%1F", false: "%2E"}[separator == "%1F"] + "b/tables/t"},
			{[]string{"a"}, "t/../u?x=1#y+z%41", "/v1/a/b%7Cc/namespaces/a/tables/t%2F..%2Fu%3Fx%3D1%23y%2Bz%2541"},
			{[]string{"a"}, "..", ""},
			{[]string{"a"}, ".", ""},
			{[]string{".."}, "t", ""},
			{[]string{"a\x1fb.c"}, "t", ""},
		} {
			_, err := c.Table(as("alice"), plan.TableName{Catalog: "lake", Namespace: x.ns, Name: x.name}, plan.AsOf{}, "")
			wants(t, x.name, err, fault.NotFound, "doesn't exist")
			got := strings.Join(f.seen(), " ")
			if x.want == "" && got != "" || x.want != "" && got != "GET "+x.want {
				t.Errorf("%q: %q, want %q", x.name, got, x.want)
			}
		}
	}
	for _, bad := range []string{"..", "a/../b", "/a", "a?b", "a#b", "%2e%2e", "a b"} {
		f := newFakeREST(t)
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			_ = json.NewEncoder(w).Encode(map[string]any{"overrides": map[string]string{"prefix": bad}})
			return true
		}
		_, err := f.open(t).Namespaces(as("alice"))
		wants(t, "prefix "+bad, err, fault.Unavailable, "does not answer as")
	}
}
