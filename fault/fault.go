// Package fault gives every error that reaches a user a kind, on which callers
// decide and which the server maps to a MySQL error number and SQLSTATE in one
// place.
//
// Invariants: the text of a Fault is what the user reads; it says what to do next
// and never holds a value of a governed column, a policy text or a file path. The
// cause (Unwrap) is for the log of the operator and is never sent to a client.
// An error without a kind is Internal: the client gets a generic text and an id.
package fault

import (
	"errors"
	"fmt"
)

// Kind classifies an error by what the caller can do about it.
type Kind uint8

// The kinds of faults. Internal is the zero value.
const (
	Internal     Kind = iota
	Syntax            // the statement does not parse; the text points at the place
	BadStatement      // it parses and means nothing: wrong type, ambiguous column, wrong argument
	NotFound          // no such object, or the principal may not know that there is one
	NoColumn          // no such column
	NoDatabase        // no such database, or none selected
	NoFunction        // no such function
	Denied            // the principal may not do this
	Withheld          // the column is withheld by a policy that cannot be applied
	PolicyStale       // policies are older than the staleness bound, or were never loaded
	PolicyBroken      // a policy of this table cannot be applied; the table is refused
	Unsupported       // a feature that SQE does not have
	Limit             // memory, rows, bytes, connections, nesting: what to change is in the text
	Timeout           // statement timeout
	Cancelled         // KILL, or the client went away
	Unavailable       // a catalog or store does not answer
	Corrupt           // a data or metadata file is missing or broken
	Conflict          // another writer was faster
	OutOfRange        // a numeric result is out of range, or a value cannot be converted
	Auth              // unknown user or wrong password; one text for both
	Config            // the configuration is wrong
	NoThread          // KILL of a session that does not exist or belongs to somebody else
	Exists            // the object that is to be created exists
	ReadOnly          // the session or its transaction may not write
	NullValue         // a column that needs a value would get none
	NoPrincipal       // no such user, group or role
	BadPrincipal      // a role that is to be made exists, or one that is to be dropped does not
)

// Fault is an error with a kind and a text for the user.
type Fault struct {
	Kind  Kind
	Text  string
	cause error
}

// New makes a fault. Format and args must hold no value of a governed column.
func New(k Kind, format string, args ...any) *Fault {
	return &Fault{Kind: k, Text: fmt.Sprintf(format, args...)}
}

// Wrap makes a fault with a cause that is only for the operator's log.
func Wrap(k Kind, cause error, format string, args ...any) *Fault {
	return &Fault{Kind: k, Text: fmt.Sprintf(format, args...), cause: cause}
}

// Error is the text for the user, without the cause.
func (f *Fault) Error() string { return f.Text }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.cause }

// KindOf is the kind of the outermost fault in err's chain, Internal when there
// is none.
func KindOf(err error) Kind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return Internal
}

// Is reports whether err is a fault of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

var kindNames = map[Kind]string{
	Internal: "internal", Syntax: "syntax", BadStatement: "bad-statement", NotFound: "not-found",
	NoColumn: "no-column", NoDatabase: "no-database", NoFunction: "no-function", Denied: "denied", Withheld: "withheld",
	PolicyStale: "policy-stale", PolicyBroken: "policy-broken", Unsupported: "unsupported",
	Limit: "limit", Timeout: "timeout", Cancelled: "cancelled", Unavailable: "unavailable",
	Corrupt: "corrupt", Conflict: "conflict", OutOfRange: "out-of-range", Auth: "auth",
	Config: "config", NoThread: "no-thread", Exists: "exists", ReadOnly: "read-only", NullValue: "null-value",
	NoPrincipal: "no-principal", BadPrincipal: "bad-principal",
}

// String names the kind for logs, metrics and the audit log.
func (k Kind) String() string { return kindNames[k] }
