//go:build e2e

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/policystore"
	"sqe/policystore/rest"
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

const (
	adminPassword  = "Adm1n-of-tests"
	enginePassword = "Eng1ne-of-tests"
	poll           = time.Second
	// patience is how long a change may take to arrive: two polls, for one may be
	// under way, and what a busy machine needs.
	patience = 2*poll + 2*time.Minute
)

// consumers are SQE and Ranger's plugin, which follow the same policy store.
type consumers struct {
	t      *testing.T
	file   string
	store  *policystore.Store
	server *rest.Server
	url    string
	admin  *admin.REST
	java   *java
	sqe    *rangerclient.Source
}

func (c *consumers) serve(address string) {
	c.t.Helper()
	var err error
	if c.store, err = policystore.Open(c.t.Context(), c.file, policystore.Options{AdminPassword: adminPassword}); err != nil {
		c.t.Fatal(err)
	}
	if c.server, err = rest.Listen(address, nil, rest.New(c.store, rest.Options{})); err != nil {
		c.t.Fatal(err)
	}
	c.url = "http://" + c.server.Addr().String()
	server := c.server
	go func() {
		if err := server.Serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			c.t.Error(err)
		}
	}()
}

func (c *consumers) stop() {
	_ = c.server.Shutdown(context.WithoutCancel(c.t.Context()))
	_ = c.store.Close()
}

func (c *consumers) source(password string) *rangerclient.Source {
	c.t.Helper()
	s, err := rangerclient.OpenREST(rangerclient.RESTConfig{
		Name: "store", URL: c.url, Username: "engine", Password: password, PolarisService: "objects", DataService: "data", RefreshInterval: poll,
		Options: rangerclient.Options{
			Groups: rangerclient.GroupsFromRanger, DatabaseKey: rangerclient.KeyNamespace,
			FilterCombination: rangerclient.FiltersAsRanger, ColumnAccess: rangerclient.ColumnAccessIgnored,
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (c *consumers) follow(name, typ, service, password string) {
	c.java.send(c.t, map[string]any{
		"server": c.url, "name": name, "type": typ, "service": service, "user": "engine", "password": password,
		"poll": poll.Milliseconds(), "cache": c.t.TempDir(),
	})
	var r reply
	c.java.receive(c.t, &r)
}

// do fails the test when a call of the administration does.
func do[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// furnish makes users, groups, roles, services and the first policies.
func (c *consumers) furnish() {
	t, ctx := c.t, c.t.Context()
	for _, g := range []string{"sales", "audit"} {
		do[*model.Group](t)(c.admin.CreateGroup(ctx, &model.Group{Name: g, Attributes: map[string]string{"site": g + "-site"}}))
	}
	for _, u := range []*model.User{
		{Name: "engine", FirstName: "engine", Password: enginePassword, AdminRoles: []string{"ROLE_USER"}},
		{Name: "ann", FirstName: "ann", Groups: []string{"sales"}, Attributes: map[string]string{"region": "EU"}},
		{Name: "bob", FirstName: "bob", Groups: []string{"sales", "audit"}, Attributes: map[string]string{"region": "US"}},
		{Name: "eve", FirstName: "eve", Attributes: map[string]string{"region": "EU"}},
		{Name: "zoë", FirstName: "zoë", Attributes: map[string]string{"region": "ÄÖ"}},
	} {
		do[*model.User](t)(c.admin.CreateUser(ctx, u))
	}
	do[*model.Role](t)(c.admin.CreateRole(ctx, &model.Role{Name: "steward", Users: []model.Member{{Name: "zoë"}}}))
	do[*model.Role](t)(c.admin.CreateRole(ctx, &model.Role{Name: "reader", Groups: []model.Member{{Name: "sales"}}, Roles: []model.Member{{Name: "steward"}}}))
	for _, s := range []*model.Service{{Name: "tags", Type: "tag"}, {Name: "data", Type: "hive", TagService: "tags"}, {Name: "objects", Type: "polaris", TagService: "tags"}} {
		s.Configs = model.Strings{"policy.download.auth.users": "engine", "tag.download.auth.users": "engine", "userstore.download.auth.users": "engine"}
		if s.Type == "hive" {
			s.Configs["username"], s.Configs["password"], s.Configs["jdbc.driverClassName"], s.Configs["jdbc.url"] = "hive", "unused", "none", "none"
		}
		do[*model.Service](t)(c.admin.CreateService(ctx, s))
	}
}

func on(pairs ...string) map[string]model.Resource {
	out := map[string]model.Resource{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = model.Resource{Values: strings.Split(pairs[i+1], ",")}
	}
	return out
}

func forWhom(users, groups, roles string, accesses ...string) *model.Item {
	i := &model.Item{Users: strings.Fields(users), Groups: strings.Fields(groups), Roles: strings.Fields(roles)}
	for _, a := range accesses {
		i.Accesses = append(i.Accesses, model.Access{Type: a})
	}
	return i
}

func masked(i *model.Item, typ, value string) *model.Item {
	i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: typ, ValueExpr: value}
	return i
}

func filtered(i *model.Item, sql string) *model.Item {
	i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &sql}
	return i
}

// what the requests are about.
var (
	people     = []string{"ann", "bob", "eve", "zoë"}
	fields     = []string{"id", "email", "salary", "größe"}
	allTables  = [][2]string{{"shop", "orders"}, {"shop", "customers"}, {"hr", "staff"}, {"lager", "größen"}}
	privileges = []policy.Privilege{policy.TableDataRead, "table-data-write", policy.TableList, policy.TableProps, "table-create", policy.NamespaceList, policy.CatalogList}
)

func tableOf(name [2]string) *plan.Table {
	t := &plan.Table{Name: plan.TableName{Catalog: "main", Namespace: []string{name[0]}, Name: name[1]}}
	for i, f := range fields {
		t.Fields = append(t.Fields, plan.Field{ID: i + 1, Name: f, Type: arrow.BinaryTypes.String})
	}
	return t
}

// dataBySQE answers what SQE does with the tables: for each person and table, the
// row filter and the mask of each column.
func (c *consumers) dataBySQE(s policy.State) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	for _, who := range people {
		for _, name := range allTables {
			r, err := s.Restrict(identity.Principal{Name: who}, tableOf(name))
			if err != nil || r.Refuse != "" {
				c.t.Fatalf("%s on %v: %v %s", who, name, err, r.Refuse)
			}
			key := who + " " + name[0] + "." + name[1]
			for _, f := range r.Filters {
				out[key] += f.SQL
			}
			for id, rule := range r.Columns {
				out[key+"."+fields[id-1]] = rule.Action + " " + rule.SQL
			}
		}
	}
	return out
}

// ask asks Ranger's plugin.
func (c *consumers) ask(name string, requests []request) reply {
	c.t.Helper()
	c.java.send(c.t, map[string]any{"name": name, "requests": requests})
	var r reply
	c.java.receive(c.t, &r)
	return r
}

// dataByRanger answers the same by Ranger's plugin.
func (c *consumers) dataByRanger(plugin string) map[string]string {
	c.t.Helper()
	var requests []request
	var keys []string
	for _, who := range people {
		for _, name := range allTables {
			for _, f := range append([]string{""}, fields...) {
				r := request{Elements: map[string]string{"database": name[0], "table": name[1]}, User: who, Groups: []string{}, Access: "select"}
				key := who + " " + name[0] + "." + name[1]
				if f != "" {
					r.Elements["column"] = f
					key += "." + f
				}
				requests, keys = append(requests, r), append(keys, key)
			}
		}
	}
	out := map[string]string{}
	for i, a := range c.ask(plugin, requests).Answers {
		switch column := requests[i].Elements["column"] != ""; {
		case !column && a.Filter != nil && *a.Filter != "":
			out[keys[i]] = *a.Filter
		case column && a.Mask != "" && a.Mask != eval.MaskNone:
			out[keys[i]] = a.Mask + " " + a.Value
		}
	}
	return out
}

// objects answers, by both, who may do what with catalogs, namespaces and tables.
func (c *consumers) objects(s policy.State, plugin string) (sqe, ranger map[string]bool) {
	c.t.Helper()
	sqe, ranger = map[string]bool{}, map[string]bool{}
	var requests []request
	var keys []string
	for _, who := range people {
		for _, name := range append([][2]string{{}, {"shop"}, {"hr"}}, allTables...) {
			o := policy.Object{Catalog: "main", Name: name[1]}
			elements := map[string]string{"root": "POLARIS", "catalog": "main"}
			if name[0] != "" {
				o.Namespace, elements["namespace"] = []string{name[0]}, name[0]
			}
			if name[1] != "" {
				elements["table"] = name[1]
			}
			for _, p := range privileges {
				key := fmt.Sprint(who, " ", name, " ", p)
				if s != nil {
					sqe[key] = s.Authorize(identity.Principal{Name: who}, o, p).Allow
				}
				requests = append(requests, request{Elements: elements, User: who, Groups: []string{}, Access: string(p)})
				keys = append(keys, key)
			}
		}
	}
	for i, a := range c.ask(plugin, requests).Answers {
		ranger[keys[i]] = a.Allowed
	}
	return sqe, ranger
}

// agree waits until the change is seen by both, and holds that they then decide
// the same. seen is about the tables.
func (c *consumers) agree(after string, seen func(data map[string]string, may map[string]bool) bool) {
	c.t.Helper()
	began := time.Now()
	for {
		s, err := c.sqe.State()
		if err != nil {
			c.t.Fatalf("after %s: %v", after, err)
		}
		mine, theirs := c.dataBySQE(s), c.dataByRanger("data")
		may, they := c.objects(s, "objects")
		same := fmt.Sprint(mine) == fmt.Sprint(theirs) && fmt.Sprint(may) == fmt.Sprint(they)
		if same && seen(mine, may) {
			c.t.Logf("after %s: seen by both within %s; %d decisions on tables and %d on objects are the same", after, time.Since(began).Round(time.Millisecond), len(people)*len(allTables)*(len(fields)+1), len(may))
			return
		}
		if time.Since(began) > patience {
			for k, v := range they {
				if may[k] != v {
					c.t.Errorf("after %s: %s: SQE %t, Ranger %t", after, k, may[k], v)
				}
			}
			for k := range mine {
				if mine[k] != theirs[k] {
					c.t.Errorf("after %s: %s: SQE %q, Ranger %q", after, k, mine[k], theirs[k])
				}
			}
			for k := range theirs {
				if _, ok := mine[k]; !ok {
					c.t.Errorf("after %s: %s: SQE nothing, Ranger %q", after, k, theirs[k])
				}
			}
			c.t.Fatalf("after %s: seen by SQE: %t, by Ranger: %t", after, seen(mine, may), seen(theirs, they))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestConsumer(t *testing.T) {
	c := &consumers{t: t, file: filepath.Join(t.TempDir(), "policies.db"), java: start(t)}
	c.serve("127.0.0.1:0")
	t.Cleanup(func() { c.stop() })
	c.admin = do[*admin.REST](t)(admin.OpenREST(admin.RESTConfig{URL: c.url, Username: "admin", Password: adminPassword, AllowHTTP: true, Timeout: patience}))
	c.furnish()
	ctx := t.Context()
	create := func(p *model.Policy) *model.Policy { return do[*model.Policy](t)(c.admin.CreatePolicy(ctx, p)) }

	create(&model.Policy{Service: "objects", Name: "readers", Resources: on("root", "POLARIS", "catalog", "main", "namespace", "shop", "table", "*"), PolicyItems: []*model.Item{forWhom("", "", "reader", "table-data-read")}})
	create(&model.Policy{Service: "objects", Name: "manager", Resources: on("root", "POLARIS", "catalog", "main"), PolicyItems: []*model.Item{forWhom("", "", "steward", "catalog-content-manage")}})
	create(&model.Policy{
		Service: "objects", Name: "staff", Resources: on("root", "POLARIS", "catalog", "main", "namespace", "hr,lager", "table", "*"), PolicyItems: []*model.Item{forWhom("", "public", "", "table-metadata-full")},
		DenyPolicyItems: []*model.Item{forWhom("", "sales", "", "table-metadata-full")}, DenyExceptions: []*model.Item{forWhom("", "audit", "", "table-list", "table-properties-read")},
	})
	rows := create(&model.Policy{
		Service: "data", Name: "rows", PolicyType: model.RowFilterPolicy, Resources: on("database", "shop", "table", "orders"),
		RowFilterPolicyItems: []*model.Item{filtered(forWhom("", "", "steward", "select"), ""), filtered(forWhom("", "public", "", "select"), "region = '${{USER.region}}'")},
	})
	mail := create(&model.Policy{
		Service: "data", Name: "mail", PolicyType: model.MaskPolicy, Resources: on("database", "SHOP", "table", "Customers", "column", "EMAIL"),
		DataMaskPolicyItems: []*model.Item{masked(forWhom("bob", "", "", "select"), "MASK_NONE", ""), masked(forWhom("", "sales", "", "select"), "MASK_SHOW_LAST_4", ""), masked(forWhom("", "public", "", "select"), "CUSTOM", "concat('${{USER._name}}', {col})")},
	})
	create(&model.Policy{
		Service: "data", Name: "unicode", PolicyType: model.MaskPolicy, Resources: on("database", "LAGER", "table", "GRÖßEN", "column", "GRÖßE"),
		DataMaskPolicyItems: []*model.Item{masked(forWhom("zoë", "", "", "select"), "MASK_NULL", "")},
	})
	create(&model.Policy{
		Service: "tags", Name: "pii", PolicyType: model.MaskPolicy, Resources: on("tag", "PII"),
		DataMaskPolicyItems: []*model.Item{masked(forWhom("", "", "steward", "hive:select"), "hive:MASK_NONE", ""), masked(forWhom("", "public", "", "hive:select"), "hive:MASK_HASH", "")},
	})
	create(&model.Policy{
		Service: "tags", Name: "secret objects", Resources: on("tag", "SECRET"), DenyPolicyItems: []*model.Item{forWhom("", "", "reader", "polaris:table-data-read")},
	})

	c.sqe = c.source(enginePassword)
	c.follow("data", "hive", "data", enginePassword)
	c.follow("objects", "polaris", "objects", enginePassword)
	c.agree("the start", func(d map[string]string, may map[string]bool) bool {
		return d["ann shop.orders"] == "region = 'EU'" && d["zoë shop.orders"] == "" && d["ann shop.customers.email"] == "MASK_SHOW_LAST_4 " && d["bob shop.customers.email"] == "" &&
			d["zoë lager.größen.größe"] == "MASK_NULL " && may["ann [shop orders] table-data-read"] && !may["eve [shop orders] table-data-read"] &&
			may["zoë [ ] catalog-list"] && !may["ann [hr staff] table-list"] && may["bob [hr staff] table-list"] && may["eve [hr staff] table-list"]
	})

	*rows.RowFilterPolicyItems[1].RowFilterInfo.FilterExpr = "1 = 0"
	do[*model.Policy](t)(c.admin.UpdatePolicy(ctx, rows))
	c.agree("a changed filter", func(d map[string]string, _ map[string]bool) bool { return d["ann shop.orders"] == "1 = 0" })

	if err := c.admin.DeletePolicy(ctx, mail.ID); err != nil {
		t.Fatal(err)
	}
	c.agree("a deleted policy", func(d map[string]string, _ map[string]bool) bool { return d["ann shop.customers.email"] == "" })

	steward := do[*model.Role](t)(c.admin.Role(ctx, "steward"))
	steward.Users = []model.Member{{Name: "eve"}}
	do[*model.Role](t)(c.admin.UpdateRole(ctx, steward))
	c.agree("a changed role", func(d map[string]string, may map[string]bool) bool {
		return d["eve shop.orders"] == "" && d["zoë shop.orders"] != "" && may["eve [shop orders] table-data-read"] && !may["zoë [shop orders] table-data-read"]
	})

	tagged := func(op, service, tag string, elements map[string]model.Resource) {
		doc := &model.ServiceTags{
			Op: op, ServiceName: service, TagDefinitions: map[string]model.TagDefinition{"1": {Name: tag}}, Tags: map[string]model.Tag{"1": {Type: tag}},
			ServiceResources: []model.ServiceResource{{ID: 1, ResourceElements: elements}}, ResourceToTagIDs: map[string][]int64{"1": {1}},
		}
		if err := c.admin.ImportTags(ctx, doc); err != nil {
			t.Fatal(err)
		}
	}
	tagged("add_or_update", "data", "PII", on("database", "hr", "table", "staff", "column", "salary"))
	tagged("add_or_update", "objects", "SECRET", on("root", "POLARIS", "catalog", "main", "namespace", "shop", "table", "orders"))
	c.agree("tags", func(d map[string]string, may map[string]bool) bool {
		return d["ann hr.staff.salary"] == "MASK_HASH " && d["eve hr.staff.salary"] == "" && !may["ann [shop orders] table-data-read"] && may["ann [shop customers] table-data-read"]
	})
	tagged("delete", "data", "PII", on("database", "hr", "table", "staff", "column", "salary"))
	c.agree("a tag taken away", func(d map[string]string, _ map[string]bool) bool { return d["ann hr.staff.salary"] == "" })

	user := do[*model.User](t)(c.admin.User(ctx, "eve"))
	user.Groups = []string{"sales"}
	do[*model.User](t)(c.admin.UpdateUser(ctx, user))
	c.agree("a user in another group", func(_ map[string]string, may map[string]bool) bool { return !may["eve [hr staff] table-list"] })

	// While the server is away both decide by what they have; afterwards they follow
	// again.
	before, _ := c.sqe.State()
	held := c.dataByRanger("data")
	c.stop()
	time.Sleep(2 * poll)
	if s, err := c.sqe.State(); err != nil || s.Version() != before.Version() {
		t.Errorf("without a server: %v", err)
	}
	if now := c.dataByRanger("data"); fmt.Sprint(now) != fmt.Sprint(held) {
		t.Errorf("Ranger's plugin without a server: %v, before %v", now, held)
	}
	c.serve(strings.TrimPrefix(c.url, "http://"))
	*rows.RowFilterPolicyItems[1].RowFilterInfo.FilterExpr = "id > 7"
	do[*model.Policy](t)(c.admin.UpdatePolicy(ctx, rows))
	c.agree("a restart of the server", func(d map[string]string, _ map[string]bool) bool { return d["ann shop.orders"] == "id > 7" })

	// With a wrong password nobody learns anything, and everything is refused.
	wrong := c.source("wrong")
	if s, err := wrong.State(); fault.KindOf(err) != fault.PolicyStale {
		t.Errorf("SQE with a wrong password: %v %v", s, err)
	}
	c.follow("wrong", "polaris", "objects", "wrong")
	if _, they := c.objects(nil, "wrong"); len(they) == 0 {
		t.Error("nothing was asked")
	} else {
		for k, v := range they {
			if v {
				text, _ := json.Marshal(k)
				t.Errorf("Ranger's plugin with a wrong password allows %s", text)
			}
		}
	}
}
