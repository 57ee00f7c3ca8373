package catalogstest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// Site is a catalog that is to be tested. It holds nothing, or at least none of the
// namespaces that the suite makes, and keeps what the suite makes there.
type Site struct {
	// Open opens the catalog once more, under the name lake. What it opens know nothing
	// of each other, as in several processes.
	Open func(t testing.TB) Changer
	// Refuses says which names of namespaces, tables and views this catalog refuses, or
	// at least does not let rows be added to; nil is none.
	Refuses func(name string) bool
	// Unusable says which names this catalog takes and makes locations of that are none;
	// nil is none.
	Unusable func(name string) bool
	// Insists says which tables the catalog puts at a location of their names as they are,
	// whatever is proposed; nil is none.
	Insists func(namespace []string, name string) bool
	// Purged: the catalog says how many files it deleted.
	Purged bool
}

// Changer is what SQE does with a catalog.
type Changer interface {
	catalog.Catalog
	catalog.Changer
}

// REST opens a REST catalog whose files this machine has in folder. Without tokens
// it asks as nobody.
func REST(o rest.Options, folder string) func(t testing.TB) Changer {
	return func(t testing.TB) Changer {
		t.Helper()
		o := o
		var err error
		if o.HTTP, err = rest.NewHTTP(rest.HTTPOptions{}); err != nil {
			t.Fatal(err)
		}
		if o.Tokens == nil {
			o.Tokens = rest.Anonymous()
		}
		client, err := rest.New(o)
		must(t, err)
		c, err := catalog.OpenREST("lake", client, catalog.RESTOptions{Local: folder})
		must(t, err)
		return c
	}
}

// Tokens are those of one user who may do everything. It is asked for each request,
// so that tokens may live shorter than the suite.
type Tokens func() (string, error)

// Token implements rest.Tokens.
func (f Tokens) Token(context.Context) (rest.Token, error) {
	bearer, err := f()
	return rest.Token{Bearer: bearer, Scope: "suite"}, err
}

// Refused implements rest.Tokens.
func (Tokens) Refused(rest.Token) bool { return false }

type suite struct {
	Site
	c, other Changer
}

// Conformance holds a catalog to what every kind of catalog does.
func Conformance(t *testing.T, site Site) {
	s := &suite{Site: site, c: site.Open(t), other: site.Open(t)}
	t.Cleanup(func() {
		must(t, s.c.Close())
		must(t, s.other.Close())
	})
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Namespaces", s.namespaces},
		{"Tables", s.tables},
		{"Layout", s.layout},
		{"Alter", s.alter},
		{"Fill", s.fill},
		{"Replace", s.replace},
		{"Commits", s.commits},
		{"Refs", s.refs},
		{"Tags", s.tags},
		{"Views", s.views},
		{"MetadataTables", s.metadataTables},
		{"OddNames", s.oddNames},
		{"Places", s.places},
		{"Writers", s.writers},
	} {
		t.Run(part.name, part.run)
	}
}

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func wants(t testing.TB, what string, err error, k fault.Kind) {
	t.Helper()
	if !fault.Is(err, k) {
		t.Errorf("%s: %v (%v), want %v", what, err, errors.Unwrap(err), k)
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func in(ns string, name string) plan.TableName {
	return plan.TableName{Catalog: "lake", Namespace: []string{ns}, Name: name}
}

func namespace(t testing.TB, c Changer, ns ...string) {
	t.Helper()
	must(t, c.CreateNamespace(ctx, ns, nil, false))
}

func field(name string, t arrow.DataType) plan.Field { return plan.Field{Name: name, Type: t} }

var people = catalog.TableDefinition{Fields: []plan.Field{{Name: "id", Type: plan.Int64, Required: true}, field("ssn", plan.String), field("born", plan.Timestamp)}}

func made(t testing.TB, c Changer, n plan.TableName, d catalog.TableDefinition) *plan.Table {
	t.Helper()
	out, created, err := c.CreateTable(ctx, n, d, catalog.CreateOptions{})
	must(t, err)
	if !created {
		t.Fatalf("%s was not created", n)
	}
	return out
}

func load(t testing.TB, c Changer, n plan.TableName) *plan.Table {
	t.Helper()
	out, err := c.Table(ctx, n, plan.AsOf{}, "")
	must(t, err)
	return out
}

// Rows appends rows, a JSON list of objects.
func Rows(text string) catalog.TableChange {
	return func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		schema, err := table.SchemaToArrowSchema(t.Handle.(*catalog.Handle).Schema, nil, true, false)
		if err != nil {
			return err
		}
		r, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(text))
		if err != nil {
			return err
		}
		defer r.Release()
		data := array.NewTableFromRecords(schema, []arrow.RecordBatch{r})
		defer data.Release()
		return tx.AppendTable(ctx, data, 1000, nil)
	}
}

// counted reads the table and counts its rows.
func counted(t testing.TB, tb *plan.Table) int64 {
	t.Helper()
	h := tb.Handle.(*catalog.Handle)
	if h.Snapshot == nil {
		return 0
	}
	got, err := h.Table.Scan(table.WithSnapshotID(h.Snapshot.SnapshotID)).ToArrowTable(ctx)
	must(t, err)
	defer got.Release()
	return got.NumRows()
}
