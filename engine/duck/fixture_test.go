package duck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"go.uber.org/goleak"

	"sqe/engine/scan"
	"sqe/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts an instance that may read dirs.
func open(t testing.TB, c Config) *Instance {
	t.Helper()
	if c.Threads == 0 {
		c.Threads = 2
	}
	in, err := Open(c)
	if err != nil {
		t.Fatalf("Open: %v (%v)", err, errors.Unwrap(err))
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return in
}

// column is one column of a test table, given by its JSON values.
type column struct {
	name string
	typ  arrow.DataType
	json string
}

func batch(t testing.TB, cols ...column) arrow.RecordBatch {
	t.Helper()
	fields := make([]arrow.Field, len(cols))
	arrays := make([]arrow.Array, len(cols))
	rows := 0
	for i, c := range cols {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.json))
		if err != nil {
			t.Fatalf("column %s: %v", c.name, err)
		}
		fields[i] = arrow.Field{Name: c.name, Type: c.typ, Nullable: true}
		arrays[i] = a
		rows = a.Len()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(rows))
}

// writeFile writes a Parquet file and returns its path.
func writeFile(t testing.TB, dir, name string, b arrow.RecordBatch) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(b.Schema(), f, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// fixed gives the same input to every scan.
func fixed(in *scan.Input) Inputs { return func(*plan.Scan) (*scan.Input, error) { return in, nil } }

// scanOf makes a scan with ids from first on.
func scanOf(first plan.ColumnID, cols ...column) *plan.Scan {
	s := &plan.Scan{Table: &plan.Table{}}
	for i, c := range cols {
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: first + plan.ColumnID(i), Name: c.name, Type: c.typ, Nullable: true}, FieldID: i + 1})
	}
	return s
}

// fileOf describes a file that has exactly the columns of the table.
func fileOf(path string, cols ...column) scan.File {
	f := scan.File{Path: path}
	for _, c := range cols {
		f.Columns = append(f.Columns, scan.FileColumn{Name: c.name, Type: c.typ})
	}
	return f
}

func ref(s plan.Node, i int) *plan.Ref {
	c := s.Columns()[i]
	return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}
}

func lit(v any) *plan.Literal {
	switch v := v.(type) {
	case nil:
		return &plan.Literal{Typ: plan.Null}
	case bool:
		return &plan.Literal{Value: v, Typ: plan.Bool}
	case int:
		return &plan.Literal{Value: int64(v), Typ: plan.Int64}
	case int64:
		return &plan.Literal{Value: v, Typ: plan.Int64}
	case float64:
		return &plan.Literal{Value: v, Typ: plan.Float64}
	case string:
		return &plan.Literal{Value: v, Typ: plan.String}
	case []byte:
		return &plan.Literal{Value: v, Typ: plan.Binary}
	}
	panic(fmt.Sprintf("%T", v))
}

// dec is a decimal literal, its scale that of the text.
func dec(s string) *plan.Literal {
	scale := 0
	if i := strings.IndexByte(s, '.'); i >= 0 {
		scale = len(s) - i - 1
	}
	digits := len(strings.Trim(strings.ReplaceAll(s, ".", ""), "-"))
	return decT(s, int32(max(digits, scale)), int32(scale))
}

func decT(s string, p, scale int32) *plan.Literal {
	n, err := decimal128.FromString(s, p, scale)
	if err != nil {
		panic(err)
	}
	return &plan.Literal{Value: n, Typ: plan.Decimal(p, scale)}
}

func null(t arrow.DataType) *plan.Literal { return &plan.Literal{Typ: t} }

func call(name string, args ...any) *plan.Call {
	out := make([]plan.Expr, len(args))
	for i, a := range args {
		if e, ok := a.(plan.Expr); ok {
			out[i] = e
			continue
		}
		out[i] = lit(a)
	}
	return plan.MustCall(name, out...)
}

// collect reads all rows as text, one string for each row, in order.
func collect(r *Rows) ([]string, error) {
	defer func() { _ = r.Close() }()
	var out []string
	for {
		b, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			parts := make([]string, b.NumCols())
			for j, c := range b.Columns() {
				if c.IsNull(i) {
					parts[j] = "NULL"
				} else {
					parts[j] = show(c, i)
				}
			}
			out = append(out, strings.Join(parts, "|"))
		}
		b.Release()
	}
}

// show is a value as text that outlives its batch.
func show(c arrow.Array, i int) string {
	switch c := c.(type) {
	case *array.Decimal128:
		return c.Value(i).ToString(c.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Timestamp:
		return strings.Replace(c.ValueStr(i), "T", " ", 1)
	case *array.Binary:
		return fmt.Sprintf("%x", c.Value(i))
	}
	return strings.Clone(c.ValueStr(i))
}

func run(t testing.TB, in *Instance, n plan.Node, inputs Inputs) ([]string, error) {
	t.Helper()
	r, err := in.Run(context.Background(), n, inputs)
	if err != nil {
		return nil, err
	}
	return collect(r)
}

// want runs a plan and compares its rows.
func want(t testing.TB, in *Instance, n plan.Node, inputs Inputs, rows ...string) {
	t.Helper()
	got, err := run(t, in, n, inputs)
	if err != nil {
		t.Fatalf("%v: %v", err, errors.Unwrap(err))
	}
	if strings.Join(got, "\n") != strings.Join(rows, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
}

// stream is a Stream over batches in memory.
type stream struct {
	batches []arrow.RecordBatch
	fail    error // after the batches
	forever bool
	asked   *[]int
}

type streamReader struct {
	ctx context.Context
	s   *stream
	col []int
	i   int
}

func (s *stream) Open(ctx context.Context, columns []int) (scan.Reader, error) {
	if s.asked != nil {
		*s.asked = columns
	}
	return &streamReader{ctx: ctx, s: s, col: columns}, nil
}

func (r *streamReader) Next() (arrow.RecordBatch, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if r.i == len(r.s.batches) {
		if r.s.fail != nil {
			return nil, r.s.fail
		}
		if !r.s.forever {
			return nil, io.EOF
		}
		r.i = 0
	}
	b := r.s.batches[r.i]
	r.i++
	fields := make([]arrow.Field, len(r.col))
	cols := make([]arrow.Array, len(r.col))
	for i, c := range r.col {
		fields[i], cols[i] = b.Schema().Field(c), b.Column(c)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows()), nil
}

func (r *streamReader) Close() error { return nil }

type recordBatch = arrow.RecordBatch
