package write

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// TestNothingIsLeft: whatever ends a write, the files that it made are gone and the
// table is as it was.
func TestNothingIsLeft(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		kind  fault.Kind
		setup func(l *lake, o *Options, rows *batches) context.Context
	}{
		"the rows fail": {fault.Unavailable, func(_ *lake, _ *Options, rows *batches) context.Context {
			rows.after = boom
			return ctx
		}},
		"the rows fail with a fault": {fault.Limit, func(_ *lake, _ *Options, rows *batches) context.Context {
			rows.after = fault.New(fault.Limit, "too much")
			return ctx
		}},
		"the commit fails": {fault.Unavailable, func(l *lake, o *Options, _ *batches) context.Context {
			o.Committer = &committer{catalog: l.catalog, fail: boom}
			return ctx
		}},
		"the commit conflicts": {fault.Conflict, func(l *lake, o *Options, _ *batches) context.Context {
			o.Committer = &committer{catalog: l.catalog, fail: fault.New(fault.Conflict, "others")}
			return ctx
		}},
		"cancelled while reading": {fault.Cancelled, func(_ *lake, _ *Options, rows *batches) context.Context {
			c, cancel := context.WithCancel(ctx)
			n := 0
			rows.each = func() {
				if n++; n == 3 {
					cancel()
				}
			}
			return c
		}},
		"timed out": {fault.Timeout, func(_ *lake, _ *Options, rows *batches) context.Context {
			c, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			n := 0
			rows.each = func() {
				if n++; n == 3 {
					<-c.Done()
					cancel()
				}
			}
			return c
		}},
		"cancelled at the commit": {fault.Cancelled, func(l *lake, o *Options, _ *batches) context.Context {
			c, cancel := context.WithCancel(ctx)
			o.Committer = &committer{catalog: l.catalog, staged: func(int) { cancel() }}
			return c
		}},
		"the disk is full": {fault.Unavailable, func(l *lake, o *Options, _ *batches) context.Context {
			return ctx
		}},
	}
	for name, c := range cases {
		for _, what := range []string{"append", "overwrite", "change", "change mor"} {
			t.Run(name+" "+what, func(t *testing.T) {
				l := newLake(t)
				mode := "copy-on-write"
				if what == "change mor" {
					mode = "merge-on-read"
				}
				l.create("t", creation{schema: simple(), version: "2", partition: byN, props: modesOf(mode)})
				l.append("t", objects(0, 40))
				before := l.files("t")
				tb := l.load("t")
				var rows *batches
				if strings.HasPrefix(what, "change") {
					var edits []edit
					for i := range 20 {
						edits = append(edits, edit{op: Update, id: int64(i), to: int64(i), name: "x"})
					}
					rows = changes(l.places(tb), append(edits, edit{op: Delete, id: 30}))
				} else {
					rows = l.rows(tb, objects(100, 110), objects(110, 120), objects(120, 130))
				}
				o := l.options()
				cx := c.setup(l, &o, rows)
				if name == "the disk is full" {
					if os.Getenv(fullDiskVariable) == "" {
						inOwnProcess(t)
						return
					}
					defer fullDisk(t)()
				}
				run := func() (err error) {
					switch what {
					case "append":
						_, err = Append(cx, tb, rows, o)
					case "overwrite":
						_, err = Overwrite(cx, tb, All, rows, o)
					default:
						_, err = Change(cx, tb, rows, changeLayout(MergeCommand), o)
					}
					return err
				}
				err := run()
				if !fault.Is(err, c.kind) {
					t.Fatalf("%v (%v), want a fault of kind %v", err, errors.Unwrap(err), c.kind)
				}
				if strings.Contains(err.Error(), "/") || strings.Contains(err.Error(), "parquet") {
					t.Errorf("text %q", err)
				}
				if !rows.closed {
					t.Error("the rows were not closed")
				}
				l.want(l.files("t"), before...)
				l.want(l.read("t"), rowsText(0, 40)...)
			})
		}
	}
}

// fullDiskVariable marks a process in which files may be kept from growing: the
// bound is one of the whole process.
const fullDiskVariable = "SQE_TEST_FULL_DISK"

// inOwnProcess runs the test again in a process of its own.
func inOwnProcess(t *testing.T) {
	t.Helper()
	var parts []string
	for _, p := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+p+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v")
	cmd.Env = append(os.Environ(), fullDiskVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// fullDisk lets no file grow beyond a few bytes, until it is undone.
func fullDisk(t *testing.T) func() {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	small := syscall.Rlimit{Cur: 200, Max: old.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}
}

// TestCancelledSoon: a write of rows without end ends soon after it is cancelled, in
// every stage of encoding, and leaves nothing.
func TestCancelledSoon(t *testing.T) {
	for _, sorted := range []bool{false, true} {
		l := newLake(t)
		c := creation{schema: simple(), version: "2"}
		if sorted {
			c.sort = []table.SortField{{SourceIDs: []int{2}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsFirst}}
		}
		l.create("t", c)
		tb := l.load("t")
		rec := l.rows(tb, objects(0, 20_000)).list[0]
		rows := &batches{list: []arrow.RecordBatch{rec}}
		rows.each = func() {
			rec.Retain()
			rows.list = append(rows.list[:0], rec)
		}
		cx, cancel := context.WithCancel(ctx)
		var at time.Time
		timer := time.AfterFunc(500*time.Millisecond, func() { at = time.Now(); cancel() })
		o := l.options()
		o.MemoryBytes = 16 << 20 // a sort that has begun goes on, so a small one
		_, err := Append(cx, tb, rows, o)
		took := time.Since(at)
		timer.Stop()
		cancel()
		if !fault.Is(err, fault.Cancelled) || took > time.Minute {
			t.Errorf("sorted %t: %v after %s", sorted, err, took)
		}
		l.want(l.files("t"))
	}
}

// TestPanic: a panic of the rows goes on, after the clean-up.
func TestPanic(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	l.append("t", objects(0, 4))
	before := l.files("t")
	tb := l.load("t")
	rows := l.rows(tb, objects(4, 8), objects(8, 12))
	n := 0
	rows.each = func() {
		if n++; n == 3 {
			panic("boom")
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = Append(ctx, tb, rows, l.options())
	}()
	l.want(l.files("t"), before...)
}

// TestUnknown: files of a commit that may have been made stay.
func TestUnknown(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "2"})
	tb := l.load("t")
	o := l.options()
	o.Committer = &committer{catalog: l.catalog, lost: true}
	if _, err := Append(ctx, tb, l.rows(tb, objects(0, 4)), o); !errors.Is(err, errLost) {
		t.Fatalf("%v", err)
	}
	l.want(l.read("t"), rowsText(0, 4)...)
}

// TestLeftFilesAreNamed: what cannot be removed is told to the operator alone.
func TestLeftFilesAreNamed(t *testing.T) {
	s := &staged{fs: stuck{icebergio.LocalFS{}}}
	s.add("/warehouse/t/data/secret.parquet")
	err := s.discard(fault.New(fault.Limit, "too much"))
	if !fault.Is(err, fault.Limit) || strings.Contains(err.Error(), "secret") || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "secret.parquet") {
		t.Errorf("%v (%v)", err, errors.Unwrap(err))
	}
}

type stuck struct{ icebergio.LocalFS }

func (stuck) Remove(string) error { return os.ErrPermission }

// TestConcurrentAppends: every append ends up in the table.
func TestConcurrentAppends(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: simple(), version: "3"})
	tb := l.load("t")
	var wg sync.WaitGroup
	for i := range 8 {
		rows := l.rows(tb, objects(i*10, i*10+10))
		wg.Go(func() {
			if _, err := Append(ctx, tb, rows, l.options()); err != nil {
				t.Errorf("%v (%v)", err, errors.Unwrap(err))
			}
		})
	}
	wg.Wait()
	l.want(l.read("t"), rowsText(0, 80)...)
}

// TestDecimalPrecision: a decimal with more digits than its type, which a batch can
// hold, is not written.
func TestDecimalPrecision(t *testing.T) {
	l := newLake(t)
	l.create("t", creation{schema: iceberg.NewSchema(0, col(1, "price", iceberg.DecimalTypeOf(5, 2))), version: "2"})
	tb := l.load("t")
	for v, ok := range map[int64]bool{99999: true, 100000: false, -99999: true, -100000: false} {
		b := array.NewRecordBuilder(spoiling, schemaOf(tb))
		b.Field(0).(*array.Decimal128Builder).Append(decimal128.FromI64(v))
		_, err := Append(ctx, tb, &batches{list: []arrow.RecordBatch{b.NewRecordBatch()}}, l.options())
		if ok != (err == nil) || !ok && !fault.Is(err, fault.OutOfRange) {
			t.Errorf("%d: %v", v, err)
		}
		tb = l.load("t")
	}
}

// TestRefusedValues: what does not fit is refused, with the name of the column and
// never the value.
func TestRefusedValues(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "must", Type: iceberg.PrimitiveTypes.Int64, Required: true}}}
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "required", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		col(2, "small", iceberg.PrimitiveTypes.Int32), col(3, "price", iceberg.DecimalTypeOf(5, 2)),
		col(4, "u", iceberg.PrimitiveTypes.UUID), col(5, "fix", iceberg.FixedTypeOf(2)), col(6, "real", iceberg.PrimitiveTypes.Float32),
		col(7, "st", inner), col(8, "li", &iceberg.ListType{ElementID: 21, Element: inner.FieldList[0].Type, ElementRequired: true}),
		col(9, "flag", iceberg.PrimitiveTypes.Bool))
	l := newLake(t)
	l.create("t", creation{schema: schema, version: "2"})
	tb := l.load("t")
	types := map[string]arrow.DataType{}
	for _, f := range tb.Fields {
		types[f.Name] = f.Type
	}
	try := func(column string, typ arrow.DataType, value string) error {
		t.Helper()
		fields := schemaOf(tb).Fields()
		row := `"required":1`
		for i := range fields {
			if fields[i].Name == column {
				fields[i].Type = typ
				if column == "required" {
					row = ""
				}
			}
		}
		if row != "" {
			row += ","
		}
		rec := l.fromJSON(arrow.NewSchema(fields, nil), fmt.Sprintf(`[{%s"%s":%s}]`, row, column, value))
		_, err := Append(ctx, tb, &batches{list: []arrow.RecordBatch{rec}}, l.options())
		return err
	}
	refused := []struct {
		column string
		typ    arrow.DataType
		value  string
		kind   fault.Kind
	}{
		{"required", plan.Int64, `null`, fault.NullValue},
		{"small", plan.Int64, `2147483648`, fault.OutOfRange},
		{"small", plan.Uint64, `4294967296`, fault.OutOfRange},
		{"price", plan.Decimal(10, 3), `"7654.321"`, fault.OutOfRange},
		{"price", plan.Decimal(10, 2), `"7654.30"`, fault.OutOfRange},
		{"price", plan.Int64, `76543`, fault.OutOfRange},
		{"u", plan.String, `"76543210"`, fault.OutOfRange},
		{"fix", plan.Binary, `"dmFsdWU="`, fault.OutOfRange},
		{"st", plan.JSON, `"{\"must\":null}"`, fault.NullValue},
		{"st", plan.JSON, `"{\"must\":7.5}"`, fault.OutOfRange},
		{"st", plan.JSON, `"{\"must\":7,\"other\":1}"`, fault.OutOfRange},
		{"li", plan.JSON, `"[1,null]"`, fault.NullValue},
		{"st", types["st"], `{"must":null}`, fault.NullValue},
		{"flag", plan.Int64, `7654`, fault.OutOfRange},
		{"small", plan.Date, `"2024-01-01"`, fault.BadStatement},
	}
	for _, c := range refused {
		err := try(c.column, c.typ, c.value)
		named := err != nil && (strings.Contains(err.Error(), "'"+c.column+"'") || strings.Contains(err.Error(), "'must'") || strings.Contains(err.Error(), "'element'"))
		if !fault.Is(err, c.kind) || !named {
			t.Errorf("%s %s: %v", c.column, c.value, err)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), "7654") || strings.Contains(e.Error(), "2147483648") {
				t.Errorf("%s: the value is in %q", c.column, e)
			}
		}
	}
	if got := l.read("t"); len(got) != 0 || len(l.files("t")) != 0 {
		t.Errorf("%v %v", got, l.files("t"))
	}
	taken := []struct {
		column string
		typ    arrow.DataType
		value  string
		want   string
	}{
		{"small", plan.Int64, `-2147483648`, "-2147483648"},
		{"small", plan.Int8, `-1`, "-1"},
		{"flag", plan.Int64, `1`, "true"},
		{"price", plan.Decimal(10, 2), `"-999.99"`, "-999.99"},
		{"price", plan.Decimal(10, 3), `"1.500"`, "1.5"},
		{"price", plan.Int32, `12`, "12"},
		{"u", plan.String, `"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{"fix", plan.Binary, `"AQI="`, "AQI="},
		{"st", plan.JSON, `"{\"must\":7}"`, `{"must":7}`},
		{"st", plan.JSON, `null`, `(null)`},
		{"li", plan.JSON, `"[1,2]"`, `[1,2]`},
		{"real", plan.Float64, `0.5`, `0.5`},
	}
	for _, c := range taken {
		if err := try(c.column, c.typ, c.value); err != nil {
			t.Errorf("%s %s: %v", c.column, c.value, err)
			continue
		}
		tb = l.load("t")
		got := l.read("t")
		if len(got) != 1 || !strings.Contains("|"+got[0]+"|", "|"+c.want+"|") {
			t.Errorf("%s %s: %v", c.column, c.value, got)
		}
		_, err := Overwrite(ctx, tb, All, nil, l.options())
		l.must(err)
		tb = l.load("t")
	}
}
