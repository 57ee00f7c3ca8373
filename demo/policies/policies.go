// Package policies writes the policies of the demo: the bodies of Ranger's
// downloads, as a folder source reads them, for the sample tables of the
// namespace "bank".
//
//	admin  everything as it is
//	alice  (role analyst, by group analytics) customers of the EU, masked
//	bob    (role marketer, by group marketing) customers who agreed to marketing,
//	       masked in another way; payments of the branches that he works for
//	carol  (role data_steward, by group governance) everything as it is, by
//	       exemptions from the same policies
//	dave   nothing
//
// Whoever is in no list sees NULL instead of personal data and no row of a
// filtered table: each policy ends with an item for everybody. The package must
// never change a file that is there: what a user of the demo edited stays.
package policies

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// The names of the two services.
const (
	PolarisService = "polaris"
	HiveService    = "hive"
)

const (
	database = "bank"
	realm    = "POLARIS"
)

// Write writes those documents into dir that do not exist there. catalog is the
// name of the catalog that holds the sample tables.
func Write(dir, catalog string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	hive, err := hivePolicies()
	if err != nil {
		return err
	}
	polaris, err := polarisPolicies(catalog)
	if err != nil {
		return err
	}
	for _, doc := range []struct {
		name string
		body any
	}{
		{"policies_" + HiveService + ".json", hive},
		{"policies_" + PolarisService + ".json", polaris},
		{"tags_" + HiveService + ".json", tags()},
		{"roles.json", roles()},
		{"userstore.json", users()},
	} {
		if err := create(filepath.Join(dir, doc.name), doc.body); err != nil {
			return err
		}
	}
	return nil
}

// create writes a file whole, unless it exists.
func create(path string, body any) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := json.MarshalIndent(body, "", " ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(text, '\n'))
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// who is a list of principals of an item.
type who struct{ users, groups, roles []string }

var (
	trusted  = who{users: []string{"admin"}, roles: []string{"data_steward"}}
	analyst  = who{roles: []string{"analyst"}}
	marketer = who{roles: []string{"marketer"}}
	public   = who{groups: []string{"public"}}
)

func item(w who, accesses ...string) *model.Item {
	i := &model.Item{Users: w.users, Groups: w.groups, Roles: w.roles}
	for _, a := range accesses {
		i.Accesses = append(i.Accesses, model.Access{Type: a})
	}
	return i
}

// service collects the policies of one service.
type service struct {
	name, typ string
	first     int64 // id of the first policy
	list      []*model.Policy
}

func (s *service) add(kind int, name, why string, resources map[string][]string) *model.Policy {
	p := &model.Policy{
		ID: s.first + int64(len(s.list)), Version: 1, Service: s.name, ServiceType: s.typ, Name: name, Description: why,
		PolicyType: kind, PolicyLabels: []string{"demo"}, Resources: map[string]model.Resource{},
	}
	for k, v := range resources {
		p.Resources[k] = model.Resource{Values: v}
	}
	s.list = append(s.list, p)
	return p
}

// mask is one item of a mask policy.
type mask struct {
	who
	kind, expr string
}

func maskItems(prefix string, masks []mask) []*model.Item {
	var out []*model.Item
	for _, m := range masks {
		i := item(m.who, prefix+"select")
		i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: prefix + m.kind, ValueExpr: m.expr}
		out = append(out, i)
	}
	return out
}

// masked adds a mask policy on a column: exempt for the trusted, as given, NULL
// for everybody else.
func (s *service) masked(table, column string, masks ...mask) {
	p := s.add(model.MaskPolicy, "mask "+database+"."+table+"."+column, "", map[string][]string{
		"database": {database}, "table": {table}, "column": {column},
	})
	masks = append([]mask{{trusted, "MASK_NONE", ""}}, masks...)
	p.DataMaskPolicyItems = maskItems("", append(masks, mask{public, "MASK_NULL", ""}))
}

// filter is one item of a row filter policy.
type filter struct {
	who
	sql string
}

// filtered adds a row filter policy: exempt for the trusted, as given, no row for
// everybody else.
func (s *service) filtered(table string, filters ...filter) {
	p := s.add(model.RowFilterPolicy, "rows of "+database+"."+table, "", map[string][]string{
		"database": {database}, "table": {table},
	})
	filters = append([]filter{{trusted, ""}}, filters...)
	for _, f := range append(filters, filter{public, "1 = 0"}) {
		i := item(f.who, "select")
		i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &f.sql}
		p.RowFilterPolicyItems = append(p.RowFilterPolicyItems, i)
	}
}

func version(v int64) *int64 { return &v }

func hivePolicies() (*model.ServicePolicies, error) {
	s := &service{name: HiveService, typ: "hive", first: 1}
	s.filtered("customers",
		filter{analyst, "residency_region = 'EU'"},
		filter{marketer, "consent_marketing = true"})
	s.filtered("payments",
		filter{analyst, "cust_id IN (SELECT cust_id FROM bank.customers WHERE residency_region = 'EU')"},
		filter{marketer, "cust_id IN (SELECT c.cust_id FROM bank.customers c JOIN bank.branch_access a ON a.branch = c.branch WHERE a.username = current_user())"})
	s.masked("customers", "full_name", mask{marketer, "MASK", ""}, mask{analyst, "MASK_NONE", ""})
	s.masked("customers", "national_id", mask{analyst, "MASK_SHOW_LAST_4", ""})
	s.masked("customers", "iban", mask{analyst, "MASK_HASH", ""})
	s.masked("customers", "dob", mask{analyst, "MASK_DATE_SHOW_YEAR", ""}, mask{marketer, "MASK_DATE_SHOW_YEAR", ""})
	s.masked("customers", "phone", mask{marketer, "MASK_NONE", ""})
	s.masked("customers", "risk_score", mask{analyst, "MASK_NONE", ""})
	s.masked("profiles", "contact.email", mask{analyst, "MASK_HASH", ""}, mask{marketer, "MASK_NONE", ""})
	s.masked("profiles", "contact.phone", mask{marketer, "MASK_SHOW_LAST_4", ""})
	s.masked("profiles", "contact.address.postcode", mask{marketer, "CUSTOM", "concat(substr({col}, 1, 2), '...')"})

	t := &service{name: "tag", typ: "tag", first: 101}
	pii := t.add(model.MaskPolicy, "PII", "columns that carry the tag PII, in whichever table", map[string][]string{"tag": {"PII"}})
	pii.DataMaskPolicyItems = maskItems("hive:", []mask{{trusted, "MASK_NONE", ""}, {marketer, "MASK", ""}})
	account := t.add(model.MaskPolicy, "ACCOUNT", "numbers of accounts of other people", map[string][]string{"tag": {"ACCOUNT"}})
	account.DataMaskPolicyItems = maskItems("hive:", []mask{{trusted, "MASK_NONE", ""}, {analyst, "MASK_SHOW_LAST_4", ""}, {public, "MASK_NULL", ""}})

	def, err := servicedef.Definition("hive")
	if err != nil {
		return nil, err
	}
	tagDef, err := servicedef.Definition("tag")
	if err != nil {
		return nil, err
	}
	return &model.ServicePolicies{
		ServiceName: s.name, ServiceID: 1, PolicyVersion: version(1), Policies: s.list, ServiceDef: def, AuditMode: "audit-default",
		TagPolicies: &model.TagPolicies{ServiceName: t.name, ServiceID: 3, PolicyVersion: version(1), Policies: t.list, ServiceDef: tagDef, AuditMode: "audit-default"},
	}, nil
}

func polarisPolicies(catalog string) (*model.ServicePolicies, error) {
	s := &service{name: PolarisService, typ: "polaris", first: 201}
	admin, staff := who{users: []string{"admin"}}, who{roles: []string{"staff"}}
	at := func(levels ...[]string) map[string][]string {
		out := map[string][]string{"root": {realm}, "catalog": {catalog}}
		for i, name := range []string{"namespace", "table"} {
			if i < len(levels) {
				out[name] = levels[i]
			}
		}
		return out
	}
	all := []string{"*"}
	s.add(model.AccessPolicy, catalog+": find", "", at()).PolicyItems = []*model.Item{
		item(admin, "catalog-content-manage"), item(staff, "catalog-list", "namespace-list"),
	}
	s.add(model.AccessPolicy, catalog+": everything", "", at(all, all)).PolicyItems = []*model.Item{
		item(admin, "catalog-content-manage"),
		item(who{roles: []string{"data_steward"}}, "table-data-read", "view-properties-read"),
	}
	s.add(model.AccessPolicy, catalog+".bank: find", "", at([]string{database})).PolicyItems = []*model.Item{
		item(staff, "namespace-list", "namespace-properties-read"),
	}
	s.add(model.AccessPolicy, catalog+".bank: read", "", at([]string{database}, []string{"customers", "payments", "profiles", "eu_payments"})).PolicyItems = []*model.Item{
		item(who{roles: []string{"analyst", "marketer"}}, "table-data-read", "view-properties-read"),
	}
	def, err := servicedef.Definition("polaris")
	if err != nil {
		return nil, err
	}
	return &model.ServicePolicies{
		ServiceName: s.name, ServiceID: 2, PolicyVersion: version(1), Policies: s.list, ServiceDef: def, AuditMode: "audit-default",
	}, nil
}

// tags puts ACCOUNT on a column of payments by Ranger's tag store; PII is on
// columns of customers by a property of the Iceberg table.
func tags() *model.ServiceTags {
	return &model.ServiceTags{
		Op: "add_or_update", ServiceName: HiveService, TagVersion: version(1),
		TagDefinitions: map[string]model.TagDefinition{"1": {ID: 1, Name: "ACCOUNT", Source: "demo"}, "2": {ID: 2, Name: "PII", Source: "demo"}},
		Tags:           map[string]model.Tag{"1": {ID: 1, Type: "ACCOUNT"}},
		ServiceResources: []model.ServiceResource{{ID: 1, ResourceElements: map[string]model.Resource{
			"database": {Values: []string{database}}, "table": {Values: []string{"payments"}}, "column": {Values: []string{"counterparty_iban"}},
		}}},
		ResourceToTagIDs: map[string][]int64{"1": {1}},
	}
}

func roles() *model.Roles {
	of := func(id int64, name, group string) *model.Role {
		return &model.Role{ID: id, Name: name, Groups: []model.Member{{Name: group}}}
	}
	return &model.Roles{ServiceName: HiveService, RoleVersion: version(1), RangerRoles: []*model.Role{
		of(1, "analyst", "analytics"), of(2, "marketer", "marketing"), of(3, "data_steward", "governance"),
		{ID: 4, Name: "staff", Description: "members of this role are the three roles above", Roles: []model.Member{{Name: "analyst"}, {Name: "marketer"}, {Name: "data_steward"}}},
	}}
}

func users() *model.UserStore {
	return &model.UserStore{
		Version:          version(1),
		UserAttrMapping:  map[string]map[string]string{"admin": {}, "alice": {"region": "EU"}, "bob": {"region": "EU"}, "carol": {"region": "EU"}, "dave": {}},
		GroupAttrMapping: map[string]map[string]string{"analytics": {}, "marketing": {}, "governance": {}, "public": {}},
		UserGroupMapping: map[string][]string{"alice": {"analytics"}, "bob": {"marketing"}, "carol": {"governance"}},
	}
}
