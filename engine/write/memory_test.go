package write

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// spoiled is an allocator whose memory changes when it is given back, as that of
// another language may: what is kept of a batch after its release shows.
type spoiled struct{ memory.Allocator }

var spoiling = spoiled{memory.DefaultAllocator}

func (s spoiled) Free(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
	s.Allocator.Free(b)
}

func (s spoiled) Reallocate(size int, b []byte) []byte {
	next := s.Allocate(size)
	copy(next, b)
	s.Free(b)
	return next
}

// TestMemoryOfBatches: nothing of a batch is used after it was released: not in the
// values of partitions, the folders of files, bounds, the order of rows, nor in the
// places of changed rows.
func TestMemoryOfBatches(t *testing.T) {
	for _, ty := range everyType {
		if _, nested := ty.typ.(iceberg.NestedType); nested {
			continue
		}
		for _, tr := range []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.TruncateTransform{Width: 2}, iceberg.BucketTransform{NumBuckets: 3}} {
			if !tr.CanTransform(ty.typ) {
				continue
			}
			t.Run(ty.name+" "+tr.String(), func(t *testing.T) {
				l := newLake(t)
				tb := l.create("t", creation{
					schema: iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", ty.typ)), version: "3", props: modesOf("copy-on-write"),
					partition: []iceberg.PartitionField{{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: tr}},
					sort:      []table.SortField{{SourceIDs: []int{2}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsFirst}},
				})
				var rows []string
				in := &batches{}
				for _, v := range append(slices.Clone(ty.values), "null") {
					rec := l.fromJSON(schemaOf(tb), `[{"id":1,"v":`+v+`}]`)
					in.list, rows = append(in.list, rec), append(rows, rowsOf(rec)...)
				}
				_, err := Append(ctx, tb, in, l.options())
				l.must(err)
				l.want(l.read("t"), rows...)
				l.checkPartitions("t", tr)
			})
		}
	}
}
