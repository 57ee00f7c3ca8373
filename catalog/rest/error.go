package rest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// Error is why a call did not succeed. Its text is for the log of the operator.
type Error struct {
	// Operation is the call: "load table".
	Operation string
	// Status is that of the answer, 0 when there was none.
	Status int
	// Type and Message are what the catalog said ("NoSuchTableException"), "" when its
	// answer has not the form of an error of the protocol.
	Type, Message string
	// Outcome: a call that changes something was sent, and whether it was done is not
	// known.
	Outcome Outcome
	cause   error
}

// Outcome is what is known of a call that failed.
type Outcome uint8

// The zero value: nothing was done.
const (
	NotDone Outcome = iota
	Unknown
)

// Error is the text for the operator.
func (e *Error) Error() string {
	switch {
	case e.Status == 0:
		return fmt.Sprintf("%s: %v", e.Operation, e.cause)
	case e.Type == "":
		return fmt.Sprintf("%s: answer %d, not in the form of the protocol", e.Operation, e.Status)
	}
	return fmt.Sprintf("%s: answer %d %s: %s", e.Operation, e.Status, e.Type, e.Message)
}

// Unwrap gives the cause of a call without an answer.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether err is an answer of that status in the form of the protocol.
// A 404 of a proxy says nothing about a table.
func Is(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status && e.Type != ""
}

// IsType is Is for a type of error.
func IsType(err error, kind string) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == kind
}

// errNonsense: the answer is no answer of this protocol.
var errNonsense = errors.New("the answer is not one of an Iceberg REST catalog")

// most of an error that is read, and kept of what it says.
const (
	mostError   = 256 << 10
	mostMessage = 300
)

// failure reads an answer that is not 2xx.
func failure(operation string, status int, body []byte) *Error {
	out := &Error{Operation: operation, Status: status}
	var said struct {
		Error json.RawMessage `json:"error"`
		// Of a token endpoint (RFC 6749, 5.2) "error" is the kind.
		Description string `json:"error_description"`
		// Some catalogs send the inner object alone.
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil {
		return out
	}
	var inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	switch {
	case len(said.Error) > 0 && json.Unmarshal(said.Error, &inner) == nil && inner.Type != "":
		out.Type, out.Message = inner.Type, inner.Message
	case len(said.Error) > 0 && json.Unmarshal(said.Error, &inner.Type) == nil:
		out.Type, out.Message = inner.Type, said.Description
	case said.Type != "":
		out.Type, out.Message = said.Type, said.Message
	}
	out.Type, out.Message = printable(out.Type), printable(out.Message)
	return out
}

// printable bounds a text of the server to one line for the log.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > mostMessage {
		s = strings.ToValidUTF8(s[:mostMessage], "") + "…"
	}
	return s
}

// unanswered is a call that has no answer.
func unanswered(operation, method string, err error) *Error {
	out := &Error{Operation: operation, cause: err}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		out.cause = inURL.Err // without the address
	}
	// What did not get a connection was not sent.
	var op *net.OpError
	if method != http.MethodGet && !(errors.As(err, &op) && op.Op == "dial") {
		out.Outcome = Unknown
	}
	return out
}

// TimedOut reports whether the server took longer for an answer than it may.
func TimedOut(err error) bool { return errors.Is(err, context.DeadlineExceeded) || timedOut(err) }

// Untrusted reports whether no connection was made because of TLS: the certificate of
// the server is not one that is trusted, it refuses that of the client, or it speaks
// none.
func Untrusted(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
	)
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert)
}

// Nonsense reports whether the server answered what is no answer of the protocol.
func Nonsense(err error) bool { return errors.Is(err, errNonsense) }
