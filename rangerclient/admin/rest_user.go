package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// hidden is what a Ranger Admin shows in the place of a password.
const hidden = "*****"

// vxUser is VXUser as far as SQE has words for it.
type vxUser struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	FirstName   string   `json:"firstName"`
	LastName    string   `json:"lastName"`
	Email       string   `json:"emailAddress"`
	Description string   `json:"description"`
	GroupIDs    []int64  `json:"groupIdList"`
	GroupNames  []string `json:"groupNameList"`
	AdminRoles  []string `json:"userRoleList"`
	Attributes  string   `json:"otherAttributes"` // a JSON object as text
}

// vxGroup is VXGroup as far as SQE has words for it.
type vxGroup struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Attributes  string `json:"otherAttributes"`
}

func (u *vxUser) user() (*model.User, error) {
	out := &model.User{
		ID: u.ID, Name: u.Name, FirstName: u.FirstName, LastName: u.LastName, Description: u.Description, Email: u.Email,
		Groups: slices.Sorted(slices.Values(u.GroupNames)), AdminRoles: u.AdminRoles,
	}
	var err error
	out.Attributes, err = parseAttributes(u.Attributes)
	return out, err
}

func (g *vxGroup) group() (*model.Group, error) {
	out := &model.Group{ID: g.ID, Name: g.Name, Description: g.Description}
	var err error
	out.Attributes, err = parseAttributes(g.Attributes)
	return out, err
}

func parseAttributes(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var out model.Strings
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, errors.New("the attributes of a user or group are not an object of texts")
	}
	return out, nil
}

func formatAttributes(a map[string]string) (string, error) {
	if len(a) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(a)
	return string(b), err
}

// Users implements Server.
func (r *REST) Users(ctx context.Context) ([]*model.User, error) {
	var out []*model.User
	_, err := r.list(nil, func(q url.Values) (int, string, error) {
		page, err := one[struct {
			Users []*vxUser `json:"vXUsers"`
		}](ctx, r, http.MethodGet, xusers+"users", q, nil)
		if err != nil {
			return 0, "", err
		}
		for _, u := range page.Users {
			user, err := u.user()
			if err != nil {
				return 0, "", err
			}
			out = append(out, user)
		}
		if len(page.Users) == 0 {
			return 0, "", nil
		}
		return len(page.Users), page.Users[0].Name, nil
	})
	slices.SortFunc(out, func(a, b *model.User) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// User implements Server.
func (r *REST) User(ctx context.Context, name string) (*model.User, error) {
	u, err := one[vxUser](ctx, r, http.MethodGet, xusers+"users/userName/"+seg(name), nil, nil)
	if err != nil {
		return nil, missing(err, name)
	}
	return u.user()
}

// userDocument puts u into a document of Ranger's, which keeps what SQE has no
// word for.
func (r *REST) userDocument(ctx context.Context, u *model.User, doc map[string]any) error {
	ids := make([]int64, 0, len(u.Groups))
	for _, name := range u.Groups {
		g, err := r.Group(ctx, name)
		if KindOf(err) == NotFound {
			return &Error{Kind: UnknownPrincipal, Reason: fmt.Sprintf("group with name: %s does not exist", name), Name: name}
		}
		if err != nil {
			return err
		}
		ids = append(ids, g.ID)
	}
	text, err := formatAttributes(u.Attributes)
	if err != nil {
		return err
	}
	roles := u.AdminRoles
	if len(roles) == 0 {
		roles = []string{"ROLE_USER"}
	}
	maps.Copy(doc, map[string]any{
		"name": u.Name, "firstName": cmp.Or(u.FirstName, u.Name), "lastName": u.LastName, "emailAddress": u.Email,
		"description": u.Description, "groupIdList": ids, "groupNameList": u.Groups, "userRoleList": roles, "otherAttributes": text,
	})
	if u.Password != "" {
		doc["password"] = u.Password
	}
	return nil
}

// CreateUser implements Server.
func (r *REST) CreateUser(ctx context.Context, u *model.User) (*model.User, error) {
	doc := map[string]any{"status": 1, "isVisible": 1, "userSource": 0}
	if err := r.userDocument(ctx, u, doc); err != nil {
		return nil, err
	}
	if err := r.call(ctx, http.MethodPost, xusers+"secure/users", nil, doc, nil); err != nil {
		return nil, err
	}
	return r.User(ctx, u.Name) // the answer to a write has ids of groups without names
}

// UpdateUser implements Server.
func (r *REST) UpdateUser(ctx context.Context, u *model.User) (*model.User, error) {
	doc, err := one[map[string]any](ctx, r, http.MethodGet, xusers+"users/userName/"+seg(u.Name), nil, nil)
	if err != nil {
		return nil, missing(err, u.Name)
	}
	id, err := idOf(*doc)
	if err != nil {
		return nil, err
	}
	(*doc)["password"] = hidden // as it is read: the password stays
	if err := r.userDocument(ctx, u, *doc); err != nil {
		return nil, err
	}
	if err := r.call(ctx, http.MethodPut, xusers+"secure/users/"+id, nil, *doc, nil); err != nil {
		return nil, missing(err, u.Name)
	}
	return r.User(ctx, u.Name)
}

// DeleteUser implements Server. A Ranger Admin only hides a user who is still
// referred to, and when forced removes the name from policies and roles without a
// word, be it a denial; so it is asked for references before, and forced.
func (r *REST) DeleteUser(ctx context.Context, name string) error {
	u, err := r.User(ctx, name)
	if err != nil {
		return err
	}
	if err := r.referred(ctx, "user", name); err != nil {
		return err
	}
	return r.call(ctx, http.MethodDelete, xusers+"secure/users/id/"+num(u.ID), url.Values{"forceDelete": {"true"}}, nil, nil)
}

// Groups implements Server.
func (r *REST) Groups(ctx context.Context) ([]*model.Group, error) {
	var out []*model.Group
	_, err := r.list(nil, func(q url.Values) (int, string, error) {
		page, err := one[struct {
			Groups []*vxGroup `json:"vXGroups"`
		}](ctx, r, http.MethodGet, xusers+"groups", q, nil)
		if err != nil {
			return 0, "", err
		}
		for _, g := range page.Groups {
			group, err := g.group()
			if err != nil {
				return 0, "", err
			}
			out = append(out, group)
		}
		if len(page.Groups) == 0 {
			return 0, "", nil
		}
		return len(page.Groups), page.Groups[0].Name, nil
	})
	slices.SortFunc(out, func(a, b *model.Group) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// Group implements Server.
func (r *REST) Group(ctx context.Context, name string) (*model.Group, error) {
	g, err := one[vxGroup](ctx, r, http.MethodGet, xusers+"groups/groupName/"+seg(name), nil, nil)
	if err != nil {
		return nil, missing(err, name)
	}
	return g.group()
}

// groupDocument puts g into a document of Ranger's.
func groupDocument(g *model.Group, doc map[string]any) error {
	text, err := formatAttributes(g.Attributes)
	if err != nil {
		return err
	}
	doc["name"], doc["description"], doc["otherAttributes"] = g.Name, g.Description, text
	return nil
}

// CreateGroup implements Server.
func (r *REST) CreateGroup(ctx context.Context, g *model.Group) (*model.Group, error) {
	// A Ranger Admin answers a group that exists with that group, changed.
	if _, err := r.Group(ctx, g.Name); err == nil {
		return nil, &Error{Kind: Exists, Reason: "group with name: " + g.Name + " already exists", Name: g.Name}
	} else if KindOf(err) != NotFound {
		return nil, err
	}
	doc := map[string]any{"groupSource": 0, "groupType": 1, "isVisible": 1}
	if err := groupDocument(g, doc); err != nil {
		return nil, err
	}
	if err := r.call(ctx, http.MethodPost, xusers+"secure/groups", nil, doc, nil); err != nil {
		return nil, err
	}
	return r.Group(ctx, g.Name)
}

// UpdateGroup implements Server.
func (r *REST) UpdateGroup(ctx context.Context, g *model.Group) (*model.Group, error) {
	doc, err := one[map[string]any](ctx, r, http.MethodGet, xusers+"groups/groupName/"+seg(g.Name), nil, nil)
	if err != nil {
		return nil, missing(err, g.Name)
	}
	id, err := idOf(*doc)
	if err != nil {
		return nil, err
	}
	if err := groupDocument(g, *doc); err != nil {
		return nil, err
	}
	if err := r.call(ctx, http.MethodPut, xusers+"secure/groups/"+id, nil, *doc, nil); err != nil {
		return nil, missing(err, g.Name)
	}
	return r.Group(ctx, g.Name)
}

// DeleteGroup implements Server; see DeleteUser.
func (r *REST) DeleteGroup(ctx context.Context, name string) error {
	g, err := r.Group(ctx, name)
	if err != nil {
		return err
	}
	if err := r.referred(ctx, "group", name); err != nil {
		return err
	}
	return r.call(ctx, http.MethodDelete, xusers+"secure/groups/id/"+num(g.ID), url.Values{"forceDelete": {"true"}}, nil, nil)
}

// idOf is the id of a document as text.
func idOf(doc map[string]any) (string, error) {
	id, ok := doc["id"].(float64)
	if !ok || id <= 0 {
		return "", errors.New("the Ranger Admin answered with an object that has no id")
	}
	return num(int64(id)), nil
}

// referred is InUse when a policy or a role names the user or group.
func (r *REST) referred(ctx context.Context, what, name string) error {
	policies, _, err := listed[*model.Policy](ctx, r, api+"policy", url.Values{what: {name}})
	if err != nil {
		return err
	}
	inUse := func(where string) error {
		return &Error{Kind: InUse, Name: name, Reason: fmt.Sprintf("the %s can not be deleted as it is referenced in %s", what, where)}
	}
	for _, p := range policies {
		for _, items := range [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
			for _, i := range items {
				if what == "user" && slices.Contains(i.Users, name) || what == "group" && slices.Contains(i.Groups, name) {
					return inUse("policy " + p.Name)
				}
			}
		}
	}
	roles, err := r.Roles(ctx)
	if err != nil {
		return err
	}
	for _, role := range roles {
		members := role.Users
		if what == "group" {
			members = role.Groups
		}
		if slices.ContainsFunc(members, func(m model.Member) bool { return m.Name == name }) {
			return inUse("role " + role.Name)
		}
	}
	return nil
}
