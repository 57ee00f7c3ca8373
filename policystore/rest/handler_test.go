package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/policystore"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

const password = "Passw0rd1"

// face is a store with a handler, and the services, users and policies that the
// tests speak of.
type face struct {
	*Handler
	t     testing.TB
	store *policystore.Store
	log   bytes.Buffer
}

// counted counts the checks of passwords.
type counted struct {
	*policystore.Store
	logins atomic.Int32
}

func (c *counted) Login(ctx context.Context, user, password string) (*policystore.Account, error) {
	c.logins.Add(1)
	return c.Store.Login(ctx, user, password)
}

func newFace(t testing.TB, o Options) *face {
	t.Helper()
	ctx := context.Background()
	store, err := policystore.Open(ctx, filepath.Join(t.TempDir(), "store.db"), policystore.Options{AdminPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := &face{t: t, store: store}
	o.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	f.Handler = New(store, o)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(store.CreateGroup(ctx, &model.Group{Name: "admins_of_hive"}))
	for name, role := range map[string]string{
		"plugin": "ROLE_USER", "granter": "ROLE_USER", "tagger": "ROLE_USER", "lister": "ROLE_USER", "steward": "ROLE_USER",
		"member": "ROLE_USER", "plain": "ROLE_USER", "auditor": "ROLE_ADMIN_AUDITOR",
	} {
		u := &model.User{Name: name, FirstName: name, Password: password, AdminRoles: []string{role}}
		if name == "member" {
			u.Groups = []string{"admins_of_hive"}
		}
		must(store.CreateUser(ctx, u))
	}
	must(store.CreateService(ctx, &model.Service{Name: "hive", Type: "hive", Configs: model.Strings{
		"username": "x", "password": "secret-of-hive", "another.Password": "secret-of-hive", "jdbc.driverClassName": "x", "jdbc.url": "x",
		mayPolicies: "plugin, other", mayGrant: "granter", mayTags: "tagger", mayUserStore: "lister",
		adminUsers: "steward", adminGroups: "admins_of_hive",
	}}))
	must(store.CreateService(ctx, &model.Service{Name: "open", Type: "polaris", Configs: model.Strings{mayPolicies: "*", adminUsers: "*"}}))
	return f
}

func policyOf(name, table string) *model.Policy {
	return &model.Policy{
		Service: "hive", Name: name, Resources: map[string]model.Resource{
			"database": {Values: []string{"d"}}, "table": {Values: []string{table}}, "column": {Values: []string{"*"}},
		},
		PolicyItems: []*model.Item{{Users: []string{"plain"}, Accesses: []model.Access{{Type: "select"}}}},
	}
}

// ask sends a request as a user; "" is nobody.
func (f *face) ask(user, method, path string, body any, change ...func(r *http.Request)) *httptest.ResponseRecorder {
	f.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			f.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	r := httptest.NewRequest(method, path, content)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func (f *face) want(status int, part string, w *httptest.ResponseRecorder) {
	f.t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), part) {
		f.t.Errorf("%d %s, want %d with %q", w.Code, w.Body, status, part)
	}
}

func TestLogin(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := newFace(t, Options{Now: func() time.Time { return now }, Session: time.Minute})
	store := &counted{Store: f.store}
	f.Handler = New(store, Options{Now: func() time.Time { return now }, Session: time.Minute, Log: f.o.Log})
	const path = "/service/public/v2/api/service"
	for name, change := range map[string]func(r *http.Request){
		"nobody":         func(*http.Request) {},
		"wrong password": func(r *http.Request) { r.SetBasicAuth("admin", "wrong") },
		"unknown user":   func(r *http.Request) { r.SetBasicAuth("nosuch", password) },
		"no name":        func(r *http.Request) { r.SetBasicAuth("", password) },
		"bearer":         func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+password) },
		"unknown cookie": func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: "x"}) },
	} {
		w := f.ask("", "GET", path, nil, change)
		if w.Code != 401 || w.Body.String() != `{"statusCode":401,"msgDesc":"Authentication Failed"}` || w.Header().Get("Content-Type") != "" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
	}
	if strings.Contains(f.log.String(), password) || !strings.Contains(f.log.String(), "user=admin") {
		t.Error(f.log.String())
	}
	store.logins.Store(0)
	first := f.ask("admin", "GET", path, nil)
	f.want(200, "hive", first)
	cookie := first.Result().Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", cookie)
	}
	with := func(r *http.Request) { r.AddCookie(cookie) }
	f.want(200, "hive", f.ask("admin", "GET", path, nil, with))
	f.want(200, "hive", f.ask("", "GET", path, nil, with))
	if n := store.logins.Load(); n != 1 {
		t.Errorf("%d checks of a password in a session", n)
	}
	// The cookie of one does not make another of somebody else.
	f.want(403, "", f.ask("plain", "GET", path, nil, with))
	f.want(401, "", f.ask("", "GET", path, nil, with, func(r *http.Request) { r.SetBasicAuth("admin", "wrong") }))
	now = now.Add(time.Minute)
	f.want(401, "", f.ask("", "GET", path, nil, with))
}

// TestSessionEnds: a session does not outlive the user, the user's rights or the
// password.
func TestSessionEnds(t *testing.T) {
	f := newFace(t, Options{})
	ctx := context.Background()
	begin := func(user string) func(r *http.Request) {
		w := f.ask(user, "GET", "/service/public/v2/api/service/name/hive", nil)
		cookie := w.Result().Cookies()[0]
		return func(r *http.Request) { r.AddCookie(cookie) }
	}
	const list = "/service/public/v2/api/service"
	auditor, lister := begin("auditor"), begin("lister")
	f.want(200, "", f.ask("", "GET", list, nil, auditor))
	u, err := f.store.User(ctx, "auditor")
	if err != nil {
		t.Fatal(err)
	}
	u.AdminRoles = []string{"ROLE_USER"}
	if _, err := f.store.UpdateUser(ctx, u); err != nil {
		t.Fatal(err)
	}
	f.want(403, "", f.ask("", "GET", list, nil, auditor))
	w := f.ask("admin", "GET", "/service/xusers/users/userName/auditor", nil)
	body := strings.Replace(w.Body.String(), `"*****"`, `"Another0ne"`, 1)
	f.want(200, "", f.ask("admin", "PUT", fmt.Sprintf("/service/xusers/secure/users/%d", u.ID), body))
	f.want(401, "", f.ask("", "GET", list, nil, auditor))
	if err := f.store.DeleteUser(ctx, "lister"); err != nil {
		t.Fatal(err)
	}
	f.want(401, "", f.ask("", "GET", list, nil, lister))
}

// TestLateSession: a login that was under way when the password changed begins no
// session.
func TestLateSession(t *testing.T) {
	s := newSessions(time.Minute, time.Now)
	since := s.age()
	s.forget("plain")
	if token := s.begin("plain", "old", since); token != "" || len(s.of) != 0 {
		t.Error("a session of the old password began")
	}
	if token := s.begin("plain", "new", s.age()); token == "" || len(s.of) != 1 {
		t.Error("no session began")
	}

	f := newFace(t, Options{})
	long := func(r *http.Request) { r.SetBasicAuth(strings.Repeat("n", 10_000), "x") }
	f.want(401, "", f.ask("", "GET", "/service/public/v2/api/policy", nil, long))
	if log := f.log.String(); !strings.Contains(log, "refused") || len(log) > 1000 {
		t.Errorf("%d bytes are logged", len(log))
	}
}

func TestRequests(t *testing.T) {
	f := newFace(t, Options{MaxBody: 2000})
	const policy = "/service/public/v2/api/policy"
	mozilla := func(r *http.Request) { r.Header.Set("User-Agent", "Mozilla/5.0") }
	f.want(400, "X-XSRF-HEADER", f.ask("admin", "POST", policy, policyOf("p", "t"), mozilla))
	f.want(200, "", f.ask("admin", "GET", policy, nil, mozilla))
	f.want(200, `"version":1`, f.ask("admin", "POST", policy, policyOf("p", "t"), mozilla, func(r *http.Request) { r.Header.Set("X-XSRF-HEADER", "x") }))
	f.want(413, "larger", f.ask("admin", "POST", policy, policyOf(strings.Repeat("n", 3000), "t2")))
	for _, body := range []string{"", "{", "[]", `{"id":"x"}`, "{}{}", "null null", "\xff{}", `{"policyItems":[null]}`} {
		w := f.ask("admin", "POST", policy, body)
		if w.Code != 400 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	}
	for _, path := range []string{
		"/", "/service", "/service/", "/service/nosuch", "/other/public/v2/api/policy", "/service/public/v2/api/policy/x", "/service/public//v2/api/policy",
		"/service/public/v2/api/../api/policy", "/service/public/v2/api/policy/99999999999999999999", "/service/public/v2/api/service/name/%00", "/service/public/v2/api/service/name/%ff",
		"/service/plugins/secure/policies/download/hive?lastKnownVersion=abc",
	} {
		if w := f.ask("admin", "GET", path, nil); w.Code != 404 || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	f.want(405, "", f.ask("admin", "PUT", "/service/public/v2/api/policy/guid/x", policyOf("p", "t")))
	f.want(200, "", f.ask("admin", "HEAD", policy, nil))
	// Unknown pages are not told apart from others without a login.
	f.want(401, "", f.ask("", "GET", "/service/nosuch", nil))
}

// broken is a store that fails.
type broken struct{ *policystore.Store }

func (broken) Services(context.Context) ([]*model.Service, error) { panic("a secret thing") }
func (broken) Zones(context.Context) ([]*model.Zone, error) {
	return nil, fmt.Errorf("a secret thing")
}

// TestLargeBodies: what somebody sends who may change nothing is small, and little
// of it is read at a time.
func TestLargeBodies(t *testing.T) {
	f := newFace(t, Options{})
	const policy = "/service/public/v2/api/policy"
	body := func(items int) string {
		return `{"service":"hive","name":"x","policyItems":[` + strings.Repeat("{},", items) + `{}]}`
	}
	f.want(413, "larger", f.ask("plain", "POST", policy, body(1<<20/3)))
	f.want(403, "delegated-admin", f.ask("plain", "POST", policy, body(1000)))
	f.want(413, "larger", f.ask("steward", "POST", policy, body(1<<20/3)))
	f.want(400, "3020", f.ask("admin", "POST", policy, body(1<<20/3)))

	for range maxPlainBodies {
		f.bodies <- struct{}{}
	}
	f.want(200, "", f.ask("plain", "GET", policy, nil)) // reading waits for nobody
	f.want(400, "3020", f.ask("admin", "POST", policy, body(1)))
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() { done <- f.ask("plain", "POST", policy, body(1)) }()
	select {
	case w := <-done:
		t.Errorf("it did not wait: %d", w.Code)
	case <-time.After(20 * time.Millisecond):
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.ask("plain", "POST", policy, body(1), func(r *http.Request) { *r = *r.WithContext(ctx) }) // nobody listens: it waits no more
	for range maxPlainBodies {
		<-f.bodies
	}
	f.want(403, "delegated-admin", <-done)
	if n := len(f.bodies); n != 0 {
		t.Errorf("%d places are not free", n)
	}
}

func TestFailures(t *testing.T) {
	f := newFace(t, Options{})
	f.Handler = New(broken{f.store}, Options{Log: f.o.Log})
	for _, path := range []string{"service", "zones"} {
		w := f.ask("admin", "GET", "/service/public/v2/api/"+path, nil)
		if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(f.log.String(), "secret") {
			t.Errorf("%s: %d %s; log %s", path, w.Code, w.Body, &f.log)
		}
		f.log.Reset()
	}
	f.want(200, "hive", f.ask("admin", "GET", "/service/public/v2/api/service/name/hive", nil))
}

// TestEveryCallAsks: no call of any route is answered without a login, and those
// that change something not for users who may nothing, whatever they send.
func TestEveryCallAsks(t *testing.T) {
	f := newFace(t, Options{})
	p, err := f.store.CreatePolicy(context.Background(), policyOf("p", "t"))
	if err != nil {
		t.Fatal(err)
	}
	before := f.state()
	calls := 0
	for method, routes := range f.routes {
		for _, r := range routes {
			for _, id := range []string{fmt.Sprint(p.ID), "1", "2", "hive", "p", "admin", "public"} {
				path := []string{}
				for _, s := range r.segments {
					if s[0] == ':' {
						s = id
					}
					path = append(path, s)
				}
				url := "/service/" + strings.Join(path, "/")
				calls++
				if w := f.ask("", method, url, "{}"); w.Code != 401 && (w.Code != 400 || r.access != nobody) {
					t.Errorf("%s %s: %d without a login", method, url, w.Code)
				}
				bodies := []string{"{}", `{"service":"hive","name":"x"}`, `{"name":"x","users":[{"name":"plain","isAdmin":true}],"targetRoles":["x"]}`}
				if method == "GET" {
					bodies = bodies[:1]
				}
				for _, body := range bodies {
					w := f.ask("plain", method, url, body)
					if method != "GET" && w.Code < 400 {
						t.Errorf("%s %s: %d %s for a user who may nothing", method, url, w.Code, w.Body)
					}
					if strings.Contains(w.Body.String(), "secret-of-hive") || strings.Contains(w.Body.String(), `"table"`) && method == "GET" && !strings.Contains(url, "servicedef") && !strings.Contains(url, "definitions") {
						t.Errorf("%s %s tells %s", method, url, w.Body)
					}
				}
				for _, user := range []string{"admin", "auditor"} {
					if method == "GET" && strings.Contains(f.ask(user, method, url, nil).Body.String(), "secret-of-hive") {
						t.Errorf("%s tells %s a password", url, user)
					}
				}
			}
		}
	}
	if after := f.state(); after != before {
		t.Errorf("a user who may nothing changed\n%s\ninto\n%s", before, after)
	}
	if calls < 200 {
		t.Errorf("only %d calls", calls)
	}
}

// state is all that the store holds.
func (f *face) state() string {
	f.t.Helper()
	ctx := context.Background()
	services, err1 := f.store.Services(ctx)
	users, err2 := f.store.Users(ctx)
	groups, err3 := f.store.Groups(ctx)
	roles, err4 := f.store.Roles(ctx)
	policies, err5 := f.store.Policies(ctx, "hive")
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	text, err := json.Marshal([]any{services, users, groups, roles, policies})
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

var _ Store = (*policystore.Store)(nil)

func TestRefusal(t *testing.T) {
	for _, e := range []*admin.Error{
		{Kind: admin.Conflict, Reason: "too fast"}, {Kind: admin.InUse, Reason: "in a policy"},
	} {
		a := refusal(e)
		text := a.body.(vxResponse).Text
		if a.status != 400 || !strings.Contains(text, e.Reason) || !strings.Contains(text, lockText) && !strings.Contains(text, referencedText) {
			t.Errorf("%+v", a)
		}
	}
}
