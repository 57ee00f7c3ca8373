// Package oidctest is an OpenID Connect provider for tests: it signs whatever
// claims a test wants, also such as no real provider would, counts what it is
// asked, changes its keys and goes away. It is for tests alone: its users have the
// password "<name>-pw".
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Client and Secret are those of the only client that may introspect.
const (
	Client = "sqe"
	Secret = "issuer-secret"
)

// Issuer is a provider on a port of the loopback interface.
type Issuer struct {
	URL    string // the issuer
	Now    func() time.Time
	server *httptest.Server

	mu       sync.Mutex
	keys     []key
	serial   int
	down     bool
	inactive map[string]bool // tokens and refresh tokens that were ended
	asked    map[string]int  // by path
	// lifetime of the tokens that the token endpoint gives.
	lifetime time.Duration
	extra    map[string]any // claims beside those of Claims, for the token endpoint
	refresh  map[string]string
}

type key struct {
	id     string
	alg    jose.SignatureAlgorithm
	signer crypto.Signer
}

// New starts a provider with a key for RS256.
func New() *Issuer {
	i := &Issuer{inactive: map[string]bool{}, asked: map[string]int{}, refresh: map[string]string{}, Now: time.Now, lifetime: 5 * time.Minute}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.jwks)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /introspect", i.introspect)
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked[r.URL.Path]++
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	i.URL = i.server.URL
	i.Rotate(jose.RS256)
	return i
}

// Close ends it.
func (i *Issuer) Close() { i.server.Close() }

// Rotate makes a new key for an algorithm, with which Sign signs from now on, and
// forgets the others. It returns the id of the key.
func (i *Issuer) Rotate(alg jose.SignatureAlgorithm) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serial++
	k := key{id: fmt.Sprintf("key-%d", i.serial), alg: alg, signer: NewKey(alg)}
	i.keys = []key{k}
	return k.id
}

// AddKey makes another key that is published and never used by Sign.
func (i *Issuer) AddKey(alg jose.SignatureAlgorithm) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serial++
	i.keys = append(i.keys, key{id: fmt.Sprintf("key-%d", i.serial), alg: alg, signer: NewKey(alg)})
}

// NewKey makes a private key for an algorithm.
func NewKey(alg jose.SignatureAlgorithm) crypto.Signer {
	var k crypto.Signer
	var err error
	switch alg {
	case jose.ES256:
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		k, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		k, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, k, err = ed25519.GenerateKey(rand.Reader)
	default:
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic(err)
	}
	return k
}

// Public is the public key that Sign's signatures are verified with.
func (i *Issuer) Public() (public crypto.PublicKey, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0].signer.Public(), i.keys[0].id
}

// Claims are those of a good token: for the audience sqe, by the client sqe-cli,
// for five minutes, with the group analytics and the role analyst.
func (i *Issuer) Claims(name string) map[string]any {
	now := i.Now()
	return map[string]any{
		"iss": i.URL, "aud": []string{"sqe", "polaris"}, "azp": "sqe-cli", "typ": "Bearer", "sub": "id of " + name,
		"preferred_username": name, "groups": []string{"analytics"}, "realm_access": map[string]any{"roles": []string{"analyst"}},
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
}

// Sign signs claims.
func (i *Issuer) Sign(claims map[string]any) string {
	i.mu.Lock()
	k := i.keys[0]
	i.mu.Unlock()
	return Forge(k.alg, k.signer, map[string]any{"kid": k.id, "typ": "JWT"}, claims)
}

// Forge signs claims with any key and headers.
func Forge(alg jose.SignatureAlgorithm, with any, headers, claims map[string]any) string {
	o := &jose.SignerOptions{}
	for name, v := range headers {
		o.WithHeader(jose.HeaderKey(name), v)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: with}, o)
	if err != nil {
		panic(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// Down makes every answer a failure, or ends that.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// End makes a token, or a refresh token, inactive.
func (i *Issuer) End(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inactive[token] = true
}

// Give sets how long tokens of the token endpoint live, and claims that they have
// beside, or in place of, those of Claims.
func (i *Issuer) Give(lifetime time.Duration, claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lifetime, i.extra = lifetime, claims
}

// Asked is how often a path was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "jwks_uri": i.URL + "/keys", "token_endpoint": i.URL + "/token", "introspection_endpoint": i.URL + "/introspect",
	})
}

func (i *Issuer) jwks(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.signer.Public(), KeyID: k.id, Algorithm: string(k.alg), Use: "sig"})
	}
	answer(w, http.StatusOK, set)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code string) { answer(w, status, map[string]string{"error": code}) }
	name, refreshed := r.FormValue("username"), ""
	client, secret, _ := r.BasicAuth()
	client, _ = url.QueryUnescape(client)
	if client == "" {
		client, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	switch r.FormValue("grant_type") {
	case "password":
		if r.FormValue("password") != name+"-pw" {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
	case "client_credentials":
		if secret != client+"-secret" {
			refuse(http.StatusUnauthorized, "invalid_client")
			return
		}
		name = "service-account-" + client
	case "refresh_token":
		refreshed = r.FormValue("refresh_token")
		i.mu.Lock()
		name = i.refresh[refreshed]
		over := i.inactive[refreshed]
		i.mu.Unlock()
		if name == "" || over {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
	default:
		refuse(http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	claims := i.Claims(name)
	i.mu.Lock()
	lifetime := i.lifetime
	maps.Copy(claims, i.extra)
	i.serial++
	next := fmt.Sprintf("refresh-%d-%s", i.serial, rand.Text())
	i.refresh[next] = name
	i.mu.Unlock()
	claims["azp"], claims["exp"] = client, i.Now().Add(lifetime).Unix()
	out := map[string]any{"access_token": i.Sign(claims), "token_type": "Bearer", "expires_in": int(lifetime.Seconds())}
	if r.FormValue("grant_type") != "client_credentials" {
		out["refresh_token"] = next
	}
	answer(w, http.StatusOK, out)
}

func (i *Issuer) introspect(w http.ResponseWriter, r *http.Request) {
	if id, secret, _ := r.BasicAuth(); id != Client || secret != Secret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"active": !i.inactive[r.FormValue("token")]})
}
