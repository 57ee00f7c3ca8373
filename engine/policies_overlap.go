package engine

import (
	"context"
	"slices"
	"strings"

	"sqe/policy"
)

// overlaps looks for other policies on the same table, and for masks on the same
// columns: of all that name a principal only one acts, so that the other is without
// effect for it. strict refuses a policy that stands beside one of the same
// priority that names the table; the rest is noted.
func (c *policyCheck) overlaps(ctx context.Context, a policy.Administrator, d policy.Definition, id int64, strict bool) error {
	found, err := a.Overlaps(ctx, d, id)
	if err != nil {
		return err
	}
	for _, o := range found {
		where := "table '" + d.Table.String() + "'"
		if len(o.Columns) > 0 {
			where = "column " + strings.Join(o.Columns, ", ") + " of " + where
		}
		first, second := "'"+o.Name+"'", "'"+d.Name+"'"
		if !o.First {
			first, second = second, first
		}
		if strict && o.Exact && o.Override == d.Override {
			advice, priority := "disable or drop one of them", ", or SET PRIORITY OVERRIDE on the one that is to come first"
			if id == 0 {
				advice = "give it more principals with ALTER POLICY " + backquoted(o.Name) + " ADD (ADD FIRST puts them before the others), or DROP POLICY " + backquoted(o.Name) + " first"
				priority = ", or write PRIORITY OVERRIDE, with which the new policy comes first"
			}
			if !d.Override {
				advice += priority
			}
			return c.fail("the policy '%s' is on %s too, and for whom both name only %s would act; %s", o.Name, where, first, advice)
		}
		how := ""
		switch {
		case !o.Exact:
			how = ", by a pattern or a list of exceptions"
		case o.Override != d.Override:
			how = ", with another priority"
		}
		c.note("the policy '%s' is on %s too%s; for whom %s names it alone acts, and %s for the others whom it names", o.Name, where, how, first, second)
	}
	return nil
}

// alteredOverlaps is overlaps for a stored policy as a change will leave it.
func (st *statement) alteredOverlaps(ctx context.Context, c *policyCheck, a policy.Administrator, name string, change policy.Change) error {
	enables := change.Disabled != nil && !*change.Disabled
	strict := enables || change.Override != nil || change.ValidFrom != nil || change.ValidUntil != nil
	if !strict && change.Rename == nil && len(change.Add) == 0 {
		return nil
	}
	list, err := a.List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s policy.Stored) bool { return s.Name == name })
	if i < 0 || list[i].Tag != "" || list[i].Kind == policy.AccessDefinition || patterns(list[i].Definition) {
		return nil // Alter says what is wrong; the definition is checked there
	}
	d := list[i].Definition
	d.Items = append(slices.Clone(d.Items), change.Add...)
	if change.Rename != nil {
		d.Name = *change.Rename
	}
	if change.Disabled != nil {
		d.Disabled = *change.Disabled
	}
	if change.Override != nil {
		d.Override = *change.Override
	}
	if change.ValidFrom != nil {
		d.ValidFrom = *change.ValidFrom
	}
	if change.ValidUntil != nil {
		d.ValidUntil = *change.ValidUntil
	}
	tables, err := st.engine.tablesOf(ctx, d.Table)
	if err != nil {
		return err
	}
	for _, t := range tables {
		d.Table = t.Name
		if err := c.overlaps(ctx, a, d, list[i].ID, strict); err != nil {
			return err
		}
	}
	return nil
}
