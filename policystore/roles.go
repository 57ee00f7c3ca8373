package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func scanRole(scan func(...any) error) (*model.Role, error) {
	r := &model.Role{}
	var id int64
	var doc []byte
	if err := scan(&id, &doc); err != nil {
		return nil, err
	}
	err := json.Unmarshal(doc, r)
	r.ID = id
	return r, err
}

func (t *tx) role(name string) (*model.Role, error) {
	r, err := scanRole(t.QueryRowContext(t.ctx, `SELECT id, doc FROM roles WHERE name = ?`, name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, refuse(admin.NotFound, name, "User doesn't have permissions to get details for %s", name)
	}
	return r, err
}

// Roles implements admin.Server, by id.
func (s *Store) Roles(ctx context.Context) (all []*model.Role, err error) {
	err = s.read(ctx, func(q *tx) error {
		all, err = q.roles()
		return err
	})
	return all, err
}

func (t *tx) roles() (all []*model.Role, err error) {
	err = t.each(`SELECT id, doc FROM roles ORDER BY id`, nil, func(scan func(...any) error) error {
		r, err := scanRole(scan)
		all = append(all, r)
		return err
	})
	return all, err
}

// Role implements admin.Server. A role that does not exist is refused in Ranger's
// words, which speak of a missing permission.
func (s *Store) Role(ctx context.Context, name string) (r *model.Role, err error) {
	err = s.read(ctx, func(q *tx) error {
		r, err = q.role(name)
		return err
	})
	return r, err
}

// CreateRole implements admin.Server.
func (s *Store) CreateRole(ctx context.Context, role *model.Role) (made *model.Role, err error) {
	err = s.write(ctx, func(c *tx) error {
		r, err := copyOf(role)
		if err != nil {
			return err
		}
		if err := c.newRoleName(r.Name); err != nil {
			return err
		}
		r.CreatedBy, r.CreateTime = c.author.User, c.millis()
		if r.CreatedByUser != "" { // Ranger keeps whatever the request says
			r.CreatedByUser = c.author.User
		}
		if r.ID, err = c.insert(`INSERT INTO roles (name, doc) VALUES (?, '{}')`, r.Name); err != nil {
			return err
		}
		made = r
		return c.putRole(r, actionCreate)
	})
	return made, err
}

func (t *tx) newRoleName(name string) error {
	if strings.TrimSpace(name) == "" {
		var f failures
		f.add(4003, "name", "", missing, "Internal error: RangerRole name passed in was null/empty")
		return f.err()
	}
	taken, err := t.known(reference{kindRole, name})
	if err == nil && taken {
		return refuse(admin.Exists, name, "role with name: %s already exists", name)
	}
	return err
}

// UpdateRole implements admin.Server. The role is found by its id, by its name
// when it has none.
func (s *Store) UpdateRole(ctx context.Context, role *model.Role) (made *model.Role, err error) {
	err = s.write(ctx, func(c *tx) error {
		r, err := copyOf(role)
		if err != nil {
			return err
		}
		old, err := scanRole(c.QueryRowContext(ctx, `SELECT id, doc FROM roles WHERE id = ?1 OR (?1 = 0 AND name = ?2)`, r.ID, r.Name).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(admin.NotFound, r.Name, "role with id: %d does not exist", r.ID)
		}
		if err != nil {
			return err
		}
		if r.Name != old.Name {
			if err := c.newRoleName(r.Name); err != nil {
				return err
			}
			where, err := c.uses(reference{kindRole, old.Name})
			if err != nil {
				return err
			}
			if where != "" {
				return refuse(admin.InUse, old.Name, "Rolename for '%s' can not be updated as it is referenced in one or more %s", old.Name, where)
			}
			if err := c.exec(`UPDATE roles SET name = ? WHERE id = ?`, r.Name, old.ID); err != nil {
				return err
			}
		}
		r.ID, r.CreatedBy, r.CreateTime, r.CreatedByUser = old.ID, old.CreatedBy, old.CreateTime, old.CreatedByUser
		made = r
		return c.putRole(r, actionUpdate)
	})
	return made, err
}

// AlterRole implements admin.Server. Whoever has the store may change every role.
func (s *Store) AlterRole(ctx context.Context, _, name string, add, remove *model.Role) error {
	return s.write(ctx, func(c *tx) error {
		r, err := c.role(name)
		if err != nil {
			return err
		}
		for _, of := range []func(*model.Role) *[]model.Member{
			func(r *model.Role) *[]model.Member { return &r.Users },
			func(r *model.Role) *[]model.Member { return &r.Groups },
			func(r *model.Role) *[]model.Member { return &r.Roles },
		} {
			list := of(r)
			among := func(m model.Member, in *model.Role) bool {
				return in != nil && slices.ContainsFunc(*of(in), func(y model.Member) bool { return y.Name == m.Name })
			}
			*list = slices.DeleteFunc(*list, func(m model.Member) bool { return among(m, remove) })
			if add == nil {
				continue
			}
			for _, m := range *of(add) {
				if !among(m, r) {
					*list = append(*list, m)
				}
			}
		}
		return c.putRole(r, actionUpdate)
	})
}

// putRole stores a role whose row exists: its members may be roles that contain
// it, and itself. Members that do not exist are refused.
func (t *tx) putRole(r *model.Role, action string) error {
	yes := true
	if r.Enabled == nil {
		r.Enabled = &yes
	}
	r.UpdatedBy, r.UpdateTime = t.author.User, t.millis()
	var refs []reference
	for _, x := range []struct {
		kind, word string
		members    []model.Member
	}{{kindUser, "user", r.Users}, {kindGroup, "Group", r.Groups}, {kindRole, "Role", r.Roles}} {
		for _, m := range x.members {
			ref := reference{x.kind, m.Name}
			known, err := t.known(ref)
			if err != nil {
				return err
			}
			if !known {
				return refuse(admin.UnknownPrincipal, m.Name, "%s with name: %s does not exist ", x.word, m.Name)
			}
			refs = append(refs, ref)
		}
	}
	doc, err := encode(r)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE roles SET doc = ? WHERE id = ?`, doc, r.ID); err != nil {
		return err
	}
	if err := t.references("role_refs", "role_id", r.ID, refs); err != nil {
		return err
	}
	if err := t.advance(roleVersion); err != nil {
		return err
	}
	return t.record(change{what: whatRole, id: r.ID, name: r.Name, action: action}, r)
}

// DeleteRole implements admin.Server.
func (s *Store) DeleteRole(ctx context.Context, name string) error {
	return s.write(ctx, func(c *tx) error {
		r, err := c.role(name)
		if admin.KindOf(err) == admin.NotFound {
			var f failures
			f.add(4007, "name", "", missing, "No RangerRole found for name[%s]", name)
			f.about(name)
			return f.err()
		}
		if err != nil {
			return err
		}
		where, err := c.uses(reference{kindRole, name})
		if err != nil {
			return err
		}
		if where != "" {
			return refuse(admin.InUse, name, "Role '%s' can not be deleted as it is referenced in one or more %s", name, where)
		}
		if err := c.exec(`DELETE FROM roles WHERE id = ?`, r.ID); err != nil {
			return err
		}
		if err := c.advance(roleVersion); err != nil {
			return err
		}
		return c.record(change{what: whatRole, id: r.ID, name: name, action: actionDelete}, nil)
	})
}
