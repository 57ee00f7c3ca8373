package policystore

import (
	"fmt"
	"strings"

	"sqe/rangerclient/admin"
)

// refuse makes a refusal without a code.
func refuse(k admin.Kind, name, format string, args ...any) *admin.Error {
	return &admin.Error{Kind: k, Name: name, Reason: fmt.Sprintf(format, args...)}
}

// Ranger's words for what is not there. By id and by name they differ.
func noSuchID(class string) *admin.Error {
	return refuse(admin.NotFound, "", "org.apache.ranger.plugin.model.%s :Data Not Found for given Id", class)
}

func noSuchName(name string) *admin.Error { return refuse(admin.NotFound, name, "Not found") }

// failures are what is wrong with an object, in the order in which Ranger's
// validators find it. Source of codes and texts: ValidationErrorCode of Ranger 2.9.
type failures []failure

type failure struct {
	code                    int
	field, subfield, reason string
	typ                     failureType
	name                    string // of what the refusal is about
}

type failureType string

const (
	missing  failureType = "missing"
	wrong    failureType = "semantically incorrect"
	untyped  failureType = ""
	internal failureType = "internal error"
)

func (f *failures) add(code int, field, subfield string, typ failureType, format string, args ...any) {
	*f = append(*f, failure{code: code, field: field, subfield: subfield, typ: typ, reason: fmt.Sprintf(format, args...)})
}

// about names what the last failure is about.
func (f *failures) about(name string) { (*f)[len(*f)-1].name = name }

// kinds are the codes that mean something else than a malformed request.
var kinds = map[int]admin.Kind{
	1005: admin.NotFound, 1007: admin.Exists, 1008: admin.Exists, 1010: admin.NotFound,
	2007: admin.Exists,
	3004: admin.NotFound, 3006: admin.Exists, 3007: admin.NotFound, 3010: admin.Exists, 3033: admin.NotFound,
	3036: admin.Exists, 3037: admin.NotFound, 3040: admin.NotFound, 3046: admin.Exists, 3051: admin.Exists,
	4005: admin.Exists, 4006: admin.NotFound, 4007: admin.NotFound,
}

// err is nil when nothing failed; else a refusal in the words of Ranger, whose
// code, kind and name are those of the first failure.
func (f failures) err() error {
	if len(f) == 0 {
		return nil
	}
	var b strings.Builder
	for i, x := range f {
		sub := x.subfield
		if sub == "" {
			sub = "null"
		}
		fmt.Fprintf(&b, "(%d) Validation failure: error code[%d], reason[%s], field[%s], subfield[%s], type[%s] ", i, x.code, x.reason, x.field, sub, x.typ)
	}
	k, ok := kinds[f[0].code]
	if !ok {
		k = admin.Invalid
	}
	return &admin.Error{Kind: k, Code: f[0].code, Name: f[0].name, Reason: b.String()}
}

// list is a list in Java's notation.
func list(of []string) string { return "[" + strings.Join(of, ", ") + "]" }
