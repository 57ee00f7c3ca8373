package engine

import (
	"context"
	"strings"

	"sqe/engine/parse"
	"sqe/grants"
)

// access runs the statements about who may do what; ok is false when the statement
// is none of them.
func (st *statement) access(ctx context.Context, stmt parse.Statement) (res *Result, ok bool, err error) {
	switch stmt := stmt.(type) {
	case *parse.Grant:
		res, err = st.grantRun(ctx, stmt)
	case *parse.ExplainGrant:
		res, err = st.explainGrant(ctx, stmt)
	case *parse.GrantRoles:
		res, err = st.grantRoles(ctx, stmt)
	case *parse.CreateRole:
		res, err = st.createRole(ctx, stmt)
	case *parse.DropRole:
		res, err = st.dropRole(ctx, stmt)
	case *parse.CleanupTraversal:
		res, err = st.cleanupTraversal(ctx, stmt)
	case *parse.ListGrants:
		res, err = st.listGrants(ctx, stmt)
	case *parse.ShowEffectiveGrants:
		res, err = st.effectiveGrants(ctx, stmt)
	case *parse.ShowPrivileges:
		res = st.showPrivileges()
	case *parse.CheckAccess:
		res, err = st.checkAccess(ctx, stmt)
	case *parse.ShowAccess:
		res, err = st.showAccess(ctx, stmt)
	case *parse.ShowRoles:
		res, err = st.showRoles(ctx, stmt)
	case *parse.ShowRoleGrants:
		res, err = st.showRoleGrants(ctx, stmt)
	default:
		return nil, false, nil
	}
	return res, true, err
}

// accessKind is the kind of a statement that access runs, "" of any other.
func accessKind(stmt parse.Statement) string {
	switch stmt.(type) {
	case *parse.Grant, *parse.GrantRoles, *parse.CreateRole, *parse.DropRole, *parse.CleanupTraversal:
		return "grant"
	case *parse.ExplainGrant:
		return "explain"
	case *parse.ListGrants, *parse.ShowEffectiveGrants, *parse.CheckAccess, *parse.ShowPrivileges, *parse.ShowAccess, *parse.ShowRoles, *parse.ShowRoleGrants:
		return "show"
	}
	return ""
}

// grants is SHOW GRANTS for oneself, in MySQL's form, which BI tools parse: what
// the object gate lets the principal do, table by table, as far as MySQL has words for
// it.
func (st *statement) grants(ctx context.Context, x *parse.ShowGrants) (*Result, error) {
	if x.User != "" && x.User != st.principal.Name {
		return st.listGrants(ctx, &parse.ListGrants{To: &parse.Grantee{Kind: "user", Name: x.User}})
	}
	user := "'" + strings.ReplaceAll(st.principal.Name, "'", "''") + "'@'%'"
	out := table("Grants for " + st.principal.Name + "@%")
	out.row("GRANT USAGE ON *.* TO " + user)
	for _, cat := range st.engine.catalogs.All() {
		namespaces, err := st.namespaces(ctx, cat)
		if err != nil {
			return nil, err
		}
		for _, ns := range namespaces {
			tables, views, err := relations{st}.names(ctx, cat, ns)
			if err != nil {
				return nil, err
			}
			database := backquoted(st.engine.catalogs.Database(cat.Name(), ns))
			for i, name := range append(tables[:len(tables):len(tables)], views...) {
				words, err := st.mysqlPrivileges(grants.Object{Catalog: cat.Name(), Namespace: ns, Name: name, View: i >= len(tables)})
				if err != nil {
					return nil, err
				}
				if words != "" {
					out.row("GRANT " + words + " ON " + database + "." + backquoted(name) + " TO " + user)
				}
			}
			words, err := st.mysqlPrivileges(grants.Object{Catalog: cat.Name(), Namespace: ns})
			if err != nil {
				return nil, err
			}
			if words != "" {
				out.row("GRANT " + words + " ON " + database + ".* TO " + user)
			}
		}
	}
	return out.result(), nil
}

// mysqlWords are the privileges for which MySQL has words that mean the same. One right
// of the catalog is for all changes of rows.
var mysqlWords = map[grants.Level][]struct{ privilege, words string }{
	grants.TableLevel:     {{"SELECT", "SELECT"}, {"INSERT", "INSERT, UPDATE, DELETE"}, {"ALTER", "ALTER"}, {"DROP", "DROP"}},
	grants.NamespaceLevel: {{"CREATE", "CREATE"}, {"CREATE VIEW", "CREATE VIEW"}},
}

// mysqlPrivileges are the words for what the principal may do with an object.
func (st *statement) mysqlPrivileges(o grants.Object) (string, error) {
	var out []string
	for _, w := range mysqlWords[o.Level()] {
		if o.View && w.privilege != "SELECT" && w.privilege != "DROP" {
			continue
		}
		d, err := decides(w.privilege, o, st.authorize)
		if err != nil {
			return "", err
		}
		if d.Allow {
			out = append(out, w.words)
		}
	}
	return strings.Join(out, ", "), nil
}

func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
