package bind

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"sqe/fault"
)

// moreVariables are variables of MySQL that clients ask for and go-mysql-server does
// not have. The server always offers TLS.
func moreVariables() []sql.SystemVariable {
	out := []sql.SystemVariable{}
	for _, name := range []string{"have_ssl", "have_openssl"} {
		out = append(out, &sql.MysqlSystemVariable{
			Name: name, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Global), Type: types.NewSystemStringType(name), Default: "YES",
		})
	}
	for _, name := range []string{warningCount, errorCount} {
		out = append(out, &sql.MysqlSystemVariable{
			Name: name, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Session), Type: types.NewSystemIntType(name, 0, 65535, false), Default: int64(0),
		})
	}
	return out
}

const (
	warningCount = "warning_count"
	errorCount   = "error_count"
)

// GetSessionVariable implements sql.Session: the number of warnings is that of now. The
// number of errors stays 0: an error is told in the answer of its statement alone.
func (s *boundedSession) GetSessionVariable(ctx *sql.Context, name string) (any, error) {
	if strings.EqualFold(name, warningCount) {
		return int64(s.WarningCount()), nil
	}
	return s.BaseSession.GetSessionVariable(ctx, name)
}

// diagnostics reports whether a statement shows the warnings or errors of the one
// before, and so leaves them as they are.
func diagnostics(ast sqlparser.Statement) bool {
	show, ok := ast.(*sqlparser.Show)
	return ok && (strings.EqualFold(show.Type, "warnings") || strings.EqualFold(show.Type, "errors"))
}

// countOrErrors is what go-mysql-server knows instead of SHOW ERRORS and SHOW COUNT(*)
// of warnings or errors.
func countOrErrors(ast sqlparser.Statement) (sqlparser.Statement, error) {
	if !diagnostics(ast) {
		return ast, nil
	}
	show := ast.(*sqlparser.Show)
	errors := strings.EqualFold(show.Type, "errors")
	text := ""
	switch {
	case show.CountStar && errors:
		text = "SELECT @@session." + errorCount
	case show.CountStar:
		text = "SELECT @@session." + warningCount
	case errors:
		text = "SHOW WARNINGS LIMIT 0" // no warning is one
	default:
		return ast, nil
	}
	out, err := sqlparser.Parse(text)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the warnings cannot be shown")
	}
	return out, nil
}
