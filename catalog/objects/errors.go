package objects

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// What an Error is, beside fs.ErrNotExist.
var (
	// ErrDenied: the credentials are unknown or expired, or may not do this.
	ErrDenied = errors.New("the store refuses the credentials or the access")
	// ErrBucket: there is no such bucket, or it is at another endpoint or region.
	ErrBucket = errors.New("the bucket is not there, or in another region")
	// ErrUnavailable: the store does not answer, is overloaded or fails.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrRefused: the store takes the request for wrong.
	ErrRefused = errors.New("the store does not take the request")
	// ErrChanged: another object came in the place of the one that is being read.
	ErrChanged = errors.New("the object changed while it was read")
	// ErrOutside: the object is none that these files may reach.
	ErrOutside = errors.New("the object lies outside the folder of its table and warehouse")
	// ErrSlow: nothing came within the timeout.
	ErrSlow = errors.New("the store was silent for too long")
)

// Error is a failed request. Its text holds nothing that the store said but its code
// and the number of the request, and no address: neither can be trusted to be free of
// what was sent.
type Error struct {
	Operation string
	Status    int    // 0: no answer
	Code      string // of the store, such as "AccessDenied"
	Request   string // the store's number of the request
	is        error
	cause     error // of the network
	reason    error // why there are no credentials
	retry     bool
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "object store: %s: %s", e.Operation, e.is)
	if e.Status == 0 && e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d", e.Status)
		if e.Code != "" {
			fmt.Fprintf(&b, ", %s", e.Code)
		}
		if e.Request != "" {
			fmt.Fprintf(&b, ", request %s", e.Request)
		}
		b.WriteString(")")
	}
	if e.cause != nil {
		fmt.Fprintf(&b, ": %s", e.cause)
	}
	if e.reason != nil {
		fmt.Fprintf(&b, ": %s", e.reason)
	}
	return b.String()
}

// Detail is what the log may say beside what the error is: the operation, the code of
// the store and its number of the request, or what the network said. It has no address.
func (e *Error) Detail() string {
	parts := []string{e.Operation}
	if e.Status != 0 {
		parts = append(parts, fmt.Sprintf("status %d", e.Status))
	}
	if e.Code != "" {
		parts = append(parts, e.Code)
	}
	if e.Request != "" {
		parts = append(parts, "request "+e.Request)
	}
	var number syscall.Errno
	var name *net.DNSError
	var record tls.RecordHeaderError
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(e.cause, &number):
		parts = append(parts, number.Error())
	case errors.As(e.cause, &name):
		parts = append(parts, "the name of the store is not known")
	case errors.As(e.cause, &record), e.cause != nil && strings.Contains(e.cause.Error(), "HTTP response to HTTPS client"):
		parts = append(parts, "the store does not speak TLS at this port")
	case errors.As(e.cause, &unverified):
		parts = append(parts, "the certificate of the store is not trusted")
	}
	return strings.Join(parts, ", ")
}

// Unwrap gives what the error is, and why there are no credentials.
func (e *Error) Unwrap() []error {
	if e.reason != nil {
		return []error{e.is, e.reason}
	}
	return []error{e.is}
}

var deniedCodes = map[string]bool{
	"AccessDenied": true, "AllAccessDisabled": true, "InvalidAccessKeyId": true, "SignatureDoesNotMatch": true, "ExpiredToken": true,
	"ExpiredTokenException": true, "InvalidToken": true, "TokenRefreshRequired": true, "RequestTimeTooSkewed": true, "AccountProblem": true,
	"NotSignedUp": true, "XAdminUserNotFound": true, "Forbidden": true, "Unauthorized": true, "MissingSecurityHeader": true, "AuthorizationHeaderMalformed": true,
}

// missingCodes are what a store says of an object that is not there; "" where it sends
// no text. Stores answer 404 for other reasons too.
var missingCodes = map[string]bool{"": true, "NoSuchKey": true, "NotFound": true, "NoSuchVersion": true}

// classify makes an Error of what a request ended with.
func classify(operation string, err error) *Error {
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	e := &Error{Operation: operation}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code = plain(api.ErrorCode())
	}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		e.Status = answer.HTTPStatusCode()
	}
	var numbered *awshttp.ResponseError
	if errors.As(err, &numbered) {
		e.Request = plain(numbered.RequestID)
	}
	switch {
	case errors.Is(err, ErrSlow):
		e.is, e.retry = ErrUnavailable, true
		e.cause = ErrSlow
	case e.Status == 0:
		e.is, e.retry, e.cause = ErrUnavailable, true, network(err)
	case e.Code == "NoSuchBucket" || e.Code == "PermanentRedirect" || e.Status == http.StatusMovedPermanently || e.Status == http.StatusTemporaryRedirect:
		e.is = ErrBucket
	case deniedCodes[e.Code] || e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized:
		e.is = ErrDenied
	case e.Status == http.StatusNotFound && missingCodes[e.Code]:
		e.is = fs.ErrNotExist
	case e.Status == http.StatusNotImplemented:
		e.is = ErrRefused
	case e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Code == "RequestTimeout" || e.Code == "SlowDown":
		e.is, e.retry = ErrUnavailable, true
	case e.Status < 300: // an answer that ended too early or says nothing
		e.is, e.retry, e.cause = ErrUnavailable, true, network(err)
	default:
		e.is = ErrRefused
	}
	return e
}

// network is what of an error comes from the network and not from the request.
func network(err error) error {
	var u *url.Error
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		return op
	case errors.As(err, &u):
		return u.Err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, errNonsense):
		return errNonsense
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return fmt.Errorf("%T", err)
}

// errNonsense: the answer is not one to the request.
var errNonsense = errors.New("the answer makes no sense")

// plain is a short text of letters and digits, "" for any other.
func plain(s string) string {
	if len(s) > 64 {
		return ""
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		default:
			return ""
		}
	}
	return s
}
