package rewrite

import (
	"slices"

	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
)

// Govern puts a Guard around every scan of a statement, wherever it stands:
// below joins, set operations, recursion and row-executor pieces, and in the
// plans of sub-queries. ids are those of the statement; lookup gives the bound
// restrictions of a scan's table; salt the salt of the statement, asked for only
// when a mask needs it.
//
// A guard yields only the columns that the statement refers to, under the ids of
// the scan, so that nothing above it changes. A Scan or Project of the result may
// have no columns at all (count(*)): it yields rows all the same.
//
// It fails with fault.Withheld when the statement refers to a withheld column,
// and with whatever lookup fails with.
func Govern(root plan.Node, ids *plan.IDs, lookup func(*plan.Scan) (*Bound, error), salt func() []byte) (plan.Node, *Record, error) {
	g := &governor{ids: ids, lookup: lookup, salt: salt}
	return g.govern(root)
}

func (g *governor) govern(root plan.Node) (plan.Node, *Record, error) {
	g.used, g.record, g.tables = usedColumns(root), &Record{}, map[*Bound]int{}
	g.read = &g.used.live
	if p, ok := root.(*plan.Project); ok && len(g.kept) > 0 {
		shown := slices.DeleteFunc(slices.Clone(p.Items), func(it plan.Item) bool {
			for _, id := range g.kept {
				if id == it.ID {
					return true
				}
			}
			return false
		})
		g.read = &usedColumns(&plan.Project{Input: p.Input, Items: shown}).live
	}
	// Transform goes into sub-queries, where row-engine rewriters have missed scans.
	out, err := plan.Transform(root, g.node)
	if err != nil {
		return nil, nil, err
	}
	for i := range g.record.Tables {
		t := &g.record.Tables[i]
		slices.Sort(t.Used)
		t.Used = slices.Compact(t.Used)
	}
	return out, g.record, nil
}

type governor struct {
	ids    *plan.IDs
	lookup func(*plan.Scan) (*Bound, error)
	salt   func() []byte
	used   *usage
	// kept are columns of a statement that changes rows which the user neither names
	// nor sees; read are the columns that reach anything else, for the record.
	kept   map[int]plan.ColumnID
	read   *columnSet
	record *Record
	tables map[*Bound]int // index in record
	// target is the table whose rows the statement changes: of its scans the place
	// of a row may be read. nil in a query.
	target *plan.Table
}

func (g *governor) node(n plan.Node) (plan.Node, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return g.guard(n)
	case *plan.Guard:
		// Only this package makes guards; one from elsewhere may hold anything.
		return nil, fault.New(fault.Internal, "the plan is governed already")
	case *plan.Project:
		return g.trim(n), nil
	}
	return n, nil
}

// trim drops the items that nothing reads: the guards below do not yield their
// columns.
func (g *governor) trim(p *plan.Project) plan.Node {
	dead := func(it plan.Item) bool { return !g.used.live.has(it.ID) }
	if !slices.ContainsFunc(p.Items, dead) {
		return p
	}
	return &plan.Project{Input: p.Input, Items: slices.DeleteFunc(slices.Clone(p.Items), dead)}
}

// guard is Guard(Project(masks, Filter(row filters, Scan))).
func (g *governor) guard(s *plan.Scan) (plan.Node, error) {
	if s.Definer || s.Table == nil {
		return nil, fault.New(fault.Internal, "a table of a policy stands in the statement")
	}
	b, err := g.lookup(s)
	if err != nil {
		return nil, err
	}
	// The same name can be another table by now, and another snapshot has another
	// schema: field ids would mean other columns.
	if b == nil || !sameTable(b.table, s.Table) {
		return nil, fault.New(fault.Internal, "the restrictions of table '%s' are those of another table or version", s.Table.Name)
	}
	n := 0
	for i := range s.Cols {
		if g.used.live.has(s.Cols[i].ID) {
			n++
		}
	}
	r := &rawColumns{ids: g.ids, cols: make([]plan.ScanColumn, 0, n+4)}
	items := make([]plan.Item, 0, n)
	fields := make([]int, 0, n)
	// One block for all references: there are at most as many as columns.
	refs := make([]plan.Ref, 0, n)
	var masked map[plan.ColumnID]bool
	var custom []*column // of the items in customized
	var customized []int
	for i := range s.Cols {
		c := &s.Cols[i]
		virtual := plan.IsVirtual(c.FieldID)
		if virtual && !g.placed(s, c) {
			return nil, fault.New(fault.Internal, "the plan reads where the rows of table '%s' lie", s.Table.Name)
		}
		live := g.used.live.has(c.ID)
		// Naming a withheld column is refused even where its value is not needed.
		if _, ok := b.withheld[c.FieldID]; ok && (live || g.used.named.has(c.ID)) {
			return nil, fault.New(fault.Withheld, "column '%s' of table '%s' is withheld: a policy on it cannot be applied; leave it out or ask an administrator", c.Name, s.Table.Name)
		}
		if !live {
			continue
		}
		if !virtual && g.read.has(c.ID) {
			fields = append(fields, c.FieldID)
		}
		items = append(items, plan.Item{Column: c.Column})
		item := &items[len(items)-1]
		rule := b.columns[c.FieldID]
		if rule == nil || (rule.custom == nil && !rule.constant) {
			refs = append(refs, plan.Ref{ID: r.add(c), Typ: c.Type, Name: c.Name})
			item.Expr = &refs[len(refs)-1]
		}
		if rule == nil {
			continue
		}
		// Most masks can give NULL, also for a required column.
		item.Nullable = true
		if masked == nil {
			masked = map[plan.ColumnID]bool{}
		}
		masked[c.ID] = true
		if rule.custom != nil {
			custom, customized = append(custom, rule), append(customized, len(items)-1)
			continue
		}
		if item.Expr, err = g.mask(rule, item.Expr); err != nil {
			return nil, err
		}
	}
	// After all other columns: most of what policy texts read is among them.
	for i, rule := range custom {
		items[customized[i]].Expr = rule.custom.instantiate(g.ids, r.find)
	}
	conditions := make([]plan.Expr, len(b.filters))
	for i, f := range b.filters {
		conditions[i] = f.instantiate(g.ids, r.find)
	}
	g.note(b, fields)
	// Prune of the statement's scan is dropped: whoever set it did not know what
	// is masked.
	var in plan.Node = &plan.Scan{Table: s.Table, Cols: r.cols}
	if len(conditions) > 0 {
		in = &plan.Filter{Input: in, Cond: conjunction(conditions)}
	}
	return &plan.Guard{
		Input: &plan.Project{Input: in, Items: items},
		Table: s.Table, Masked: masked, Filtered: len(conditions) > 0,
	}, nil
}

// placed reports whether a scan may read the virtual column: the place of a row of
// the target.
func (g *governor) placed(s *plan.Scan, c *plan.ScanColumn) bool {
	return s.Table == g.target && (c.FieldID == plan.FileField || c.FieldID == plan.PositionField)
}

func (g *governor) mask(c *column, raw plan.Expr) (plan.Expr, error) {
	if c.salted == nil {
		return c.mask(raw), nil
	}
	// Bound is shared between statements and the salt is not.
	var salt []byte
	if g.salt != nil {
		salt = g.salt()
	}
	m, err := c.salted(salt)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a mask lacks its salt of %d bytes", masks.MinSalt)
	}
	return m(raw), nil
}

// note adds a use of the table to the record.
func (g *governor) note(b *Bound, fields []int) {
	// Bound stands for the table and snapshot: a self-join is one entry, the same
	// table at two snapshots is two.
	i, ok := g.tables[b]
	if !ok {
		i = len(g.record.Tables)
		g.tables[b] = i
		g.record.Tables = append(g.record.Tables, b.record)
		g.record.Tables[i].Used = fields
		return
	}
	t := &g.record.Tables[i]
	t.Used = append(t.Used, fields...)
}

// rawColumns collects the columns of the scan below a guard.
type rawColumns struct {
	ids  *plan.IDs
	cols []plan.ScanColumn
}

// add adds a column under a fresh id.
func (r *rawColumns) add(c *plan.ScanColumn) plan.ColumnID {
	r.cols = append(r.cols, *c)
	last := &r.cols[len(r.cols)-1]
	last.ID = r.ids.New()
	return last.ID
}

// find is the raw column of the field of c, added when it is not there yet.
func (r *rawColumns) find(c plan.ScanColumn) plan.ColumnID {
	for i := range r.cols {
		if r.cols[i].FieldID == c.FieldID {
			return r.cols[i].ID
		}
	}
	return r.add(&c)
}

// sameTable reports whether restrictions bound to a hold for b: the same version
// of the same table with the same schema.
func sameTable(a, b *plan.Table) bool {
	return a == b || (a.Name.Key() == b.Name.Key() && a.UUID == b.UUID && a.Version == b.Version &&
		a.SchemaID == b.SchemaID && a.SnapshotID == b.SnapshotID && a.Metadata == b.Metadata)
}

func conjunction(list []plan.Expr) plan.Expr {
	if len(list) == 1 {
		return list[0]
	}
	return plan.MustCall("and", list...)
}

// columnSet is a set of column ids. Ids of a statement are dense.
type columnSet []bool

func (s columnSet) has(id plan.ColumnID) bool { return int(id) < len(s) && s[id] }

func (s *columnSet) add(id plan.ColumnID) {
	for int(id) >= len(*s) {
		*s = append(*s, make([]bool, max(64, len(*s)))...)
	}
	(*s)[id] = true
}

// usage is what a plan refers to: named holds every column that an expression
// names; live those that reach a result, a condition or an order. A column that
// only a dropped item of a Project names is not live. The binder names every
// column of a table with nested ones there, to make JSON of those: there a column is
// named when what is made of it is.
type usage struct{ named, live columnSet }

func usedColumns(root plan.Node) *usage {
	u := &usage{}
	u.whole(root)
	u.node(root)
	return u
}

// whole marks all columns of a plan whose consumer takes them by position.
func (u *usage) whole(n plan.Node) {
	for _, c := range n.Columns() {
		u.live.add(c.ID)
	}
}

// node visits consumers before what they consume: the expressions of a node with
// their sub-queries, then its inputs, the right one first because a lateral right
// side consumes columns of the left.
func (u *usage) node(n plan.Node) {
	in := n.Inputs()
	switch n := n.(type) {
	case *plan.Project:
		shown := showsTable(n)
		for i := range n.Items {
			it := &n.Items[i]
			if shown && !u.named.has(it.ID) && !u.live.has(it.ID) {
				continue
			}
			// A sub-query is kept, because it may fail for having two rows and
			// because the tables that it reads are on record.
			if !u.live.has(it.ID) && hasSubquery(it.Expr) {
				u.live.add(it.ID)
			}
			u.expr(it.Expr, u.live.has(it.ID))
		}
	case *plan.SetOp, *plan.Recursive, *plan.Foreign, *plan.Distinct:
		for _, c := range in {
			u.whole(c)
		}
	default:
		for _, e := range n.Exprs() {
			u.expr(e, true)
		}
	}
	for i := len(in) - 1; i >= 0; i-- {
		u.node(in[i])
	}
}

func (u *usage) expr(e plan.Expr, live bool) {
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Ref:
			u.named.add(e.ID)
			if live {
				u.live.add(e.ID)
			}
		case *plan.Subquery:
			// EXISTS takes rows only, whatever their columns are.
			if e.Kind != plan.ExistsSubquery && live {
				u.whole(e.Plan)
			}
			u.node(e.Plan)
		}
		return true
	})
}

// showsTable reports whether a Project is that which the binder puts above a table with
// nested columns: all columns in their order, the nested ones as JSON. A statement's own
// Project stands above it.
func showsTable(p *plan.Project) bool {
	s, ok := p.Input.(*plan.Scan)
	if !ok || len(p.Items) != len(s.Cols) {
		return false
	}
	nested := false
	for i, it := range p.Items {
		e := it.Expr
		if c, ok := e.(*plan.Call); ok && c.Func.Name == "to_json" && len(c.Operands) == 1 {
			e, nested = c.Operands[0], true
		}
		if r, ok := e.(*plan.Ref); !ok || r.ID != s.Cols[i].ID {
			return false
		}
	}
	return nested
}

func hasSubquery(e plan.Expr) bool {
	found := false
	plan.WalkExpr(e, func(e plan.Expr) bool {
		_, ok := e.(*plan.Subquery)
		found = found || ok
		return !found
	})
	return found
}
