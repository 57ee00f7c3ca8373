package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"time"

	"sqe/config"
	"sqe/identity"
	"sqe/identity/oidc"
)

// openIdentity makes the providers of logins, in order. None of them is asked
// anything yet.
func openIdentity(cfg *config.Config, log *slog.Logger) ([]identity.Provider, []*oidc.Provider, error) {
	users := make([]identity.User, len(cfg.Users))
	for i, u := range cfg.Users {
		users[i] = identity.User{Principal: principal(u), PasswordHash: u.PasswordHash.Reveal()}
	}
	static, err := identity.NewStatic(users)
	if err != nil {
		return nil, nil, err
	}
	var all []identity.Provider
	var remote []*oidc.Provider
	placed := false
	for _, c := range cfg.Identity {
		if c.Kind == "users" {
			all, placed = append(all, static), true
			continue
		}
		o, err := oidcOptions(c)
		if err != nil {
			return nil, nil, err
		}
		o.Log = log
		p, err := oidc.New(o)
		if err != nil {
			return nil, nil, err
		}
		all, remote = append(all, p), append(remote, p)
	}
	if !placed {
		all = append([]identity.Provider{static}, all...)
	}
	return all, remote, nil
}

func oidcOptions(c config.IdentityProvider) (oidc.Options, error) {
	roots, err := trusted(string(c.CAFile))
	return oidc.Options{
		Name: c.Name, Issuer: c.Issuer, Audiences: c.Audience, AuthorizedParties: c.AuthorizedParties, Algorithms: c.Algorithms,
		ClockSkew: time.Duration(c.ClockSkew), KeysMaxAge: time.Duration(c.KeysMaxAge),
		Claims:   oidc.Claims{Name: c.NameClaim, Groups: c.GroupsClaim, Roles: c.RolesClaims, Attributes: c.Attributes, StripGroupSlash: c.StripGroupSlash},
		IDTokens: c.TokenUse == "id", Prefix: c.Prefix, AdminRoles: c.AdminRoles, AdminGroups: c.AdminGroups,
		ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(), Scopes: c.Scopes,
		Passwords: c.Passwords, ServiceClients: c.ServiceClients, IntrospectionInterval: time.Duration(c.Introspection),
		Timeout: time.Duration(c.Timeout), RootCAs: roots, AllowHTTP: c.AllowHTTP,
	}, err
}

// trusted is the system's certificates and those of a file; nil for none.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca-file cannot be read: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca-file %s holds no certificate (PEM)", file)
	}
	return pool, nil
}

// loadIdentity asks the providers for their keys in the background, so that the
// first login need not wait. One that does not answer is logged; it is asked again
// at the next login.
func (in *instance) loadIdentity(remote []*oidc.Provider) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, p := range remote {
		go func() { _ = p.Load(ctx) }()
	}
	in.closing(cancel)
}

// identityFindings asks the identity providers: what is wrong, and what to know.
func identityFindings(ctx context.Context, cfg *config.Config) (problems []error, advice []string) {
	_, remote, err := openIdentity(cfg, nil)
	if err != nil {
		return []error{err}, nil
	}
	for _, p := range remote {
		if err := p.Load(ctx); err != nil {
			problems = append(problems, err)
		} else if err := p.Probe(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	for _, c := range cfg.Identity {
		switch {
		case c.Kind != "oidc":
		case c.TokenUse == "id":
			advice = append(advice, fmt.Sprintf("identity provider %s: who logs out or is disabled there stays in until the ID token expires; the provider cannot be asked about it", c.Name))
		case c.Introspection > 0:
			advice = append(advice, fmt.Sprintf("identity provider %s: who logs out or is disabled there is out after at most %s", c.Name, c.Introspection))
		default:
			advice = append(advice, fmt.Sprintf("identity provider %s: who logs out or is disabled there stays in until the token expires; set introspection-interval to shorten that", c.Name))
		}
	}
	return problems, advice
}
