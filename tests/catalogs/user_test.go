//go:build e2e

package catalogs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"sqe/tests/keycloaktest"
	"sqe/tests/sqetest"
)

// gate stands before a REST catalog and decides by the name in the token, as Polaris
// does: 401 without a body for who is not known, 403 for what is not permitted.
type gate struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	known   map[string]bool
	refused map[string]bool // "user path"
	asked   map[string]int  // requests by user
}

func startGate(t testing.TB, catalog string) *gate {
	t.Helper()
	to, err := url.Parse(catalog)
	must(t, err)
	g := &gate{known: map[string]bool{}, refused: map[string]bool{}, asked: map[string]int{}}
	g.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Authorization")
	}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var claims struct {
		Name string `json:"preferred_username"`
	}
	if parts := strings.Split(r.Header.Get("Authorization"), "."); len(parts) == 3 {
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(text, &claims)
		}
	}
	g.mu.Lock()
	known, refused := g.known[claims.Name], g.refused[claims.Name+" "+r.URL.Path]
	g.asked[claims.Name]++
	g.mu.Unlock()
	switch {
	case !known:
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	case refused:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"error": {"message": "Principal '%s' is not authorized for op 'LOAD_TABLE'", "type": "ForbiddenException", "code": 403}}`, claims.Name)
	default:
		g.proxy.ServeHTTP(w, r)
	}
}

func (g *gate) know(user string, yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[user] = yes
}

func (g *gate) refuse(user, path string, yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[user+" "+path] = yes
}

// TestUsers: each session speaks to the catalog with its own token, and what the
// catalog answers to one is not shown to another.
func TestUsers(t *testing.T) {
	kc, err := keycloaktest.Start(filepath.Join(t.TempDir(), "keycloak"))
	must(t, err)
	defer func() { must(t, kc.Stop()) }()
	lake := StartREST(t)
	g := startGate(t, lake.Address)
	for _, u := range []string{"alice", "bob", "carol"} {
		g.know(u, true)
	}
	// The tables and SQE's own policies come first, by a server that the catalog lets do
	// everything.
	first := serve(t, fmt.Sprintf("kind = \"rest\"\nuri = %q\nidentity = \"none\"\nwarehouse = %q", lake.Address, lake.Warehouse))
	admin := first.Open("admin")
	for _, statement := range []string{
		"CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT, region VARCHAR(20))", "INSERT INTO shop.orders VALUES (1, 'EU'), (2, 'US')",
		"CREATE TABLE shop.salaries (id BIGINT)", "INSERT INTO shop.salaries VALUES (1)",
		"GRANT SELECT ON ALL TABLES IN SCHEMA shop TO USER alice, USER bob",
	} {
		if got := sqetest.Ask(ctx, admin, statement); got.Err != nil {
			t.Fatalf("%s: %v", statement, got.Err)
		}
	}
	_ = admin.Close()
	must(t, first.Stop())
	config := filepath.Join(first.Dir, "sqe.toml")
	text, err := os.ReadFile(config)
	must(t, err)
	text = []byte(strings.ReplaceAll(string(text), "identity = \"none\"", "identity = \"user\""))
	text = []byte(strings.ReplaceAll(string(text), lake.Address, g.URL))
	text = append(text, fmt.Sprintf("\n[[identity-providers]]\nname = \"keycloak\"\nissuer = %q\naudience = [\"sqe\"]\n\n[[identity-providers]]\nname = \"local\"\nkind = \"users\"\n", kc.Issuer("sqe"))...)
	must(t, os.WriteFile(config, text, 0o600))
	s, err := sqetest.Serve(config, first.Port)
	must(t, err)
	var tokens []string
	defer func() {
		must(t, s.Stop())
		events, err := os.ReadFile(filepath.Join(s.Dir, "audit.jsonl"))
		must(t, err)
		for _, token := range tokens {
			for _, part := range []string{token, strings.Split(token, ".")[2]} {
				if strings.Contains(s.Output(), part) || strings.Contains(string(events), part) {
					t.Error("a token was written down")
				}
			}
		}
		if !strings.Contains(s.Output(), "catalog refused") {
			t.Error("the log does not say what the catalog refused")
		}
	}()
	session := func(user string) sqetest.Querier {
		t.Helper()
		token := kc.Token(t, "sqe-cli", user).Access
		tokens = append(tokens, token)
		return s.Conn(t, "", func(c *mysql.Config) { c.Passwd = token })
	}
	alice, bob := session("alice"), session("bob")
	g.refuse("bob", "/v1/namespaces/shop/tables/salaries", true)
	ask := func(q sqetest.Querier, statement, want string) {
		t.Helper()
		got := sqetest.Ask(ctx, q, statement)
		switch text, failed := strings.CutPrefix(want, "ERROR "); {
		case failed && (got.Err == nil || !strings.Contains(got.Err.Error(), text)):
			t.Errorf("%s: %v %v, want the error %s", statement, got.Rows, got.Err, text)
		case !failed && (got.Err != nil || fmt.Sprint(got.Rows) != want):
			t.Errorf("%s: %v %v, want %s", statement, got.Rows, got.Err, want)
		}
	}
	const bound = 5 * time.Second // visibility-max-age when it is not set
	const none = "ERROR doesn't exist, or you may not use it"
	var wg sync.WaitGroup
	for user, want := range map[sqetest.Querier]string{alice: "[[1]]", bob: none} {
		wg.Go(func() {
			for range 10 {
				ask(user, "SELECT COUNT(*) FROM shop.salaries", want)
			}
		})
	}
	wg.Wait()
	ask(bob, "SELECT COUNT(*) FROM shop.orders", "[[2]]")
	hidden := sqetest.Ask(ctx, bob, "SELECT * FROM shop.salaries").Err
	missing := sqetest.Ask(ctx, bob, "SELECT * FROM shop.nothing").Err
	if hidden == nil || missing == nil || strings.ReplaceAll(hidden.Error(), "salaries", "nothing") != missing.Error() {
		t.Errorf("a hidden table can be told from a missing one: %v, %v", hidden, missing)
	}
	// A right that is taken away, and one that is given.
	asked := time.Now()
	ask(alice, "SELECT COUNT(*) FROM shop.orders", "[[2]]")
	g.refuse("alice", "/v1/namespaces/shop/tables/orders", true)
	start := time.Now()
	for first := true; ; first = false {
		begun := time.Now()
		got := sqetest.Ask(ctx, alice, "SELECT COUNT(*) FROM shop.orders")
		if got.Err != nil {
			if first && time.Since(asked) < bound {
				t.Errorf("within the bound: %v", got.Err)
			}
			break
		}
		if begun.Sub(start) > bound {
			t.Fatalf("a right that was taken away counts for a statement that began %s later", begun.Sub(start))
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("denied after %s", time.Since(start).Round(time.Millisecond))
	g.refuse("alice", "/v1/namespaces/shop/tables/orders", false)
	for start = time.Now(); sqetest.Ask(ctx, alice, "SELECT COUNT(*) FROM shop.orders").Err != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatal("a right that was given is not there")
		}
	}
	t.Logf("visible after %s", time.Since(start).Round(time.Millisecond))
	// A warm statement asks the catalog nothing, unless the bound ends meanwhile.
	requests := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.asked["alice"]
	}
	for try := 1; ; try++ {
		ask(alice, "SELECT COUNT(*) FROM shop.orders", "[[2]]")
		before := requests()
		ask(alice, "SELECT COUNT(*) FROM shop.orders", "[[2]]")
		after := requests()
		if after == before {
			break
		}
		if try == 10 {
			t.Fatalf("a warm statement sent %d requests", after-before)
		}
	}
	// The catalog forgets a user in the middle of a session.
	g.know("bob", false)
	time.Sleep(bound + 100*time.Millisecond)
	ask(bob, "SELECT COUNT(*) FROM shop.orders", "ERROR refuses the token of this session")
	g.know("bob", true)
	ask(bob, "SELECT COUNT(*) FROM shop.orders", "[[2]]") // a refused token is not kept
	// Who logged in without a token has none to show.
	static := s.Conn(t, "admin")
	ask(static, "SELECT COUNT(*) FROM shop.orders", "ERROR this session has none")
	g.mu.Lock()
	if n := g.asked[""]; n != 0 {
		t.Errorf("%d requests without a token", n)
	}
	g.mu.Unlock()
	// The catalog goes away: that is not "no such table".
	g.Close()
	time.Sleep(bound + 100*time.Millisecond)
	ask(alice, "SELECT COUNT(*) FROM shop.orders", "ERROR does not answer; try again")
}
