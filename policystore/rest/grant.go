package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func (h *Handler) grantRoutes() {
	h.handle(http.MethodPost, "plugins/secure/services/grant/:service", anybody, func(c *call) (any, error) { return c.changeAccess("grant") })
	h.handle(http.MethodPost, "plugins/secure/services/revoke/:service", anybody, func(c *call) (any, error) { return c.changeAccess("revoke") })
	refused := func(*call) (any, error) { return nil, errAnonymous }
	h.handle(http.MethodPost, "plugins/services/grant/:service", nobody, refused)
	h.handle(http.MethodPost, "plugins/services/revoke/:service", nobody, refused)
}

// grantRequest is GrantRevokeRequest as far as it changes something.
type grantRequest struct {
	Grantor     string            `json:"grantor"`
	Resource    map[string]string `json:"resource"` // values separated by commas
	Users       []string          `json:"users"`
	Groups      []string          `json:"groups"`
	Roles       []string          `json:"roles"`
	AccessTypes []string          `json:"accessTypes"`
	Delegate    bool              `json:"delegateAdmin"`
	Audit       *bool             `json:"enableAudit"`
	Replace     bool              `json:"replaceExistingPermissions"`
	Recursive   bool              `json:"isRecursive"`
	Zone        string            `json:"zoneName"`
}

// changeAccess changes the policy that has exactly the resource. Unlike a Ranger
// Admin it leaves alone policies that hold only at times, under conditions or
// before others.
func (c *call) changeAccess(verb string) (any, error) {
	var q grantRequest
	if err := c.read(&q); err != nil {
		return nil, err
	}
	service, err := c.store.Service(c.ctx, c.vars["service"])
	if err != nil {
		return nil, absent(err, errNotFound)
	}
	if err := c.mayGrant(service, &q, verb); err != nil {
		return nil, err
	}
	if len(q.AccessTypes) == 0 || len(q.Users)+len(q.Groups)+len(q.Roles) == 0 || len(q.Resource) == 0 {
		return nil, bad("a %s names a resource, access types, and users, groups or roles", verb)
	}
	if err := c.known(&q); err != nil {
		return nil, err
	}
	if err := c.inZone(service.Name, q.Zone); err != nil {
		return nil, err
	}
	for i, a := range q.AccessTypes {
		q.AccessTypes[i] = strings.ToLower(a)
	}
	c.members.Lock()
	defer c.members.Unlock()
	p, err := c.exactPolicy(service.Name, &q)
	switch {
	case err != nil:
		return nil, err
	case verb == "grant" && p == nil:
		err = c.newGrant(service.Name, &q)
	case verb == "grant":
		q.grant(p)
		_, err = c.store.UpdatePolicy(c.ctx, p)
	case p != nil && q.revoke(p):
		err = c.keepOrDelete(p)
	}
	if err != nil {
		return nil, err
	}
	return map[string]int{"httpStatusCode": 0, "statusCode": 0}, nil
}

// mayGrant: a service lets accounts, such as those of plugins, speak for a
// grantor; the grantor must administer the service.
func (c *call) mayGrant(s *model.Service, q *grantRequest, verb string) error {
	refused := forbidden("User doesn't have necessary permission to %s access", verb)
	mine, err := c.administersThis(s)
	if err != nil {
		return err
	}
	if !mine && !named(s.Configs[mayGrant], c.account.Name) {
		return refused
	}
	if q.Grantor == "" || q.Grantor == c.account.Name {
		if !mine {
			return refused
		}
		return nil
	}
	u, err := c.store.User(c.ctx, q.Grantor)
	if admin.KindOf(err) == admin.NotFound {
		return forbidden("Grantor user %s doesn't exist", q.Grantor)
	}
	if err != nil {
		return err
	}
	if slices.Contains(u.AdminRoles, "ROLE_SYS_ADMIN") || administers(s, u) {
		return nil
	}
	return refused
}

func (c *call) known(q *grantRequest) error {
	check := func(what, name string, err error) error {
		return absent(err, forbidden("Grantee %s %s doesn't exist", what, name))
	}
	for _, name := range q.Users {
		if _, err := c.store.User(c.ctx, name); err != nil {
			return check("user", name, err)
		}
	}
	for _, name := range q.Groups {
		if _, err := c.store.Group(c.ctx, name); err != nil {
			return check("group", name, err)
		}
	}
	for _, name := range q.Roles {
		if _, err := c.store.Role(c.ctx, name); err != nil {
			return check("role", name, err)
		}
	}
	return nil
}

// inZone: which zone a resource lies in is not guessed.
func (c *call) inZone(service, zone string) error {
	if zone != "" {
		return nil
	}
	zones, err := c.store.Zones(c.ctx)
	if err != nil {
		return err
	}
	for _, z := range zones {
		if _, ok := z.Services[service]; ok {
			return bad("the service has security zones: name the zone in zoneName, or change the policy itself")
		}
	}
	return nil
}

func (q *grantRequest) values(element string) []string {
	var out []string
	for _, v := range strings.Split(q.Resource[element], ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// exactPolicy is the access policy for the resource and nothing else, nil when
// there is none.
func (c *call) exactPolicy(service string, q *grantRequest) (*model.Policy, error) {
	policies, err := c.store.Policies(c.ctx, service)
	if err != nil {
		return nil, err
	}
	for _, p := range policies {
		if p.PolicyType != model.AccessPolicy || !p.IsEnabled() || p.ZoneName != q.Zone || p.PolicyPriority != 0 || p.DenyAllElse ||
			len(p.Conditions)+len(p.ValiditySchedules)+len(p.AdditionalResources) > 0 || len(p.Resources) != len(q.Resource) {
			continue
		}
		same := true
		for element := range q.Resource {
			r, ok := p.Resources[element]
			wanted := q.values(element)
			same = same && ok && !r.Excludes && r.Recursive == q.Recursive && len(r.Values) == 1 && len(wanted) == 1 && strings.EqualFold(r.Values[0], wanted[0])
		}
		if same {
			return p, nil
		}
	}
	return nil, nil
}

func (c *call) newGrant(service string, q *grantRequest) error {
	p := &model.Policy{
		Service: service, Name: fmt.Sprintf("grant-%d", c.o.Now().UnixMilli()), Description: "created by grant",
		AuditEnabled: q.Audit, ZoneName: q.Zone, Resources: map[string]model.Resource{},
	}
	for element := range q.Resource {
		p.Resources[element] = model.Resource{Values: q.values(element), Recursive: q.Recursive}
	}
	q.grant(p)
	_, err := c.store.CreatePolicy(c.ctx, p)
	return err
}

// keepOrDelete: a policy without items stays, as one that only audits, where it
// does that.
func (c *call) keepOrDelete(p *model.Policy) error {
	items := len(p.PolicyItems) + len(p.DenyPolicyItems) + len(p.AllowExceptions) + len(p.DenyExceptions)
	if items == 0 && p.AuditEnabled != nil && !*p.AuditEnabled {
		return c.store.DeletePolicy(c.ctx, p.ID)
	}
	_, err := c.store.UpdatePolicy(c.ctx, p)
	return err
}

// grant adds the accesses, and takes them from what denies them to the very same
// principals.
func (q *grantRequest) grant(p *model.Policy) {
	if q.Replace {
		p.PolicyItems = q.without(p.PolicyItems, nil)
	}
	p.DenyPolicyItems = q.without(p.DenyPolicyItems, q.AccessTypes)
	p.AllowExceptions = q.without(p.AllowExceptions, q.AccessTypes)
	item := &model.Item{Users: q.Users, Groups: q.Groups, Roles: q.Roles, DelegateAdmin: q.Delegate}
	for _, a := range q.AccessTypes {
		item.Accesses = append(item.Accesses, model.Access{Type: a})
	}
	p.PolicyItems = append(p.PolicyItems, item)
}

// revoke takes the accesses, and the right to grant unless the request keeps it.
// It reports whether anything changed.
func (q *grantRequest) revoke(p *model.Policy) bool {
	before := fmt.Sprint(shape(p.PolicyItems), shape(p.DenyExceptions))
	types := q.AccessTypes
	if q.Replace {
		types = nil
	}
	p.PolicyItems = q.without(p.PolicyItems, types)
	p.DenyExceptions = q.without(p.DenyExceptions, q.AccessTypes)
	if !q.Delegate {
		p.PolicyItems = q.undelegated(p.PolicyItems)
	}
	return fmt.Sprint(shape(p.PolicyItems), shape(p.DenyExceptions)) != before
}

func shape(items []*model.Item) []model.Item {
	var out []model.Item
	for _, i := range items {
		out = append(out, *i)
	}
	return out
}

// split parts the principals of an item into those of the request and the rest;
// either is nil when empty.
func (q *grantRequest) split(i *model.Item) (theirs, rest *model.Item) {
	a, b := *i, *i
	part := func(names, of []string) (in, out []string) {
		for _, n := range names {
			if slices.Contains(of, n) {
				in = append(in, n)
			} else {
				out = append(out, n)
			}
		}
		return in, out
	}
	a.Users, b.Users = part(i.Users, q.Users)
	a.Groups, b.Groups = part(i.Groups, q.Groups)
	a.Roles, b.Roles = part(i.Roles, q.Roles)
	if len(a.Users)+len(a.Groups)+len(a.Roles) > 0 {
		theirs = &a
	}
	if len(b.Users)+len(b.Groups)+len(b.Roles) > 0 {
		rest = &b
	}
	return theirs, rest
}

// without are the items without those accesses of the request's principals; nil
// is all accesses.
func (q *grantRequest) without(items []*model.Item, types []string) []*model.Item {
	var out []*model.Item
	for _, i := range items {
		theirs, rest := q.split(i)
		if rest != nil {
			out = append(out, rest)
		}
		if theirs == nil || types == nil {
			continue
		}
		theirs.Accesses = slices.DeleteFunc(slices.Clone(i.Accesses), func(a model.Access) bool { return slices.Contains(types, a.Type) })
		if len(theirs.Accesses) > 0 {
			out = append(out, theirs)
		}
	}
	return out
}

func (q *grantRequest) undelegated(items []*model.Item) []*model.Item {
	var out []*model.Item
	for _, i := range items {
		theirs, rest := q.split(i)
		if theirs == nil || !i.DelegateAdmin {
			out = append(out, i)
			continue
		}
		if rest != nil {
			out = append(out, rest)
		}
		theirs.DelegateAdmin = false
		out = append(out, theirs)
	}
	return out
}
