// Package eval is Apache Ranger's policy engine in Go: it answers access, mask
// and row filter requests from one service's policies, its tag policies and
// tags, roles and user attributes, as Ranger 2.9 does (see
// docs/decisions/ranger-deviations.md for the named differences, all of them to
// the strict side).
//
// Compile does everything that does not depend on the request: matchers, an
// index by resource, evaluation order, conditions, schedules. An Engine is
// immutable, does no I/O and may be used by many goroutines.
//
// Three-valued: what cannot be decided (a condition that needs a script engine, a
// schedule that does not parse, an unknown macro) is neither true nor false. An
// item that gives (allow, exemption, deny exception) then does not match; an item
// that takes (deny, allow exception) does; a mask or filter item refuses the
// request. The package must never treat an undecided thing as absent.
package eval
