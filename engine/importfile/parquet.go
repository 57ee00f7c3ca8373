package importfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"sqe/fault"
	"sqe/plan"
)

// parquetFile is a Parquet file. Its columns have the types of the format alone: the
// Arrow schema that a writer may have put beside them is not looked at.
type parquetFile struct {
	src    Source
	fields []arrow.Field
}

func properties(mem memory.Allocator) *parquet.ReaderProperties {
	p := parquet.NewReaderProperties(mem)
	p.BufferedStreamEnabled = true
	p.BufferSize = 256 << 10
	return p
}

// reading opens the file for one pass. Everything happens on the goroutine of the
// caller, where a panic of a decoder can be caught.
func reading(src Source, mem memory.Allocator) (*file.Reader, *pqarrow.FileReader, error) {
	if err := checkFooter(src); err != nil {
		return nil, nil, err
	}
	r, err := file.NewParquetReader(unclosed{src}, file.WithReadProps(properties(mem)))
	if err != nil {
		return nil, nil, err
	}
	// It would be decoded without a bound: a damaged one asks for gigabytes, which ends
	// the process (arrow-go 18.8.0).
	r.MetaData().FileMetaData.KeyValueMetadata = nil
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: batchRows}, mem)
	if err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return r, fr, nil
}

// unclosed keeps the reader from closing the file, which is read again.
type unclosed struct{ Source }

// checkFooter looks at the size of the footer before it is read.
func checkFooter(src Source) error {
	size, err := src.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size < 12 {
		return errors.New("too short for a Parquet file")
	}
	var tail [8]byte
	if _, err := src.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	n := int64(tail[0]) | int64(tail[1])<<8 | int64(tail[2])<<16 | int64(tail[3])<<24
	if string(tail[4:]) != "PAR1" || n > size-12 {
		return errors.New("no footer of a Parquet file")
	}
	if n > maxFooter {
		return fault.New(fault.Limit, "the description of the file is larger than %d MiB; divide the file", maxFooter>>20)
	}
	return nil
}

func openParquet(_ context.Context, src Source) (File, error) {
	r, fr, err := reading(src, newAllocator())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	f := &parquetFile{src: src}
	for _, m := range fr.Manifest.Fields {
		f.fields = append(f.fields, *m.Field)
	}
	switch {
	case len(f.fields) == 0:
		return nil, errors.New("no columns")
	case r.MetaData().Schema.NumColumns() > MaxColumns:
		return nil, fault.New(fault.Limit, "the file has more than %d columns", MaxColumns)
	}
	return f, nil
}

// Names implements File.
func (f *parquetFile) Names() []string {
	out := make([]string, len(f.fields))
	for i, c := range f.fields {
		out[i] = c.Name
	}
	return out
}

// Fields implements File.
func (f *parquetFile) Fields(_ context.Context, names []string) ([]plan.Field, error) {
	if names != nil && len(names) != len(f.fields) {
		return nil, fault.New(fault.BadStatement, "the file has %d columns, the statement names %d", len(f.fields), len(names))
	}
	out := make([]plan.Field, len(f.fields))
	for i, c := range f.fields {
		var err error
		if out[i], err = fieldOf(c, 0); err != nil {
			return nil, err
		}
		if names != nil {
			out[i].Name = names[i]
		}
	}
	return out, nil
}

// maxDepth bounds how deep types may be nested.
const maxDepth = 32

// fieldOf is the column of a table that holds the values of a column of a file.
func fieldOf(c arrow.Field, depth int) (plan.Field, error) {
	f := plan.Field{Name: c.Name, Required: !c.Nullable}
	none := func() (plan.Field, error) {
		return f, fault.New(fault.Unsupported, "column '%s' of the file has a type that a table cannot hold (%s); leave it out by naming the others in brackets at the end of a LOAD DATA into a table, or convert it", c.Name, c.Type.Name())
	}
	if depth > maxDepth {
		return none()
	}
	inner := func(list ...arrow.Field) error {
		for _, x := range list {
			child, err := fieldOf(x, depth+1)
			if err != nil {
				return err
			}
			f.Children = append(f.Children, child)
		}
		return nil
	}
	var err error
	switch t := c.Type.(type) {
	case arrow.ExtensionType:
		switch {
		case plan.IsUUID(t):
			f.Type = plan.UUID
			return f, nil
		case t.StorageType().ID() == arrow.STRING:
			f.Type = plan.String
			return f, nil
		}
		return none()
	case *arrow.StructType:
		if err = inner(t.Fields()...); err != nil {
			return f, err
		}
		fields := make([]arrow.Field, len(f.Children))
		for i, x := range f.Children {
			fields[i] = arrow.Field{Name: x.Name, Type: x.Type, Nullable: !x.Required}
		}
		f.Type = arrow.StructOf(fields...)
		return f, nil
	case *arrow.ListType:
		e := t.ElemField()
		e.Name = "element"
		if err = inner(e); err != nil {
			return f, err
		}
		f.Type = arrow.ListOfField(arrow.Field{Name: "element", Type: f.Children[0].Type, Nullable: e.Nullable})
		return f, nil
	case *arrow.MapType:
		k, v := t.KeyField(), t.ItemField()
		k.Name, v.Name, k.Nullable = "key", "value", false
		if err = inner(k, v); err != nil {
			return f, err
		}
		f.Type = arrow.MapOfFields(arrow.Field{Name: "key", Type: f.Children[0].Type}, arrow.Field{Name: "value", Type: f.Children[1].Type, Nullable: v.Nullable})
		return f, nil
	case *arrow.Decimal128Type:
		if t.Precision < 1 || t.Precision > 38 || t.Scale < 0 || t.Scale > t.Precision {
			return none()
		}
		f.Type = t
		return f, nil
	case *arrow.TimestampType:
		// Nanoseconds that are whole microseconds fit; others are refused.
		f.Type = plan.Timestamp
		if t.TimeZone != "" {
			f.Type = plan.TimestampTZ
		}
		return f, nil
	case *arrow.FixedSizeBinaryType:
		f.Type = t
		return f, nil
	}
	switch c.Type.ID() {
	case arrow.BOOL:
		f.Type = plan.Bool
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16:
		f.Type = plan.Int32
	case arrow.INT64, arrow.UINT32:
		f.Type = plan.Int64
	case arrow.UINT64:
		f.Type = plan.Decimal(20, 0)
	case arrow.FLOAT32:
		f.Type = plan.Float32
	case arrow.FLOAT64:
		f.Type = plan.Float64
	case arrow.DATE32:
		f.Type = plan.Date
	case arrow.TIME32, arrow.TIME64:
		f.Type = plan.Time
	case arrow.STRING:
		f.Type = plan.String
	case arrow.BINARY:
		f.Type = plan.Binary
	default:
		return none()
	}
	return f, nil
}

// Rows implements File.
func (f *parquetFile) Rows(ctx context.Context, columns []Column) (Rows, error) {
	out := &parquetRows{ctx: ctx, columns: columns}
	for _, c := range columns {
		if c.At >= len(f.fields) {
			return nil, errors.New("a column that the file does not have")
		}
		if c.At >= 0 && !slices.Contains(out.read, c.At) {
			out.read = append(out.read, c.At)
		}
	}
	slices.Sort(out.read)
	err := guarded(func() error { return out.open(f) })
	if err != nil {
		_ = out.Close()
		return nil, failure(ctx, err)
	}
	return out, nil
}

// parquetRows reads the batches of a Parquet file.
type parquetRows struct {
	ctx     context.Context
	columns []Column
	read    []int // columns of the file, ascending
	file    *file.Reader
	batches pqarrow.RecordReader
	rows    int64
	err     error
}

func (p *parquetRows) open(f *parquetFile) error {
	r, fr, err := reading(f.src, newAllocator())
	if err != nil {
		return err
	}
	p.file = r
	schema := r.MetaData().Schema
	var leaves []int
	for i := range schema.NumColumns() {
		top := schema.Root().FieldIndexByField(schema.ColumnRoot(i))
		if slices.Contains(p.read, top) {
			leaves = append(leaves, i)
		}
	}
	if len(leaves) == 0 {
		leaves = []int{0} // rows are counted by any column
	}
	p.batches, err = fr.GetRecordReader(p.ctx, leaves, nil)
	return err
}

// Next implements Rows.
func (p *parquetRows) Next() (b arrow.RecordBatch, err error) {
	if p.err != nil {
		return nil, p.err
	}
	err = guarded(func() error {
		b, err = p.next()
		return err
	})
	switch {
	case err == io.EOF:
		p.err = io.EOF
	case err != nil:
		p.err = failure(p.ctx, err)
	}
	return b, p.err
}

func (p *parquetRows) next() (arrow.RecordBatch, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if !p.batches.Next() {
		if err := p.batches.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n := p.file.NumRows(); n != p.rows {
			return nil, fmt.Errorf("the file has %d rows, %d were read", n, p.rows)
		}
		return nil, io.EOF
	}
	rec := p.batches.RecordBatch()
	p.rows += rec.NumRows()
	for i, c := range rec.Columns() {
		// A damaged file may yield lists that reach beyond their elements.
		if array.ValidateFull(c) != nil { // its text may hold a value
			return nil, fault.New(fault.BadStatement, "column '%s' of the file is damaged, or holds text that is not UTF-8; nothing was loaded", rec.Schema().Field(i).Name)
		}
	}
	cols := make([]arrow.Array, 0, len(p.columns))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	fields := make([]arrow.Field, 0, len(p.columns))
	for _, c := range p.columns {
		var a arrow.Array
		var err error
		if c.At < 0 {
			if a, err = constant(c, int(rec.NumRows())); err != nil {
				return nil, err
			}
		} else if a, err = usual(p.ctx, rec.Column(slices.Index(p.read, c.At)), c.Field); err != nil {
			return nil, err
		}
		cols = append(cols, a)
		fields = append(fields, arrow.Field{Name: c.Field.Name, Type: a.DataType(), Nullable: true})
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows()), nil
}

// usual gives times the unit that tables have; everything else is the writer's to
// convert.
func usual(ctx context.Context, a arrow.Array, f plan.Field) (arrow.Array, error) {
	t := a.DataType()
	if t.ID() != arrow.TIME32 && t.ID() != arrow.TIME64 || arrow.TypeEqual(t, plan.Time) {
		a.Retain()
		return a, nil
	}
	out, err := compute.CastArray(ctx, a, compute.SafeCastOptions(plan.Time))
	if err != nil && ctx.Err() == nil {
		return nil, fault.New(fault.OutOfRange, "A value for column '%s' is out of range of its type, or would lose digits; nothing was loaded", f.Name)
	}
	return out, err
}

// Close implements Rows.
func (p *parquetRows) Close() error {
	return guarded(func() error {
		if p.batches != nil {
			p.batches.Release()
			p.batches = nil
		}
		if p.err == nil {
			p.err = io.EOF
		}
		if p.file == nil {
			return nil
		}
		r := p.file
		p.file = nil
		return r.Close()
	})
}

// allocator bounds what the decoder of one file may hold: a page says itself how
// large it is when it is unpacked.
type allocator struct {
	memory.Allocator
	held atomic.Int64
}

func newAllocator() *allocator { return &allocator{Allocator: memory.NewGoAllocator()} }

func (a *allocator) grow(n int) {
	if a.held.Add(int64(n)) > maxMemory {
		a.held.Add(-int64(n))
		panic(fault.New(fault.Limit, "a part of the file needs more than %d MiB of memory; write the file with smaller pages and row groups", maxMemory>>20))
	}
}

// Allocate implements memory.Allocator.
func (a *allocator) Allocate(size int) []byte {
	a.grow(size)
	return a.Allocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *allocator) Reallocate(size int, b []byte) []byte {
	a.grow(size - len(b))
	return a.Allocator.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (a *allocator) Free(b []byte) {
	a.held.Add(-int64(len(b)))
	a.Allocator.Free(b)
}
