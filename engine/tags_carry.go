package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// fields are those for a table that exists, by the id of a top-level field.
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
		tags := missingTags(find(assigned[f.ID]...), own.field(0), own.field(f.ID))
		if len(tags) > 0 {
			list = append(list, brought{f.Name, tags})
			c.fields[f.ID] = plain(tags)
		}
	}
	return c.decide(list)
}

// carryNew finds what a query brings to a table that is to be created from it. The
// names are those of its columns, in the order of the query's. bound and governed
// are the query before and after rewrite.Govern.
func (st *statement) carryNew(ctx context.Context, target plan.TableName, names []string, bound, governed plan.Node) (*carriage, error) {
	find, err := st.derived(ctx, bound, governed)
	if err != nil || find == nil {
		return nil, err
	}
	columns := bound.Columns()
	if len(columns) != len(names) {
		return nil, errors.New("a table and the query that makes it differ in their columns")
	}
	c := &carriage{statement: st, target: target}
	var list []brought
	for i, name := range names {
		if tags := find(columns[i].ID); len(tags) > 0 {
			list = append(list, brought{name, tags})
			c.paths = append(c.paths, catalog.TaggedPath{Path: []string{name}, Tags: plain(tags)})
		}
	}
	return c.decide(list)
}

// brought are the tags that a column of the target gets.
type brought struct {
	column string
	tags   []sourceTag
}

// decide does as the catalog of the target says.
func (c *carriage) decide(list []brought) (*carriage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	mode := c.engine.tagLineage[c.target.Catalog]
	var texts []string
	for _, b := range list {
		for _, t := range b.tags {
			texts = append(texts, fmt.Sprintf("column '%s' is made from %s, which has the tag %s", b.column, t.from, t.Name))
		}
	}
	switch mode {
	case CarryTags:
		for _, b := range list {
			for _, t := range b.tags {
				c.notes = append(c.notes, fmt.Sprintf("column '%s' carries the tag %s from now on: it is made from %s", b.column, t.Name, t.from))
			}
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
	from string // the column, for messages
}

func plain(list []sourceTag) []plan.Tag {
	out := make([]plan.Tag, len(list))
	for i, t := range list {
		out[i] = plan.Tag{Name: t.Name, Attributes: t.Attributes, Inherited: true, Carried: true}
	}
	return out
}

// missingTags leaves out the tags that are in has.
func missingTags(list []sourceTag, has ...[]plan.Tag) []sourceTag {
	return slices.DeleteFunc(list, func(t sourceTag) bool {
		for _, h := range has {
			if slices.ContainsFunc(h, func(x plan.Tag) bool { return x.Name == t.Name }) {
				return true
			}
		}
		return false
	})
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
		add := func(sources []rewrite.FieldSource, named bool) {
			for _, s := range sources {
				t := tags[tableKey(s.Table)]
				if t == nil {
					continue // a table that a policy reads
				}
				from := "what a mask reads" // its columns may be hidden from who asks
				if f, ok := s.Table.Field(s.Field); ok && named {
					from = fmt.Sprintf("column '%s' of table '%s'", f.Name, s.Table.Name)
				}
				for _, tag := range t.source(s.Field) {
					if !slices.ContainsFunc(out, func(x sourceTag) bool { return x.Name == tag.Name }) {
						out = append(out, sourceTag{tag, from})
					}
				}
			}
		}
		for _, id := range columns {
			add(asked(id), true)
		}
		for _, id := range columns {
			add(all(id), false)
		}
		return out
	}, nil
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

func (t *tableTags) field(id int) []plan.Tag { return t.byField[id] }

// source lists the tags that the values of a top-level field bring: its own, those of
// everything inside it, and those of the table, which act on each of its columns.
func (t *tableTags) source(id int) []plan.Tag {
	if len(t.byField) == 0 {
		return nil
	}
	f, ok := t.table.Field(id)
	if t.table.Metadata != "" {
		// Bounds, partitions and paths tell values of the data, of any column.
		if ok && f.Type.ID() != plan.String.ID() && !plan.IsNested(f.Type) {
			return nil
		}
		var out []plan.Tag
		for _, id := range slices.Sorted(maps.Keys(t.byField)) {
			out = append(out, t.byField[id]...)
		}
		return out
	}
	out := slices.Clone(t.byField[0])
	var walk func(f plan.Field)
	walk = func(f plan.Field) {
		out = append(out, t.byField[f.ID]...)
		for _, c := range f.Children {
			walk(c)
		}
	}
	walk(f)
	if !ok {
		out = append(out, t.byField[id]...)
	}
	return out
}
