package admin

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sqe/policy"
	"sqe/rangerclient/model"
)

// MergeConflict says that two writers changed the same in different ways. It holds
// no text of a filter or a mask.
type MergeConflict struct {
	What []string // such as "masks: user alice" or "validity"
}

// Error implements error.
func (c *MergeConflict) Error() string {
	return "both changed " + strings.Join(c.What, ", ")
}

func (c *MergeConflict) add(what string) {
	if !slices.Contains(c.What, what) {
		c.What = append(c.What, what)
	}
}

// merge brings two edits of base together. It takes edits apart as far as the
// single statement "this principal gets this": two edits conflict only when both
// changed the same statement, the same setting of the policy, or the resources in
// ways that do not add up. What no edit touched stays, what one edit changed is as
// that edit left it; a merge that could not keep this promise is a conflict, so a
// deny or a mask is never lost in silence. Where both put items at the same place
// of a list that acts by first match, either order would be right, and the one
// with the exemptions behind is taken.
//
// The result is the same whichever edit is called theirs. It has the id of none.
func merge(base, theirs, ours *model.Policy) (*model.Policy, error) {
	b, t, o := normal(base), normal(theirs), normal(ours)
	c := &MergeConflict{}
	out := &model.Policy{
		Service:             setting(c, "service", b.Service, t.Service, o.Service),
		Name:                setting(c, "name", b.Name, t.Name, o.Name),
		Description:         setting(c, "description", b.Description, t.Description, o.Description),
		PolicyType:          setting(c, "type", b.PolicyType, t.PolicyType, o.PolicyType),
		PolicyPriority:      setting(c, "priority", b.PolicyPriority, t.PolicyPriority, o.PolicyPriority),
		Enabled:             setting(c, "enabled", b.Enabled, t.Enabled, o.Enabled),
		AuditEnabled:        setting(c, "audit", b.AuditEnabled, t.AuditEnabled, o.AuditEnabled),
		DenyAllElse:         setting(c, "deny all else", b.DenyAllElse, t.DenyAllElse, o.DenyAllElse),
		ZoneName:            setting(c, "zone", b.ZoneName, t.ZoneName, o.ZoneName),
		AdditionalResources: setting(c, "resources", b.AdditionalResources, t.AdditionalResources, o.AdditionalResources),
		Conditions:          setting(c, "conditions", b.Conditions, t.Conditions, o.Conditions),
		ValiditySchedules:   setting(c, "validity", b.ValiditySchedules, t.ValiditySchedules, o.ValiditySchedules),
		PolicyLabels:        members(b.PolicyLabels, t.PolicyLabels, o.PolicyLabels),
		Resources:           mergeResources(c, b.Resources, t.Resources, o.Resources),
		Options:             map[string]any{},
	}
	for _, k := range keys(b.Options, t.Options, o.Options) {
		if v := setting(c, "options", b.Options[k], t.Options[k], o.Options[k]); v != nil {
			out.Options[k] = v
		}
	}
	for _, l := range lists {
		m := itemMerge{conflict: c, list: l, base: *l.of(b)}
		*l.of(out) = m.merge(*l.of(t), *l.of(o))
	}
	if len(c.What) > 0 {
		slices.Sort(c.What)
		return nil, c
	}
	return normal(out), nil
}

// holds reports whether a policy still says all that an edit changed. now may say
// more, and may differ in the order of items.
func holds(base, edit, now *model.Policy) bool {
	b, e, n := normal(base), normal(edit), normal(now)
	for _, l := range lists {
		m := itemMerge{list: l}
		bw, ew, nw := m.whole(*l.of(b)), m.whole(*l.of(e)), m.whole(*l.of(n))
		for _, p := range keys(bw, ew) {
			for _, k := range keys(bw[p], ew[p]) {
				if ew[p][k] != bw[p][k] && nw[p][k] != ew[p][k] {
					return false
				}
			}
		}
		*l.of(b), *l.of(e), *l.of(n) = nil, nil, nil
	}
	// Without items there is one merge of settings, labels and resources.
	merged, err := merge(b, n, e)
	return err == nil && same(merged, n)
}

// distance counts what two policies say differently.
func distance(a, b *model.Policy) int {
	x, y := facts(a), facts(b)
	n := 0
	for _, k := range keys(x, y) {
		if x[k] != y[k] {
			n++
		}
	}
	return n
}

// facts takes a policy apart into what it says.
func facts(p *model.Policy) map[string]string {
	p = normal(p)
	out := map[string]string{}
	for _, l := range lists {
		m := itemMerge{list: l}
		for principal, says := range m.whole(*l.of(p)) {
			for k, v := range says {
				out[l.name+" "+principal+" "+k] = v
			}
		}
		*l.of(p) = nil
	}
	for element, r := range p.Resources {
		for _, v := range r.Values {
			out["resource "+element+" "+v] = text(r.Excludes)
		}
	}
	for _, x := range p.PolicyLabels {
		out["label "+x] = "x"
	}
	p.Resources, p.PolicyLabels = nil, nil
	out["settings"] = text(p)
	return out
}

// setting merges what can only be replaced as a whole.
func setting[T any](c *MergeConflict, what string, base, theirs, ours T) T {
	b, t, o := text(base), text(theirs), text(ours)
	switch {
	case o == b:
		return theirs
	case t == b, t == o:
		return ours
	}
	c.add(what)
	return theirs
}

// members merges sets: what one adds is in, what one takes away is out.
func members(base, theirs, ours []string) []string {
	var out []string
	for _, x := range set(slices.Concat(base, theirs, ours)) {
		t, o := slices.Contains(theirs, x), slices.Contains(ours, x)
		if t && o || !slices.Contains(base, x) {
			out = append(out, x)
		}
	}
	return out
}

func keys[V any](list ...map[string]V) []string {
	var out []string
	for _, m := range list {
		out = append(out, slices.Collect(maps.Keys(m))...)
	}
	return set(out)
}

// mergeResources merges values of one element when both only add to it or take
// from it. Anything else would be a cross product that nobody asked for.
func mergeResources(c *MergeConflict, base, theirs, ours map[string]model.Resource) map[string]model.Resource {
	b, t, o := text(base), text(theirs), text(ours)
	switch {
	case o == b:
		return theirs
	case t == b, t == o:
		return ours
	}
	changed := func(side map[string]model.Resource) (out []string) {
		for _, k := range keys(base, side) {
			if text(base[k]) != text(side[k]) {
				out = append(out, k)
			}
		}
		return out
	}
	ct, co := changed(theirs), changed(ours)
	if len(ct) != 1 || len(co) != 1 || ct[0] != co[0] {
		c.add("resources")
		return theirs
	}
	k := ct[0]
	rb, rt, ro := base[k], theirs[k], ours[k]
	grows := func(side model.Resource) (more, less bool) {
		for _, v := range side.Values {
			more = more || !slices.Contains(rb.Values, v)
		}
		for _, v := range rb.Values {
			less = less || !slices.Contains(side.Values, v)
		}
		return more, less
	}
	moreT, lessT := grows(rt)
	moreO, lessO := grows(ro)
	merged := rb
	merged.Values = members(rb.Values, rt.Values, ro.Values)
	flags := rt.Excludes != rb.Excludes || ro.Excludes != rb.Excludes || rt.Recursive != rb.Recursive || ro.Recursive != rb.Recursive
	if flags || moreT && lessT || moreO && lessO || len(merged.Values) == 0 || len(rb.Values) == 0 {
		c.add("resources")
		return theirs
	}
	out := maps.Clone(base)
	out[k] = merged
	return out
}

// statements are what an item, or a whole list of an unordered kind, says about
// one principal. For lists that act by first match there is one, under "", with
// the whole of what the item does; otherwise one for each access, with the
// conditions.
type statements map[string]string

// delegate stands for delegateAdmin among the accesses.
const delegate = "\x00delegate"

// principals lists who an item names, as kind and name.
func principals(i *model.Item) []string {
	var out []string
	if i == nil {
		return nil
	}
	for kind, names := range map[string][]string{"user ": i.Users, "group ": i.Groups, "role ": i.Roles} {
		for _, n := range names {
			out = append(out, kind+n)
		}
	}
	slices.Sort(out)
	return out
}

// payload is an item without its principals.
func payload(i *model.Item) *model.Item {
	out := *i
	out.Users, out.Groups, out.Roles = nil, nil, nil
	return &out
}

func (l list) says(i *model.Item) statements {
	if l.ordered {
		return statements{"": text(payload(i))}
	}
	out, when := statements{}, text(i.Conditions)
	for _, a := range i.Accesses {
		out[text(a)] = when
	}
	if i.DelegateAdmin {
		out[delegate] = when
	}
	return out
}

func says(l list, i *model.Item, principal string) statements {
	if i == nil || !slices.Contains(principals(i), principal) {
		return nil
	}
	return l.says(i)
}

// exempts reports whether an item takes principals out of masks or filters.
func exempts(i *model.Item) bool {
	if m := i.DataMaskInfo; m != nil {
		return m.DataMaskType == "" || m.DataMaskType == "MASK_NONE" || strings.HasSuffix(m.DataMaskType, ":MASK_NONE")
	}
	f := i.RowFilterInfo
	return f == nil || f.FilterExpr == nil || strings.TrimSpace(*f.FilterExpr) == ""
}

// strictFirst orders items, or runs of items, whose order is free: exemptions
// behind masks, and behind those who are named what is for everybody.
func strictFirst(a, b []*model.Item) int {
	count := func(list []*model.Item, is func(*model.Item) bool) (n int) {
		for _, i := range list {
			if is(i) {
				n++
			}
		}
		return n
	}
	everybody := func(i *model.Item) bool { return slices.Contains(i.Groups, policy.Public) }
	return cmp.Or(cmp.Compare(count(a, exempts), count(b, exempts)), cmp.Compare(count(a, everybody), count(b, everybody)),
		strings.Compare(text(a), text(b)))
}
