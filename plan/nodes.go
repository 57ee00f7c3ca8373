package plan

func columns[T interface{ column() Column }](items []T) []Column {
	out := make([]Column, len(items))
	for i, it := range items {
		out[i] = it.column()
	}
	return out
}

func (c ScanColumn) column() Column { return c.Column }
func (i Item) column() Column       { return i.Column }
func (i AggItem) column() Column    { return i.Column }
func (i WindowItem) column() Column { return i.Column }

// Columns implements Node.
func (n *Scan) Columns() []Column { return columns(n.Cols) }

// Columns implements Node.
func (n *Values) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Filter) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Project) Columns() []Column { return columns(n.Items) }

// Columns implements Node.
func (n *Aggregate) Columns() []Column { return append(columns(n.Keys), columns(n.Aggs)...) }

// Columns implements Node.
func (n *Window) Columns() []Column {
	in := n.Input.Columns()
	return append(in[:len(in):len(in)], columns(n.Items)...)
}

// Columns implements Node.
func (n *Distinct) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Sort) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Limit) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Join) Columns() []Column {
	l := n.Left.Columns()
	if n.Kind == Semi || n.Kind == Anti {
		return l
	}
	r := n.Right.Columns()
	out := append(l[:len(l):len(l)], r...)
	for i := range out {
		left := i < len(l)
		if n.Kind == Full || (n.Kind == Left && !left) || (n.Kind == Right && left) {
			out[i].Nullable = true
		}
	}
	return out
}

// Columns implements Node.
func (n *SetOp) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Recursive) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *WorkTable) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Guard) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Foreign) Columns() []Column { return n.Cols }

// Inputs implements Node.
func (n *Scan) Inputs() []Node { return nil }

// Inputs implements Node.
func (n *Values) Inputs() []Node { return nil }

// Inputs implements Node.
func (n *Filter) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Project) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Aggregate) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Window) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Distinct) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Sort) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Limit) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Join) Inputs() []Node { return []Node{n.Left, n.Right} }

// Inputs implements Node.
func (n *SetOp) Inputs() []Node { return []Node{n.Left, n.Right} }

// Inputs implements Node.
func (n *Recursive) Inputs() []Node { return []Node{n.Anchor, n.Step} }

// Inputs implements Node.
func (n *WorkTable) Inputs() []Node { return nil }

// Inputs implements Node.
func (n *Guard) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Foreign) Inputs() []Node { return n.Children }

// WithInputs implements Node.
func (n *Scan) WithInputs([]Node) Node { return n }

// WithInputs implements Node.
func (n *Values) WithInputs([]Node) Node { return n }

// WithInputs implements Node.
func (n *WorkTable) WithInputs([]Node) Node { return n }

// WithInputs implements Node.
func (n *Filter) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Project) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Aggregate) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Window) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Distinct) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Sort) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Limit) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Join) WithInputs(in []Node) Node { c := *n; c.Left, c.Right = in[0], in[1]; return &c }

// WithInputs implements Node.
func (n *SetOp) WithInputs(in []Node) Node { c := *n; c.Left, c.Right = in[0], in[1]; return &c }

// WithInputs implements Node.
func (n *Recursive) WithInputs(in []Node) Node {
	c := *n
	c.Anchor, c.Step = in[0], in[1]
	return &c
}

// WithInputs implements Node.
func (n *Guard) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }

// WithInputs implements Node.
func (n *Foreign) WithInputs(in []Node) Node { c := *n; c.Children = in; return &c }

// Exprs implements Node.
func (n *Scan) Exprs() []Expr {
	if n.Prune == nil {
		return nil
	}
	return []Expr{n.Prune}
}

// WithExprs implements Node.
func (n *Scan) WithExprs(e []Expr) Node {
	if n.Prune == nil {
		return n
	}
	c := *n
	c.Prune = e[0]
	return &c
}

// Exprs implements Node.
func (n *Values) Exprs() []Expr {
	var out []Expr
	for _, r := range n.Rows {
		out = append(out, r...)
	}
	return out
}

// WithExprs implements Node.
func (n *Values) WithExprs(e []Expr) Node {
	c := &Values{Cols: n.Cols, Rows: make([][]Expr, len(n.Rows))}
	for i, r := range n.Rows {
		c.Rows[i], e = e[:len(r):len(r)], e[len(r):]
	}
	return c
}

// Exprs implements Node.
func (n *Filter) Exprs() []Expr { return []Expr{n.Cond} }

// WithExprs implements Node.
func (n *Filter) WithExprs(e []Expr) Node { return &Filter{Input: n.Input, Cond: e[0]} }

func itemExprs(items []Item) []Expr {
	out := make([]Expr, len(items))
	for i, it := range items {
		out[i] = it.Expr
	}
	return out
}

func withItemExprs(items []Item, e []Expr) []Item {
	out := make([]Item, len(items))
	for i, it := range items {
		out[i] = Item{Column: it.Column, Expr: e[i]}
	}
	return out
}

// Exprs implements Node.
func (n *Project) Exprs() []Expr { return itemExprs(n.Items) }

// WithExprs implements Node.
func (n *Project) WithExprs(e []Expr) Node {
	return &Project{Input: n.Input, Items: withItemExprs(n.Items, e)}
}

func sortExprs(keys []SortKey) []Expr {
	out := make([]Expr, len(keys))
	for i, k := range keys {
		out[i] = k.Expr
	}
	return out
}

func withSortExprs(keys []SortKey, e []Expr) []SortKey {
	out := make([]SortKey, len(keys))
	for i, k := range keys {
		k.Expr = e[i]
		out[i] = k
	}
	return out
}

func (c AggCall) exprs() []Expr {
	return append(c.Args[:len(c.Args):len(c.Args)], sortExprs(c.OrderBy)...)
}

func (c AggCall) withExprs(e []Expr) (AggCall, []Expr) {
	a, k := len(c.Args), len(c.OrderBy)
	c.Args = e[:a:a]
	c.OrderBy = withSortExprs(c.OrderBy, e[a:a+k])
	return c, e[a+k:]
}

// Exprs implements Node.
func (n *Aggregate) Exprs() []Expr {
	out := itemExprs(n.Keys)
	for _, a := range n.Aggs {
		out = append(out, a.Call.exprs()...)
	}
	return out
}

// WithExprs implements Node.
func (n *Aggregate) WithExprs(e []Expr) Node {
	k := len(n.Keys)
	c := &Aggregate{Input: n.Input, Keys: withItemExprs(n.Keys, e[:k]), Aggs: make([]AggItem, len(n.Aggs))}
	e = e[k:]
	for i, a := range n.Aggs {
		a.Call, e = a.Call.withExprs(e)
		c.Aggs[i] = a
	}
	return c
}

// Exprs implements Node.
func (n *Window) Exprs() []Expr {
	var out []Expr
	for _, w := range n.Items {
		out = append(out, w.Call.exprs()...)
		out = append(out, w.PartitionBy...)
		out = append(out, sortExprs(w.OrderBy)...)
		if w.Frame != nil {
			for _, b := range []Bound{w.Frame.Start, w.Frame.End} {
				if b.Offset != nil {
					out = append(out, b.Offset)
				}
			}
		}
	}
	return out
}

// WithExprs implements Node.
func (n *Window) WithExprs(e []Expr) Node {
	c := &Window{Input: n.Input, Items: make([]WindowItem, len(n.Items))}
	for i, w := range n.Items {
		w.Call, e = w.Call.withExprs(e)
		p, k := len(w.PartitionBy), len(w.OrderBy)
		w.PartitionBy = e[:p:p]
		w.OrderBy = withSortExprs(w.OrderBy, e[p:p+k])
		e = e[p+k:]
		if w.Frame != nil {
			f := *w.Frame
			for _, b := range []*Bound{&f.Start, &f.End} {
				if b.Offset != nil {
					b.Offset, e = e[0], e[1:]
				}
			}
			w.Frame = &f
		}
		c.Items[i] = w
	}
	return c
}

// Exprs implements Node.
func (n *Distinct) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *Distinct) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *Sort) Exprs() []Expr { return sortExprs(n.Keys) }

// WithExprs implements Node.
func (n *Sort) WithExprs(e []Expr) Node {
	return &Sort{Input: n.Input, Keys: withSortExprs(n.Keys, e)}
}

// Exprs implements Node.
func (n *Limit) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *Limit) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *Join) Exprs() []Expr {
	if n.On == nil {
		return nil
	}
	return []Expr{n.On}
}

// WithExprs implements Node.
func (n *Join) WithExprs(e []Expr) Node {
	if n.On == nil {
		return n
	}
	c := *n
	c.On = e[0]
	return &c
}

// Exprs implements Node.
func (n *SetOp) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *SetOp) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *Recursive) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *Recursive) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *WorkTable) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *WorkTable) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *Guard) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *Guard) WithExprs([]Expr) Node { return n }

// Exprs implements Node.
func (n *Foreign) Exprs() []Expr { return nil }

// WithExprs implements Node.
func (n *Foreign) WithExprs([]Expr) Node { return n }
