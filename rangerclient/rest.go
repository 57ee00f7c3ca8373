package rangerclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"sqe/fault"
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

// rest fetches documents from a Ranger Admin.
type rest struct {
	c      RESTConfig
	base   *url.URL
	client *http.Client
	now    func() time.Time
	wait   time.Time // not before: after wrong credentials
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
	r := &rest{c: c, base: base, now: c.Now, client: &http.Client{
		Transport: transport, Jar: jar, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the server redirects") },
	}}
	return open(&Source{
		name: c.Name, options: c.Options, loader: &downloads{
			server: c.URL, snapshotFile: c.SnapshotFile, polarisService: c.PolarisService, dataService: c.DataService,
			now: c.Now, fetch: r.get, kindName: "ranger",
		}, interval: c.RefreshInterval,
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

// get downloads a document; nil when the server has nothing newer than version.
func (r *rest) get(ctx context.Context, d document, version int64) ([]byte, error) {
	if left := r.wait.Sub(r.now()); left > 0 {
		return nil, fmt.Errorf("the Ranger Admin refused the credentials; the next attempt is in %s", left.Round(time.Second))
	}
	u := *r.base
	u.Path = strings.TrimSuffix(u.Path, "/")
	path, parameter := d.path()
	u = *u.JoinPath(path)
	u.RawQuery = url.Values{parameter: {strconv.FormatInt(version, 10)}, "pluginId": {"sqe@" + r.c.Name}}.Encode()
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
