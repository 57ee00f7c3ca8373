package restrictions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/rewrite"
)

// orders is a table with a column of every type.
func orders() *plan.Table {
	customer := arrow.StructOf(
		arrow.Field{Name: "ssn", Type: plan.String, Nullable: true},
		arrow.Field{Name: "age", Type: plan.Int32, Nullable: true},
	)
	tags := arrow.ListOf(plan.String)
	attributes := arrow.MapOf(plan.String, plan.Int64)
	return &plan.Table{
		Name: plan.TableName{Catalog: "lake", Namespace: []string{"sales"}, Name: "orders"},
		Fields: []plan.Field{
			{ID: 1, Name: "id", Type: plan.Int64, Required: true},
			{ID: 2, Name: "region", Type: plan.String},
			{ID: 3, Name: "other", Type: plan.String},
			{ID: 5, Name: "qty", Type: plan.Int32},
			{ID: 6, Name: "amount", Type: plan.Decimal(10, 2)},
			{ID: 7, Name: "ordered", Type: plan.Date},
			{ID: 8, Name: "at", Type: plan.Timestamp},
			{ID: 9, Name: "seen", Type: plan.TimestampTZ},
			{ID: 10, Name: "ratio", Type: plan.Float32},
			{ID: 11, Name: "score", Type: plan.Float64},
			{ID: 12, Name: "open", Type: plan.Bool},
			{ID: 13, Name: "hour", Type: plan.Time},
			{ID: 14, Name: "key", Type: plan.UUID},
			{ID: 15, Name: "code", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}},
			{ID: 16, Name: "blob", Type: plan.Binary},
			{ID: 17, Name: "nano", Type: plan.TimestampNS},
			{ID: 18, Name: "total", Type: plan.Int64},
			{ID: 20, Name: "customer", Type: customer, Children: []plan.Field{
				{ID: 21, Name: "ssn", Type: plan.String}, {ID: 22, Name: "age", Type: plan.Int32},
			}},
			{ID: 30, Name: "tags", Type: tags, Children: []plan.Field{{ID: 31, Name: "element", Type: plan.String}}},
			{ID: 40, Name: "attributes", Type: attributes, Children: []plan.Field{
				{ID: 41, Name: "key", Type: plan.String, Required: true}, {ID: 42, Name: "value", Type: plan.Int64},
			}},
			{ID: 50, Name: "place", Type: plan.Null},
		},
		Beneath:  map[int]int{51: 50},
		Formerly: map[int][]string{60: {"gone"}},
	}
}

// record is a row of orders by field id: nil is NULL, as is what is left out; a
// struct is NULL when "null" stands for it. The id is the place of the row.
type record map[int]any

// kept runs the row filter over rows and lists the places of those that it keeps.
func kept(t testing.TB, in *duck.Instance, raw string, data []record) ([]int64, error) {
	t.Helper()
	table := orders()
	r := Compile([]byte(raw), table)
	bound, err := rewrite.Prepare(context.Background(), table, r, nil, masks.Options{})
	if err != nil {
		return nil, err
	}
	ids := &plan.IDs{}
	s := &plan.Scan{Table: table}
	for _, f := range table.Fields {
		if f.Type.ID() == arrow.NULL {
			continue
		}
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: f.Name, Type: f.Type, Nullable: true}, FieldID: f.ID})
	}
	first := s.Cols[0].Column
	root := &plan.Project{Input: s, Items: []plan.Item{{Column: plan.Column{ID: ids.New(), Name: "id", Type: plan.Int64}, Expr: &plan.Ref{ID: first.ID, Typ: first.Type}}}}
	governed, _, err := rewrite.Govern(root, ids, func(*plan.Scan) (*rewrite.Bound, error) { return bound, nil }, nil)
	if err != nil {
		return nil, err
	}
	if err := rewrite.Verify(governed); err != nil {
		t.Fatal(err)
	}
	result, err := in.Run(context.Background(), rewrite.Pushdown(governed), func(s *plan.Scan) (*scan.Input, error) {
		return &scan.Input{Stream: &memoryStream{batch: batch(s, data)}}, nil
	})
	if err != nil {
		return nil, errors.Join(err, errors.Unwrap(err))
	}
	defer func() { _ = result.Close() }()
	var out []int64
	for {
		b, err := result.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, errors.Join(err, errors.Unwrap(err))
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).(*array.Int64).Value(i))
		}
		b.Release()
	}
}

// batch has the columns of a scan.
func batch(s *plan.Scan, data []record) arrow.RecordBatch {
	var fields []arrow.Field
	var cols []arrow.Array
	for _, c := range s.Cols {
		b := array.NewBuilder(memory.DefaultAllocator, c.Type)
		for i, r := range data {
			switch {
			case c.FieldID == 1:
				put(b, int64(i))
			case c.FieldID == 20 && r[20] == nil:
				b.(*array.StructBuilder).Append(true)
				put(b.(*array.StructBuilder).FieldBuilder(0), r[21])
				put(b.(*array.StructBuilder).FieldBuilder(1), r[22])
			case c.FieldID == 20:
				b.AppendNull()
			default:
				put(b, r[c.FieldID])
			}
		}
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: true})
		cols = append(cols, b.NewArray())
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(data)))
}

// put appends a value in the representation of plan.Literal.
func put(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.Date32Builder:
		b.Append(v.(arrow.Date32))
	case *array.TimestampBuilder:
		b.Append(v.(arrow.Timestamp))
	case *array.Time64Builder:
		b.Append(v.(arrow.Time64))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.FixedSizeBinaryBuilder:
		b.Append(v.([]byte))
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte(v.([]byte)))
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

type memoryStream struct{ batch arrow.RecordBatch }

func (s *memoryStream) Open(_ context.Context, columns []int) (scan.Reader, error) {
	return &memoryReader{s.batch, columns, false}, nil
}

type memoryReader struct {
	batch   arrow.RecordBatch
	columns []int
	done    bool
}

func (r *memoryReader) Next() (arrow.RecordBatch, error) {
	if r.done {
		return nil, io.EOF
	}
	r.done = true
	var fields []arrow.Field
	var cols []arrow.Array
	for _, c := range r.columns {
		fields, cols = append(fields, r.batch.Schema().Field(c)), append(cols, r.batch.Column(c))
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, r.batch.NumRows()), nil
}

func (r *memoryReader) Close() error { return nil }

func open(t testing.TB) *duck.Instance {
	t.Helper()
	in, err := duck.Open(duck.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

// broken reports whether the table was refused for its policy, with a reason.
func broken(err error) bool { return fault.Is(err, fault.PolicyBroken) && errors.Unwrap(err) != nil }
