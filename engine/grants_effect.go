package engine

import (
	"context"
	"fmt"
	"strings"

	"sqe/engine/parse"
	"sqe/grants"
	"sqe/identity"
	"sqe/policy"
	"sqe/rewrite"
)

// something is a table or schema of which no policy knows the name: what holds for
// it holds for all of its place.
const something = "\x00"

// probes are the questions whose answers say whether a privilege holds on an object.
func probes(privilege string, o grants.Object) (policy.Object, []policy.Privilege) {
	name, err := grants.Canonical(privilege)
	if err != nil {
		return policy.Object{}, nil
	}
	if o.View {
		switch name {
		case "SELECT":
			name = "SELECT VIEW"
		case "DROP":
			name = "DROP VIEW"
		}
	}
	q := o.Policy()
	q.View = o.View || name == "SELECT VIEW" || name == "DROP VIEW"
	if q.Name == grants.Any {
		q.Name = something
	}
	if len(q.Namespace) == 1 && q.Namespace[0] == grants.Any {
		q.Namespace = []string{something}
	}
	var rights []policy.Privilege
	for _, r := range grants.Needs(name, o.Level()) {
		if rights = append(rights, policy.Privilege(r)); rights[len(rights)-1] == tableDataWrite {
			rights = append(rights, policy.TableDataRead) // as every statement that writes rows asks
		}
	}
	return q, rights
}

// decides asks for a privilege on an object: all of its rights, one by one. It
// returns the decision that says no, or the last one.
func decides(privilege string, o grants.Object, ask func(policy.Object, policy.Privilege) (policy.Decision, error)) (policy.Decision, error) {
	q, rights := probes(privilege, o)
	d := policy.Decision{Reason: policy.NoGrant}
	for _, r := range rights {
		var err error
		if d, err = ask(q, r); err != nil || !d.Allow {
			return d, err
		}
	}
	return d, nil
}

// probe asks the object gate of every source about a grantee.
func (st *statement) probe(g policy.Grantee) func(policy.Object, policy.Privilege) (policy.Decision, error) {
	return func(o policy.Object, p policy.Privilege) (policy.Decision, error) {
		states, err := st.policies()
		if err != nil {
			return policy.Decision{}, err
		}
		var all []policy.Decision
		for _, s := range states {
			d := policy.Decision{Reason: policy.NotDecided}
			if x, ok := s.(policy.Prober); ok {
				d = x.Probe(g, o, p)
			}
			all = append(all, d)
		}
		return policy.MergeDecisions(all...), nil
	}
}

// known is a user as far as this server and its policy sources know one who is not
// logged in. Conditions on addresses are answered as for the session that asks.
func (st *statement) known(name string) (p identity.Principal, configured bool) {
	if st.engine.principals != nil {
		if p, ok := st.engine.principals(name); ok {
			p.Address = st.principal.Address
			return p, true
		}
	}
	return identity.Principal{Name: name, Address: st.principal.Address}, false
}

// asker is how to ask what a grantee may do.
func (st *statement) asker(g policy.Grantee) func(policy.Object, policy.Privilege) (policy.Decision, error) {
	if g.Kind != policy.UserGrantee {
		return st.probe(g)
	}
	other := &statement{engine: st.engine, session: st.session, started: st.started, states: st.states, version: st.version}
	other.principal, _ = st.known(g.Name)
	if g.Name == st.principal.Name {
		other.principal = st.principal
	}
	return other.authorize
}

// effects asks, after a change, whether it has the effect that it was made for.
func (st *statement) effects(s *grants.Statement) []string {
	st.states = nil // those of before the change
	if _, err := st.policies(); err != nil {
		return []string{"whether it has an effect is not known now: " + err.Error()}
	}
	if s.Option && s.Verb == grants.Revoke {
		return nil
	}
	var out []string
	for _, t := range targets(s) {
		for _, g := range s.Grantees {
			d, err := decides(t.Privilege, t.Object, st.asker(g))
			if err != nil {
				return append(out, "whether it has an effect is not known now: "+err.Error())
			}
			if d.Reason == policy.NotDecided {
				return append(out, "no policy source of this server has an object gate, so it is not known whether it has an effect")
			}
			why := ""
			if st.principal.Admin {
				why = originsText(d.By)
			}
			switch name := strings.ToUpper(t.Privilege); {
			case s.Verb == grants.Grant && !d.Allow && d.Reason == policy.ExplicitDeny:
				out = append(out, fmt.Sprintf("%s has no %s on %s all the same: a denial comes first%s", granteeText(g), name, t.Object, why))
			case s.Verb == grants.Grant && !d.Allow:
				out = append(out, fmt.Sprintf("the grant has no effect: %s has no %s on %s%s", granteeText(g), name, t.Object, why))
			case s.Verb == grants.Deny && d.Allow:
				out = append(out, fmt.Sprintf("the denial has no effect: %s has %s on %s%s", granteeText(g), name, t.Object, why))
			case s.Verb == grants.Revoke && d.Allow && len(grants.Needs(canonical(t.Privilege), t.Object.Level())) > 0:
				out = append(out, fmt.Sprintf("%s still has %s on %s%s", granteeText(g), name, t.Object, why))
			}
		}
	}
	return out
}

// targets are those of a statement; after REVOKE ALL everything that one could have
// on the object.
func targets(s *grants.Statement) []grants.Target {
	var out []grants.Target
	for _, t := range s.Targets {
		if s.Verb != grants.Revoke || canonical(t.Privilege) != grants.All {
			out = append(out, t)
			continue
		}
		for _, p := range grants.Privileges() {
			if _, deepest := grants.Binds(p); deepest == t.Object.Level() && p != grants.All && (!t.Object.View || viewPrivilege(p)) {
				out = append(out, grants.Target{Privilege: p, Object: t.Object})
			}
		}
	}
	return out
}

func viewPrivilege(name string) bool { return name == "SELECT VIEW" || name == "DROP VIEW" }

func canonical(privilege string) string {
	name, err := grants.Canonical(privilege)
	if err != nil {
		return ""
	}
	return name
}

// originsText is where a decision comes from, for an administrator; it begins with
// ", by".
func originsText(by []policy.Origin) string {
	if len(by) == 0 {
		return ""
	}
	parts := make([]string, len(by))
	for i := range by {
		parts[i] = rewrite.OriginText(&by[i])
		if by[i].Via != "" && !strings.Contains(parts[i], by[i].Via) {
			parts[i] += " (" + by[i].Via + ")"
		}
	}
	return ", by " + strings.Join(parts, "; ")
}

// impersonated is the statement as somebody else would see it, for an administrator.
// It is only to be explained: it must not yield rows. What the policy server does not
// have of that person is told, and what counts in its place.
func (st *statement) impersonated(ctx context.Context, as *parse.Impersonation) (who *statement, unknown, notes []string, err error) {
	if err := st.administers(); err != nil {
		return nil, nil, nil, err
	}
	if _, err := st.policies(); err != nil {
		return nil, nil, nil, err
	}
	p, configured := st.known(as.User)
	if as.Roles != nil {
		p.Roles = as.Roles
	}
	named := []policy.Grantee{{Kind: policy.UserGrantee, Name: as.User}}
	for _, r := range as.Roles {
		named = append(named, policy.Grantee{Kind: policy.RoleGrantee, Name: r})
	}
	if !configured && as.Roles == nil {
		notes = append(notes, "the user is not in the configuration of this server; groups and roles count as the policy sources know them, not what a login would bring (WITH ROLE names roles)")
	}
	return st.simulated(p), st.unknown(ctx, named...), notes, nil
}
