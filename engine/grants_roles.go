package engine

import (
	"context"
	"slices"
	"strings"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
)

// roleKeeper is the keeper, for those who may do everything with it.
func (st *statement) roleKeeper(ctx context.Context, command, what string) (grants.Keeper, error) {
	k, err := st.keeper()
	if err != nil && !st.principal.Admin {
		return nil, fault.New(fault.Denied, "%s command denied to user '%s': only an administrator may %s", command, st.principal.Name, what)
	}
	if err != nil {
		return nil, err
	}
	may, err := k.Administers(ctx, st.principal.Name, st.principal.Admin)
	if err == nil && !may {
		err = fault.New(fault.Denied, "%s command denied to user '%s': only an administrator may %s", command, st.principal.Name, what)
	}
	return k, err
}

func (st *statement) createRole(ctx context.Context, x *parse.CreateRole) (*Result, error) {
	k, err := st.roleKeeper(ctx, "CREATE ROLE", "change roles")
	if err != nil {
		return nil, err
	}
	var notes []string
	for i, name := range x.Names {
		err := k.CreateRole(ctx, st.author(), name)
		if fault.Is(err, fault.Exists) && x.IfNotExists {
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, after(err, "created", x.Names[:i])
		}
	}
	return st.warned(notes), nil
}

// after tells which of a list was done before an error.
func after(err error, what string, done []string) error {
	if len(done) == 0 {
		return err
	}
	return fault.Wrap(fault.KindOf(err), err, "%s; before that %s: %s", err, what, strings.Join(done, ", "))
}

func (st *statement) dropRole(ctx context.Context, x *parse.DropRole) (*Result, error) {
	k, err := st.roleKeeper(ctx, "DROP ROLE", "change roles")
	if err != nil {
		return nil, err
	}
	var notes []string
	for i, name := range x.Names {
		err := k.DropRole(ctx, st.author(), name)
		if fault.Is(err, fault.NotFound) && x.IfExists {
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, after(err, "dropped", x.Names[:i])
		}
	}
	return st.warned(notes), nil
}

// grantRoles is GRANT role TO and REVOKE role FROM.
func (st *statement) grantRoles(ctx context.Context, x *parse.GrantRoles) (*Result, error) {
	st.grantees = granteeTexts(x.Grantees)
	command := "GRANT"
	if x.Revoke {
		command = "REVOKE"
	}
	k, err := st.roleKeeper(ctx, command, "change roles")
	if err != nil {
		return nil, err
	}
	roles, err := k.Roles(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range x.Roles {
		if slices.ContainsFunc(roles, func(r grants.Role) bool { return r.Name == name }) {
			continue
		}
		if _, err := grants.Canonical(name); err == nil {
			return nil, fault.New(fault.BadStatement, "there is no role %s; the privilege of that name needs ON and what it is on", name)
		}
		return nil, fault.New(fault.NotFound, "there is no role %s; SHOW ROLES lists them", name)
	}
	who := granteesOf(x.Grantees)
	for i, name := range x.Roles {
		add, remove := who, []policy.Grantee(nil)
		if x.Revoke {
			add, remove = nil, who
		}
		if err := k.AlterRole(ctx, st.author(), name, add, remove); err != nil {
			return nil, after(err, "done for", x.Roles[:i])
		}
	}
	return st.warned(nil), nil
}

// showRoles is SHOW ROLES: all roles for an administrator, else one's own; SHOW
// CURRENT ROLES: those that act in the session.
func (st *statement) showRoles(ctx context.Context, x *parse.ShowRoles) (*Result, error) {
	names := st.principal.ActiveRoles
	if names == nil || !x.Current {
		names = st.heldRoles()
	}
	if st.principal.Admin && !x.Current {
		k, err := st.keeper()
		switch {
		case err == nil:
			roles, err := k.Roles(ctx)
			if err != nil {
				return nil, err
			}
			for _, r := range roles {
				names = append(names, r.Name)
			}
		case !fault.Is(err, fault.Unsupported):
			return nil, err
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	out := table("Role")
	for _, n := range slices.Compact(names) {
		out.row(n)
	}
	return out.result(), nil
}

// showRoleGrants is SHOW ROLE GRANTS: who has which role. Others than administrators
// see their own.
func (st *statement) showRoleGrants(ctx context.Context, x *parse.ShowRoleGrants) (*Result, error) {
	own := st.identities()
	var of *policy.Grantee
	if x.For != nil {
		of = &granteesOf([]parse.Grantee{*x.For})[0]
	}
	if of != nil && !st.principal.Admin && !slices.Contains(own, *of) {
		return nil, fault.New(fault.Denied, "only an administrator of this server may see the roles of others; ask one")
	}
	k, err := st.keeper()
	if err != nil {
		return nil, err
	}
	roles, err := k.Roles(ctx)
	if err != nil {
		return nil, err
	}
	out := table("role", "grantee_type", "grantee_name")
	for _, r := range roles {
		for _, m := range r.Members {
			about := of == nil || m == *of || of.Kind == policy.RoleGrantee && of.Name == r.Name && st.principal.Admin
			if about && (st.principal.Admin || slices.Contains(own, m)) {
				out.row(r.Name, strings.ToUpper(string(m.Kind)), m.Name)
			}
		}
	}
	return out.result(), nil
}
