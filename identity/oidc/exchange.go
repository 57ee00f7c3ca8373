package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"sqe/fault"
	"sqe/identity"
)

// maxPassword bounds a password that is sent to the provider, in bytes.
const maxPassword = 4 << 10

// exchange gets a token for a name and a password: those of a person (by the
// client of this server), or the id and the secret of a client. A client gets no
// token to refresh with.
func (p *Provider) exchange(ctx context.Context, user, password string, service bool) (access, refresh string, err error) {
	if !nameable(user) || password == "" || len(password) > maxPassword {
		return "", "", identity.ReasonPassword
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return "", "", fault.New(fault.Limit, "too many logins at once; try again")
	}
	m, err := p.known(ctx)
	if err != nil {
		return "", "", err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.client)
	var t *oauth2.Token
	if service {
		c := clientcredentials.Config{ClientID: user, ClientSecret: password, TokenURL: m.token, Scopes: p.o.Scopes}
		t, err = c.Token(ctx)
	} else {
		t, err = p.oauth(m).PasswordCredentialsToken(ctx, user, password)
	}
	if err != nil {
		return "", "", p.refusal(err, service)
	}
	return t.AccessToken, t.RefreshToken, nil
}

func (p *Provider) oauth(m *metadata) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Scopes: p.o.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: m.token, AuthStyle: p.style()},
	}
}

// style is how this server's client says who it is; a public client has no secret
// and is named in the form.
func (p *Provider) style() oauth2.AuthStyle {
	if p.o.ClientSecret == "" {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// refresh gets a new token for a refresh token.
func (p *Provider) refreshed(ctx context.Context, refresh string) (access, next string, err error) {
	m, err := p.known(ctx)
	if err != nil {
		return "", "", err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.client)
	t, err := p.oauth(m).TokenSource(ctx, &oauth2.Token{RefreshToken: refresh, Expiry: time.Unix(1, 0)}).Token()
	if err != nil {
		return "", "", p.refusal(err, false)
	}
	return t.AccessToken, t.RefreshToken, nil
}

// refusal tells a wrong password from a provider that does not answer, and from
// one that does not know this server.
func (p *Provider) refusal(err error, service bool) error {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) {
		p.o.Log.Warn("the identity provider does not answer", "provider", p.o.Name, "error", short(err))
		return p.unavailable()
	}
	code := r.ErrorCode
	status := 0
	if r.Response != nil {
		status = r.Response.StatusCode
	}
	switch {
	case code == "invalid_grant",
		service && (code == "invalid_client" || code == "unauthorized_client"):
		return identity.ReasonPassword
	case code == "invalid_client", code == "unauthorized_client":
		p.o.Log.Error("the identity provider refuses this server; check client-id, client-secret and what the client may do there", "provider", p.o.Name, "code", code)
		return fault.New(fault.Unavailable, "the identity provider refuses this server; tell its administrator")
	}
	p.o.Log.Warn("the identity provider gives no token", "provider", p.o.Name, "status", status)
	return p.unavailable()
}

// introspect asks whether a token is still active (RFC 7662).
func (p *Provider) introspect(ctx context.Context, token string) (bool, error) {
	m, err := p.known(ctx)
	if err != nil {
		return false, err
	}
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.introspection, strings.NewReader(form.Encode()))
	if err != nil {
		return false, p.unavailable()
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(p.o.ClientID), url.QueryEscape(p.o.ClientSecret))
	resp, err := p.client.Do(req)
	if err != nil {
		p.o.Log.Warn("the identity provider does not answer", "provider", p.o.Name, "error", short(err))
		return false, p.unavailable()
	}
	defer resp.Body.Close()
	var answer struct {
		Active bool `json:"active"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&answer) != nil {
		p.o.Log.Warn("the identity provider cannot be asked about tokens; check client-id and client-secret", "provider", p.o.Name, "status", resp.StatusCode)
		return false, p.unavailable()
	}
	return answer.Active, nil
}
