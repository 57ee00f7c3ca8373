package engine

import (
	"context"
	"strings"

	"sqe/engine/bind"
	"sqe/engine/parse"
	"sqe/fault"
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
	err := st.mayDo(ctx, func(database string, o grants.Object, words []mysqlWord) error {
		name := ".*"
		if o.Name != "" {
			name = "." + backquoted(o.Name)
		}
		all := make([]string, len(words))
		for i, w := range words {
			all[i] = w.words
		}
		out.row("GRANT " + strings.Join(all, ", ") + " ON " + backquoted(database) + name + " TO " + user)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out.result(), nil
}

// mayDo goes through what the principal may do, table by table and then the database,
// as far as MySQL has words for it.
func (st *statement) mayDo(ctx context.Context, each func(database string, o grants.Object, words []mysqlWord) error) error {
	one := func(database string, o grants.Object) error {
		words, err := st.mysqlPrivileges(o)
		if err != nil || len(words) == 0 {
			return err
		}
		return each(database, o, words)
	}
	for _, cat := range st.engine.catalogs.All() {
		namespaces, err := st.namespaces(ctx, cat)
		if err != nil {
			return err
		}
		for _, ns := range namespaces {
			tables, views, err := relations{st}.names(ctx, cat, ns)
			if err != nil {
				return err
			}
			database := st.engine.catalogs.Database(cat.Name(), ns)
			for i, name := range append(tables[:len(tables):len(tables)], views...) {
				if err := one(database, grants.Object{Catalog: cat.Name(), Namespace: ns, Name: name, View: i >= len(tables)}); err != nil {
					return err
				}
			}
			if err := one(database, grants.Object{Catalog: cat.Name(), Namespace: ns}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Privileges implements bind.Privileged.
func (r relations) Privileges(ctx context.Context) ([]bind.Privilege, error) {
	policies, everything := &grants.Snapshot{}, false
	k, err := r.st.keeper()
	if err == nil {
		if everything, err = k.Administers(ctx, r.st.principal.Name, r.st.principal.Admin); err != nil {
			return nil, err
		}
		if policies, err = k.Access(ctx); err != nil {
			return nil, err
		}
	} else if !fault.Is(err, fault.Unsupported) {
		return nil, err
	}
	identities := r.st.identities()
	var out []bind.Privilege
	err = r.st.mayDo(ctx, func(database string, o grants.Object, words []mysqlWord) error {
		for _, w := range words {
			out = append(out, bind.Privilege{
				Database: database, Table: o.Name, Words: strings.Split(w.words, ", "),
				Grantable: everything || policies.PassesOn(w.privilege, o, identities),
			})
		}
		return nil
	})
	return out, err
}

// PrincipalRoles implements bind.Privileged.
func (r relations) PrincipalRoles() (held, active []string) {
	held, active = r.st.heldRoles(), r.st.principal.ActiveRoles
	if active == nil {
		active = held
	}
	return held, active
}

// mysqlWord is a privilege for which MySQL has words that mean the same.
type mysqlWord struct{ privilege, words string }

// mysqlWords are those on each level. One right of the catalog is for all changes of rows.
var mysqlWords = map[grants.Level][]mysqlWord{
	grants.TableLevel:     {{"SELECT", "SELECT"}, {"INSERT", "INSERT, UPDATE, DELETE"}, {"ALTER", "ALTER"}, {"DROP", "DROP"}},
	grants.NamespaceLevel: {{"CREATE", "CREATE"}, {"CREATE VIEW", "CREATE VIEW"}},
}

// mysqlPrivileges are the words for what the principal may do with an object.
func (st *statement) mysqlPrivileges(o grants.Object) ([]mysqlWord, error) {
	var out []mysqlWord
	for _, w := range mysqlWords[o.Level()] {
		if o.View && w.privilege != "SELECT" && w.privilege != "DROP" {
			continue
		}
		d, err := decides(w.privilege, o, st.authorize)
		if err != nil {
			return nil, err
		}
		if d.Allow {
			out = append(out, w)
		}
	}
	return out, nil
}

func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
