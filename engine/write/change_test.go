package write

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// place is where a row lies.
type place struct {
	file string
	pos  int64
}

// places finds the rows of a table by their column id.
func (l *lake) places(t *plan.Table) map[int64]place {
	l.Helper()
	out := map[int64]place{}
	l.each(scanOf(t, true), func(b arrow.RecordBatch) {
		n := int(b.NumCols())
		ids, files, positions := b.Column(0).(*array.Int64), b.Column(n-2).(*array.String), b.Column(n-1).(*array.Int64)
		for i := range ids.Len() {
			out[ids.Value(i)] = place{string([]byte(files.Value(i))), positions.Value(i)}
		}
	})
	return out
}

// edit is one change of the table simple().
type edit struct {
	op   int8
	id   int64 // of the row that ends
	to   int64 // of the new row
	name string
	n    int32
}

var changeSchema = arrow.NewSchema([]arrow.Field{
	{Name: "n", Type: plan.Int32, Nullable: true},
	{Name: "_pos", Type: plan.Int64, Nullable: true},
	{Name: "id", Type: plan.Int64, Nullable: true},
	{Name: "op", Type: plan.Int8},
	{Name: "name", Type: plan.String, Nullable: true},
	{Name: "_file", Type: plan.String, Nullable: true},
}, nil)

func changeLayout(c Command) Layout {
	return Layout{Command: c, Op: 3, File: 5, Position: 1, Columns: []int{2, 4, 0}}
}

func changes(at map[int64]place, edits []edit) *batches {
	out := &batches{}
	for len(edits) > 0 {
		some := edits[:min(len(edits), 7)]
		edits = edits[len(some):]
		b := array.NewRecordBuilder(spoiling, changeSchema)
		for _, e := range some {
			b.Field(3).(*array.Int8Builder).Append(e.op)
			if e.op == Insert {
				b.Field(1).AppendNull()
				b.Field(5).AppendNull()
			} else {
				b.Field(1).(*array.Int64Builder).Append(at[e.id].pos)
				b.Field(5).(*array.StringBuilder).Append(at[e.id].file)
			}
			if e.op == Delete {
				b.Field(0).AppendNull()
				b.Field(2).AppendNull()
				b.Field(4).AppendNull()
				continue
			}
			b.Field(0).(*array.Int32Builder).Append(e.n)
			b.Field(2).(*array.Int64Builder).Append(e.to)
			b.Field(4).(*array.StringBuilder).Append(e.name)
		}
		out.list = append(out.list, b.NewRecordBatch())
		b.Release()
	}
	return out
}

func (l *lake) change(name string, c Command, edits ...edit) Result {
	l.Helper()
	t := l.load(name)
	res, err := Change(ctx, t, changes(l.places(t), edits), changeLayout(c), l.options())
	l.must(err)
	return res
}

func modesOf(mode string) iceberg.Properties {
	return iceberg.Properties{"write.delete.mode": mode, "write.update.mode": mode, "write.merge.mode": mode}
}

var byN = []iceberg.PartitionField{{SourceIDs: []int{3}, FieldID: 1000, Name: "n", Transform: iceberg.IdentityTransform{}}}

var changeSeed = flag.Uint64("change-seed", 1, "seed of TestChange; 0: a new one for each run")

// TestChange compares copy-on-write and merge-on-read of every version with a model,
// over random changes, partitions and evolutions.
func TestChange(t *testing.T) {
	seed := *changeSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, version := range []string{"1", "2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			for _, granularity := range []string{"partition", "file"} {
				if mode == "copy-on-write" && granularity == "file" || version == "1" && mode == "merge-on-read" {
					continue
				}
				t.Run(fmt.Sprintf("v%s %s %s seed=%d", version, mode, granularity, seed), func(t *testing.T) {
					l := newLake(t)
					props := modesOf(mode)
					props[deleteGranularity] = granularity
					l.create("t", creation{schema: simple(), version: version, partition: byN, props: props})
					m := &model{lake: l, rnd: rand.New(rand.NewPCG(seed, 1)), rows: map[int64]edit{}, ids: map[int64]int64{}, v3: version == "3"}
					for step := range 25 {
						m.step(step)
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	}
}

type model struct {
	*lake
	rnd  *rand.Rand
	rows map[int64]edit
	ids  map[int64]int64 // row ids by column id, with row lineage
	next int64
	v3   bool
}

func (m *model) step(step int) {
	m.Helper()
	switch step {
	case 8: // new files have other partitions than old ones
		m.respec("t", func(u *table.UpdateSpec) *table.UpdateSpec {
			return u.RemoveField("n").AddField("id", iceberg.BucketTransform{NumBuckets: 3}, "b")
		})
	case 16:
		m.respec("t", func(u *table.UpdateSpec) *table.UpdateSpec { return u.RemoveField("b") })
	}
	var edits []edit
	var live []int64
	for id := range m.rows {
		live = append(live, id)
	}
	slices.Sort(live)
	m.rnd.Shuffle(len(live), func(i, k int) { live[i], live[k] = live[k], live[i] })
	command := Command(m.rnd.IntN(3))
	insert := func() edit {
		m.next++
		return edit{op: Insert, to: m.next, name: fmt.Sprintf("r%d", m.next), n: int32(m.rnd.IntN(3))}
	}
	inserts, deletes, updates := 0, 0, 0
	switch {
	case len(live) == 0 || step%5 == 0:
		t := m.load("t")
		text := ""
		for range 40 {
			e := insert()
			text += fmt.Sprintf(`{"id":%d,"name":"%s","n":%d},`, e.to, e.name, e.n)
			m.rows[e.to] = e
		}
		_, err := Append(ctx, t, m.lake.rows(t, "["+text[:len(text)-1]+"]"), m.options())
		m.must(err)
		m.check(step)
		return
	case command == DeleteCommand:
		deletes = 1 + m.rnd.IntN(len(live))/3
	case command == UpdateCommand:
		updates = 1 + m.rnd.IntN(len(live))/3
	default:
		deletes, updates, inserts = m.rnd.IntN(1+len(live)/4), m.rnd.IntN(1+len(live)/4), 1+m.rnd.IntN(5)
	}
	for range deletes {
		edits = append(edits, edit{op: Delete, id: live[0]})
		live = live[1:]
	}
	for range updates {
		if len(live) == 0 {
			break
		}
		e := m.rows[live[0]]
		e.op, e.id, e.name, e.n = Update, live[0], e.name+"u", int32(m.rnd.IntN(3))
		edits = append(edits, e)
		live = live[1:]
	}
	for range inserts {
		edits = append(edits, insert())
	}
	m.rnd.Shuffle(len(edits), func(i, k int) { edits[i], edits[k] = edits[k], edits[i] })
	res := m.change("t", command, edits...)
	for _, e := range edits {
		switch e.op {
		case Delete:
			delete(m.rows, e.id)
			delete(m.ids, e.id)
		default:
			m.rows[e.to] = e
		}
	}
	if got, want := [3]int64{res.Deleted, res.Updated, res.Inserted}, [3]int64{count(edits, Delete), count(edits, Update), count(edits, Insert)}; got != want {
		m.Errorf("step %d: counts %v, want %v", step, got, want)
	}
	m.check(step)
}

func count(edits []edit, op int8) (n int64) {
	for _, e := range edits {
		if e.op == op {
			n++
		}
	}
	return n
}

// check compares the table with the model, and row ids with those of before.
func (m *model) check(step int) {
	m.Helper()
	var want []string
	for id, e := range m.rows {
		want = append(want, fmt.Sprintf("%d|%s|%d", id, e.name, e.n))
	}
	m.want(m.read("t"), want...)
	// iceberg-go reads the same.
	ice, err := m.catalog.Iceberg().LoadTable(ctx, table.Identifier{"ns", "t"})
	m.must(err)
	data, err := ice.Scan().ToArrowTable(ctx)
	m.must(err)
	if int(data.NumRows()) != len(m.rows) {
		m.Errorf("step %d: iceberg-go reads %d rows, want %d", step, data.NumRows(), len(m.rows))
	}
	if !m.v3 {
		return
	}
	t := m.load("t")
	s := scanOf(t, false)
	s.Cols = append(s.Cols, plan.ScanColumn{Column: plan.Column{ID: 900, Name: "_row_id", Type: plan.Int64}, FieldID: plan.RowIDField})
	seen := map[int64]bool{}
	m.each(s, func(b arrow.RecordBatch) {
		ids, rows := b.Column(0).(*array.Int64), b.Column(3).(*array.Int64)
		for i := range ids.Len() {
			if rows.IsNull(i) || seen[rows.Value(i)] {
				m.Errorf("step %d: row %d has no id of its own", step, ids.Value(i))
			}
			seen[rows.Value(i)] = true
			if old, ok := m.ids[ids.Value(i)]; ok && old != rows.Value(i) {
				m.Errorf("step %d: row %d had the id %d and has %d", step, ids.Value(i), old, rows.Value(i))
			}
			m.ids[ids.Value(i)] = rows.Value(i)
		}
	})
}

// TestOrderIsKept: copy-on-write leaves the other rows in their order.
func TestOrderIsKept(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	l.append("t", objects(0, 50))
	l.change("t", DeleteCommand, edit{op: Delete, id: 7}, edit{op: Delete, id: 0}, edit{op: Delete, id: 49})
	var got []int
	l.each(scanOf(l.load("t"), false), func(b arrow.RecordBatch) {
		for i := range int(b.NumRows()) {
			got = append(got, int(b.Column(0).(*array.Int64).Value(i)))
		}
	})
	if len(got) != 47 || !sort.IntsAreSorted(got) {
		t.Errorf("%v", got)
	}
}

// TestTwice: a row that two changes want is refused, and nothing is left.
func TestTwice(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		l := newLake(t)
		l.create("t", creation{schema: simple(), version: "2", props: modesOf(mode)})
		l.append("t", objects(0, 50))
		before := l.files("t")
		tb := l.load("t")
		_, err := Change(ctx, tb, changes(l.places(tb), []edit{{op: Update, id: 3, to: 3, name: "x"}, {op: Delete, id: 4}, {op: Delete, id: 3}}), changeLayout(MergeCommand), l.options())
		if !fault.Is(err, fault.BadStatement) {
			t.Errorf("%v", err)
		}
		l.want(l.read("t"), rowsText(0, 50)...)
		l.want(l.files("t"), before...)
	}
}

// TestConflict: a change of a file that others changed meanwhile is refused. With
// snapshot isolation others may add rows and change other files; else only mark rows of
// other files as deleted.
func TestConflict(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		for _, mode := range []string{"copy-on-write", "merge-on-read"} {
			for _, isolation := range []string{"", "snapshot"} {
				for _, other := range []string{"append", "same file", "other file", "removed", "schema"} {
					t.Run(fmt.Sprintf("v%s %s %s %s", version, mode, isolation, other), func(t *testing.T) {
						testConflict(t, version, mode, isolation, other)
					})
				}
			}
		}
	}
}

func testConflict(t *testing.T, version, mode, isolation, other string) {
	l := newLake(t)
	props := modesOf(mode)
	if isolation != "" {
		props["write.merge.isolation-level"] = isolation
	}
	l.create("t", creation{schema: simple(), version: version, props: props})
	l.append("t", objects(0, 10))
	l.append("t", objects(10, 20))
	tb := l.load("t")
	mine := changes(l.places(tb), []edit{{op: Delete, id: 3}, {op: Update, id: 4, to: 4, name: "mine", n: 4}})
	want := append(rowsText(0, 3), rowsText(5, 20)...)
	want = append(want, "4|mine|4")
	switch other {
	case "append":
		l.append("t", objects(20, 22))
		want = append(want, rowsText(20, 22)...)
	case "same file":
		l.change("t", DeleteCommand, edit{op: Delete, id: 0})
		want = rowsText(1, 20)
	case "other file":
		l.change("t", DeleteCommand, edit{op: Delete, id: 10})
		want = slices.DeleteFunc(want, func(s string) bool { return s == "10|n10|3" })
	case "removed":
		var all []edit
		for i := range 10 {
			all = append(all, edit{op: Delete, id: int64(i)})
		}
		l.change("t", DeleteCommand, all...)
		want = rowsText(10, 20)
	case "schema":
		l.evolve("t", func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"name"}, "x") })
		want = rowsText(0, 20)
	}
	before := l.files("t")
	_, err := Change(ctx, tb, mine, changeLayout(MergeCommand), l.options())
	refused := other == "same file" || other == "removed" || other == "schema"
	if added := other == "append" || other == "other file" && mode == "copy-on-write"; added && isolation == "" {
		refused = true
		if want = rowsText(0, 22); other == "other file" {
			want = append(rowsText(0, 10), rowsText(11, 20)...)
		}
	}
	if refused {
		if !fault.Is(err, fault.Conflict) {
			t.Fatalf("%v (%v)", err, errors.Unwrap(err))
		}
		l.want(l.files("t"), before...)
	} else {
		l.must(err)
	}
	l.want(l.read("t"), want...)
}
