//go:build e2e

package plugin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// generator makes policies and requests over few names, so that they meet.
type generator struct {
	*rand.Rand
	typ string // of the service
	now time.Time
	// near: times are within hours of now, else within days.
	near bool
	// oneTag: the policy in the making is for one tag, and may look at it.
	oneTag bool
}

// request is one question to both engines.
type request struct {
	Elements map[string]string `json:"elements"`
	User     string            `json:"user"`
	Groups   []string          `json:"groups"`
	Access   string            `json:"access"`
	Owner    string            `json:"owner,omitempty"`
	IP       string            `json:"ip,omitempty"`
	Time     int64             `json:"time,omitempty"` // epoch milliseconds
	Ask      string            `json:"ask,omitempty"`
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 9))}
	g.typ = g.one("hive", "hive", "hive", "trino", "polaris")
	g.now = time.Date(2026, time.Month(1+g.IntN(12)), 1+g.IntN(28), g.IntN(24), g.IntN(60), 0, 0, time.UTC)
	if g.maybe(8) { // when clocks are put on or back
		g.now = []time.Time{
			time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC),
			time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC),
		}[g.IntN(4)]
		g.near = true
	}
	return g
}

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

// moment is at most so many hours before or after now.
func (g *generator) moment(hours int) time.Time {
	if g.near {
		hours = 9
	}
	return g.now.Add(time.Duration(g.IntN(2*hours*60)-hours*60) * time.Minute)
}

func (g *generator) one(list ...string) string { return list[g.IntN(len(list))] }

// some picks at least n of the list.
func (g *generator) some(n int, list ...string) []string {
	var out []string
	for _, i := range g.Perm(len(list))[:min(len(list), n+g.IntN(2))] {
		out = append(out, list[i])
	}
	return out
}

// level is one element of a hierarchy: the names that requests use, and the
// patterns that policies use beside them.
type level struct {
	name            string
	names, patterns []string
}

var (
	databases   = level{"database", []string{"db1", "DB1", "db1", "zoned", "home_u1", "größe", "GRÖßE"}, []string{"db*", "*", "d?1", "home_{USER}", "*1", "zo*", "*e*", "g?ÖSSE", "home_{OWNER}", "eu_${{USER.region}}"}}
	tables      = level{"table", []string{"t1", "T1", "t1", "数据", "Ωmega"}, []string{"*", "t?", "T*", "*1", "数*", "*mega", "?"}}
	columns     = level{"column", []string{"c1", "C1", "c1", "naïve", "NAÏVE"}, []string{"*", "c*", "C?", "n*e", "na?ve"}}
	hierarchies = map[string][][]level{
		"hive": {
			{databases, tables, columns},
			{databases, tables, columns},
			{databases, tables, columns},
			{databases, {"udf", []string{"f1", "F1", "f2"}, []string{"*", "f?"}}},
			{{"url", []string{"s3://a/b", "s3://a/b/c", "s3://a/B", "s3://b", "s3://a/bc/d"}, []string{"s3://a/*", "*", "s3://a", "s3://a/", "s3://?/b"}}},
			{{"global", []string{"g1", "G1"}, []string{"*", "g*"}}},
		},
		"trino": {
			{{"catalog", []string{"c1", "C1", "c2"}, []string{"*", "c?"}}, {"schema", databases.names, databases.patterns}, tables, columns},
			{{"catalog", []string{"c1", "C1", "c2"}, []string{"*", "c?"}}, {"schema", databases.names, databases.patterns}, tables, columns},
			{{"catalog", []string{"c1", "c2"}, []string{"*"}}, {"sessionproperty", []string{"p1", "P1"}, []string{"*", "p?"}}},
			{{"trinouser", []string{"u1", "u2"}, []string{"*", "{USER}"}}},
		},
		"polaris": {
			{{"root", []string{"POLARIS"}, []string{"*"}}, {"catalog", []string{"c1", "C1", "c2"}, []string{"*", "c?"}}, {"namespace", []string{"n1", "n1/n2", "N1", "zoned"}, []string{"*", "n1/*", "n?", "zo*"}}, {"table", []string{"t1", "n2/t1", "T1", "t2"}, []string{"*", "n2/*", "t?"}}},
			{{"root", []string{"POLARIS"}, []string{"*"}}, {"catalog", []string{"c1", "c2"}, []string{"*", "c?"}}, {"namespace", []string{"n1", "zoned"}, []string{"*"}}, {"policy", []string{"p1"}, []string{"*"}}},
			{{"root", []string{"POLARIS"}, []string{"*"}}, {"principal", []string{"p1", "P1"}, []string{"*", "p?"}}},
		},
	}
	accesses = map[string][]string{
		"hive":    {"select", "select", "select", "update", "create", "drop", "all", "read", "write"},
		"trino":   {"select", "select", "select", "insert", "create", "drop", "all", "use", "show"},
		"polaris": {"table-data-read", "table-data-write", "table-list", "table-properties-read", "catalog-list", "catalog-content-manage", "namespace-list", "table-metadata-full"},
	}
)

func (g *generator) hierarchy() []level {
	all := hierarchies[g.typ]
	return all[g.IntN(len(all))]
}

func (g *generator) request() request {
	h := g.hierarchy()
	if g.maybe(70) {
		h = hierarchies[g.typ][0]
	}
	r := request{
		Elements: map[string]string{}, User: g.one("u1", "u2", "u3", "ü4"), Groups: []string{}, Access: g.one(accesses[g.typ]...),
		Time: g.moment(7 * 24).UnixMilli(), IP: g.one("10.0.0.7", "10.0.1.7", "192.168.1.1", "110.0.0.7", "2001:db8:0:0:0:0:0:1", "2001:db80:0:0:0:0:0:1"),
	}
	depth := len(h)
	if g.maybe(25) {
		depth = 1 + g.IntN(depth)
	}
	for _, l := range h[:depth] {
		r.Elements[l.name] = g.one(l.names...)
	}
	for _, x := range []string{"g1", "g2", "gröup", "Grp"} {
		if g.maybe(35) {
			r.Groups = append(r.Groups, x)
		}
	}
	if g.maybe(30) {
		r.Owner = g.one("u1", "u2")
	}
	return r
}

// scripts are conditions that are decidable for every request that is made.
var scripts = []string{
	"USER.region == 'EU'", "USER.level > 2", "[[USER.sites]].includes('x')", "[[USER.sites,',']].intersects(['y','z'])", "USER._name == 'u1'",
	"HAS_USER_ATTR('dept') && USER.dept == 'x'", "HAS_UG_ATTR('dept')", "GET_USER_ATTR('region') == 'US'",
	"IS_IN_GROUP('g1')", "IS_IN_ROLE('r1')", "IS_IN_ANY_ROLE", "IS_NOT_IN_ANY_ROLE", "IS_IN_ANY_GROUP", "IS_NOT_IN_ANY_GROUP",
	"UGNAMES.includes('g2')", "URNAMES.includes('r2')", "GET_UG_NAMES() == 'g1,g2'", "UR_NAMES_CSV == 'r1,r3'", "GET_UG_NAMES('none','|') != 'g1|g2'", "UG_NAMES_Q_CSV == '\\'g1\\''",
	"GET_UG_ATTR('dept') == 'x'", "GET_UG_ATTR_Q('dept','-','/','<','>') == '<x>/<y>'", "USER_ATTR_NAMES_CSV.indexOf('dept') >= 0", "UG_ATTR_NAMES_CSV == 'dept'", "TAG_NAMES_CSV == 'A,B'",
	"GET_TAG_ATTR('level') == '3'", "GET_USER_ATTR('none') == ''", "HAS_TAG_ATTR('expiry_date')", "UGA.sVal['dept'] == 'x'", "(ctx.getResource() || '').length > 6",
	"HAS_TAG('A')", "HAS_ANY_TAG", "HAS_NO_TAG", "TAGNAMES.length > 1", "TAGNAMES.includes('B')",
	"REQ.accessType == 'select'", "REQ.clientIPAddress == '10.0.0.7'", "REQ.clientIPAddress.indexOf('10.0.') == 0", "ctx.getClientIPAddress() == '192.168.1.1'",
	"_ctx.request.clientIPAddress != '10.0.0.7'", "J(REQ.clientIPAddress) == '\"10.0.1.7\"'", "REQ.forwardedAddresses.length == 0", "REQ.user == 'u2'", "REQ.userGroups.length == 0",
	"true", "false", "ctx.isInGroup('g1')", "ctx.isInRole('r1')", "ctx.getUser() == 'u1'",
	"var x = 3; x > 2 && UGNAMES.length < 2", "IS_ACCESS_TIME_AFTER('2026/06/15 10:00:00')", "IS_ACCESS_TIME_BEFORE('2026/06/15 10:00:00', 'Europe/Berlin')",
	"IS_ACCESS_TIME_BETWEEN('2026/03/15 10:00:00', '2026/09/15 10:00:00')",
}

// tagScripts are for policies of tags.
var tagScripts = []string{
	"TAG._type == 'A'", "TAG.level > 2", "TAG.level == '3'", "ctx.getCurrentTagType() == 'B'", "ctx.getAttributeValue('A','level') == '3'",
	"RES.tag == 'A'", "ctx.isAccessedAfter('expiry_date')", "ctx.isAccessedBefore('expiry_date')", "ctx.getAttributeValue('level') == '3'",
}

func (g *generator) condition(tag bool) model.Condition {
	name, list := "_expression", scripts
	if tag {
		name = "expression"
		switch {
		case !g.oneTag:
		case g.maybe(15):
			return model.Condition{Type: "accessed-after-expiry", Values: []string{g.one("yes", "no", "NO", "")}}
		case g.maybe(40):
			list = tagScripts
		}
	}
	switch g.IntN(12) {
	case 0:
		if g.maybe(10) {
			return model.Condition{Type: "ip-range", Values: g.some(1, "*", "*.*.*", "*:*", "", "10.0.0.7")}
		}
		return model.Condition{Type: "ip-range", Values: g.some(1, "10.0.*", "10.0.0.7", "10.0.0.*.*", "192.168.*.*", "10.*", "2001:db8:*", "2001:db8:0:0:*:*", "2001:DB80:*", "2001:db8:0:0:0:0:0:1", "110.0.0.7")}
	case 1:
		return model.Condition{Type: "time-of-day", Values: g.some(1, "9am - 5pm", "10pm-2am", "11:30am - 12:15pm")}
	case 2:
		return model.Condition{Type: g.one("all-tags", "any-tag", "no-tag"), Values: g.some(1, "A", "B", "C")}
	}
	return model.Condition{Type: name, Values: []string{list[g.IntN(len(list))]}}
}

// item names principals and accesses of the service, with the prefix that they
// have in policies of tags.
func (g *generator) item(tag bool, access ...string) *model.Item {
	prefix := ""
	if tag {
		prefix = g.typ + ":"
	}
	i := &model.Item{}
	for _, a := range g.some(1, access...) {
		x := model.Access{Type: prefix + a}
		if g.maybe(4) {
			x.Allowed = new(bool)
		}
		i.Accesses = append(i.Accesses, x)
	}
	if tag && g.maybe(5) {
		i.Accesses[0].Type = "kafka:consume"
	}
	if g.maybe(50) {
		i.Users = g.some(1, "u1", "u2", "u3", "ü4", "{OWNER}")
		if g.maybe(10) {
			i.Users[0] = "{USER}"
		}
	}
	if g.maybe(45) {
		i.Groups = g.some(1, "g1", "g2", "gröup", "Grp")
		if g.maybe(20) {
			i.Groups[0] = "public"
		}
	}
	if g.maybe(35) {
		i.Roles = g.some(1, "r1", "r2", "r3", "rölle")
	}
	if len(i.Users)+len(i.Groups)+len(i.Roles) == 0 {
		i.Users = []string{"u2"}
	}
	for range 2 {
		if g.maybe(12) {
			i.Conditions = append(i.Conditions, g.condition(tag))
		}
	}
	return i
}

func (g *generator) items(n int, tag bool, access ...string) []*model.Item {
	var out []*model.Item
	for range g.IntN(n + 1) {
		out = append(out, g.item(tag, access...))
	}
	return out
}

const layout = "2006/01/02 15:04:05"

func (g *generator) schedules() []model.Schedule {
	if !g.maybe(12) {
		return nil
	}
	var out []model.Schedule
	for range 1 + g.IntN(2) {
		at := g.moment(4 * 24)
		s := model.Schedule{StartTime: at.Format(layout), TimeZone: g.one("UTC", "", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "GMT+5", "GMT-03:30")}
		switch g.IntN(4) {
		case 0:
			s.EndTime = at.Add(time.Duration(1+g.IntN(100)) * time.Hour).Format(layout)
		case 1:
			s.StartTime, s.EndTime = "", at.Format(layout)
		case 2:
			s.StartTime = ""
			r := model.Recurrence{}
			r.Schedule.Minute, r.Schedule.Hour = g.one("0", "30", "15,45", "*"), g.one("9", "8-10", "0", "22", "*", "23,1")
			r.Schedule.Month, r.Schedule.Year = g.one("*", "*", "1-6", "2,4,6,8,10,12"), g.one("*", "2026", "2025-2027")
			r.Schedule.DayOfWeek = g.one("2-6", "1,7", "4", "*")
			if g.maybe(35) {
				r.Schedule.DayOfWeek, r.Schedule.DayOfMonth = "", g.one("1", "15-20", "*", "31", "28,29,30")
			} else if g.maybe(20) {
				r.Schedule.DayOfMonth = g.one("1", "15-20")
			}
			r.Interval.Days, r.Interval.Hours, r.Interval.Minutes = g.IntN(8)/5, g.IntN(10), g.IntN(60)
			s.Recurrences = []model.Recurrence{r}
		}
		out = append(out, s)
	}
	return out
}

// resources names the leading levels of a hierarchy.
func (g *generator) resources(h []level, wild, excludes bool) map[string]model.Resource {
	out := map[string]model.Resource{}
	for _, l := range h {
		names := l.names
		if wild {
			names = append(append(names[:len(names):len(names)], l.patterns...), l.patterns...)
		}
		r := model.Resource{Values: g.some(2, names...), Excludes: excludes && g.maybe(6)}
		if l.name == "url" {
			r.Recursive = g.maybe(50)
		}
		out[l.name] = r
	}
	return out
}

func (g *generator) policy(id int64, kind int, tag bool) *model.Policy {
	p := &model.Policy{ID: id, Version: 1, Service: "s", Name: fmt.Sprintf("%s%d", g.one("a", "b", "c", "Z", "ä"), id), PolicyType: kind, ValiditySchedules: g.schedules()}
	if g.maybe(20) {
		p.PolicyPriority = 1
	}
	if g.maybe(8) {
		p.AuditEnabled = new(bool)
	}
	if g.maybe(3) {
		p.Enabled = new(bool)
	}
	h := hierarchies[g.typ][0]
	if tag {
		p.Service = "tag"
		p.Resources = map[string]model.Resource{"tag": {Values: g.some(1, "A", "B", "C", "Pïi")}}
		g.oneTag = len(p.Resources["tag"].Values) == 1 // deviation "tag-order"
	}
	if g.maybe(8) {
		p.Conditions = []model.Condition{g.condition(tag)}
	}
	switch kind {
	case model.AccessPolicy:
		g.accessPolicy(p, tag)
	case model.MaskPolicy:
		if !tag {
			p.Resources = g.resources(h, g.typ == "trino", false)
		}
		g.masks(p, tag)
	case model.RowFilterPolicy:
		if !tag {
			p.Resources = g.resources(h[:len(h)-1], g.typ == "trino", false)
		}
		g.filters(p, tag)
	}
	return p
}

func (g *generator) accessPolicy(p *model.Policy, tag bool) {
	if !tag {
		h := g.hierarchy()
		if g.maybe(60) {
			h = hierarchies[g.typ][0]
		}
		h = h[:1+g.IntN(len(h))]
		p.Resources = g.resources(h, true, g.typ != "polaris")
		for range 2 {
			if g.maybe(8) {
				p.AdditionalResources = append(p.AdditionalResources, g.resources(h, true, g.typ != "polaris"))
			}
		}
	}
	access := accesses[g.typ]
	p.PolicyItems = g.items(3, tag, access...)
	if g.maybe(8) {
		p.DenyAllElse = true
	}
	if g.maybe(40) {
		p.DenyPolicyItems = g.items(2, tag, access...)
		p.DenyExceptions = g.items(1, tag, access...)
	}
	if g.maybe(30) {
		p.AllowExceptions = g.items(1, tag, access...)
	}
}

// expression is SQL text with macros that both engines insert alike: numbers, and
// texts inside quotes.
func (g *generator) expression(tag bool, id int64, n int) string {
	e := g.one("region = '${{USER.region}}'", "level < ${{USER.level}}", "u = '${{USER._name}}'", "g in (${{UG_NAMES_Q_CSV}})",
		"x = '${{GET_USER_ATTR('region')}}'", "ip = '${{REQ.clientIPAddress}}'", "a = '${{REQ.user}}' and b = 1")
	if tag && g.oneTag && g.maybe(50) {
		e = g.one("l = ${{TAG.level}}", "t = '${{TAG._type}}'")
	}
	return fmt.Sprintf("%s or policy = %d and item = %d", e, id, n)
}

func (g *generator) masks(p *model.Policy, tag bool) {
	prefix := ""
	if tag {
		prefix = g.typ + ":"
	}
	for n := range 1 + g.IntN(3) {
		i := g.item(tag, "select")
		i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: prefix + g.one("MASK", "MASK_NULL", "MASK_NONE", "MASK_HASH", "MASK_SHOW_LAST_4", "CUSTOM")}
		if strings.HasSuffix(i.DataMaskInfo.DataMaskType, "CUSTOM") {
			i.DataMaskInfo.ValueExpr = g.expression(tag, p.ID, n)
		}
		p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, i)
	}
}

func (g *generator) filters(p *model.Policy, tag bool) {
	for n := range 1 + g.IntN(3) {
		i := g.item(tag, "select")
		text := fmt.Sprintf("f%d_%d", p.ID, n)
		switch {
		case g.maybe(15):
			text = ""
		case g.maybe(30):
			text = g.expression(tag, p.ID, n)
		}
		i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &text}
		if g.maybe(8) {
			i.RowFilterInfo.FilterExpr = nil
		}
		p.RowFilterPolicyItems = append(p.RowFilterPolicyItems, i)
	}
}

// definition is a known definition, with conditions that the shipped ones do not
// declare.
func definition(typ string) (map[string]any, error) {
	text, err := servicedef.JSON(typ)
	if err != nil {
		return nil, err
	}
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	conditions, _ := d["policyConditions"].([]any)
	for n, c := range [][2]string{
		{"ip-range", "RangerIpMatcher"},
		{"time-of-day", "RangerTimeOfDayMatcher"},
		{"all-tags", "RangerTagsAllPresentConditionEvaluator"},
		{"any-tag", "RangerAnyOfExpectedTagsPresentConditionEvaluator"},
		{"no-tag", "RangerNoneOfExpectedTagsPresentConditionEvaluator"},
	} {
		conditions = append(conditions, map[string]any{"itemId": 50 + n, "name": c[0], "evaluator": "org.apache.ranger.plugin.conditionevaluator." + c[1]})
	}
	d["policyConditions"] = conditions
	return d, nil
}
