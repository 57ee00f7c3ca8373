// Package data writes the sample tables of the demo: a small retail bank in the
// namespace "bank".
//
// Invariants: what is written is the same on every machine; a second call finds
// the tables and changes nothing; a call that was interrupted is repeated from the
// start for the table in question; a table that the package did not make is left
// alone. The package must never write outside the namespace "bank".
package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// Namespace holds the sample tables.
const Namespace = "bank"

// stateProperty says whether a sample table is complete.
const stateProperty = "sqe.demo"

const (
	building = "building"
	complete = "complete"
)

// Write creates the namespace and those of the sample tables and views that do
// not exist:
//
//   - customers: 12 rows, three snapshots, one row deleted merge-on-read
//   - payments: 24 rows, three snapshots, partitioned by the year of booked_at
//   - branch_access: which user works for which branch
//   - profiles: nested columns
//   - eu_payments: a view over customers and payments
func Write(ctx context.Context, c *catalog.SQL) error {
	w := writer{ctx: ctx, catalog: c, ice: c.Iceberg()}
	exists, err := w.ice.CheckNamespaceExists(ctx, table.Identifier{Namespace})
	if err != nil {
		return failed(err)
	}
	if !exists {
		err := w.ice.CreateNamespace(ctx, table.Identifier{Namespace}, iceberg.Properties{"comment": "sample tables of a retail bank"})
		if err != nil && !errors.Is(err, icebergcatalog.ErrNamespaceAlreadyExists) {
			return failed(err)
		}
	}
	for _, t := range tables {
		if err := w.table(t); err != nil {
			return failed(fmt.Errorf("table %s: %w", t.name, err))
		}
	}
	return w.view()
}

func failed(err error) error {
	return fault.Wrap(fault.Unavailable, err, "The sample tables cannot be written; choose a folder that this user may write and that has space")
}

type writer struct {
	ctx     context.Context
	catalog *catalog.SQL
	ice     icebergcatalog.Catalog
}

func (w writer) table(s sample) error {
	id := table.Identifier{Namespace, s.name}
	switch t, err := w.ice.LoadTable(w.ctx, id); {
	case errors.Is(err, icebergcatalog.ErrNoSuchTable):
	case err != nil:
		return err
	case t.Properties()[stateProperty] != building:
		return nil
	default:
		if err := w.ice.DropTable(w.ctx, id); err != nil {
			return err
		}
	}
	props := iceberg.Properties{"format-version": "2", "comment": s.comment, stateProperty: building}
	for k, v := range s.props {
		props[k] = v
	}
	if s.tags != nil {
		text, err := catalog.FormatTags(s.tags)
		if err != nil {
			return err
		}
		props[catalog.TagsProperty] = text
	}
	spec := iceberg.NewPartitionSpec(s.partition...)
	t, err := w.ice.CreateTable(w.ctx, id, s.schema, icebergcatalog.WithPartitionSpec(&spec), icebergcatalog.WithProperties(props))
	if err != nil {
		return err
	}
	for _, rows := range s.appends {
		if t, err = w.append(t, rows); err != nil {
			return err
		}
	}
	if s.remove != nil {
		if t, err = t.Delete(w.ctx, s.remove, nil); err != nil {
			return err
		}
	}
	tx := t.NewTransaction()
	if err := tx.SetProperties(iceberg.Properties{stateProperty: complete}); err != nil {
		return err
	}
	_, err = tx.Commit(w.ctx)
	return err
}

// append adds rows, a JSON list of objects.
func (w writer) append(t *table.Table, rows string) (*table.Table, error) {
	schema, err := table.SchemaToArrowSchema(t.Schema(), nil, false, false)
	if err != nil {
		return nil, err
	}
	data, err := array.TableFromJSON(memory.DefaultAllocator, schema, []string{rows})
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return t.AppendTable(w.ctx, data, data.NumRows(), nil)
}

func (w writer) view() error {
	name := plan.TableName{Catalog: w.catalog.Name(), Namespace: []string{Namespace}, Name: "eu_payments"}
	_, err := w.catalog.View(w.ctx, name)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return err
	}
	_, err = w.catalog.CreateView(w.ctx, name, catalog.ViewDefinition{
		SQL: euPaymentsSQL, Fields: catalog.Fields(euPaymentsSchema), Comment: "payments of customers who reside in the EU",
	}, catalog.ViewOptions{})
	if fault.Is(err, fault.Exists) {
		return nil // there is something of that name, which is not ours to replace
	}
	return err
}
