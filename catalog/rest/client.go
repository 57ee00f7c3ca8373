package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
)

// Options say which catalog and how.
type Options struct {
	// URI is the address of the catalog, without "/v1".
	URI string
	// Warehouse is what the server calls the catalog, where it has several.
	Warehouse string
	// Prefix is in each path; "" is what the server says.
	Prefix string
	// Headers go with each call.
	Headers map[string]string
	Tokens  Tokens
	// Delegation is the way of access to data that is asked for when a table is
	// loaded ("vended-credentials"); "" asks for none. What is asked for decides which
	// right the catalog wants to see: with it the one to the data, without it the one
	// to the metadata.
	Delegation string
	HTTP       *http.Client
	// AllowHTTP is that of HTTPOptions.
	AllowHTTP bool
	// MaxAnswer bounds one answer, and all together that are read at a time and are
	// longer than 4 MiB, in bytes; 0 is 256 MiB.
	MaxAnswer int64
	// PageSize asks for lists in pages of that many names; 0 leaves it to the server.
	PageSize int
}

const defaultMaxAnswer = 256 << 20

// Client talks to one catalog. It is safe for concurrent use.
type Client struct {
	o       Options
	address string
	reads   *retryablehttp.Client
	now     func() time.Time

	configs  *lru.Cache[string, settings]
	metadata metadata
	// large is shared by the answers that are long, in bytes.
	large *semaphore.Weighted
}

// New prepares a client. It sends nothing; its errors are about the configuration.
func New(o Options) (*Client, error) {
	u, err := checkAddress(o.URI, o.AllowHTTP)
	if err != nil {
		return nil, fmt.Errorf("the address of the catalog %w", err)
	}
	if o.Prefix != "" && !fine(o.Prefix) {
		return nil, errors.New("the prefix cannot be part of an address")
	}
	for k := range o.Headers {
		if strings.EqualFold(k, "Authorization") {
			return nil, errors.New("the header Authorization belongs to the tokens")
		}
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	c := &Client{o: o, now: time.Now, reads: newReads(o.HTTP)}
	c.address = u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), "/v1")
	c.large = semaphore.NewWeighted(o.MaxAnswer)
	c.configs, _ = lru.New[string, settings](1000) // is positive
	c.KeepMetadata(keptMetadata)
	return c, nil
}

// Close closes the connections that wait for calls.
func (c *Client) Close() { c.o.HTTP.CloseIdleConnections() }

// Scope is that of the token of ctx (Token.Scope).
func (c *Client) Scope(ctx context.Context) (string, error) {
	t, err := c.o.Tokens.Token(ctx)
	return t.Scope, err
}

// settings are what the server says of itself.
type settings struct {
	prefix    string
	separator string // between the levels of a namespace, escaped
	plain     string // the same as text
	endpoints map[string]bool
	views     bool
	until     time.Time
}

// settingsLast is how long what the server says of itself holds.
const settingsLast = 10 * time.Minute

// The endpoints of views, by which is seen whether there are any.
const viewsEndpoint = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"

// settings asks the server, once per scope: the answer may depend on who asks.
func (c *Client) settings(ctx context.Context) (settings, error) {
	scope, err := c.Scope(ctx)
	if err != nil {
		return settings{}, err
	}
	if s, ok := c.configs.Get(scope); ok && c.now().Before(s.until) {
		return s, nil
	}
	var said struct {
		Defaults  map[string]string `json:"defaults"`
		Overrides map[string]string `json:"overrides"`
		Endpoints []string          `json:"endpoints"`
	}
	r := call{operation: "get configuration", method: http.MethodGet, path: "/v1/config", into: &said}
	if c.o.Warehouse != "" {
		r.query = url.Values{"warehouse": {c.o.Warehouse}}.Encode()
	}
	if _, err := c.do(ctx, r); err != nil {
		if Is(err, http.StatusNotFound) {
			// Not to be taken for a table that is not there.
			err = &Error{Operation: r.operation, cause: fmt.Errorf("%w: it does not know the warehouse, or is at another address", errNonsense)}
		}
		return settings{}, err
	}
	// What the server sends beside these (another address, a token) is not heeded.
	pick := func(key, own string) string {
		if v := said.Overrides[key]; v != "" {
			return v
		}
		if own != "" {
			return own
		}
		return said.Defaults[key]
	}
	s := settings{prefix: pick("prefix", c.o.Prefix), separator: pick("namespace-separator", ""), until: c.now().Add(settingsLast)}
	if s.separator == "" {
		s.separator = "%1F"
	}
	nonsense := func(what string) (settings, error) {
		return settings{}, &Error{Operation: r.operation, cause: fmt.Errorf("%w: its %s", errNonsense, what)}
	}
	if s.prefix != "" && !fine(s.prefix) {
		return nonsense("prefix")
	}
	if s.plain, err = url.PathUnescape(s.separator); err != nil || s.plain == "" || strings.Contains(s.plain, "/") {
		return nonsense("namespace separator")
	}
	s.separator = escaped(s.plain)
	s.views, _ = strconv.ParseBool(pick("view-endpoints-supported", ""))
	if len(said.Endpoints) > 0 {
		s.endpoints = map[string]bool{}
		for _, e := range said.Endpoints {
			s.endpoints[e] = true
		}
		s.views = s.endpoints[viewsEndpoint]
	}
	c.configs.Add(scope, s)
	return s, nil
}

// HasViews reports whether the catalog has views.
func (c *Client) HasViews(ctx context.Context) (bool, error) {
	s, err := c.settings(ctx)
	return s.views, err
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._~%!$&'()*+,;=:@|/-]+$`)

// fine reports whether a prefix leads below the address of the catalog.
func fine(prefix string) bool {
	plain, err := url.PathUnescape(prefix)
	return err == nil && prefixPattern.MatchString(prefix) &&
		!slices.ContainsFunc(strings.Split(plain, "/"), func(p string) bool { return p == "" || p == "." || p == ".." })
}

// escaped escapes every byte that is not a letter or a digit: a separator that is a
// dot or a control character must not be read as something else on the way.
func escaped(s string) string { return escape(s, "") }

// segment escapes a name for a path or a query. Some servers take a plus sign for a
// blank even in a path, so more is escaped than url.PathEscape does.
func segment(s string) string { return escape(s, "-_.~") }

func escape(s, plain string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		if b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || strings.IndexByte(plain, b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// ErrName: a name cannot be said to this catalog.
var ErrName = errors.New("the name cannot be said to the catalog")

// base is the part of the paths before the namespaces.
func (s settings) base() string {
	if s.prefix == "" {
		return "/v1"
	}
	return "/v1/" + s.prefix
}

// levels joins a namespace. A level that holds the separator would name another
// namespace.
func (s settings) levels(namespace []string) (string, error) {
	parts := make([]string, len(namespace))
	for i, p := range namespace {
		if p == "" || strings.Contains(p, s.plain) {
			return "", fmt.Errorf("a level of a namespace: %w", ErrName)
		}
		parts[i] = segment(p)
	}
	if len(parts) == 0 || len(parts) == 1 && (namespace[0] == "." || namespace[0] == "..") {
		return "", fmt.Errorf("a namespace: %w", ErrName)
	}
	return strings.Join(parts, s.separator), nil
}

// in is the path of a namespace and what lies in it.
func (s settings) in(namespace []string, more ...string) (string, error) {
	ns, err := s.levels(namespace)
	if err != nil {
		return "", err
	}
	out := s.base() + "/namespaces/" + ns
	for _, m := range more {
		if m == "" || m == "." || m == ".." {
			return "", ErrName
		}
		out += "/" + segment(m)
	}
	return out, nil
}
