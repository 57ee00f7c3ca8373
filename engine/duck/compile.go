package duck

import (
	"fmt"
	"strconv"
	"strings"

	"sqe/engine/scan"
	"sqe/fault"
	"sqe/plan"
)

// Inputs gives the data of a scan.
type Inputs func(*plan.Scan) (*scan.Input, error)

// compiler makes the query text of one plan. It is used once.
type compiler struct {
	inputs Inputs // nil: only find out whether the plan can be compiled
	// shallow leaves the inputs of the outermost node out.
	shallow bool
	aliases int
	streams []*source
	// evaluators are those of the RowCalls.
	evaluators []*evaluator
	store      *textStore           // has the long texts of the result; nil: DuckDB has them
	rows       map[*plan.Scan]int64 // of the scans, -1 when not known
	risks      risks
}

// Accepts reports whether the node, with its expressions and the plans in them,
// can be computed exactly. It does not look at the inputs of the node. The fault
// is Unsupported and names what cannot be computed.
func Accepts(n plan.Node) error {
	c := &compiler{shallow: true}
	_, err := c.node(n)
	return err
}

// compile makes the text whose result columns are exactly n.Columns().
func (c *compiler) compile(n plan.Node) (string, error) {
	c.risks = risksOf(n)
	b, err := c.node(n)
	if err != nil {
		return "", err
	}
	cols := n.Columns()
	if len(cols) == 0 {
		return "SELECT 0 FROM (" + b.String() + ") AS " + c.alias(), nil
	}
	// An inner ORDER BY stays in force through a projection (DuckDB keeps a fixed
	// order up to the result); keeping the block flat makes it the outermost.
	names := make([]string, len(cols))
	for i, col := range cols {
		names[i] = c.store.held(columnName(col.ID), col.Type) + " AS o" + strconv.Itoa(i)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (" + b.String() + ") AS " + c.alias(), nil
}

// input compiles an input of a node.
func (c *compiler) input(n plan.Node) (*block, error) {
	if !c.shallow {
		return c.node(n)
	}
	return c.empty(n.Columns())
}

// empty is no rows with the given columns.
func (c *compiler) empty(cols []plan.Column) (*block, error) {
	list, err := typedNulls(cols)
	if err != nil {
		return nil, err
	}
	return &block{from: "(SELECT " + list + " LIMIT 0) AS " + c.alias()}, nil
}

func (c *compiler) node(n plan.Node) (*block, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return c.scan(n)
	case *plan.Values:
		return c.values(n)
	case *plan.Filter:
		b, err := c.input(n.Input)
		if err != nil {
			return nil, err
		}
		if !b.bare() {
			b = c.wrap(b)
		}
		cond, err := c.condition(n.Cond)
		if err != nil {
			return nil, err
		}
		b.where = append(b.where, cond)
		return b, nil
	case *plan.Project:
		return c.project(n)
	case *plan.Aggregate:
		return c.aggregate(n)
	case *plan.Window:
		return c.window(n)
	case *plan.Distinct:
		b, err := c.input(n.Input)
		if err != nil {
			return nil, err
		}
		if b.closed || len(b.order) > 0 || b.limit != "" {
			b = c.wrap(b)
		}
		b.distinct, b.closed = true, true
		if b.items == nil {
			for _, col := range unique(n.Columns()) {
				b.items = append(b.items, columnName(col.ID))
			}
		}
		return b, nil
	case *plan.Sort:
		return c.sort(n)
	case *plan.Limit:
		b, err := c.input(n.Input)
		if err != nil {
			return nil, err
		}
		if b.limit != "" {
			b = c.wrap(b)
		}
		if n.Offset < 0 {
			return nil, fault.New(fault.BadStatement, "OFFSET is negative")
		}
		if n.Count >= 0 {
			b.limit = fmt.Sprintf(" LIMIT %d", n.Count)
		}
		if n.Offset > 0 {
			b.limit += fmt.Sprintf(" OFFSET %d", n.Offset)
		}
		return b, nil
	case *plan.Join:
		return c.join(n)
	case *plan.SetOp:
		return c.setOp(n)
	case *plan.Recursive:
		return c.recursive(n)
	case *plan.WorkTable:
		items := make([]string, len(n.Cols))
		for i, col := range n.Cols {
			items[i] = workColumn(i) + " AS " + columnName(col.ID)
		}
		return &block{from: workTable(n.ID) + " AS " + c.alias(), items: items}, nil
	case *plan.Guard:
		b, err := c.input(n.Input)
		if err != nil {
			return nil, err
		}
		if c.risks.any {
			b = c.opaque(n, b)
		}
		if c.risks.condition && n.Filtered {
			// No predicate moves below a LIMIT: nothing that the statement computes
			// is evaluated for a row that the row filter hides.
			b = c.wrap(b)
			b.limit = " LIMIT 9223372036854775807"
			b = c.wrap(b)
		}
		return b, nil
	}
	return nil, fault.New(fault.Unsupported, "this kind of query cannot be computed (%T)", n)
}

func (c *compiler) values(n *plan.Values) (*block, error) {
	if len(n.Rows) == 0 {
		return c.empty(n.Cols)
	}
	rows := make([]string, len(n.Rows))
	names := make([]string, len(n.Cols))
	for i, col := range n.Cols {
		names[i] = columnName(col.ID)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	for i, r := range n.Rows {
		vals := make([]string, len(r))
		for j, e := range r {
			s, err := c.expr(e)
			if err != nil {
				return nil, err
			}
			t, err := sqlType(n.Cols[j].Type)
			if err != nil {
				return nil, err
			}
			if s, err = converted(s, e.Type(), n.Cols[j].Type); err != nil {
				return nil, err
			}
			if i == 0 {
				s = cast(s, t)
			}
			vals[j] = s
		}
		if len(vals) == 0 {
			vals = []string{"0"}
		}
		rows[i] = "(" + strings.Join(vals, ", ") + ")"
	}
	return &block{from: "(VALUES " + strings.Join(rows, ", ") + ") AS " + c.alias() + "(" + strings.Join(names, ", ") + ")"}, nil
}

func (c *compiler) project(n *plan.Project) (*block, error) {
	b, err := c.input(n.Input)
	if err != nil {
		return nil, err
	}
	if b.items != nil || b.closed || ((len(b.order) > 0 || b.limit != "") && !onlyRefs(n.Items)) {
		// What is computed above a LIMIT is not computed for the rows below it.
		b = c.wrap(b)
	}
	b.items = make([]string, 0, len(n.Items)+1)
	seen := map[plan.ColumnID]bool{}
	for _, it := range n.Items {
		if seen[it.ID] {
			continue
		}
		seen[it.ID] = true
		s, err := c.expr(it.Expr)
		if err != nil {
			return nil, err
		}
		if s, err = converted(s, it.Expr.Type(), it.Type); err != nil {
			return nil, err
		}
		b.items = append(b.items, s+" AS "+columnName(it.ID))
	}
	if len(b.items) == 0 {
		b.items = append(b.items, "0 AS none")
	}
	return b, nil
}

func onlyRefs(items []plan.Item) bool {
	for _, it := range items {
		if _, ok := it.Expr.(*plan.Ref); !ok {
			return false
		}
	}
	return true
}

func (c *compiler) sort(n *plan.Sort) (*block, error) {
	b, err := c.input(n.Input)
	if err != nil {
		return nil, err
	}
	if !b.bare() {
		// The keys are columns and expressions of what the block yields.
		b = c.wrap(b)
	}
	b.order, err = c.sortKeys(n.Keys)
	return b, err
}

func (c *compiler) sortKeys(keys []plan.SortKey) ([]string, error) {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		if _, constant := k.Expr.(*plan.Literal); constant {
			continue // a number would be taken for a position
		}
		if t := k.Expr.Type(); plan.IsJSON(t) || plan.IsNested(t) {
			return nil, fault.New(fault.Unsupported, "values of type %s cannot be sorted", typeName(t))
		}
		s, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		if k.Desc {
			s += " DESC"
		} else {
			s += " ASC"
		}
		if k.NullsFirst {
			s += " NULLS FIRST"
		} else {
			s += " NULLS LAST"
		}
		out = append(out, s)
	}
	return out, nil
}

var joinWords = map[plan.JoinKind]string{
	plan.Inner: "JOIN", plan.Left: "LEFT JOIN", plan.Right: "RIGHT JOIN", plan.Full: "FULL JOIN",
	plan.Semi: "SEMI JOIN", plan.Anti: "ANTI JOIN", plan.Cross: "CROSS JOIN",
}

func (c *compiler) join(n *plan.Join) (*block, error) {
	word, ok := joinWords[n.Kind]
	if !ok {
		return nil, fault.New(fault.Unsupported, "this kind of join cannot be computed")
	}
	l, err := c.input(n.Left)
	if err != nil {
		return nil, err
	}
	r, err := c.input(n.Right)
	if err != nil {
		return nil, err
	}
	on := "TRUE"
	if n.On != nil {
		if on, err = c.condition(n.On); err != nil {
			return nil, err
		}
	}
	left := ""
	if l.chain && l.bare() && len(l.where) == 0 && !n.Lateral {
		// Joins associate to the left as the plan does. DuckDB takes a SELECT
		// around each of them for a boundary and then knows less about the keys
		// when it chooses the order of the joins.
		left = l.from
	} else {
		left = c.relation(l)
	}
	chain := n.Kind == plan.Inner || n.Kind == plan.Cross || n.Kind == plan.Left
	if n.Lateral {
		// The condition stands in the right side, where it may use both.
		if n.On != nil {
			r = c.wrap(r)
			r.where = append(r.where, on)
		}
		if n.Kind != plan.Inner && n.Kind != plan.Cross && n.Kind != plan.Left {
			return nil, fault.New(fault.Unsupported, "LATERAL stands only in an inner or a left join")
		}
		if n.Kind == plan.Cross {
			word = "JOIN"
		}
		return &block{from: left + " " + word + " LATERAL (" + r.String() + ") AS " + c.alias() + " ON TRUE"}, nil
	}
	right := c.relation(r)
	if n.Kind == plan.Cross {
		return &block{from: left + " CROSS JOIN " + right, chain: true}, nil
	}
	return &block{from: left + " " + word + " " + right + " ON " + on, chain: chain}, nil
}

var setWords = map[plan.SetKind]string{plan.Union: "UNION", plan.Intersect: "INTERSECT", plan.Except: "EXCEPT"}

func (c *compiler) setOp(n *plan.SetOp) (*block, error) {
	word, ok := setWords[n.Kind]
	if !ok {
		return nil, fault.New(fault.Unsupported, "this set operation cannot be computed")
	}
	if n.All {
		word += " ALL"
	}
	l, err := c.side(n.Left, n.Cols, columnName)
	if err != nil {
		return nil, err
	}
	r, err := c.side(n.Right, n.Cols, columnName)
	if err != nil {
		return nil, err
	}
	return &block{from: "((" + l + ") " + word + " (" + r + ")) AS " + c.alias()}, nil
}

// side writes an input with the names and types of cols, by position.
func (c *compiler) side(n plan.Node, cols []plan.Column, name func(plan.ColumnID) string) (string, error) {
	b, err := c.input(n)
	if err != nil {
		return "", err
	}
	have := n.Columns()
	if len(have) != len(cols) {
		return "", errorf("a set operation has %d columns and an input with %d", len(cols), len(have))
	}
	items := make([]string, len(cols))
	for i, col := range cols {
		s, err := converted(columnName(have[i].ID), have[i].Type, col.Type)
		if err != nil {
			return "", err
		}
		items[i] = s + " AS " + name(col.ID)
	}
	if len(items) == 0 {
		items = []string{"0 AS none"}
	}
	w := c.wrap(b)
	w.items = items
	return w.String(), nil
}

func workTable(id int) string { return "w" + strconv.Itoa(id) }
func workColumn(i int) string { return "w_" + strconv.Itoa(i) }
func workColumns(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = workColumn(i)
	}
	return strings.Join(names, ", ")
}

func (c *compiler) recursive(n *plan.Recursive) (*block, error) {
	if len(n.Cols) == 0 {
		return nil, fault.New(fault.Unsupported, "a recursive query without columns cannot be computed")
	}
	anchor, err := c.side(n.Anchor, n.Cols, columnName)
	if err != nil {
		return nil, err
	}
	step, err := c.side(n.Step, n.Cols, columnName)
	if err != nil {
		return nil, err
	}
	table, columns, word := workTable(n.ID), workColumns(len(n.Cols)), "UNION"
	if n.All {
		// Each row carries its round, so that a recursion without end becomes an
		// error. A UNION drops rows that it has, which a round would keep apart.
		word = "UNION ALL"
		columns += ", " + roundColumn
		anchor = fmt.Sprintf("SELECT *, 0::BIGINT FROM (%s) AS %s", anchor, c.alias())
		rows, round := c.alias(), c.alias()
		step = fmt.Sprintf("SELECT %s.*, %s.n + 1 FROM (%s) AS %s, (SELECT max(%s) AS n FROM %s) AS %s"+
			" WHERE CASE WHEN %s.n >= %d THEN error('%s') ELSE TRUE END",
			rows, round, step, rows, roundColumn, table, round, round, maxRounds, roundsMark)
	}
	items := make([]string, len(n.Cols))
	for i, col := range n.Cols {
		items[i] = workColumn(i) + " AS " + columnName(col.ID)
	}
	return &block{from: fmt.Sprintf("(WITH RECURSIVE %s(%s) AS ((%s) %s (%s)) SELECT %s FROM %s) AS %s",
		table, columns, anchor, word, step, strings.Join(items, ", "), table, c.alias())}, nil
}

// maxRounds is how often a recursive query may repeat: MySQL's default of
// cte_max_recursion_depth.
const maxRounds = 1000

const roundColumn = "w_round"
