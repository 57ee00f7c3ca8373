package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// accessAdvice says how access is given.
const accessAdvice = "access is given with GRANT and taken with REVOKE (docs/grants.md)"

// administers refuses everybody who may not see policies. Its text does not depend
// on anything but the principal.
func (st *statement) administers() error {
	if st.principal.Admin {
		return nil
	}
	return fault.New(fault.Denied, "only an administrator of this server may see or change policies; ask one")
}

// administrators are those who write policies, for a principal who may use them.
func (st *statement) administrators() ([]policy.Administrator, error) {
	if err := st.administers(); err != nil {
		return nil, err
	}
	if len(st.engine.administrators) == 0 {
		return nil, fault.New(fault.Unsupported, "no policy source of this server can be written in SQL: a folder is read and changed with an editor; configure one that can, the embedded store or a Ranger Admin (docs/policies.md, \"Writing policies in SQL\")")
	}
	return st.engine.administrators, nil
}

func (st *statement) author() policy.Author {
	return policy.Author{User: st.principal.Name, From: st.session.info.RemoteAddr}
}

// administratorOf finds who holds the policy. With one administrator it is that
// one, which then says itself that there is no such policy.
func (st *statement) administratorOf(ctx context.Context, name string) (policy.Administrator, error) {
	all, err := st.administrators()
	if err != nil || len(all) == 1 {
		return first(all), err
	}
	var found []policy.Administrator
	for _, a := range all {
		list, err := a.List(ctx)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(s policy.Stored) bool { return s.Name == name }) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return nil, noPolicy(name)
	case 1:
		return found[0], nil
	}
	return nil, fault.New(fault.BadStatement, "the policy '%s' is in the policy sources %s and %s; rename one of them first", name, found[0].Source(), found[1].Source())
}

func first(all []policy.Administrator) policy.Administrator {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func noPolicy(name string) error {
	return fault.New(fault.NotFound, "there is no policy '%s'; SHOW POLICIES lists them", name)
}

// warned is the result of a statement without rows that has something to say.
func (st *statement) warned(notes []string) *Result {
	st.session.vars.SetWarnings(notes)
	return &Result{Warnings: st.session.vars.WarningCount()}
}

// policyCheck checks a policy that the statement writes. Sources whose state is too
// old tell no tags; policies may be written all the same.
func (st *statement) policyCheck(statement string) *policyCheck {
	c := &policyCheck{engine: st.engine, statement: statement}
	states, err := st.policies()
	if err != nil {
		c.note("tags of the policy server are not known now: %s", err)
	}
	c.states = states
	return c
}

// createPolicy is CREATE POLICY.
func (st *statement) createPolicy(ctx context.Context, x *parse.CreatePolicy) (*Result, error) {
	all, err := st.administrators()
	if err != nil {
		return nil, err
	}
	d := definitionOf(x)
	if x.Table != nil {
		if d.Table, err = st.tableName(*x.Table); err != nil {
			return nil, err
		}
	}
	c := st.policyCheck("CREATE POLICY")
	if err := c.names(d); err != nil {
		return nil, err
	}
	if err := c.definition(ctx, d, d.Items, st.started); err != nil {
		return nil, err
	}
	to := all[0]
	if x.Replace && len(all) > 1 {
		if old, err := st.administratorOf(ctx, d.Name); err == nil {
			to = old
		} else if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	if err := c.overlaps(ctx, to, d, 0, true); err != nil {
		return nil, err
	}
	if err := to.Create(ctx, st.author(), d, x.Replace); err != nil {
		return nil, err
	}
	return st.warned(c.notes), nil
}

// alterPolicy is ALTER POLICY.
func (st *statement) alterPolicy(ctx context.Context, x *parse.AlterPolicy) (*Result, error) {
	a, err := st.administratorOf(ctx, x.Name)
	if err != nil {
		return nil, err
	}
	change := policy.Change{
		Rename: x.Rename, Description: x.Comment, Disabled: x.Disabled, Override: x.Override, ValidFrom: x.From, ValidUntil: x.Until,
		Add: itemsOf(x.Add), First: x.First, Remove: granteesOf(x.Remove),
	}
	beside := st.policyCheck("ALTER POLICY")
	beside.notes = nil
	if err := st.alteredOverlaps(ctx, beside, a, x.Name, change); err != nil {
		return nil, err
	}
	var notes []string
	err = a.Alter(ctx, st.author(), x.Name, change, func(d policy.Definition) error {
		// The administrator may try again after somebody else's change.
		c := st.policyCheck("ALTER POLICY")
		c.changed = true
		defer func() { notes = c.notes }()
		if d.Kind == policy.AccessDefinition && len(change.Add)+len(change.Remove) > 0 {
			return c.fail("'%s' gives access; %s", x.Name, accessAdvice)
		}
		items := change.Add
		if x.Disabled != nil && !*x.Disabled {
			// From now on all of it acts.
			items = d.Items
		}
		return c.definition(ctx, d, items, st.started)
	})
	if err != nil {
		return nil, err
	}
	return st.warned(append(notes, beside.notes...)), nil
}

// dropPolicy is DROP POLICY.
func (st *statement) dropPolicy(ctx context.Context, x *parse.DropPolicy) (*Result, error) {
	a, err := st.administratorOf(ctx, x.Name)
	if err == nil {
		err = a.Drop(ctx, st.author(), x.Name)
	}
	if x.IfExists && fault.Is(err, fault.NotFound) {
		return st.warned([]string{noPolicy(x.Name).Error()}), nil
	}
	if err != nil {
		return nil, err
	}
	return st.warned(nil), nil
}

// definitionOf is the definition without its table.
func definitionOf(x *parse.CreatePolicy) policy.Definition {
	d := policy.Definition{
		Name: x.Name, Description: x.Comment, Kind: policy.MaskDefinition, Columns: x.Columns, Tag: x.Tag, Items: itemsOf(x.Items),
		Disabled: x.Disabled, Override: x.Override, ValidFrom: x.From, ValidUntil: x.Until,
	}
	if x.Items[0].Filter {
		d.Kind = policy.FilterDefinition
	}
	return d
}

func itemsOf(list []parse.PolicyItem) []policy.Item {
	var out []policy.Item
	for _, i := range list {
		out = append(out, policy.Item{Grantees: granteesOf(i.Grantees), Mask: i.Mask, SQL: i.Text, Exempt: i.Exempt})
	}
	return out
}

func granteesOf(list []parse.Grantee) []policy.Grantee {
	var out []policy.Grantee
	for _, g := range list {
		out = append(out, policy.Grantee{Kind: policy.GranteeKind(g.Kind), Name: g.Name})
	}
	return out
}

// tableName is the full name of a table of a statement. It asks nobody whether
// there is one.
func (st *statement) tableName(ref parse.TableRef) (plan.TableName, error) {
	database := ref.Database
	if database == "" {
		database = st.session.Database()
	}
	if database == "" {
		return plan.TableName{}, fault.New(fault.NoDatabase, "No database selected")
	}
	full, _, err := st.engine.catalogs.Resolve(database, ref.Name)
	return full, err
}

// definedTable loads a table for an administrator of policies, who need not have
// access to its data: neither gate is asked, and no data may be returned.
func (e *Engine) definedTable(ctx context.Context, n plan.TableName) (*plan.Table, error) {
	cat, ok := e.catalogs.Get(n.Catalog)
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no catalog '%s'", n.Catalog)
	}
	t, err := cat.Table(ctx, n, plan.AsOf{}, "")
	if !fault.Is(err, fault.NotFound) {
		return t, err
	}
	if _, viewErr := cat.View(ctx, n); viewErr == nil || !fault.Is(viewErr, fault.NotFound) {
		return nil, fault.New(fault.NotFound, "'%s' is a view; a policy is on the tables that it reads", n)
	}
	return nil, fault.New(fault.NotFound, "there is no table '%s'; name it as namespace.table or catalog.namespace.table", n)
}

// tablesOf loads the tables that a policy server's name means. There a database
// without a catalog is that database in every catalog, and nothing tells its first
// level from the name of a catalog.
func (e *Engine) tablesOf(ctx context.Context, n plan.TableName) ([]*plan.Table, error) {
	names := []plan.TableName{n}
	namespace := n.Namespace
	if n.Catalog != "" {
		namespace = append([]string{n.Catalog}, n.Namespace...)
	}
	for _, cat := range e.catalogs.All() {
		names = append(names, plan.TableName{Catalog: cat.Name(), Namespace: namespace, Name: n.Name})
	}
	var out []*plan.Table
	for _, name := range names {
		cat, ok := e.catalogs.Get(name.Catalog)
		if !ok || len(name.Namespace) == 0 {
			continue
		}
		t, err := cat.Table(ctx, name, plan.AsOf{}, "")
		switch {
		case err == nil:
			out = append(out, t)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	return out, nil
}

// dotted is the name of a table in a policy, which may have no catalog.
func dotted(n plan.TableName) string { return strings.TrimPrefix(n.String(), ".") }

// granteeText is a grantee for people.
func granteeText(g policy.Grantee) string {
	return strings.ToUpper(string(g.Kind)) + " " + g.Name
}

// itemText is an item without its text.
func itemText(kind policy.DefinitionKind, i policy.Item) string {
	names := make([]string, len(i.Grantees))
	for k, g := range i.Grantees {
		names[k] = granteeText(g)
	}
	what := i.Mask
	switch kind {
	case policy.FilterDefinition:
		what = "ROW FILTER"
		if i.Exempt {
			what = "ROW FILTER NONE"
		}
	case policy.AccessDefinition:
		what = strings.Join(i.Privileges, ", ")
		if i.Deny {
			what = "DENY " + what
		}
	}
	return fmt.Sprintf("%s: %s", strings.Join(names, ", "), what)
}
