package write

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
)

// sorter sorts the rows of one file by the table's sort order. A file holds as many
// rows as fit into memory: a larger one would be sorted in parts, and to say of it
// that it is sorted would be wrong.
type sorter struct{ fields []sortField }

type sortField struct {
	partitionField
	desc, nullsFirst bool
}

// newSorter gives nil for a table without a sort order.
func newSorter(o table.SortOrder, schema *iceberg.Schema) (*sorter, error) {
	if o.IsUnsorted() {
		return nil, nil
	}
	s := &sorter{}
	for _, f := range o.Fields() {
		if len(f.SourceIDs) != 1 {
			return nil, fault.New(fault.Unsupported, "The table is sorted by several columns in one transform, which SQE cannot write")
		}
		path, typ, ok := pathTo(schema.Fields(), f.SourceID())
		if !ok || !f.Transform.CanTransform(typ) {
			return nil, fault.New(fault.Unsupported, "The table is sorted by %s of a column, which SQE cannot write", f.Transform)
		}
		apply, err := transformer(f.Transform, typ)
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, sortField{
			partitionField: partitionField{transform: f.Transform, source: typ, path: path, apply: apply},
			desc:           f.Direction == table.SortDESC, nullsFirst: f.NullOrder == table.NullsFirst,
		})
	}
	return s, nil
}

// sort sorts the pending rows of a file.
func (s *sorter) sort(ctx context.Context, f *openFile) error {
	rec, err := concatenated(f.pending)
	if err != nil {
		return err
	}
	for _, p := range f.pending {
		p.Release()
	}
	f.pending = nil
	type result struct {
		at  arrow.Array
		err error
	}
	sorted := make(chan result)
	go func() {
		// Sorting cannot be interrupted: who is cancelled does not wait for it.
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic while rows were sorted: %T\n%s", p, debug.Stack())
			}
			select {
			case sorted <- r:
			case <-ctx.Done():
				if r.at != nil {
					r.at.Release()
				}
				rec.Release()
			}
		}()
		r.at, r.err = s.indices(context.WithoutCancel(ctx), rec)
	}()
	var r result
	select {
	case r = <-sorted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer rec.Release()
	if r.err != nil {
		return r.err
	}
	at := r.at
	defer at.Release()
	for from := 0; from < at.Len(); from += maxPiece {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		some := array.NewSlice(at, int64(from), int64(min(from+maxPiece, at.Len())))
		piece, err := takeRows(ctx, rec, some)
		some.Release()
		if err != nil {
			return err
		}
		f.pending = append(f.pending, piece)
	}
	return nil
}

func concatenated(list []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(list) == 1 {
		list[0].Retain()
		return list[0], nil
	}
	cols := make([]arrow.Array, 0, list[0].NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	var rows int64
	for _, r := range list {
		rows += r.NumRows()
	}
	for i := range int(list[0].NumCols()) {
		parts := make([]arrow.Array, len(list))
		for k, r := range list {
			parts[k] = r.Column(i)
		}
		c, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(list[0].Schema(), cols, rows), nil
}

// indices are the rows in their order. Rows that compare equal stay as they came.
func (s *sorter) indices(ctx context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
	cols := make([]arrow.Array, 0, len(s.fields))
	fields := make([]arrow.Field, 0, len(s.fields))
	keys := make([]compute.SortKey, 0, len(s.fields))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, f := range s.fields {
		c, err := f.column(rec)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
		fields = append(fields, arrow.Field{Name: f.transform.String(), Type: c.DataType(), Nullable: true})
		k := compute.SortKey{ColumnIndex: i, Order: compute.SortOrderAscending, NullPlacement: compute.SortNullsAtEnd}
		if f.desc {
			k.Order = compute.SortOrderDescending
		}
		if f.nullsFirst {
			k.NullPlacement = compute.SortNullsAtStart
		}
		keys = append(keys, k)
	}
	b := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows())
	defer b.Release()
	return compute.SortIndicesRecordBatch(ctx, b, keys)
}

// column is what the rows are compared by.
func (f sortField) column(rec arrow.RecordBatch) (arrow.Array, error) {
	if _, identity := f.transform.(iceberg.IdentityTransform); identity && len(f.path) == 1 {
		c := rec.Column(f.path[0])
		return relabelled(c, storage(c.DataType()))
	}
	read, err := reader(rec, f.path, f.source)
	if err != nil {
		return nil, err
	}
	value := f.memo(read)
	result := f.transform.ResultType(f.source)
	typ, err := table.TypeToArrowType(result, false, false)
	if err != nil {
		return nil, err
	}
	b := array.NewBuilder(memory.DefaultAllocator, storage(typ))
	defer b.Release()
	for i := range int(rec.NumRows()) {
		v, ok := value(i)
		if !ok {
			b.AppendNull()
			continue
		}
		if err := appendTo(b, v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}
