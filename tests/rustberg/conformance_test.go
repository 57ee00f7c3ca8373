//go:build e2e

package rustberg

import (
	"strings"
	"testing"

	"sqe/catalog/rest"
	"sqe/tests/catalogstest"
)

// TestConformance: what holds for every kind of catalog.
func TestConformance(t *testing.T) {
	policies(t)
	catalogstest.Conformance(t, catalogstest.Site{
		Open: catalogstest.REST(rest.Options{
			URI: lake.Address, Tokens: catalogstest.Tokens(func() (string, error) { return people.Token(t, "carol"), nil }),
		}, lake.Files),
		// It takes most names, makes locations of them as they are, and then no file whose
		// location iceberg-go writes with escapes.
		Insists: func(_ []string, n string) bool { return strings.Contains(n, "%") },
		Refuses: func(n string) bool {
			return strings.ContainsAny(n, " /?#\"[]{}^|") || strings.ContainsFunc(n, func(r rune) bool { return r > '~' }) || strings.HasSuffix(n, "%")
		},
	})
}
