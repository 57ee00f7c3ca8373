package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// The kinds of downloads.
type downloadKind int

const (
	policiesDownload downloadKind = iota
	tagsDownload
	rolesDownload
	usersDownload
)

// state yields the id of an enabled service and the version of its download.
var downloadState = [...]string{
	policiesDownload: `SELECT id, enabled, policy_version FROM services WHERE name = ?`,
	tagsDownload:     `SELECT id, enabled, tag_version FROM services WHERE name = ?`,
	rolesDownload:    `SELECT s.id, s.enabled, c.version FROM services s, counters c WHERE s.name = ? AND c.name = 'roles'`,
	usersDownload:    `SELECT s.id, s.enabled, c.version FROM services s, counters c WHERE s.name = ? AND c.name = 'userstore'`,
}

// downloadCache keeps the latest body of each download, so that it is built once
// for all who poll.
type downloadCache struct {
	mu    sync.Mutex
	byKey map[downloadKey]*download
}

type downloadKey struct {
	kind    downloadKind
	service int64
}

type download struct {
	mu      sync.Mutex
	version int64
	body    []byte
}

// DownloadPolicies is the body of a policy download of the service: with its
// definition, the policies of its tag service and its zones, without disabled
// policies. It is nil when known is its version. The body is shared: it must not
// be changed.
func (s *Store) DownloadPolicies(ctx context.Context, service string, known int64) ([]byte, error) {
	return s.download(ctx, policiesDownload, service, known)
}

// DownloadTags is the body of a tag download, as DownloadPolicies.
func (s *Store) DownloadTags(ctx context.Context, service string, known int64) ([]byte, error) {
	return s.download(ctx, tagsDownload, service, known)
}

// DownloadRoles is the body of a role download, as DownloadPolicies. But for the
// name in it, it is one for all services.
func (s *Store) DownloadRoles(ctx context.Context, service string, known int64) ([]byte, error) {
	return s.download(ctx, rolesDownload, service, known)
}

// DownloadUserStore is the body of a user store download, one for all services, as
// DownloadPolicies.
func (s *Store) DownloadUserStore(ctx context.Context, service string, known int64) ([]byte, error) {
	return s.download(ctx, usersDownload, service, known)
}

func (s *Store) download(ctx context.Context, kind downloadKind, service string, known int64) ([]byte, error) {
	id, version, err := downloadable(s.reader.QueryRowContext(ctx, downloadState[kind], service), service)
	if err != nil || version == known {
		return nil, err
	}
	d := s.downloads.of(downloadKey{kind, id})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version >= version {
		return d.body, nil
	}
	err = s.read(ctx, func(q *tx) error {
		// The version and the content are of one state of the store.
		_, version, err := downloadable(q.QueryRowContext(ctx, downloadState[kind], service), service)
		if err != nil {
			return err
		}
		r, err := q.service(service)
		if err != nil {
			return err
		}
		build := [...]func(*serviceRow) ([]byte, error){q.policiesBody, q.tagsBody, q.rolesBody, q.usersBody}[kind]
		body, err := build(r)
		if err == nil {
			d.version, d.body = version, body
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.body, nil
}

func (c *downloadCache) of(k downloadKey) *download {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[downloadKey]*download{}
	}
	d := c.byKey[k]
	if d == nil {
		d = &download{}
		c.byKey[k] = d
	}
	return d
}

// downloadable reads a state. A service that is missing or disabled is refused in
// Ranger's words.
func downloadable(row *sql.Row, service string) (id, version int64, err error) {
	var enabled bool
	err = row.Scan(&id, &enabled, &version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, 0, refuse(admin.NotFound, service, "RANGER_ERROR_SERVICE_NOT_FOUND: ServiceName=%s", service)
	case err != nil:
		return 0, 0, err
	case !enabled:
		return 0, 0, refuse(admin.Invalid, service, "Unauthorized access.")
	}
	return id, version, nil
}

// enabledPolicies are the documents of the policies that fit a condition.
func (t *tx) enabledPolicies(where string, args ...any) (docs [][]byte, err error) {
	err = t.each(`SELECT doc FROM policies WHERE enabled AND `+where+` ORDER BY id`, args, func(scan func(...any) error) error {
		var doc []byte
		err := scan(&doc)
		docs = append(docs, doc)
		return err
	})
	return docs, err
}

func (t *tx) definitionDoc(typ string) (doc []byte, err error) {
	err = t.one(`SELECT doc FROM servicedefs WHERE name = ?`, []any{typ}, &doc)
	return doc, err
}

func (t *tx) policiesBody(r *serviceRow) ([]byte, error) {
	var o object
	policies, err := t.enabledPolicies(`service_id = ? AND zone_id = 0`, r.id)
	if err != nil {
		return nil, err
	}
	def, err := t.definitionDoc(r.Type)
	if err != nil {
		return nil, err
	}
	if err := servicePart(&o, r, policies, def); err != nil {
		return nil, err
	}
	if r.tagID != 0 {
		tag, err := t.serviceByID(r.tagID)
		if err != nil {
			return nil, err
		}
		// Those of zones too: they carry the name of their zone.
		policies, err := t.enabledPolicies(`service_id = ?`, tag.id)
		if err != nil {
			return nil, err
		}
		if def, err = t.definitionDoc(tag.Type); err != nil {
			return nil, err
		}
		if def, err = tagDefinitionFor(def, r.Type); err != nil {
			return nil, err
		}
		var part object
		if err := servicePart(&part, tag, policies, def); err != nil {
			return nil, err
		}
		if err := part.value("serviceConfig", pluginConfig(tag.Configs)); err != nil {
			return nil, err
		}
		o.raw("tagPolicies", part.end())
	}
	if err := t.zonesPart(&o, r); err != nil {
		return nil, err
	}
	if err := o.value("serviceConfig", pluginConfig(r.Configs)); err != nil {
		return nil, err
	}
	return o.end(), nil
}

// servicePart writes what the whole download and its tag policies have in common.
func servicePart(o *object, r *serviceRow, policies [][]byte, def []byte) error {
	if err := o.value("serviceName", r.Name); err != nil {
		return err
	}
	o.number("serviceId", r.id)
	o.number("policyVersion", r.policyVersion)
	o.number("policyUpdateTime", r.policyTime)
	o.rawList("policies", policies)
	o.raw("serviceDef", def)
	return o.value("auditMode", "audit-default")
}

func (t *tx) zonesPart(o *object, r *serviceRow) error {
	all, err := t.zones(`1`)
	if err != nil {
		return err
	}
	var zones object
	for _, z := range all {
		in, ok := z.Services[r.Name]
		if !ok {
			continue
		}
		policies, err := t.enabledPolicies(`service_id = ? AND zone_id = ?`, r.id, z.ID)
		if err != nil {
			return err
		}
		var part object
		if err := part.value("zoneName", z.Name); err != nil {
			return err
		}
		if err := part.value("resources", in.Resources); err != nil {
			return err
		}
		part.rawList("policies", policies)
		tagged := false
		for _, name := range z.TagServices {
			tagged = tagged || name == r.TagService
		}
		part.raw("containsAssociatedTagService", strconv.AppendBool(nil, tagged))
		name, err := encode(z.Name)
		if err != nil {
			return err
		}
		zones.key(name)
		zones.Write(part.end())
	}
	if zones.Len() > 0 {
		o.raw("securityZones", zones.end())
	}
	return nil
}

// counter is the version and time of what is one for all services.
func (t *tx) counter(name string) (version, at int64, err error) {
	err = t.one(`SELECT version, time FROM counters WHERE name = ?`, []any{name}, &version, &at)
	return version, at, err
}

func (t *tx) rolesBody(r *serviceRow) ([]byte, error) {
	d := model.Roles{ServiceName: r.Name}
	version, at, err := t.counter(roleVersion)
	if err != nil {
		return nil, err
	}
	d.RoleVersion, d.UpdateTime = &version, at
	if d.RangerRoles, err = t.roles(); err != nil {
		return nil, err
	}
	return encode(&d)
}

func (t *tx) usersBody(*serviceRow) ([]byte, error) {
	d := model.UserStore{
		UserAttrMapping: map[string]map[string]string{}, GroupAttrMapping: map[string]map[string]string{},
		UserGroupMapping: map[string][]string{},
	}
	version, at, err := t.counter(userStoreVersion)
	if err != nil {
		return nil, err
	}
	d.Version, d.UpdateTime = &version, at
	users, err := t.users(`1`)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		d.UserAttrMapping[u.Name] = attributes(u.Attributes)
		if u.Email != "" {
			d.UserAttrMapping[u.Name]["_emailAddress"] = u.Email
		}
		if len(u.Groups) > 0 {
			d.UserGroupMapping[u.Name] = u.Groups
		}
	}
	groups, err := t.groups(`1`)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		d.GroupAttrMapping[g.Name] = attributes(g.Attributes)
	}
	return encode(&d)
}

// attributes are those of a principal with the mark of those that the server made
// itself and did not take from a directory.
func attributes(own map[string]string) map[string]string {
	all := map[string]string{"_isInternal": "true"}
	for k, v := range own {
		all[k] = v
	}
	return all
}

// decodeAny reads a document that this package wrote.
func decodeAny[T any](doc []byte) (v T, err error) {
	err = json.Unmarshal(doc, &v)
	return v, err
}
