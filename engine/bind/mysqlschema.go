package bind

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// mysqlSchema is the database mysql, of which drivers read two tables (JDBC's
// getTablePrivileges and getColumnPrivileges). They show what table_privileges of
// information_schema does. It is in no list of databases.
type mysqlSchema struct{}

// Name implements sql.Database.
func (mysqlSchema) Name() string { return "mysql" }

// GetTableNames implements sql.Database.
func (mysqlSchema) GetTableNames(*sql.Context) ([]string, error) {
	return []string{"columns_priv", "tables_priv"}, nil
}

// GetTableInsensitive implements sql.Database.
func (mysqlSchema) GetTableInsensitive(_ *sql.Context, name string) (sql.Table, bool, error) {
	switch strings.ToLower(name) {
	case "tables_priv":
		return mysqlTable("tables_priv", tablesPriv, "Host", "Db", "User", "Table_name", "Grantor", "Table_priv", "Column_priv"), true, nil
	case "columns_priv":
		// There are no privileges on columns: masks hide them.
		return mysqlTable("columns_priv", nobody, "Host", "Db", "User", "Table_name", "Column_name", "Column_priv"), true, nil
	}
	return nil, false, sql.ErrDatabaseNotFound.New("mysql")
}

func mysqlTable(name string, rows func(*sql.Context, Privileged, string) ([]sql.Row, error), columns ...string) sql.Table {
	out := &information_schema.InformationSchemaTable{TableName: name, Reader: reader(rows)}
	for _, c := range columns {
		out.TableSchema = append(out.TableSchema, &sql.Column{Name: c, Type: types.LongText, Source: name, DatabaseSource: "mysql"})
	}
	return out
}

func nobody(*sql.Context, Privileged, string) ([]sql.Row, error) { return nil, nil }

// tablesPriv has a row for each table, with MySQL's set of words. Who granted is for
// administrators, and SHOW GRANTS tells them.
func tablesPriv(ctx *sql.Context, p Privileged, user string) (out []sql.Row, err error) {
	list, err := p.Privileges(ctx)
	var last *Privilege
	for _, x := range list {
		if x.Table == "" {
			continue
		}
		var words []string
		for _, w := range x.Words {
			words = append(words, setWord(w))
		}
		if last != nil && last.Database == x.Database && last.Table == x.Table {
			row := out[len(out)-1]
			row[5] = row[5].(string) + "," + strings.Join(words, ",")
		} else {
			out = append(out, sql.Row{"%", x.Database, user, x.Table, "", strings.Join(words, ","), ""})
		}
		if row := out[len(out)-1]; x.Grantable && !strings.Contains(row[5].(string), "Grant") {
			row[5] = row[5].(string) + ",Grant"
		}
		last = &x
	}
	return out, err
}
