package plan

// Write is a statement that changes the rows of one table: a plan that yields
// changes, and what they mean. It is no Node: nothing reads it.
//
// Invariants: Rows is governed like any query, so that what a user computes is
// computed from what the user sees; a field that a branch does not assign keeps
// its raw value, which the user never sees.
type Write struct {
	Target *Table
	// Overwrite: the rows of the table, or of Partitions of it, go first (INSERT
	// OVERWRITE). Then every branch is an InsertRow.
	Overwrite bool
	// Rows yields one row for each change.
	Rows Node
	// Branch is the column of Rows, a long, that says which of Branches a row takes;
	// NULL is none of them. 0 when there is one branch for all rows.
	Branch   ColumnID
	Branches []WriteBranch
	// File and Pos are the columns of Rows with the place of the old row: the file
	// as the table names it, and the position in it from 0. 0 when every branch is
	// an InsertRow; NULL in rows that take one.
	File, Pos ColumnID
	// Kept are columns of Rows with the value that a field has in the old row, by the
	// id of the top-level field, as the user sees it: for a branch that keeps the
	// field. A field that is not in it, or that a mask is on, is read anew.
	Kept map[int]ColumnID
	// Once: two changes of one old row are an error (MERGE).
	Once bool
}

// WriteOp is what happens to a row.
type WriteOp uint8

// The operations. The zero value is not valid.
const (
	InsertRow WriteOp = iota + 1
	UpdateRow
	DeleteRow
)

// WriteBranch is one kind of change in a Write.
type WriteBranch struct {
	Op WriteOp
	// Values are the columns of Rows, by the id of the top-level field that gets the
	// value. A field that is not in it keeps its value (UpdateRow), or gets its
	// default or NULL (InsertRow).
	Values map[int]ColumnID
}
