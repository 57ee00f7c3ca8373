package parse

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Named is a table or view as a statement names it; Database is "" when it does not
// say one.
type Named struct{ Database, Name string }

// namesIn lists the tables and views that a statement names, each once. It leaves out
// what may be the name of a common table expression, and does not say that anything
// is there: it is for asking about several at once, ahead of binding.
func namesIn(ast sqlparser.SQLNode) []Named {
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

// NamesOf is namesIn of a statement that reads or changes rows, with the table that it
// changes.
func NamesOf(stmt Statement) []Named {
	var out []Named
	add := func(all ...Named) {
		for _, n := range all {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	target := func(t TableRef) { add(Named(t)) }
	expr := func(e *Expr) {
		if e != nil {
			add(namesIn(e.AST)...)
		}
	}
	set := func(list []Assignment) {
		for _, a := range list {
			expr(&a.Value)
		}
	}
	switch x := stmt.(type) {
	case *SQL:
		add(namesIn(x.AST)...)
	case *Insert:
		target(x.Table)
		if x.Source != nil {
			add(namesIn(x.Source.AST)...)
		}
	case *Delete:
		target(x.Table)
		expr(x.Where)
	case *Update:
		target(x.Table)
		set(x.Set)
		expr(x.Where)
	case *Merge:
		target(x.Table)
		add(namesIn(x.Source.AST)...)
		expr(&x.On)
		for _, c := range x.Clauses {
			expr(c.And)
			set(c.Set)
			for _, v := range c.Values {
				expr(&v.Expr)
			}
		}
	}
	return out
}
