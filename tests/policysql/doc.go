// Package policysql tests policies that are written in SQL, from the text of a
// statement to the policy in the embedded store and to what the next statement of
// a user sees.
//
// Invariants: nothing between the two is replaced; what a user sees is asked with
// a statement, and every mask stands beside somebody who sees raw values.
package policysql
