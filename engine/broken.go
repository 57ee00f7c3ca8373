package engine

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"sqe/fault"
)

// brokenPolicies remembers policies that were found unusable when a statement
// needed them, for SHOW POLICY STATUS: a text can only be bound against a table.
// It holds policy texts and is for administrators.
type brokenPolicies struct {
	mu      sync.Mutex
	version string // of the policies; a new one starts anew
	texts   []string
}

// maxBroken bounds the list.
const maxBroken = 20

func (b *brokenPolicies) add(version string, err error) {
	if !fault.Is(err, fault.PolicyBroken) {
		return
	}
	text := causes(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version != version {
		b.version, b.texts = version, nil
	}
	if len(b.texts) < maxBroken && !slices.Contains(b.texts, text) {
		b.texts = append(b.texts, text)
	}
}

// list is what was found with the policies of this version, or with the last one
// when the version is not known ("").
func (b *brokenPolicies) list(version string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if version != "" && b.version != version {
		return nil
	}
	return append([]string(nil), b.texts...)
}

// causes is what the operator is told of an error, from the table to its reason.
func causes(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", so the table is refused")
	if cause := errors.Unwrap(err); cause != nil {
		text += ": " + cause.Error()
	}
	return text
}
