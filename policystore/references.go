package policystore

import (
	"database/sql"
	"errors"
	"slices"
	"strconv"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// The kinds of principals in references.
const (
	kindUser  = "user"
	kindGroup = "group"
	kindRole  = "role"
)

// reference names a principal in a policy, role or zone.
type reference struct{ kind, name string }

// named adds principals of a kind.
func named(to []reference, kind string, names []string) []reference {
	for _, n := range names {
		if r := (reference{kind, n}); !slices.Contains(to, r) {
			to = append(to, r)
		}
	}
	return to
}

// policyReferences are the principals of a policy, in the order in which Ranger
// looks for them: roles, groups, users.
func policyReferences(p *model.Policy) (refs []reference) {
	for _, kind := range []string{kindRole, kindGroup, kindUser} {
		for _, items := range itemLists(p) {
			for _, i := range items {
				refs = named(refs, kind, map[string][]string{kindRole: i.Roles, kindGroup: i.Groups, kindUser: i.Users}[kind])
			}
		}
	}
	return refs
}

// known reports whether the store has a principal.
func (t *tx) known(r reference) (bool, error) {
	return t.exists(map[string]string{
		kindUser:  `SELECT 1 FROM users WHERE name = ?`,
		kindGroup: `SELECT 1 FROM groups WHERE name = ?`,
		kindRole:  `SELECT 1 FROM roles WHERE name = ?`,
	}[r.kind], r.name)
}

// checkReferences refuses a policy that names principals, conditions or masks that
// do not exist.
func (t *tx) checkReferences(p *model.Policy, def *definition) error {
	for _, r := range policyReferences(p) {
		known, err := t.known(r)
		if err != nil {
			return err
		}
		if !known {
			word := map[string]string{kindRole: "Role", kindGroup: "Group", kindUser: "User"}[r.kind]
			return refuse(admin.UnknownPrincipal, r.name, "Operation denied. %s name: %s specified in policy does not exist in ranger admin.", word, r.name)
		}
	}
	conditions := p.Conditions
	var masks []string
	for _, items := range itemLists(p) {
		for _, i := range items {
			conditions = append(slices.Clip(conditions), i.Conditions...)
			if i.DataMaskInfo != nil {
				masks = append(masks, i.DataMaskInfo.DataMaskType)
			}
		}
	}
	for _, c := range conditions {
		if !slices.Contains(def.conditions, c.Type) {
			return refuse(admin.Invalid, p.Name, "%s: is not a valid condition-type. policy='%s' service='%s'", c.Type, p.Name, p.Service)
		}
	}
	for _, m := range masks {
		if !slices.Contains(def.maskTypes, m) {
			return refuse(admin.Invalid, p.Name, "%s: is not a valid datamask-type. policy='%s' service='%s'", m, p.Name, p.Service)
		}
	}
	return nil
}

// references replaces the references of an object. table and column are names of
// the schema.
func (t *tx) references(table, column string, id int64, refs []reference) error {
	if err := t.exec(`DELETE FROM `+table+` WHERE `+column+` = ?`, id); err != nil {
		return err
	}
	for _, r := range refs {
		if err := t.exec(`INSERT OR IGNORE INTO `+table+` (`+column+`, kind, name) VALUES (?, ?, ?)`, id, r.kind, r.name); err != nil {
			return err
		}
	}
	return nil
}

// uses says where a principal is named, in words: "policies", "other roles",
// "security zones"; "" when it is nowhere. A role in itself does not count.
func (t *tx) uses(r reference) (string, error) {
	for _, x := range []struct{ where, query string }{
		{"policies", `SELECT 1 FROM policy_refs WHERE kind = ? AND name = ?`},
		{"other roles", `SELECT 1 FROM role_refs r JOIN roles o ON o.id = r.role_id WHERE r.kind = ?1 AND r.name = ?2 AND NOT (?1 = 'role' AND o.name = ?2)`},
		{"security zones", `SELECT 1 FROM zone_refs WHERE kind = ? AND name = ?`},
	} {
		used, err := t.exists(x.query, r.kind, r.name)
		if err != nil {
			return "", err
		}
		if used {
			return x.where, nil
		}
	}
	return "", nil
}

// optional takes "no row" for an answer.
func optional(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// rowID is an id that was read as text.
func rowID(text string) int64 {
	id, _ := strconv.ParseInt(text, 10, 64) // from an INTEGER column
	return id
}
