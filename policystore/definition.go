package policystore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sqe/rangerclient/model"
)

// definition is a service definition, ready to check policies against.
type definition struct {
	model.ServiceDef
	configs   []configDef
	resources map[string]model.ResourceDef // by lower-case name
	patterns  map[string]*regexp.Regexp    // of the values of a resource
	// hierarchies are the resource sets that a policy of a type may name, each from
	// the root down.
	hierarchies [model.AuditPolicy + 1][][]model.ResourceDef
	accessTypes []string
	maskTypes   []string
	conditions  []string
}

// configDef defines one setting of services. The type "password" marks what must
// not be shown.
type configDef struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	Mandatory    bool   `json:"mandatory"`
	DefaultValue string `json:"defaultValue"`
}

func compileDefinition(doc []byte) (*definition, error) {
	d := &definition{resources: map[string]model.ResourceDef{}, patterns: map[string]*regexp.Regexp{}}
	if err := json.Unmarshal(doc, &d.ServiceDef); err != nil {
		return nil, err
	}
	var settings struct {
		Configs []configDef `json:"configs"`
	}
	if err := json.Unmarshal(doc, &settings); err != nil {
		return nil, err
	}
	d.configs = settings.Configs
	for _, r := range d.Resources {
		name := strings.ToLower(r.Name)
		d.resources[name] = r
		if r.ValidationRegEx == "" {
			continue
		}
		re, err := regexp.Compile(`^(?:` + r.ValidationRegEx + `)$`)
		if err != nil {
			return nil, err
		}
		d.patterns[name] = re
	}
	base := hierarchies(d.Resources)
	d.hierarchies[model.AccessPolicy], d.hierarchies[model.AuditPolicy] = base, base
	for _, a := range append(slices.Clone(d.AccessTypes), d.MarkerAccessTypes...) {
		d.accessTypes = append(d.accessTypes, a.Name)
	}
	if m := d.DataMaskDef; m != nil {
		d.hierarchies[model.MaskPolicy] = hierarchies(m.Resources)
		for _, t := range m.MaskTypes {
			d.maskTypes = append(d.maskTypes, t.Name)
		}
	}
	if f := d.RowFilterDef; f != nil {
		d.hierarchies[model.RowFilterPolicy] = hierarchies(f.Resources)
	}
	// Ranger has this condition in every definition, named there or not.
	d.conditions = []string{"_expression"}
	for _, c := range d.PolicyConditions {
		d.conditions = append(d.conditions, c.Name)
	}
	return d, nil
}

// hierarchies are the ways from a root to a resource that may be the last one, in
// the order of the definition. A cycle of parents leads to none.
func hierarchies(defs []model.ResourceDef) [][]model.ResourceDef {
	byName, parent := map[string]model.ResourceDef{}, map[string]bool{}
	for _, r := range defs {
		byName[r.Name] = r
		parent[r.Parent] = true
	}
	var all [][]model.ResourceDef
	for _, r := range defs {
		if last := !parent[r.Name]; !last && (r.IsValidLeaf == nil || !*r.IsValidLeaf) {
			continue
		}
		way := []model.ResourceDef{r}
		for up := r.Parent; up != "" && len(way) <= len(defs); up = way[0].Parent {
			above, ok := byName[up]
			if !ok {
				break
			}
			way = slices.Insert(way, 0, above)
		}
		if way[0].Parent == "" {
			all = append(all, way)
		}
	}
	return all
}

// rowAccessTypes are the access types, lower-case, that a mask or filter policy
// may name, with the markers that imply one of them.
func (d *definition) rowAccessTypes(policyType int) []string {
	var of []model.AccessTypeDef
	switch {
	case policyType == model.MaskPolicy && d.DataMaskDef != nil:
		of = d.DataMaskDef.AccessTypes
	case policyType == model.RowFilterPolicy && d.RowFilterDef != nil:
		of = d.RowFilterDef.AccessTypes
	}
	var names []string
	for _, a := range of {
		names = append(names, strings.ToLower(a.Name))
	}
	if len(names) == 0 {
		return nil
	}
	for _, m := range d.MarkerAccessTypes {
		if slices.ContainsFunc(m.ImpliedGrants, func(g string) bool { return slices.Contains(names, g) }) {
			names = append(names, strings.ToLower(m.Name))
		}
	}
	return names
}

// definitionCache holds compiled definitions by id and version.
type definitionCache struct {
	mu   sync.Mutex
	byID map[int64]cachedDefinition
}

type cachedDefinition struct {
	version int64
	*definition
}

// definition is the compiled definition of a type.
func (t *tx) definition(typ string) (*definition, error) {
	var id, version int64
	err := t.one(`SELECT id, version FROM servicedefs WHERE name = ?`, []any{typ}, &id, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSuchName(typ)
	}
	if err != nil {
		return nil, err
	}
	c := &t.store.definitions
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.byID[id]; ok && d.version == version {
		return d.definition, nil
	}
	var doc []byte
	if err := t.one(`SELECT doc FROM servicedefs WHERE id = ?`, []any{id}, &doc); err != nil {
		return nil, err
	}
	d, err := compileDefinition(doc)
	if err != nil {
		return nil, err
	}
	if c.byID == nil {
		c.byID = map[int64]cachedDefinition{}
	}
	c.byID[id] = cachedDefinition{version, d}
	return d, nil
}
