package rest

import (
	"context"
	"errors"
	"net/http"
)

// Probe asks for the configuration without a token: whether there is a catalog of
// this protocol at the address. One that wants a token (401, 403) is one; whether it
// knows the warehouse then shows only to those who have a token. Its error is for the
// operator.
func (c *Client) Probe(ctx context.Context) error {
	o := c.o
	o.Tokens = Anonymous()
	nobody, err := New(o)
	if err != nil {
		return err
	}
	_, err = nobody.settings(ctx)
	var e *Error
	if errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return nil
	}
	return err
}
