package engine

import (
	"context"
	"slices"
	"strings"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
)

// keeper is what keeps the access policies. The first policy source that can be
// written and has an object gate is the one in which statements grant.
func (st *statement) keeper() (grants.Keeper, error) {
	for _, a := range st.engine.administrators {
		if p, ok := a.(grants.Provider); ok {
			if k := p.Grants(); k != nil {
				return k, nil
			}
		}
	}
	return nil, fault.New(fault.Unsupported, "access is not managed by this server: no policy source of it can be written and has a polaris-service; grant where the policies are kept, or configure one (docs/grants.md)")
}

// identities are the names by which policies know the principal.
func (st *statement) identities() []policy.Grantee {
	out := []policy.Grantee{{Kind: policy.UserGrantee, Name: st.principal.Name}, {Kind: policy.GroupGrantee, Name: policy.Public}}
	groups := slices.Clone(st.principal.Groups)
	if states, err := st.policies(); err == nil {
		for _, s := range states {
			if g, ok := s.(policy.Grouper); ok {
				groups = append(groups, g.Groups(st.principal)...)
			}
		}
	}
	for _, g := range groups {
		if x := (policy.Grantee{Kind: policy.GroupGrantee, Name: g}); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	roles := st.principal.ActiveRoles
	if roles == nil {
		roles = st.heldRoles()
	}
	for _, r := range roles {
		out = append(out, policy.Grantee{Kind: policy.RoleGrantee, Name: r})
	}
	return out
}

// heldRoles are the roles that the principal has, by whatever way, sorted.
func (st *statement) heldRoles() []string {
	roles := slices.Clone(st.principal.Roles)
	if states, err := st.policies(); err == nil {
		for _, s := range states {
			roles = append(roles, s.Roles(st.principal)...)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

// grantRun is GRANT, REVOKE or DENY.
func (st *statement) grantRun(ctx context.Context, x *parse.Grant) (*Result, error) {
	st.grantees = granteeTexts(x.Grantees)
	k, s, notes, err := st.grantStatement(ctx, x)
	if err != nil {
		return nil, err
	}
	if len(s.Targets) == 0 && !s.Everything {
		return st.warned(notes), nil
	}
	out, err := k.Apply(ctx, st.author(), s)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Targets {
		st.changed = append(st.changed, permission{object: t.Object.Policy(), rights: []policy.Privilege{policy.Privilege(strings.ToLower(string(s.Verb)) + " " + t.Privilege)}})
	}
	if s.Everything {
		for _, c := range out.Changes {
			st.changed = append(st.changed, permission{object: c.Resource.Object().Policy(), rights: []policy.Privilege{"revoke ALL"}})
		}
	}
	notes = append(notes, out.Notices...)
	s.Grantees = out.Grantees
	return st.warned(append(notes, st.effects(s)...)), nil
}

func granteeTexts(list []parse.Grantee) []string {
	var out []string
	for _, g := range granteesOf(list) {
		out = append(out, granteeText(g))
	}
	return out
}

// explainGrant is EXPLAIN of a grant: the difference that it would make.
func (st *statement) explainGrant(ctx context.Context, x *parse.ExplainGrant) (*Result, error) {
	k, s, notes, err := st.grantStatement(ctx, x.Grant)
	if err != nil {
		return nil, err
	}
	if len(s.Targets) == 0 && !s.Everything {
		return st.differences(nil, notes), nil
	}
	o, err := k.Plan(ctx, s)
	if err != nil {
		return nil, err
	}
	return st.differences(o.Changes, append(notes, o.Notices...)), nil
}

// differences shows what changes make of policies.
func (st *statement) differences(changes []grants.Change, notes []string) *Result {
	out := table("policy", "resource", "change", "what", "grantee", "rights")
	for _, c := range changes {
		change, p := "alter", c.After
		switch {
		case c.Before == nil:
			change = "create"
		case c.After == nil:
			change, p = "drop", c.Before
		}
		for _, d := range grants.Diff(c.Before, c.After) {
			if d.Effect == "label" {
				// Those that every policy of this server bears say nothing about a grant.
				d.What = slices.DeleteFunc(slices.Clone(d.What), func(l string) bool { return strings.HasPrefix(l, "managed-by:") || strings.HasPrefix(l, "sqe:by=") })
				if len(d.What) == 0 {
					continue
				}
			}
			what := map[bool]string{true: "add ", false: "remove "}[d.Added] + d.Effect
			who := ""
			if d.Grantee.Name != "" {
				who = granteeText(d.Grantee)
			}
			out.row(p.Name, c.Resource.String(), change, what, who, strings.Join(d.What, ", "))
		}
	}
	st.session.vars.SetWarnings(notes)
	res := out.result()
	res.Warnings = st.session.vars.WarningCount()
	return res
}

// cleanupTraversal is CALL system.cleanup_traversal: it takes back, or with dry_run
// shows, rights that lead to nothing.
func (st *statement) cleanupTraversal(ctx context.Context, x *parse.CleanupTraversal) (*Result, error) {
	k, err := st.roleKeeper(ctx, "CALL system.cleanup_traversal", "take back what leads to nothing")
	if err != nil {
		return nil, err
	}
	var o *grants.Outcome
	if x.DryRun {
		now, err := k.Access(ctx)
		if err != nil {
			return nil, err
		}
		o = grants.Clean(now, st.principal.Name)
	} else if o, err = k.Clean(ctx, st.author()); err != nil {
		return nil, err
	}
	return st.differences(o.Changes, nil), nil
}

// grantStatement resolves the names of a statement, and finds what keeps its grants.
func (st *statement) grantStatement(ctx context.Context, x *parse.Grant) (grants.Keeper, *grants.Statement, []string, error) {
	s := &grants.Statement{
		Verb: grants.Verb(x.Verb), Grantees: granteesOf(x.Grantees), Option: x.Option, By: st.principal.Name,
		Administrator: st.principal.Admin, Identities: st.identities(),
	}
	k, none := st.keeper()
	if none == nil {
		var err error
		if s.Administrator, err = k.Administers(ctx, s.By, s.Administrator); err != nil {
			return nil, nil, nil, err
		}
	}
	if s.Everything = x.Everything; s.Everything {
		s.Elsewhere = map[string]bool{}
		for c := range st.engine.managedBy {
			s.Elsewhere[c] = true
		}
	}
	r := &grantResolver{statement: st, revoke: s.Verb == grants.Revoke, all: s.Administrator}
	for _, o := range x.Objects {
		for _, p := range x.Privileges {
			name, err := grants.Canonical(p)
			if err != nil {
				return nil, nil, nil, err
			}
			objects, err := r.targets(ctx, o, p, name, s)
			if err != nil {
				return nil, nil, nil, err
			}
			for _, object := range objects {
				if where, ok := st.engine.managedBy[object.Catalog]; ok {
					return nil, nil, nil, fault.New(fault.Unsupported, "access to catalog '%s' is not managed by this server, but by %s; %s it there", object.Catalog, where, s.Verb)
				}
				if err := st.passesOn(s, p, object); err != nil {
					return nil, nil, nil, err
				}
				s.Targets = append(s.Targets, grants.Target{Privilege: p, Object: object})
			}
		}
	}
	return k, s, r.notes, none
}

// passesOn refuses to give others what is denied to oneself.
func (st *statement) passesOn(s *grants.Statement, privilege string, o grants.Object) error {
	if s.Verb != grants.Grant || s.Administrator {
		return nil
	}
	d, err := decides(privilege, o, st.authorize)
	if err == nil && d.Reason == policy.ExplicitDeny {
		err = fault.New(fault.Denied, "GRANT command denied to user '%s' for '%s': what is denied to somebody cannot be passed on", st.principal.Name, o)
	}
	return err
}
