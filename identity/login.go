package identity

import (
	"context"
	"net"

	"sqe/fault"
)

// Authenticator decides who a login is.
type Authenticator interface {
	// Authenticate returns the principal, or an error of kind fault.Auth that is
	// the same for an unknown user and a wrong password, or fault.Limit when the
	// login must wait. remote may be nil.
	Authenticate(ctx context.Context, user, password string, remote net.Addr) (Principal, error)
}

// Provider is an Authenticator for some of the logins.
type Provider interface {
	Authenticator
	// Recognizes reports whether this provider decides on the login: it knows the
	// name, or the password is of its kind (a token). It must be quick.
	Recognizes(user, password string) bool
}

// Denied is the error of a login that fails, whatever the reason.
func Denied(user string, remote net.Addr) error {
	return fault.New(fault.Auth, "Access denied for user '%s'@'%s'", user, Host(remote))
}

// Host is the address without the port, "" for none.
func Host(a net.Addr) string {
	if a == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// Chain asks the first provider that recognises a login, and only that one: what
// it denies no other one may allow. A login that nobody recognises is denied
// after as much work as one that somebody denies.
type Chain struct {
	providers []Provider
	hasher    *hasher
	limit     *attempts
}

// NewChain makes a chain. Failed logins are limited by address and by name at an
// address.
func NewChain(providers ...Provider) *Chain {
	c := &Chain{providers: providers, limit: newAttempts(maxTracked)}
	for _, p := range providers {
		if s, ok := p.(*Static); ok {
			c.hasher = s.hasher
			break
		}
	}
	if c.hasher == nil {
		c.hasher = newHasher(nil)
	}
	return c
}

// Authenticate implements Authenticator.
func (c *Chain) Authenticate(ctx context.Context, user, password string, remote net.Addr) (Principal, error) {
	host := Host(remote)
	if wait := c.limit.blocked(host, user); wait > 0 {
		return Principal{}, fault.New(fault.Limit, "too many failed logins from this address; wait %d seconds", int(wait.Seconds())+1)
	}
	p, err := c.authenticate(ctx, user, password, remote)
	if err == nil && p.IsZero() {
		err = Denied(user, remote)
	}
	switch {
	case err == nil:
		c.limit.succeeded(host, user)
		return p, nil
	case fault.Is(err, fault.Auth):
		c.limit.failed(host, user)
	}
	return Principal{}, err
}

func (c *Chain) authenticate(ctx context.Context, user, password string, remote net.Addr) (Principal, error) {
	for _, p := range c.providers {
		if p.Recognizes(user, password) {
			return p.Authenticate(ctx, user, password, remote)
		}
	}
	if err := c.hasher.waste(ctx, password); err != nil {
		return Principal{}, err
	}
	return Principal{}, Denied(user, remote)
}
