package bind

import (
	"context"

	"sqe/catalog"
	"sqe/plan"
)

// Relations is what binding asks about names. The engine implements it for one
// statement and one principal: both gates have been asked, so that a name that
// may not be used and a name that does not exist give the same fault.NotFound.
type Relations interface {
	// Relation finds a table to read. database is what stands before the name, or
	// the current database; see plan.TableName for how it is split.
	Relation(ctx context.Context, database, name string, at plan.AsOf) (*Relation, error)
	// Databases lists the visible databases: namespaces of the default catalog
	// by their dotted name, of other catalogs with the catalog in front.
	Databases(ctx context.Context) ([]string, error)
	// HasDatabase reports whether the database is visible.
	HasDatabase(ctx context.Context, database string) (bool, error)
	// Names lists the visible tables and views of a database, sorted.
	Names(ctx context.Context, database string) (tables, views []string, err error)
}

// Relation is a table or a view. Exactly one of Table and View is set.
type Relation struct {
	Table *plan.Table
	View  *catalog.View
	// Withheld holds the field ids that the principal cannot use: SELECT * leaves
	// them out with a warning, naming one is fault.Withheld, DESCRIBE lists them.
	Withheld map[int]bool
}
