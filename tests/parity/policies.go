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

// maskUser is a user for whom every column of the mask tables has one mask.
type maskUser struct{ user, kind, expression string }

var roleMembers = map[string][]string{
	"sqe_admin": {"carol", "admin"}, "engineer": {"bob", "carol"}, "analyst": {"alice", "bob", "carol"},
	"fraud_analyst": {"erin"}, "bank_auditor": {"frank"},
}

var groupMembers = map[string][]string{"g_emea": {"s_group"}, "g_both": {"s_group", "s_group2"}}

var tagged = map[string][][2]string{
	"ACCOUNT": {{"customers", "phone"}, {"payments", "counterparty_iban"}},
	"SPI":     {{"customers", "nationality"}}, "IDENTITY": {{"customers", "national_id"}, {"customers", "full_name"}},
}

func (peer *Peer) maskUsers() []maskUser {
	return []maskUser{
		{"m_mask", "MASK", ""},
		{"m_last4", "MASK_SHOW_LAST_4", ""},
		{"m_first4", "MASK_SHOW_FIRST_4", ""},
		{"m_hash", "MASK_HASH", ""},
		{"m_null", "MASK_NULL", ""},
		{"m_none", "MASK_NONE", ""},
		{"m_year", "MASK_DATE_SHOW_YEAR", ""},
		{"m_custom", "CUSTOM", "concat('c:', " + peer.castText + ")"},
		{"m_const", "CUSTOM", "'XX'"},
		{"m_empty", "CUSTOM", ""},
		{"m_type", "CUSTOM", "concat('9', substr(" + peer.castText + ", 2))"},
	}
}

func only(list []maskUser, keep func(maskUser) bool) (items []object) {
	for _, m := range list {
		if keep(m) {
			items = append(items, maskItem(users(m.user), m.kind, m.expression))
		}
	}
	return items
}

// Spark is Spark 3.5.7 with Kyuubi AuthZ 1.12.0.
var Spark = &Peer{
	Name: "spark", kind: "hive", castText: "cast({col} as char)", currentUser: "current_user()",
	maskedTypes: func(p *Policies) {
		years := []string{"s", "dt", "ts", "tn"}
		for _, c := range []string{"s", "i", "l", "d", "f", "r", "dt", "ts", "tn", "b", "bin"} {
			items := only(p.peer.maskUsers(), func(m maskUser) bool {
				return m.user != "m_type" && (m.user != "m_year" || slices.Contains(years, c))
			})
			if c == "i" {
				items = append(items, maskItem(users("m_bad"), "MASK_DATE_SHOW_YEAR", ""))
			}
			p.Mask("masks", "types", c, items...)
		}
		for _, c := range []string{"a", "st", "m"} {
			p.Mask("masks", "nested", c, only(p.peer.maskUsers(), func(m maskUser) bool {
				return m.user != "m_type" && (c == "a" || !slices.Contains([]string{"m_mask", "m_last4", "m_first4", "m_year"}, m.user))
			})...)
		}
	},
}

// Trino is Trino 476 with Ranger's client 2.9.0.
var Trino = &Peer{Name: "trino", kind: "trino", castText: "cast({col} as char)", currentUser: "current_user()", maskedTypes: trinoMasks}

// TrinoLive reads the same policies as SQE, so that their texts are such as both
// read: a cast to text is written differently by the two.
var TrinoLive = &Peer{Name: "trino", kind: "trino", castText: "{col}", currentUser: "current_user", maskedTypes: trinoMasks}

// trinoMasks are masks on a table for each column: a mask that does not fit fails
// its whole table there.
func trinoMasks(p *Policies) {
	texts := []string{"m_mask", "m_last4", "m_hash", "m_custom"}
	for _, c := range []string{"s", "i", "l", "d", "f", "r", "dt", "ts", "tn", "b", "bin", "a", "st", "m"} {
		p.Mask("masks", "c_"+c, c, only(p.peer.maskUsers(), func(maskUser) bool { return true })...)
		if c == "a" || c == "st" || c == "m" {
			continue
		}
		items := only(p.peer.maskUsers(), func(m maskUser) bool {
			return m.kind == "MASK_NULL" || m.kind == "MASK_NONE" || (c == "s" && slices.Contains(texts, m.user))
		})
		if c == "i" {
			items = append(items, maskItem(users("m_bad"), "MASK_DATE_SHOW_YEAR", ""))
		}
		p.Mask("masks", "types", c, items...)
	}
}

// Policies are the policies of the captured answers.
func (peer *Peer) Policies() *Policies {
	p := &Policies{peer: peer}
	everything := who{users: []string{"admin"}, roles: []string{"sqe_admin"}}
	for _, database := range []string{"bank", "masks", "sem"} {
		p.Read(everything, database, "*")
		p.Read(users("raw"), database, "*")
	}

	// Bank: each role's view of it.
	p.Read(roles("analyst", "engineer", "fraud_analyst", "bank_auditor"), "bank", "customers", "payments")
	for column, kind := range map[string]string{
		"risk_score": "MASK_NULL", "national_id": "MASK_SHOW_LAST_4", "iban": "MASK_HASH", "dob": "MASK_DATE_SHOW_YEAR", "full_name": "MASK",
	} {
		p.Mask("bank", "customers", column, maskItem(roles("engineer"), kind, ""))
	}
	p.Mask("bank", "payments", "counterparty_iban", maskItem(users("erin"), "MASK_HASH", "")) // her tag mask wins
	p.Filter("bank", "customers", filterItem(roles("engineer"), "residency_region = 'EU'"))
	p.Filter("bank", "payments", filterItem(roles("bank_auditor"), "booked_at >= DATE '2019-01-01'"))
	p.TagMask(roles("fraud_analyst"), "ACCOUNT", "CUSTOM", "'REDACTED'")
	p.TagMask(roles("fraud_analyst"), "SPI", "MASK_NULL", "")
	p.TagMask(roles("fraud_analyst"), "IDENTITY", "MASK_NULL", "")

	// Masks: one user a mask type.
	everyMask := []string{"m_bad"}
	for _, m := range peer.maskUsers() {
		everyMask = append(everyMask, m.user)
	}
	p.Read(users(everyMask...), "masks", "*")
	peer.maskedTypes(p)

	// Sem: one user a question.
	readers := users("s_same", "s_null", "s_unproj", "s_join", "s_expr", "s_sub", "s_subok", "s_user", "s_two", "s_twopol", "s_bad",
		"s_badmask", "s_badtype", "s_order", "s_write", "s_deny", "s_filter", "s_first", "s_other", "s_both", "s_group", "s_group2",
		"s_own", "s_maskfilter", "s_meta", "s_attr")
	p.Read(readers, "sem", "orders", "people", "allowed", "v_orders", "v_invoker", "target", "copy", "dml", "dmlf", "dmlm", "pub", "part", "grouped")
	p.ReadColumns(users("s_cols", "s_nullcol"), "sem", "orders", []string{"id", "region"}, []string{"amount", "ssn", "email", "signed_on"})
	p.Read(users("s_base"), "sem", "orders")
	p.Withhold(users("s_deny"), "sem", "orders", "ssn")
	if peer.kind == "hive" {
		p.Read(users("s_view"), "sem", "v_orders")
		p.Read(users("s_base"), "sem", "v_orders") // a view has no rights of its own there
	} else {
		p.Read(users("s_view"), "sem", "v_orders", "v_invoker")
	}
	p.orders()
	p.others()
	if peer.kind == "trino" {
		p.trinoRights()
	}
	return p
}

// trinoRights are those without which nobody can do anything in Trino. SQE does
// not ask for them.
func (p *Policies) trinoRights() {
	give := func(w who, resources object, types ...string) {
		p.add(&p.Data, accessPolicy, p.peer.kind, resources, object{"policyItems": []object{item(w, types, nil)}})
	}
	everybody := groups("public")
	give(everybody, object{"queryid": values("*")}, "execute")
	give(users("{USER}"), object{"trinouser": values("*")}, "impersonate")
	give(everybody, object{"catalog": values(Catalog, "system")}, "use", "show")
	give(everybody, object{"catalog": values("*"), "schema": values("information_schema"), "table": values("*"), "column": values("*")}, "select", "show")
	// The wildcard that is usual names the metadata tables of the table too.
	give(users("s_meta"), object{"catalog": values(Catalog), "schema": values("sem"), "table": values("part*"), "column": values("*")}, "select")
}

func (p *Policies) orders() {
	ssn := []object{
		maskItem(users("s_same", "s_join", "s_write", "s_base", "s_view", "s_both", "s_filter", "s_own"), "MASK_SHOW_LAST_4", ""),
		maskItem(users("s_nullcol"), "MASK_NULL", ""),
		maskItem(users("s_expr"), "CUSTOM", "concat(region, ':', {col})"),
		maskItem(users("s_sub"), "CUSTOM", "(SELECT max(name) FROM lake.sem.people)"),
		maskItem(users("s_badmask"), "CUSTOM", "no_such_function({col})"),
	}
	amount, region := "MASK_HASH", []object{maskItem(users("s_null"), "MASK_NULL", "")}
	filtered := []string{"s_null", "s_unproj", "s_base", "s_both", "s_write"}
	rest := []object{}
	if p.peer.kind == "trino" {
		ssn = append(ssn, maskItem(users("s_badtype"), "CUSTOM", "length({col})"),
			maskItem(users("s_user"), "CUSTOM", "concat("+p.peer.currentUser+", ':', {col})"),
			maskItem(users("s_maskfilter"), "CUSTOM", "if(region = 'EU', {col}, NULL)"))
		amount = "MASK_NULL"
		region = append(region, maskItem(users("s_maskfilter"), "CUSTOM", "'masked'"))
		filtered = append(filtered, "s_own", "s_maskfilter")
		rest = append(rest, filterItem(users("s_attr"), "region = '${{USER.region}}'"))
	}
	ssn = append(ssn, maskItem(users("s_first"), "MASK_NONE", ""), maskItem(users("s_first", "s_order"), "MASK_NULL", ""),
		maskItem(users("s_order"), "MASK_HASH", ""))
	p.Mask("sem", "orders", "ssn", ssn...)
	p.Mask("sem", "orders", "region", region...)
	p.Mask("sem", "orders", "amount", maskItem(users("s_expr"), "CUSTOM", "round({col} / 7, 2)"), maskItem(users("s_write"), amount, ""))
	p.Filter("sem", "orders", append([]object{
		filterItem(users("s_same"), "ssn = '111-11-1111'"),
		filterItem(users(filtered...), "region = 'EU'"),
		filterItem(users("s_sub", "s_subok"), "region IN (SELECT region FROM lake.sem.allowed)"),
		filterItem(users("s_user"), "email = concat(substr("+p.peer.currentUser+", 1, 0), 'b@x')"),
		filterItem(users("s_two"), "id = 1"), filterItem(users("s_two"), "id = 2"),
		filterItem(users("s_bad"), "no_such_column = 1"),
		filterItem(users("s_filter"), "region <> 'EU'"),
		filterItem(users("s_other"), "id >= 2 OR id = 1 AND false"),
	}, rest...)...)
}

func (p *Policies) others() {
	p.Mask("sem", "pub", "v", maskItem(users("s_first", "admin"), "MASK_NONE", ""), maskItem(groups("public"), "CUSTOM", "'public'"))
	p.Mask("sem", "people", "ssn", maskItem(users("s_join"), "MASK_SHOW_LAST_4", ""))
	for _, v := range []string{"v_orders", "v_invoker"} {
		p.Mask("sem", v, "region", maskItem(users("s_view", "s_both"), "CUSTOM", "lower({col})"))
		p.Filter("sem", v, filterItem(users("s_view", "s_both"), "id = 2"))
	}
	p.Mask("sem", "dml", "ssn", maskItem(users("s_write"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "dml", filterItem(users("s_write"), "region = 'EU'"))
	if p.peer.kind != "trino" {
		return
	}
	p.Mask("sem", "dmlm", "ssn", maskItem(users("s_write"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "dmlf", filterItem(users("s_write"), "region = 'EU'"))
	p.Mask("sem", "grouped", "v", maskItem(groups("g_emea"), "MASK_SHOW_LAST_4", ""), maskItem(groups("g_both"), "MASK_NULL", ""))
	p.Filter("sem", "grouped", filterItem(groups("g_both"), "region = 'EU'"))
	p.Mask("sem", "part", "ssn", maskItem(users("s_same", "s_meta"), "MASK_SHOW_LAST_4", ""))
	p.Filter("sem", "part", filterItem(users("s_same", "s_meta"), "region = 'EU'"))
	p.Filter("sem", "order*", filterItem(users("s_twopol"), "id = 3"))
	p.Filter("sem", "orde*", filterItem(users("s_twopol"), "id = 1"))
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
