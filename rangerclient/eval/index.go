package eval

import (
	"slices"
	"strings"
)

// index finds the policies whose resource may match a request: a tree over the
// leading elements of a hierarchy whose values are plain names.
type index struct{ root node }

type node struct {
	here []*indexed
	next map[string]*node
	elem string // the element of next
}

// indexed is one resource map of what is indexed.
type indexed struct {
	res  *resource
	pol  *Policy
	tags []int // of a tagged resource: positions of its tags
}

// maxKeys bounds how many places a resource with lists of values is filed under.
const maxKeys = 64

func plain(e *element) bool {
	return !e.any && !e.excludes && !e.dynamic && !e.recursive && !slices.ContainsFunc(e.values, func(v value) bool { return v.pattern })
}

// add files x. The elements of its resource are in the order of the hierarchy.
func (ix *index) add(x *indexed) {
	nodes := []*node{&ix.root}
	for _, e := range x.res.elements {
		if !plain(e) || len(nodes)*len(e.values) > maxKeys {
			break
		}
		if slices.ContainsFunc(nodes, func(n *node) bool { return n.elem != "" && n.elem != e.name }) {
			break // another hierarchy is filed here already
		}
		var deeper []*node
		for _, n := range nodes {
			n.elem = e.name
			if n.next == nil {
				n.next = map[string]*node{}
			}
			for _, v := range e.values {
				key := fold(v.raw)
				child := n.next[key]
				if child == nil {
					child = &node{}
					n.next[key] = child
				}
				if !slices.Contains(deeper, child) {
					deeper = append(deeper, child)
				}
			}
		}
		nodes = deeper
	}
	for _, n := range nodes {
		n.here = append(n.here, x)
	}
}

// find appends to out what may match the request. below also finds what is filed
// deeper than the request goes.
func (ix *index) find(q *Request, below bool, out []*indexed) []*indexed {
	return ix.root.find(q, below, out)
}

func (n *node) find(q *Request, below bool, out []*indexed) []*indexed {
	out = append(out, n.here...)
	if n.next == nil {
		return out
	}
	names := q.element(n.elem)
	if names == nil {
		if below {
			for _, child := range n.next {
				out = child.find(q, true, out)
			}
		}
		return out
	}
	for i := range names {
		if i > 0 && slices.ContainsFunc(names[:i], func(x name) bool { return x.folded == names[i].folded }) {
			continue
		}
		if child := n.next[names[i].folded]; child != nil {
			out = child.find(q, below, out)
		}
	}
	return out
}

// likely reports whether Ranger's index offers the policy for the request although
// its resource does not match: the index looks at each element by itself, and at a
// pattern only up to its first wildcard.
func (p *Policy) likely(q *Request, d *definition) bool {
	return slices.ContainsFunc(p.resources, func(r *resource) bool { return r.likely(q, d) })
}

func (r *resource) likely(q *Request, d *definition) bool {
	if r.unknown || len(r.elements) == 0 {
		return false
	}
	leaf := r.elements[len(r.elements)-1].name
	for _, part := range q.elements {
		if _, ok := d.defs[part.name]; !ok {
			continue
		}
		i := slices.IndexFunc(r.elements, func(e *element) bool { return e.name == part.name })
		switch {
		case i >= 0 && !r.elements[i].likely(part.names):
			return false
		case i < 0 && !d.above(leaf, part.name):
			return false
		}
	}
	return true
}

func (e *element) likely(names []name) bool {
	if e.any || e.excludes {
		return true
	}
	for i := range e.values {
		v := &e.values[i]
		special := "{}\\$"
		if e.wild {
			special += "*?"
		}
		prefix := v.text
		cut := strings.IndexAny(prefix, special)
		if cut >= 0 {
			prefix = prefix[:cut]
		}
		for _, n := range names {
			text := n.text
			if e.ignore {
				text = n.folded
			}
			if text == prefix || (cut >= 0 || e.recursive) && strings.HasPrefix(text, prefix) {
				return true
			}
		}
	}
	return false
}

// above reports whether an element of the hierarchy stands above another.
func (d *definition) above(upper, lower string) bool {
	for n, at := 0, d.defs[lower]; at != nil && n <= len(d.defs); n, at = n+1, d.defs[at.Parent] {
		if at.Parent == upper {
			return true
		}
	}
	return false
}
