package oidc

import (
	"context"
	"sync"
	"time"

	"sqe/fault"
	"sqe/identity"
)

// session is what a login holds: its token, and the one to refresh it with, if
// there is one. It implements identity.Credential.
type session struct {
	p *Provider

	mu           sync.Mutex
	token        string
	refresh      string
	principal    identity.Principal
	expires      time.Time
	renew        time.Time // when to refresh
	introspected time.Time
	over         error
}

// early is how long before its end a token is refreshed, so that it does not expire
// on its way to another service: a tenth of its time, at most this.
const early = 30 * time.Second

// again is after which time a refresh that got no answer is tried again.
const again = 5 * time.Second

// take makes a verified token the session's own.
func (s *session) take(t *token) {
	s.principal, s.expires = t.principal, t.expires
	left := t.expires.Add(-s.p.o.ClockSkew).Sub(s.p.now())
	s.renew = s.p.now().Add(left - min(early, left/10))
}

// Token implements identity.Credential.
func (s *session) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.current(ctx); err != nil {
		return "", err
	}
	return s.token, nil
}

// Continue is that of identity.Login.
func (s *session) Continue(ctx context.Context) (identity.Principal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.current(ctx); err != nil {
		return identity.Principal{}, err
	}
	if interval := s.p.o.IntrospectionInterval; interval > 0 && s.p.now().Sub(s.introspected) >= interval {
		asked := s.p.now()
		active, err := s.p.introspect(ctx, s.token)
		if err != nil {
			return identity.Principal{}, err
		}
		if !active {
			return identity.Principal{}, s.end("the identity provider ended this session; log in again")
		}
		s.introspected = asked
	}
	return s.principal, nil
}

// current makes sure that the token is one that has not expired.
func (s *session) current(ctx context.Context) error {
	if s.over != nil {
		return s.over
	}
	now := s.p.now()
	if s.refresh != "" && !now.Before(s.renew) {
		if err := s.renewed(ctx); err != nil {
			switch {
			case !fault.Is(err, fault.Unavailable):
				return s.end("the identity provider ended this session; log in again")
			case !now.Before(s.expires):
				return err // it may answer again
			}
			s.renew = now.Add(again)
		}
	}
	if !s.p.now().Before(s.expires) {
		return s.end("the token of this session has expired; log in again")
	}
	return nil
}

// renewed gets a new token, which must be about the same principal.
func (s *session) renewed(ctx context.Context) error {
	access, refresh, err := s.p.refreshed(ctx, s.refresh)
	if err != nil {
		return err
	}
	t, err := s.p.verify(ctx, access)
	if err != nil {
		return err
	}
	if t.principal.Name != s.principal.Name {
		return ReasonUser
	}
	s.token = access
	if refresh != "" {
		s.refresh = refresh
	}
	s.take(t)
	return nil
}

func (s *session) end(text string) error {
	s.over = identity.Over(text)
	s.token, s.refresh = "", ""
	return s.over
}
