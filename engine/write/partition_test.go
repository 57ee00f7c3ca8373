package write

import (
	"fmt"

	"github.com/apache/iceberg-go"
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
