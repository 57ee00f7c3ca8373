package duck

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// block is one SELECT under construction: nodes are added to it for as long as
// SQL evaluates its clauses in the order of the nodes, which keeps the text flat
// (and lets DuckDB see LIMIT directly above ORDER BY).
type block struct {
	from  string
	where []string
	// items is the select list, nil while the block yields what from yields.
	items []string
	// closed says that nothing but order and limit may follow: the block has
	// grouping, windows or DISTINCT, or is a set operation.
	closed   bool
	distinct bool
	// chain says that from is a chain of inner, cross and left joins, to which
	// another join can be added.
	chain bool
	group string
	order []string
	limit string
}

// columnName is the name of a column in the text.
func columnName(id plan.ColumnID) string { return "c" + strconv.Itoa(int(id)) }

func (b *block) String() string {
	var s strings.Builder
	s.WriteString("SELECT ")
	if b.distinct {
		s.WriteString("DISTINCT ")
	}
	if b.items == nil {
		s.WriteString("*")
	} else {
		s.WriteString(strings.Join(b.items, ", "))
	}
	s.WriteString(" FROM ")
	s.WriteString(b.from)
	if len(b.where) > 0 {
		s.WriteString(" WHERE ")
		s.WriteString(strings.Join(b.where, " AND "))
	}
	s.WriteString(b.group)
	if len(b.order) > 0 {
		s.WriteString(" ORDER BY ")
		s.WriteString(strings.Join(b.order, ", "))
	}
	s.WriteString(b.limit)
	return s.String()
}

// bare reports whether the block is still only FROM and WHERE.
func (b *block) bare() bool {
	return b.items == nil && !b.closed && len(b.order) == 0 && b.limit == ""
}

// wrap makes the block the input of a new one.
func (c *compiler) wrap(b *block) *block {
	return &block{from: "(" + b.String() + ") AS " + c.alias()}
}

// relation is the block as an item of FROM.
func (c *compiler) relation(b *block) string {
	if b.bare() && len(b.where) == 0 && !strings.Contains(b.from, " JOIN ") {
		return b.from
	}
	return "(" + b.String() + ") AS " + c.alias()
}

func (c *compiler) alias() string {
	c.aliases++
	return "t" + strconv.Itoa(c.aliases)
}

// typedNulls is a select list of NULLs of the types of cols.
func typedNulls(cols []plan.Column) (string, error) {
	if len(cols) == 0 {
		return "0 AS none", nil
	}
	out := make([]string, 0, len(cols))
	for _, col := range unique(cols) {
		t, err := sqlType(col.Type)
		if err != nil {
			return "", err
		}
		out = append(out, cast("NULL", t)+" AS "+columnName(col.ID))
	}
	return strings.Join(out, ", "), nil
}

// unique leaves out columns that occurred before.
func unique(cols []plan.Column) []plan.Column {
	seen := make(map[plan.ColumnID]bool, len(cols))
	out := make([]plan.Column, 0, len(cols))
	for _, col := range cols {
		if !seen[col.ID] {
			seen[col.ID] = true
			out = append(out, col)
		}
	}
	return out
}

// converted writes expr, which has type from, as a value of type to. It is for
// places where the plan lets a type widen (set operations, files, CASE).
func converted(expr string, from, to arrow.DataType) (string, error) {
	if arrow.TypeEqual(from, to) {
		return expr, nil
	}
	ft, err := sqlType(from)
	if err != nil {
		return "", err
	}
	tt, err := sqlType(to)
	if err != nil {
		return "", err
	}
	if ft == tt && !isNull(from) {
		return expr, nil
	}
	return castExpr(expr, from, to, false)
}

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
