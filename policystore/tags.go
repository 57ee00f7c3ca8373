package policystore

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// The ways in which a tag document is applied (ServiceTags.Op).
const (
	opAddOrUpdate = "add_or_update"
	opDelete      = "delete"
	opReplace     = "replace"
)

// ImportTags implements admin.Server. A resource that resourceToTagIds names has
// afterwards the tags listed there and no others; with none it is gone. "replace"
// does so for all resources of the service. An import that changes nothing leaves
// the version. Source: Ranger's ServiceTagsProcessor.
func (s *Store) ImportTags(ctx context.Context, tags *model.ServiceTags) error {
	return s.write(ctx, func(c *tx) error {
		d, err := copyOf(tags)
		if err != nil {
			return err
		}
		r, err := c.service(d.ServiceName)
		if err != nil {
			return err
		}
		def, err := c.definition(r.Type)
		if err != nil {
			return err
		}
		m := &tagImport{tx: c, doc: d, service: r.id, affected: map[int64]bool{}}
		if err := m.check(def); err != nil {
			return err
		}
		switch strings.ToLower(d.Op) {
		case "", opAddOrUpdate:
			err = m.addOrUpdate()
		case opReplace:
			err = m.replace()
		case opDelete:
			err = m.delete()
		default:
			err = refuse(admin.Invalid, d.ServiceName, "unknown op %s of tags of service %s", d.Op, d.ServiceName)
		}
		if err != nil {
			return err
		}
		if len(m.affected) == 0 {
			return nil
		}
		for _, id := range slices.Sorted(maps.Keys(m.affected)) {
			if err := c.tagsChanged(id); err != nil {
				return err
			}
		}
		if r, err = c.serviceByID(r.id); err != nil {
			return err
		}
		return c.record(change{what: whatTags, id: r.id, name: r.Name, service: r.Name, action: actionUpdate, version: r.tagVn}, d)
	})
}

// tagImport is one document on its way into the store.
type tagImport struct {
	*tx
	doc      *model.ServiceTags
	service  int64
	affected map[int64]bool // services whose tags changed
}

// check refuses resources that the service cannot have.
func (m *tagImport) check(def *definition) error {
	for n := range m.doc.ServiceResources {
		r := &m.doc.ServiceResources[n]
		r.ResourceElements = lowerNames(r.ResourceElements)
		if strings.EqualFold(m.doc.Op, opDelete) || len(r.ResourceElements) == 0 && r.GUID != "" {
			continue
		}
		names := slices.Sorted(maps.Keys(r.ResourceElements))
		if len(names) == 0 || len(possible(def.hierarchies[model.AccessPolicy], r.ResourceElements)) == 0 {
			return refuse(admin.Invalid, m.doc.ServiceName, "resource with elements %s is not one of service %s", list(names), m.doc.ServiceName)
		}
		for _, x := range r.ResourceElements {
			if len(x.Values) == 0 {
				return refuse(admin.Invalid, m.doc.ServiceName, "resource with elements %s has an element without values", list(names))
			}
		}
	}
	return nil
}

func (m *tagImport) addOrUpdate() error {
	if err := m.definitions(); err != nil {
		return err
	}
	stored := map[string]int64{} // ids by those of the document
	for _, r := range m.doc.ServiceResources {
		id, err := m.resource(r)
		if err != nil {
			return err
		}
		stored[strconv.FormatInt(r.ID, 10)] = id
	}
	keys := slices.SortedFunc(maps.Keys(m.doc.ResourceToTagIDs), func(a, b string) int { return int(rowID(a) - rowID(b)) })
	for _, key := range keys {
		if id, ok := stored[key]; ok {
			if err := m.assign(id, m.doc.ResourceToTagIDs[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace deletes what the document does not have.
func (m *tagImport) replace() error {
	kept := map[int64]bool{}
	for _, r := range m.doc.ServiceResources {
		id, _, err := m.find(r)
		if err != nil {
			return err
		}
		if len(m.doc.ResourceToTagIDs[strconv.FormatInt(r.ID, 10)]) > 0 {
			kept[id] = true
		}
	}
	all, err := m.texts(`SELECT id FROM tag_resources WHERE service_id = ? ORDER BY id`, m.service)
	if err != nil {
		return err
	}
	for _, id := range all {
		if !kept[rowID(id)] {
			if err := m.remove(rowID(id)); err != nil {
				return err
			}
		}
	}
	return m.addOrUpdate()
}

func (m *tagImport) delete() error {
	for _, r := range m.doc.ServiceResources {
		id, _, err := m.find(r)
		if err != nil {
			return err
		}
		if id == 0 {
			continue
		}
		if err := m.remove(id); err != nil {
			return err
		}
	}
	for _, t := range m.doc.Tags {
		if t.GUID == "" {
			continue
		}
		if err := m.touch(`t.guid = ?`, t.GUID); err != nil {
			return err
		}
		if err := m.exec(`DELETE FROM tags WHERE guid = ?`, t.GUID); err != nil {
			return err
		}
	}
	return nil
}

// definitions makes the tag definitions that are new. Known ones stay as they are.
func (m *tagImport) definitions() error {
	for _, key := range slices.Sorted(maps.Keys(m.doc.TagDefinitions)) {
		d := m.doc.TagDefinitions[key]
		known, err := m.exists(`SELECT 1 FROM tag_definitions WHERE name = ? OR guid = ?`, d.Name, d.GUID)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if d.Name == "" {
			return refuse(admin.Invalid, m.doc.ServiceName, "a tag definition has no name")
		}
		yes := true
		if d.Enabled == nil {
			d.Enabled = &yes
		}
		if d.GUID == "" {
			d.GUID = newGUID()
		}
		d.ID = 0
		doc, err := encode(&d)
		if err != nil {
			return err
		}
		if _, err := m.insert(`INSERT INTO tag_definitions (name, guid, doc) VALUES (?, ?, ?)`, d.Name, d.GUID, doc); err != nil {
			return err
		}
	}
	return nil
}

// find is the stored resource of the service with the guid or the elements; its id
// is 0 when there is none.
func (m *tagImport) find(r model.ServiceResource) (id int64, stored model.ServiceResource, err error) {
	var doc []byte
	err = optional(m.one(`SELECT id, doc FROM tag_resources WHERE service_id = ? AND (guid = ? OR signature = ?) ORDER BY guid = ? DESC LIMIT 1`,
		[]any{m.service, r.GUID, resourceSignature(r.ResourceElements), r.GUID}, &id, &doc))
	if err != nil || id == 0 {
		return 0, stored, err
	}
	return id, stored, json.Unmarshal(doc, &stored)
}

// resource stores a resource and yields its id.
func (m *tagImport) resource(r model.ServiceResource) (int64, error) {
	id, old, err := m.find(r)
	if err != nil {
		return 0, err
	}
	if id != 0 && len(r.ResourceElements) == 0 {
		return id, nil
	}
	if id == 0 && len(r.ResourceElements) == 0 {
		return 0, refuse(admin.NotFound, m.doc.ServiceName, "no resource with guid %s is known", r.GUID)
	}
	n := model.ServiceResource{
		GUID: old.GUID, Enabled: old.Enabled, ServiceName: m.doc.ServiceName, ResourceElements: r.ResourceElements,
		OwnerUser: r.OwnerUser, ResourceSignature: resourceSignature(r.ResourceElements), AdditionalInfo: r.AdditionalInfo,
	}
	if id == 0 {
		yes := true
		n.Enabled, n.GUID = &yes, r.GUID
		taken, err := m.exists(`SELECT 1 FROM tag_resources WHERE guid = ?`, n.GUID)
		if err != nil {
			return 0, err
		}
		if n.GUID == "" || taken {
			n.GUID = newGUID()
		}
	} else if reflect.DeepEqual(n, old) {
		return id, nil
	}
	doc, err := encode(&n)
	if err != nil {
		return 0, err
	}
	m.affected[m.service] = true
	if id != 0 {
		return id, m.exec(`UPDATE tag_resources SET signature = ?, doc = ? WHERE id = ?`, n.ResourceSignature, doc, id)
	}
	return m.insert(`INSERT INTO tag_resources (guid, service_id, signature, doc) VALUES (?, ?, ?, ?)`, n.GUID, m.service, n.ResourceSignature, doc)
}

// remove deletes a resource of the service with the tags that are its own.
func (m *tagImport) remove(resource int64) error {
	m.affected[m.service] = true
	if err := m.exec(`DELETE FROM tags WHERE NOT shared AND id IN (SELECT tag_id FROM tag_map WHERE resource_id = ?)`, resource); err != nil {
		return err
	}
	return m.exec(`DELETE FROM tag_resources WHERE id = ?`, resource)
}

// touch notes the services that have a tag; t is the alias of tags in where.
func (m *tagImport) touch(where string, args ...any) error {
	ids, err := m.texts(`SELECT DISTINCT r.service_id FROM tags t JOIN tag_map x ON x.tag_id = t.id
		JOIN tag_resources r ON r.id = x.resource_id WHERE `+where, args...)
	for _, id := range ids {
		m.affected[rowID(id)] = true
	}
	return err
}

// assign makes the listed tags those of a resource.
func (m *tagImport) assign(resource int64, local []int64) error {
	has, err := m.tagsOf(resource)
	if err != nil {
		return err
	}
	keep := map[int64]bool{}
	for _, l := range local {
		incoming, ok := m.doc.Tags[strconv.FormatInt(l, 10)]
		if !ok {
			return refuse(admin.Invalid, m.doc.ServiceName, "tag %d is not in the document", l)
		}
		id, err := m.tag(incoming, has, keep)
		if err != nil {
			return err
		}
		keep[id] = true
		if _, already := has[id]; already {
			continue
		}
		m.affected[m.service] = true
		if err := m.exec(`INSERT OR IGNORE INTO tag_map VALUES (?, ?)`, resource, id); err != nil {
			return err
		}
	}
	for id := range has {
		if keep[id] {
			continue
		}
		m.affected[m.service] = true
		if err := m.exec(`DELETE FROM tag_map WHERE resource_id = ? AND tag_id = ?`, resource, id); err != nil {
			return err
		}
		if err := m.exec(`DELETE FROM tags WHERE id = ? AND NOT shared AND NOT EXISTS (SELECT 1 FROM tag_map WHERE tag_id = ?)`, id, id); err != nil {
			return err
		}
	}
	if len(local) == 0 {
		return m.remove(resource)
	}
	return nil
}

func (m *tagImport) tagsOf(resource int64) (map[int64]model.Tag, error) {
	has := map[int64]model.Tag{}
	err := m.each(`SELECT t.id, t.doc FROM tags t JOIN tag_map x ON x.tag_id = t.id WHERE x.resource_id = ?`, []any{resource}, func(scan func(...any) error) error {
		var id int64
		var doc []byte
		if err := scan(&id, &doc); err != nil {
			return err
		}
		t, err := decodeAny[model.Tag](doc)
		has[id] = t
		return err
	})
	return has, err
}

// tag stores a tag of a resource that has some, and yields its id: of the tag with
// its guid, of an equal one of the resource that is not taken yet, or of a new one.
func (m *tagImport) tag(n model.Tag, has map[int64]model.Tag, taken map[int64]bool) (id int64, err error) {
	known, err := m.exists(`SELECT 1 FROM tag_definitions WHERE name = ?`, n.Type)
	if err != nil {
		return 0, err
	}
	if !known {
		return 0, refuse(admin.Invalid, n.Type, "No TagDefinition found with name :%s", n.Type)
	}
	for _, p := range n.ValidityPeriods {
		var f failures
		if checkSchedule(&f, p); len(f) > 0 {
			return 0, f.err()
		}
	}
	yes := true
	if n.Enabled == nil {
		n.Enabled = &yes
	}
	n.ID = 0
	var old model.Tag
	if n.GUID != "" {
		var doc []byte
		if err := optional(m.one(`SELECT id, doc FROM tags WHERE guid = ? AND shared = ?`, []any{n.GUID, n.Owner == model.TagShared}, &id, &doc)); err != nil {
			return 0, err
		}
		if id != 0 {
			if old, err = decodeAny[model.Tag](doc); err != nil {
				return 0, err
			}
		}
	}
	if id == 0 && n.Owner != model.TagShared {
		for _, x := range slices.Sorted(maps.Keys(has)) {
			t := has[x]
			if !taken[x] && t.Owner != model.TagShared && t.Type == n.Type && maps.Equal(t.Attributes, n.Attributes) {
				id, old = x, t
				break
			}
		}
	}
	if id != 0 {
		n.GUID = old.GUID
		if reflect.DeepEqual(n, old) {
			return id, nil
		}
	} else if free, err := m.exists(`SELECT 1 WHERE ?1 <> '' AND NOT EXISTS (SELECT 1 FROM tags WHERE guid = ?1)`, n.GUID); err != nil {
		return 0, err
	} else if !free {
		n.GUID = newGUID()
	}
	doc, err := encode(&n)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		return m.insert(`INSERT INTO tags (guid, shared, doc) VALUES (?, ?, ?)`, n.GUID, n.Owner == model.TagShared, doc)
	}
	if err := m.touch(`t.id = ?`, id); err != nil {
		return 0, err
	}
	return id, m.exec(`UPDATE tags SET doc = ? WHERE id = ?`, doc, id)
}
