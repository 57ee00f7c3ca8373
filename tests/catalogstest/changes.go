package catalogstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

func (s *suite) layout(t *testing.T) {
	namespace(t, s.c, "layout")
	d := catalog.TableDefinition{
		Fields: []plan.Field{
			{Name: "id", Type: plan.Int64, Required: true},
			field("at", plan.Timestamp), field("name", plan.String),
			{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: plan.Int32, Nullable: true}, arrow.Field{Name: "y", Type: plan.String, Nullable: true})},
			{Name: "l", Type: arrow.ListOf(plan.String)},
			{Name: "m", Type: arrow.MapOf(plan.String, plan.Int64)},
			field("amount", &arrow.Decimal128Type{Precision: 12, Scale: 3}), field("day", arrow.FixedWidthTypes.Date32), field("f", plan.Float64),
		},
		Identifiers: [][]string{{"id"}},
		Partitions:  []catalog.PartitionField{{Path: []string{"at"}, Transform: "day"}, {Path: []string{"name"}, Transform: "bucket", Arg: 4}, {Path: []string{"s", "x"}}},
		Sort:        []catalog.SortField{{Path: []string{"name"}, Desc: true, NullsFirst: true}},
		Properties:  map[string]string{"write.metadata.previous-versions-max": "7", "own": "1"},
		Comment:     "rows",
	}
	for _, version := range []int{2, 3} {
		d.FormatVersion = version
		tb := made(t, s.c, in("layout", fmt.Sprint("t", version)), d)
		got, err := catalog.DefinitionOf(load(t, s.c, tb.Name))
		must(t, err)
		text := func(d catalog.TableDefinition) string {
			b, err := json.Marshal([]any{d.Identifiers, d.Partitions, d.Sort, d.Comment, d.FormatVersion, d.Properties["own"]})
			must(t, err)
			return string(b)
		}
		want := d
		want.Partitions = slices.Clone(d.Partitions)
		for i, name := range []string{"at_day", "name_bucket", "s.x"} {
			want.Partitions[i].Name = name
		}
		want.Partitions[2].Transform, want.Sort = "identity", []catalog.SortField{{Path: []string{"name"}, Transform: "identity", Desc: true, NullsFirst: true}}
		if text(got) != text(want) {
			t.Errorf("%s\nwant %s", text(got), text(want))
		}
		for i, f := range got.Fields {
			if f.Name != d.Fields[i].Name || !arrow.TypeEqual(f.Type, load(t, s.c, tb.Name).Fields[i].Type) {
				t.Errorf("%+v", f)
			}
		}
	}
}

func (s *suite) alter(t *testing.T) {
	namespace(t, s.c, "alter")
	n := in("alter", "t")
	before := made(t, s.c, n, people)
	tb, err := s.c.AlterTable(ctx, n, []catalog.Change{
		catalog.AddColumn{Path: []string{"note"}, Field: plan.Field{Type: plan.String, Doc: "free"}, Position: catalog.Position{After: "id"}},
		catalog.RenameColumn{Path: []string{"ssn"}, To: "social"},
		catalog.DropColumn{Path: []string{"born"}},
		catalog.AddPartition{Field: catalog.PartitionField{Path: []string{"id"}, Transform: "bucket", Arg: 8}},
		catalog.SetSort{Fields: []catalog.SortField{{Path: []string{"id"}}}},
		catalog.SetProperties{Properties: map[string]string{"a": "1", "b": "2"}},
		catalog.CommentTable{Comment: "c"},
	})
	must(t, err)
	var names []string
	for _, f := range load(t, s.c, n).Fields {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"id", "note", "social"}) || tb.UUID != before.UUID || tb.Version == before.Version || tb.Properties["b"] != "2" {
		t.Errorf("%q %+v", names, tb)
	}
	if old, _ := before.FieldNamed("ssn"); tb.Fields[2].ID != old.ID {
		t.Error("another field after a rename")
	}
	tb, err = s.c.AlterTable(ctx, n, []catalog.Change{
		catalog.RemoveProperties{Names: []string{"a"}},
		catalog.CommentTable{},
		catalog.DropPartition{Field: catalog.PartitionField{Path: []string{"id"}, Transform: "bucket", Arg: 8}},
		catalog.SetProperties{Properties: map[string]string{"format-version": "3"}},
	})
	must(t, err)
	d, err := catalog.DefinitionOf(load(t, s.c, n))
	must(t, err)
	if d.FormatVersion != 3 || d.Comment != "" || len(d.Partitions) != 0 || tb.Properties["a"] != "" {
		t.Errorf("%+v", d)
	}
	wants(t, "no such column", second(s.c.AlterTable(ctx, n, []catalog.Change{catalog.DropColumn{Path: []string{"x"}}})), fault.NoColumn)
	wants(t, "a place elsewhere", second(s.c.AlterTable(ctx, n, []catalog.Change{catalog.SetProperties{Properties: map[string]string{"write.data.path": "file:///etc"}}})), fault.BadStatement)
	wants(t, "no such table", second(s.c.AlterTable(ctx, in("alter", "x"), []catalog.Change{catalog.CommentTable{Comment: "x"}})), fault.NotFound)
}

func (s *suite) fill(t *testing.T) {
	namespace(t, s.c, "fill")
	n := in("fill", "t")
	tb, created, err := s.c.CreateTable(ctx, n, people, catalog.CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, e *plan.Table) error {
		if _, err := s.c.Table(ctx, n, plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("it is there before it is filled: %v", err)
		}
		return Rows(`[{"id": 1}, {"id": 2, "ssn": "x"}]`)(ctx, tx, e)
	}})
	must(t, err)
	if !created || counted(t, tb) != 2 || counted(t, load(t, s.c, n)) != 2 {
		t.Error("not two rows")
	}
	boom := fault.New(fault.OutOfRange, "boom")
	_, _, err = s.c.CreateTable(ctx, in("fill", "u"), people, catalog.CreateOptions{Fill: func(ctx context.Context, tx *table.Transaction, e *plan.Table) error {
		return errors.Join(Rows(`[{"id": 1}]`)(ctx, tx, e), boom)
	}})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	wants(t, "what was not filled", second(s.c.Table(ctx, in("fill", "u"), plan.AsOf{}, "")), fault.NotFound)
}

func (s *suite) replace(t *testing.T) {
	namespace(t, s.c, "replace")
	n := in("replace", "t")
	old := made(t, s.c, n, people)
	must(t, second(s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))))
	first := load(t, s.c, n)
	tb, created, err := s.c.CreateTable(ctx, n, catalog.TableDefinition{Fields: []plan.Field{field("id", plan.String), field("x", plan.Int32)}},
		catalog.CreateOptions{IfTaken: catalog.Replace, Fill: Rows(`[{"id": "a", "x": 1}, {"id": "b"}, {"id": "c"}]`)})
	must(t, err)
	if !created || tb.UUID != old.UUID || counted(t, load(t, s.c, n)) != 3 || tb.Fields[0].ID == old.Fields[0].ID {
		t.Errorf("%v %+v", created, tb)
	}
	past, err := s.c.Table(ctx, n, plan.AsOf{Snapshot: first.SnapshotID}, "")
	must(t, err)
	if counted(t, past) != 1 || len(past.Fields) != 3 {
		t.Errorf("the past: %+v", past)
	}
}

func (s *suite) commits(t *testing.T) {
	namespace(t, s.c, "commits")
	n := in("commits", "t")
	made(t, s.c, n, people)
	one, err := s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))
	must(t, err)
	two, err := s.c.Commit(ctx, n, Rows(`[{"id": 2}, {"id": 3}]`))
	must(t, err)
	if counted(t, two) != 3 || counted(t, load(t, s.c, n)) != 3 || one.Version == two.Version {
		t.Error("not three rows")
	}
	past, err := s.c.Table(ctx, n, plan.AsOf{Snapshot: one.SnapshotID}, "")
	must(t, err)
	if counted(t, past) != 1 {
		t.Error("the past has changed")
	}
	same, err := s.c.Commit(ctx, n, func(context.Context, *table.Transaction, *plan.Table) error { return nil })
	if err != nil || same.Version != two.Version {
		t.Errorf("nothing staged: %v", err)
	}
	// Another writer is faster: the change is made anew on what it left.
	calls := 0
	tb, err := s.c.Commit(ctx, n, func(ctx context.Context, tx *table.Transaction, tb *plan.Table) error {
		if calls++; calls == 1 {
			must(t, second(s.other.Commit(ctx, n, Rows(`[{"id": 8}]`))))
		}
		return Rows(`[{"id": 9}]`)(ctx, tx, tb)
	})
	must(t, err)
	if calls != 2 || counted(t, tb) != 5 {
		t.Errorf("%d calls, %d rows", calls, counted(t, tb))
	}
	must(t, second(s.c.Rollback(ctx, n, plan.AsOf{Snapshot: one.SnapshotID})))
	if counted(t, load(t, s.c, n)) != 1 {
		t.Error("not rolled back")
	}
	wants(t, "no such table", second(s.c.Commit(ctx, in("commits", "x"), Rows(`[{"id": 1}]`))), fault.NotFound)
}

func (s *suite) refs(t *testing.T) {
	namespace(t, s.c, "refs")
	n := in("refs", "t")
	made(t, s.c, n, people)
	one, err := s.c.Commit(ctx, n, Rows(`[{"id": 1}]`))
	must(t, err)
	must(t, second(s.c.SetRef(ctx, n, catalog.Ref{Name: "dev", Branch: true}, catalog.CreateRef)))
	must(t, second(s.c.SetRef(ctx, n, catalog.Ref{Name: "v1"}, catalog.CreateRef)))
	wants(t, "twice", second(s.c.SetRef(ctx, n, catalog.Ref{Name: "v1"}, catalog.CreateRef)), fault.Exists)
	must(t, second(s.c.CommitBranch(ctx, n, "dev", Rows(`[{"id": 2}]`))))
	must(t, second(s.c.Commit(ctx, n, Rows(`[{"id": 3}, {"id": 4}]`))))
	for ref, want := range map[string]int64{"": 3, "main": 3, "dev": 2, "v1": 1} {
		at, err := s.c.Table(ctx, n, plan.AsOf{Ref: ref}, "")
		must(t, err)
		if got := counted(t, at); got != want {
			t.Errorf("%q has %d rows, want %d", ref, got, want)
		}
	}
	must(t, second(s.c.SetRef(ctx, n, catalog.Ref{Name: "v1", Snapshot: load(t, s.c, n).SnapshotID}, catalog.ReplaceRef)))
	must(t, second(s.c.SetCurrent(ctx, n, plan.AsOf{Snapshot: one.SnapshotID})))
	if counted(t, load(t, s.c, n)) != 1 {
		t.Error("another snapshot is current")
	}
	must(t, second(s.c.DropRef(ctx, n, "dev", true, false)))
	wants(t, "dropped", second(s.c.Table(ctx, n, plan.AsOf{Ref: "dev"}, "")), fault.BadStatement)
}

func (s *suite) tags(t *testing.T) {
	namespace(t, s.c, "tags")
	n := in("tags", "t")
	d := people
	d.Tags = []catalog.TaggedPath{{Path: []string{"ssn"}, Tags: []plan.Tag{{Name: "PII", Attributes: map[string]string{"level": "high"}}}}}
	tb := made(t, s.c, n, d)
	ssn := func(tb *plan.Table) []plan.Tag {
		f, ok := tb.FieldNamed("ssn")
		if !ok {
			t.Fatal("no column ssn")
		}
		return tb.Tags[f.ID]
	}
	for _, x := range []*plan.Table{tb, load(t, s.c, n)} {
		if got := ssn(x); len(got) != 1 || got[0].Name != "PII" || got[0].Attributes["level"] != "high" {
			t.Errorf("%+v", x.Tags)
		}
	}
	_, err := s.c.AlterTable(ctx, n, []catalog.Change{catalog.AddColumn{Path: []string{"x"}, Field: plan.Field{Type: plan.Int32}}})
	must(t, err)
	if len(ssn(load(t, s.c, n))) != 1 {
		t.Error("the tag is lost")
	}
}

// writers: eight of them in two processes. Each commits or is told of a conflict,
// and nothing is lost or doubled.
func (s *suite) writers(t *testing.T) {
	both := []Changer{s.Open(t), s.Open(t)}
	for _, c := range both {
		defer func() { must(t, c.Close()) }()
	}
	namespace(t, both[0], "writers")
	n := in("writers", "t")
	made(t, both[0], n, people)
	var mu sync.Mutex
	done := map[int]bool{}
	conflicts := 0
	for round := range 6 {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				id := round*8 + w
				c := both[w%2]
				var err error
				if w == 7 && round%2 == 0 {
					_, err = c.AlterTable(ctx, n, []catalog.Change{catalog.AddColumn{Path: []string{fmt.Sprint("c", id)}, Field: field("", plan.Int32)}})
				} else {
					_, err = c.Commit(ctx, n, Rows(fmt.Sprintf(`[{"id": %d}]`, id)))
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done[id] = true
				case fault.Is(err, fault.Conflict):
					conflicts++
				default:
					t.Errorf("%d: %v (%v)", id, err, errors.Unwrap(err))
				}
			})
		}
		wg.Wait()
	}
	if len(done)+conflicts != 48 || len(done) < 44 {
		t.Errorf("%d commits and %d conflicts", len(done), conflicts)
	}
	for _, c := range both {
		var got *plan.Table
		// The other process may see what was a moment ago.
		must(t, second(c.Commit(ctx, n, func(_ context.Context, _ *table.Transaction, now *plan.Table) error {
			got = now
			return nil
		})))
		var want int64
		for id := range done {
			if id%8 == 7 && id/8%2 == 0 {
				if _, ok := got.FieldNamed(fmt.Sprint("c", id)); !ok {
					t.Errorf("column %d is lost", id)
				}
			} else {
				want++
			}
		}
		if n := counted(t, got); n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}
}
