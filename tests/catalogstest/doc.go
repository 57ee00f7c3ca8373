// Package catalogstest is what every kind of catalog is held to: the suite of
// Conformance, which packages with a catalog of their own run.
//
// It works with a catalog as the engine does, below statements and policies.
package catalogstest
