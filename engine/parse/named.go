package parse

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Named is a table or view as a statement names it; Database is "" when it does not
// say one.
type Named struct{ Database, Name string }

// Names lists the tables and views that a statement names, each once. It leaves out
// what may be the name of a common table expression, and does not say that anything
// is there: it is for asking about several at once, ahead of binding.
func Names(ast sqlparser.SQLNode) []Named {
	var out []Named
	expressions := map[string]bool{}
	var visit func(n sqlparser.SQLNode)
	with := func(w *sqlparser.With) {
		if w == nil {
			return
		}
		for _, cte := range w.Ctes {
			expressions[strings.ToLower(cte.As.String())] = true
			visit(cte.AliasedTableExpr.Expr)
		}
	}
	visit = func(n sqlparser.SQLNode) {
		_ = sqlparser.Walk(func(x sqlparser.SQLNode) (bool, error) {
			switch x := x.(type) {
			case *sqlparser.Select:
				if x != nil {
					with(x.With)
				}
			case *sqlparser.SetOp:
				if x != nil {
					with(x.With)
				}
			case *sqlparser.AliasedTableExpr:
				if name, ok := x.Expr.(sqlparser.TableName); ok {
					named := Named{name.DbQualifier.String(), name.Name.String()}
					if !slices.Contains(out, named) {
						out = append(out, named)
					}
				}
			}
			return true, nil
		}, n)
	}
	if ast != nil {
		visit(ast)
	}
	return slices.DeleteFunc(out, func(n Named) bool { return n.Database == "" && expressions[strings.ToLower(n.Name)] })
}
