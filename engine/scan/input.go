// Package scan turns a plan.Scan into what an executor reads: data files that it
// may read itself, and a stream of Arrow batches for everything else (files with
// deletes, remote files, metadata tables).
//
// Invariants: every live row of the snapshot is in exactly one file of Files or
// in Stream, each exactly once; a deleted row is in neither; columns are found by
// Iceberg field id, never by name or position; pruning only ever leaves out rows
// for which plan.Scan.Prune is not true. The package must never apply or know
// policies.
package scan

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Input is the data of one plan.Scan.
type Input struct {
	Files  []File
	Stream Stream // nil when Files is everything
	// Rows is the number of rows before any filter, -1 when it is not known. With
	// deletes or pruning it is an upper bound.
	Rows int64
}

// File is a local Parquet file without deletes.
type File struct {
	Path string
	// Location is the file as the table's metadata spells it: the value of
	// plan.FileField.
	Location string
	Rows     int64
	// Columns is parallel to plan.Scan.Cols.
	Columns []FileColumn
}

// FileColumn says where the value of a scan column is in a file.
type FileColumn struct {
	// Name of the top-level column in the file; "" when the file does not have it:
	// then every row has Default.
	Name string
	// Type of the values in the file as Arrow type; the scan column's type after
	// schema evolution may be wider.
	Type arrow.DataType
	// Default is the value for a file without the column: Iceberg's initial
	// default or an identity partition value, else a NULL literal.
	Default *plan.Literal
	// Virtual is plan.FileField or plan.PositionField for a column that is not in
	// the file but about it; Name and Default are empty then. 0 for any other.
	Virtual int
	// Nested is set when the children of a nested column need mapping by field id
	// (renamed, added, dropped or widened inside): such a file is never in Files.
	Nested bool
}

// Stream yields the rows that Files does not hold, with the columns of the scan.
type Stream interface {
	// Open starts reading. columns are indexes into plan.Scan.Cols, ascending; the
	// batches have exactly those columns with exactly the types of the scan, in
	// that order. Cancelling ctx ends the reader.
	Open(ctx context.Context, columns []int) (Reader, error)
}

// Reader yields batches until io.EOF. It is used by one goroutine at a time. The
// caller releases each batch and closes the reader.
type Reader interface {
	Next() (arrow.RecordBatch, error)
	Close() error
}
