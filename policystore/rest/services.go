package rest

import (
	"encoding/json"
	"net/http"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// hidden stands for a password, as with a Ranger Admin: sent back it changes
// nothing.
const hidden = "*****"

func (h *Handler) serviceRoutes() {
	h.handle(http.MethodGet, api+"service", readers, func(c *call) (any, error) { return c.services(false) })
	h.handle(http.MethodGet, "plugins/services", readers, func(c *call) (any, error) { return c.services(true) })
	h.handle(http.MethodPost, api+"service", sysadmins, (*call).createService)
	h.handle(http.MethodPost, "plugins/services", sysadmins, (*call).createService)
	for _, p := range []string{api + "service/", "plugins/services/"} {
		h.handle(http.MethodGet, p+"name/:name", anybody, func(c *call) (any, error) { return c.withService(c.vars["name"], c.showService) })
		h.handle(http.MethodGet, p+":id", anybody, func(c *call) (any, error) { return c.withServiceID(c.showService) })
		h.handle(http.MethodPut, p+":id", sysadmins, func(c *call) (any, error) { return c.withServiceID(c.updateService) })
		h.handle(http.MethodDelete, p+":id", sysadmins, func(c *call) (any, error) { return c.withServiceID(c.deleteService) })
	}
	h.handle(http.MethodPut, api+"service/name/:name", sysadmins, func(c *call) (any, error) { return c.withService(c.vars["name"], c.updateService) })
	h.handle(http.MethodDelete, api+"service/name/:name", sysadmins, func(c *call) (any, error) { return c.withService(c.vars["name"], c.deleteService) })

	h.handle(http.MethodGet, api+"servicedef", anybody, func(c *call) (any, error) {
		defs, err := c.store.ServiceDefs(c.ctx)
		if err != nil {
			return nil, err
		}
		return paged(c.r.URL.Query(), defs)
	})
	h.handle(http.MethodGet, "plugins/definitions", anybody, func(c *call) (any, error) {
		defs, err := c.store.ServiceDefs(c.ctx)
		if err != nil {
			return nil, err
		}
		page, err := paged(c.r.URL.Query(), defs)
		if err != nil {
			return nil, err
		}
		return wrapped(c.r.URL.Query(), "serviceDefs", page, len(defs)), nil
	})
	for _, p := range []string{api + "servicedef/", "plugins/definitions/"} {
		h.handle(http.MethodGet, p+"name/:name", anybody, func(c *call) (any, error) {
			def, err := c.store.ServiceDef(c.ctx, c.vars["name"])
			if err != nil {
				return nil, absent(err, errNotFound)
			}
			return document(def), nil
		})
		h.handle(http.MethodGet, p+":id", anybody, (*call).serviceDefByID)
	}
	h.handle(http.MethodPost, api+"servicedef", sysadmins, (*call).createServiceDef)
	h.handle(http.MethodPost, "plugins/definitions", sysadmins, (*call).createServiceDef)

	h.handle(http.MethodGet, api+"zones", readers, func(c *call) (any, error) {
		zones, err := c.store.Zones(c.ctx)
		if err != nil {
			return nil, err
		}
		return paged(c.r.URL.Query(), zones)
	})
	h.handle(http.MethodPost, api+"zones", sysadmins, func(c *call) (any, error) {
		z := &model.Zone{}
		if err := c.read(z); err != nil {
			return nil, err
		}
		z.ID = 0
		return c.store.CreateZone(c.ctx, z)
	})
	show := func(z *model.Zone) (any, error) { return z, nil }
	h.handle(http.MethodGet, api+"zones/name/:name", readers, func(c *call) (any, error) { return c.withZone(show) })
	h.handle(http.MethodGet, api+"zones/:id", readers, func(c *call) (any, error) { return c.withZone(show) })
	h.handle(http.MethodPut, api+"zones/:id", sysadmins, func(c *call) (any, error) { return c.withZone(c.updateZone) })
	remove := func(c *call) (any, error) {
		return c.withZone(func(z *model.Zone) (any, error) { return nil, c.store.DeleteZone(c.ctx, z.Name) })
	}
	h.handle(http.MethodDelete, api+"zones/name/:name", sysadmins, remove)
	h.handle(http.MethodDelete, api+"zones/:id", sysadmins, remove)
}

// shown is a service without secrets.
func shown(s *model.Service) *model.Service {
	out := *s
	out.Configs = make(model.Strings, len(s.Configs))
	for k, v := range s.Configs {
		if secret(k) && v != "" {
			v = hidden
		}
		out.Configs[k] = v
	}
	return &out
}

func secret(key string) bool { return strings.Contains(strings.ToLower(key), "password") }

func (c *call) services(list bool) (any, error) {
	services, err := c.store.Services(c.ctx)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	matching := []*model.Service{}
	for _, s := range services {
		if n := q.Get("serviceName"); n != "" && n != s.Name {
			continue
		}
		if t := q.Get("serviceType"); t != "" && t != s.Type {
			continue
		}
		matching = append(matching, shown(s))
	}
	page, err := paged(q, matching)
	if err != nil {
		return nil, err
	}
	if list {
		return wrapped(q, "services", page, len(matching)), nil
	}
	return page, nil
}

func (c *call) withService(name string, then func(s *model.Service) (any, error)) (any, error) {
	s, err := c.store.Service(c.ctx, name)
	if err != nil {
		return nil, absent(err, errNotFound)
	}
	return then(s)
}

func (c *call) withServiceID(then func(s *model.Service) (any, error)) (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	services, err := c.store.Services(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range services {
		if s.ID == id {
			return then(s)
		}
	}
	return nil, noData("RangerService", id)
}

func (c *call) showService(s *model.Service) (any, error) {
	if !c.reader() {
		ok, err := c.administersThis(s)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, notForUsers(c.r.Method)
		}
	}
	return shown(s), nil
}

func (c *call) createService() (any, error) {
	s := &model.Service{}
	if err := c.read(s); err != nil {
		return nil, err
	}
	s.ID = 0
	made, err := c.store.CreateService(c.ctx, s)
	if err != nil {
		return nil, err
	}
	return shown(made), nil
}

func (c *call) updateService(was *model.Service) (any, error) {
	s := &model.Service{}
	if err := c.read(s); err != nil {
		return nil, err
	}
	s.ID = was.ID
	for k, v := range s.Configs {
		if secret(k) && v == hidden {
			s.Configs[k] = was.Configs[k]
		}
	}
	made, err := c.store.UpdateService(c.ctx, s)
	if err != nil {
		return nil, err
	}
	return shown(made), nil
}

func (c *call) deleteService(s *model.Service) (any, error) {
	return nil, c.store.DeleteService(c.ctx, s.Name)
}

func (c *call) serviceDefByID() (any, error) {
	id, err := c.id("id")
	if err != nil {
		return nil, err
	}
	defs, err := c.store.ServiceDefs(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range defs {
		var head struct {
			ID int64 `json:"id"`
		}
		if json.Unmarshal(d, &head) == nil && head.ID == id {
			return document(d), nil
		}
	}
	return nil, noData("RangerServiceDef", id)
}

func (c *call) createServiceDef() (any, error) {
	var def json.RawMessage
	if err := c.read(&def); err != nil {
		return nil, err
	}
	var head struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(def, &head); err != nil {
		return nil, malformed("a service definition is an object with a name")
	}
	if err := c.store.CreateServiceDef(c.ctx, def); err != nil {
		return nil, err
	}
	made, err := c.store.ServiceDef(c.ctx, head.Name)
	if err != nil {
		return nil, err
	}
	return document(made), nil
}

// withZone finds the zone of the path, by name or id.
func (c *call) withZone(then func(z *model.Zone) (any, error)) (any, error) {
	name, byName := c.vars["name"]
	var id int64
	if !byName {
		var err error
		if id, err = c.id("id"); err != nil {
			return nil, err
		}
	}
	zones, err := c.store.Zones(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, z := range zones {
		if byName && z.Name == name || !byName && z.ID == id {
			return then(z)
		}
	}
	if byName {
		return nil, refusal(&admin.Error{Kind: admin.NotFound, Reason: "(0) Validation failure: error code[3037], reason[No security zone found for [" + name + "]], field[name], subfield[null], type[semantically incorrect] "})
	}
	return nil, noData("RangerSecurityZone", id)
}

func (c *call) updateZone(was *model.Zone) (any, error) {
	z := &model.Zone{}
	if err := c.read(z); err != nil {
		return nil, err
	}
	z.ID = was.ID
	return c.store.UpdateZone(c.ctx, z)
}
