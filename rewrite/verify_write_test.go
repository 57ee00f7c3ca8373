package rewrite

import (
	"slices"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/plan"
)

const updateText = `change people
update name=n region=r
filter people (eq region 'EU')
mask people.ssn MASK
(project ((_file _file) (_pos _pos) (n (concat name ssn)) (r 'US')) (filter (eq ssn 'x') (target people)))`

const mergeText = `change payments
update memo=m
delete
insert payer=p memo=m
filter payments (exists (filter (eq region memo) (scan regions)))
(project ((_file _file) (_pos _pos) (branch 1) (m name) (p id)) (join left (scan people) (target payments) (eq id payer)))`

// parts are the pieces of Changes, copied so that a test may change them.
type parts struct {
	c         *Changes
	top, row  *plan.Project
	join      *plan.Join
	raw       *plan.Scan
	permitted *plan.Item
	other     *plan.Table
}

func taken(t *testing.T, text string) *parts {
	t.Helper()
	w := newWorld()
	_, c, _, err := w.changed(text)
	if err != nil {
		t.Fatal(err)
	}
	project := func(n plan.Node) *plan.Project {
		p := *n.(*plan.Project)
		p.Items = slices.Clone(p.Items)
		return &p
	}
	p := &parts{c: c, top: project(c.Rows), other: w.tables["regions"]}
	p.row = project(p.top.Input)
	join := *p.row.Input.(*plan.Join)
	raw := *join.Right.(*plan.Scan)
	raw.Cols = slices.Clone(raw.Cols)
	p.join, p.raw = &join, &raw
	p.permitted = &p.top.Items[len(p.top.Items)-1]
	join.Right, p.row.Input, p.top.Input, c.Rows = p.raw, p.join, p.row, p.top
	return p
}

func (p *parts) item(name string) *plan.Item {
	i := slices.IndexFunc(p.row.Items, func(it plan.Item) bool { return it.Name == name })
	return &p.row.Items[i]
}

func (p *parts) rawRef(name string) *plan.Ref {
	i := slices.IndexFunc(p.raw.Cols, func(c plan.ScanColumn) bool { return c.Name == name })
	return ref(p.raw.Cols[i].Column)
}

func truth(b bool) plan.Expr { return &plan.Literal{Value: b, Typ: plan.Bool} }

// What Complete does not make is refused: each case is the right plan with one
// change.
func TestVerifyChanges(t *testing.T) {
	for name, change := range map[string]func(p *parts){
		"a raw column in another field": func(p *parts) { p.item("name").Expr = p.rawRef("ssn") },
		"a raw column in a computation": func(p *parts) { p.item("ssn").Expr = plan.MustCall("lower", p.rawRef("ssn")) },
		"a raw column beside a value": func(p *parts) {
			p.item("name").Expr = plan.MustCall("concat", p.item("name").Expr, p.rawRef("ssn"))
		},
		"a raw column as a condition": func(p *parts) {
			p.item("name").Expr = &plan.Case{Whens: []plan.When{{Cond: plan.MustCall("eq", p.rawRef("ssn"), &plan.Literal{Value: "1", Typ: plan.String}), Then: p.item("name").Expr}}, Typ: plan.String}
		},
		"a raw column as a branch": func(p *parts) {
			p.item("name").Expr = &plan.Case{Whens: []plan.When{{Cond: truth(true), Then: p.rawRef("ssn")}}, Typ: plan.String}
		},
		"a raw column as the rest": func(p *parts) {
			p.item("name").Expr = &plan.Case{Whens: []plan.When{{Cond: truth(true), Then: p.item("name").Expr}}, Else: p.rawRef("ssn"), Typ: plan.String}
		},
		"a raw column in the operation": func(p *parts) { p.item("op").Expr = &plan.Cast{Operand: p.rawRef("ssn"), Typ: plan.Int8} },
		"a raw column as the place":     func(p *parts) { p.item("_file").Expr = p.rawRef("ssn") },
		"the raw place":                 func(p *parts) { p.item("_file").Expr = p.rawRef("_file") },
		"a computed place":              func(p *parts) { p.item("_pos").Expr = &plan.Literal{Value: int64(0), Typ: plan.Int64} },
		"places exchanged":              func(p *parts) { p.item("_file").Expr, p.item("_pos").Expr = p.item("_pos").Expr, p.item("_file").Expr },
		"a raw column under its id": func(p *parts) {
			it := p.item("ssn")
			id := p.rawRef("ssn").ID
			p.c.Fields[slices.Index(p.c.Fields, it.ID)] = id
			it.ID = id
			p.top.Items[slices.IndexFunc(p.top.Items, func(it plan.Item) bool { return it.Name == "ssn" })] = plan.Item{Column: it.Column, Expr: ref(it.Column)}
		},
		"a column more": func(p *parts) {
			p.row.Items = append(p.row.Items, plan.Item{Column: plan.Column{ID: 900, Name: "x", Type: plan.String}, Expr: p.rawRef("ssn")})
		},
		"a column less":       func(p *parts) { p.row.Items = p.row.Items[:len(p.row.Items)-1] },
		"a field less":        func(p *parts) { p.c.Fields = p.c.Fields[:len(p.c.Fields)-1] },
		"an operation less":   func(p *parts) { p.c.Op = 0 },
		"a condition between": func(p *parts) { p.row.Input = &plan.Filter{Input: p.join, Cond: truth(true)} },
		"a condition above":   func(p *parts) { p.top.Input = &plan.Filter{Input: p.row, Cond: truth(true)} },
		"a condition on top":  func(p *parts) { p.c.Rows = &plan.Filter{Input: p.top, Cond: truth(true)} },
		"a limit on top":      func(p *parts) { p.c.Rows = &plan.Limit{Input: p.top, Count: 1} },
		"a condition on raw":  func(p *parts) { p.join.Right = &plan.Filter{Input: p.raw, Cond: truth(true)} },
		"an inner join":       func(p *parts) { p.join.Kind = plan.Inner },
		"a lateral join":      func(p *parts) { p.join.Lateral = true },
		"a join of all":       func(p *parts) { p.join.On = truth(true) },
		"a join by more": func(p *parts) {
			p.join.On = plan.MustCall("and", append(slices.Clone(p.join.On.Args()), truth(true))...)
		},
		"a join by one": func(p *parts) { p.join.On = plan.MustCall("and", p.join.On.Args()[0], p.join.On.Args()[0]) },
		"a join by or":  func(p *parts) { p.join.On = plan.MustCall("or", p.join.On.Args()...) },
		"a join by a value": func(p *parts) {
			p.join.On = plan.MustCall("and", plan.MustCall("eq", p.join.On.Args()[0].Args()[0], p.rawRef("ssn")), p.join.On.Args()[1])
		},
		"a join by raw alone": func(p *parts) {
			p.join.On = plan.MustCall("and", plan.MustCall("eq", p.rawRef("_file"), p.rawRef("_file")), p.join.On.Args()[1])
		},
		"sides exchanged":      func(p *parts) { p.join.Left, p.join.Right = p.join.Right, p.join.Left },
		"two raw scans":        func(p *parts) { p.join.Left = p.raw },
		"another table":        func(p *parts) { p.raw.Table = p.other },
		"another target":       func(p *parts) { p.c.Target = p.other },
		"the rights of others": func(p *parts) { p.raw.Definer = true },
		"a prune":              func(p *parts) { p.raw.Prune = truth(true) },
		"another virtual one":  func(p *parts) { p.raw.Cols[0].FieldID = plan.RowIDField },
		"another field":        func(p *parts) { p.raw.Cols[0].FieldID = 3 },
		"a changed row above":  func(p *parts) { p.top.Items[3].Expr = plan.MustCall("abs", p.top.Items[3].Expr) },
		"rows exchanged above": func(p *parts) { p.top.Items[4].Expr, p.top.Items[5].Expr = p.top.Items[5].Expr, p.top.Items[4].Expr },
		"a column more above":  func(p *parts) { p.top.Items = append(p.top.Items, p.top.Items[1]) },
		"a check of raw rows":  func(p *parts) { p.permitted.Expr = plan.MustCall("is_null", p.rawRef("ssn")) },
		"a check of a value":   func(p *parts) { p.permitted.Expr = plan.MustCall("is_null", p.join.On.Args()[0].Args()[0]) },
		"a check that is none": func(p *parts) { p.permitted.Expr = ref(p.row.Items[3].Column) },
		"no check":             func(p *parts) { p.c.Permitted = 0 },
		"the check as a field": func(p *parts) { p.c.Fields[0] = p.c.Permitted },
		"a check with a guard": func(p *parts) {
			p.permitted.Expr = &plan.Subquery{Kind: plan.ExistsSubquery, Plan: &plan.Guard{Input: &plan.Project{Input: &plan.Scan{Table: p.other}}, Table: p.other}}
		},
		"a check with a table": func(p *parts) {
			p.permitted.Expr = &plan.Subquery{Kind: plan.ExistsSubquery, Plan: &plan.Scan{Table: p.other}}
		},
		"a check by places": func(p *parts) {
			p.permitted.Expr = &plan.Subquery{Kind: plan.ExistsSubquery, Plan: &plan.Scan{Table: p.other, Definer: true, Cols: []plan.ScanColumn{{Column: plan.Column{ID: 901, Type: plan.String}, FieldID: plan.FileField}}}}
		},
		"a row with a sub-query": func(p *parts) {
			p.item("name").Expr = &plan.Subquery{Kind: plan.ScalarSubquery, Typ: plan.String, Plan: &plan.Scan{Table: p.other, Definer: true}}
		},
		"no guard": func(p *parts) {
			g := func(n plan.Node) (plan.Node, error) {
				if g, ok := n.(*plan.Guard); ok {
					return g.Input, nil
				}
				return n, nil
			}
			p.join.Left, _ = plan.Transform(p.join.Left, g)
		},
	} {
		p := taken(t, updateText)
		if err := VerifyChanges(p.c); err != nil {
			t.Fatalf("the right plan: %v", err)
		}
		change(p)
		if err := VerifyChanges(p.c); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "rule of protection") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := VerifyChanges(taken(t, mergeText).c); err != nil {
		t.Error(err)
	}
}

// The forms of a write that GovernWrite does not make.
func TestVerifyWrite(t *testing.T) {
	for name, change := range map[string]func(w *plan.Write, p *plan.Project){
		"no branch":      func(w *plan.Write, _ *plan.Project) { w.Branches = nil },
		"no target":      func(w *plan.Write, _ *plan.Project) { w.Target = nil },
		"another target": func(w *plan.Write, _ *plan.Project) { w.Target = testTables()["people"] },
		"an overwrite":   func(w *plan.Write, _ *plan.Project) { w.Overwrite = true },
		"no operation":   func(w *plan.Write, _ *plan.Project) { w.Branches = []plan.WriteBranch{{}} },
		"a value of elsewhere": func(w *plan.Write, _ *plan.Project) {
			w.Branches = []plan.WriteBranch{{Op: plan.UpdateRow, Values: map[int]plan.ColumnID{1: 999}}}
		},
		"a field of elsewhere": func(w *plan.Write, _ *plan.Project) {
			w.Branches = []plan.WriteBranch{{Op: plan.UpdateRow, Values: map[int]plan.ColumnID{99: w.File}}}
		},
		"a deleted row's value": func(w *plan.Write, _ *plan.Project) {
			w.Branches = []plan.WriteBranch{{Op: plan.DeleteRow, Values: map[int]plan.ColumnID{1: w.File}}}
		},
		"no place":          func(w *plan.Write, _ *plan.Project) { w.File, w.Pos = 0, 0 },
		"places exchanged":  func(w *plan.Write, _ *plan.Project) { w.File, w.Pos = w.Pos, w.File },
		"branches not told": func(w *plan.Write, _ *plan.Project) { w.Branches = append(slices.Clone(w.Branches), w.Branches...) },
		"a computed place": func(_ *plan.Write, p *plan.Project) {
			p.Items[0].Expr = plan.MustCall("concat", p.Items[0].Expr)
		},
		"a fixed place": func(_ *plan.Write, p *plan.Project) {
			p.Items[1].Expr = &plan.Literal{Value: int64(1), Typ: plan.Int64}
		},
		"a place of a sub-query": func(_ *plan.Write, p *plan.Project) {
			p.Items[0].Expr = &plan.Subquery{Kind: plan.ScalarSubquery, Plan: &plan.Values{Cols: []plan.Column{{ID: 950, Type: plan.String}}}, Typ: plan.String}
		},
		"a distinct place": func(_ *plan.Write, p *plan.Project) { p.Input = &plan.Distinct{Input: p.Input} },
	} {
		w := newWorld()
		governed, _, _, err := w.changed(updateText)
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(governed.Rows); !fault.Is(err, fault.Internal) {
			t.Fatalf("a query may read places: %v", err)
		}
		p := *governed.Rows.(*plan.Project)
		p.Items = slices.Clone(p.Items)
		c := *governed
		c.Rows = &p
		if err := VerifyWrite(&c); err != nil {
			t.Fatal(err)
		}
		change(&c, &p)
		if err := VerifyWrite(&c); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A query may not read where a row lies.
func TestGovernPlaces(t *testing.T) {
	for text, ok := range map[string]bool{
		"(project ((f _file)) (target people))": false,
		"(project ((f name)) (target people))":  false,
		"(project ((f name)) (scan people))":    true,
	} {
		w := newWorld()
		b := newBuilder(w.tables)
		root, err := b.plan(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.govern(root, &b.ids); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const keptText = `change people
update name=n
keep region=r id=i ssn=s
filter people (eq region 'EU')
mask people.ssn MASK
(project ((_file _file) (_pos _pos) (n 'x') (r region) (i id) (s ssn)) (target people))`

// A kept value is what a guard shows of the old row, as it is.
func TestVerifyKept(t *testing.T) {
	p := taken(t, keptText)
	if err := VerifyChanges(p.c); err != nil {
		t.Fatal(err)
	}
	fields := map[string]int{}
	for _, f := range p.c.Target.Fields {
		fields[f.Name] = f.ID
	}
	if len(p.c.Kept) != 2 || p.c.Kept[fields["ssn"]] != 0 {
		t.Fatalf("kept %v", p.c.Kept)
	}
	for name, change := range map[string]func(c *Changes){
		"another field": func(c *Changes) {
			c.Kept[fields["id"]], c.Kept[fields["region"]] = c.Kept[fields["region"]], c.Kept[fields["id"]]
		},
		"a masked field":        func(c *Changes) { c.Kept[fields["ssn"]] = c.Kept[fields["region"]] },
		"a value":               func(c *Changes) { c.Kept[fields["name"]] = p.item("name").Expr.(*plan.Ref).ID },
		"what is not there":     func(c *Changes) { c.Kept[fields["region"]] = 9999 },
		"nothing is an old row": func(c *Changes) { c.File, c.Pos = 0, 0 },
	} {
		p = taken(t, keptText)
		change(p.c)
		if err := VerifyChanges(p.c); err == nil {
			t.Errorf("%s is kept", name)
		}
	}
}
