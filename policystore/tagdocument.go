package policystore

import (
	"context"
	"encoding/json"
	"strconv"

	"sqe/rangerclient/model"
)

// Tags implements admin.Server. Unlike a download it tells guids and owners, so
// that it can be imported again.
func (s *Store) Tags(ctx context.Context, service string) (d *model.ServiceTags, err error) {
	err = s.read(ctx, func(q *tx) error {
		r, err := q.service(service)
		if err == nil {
			d, err = q.tagDocument(r)
		}
		return err
	})
	return d, err
}

// tagsBody is a tag download: equal tags are one in it, and what only the server
// needs is left out.
func (t *tx) tagsBody(r *serviceRow) ([]byte, error) {
	d, err := t.tagDocument(r)
	if err != nil {
		return nil, err
	}
	d.TagUpdateTime = 0
	for n := range d.ServiceResources {
		d.ServiceResources[n].GUID, d.ServiceResources[n].ServiceName = "", ""
	}
	for key, def := range d.TagDefinitions {
		def.GUID = ""
		d.TagDefinitions[key] = def
	}
	first, same := map[string]int64{}, map[int64]int64{}
	for _, resource := range d.ServiceResources {
		key := strconv.FormatInt(resource.ID, 10)
		ids := d.ResourceToTagIDs[key]
		for n, id := range ids {
			if _, seen := same[id]; !seen {
				tag := d.Tags[strconv.FormatInt(id, 10)]
				tag.ID, tag.GUID, tag.Owner = 0, "", 0
				text, err := encode(&tag)
				if err != nil {
					return nil, err
				}
				if _, other := first[string(text)]; !other {
					first[string(text)] = id
				}
				same[id] = first[string(text)]
				tag.ID = id
				if same[id] == id {
					d.Tags[strconv.FormatInt(id, 10)] = tag
				} else {
					delete(d.Tags, strconv.FormatInt(id, 10))
				}
			}
			ids[n] = same[id]
		}
	}
	d.IsTagsDeduped = true
	return encode(d)
}

// tagDocument is everything that carries tags in a service.
func (t *tx) tagDocument(r *serviceRow) (*model.ServiceTags, error) {
	d := &model.ServiceTags{
		Op: opAddOrUpdate, ServiceName: r.Name, TagVersion: &r.tagVn, TagUpdateTime: r.tagTime, TagsChangeExtent: "ALL",
		TagDefinitions: map[string]model.TagDefinition{}, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{},
	}
	types := map[string]bool{}
	err := t.each(`SELECT r.id, r.doc, t.id, t.doc FROM tag_resources r JOIN tag_map m ON m.resource_id = r.id
		JOIN tags t ON t.id = m.tag_id WHERE r.service_id = ? ORDER BY r.id, t.id`, []any{r.id}, func(scan func(...any) error) error {
		var resource, tag int64
		var resourceDoc, tagDoc []byte
		if err := scan(&resource, &resourceDoc, &tag, &tagDoc); err != nil {
			return err
		}
		key := strconv.FormatInt(resource, 10)
		if _, seen := d.ResourceToTagIDs[key]; !seen {
			x := model.ServiceResource{}
			if err := json.Unmarshal(resourceDoc, &x); err != nil {
				return err
			}
			x.ID = resource
			d.ServiceResources = append(d.ServiceResources, x)
		}
		d.ResourceToTagIDs[key] = append(d.ResourceToTagIDs[key], tag)
		x, err := decodeAny[model.Tag](tagDoc)
		if err != nil {
			return err
		}
		x.ID, types[x.Type] = tag, true
		d.Tags[strconv.FormatInt(tag, 10)] = x
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, t.each(`SELECT id, name, doc FROM tag_definitions ORDER BY id`, nil, func(scan func(...any) error) error {
		var id int64
		var name string
		var doc []byte
		if err := scan(&id, &name, &doc); err != nil || !types[name] {
			return err
		}
		x, err := decodeAny[model.TagDefinition](doc)
		x.ID = id
		d.TagDefinitions[strconv.FormatInt(id, 10)] = x
		return err
	})
}
