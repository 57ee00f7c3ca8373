package rest

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// A search answers at most this many unless pageSize says otherwise, as a Ranger
// Admin does.
const searchPage = 200

// search lists the policies that the parameters describe and the account may read.
func (c *call) search(service string) (any, error) {
	policies, err := c.found(service)
	if err != nil {
		return nil, err
	}
	policies, err = paged(c.r.URL.Query(), policies)
	if err != nil {
		return nil, err
	}
	return policies, nil
}

// searchList is search as the interface of a Ranger Admin asks for it.
func (c *call) searchList() (any, error) {
	all, err := c.found(c.vars["service"])
	if err != nil {
		return nil, err
	}
	page, err := paged(c.r.URL.Query(), all)
	if err != nil {
		return nil, err
	}
	return wrapped(c.r.URL.Query(), "policies", page, len(all)), nil
}

// wrapped is a VXList.
func wrapped[T any](q url.Values, name string, page []T, total int) map[string]any {
	start, _ := strconv.Atoi(q.Get("startIndex"))
	size := searchPage
	if n, err := strconv.Atoi(q.Get("pageSize")); err == nil && n > 0 {
		size = n
	}
	return map[string]any{"startIndex": start, "pageSize": size, "totalCount": total, "resultSize": len(page), name: page}
}

// paged is the part of a list that the parameters ask for.
func paged[T any](q url.Values, all []T) ([]T, error) {
	number := func(name string, otherwise int) (int, error) {
		text := q.Get(name)
		if text == "" {
			return otherwise, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, bad("%s must be a number", name)
		}
		return n, nil
	}
	start, err := number("startIndex", 0)
	if err != nil {
		return nil, err
	}
	size, err := number("pageSize", searchPage)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = searchPage
	}
	start = min(start, len(all))
	out := all[start : min(len(all)-start, size)+start]
	if out == nil {
		out = []T{}
	}
	return out, nil
}

// readable are the services whose policies the account may read, or the one of
// that name if it may.
func (c *call) readable(name string) ([]*model.Service, error) {
	var all []*model.Service
	if name != "" {
		s, err := c.store.Service(c.ctx, name)
		if admin.KindOf(err) == admin.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	} else {
		var err error
		if all, err = c.store.Services(c.ctx); err != nil {
			return nil, err
		}
	}
	if c.reader() {
		return all, nil
	}
	var out []*model.Service
	for _, s := range all {
		ok, err := c.administersThis(s)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}

func (c *call) found(service string) ([]*model.Policy, error) {
	q := c.r.URL.Query()
	match, err := filter(q)
	if err != nil {
		return nil, err
	}
	services, err := c.readable(cmp.Or(service, q.Get("serviceName")))
	if err != nil {
		return nil, err
	}
	out := []*model.Policy{}
	for _, s := range services {
		if service != "" && q.Has("serviceName") && q.Get("serviceName") != service {
			continue
		}
		if t := q.Get("serviceType"); t != "" && t != s.Type {
			continue
		}
		policies, err := c.store.Policies(c.ctx, s.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range policies {
			if match(p) {
				// Searches leave these out.
				p.ResourceSignature, p.CreatedBy, p.UpdatedBy, p.CreateTime, p.UpdateTime = "", "", "", 0, 0
				out = append(out, p)
			}
		}
	}
	less := func(a, b *model.Policy) int { return cmp.Compare(a.ID, b.ID) }
	switch q.Get("sortBy") {
	case "policyName":
		less = func(a, b *model.Policy) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }
	case "serviceName":
		less = func(a, b *model.Policy) int {
			return cmp.Or(strings.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
		}
	}
	slices.SortFunc(out, less)
	if strings.EqualFold(q.Get("sortType"), "desc") {
		slices.Reverse(out)
	}
	return out, nil
}

// filter makes one condition of the parameters of a search. Parameters that it
// does not know change nothing, as with a Ranger Admin.
func filter(q url.Values) (func(p *model.Policy) bool, error) {
	var all []func(p *model.Policy) bool
	add := func(name string, f func(p *model.Policy, value string) bool) {
		if value := q.Get(name); value != "" {
			all = append(all, func(p *model.Policy) bool { return f(p, value) })
		}
	}
	for _, name := range []string{"policyType", "policyId"} {
		if v := q.Get(name); v != "" {
			if _, err := strconv.ParseInt(v, 10, 64); err != nil {
				return nil, bad("%s must be a number", name)
			}
		}
	}
	number := func(n int64, value string) bool { return strconv.FormatInt(n, 10) == value }
	add("policyName", func(p *model.Policy, v string) bool { return p.Name == v })
	add("policyNamePartial", func(p *model.Policy, v string) bool { return containsFold(p.Name, v) })
	add("policyId", func(p *model.Policy, v string) bool { return number(p.ID, v) })
	add("policyType", func(p *model.Policy, v string) bool { return number(int64(p.PolicyType), v) })
	add("guid", func(p *model.Policy, v string) bool { return p.GUID == v })
	add("zoneName", func(p *model.Policy, v string) bool { return p.ZoneName == v })
	add("isEnabled", func(p *model.Policy, v string) bool { return p.IsEnabled() == yes(v) })
	add("policyLabel", func(p *model.Policy, v string) bool { return slices.Contains(p.PolicyLabels, v) })
	add("policyLabelsPartial", func(p *model.Policy, v string) bool {
		return slices.ContainsFunc(p.PolicyLabels, func(l string) bool { return containsFold(l, v) })
	})
	add("user", func(p *model.Policy, v string) bool {
		return names(p, v, func(i *model.Item) []string { return i.Users })
	})
	add("group", func(p *model.Policy, v string) bool {
		return names(p, v, func(i *model.Item) []string { return i.Groups })
	})
	add("role", func(p *model.Policy, v string) bool {
		return names(p, v, func(i *model.Item) []string { return i.Roles })
	})
	for key := range q {
		if element, ok := strings.CutPrefix(key, "resource:"); ok {
			add(key, func(p *model.Policy, v string) bool { return applies(p, element, v) })
		}
	}
	return func(p *model.Policy) bool {
		for _, f := range all {
			if !f(p) {
				return false
			}
		}
		return true
	}, nil
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func names(p *model.Policy, name string, of func(i *model.Item) []string) bool {
	for _, list := range [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems} {
		for _, i := range list {
			if slices.Contains(of(i), name) {
				return true
			}
		}
	}
	return false
}

// applies reports whether a pattern of the policy covers the value of a resource
// element. It is for finding, not for deciding: exclusions count, the other
// elements do not.
func applies(p *model.Policy, element, value string) bool {
	maps := append([]map[string]model.Resource{p.Resources}, p.AdditionalResources...)
	for _, m := range maps {
		r, ok := m[element]
		if !ok {
			continue
		}
		matched := slices.ContainsFunc(r.Values, func(pattern string) bool {
			return pattern == value || wildcard(strings.ToLower(pattern), strings.ToLower(value))
		})
		if matched != r.Excludes {
			return true
		}
	}
	return false
}

// wildcard matches "*" and "?", which also stand for "/".
func wildcard(pattern, text string) bool {
	clean := strings.NewReplacer("/", "\x01", "[", `\[`, `\`, `\\`).Replace(pattern)
	ok, err := path.Match(clean, strings.ReplaceAll(text, "/", "\x01"))
	return err == nil && ok
}
