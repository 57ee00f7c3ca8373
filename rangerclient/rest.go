package rangerclient

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqe/fault"
	"sqe/rangerclient/model"
)

// RESTConfig configures a source that downloads from a Ranger Admin (or a server
// that speaks as one).
type RESTConfig struct {
	Name string // name of the source
	URL  string // "https://ranger.example:6182"
	// Username and Password of a user that the service's configuration lets
	// download policies, tags and the user store.
	Username, Password string
	// AllowHTTP permits http:// to a host that is not this machine: the password
	// then goes over the network in the clear.
	AllowHTTP bool
	// CAFile holds the certificates (PEM) to trust beside the system's, CertFile
	// and KeyFile the client's own.
	CAFile, CertFile, KeyFile string
	Timeout                   time.Duration // of one request; 0: 10 s
	MaxBody                   int64         // bytes of one answer; 0: 256 MiB
	// SnapshotFile keeps the last good documents for a restart while the server is
	// away; empty: none is kept.
	SnapshotFile string

	PolarisService  string // empty: no object gate
	DataService     string
	RefreshInterval time.Duration
	MaxStaleness    time.Duration
	Options         Options
	Now             func() time.Time
	Log             *slog.Logger
}

// rest downloads the documents. One poll runs at a time.
type rest struct {
	c      RESTConfig
	base   *url.URL
	client *http.Client
	now    func() time.Time
	bodies map[string][]byte // of the last poll that fetched everything, by document
	wait   time.Time         // not before: after wrong credentials
	saved  time.Time
}

// afterRefusal is how long nothing is sent after the server refused the
// credentials: five wrong passwords lock an account of Ranger for five minutes.
const afterRefusal = 60 * time.Second

// OpenREST opens a source that polls a Ranger Admin. It fails only for a
// configuration that can never work.
func OpenREST(c RESTConfig) (*Source, error) {
	fail := func(format string, args ...any) (*Source, error) {
		return nil, fault.New(fault.Config, "policy source "+c.Name+": "+format, args...)
	}
	base, err := url.Parse(c.URL)
	switch {
	case c.Name == "":
		return nil, fault.New(fault.Config, "a policy source needs a name")
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return fail("the address of Ranger must be like https://ranger.example:6182")
	case base.User != nil:
		return fail("user and password do not belong into the address of Ranger; they have keys of their own")
	case base.Scheme == "http" && !c.AllowHTTP && !loopback(base.Hostname()):
		return fail("http would send the password in the clear; use https, or allow http for this source")
	case c.DataService == "":
		return fail("%s", errNoService)
	}
	if err := c.Options.check(); err != nil {
		return fail("%s", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = c.tls(); err != nil {
		return fail("%s", err)
	}
	jar, err := cookiejar.New(nil) // Ranger's session saves a login for each poll
	if err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxBody <= 0 {
		c.MaxBody = maxDocument
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &rest{c: c, base: base, now: c.Now, bodies: map[string][]byte{}, client: &http.Client{
		Transport: transport, Jar: jar, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the server redirects") },
	}}
	return open(&Source{
		name: c.Name, options: c.Options, loader: r, interval: c.RefreshInterval,
		maxStaleness: c.MaxStaleness, now: c.Now, log: c.Log,
	}), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *RESTConfig) tls() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, errors.New("the file of trusted certificates cannot be read")
		}
		if out.RootCAs, err = x509.SystemCertPool(); err != nil {
			out.RootCAs = x509.NewCertPool()
		}
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the file of trusted certificates holds none")
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, errors.New("the client certificate and its key cannot be used")
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

func (rest) kind() string { return "ranger" }

// document is one of the downloads. Source of the paths: Ranger's plugins.
type document struct {
	name, path, version string // name as in Status, version: the query parameter
	required            bool
}

func (c *RESTConfig) documents() []document {
	list := []document{
		{"policies/" + c.DataService, "/service/plugins/secure/policies/download/" + url.PathEscape(c.DataService), "lastKnownVersion", true},
		{"tags/" + c.DataService, "/service/tags/secure/download/" + url.PathEscape(c.DataService), "lastKnownVersion", false},
		{"roles", "/service/roles/secure/download/" + url.PathEscape(c.DataService), "lastKnownRoleVersion", false},
		{"users", "/service/xusers/secure/download/" + url.PathEscape(c.DataService), "lastKnownUserStoreVersion", false},
	}
	if c.PolarisService != "" {
		list = append(list,
			document{"policies/" + c.PolarisService, "/service/plugins/secure/policies/download/" + url.PathEscape(c.PolarisService), "lastKnownVersion", true},
			document{"tags/" + c.PolarisService, "/service/tags/secure/download/" + url.PathEscape(c.PolarisService), "lastKnownVersion", false})
	}
	return list
}

func (r *rest) load(ctx context.Context, prev *documents) (*documents, error) {
	if left := r.wait.Sub(r.now()); left > 0 {
		return nil, fmt.Errorf("the Ranger Admin refused the credentials; the next attempt is in %s", left.Round(time.Second))
	}
	known := map[string]int64{}
	if prev != nil {
		known = prev.versions()
	}
	bodies := map[string][]byte{}
	changed := prev == nil
	for _, d := range r.c.documents() {
		version := int64(-1)
		if v, ok := known[d.name]; ok && r.bodies[d.name] != nil {
			version = v
		}
		body, err := r.get(ctx, d, version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		switch {
		case body != nil:
			changed = true
			bodies[d.name] = body
		case r.bodies[d.name] != nil:
			bodies[d.name] = r.bodies[d.name]
		case d.required:
			return nil, fmt.Errorf("%s: Ranger has none", d.name)
		}
	}
	if !changed {
		return prev, nil
	}
	docs, err := r.c.parse(bodies)
	if err != nil {
		return nil, err
	}
	if err := notOlder(prev, docs); err != nil {
		return nil, err
	}
	r.bodies = bodies
	return docs, nil
}

// get downloads a document; nil when the server has nothing newer than version.
func (r *rest) get(ctx context.Context, d document, version int64) ([]byte, error) {
	u := *r.base
	u.Path = strings.TrimSuffix(u.Path, "/")
	u = *u.JoinPath(d.path)
	u.RawQuery = url.Values{d.version: {strconv.FormatInt(version, 10)}, "pluginId": {"sqe@" + r.c.Name}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "sqe")
	req.SetBasicAuth(r.c.Username, r.c.Password)
	resp, err := r.client.Do(req)
	if err != nil {
		var inURL *url.Error
		if errors.As(err, &inURL) {
			if inURL.Timeout() {
				return nil, errors.New("the Ranger Admin did not answer in time")
			}
			err = inURL.Err
		}
		return nil, fmt.Errorf("the Ranger Admin cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, r.c.MaxBody+1))
	switch {
	case err != nil:
		return nil, errors.New("the answer broke off")
	case int64(len(body)) > r.c.MaxBody:
		return nil, fmt.Errorf("the answer is larger than %d bytes", r.c.MaxBody)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if len(body) == 0 {
			return nil, errors.New("the answer is empty")
		}
		return body, nil
	case http.StatusNotModified, http.StatusNoContent:
		return nil, nil
	case http.StatusUnauthorized:
		r.wait = r.now().Add(afterRefusal)
		return nil, fmt.Errorf("the Ranger Admin refused the credentials (401); the next attempt is in %s", afterRefusal)
	case http.StatusForbidden:
		return nil, errors.New("the Ranger Admin does not let this user download (403); name the user in policy.download.auth.users, tag.download.auth.users and userstore.download.auth.users of the service")
	case http.StatusNotFound:
		if strings.Contains(string(body), "RANGER_ERROR_SERVICE_NOT_FOUND") || strings.Contains(string(body), "not found") {
			return nil, errors.New("the Ranger Admin knows no such service (404)")
		}
		return nil, errors.New("the server has no such address (404); is it a Ranger Admin?")
	}
	return nil, fmt.Errorf("the Ranger Admin answered %d", resp.StatusCode)
}

// parse reads the bodies of one poll.
func (c *RESTConfig) parse(bodies map[string][]byte) (*documents, error) {
	d := &documents{objectsName: c.PolarisService, tablesName: c.DataService}
	names := make([]string, 0, len(bodies))
	for name := range bodies {
		names = append(names, name)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%s %d\n", name, len(bodies[name]))
		hash.Write(bodies[name])
	}
	d.fingerprint = hex.EncodeToString(hash.Sum(nil)[:12])
	var err error
	if d.tables, err = dataPolicies(bodies["policies/"+c.DataService], c.DataService); err != nil {
		return nil, err
	}
	if b := bodies["tags/"+c.DataService]; b != nil {
		if d.tableTags, err = wholeTags(b, c.DataService); err != nil {
			return nil, err
		}
	}
	if b := bodies["roles"]; b != nil {
		if d.roles, err = model.DecodeRoles(b); err != nil {
			return nil, err
		}
	}
	if b := bodies["users"]; b != nil {
		if d.users, err = model.DecodeUserStore(b); err != nil {
			return nil, err
		}
	}
	if c.PolarisService == "" {
		return d, nil
	}
	if d.objects, err = objectPolicies(bodies["policies/"+c.PolarisService], c.PolarisService); err != nil {
		return nil, err
	}
	if b := bodies["tags/"+c.PolarisService]; b != nil {
		if d.objectTags, err = wholeTags(b, c.PolarisService); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// snapshot is the file of the last good documents.
type snapshot struct {
	Format    int                        `json:"format"`
	Server    string                     `json:"server"`
	Time      time.Time                  `json:"time"` // of the last successful poll
	Documents map[string]json.RawMessage `json:"documents"`
}

// store keeps the documents of a successful poll at that time. When nothing
// changed only the time is new, which is written a few times within the staleness
// bound.
func (r *rest) store(at time.Time, changed bool, bound time.Duration) error {
	if r.c.SnapshotFile == "" || !changed && at.Sub(r.saved) < bound/4 {
		return nil
	}
	s := snapshot{Format: 1, Server: r.c.URL, Time: at, Documents: map[string]json.RawMessage{}}
	for name, body := range r.bodies {
		s.Documents[name] = body
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(r.c.SnapshotFile), ".snapshot-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), r.c.SnapshotFile)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	r.saved = at
	return nil
}

// restore reads the documents that an earlier run stored, and the time at which
// they were true.
func (r *rest) restore() (*documents, time.Time, error) {
	if r.c.SnapshotFile == "" {
		return nil, time.Time{}, nil
	}
	text, err := os.ReadFile(r.c.SnapshotFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	var s snapshot
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	switch {
	case err != nil:
		return nil, time.Time{}, errors.New("the stored policies cannot be read")
	case s.Format != 1 || s.Server != r.c.URL:
		return nil, time.Time{}, errors.New("the stored policies are those of another server")
	case s.Time.After(r.now()):
		return nil, time.Time{}, errors.New("the stored policies come from the future")
	}
	bodies := map[string][]byte{}
	for name, body := range s.Documents {
		bodies[name] = body
	}
	docs, err := r.c.parse(bodies)
	if err != nil {
		return nil, time.Time{}, err
	}
	r.bodies = bodies
	return docs, s.Time, nil
}
