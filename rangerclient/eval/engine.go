package eval

import (
	"cmp"
	"log/slog"
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
	// Log is told once of each policy whose script meets a limit; nil: nobody.
	Log *slog.Logger
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
	resources   []*indexed // all of tagged
	tags        []Tag
	roles       *roleGraph
	users       *model.UserStore
	storeGroups bool
	superUsers  map[string]struct{}
	superGroups map[string]struct{}
	policies    int
	problems    []Problem
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
	all    []*Policy
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
	c.log = o.Log
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
		tc.log = o.Log
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
		if p.Zone == "" {
			p.Zone = zone
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
	for _, m := range list {
		p := c.policy(m)
		// Ranger drops a policy without items for this kind of service when it is not
		// audited, also one that denies everybody.
		bare := p != nil && len(p.allow)+len(p.deny)+len(p.allowExcept)+len(p.denyExcept)+len(p.masks)+len(p.filters) == 0
		if p == nil || bare && (!p.denyAllElse || m.AuditEnabled != nil && !*m.AuditEnabled) {
			continue
		}
		e.policies++
		e.hasDeny = e.hasDeny || p.hasDeny
		t.all = append(t.all, p)
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
	rank(t.all)
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
			e.problems = append(e.problems, Problem{Text: "tag " + m.Type + ": " + err.Error() + "; it counts where it takes, not where it gives"})
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
			e.problems = append(e.problems, Problem{Text: "a tagged resource names an element that the service does not have"})
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
		e.resources = append(e.resources, x)
	}
}

// Service is the name of the service, Type that of its definition.
func (e *Engine) Service() string { return e.service }

// Type is the type of the service: "hive", "trino", "polaris".
func (e *Engine) Type() string { return e.serviceType }

// Policies is the number of policies that may apply.
func (e *Engine) Policies() int { return e.policies }

// Denies reports whether any access policy of the service may deny.
func (e *Engine) Denies() bool { return e.hasDeny }

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

// zoneOf returns the one zone that the resource is in, "" when none or several. A
// resource below which a zone begins is also in none.
func (e *Engine) zoneOf(q *Request) (name string, tagged bool) {
	n := 0
	for i := range e.zones {
		z := &e.zones[i]
		in := false
		for _, r := range z.resources {
			switch r.match(q, e.kinds[0]).typ {
			case NoMatch:
			case Descendant:
				return "", false
			default:
				in = true
			}
		}
		if in {
			name, tagged = z.name, z.tagged
			n++
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
			if len(t.validity) > 0 && !t.undecided && !q.valid(t.validity) {
				continue // conditions do not see it either
			}
			t.Match, t.From, t.Earlier = m.typ, FromServer, q.Earlier
			q.Tags = append(q.Tags, t)
		}
	}
}
