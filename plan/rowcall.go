package plan

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
)

// RowCall is an expression for which the catalogue has no function: an evaluator
// computes it row by row from the values of its operands, and from nothing else. To
// whoever rewrites a plan it is a function of its operands that may fail on any of
// them (it is never total).
type RowCall struct {
	// Name names the function, for display: it holds no literal of the statement.
	Name     string
	Rows     RowEvaluator
	Operands []Expr
	Typ      arrow.DataType
	// Volatile calls may differ between two rows of the same values.
	Volatile bool
}

// RowEvaluator computes a RowCall for some rows at once.
type RowEvaluator interface {
	// Eval takes an array for each operand, of its type and n rows long, and returns
	// an array of n rows of the type of the call. The caller releases it. Eval may be
	// called by several threads. Errors are faults that hold no value.
	Eval(ctx context.Context, operands []arrow.Array, n int) (arrow.Array, error)
	// Same reports whether the other evaluator gives the same for the same operands.
	Same(RowEvaluator) bool
}

func (*RowCall) expr() {}

// Type implements Expr.
func (e *RowCall) Type() arrow.DataType { return e.Typ }

// Args implements Expr.
func (e *RowCall) Args() []Expr { return e.Operands }

// WithArgs implements Expr.
func (e *RowCall) WithArgs(a []Expr) Expr {
	c := *e
	c.Operands = a
	return &c
}
