package plan

import "github.com/apache/arrow-go/v18/arrow"

// Expr is a scalar expression. The set of implementations is closed. Boolean
// expressions are three-valued as in SQL.
type Expr interface {
	Type() arrow.DataType
	// Args lists the direct sub-expressions (not the plan of a sub-query).
	Args() []Expr
	// WithArgs returns a copy with other sub-expressions (the same number).
	WithArgs([]Expr) Expr

	expr()
}

// Ref is the value of a column of the input, or of an enclosing query where it
// stands in a correlated sub-query.
type Ref struct {
	ID   ColumnID
	Typ  arrow.DataType
	Name string // for display only
}

// Literal is a constant. Value is nil for NULL, else by type: bool; int64 for
// every signed integer type and uint64 for every unsigned one; float64 for both
// floats; string for text and JSON; []byte for binary, fixed and UUID;
// decimal128.Num at the scale of Typ; arrow.Date32; arrow.Time64 in
// microseconds; arrow.Timestamp in the unit of Typ.
type Literal struct {
	Value any
	Typ   arrow.DataType
}

// Call applies a scalar function of the catalogue.
type Call struct {
	Func     *Function
	Operands []Expr
	Typ      arrow.DataType
}

// When is one branch of a Case.
type When struct{ Cond, Then Expr }

// Case is a searched CASE; Else nil means NULL.
type Case struct {
	Whens []When
	Else  Expr
	Typ   arrow.DataType
}

// Cast converts to a type. With Try a value that cannot be converted becomes
// NULL, so that a Try cast is total; without, it is an error.
type Cast struct {
	Operand Expr
	Typ     arrow.DataType
	Try     bool
}

// In is value IN (list).
type In struct {
	Operand Expr
	List    []Expr
}

// Like matches with % and _. Escape 0 means no escape character.
type Like struct {
	Operand, Pattern Expr
	Escape           rune
}

// SubqueryKind is the kind of a Subquery.
type SubqueryKind uint8

// The kinds of sub-queries.
const (
	ScalarSubquery SubqueryKind = iota // one column, at most one row
	ExistsSubquery
	InSubquery // Operand IN (plan); one column
)

// Subquery evaluates a plan. Refs in it to columns that the plan does not create
// are correlated: they are columns of the node that holds the expression.
type Subquery struct {
	Kind    SubqueryKind
	Operand Expr // InSubquery only
	Plan    Node
	Typ     arrow.DataType
}

func (*Ref) expr()      {}
func (*Literal) expr()  {}
func (*Call) expr()     {}
func (*Case) expr()     {}
func (*Cast) expr()     {}
func (*In) expr()       {}
func (*Like) expr()     {}
func (*Subquery) expr() {}

// Type implements Expr.
func (e *Ref) Type() arrow.DataType { return e.Typ }

// Type implements Expr.
func (e *Literal) Type() arrow.DataType { return e.Typ }

// Type implements Expr.
func (e *Call) Type() arrow.DataType { return e.Typ }

// Type implements Expr.
func (e *Case) Type() arrow.DataType { return e.Typ }

// Type implements Expr.
func (e *Cast) Type() arrow.DataType { return e.Typ }

// Type implements Expr.
func (e *In) Type() arrow.DataType { return Bool }

// Type implements Expr.
func (e *Like) Type() arrow.DataType { return Bool }

// Type implements Expr.
func (e *Subquery) Type() arrow.DataType {
	if e.Kind == ScalarSubquery {
		return e.Typ
	}
	return Bool
}

// Args implements Expr.
func (e *Ref) Args() []Expr { return nil }

// Args implements Expr.
func (e *Literal) Args() []Expr { return nil }

// Args implements Expr.
func (e *Call) Args() []Expr { return e.Operands }

// Args implements Expr.
func (e *Case) Args() []Expr {
	out := make([]Expr, 0, 2*len(e.Whens)+1)
	for _, w := range e.Whens {
		out = append(out, w.Cond, w.Then)
	}
	if e.Else != nil {
		out = append(out, e.Else)
	}
	return out
}

// Args implements Expr.
func (e *Cast) Args() []Expr { return []Expr{e.Operand} }

// Args implements Expr.
func (e *In) Args() []Expr { return append([]Expr{e.Operand}, e.List...) }

// Args implements Expr.
func (e *Like) Args() []Expr { return []Expr{e.Operand, e.Pattern} }

// Args implements Expr.
func (e *Subquery) Args() []Expr {
	if e.Operand == nil {
		return nil
	}
	return []Expr{e.Operand}
}

// WithArgs implements Expr.
func (e *Ref) WithArgs([]Expr) Expr { return e }

// WithArgs implements Expr.
func (e *Literal) WithArgs([]Expr) Expr { return e }

// WithArgs implements Expr.
func (e *Call) WithArgs(a []Expr) Expr { return &Call{Func: e.Func, Operands: a, Typ: e.Typ} }

// WithArgs implements Expr.
func (e *Case) WithArgs(a []Expr) Expr {
	c := &Case{Whens: make([]When, len(e.Whens)), Typ: e.Typ}
	for i := range e.Whens {
		c.Whens[i] = When{Cond: a[2*i], Then: a[2*i+1]}
	}
	if e.Else != nil {
		c.Else = a[len(a)-1]
	}
	return c
}

// WithArgs implements Expr.
func (e *Cast) WithArgs(a []Expr) Expr { return &Cast{Operand: a[0], Typ: e.Typ, Try: e.Try} }

// WithArgs implements Expr.
func (e *In) WithArgs(a []Expr) Expr { return &In{Operand: a[0], List: a[1:]} }

// WithArgs implements Expr.
func (e *Like) WithArgs(a []Expr) Expr {
	return &Like{Operand: a[0], Pattern: a[1], Escape: e.Escape}
}

// WithArgs implements Expr.
func (e *Subquery) WithArgs(a []Expr) Expr {
	s := *e
	if e.Operand != nil {
		s.Operand = a[0]
	}
	return &s
}
