package eval

import (
	"strings"

	"sqe/rangerclient/model"
)

// Origin is where an answer comes from.
type Origin struct {
	Policy *Policy // nil: no policy
	Tag    string
	// TagFrom says where the tag is kept.
	TagFrom string
	// Earlier is the name that matched, when it is not the present one.
	Earlier string
	Via     string
	Super   bool // the subject is a super user of the service
}

// Answer is the answer to an access request.
type Answer struct {
	Allowed bool
	Denied  bool // by a policy, not for want of one
	Origin  Origin
}

// Access asks whether the access is allowed. Call FindTags before.
func (e *Engine) Access(q *Request) Answer {
	r := e.evaluate(model.AccessPolicy, q, AllPolicies)
	return Answer{Allowed: r.allowed, Denied: !r.allowed && r.policy != nil, Origin: r.origin()}
}

func (r *result) origin() Origin {
	o := Origin{Policy: r.policy, Via: r.via, Super: r.super, Earlier: r.earlier}
	o.of(r.tag)
	return o
}

// of notes the tag that brought the policy.
func (o *Origin) of(t *Tag) {
	if t != nil {
		o.Tag, o.TagFrom, o.Earlier = t.Type, t.From, t.Earlier
	}
}

// Order says which phase decides when tags and resources both have something.
type Order uint8

// The orders.
const (
	TagsFirst      Order = iota // Ranger's own
	ResourcesFirst              // a resource mask before a tag mask that is no override
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
		r = e.evaluate(model.MaskPolicy, q, ResourcePolicies)
		// As in Ranger's order: the second phase decides where the first says nothing, or
		// by an override.
		if t := e.evaluate(model.MaskPolicy, q, TagPolicies); t.allowed && (!r.allowed || t.priority > r.priority) {
			r = t
		}
	} else {
		r = e.evaluate(model.MaskPolicy, q, AllPolicies)
	}
	a := MaskAnswer{Refuse: r.refuse, Origin: r.origin(), tag: r.tag}
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

// FilterAnswer is the answer to a row filter request. The zero value: no policy.
type FilterAnswer struct {
	Exempt bool
	SQL    string // macros not yet expanded; empty: none
	Refuse string
	Origin Origin
	tag    *Tag
}

// Filter asks which row filter of some policies applies to a table. Call FindTags
// before.
func (e *Engine) Filter(q *Request, of Phases) FilterAnswer {
	r := e.evaluate(model.RowFilterPolicy, q, of)
	a := FilterAnswer{Refuse: r.refuse, Origin: r.origin(), tag: r.tag}
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
	q.tag, q.current = a.tag, a.Origin.Policy
	defer func() { q.tag, q.current = nil, nil }()
	return q.Expand(a.Value, true)
}

// Expand replaces the macros in the SQL text of the answer by literals.
func (a *FilterAnswer) Expand(q *Request) (string, error) {
	q.tag, q.current = a.tag, a.Origin.Policy
	defer func() { q.tag, q.current = nil, nil }()
	return q.Expand(a.SQL, true)
}

// TagFilters reports whether any policy on tags filters rows.
func (e *Engine) TagFilters() bool {
	t := e.tagPolicies
	return t != nil && len(t.byTag[model.RowFilterPolicy])+len(t.others[model.RowFilterPolicy]) > 0
}

// HasTags reports whether the tag document gives tags to any resource.
func (e *Engine) HasTags() bool { return len(e.tags) > 0 }

// MaskColumns says what mask policies of the service may act on a table.
type MaskColumns struct {
	Any   bool          // some may act
	Wild  bool          // some may act on other columns than the named ones
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
		out.Wild = true // a zone may hold single columns
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
		if column.name != "column" || !plain(column) {
			out.Wild = true
			continue
		}
		for _, v := range column.values {
			n := NamedColumn{x.pol, v.raw}
			if !seen[n] {
				seen[n] = true
				out.Named = append(out.Named, n)
			}
		}
	}
	return out
}
