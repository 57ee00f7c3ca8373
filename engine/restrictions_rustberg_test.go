package engine_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/engine"
	"sqe/engine/duck"
	"sqe/fault"
	"sqe/identity"
)

// issuer is an OpenID Connect provider that signs tokens for a test.
type issuer struct {
	*httptest.Server
	key   *rsa.PrivateKey
	roles map[string]string // of principals
}

func newIssuer(t *testing.T, roles map[string]string) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, roles: roles}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "token_endpoint": i.URL + "/token"})
			return
		}
		part := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": part(key.N), "e": part(big.NewInt(int64(key.E))),
		}}})
	}))
	t.Cleanup(i.Close)
	return i
}

// Token implements rest.Tokens.
func (i *issuer) Token(ctx context.Context) (rest.Token, error) {
	p, _ := identity.FromContext(ctx)
	part := func(x any) string {
		text, _ := json.Marshal(x)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now().Unix()
	body := part(map[string]any{"alg": "RS256", "kid": "k", "typ": "JWT"}) + "." + part(map[string]any{
		"iss": i.URL, "aud": "polaris", "sub": p.Name, "iat": now, "exp": now + 600, "roles": []string{i.roles[p.Name]},
	})
	sum := sha256.Sum256([]byte(body))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	return rest.Token{Bearer: body + "." + base64.RawURLEncoding.EncodeToString(sig), Scope: p.Name}, err
}

func (*issuer) Refused(rest.Token) bool { return false }

const cedar = `
permit(principal in Rustberg::Group::"admin", action, resource) when { resource.tenant == principal.tenant };
permit(principal, action == Rustberg::Action::"List", resource == Rustberg::Tenant::"default");
@row_filter("{\"type\":\"eq\",\"term\":\"region\",\"value\":\"EU\"}")
@column_mask("amount,customer.ssn")
permit(principal in Rustberg::Group::"auditor", action in [Rustberg::Action::"Read", Rustberg::Action::"List"],
  resource in Rustberg::Namespace::"default\u{1F}sales");
`

// TestRustberg runs against a catalog that others wrote, and that restricts tables for
// a group of users: row filter, column actions and plans of its own. SQE_RUSTBERG
// names its program (rustberg 0.3.0).
func TestRustberg(t *testing.T) {
	program := os.Getenv("SQE_RUSTBERG")
	if program == "" {
		t.Skip("SQE_RUSTBERG names no program")
	}
	tokens := newIssuer(t, map[string]string{"carol": "admin", "ann": "auditor", "bob": "nobody"})
	dir := t.TempDir()
	warehouse := filepath.Join(dir, "warehouse")
	if err := os.Mkdir(warehouse, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("rustberg.toml", fmt.Sprintf(`
[server]
host = "127.0.0.1"
port = %d
[server.auth]
api_key_enabled = false
jwt_enabled = true
policy_file = %q
[server.auth.jwt]
issuer = %q
audiences = ["polaris"]
roles_claim = "roles"
[tls]
enabled = false
insecure_http = true
[storage]
catalog_url = "file://%s/registry"
warehouse_location = "file://%s"
[rate_limit]
enabled = false
track_auth_failures = false
`, port, write("policies.cedar", cedar), tokens.URL, dir, warehouse))
	if err := os.Mkdir(filepath.Join(dir, "registry"), 0o755); err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	server := exec.Command(program, "--insecure-http", "--config", config)
	server.Env, server.Stdout, server.Stderr = []string{"HOME=" + dir}, log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			text := log.String()
			t.Log(text[max(0, len(text)-4000):])
		}
	})
	uri := "http://127.0.0.1:" + strconv.Itoa(port)
	for n := 0; ; n++ {
		if r, err := http.Get(uri + "/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		if n > 300 {
			t.Fatal("the catalog does not start")
		}
		time.Sleep(100 * time.Millisecond)
	}
	f := openWith(t, func(o *engine.Options) {
		client, err := rest.New(rest.Options{URI: uri, Tokens: tokens, HTTP: http.DefaultClient, AllowHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		remote, err := catalog.OpenREST("rust", client, catalog.RESTOptions{Local: warehouse, Bound: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = remote.Close() })
		lake, _ := o.Catalogs.Get("lake")
		if o.Catalogs, err = catalog.NewRegistry(lake, remote); err != nil {
			t.Fatal(err)
		}
		if o.Duck, err = duck.Open(duck.Config{Roots: []string{warehouse}, Threads: 1, MemoryLimit: 256 << 20}); err != nil {
			t.Fatal(err)
		}
		own := o.Duck
		t.Cleanup(func() { _ = own.Close() })
	})
	defer http.DefaultClient.CloseIdleConnections()
	f.source.set(func(s *state) { s.readers = map[string]bool{"carol": true, "ann": true, "bob": true} })
	carol, ann := f.session(t, "carol"), f.session(t, "ann")
	for _, s := range []string{
		"CREATE DATABASE `rust.sales`",
		"CREATE TABLE `rust.sales`.orders (id BIGINT NOT NULL, region VARCHAR(10), amount DECIMAL(10,2), customer STRUCT<ssn: STRING, name: STRING>) PARTITIONED BY (region)",
		"INSERT INTO `rust.sales`.orders (id, region, amount) VALUES (1, 'EU', 1.5), (2, 'US', 2.5), (3, NULL, 3.5), (4, 'EU', NULL)",
		"CREATE TABLE `rust.sales`.other (id BIGINT NOT NULL)",
		"INSERT INTO `rust.sales`.other VALUES (1)",
	} {
		if _, err := query(carol, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	const q = "SELECT id, region, amount FROM `rust.sales`.orders ORDER BY id"
	must(t, carol, q, "1|EU|1.5\n2|US|2.5\n3|NULL|3.5\n4|EU|NULL")
	must(t, ann, q, "1|EU|NULL\n4|EU|NULL")
	must(t, ann, "SELECT count(*), count(amount), max(amount) FROM `rust.sales`.orders", "2|0|NULL")
	must(t, ann, "SELECT id FROM `rust.sales`.orders WHERE amount > 0 OR region = 'US' OR region IS NULL", "")
	// The filter cannot be of this table: the catalog sends the constant false.
	must(t, ann, "SELECT id FROM `rust.sales`.other", "")
	must(t, carol, "SELECT id FROM `rust.sales`.other", "1")
	refused(t, ann, "SELECT * FROM `rust.sales`.`orders$files`", fault.Denied)
	refused(t, ann, "DELETE FROM `rust.sales`.orders", fault.Denied)
	refused(t, f.session(t, "bob"), q, fault.NotFound)
}
