package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
)

// ErrMalformed is the error of a packet that does not have the layout of the
// protocol.
var ErrMalformed = errors.New("malformed packet")

// SaltLength is the number of random bytes of a handshake.
const SaltLength = 20

// NewSalt makes the random bytes of a handshake. They hold no NUL, because the
// protocol ends them with one.
func NewSalt() []byte {
	salt := make([]byte, SaltLength)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	for i, c := range salt {
		c &= 0x7f
		if c == 0 || c == '$' {
			c++
		}
		salt[i] = c
	}
	return salt
}

// Greeting is the first packet of the server (HandshakeV10).
type Greeting struct {
	Version      string
	ConnectionID uint32
	Salt         []byte // SaltLength bytes
	Capabilities uint32
	Status       uint16
}

// Greeting writes the first packet.
func (w *Writer) Greeting(g Greeting) error {
	b := append(w.Begin(), 10)
	b = append(append(b, g.Version...), 0)
	b = binary.LittleEndian.AppendUint32(b, g.ConnectionID)
	b = append(append(b, g.Salt[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.Capabilities))
	b = append(b, byte(collationText))
	b = binary.LittleEndian.AppendUint16(b, g.Status)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.Capabilities>>16))
	b = append(b, SaltLength+1)
	b = append(b, make([]byte, 10)...)
	b = append(append(b, g.Salt[8:]...), 0)
	b = append(append(b, MethodCachingSHA2...), 0)
	return w.End(b)
}

// Response is the first packet of the client (HandshakeResponse41).
type Response struct {
	Capabilities uint32 // of the client, restricted to what the server offered
	User         string
	Auth         []byte // the answer to the greeting, by Method
	Method       string
	Database     string
	Program      string // connection attribute program_name
}

// sslRequestLength is the length of the packet that asks for TLS: the fixed head
// of the handshake response alone.
const sslRequestLength = 32

// ReadFirst reads the first packet of the client without reading a byte beyond
// it: what follows a request for TLS is encrypted and belongs to the TLS layer.
func ReadFirst(conn io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if head[3] != 1 {
		return nil, ErrSequence
	}
	if n > limit {
		return nil, ErrTooLarge
	}
	data := make([]byte, n)
	_, err := io.ReadFull(conn, data)
	return data, err
}

// IsTLSRequest reports whether the first packet of the client asks for TLS.
func IsTLSRequest(data []byte) bool {
	return len(data) == sslRequestLength && binary.LittleEndian.Uint32(data)&ClientSSL != 0
}

// Expect sets the sequence number of the next packet to read.
func (p *Reader) Expect(seq byte) { p.seq = seq }

// Seq is the sequence number of the next packet to read.
func (p *Reader) Seq() byte { return p.seq }

// ParseResponse reads a handshake response.
func ParseResponse(data []byte) (Response, error) {
	var r Response
	c := cursor{data: data}
	flags := c.uint32()
	c.skip(4 + 1 + 23) // largest packet, collation, filler
	if c.bad || flags&ClientProtocol41 == 0 || flags&ClientSecureConnection == 0 {
		return r, ErrMalformed
	}
	r.Capabilities = flags & (Capabilities | ClientSSL | ClientLocalFiles)
	r.User = c.nulString()
	if flags&ClientPluginAuthLenenc != 0 {
		r.Auth = c.lenencBytes()
	} else {
		r.Auth = c.bytes(int(c.byte()))
	}
	if flags&ClientConnectWithDB != 0 {
		r.Database = c.nulString()
	}
	if flags&ClientPluginAuth != 0 {
		r.Method = c.nulString()
	}
	if c.bad {
		return r, ErrMalformed
	}
	r.attributes(&c)
	return r, nil
}

// attributes reads what the client says of itself.
func (r *Response) attributes(c *cursor) {
	if r.Capabilities&ClientConnectAttrs == 0 || len(c.data) == 0 {
		return
	}
	attrs := cursor{data: c.lenencBytes()}
	for !attrs.bad && len(attrs.data) > 0 {
		key, value := attrs.lenencBytes(), attrs.lenencBytes()
		if string(key) == "program_name" && !attrs.bad {
			r.Program = truncate(string(value), 64)
		}
	}
}

// ParseOpenID reads what the method of tokens sends: a byte of capabilities, which
// is 1, and the token with its length before it. Connector/J sends its whole buffer,
// with zeros at the end. Source: MySQL 9.1, authentication_openid_connect_client.
func ParseOpenID(data []byte) (token string, err error) {
	c := cursor{data: data}
	version := c.byte()
	b := c.lenencBytes()
	if c.bad || version != 1 || len(bytes.Trim(c.data, "\x00")) > 0 {
		return "", ErrMalformed
	}
	return string(b), nil
}

// ParseChangeUser reads the body of COM_CHANGE_USER: who the client wants to be on
// this connection from now on. capabilities are those of its login.
func ParseChangeUser(data []byte, capabilities uint32) (Response, error) {
	r := Response{Capabilities: capabilities}
	c := cursor{data: data}
	r.User = c.nulString()
	r.Auth = c.bytes(int(c.byte()))
	r.Database = c.nulString()
	if c.bad {
		return r, ErrMalformed
	}
	if len(c.data) > 0 {
		c.skip(2) // collation
	}
	if capabilities&ClientPluginAuth != 0 && len(c.data) > 0 {
		r.Method = c.nulString()
	}
	if c.bad {
		return r, ErrMalformed
	}
	r.attributes(&c)
	return r, nil
}

// SwitchMethod asks the client to answer with another authentication method.
func (w *Writer) SwitchMethod(method string, salt []byte) error {
	b := append(w.Begin(), 0xfe)
	b = append(append(b, method...), 0)
	b = append(append(b, salt...), 0)
	return w.End(b)
}

// MoreAuthData sends data of the authentication method.
func (w *Writer) MoreAuthData(data []byte) error {
	return w.End(append(append(w.Begin(), 0x01), data...))
}

// What caching_sha2_password says in packets of one byte.
const (
	// SHA2FullAuth asks the client for the password itself.
	SHA2FullAuth byte = 0x04
	// SHA2RequestKey is how the client asks for the server's public key.
	SHA2RequestKey byte = 0x02
)

// cursor reads fields off a packet. After the first failure bad is set and every
// result is empty.
type cursor struct {
	data []byte
	bad  bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.data) {
		c.bad, c.data = true, nil
		return nil
	}
	b := c.data[:n]
	c.data = c.data[n:]
	return b
}

func (c *cursor) skip(n int) { c.bytes(n) }

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) nulString() string {
	n := bytes.IndexByte(c.data, 0)
	if n < 0 {
		c.bad, c.data = true, nil
		return ""
	}
	s := string(c.data[:n])
	c.data = c.data[n+1:]
	return s
}

func (c *cursor) lenencBytes() []byte {
	var n uint64
	switch first := c.byte(); first {
	case 0xfb, 0xff: // NULL and an error have no place here
		c.bad, c.data = true, nil
	case 0xfc:
		n = uint64(c.uint16())
	case 0xfd:
		n = uint64(c.uint16()) | uint64(c.byte())<<16
	case 0xfe:
		n = c.uint64()
	default:
		n = uint64(first)
	}
	if n > uint64(len(c.data)) {
		c.bad, c.data = true, nil
		return nil
	}
	return c.bytes(int(n))
}
