package rest

import (
	"net/http"
	"slices"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func (h *Handler) tagRoutes() {
	h.handle(http.MethodPut, "tags/importservicetags", sysadmins, func(c *call) (any, error) {
		t, err := c.readTags()
		if err != nil {
			return nil, err
		}
		// A Ranger Admin says no more of a service that it does not have.
		return nil, absent(c.store.ImportTags(c.ctx, t), &answer{status: 400, body: vxResponse{Status: 400}})
	})
	h.handle(http.MethodGet, api+"service/:service/tags", sysadmins, func(c *call) (any, error) {
		t, err := c.store.Tags(c.ctx, c.vars["service"])
		if err != nil {
			return nil, absent(err, errNotFound)
		}
		t.Op = "set"
		return t, nil
	})
	h.handle(http.MethodPut, api+"service/:service/tags", sysadmins, func(c *call) (any, error) {
		t, err := c.readTags()
		if err != nil {
			return nil, err
		}
		if t.Op == "set" || t.Op == "" {
			t.Op = "add_or_update"
		}
		t.ServiceName = c.vars["service"]
		return nil, absent(c.store.ImportTags(c.ctx, t), errNotFound)
	})
	h.handle(http.MethodGet, "tags/types", readers, func(c *call) (any, error) {
		services, err := c.store.Services(c.ctx)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, s := range services {
			t, err := c.store.Tags(c.ctx, s.Name)
			if admin.KindOf(err) == admin.NotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, d := range t.TagDefinitions {
				names = append(names, d.Name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	})
}

func (c *call) readTags() (*model.ServiceTags, error) {
	t := &model.ServiceTags{}
	if err := c.read(t); err != nil {
		return nil, err
	}
	return t, nil
}
