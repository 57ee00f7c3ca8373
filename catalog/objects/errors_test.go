package objects

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestDetail: what an error says to a log tells an operator the causes apart, and has
// no address.
func TestDetail(t *testing.T) {
	network := func(err error) *Error {
		return &Error{Operation: "read", is: ErrUnavailable, cause: &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 9000}, Err: err,
		}}
	}
	for _, x := range []struct {
		err  *Error
		want string
	}{
		{&Error{Operation: "read", Status: 403, Code: "SignatureDoesNotMatch", Request: "R1", is: ErrDenied}, "read, status 403, SignatureDoesNotMatch, request R1"},
		{network(syscall.ECONNREFUSED), "read, connection refused"},
		{network(&net.DNSError{Err: "no such host", Name: "minio.example"}), "read, the name of the store is not known"},
		{network(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "read, the certificate of the store is not trusted"},
		{&Error{Operation: "read", is: ErrUnavailable, cause: errors.New("http: server gave HTTP response to HTTPS client")}, "read, the store does not speak TLS at this port"},
	} {
		got := x.err.Detail()
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
		if strings.Contains(got, "192.0.2.7") || strings.Contains(got, "example") {
			t.Errorf("an address: %q", got)
		}
	}
}
