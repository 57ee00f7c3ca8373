package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// TransferOptions say how a bundle is brought to a server.
type TransferOptions struct {
	// Prune deletes what the bundle does not have: policies, zones, roles, users,
	// groups and tags, but no service, no user who administers the server or with
	// whom it is written, and nobody whom the settings of a service name.
	Prune bool
	// Keep are users who are not deleted either.
	Keep []string
	// DryRun changes nothing.
	DryRun bool
	// Change is told of every change before it is made, Note of what is left as it
	// is although it differs.
	Change, Note func(string)
}

// hiddenConfig is what a server answers in the place of a password in the settings
// of a service, and takes for "as it is".
const hiddenConfig = "*****"

// adminRole is the role of users who administer a server.
const adminRole = "ROLE_SYS_ADMIN"

// Apply brings a bundle to a server, in the order in which things refer to each
// other. What is there already and equal stays untouched, so that a second time
// changes nothing. Users are made with a random password that nobody knows. Users,
// groups and roles that policies name and the bundle does not have are made, too:
// a server refuses a policy that names nobody it knows.
func (b *Bundle) Apply(ctx context.Context, w *Writer, o TransferOptions) error {
	t := &transfer{Bundle: b, writer: w, server: w.server, options: o, made: map[string]bool{}}
	for _, step := range []func(context.Context) error{
		t.definitions, t.groups, t.users, t.services, t.roles, t.zones, t.policies, t.tags, t.prune,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type transfer struct {
	*Bundle
	writer  *Writer
	server  Server
	options TransferOptions
	made    map[string]bool // "service NAME" and "zone NAME" that did not exist
}

// do makes one change.
func (t *transfer) do(what string, change func() error) error {
	if !t.options.DryRun {
		if err := change(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	t.did(what)
	return nil
}

func (t *transfer) did(what string) {
	if t.options.Change != nil {
		t.options.Change(what)
	}
}

func (t *transfer) note(format string, args ...any) {
	if t.options.Note != nil {
		t.options.Note(fmt.Sprintf(format, args...))
	}
}

func (t *transfer) definitions(ctx context.Context) error {
	for _, name := range keys(t.Definitions) {
		d := t.Definitions[name]
		now, err := t.server.ServiceDef(ctx, name)
		switch {
		case KindOf(err) == NotFound:
			if err := t.do("create definition of type "+name, func() error { return t.server.CreateServiceDef(ctx, d) }); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if now, err = normalDefinition(now); err == nil && string(now) != string(d) {
				t.note("the definition of type %s differs from that of the server, which stays", name)
			}
		}
	}
	return nil
}

// reconcile makes and changes the objects of one kind.
func reconcile[T any](t *transfer, kind string, want, have []T, name func(T) string, form func(T) T, create, update func(T) error) error {
	for _, x := range want {
		n := slices.IndexFunc(have, func(y T) bool { return name(y) == name(x) })
		var err error
		switch {
		case n < 0:
			t.made[kind+" "+name(x)] = true
			err = t.do("create "+kind+" "+name(x), func() error { return create(x) })
		case text(form(have[n])) != text(form(x)):
			err = t.do("change "+kind+" "+name(x), func() error { return update(x) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) groups(ctx context.Context) error {
	have, err := t.server.Groups(ctx)
	if err != nil {
		return err
	}
	want := slices.Clone(t.Groups)
	for _, g := range t.named("group ", func(u *model.User) []string { return u.Groups }) {
		named := func(x *model.Group) bool { return x.Name == g }
		if g != "public" && !slices.ContainsFunc(want, named) && !slices.ContainsFunc(have, named) {
			want = append(want, &model.Group{Name: g})
		}
	}
	return reconcile(t, "group", want, have, func(g *model.Group) string { return g.Name }, normalGroup,
		func(g *model.Group) error { _, err := t.server.CreateGroup(ctx, g); return err },
		func(g *model.Group) error { _, err := t.server.UpdateGroup(ctx, g); return err })
}

// named lists the principals of a kind that the bundle refers to.
func (t *transfer) named(kind string, ofUser func(*model.User) []string) []string {
	var out []string
	for _, list := range t.Policies {
		for _, p := range list {
			for _, l := range lists {
				for _, i := range *l.of(p) {
					for _, x := range principals(i) {
						if name, ok := strings.CutPrefix(x, kind); ok {
							out = append(out, name)
						}
					}
				}
			}
		}
	}
	for _, r := range t.Roles {
		members := map[string][]model.Member{"user ": r.Users, "group ": r.Groups, "role ": r.Roles}[kind]
		for _, m := range members {
			out = append(out, m.Name)
		}
	}
	for _, z := range t.Zones {
		out = append(out, map[string][]string{
			"user ": slices.Concat(z.AdminUsers, z.AuditUsers), "group ": slices.Concat(z.AdminUserGroups, z.AuditUserGroups),
			"role ": slices.Concat(z.AdminRoles, z.AuditRoles),
		}[kind]...)
	}
	if ofUser != nil {
		for _, u := range t.Users {
			out = append(out, ofUser(u)...)
		}
	}
	return slices.DeleteFunc(set(out), func(n string) bool { return strings.HasPrefix(n, "{") })
}

func (t *transfer) users(ctx context.Context) error {
	have, err := t.server.Users(ctx)
	if err != nil {
		return err
	}
	var want []*model.User
	for _, u := range t.Users {
		n := slices.IndexFunc(have, func(x *model.User) bool { return x.Name == u.Name })
		if n >= 0 && slices.Contains(have[n].AdminRoles, adminRole) {
			if text(normalUser(have[n])) != text(u) {
				t.note("user %s administers the server and stays as it is there", u.Name)
			}
			continue
		}
		want = append(want, u)
	}
	for _, u := range t.named("user ", nil) {
		named := func(x *model.User) bool { return x.Name == u }
		if !slices.ContainsFunc(t.Users, named) && !slices.ContainsFunc(have, named) {
			want = append(want, normalUser(&model.User{Name: u}))
		}
	}
	return reconcile(t, "user", want, have, func(u *model.User) string { return u.Name }, normalUser,
		func(u *model.User) error {
			made := *u
			// Passwords are not moved, and a Ranger Admin makes no user without one:
			// letters and digits of both cases, more than can be guessed.
			made.Password = "Aa1" + rand.Text()
			_, err := t.server.CreateUser(ctx, &made)
			return err
		},
		func(u *model.User) error { _, err := t.server.UpdateUser(ctx, u); return err })
}

func (t *transfer) services(ctx context.Context) error {
	have, err := t.server.Services(ctx)
	if err != nil {
		return err
	}
	for n, s := range have {
		// A server adds settings of its own: only those of the bundle are compared.
		have[n] = normalService(s)
		for _, x := range t.Services {
			if x.Name != s.Name {
				continue
			}
			have[n].Configs = model.Strings{}
			for k := range x.Configs {
				if v, ok := s.Configs[k]; ok {
					have[n].Configs[k] = v
				}
				if s.Configs[k] == hiddenConfig {
					have[n].Configs[k] = x.Configs[k]
				}
			}
		}
	}
	ordered := slices.Clone(t.Services)
	slices.SortStableFunc(ordered, func(x, y *model.Service) int {
		rank := func(s *model.Service) int {
			if s.Type == tagType {
				return 0
			}
			return 1
		}
		return rank(x) - rank(y)
	})
	return reconcile(t, "service", ordered, have, func(s *model.Service) string { return s.Name }, normalService,
		func(s *model.Service) error { _, err := t.server.CreateService(ctx, s); return err },
		func(s *model.Service) error {
			now, err := t.server.Service(ctx, s.Name)
			if err != nil {
				return err
			}
			next := *s
			next.ID, next.GUID, next.Version = now.ID, now.GUID, now.Version
			next.Configs = maps.Clone(now.Configs)
			if next.Configs == nil {
				next.Configs = model.Strings{}
			}
			maps.Copy(next.Configs, s.Configs)
			_, err = t.server.UpdateService(ctx, &next)
			return err
		})
}

// roles makes them without the roles in them first: those may be made later, and
// may be in a circle.
func (t *transfer) roles(ctx context.Context) error {
	have, err := t.server.Roles(ctx)
	if err != nil {
		return err
	}
	want := slices.Clone(t.Roles)
	for _, r := range t.named("role ", nil) {
		named := func(x *model.Role) bool { return x.Name == r }
		if !slices.ContainsFunc(want, named) && !slices.ContainsFunc(have, named) {
			want = append(want, normalRole(&model.Role{Name: r}))
		}
	}
	name := func(r *model.Role) string { return r.Name }
	update := func(r *model.Role) error {
		now, err := t.server.Role(ctx, r.Name)
		if err != nil {
			return err
		}
		next := *r
		next.ID = now.ID
		_, err = t.server.UpdateRole(ctx, &next)
		return err
	}
	var nested, created []*model.Role
	for _, r := range want {
		isNew := !slices.ContainsFunc(have, func(x *model.Role) bool { return x.Name == r.Name })
		if !isNew {
			continue
		}
		bare := *r
		bare.Roles = nil
		created = append(created, &bare)
		if len(r.Roles) > 0 {
			nested = append(nested, r)
		}
	}
	if err := reconcile(t, "role", created, nil, name, normalRole,
		func(r *model.Role) error { _, err := t.server.CreateRole(ctx, r); return err }, update); err != nil {
		return err
	}
	for _, r := range nested {
		if err := t.do("change role "+r.Name, func() error { return update(r) }); err != nil {
			return err
		}
	}
	return reconcile(t, "role", slices.DeleteFunc(want, func(r *model.Role) bool { return t.made["role "+r.Name] }), have, name, normalRole, nil, update)
}

func (t *transfer) zones(ctx context.Context) error {
	have, err := t.server.Zones(ctx)
	if err != nil {
		return err
	}
	return reconcile(t, "zone", t.Zones, have, func(z *model.Zone) string { return z.Name }, normalZone,
		func(z *model.Zone) error { _, err := t.server.CreateZone(ctx, z); return err },
		func(z *model.Zone) error {
			next := *z
			for _, x := range have {
				if x.Name == z.Name {
					next.ID, next.GUID, next.Version = x.ID, x.GUID, x.Version
				}
			}
			_, err := t.server.UpdateZone(ctx, &next)
			return err
		})
}

func describePolicy(p *model.Policy) string {
	out := fmt.Sprintf("policy %q of %s", p.Name, p.Service)
	if p.ZoneName != "" {
		out += " in zone " + p.ZoneName
	}
	return out
}

func (t *transfer) policies(ctx context.Context) error {
	for _, s := range t.Services {
		var have []*model.Policy
		if !t.options.DryRun || !t.made["service "+s.Name] {
			var err error
			if have, err = t.server.Policies(ctx, s.Name); err != nil {
				return err
			}
		}
		if err := t.policiesOf(ctx, s.Name, have); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) policiesOf(ctx context.Context, service string, have []*model.Policy) error {
	put := func(p *model.Policy) error {
		_, err := t.writer.edit(ctx, Place{Service: service, Zone: p.ZoneName, Name: p.Name}, func(*model.Policy) (*model.Policy, error) {
			return clone(p), nil
		})
		return err
	}
	at := func(list []*model.Policy, p *model.Policy) *model.Policy {
		for _, x := range list {
			if x.Name == p.Name && x.ZoneName == p.ZoneName {
				return x
			}
		}
		return nil
	}
	verb := func(p *model.Policy) string {
		if at(have, p) == nil {
			return "create "
		}
		return "change "
	}
	var later []*model.Policy // those whose resource is taken, for the present
	for _, p := range t.Policies[service] {
		now := at(have, p)
		if now != nil && same(now, p) {
			continue
		}
		err := t.do(verb(p)+describePolicy(p), func() error { return put(p) })
		if KindOf(err) == Exists {
			later = append(later, p)
			continue
		}
		if err != nil {
			return err
		}
	}
	for _, p := range have {
		// A service and a zone come with policies of their own making.
		surplus := t.options.Prune || t.made["service "+service] || p.ZoneName != "" && t.made["zone "+p.ZoneName]
		if at(t.Policies[service], p) != nil || !surplus {
			continue
		}
		err := t.do("delete "+describePolicy(p), func() error {
			_, err := t.writer.edit(ctx, Place{Service: service, ID: p.ID}, func(*model.Policy) (*model.Policy, error) { return nil, nil })
			return err
		})
		if err != nil {
			return err
		}
	}
	// Those that exchanged their resources get them one after the other.
	for len(later) > 0 {
		var still []*model.Policy
		var last error
		for _, p := range later {
			if err := put(p); KindOf(err) == Exists {
				still, last = append(still, p), err
			} else if err != nil {
				return fmt.Errorf("%s: %w", describePolicy(p), err)
			} else {
				t.did(verb(p) + describePolicy(p))
			}
		}
		if len(still) == len(later) {
			why := "another policy is on the same"
			if e := (*Error)(nil); errors.As(last, &e) && e.Name != "" {
				why = fmt.Sprintf("policy %q is on the same", e.Name)
			}
			return fmt.Errorf("%s: %s; delete it, or import with --prune: %w", describePolicy(still[len(still)-1]), why, last)
		}
		later = still
	}
	return nil
}
