package policystore

import (
	"context"
	"encoding/json"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// groupDoc is what the column doc holds of a group.
type groupDoc struct {
	Description string            `json:"description,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

func (t *tx) groups(where string, args ...any) (all []*model.Group, err error) {
	err = t.each(`SELECT id, name, doc FROM groups WHERE `+where+` ORDER BY id`, args, func(scan func(...any) error) error {
		g := &model.Group{}
		var d groupDoc
		var doc []byte
		if err := scan(&g.ID, &g.Name, &doc); err != nil {
			return err
		}
		if err := json.Unmarshal(doc, &d); err != nil {
			return err
		}
		g.Description, g.Attributes = d.Description, d.Attributes
		all = append(all, g)
		return nil
	})
	return all, err
}

func (t *tx) group(name string) (*model.Group, error) {
	all, err := t.groups(`name = ?`, name)
	if err == nil && len(all) == 0 {
		return nil, refuse(admin.NotFound, name, "%s is Not Found", name)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Groups implements admin.Server, by id.
func (s *Store) Groups(ctx context.Context) (all []*model.Group, err error) {
	err = s.read(ctx, func(q *tx) error {
		all, err = q.groups(`1`)
		return err
	})
	return all, err
}

// Group implements admin.Server.
func (s *Store) Group(ctx context.Context, name string) (g *model.Group, err error) {
	err = s.read(ctx, func(q *tx) error {
		g, err = q.group(name)
		return err
	})
	return g, err
}

// CreateGroup implements admin.Server.
func (s *Store) CreateGroup(ctx context.Context, group *model.Group) (made *model.Group, err error) {
	err = s.write(ctx, func(c *tx) error {
		known, err := c.known(reference{kindGroup, group.Name})
		switch {
		case err != nil:
			return err
		case strings.TrimSpace(group.Name) == "":
			return refuse(admin.Invalid, "", "Please provide a valid group name.")
		case known:
			return refuse(admin.Exists, group.Name, "%s already exists", group.Name)
		}
		id, err := c.insert(`INSERT INTO groups (name, doc) VALUES (?, '{}')`, group.Name)
		if err != nil {
			return err
		}
		made, err = c.putGroup(id, group, actionCreate)
		return err
	})
	return made, err
}

// UpdateGroup implements admin.Server. The group is found by its id, by its name
// when it has none.
func (s *Store) UpdateGroup(ctx context.Context, group *model.Group) (made *model.Group, err error) {
	err = s.write(ctx, func(c *tx) error {
		old, err := c.groups(`id = ?1 OR (?1 = 0 AND name = ?2)`, group.ID, group.Name)
		switch {
		case err != nil:
			return err
		case len(old) == 0:
			return refuse(admin.NotFound, group.Name, "Group ID doesn't exist.")
		case old[0].Name != group.Name:
			return refuse(admin.Invalid, old[0].Name, "group name updates are not allowed.")
		}
		made, err = c.putGroup(old[0].ID, group, actionUpdate)
		return err
	})
	return made, err
}

func (t *tx) putGroup(id int64, g *model.Group, action string) (*model.Group, error) {
	doc, err := encode(groupDoc{g.Description, g.Attributes})
	if err != nil {
		return nil, err
	}
	if err := t.exec(`UPDATE groups SET doc = ? WHERE id = ?`, doc, id); err != nil {
		return nil, err
	}
	if err := t.advance(userStoreVersion); err != nil {
		return nil, err
	}
	made, err := t.group(g.Name)
	if err != nil {
		return nil, err
	}
	return made, t.record(change{what: whatGroup, id: id, name: g.Name, action: action}, made)
}

// DeleteGroup implements admin.Server; its members leave it.
func (s *Store) DeleteGroup(ctx context.Context, name string) error {
	return s.write(ctx, func(c *tx) error {
		g, err := c.group(name)
		if err != nil {
			return err
		}
		if name == publicGroup {
			return refuse(admin.InUse, name, "Group '%s' can not be deleted as it is referenced by the server itself", name)
		}
		if err := c.unused(reference{kindGroup, name}, "Group"); err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM groups WHERE id = ?`, g.ID); err != nil {
			return err
		}
		if err := c.advance(userStoreVersion); err != nil {
			return err
		}
		return c.record(change{what: whatGroup, id: g.ID, name: name, action: actionDelete}, nil)
	})
}
