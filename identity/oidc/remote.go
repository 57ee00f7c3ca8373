package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"sqe/fault"
)

const (
	// refetch is the least time between two fetches of the keys because a token names
	// one that is not known: anybody can make up names of keys.
	refetch = 3 * time.Second
	// pause is how long a provider that did not answer is not asked again for its
	// metadata and keys.
	pause = time.Second
	// maxAnswer bounds an answer of the provider, in bytes.
	maxAnswer = 1 << 20
)

// metadata is what a provider says of itself.
type metadata struct {
	token, keys, introspection string // addresses
}

// remote is what is known of the provider, asked by one caller at a time for all.
type remote struct {
	flight singleflight.Group

	mu       sync.Mutex
	metadata *metadata
	keys     map[string]jose.JSONWebKey // by key id
	loaded   time.Time
	fetched  time.Time // last attempt to get keys
	failed   time.Time // last failure
}

// newClient makes the client for one provider: answers are bounded in time and
// size, and nothing is sent to where an answer redirects.
func newClient(roots *x509.CertPool, timeout time.Duration) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = maxExchanges
	t.ResponseHeaderTimeout = timeout
	return &http.Client{
		Transport: bounded{t}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Load asks the provider for its metadata and keys, so that the first login need
// not wait for them. Its error says what is wrong for the operator.
func (p *Provider) Load(ctx context.Context) error {
	_, err := p.load(ctx)
	return err
}

// known is the metadata, asked again when they are too old.
func (p *Provider) known(ctx context.Context) (*metadata, error) {
	r := &p.remote
	r.mu.Lock()
	m, fresh, failed := r.metadata, p.now().Sub(r.loaded) < p.o.KeysMaxAge, p.now().Sub(r.failed) < pause
	r.mu.Unlock()
	switch {
	case m != nil && fresh:
		return m, nil
	case failed:
		return nil, p.unavailable()
	}
	m, err := p.load(ctx)
	if err != nil {
		return nil, p.unavailable()
	}
	return m, nil
}

// key finds a key of the provider by its id. A key that is not known is looked for
// at the provider, not more often than refetch allows.
func (p *Provider) key(ctx context.Context, id string) (*jose.JSONWebKey, error) {
	if _, err := p.known(ctx); err != nil {
		return nil, err
	}
	r := &p.remote
	r.mu.Lock()
	k, ok := r.keys[id]
	wait := p.now().Sub(r.fetched) < refetch
	r.mu.Unlock()
	switch {
	case ok:
		return &k, nil
	case wait:
		return nil, ReasonUnknownKey
	}
	if _, err := p.load(ctx); err != nil {
		return nil, p.unavailable()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok = r.keys[id]; !ok {
		return nil, ReasonUnknownKey
	}
	return &k, nil
}

// load gets metadata and keys. Callers at the same time share one request, which
// does not end with the caller who began it.
func (p *Provider) load(ctx context.Context) (*metadata, error) {
	answer := p.remote.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Timeout)
		defer cancel()
		m, keys, err := p.fetch(ctx)
		r := &p.remote
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fetched = p.now()
		if err != nil {
			r.failed = r.fetched
			p.o.Log.Warn("the identity provider cannot be read", "provider", p.o.Name, "error", err)
			return nil, err
		}
		r.metadata, r.keys, r.loaded, r.failed = m, keys, r.fetched, time.Time{}
		return m, nil
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return nil, a.Err
		}
		return a.Val.(*metadata), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *Provider) fetch(ctx context.Context) (*metadata, map[string]jose.JSONWebKey, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.o.Issuer)
	if err != nil {
		if mismatch := (*oidc.IssuerMismatchError)(nil); errors.As(err, &mismatch) {
			return nil, nil, fault.Wrap(fault.Config, err, "identity provider %s calls itself %s: issuer must be exactly that", p.o.Name, mismatch.Discovered)
		}
		return nil, nil, fault.Wrap(fault.Unavailable, err, "identity provider %s: its metadata cannot be read from %s/.well-known/openid-configuration: %s", p.o.Name, strings.TrimSuffix(p.o.Issuer, "/"), short(err))
	}
	var more struct {
		Introspection string `json:"introspection_endpoint"`
		Keys          string `json:"jwks_uri"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, nil, fault.New(fault.Unavailable, "identity provider %s: its metadata cannot be read", p.o.Name)
	}
	m := &metadata{token: found.Endpoint().TokenURL, keys: more.Keys, introspection: more.Introspection}
	for what, address := range map[string]string{"token_endpoint": m.token, "jwks_uri": m.keys, "introspection_endpoint": m.introspection} {
		if address != "" && !secure(address, p.o.AllowHTTP) {
			return nil, nil, fault.New(fault.Config, "identity provider %s: its %s is not https", p.o.Name, what)
		}
	}
	if m.keys == "" {
		return nil, nil, fault.New(fault.Config, "identity provider %s names no jwks_uri", p.o.Name)
	}
	if m.introspection == "" && p.o.IntrospectionInterval > 0 {
		return nil, nil, fault.New(fault.Config, "identity provider %s has no introspection_endpoint; leave introspection-interval out", p.o.Name)
	}
	keys, err := p.fetchKeys(ctx, m.keys)
	return m, keys, err
}

func (p *Provider) fetchKeys(ctx context.Context, address string) (map[string]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.New(fault.Config, "identity provider %s: its jwks_uri is not an address", p.o.Name)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "identity provider %s: its keys cannot be read: %s", p.o.Name, short(err))
	}
	defer resp.Body.Close()
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&set) != nil {
		return nil, fault.New(fault.Unavailable, "identity provider %s: its keys cannot be read (status %d)", p.o.Name, resp.StatusCode)
	}
	keys := map[string]jose.JSONWebKey{}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		// A kind of key that is not known here signs nothing that would be accepted.
		if json.Unmarshal(raw, &k) != nil || k.KeyID == "" || !k.Valid() || !k.IsPublic() {
			continue
		}
		if _, twice := keys[k.KeyID]; twice {
			return nil, fault.New(fault.Unavailable, "identity provider %s has two keys of one id", p.o.Name)
		}
		keys[k.KeyID] = k
	}
	return keys, nil
}

// secure reports whether what is sent to an address cannot be read on the way: it
// is https, or this machine's own, or http is allowed.
func secure(address string, allowHTTP bool) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && (local || allowHTTP)
}

// short is the last part of what a request failed with, without the address.
func short(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	const longest = 200
	return text[:min(len(text), longest)]
}
