package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rewrite"
)

// TagLineage says what a statement does that writes values of tagged columns.
type TagLineage uint8

// What it does. The zero value carries.
const (
	// CarryTags puts the tags on the columns that get the values, in the commit of
	// the rows.
	CarryTags TagLineage = iota
	// WarnOfTags lets the statement through and warns.
	WarnOfTags
	// RefuseTags refuses it with fault.Denied.
	RefuseTags
)

// carriage is the tags that a statement brings to the columns of its target. A nil
// carriage brings none.
//
// They only restrict (catalog.TagSet.Carry), so that nobody is asked for the right to
// change tags: who writes values of tagged columns causes them.
type carriage struct {
	*statement
	target plan.TableName
	// fields are those for a table that exists, by the id of a field of any depth.
	fields map[int][]plan.Tag
	// paths are those for a table that is to be created.
	paths []catalog.TaggedPath
	// notes are warnings: names of columns, tables and tags.
	notes []string
}

// carryInto finds what changes of a table bring to its columns. bound and governed
// are the same changes before and after rewrite.GovernWrite. fault.Denied when the
// catalog of the table refuses them.
func (st *statement) carryInto(ctx context.Context, bound, governed *plan.Write) (*carriage, error) {
	assigned := map[int][]plan.ColumnID{}
	for _, b := range bound.Branches {
		for field, column := range b.Values {
			if !slices.Contains(assigned[field], column) {
				assigned[field] = append(assigned[field], column)
			}
		}
	}
	find, err := st.derived(ctx, bound.Rows, governed.Rows)
	if err != nil || find == nil || len(assigned) == 0 {
		return nil, err
	}
	own, err := st.tagsOfTable(ctx, bound.Target)
	if err != nil {
		return nil, err
	}
	c := &carriage{statement: st, target: bound.Target.Name, fields: map[int][]plan.Tag{}}
	var list []brought
	for _, f := range bound.Target.Fields {
		for _, t := range atPlaces(find(assigned[f.ID]...), f) {
			// What is above a field acts on it.
			has := named(own.byField[0], t.Name) || named(own.byField[f.ID], t.Name)
			at := f
			for _, name := range t.path {
				at = inside(at)[slices.IndexFunc(inside(at), func(c plan.Field) bool { return c.Name == name })]
				has = has || named(own.byField[at.ID], t.Name)
			}
			if has {
				continue
			}
			if at.ID == 0 {
				return nil, fmt.Errorf("a field inside column '%s' of table '%s' has no id", f.Name, bound.Target.Name)
			}
			list = append(list, brought{strings.Join(append([]string{f.Name}, t.path...), "."), t})
			c.fields[at.ID] = append(c.fields[at.ID], t.carried())
		}
	}
	return c.decide(list)
}

// carryNew finds what a query brings to a table that is to be created from it. fields
// are its columns, in the order of the query's. bound and governed are the query
// before and after rewrite.Govern.
func (st *statement) carryNew(ctx context.Context, target plan.TableName, fields []plan.Field, bound, governed plan.Node) (*carriage, error) {
	find, err := st.derived(ctx, bound, governed)
	if err != nil || find == nil {
		return nil, err
	}
	columns := bound.Columns()
	if len(columns) != len(fields) {
		return nil, errors.New("a table and the query that makes it differ in their columns")
	}
	c := &carriage{statement: st, target: target}
	var list []brought
	for i, f := range fields {
		for _, t := range atPlaces(find(columns[i].ID), f) {
			path := append([]string{f.Name}, t.path...)
			list = append(list, brought{strings.Join(path, "."), t})
			c.paths = append(c.paths, catalog.TaggedPath{Path: path, Tags: []plan.Tag{t.carried()}})
		}
	}
	return c.decide(list)
}

// brought is a tag that a column of the target gets.
type brought struct {
	column string
	sourceTag
}

// decide does as the catalog of the target says.
func (c *carriage) decide(list []brought) (*carriage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	mode := c.engine.tagLineage[c.target.Catalog]
	var texts []string
	for _, b := range list {
		texts = append(texts, fmt.Sprintf("column '%s' is made from %s, which has the tag %s", b.column, b.from, b.Name))
	}
	switch mode {
	case CarryTags:
		for _, b := range list {
			c.notes = append(c.notes, fmt.Sprintf("column '%s' gets the tag %s with the rows: it is made from %s", b.column, b.Name, b.from))
		}
		return c, nil
	case WarnOfTags:
		for _, t := range texts {
			c.notes = append(c.notes, t+", and does not get it")
		}
		c.fields, c.paths = nil, nil
		return c, nil
	}
	more := ""
	if n := len(texts) - 5; n > 0 {
		texts, more = texts[:5], fmt.Sprintf("; and %d more", n)
	}
	return nil, fault.New(fault.Denied, "catalog '%s' takes no values of tagged columns into columns without the tag: %s%s; have an administrator SET the tags on the columns of the table, or leave the columns out", c.target.Catalog, strings.Join(texts, "; "), more)
}

// warnings are for SHOW WARNINGS.
func (c *carriage) warnings() []string {
	if c == nil {
		return nil
	}
	return c.notes
}

// tags are those of a table that is to be created.
func (c *carriage) tags() []catalog.TaggedPath {
	if c == nil {
		return nil
	}
	return c.paths
}

// sourceTag is a tag of a column that values come from.
type sourceTag struct {
	plan.Tag
	// path is where in the values it belongs, below the column: the names of fields;
	// none is the whole.
	path []string
	from string // the column, for messages
}

// carried is the tag as a column carries it.
func (t sourceTag) carried() plan.Tag {
	return plan.Tag{Name: t.Name, Attributes: t.Attributes, Inherited: true, Carried: true}
}

func named(tags []plan.Tag, name string) bool {
	return slices.ContainsFunc(tags, func(t plan.Tag) bool { return t.Name == name })
}

// atPlaces puts tags where they belong in a column: on the whole of it where it has
// not the place that they had, and nowhere else when they are on the whole.
func atPlaces(list []sourceTag, f plan.Field) []sourceTag {
	var out []sourceTag
	for _, t := range list {
		if !hasPlace(f, t.path) {
			t.path = nil
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b sourceTag) int { return len(a.path) - len(b.path) })
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(t sourceTag) bool {
		key := t.Name + "\x1f" + strings.Join(t.path, "\x1f")
		gone := seen[key] || seen[t.Name+"\x1f"]
		seen[key] = true
		return gone
	})
}

func hasPlace(f plan.Field, path []string) bool {
	if len(path) == 0 {
		return true
	}
	for _, c := range inside(f) {
		if c.Name == path[0] {
			return hasPlace(c, path[1:])
		}
	}
	return false
}

// inside are the fields of a field, those of its type when it lists none.
func inside(f plan.Field) []plan.Field {
	if len(f.Children) > 0 {
		return f.Children
	}
	part := func(name string, t arrow.DataType) plan.Field { return plan.Field{Name: name, Type: t} }
	switch t := f.Type.(type) {
	case *arrow.StructType:
		var out []plan.Field
		for _, x := range t.Fields() {
			out = append(out, part(x.Name, x.Type))
		}
		return out
	case *arrow.ListType:
		return []plan.Field{part("element", t.Elem())}
	case *arrow.MapType:
		return []plan.Field{part("key", t.KeyType()), part("value", t.ItemType())}
	}
	return nil
}

// derived finds the tags of what columns are derived from; nil when no table of the
// plans has a tag.
func (st *statement) derived(ctx context.Context, bound, governed plan.Node) (func(...plan.ColumnID) []sourceTag, error) {
	tags := map[string]*tableTags{}
	tagged := false
	for _, root := range []plan.Node{bound, governed} {
		var err error
		plan.Walk(root, func(n plan.Node) bool {
			s, ok := n.(*plan.Scan)
			if !ok || s.Table == nil || s.Definer || tags[tableKey(s.Table)] != nil {
				return err == nil
			}
			var t *tableTags
			if t, err = st.tagsOfTable(ctx, s.Table); err != nil {
				return false
			}
			tags[tableKey(s.Table)] = t
			tagged = tagged || len(t.byField) > 0
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	if !tagged {
		return nil, nil
	}
	asked, all := rewrite.Lineage(bound), rewrite.Lineage(bound, governed)
	return func(columns ...plan.ColumnID) []sourceTag {
		var out []sourceTag
		named := map[fieldOf]bool{}
		for _, id := range columns {
			for _, s := range asked(id) {
				named[fieldOf{s.Table, s.Field}] = true
				if t := tags[tableKey(s.Table)]; t != nil {
					out = append(out, t.source(s, true)...)
				}
			}
		}
		// What only masks read: its columns may be hidden from who asks, and it does
		// not stand where it stood.
		for _, id := range columns {
			for _, s := range all(id) {
				s.Same = false
				if t := tags[tableKey(s.Table)]; t != nil && !named[fieldOf{s.Table, s.Field}] {
					out = append(out, t.source(s, false)...)
				}
			}
		}
		return out
	}, nil
}

type fieldOf struct {
	table *plan.Table
	field int
}

// tableTags are the tags of a table: those that it holds and those of the policy
// sources.
type tableTags struct {
	table *plan.Table
	// byField are they by field id, at any depth, of the table itself under 0.
	byField map[int][]plan.Tag
}

func (st *statement) tagsOfTable(ctx context.Context, t *plan.Table) (*tableTags, error) {
	states, err := st.policies()
	if err != nil {
		return nil, err
	}
	out := &tableTags{table: t, byField: t.Tags}
	data := t
	for _, s := range states {
		tagger, ok := s.(policy.Tagger)
		if !ok {
			continue
		}
		if data.Metadata != "" {
			// The source knows the columns of the data.
			cat, ok := st.engine.catalogs.Get(t.Name.Catalog)
			if !ok {
				return nil, missing(t.Name.Catalog, t.Name.Name)
			}
			if data, err = cat.Table(ctx, t.Name, plan.AsOf{}, ""); err != nil {
				return nil, err
			}
		}
		tags := tagger.TableTags(data)
		if len(tags) == 0 {
			continue
		}
		merged := map[int][]plan.Tag{}
		maps.Copy(merged, out.byField)
		for id, names := range tags {
			for _, n := range names {
				if !slices.ContainsFunc(merged[id], func(x plan.Tag) bool { return x.Name == n }) {
					merged[id] = append(slices.Clone(merged[id]), plan.Tag{Name: n})
				}
			}
		}
		out.byField = merged
	}
	return out, nil
}

// source lists the tags that the values of a top-level field bring: its own, those of
// everything inside it, and those of the table, which act on each of its columns.
func (t *tableTags) source(s rewrite.FieldSource, named bool) []sourceTag {
	if len(t.byField) == 0 {
		return nil
	}
	f, ok := t.table.Field(s.Field)
	from := "what a mask reads"
	if ok && named {
		from = fmt.Sprintf("column '%s' of table '%s'", f.Name, t.table.Name)
	}
	var out []sourceTag
	add := func(id int, path []string) {
		for _, tag := range t.byField[id] {
			out = append(out, sourceTag{tag, path, from})
		}
	}
	if t.table.Metadata != "" {
		// Bounds, partitions and paths tell values of the data, of any column.
		if ok && f.Type.ID() != plan.String.ID() && !plan.IsNested(f.Type) {
			return nil
		}
		for _, id := range slices.Sorted(maps.Keys(t.byField)) {
			add(id, nil)
		}
		return out
	}
	add(0, nil)
	var walk func(f plan.Field, path []string)
	walk = func(f plan.Field, path []string) {
		add(f.ID, path)
		for _, c := range f.Children {
			var below []string
			if s.Same {
				below = append(slices.Clone(path), c.Name)
			}
			walk(c, below)
		}
	}
	if !ok {
		f.ID = s.Field
	}
	walk(f, nil)
	return out
}
