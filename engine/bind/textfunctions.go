package bind

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"

	"sqe/plan"
)

func (t *translator) substring(e *function.Substring) plan.Expr {
	args := []plan.Expr{t.argument('s', "substr", t.expr(e.Str)), t.argument('i', "substr", t.expr(e.Start))}
	if e.Len != nil {
		args = append(args, t.argument('i', "substr", t.expr(e.Len)))
	}
	return t.call("substr", args...)
}

func (t *translator) trim(e sql.Expression, _ []sql.Expression) plan.Expr {
	f, ok := e.(*function.Trim)
	if !ok {
		cannot("this form of TRIM")
	}
	c := f.Children()
	if len(c) != 2 {
		cannot("this form of TRIM")
	}
	name := "trim"
	// The direction shows in the text only; BOTH is the one without a word.
	switch s := f.String(); {
	case strings.HasPrefix(strings.ToLower(s), "trim(leading "):
		name = "ltrim"
	case strings.HasPrefix(strings.ToLower(s), "trim(trailing "):
		name = "rtrim"
	}
	str, pat := t.argument('s', name, t.expr(c[0])), t.argument('s', name, t.expr(c[1]))
	l, ok := pat.(*plan.Literal)
	if !ok {
		cannot("TRIM of something else than a literal")
	}
	s, isText := l.Value.(string)
	if !isText {
		return null(plan.String)
	}
	if s == " " {
		return t.call(name, str)
	}
	return t.call(name, str, l)
}
