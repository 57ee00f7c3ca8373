package scan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// nameMappingProperty maps column names to field ids for files that were written
// without ids. Source: Iceberg specification, "Column Projection".
const nameMappingProperty = "schema.name-mapping.default"

// layout says which columns a Parquet file has.
type layout struct {
	// byID are the top-level columns by field id.
	byID map[int]node
	// text is equal for layouts that are.
	text string
	// reserved: a column is named as one of those with which executors number rows
	// and name files, in any case.
	reserved bool
}

// reservedNames are the names under which DuckDB's reader gives the number of a row
// and the file that it is from.
var reservedNames = []string{"file_row_number", "filename", "file_index"}

// hides reports whether a column of the file stands in the way of an executor that
// is to tell where rows lie.
func (l *layout) hides(cols []plan.ScanColumn) bool {
	return l.reserved && slices.ContainsFunc(cols, func(c plan.ScanColumn) bool { return plan.IsVirtual(c.FieldID) })
}

// node is a column of a file, or a field inside one.
type node struct {
	id       int // 0: none
	name     string
	typ      arrow.DataType
	children []node // as in plan.Field
	// ambiguous: another column of the file has the same name in another case,
	// so that the name does not find it.
	ambiguous bool
}

// readLayout reads the footer of a local file.
func readLayout(path string, mapping iceberg.NameMapping) (l *layout, err error) {
	err = guarded(func() error {
		r, err := file.OpenParquetFile(path, false)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		// Without the key-value metadata: a writer's own Arrow schema in there says
		// nothing about what other readers see.
		s, err := pqarrow.FromParquet(r.MetaData().Schema, &pqarrow.ArrowReadProperties{}, nil)
		if err != nil {
			return err
		}
		l, err = newLayout(s, mapping)
		return err
	})
	return l, err
}

func newLayout(s *arrow.Schema, mapping iceberg.NameMapping) (*layout, error) {
	nodes := make([]node, s.NumFields())
	anyID := false
	folded := map[string]int{}
	for i, f := range s.Fields() {
		nodes[i] = newNode(f)
		anyID = anyID || hasID(nodes[i])
		folded[strings.ToLower(f.Name)]++
	}
	if !anyID {
		if len(mapping) == 0 {
			return nil, errors.New("a data file without field ids, and the table has no name mapping")
		}
		mapIDs(nodes, mapping)
	}
	l := &layout{byID: make(map[int]node, len(nodes))}
	var b strings.Builder
	for _, n := range nodes {
		n.ambiguous = folded[strings.ToLower(n.name)] > 1
		l.reserved = l.reserved || slices.Contains(reservedNames, strings.ToLower(n.name))
		if n.id != 0 {
			if _, twice := l.byID[n.id]; twice {
				return nil, errors.New("a data file with one field id on two columns")
			}
			l.byID[n.id] = n
		}
		n.print(&b)
	}
	l.text = b.String()
	return l, nil
}

func newNode(f arrow.Field) node {
	n := node{name: f.Name, typ: f.Type}
	if v, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
		if id, err := strconv.Atoi(v); err == nil && id > 0 {
			n.id = id
		}
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for _, c := range t.Fields() {
			n.children = append(n.children, newNode(c))
		}
	case *arrow.MapType:
		n.children = []node{newNode(t.KeyField()), newNode(t.ItemField())}
	case *arrow.ListType:
		n.children = []node{newNode(t.ElemField())}
	}
	return n
}

func hasID(n node) bool {
	if n.id != 0 {
		return true
	}
	for _, c := range n.children {
		if hasID(c) {
			return true
		}
	}
	return false
}

// mapIDs gives columns their ids by name. The children of nested columns stay
// without, so that such columns are not read by name of their children.
func mapIDs(nodes []node, mapping iceberg.NameMapping) {
	for i := range nodes {
		for _, m := range mapping {
			if m.FieldID == nil {
				continue
			}
			for _, name := range m.Names {
				if name == nodes[i].name {
					nodes[i].id = *m.FieldID
				}
			}
		}
	}
}

func (n node) print(b *strings.Builder) {
	fmt.Fprintf(b, "%d:%q:%d", n.id, n.name, n.typ.ID())
	if len(n.children) == 0 {
		fmt.Fprintf(b, ":%s", n.typ)
		return
	}
	b.WriteByte('(')
	for _, c := range n.children {
		c.print(b)
		b.WriteByte(',')
	}
	b.WriteByte(')')
}

// columns finds the columns of a scan in a file. perFile is set when they hold a
// value of the file's partition.
func (l *layout) columns(s *plan.Scan, h *catalog.Handle, f *dataFile) (out []FileColumn, perFile bool, err error) {
	out = make([]FileColumn, len(s.Cols))
	for i, c := range s.Cols {
		if plan.IsVirtual(c.FieldID) {
			out[i] = FileColumn{Type: c.Type, Virtual: c.FieldID}
			continue
		}
		n, ok := l.byID[c.FieldID]
		if ok {
			field, known := s.Table.Field(c.FieldID)
			if !known {
				return nil, false, fmt.Errorf("scan of a field %d that the table does not have", c.FieldID)
			}
			out[i] = FileColumn{Name: n.name, Type: n.typ, Nested: n.ambiguous || !sameTree(n, field)}
			continue
		}
		def, fromPartition, err := missingValue(c, s.Table, h, f)
		if err != nil {
			return nil, false, err
		}
		perFile = perFile || fromPartition
		out[i] = FileColumn{Type: c.Type, Default: def}
	}
	return out, perFile, nil
}

// constants are the values, by field id, of the columns of a scan that a file does
// not have, NULL left out. What columns has refused does not come here.
func (f *dataFile) constants(s *plan.Scan, h *catalog.Handle, l *layout) map[int]*plan.Literal {
	var out map[int]*plan.Literal
	for _, c := range s.Cols {
		if _, ok := l.byID[c.FieldID]; ok || plan.IsVirtual(c.FieldID) {
			continue
		}
		if v, _, err := missingValue(c, s.Table, h, f); err == nil && v.Value != nil {
			if out == nil {
				out = map[int]*plan.Literal{}
			}
			out[c.FieldID] = v
		}
	}
	return out
}

// missingValue is the value of a column that a file does not have: that of an
// identity partition, else the initial default, else NULL. Source: Iceberg
// specification, "Column Projection".
func missingValue(c plan.ScanColumn, t *plan.Table, h *catalog.Handle, f *dataFile) (v *plan.Literal, fromPartition bool, err error) {
	for _, pf := range f.spec.Fields() {
		if _, identity := pf.Transform.(iceberg.IdentityTransform); !identity || pf.SourceID() != c.FieldID {
			continue
		}
		if p := f.partition[pf.FieldID]; p != nil {
			v, ok := literalOf(p, c.Type)
			if !ok {
				return nil, false, fault.New(fault.Unsupported, "A partition value of table '%s' has a type that SQE does not read", t.Name)
			}
			return v, true, nil
		}
	}
	for _, field := range h.Schema.Fields() {
		if field.ID != c.FieldID || field.InitialDefault == nil {
			continue
		}
		v, ok := defaultOf(field.InitialDefault, c.Type)
		if !ok {
			return nil, false, fault.New(fault.Unsupported, "The default of column '%s' of table '%s' is one that SQE does not read exactly; rewrite the data files of the table", field.Name, t.Name)
		}
		return v, false, nil
	}
	return &plan.Literal{Typ: c.Type}, false, nil
}

// readable reports whether an executor can read the column of a file itself, with
// at most a widening cast of a number.
func readable(c FileColumn, want arrow.DataType) bool {
	if c.Virtual != 0 {
		return c.Virtual == plan.FileField || c.Virtual == plan.PositionField
	}
	if c.Nested || isZonedNanos(want) {
		// DuckDB would read an instant with nanoseconds as one with microseconds.
		return false
	}
	if c.Name == "" || plan.IsNested(want) || arrow.TypeEqual(c.Type, want) {
		return true
	}
	return widens(c.Type, want)
}

// isZonedNanos reports whether t is Iceberg's timestamptz_ns.
func isZonedNanos(t arrow.DataType) bool {
	ts, ok := t.(*arrow.TimestampType)
	return ok && ts.Unit == arrow.Nanosecond && ts.TimeZone != ""
}

// widens reports whether want holds every number of type from (Iceberg's schema
// evolution).
func widens(from, want arrow.DataType) bool {
	switch from := from.(type) {
	case *arrow.Int32Type:
		return want.ID() == arrow.INT64
	case *arrow.Float32Type:
		return want.ID() == arrow.FLOAT64
	case *arrow.Decimal128Type:
		w, ok := want.(*arrow.Decimal128Type)
		return ok && w.Scale == from.Scale && w.Precision >= from.Precision
	}
	return false
}

// sameTree reports whether the fields inside a nested column are those of the
// table: same ids, names, order and types. It is true of a primitive column.
func sameTree(n node, f plan.Field) bool {
	if !plan.IsNested(f.Type) {
		return !plan.IsNested(n.typ)
	}
	if n.typ.ID() != f.Type.ID() || len(n.children) != len(f.Children) {
		return false
	}
	_, isStruct := f.Type.(*arrow.StructType)
	for i, c := range f.Children {
		have := n.children[i]
		if have.id != c.ID || (isStruct && have.name != c.Name) {
			return false
		}
		if plan.IsNested(c.Type) {
			if !sameTree(have, c) {
				return false
			}
		} else if !arrow.TypeEqual(have.typ, c.Type) {
			return false
		}
	}
	return true
}

// interner shares equal layouts: a table of many files has few.
type interner struct {
	mu     sync.Mutex
	byText map[string]*layout
}

func (i *interner) same(l *layout) *layout {
	i.mu.Lock()
	defer i.mu.Unlock()
	if have, ok := i.byText[l.text]; ok {
		return have
	}
	if len(i.byText) > 10_000 {
		clear(i.byText) // what is in use stays in use; it is only not shared any more
	}
	i.byText[l.text] = l
	return l
}
