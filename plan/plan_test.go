package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/go-cmp/cmp"
)

var people = &Table{Name: TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: "people"}}

func column(id ColumnID, name string, t arrow.DataType) Column {
	return Column{ID: id, Name: name, Type: t, Nullable: true}
}

func scan(first ColumnID) *Scan {
	return &Scan{Table: people, Cols: []ScanColumn{
		{Column: column(first, "id", Int64), FieldID: 1},
		{Column: column(first+1, "name", String), FieldID: 2},
	}}
}

func ref(c Column) *Ref { return &Ref{ID: c.ID, Typ: c.Type, Name: c.Name} }

func text(s string) *Literal { return &Literal{Value: s, Typ: String} }

func long(n int64) *Literal { return &Literal{Value: n, Typ: Int64} }

// everything is a plan that holds every node and every expression.
func everything() Node {
	s := scan(1)
	count, _ := Lookup("count")
	rank, _ := Lookup("rank")
	sub := &Filter{Input: scan(11), Cond: MustCall("eq", &Ref{ID: 11, Typ: Int64, Name: "id"}, ref(s.Cols[0].Column))}
	var n Node = &Guard{Table: people, Masked: map[ColumnID]bool{2: true}, Filtered: true, Input: &Project{
		Input: &Filter{Input: scan(21), Cond: &In{Operand: &Ref{ID: 21, Typ: Int64}, List: []Expr{long(1), long(2)}}},
		Items: []Item{
			{Column: s.Cols[0].Column, Expr: &Ref{ID: 21, Typ: Int64, Name: "id"}},
			{Column: s.Cols[1].Column, Expr: MustCall("sha256", &Literal{Value: []byte("key"), Typ: Binary})},
		},
	}}
	n = &Filter{Input: n, Cond: MustCall("and",
		&Subquery{Kind: ExistsSubquery, Plan: sub},
		&Like{Operand: ref(s.Cols[1].Column), Pattern: text("a%"), Escape: '!'},
		&Case{Whens: []When{{Cond: MustCall("is_null", ref(s.Cols[0].Column)), Then: &Literal{Value: true, Typ: Bool}}}, Else: &Literal{Typ: Bool}, Typ: Bool},
	)}
	n = &Window{Input: n, Items: []WindowItem{{
		Column: column(31, "r", Int64), Call: AggCall{Func: rank},
		PartitionBy: []Expr{ref(s.Cols[1].Column)}, OrderBy: []SortKey{{Expr: ref(s.Cols[0].Column), Desc: true}},
		Frame: &Frame{Rows: true, Start: Bound{Kind: Preceding, Offset: long(3)}, End: Bound{Kind: CurrentRow}},
	}}}
	n = &Join{Kind: Left, Left: n, Right: &Values{Cols: []Column{column(41, "v", String)}, Rows: [][]Expr{{text("x")}, {text("y")}}}, On: MustCall("eq", &Ref{ID: 41, Typ: String, Name: "v"}, ref(s.Cols[1].Column)), Lateral: true}
	n = &Aggregate{Input: n, Keys: []Item{{Column: column(51, "k", String), Expr: &Ref{ID: 41, Typ: String, Name: "v"}}}, Aggs: []AggItem{
		{Column: column(52, "n", Int64), Call: AggCall{Func: count}},
		{Column: column(53, "d", Int64), Call: AggCall{Func: count, Args: []Expr{&Cast{Operand: &Ref{ID: 31, Typ: Int64, Name: "r"}, Typ: String, Try: true}}, Distinct: true}},
	}}
	n = &Limit{Input: &Sort{Input: &Distinct{Input: n}, Keys: []SortKey{{Expr: &Ref{ID: 51, Typ: String, Name: "k"}, NullsFirst: true}}}, Count: 10, Offset: 5}
	n = &Project{Input: n, Items: []Item{{Column: column(61, "k", String), Expr: &Ref{ID: 51, Typ: String, Name: "k"}}}}
	n = &SetOp{Kind: Union, All: true, Left: n, Right: &Values{Cols: []Column{column(62, "'secret'", String)}, Rows: [][]Expr{{text("secret")}}}, Cols: []Column{column(71, "k", String)}}
	n = &Recursive{ID: 1, Name: "w", Anchor: n, Step: &WorkTable{ID: 1, Cols: []Column{column(81, "k", String)}}, All: true, Cols: []Column{column(91, "k", String)}}
	return &Foreign{Children: []Node{n}, Cols: []Column{column(101, "k", String)}, Reason: "JSON_TABLE"}
}

const everythingText = `row executor [k#101:string] (JSON_TABLE)
  recursive 1 all [k#91:string]
    union all [k#71:string]
      project [k#61:string = k#51]
        limit 10 offset 5
          sort k#51
            distinct
              aggregate by [k#51:string = v#41] [n#52:long = count(*), d#53:long = count(distinct try_cast(r#31 as string))]
                left join lateral on eq(v#41, name#2)
                  window [r#31:long = rank() over (partition by name#2 order by id#1 desc rows 3 before to current)]
                    filter and(exists $1, name#2 like "a%" escape "!", case when is_null(id#1) then true else null:boolean end)
                        $1: filter eq(id#11, id#1)
                          scan lake.bank.people [id#11:long, name#12:string]
                      guard lake.bank.people filtered masked #2
                        project [id#1:long = id#21, name#2:string = sha256(<3 bytes>)]
                          filter #21 in (1, 2)
                            scan lake.bank.people [id#21:long, name#22:string]
                  values [v#41:string] ("x") ("y")
      values ['secret'#62:string] ("secret")
    work table 1 [k#81:string]
`

func TestFormat(t *testing.T) {
	if d := cmp.Diff(everythingText, Format(everything())); d != "" {
		t.Error(d)
	}
}

// TestFormatPublic: nothing of a policy, no literal, no name that may hold one.
func TestFormatPublic(t *testing.T) {
	got := FormatPublic(everything())
	for _, never := range []string{"secret", "a%", "\"x\"", "sha256", "bytes", "masked", "filtered", " in (", "#21", "3 before", "limit 10"} {
		if strings.Contains(got, never) {
			t.Errorf("holds %q:\n%s", never, got)
		}
	}
	for _, must := range []string{"table lake.bank.people [id#1:long, name#2:string]", "limit\n", "name#2 like ?", "JSON_TABLE", "#62:string"} {
		if !strings.Contains(got, must) {
			t.Errorf("lacks %q:\n%s", must, got)
		}
	}
}

func TestFormatLiterals(t *testing.T) {
	for _, c := range []struct {
		value any
		typ   arrow.DataType
		want  string
	}{
		{nil, Date, "null:date"},
		{true, Bool, "true"},
		{int64(-1), Int32, "-1"},
		{uint64(math.MaxUint64), Uint64, "18446744073709551615"},
		{1.5, Float64, "1.5"},
		{"a'b\n", String, `"a'b\n"`},
		{[]byte("0123456789abcdef"), Binary, "<16 bytes>"},
		{decimal128.FromI64(-1234), Decimal(10, 2), "-12.34"},
		{arrow.Date32(-1), Date, `date "1969-12-31"`},
		{arrow.Time64(1_000_001), Time, `time "00:00:01.000001"`},
		{arrow.Timestamp(-1), Timestamp, `timestamp "1969-12-31 23:59:59.999999"`},
		{arrow.Timestamp(-1), TimestampTZNS, `timestamptz_ns "1969-12-31 23:59:59.999999999"`},
	} {
		if got := FormatExpr(&Literal{Value: c.value, Typ: c.typ}); got != c.want {
			t.Errorf("%v: got %s, want %s", c.value, got, c.want)
		}
	}
}

// TestRebuild: taking a node apart and together again changes nothing, for every
// node and expression there is.
func TestRebuild(t *testing.T) {
	seen := map[string]bool{}
	Walk(everything(), func(n Node) bool {
		seen[strings.Fields(Format(n))[0]] = true
		again := n.WithInputs(n.Inputs()).WithExprs(n.WithInputs(n.Inputs()).Exprs())
		if d := cmp.Diff(Format(n), Format(again)); d != "" {
			t.Errorf("%T: %s", n, d)
		}
		for _, e := range n.Exprs() {
			WalkExpr(e, func(e Expr) bool {
				if again := e.WithArgs(e.Args()); FormatExpr(again) != FormatExpr(e) || !arrow.TypeEqual(again.Type(), e.Type()) {
					t.Errorf("%s became %s", FormatExpr(e), FormatExpr(again))
				}
				return true
			})
		}
		return true
	})
	if len(seen) != 15 {
		t.Errorf("the plan holds %d kinds of nodes: %v", len(seen), seen)
	}
}

func TestWalkVisitsSubqueries(t *testing.T) {
	var scans []ColumnID
	Walk(everything(), func(n Node) bool {
		if s, ok := n.(*Scan); ok {
			scans = append(scans, s.Cols[0].ID)
		}
		return true
	})
	if d := cmp.Diff([]ColumnID{11, 21}, scans); d != "" {
		t.Error(d)
	}
	var seen []string
	Walk(everything(), func(n Node) bool {
		seen = append(seen, strings.Fields(Format(n))[0])
		_, union := n.(*SetOp)
		return !union
	})
	if d := cmp.Diff([]string{"row", "recursive", "union", "work"}, seen); d != "" {
		t.Errorf("what is below a node that is left out: %s", d)
	}
}

func TestTransform(t *testing.T) {
	root := everything()
	same, err := Transform(root, func(n Node) (Node, error) { return n, nil })
	if err != nil || same != root {
		t.Error("a transformation that changes nothing made a new plan")
	}
	before := Format(root)
	changed, err := Transform(root, func(n Node) (Node, error) {
		if s, ok := n.(*Scan); ok {
			return &Limit{Input: s, Count: 1}, nil
		}
		return n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if Format(root) != before {
		t.Error("the original changed")
	}
	if n := strings.Count(Format(changed), "limit 1\n"); n != 2 {
		t.Errorf("%d scans transformed, want 2 (one in a sub-query)", n)
	}
	// Bottom-up: what is below a node was transformed before the node.
	var order []string
	_, _ = Transform(root, func(n Node) (Node, error) {
		order = append(order, strings.Fields(Format(n))[0])
		return n, nil
	})
	if order[len(order)-1] != "row" || order[0] != "scan" {
		t.Errorf("order %v", order)
	}
}

func TestRenumber(t *testing.T) {
	root := everything()
	var ids IDs
	ids.Reserve(1000)
	got := Renumber(root, &ids, nil)
	Walk(got, func(n Node) bool {
		Defined(n, func(id ColumnID) {
			if id <= 1000 {
				t.Errorf("%T makes old id %d", n, id)
			}
		})
		for _, e := range n.Exprs() {
			for _, id := range Refs(e) {
				if id <= 1000 {
					t.Errorf("%T refers to old id %d", n, id)
				}
			}
		}
		if g, ok := n.(*Guard); ok {
			for id := range g.Masked {
				if id <= 1000 || !g.Masked[g.Columns()[1].ID] {
					t.Errorf("masked holds old id %d", id)
				}
			}
		}
		return true
	})
	if Format(root) != everythingText {
		t.Error("the original changed")
	}
	if len(strings.Split(Format(got), "\n")) != len(strings.Split(everythingText, "\n")) {
		t.Error("the copy has another shape")
	}
}

// TestRenumberExpr: what an expression refers to outside is renamed as told, what
// its sub-query makes is fresh, everything else stays.
func TestRenumberExpr(t *testing.T) {
	sub := &Filter{Input: scan(11), Cond: MustCall("and",
		MustCall("eq", &Ref{ID: 11, Typ: Int64}, &Ref{ID: 1, Typ: Int64}),
		MustCall("eq", &Ref{ID: 11, Typ: Int64}, &Ref{ID: 2, Typ: Int64}))}
	e := &Subquery{Kind: ExistsSubquery, Plan: sub}
	var ids IDs
	ids.Reserve(50)
	got := RenumberExpr(e, &ids, map[ColumnID]ColumnID{1: 7})
	f := got.(*Subquery).Plan.(*Filter)
	if want := "and(eq(#51, #7), eq(#51, #2))"; FormatExpr(f.Cond) != want {
		t.Errorf("got %s, want %s", FormatExpr(f.Cond), want)
	}
	if f.Input.Columns()[0].ID != 51 {
		t.Errorf("the scan makes %d", f.Input.Columns()[0].ID)
	}
}

func TestFree(t *testing.T) {
	s := scan(1)
	inner := &Filter{Input: scan(11), Cond: MustCall("eq", &Ref{ID: 11, Typ: Int64}, &Ref{ID: 1, Typ: Int64})}
	if d := cmp.Diff([]ColumnID{1}, Free(inner)); d != "" {
		t.Error(d)
	}
	outer := &Filter{Input: s, Cond: &Subquery{Kind: ExistsSubquery, Plan: inner}}
	if free := Free(outer); len(free) != 0 {
		t.Errorf("nothing is free in the whole, got %v", free)
	}
	if d := cmp.Diff([]ColumnID{1}, Refs(outer.Cond)); d != "" {
		t.Error(d)
	}
	in := &Subquery{Kind: InSubquery, Operand: &Ref{ID: 2, Typ: String}, Plan: inner}
	if d := cmp.Diff([]ColumnID{1, 2}, sorted(Refs(in))); d != "" {
		t.Error(d)
	}
}

func sorted(ids []ColumnID) []ColumnID {
	if len(ids) == 2 && ids[0] > ids[1] {
		ids[0], ids[1] = ids[1], ids[0]
	}
	return ids
}

func TestTotal(t *testing.T) {
	l, d, f, s := &Ref{ID: 1, Typ: Int64}, &Ref{ID: 2, Typ: Decimal(10, 2)}, &Ref{ID: 3, Typ: Float64}, &Ref{ID: 4, Typ: String}
	cast := func(e Expr, to arrow.DataType) Expr { return &Cast{Operand: e, Typ: to} }
	for _, c := range []struct {
		e    Expr
		want bool
	}{
		{MustCall("eq", l, long(1)), true},
		{MustCall("add", l, long(1)), false}, // overflow
		{MustCall("add", f, f), false},       // beyond the greatest double
		{MustCall("neg", f), true},
		{MustCall("mul", d, d), false},
		{MustCall("concat", s, s), false}, // too long
		{MustCall("lower", s), true},
		{MustCall("repeat", s, long(9)), false},
		{MustCall("regexp_like", s, s), false},
		{MustCall("sqrt", f), true},
		{MustCall("exp", f), false},
		{&Like{Operand: s, Pattern: text("a%")}, true},
		{&In{Operand: l, List: []Expr{long(1), MustCall("add", l, long(1))}}, false},
		{cast(s, Int64), false},
		{&Cast{Operand: s, Typ: Int64, Try: true}, true},
		{cast(l, String), true},
		{cast(l, Float64), true},
		{cast(l, Int32), false},
		{cast(l, Decimal(18, 0)), false},
		{cast(l, Decimal(19, 0)), true},
		{cast(d, Decimal(12, 4)), true},
		{cast(d, Decimal(10, 4)), false},
		{cast(s, Date), false},
		{&RowCall{Name: "f", Operands: []Expr{l}, Typ: Int64}, false},
		{&Subquery{Kind: ExistsSubquery, Plan: scan(11)}, false},
		{&Case{Whens: []When{{Cond: MustCall("is_null", l), Then: cast(s, Int64)}}, Typ: Int64}, false},
	} {
		if got := Total(c.e); got != c.want {
			t.Errorf("Total(%s) = %v", FormatExpr(c.e), got)
		}
	}
}

func TestDeterministic(t *testing.T) {
	if !Deterministic(MustCall("sqrt", long(1))) || Deterministic(MustCall("neg", MustCall("rand"))) {
		t.Error("rand differs from call to call and sqrt does not")
	}
	sub := &Subquery{Kind: ExistsSubquery, Plan: &Filter{Input: scan(1), Cond: MustCall("lt", MustCall("rand"), &Literal{Value: 0.5, Typ: Float64})}}
	if Deterministic(sub) {
		t.Error("a sub-query hides rand")
	}
}

func TestColumns(t *testing.T) {
	l, r := scan(1), scan(11)
	for _, s := range []*Scan{l, r} {
		for i := range s.Cols {
			s.Cols[i].Nullable = false
		}
	}
	for _, c := range []struct {
		kind JoinKind
		want []bool // nullable, by output column
	}{
		{Inner, []bool{false, false, false, false}},
		{Cross, []bool{false, false, false, false}},
		{Left, []bool{false, false, true, true}},
		{Right, []bool{true, true, false, false}},
		{Full, []bool{true, true, true, true}},
		{Semi, []bool{false, false}},
		{Anti, []bool{false, false}},
	} {
		var got []bool
		for _, col := range (&Join{Kind: c.kind, Left: l, Right: r}).Columns() {
			got = append(got, col.Nullable)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s join: %s", joinNames[c.kind], d)
		}
	}
	if l.Columns()[0].Nullable {
		t.Error("a join changed the columns of its input")
	}
}

func TestIDs(t *testing.T) {
	var ids IDs
	if ids.New() != 1 || ids.New() != 2 {
		t.Error("ids start at 1")
	}
	ids.Reserve(9)
	ids.Reserve(3)
	if id := ids.New(); id != 10 {
		t.Errorf("got %d after 9 was reserved", id)
	}
}

func TestFieldNamed(t *testing.T) {
	table := &Table{Fields: []Field{{ID: 1, Name: "a"}, {ID: 2, Name: "A"}, {ID: 3, Name: "Bc"}}}
	for _, c := range []struct {
		name string
		id   int
		ok   bool
	}{{"a", 1, true}, {"A", 2, true}, {"bC", 3, true}, {"c", 0, false}} {
		f, ok := table.FieldNamed(c.name)
		if ok != c.ok || (ok && f.ID != c.id) {
			t.Errorf("%s: got field %d, %v", c.name, f.ID, ok)
		}
	}
	two := &Table{Fields: []Field{{ID: 1, Name: "ab"}, {ID: 2, Name: "AB"}}}
	if _, ok := two.FieldNamed("Ab"); ok {
		t.Error("an ambiguous name was found")
	}
}

func TestNewStruct(t *testing.T) {
	st := arrow.StructOf(arrow.Field{Name: "a", Type: Int64}, arrow.Field{Name: "b", Type: String})
	if _, err := NewStruct(st, []Expr{long(1)}); err == nil {
		t.Error("too few values")
	}
	if _, err := NewStruct(st, []Expr{text("x"), text("y")}); err == nil {
		t.Error("wrong type")
	}
	s, err := NewStruct(st, []Expr{long(1), text("y")})
	if err != nil || !arrow.TypeEqual(s.Type(), st) {
		t.Fatal(err)
	}
	f, err := NewStructField(s, "b")
	if err != nil || f.Type().ID() != arrow.STRING {
		t.Errorf("field b: %v", err)
	}
	if _, err := NewStructField(s, "c"); err == nil {
		t.Error("a field that is not there")
	}
	if _, err := NewStructField(long(1), "c"); err == nil {
		t.Error("not a struct")
	}
	if _, err := NewEmpty(Int64); err == nil {
		t.Error("a number is not empty")
	}
	for _, e := range []arrow.DataType{arrow.ListOf(Int64), arrow.MapOf(String, Int64)} {
		if c, err := NewEmpty(e); err != nil || !arrow.TypeEqual(c.Type(), e) {
			t.Errorf("%s: %v", e, err)
		}
	}
	if _, err := NewCall("make_struct"); err == nil {
		t.Error("make_struct without a type")
	}
}
