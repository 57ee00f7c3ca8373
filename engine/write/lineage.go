package write

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"sqe/plan"
)

// lineage finds the ids of rows that are updated. Source: Iceberg specification, "Row
// Lineage".
type lineage struct {
	job  *job
	own  map[string]bool    // by file: whether it holds a column of ids
	read map[string][]int64 // by file: id + 1 by position, 0 for none
	size int
}

func newLineage(j *job) *lineage {
	return &lineage{job: j, own: map[string]bool{}, read: map[string][]int64{}}
}

// maxIDs bounds how many ids are kept in memory.
const maxIDs = 4 << 20

// of is the id of a row; false when it has none, as in files from before version 3.
func (l *lineage) of(t table.FileScanTask, position int64) (int64, bool, error) {
	path := t.File.FilePath()
	own, known := l.own[path]
	if !known {
		var err error
		if own, err = l.job.o.Planner.Has(l.job.ctx, l.job.target.table, t, plan.RowIDField); err != nil {
			return 0, false, err
		}
		l.own[path] = own
	}
	if !own {
		if t.FirstRowID == nil {
			return 0, false, nil
		}
		return *t.FirstRowID + position, true, nil
	}
	ids, ok := l.read[path]
	if !ok {
		var err error
		if ids, err = l.load(t); err != nil {
			return 0, false, err
		}
	}
	id := ids[position]
	return id - 1, id > 0, nil
}

func (l *lineage) load(t table.FileScanTask) ([]int64, error) {
	if l.size > maxIDs {
		clear(l.read)
		l.size = 0
	}
	out := make([]int64, t.File.Count())
	s := &plan.Scan{Table: l.job.target.table, Cols: []plan.ScanColumn{
		{Column: plan.Column{ID: 1, Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField},
		{Column: plan.Column{ID: 2, Name: "_row_id", Type: plan.Int64, Nullable: true}, FieldID: plan.RowIDField},
	}}
	r, err := l.job.o.Planner.ReadTask(l.job.ctx, s, t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		positions, ids := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64)
		for i := range positions.Len() {
			if ids.IsValid(i) {
				out[positions.Value(i)] = ids.Value(i) + 1
			}
		}
		b.Release()
	}
	l.read[t.File.FilePath()] = out
	l.size += len(out)
	return out, nil
}
