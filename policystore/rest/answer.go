package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"sqe/rangerclient/admin"
)

// vxResponse is VXResponse, which a Ranger Admin answers with when it refuses.
type vxResponse struct {
	Status   int       `json:"statusCode"`
	Text     string    `json:"msgDesc,omitempty"`
	Messages []message `json:"messageList,omitempty"`
}

type message struct {
	Name    string `json:"name"`
	Key     string `json:"rbKey"`
	Text    string `json:"message"`
	Object  int64  `json:"objectId,omitempty"`
	FieldOf string `json:"fieldName,omitempty"`
}

// answer is a refusal as it is sent.
type answer struct {
	status int
	body   any    // JSON; nil: none
	page   string // HTML instead
	bare   bool   // without Content-Type, as Ranger sends some
}

func (a *answer) Error() string { return fmt.Sprintf("status %d", a.status) }

var (
	errLogin    = &answer{status: 401, body: vxResponse{Status: 401, Text: "Authentication Failed"}, bare: true}
	errNoPage   = &answer{status: 404}
	errMethod   = &answer{status: 405, page: page(405)}
	errXSRF     = &answer{status: 400, page: "<html><body>Missing header or invalid Header value for CSRF Vulnerability Protection: X-XSRF-HEADER</body></html>"}
	errTooLarge = &answer{status: 413, body: vxResponse{Status: 413, Text: "The request is larger than this server takes"}}
	internal    = vxResponse{Status: 500, Text: "The policy store failed; its log says why"}
)

func page(status int) string {
	return fmt.Sprintf("<!doctype html><html lang=\"en\"><head><title>HTTP Status %d</title></head><body><h1>HTTP Status %d - %s</h1></body></html>", status, status, http.StatusText(status))
}

// notForUsers refuses a call that only administrators may make. A Ranger Admin
// shows its login page, which knows no PUT and DELETE.
func notForUsers(method string) error {
	if method == http.MethodPut || method == http.MethodDelete {
		return errMethod
	}
	return &answer{status: 403, page: page(403)}
}

func forbidden(format string, args ...any) error {
	return &answer{status: 403, body: vxResponse{Status: 403, Text: fmt.Sprintf(format, args...)}}
}

func bad(format string, args ...any) error {
	return &answer{status: 400, body: vxResponse{Status: 1, Text: fmt.Sprintf(format, args...)}}
}

// malformed refuses a body that cannot be read.
func malformed(text string) error {
	return &answer{status: 400, body: map[string]any{"RemoteException": map[string]string{
		"exception": "WebApplicationException", "message": text, "javaClassName": "javax.ws.rs.WebApplicationException",
	}}}
}

// refuse sends an error.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var a *answer
	var e *admin.Error
	switch {
	case errors.As(err, &a):
	case errors.As(err, &e):
		a = refusal(e)
	case r.Context().Err() != nil:
		return // nobody listens
	default:
		h.o.Log.Error("a request to the policy store failed", "method", r.Method, "path", r.URL.Path, "error", err.Error())
		a = &answer{status: 500, body: internal}
	}
	switch {
	case a.page != "":
		w.Header().Set("Content-Type", "text/html;charset=utf-8")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.page))
	case a.body == nil:
		w.WriteHeader(a.status)
	case a.bare:
		w.Header()["Content-Type"] = nil // and none is guessed
		w.WriteHeader(a.status)
		text, _ := json.Marshal(a.body)
		_, _ = w.Write(text)
	default:
		writeJSON(w, a.status, a.body)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		status, b = http.StatusInternalServerError, bytes.Buffer{}
		_ = json.NewEncoder(&b).Encode(internal)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// Texts by which clients of a Ranger Admin know what happened.
const (
	lockText       = "OptimisticLockException"
	referencedText = "can not be deleted as it is referenced"
	noDataText     = "Data Not Found for given Id"
	notFoundText   = "Not found"
	principalText  = "Operation denied."
)

// refusal is what a Ranger Admin answers: nearly always 400, with the kind in the
// text only.
func refusal(e *admin.Error) *answer {
	out := vxResponse{Status: 1, Text: e.Reason}
	status := http.StatusBadRequest
	switch e.Kind {
	case admin.Unauthenticated:
		return errLogin
	case admin.Forbidden:
		status, out.Status = http.StatusForbidden, http.StatusForbidden
	case admin.NotFound:
		switch {
		case e.Reason == notFoundText:
			status, out.Status = http.StatusNotFound, http.StatusNotFound
		case strings.Contains(e.Reason, noDataText):
			out.Messages = []message{{Name: "DATA_NOT_FOUND", Key: "xa.error.data_not_found", Text: "Data not found"}}
		}
	case admin.Exists:
		if e.Code == 0 {
			out.Messages = []message{{Name: "ERROR_DUPLICATE_OBJECT", Key: "xa.error.duplicate_object", Text: "Error creating duplicate object"}}
		}
	case admin.UnknownPrincipal:
		if strings.HasPrefix(e.Reason, principalText) {
			out.Status = http.StatusBadRequest
		} else {
			out.Messages = []message{{Name: "INVALID_INPUT_DATA", Key: "xa.validation.invalid_input_data", Text: "Invalid input data"}}
		}
	case admin.Conflict:
		if !strings.Contains(e.Reason, lockText) {
			out.Text = lockText + ": " + e.Reason
		}
	case admin.InUse:
		if !strings.Contains(e.Reason, referencedText) {
			out.Text = e.Reason + " (" + referencedText + ")"
		}
	}
	return &answer{status: status, body: out}
}

// absent replaces what is answered when there is no such object.
func absent(err error, a error) error {
	if admin.KindOf(err) == admin.NotFound {
		return a
	}
	return err
}
