// Package checks holds the rules of the house as tests: which package may import
// which and why, formatting, vet and staticcheck, and what no tracked file may
// hold.
//
// Invariants: every rule says its reason, which is printed when it is broken; a
// rule is about the source tree alone and needs no running server. The package
// must never be imported.
package checks
