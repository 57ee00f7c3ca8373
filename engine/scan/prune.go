package scan

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/plan"
)

// truth is the set of values that a condition may have on the rows of a file. It
// is always an over-approximation: a value that is not in it occurs on no row.
type truth uint8

const (
	isTrue truth = 1 << iota
	isFalse
	isNull
	anything = isTrue | isFalse | isNull
)

// condition tells what a condition may be on the rows of a file.
type condition func(*dataFile) truth

// prune leaves out the files on none of whose rows the scan's Prune can be true.
func prune(files []*dataFile, s *plan.Scan) []*dataFile {
	c := compiler{scan: s}.condition(s.Prune)
	out := make([]*dataFile, 0, len(files))
	for _, f := range files {
		if c(f)&isTrue != 0 {
			out = append(out, f)
		}
	}
	return out
}

// compiler turns expressions into conditions. What it does not know may be
// anything.
type compiler struct{ scan *plan.Scan }

func unknown(*dataFile) truth { return anything }

func always(t truth) condition { return func(*dataFile) truth { return t } }

func (c compiler) condition(e plan.Expr) condition {
	switch e := e.(type) {
	case *plan.Literal:
		switch e.Value {
		case nil:
			return always(isNull)
		case true:
			return always(isTrue)
		case false:
			return always(isFalse)
		}
	case *plan.Ref:
		if e.Typ.ID() == arrow.BOOL {
			return c.compare("eq", e, &plan.Literal{Value: true, Typ: plan.Bool})
		}
	case *plan.In:
		var list []condition
		for _, x := range e.List {
			list = append(list, c.comparison("eq", e.Operand, x))
		}
		return fold(list, isFalse, or)
	case *plan.Like:
		if l, ok := e.Pattern.(*plan.Literal); ok {
			if p, ok := l.Value.(string); ok {
				return c.prefix(e.Operand, likePrefix(p, e.Escape))
			}
		}
	case *plan.Call:
		return c.call(e)
	}
	return unknown
}

func (c compiler) call(e *plan.Call) condition {
	switch name := e.Func.Name; name {
	case "and", "or":
		list := make([]condition, len(e.Operands))
		for i, o := range e.Operands {
			list[i] = c.condition(o)
		}
		if name == "and" {
			return fold(list, isTrue, and)
		}
		return fold(list, isFalse, or)
	case "not":
		return negate(c.condition(e.Operands[0]))
	case "is_true", "is_false":
		in := c.condition(e.Operands[0])
		yes := isTrue
		if name == "is_false" {
			yes = isFalse
		}
		return func(f *dataFile) truth {
			t := in(f)
			var out truth
			if t&yes != 0 {
				out |= isTrue
			}
			if t&^yes != 0 {
				out |= isFalse
			}
			return out
		}
	case "is_null":
		return c.isNull(e.Operands[0])
	case "eq", "lt", "le", "gt", "ge":
		return c.comparison(name, e.Operands[0], e.Operands[1])
	case "ne":
		return negate(c.comparison("eq", e.Operands[0], e.Operands[1]))
	case "starts_with":
		if l, ok := e.Operands[1].(*plan.Literal); ok {
			if p, ok := l.Value.(string); ok {
				return c.prefix(e.Operands[0], p)
			}
		}
	}
	return unknown
}

// fold combines conditions by a three-valued operation on single values.
func fold(list []condition, start truth, op func(a, b truth) truth) condition {
	return func(f *dataFile) truth {
		t := start
		for _, c := range list {
			r := c(f)
			var out truth
			for a := isTrue; a <= isNull; a <<= 1 {
				for b := isTrue; b <= isNull; b <<= 1 {
					if t&a != 0 && r&b != 0 {
						out |= op(a, b)
					}
				}
			}
			t = out
		}
		return t
	}
}

func and(a, b truth) truth {
	switch {
	case a == isFalse || b == isFalse:
		return isFalse
	case a == isNull || b == isNull:
		return isNull
	}
	return isTrue
}

func or(a, b truth) truth {
	switch {
	case a == isTrue || b == isTrue:
		return isTrue
	case a == isNull || b == isNull:
		return isNull
	}
	return isFalse
}

func negate(c condition) condition {
	return func(f *dataFile) truth {
		t := c(f)
		out := t & isNull
		if t&isTrue != 0 {
			out |= isFalse
		}
		if t&isFalse != 0 {
			out |= isTrue
		}
		return out
	}
}

// column is an operand that is a column of the scan, below casts that keep order.
type column struct {
	field int
	typ   arrow.DataType   // of the column
	casts []arrow.DataType // innermost first
}

func (c compiler) column(e plan.Expr) (column, bool) {
	switch e := e.(type) {
	case *plan.Ref:
		for _, sc := range c.scan.Cols {
			if sc.ID == e.ID {
				return column{field: sc.FieldID, typ: sc.Type}, true
			}
		}
	case *plan.Cast:
		in, ok := c.column(e.Operand)
		if !ok {
			return column{}, false
		}
		from := in.typ
		if n := len(in.casts); n > 0 {
			from = in.casts[n-1]
		}
		if !monotone(from, e.Typ) {
			return column{}, false
		}
		in.casts = append(in.casts[:len(in.casts):len(in.casts)], e.Typ)
		return in, true
	}
	return column{}, false
}

var mirrored = map[string]string{"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

// comparison is a column compared with a literal, either way round.
func (c compiler) comparison(op string, a, b plan.Expr) condition {
	if l, ok := b.(*plan.Literal); ok {
		return c.compare(op, a, l)
	}
	if l, ok := a.(*plan.Literal); ok {
		return c.compare(mirrored[op], b, l)
	}
	return unknown
}

func (c compiler) compare(op string, e plan.Expr, l *plan.Literal) condition {
	if l.Value == nil {
		return always(isNull)
	}
	col, ok := c.column(e)
	if !ok {
		return unknown
	}
	lit, ok := valueOf(l)
	if !ok {
		return unknown
	}
	byPartition := partitionCondition(op, col, l)
	return func(f *dataFile) truth {
		r := f.stats.of(col)
		return r.compare(op, lit) & byPartition(f)
	}
}

func (c compiler) isNull(e plan.Expr) condition {
	col, ok := c.column(e)
	if !ok {
		return unknown
	}
	return func(f *dataFile) truth {
		r := f.stats.of(col)
		var out truth
		if r.null {
			out |= isTrue
		}
		if r.present {
			out |= isFalse
		}
		return out
	}
}

// prefix is a column that starts with a text.
func (c compiler) prefix(e plan.Expr, p string) condition {
	col, ok := c.column(e)
	if !ok || !plan.IsString(col.typ) || p == "" {
		return unknown
	}
	return func(f *dataFile) truth {
		r := f.stats.of(col)
		out := r.nullness()
		if !r.present {
			return out
		}
		out |= isFalse | isTrue
		if r.hi != nil && r.hi.text < p || r.lo != nil && r.lo.text[:min(len(p), len(r.lo.text))] > p {
			out &^= isTrue
		}
		return out
	}
}

// likePrefix is the text before the first wildcard of a pattern.
func likePrefix(pattern string, escape rune) string {
	var b strings.Builder
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(r)
		case escape != 0 && r == escape:
			escaped = true
		case r == '%' || r == '_':
			return b.String()
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bounds are what is known of the values of a column in a file.
type bounds struct {
	null    bool // a NULL may occur
	present bool // a value may occur
	nan     bool // a NaN may occur, of which the limits say nothing
	lo, hi  *value
}

func (s stats) of(c column) bounds {
	b := bounds{null: true, present: true, nan: arrow.IsFloating(c.typ.ID())}
	nulls, known := s.nulls[c.field]
	if known {
		b.null = nulls != 0
		if n, ok := s.values[c.field]; ok && n == nulls && n > 0 {
			b.present = false
		}
	}
	if n, ok := s.nans[c.field]; ok {
		b.nan = b.nan && n != 0
	}
	b.lo = limit(s.lower[c.field], c)
	b.hi = limit(s.upper[c.field], c)
	return b
}

func limit(raw []byte, c column) *value {
	if raw == nil {
		return nil
	}
	v, ok := decode(raw, c.typ)
	for _, t := range c.casts {
		if ok {
			v, ok = v.cast(t)
		}
	}
	if !ok {
		return nil
	}
	return &v
}

func (b bounds) nullness() truth {
	if b.null {
		return isNull
	}
	return 0
}

func (b bounds) compare(op string, lit value) truth {
	out := b.nullness()
	if !b.present {
		return out
	}
	if b.nan {
		return out | isTrue | isFalse
	}
	// below and above: may a value be smaller, greater than, or equal to lit?
	low, high := 0, 0
	lowKnown, highKnown := false, false
	if b.lo != nil {
		low, lowKnown = b.lo.compare(lit)
	}
	if b.hi != nil {
		high, highKnown = b.hi.compare(lit)
	}
	var t, f bool
	switch op {
	case "eq":
		t = (!lowKnown || low <= 0) && (!highKnown || high >= 0)
		f = !(lowKnown && highKnown && low == 0 && high == 0)
	case "lt":
		t = !lowKnown || low < 0
		f = !highKnown || high >= 0
	case "le":
		t = !lowKnown || low <= 0
		f = !highKnown || high > 0
	case "gt":
		t = !highKnown || high > 0
		f = !lowKnown || low <= 0
	case "ge":
		t = !highKnown || high >= 0
		f = !lowKnown || low < 0
	default:
		return anything
	}
	if t {
		out |= isTrue
	}
	if f {
		out |= isFalse
	}
	return out
}
