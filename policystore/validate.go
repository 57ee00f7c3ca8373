package policystore

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// checkPolicy finds what is wrong with a policy, normalised before, in the order
// of Ranger's RangerPolicyValidator; old is the policy that it replaces, nil for a
// new one. What it yields are the ids that the policy's row needs.
func (t *tx) checkPolicy(p, old *model.Policy) (service *serviceRow, zone int64, err error) {
	var f failures
	if service, zone, err = t.checkPlace(&f, p); err != nil {
		return nil, 0, err
	}
	if err := t.checkName(&f, p, service, zone); err != nil {
		return nil, 0, err
	}
	if old != nil {
		checkMove(&f, p, old)
	}
	if items := len(p.PolicyItems) + len(p.DenyPolicyItems); !auditEnabled(p) && items+len(p.DataMaskPolicyItems)+len(p.RowFilterPolicyItems) == 0 {
		f.add(3008, "policy items", "", missing, "at least one policy item must be specified if audit isn't enabled")
	}
	if service == nil {
		return nil, 0, f.err()
	}
	def, err := t.definition(service.Type)
	if err != nil {
		return nil, 0, err
	}
	checkItems(&f, p, def)
	for _, s := range p.ValiditySchedules {
		checkSchedule(&f, s)
	}
	if err := t.checkUnique(&f, p, service); err != nil {
		return nil, 0, err
	}
	for _, r := range allResources(p) {
		if len(r) == 0 {
			f.add(3026, "resource-values", "", missing, "Resource list was empty or contains null. At least one resource must be specified")
		} else {
			checkNames(&f, r, def, p.PolicyType)
		}
	}
	for _, r := range allResources(p) {
		checkValues(&f, r, def)
	}
	checkRowAccesses(&f, p, def)
	if err := f.err(); err != nil {
		return nil, 0, err
	}
	return service, zone, nil
}

func auditEnabled(p *model.Policy) bool { return p.AuditEnabled == nil || *p.AuditEnabled }

func allResources(p *model.Policy) []map[string]model.Resource {
	return append([]map[string]model.Resource{p.Resources}, p.AdditionalResources...)
}

// checkPlace looks at where the policy shall lie. service is nil when there is no
// such service.
func (t *tx) checkPlace(f *failures, p *model.Policy) (service *serviceRow, zone int64, err error) {
	if p.PolicyType < model.AccessPolicy || p.PolicyType > model.RowFilterPolicy {
		return nil, 0, refuse(admin.Invalid, p.Name, "invalid policy type: %d", p.PolicyType)
	}
	if p.PolicyPriority != 0 && p.PolicyPriority != 1 {
		f.add(3030, "policyPriority", "", wrong, "Invalid priority value")
	}
	if strings.TrimSpace(p.Service) == "" {
		f.add(3002, "service name", "", missing, "Internal error: missing field[service name]")
	} else if service, err = t.service(p.Service); admin.KindOf(err) == admin.NotFound {
		f.add(3007, "service name", "", wrong, "no service found with name[%s]", p.Service)
		f.about(p.Service)
	} else if err != nil {
		return nil, 0, err
	} else if p.ServiceType != "" && !strings.EqualFold(p.ServiceType, service.Type) {
		f.add(4009, "service type", "", wrong, " Invalid service type [%s] provided for service [%s]", p.ServiceType, p.Service)
	}
	if p.ZoneName == "" {
		return service, 0, nil
	}
	z, err := t.zone(p.ZoneName)
	switch {
	case admin.KindOf(err) == admin.NotFound:
		f.add(3033, "zoneName", "", wrong, "Non-existent Zone name=%s in policy create", p.ZoneName)
		f.about(p.ZoneName)
		return service, 0, nil
	case err != nil:
		return nil, 0, err
	}
	if _, in := z.Services[p.Service]; !in && !slices.Contains(z.TagServices, p.Service) {
		f.add(3048, "zoneName", "", wrong, "Service name = %s is not associated to Zone name = %s", p.Service, p.ZoneName)
	}
	return service, z.ID, nil
}

// invisible are characters that make a name look like another one, or like several
// lines of a log: stricter than Ranger, which asks only that a name is not blank.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
}

func (t *tx) checkName(f *failures, p *model.Policy, service *serviceRow, zone int64) error {
	if strings.TrimSpace(p.Name) == "" {
		f.add(3002, "name", "", missing, "Internal error: missing field[name]")
		return nil
	}
	if strings.ContainsFunc(p.Name, invisible) {
		return refuse(admin.Invalid, "", "the name of a policy has no control characters and none that turn the direction of text")
	}
	if service == nil || (p.ZoneName != "" && zone == 0) {
		return nil
	}
	var id int64
	err := optional(t.one(`SELECT id FROM policies WHERE service_id = ? AND zone_id = ? AND name = ? AND id <> ?`,
		[]any{service.id, zone, p.Name, p.ID}, &id))
	if err == nil && id != 0 {
		field := "policy name"
		if p.ID != 0 {
			field = "id/name"
		}
		f.add(3006, field, "", wrong, "Another policy already exists for this name: policy-id=[%d], service=[%s]", id, p.Service)
		f.about(p.Name)
	}
	return err
}

// checkMove refuses what an update may not change.
func checkMove(f *failures, p, old *model.Policy) {
	if p.Service != old.Service {
		f.add(3027, "service name", "", wrong, "attempt to move policy id=%d from service=%s to service=%s is not allowed", old.ID, old.Service, p.Service)
	}
	if p.PolicyType != old.PolicyType {
		f.add(3028, "policy type", "", wrong, "attempt to change type of policy id=%d from type=%d to type=%d is not allowed", old.ID, old.PolicyType, p.PolicyType)
	}
	if p.ZoneName != old.ZoneName {
		f.add(3032, "zoneName", "", wrong, "Update of Zone name from=%s to=%s in policy is not supported", old.ZoneName, p.ZoneName)
	}
}

func (t *tx) checkUnique(f *failures, p *model.Policy, service *serviceRow) error {
	var other string
	err := optional(t.one(`SELECT name FROM policies WHERE service_id = ? AND signature = ? AND id <> ?`,
		[]any{service.id, signature(p), p.ID}, &other))
	if err == nil && other != "" {
		f.add(3010, "resources", "", wrong, "Another policy already exists for matching resource: policy-name=[%s], service=[%s]", other, p.Service)
		f.about(other)
	}
	return err
}

// itemLists are all items of a policy.
func itemLists(p *model.Policy) [][]*model.Item {
	return [][]*model.Item{p.PolicyItems, p.DenyPolicyItems, p.AllowExceptions, p.DenyExceptions, p.DataMaskPolicyItems, p.RowFilterPolicyItems}
}

func checkItems(f *failures, p *model.Policy, def *definition) {
	if p.DenyAllElse && len(p.DenyPolicyItems)+len(p.DenyExceptions) > 0 {
		f.add(3049, "policy items", "", untyped, "Deny or deny-exceptions are not supported if policy has isDenyAllElse flag set to true")
	}
	for _, items := range itemLists(p) {
		for _, i := range items {
			if i == nil {
				f.add(3019, "policy item", "", missing, "policy items object was null")
				continue
			}
			checkItem(f, i, def)
		}
	}
	for _, i := range p.DataMaskPolicyItems {
		if i != nil && (i.DataMaskInfo == nil || strings.TrimSpace(i.DataMaskInfo.DataMaskType) == "") {
			f.add(3019, "policy item datamask-type", "", missing, "policy items object was null")
		}
	}
}

func checkItem(f *failures, i *model.Item, def *definition) {
	if len(i.Accesses) == 0 && !i.DelegateAdmin {
		f.add(3002, "policy item accesses", "", missing, "Internal error: missing field[policy item accesses]")
	}
	for _, a := range i.Accesses {
		switch {
		case strings.TrimSpace(a.Type) == "":
			f.add(3002, "policy item access type", "", missing, "Internal error: missing field[policy item access type]")
		case !slices.Contains(def.accessTypes, a.Type):
			f.add(3022, "policy item access type", "", wrong, "Invalid access type: access type=[%s], valid access types=[%s]", a.Type, list(def.accessTypes))
		}
		if !a.IsAllowed() {
			f.add(3023, "policy item access type allowed", "", wrong, "Currently deny access types are not supported. Access type is set to deny.")
		}
	}
	if len(i.Users)+len(i.Groups)+len(i.Roles) == 0 {
		f.add(3020, "policy item users/user-groups/roles", "", missing, "All of users,  user-groups and roles collections on the policy item were null/empty")
	}
	for n, names := range [][]string{i.Users, i.Groups, i.Roles} {
		if slices.Contains(names, "") {
			kind := []string{"user", "group", "role"}[n]
			f.add(3053+n, "policy item "+kind+"s", "", missing, "policy items %s was null", kind)
		}
	}
}

// checkNames looks for a hierarchy that has all elements of a resource, and whose
// mandatory ones the resource has.
func checkNames(f *failures, r map[string]model.Resource, def *definition, policyType int) {
	all := def.hierarchies[policyType]
	if len(all) == 0 {
		f.add(3011, "service def resource hierarchies", "incompatible", wrong, "Invalid resources specified. %s policy can specify values for one of the following resource sets: %s", def.Name, " does not have any resource hierarchies")
		return
	}
	candidates := possible(all, r)
	if len(candidates) == 0 {
		code, which := 3011, "one of the following resource sets"
		if len(all) == 1 {
			code, which = 3024, "the following resources"
		}
		f.add(code, "policy resources", "incompatible", wrong, "Invalid resources specified. %s policy can specify values for %s: %s", def.Name, which, namesOf(all, false))
		return
	}
	if !slices.ContainsFunc(candidates, func(h []model.ResourceDef) bool { return complete(h, r) }) {
		code, which := 3012, "one of the following resource sets"
		if len(candidates) == 1 {
			code, which = 3025, "the following resources"
		}
		f.add(code, "policy resources", "missing mandatory", wrong, "Invalid resources specified. %s policy must specify values for %s: %s", def.Name, which, namesOf(candidates, true))
	}
}

// possible are the hierarchies that have all elements of a resource.
func possible[V any](all [][]model.ResourceDef, r map[string]V) (some [][]model.ResourceDef) {
	for _, h := range all {
		has := 0
		for _, d := range h {
			if _, ok := r[d.Name]; ok {
				has++
			}
		}
		if has == len(r) {
			some = append(some, h)
		}
	}
	return some
}

// complete reports whether a resource has all that is mandatory.
func complete[V any](h []model.ResourceDef, r map[string]V) bool {
	for _, d := range h {
		if _, ok := r[d.Name]; d.Mandatory && !ok {
			return false
		}
	}
	return true
}

func namesOf(hierarchies [][]model.ResourceDef, mandatory bool) string {
	var b strings.Builder
	for _, h := range hierarchies {
		var names []string
		for _, d := range h {
			if d.Mandatory || !mandatory {
				names = append(names, d.Name)
			}
		}
		fmt.Fprintf(&b, "%s ", list(names))
	}
	return b.String()
}

func checkValues(f *failures, r map[string]model.Resource, def *definition) {
	for _, d := range def.Resources {
		x, ok := r[d.Name]
		if !ok {
			continue
		}
		if len(x.Values) == 0 || slices.Contains(x.Values, "") {
			f.add(3026, "resource-values", d.Name, missing, "Resource list was empty or contains null. At least one resource must be specified")
			continue
		}
		sorted := slices.Sorted(slices.Values(x.Values))
		for n, v := range sorted {
			if n > 0 && v == sorted[n-1] {
				f.add(3056, "resource-values", d.Name, wrong, "Values for the resource=%s contained a duplicate value=%s. Ensure all values for a resource are unique", d.Name, v)
				break
			}
		}
		if re := def.patterns[d.Name]; re != nil {
			for _, v := range x.Values {
				if !re.MatchString(v) {
					f.add(3018, "resource-values", d.Name, wrong, "Invalid resource specified. A value of [%s] is not valid for resource [%s]", v, d.Name)
				}
			}
		}
		if x.Excludes && !d.ExcludesSupported {
			f.add(3015, "isExcludes", d.Name, wrong, "Excludes option not supported: resource-name=[%s]", d.Name)
		}
		if x.Recursive && !d.RecursiveSupported {
			f.add(3017, "isRecursive", d.Name, wrong, "Recursive option not supported: resource-name=[%s].", d.Name)
		}
	}
}

// checkRowAccesses looks at the accesses of masks and filters, which are fewer
// than those of access policies.
func checkRowAccesses(f *failures, p *model.Policy, def *definition) {
	items, field := p.DataMaskPolicyItems, "data masking policy item access type"
	switch p.PolicyType {
	case model.MaskPolicy:
	case model.RowFilterPolicy:
		items, field = p.RowFilterPolicyItems, "row filter policy item access type"
	default:
		return
	}
	valid := def.rowAccessTypes(p.PolicyType)
	for _, i := range items {
		if i == nil {
			continue
		}
		for _, a := range i.Accesses {
			if !slices.Contains(valid, strings.ToLower(a.Type)) {
				f.add(3022, field, "", wrong, "Invalid access type: access type=[%s], valid access types=[%s]", a.Type, list(valid))
			}
		}
	}
}
