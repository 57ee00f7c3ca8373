// Package rest speaks the Iceberg REST catalog protocol.
//
// Invariants: every call carries the token of the principal of its context, or of
// the service when the catalog is configured so, and goes to the configured server
// alone: an answer that points elsewhere (a redirect, an address in the
// configuration that the server sends) is not followed. What the server said to
// one scope (Token.Scope) is never used for another. Calls that read are repeated
// after failures of the network and when the server asks for it, calls that change
// something are sent once. Answers are bounded. iceberg-go's own client is not
// used: it drops read-restrictions.
//
// The package decides nothing about access. It must never put a token, a secret or
// the text of an answer's configuration into an error.
//
// Source: Apache Iceberg, open-api/rest-catalog-open-api.yaml.
package rest
