// Package live tests sqe beside a policy server that is asked over its REST
// interface: the embedded store, or, with SQE_RANGER_URL (and SQE_RANGER_ADMIN,
// user:password) set, a Ranger Admin. Policies, roles and tags are written by REST
// calls, schemas are changed by another engine's library, statements run through
// MySQL clients.
//
// Invariants: every refusal and every mask is beside its control, the same
// statement by somebody who sees raw values; the policy server is reached through
// a proxy that can fail in the ways that servers fail.
package live
