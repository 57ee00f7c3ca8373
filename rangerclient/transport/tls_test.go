package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pair is a self-signed certificate with its key, and files of both.
func pair(t *testing.T, name string) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, body []byte) string {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: body}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", secret)
}

// TestCertificates: the server must be one that is trusted, and sees who we are.
func TestCertificates(t *testing.T) {
	server, serverFile, _ := pair(t, "server")
	client, clientFile, clientKey := pair(t, "client")
	_, otherFile, _ := pair(t, "other")
	leaf, err := x509.ParseCertificate(client.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	asked := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName == "client" {
			asked++
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.StartTLS()
	defer s.Close()
	for name, c := range map[string]struct {
		config Config
		ok     bool
	}{
		"both":                   {Config{CAFile: serverFile, CertFile: clientFile, KeyFile: clientKey}, true},
		"no certificate of ours": {Config{CAFile: serverFile}, false},
		"an unknown server":      {Config{CertFile: clientFile, KeyFile: clientKey}, false},
		"another server":         {Config{CAFile: otherFile, CertFile: clientFile, KeyFile: clientKey}, false},
	} {
		asked = 0
		c.config.URL = s.URL
		client, err := Open(c.config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Do(context.Background(), "GET", "/x", nil, nil); (err == nil) != c.ok || (asked == 1) != c.ok {
			t.Errorf("%s: %v, %d requests", name, err, asked)
		}
	}
	for name, c := range map[string]Config{
		"no certificates in the file": {CAFile: clientKey}, "a key without a certificate": {KeyFile: clientKey}, "a key of another": {CertFile: serverFile, KeyFile: clientKey},
	} {
		c.URL = s.URL
		if _, err := Open(c); err == nil {
			t.Error(name)
		}
	}
}
