package duck

import (
	"fmt"
	"testing"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// Whether a statement fails must not follow from what files say of rows that are hidden.
func TestStatisticsOfHiddenRows(t *testing.T) {
	dir := t.TempDir()
	in := open(t, Config{Roots: []string{dir}, Threads: 1})
	guarded := func(file, hidden string) (*plan.Guard, *plan.Scan, Inputs) {
		cols := []column{{"id", plan.Int64, "[1, 2" + hidden}, {"region", plan.String, `["eu", "eu"`}, {"name", plan.String, `["x", "y"`}}
		cols[0].json += "]"
		if hidden != "" {
			cols[1].json += `, "us"`
			cols[2].json += `, "9"`
		}
		cols[1].json += "]"
		cols[2].json += "]"
		path := writeFile(t, dir, file, batch(t, cols...))
		s := scanOf(1, cols...)
		return &plan.Guard{Input: &plan.Filter{Input: s, Cond: call("eq", ref(s, 1), "eu")}, Table: s.Table, Filtered: true}, s,
			fixed(&scan.Input{Files: []scan.File{fileOf(path, cols...)}})
	}
	number := func(s *plan.Scan) plan.Expr { return &plan.Cast{Operand: ref(s, 2), Typ: plan.Int64} }
	shapes := map[string]func(n plan.Node, s *plan.Scan) plan.Node{
		"beside a comparison": func(n plan.Node, s *plan.Scan) plan.Node {
			return &plan.Project{Input: n, Items: []plan.Item{item(20, call("and", call("gt", ref(s, 0), 1000), call("gt", number(s), 0)))}}
		},
		"beside another order": func(n plan.Node, s *plan.Scan) plan.Node {
			return &plan.Project{Input: n, Items: []plan.Item{item(20, call("or", call("gt", number(s), 0), call("le", ref(s, 0), 1000)))}}
		},
		"below a join": func(n plan.Node, s *plan.Scan) plan.Node {
			left := &plan.Project{Input: n, Items: []plan.Item{item(20, ref(s, 0)), item(21, number(s))}}
			keys := &plan.Values{Cols: []plan.Column{{ID: 22, Name: "k", Type: plan.Int64}}, Rows: [][]plan.Expr{{lit(int64(0))}, {lit(int64(3000))}}}
			return &plan.Join{Kind: plan.Inner, Left: left, Right: keys, On: call("eq", ref(left, 0), ref(keys, 0))}
		},
	}
	for name, shape := range shapes {
		outcome := func(guard bool, file, hidden string) string {
			g, s, inputs := guarded(file, hidden)
			var n plan.Node = g
			if !guard {
				n = g.Input
			}
			rows, err := run(t, in, shape(n, s), inputs)
			if err != nil && !fault.Is(err, fault.OutOfRange) {
				t.Fatal(err)
			}
			return fmt.Sprint(rows, err != nil)
		}
		none, one := outcome(true, "none.parquet", ""), outcome(true, "one.parquet", ", 5000")
		if none != one {
			t.Errorf("%s: without a hidden row %s, with one %s", name, none, one)
		}
		// Without a guard that hides rows the executor does go by statistics.
		if name == "beside a comparison" && outcome(false, "none.parquet", "") == outcome(false, "one.parquet", ", 5000") {
			t.Errorf("%s: the test would not show the difference", name)
		}
	}
}
