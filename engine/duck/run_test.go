package duck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

func unwrapped(err error) error {
	if err == nil {
		return nil
	}
	return errors.Unwrap(err)
}

// numbers is n different integers below a thousand millions, in no order.
func numbers(n int64) plan.Node {
	var rows [][]plan.Expr
	for i := int64(0); i < 1000; i++ {
		rows = append(rows, []plan.Expr{lit(i)})
	}
	v := func(id plan.ColumnID) plan.Node {
		return &plan.Values{Cols: []plan.Column{{ID: id, Type: plan.Int64}}, Rows: rows}
	}
	j := &plan.Join{Kind: plan.Cross, Left: &plan.Join{Kind: plan.Cross, Left: v(9001), Right: v(9002)}, Right: v(9003)}
	sum := call("add", call("mul", ref(j, 0), 1_000_000), call("add", call("mul", ref(j, 1), 1000), ref(j, 2)))
	return &plan.Limit{Input: &plan.Project{Input: j, Items: []plan.Item{item(9004, sum)}}, Count: n}
}

func TestCancel(t *testing.T) {
	in := open(t, Config{})
	a, b := numbers(-1), &plan.Values{Cols: []plan.Column{{ID: 1, Type: plan.Int64}}, Rows: [][]plan.Expr{{lit(1)}, {lit(2)}}}
	endless := &plan.Aggregate{
		Input: &plan.Filter{Input: &plan.Join{Kind: plan.Cross, Left: a, Right: b}, Cond: call("eq", call("sha2", &plan.Cast{Operand: ref(a, 0), Typ: plan.String}, 256), "x")},
		Aggs:  []plan.AggItem{agg(2, "count")},
	}
	for _, c := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		kind fault.Kind
	}{
		{"cancelled", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		}, fault.Cancelled},
		{"deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 100*time.Millisecond)
		}, fault.Timeout},
		{"cause", func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), 100*time.Millisecond, fault.New(fault.Limit, "as the engine says"))
		}, fault.Limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := c.ctx()
			defer cancel()
			start := time.Now()
			r, err := in.Run(ctx, endless, nil)
			if err == nil {
				_, err = collect(r)
			}
			if !fault.Is(err, c.kind) {
				t.Errorf("got %v (%v)", err, unwrapped(err))
			}
			// By itself it would take hours.
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
	want(t, in, &plan.Project{Input: one, Items: []plan.Item{item(1, lit(1))}}, nil, "1")
	if s := in.Stats(); s.Running != 0 || s.Queued != 0 || s.Memory < 0 {
		t.Errorf("%+v", s)
	}
}

// An error in the middle of a result must not look like its end.
func TestErrorAfterRows(t *testing.T) {
	in := open(t, Config{Threads: 1})
	col := column{"n", plan.Int64, "[" + strings.Repeat("1, ", 2047) + "1]"}
	st := &stream{}
	good, bad := batch(t, col), batch(t, column{"n", plan.Int64, `[9223372036854775807]`})
	for range 400 {
		st.batches = append(st.batches, good)
	}
	st.batches = append(st.batches, bad)
	s := scanOf(1, col)
	r, err := in.Run(context.Background(), &plan.Project{Input: s, Items: []plan.Item{item(9, call("add", ref(s, 0), 1))}}, fixed(&scan.Input{Stream: st, Rows: -1}))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := collect(r)
	if !fault.Is(err, fault.OutOfRange) {
		t.Fatalf("got %d rows and %v", len(rows), err)
	}
	if len(rows) == 0 {
		t.Error("no rows came before the error, so that this test shows nothing")
	}
}

func TestScalarSubqueryWithTwoRows(t *testing.T) {
	in := open(t, Config{})
	two := &plan.Values{Cols: []plan.Column{{ID: 1, Type: plan.Int64}}, Rows: [][]plan.Expr{{lit(1)}, {lit(2)}}}
	first := &plan.Limit{Input: two, Count: 1}
	q := func(n plan.Node) plan.Node {
		return &plan.Project{Input: one, Items: []plan.Item{item(5, &plan.Subquery{Kind: plan.ScalarSubquery, Plan: n, Typ: plan.Int64})}}
	}
	want(t, in, q(first), nil, "1")
	want(t, in, q(&plan.Filter{Input: two, Cond: lit(false)}), nil, "NULL")
	if _, err := run(t, in, q(two), nil); !fault.Is(err, fault.BadStatement) {
		t.Errorf("got %v", err)
	}
}

func TestRecursive(t *testing.T) {
	in := open(t, Config{})
	cols := func(id plan.ColumnID) []plan.Column { return []plan.Column{{ID: id, Type: plan.Int64}} }
	anchor := &plan.Values{Cols: cols(1), Rows: [][]plan.Expr{{lit(1)}}}
	work := &plan.WorkTable{ID: 7, Cols: cols(2)}
	step := &plan.Project{
		Input: &plan.Filter{Input: work, Cond: call("lt", ref(work, 0), 5)},
		Items: []plan.Item{item(3, call("add", ref(work, 0), 1))},
	}
	r := &plan.Recursive{ID: 7, Name: "n", Anchor: anchor, Step: step, All: true, Cols: cols(4)}
	want(t, in, &plan.Sort{Input: r, Keys: []plan.SortKey{asc(ref(r, 0))}}, nil, "1", "2", "3", "4", "5")
	// Without ALL a round that gives nothing new ends it.
	circle := &plan.Project{Input: work, Items: []plan.Item{item(3, call("mod", call("add", ref(work, 0), 1), 3))}}
	d := &plan.Recursive{ID: 7, Name: "n", Anchor: anchor, Step: circle, Cols: cols(4)}
	want(t, in, &plan.Sort{Input: d, Keys: []plan.SortKey{asc(ref(d, 0))}}, nil, "0", "1", "2")
	// With ALL a recursion that never ends is an error, one of a thousand rounds
	// is none.
	same := &plan.Project{Input: work, Items: []plan.Item{item(3, ref(work, 0))}}
	endless := &plan.Recursive{ID: 7, Name: "n", Anchor: anchor, Step: same, All: true, Cols: cols(4)}
	if _, err := run(t, in, endless, nil); !fault.Is(err, fault.Limit) {
		t.Errorf("an endless recursion gives %v", err)
	}
	long := &plan.Project{
		Input: &plan.Filter{Input: work, Cond: call("lt", ref(work, 0), maxRounds)},
		Items: []plan.Item{item(3, call("add", ref(work, 0), 1))},
	}
	n, err := run(t, in, &plan.Recursive{ID: 7, Name: "n", Anchor: anchor, Step: long, All: true, Cols: cols(4)}, nil)
	if err != nil || len(n) != maxRounds {
		t.Errorf("%d rows, %v", len(n), err)
	}
}

func TestQueue(t *testing.T) {
	in := open(t, Config{MaxConcurrent: 1, QueueTimeout: 50 * time.Millisecond})
	r, err := in.Run(context.Background(), numbers(10), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Run(context.Background(), numbers(10), nil); !fault.Is(err, fault.Limit) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := in.Run(ctx, numbers(10), nil); !fault.Is(err, fault.Cancelled) {
		t.Errorf("got %v", err)
	}
	if s := in.Stats(); s.Running != 1 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := in.Ping(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestMemoryLimit(t *testing.T) {
	dir := t.TempDir()
	distinct := func() plan.Node {
		n := numbers(3_000_000)
		k := &plan.Project{Input: n, Items: []plan.Item{item(1, call("sha2", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 256))}}
		return &plan.Aggregate{Input: &plan.Distinct{Input: k}, Aggs: []plan.AggItem{agg(2, "count")}}
	}
	in := open(t, Config{MemoryLimit: 100 << 20, Threads: 2})
	if _, err := run(t, in, distinct(), nil); !fault.Is(err, fault.Limit) || !strings.Contains(err.Error(), "memory-limit") {
		t.Errorf("got %v (%v)", err, unwrapped(err))
	}
	want(t, in, numbers(1), nil, "0")
	spills := open(t, Config{MemoryLimit: 150 << 20, Threads: 2, TempDir: filepath.Join(dir, "spill")})
	want(t, spills, distinct(), nil, "3000000")
}

// A function whose result finds no memory fails its statement, and not the process.
func TestMemoryOfFunctions(t *testing.T) {
	in := open(t, Config{MemoryLimit: 100 << 20, Threads: 2})
	n := numbers(3000)
	for name, e := range map[string]plan.Expr{
		"repeat": call("repeat", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 20_000),
		"lower":  call("lower", call("repeat", call("repeat", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 500), 40)),
	} {
		p := &plan.Project{Input: n, Items: []plan.Item{item(1, e)}}
		if _, err := run(t, in, p, nil); !fault.Is(err, fault.Limit) || !strings.Contains(err.Error(), "memory-limit") {
			t.Errorf("%s: got %v (%v)", name, err, unwrapped(err))
		}
		want(t, in, numbers(1), nil, "0")
	}
	// What a function makes at once is outside of what DuckDB counts.
	roomy := open(t, Config{MemoryLimit: 4 << 30, Threads: 1})
	p := &plan.Project{Input: n, Items: []plan.Item{item(1, call("char_length", call("repeat", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 100_000)))}}
	if _, err := run(t, roomy, p, nil); !fault.Is(err, fault.Limit) {
		t.Errorf("got %v", err)
	}
	few := &plan.Project{Input: numbers(2), Items: []plan.Item{item(1, call("char_length", call("repeat", "x", 100_000)))}}
	want(t, in, few, nil, "100000", "100000")
}

// A client that stops reading must not make the result pile up.
func TestSlowClient(t *testing.T) {
	in := open(t, Config{MemoryLimit: 200 << 20})
	n := numbers(-1) // 8 GB
	r, err := in.Run(context.Background(), &plan.Project{Input: n, Items: []plan.Item{item(1, ref(n, 0))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	time.Sleep(300 * time.Millisecond)
	if s := in.Stats(); s.Memory > 60<<20 {
		t.Errorf("%d bytes are held", s.Memory)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Next(); err == nil {
		t.Error("Next after Close gave rows")
	}
}

func TestStreamEnds(t *testing.T) {
	in := open(t, Config{})
	b := batch(t, people...)
	s := scanOf(1, people...)
	open := func(ctx context.Context, st *stream) (*Rows, error) {
		return in.Run(ctx, s, fixed(&scan.Input{Stream: st, Rows: -1}))
	}
	t.Run("error", func(t *testing.T) {
		r, err := open(context.Background(), &stream{batches: []recordBatch{b}, fail: fault.New(fault.Corrupt, "as scan says")})
		if err == nil {
			_, err = collect(r)
		}
		if !fault.Is(err, fault.Corrupt) || err.Error() != "as scan says" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("foreign error", func(t *testing.T) {
		r, err := open(context.Background(), &stream{fail: errors.New("111-22-33A1")})
		if err == nil {
			_, err = collect(r)
		}
		if !fault.Is(err, fault.Internal) || strings.Contains(err.Error(), "111") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("close", func(t *testing.T) {
		r, err := open(context.Background(), &stream{batches: []recordBatch{b}, forever: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		agg := &plan.Aggregate{Input: s, Aggs: []plan.AggItem{agg(9, "count")}}
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		r, err := in.Run(ctx, agg, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b}, forever: true}, Rows: -1}))
		if err == nil {
			_, err = collect(r)
		}
		if !fault.Is(err, fault.Cancelled) || time.Since(start) > time.Minute {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
	t.Run("projection", func(t *testing.T) {
		var asked []int
		n := &plan.Filter{Input: &plan.Project{Input: s, Items: []plan.Item{item(20, ref(s, 3)), item(21, ref(s, 1))}}, Cond: call("eq", &plan.Ref{ID: 21, Typ: plan.String}, "cem")}
		want(t, in, n, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{b}, asked: &asked}}), "b|cem")
		if fmt.Sprint(asked) != "[1 3]" {
			t.Errorf("asked for %v", asked)
		}
	})
	t.Run("wrong type", func(t *testing.T) {
		wrong := batch(t, people[1], people[1], people[1], people[1])
		if _, err := run(t, in, s, fixed(&scan.Input{Stream: &stream{batches: []recordBatch{wrong}}})); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		if _, err := run(t, in, s, fixed(&scan.Input{Stream: panics{}})); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
	})
	sources.Range(func(k, _ any) bool { t.Errorf("source %v is left", k); return true })
}

type panics struct{}

func (panics) Open(context.Context, []int) (scan.Reader, error) { panic("111-22-33A1") }

func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}, MaxConcurrent: 4})
	b := batch(t, people...)
	path := writeFile(t, dir, "p.parquet", b)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				s := scanOf(1, people...)
				input := &scan.Input{Files: []scan.File{fileOf(path, people...)}}
				if (g+i)%2 == 0 {
					input = &scan.Input{Stream: &stream{batches: []recordBatch{b}}}
				}
				r, err := in.Run(context.Background(), &plan.Filter{Input: s, Cond: call("eq", ref(s, 0), 2)}, fixed(input))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := collect(r)
				if err != nil || len(got) != 1 || got[0] != "2|bob|20.25|a" {
					t.Errorf("%v %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestEmptyAndNoColumns(t *testing.T) {
	in := open(t, Config{})
	want(t, in, scanOf(1, people...), fixed(&scan.Input{}))
	r, err := in.Run(context.Background(), &plan.Project{Input: numbers(5)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n += b.NumRows()
		b.Release()
	}
	if err := r.Close(); err != nil || n != 5 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A user's predicate that can fail must not run on hidden rows.
func TestGuardBarrier(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	cols := []column{{"id", plan.Int64, `[1, 9223372036854775807]`}, {"region", plan.String, `["eu", "us"]`}}
	path := writeFile(t, dir, "p.parquet", batch(t, cols...))
	inputs := fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}})
	s := scanOf(1, cols...)
	guard := &plan.Guard{Input: &plan.Filter{Input: s, Cond: call("eq", ref(s, 1), "eu")}, Table: s.Table, Filtered: true}
	n := &plan.Filter{Input: guard, Cond: call("ge", call("add", ref(s, 0), ref(s, 0)), 0)}
	want(t, in, n, inputs, "1|eu")
	// The same predicate on the hidden row does fail.
	if _, err := run(t, in, &plan.Filter{Input: s, Cond: n.Cond}, inputs); !fault.Is(err, fault.OutOfRange) {
		t.Errorf("got %v", err)
	}
	text := func(n plan.Node) string {
		q, err := (&compiler{inputs: inputs}).compile(n)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if !strings.Contains(text(n), "LIMIT 9223372036854775807") {
		t.Error("no barrier for a predicate that can fail")
	}
	if strings.Contains(text(&plan.Filter{Input: guard, Cond: call("gt", ref(s, 0), 0)}), "LIMIT") {
		t.Error("a barrier for a predicate that cannot fail")
	}
	through := &plan.Project{Input: guard, Items: []plan.Item{item(9, call("add", ref(s, 0), 1))}}
	if !strings.Contains(text(&plan.Filter{Input: through, Cond: call("gt", ref(through, 0), 0)}), "LIMIT") {
		t.Error("no barrier for a column that can fail")
	}
}

// The order of an ORDER BY must survive projections above it and many threads.
func TestOrderSurvives(t *testing.T) {
	in := open(t, Config{Threads: 4})
	src := numbers(300_000)
	sorted := &plan.Sort{Input: src, Keys: []plan.SortKey{desc(call("mod", call("mul", ref(src, 0), 7919), 300_007))}}
	key := func(id plan.ColumnID, n plan.Node) plan.Node {
		return &plan.Project{Input: n, Items: []plan.Item{item(id, call("mod", call("mul", ref(src, 0), 7919), 300_007))}}
	}
	for name, n := range map[string]plan.Node{
		"project":                key(1, sorted),
		"project twice":          &plan.Project{Input: key(1, sorted), Items: []plan.Item{item(2, &plan.Ref{ID: 1, Typ: plan.Int64})}},
		"project of limit":       key(1, &plan.Limit{Input: sorted, Count: 200_000}),
		"offset":                 key(1, &plan.Limit{Input: sorted, Count: 100_000, Offset: 7}),
		"window below":           key(1, &plan.Limit{Input: sorted, Count: -1, Offset: 3}),
		"filter of limited sort": &plan.Filter{Input: key(1, &plan.Limit{Input: sorted, Count: 250_000}), Cond: call("gt", &plan.Ref{ID: 1, Typ: plan.Int64}, 60_000)},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := run(t, in, n, nil)
			if err != nil {
				t.Fatal(err, unwrapped(err))
			}
			last := 300_007
			for i, r := range rows {
				v, err := strconv.Atoi(r)
				if err != nil || v > last {
					t.Fatalf("row %d is %s after %d", i, r, last)
				}
				last = v
			}
			if len(rows) < 100_000 {
				t.Errorf("only %d rows", len(rows))
			}
		})
	}
}

func TestLongConditions(t *testing.T) {
	in := open(t, Config{})
	n := &plan.Values{Cols: []plan.Column{{ID: 77, Type: plan.Int64}}}
	for i := range 10 {
		n.Rows = append(n.Rows, []plan.Expr{lit(i)})
	}
	cond := plan.Expr(call("eq", ref(n, 0), 3))
	for i := range 5000 {
		cond = call("or", cond, call("eq", ref(n, 0), 1000+i))
	}
	want(t, in, &plan.Filter{Input: n, Cond: cond}, nil, "3")
	deep := plan.Expr(ref(n, 0))
	for range 3000 {
		deep = call("add", deep, 1)
	}
	_, err := run(t, in, &plan.Project{Input: n, Items: []plan.Item{item(1, deep)}}, nil)
	if !fault.Is(err, fault.Limit) {
		t.Errorf("got %v (%v)", err, unwrapped(err))
	}
	var list []plan.Expr
	for i := range 20_000 {
		list = append(list, lit(i+5))
	}
	want(t, in, &plan.Aggregate{Input: &plan.Filter{Input: n, Cond: &plan.In{Operand: ref(n, 0), List: list}}, Aggs: []plan.AggItem{agg(1, "count")}}, nil, "5")
}

// After an internal error of DuckDB statements go to a new database, and those
// that run on the old one end by themselves.
func TestReplaced(t *testing.T) {
	in := open(t, Config{})
	old, err := in.Run(context.Background(), numbers(100_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := in.current
	for _, msg := range []string{"INTERNAL Error: Failed to bind", "FATAL Error: x", "Invalid: database has been invalidated because"} {
		if !invalidated(msg) {
			t.Errorf("%q is survived", msg)
		}
	}
	if invalidated("Conversion Error: INTERNAL Error") {
		t.Error("a value looks like an internal error")
	}
	in.replace(broken)
	in.replace(broken) // a second report of the same
	if s := in.Stats(); s.Restarts != 1 {
		t.Errorf("%+v", s)
	}
	want(t, in, &plan.Project{Input: one, Items: []plan.Item{item(1, call("upper", "a"))}}, nil, "A")
	rows, err := collect(old)
	if err != nil || len(rows) != 100_000 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if broken.open != 0 || broken.handle.Ptr != nil {
		t.Error("the old database is left open")
	}
}

// Many threads read one stream, and a stream is read more than once in a query.
func TestStreamParallel(t *testing.T) {
	in := open(t, Config{Threads: 4})
	var n, s strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&n, ",%d", i)
		fmt.Fprintf(&s, `,"a text of more than twelve bytes %d"`, i)
	}
	cols := []column{{"n", plan.Int64, "[" + n.String()[1:] + "]"}, {"s", plan.String, "[" + s.String()[1:] + "]"}}
	st := &stream{}
	for range 200 {
		st.batches = append(st.batches, batch(t, cols...))
	}
	inputs := fixed(&scan.Input{Stream: st, Rows: 600_000})
	a, b := scanOf(1, cols...), scanOf(11, cols...)
	totals := &plan.Aggregate{Input: a, Aggs: []plan.AggItem{agg(3, "count"), agg(4, "sum", ref(a, 0)), agg(5, "max", ref(a, 1)), agg(6, "count", ref(a, 1))}}
	groups := &plan.Aggregate{Input: b, Keys: []plan.Item{item(20, ref(b, 1))}, Aggs: []plan.AggItem{agg(21, "count")}}
	join := &plan.Aggregate{
		Input: &plan.Join{Kind: plan.Inner, Left: a, Right: groups, On: call("eq", ref(a, 1), ref(groups, 0))},
		Aggs:  []plan.AggItem{agg(22, "count"), agg(23, "min", ref(groups, 1)), agg(24, "max", ref(groups, 1))},
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			want(t, in, totals, inputs, "600000|899700000|a text of more than twelve bytes 999|600000")
			want(t, in, join, inputs, "600000|200|200")
		})
	}
	wg.Wait()
}
