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
	roles, err := k.Roles(ctx)
	if err != nil {
		return nil, err
	}
	var notes, names []string
	for _, name := range x.Names {
		switch has := roleOf(roles, name) != nil || slices.Contains(names, name); {
		case strings.EqualFold(name, policy.Public):
			return nil, fault.New(fault.BadStatement, "PUBLIC is everybody, and cannot be the name of a role")
		case has && !x.IfNotExists:
			return nil, fault.New(fault.BadPrincipal, "there is a role %s already", name)
		case has:
			notes = append(notes, "there is a role "+name+" already")
		default:
			names = append(names, name)
		}
	}
	var whole roleChanges
	for _, name := range names {
		err := k.CreateRole(ctx, st.author(), name)
		if fault.Is(err, fault.BadPrincipal) && x.IfNotExists { // made at this moment
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, whole.undo(ctx, err)
		}
		whole.did(name, func(ctx context.Context) error { return k.DropRole(ctx, st.author(), name) })
	}
	return st.warned(notes), nil
}

func roleOf(list []grants.Role, name string) *grants.Role {
	i := slices.IndexFunc(list, func(r grants.Role) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// roleChanges are those of a statement about roles, of which all are made or none.
type roleChanges struct {
	names []string
	undos []func(context.Context) error
}

func (c *roleChanges) did(name string, undo func(context.Context) error) {
	c.names, c.undos = append(c.names, name), append(c.undos, undo)
}

// undo takes back what was done before an error, the last first, whether or not
// somebody waits, and says how that went.
func (c *roleChanges) undo(ctx context.Context, cause error) error {
	if len(c.names) == 0 {
		return cause
	}
	var left []string
	for i, undo := range slices.Backward(c.undos) {
		if undo(context.WithoutCancel(ctx)) != nil {
			left = append(left, c.names[i])
		}
	}
	if len(left) > 0 {
		return fault.Wrap(fault.KindOf(cause), cause, "%s. What was done before for the roles %s could not be taken back: look with SHOW ROLE GRANTS", cause, strings.Join(left, ", "))
	}
	return fault.Wrap(fault.KindOf(cause), cause, "%s. What was done before for the roles %s was taken back; nothing was changed", cause, strings.Join(c.names, ", "))
}

func (st *statement) dropRole(ctx context.Context, x *parse.DropRole) (*Result, error) {
	k, err := st.roleKeeper(ctx, "DROP ROLE", "change roles")
	if err != nil {
		return nil, err
	}
	roles, err := k.Roles(ctx)
	if err != nil {
		return nil, err
	}
	var notes []string
	var drop []*grants.Role
	for _, name := range x.Names {
		switch r := roleOf(roles, name); {
		case r != nil && !slices.Contains(drop, r):
			drop = append(drop, r)
		case r == nil && !x.IfExists:
			return nil, fault.New(fault.BadPrincipal, "%s", noRole(name))
		case r == nil:
			notes = append(notes, noRole(name).Error())
		}
	}
	var whole roleChanges
	for _, r := range drop {
		err := k.DropRole(ctx, st.author(), r.Name)
		if fault.Is(err, fault.BadPrincipal) && x.IfExists { // gone at this moment
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, whole.undo(ctx, err)
		}
		whole.did(r.Name, func(ctx context.Context) error {
			if err := k.CreateRole(ctx, st.author(), r.Name); err != nil {
				return err
			}
			return k.AlterRole(ctx, st.author(), r.Name, r.Members, nil)
		})
	}
	return st.warned(notes), nil
}

func noRole(name string) error {
	return fault.New(fault.NoPrincipal, "there is no role %s; SHOW ROLES lists them", name)
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
	who := granteesOf(x.Grantees)
	var notes []string
	var alter []*grants.Role
	for _, name := range x.Roles {
		r := roleOf(roles, name)
		switch _, privilege := grants.Canonical(name); {
		case r != nil && !slices.Contains(alter, r):
			alter = append(alter, r)
		case r != nil:
		case x.IfExists:
			notes = append(notes, noRole(name).Error())
		case privilege == nil:
			return nil, fault.New(fault.NoPrincipal, "there is no role %s; the privilege of that name needs ON and what it is on", name)
		default:
			return nil, noRole(name)
		}
		for _, g := range who {
			if x.Revoke && r != nil && !slices.Contains(r.Members, g) {
				notes = append(notes, "the "+string(g.Kind)+" "+g.Name+" was not given the role "+name+", so there is nothing to take back")
			}
		}
	}
	var whole roleChanges
	for _, r := range alter {
		// Of members only those that change.
		change := slices.DeleteFunc(slices.Clone(who), func(g policy.Grantee) bool { return slices.Contains(r.Members, g) != x.Revoke })
		set := func(ctx context.Context, list []policy.Grantee, in bool) error {
			if in {
				return k.AlterRole(ctx, st.author(), r.Name, list, nil)
			}
			return k.AlterRole(ctx, st.author(), r.Name, nil, list)
		}
		if err := set(ctx, who, !x.Revoke); err != nil {
			return nil, whole.undo(ctx, err)
		}
		whole.did(r.Name, func(ctx context.Context) error { return set(ctx, change, x.Revoke) })
	}
	return st.warned(notes), nil
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
