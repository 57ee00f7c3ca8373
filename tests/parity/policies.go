package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sqe/tests/sqetest"
)

type object = map[string]any

// who is the users, roles and groups of an item.
type who struct{ users, roles, groups []string }

func users(names ...string) who  { return who{users: names} }
func roles(names ...string) who  { return who{roles: names} }
func groups(names ...string) who { return who{groups: names} }

// Peer is an engine that enforces Ranger's policies.
type Peer struct {
	Name string // as in testdata, and the rendering
	kind string // of its Ranger service
	// The column as text, and the user, in SQL that is read by whoever evaluates it.
	castText    string
	currentUser string
	maskedTypes func(p *Policies)
}

// Policies are documents of Ranger: for the object gate, whose service is
// "polaris", and for the data gate, whose service is called as its kind.
type Policies struct {
	peer          *Peer
	Data, Objects []object
	Tags          []object
}

const (
	accessPolicy = iota // Ranger's policyType
	maskPolicy
	filterPolicy
)

func values(v ...string) object {
	return object{"values": v, "isExcludes": false, "isRecursive": false}
}

func item(w who, types []string, more object) object {
	var accesses []object
	for _, t := range types {
		accesses = append(accesses, object{"type": t, "isAllowed": true})
	}
	it := object{"accesses": accesses, "delegateAdmin": false, "users": w.users, "roles": w.roles, "groups": w.groups}
	for k, v := range more {
		it[k] = v
	}
	return it
}

func (p *Policies) add(to *[]object, kind int, service string, resources, items object) {
	n := len(p.Data) + len(p.Objects) + len(p.Tags) + 1
	policy := object{
		"id": n, "guid": fmt.Sprintf("%s-%d", service, n), "isEnabled": true, "version": 1, "service": service,
		"name": fmt.Sprintf("%s %03d", service, n), "policyType": kind, "policyPriority": 0, "isAuditEnabled": true,
		"resources": resources,
	}
	for k, v := range items {
		policy[k] = v
	}
	*to = append(*to, policy)
}

// place is the resource of the data gate; a part that is empty is left out.
func (p *Policies) place(database, table, column string) object {
	out := object{}
	if p.peer.kind == "trino" {
		out["catalog"] = values(Catalog)
		out["schema"] = values(database)
	} else {
		out["database"] = values(database)
	}
	out["table"] = values(table)
	if column != "" {
		out["column"] = values(column)
	}
	return out
}

func maskItem(w who, kind, expression string) object {
	info := object{"dataMaskType": kind}
	if expression != "" {
		info["valueExpr"] = expression
	}
	return item(w, []string{"select"}, object{"dataMaskInfo": info})
}

func filterItem(w who, condition string) object {
	return item(w, []string{"select"}, object{"rowFilterInfo": object{"filterExpr": condition}})
}

// Mask puts one policy with these items on a column.
func (p *Policies) Mask(database, table, column string, items ...object) {
	p.add(&p.Data, maskPolicy, p.peer.kind, p.place(database, table, column), object{"dataMaskPolicyItems": items})
}

// Filter puts one policy with these items on a table.
func (p *Policies) Filter(database, table string, items ...object) {
	p.add(&p.Data, filterPolicy, p.peer.kind, p.place(database, table, ""), object{"rowFilterPolicyItems": items})
}

// objects opens tables at the object gate, which SQE alone asks.
func (p *Policies) objects(w who, database string, tables ...string) {
	give := func(resources object, types ...string) {
		resources["root"], resources["catalog"] = values("*"), values(Catalog)
		p.add(&p.Objects, accessPolicy, "polaris", resources, object{"policyItems": []object{item(w, types, nil)}})
	}
	give(object{}, "catalog-list", "catalog-properties-read", "namespace-list")
	give(object{"namespace": values(database)}, "namespace-list", "namespace-properties-read")
	give(object{"namespace": values(database), "table": values(tables...)},
		"table-list", "table-properties-read", "table-data-read", "view-list", "view-properties-read")
}

// Read opens tables to somebody at both gates.
func (p *Policies) Read(w who, database string, tables ...string) {
	p.objects(w, database, tables...)
	for _, t := range tables {
		p.columns(w, database, t, "*")
	}
}

// changeRights are the rights at the object gate that an access type of the data
// service stands for, on tables and views and on the database that they are made in.
var changeRights = map[string][2][]string{
	"update": {{"table-data-write"}, nil}, // of Hive; and of Trino these two:
	"insert": {{"table-data-write"}, nil},
	"delete": {{"table-data-write"}, nil},
	"drop":   {{"table-drop", "view-drop"}, nil},
	"alter":  {{"table-schema-add", "table-schema-set-current", "table-properties-set", "table-properties-remove", "view-properties-write"}, nil},
	"create": {nil, {"table-create", "view-create"}},
}

// Change gives access types beside those of Read.
func (p *Policies) Change(w who, database string, tables []string, types ...string) {
	give := func(resources object, types []string) {
		if len(types) > 0 {
			resources["root"], resources["catalog"], resources["namespace"] = values("*"), values(Catalog), values(database)
			p.add(&p.Objects, accessPolicy, "polaris", resources, object{"policyItems": []object{item(w, types, nil)}})
		}
	}
	var inside, beside []string
	for _, t := range types {
		inside, beside = append(inside, changeRights[t][0]...), append(beside, changeRights[t][1]...)
	}
	give(object{"table": values(tables...)}, inside)
	give(object{}, beside)
	data := func(resources object) {
		p.add(&p.Data, accessPolicy, p.peer.kind, resources, object{"policyItems": []object{item(w, types, nil)}})
	}
	for _, t := range tables {
		data(p.place(database, t, "*"))
		if p.peer.kind == "trino" {
			data(p.place(database, t, ""))
		}
	}
	if p.peer.kind == "trino" && slices.Contains(types, "create") {
		p.add(&p.Data, accessPolicy, p.peer.kind, object{"catalog": values(Catalog), "schema": values(database)}, object{"policyItems": []object{item(w, []string{"create"}, nil)}})
	}
}

// columns gives columns at the data gate.
func (p *Policies) columns(w who, database, table string, columns ...string) {
	give := func(resources object, types ...string) {
		p.add(&p.Data, accessPolicy, p.peer.kind, resources, object{"policyItems": []object{item(w, types, nil)}})
	}
	place := p.place(database, table, "*")
	place["column"] = values(columns...)
	if p.peer.kind != "trino" {
		give(place, "select")
		return
	}
	give(place, "select", "show")
	if columns[0] == "*" {
		give(p.place(database, table, ""), "select", "show")
	}
	give(object{"catalog": values(Catalog), "schema": values(database)}, "show")
}

// ReadColumns opens some columns of a table. The peers give a right on these and
// none on the others; SQE's data gate knows denials only.
func (p *Policies) ReadColumns(w who, database, table string, columns, others []string) {
	p.objects(w, database, table)
	p.columns(w, database, table, columns...)
	p.Withhold(w, database, table, others...)
}

// Withhold denies columns.
func (p *Policies) Withhold(w who, database, table string, columns ...string) {
	for _, c := range columns {
		p.add(&p.Data, accessPolicy, p.peer.kind, p.place(database, table, c), object{"denyPolicyItems": []object{item(w, []string{"select"}, nil)}})
	}
}

// TagMask masks the columns of a tag.
func (p *Policies) TagMask(w who, tag, kind, expression string) {
	it := maskItem(w, p.peer.kind+":"+kind, expression)
	it["accesses"] = []object{{"type": p.peer.kind + ":select", "isAllowed": true}}
	p.add(&p.Tags, maskPolicy, p.peer.kind+"_tag", object{"tag": values(tag)}, object{"dataMaskPolicyItems": []object{it}})
}

// Write writes the documents of a folder source into dir.
func (p *Policies) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	definitions := map[string]json.RawMessage{}
	for _, name := range []string{p.peer.kind, "polaris", "tag"} {
		text, err := os.ReadFile(filepath.Join(sqetest.Root(), "rangerclient", "servicedef", name+".json"))
		if err != nil {
			return err
		}
		definitions[name] = text
	}
	tag, err := tagDefinition(definitions["tag"], definitions[p.peer.kind], p.peer.kind)
	if err != nil {
		return err
	}
	documents := map[string]object{
		"policies_" + p.peer.kind: {
			"serviceName": p.peer.kind, "serviceId": 2, "policyVersion": 1, "policies": p.Data, "serviceDef": definitions[p.peer.kind],
			"tagPolicies": object{"serviceName": p.peer.kind + "_tag", "serviceId": 4, "policyVersion": 1, "policies": p.Tags, "serviceDef": tag},
		},
		"policies_polaris":    {"serviceName": "polaris", "serviceId": 3, "policyVersion": 1, "policies": p.Objects, "serviceDef": definitions["polaris"]},
		"tags_" + p.peer.kind: p.tags(p.peer.kind),
		"roles":               {"roleVersion": 1, "rangerRoles": rangerRoles()},
		"userstore": {
			"userStoreVersion": 1, "userGroupMapping": groupsOfUsers(), "userAttrMapping": object{"s_attr": object{"region": "US"}},
			"groupAttrMapping": object{},
		},
	}
	for name, doc := range documents {
		text, err := json.MarshalIndent(doc, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func rangerRoles() (out []object) {
	for role, members := range roleMembers {
		var users []object
		for _, m := range members {
			users = append(users, object{"name": m, "isAdmin": false})
		}
		out = append(out, object{"id": len(out) + 1, "name": role, "isEnabled": true, "users": users})
	}
	return out
}

func groupsOfUsers() map[string][]string {
	out := map[string][]string{}
	for g, members := range groupMembers {
		for _, m := range members {
			out[m] = append(out[m], g)
		}
	}
	return out
}

// tags is the document that says which column of a service has which tag.
func (p *Policies) tags(service string) object {
	definitions, tags, resources, links := object{}, object{}, []object{}, object{}
	for tag, columns := range tagged {
		n := len(tags) + 1
		definitions[fmt.Sprint(n)] = object{"id": n, "name": tag, "source": "Internal", "attributeDefs": []object{}, "isEnabled": true}
		tags[fmt.Sprint(n)] = object{"id": n, "type": tag, "owner": 0, "attributes": object{}, "isEnabled": true}
		for _, c := range columns {
			id := len(resources) + 1
			resources = append(resources, object{"id": id, "serviceName": service, "isEnabled": true, "resourceElements": p.place("bank", c[0], c[1])})
			links[fmt.Sprint(id)] = []int{n}
		}
	}
	return object{
		"op": "add_or_update", "serviceName": service, "tagVersion": 1, "tagDefinitions": definitions, "tags": tags, "serviceResources": resources, "resourceToTagIds": links,
	}
}

// tagDefinition is the tag service definition with the access and mask types of a
// kind of service, under its prefix, as a Ranger Admin makes it.
func tagDefinition(tag, data json.RawMessage, kind string) (object, error) {
	var from struct {
		AccessTypes []object `json:"accessTypes"`
		DataMaskDef struct {
			MaskTypes []object `json:"maskTypes"`
		} `json:"dataMaskDef"`
	}
	doc := object{}
	if err := json.Unmarshal(tag, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &from); err != nil {
		return nil, err
	}
	prefixed := func(in []object) (list []object) {
		for _, o := range in {
			n := maps.Clone(o)
			n["name"] = kind + ":" + o["name"].(string)
			delete(n, "impliedGrants")
			list = append(list, n)
		}
		return list
	}
	doc["accessTypes"] = prefixed(from.AccessTypes)
	doc["dataMaskDef"] = object{
		"maskTypes":   prefixed(from.DataMaskDef.MaskTypes),
		"accessTypes": []object{{"itemId": 1, "name": kind + ":select"}}, "resources": doc["resources"],
	}
	return doc, nil
}
