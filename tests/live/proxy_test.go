//go:build e2e

package live

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// proxy stands before the policy server and fails on demand. What tests
// themselves ask goes around it.
type proxy struct {
	target  *url.URL
	address string

	mu      sync.Mutex
	fault   fault
	old     map[string][]byte // bodies of downloads, by path, for olderVersions
	keep    bool
	server  *http.Server
	asked   int // downloads since the start
	refused int // of them answered 401
}

// fault is how the proxy fails.
type fault string

const (
	works         fault = ""
	status500     fault = "500"
	garbage       fault = "garbage"
	truncated     fault = "truncated"
	slow          fault = "slow" // longer than the client waits
	wrongPassword fault = "wrong password"
	olderVersions fault = "older versions"
	otherService  fault = "another service"
	empty         fault = "empty"
	redirects     fault = "redirects"
)

func newProxy(target string) (*proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &proxy{target: u, old: map[string][]byte{}}
	return p, p.start()
}

// start listens, on the same port as before.
func (p *proxy) start() error {
	address := p.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	var l net.Listener
	var err error
	for range 50 { // the port may linger
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	p.address = l.Addr().String()
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(l) }()
	return nil
}

// stop closes the port and every connection.
func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close()
}

func (p *proxy) fail(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// remember keeps the bodies of the next downloads to answer with them later.
func (p *proxy) remember(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = on
}

// remembered is how many documents are kept.
func (p *proxy) remembered() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path := range p.old {
		if strings.Contains(path, "/download/") {
			n++
		}
	}
	return n
}

func (p *proxy) count() (asked, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.refused
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f, keep := p.fault, p.keep
	p.asked++
	old := p.old[r.URL.Path]
	if f == wrongPassword {
		p.refused++
	}
	p.mu.Unlock()
	switch f {
	case status500:
		http.Error(w, "something broke", http.StatusInternalServerError)
		return
	case garbage:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"serviceName": "x", "policies": [[[`)
		return
	case empty:
		w.WriteHeader(http.StatusOK)
		return
	case slow:
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
		}
		return
	case wrongPassword:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"statusCode":401,"msgDesc":"Authentication Failed"}`)
		return
	case redirects:
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		return
	case olderVersions:
		if old != nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(old)
			return
		}
	}
	if keep || f == truncated || f == otherService {
		// A whole body is wanted, whatever the client has.
		q := r.URL.Query()
		for _, name := range []string{"lastKnownVersion", "lastKnownRoleVersion", "lastKnownUserStoreVersion"} {
			if q.Has(name) {
				q.Set(name, "-1")
			}
		}
		r.URL.RawQuery = q.Encode()
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(p.target)
			pr.Out.Host = p.target.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK || !keep && f == works {
				return nil
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return err
			}
			switch {
			case f == truncated:
				body = body[:len(body)*2/3]
			case f == otherService:
				body = []byte(strings.ReplaceAll(string(body), dataService, "somebody_else"))
			case keep:
				p.mu.Lock()
				p.old[r.URL.Path] = body
				p.mu.Unlock()
			}
			resp.Body = io.NopCloser(bytes.NewReader(body))
			resp.ContentLength = int64(len(body))
			resp.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		},
	}
	forward.ServeHTTP(w, r)
}
