package bind

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/plan"
)

// narrow is what the condition of a query of information_schema says of the names
// that it can show: tools ask for one schema, or one table, of many. Lists then
// leave out what the condition would drop; it is applied all the same. A nil list
// says nothing.
type narrow struct{ databases, tables []string }

// The tables of information_schema with a row, or some, for each table or view, by
// the columns that name it and its database.
var describing = map[string]struct{ database, table string }{
	"schemata": {"schema_name", ""},
	"tables":   {"table_schema", "table_name"}, "views": {"table_schema", "table_name"}, "columns": {"table_schema", "table_name"},
	"statistics": {"table_schema", "table_name"}, "key_column_usage": {"table_schema", "table_name"},
	"table_constraints": {"table_schema", "table_name"}, "partitions": {"table_schema", "table_name"},
}

// narrowed reads the condition of a statement. With more than one table in it,
// wherever, it reads nothing: the condition may then be about another one's rows.
func narrowed(ast sqlparser.Statement, args []plan.Literal, current string) (n narrow) {
	query, ok := ast.(*sqlparser.Select)
	if !ok || query.Where == nil || len(query.From) != 1 {
		return narrow{}
	}
	from, ok := query.From[0].(*sqlparser.AliasedTableExpr)
	if !ok {
		return narrow{}
	}
	name, ok := from.Expr.(sqlparser.TableName)
	if !ok || !strings.EqualFold(name.DbQualifier.String(), "information_schema") {
		return narrow{}
	}
	columns, ok := describing[strings.ToLower(name.Name.String())]
	if !ok {
		return narrow{}
	}
	nested := false
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch node.(type) {
		case *sqlparser.Subquery, *sqlparser.JoinTableExpr:
			nested = true
		}
		return !nested, nil
	}, query)
	if nested {
		return narrow{}
	}
	for _, e := range conjuncts(query.Where.Expr) {
		column, values, ok := equals(e, args, current)
		switch {
		case !ok:
		case column == columns.database && n.databases == nil:
			n.databases = values
		case column == columns.table && n.tables == nil:
			n.tables = values
		}
	}
	return n
}

// conjuncts are the parts of a condition that must all be true.
func conjuncts(e sqlparser.Expr) []sqlparser.Expr {
	switch e := e.(type) {
	case *sqlparser.AndExpr:
		return append(conjuncts(e.Left), conjuncts(e.Right)...)
	case *sqlparser.ParenExpr:
		return conjuncts(e.Expr)
	}
	return []sqlparser.Expr{e}
}

// equals reads a condition that compares a column with texts for equality: the
// column in small letters, and the texts.
func equals(e sqlparser.Expr, args []plan.Literal, current string) (column string, values []string, ok bool) {
	c, ok := e.(*sqlparser.ComparisonExpr)
	if !ok {
		return "", nil, false
	}
	left, right := c.Left, c.Right
	if _, ok := left.(*sqlparser.ColName); !ok && c.Operator == sqlparser.EqualStr {
		left, right = right, left
	}
	name, ok := left.(*sqlparser.ColName)
	if !ok {
		return "", nil, false
	}
	list := sqlparser.ValTuple{right}
	switch c.Operator {
	case sqlparser.EqualStr, sqlparser.LikeStr:
	case sqlparser.InStr:
		if list, ok = right.(sqlparser.ValTuple); !ok {
			return "", nil, false
		}
	default:
		return "", nil, false
	}
	for _, v := range list {
		text, ok := constantText(v, args, current)
		// Names are compared without case, and by a collation for which more letters
		// than those are the same: nothing is left out for any but plain ones.
		if !ok || !plainName(text) || c.Operator == sqlparser.LikeStr && strings.ContainsAny(text, `%_\`) {
			return "", nil, false
		}
		values = append(values, text)
	}
	return name.Name.Lowered(), values, len(values) > 0
}

// constantText is the text that an expression is. A number is none: every name that does
// not begin with digits is equal to 0.
func constantText(e sqlparser.Expr, args []plan.Literal, current string) (string, bool) {
	switch e := e.(type) {
	case *sqlparser.SQLVal:
		switch e.Type {
		case sqlparser.StrVal:
			return string(e.Val), true
		case sqlparser.ValArg:
			for i, a := range args {
				if string(e.Val) == placeholder(i) {
					s, ok := a.Value.(string)
					return s, ok
				}
			}
		}
	case *sqlparser.FuncExpr:
		if (e.Name.EqualString("database") || e.Name.EqualString("schema")) && e.Qualifier.IsEmpty() && len(e.Exprs) == 0 {
			return current, current != ""
		}
	}
	return "", false
}

// plainName reports whether a text is of ASCII letters and the like alone, and not
// padded.
func plainName(s string) bool {
	return s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// keep drops the names that a list does not have.
func keep(names, list []string) []string {
	if list == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return plainName(name) && !slices.ContainsFunc(list, func(l string) bool { return strings.EqualFold(l, name) })
	})
}
