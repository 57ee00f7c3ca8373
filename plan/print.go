package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Format prints a plan as indented text, one node a line, inputs below their
// node: for golden tests and for people who may see policies. Binary literals are
// printed as their length only, because they may be the key or salt of a mask.
func Format(n Node) string {
	p := printer{}
	p.node(n, "", 0)
	return p.b.String()
}

// FormatPublic is Format for ordinary users: a guard is one line with the table
// and the columns, nothing inside it is printed (not even whether it filters or
// masks), and no literal of the statement is, nor a name that may hold one.
func FormatPublic(n Node) string {
	p := printer{public: true, named: map[ColumnID]bool{}}
	// Only the names of table columns are known to hold no literal: MySQL names
	// a computed column after its text.
	Walk(n, func(n Node) bool {
		switch n := n.(type) {
		case *Scan:
			for _, c := range n.Cols {
				p.named[c.ID] = true
			}
		case *Guard:
			for _, c := range n.Columns() {
				p.named[c.ID] = true
			}
			return false
		}
		return true
	})
	p.node(n, "", 0)
	return p.b.String()
}

// FormatExpr prints an expression as Format does.
func FormatExpr(e Expr) string {
	p := printer{}
	return p.expr(e)
}

type printer struct {
	b      strings.Builder
	public bool
	named  map[ColumnID]bool
	// plans of the expressions of the line being printed; they follow it.
	plans []Node
	label int
}

func (p *printer) node(n Node, role string, depth int) {
	outer := p.plans
	p.plans = nil
	line := role + p.line(n)
	plans, first := p.plans, p.label-len(p.plans)
	p.plans = outer

	p.b.WriteString(strings.Repeat("  ", depth))
	p.b.WriteString(line)
	p.b.WriteByte('\n')
	for i, s := range plans {
		p.node(s, "$"+strconv.Itoa(first+i+1)+": ", depth+2)
	}
	if _, ok := n.(*Guard); ok && p.public {
		return
	}
	for _, in := range n.Inputs() {
		p.node(in, "", depth+1)
	}
}

func (p *printer) line(n Node) string {
	switch n := n.(type) {
	case *Scan:
		s := "scan " + p.table(n.Table) + p.columns(n.Columns())
		if n.Definer {
			s += " definer"
		}
		if n.Prune != nil {
			s += " prune " + p.expr(n.Prune)
		}
		return s
	case *Values:
		if p.public {
			return "values" + p.columns(n.Cols)
		}
		rows := make([]string, len(n.Rows))
		for i, r := range n.Rows {
			rows[i] = "(" + p.list(r) + ")"
		}
		return strings.TrimRight("values"+p.columns(n.Cols)+" "+strings.Join(rows, " "), " ")
	case *Filter:
		return "filter " + p.expr(n.Cond)
	case *Project:
		return "project" + p.items(n.Items)
	case *Aggregate:
		aggs := make([]string, len(n.Aggs))
		for i, a := range n.Aggs {
			aggs[i] = p.column(a.Column) + " = " + p.agg(a.Call)
		}
		s := "aggregate"
		if len(n.Keys) > 0 {
			s += " by" + p.items(n.Keys)
		}
		return s + " [" + strings.Join(aggs, ", ") + "]"
	case *Window:
		items := make([]string, len(n.Items))
		for i, w := range n.Items {
			items[i] = p.column(w.Column) + " = " + p.window(w)
		}
		return "window [" + strings.Join(items, ", ") + "]"
	case *Distinct:
		return "distinct"
	case *Sort:
		return "sort " + p.keys(n.Keys)
	case *Limit:
		if p.public {
			return "limit"
		}
		s := "limit"
		if n.Count >= 0 {
			s += " " + strconv.FormatInt(n.Count, 10)
		}
		if n.Offset > 0 {
			s += " offset " + strconv.FormatInt(n.Offset, 10)
		}
		return s
	case *Join:
		s := joinNames[n.Kind] + " join"
		if n.Lateral {
			s += " lateral"
		}
		if n.On != nil {
			s += " on " + p.expr(n.On)
		}
		return s
	case *SetOp:
		s := setNames[n.Kind]
		if n.All {
			s += " all"
		}
		return s + p.columns(n.Cols)
	case *Recursive:
		s := "recursive " + strconv.Itoa(n.ID)
		if n.All {
			s += " all"
		}
		return s + p.columns(n.Cols)
	case *WorkTable:
		return "work table " + strconv.Itoa(n.ID) + p.columns(n.Cols)
	case *Guard:
		if p.public {
			return "table " + p.table(n.Table) + p.columns(n.Columns())
		}
		s := "guard " + p.table(n.Table)
		if n.Filtered {
			s += " filtered"
		}
		if len(n.Masked) > 0 {
			ids := make([]ColumnID, 0, len(n.Masked))
			for id, masked := range n.Masked {
				if masked {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			s += " masked"
			for _, id := range ids {
				s += " #" + strconv.Itoa(int(id))
			}
		}
		return s
	case *Foreign:
		s := "row executor" + p.columns(n.Cols)
		if n.Reason != "" {
			s += " (" + n.Reason + ")"
		}
		return s
	}
	return fmt.Sprintf("%T", n)
}

var (
	joinNames = map[JoinKind]string{Inner: "inner", Left: "left", Right: "right", Full: "full", Semi: "semi", Anti: "anti", Cross: "cross"}
	setNames  = map[SetKind]string{Union: "union", Intersect: "intersect", Except: "except"}
)

func (p *printer) table(t *Table) string {
	if t == nil {
		return "?"
	}
	s := t.Name.String()
	if t.Metadata != "" {
		s += "$" + t.Metadata
	}
	return s
}

// ref prints a column as name#id. The id alone decides; the name helps to read.
func (p *printer) ref(id ColumnID, name string) string {
	if p.public && !p.named[id] {
		name = ""
	}
	return name + "#" + strconv.Itoa(int(id))
}

func (p *printer) column(c Column) string {
	s := p.ref(c.ID, c.Name) + ":" + TypeName(c.Type)
	if !c.Nullable {
		s += "!"
	}
	return s
}

func (p *printer) columns(cols []Column) string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = p.column(c)
	}
	return " [" + strings.Join(out, ", ") + "]"
}

func (p *printer) items(items []Item) string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = p.column(it.Column) + " = " + p.expr(it.Expr)
	}
	return " [" + strings.Join(out, ", ") + "]"
}

func (p *printer) keys(keys []SortKey) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = p.expr(k.Expr)
		if k.Desc {
			out[i] += " desc"
		}
		// MySQL's own order is not said.
		if k.NullsFirst == k.Desc {
			if k.NullsFirst {
				out[i] += " nulls first"
			} else {
				out[i] += " nulls last"
			}
		}
	}
	return strings.Join(out, ", ")
}

func (p *printer) agg(c AggCall) string {
	s := c.Func.Name + "("
	if c.Distinct {
		s += "distinct "
	}
	if len(c.Args) == 0 && c.Func.Name == "count" {
		s += "*"
	}
	s += p.list(c.Args)
	if len(c.OrderBy) > 0 {
		s += " order by " + p.keys(c.OrderBy)
	}
	if c.Sep != "" && !p.public {
		s += " separator " + quote(c.Sep)
	}
	return s + ")"
}

func (p *printer) window(w WindowItem) string {
	var parts []string
	if len(w.PartitionBy) > 0 {
		parts = append(parts, "partition by "+p.list(w.PartitionBy))
	}
	if len(w.OrderBy) > 0 {
		parts = append(parts, "order by "+p.keys(w.OrderBy))
	}
	if f := w.Frame; f != nil {
		unit := "range"
		if f.Rows {
			unit = "rows"
		}
		parts = append(parts, unit+" "+p.bound(f.Start)+" to "+p.bound(f.End))
	}
	return p.agg(w.Call) + " over (" + strings.Join(parts, " ") + ")"
}

func (p *printer) bound(b Bound) string {
	switch b.Kind {
	case UnboundedPreceding:
		return "start"
	case UnboundedFollowing:
		return "end"
	case CurrentRow:
		return "current"
	case Preceding:
		return p.expr(b.Offset) + " before"
	default:
		return p.expr(b.Offset) + " after"
	}
}

func (p *printer) list(list []Expr) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = p.expr(e)
	}
	return strings.Join(out, ", ")
}

func (p *printer) expr(e Expr) string {
	switch e := e.(type) {
	case *Ref:
		return p.ref(e.ID, e.Name)
	case *Literal:
		if p.public {
			return "?"
		}
		return literal(e)
	case *Call:
		return e.Func.Name + "(" + p.list(e.Operands) + ")"
	case *RowCall:
		return "by row " + e.Name + "(" + p.list(e.Operands) + ")"
	case *Case:
		s := "case"
		for _, w := range e.Whens {
			s += " when " + p.expr(w.Cond) + " then " + p.expr(w.Then)
		}
		if e.Else != nil {
			s += " else " + p.expr(e.Else)
		}
		return s + " end"
	case *Cast:
		name := "cast"
		if e.Try {
			name = "try_cast"
		}
		return name + "(" + p.expr(e.Operand) + " as " + TypeName(e.Typ) + ")"
	case *In:
		return p.expr(e.Operand) + " in (" + p.list(e.List) + ")"
	case *Like:
		s := p.expr(e.Operand) + " like " + p.expr(e.Pattern)
		if e.Escape != 0 && !p.public {
			s += " escape " + quote(string(e.Escape))
		}
		return s
	case *Subquery:
		operand := ""
		if e.Operand != nil {
			operand = p.expr(e.Operand) + " "
		}
		p.plans = append(p.plans, e.Plan)
		p.label++
		name := "$" + strconv.Itoa(p.label)
		switch e.Kind {
		case ExistsSubquery:
			return "exists " + name
		case InSubquery:
			return operand + "in " + name
		}
		return name
	}
	return fmt.Sprintf("%T", e)
}

// literal prints a constant. Binary ones never show: they may be a key.
func literal(l *Literal) string {
	switch v := l.Value.(type) {
	case nil:
		return "null:" + TypeName(l.Typ)
	case string:
		return quote(v)
	case []byte:
		return fmt.Sprintf("<%d bytes>", len(v))
	case decimal128.Num:
		_, scale := DecimalParams(l.Typ)
		return v.ToString(scale)
	case arrow.Date32:
		return "date " + quote(v.ToTime().Format(time.DateOnly))
	case arrow.Time64:
		return "time " + quote(time.UnixMicro(int64(v)).UTC().Format("15:04:05.999999"))
	case arrow.Timestamp:
		unit := arrow.Microsecond
		if t, ok := l.Typ.(*arrow.TimestampType); ok {
			unit = t.Unit
		}
		return TypeName(l.Typ) + " " + quote(v.ToTime(unit).Format("2006-01-02 15:04:05.999999999"))
	}
	return fmt.Sprint(l.Value)
}

func quote(s string) string { return strconv.Quote(s) }

// TypeName is a short name of a type, in Iceberg's words where it has one.
func TypeName(t arrow.DataType) string {
	switch {
	case t == nil:
		return "?"
	case IsJSON(t):
		return "json"
	case IsUUID(t):
		return "uuid"
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return "boolean"
	case *arrow.Int32Type:
		return "int"
	case *arrow.Int64Type:
		return "long"
	case *arrow.Uint64Type:
		return "unsigned"
	case *arrow.Float32Type:
		return "float"
	case *arrow.Float64Type:
		return "double"
	case *arrow.StringType, *arrow.LargeStringType:
		return "string"
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		return "binary"
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed(%d)", t.ByteWidth)
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case *arrow.Date32Type:
		return "date"
	case *arrow.Time64Type:
		return "time"
	case *arrow.TimestampType:
		s := "timestamp"
		if t.TimeZone != "" {
			s += "tz"
		}
		if t.Unit == arrow.Nanosecond {
			s += "_ns"
		}
		return s
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = f.Name + " " + TypeName(f.Type)
		}
		return "struct<" + strings.Join(fields, ", ") + ">"
	case *arrow.MapType:
		return "map<" + TypeName(t.KeyType()) + ", " + TypeName(t.ItemType()) + ">"
	case *arrow.ListType:
		return "list<" + TypeName(t.Elem()) + ">"
	case *arrow.NullType:
		return "null"
	}
	return t.String()
}
