//go:build e2e

package stack

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// TestRefusedMidway: a catalog that takes the token for one table of a statement and
// refuses it for the next, with a 401 without a body, fails the statement as a whole,
// with an error of its own; nothing of the first table is shown, the session goes on,
// and nobody else is concerned.
func TestRefusedMidway(t *testing.T) {
	lake.ours(t)
	schema(t, "midway", "first", "second")
	agrees(t, "alice", "midway.first", true)
	agrees(t, "alice", "midway.second", true)
	behind, err := url.Parse(lake.Address)
	if err != nil {
		t.Fatal(err)
	}
	var refusing atomic.Bool
	var served, refused atomic.Int32
	forward := httputil.NewSingleHostReverseProxy(behind)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !refusing.Load():
		case strings.HasSuffix(r.URL.Path, "/tables/second"):
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		case strings.HasSuffix(r.URL.Path, "/tables/first"):
			served.Add(1)
		}
		r.Host = behind.Host
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	s := second(t, proxy.URL+strings.TrimSuffix(behind.Path, "/"), `visibility-max-age = "0s"`)
	alice := people.Login(t, s, "alice", people.Token(t, "alice"))
	ask := func(text string) sqetest.Answer { return sqetest.Ask(within(t, time.Minute), alice, text) }
	const both = "SELECT a.id, b.id FROM midway.first a JOIN midway.second b ON a.id = b.id"
	if got := ask(both).Said(); got != "1|1" {
		t.Fatal(got)
	}
	refusing.Store(true)
	for _, text := range []string{both, "SELECT id FROM midway.first UNION ALL SELECT id FROM midway.second", "INSERT INTO midway.first SELECT * FROM midway.second"} {
		a := ask(text)
		if a.Number() != 1045 || !strings.Contains(a.Said(), "refuses the token of this session") || len(a.Rows) != 0 {
			t.Errorf("%s: %d %s", text, a.Number(), a.Said())
		}
	}
	if served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d tables were served, %d refused", served.Load(), refused.Load())
	}
	if got := ask(count("midway.first")).Said(); got != "1" {
		t.Error("the session does not go on, or the refused INSERT wrote:", got)
	}
	refusing.Store(false)
	if got := ask(both).Said(); got != "1|1" {
		t.Error("afterwards:", got)
	}
}
