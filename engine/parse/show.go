package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// ShowCreateTable gives the table of SHOW CREATE TABLE; false for another statement.
func ShowCreateTable(s *SQL) (TableRef, bool) {
	show, ok := s.AST.(*sqlparser.Show)
	if !ok || !strings.EqualFold(show.Type, "create table") || s.Param > 0 {
		return TableRef{}, false
	}
	return TableRef{Database: show.Table.DbQualifier.String(), Name: show.Table.Name.String()}, true
}
