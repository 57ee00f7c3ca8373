package policystore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// ServiceDefs implements admin.Server, by id.
func (s *Store) ServiceDefs(ctx context.Context) (all []json.RawMessage, err error) {
	err = s.read(ctx, func(q *tx) error {
		return q.each(`SELECT doc FROM servicedefs ORDER BY id`, nil, func(scan func(...any) error) error {
			var doc []byte
			err := scan(&doc)
			all = append(all, doc)
			return err
		})
	})
	return all, err
}

// ServiceDef implements admin.Server.
func (s *Store) ServiceDef(ctx context.Context, name string) (doc json.RawMessage, err error) {
	err = s.read(ctx, func(q *tx) error {
		d, err := q.definitionDoc(name)
		doc = d
		if errors.Is(err, sql.ErrNoRows) {
			return noSuchName(name)
		}
		return err
	})
	return doc, err
}

// CreateServiceDef implements admin.Server. The document is kept whole; id, guid,
// version, times and marker access types are the store's where it has none. Its
// access types, masks and row filters become those of tag policies as well, unless
// its option enableTagBasedPolicies is false.
func (s *Store) CreateServiceDef(ctx context.Context, def json.RawMessage) error {
	doc, err := parseTree(def)
	if err != nil || doc == nil {
		return refuse(admin.Invalid, "", "the service definition is not a JSON object")
	}
	if len(items(doc, "markerAccessTypes")) == 0 {
		withMarkers(doc)
	}
	whole, err := encode(doc)
	if err != nil {
		return err
	}
	compiled, err := compileDefinition(whole)
	if err != nil {
		return refuse(admin.Invalid, "", "the service definition cannot be used: %s", err)
	}
	d := compiled.ServiceDef
	return s.write(ctx, func(c *tx) error {
		if err := c.checkServiceDef(compiled); err != nil {
			return err
		}
		id := d.ID
		taken, err := c.exists(`SELECT 1 FROM servicedefs WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if id <= 0 || taken {
			// Up to 1000 are Ranger's own definitions.
			if err := c.one(`SELECT max(1000, max(id)) + 1 FROM servicedefs`, nil, &id); err != nil {
				return err
			}
		}
		doc["id"], doc["version"], doc["isEnabled"], doc["createTime"], doc["updateTime"] = id, 1, true, c.millis(), c.millis()
		if d.GUID == "" {
			doc["guid"] = newGUID()
		}
		if whole, err = encode(doc); err != nil {
			return err
		}
		if err := c.exec(`INSERT INTO servicedefs (id, name, version, doc) VALUES (?, ?, 1, ?)`, id, d.Name, whole); err != nil {
			return err
		}
		if d.Options["enableTagBasedPolicies"] != "false" {
			if err := c.propagate(doc, id, d.Name); err != nil {
				return err
			}
		}
		return c.record(change{what: whatServiceDef, id: id, name: d.Name, action: actionCreate, version: 1}, doc)
	})
}

func (t *tx) checkServiceDef(d *definition) error {
	var f failures
	if d.Name == "" {
		f.add(2006, "name", "", missing, "Service def name[] was null/empty/blank")
	} else if known, err := t.exists(`SELECT 1 FROM servicedefs WHERE name = ?`, d.Name); err != nil {
		return err
	} else if known {
		f.add(2007, "name", "", wrong, "service def with the name[%s] already exists", d.Name)
		f.about(d.Name)
	}
	if len(d.hierarchies[model.AccessPolicy]) == 0 {
		f.add(2016, "resource graph", "", wrong, "Resource graph implied by various resources, e.g. parent value is invalid.  Valid graph must forest (union of disjoint trees).")
	}
	known := map[string]bool{}
	for _, a := range d.AccessTypes {
		known[a.Name] = true
	}
	if len(known) == 0 {
		f.add(2002, "access types", "", missing, "Internal error: missing field[access types]")
	}
	for _, a := range d.AccessTypes {
		for _, g := range a.ImpliedGrants {
			if !known[g] {
				f.add(2009, "implied grants", g, wrong, "implied grant[%s] contains an unknown access types[%s]", list(a.ImpliedGrants), g)
			}
		}
	}
	return f.err()
}
