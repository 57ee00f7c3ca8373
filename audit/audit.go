// Package audit records one event for each statement, each denial and each login:
// who, when, which tables at which snapshot, which policies acted, and how it
// ended.
//
// Invariants: events of one process are numbered without gaps in the order in
// which they were recorded; an event that cannot be recorded is an error, on which
// the caller refuses (unless the administrator chose otherwise); an event holds a
// fingerprint of the statement and no literal of it, and of an error the text for
// the user alone.
//
// The package must never decide about access, and never hold a value of a row.
package audit

import (
	"errors"
	"time"

	"sqe/fault"
	"sqe/identity"
	"sqe/policy"
)

// Event is one line of the audit log. Version 1 of the format: members may be
// added, none changes its meaning.
type Event struct {
	// Run names the process and Seq counts its events from 1: a gap is a lost
	// event. Both are set by the sink, as is Time when it is zero.
	Run  string    `json:"run"`
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Type is "statement", "login", or "policy": somebody erased a change of a policy
	// by writing an older version (User, if known); Kind is "lost" or "restored".
	Type string `json:"type"`

	User       string   `json:"user"`
	Groups     []string `json:"groups,omitempty"`
	Roles      []string `json:"roles,omitempty"`
	Remote     string   `json:"remote,omitempty"` // host:port
	Connection uint32   `json:"connection,omitempty"`
	Database   string   `json:"database,omitempty"`

	// Statement is the fingerprint: the statement with ? for every literal.
	Statement string   `json:"statement,omitempty"`
	Kind      string   `json:"kind,omitempty"` // "query", "show", "explain", ...
	Tables    []Table  `json:"tables,omitempty"`
	Policies  []Action `json:"policies,omitempty"`
	Denials   []Denial `json:"denials,omitempty"`
	Changes   []Change `json:"changes,omitempty"`
	// Grantees are those to whom the statement gave, denied or from whom it took
	// something: "USER ann", "ROLE teller".
	Grantees []string `json:"grantees,omitempty"`

	Rows       int64   `json:"rows"`
	DurationMS float64 `json:"duration_ms"`
	// Outcome is "ok", "denied", or the kind of the error.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"` // the text that the user was told
	// Reason is why a login was refused, which the client was not told; of a policy what
	// was erased.
	Reason string `json:"reason,omitempty"`
}

// Table is a table that a statement read.
type Table struct {
	Name     string `json:"name"`     // catalog.namespace.table
	Snapshot int64  `json:"snapshot"` // 0: the table has none
	// Columns are those that the statement refers to.
	Columns []string `json:"columns,omitempty"`
	// Path are the parts of Name: catalog, levels of the namespace, table.
	Path []string `json:"-"`
}

// Action is a policy that acted on a statement.
type Action struct {
	Table  string `json:"table"`
	Column string `json:"column,omitempty"`
	// What it did: "allow" (it let the principal read the table), "row-filter",
	// "mask", "fixed", "null", "withheld", "exempt".
	What string `json:"what"`
	// Action names the mask.
	Action string `json:"action,omitempty"`
	// Unused: the statement does not refer to the column.
	Unused bool          `json:"unused,omitempty"`
	Origin policy.Origin `json:"origin"`
}

// Denial is a refusal of the object gate.
type Denial struct {
	Object    string          `json:"object"` // catalog.namespace.table
	Privilege string          `json:"privilege"`
	Reason    policy.Reason   `json:"reason"`
	By        []policy.Origin `json:"by,omitempty"`
	// Path are the parts of Object.
	Path []string `json:"-"`
}

// Change is an object that the object gate let the principal create, change or
// drop. Whether the statement did it, the outcome says.
type Change struct {
	Object     string          `json:"object"` // of a creation, what is to hold the new one
	Privileges []string        `json:"privileges"`
	By         []policy.Origin `json:"by,omitempty"`
	// Path are the parts of Object.
	Path []string `json:"-"`
}

// Of fills in who the event is about.
func (e *Event) Of(p identity.Principal) {
	e.User, e.Groups, e.Roles = p.Name, p.Groups, p.Roles
	if p.ActiveRoles != nil {
		e.Roles = p.ActiveRoles
	}
}

// Ended fills in how it ended: nil is "ok". Of the error only its kind and the
// text for the user are kept; one without a kind is "internal" without a text.
func (e *Event) Ended(err error) {
	e.Outcome, e.Error = "ok", ""
	if err == nil {
		return
	}
	kind := fault.KindOf(err)
	e.Outcome = kind.String()
	if kind == fault.Denied || kind == fault.Withheld || kind == fault.Auth {
		e.Outcome = "denied"
	}
	if f := (*fault.Fault)(nil); errors.As(err, &f) && kind != fault.Internal {
		e.Error = f.Text
	}
}

// Sink is where events go. It is safe for concurrent use.
type Sink interface {
	// Ready reports whether an event can be recorded now. It is asked before a
	// statement runs, so that a statement whose event would be lost does not run.
	Ready() error
	// Record records an event. When it fails the statement must not succeed.
	Record(Event) error
}

// Discard is the sink of a server that has no audit log by configuration.
type Discard struct{}

// Ready implements Sink.
func (Discard) Ready() error { return nil }

// Record implements Sink.
func (Discard) Record(Event) error { return nil }

// refused is the error for the user when an event cannot be recorded.
func refused(cause error) error {
	return fault.Wrap(fault.Unavailable, cause, "the audit log cannot be written, so statements are refused; tell the administrator")
}
