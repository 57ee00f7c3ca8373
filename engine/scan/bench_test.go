package scan

import (
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/plan"
)

// wide appends a file of n rows.
func (l *lake) wide(t *table.Table, n int) *table.Table {
	l.Helper()
	schema, err := table.SchemaToArrowSchema(t.Schema(), nil, false, false)
	l.must(err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("a text of some thirty characters")
		b.Field(2).(*array.Int32Builder).Append(int32(i))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	data := array.NewTableFromRecords(schema, []arrow.RecordBatch{rec})
	defer data.Release()
	t, err = t.AppendTable(ctx, data, 8192, nil)
	l.must(err)
	return t
}

// TestStreamMemory: a reader whose taker is slow does not decode ahead.
func TestStreamMemory(t *testing.T) {
	l := newLake(t)
	tb := l.create("t", simple(), "3", nil, iceberg.Properties{
		"write.delete.mode": "merge-on-read", "write.parquet.row-group-limit": "100000",
	})
	const rows = 1_000_000
	tb = l.wide(tb, rows)
	_, err := tb.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
	l.must(err)
	s := scanOfTable(l.load("t", plan.AsOf{}))
	in := l.plan(s)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	r, err := in.Stream.Open(ctx, []int{0, 1, 2})
	l.must(err)
	total, most := int64(0), uint64(0)
	for i := 0; ; i++ {
		b, err := r.Next()
		if err != nil {
			break
		}
		total += b.NumRows()
		if i%20 == 0 {
			most = max(most, heap()) // the collection gives the reader time to run ahead
		}
		b.Release()
	}
	l.must(r.Close())
	if total != rows-1 {
		t.Errorf("%d rows", total)
	}
	// The whole table is some 50 MB decoded, a row group 5 MB.
	if grown := int64(most) - int64(before); grown > 20<<20 {
		t.Errorf("the reader held %d MB", grown>>20)
	}
}

func BenchmarkPlanPoint(b *testing.B) {
	l := newLake(b)
	tb := l.create("t", simple(), "2", nil, nil)
	for i := range 5 {
		tb = l.append(tb, liveObjects(i*10, i*10+10))
	}
	s := scanOfTable(l.load("t", plan.AsOf{}))
	ref := &plan.Ref{ID: s.Cols[0].ID, Typ: plan.Int64}
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		i++
		s.Prune = plan.MustCall("eq", ref, &plan.Literal{Value: i % 50, Typ: plan.Int64})
		in, err := l.planner.Plan(ctx, s)
		if err != nil || len(in.Files) != 1 {
			b.Fatal(in, err)
		}
	}
}

func BenchmarkLoadTable(b *testing.B) {
	l := newLake(b)
	l.append(l.create("t", simple(), "2", nil, nil), liveObjects(0, 10))
	name := plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: "t"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.catalog.Table(ctx, name, plan.AsOf{}, ""); err != nil {
			b.Fatal(err)
		}
	}
}
