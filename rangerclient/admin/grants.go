package admin

import (
	"context"
	"slices"
	"strings"
	"sync"

	"sqe/fault"
	"sqe/grants"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// keeper keeps access policies in the polaris service of a server. It does one
// statement at a time.
type keeper struct {
	*Administrator
	lock    sync.Mutex
	members *memberships
}

var (
	_ grants.Keeper   = (*keeper)(nil)
	_ grants.Provider = (*Administrator)(nil)
)

// Grants implements grants.Provider.
func (a *Administrator) Grants() grants.Keeper {
	if a.config.PolarisService == "" {
		return nil
	}
	return a.keeper
}

// access is the policies of the service at one moment.
type access struct {
	*grants.Snapshot
	zones []*model.Zone
	// realm is the name of the one root that there is. Policies are written on every
	// root; where there is one on that root alone it is used as it stands.
	realm  string
	rooted map[grants.Resource]bool
	// others are the policies whose last version is not one that SQE made of the one before.
	others map[int64]bool
}

// place is the resource of a policy on every root, in the words of grants.
func place(elements map[string][]string) grants.Resource {
	r := grants.Resource{Root: grants.Any}
	for element, to := range map[string]*string{"catalog": &r.Catalog, "namespace": &r.Namespace, "table": &r.Table} {
		if v := elements[element]; len(v) == 1 {
			*to = v[0]
		}
	}
	return r
}

// Access implements grants.Keeper.
func (k *keeper) Access(ctx context.Context) (*grants.Snapshot, error) {
	now, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	return now.Snapshot, nil
}

// maxDetails bounds how many policies are asked for one by one.
const maxDetails = 200

// Complete implements grants.Keeper. Lists of a Ranger Admin leave out who made a
// policy; of very many only the first are asked for.
func (k *keeper) Complete(ctx context.Context, s *grants.Snapshot) error {
	for n, p := range s.Policies {
		if n == maxDetails {
			break
		}
		if p.CreatedAt != 0 {
			continue
		}
		whole, err := absent(k.server.Policy(ctx, p.ID))
		if err != nil {
			return k.fault(err, k.service())
		}
		if whole != nil {
			p.CreatedBy, p.CreatedAt = whole.CreatedBy, whole.CreateTime
		}
	}
	return nil
}

func (k *keeper) service() string { return k.config.PolarisService }

func (k *keeper) read(ctx context.Context) (*access, error) {
	list, err := k.server.Policies(ctx, k.service())
	if err != nil {
		return nil, k.fault(err, k.service())
	}
	return k.accessTo(ctx, list)
}

// current is read for a statement that writes. Where lost changes are written again
// that comes first, so that no later statement counts with what is to come back.
func (k *keeper) current(ctx context.Context) (*access, error) {
	if !k.config.ReapplyLost {
		return k.read(ctx)
	}
	for range tries {
		list, err := k.server.Policies(ctx, k.service())
		if err != nil {
			return nil, k.fault(err, k.service())
		}
		restored, err := k.writer.Look(ctx, list)
		if err != nil {
			return nil, k.fault(err, k.service())
		}
		if !restored {
			return k.accessTo(ctx, list)
		}
	}
	return nil, fault.New(fault.Conflict, "somebody else overwrites policies of service %s all the time; repeat the statement", k.service())
}

func (k *keeper) accessTo(ctx context.Context, list []*model.Policy) (_ *access, err error) {
	out := &access{Snapshot: &grants.Snapshot{Root: grants.Any, Nested: k.config.Options.NestedWildcards == rangerclient.WildcardsAsPolaris}, realm: k.config.Options.Realm, rooted: map[grants.Resource]bool{}, others: map[int64]bool{}}
	if out.realm == "" {
		out.realm = rangerclient.DefaultRealm
	}
	if out.zones, err = k.server.Zones(ctx); KindOf(err) == Forbidden {
		// Not everybody who may write policies may read zones. Where no policy is in a
		// zone there is none: a zone is made with policies of its own.
		if slices.ContainsFunc(list, func(p *model.Policy) bool { return p.ZoneName != "" }) {
			return nil, fault.New(fault.Denied, "the user with which SQE writes to %s may not read security zones, so it cannot tell in which one something lies; give it the permission for the module Security Zone", k.server.Name())
		}
		out.zones, err = nil, nil
	}
	if err != nil {
		return nil, k.fault(err, k.service())
	}
	for _, p := range list {
		if p.PolicyType == model.AccessPolicy {
			out.Policies = append(out.Policies, out.policy(k.service(), p))
			out.others[p.ID] = p.Version > 1 && !knew(p)
		}
	}
	// Of two on the same, the one on every root is the one to change.
	for _, p := range out.Policies {
		r := place(p.Elements)
		if slices.Equal(p.Elements["root"], []string{out.realm}) && len(p.Special) == 0 && out.At(r) == nil {
			p.Elements["root"], out.rooted[r] = []string{grants.Any}, true
		}
	}
	return out, nil
}

// zone is the security zone that a resource lies in: there no other policy acts.
func (a *access) zone(service string, elements map[string][]string) string {
	for _, z := range a.zones {
		if z.Enabled != nil && !*z.Enabled {
			continue
		}
		for _, r := range z.Services[service].Resources {
			if len(r) > 0 && inside(r, elements) {
				return z.Name
			}
		}
	}
	return ""
}

// inside reports whether something lies in a resource of a zone.
func inside(zone, elements map[string][]string) bool {
	for element, patterns := range zone {
		have := elements[element]
		if len(have) == 0 {
			have = []string{""}
		}
		if !slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(have, func(n string) bool { return wildcard(strings.ToLower(p), strings.ToLower(n)) })
		}) {
			return false
		}
	}
	return true
}

// What makes a policy special.
const (
	specialDisabled = "disabled"
	specialZone     = "another security zone"
	specialPattern  = "patterns"
)

// policy is a policy in the words of grants.
func (a *access) policy(service string, p *model.Policy) *grants.Policy {
	out := &grants.Policy{
		ID: p.ID, Version: p.Version, Name: p.Name, Labels: set(p.PolicyLabels), Elements: map[string][]string{},
		Exceptions: len(p.AllowExceptions)+len(p.DenyExceptions) > 0, CreatedBy: p.CreatedBy, CreatedAt: p.CreateTime,
		Allow: grantItems(p.PolicyItems), Deny: grantItems(p.DenyPolicyItems),
	}
	special := func(what string, yes bool) {
		if yes && !slices.Contains(out.Special, what) {
			out.Special = append(out.Special, what)
		}
	}
	several, pattern := len(p.AdditionalResources) > 0, false
	for element, r := range p.Resources {
		out.Elements[element] = set(r.Values)
		several = several || len(set(r.Values)) != 1
		special(beyondExcludes, r.Excludes)
		special(beyondRecursive, r.Recursive)
		special(beyondResources, !slices.Contains([]string{"root", "catalog", "namespace", "table"}, element))
		for _, v := range r.Values {
			pattern = pattern || strings.ContainsAny(v, "*?{") && v != grants.Any && !strings.HasSuffix(v, "/*") || strings.HasSuffix(v, "/*") && strings.ContainsAny(v[:len(v)-2], "*?{")
		}
	}
	special(beyondResources, len(out.Elements["root"]) == 0 || len(out.Elements["catalog"]) == 0)
	special(specialDisabled, !p.IsEnabled())
	special("override", p.PolicyPriority != 0)
	special(beyondConditions, len(p.Conditions) > 0)
	special("validity", len(p.ValiditySchedules) > 0)
	special(beyondDenyAll, p.DenyAllElse)
	special(specialPattern, pattern)
	special(grants.SeveralResources, several)
	special(specialZone, len(out.Special) == 0 && a.zone(service, out.Elements) != p.ZoneName)
	return out
}

func grantItems(list []*model.Item) []grants.Item {
	var out []grants.Item
	for n, i := range list {
		x := grants.Item{Users: set(i.Users), Groups: set(i.Groups), Roles: set(i.Roles), Delegate: i.DelegateAdmin, Index: n, Fixed: len(i.Conditions) > 0}
		for _, a := range i.Accesses {
			x.Types = append(x.Types, strings.ToLower(a.Type))
			x.Fixed = x.Fixed || !a.IsAllowed()
		}
		x.Types = set(x.Types)
		out = append(out, x)
	}
	return out
}

// rewritten is a policy with the items and labels of another reading of it.
func rewritten(p *model.Policy, to *grants.Policy) *model.Policy {
	out := clone(p)
	out.PolicyLabels = set(to.Labels)
	out.PolicyItems = modelItems(p.PolicyItems, to.Allow)
	out.DenyPolicyItems = modelItems(p.DenyPolicyItems, to.Deny)
	return out
}

func modelItems(was []*model.Item, list []grants.Item) []*model.Item {
	var out []*model.Item
	for _, i := range list {
		if i.Fixed {
			out = append(out, was[i.Index])
			continue
		}
		x := &model.Item{Users: i.Users, Groups: i.Groups, Roles: i.Roles, DelegateAdmin: i.Delegate}
		for _, t := range i.Types {
			x.Accesses = append(x.Accesses, model.Access{Type: t, Allowed: truth(nil)})
		}
		out = append(out, x)
	}
	return out
}

// Plan implements grants.Keeper.
func (k *keeper) Plan(ctx context.Context, s *grants.Statement) (*grants.Outcome, error) {
	now, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	if s, err = k.statement(ctx, s); err != nil {
		return nil, err
	}
	out, err := s.Run(now.Snapshot)
	if err != nil {
		return nil, err
	}
	return out, k.known(ctx, s)
}

// Administers implements grants.Keeper.
func (k *keeper) Administers(ctx context.Context, user string, here bool) (bool, error) {
	if !k.config.RangerDecides {
		return here, nil
	}
	u, err := k.server.User(ctx, user)
	switch KindOf(err) {
	case NotFound, UnknownPrincipal:
		return false, nil
	}
	if err != nil {
		return false, k.fault(err, k.service())
	}
	if slices.Contains(u.AdminRoles, "ROLE_SYS_ADMIN") {
		return true, nil
	}
	s, err := k.server.Service(ctx, k.service())
	if err != nil {
		return false, k.fault(err, k.service())
	}
	listed := func(key, name string) bool {
		return slices.ContainsFunc(strings.Split(s.Configs[key], ","), func(x string) bool { return name != "" && strings.TrimSpace(x) == name })
	}
	return listed("service.admin.users", user) || slices.ContainsFunc(u.Groups, func(g string) bool { return listed("service.admin.groups", g) }), nil
}

// statement is a statement with its groups as the object gate understands them, and
// with what its author may do.
func (k *keeper) statement(ctx context.Context, s *grants.Statement) (*grants.Statement, error) {
	out := *s
	var err error
	if out.Administrator, err = k.Administers(ctx, s.By, s.Administrator); err != nil || !k.config.GroupsAsRoles {
		return &out, err
	}
	out.Grantees = slices.Clone(s.Grantees)
	for i, g := range out.Grantees {
		if g.Kind == policy.GroupGrantee && g.Name != policy.Public {
			out.Grantees[i].Kind = policy.RoleGrantee
		}
	}
	return &out, nil
}

// known refuses grantees that the server does not have. Taking something from one
// that is gone must be possible.
func (k *keeper) known(ctx context.Context, s *grants.Statement) error {
	if s.Verb == grants.Revoke {
		return nil
	}
	for _, g := range s.Grantees {
		if err := k.Exists(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// Exists implements grants.Keeper.
func (k *keeper) Exists(ctx context.Context, g policy.Grantee) error {
	var err error
	switch {
	case g == policy.Grantee{Kind: policy.GroupGrantee, Name: policy.Public}:
		return nil
	case g.Kind == policy.UserGrantee:
		_, err = k.server.User(ctx, g.Name)
	case g.Kind == policy.GroupGrantee:
		_, err = k.server.Group(ctx, g.Name)
	default:
		_, err = k.server.Role(ctx, g.Name)
	}
	switch KindOf(err) {
	case NotFound, UnknownPrincipal:
		hint := ""
		if g.Kind == policy.UserGrantee {
			hint = " (a role is named with ROLE before it, a group with GROUP)"
		}
		return fault.Wrap(fault.NoPrincipal, err, "there is no %s %s on %s%s; create it there first, or correct the name", g.Kind, g.Name, k.server.Name(), hint)
	case Forbidden:
		return nil // the server refuses what it does not know
	}
	if err != nil {
		return k.fault(err, k.service())
	}
	return nil
}

// tries bounds how often a statement is done again when others change the same.
const tries = 4

// Apply implements grants.Keeper. When somebody else changed the same at the same
// moment, what was done is taken back and done again to what is there now.
func (k *keeper) Apply(ctx context.Context, by policy.Author, s *grants.Statement) (*grants.Outcome, error) {
	s, err := k.statement(ctx, s)
	if err != nil {
		return nil, err
	}
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	k.lock.Lock()
	defer k.lock.Unlock()
	for n := 1; ; n++ {
		now, err := k.current(ctx)
		if err != nil {
			return nil, err
		}
		out, err := s.Run(now.Snapshot)
		if err != nil {
			return nil, err
		}
		if err := k.known(ctx, s); err != nil {
			return nil, err
		}
		if err := k.acknowledge(ctx, now, s, out); err != nil {
			return nil, err
		}
		if len(out.Changes) == 0 {
			return out, nil
		}
		done, err := k.writeAll(ctx, now, s.Run, out)
		if err == nil {
			err = k.mend(ctx, s)
		}
		switch {
		case err == nil:
			return out, k.done(ctx, "the statement")
		case fault.Is(err, fault.Conflict) && done == nil && n < tries && ctx.Err() == nil:
		default:
			return nil, err
		}
	}
}

// acknowledge has what a statement finds as it is to be, and does not change, count as
// such: what others erased of it before is not to be written again later.
func (k *keeper) acknowledge(ctx context.Context, now *access, s *grants.Statement, out *grants.Outcome) error {
	if k.config.ReapplyLost {
		return nil // nothing that is to come back is missing now
	}
	places := s.Resources(now.Root)
	if s.Everything {
		for _, p := range now.Policies {
			if len(p.Special) == 0 {
				places = append(places, place(p.Elements))
			}
		}
	}
	for _, at := range places {
		p := now.At(at)
		if p == nil || !now.others[p.ID] || slices.ContainsFunc(out.Changes, func(c grants.Change) bool { return c.Resource == at }) {
			continue
		}
		if err := k.writer.Acknowledge(ctx, p.ID); KindOf(err) == "" && err != nil {
			return k.fault(err, k.service())
		}
	}
	return nil
}

// rerun does a statement to other policies than those for which it was planned.
type rerun func(*grants.Snapshot) (*grants.Outcome, error)

// writeAll makes the changes of an outcome, or none: then done is nil.
func (k *keeper) writeAll(ctx context.Context, now *access, again rerun, out *grants.Outcome) (done []written, err error) {
	for _, c := range out.Changes {
		w, err := k.write(ctx, now, again, c)
		if err != nil {
			// What was done is taken back, whether or not somebody waits.
			return k.undo(context.WithoutCancel(ctx), done, c, err)
		}
		done = append(done, w)
	}
	return done, nil
}

// mend looks, when a statement is written, whether another one that was done at the
// same moment took away what this one relies on, or the other way round.
func (k *keeper) mend(ctx context.Context, s *grants.Statement) error {
	ctx = context.WithoutCancel(ctx)
	for range tries {
		now, err := k.read(ctx)
		if err != nil {
			return err
		}
		out := s.Mend(now.Snapshot)
		if len(out.Changes) == 0 {
			return nil
		}
		_, err = k.writeAll(ctx, now, func(x *grants.Snapshot) (*grants.Outcome, error) { return s.Mend(x), nil }, out)
		if err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Conflict, "others change the same all the time; the statement is done, but look with CHECK ACCESS and SHOW GRANTS, and repeat it")
}

// Clean implements grants.Keeper.
func (k *keeper) Clean(ctx context.Context, by policy.Author) (*grants.Outcome, error) {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	k.lock.Lock()
	defer k.lock.Unlock()
	now, err := k.current(ctx)
	if err != nil {
		return nil, err
	}
	out := grants.Clean(now.Snapshot, by.User)
	if len(out.Changes) == 0 {
		return out, nil
	}
	if _, err := k.writeAll(ctx, now, func(x *grants.Snapshot) (*grants.Outcome, error) { return grants.Clean(x, by.User), nil }, out); err != nil {
		return nil, err
	}
	return out, k.done(ctx, "the cleanup")
}

// write makes one change. When the policy is not any more what the change was
// computed from, the statement is done again to what it is now.
func (k *keeper) write(ctx context.Context, now *access, again rerun, c grants.Change) (w written, err error) {
	at := Place{Service: k.service(), Type: model.AccessPolicy, Resources: map[string]model.Resource{}, Plain: true}
	elements := map[string][]string{}
	for e, v := range c.Resource.Elements() {
		at.Resources[e] = model.Resource{Values: []string{v}}
		elements[e] = []string{v}
	}
	at.Zone = now.zone(k.service(), elements)
	if now.rooted[c.Resource] {
		at.Resources["root"] = model.Resource{Values: []string{now.realm}}
	}
	w.after, err = k.writer.Edit(ctx, at, func(p *model.Policy) (*model.Policy, error) {
		w.before = clone(p)
		var is *grants.Policy
		if p != nil {
			if is = now.policy(k.service(), p); len(is.Special) > 0 {
				return nil, fault.New(fault.Conflict, "policy %q was changed by somebody else at the same time; repeat the statement", p.Name)
			}
			is.Elements["root"] = []string{grants.Any}
		}
		next := c.After
		if len(grants.Diff(c.Before, is)) > 0 || (c.Before == nil) != (is == nil) {
			out, err := again(now.With(c.Resource, is))
			if err != nil {
				return nil, err
			}
			next = out.After.At(c.Resource)
		}
		switch {
		case next == nil:
			return nil, nil
		case p == nil:
			return rewritten(&model.Policy{
				Service: k.service(), Name: next.Name, PolicyType: model.AccessPolicy, Enabled: truth(nil), AuditEnabled: truth(nil),
				ZoneName: at.Zone, Resources: at.Resources,
			}, next), nil
		}
		return rewritten(p, next), nil
	})
	return w, err
}
