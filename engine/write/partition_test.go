package write

import (
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"

	"sqe/catalog"
)

// checkPartitions reads every file and compares the partition of each row, as
// iceberg-go computes it, with that of the manifest.
func (l *lake) checkPartitions(name string, tr iceberg.Transform) {
	l.Helper()
	t := l.load(name)
	tg, err := newTarget(ctx, t)
	l.must(err)
	tasks, err := l.planner.Tasks(ctx, t)
	l.must(err)
	seen := map[string]bool{}
	for _, tk := range tasks {
		has := fmt.Sprint(tk.File.Partition()[1000])
		if _, void := tr.(iceberg.VoidTransform); !void && seen[has] {
			l.Errorf("two files of the partition %s", has)
		}
		seen[has] = true
		s := scanOf(t, false)
		r, err := l.planner.ReadTask(ctx, s, tk)
		l.must(err)
		b, err := r.Next()
		l.must(err)
		rec, err := tg.convert(ctx, b, tg.columns(0))
		l.must(err)
		read, err := reader(rec, []int{1}, tg.schema.Field(1).Type)
		l.must(err)
		for i := range int(rec.NumRows()) {
			want := "<nil>"
			if v, ok := read(i); ok {
				if out := tr.Apply(iceberg.Optional[iceberg.Literal]{Val: literalOf(v), Valid: true}); out.Valid {
					want = fmt.Sprint(out.Val.Any())
				}
			}
			if want != has {
				l.Errorf("%v lies in the partition %s, not in %s", b.Column(1).ValueStr(i), has, want)
			}
		}
		b.Release()
		l.must(r.Close())
	}
}

func literalOf(v any) iceberg.Literal {
	switch v := v.(type) {
	case float32:
		return iceberg.NewLiteral(v)
	case float64:
		return iceberg.NewLiteral(v)
	}
	return literal(v)
}

// TestEmptyTextPartitions: the manifest list says that an empty text is there, alone or
// beside NULL and others, so that nobody takes its rows for rows of NULL.
func TestEmptyTextPartitions(t *testing.T) {
	for _, typ := range []iceberg.Type{iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Binary} {
		for _, transform := range []iceberg.Transform{iceberg.IdentityTransform{}, iceberg.TruncateTransform{Width: 3}} {
			for _, rows := range []string{`[{"id":1,"v":""}]`, `[{"id":1,"v":""},{"id":2,"v":null}]`, `[{"id":1,"v":""},{"id":2,"v":"AP8A"}]`} {
				l := newLake(t)
				l.create("t", creation{
					schema: iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "v", typ)), version: "2",
					partition: []iceberg.PartitionField{
						{SourceIDs: []int{1}, FieldID: 1000, Name: "i", Transform: iceberg.IdentityTransform{}},
						{SourceIDs: []int{2}, FieldID: 1001, Name: "p", Transform: transform},
					},
				})
				l.append("t", rows)
				h := l.load("t").Handle.(*catalog.Handle)
				fs, err := h.Table.FS(ctx)
				l.must(err)
				manifests, err := h.Snapshot.Manifests(fs)
				l.must(err)
				if len(manifests) != 1 {
					t.Fatalf("%d manifests", len(manifests))
				}
				for _, m := range manifests {
					p := m.Partitions()
					if len(p) != 2 || p[1].LowerBound == nil || len(*p[1].LowerBound) != 0 || p[1].UpperBound == nil {
						t.Errorf("%s %s %s: %+v", typ, transform, rows, p)
					}
					if p[0].LowerBound == nil || len(*p[0].LowerBound) != 8 {
						t.Errorf("%s %s %s: the other field has the bound %v", typ, transform, rows, p[0].LowerBound)
					}
				}
				if got := l.read("t"); len(got) == 0 {
					t.Errorf("no rows: %s %s %s", typ, transform, rows)
				}
			}
		}
	}
}
