package plan

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// The types of MySQL 8's arithmetic: + and - keep the larger scale, * adds the
// scales (up to 30), / adds four digits to the first; precision ends at 38.
func TestArithmeticTypes(t *testing.T) {
	d := func(p, s int32) Expr { return &Literal{Typ: Decimal(p, s)} }
	of := func(t arrow.DataType) Expr { return &Literal{Typ: t} }
	for _, c := range []struct {
		e    *Call
		want arrow.DataType
	}{
		{MustCall("add", d(10, 2), d(5, 4)), Decimal(13, 4)},
		{MustCall("sub", d(10, 2), of(Int64)), Decimal(22, 2)},
		{MustCall("add", d(38, 10), d(38, 2)), Decimal(38, 10)},
		{MustCall("mul", d(10, 2), d(5, 4)), Decimal(15, 6)},
		{MustCall("mul", d(15, 2), d(16, 2)), Decimal(31, 4)},
		{MustCall("mul", d(38, 20), d(38, 20)), Decimal(38, 30)},
		{MustCall("mul", of(Int32), d(3, 1)), Decimal(13, 1)},
		{MustCall("div", d(10, 2), d(5, 4)), Decimal(38, 6)},
		{MustCall("div", of(Int64), of(Int64)), Decimal(38, 4)},
		{MustCall("div", d(38, 28), of(Int64)), Decimal(38, 30)},
		{MustCall("mul", of(Int32), of(Int64)), Int64},
		{MustCall("mul", of(Int32), of(Float32)), Float64},
		{MustCall("add", of(Bool), of(Bool)), Int64},
		{MustCall("neg", of(Int32)), Int64},
		{MustCall("abs", of(Bool)), Int64},
		{MustCall("neg", d(5, 2)), Decimal(5, 2)},
		{MustCall("abs", of(Float32)), Float32},
	} {
		if !arrow.TypeEqual(c.e.Typ, c.want) {
			t.Errorf("%s has type %s, want %s", c.e.Func.Name, c.e.Typ, c.want)
		}
	}
}
