// Package objects reads and writes the objects of S3-compatible stores behind
// iceberg-go's interfaces of files.
//
// Invariants: only the credentials that a Client was made with are used, never ones
// of the machine (environment, files, instance); they are in no error, no log and no
// way of printing a value of this package. Files reach only what their owner lets
// them reach. Every request ends with its context, or when the store is silent for
// Options.Timeout. An object that is read is one version of it from the first byte to
// the last.
//
// The package decides nothing about access and must never keep what was read with
// the credentials of one principal where another one finds it without asking the
// store.
package objects
