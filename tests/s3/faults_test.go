//go:build e2e

package s3

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// front stands between SQE and the store and can fail.
type front struct {
	address string
	// trouble sees each request first; true: it has answered.
	trouble atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	seen    atomic.Int64
	bytes   atomic.Int64
}

func newFront(t *testing.T, store *Store) *front {
	t.Helper()
	to, err := url.Parse(store.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{}
	proxy := &httputil.ReverseProxy{
		// The signature is for the address that was asked.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
		},
	}
	port, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	f.address = fmt.Sprintf("http://127.0.0.1:%d", port)
	listener, err := net.Listen("tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.seen.Add(1)
		if g := f.trouble.Load(); g != nil && (*g)(w, r) {
			return
		}
		proxy.ServeHTTP(counting{w, &f.bytes}, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return f
}

type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func (f *front) fail(g func(http.ResponseWriter, *http.Request) bool) {
	if g == nil {
		f.trouble.Store(nil)
		return
	}
	f.trouble.Store(&g)
}

func data(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, ".parquet") }

// TestFaults: each fault of a store has its own error, ends in time, and is over when
// the store is well again.
func TestFaults(t *testing.T) {
	store := StartStore(t)
	f := newFront(t, store)
	l := newLake(t, f.address, "", "")
	l.do("CREATE SCHEMA ns", "CREATE TABLE ns.t (id BIGINT, v VARCHAR(100))", "INSERT INTO ns.t VALUES (1, 'one'), (2, 'two')")
	well := func() {
		t.Helper()
		f.fail(nil)
		l.wants("SELECT count(*) FROM ns.t WHERE v <> ''", "2")
	}
	well()
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the key %s with %s is wrong</Message><AWSAccessKeyId>%s</AWSAccessKeyId></Error>", code, AccessKey, SecretKey, AccessKey)
			return true
		}
	}
	const read, write = "SELECT count(*) FROM ns.t WHERE v <> ''", "INSERT INTO ns.t VALUES (3, 'three')"
	for _, c := range []struct {
		name       string
		fault      func(http.ResponseWriter, *http.Request) bool
		read, put  string
		retried    bool
		tenSeconds bool
	}{
		{name: "denied", fault: answer(403, "AccessDenied"), read: "does not let the server", put: "does not let the server"},
		{name: "unknown key", fault: answer(403, "InvalidAccessKeyId"), read: "does not let the server", put: "does not let the server"},
		{name: "unknown key, as VersityGW says it", fault: answer(404, "InvalidAccessKeyId"), read: "does not let the server", put: "does not let the server"},
		{name: "expired token", fault: answer(400, "ExpiredToken"), read: "does not let the server", put: "does not let the server"},
		{name: "no bucket", fault: answer(404, "NoSuchBucket"), read: "no such bucket", put: "no such bucket"},
		{name: "errors", fault: answer(500, "InternalError"), read: "does not answer", put: "does not answer", retried: true},
		{name: "overload", fault: answer(503, "SlowDown"), read: "does not answer", put: "does not answer", retried: true},
		{name: "redirect", fault: func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		}, read: "no such bucket", put: "no such bucket"},
		{name: "silence", fault: func(w http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, read: "does not answer", put: "does not answer", retried: true},
		{name: "cut off", fault: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Length", "1000")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(make([]byte, 10))
				panic(http.ErrAbortHandler)
			}
			return false
		}, read: "does not answer"},
		{name: "nonsense", fault: func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = w.Write([]byte("<html>hello</html>"))
			return true
		}, read: "Corrupt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.T = t
			f.fail(func(w http.ResponseWriter, r *http.Request) bool {
				return (data(r) || r.Method == http.MethodPut) && c.fault(w, r)
			})
			before := f.seen.Load()
			if c.read == "Corrupt" {
				l.fails(read, "ns.t")
			} else {
				l.fails(read, c.read)
			}
			if n := f.seen.Load() - before; c.retried && n < 4 {
				t.Errorf("asked %d times", n)
			}
			if c.put != "" {
				l.fails(write, c.put)
			}
			well()
		})
	}
	l.T = t
	t.Run("passes", func(t *testing.T) {
		// A fault that is over before the last attempt is none.
		l.T = t
		var n atomic.Int64
		f.fail(func(w http.ResponseWriter, r *http.Request) bool {
			return n.Add(1)%3 != 0 && answer(503, "SlowDown")(w, r)
		})
		l.wants(read, "2")
		l.do("CREATE TABLE ns.u AS SELECT * FROM ns.t")
		f.fail(nil)
		l.wants("SELECT count(*) FROM ns.u", "2")
	})
	l.T = t
	t.Run("cancelled", func(t *testing.T) {
		l.T = t
		var running atomic.Int64
		f.fail(func(w http.ResponseWriter, r *http.Request) bool {
			if data(r) {
				running.Add(1)
				defer running.Add(-1)
				<-r.Context().Done()
				return true
			}
			return false
		})
		limit, cancel := context.WithCancel(ctx)
		defer cancel()
		answer := make(chan sqetest.Answer, 1)
		go func() { answer <- sqetest.Ask(limit, l.client, read) }()
		becomes := func(what string, is func() bool) {
			t.Helper()
			for start := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
				if time.Since(start) > time.Minute {
					t.Fatal(what)
				}
			}
		}
		becomes("the store was not asked", func() bool { return running.Load() > 0 })
		cancel()
		if a := <-answer; a.Err == nil {
			t.Error("a statement that was cancelled is answered")
		}
		// The server has let go of the store as well.
		becomes("requests go on after their statement was cancelled", func() bool { return running.Load() == 0 })
		well()
	})
	l.T = t
	// Failed writes have left nothing.
	for _, p := range stored(t, store) {
		if strings.HasSuffix(p, ".parquet") && !strings.Contains(p, "/t-") && !strings.Contains(p, "/u-") {
			t.Errorf("left: %s", p)
		}
	}
	l.wants("SELECT count(*) FROM ns.`t$files`", "1")
	var parquet []string
	for _, p := range stored(t, store) {
		if strings.Contains(p, "/t-") && strings.HasSuffix(p, ".parquet") {
			parquet = append(parquet, p)
		}
	}
	if len(parquet) != 1 {
		t.Fatalf("files of ns.t: %q", parquet)
	}
	t.Run("down", func(t *testing.T) {
		l.T = t
		store.Stop(t)
		l.fails(read, "does not answer")
		store.Start(t)
		well()
	})
	l.T = t
	t.Run("frozen", func(t *testing.T) {
		l.T = t
		store.Freeze(t)
		l.fails(read, "does not answer")
		store.Thaw(t)
		well()
	})
	l.T = t
	whole, err := os.ReadFile(parquet[0])
	l.must(err)
	t.Run("truncated", func(t *testing.T) {
		l.T = t
		l.must(os.WriteFile(parquet[0], whole[:len(whole)/2], 0o644))
		l.fails(read, "cannot be read")
		l.must(os.WriteFile(parquet[0], nil, 0o644))
		l.fails(read, "cannot be read")
		l.must(os.WriteFile(parquet[0], whole, 0o644))
		well()
	})
	l.T = t
	t.Run("gone", func(t *testing.T) {
		l.T = t
		l.must(os.Rename(parquet[0], filepath.Join(store.Dir, "away")))
		l.fails(read, "is missing")
	})
	l.T = t
}

// TestKeys: keys that the store does not know, and none.
func TestKeys(t *testing.T) {
	store := StartStore(t)
	l := newLake(t, store.Endpoint, "s3-access-key-id = \"UNKNOWNKEY0000000001\"\ns3-secret-access-key = \""+SecretKey+"\"\n", "")
	l.do("CREATE SCHEMA ns", "SELECT count(*) FROM information_schema.tables")
	l.fails("CREATE TABLE ns.t (id INT)", "does not let the server")
	if list := stored(t, store); len(list) > 0 {
		t.Errorf("written: %q", list)
	}
}
