package oidc

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"sqe/fault"
)

// Probe asks the provider whether it knows this server by client-id and client-secret,
// and lets it do what is configured. Nobody's name, password or token is sent. nil
// where the configuration needs no client. Its error says what is wrong for the operator.
func (p *Provider) Probe(ctx context.Context) error {
	m, err := p.known(ctx)
	if err != nil {
		return err
	}
	if p.o.IntrospectionInterval > 0 {
		// A text that is no token: the answer is that it is not active.
		switch status, _, err := p.post(ctx, m.introspection, url.Values{"token": {"probe"}}); {
		case err != nil:
			return err
		case status != http.StatusOK:
			return fault.New(fault.Config, "identity provider %s does not let this server ask about tokens (answer %d); check client-id and client-secret, and that client authentication is on for that client", p.o.Name, status)
		}
	}
	if p.o.Passwords {
		// Without a name: a provider looks at the client first, and then misses the name.
		switch _, code, err := p.post(ctx, m.token, url.Values{"grant_type": {"password"}}); {
		case err != nil:
			return err
		case code == "invalid_client":
			return fault.New(fault.Config, "identity provider %s does not take the client of passwords; check client-id and client-secret", p.o.Name)
		case code == "unauthorized_client", code == "unsupported_grant_type":
			return fault.New(fault.Config, "identity provider %s does not exchange passwords for this server (%s); check client-secret, and turn on direct access grants for the client %s there, or leave passwords out", p.o.Name, code, p.o.ClientID)
		}
	}
	return nil
}

// post sends a form as this server's client, and gives the status of the answer and
// its code of an error (RFC 6749, 5.2).
func (p *Provider) post(ctx context.Context, address string, form url.Values) (status int, code string, err error) {
	if p.o.ClientSecret == "" {
		form.Set("client_id", p.o.ClientID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", fault.New(fault.Config, "identity provider %s names an endpoint that is not an address", p.o.Name)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if p.o.ClientSecret != "" {
		req.SetBasicAuth(url.QueryEscape(p.o.ClientID), url.QueryEscape(p.o.ClientSecret))
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", fault.Wrap(fault.Unavailable, err, "identity provider %s does not answer: %s", p.o.Name, short(err))
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&answer) // an answer that is no JSON has no code
	return resp.StatusCode, answer.Error, nil
}
