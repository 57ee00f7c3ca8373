// Package grants says which access policies a GRANT, a DENY or a REVOKE means.
//
// A grant is planned on three levels, because whoever reads a table must find it:
// a right to traverse the catalog, one for each namespace on the way, and the
// right on the object itself. Which rights these are is the grant profile
// (profile.json), which other systems share: a grant made by any of them is the
// same set of policies, and the labels on the policies tell all of them which
// grants there are.
//
// Invariants:
//
//   - The package is pure: it gets the policies that there are (Snapshot) and
//     returns those that there shall be. It reads and writes nothing.
//   - Nothing is widened: a privilege that does not reach as deep as the object is
//     refused with the level that would be right.
//   - A change touches the principals and the access types of its statement. What
//     else a policy holds stays, also what the package has no word for.
//   - REVOKE takes back what a grant gave and nothing that another grant still
//     gives; a right to traverse goes with the last grant that needs it.
//
// The package must never decide whether somebody has access: that is the
// evaluation of the policies, which the engine does.
package grants
