// Package rewrite turns the plan of a statement into the plan that a principal
// may run: every scan disappears behind a guard that filters rows and masks
// columns.
//
// The steps: Prepare binds the restrictions of one table once for a policy
// version and principal; Govern puts them around every scan of a statement;
// Verify checks the result without knowing how it was made, on every statement;
// Pushdown then tells scans what they need not read.
//
// Invariants:
//
//   - Above a Guard only filtered rows and masked values exist. Raw columns have
//     ids that nothing above the guard can name.
//   - Order inside a guard: row filters on raw values, then masks computed from
//     the raw row. The user's own expressions come after both.
//   - Text of a policy that cannot be bound refuses the table (a filter) or
//     withholds the column (a mask); it never means that nothing is restricted.
//   - Tables that a policy text reads are scans marked Definer. They stand in the
//     condition of a guard's filter and nowhere else.
//   - A statement that changes rows (GovernWrite) changes rows that the user sees, by
//     values that the user sees. What it keeps of a row is raw, is read outside of
//     guards by Complete alone, and goes to the same column of the new row.
//   - Everything here is pure: no network, no clock, no SQL library.
//
// The package must never see data, decide who is restricted, or put a policy text
// into the text of a fault.
package rewrite
