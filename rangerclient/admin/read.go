package admin

import (
	"slices"
	"strings"
	"time"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// What a Definition has no word for (policy.Stored.Beyond).
const (
	beyondConditions   = "conditions"
	beyondExceptions   = "exceptions"
	beyondExcludes     = "excluded resources"
	beyondRecursive    = "resources below"
	beyondSchedules    = "several validity periods"
	beyondRecurrences  = "recurring validity"
	beyondTimes        = "validity that cannot be read"
	beyondResources    = "resources other than tables"
	beyondTables       = "several tables"
	beyondTags         = "several tags"
	beyondWildcards    = "wildcards"
	beyondDenyAll      = "deny all else"
	beyondDelegate     = "the right to grant"
	beyondAccesses     = "accesses other than select"
	beyondComponents   = "other kinds of services"
	beyondVariables    = "users that stand for others"
	beyondNoMask       = "items without a mask"
	beyondMaskSQL      = "a mask with an expression of its own"
	beyondAudit        = "no audit"
	beyondKind         = "a kind of policy that SQE does not know"
	beyondNoGrantees   = "items that name nobody"
	beyondPriority     = "a priority other than override"
	beyondOptions      = "options"
	beyondAllowedFalse = "accesses that are not allowed"
)

// reading collects what a policy says beyond a Definition.
type reading struct {
	*language
	p      *model.Policy
	beyond []string
}

func (r *reading) add(what string, yes bool) {
	if yes && !slices.Contains(r.beyond, what) {
		r.beyond = append(r.beyond, what)
	}
}

// stored reads a policy.
func (l *language) stored(p *model.Policy) policy.Stored {
	r := &reading{language: l, p: p}
	out := policy.Stored{
		Definition: r.definition(),
		ID:         p.ID, Version: p.Version, Service: p.Service, Zone: p.ZoneName, Labels: set(p.PolicyLabels),
		Resources: resources(p), CreatedBy: p.CreatedBy, UpdatedBy: p.UpdatedBy,
	}
	if p.UpdateTime != 0 {
		out.UpdatedAt = time.UnixMilli(p.UpdateTime).UTC()
	}
	slices.Sort(r.beyond)
	out.Beyond = r.beyond
	return out
}

// resources is what a policy is on, in the words of the server.
func resources(p *model.Policy) string {
	var all []string
	for _, m := range append([]map[string]model.Resource{p.Resources}, p.AdditionalResources...) {
		var parts []string
		known := []string{"root", "catalog", "namespace", "database", "schema", "table", "udf", "column", "tag"}
		names := slices.DeleteFunc(keys(m), func(k string) bool { return slices.Contains(known, k) })
		for _, k := range append(known, names...) {
			res, ok := m[k]
			if !ok {
				continue
			}
			eq := "="
			if res.Excludes {
				eq = "!="
			}
			part := k + eq + strings.Join(set(res.Values), ",")
			if res.Recursive {
				part += " and below"
			}
			parts = append(parts, part)
		}
		all = append(all, strings.Join(parts, ", "))
	}
	return strings.Join(all, "; ")
}

func (r *reading) definition() policy.Definition {
	p := r.p
	d := policy.Definition{
		Name: p.Name, Description: p.Description, Disabled: !p.IsEnabled(), Override: p.PolicyPriority == 1,
	}
	r.add(beyondPriority, p.PolicyPriority < 0 || p.PolicyPriority > 1)
	r.add(beyondConditions, len(p.Conditions) > 0)
	r.add(beyondExceptions, len(p.AllowExceptions)+len(p.DenyExceptions) > 0)
	r.add(beyondDenyAll, p.DenyAllElse)
	r.add(beyondAudit, p.AuditEnabled != nil && !*p.AuditEnabled)
	r.add(beyondTables, len(p.AdditionalResources) > 0)
	for k := range p.Options {
		r.add(beyondOptions, k != stampOption)
	}
	r.place(&d)
	r.validity(&d)
	switch p.PolicyType {
	case model.AccessPolicy:
		d.Kind = policy.AccessDefinition
		for _, i := range p.PolicyItems {
			d.Items = append(d.Items, r.access(i, false))
		}
		for _, i := range p.DenyPolicyItems {
			d.Items = append(d.Items, r.access(i, true))
		}
	case model.MaskPolicy:
		d.Kind = policy.MaskDefinition
		for _, i := range p.DataMaskPolicyItems {
			d.Items = append(d.Items, r.mask(i))
		}
	case model.RowFilterPolicy:
		d.Kind = policy.FilterDefinition
		for _, i := range p.RowFilterPolicyItems {
			d.Items = append(d.Items, r.filter(i))
		}
	default:
		r.add(beyondKind, true)
	}
	return d
}

// place finds the table and columns, or the tag.
func (r *reading) place(d *policy.Definition) {
	res := r.p.Resources
	for _, x := range res {
		r.add(beyondExcludes, x.Excludes)
		r.add(beyondRecursive, x.Recursive)
		for _, v := range x.Values {
			r.add(beyondWildcards, strings.ContainsAny(v, "*?{"))
		}
	}
	one := func(element, several string) string {
		v := set(res[element].Values)
		r.add(several, len(v) > 1)
		if len(v) == 0 {
			return ""
		}
		return v[0]
	}
	if _, ok := res["tag"]; ok {
		d.Tag = one("tag", beyondTags)
		r.add(beyondResources, len(res) > 1)
		return
	}
	known := []string{"table", "column"}
	switch {
	case res["database"].Values != nil:
		known = append(known, "database")
		d.Table = r.split(one("database", beyondTables))
	case res["schema"].Values != nil:
		known = append(known, "catalog", "schema")
		d.Table.Catalog = one("catalog", beyondTables)
		d.Table.Namespace = strings.Split(one("schema", beyondTables), ".")
	default: // of the polaris service, or a catalog alone
		known = append(known, "root", "catalog", "namespace")
		d.Table.Catalog = one("catalog", beyondTables)
		if n := one("namespace", beyondTables); n != "" {
			d.Table.Namespace = strings.Split(n, ".")
		}
	}
	d.Table.Name = one("table", beyondTables)
	d.Columns = set(res["column"].Values)
	for k := range res {
		r.add(beyondResources, !slices.Contains(known, k))
	}
}

// split takes a database apart. The catalog is its first part where the service
// names it; a database of one part is in every catalog.
func (r *reading) split(database string) plan.TableName {
	parts := strings.Split(database, ".")
	if r.namesCatalog() && len(parts) > 1 {
		return plan.TableName{Catalog: parts[0], Namespace: parts[1:]}
	}
	return plan.TableName{Namespace: parts}
}

func (r *reading) validity(d *policy.Definition) {
	list := r.p.ValiditySchedules
	if len(list) == 0 {
		return
	}
	r.add(beyondSchedules, len(list) > 1)
	for _, s := range list {
		r.add(beyondRecurrences, len(s.Recurrences) > 0)
	}
	zone := time.UTC
	if name := strings.TrimSpace(list[0].TimeZone); name != "" {
		loaded, err := time.LoadLocation(name)
		if err != nil || name == "Local" {
			r.add(beyondTimes, true)
			return
		}
		zone = loaded
	}
	read := func(text string) (t time.Time) {
		if strings.TrimSpace(text) != "" {
			var err error
			t, err = time.ParseInLocation(scheduleLayout, text, zone)
			r.add(beyondTimes, err != nil)
			if err == nil {
				t = t.UTC()
			}
		}
		return t
	}
	d.ValidFrom, d.ValidUntil = read(list[0].StartTime), read(list[0].EndTime)
}

func (r *reading) grantees(i *model.Item) []policy.Grantee {
	var out []policy.Grantee
	for _, u := range set(i.Users) {
		r.add(beyondVariables, strings.HasPrefix(u, "{"))
		out = append(out, policy.Grantee{Kind: policy.UserGrantee, Name: u})
	}
	for _, g := range set(i.Groups) {
		out = append(out, policy.Grantee{Kind: policy.GroupGrantee, Name: g})
	}
	for _, n := range set(i.Roles) {
		out = append(out, policy.Grantee{Kind: policy.RoleGrantee, Name: n})
	}
	r.add(beyondNoGrantees, len(out) == 0)
	r.add(beyondConditions, len(i.Conditions) > 0)
	return out
}

// tagged reports whether accesses and masks bear the prefix of a service type.
func (r *reading) tagged() bool { return r.p.Resources["tag"].Values != nil }

func (r *reading) access(i *model.Item, deny bool) policy.Item {
	out := policy.Item{Grantees: r.grantees(i), Deny: deny}
	for _, a := range normalAccesses(i.Accesses) {
		r.add(beyondAllowedFalse, !*a.Allowed)
		if *a.Allowed {
			out.Privileges = append(out.Privileges, a.Type)
		}
	}
	r.add(beyondDelegate, i.DelegateAdmin)
	return out
}

// selects checks that an item is on select alone.
func (r *reading) selects(i *model.Item) {
	own := r.prefix(r.tagged()) + selectAccess
	found, foreign := false, false
	for _, a := range normalAccesses(i.Accesses) {
		switch {
		case a.Type == own && *a.Allowed:
			found = true
		case r.tagged() && !strings.HasPrefix(a.Type, r.component+":"):
			foreign = true
		default:
			r.add(beyondAccesses, true)
		}
	}
	r.add(beyondComponents, foreign)
	r.add(beyondAccesses, !found && !foreign)
	r.add(beyondDelegate, i.DelegateAdmin)
}

func (r *reading) mask(i *model.Item) policy.Item {
	out := policy.Item{Grantees: r.grantees(i)}
	r.selects(i)
	if i.DataMaskInfo == nil || i.DataMaskInfo.DataMaskType == "" {
		r.add(beyondNoMask, true)
		return out
	}
	m := i.DataMaskInfo
	name, own := strings.CutPrefix(m.DataMaskType, r.prefix(r.tagged()))
	r.add(beyondComponents, !own)
	out.Mask, out.SQL = name, m.ValueExpr
	r.add(beyondMaskSQL, (m.ValueExpr != "") != (name == customMask))
	r.add(beyondConditions, m.ConditionExpr != "")
	return out
}

func (r *reading) filter(i *model.Item) policy.Item {
	out := policy.Item{Grantees: r.grantees(i)}
	r.selects(i)
	if f := i.RowFilterInfo; f != nil && f.FilterExpr != nil {
		out.SQL = *f.FilterExpr
	}
	// An item without a condition shows all rows.
	if strings.TrimSpace(out.SQL) == "" {
		out.SQL, out.Exempt = "", true
	}
	return out
}
