package duck

import (
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sqe/fault"
	"sqe/plan"
)

// TestLongTexts: whatever makes a longer text of its operands has a bound for one text
// and one for the texts of the rows at hand, and makes nothing longer on the way to it.
func TestLongTexts(t *testing.T) {
	in := open(t, Config{MemoryLimit: 1 << 30, Threads: 1})
	text := func(n plan.Node, times int) plan.Expr {
		return call("repeat", call("right", call("lpad", &plan.Cast{Operand: ref(n, 0), Typ: plan.String}, 4, "0"), 4), times/4)
	}
	many := func(times int, x any) []any {
		out := make([]any, times)
		for i := range out {
			out[i] = x
		}
		return out
	}
	object := func(x any, n int) []any {
		var out []any
		for i := range n {
			out = append(out, string(rune('a'+i)), x)
		}
		return out
	}
	json := func(x plan.Expr) plan.Expr { return call("json_array", x, 1) }
	one, rows := numbers(1), numbers(2000)
	for name, x := range map[string]struct {
		make func(x plan.Expr) plan.Expr
		want string // length for two texts of four characters
	}{
		"concat":      {func(x plan.Expr) plan.Expr { return call("concat", many(20, x)...) }, "80"},
		"concat_ws":   {func(x plan.Expr) plan.Expr { return call("concat_ws", many(20, x)...) }, "148"},
		"separator":   {func(x plan.Expr) plan.Expr { return call("concat_ws", append([]any{x}, many(20, "-")...)...) }, "96"},
		"replace":     {func(x plan.Expr) plan.Expr { return call("replace", x, "0", "0123456789") }, "40"},
		"hex":         {func(x plan.Expr) plan.Expr { return call("hex", call("hex", x)) }, "16"},
		"json_array":  {func(x plan.Expr) plan.Expr { return call("json_array", many(20, x)...) }, "141"},
		"json_object": {func(x plan.Expr) plan.Expr { return call("json_object", object(x, 20)...) }, "221"},
		"json in it":  {func(x plan.Expr) plan.Expr { return call("json_array", many(20, json(x))...) }, "221"},
	} {
		t.Run(name, func(t *testing.T) {
			length := func(n plan.Node, x plan.Expr) plan.Node {
				return &plan.Project{Input: n, Items: []plan.Item{item(1, call("char_length", &plan.Cast{Operand: x, Typ: plan.String}))}}
			}
			want(t, in, length(one, x.make(text(one, 4))), nil, x.want)
			if _, err := run(t, in, length(one, x.make(text(one, 8<<20))), nil); !fault.Is(err, fault.Limit) {
				t.Errorf("one text: %v", err)
			}
			if _, err := run(t, in, length(rows, x.make(text(rows, 60_000))), nil); !fault.Is(err, fault.Limit) {
				t.Errorf("texts of many rows: %v", err)
			}
		})
	}
}

// TestTextsWithNull: NULL is in the texts that are made what MySQL makes of it.
func TestTextsWithNull(t *testing.T) {
	in := open(t, Config{MemoryLimit: 1 << 30, Threads: 1})
	null := &plan.Literal{Typ: plan.String}
	n := numbers(1)
	for result, e := range map[string]plan.Expr{
		"NULL":               call("concat", "a", null, "b"),
		"a-b":                call("concat_ws", "-", "a", null, "b"),
		"":                   call("concat_ws", "-", null, null),
		"bxbx":               call("replace", "aa", "a", "bx"),
		"aa":                 call("replace", "aa", "", "b"),
		"b":                  call("replace", "aba", "a", ""),
		"C3A4":               call("hex", "ä"),
		`["a",null]`:         call("json_array", "a", null),
		`[null,"a"]`:         call("json_array", null, "a"),
		`{"k":null,"l":"b"}`: call("json_object", "k", null, "l", "b"),
	} {
		want(t, in, &plan.Project{Input: n, Items: []plan.Item{item(1, e)}}, nil, result)
	}
}

// TestSharedTexts: a text that many rows share comes whole with each of them, in batches
// of a bounded size; a row has a bound of its own.
func TestSharedTexts(t *testing.T) {
	in := open(t, Config{MemoryLimit: 1 << 30, Threads: 1})
	const long, all = 8 << 20, 10
	wide := func(columns int) plan.Node {
		n := numbers(all)
		x := &plan.Project{Input: n, Items: []plan.Item{item(1, ref(n, 0)), item(2, call("repeat", "ab", long/2)), item(3, &plan.Case{Whens: []plan.When{{Cond: call("ne", ref(n, 0), 4000), Then: lit("x")}}, Typ: plan.String})}}
		for i := range columns {
			x.Items = append(x.Items, item(plan.ColumnID(10+i), call("repeat", "cd", long/2)))
		}
		return x
	}
	rows, err := in.Run(t.Context(), wide(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	next, batches := int64(0), 0
	for {
		b, err := rows.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		batches++
		size := 0
		for i := range int(b.NumRows()) {
			text := b.Column(1).(*array.String).Value(i)
			size += len(text)
			if id := b.Column(0).(*array.Int64).Value(i); id != 1000*next || len(text) != long || text[:4] != "abab" || text[long-2:] != "ab" || b.Column(2).IsNull(i) != (id == 4000) {
				t.Errorf("row %d has number %d and %d bytes", next, id, len(text))
			}
			next++
		}
		if size > maxPart {
			t.Errorf("a batch has %d bytes", size)
		}
		b.Release()
	}
	if next != all || batches < all*long/maxPart {
		t.Errorf("%d rows in %d batches", next, batches)
	}
	if _, err := run(t, in, wide(maxRow/long), nil); !fault.Is(err, fault.Limit) {
		t.Errorf("a row beyond its bound: %v", err)
	}
}

// TestResultsAtOnce: what is held as a whole makes no long texts.
func TestResultsAtOnce(t *testing.T) {
	n := &plan.Values{Cols: []plan.Column{{ID: 1, Type: plan.String}}, Rows: [][]plan.Expr{{lit("x")}}}
	x := ref(n, 0)
	show := func(e plan.Expr) plan.Node { return &plan.Project{Input: n, Items: []plan.Item{item(5, e)}} }
	for name, c := range map[string]struct {
		n    plan.Node
		want bool
	}{
		"the text itself":      {show(x), true},
		"no longer":            {show(call("lower", x)), true},
		"longer":               {show(call("repeat", x, 2)), false},
		"its length":           {show(call("char_length", call("repeat", x, 2))), true},
		"below":                {&plan.Project{Input: show(call("concat", x, x)), Items: []plan.Item{item(6, &plan.Ref{ID: 5, Typ: plan.String})}}, false},
		"a sub-query":          {show(&plan.Subquery{Kind: plan.ScalarSubquery, Plan: show(call("concat", x, x)), Typ: plan.String}), false},
		"of many rows":         {&plan.Aggregate{Input: n, Aggs: []plan.AggItem{agg(7, "group_concat", x)}}, false},
		"a literal":            {show(lit("short")), true},
		"a long literal":       {show(lit(strings.Repeat("x", longLiteral+1))), false},
		"more rows than a few": {numbers(smallResult + 1), false},
	} {
		if got := small(c.n, nil); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
