package rangerclient

import (
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

// TableTags implements policy.Tagger: the tags that the policy server gives to the
// table (field id 0) and its fields, under all their names.
func (s *State) TableTags(t *plan.Table) map[int][]string {
	if !s.tables.HasTags() {
		return nil
	}
	out := map[int][]string{}
	nobody := asker{Subject: &eval.Subject{}}
	add := func(id int, q *eval.Request) {
		s.tables.FindTags(q)
		for _, tag := range q.Tags {
			if tag.Match == eval.Self && !slices.Contains(out[id], tag.Type) {
				out[id] = append(out[id], tag.Type)
			}
		}
	}
	r := &restriction{State: s, table: t, out: &policy.Restrictions{}}
	add(0, s.tableRequest(nobody, t))
	r.eachField(func(f plan.Field, _ int, paths []string) {
		add(f.ID, s.tableRequest(nobody, t).With("column", false, paths...))
	})
	return out
}
