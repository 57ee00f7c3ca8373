package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/cockroachdb/datadriven"

	"sqe/engine/bind"
	"sqe/engine/duck"
	"sqe/engine/parse"
	"sqe/engine/scan"
	"sqe/fault"
	"sqe/identity"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// lake is a few tables as one data file each.
type lake struct {
	tables map[string]*plan.Table
	files  map[*plan.Table]scan.File
	duck   *duck.Instance
}

type column struct {
	field plan.Field
	json  string
}

func newLake(t *testing.T) *lake {
	dir := t.TempDir()
	in, err := duck.Open(duck.Config{Roots: []string{dir}, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	l := &lake{tables: map[string]*plan.Table{}, files: map[*plan.Table]scan.File{}, duck: in}
	add := func(name string, cols ...column) {
		fields := make([]arrow.Field, len(cols))
		arrays := make([]arrow.Array, len(cols))
		table := &plan.Table{Name: plan.TableName{Catalog: "lake", Namespace: []string{"db"}, Name: name}, UUID: name, SnapshotID: 1, Version: "1"}
		path := filepath.Join(dir, name+".parquet")
		f := scan.File{Path: path, Location: "file://" + name}
		for i, c := range cols {
			a, _, err := array.FromJSON(memory.DefaultAllocator, c.field.Type, strings.NewReader(c.json))
			if err != nil {
				t.Fatal(err)
			}
			c.field.ID = i + 1
			table.Fields = append(table.Fields, c.field)
			fields[i] = arrow.Field{Name: c.field.Name, Type: c.field.Type, Nullable: true}
			arrays[i] = a
		}
		b := array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := pqarrow.NewFileWriter(b.Schema(), out, nil, pqarrow.DefaultWriterProps())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(b), w.Close()); err != nil {
			t.Fatal(err)
		}
		l.tables[name], l.files[table] = table, f
	}
	text := func(name, json string) column { return column{plan.Field{Name: name, Type: plan.String}, json} }
	long := func(name, json string) column { return column{plan.Field{Name: name, Type: plan.Int64}, json} }
	add("people", long("id", `[1, 2, 3, 4]`), text("name", `["ann", "bob", "cid", "dan"]`), text("ssn", `["111", "222", "333", "444"]`),
		text("region", `["EU", "US", "EU", "EU"]`), column{plan.Field{Name: "age", Type: plan.Int32}, `[30, 40, 50, null]`})
	add("news", long("id", `[1, 2, 9]`), text("name", `["anna", "bobby", "new"]`), text("region", `["EU", "EU", "US"]`))
	add("days", column{plan.Field{Name: "d", Type: plan.Date}, `[null]`})
	add("regions", text("region", `["EU"]`))
	address := arrow.StructOf(arrow.Field{Name: "city", Type: plan.String, Nullable: true})
	add("places", long("id", `[1, 2]`), column{plan.Field{Name: "at", Type: address, Children: []plan.Field{{ID: 50, Name: "city", Type: plan.String}}}, `[{"city": "x"}, null]`})
	add("kinds", long("l", `[1, 3000000000]`), column{plan.Field{Name: "i", Type: plan.Int32}, `[1, 2]`}, column{plan.Field{Name: "dbl", Type: plan.Float64}, `[1.5, 2.5]`},
		column{plan.Field{Name: "price", Type: plan.Decimal(4, 1)}, `["1.5", "-2.5"]`}, column{plan.Field{Name: "ts", Type: plan.Timestamp}, `["2020-01-02 03:04:05", null]`},
		column{plan.Field{Name: "b", Type: plan.Binary}, `["YQ==", null]`}, column{plan.Field{Name: "fl", Type: plan.Float32}, `[1, 2]`})
	return l
}

func (l *lake) input(s *plan.Scan) (*scan.Input, error) {
	f := l.files[s.Table]
	for _, c := range s.Cols {
		col := scan.FileColumn{Type: c.Type}
		if plan.IsVirtual(c.FieldID) {
			col.Virtual = c.FieldID
		} else {
			field, _ := s.Table.Field(c.FieldID)
			col.Name = field.Name
		}
		f.Columns = append(f.Columns, col)
	}
	return &scan.Input{Files: []scan.File{f}, Rows: -1}, nil
}

// statement is one statement under the policies of a test. It implements
// bind.Relations and rewrite.Binder.
type statement struct {
	*lake
	binder  *bind.Binder
	session *bind.Session
	rules   map[string]*policy.Restrictions
	bound   map[*plan.Table]*rewrite.Bound
}

func (s *statement) Relation(ctx context.Context, _, name string, _ plan.AsOf) (*bind.Relation, error) {
	t := s.tables[name]
	if t == nil {
		return nil, fault.New(fault.NotFound, "Table '%s' doesn't exist", name)
	}
	b, err := s.restrictions(ctx, t)
	if err != nil {
		return nil, err
	}
	withheld := map[int]bool{}
	for id := range b.Withheld() {
		withheld[id] = true
	}
	return &bind.Relation{Table: t, Withheld: withheld}, nil
}

func (s *statement) Databases(context.Context) ([]string, error)           { return []string{"db"}, nil }
func (s *statement) HasDatabase(_ context.Context, d string) (bool, error) { return d == "db", nil }
func (s *statement) Names(context.Context, string) (tables, views []string, err error) {
	return nil, nil, nil
}

// raw answers a policy text, which reads tables with its own rights.
type raw struct{ *statement }

func (r raw) Relation(_ context.Context, _, name string, _ plan.AsOf) (*bind.Relation, error) {
	return &bind.Relation{Table: r.tables[name]}, nil
}

func (s *statement) Condition(ctx context.Context, t *plan.Table, text string) (*plan.Scan, plan.Expr, error) {
	return s.binder.Condition(ctx, s.session, raw{s}, t, text)
}

func (s *statement) Value(ctx context.Context, t *plan.Table, text string) (*plan.Scan, plan.Expr, error) {
	return s.binder.Value(ctx, s.session, raw{s}, t, text)
}

func (s *statement) restrictions(ctx context.Context, t *plan.Table) (*rewrite.Bound, error) {
	if b := s.bound[t]; b != nil {
		return b, nil
	}
	r := s.rules[t.Name.Name]
	if r == nil {
		r = &policy.Restrictions{Complete: true}
	}
	b, err := rewrite.Prepare(ctx, t, r, s, masks.Options{})
	s.bound[t] = b
	return b, err
}

func (l *lake) run(ctx context.Context, input string) (string, error) {
	s := &statement{lake: l, rules: map[string]*policy.Restrictions{}, bound: map[*plan.Table]*rewrite.Bound{}}
	s.binder = bind.New(bind.Options{Accepts: duck.Accepts, DefaultDatabase: "db"})
	s.session = s.binder.NewSession(1, identity.Principal{Name: "alice"}, "")
	rule := func(name string) *policy.Restrictions {
		if s.rules[name] == nil {
			s.rules[name] = &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
		}
		return s.rules[name]
	}
	var text []string
	for _, line := range strings.Split(input, "\n") {
		words := strings.SplitN(line, " ", 3)
		switch words[0] {
		case "filter":
			r := rule(words[1])
			r.Filters = append(r.Filters, policy.RowFilter{SQL: words[2]})
		case "mask":
			name, col, _ := strings.Cut(words[1], ".")
			f, _ := l.tables[name].FieldNamed(col)
			rule(name).Columns[f.ID] = policy.ColumnRule{Kind: policy.Mask, Action: words[2]}
		default:
			text = append(text, line)
		}
	}
	st, _, err := parse.Parse(strings.Join(text, "\n"))
	if err != nil {
		return "", err
	}
	w, err := s.binder.BindWrite(ctx, s.session, s, st, nil)
	if err != nil {
		return "", err
	}
	lookup := func(sc *plan.Scan) (*rewrite.Bound, error) { return s.restrictions(ctx, sc.Table) }
	governed, _, err := rewrite.GovernWrite(w.Write, w.IDs, lookup, nil)
	if err != nil {
		return "", err
	}
	if err := rewrite.VerifyWrite(governed); err != nil {
		return "", err
	}
	c, err := rewrite.Complete(governed, w.IDs, lookup)
	if err != nil {
		return "", err
	}
	c.Rows = rewrite.Pushdown(c.Rows)
	if err := rewrite.VerifyChanges(c); err != nil {
		return "", err
	}
	rows, err := l.duck.Run(ctx, c.Rows, l.input)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for {
		b, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for j, col := range c.Rows.Columns() {
				v := b.Column(j).ValueStr(i)
				if col.ID == c.Op {
					v = []string{"delete", "update", "insert"}[v[0]-'0']
				}
				if col.ID == c.Permitted {
					v = map[string]string{"true": "permitted", "false": "FORBIDDEN"}[v]
				}
				cells = append(cells, v)
			}
			out = append(out, strings.Join(cells, " | "))
		}
		b.Release()
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n", nil
}

// TestChanges runs testdata/changes: policies and a statement, and the changes that
// a writer would get.
func TestChanges(t *testing.T) {
	l := newLake(t)
	datadriven.RunTest(t, "testdata/changes", func(t *testing.T, d *datadriven.TestData) string {
		out, err := l.run(context.Background(), d.Input)
		if err != nil {
			return fmt.Sprintf("%s: %v\n", fault.KindOf(err), err)
		}
		return out
	})
}
