package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSurroundings: sqe check finds, before the first start, what the machine and the
// neighbours lack, all at once; it makes nothing.
func TestSurroundings(t *testing.T) {
	status := http.StatusUnauthorized
	lake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer lake.Close()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("store.password", "Store-passw0rd\n")
	certificateUntil(t, filepath.Join(dir, "old"), time.Now().Add(-time.Hour))
	certificateUntil(t, filepath.Join(dir, "good"), time.Now().Add(time.Hour))
	if err := os.Mkdir(filepath.Join(dir, "warehouse"), 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(server, audit, warehouse string) (string, error) {
		t.Helper()
		write("sqe.toml", fmt.Sprintf(`%s
[audit]
file = %q
[[catalogs]]
name = "lake"
kind = "rest"
uri = %q
warehouse = %q
[policystore]
path = "policies.db"
admin-password-file = "store.password"
[[policies]]
name = "store"
kind = "store"
polaris-service = "polaris"
data-service = "hive"
[[users]]
name = "root"
password-hash = "$argon2id$v=19$m=19456,t=2,p=1$XmLgtfn6UUBjVATIFBwS3g$Qk8XvLhVTumPU1rJY4R2MeXYP52x3n3UD3tSQrw8WP4"
`, server, audit, lake.URL, warehouse))
		var out bytes.Buffer
		err := checkCommand(context.Background(), []string{"-c", filepath.Join(dir, "sqe.toml")}, &out)
		return out.String(), err
	}
	out, err := check("[server]\ntls-cert = \"good.pem\"\ntls-key = \"good.key\"", "logs/of/audit.jsonl", "warehouse")
	if err != nil || !strings.Contains(out, "policies.db is not there yet; sqe serve makes it") || !strings.Contains(out, "in order") || strings.Contains(out, "no folder") {
		t.Errorf("%v\n%s", err, out)
	}
	status = http.StatusNotFound
	out, err = check("[server]\ntls-cert = \"old.pem\"\ntls-key = \"old.key\"", "store.password/audit.jsonl", "nowhere")
	for _, want := range []string{"3 problems", "expired on", "audit.file cannot be made", "catalog lake: get configuration: answer 404"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if !strings.Contains(out, "its warehouse is no folder on this machine") {
		t.Error(out)
	}
	if _, err := check("[server]\ntls-cert = \"none.pem\"\ntls-key = \"none.key\"", "", "warehouse"); err == nil || !strings.Contains(err.Error(), "server.tls-cert") {
		t.Error(err)
	}
	for _, made := range []string{"policies.db", "logs", "state"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			t.Errorf("sqe check made %s", made)
		}
	}
}

// certificateUntil writes a certificate and its key, path.pem and path.key.
func certificateUntil(t *testing.T, path string, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-48 * time.Hour), NotAfter: until, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{path + ".pem": {Type: "CERTIFICATE", Bytes: der}, path + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
