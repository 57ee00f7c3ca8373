package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"go.uber.org/goleak"

	"sqe/catalog"
	"sqe/engine/scan"
	"sqe/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// lake is a catalog in a folder of the test.
type lake struct {
	testing.TB
	dir     string
	catalog *catalog.SQL
	planner *scan.Planner
}

func newLake(t testing.TB) *lake {
	t.Helper()
	dir := t.TempDir()
	c, err := catalog.OpenSQLite("lake", dir+"/catalog.db", dir, catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Iceberg().CreateNamespace(ctx, table.Identifier{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	return &lake{TB: t, dir: dir, catalog: c, planner: scan.New(scan.Options{})}
}

func (l *lake) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

type creation struct {
	schema    *iceberg.Schema
	version   string
	partition []iceberg.PartitionField
	sort      []table.SortField
	props     iceberg.Properties
}

func (l *lake) create(name string, c creation) *plan.Table {
	l.Helper()
	all := iceberg.Properties{"format-version": c.version}
	for k, v := range c.props {
		all[k] = v
	}
	spec := iceberg.NewPartitionSpec(c.partition...)
	opts := []icebergcatalog.CreateTableOpt{icebergcatalog.WithPartitionSpec(&spec), icebergcatalog.WithProperties(all)}
	if c.sort != nil {
		o, err := table.NewSortOrder(1, c.sort)
		l.must(err)
		opts = append(opts, icebergcatalog.WithSortOrder(o))
	}
	_, err := l.catalog.Iceberg().CreateTable(ctx, table.Identifier{"ns", name}, c.schema, opts...)
	l.must(err)
	return l.load(name)
}

func (l *lake) load(name string) *plan.Table {
	l.Helper()
	t, err := l.catalog.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: name}, plan.AsOf{}, "")
	l.must(err)
	return t
}

func (l *lake) options() Options {
	return Options{Committer: &committer{catalog: l.catalog}, Planner: l.planner}
}

func (l *lake) evolve(name string, f func(*table.UpdateSchema) *table.UpdateSchema) {
	l.Helper()
	t, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", name})
	l.must(err)
	tx := t.NewTransaction()
	l.must(f(tx.UpdateSchema(true, true)).Commit())
	_, err = tx.Commit(ctx)
	l.must(err)
}

func (l *lake) respec(name string, f func(*table.UpdateSpec) *table.UpdateSpec) {
	l.Helper()
	t, err := l.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", name})
	l.must(err)
	tx := t.NewTransaction()
	l.must(f(tx.UpdateSpec(true)).Commit())
	_, err = tx.Commit(ctx)
	l.must(err)
}

var errLost = fmt.Errorf("the answer was lost: %w", catalog.ErrUnknown)

// committer is the catalog with accidents.
type committer struct {
	catalog *catalog.SQL
	staged  func(attempt int) // called when a change is staged
	fail    error             // instead of a commit
	lost    bool              // the commit is made, and its answer lost
}

func (c *committer) Commit(ctx context.Context, name plan.TableName, change catalog.TableChange) (*plan.Table, error) {
	attempt := 0
	t, err := c.catalog.Commit(ctx, name, func(ctx context.Context, tx *table.Transaction, t *plan.Table) error {
		if err := change(ctx, tx, t); err != nil {
			return err
		}
		if c.staged != nil {
			c.staged(attempt)
		}
		attempt++
		return c.fail
	})
	if err == nil && c.lost {
		return nil, errLost
	}
	return t, err
}

// batches are Rows in memory.
type batches struct {
	list   []arrow.RecordBatch
	after  error // instead of io.EOF
	each   func()
	closed bool
}

func (b *batches) Next() (arrow.RecordBatch, error) {
	if b.each != nil {
		b.each()
	}
	if len(b.list) == 0 {
		if b.after != nil {
			return nil, b.after
		}
		return nil, io.EOF
	}
	next := b.list[0]
	b.list = b.list[1:]
	return next, nil
}

func (b *batches) Close() error {
	if b.closed {
		return errors.New("closed twice")
	}
	b.closed = true
	return nil
}

// schemaOf is what a plan yields for a table.
func schemaOf(t *plan.Table) *arrow.Schema {
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// rows reads JSON objects, a batch for each text.
func (l *lake) rows(t *plan.Table, texts ...string) *batches {
	l.Helper()
	out := &batches{}
	for _, s := range texts {
		out.list = append(out.list, l.fromJSON(schemaOf(t), s))
	}
	return out
}

func (l *lake) fromJSON(s *arrow.Schema, text string) arrow.RecordBatch {
	l.Helper()
	rec, _, err := array.RecordFromJSON(spoiling, s, strings.NewReader(text))
	l.must(err)
	return rec
}

func (l *lake) append(name string, texts ...string) Result {
	l.Helper()
	t := l.load(name)
	res, err := Append(ctx, t, l.rows(t, texts...), l.options())
	l.must(err)
	return res
}

func scanOf(t *plan.Table, virtual bool) *plan.Scan {
	s := &plan.Scan{Table: t}
	var ids plan.IDs
	for _, f := range t.Fields {
		s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: f.Name, Type: f.Type, Nullable: !f.Required}, FieldID: f.ID})
	}
	if virtual {
		s.Cols = append(s.Cols,
			plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: "_file", Type: plan.String}, FieldID: plan.FileField},
			plan.ScanColumn{Column: plan.Column{ID: ids.New(), Name: "_pos", Type: plan.Int64}, FieldID: plan.PositionField})
	}
	return s
}

// each visits the batches of a table as it is now, read by engine/scan.
func (l *lake) each(s *plan.Scan, visit func(arrow.RecordBatch)) {
	l.Helper()
	tasks, err := l.planner.Tasks(ctx, s.Table)
	l.must(err)
	for _, tk := range tasks {
		r, err := l.planner.ReadTask(ctx, s, tk)
		l.must(err)
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			visit(b)
			b.Release()
		}
		l.must(r.Close())
	}
}

// read gives every row as text, sorted.
func (l *lake) read(name string) []string {
	l.Helper()
	var out []string
	l.each(scanOf(l.load(name), false), func(b arrow.RecordBatch) { out = append(out, rowsOf(b)...) })
	slices.Sort(out)
	return out
}

func rowsOf(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, c.ValueStr(i))
		}
		out[i] = strings.Join(cells, "|")
	}
	return out
}

func (l *lake) want(got []string, want ...string) {
	l.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// files lists what lies in the folder of a table, its metadata files left out.
func (l *lake) files(name string) []string {
	l.Helper()
	var out []string
	h := l.load(name).Handle.(*catalog.Handle)
	root := strings.TrimPrefix(h.Table.Location(), "file://")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.HasSuffix(p, ".metadata.json") {
			out = append(out, strings.TrimPrefix(p, root))
		}
		return err
	})
	l.must(err)
	slices.Sort(out)
	return out
}

func (l *lake) dataFiles(name string) []iceberg.DataFile {
	l.Helper()
	tasks, err := l.planner.Tasks(ctx, l.load(name))
	l.must(err)
	out := make([]iceberg.DataFile, len(tasks))
	for i, t := range tasks {
		out[i] = t.File
	}
	return out
}

func col(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func simple() *iceberg.Schema {
	return iceberg.NewSchema(0,
		col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "name", iceberg.PrimitiveTypes.String), col(3, "n", iceberg.PrimitiveTypes.Int32))
}

func objects(from, to int) string {
	var b []string
	for i := from; i < to; i++ {
		b = append(b, fmt.Sprintf(`{"id": %d, "name": "n%d", "n": %d}`, i, i, i%7))
	}
	return "[" + strings.Join(b, ",") + "]"
}

func rowsText(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%d|n%d|%d", i, i, i%7))
	}
	return out
}
