package eval

import (
	"fmt"
	"log/slog"
	"math"
	"strings"

	"sqe/rangerclient/model"
)

// tri is the outcome of what may be undecidable.
type tri uint8

const (
	no tri = iota
	yes
	unknown
)

func (a tri) and(b tri) tri {
	switch {
	case a == no || b == no:
		return no
	case a == unknown || b == unknown:
		return unknown
	}
	return yes
}

// item is a compiled policy item.
type item struct {
	users, groups, roles   map[string]struct{}
	anyUser, public, owner bool
	access                 map[string]struct{} // lower case, with what they imply
	types                  []string            // as written, in lower case
	conditions             []condition
	declared               int // conditions, with those that have no effect
	mask                   *model.DataMaskInfo
	filter                 *string
	broken                 string // why the item cannot be applied
	number                 int    // in the policy, from 1
	upper                  string // an access type with capital letters
}

func set(list []string) map[string]struct{} {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]struct{}, len(list))
	for _, s := range list {
		m[s] = struct{}{}
	}
	return m
}

// principal reports whether the item is for the subject, and by what.
func (i *item) principal(q *Request, roles []string) (via string, ok bool) {
	if i.anyUser {
		return "user", true
	}
	if _, ok := i.users[q.Subject.User]; ok && q.Subject.User != owner {
		return "user", true
	}
	if len(i.groups) > 0 {
		for _, g := range q.Subject.Groups {
			if _, ok := i.groups[g]; ok {
				return "group:" + g, true
			}
		}
	}
	if len(i.roles) > 0 {
		for _, r := range roles {
			if _, ok := i.roles[r]; ok {
				return "role:" + r, true
			}
		}
	}
	if i.public {
		return "public", true
	}
	if i.owner && q.Owner != "" && q.Owner == q.Subject.User {
		return "owner", true
	}
	return "", false
}

// match reports whether the item applies to the request. restricting items look
// at all roles of the subject, giving ones at the active roles.
func (i *item) match(q *Request, restricting bool) (string, tri) {
	if q.Access != "" {
		if _, ok := i.access[q.Access]; !ok {
			return "", no
		}
	}
	roles := q.Subject.Active
	if restricting {
		roles = q.Subject.Held
	}
	via, ok := i.principal(q, roles)
	if !ok {
		return "", no
	}
	out := yes
	for _, c := range i.conditions {
		if out = out.and(c.holds(q)); out == no {
			break
		}
	}
	q.doubt = q.doubt || out == unknown
	return via, out
}

// first returns the first item that matches (or, for taking items, that cannot be
// decided).
func first(items []*item, q *Request, taking bool) (*item, string) {
	for _, i := range items {
		if via, t := i.match(q, taking); t == yes || t == unknown && taking {
			return i, via
		}
	}
	return nil, ""
}

// Policy is a compiled policy.
type Policy struct {
	ID, Version int64
	Name        string
	Service     string
	Kind        int // model.AccessPolicy, MaskPolicy or RowFilterPolicy
	Zone        string
	Priority    int

	resources               []*resource
	allow, deny             []*item
	allowExcept, denyExcept []*item
	masks, filters          []*item
	denyAllElse, hasDeny    bool
	empty                   bool // has no items
	conditions              []condition
	schedules               []*schedule
	undecided               bool // a schedule that does not parse
	evalOrder               int
	rank                    int // position in evaluation order
	nameRank                int // position in name order
}

// compiler turns policies of one service into Policy values.
type compiler struct {
	service    string
	def        *model.ServiceDef
	kinds      [3]*definition
	implied    map[string][]string
	accessSize int
	conditions map[string]model.ConditionDef
	prefix     string // of access and mask types in tag policies, "hive:"; empty for the service itself
	noDeny     bool
	problems   *[]Problem
	log        *slog.Logger // nil: none
}

func newCompiler(service string, def *model.ServiceDef, prefix string, implied map[string][]string, accessSize int, problems *[]Problem) *compiler {
	c := &compiler{service: service, def: def, prefix: prefix, implied: implied, accessSize: accessSize, problems: problems, conditions: map[string]model.ConditionDef{}}
	c.kinds[model.AccessPolicy] = newDefinition(def.Resources, nil)
	c.kinds[model.MaskPolicy] = c.kinds[model.AccessPolicy]
	c.kinds[model.RowFilterPolicy] = c.kinds[model.AccessPolicy]
	if m := def.DataMaskDef; m != nil && len(m.Resources) > 0 {
		c.kinds[model.MaskPolicy] = newDefinition(def.Resources, m.Resources)
	}
	if f := def.RowFilterDef; f != nil && len(f.Resources) > 0 {
		c.kinds[model.RowFilterPolicy] = newDefinition(def.Resources, f.Resources)
	}
	for _, d := range def.PolicyConditions {
		c.conditions[d.Name] = d
	}
	c.noDeny = !isTrue(def.Options["enableDenyAndExceptionsInPolicies"], true)
	return c
}

// impliedGrants maps an access type to itself and what it implies, one level.
func impliedGrants(def *model.ServiceDef) (map[string][]string, int) {
	out := map[string][]string{}
	for _, list := range [][]model.AccessTypeDef{def.AccessTypes, def.MarkerAccessTypes} {
		for _, a := range list {
			all := []string{strings.ToLower(a.Name)}
			for _, g := range a.ImpliedGrants {
				all = append(all, strings.ToLower(g))
			}
			out[strings.ToLower(a.Name)] = all
		}
	}
	return out, len(def.AccessTypes)
}

func (c *compiler) problem(p *model.Policy, format string, args ...any) {
	*c.problems = append(*c.problems, Problem{Service: c.service, Policy: p.ID, Name: p.Name, Text: fmt.Sprintf(format, args...)})
}

// policy compiles p; nil when it is disabled or of a kind that is not evaluated.
func (c *compiler) policy(p *model.Policy) *Policy {
	if !p.IsEnabled() || p.PolicyType > model.RowFilterPolicy {
		return nil
	}
	out := &Policy{
		ID: p.ID, Version: p.Version, Name: p.Name, Service: c.service, Kind: p.PolicyType, Zone: p.ZoneName,
		Priority: p.PolicyPriority, denyAllElse: p.DenyAllElse && p.PolicyType == model.AccessPolicy,
	}
	d := c.kinds[p.PolicyType]
	all := append([]map[string]model.Resource{p.Resources}, p.AdditionalResources...)
	for n, m := range all {
		if n > 0 && len(m) == 0 {
			continue
		}
		out.resources = append(out.resources, c.resource(p, d, m))
	}
	out.conditions = c.compileConditions(p, p.Conditions)
	var err error
	if out.schedules, err = newSchedules(p.ValiditySchedules); err != nil {
		out.undecided = true
		c.problem(p, "%s; it gives nothing to anybody, and what it takes stays taken", err)
	}
	switch p.PolicyType {
	case model.AccessPolicy:
		out.allow = c.items(p, p.PolicyItems)
		out.allowExcept = c.items(p, p.AllowExceptions)
		if c.noDeny {
			out.denyAllElse = false
			out.allowExcept = nil
		} else {
			out.deny = c.items(p, p.DenyPolicyItems)
			out.denyExcept = c.items(p, p.DenyExceptions)
		}
	case model.MaskPolicy:
		out.masks = c.items(p, p.DataMaskPolicyItems)
	case model.RowFilterPolicy:
		out.filters = c.items(p, p.RowFilterPolicyItems)
	}
	out.hasDeny = len(out.deny) > 0 || out.denyAllElse
	out.empty = !out.denyAllElse
	for _, list := range [][]*item{out.allow, out.deny, out.allowExcept, out.denyExcept, out.masks, out.filters} {
		out.empty = out.empty && len(list) == 0
	}
	out.evalOrder = c.order(p, out)
	return out
}

func (c *compiler) resource(p *model.Policy, d *definition, m map[string]model.Resource) *resource {
	r := &resource{}
	for elem, values := range m {
		def, ok := d.defs[elem]
		if !ok {
			r.unknown = true
			c.problem(p, "the service has no resource %q; the policy never applies", elem)
			continue
		}
		e := newElement(def, values)
		if !e.wild && !e.any {
			for _, v := range values.Values {
				if strings.ContainsAny(v, "*?") {
					c.problem(p, "%s %q is taken literally (Ranger knows no wildcards here), so it stands for nothing that can be called so", elem, v)
				}
			}
		}
		r.elements = append(r.elements, e)
	}
	sortElements(r.elements, d)
	return r
}

func sortElements(list []*element, d *definition) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && d.order[list[j].name] < d.order[list[j-1].name]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

func (c *compiler) items(p *model.Policy, list []*model.Item) []*item {
	var out []*item
	for n, m := range list {
		i := &item{number: n + 1, users: set(m.Users), groups: set(m.Groups), roles: set(m.Roles), access: map[string]struct{}{}}
		_, i.anyUser = i.users[anyUser]
		_, i.owner = i.users[owner]
		_, i.public = i.groups[publicGroup]
		foreign := 0 // accesses of other kinds of services
		for _, a := range m.Accesses {
			t := strings.ToLower(a.Type)
			if c.prefix != "" {
				var mine bool
				if t, mine = strings.CutPrefix(t, c.prefix); !mine && strings.Contains(t, ":") {
					foreign++
					continue
				}
			}
			if !a.IsAllowed() {
				continue
			}
			i.types = append(i.types, t)
			if a.Type != strings.ToLower(a.Type) {
				i.upper = a.Type
			}
			grants, ok := c.implied[t]
			if !ok {
				c.problem(p, "the service has no access type %q", t)
				grants = []string{t}
			}
			for _, g := range grants {
				i.access[g] = struct{}{}
			}
		}
		if foreign > 0 && foreign == len(m.Accesses) {
			continue
		}
		i.conditions, i.declared = c.compileConditions(p, m.Conditions), len(m.Conditions)
		if p.PolicyType == model.MaskPolicy {
			c.mask(p, m, i)
		}
		if f := m.RowFilterInfo; f != nil {
			i.filter = f.FilterExpr
		}
		out = append(out, i)
	}
	return out
}

// Mask types of Ranger's hive and trino services. Source: their service
// definitions.
const (
	MaskNone   = "MASK_NONE"
	MaskNull   = "MASK_NULL"
	MaskCustom = "CUSTOM"
)

var maskTypes = map[string]bool{
	"MASK": true, "MASK_SHOW_LAST_4": true, "MASK_SHOW_FIRST_4": true, "MASK_HASH": true,
	MaskNull: true, MaskNone: true, "MASK_DATE_SHOW_YEAR": true, MaskCustom: true,
}

func (c *compiler) mask(p *model.Policy, m *model.Item, i *item) {
	info := model.DataMaskInfo{}
	if m.DataMaskInfo != nil {
		info = *m.DataMaskInfo
	}
	if c.prefix != "" && len(info.DataMaskType) > len(c.prefix) && strings.EqualFold(info.DataMaskType[:len(c.prefix)], c.prefix) {
		info.DataMaskType = info.DataMaskType[len(c.prefix):]
	}
	i.mask = &info
	switch {
	case info.DataMaskType == "":
		i.broken = "the mask item names no mask type"
	case !maskTypes[info.DataMaskType]:
		i.broken = fmt.Sprintf("mask type %q is not known", info.DataMaskType)
	case info.DataMaskType == MaskCustom && strings.TrimSpace(info.ValueExpr) == "":
		i.broken = "a CUSTOM mask has no expression"
	}
	if i.broken != "" {
		c.problem(p, "%s; the columns are withheld", i.broken)
	}
}

// order is Ranger's evaluation order: lower is earlier, so that broad policies
// are tried first. Source: RangerOptimizedPolicyEvaluator.
func (c *compiler) order(p *model.Policy, out *Policy) int {
	n := 10000
	score := 0
	dynamic := false
	for _, e := range out.resources[0].elements {
		score += e.score()
	}
	for _, r := range out.resources {
		for _, e := range r.elements {
			dynamic = dynamic || e.dynamic && !e.any
		}
	}
	n -= min(100, score)
	if dynamic {
		n += 20
	}
	users, groups, access := map[string]bool{}, map[string]bool{}, map[string]bool{}
	everybody, conditions := out.denyAllElse, len(p.Conditions)
	for _, list := range [][]*item{out.allow, out.deny, out.allowExcept, out.denyExcept, out.masks, out.filters} {
		for _, i := range list {
			for u := range i.users {
				users[u] = true
			}
			for g := range i.groups {
				groups[g] = true
			}
			for _, a := range i.types {
				access[a] = true
			}
			everybody = everybody || i.public || i.anyUser
			conditions += i.declared
		}
	}
	if everybody {
		n -= 25
	} else {
		n -= min(25, len(users)+len(groups))
	}
	if c.accessSize > 0 {
		n -= int(math.Round(25 * float64(len(access)) / float64(c.accessSize)))
	}
	return n - max(0, 25-5*conditions)
}
