package catalog

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"

	"sqe/plan"
)

// common is what is the same for every kind of catalog that can be changed: how a
// change is prepared, committed and made anew, and what a definition becomes.
type common struct {
	name    string
	backend backend
	// warehouse is the place below which files lie; "" where the catalog decides that
	// itself: then no statement may.
	warehouse string

	writers  *writers
	attempts int // of a change
}

// backend is what one kind of catalog does in its own way.
type backend interface {
	// fresh loads a table as it is now, whatever is cached.
	fresh(ctx context.Context, name plan.TableName) (*plan.Table, error)
	// swap commits a change of a table as it was read. errMoved: it is no more so, and
	// nothing was changed.
	swap(ctx context.Context, t *plan.Table, s staged) (*plan.Table, error)
	// evict drops what is cached of a table version that is no longer the present one.
	evict(t *plan.Table)
	// with is a table with metadata that the catalog does not have (yet).
	with(base *table.Table, name plan.TableName, meta table.Metadata) *table.Table
	// hasTable and hasView are fault.NotFound when there is none of the name.
	hasTable(ctx context.Context, name plan.TableName) error
	hasView(ctx context.Context, name plan.TableName) error
	// createTable creates a table whose name was free a moment ago.
	createTable(ctx context.Context, name plan.TableName, d TableDefinition, fill TableChange) (*plan.Table, error)
	// viewsPossible is nil where views can be stored.
	viewsPossible(ctx context.Context) error
	// createView stores a view whose name was free a moment ago.
	createView(ctx context.Context, name plan.TableName, v newView) error
	// replaceView gives a view a new version; false when it was changed meanwhile.
	replaceView(ctx context.Context, name plan.TableName, v newView) (bool, error)
	// storedName is how the catalog calls itself in its files.
	storedName() string
}

// newTable is what a definition becomes, but for the place.
type newTable struct {
	version int
	columns []iceberg.NestedField
	schema  *iceberg.Schema
	spec    iceberg.PartitionSpec
	order   table.SortOrder
	props   iceberg.Properties
}

// newView is what the definition of a view becomes, but for the place.
type newView struct {
	version *view.Version
	schema  *iceberg.Schema
	props   map[string]string
}

// Name implements Catalog.
func (c *common) Name() string { return c.name }
