package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"sqe/engine/parse"
	"sqe/plan"
	"sqe/policy"
)

// listed is a stored policy with the source that reads it.
type listed struct {
	policy.Stored
	source string
}

// listed lists the policies of all administrators.
func (st *statement) listed(ctx context.Context) ([]listed, error) {
	all, err := st.administrators()
	if err != nil {
		return nil, err
	}
	var out []listed
	for _, a := range all {
		list, err := a.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			out = append(out, listed{Stored: s, source: a.Source()})
		}
	}
	return out, nil
}

// showPolicies is SHOW POLICIES.
func (st *statement) showPolicies(ctx context.Context, x *parse.ShowPolicies) (*Result, error) {
	all, err := st.listed(ctx)
	if err != nil {
		return nil, err
	}
	var on *plan.TableName
	if x.Table != nil {
		name, err := st.tableName(*x.Table)
		if err != nil {
			return nil, err
		}
		on = &name
	}
	all = slices.DeleteFunc(all, func(s listed) bool {
		return on != nil && !isOn(s.Stored, *on) || x.Tag != "" && !strings.EqualFold(s.Tag, x.Tag) ||
			x.For != nil && !names(s.Items, granteesOf([]parse.Grantee{*x.For})[0]) || x.Like != nil && !like(s.Name, *x.Like)
	})
	problems, err := st.problems(ctx, all)
	if err != nil {
		return nil, err
	}
	out := typedTable(
		plan.Column{Name: "name"}, plan.Column{Name: "kind"}, plan.Column{Name: "service"}, plan.Column{Name: "object"},
		plan.Column{Name: "columns"}, plan.Column{Name: "items"}, plan.Column{Name: "expression"}, plan.Column{Name: "enabled", Type: plan.Bool},
		plan.Column{Name: "priority"}, plan.Column{Name: "valid"}, plan.Column{Name: "problems"}, plan.Column{Name: "id", Type: plan.Int64},
		plan.Column{Name: "version", Type: plan.Int64}, plan.Column{Name: "changed_by"}, plan.Column{Name: "changed_at"},
		plan.Column{Name: "source"}, plan.Column{Name: "zone"}, plan.Column{Name: "labels"}, plan.Column{Name: "beyond"},
	)
	for i, s := range all {
		priority := "NORMAL"
		if s.Override {
			priority = "OVERRIDE"
		}
		changed := ""
		if !s.UpdatedAt.IsZero() {
			changed = s.UpdatedAt.UTC().Format(time.RFC3339)
		}
		by := s.UpdatedBy
		if by == "" {
			by = s.CreatedBy
		}
		out.row(s.Name, string(s.Kind), s.Service, objectOf(s.Stored), strings.Join(s.Columns, ", "), itemsText(s.Stored), textsOf(s.Items),
			!s.Disabled, priority, validText(s.Definition), strings.Join(problems[i], "; "), s.ID, s.Version, by, changed,
			s.source, s.Zone, strings.Join(s.Labels, ", "), strings.Join(s.Beyond, ", "))
	}
	st.session.vars.SetWarnings(st.unlisted())
	res := out.result()
	res.Warnings = st.session.vars.WarningCount()
	return res, nil
}

// unlisted says which sources have policies that SHOW POLICIES cannot list.
func (st *statement) unlisted() []string {
	var notes []string
	for _, s := range st.engine.sources {
		name := s.Name()
		if !slices.ContainsFunc(st.engine.administrators, func(a policy.Administrator) bool { return a.Source() == name }) {
			notes = append(notes, "policies of the source '"+name+"' are not listed: it cannot be read in SQL. They act all the same")
		}
	}
	return notes
}

// objectOf is what a policy is on.
func objectOf(s policy.Stored) string {
	switch {
	case s.Tag != "":
		return "TAG " + s.Tag
	case s.Table.Name != "" && len(s.Beyond) == 0:
		return dotted(s.Table)
	}
	return s.Resources
}

func itemsText(s policy.Stored) string {
	parts := make([]string, len(s.Items))
	for i, item := range s.Items {
		parts[i] = itemText(s.Kind, item)
	}
	return strings.Join(parts, "; ")
}

func textsOf(items []policy.Item) string {
	var parts []string
	for _, i := range items {
		if i.SQL != "" {
			parts = append(parts, i.SQL)
		}
	}
	return strings.Join(parts, "; ")
}

const timeFormat = "2006-01-02 15:04:05"

func validText(d policy.Definition) string {
	var parts []string
	if !d.ValidFrom.IsZero() {
		parts = append(parts, "from "+d.ValidFrom.UTC().Format(timeFormat))
	}
	if !d.ValidUntil.IsZero() {
		parts = append(parts, "until "+d.ValidUntil.UTC().Format(timeFormat))
	}
	return strings.Join(parts, " ")
}

// names reports whether an item names the principal itself.
func names(items []policy.Item, g policy.Grantee) bool {
	return slices.ContainsFunc(items, func(i policy.Item) bool { return slices.Contains(i.Grantees, g) })
}

// covers reports whether the table of a policy, in which * and ? stand for
// anything, is or includes a table. Policy servers compare without case, and a
// database without a catalog is in every catalog.
func covers(of, n plan.TableName) bool {
	if of.Name == "" || !glob(of.Name, n.Name) {
		return false
	}
	database := strings.TrimPrefix(strings.Join(append([]string{of.Catalog}, of.Namespace...), "."), ".")
	namespace := strings.Join(n.Namespace, ".")
	return glob(database, namespace) || glob(database, n.Catalog+"."+namespace)
}

// isOn reports whether a policy is on a table. Of one that is on several, what the
// server says of its resources is looked at; where that is not certain, it is.
func isOn(s policy.Stored, n plan.TableName) bool {
	if covers(s.Table, n) {
		return true
	}
	if len(s.Beyond) == 0 {
		return false
	}
	for _, resource := range strings.Split(s.Resources, "; ") {
		values := map[string][]string{}
		for _, part := range strings.Split(resource, ", ") {
			if element, list, ok := strings.Cut(part, "="); ok {
				values[strings.TrimSuffix(element, "!")] = strings.Split(list, ",")
			}
		}
		if strings.Contains(resource, "!=") && values["table"] != nil {
			return true // all but what it names
		}
		var databases []string
		for _, element := range []string{"database", "schema", "namespace"} {
			databases = append(databases, values[element]...)
		}
		for _, table := range values["table"] {
			for _, database := range databases {
				if covers(plan.TableName{Namespace: []string{database}, Name: table}, n) {
					return true
				}
			}
		}
	}
	return false
}

func glob(pattern, name string) bool {
	return match(strings.ToLower(pattern), strings.ToLower(name), '*', '?')
}

func like(name, pattern string) bool {
	return match(strings.ToLower(pattern), strings.ToLower(name), '%', '_')
}

// match compares with a pattern in which many stands for any characters and one
// for one. It goes back to the last many only, so that its work is bounded by the
// product of the lengths.
func match(pattern, name string, many, one rune) bool {
	p, n := []rune(pattern), []rune(name)
	i, j, star, from := 0, 0, -1, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == many:
			star, from = i, j
			i++
		case i < len(p) && (p[i] == one || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == many {
		i++
	}
	return i == len(p)
}

// maxBound bounds the texts of policies that SHOW POLICIES binds, and bindTime the
// time that it takes for it. sqe check has no bounds.
const (
	maxBound = 500
	bindTime = 5 * time.Second
)

// problems are, for each policy, what is wrong with it as the tables stand. Only
// the tables that the policies name are loaded, unless all are needed to tell.
func (st *statement) problems(ctx context.Context, all []listed) ([][]string, error) {
	out := make([][]string, len(all))
	if _, err := st.policies(); err != nil {
		for i := range out {
			out[i] = []string{"not checked: " + err.Error()}
		}
		return out, nil
	}
	tables := []*plan.Table{}
	seen := map[string]bool{}
	every := false
	type key struct {
		source, service string
		id              int64
	}
	rows := map[key][]int{} // a policy on several tables may have several
	for i, s := range all {
		k := key{s.source, s.Service, s.ID}
		rows[k] = append(rows[k], i)
		denies := slices.ContainsFunc(s.Items, func(i policy.Item) bool { return i.Deny })
		if s.Kind == policy.AccessDefinition && !denies {
			continue
		}
		every = every || denies || s.Tag != "" || len(s.Beyond) > 0
		if every || s.Table.Name == "" || seen[s.Table.Key()] {
			continue
		}
		seen[s.Table.Key()] = true
		found, err := st.engine.tablesOf(ctx, s.Table)
		if err != nil {
			return nil, err
		}
		tables = append(tables, found...)
	}
	if every {
		tables = tables[:0]
		if err := st.engine.eachTable(ctx, func(t *plan.Table) { tables = append(tables, t) }, func(plan.TableName) {}); err != nil {
			return nil, err
		}
	}
	findings := Findings(st.engine.sources, tables)
	bounded, cancel := context.WithTimeout(ctx, bindTime)
	defer cancel()
	findings = append(findings, st.engine.BindTexts(bounded, tables, func(source, service string, id int64) bool {
		return rows[key{source, service, id}] != nil
	}, maxBound)...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, f := range findings {
		if f.ID == 0 {
			continue
		}
		for _, i := range rows[key{f.Source, f.Service, f.ID}] {
			if !all[i].Disabled && !slices.Contains(out[i], f.Text) {
				out[i] = append(out[i], f.Text)
			}
		}
	}
	return out, nil
}

// showMaskingPolicies is SHOW MASKING POLICIES: one row for each item of a mask.
func (st *statement) showMaskingPolicies(ctx context.Context, x *parse.ShowMaskingPolicies) (*Result, error) {
	all, err := st.listed(ctx)
	if err != nil {
		return nil, err
	}
	out := typedTable(
		plan.Column{Name: "name"}, plan.Column{Name: "tag"}, plan.Column{Name: "database"}, plan.Column{Name: "table"}, plan.Column{Name: "column"},
		plan.Column{Name: "mask_type"}, plan.Column{Name: "expression"}, plan.Column{Name: "grantees"}, plan.Column{Name: "enabled", Type: plan.Bool},
	)
	for _, s := range all {
		if s.Kind != policy.MaskDefinition || x.Name != "" && !strings.EqualFold(s.Name, x.Name) {
			continue
		}
		database := ""
		if s.Table.Name != "" {
			database = parse.JoinDatabase(s.Table.Namespace...)
			if s.Table.Catalog != "" {
				database = st.engine.catalogs.Database(s.Table.Catalog, s.Table.Namespace)
			}
		}
		for _, i := range s.Items {
			grantees := make([]string, len(i.Grantees))
			for k, g := range i.Grantees {
				grantees[k] = granteeText(g)
			}
			out.row(s.Name, s.Tag, database, s.Table.Name, strings.Join(s.Columns, ", "), i.Mask, i.SQL, strings.Join(grantees, ", "), !s.Disabled)
		}
	}
	return out.result(), nil
}

// showCreatePolicy is SHOW CREATE POLICY.
func (st *statement) showCreatePolicy(ctx context.Context, x *parse.ShowCreatePolicy) (*Result, error) {
	all, err := st.listed(ctx)
	if err != nil {
		return nil, err
	}
	out := table("Policy", "Create Policy")
	found := false
	for _, s := range all {
		if s.Name == x.Name {
			found = true
			out.row(s.Name, st.engine.createText(s.Stored))
		}
	}
	if !found {
		return nil, noPolicy(x.Name)
	}
	return out.result(), nil
}
