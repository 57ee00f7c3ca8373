package duck

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/scan"
	"sqe/masks"
	"sqe/plan"
)

// eight is a table of n rows and 8 columns.
func eight(b *testing.B, dir string, n int) (*plan.Scan, Inputs) {
	cols := []column{{"l1", plan.Int64, ""}, {"l2", plan.Int64, ""}, {"q", plan.Decimal(15, 2), ""}, {"p", plan.Float64, ""}, {"flag", plan.String, ""}, {"day", plan.Date, ""}, {"mode", plan.String, ""}, {"comment", plan.String, ""}}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: c.name, Type: c.typ, Nullable: true}
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer rb.Release()
	for i := range n {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.Int64Builder).Append(int64(i * 7919 % 200_000))
		if err := rb.Field(2).AppendValueFromString(fmt.Sprintf("%d.%02d", i%50, i%100)); err != nil {
			b.Fatal(err)
		}
		rb.Field(3).(*array.Float64Builder).Append(float64(i) * 1.01)
		rb.Field(4).(*array.StringBuilder).Append("AB"[i%2 : i%2+1])
		rb.Field(5).(*array.Date32Builder).Append(arrow.Date32(8000 + i%2500))
		rb.Field(6).(*array.StringBuilder).Append([]string{"AIR", "RAIL", "SHIP", "TRUCK"}[i%4])
		rb.Field(7).(*array.StringBuilder).Append(fmt.Sprintf("Carefully Final %d-%d deposits", i, i%1000))
	}
	path := writeFile(b, dir, "eight.parquet", rb.NewRecordBatch())
	return scanOf(1, cols...), fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}, Rows: int64(n)})
}

func drain(b *testing.B, in *Instance, n plan.Node, inputs Inputs) int64 {
	r, err := in.Run(context.Background(), n, inputs)
	if err != nil {
		b.Fatalf("%v: %v", err, unwrapped(err))
	}
	defer func() { _ = r.Close() }()
	rows := int64(0)
	for {
		batch, err := r.Next()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			b.Fatalf("%v: %v", err, unwrapped(err))
		}
		rows += batch.NumRows()
		batch.Release()
	}
}

func BenchmarkPoint(b *testing.B) {
	dir := b.TempDir()
	in := open(b, Config{Roots: []string{dir}})
	s, inputs := eight(b, dir, 25)
	n := &plan.Project{Input: &plan.Filter{Input: s, Cond: call("eq", ref(s, 0), 7)}, Items: []plan.Item{item(20, ref(s, 7))}}
	for b.Loop() {
		if drain(b, in, n, inputs) != 1 {
			b.Fatal("not one row")
		}
	}
}

func BenchmarkStream1MRows(b *testing.B) {
	dir := b.TempDir()
	in := open(b, Config{Roots: []string{dir}})
	s, inputs := eight(b, dir, 1_000_000)
	for b.Loop() {
		if drain(b, in, s, inputs) != 1_000_000 {
			b.Fatal("rows are missing")
		}
	}
}

// BenchmarkMask5M computes a mask for 5 million values (a million rows, five
// times) and folds the results.
func BenchmarkMask5M(b *testing.B) {
	dir := b.TempDir()
	in := open(b, Config{Roots: []string{dir}})
	s, inputs := eight(b, dir, 1_000_000)
	text := plan.Field{Name: "comment", Type: plan.String}
	long := plan.Field{Name: "l1", Type: plan.Int64}
	o := masks.Options{HashKey: []byte("key"), Salt: make([]byte, 16)}
	build := func(action string, f plan.Field) masks.Mask {
		m, err := masks.New(action, f, o)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name string
		col  int
		mask masks.Mask
	}{
		{"none", 7, func(e plan.Expr) plan.Expr { return e }},
		{"MASK", 7, build(masks.Redact, text)},
		{"SHOW_LAST_4", 7, build(masks.ShowLast4, text)},
		{"MASK_HASH", 7, build(masks.Hash, text)},
		{"MASK_HASH_long", 0, build(masks.Hash, long)},
		{"alphanum", 7, build(masks.IcebergAlphanum, text)},
		{"sha256", 7, build(masks.IcebergSHA256Global, text)},
		{"year", 5, build(masks.DateShowYear, plan.Field{Type: plan.Date})},
		{"custom", 7, func(e plan.Expr) plan.Expr { return call("concat", "x-", call("substr", e, 8, 4)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			five := plan.Node(&plan.Project{Input: s, Items: []plan.Item{item(30, c.mask(ref(s, c.col)))}})
			for i := range 4 {
				t := scanOf(plan.ColumnID(100*(i+1)), column{"l1", plan.Int64, ""}, column{"l2", plan.Int64, ""}, column{"q", plan.Decimal(15, 2), ""}, column{"p", plan.Float64, ""}, column{"flag", plan.String, ""}, column{"day", plan.Date, ""}, column{"mode", plan.String, ""}, column{"comment", plan.String, ""})
				right := &plan.Project{Input: t, Items: []plan.Item{item(plan.ColumnID(100*(i+1)+30), c.mask(ref(t, c.col)))}}
				five = &plan.SetOp{Kind: plan.Union, All: true, Left: five, Right: right, Cols: []plan.Column{{ID: plan.ColumnID(1000 + i), Type: right.Items[0].Type}}}
			}
			n := &plan.Aggregate{Input: five, Aggs: []plan.AggItem{agg(2000, "max", ref(five, 0)), agg(2001, "count")}}
			for b.Loop() {
				drain(b, in, n, inputs)
			}
		})
	}
}
