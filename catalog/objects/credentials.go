package objects

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Credentials open a store. Nothing prints them.
type Credentials struct {
	AccessKeyID, SecretAccessKey string
	SessionToken                 string // "" for keys that do not expire
	// Expires is when the store takes them no more; zero: never, or it is not known.
	Expires time.Time
}

// Format hides the credentials for every verb.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// MarshalText hides the credentials.
func (Credentials) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

func (c Credentials) complete() bool { return c.AccessKeyID != "" && c.SecretAccessKey != "" }

// same reports whether the store cannot tell two credentials apart.
func (c Credentials) same(d Credentials) bool {
	return c.AccessKeyID == d.AccessKeyID && c.SecretAccessKey == d.SecretAccessKey && c.SessionToken == d.SessionToken
}

// Renew asks for credentials in the place of others that expire, for the principal of
// a context. It is called by one goroutine at a time.
type Renew func(ctx context.Context) (Credentials, error)

// How long before they expire credentials are replaced: this part of the time that they
// had when they came, and no more than early. When nobody gives others, it is asked again
// after a while, for as long as the old ones hold.
const (
	earlyPart = 4
	early     = time.Minute
	pauseAsk  = 2 * time.Second
)

// holder has the credentials of a client.
type holder struct {
	renew Renew
	now   func() time.Time
	turn  chan struct{} // whoever has put something in may use the rest
	is    Credentials
	from  time.Time // from when on others are wanted; zero: never
	end   time.Time // when they expire; zero: never
}

// Format shows nothing of what it holds.
func (*holder) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

func newHolder(c Credentials, renew Renew) *holder {
	h := &holder{renew: renew, now: time.Now, turn: make(chan struct{}, 1)}
	h.set(c)
	return h
}

func (h *holder) set(c Credentials) {
	h.is, h.from, h.end = c, time.Time{}, c.Expires
	if !c.Expires.IsZero() {
		h.from = c.Expires.Add(-min(early, c.Expires.Sub(h.now())/earlyPart))
	}
}

// get gives credentials that hold as far as is known, which it asks for where they are
// to be had. refused are ones that the store did not take as valid, nil for none.
func (h *holder) get(ctx context.Context, refused *Credentials) (Credentials, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return Credentials{}, ctx.Err()
	}
	defer func() { <-h.turn }()
	now := h.now()
	stale := refused != nil && h.is.same(*refused)
	if h.renew == nil || !stale && (h.from.IsZero() || now.Before(h.from)) {
		return h.is, nil
	}
	next, err := h.renew(ctx)
	if err == nil && !next.complete() {
		err = ErrCredentials
	}
	switch {
	case err == nil:
		h.set(next)
		return next, nil
	case ctx.Err() != nil:
		return Credentials{}, ctx.Err()
	case !stale && now.Before(h.end):
		h.from = now.Add(pauseAsk)
		return h.is, nil
	}
	return Credentials{}, err
}

// ErrNotRenewed: credentials expired, and there were no others. The reason is in the
// chain too.
var ErrNotRenewed = errors.New("the credentials expired and could not be renewed")

// invalidCodes are what stores say of credentials that do not exist any more, other
// than of ones that may not do something.
var invalidCodes = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "InvalidToken": true, "TokenRefreshRequired": true, "InvalidAccessKeyId": true,
}

// carried is the key of the credentials of a request in its context.
type carried struct{}
