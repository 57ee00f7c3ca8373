package rest

import (
	"slices"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

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

func group(g *model.Group) *vxGroup {
	return &vxGroup{ID: number(g.ID), Name: g.Name, Description: g.Description, Type: 1, Visible: 1, Attributes: attributesText(g.Attributes)}
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

func (c *call) showGroup(g *model.Group) (any, error) { return group(g), nil }

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
