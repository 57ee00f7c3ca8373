package eval

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

var (
	oracle     = flag.String("oracle", "", "shell command that runs the Java program in testdata/oracle: compare with Ranger's own engine")
	oracleSets = flag.Int("oracle-sets", 400, "policy sets to compare with the oracle, fifty requests each")
	oracleSeed = flag.Uint64("oracle-seed", 1, "seed of the first policy set")
)

// refusedHere marks what this engine refuses because it cannot be decided.
const refusedHere = "refused"

// TestOracle compares this engine with Ranger's own on random policies and
// requests. Without -oracle it only checks that what the generator makes is
// evaluated without failing, and that it is worth comparing.
func TestOracle(t *testing.T) {
	var ask func(any) map[string]any
	sets := 40
	if *oracle != "" {
		ask = startOracle(t)
		sets = *oracleSets
	}
	allowed, masked, filtered, refused, n, different := 0, 0, 0, 0, 0, 0
	for seed := *oracleSeed; seed < *oracleSeed+uint64(sets); seed++ {
		g := &generator{rand.New(rand.NewPCG(seed, 7))}
		docs := g.documents(t)
		e := Compile(docs, Options{})
		if ask != nil {
			ask(map[string]any{"type": "hive", "policies": whole(t, docs.Policies), "tags": docs.Tags, "roles": docs.Roles, "users": docs.Users})
		}
		for range 50 {
			r := g.request()
			q := NewRequest(e.Subject(r.User, r.Groups, nil, nil, nil), r.Access, time.UnixMilli(r.Time))
			q.Owner = r.Owner
			for _, elem := range []string{"database", "table", "column"} {
				if v, ok := r.Elements[elem]; ok {
					q.With(elem, false, v)
				}
			}
			e.FindTags(q)
			mine := map[string]any{"allowed": e.Access(q).Allowed}
			doubt := q.doubt
			q.doubt = false
			m := e.evaluate(model.MaskPolicy, q, bothPhases)
			switch {
			case m.refuse != "":
				mine["mask"] = refusedHere
			case m.item != nil:
				mine["mask"] = m.item.mask.DataMaskType
			}
			f := e.evaluate(model.RowFilterPolicy, q, bothPhases)
			switch {
			case f.refuse != "":
				mine["filter"] = refusedHere
			case f.item != nil:
				mine["filter"] = *f.item.filter
			}
			n++
			if mine["allowed"] == true {
				allowed++
			}
			if m.item != nil {
				masked++
			}
			if f.item != nil {
				filtered++
			}
			if ask == nil {
				continue
			}
			theirs := ask(r)
			for _, k := range []string{"allowed", "mask", "filter"} {
				if fmt.Sprint(mine[k]) == fmt.Sprint(theirs[k]) {
					continue
				}
				if mine[k] == refusedHere || k == "allowed" && doubt {
					refused++ // the deviation "undecided-condition"
					if mine[k] == true {
						t.Errorf("seed %d: what cannot be decided is allowed here, and not there", seed)
					}
				} else {
					if different++; different <= 10 {
						text, _ := json.Marshal(r)
						t.Errorf("seed %d, %s: %s is %v here, %v there (policies %v %v %v)", seed, text, k, mine[k], theirs[k], theirs["apol"], theirs["mpol"], theirs["fpol"])
					}
				}
			}
		}
	}
	t.Logf("%d requests: %d allowed, %d masked, %d filtered, %d undecided here, %d different", n, allowed, masked, filtered, refused, different)
	if allowed*10 < n || allowed > n*9/10 || masked*20 < n || filtered*20 < n {
		t.Error("the generator makes nothing worth comparing")
	}
}

// whole gives policies their definitions as Ranger Admin serves them, with what
// only its engine needs.
func whole(t *testing.T, p *model.ServicePolicies) map[string]any {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for typ, at := range map[string]map[string]any{"hive": out, "tag": out["tagPolicies"].(map[string]any)} {
		if at["serviceDef"], err = servicedef.JSON(typ); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func startOracle(t *testing.T) func(any) map[string]any {
	t.Helper()
	cmd := exec.Command("sh", "-c", *oracle)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return func(x any) map[string]any {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(text, '\n')); err != nil {
			t.Fatal(err)
		}
		if _, set := x.(map[string]any); set {
			return nil
		}
		if !lines.Scan() {
			t.Fatal("the oracle went away")
		}
		var answer map[string]any
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// generator makes policies over few names, so that they meet.
type generator struct{ *rand.Rand }

type oracleRequest struct {
	Elements map[string]string `json:"elements"`
	User     string            `json:"user"`
	Groups   []string          `json:"groups"`
	Access   string            `json:"access"`
	Owner    string            `json:"owner,omitempty"`
	Time     int64             `json:"time"`
}

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

func (g *generator) some(list []string, least int) []string {
	var out []string
	for _, i := range g.Perm(len(list))[:min(len(list), least+g.IntN(2))] {
		out = append(out, list[i])
	}
	return out
}

func (g *generator) one(list ...string) string { return list[g.IntN(len(list))] }

var genBase = time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC) // a Monday

func (g *generator) request() oracleRequest {
	r := oracleRequest{
		Elements: map[string]string{"database": g.one("db1", "db2", "DB1", "zoned", "home_u1")}, User: g.one("u1", "u2", "u3", "u4"),
		Groups: []string{}, Access: g.one("select", "select", "select", "update", "create", "drop", "read"),
		Time: genBase.Add(time.Duration(g.IntN(14*24*60)) * time.Minute).UnixMilli(),
	}
	if g.maybe(85) {
		r.Elements["table"] = g.one("t1", "t2", "T1")
		if g.maybe(65) {
			r.Elements["column"] = g.one("c1", "c2", "C1")
		}
	}
	for _, x := range []string{"g1", "g2", "g3"} {
		if g.maybe(35) {
			r.Groups = append(r.Groups, x)
		}
	}
	if g.maybe(30) {
		r.Owner = g.one("u1", "u2")
	}
	return r
}

func (g *generator) item(prefix string, accesses ...string) *model.Item {
	i := &model.Item{}
	for _, a := range g.some(accesses, 1) {
		i.Accesses = append(i.Accesses, model.Access{Type: prefix + a})
	}
	if g.maybe(50) {
		i.Users = g.some([]string{"u1", "u2", "u3", "{USER}", "{OWNER}"}, 1)
		if i.Users[0] == "{USER}" && g.maybe(70) {
			i.Users[0] = "u1"
		}
	}
	if g.maybe(45) {
		i.Groups = g.some([]string{"g1", "g2", "g3", "public"}, 1)
	}
	if g.maybe(35) {
		i.Roles = g.some([]string{"r1", "r2", "r3"}, 1)
	}
	if len(i.Users)+len(i.Groups)+len(i.Roles) == 0 {
		i.Users = []string{"u2"}
	}
	if g.maybe(15) {
		i.Conditions = []model.Condition{{Type: map[bool]string{true: "_expression", false: "expression"}[prefix == ""], Values: []string{g.one(
			"USER.region == 'EU'", "IS_IN_GROUP('g1')", "IS_IN_ROLE('r1')", "USER.level > 2", "true", "false", "UGNAMES.includes('g2')",
			"HAS_TAG('A')", "RES.table == 't1'", "REQ.accessType == 'select'", "[[USER.sites]].includes('x')", "IS_IN_ANY_ROLE",
		)}}}
	}
	return i
}

func (g *generator) items(n int, prefix string, accesses ...string) []*model.Item {
	var out []*model.Item
	for range g.IntN(n + 1) {
		out = append(out, g.item(prefix, accesses...))
	}
	return out
}

func (g *generator) schedules() []model.Schedule {
	if !g.maybe(12) {
		return nil
	}
	s := model.Schedule{StartTime: "2026/06/18 12:00:00", TimeZone: g.one("UTC", "", "Europe/Berlin", "America/New_York")}
	switch g.IntN(4) {
	case 0:
		s.EndTime = "2026/06/25 00:00:00"
	case 1:
		s.StartTime, s.EndTime = "", "2026/06/22 23:59:59"
	case 2:
		s.StartTime = ""
		r := model.Recurrence{}
		r.Schedule.Minute, r.Schedule.Hour, r.Schedule.Month, r.Schedule.Year = g.one("0", "30", "15,45"), g.one("9", "8-10", "0", "22"), "*", g.one("*", "2026")
		r.Schedule.DayOfWeek = g.one("2-6", "1,7", "4")
		if g.maybe(25) {
			r.Schedule.DayOfWeek, r.Schedule.DayOfMonth = "", g.one("1", "15-20", "*")
		}
		r.Interval.Hours, r.Interval.Minutes = g.IntN(10), 30
		s.Recurrences = []model.Recurrence{r}
	}
	return []model.Schedule{s}
}

func (g *generator) resources(levels int, mask bool) map[string]model.Resource {
	out := map[string]model.Resource{}
	for n, elem := range []string{"database", "table", "column"}[:levels] {
		names := [][]string{{"db1", "db2", "DB1", "db*", "*", "d?1", "home_{USER}", "zoned"}, {"t1", "t2", "*", "t?", "T1"}, {"c1", "c2", "*", "c*", "C2"}}[n]
		if mask {
			names = [][]string{{"db1", "db2", "DB1", "zoned"}, {"t1", "t2", "T1"}, {"c1", "c2", "C2"}}[n]
		}
		out[elem] = model.Resource{Values: g.some(names, 1), Excludes: !mask && g.maybe(6)}
	}
	return out
}

func (g *generator) policy(id int64, kind int, tag bool) *model.Policy {
	p := &model.Policy{ID: id, Version: 1, Service: "s", Name: fmt.Sprintf("%s%d", g.one("a", "b", "c"), id), PolicyType: kind, ValiditySchedules: g.schedules()}
	if g.maybe(20) {
		p.PolicyPriority = 1
	}
	prefix := ""
	if tag {
		prefix = "hive:"
		p.Service = "tag"
		p.Resources = map[string]model.Resource{"tag": {Values: g.some([]string{"A", "B", "C"}, 1)}}
	}
	if g.maybe(8) {
		p.Conditions = []model.Condition{{Type: map[bool]string{true: "_expression", false: "expression"}[prefix == ""], Values: []string{g.one("USER.region == 'EU'", "IS_IN_GROUP('g1')", "true")}}}
	}
	switch kind {
	case model.AccessPolicy:
		if !tag {
			p.Resources = g.resources(1+g.IntN(3), false)
			if g.maybe(10) {
				p.AdditionalResources = []map[string]model.Resource{g.resources(len(p.Resources), false)}
			}
		}
		access := []string{"select", "update", "create", "drop", "all", "read"}
		p.PolicyItems = g.items(3, prefix, access...)
		if g.maybe(8) {
			p.DenyAllElse = true
		} else if g.maybe(45) {
			p.DenyPolicyItems = g.items(2, prefix, access...)
			p.DenyExceptions = g.items(1, prefix, access...)
		}
		if g.maybe(30) {
			p.AllowExceptions = g.items(1, prefix, access...)
		}
	case model.MaskPolicy:
		if !tag {
			p.Resources = g.resources(3, true)
		}
		for range 1 + g.IntN(3) {
			i := g.item(prefix, "select")
			i.DataMaskInfo = &model.DataMaskInfo{DataMaskType: prefix + g.one("MASK", "MASK_NULL", "MASK_NONE", "MASK_HASH", "MASK_SHOW_LAST_4")}
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, i)
		}
	case model.RowFilterPolicy:
		if !tag {
			p.Resources = g.resources(2, true)
		}
		for n := range 1 + g.IntN(3) {
			i := g.item(prefix, "select")
			text := fmt.Sprintf("f%d_%d", id, n)
			if g.maybe(15) {
				text = ""
			}
			i.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &text}
			if g.maybe(8) {
				i.RowFilterInfo.FilterExpr = nil
			}
			p.RowFilterPolicyItems = append(p.RowFilterPolicyItems, i)
		}
	}
	return p
}

func (g *generator) documents(t *testing.T) Documents {
	t.Helper()
	def := func(typ string) *model.ServiceDef {
		d, err := servicedef.Definition(typ)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := int64(1)
	sp := &model.ServicePolicies{ServiceName: "s", PolicyVersion: &one, ServiceDef: def("hive"), ServiceConfig: model.Strings{}}
	tp := &model.TagPolicies{ServiceName: "tag", PolicyVersion: &one, ServiceDef: def("tag")}
	id := int64(0)
	add := func(list *[]*model.Policy, n, kind int, tag bool) {
		for range n {
			id++
			*list = append(*list, g.policy(id, kind, tag))
		}
	}
	add(&sp.Policies, 2+g.IntN(5), model.AccessPolicy, false)
	add(&sp.Policies, 1+g.IntN(5), model.MaskPolicy, false)
	add(&sp.Policies, 1+g.IntN(5), model.RowFilterPolicy, false)
	add(&tp.Policies, g.IntN(3), model.AccessPolicy, true)
	add(&tp.Policies, g.IntN(4), model.MaskPolicy, true)
	add(&tp.Policies, g.IntN(3), model.RowFilterPolicy, true)
	sp.TagPolicies = tp
	if g.maybe(30) {
		z := &model.ZonePolicies{ZoneName: "z", Resources: []map[string][]string{{"database": {g.one("zoned", "zo*", "db2")}, "table": {"*"}}}, ContainsAssociatedTagService: g.maybe(50)}
		add(&z.Policies, 1+g.IntN(3), model.AccessPolicy, false)
		add(&z.Policies, g.IntN(3), model.MaskPolicy, false)
		add(&z.Policies, g.IntN(3), model.RowFilterPolicy, false)
		for _, p := range z.Policies {
			p.ZoneName = "z"
		}
		for _, p := range tp.Policies {
			if g.maybe(30) {
				p.ZoneName = "z"
			}
		}
		sp.SecurityZones = map[string]*model.ZonePolicies{"z": z}
	}
	if g.maybe(10) {
		sp.ServiceConfig["ranger.plugin.super.users"] = "u4"
	}
	tags := &model.ServiceTags{Op: "add_or_update", ServiceName: "s", TagVersion: &one, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	for n, typ := range []string{"A", "B", "C"} {
		tags.Tags[fmt.Sprint(n+1)] = model.Tag{ID: int64(n + 1), Type: typ, Attributes: model.Strings{"level": "3"}, ValidityPeriods: g.schedules()}
	}
	for n := range g.IntN(5) {
		r := model.ServiceResource{ID: int64(n + 1), ResourceElements: map[string]model.Resource{"database": {Values: []string{g.one("db1", "db2", "zoned")}}}}
		if g.maybe(75) {
			r.ResourceElements["table"] = model.Resource{Values: []string{g.one("t1", "t2")}}
			if g.maybe(60) {
				r.ResourceElements["column"] = model.Resource{Values: []string{g.one("c1", "c2")}}
			}
		}
		tags.ServiceResources = append(tags.ServiceResources, r)
		tags.ResourceToTagIDs[fmt.Sprint(n+1)] = []int64{int64(1 + g.IntN(3))}
	}
	member := func(names ...string) []model.Member {
		var out []model.Member
		for _, n := range names {
			out = append(out, model.Member{Name: n})
		}
		return out
	}
	return Documents{
		Policies: sp, Tags: tags,
		Roles: &model.Roles{ServiceName: "s", RoleVersion: &one, RangerRoles: []*model.Role{
			{ID: 1, Name: "r1", Users: member("u1"), Roles: member("r3")}, {ID: 2, Name: "r2", Groups: member(g.one("g1", "g2", "public")), Roles: member("r1")}, {ID: 3, Name: "r3", Users: member(g.one("u2", "u3"))},
		}},
		Users: &model.UserStore{Version: &one, GroupAttrMapping: map[string]map[string]string{"g1": {"dept": "x"}}, UserAttrMapping: map[string]map[string]string{"u1": {"region": "EU", "level": "3", "sites": "x,y"}, "u2": {"region": "US", "level": "1", "sites": "y"}}},
	}
}
