//go:build e2e

package catalogs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/tests/catalogstest"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func second[T any](_ T, err error) error { return err }

// sites are the kinds of catalog that start here.
var sites = map[string]func(t *testing.T) catalogstest.Site{
	"sqlite": func(t *testing.T) catalogstest.Site {
		dir := t.TempDir()
		return catalogstest.Site{Purged: true, Open: func(t testing.TB) catalogstest.Changer {
			c, err := catalog.OpenSQLite("lake", filepath.Join(dir, "catalog.db"), dir, catalog.SQLOptions{Create: true})
			must(t, err)
			return c
		}}
	},
	"postgres": func(t *testing.T) catalogstest.Site {
		s := StartPostgres(t)
		return catalogstest.Site{Purged: true, Open: func(t testing.TB) catalogstest.Changer {
			c, err := catalog.OpenPostgres("lake", s.Address, s.Warehouse, catalog.SQLOptions{})
			must(t, err)
			return c
		}}
	},
	"rest-plain": func(t *testing.T) catalogstest.Site {
		s := StartREST(t)
		return catalogstest.Site{
			Open: catalogstest.REST(rest.Options{URI: s.Address}, s.Warehouse),
			// Levels of namespaces are parted by a dot there, and its web server refuses an
			// escaped slash or percent sign. Locations are made of names: none with ? or #.
			Refuses: func(n string) bool { return strings.ContainsAny(n, "./%?#") },
		}
	},
}

// TestConformance: what holds for every kind of catalog.
func TestConformance(t *testing.T) {
	for name, site := range sites {
		t.Run(name, func(t *testing.T) { catalogstest.Conformance(t, site(t)) })
	}
}

// TestConformanceGiven runs the suite on the REST catalog of SQE_CATALOG_URI: a
// Polaris, say. What the suite makes there it leaves, so the catalog must be a new one.
// SQE_CATALOG_NAME is what it calls itself, SQE_CATALOG_TOKEN a token that may do
// everything, and SQE_CATALOG_FOLDER where its files lie, which this machine shares.
func TestConformanceGiven(t *testing.T) {
	uri := os.Getenv("SQE_CATALOG_URI")
	if uri == "" {
		t.Skip("SQE_CATALOG_URI names no catalog")
	}
	catalogstest.Conformance(t, catalogstest.Site{
		Open: catalogstest.REST(rest.Options{
			URI: uri, Warehouse: os.Getenv("SQE_CATALOG_NAME"), Tokens: rest.Static("lake", os.Getenv("SQE_CATALOG_TOKEN"), ""),
		}, os.Getenv("SQE_CATALOG_FOLDER")),
		Insists: func(ns []string, _ string) bool { return len(ns) > 1 },
		// Polaris refuses these, others an escaped slash or percent sign.
		Refuses: func(n string) bool { return strings.ContainsAny(n, `./\%:*?"<>|#+;`+"`") },
	})
}
