package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/grants"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// grantTable is the answer of the statements that list grants.
func grantTable() *textTable {
	return typedTable(
		plan.Column{Name: "privilege"}, plan.Column{Name: "resource"}, plan.Column{Name: "grantee_type"}, plan.Column{Name: "grantee_name"},
		plan.Column{Name: "effect"}, plan.Column{Name: "granted_by"}, plan.Column{Name: "granted_at"},
		plan.Column{Name: "grant_option", Type: plan.Bool}, plan.Column{Name: "policy"}, plan.Column{Name: "note"},
	)
}

func grantRow(out *textTable, r grants.Row, notes ...string) {
	effect, at := "ALLOW", ""
	if r.Deny {
		effect = "DENY"
	}
	if r.At != 0 {
		at = time.UnixMilli(r.At).UTC().Format(time.RFC3339)
	}
	if r.Way {
		notes = append(notes, "on the way to what was granted inside")
	}
	if len(r.Only) > 0 {
		notes = append(notes, "restricted: "+strings.Join(r.Only, ", "))
	}
	out.row(r.Privilege, r.Object, strings.ToUpper(string(r.Grantee.Kind)), r.Grantee.Name, effect, strings.Join(r.By, ", "), at, r.Option, r.Policy, strings.Join(notes, "; "))
}

// listGrants is SHOW GRANTS ON an object, or TO a grantee. Everybody may see what is
// granted to oneself, one's groups and roles; the rest is for administrators.
func (st *statement) listGrants(ctx context.Context, x *parse.ListGrants) (*Result, error) {
	own := st.identities()
	if x.To != nil && !st.principal.Admin && !slices.Contains(own, granteesOf([]parse.Grantee{*x.To})[0]) {
		return nil, fault.New(fault.Denied, "only an administrator of this server may see the grants of others; ask one")
	}
	k, err := st.keeper()
	if err != nil {
		return nil, err
	}
	snapshot, err := k.Access(ctx)
	if err != nil {
		return nil, err
	}
	if x.On != nil {
		r := &grantResolver{statement: st, revoke: true, all: st.principal.Admin}
		o, err := r.object(ctx, *x.On, "")
		if err != nil {
			return nil, err
		}
		snapshot = snapshot.On(o)
	}
	rows, err := st.grantRows(ctx, k, snapshot, func(g policy.Grantee) bool {
		return (x.To == nil || g == granteesOf([]parse.Grantee{*x.To})[0]) && (st.principal.Admin || slices.Contains(own, g))
	})
	if err != nil {
		return nil, err
	}
	out := grantTable()
	for _, row := range rows {
		grantRow(out, row)
	}
	if x.To != nil {
		return st.noticed(out, st.unknown(ctx, granteesOf([]parse.Grantee{*x.To})...)), nil
	}
	return out.result(), nil
}

// grantRows are the rows for some grantees, complete. Who granted, and with which
// policy, is for administrators.
func (st *statement) grantRows(ctx context.Context, k grants.Keeper, s *grants.Snapshot, of func(policy.Grantee) bool) ([]grants.Row, error) {
	others := func(r grants.Row) bool { return !of(r.Grantee) }
	s = s.Of(slices.DeleteFunc(s.List(), others))
	if err := k.Complete(ctx, s); err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(s.List(), others)
	if !st.principal.Admin {
		for i := range rows {
			rows[i].Policy, rows[i].By = "", nil
		}
	}
	return rows, nil
}

// effectiveGrants is SHOW EFFECTIVE GRANTS: everything that says something about a
// user, with the way by which it does.
func (st *statement) effectiveGrants(ctx context.Context, x *parse.ShowEffectiveGrants) (*Result, error) {
	if x.User != "" && x.User != st.principal.Name && !st.principal.Admin {
		return nil, fault.New(fault.Denied, "only an administrator of this server may see the grants of others; ask one")
	}
	k, err := st.keeper()
	if err != nil {
		return nil, err
	}
	snapshot, err := k.Access(ctx)
	if err != nil {
		return nil, err
	}
	p := st.principal
	if x.User != "" && x.User != p.Name {
		p, _ = st.known(x.User)
	}
	ways, err := st.ways(ctx, k, p)
	if err != nil {
		return nil, err
	}
	rows, err := st.grantRows(ctx, k, snapshot, func(g policy.Grantee) bool { return ways[g] != "" })
	if err != nil {
		return nil, err
	}
	out := grantTable()
	for _, row := range rows {
		grantRow(out, row, ways[row.Grantee])
	}
	return st.noticed(out, st.unknown(ctx, policy.Grantee{Kind: policy.UserGrantee, Name: p.Name})), nil
}

// ways are the grantees that a principal is, each with how.
func (st *statement) ways(ctx context.Context, k grants.Keeper, p identity.Principal) (map[policy.Grantee]string, error) {
	user := policy.Grantee{Kind: policy.UserGrantee, Name: p.Name}
	out := map[policy.Grantee]string{
		user: "directly",
		{Kind: policy.GroupGrantee, Name: policy.Public}: "as everybody",
	}
	more, err := k.GroupsOf(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	for _, g := range append(slices.Clone(p.Groups), more...) {
		out[policy.Grantee{Kind: policy.GroupGrantee, Name: g}] = "by the group " + g
	}
	roles, err := k.Roles(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range p.Roles {
		out[policy.Grantee{Kind: policy.RoleGrantee, Name: r}] = "by the role " + r + ", which the login brings"
	}
	for changed := true; changed; {
		changed = false
		for _, r := range roles {
			role := policy.Grantee{Kind: policy.RoleGrantee, Name: r.Name}
			if _, ok := out[role]; ok {
				continue
			}
			for _, m := range r.Members {
				if way, ok := out[m]; ok {
					switch {
					case m == user:
						out[role] = "by the role " + r.Name
					case m.Kind == policy.RoleGrantee:
						out[role] = way + " and so the role " + r.Name
					default:
						out[role] = "by the role " + r.Name + " of the " + string(m.Kind) + " " + m.Name
					}
					changed = true
					break
				}
			}
		}
	}
	return out, nil
}

// noticed is a result with warnings.
func (st *statement) noticed(out *textTable, notes []string) *Result {
	res := out.result()
	if len(notes) > 0 {
		st.session.vars.SetWarnings(notes)
		res.Warnings = st.session.vars.WarningCount()
	}
	return res
}

// unknown says which grantees the policy server does not have, so that a name that was
// misspelt does not look like one that has nothing. Only an administrator asks about
// others.
func (st *statement) unknown(ctx context.Context, list ...policy.Grantee) []string {
	k, err := st.keeper()
	if err != nil || !st.principal.Admin {
		return nil
	}
	var out []string
	for _, g := range list {
		self := g.Kind == policy.UserGrantee && g.Name == st.principal.Name
		if err := k.Exists(ctx, g); !self && fault.Is(err, fault.NoPrincipal) {
			out = append(out, err.Error())
		}
	}
	return out
}

// showPrivileges is SHOW PRIVILEGES: those that can be granted, in the columns that
// MySQL has for it.
func (st *statement) showPrivileges() *Result {
	out := table("Privilege", "Context", "Comment")
	also := map[string][]string{}
	for alias, name := range grants.Aliases() {
		also[name] = append(also[name], alias)
	}
	for _, p := range grants.Privileges() {
		_, deepest := grants.Binds(p)
		on := map[grants.Level]string{grants.CatalogLevel: "Catalogs", grants.NamespaceLevel: "Schemas", grants.TableLevel: "Tables"}[deepest]
		if p == "SELECT VIEW" || p == "DROP VIEW" {
			on = "Views"
		}
		comment := ""
		if slices.Sort(also[p]); len(also[p]) > 0 {
			comment = "also called " + strings.Join(also[p], ", ")
		}
		out.row(p, on, comment)
	}
	return out.result()
}

// checkAccess is CHECK ACCESS: what the engine itself would decide.
func (st *statement) checkAccess(ctx context.Context, x *parse.CheckAccess) (*Result, error) {
	g := policy.Grantee{Kind: policy.UserGrantee, Name: st.principal.Name}
	if x.For.Name != "" {
		g = granteesOf([]parse.Grantee{x.For})[0]
	}
	if !st.principal.Admin && g != (policy.Grantee{Kind: policy.UserGrantee, Name: st.principal.Name}) {
		return nil, fault.New(fault.Denied, "only an administrator of this server may check the access of others; ask one")
	}
	name, err := grants.Canonical(x.Privilege)
	if err != nil {
		return nil, err
	}
	r := &grantResolver{statement: st, revoke: true, all: st.principal.Admin}
	o, err := r.object(ctx, x.Object, name)
	if err != nil {
		return nil, err
	}
	if _, _, err := grants.Plan(grants.Any, x.Privilege, o); err != nil {
		return nil, err
	}
	if _, err := st.policies(); err != nil {
		return nil, err
	}
	d, err := decides(x.Privilege, o, st.asker(g))
	if err != nil {
		return nil, err
	}
	out := typedTable(plan.Column{Name: "allowed", Type: plan.Bool}, plan.Column{Name: "reason"})
	out.row(d.Allow, st.reasonText(d, g, x.Privilege, o))
	return st.noticed(out, st.unknown(ctx, g)), nil
}

// reasonText says why a decision is what it is.
func (st *statement) reasonText(d policy.Decision, g policy.Grantee, privilege string, o grants.Object) string {
	by := ""
	if st.principal.Admin {
		by = originsText(d.By)
	}
	switch {
	case d.Allow:
		return "allowed" + by
	case d.Reason == policy.ExplicitDeny:
		return "denied" + by
	case d.Reason == policy.NotDecided:
		return "no policy source of this server has an object gate"
	case d.Reason == policy.SourceError:
		return "a policy source cannot tell" + by
	}
	return fmt.Sprintf("nothing gives %s %s on %s", granteeText(g), strings.ToUpper(privilege), o)
}

// showAccess is SHOW ACCESS ON an object: who may do what with it and why, and for a
// table what of it they see.
func (st *statement) showAccess(ctx context.Context, x *parse.ShowAccess) (*Result, error) {
	if err := st.administers(); err != nil {
		return nil, err
	}
	k, err := st.keeper()
	if err != nil {
		return nil, err
	}
	r := &grantResolver{statement: st, revoke: true, all: st.principal.Admin}
	o, err := r.object(ctx, x.Object, "")
	if err != nil {
		return nil, err
	}
	snapshot, err := k.Access(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := st.policies(); err != nil {
		return nil, err
	}
	var who []policy.Grantee
	for _, row := range snapshot.On(o).List() {
		if !slices.Contains(who, row.Grantee) {
			who = append(who, row.Grantee)
		}
	}
	slices.SortFunc(who, func(a, b policy.Grantee) int {
		return strings.Compare(string(a.Kind)+"\x00"+a.Name, string(b.Kind)+"\x00"+b.Name)
	})
	out := table("grantee_type", "grantee_name", "privilege", "effect", "why", "column", "detail")
	for _, g := range who {
		reads, err := st.accessOf(g, o, out)
		if err != nil {
			return nil, err
		}
		if reads && o.Level() == grants.TableLevel && !o.View && !o.Wild() {
			if err := st.seenBy(ctx, g, o, out); err != nil {
				return nil, err
			}
		}
	}
	return out.result(), nil
}

// accessOf writes what a grantee may do with an object; reads says whether it may
// SELECT.
func (st *statement) accessOf(g policy.Grantee, o grants.Object, out *textTable) (reads bool, err error) {
	for _, p := range grants.Privileges() {
		_, deepest := grants.Binds(p)
		if deepest != o.Level() || p == "MANAGE" || o.Level() == grants.TableLevel && viewPrivilege(p) != o.View {
			continue
		}
		d, err := decides(p, o, st.asker(g))
		if err != nil {
			return false, err
		}
		switch {
		case d.Allow:
			out.row(strings.ToUpper(string(g.Kind)), g.Name, p, "ALLOW", strings.TrimPrefix(originsText(d.By), ", "), "", "")
			reads = reads || p == "SELECT"
		case d.Reason == policy.ExplicitDeny:
			out.row(strings.ToUpper(string(g.Kind)), g.Name, p, "DENY", strings.TrimPrefix(originsText(d.By), ", "), "", "")
		}
	}
	return reads, nil
}

// seenBy writes what filters and masks leave of a table for a grantee.
func (st *statement) seenBy(ctx context.Context, g policy.Grantee, o grants.Object, out *textTable) error {
	t, err := st.engine.definedTable(ctx, plan.TableName{Catalog: o.Catalog, Namespace: o.Namespace, Name: o.Name})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var p identity.Principal
	switch g.Kind {
	case policy.UserGrantee:
		p, _ = st.known(g.Name)
	case policy.RoleGrantee:
		p = identity.Principal{Name: something, Roles: []string{g.Name}}
	default:
		p = identity.Principal{Name: something, Groups: []string{g.Name}}
	}
	other := st.simulated(p)
	b, err := other.bound(ctx, t)
	kind, name := strings.ToUpper(string(g.Kind)), g.Name
	if fault.Is(err, fault.PolicyBroken) {
		out.row(kind, name, "SELECT", "DENY", "", "", "a policy cannot be applied, so the table is refused")
		return nil
	}
	if err != nil {
		return err
	}
	record := b.Record()
	for _, f := range t.Fields {
		record.Used = append(record.Used, f.ID)
	}
	for _, l := range (&rewrite.Record{Tables: []rewrite.TableRecord{record}}).Lines() {
		if l.Effect != "" && l.Policy != "" {
			out.row(kind, name, "SELECT", "ALLOW", l.Policy, l.Column, l.Effect)
		}
	}
	return nil
}

// simulated is a statement of somebody else over the same policies. It must not yield
// rows.
func (st *statement) simulated(p identity.Principal) *statement {
	return &statement{
		engine: st.engine, session: st.session, principal: p, started: st.started, tables: map[string]*rewrite.Bound{},
		states: st.states, version: st.version,
	}
}
