package identity

import "context"

// Credential proves to other services that a statement runs for its principal. It
// belongs to one session.
//
// A token is a secret: it must never reach a log, an error, an audit event or a
// metric.
type Credential interface {
	// Token is a bearer token that is valid now. It may be refreshed for that. An
	// expired one that cannot be is fault.Auth, a provider that does not answer
	// fault.Unavailable.
	Token(ctx context.Context) (string, error)
}

type credentialKey struct{}

// WithCredential returns a context that carries c.
func WithCredential(ctx context.Context, c Credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, c)
}

// CredentialFrom is the credential that ctx carries; false for a principal who
// logged in without one (a static user).
func CredentialFrom(ctx context.Context) (Credential, bool) {
	c, ok := ctx.Value(credentialKey{}).(Credential)
	return c, ok && c != nil
}
