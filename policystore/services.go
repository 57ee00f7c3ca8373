package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

const (
	tagType      = "tag" // the type of services that hold policies on tags
	auditFilters = "ranger.plugin.audit.filters"
	// hidden stands for a password in the configs of a service. The store connects
	// to nothing and keeps none.
	hidden = "*****"
)

// serviceRow is a service as it is stored.
type serviceRow struct {
	model.Service        // without what the columns hold
	id, tagID            int64
	policyTime, tagTime  int64
	policyVersion, tagVn int64
}

const serviceColumns = `SELECT s.id, s.name, s.type, s.enabled, COALESCE(s.tag_service, 0), COALESCE(t.name, ''), s.doc,
	s.policy_version, s.policy_time, s.tag_version, s.tag_time
	FROM services s LEFT JOIN services t ON t.id = s.tag_service`

func scanService(scan func(...any) error) (*serviceRow, error) {
	r := &serviceRow{}
	var doc []byte
	var name, typ, tagService string
	var enabled bool
	if err := scan(&r.id, &name, &typ, &enabled, &r.tagID, &tagService, &doc, &r.policyVersion, &r.policyTime, &r.tagVn, &r.tagTime); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, &r.Service); err != nil {
		return nil, err
	}
	s := &r.Service
	s.ID, s.Name, s.Type, s.Enabled, s.TagService = r.id, name, typ, &enabled, tagService
	s.PolicyVersion, s.PolicyUpdateTime, s.TagVersion, s.TagUpdateTime = r.policyVersion, r.policyTime, r.tagVn, r.tagTime
	return r, nil
}

// service finds a service by name; *admin.Error when there is none.
func (t *tx) service(name string) (*serviceRow, error) {
	r, err := scanService(t.QueryRowContext(t.ctx, serviceColumns+` WHERE s.name = ?`, name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSuchName(name)
	}
	return r, err
}

func (t *tx) serviceByID(id int64) (*serviceRow, error) {
	r, err := scanService(t.QueryRowContext(t.ctx, serviceColumns+` WHERE s.id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSuchID("RangerService")
	}
	return r, err
}

// Services implements admin.Server, by id.
func (s *Store) Services(ctx context.Context) ([]*model.Service, error) {
	var all []*model.Service
	err := s.read(ctx, func(q *tx) error {
		return q.each(serviceColumns+` ORDER BY s.id`, nil, func(scan func(...any) error) error {
			r, err := scanService(scan)
			if err == nil {
				all = append(all, &r.Service)
			}
			return err
		})
	})
	return all, err
}

// Service implements admin.Server.
func (s *Store) Service(ctx context.Context, name string) (*model.Service, error) {
	var found *model.Service
	err := s.read(ctx, func(q *tx) error {
		r, err := q.service(name)
		if err == nil {
			found = &r.Service
		}
		return err
	})
	return found, err
}

// Source of both: Ranger's RangerServiceValidator.
var (
	serviceName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,256}$`)
	displayName = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9 _-]{0,255}$`)
)

// checkService finds what is wrong with a service, fills in what Ranger fills in,
// and yields the id of its tag service, nil for none. id is 0 for a new one.
func (t *tx) checkService(s *model.Service, id int64) (tag any, err error) {
	var f failures
	switch {
	case strings.TrimSpace(s.Name) == "":
		f.add(1006, "name", "", missing, "Missing service name")
	case !serviceName.MatchString(s.Name):
		f.add(3031, "name", "", wrong, "Invalid service name=[%s]. It should not be longer than 256 characters and special characters are not allowed (except underscore and hyphen)", s.Name)
	default:
		if id == 0 {
			taken, err := t.exists(`SELECT 1 FROM services WHERE name = ?`, s.Name)
			if err != nil {
				return nil, err
			}
			if taken {
				f.add(1007, "name", "", wrong, "Duplicate service name: name=[%s]", s.Name)
				f.about(s.Name)
			}
		}
	}
	if s.DisplayName == "" {
		s.DisplayName = s.Name
	}
	if s.Name != "" && !displayName.MatchString(s.DisplayName) {
		f.add(3050, "displayName", "", wrong, "Invalid service display name [%s]. It should not be longer than 256 characters, should not start with space, and should not include special characters (except underscore, hyphen and space)", s.DisplayName)
	}
	var def *definition
	if strings.TrimSpace(s.Type) == "" {
		f.add(1009, "type", "", missing, "Missing service def")
	} else if def, err = t.definition(s.Type); admin.KindOf(err) == admin.NotFound {
		f.add(1010, "type", "", wrong, "Service def not found: service-def-name=[%s]", s.Type)
	} else if err != nil {
		return nil, err
	}
	if def != nil {
		var without []string
		for _, c := range def.configs {
			if c.Mandatory && s.Configs[c.Name] == "" {
				without = append(without, c.Name)
			}
		}
		if len(without) > 0 {
			f.add(1011, "configuration", without[0], missing, "Missing required configuration parameter(s): missing parameters=%s", list(without))
		}
	}
	if s.TagService != "" && s.Type == tagType {
		f.add(0, "tag_service", "", wrong, "tag service cannot be part of a tag service")
	} else if s.TagService != "" {
		r, err := t.service(s.TagService)
		switch {
		case admin.KindOf(err) == admin.NotFound:
			f.add(0, "tag_service", "", wrong, "tag service [%s] does not exist", s.TagService)
			f.about(s.TagService)
		case err != nil:
			return nil, err
		case r.Type != tagType:
			f.add(0, "tag_service", "", wrong, "service [%s] is not of type tag", s.TagService)
			f.about(s.TagService)
		default:
			tag = r.id
		}
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	s.Configs = maps.Clone(s.Configs)
	if s.Configs == nil {
		s.Configs = model.Strings{}
	}
	for _, c := range def.configs {
		if c.Type == "password" && s.Configs[c.Name] != "" {
			s.Configs[c.Name] = hidden
		}
		if c.Name == auditFilters && c.DefaultValue != "" && id == 0 {
			if _, given := s.Configs[auditFilters]; !given {
				s.Configs[auditFilters] = c.DefaultValue
			}
		}
	}
	return tag, nil
}

// serviceDoc is what the column doc holds of a service.
func serviceDoc(s model.Service) ([]byte, error) {
	s.ID, s.Enabled, s.TagService = 0, nil, ""
	s.PolicyVersion, s.PolicyUpdateTime, s.TagVersion, s.TagUpdateTime = 0, 0, 0, 0
	return encode(&s)
}

// CreateService implements admin.Server. Ranger makes default policies for some
// types; the store makes none.
func (s *Store) CreateService(ctx context.Context, service *model.Service) (*model.Service, error) {
	var made *model.Service
	err := s.write(ctx, func(c *tx) error {
		n, err := copyOf(service)
		if err != nil {
			return err
		}
		tag, err := c.checkService(n, 0)
		if err != nil {
			return err
		}
		n.GUID, n.Version = newGUID(), 1
		n.CreatedBy, n.UpdatedBy, n.CreateTime, n.UpdateTime = c.author.User, c.author.User, c.millis(), c.millis()
		doc, err := serviceDoc(*n)
		if err != nil {
			return err
		}
		id, err := c.insert(`INSERT INTO services (name, type, enabled, tag_service, doc, policy_version, policy_time, tag_version, tag_time)
			VALUES (?, ?, ?, ?, ?, 1, ?, 1, ?)`, n.Name, n.Type, n.IsEnabled(), tag, doc, c.millis(), c.millis())
		if err != nil {
			return err
		}
		if made, err = c.stored(id); err != nil {
			return err
		}
		return c.record(change{what: whatService, id: id, name: n.Name, service: n.Name, action: actionCreate, version: 1}, made)
	})
	return made, err
}

func (t *tx) stored(id int64) (*model.Service, error) {
	r, err := t.serviceByID(id)
	if err != nil {
		return nil, err
	}
	return &r.Service, nil
}

// UpdateService implements admin.Server. The service is found by its id, by its
// name when it has none.
func (s *Store) UpdateService(ctx context.Context, service *model.Service) (*model.Service, error) {
	var made *model.Service
	err := s.write(ctx, func(c *tx) error {
		n, err := copyOf(service)
		if err != nil {
			return err
		}
		var old *serviceRow
		if n.ID == 0 {
			old, err = c.service(n.Name)
		} else {
			old, err = c.serviceByID(n.ID)
		}
		if err != nil {
			return err
		}
		switch {
		case n.Name != old.Name:
			return refuse(admin.Invalid, old.Name, "Service %s cannot be renamed", old.Name)
		case n.Type != old.Type:
			return refuse(admin.Invalid, old.Name, "The type of service %s cannot be changed", old.Name)
		}
		tag, err := c.checkService(n, old.id)
		if err != nil {
			return err
		}
		n.GUID, n.Version = old.GUID, old.Version+1
		n.CreatedBy, n.CreateTime, n.UpdatedBy, n.UpdateTime = old.CreatedBy, old.CreateTime, c.author.User, c.millis()
		doc, err := serviceDoc(*n)
		if err != nil {
			return err
		}
		if err := c.exec(`UPDATE services SET enabled = ?, tag_service = ?, doc = ? WHERE id = ?`, n.IsEnabled(), tag, doc, old.id); err != nil {
			return err
		}
		if err := c.policiesChanged(old.id); err != nil {
			return err
		}
		if made, err = c.stored(old.id); err != nil {
			return err
		}
		return c.record(change{what: whatService, id: old.id, name: n.Name, service: n.Name, action: actionUpdate, version: n.Version}, made)
	})
	return made, err
}

// DeleteService implements admin.Server. A tag service that another service names
// is in use; zones lose the service.
func (s *Store) DeleteService(ctx context.Context, name string) error {
	return s.write(ctx, func(c *tx) error {
		r, err := c.service(name)
		if err != nil {
			return err
		}
		users, err := c.texts(`SELECT name FROM services WHERE tag_service = ? ORDER BY name`, r.id)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return refuse(admin.InUse, name, "Tag service %s can not be deleted as it is referenced in services %s", name, list(users))
		}
		if err := c.deletePolicies(`service_id = ?`, r.id); err != nil {
			return err
		}
		if err := c.withoutService(name); err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM tags WHERE NOT shared AND id IN (
			SELECT tag_id FROM tag_map m JOIN tag_resources r ON r.id = m.resource_id WHERE r.service_id = ?)`, r.id); err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM services WHERE id = ?`, r.id); err != nil {
			return err
		}
		return c.record(change{what: whatService, id: r.id, name: name, service: name, action: actionDelete, version: r.Version}, nil)
	})
}

// policiesChanged raises the policy version of a service, and of the services that
// name it as their tag service: their downloads hold its policies.
func (t *tx) policiesChanged(service int64) error {
	return t.exec(`UPDATE services SET policy_version = policy_version + 1, policy_time = ? WHERE id = ? OR tag_service = ?`,
		t.millis(), service, service)
}

// tagsChanged raises the tag version of a service.
func (t *tx) tagsChanged(service int64) error {
	return t.exec(`UPDATE services SET tag_version = tag_version + 1, tag_time = ? WHERE id = ?`, t.millis(), service)
}

// pluginConfig is the part of a service's configs that plugins are told.
func pluginConfig(configs model.Strings) model.Strings {
	// How plugins map the names of principals: not at all. Source: downloads of a
	// Ranger Admin 2.9 with default settings.
	c := model.Strings{
		"ranger.plugins.conf.ldap.username.caseconversion":  "none",
		"ranger.plugins.conf.ldap.groupname.caseconversion": "none",
		"ranger.plugins.conf.mapping.username.handler":      "org.apache.ranger.ugsyncutil.transform.RegEx",
		"ranger.plugins.conf.mapping.groupname.handler":     "org.apache.ranger.ugsyncutil.transform.RegEx",
		"ranger.plugins.conf.mapping.regex.separator":       "/",
	}
	for _, k := range slices.Sorted(maps.Keys(configs)) {
		if strings.HasPrefix(k, "ranger.plugin.") {
			c[k] = configs[k]
		}
	}
	return c
}
