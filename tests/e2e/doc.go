// Package e2e tests a built sqe from outside: ordinary MySQL clients against
// `sqe demo` and `sqe serve`, with nothing replaced.
//
// The suites: clients (six clients, the same cases), tour (what the README
// shows), leaks (every way in which a hidden row or a raw value could come out,
// each with a control user who sees it), metamorphic (random queries under
// policies against physically filtered and masked copies), badinput, lifecycle.
// They run with `make e2e` (build tag e2e).
//
// Invariants: a denial is tested beside a positive control; a test that needs a
// program which is missing fails and names it. The package must not import
// packages of the product: what it sees is what a user sees.
package e2e
