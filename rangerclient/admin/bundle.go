package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/model"
)

// Bundle is everything that a policy server holds, in a form that does not depend
// on the server: without ids, versions, histories and passwords, and in a fixed
// order.
type Bundle struct {
	Definitions map[string]json.RawMessage // of the types of the services, by name
	Services    []*model.Service
	Policies    map[string][]*model.Policy // by service, disabled ones and those in zones too
	Zones       []*model.Zone
	Roles       []*model.Role
	Users       []*model.User
	Groups      []*model.Group
	Tags        map[string]*model.ServiceTags // by service
}

// Read reads everything from a server.
func Read(ctx context.Context, s Server) (*Bundle, error) {
	b := &Bundle{Definitions: map[string]json.RawMessage{}, Policies: map[string][]*model.Policy{}, Tags: map[string]*model.ServiceTags{}}
	var err error
	if b.Services, err = s.Services(ctx); err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	for _, x := range b.Services {
		if b.Definitions[x.Type] == nil {
			if b.Definitions[x.Type], err = s.ServiceDef(ctx, x.Type); err != nil {
				return nil, fmt.Errorf("definition of type %s: %w", x.Type, err)
			}
		}
		if b.Policies[x.Name], err = s.Policies(ctx, x.Name); err != nil {
			return nil, fmt.Errorf("policies of %s: %w", x.Name, err)
		}
		if x.Type == tagType {
			continue
		}
		if b.Tags[x.Name], err = s.Tags(ctx, x.Name); err != nil {
			return nil, fmt.Errorf("tags of %s: %w", x.Name, err)
		}
	}
	if b.Zones, err = s.Zones(ctx); err != nil {
		return nil, fmt.Errorf("zones: %w", err)
	}
	if b.Roles, err = s.Roles(ctx); err != nil {
		return nil, fmt.Errorf("roles: %w", err)
	}
	if b.Users, err = s.Users(ctx); err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	if b.Groups, err = s.Groups(ctx); err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	return b, b.normalize()
}

// tagType is the type of services that hold policies on tags.
const tagType = "tag"

// normalize brings a bundle into its one form.
func (b *Bundle) normalize() error {
	for name, d := range b.Definitions {
		var err error
		if b.Definitions[name], err = normalDefinition(d); err != nil {
			return fmt.Errorf("definition of type %s: %w", name, err)
		}
	}
	each(b.Services, normalService)
	slices.SortFunc(b.Services, func(x, y *model.Service) int { return cmp.Compare(x.Name, y.Name) })
	for service, list := range b.Policies {
		for n, p := range list {
			list[n] = normal(p)
			list[n].Service = service
		}
		slices.SortFunc(list, func(x, y *model.Policy) int {
			return cmp.Or(cmp.Compare(x.ZoneName, y.ZoneName), cmp.Compare(x.Name, y.Name))
		})
		for n := 1; n < len(list); n++ {
			if list[n].Name == list[n-1].Name && list[n].ZoneName == list[n-1].ZoneName {
				return fmt.Errorf("service %s has two policies named %q", service, list[n].Name)
			}
		}
	}
	for service, t := range b.Tags {
		n, err := normalTags(t, service)
		if err != nil {
			return err
		}
		b.Tags[service] = n
	}
	each(b.Zones, normalZone)
	slices.SortFunc(b.Zones, func(x, y *model.Zone) int { return cmp.Compare(x.Name, y.Name) })
	each(b.Roles, normalRole)
	slices.SortFunc(b.Roles, func(x, y *model.Role) int { return cmp.Compare(x.Name, y.Name) })
	// Ranger lists {USER} and {OWNER} as users, and everybody as a group.
	b.Users = slices.DeleteFunc(b.Users, func(u *model.User) bool { return strings.HasPrefix(u.Name, "{") })
	each(b.Users, normalUser)
	slices.SortFunc(b.Users, func(x, y *model.User) int { return cmp.Compare(x.Name, y.Name) })
	b.Groups = slices.DeleteFunc(b.Groups, func(g *model.Group) bool { return g.Name == "public" })
	each(b.Groups, normalGroup)
	slices.SortFunc(b.Groups, func(x, y *model.Group) int { return cmp.Compare(x.Name, y.Name) })
	return nil
}

func each[T any](list []T, fn func(T) T) {
	for n := range list {
		list[n] = fn(list[n])
	}
}

// normalDefinition leaves out what a server writes into a definition, and sorts
// its keys.
func normalDefinition(raw json.RawMessage) (json.RawMessage, error) {
	var d map[string]any
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	for _, k := range []string{"id", "version", "createTime", "updateTime", "createdBy", "updatedBy"} {
		delete(d, k)
	}
	return json.Marshal(d)
}

func normalService(s *model.Service) *model.Service {
	out := *s
	out.ID, out.GUID, out.Version, out.PolicyVersion, out.PolicyUpdateTime, out.TagVersion, out.TagUpdateTime = 0, "", 0, 0, 0, 0, 0
	out.CreatedBy, out.UpdatedBy, out.CreateTime, out.UpdateTime = "", "", 0, 0
	out.Enabled = truth(s.Enabled)
	if out.DisplayName == out.Name {
		out.DisplayName = ""
	}
	return &out
}

func normalZone(z *model.Zone) *model.Zone {
	out := *z
	out.ID, out.GUID, out.Version, out.CreatedBy, out.UpdatedBy, out.CreateTime, out.UpdateTime = 0, "", 0, "", "", 0, 0
	out.Enabled = truth(z.Enabled)
	for _, l := range []*[]string{&out.TagServices, &out.AdminUsers, &out.AdminUserGroups, &out.AdminRoles, &out.AuditUsers, &out.AuditUserGroups, &out.AuditRoles} {
		*l = set(*l)
	}
	out.Services = map[string]model.ZoneService{}
	for name, s := range z.Services {
		var list []map[string][]string
		for _, r := range s.Resources {
			m := map[string][]string{}
			for k, v := range r {
				m[k] = set(v)
			}
			list = append(list, m)
		}
		slices.SortFunc(list, func(x, y map[string][]string) int { return cmp.Compare(text(x), text(y)) })
		out.Services[name] = model.ZoneService{Resources: list}
	}
	return &out
}

func normalRole(r *model.Role) *model.Role {
	out := &model.Role{Name: r.Name, Description: r.Description, Options: r.Options, Enabled: truth(r.Enabled)}
	sorted := func(list []model.Member) []model.Member {
		list = slices.Clone(list)
		slices.SortFunc(list, func(x, y model.Member) int { return cmp.Compare(x.Name, y.Name) })
		return list
	}
	out.Users, out.Groups, out.Roles = sorted(r.Users), sorted(r.Groups), sorted(r.Roles)
	return out
}

func normalUser(u *model.User) *model.User {
	out := *u
	out.ID, out.Password, out.Groups, out.AdminRoles = 0, "", set(u.Groups), set(u.AdminRoles)
	out.Groups = slices.DeleteFunc(out.Groups, func(g string) bool { return g == "public" })
	if len(out.AdminRoles) == 0 {
		out.AdminRoles = []string{"ROLE_USER"}
	}
	if out.FirstName == out.Name { // a Ranger Admin needs one
		out.FirstName = ""
	}
	return &out
}

func normalGroup(g *model.Group) *model.Group {
	out := *g
	out.ID = 0
	return &out
}

// taggings lists the tags of a document by resource.
type tagging struct {
	resource model.ServiceResource
	tags     []model.Tag
}

func taggings(t *model.ServiceTags) (map[string]tagging, error) {
	out := map[string]tagging{}
	for _, r := range t.ServiceResources {
		elements := map[string]model.Resource{}
		for k, e := range r.ResourceElements {
			e.Values = set(e.Values)
			elements[k] = e
		}
		k := text(elements)
		x := out[k]
		x.resource = model.ServiceResource{ResourceElements: elements, OwnerUser: r.OwnerUser, AdditionalInfo: r.AdditionalInfo}
		for _, id := range t.ResourceToTagIDs[strconv.FormatInt(r.ID, 10)] {
			tag, ok := t.Tags[strconv.FormatInt(id, 10)]
			if !ok {
				return nil, fmt.Errorf("tags of %s: a resource carries tag %d, which the document does not define", t.ServiceName, id)
			}
			tag.ID, tag.GUID, tag.Enabled, tag.Owner = 0, "", truth(tag.Enabled), 0
			if !slices.ContainsFunc(x.tags, func(y model.Tag) bool { return text(y) == text(tag) }) {
				x.tags = append(x.tags, tag)
			}
		}
		out[k] = x
	}
	for k, x := range out {
		slices.SortFunc(x.tags, func(a, b model.Tag) int { return cmp.Compare(text(a), text(b)) })
		if len(x.tags) == 0 {
			delete(out, k)
		}
	}
	return out, nil
}

// definitions lists what is said of the kinds of tags.
func definitions(t *model.ServiceTags) map[string]model.TagDefinition {
	out := map[string]model.TagDefinition{}
	for k, d := range t.TagDefinitions {
		d.ID, d.GUID, d.Enabled = 0, "", truth(d.Enabled)
		out[k] = d
	}
	return out
}

// normalTags numbers a document anew, by content.
func normalTags(t *model.ServiceTags, service string) (*model.ServiceTags, error) {
	all, err := taggings(t)
	if err != nil {
		return nil, err
	}
	out := newTags(service, "add_or_update")
	for _, k := range keys(all) {
		addTags(out, all[k].resource, all[k].tags, definitions(t))
	}
	return out, nil
}
