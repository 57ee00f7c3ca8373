package oidc

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"sqe/fault"
)

// Client gets tokens for a person at a terminal. It verifies none of them: the
// server that they are shown to does.
type Client struct {
	Issuer string
	ID     string // of a public client that may use the device flow
	Scopes []string
	// IDToken: the token to show to the server is the ID token.
	IDToken bool
	// RootCAs are trusted for connections to the provider; nil: the system's.
	RootCAs   *x509.CertPool
	AllowHTTP bool
}

// Tokens are what a person got.
type Tokens struct {
	// Access is the token to show to the server: the access token or, with
	// Client.IDToken, the ID token.
	Access, Refresh string
	Expires         time.Time // of Access
}

// Prompt is what a person is to do in a browser.
type Prompt struct {
	Address string // where to go
	// Complete is the address with the code in it, "" when there is none.
	Complete string
	Code     string
	Expires  time.Time
}

// clientTimeout bounds one request of a Client.
const clientTimeout = 15 * time.Second

// discover gets the addresses of the provider.
func (c *Client) discover(ctx context.Context) (context.Context, *oauth2.Config, string, error) {
	if !secure(c.Issuer, c.AllowHTTP) {
		return nil, nil, "", fault.New(fault.Config, "the issuer must be an address with https, such as https://keycloak.example/realms/lake")
	}
	client := newClient(c.RootCAs, clientTimeout)
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, client), c.Issuer)
	if err != nil {
		return nil, nil, "", fault.Wrap(fault.Unavailable, err, "the identity provider %s cannot be read: %s", c.Issuer, short(err))
	}
	var more struct {
		Revocation string `json:"revocation_endpoint"`
	}
	_ = found.Claims(&more)
	e := found.Endpoint()
	e.AuthStyle = oauth2.AuthStyleInParams
	for _, address := range []string{e.TokenURL, e.DeviceAuthURL, more.Revocation} {
		if address != "" && !secure(address, c.AllowHTTP) {
			return nil, nil, "", fault.New(fault.Config, "the identity provider %s names addresses without https", c.Issuer)
		}
	}
	scopes := c.Scopes
	if c.IDToken && !slices.Contains(scopes, oidc.ScopeOpenID) {
		scopes = append(slices.Clone(scopes), oidc.ScopeOpenID)
	}
	o := &oauth2.Config{ClientID: c.ID, Scopes: scopes, Endpoint: e}
	return context.WithValue(ctx, oauth2.HTTPClient, client), o, more.Revocation, nil
}

// Device logs a person in by the device flow (RFC 8628): show tells them where to
// go, and Device waits until they were there.
func (c *Client) Device(ctx context.Context, show func(Prompt)) (*Tokens, error) {
	ctx, o, _, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	if o.Endpoint.DeviceAuthURL == "" {
		return nil, fault.New(fault.Unsupported, "the identity provider %s has no device flow", c.Issuer)
	}
	d, err := o.DeviceAuth(ctx)
	if err != nil {
		return nil, c.failed(err, "does not begin a login")
	}
	show(Prompt{Address: d.VerificationURI, Complete: d.VerificationURIComplete, Code: d.UserCode, Expires: d.Expiry})
	t, err := o.DeviceAccessToken(ctx, d)
	if err != nil {
		return nil, c.failed(err, "gave no token")
	}
	return c.tokens(t)
}

// Renew gets new tokens. A refusal is fault.Auth: the person must log in again.
func (c *Client) Renew(ctx context.Context, refresh string) (*Tokens, error) {
	ctx, o, _, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	t, err := o.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh, Expiry: time.Unix(1, 0)}).Token()
	if err != nil {
		return nil, c.failed(err, "gave no token")
	}
	return c.tokens(t)
}

// Revoke ends what a refresh token is good for, where the provider can do that
// (RFC 7009).
func (c *Client) Revoke(ctx context.Context, refresh string) error {
	ctx, o, address, err := c.discover(ctx)
	if err != nil || address == "" {
		return err
	}
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}, "client_id": {o.ClientID}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return fault.New(fault.Unavailable, "the identity provider names no address to log out at")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := newClient(c.RootCAs, clientTimeout).Do(req)
	if err != nil {
		return fault.New(fault.Unavailable, "the identity provider does not answer: %s", short(err))
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fault.New(fault.Unavailable, "the identity provider did not end the login (status %d)", resp.StatusCode)
	}
	return nil
}

// failed says why without anything that was sent.
func (c *Client) failed(err error, what string) error {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return fault.New(fault.Unavailable, "the identity provider %s does not answer: %s", c.Issuer, short(err))
	}
	switch r.ErrorCode {
	case "access_denied":
		return fault.New(fault.Auth, "the login was refused")
	case "expired_token":
		return fault.New(fault.Auth, "nobody confirmed the login in time; try again")
	case "invalid_grant":
		return fault.New(fault.Auth, "the login has ended; run: sqe login")
	}
	return fault.New(fault.Unavailable, "the identity provider %s %s (%s); is %q a public client that may use the device flow?", c.Issuer, what, r.ErrorCode, c.ID)
}

func (c *Client) tokens(t *oauth2.Token) (*Tokens, error) {
	if !c.IDToken {
		return &Tokens{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry}, nil
	}
	id, _ := t.Extra("id_token").(string)
	_, after, _ := strings.Cut(id, ".")
	payload, _, _ := strings.Cut(after, ".")
	claims, _ := decodePart(payload)
	expires, set, ok := instant(claims, "exp")
	if !set || !ok {
		return nil, fault.New(fault.Auth, "the identity provider %s gave no ID token", c.Issuer)
	}
	return &Tokens{Access: id, Refresh: t.RefreshToken, Expires: expires}, nil
}

// ClaimedName is the claim of a token that names its principal, which nobody
// verified; "" when there is none.
func ClaimedName(token, claim string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	claims, err := decodePart(parts[1])
	if err != nil {
		return ""
	}
	name, _ := find(claims, claim).(string)
	return name
}
