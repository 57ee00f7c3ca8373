package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"sqe/identity"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// The roles that users have in the server itself. Source: Ranger Admin 2.9.
const (
	roleSysAdmin = "ROLE_SYS_ADMIN"
	roleUser     = "ROLE_USER"
)

var adminRoles = []string{roleSysAdmin, roleUser, "ROLE_ADMIN_AUDITOR", "ROLE_KEY_ADMIN", "ROLE_KEY_ADMIN_AUDITOR"}

// userDoc is what the column doc holds of a user.
type userDoc struct {
	FirstName   string            `json:"firstName,omitempty"`
	LastName    string            `json:"lastName,omitempty"`
	Description string            `json:"description,omitempty"`
	Email       string            `json:"email,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

func scanUser(scan func(...any) error) (*model.User, error) {
	u := &model.User{}
	var roles string
	var doc []byte
	if err := scan(&u.ID, &u.Name, &roles, &doc); err != nil {
		return nil, err
	}
	var d userDoc
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	u.FirstName, u.LastName, u.Description, u.Email, u.Attributes = d.FirstName, d.LastName, d.Description, d.Email, d.Attributes
	u.AdminRoles = strings.Fields(roles)
	return u, nil
}

func (t *tx) users(where string, args ...any) ([]*model.User, error) {
	var all []*model.User
	err := t.each(`SELECT id, name, admin_roles, doc FROM users WHERE `+where+` ORDER BY id`, args, func(scan func(...any) error) error {
		u, err := scanUser(scan)
		all = append(all, u)
		return err
	})
	if err != nil {
		return nil, err
	}
	byID := map[int64]*model.User{}
	for _, u := range all {
		byID[u.ID] = u
	}
	return all, t.each(`SELECT m.user_id, g.name FROM memberships m JOIN groups g ON g.id = m.group_id
		WHERE m.user_id IN (SELECT id FROM users WHERE `+where+`) ORDER BY g.name`, args, func(scan func(...any) error) error {
		var id int64
		var group string
		err := scan(&id, &group)
		if u := byID[id]; u != nil {
			u.Groups = append(u.Groups, group)
		}
		return err
	})
}

func (t *tx) user(name string) (*model.User, error) {
	all, err := t.users(`name = ?`, name)
	if err == nil && len(all) == 0 {
		return nil, refuse(admin.NotFound, name, "%s is Not Found", name)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Users implements admin.Server, by id, the pseudo users included.
func (s *Store) Users(ctx context.Context) (all []*model.User, err error) {
	err = s.read(ctx, func(q *tx) error {
		all, err = q.users(`1`)
		return err
	})
	return all, err
}

// User implements admin.Server.
func (s *Store) User(ctx context.Context, name string) (u *model.User, err error) {
	err = s.read(ctx, func(q *tx) error {
		u, err = q.user(name)
		return err
	})
	return u, err
}

// CreateUser implements admin.Server. A user without a password cannot log in, and
// needs none to be named in policies.
func (s *Store) CreateUser(ctx context.Context, user *model.User) (made *model.User, err error) {
	hash, err := hashOf(user.Password)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(c *tx) error {
		known, err := c.known(reference{kindUser, user.Name})
		switch {
		case err != nil:
			return err
		case strings.TrimSpace(user.Name) == "":
			return refuse(admin.Invalid, "", "Please provide a valid username.")
		case known:
			return refuse(admin.Exists, user.Name, "%s already exists", user.Name)
		}
		id, err := c.insert(`INSERT INTO users (name, admin_roles, doc, password_hash) VALUES (?, '', '{}', '')`, user.Name)
		if err != nil {
			return err
		}
		made, err = c.putUser(id, user, hash, actionCreate)
		return err
	})
	return made, err
}

// UpdateUser implements admin.Server. The user is found by the id, by the name
// when there is none.
func (s *Store) UpdateUser(ctx context.Context, user *model.User) (made *model.User, err error) {
	hash, err := hashOf(user.Password)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(c *tx) error {
		old, err := c.users(`id = ?1 OR (?1 = 0 AND name = ?2)`, user.ID, user.Name)
		switch {
		case err != nil:
			return err
		case len(old) == 0:
			return refuse(admin.NotFound, user.Name, "user %s does not exist.", user.Name)
		case old[0].Name != user.Name:
			return refuse(admin.Invalid, old[0].Name, "user name updates are not allowed.")
		}
		made, err = c.putUser(old[0].ID, user, hash, actionUpdate)
		return err
	})
	return made, err
}

// putUser stores a user whose row exists; an empty hash leaves the password.
func (t *tx) putUser(id int64, u *model.User, hash, action string) (*model.User, error) {
	roles := u.AdminRoles
	if len(roles) == 0 {
		roles = []string{roleUser}
	}
	for _, r := range roles {
		if !slices.Contains(adminRoles, r) {
			return nil, refuse(admin.Invalid, r, "Please provide a valid role: %s", r)
		}
	}
	if u.Email != "" {
		// Ranger's own users have their name for an address: what has no "@" is kept.
		if _, err := mail.ParseAddress(u.Email); err != nil && strings.Contains(u.Email, "@") {
			return nil, refuse(admin.Invalid, u.Name, "Please provide valid email address.")
		}
	}
	doc, err := encode(userDoc{u.FirstName, u.LastName, u.Description, u.Email, u.Attributes})
	if err != nil {
		return nil, err
	}
	if err := t.exec(`UPDATE users SET admin_roles = ?, doc = ? WHERE id = ?`, strings.Join(distinct(roles), " "), doc, id); err != nil {
		return nil, err
	}
	if err := t.administrated(); err != nil {
		return nil, err
	}
	if err := t.exec(`DELETE FROM memberships WHERE user_id = ?`, id); err != nil {
		return nil, err
	}
	for _, g := range distinct(u.Groups) {
		r, err := t.group(g)
		if admin.KindOf(err) == admin.NotFound {
			return nil, refuse(admin.UnknownPrincipal, g, "%s is Not Found", g)
		}
		if err != nil {
			return nil, err
		}
		if err := t.exec(`INSERT INTO memberships VALUES (?, ?)`, id, r.ID); err != nil {
			return nil, err
		}
	}
	if hash != "" {
		if err := t.setHash(id, hash); err != nil {
			return nil, err
		}
	}
	if err := t.advance(userStoreVersion); err != nil {
		return nil, err
	}
	made, err := t.user(u.Name)
	if err != nil {
		return nil, err
	}
	return made, t.record(change{what: whatUser, id: id, name: u.Name, action: action}, made)
}

// administrated refuses a change that leaves nobody who may administrate.
func (t *tx) administrated() error {
	some, err := t.exists(`SELECT 1 FROM users WHERE ' ' || admin_roles || ' ' LIKE '% ` + roleSysAdmin + ` %'`)
	if err == nil && !some {
		return refuse(admin.Invalid, "", "The last user with the role %s can not lose it", roleSysAdmin)
	}
	return err
}

// DeleteUser implements admin.Server.
func (s *Store) DeleteUser(ctx context.Context, name string) error {
	return s.write(ctx, func(c *tx) error {
		u, err := c.user(name)
		if err != nil {
			return err
		}
		if slices.Contains(pseudoUsers, name) {
			return refuse(admin.InUse, name, "User '%s' can not be deleted as it is referenced by the server itself", name)
		}
		if err := c.unused(reference{kindUser, name}, "User"); err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM users WHERE id = ?`, u.ID); err != nil {
			return err
		}
		if err := c.administrated(); err != nil {
			return err
		}
		for _, counter := range []string{userStoreVersion, loginVersion} {
			if err := c.advance(counter); err != nil {
				return err
			}
		}
		return c.record(change{what: whatUser, id: u.ID, name: name, action: actionDelete}, nil)
	})
}

// unused refuses to delete a principal that something names.
func (t *tx) unused(r reference, word string) error {
	where, err := t.uses(r)
	if err != nil || where == "" {
		return err
	}
	where = strings.TrimPrefix(where, "other ")
	return refuse(admin.InUse, r.name, "%s '%s' can not be deleted as it is referenced in one or more %s", word, r.name, where)
}

// hashOf is the hash of a password that may be set, "" for none.
func hashOf(password string) (string, error) {
	if password == "" {
		return "", nil
	}
	if weak(password) {
		return "", refuse(admin.Invalid, "", "serverMsg.xuserMgrValidatePassword")
	}
	return identity.HashPassword(password)
}

// weak is what Ranger refuses as a password.
func weak(password string) bool {
	has := func(f func(rune) bool) bool { return strings.ContainsFunc(password, f) }
	return len(password) < 8 || !has(unicode.IsUpper) || !has(unicode.IsLower) || !has(unicode.IsDigit)
}

func (t *tx) setHash(user int64, hash string) error {
	if err := t.exec(`UPDATE users SET password_hash = ? WHERE id = ?`, hash, user); err != nil {
		return err
	}
	return t.advance(loginVersion)
}

// SetPassword sets the password of a user. It asks for 8 characters with upper and
// lower case and a digit, as Ranger does.
func (s *Store) SetPassword(ctx context.Context, user, password string) error {
	hash, err := hashOf(password)
	if err != nil {
		return err
	}
	if hash == "" {
		return refuse(admin.Invalid, user, "serverMsg.xuserMgrValidatePassword")
	}
	return s.write(ctx, func(c *tx) error {
		var id int64
		err := c.one(`SELECT id FROM users WHERE name = ?`, []any{user}, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(admin.NotFound, user, "%s is Not Found", user)
		}
		if err != nil {
			return err
		}
		if err := c.setHash(id, hash); err != nil {
			return err
		}
		return c.record(change{what: whatPassword, id: id, name: user, action: actionUpdate}, nil)
	})
}
