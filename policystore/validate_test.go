package policystore

import (
	"encoding/json"
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func resource(of ...string) map[string]model.Resource {
	r := map[string]model.Resource{}
	for n := 0; n < len(of); n += 2 {
		r[of[n]] = model.Resource{Values: strings.Split(of[n+1], ",")}
	}
	return r
}

// filter is a row filter policy on a table of hive.
func filter(table string) *model.Policy {
	text := "region = 'EU'"
	return &model.Policy{
		Service: "hive", Name: "filter " + table, PolicyType: model.RowFilterPolicy, Resources: resource("database", "db", "table", table),
		RowFilterPolicyItems: []*model.Item{{Users: []string{"alice"}, Accesses: []model.Access{{Type: "select"}}, RowFilterInfo: &model.RowFilterInfo{FilterExpr: &text}}},
	}
}

// mask is a mask policy on a column of hive.
func mask(column, typ string) *model.Policy {
	return &model.Policy{
		Service: "hive", Name: "mask " + column, PolicyType: model.MaskPolicy, Resources: resource("database", "db", "table", "t", "column", column),
		DataMaskPolicyItems: []*model.Item{{Users: []string{"alice"}, Accesses: []model.Access{{Type: "select"}}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: typ}}},
	}
}

func onPolaris() *model.Policy {
	p := access("t", "table-data-read")
	p.Service, p.Name, p.Resources = "polaris", "on polaris", resource("root", "POLARIS", "catalog", "c")
	return p
}

func onTag(accessType string) *model.Policy {
	p := access("t", accessType)
	p.Service, p.Name, p.Resources = "tag", "on tag", resource("tag", "PII")
	return p
}

func schedule(s model.Schedule) *model.Policy {
	p := access("scheduled", "select")
	p.ValiditySchedules = []model.Schedule{s}
	return p
}

func recurring(change func(*model.Recurrence)) *model.Policy {
	r := model.Recurrence{}
	r.Schedule.Minute, r.Schedule.Hour, r.Schedule.DayOfWeek, r.Schedule.Month, r.Schedule.Year = "0", "9", "2-6", "*", "*"
	r.Interval.Hours = 8
	change(&r)
	return schedule(model.Schedule{StartTime: "2026/01/01 00:00:00", Recurrences: []model.Recurrence{r}})
}

func zoned(p *model.Policy, zone string) *model.Policy {
	p.ZoneName = zone
	return p
}

// changed is a policy after a change.
func changed(p *model.Policy, change func(*model.Policy)) *model.Policy {
	change(p)
	return p
}

// Each kind of refusal with a policy that differs in the one thing and is
// accepted.
func TestPolicyRefusals(t *testing.T) {
	no := false
	accessed := func(types ...string) *model.Policy { return access("t", types...) }
	item := func(change func(*model.Item)) *model.Policy {
		return changed(accessed("select"), func(p *model.Policy) { change(p.PolicyItems[0]) })
	}
	for _, c := range []struct {
		name        string
		bad, good   *model.Policy
		kind        admin.Kind
		code        int
		about, says string
	}{
		{"unknown service", changed(accessed("select"), func(p *model.Policy) { p.Service = "nosuch" }), accessed("select"), admin.NotFound, 3007, "nosuch", "no service found with name[nosuch]"},
		{"no service", changed(accessed("select"), func(p *model.Policy) { p.Service = "" }), accessed("select"), admin.Invalid, 3002, "", "missing field[service name]"},
		{"no name", changed(accessed("select"), func(p *model.Policy) { p.Name = " " }), accessed("select"), admin.Invalid, 3002, "", "missing field[name]"},
		{"a name of two lines", changed(accessed("select"), func(p *model.Policy) { p.Name = "a\nb" }), changed(accessed("select"), func(p *model.Policy) { p.Name = "a b, Grüße 政策" }), admin.Invalid, 0, "", "no control characters"},
		{"a name with NUL", changed(accessed("select"), func(p *model.Policy) { p.Name = "a\x00" }), accessed("select"), admin.Invalid, 0, "", "no control characters"},
		{"a name that turns", changed(accessed("select"), func(p *model.Policy) { p.Name = "a\u202eb" }), accessed("select"), admin.Invalid, 0, "", "direction"},
		{"a name that isolates", changed(accessed("select"), func(p *model.Policy) { p.Name = "\u2066ab" }), changed(accessed("select"), func(p *model.Policy) { p.Name = "سياسة" }), admin.Invalid, 0, "", "direction"},
		{"type of another service", changed(accessed("select"), func(p *model.Policy) { p.ServiceType = "polaris" }), changed(accessed("select"), func(p *model.Policy) { p.ServiceType = "HIVE" }), admin.Invalid, 4009, "", "Invalid service type [polaris]"},
		{"priority", changed(accessed("select"), func(p *model.Policy) { p.PolicyPriority = 2 }), changed(accessed("select"), func(p *model.Policy) { p.PolicyPriority = 1 }), admin.Invalid, 3030, "", "Invalid priority"},
		{"policy type", changed(accessed("select"), func(p *model.Policy) { p.PolicyType = 3 }), accessed("select"), admin.Invalid, 0, "", "invalid policy type"},
		{"unknown access", accessed("fly"), accessed("SELECT"), admin.Invalid, 3022, "", "access type=[fly], valid access types=[["},
		{"unknown user", item(func(i *model.Item) { i.Users = []string{"ghost"} }), item(func(i *model.Item) { i.Users = []string{"{OWNER}"} }), admin.UnknownPrincipal, 0, "ghost", "Operation denied. User name: ghost specified in policy does not exist in ranger admin."},
		{"unknown group", item(func(i *model.Item) { i.Groups = []string{"ghosts"} }), item(func(i *model.Item) { i.Groups = []string{"public"} }), admin.UnknownPrincipal, 0, "ghosts", "Operation denied. Group name: ghosts specified"},
		{"unknown role", item(func(i *model.Item) { i.Roles = []string{"ghost_role"} }), item(func(i *model.Item) { i.Roles = []string{"auditor"} }), admin.UnknownPrincipal, 0, "ghost_role", "Operation denied. Role name: ghost_role specified"},
		{"nobody", item(func(i *model.Item) { i.Users = nil }), item(func(i *model.Item) { i.Users, i.Roles = nil, []string{"auditor"} }), admin.Invalid, 3020, "", "All of users,  user-groups and roles"},
		{"an empty user", item(func(i *model.Item) { i.Users = []string{""} }), accessed("select"), admin.Invalid, 3053, "", "policy items user was null"},
		{"an empty group", item(func(i *model.Item) { i.Groups = []string{""} }), accessed("select"), admin.Invalid, 3054, "", "policy items group was null"},
		{"an empty role", item(func(i *model.Item) { i.Roles = []string{""} }), accessed("select"), admin.Invalid, 3055, "", "policy items role was null"},
		{"no access", accessed(), item(func(i *model.Item) { i.Accesses, i.DelegateAdmin = nil, true }), admin.Invalid, 3002, "", "policy item accesses"},
		{"an empty access", accessed(""), accessed("select"), admin.Invalid, 3002, "", "policy item access type"},
		{"access that is not allowed", item(func(i *model.Item) { i.Accesses[0].Allowed = &no }), accessed("select"), admin.Invalid, 3023, "", "deny access types"},
		{"null item", changed(accessed("select"), func(p *model.Policy) { p.PolicyItems = append(p.PolicyItems, nil) }), accessed("select"), admin.Invalid, 3019, "", "policy items object was null"},
		{"nothing and no audit", changed(accessed("select"), func(p *model.Policy) { p.PolicyItems, p.AuditEnabled = nil, &no }), changed(accessed("select"), func(p *model.Policy) { p.PolicyItems = nil }), admin.Invalid, 3008, "", "at least one policy item"},
		{"deny all else with denials", changed(accessed("select"), func(p *model.Policy) { p.DenyAllElse, p.DenyPolicyItems = true, p.PolicyItems }), changed(accessed("select"), func(p *model.Policy) { p.DenyAllElse = true }), admin.Invalid, 3049, "", "isDenyAllElse"},
		{"unknown element", changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("database", "db", "planet", "x") }), changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("Database", "db") }), admin.Invalid, 3011, "", "hive policy can specify values for one of the following resource sets: "},
		{"elements of two hierarchies", changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("database", "db", "table", "t", "udf", "f") }), changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("database", "db", "udf", "f") }), admin.Invalid, 3011, "", "[database, udf]"},
		{"unknown element in additional resources", changed(accessed("select"), func(p *model.Policy) {
			p.AdditionalResources = []map[string]model.Resource{resource("planet", "x")}
		}), changed(accessed("select"), func(p *model.Policy) {
			p.AdditionalResources = []map[string]model.Resource{resource("database", "x")}
		}), admin.Invalid, 3011, "", "resource sets"},
		{"missing element", changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("table", "t") }), changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("database", "db", "table", "t") }), admin.Invalid, 3012, "", "must specify values for one of"},
		{"column of a filter", changed(filter("t"), func(p *model.Policy) { p.Resources["column"] = model.Resource{Values: []string{"c"}} }), filter("t"), admin.Invalid, 3024, "", "can specify values for the following resources: [database, table]"},
		{"filter without table", changed(filter("t"), func(p *model.Policy) { delete(p.Resources, "table") }), filter("t"), admin.Invalid, 3025, "", "must specify values for the following resources: [database, table]"},
		{"two spellings of an element", changed(accessed("select"), func(p *model.Policy) { p.Resources = resource("database", "db", "Database", "x") }), accessed("select"), admin.Invalid, 3011, "", "resource sets"},
		{"no resource", changed(onPolaris(), func(p *model.Policy) { p.Resources = nil }), onPolaris(), admin.Invalid, 3026, "", "At least one resource"},
		{"an empty additional resource", changed(onPolaris(), func(p *model.Policy) { p.AdditionalResources = []map[string]model.Resource{{}} }), onPolaris(), admin.Invalid, 3026, "", "At least one resource"},
		{"no value", changed(accessed("select"), func(p *model.Policy) { p.Resources["table"] = model.Resource{} }), accessed("select"), admin.Invalid, 3026, "", "Resource list was empty"},
		{"a value twice", changed(accessed("select"), func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"b", "a", "b"}} }), changed(accessed("select"), func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"b", "a", "B"}} }), admin.Invalid, 3056, "", "duplicate value=b"},
		{"excludes of an element that has none", changed(onPolaris(), func(p *model.Policy) { p.Resources["catalog"] = model.Resource{Values: []string{"c"}, Excludes: true} }), changed(accessed("select"), func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"t"}, Excludes: true} }), admin.Invalid, 3015, "", "resource-name=[catalog]"},
		{"recursive element", changed(accessed("select"), func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"t"}, Recursive: true} }), changed(accessed("read"), func(p *model.Policy) {
			p.Resources = map[string]model.Resource{"url": {Values: []string{"s3://b"}, Recursive: true}}
		}), admin.Invalid, 3017, "", "resource-name=[table]"},
		{"filter on update", changed(filter("t"), func(p *model.Policy) { p.RowFilterPolicyItems[0].Accesses[0].Type = "update" }), filter("t"), admin.Invalid, 3022, "", "field[row filter policy item access type]"},
		{"mask on update", changed(mask("c", "MASK"), func(p *model.Policy) { p.DataMaskPolicyItems[0].Accesses[0].Type = "update" }), mask("c", "MASK"), admin.Invalid, 3022, "", "field[data masking policy item access type]"},
		{"unknown mask", mask("c", "MASK_BOGUS"), mask("c", "MASK_HASH"), admin.Invalid, 0, "mask c", "MASK_BOGUS: is not a valid datamask-type. policy='mask c' service='hive'"},
		{"no mask", mask("c", ""), mask("c", "CUSTOM"), admin.Invalid, 3019, "", "field[policy item datamask-type]"},
		{"mask item without a mask", changed(mask("c", "MASK"), func(p *model.Policy) { p.DataMaskPolicyItems[0].DataMaskInfo = nil }), mask("c", "MASK"), admin.Invalid, 3019, "", "datamask-type"},
		{"mask of a type without masks", changed(mask("c", "MASK"), func(p *model.Policy) {
			p.Service, p.Resources = "polaris", resource("root", "POLARIS")
			p.DataMaskPolicyItems[0].Accesses[0].Type = "catalog-list"
		}), onPolaris(), admin.Invalid, 3011, "", "resource sets:  does not have any resource hierarchies], field[service def resource hierarchies], subfield[incompatible], type[semantically incorrect] (1) Validation failure: error code[3022], reason[Invalid access type: access type=[catalog-list], valid access types=[[]]]"},
		{"tag policy without prefix", onTag("select"), onTag("hive:select"), admin.Invalid, 3022, "", "access type=[select]"},
		{"condition", changed(accessed("select"), func(p *model.Policy) { p.Conditions = []model.Condition{{Type: "nosuch"}} }), changed(accessed("select"), func(p *model.Policy) {
			p.Conditions = []model.Condition{{Type: "_expression", Values: []string{"true"}}}
		}), admin.Invalid, 0, "", "nosuch: is not a valid condition-type."},
		{"condition of an item", item(func(i *model.Item) { i.Conditions = []model.Condition{{Type: "expression"}} }), changed(onTag("hive:select"), func(p *model.Policy) { p.PolicyItems[0].Conditions = []model.Condition{{Type: "expression"}} }), admin.Invalid, 0, "", "expression: is not a valid condition-type."},
		{"empty schedule", schedule(model.Schedule{TimeZone: "UTC"}), schedule(model.Schedule{StartTime: "2026/01/01 00:00:00"}), admin.Invalid, 3029, "", "empty values"},
		{"date format", schedule(model.Schedule{StartTime: "2026-01-01 00:00:00"}), schedule(model.Schedule{EndTime: "2026/01/01 00:00:00"}), admin.Invalid, 3029, "", "field[startTime]"},
		{"end before start", schedule(model.Schedule{StartTime: "2026/01/02 00:00:00", EndTime: "2026/01/01 00:00:00"}), schedule(model.Schedule{StartTime: "2026/01/01 00:00:00", EndTime: "2026/01/02 00:00:00"}), admin.Invalid, 3029, "", "endTime is not later"},
		{"time zone", schedule(model.Schedule{StartTime: "2026/01/01 00:00:00", TimeZone: "Europe/Atlantis"}), schedule(model.Schedule{StartTime: "2026/01/01 00:00:00", TimeZone: "Europe/Berlin"}), admin.Invalid, 3029, "", "invalid timeZone"},
		{"recurrence without hour", recurring(func(r *model.Recurrence) { r.Schedule.Hour = "" }), recurring(func(*model.Recurrence) {}), admin.Invalid, 3029, "", "field[hour]"},
		{"recurrence without day", recurring(func(r *model.Recurrence) { r.Schedule.DayOfWeek = "" }), recurring(func(r *model.Recurrence) { r.Schedule.DayOfWeek, r.Schedule.DayOfMonth = "", "1,15" }), admin.Invalid, 3029, "", "empty dayOfMonth and dayOfWeek"},
		{"month 13", recurring(func(r *model.Recurrence) { r.Schedule.Month = "13" }), recurring(func(r *model.Recurrence) { r.Schedule.Month = "12" }), admin.Invalid, 3029, "", "field[month]"},
		{"range of minutes", recurring(func(r *model.Recurrence) { r.Schedule.Minute = "0-5" }), recurring(func(r *model.Recurrence) { r.Schedule.Minute = "0,30" }), admin.Invalid, 3029, "", "invalid character"},
		{"recurrence of no length", recurring(func(r *model.Recurrence) { r.Interval.Hours = 0 }), recurring(func(r *model.Recurrence) { r.Interval.Hours = 23 }), admin.Invalid, 3029, "", "invalid interval"},
		{"unknown zone", zoned(accessed("select"), "nosuch"), zoned(accessed("select"), "eu"), admin.NotFound, 3033, "nosuch", "Non-existent Zone name=nosuch"},
		{"service that is not in the zone", zoned(onPolaris(), "eu"), zoned(onTag("hive:select"), "eu"), admin.Invalid, 3048, "", "Service name = polaris is not associated to Zone name = eu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := seeded(t)
			must(t)(s.CreateZone(as("admin"), fixtureOf[model.Zone](t, "zone_create_request")))
			before := get(s.Services(t.Context()))(t)
			_, err := s.CreatePolicy(as("admin"), c.bad)
			refused(t, err, c.kind, c.code)
			if e, ok := err.(*admin.Error); ok && (!strings.Contains(e.Reason, c.says) || c.about != "" && e.Name != c.about) {
				t.Errorf("the refusal is about %q and says %q", e.Name, e.Reason)
			}
			for n, r := range get(s.Services(t.Context()))(t) {
				if r.PolicyVersion != before[n].PolicyVersion {
					t.Errorf("a refused policy moved the version of %s", r.Name)
				}
			}
			must(t)(s.CreatePolicy(as("admin"), c.good))
		})
	}
}

// The refusals of a Ranger Admin that were captured, in its own words.
func TestCapturedRefusals(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	var captured map[string]struct {
		Body json.RawMessage
	}
	if err := json.Unmarshal(fixture(t, "errors"), &captured); err != nil {
		t.Fatal(err)
	}
	says := func(name string) string {
		var b struct {
			Text string `json:"msgDesc"`
		}
		if err := json.Unmarshal(captured[name].Body, &b); err != nil || b.Text == "" {
			t.Fatalf("no capture %q: %v", name, err)
		}
		return b.Text
	}
	sales := changed(access("t", "select"), func(p *model.Policy) {
		p.Name, p.Resources = "select sales", resource("database", "sales", "table", "*", "column", "*")
	})
	first := get(s.CreatePolicy(ctx, sales))(t)
	create := func(p *model.Policy) error { _, err := s.CreatePolicy(ctx, p); return err }
	for name, err := range map[string]error{
		"policy: unknown service":         create(changed(access("t", "select"), func(p *model.Policy) { p.Service = "nosuch" })),
		"policy: same resource":           create(changed(access("t", "select"), func(p *model.Policy) { p.Resources = sales.Resources })),
		"policy: item without principals": create(changed(access("t", "select"), func(p *model.Policy) { p.PolicyItems[0].Users = nil })),
		"policy: delete missing id":       s.DeletePolicy(ctx, 999999),
		"role: delete missing":            s.DeleteRole(ctx, "nosuch"),
		"role: duplicate":                 func() error { _, err := s.CreateRole(ctx, &model.Role{Name: "auditor"}); return err }(),
		"role: unknown user": func() error {
			_, err := s.CreateRole(ctx, &model.Role{Name: "r", Users: []model.Member{{Name: "ghost"}}})
			return err
		}(),
		"role: get missing":        func() error { _, err := s.Role(ctx, "nosuch"); return err }(),
		"service: get missing":     func() error { _, err := s.Service(ctx, "nosuch"); return err }(),
		"policy: get missing name": func() error { _, err := s.PolicyNamed(ctx, "hive", "", "nosuch"); return err }(),
	} {
		e, ok := err.(*admin.Error)
		if !ok || e.Reason != says(name) {
			t.Errorf("%s: got %v, want %q", name, err, says(name))
		}
	}
	err := create(changed(access("t", "select"), func(p *model.Policy) { p.Name = sales.Name }))
	want := strings.Replace(says("policy: same name"), "policy-id=[12]", "policy-id=[1]", 1)
	if e, ok := err.(*admin.Error); !ok || first.ID != 1 || e.Reason != want {
		t.Errorf("same name: got %v, want %q", err, want)
	}
}

// What lets two policies on one resource exist beside each other, and what not.
func TestUniqueResources(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	no := false
	must(t)(s.CreateZone(ctx, fixtureOf[model.Zone](t, "zone_create_request")))
	must(t)(s.CreatePolicy(ctx, access("t", "select")))
	again := func(change func(*model.Policy)) *model.Policy {
		return changed(access("t", "select"), func(p *model.Policy) { p.Name = newGUID(); change(p) })
	}
	for name, p := range map[string]*model.Policy{
		"another type": changed(mask("*", "MASK"), func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"t"}} }),
		"override":     again(func(p *model.Policy) { p.PolicyPriority = 1 }),
		"schedule":     again(func(p *model.Policy) { p.ValiditySchedules = []model.Schedule{{StartTime: "2026/01/01 00:00:00"}} }),
		"condition": again(func(p *model.Policy) {
			p.Conditions = []model.Condition{{Type: "_expression", Values: []string{"true"}}}
		}),
		"disabled":         again(func(p *model.Policy) { p.Enabled = &no }),
		"disabled as well": again(func(p *model.Policy) { p.Enabled = &no }),
		"letter case":      again(func(p *model.Policy) { p.Resources["table"] = model.Resource{Values: []string{"T"}} }),
		"zone":             again(func(p *model.Policy) { p.ZoneName = "eu" }),
		"additional":       again(func(p *model.Policy) { p.AdditionalResources = []map[string]model.Resource{resource("database", "x")} }),
	} {
		if _, err := s.CreatePolicy(ctx, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.CreatePolicy(ctx, changed(must1(copyOf(p)), func(p *model.Policy) { p.Name = newGUID() })); !strings.HasPrefix(name, "disabled") {
			refused(t, err, admin.Exists, 3010)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.CreatePolicy(ctx, again(func(p *model.Policy) { p.Description = "equal" }))
	refused(t, err, admin.Exists, 3010)
	// Order and letter case of element names make no difference.
	_, err = s.CreatePolicy(ctx, again(func(p *model.Policy) {
		p.Resources = resource("TABLE", "t", "Column", "*", "database", "db")
	}))
	refused(t, err, admin.Exists, 3010)
	// A disabled one that is enabled would come beside the first.
	off := get(s.CreatePolicy(ctx, again(func(p *model.Policy) { p.Enabled = &no })))(t)
	off.Enabled = nil
	_, err = s.UpdatePolicy(ctx, off)
	refused(t, err, admin.Exists, 3010)
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
