package write

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// target is the table that is written, as it was when the statement began.
type target struct {
	table     *plan.Table
	handle    *catalog.Handle
	fs        icebergio.WriteFileIO
	locations table.LocationProvider
	schema    *iceberg.Schema
	spec      iceberg.PartitionSpec
	order     table.SortOrder
	// arrow are the columns of the table in data files, with their field ids.
	arrow *arrow.Schema
}

// stored is a table whose files can be deleted, whatever is in them.
func stored(ctx context.Context, t *plan.Table) (*target, error) {
	h, ok := t.Handle.(*catalog.Handle)
	if !ok {
		return nil, errors.New("a table that no catalog loaded")
	}
	if t.Metadata != "" {
		return nil, fault.New(fault.BadStatement, "'%s$%s' shows the metadata of a table; it cannot be written", t.Name, t.Metadata)
	}
	meta := h.Table.Metadata()
	if now := meta.CurrentSnapshot(); h.Schema.ID != meta.CurrentSchema().ID || (now == nil) != (h.Snapshot == nil) ||
		now != nil && now.SnapshotID != h.Snapshot.SnapshotID {
		return nil, fault.New(fault.BadStatement, "Only the present of table '%s' can be written, not an earlier state", t.Name)
	}
	fs, err := h.Table.FS(ctx)
	if err != nil {
		return nil, err
	}
	out := &target{table: t, handle: h, schema: h.Schema, spec: h.Table.Spec(), order: h.Table.SortOrder()}
	if out.fs, ok = fs.(icebergio.WriteFileIO); !ok {
		return nil, fault.New(fault.Unsupported, "Table '%s' lies in a kind of storage that SQE cannot write", t.Name)
	}
	return out, nil
}

// newTarget is a table whose rows can be written.
func newTarget(ctx context.Context, t *plan.Table) (*target, error) {
	out, err := stored(ctx, t)
	if err != nil {
		return nil, err
	}
	meta := out.handle.Table.Metadata()
	if format := meta.Properties().Get(table.WriteFormatDefaultKey, table.WriteFormatDefaultDefault); format != "parquet" {
		return nil, fault.New(fault.Unsupported, "Table '%s' wants data files of the format %s; SQE writes Parquet", t.Name, format)
	}
	for _, f := range t.Fields {
		if f.Type.ID() == arrow.NULL {
			return nil, fault.New(fault.Unsupported, "Column '%s' of table '%s' has a type that SQE cannot write", f.Name, t.Name)
		}
	}
	if out.locations, err = out.handle.Table.LocationProvider(); err != nil {
		return nil, err
	}
	out.arrow, err = table.SchemaToArrowSchema(out.schema, nil, true, false)
	return out, err
}

// sortsBy reports whether one of the columns that rows are sorted by is hidden.
func (t *target) sortsBy(hidden func(field int) bool) bool {
	for _, f := range t.order.Fields() {
		for _, id := range f.SourceIDs {
			path, _, ok := pathTo(t.schema.Fields(), id)
			if !ok || hidden(t.schema.Field(path[0]).ID) {
				return true
			}
		}
	}
	return false
}

// columns are the indexes of the table's columns in a batch that holds them from
// first on.
func (t *target) columns(first int) []int {
	out := make([]int, len(t.table.Fields))
	for i := range out {
		out[i] = first + i
	}
	return out
}

// withLineage are the table's columns and the two of row lineage behind them.
func (t *target) withLineage() (*iceberg.Schema, *arrow.Schema, error) {
	s := iceberg.SchemaWithRowLineage(t.schema)
	a, err := table.SchemaToArrowSchema(s, nil, true, false)
	return s, a, err
}
