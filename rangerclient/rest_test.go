package rangerclient

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/fault"
	"sqe/identity"
)

// admin answers downloads as a Ranger Admin 2.9 does, from captured documents.
type admin struct {
	mu       sync.Mutex
	bodies   map[string][]byte // by document name
	versions map[string]string
	requests []string
	broken   http.HandlerFunc // answers instead, when set
}

func newAdmin(t *testing.T) (*admin, *httptest.Server) {
	a := &admin{
		bodies: map[string][]byte{
			"policies/hive": read(t, "policies_download_hive.json"), "policies/polaris": read(t, "policies_download_polaris.json"),
			"tags/hive": read(t, "tags_download_hive.json"), "tags/polaris": read(t, "tags_download_polaris.json"),
			"roles": read(t, "roles_download.json"), "users": read(t, "userstore_download.json"),
		},
		versions: map[string]string{"policies/hive": "51", "policies/polaris": "5", "tags/hive": "4", "tags/polaris": "2", "roles": "6", "users": "11"},
	}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.URL.String())
	if a.broken != nil {
		a.broken(w, r)
		return
	}
	if user, password, ok := r.BasicAuth(); !ok || user != "engine" || password != "right" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"statusCode":401,"msgDesc":"Authentication Failed"}`)
		return
	}
	name, parameter := "", "lastKnownVersion"
	p := strings.TrimPrefix(r.URL.Path, "/ranger/service/")
	switch {
	case strings.HasPrefix(p, "plugins/secure/policies/download/"):
		name = "policies/" + strings.TrimPrefix(p, "plugins/secure/policies/download/")
	case strings.HasPrefix(p, "tags/secure/download/"):
		name = "tags/" + strings.TrimPrefix(p, "tags/secure/download/")
	case p == "roles/secure/download/hive":
		name, parameter = "roles", "lastKnownRoleVersion"
	case p == "xusers/secure/download/hive":
		name, parameter = "users", "lastKnownUserStoreVersion"
	}
	body, ok := a.bodies[name]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"statusCode":1,"msgDesc":"RANGER_ERROR_SERVICE_NOT_FOUND: ServiceName=x"}`)
	case r.URL.Query().Get(parameter) == a.versions[name]:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

func (a *admin) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	a.requests = nil
}

func (a *admin) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

func restConfig(s *httptest.Server, c *clock) RESTConfig {
	return RESTConfig{
		Name: "ranger", URL: s.URL + "/ranger/", Username: "engine", Password: "right", PolarisService: "polaris", DataService: "hive",
		RefreshInterval: time.Hour, Now: c.now, Timeout: time.Minute,
	}
}

func openREST(t *testing.T, c RESTConfig) *Source {
	t.Helper()
	s, err := OpenREST(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func start() *clock { return &clock{t: time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)} }

func TestREST(t *testing.T) {
	a, server := newAdmin(t)
	c := start()
	s := openREST(t, restConfig(server, c))
	st := stateOf(t, s)
	tab := table("lake.sales.orders", "id", "region", "amount")
	if r := restrict(t, st, "bob", tab); len(r.Filters) != 1 || r.Filters[0].SQL != "region = 'US'" {
		t.Fatalf("%+v", r)
	}
	if a.asked() != 6 {
		t.Errorf("%d requests for the first poll", a.asked())
	}
	// Nothing new: six times 304, the same state, and no request by questions.
	a.set(func() {})
	c.advance(50 * time.Second)
	if err := s.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		restrict(t, stateOf(t, s), "bob", tab)
	}
	if stateOf(t, s) != st || a.asked() != 6 || s.Status().Age != 0 {
		t.Errorf("after 304: %d requests, status %+v", a.asked(), s.Status())
	}
	// One document changes; the others are kept.
	a.set(func() {
		a.bodies["policies/hive"] = bytes.Replace(bytes.Replace(a.bodies["policies/hive"], []byte(`"policyVersion": 51`), []byte(`"policyVersion": 52`), 1), []byte(`"region = 'US'"`), []byte(`"region = 'FR'"`), 1)
		a.versions["policies/hive"] = "52"
	})
	if err := s.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r := restrict(t, stateOf(t, s), "bob", tab); r.Filters[0].SQL != "region = 'FR'" {
		t.Errorf("%+v", r.Filters)
	}
	if got := stateOf(t, s).Roles(identity.Principal{Name: "bob"}); strings.Join(got, " ") != "all_staff data_analyst" {
		t.Errorf("roles %v", got)
	}
}

// TestRESTFailures: whatever the server answers, the last good state stays until
// it is stale, and then nothing is decided; recovery is by itself.
func TestRESTFailures(t *testing.T) {
	good := read(t, "policies_download_hive.json")
	for name, broken := range map[string]http.HandlerFunc{
		"500":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"403":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"404 without text": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"service gone": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"msgDesc":"RANGER_ERROR_SERVICE_NOT_FOUND"}`)
		},
		"disabled service": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) },
		"login page":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"empty":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		},
		"truncated": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good[:len(good)/3]) },
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999")
			_, _ = w.Write(good)
		},
		"too large": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20)) },
		"slow":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"older": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Replace(good, []byte(`"policyVersion": 51`), []byte(`"policyVersion": 5`), 1))
		},
		"a change of an unknown kind": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Replace(read(t, "policies_download_hive_delta.json"), []byte(`"changeType": 0`), []byte(`"changeType": 7`), 1))
		},
		"of another service": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(read(t, "policies_download_polaris.json"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, server := newAdmin(t)
			c := start()
			config := restConfig(server, c)
			config.MaxBody = 1 << 20
			if name == "slow" {
				config.Timeout = time.Second // that of the polls that succeed, too
			}
			s := openREST(t, config)
			st := stateOf(t, s)
			a.set(func() { a.broken = broken })
			c.advance(59 * time.Second)
			err := s.Reload(context.Background())
			if err == nil {
				t.Fatal("the poll succeeded")
			}
			if strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), server.URL) {
				t.Errorf("the error tells too much: %v", err)
			}
			if stateOf(t, s) != st || s.Status().LastError == "" {
				t.Error("the state was replaced, or the failure is not told")
			}
			c.advance(2 * time.Second)
			if _, err := s.State(); !fault.Is(err, fault.PolicyStale) {
				t.Errorf("stale: %v", err)
			}
			a.set(func() { a.broken = nil })
			if err := s.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
			stateOf(t, s)
		})
	}
}

// TestWrongPassword: after a refusal nothing is sent for a minute, so that the
// account is not locked.
func TestWrongPassword(t *testing.T) {
	a, server := newAdmin(t)
	c := start()
	config := restConfig(server, c)
	config.Password = "wrong"
	s := openREST(t, config)
	for range 10 {
		if err := s.Reload(context.Background()); err == nil {
			t.Fatal("polled with a wrong password")
		}
		c.advance(5 * time.Second)
	}
	if a.asked() != 1 {
		t.Errorf("%d requests within a minute", a.asked())
	}
	if _, err := s.State(); !fault.Is(err, fault.PolicyStale) {
		t.Errorf("%v", err)
	}
	c.advance(11 * time.Second)
	_ = s.Reload(context.Background())
	if a.asked() != 2 {
		t.Errorf("%d requests after a minute", a.asked())
	}
}

// TestSnapshot: a restart while the server is away works within the staleness
// bound, from a file that only its owner may read.
func TestSnapshot(t *testing.T) {
	a, server := newAdmin(t)
	c := start()
	config := restConfig(server, c)
	config.SnapshotFile = filepath.Join(t.TempDir(), "policies.json")
	_ = openREST(t, config).Close()
	if info, err := os.Stat(config.SnapshotFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	a.set(func() { a.broken = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) } })
	c.advance(50 * time.Second)
	s := openREST(t, config)
	if r := restrict(t, stateOf(t, s), "bob", table("lake.sales.orders", "id")); len(r.Filters) != 1 {
		t.Errorf("%+v", r)
	}
	if s.Status().Age != 50*time.Second {
		t.Errorf("the age of what was stored is forgotten: %s", s.Status().Age)
	}
	c.advance(11 * time.Second)
	if _, err := s.State(); !fault.Is(err, fault.PolicyStale) {
		t.Errorf("stale: %v", err)
	}
	a.set(func() { a.broken = nil })
	if err := s.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	stateOf(t, s)
	_ = s.Close()
	// A file that is broken, of another server or from the future is not used.
	body, err := os.ReadFile(config.SnapshotFile)
	if err != nil {
		t.Fatal(err)
	}
	a.set(func() { a.broken = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) } })
	for name, text := range map[string][]byte{
		"truncated": body[:len(body)/2], "other server": bytes.Replace(body, []byte(server.URL), []byte("http://localhost:1"), 1),
		"future": bytes.Replace(body, []byte(`"time":"2026`), []byte(`"time":"2036`), 1),
	} {
		if err := os.WriteFile(config.SnapshotFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openREST(t, config).State(); !fault.Is(err, fault.PolicyStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRESTConfig(t *testing.T) {
	ok := RESTConfig{Name: "r", URL: "https://ranger.example:6182", DataService: "hive"}
	for name, change := range map[string]func(*RESTConfig){
		"no name":        func(c *RESTConfig) { c.Name = "" },
		"no address":     func(c *RESTConfig) { c.URL = "" },
		"no scheme":      func(c *RESTConfig) { c.URL = "ranger:6080" },
		"plain http":     func(c *RESTConfig) { c.URL = "http://ranger.example:6080" },
		"password":       func(c *RESTConfig) { c.URL = "https://a:b@ranger.example" },
		"no data":        func(c *RESTConfig) { c.DataService = "" },
		"no such CA":     func(c *RESTConfig) { c.CAFile = "no-such-file" },
		"no such key":    func(c *RESTConfig) { c.CertFile = "no-such-file" },
		"unknown option": func(c *RESTConfig) { c.Options.DatabaseKey = "x" },
	} {
		c := ok
		change(&c)
		if _, err := OpenREST(c); !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
