package rest

import (
	"net/http"
	"slices"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func (h *Handler) roleRoutes() {
	for _, p := range []string{api + "roles", "roles/roles"} {
		h.handle(http.MethodPost, p, anybody, (*call).createRole)
		h.handle(http.MethodGet, p+"/names", anybody, (*call).roleNames)
		h.handle(http.MethodGet, p+"/user/:user", anybody, (*call).rolesOfUser)
		h.handle(http.MethodGet, p+"/name/:name", anybody, (*call).getRole)
		h.handle(http.MethodDelete, p+"/name/:name", anybody, (*call).deleteRole)
		h.handle(http.MethodGet, p+"/:id", readers, func(c *call) (any, error) {
			return c.withRole(func(r *model.Role) (any, error) { return r, nil })
		})
		h.handle(http.MethodPut, p+"/:id", sysadmins, func(c *call) (any, error) { return c.withRole(c.updateRole) })
		h.handle(http.MethodDelete, p+"/:id", sysadmins, func(c *call) (any, error) {
			return c.withRole(func(r *model.Role) (any, error) { return nil, c.store.DeleteRole(c.ctx, r.Name) })
		})
		h.handle(http.MethodPut, p+"/grant/:service", anybody, func(c *call) (any, error) { return c.changeMembers("grant", addMembers) })
		h.handle(http.MethodPut, p+"/revoke/:service", anybody, func(c *call) (any, error) { return c.changeMembers("revoke", removeMembers) })
	}
	h.handle(http.MethodGet, api+"roles", readers, func(c *call) (any, error) {
		roles, err := c.store.Roles(c.ctx)
		if err != nil {
			return nil, err
		}
		return paged(c.r.URL.Query(), roles)
	})
	h.handle(http.MethodGet, "roles/roles", readers, func(c *call) (any, error) {
		roles, err := c.store.Roles(c.ctx)
		if err != nil {
			return nil, err
		}
		page, err := paged(c.r.URL.Query(), roles)
		if err != nil {
			return nil, err
		}
		return wrapped(c.r.URL.Query(), "roles", page, len(roles)), nil
	})
}

// actor is on whose behalf a call on roles is made.
type actor struct {
	name   string
	groups []string
	admin  bool // of Ranger, or of the service that the call names
}

// actor finds on whose behalf the account calls. Plugins name the user of their
// own whose statement it is; only accounts that administer the service may, and
// then it is that user's rights that count. Others speak for themselves. It is nil
// for whoever may not.
func (c *call) actor(service, name string) (*actor, error) {
	u, err := c.store.User(c.ctx, c.account.Name)
	if err != nil {
		return nil, err
	}
	caller, err := c.as(service, u)
	if err != nil || name == "" || name == c.account.Name {
		return caller, err
	}
	if !caller.admin {
		return nil, nil
	}
	u, err = c.store.User(c.ctx, name)
	if admin.KindOf(err) == admin.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.as(service, u)
}

func (c *call) as(service string, u *model.User) (*actor, error) {
	a := &actor{name: u.Name, groups: u.Groups, admin: slices.Contains(u.AdminRoles, "ROLE_SYS_ADMIN")}
	if a.admin || service == "" {
		return a, nil
	}
	s, err := c.store.Service(c.ctx, service)
	if admin.KindOf(err) == admin.NotFound {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	a.admin = administers(s, u)
	return a, nil
}

// handsOn reports whether the actor may give a role to others and take it.
func (a *actor) handsOn(r *model.Role) bool {
	return a != nil && (a.admin ||
		slices.ContainsFunc(r.Users, func(m model.Member) bool { return m.IsAdmin && m.Name == a.name }) ||
		slices.ContainsFunc(r.Groups, func(m model.Member) bool { return m.IsAdmin && slices.Contains(a.groups, m.Name) }))
}

var errNoRoles = bad("User does not have permission for this operation")

// administersRoles refuses whoever may not make and remove roles.
func (c *call) administersRoles(name string) error {
	a, err := c.actor(c.query("serviceName"), name)
	if err == nil && (a == nil || !a.admin) {
		err = errNoRoles
	}
	return err
}

func (c *call) createRole() (any, error) {
	r := &model.Role{}
	if err := c.read(r); err != nil {
		return nil, err
	}
	if err := c.administersRoles(r.CreatedByUser); err != nil {
		return nil, err
	}
	if yes(c.query("createNonExistUserGroup")) {
		if err := c.createMembers(r); err != nil {
			return nil, err
		}
	}
	r.ID = 0
	return c.store.CreateRole(c.ctx, r)
}

func (c *call) deleteRole() (any, error) {
	if err := c.administersRoles(c.query("execUser")); err != nil {
		return nil, err
	}
	return nil, c.store.DeleteRole(c.ctx, c.vars["name"])
}

// createMembers makes the users and groups of a role that do not exist.
func (c *call) createMembers(r *model.Role) error {
	if !c.account.IsAdmin() {
		return forbidden("User '%s' may not create users and groups", c.account.Name)
	}
	return c.ensure(memberNames(r.Users), memberNames(r.Groups), nil)
}

func memberNames(members []model.Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Name
	}
	return out
}

// getRole says the same of a role that there is not and of one that the account
// may not see.
func (c *call) getRole() (any, error) {
	name := c.vars["name"]
	hiddenRole := bad("User doesn't have permissions to get details for %s", name)
	r, err := c.store.Role(c.ctx, name)
	if err != nil {
		return nil, absent(err, hiddenRole)
	}
	exec := c.query("execUser")
	if exec == "" && c.reader() {
		return r, nil
	}
	a, err := c.actor(c.query("serviceName"), exec)
	switch {
	case err != nil:
		return nil, err
	case !a.handsOn(r):
		return nil, hiddenRole
	}
	return r, nil
}

func (c *call) roleNames() (any, error) {
	if exec := c.query("execUser"); exec != "" || !c.reader() {
		if err := c.administersRoles(exec); err != nil {
			return nil, err
		}
	}
	roles, err := c.store.Roles(c.ctx)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, r := range roles {
		out = append(out, r.Name)
	}
	return out, nil
}

// rolesOfUser lists the roles that name the user or a group of the user, and the
// roles that these are members of: what the user has in a decision.
func (c *call) rolesOfUser() (any, error) {
	user := c.vars["user"]
	if user != c.account.Name && !c.reader() {
		return nil, bad("User doesn't have permissions to get roles of %s", user)
	}
	u, err := c.store.User(c.ctx, user)
	if err != nil {
		return nil, err
	}
	roles, err := c.store.Roles(c.ctx)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for grew := true; grew; {
		grew = false
		for _, r := range roles {
			is := func(m model.Member) bool { return m.Name == user }
			group := func(m model.Member) bool { return slices.Contains(u.Groups, m.Name) || m.Name == "public" }
			role := func(m model.Member) bool { return has[m.Name] }
			if !has[r.Name] && (slices.ContainsFunc(r.Users, is) || slices.ContainsFunc(r.Groups, group) || slices.ContainsFunc(r.Roles, role)) {
				has[r.Name], grew = true, true
			}
		}
	}
	out := []string{}
	for name := range has {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

func (c *call) withRole(then func(r *model.Role) (any, error)) (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	roles, err := c.store.Roles(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		if r.ID == id {
			return then(r)
		}
	}
	return nil, noData("RangerRole", id)
}

func (c *call) updateRole(was *model.Role) (any, error) {
	r := &model.Role{}
	if err := c.read(r); err != nil {
		return nil, err
	}
	if yes(c.query("createNonExistUserGroup")) {
		if err := c.createMembers(r); err != nil {
			return nil, err
		}
	}
	r.ID = was.ID
	c.members.Lock()
	defer c.members.Unlock()
	return c.store.UpdateRole(c.ctx, r)
}

// grantRole is GrantRevokeRoleRequest as far as it changes something.
type grantRole struct {
	Grantor     string   `json:"grantor"`
	TargetRoles []string `json:"targetRoles"`
	Users       []string `json:"users"`
	Groups      []string `json:"groups"`
	Roles       []string `json:"roles"`
	GrantOption bool     `json:"grantOption"`
}

func (c *call) changeMembers(verb string, change func(members []model.Member, names []string, option bool) []model.Member) (any, error) {
	var q grantRole
	if err := c.read(&q); err != nil {
		return nil, err
	}
	a, err := c.actor(c.vars["service"], q.Grantor)
	if err != nil {
		return nil, err
	}
	c.members.Lock()
	defer c.members.Unlock()
	var roles []*model.Role
	for _, name := range q.TargetRoles {
		refused := bad("User doesn't have permissions to %s role %s", verb, name)
		r, err := c.store.Role(c.ctx, name)
		if err != nil {
			return nil, absent(err, refused)
		}
		if !a.handsOn(r) {
			return nil, refused
		}
		if verb == "grant" {
			if err := c.acyclic(r.Name, q.Roles, roles); err != nil {
				return nil, err
			}
		}
		r.Users = change(r.Users, q.Users, q.GrantOption)
		r.Groups = change(r.Groups, q.Groups, q.GrantOption)
		r.Roles = change(r.Roles, q.Roles, q.GrantOption)
		roles = append(roles, r)
	}
	if len(roles) == 0 {
		return nil, bad("a %s names at least one role in targetRoles", verb)
	}
	for _, r := range roles {
		if _, err := c.store.UpdateRole(c.ctx, r); err != nil {
			return nil, err
		}
	}
	return map[string]int{"statusCode": 0}, nil
}

// acyclic refuses to make roles members of a role that is, over others, a member of
// them; changed are roles as they are about to be. Source: RoleREST.addUsersGroupsAndRoles of Ranger 2.9; a role that is written
// as a whole is not looked at there either.
func (c *call) acyclic(role string, members []string, changed []*model.Role) error {
	seen := map[string]bool{}
	for next := slices.Clone(members); len(next) > 0; {
		name := next[0]
		next = next[1:]
		r, err := c.store.Role(c.ctx, name)
		if at := slices.IndexFunc(changed, func(x *model.Role) bool { return x.Name == name }); at >= 0 {
			r, err = changed[at], nil
		}
		if admin.KindOf(err) == admin.NotFound {
			continue // is refused where the role is written
		}
		if err != nil {
			return err
		}
		for _, m := range r.Roles {
			if m.Name == role {
				return bad("Invalid role grant")
			}
			if !seen[m.Name] {
				seen[m.Name] = true
				next = append(next, m.Name)
			}
		}
	}
	return nil
}

func addMembers(members []model.Member, names []string, option bool) []model.Member {
	for _, n := range names {
		at := slices.IndexFunc(members, func(m model.Member) bool { return m.Name == n })
		if at < 0 {
			members = append(members, model.Member{Name: n, IsAdmin: option})
		} else if option {
			members[at].IsAdmin = true
		}
	}
	return members
}

// removeMembers removes the members, or with option only their right to hand the
// role on.
func removeMembers(members []model.Member, names []string, option bool) []model.Member {
	if option {
		for i, m := range members {
			if slices.Contains(names, m.Name) {
				members[i].IsAdmin = false
			}
		}
		return members
	}
	return slices.DeleteFunc(members, func(m model.Member) bool { return slices.Contains(names, m.Name) })
}
