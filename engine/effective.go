package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// effectivePolicy is SHOW EFFECTIVE POLICY: what the policies do to a table for a
// principal. An administrator sees which policies and how, and may ask for
// anybody without having access; everybody else sees what happens to a table that
// they may use.
func (st *statement) effectivePolicy(ctx context.Context, x *parse.ShowEffectivePolicy) (*Result, error) {
	self := x.User == "" || x.User == st.principal.Name
	if !self {
		if err := st.administers(); err != nil {
			return nil, err
		}
	}
	name, err := st.tableName(x.Table)
	if err != nil {
		return nil, err
	}
	out := table("kind", "column", "detail", "source")
	if !st.principal.Admin {
		if err := st.ownPolicy(ctx, name, out); err != nil {
			return nil, err
		}
		return out.result(), nil
	}
	who := st.principal
	if !self {
		known := false
		if who, known = st.known(x.User); !known {
			out.row("note", "", "the user is not in the configuration of this server; groups and roles count as the policy sources know them, not what a login would bring", "")
		}
	}
	t, err := st.engine.definedTable(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := st.policyOf(ctx, who, t, out); err != nil {
		return nil, err
	}
	return out.result(), nil
}

// ownPolicy is the answer in general words, through both gates.
func (st *statement) ownPolicy(ctx context.Context, name plan.TableName, out *textTable) error {
	rel, err := relations{st}.Relation(ctx, st.engine.catalogs.Database(name.Catalog, name.Namespace), name.Name, plan.AsOf{})
	switch {
	case fault.Is(err, fault.PolicyBroken):
		out.row("denied", "", "a policy of the table cannot be applied, so the table is refused; ask an administrator", "policy")
		return nil
	case err != nil:
		return err
	case rel.Table == nil:
		return fault.New(fault.Unsupported, "'%s' is a view; the policies of the tables that it reads act, EXPLAIN POLICY SELECT * FROM it shows them", name.Name)
	}
	b, err := st.bound(ctx, rel.Table)
	if err != nil {
		return err
	}
	describePolicy(rel.Table, b.Record(), out, false)
	return nil
}

// policyOf is the answer for an administrator.
func (st *statement) policyOf(ctx context.Context, who identity.Principal, t *plan.Table, out *textTable) error {
	if _, err := st.policies(); err != nil {
		return err
	}
	other := &statement{
		engine: st.engine, session: st.session, principal: who, started: st.started, tables: map[string]*rewrite.Bound{},
		states: st.states, version: st.version,
	}
	gate, err := other.authorize(policy.TableObject(t.Name), policy.TableDataRead)
	if err != nil {
		return err
	}
	if !gate.Allow {
		by := make([]string, len(gate.By))
		for i := range gate.By {
			by[i] = rewrite.OriginText(&gate.By[i])
		}
		out.row("denied", "", "may not read the table: "+string(gate.Reason), strings.Join(by, "; "))
	}
	if gate.ByAddress {
		out.row("note", "", gateByAddress(who), "")
	}
	b, err := other.bound(ctx, t)
	if fault.Is(err, fault.PolicyBroken) {
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			why = cause.Error()
		}
		out.row("denied", "", "a policy cannot be applied, so the table is refused: "+why, "")
		return nil
	}
	if err != nil {
		return err
	}
	describePolicy(t, b.Record(), out, true)
	return nil
}

// gateByAddress says, for administrators, that the object gate is asked for an address.
func gateByAddress(who identity.Principal) string {
	return "whether the table may be read depends on the address of the client (" + cmp.Or(who.Address, "not known") + ")"
}

// describePolicy writes the record of one table: filters, then masks, then columns
// that cannot be used, by name; for an administrator also exemptions and notes.
func describePolicy(t *plan.Table, r rewrite.TableRecord, out *textTable, admin bool) {
	rules := map[string]string{}
	for _, c := range r.Columns {
		rules[c.Column] = c.Rule
	}
	r.Used = nil
	for _, f := range t.Fields {
		r.Used = append(r.Used, f.ID)
	}
	record := &rewrite.Record{Tables: []rewrite.TableRecord{r}}
	if !admin {
		record = record.Public()
	}
	lines := record.Lines()
	slices.SortStableFunc(lines, func(a, b rewrite.Line) int { return strings.Compare(a.Column, b.Column) })
	add := func(kind string, want func(rewrite.Line) bool) {
		for _, l := range lines {
			if !want(l) {
				continue
			}
			detail, source := l.Effect, "policy"
			if admin {
				source = l.Policy
				if l.Why != "" {
					detail = l.Why
				}
			}
			out.row(kind, l.Column, detail, source)
		}
	}
	add("row_filter", func(l rewrite.Line) bool {
		return l.Column == "" && len(r.Filters) > 0 && l.Effect == r.Filters[0].Effect
	})
	exempt := func(l rewrite.Line) bool { return l.Effect == "exempt" }
	add("column_mask", func(l rewrite.Line) bool { return l.Column != "" && !exempt(l) && rules[l.Column] != "withheld" })
	add("column_restriction", func(l rewrite.Line) bool { return l.Column != "" && !exempt(l) && rules[l.Column] == "withheld" })
	add("exempt", exempt)
	add("note", func(l rewrite.Line) bool { return l.Column == "" && l.Effect == "note" })
}
