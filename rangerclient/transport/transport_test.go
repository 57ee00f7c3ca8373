package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func open(t *testing.T, c Config, handler http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c.URL = s.URL + c.URL
	client, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

func TestReadsAreRepeatedAndWritesAreNot(t *testing.T) {
	for method, want := range map[string]int32{"GET": retries + 1, "PUT": 1, "POST": 1, "DELETE": 1} {
		t.Run(method, func(t *testing.T) {
			var asked atomic.Int32
			c, _ := open(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(503)
			})
			began := time.Now()
			a, err := c.Do(context.Background(), method, "/x", nil, nil)
			if err != nil || a.Status != 503 || asked.Load() != want {
				t.Errorf("%+v %v, %d requests, want %d", a, err, asked.Load(), want)
			}
			// Not the hour that the server asks for, nor a good part of it.
			if time.Since(began) > time.Minute {
				t.Errorf("waited for %s", time.Since(began))
			}
		})
	}
	// A connection that breaks off: the same.
	for method, want := range map[string]int32{"GET": retries + 1, "PUT": 1} {
		var asked atomic.Int32
		c, _ := open(t, Config{}, func(http.ResponseWriter, *http.Request) {
			asked.Add(1)
			panic(http.ErrAbortHandler)
		})
		if _, err := c.Do(context.Background(), method, "/x", nil, []byte("{}")); err == nil || asked.Load() != want {
			t.Errorf("%s: %v, %d requests, want %d", method, err, asked.Load(), want)
		}
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	c, s := open(t, Config{URL: "/ranger/", Username: "u", Password: "secret"}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "RANGERADMINSESSIONID", Value: "s1", Path: "/"})
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		fmt.Fprint(w, "{}")
	})
	for range 2 {
		if a, err := c.Do(context.Background(), "PUT", "/service/x/"+url.PathEscape("a/b c"), url.Values{"q": {"1 2"}}, []byte("{}")); err != nil || !a.JSON || string(a.Body) != "{}" {
			t.Fatalf("%+v %v", a, err)
		}
	}
	user, password, _ := got.BasicAuth()
	cookie, _ := got.Cookie("RANGERADMINSESSIONID")
	switch {
	case got.URL.EscapedPath() != "/ranger/service/x/a%2Fb%20c" || got.URL.Query().Get("q") != "1 2":
		t.Error(got.URL)
	case user != "u" || password != "secret" || cookie == nil || cookie.Value != "s1":
		t.Error(user, password, cookie)
	case got.Header.Get("X-Xsrf-Header") == "" || got.UserAgent() != "sqe":
		t.Error(got.Header)
	}
	if c.Server() != s.URL {
		t.Error(c.Server())
	}
}

func TestNoAnswer(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"in time": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		},
		"larger": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 2000)) },
		"broke off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			_, _ = w.Write([]byte("x"))
		},
	} {
		config := Config{Timeout: time.Minute, MaxBody: 1000, Password: "secret"}
		if name == "in time" {
			config.Timeout = 100 * time.Millisecond
		}
		c, s := open(t, config, handler)
		_, err := c.Do(context.Background(), "GET", "/x", nil, nil)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), s.Listener.Addr().String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusals: whoever uses the account waits, and never do five refusals fall
// into five minutes. Another password is another account.
func TestRefusals(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	var refused []time.Time
	right := "right"
	answer := func(w http.ResponseWriter, r *http.Request) {
		if _, p, _ := r.BasicAuth(); p != right {
			refused = append(refused, now)
			w.WriteHeader(401)
		}
	}
	one, s := open(t, Config{Username: "u", Password: "wrong", Now: clock}, answer)
	two, err := Open(Config{URL: s.URL, Username: "u", Password: "wrong", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	for range 400 {
		for _, c := range []*Client{one, two} {
			if _, err := c.Do(context.Background(), "GET", "/x", nil, nil); !errors.As(err, new(*Refused)) {
				t.Fatal(err)
			}
		}
		now = now.Add(5 * time.Second)
	}
	for i := range refused {
		if i+4 < len(refused) && refused[i+4].Sub(refused[i]) < 5*time.Minute {
			t.Fatalf("five refusals within %s", refused[i+4].Sub(refused[i]))
		}
	}
	if len(refused) < 10 {
		t.Errorf("asked %d times only", len(refused))
	}
	changed, err := Open(Config{URL: s.URL, Username: "u", Password: "right", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Do(context.Background(), "GET", "/x", nil, nil); err != nil {
		t.Error(err)
	}
	right = "wrong" // the server was mended
	now = now.Add(3 * time.Minute)
	for range 3 {
		if _, err := one.Do(context.Background(), "GET", "/x", nil, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestConfig(t *testing.T) {
	for address, ok := range map[string]bool{
		"": false, "ranger:6080": false, "ftp://ranger": false, "http://ranger:6080": false, "https://a:b@ranger": false,
		"https://ranger:6182": true, "http://127.0.0.1:6080": true, "http://[::1]:6080/ranger": true, "http://localhost": true,
	} {
		if _, err := Open(Config{URL: address}); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := Open(Config{URL: "http://ranger:6080", AllowHTTP: true}); err != nil {
		t.Error(err)
	}
}
