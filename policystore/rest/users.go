package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

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

func (c *call) showUser(u *model.User) (any, error) {
	ids, err := c.groupIDs()
	if err != nil {
		return nil, err
	}
	return c.user(u, ids), nil
}

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
