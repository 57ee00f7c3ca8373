package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// The tests write plans and policy texts as lists in parentheses:
//
//	plan: (scan TABLE [ALIAS]) (definer TABLE [ALIAS]) (target TABLE [ALIAS]) (filter COND PLAN)
//	      (project ((NAME EXPR)...) PLAN) (aggregate ((NAME EXPR)...) ((NAME FUNC EXPR...)...) PLAN)
//	      (join KIND PLAN PLAN [COND]) (lateral PLAN PLAN) (union PLAN PLAN) (except PLAN PLAN)
//	      (distinct PLAN) (sort EXPR PLAN) (limit N PLAN) (recursive PLAN PLAN) (worktable)
//	      (foreign PLAN...) (values) (rows (EXPR...)...)
//	      (window ((NAME FUNC (EXPR...) (PARTITION-EXPR...) (ORDER-EXPR...))...) PLAN)
//	aggregate: NAME FUNC EXPR... [(order EXPR...)]
//	expr: (FUNC EXPR...) (cast EXPR TYPE) (try_cast EXPR TYPE) (exists PLAN) (in EXPR PLAN)
//	      (scalar PLAN) (case COND EXPR EXPR) (like EXPR EXPR) (one-of EXPR EXPR...)
//	      NAME ALIAS.NAME 'text' 12 null:TYPE

type list []any // of string and list

func parseList(s string) (list, error) {
	var stack []list
	cur := list{}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case strings.ContainsRune(" \t\n", rune(c)):
			i++
		case c == '(':
			stack = append(stack, cur)
			cur = list{}
			i++
		case c == ')':
			if len(stack) == 0 {
				return nil, errors.New("unexpected )")
			}
			cur, stack = append(stack[len(stack)-1], cur), stack[:len(stack)-1]
			i++
		default:
			end := i + 1
			if c == '\'' || c == '`' {
				for end < len(s) && (s[end] != c || (end+1 < len(s) && s[end+1] == c)) {
					if s[end] == c {
						end++
					}
					end++
				}
				end++
			} else {
				for end < len(s) && !strings.ContainsRune(" \t\n()", rune(s[end])) {
					end++
				}
			}
			if end > len(s) {
				return nil, errors.New("unexpected end")
			}
			cur = append(cur, s[i:end])
			i = end
		}
	}
	if len(stack) > 0 {
		return nil, errors.New("unexpected end")
	}
	return cur, nil
}

// builder builds plans of one statement or policy text. It panics with an error
// on what it does not understand; build and policy texts recover it.
type builder struct {
	ids     plan.IDs
	tables  map[string]*plan.Table
	definer bool // every scan is one of a policy
	alias   map[plan.ColumnID]string
	work    []plan.Column
}

func newBuilder(tables map[string]*plan.Table) *builder {
	return &builder{tables: tables, alias: map[plan.ColumnID]string{}}
}

func fail(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

func recovered(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(error)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

func (b *builder) plan(text string) (n plan.Node, err error) {
	defer recovered(&err)
	l, err := parseList(text)
	if err != nil {
		return nil, err
	}
	if len(l) != 1 {
		return nil, fmt.Errorf("%d plans", len(l))
	}
	return b.node(l[0], nil), nil
}

func (b *builder) column(name string, t arrow.DataType) plan.Column {
	return plan.Column{ID: b.ids.New(), Name: name, Type: t, Nullable: true}
}

func (b *builder) scan(table, alias string) *plan.Scan {
	t, ok := b.tables[table]
	if !ok {
		fail("no table %s", table)
	}
	s := &plan.Scan{Table: t}
	for _, f := range t.Fields {
		c := b.column(f.Name, f.Type)
		c.Nullable = !f.Required
		b.alias[c.ID] = alias
		s.Cols = append(s.Cols, plan.ScanColumn{Column: c, FieldID: f.ID})
	}
	return s
}

func (b *builder) node(x any, outer []plan.Column) plan.Node {
	l, ok := x.(list)
	if !ok || len(l) == 0 {
		fail("no plan: %v", x)
	}
	last := len(l) - 1
	switch l[0] {
	case "scan", "definer", "target":
		alias := l[1].(string)
		if len(l) > 2 {
			alias = l[2].(string)
		}
		s := b.scan(l[1].(string), alias)
		s.Definer = b.definer || l[0] == "definer"
		if l[0] == "target" {
			file, pos := b.column("_file", plan.String), b.column("_pos", plan.Int64)
			b.alias[file.ID], b.alias[pos.ID] = alias, alias
			s.Cols = append(s.Cols, plan.ScanColumn{Column: file, FieldID: plan.FileField}, plan.ScanColumn{Column: pos, FieldID: plan.PositionField})
		}
		return s
	case "values":
		c := b.column("v", plan.Int64)
		return &plan.Values{Cols: []plan.Column{c}, Rows: [][]plan.Expr{{&plan.Literal{Value: int64(1), Typ: plan.Int64}}}}
	case "filter":
		in := b.node(l[2], outer)
		return &plan.Filter{Input: in, Cond: b.expr(l[1], scope(in, outer))}
	case "project":
		in := b.node(l[last], outer)
		return &plan.Project{Input: in, Items: b.items(l[1], scope(in, outer))}
	case "aggregate":
		in := b.node(l[last], outer)
		a := &plan.Aggregate{Input: in, Keys: b.items(l[1], scope(in, outer))}
		for _, x := range l[2].(list) {
			y := x.(list)
			f, ok := plan.Lookup(y[1].(string))
			if !ok {
				fail("no function %v", y[1])
			}
			call := plan.AggCall{Func: f}
			for _, arg := range y[2:] {
				if l, ok := arg.(list); ok && l[0] == "order" {
					call.OrderBy = b.keys(l[1:], scope(in, outer))
					continue
				}
				call.Args = append(call.Args, b.expr(arg, scope(in, outer)))
			}
			t, err := f.Result(plan.Types(call.Args))
			if err != nil {
				panic(err)
			}
			a.Aggs = append(a.Aggs, plan.AggItem{Column: b.column(y[0].(string), t), Call: call})
		}
		return a
	case "window":
		in := b.node(l[2], outer)
		w := &plan.Window{Input: in}
		for _, x := range l[1].(list) {
			w.Items = append(w.Items, b.windowItem(x.(list), scope(in, outer)))
		}
		return w
	case "rows":
		v := &plan.Values{}
		for _, x := range l[1:] {
			var row []plan.Expr
			for _, y := range x.(list) {
				row = append(row, b.expr(y, outer))
			}
			v.Rows = append(v.Rows, row)
		}
		for i, e := range v.Rows[0] {
			v.Cols = append(v.Cols, b.column(fmt.Sprintf("v%d", i+1), e.Type()))
		}
		return v
	case "join":
		j := &plan.Join{Kind: joinKinds[l[1].(string)], Left: b.node(l[2], outer), Right: b.node(l[3], outer)}
		if len(l) > 4 {
			both := append(scope(j.Left, nil), scope(j.Right, outer)...)
			j.On = b.expr(l[4], both)
		}
		return j
	case "lateral":
		left := b.node(l[1], outer)
		return &plan.Join{Kind: plan.Cross, Lateral: true, Left: left, Right: b.node(l[2], scope(left, outer))}
	case "union", "except":
		s := &plan.SetOp{All: true, Left: b.node(l[1], outer), Right: b.node(l[2], outer)}
		if l[0] == "except" {
			s.Kind = plan.Except
		}
		for _, c := range s.Left.Columns() {
			s.Cols = append(s.Cols, b.column(c.Name, c.Type))
		}
		return s
	case "distinct":
		return &plan.Distinct{Input: b.node(l[1], outer)}
	case "sort":
		in := b.node(l[2], outer)
		return &plan.Sort{Input: in, Keys: []plan.SortKey{{Expr: b.expr(l[1], scope(in, outer)), NullsFirst: true}}}
	case "limit":
		n, _ := strconv.ParseInt(l[1].(string), 10, 64)
		return &plan.Limit{Input: b.node(l[2], outer), Count: n}
	case "recursive":
		r := &plan.Recursive{ID: 1, All: true, Anchor: b.node(l[1], outer)}
		for _, c := range r.Anchor.Columns() {
			r.Cols = append(r.Cols, b.column(c.Name, c.Type))
		}
		b.work = r.Cols
		r.Step = b.node(l[2], outer)
		return r
	case "worktable":
		w := &plan.WorkTable{ID: 1}
		for _, c := range b.work {
			w.Cols = append(w.Cols, b.column(c.Name, c.Type))
			b.alias[w.Cols[len(w.Cols)-1].ID] = "w"
		}
		return w
	case "foreign":
		f := &plan.Foreign{Reason: "test"}
		for _, x := range l[1:] {
			f.Children = append(f.Children, b.node(x, outer))
		}
		f.Cols = []plan.Column{b.column("f", plan.String)}
		return f
	}
	fail("no plan node %v", l[0])
	return nil
}

func (b *builder) keys(l list, in []plan.Column) []plan.SortKey {
	var out []plan.SortKey
	for _, x := range l {
		out = append(out, plan.SortKey{Expr: b.expr(x, in), NullsFirst: true})
	}
	return out
}

func (b *builder) windowItem(x list, in []plan.Column) plan.WindowItem {
	f, ok := plan.Lookup(x[1].(string))
	if !ok {
		fail("no function %v", x[1])
	}
	it := plan.WindowItem{Call: plan.AggCall{Func: f}, OrderBy: b.keys(x[4].(list), in)}
	for _, a := range x[2].(list) {
		it.Call.Args = append(it.Call.Args, b.expr(a, in))
	}
	for _, a := range x[3].(list) {
		it.PartitionBy = append(it.PartitionBy, b.expr(a, in))
	}
	t, err := f.Result(plan.Types(it.Call.Args))
	if err != nil {
		panic(err)
	}
	it.Column = b.column(x[0].(string), t)
	return it
}

var joinKinds = map[string]plan.JoinKind{
	"inner": plan.Inner, "left": plan.Left, "right": plan.Right, "full": plan.Full,
	"semi": plan.Semi, "anti": plan.Anti, "cross": plan.Cross,
}

func scope(n plan.Node, outer []plan.Column) []plan.Column {
	return append(slices.Clone(n.Columns()), outer...)
}

func (b *builder) items(x any, in []plan.Column) []plan.Item {
	var out []plan.Item
	for _, y := range x.(list) {
		z := y.(list)
		e := b.expr(z[1], in)
		out = append(out, plan.Item{Column: b.column(z[0].(string), e.Type()), Expr: e})
	}
	return out
}

var typeNames = map[string]arrow.DataType{
	"json": plan.JSON, "string": plan.String, "long": plan.Int64, "int": plan.Int32, "double": plan.Float64, "date": plan.Date, "boolean": plan.Bool,
}

func (b *builder) expr(x any, in []plan.Column) plan.Expr {
	if s, ok := x.(string); ok {
		return b.atom(s, in)
	}
	l := x.(list)
	switch l[0] {
	case "cast", "try_cast":
		return &plan.Cast{Operand: b.expr(l[1], in), Typ: typeNames[l[2].(string)], Try: l[0] == "try_cast"}
	case "exists":
		return &plan.Subquery{Kind: plan.ExistsSubquery, Plan: b.node(l[1], in)}
	case "in":
		return &plan.Subquery{Kind: plan.InSubquery, Operand: b.expr(l[1], in), Plan: b.node(l[2], in)}
	case "scalar":
		p := b.node(l[1], in)
		return &plan.Subquery{Kind: plan.ScalarSubquery, Plan: p, Typ: p.Columns()[0].Type}
	}
	args := make([]plan.Expr, len(l)-1)
	for i, a := range l[1:] {
		args[i] = b.expr(a, in)
	}
	switch l[0] {
	case "case":
		return &plan.Case{Whens: []plan.When{{Cond: args[0], Then: args[1]}}, Else: args[2], Typ: args[1].Type()}
	case "like":
		return &plan.Like{Operand: args[0], Pattern: args[1]}
	case "one-of":
		return &plan.In{Operand: args[0], List: args[1:]}
	}
	c, err := plan.NewCall(l[0].(string), args...)
	if err != nil {
		panic(err)
	}
	return c
}

func (b *builder) atom(s string, in []plan.Column) plan.Expr {
	if t, ok := strings.CutPrefix(s, "null:"); ok {
		return &plan.Literal{Typ: typeNames[t]}
	}
	if s[0] == '\'' {
		return &plan.Literal{Value: strings.Trim(s, "'"), Typ: plan.String}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return &plan.Literal{Value: n, Typ: plan.Int64}
	}
	alias, name, qualified := strings.Cut(s, ".")
	if !qualified {
		alias, name = "", s
	}
	if s[0] == '`' {
		qualified, name = false, strings.ReplaceAll(s[1:len(s)-1], "``", "`")
	}
	for _, c := range in {
		if c.Name == name && (!qualified || b.alias[c.ID] == alias) {
			return &plan.Ref{ID: c.ID, Typ: c.Type, Name: c.Name}
		}
	}
	panic(fault.New(fault.NoColumn, "no column %s", s))
}

// binder binds policy texts in the notation of the tests.
type binder struct {
	tables map[string]*plan.Table
	fail   error // what every text fails with
	calls  int
}

func (b *binder) bind(t *plan.Table, text string) (s *plan.Scan, e plan.Expr, err error) {
	b.calls++
	if b.fail != nil {
		return nil, nil, b.fail
	}
	defer recovered(&err)
	l, err := parseList(text)
	if err != nil {
		return nil, nil, err
	}
	if len(l) != 1 {
		return nil, nil, fmt.Errorf("%d expressions", len(l))
	}
	pb := newBuilder(b.tables)
	s = pb.scan(t.Name.Name, t.Name.Name)
	pb.definer = true
	return s, pb.expr(l[0], s.Columns()), nil
}

func (b *binder) Condition(_ context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error) {
	return b.bind(t, sql)
}

func (b *binder) Value(_ context.Context, t *plan.Table, sql string) (*plan.Scan, plan.Expr, error) {
	return b.bind(t, sql)
}

// The tables of the tests.
func testTables() map[string]*plan.Table {
	name := func(s string) plan.TableName {
		return plan.TableName{Catalog: "lake", Namespace: []string{"bank"}, Name: s}
	}
	street := plan.Field{ID: 7, Name: "street", Type: plan.String}
	zip := plan.Field{ID: 8, Name: "zip", Type: plan.Int32}
	lat := plan.Field{ID: 21, Name: "lat", Type: plan.Float64}
	at := func(fs ...plan.Field) *arrow.StructType {
		var out []arrow.Field
		for _, f := range fs {
			out = append(out, arrow.Field{Name: f.Name, Type: f.Type, Nullable: true})
		}
		return arrow.StructOf(out...)
	}
	geo := plan.Field{ID: 20, Name: "geo", Type: at(lat), Children: []plan.Field{lat}}
	people := &plan.Table{Name: name("people"), UUID: "u1", SnapshotID: 5, Version: "v1", Fields: []plan.Field{
		{ID: 1, Name: "id", Type: plan.Int64, Required: true},
		{ID: 2, Name: "name", Type: plan.String},
		{ID: 3, Name: "ssn", Type: plan.String},
		{ID: 4, Name: "region", Type: plan.String},
		{ID: 5, Name: "born", Type: plan.Date},
		{ID: 6, Name: "home", Type: at(street, zip, geo), Children: []plan.Field{street, zip, geo}},
		{ID: 9, Name: "tags", Type: arrow.ListOf(plan.String), Children: []plan.Field{{ID: 10, Name: "element", Type: plan.String}}},
		{ID: 11, Name: "a`.b", Type: plan.String},
	}}
	return map[string]*plan.Table{
		"people": people,
		"payments": {Name: name("payments"), UUID: "u2", SnapshotID: 6, Version: "v1", Fields: []plan.Field{
			{ID: 1, Name: "payer", Type: plan.Int64},
			{ID: 2, Name: "amount", Type: plan.Int64},
			{ID: 3, Name: "memo", Type: plan.String},
		}},
		"regions": {Name: name("regions"), UUID: "u3", SnapshotID: 7, Version: "v1", Fields: []plan.Field{
			{ID: 1, Name: "employee", Type: plan.String},
			{ID: 2, Name: "region", Type: plan.String},
		}},
		"snapshots": {Name: name("people"), UUID: "u1", SnapshotID: 5, Version: "v1", Metadata: "snapshots", Fields: []plan.Field{
			{ID: 1, Name: "summary", Type: plan.String},
		}},
	}
}

// world is the policies of a test.
type world struct {
	tables  map[string]*plan.Table
	rules   map[string]*policy.Restrictions
	options masks.Options
	binder  *binder
	bound   map[*plan.Table]*Bound
}

func newWorld() *world {
	w := &world{tables: testTables(), rules: map[string]*policy.Restrictions{}, bound: map[*plan.Table]*Bound{}}
	w.options.HashKey = []byte("test key")
	w.binder = &binder{tables: w.tables}
	for n := range w.tables {
		w.rules[n] = &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{}}
	}
	return w
}

// fieldID finds "people.home.street".
func (w *world) fieldID(path string) (*policy.Restrictions, int) {
	parts := strings.Split(path, ".")
	t, ok := w.tables[parts[0]]
	if !ok {
		fail("no table %s", parts[0])
	}
	fields, id := t.Fields, 0
	for _, p := range parts[1:] {
		i := slices.IndexFunc(fields, func(f plan.Field) bool { return f.Name == p })
		if i < 0 {
			n, err := strconv.Atoi(p)
			if err != nil {
				fail("no field %s", path)
			}
			return w.rules[parts[0]], n
		}
		id, fields = fields[i].ID, fields[i].Children
	}
	return w.rules[parts[0]], id
}

// directive reads one line of a test's policies; false means that it is none.
func (w *world) directive(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	target, text, _ := strings.Cut(rest, " ")
	switch verb {
	case "filter":
		r := w.rules[target]
		n := int64(len(r.Filters) + 1)
		r.Filters = append(r.Filters, policy.RowFilter{SQL: text, Origin: policy.Origin{Source: "ranger", Policy: fmt.Sprintf("filter %d", n), ID: n, Version: 1, Via: "group:staff"}})
	case "mask", "custom", "null", "fixed", "forbid":
		r, id := w.fieldID(target)
		rule := policy.ColumnRule{Kind: policy.Mask, Action: text, Origin: policy.Origin{Source: "ranger", Policy: "mask " + target, ID: int64(100 + id), Version: 2}}
		switch verb {
		case "custom":
			rule.Action, rule.SQL = masks.CustomSQL, text
		case "null":
			rule.Kind, rule.Action = policy.Nullify, text
		case "fixed":
			rule.Kind, rule.Action = policy.Fixed, text
		case "forbid":
			rule.Kind, rule.Action, rule.Why = policy.Forbid, "", text
		}
		if strings.HasPrefix(rule.Action, "iceberg:") {
			rule.Origin = policy.Origin{Source: "catalog", Policy: "read restrictions"}
		}
		r.Columns[id] = rule
	case "incomplete":
		w.rules[target].Complete = false
	case "refuse":
		w.rules[target].Refuse = text
	case "no-key":
		w.options.HashKey = nil
	case "outage":
		w.binder.fail = fault.New(fault.Unavailable, "catalog lake does not answer")
	default:
		return false
	}
	return true
}

func (w *world) prepare(t *plan.Table) (*Bound, error) {
	if b, ok := w.bound[t]; ok {
		return b, nil
	}
	var b *Bound
	var err error
	if t.Metadata == "" {
		b, err = Prepare(context.Background(), t, w.rules[t.Name.Name], w.binder, w.options)
	} else {
		// The restrictions of a metadata table are those of its table.
		var data *Bound
		if data, err = w.prepare(w.tables[t.Name.Name]); err == nil {
			b, err = PrepareMetadata(t, data)
		}
	}
	if err == nil {
		w.bound[t] = b
	}
	return b, err
}

var testSalt = []byte("0123456789abcdef")

func (w *world) govern(root plan.Node, ids *plan.IDs) (plan.Node, *Record, error) {
	return Govern(root, ids, func(s *plan.Scan) (*Bound, error) { return w.prepare(s.Table) }, func() []byte { return testSalt })
}
