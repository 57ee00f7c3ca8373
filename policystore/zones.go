package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func scanZone(scan func(...any) error) (*model.Zone, error) {
	z := &model.Zone{}
	var id int64
	var doc []byte
	if err := scan(&id, &doc); err != nil {
		return nil, err
	}
	err := json.Unmarshal(doc, z)
	z.ID = id
	return z, err
}

func (t *tx) zones(where string, args ...any) (all []*model.Zone, err error) {
	err = t.each(`SELECT id, doc FROM zones WHERE `+where+` ORDER BY id`, args, func(scan func(...any) error) error {
		z, err := scanZone(scan)
		all = append(all, z)
		return err
	})
	return all, err
}

func (t *tx) zone(name string) (*model.Zone, error) {
	z, err := scanZone(t.QueryRowContext(t.ctx, `SELECT id, doc FROM zones WHERE name = ?`, name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSuchName(name)
	}
	return z, err
}

// Zones implements admin.Server, by id.
func (s *Store) Zones(ctx context.Context) (all []*model.Zone, err error) {
	err = s.read(ctx, func(q *tx) error {
		all, err = q.zones(`1`)
		return err
	})
	return all, err
}

// CreateZone implements admin.Server. Ranger makes default policies in a zone; the
// store makes none.
func (s *Store) CreateZone(ctx context.Context, zone *model.Zone) (made *model.Zone, err error) {
	err = s.write(ctx, func(c *tx) error {
		z, err := copyOf(zone)
		if err != nil {
			return err
		}
		z.ID, z.CreatedBy, z.CreateTime = 0, c.author.User, c.millis()
		made = z
		return c.putZone(z, nil)
	})
	return made, err
}

// UpdateZone implements admin.Server. The zone is found by its id, by its name
// when it has none. A zone may be renamed: its policies follow.
func (s *Store) UpdateZone(ctx context.Context, zone *model.Zone) (made *model.Zone, err error) {
	err = s.write(ctx, func(c *tx) error {
		z, err := copyOf(zone)
		if err != nil {
			return err
		}
		old, err := scanZone(c.QueryRowContext(ctx, `SELECT id, doc FROM zones WHERE id = ?1 OR (?1 = 0 AND name = ?2)`, z.ID, z.Name).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			var f failures
			f.add(3037, "id", "", untyped, "No security zone found for [%d]", z.ID)
			return f.err()
		}
		if err != nil {
			return err
		}
		z.ID, z.CreatedBy, z.CreateTime = old.ID, old.CreatedBy, old.CreateTime
		made = z
		return c.putZone(z, old)
	})
	return made, err
}

func (t *tx) putZone(z, old *model.Zone) error {
	yes := true
	if z.Enabled == nil {
		z.Enabled = &yes
	}
	z.UpdatedBy, z.UpdateTime = t.author.User, t.millis()
	var f failures
	if err := t.checkZone(&f, z); err != nil {
		return err
	}
	if err := f.err(); err != nil {
		return err
	}
	refs := zoneReferences(z)
	for _, r := range refs {
		known, err := t.known(r)
		if err != nil {
			return err
		}
		if !known {
			return refuse(admin.UnknownPrincipal, r.name, "%s with name: %s does not exist ", r.kind, r.name)
		}
	}
	action, affected := actionUpdate, []*model.Zone{z}
	if old != nil {
		affected = append(affected, old)
		if err := t.exec(`UPDATE zones SET name = ? WHERE id = ?`, z.Name, z.ID); err != nil {
			return err
		}
		if err := t.renameZone(z, old.Name); err != nil {
			return err
		}
	} else {
		action = actionCreate
		var err error
		if z.ID, err = t.insert(`INSERT INTO zones (name, doc) VALUES (?, '{}')`, z.Name); err != nil {
			return err
		}
	}
	doc, err := encode(z)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE zones SET doc = ? WHERE id = ?`, doc, z.ID); err != nil {
		return err
	}
	if err := t.references("zone_refs", "zone_id", z.ID, refs); err != nil {
		return err
	}
	if err := t.zoneServicesChanged(affected...); err != nil {
		return err
	}
	return t.record(change{what: whatZone, id: z.ID, name: z.Name, action: action}, z)
}

func zoneReferences(z *model.Zone) []reference {
	refs := named(named(nil, kindUser, z.AdminUsers), kindUser, z.AuditUsers)
	refs = named(named(refs, kindGroup, z.AdminUserGroups), kindGroup, z.AuditUserGroups)
	return named(named(refs, kindRole, z.AdminRoles), kindRole, z.AuditRoles)
}

// renameZone writes the name of a zone into its policies, as new versions of them:
// the name is in their signatures.
func (t *tx) renameZone(z *model.Zone, old string) error {
	if z.Name == old {
		return nil
	}
	all, err := t.policyList(`zone_id = ?`, z.ID)
	if err != nil {
		return err
	}
	for _, p := range all {
		p.ZoneName, p.Version = z.Name, p.Version+1
		p.UpdatedBy, p.UpdateTime, p.ResourceSignature = t.author.User, t.millis(), signature(p)
		doc, err := policyDoc(*p)
		if err != nil {
			return err
		}
		whole, err := encode(p)
		if err != nil {
			return err
		}
		if err := t.exec(`UPDATE policies SET signature = ?, version = ?, updated_by = ?, update_time = ?, doc = ? WHERE id = ?`,
			p.ResourceSignature, p.Version, p.UpdatedBy, p.UpdateTime, doc, p.ID); err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO policy_versions VALUES (?, ?, ?)`, p.ID, p.Version, whole); err != nil {
			return err
		}
		if err := t.record(change{what: whatPolicy, id: p.ID, name: p.Name, service: p.Service, action: actionUpdate, version: p.Version}, nil); err != nil {
			return err
		}
	}
	return nil
}

// zoneServicesChanged raises the policy versions of all services of the zones.
func (t *tx) zoneServicesChanged(zones ...*model.Zone) error {
	names := map[string]bool{}
	for _, z := range zones {
		for n := range z.Services {
			names[n] = true
		}
		for _, n := range z.TagServices {
			names[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		r, err := t.service(n)
		if admin.KindOf(err) == admin.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := t.policiesChanged(r.id); err != nil {
			return err
		}
	}
	return nil
}

// DeleteZone implements admin.Server.
func (s *Store) DeleteZone(ctx context.Context, name string) error {
	return s.write(ctx, func(c *tx) error {
		z, err := c.zone(name)
		if err != nil {
			return err
		}
		if err := c.deletePolicies(`zone_id = ?`, z.ID); err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM zones WHERE id = ?`, z.ID); err != nil {
			return err
		}
		if err := c.zoneServicesChanged(z); err != nil {
			return err
		}
		return c.record(change{what: whatZone, id: z.ID, name: name, action: actionDelete}, nil)
	})
}

// withoutService takes a service out of all zones.
func (t *tx) withoutService(name string) error {
	all, err := t.zones(`1`)
	if err != nil {
		return err
	}
	for _, z := range all {
		_, in := z.Services[name]
		if !in && !slices.Contains(z.TagServices, name) {
			continue
		}
		delete(z.Services, name)
		z.TagServices = slices.DeleteFunc(z.TagServices, func(s string) bool { return s == name })
		doc, err := encode(z)
		if err != nil {
			return err
		}
		if err := t.exec(`UPDATE zones SET doc = ? WHERE id = ?`, doc, z.ID); err != nil {
			return err
		}
		if err := t.record(change{what: whatZone, id: z.ID, name: z.Name, action: actionUpdate}, z); err != nil {
			return err
		}
	}
	return nil
}

// checkZone finds what is wrong with a zone. Source: Ranger's
// RangerSecurityZoneValidator, but for the comparison of wildcards.
func (t *tx) checkZone(f *failures, z *model.Zone) error {
	if strings.TrimSpace(z.Name) == "" {
		f.add(3035, "name", "", missing, "Internal error: missing field[name]")
		return nil
	}
	others, err := t.zones(`id <> ?`, z.ID)
	if err != nil {
		return err
	}
	if n := slices.IndexFunc(others, func(o *model.Zone) bool { return o.Name == z.Name }); n >= 0 {
		f.add(3036, "name", "", untyped, "Another security zone already exists for this name: zone-id=[%d]]", others[n].ID)
		f.about(z.Name)
		return nil
	}
	for n, count := range []int{len(z.AdminUsers) + len(z.AdminUserGroups) + len(z.AdminRoles), len(z.AuditUsers) + len(z.AuditUserGroups) + len(z.AuditRoles)} {
		if count == 0 {
			f.add(3038, "security zone "+[]string{"admin", "audit"}[n]+" users/user-groups/roles", "", missing, "users, user-groups and roles collections for the security zone were null/empty")
		}
	}
	for _, name := range z.TagServices {
		r, err := t.service(name)
		if err != nil && admin.KindOf(err) != admin.NotFound {
			return err
		}
		if err != nil || r.Type != tagType {
			f.add(3040, "security zone tag-services", "", untyped, "Invalid service [%s]", name)
			f.about(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(z.Services)) {
		if err := t.checkZoneService(f, z, name, others); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) checkZoneService(f *failures, z *model.Zone, name string, others []*model.Zone) error {
	r, err := t.service(name)
	if admin.KindOf(err) == admin.NotFound {
		f.add(3040, "security zone resource service-name", "", untyped, "Invalid service [%s]", name)
		f.about(name)
		return nil
	}
	if err != nil {
		return err
	}
	def, err := t.definition(r.Type)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, resource := range z.Services[name].Resources {
		ok := false
		for _, hierarchies := range def.hierarchies {
			ok = ok || slices.ContainsFunc(possible(hierarchies, resource), func(h []model.ResourceDef) bool { return complete(h, resource) })
		}
		if names := slices.Sorted(maps.Keys(resource)); !ok {
			f.add(3042, "security zone resource hierarchy", "", untyped, "Invalid resource hierarchy specified for service:[%s], resource-hierarchy:[%s]", name, list(names))
		}
		for _, element := range slices.Sorted(maps.Keys(resource)) {
			if len(resource[element]) == 0 {
				f.add(3039, "security zone resources", "resources", missing, "No resources specified for service [%s]", element)
			}
		}
		text := zoneResource(resource)
		if seen[text] {
			f.add(3052, "security zone resources", "resources", untyped, "Resource [%s] specified more than once in service [%s]", text, name)
		}
		seen[text] = true
		for _, o := range others {
			if slices.ContainsFunc(o.Services[name].Resources, func(x map[string][]string) bool { return def.overlap(resource, x) }) {
				f.add(3046, "", "", untyped, "Multiple zones:[%s] match resource:[%s]", list([]string{o.Name, z.Name}), text)
				f.about(o.Name)
			}
		}
	}
	return nil
}

func zoneResource(r map[string][]string) string {
	m := map[string]string{}
	for k, v := range r {
		m[k] = list(slices.Sorted(slices.Values(v)))
	}
	return fmt.Sprint(treeMap(m))
}

// overlap reports whether some resource lies in both: in every element that both
// have, a value of the one and a value of the other have a text in common.
func (d *definition) overlap(a, b map[string][]string) bool {
	for element, values := range a {
		others, both := b[element]
		if !both {
			continue
		}
		fold := d.resources[element].MatcherOptions["ignoreCase"] != "false"
		if !slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(others, func(o string) bool {
				if fold {
					return patternsMeet([]rune(strings.ToLower(v)), []rune(strings.ToLower(o)))
				}
				return patternsMeet([]rune(v), []rune(o))
			})
		}) {
			return false
		}
	}
	return true
}

// patternsMeet reports whether a text fits both patterns of "*" (any run) and "?"
// (any one).
func patternsMeet(a, b []rune) bool {
	type at struct{ i, j int }
	seen, next := map[at]bool{}, []at{{0, 0}}
	for len(next) > 0 {
		p := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		endA, endB := p.i == len(a), p.j == len(b)
		if endA && endB {
			return true
		}
		if !endA && a[p.i] == '*' {
			next = append(next, at{p.i + 1, p.j})
			if !endB {
				next = append(next, at{p.i, p.j + 1})
			}
		}
		if !endB && b[p.j] == '*' {
			next = append(next, at{p.i, p.j + 1})
			if !endA {
				next = append(next, at{p.i + 1, p.j})
			}
		}
		if !endA && !endB && a[p.i] != '*' && b[p.j] != '*' && (a[p.i] == b[p.j] || a[p.i] == '?' || b[p.j] == '?') {
			next = append(next, at{p.i + 1, p.j + 1})
		}
	}
	return false
}
