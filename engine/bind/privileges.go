package bind

import (
	"context"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// Privileged is Relations that knows what the principal may do, for the tables of
// information_schema about privileges and roles. Of others they show nothing. With
// Relations that are not Privileged they are empty.
type Privileged interface {
	// Privileges lists those for which MySQL has a word.
	Privileges(ctx context.Context) ([]Privilege, error)
	// RolePrivileges lists those on tables that the roles of the session give.
	RolePrivileges(ctx context.Context) ([]Privilege, error)
	PrincipalRoles(ctx context.Context) (Roles, error)
}

// Roles are those of the principal.
type Roles struct {
	Held   []string
	Active []string // in the session
	// Grantable: the principal may give them to others.
	Grantable bool
}

// Privilege is a privilege of the principal on a table, or on a database when Table is
// empty.
type Privilege struct {
	Database, Table string
	// Role gives it; "": it does not matter by which way.
	Role string
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
		information_schema.RoleTableGrantsTableName:  roleTableGrants,

		information_schema.AdministrableRoleAuthorizationsTableName: administrableRoles,
	} {
		t, ok, err := schema.GetTableInsensitive(nil, name)
		own, is := t.(*information_schema.InformationSchemaTable)
		if !ok || err != nil || !is {
			panic("bind: information_schema has no table " + name) // a part of the program
		}
		own.Reader = reader(rows)
		own.TableSchema = own.TableSchema.Copy()
		for _, c := range own.TableSchema {
			if _, set := c.Type.(sql.SetType); set {
				c.Type = types.LongText // the words, and not the numbers of them
			}
		}
	}
}

// reader has a table read from the Relations of the statement.
func reader(rows func(*sql.Context, Privileged, string) ([]sql.Row, error)) func(*sql.Context, sql.Catalog) (sql.RowIter, error) {
	return func(ctx *sql.Context, _ sql.Catalog) (sql.RowIter, error) {
		p, ok := stateOf(ctx).rel.(Privileged)
		if !ok {
			return sql.RowsToRowIter(), nil
		}
		out, err := rows(ctx, p, ctx.Client().User)
		return sql.RowsToRowIter(out...), err
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

func enabledRoles(ctx *sql.Context, p Privileged, _ string) (out []sql.Row, err error) {
	roles, err := p.PrincipalRoles(ctx)
	for _, r := range roles.Active {
		out = append(out, sql.Row{r, "%", "YES", "NO"})
	}
	return out, err
}

func applicableRoles(ctx *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	roles, err := p.PrincipalRoles(ctx)
	for _, r := range roles.Held {
		out = append(out, sql.Row{user, "%", user, "%", r, "%", yes(roles.Grantable), "YES", "NO"})
	}
	return out, err
}

// administrableRoles are the applicable ones that one may give to others.
func administrableRoles(ctx *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	roles, err := p.PrincipalRoles(ctx)
	if err != nil || !roles.Grantable {
		return nil, err
	}
	return applicableRoles(ctx, p, user)
}

// roleTableGrants does not say who granted: that is for administrators, and SHOW GRANTS
// tells them.
func roleTableGrants(ctx *sql.Context, p Privileged, _ string) (out []sql.Row, err error) {
	list, err := p.RolePrivileges(ctx)
	for _, x := range list {
		for _, w := range x.Words {
			out = append(out, sql.Row{nil, nil, x.Role, "%", "def", x.Database, x.Table, setWord(w), yes(x.Grantable)})
		}
	}
	return out, err
}

// setWord is a word of MySQL as its sets of privileges spell it.
func setWord(w string) string { return strings.ToUpper(w[:1]) + strings.ToLower(w[1:]) }
