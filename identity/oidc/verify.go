package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"sqe/fault"
	"sqe/identity"
)

// Why a token is refused.
const (
	ReasonMalformed       identity.Reason = "malformed-token"
	ReasonTooLarge        identity.Reason = "token-too-large"
	ReasonAlgorithm       identity.Reason = "algorithm"        // not one of the configuration
	ReasonType            identity.Reason = "token-type"       // of another kind than the configuration says
	ReasonUnknownKey      identity.Reason = "unknown-key"      // the provider has no such key
	ReasonSignature       identity.Reason = "signature"        // not signed with that key
	ReasonIssuer          identity.Reason = "issuer"           // of another issuer
	ReasonAudience        identity.Reason = "audience"         // for somebody else, or for nobody
	ReasonAuthorizedParty identity.Reason = "authorized-party" // issued to a client that does not count
	ReasonNotYetValid     identity.Reason = "not-yet-valid"    // nbf or iat lies in the future
	ReasonExpired         identity.Reason = "expired"
	ReasonClaims          identity.Reason = "claims"   // a claim has a form that is not understood
	ReasonName            identity.Reason = "name"     // no name, or one that cannot be
	ReasonUser            identity.Reason = "user"     // the client gave another name than the token
	ReasonInactive        identity.Reason = "inactive" // the provider says that it was ended
)

// maxToken bounds a token, in bytes. Servers of HTTP refuse headers of this size
// anyway.
const maxToken = 32 << 10

// alphabet is what a token is written in: three times base64url, and dots.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// claimedIssuer is the issuer that a token says to have, which nobody verified.
// token is false for what is not of the form of a token.
func claimedIssuer(password string) (issuer string, token bool) {
	parts := strings.SplitN(password, ".", 4)
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return "", false
	}
	if h, err := decodePart(parts[0]); err != nil || h["alg"] == nil {
		return "", false
	}
	claims, err := decodePart(parts[1])
	if err != nil {
		return "", false
	}
	issuer, _ = claims["iss"].(string)
	return issuer, true
}

func decodePart(s string) (map[string]any, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	return object(b)
}

// object reads a JSON object whose numbers stay as they are written.
func object(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out map[string]any
	err := d.Decode(&out)
	return out, err
}

// token is what counts of a token that was verified.
type token struct {
	principal identity.Principal
	party     string // the client that it was issued to
	expires   time.Time
}

// verify checks a token. Its error is a Reason, or a fault when the provider does
// not answer.
func (p *Provider) verify(ctx context.Context, raw string) (*token, error) {
	if len(raw) > maxToken {
		return nil, ReasonTooLarge
	}
	// Decoders skip white space and line breaks. A token has none.
	if strings.ContainsFunc(raw, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }) {
		return nil, ReasonMalformed
	}
	header, err := decodePart(raw[:max(0, strings.IndexByte(raw, '.'))])
	if err != nil {
		return nil, ReasonMalformed
	}
	if alg, _ := header["alg"].(string); !slices.Contains(p.o.Algorithms, alg) {
		return nil, ReasonAlgorithm
	}
	keys := &keySet{p: p}
	// Issuer, audience and times are checked below: the library lets some issuers have
	// two names, knows one audience, and gives nbf five minutes.
	verified, err := oidc.NewVerifier(p.o.Issuer, keys, &oidc.Config{
		SkipIssuerCheck: true, SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: p.o.Algorithms,
	}).Verify(ctx, raw)
	switch {
	case keys.failed != nil:
		return nil, keys.failed
	case err != nil || !keys.verified:
		return nil, ReasonMalformed
	}
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return nil, ReasonMalformed
	}
	claims, err := object(payload)
	if err != nil {
		return nil, ReasonMalformed
	}
	return p.accept(header, claims)
}

// accept decides about the claims of a token whose signature was verified.
func (p *Provider) accept(header, claims map[string]any) (*token, error) {
	if claims["iss"] != p.o.Issuer {
		return nil, ReasonIssuer
	}
	kind := accessToken
	if p.o.IDTokens {
		kind = idToken
	}
	if !kind(header, claims) {
		return nil, ReasonType
	}
	ours := func(a string) bool { return slices.Contains(p.o.Audiences, a) }
	audiences, ok := texts(claims["aud"])
	if !ok || !slices.ContainsFunc(audiences, ours) {
		return nil, ReasonAudience
	}
	// An ID token for others too was not asked for by a client of ours.
	if p.o.IDTokens && slices.ContainsFunc(audiences, func(a string) bool { return !ours(a) }) {
		return nil, ReasonAudience
	}
	t := &token{}
	for _, name := range []string{"azp", "client_id"} {
		if party, _ := claims[name].(string); t.party == "" {
			t.party = party
		}
	}
	switch {
	case len(p.o.AuthorizedParties) > 0 && !slices.Contains(p.o.AuthorizedParties, t.party),
		len(p.o.AuthorizedParties) == 0 && p.o.IDTokens && t.party != "" && !ours(t.party):
		return nil, ReasonAuthorizedParty
	}
	var err error
	if t.principal, err = p.principal(claims); err != nil {
		return nil, err
	}
	now := p.now()
	for _, name := range []string{"nbf", "iat"} {
		at, set, ok := instant(claims, name)
		if !ok {
			return nil, ReasonClaims
		}
		if set && at.After(now.Add(p.o.ClockSkew)) {
			return nil, ReasonNotYetValid
		}
	}
	expires, set, ok := instant(claims, "exp")
	if !ok || !set {
		return nil, ReasonClaims
	}
	t.expires = expires.Add(p.o.ClockSkew)
	// The last check: only who holds a token that is good but for this is told so.
	if !now.Before(t.expires) {
		return nil, ReasonExpired
	}
	return t, nil
}

// accessToken reports whether a token is one to show to services. ID tokens are
// for the client that asked for them, refresh and logout tokens for the provider.
// Sources: RFC 9068 (typ of the header), Keycloak (the claim typ), OpenID Connect
// Core (at_hash) and Back-Channel Logout (events).
func accessToken(header, claims map[string]any) bool {
	if typ := mediaType(header); typ != "jwt" && typ != "at+jwt" {
		return false
	}
	if typ, set := claims["typ"]; set && typ != "Bearer" {
		return false
	}
	_, id := claims["at_hash"]
	_, logout := claims["events"]
	return !id && !logout
}

// idToken reports whether a token is one that tells a client who logged in. It always
// has a subject and says when it was issued; access tokens have a scope, and say of
// themselves that they are some. Source: OpenID Connect Core, section 2.
func idToken(header, claims map[string]any) bool {
	if mediaType(header) != "jwt" {
		return false
	}
	if typ, set := claims["typ"]; set && typ != "ID" {
		return false
	}
	subject, _ := claims["sub"].(string)
	_, issued := claims["iat"]
	for _, other := range []string{"events", "scope", "scp"} {
		if _, set := claims[other]; set {
			return false
		}
	}
	return subject != "" && issued
}

// mediaType is that of the header, in lower case: "jwt" when it says none.
func mediaType(header map[string]any) string {
	typ, set := header["typ"]
	if !set {
		return "jwt"
	}
	text, _ := typ.(string)
	return strings.TrimPrefix(strings.ToLower(text), "application/")
}

// instant reads a NumericDate. ok is false for what is not one.
func instant(claims map[string]any, name string) (at time.Time, set, ok bool) {
	v, set := claims[name]
	if !set {
		return at, false, true
	}
	n, ok := v.(json.Number)
	if !ok {
		return at, true, false
	}
	seconds, err := n.Float64()
	const latest = 1 << 38 // year 10,680: far, and no overflow
	if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > latest {
		return at, true, false
	}
	return time.Unix(int64(seconds), 0), true, true
}

// keySet verifies one signature. It implements oidc.KeySet, whose errors the
// library turns into text: failed keeps the reason.
type keySet struct {
	p        *Provider
	failed   error
	verified bool
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := k.p.signed(ctx, raw)
	k.failed, k.verified = err, err == nil
	return payload, err
}

func (p *Provider) signed(ctx context.Context, raw string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(raw, p.algorithms)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, ReasonMalformed
	}
	h := jws.Signatures[0].Header
	if h.KeyID == "" {
		return nil, ReasonUnknownKey
	}
	key, err := p.key(ctx, h.KeyID)
	if err != nil {
		return nil, err
	}
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != h.Algorithm {
		return nil, ReasonUnknownKey
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return nil, ReasonSignature
	}
	return payload, nil
}

// unavailable is the error when the provider cannot be asked. The cause is kept
// out: libraries quote what they sent.
func (p *Provider) unavailable() error {
	return fault.New(fault.Unavailable, "the identity provider does not answer; try again later")
}
