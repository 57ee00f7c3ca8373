package eval

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sqe/rangerclient/model"
)

// name is one name of a resource element of a request.
type name struct {
	text, folded string
	levels       bool // holds a "/" between levels of a namespace
	// between are the characters that stand between the levels of names of the element.
	between string
}

// between are they by element: those of Polaris' hierarchy, where a backslash makes a "/"
// a part of a name, and those of the data services.
var between = map[string]string{"namespace": `/\`, "table": `/\`, "database": ".", "schema": ".", "column": "."}

// part is one resource element of a request. Several names are names of the same
// thing: a pattern matches when it matches one of them, and an exclusion when it
// matches none.
type part struct {
	name  string
	names []name
}

// Request is one question. It belongs to one goroutine.
type Request struct {
	elements []part
	Access   string // access type; empty: any access
	Subject  *Subject
	Owner    string
	Time     time.Time
	// ClientIP is the address of the client without a port, empty when it is not known.
	ClientIP string
	// Context holds attributes of the request that enrichers know.
	Context map[string]string
	// Tags beside those that the service's tag document gives the resource.
	Tags []Tag
	// Below accepts policies on what lies below the resource (listings).
	Below bool
	// Earlier is set when the name of the last element is not the present one of the
	// resource; Origin repeats it.
	Earlier string

	tag   *Tag      // the tag whose policy is evaluated
	doubt bool      // something could not be decided
	until time.Time // first instant at which an answer given so far may change

	current   *Policy   // the policy that is evaluated
	byAddress []*Policy // those that looked at the address of the client
}

// ByAddress lists the policies that looked at the address of the client while the
// request was answered: from another address they may say something else.
func (q *Request) ByAddress() []*Policy { return q.byAddress }

// address is that of the client, "" when it is not known. That the policy in hand
// looked at it is noted.
func (q *Request) address() string {
	if q.current != nil && !slices.Contains(q.byAddress, q.current) {
		q.byAddress = append(q.byAddress, q.current)
	}
	return q.ClientIP
}

// Until is the first instant at which an answer that was given to this request may
// change by itself; zero: never. It comes from the schedules and conditions that
// were looked at.
func (q *Request) Until() time.Time { return q.until }

// lasts notes that what was just decided may change at t.
func (q *Request) lasts(t time.Time) {
	if t.After(q.Time) && (q.until.IsZero() || t.Before(q.until)) {
		q.until = t
	}
}

// valid reports whether one of the schedules holds now, and notes until when.
func (q *Request) valid(list []*schedule) bool {
	for _, s := range list {
		q.lasts(s.next(q.Time))
	}
	return anyValid(list, q.Time)
}

// Tag is a tag on the resource of a request.
type Tag struct {
	Type       string
	Attributes map[string]string
	Match      MatchType // of the resource that carries the tag
	// From says where the tag is kept, and Earlier under which name it was put on the
	// resource, when that is not the present one. Both are for Origin.
	From, Earlier string

	validity  []*schedule
	undecided bool
}

// Where tags are kept (Tag.From).
const (
	FromServer = "policy server"
	FromTable  = "table"
	FromBoth   = FromTable + " and " + FromServer
)

// AddTags adds tags of a table to those that the request has. One that it has
// already, with the same attributes on the same resource, is one tag.
func (q *Request) AddTags(tags ...Tag) {
next:
	for _, t := range tags {
		t.From = FromTable
		for i := range q.Tags {
			x := &q.Tags[i]
			if x.Type == t.Type && x.Match == t.Match && len(x.validity) == 0 && !x.undecided && maps.Equal(x.Attributes, t.Attributes) {
				if x.From == FromServer {
					x.From = FromBoth
				}
				continue next
			}
		}
		q.Tags = append(q.Tags, t)
	}
}

// NewRequest asks for an access to nothing yet; add elements with With.
func NewRequest(s *Subject, access string, now time.Time) *Request {
	return &Request{Access: access, Subject: s, Time: now, elements: make([]part, 0, 4)}
}

// With adds a resource element, from the top of the hierarchy downwards, with
// the names that it goes by. levels marks "/" in it as separators of levels.
func (q *Request) With(elem string, levels bool, texts ...string) *Request {
	p := part{name: elem, names: make([]name, 0, len(texts))}
	for _, t := range texts {
		p.names = append(p.names, name{text: t, folded: fold(t), levels: levels && separates(t), between: between[elem]})
	}
	q.elements = append(q.elements, p)
	return q
}

// Rename replaces the names of the last element.
func (q *Request) Rename(texts ...string) {
	p := &q.elements[len(q.elements)-1]
	p.names = p.names[:0]
	for _, t := range texts {
		p.names = append(p.names, name{text: t, folded: fold(t), between: between[p.name]})
	}
}

func separates(t string) bool {
	for i := 0; i < len(t); i++ {
		if t[i] == '/' && (i == 0 || t[i-1] != '\\') {
			return true
		}
	}
	return false
}

func (q *Request) element(elem string) []name {
	for i := range q.elements {
		if q.elements[i].name == elem {
			return q.elements[i].names
		}
	}
	return nil
}

// expand replaces {USER}, {OWNER} and attribute expressions in a resource value, each
// once: what stands in a name or an attribute is never replaced itself. known is false
// when an expression cannot be decided, and when what is put into a pattern would be a
// wildcard there: people may choose their names and attributes, and must not choose by
// them what a policy is for. all is what was put in.
func (q *Request) expand(s string, pattern bool) (text, all string, known bool) {
	var b, puts strings.Builder
	for s != "" {
		start := strings.IndexByte(s, '{')
		if start < 0 {
			break
		}
		put, rest := "", ""
		switch {
		case start > 0 && strings.HasPrefix(s[start-1:], "${{"):
			end := strings.Index(s[start:], "}}")
			if end < 0 {
				return "", "", false
			}
			end += start + len("}}")
			start--
			var err error
			if put, err = q.Expand(s[start:end], false); err != nil {
				return "", "", false
			}
			rest = s[end:]
		case strings.HasPrefix(s[start:], anyUser):
			put, rest = q.Subject.User, s[start+len(anyUser):]
		case q.Owner != "" && strings.HasPrefix(s[start:], owner):
			put, rest = q.Owner, s[start+len(owner):]
		default:
			b.WriteString(s[:start+1])
			s = s[start+1:]
			continue
		}
		if pattern && strings.ContainsAny(put, "*?") {
			return "", "", false
		}
		b.WriteString(s[:start])
		b.WriteString(put)
		puts.WriteString(put)
		s = rest
	}
	b.WriteString(s)
	return b.String(), puts.String(), true
}

// Subject is who asks, with everything that the engine knows about them.
type Subject struct {
	User   string
	Groups []string
	// Held are all roles; Active those that may give something. They differ when
	// a session has narrowed its roles: a narrower session never sees more.
	Held, Active []string
	// Attributes of the user.
	Attributes map[string]string
	groupAttrs map[string]map[string]string
}

// Attribute returns an attribute of the user.
func (s *Subject) Attribute(key string) (string, bool) {
	v, ok := s.Attributes[key]
	return v, ok
}

// roleGraph answers which roles a user, group or role is a member of. Roles are
// numbered: an installation has thousands, nested in each other.
type roleGraph struct {
	names           []string
	number          map[string]int
	byUser, byGroup map[string][]int
	byRole          [][]int // by number
}

func newRoleGraph(r *model.Roles) *roleGraph {
	g := &roleGraph{number: map[string]int{}, byUser: map[string][]int{}, byGroup: map[string][]int{}}
	if r == nil {
		return g
	}
	number := func(name string) int {
		n, ok := g.number[name]
		if !ok {
			n = len(g.names)
			g.number[name] = n
			g.names, g.byRole = append(g.names, name), append(g.byRole, nil)
		}
		return n
	}
	for _, role := range r.RangerRoles {
		if role.Enabled != nil && !*role.Enabled {
			continue
		}
		n := number(role.Name)
		for _, m := range role.Users {
			g.byUser[m.Name] = append(g.byUser[m.Name], n)
		}
		for _, m := range role.Groups {
			g.byGroup[m.Name] = append(g.byGroup[m.Name], n)
		}
		for _, m := range role.Roles {
			of := number(m.Name)
			g.byRole[of] = append(g.byRole[of], n)
		}
	}
	return g
}

// publicGroup is the group of everybody.
const publicGroup = "public"

// What stands for the one who asks, and for the owner of the object, among the users of
// an item and in resources. Nobody is called so: somebody whose name is one of these is
// no owner by it.
const (
	anyUser = "{USER}"
	owner   = "{OWNER}"
)

// reach is a set of roles that grows.
type reach struct {
	graph *roleGraph
	seen  []uint64 // by number, a bit each
	found []int
	other []string // roles that the graph does not have
}

func (g *roleGraph) reach() *reach {
	return &reach{graph: g, seen: make([]uint64, (len(g.names)+63)/64), found: make([]int, 0, 16)}
}

func (r *reach) add(list []int) {
	for _, n := range list {
		if bit := uint64(1) << (n % 64); r.seen[n/64]&bit == 0 {
			r.seen[n/64] |= bit
			r.found = append(r.found, n)
		}
	}
}

func (r *reach) addNames(list []string) {
	for _, name := range list {
		if n, ok := r.graph.number[name]; ok {
			r.add([]int{n})
		} else if !contains(r.other, name) {
			r.other = append(r.other, name)
		}
	}
}

// roles are those that were added, and all roles that they are members of, at
// any depth. Cycles end.
func (r *reach) roles() []string {
	for i := 0; i < len(r.found); i++ {
		r.add(r.graph.byRole[r.found[i]])
	}
	out := make([]string, 0, len(r.found)+len(r.other))
	out = append(out, r.other...)
	for _, n := range r.found {
		out = append(out, r.graph.names[n])
	}
	return out
}

// Subject completes a principal: groups of the user store (when the engine uses
// them), roles of the role store beside the asserted ones, attributes. active nil
// means all roles.
func (e *Engine) Subject(user string, groups, asserted, active []string, attributes map[string]string) *Subject {
	s := &Subject{User: user, Groups: groups, Attributes: attributes}
	if e.users != nil {
		s.groupAttrs = e.users.GroupAttrMapping
		if e.storeGroups {
			for _, g := range e.users.UserGroupMapping[user] {
				if !contains(s.Groups, g) {
					s.Groups = append(s.Groups[:len(s.Groups):len(s.Groups)], g)
				}
			}
		}
		if stored := e.users.UserAttrMapping[user]; len(stored) > 0 {
			if len(attributes) == 0 {
				s.Attributes = stored
			} else {
				// What the policy server says about a user counts.
				s.Attributes = make(map[string]string, len(attributes)+len(stored))
				for k, v := range attributes {
					s.Attributes[k] = v
				}
				for k, v := range stored {
					s.Attributes[k] = v
				}
			}
		}
	}
	held := e.roles.reach()
	held.addNames(asserted)
	held.add(e.roles.byUser[user])
	for _, g := range s.Groups {
		held.add(e.roles.byGroup[g])
	}
	held.add(e.roles.byGroup[publicGroup])
	s.Held = held.roles()
	s.Active = s.Held
	if active != nil {
		chosen := e.roles.reach()
		for _, r := range active {
			if contains(s.Held, r) {
				chosen.addNames([]string{r})
			}
		}
		s.Active = chosen.roles()
	}
	return s
}
