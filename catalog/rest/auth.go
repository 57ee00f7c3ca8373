package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
)

// Token is what a call proves itself with.
type Token struct {
	// Bearer is the token; "" sends none.
	Bearer string
	// Scope keeps answers apart: what was answered to one scope is never given to
	// another one. It is no secret.
	Scope string
}

// Tokens gives the token of each call.
type Tokens interface {
	// Token is one that is valid now. An error of it is a fault.
	Token(ctx context.Context) (Token, error)
	// Refused is told that the catalog refused a token (401). It reports whether
	// another one can be had.
	Refused(t Token) bool
}

// ErrNoToken: the catalog wants the token of the user, and the session has none.
var ErrNoToken = errors.New("the session has no token")

// User is the token of the session for which a statement runs. A session without
// one is refused.
func User(catalog string) Tokens { return userTokens{catalog} }

type userTokens struct{ catalog string }

func (u userTokens) Token(ctx context.Context) (Token, error) {
	c, ok := identity.CredentialFrom(ctx)
	if !ok {
		return Token{}, fault.Wrap(fault.Auth, ErrNoToken, "Catalog '%s' decides by the token of the user, and this session has none; log in with one", u.catalog)
	}
	t, err := c.Token(ctx)
	if err != nil {
		return Token{}, err
	}
	if t == "" {
		return Token{}, fault.New(fault.Auth, "Catalog '%s' decides by the token of the user, and that of this session is empty; log in again", u.catalog)
	}
	sum := sha256.Sum256([]byte(t))
	return Token{Bearer: t, Scope: "user " + hex.EncodeToString(sum[:])}, nil
}

func (userTokens) Refused(Token) bool { return false }

// serviceScope: all principals get the same answers.
const serviceScope = "service"

// PerUser reports whether the catalog sees each user, so that it may answer one otherwise
// than another.
func (c *Client) PerUser() bool {
	switch c.o.Tokens.(type) {
	case anonymous, staticToken, *serviceTokens:
		return false
	}
	return true
}

// Anonymous sends no token: for a catalog that asks for none.
func Anonymous() Tokens { return anonymous{} }

type anonymous struct{}

func (anonymous) Token(context.Context) (Token, error) { return Token{Scope: serviceScope}, nil }
func (anonymous) Refused(Token) bool                   { return false }

// Static is the token of the service: a text, or the first line of a file, which is
// read again for each call because others renew it.
func Static(catalog, token, file string) Tokens { return staticToken{catalog, token, file} }

type staticToken struct{ catalog, token, file string }

func (s staticToken) Token(context.Context) (Token, error) {
	t := s.token
	if s.file != "" {
		text, err := os.ReadFile(s.file)
		if err != nil {
			return Token{}, fault.Wrap(fault.Unavailable, err, "The token for catalog '%s' cannot be read; an administrator must look at the log", s.catalog)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		t = strings.TrimSpace(line)
	}
	if t == "" {
		return Token{}, fault.New(fault.Unavailable, "The token for catalog '%s' is empty; an administrator must correct it", s.catalog)
	}
	return Token{Bearer: t, Scope: serviceScope}, nil
}

func (staticToken) Refused(Token) bool { return false }

// Client are the credentials of the service at a token endpoint.
type ClientCredentials struct {
	// Catalog is the name for errors.
	Catalog string
	// URL is the token endpoint.
	URL                       string
	ID, Secret                string
	Scope, Audience, Resource string
	HTTP                      *http.Client
}

// Service gets tokens by the grant "client_credentials" (RFC 6749, 4.4).
func Service(c ClientCredentials) Tokens {
	return &serviceTokens{c: c, now: time.Now, asking: make(chan struct{}, 1)}
}

type serviceTokens struct {
	c   ClientCredentials
	now func() time.Time
	// asking has a place for the one who asks for a token. Others wait for it as long as
	// their contexts live.
	asking chan struct{}

	mu      sync.Mutex // never held while the endpoint is asked
	current string
	until   time.Time
}

// early is how long before its end a token is renewed.
const early = 30 * time.Second

func (s *serviceTokens) Token(ctx context.Context) (Token, error) {
	current, err := s.token(ctx)
	if err != nil {
		return Token{}, fault.Wrap(fault.Unavailable, err, "The token for catalog '%s' cannot be got; try again, or ask an administrator to look at the log", s.c.Catalog)
	}
	return Token{Bearer: current, Scope: serviceScope}, nil
}

func (s *serviceTokens) token(ctx context.Context) (string, error) {
	if current, ok := s.kept(); ok {
		return current, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if current, ok := s.kept(); ok {
		return current, nil // who asked before got it
	}
	return s.fetch(ctx)
}

// kept is the token that was got last, while it is good.
func (s *serviceTokens) kept() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.current != "" && s.now().Before(s.until)
}

func (s *serviceTokens) Refused(t Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == t.Bearer {
		s.current = ""
	}
	return true
}

// fetch asks the endpoint for a token and keeps it.
func (s *serviceTokens) fetch(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {s.c.ID}, "client_secret": {s.c.Secret}}
	for k, v := range map[string]string{"scope": s.c.Scope, "audience": s.c.Audience, "resource": s.c.Resource} {
		if v != "" {
			form.Set(k, v)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.c.URL, bytes.NewBufferString(form.Encode()))
	if err != nil {
		return "", errors.New("the address of the token endpoint is none")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	asked := s.now()
	resp, err := s.c.HTTP.Do(req)
	if err != nil {
		return "", unanswered("get token", http.MethodPost, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostError))
	if err != nil {
		return "", errors.New("the answer of the token endpoint broke off")
	}
	if resp.StatusCode != http.StatusOK {
		return "", failure("get token", resp.StatusCode, body)
	}
	var got struct {
		Token   string  `json:"access_token"`
		Type    string  `json:"token_type"`
		Seconds float64 `json:"expires_in"`
	}
	if json.Unmarshal(body, &got) != nil || got.Token == "" || !strings.EqualFold(got.Type, "bearer") {
		return "", errors.New("the token endpoint answered without a bearer token")
	}
	life := time.Duration(got.Seconds) * time.Second
	if life <= 0 {
		life = time.Hour // not said; a refusal ends it earlier
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.until = got.Token, asked.Add(max(life-early, life/2))
	return got.Token, nil
}

// bearer says whether a token can stand in a header.
func bearer(t string) error {
	if strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the token holds characters that no token has")
	}
	return nil
}
