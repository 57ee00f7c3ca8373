package identity

import (
	"context"
	"errors"
	"net"

	"sqe/fault"
)

// Login is a login that succeeded.
type Login struct {
	Principal Principal
	// Credential proves to other services for whom the session asks; nil: nothing
	// does (a user with a password of the configuration).
	Credential Credential
	// Continue, asked before each statement, says whether the session may go on and
	// for whom: a renewed token may have other groups and roles, never another name.
	// Its error is ErrOver when the session has ended for good, and anything else
	// (a provider that does not answer) when it may be asked again. nil: the session
	// has no end of its own.
	Continue func(context.Context) (Principal, error)
}

// ErrOver is the cause of the error of a session that has ended for good.
var ErrOver = errors.New("the session is over")

// Over makes the error that ends a session: fault.Auth, with ErrOver as cause.
func Over(text string) error { return fault.Wrap(fault.Auth, ErrOver, "%s", text) }

// Authenticator decides who a login is.
type Authenticator interface {
	// Authenticate returns who it is, or an error of kind fault.Auth that is the
	// same for an unknown user and a wrong password, fault.Limit when the login must
	// wait, or fault.Unavailable when the one that knows does not answer. remote may
	// be nil.
	Authenticate(ctx context.Context, user, password string, remote net.Addr) (Login, error)
}

// Provider is an Authenticator for some of the logins.
type Provider interface {
	Authenticator
	// Recognizes reports whether this provider decides on the login: it knows the
	// name, or the password is of its kind (a token). It must be quick.
	Recognizes(user, password string) bool
}

// Reason says why a login was refused. It is for the operator (log and audit); a
// client is told the same for all of them, but that its token has expired. It
// holds nothing that came from the client.
type Reason string

// Error implements error, so that a Reason is the cause of a refusal.
func (r Reason) Error() string { return string(r) }

// Reasons of the users of the configuration; providers of tokens have their own.
const (
	ReasonPassword Reason = "password" // no such user, or a wrong password
	ReasonNobody   Reason = "nobody"   // no provider recognised the login
)

// ReasonOf is why err refused a login, "" when it does not say.
func ReasonOf(err error) Reason {
	var r Reason
	_ = errors.As(err, &r)
	return r
}

// Denied is the error of a login that fails, whatever the reason.
func Denied(user string, remote net.Addr, why Reason) error {
	return fault.Wrap(fault.Auth, why, "Access denied for user '%s'@'%s'", user, Host(remote))
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
func (c *Chain) Authenticate(ctx context.Context, user, password string, remote net.Addr) (Login, error) {
	host := Host(remote)
	if wait := c.limit.blocked(host, user); wait > 0 {
		return Login{}, fault.New(fault.Limit, "too many failed logins from this address; wait %d seconds", int(wait.Seconds())+1)
	}
	l, err := c.authenticate(ctx, user, password, remote)
	if err == nil && l.Principal.IsZero() {
		err = Denied(user, remote, ReasonNobody)
	}
	switch {
	case err == nil:
		c.limit.succeeded(host, user)
		return l, nil
	case fault.Is(err, fault.Auth):
		c.limit.failed(host, user)
	}
	return Login{}, err
}

func (c *Chain) authenticate(ctx context.Context, user, password string, remote net.Addr) (Login, error) {
	for _, p := range c.providers {
		if p.Recognizes(user, password) {
			return p.Authenticate(ctx, user, password, remote)
		}
	}
	if err := c.hasher.waste(ctx, password); err != nil {
		return Login{}, err
	}
	return Login{}, Denied(user, remote, ReasonNobody)
}
