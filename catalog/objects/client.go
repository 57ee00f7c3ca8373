package objects

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Options say which store, and how it is asked.
type Options struct {
	// Endpoint is the address of the store; "" is Amazon's of the region.
	Endpoint string
	// Region is "us-east-1" where it is "".
	Region string
	// VirtualHosts asks for bucket.endpoint/key instead of endpoint/bucket/key.
	VirtualHosts bool
	Credentials  Credentials
	// Renew gives other credentials when these expire, or when the store does not know
	// them any more; nil: there are no others.
	Renew Renew
	// HTTP sends the requests; nil is a client of NewHTTP.
	HTTP *http.Client
	// Timeout is how long the store may be silent; 0 is 30 s.
	Timeout time.Duration
	// Attempts is how often a request is sent that fails for a reason that may pass; 0
	// is 4.
	Attempts int
	// Cache keeps parts of objects on the local disk; nil keeps none.
	Cache *Cache
}

// Client speaks to a store with one set of credentials. It is safe for concurrent use
// and cheap to make.
type Client struct {
	api      *s3.Client
	holder   *holder
	single   atomic.Bool // the store does not delete several objects with one request
	store    string      // of keys of the cache
	timeout  time.Duration
	attempts int
	cache    *Cache
}

// Format shows nothing of a client, which holds credentials.
func (*Client) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("objects.Client")) }

// ErrCredentials: a client without credentials, or with half of them.
var ErrCredentials = errors.New("no complete credentials for the object store")

// New makes a client. It sends nothing.
func New(o Options) (*Client, error) {
	if !o.Credentials.complete() {
		return nil, ErrCredentials
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	c := &Client{timeout: o.Timeout, attempts: o.Attempts, cache: o.Cache, store: o.Endpoint}
	if c.timeout <= 0 {
		c.timeout = 30 * time.Second
	}
	if c.attempts <= 0 {
		c.attempts = 4
	}
	if c.store == "" {
		c.store = o.Region
	}
	if o.HTTP == nil {
		var err error
		if o.HTTP, err = NewHTTP(HTTPOptions{}); err != nil {
			return nil, err
		}
	}
	options := s3.Options{
		Region: o.Region, HTTPClient: o.HTTP, UsePathStyle: !o.VirtualHosts,
		// Sending again is decided here, where a body that breaks off counts too.
		Retryer: aws.NopRetryer{},
		// Other stores than Amazon's refuse the newer checksums. Bodies are signed.
		RequestChecksumCalculation:                aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:                aws.ResponseChecksumValidationWhenRequired,
		DisableS3ExpressSessionAuth:               aws.Bool(true),
		DisableLogOutputChecksumValidationSkipped: true,
	}
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("the endpoint of the object store is no http(s) address")
		}
		options.BaseEndpoint = aws.String(o.Endpoint)
	}
	c.holder = newHolder(o.Credentials, o.Renew)
	options.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		is, ok := ctx.Value(carried{}).(Credentials)
		if !ok {
			return aws.Credentials{}, ErrCredentials
		}
		return aws.Credentials{AccessKeyID: is.AccessKeyID, SecretAccessKey: is.SecretAccessKey, SessionToken: is.SessionToken}, nil
	})
	c.api = s3.New(options)
	return c, nil
}

// HTTPOptions are of the connections to stores.
type HTTPOptions struct {
	// CAFile holds certificates (PEM) to trust beside the system's.
	CAFile string
}

// NewHTTP makes the client of requests, which many Clients may share: it knows no
// credentials. A redirect is not followed: what is signed for one server is not for
// another one.
func NewHTTP(o HTTPOptions) (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool()
		}
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", o.CAFile)
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     conf,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        256, MaxIdleConnsPerHost: 64, MaxConnsPerHost: 256,
			IdleConnTimeout:    90 * time.Second,
			DisableCompression: true,
			ForceAttemptHTTP2:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// slowest is how fast bytes are taken for coming or going, at least, in bytes a
// second.
const slowest = 256 << 10

// do sends a request until it succeeds, fails for good or has failed too often. size
// is how many bytes go with it. call says with alive that something came. What a store
// refuses because it does not know the credentials any more was not done: it is sent
// once more with others, where there are any.
func (c *Client) do(ctx context.Context, operation string, size int64, call func(ctx context.Context, alive func()) error) error {
	var refused *Credentials
	var first *Error // of them
	for n := 1; ; n++ {
		with, err := c.holder.get(ctx, refused)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &Error{Operation: operation, is: ErrNotRenewed, reason: err}
		}
		if refused != nil && refused.same(with) {
			return first
		}
		err = c.once(context.WithValue(ctx, carried{}, with), size, call)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e := classify(operation, err)
		if refused == nil && c.holder.renew != nil && invalidCodes[e.Code] {
			refused, first = &with, e
			continue
		}
		if !e.retry || n >= c.attempts {
			return e
		}
		wait := min(50*time.Millisecond<<n, 2*time.Second)
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Client) once(ctx context.Context, size int64, call func(context.Context, func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.timeout+time.Duration(size/slowest)*time.Second, func() { cancel(ErrSlow) })
	defer watch.Stop()
	err := call(ctx, func() { watch.Reset(c.timeout) })
	if err != nil && errors.Is(context.Cause(ctx), ErrSlow) {
		return ErrSlow
	}
	return err
}
