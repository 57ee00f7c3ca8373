package eval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqe/rangerclient/model"
)

// Problem is why something cannot be applied as it stands.
type Problem struct {
	Service string
	Policy  int64 // id; with an empty Service it is about no policy
	Name    string
	Text    string
}

func (p Problem) String() string {
	if p.Service == "" {
		return p.Text
	}
	return "service " + p.Service + ", policy " + strconv.FormatInt(p.Policy, 10) + " " + strconv.Quote(p.Name) + ": " + p.Text
}

// Broken lists policies, tags and tagged resources that cannot be applied as they
// stand.
func (e *Engine) Broken() []Problem { return e.problems }

// Problems is Broken in words for the administrator.
func (e *Engine) Problems() []string {
	out := make([]string, len(e.problems))
	for i, p := range e.problems {
		out[i] = p.String()
	}
	return out
}

// Names are what an element of a policy's resource is for.
type Names struct {
	Any, Excludes bool
	Values        []NameValue
	element       *element
}

// NameValue is one value of an element.
type NameValue struct {
	Raw     string
	Pattern bool // * and ? in it are wildcards
	Dynamic bool // differs for each user
	// Literal is set for wildcards that the service does not know here: Broken has
	// the policy.
	Literal bool
	folded  string
}

// Matches reports whether a value that is not dynamic stands for the name,
// whatever its case.
func (v NameValue) Matches(s string) bool {
	if v.Pattern {
		return wildcard(v.folded, fold(s), false)
	}
	return v.folded == fold(s)
}

// Dynamic reports whether any value differs for each user.
func (n *Names) Dynamic() bool { return n.element.dynamic && !n.Any }

// Matches reports whether the element, of which no value is dynamic, stands for
// the name.
func (n *Names) Matches(s string) bool {
	return n.element.match([]name{{text: s, folded: fold(s)}}, &Request{Subject: &Subject{}}).full
}

// Resources lists the resources of the policies of a kind by their elements. Those
// that can never match are left out: Broken has them.
func (e *Engine) Resources(kind int, fn func(p *Policy, elements map[string]*Names)) {
	for _, p := range e.all {
		if p.Kind != kind {
			continue
		}
		for _, r := range p.resources {
			if r.unknown {
				continue
			}
			fn(p, r.names())
		}
	}
}

// TaggedResources lists the resources that the service's tag document gives tags
// to by their elements.
func (e *Engine) TaggedResources(fn func(tags []string, elements map[string]*Names)) {
	for _, x := range e.resources {
		if len(x.tags) == 0 {
			continue
		}
		tags := make([]string, len(x.tags))
		for i, n := range x.tags {
			tags[i] = e.tags[n].Type
		}
		slices.Sort(tags)
		fn(slices.Compact(tags), x.res.names())
	}
}

func (r *resource) names() map[string]*Names {
	m := make(map[string]*Names, len(r.elements))
	for _, x := range r.elements {
		n := &Names{Any: x.any, Excludes: x.excludes, element: x, Values: make([]NameValue, len(x.values))}
		for i, v := range x.values {
			n.Values[i] = NameValue{
				Raw: v.raw, Pattern: v.pattern, Dynamic: v.dynamic, folded: fold(v.raw),
				Literal: !x.wild && strings.ContainsAny(v.raw, "*?"),
			}
		}
		m[x.name] = n
	}
	return m
}

// TagPolicies lists the policies on tags that say something for this service, with
// the tags that they name.
func (e *Engine) TagPolicies(fn func(p *Policy, tags *Names)) {
	if e.tagPolicies == nil {
		return
	}
	for _, p := range e.tagPolicies.all {
		for _, r := range p.resources {
			if n := r.names()["tag"]; n != nil && !r.unknown {
				fn(p, n)
			}
		}
	}
}

// Zones reports whether there are security zones, and whether all of them are made
// of nothing smaller than tables.
func (e *Engine) Zones() (any, ofTables bool) {
	ofTables = true
	for _, z := range e.zones {
		for _, r := range z.resources {
			for _, x := range r.elements {
				ofTables = ofTables && x.name != "column"
			}
		}
	}
	return len(e.zones) > 0, ofTables
}

// ZoneOf is the security zone whose policies act on the resource; empty: none.
func (e *Engine) ZoneOf(q *Request) string {
	name, _ := e.zoneOf(q)
	return name
}

// Denies reports whether the policy may deny.
func (p *Policy) Denies() bool { return p.hasDeny }

// Remark is something about a policy that acts otherwise than it looks.
type Remark struct {
	Policy *Policy
	Text   string
	// Advice: it may be meant, or does no harm by itself. Otherwise something of the
	// policy never acts.
	Advice bool
}

// Inspect looks at the policies of the service and of its tags by themselves.
// access is the one that masks and row filters are asked for.
func (e *Engine) Inspect(access string, now time.Time) []Remark {
	var out []Remark
	all := e.all
	if e.tagPolicies != nil {
		all = append(slices.Clone(all), e.tagPolicies.all...)
	}
	for _, p := range all {
		say := func(advice bool, format string, args ...any) {
			out = append(out, Remark{Policy: p, Text: fmt.Sprintf(format, args...), Advice: advice})
		}
		p.inspectSchedules(now, say)
		for _, list := range [][]*item{p.allow, p.deny, p.allowExcept, p.denyExcept, p.masks, p.filters} {
			for _, i := range list {
				if i.upper != "" {
					say(true, "writes the access type %q with capital letters; SQE reads it in small ones, other engines that follow the same policies never match it", i.upper)
				}
			}
		}
		if p.Kind != model.AccessPolicy {
			p.inspectItems(access, say)
		}
	}
	return out
}

// inspectSchedules looks for policies whose time is over, or never comes.
func (p *Policy) inspectSchedules(now time.Time, say func(advice bool, format string, args ...any)) {
	var last time.Time
	never := true
	for _, s := range p.schedules {
		if s.end.IsZero() || !s.end.Before(now) && !s.end.Before(s.start) {
			return
		}
		if never = never && s.end.Before(s.start); !s.end.Before(last) {
			last = s.end
		}
	}
	switch {
	case len(p.schedules) == 0:
	case never:
		say(false, "ends before it begins, so it never acts; mend its validity schedule")
	default:
		say(true, "was valid until %s and does nothing since; delete it, or give it a new validity schedule", last.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

// principal is somebody whom items name.
type principal struct {
	kind byte // u, g or r
	name string
}

func (i *item) principals() []principal {
	out := make([]principal, 0, len(i.users)+len(i.groups)+len(i.roles))
	for kind, names := range map[byte]map[string]struct{}{'u': i.users, 'g': i.groups, 'r': i.roles} {
		for name := range names {
			out = append(out, principal{kind, name})
		}
	}
	return out
}

// inspectItems looks for items of masks and row filters that never act: of the
// items of a policy the first that names somebody does.
func (p *Policy) inspectItems(access string, say func(advice bool, format string, args ...any)) {
	// The first item without conditions that names somebody. One that exempts looks
	// at the active roles of a session only, so an item behind it that takes, for
	// the same role, still acts in a session with fewer.
	always := map[principal]int{}
	exempted := map[principal]int{}
	everybody := 0
	for _, i := range append(slices.Clone(p.masks), p.filters...) {
		exempts := i.mask != nil && i.mask.DataMaskType == MaskNone && i.broken == "" ||
			p.Kind == model.RowFilterPolicy && (i.filter == nil || strings.TrimSpace(*i.filter) == "")
		if _, ok := i.access[access]; !ok {
			say(false, "item %d is not for %s, the only access that is masked or filtered, so it never acts", i.number, access)
			continue
		}
		if everybody > 0 {
			say(true, "item %d never acts, because item %d before it is for everybody; put that last", i.number, everybody)
			continue
		}
		all := i.principals()
		if len(all) == 0 {
			say(false, "item %d names nobody, so it never acts", i.number)
			continue
		}
		before, dead := 0, true
		for _, x := range all {
			n, ok := always[x]
			if !ok && exempts {
				n, ok = exempted[x]
			}
			dead = dead && ok
			before = max(before, n)
		}
		if dead {
			say(true, "item %d never acts, because item %d or one before that names everybody whom it names; the first item that names somebody acts", i.number, before)
		}
		if len(i.conditions) > 0 {
			continue
		}
		if i.public || i.anyUser {
			everybody = i.number
		}
		for _, x := range all {
			to := always
			if exempts && x.kind == 'r' {
				to = exempted
			}
			if _, ok := to[x]; !ok {
				to[x] = i.number
			}
		}
	}
}

// Item is an item of a mask or row filter policy.
type Item struct{ item *item }

// Items lists the items of a mask or row filter policy that can be applied.
func (p *Policy) Items() []Item {
	var out []Item
	for _, i := range append(slices.Clone(p.masks), p.filters...) {
		if i.broken == "" {
			out = append(out, Item{i})
		}
	}
	return out
}

// Filter is the text of a row filter item, empty when it has none.
func (x Item) Filter() string {
	if x.item.filter == nil {
		return ""
	}
	return *x.item.filter
}

// Mask is the type of a mask item, and the expression of CUSTOM.
func (x Item) Mask() (kind, sql string) {
	if x.item.mask == nil {
		return "", ""
	}
	return x.item.mask.DataMaskType, x.item.mask.ValueExpr
}

// Meets reports whether both items name somebody.
func (x Item) Meets(y Item) bool {
	a, b := x.item, y.item
	common := func(a, b map[string]struct{}) bool {
		for name := range a {
			if _, ok := b[name]; ok {
				return true
			}
		}
		return false
	}
	return a.public || a.anyUser || b.public || b.anyUser || common(a.users, b.users) || common(a.groups, b.groups) || common(a.roles, b.roles)
}
