// Package restrictions compiles what an Iceberg REST catalog demands of its readers
// (read-restrictions of loadTable: a row filter and column actions, by field id)
// into package policy's terms, for one table with the schema that is read.
//
// Invariants:
//
//   - Compile is pure and never fails: what cannot be understood completely refuses
//     the table (Restrictions.Refuse) or, where it concerns one column only,
//     forbids that column so that a query which shows it fails. Nothing is ignored
//     but what the specification says to ignore.
//   - The filter is two-valued as Iceberg's expressions are, which SQL's are not: a
//     comparison with NULL or NaN has a truth value, and NOT turns it round.
//   - A reason names field ids, actions and operations, and no value of a condition.
//
// The package must never read data, and never decide who asked.
//
// Sources: Apache Iceberg, open-api/rest-catalog-open-api.yaml (ReadRestrictions,
// Action) and format/expressions-spec.md.
package restrictions
