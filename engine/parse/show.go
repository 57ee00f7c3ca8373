package parse

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// ShowCreate gives the table or view of SHOW CREATE TABLE and SHOW CREATE VIEW, and
// whether it must be a view; false for another statement.
func ShowCreate(s *SQL) (ref TableRef, view, ok bool) {
	show, ok := s.AST.(*sqlparser.Show)
	if !ok || s.Param > 0 {
		return ref, false, false
	}
	view = strings.EqualFold(show.Type, "create view")
	if !view && !strings.EqualFold(show.Type, "create table") {
		return ref, false, false
	}
	return TableRef{Database: show.Table.DbQualifier.String(), Name: show.Table.Name.String()}, view, true
}
