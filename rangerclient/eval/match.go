package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sqe/rangerclient/model"
)

// MatchType says how a policy's resource and a request's resource relate.
type MatchType uint8

// The match types in the order in which tag masks prefer them.
const (
	NoMatch               MatchType = iota
	Self                            // the same elements, all match
	SelfAndAllDescendants           // the policy has more elements, all of them "*"
	Ancestor                        // the request names more elements
	Descendant                      // the policy names more elements
)

// fold maps a name to the form in which names are compared without case: each
// character in lower case, as Ranger's index does. It allocates nothing for names
// that are in lower case already.
func fold(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return strings.Map(unicode.ToLower, s)
		}
	}
	return s
}

// wildcard reports whether text matches pattern, in which * stands for any run of
// characters and ? for one. With barrier, neither stands for a "/" that no
// backslash precedes.
func wildcard(pattern, text string, barrier bool) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		r, size := utf8.DecodeRuneInString(text[t:])
		blocked := barrier && r == '/' && (t == 0 || text[t-1] != '\\')
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
			continue
		case p < len(pattern) && pattern[p] == '?' && !blocked:
			p++
			t += size
			continue
		case p < len(pattern) && pattern[p] != '?' && strings.HasPrefix(pattern[p:], text[t:t+size]):
			p += size
			t += size
			continue
		}
		if star < 0 {
			return false
		}
		// Let the last * take one more character.
		r, size = utf8.DecodeRuneInString(text[mark:])
		if barrier && r == '/' && (mark == 0 || text[mark-1] != '\\') {
			return false
		}
		mark += size
		t, p = mark, star+1
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// value is one value of a policy's resource element.
type value struct {
	text    string // folded when the element ignores case
	raw     string
	pattern bool // holds * or ? and the element knows wildcards
	any     bool
	dynamic bool // holds {USER}, {OWNER} or ${{...}}
}

// element matches one element of a resource.
type element struct {
	name      string
	any       bool // matches whatever is there, also nothing
	excludes  bool
	recursive bool // path elements: also what is below
	ignore    bool // ignore case
	wild      bool
	dynamic   bool
	values    []value
	separator byte // of path elements; 0: not a path
	url       bool
}

func isTrue(s string, byDefault bool) bool {
	if s == "" {
		return byDefault
	}
	return strings.EqualFold(s, "true")
}

func newElement(def *model.ResourceDef, r model.Resource) *element {
	o := def.MatcherOptions
	e := &element{
		name: def.Name, excludes: r.Excludes,
		wild: isTrue(o["wildCard"], true), ignore: isTrue(o["ignoreCase"], true),
	}
	if strings.HasSuffix(def.Matcher, "RangerPathResourceMatcher") || strings.HasSuffix(def.Matcher, "RangerURLResourceMatcher") {
		e.separator = '/'
		if s := o["pathSeparatorChar"]; s != "" {
			e.separator = s[0]
		}
		e.recursive = r.Recursive
		e.url = strings.HasSuffix(def.Matcher, "RangerURLResourceMatcher")
	}
	tokens := isTrue(o["replaceTokens"], true)
	for _, s := range r.Values {
		if s == "" {
			continue
		}
		if e.recursive && e.wild && s[len(s)-1] == e.separator {
			s += "*"
		}
		v := value{text: s, raw: s}
		if e.ignore {
			v.text = fold(s)
		}
		if e.wild {
			v.pattern = strings.ContainsAny(s, "*?")
			v.any = strings.Trim(s, "*") == ""
		}
		if tokens && strings.Contains(s, "{") {
			v.dynamic = strings.Contains(s, anyUser) || strings.Contains(s, owner) || strings.Contains(s, "${{")
		}
		e.any = e.any || v.any
		e.dynamic = e.dynamic || v.dynamic
		e.values = append(e.values, v)
	}
	if len(e.values) == 0 {
		e.any = true
	}
	return e
}

// fit is how the names of a request's element fit an element of a policy.
type fit struct {
	full   bool // one of them matches
	narrow bool // and without a wildcard running over a level of a namespace
	// crossed: only because a name or attribute that was put into the policy's value has
	// a separator of levels in it. People may choose those: such a match takes, and does
	// not give.
	crossed   bool
	undecided bool
}

func (e *element) match(names []name, q *Request) fit {
	full, narrow, crossed, undecided := false, false, false, false
	if e.any {
		full, narrow = true, len(names) == 0
		for _, n := range names {
			narrow = narrow || !n.levels
		}
	}
	for i := range e.values {
		v := &e.values[i]
		text, pattern, all := v.text, v.pattern, ""
		if v.dynamic {
			t, put, known := q.expand(v.raw, pattern)
			if !known {
				undecided = true
				continue
			}
			all = put
			if text = t; e.ignore {
				text = fold(t)
			}
		}
		for _, n := range names {
			s := n.text
			if e.ignore {
				s = n.folded
			}
			if all != "" && strings.ContainsAny(all, n.between) {
				crossed = crossed || text == s || pattern && wildcard(text, s, false) || e.recursive && e.below(text, s, pattern)
				continue
			}
			switch {
			case e.recursive && e.below(text, s, pattern):
				full, narrow = true, true
			case !pattern:
				if text == s {
					full, narrow = true, true
				}
			case wildcard(text, s, false):
				full = true
				if !n.levels || wildcard(text, s, true) {
					narrow = true
				}
			}
		}
	}
	if e.excludes {
		levels := false
		for _, n := range names {
			levels = levels || n.levels
		}
		return fit{full: !full, narrow: !full && !levels, crossed: crossed && !full, undecided: undecided && !full}
	}
	if full {
		return fit{full: true, narrow: narrow}
	}
	return fit{full: crossed, narrow: crossed, crossed: crossed, undecided: undecided}
}

// below reports whether the path s is text or below it.
func (e *element) below(text, s string, pattern bool) bool {
	if !pattern {
		text = strings.TrimSuffix(text, string(e.separator))
		return s == text || strings.HasPrefix(s, text+string(e.separator))
	}
	start := 1
	if e.url { // what comes before the path is no level
		start = strings.IndexByte(s, ':') + 3
		if start < 3 || start > len(s) || s[start-2:start] != "//" {
			return false
		}
	}
	for i := start; i <= len(s); i++ {
		if (i == len(s) || s[i] == e.separator) && wildcard(text, s[:i], false) {
			return true
		}
	}
	return false
}

// score is what the element takes off the evaluation order: broad patterns are
// tried first.
func (e *element) score() int {
	star, question := false, false
	for _, v := range e.values {
		if v.raw == "*" {
			return 25
		}
		star = star || strings.Contains(v.raw, "*")
		question = question || strings.Contains(v.raw, "?")
	}
	s := 0
	switch {
	case star:
		s = 10
	case question:
		s = 5
	}
	if e.excludes && len(e.values) > 0 {
		s += 5
	}
	if e.recursive && len(e.values) > 0 {
		s += 5
	}
	return s
}

// resource is one map of elements of a policy, in the order of the hierarchy.
type resource struct {
	elements []*element
	unknown  bool // names an element that the definition does not have
}

// matched is the outcome of matching a resource.
type matched struct {
	typ       MatchType
	narrow    bool // also when wildcards stop at the levels of a namespace
	crossed   bool // see fit
	undecided bool
}

// match relates the resource to the request. definition decides which elements
// may stand together.
func (r *resource) match(q *Request, d *definition) matched {
	if r.unknown {
		return matched{}
	}
	out := matched{typ: Self, narrow: true}
	have := 0
	namespaceAny := true
	var rest []*element
	for _, e := range r.elements {
		names := q.element(e.name)
		if names == nil {
			rest = append(rest, e)
			continue
		}
		have++
		f := e.match(names, q)
		if !f.full && !f.undecided {
			return matched{}
		}
		// A pattern over the levels of a namespace is narrow when the element
		// above it is for everything.
		if !f.narrow && !namespaceAny {
			out.narrow = false
		}
		namespaceAny = e.any && !e.excludes
		out.crossed = out.crossed || f.crossed
		out.undecided = out.undecided || f.undecided
	}
	switch {
	case len(rest) > 0 && have < len(q.elements):
		return matched{}
	case !d.together(r.elements, q.elements):
		return matched{}
	case len(rest) > 0:
		out.typ = SelfAndAllDescendants
		for _, e := range rest {
			if !e.any || e.excludes {
				out.typ = Descendant
			}
		}
	case have < len(q.elements):
		out.typ = Ancestor
	}
	return out
}

// best picks the strongest of the matches of several resource maps.
func best(all []*resource, q *Request, d *definition) matched {
	var out matched
	rank := func(m matched) int {
		r := map[MatchType]int{Self: 4, SelfAndAllDescendants: 3, Ancestor: 2, Descendant: 1}[m.typ] * 4
		if r > 0 && !m.undecided {
			r += 2
		}
		if r > 0 && m.narrow && !m.crossed {
			r++
		}
		return r
	}
	if len(all) == 1 {
		return all[0].match(q, d)
	}
	for _, r := range all {
		if m := r.match(q, d); rank(m) > rank(out) {
			out = m
		}
	}
	return out
}

// definition is what a service definition says about resources.
type definition struct {
	defs   map[string]*model.ResourceDef
	chains [][]string // every way from a top element to a leaf
	order  map[string]int
}

func newDefinition(base []model.ResourceDef, overlay []model.ResourceDef) *definition {
	d := &definition{defs: map[string]*model.ResourceDef{}, order: map[string]int{}}
	for i := range base {
		r := base[i]
		d.defs[r.Name] = &r
	}
	for i := range overlay {
		r := overlay[i]
		if b, ok := d.defs[r.Name]; ok {
			merged := *b
			if r.Matcher != "" {
				merged.Matcher = r.Matcher
			}
			if r.MatcherOptions != nil {
				merged.MatcherOptions = r.MatcherOptions
			}
			r = merged
		}
		d.defs[r.Name] = &r
	}
	parents := map[string]bool{}
	for _, r := range d.defs {
		parents[r.Parent] = true
		d.order[r.Name] = r.Level
	}
	for _, r := range d.defs {
		if parents[r.Name] {
			continue
		}
		var chain []string
		for at, n := r, 0; at != nil && n <= len(d.defs); at, n = d.defs[at.Parent], n+1 {
			chain = append([]string{at.Name}, chain...)
		}
		d.chains = append(d.chains, chain)
	}
	return d
}

// together reports whether one hierarchy holds all elements of both.
func (d *definition) together(policy []*element, request []part) bool {
chains:
	for _, chain := range d.chains {
		for _, e := range policy {
			if !contains(chain, e.name) {
				continue chains
			}
		}
		for _, p := range request {
			if !contains(chain, p.name) {
				continue chains
			}
		}
		return true
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
