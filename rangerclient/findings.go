package rangerclient

import (
	"fmt"
	"slices"
	"strings"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// Findings implements policy.Inspector.
func (s *State) Findings(tables []*plan.Table) []policy.Finding {
	var out []policy.Finding
	engines := []*eval.Engine{s.tables}
	if s.objects != nil {
		engines = append(engines, s.objects)
	}
	for _, e := range engines {
		for _, p := range e.Broken() {
			f := policy.Finding{Kind: policy.Broken, Service: p.Service, Policy: p.Name, ID: p.Policy, Text: p.Text}
			if f.ID == 0 {
				f.Text = p.String()
			}
			out = append(out, f)
		}
	}
	seen := map[policy.Finding]bool{}
	say := func(kind policy.FindingKind, p *eval.Policy, format string, args ...any) {
		f := policy.Finding{Kind: kind, Text: fmt.Sprintf(format, args...)}
		if p != nil {
			f.Service, f.Policy, f.ID = p.Service, p.Name, p.ID
		}
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	for _, e := range engines {
		for _, r := range e.Inspect(selectAccess, s.now()) {
			kind := policy.Silent
			if r.Advice {
				kind = policy.Advice
			}
			say(kind, r.Policy, "%s", r.Text)
		}
	}
	s.findPatterns(say)
	if tables != nil {
		t := s.targets(tables)
		s.findTargets(t, say)
		s.findTagged(t, say)
		s.findTags(tables, say)
	}
	out = append(out, s.strangers()...)
	return append(out, s.advise()...)
}

// sayer takes one finding; a policy may be found to be the same twice.
type sayer func(kind policy.FindingKind, p *eval.Policy, format string, args ...any)

// findPatterns tells of texts in which a name or attribute of who asks is a pattern.
func (s *State) findPatterns(say sayer) {
	look := func(p *eval.Policy) {
		for _, i := range p.Items() {
			_, mask := i.Mask()
			if eval.InPattern(i.Filter()) || eval.InPattern(mask) {
				say(policy.Advice, p, "puts a name or attribute of the user into a pattern (LIKE, REGEXP); for whom it holds characters of patterns the table is refused, or the column withheld. Compare with =, LEFT(...) = or LOCATE(...) = 1 instead")
			}
		}
	}
	for _, kind := range []int{model.MaskPolicy, model.RowFilterPolicy} {
		s.tables.Resources(kind, func(p *eval.Policy, _ map[string]*eval.Names) { look(p) })
	}
	s.tables.TagPolicies(func(p *eval.Policy, _ *eval.Names) { look(p) })
}

// findTargets reports policies that name a table that is not there, or a column
// that no schema of the table ever had.
func (s *State) findTargets(t *targets, say sayer) {
	for _, kind := range []int{model.AccessPolicy, model.MaskPolicy, model.RowFilterPolicy} {
		s.tables.Resources(kind, func(p *eval.Policy, elements map[string]*eval.Names) {
			if !s.governsTables(kind, p, elements) {
				return
			}
			tell := func(format string, args ...any) { say(policy.Silent, p, format, args...) }
			t.look(s.places(elements), elements, tell, func(found []*plan.Table) {
				s.findZone(t, p, found, tell)
			})
		})
	}
}

// governsTables reports whether a resource of a policy of the kind is compared with tables.
func (s *State) governsTables(kind int, p *eval.Policy, elements map[string]*eval.Names) bool {
	switch {
	case kind == model.AccessPolicy && (!p.Denies() || s.options.ColumnAccess == ColumnAccessIgnored || elements["column"] == nil):
		return false // no gate
	case kind == model.AccessPolicy && elements["table"] == nil:
		return false // of columns of something else
	}
	return true
}

// findTagged reports tags of the policy server on what is not there.
func (s *State) findTagged(t *targets, say sayer) {
	s.tables.TaggedResources(func(tags []string, elements map[string]*eval.Names) {
		if !s.tagsTables(elements) {
			return
		}
		t.look(s.places(elements), elements, func(format string, args ...any) {
			say(policy.Silent, nil, "the tag %s of the policy server %s", strings.Join(tags, ", "), strings.Replace(fmt.Sprintf(format, args...), "names ", "is on ", 1))
		}, func([]*plan.Table) {})
	})
}

// tagsTables reports whether a tagged resource is of tables, and not of something else.
func (s *State) tagsTables(elements map[string]*eval.Names) bool {
	return s.tables.Type() == "trino" || elements["database"] != nil
}

// findZone reports a policy of another security zone than the tables that it names.
func (s *State) findZone(t *targets, p *eval.Policy, found []*plan.Table, tell func(format string, args ...any)) {
	if any, ofTables := s.tables.Zones(); !any || !ofTables {
		return
	}
	in := ""
	for _, x := range found {
		zone, ok := t.zones[x]
		if !ok {
			zone = s.tables.ZoneOf(s.tableRequest(asker{Subject: &eval.Subject{}}, x))
			t.zones[x] = zone
		}
		if in = zone; zone == p.Zone {
			return
		}
	}
	if p.Zone == "" {
		tell("is in no security zone, and table %s is in zone %q, where only policies of the zone act; it protects nothing there", found[0].Name, in)
		return
	}
	tell("is in the security zone %q, and table %s is not; it protects nothing there", p.Zone, found[0].Name)
}

// look tells which names of a resource stand for nothing, and gives the tables that
// the others stand for.
func (t *targets) look(databases []value, elements map[string]*eval.Names, say func(format string, args ...any), each func(found []*plan.Table)) {
	for _, db := range databases {
		for _, table := range values(elements["table"]) {
			found := t.tables(db, table)
			named := db.literal && table.literal
			if len(found) == 0 {
				switch text := strings.ReplaceAll(db.text+"."+table.text, "\x00", "."); {
				case db.all && table.all:
					// There are no tables at all.
				case named:
					say("names table %s, which no catalog has; it protects nothing", text)
				default:
					say("names tables %s, and no catalog has such a table; it protects nothing", text)
				}
				continue
			}
			each(found)
			if !namesColumns(elements) {
				continue
			}
			for _, c := range values(elements["column"]) {
				if !named {
					if !t.column(found, c) {
						say("names column %s, which no table that it names ever had; it protects nothing", c.text)
					}
					continue
				}
				for _, x := range found {
					if !t.column([]*plan.Table{x}, c) {
						say("names column %s, which table %s never had; it protects nothing", c.text, x.Name)
					}
				}
			}
		}
	}
}

// namesColumns reports whether a resource is of columns of certain names.
func namesColumns(elements map[string]*eval.Names) bool {
	c := elements["column"]
	return c != nil && !c.Any && !c.Excludes && !c.Dynamic()
}

// findTags advises on policies for tags that nothing carries.
func (s *State) findTags(tables []*plan.Table, say sayer) {
	carried := map[string]string{} // by the name in lower case
	exact := map[string]bool{}
	add := func(name string) {
		exact[name] = true
		carried[strings.ToLower(name)] = name
	}
	for _, t := range tables {
		for _, tags := range t.Tags {
			for _, tag := range tags {
				add(tag.Name)
			}
		}
	}
	for _, d := range []*model.ServiceTags{s.docs.tableTags, s.docs.objectTags} {
		if d == nil {
			continue
		}
		for _, ids := range d.ResourceToTagIDs {
			for _, id := range ids {
				add(d.Tags[fmt.Sprint(id)].Type)
			}
		}
	}
	find := func(p *eval.Policy, tags *eval.Names) {
		for _, v := range tags.Values {
			switch other := carried[strings.ToLower(v.Raw)]; {
			case v.Literal || v.Dynamic || v.Pattern || exact[v.Raw]:
			case other != "":
				say(policy.Advice, p, "is for the tag %s, which nothing carries; there is a tag %s, and tags are compared with their case", v.Raw, other)
			default:
				say(policy.Advice, p, "is for the tag %s, which no table and no resource of the policy server carries", v.Raw)
			}
		}
	}
	s.tables.TagPolicies(find)
	if s.objects != nil {
		s.objects.TagPolicies(find)
	}
}

// maxStrangers bounds the policies of which strangers are told one by one.
const maxStrangers = 20

// strangers advises on items for users, groups and roles that no document knows.
// An identity provider may know them.
func (s *State) strangers() []policy.Finding {
	d := s.docs
	known := map[string]map[string]bool{}
	if d.users != nil {
		users, groups := map[string]bool{"{USER}": true, "{OWNER}": true}, map[string]bool{"public": true}
		for u := range d.users.UserAttrMapping {
			users[u] = true
		}
		for u, list := range d.users.UserGroupMapping {
			users[u] = true
			for _, g := range list {
				groups[g] = true
			}
		}
		for g := range d.users.GroupAttrMapping {
			groups[g] = true
		}
		known["user"], known["group"] = users, groups
	}
	if d.roles != nil {
		roles := map[string]bool{}
		for _, r := range d.roles.RangerRoles {
			roles[r.Name] = true
		}
		known["role"] = roles
	}
	var out []policy.Finding
	more := 0
	look := func(service string, list []*model.Policy) {
		for _, p := range list {
			if !p.IsEnabled() {
				continue
			}
			var names []string
			note := func(kind string, list []string) {
				for _, n := range list {
					if k := known[kind]; k != nil && !k[n] && !strings.Contains(n, "${{") {
						names = append(names, kind+" "+n)
					}
				}
			}
			for _, items := range [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
				for _, i := range items {
					note("user", i.Users)
					note("group", i.Groups)
					note("role", i.Roles)
				}
			}
			if len(names) == 0 {
				continue
			}
			if len(out) == maxStrangers {
				more++
				continue
			}
			slices.Sort(names)
			names = slices.Compact(names)
			if len(names) > 5 {
				names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
			}
			out = append(out, policy.Finding{
				Kind: policy.Advice, Service: service, Policy: p.Name, ID: p.ID,
				Text: "names " + strings.Join(names, ", ") + ", whom the policy server does not know; names are compared with their case, and only a login could bring them",
			})
		}
	}
	service := func(p *model.ServicePolicies) {
		look(p.ServiceName, p.Policies)
		if p.TagPolicies != nil && p == d.tables {
			look(p.TagPolicies.ServiceName, p.TagPolicies.Policies)
		}
		zones := make([]string, 0, len(p.SecurityZones))
		for name := range p.SecurityZones {
			zones = append(zones, name)
		}
		slices.Sort(zones)
		for _, name := range zones {
			look(p.ServiceName, p.SecurityZones[name].Policies)
		}
	}
	service(d.tables)
	if d.objects != nil {
		service(d.objects)
	}
	if more > 0 {
		out = append(out, policy.Finding{Kind: policy.Advice, Text: fmt.Sprintf("%d more policies name users, groups or roles whom the policy server does not know", more)})
	}
	return out
}

var _ policy.Inspector = (*State)(nil)
