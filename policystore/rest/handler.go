package rest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sqe/policystore"
	"sqe/rangerclient/admin"
)

// Store is what is served.
type Store interface {
	admin.Server
	// Login checks a password. A wrong one, and an unknown user, is an *admin.Error
	// of kind Unauthenticated.
	Login(ctx context.Context, user, password string) (*policystore.Account, error)
	// The documents of plugins; nil when known is the present version.
	DownloadPolicies(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadTags(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadRoles(ctx context.Context, service string, known int64) ([]byte, error)
	DownloadUserStore(ctx context.Context, service string, known int64) ([]byte, error)
}

// Options configures the handler; the zero value is complete.
type Options struct {
	MaxBody int64         // bytes of an administrator's request, of others at most maxPlainBody; 0: DefaultMaxBody
	Session time.Duration // how long a session lasts after the login; 0: DefaultSession
	// Audit takes what plugins report about accesses, one JSON document of Ranger's
	// (AuthzAuditEvent) each; user is the reporting account. nil: who was let do what
	// is written to Log.
	Audit func(ctx context.Context, user, service string, event json.RawMessage) error
	Log   *slog.Logger
	Now   func() time.Time
}

// The defaults of Options.
const (
	DefaultMaxBody = 64 << 20
	DefaultSession = 10 * time.Minute
)

// What is made of a body takes many times its bytes, and whether the account may
// make the call is often known from the body only. So others than administrators
// send no more than this in a request, and few of theirs are read at a time.
const (
	maxPlainBody   = 1 << 20
	maxPlainBodies = 4
)

// Handler answers requests. It is safe for concurrent use.
type Handler struct {
	store    Store
	o        Options
	routes   map[string][]route
	sessions *sessions
	plugins  *plugins
	// Changes of an object that are a read and a write here: members of roles and
	// groups.
	members sync.Mutex
	bodies  chan struct{} // takes part in a call with a body of somebody who is no administrator
}

// New makes the handler of a store.
func New(s Store, o Options) *Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Session <= 0 {
		o.Session = DefaultSession
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{store: s, o: o, routes: map[string][]route{}, sessions: newSessions(o.Session, o.Now), plugins: newPlugins(o.Now), bodies: make(chan struct{}, maxPlainBodies)}
	h.downloadRoutes()
	h.policyRoutes()
	h.serviceRoutes()
	h.roleRoutes()
	h.userRoutes()
	h.tagRoutes()
	h.grantRoutes()
	h.auditRoutes()
	return h
}

// Forget ends the sessions of a user whose password or rights were changed
// elsewhere.
func (h *Handler) Forget(user string) { h.sessions.forget(user) }

// access says who may make a call at all; the call itself may ask for more.
type access int

const (
	anybody   access = iota // who is logged in
	readers                 // administrators and auditors
	sysadmins               // administrators
	nobody                  // also who is not logged in: the call only refuses
)

// route is a call: its path below /service, in segments; ":x" is a variable.
type route struct {
	segments []string
	access   access
	call     func(c *call) (any, error)
}

func (h *Handler) handle(method, path string, a access, f func(c *call) (any, error)) {
	h.routes[method] = append(h.routes[method], route{strings.Split(path, "/"), a, f})
}

// find is the route of a path, with its variables. Among several the one whose
// first differing segment is no variable counts, as with JAX-RS.
func (h *Handler) find(method string, segments []string) (*route, map[string]string) {
	var found *route
	for i := range h.routes[method] {
		r := &h.routes[method][i]
		if r.matches(segments) && (found == nil || r.before(found)) {
			found = r
		}
	}
	if found == nil {
		return nil, nil
	}
	vars := map[string]string{}
	for i, s := range found.segments {
		if s[0] == ':' {
			vars[s[1:]] = segments[i]
		}
	}
	return found, vars
}

func (r *route) matches(segments []string) bool {
	if len(segments) != len(r.segments) {
		return false
	}
	for i, s := range r.segments {
		if s[0] != ':' && s != segments[i] || segments[i] == "" {
			return false
		}
	}
	return true
}

func (r *route) before(other *route) bool {
	for i := range r.segments {
		if a, b := r.segments[i][0] == ':', other.segments[i][0] == ':'; a != b {
			return b
		}
	}
	return false
}

// call is one request.
type call struct {
	*Handler
	ctx     context.Context
	w       http.ResponseWriter
	r       *http.Request
	vars    map[string]string
	account *policystore.Account
	holds   bool // a place in bodies
}

func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// id is a variable that is a number. For any other a Ranger Admin has no such
// page.
func (c *call) id(name string) (int64, error) {
	n, err := strconv.ParseInt(c.vars[name], 10, 64)
	if err != nil {
		return 0, errNoPage
	}
	return n, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		h.o.Log.Error("a request to the policy store failed", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		w.Header().Set("Connection", "close")
		writeJSON(w, http.StatusInternalServerError, internal)
	}()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Frame-Options", "DENY")
	body, err := h.serve(w, r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	switch b := body.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case unchanged:
		w.WriteHeader(http.StatusNotModified)
	case document:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b)
	default:
		writeJSON(w, http.StatusOK, b)
	}
}

// What calls answer beside values, which are sent as JSON: nil is 204.
type (
	unchanged struct{} // 304
	document  []byte   // JSON already
)

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	segments, ok := split(r.URL)
	if !ok {
		return nil, errNoPage
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	found, vars := h.find(method, segments)
	if found != nil && found.access == nobody {
		return found.call(&call{Handler: h, ctx: r.Context(), w: w, r: r, vars: vars})
	}
	account, err := h.authenticate(w, r)
	if err != nil {
		return nil, err
	}
	if changes(method) && browser(r) && r.Header.Get("X-Xsrf-Header") == "" {
		return nil, errXSRF
	}
	if found == nil {
		for other := range h.routes {
			if f, _ := h.find(other, segments); f != nil {
				return nil, errMethod
			}
		}
		return nil, errNoPage
	}
	c := &call{Handler: h, w: w, r: r, vars: vars, account: account}
	c.ctx = admin.WithAuthor(r.Context(), admin.Author{User: account.Name, From: remote(r)})
	switch {
	case found.access == sysadmins && !account.IsAdmin(), found.access == readers && !c.reader():
		return nil, notForUsers(method)
	}
	limit := h.o.MaxBody
	if !account.IsAdmin() {
		limit = min(limit, maxPlainBody)
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	defer c.done()
	return found.call(c)
}

// split cuts a path below /service into segments. A name may hold an escaped
// slash.
func split(u *url.URL) ([]string, bool) {
	if u.Path == auditPath {
		return []string{"audit", "access"}, true
	}
	path, ok := strings.CutPrefix(u.EscapedPath(), "/service/")
	if !ok {
		return nil, false
	}
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, false
		}
		segments[i] = text
	}
	return segments, true
}

func changes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// browser reports whether a page in a browser may have sent the request. Source:
// ranger.rest-csrf.browser-useragents-regex of a Ranger Admin.
func browser(r *http.Request) bool {
	for _, name := range []string{"Mozilla", "Opera", "Chrome"} {
		if strings.HasPrefix(r.UserAgent(), name) {
			return true
		}
	}
	return false
}

// remote is the address of the client, without the port.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// read decodes the body of the request.
func (c *call) read(into any) error {
	body, err := io.ReadAll(c.r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return errTooLarge
	}
	if err != nil {
		return malformed("the request broke off")
	}
	if err := c.wait(); err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return malformed("the request is not UTF-8")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return malformed(err.Error())
	}
	return nil
}

// wait takes a place in bodies for the rest of the call. The body has arrived
// then: nobody holds a place by sending slowly.
func (c *call) wait() error {
	if c.holds || c.account.IsAdmin() {
		return nil
	}
	select {
	case c.bodies <- struct{}{}:
		c.holds = true
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c *call) done() {
	if c.holds {
		<-c.bodies
	}
}

// reader reports whether the account may read everything.
func (c *call) reader() bool {
	if c.account.IsAdmin() {
		return true
	}
	for _, r := range c.account.AdminRoles {
		if r == auditorRole {
			return true
		}
	}
	return false
}

// The roles of accounts that are not ordinary users.
const auditorRole = "ROLE_ADMIN_AUDITOR"

func randomKey() []byte {
	k := make([]byte, 32)
	_, _ = rand.Read(k) // never fails (crypto/rand)
	return k
}
