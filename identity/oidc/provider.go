// Package oidc lets people and services log in with what an OpenID Connect
// provider (Keycloak first) says of them: an access token as the password, or a
// user name and password that are exchanged for one; or, where the configuration says
// so, an ID token.
//
// Invariants: nothing of a token counts before its signature, by a key of the
// provider and an algorithm of the configuration, its issuer, its audience and its
// times were verified; names are compared byte by byte; a claim that has another
// form than expected refuses the login; when the provider does not answer, what
// cannot be decided without it is not decided. A session never outlives its token.
//
// The package must never log, keep in an error or write down a token, a password
// or a secret, and never ask an address that the configuration or the provider's
// own metadata did not give.
package oidc

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sqe/fault"
	"sqe/identity"
)

// Options say which provider, and what counts of its tokens.
type Options struct {
	// Name is how logs and errors call the provider.
	Name string
	// Issuer is the address below which its metadata are, and exactly the claim iss
	// of its tokens.
	Issuer string
	// Audiences: a token must be for one of them (aud). Required.
	Audiences []string
	// AuthorizedParties: a token must have been issued to one of these clients (azp,
	// or client_id); empty: to any.
	AuthorizedParties []string
	// IDTokens: tokens are ID tokens, and no access tokens. They are never shown to
	// anybody else, and cannot be introspected.
	IDTokens bool
	// Algorithms of signatures; empty: all of SupportedAlgorithms.
	Algorithms []string
	// ClockSkew is how far the clocks of the provider and of this server may differ.
	ClockSkew time.Duration
	// KeysMaxAge is how long the keys of the provider are used without asking again.
	// Default 10 minutes.
	KeysMaxAge time.Duration
	Claims     Claims
	// Prefix is put before names, groups and roles, so that those of one provider
	// are never those of another one.
	Prefix string
	// AdminRoles and AdminGroups make an administrator; without Prefix.
	AdminRoles, AdminGroups []string

	// ClientID and ClientSecret are this server's own, for Passwords, refreshing and
	// introspection.
	ClientID, ClientSecret string
	Scopes                 []string
	// Passwords lets people log in with the password that the provider knows.
	Passwords bool
	// ServiceClients may log in with their client id and secret.
	ServiceClients []string
	// IntrospectionInterval, when not zero: the provider is asked whether a token is
	// still active at each login, and before a statement when the last answer is
	// older than this.
	IntrospectionInterval time.Duration

	// Timeout bounds each request to the provider. Default 5 s.
	Timeout time.Duration
	// RootCAs are trusted for connections to the provider; nil: the system's.
	RootCAs *x509.CertPool
	// AllowHTTP permits metadata that name addresses with http:// on other machines.
	AllowHTTP bool
	Log       *slog.Logger
}

// Claims are the places of claims in a token: the name of a claim, or names
// separated by dots for one within objects ("realm_access.roles").
type Claims struct {
	Name   string // default "preferred_username"
	Groups string // "": there are no groups
	// Roles are taken from each of these.
	Roles []string
	// Attributes of the principal by name.
	Attributes map[string]string
	// StripGroupSlash drops the slash with which Keycloak begins the full path of a
	// group.
	StripGroupSlash bool
}

// SupportedAlgorithms are those that a provider can sign with and a client cannot:
// signatures with keys that both know (HS256 and the like) are not among them.
var SupportedAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Provider is an identity.Provider. It is safe for concurrent use.
type Provider struct {
	o          Options
	algorithms []jose.SignatureAlgorithm
	client     *http.Client
	remote     remote
	// slots bounds the passwords that the provider checks at the same time for this
	// server: each is costly there.
	slots chan struct{}
	now   func() time.Time
}

var _ identity.Provider = (*Provider)(nil)

// maxExchanges is how many passwords the provider checks at a time for us.
const maxExchanges = 16

// New makes a provider. It does not ask anything yet: a server starts while its
// provider is away.
func New(o Options) (*Provider, error) {
	if o.Issuer == "" || len(o.Audiences) == 0 {
		return nil, fault.New(fault.Config, "identity provider %s: issuer and audience are required", o.Name)
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.KeysMaxAge <= 0 {
		o.KeysMaxAge = 10 * time.Minute
	}
	if o.Claims.Name == "" {
		o.Claims.Name = "preferred_username"
	}
	if len(o.Algorithms) == 0 {
		o.Algorithms = SupportedAlgorithms
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Provider{o: o, client: newClient(o.RootCAs, o.Timeout), slots: make(chan struct{}, maxExchanges), now: time.Now}
	for _, a := range o.Algorithms {
		if !slices.Contains(SupportedAlgorithms, a) {
			return nil, fault.New(fault.Config, "identity provider %s: algorithm %s is not supported", o.Name, a)
		}
		p.algorithms = append(p.algorithms, jose.SignatureAlgorithm(a))
	}
	if (o.Passwords || o.IntrospectionInterval > 0) && o.ClientID == "" {
		return nil, fault.New(fault.Config, "identity provider %s: passwords and introspection need a client id", o.Name)
	}
	if o.IDTokens && (o.Passwords || o.IntrospectionInterval > 0 || len(o.ServiceClients) > 0) {
		return nil, fault.New(fault.Config, "identity provider %s: passwords, services and introspection need access tokens", o.Name)
	}
	return p, nil
}

// Name is how the configuration calls the provider.
func (p *Provider) Name() string { return p.o.Name }

// Recognizes implements identity.Provider: a token that says to be of this issuer,
// the id of a client that may log in, and, where passwords are exchanged, any other
// login that is not a token.
func (p *Provider) Recognizes(user, password string) bool {
	if issuer, token := claimedIssuer(password); token {
		return issuer == p.o.Issuer
	}
	return slices.Contains(p.o.ServiceClients, user) || p.o.Passwords && user != ""
}

// Authenticate implements identity.Authenticator.
func (p *Provider) Authenticate(ctx context.Context, user, password string, remote net.Addr) (identity.Login, error) {
	s, err := p.login(ctx, user, password)
	if err != nil {
		return identity.Login{}, p.told(err, user, remote)
	}
	l := identity.Login{Principal: s.principal, Continue: s.Continue}
	if !p.o.IDTokens {
		l.Credential = s // an ID token proves something to this server alone
	}
	return l, nil
}

func (p *Provider) login(ctx context.Context, user, password string) (*session, error) {
	s := &session{p: p, token: password}
	service := false
	if _, token := claimedIssuer(password); !token {
		var err error
		service = slices.Contains(p.o.ServiceClients, user)
		if s.token, s.refresh, err = p.exchange(ctx, user, password, service); err != nil {
			return nil, err
		}
	}
	t, err := p.verify(ctx, s.token)
	if err != nil {
		return nil, err
	}
	switch {
	case service && t.party != user:
		return nil, ReasonAuthorizedParty
	case !service && user != "" && user != t.principal.Name:
		return nil, ReasonUser
	}
	if p.o.IntrospectionInterval > 0 {
		asked := p.now()
		active, err := p.introspect(ctx, s.token)
		if err != nil {
			return nil, err
		}
		if !active {
			return nil, ReasonInactive
		}
		s.introspected = asked
	}
	s.take(t)
	return s, nil
}

// told turns the reason of a refusal into what the client is told.
func (p *Provider) told(err error, user string, remote net.Addr) error {
	why := identity.ReasonOf(err)
	switch {
	case fault.KindOf(err) != fault.Internal: // it says itself what it is
		return err
	case why == ReasonExpired:
		return fault.Wrap(fault.Auth, why, "Access denied for user '%s'@'%s': the token has expired; get a new one (sqe login)", user, identity.Host(remote))
	case why == "":
		// Nothing of a library's error is told or kept: it may quote a token.
		why = ReasonMalformed
	}
	return identity.Denied(user, remote, why)
}
