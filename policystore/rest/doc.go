// Package rest serves a policy store over HTTP as a Ranger Admin 2.9 serves its
// own: the downloads of Ranger's plugins, and the calls with which policies,
// roles, users, zones, services and tags are administered. Paths, bodies and
// refusals are Ranger's, so that plugins and scripts made for one need no change.
//
// Invariants: nothing but a refusal is answered without a login; only an
// administrator changes anything, except that users whom a service names in
// service.admin.users change its policies; a policy is downloaded by whom the
// service lets. A password is never answered and never logged. A request of any
// size, speed or content costs a bounded amount of memory and time.
//
// Where it is narrower than a Ranger Admin: there is no delegated administration
// (a user who has delegateAdmin in a policy cannot change policies here), and
// policies are not merged (policy/apply is refused).
package rest
