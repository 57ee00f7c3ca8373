package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

const policyColumns = `SELECT id, signature, created_by, updated_by, create_time, update_time, doc FROM policies`

func scanPolicy(scan func(...any) error) (*model.Policy, error) {
	var id, created, updated int64
	var sig, by, last string
	var doc []byte
	if err := scan(&id, &sig, &by, &last, &created, &updated, &doc); err != nil {
		return nil, err
	}
	p := &model.Policy{}
	if err := json.Unmarshal(doc, p); err != nil {
		return nil, err
	}
	p.ResourceSignature, p.CreatedBy, p.UpdatedBy, p.CreateTime, p.UpdateTime = sig, by, last, created, updated
	return p, nil
}

// policyDoc is what a download shows of a policy.
func policyDoc(p model.Policy) ([]byte, error) {
	p.ResourceSignature, p.CreatedBy, p.UpdatedBy, p.CreateTime, p.UpdateTime = "", "", "", 0, 0
	return encode(&p)
}

func (t *tx) policy(id int64) (*model.Policy, error) {
	p, err := scanPolicy(t.QueryRowContext(t.ctx, policyColumns+` WHERE id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSuchID("RangerPolicy")
	}
	return p, err
}

func (t *tx) policyList(where string, args ...any) (all []*model.Policy, err error) {
	err = t.each(policyColumns+` WHERE `+where+` ORDER BY id`, args, func(scan func(...any) error) error {
		p, err := scanPolicy(scan)
		all = append(all, p)
		return err
	})
	return all, err
}

// Policies implements admin.Server. Unlike a Ranger's search it tells who wrote
// what when.
func (s *Store) Policies(ctx context.Context, service string) (all []*model.Policy, err error) {
	err = s.read(ctx, func(q *tx) error {
		r, err := q.service(service)
		if err != nil {
			return err
		}
		all, err = q.policyList(`service_id = ?`, r.id)
		return err
	})
	return all, err
}

// Policy implements admin.Server.
func (s *Store) Policy(ctx context.Context, id int64) (p *model.Policy, err error) {
	err = s.read(ctx, func(q *tx) error {
		p, err = q.policy(id)
		return err
	})
	return p, err
}

// PolicyNamed implements admin.Server.
func (s *Store) PolicyNamed(ctx context.Context, service, zone, name string) (p *model.Policy, err error) {
	err = s.read(ctx, func(q *tx) error {
		all, err := q.policyList(`name = ? AND service_id = (SELECT id FROM services WHERE name = ?)
			AND zone_id = CASE ? WHEN '' THEN 0 ELSE (SELECT id FROM zones WHERE name = ?) END`, name, service, zone, zone)
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return noSuchName(name)
		}
		p = all[0]
		return nil
	})
	return p, err
}

// CreatePolicy implements admin.Server.
func (s *Store) CreatePolicy(ctx context.Context, policy *model.Policy) (made *model.Policy, err error) {
	err = s.write(ctx, func(c *tx) error {
		p, err := copyOf(policy)
		if err != nil {
			return err
		}
		p.ID, p.Version = 0, 1
		if p.GUID == "" {
			p.GUID = newGUID()
		} else if taken, err := c.exists(`SELECT 1 FROM policies WHERE guid = ?`, p.GUID); err != nil {
			return err
		} else if taken {
			return refuse(admin.Exists, p.Name, "Another policy already exists with guid: %s", p.GUID)
		}
		p.CreatedBy, p.CreateTime = c.author.User, c.millis()
		made = p
		return c.putPolicy(p, nil)
	})
	return made, err
}

// UpdatePolicy implements admin.Server.
func (s *Store) UpdatePolicy(ctx context.Context, policy *model.Policy) (made *model.Policy, err error) {
	err = s.write(ctx, func(c *tx) error {
		p, err := copyOf(policy)
		if err != nil {
			return err
		}
		old, err := c.policy(p.ID)
		if admin.KindOf(err) == admin.NotFound {
			var f failures
			f.add(3004, "id", "", wrong, "No policy found for id[%d]", p.ID)
			return f.err()
		}
		if err != nil {
			return err
		}
		p.GUID, p.Version, p.CreatedBy, p.CreateTime = old.GUID, old.Version+1, old.CreatedBy, old.CreateTime
		made = p
		return c.putPolicy(p, old)
	})
	return made, err
}

// putPolicy checks and stores a policy, over old unless that is nil, and makes p
// what it stored.
func (t *tx) putPolicy(p, old *model.Policy) error {
	var def *definition
	r, err := t.service(p.Service)
	if err == nil {
		if def, err = t.definition(r.Type); err != nil {
			return err
		}
	} else if admin.KindOf(err) != admin.NotFound { // checkPolicy says so in Ranger's words
		return err
	}
	normalize(p, def)
	service, zone, err := t.checkPolicy(p, old)
	if err != nil {
		return err
	}
	if err := t.checkReferences(p, def); err != nil {
		return err
	}
	p.ServiceType, p.ResourceSignature = service.Type, signature(p)
	p.UpdatedBy, p.UpdateTime = t.author.User, t.millis()
	action := actionUpdate
	if old == nil {
		action = actionCreate
		if p.ID, err = t.insert(`INSERT INTO policies (guid, service_id, zone_id, name, signature, enabled, version,
			created_by, updated_by, create_time, update_time, doc) VALUES (?, ?, ?, ?, ?, 0, 0, '', '', 0, 0, '')`,
			p.GUID, service.id, zone, p.Name, p.ResourceSignature); err != nil {
			return err
		}
	}
	doc, err := policyDoc(*p)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE policies SET name = ?, signature = ?, enabled = ?, version = ?, created_by = ?, updated_by = ?,
		create_time = ?, update_time = ?, doc = ? WHERE id = ?`, p.Name, p.ResourceSignature, p.IsEnabled(), p.Version,
		p.CreatedBy, p.UpdatedBy, p.CreateTime, p.UpdateTime, doc, p.ID); err != nil {
		return err
	}
	if err := t.references("policy_refs", "policy_id", p.ID, policyReferences(p)); err != nil {
		return err
	}
	if err := t.policiesChanged(service.id); err != nil {
		return err
	}
	whole, err := encode(p)
	if err != nil {
		return err
	}
	if err := t.exec(`INSERT INTO policy_versions VALUES (?, ?, ?)`, p.ID, p.Version, whole); err != nil {
		return err
	}
	return t.record(change{what: whatPolicy, id: p.ID, name: p.Name, service: p.Service, action: action, version: p.Version}, nil)
}

// DeletePolicy implements admin.Server.
func (s *Store) DeletePolicy(ctx context.Context, id int64) error {
	return s.write(ctx, func(c *tx) error {
		if _, err := c.policy(id); err != nil {
			return err
		}
		return c.deletePolicies(`id = ?`, id)
	})
}

// deletePolicies deletes what fits the condition; its versions stay.
func (t *tx) deletePolicies(where string, args ...any) error {
	gone, err := t.policyList(where, args...)
	if err != nil {
		return err
	}
	services, err := t.texts(`SELECT DISTINCT service_id FROM policies WHERE `+where, args...)
	if err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM policies WHERE `+where, args...); err != nil {
		return err
	}
	for _, p := range gone {
		if err := t.record(change{what: whatPolicy, id: p.ID, name: p.Name, service: p.Service, action: actionDelete, version: p.Version}, nil); err != nil {
			return err
		}
	}
	for _, id := range services {
		if err := t.policiesChanged(rowID(id)); err != nil {
			return err
		}
	}
	return nil
}
