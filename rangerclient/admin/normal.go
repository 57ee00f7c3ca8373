package admin

import (
	"encoding/json"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// clone is a deep copy.
func clone(p *model.Policy) *model.Policy {
	if p == nil {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("admin: a policy that was read cannot be written: " + err.Error()) // it came from JSON
	}
	out := &model.Policy{}
	if err := json.Unmarshal(b, out); err != nil {
		panic("admin: a policy that was written cannot be read: " + err.Error())
	}
	return out
}

// normal is a copy in the one form in which two policies that say the same are
// equal: without what a server fills in (ids, versions, times, the signature),
// with its defaults filled in, names of accesses in lower case as a Ranger Admin
// stores them, and sorted wherever order means nothing.
func normal(p *model.Policy) *model.Policy {
	if p == nil {
		return nil
	}
	out := clone(p)
	out.ID, out.GUID, out.Version, out.ServiceType, out.ResourceSignature = 0, "", 0, "", ""
	out.CreatedBy, out.UpdatedBy, out.CreateTime, out.UpdateTime = "", "", 0, 0
	out.Enabled, out.AuditEnabled = truth(p.Enabled), truth(p.AuditEnabled)
	delete(out.Options, stampOption)
	out.PolicyLabels = set(out.PolicyLabels)
	for k, r := range out.Resources {
		r.Values = set(r.Values)
		out.Resources[k] = r
	}
	for _, m := range out.AdditionalResources {
		for k, r := range m {
			r.Values = set(r.Values)
			m[k] = r
		}
	}
	for _, l := range lists {
		items := l.of(out)
		for n, i := range *items {
			(*items)[n] = normalItem(i)
		}
	}
	for n := range out.ValiditySchedules {
		if s := &out.ValiditySchedules[n]; strings.TrimSpace(s.TimeZone) == "" {
			s.TimeZone = "UTC"
		}
	}
	return clone(out) // empty lists become absent ones
}

func normalItem(i *model.Item) *model.Item {
	out := *i
	out.Users, out.Groups, out.Roles = set(i.Users), set(i.Groups), set(i.Roles)
	out.Accesses = normalAccesses(i.Accesses)
	return &out
}

func normalAccesses(list []model.Access) []model.Access {
	var out []model.Access
	for _, a := range list {
		a.Type, a.Allowed = strings.ToLower(a.Type), truth(a.Allowed)
		if !slices.ContainsFunc(out, func(b model.Access) bool { return b.Type == a.Type && *b.Allowed == *a.Allowed }) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b model.Access) int { return strings.Compare(text(a), text(b)) })
	return out
}

// truth is the value of a member that is true when it is absent.
func truth(b *bool) *bool {
	v := b == nil || *b
	return &v
}

// set is the list sorted and without duplicates.
func set(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// text is a value as JSON with sorted keys: equal texts are equal values.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("admin: " + err.Error()) // plain data
	}
	return string(b)
}

// same reports whether two policies say the same.
func same(a, b *model.Policy) bool {
	return (a == nil) == (b == nil) && (a == nil || text(normal(a)) == text(normal(b)))
}

// list is one of the lists of items of a policy.
type list struct {
	name string
	of   func(*model.Policy) *[]*model.Item
	// ordered lists act by first match: the order of items matters.
	ordered bool
}

var lists = []list{
	{"allow items", func(p *model.Policy) *[]*model.Item { return &p.PolicyItems }, false},
	{"deny items", func(p *model.Policy) *[]*model.Item { return &p.DenyPolicyItems }, false},
	{"allow exceptions", func(p *model.Policy) *[]*model.Item { return &p.AllowExceptions }, false},
	{"deny exceptions", func(p *model.Policy) *[]*model.Item { return &p.DenyExceptions }, false},
	{"masks", func(p *model.Policy) *[]*model.Item { return &p.DataMaskPolicyItems }, true},
	{"row filters", func(p *model.Policy) *[]*model.Item { return &p.RowFilterPolicyItems }, true},
}
