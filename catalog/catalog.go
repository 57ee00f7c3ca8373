// Package catalog finds and loads Iceberg tables and views behind one interface,
// whatever kind of catalog holds them.
//
// Invariants: a catalog answers for the principal of the context (identity), or
// for the service when its configuration says so; a name that does not exist is
// fault.NotFound; a table is returned with the schema of the selected snapshot
// and with its column tags by Iceberg field id; what is cached is keyed by the
// metadata location and never by principal. The package decides nothing about
// access and must never return data rows.
package catalog

import (
	"context"

	"sqe/plan"
)

// Catalog is one Iceberg catalog.
type Catalog interface {
	// Name is the name from the configuration, the first part of full names.
	Name() string
	// Namespaces lists every namespace of every depth, sorted.
	Namespaces(ctx context.Context) ([][]string, error)
	// NamespacesIn lists the namespaces directly in one, sorted, with their full names; nil
	// is the top. In one that is missing, or may not be looked into, there are none.
	NamespacesIn(ctx context.Context, parent []string) ([][]string, error)
	// Tables and Views list the names in one namespace, sorted.
	Tables(ctx context.Context, namespace []string) ([]string, error)
	Views(ctx context.Context, namespace []string) ([]string, error)
	// Table loads a table. metadata is "" for its data, else the kind of metadata
	// table (plan.Table.Metadata).
	Table(ctx context.Context, name plan.TableName, at plan.AsOf, metadata string) (*plan.Table, error)
	// View loads a view.
	View(ctx context.Context, name plan.TableName) (*View, error)
	// UpdateProperties changes the properties of a table. change is given the
	// table and a copy of its properties as they are now and says which to set and
	// which to remove; nothing to do is no commit. It is called again when another
	// writer was faster, and two changes of one table never run at once in this
	// process. It returns the table as it is after the change. A table that other
	// writers do not leave alone is fault.Conflict; then nothing was changed. Who
	// sets a Reserved property must have asked whether the principal may.
	UpdateProperties(ctx context.Context, name plan.TableName, change PropertyChange) (*plan.Table, error)
	// Close releases connections.
	Close() error
}

// PropertyChange decides a change of table properties.
type PropertyChange func(t *plan.Table, props map[string]string) (set map[string]string, remove []string, err error)

// View is a stored query.
type View struct {
	Name plan.TableName
	UUID string
	// SQL is the query text of the current version in the dialect "sqe" or
	// "mysql"; a view that has neither is fault.Unsupported.
	SQL string
	// Catalog and Namespace are where unqualified names in SQL are looked up.
	Catalog    string
	Namespace  []string
	Fields     []plan.Field
	Properties map[string]string
	Version    string
}

// Preloader is a catalog that is worth telling what will be asked next: it then asks
// its server for several things at a time and keeps the answers for as long as it
// may. Nothing is given away by it: the answers are for the principal of ctx alone.
// The caller has asked whether that principal may know what it names. What fails is
// left for the call that needs it.
type Preloader interface {
	// PreloadNames is for Tables and Views of the namespaces.
	PreloadNames(ctx context.Context, namespaces [][]string)
	// Preload is for Table and View. What may be kept for one statement only is kept
	// where the context is that of one (WithStatement).
	Preload(ctx context.Context, wanted []Wanted)
}

// Wanted is a name that will be asked for, and as what.
type Wanted struct {
	Name        plan.TableName
	Table, View bool
}
