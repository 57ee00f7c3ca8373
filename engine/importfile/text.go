package importfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/fault"
	"sqe/plan"
)

// textFile is a CSV file, or another one of records and fields.
type textFile struct {
	src   Source
	o     Options
	names []string
}

func openText(_ context.Context, src Source, o Options) (File, error) {
	f := &textFile{src: src, o: o}
	if !o.Header {
		return f, nil
	}
	r, err := f.read()
	if err != nil {
		return nil, err
	}
	for range o.Ignore {
		if err := r.next(); err == io.EOF {
			return nil, fault.New(fault.BadStatement, "The file ends before the line that names its columns; nothing was loaded")
		} else if err != nil {
			return nil, err
		}
	}
	for i := range r.ends {
		v, isNull := r.field(i)
		v = bytes.Trim(v, " \t")
		switch {
		case isNull || len(v) == 0:
			return nil, fault.New(fault.BadStatement, "The file gives no name to its column %d; name the columns in brackets at the end of the statement", i+1)
		case !utf8.Valid(v):
			return nil, fault.New(fault.BadStatement, "The name of column %d of the file is not UTF-8; convert the file", i+1)
		}
		f.names = append(f.names, string(v))
	}
	return f, nil
}

// Names implements File.
func (f *textFile) Names() []string { return f.names }

// read begins at the first line.
func (f *textFile) read() (*records, error) {
	if _, err := f.src.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var in io.Reader = f.src
	if f.o.Gzip {
		z, err := gzip.NewReader(bufio.NewReaderSize(f.src, 64<<10))
		if err != nil {
			return nil, err
		}
		in = z
		if f.o.MaxBytes > 0 {
			in = &bounded{z, f.o.MaxBytes}
		}
	}
	buffered := bufio.NewReaderSize(in, 16)
	if mark, err := buffered.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3)
	}
	return newRecords(buffered, f.o), nil
}

// bounded ends with a fault after so many bytes.
type bounded struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fault.New(fault.Limit, "the file holds more than import.max-bytes allows when it is unpacked; divide it, or ask an administrator")
	}
	return n, err
}

// rows begins at the first row.
func (f *textFile) rows() (*records, error) {
	r, err := f.read()
	if err != nil {
		return nil, err
	}
	for range f.o.Ignore {
		if err := r.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// row reads a row of so many fields; 0 takes any number.
func row(r *records, fields int) error {
	for {
		if err := r.next(); err != nil {
			return err
		}
		if r.blank() && fields != 1 {
			continue
		}
		if n := len(r.ends); fields > 0 && n != fields {
			return fault.New(fault.BadStatement, "line %d of the file has %d fields where %d are expected; nothing was loaded. Check FIELDS TERMINATED BY, IGNORE n LINES and the columns of the statement", r.at, n, fields)
		}
		return nil
	}
}

// Fields implements File.
func (f *textFile) Fields(ctx context.Context, names []string) (out []plan.Field, err error) {
	if names == nil {
		names = f.names
	}
	err = guarded(func() error {
		r, err := f.rows()
		if err != nil {
			return err
		}
		types := make([]inference, len(names))
		for i := range types {
			types[i].can = asAny
		}
		for n := 0; ; n++ {
			if n%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := row(r, len(names)); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			for i := range types {
				if v, isNull := r.field(i); !isNull {
					types[i].look(v)
				}
			}
		}
		for i := range types {
			out = append(out, plan.Field{Name: names[i], Type: types[i].result()})
		}
		return nil
	})
	if err != nil {
		return nil, failure(ctx, err)
	}
	return out, nil
}

// Rows implements File.
func (f *textFile) Rows(ctx context.Context, columns []Column) (Rows, error) {
	out := &textRows{ctx: ctx, columns: columns}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Field.Name, Type: c.textType(), Nullable: true}
		out.fields = max(out.fields, c.At+1)
	}
	switch {
	case f.o.Fields > 0:
		out.fields = f.o.Fields
	case f.names != nil:
		out.fields = len(f.names)
	}
	out.schema = arrow.NewSchema(fields, nil)
	err := guarded(func() (err error) {
		out.records, err = f.rows()
		return err
	})
	if err != nil {
		return nil, failure(ctx, err)
	}
	return out, nil
}

// textRows makes batches of records.
type textRows struct {
	ctx     context.Context
	columns []Column
	fields  int // of a record
	schema  *arrow.Schema
	records *records
	err     error
}

// Next implements Rows.
func (t *textRows) Next() (b arrow.RecordBatch, err error) {
	if t.err != nil {
		return nil, t.err
	}
	err = guarded(func() error {
		b, err = t.next()
		return err
	})
	switch {
	case err == io.EOF:
		t.err = io.EOF
	case err != nil:
		t.err = failure(t.ctx, err)
	}
	return b, t.err
}

func (t *textRows) next() (arrow.RecordBatch, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, t.schema)
	defer builder.Release()
	rows, size := 0, 0
	for rows < batchRows && size < batchBytes {
		if err := row(t.records, t.fields); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for i, c := range t.columns {
			b := builder.Field(i)
			if c.At < 0 {
				continue // a constant, below
			}
			v, isNull := t.records.field(c.At)
			if isNull {
				b.AppendNull()
				continue
			}
			if !appendText(b, v) {
				return nil, unfit(t.records.at, c.Field)
			}
		}
		rows++
		size += len(t.records.data)
	}
	if rows == 0 {
		return nil, io.EOF
	}
	for i, c := range t.columns {
		for n := 0; c.At < 0 && n < rows; n++ {
			if err := appendConstant(builder.Field(i), c); err != nil {
				return nil, err
			}
		}
	}
	return builder.NewRecordBatch(), nil
}

// unfit is the refusal of a value.
func unfit(line int64, f plan.Field) error {
	what := fmt.Sprintf("is no %s, or does not fit", plan.TypeName(f.Type))
	if plan.IsString(textType(f.Type)) {
		what = "is not UTF-8"
	}
	return fault.New(fault.OutOfRange, "the value for column '%s' in the row at line %d of the file %s; nothing was loaded", f.Name, line, what)
}

// Close implements Rows.
func (t *textRows) Close() error {
	if t.err == nil {
		t.err = io.EOF
	}
	return nil
}
