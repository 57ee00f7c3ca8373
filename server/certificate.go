package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"sqe/fault"
)

// TLSConfig is the configuration of encrypted connections with a certificate:
// TLS 1.2 or newer.
func TLSConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
		// Results are long: full records from the start.
		DynamicRecordSizingDisabled: true,
	}
}

// LoadCertificate reads a certificate and its key from PEM files.
func LoadCertificate(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return cert, fault.Wrap(fault.Config, err, "cannot read the certificate of server.tls-cert and server.tls-key: %v", err)
	}
	return cert, nil
}

// The generated certificate: its file in the state folder, how long it is valid
// and how long before its end it is made anew.
const (
	certificateFile  = "server-tls.pem"
	certificateValid = 2 * 365 * 24 * time.Hour
	certificateRenew = 30 * 24 * time.Hour
)

// GeneratedCertificate is a self-signed certificate that is kept in dir, readable
// by the owner alone, and made when there is none or it ends soon. It keeps
// passwords and rows from being read on the way; it does not prove to clients who
// the server is.
func GeneratedCertificate(dir string) (tls.Certificate, error) {
	path := filepath.Join(dir, certificateFile)
	text, err := os.ReadFile(path)
	if err == nil {
		cert, err := tls.X509KeyPair(text, text)
		if err == nil && time.Until(cert.Leaf.NotAfter) > certificateRenew {
			return cert, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, fault.Wrap(fault.Config, err, "cannot read the generated certificate in server.state-directory: %v", errors.Unwrap(err))
	}
	if text, err = generate(); err == nil {
		err = writePrivate(path, text)
	}
	if err != nil {
		return tls.Certificate{}, fault.Wrap(fault.Config, err, "cannot keep a certificate in server.state-directory (%v); name a folder that can be written, or set server.tls-cert and server.tls-key", err)
	}
	return tls.X509KeyPair(text, text)
}

func generate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil && host != "" && host != "localhost" {
		names = append(names, host)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "SQE generated certificate"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certificateValid),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     names,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

// writePrivate replaces a file in one step; nobody but the owner can read it at
// any time.
func writePrivate(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), certificateFile+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return os.Rename(f.Name(), path)
}
