package bind

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	gmserrors "gopkg.in/src-d/go-errors.v1"

	"sqe/fault"
)

// failure carries an error through code that has no way to return one: callbacks
// of go-mysql-server, and the translator, which would otherwise test an error
// after every sub-expression. recovered turns it back at the package's border.
type failure struct{ err error }

// recovered returns a failure as the error that it is, and any other panic of
// binding as an internal error without its value, which may hold data.
func recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		*err = fault.Wrap(fault.Internal, fmt.Errorf("panic while binding: %T", p), "the statement cannot be bound; please report its shape")
	}
}

// refuse stops translation with an error that no other executor would help with.
func refuse(k fault.Kind, format string, args ...any) {
	panic(failure{fault.New(k, format, args...)})
}

func errNoTable(database, name string) error {
	return fault.New(fault.NotFound, "Table '%s.%s' doesn't exist, or you may not use it", database, name)
}

var quotedName = regexp.MustCompile(`["'\x60]([^"'\x60]*)["'\x60]`)

// fault turns an error of binding into one with a kind and our own text. Names in
// it are names of the statement; nothing else of the library's text is shown.
func (st *statement) fault(err error, ast sqlparser.SQLNode) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	var u untranslatable
	if errors.As(err, &u) {
		return fault.New(fault.Unsupported, "%s is not supported here; docs/sql.md lists what is", u.reason)
	}
	is := func(kinds ...*gmserrors.Kind) bool {
		for _, k := range kinds {
			if k.Is(err) {
				return true
			}
		}
		return false
	}
	// The names in the messages of these kinds are identifiers of the statement.
	name := func(i int) string {
		m := quotedName.FindAllStringSubmatch(err.Error(), -1)
		if i < len(m) {
			return m[i][1]
		}
		return ""
	}
	tail := func() string {
		_, t, _ := strings.Cut(err.Error(), ": ")
		return strings.TrimSpace(t)
	}
	switch {
	case is(sql.ErrColumnNotFound, sql.ErrTableColumnNotFound, sql.ErrUnknownColumn, planbuilder.ErrQualifiedOrderBy):
		if w, table, ok := st.namesWithheld(ast); ok {
			return fault.New(fault.Withheld, "column '%s' of '%s' is withheld: a policy masks it in a way that cannot be applied; leave it out", w, table)
		}
		switch {
		case sql.ErrTableColumnNotFound.Is(err):
			return fault.New(fault.NoColumn, "Unknown column '%s.%s'", name(0), name(1))
		case sql.ErrUnknownColumn.Is(err):
			return fault.New(fault.NoColumn, "Unknown column '%s' in '%s'", name(0), name(1))
		}
		return fault.New(fault.NoColumn, "Unknown column '%s'", name(0))
	case is(sql.ErrTableNotFound):
		return fault.New(fault.NotFound, "Table '%s' doesn't exist, or you may not use it", lastName(tail()))
	case is(sql.ErrInvalidRefInView):
		return fault.New(fault.NotFound, "a view names a table or column that does not exist or that you may not use")
	case is(sql.ErrDatabaseNotFound):
		return fault.New(fault.NoDatabase, "Unknown database '%s'", lastName(tail()))
	case is(sql.ErrNoDatabaseSelected):
		return fault.New(fault.NoDatabase, "No database selected; USE one, or write database.table")
	case is(sql.ErrAmbiguousColumnName, sql.ErrAmbiguousColumnOrAliasName, sql.ErrAmbiguousColumnInOrderBy):
		return fault.New(fault.BadStatement, "Column '%s' is ambiguous; write table.%s", name(0), name(0))
	case is(sql.ErrDuplicateAliasOrTable):
		return fault.New(fault.BadStatement, "Not unique table/alias: '%s'", lastName(tail()))
	case is(sql.ErrMisusedAlias):
		return fault.New(fault.BadStatement, "an alias cannot be used in the list that defines it; repeat the expression or use a derived table")
	case is(sql.ErrNoTablesUsed):
		return fault.New(fault.BadStatement, "No tables used")
	case is(sql.ErrFunctionNotFound, sql.ErrTableFunctionNotFound):
		return fault.New(fault.NoFunction, "the function '%s' does not exist in SQE; docs/sql.md lists those that do", name(0))
	case is(sql.ErrInvalidArgumentNumber):
		return fault.New(fault.BadStatement, "Incorrect parameter count in the call to function '%s'", name(0))
	case is(sql.ErrInvalidOperandColumns):
		return fault.New(fault.BadStatement, "Operand should contain 1 column")
	case is(sql.ErrColumnCountMismatch):
		return fault.New(fault.BadStatement, "the list of column names and the SELECT list have different column counts")
	case is(planbuilder.ErrUnionSchemasDifferentLength):
		return fault.New(fault.BadStatement, "The used SELECT statements have a different number of columns")
	case is(sql.ErrNonAggregatedColumnWithoutGroupBy):
		return fault.New(fault.BadStatement, "aggregates, window functions and plain columns are mixed in a way that needs a GROUP BY or a derived table")
	case is(sql.ErrUnknownSystemVariable):
		return fault.New(fault.BadStatement, "Unknown system variable '%s'", name(0))
	case is(sql.ErrInvalidTypeForLimit):
		return fault.New(fault.BadStatement, "LIMIT takes a number that is not negative")
	case is(sql.ErrUnsupportedFeature, sql.ErrUnsupportedSyntax):
		return fault.Wrap(fault.Unsupported, err, "the statement uses something that is not supported; docs/sql.md lists what is")
	}
	return fault.Wrap(fault.BadStatement, err, "the statement cannot be bound: its names or types do not fit together")
}

func lastName(s string) string {
	if i := strings.IndexAny(s, " ,;\n"); i > 0 {
		s = s[:i]
	}
	return s
}

// namesWithheld finds a withheld column that the statement names.
func (st *statement) namesWithheld(ast sqlparser.SQLNode) (column, table string, found bool) {
	if len(st.withheld) == 0 || ast == nil {
		return "", "", false
	}
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if c, ok := n.(*sqlparser.ColName); ok && !found {
			if t, ok := st.withheld[strings.ToLower(c.Name.String())]; ok {
				column, table, found = c.Name.String(), t, true
			}
		}
		return !found, nil
	}, ast)
	return column, table, found
}
