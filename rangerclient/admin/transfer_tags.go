package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

func (t *transfer) tags(ctx context.Context) error {
	for _, service := range keys(t.Tags) {
		have := newTags(service, "")
		if !t.options.DryRun || !t.made["service "+service] {
			var err error
			if have, err = t.server.Tags(ctx, service); err != nil {
				return err
			}
		}
		want, err := taggings(t.Tags[service])
		if err != nil {
			return err
		}
		now, err := taggings(have)
		if err != nil {
			return err
		}
		out := newTags(service, "add_or_update")
		if t.options.Prune {
			out.Op = "replace"
			if text(byText(now)) == text(byText(want)) {
				continue
			}
		}
		changed := t.options.Prune
		known := definitions(have)
		maps.Copy(known, prefixed(definitions(t.Tags[service])))
		for _, k := range keys(want) {
			tags := slices.Clone(want[k].tags)
			if !t.options.Prune {
				// What others put on the resource is sent along, since a server may
				// replace what it has.
				before := len(now[k].tags)
				for _, x := range now[k].tags {
					if !slices.ContainsFunc(tags, func(y model.Tag) bool { return text(x) == text(y) }) {
						tags = append(tags, x)
					}
				}
				if len(tags) == before {
					continue
				}
			}
			changed = true
			addTags(out, want[k].resource, tags, known)
		}
		if !changed {
			continue
		}
		if err := t.do(fmt.Sprintf("import tags of %d resources of %s", len(out.ServiceResources), service), func() error { return t.server.ImportTags(ctx, out) }); err != nil {
			return err
		}
	}
	return nil
}

// byText is what taggings say, for comparing.
func byText(m map[string]tagging) map[string][]model.Tag {
	out := map[string][]model.Tag{}
	for k, x := range m {
		out[k] = x.tags
	}
	return out
}

// prefixed keeps the keys of two documents apart.
func prefixed(m map[string]model.TagDefinition) map[string]model.TagDefinition {
	out := map[string]model.TagDefinition{}
	for k, d := range m {
		out["x"+k] = d
	}
	return out
}

// prune deletes what nothing of the bundle refers to any more.
func (t *transfer) prune(ctx context.Context) error {
	if !t.options.Prune {
		return nil
	}
	zones, err := t.server.Zones(ctx)
	if err != nil {
		return err
	}
	roles, err := t.server.Roles(ctx)
	if err != nil {
		return err
	}
	users, err := t.server.Users(ctx)
	if err != nil {
		return err
	}
	groups, err := t.server.Groups(ctx)
	if err != nil {
		return err
	}
	kept, err := t.kept(ctx)
	if err != nil {
		return err
	}
	surplus := func(kind, name string, known bool, remove func(context.Context, string) error) error {
		if known || strings.HasPrefix(name, "{") {
			return nil
		}
		if why, ok := kept[kind+" "+name]; ok {
			t.note("%s %s %s and stays", kind, name, why)
			return nil
		}
		err := t.do("delete "+kind+" "+name, func() error { return remove(ctx, name) })
		if KindOf(err) == InUse {
			t.note("%s %s is still referred to and stays", kind, name)
			return nil
		}
		return err
	}
	for _, z := range zones {
		if err := surplus("zone", z.Name, slices.ContainsFunc(t.Zones, func(x *model.Zone) bool { return x.Name == z.Name }), t.server.DeleteZone); err != nil {
			return err
		}
	}
	referred := t.named("role ", nil)
	for _, r := range roles {
		if err := surplus("role", r.Name, slices.Contains(referred, r.Name) || slices.ContainsFunc(t.Roles, func(x *model.Role) bool { return x.Name == r.Name }), t.server.DeleteRole); err != nil {
			return err
		}
	}
	referred = t.named("user ", nil)
	for _, u := range users {
		known := slices.Contains(u.AdminRoles, adminRole) || slices.Contains(referred, u.Name) || slices.ContainsFunc(t.Users, func(x *model.User) bool { return x.Name == u.Name })
		if err := surplus("user", u.Name, known, t.server.DeleteUser); err != nil {
			return err
		}
	}
	referred = t.named("group ", func(u *model.User) []string { return u.Groups })
	for _, g := range groups {
		known := g.Name == "public" || slices.Contains(referred, g.Name) || slices.ContainsFunc(t.Groups, func(x *model.Group) bool { return x.Name == g.Name })
		if err := surplus("group", g.Name, known, t.server.DeleteGroup); err != nil {
			return err
		}
	}
	return nil
}

// kept are those whose going would shut somebody out of the server, or SQE itself,
// and why.
func (t *transfer) kept(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	services, err := t.server.Services(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range services {
		for key, value := range s.Configs {
			kind := ""
			switch {
			case strings.HasSuffix(key, ".auth.users"), key == "service.admin.users":
				kind = "user "
			case strings.HasSuffix(key, ".auth.groups"), key == "service.admin.groups":
				kind = "group "
			case strings.HasSuffix(key, ".auth.roles"):
				kind = "role "
			default:
				continue
			}
			for _, name := range strings.Split(value, ",") {
				out[kind+strings.TrimSpace(name)] = "is in the settings of service " + s.Name
			}
		}
	}
	for _, name := range t.options.Keep {
		out["user "+name] = "is the one with whom SQE reads it"
	}
	if s, ok := t.server.(interface{ Username() string }); ok {
		out["user "+s.Username()] = "is the one with whom this is done"
	}
	return out, nil
}
