package scan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table/dv"

	"sqe/catalog"
	"sqe/plan"
)

// A file in an object store, or a local one with position deletes or a deletion vector,
// is read here and not by iceberg-go, which decodes the columns of a batch in goroutines of its own: a
// panic of the decoder over a damaged page cannot be caught there and would end
// the process. What this file does not read, iceberg-go reads after every page has
// been decoded once where a panic can be caught (verify).

// errNotDirect says that a task needs iceberg-go.
var errNotDirect = errors.New("not read directly")

// readDirect sends the rows of one task, or returns errNotDirect before the first.
func (s *taskStream) readDirect(ctx context.Context, t task, want []plan.ScanColumn, deletes *positions, out chan<- batch) error {
	// Where rows must be numbered there is no other reader than this one.
	exact := numbersRows(want) || t.remote()
	if !exact && (t.layout == nil || len(t.EqualityDeleteFiles) > 0) {
		return errNotDirect
	}
	deleted, err := deletes.of(ctx, t)
	if err != nil {
		return err
	}
	r, object, err := openSource(ctx, s.handle, t.File.FilePath())
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if t.layout == nil {
		if t, err = s.withLayout(t, r, want); err != nil {
			return err
		}
	}
	fr, err := arrowReader(r, int64(s.planner.batchRows))
	if err != nil {
		return err
	}
	schema, err := fr.Schema()
	if err != nil {
		return err
	}
	source := make([]string, len(want)) // the column in the file, "" for a constant
	var names []string
	for i, w := range want {
		n, ok := t.layout.byID[w.FieldID]
		if !ok {
			continue
		}
		f, known := s.table.Field(w.FieldID)
		at := schema.FieldIndices(n.name)
		if len(at) != 1 {
			return errNotDirect
		}
		if !exact && (!known || n.ambiguous || !sameTree(n, f) || !convertible(schema.Field(at[0]).Type, w.Type)) {
			return errNotDirect
		}
		source[i] = n.name
		names = append(names, n.name)
	}
	gone, err := s.equalityDeletes(ctx, t)
	if err != nil {
		return err
	}
	for _, e := range gone {
		names = append(names, e.columns(t.layout)...)
	}
	leaves := leavesOf(r, names)
	if len(leaves) == 0 {
		leaves = []int{smallest(r)} // rows are counted by any column
	}
	groups, err := s.groupsOf(r, t, leaves)
	if err != nil {
		return err
	}
	return ahead{object, s.planner.ahead}.each(ctx, groups, func(ctx context.Context, g group) error {
		batches, err := fr.GetRecordReader(ctx, leaves, []int{g.index})
		if err != nil {
			return err
		}
		defer batches.Release()
		at := uint64(g.first)
		for batches.Next() {
			rec := batches.RecordBatch()
			for _, e := range gone {
				if err := e.mark(ctx, s, t, rec, deleted, at); err != nil {
					return err
				}
			}
			shaped, err := s.shapeDirect(ctx, rec, want, source, t, deleted, at)
			at += uint64(rec.NumRows())
			if err != nil {
				return err
			}
			if shaped == nil {
				continue
			}
			select {
			case out <- batch{rec: shaped}:
			case <-ctx.Done():
				shaped.Release()
				return ctx.Err()
			}
		}
		if err := batches.Err(); err != nil {
			return err
		}
		if n := at - uint64(g.first); n != uint64(g.rows) {
			return fmt.Errorf("a row group has %d rows, %d were read", g.rows, n)
		}
		return nil
	})
}

// shapeDirect makes the batch of the wanted columns without the deleted rows; at is
// the position of its first row in the file. nil when every row is deleted.
func (s *taskStream) shapeDirect(ctx context.Context, rec arrow.RecordBatch, want []plan.ScanColumn, source []string, t task, deleted *dv.RoaringPositionBitmap, at uint64) (arrow.RecordBatch, error) {
	rows := int(rec.NumRows())
	var keep [][2]int64 // runs of rows that stay, from and to
	left := 0
	for i := range rows {
		switch n := len(keep); {
		case deleted.Contains(at + uint64(i)):
			continue
		case n > 0 && keep[n-1][1] == int64(i):
			keep[n-1][1]++
		default:
			keep = append(keep, [2]int64{int64(i), int64(i) + 1})
		}
		left++
	}
	if left == 0 {
		return nil, nil
	}
	return assemble(want, int64(left), func(i int, w plan.ScanColumn) (arrow.Array, error) {
		if lit := t.constants[w.FieldID]; lit != nil {
			return constant(lit, left)
		}
		if w.FieldID == plan.PositionField {
			return numbers(keep, left, int64(at), 1, nil), nil
		}
		if source[i] == "" && w.FieldID == plan.RowIDField && t.FirstRowID != nil {
			return numbers(keep, left, *t.FirstRowID+int64(at), 1, nil), nil
		}
		if source[i] == "" {
			return array.MakeArrayOfNull(memory.DefaultAllocator, w.Type, left), nil
		}
		in := rec.Column(rec.Schema().FieldIndices(source[i])[0])
		if left < rows {
			picked, err := pick(in, keep)
			if err != nil {
				return nil, err
			}
			defer picked.Release()
			in = picked
		}
		switch {
		case w.FieldID == plan.RowIDField && t.FirstRowID != nil && in.NullN() > 0:
			return numbers(keep, left, *t.FirstRowID+int64(at), 1, in), nil
		case w.FieldID == plan.LastUpdatedField && t.DataSequenceNumber != nil && in.NullN() > 0:
			return numbers(keep, left, *t.DataSequenceNumber, 0, in), nil
		case plan.IsVirtual(w.FieldID):
			return convert(ctx, in, w.Type)
		}
		f, _ := s.table.Field(w.FieldID)
		return s.project(ctx, in, t.layout.byID[w.FieldID], f)
	})
}

// pick makes an array of runs of another. (Under the filter of package compute
// TestPrimitives finds NULL in the place of booleans: arrow-go 18.8.0.)
func pick(a arrow.Array, runs [][2]int64) (arrow.Array, error) {
	parts := make([]arrow.Array, len(runs))
	for i, r := range runs {
		parts[i] = array.NewSlice(a, r[0], r[1])
		defer parts[i].Release()
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

// leavesOf lists the leaf columns of a file below the named top-level columns.
func leavesOf(r *file.Reader, names []string) []int {
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	var out []int
	schema := r.MetaData().Schema
	for i := range schema.NumColumns() {
		if want[schema.ColumnRoot(i).Name()] {
			out = append(out, i)
		}
	}
	return out
}

// convertible reports whether convert takes have to want.
func convertible(have, want arrow.DataType) bool {
	if sameStorage(have, want) || widens(have, want) {
		return true
	}
	switch have.ID() {
	case arrow.LARGE_STRING:
		return want.ID() == arrow.STRING
	case arrow.LARGE_BINARY:
		return want.ID() == arrow.BINARY
	}
	return false
}

func convert(ctx context.Context, a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if sameStorage(a.DataType(), want) {
		return retype(a, want)
	}
	return compute.CastArray(ctx, a, compute.SafeCastOptions(want))
}

// sameStorage reports whether relabel turns have into want.
func sameStorage(have, want arrow.DataType) bool {
	h, w := storage(have), storage(want)
	if h.ID() != w.ID() {
		return false
	}
	switch w := w.(type) {
	case *arrow.StructType:
		hs := h.(*arrow.StructType)
		if hs.NumFields() != w.NumFields() {
			return false
		}
		for i, f := range w.Fields() {
			if !sameStorage(hs.Field(i).Type, f.Type) {
				return false
			}
		}
		return true
	case *arrow.MapType:
		return sameStorage(h.(*arrow.MapType).ElemField().Type, w.ElemField().Type)
	case *arrow.ListType:
		return sameStorage(h.(*arrow.ListType).Elem(), w.Elem())
	}
	return arrow.TypeEqual(h, w)
}

// positions reads which rows are deleted, each delete file once for a whole stream.
type positions struct {
	stream *taskStream
	mu     sync.Mutex
	files  map[string]map[string]*dv.RoaringPositionBitmap // by delete file, then by data file
}

// of is the set of deleted positions of a task's file.
func (p *positions) of(ctx context.Context, t task) (*dv.RoaringPositionBitmap, error) {
	all := dv.NewRoaringPositionBitmap()
	for _, d := range t.DeletionVectorFiles {
		storage, err := p.stream.handle.Table.FS(ctx)
		if err != nil {
			return nil, err
		}
		one, err := dv.ReadDV(storage, d)
		if err != nil {
			return nil, err
		}
		all.Or(one)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range t.DeleteFiles {
		in, ok := p.files[d.FilePath()]
		if !ok {
			var err error
			if in, err = readPositions(ctx, p.stream.handle, d); err != nil {
				return nil, err
			}
			p.files[d.FilePath()] = in
		}
		if one := in[t.File.FilePath()]; one != nil {
			all.Or(one)
		}
	}
	return all, nil
}

// positionDeletePos is the field id of the column pos in a position delete file.
const positionDeletePos = 2147483545

// readPositions reads a position delete file; errNotDirect when it is not a Parquet
// file of the usual form.
func readPositions(ctx context.Context, h *catalog.Handle, d iceberg.DataFile) (map[string]*dv.RoaringPositionBitmap, error) {
	if d.FileFormat() != iceberg.ParquetFile {
		return nil, errNotDirect
	}
	r, err := openParquet(ctx, h, d.FilePath())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var leaves []int
	for _, id := range []int32{positionDeletePath, positionDeletePos} {
		for i := range r.MetaData().Schema.NumColumns() {
			if r.MetaData().Schema.Column(i).SchemaNode().FieldID() == id {
				leaves = append(leaves, i)
			}
		}
	}
	if len(leaves) != 2 {
		return nil, errNotDirect
	}
	fr, err := arrowReader(r, 64<<10)
	if err != nil {
		return nil, err
	}
	batches, err := fr.GetRecordReader(ctx, leaves, nil)
	if err != nil {
		return nil, err
	}
	defer batches.Release()
	out := map[string]*dv.RoaringPositionBitmap{}
	for batches.Next() {
		rec := batches.RecordBatch()
		var paths array.StringLike
		var rows *array.Int64
		for _, c := range rec.Columns() {
			switch c := c.(type) {
			case *array.Int64:
				rows = c
			case array.StringLike:
				paths = c
			}
		}
		if paths == nil || rows == nil {
			return nil, errNotDirect
		}
		var last *dv.RoaringPositionBitmap
		name := ""
		for i := range rows.Len() {
			if paths.IsNull(i) || rows.IsNull(i) || rows.Value(i) < 0 {
				return nil, errors.New("a position delete without a file or position")
			}
			if v := paths.Value(i); last == nil || v != name {
				name = strings.Clone(v) // the value lies in memory of the batch
				if last = out[name]; last == nil {
					last = dv.NewRoaringPositionBitmap()
					out[name] = last
				}
			}
			last.Set(uint64(rows.Value(i)))
		}
	}
	return out, batches.Err()
}

// verify decodes the pages of a file, and of its delete files, once.
func (s *taskStream) verify(ctx context.Context, t task) error {
	p := s.planner
	files := append([]iceberg.DataFile{t.File}, t.DeleteFiles...)
	for _, d := range append(files, t.EqualityDeleteFiles...) {
		// Two stores may have an object of the same name.
		key := s.table.UUID + " " + d.FilePath()
		if d.FileFormat() != iceberg.ParquetFile || p.verified.Contains(key) {
			continue
		}
		if err := decodeAll(ctx, s.handle, d.FilePath()); err != nil {
			return err
		}
		p.verified.Add(key, struct{}{})
	}
	return nil
}

func decodeAll(ctx context.Context, h *catalog.Handle, location string) error {
	r, err := openParquet(ctx, h, location)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	fr, err := arrowReader(r, 8192)
	if err != nil {
		return err
	}
	batches, err := fr.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer batches.Release()
	for batches.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return batches.Err()
}
