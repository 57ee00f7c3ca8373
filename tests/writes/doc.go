// Package writes checks that other engines read what SQE writes into Iceberg tables.
//
// Invariants: what a table is to hold is said by the test, and what it holds by the
// other engine, never by SQE. The package must never be imported by the product.
package writes
