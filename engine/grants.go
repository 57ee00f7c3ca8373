package engine

import (
	"context"
	"strings"

	"sqe/engine/bind"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
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
	grantable, err := st.mayPassOn(ctx)
	if err != nil {
		return nil, err
	}
	err = st.mayDo(ctx, func(database string, o grants.Object, words []mysqlWord) error {
		name := ".*"
		if o.Name != "" {
			name = "." + backquoted(o.Name)
		}
		for _, option := range []bool{true, false} {
			var list []string
			for _, w := range words {
				if grantable(w.privilege, o) == option {
					list = append(list, w.words)
				}
			}
			text := "GRANT " + strings.Join(list, ", ") + " ON " + backquoted(database) + name + " TO " + user
			if option {
				text += " WITH GRANT OPTION"
			}
			if len(list) > 0 {
				out.row(text)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out.result(), nil
}

// mayPassOn says what the principal may give to others; nothing, where this server does
// not grant.
func (st *statement) mayPassOn(ctx context.Context) (func(privilege string, o grants.Object) bool, error) {
	k, err := st.keeper()
	if fault.Is(err, fault.Unsupported) {
		return func(string, grants.Object) bool { return false }, nil
	}
	if err != nil {
		return nil, err
	}
	everything, err := k.Administers(ctx, st.principal.Name, st.principal.Admin)
	if err != nil {
		return nil, err
	}
	var policies *grants.Snapshot
	if !everything {
		if policies, err = k.Access(ctx); err != nil {
			return nil, err
		}
	}
	identities := st.identities()
	return func(privilege string, o grants.Object) bool {
		if _, elsewhere := st.engine.managedBy[o.Catalog]; elsewhere {
			return false
		}
		return everything || policies.PassesOn(privilege, o, identities)
	}, nil
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
	grantable, err := r.st.mayPassOn(ctx)
	if err != nil {
		return nil, err
	}
	var out []bind.Privilege
	err = r.st.mayDo(ctx, func(database string, o grants.Object, words []mysqlWord) error {
		for _, w := range words {
			out = append(out, bind.Privilege{
				Database: database, Table: o.Name, Words: strings.Split(w.words, ", "),
				Grantable: grantable(w.privilege, o),
			})
		}
		return nil
	})
	return out, err
}

// PrincipalRoles implements bind.Privileged.
func (r relations) PrincipalRoles(ctx context.Context) (bind.Roles, error) {
	out := bind.Roles{Held: r.st.heldRoles(), Active: r.st.activeRoles()}
	k, err := r.st.keeper()
	if fault.Is(err, fault.Unsupported) {
		return out, nil
	}
	if err == nil {
		out.Grantable, err = k.Administers(ctx, r.st.principal.Name, r.st.principal.Admin)
	}
	return out, err
}

// activeRoles are the roles that act in the session.
func (st *statement) activeRoles() []string {
	if st.principal.ActiveRoles != nil {
		return st.principal.ActiveRoles
	}
	return st.heldRoles()
}

// RolePrivileges implements bind.Privileged. Of what a role gives it tells what the
// principal may do: nobody learns of a table from what is denied.
func (r relations) RolePrivileges(ctx context.Context) ([]bind.Privilege, error) {
	roles, policies := r.st.activeRoles(), (*grants.Snapshot)(nil)
	k, err := r.st.keeper()
	if err == nil {
		policies, err = k.Access(ctx)
	}
	if err != nil && !fault.Is(err, fault.Unsupported) {
		return nil, err
	}
	var out []bind.Privilege
	err = r.st.mayDo(ctx, func(database string, o grants.Object, words []mysqlWord) error {
		if o.Name == "" {
			return nil
		}
		for _, role := range roles {
			g := policy.Grantee{Kind: policy.RoleGrantee, Name: role}
			for _, w := range words {
				d, err := decides(w.privilege, o, r.st.asker(g))
				if err != nil {
					return err
				}
				if d.Allow {
					out = append(out, bind.Privilege{
						Role: role, Database: database, Table: o.Name, Words: strings.Split(w.words, ", "),
						Grantable: policies != nil && policies.PassesOn(w.privilege, o, []policy.Grantee{g}),
					})
				}
			}
		}
		return nil
	})
	return out, err
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
