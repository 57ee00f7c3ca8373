// Package grants tests GRANT, DENY, REVOKE and what asks about access, from the text
// of a statement to the policies in the embedded store and to what the next
// statement of a user may do.
//
// Invariants: nothing between the two is replaced; what somebody may do is asked
// with statements of that user, and every refusal stands beside somebody who is let
// in.
package grants
