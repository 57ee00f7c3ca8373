package admin

import (
	"strings"
	"time"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// selectAccess is the access that masks and row filters are on. Ranger compares
// it by letter case in places.
const selectAccess = "select"

// customMask is the mask that has an expression.
const customMask = "CUSTOM"

// scheduleLayout is how Ranger writes times.
const scheduleLayout = "2006/01/02 15:04:05"

// language translates between definitions and policies of one data service and
// its tag service.
type language struct {
	component   string // type of the data service: hive or trino
	service     string
	tagService  string // empty: none
	databaseKey rangerclient.DatabaseKey
}

// refuse says that a definition cannot be written.
func refuse(format string, args ...any) error {
	return fault.New(fault.BadStatement, "CREATE POLICY: "+format, args...)
}

// policyFor makes the policy of a definition.
func (l *language) policyFor(d policy.Definition) (*model.Policy, error) {
	enabled, audit := !d.Disabled, true
	p := &model.Policy{
		Service: l.service, Name: d.Name, Description: d.Description, Enabled: &enabled, AuditEnabled: &audit,
	}
	tagged := d.Tag != ""
	switch {
	case strings.TrimSpace(d.Name) == "":
		return nil, refuse("the policy needs a name")
	case d.Kind != policy.MaskDefinition && d.Kind != policy.FilterDefinition:
		return nil, fault.New(fault.Unsupported, "CREATE POLICY makes column masks and row filters; access is given with GRANT (docs/grants.md)")
	case tagged == (d.Table.Name != ""):
		return nil, refuse("the policy is on a table or on a tag, on one of the two")
	case tagged && l.tagService == "":
		return nil, refuse("service %s has no tag service, so a policy on a tag would never act; link one to it in the policy server", l.service)
	case len(d.Items) == 0:
		return nil, refuse("the policy needs TO and somebody whom it is for")
	case tagged && len(d.Columns) > 0:
		return nil, refuse("a policy on a tag acts on the columns that carry it; leave out ON COLUMN")
	case d.Kind == policy.FilterDefinition && len(d.Columns) > 0:
		return nil, refuse("a row filter is on a table; leave out ON COLUMN")
	case d.Kind == policy.MaskDefinition && !tagged && len(d.Columns) == 0:
		return nil, refuse("a column mask on a table needs ON COLUMN")
	}
	if tagged {
		if err := literal("tag", d.Tag); err != nil {
			return nil, err
		}
		p.Service = l.tagService
		p.Resources = map[string]model.Resource{"tag": {Values: []string{d.Tag}}}
	} else {
		r, err := l.resource(d.Table, d.Columns)
		if err != nil {
			return nil, err
		}
		p.Resources = r
	}
	if d.Override {
		p.PolicyPriority = 1
	}
	var err error
	if p.ValiditySchedules, err = schedules(d.ValidFrom, d.ValidUntil); err != nil {
		return nil, err
	}
	p.PolicyType = model.MaskPolicy
	if d.Kind == policy.FilterDefinition {
		p.PolicyType = model.RowFilterPolicy
	}
	items, err := l.items(d.Kind, tagged, d.Items)
	if err != nil {
		return nil, err
	}
	*itemsOf(p) = items
	return p, nil
}

// itemsOf is the list that a mask or row filter policy has.
func itemsOf(p *model.Policy) *[]*model.Item {
	if p.PolicyType == model.RowFilterPolicy {
		return &p.RowFilterPolicyItems
	}
	return &p.DataMaskPolicyItems
}

// literal refuses a name in which Ranger would read a pattern or a variable.
func literal(what, name string) error {
	switch {
	case name == "":
		return refuse("the name of the %s is empty", what)
	case strings.ContainsAny(name, "*?{"):
		return refuse("the name of the %s holds *, ? or {, which the policy server reads as a pattern; such a %s cannot be named in a policy", what, what)
	}
	return nil
}

// resource is a table, with columns of it if there are any, in the words of the
// service.
func (l *language) resource(t plan.TableName, columns []string) (map[string]model.Resource, error) {
	if len(t.Namespace) == 0 {
		return nil, refuse("the table needs its database")
	}
	for _, level := range t.Namespace {
		if err := literal("database", level); err != nil {
			return nil, err
		}
		if strings.Contains(level, ".") {
			return nil, refuse("a level of the database holds a dot, so the policy would also be on another database")
		}
	}
	if err := literal("catalog", t.Catalog); err != nil {
		return nil, err
	}
	if err := literal("table", t.Name); err != nil {
		return nil, err
	}
	out := map[string]model.Resource{"table": {Values: []string{t.Name}}}
	dotted := strings.Join(t.Namespace, ".")
	switch {
	case l.component == "trino":
		out["catalog"] = model.Resource{Values: []string{t.Catalog}}
		out["schema"] = model.Resource{Values: []string{dotted}}
	case l.namesCatalog():
		if strings.Contains(t.Catalog, ".") {
			return nil, refuse("the name of the catalog holds a dot, so the policy would also be on another database")
		}
		out["database"] = model.Resource{Values: []string{t.Catalog + "." + dotted}}
	default:
		out["database"] = model.Resource{Values: []string{dotted}}
	}
	for _, c := range columns {
		if err := literal("column", c); err != nil {
			return nil, err
		}
	}
	if len(columns) > 0 {
		out["column"] = model.Resource{Values: set(columns)}
	}
	return out, nil
}

// namesCatalog reports whether the database of a written policy names the
// catalog. Where policies with and without are read, the exact one is written.
func (l *language) namesCatalog() bool {
	return l.databaseKey == rangerclient.KeyBoth || l.databaseKey == rangerclient.KeyCatalogNamespace
}

// prefix is what accesses and masks of a tag policy bear before their names.
func (l *language) prefix(tagged bool) string {
	if tagged {
		return l.component + ":"
	}
	return ""
}

func (l *language) items(kind policy.DefinitionKind, tagged bool, list []policy.Item) ([]*model.Item, error) {
	var out []*model.Item
	for _, i := range list {
		item := &model.Item{Accesses: []model.Access{{Type: l.prefix(tagged) + selectAccess, Allowed: truth(nil)}}}
		if err := grantees(item, i.Grantees); err != nil {
			return nil, err
		}
		switch mask := strings.ToUpper(i.Mask); {
		case len(i.Privileges) > 0 || i.Deny:
			return nil, refuse("a mask or a row filter has no privileges; use GRANT and DENY")
		case kind == policy.FilterDefinition && i.Mask != "":
			return nil, refuse("a row filter has no mask")
		case kind != policy.FilterDefinition && i.Exempt:
			return nil, refuse("the exemption from a mask is MASK_NONE")
		case kind == policy.FilterDefinition && i.Exempt != (strings.TrimSpace(i.SQL) == ""):
			return nil, refuse("a ROW FILTER requires USING with a condition; ROW FILTER NONE shows all rows")
		case kind == policy.FilterDefinition:
			item.RowFilterInfo = &model.RowFilterInfo{FilterExpr: &i.SQL}
		case mask == "":
			return nil, refuse("a column mask needs the name of the mask")
		case strings.Contains(mask, ":"):
			return nil, refuse("the name of a mask has no prefix here")
		case mask == customMask && strings.TrimSpace(i.SQL) == "":
			return nil, refuse("CUSTOM COLUMN MASK requires USING")
		case mask != customMask && i.SQL != "":
			return nil, refuse("only a CUSTOM COLUMN MASK has USING; %s has none", mask)
		default:
			item.DataMaskInfo = &model.DataMaskInfo{DataMaskType: l.prefix(tagged) + mask, ValueExpr: i.SQL}
		}
		out = append(out, item)
	}
	return out, nil
}

func grantees(item *model.Item, list []policy.Grantee) error {
	if len(list) == 0 {
		return refuse("an item names nobody")
	}
	for _, g := range list {
		if g.Name == "" {
			return refuse("the name of a %s is empty", g.Kind)
		}
		to := &item.Users
		switch g.Kind {
		case policy.UserGrantee:
			if strings.HasPrefix(g.Name, "{") {
				return refuse("%s stands for more than one user in the policy server; use the group public for everybody", g.Name)
			}
		case policy.GroupGrantee:
			to = &item.Groups
		case policy.RoleGrantee:
			to = &item.Roles
		default:
			return refuse("%q is not user, group or role", g.Kind)
		}
		*to = set(append(*to, g.Name))
	}
	return nil
}

// schedules is a validity in whole seconds, in UTC. The end is inclusive, and a
// policy is never in force for less than it was asked to be.
func schedules(from, until time.Time) ([]model.Schedule, error) {
	if from.IsZero() && until.IsZero() {
		return nil, nil
	}
	s := model.Schedule{TimeZone: "UTC"}
	if !from.IsZero() {
		from = from.UTC().Truncate(time.Second)
		s.StartTime = from.Format(scheduleLayout)
	}
	if !until.IsZero() {
		until = until.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
		s.EndTime = until.Format(scheduleLayout)
	}
	for _, t := range []time.Time{from, until} {
		if !t.IsZero() && (t.Year() < 1 || t.Year() > 9999) {
			return nil, refuse("a time of the validity is out of range")
		}
	}
	if !from.IsZero() && !until.IsZero() && until.Before(from) {
		return nil, refuse("the validity ends before it begins")
	}
	return []model.Schedule{s}, nil
}
