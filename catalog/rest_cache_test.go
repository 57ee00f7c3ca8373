package catalog

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// TestRESTAbsent: that something is not there, or may not be seen, is asked for once
// within a bound, by each principal for itself, and what this process changes shows at
// once.
func TestRESTAbsent(t *testing.T) {
	f := newFakeREST(t)
	var told atomic.Int32
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Refused: func(context.Context, Refusal) { told.Add(1) }})
	now := time.Now()
	c.now = func() time.Time { return now }
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "secret") || r.URL.Path == "/v1/namespaces/vault/tables" {
			refuse(w, 403, "ForbiddenException")
			return true
		}
		return false
	}
	asks := map[string]struct {
		ask  func(context.Context) error
		kind fault.Kind // 0: an empty list
	}{
		"a missing table":     {func(ctx context.Context) error { return second(c.Table(ctx, name("sales", "none"), plan.AsOf{}, "")) }, fault.NotFound},
		"a hidden table":      {func(ctx context.Context) error { return second(c.Table(ctx, name("sales", "secret"), plan.AsOf{}, "")) }, fault.NotFound},
		"a missing view":      {func(ctx context.Context) error { return second(c.View(ctx, name("sales", "none"))) }, fault.NotFound},
		"a hidden view":       {func(ctx context.Context) error { return second(c.View(ctx, name("sales", "secret"))) }, fault.NotFound},
		"a missing namespace": {func(ctx context.Context) error { return second(c.Tables(ctx, []string{"none"})) }, 0},
		"a hidden namespace":  {func(ctx context.Context) error { return second(c.Tables(ctx, []string{"vault"})) }, 0},
	}
	alice, bob := as("alice"), as("bob")
	must(t, second(c.Table(alice, orders, plan.AsOf{}, "")))
	must(t, second(c.Table(bob, orders, plan.AsOf{}, "")))
	for what, x := range asks {
		f.seen()
		told.Store(0)
		first := x.ask(alice)
		if x.kind != 0 && !fault.Is(first, x.kind) || x.kind == 0 && first != nil {
			t.Errorf("%s: %v", what, first)
		}
		if n := len(f.seen()); n != 1 {
			t.Errorf("%s: %d requests, want 1", what, n)
		}
		hidden := told.Load()
		again := x.ask(alice)
		if n := len(f.seen()); n != 0 || fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("%s, again: %d requests, %v", what, n, again)
		}
		if told.Load() != 2*hidden {
			t.Errorf("%s: %d refusals were told of, after %d", what, told.Load(), hidden)
		}
		// Of what alice was told bob is told nothing.
		_ = x.ask(bob)
		if n := len(f.seen()); n != 1 {
			t.Errorf("%s, another principal: %d requests, want 1", what, n)
		}
		now = now.Add(absentFor)
		_ = x.ask(alice)
		if n := len(f.seen()); n != 1 {
			t.Errorf("%s, after the bound: %d requests, want 1", what, n)
		}
		c.changed(name("sales", "elsewhere"))
		_ = x.ask(alice)
		if n := len(f.seen()); n != 1 {
			t.Errorf("%s, after a change of this process: %d requests, want 1", what, n)
		}
	}
	// An answer that was on its way while something was changed is not kept.
	c.changed()
	f.before = func(http.ResponseWriter, *http.Request) bool { c.changed(); return false }
	_ = asks["a missing table"].ask(alice)
	f.before = nil
	f.seen()
	_ = asks["a missing table"].ask(alice)
	if n := len(f.seen()); n != 1 {
		t.Errorf("an answer of before a change was kept: %d requests", n)
	}
}

// TestRESTMetadataOnly: a statement about definitions asks for no access to the rows,
// and what it was shown opens no files and serves nobody who reads.
func TestRESTMetadataOnly(t *testing.T) {
	f := newFakeREST(t)
	c := remote(t, f.URL, rest.Options{Delegation: "vended-credentials"}, RESTOptions{Local: f.dir})
	var asked, refused atomic.Int32
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Iceberg-Access-Delegation") == "" {
			return false
		}
		if asked.Add(1); r.Header.Get("Authorization") == "Bearer bob" {
			refused.Add(1)
			refuse(w, 403, "ForbiddenException")
			return true
		}
		return false
	}
	bob := as("bob")
	for _, ctx := range []context.Context{bob, as("alice")} {
		defined, err := c.Table(MetadataOnly(ctx), orders, plan.AsOf{}, "")
		must(t, err)
		if n := asked.Load(); n != 0 {
			t.Errorf("%d requests asked for access to the rows", n)
		}
		_, err = defined.Handle.(*Handle).Table.FS(ctx)
		wants(t, "the files", err, fault.Internal, "definitions")
	}
	wants(t, "bob reads", second(c.Table(bob, orders, plan.AsOf{}, "")), fault.NotFound, "doesn't exist")
	if refused.Load() != 1 {
		t.Errorf("the catalog refused %d times", refused.Load())
	}
	// That bob may not read does not hide the definition, and alice may read.
	must(t, second(c.Table(MetadataOnly(bob), orders, plan.AsOf{}, "")))
	read, err := c.Table(as("alice"), orders, plan.AsOf{}, "")
	must(t, err)
	must(t, second(read.Handle.(*Handle).Table.FS(as("alice"))))
}

// TestRESTAbsentBounded: names that are asked for and are not there fill no memory, and
// no failure but an absence is kept.
func TestRESTAbsentBounded(t *testing.T) {
	f := newFakeREST(t)
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Memory: 20 * entrySize, Bound: time.Hour})
	for i := range 50 {
		wants(t, "none", second(c.Table(as("alice"), name("sales", fmt.Sprint("none", i)), plan.AsOf{}, "")), fault.NotFound, "doesn't exist")
	}
	if n := c.cache.entries.Len(); n != 10 {
		t.Errorf("%d names are kept, want 10 in half of the memory", n)
	}
	for _, status := range []int{401, 429, 500, 501, 400} {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			refuse(w, status, "SomeException")
			return true
		}
		if second(c.Table(as("alice"), orders, plan.AsOf{}, "")) == nil {
			t.Errorf("%d shows the table", status)
		}
		f.before = nil
		must(t, second(c.Table(as("alice"), orders, plan.AsOf{}, "")))
		c.changed(orders)
	}
	none := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir, Bound: -1})
	for range 2 {
		f.seen()
		_ = second(none.Table(as("alice"), name("sales", "none"), plan.AsOf{}, ""))
		if got := f.seen(); !slices.Contains(got, "GET /v1/namespaces/sales/tables/none") {
			t.Errorf("without a bound each is asked for: %q", got)
		}
	}
}

// meeting answers requests for tables only when so many are there at once.
type meeting struct {
	f    *fakeREST
	want int

	mu      sync.Mutex
	waiting int
	all     chan struct{}
}

func meet(f *fakeREST, want int) *meeting {
	return &meeting{f: f, want: want, all: make(chan struct{})}
}

// ServeHTTP implements http.Handler. A request that stays alone gets no answer: the
// client's time is over then.
func (m *meeting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/tables/") {
		m.mu.Lock()
		if m.waiting++; m.waiting == m.want {
			close(m.all)
		}
		m.mu.Unlock()
		select {
		case <-m.all:
		case <-r.Context().Done():
			return
		}
	}
	for _, other := range []string{"/tables/b", "/tables/c"} {
		if strings.HasSuffix(r.URL.Path, other) {
			r.URL.Path = "/v1/namespaces/sales/tables/orders"
		}
	}
	m.f.ServeHTTP(w, r)
}

// TestRESTAhead: what a statement will ask for is asked for at once, and each once. An
// answer that may not be kept is for that statement alone.
func TestRESTAhead(t *testing.T) {
	for what, x := range map[string]struct {
		bound  time.Duration
		vended bool
	}{"kept": {time.Hour, false}, "asked each time": {-1, false}, "credentials": {time.Hour, true}} {
		t.Run(what, func(t *testing.T) {
			f := newFakeREST(t)
			if x.vended {
				f.extra = map[string]any{"config": map[string]string{"s3.access-key-id": "k", "s3.secret-access-key": "s"}}
			}
			server := serveHTTP(t, meet(f, 3))
			c := remote(t, server, rest.Options{}, RESTOptions{Local: f.dir, Bound: x.bound})
			var wanted []Wanted
			for _, n := range []string{"orders", "b", "c"} {
				wanted = append(wanted, Wanted{Name: name("sales", n), Table: true, View: true})
			}
			statement := WithStatement(as("alice"))
			c.Preload(statement, wanted)
			if got := f.seen(); len(got) != 4 {
				t.Errorf("%q, want the configuration and three tables", got)
			}
			for _, w := range wanted {
				must(t, second(c.Table(statement, w.Name, plan.AsOf{}, "")))
			}
			if got := f.seen(); len(got) != 0 {
				t.Errorf("asked for again: %q", got)
			}
			must(t, second(c.Table(WithStatement(as("alice")), orders, plan.AsOf{}, "")))
			if n, again := len(f.seen()), x.vended || x.bound < 0; (n == 1) != again {
				t.Errorf("another statement sent %d requests", n)
			}
			// What is changed meanwhile is asked for anew.
			c.Preload(statement, wanted)
			f.seen()
			c.changed(orders)
			must(t, second(c.Table(statement, orders, plan.AsOf{}, "")))
			if n := len(f.seen()); n != 1 {
				t.Errorf("after a change: %d requests", n)
			}
			// Nobody else is given it.
			c.Preload(statement, wanted)
			f.seen()
			other := context.WithValue(as("bob"), statementKey{}, statement.Value(statementKey{}))
			must(t, second(c.Table(other, orders, plan.AsOf{}, "")))
			if got := f.seen(); !slices.Contains(got, "GET /v1/namespaces/sales/tables/orders") {
				t.Errorf("bob got what alice asked for: %q", got)
			}
		})
	}
}

const someView = `{"metadata-location": "file:/x/metadata/1.json", "metadata": {"view-uuid": "c60b831c-6f48-4b72-94d5-000000000001", "format-version": 1,
	"location": "file:/x", "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "one", "required": false, "type": "int"}]}],
	"current-version-id": 1, "versions": [{"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {"engine-name": "sqe"},
	"representations": [{"type": "sql", "sql": "SELECT 1 AS one", "dialect": "sqe"}], "default-namespace": ["sales"]}],
	"version-log": [{"timestamp-ms": 1, "version-id": 1}], "properties": {}}}`

// TestRESTView: a name that was shown as a view is not looked for as a table within
// the bound; when this process makes it a table it is one at once.
func TestRESTView(t *testing.T) {
	f := newFakeREST(t)
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir})
	now := time.Now()
	c.now = func() time.Time { return now }
	isTable := false
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/v1/namespaces/sales/views/v":
			_, _ = w.Write([]byte(someView))
			return true
		case r.URL.Path == "/v1/namespaces/sales/tables/v" && isTable:
			r.URL.Path = "/v1/namespaces/sales/tables/orders"
		}
		return false
	}
	v := name("sales", "v")
	read := func(user string) {
		t.Helper()
		if err := second(c.Table(as(user), v, plan.AsOf{}, "")); !fault.Is(err, fault.NotFound) {
			t.Errorf("a view is a table: %v", err)
		}
		must(t, second(c.View(as(user), v)))
	}
	c.Preload(as("alice"), []Wanted{{Name: v, Table: true, View: true}})
	if got := f.seen(); len(got) != 3 {
		t.Errorf("%q, want the configuration, a table, a view", got)
	}
	now = now.Add(c.bound - time.Millisecond)
	read("alice")
	if got := f.seen(); len(got) != 0 {
		t.Errorf("asked within the bound: %q", got)
	}
	read("bob")
	if got := f.seen(); len(got) != 3 {
		t.Errorf("another principal: %q", got)
	}
	f.mu.Lock()
	isTable = true
	f.mu.Unlock()
	c.changed(v)
	must(t, second(c.Table(as("alice"), v, plan.AsOf{}, "")))
}

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestRESTHiddenChange: a change of what may not be seen fails as that of what is not
// there, whatever kind of object it is.
func TestRESTHiddenChange(t *testing.T) {
	f := newFakeREST(t)
	c := remote(t, f.URL, rest.Options{}, RESTOptions{Local: f.dir})
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		// A view: no table of that name, and a view for others.
		if strings.HasSuffix(r.URL.Path, "/views/secret") || r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/orders") {
			refuse(w, 403, "ForbiddenException")
			return true
		}
		return false
	}
	ctx := as("alice")
	must(t, second(c.Views(ctx, []string{"sales"})))
	f.seen()
	hidden := c.DropView(ctx, name("sales", "secret"), false)
	n := len(f.seen())
	missing := c.DropView(ctx, name("sales", "nothing"), false)
	wants(t, "a hidden view", hidden, fault.NotFound, "doesn't exist")
	wants(t, "a missing view", missing, fault.NotFound, "doesn't exist")
	if m := len(f.seen()); m != n {
		t.Errorf("%d requests for a hidden view, %d for a missing one", n, m)
	}
	// Who may see it is told.
	wants(t, "a table that is shown", second(c.DropTable(ctx, orders, false)), fault.Denied, "does not permit")
}

// TestRESTRace: two principals list and load at the same time, while what is kept ends and
// other things change, and each is shown what is for it alone.
func TestRESTRace(t *testing.T) {
	f := newFakeREST(t)
	server := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/"); {
		case path == "namespaces" && r.URL.Query().Get("parent") == "":
			_, _ = fmt.Fprintf(w, `{"namespaces": [[%q]]}`, who)
		case path == "namespaces":
			_, _ = fmt.Fprint(w, `{"namespaces": []}`)
		case path == "namespaces/sales/tables" || path == "namespaces/sales/views":
			_, _ = fmt.Fprintf(w, `{"identifiers": [{"namespace": ["sales"], "name": %q}]}`, who)
		case strings.HasPrefix(path, "namespaces/sales/tables/"):
			// Each has one table, and is refused that of the other one or told that there is none.
			if name := path[strings.LastIndexByte(path, '/')+1:]; name == who {
				r.URL.Path = "/v1/namespaces/sales/tables/orders"
			} else {
				refuse(w, 403+len(who)%2, "SomeException")
				return
			}
			fallthrough
		default:
			f.ServeHTTP(w, r)
		}
	}))
	c := remote(t, server, rest.Options{}, RESTOptions{Local: f.dir, Bound: 2 * time.Millisecond})
	users := []string{"alice", "bob"}
	var g sync.WaitGroup
	for i := range 8 {
		me, other := users[i%2], users[1-i%2]
		g.Go(func() {
			for n := range 100 {
				ctx := WithStatement(as(me))
				c.PreloadNames(ctx, [][]string{{"sales"}})
				c.Preload(ctx, []Wanted{{Name: name("sales", me), Table: true}, {Name: name("sales", other), Table: true}})
				for what, list := range map[string]func(context.Context, []string) ([]string, error){"tables": c.Tables, "views": c.Views} {
					if got, err := list(ctx, []string{"sales"}); err != nil || !slices.Equal(got, []string{me}) {
						t.Errorf("%s is shown the %s %q, %v", me, what, got, err)
					}
				}
				if got, err := c.Namespaces(ctx); err != nil || len(got) != 1 || got[0][0] != me {
					t.Errorf("%s is shown the namespaces %q, %v", me, got, err)
				}
				if err := second(c.Table(ctx, name("sales", me), plan.AsOf{}, "")); err != nil {
					t.Errorf("%s: %v", me, err)
				}
				if err := second(c.Table(ctx, name("sales", other), plan.AsOf{}, "")); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s is shown the table of %s: %v", me, other, err)
				}
				if n%10 == i {
					c.changed(name("sales", me))
				}
			}
		})
	}
	g.Wait()
}
