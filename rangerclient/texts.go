package rangerclient

import (
	"slices"
	"strings"
	"sync"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/eval"
	"sqe/rangerclient/model"
)

// bearer is a resource of a mask or row filter policy.
type bearer struct {
	policy    *eval.Policy
	databases []value // with the catalog of trino in front
	tables    []value
	columns   []value
}

// bearers are the resources of all mask and row filter policies by the tables that
// they name, made when somebody asks for texts.
type bearers struct {
	once    sync.Once
	byTable map[string][]*bearer // lower case
	others  []*bearer            // with wildcards
	byTag   map[string][]*eval.Policy
}

func (s *State) bearers() *bearers {
	b := &s.texts
	b.once.Do(func() {
		b.byTable, b.byTag = map[string][]*bearer{}, map[string][]*eval.Policy{}
		for _, kind := range []int{model.RowFilterPolicy, model.MaskPolicy} {
			s.tables.Resources(kind, func(p *eval.Policy, elements map[string]*eval.Names) {
				x := &bearer{policy: p, databases: s.places(elements), tables: values(elements["table"]), columns: values(elements["column"])}
				if slices.ContainsFunc(x.tables, func(v value) bool { return !v.literal }) {
					b.others = append(b.others, x)
					return
				}
				for _, v := range x.tables {
					key := strings.ToLower(v.text)
					if at := b.byTable[key]; len(at) == 0 || at[len(at)-1] != x {
						b.byTable[key] = append(at, x)
					}
				}
			})
		}
		s.tables.TagPolicies(func(p *eval.Policy, tags *eval.Names) {
			for _, v := range tags.Values {
				if !slices.Contains(b.byTag[v.Raw], p) {
					b.byTag[v.Raw] = append(b.byTag[v.Raw], p)
				}
			}
		})
	})
	return b
}

func matches(list []value, names ...string) bool {
	return slices.ContainsFunc(list, func(v value) bool { return slices.ContainsFunc(names, v.matches) })
}

// acting is a mask policy on columns of a table.
type acting struct {
	policy *eval.Policy
	fields []plan.Field
}

// Texts implements policy.Inspector. It gives the texts of policies on the table and
// its columns, also by earlier names, and on the tags that they carry.
func (s *State) Texts(t *plan.Table) []policy.PolicyText {
	var out []policy.PolicyText
	s.eachText(t, func(p *eval.Policy, x policy.PolicyText) {
		if strings.TrimSpace(x.SQL) == "" || strings.Contains(x.SQL, "${{") {
			return // nothing, or different for each principal
		}
		x.Service, x.Policy, x.ID = p.Service, p.Name, p.ID
		out = append(out, x)
	})
	return out
}

// eachText calls add with every text, also those that differ for each principal.
func (s *State) eachText(t *plan.Table, add func(p *eval.Policy, x policy.PolicyText)) {
	var masks []acting
	look := func(p *eval.Policy, columns func(f plan.Field) bool) {
		if p.Kind == model.RowFilterPolicy {
			for _, i := range p.Items() {
				add(p, policy.PolicyText{SQL: i.Filter()})
			}
			return
		}
		x := acting{policy: p}
		for _, f := range t.Fields {
			if columns(f) {
				x.fields = append(x.fields, f)
			}
		}
		if len(x.fields) > 0 {
			masks = append(masks, x)
		}
	}
	all := s.bearers()
	databases := s.databaseNames(t)
	for _, list := range [][]*bearer{all.byTable[strings.ToLower(t.Name.Name)], all.others} {
		for _, b := range list {
			if matches(b.tables, t.Name.Name) && matches(b.databases, databases...) {
				look(b.policy, func(f plan.Field) bool {
					return matches(b.columns, append([]string{f.Name}, t.Formerly[f.ID]...)...)
				})
			}
		}
	}
	if len(all.byTag) > 0 {
		s.taggedTexts(t, all.byTag, look)
	}
	for _, x := range masks {
		for _, i := range x.policy.Items() {
			kind, sql := i.Mask()
			if kind != eval.MaskCustom {
				continue
			}
			for _, f := range x.fields {
				add(x.policy, policy.PolicyText{SQL: sql, Column: f.Name, Masked: maskedBeside(i, f, masks)})
			}
		}
	}
}

// taggedTexts looks at the policies on the tags of the table and its columns.
func (s *State) taggedTexts(t *plan.Table, byTag map[string][]*eval.Policy, look func(p *eval.Policy, columns func(f plan.Field) bool)) {
	on := map[*eval.Policy]map[int]bool{}
	var order []*eval.Policy
	add := func(id int, tag string) {
		for _, p := range byTag[tag] {
			if on[p] == nil {
				on[p] = map[int]bool{}
				order = append(order, p)
			}
			on[p][id] = true
		}
	}
	for id, tags := range s.TableTags(t) {
		for _, tag := range tags {
			add(id, tag)
		}
	}
	for id, tags := range t.Tags {
		for _, tag := range tags {
			add(id, tag.Name)
		}
	}
	slices.SortFunc(order, func(a, b *eval.Policy) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range order {
		if p.Kind == model.RowFilterPolicy && !on[p][0] && s.options.FilterCombination == FiltersAsRanger {
			continue // tags on columns filter no rows
		}
		if p.Kind != model.AccessPolicy {
			look(p, func(f plan.Field) bool { return on[p][0] || on[p][f.ID] })
		}
	}
}

// maskedBeside lists the columns other than that of f that policies mask for
// somebody whom the item names.
func maskedBeside(item eval.Item, f plan.Field, masks []acting) []string {
	var out []string
	for _, x := range masks {
		for _, i := range x.policy.Items() {
			if kind, _ := i.Mask(); kind == eval.MaskNone || !item.Meets(i) {
				continue
			}
			for _, other := range x.fields {
				if other.ID != f.ID && !slices.Contains(out, other.Name) {
					out = append(out, other.Name)
				}
			}
		}
	}
	return out
}
