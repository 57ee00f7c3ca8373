//go:build e2e

package writes

import (
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sqe/engine/duck"
	"sqe/engine/scan"
	"sqe/plan"
)

func (l *lake) load(name string) *plan.Table {
	l.Helper()
	t, err := l.catalog.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
	l.must(err)
	return t
}

// rowIDs are the ids of rows by their column id; -1 where there are none.
func (l *lake) rowIDs(name string) map[int64]int64 {
	l.Helper()
	t := l.load(name)
	s := &plan.Scan{Table: t, Cols: []plan.ScanColumn{
		{Column: plan.Column{ID: 1, Name: "id", Type: plan.Int64}, FieldID: 1},
		{Column: plan.Column{ID: 2, Name: "_row_id", Type: plan.Int64}, FieldID: plan.RowIDField},
	}}
	tasks, err := l.planner.Tasks(ctx, t)
	l.must(err)
	out := map[int64]int64{}
	for _, tk := range tasks {
		r, err := l.planner.ReadTask(ctx, s, tk)
		l.must(err)
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			ids, rows := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64)
			for i := range ids.Len() {
				out[ids.Value(i)] = -1
				if rows.IsValid(i) {
					out[ids.Value(i)] = rows.Value(i)
				}
			}
			b.Release()
		}
		l.must(r.Close())
	}
	return out
}

// compare has the engine's executor read every table, as files where it can, and
// compares with what engine/scan reads by itself.
func (l *lake) compare() {
	l.Helper()
	in, err := duck.Open(duck.Config{Roots: []string{l.dir}, MemoryLimit: 1 << 30})
	l.must(err)
	defer func() { l.must(in.Close()) }()
	files, streams := 0, 0
	for name := range l.tables {
		t := l.load(name)
		s := &plan.Scan{Table: t}
		for i, f := range t.Fields {
			if !plan.IsNested(f.Type) {
				s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: plan.ColumnID(i + 1), Name: f.Name, Type: f.Type, Nullable: true}, FieldID: f.ID})
			}
		}
		s.Cols = append(s.Cols,
			plan.ScanColumn{Column: plan.Column{ID: 100, Name: "_file", Type: plan.String}, FieldID: plan.FileField},
			plan.ScanColumn{Column: plan.Column{ID: 101, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField})
		input, err := l.planner.Plan(ctx, s)
		l.must(err)
		files += len(input.Files)
		if input.Stream != nil {
			streams++
		}
		rows, err := in.Run(ctx, s, func(*plan.Scan) (*scan.Input, error) { return input, nil })
		l.must(err)
		got := l.texts(rows)
		l.must(rows.Close())
		var want []string
		tasks, err := l.planner.Tasks(ctx, t)
		l.must(err)
		for _, tk := range tasks {
			r, err := l.planner.ReadTask(ctx, s, tk)
			l.must(err)
			want = append(want, l.texts(r)...)
			l.must(r.Close())
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(got) == 0 || !slices.Equal(got, want) {
			l.Errorf("%s: the executor reads\n%v\nwant\n%v", name, got, want)
		}
	}
	if files == 0 || streams == 0 {
		l.Errorf("%d files and %d streams: the test shows less than it should", files, streams)
	}
}

func (l *lake) texts(r interface {
	Next() (arrow.RecordBatch, error)
},
) []string {
	l.Helper()
	var out []string
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		l.must(err)
		for i := range int(b.NumRows()) {
			row := ""
			for _, c := range b.Columns() {
				row += c.ValueStr(i) + "|"
			}
			out = append(out, row)
		}
		b.Release()
	}
}
