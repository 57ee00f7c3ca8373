//go:build e2e

package catalogs

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// TestFaults: what a MySQL client is told of each way in which a catalog can fail: never
// that there is no such table, and nothing of the token of the server or its address.
func TestFaults(t *testing.T) {
	const token = "0123456789-the-token-of-the-server"
	m := &many{namespaces: 2, tables: 2}
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere.Add(1)
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another server")
		}
	}))
	defer other.Close()
	var fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	catalog := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s: another token", r.URL.Path)
		}
		// The protocol is answered by one that works up to the table.
		if f := fault.Load(); f == nil || !strings.Contains(r.URL.Path, "/tables/") || !(*f)(w, r) {
			m.ServeHTTP(w, r)
		}
	}))
	catalog.Config.ErrorLog = log.New(io.Discard, "", 0)
	catalog.Start()
	defer catalog.Close()
	s := serve(t, fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"service\"\ntoken = %q\ntimeout = \"1s\"\nvisibility-max-age = \"0s\"", catalog.URL, token))
	db := s.Open("admin")
	defer db.Close()
	status := func(code int, header, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if k, v, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(k, v)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	raw := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
			return true
		}
	}
	const away, nonsense = "does not answer", "does not answer as an Iceberg REST catalog does"
	cases := []struct {
		what   string
		fault  func(http.ResponseWriter, *http.Request) bool
		number uint16
		text   string
	}{
		{"slow", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, 1429, "does not answer in time"},
		{"stuck in the middle", func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.WriteString(w, `{"metadata": `)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}, 1429, "does not answer in time"},
		{"hangs up", raw(""), 1429, away},
		{"no HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), 1429, away},
		{"garbage", status(200, "", "]{"), 1429, nonsense},
		{"HTML", status(200, "Content-Type: text/html", "<html>Welcome</html>"), 1429, nonsense},
		{"another JSON", status(200, "", `["a"]`), 1429, nonsense},
		{"nothing", status(200, "", ""), 1429, nonsense},
		{"half of an answer", raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"metadata\": "), 1429, away},
		{"longer than it says", raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{\"metadata\": {}}"), 1429, nonsense},
		{"broken metadata", status(200, "", `{"metadata-location": "x", "metadata": {"format-version": 9}}`), 1194, "cannot be understood"},
		{"404 of a proxy", status(404, "", "<html>Not Found</html>"), 1429, nonsense},
		{"500", status(500, "", `{"error": {"message": "`+token+`", "type": "RuntimeException", "code": 500}}`), 1429, away},
		{"502", status(502, "", ""), 1429, away},
		{"503 for an hour", status(503, "Retry-After: 3600", ""), 1429, away},
		{"429", status(429, "Retry-After: 0", ""), 1429, "too much to do"},
		{"501", status(501, "", ""), 1235, "does not support"},
		{"400", status(400, "", `{"error": {"message": "no", "type": "BadRequestException", "code": 400}}`), 1210, "refuses such a name"},
		{"401", status(401, "", ""), 1429, "refuses the credentials of this server"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, 1429, nonsense},
		{"in a circle", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, 1429, nonsense},
	}
	works := func() {
		t.Helper()
		fault.Store(nil)
		for start := time.Now(); ; {
			got := sqetest.Ask(ctx, db, "DESCRIBE ns01.t01")
			if got.Err == nil {
				return
			}
			// An answer within a second is much to ask of a busy machine.
			if time.Since(start) > 2*time.Minute {
				t.Fatalf("the catalog works: %v", got.Err)
			}
		}
	}
	works()
	for _, x := range cases {
		fault.Store(&x.fault)
		// Of a table that is there and of one that is not, alone and beside another one.
		for i, statement := range []string{"SELECT * FROM ns01.t01", "SELECT * FROM ns01.nothing", "SELECT * FROM ns00.t00 a JOIN ns01.t01 b USING (id)"} {
			if x.what == "503 for an hour" && i > 0 {
				continue // it is waited for, if not for that long
			}
			got := sqetest.Ask(ctx, db, statement)
			text := fmt.Sprint(got.Err)
			if got.Number() != x.number || !strings.Contains(text, x.text) {
				t.Errorf("%s: %s: %d %s, want %d with %q", x.what, statement, got.Number(), text, x.number, x.text)
			}
			if strings.Contains(text, "exist") || strings.Contains(text, token) || strings.Contains(text, catalog.Listener.Addr().String()) {
				t.Errorf("%s: %s: %s", x.what, statement, text)
			}
		}
		works()
	}
	catalog.Close()
	if got := sqetest.Ask(ctx, db, "SELECT * FROM ns01.t01"); got.Number() != 1429 || !strings.Contains(fmt.Sprint(got.Err), away) {
		t.Errorf("down: %d %v", got.Number(), got.Err)
	}
	if elsewhere.Load() != 0 {
		t.Errorf("%d requests went elsewhere", elsewhere.Load())
	}
	events, err := os.ReadFile(filepath.Join(s.Dir, "audit.jsonl"))
	must(t, err)
	if strings.Contains(string(events), token) {
		t.Error("the token is in the audit log")
	}
}
