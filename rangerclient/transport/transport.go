// Package transport sends requests to a Ranger Admin, or to a server that speaks
// as one.
//
// Invariants: a request that changes something is sent once, one that reads is
// repeated after failures of the network and of the server; redirects are not
// followed; after the server refused the credentials nothing is sent to it for the
// same account for a minute, by nobody in this process, because five wrong
// passwords lock an account of Ranger for five minutes.
//
// Errors must never hold the password or the address.
package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Config says where a server is and who asks it.
type Config struct {
	URL                string // "https://ranger.example:6182", with a path where the server has one
	Username, Password string
	// AllowHTTP permits http:// to a host that is not this machine: the password
	// then goes over the network in the clear.
	AllowHTTP bool
	// CAFile holds the certificates (PEM) to trust beside the system's, CertFile
	// and KeyFile the client's own.
	CAFile, CertFile, KeyFile string
	Timeout                   time.Duration // of one request; 0: 10 s
	MaxBody                   int64         // bytes of one answer; 0: 256 MiB
	Now                       func() time.Time
}

// The defaults of Config.
const (
	DefaultTimeout = 10 * time.Second
	DefaultMaxBody = 256 << 20
)

// How reads are repeated.
const (
	retries   = 2
	retryWait = 100 * time.Millisecond
	retryMost = time.Second
)

// Client talks to one server with one account. It is safe for concurrent use.
type Client struct {
	base               *url.URL
	username, password string
	maxBody            int64
	now                func() time.Time
	once               *http.Client
	reads              *retryablehttp.Client
	account            [sha256.Size]byte
}

// Answer is what a server answered, whatever the status.
type Answer struct {
	Status int
	Body   []byte
	JSON   bool // the server says that the body is JSON
}

// Open prepares a client. It sends nothing; its errors are about the configuration
// and are made to be read by whoever wrote it.
func Open(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("the address of Ranger must be like https://ranger.example:6182")
	case base.User != nil:
		return nil, errors.New("user and password do not belong into the address of Ranger; they have keys of their own")
	case base.Scheme == "http" && !c.AllowHTTP && !loopback(base.Hostname()):
		return nil, errors.New("http would send the password in the clear; use https, or allow http for this source")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	base.RawQuery, base.Fragment = "", ""
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = c.tls(); err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil) // Ranger's session saves a login for each request
	if err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	once := &http.Client{
		Transport: transport, Jar: jar, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{
		base: base, username: c.Username, password: c.Password, maxBody: c.MaxBody, now: c.Now, once: once,
		account: sha256.Sum256([]byte(fmt.Sprintf("%q %q %q", base.String(), c.Username, c.Password))),
		reads: &retryablehttp.Client{
			HTTPClient: once, RetryMax: retries, RetryWaitMin: retryWait, RetryWaitMax: retryMost,
			CheckRetry: retryablehttp.DefaultRetryPolicy, Backoff: backoff,
			ErrorHandler: retryablehttp.PassthroughErrorHandler,
		},
	}, nil
}

// backoff heeds what the server asks for, within reason: somebody waits.
func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	return min(retryablehttp.DefaultBackoff(least, most, attempt, resp), most)
}

// loopback reports whether host names this machine and nothing else.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) tls() (*tls.Config, error) {
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

// Server is scheme, host and port of the server.
func (c *Client) Server() string { return c.base.Scheme + "://" + c.base.Host }

// Do sends a request and reads the whole answer. The path follows the server's
// address and is escaped where it must be (url.PathEscape of each variable
// segment); body is JSON, nil for none.
//
// An answer of any status is no error. Errors say in words why there is no answer;
// for a request that changes something the outcome is then not known, unless the
// error is a *Refused.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body []byte) (*Answer, error) {
	if left := refusals.left(c.account, c.now()); left > 0 {
		return nil, &Refused{Left: left, again: true}
	}
	address := c.Server() + c.base.EscapedPath() + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, errors.New("the request has a path that no address can hold")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "sqe")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		req.Header.Set("X-XSRF-HEADER", "\"\"") // any value: a form in a browser cannot send it
	}
	req.SetBasicAuth(c.username, c.password)
	resp, err := c.send(req)
	if err != nil {
		return nil, describe(err)
	}
	defer resp.Body.Close()
	out := &Answer{Status: resp.StatusCode, JSON: strings.Contains(resp.Header.Get("Content-Type"), "json")}
	out.Body, err = io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, &Refused{Left: refusals.refused(c.account, c.now())}
	case err != nil:
		return nil, errors.New("the answer broke off")
	case int64(len(out.Body)) > c.maxBody:
		return nil, fmt.Errorf("the answer is larger than %d bytes", c.maxBody)
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified:
		return nil, errors.New("the server redirects; give the address that it redirects to")
	}
	refusals.accepted(c.account)
	return out, nil
}

// send repeats what only reads.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.once.Do(req)
	}
	again, err := retryablehttp.FromRequest(req)
	if err != nil {
		return nil, err
	}
	return c.reads.Do(again)
}

// describe says why there is no answer, without the address.
func describe(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		if inURL.Timeout() {
			return errors.New("the Ranger Admin did not answer in time")
		}
		err = inURL.Err
	}
	return fmt.Errorf("the Ranger Admin cannot be reached: %w", err)
}

// Refused says that the server refused the credentials, now or a moment ago.
type Refused struct {
	Left  time.Duration // until the next request is sent
	again bool          // nothing was sent this time
}

// Error implements error.
func (r *Refused) Error() string {
	if r.again {
		return fmt.Sprintf("the Ranger Admin refused the credentials; the next attempt is in %s", r.Left.Round(time.Second))
	}
	return fmt.Sprintf("the Ranger Admin refused the credentials (401); the next attempt is in %s", r.Left.Round(time.Second))
}

// How long nothing is sent after a refusal, and after the ones that follow it. At
// most four fall into any five minutes: the fifth would lock the account.
const (
	afterRefusal  = 60 * time.Second
	afterRefusals = 120 * time.Second
)

// refusals are those of this process. Whoever talks to the same server with the
// same account waits: a source of policies and their administrator are two.
var refusals = refusalList{of: map[[sha256.Size]byte]refusal{}}

type refusalList struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]refusal
}

type refusal struct {
	at   time.Time
	wait time.Duration
}

func (l *refusalList) left(account [sha256.Size]byte, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.of[account]
	if !ok {
		return 0
	}
	return r.at.Add(r.wait).Sub(now)
}

func (l *refusalList) refused(account [sha256.Size]byte, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := afterRefusal
	if _, again := l.of[account]; again {
		wait = afterRefusals
	}
	l.of[account] = refusal{at: now, wait: wait}
	return wait
}

func (l *refusalList) accepted(account [sha256.Size]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, account)
}
