// Package keycloak holds sqe to a real Keycloak: logins with its tokens and
// passwords, tokens that must not open anything, and what happens when it goes
// away or changes its keys.
package keycloak
