package eval

import (
	"cmp"

	"sqe/rangerclient/model"
)

// Comparison says how a policy is on a resource of which another policy is to be
// written.
type Comparison struct {
	// Meets: the resource of the policy matches.
	Meets bool
	// Exact: it matches by names alone, not by a pattern, an exclusion or a variable.
	Exact bool
}

// Meet compares the resource of a mask or row filter policy with what q names. The
// names and patterns mean what the definition says, as in the engine.
func Meet(def *model.ServiceDef, p *model.Policy, q *Request) Comparison {
	c, compiled := compileAlone(def, p)
	if compiled == nil {
		return Comparison{}
	}
	var out Comparison
	for _, r := range compiled.resources {
		m := r.match(q, c.kinds[p.PolicyType])
		if m.typ != Self && m.typ != SelfAndAllDescendants {
			continue
		}
		out.Meets = true
		exact := !m.undecided
		for _, e := range r.elements {
			exact = exact && plain(e)
		}
		out.Exact = out.Exact || exact
	}
	return out
}

// Before reports whether x is asked before y, two policies of one kind in a
// service: of those that name a principal the first that is asked acts.
func Before(def *model.ServiceDef, x, y *model.Policy) bool {
	_, a := compileAlone(def, x)
	_, b := compileAlone(def, y)
	if a == nil || b == nil {
		return b == nil
	}
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.evalOrder, b.evalOrder), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) < 0
}

func compileAlone(def *model.ServiceDef, p *model.Policy) (*compiler, *Policy) {
	implied, size := impliedGrants(def)
	c := newCompiler(p.Service, def, "", implied, size, &[]Problem{})
	return c, c.policy(p)
}
