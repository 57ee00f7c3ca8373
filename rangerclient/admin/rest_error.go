package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"sqe/rangerclient/transport"
)

// What a Ranger Admin says about a refusal stands only in its text.
var (
	errorCode = regexp.MustCompile(`error code\[(\d+)\]`)
	// "Operation denied. User name: x specified in policy does not exist in ranger
	// admin.", "user with name: x does not exist", "Grantee user x doesn't exist"
	unknownPrincipal = []*regexp.Regexp{
		regexp.MustCompile(`(?s)(?:User|Group|Role) name: (.+?) specified in policy does not exist`),
		regexp.MustCompile(`(?is)(?:user|group|role) with name: (.+?) does not exist`),
		regexp.MustCompile(`(?s)Grantee (?:user|group|role) (.+?) doesn't exist`),
	}
	// "Another policy already exists for matching resource: policy-name=[x],
	// service=[y]"; for a name the policy's id is told
	takenBy = regexp.MustCompile(`(?s)policy-name=\[(.*?)\], service=`)
)

// What the codes of Ranger's validation (its ValidationErrorCode) mean to a
// caller. Any other is Invalid.
var codeKinds = map[int]Kind{
	1005: NotFound, 1007: Exists, 1008: Exists, 1010: NotFound, // services
	2005: NotFound, 2007: Exists, 2008: Exists, 2025: Exists, // service definitions
	3004: NotFound, 3006: Exists, 3007: NotFound, 3010: Exists, 3033: NotFound, // policies
	3036: Exists, 3037: NotFound, 3040: NotFound, 3046: Exists, // zones
	3051: Exists,                                 // display name of a service
	4005: Exists, 4006: NotFound, 4007: NotFound, // roles
}

// refusal makes an error of an answer that is not a success. Where the text says
// nothing that is known the kind follows the status; a failure of the server
// itself is no *Error: nobody knows what it did.
func refusal(server string, a *transport.Answer) error {
	var doc struct {
		Message   string `json:"msgDesc"`
		Exception *struct {
			Message string `json:"message"`
		} `json:"RemoteException"`
	}
	known := json.Unmarshal(a.Body, &doc) == nil
	e := &Error{Reason: strings.TrimSpace(doc.Message)}
	if doc.Exception != nil {
		e.Reason = strings.TrimSpace(doc.Exception.Message)
	}
	if m := errorCode.FindStringSubmatch(e.Reason); m != nil {
		e.Code, _ = strconv.Atoi(m[1])
	}
	switch {
	case a.Status == http.StatusUnauthorized:
		e.Kind = Unauthenticated
	case a.Status == http.StatusForbidden,
		// What only a Ranger admin may do is refused with a page of HTML.
		a.Status == http.StatusMethodNotAllowed && bytes.Contains(a.Body, []byte("<html")):
		e.Kind = Forbidden
		if e.Reason == "" {
			e.Reason = "only an administrator of Ranger may do this"
		}
	case a.Status == http.StatusNotFound && known && e.Reason != "":
		e.Kind = NotFound
	case a.Status == http.StatusBadRequest && known:
		e.Kind = e.classify()
	default:
		return fmt.Errorf("%s answered %d", server, a.Status)
	}
	return e
}

// classify finds the kind of a 400, and whom or what it is about.
func (e *Error) classify() Kind {
	for _, r := range unknownPrincipal {
		if m := r.FindStringSubmatch(e.Reason); m != nil {
			e.Name = m[1]
			return UnknownPrincipal
		}
	}
	says := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(e.Reason, t) {
				return true
			}
		}
		return false
	}
	switch {
	case says("OptimisticLockException"):
		return Conflict
	case says("x_policy_uk_service_signature", "x_policy_uk_name_service", "duplicate key value", "Duplicate entry"):
		return Exists // two creates at the same moment: the database refused the second
	case says("as it is referenced", "Can Not Delete"):
		return InUse
	}
	if kind, ok := codeKinds[e.Code]; ok {
		if m := takenBy.FindStringSubmatch(e.Reason); m != nil {
			e.Name = m[1]
		}
		return kind
	}
	switch {
	case e.Code != 0:
		return Invalid
	case says("already exists"):
		return Exists
	case says("Data Not Found", "is Not Found", "does not exist", "Not found"):
		return NotFound
	}
	return Invalid
}

// missing says what a refusal is about, and makes NotFound of one that has one of
// the texts: where it is known what was asked for, they mean that it is not there.
func missing(err error, name string, texts ...string) error {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	for _, t := range texts {
		if strings.Contains(e.Reason, t) {
			e.Kind = NotFound
		}
	}
	if e.Kind == NotFound && e.Name == "" {
		e.Name = name
	}
	return err
}
