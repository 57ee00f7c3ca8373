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

// MaskActions lists the mask types that any policy of the source uses, sorted,
// without the prefix of a component.
func (s *State) MaskActions() []string {
	used := map[string]bool{}
	look := func(list []*model.Policy) {
		for _, p := range list {
			for _, i := range p.DataMaskPolicyItems {
				if i == nil || i.DataMaskInfo == nil {
					continue
				}
				name := i.DataMaskInfo.DataMaskType
				if at := strings.LastIndexByte(name, ':'); at >= 0 {
					name = name[at+1:]
				}
				used[name] = true
			}
		}
	}
	look(s.docs.tables.Policies)
	if t := s.docs.tables.TagPolicies; t != nil {
		look(t.Policies)
	}
	for _, z := range s.docs.tables.SecurityZones {
		look(z.Policies)
	}
	out := make([]string, 0, len(used))
	for name := range used {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Check reports data policies and tags of the policy server that protect nothing as
// the tables stand: they name a table that is not there, or a column that no schema
// of the table ever had.
// tables are all tables of all catalogs. A name with a wildcard is not checked.
func (s *State) Check(tables []*plan.Table) []string {
	// Tables by the lower-case names that a policy may use for them.
	byName := map[string][]*plan.Table{}
	for _, t := range tables {
		dotted := strings.Join(t.Name.Namespace, ".")
		for _, db := range []string{dotted, t.Name.Catalog + "." + dotted, t.Name.Catalog + "\x00" + dotted} {
			key := strings.ToLower(db + "\x00" + t.Name.Name)
			byName[key] = append(byName[key], t)
		}
	}
	var out []string
	seen := map[string]bool{}
	say := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	report := func(p *eval.Policy, format string, args ...any) {
		say("policy %q (id %d) %s", p.Name, p.ID, fmt.Sprintf(format, args...))
	}
	for _, kind := range []int{model.MaskPolicy, model.RowFilterPolicy} {
		s.tables.Elements(kind, func(p *eval.Policy, values map[string][]string) {
			databases := values["database"]
			if s.tables.Type() == "trino" {
				databases = pairs(values["catalog"], values["schema"])
			}
			for _, pair := range pairs(databases, values["table"]) {
				if strings.ContainsAny(pair, "*?{") {
					continue
				}
				found := byName[strings.ToLower(pair)]
				if len(found) == 0 {
					report(p, "names table %s, which no catalog has; it protects nothing", strings.ReplaceAll(pair, "\x00", "."))
				}
				for _, t := range found {
					columns := s.everBorne(t)
					for _, c := range values["column"] {
						if !strings.ContainsAny(c, "*?{") && !columns[strings.ToLower(c)] {
							report(p, "names column %s, which table %s never had; it protects nothing", c, t.Name)
						}
					}
				}
			}
		})
	}
	s.checkTags(byName, say)
	return out
}

// everBorne is every name that a column of the table bears or bore, lower case.
func (s *State) everBorne(t *plan.Table) map[string]bool {
	names := map[string]bool{}
	r := &restriction{State: s, table: t, out: &policy.Restrictions{}}
	r.eachField(func(_ plan.Field, _ int, paths []string) {
		for _, p := range paths {
			names[strings.ToLower(p)] = true
		}
	})
	return names
}

func pairs(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+"\x00"+y)
		}
	}
	return out
}

// Text is an SQL text of a policy.
type Text struct {
	Policy string
	ID     int64
	SQL    string
	// Column is set for the expression of a CUSTOM mask: what {col} stands for.
	Column string
	// Masked are the other columns that somebody for whom this mask is meant sees
	// masked; the expression may not name them.
	Masked []string
}

// Texts lists the SQL texts of policies that name the table, for a check that
// binds them. Texts with macros are left out: they differ for each principal.
func (s *State) Texts(t *plan.Table) []Text {
	dotted := strings.Join(t.Name.Namespace, ".")
	databases := []string{dotted, t.Name.Catalog + "." + dotted}
	names := func(r model.Resource, values ...string) bool {
		return slices.ContainsFunc(r.Values, func(v string) bool {
			return slices.ContainsFunc(values, func(x string) bool { return strings.EqualFold(v, x) })
		})
	}
	var policies []*model.Policy
	for _, p := range s.docs.tables.Policies {
		if p == nil || !names(p.Resources["table"], t.Name.Name) {
			continue
		}
		if s.tables.Type() == "trino" {
			if !names(p.Resources["catalog"], t.Name.Catalog) || !names(p.Resources["schema"], dotted) {
				continue
			}
		} else if !names(p.Resources["database"], databases...) {
			continue
		}
		policies = append(policies, p)
	}
	var out []Text
	add := func(x Text) {
		if strings.TrimSpace(x.SQL) != "" && !strings.Contains(x.SQL, "${{") {
			out = append(out, x)
		}
	}
	for _, p := range policies {
		for _, i := range p.RowFilterPolicyItems {
			if i != nil && i.RowFilterInfo != nil && i.RowFilterInfo.FilterExpr != nil {
				add(Text{Policy: p.Name, ID: p.ID, SQL: *i.RowFilterInfo.FilterExpr})
			}
		}
		for _, i := range p.DataMaskPolicyItems {
			if i == nil || i.DataMaskInfo == nil || i.DataMaskInfo.DataMaskType != eval.MaskCustom {
				continue
			}
			for _, c := range p.Resources["column"].Values {
				if f, ok := t.FieldNamed(c); ok {
					add(Text{Policy: p.Name, ID: p.ID, SQL: i.DataMaskInfo.ValueExpr, Column: f.Name, Masked: maskedFor(i, f.Name, policies)})
				}
			}
		}
	}
	return out
}

// maskedFor lists the columns other than column that policies mask for a user,
// group or role that the item names.
func maskedFor(item *model.Item, column string, policies []*model.Policy) []string {
	var out []string
	for _, p := range policies {
		for _, i := range p.DataMaskPolicyItems {
			if i == nil || i.DataMaskInfo == nil || i.DataMaskInfo.DataMaskType == eval.MaskNone || !meet(item, i) {
				continue
			}
			for _, c := range p.Resources["column"].Values {
				if !strings.EqualFold(c, column) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// meet reports whether two items name somebody together.
func meet(a, b *model.Item) bool {
	everybody := func(i *model.Item) bool {
		return slices.Contains(i.Groups, "public") || slices.Contains(i.Users, "{USER}")
	}
	common := func(x, y []string) bool {
		return slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) })
	}
	return everybody(a) || everybody(b) || common(a.Users, b.Users) || common(a.Groups, b.Groups) || common(a.Roles, b.Roles)
}

// checkTags reports tags of the policy server on what is not there.
func (s *State) checkTags(byName map[string][]*plan.Table, report func(format string, args ...any)) {
	t := s.docs.tableTags
	if t == nil {
		return
	}
	for i := range t.ServiceResources {
		r := &t.ServiceResources[i]
		ids := t.ResourceToTagIDs[fmt.Sprint(r.ID)]
		if len(ids) == 0 {
			continue
		}
		var names []string
		for _, id := range ids {
			names = append(names, t.Tags[fmt.Sprint(id)].Type)
		}
		slices.Sort(names)
		what := strings.Join(slices.Compact(names), ", ")
		databases := r.ResourceElements["database"].Values
		if s.tables.Type() == "trino" {
			databases = pairs(r.ResourceElements["catalog"].Values, r.ResourceElements["schema"].Values)
		}
		for _, pair := range pairs(databases, r.ResourceElements["table"].Values) {
			if strings.ContainsAny(pair, "*?{") {
				continue
			}
			found := byName[strings.ToLower(pair)]
			if len(found) == 0 {
				report("the tag %s of the policy server is on table %s, which no catalog has; it protects nothing", what, strings.ReplaceAll(pair, "\x00", "."))
			}
			for _, t := range found {
				columns := s.everBorne(t)
				for _, c := range r.ResourceElements["column"].Values {
					if !strings.ContainsAny(c, "*?{") && !columns[strings.ToLower(c)] {
						report("the tag %s of the policy server is on column %s, which table %s never had; it protects nothing", what, c, t.Name)
					}
				}
			}
		}
	}
}

// TableTags implements policy.Tagger: the tags that the policy server gives to the
// table (field id 0) and its fields, under all their names.
func (s *State) TableTags(t *plan.Table) map[int][]string {
	if !s.tables.HasTags() {
		return nil
	}
	out := map[int][]string{}
	subject := &eval.Subject{}
	add := func(id int, q *eval.Request) {
		s.tables.FindTags(q)
		for _, tag := range q.Tags {
			if tag.Match == eval.Self && !slices.Contains(out[id], tag.Type) {
				out[id] = append(out[id], tag.Type)
			}
		}
	}
	r := &restriction{State: s, table: t, out: &policy.Restrictions{}}
	add(0, s.tableRequest(subject, t))
	r.eachField(func(f plan.Field, _ int, paths []string) {
		add(f.ID, s.tableRequest(subject, t).With("column", false, paths...))
	})
	return out
}
