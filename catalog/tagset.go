package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// TagSet is the tags of a table: the union of its two properties, by field.
//
// TagsProperty names fields by id, and an id never means another field. What
// ColumnTagsProperty says by name can have got out of step, because another
// engine that renames or drops a column does not know of it. For its tag T under
// the name N the rule is:
//
//   - When TagsProperty says of a field that T was put on it under the name N, the
//     tag is that field's, whatever the field is called now. A field that bears N
//     now, or bore it since, inherits T. The tag is Lent to it: it has none of its
//     own, and UNSET TAGS ends the matter.
//   - Otherwise T covers every field that bears N and every one that ever bore it.
//     When they are several, each of them inherits it, for it belongs to one of
//     them and nobody can say to which.
//   - A field that takes a name of one that was dropped inherits its tags in the same
//     way: a column that is dropped and added anew does not open.
//   - An inherited tag only restricts (plan.Tag.Inherited).
//   - A name that no schema of the table has or had is refused with the table.
//
// So a rename, a swap of two names, a drop and a new column of the same name never
// take a tag from a value that had one. (A field that took over a name after the
// last change of the tags, by going back to a schema that the table had before, is
// known to have done so while it bears the name only: such a schema has its old
// id.) A name that no column has exactly is
// looked for without case.
//
// A TagSet belongs to one goroutine; changes go to a table with Properties.
type TagSet struct {
	names *fieldNames
	tags  map[int][]fieldTag
}

// fieldTag is a tag of a field, and in which property it stands.
type fieldTag struct {
	storedTag
	byID, byName bool
}

// fieldNames are the names of the fields of a table, in all its schemas.
type fieldNames struct {
	schema  int            // the highest id of a schema; the present one may be older
	order   []int          // fields of the present schema
	present map[int]string // their dotted names
	// borne are the names of each field that was ever there, the last one first as far
	// as the order of schemas tells: a schema that comes back has its old id.
	borne map[int][]string
	// now and ever hold the bearers of each name, exactly and in lower case: field
	// ids, with the last schema in which they bore it.
	now, nowFolded, ever, everFolded map[string]bearers
}

type bearers map[int]int

func namesOf(meta table.Metadata) *fieldNames {
	n := &fieldNames{
		present: map[int]string{}, borne: map[int][]string{},
		now: map[string]bearers{}, nowFolded: map[string]bearers{}, ever: map[string]bearers{}, everFolded: map[string]bearers{},
	}
	add := func(to map[string]bearers, name string, id, schema int) {
		if to[name] == nil {
			to[name] = bearers{}
		}
		if last, ok := to[name][id]; !ok || last < schema {
			to[name][id] = schema
		}
	}
	schemas := slices.Clone(meta.Schemas())
	slices.SortFunc(schemas, func(a, b *iceberg.Schema) int { return b.ID - a.ID })
	for _, s := range schemas {
		n.schema = max(n.schema, s.ID)
		walkPaths(s.Fields(), func(id int, paths []string) {
			for _, p := range paths {
				if !slices.Contains(n.borne[id], p) {
					n.borne[id] = append(n.borne[id], p)
				}
				add(n.ever, p, id, s.ID)
				add(n.everFolded, strings.ToLower(p), id, s.ID)
			}
		})
	}
	walkPaths(meta.CurrentSchema().Fields(), func(id int, paths []string) {
		n.order = append(n.order, id)
		n.present[id] = paths[0]
		for _, p := range paths {
			add(n.now, p, id, 0)
			add(n.nowFolded, strings.ToLower(p), id, 0)
		}
	})
	return n
}

// walkPaths visits every field with its dotted names, the full one first: what is
// inside the elements of a list or the values of a map is also named without
// "element" or "value".
func walkPaths(fields []iceberg.NestedField, visit func(id int, paths []string)) {
	var walk func(fields []iceberg.NestedField, parents []string, members bool)
	walk = func(fields []iceberg.NestedField, parents []string, members bool) {
		for _, f := range fields {
			paths := []string{f.Name}
			if parents != nil {
				paths = nil
				for _, p := range parents {
					paths = append(paths, p+"."+f.Name)
				}
			}
			visit(f.ID, paths)
			n, ok := f.Type.(iceberg.NestedType)
			if !ok {
				continue
			}
			if members && f.Name != "key" {
				paths = append(paths, parents...)
			}
			_, isStruct := f.Type.(*iceberg.StructType)
			walk(n.Fields(), paths, !isStruct)
		}
	}
	walk(fields, nil, false)
}

// find lists the fields that bear a name now and those that bear or bore it.
func (n *fieldNames) find(name string) (now, ever bearers) {
	if ever = n.ever[name]; len(ever) > 0 {
		return n.now[name], ever
	}
	folded := strings.ToLower(name)
	return n.nowFolded[folded], n.everFolded[folded]
}

// ReadTags reads the tags of a loaded table. Properties that cannot be understood
// are fault.PolicyBroken.
func ReadTags(t *plan.Table) (*TagSet, error) {
	h, ok := t.Handle.(*Handle)
	if !ok || h.Table == nil {
		return nil, fault.New(fault.Internal, "the tags of %s cannot be read: the table was not loaded from a catalog", t.Name)
	}
	return readTags(h.Table.Metadata(), t.Properties)
}

func tagged(props map[string]string) bool {
	_, byID := props[TagsProperty]
	_, byName := props[ColumnTagsProperty]
	return byID || byName
}

func readTags(meta table.Metadata, props map[string]string) (*TagSet, error) {
	s := &TagSet{tags: map[int][]fieldTag{}}
	byName, hasNames := props[ColumnTagsProperty]
	byID, hasIDs := props[TagsProperty]
	if hasIDs {
		stored, err := parseTags(byID, meta.LastColumnID())
		if err != nil {
			return nil, err
		}
		for id, list := range stored {
			for _, t := range list {
				s.tags[id] = append(s.tags[id], fieldTag{storedTag: t, byID: true})
			}
		}
	}
	s.names = namesOf(meta)
	if !hasNames {
		s.lend()
		return s, nil
	}
	entries, err := parseColumnTags(byName)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		now, ever := s.names.find(e.column)
		known := len(ever) > 0
		for _, tag := range e.tags {
			owners := s.owners(e.column, tag)
			if len(owners) == 0 && len(ever) == 0 {
				known = false
				break
			}
			known = true
			s.named(e.column, tag, owners, now, ever)
		}
		if !known {
			return nil, unreadable(ColumnTagsProperty, "it names a column that no schema of the table has or had")
		}
	}
	s.lend()
	return s, nil
}

// lend gives the tags of dropped fields to those that took their names.
func (s *TagSet) lend() {
	ids := slices.Sorted(maps.Keys(s.tags))
	for _, id := range ids {
		if !s.dropped(id) {
			continue
		}
		for _, t := range s.tags[id] {
			if t.released() {
				continue
			}
			for _, name := range s.names.borne[id] {
				for heir, last := range s.names.ever[name] {
					_, bears := s.names.now[name][heir]
					if settled := !bears && t.Schema != nil && last <= *t.Schema; settled || s.at(heir, t.Name) != nil {
						continue
					}
					s.tags[heir] = append(s.tags[heir], fieldTag{storedTag: storedTag{Name: t.Name, Column: name, Inherited: true, Lent: true}})
				}
			}
		}
	}
}

// dropped reports whether a field was once there and is no more.
func (s *TagSet) dropped(id int) bool {
	_, present := s.names.present[id]
	return !present && len(s.names.borne[id]) > 0
}

// released reports whether somebody has said of a dropped field that what takes its
// name does not have the tag.
func (t *storedTag) released() bool { return t.Column == "" && t.Schema != nil }

// owners lists the fields on which the tag was put under the name.
func (s *TagSet) owners(column, tag string) []int {
	var out []int
	for id, list := range s.tags {
		if slices.ContainsFunc(list, func(t fieldTag) bool { return t.byID && t.Name == tag && t.Column == column }) {
			out = append(out, id)
		}
	}
	return out
}

// named takes in one tag of ColumnTagsProperty. now bear the column's name, ever
// bear or bore it.
func (s *TagSet) named(column, tag string, owners []int, now, ever bearers) {
	since := -1 // the schema of which it is known whose the tag was
	for _, id := range owners {
		t := s.at(id, tag)
		t.byName = true
		if t.Schema != nil {
			since = max(since, *t.Schema)
		}
	}
	for id, last := range ever {
		_, bears := now[id]
		if len(owners) > 0 && !bears && last <= since {
			continue
		}
		if t := s.at(id, tag); t != nil {
			t.byName = t.byName || bears
			continue
		}
		s.tags[id] = append(s.tags[id], fieldTag{
			storedTag: storedTag{Name: tag, Column: column, Inherited: len(owners) > 0 || len(ever) > 1, Lent: len(owners) > 0},
			byName:    true,
		})
	}
}

// at finds a tag of a field; nil when it has none of that name.
func (s *TagSet) at(id int, tag string) *fieldTag {
	for i := range s.tags[id] {
		if s.tags[id][i].Name == tag {
			return &s.tags[id][i]
		}
	}
	return nil
}

// Tags lists the tags by field id, of the table itself under id 0; nil: none.
func (s *TagSet) Tags() map[int][]plan.Tag {
	var out map[int][]plan.Tag
	for id, list := range s.tags {
		for _, t := range list {
			if out == nil {
				out = map[int][]plan.Tag{}
			}
			p := plan.Tag{Name: t.Name, Attributes: t.Attributes, Inherited: t.Inherited, Carried: t.Carried}
			if t.Inherited && !t.Carried || t.Column != s.names.present[id] {
				p.Earlier = t.Column
			}
			out[id] = append(out[id], p)
		}
	}
	return out
}

// ColumnTag is one tag of a TagSet.
type ColumnTag struct {
	Field int
	// Column is the present name, dotted for a field inside a column; "" for the
	// table itself.
	Column string
	plan.Tag
	// Lent marks a tag of another field, dropped or renamed, that acts here because
	// the column took its name.
	Lent bool
	// Properties lists the table properties that hold the tag.
	Properties []string
}

// List lists the tags of the table and of its present columns, by column and name.
func (s *TagSet) List() []ColumnTag {
	var out []ColumnTag
	tags := s.Tags()
	for _, id := range append([]int{0}, s.names.order...) {
		for i, t := range s.tags[id] {
			c := ColumnTag{Field: id, Column: s.names.present[id], Tag: tags[id][i], Lent: t.Lent}
			if t.byID {
				c.Properties = append(c.Properties, TagsProperty)
			}
			if t.byName {
				c.Properties = append(c.Properties, ColumnTagsProperty)
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b ColumnTag) int {
		if a.Column != b.Column {
			return strings.Compare(a.Column, b.Column)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// ByColumn lists the names of the tags by the present name of each column that has
// some, inherited ones included; those of the table itself under "".
func (s *TagSet) ByColumn() map[string][]string {
	out := map[string][]string{}
	for _, id := range append([]int{0}, s.names.order...) {
		for _, t := range s.tags[id] {
			if p := s.names.present[id]; !slices.Contains(out[p], t.Name) {
				out[p] = append(out[p], t.Name)
			}
		}
	}
	return out
}

// Column finds a present column by its name, dotted for a field inside it; "" is
// the table itself, id 0.
func (s *TagSet) Column(name string) (id int, err error) {
	if name == "" {
		return 0, nil
	}
	now := s.names.now[name]
	if len(now) == 0 {
		now = s.names.nowFolded[strings.ToLower(name)]
	}
	if len(now) == 0 {
		return 0, fault.New(fault.NoColumn, "Unknown column '%s' in the table", name)
	}
	if len(now) > 1 {
		return 0, fault.New(fault.BadStatement, "The name '%s' means several columns of the table", name)
	}
	for id = range now {
	}
	return id, nil
}

// Names lists the dotted names of a present field, "" for the table itself: the
// present one first, then those that it bore and no other field bears now.
func (s *TagSet) Names(id int) []string {
	out := []string{s.names.present[id]}
	for _, n := range s.names.borne[id] {
		if n != out[0] && len(s.names.now[n]) == 0 {
			out = append(out, n)
		}
	}
	return out
}

// Set adds tags to a field (Column), behind those that it has. A tag that it has
// stays where it is, becomes its own, and takes the new attributes when there are
// any.
func (s *TagSet) Set(id int, tags ...plan.Tag) error {
	for _, t := range tags {
		if t.Name == "" {
			return fault.New(fault.BadStatement, "A tag must have a name")
		}
		old := s.at(id, t.Name)
		if old == nil {
			s.tags[id] = append(s.tags[id], fieldTag{storedTag: storedTag{Name: t.Name, Attributes: maps.Clone(t.Attributes), Carried: t.Carried}})
			continue
		}
		old.Inherited, old.Lent, old.Carried = false, false, old.Carried && t.Carried
		if len(t.Attributes) > 0 {
			old.Attributes = maps.Clone(t.Attributes)
		}
	}
	return nil
}

// Unset takes tags from a field, all of them when none is named, and lists those
// that the field had.
func (s *TagSet) Unset(id int, tags ...string) (removed []string) {
	var kept []fieldTag
	for _, t := range s.tags[id] {
		if len(tags) > 0 && !slices.Contains(tags, t.Name) {
			kept = append(kept, t)
			continue
		}
		removed = append(removed, t.Name)
		// No other field lends it any more.
		for other := range s.tags {
			o := s.at(other, t.Name)
			if o != nil && s.dropped(other) && slices.Contains(s.names.borne[other], s.names.present[id]) {
				o.Column, o.Schema = "", &s.names.schema
			}
		}
	}
	s.tags[id] = kept
	return removed
}

// Properties writes the tags as changes of the properties of a table: what came by
// name stands by id as well from now on, inherited tags as such, and
// ColumnTagsProperty names the present columns.
func (s *TagSet) Properties() (set map[string]string, remove []string, err error) {
	byID := map[int][]storedTag{}
	for id, list := range s.tags {
		for _, t := range list {
			switch {
			case id == 0:
			case !s.dropped(id):
				t.Column, t.Schema = s.names.present[id], &s.names.schema
			case !t.released():
				t.Column, t.Schema = s.names.borne[id][0], &s.names.schema
			}
			byID[id] = append(byID[id], t.storedTag)
		}
	}
	set = map[string]string{}
	names := s.ByColumn()
	delete(names, "")
	// A column that was dropped keeps its entry for as long as no column has the
	// name, so that one that takes it inherits the tags.
	for id, list := range byID {
		for _, t := range list {
			if !s.dropped(id) || t.Column == "" {
				continue
			}
			if now, _ := s.names.find(t.Column); len(now) == 0 && !slices.Contains(names[t.Column], t.Name) {
				names[t.Column] = append(names[t.Column], t.Name)
			}
		}
	}
	if len(byID) == 0 {
		remove = append(remove, TagsProperty)
	} else if set[TagsProperty], err = formatTags(byID); err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "the tags cannot be written")
	}
	if len(names) == 0 {
		remove = append(remove, ColumnTagsProperty)
	} else if set[ColumnTagsProperty], err = formatColumnTags(names); err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "the tags cannot be written")
	}
	return set, remove, nil
}
