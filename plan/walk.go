package plan

import "github.com/apache/arrow-go/v18/arrow"

// Walk visits n and everything below it, including the plans inside
// expressions, parents first. visit returns false to leave out what is below.
func Walk(n Node, visit func(Node) bool) {
	if !visit(n) {
		return
	}
	for _, e := range n.Exprs() {
		WalkExpr(e, func(e Expr) bool {
			if s, ok := e.(*Subquery); ok {
				Walk(s.Plan, visit)
			}
			return true
		})
	}
	for _, in := range n.Inputs() {
		Walk(in, visit)
	}
}

// WalkExpr visits e and its sub-expressions, parents first, but not the plans of
// sub-queries. visit returns false to leave out what is below.
func WalkExpr(e Expr, visit func(Expr) bool) {
	if !visit(e) {
		return
	}
	for _, a := range e.Args() {
		WalkExpr(a, visit)
	}
}

// Transform rebuilds n bottom-up, including the plans inside expressions: f gets
// each node after what is below it was transformed. What does not change is
// shared with n.
func Transform(n Node, f func(Node) (Node, error)) (Node, error) {
	in := n.Inputs()
	out := make([]Node, len(in))
	changed := false
	for i, c := range in {
		t, err := Transform(c, f)
		if err != nil {
			return nil, err
		}
		out[i] = t
		changed = changed || t != c
	}
	if changed {
		n = n.WithInputs(out)
	}
	n, err := MapExprs(n, func(e Expr) (Expr, error) {
		s, ok := e.(*Subquery)
		if !ok {
			return e, nil
		}
		p, err := Transform(s.Plan, f)
		if err != nil || p == s.Plan {
			return e, err
		}
		c := *s
		c.Plan = p
		return &c, nil
	})
	if err != nil {
		return nil, err
	}
	return f(n)
}

// MapExprs rebuilds the expressions of the node itself bottom-up (not the plans
// of sub-queries). What does not change is shared.
func MapExprs(n Node, f func(Expr) (Expr, error)) (Node, error) {
	in := n.Exprs()
	if len(in) == 0 {
		return n, nil
	}
	out := make([]Expr, len(in))
	changed := false
	for i, e := range in {
		t, err := TransformExpr(e, f)
		if err != nil {
			return nil, err
		}
		out[i] = t
		changed = changed || t != e
	}
	if !changed {
		return n, nil
	}
	return n.WithExprs(out), nil
}

// TransformExpr rebuilds e bottom-up (not the plans of sub-queries).
func TransformExpr(e Expr, f func(Expr) (Expr, error)) (Expr, error) {
	in := e.Args()
	if len(in) > 0 {
		out := make([]Expr, len(in))
		changed := false
		for i, a := range in {
			t, err := TransformExpr(a, f)
			if err != nil {
				return nil, err
			}
			out[i] = t
			changed = changed || t != a
		}
		if changed {
			e = e.WithArgs(out)
		}
	}
	return f(e)
}

// Defined calls f for every id that the node itself creates.
func Defined(n Node, f func(ColumnID)) {
	switch n := n.(type) {
	case *Scan, *Values, *SetOp, *Recursive, *WorkTable, *Foreign:
		for _, c := range n.Columns() {
			f(c.ID)
		}
	case *Project:
		for _, it := range n.Items {
			f(it.ID)
		}
	case *Aggregate:
		for _, c := range n.Columns() {
			f(c.ID)
		}
	case *Window:
		for _, it := range n.Items {
			f(it.ID)
		}
	}
}

// Free lists the columns that n refers to and that nothing in n creates, each
// once: the correlated columns of a sub-query or lateral side.
func Free(n Node) []ColumnID {
	made := map[ColumnID]bool{}
	Walk(n, func(n Node) bool { Defined(n, func(id ColumnID) { made[id] = true }); return true })
	var out []ColumnID
	seen := map[ColumnID]bool{}
	Walk(n, func(n Node) bool {
		for _, e := range n.Exprs() {
			WalkExpr(e, func(e Expr) bool {
				if r, ok := e.(*Ref); ok && !made[r.ID] && !seen[r.ID] {
					seen[r.ID] = true
					out = append(out, r.ID)
				}
				return true
			})
		}
		return true
	})
	return out
}

// Refs lists the columns that e refers to, each once, including the correlated
// columns of its sub-queries.
func Refs(e Expr) []ColumnID {
	var out []ColumnID
	seen := map[ColumnID]bool{}
	use := func(id ColumnID) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	WalkExpr(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Ref:
			use(e.ID)
		case *Subquery:
			for _, id := range Free(e.Plan) {
				use(id)
			}
		}
		return true
	})
	return out
}

// Total reports whether evaluating e can never raise an error, whatever the
// values are, so that its evaluation reveals nothing about a row. A sub-query is
// never total, and neither is a RowCall.
func Total(e Expr) bool {
	ok := true
	WalkExpr(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Call:
			if e.Func.Partial != nil && e.Func.Partial(Types(e.Operands)) {
				ok = false
			}
		case *Cast:
			if !e.Try && !totalCast(e.Operand.Type(), e.Typ) {
				ok = false
			}
		case *Subquery, *RowCall:
			ok = false
		}
		return ok
	})
	return ok
}

// Deterministic reports whether e gives the same value for the same row always.
func Deterministic(e Expr) bool {
	ok := true
	WalkExpr(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Call:
			ok = ok && !e.Func.Volatile
		case *RowCall:
			ok = ok && !e.Volatile
		case *Subquery:
			Walk(e.Plan, func(n Node) bool {
				for _, x := range n.Exprs() {
					ok = ok && Deterministic(x)
				}
				return ok
			})
		}
		return ok
	})
	return ok
}

// totalCast reports whether every value of from can be converted to to.
func totalCast(from, to arrow.DataType) bool {
	switch {
	case arrow.TypeEqual(from, to), from.ID() == arrow.NULL, IsString(to):
		return true
	case from.ID() == arrow.BOOL:
		return arrow.IsFloating(to.ID()) || IsInteger(to)
	case IsInteger(from) && arrow.IsFloating(to.ID()), from.ID() == arrow.FLOAT32 && to.ID() == arrow.FLOAT64:
		return true
	case IsInteger(from) && IsInteger(to):
		return arrow.IsSignedInteger(from.ID()) && arrow.IsSignedInteger(to.ID()) &&
			to.(arrow.FixedWidthDataType).BitWidth() >= from.(arrow.FixedWidthDataType).BitWidth()
	case arrow.IsDecimal(to.ID()) && (IsInteger(from) || arrow.IsDecimal(from.ID())):
		pf, sf := DecimalParams(from)
		pt, st := DecimalParams(to)
		return pt-st >= pf-sf && st >= sf
	case arrow.IsDecimal(from.ID()) && arrow.IsFloating(to.ID()):
		return true
	}
	return false
}

// Renumber copies n with every column that n creates under a fresh id of ids.
// renamed maps ids that n refers to but does not create; ids that are in neither
// stay. It makes a statement's own copy of a cached template.
func Renumber(n Node, ids *IDs, renamed map[ColumnID]ColumnID) Node {
	m := fresh(n, ids, renamed)
	return renumberNode(n, m)
}

// RenumberExpr is Renumber for an expression: ids in renamed are replaced, and
// what the plans of its sub-queries create gets fresh ids.
func RenumberExpr(e Expr, ids *IDs, renamed map[ColumnID]ColumnID) Expr {
	m := make(map[ColumnID]ColumnID, len(renamed))
	for k, v := range renamed {
		m[k] = v
	}
	WalkExpr(e, func(e Expr) bool {
		if s, ok := e.(*Subquery); ok {
			m = fresh(s.Plan, ids, m)
		}
		return true
	})
	return renumberExpr(e, m)
}

func fresh(n Node, ids *IDs, renamed map[ColumnID]ColumnID) map[ColumnID]ColumnID {
	m := make(map[ColumnID]ColumnID, len(renamed))
	for k, v := range renamed {
		m[k] = v
	}
	own := map[ColumnID]bool{}
	Walk(n, func(n Node) bool {
		Defined(n, func(id ColumnID) {
			if !own[id] {
				own[id] = true
				m[id] = ids.New()
			}
		})
		return true
	})
	return m
}

func renumberExpr(e Expr, m map[ColumnID]ColumnID) Expr {
	out, _ := TransformExpr(e, func(e Expr) (Expr, error) {
		switch e := e.(type) {
		case *Ref:
			if id, ok := m[e.ID]; ok {
				return &Ref{ID: id, Typ: e.Typ, Name: e.Name}, nil
			}
		case *Subquery:
			s := *e
			s.Plan = renumberNode(e.Plan, m)
			return &s, nil
		}
		return e, nil
	})
	return out
}

func renumberNode(n Node, m map[ColumnID]ColumnID) Node {
	in := n.Inputs()
	if len(in) > 0 {
		out := make([]Node, len(in))
		for i, c := range in {
			out[i] = renumberNode(c, m)
		}
		n = n.WithInputs(out)
	}
	if ex := n.Exprs(); len(ex) > 0 {
		out := make([]Expr, len(ex))
		for i, e := range ex {
			out[i] = renumberExpr(e, m)
		}
		n = n.WithExprs(out)
	}
	col := func(c Column) Column {
		if id, ok := m[c.ID]; ok {
			c.ID = id
		}
		return c
	}
	cols := func(in []Column) []Column {
		out := make([]Column, len(in))
		for i, c := range in {
			out[i] = col(c)
		}
		return out
	}
	switch n := n.(type) {
	case *Scan:
		c := *n
		c.Cols = make([]ScanColumn, len(n.Cols))
		for i, sc := range n.Cols {
			c.Cols[i] = ScanColumn{Column: col(sc.Column), FieldID: sc.FieldID}
		}
		return &c
	case *Values:
		return &Values{Cols: cols(n.Cols), Rows: n.Rows}
	case *Project:
		c := *n
		c.Items = make([]Item, len(n.Items))
		for i, it := range n.Items {
			c.Items[i] = Item{Column: col(it.Column), Expr: it.Expr}
		}
		return &c
	case *Aggregate:
		c := *n
		c.Keys = make([]Item, len(n.Keys))
		for i, it := range n.Keys {
			c.Keys[i] = Item{Column: col(it.Column), Expr: it.Expr}
		}
		c.Aggs = make([]AggItem, len(n.Aggs))
		for i, it := range n.Aggs {
			c.Aggs[i] = AggItem{Column: col(it.Column), Call: it.Call}
		}
		return &c
	case *Window:
		c := *n
		c.Items = make([]WindowItem, len(n.Items))
		for i, it := range n.Items {
			it.Column = col(it.Column)
			c.Items[i] = it
		}
		return &c
	case *SetOp:
		c := *n
		c.Cols = cols(n.Cols)
		return &c
	case *Recursive:
		c := *n
		c.Cols = cols(n.Cols)
		return &c
	case *WorkTable:
		return &WorkTable{ID: n.ID, Cols: cols(n.Cols)}
	case *Foreign:
		c := *n
		c.Cols = cols(n.Cols)
		return &c
	case *Guard:
		c := *n
		c.Masked = make(map[ColumnID]bool, len(n.Masked))
		for id := range n.Masked {
			c.Masked[col(Column{ID: id}).ID] = true
		}
		return &c
	}
	return n
}
