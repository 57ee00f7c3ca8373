package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func (h *Handler) userRoutes() {
	users, groups := "xusers/users", "xusers/groups"
	h.handle(http.MethodGet, users, readers, (*call).users)
	h.handle(http.MethodGet, "xusers/lookup/users", readers, func(c *call) (any, error) { return c.lookUp(true) })
	h.handle(http.MethodGet, "xusers/lookup/groups", readers, func(c *call) (any, error) { return c.lookUp(false) })
	h.handle(http.MethodGet, users+"/userName/:name", anybody, func(c *call) (any, error) { return c.withUserName(c.showUser) })
	h.handle(http.MethodDelete, users+"/userName/:name", sysadmins, func(c *call) (any, error) { return c.withUserName(c.deleteUser) })
	for _, p := range []string{users, "xusers/secure/users"} {
		h.handle(http.MethodPost, p, sysadmins, (*call).createUser)
		h.handle(http.MethodGet, p+"/:id", readers, func(c *call) (any, error) { return c.withUser(c.showUser) })
	}
	h.handle(http.MethodPut, users, sysadmins, (*call).updateNamedUser)
	h.handle(http.MethodPut, "xusers/secure/users/:id", sysadmins, func(c *call) (any, error) { return c.withUser(c.updateUser) })
	h.handle(http.MethodDelete, users+"/:id", sysadmins, func(c *call) (any, error) { return c.withUser(c.deleteUser) })
	h.handle(http.MethodDelete, "xusers/secure/users/id/:id", sysadmins, func(c *call) (any, error) { return c.withUser(c.deleteUser) })
	h.handle(http.MethodDelete, "xusers/secure/users/:name", sysadmins, func(c *call) (any, error) { return c.withUserName(c.deleteUser) })

	h.handle(http.MethodGet, groups, readers, (*call).groups)
	h.handle(http.MethodGet, groups+"/groupName/:name", readers, func(c *call) (any, error) { return c.withGroupName(c.showGroup) })
	h.handle(http.MethodDelete, groups+"/groupName/:name", sysadmins, func(c *call) (any, error) { return c.withGroupName(c.deleteGroup) })
	for _, p := range []string{groups, "xusers/secure/groups"} {
		h.handle(http.MethodPost, p, sysadmins, (*call).createGroup)
		h.handle(http.MethodGet, p+"/:id", readers, func(c *call) (any, error) { return c.withGroup(c.showGroup) })
	}
	h.handle(http.MethodPut, groups, sysadmins, (*call).updateNamedGroup)
	h.handle(http.MethodPut, "xusers/secure/groups/:id", sysadmins, func(c *call) (any, error) { return c.withGroup(c.updateGroup) })
	h.handle(http.MethodDelete, groups+"/:id", sysadmins, func(c *call) (any, error) { return c.withGroup(c.deleteGroup) })
	h.handle(http.MethodDelete, "xusers/secure/groups/id/:id", sysadmins, func(c *call) (any, error) { return c.withGroup(c.deleteGroup) })
	h.handle(http.MethodDelete, "xusers/secure/groups/:name", sysadmins, func(c *call) (any, error) { return c.withGroupName(c.deleteGroup) })

	h.handle(http.MethodPost, "xusers/groupusers", sysadmins, (*call).joinGroup)
	h.handle(http.MethodDelete, "xusers/group/:group/user/:user", sysadmins, (*call).leaveGroup)
	h.handle(http.MethodGet, "xusers/:id/groups", readers, (*call).groupsOfUser)
	h.handle(http.MethodGet, "xusers/:id/users", readers, (*call).usersOfGroup)
}

// number is a JSON number, or its text.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is no id", b)
	}
	*n = number(v)
	return nil
}

// vxUser is VXUser.
type vxUser struct {
	ID          number   `json:"id,omitempty"`
	Name        string   `json:"name"`
	FirstName   string   `json:"firstName"`
	LastName    string   `json:"lastName"`
	Email       string   `json:"emailAddress,omitempty"`
	Password    string   `json:"password"`
	Description string   `json:"description,omitempty"`
	GroupIDs    []number `json:"groupIdList"`
	GroupNames  []string `json:"groupNameList"`
	Status      int      `json:"status"`
	Visible     int      `json:"isVisible"`
	Source      int      `json:"userSource"`
	AdminRoles  []string `json:"userRoleList"`
	Attributes  string   `json:"otherAttributes,omitempty"` // a JSON object as text
}

// vxGroup is VXGroup.
type vxGroup struct {
	ID          number `json:"id,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        int    `json:"groupType"`
	Source      int    `json:"groupSource"`
	Visible     int    `json:"isVisible"`
	Attributes  string `json:"otherAttributes,omitempty"`
}

func (c *call) user(u *model.User, ids map[string]int64) *vxUser {
	out := &vxUser{
		ID: number(u.ID), Name: u.Name, FirstName: u.FirstName, LastName: u.LastName, Email: u.Email, Password: hidden,
		Description: u.Description, GroupIDs: []number{}, GroupNames: []string{}, Status: 1, Visible: 1, AdminRoles: u.AdminRoles,
		Attributes: attributesText(u.Attributes),
	}
	for _, g := range u.Groups {
		out.GroupIDs = append(out.GroupIDs, number(ids[g]))
		out.GroupNames = append(out.GroupNames, g)
	}
	return out
}

func group(g *model.Group) *vxGroup {
	return &vxGroup{ID: number(g.ID), Name: g.Name, Description: g.Description, Type: 1, Visible: 1, Attributes: attributesText(g.Attributes)}
}

func attributesText(a map[string]string) string {
	if len(a) == 0 {
		return ""
	}
	b, _ := json.Marshal(a) // texts only: cannot fail
	return string(b)
}

func attributes(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var out model.Strings
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, bad("otherAttributes is the text of a JSON object whose members are texts")
	}
	return out, nil
}

func (c *call) groupIDs() (map[string]int64, error) {
	groups, err := c.store.Groups(c.ctx)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int64, len(groups))
	for _, g := range groups {
		ids[g.Name] = g.ID
	}
	return ids, nil
}

func (c *call) showUser(u *model.User) (any, error) {
	ids, err := c.groupIDs()
	if err != nil {
		return nil, err
	}
	return c.user(u, ids), nil
}

func (c *call) showGroup(g *model.Group) (any, error) { return group(g), nil }

// users lists users by name=, a part of the name.
func (c *call) users() (any, error) {
	all, err := c.store.Users(c.ctx)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	all = slices.DeleteFunc(all, func(u *model.User) bool { return !containsFold(u.Name, q.Get("name")) })
	page, err := paged(q, all)
	if err != nil {
		return nil, err
	}
	ids, err := c.groupIDs()
	if err != nil {
		return nil, err
	}
	list := []*vxUser{}
	for _, u := range page {
		list = append(list, c.user(u, ids))
	}
	return wrapped(q, "vXUsers", list, len(all)), nil
}

// groups lists groups by name=, a part of the name.
func (c *call) groups() (any, error) {
	all, err := c.store.Groups(c.ctx)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	all = slices.DeleteFunc(all, func(g *model.Group) bool { return !containsFold(g.Name, q.Get("name")) })
	page, err := paged(q, all)
	if err != nil {
		return nil, err
	}
	list := []*vxGroup{}
	for _, g := range page {
		list = append(list, group(g))
	}
	return wrapped(q, "vXGroups", list, len(all)), nil
}

// lookUp lists names.
func (c *call) lookUp(users bool) (any, error) {
	type value struct {
		Value string `json:"value"`
	}
	list := []value{}
	if users {
		all, err := c.store.Users(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range all {
			list = append(list, value{u.Name})
		}
	} else {
		all, err := c.store.Groups(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			list = append(list, value{g.Name})
		}
	}
	q := c.r.URL.Query()
	list = slices.DeleteFunc(list, func(v value) bool { return !containsFold(v.Value, q.Get("name")) })
	page, err := paged(q, list)
	if err != nil {
		return nil, err
	}
	return wrapped(q, "vXStrings", page, len(list)), nil
}

func (c *call) withUserName(then func(u *model.User) (any, error)) (any, error) {
	name := c.vars["name"]
	if name != c.account.Name && !c.reader() {
		return nil, notForUsers(c.r.Method)
	}
	u, err := c.store.User(c.ctx, name)
	if err != nil {
		return nil, absent(err, bad("%s is Not Found", name))
	}
	return then(u)
}

func (c *call) userByID(id int64) (*model.User, error) {
	users, err := c.store.Users(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if u.ID == id {
			return u, nil
		}
	}
	return nil, noData("XXUser", id)
}

func (c *call) groupByID(id int64) (*model.Group, error) {
	groups, err := c.store.Groups(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.ID == id {
			return g, nil
		}
	}
	return nil, noData("XXGroup", id)
}

func (c *call) withUser(then func(u *model.User) (any, error)) (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	u, err := c.userByID(id)
	if err != nil {
		return nil, err
	}
	return then(u)
}

func (c *call) withGroup(then func(g *model.Group) (any, error)) (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	g, err := c.groupByID(id)
	if err != nil {
		return nil, err
	}
	return then(g)
}

func (c *call) withGroupName(then func(g *model.Group) (any, error)) (any, error) {
	g, err := c.store.Group(c.ctx, c.vars["name"])
	if err != nil {
		return nil, absent(err, bad("%s is Not Found", c.vars["name"]))
	}
	return then(g)
}

// given is the user of the request, with names for the ids of groups.
func (c *call) given(doc *vxUser) (*model.User, error) {
	attributes, err := attributes(doc.Attributes)
	if err != nil {
		return nil, err
	}
	u := &model.User{
		Name: doc.Name, FirstName: doc.FirstName, LastName: doc.LastName, Email: doc.Email, Description: doc.Description,
		AdminRoles: doc.AdminRoles, Attributes: attributes,
	}
	if doc.Password != hidden {
		u.Password = doc.Password
	}
	ids, err := c.groupIDs()
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]string, len(ids))
	for name, id := range ids {
		byID[id] = name
	}
	for _, id := range doc.GroupIDs {
		name, ok := byID[int64(id)]
		if !ok {
			return nil, noData("XXGroup", int64(id))
		}
		u.Groups = append(u.Groups, name)
	}
	if doc.GroupIDs == nil {
		u.Groups = doc.GroupNames
	}
	return u, nil
}

func (c *call) createUser() (any, error) {
	doc := &vxUser{}
	if err := c.read(doc); err != nil {
		return nil, err
	}
	u, err := c.given(doc)
	if err != nil {
		return nil, err
	}
	if _, err := c.store.User(c.ctx, u.Name); err == nil {
		return nil, bad("%s already exists", u.Name)
	}
	made, err := c.store.CreateUser(c.ctx, u)
	if err != nil {
		return nil, err
	}
	return c.showUser(made)
}

func (c *call) updateNamedUser() (any, error) {
	return c.replaceUser(func(doc *vxUser) (*model.User, error) { return c.userByID(int64(doc.ID)) })
}

func (c *call) updateUser(was *model.User) (any, error) {
	return c.replaceUser(func(*vxUser) (*model.User, error) { return was, nil })
}

func (c *call) replaceUser(find func(doc *vxUser) (*model.User, error)) (any, error) {
	doc := &vxUser{}
	if err := c.read(doc); err != nil {
		return nil, err
	}
	was, err := find(doc)
	if err != nil {
		return nil, err
	}
	u, err := c.given(doc)
	if err != nil {
		return nil, err
	}
	if u.Name != was.Name {
		return nil, bad("a user cannot be renamed")
	}
	if doc.AdminRoles == nil {
		u.AdminRoles = was.AdminRoles
	}
	u.ID = was.ID
	c.members.Lock()
	made, err := c.store.UpdateUser(c.ctx, u)
	c.members.Unlock()
	if err != nil {
		return nil, err
	}
	if u.Password != "" {
		c.sessions.forget(u.Name)
	}
	return c.showUser(made)
}

func (c *call) deleteUser(u *model.User) (any, error) {
	if err := c.store.DeleteUser(c.ctx, u.Name); err != nil {
		return nil, err
	}
	c.sessions.forget(u.Name)
	return nil, nil
}

func (c *call) deleteGroup(g *model.Group) (any, error) {
	return nil, c.store.DeleteGroup(c.ctx, g.Name)
}

func (c *call) readGroup() (*model.Group, int64, error) {
	doc := &vxGroup{}
	if err := c.read(doc); err != nil {
		return nil, 0, err
	}
	attributes, err := attributes(doc.Attributes)
	if err != nil {
		return nil, 0, err
	}
	return &model.Group{Name: doc.Name, Description: doc.Description, Attributes: attributes}, int64(doc.ID), nil
}

func (c *call) createGroup() (any, error) {
	g, _, err := c.readGroup()
	if err != nil {
		return nil, err
	}
	made, err := c.store.CreateGroup(c.ctx, g)
	if err != nil {
		return nil, err
	}
	return group(made), nil
}

func (c *call) updateNamedGroup() (any, error) {
	g, id, err := c.readGroup()
	if err != nil {
		return nil, err
	}
	was, err := c.groupByID(id)
	if err != nil {
		return nil, err
	}
	return c.replaceGroup(was, g)
}

func (c *call) updateGroup(was *model.Group) (any, error) {
	g, _, err := c.readGroup()
	if err != nil {
		return nil, err
	}
	return c.replaceGroup(was, g)
}

func (c *call) replaceGroup(was, g *model.Group) (any, error) {
	if g.Name != was.Name {
		return nil, bad("a group cannot be renamed")
	}
	g.ID = was.ID
	made, err := c.store.UpdateGroup(c.ctx, g)
	if err != nil {
		return nil, err
	}
	return group(made), nil
}

// joinGroup is VXGroupUser: a user becomes a member of a group.
func (c *call) joinGroup() (any, error) {
	var doc struct {
		Name  string `json:"name"` // of the group
		Group number `json:"parentGroupId"`
		User  number `json:"userId"`
	}
	if err := c.read(&doc); err != nil {
		return nil, err
	}
	c.members.Lock()
	defer c.members.Unlock()
	u, err := c.userByID(int64(doc.User))
	if err != nil {
		return nil, err
	}
	g, err := c.store.Group(c.ctx, doc.Name)
	if doc.Group != 0 {
		g, err = c.groupByID(int64(doc.Group))
	}
	if err != nil {
		return nil, absent(err, bad("%s is Not Found", doc.Name))
	}
	if !slices.Contains(u.Groups, g.Name) {
		u.Groups = append(u.Groups, g.Name)
		if _, err := c.store.UpdateUser(c.ctx, u); err != nil {
			return nil, err
		}
	}
	return map[string]any{"name": g.Name, "parentGroupId": g.ID, "userId": u.ID}, nil
}

func (c *call) leaveGroup() (any, error) {
	c.members.Lock()
	defer c.members.Unlock()
	u, err := c.store.User(c.ctx, c.vars["user"])
	if err != nil {
		return nil, absent(err, bad("%s is Not Found", c.vars["user"]))
	}
	at := slices.Index(u.Groups, c.vars["group"])
	if at < 0 {
		return nil, bad("user %s is not a member of group %s", c.vars["user"], c.vars["group"])
	}
	u.Groups = slices.Delete(u.Groups, at, at+1)
	_, err = c.store.UpdateUser(c.ctx, u)
	return nil, err
}

func (c *call) groupsOfUser() (any, error) {
	return c.withUser(func(u *model.User) (any, error) {
		list := []*vxGroup{}
		for _, name := range u.Groups {
			g, err := c.store.Group(c.ctx, name)
			if admin.KindOf(err) == admin.NotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			list = append(list, group(g))
		}
		return wrapped(c.r.URL.Query(), "vXGroups", list, len(list)), nil
	})
}

func (c *call) usersOfGroup() (any, error) {
	return c.withGroup(func(g *model.Group) (any, error) {
		users, err := c.store.Users(c.ctx)
		if err != nil {
			return nil, err
		}
		ids, err := c.groupIDs()
		if err != nil {
			return nil, err
		}
		list := []*vxUser{}
		for _, u := range users {
			if slices.Contains(u.Groups, g.Name) {
				list = append(list, c.user(u, ids))
			}
		}
		return wrapped(c.r.URL.Query(), "vXUsers", list, len(list)), nil
	})
}
