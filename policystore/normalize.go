package policystore

import (
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// normalize brings a policy into the form in which Ranger stores it: lower-case
// element names, access names as the definition writes them, nobody and nothing
// twice, and flags that are left out set to their defaults.
func normalize(p *model.Policy, def *definition) {
	yes := true
	if p.Enabled == nil {
		p.Enabled = &yes
	}
	if p.AuditEnabled == nil {
		p.AuditEnabled = &yes
	}
	p.Resources = lowerNames(p.Resources)
	for n, r := range p.AdditionalResources {
		p.AdditionalResources[n] = lowerNames(r)
	}
	for _, items := range itemLists(p) {
		for _, i := range items {
			if i != nil {
				normalizeItem(i, def)
			}
		}
	}
}

// lowerNames leaves names that differ in their letter case alone as they are: the
// definition then does not know them.
func lowerNames(r map[string]model.Resource) map[string]model.Resource {
	if r == nil {
		return nil
	}
	lower := make(map[string]model.Resource, len(r))
	for name, x := range r {
		lower[strings.ToLower(name)] = x
	}
	if len(lower) < len(r) {
		return r
	}
	return lower
}

func normalizeItem(i *model.Item, def *definition) {
	yes := true
	var accesses []model.Access
	for _, a := range i.Accesses {
		if def != nil {
			if n := slices.IndexFunc(def.accessTypes, func(name string) bool { return strings.EqualFold(name, a.Type) }); n >= 0 {
				a.Type = def.accessTypes[n]
			}
		}
		if a.Allowed == nil {
			a.Allowed = &yes
		}
		if !slices.ContainsFunc(accesses, func(b model.Access) bool { return b.Type == a.Type }) {
			accesses = append(accesses, a)
		}
	}
	i.Accesses = accesses
	i.Users, i.Groups, i.Roles = distinct(i.Users), distinct(i.Groups), distinct(i.Roles)
}

// distinct keeps the first of each name.
func distinct(names []string) []string {
	var kept []string
	for _, n := range names {
		if !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return kept
}
