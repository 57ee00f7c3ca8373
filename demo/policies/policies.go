// Package policies puts the policies of the demo into a policy server, for the
// sample tables of the namespace "bank".
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
// never change what a server has already.
package policies

import (
	"context"
	"fmt"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// The names of the services.
const (
	PolarisService = "polaris"
	HiveService    = "hive"
	tagService     = "tag"
)

const (
	database = "bank"
	realm    = "POLARIS"
)

// Seed fills a policy server that is new: services, users, groups, roles, policies
// and tags. catalog is the name of the catalog that holds the sample tables.
func Seed(ctx context.Context, server admin.Server, catalog string) error {
	for _, g := range []string{"analytics", "marketing", "governance"} {
		if _, err := server.CreateGroup(ctx, &model.Group{Name: g}); err != nil {
			return fmt.Errorf("group %s: %w", g, err)
		}
	}
	for _, u := range users {
		if _, err := server.CreateUser(ctx, &u); err != nil {
			return fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	for _, r := range roles {
		if _, err := server.CreateRole(ctx, &r); err != nil {
			return fmt.Errorf("role %s: %w", r.Name, err)
		}
	}
	for _, s := range []*model.Service{
		{Name: tagService, Type: "tag"},
		{Name: HiveService, Type: "hive", TagService: tagService},
		{Name: PolarisService, Type: "polaris", TagService: tagService},
	} {
		// The name of a user who may download: the service account of the plugins of
		// other engines.
		s.Configs = model.Strings{"policy.download.auth.users": "admin", "tag.download.auth.users": "admin", "userstore.download.auth.users": "admin"}
		if s.Type == "hive" {
			// Ranger wants to know these of a hive service; nobody uses them here.
			for _, k := range []string{"username", "password", "jdbc.driverClassName", "jdbc.url"} {
				s.Configs[k] = "none"
			}
		}
		if _, err := server.CreateService(ctx, s); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	for _, list := range [][]*model.Policy{hivePolicies(), tagPolicies(), polarisPolicies(catalog)} {
		for _, p := range list {
			if _, err := server.CreatePolicy(ctx, p); err != nil {
				return fmt.Errorf("policy %s: %w", p.Name, err)
			}
		}
	}
	return server.ImportTags(ctx, tags())
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
	name string
	list []*model.Policy
}

func (s *service) add(kind int, name, why string, resources map[string][]string) *model.Policy {
	p := &model.Policy{
		Service: s.name, Name: name, Description: why, PolicyType: kind, PolicyLabels: []string{"demo"}, Resources: map[string]model.Resource{},
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

func hivePolicies() []*model.Policy {
	s := &service{name: HiveService}
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

	return s.list
}

func tagPolicies() []*model.Policy {
	s := &service{name: tagService}
	pii := s.add(model.MaskPolicy, "PII", "columns that carry the tag PII, in whichever table", map[string][]string{"tag": {"PII"}})
	pii.DataMaskPolicyItems = maskItems("hive:", []mask{{trusted, "MASK_NONE", ""}, {marketer, "MASK", ""}})
	account := s.add(model.MaskPolicy, "ACCOUNT", "numbers of accounts of other people", map[string][]string{"tag": {"ACCOUNT"}})
	account.DataMaskPolicyItems = maskItems("hive:", []mask{{trusted, "MASK_NONE", ""}, {analyst, "MASK_SHOW_LAST_4", ""}, {public, "MASK_NULL", ""}})
	return s.list
}

func polarisPolicies(catalog string) []*model.Policy {
	s := &service{name: PolarisService}
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
	return s.list
}

// tags puts ACCOUNT on a column of payments by Ranger's tag store; PII is on
// columns of customers by a property of the Iceberg table.
func tags() *model.ServiceTags {
	return &model.ServiceTags{
		Op: "add_or_update", ServiceName: HiveService,
		TagDefinitions: map[string]model.TagDefinition{"1": {ID: 1, Name: "ACCOUNT", Source: "demo"}, "2": {ID: 2, Name: "PII", Source: "demo"}},
		Tags:           map[string]model.Tag{"1": {ID: 1, Type: "ACCOUNT"}},
		ServiceResources: []model.ServiceResource{{ID: 1, ResourceElements: map[string]model.Resource{
			"database": {Values: []string{database}}, "table": {Values: []string{"payments"}}, "column": {Values: []string{"counterparty_iban"}},
		}}},
		ResourceToTagIDs: map[string][]int64{"1": {1}},
	}
}

// roles: the members of staff are the three roles before it.
var roles = []model.Role{
	{Name: "analyst", Groups: []model.Member{{Name: "analytics"}}},
	{Name: "marketer", Groups: []model.Member{{Name: "marketing"}}},
	{Name: "data_steward", Groups: []model.Member{{Name: "governance"}}},
	{Name: "staff", Description: "everybody who works with data", Roles: []model.Member{{Name: "analyst"}, {Name: "marketer"}, {Name: "data_steward"}}},
}

// users beside admin, whom every server has.
var users = []model.User{
	{Name: "alice", Groups: []string{"analytics"}, Attributes: map[string]string{"region": "EU"}},
	{Name: "bob", Groups: []string{"marketing"}, Attributes: map[string]string{"region": "EU"}},
	{Name: "carol", Groups: []string{"governance"}, Attributes: map[string]string{"region": "EU"}},
	{Name: "dave"},
}
