package server

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"sqe/server/wire"
)

// raw is a client that sends the packets that a test wants.
type raw struct {
	t   testing.TB
	nc  net.Conn
	in  *wire.Reader
	out *wire.Writer
}

// rawDial connects and reads the greeting.
func rawDial(t testing.TB, s *setup) (*raw, []byte) {
	t.Helper()
	r := &raw{t: t, nc: dial(t, s.server.Addr())}
	_ = r.nc.SetDeadline(time.Now().Add(patience))
	r.use(r.nc)
	greeting := r.read()
	r.out.Sequence(1)
	r.in.Expect(2)
	return r, greeting
}

func (r *raw) use(nc net.Conn) {
	r.nc, r.in, r.out = nc, wire.NewReader(nc), wire.NewWriter(nc, time.Minute)
}

func (r *raw) read() []byte {
	r.t.Helper()
	p, err := r.in.Packet(1 << 30)
	if err != nil {
		r.t.Fatal("read:", err)
	}
	return p
}

func (r *raw) write(p []byte) {
	r.t.Helper()
	if err := errors.Join(r.out.End(append(r.out.Begin(), p...)), r.out.Flush()); err != nil {
		r.t.Fatal("write:", err)
	}
}

// command sends a command without reading the answer.
func (r *raw) command(c wire.Command, body string) {
	r.t.Helper()
	r.out.Sequence(0)
	r.in.Expect(1)
	r.write(append([]byte{byte(c)}, body...))
}

// failure is the number of an error packet, 0 when it is none.
func failure(p []byte) int {
	if len(p) < 3 || p[0] != 0xff {
		return 0
	}
	return int(p[1]) | int(p[2])<<8
}

// closed reports whether the server closes the connection.
func (r *raw) closed() bool {
	_ = r.nc.SetReadDeadline(time.Now().Add(patience))
	_, err := r.in.Packet(1 << 20)
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

const rawCaps = wire.ClientProtocol41 | wire.ClientSecureConnection | wire.ClientPluginAuth | wire.ClientPluginAuthLenenc | wire.ClientDeprecateEOF

// encrypt switches to TLS.
func (r *raw) encrypt(c *tls.Config) error {
	r.write(handshakeHead(rawCaps | wire.ClientSSL))
	nc := tls.Client(r.nc, c)
	if err := nc.Handshake(); err != nil {
		return err
	}
	r.use(nc)
	r.out.Sequence(2)
	r.in.Expect(3)
	return nil
}

func handshakeHead(caps uint32) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, caps), make([]byte, 28)...)
}

func login(caps uint32, user, auth, method string) []byte {
	p := append(handshakeHead(caps), user...)
	p = append(p, 0)
	n := len(auth)
	switch {
	case n < 251:
		p = append(p, byte(n))
	default:
		p = append(p, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	p = append(p, auth...)
	return append(append(p, method...), 0)
}

// rawLogin logs in over TLS with caching_sha2_password.
func rawLogin(t testing.TB, s *setup) *raw {
	t.Helper()
	return rawLoginAs(t, s, rawCaps)
}

// rawLoginAs is rawLogin of a client with other capabilities.
func rawLoginAs(t testing.TB, s *setup, caps uint32) *raw {
	t.Helper()
	r, _ := rawDial(t, s)
	if err := r.encrypt(&tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	scramble := sha256.Sum256([]byte("any"))
	r.write(login(caps, "alice", string(scramble[:]), wire.MethodCachingSHA2))
	if p := r.read(); len(p) != 2 || p[1] != wire.SHA2FullAuth {
		t.Fatalf("%q", p)
	}
	r.out.Sequence(r.in.Seq())
	r.write([]byte("pw\x00"))
	r.in.Expect(r.out.Next())
	if p := r.read(); p[0] != 0 {
		t.Fatalf("login: %q", p)
	}
	return r
}
