package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"sqe/fault"
	"sqe/plan"
)

// What a row of changes does: the values of its op column, an int8.
const (
	Delete int8 = iota // the row at file and position ends
	Update             // it ends, and the new row takes its place
	Insert             // a new row; file and position are NULL
)

// Command is the statement that changes rows; each has a mode of its own.
type Command uint8

// The commands.
const (
	DeleteCommand Command = iota
	UpdateCommand
	MergeCommand
)

// property is where a table says how the command is to write.
func (c Command) property() string {
	return [...]string{"write.delete.mode", "write.update.mode", "write.merge.mode"}[c]
}

// isolation is where a table says how the command is isolated from others: serializable,
// which is the default, or snapshot.
func (c Command) isolation() string {
	return [...]string{"write.delete.isolation-level", "write.update.isolation-level", "write.merge.isolation-level"}[c]
}

// Layout says where in a batch of changes is what.
type Layout struct {
	Command Command
	// Op, File and Position are the columns of the operation (int8), of the data file
	// as plan.FileField gives it (text) and of the position in it (int64).
	Op, File, Position int
	// Columns are those of the new row, parallel to the fields of the target. They are
	// not looked at where the op is Delete; without any Update and Insert they may be
	// left out.
	Columns []int
}

// Change ends rows of the target and adds others. It closes changes. The positions
// must be of the snapshot of the target.
//
// With copy-on-write each file with an ended row is written anew without it; with
// merge-on-read the ended positions are written down: as position delete files, or as
// deletion vectors from format version 3 on. Version 1 knows only copy-on-write, which
// is also the default. Rows keep their identity (row lineage) from version 3 on.
//
// A position that ends twice is fault.BadStatement. Others may commit meanwhile; a
// file whose rows end must still be there and have the deletes that it had, and unless
// the table asks for snapshot isolation nobody may have added rows, which the statement
// may have to change too: else fault.Conflict.
func Change(ctx context.Context, target *plan.Table, changes Rows, l Layout, o Options) (Result, error) {
	j, err := begin(ctx, target, changes, o)
	if err != nil {
		return Result{}, err
	}
	c := &change{job: j, layout: l}
	return j.run(c.run)
}

// change is the work of Change.
type change struct {
	*job
	layout Layout
	known  map[string]table.FileScanTask // the data files that the rows are from
	files  map[string]*ended
	ids    *lineage // nil without row lineage
	new    []*dataFile
}

// ended are the ended rows of one data file.
type ended struct {
	task      table.FileScanTask
	positions *dv.RoaringPositionBitmap
}

func (c *change) run() error {
	if c.o.Planner == nil {
		return errors.New("a change without a planner")
	}
	tasks, err := c.o.Planner.Tasks(c.ctx, c.target.table)
	if err != nil {
		return err
	}
	c.known = make(map[string]table.FileScanTask, len(tasks))
	for _, t := range tasks {
		c.known[t.File.FilePath()] = t
	}
	c.files = map[string]*ended{}
	schema := c.target.schema
	if version(c.target.table) >= 3 {
		c.ids = newLineage(c.job)
		schema, _, err = c.target.withLineage()
		if err != nil {
			return err
		}
	}
	if err := c.collect(schema); err != nil {
		return err
	}
	if len(c.files) == 0 {
		if len(c.new) == 0 {
			return nil
		}
		return c.commit(func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
			if err := c.unchanged(ctx, t, nil); err != nil {
				return err
			}
			return c.stageAppend(ctx, tx, t, c.new)
		})
	}
	if c.mode() == "merge-on-read" && !c.whole() {
		return c.mergeOnRead()
	}
	return c.copyOnWrite(schema)
}

func (c *change) mode() string {
	mode := c.target.table.Properties[c.layout.Command.property()]
	if version(c.target.table) < 2 || mode != "merge-on-read" {
		return "copy-on-write"
	}
	return mode
}

// whole reports whether every changed file loses all its rows: there is nothing to
// copy then, and a file without rows is best left out.
func (c *change) whole() bool {
	for _, e := range c.files {
		if e.positions.Cardinality() != e.task.File.Count() {
			return false
		}
	}
	return true
}

// ordered are the changed files by path.
func (c *change) ordered() []*ended {
	out := make([]*ended, 0, len(c.files))
	for _, e := range c.files {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *ended) int { return strings.Compare(a.task.File.FilePath(), b.task.File.FilePath()) })
	return out
}

// collect reads the changes: positions into memory, new rows into files.
func (c *change) collect(schema *iceberg.Schema) error {
	var w *writer
	defer func() {
		if w != nil {
			w.stop()
		}
	}()
	err := c.each(func(b arrow.RecordBatch) error {
		rows, err := c.end(b, c.known)
		if err != nil || len(rows) == 0 {
			return err
		}
		if w == nil {
			if w, err = c.newWriter(schema, c.o.Workers); err != nil {
				return err
			}
		}
		rec, err := c.newRows(b, rows)
		if err != nil {
			return err
		}
		defer rec.Release()
		return w.write(rec)
	})
	if w == nil || err != nil {
		return err
	}
	if err := w.finish(nil); err != nil {
		return err
	}
	c.new = w.files
	return nil
}

// end notes the ended rows of a batch and gives the rows that bring a new one.
func (c *change) end(b arrow.RecordBatch, known map[string]table.FileScanTask) ([]int32, error) {
	for _, at := range []int{c.layout.Op, c.layout.File, c.layout.Position} {
		if at < 0 || at >= int(b.NumCols()) {
			return nil, fmt.Errorf("column %d of a batch of %d", at, b.NumCols())
		}
	}
	ops, ok := b.Column(c.layout.Op).(*array.Int8)
	files, okFile := b.Column(c.layout.File).(*array.String)
	positions, okPos := b.Column(c.layout.Position).(*array.Int64)
	if !ok || !okFile || !okPos {
		return nil, errors.New("changes with columns of other types")
	}
	var rows []int32
	var last *ended
	lastFile := ""
	for i := range int(b.NumRows()) {
		if ops.IsNull(i) {
			return nil, errors.New("a change without an operation")
		}
		op := ops.Value(i)
		located := files.IsValid(i) && positions.IsValid(i)
		if op < Delete || op > Insert || located != (op != Insert) {
			return nil, fmt.Errorf("a change %d with a place %t", op, located)
		}
		switch op {
		case Delete:
			c.result.Deleted++
		case Update:
			c.result.Updated++
		case Insert:
			c.result.Inserted++
		}
		if op != Delete {
			rows = append(rows, int32(i))
		}
		if op == Insert {
			continue
		}
		if f := files.Value(i); last == nil || f != lastFile {
			if last = c.files[f]; last == nil {
				t, ok := known[f]
				if !ok {
					return nil, errors.New("a change of a row in a file that the snapshot does not have")
				}
				lastFile = t.File.FilePath() // f lies in memory of the batch
				last = &ended{task: t, positions: dv.NewRoaringPositionBitmap()}
				c.files[lastFile] = last
			}
			lastFile = last.task.File.FilePath()
		}
		p := positions.Value(i)
		if p < 0 || p >= last.task.File.Count() {
			return nil, errors.New("a change of a row that its file does not have")
		}
		if last.positions.Contains(uint64(p)) {
			return nil, fault.New(fault.BadStatement, "The statement would change a row of table '%s' more than once; make the condition match each row at most once", c.target.table.Name)
		}
		last.positions.Set(uint64(p))
	}
	return rows, nil
}

// newRows makes the new rows of a batch of changes.
func (c *change) newRows(b arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	some, err := take(c.ctx, b, rows)
	if err != nil {
		return nil, err
	}
	defer some.Release()
	rec, err := c.target.convert(c.ctx, some, c.layout.Columns)
	if err != nil || c.ids == nil {
		return rec, err
	}
	defer rec.Release()
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	ops := some.Column(c.layout.Op).(*array.Int8)
	files := some.Column(c.layout.File).(*array.String)
	positions := some.Column(c.layout.Position).(*array.Int64)
	for i := range int(some.NumRows()) {
		if ops.Value(i) == Insert {
			ids.AppendNull()
			continue
		}
		id, ok, err := c.ids.of(c.files[files.Value(i)].task, positions.Value(i))
		if err != nil {
			return nil, err
		}
		if ok {
			ids.Append(id)
		} else {
			ids.AppendNull()
		}
	}
	col := ids.NewInt64Array()
	defer col.Release()
	// The sequence number of an updated row is that of the commit: NULL.
	none := array.MakeArrayOfNull(memory.DefaultAllocator, plan.Int64, int(rec.NumRows()))
	defer none.Release()
	return c.target.extended(rec, col, none)
}

// extended adds the columns of row lineage to a batch.
func (t *target) extended(rec arrow.RecordBatch, ids, updated arrow.Array) (arrow.RecordBatch, error) {
	_, schema, err := t.withLineage()
	if err != nil {
		return nil, err
	}
	cols := slices.Clone(rec.Columns())
	return array.NewRecordBatch(schema, append(cols, ids, updated), rec.NumRows()), nil
}

// unchanged makes sure that the files of a change are as they were when it was
// planned: still there, and with the deletes that they had.
func (j *job) unchanged(ctx context.Context, t *plan.Table, files []table.FileScanTask) error {
	if t.SnapshotID == j.target.table.SnapshotID {
		return nil
	}
	tasks, err := j.o.Planner.Tasks(ctx, t)
	if err != nil {
		return err
	}
	now := make(map[string]table.FileScanTask, len(tasks))
	for _, tk := range tasks {
		now[tk.File.FilePath()] = tk
	}
	for _, f := range files {
		if tk, ok := now[f.File.FilePath()]; !ok || !slices.Equal(deletesOf(f), deletesOf(tk)) {
			return fault.New(fault.Conflict, "Rows of table '%s' that the statement changes were changed by others meanwhile; nothing was changed, try again", t.Name)
		}
	}
	return nil
}

// unchanged is that of the job, and holds that others added no rows that the statement
// would have changed too, unless the table asks for less.
func (c *change) unchanged(ctx context.Context, t *plan.Table, files []table.FileScanTask) error {
	if err := c.job.unchanged(ctx, t, files); err != nil || t.SnapshotID == c.target.table.SnapshotID || !c.serializable(t) {
		return err
	}
	tasks, err := c.o.Planner.Tasks(ctx, t)
	if err != nil {
		return err
	}
	for _, tk := range tasks {
		if _, ok := c.known[tk.File.FilePath()]; !ok {
			return fault.New(fault.Conflict, "Rows were added to table '%s' meanwhile, which the statement may have to change too; nothing was changed, try again. The table property %s = snapshot lets it go on", t.Name, c.layout.Command.isolation())
		}
	}
	return nil
}

// serializable reports the isolation that the table asks for, as it is now.
func (c *change) serializable(t *plan.Table) bool {
	return t.Properties[c.layout.Command.isolation()] != "snapshot"
}

// deletesOf names the deletes of a file.
func deletesOf(t table.FileScanTask) []string {
	var out []string
	for _, list := range [][]iceberg.DataFile{t.DeleteFiles, t.EqualityDeleteFiles, t.DeletionVectorFiles} {
		for _, d := range list {
			name := d.FilePath()
			if at := d.ContentOffset(); at != nil {
				name = fmt.Sprintf("%s@%d", name, *at)
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
