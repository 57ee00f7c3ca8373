package duck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sqe/fault"
)

// Texts that errors of this package's own functions begin with inside DuckDB.
const (
	panicMark  = "sqe-panic: "
	rangeMark  = "sqe-range: "
	limitMark  = "sqe-limit: "
	streamMark = "sqe-stream: "
	jsonMark   = "sqe-json: "
	roundsMark = "sqe-rounds: "
	textMark   = "sqe-text: "
	rowMark    = "sqe-row: "
	memoryMark = "sqe-memory: "
)

// engineError is an error of DuckDB. Its text holds values of rows: it is a
// cause, never the text of a fault.
type engineError struct{ text string }

func (e *engineError) Error() string { return e.text }

// classes maps the beginning of DuckDB's error text, which is its error class.
var classes = []struct {
	prefix string
	kind   fault.Kind
	text   string
}{
	{"Out of Range Error", fault.OutOfRange, "a numeric result is out of range"},
	{"Conversion Error", fault.OutOfRange, "a value is out of range or cannot be converted"},
	{"Decimal", fault.OutOfRange, "a numeric result is out of range"},
	{"Out of Memory Error", fault.Limit, "the statement needs more memory than memory-limit allows; make it smaller, or raise memory-limit or max-temp-size"},
	{"INTERRUPT Error", fault.Cancelled, "the statement was cancelled"},
	{"Interrupt Error", fault.Cancelled, "the statement was cancelled"},
	{"IO Error", fault.Corrupt, "a data file is missing or cannot be read"},
	{"Permission Error", fault.Corrupt, "a data file is not below the folder that the setting warehouse of its catalog names"},
	{"HTTP Error", fault.Corrupt, "a data file is missing or cannot be read"},
	{"Serialization Error", fault.Corrupt, "a data file is broken"},
	{"Not implemented Error", fault.Unsupported, "the statement uses a form of query that cannot be computed"},
	{"Object Size Error", fault.Limit, "a value is too large"},
}

// failure maps an error text of DuckDB to a fault.
func failure(ctx context.Context, msg string) error {
	cause := &engineError{text: msg}
	if err := cancelled(ctx); err != nil {
		return err
	}
	switch {
	case strings.Contains(msg, rangeMark):
		return fault.Wrap(fault.OutOfRange, cause, "a numeric result is out of range")
	case strings.Contains(msg, textMark):
		return fault.Wrap(fault.OutOfRange, cause, "a text is no number, date or time, or is out of the range of the type that it is converted to")
	case strings.Contains(msg, jsonMark):
		return fault.Wrap(fault.BadStatement, cause, "Invalid JSON text in a value of a JSON function")
	case strings.Contains(msg, roundsMark):
		return fault.Wrap(fault.Limit, cause, "the recursive query repeats more than %d times; give it a condition that ends it", maxRounds)
	case strings.Contains(msg, limitMark):
		return fault.Wrap(fault.Limit, cause, "a text result is longer than 16 MiB")
	case strings.Contains(msg, "More than one row returned by a subquery"):
		return fault.Wrap(fault.BadStatement, cause, "Subquery returns more than 1 row")
	case strings.Contains(msg, memoryMark) || strings.Contains(msg, "max_temp_directory_size") || strings.Contains(msg, "failed to offload data block"):
		return fault.Wrap(fault.Limit, cause, "the statement needs more memory than memory-limit allows; make it smaller, or raise memory-limit or max-temp-size")
	case strings.Contains(msg, "expression depth") || strings.Contains(msg, "memory exhausted"):
		return fault.Wrap(fault.Limit, cause, "the statement is nested too deeply; make its expressions flatter")
	case broken(msg):
		return fault.Wrap(fault.Corrupt, cause, "a data file is broken")
	}
	for _, class := range classes {
		if strings.HasPrefix(msg, class.prefix) {
			return fault.Wrap(class.kind, cause, "%s", class.text)
		}
	}
	if strings.HasPrefix(msg, "Binder Error") {
		// Of a text that this package made: a combination that DuckDB does not have.
		return fault.Wrap(fault.Unsupported, cause, "the statement uses a combination of sub-queries that cannot be computed; write it with a join")
	}
	return fault.Wrap(fault.Internal, cause, "the statement could not be computed")
}

// invalidated reports whether DuckDB refuses to work after this error.
func invalidated(msg string) bool {
	return strings.HasPrefix(msg, "INTERNAL Error") || strings.HasPrefix(msg, "FATAL Error") ||
		strings.Contains(msg, "database has been invalidated")
}

// broken reports whether the error is about the content of a data file.
func broken(msg string) bool {
	switch {
	case strings.HasPrefix(msg, "Invalid Error"):
		// What the Parquet and Thrift readers throw.
		return true
	case strings.HasPrefix(msg, "Invalid Input Error"):
		low := strings.ToLower(msg)
		for _, word := range []string{"parquet", "magic bytes", "decompress", "corrupt", "snappy", "zstd", "unicode", "utf8"} {
			if strings.Contains(low, word) {
				return true
			}
		}
	case strings.HasPrefix(msg, "Binder Error"):
		// A column that the table's metadata promises is not in the file.
		return strings.Contains(msg, "Referenced column") || strings.Contains(msg, "not found in FROM clause")
	}
	return false
}

// cancelled is the fault for a context that ended, nil while it has not.
func cancelled(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	var f *fault.Fault
	switch {
	case errors.As(cause, &f):
		return f
	case errors.Is(cause, context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, cause, "the statement ran longer than its time limit")
	}
	return fault.Wrap(fault.Cancelled, cause, "the statement was cancelled")
}

func internal(format string, args ...any) error {
	return fault.Wrap(fault.Internal, fmt.Errorf(format, args...), "the statement could not be computed")
}
