package catalog

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"sqe/fault"
)

// edit finds a field and has it changed: do is given the fields among which it is,
// and its place. member says that it is what is inside a list or a map, which has
// no siblings and no name of its own. What it finds "element", "key" and "value" of
// may be left out of the path.
func edit(fields *[]iceberg.NestedField, path []string, do func(siblings *[]iceberg.NestedField, i int, member bool) error) error {
	err := descend(fields, path, do)
	if fault.Is(err, fault.NoColumn) {
		return noColumn(path)
	}
	return err
}

func descend(fields *[]iceberg.NestedField, path []string, do func(siblings *[]iceberg.NestedField, i int, member bool) error) error {
	if len(path) == 0 {
		return noColumn(path)
	}
	i := indexOf(*fields, path[0])
	if i < 0 {
		return noColumn(path)
	}
	if len(path) == 1 {
		return do(fields, i, false)
	}
	return inside((*fields)[i].Type, path[1:], do)
}

func inside(t iceberg.Type, path []string, do func(siblings *[]iceberg.NestedField, i int, member bool) error) error {
	// one goes on in a member, and tells what it has become.
	one := func(f iceberg.NestedField) (iceberg.NestedField, error) {
		switch {
		case !strings.EqualFold(path[0], f.Name):
			return f, inside(f.Type, path, do)
		case len(path) > 1:
			return f, inside(f.Type, path[1:], do)
		}
		alone := []iceberg.NestedField{f}
		err := do(&alone, 0, true)
		return alone[0], err
	}
	switch t := t.(type) {
	case *iceberg.StructType:
		return descend(&t.FieldList, path, do)
	case *iceberg.ListType:
		f, err := one(t.ElementField())
		t.Element, t.ElementRequired = f.Type, f.Required
		return err
	case *iceberg.MapType:
		if strings.EqualFold(path[0], "key") {
			return fault.New(fault.BadStatement, "The keys of a map cannot be changed")
		}
		f, err := one(t.ValueField())
		t.ValueType, t.ValueRequired = f.Type, f.Required
		return err
	}
	return noColumn(path)
}

func notMember(member bool, what string) error {
	if member {
		return fault.New(fault.BadStatement, "What is inside a list or a map cannot be %s by itself", what)
	}
	return nil
}

// place moves the field at i to where it belongs.
func (p Position) place(siblings *[]iceberg.NestedField, i int) error {
	given := 0
	for _, is := range []bool{p.First, p.After != "", p.Before != ""} {
		if is {
			given++
		}
	}
	if given == 0 {
		return nil
	}
	if given > 1 {
		return fault.New(fault.BadStatement, "A column cannot have two places")
	}
	f := (*siblings)[i]
	rest := slices.Delete(slices.Clone(*siblings), i, i+1)
	at := 0
	if beside := p.After + p.Before; beside != "" {
		if at = indexOf(rest, beside); at < 0 {
			return fault.New(fault.NoColumn, "Unknown column '%s' beside '%s'", beside, f.Name)
		}
		if p.After != "" {
			at++
		}
	}
	*siblings = slices.Insert(rest, at, f)
	return nil
}

func (ch AddColumn) alter(a *alteration) error {
	if len(ch.Path) == 0 {
		return fault.New(fault.BadStatement, "A column must have a name")
	}
	parent, name := ch.Path[:len(ch.Path)-1], ch.Path[len(ch.Path)-1]
	add := func(siblings *[]iceberg.NestedField) error {
		if indexOf(*siblings, name) >= 0 || slices.ContainsFunc(*siblings, func(f iceberg.NestedField) bool { return strings.EqualFold(f.Name, name) }) {
			if ch.IfNotExists {
				return nil
			}
			return fault.New(fault.BadStatement, "Duplicate column name '%s'", strings.Join(ch.Path, "."))
		}
		if err := checkColumn(name, len(parent) == 0); err != nil {
			return err
		}
		a.last++
		f := iceberg.NestedField{ID: a.last, Name: name, Required: ch.Field.Required, Doc: ch.Field.Doc}
		if err := a.complete(&f, ch.Field, len(parent)); err != nil {
			return err
		}
		// Rows that are there have the value as well.
		f.InitialDefault = f.WriteDefault
		if f.Required && f.InitialDefault == nil {
			return fault.New(fault.BadStatement, "Column '%s' cannot be required: the rows that are there have no value for it; add it as optional, or with a default in a table of format version 3", strings.Join(ch.Path, "."))
		}
		*siblings = append(slices.Clone(*siblings), f)
		a.newColumns = true
		return ch.Position.place(siblings, len(*siblings)-1)
	}
	if len(parent) == 0 {
		return add(&a.columns)
	}
	return edit(&a.columns, parent, func(siblings *[]iceberg.NestedField, i int, _ bool) error {
		t := (*siblings)[i].Type
		if l, ok := t.(*iceberg.ListType); ok {
			t = l.Element
		}
		if m, ok := t.(*iceberg.MapType); ok {
			t = m.ValueType
		}
		s, ok := t.(*iceberg.StructType)
		if !ok {
			return fault.New(fault.BadStatement, "Column '%s' is no struct", strings.Join(parent, "."))
		}
		return add(&s.FieldList)
	})
}

func (ch DropColumn) alter(a *alteration) error {
	err := edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, member bool) error {
		if err := notMember(member, "dropped"); err != nil {
			return err
		}
		if len(*siblings) == 1 {
			return fault.New(fault.BadStatement, "Column '%s' is the only one; drop what holds it", strings.Join(ch.Path, "."))
		}
		*siblings = slices.Delete(slices.Clone(*siblings), i, i+1)
		a.newColumns = true
		return nil
	})
	if ch.IfExists && fault.Is(err, fault.NoColumn) {
		return nil
	}
	return err
}

func (ch RenameColumn) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, member bool) error {
		if err := notMember(member, "renamed"); err != nil {
			return err
		}
		if err := checkColumn(ch.To, len(ch.Path) == 1); err != nil {
			return err
		}
		for k, f := range *siblings {
			if k != i && strings.EqualFold(f.Name, ch.To) {
				return fault.New(fault.BadStatement, "Duplicate column name '%s'", ch.To)
			}
		}
		(*siblings)[i].Name = ch.To
		a.newColumns = true
		return nil
	})
}

func (ch WidenColumn) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, _ bool) error {
		f := &(*siblings)[i]
		to, ok := iceberg.Type(nil), false
		if ch.Type != nil {
			to, ok = IcebergPrimitive(ch.Type)
		}
		if ok && f.Type.Equals(to) {
			return nil
		}
		if !ok || !holds(f.Type, ch.Type) {
			return fault.New(fault.BadStatement, "Column '%s' of type %s cannot become %s; int can become long, float double, and a decimal one of more digits before the point",
				strings.Join(ch.Path, "."), f.Type, nameOfType(to, ch.Type))
		}
		f.Type = to
		a.newColumns = true
		return nil
	})
}

func nameOfType(t iceberg.Type, from arrow.DataType) string {
	switch {
	case t != nil:
		return t.String()
	case from != nil:
		return from.Name()
	}
	return "nothing"
}

// holds reports whether a type holds every value of another. Source: Iceberg
// specification, "Schema Evolution".
func holds(from iceberg.Type, to arrow.DataType) bool {
	switch from := from.(type) {
	case iceberg.Int32Type:
		return to.ID() == arrow.INT64
	case iceberg.Float32Type:
		return to.ID() == arrow.FLOAT64
	case iceberg.DecimalType:
		d, ok := to.(*arrow.Decimal128Type)
		return ok && int(d.Scale) == from.Scale() && int(d.Precision) >= from.Precision()
	}
	return false
}

func (ch DropRequired) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, _ bool) error {
		a.newColumns = a.newColumns || (*siblings)[i].Required
		(*siblings)[i].Required = false
		return nil
	})
}

func (ch CommentColumn) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, member bool) error {
		if err := notMember(member, "commented"); err != nil {
			return err
		}
		a.newColumns = a.newColumns || (*siblings)[i].Doc != ch.Doc
		(*siblings)[i].Doc = ch.Doc
		return nil
	})
}

func (ch MoveColumn) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, member bool) error {
		if err := notMember(member, "moved"); err != nil {
			return err
		}
		a.newColumns = true
		return ch.Position.place(siblings, i)
	})
}

func (ch SetDefault) alter(a *alteration) error {
	return edit(&a.columns, ch.Path, func(siblings *[]iceberg.NestedField, i int, member bool) error {
		if err := notMember(member, "given a default"); err != nil {
			return err
		}
		if a.version < 3 && (ch.Value == nil || ch.Value.Value == nil) {
			return nil // such a table has no defaults, so there is nothing to take away
		}
		if a.version < 3 {
			return needsVersion3(strings.Join(ch.Path, "."))
		}
		f := &(*siblings)[i]
		t, ok := Primitive(f.Type)
		if !ok {
			return fault.New(fault.BadStatement, "Column '%s' has a type without defaults", strings.Join(ch.Path, "."))
		}
		v, err := storedDefault(f.Name, ch.Value, t)
		if err != nil {
			return err
		}
		f.WriteDefault = v
		a.newColumns = true
		return nil
	})
}
