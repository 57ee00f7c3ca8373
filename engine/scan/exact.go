package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table/dv"

	"sqe/catalog"
	"sqe/catalog/objects"
	"sqe/fault"
	"sqe/plan"
)

// numbersRows reports whether a column depends on the number of a row in its file.
// iceberg-go gives no such number, so that every file is read here then: remote
// ones, those whose nested columns changed and those with equality deletes too.
func numbersRows(cols []plan.ScanColumn) bool {
	return slices.ContainsFunc(cols, func(c plan.ScanColumn) bool { return plan.IsVirtual(c.FieldID) && c.FieldID != plan.FileField })
}

// placed is the task with the columns that are the same for every row of its file.
func (t task) placed(want []plan.ScanColumn) task {
	var more map[int]*plan.Literal
	set := func(id int, v any, typ arrow.DataType) {
		if more == nil {
			more = maps.Clone(t.constants)
			if more == nil {
				more = map[int]*plan.Literal{}
			}
		}
		more[id] = &plan.Literal{Value: v, Typ: typ}
	}
	for _, w := range want {
		switch w.FieldID {
		case plan.FileField:
			set(w.FieldID, t.File.FilePath(), w.Type)
		case plan.LastUpdatedField:
			if t.DataSequenceNumber != nil && (t.layout == nil || !t.has(w.FieldID)) {
				set(w.FieldID, *t.DataSequenceNumber, w.Type)
			}
		}
	}
	if more != nil {
		t.constants = more
	}
	return t
}

// openParquet opens a file wherever it lies.
func openParquet(ctx context.Context, h *catalog.Handle, location string) (*file.Reader, error) {
	r, _, err := openSource(ctx, h, location)
	return r, err
}

// openSource opens a file, and gives the object where it lies in an object store.
func openSource(ctx context.Context, h *catalog.Handle, location string) (*file.Reader, *objects.Object, error) {
	if path := localPath(location); path != "" {
		r, err := file.OpenParquetFile(path, false)
		return r, nil, err
	}
	storage, err := h.Table.FS(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, err := storage.Open(location)
	if err != nil {
		return nil, nil, err
	}
	object, _ := f.(*objects.Object)
	r, err := file.NewParquetReader(f)
	if err != nil {
		_ = f.Close()
	}
	return r, object, err
}

// arrowReader reads a file in batches, without its key-value metadata: the Arrow schema
// of a writer in there says nothing about what other readers see, and arrow-go 18.8
// decodes it without a bound, so that a damaged one would end the process.
func arrowReader(r *file.Reader, batch int64) (*pqarrow.FileReader, error) {
	r.MetaData().FileMetaData.KeyValueMetadata = nil
	return pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: batch}, memory.DefaultAllocator)
}

// withLayout completes a task of a file that planning did not open.
func (s *taskStream) withLayout(t task, r *file.Reader, want []plan.ScanColumn) (task, error) {
	schema, err := pqarrow.FromParquet(r.MetaData().Schema, &pqarrow.ArrowReadProperties{}, nil)
	if err != nil {
		return t, err
	}
	if t.layout, err = newLayout(schema, s.handle.Table.NameMapping()); err != nil {
		return t, err
	}
	f, err := newDataFile(t.FileScanTask, s.handle, s.table)
	if err != nil {
		return t, err
	}
	scan := &plan.Scan{Table: s.table, Cols: want}
	if _, _, err := t.layout.columns(scan, s.handle, f); err != nil {
		return t, err
	}
	all := f.constants(scan, s.handle, t.layout)
	if all == nil {
		all = map[int]*plan.Literal{}
	}
	for id, v := range t.constants {
		if _, ok := t.layout.byID[id]; !ok {
			all[id] = v
		}
	}
	t.constants = all
	return t, nil
}

// numbers is first + step * the number of the row in the batch, over the kept runs
// of a batch. Where have is given, it only fills its NULLs.
func numbers(keep [][2]int64, rows int, first, step int64, have arrow.Array) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(rows)
	values, _ := have.(*array.Int64)
	k := 0
	for _, run := range keep {
		for i := run[0]; i < run[1]; i++ {
			if values != nil && !values.IsNull(k) {
				b.Append(values.Value(k))
			} else {
				b.Append(first + step*i)
			}
			k++
		}
	}
	return b.NewArray()
}

// project turns a column of a file, or a field inside one, into the field of the
// table: inner fields are found by id, at any depth; one that the file does not have
// is NULL.
func (s *taskStream) project(ctx context.Context, a arrow.Array, n node, f plan.Field) (arrow.Array, error) {
	if sameTree(n, f) && convertible(a.DataType(), f.Type) {
		return convert(ctx, a, f.Type)
	}
	if storage(f.Type).ID() != storage(a.DataType()).ID() || !plan.IsNested(f.Type) {
		if !convertible(a.DataType(), f.Type) {
			return nil, fmt.Errorf("a column of type %s is %s in a file", f.Type, a.DataType())
		}
		return convert(ctx, a, f.Type)
	}
	d := a.Data()
	children := d.Children()
	if f.Type.ID() == arrow.MAP {
		entries := children[0]
		inner, err := s.projectFields(ctx, entries, n, f)
		if err != nil {
			return nil, err
		}
		defer releaseAll(inner)
		e := array.NewData(f.Type.(*arrow.MapType).Elem(), entries.Len(), entries.Buffers(), inner, entries.NullN(), entries.Offset())
		defer e.Release()
		return rebuilt(f.Type, d, e), nil
	}
	inner, err := s.projectFields(ctx, d, n, f)
	if err != nil {
		return nil, err
	}
	defer releaseAll(inner)
	return rebuilt(f.Type, d, inner...), nil
}

func rebuilt(t arrow.DataType, d arrow.ArrayData, children ...arrow.ArrayData) arrow.Array {
	out := array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	defer out.Release()
	return array.MakeFromData(out)
}

func releaseAll(list []arrow.ArrayData) {
	for _, d := range list {
		d.Release()
	}
}

func (s *taskStream) projectFields(ctx context.Context, d arrow.ArrayData, n node, f plan.Field) (out []arrow.ArrayData, err error) {
	defer func() {
		if err != nil {
			releaseAll(out)
			out = nil
		}
	}()
	for _, want := range f.Children {
		at := slices.IndexFunc(n.children, func(c node) bool { return c.id == want.ID })
		if at < 0 {
			if known, ok := s.handle.Schema.FindFieldByID(want.ID); ok && known.InitialDefault != nil {
				return out, fault.New(fault.Unsupported, "The default of field '%s' inside a column of table '%s' is one that SQE does not read; rewrite the data files of the table", want.Name, s.table.Name)
			}
			a := array.MakeArrayOfNull(memory.DefaultAllocator, want.Type, d.Offset()+d.Len())
			a.Data().Retain()
			out = append(out, a.Data())
			a.Release()
			continue
		}
		child := array.MakeFromData(d.Children()[at])
		a, err := s.project(ctx, child, n.children[at], want)
		child.Release()
		if err != nil {
			return out, err
		}
		a.Data().Retain()
		out = append(out, a.Data())
		a.Release()
	}
	return out, nil
}

// equality is what one equality delete file deletes from a data file.
type equality struct {
	fields []plan.Field
	keys   map[string]struct{}
	// missing are the values of compared columns that the data file does not have.
	missing map[int]*plan.Literal
}

// equalityDeletes reads the equality delete files of a task.
func (s *taskStream) equalityDeletes(ctx context.Context, t task) ([]*equality, error) {
	var out []*equality
	for _, d := range t.EqualityDeleteFiles {
		e, err := s.equalityDelete(ctx, d)
		if err != nil {
			return nil, err
		}
		e.missing = map[int]*plan.Literal{}
		f, err := newDataFile(t.FileScanTask, s.handle, s.table)
		if err != nil {
			return nil, err
		}
		for _, c := range e.fields {
			v, _, err := missingValue(plan.ScanColumn{Column: plan.Column{Type: c.Type}, FieldID: c.ID}, s.table, s.handle, f)
			if err != nil {
				return nil, err
			}
			if v.Value != nil {
				e.missing[c.ID] = v
			}
		}
		out = append(out, e)
	}
	return out, nil
}

func (s *taskStream) equalityDelete(ctx context.Context, d iceberg.DataFile) (*equality, error) {
	if d.FileFormat() != iceberg.ParquetFile {
		return nil, errNotDirect
	}
	e := &equality{keys: map[string]struct{}{}}
	for _, id := range d.EqualityFieldIDs() {
		f, ok := s.table.Field(id)
		if !ok || plan.IsNested(f.Type) {
			return nil, errNotDirect
		}
		e.fields = append(e.fields, f)
	}
	r, err := openParquet(ctx, s.handle, d.FilePath())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	fr, err := arrowReader(r, 64<<10)
	if err != nil {
		return nil, err
	}
	schema, err := fr.Schema()
	if err != nil {
		return nil, err
	}
	l, err := newLayout(schema, s.handle.Table.NameMapping())
	if err != nil {
		return nil, err
	}
	batches, err := fr.GetRecordReader(ctx, leavesOf(r, e.columns(l)), nil)
	if err != nil {
		return nil, err
	}
	defer batches.Release()
	for batches.Next() {
		err := e.each(ctx, s, task{layout: l}, batches.RecordBatch(), func(_ int, key string) {
			e.keys[strings.Clone(key)] = struct{}{}
		})
		if err != nil {
			return nil, err
		}
	}
	return e, batches.Err()
}

// columns names the columns of a file that the deletes compare.
func (e *equality) columns(l *layout) []string {
	var out []string
	for _, f := range e.fields {
		if n, ok := l.byID[f.ID]; ok {
			out = append(out, n.name)
		}
	}
	return out
}

// mark adds the positions of the deleted rows of a batch.
func (e *equality) mark(ctx context.Context, s *taskStream, t task, rec arrow.RecordBatch, deleted *dv.RoaringPositionBitmap, at uint64) error {
	return e.each(ctx, s, t, rec, func(i int, key string) {
		if _, ok := e.keys[key]; ok {
			deleted.Set(at + uint64(i))
		}
	})
}

// each calls visit with the compared values of each row, as text that differs where
// a value does.
func (e *equality) each(ctx context.Context, s *taskStream, t task, rec arrow.RecordBatch, visit func(i int, key string)) error {
	cols := make([]arrow.Array, len(e.fields))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for k, f := range e.fields {
		n, ok := t.layout.byID[f.ID]
		var err error
		switch {
		case ok:
			at := rec.Schema().FieldIndices(n.name)
			if len(at) != 1 {
				return errors.New("a compared column was not read")
			}
			cols[k], err = s.project(ctx, rec.Column(at[0]), n, f)
		case e.missing[f.ID] != nil:
			cols[k], err = constant(e.missing[f.ID], int(rec.NumRows()))
		default:
			cols[k] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(rec.NumRows()))
		}
		if err != nil {
			return err
		}
	}
	var b strings.Builder
	for i := range int(rec.NumRows()) {
		b.Reset()
		for _, c := range cols {
			if c.IsNull(i) {
				b.WriteString("n")
				continue
			}
			v := c.ValueStr(i)
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
			b.WriteString(v)
		}
		visit(i, b.String())
	}
	return nil
}
