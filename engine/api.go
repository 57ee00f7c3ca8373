// Package engine is the way of a statement: parse, bind, resolve, rewrite,
// verify, execute, audit. Its callers (the server, the demo) see sessions and
// results only.
//
// Invariants: a session belongs to one principal; no statement runs without a
// verified plan; every statement and every denial makes one audit event; a panic
// in a statement is caught, logged without values and denies.
package engine

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// Rows yields Arrow batches until io.EOF. It is used by one goroutine at a time.
// The caller releases each batch and closes the rows; Close cancels what still
// runs.
type Rows interface {
	Next() (arrow.RecordBatch, error)
	Close() error
}

// Result is the outcome of one statement.
type Result struct {
	// Columns of the rows. Empty: the statement yields no rows (an OK packet).
	// Batches have these columns in this order; a type of a batch may be a
	// narrower or wider Arrow layout of the same kind (large_string for string).
	Columns []plan.Column
	Rows    Rows // nil when Columns is empty
	// Affected rows, for statements without rows.
	Affected uint64
	// Warnings is the number that SHOW WARNINGS would list.
	Warnings uint16
	// Database, when not nil, is the new current database (USE).
	Database *string
}

// ConnInfo says where a session comes from.
type ConnInfo struct {
	ID         uint32 // connection id, for KILL and the process list
	RemoteAddr string
	Program    string // client program name, if it says so
	Database   string // initial database, "" for none
	// LocalFile asks the client for the file that its own statement names, and reads
	// it to the end; nil when the client does not send files.
	LocalFile func(ctx context.Context, name string) (io.Reader, error)
}

// Prepared describes a prepared statement.
type Prepared struct {
	Text    string
	Params  int
	Columns []plan.Column // as of the time of preparation; an execution binds anew
}
