package eval

import "slices"

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
