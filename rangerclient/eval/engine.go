package eval

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/model"
)

// Documents are what an engine is made of. Policies is required.
type Documents struct {
	Policies *model.ServicePolicies
	Tags     *model.ServiceTags
	Roles    *model.Roles
	Users    *model.UserStore
}

// Options of an engine.
type Options struct {
	// StoreGroups adds the groups that the user store gives a user to those of
	// the identity provider (Ranger: use.rangerGroups).
	StoreGroups bool
}

// Engine evaluates the policies of one service.
type Engine struct {
	service     string
	serviceType string
	kinds       [3]*definition
	repos       map[string]*[3]index // by zone, "" for the unzoned
	zones       []zone
	tagPolicies *tagRepository
	tagged      index
	tags        []Tag
	roles       *roleGraph
	users       *model.UserStore
	storeGroups bool
	superUsers  map[string]struct{}
	superGroups map[string]struct{}
	policies    int
	problems    []string
	all         []*Policy
	hasDeny     bool // an access policy of this service or of its tags may deny
}

type zone struct {
	name      string
	resources []*resource
	tagged    bool
}

// tagRepository holds the tag policies of each kind by tag.
type tagRepository struct {
	def    *definition
	byTag  [3]map[string][]*Policy
	others [3][]*Policy // with exclusions or wildcards
}

// Compile makes the engine of a service.
func Compile(d Documents, o Options) *Engine {
	p := d.Policies
	e := &Engine{
		service: p.ServiceName, serviceType: p.ServiceDef.Name, repos: map[string]*[3]index{},
		roles: newRoleGraph(d.Roles), users: d.Users, storeGroups: o.StoreGroups,
		superUsers:  set(nonBlank(strings.Split(p.ServiceConfig["ranger.plugin.super.users"], ","))),
		superGroups: set(nonBlank(strings.Split(p.ServiceConfig["ranger.plugin.super.groups"], ","))),
	}
	implied, size := impliedGrants(p.ServiceDef)
	c := newCompiler(p.ServiceName, p.ServiceDef, "", implied, size, &e.problems)
	e.kinds = c.kinds
	e.add(c, "", p.Policies)
	for name, z := range p.SecurityZones {
		e.add(c, name, z.Policies)
		compiled := zone{name: name, tagged: z.ContainsAssociatedTagService}
		for _, m := range z.Resources {
			r := &resource{}
			for elem, values := range m {
				def, ok := c.kinds[0].defs[elem]
				if !ok {
					r.unknown = true
					continue
				}
				r.elements = append(r.elements, newElement(def, model.Resource{Values: values, Recursive: def.RecursiveSupported}))
			}
			sortElements(r.elements, c.kinds[0])
			compiled.resources = append(compiled.resources, r)
		}
		e.zones = append(e.zones, compiled)
	}
	rank(e.all)
	if t := p.TagPolicies; t != nil && t.ServiceDef != nil && len(t.ServiceDef.Resources) > 0 {
		tc := newCompiler(t.ServiceName, t.ServiceDef, strings.ToLower(p.ServiceDef.Name)+":", implied, size, &e.problems)
		e.tagPolicies = newTagRepository(tc, t.Policies, e)
	}
	e.addTags(c, d.Tags)
	return e
}

func (e *Engine) add(c *compiler, zone string, list []*model.Policy) {
	repo := e.repos[zone]
	if repo == nil {
		repo = &[3]index{}
		e.repos[zone] = repo
	}
	for _, m := range list {
		p := c.policy(m)
		if p == nil {
			continue
		}
		e.policies++
		e.all = append(e.all, p)
		e.hasDeny = e.hasDeny || p.hasDeny
		for _, r := range p.resources {
			if !r.unknown {
				repo[p.Kind].add(&indexed{res: r, pol: p})
			}
		}
	}
}

// rank numbers policies in the two orders of evaluation.
func rank(list []*Policy) {
	head := func(a, b *Policy) int {
		if a.Priority != b.Priority {
			return cmp.Compare(b.Priority, a.Priority)
		}
		if a.hasDeny != b.hasDeny {
			if a.hasDeny {
				return -1
			}
			return 1
		}
		return 0
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *Policy) int {
		return cmp.Or(head(a, b), cmp.Compare(a.evalOrder, b.evalOrder), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for i, p := range sorted {
		p.rank = i
	}
	slices.SortStableFunc(sorted, func(a, b *Policy) int {
		return cmp.Or(head(a, b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for i, p := range sorted {
		p.nameRank = i
	}
}

func newTagRepository(c *compiler, list []*model.Policy, e *Engine) *tagRepository {
	t := &tagRepository{def: c.kinds[0]}
	for k := range t.byTag {
		t.byTag[k] = map[string][]*Policy{}
	}
	var all []*Policy
	for _, m := range list {
		p := c.policy(m)
		if p == nil || len(p.allow)+len(p.deny)+len(p.masks)+len(p.filters) == 0 && !p.denyAllElse {
			continue
		}
		e.policies++
		e.hasDeny = e.hasDeny || p.hasDeny
		all = append(all, p)
		literal := true
		for _, r := range p.resources {
			literal = literal && len(r.elements) == 1 && plain(r.elements[0]) && !r.elements[0].ignore
		}
		if !literal {
			t.others[p.Kind] = append(t.others[p.Kind], p)
			continue
		}
		for _, r := range p.resources {
			for _, v := range r.elements[0].values {
				if at := t.byTag[p.Kind][v.raw]; !slices.Contains(at, p) {
					t.byTag[p.Kind][v.raw] = append(at, p)
				}
			}
		}
	}
	rank(all)
	return t
}

// addTags compiles the tags of the service's resources.
func (e *Engine) addTags(c *compiler, t *model.ServiceTags) {
	if t == nil {
		return
	}
	position := map[string]int{}
	ids := make([]string, 0, len(t.Tags))
	for id := range t.Tags {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		m := t.Tags[id]
		x := Tag{Type: m.Type, Attributes: m.Attributes}
		var err error
		if x.validity, err = newSchedules(m.ValidityPeriods); err != nil {
			x.undecided = true
			e.problems = append(e.problems, "tag "+m.Type+": "+err.Error()+"; it counts where it takes, not where it gives")
		}
		position[id] = len(e.tags)
		e.tags = append(e.tags, x)
	}
	for i := range t.ServiceResources {
		sr := &t.ServiceResources[i]
		r := &resource{}
		for elem, values := range sr.ResourceElements {
			def, ok := c.kinds[0].defs[elem]
			if !ok {
				r.unknown = true
				continue
			}
			r.elements = append(r.elements, newElement(def, values))
		}
		if r.unknown || len(r.elements) == 0 {
			e.problems = append(e.problems, "a tagged resource names an element that the service does not have")
			continue
		}
		sortElements(r.elements, c.kinds[0])
		x := &indexed{res: r}
		for _, id := range t.ResourceToTagIDs[strconv.FormatInt(sr.ID, 10)] {
			if p, ok := position[strconv.FormatInt(id, 10)]; ok {
				x.tags = append(x.tags, p)
			}
		}
		e.tagged.add(x)
	}
}

// Service is the name of the service, Type that of its definition.
func (e *Engine) Service() string { return e.service }

// Type is the type of the service: "hive", "trino", "polaris".
func (e *Engine) Type() string { return e.serviceType }

// Policies is the number of policies that may apply.
func (e *Engine) Policies() int { return e.policies }

// Problems lists, in words for the administrator, policies that cannot be applied
// as they stand.
func (e *Engine) Problems() []string { return e.problems }

// Denies reports whether any access policy of the service may deny.
func (e *Engine) Denies() bool { return e.hasDeny }

// Elements lists the resource elements of policies of a kind with the plain
// values that they name; fn is called for each policy and resource map.
func (e *Engine) Elements(kind int, fn func(p *Policy, values map[string][]string)) {
	for _, p := range e.all {
		if p.Kind != kind {
			continue
		}
		for _, r := range p.resources {
			m := map[string][]string{}
			for _, x := range r.elements {
				for _, v := range x.values {
					m[x.name] = append(m[x.name], v.raw)
				}
			}
			fn(p, m)
		}
	}
}

func (e *Engine) super(s *Subject) bool {
	if _, ok := e.superUsers[s.User]; ok {
		return true
	}
	if len(e.superGroups) > 0 {
		for _, g := range s.Groups {
			if _, ok := e.superGroups[g]; ok {
				return true
			}
		}
	}
	return false
}

// zoneOf returns the one zone that the resource is in, "" when none or several.
func (e *Engine) zoneOf(q *Request) (name string, tagged bool) {
	n := 0
	for i := range e.zones {
		z := &e.zones[i]
		for _, r := range z.resources {
			if m := r.match(q, e.kinds[0]); m.typ == Self || m.typ == Ancestor || m.typ == SelfAndAllDescendants {
				name, tagged = z.name, z.tagged
				n++
				break
			}
		}
	}
	if n != 1 {
		return "", false
	}
	return name, tagged
}

// FindTags adds to the request the tags that the service's tag document gives to
// its resource and those above it.
func (e *Engine) FindTags(q *Request) {
	if len(e.tags) == 0 {
		return
	}
	var buf [16]*indexed
	for _, x := range e.tagged.find(q, q.Access == "" || q.Below, buf[:0]) {
		m := x.res.match(q, e.kinds[0])
		if m.typ == NoMatch || m.typ == Descendant && q.Access != "" && !q.Below {
			continue
		}
		for _, p := range x.tags {
			t := e.tags[p]
			t.Match = m.typ
			q.Tags = append(q.Tags, t)
		}
	}
}

type tagCandidate struct {
	pol *Policy
	tag *Tag
	m   matched
}

// tagCandidates lists the tag policies for the tags of the request, in order.
func (e *Engine) tagCandidates(kind int, q *Request, zone string, zoneTagged bool) []tagCandidate {
	t := e.tagPolicies
	if t == nil || len(q.Tags) == 0 {
		return nil
	}
	var out []tagCandidate
	for i := range q.Tags {
		tag := &q.Tags[i]
		holds := decided(len(tag.validity) == 0 || q.valid(tag.validity))
		if tag.undecided {
			holds = unknown
		}
		if holds == no || tag.Match == NoMatch {
			continue
		}
		// A tag above the resource counts as one on it.
		m := matched{typ: tag.Match, narrow: true, undecided: holds == unknown}
		if m.typ == Ancestor {
			m.typ = Self
		}
		consider := func(p *Policy) {
			if zoneTagged && p.Zone != zone || !zoneTagged && p.Zone != "" {
				return
			}
			out = append(out, tagCandidate{p, tag, m})
		}
		for _, p := range t.byTag[kind][tag.Type] {
			consider(p)
		}
		if len(t.others[kind]) > 0 {
			only := &Request{elements: []part{{name: "tag", names: []name{{text: tag.Type, folded: fold(tag.Type)}}}}, Subject: q.Subject}
			for _, p := range t.others[kind] {
				if best(p.resources, only, t.def).typ == Self {
					consider(p)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b tagCandidate) int {
		switch kind {
		case model.AccessPolicy:
			return cmp.Compare(a.pol.rank, b.pol.rank)
		case model.MaskPolicy:
			return cmp.Or(cmp.Compare(a.tag.Match, b.tag.Match), cmp.Compare(a.pol.nameRank, b.pol.nameRank))
		}
		return cmp.Compare(a.pol.nameRank, b.pol.nameRank)
	})
	return out
}

// phases selects what evaluate looks at.
type phases uint8

const (
	tagPhase phases = 1 << iota
	resourcePhase
	bothPhases = tagPhase | resourcePhase
)

// evaluate is Ranger's main algorithm: tag policies, then resource policies.
func (e *Engine) evaluate(kind int, q *Request, which phases) result {
	var ret result
	if e.super(q.Subject) {
		return result{allowed: true, determined: true, super: true}
	}
	zone, zoneTagged := "", false
	if len(e.zones) > 0 {
		zone, zoneTagged = e.zoneOf(q)
	}
	if which&tagPhase != 0 {
		for _, c := range e.tagCandidates(kind, q, zone, zoneTagged) {
			t := ret
			q.tag = c.tag
			c.pol.apply(q, c.m, &t)
			if t.policy != ret.policy {
				t.tag = c.tag.Type
			}
			if t.allowed && !c.pol.hasDeny {
				t.determined = true
			}
			if !ret.determined && (t.determined || !ret.allowed && t.allowed) {
				ret = t
			}
			if ret.determined {
				break
			}
		}
		q.tag = nil
	}
	if ret.allowed {
		ret.determined = true
	}
	allowedByTags := ret.determined && ret.allowed
	deniedByTags := ret.determined && !ret.allowed
	if which&resourcePhase == 0 || ret.refuse != "" {
		return ret
	}
	ret.determined = false
	repo := e.repos[zone]
	if repo == nil {
		repo = e.repos[""]
	}
	var buf [16]*indexed
	cands := repo[kind].find(q, q.Access == "" || q.Below, buf[:0])
	if len(cands) > 1 {
		slices.SortFunc(cands, func(a, b *indexed) int { return cmp.Compare(a.pol.rank, b.pol.rank) })
	}
	var last *Policy
	for _, c := range cands {
		p := c.pol
		if p == last {
			continue // the same policy by another of its resource maps
		}
		last = p
		m := best(p.resources, q, e.kinds[kind])
		if m.typ == NoMatch || m.typ == Ancestor || p.valid(q) == no {
			continue
		}
		switch {
		case deniedByTags:
			ret.determined = ret.priority >= p.Priority
		case ret.allowed && kind == model.AccessPolicy:
			ret.determined = ret.priority > p.Priority
		case ret.allowed:
			ret.determined = ret.priority >= p.Priority
		}
		before := ret.policy
		p.apply(q, m, &ret)
		if ret.policy != before {
			ret.tag = ""
		}
		if ret.allowed && !p.hasDeny {
			ret.determined = true
		}
		if ret.determined {
			break
		}
	}
	switch {
	case ret.determined:
	case deniedByTags:
		ret.allowed = false
	case allowedByTags:
		ret.allowed = true
	}
	return ret
}

// Origin is where an answer comes from.
type Origin struct {
	Policy *Policy // nil: no policy
	Tag    string
	Via    string
	Super  bool // the subject is a super user of the service
}

// Answer is the answer to an access request.
type Answer struct {
	Allowed bool
	Denied  bool // by a policy, not for want of one
	Origin  Origin
}

// Access asks whether the access is allowed. Call FindTags before.
func (e *Engine) Access(q *Request) Answer {
	r := e.evaluate(model.AccessPolicy, q, bothPhases)
	return Answer{Allowed: r.allowed, Denied: !r.allowed && r.policy != nil, Origin: r.origin()}
}

func (r *result) origin() Origin {
	return Origin{Policy: r.policy, Tag: r.tag, Via: r.via, Super: r.super}
}

// Order says which phase decides when tags and resources both have something.
type Order uint8

// The orders.
const (
	TagsFirst      Order = iota // Ranger's own
	ResourcesFirst              // a resource mask before a tag mask
)

// MaskAnswer is the answer to a mask request. The zero value: no policy.
type MaskAnswer struct {
	Exempt bool   // a policy exempts from masks
	Type   string // mask type without prefix; empty: none
	Value  string // expression of CUSTOM, macros not yet expanded
	Broken string // why the mask cannot be built
	Refuse string // it cannot be decided whether a mask applies
	Origin Origin
	tag    *Tag
}

// Mask asks which mask applies to a column. Call FindTags before.
func (e *Engine) Mask(q *Request, order Order) MaskAnswer {
	var r result
	if order == ResourcesFirst {
		if r = e.evaluate(model.MaskPolicy, q, resourcePhase); !r.allowed {
			r = e.evaluate(model.MaskPolicy, q, tagPhase)
		}
	} else {
		r = e.evaluate(model.MaskPolicy, q, bothPhases)
	}
	a := MaskAnswer{Refuse: r.refuse, Origin: r.itemOrigin(), tag: r.tagged}
	switch {
	case r.super:
		a.Exempt = true
	case r.item == nil:
	case r.item.broken != "":
		a.Type, a.Broken = r.item.mask.DataMaskType, r.item.broken
	case r.item.mask.DataMaskType == MaskNone:
		a.Exempt = true
	default:
		a.Type, a.Value = r.item.mask.DataMaskType, r.item.mask.ValueExpr
	}
	return a
}

func (r *result) itemOrigin() Origin {
	o := r.origin()
	if r.source != nil && r.source != r.policy {
		// Ranger reports the policy of the tag; what acts is the resource's.
		o.Policy, o.Tag = r.source, ""
	}
	if r.tagged != nil {
		o.Tag = r.tagged.Type
	}
	return o
}

// FilterAnswer is the answer to a row filter request. The zero value: no policy.
type FilterAnswer struct {
	Exempt bool
	SQL    string // macros not yet expanded; empty: none
	Refuse string
	Origin Origin
	tag    *Tag
}

// Filter asks which row filter applies to a table. Call FindTags before. Only
// selects the phases: tags, resources or both.
func (e *Engine) Filter(q *Request, tags, resources bool) FilterAnswer {
	var which phases
	if tags {
		which |= tagPhase
	}
	if resources {
		which |= resourcePhase
	}
	r := e.evaluate(model.RowFilterPolicy, q, which)
	a := FilterAnswer{Refuse: r.refuse, Origin: r.itemOrigin(), tag: r.tagged}
	switch {
	case r.super:
		a.Exempt = true
	case r.item == nil:
	case strings.TrimSpace(*r.item.filter) == "":
		a.Exempt = true
	default:
		a.SQL = *r.item.filter
	}
	return a
}

// Expand replaces the macros in the SQL text of the answer by literals.
func (a *MaskAnswer) Expand(q *Request) (string, error) {
	q.tag = a.tag
	defer func() { q.tag = nil }()
	return q.Expand(a.Value, true)
}

// Expand replaces the macros in the SQL text of the answer by literals.
func (a *FilterAnswer) Expand(q *Request) (string, error) {
	q.tag = a.tag
	defer func() { q.tag = nil }()
	return q.Expand(a.SQL, true)
}

// HasTags reports whether the tag document gives tags to any resource.
func (e *Engine) HasTags() bool { return len(e.tags) > 0 }

// MaskColumns says what mask policies of the service may act on a table.
type MaskColumns struct {
	Any   bool          // some may act
	Named []NamedColumn // those that name columns, without those with wildcards
}

// NamedColumn is a column that a mask policy names.
type NamedColumn struct {
	Policy *Policy
	Column string
}

// MaskColumns lists the mask policies for the table of the request (which has no
// column element), whoever they are for.
func (e *Engine) MaskColumns(q *Request) MaskColumns {
	var out MaskColumns
	zone := ""
	if len(e.zones) > 0 {
		zone, _ = e.zoneOf(q)
	}
	repo := e.repos[zone]
	if repo == nil {
		repo = e.repos[""]
	}
	var buf [32]*indexed
	seen := map[NamedColumn]bool{}
	for _, x := range repo[model.MaskPolicy].find(q, true, buf[:0]) {
		if m := x.res.match(q, e.kinds[model.MaskPolicy]); m.typ == NoMatch {
			continue
		}
		out.Any = true
		column := x.res.elements[len(x.res.elements)-1]
		if column.name != "column" || column.excludes || column.dynamic {
			continue
		}
		for _, v := range column.values {
			n := NamedColumn{x.pol, v.raw}
			if !v.pattern && !seen[n] {
				seen[n] = true
				out.Named = append(out.Named, n)
			}
		}
	}
	return out
}
