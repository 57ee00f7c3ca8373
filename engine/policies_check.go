package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sqe/fault"
	"sqe/masks"
	"sqe/plan"
	"sqe/policy"
)

// policyMasks are the masks that a policy may name, in the order of messages.
var policyMasks = []string{
	masks.Redact, masks.ShowLast4, masks.ShowFirst4, masks.Hash, masks.Null, masks.DateShowYear, masks.None, masks.CustomSQL,
}

// policyCheck checks a policy before it is written. Its errors are for
// administrators; they name columns and principals, and hold no text of a policy.
type policyCheck struct {
	engine    *Engine
	statement string // "CREATE POLICY"
	states    []policy.State
	// changed says that the policy was there before: a column that is gone is no
	// error.
	changed bool
	// notes are warnings, one sentence each.
	notes []string
}

func (c *policyCheck) fail(format string, args ...any) error {
	return fault.New(fault.BadStatement, "%s: %s", c.statement, fmt.Sprintf(format, args...))
}

func (c *policyCheck) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// pattern reports whether a policy server would read a name as a pattern.
func pattern(name string) bool { return strings.ContainsAny(name, "*?{}") }

// patterns reports whether a name of a definition that was read is a pattern.
func patterns(d policy.Definition) bool {
	all := append([]string{d.Tag, d.Table.Name, d.Table.Catalog}, d.Table.Namespace...)
	return slices.ContainsFunc(append(all, d.Columns...), pattern)
}

// names refuses names that mean something else to a policy server.
func (c *policyCheck) names(d policy.Definition) error {
	if patterns(d) {
		return c.fail("a name of a table, column or tag holds *, ?, { or }, which policy servers read as a pattern")
	}
	return nil
}

// definition checks d as a whole, and these of its items against the tables that
// it is on.
func (c *policyCheck) definition(ctx context.Context, d policy.Definition, items []policy.Item, now time.Time) error {
	if !d.ValidFrom.IsZero() && !d.ValidUntil.IsZero() && !d.ValidUntil.After(d.ValidFrom) {
		return c.fail("VALID UNTIL is not after VALID FROM")
	}
	if !d.ValidUntil.IsZero() && !d.ValidUntil.After(now) {
		c.note("VALID UNTIL is in the past: the policy does nothing")
	}
	if d.Kind == policy.AccessDefinition {
		return nil
	}
	for _, i := range items {
		if err := c.vocabulary(d, i); err != nil {
			return err
		}
	}
	c.order(d)
	switch {
	case len(items) == 0:
		return nil
	case d.Tag != "" && !pattern(d.Tag):
		return c.tagged(ctx, d, items)
	case d.Table.Name == "" || patterns(d):
		c.note("the policy is on several tables or columns; its texts were not checked against them")
		return nil
	}
	tables, err := c.tables(ctx, d.Table)
	if err != nil {
		return err
	}
	for _, t := range tables {
		var fields []plan.Field
		if d.Kind == policy.MaskDefinition {
			if fields, err = c.columns(t, d.Columns); err != nil {
				return err
			}
		}
		for n, i := range items {
			if err := c.item(ctx, t, fields, i); err != nil {
				return numbered(err, c.statement, n, len(items))
			}
		}
	}
	return nil
}

// tables loads the tables that a policy is on. That a policy which is there names
// a table which is not, is no error.
func (c *policyCheck) tables(ctx context.Context, n plan.TableName) ([]*plan.Table, error) {
	if !c.changed {
		t, err := c.engine.definedTable(ctx, n)
		return []*plan.Table{t}, err
	}
	tables, err := c.engine.tablesOf(ctx, n)
	if err == nil && len(tables) == 0 {
		c.note("there is no table '%s'; the policy was not checked against it", dotted(n))
	}
	return tables, err
}

// numbered says in which item an error is.
func numbered(err error, statement string, n, of int) error {
	f := (*fault.Fault)(nil)
	if of == 1 || !errors.As(err, &f) || f.Kind != fault.BadStatement {
		return err
	}
	return fault.Wrap(f.Kind, f.Unwrap(), "%s: item %d: %s", statement, n+1, strings.TrimPrefix(f.Text, statement+": "))
}

// vocabulary checks what an item says without looking at a table.
func (c *policyCheck) vocabulary(d policy.Definition, i policy.Item) error {
	switch {
	case d.Kind == policy.FilterDefinition && i.Mask != "":
		return c.fail("'%s' is a row filter; a mask is a policy of its own", d.Name)
	case d.Kind == policy.MaskDefinition && i.Mask == "":
		return c.fail("'%s' is a mask; a row filter is a policy of its own", d.Name)
	case d.Kind == policy.MaskDefinition && !slices.Contains(policyMasks, i.Mask):
		return c.fail("there is no such mask; the masks are %s", strings.Join(policyMasks, ", "))
	case i.Mask == masks.Hash && len(c.engine.masks.HashKey) == 0:
		return c.fail("MASK_HASH needs a key that this server does not have; set masks.hash-key-file")
	}
	return nil
}

// order notes principals that an earlier item already names: of the items of a
// policy only the first that names a principal acts.
func (c *policyCheck) order(d policy.Definition) {
	seen := map[policy.Grantee]int{}
	public := 0
	for n, i := range d.Items {
		if public > 0 {
			c.note("item %d does nothing: item %d is for everybody and comes first", n+1, public)
			continue
		}
		for _, g := range i.Grantees {
			if at, ok := seen[g]; ok && at != n+1 {
				c.note("%s stands in item %d and in item %d; the first acts", granteeText(g), at, n+1)
			} else {
				seen[g] = n + 1
			}
			if g == (policy.Grantee{Kind: policy.GroupGrantee, Name: policy.Public}) {
				public = n + 1
			}
		}
	}
}

// columns finds the fields that columns of a policy name.
func (c *policyCheck) columns(t *plan.Table, names []string) ([]plan.Field, error) {
	var out []plan.Field
	seen := map[int]bool{}
	for _, name := range names {
		f, now, ok := columnNamed(t, name)
		switch {
		case ok && seen[f.ID]:
			return nil, c.fail("column '%s' stands twice", name)
		case ok && now != "":
			c.note("column '%s' of table '%s' is called '%s' now; the policy covers it by its earlier name", name, t.Name, now)
			fallthrough
		case ok:
			seen[f.ID] = true
			out = append(out, f)
		case formerly(t, name):
			c.note("table '%s' had a column '%s' and has none now; the policy acts when it is read as of that time", t.Name, name)
		case c.changed:
			c.note("table '%s' never had a column '%s'", t.Name, name)
		default:
			return nil, fault.New(fault.NoColumn, "%s: table '%s' has no column '%s' and never had one; DESCRIBE shows its columns", c.statement, t.Name, name)
		}
	}
	return out, nil
}

// columnNamed finds a field by its dotted path. now is its present path when the
// name is an earlier one.
func columnNamed(t *plan.Table, name string) (f plan.Field, now string, ok bool) {
	if f, ok := t.FieldNamed(name); ok {
		return f, "", true
	}
	var present, earlier []plan.Field
	var paths []string
	var walk func(fields []plan.Field, path string, spellings []string)
	walk = func(fields []plan.Field, path string, spellings []string) {
		for _, f := range fields {
			own := path + f.Name
			var all []string
			for _, s := range spellings {
				for _, n := range append([]string{f.Name}, t.Formerly[f.ID]...) {
					all = append(all, s+n)
				}
			}
			switch {
			case strings.EqualFold(own, name):
				present = append(present, f)
			case slices.ContainsFunc(all, func(s string) bool { return strings.EqualFold(s, name) }):
				earlier, paths = append(earlier, f), append(paths, own)
			}
			for i := range all {
				all[i] += "."
			}
			walk(f.Children, own+".", all)
		}
	}
	walk(t.Fields, "", []string{""})
	switch {
	case len(present) == 1:
		return present[0], "", true
	case len(present) == 0 && len(earlier) > 0:
		return earlier[0], paths[0], true
	}
	return plan.Field{}, "", false
}

// formerly reports whether a column of that name was dropped.
func formerly(t *plan.Table, name string) bool {
	for _, names := range t.Formerly {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return true
		}
	}
	return false
}

// item checks an item against a table.
func (c *policyCheck) item(ctx context.Context, t *plan.Table, fields []plan.Field, i policy.Item) error {
	if i.Exempt {
		return nil
	}
	if strings.Contains(i.SQL, "${{") {
		c.note("a text with ${{...}} differs for each principal and was not checked")
		return nil
	}
	if i.Mask == "" {
		return c.applied(t, "the row filter", c.engine.CheckFilter(ctx, t, i.SQL))
	}
	if i.Mask == masks.None {
		return nil
	}
	rules := map[int]policy.ColumnRule{}
	for _, f := range fields {
		if err := c.fits(i.Mask, f); err != nil {
			return err
		}
		rules[f.ID] = policy.ColumnRule{Kind: policy.Mask, Action: i.Mask, SQL: i.SQL}
	}
	return c.applied(t, "the mask", c.engine.check(ctx, t, &policy.Restrictions{Complete: true, Columns: rules}))
}

// applied turns the reason why a policy cannot be applied into an error. An outage
// stays what it is.
func (c *policyCheck) applied(t *plan.Table, what string, err error) error {
	var w withheld
	if err == nil || !fault.Is(err, fault.PolicyBroken) && !errors.As(err, &w) {
		return err
	}
	why := string(w)
	if why == "" {
		why = err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			why = strings.TrimPrefix(cause.Error(), `row filter of policy "": `)
		}
	}
	return c.fail("%s cannot be applied to table '%s': %s", what, t.Name, placed(why))
}

var place = regexp.MustCompile(`syntax error at line (\d+), column (\d+)`)

// placed moves the place of a syntax error into the text: it is bound behind the
// word SELECT.
func placed(why string) string {
	return place.ReplaceAllStringFunc(why, func(s string) string {
		var line, column int
		if _, err := fmt.Sscanf(s, "syntax error at line %d, column %d", &line, &column); err != nil {
			return s
		}
		if line == 1 {
			column = max(1, column-len("SELECT "))
		}
		return fmt.Sprintf("syntax error at line %d, column %d of the text", line, column)
	})
}

// fits refuses a mask that would make everything NULL because it is not made for
// the type.
func (c *policyCheck) fits(mask string, f plan.Field) error {
	if mask == masks.Null || mask == masks.CustomSQL || mask == masks.None {
		return nil
	}
	m, err := masks.New(mask, f, c.engine.masks)
	if err != nil {
		return c.fail("%s", err)
	}
	if len(plan.Refs(m(&plan.Ref{ID: 1, Typ: f.Type}))) > 0 {
		return nil
	}
	advice := "use MASK_NULL when NULL is meant, or CUSTOM with an expression"
	if plan.IsNested(f.Type) {
		advice = "name a field inside the column, or use MASK_NULL"
	}
	return c.fail("%s is not made for column '%s' of type %s and would show NULL only; %s", mask, f.Name, plan.TypeName(f.Type), advice)
}

// tagged checks items against every table that carries the tag.
func (c *policyCheck) tagged(ctx context.Context, d policy.Definition, items []policy.Item) error {
	carriers, err := c.carriers(ctx, d.Tag)
	if err != nil {
		return err
	}
	if len(carriers) == 0 {
		c.note("no table of the catalogs carries the tag '%s' now; the policy was not checked against one", d.Tag)
	}
	for _, carrier := range carriers {
		t, fields := carrier.table, carrier.fields
		for n, i := range items {
			if i.Mask == masks.CustomSQL || d.Kind == policy.FilterDefinition {
				if err := c.item(ctx, t, fields, i); err != nil {
					return numbered(err, c.statement, n, len(items))
				}
				continue
			}
			for _, f := range fields {
				if err := c.fits(i.Mask, f); err != nil {
					c.note("in table '%s' %s", t.Name, strings.TrimPrefix(err.Error(), c.statement+": "))
				}
			}
		}
	}
	return nil
}

// carrier is a table that carries a tag itself or on these fields.
type carrier struct {
	table  *plan.Table
	fields []plan.Field
}

// carriers loads the tables of all catalogs and gives those that carry the tag, by
// their own properties or by what a policy source says.
func (c *policyCheck) carriers(ctx context.Context, tag string) ([]carrier, error) {
	var out []carrier
	err := c.engine.eachTable(ctx, func(t *plan.Table) {
		tagged := map[int]bool{}
		for id, tags := range t.Tags {
			tagged[id] = slices.ContainsFunc(tags, func(t plan.Tag) bool { return t.Name == tag })
		}
		for _, s := range c.states {
			if tagger, ok := s.(policy.Tagger); ok {
				for id, tags := range tagger.TableTags(t) {
					tagged[id] = tagged[id] || slices.Contains(tags, tag)
				}
			}
		}
		if fields := fieldsOf(t.Fields, tagged); tagged[0] || len(fields) > 0 {
			out = append(out, carrier{table: t, fields: fields})
		}
	}, func(n plan.TableName) {
		c.note("table '%s' cannot be read now; whether it carries the tag is not known", n)
	})
	return out, err
}

// eachTable loads every table of every catalog, with the rights of the service.
// One that cannot be loaded is given to unreadable.
func (e *Engine) eachTable(ctx context.Context, f func(*plan.Table), unreadable func(plan.TableName)) error {
	for _, cat := range e.catalogs.All() {
		namespaces, err := cat.Namespaces(ctx)
		if err != nil {
			return err
		}
		for _, ns := range namespaces {
			names, err := cat.Tables(ctx, ns)
			if err != nil {
				return err
			}
			for _, name := range names {
				full := plan.TableName{Catalog: cat.Name(), Namespace: ns, Name: name}
				t, err := cat.Table(ctx, full, plan.AsOf{}, "")
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil:
					unreadable(full)
				default:
					f(t)
				}
			}
		}
	}
	return nil
}

// fieldsOf are the fields, at any depth, with these ids.
func fieldsOf(fields []plan.Field, ids map[int]bool) []plan.Field {
	var out []plan.Field
	for _, f := range fields {
		if ids[f.ID] {
			out = append(out, f)
		}
		out = append(out, fieldsOf(f.Children, ids)...)
	}
	return out
}
