package grants

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"sqe/fault"
	"sqe/policy"
)

// Verb is what a statement does.
type Verb string

// The verbs.
const (
	Grant  Verb = "GRANT"
	Revoke Verb = "REVOKE"
	Deny   Verb = "DENY"
)

// Target is a privilege, by any of its names, and what it is on.
type Target struct {
	Privilege string
	Object    Object
}

// Statement is a GRANT, a REVOKE or a DENY. The zero value may do nothing.
type Statement struct {
	Verb     Verb
	Targets  []Target
	Grantees []policy.Grantee
	// Option is WITH GRANT OPTION of a GRANT. A REVOKE with it takes the right to
	// pass on and leaves the privilege.
	Option bool
	By     string // who grants
	// Administrator may do everything. Others may give and take what Identities, by
	// which policies name them, may pass on.
	Administrator bool
	Identities    []policy.Grantee
	// Everything is of a REVOKE without targets: all that the grantees were given by
	// name, wherever By may take it, but not on the catalogs Elsewhere. Denials stay:
	// taking back never opens anything that was not named.
	Everything bool
	Elsewhere  map[string]bool
}

// Change is what a statement does to the policy on one resource; nil: there is
// none.
type Change struct {
	Resource      Resource
	Before, After *Policy
}

// Outcome is what a statement does.
type Outcome struct {
	After *Snapshot
	// Grantees as they are written.
	Grantees []policy.Grantee
	// Changes in the order in which they are to be made: whenever only the first of
	// them were made, nobody has access who is not to have it.
	Changes []Change
	// Notices are what whoever grants should know.
	Notices []string
}

// run is a statement at work.
type run struct {
	*Statement
	before  *Snapshot
	now     *Snapshot
	touched []Resource
	notices []string
}

// Run does the statement to the policies of a snapshot, which stays as it is.
// Errors are faults, and then nothing is to be done.
func (s *Statement) Run(before *Snapshot) (*Outcome, error) {
	r := &run{Statement: s, before: before, now: before}
	switch {
	case s.Everything && (s.Verb != Revoke || s.Option || len(s.Targets) > 0):
		return nil, fault.New(fault.Internal, "everything is only taken back")
	case len(s.Targets) == 0 && !s.Everything || len(s.Grantees) == 0:
		return nil, fault.New(fault.BadStatement, "%s needs privileges, objects and grantees", s.Verb)
	case s.By == "":
		return nil, fault.New(fault.Denied, "%s needs somebody who grants", s.Verb)
	case !s.Administrator && s.Verb == Deny:
		return nil, fault.New(fault.Denied, "only an administrator may DENY; ask one")
	}
	for _, t := range s.Targets {
		for _, g := range s.Grantees {
			if err := r.one(t.Privilege, t.Object, g); err != nil {
				return nil, err
			}
		}
	}
	if s.Everything {
		for _, g := range s.Grantees {
			if err := r.everything(g); err != nil {
				return nil, err
			}
		}
	}
	return r.outcome(), nil
}

func (r *run) outcome() *Outcome {
	out := &Outcome{After: r.now, Grantees: r.Grantees, Notices: r.notices}
	for _, at := range r.touched {
		c := Change{Resource: at, Before: r.before.At(at), After: r.now.At(at)}
		if len(Diff(c.Before, c.After)) > 0 {
			out.Changes = append(out.Changes, c)
		}
	}
	// Access is opened from outside and closed from inside, so that what was done of
	// a part is harmless.
	slices.SortStableFunc(out.Changes, func(a, b Change) int {
		d := depth(a.Resource) - depth(b.Resource)
		if r.Verb == Revoke {
			d = -d
		}
		return d
	})
	return out
}

func depth(r Resource) int { return int(r.Level())*1000 + len(r.Object().Namespace) }

func (r *run) notice(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notices, n) {
		r.notices = append(r.notices, n)
	}
}

func (r *run) one(privilege string, o Object, g policy.Grantee) error {
	if err := checkGrantee(g); err != nil {
		return err
	}
	if name, err := Canonical(privilege); err == nil && name == All && r.Verb == Revoke && !r.Option {
		if err := o.check(); err != nil {
			return err
		}
		return r.revokeAll(o, g)
	}
	name, steps, err := Plan(r.before.Root, privilege, o)
	if err != nil {
		return err
	}
	if r.Verb != Revoke {
		r.advise(name, o)
	}
	switch r.Verb {
	case Grant:
		return r.grant(name, steps, g)
	case Deny:
		r.deny(name, steps[len(steps)-1], g)
		return nil
	case Revoke:
		if r.Option {
			return r.revokeOption(name, steps[len(steps)-1], g)
		}
		return r.revoke(name, o, steps[len(steps)-1], g)
	}
	return fault.New(fault.Internal, "a statement about grants without a verb")
}

func checkGrantee(g policy.Grantee) error {
	switch {
	case g.Name == "":
		return fault.New(fault.BadStatement, "the name of the %s is empty", g.Kind)
	case strings.HasPrefix(g.Name, "{"):
		return fault.New(fault.BadStatement, "%s stands for more than one user in the policy server; TO PUBLIC is for everybody", g.Name)
	case g.Kind != policy.UserGrantee && g.Kind != policy.GroupGrantee && g.Kind != policy.RoleGrantee:
		return fault.New(fault.BadStatement, "a grantee is a USER, a ROLE or a GROUP")
	}
	return nil
}

// advise tells of grants that are less or more than they may seem.
func (r *run) advise(privilege string, o Object) {
	_, deepest := Binds(privilege)
	verb := map[Verb]string{Grant: "lets one find", Deny: "keeps one from finding"}[r.Verb]
	switch {
	case privilege == using && o.Level() < deepest:
	case o.Level() < deepest && deepest == NamespaceLevel:
		r.notice("%s ON CATALOG %s %s it; the privilege itself is one on a schema, and is given ON SCHEMA %s.name", privilege, o, verb, o)
	case o.Level() < deepest:
		what := onWords[o.Level()]
		things := "TABLES"
		if privilege == viewing || privilege == "DROP VIEW" {
			things = "VIEWS"
		}
		r.notice("%s ON %s %s %s it and says nothing of the tables and views in it; for those name them, or ON ALL %s IN %s %s", privilege, what, o, verb, things, what, o)
	case privilege == All || privilege == "MANAGE":
		r.notice("%s ON CATALOG %s is for the catalog itself: Polaris and this server do not take it for its schemas and tables, which have grants of their own (ON ALL TABLES IN CATALOG %s)", privilege, o, o)
	case o.Wild() && o.Namespace[0] != Any && r.before.Nested:
		r.notice("it is also for the schemas inside %s", Object{Catalog: o.Catalog, Namespace: o.Namespace})
	case o.Wild() && o.Namespace[0] != Any:
		r.notice("this server takes it for what is directly in %s; Polaris, and the engines behind it, also take it for the schemas inside it", Object{Catalog: o.Catalog, Namespace: o.Namespace})
	}
	if left, by := unenforced(privilege); r.Verb == Grant && o.Level() == TableLevel && len(left) > 0 {
		r.notice("%s is written without %s, but Ranger, and so the catalog, takes %s for them too", privilege, strings.Join(left, ", "), strings.Join(by, ", "))
	}
}

// edit changes the policy on a resource, making it when there is none.
func (r *run) edit(at Resource, f func(p *Policy)) {
	p := r.now.At(at)
	if p == nil {
		p = &Policy{Name: r.name(at), Elements: map[string][]string{}}
		for e, v := range at.Elements() {
			p.Elements[e] = []string{v}
		}
	} else {
		p = p.clone()
	}
	f(p)
	if len(p.Allow)+len(p.Deny) == 0 && !p.Exceptions && ours(p.Name) {
		p = nil
	}
	r.now = r.now.With(at, p)
	if !slices.Contains(r.touched, at) {
		r.touched = append(r.touched, at)
	}
}

// The names of policies that statements make.
const (
	grantName = "sqe-grant-"
	denyName  = "sqe-deny-"
)

// ours reports whether a policy was made by a statement.
func ours(name string) bool {
	return strings.HasPrefix(name, grantName) || strings.HasPrefix(name, denyName)
}

// name is a free name for the policy on a resource.
func (r *run) name(at Resource) string {
	prefix := grantName
	if r.Verb == Deny {
		prefix = denyName
	}
	parts := []string{at.Catalog}
	for _, x := range []string{at.Namespace, at.Table} {
		if x != "" {
			parts = append(parts, strings.NewReplacer("/", "-", Any, "all").Replace(x))
		}
	}
	name := prefix + strings.Join(parts, "-")
	taken := func(n string) bool {
		return slices.ContainsFunc(r.now.Policies, func(p *Policy) bool { return p.Name == n })
	}
	if len(name) > 200 || taken(name) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q", at)
		name = fmt.Sprintf("%.200s-%x", name, h.Sum64())
	}
	return name
}

// may refuses those who may not pass types on.
func (r *run) may(at Resource, types []string) bool {
	return r.Administrator || subset(types, r.before.delegated(at, r.Identities))
}

func (r *run) refused(at Resource, what string) error {
	return fault.New(fault.Denied, "%s command denied to user '%s' for %s: it takes an administrator, or somebody who was given this WITH GRANT OPTION on exactly this %s%s", r.Verb, r.By, at, at.Level(), what)
}

func (r *run) grant(name string, steps []Step, g policy.Grantee) error {
	// Whoever may not grant this learns nothing of what there is.
	if named := steps[len(steps)-1]; !r.may(named.Resource, named.Types) {
		return r.refused(named.Resource, "")
	}
	for _, s := range steps {
		p := r.now.At(s.Resource)
		var missing []string
		if p == nil {
			missing = s.Types
		} else {
			missing = minus(s.Types, held(p.Allow, g, s.Named && r.Option))
		}
		if !s.Named && !r.Administrator && p != nil {
			// What everybody has nobody needs to be given.
			missing = minus(missing, held(p.Allow, policy.Grantee{Kind: policy.GroupGrantee, Name: policy.Public}, false))
		}
		if !s.Named && len(missing) == 0 {
			continue
		}
		need := missing
		if s.Named {
			need = s.Types
		}
		if !r.may(s.Resource, need) {
			prepares := using
			if s.Resource.Level() == NamespaceLevel && slices.Contains(need, "view-list") {
				prepares = viewing // to find views takes more
			}
			return r.refused(s.Resource, fmt.Sprintf(". The %s %s cannot find it yet, and the right to pass on what is in a %s does not reach the %s itself: an administrator prepares it with GRANT %s ON %s %s", g.Kind, g.Name, s.Resource.Level(), s.Resource.Level(), prepares, onWords[s.Resource.Level()], s.Resource.Object()))
		}
		r.edit(s.Resource, func(p *Policy) {
			if p.Allow = give(p.Allow, g, need, s.Named && r.Option); !s.Named {
				for _, t := range missing {
					p.addLabel(label(traversalLabel, g, t))
				}
				return
			}
			p.addLabel(label(grantLabel, g, name))
			p.addLabel(label(grantorLabel, g, r.By))
		})
	}
	return nil
}

func (r *run) deny(name string, s Step, g policy.Grantee) {
	if name == "INSERT" || name == "MODIFY" {
		r.notice("a denial of %s is one of SELECT too: in the language of the policies whoever may not write may not read", name)
	}
	r.edit(s.Resource, func(p *Policy) {
		p.Deny = give(p.Deny, g, s.Types, false)
		p.addLabel(label(denyLabel, g, name))
		p.addLabel(label(denierLabel, g, r.By))
	})
}

func (r *run) revoke(name string, o Object, s Step, g policy.Grantee) error {
	at := s.Resource
	if !r.may(at, s.Types) {
		return r.refused(at, "")
	}
	p := r.now.At(at)
	own := slices.Contains(p.grants(g), name)
	denied := r.lifts(p, name, s, g)
	var have []string
	if p != nil {
		have = intersection(s.Types, held(p.Allow, g, false))
	}
	if !own && len(have) == 0 && !denied {
		r.notice("there is no %s on %s for the %s %s to take back", name, o, g.Kind, g.Name)
		r.leftover(o, g)
		return nil
	}
	others := r.now.explained(p, g, name)
	needed := r.now.needed(at, g)
	gone := minus(minus(have, others), needed)
	if !own && len(have) > 0 {
		if by := r.others(p, g, name, have); len(gone) == 0 && by != "" {
			r.notice("%s on %s was not granted to the %s %s by itself: %s", name, o, g.Kind, g.Name, by)
		} else if len(gone) > 0 {
			r.notice("policy %s gave it to the %s %s without a GRANT; it is taken out there", p.Name, g.Kind, g.Name)
		}
	} else if by := r.others(p, g, name, have); own && by != "" && len(intersection(have, others)) > 0 {
		r.notice("the %s %s keeps a part of it on %s: %s", g.Kind, g.Name, o, by)
	}
	r.edit(at, func(p *Policy) {
		p.Allow = take(p.Allow, g, gone, true)
		p.dropLabel(label(grantLabel, g, name))
		for _, t := range minus(intersection(have, needed), others) {
			if own {
				p.addLabel(label(traversalLabel, g, t))
			}
		}
		if denied {
			r.lift(p, name, s, g)
		}
		r.forget(p, g)
	})
	r.remains(at, g, s.Types)
	r.ascend(o, g)
	return nil
}

// others says which other grants of a grantee, that the statement leaves, have some of
// the types.
func (r *run) others(p *Policy, g policy.Grantee, but string, types []string) string {
	if p == nil {
		return ""
	}
	at, _ := p.resource()
	var by []string
	for _, privilege := range p.grants(g) {
		if privilege != but && !r.takes(privilege, at) && len(intersection(types, planned(at.Root, privilege, at.Object(), at))) > 0 {
			by = append(by, privilege)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return "its grant of " + strings.Join(by, " and ") + " has it"
}

// takes reports whether the statement takes a privilege back too.
func (r *run) takes(privilege string, at Resource) bool {
	return slices.ContainsFunc(r.Targets, func(t Target) bool {
		name, err := Canonical(t.Privilege)
		return err == nil && name == privilege && t.Object.resource(at.Root) == at
	})
}

// forget drops the names of those who granted and denied what is gone.
func (r *run) forget(p *Policy, g policy.Grantee) {
	for what, who := range map[string]string{grantLabel: grantorLabel, denyLabel: denierLabel} {
		if len(p.labelled(what, g)) == 0 {
			for _, by := range p.labelled(who, g) {
				p.dropLabel(label(who, g, by))
			}
		}
	}
}

// remains tells of items that cannot be taken apart and still give some of it.
func (r *run) remains(at Resource, g policy.Grantee, types []string) {
	p := r.now.At(at)
	if p != nil && slices.ContainsFunc(p.Allow, func(i Item) bool { return i.Fixed && i.names(g) && len(intersection(i.Types, types)) > 0 }) {
		r.notice("policy %s also gives it under a condition, which is left as it is: change it in the policy server", p.Name)
	}
}

// ascend takes back the rights on the way to an object that nothing needs any more.
func (r *run) ascend(o Object, g policy.Grantee) {
	above := o.above()
	slices.Reverse(above)
	for _, a := range above {
		at := a.resource(r.before.Root)
		if len(r.now.At(at).labelled(traversalLabel, g)) == 0 {
			continue
		}
		if surplus := r.now.settle(r.now.At(at).clone(), g); !r.may(at, surplus) {
			r.notice("the right to find %s, which the %s %s may need no more, is for an administrator to take back", a, g.Kind, g.Name)
			continue
		}
		r.edit(at, func(p *Policy) {
			p.Allow = take(p.Allow, g, r.now.settle(p, g), true)
		})
	}
}

// leftover takes back what a REVOKE that was interrupted left on the way to an object,
// when it is repeated.
func (r *run) leftover(o Object, g policy.Grantee) {
	if r.Administrator {
		r.ascend(o, g)
	}
}

// lifts reports whether the statement takes a denial back.
func (r *run) lifts(p *Policy, name string, s Step, g policy.Grantee) bool {
	if p == nil {
		return false
	}
	types := held(p.Deny, g, false)
	if len(intersection(types, s.Types)) == 0 {
		return false
	}
	by := p.labelled(denyLabel, g)
	var explained []string
	for _, d := range by {
		explained = union(explained, planned(s.Resource.Root, d, s.Resource.Object(), s.Resource))
	}
	unexplained := minus(types, explained)
	switch {
	case !slices.Contains(by, name) && len(intersection(unexplained, s.Types)) == 0 && len(by) > 0:
		r.notice("the denial of %s on %s to the %s %s stays; REVOKE that to lift it", strings.Join(by, " and "), s.Resource.Object(), g.Kind, g.Name)
		return false
	case !r.Administrator:
		r.notice("policy %s denies it to the %s %s; only an administrator may lift that", p.Name, g.Kind, g.Name)
		return false
	case slices.Contains(by, name), slices.Equal(unexplained, s.Types):
		return true
	}
	r.notice("policy %s denies more than %s, or a part of it, to the %s %s, and still does: REVOKE what was denied, or REVOKE ALL", p.Name, name, g.Kind, g.Name)
	return false
}

// lift takes a denial back, but for what other denials say.
func (r *run) lift(p *Policy, name string, s Step, g policy.Grantee) {
	var others []string
	for _, d := range p.labelled(denyLabel, g) {
		if d != name {
			others = union(others, planned(s.Resource.Root, d, s.Resource.Object(), s.Resource))
		}
	}
	p.Deny = take(p.Deny, g, minus(s.Types, others), true)
	p.dropLabel(label(denyLabel, g, name))
}

// revokeAll takes everything that a grantee has on exactly an object, and its
// denials.
func (r *run) revokeAll(o Object, g policy.Grantee) error {
	at := o.resource(r.before.Root)
	if !r.Administrator && len(r.before.delegated(at, r.Identities)) == 0 {
		return r.refused(at, "")
	}
	p := r.now.At(at)
	var have, denied []string
	if p != nil {
		have, denied = held(p.Allow, g, false), held(p.Deny, g, false)
	}
	if len(have)+len(denied)+len(p.labelled(grantLabel, g)) == 0 {
		r.notice("there is nothing on %s for the %s %s to take back", o, g.Kind, g.Name)
		r.leftover(o, g)
		return nil
	}
	if !r.may(at, have) || len(have) == 0 && !r.Administrator {
		return r.refused(at, "")
	}
	needed := intersection(have, r.now.needed(at, g))
	gone := minus(have, needed)
	r.edit(at, func(p *Policy) {
		p.Allow = take(p.Allow, g, gone, true)
		for _, name := range p.labelled(grantLabel, g) {
			p.dropLabel(label(grantLabel, g, name))
		}
		for _, t := range p.labelled(traversalLabel, g) {
			p.dropLabel(label(traversalLabel, g, t))
		}
		for _, t := range needed {
			p.addLabel(label(traversalLabel, g, t))
		}
		if r.Administrator && !r.Everything {
			p.Deny = take(p.Deny, g, denied, true)
			for _, name := range p.labelled(denyLabel, g) {
				p.dropLabel(label(denyLabel, g, name))
			}
		}
		r.forget(p, g)
	})
	if len(needed) > 0 {
		r.notice("the %s %s keeps the right to find %s: it was granted something inside", g.Kind, g.Name, o)
	}
	if !r.Administrator && !r.Everything && len(denied) > 0 {
		r.notice("policy %s denies something to the %s %s; only an administrator may lift that", p.Name, g.Kind, g.Name)
	}
	r.remains(at, g, append(have, denied...))
	r.ascend(o, g)
	return nil
}

// revokeOption takes the right to pass a privilege on.
func (r *run) revokeOption(name string, s Step, g policy.Grantee) error {
	if !r.may(s.Resource, s.Types) {
		return r.refused(s.Resource, "")
	}
	p := r.now.At(s.Resource)
	var have []string
	if p != nil {
		have = intersection(s.Types, held(p.Allow, g, true))
	}
	if len(have) == 0 {
		r.notice("the %s %s may not pass %s on %s on", g.Kind, g.Name, name, s.Resource.Object())
		return nil
	}
	all := held(p.Allow, g, true)
	var kept []string
	var by []string
	for _, other := range p.grants(g) {
		types := planned(s.Resource.Root, other, s.Resource.Object(), s.Resource)
		if other != name && subset(types, all) && !subset(types, s.Types) {
			kept, by = union(kept, types), append(by, other)
		}
	}
	gone := minus(have, kept)
	if len(by) > 0 && len(gone) < len(have) {
		r.notice("the %s %s may still pass on %s, and what that has of %s", g.Kind, g.Name, strings.Join(by, " and "), name)
	}
	r.edit(s.Resource, func(p *Policy) {
		p.Allow = give(take(p.Allow, g, gone, true), g, gone, false)
	})
	return nil
}
