package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// fake is a policy server in memory that answers as a Ranger Admin does: it
// compares no versions, keeps every one, and refuses equal names and resources.
type fake struct {
	mu       sync.Mutex
	next     int64
	policies map[int64]*model.Policy
	history  map[int64][]*model.Policy
	defs     []json.RawMessage
	services []*model.Service
	zones    []*model.Zone
	roles    []*model.Role
	users    []*model.User
	groups   []*model.Group
	tags     map[string]*model.ServiceTags
	writes   int
	imports  []*model.ServiceTags

	// before is called with the kind of a write before it takes effect, without the
	// lock; an error is the answer, and nothing is written.
	before func(op string, id int64) error
	// after is called when it took effect; an error is the answer.
	after func(op string, id int64) error
	// strict refuses principals that do not exist.
	strict bool
	// adds makes ImportTags only ever add.
	adds bool
	// forbid makes Zones refuse.
	forbid bool
}

func newFake() *fake {
	f := &fake{policies: map[int64]*model.Policy{}, history: map[int64][]*model.Policy{}, tags: map[string]*model.ServiceTags{}}
	for _, t := range []string{"hive", "polaris", "tag", "trino"} {
		d, err := servicedef.JSON(t)
		if err != nil {
			panic(err)
		}
		f.defs = append(f.defs, d)
	}
	return f
}

// lake is a fake with the services that most tests need.
func lake() *fake {
	f := newFake()
	f.services = []*model.Service{
		{ID: 1, Name: "tags", Type: "tag"},
		{ID: 2, Name: "lake", Type: "hive", TagService: "tags"},
		{ID: 3, Name: "objects", Type: "polaris", TagService: "tags"},
		{ID: 4, Name: "presto", Type: "trino", TagService: "tags"},
	}
	f.next = 10
	return f
}

func deep[T any](v T) T {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out T
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

func noSuch(what string) error { return &Error{Kind: NotFound, Reason: what + " not found"} }

func (f *fake) Name() string { return "a fake" }

func (f *fake) ServiceDefs(context.Context) ([]json.RawMessage, error) { return f.defs, nil }

func (f *fake) ServiceDef(_ context.Context, name string) (json.RawMessage, error) {
	for _, d := range f.defs {
		if defName(d) == name {
			return d, nil
		}
	}
	return nil, noSuch("definition")
}

func defName(d json.RawMessage) string {
	var x struct{ Name string }
	if err := json.Unmarshal(d, &x); err != nil {
		panic(err)
	}
	return x.Name
}

func (f *fake) CreateServiceDef(_ context.Context, d json.RawMessage) error {
	f.writes++
	f.defs = append(f.defs, d)
	return nil
}

func (f *fake) Services(context.Context) ([]*model.Service, error) { return deep(f.services), nil }

func (f *fake) Service(_ context.Context, name string) (*model.Service, error) {
	for _, s := range f.services {
		if s.Name == name {
			return deep(s), nil
		}
	}
	return nil, noSuch("service")
}

func (f *fake) CreateService(_ context.Context, s *model.Service) (*model.Service, error) {
	f.writes++
	f.next++
	s = deep(s)
	s.ID = f.next
	f.services = append(f.services, s)
	if s.Type == "hive" { // a Ranger Admin makes policies by itself
		f.next++
		p := &model.Policy{ID: f.next, Version: 1, Service: s.Name, Name: "all - global", Resources: on("global", "*"), PolicyItems: []*model.Item{{Users: []string{"admin"}, Accesses: accesses("all")}}}
		f.policies[p.ID], f.history[p.ID] = p, []*model.Policy{p}
	}
	return deep(s), nil
}

func (f *fake) UpdateService(_ context.Context, s *model.Service) (*model.Service, error) {
	f.writes++
	for n, x := range f.services {
		if x.Name == s.Name {
			f.services[n] = deep(s)
			return deep(s), nil
		}
	}
	return nil, noSuch("service")
}

func (f *fake) DeleteService(context.Context, string) error { return errors.ErrUnsupported }

func (f *fake) Policies(_ context.Context, service string) ([]*model.Policy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*model.Policy
	for _, p := range f.policies {
		if p.Service == service {
			p = deep(p)
			p.CreatedBy, p.UpdatedBy = "", "" // as a search
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *model.Policy) int { return int(a.ID - b.ID) })
	return out, nil
}

func (f *fake) Policy(ctx context.Context, id int64) (*model.Policy, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.policies[id]; p != nil {
		return deep(p), nil
	}
	return nil, noSuch("policy")
}

func (f *fake) PolicyNamed(ctx context.Context, service, zone, name string) (*model.Policy, error) {
	list, err := f.Policies(ctx, service)
	for _, p := range list {
		if p.Name == name && p.ZoneName == zone {
			return p, err
		}
	}
	return nil, noSuch("policy")
}

func (f *fake) PolicyVersions(_ context.Context, id int64) ([]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int64
	for _, p := range f.history[id] {
		out = append(out, p.Version)
	}
	return out, nil
}

func (f *fake) PolicyAt(ctx context.Context, id, version int64) (*model.Policy, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.history[id] {
		if p.Version == version {
			return deep(p), nil
		}
	}
	return nil, noSuch("version")
}

func (f *fake) CreatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	return f.write(ctx, "create", deep(p))
}

func (f *fake) UpdatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	return f.write(ctx, "update", deep(p))
}

func (f *fake) write(_ context.Context, op string, p *model.Policy) (*model.Policy, error) {
	if f.before != nil {
		if err := f.before(op, p.ID); err != nil {
			return nil, err
		}
	}
	out, err := f.store(op, p)
	if err == nil && f.after != nil {
		if err := f.after(op, out.ID); err != nil {
			return nil, err
		}
	}
	return out, err
}

// store writes without the hooks.
func (f *fake) store(op string, p *model.Policy) (*model.Policy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.policies {
		switch {
		case x.Service != p.Service || x.ID == p.ID:
		case x.Name == p.Name && x.ZoneName == p.ZoneName:
			return nil, &Error{Kind: Exists, Code: 3006, Reason: "Another policy already exists for this name"}
		case sameResources(x, p) && x.PolicyPriority == p.PolicyPriority && text(x.ValiditySchedules) == text(p.ValiditySchedules) && x.IsEnabled() && p.IsEnabled():
			return nil, &Error{Kind: Exists, Code: 3010, Reason: "Another policy already exists for matching resource"}
		}
	}
	if f.strict {
		for _, l := range lists {
			for _, i := range *l.of(p) {
				for _, u := range i.Users {
					if !slices.ContainsFunc(f.users, func(x *model.User) bool { return x.Name == u }) {
						return nil, &Error{Kind: UnknownPrincipal, Name: u, Reason: fmt.Sprintf("Operation denied. User name: %s specified in policy does not exist in ranger admin.", u)}
					}
				}
			}
		}
	}
	p = deep(p)
	switch old := f.policies[p.ID]; {
	case op == "create":
		f.next++
		p.ID, p.Version, p.CreatedBy = f.next, 1, "admin"
	case old == nil:
		return nil, noSuch("policy")
	default:
		p.Version = old.Version + 1
	}
	p.GUID, p.UpdatedBy = fmt.Sprint("guid-", p.ID), "admin"
	f.writes++
	f.policies[p.ID] = p
	f.history[p.ID] = append(f.history[p.ID], deep(p))
	return deep(p), nil
}

func (f *fake) DeletePolicy(_ context.Context, id int64) error {
	if f.before != nil {
		if err := f.before("delete", id); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policies[id] == nil {
		return noSuch("policy")
	}
	f.writes++
	delete(f.policies, id)
	if f.after != nil {
		return f.after("delete", id)
	}
	return nil
}

// foreign changes a policy as somebody does who read it long ago.
func (f *fake) foreign(from *model.Policy, change func(*model.Policy)) {
	p := deep(from)
	change(p)
	if _, err := f.store("update", p); err != nil {
		panic(err)
	}
}

// named is one of a list by its name.
func named[T any](list []T, name string, of func(T) string) (T, error) {
	for _, x := range list {
		if of(x) == name {
			return deep(x), nil
		}
	}
	var zero T
	return zero, noSuch(name)
}

func create[T any](f *fake, list *[]T, v T, name string, of func(T) string) (T, error) {
	if _, err := named(*list, name, of); err == nil {
		return v, &Error{Kind: Exists, Reason: name + " already exists"}
	}
	f.writes++
	*list = append(*list, deep(v))
	return v, nil
}

func update[T any](f *fake, list []T, v T, name string, of func(T) string) (T, error) {
	for n, x := range list {
		if of(x) == name {
			f.writes++
			list[n] = deep(v)
			return v, nil
		}
	}
	return v, noSuch(name)
}

func remove[T any](f *fake, list *[]T, name string, of func(T) string) error {
	n := slices.IndexFunc(*list, func(x T) bool { return of(x) == name })
	if n < 0 {
		return noSuch(name)
	}
	f.writes++
	*list = slices.Delete(*list, n, n+1)
	return nil
}

func zoneName(z *model.Zone) string   { return z.Name }
func roleName(r *model.Role) string   { return r.Name }
func userName(u *model.User) string   { return u.Name }
func groupName(g *model.Group) string { return g.Name }

func (f *fake) Zones(context.Context) ([]*model.Zone, error) {
	if f.forbid {
		return nil, &Error{Kind: Forbidden, Reason: "no"}
	}
	return deep(f.zones), nil
}

func (f *fake) CreateZone(_ context.Context, z *model.Zone) (*model.Zone, error) {
	return create(f, &f.zones, z, z.Name, zoneName)
}

func (f *fake) UpdateZone(_ context.Context, z *model.Zone) (*model.Zone, error) {
	return update(f, f.zones, z, z.Name, zoneName)
}

func (f *fake) DeleteZone(_ context.Context, name string) error {
	return remove(f, &f.zones, name, zoneName)
}
func (f *fake) Roles(context.Context) ([]*model.Role, error) { return deep(f.roles), nil }
func (f *fake) Role(_ context.Context, name string) (*model.Role, error) {
	return named(f.roles, name, roleName)
}

func (f *fake) CreateRole(_ context.Context, r *model.Role) (*model.Role, error) {
	for _, m := range r.Roles {
		if _, err := named(f.roles, m.Name, roleName); err != nil {
			return nil, &Error{Kind: UnknownPrincipal, Reason: "role with name: " + m.Name + " does not exist"}
		}
	}
	return create(f, &f.roles, r, r.Name, roleName)
}

func (f *fake) UpdateRole(_ context.Context, r *model.Role) (*model.Role, error) {
	return update(f, f.roles, r, r.Name, roleName)
}

func (f *fake) AlterRole(context.Context, string, string, *model.Role, *model.Role) error {
	return errors.New("the fake changes no members of roles")
}

func (f *fake) DeleteRole(_ context.Context, name string) error {
	return remove(f, &f.roles, name, roleName)
}
func (f *fake) Users(context.Context) ([]*model.User, error) { return deep(f.users), nil }
func (f *fake) User(_ context.Context, name string) (*model.User, error) {
	return named(f.users, name, userName)
}

func (f *fake) CreateUser(_ context.Context, u *model.User) (*model.User, error) {
	if len(u.Password) < 8 {
		return nil, &Error{Kind: Invalid, Reason: "serverMsg.xuserMgrValidatePassword"}
	}
	u = deep(u)
	u.Password = ""
	return create(f, &f.users, u, u.Name, userName)
}

func (f *fake) UpdateUser(_ context.Context, u *model.User) (*model.User, error) {
	return update(f, f.users, u, u.Name, userName)
}

func (f *fake) DeleteUser(_ context.Context, name string) error {
	return remove(f, &f.users, name, userName)
}
func (f *fake) Groups(context.Context) ([]*model.Group, error) { return deep(f.groups), nil }
func (f *fake) Group(_ context.Context, name string) (*model.Group, error) {
	return named(f.groups, name, groupName)
}

func (f *fake) CreateGroup(_ context.Context, g *model.Group) (*model.Group, error) {
	return create(f, &f.groups, g, g.Name, groupName)
}

func (f *fake) UpdateGroup(_ context.Context, g *model.Group) (*model.Group, error) {
	return update(f, f.groups, g, g.Name, groupName)
}

func (f *fake) DeleteGroup(_ context.Context, name string) error {
	return remove(f, &f.groups, name, groupName)
}

func (f *fake) Tags(_ context.Context, service string) (*model.ServiceTags, error) {
	if t := f.tags[service]; t != nil {
		return deep(t), nil
	}
	v := int64(0)
	return &model.ServiceTags{ServiceName: service, TagVersion: &v}, nil
}

// ImportTags replaces the tags of the resources of a document, as a Ranger Admin,
// or only adds to them.
func (f *fake) ImportTags(_ context.Context, t *model.ServiceTags) error {
	if f.before != nil {
		if err := f.before("tags", 0); err != nil {
			return err
		}
	}
	f.writes++
	f.imports = append(f.imports, deep(t))
	old, _ := f.Tags(context.Background(), t.ServiceName)
	next := newTags(t.ServiceName, "add_or_update")
	*next.TagVersion = *old.TagVersion + 1
	read := func(from *model.ServiceTags) map[string][]model.Tag {
		out := map[string][]model.Tag{}
		for _, r := range from.ServiceResources {
			k := text(r.ResourceElements)
			out[k] = nil
			for _, id := range from.ResourceToTagIDs[fmt.Sprint(r.ID)] {
				x := from.Tags[fmt.Sprint(id)]
				x.ID = 0
				out[k] = append(out[k], x)
			}
		}
		return out
	}
	was, sent := read(old), read(t)
	if t.Op == "replace" {
		was = map[string][]model.Tag{}
	}
	for k, tags := range sent {
		switch {
		case t.Op == "delete":
			delete(was, k)
		case f.adds:
			for _, x := range tags {
				if !slices.ContainsFunc(was[k], func(y model.Tag) bool { return text(x) == text(y) }) {
					was[k] = append(was[k], x)
				}
			}
		default:
			was[k] = tags
		}
	}
	definitions := deep(old.TagDefinitions)
	for k, d := range t.TagDefinitions {
		if definitions == nil {
			definitions = map[string]model.TagDefinition{}
		}
		definitions["new"+k] = d
	}
	for _, k := range keys(was) {
		var elements map[string]model.Resource
		if err := json.Unmarshal([]byte(k), &elements); err != nil {
			return err
		}
		addTags(next, model.ServiceResource{ResourceElements: elements}, was[k], definitions)
	}
	f.tags[t.ServiceName] = next
	if f.after != nil {
		return f.after("tags", 0)
	}
	return nil
}

func on(kv ...string) map[string]model.Resource {
	out := map[string]model.Resource{}
	for n := 0; n < len(kv); n += 2 {
		out[kv[n]] = model.Resource{Values: strings.Split(kv[n+1], ",")}
	}
	return out
}

func accesses(types ...string) []model.Access {
	var out []model.Access
	for _, t := range types {
		out = append(out, model.Access{Type: t})
	}
	return out
}
