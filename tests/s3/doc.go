// Package s3 runs SQE above a real S3-compatible store, and above one that fails.
//
// Invariants: the store checks signatures; what must be in it is read from its folder
// on the disk and not through SQE; no key of it may appear in anything that a server
// prints, answers or records. The package must never be imported by the product.
package s3
