package rangerclient

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// found are the findings of a kind, without those about the configuration.
func found(st *State, kind policy.FindingKind, tables ...*plan.Table) []string {
	if tables == nil {
		tables = []*plan.Table{}
	}
	var out []string
	for _, f := range st.Findings(tables) {
		if f.Kind == kind && (f.ID != 0 || kind != policy.Advice) {
			out = append(out, f.String())
		}
	}
	return out
}

// TestSilentPolicies: a policy, or an item of one, that never acts is reported, and
// one that acts is not. Each case stands beside its control: what must be silent.
func TestSilentPolicies(t *testing.T) {
	schedule := func(p *model.Policy, from, until string) *model.Policy {
		p.ValiditySchedules = []model.Schedule{{StartTime: from, EndTime: until}}
		return p
	}
	condition := func(p *model.Policy, item int) {
		p.DataMaskPolicyItems[item].Conditions = []model.Condition{{Type: "_expression", Values: []string{"true"}}}
	}
	deny := func(b *build, res string) {
		b.policy(&b.data, model.AccessPolicy, res).DenyPolicyItems = []*model.Item{item("ann", "select")}
	}
	const on = "database=s table=t column=a"
	hive := func(f func(b *build)) func(*build) { return f }
	trino := func(f func(b *build)) func(*build) { return func(b *build) { b.typ = "trino"; f(b) } }
	for name, x := range map[string]struct {
		make, control func(b *build)
		kind          policy.FindingKind
		want          string
	}{
		"wildcard without wildcards, alone": {
			hive(func(b *build) { b.mask("database=* table=t column=a", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=* schema=s table=t column=a", "ann: MASK") }), policy.Broken, `database "*" is taken literally`,
		},
		"wildcard without wildcards, inside a name": {
			hive(func(b *build) { b.mask("database=s table=t column=a|ph*", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=c schema=s table=t column=a|ph*", "ann: MASK") }), policy.Broken, `column "ph*" is taken literally`,
		},
		"an attribute in a pattern": {
			hive(func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: a LIKE ${{USER.region}}") }),
			hive(func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: a = ${{USER.region}}") }), policy.Advice, "into a pattern (LIKE, REGEXP)",
		},
		"the name of the user in a pattern": {
			hive(func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: a RLIKE current_user()") }),
			hive(func(b *build) { b.filter(&b.data, "database=s table=t", "", "ann: a = current_user()") }), policy.Advice, "into a pattern (LIKE, REGEXP)",
		},
		"question mark without wildcards, row filter": {
			hive(func(b *build) { b.filter(&b.data, "database=s table=?", "", "ann: 1 = 0") }),
			trino(func(b *build) { b.filter(&b.data, "catalog=c schema=s table=?", "", "ann: 1 = 0") }), policy.Broken, `table "?" is taken literally`,
		},
		"wildcard in a tag": {
			hive(func(b *build) { b.tagMask("P*", "ann: MASK") }),
			hive(func(b *build) { b.tagMask("PII", "ann: MASK") }), policy.Broken, `tag "P*" is taken literally`,
		},
		"wildcard in a tag that is denied": {
			hive(func(b *build) {
				b.policy(&b.tags, model.AccessPolicy, "tag=P*").DenyPolicyItems = []*model.Item{item("ann", "hive:select")}
			}),
			hive(func(b *build) {
				b.policy(&b.tags, model.AccessPolicy, "tag=PII").DenyPolicyItems = []*model.Item{item("ann", "hive:select")}
			}), policy.Broken, `tag "P*" is taken literally`,
		},
		"no such table": {
			hive(func(b *build) { b.mask("database=s table=t|u column=a", "ann: MASK") }),
			hive(func(b *build) { b.mask("database=S|c.s table=T column=A", "ann: MASK") }), policy.Silent, "names table s.u, which no catalog has",
		},
		"no such catalog": {
			hive(func(b *build) { b.filter(&b.data, "database=d.s table=t", "", "ann: 1 = 0") }),
			hive(func(b *build) { b.filter(&b.data, "database=c.s table=t", "", "ann: 1 = 0") }), policy.Silent, "names table d.s.t, which no catalog has",
		},
		"no such column": {
			hive(func(b *build) { b.mask("database=s table=t column=a|z", "ann: MASK") }),
			hive(func(b *build) { b.mask("database=s table=t column=a|former", "ann: MASK") }), policy.Silent, "names column z, which table c.s.t never had",
		},
		"no table matches": {
			trino(func(b *build) { b.mask("catalog=* schema=s table=x* column=*", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=* schema=s table=t* column=*", "ann: MASK") }), policy.Silent, "names tables *.s.x*, and no catalog has such a table",
		},
		"no schema matches": {
			trino(func(b *build) { b.filter(&b.data, "catalog=c schema=x?|s table=t", "", "ann: 1 = 0") }),
			trino(func(b *build) { b.filter(&b.data, "catalog=c schema=?|*s table=t", "", "ann: 1 = 0") }), policy.Silent, "names tables c.x?.t, and no catalog has such a table",
		},
		"no column matches": {
			trino(func(b *build) { b.mask("catalog=c schema=* table=* column=a|ph*", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=c schema=* table=* column=A|f?rm*", "ann: MASK") }), policy.Silent, "names column ph*, which no table that it names ever had",
		},
		"no column of any of several tables": {
			trino(func(b *build) { b.mask("catalog=c schema=* table=* column=z", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=c schema=* table=* column=only_in_v", "ann: MASK") }), policy.Silent, "names column z, which no table that it names ever had",
		},
		"all but every table": {
			trino(func(b *build) { b.mask("catalog=c schema=s table=!* column=a", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=c schema=s table=!x* column=a", "ann: MASK") }), policy.Silent, "no catalog has such a table",
		},
		"a name that differs for each user": {
			trino(func(b *build) { b.mask("catalog=c schema={USER} table=x column=a", "ann: MASK") }),
			trino(func(b *build) { b.mask("catalog=c schema={USER} table=t column={USER}", "ann: MASK") }), policy.Silent, "names tables c.{USER}.x",
		},
		"denied column that is not": {
			hive(func(b *build) { deny(b, "database=s table=* column=z*") }),
			hive(func(b *build) { deny(b, "database=s table=* column=a*"); deny(b, "database=s udf=f") }), policy.Silent, "names column z*",
		},
		"another access": {
			hive(func(b *build) {
				b.mask(on, "ann: MASK", "bob: MASK").DataMaskPolicyItems[1].Accesses[0].Type = "update"
			}),
			hive(func(b *build) {
				b.mask(on, "ann: MASK", "bob: MASK").DataMaskPolicyItems[1].Accesses[0].Type = "all"
			}), policy.Silent, "item 2 is not for select",
		},
		"an access that is not allowed": {
			hive(func(b *build) {
				no := false
				b.mask(on, "ann: MASK").DataMaskPolicyItems[0].Accesses[0].Allowed = &no
			}),
			hive(func(b *build) { b.mask(on, "ann: MASK") }), policy.Silent, "item 1 is not for select",
		},
		"misspelt access": {
			hive(func(b *build) { b.mask(on, "ann: MASK").DataMaskPolicyItems[0].Accesses[0].Type = "selct" }),
			hive(func(b *build) { b.mask(on, "ann: MASK") }), policy.Broken, `no access type "selct"`,
		},
		"access in capital letters": {
			hive(func(b *build) { b.mask(on, "ann: MASK").DataMaskPolicyItems[0].Accesses[0].Type = "SELECT" }),
			hive(func(b *build) { b.mask(on, "ann: MASK") }), policy.Advice, `writes the access type "SELECT" with capital letters`,
		},
		"access of another kind of service, by tag": {
			hive(func(b *build) { b.tagMask("PII", "ann: MASK").DataMaskPolicyItems[0].Accesses[0].Type = "hive:update" }),
			hive(func(b *build) {
				p := b.tagMask("PII", "ann: MASK", "ann: MASK")
				p.DataMaskPolicyItems[0].Accesses[0].Type = "trino:select"
			}), policy.Silent, "item 1 is not for select",
		},
		"behind everybody": {
			hive(func(b *build) { b.mask(on, "public: MASK_NONE", "ann: MASK") }),
			hive(func(b *build) { b.mask(on, "ann: MASK", "public: MASK_NONE") }), policy.Advice, "item 2 never acts, because item 1 before it is for everybody",
		},
		"behind the same user": {
			hive(func(b *build) { b.mask(on, "ann bob: MASK_NONE", "group g: MASK", "bob: MASK") }),
			hive(func(b *build) { b.mask(on, "ann bob: MASK_NONE", "group g: MASK", "bob cem: MASK") }), policy.Advice, "item 3 never acts, because item 1",
		},
		"behind several items": {
			hive(func(b *build) {
				b.filter(&b.data, "database=s table=t", "", "ann: a = 1", "group g: a = 2", "ann group g: a = 3")
			}),
			hive(func(b *build) {
				b.filter(&b.data, "database=s table=t", "", "ann: a = 1", "group g: a = 2", "group ann: a = 3")
			}), policy.Advice, "item 3 never acts",
		},
		"behind a condition": {
			hive(func(b *build) { condition(b.mask(on, "ann: MASK", "ann: MASK_NULL"), 1) }),
			hive(func(b *build) { condition(b.mask(on, "ann: MASK", "ann: MASK_NULL"), 0) }), policy.Advice, "item 2 never acts",
		},
		"behind an exempted role": { // which a session may lay down
			hive(func(b *build) { b.mask(on, "role r: MASK_NONE", "role r: MASK_NONE") }),
			hive(func(b *build) { b.mask(on, "role r: MASK_NONE", "role r: MASK") }), policy.Advice, "item 2 never acts",
		},
		"for nobody": {
			hive(func(b *build) { b.mask(on, ": MASK") }),
			hive(func(b *build) { b.mask(on, "ann: MASK") }), policy.Silent, "item 1 names nobody",
		},
		"expired": {
			hive(func(b *build) { schedule(b.mask(on, "ann: MASK"), "2026/01/01 00:00:00", "2026/06/15 09:59:59") }),
			hive(func(b *build) { schedule(b.mask(on, "ann: MASK"), "2026/01/01 00:00:00", "2026/06/15 10:00:01") }), policy.Advice, "was valid until 2026-06-15 09:59:59 UTC",
		},
		"expired tag policy, of two spans": {
			hive(func(b *build) {
				p := schedule(b.tagMask("PII", "ann: MASK"), "", "2026/06/15 09:59:59")
				p.ValiditySchedules = append(p.ValiditySchedules, model.Schedule{EndTime: "2026/01/01 00:00:00"})
			}),
			hive(func(b *build) {
				p := schedule(b.tagMask("PII", "ann: MASK"), "", "2026/06/15 09:59:59")
				p.ValiditySchedules = append(p.ValiditySchedules, model.Schedule{StartTime: "2027/01/01 00:00:00"})
			}), policy.Advice, "was valid until 2026-06-15 09:59:59 UTC",
		},
		"never valid": {
			hive(func(b *build) { schedule(b.mask(on, "ann: MASK"), "2027/01/01 00:00:00", "2026/12/31 00:00:00") }),
			hive(func(b *build) { schedule(b.mask(on, "ann: MASK"), "2026/12/31 00:00:00", "2027/01/01 00:00:00") }), policy.Silent, "ends before it begins",
		},
		"a tag that nothing carries": {
			hive(func(b *build) { b.tagMask("SECRET", "ann: MASK") }),
			hive(func(b *build) { b.tagMask("PII", "ann: MASK"); b.tagMask("SERVED", "ann: MASK") }), policy.Advice, "is for the tag SECRET, which no table and no resource",
		},
		"a tag in another case": {
			hive(func(b *build) { b.tagMask("pii", "ann: MASK") }),
			hive(func(b *build) { b.tagMask("PII", "ann: MASK") }), policy.Advice, "there is a tag PII",
		},
		"people whom nobody knows": {
			hive(func(b *build) { b.mask(on, "ann zoe group G role x: MASK") }),
			hive(func(b *build) { b.mask(on, "ann bob group g role r: MASK", "{USER} public: MASK_NULL") }), policy.Advice, "names group G, role x, user zoe, whom the policy server does not know",
		},
	} {
		t.Run(name, func(t *testing.T) {
			look := func(make func(*build)) []string {
				b := newBuild(t)
				make(b)
				b.roles = []*model.Role{{Name: "r"}}
				b.users = &model.UserStore{UserAttrMapping: map[string]map[string]string{"ann": nil, "bob": nil, "cem": nil}, UserGroupMapping: map[string][]string{"ann": {"g", "ann"}}}
				one, other := table("c.s.t", "id", "a", "email"), table("c.s.v", "id", "a", "only_in_v")
				one.Formerly[2] = []string{"former"}
				one.Tags = map[int][]plan.Tag{2: {{Name: "PII"}}}
				res := on
				if b.typ == "trino" {
					res = "catalog=c schema=s table=t column=a"
				}
				return found(b.serverTags(Options{}, map[string]string{res: "SERVED"}), x.kind, one, other)
			}
			if got := look(x.make); len(got) != 1 || !strings.Contains(got[0], x.want) || !strings.HasPrefix(got[0], `policy "p001" (id 1) `) {
				t.Errorf("found %q, want %q", got, x.want)
			}
			if got := look(x.control); len(got) > 0 {
				t.Errorf("the control is not silent: %q", got)
			}
		})
	}
}

// TestFindingsFollowOptions: a name that the configuration does not let a policy
// use stands for nothing.
func TestFindingsFollowOptions(t *testing.T) {
	tab := table("c.a.s.t", "id")
	for _, x := range []struct {
		o     Options
		res   string
		found int
	}{
		{Options{}, "database=a.s|c.a.s table=t column=id", 0},
		{Options{}, "database=s table=t column=id", 1},
		{Options{DatabaseKey: KeyOriginal}, "database=s|a.s table=t column=id", 0},
		{Options{DatabaseKey: KeyNamespace}, "database=c.a.s table=t column=id", 1},
		{Options{DatabaseKey: KeyCatalogNamespace}, "database=a.s table=t column=id", 1},
	} {
		b := newBuild(t)
		b.mask(x.res, "ann: MASK")
		if got := found(b.state(x.o), policy.Silent, tab); len(got) != x.found {
			t.Errorf("%+v, %s: %q", x.o, x.res, got)
		}
	}
	b := newBuild(t)
	b.policy(&b.data, model.AccessPolicy, "database=s table=t column=z").DenyPolicyItems = []*model.Item{item("ann", "select")}
	if got := found(b.state(Options{ColumnAccess: ColumnAccessIgnored}), policy.Silent, tab); len(got) != 0 {
		t.Errorf("a denial that is ignored anyway: %q", got)
	}
	if got := found(b.state(Options{}), policy.Silent, tab); len(got) != 1 {
		t.Errorf("a denial: %q", got)
	}
}

// TestPoliciesOfAnotherZone: in a security zone only its own policies act.
func TestPoliciesOfAnotherZone(t *testing.T) {
	inside, outside := table("c.s.in", "a"), table("c.s.out", "a")
	for _, x := range []struct {
		zone, res, zoned string // the policy, and what the zone holds
		want             string
	}{
		{"", "database=s table=in column=a", "in", "is in no security zone, and table c.s.in is in zone"},
		{"", "database=s table=in column=a", "other", ""},
		{"", "database=s table=out column=a", "in", ""},
		{"", "database=s table=in|out column=a", "in", "table c.s.in is in zone"},
		{"z", "database=s table=out column=a", "in", "is in the security zone \"z\", and table c.s.out is not"},
		{"z", "database=s table=in column=a", "in", ""},
		{"z", "database=s table=in|out column=a", "*", ""},
	} {
		b := newBuild(t)
		p := b.mask(x.res, "ann: MASK")
		st := b.state(Options{})
		zone := &model.ZonePolicies{ZoneName: "z", Resources: []map[string][]string{{"database": {"s"}, "table": {x.zoned}}}}
		if x.zone != "" {
			zone.Policies, st.docs.tables.Policies = []*model.Policy{p}, nil
		}
		st.docs.tables.SecurityZones = map[string]*model.ZonePolicies{"z": zone}
		st = newState("test", st.options, st.docs, st.now)
		got := found(st, policy.Silent, inside, outside)
		if x.want == "" && len(got) > 0 || x.want != "" && (len(got) != 1 || !strings.Contains(got[0], x.want)) {
			t.Errorf("policy of zone %q on %s, zone on %s: %q", x.zone, x.res, x.zoned, got)
		}
		// What is reported does not act, and what is not does.
		acts := len(masksOf(t, st, identity.Principal{Name: "ann"}, inside))+len(masksOf(t, st, identity.Principal{Name: "ann"}, outside)) > 0
		if both := strings.Contains(x.res, "|"); !both && acts != (x.want == "") {
			t.Errorf("policy of zone %q on %s, zone on %s: it acts: %v", x.zone, x.res, x.zoned, acts)
		}
	}
}

// TestManyStrangers: advice on a directory that is not there does not bury the rest.
func TestManyStrangers(t *testing.T) {
	b := newBuild(t)
	b.users = &model.UserStore{}
	for n := range 100 {
		b.mask("database=s table=t column=a", fmt.Sprintf("u%d: MASK", n))
	}
	n, more := 0, false
	for _, f := range b.state(Options{}).Findings(nil) {
		n += strings.Count(f.Text, "does not know")
		more = more || strings.HasPrefix(f.Text, "80 more policies")
	}
	if n != maxStrangers+1 || !more {
		t.Errorf("%d findings, the rest is counted: %v", n, more)
	}
}

// manyTables are the tables of a large installation, and policies on them: half by
// plain names, half with wildcards, some of which stand for nothing.
func manyTables(b testing.TB, typ string, policies, tables int) (*State, []*plan.Table) {
	var list []*plan.Table
	for n := range tables {
		columns := make([]string, 50)
		for i := range columns {
			columns[i] = fmt.Sprintf("c%d", i)
		}
		list = append(list, table(fmt.Sprintf("c.db%d.t%d", n%10, n), columns...))
	}
	f := newBuild(b)
	f.typ = typ
	where := "database=db%d"
	if typ == "trino" {
		where = "catalog=c schema=db%d"
	}
	for n := range policies {
		res := fmt.Sprintf(where+" table=t%d column=c%d", n%10, n%tables, n%60)
		if typ == "trino" && n%2 == 0 {
			res = fmt.Sprintf("catalog=* schema=* table=*%d column=*%d*", n, n%100)
		}
		f.mask(res, "ann group g: MASK_NONE", fmt.Sprintf("user%d role r%d: MASK", n, n), "public: MASK_NULL")
	}
	f.users = &model.UserStore{UserAttrMapping: map[string]map[string]string{"ann": nil}}
	return f.state(Options{}), list
}

// TestFindingsAreFast: metrics and SHOW POLICIES look at everything. Ten times as many
// policies and tables take about ten times as long, and not a hundred times.
func TestFindingsAreFast(t *testing.T) {
	for _, typ := range []string{"hive", "trino"} {
		var got []string
		took := func(policies, tables int) time.Duration {
			st, all := manyTables(t, typ, policies, tables)
			start := time.Now()
			got = found(st, policy.Silent, all...)
			return time.Since(start)
		}
		// What else the machine does may slow down the one and not the other, but not always.
		for try := 1; ; try++ {
			few, many := took(1_000, 100), took(10_000, 1_000)
			t.Logf("%s: %s, and for ten times as many %s", typ, few, many)
			if many < 60*few {
				break
			}
			if try == 10 {
				t.Fatalf("%s: %s, and for ten times as many %s", typ, few, many)
			}
		}
		if len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "column c59,") }) {
			t.Errorf("%s: %d findings", typ, len(got))
		}
	}
}

func BenchmarkFindings(b *testing.B) {
	for _, typ := range []string{"hive", "trino"} {
		b.Run(typ+", 10000 policies, 1000 tables", func(b *testing.B) {
			st, tables := manyTables(b, typ, 10_000, 1_000)
			b.ReportAllocs()
			for b.Loop() {
				st.Findings(tables)
			}
		})
	}
}
