package duck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// evaluates is a RowEvaluator made of a function.
type evaluates func(operands []arrow.Array, n int) (arrow.Array, error)

func (f evaluates) Eval(_ context.Context, operands []arrow.Array, n int) (arrow.Array, error) {
	return f(operands, n)
}

func (f evaluates) Same(plan.RowEvaluator) bool { return false }

func rowCall(typ arrow.DataType, f evaluates, operands ...plan.Expr) *plan.RowCall {
	return &plan.RowCall{Name: "test", Rows: f, Operands: operands, Typ: typ}
}

// listed is a plan of one column of texts that an evaluation made.
func listed(e plan.Expr, in plan.Node) plan.Node {
	return &plan.Project{Input: in, Items: []plan.Item{{Column: plan.Column{ID: 90, Name: "x", Type: e.Type(), Nullable: true}, Expr: e}}}
}

// TestRowCallTypes: an evaluator gets each operand as it is in the table, in the type of
// the plan, and each of its results arrives.
func TestRowCallTypes(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}})
	cols := []column{
		{"b", plan.Bool, `[true, null, false]`},
		{"i", plan.Int32, `[-2147483648, null, 2147483647]`},
		{"l", plan.Int64, `[-9223372036854775808, null, 9223372036854775807]`},
		{"f", plan.Float32, `[1.5, null, -0.25]`},
		{"d", plan.Float64, `[1e300, null, -0.1]`},
		{"small", plan.Decimal(4, 2), `["12.34", null, "-99.99"]`},
		{"large", plan.Decimal(38, 10), `["1234567890123456789012345678.0123456789", null, "-0.0000000001"]`},
		{"day", plan.Date, `["2026-01-05", null, "1969-12-31"]`},
		{"at", plan.Timestamp, `["2026-01-05 12:34:56.123456", null, "1969-12-31 23:59:59"]`},
		{"time", plan.Time, `["12:34:56.123456", null, "00:00:00"]`},
		{"s", plan.String, `["a", null, "ein längerer Text mit ☃ und mehr als zwölf Bytes"]`},
		{"raw", plan.Binary, `["AP8=", null, ""]`},
	}
	b := batch(t, cols...)
	path := writeFile(t, dir, "t.parquet", b)
	s := scanOf(1, cols...)
	inputs := fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}, Rows: b.NumRows()})
	for i, c := range cols {
		same := func(operands []arrow.Array, n int) (arrow.Array, error) {
			want := b.Column(i)
			if n != want.Len() || len(operands) != 1 || !arrow.TypeEqual(operands[0].DataType(), want.DataType()) || operands[0].NullN() != 1 {
				return nil, fmt.Errorf("operands %v", operands)
			}
			// Of a column with a dictionary DuckDB asks for each entry, in its order.
			seen := map[string]bool{}
			for k := range n {
				seen[operands[0].ValueStr(k)] = true
			}
			for k := range n {
				if !seen[want.ValueStr(k)] {
					return nil, fmt.Errorf("operands %v", operands)
				}
			}
			operands[0].Retain()
			return operands[0], nil
		}
		typ := c.typ
		if _, _, ok := rowResult(typ); !ok {
			inner := same
			typ, same = plan.Int64, func(operands []arrow.Array, n int) (arrow.Array, error) {
				a, err := inner(operands, n)
				if err != nil {
					return nil, err
				}
				a.Release()
				return array.MakeArrayOfNull(memory.DefaultAllocator, plan.Int64, n), nil
			}
		}
		got, err := run(t, in, listed(rowCall(typ, same, ref(s, i)), s), inputs)
		if err != nil {
			t.Errorf("%s: %v: %v", c.name, err, errors.Unwrap(err))
			continue
		}
		plainRows, err := run(t, in, listed(ref(s, i), s), inputs)
		if err != nil {
			t.Fatal(err)
		}
		if typ == c.typ && strings.Join(got, "\n") != strings.Join(plainRows, "\n") {
			t.Errorf("%s: %v, want %v", c.name, got, plainRows)
		}
	}
}

// TestRowCallErrors: an evaluator's error ends the statement as the fault that it is, and
// what it must not make is refused. A broken evaluator breaks its statement alone.
func TestRowCallErrors(t *testing.T) {
	in := open(t, Config{})
	texts := func(values ...string) func([]arrow.Array, int) (arrow.Array, error) {
		return func([]arrow.Array, int) (arrow.Array, error) {
			b := array.NewStringBuilder(memory.DefaultAllocator)
			defer b.Release()
			b.AppendValues(values, nil)
			return b.NewArray(), nil
		}
	}
	times := func([]arrow.Array, int) (arrow.Array, error) {
		b := array.NewTime64Builder(memory.DefaultAllocator, plan.Time.(*arrow.Time64Type))
		defer b.Release()
		b.Append(-1)
		return b.NewArray(), nil
	}
	for _, c := range []struct {
		name string
		typ  arrow.DataType
		f    evaluates
		kind fault.Kind
	}{
		{"a fault", plan.String, func([]arrow.Array, int) (arrow.Array, error) {
			return nil, fault.New(fault.BadStatement, "wrong")
		}, fault.BadStatement},
		{"an error", plan.String, func([]arrow.Array, int) (arrow.Array, error) { return nil, errors.New("secret") }, fault.Internal},
		{"a panic", plan.String, func([]arrow.Array, int) (arrow.Array, error) { panic("secret") }, fault.Internal},
		{"another number", plan.String, texts("a", "b"), fault.Internal},
		{"another type", plan.Int64, texts("1"), fault.Internal},
		{"no UTF-8", plan.String, texts("a\xff"), fault.OutOfRange},
		{"no time of a day", plan.Time, times, fault.OutOfRange},
	} {
		_, err := run(t, in, listed(rowCall(c.typ, c.f, lit(1)), one), nonScans)
		if !fault.Is(err, c.kind) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v (%s)", c.name, err, fault.KindOf(err))
		}
	}
	want(t, in, listed(rowCall(plan.String, texts("fine"), lit(1)), one), nonScans, "fine")
	// A branch that is not taken makes no error, also where all of it is constant.
	bad := rowCall(plan.String, func([]arrow.Array, int) (arrow.Array, error) {
		return nil, fault.New(fault.BadStatement, "wrong")
	}, lit(1))
	want(t, in, listed(&plan.Case{Whens: []plan.When{{Cond: call("eq", call("rand"), 2.0), Then: bad}}, Else: lit("else"), Typ: plan.String}, one), nonScans, "else")
	if n := evaluatorsLeft(); n != 0 {
		t.Errorf("%d evaluators are left", n)
	}
}

// nonScans are the inputs of plans without a table.
func nonScans(*plan.Scan) (*scan.Input, error) { return nil, errors.New("no table") }

func evaluatorsLeft() (n int) {
	evaluators.Range(func(any, any) bool { n++; return true })
	return n
}

// TestVolatileRowCalls: a volatile call is made for each row, another one once for equal
// constants.
func TestVolatileRowCalls(t *testing.T) {
	in := open(t, Config{})
	rows := &plan.Values{Cols: []plan.Column{{ID: 1, Name: "a", Type: plan.Int64}}}
	for i := range 50 {
		rows.Rows = append(rows.Rows, []plan.Expr{lit(i)})
	}
	var next atomic.Int64
	count := evaluates(func(_ []arrow.Array, n int) (arrow.Array, error) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for range n {
			b.Append(next.Add(1))
		}
		return b.NewArray(), nil
	})
	for _, volatile := range []bool{true, false} {
		c := rowCall(plan.Int64, count, lit(0))
		c.Volatile = volatile
		got, err := run(t, in, listed(c, rows), nonScans)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range got {
			seen[r] = true
		}
		if want := map[bool]int{true: 50, false: 1}[volatile]; len(got) != 50 || len(seen) != want {
			t.Errorf("volatile %t: %d rows, %d values, want %d", volatile, len(got), len(seen), want)
		}
	}
}
