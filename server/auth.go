package server

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the padding that caching_sha2_password prescribes
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"sync"
	"time"

	"sqe/engine"
	"sqe/fault"
	"sqe/identity"
	"sqe/server/wire"
)

// maxHandshakePacket bounds what a client that is not authenticated can make the
// server hold. A bearer token of 60,000 bytes fits.
const maxHandshakePacket = 128 << 10

// maxName bounds the names that a client sends before it is authenticated, in
// bytes: they get into the log, the audit log and the limit of failed logins.
const maxName = 256

// errRefused ends a connection whose client was told the reason.
var errRefused = errors.New("refused")

// handshake greets, encrypts, authenticates and opens the session.
func (c *conn) handshake() error {
	o := &c.server.o
	_ = c.raw.SetDeadline(time.Now().Add(o.HandshakeTimeout))
	if c.server.full() || int(c.server.handshakes.Load()) > c.server.o.MaxConnections+spareHandshakes {
		_ = c.out.Error(errTooManyConnections, 0)
		_ = c.out.Flush()
		return errRefused
	}
	salt := wire.NewSalt()
	caps := wire.Capabilities
	if o.TLS != nil {
		caps |= wire.ClientSSL
	}
	if o.LocalFiles {
		caps |= wire.ClientLocalFiles
	}
	if err := c.out.Greeting(wire.Greeting{Version: o.Version, ConnectionID: c.id, Salt: salt, Capabilities: caps, Status: wire.StatusAutocommit}); err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	response, err := c.response()
	if err != nil {
		return err
	}
	return c.authenticated(response, salt)
}

// authenticated finds out who it is and opens the session.
func (c *conn) authenticated(response wire.Response, salt []byte) error {
	o := &c.server.o
	ctx, cancel := context.WithTimeout(c.ctx, o.HandshakeTimeout)
	defer cancel()
	login, err := c.authenticate(ctx, response, salt)
	if err != nil {
		// Without a fault the connection broke: nothing was decided.
		if decided := (*fault.Fault)(nil); errors.As(err, &decided) {
			o.Observer.Login(decided.Kind.String())
			c.log.Info("login failed", "kind", decided.Kind.String(), "reason", string(identity.ReasonOf(err)))
			_ = o.Logins(LoginEvent{User: response.User, RemoteAddr: c.remote, ConnectionID: c.id, Err: decided})
			return c.fatal(err)
		}
		return err
	}
	if !c.server.admit(c) {
		o.Observer.Login(fault.Limit.String())
		return c.refuse(errTooManyConnections)
	}
	if err := o.Logins(LoginEvent{User: response.User, Principal: login.Principal, RemoteAddr: c.remote, ConnectionID: c.id}); err != nil {
		return c.fatal(err)
	}
	o.Observer.Login("ok")
	return c.open(ctx, login, response)
}

// open opens the session and tells the client that the login succeeded.
func (c *conn) open(ctx context.Context, l identity.Login, r wire.Response) error {
	info := engine.ConnInfo{ID: c.id, RemoteAddr: c.remote, Program: r.Program, Database: r.Database}
	if c.caps&wire.ClientLocalFiles != 0 {
		info.LocalFile = c.localFile
	}
	session, err := c.server.o.Open(l, info)
	if err != nil {
		return c.fatal(err)
	}
	c.session = session
	if r.Database != "" {
		if err := session.Use(ctx, r.Database); err != nil {
			return c.fatal(err)
		}
	}
	if err := c.out.OK(wire.OK{Status: wire.StatusAutocommit}, c.caps); err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	return c.raw.SetDeadline(time.Time{})
}

// response reads the answer to the greeting, after switching to TLS when the
// client asks for it.
func (c *conn) response() (wire.Response, error) {
	o := &c.server.o
	data, err := wire.ReadFirst(c.raw, maxHandshakePacket)
	seq := byte(2)
	if err == nil && wire.IsTLSRequest(data) && o.TLS != nil {
		encrypted := tls.Server(c.raw, o.TLS)
		if err := encrypted.HandshakeContext(c.ctx); err != nil {
			return wire.Response{}, err
		}
		c.use(encrypted)
		c.encrypted = true
		c.in.Expect(seq)
		data, err = c.in.Packet(maxHandshakePacket)
		seq++
	} else {
		c.in.Expect(seq)
	}
	c.out.Sequence(seq)
	if err == nil {
		var r wire.Response
		if r, err = wire.ParseResponse(data); err == nil {
			c.caps = r.Capabilities
			if !o.LocalFiles {
				c.caps &^= wire.ClientLocalFiles
			}
			if !c.encrypted && !o.PlainAllowed {
				return r, c.refuse(errNeedTLS)
			}
			if r.Capabilities&wire.ClientPluginAuth == 0 {
				return r, c.refuse(errOldClient)
			}
			if len(r.User) > maxName || len(r.Database) > maxName {
				return r, c.refuse(errBadHandshake)
			}
			return r, nil
		}
	}
	if errors.Is(err, wire.ErrMalformed) || errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrSequence) {
		c.caps |= wire.ClientProtocol41
		return wire.Response{}, c.refuse(errBadHandshake)
	}
	return wire.Response{}, err
}

// authenticate gets the password from the client and asks who it is.
func (c *conn) authenticate(ctx context.Context, r wire.Response, salt []byte) (identity.Login, error) {
	password, err := c.password(r, salt)
	if err != nil {
		return identity.Login{}, err
	}
	l, err := c.server.o.Authenticator.Authenticate(ctx, r.User, password, c.raw.RemoteAddr())
	if err == nil && l.Principal.IsZero() {
		err = identity.Denied(r.User, c.raw.RemoteAddr(), identity.ReasonNobody)
	}
	if err != nil {
		return identity.Login{}, err
	}
	return l, nil
}

// password is the password itself. Over TLS the client sends it as it is; without
// TLS encrypted with a public key of this process.
func (c *conn) password(r wire.Response, salt []byte) (string, error) {
	switch r.Method {
	case wire.MethodClear:
		if c.encrypted {
			return trimNUL(r.Auth), nil
		}
	case wire.MethodOpenID:
		if !c.encrypted {
			return "", c.refuse(errNeedTLS)
		}
		return c.openID(r, salt)
	}
	scramble := r.Auth
	if r.Method != wire.MethodCachingSHA2 {
		if err := c.out.SwitchMethod(wire.MethodCachingSHA2, salt); err != nil {
			return "", err
		}
		var err error
		if scramble, err = c.exchange(); err != nil {
			return "", err
		}
	}
	if len(scramble) == 0 || len(scramble) == 1 && scramble[0] == 0 {
		return "", nil // an empty password; the client waits for OK or an error
	}
	if err := c.out.MoreAuthData([]byte{wire.SHA2FullAuth}); err != nil {
		return "", err
	}
	data, err := c.exchange()
	if err != nil {
		return "", err
	}
	if c.encrypted {
		return trimNUL(data), nil
	}
	key, public, err := c.server.keys.get()
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "no key for passwords")
	}
	if len(data) == 1 && data[0] == wire.SHA2RequestKey {
		if err := c.out.MoreAuthData(public); err != nil {
			return "", err
		}
		if data, err = c.exchange(); err != nil {
			return "", err
		}
	}
	return decrypt(key, data, salt), nil
}

// openID is the token of a client that starts with the method of tokens. It has
// sent it already, unless it waits to be asked.
func (c *conn) openID(r wire.Response, salt []byte) (string, error) {
	data := r.Auth
	if len(data) <= 1 {
		if err := c.out.SwitchMethod(wire.MethodOpenID, salt); err != nil {
			return "", err
		}
		var err error
		if data, err = c.exchange(); err != nil {
			return "", err
		}
	}
	token, err := wire.ParseOpenID(data)
	if err != nil {
		return "", c.refuse(errBadHandshake)
	}
	return token, nil
}

// exchange sends what is buffered and reads the answer.
func (c *conn) exchange() ([]byte, error) {
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	c.in.Expect(c.out.Next())
	data, err := c.in.Packet(maxHandshakePacket)
	if err != nil {
		if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrSequence) {
			return nil, c.refuse(errBadHandshake)
		}
		return nil, err
	}
	c.out.Sequence(c.in.Seq())
	return data, nil
}

func trimNUL(b []byte) string {
	if n := len(b); n > 0 && b[n-1] == 0 {
		b = b[:n-1]
	}
	return string(b)
}

// passwordKeys is the key pair for passwords over plain connections, made when
// the first one needs it.
type passwordKeys struct {
	once   sync.Once
	key    *rsa.PrivateKey
	public []byte // PEM
	err    error
}

func (k *passwordKeys) get() (*rsa.PrivateKey, []byte, error) {
	k.once.Do(func() {
		if k.key, k.err = rsa.GenerateKey(rand.Reader, 2048); k.err != nil {
			return
		}
		der, err := x509.MarshalPKIXPublicKey(&k.key.PublicKey)
		k.public, k.err = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
	})
	return k.key, k.public, k.err
}

// decrypt undoes what caching_sha2_password does to a password on a plain
// connection: XOR with the salt, then RSA-OAEP with SHA-1. What cannot be
// decrypted becomes a password that nobody has.
func decrypt(key *rsa.PrivateKey, data, salt []byte) string {
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, data, nil)
	if err != nil {
		return ""
	}
	for i := range plain {
		plain[i] ^= salt[i%len(salt)]
	}
	return trimNUL(plain)
}
