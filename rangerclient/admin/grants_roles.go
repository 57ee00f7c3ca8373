package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// Roles implements grants.Keeper.
func (k *keeper) Roles(ctx context.Context) ([]grants.Role, error) {
	list, err := k.server.Roles(ctx)
	if err != nil {
		return nil, k.fault(err, k.service())
	}
	var out []grants.Role
	for _, r := range list {
		role := grants.Role{Name: r.Name}
		for kind, members := range map[policy.GranteeKind][]model.Member{policy.UserGrantee: r.Users, policy.GroupGrantee: r.Groups, policy.RoleGrantee: r.Roles} {
			for _, m := range members {
				role.Members = append(role.Members, policy.Grantee{Kind: kind, Name: m.Name})
			}
		}
		slices.SortFunc(role.Members, func(a, b policy.Grantee) int {
			return strings.Compare(string(a.Kind)+"\x00"+a.Name, string(b.Kind)+"\x00"+b.Name)
		})
		out = append(out, role)
	}
	slices.SortFunc(out, func(a, b grants.Role) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// CreateRole implements grants.Keeper.
func (k *keeper) CreateRole(ctx context.Context, by policy.Author, name string) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	if strings.TrimSpace(name) == "" || strings.HasPrefix(name, "{") {
		return fault.New(fault.BadStatement, "the name of a role is not empty and does not begin with {")
	}
	_, err := k.server.CreateRole(ctx, &model.Role{Name: name, Description: "Made with SQE by " + by.User})
	switch KindOf(err) {
	case Exists:
		return fault.Wrap(fault.BadPrincipal, err, "there is a role %s already", name)
	case Forbidden:
		return k.rolesForbidden(err)
	}
	if err != nil {
		return k.fault(err, k.service())
	}
	return k.done(ctx, "the role "+name)
}

// rolesForbidden is the refusal of a server whose roles SQE may not write.
func (k *keeper) rolesForbidden(err error) error {
	return fault.Wrap(fault.Denied, err, "the user with which SQE writes to %s may not change roles there; make it an administrator of the policy server, or a service admin", k.server.Name())
}

// DropRole implements grants.Keeper.
func (k *keeper) DropRole(ctx context.Context, by policy.Author, name string) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	err := k.server.DeleteRole(ctx, name)
	switch KindOf(err) {
	case NotFound:
		return fault.New(fault.BadPrincipal, "there is no role %s; SHOW ROLES lists them", name)
	case InUse:
		return fault.Wrap(fault.BadStatement, err, "the role %s is still used by policies or by other roles; SHOW GRANTS TO ROLE %s lists its grants, REVOKE them first", name, name)
	case Forbidden:
		return k.rolesForbidden(err)
	}
	if err != nil {
		return k.fault(err, k.service())
	}
	if err := k.members.forget(name); err != nil {
		return k.forgets(err, name)
	}
	return k.done(ctx, "that the role "+name+" is dropped")
}

// forgets is the error of a statement whose role is as it said, and cannot be remembered.
func (k *keeper) forgets(cause error, role string) error {
	return fault.Wrap(fault.Unavailable, cause, "the role %s is as the statement says, but server.state-directory cannot be written, so that it would not be found out after a restart when others undo it; see to the folder", role)
}

func noRole(name string) error {
	return fault.New(fault.NoPrincipal, "there is no role %s; SHOW ROLES lists them", name)
}

// AlterRole implements grants.Keeper. The server itself adds and takes members; that
// it did is looked up, because whoever writes a role as a whole may have read it
// before, and roles have no versions that would tell.
func (k *keeper) AlterRole(ctx context.Context, by policy.Author, name string, add, remove []policy.Grantee) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, g := range add {
		if err := k.Exists(ctx, g); err != nil {
			return err
		}
	}
	if err := k.cycle(ctx, name, add); err != nil {
		return err
	}
	for n := range attempts {
		role, err := k.server.Role(ctx, name)
		if KindOf(err) == NotFound {
			return noRole(name)
		}
		if err != nil {
			return k.fault(err, k.service())
		}
		more, less := pending(role, add, true), pending(role, remove, false)
		if more == nil && less == nil {
			kept := errors.Join(k.members.remember(role, add, true), k.members.remember(role, remove, false))
			if n > 0 {
				err = k.done(ctx, "the role "+name)
			}
			if kept != nil {
				err = errors.Join(err, k.forgets(kept, name))
			}
			return err
		}
		if n > 1 {
			if err := k.writer.sleep(ctx); err != nil {
				return k.fault(err, k.service())
			}
		}
		err = k.server.AlterRole(ctx, k.service(), name, more, less)
		switch KindOf(err) {
		case Conflict:
			continue
		case Forbidden:
			return k.rolesForbidden(err)
		}
		if err != nil {
			return k.fault(err, k.service())
		}
	}
	return fault.New(fault.Conflict, "others change the role %s all the time; look with SHOW ROLE GRANTS FOR ROLE %s, and repeat the statement", name, name)
}

// pending are the grantees that are not yet members of a role, or still are, as they
// should (not) be; nil: none.
func pending(role *model.Role, list []policy.Grantee, should bool) *model.Role {
	var out *model.Role
	for _, g := range list {
		is := slices.ContainsFunc(*membersOf(role, g.Kind), func(m model.Member) bool { return m.Name == g.Name })
		if is == should {
			continue
		}
		if out == nil {
			out = &model.Role{Name: role.Name}
		}
		members := membersOf(out, g.Kind)
		*members = append(*members, model.Member{Name: g.Name})
	}
	return out
}

func membersOf(r *model.Role, kind policy.GranteeKind) *[]model.Member {
	switch kind {
	case policy.UserGrantee:
		return &r.Users
	case policy.GroupGrantee:
		return &r.Groups
	}
	return &r.Roles
}

// cycle refuses to make a role a member of itself, by whatever way.
func (k *keeper) cycle(ctx context.Context, name string, add []policy.Grantee) error {
	var waiting []string
	for _, g := range add {
		if g.Kind == policy.RoleGrantee {
			waiting = append(waiting, g.Name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	all, err := k.Roles(ctx)
	if err != nil {
		return err
	}
	// The members of a role hold it. name may not be held by itself: no member that is
	// added may be one that name is a member of.
	holds := map[string][]string{} // role to the roles that it is a member of
	for _, r := range all {
		for _, m := range r.Members {
			if m.Kind == policy.RoleGrantee {
				holds[m.Name] = append(holds[m.Name], r.Name)
			}
		}
	}
	reached, queue := map[string]bool{name: true}, []string{name}
	for len(queue) > 0 {
		for _, up := range holds[queue[0]] {
			if !reached[up] {
				reached[up] = true
				queue = append(queue, up)
			}
		}
		queue = queue[1:]
	}
	for _, w := range waiting {
		if reached[w] {
			return fault.New(fault.BadStatement, "the role %s holds the role %s, or is it; it cannot be given it", name, w)
		}
	}
	return nil
}

// GroupsOf lists the groups that the server knows a user in; none for a user that it
// does not have.
func (k *keeper) GroupsOf(ctx context.Context, user string) ([]string, error) {
	u, err := k.server.User(ctx, user)
	switch KindOf(err) {
	case NotFound, UnknownPrincipal, Forbidden:
		return nil, nil
	}
	if err != nil {
		return nil, k.fault(err, k.service())
	}
	return u.Groups, nil
}
