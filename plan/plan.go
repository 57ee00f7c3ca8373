// Package plan is the vocabulary of the engine: a small, closed, immutable
// relational algebra. Binding produces it, the policy rewriter transforms it and
// every executor reads it.
//
// Invariants:
//
//   - Every column that a node creates has a ColumnID that no other node of the
//     statement creates. Expressions refer to columns by id only, so nothing can
//     be captured or shadowed, and no name survives binding.
//   - Nodes and expressions are never changed after they were built; a change
//     makes a new node (WithInputs, WithExprs). They may therefore be shared
//     between goroutines and between a cached template and a statement.
//   - Types are Arrow types. Iceberg's uuid is UUID, nested values that were
//     turned into text are JSON (see types.go).
//   - A Scan yields raw values. Only rewrite puts a Guard above it, and no
//     executor runs a plan in which a Scan is not below a Guard
//     (rewrite.Verify).
//
// The package must never import another package of this module, know SQL text,
// or hold data values other than literals of the statement.
package plan

import "github.com/apache/arrow-go/v18/arrow"

// ColumnID names one column of one statement. The zero value names no column.
type ColumnID int32

// IDs hands out column ids of one statement. It is not safe for concurrent use.
type IDs struct{ last ColumnID }

// New returns an id that was neither returned nor reserved before.
func (a *IDs) New() ColumnID { a.last++; return a.last }

// Reserve makes sure that New never returns id or a smaller one.
func (a *IDs) Reserve(id ColumnID) {
	if id > a.last {
		a.last = id
	}
}

// Column is one output column of a node.
type Column struct {
	ID       ColumnID
	Name     string // for display only
	Type     arrow.DataType
	Nullable bool
}

// Node is a relational operator. The set of implementations is closed.
type Node interface {
	// Columns lists what the node yields, in order. An id may occur twice
	// (SELECT a, a).
	Columns() []Column
	// Inputs lists the relational inputs, without the plans inside expressions.
	Inputs() []Node
	// WithInputs returns a copy with other inputs (the same number).
	WithInputs([]Node) Node
	// Exprs lists the expressions of the node itself, in a fixed order.
	Exprs() []Expr
	// WithExprs returns a copy with other expressions (the same number and order).
	WithExprs([]Expr) Node

	node()
}

// Scan reads one snapshot of one table. It yields raw values: nothing but a
// Guard may stand above it, with the row filter and the masks in between.
type Scan struct {
	Table *Table
	Cols  []ScanColumn
	// Prune is advice: rows for which it is not true are not needed. It is a
	// conjunction over Cols that may be used to skip files and row groups; a
	// scan may ignore it, and what is above the scan still filters.
	Prune Expr
	// Definer marks a table that a policy text reads (a mapping table in a row
	// filter). It is read with the rights of the policy and yields to that
	// policy's expression only, never to the user's.
	Definer bool
}

// ScanColumn is a column of a Scan, bound to a top-level Iceberg field id.
type ScanColumn struct {
	Column
	FieldID int
}

// Values yields literal rows. With no columns and one row it is MySQL's DUAL.
type Values struct {
	Cols []Column
	Rows [][]Expr
}

// Filter keeps the rows for which Cond is true.
type Filter struct {
	Input Node
	Cond  Expr
}

// Item is a computed column.
type Item struct {
	Column
	Expr Expr
}

// Project computes Items and drops everything else.
type Project struct {
	Input Node
	Items []Item
}

// Aggregate groups by Keys and yields the keys, then the aggregates. Without
// keys it yields exactly one row.
type Aggregate struct {
	Input Node
	Keys  []Item
	Aggs  []AggItem
}

// AggItem is one aggregate of an Aggregate node.
type AggItem struct {
	Column
	Call AggCall
}

// AggCall applies an aggregate function. count(*) has no argument.
type AggCall struct {
	Func     *Function
	Args     []Expr
	Distinct bool
	OrderBy  []SortKey // group_concat
	Sep      string    // group_concat
}

// Window adds Items to the columns of its input.
type Window struct {
	Input Node
	Items []WindowItem
}

// WindowItem is one window function call with its window.
type WindowItem struct {
	Column
	Call        AggCall
	PartitionBy []Expr
	OrderBy     []SortKey
	Frame       *Frame // nil: the default frame
}

// Frame is an explicit window frame.
type Frame struct {
	Rows       bool // ROWS, else RANGE
	Start, End Bound
}

// Bound is one end of a Frame.
type Bound struct {
	Kind   BoundKind
	Offset Expr // for Preceding and Following
}

// BoundKind says where a frame ends.
type BoundKind uint8

// The kinds of frame bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Distinct drops duplicate rows; NULLs are equal to each other.
type Distinct struct{ Input Node }

// SortKey orders by Expr. MySQL's order puts NULL first ascending, last
// descending; NullsFirst says it explicitly.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// Sort orders its input.
type Sort struct {
	Input Node
	Keys  []SortKey
}

// Limit yields at most Count rows (negative: all) after skipping Offset.
type Limit struct {
	Input         Node
	Count, Offset int64
}

// JoinKind is the kind of a Join.
type JoinKind uint8

// The kinds of joins. Semi and Anti yield the columns of the left side only.
const (
	Inner JoinKind = iota
	Left
	Right
	Full
	Semi
	Anti
	Cross
)

// Join combines two inputs. On is nil for Cross. With Lateral the right side
// refers to columns of the left side.
type Join struct {
	Kind        JoinKind
	Left, Right Node
	On          Expr
	Lateral     bool
}

// SetKind is the kind of a SetOp.
type SetKind uint8

// The set operations.
const (
	Union SetKind = iota
	Intersect
	Except
)

// SetOp combines two inputs by position into fresh columns. The inputs already
// have the types of Cols.
type SetOp struct {
	Kind        SetKind
	All         bool
	Left, Right Node
	Cols        []Column
}

// Recursive is WITH RECURSIVE: Anchor seeds the work table, Step is repeated
// over WorkTable{ID} until it yields nothing.
type Recursive struct {
	ID           int
	Name         string
	Anchor, Step Node
	All          bool // UNION ALL
	Cols         []Column
}

// WorkTable reads the rows that the previous round of Recursive{ID} made.
type WorkTable struct {
	ID   int
	Cols []Column
}

// Guard is the barrier that rewrite puts around a scan: above it only the
// filtered, masked relation exists. Input is [Project of masks] over [Filter]
// over Scan; its columns pass through with their ids.
type Guard struct {
	Input Node
	Table *Table
	// Masked holds the ids whose values are not the raw ones. An expression may
	// move below the guard only if it refers to none of them and is total.
	Masked map[ColumnID]bool
	// Filtered says that rows are hidden.
	Filtered bool
}

// Foreign is a piece of the statement that our algebra cannot say and that a row
// executor runs over its (governed) inputs. Handle belongs to engine/bind.
type Foreign struct {
	Children []Node
	Cols     []Column
	Handle   any
	Reason   string // why it did not compile; holds no literal of the statement
}

func (*Scan) node()      {}
func (*Values) node()    {}
func (*Filter) node()    {}
func (*Project) node()   {}
func (*Aggregate) node() {}
func (*Window) node()    {}
func (*Distinct) node()  {}
func (*Sort) node()      {}
func (*Limit) node()     {}
func (*Join) node()      {}
func (*SetOp) node()     {}
func (*Recursive) node() {}
func (*WorkTable) node() {}
func (*Guard) node()     {}
func (*Foreign) node()   {}
