package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// mayTag refuses everybody who may not apply policies: who can take a tag off a
// column can read it.
func (st *statement) mayTag() error {
	if st.principal.Admin {
		return nil
	}
	return fault.New(fault.Denied, "only an administrator of this server may change tags; ask one")
}

// alterTags is ALTER TABLE ... SET and UNSET TAGS and TAG.
func (st *statement) alterTags(ctx context.Context, x *parse.AlterTags) (*Result, error) {
	if err := st.mayTag(); err != nil {
		return nil, err
	}
	name, err := st.tableName(x.Table)
	if err != nil {
		return nil, err
	}
	res, err := st.retag(ctx, name, x.Changes)
	if err != nil || len(st.engine.administrators) == 0 {
		return res, err
	}
	stored, err := st.storedPolicies(ctx)
	if err != nil {
		// The tags are set; that is what the statement was for.
		return st.warned([]string{"whether a policy is on the tags is not known now: " + err.Error()}), nil
	}
	return st.warned(tagNotes(x.Changes, stored)), nil
}

// tagNotes says which tags that were set no policy is on. Policies find tags by
// their exact name.
func tagNotes(changes []parse.TagChange, stored []policy.Stored) []string {
	var notes []string
	seen := map[string]bool{}
	for _, c := range changes {
		for _, tag := range c.Tags {
			if c.Unset || seen[tag.Name] {
				continue
			}
			seen[tag.Name] = true
			exact, disabled, like := 0, 0, ""
			for _, p := range stored {
				for _, on := range tagsOf(p) {
					switch {
					case on == tag.Name && p.Disabled:
						disabled++
					case on == tag.Name:
						exact++
					case strings.EqualFold(on, tag.Name):
						like = on
					}
				}
			}
			switch {
			case exact > 0:
			case disabled > 0:
				notes = append(notes, "every policy on the tag '"+tag.Name+"' is disabled, so the tag does nothing until ALTER POLICY enables one")
			case like != "":
				notes = append(notes, "no policy is on the tag '"+tag.Name+"', but one is on '"+like+"', which is another tag: case counts. SET TAGS the tag that is meant, and take this one away")
			default:
				notes = append(notes, "no policy is on the tag '"+tag.Name+"', so it does nothing yet; CREATE POLICY ... ON TAG makes one")
			}
		}
	}
	return notes
}

// tagsOf are the tags that a policy names.
func tagsOf(p policy.Stored) []string {
	if list, ok := strings.CutPrefix(p.Resources, "tag="); ok && len(p.Beyond) > 0 {
		return strings.Split(list, ",")
	}
	if p.Tag == "" {
		return nil
	}
	return []string{p.Tag}
}

func (st *statement) retag(ctx context.Context, name plan.TableName, changes []parse.TagChange) (*Result, error) {
	if err := (&tagging{statement: st, name: name, changes: changes}).run(ctx); err != nil {
		return nil, err
	}
	return st.warned(nil), nil
}

// alterMaskingPolicy is ALTER TABLE ... SET and UNSET MASKING POLICY: it sets the
// tag that the policy is on, or takes it away.
func (st *statement) alterMaskingPolicy(ctx context.Context, x *parse.AlterMaskingPolicy) (*Result, error) {
	if err := st.mayTag(); err != nil {
		return nil, err
	}
	name, err := st.tableName(x.Table)
	if err != nil {
		return nil, err
	}
	stored, err := st.storedPolicies(ctx)
	if err != nil {
		return nil, err
	}
	change := parse.TagChange{Column: x.Column, Unset: x.Unset}
	if x.Unset && x.Policy == "" {
		return st.unsetMasks(ctx, name, change, stored)
	}
	p, err := attachable(stored, x.Policy)
	if err != nil {
		return nil, err
	}
	change.Tags = []parse.Tag{{Name: p.Tag}}
	res, err := st.retag(ctx, name, []parse.TagChange{change})
	if err == nil && p.Disabled && !x.Unset {
		return st.warned([]string{"the policy '" + p.Name + "' is disabled: it masks nothing until ALTER POLICY enables it"}), nil
	}
	return res, err
}

func (st *statement) storedPolicies(ctx context.Context) ([]policy.Stored, error) {
	all, err := st.administrators()
	if err != nil {
		return nil, err
	}
	var out []policy.Stored
	for _, a := range all {
		list, err := a.List(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// attachable finds the policy on a tag that has the name, whatever its case.
func attachable(stored []policy.Stored, name string) (policy.Stored, error) {
	var found []policy.Stored
	for _, p := range stored {
		if strings.EqualFold(p.Name, name) {
			found = append(found, p)
		}
	}
	if exact := slices.DeleteFunc(slices.Clone(found), func(p policy.Stored) bool { return p.Name != name }); len(exact) > 0 {
		found = exact
	}
	if len(found) == 0 {
		return policy.Stored{}, fault.New(fault.NotFound, "there is no masking policy '%s'; SHOW MASKING POLICIES lists them", name)
	}
	p := found[0]
	for _, x := range found[1:] {
		if x.Kind != p.Kind || x.Tag != p.Tag {
			return policy.Stored{}, fault.New(fault.BadStatement, "several policies are named '%s', and they are on different tags; rename one, or SET TAG the tag itself", name)
		}
	}
	masks := slices.ContainsFunc(p.Items, func(i policy.Item) bool { return i.Mask != "" })
	switch {
	case p.Kind != policy.MaskDefinition:
		return policy.Stored{}, fault.New(fault.BadStatement, "the policy '%s' has no mask (it is of the kind %s); SHOW MASKING POLICIES lists those that have", p.Name, p.Kind)
	case p.Tag == "" && strings.HasPrefix(p.Resources, "tag="):
		return policy.Stored{}, fault.New(fault.BadStatement, "the policy '%s' is on several tags; SET TAG the one that is meant", p.Name)
	case p.Tag == "":
		return policy.Stored{}, fault.New(fault.BadStatement, "'%s' is a resource masking policy: its lists of databases, tables and columns form a cross product, to which one column cannot be added; name the column in a policy of its own (CREATE POLICY ... ON TABLE), or attach a policy that is on a tag", p.Name)
	case !masks:
		return policy.Stored{}, fault.New(fault.BadStatement, "the policy '%s' has no mask yet; ALTER POLICY gives it one", p.Name)
	}
	return p, nil
}

// unsetMasks takes from a column all tags that masking policies are on.
func (st *statement) unsetMasks(ctx context.Context, name plan.TableName, change parse.TagChange, stored []policy.Stored) (*Result, error) {
	for _, p := range stored {
		if p.Kind == policy.MaskDefinition && p.Tag != "" && !slices.Contains(change.Tags, parse.Tag{Name: p.Tag}) {
			change.Tags = append(change.Tags, parse.Tag{Name: p.Tag})
		}
	}
	if len(change.Tags) == 0 {
		return st.warned([]string{"no masking policy is on a tag, so no tag was taken from the column; UNSET TAGS takes all of them"}), nil
	}
	return st.retag(ctx, name, []parse.TagChange{change})
}

// showTags is SHOW TAGS. Everybody sees it who may see the table; columns that are
// withheld are left out.
func (st *statement) showTags(ctx context.Context, x *parse.ShowTags) (*Result, error) {
	name, err := st.tableName(x.Table)
	if err != nil {
		return nil, err
	}
	t, hidden, err := st.taggedTable(ctx, name)
	if err != nil {
		return nil, err
	}
	set, err := catalog.ReadTags(t)
	if err != nil {
		return nil, err
	}
	type key struct{ column, tag string }
	sources := map[key][]string{}
	var notes []string
	for _, c := range set.List() {
		switch {
		case hidden[c.Field]:
		case c.Lent:
			notes = append(notes, "column "+c.Column+" took the name of a column with the tag "+c.Name+": it is treated as tagged until SET TAGS or UNSET TAGS on it says otherwise")
		case c.Carried:
			sources[key{c.Column, c.Name}] = []string{"table (carried)"}
		case c.Earlier != "" && c.Earlier != c.Column:
			sources[key{c.Column, c.Name}] = []string{"table (put on the earlier name " + c.Earlier + ")"}
		default:
			sources[key{c.Column, c.Name}] = []string{"table"}
		}
	}
	states, err := st.policies()
	if err != nil {
		return nil, err
	}
	names := pathsOf(t)
	for i, s := range states {
		tagger, ok := s.(policy.Tagger)
		if !ok {
			continue
		}
		for id, tags := range tagger.TableTags(t) {
			for _, tag := range tags {
				if k := (key{names[id], tag}); !hidden[id] {
					sources[k] = append(sources[k], "policy source "+st.engine.sources[i].Name())
				}
			}
		}
	}
	out := table("column", "tag", "source")
	for _, k := range slices.SortedFunc(maps.Keys(sources), func(a, b key) int {
		if a.column != b.column {
			return strings.Compare(a.column, b.column)
		}
		return strings.Compare(a.tag, b.tag)
	}) {
		out.row(k.column, k.tag, strings.Join(sources[k], ", "))
	}
	st.session.vars.SetWarnings(notes)
	res := out.result()
	res.Warnings = st.session.vars.WarningCount()
	return res, nil
}

// taggedTable loads a table for SHOW TAGS, and says which fields are not to be
// told of.
func (st *statement) taggedTable(ctx context.Context, name plan.TableName) (t *plan.Table, hidden map[int]bool, err error) {
	if st.principal.Admin {
		t, err = st.engine.definedTable(ctx, name)
		return t, nil, err
	}
	database := st.engine.catalogs.Database(name.Catalog, name.Namespace)
	object := policy.TableObject(name)
	visible := false
	var last policy.Decision
	for _, p := range []policy.Privilege{policy.TableDataRead, policy.TableList, policy.TableProps} {
		d, err := st.authorize(object, p)
		if err != nil {
			return nil, nil, err
		}
		visible = visible || d.Visible || d.Allow
		last = d
	}
	cat, ok := st.engine.catalogs.Get(name.Catalog)
	if !visible || !ok {
		st.denied(object, policy.TableProps, last)
		return nil, nil, missing(database, name.Name)
	}
	if t, err = cat.Table(ctx, name, plan.AsOf{}, ""); fault.Is(err, fault.NotFound) {
		return nil, nil, missing(database, name.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	hidden = map[int]bool{}
	var hide func(f plan.Field)
	hide = func(f plan.Field) {
		hidden[f.ID] = true
		for _, c := range f.Children {
			hide(c)
		}
	}
	withheld := b.Withheld()
	for _, f := range t.Fields {
		if _, ok := withheld[f.ID]; ok {
			hide(f)
		}
	}
	return t, hidden, nil
}

// pathsOf is the dotted name of every field.
func pathsOf(t *plan.Table) map[int]string {
	out := map[int]string{}
	var walk func(fields []plan.Field, prefix string)
	walk = func(fields []plan.Field, prefix string) {
		for _, f := range fields {
			out[f.ID] = prefix + f.Name
			walk(f.Children, prefix+f.Name+".")
		}
	}
	walk(t.Fields, "")
	return out
}
