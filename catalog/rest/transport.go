package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// HTTPOptions say how servers are reached.
type HTTPOptions struct {
	// CAFile holds certificates (PEM) to trust beside the system's, CertFile and
	// KeyFile the client's own.
	CAFile, CertFile, KeyFile string
	// Timeout is that of one request with its answer; 0 is 30 s.
	Timeout time.Duration
	// AllowHTTP permits http:// to a host that is not this machine: tokens then go
	// over the network in the clear.
	AllowHTTP bool
}

const defaultTimeout = 30 * time.Second

// NewHTTP makes an HTTP client that goes where it is told: a redirect is followed
// only for reading and on the same server. Its errors are about the configuration.
func NewHTTP(o HTTPOptions) (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, errors.New("the file of trusted certificates cannot be read")
		}
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool()
		}
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the file of trusted certificates holds none")
		}
	}
	if o.CertFile != "" || o.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, errors.New("the client certificate and its key cannot be used")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	transport.MaxIdleConnsPerHost = 32 // lists are asked for in parallel
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &http.Client{Transport: transport, Timeout: o.Timeout, CheckRedirect: sameServer}, nil
}

func sameServer(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || first.Method != http.MethodGet || req.URL.Scheme != first.URL.Scheme || !strings.EqualFold(req.URL.Host, first.URL.Host) {
		return http.ErrUseLastResponse
	}
	return nil
}

// checkAddress refuses an address that tokens must not be sent to. Its errors are
// about the configuration.
func checkAddress(address string, allowHTTP bool) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must be an address such as https://catalog.example:8181/api/catalog")
	case u.User != nil:
		return nil, errors.New("must not hold a user and password; they have keys of their own")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must not have a query or a fragment")
	case u.Scheme == "http" && !allowHTTP && !loopback(u.Hostname()):
		return nil, errors.New("would send tokens in the clear: use https, or permit http with allow-http")
	}
	return u, nil
}

// loopback reports whether host names this machine and nothing else.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// How reads are repeated.
const (
	retries   = 2
	retryWait = 100 * time.Millisecond
	retryMost = 5 * time.Second
)

func newReads(once *http.Client) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: once, RetryMax: retries, RetryWaitMin: retryWait, RetryWaitMax: retryMost,
		CheckRetry: again, ErrorHandler: retryablehttp.PassthroughErrorHandler,
		// What the server asks for is heeded within reason: somebody waits.
		Backoff: func(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
			return min(retryablehttp.DefaultBackoff(least, most, attempt, resp), most)
		},
	}
}

// again repeats what the server or the network may answer otherwise a moment later.
// A 500 is not of that kind: it would be asked thrice for each table of a list.
func again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if resp != nil && err == nil {
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return ctx.Err() == nil, ctx.Err()
		}
		return false, nil
	}
	if errors.Is(err, context.DeadlineExceeded) || timedOut(err) {
		return false, nil // it was waited for long enough
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// call is one request.
type call struct {
	operation string // for errors
	method    string
	path      string // below the address of the catalog, escaped
	query     string // encoded
	header    map[string]string
	body      any // JSON; nil for none
	// into takes the JSON of the answer; nil for none.
	into any
}

// answer is what is left of an answer when its body is read.
type answer struct {
	status int
	header http.Header
}

// do sends a call with the token of ctx. A token that the catalog refuses is
// replaced once, where another one can be had: what was refused was not done.
func (c *Client) do(ctx context.Context, r call) (answer, error) {
	for second := false; ; second = true {
		token, err := c.o.Tokens.Token(ctx)
		if err != nil {
			return answer{}, err
		}
		a, err := c.send(ctx, r, token)
		var e *Error
		if second || !errors.As(err, &e) || e.Status != http.StatusUnauthorized || !c.o.Tokens.Refused(token) {
			return a, err
		}
	}
}

func (c *Client) send(ctx context.Context, r call, token Token) (answer, error) {
	var content io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, &Error{Operation: r.operation, cause: fmt.Errorf("the request cannot be written as JSON: %w", err)}
		}
		content = bytes.NewReader(text)
	}
	address := c.address + r.path
	if r.query != "" {
		address += "?" + r.query
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, content)
	if err != nil {
		return answer{}, &Error{Operation: r.operation, cause: errors.New("the request has a path that no address can hold")}
	}
	for k, v := range c.o.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "sqe")
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token.Bearer != "" {
		if err := bearer(token.Bearer); err != nil {
			return answer{}, &Error{Operation: r.operation, Status: http.StatusUnauthorized, cause: err}
		}
		req.Header.Set("Authorization", "Bearer "+token.Bearer)
	}
	var resp *http.Response
	if r.method == http.MethodGet {
		var read *retryablehttp.Request
		if read, err = retryablehttp.FromRequest(req); err == nil {
			resp, err = c.reads.Do(read)
		}
	} else {
		resp, err = c.o.HTTP.Do(req)
	}
	if err != nil {
		return answer{}, unanswered(r.operation, r.method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return c.read(r, resp)
}

// read takes the answer apart.
func (c *Client) read(r call, resp *http.Response) (answer, error) {
	a := answer{status: resp.StatusCode, header: resp.Header}
	done := NotDone
	if r.method != http.MethodGet {
		done = Unknown
	}
	switch {
	case resp.StatusCode == http.StatusNotModified && r.header["If-None-Match"] != "":
		return a, nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, mostError))
		e := failure(r.operation, resp.StatusCode, body)
		if resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented {
			e.Outcome = done
		}
		return a, e
	case r.into == nil:
		return a, nil
	}
	body, release, err := c.body(resp)
	defer release()
	fail := func(cause error) (answer, error) {
		return a, &Error{Operation: r.operation, Outcome: done, cause: cause}
	}
	switch {
	case err != nil:
		return fail(fmt.Errorf("the answer broke off: %w", err))
	case int64(len(body)) > c.o.MaxAnswer:
		return fail(fmt.Errorf("the answer is larger than %d bytes", c.o.MaxAnswer))
	case json.Unmarshal(body, r.into) != nil:
		return fail(errNonsense)
	}
	return a, nil
}

// short is how long an answer may be without waiting for others, in bytes.
const short = 4 << 20

// body reads the body of an answer, up to a byte more than it may be long. A long one
// waits until there is room for it beside others. release is to be called when it is
// not needed any more.
func (c *Client) body(resp *http.Response) (body []byte, release func(), err error) {
	release = func() {}
	var to bytes.Buffer
	if _, err = io.CopyN(&to, resp.Body, min(short, c.o.MaxAnswer+1)); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return to.Bytes(), release, err
	}
	room := c.o.MaxAnswer
	if n := resp.ContentLength; n > 0 && n < room {
		room = n
	}
	if err := c.large.Acquire(resp.Request.Context(), room); err != nil {
		return nil, release, err
	}
	release = func() { c.large.Release(room) }
	to.Grow(int(min(room, 2*short)))
	_, err = io.Copy(&to, io.LimitReader(resp.Body, c.o.MaxAnswer+1-int64(to.Len())))
	return to.Bytes(), release, err
}
