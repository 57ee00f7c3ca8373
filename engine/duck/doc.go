// Package duck compiles a governed plan into one DuckDB query and runs it in a
// locked-down DuckDB instance. Results are Arrow record batches.
//
// Invariants:
//
//   - Only text that this package composes from a plan reaches DuckDB, never
//     text of a user. Names of the text are column ids; the only foreign names
//     are those of columns and struct fields of data files, always quoted.
//   - What cannot be computed exactly as package plan says (that is, as MySQL
//     does) is refused by name (fault.Unsupported), never approximated.
//   - Every expression has exactly the type that the plan gives it.
//   - DuckDB reads files below Config.Roots only, writes nothing but its own
//     spill files, loads no extension and keeps no setting of a statement.
//   - Error texts of DuckDB echo values of rows; they are kept as causes for the
//     operator's log and never become the text of a fault.
//   - A client that stops reading holds a bounded number of rows.
//
// The package must never decide about access, move an expression below a Guard,
// or let a data stream into DuckDB other than through its own table function
// (DuckDB's own Arrow views drop filters).
package duck
