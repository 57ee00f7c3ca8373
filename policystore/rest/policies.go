package rest

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

const api = "public/v2/api/"

func (h *Handler) policyRoutes() {
	for _, p := range []string{api + "policy", "plugins/policies"} {
		h.handle(http.MethodPost, p, anybody, (*call).createPolicy)
		h.handle(http.MethodPost, p+"/apply", anybody, func(*call) (any, error) {
			return nil, bad("policies are not merged here: read the policy, change it and PUT it")
		})
		h.handle(http.MethodGet, p+"/:id", anybody, (*call).getPolicy)
		h.handle(http.MethodPut, p+"/:id", anybody, (*call).updatePolicy)
		h.handle(http.MethodDelete, p+"/:id", anybody, (*call).deletePolicy)
	}
	h.handle(http.MethodGet, api+"policy", anybody, func(c *call) (any, error) { return c.search("") })
	h.handle(http.MethodGet, "plugins/policies", anybody, (*call).searchList)
	h.handle(http.MethodGet, "plugins/policies/service/name/:service", anybody, (*call).searchList)
	h.handle(http.MethodDelete, api+"policy", anybody, func(c *call) (any, error) {
		return c.named(c.query("servicename"), c.query("zoneName"), c.query("policyname"), c.remove)
	})
	byName := func(then func(p *model.Policy) (any, error)) func(c *call) (any, error) {
		return func(c *call) (any, error) {
			return c.named(c.vars["service"], c.query("zoneName"), c.vars["name"], then)
		}
	}
	h.handle(http.MethodGet, api+"service/:service/policy/:name", anybody, byName(func(p *model.Policy) (any, error) { return p, nil }))
	h.handle(http.MethodPut, api+"service/:service/policy/:name", anybody, func(c *call) (any, error) {
		return c.named(c.vars["service"], c.query("zoneName"), c.vars["name"], c.replace)
	})
	h.handle(http.MethodGet, api+"service/:service/policy", anybody, func(c *call) (any, error) { return c.search(c.vars["service"]) })
	h.handle(http.MethodGet, api+"policy/guid/:guid", anybody, func(c *call) (any, error) {
		return c.withGUID(func(p *model.Policy) (any, error) { return p, nil })
	})
	h.handle(http.MethodDelete, api+"policy/guid/:guid", anybody, func(c *call) (any, error) { return c.withGUID(c.remove) })
	h.handle(http.MethodGet, "plugins/policy/:id/versionList", anybody, (*call).policyVersions)
	h.handle(http.MethodGet, "plugins/policy/:id/version/:version", anybody, (*call).policyAt)
	h.handle(http.MethodGet, "plugins/policyLabels", anybody, (*call).policyLabels)
}

// administers reports whether the account may change the policies of a service.
func (c *call) administers(service string) (bool, error) {
	if c.account.IsAdmin() {
		return true, nil
	}
	s, err := c.store.Service(c.ctx, service)
	if admin.KindOf(err) == admin.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return c.administersThis(s)
}

func (c *call) administersThis(s *model.Service) (bool, error) {
	if c.account.IsAdmin() {
		return true, nil
	}
	u, err := c.store.User(c.ctx, c.account.Name)
	if err != nil {
		return false, err
	}
	return administers(s, u), nil
}

// administers reports whether the service names the user, or a group of the user,
// as its administrator.
func administers(s *model.Service, u *model.User) bool {
	return named(s.Configs[adminUsers], u.Name) || slices.ContainsFunc(u.Groups, func(g string) bool { return named(s.Configs[adminGroups], g) })
}

// named is listed without "*": everybody is no administrator.
func named(value, name string) bool {
	for _, n := range strings.Split(value, ",") {
		if strings.TrimSpace(n) == name && name != "" {
			return true
		}
	}
	return false
}

func (c *call) notDelegated() error {
	return forbidden("User '%s' does not have delegated-admin privilege on given resources", c.account.Name)
}

// mayChange refuses whoever may not change policies of the service.
func (c *call) mayChange(service string) error {
	ok, err := c.administers(service)
	if err == nil && !ok {
		err = c.notDelegated()
	}
	return err
}

// mayRead refuses whoever may not read policies of the service.
func (c *call) mayRead(service string) error {
	if c.reader() {
		return nil
	}
	return c.mayChange(service)
}

func (c *call) readPolicy() (*model.Policy, error) {
	p := &model.Policy{}
	if err := c.read(p); err != nil {
		return nil, err
	}
	for _, list := range [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
		if slices.Contains(list, nil) {
			return nil, bad("(0) Validation failure: error code[3019], reason[policy items object was null], field[policy items], subfield[null], type[missing] ")
		}
	}
	return p, nil
}

func (c *call) createPolicy() (any, error) {
	p, err := c.readPolicy()
	if err != nil {
		return nil, err
	}
	if err := c.mayChange(p.Service); err != nil {
		return nil, err
	}
	if yes(c.query("createPrincipalsIfAbsent")) {
		if err := c.createPrincipals(p); err != nil {
			return nil, err
		}
	}
	if yes(c.query("updateIfExists")) {
		was, err := c.store.PolicyNamed(c.ctx, p.Service, p.ZoneName, p.Name)
		switch {
		case err == nil:
			p.ID = was.ID
			if p.GUID == "" {
				p.GUID = was.GUID
			}
			return c.store.UpdatePolicy(c.ctx, p)
		case admin.KindOf(err) != admin.NotFound:
			return nil, err
		}
	}
	p.ID, p.Version = 0, 0
	return c.store.CreatePolicy(c.ctx, p)
}

func yes(value string) bool { return strings.EqualFold(value, "true") }

// policyByID is the policy of the path, which the account may see.
func (c *call) policyByID() (*model.Policy, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	p, err := c.store.Policy(c.ctx, id)
	if admin.KindOf(err) == admin.NotFound {
		return nil, noData("RangerPolicy", id)
	}
	if err != nil {
		return nil, err
	}
	return p, c.mayRead(p.Service)
}

// noData is what a Ranger Admin says of an id that it does not have.
func noData(class string, id int64) error {
	return &answer{status: 400, body: vxResponse{
		Status: 1, Text: "org.apache.ranger.plugin.model." + class + " :" + noDataText,
		Messages: []message{{Name: "DATA_NOT_FOUND", Key: "xa.error.data_not_found", Text: "Data not found", Object: id}},
	}}
}

var errNotFound = &answer{status: 404, body: vxResponse{Status: 404, Text: notFoundText}}

func (c *call) getPolicy() (any, error) {
	p, err := c.policyByID()
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c *call) updatePolicy() (any, error) {
	was, err := c.policyByID()
	if err != nil {
		return nil, err
	}
	return c.replace(was)
}

// replace puts the policy of the request in the place of another.
func (c *call) replace(was *model.Policy) (any, error) {
	if err := c.mayChange(was.Service); err != nil {
		return nil, err
	}
	p, err := c.readPolicy()
	if err != nil {
		return nil, err
	}
	if p.ID != 0 && p.ID != was.ID {
		return nil, &answer{status: 400, body: vxResponse{Status: 400, Text: "policyID mismatch"}}
	}
	p.ID = was.ID
	return c.store.UpdatePolicy(c.ctx, p)
}

func (c *call) deletePolicy() (any, error) {
	p, err := c.policyByID()
	if err != nil {
		return nil, err
	}
	return c.remove(p)
}

func (c *call) remove(p *model.Policy) (any, error) {
	if err := c.mayChange(p.Service); err != nil {
		return nil, err
	}
	return nil, c.store.DeletePolicy(c.ctx, p.ID)
}

// named finds a policy by its name and goes on with it.
func (c *call) named(service, zone, name string, then func(p *model.Policy) (any, error)) (any, error) {
	// First: whether there is such a policy is for those who may read it.
	if err := c.mayRead(service); err != nil {
		return nil, err
	}
	p, err := c.store.PolicyNamed(c.ctx, service, zone, name)
	if err != nil {
		return nil, absent(err, errNotFound)
	}
	return then(p)
}

func (c *call) withGUID(then func(p *model.Policy) (any, error)) (any, error) {
	services, err := c.readable(c.query("serviceName"))
	if err != nil {
		return nil, err
	}
	zone := c.query("zoneName") + c.query("ZoneName")
	for _, s := range services {
		policies, err := c.store.Policies(c.ctx, s.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range policies {
			if p.GUID == c.vars["guid"] && (zone == "" || p.ZoneName == zone) {
				whole, err := c.store.Policy(c.ctx, p.ID)
				if err != nil {
					return nil, absent(err, errNotFound)
				}
				return then(whole)
			}
		}
	}
	return nil, errNotFound
}

func (c *call) policyVersions() (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	if err := c.mayReadHistory(id); err != nil {
		return nil, err
	}
	versions, err := c.store.PolicyVersions(c.ctx, id)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = strconv.FormatInt(v, 10)
	}
	return map[string]string{"value": strings.Join(texts, ",")}, nil
}

func (c *call) policyAt() (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	version, err := c.id("version")
	if err != nil {
		return nil, err
	}
	if err := c.mayReadHistory(id); err != nil {
		return nil, err
	}
	return c.store.PolicyAt(c.ctx, id, version)
}

// mayReadHistory: that of a policy that is gone belongs to those who may read all.
func (c *call) mayReadHistory(id int64) error {
	if c.reader() {
		return nil
	}
	p, err := c.store.Policy(c.ctx, id)
	if err != nil {
		if admin.KindOf(err) == admin.NotFound {
			return noData("RangerPolicy", id)
		}
		return err
	}
	return c.mayRead(p.Service)
}

func (c *call) policyLabels() (any, error) {
	services, err := c.readable("")
	if err != nil {
		return nil, err
	}
	labels := []string{}
	for _, s := range services {
		policies, err := c.store.Policies(c.ctx, s.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range policies {
			labels = append(labels, p.PolicyLabels...)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels), nil
}

// createPrincipals makes the users, groups and roles of a policy that do not
// exist.
func (c *call) createPrincipals(p *model.Policy) error {
	if !c.account.IsAdmin() {
		return forbidden("User '%s' may not create users, groups and roles", c.account.Name)
	}
	for _, list := range [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
		for _, i := range list {
			if err := c.ensure(i.Users, i.Groups, i.Roles); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensure makes the users, groups and roles that do not exist. Nobody can log in
// as a user made so.
func (c *call) ensure(users, groups, roles []string) error {
	made := func(_ any, err error) error {
		if admin.KindOf(err) == admin.Exists {
			return nil
		}
		return err
	}
	var errs []error
	for _, name := range users {
		if _, err := c.store.User(c.ctx, name); admin.KindOf(err) == admin.NotFound {
			errs = append(errs, made(c.store.CreateUser(c.ctx, &model.User{Name: name, FirstName: name, AdminRoles: []string{"ROLE_USER"}})))
		}
	}
	for _, name := range groups {
		if _, err := c.store.Group(c.ctx, name); admin.KindOf(err) == admin.NotFound {
			errs = append(errs, made(c.store.CreateGroup(c.ctx, &model.Group{Name: name})))
		}
	}
	for _, name := range roles {
		if _, err := c.store.Role(c.ctx, name); admin.KindOf(err) == admin.NotFound {
			errs = append(errs, made(c.store.CreateRole(c.ctx, &model.Role{Name: name})))
		}
	}
	return errors.Join(errs...)
}
