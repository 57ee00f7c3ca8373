package server

import (
	"errors"
	"time"

	"sqe/server/wire"
)

// changeUser makes the connection somebody else's: a login as for a new one, after
// which nothing of the former session is left. A login that fails ends the
// connection, so that no client goes on believing that it is somebody else.
func (c *conn) changeUser(body []byte) error {
	response, err := wire.ParseChangeUser(body, c.caps)
	if err != nil {
		return c.refuse(errMalformed)
	}
	if len(response.User) > maxName || len(response.Database) > maxName {
		return c.refuse(errBadHandshake)
	}
	c.session.Close()
	c.session = nil
	clear(c.statements)
	c.questions = 0
	_ = c.raw.SetReadDeadline(time.Now().Add(c.server.o.HandshakeTimeout))
	// What the client sent was made for the salt of its first login. It is asked
	// again: a password is never taken from an earlier exchange.
	if response.Method != wire.MethodOpenID {
		response.Method = ""
	}
	response.Auth = nil
	if err := c.authenticated(response, wire.NewSalt()); err != nil {
		if errors.Is(err, errRefused) {
			return err
		}
		return c.refuse(errBadHandshake)
	}
	select {
	case c.resume <- struct{}{}:
	case <-c.ctx.Done():
	}
	return nil
}
