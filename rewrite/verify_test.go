package rewrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// generator writes random plans in the notation of the tests.
type generator struct {
	*rand.Rand
	n int
}

func (g *generator) name(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

// relation is the text of a plan with the names of its columns. Every column can
// be compared with every other one: the notation does not check types.
func (g *generator) relation(depth int, outer []string) (string, []string) {
	if depth <= 0 || g.IntN(8) == 0 {
		return g.scan()
	}
	in, cols := g.relation(depth-1, outer)
	all := append(append([]string{}, cols...), outer...)
	switch g.IntN(11) {
	case 0, 1:
		return fmt.Sprintf("(filter %s %s)", g.condition(depth, all), in), cols
	case 2:
		return g.project(in, all, 1+g.IntN(3))
	case 3:
		k, n := g.name("k"), g.name("n")
		return fmt.Sprintf("(aggregate ((%s %s)) ((%s max %s)) %s)", k, g.pick(all), n, g.pick(all), in), []string{k, n}
	case 4:
		right, more := g.relation(depth-1, outer)
		both := append(append([]string{}, cols...), more...)
		kind := []string{"inner", "left", "right", "full", "semi", "anti"}[g.IntN(6)]
		text := fmt.Sprintf("(join %s %s %s %s)", kind, in, right, g.condition(0, append(both, outer...)))
		if kind == "semi" || kind == "anti" {
			return text, cols
		}
		return text, both
	case 5:
		right, more := g.relation(depth-1, all)
		return fmt.Sprintf("(lateral %s %s)", in, right), append(append([]string{}, cols...), more...)
	case 6:
		left, names := g.project(in, all, 2)
		other, cols := g.relation(depth-1, outer)
		right, _ := g.project(other, cols, 2)
		op := []string{"union", "except"}[g.IntN(2)]
		// A set operation has columns of its own under the names of the left side.
		return fmt.Sprintf("(%s %s %s)", op, left, right), names
	case 7:
		return fmt.Sprintf("(distinct %s)", in), cols
	case 8:
		return fmt.Sprintf("(sort %s %s)", g.pick(all), in), cols
	case 9:
		return fmt.Sprintf("(limit %d %s)", g.IntN(9), in), cols
	}
	v := g.name("v")
	sub, _ := g.relation(depth-1, all)
	return fmt.Sprintf("(project ((%s (scalar (limit 1 %s))) (%s %s)) %s)", v, sub, v+"x", g.pick(all), in), []string{v, v + "x"}
}

func (g *generator) scan() (string, []string) {
	a := g.name("t")
	table, names := "people", []string{"id", "name", "ssn", "region", "born"}
	if g.IntN(3) == 0 {
		table, names = "payments", []string{"payer", "amount", "memo"}
	}
	cols := make([]string, len(names))
	for i, n := range names {
		cols[i] = a + "." + n
	}
	return fmt.Sprintf("(scan %s %s)", table, a), cols
}

func (g *generator) project(in string, cols []string, n int) (string, []string) {
	items, names := make([]string, n), make([]string, n)
	for i := range items {
		names[i] = g.name("c")
		items[i] = fmt.Sprintf("(%s %s)", names[i], g.pick(cols))
	}
	return fmt.Sprintf("(project (%s) %s)", strings.Join(items, " "), in), names
}

func (g *generator) pick(cols []string) string { return cols[g.IntN(len(cols))] }

func (g *generator) condition(depth int, cols []string) string {
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("(and %s %s)", g.condition(depth-1, cols), g.condition(depth-1, cols))
	case 1:
		return fmt.Sprintf("(eq %s 'x')", g.pick(cols))
	case 2:
		return fmt.Sprintf("(eq (cast %s long) 1)", g.pick(cols))
	case 3:
		if depth > 0 {
			sub, _ := g.relation(depth-1, cols)
			return fmt.Sprintf("(exists %s)", sub)
		}
	case 4:
		if depth > 0 {
			sub, inner := g.relation(depth-1, cols)
			one, _ := g.project(sub, inner, 1)
			return fmt.Sprintf("(in %s %s)", g.pick(cols), one)
		}
	}
	return fmt.Sprintf("(eq %s %s)", g.pick(cols), g.pick(cols))
}

// randomWorld restricts some of people and payments. Row filters never name
// people.ssn, so that nothing but a user's condition could prune by it.
func randomWorld(r *rand.Rand) *world {
	w := newWorld()
	for _, line := range []string{
		"mask people.ssn MASK_SHOW_LAST_4",
		"custom people.name (concat region 'x')",
		"null people.id",
		"mask people.born iceberg:truncate-to-month",
		"filter people (eq region 'EU')",
		"filter people (exists (filter (eq regions.region people.region) (scan regions)))",
		"filter people (in region (project ((r region)) (scan regions)))",
		"filter payments (lt (add amount 1) 5)",
		"mask payments.amount iceberg:sha-256-query-local",
	} {
		if r.IntN(2) == 0 {
			w.directive(line)
		}
	}
	return w
}

// TestGovernedPlansVerify: for random plans under random policies the governed
// plan keeps the columns of the plan, guards every scan and passes Verify, before
// and after Pushdown; and every way of taking protection away fails Verify.
func TestGovernedPlansVerify(t *testing.T) {
	broken := map[string]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := &generator{Rand: r}
		text, _ := g.relation(1+r.IntN(4), nil)
		w := randomWorld(r)
		b := newBuilder(w.tables)
		root, err := b.plan(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		governed, _, err := w.govern(root, &b.ids)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if err := Verify(governed); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, plan.Format(governed))
		}
		pushed := Pushdown(governed)
		if err := Verify(pushed); err != nil {
			t.Fatalf("seed %d after pushdown: %v\n%s", seed, err, plan.Format(pushed))
		}
		sameColumns(t, seed, root, governed)
		if raw, guarded := count[*plan.Scan](root), count[*plan.Guard](governed); raw != guarded {
			t.Errorf("seed %d: %d scans, %d guards", seed, raw, guarded)
		}
		noRawPrune(t, seed, pushed)
		for _, n := range []plan.Node{root, governed, pushed} {
			if id := dangling(n, nil); id != 0 {
				t.Fatalf("seed %d: column %d is referred to where nothing yields it\n%s", seed, id, plan.Format(n))
			}
		}
		if err := Verify(root); fault.KindOf(err) != fault.Internal {
			t.Fatalf("seed %d: the plan verifies before it is governed: %v", seed, err)
		}
		for name, breakIt := range damages {
			for _, from := range []plan.Node{governed, pushed} {
				for n := range count[*plan.Guard](from) {
					damaged := replaceGuard(t, from, n, breakIt)
					if damaged == nil {
						continue // this guard has nothing of that kind
					}
					broken[name]++
					if Verify(damaged) == nil {
						t.Fatalf("seed %d: %s of guard %d verifies\n%s", seed, name, n, plan.Format(damaged))
					}
				}
			}
		}
		if damaged := nameRawColumn(t, governed); damaged != nil {
			broken["raw reference"]++
			if Verify(damaged) == nil {
				t.Fatalf("seed %d: a reference to a raw column verifies\n%s", seed, plan.Format(damaged))
			}
		}
	}
	for name := range damages {
		if broken[name] < 20 {
			t.Errorf("%s was tried %d times", name, broken[name])
		}
	}
	if broken["raw reference"] < 20 {
		t.Errorf("raw references were tried %d times", broken["raw reference"])
	}
}

// damages take protection away from one guard; nil: there is none of that kind.
var damages = map[string]func(*plan.Guard) plan.Node{
	"removing it":            func(g *plan.Guard) plan.Node { return g.Input },
	"the scan in its place":  func(g *plan.Guard) plan.Node { return scanOf(g) },
	"the scan alone in it":   func(g *plan.Guard) plan.Node { return g.WithInputs([]plan.Node{scanOf(g)}) },
	"a second guard in it":   func(g *plan.Guard) plan.Node { return g.WithInputs([]plan.Node{g}) },
	"another table's name":   func(g *plan.Guard) plan.Node { c := *g; t := *g.Table; c.Table = &t; return &c },
	"a policy's scan":        func(g *plan.Guard) plan.Node { return withScan(g, func(s *plan.Scan) { s.Definer = true }) },
	"the raw id as its own":  rawIDs,
	"dropping the filter":    dropFilter,
	"forgetting the masks":   func(g *plan.Guard) plan.Node { return marks(g, nil) },
	"a user's table in it":   userTable,
	"a sub-query as mask":    subqueryMask,
	"a mask by row":          maskByRow,
	"a column of elsewhere":  foreignColumn,
	"another type of masked": otherType,
}

func maskByRow(g *plan.Guard) plan.Node {
	return withItems(g, func(_ int, it *plan.Item) bool {
		if !g.Masked[it.ID] {
			return false
		}
		it.Expr = &plan.RowCall{Name: "f", Operands: []plan.Expr{it.Expr}, Typ: it.Expr.Type()}
		return true
	})
}

func projectOf(g *plan.Guard) *plan.Project { return g.Input.(*plan.Project) }

func scanOf(g *plan.Guard) *plan.Scan {
	in := projectOf(g).Input
	if f, ok := in.(*plan.Filter); ok {
		in = f.Input
	}
	return in.(*plan.Scan)
}

func withScan(g *plan.Guard, change func(*plan.Scan)) plan.Node {
	s := *scanOf(g)
	change(&s)
	var in plan.Node = &s
	if f, ok := projectOf(g).Input.(*plan.Filter); ok {
		in = &plan.Filter{Input: in, Cond: f.Cond}
	}
	return g.WithInputs([]plan.Node{&plan.Project{Input: in, Items: projectOf(g).Items}})
}

func withItems(g *plan.Guard, change func(i int, it *plan.Item) bool) plan.Node {
	p := *projectOf(g)
	p.Items = append([]plan.Item{}, p.Items...)
	changed := false
	for i := range p.Items {
		changed = change(i, &p.Items[i]) || changed
	}
	if !changed {
		return nil
	}
	return g.WithInputs([]plan.Node{&p})
}

func rawIDs(g *plan.Guard) plan.Node {
	return withItems(g, func(_ int, it *plan.Item) bool {
		r, ok := it.Expr.(*plan.Ref)
		if ok {
			it.ID = r.ID
		}
		return ok
	})
}

func dropFilter(g *plan.Guard) plan.Node {
	f, ok := projectOf(g).Input.(*plan.Filter)
	if !ok {
		return nil
	}
	return g.WithInputs([]plan.Node{&plan.Project{Input: f.Input, Items: projectOf(g).Items}})
}

func marks(g *plan.Guard, masked map[plan.ColumnID]bool) plan.Node {
	if len(g.Masked) == 0 {
		return nil
	}
	c := *g
	c.Masked = masked
	return &c
}

// userTable takes the policy's rights from a table that the filter reads.
func userTable(g *plan.Guard) plan.Node {
	f, ok := projectOf(g).Input.(*plan.Filter)
	if !ok {
		return nil
	}
	changed := false
	cond, _ := plan.TransformExpr(f.Cond, func(e plan.Expr) (plan.Expr, error) {
		s, ok := e.(*plan.Subquery)
		if !ok {
			return e, nil
		}
		c := *s
		c.Plan, _ = plan.Transform(s.Plan, func(n plan.Node) (plan.Node, error) {
			if s, ok := n.(*plan.Scan); ok {
				user := *s
				user.Definer = false
				changed = true
				return &user, nil
			}
			return n, nil
		})
		return &c, nil
	})
	if !changed {
		return nil
	}
	return g.WithInputs([]plan.Node{&plan.Project{Input: &plan.Filter{Input: f.Input, Cond: cond}, Items: projectOf(g).Items}})
}

func subqueryMask(g *plan.Guard) plan.Node {
	return withItems(g, func(_ int, it *plan.Item) bool {
		if !g.Masked[it.ID] {
			return false
		}
		s := *scanOf(g)
		s.Definer = true
		s.Cols = []plan.ScanColumn{{Column: plan.Column{ID: 90001, Type: it.Type}, FieldID: 1}}
		it.Expr = &plan.Subquery{Kind: plan.ScalarSubquery, Plan: &s, Typ: it.Type}
		return true
	})
}

func foreignColumn(g *plan.Guard) plan.Node {
	return withItems(g, func(_ int, it *plan.Item) bool {
		it.Expr = &plan.Ref{ID: 90002, Typ: it.Type}
		return true
	})
}

func otherType(g *plan.Guard) plan.Node {
	return withItems(g, func(_ int, it *plan.Item) bool {
		if !g.Masked[it.ID] {
			return false
		}
		it.Expr = &plan.Literal{Typ: plan.JSON}
		return true
	})
}

// replaceGuard replaces the guard number at, or gives nil when there is nothing
// to damage.
func replaceGuard(t *testing.T, root plan.Node, at int, by func(*plan.Guard) plan.Node) plan.Node {
	t.Helper()
	n, damaged := 0, false
	out, err := plan.Transform(root, func(x plan.Node) (plan.Node, error) {
		g, ok := x.(*plan.Guard)
		if !ok {
			return x, nil
		}
		n++
		if n-1 != at {
			return x, nil
		}
		if r := by(g); r != nil {
			damaged = true
			return r, nil
		}
		return x, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !damaged {
		return nil
	}
	return out
}

// nameRawColumn lets a condition above everything name a raw column.
func nameRawColumn(t *testing.T, root plan.Node) plan.Node {
	t.Helper()
	var raw *plan.Ref
	plan.Walk(root, func(n plan.Node) bool {
		if g, ok := n.(*plan.Guard); ok {
			if cols := scanOf(g).Cols; len(cols) > 0 {
				raw = &plan.Ref{ID: cols[0].ID, Typ: cols[0].Type}
			}
			return false
		}
		return true
	})
	if raw == nil {
		return nil
	}
	return &plan.Filter{Input: root, Cond: plan.MustCall("is_null", raw)}
}

func count[T plan.Node](root plan.Node) int {
	n := 0
	plan.Walk(root, func(x plan.Node) bool {
		if _, ok := x.(T); ok {
			n++
		}
		return true
	})
	return n
}

// dangling finds a reference to a column that is neither of the inputs of its
// node nor of an enclosing query; 0 when there is none.
func dangling(n plan.Node, outer []plan.Column) plan.ColumnID {
	in := n.Inputs()
	visible := append([]plan.Column{}, outer...)
	for i, c := range in {
		below := outer
		if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
			below = append(append([]plan.Column{}, outer...), j.Left.Columns()...)
		}
		if id := dangling(c, below); id != 0 {
			return id
		}
		visible = append(visible, c.Columns()...)
	}
	if s, ok := n.(*plan.Scan); ok {
		visible = append(visible, s.Columns()...) // Prune
	}
	var bad plan.ColumnID
	for _, e := range n.Exprs() {
		plan.WalkExpr(e, func(e plan.Expr) bool {
			switch e := e.(type) {
			case *plan.Ref:
				found := false
				for _, c := range visible {
					found = found || c.ID == e.ID
				}
				if !found {
					bad = e.ID
				}
			case *plan.Subquery:
				if id := dangling(e.Plan, visible); id != 0 {
					bad = id
				}
			}
			return bad == 0
		})
	}
	return bad
}

func sameColumns(t *testing.T, seed uint64, a, b plan.Node) {
	t.Helper()
	x, y := a.Columns(), b.Columns()
	if len(x) != len(y) {
		t.Fatalf("seed %d: %d columns became %d", seed, len(x), len(y))
	}
	for i := range x {
		if x[i].ID != y[i].ID || x[i].Name != y[i].Name || x[i].Type != y[i].Type {
			t.Fatalf("seed %d: column %v became %v", seed, x[i], y[i])
		}
	}
}

// noRawPrune: no scan is pruned by the raw value of a masked column that no row
// filter names.
func noRawPrune(t *testing.T, seed uint64, root plan.Node) {
	t.Helper()
	plan.Walk(root, func(n plan.Node) bool {
		g, ok := n.(*plan.Guard)
		if !ok {
			return true
		}
		s := scanOf(g)
		if s.Prune == nil {
			return true
		}
		hidden := map[plan.ColumnID]bool{}
		for _, it := range projectOf(g).Items {
			if !g.Masked[it.ID] || it.Name == "region" || it.Name == "amount" {
				continue
			}
			for _, c := range s.Cols {
				if c.Name == it.Name {
					hidden[c.ID] = true
				}
			}
		}
		for _, id := range plan.Refs(s.Prune) {
			if hidden[id] {
				t.Errorf("seed %d: a condition on a masked column prunes\n%s", seed, plan.Format(g))
			}
		}
		return true
	})
}

// TestVerifyScanEverywhere: a scan is found wherever a plan can hold one.
func TestVerifyScanEverywhere(t *testing.T) {
	for _, text := range []string{
		"(scan people)",
		"(definer people)",
		"(filter (exists (scan people)) (values))",
		"(filter (exists (filter (exists (scan people)) (values))) (values))",
		"(project ((a (scalar (project ((s ssn)) (scan people))))) (values))",
		"(join cross (values) (scan people))",
		"(lateral (values) (scan people))",
		"(union (values) (project ((a id)) (scan people)))",
		"(recursive (values) (project ((a id)) (scan people)))",
		"(recursive (project ((a id)) (scan people)) (worktable))",
		"(foreign (values) (scan people))",
		"(aggregate () ((n count)) (scan people))",
		"(aggregate () ((n max (scalar (project ((s ssn)) (scan people))))) (values))",
		"(sort (exists (scan people)) (values))",
		"(join inner (values) (values) (exists (scan people)))",
	} {
		w := newWorld()
		b := newBuilder(w.tables)
		root, err := b.plan(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(root); !fault.Is(err, fault.Internal) {
			t.Errorf("%s verifies: %v", text, err)
		}
		if strings.Contains(text, "definer") {
			continue
		}
		governed, _, err := w.govern(root, &b.ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(governed); err != nil {
			t.Errorf("%s is governed and does not verify: %v", text, err)
		}
	}
}

// TestGovernSalt: a statement without a salt cannot run a mask that
// needs one, and two statements get different salts.
func TestGovernSalt(t *testing.T) {
	w := newWorld()
	w.directive("mask people.ssn iceberg:sha-256-query-local")
	govern := func(salt func() []byte) (string, error) {
		b := newBuilder(w.tables)
		root, err := b.plan("(project ((s ssn)) (scan people))")
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := Govern(root, &b.ids, func(s *plan.Scan) (*Bound, error) { return w.prepare(s.Table) }, salt)
		if err != nil {
			return "", err
		}
		var found string
		plan.Walk(n, func(n plan.Node) bool {
			for _, e := range n.Exprs() {
				plan.WalkExpr(e, func(e plan.Expr) bool {
					if l, ok := e.(*plan.Literal); ok && l.Typ == plan.Binary {
						found = string(l.Value.([]byte))
					}
					return true
				})
			}
			return true
		})
		return found, nil
	}
	for _, want := range []string{"0123456789abcdef", "fedcba9876543210"} {
		got, err := govern(func() []byte { return []byte(want) })
		if err != nil || got != want {
			t.Errorf("salt %q: got %q, %v", want, got, err)
		}
	}
	for _, salt := range []func() []byte{nil, func() []byte { return nil }, func() []byte { return []byte("short") }} {
		if _, err := govern(salt); !fault.Is(err, fault.Internal) {
			t.Errorf("a mask was made without its salt: %v", err)
		}
	}
}

// TestGovernOtherTable: restrictions of another table, version or snapshot are
// not applied to a scan.
func TestGovernOtherTable(t *testing.T) {
	w := newWorld()
	people := w.tables["people"]
	bound, err := w.prepare(people)
	if err != nil {
		t.Fatal(err)
	}
	try := func(change func(*plan.Table)) error {
		other := *people
		change(&other)
		w.tables["people"] = &other
		b := newBuilder(w.tables)
		root, err := b.plan("(scan people)")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Govern(root, &b.ids, func(*plan.Scan) (*Bound, error) { return bound, nil }, nil)
		return err
	}
	if err := try(func(*plan.Table) {}); err != nil {
		t.Errorf("an equal table that was loaded again: %v", err)
	}
	for name, change := range map[string]func(*plan.Table){
		"name":     func(t *plan.Table) { t.Name.Name = "other" },
		"uuid":     func(t *plan.Table) { t.UUID = "other" },
		"version":  func(t *plan.Table) { t.Version = "other" },
		"schema":   func(t *plan.Table) { t.SchemaID = 9 },
		"snapshot": func(t *plan.Table) { t.SnapshotID = 9 },
		"metadata": func(t *plan.Table) { t.Metadata = "files" },
	} {
		if err := try(change); !fault.Is(err, fault.Internal) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	w.tables["people"] = people
	b := newBuilder(w.tables)
	root, _ := b.plan("(scan people)")
	if _, _, err := Govern(root, &b.ids, func(*plan.Scan) (*Bound, error) { return nil, nil }, nil); err == nil {
		t.Error("no restrictions at all are taken for none")
	}
	want := fault.New(fault.PolicyStale, "stale")
	if _, _, err := Govern(root, &b.ids, func(*plan.Scan) (*Bound, error) { return nil, want }, nil); !fault.Is(err, fault.PolicyStale) {
		t.Errorf("the error of the lookup: %v", err)
	}
}

// TestGovernTwice: a governed plan is not governed again.
func TestGovernTwice(t *testing.T) {
	w := newWorld()
	b := newBuilder(w.tables)
	root, _ := b.plan("(scan people)")
	governed, _, err := w.govern(root, &b.ids)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.govern(governed, &b.ids); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
}

// TestGovernDropsPrune: pruning that was there before masks were known is not
// kept.
func TestGovernDropsPrune(t *testing.T) {
	w := newWorld()
	w.directive("mask people.ssn MASK")
	b := newBuilder(w.tables)
	s := b.scan("people", "people")
	s.Prune = plan.MustCall("eq", &plan.Ref{ID: s.Cols[2].ID, Typ: plan.String}, &plan.Literal{Value: "1", Typ: plan.String})
	governed, _, err := w.govern(s, &b.ids)
	if err != nil {
		t.Fatal(err)
	}
	if text := plan.Format(governed); strings.Contains(text, "prune") {
		t.Error(text)
	}
}

// TestMetadataNeedsItsTable: the restrictions of a metadata table cannot be made
// from an answer about itself, whose fields no rule names, nor from another
// table's.
func TestMetadataNeedsItsTable(t *testing.T) {
	w := newWorld()
	meta := w.tables["snapshots"]
	whole := &policy.Restrictions{Complete: true}
	if _, err := Prepare(context.Background(), meta, whole, w.binder, w.options); !fault.Is(err, fault.Internal) {
		t.Errorf("prepared from its own restrictions: %v", err)
	}
	prepare := func(t2 *plan.Table, r *policy.Restrictions) *Bound {
		b, err := Prepare(context.Background(), t2, r, w.binder, w.options)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	free := prepare(w.tables["people"], whole)
	masked := prepare(w.tables["people"], &policy.Restrictions{Complete: true, Columns: map[int]policy.ColumnRule{3: {Kind: policy.Mask, Action: masks.Redact}}})
	other := prepare(w.tables["payments"], whole)
	again := *w.tables["people"]
	again.UUID = "dropped and made again"
	for name, data := range map[string][]*Bound{"nothing": nil, "no answer": {nil}, "another table": {other}, "a table of the same name": {prepare(&again, whole)}} {
		if _, err := PrepareMetadata(meta, data...); !fault.Is(err, fault.Internal) {
			t.Errorf("made from %s: %v", name, err)
		}
	}
	if _, err := PrepareMetadata(w.tables["people"], free); !fault.Is(err, fault.Internal) {
		t.Errorf("data is not metadata: %v", err)
	}
	// One masked version is enough to refuse; the control is open in all.
	if _, err := PrepareMetadata(meta, free, masked); !fault.Is(err, fault.Denied) {
		t.Errorf("masked in one version: %v", err)
	}
	if b, err := PrepareMetadata(meta, free, free); err != nil || !b.Record().Unrestricted || len(b.Withheld()) != 0 {
		t.Errorf("open in both versions: %v", err)
	}
}
