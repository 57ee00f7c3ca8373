//go:build e2e

package stack

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// counter is a proxy before the catalog that counts requests.
type counter struct {
	*httptest.Server
	requests, now, most atomic.Int64
	// together is how many tables are asked for at a time before any is answered, or a
	// long time is over; 0: none waits.
	together atomic.Int64
}

func startCounter(t testing.TB) *counter {
	t.Helper()
	to, err := url.Parse(lake.Address)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		now := c.now.Add(1)
		defer c.now.Add(-1)
		for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
		}
		for end := time.Now().Add(10 * time.Second); strings.Contains(r.URL.Path, "/tables/") && c.most.Load() < c.together.Load() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// TestOverhead measures what identity and object gate cost a statement: against the
// same tables in the same server by way of the catalog's own database. A warm
// statement asks the catalog nothing; a cold one asks once for each table, for all of
// them together.
func TestOverhead(t *testing.T) {
	lake.ours(t)
	schema(t, "cost", "a", "b", "c")
	proxy := startCounter(t)
	folder := filepath.Dir(lake.file)
	s := second(t, proxy.URL, `
[[catalogs]]
name = "plain"
kind = "sqlite"
path = "`+filepath.Join(folder, "catalog.db")+`"
warehouse = "`+filepath.Join(folder, "warehouse")+`"
stored-name = "lake"
`)
	ctx := within(t, 5*time.Minute)
	carol := people.Login(t, s, "carol", people.Token(t, "carol"))
	for _, statement := range []string{"GRANT SELECT ON ALL TABLES IN SCHEMA plain.cost TO USER alice", "GRANT SELECT ON ALL TABLES IN SCHEMA cost TO USER alice"} {
		if a := sqetest.Ask(ctx, carol, statement); a.Err != nil {
			t.Fatalf("%s: %v", statement, a.Err)
		}
	}
	alice := people.Login(t, s, "alice", people.Token(t, "alice"))
	timed := func(on sqetest.Querier, statement, want string) time.Duration {
		t.Helper()
		start := time.Now()
		rows, err := on.QueryContext(ctx, statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		n := ""
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Close(); err != nil || n != want {
			t.Fatalf("%s: %q %v", statement, n, err)
		}
		return time.Since(start)
	}
	one := map[string]string{"rest": "SELECT COUNT(*) FROM cost.a", "sqlite": "SELECT COUNT(*) FROM plain.cost.a"}
	for range 20 {
		timed(alice, one["rest"], "1")
		timed(alice, one["sqlite"], "1")
	}
	// Not over the end of the bound: then it is asked again, once.
	const bound = 5 * time.Second // visibility-max-age when it is not set
	var before int64
	var warm map[string][]time.Duration
	for try := 1; ; try++ {
		time.Sleep(bound)
		began := time.Now()
		timed(alice, one["rest"], "1")
		before, warm = proxy.requests.Load(), map[string][]time.Duration{}
		for time.Since(began) < bound-time.Second && len(warm["rest"]) < 1000 {
			for kind, statement := range one {
				warm[kind] = append(warm[kind], timed(alice, statement, "1"))
			}
		}
		n := proxy.requests.Load() - before
		late := time.Since(began) > bound || len(warm["rest"]) == 0
		if n == 0 && !late {
			break
		}
		if !late || try == 10 {
			t.Fatalf("%d warm statements sent %d requests", len(warm["rest"]), n)
		}
	}
	t.Logf("warm: %s for the table of the REST catalog, %s for the same in SQLite, medians of %d", median(warm["rest"]), median(warm["sqlite"]), len(warm["rest"]))

	const three = "SELECT COUNT(*) FROM cost.a JOIN cost.b USING (id) JOIN cost.c USING (id)"
	for what, statement := range map[string]string{"one table": one["rest"], "three tables": three} {
		var cold, direct []time.Duration
		var requests int64
		for range 10 {
			// A token of its own: nothing is known of what it may see.
			token := kc.Token(t, "sqe-cli", "alice").Access
			c := people.Login(t, s, "alice", token)
			before = proxy.requests.Load()
			cold = append(cold, timed(c, statement, "1"))
			requests = proxy.requests.Load() - before
			start := time.Now()
			for _, p := range []string{"/v1/config?warehouse=lake", path("cost.a")} {
				if status, _, err := ask(ctx, http.MethodGet, proxy.URL+p, token, nil); err != nil || status != http.StatusOK {
					t.Fatal(status, err)
				}
			}
			direct = append(direct, time.Since(start))
		}
		t.Logf("cold, %s: %s with %d requests; the catalog itself answers configuration and table in %s", what, median(cold), requests, median(direct))
		if want := map[string]int64{"one table": 2, "three tables": 4}[what]; requests != want {
			t.Errorf("cold, %s: %d requests, want %d", what, requests, want)
		}
	}
	proxy.most.Store(0)
	proxy.together.Store(3)
	c := people.Login(t, s, "alice", kc.Token(t, "sqe-cli", "alice").Access)
	timed(c, three, "1")
	if proxy.most.Load() != 3 {
		t.Errorf("at most %d requests at a time, want 3", proxy.most.Load())
	}
}
