package bind

import (
	"context"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
)

// Privileged is Relations that knows what the principal may do, for the tables of
// information_schema about privileges and roles. Of others they show nothing. With
// Relations that are not Privileged they are empty.
type Privileged interface {
	// Privileges lists those for which MySQL has a word.
	Privileges(ctx context.Context) ([]Privilege, error)
	// PrincipalRoles lists the roles that the principal has, and those that act in the
	// session.
	PrincipalRoles() (held, active []string)
}

// Privilege is a privilege of the principal on a table, or on a database when Table is
// empty.
type Privilege struct {
	Database, Table string
	// Words of MySQL, as SHOW GRANTS has them.
	Words []string
	// Grantable: the principal may pass it on.
	Grantable bool
}

// readPrivileges has the tables of information_schema about privileges and roles read
// from the Relations of the statement, where the library asks a database of its own.
func readPrivileges(schema sql.Database) {
	for name, rows := range map[string]func(*sql.Context, Privileged, string) ([]sql.Row, error){
		information_schema.UserPrivilegesTableName:   userPrivileges,
		information_schema.SchemaPrivilegesTableName: schemaPrivileges,
		information_schema.TablePrivilegesTableName:  tablePrivileges,
		information_schema.EnabledRolesTablesName:    enabledRoles,
		information_schema.ApplicableRolesTableName:  applicableRoles,
	} {
		t, ok, err := schema.GetTableInsensitive(nil, name)
		own, is := t.(*information_schema.InformationSchemaTable)
		if !ok || err != nil || !is {
			panic("bind: information_schema has no table " + name) // a part of the program
		}
		own.Reader = func(ctx *sql.Context, _ sql.Catalog) (sql.RowIter, error) {
			p, ok := stateOf(ctx).rel.(Privileged)
			if !ok {
				return sql.RowsToRowIter(), nil
			}
			out, err := rows(ctx, p, ctx.Client().User)
			return sql.RowsToRowIter(out...), err
		}
	}
}

// account is a user as MySQL writes one, from everywhere.
func account(user string) string { return "'" + strings.ReplaceAll(user, "'", "''") + "'@'%'" }

func yes(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// userPrivileges has one row, which says that there is no privilege on everything.
func userPrivileges(_ *sql.Context, _ Privileged, user string) ([]sql.Row, error) {
	return []sql.Row{{account(user), "def", "USAGE", "NO"}}, nil
}

func schemaPrivileges(ctx *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	list, err := p.Privileges(ctx)
	for _, x := range list {
		for _, w := range x.Words {
			if x.Table == "" {
				out = append(out, sql.Row{account(user), "def", x.Database, w, yes(x.Grantable)})
			}
		}
	}
	return out, err
}

func tablePrivileges(ctx *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	list, err := p.Privileges(ctx)
	for _, x := range list {
		for _, w := range x.Words {
			if x.Table != "" {
				out = append(out, sql.Row{account(user), "def", x.Database, x.Table, w, yes(x.Grantable)})
			}
		}
	}
	return out, err
}

func enabledRoles(_ *sql.Context, p Privileged, _ string) (out []sql.Row, err error) {
	_, active := p.PrincipalRoles()
	for _, r := range active {
		out = append(out, sql.Row{r, "%", "YES", "NO"})
	}
	return out, nil
}

func applicableRoles(_ *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	held, _ := p.PrincipalRoles()
	for _, r := range held {
		out = append(out, sql.Row{user, "%", user, "%", r, "%", "NO", "YES", "NO"})
	}
	return out, nil
}
