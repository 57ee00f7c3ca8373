// Package faults checks that no write is lost, done twice or done by half: with many
// writers at once, servers that are killed, storage that fails and statements that
// are ended.
//
// Invariants: statements come from MySQL clients and go to the real server; what a
// table must hold follows from the statements that were acknowledged, and which files
// it must have from its metadata, which the tests read by themselves. The package
// must never be imported by the product.
package faults
