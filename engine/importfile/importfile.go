// Package importfile reads Parquet and CSV files that people bring into Arrow
// batches for a table.
//
// Invariants: a file is hostile until it was read: what is malformed, too large or
// panics a decoder is a fault that names the line and the column, or the column, and
// never a value; memory is bounded whatever the file says of itself. Values are taken
// exactly or refused. An empty field is NULL and an empty text in quotes is a text.
//
// The package opens nothing by name and knows no table and no policy: it is given
// an open file and says what is in it.
package importfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// Limits of what a file may hold.
const (
	// MaxColumns of a file.
	MaxColumns = 10_000
	// MaxRow is the most that one row of a text file may take, in bytes.
	MaxRow = 16 << 20
	// maxMemory is the most that pages and batches of one Parquet file may take, and
	// their footer.
	maxMemory = 512 << 20
	maxFooter = 64 << 20
	// batchRows and batchBytes bound a batch, whichever comes first.
	batchRows  = 8192
	batchBytes = 4 << 20
)

// Kind is a kind of file.
type Kind uint8

// The kinds of files. The zero value is none of them.
const (
	Parquet Kind = iota + 1
	CSV
)

// Options say how a file is to be read. Those below Kind are for CSV.
type Options struct {
	Kind Kind
	// Gzip says that the file is compressed as a whole.
	Gzip bool
	// Terminated ends a field and Lines a line; "" as Lines is a line feed, with or
	// without a carriage return before it.
	Terminated, Lines string
	// Enclosed stands around a field and Escaped before a character that means
	// itself; 0 is none.
	Enclosed, Escaped byte
	// Ignore is how many lines are passed over. With Header the last of them names
	// the columns.
	Ignore int64
	Header bool
	// Fields is how many fields a row has; 0 is as many as the header.
	Fields int
	// MaxBytes is the most that a compressed file may hold; 0 is no bound.
	MaxBytes int64
}

// KindOf tells the kind of a file by its name, and the separator of its fields;
// 0 when the name does not say.
func KindOf(name string) (kind Kind, separator string, gzip bool) {
	name = strings.ToLower(name)
	name, gzip = strings.CutSuffix(name, ".gz")
	switch {
	case strings.HasSuffix(name, ".csv"):
		return CSV, ",", gzip
	case strings.HasSuffix(name, ".tsv"):
		return CSV, "\t", gzip
	case strings.HasSuffix(name, ".parquet") && !gzip:
		return Parquet, "", false
	}
	return 0, "", gzip
}

// Source is an open file.
type Source interface {
	io.ReaderAt
	io.ReadSeeker
}

// Column says what becomes of a column of a batch.
type Column struct {
	// At is the column of the file, from 0; -1 for one that it does not have.
	At int
	// Field is what it becomes; text is converted into its type.
	Field plan.Field
	// Fill is the value of a column that the file does not have; nil is NULL.
	Fill *plan.Literal
}

// Rows yields batches until io.EOF, with the columns that were asked for; one that
// the file does not have is NULL. The caller releases each batch. It is used by one
// goroutine at a time.
type Rows interface {
	Next() (arrow.RecordBatch, error)
	Close() error
}

// File is a file whose head was read.
type File interface {
	// Names are the columns as the file names them; nil when it does not.
	Names() []string
	// Fields finds the types of all columns. names are their names; without them
	// those of the file. It may read the whole file.
	Fields(ctx context.Context, names []string) ([]plan.Field, error)
	// Rows reads the file from its beginning.
	Rows(ctx context.Context, columns []Column) (Rows, error)
}

// Open reads the head of a file.
func Open(ctx context.Context, src Source, o Options) (f File, err error) {
	err = guarded(func() (err error) {
		switch o.Kind {
		case Parquet:
			f, err = openParquet(ctx, src)
		case CSV:
			f, err = openText(ctx, src, o)
		default:
			err = errors.New("a file of no kind")
		}
		return err
	})
	if err != nil {
		return nil, failure(ctx, err)
	}
	return f, nil
}

// guarded turns a panic over a malformed file into an error. The value of the panic
// is kept when it is a fault of this package.
func guarded(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *fault.Fault:
			err = p
		default:
			err = fmt.Errorf("panic while reading a file: %T\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// failure classifies an error.
func failure(ctx context.Context, err error) error {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.Wrap(fault.BadStatement, err, "The file is damaged, or not of the format that the statement names; nothing was loaded")
}
