package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// mostDepth bounds how deep types may be nested.
const mostDepth = 32

// reservedColumns are names of Iceberg's metadata columns, which a table of the
// user cannot have beside them. Source: Iceberg specification, "Reserved Field IDs".
var reservedColumns = []string{
	"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number",
	"_change_type", "_change_ordinal", "_commit_snapshot_id",
}

// schemaBuilder makes Iceberg fields with fresh ids.
type schemaBuilder struct {
	version int // of the table format
	last    int // the highest id that was ever given
}

// fields makes the fields of one struct. Ids are given level by level, as other
// engines do.
func (b *schemaBuilder) fields(in []plan.Field, depth int) ([]iceberg.NestedField, error) {
	if len(in) == 0 {
		return nil, fault.New(fault.BadStatement, "A table and a struct must have at least one column")
	}
	out := make([]iceberg.NestedField, len(in))
	for i, f := range in {
		if err := checkColumn(f.Name, depth == 0); err != nil {
			return nil, err
		}
		if indexOf(out[:i], f.Name) >= 0 {
			return nil, fault.New(fault.BadStatement, "Duplicate column name '%s'", f.Name)
		}
		b.last++
		out[i] = iceberg.NestedField{ID: b.last, Name: f.Name, Required: f.Required, Doc: f.Doc}
	}
	for i, f := range in {
		if err := b.complete(&out[i], f, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// complete gives a field its type and default.
func (b *schemaBuilder) complete(to *iceberg.NestedField, f plan.Field, depth int) (err error) {
	if to.Type, err = b.typeOf(f, depth); err != nil {
		return err
	}
	if f.Default == nil || f.Default.Value == nil {
		return nil
	}
	if b.version < 3 {
		return needsVersion3(f.Name)
	}
	to.WriteDefault, err = storedDefault(f.Name, f.Default, f.Type)
	return err
}

// needsVersion3 is the error that a column cannot have a default yet.
func needsVersion3(column string) error {
	return fault.New(fault.BadStatement, "A default of column '%s' needs a table of format version 3: make it so with TBLPROPERTIES ('format-version' = '3'), or leave the default out and give the value in each statement", column)
}

func checkColumn(name string, top bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	if top && slices.Contains(reservedColumns, strings.ToLower(name)) {
		return fault.New(fault.BadStatement, "The column name '%s' is reserved by the table format; choose another one", name)
	}
	return nil
}

func (b *schemaBuilder) typeOf(f plan.Field, depth int) (iceberg.Type, error) {
	if depth > mostDepth {
		return nil, fault.New(fault.BadStatement, "Types are nested more than %d deep", mostDepth)
	}
	if f.Type == nil {
		return nil, fault.New(fault.BadStatement, "Column '%s' has no type", f.Name)
	}
	children := f.Children
	if len(children) == 0 {
		children = arrowChildren(f.Type)
	}
	switch f.Type.ID() {
	case arrow.STRUCT:
		fields, err := b.fields(children, depth+1)
		if err != nil {
			return nil, err
		}
		return &iceberg.StructType{FieldList: fields}, nil
	case arrow.LIST, arrow.LARGE_LIST:
		if len(children) != 1 {
			return nil, fault.New(fault.BadStatement, "Column '%s' is a list without an element", f.Name)
		}
		b.last++
		out := &iceberg.ListType{ElementID: b.last, ElementRequired: children[0].Required}
		var err error
		out.Element, err = b.member(children[0], depth)
		return out, err
	case arrow.MAP:
		if len(children) != 2 {
			return nil, fault.New(fault.BadStatement, "Column '%s' is a map without a key and a value", f.Name)
		}
		b.last += 2
		out := &iceberg.MapType{KeyID: b.last - 1, ValueID: b.last, ValueRequired: children[1].Required}
		var err error
		if out.KeyType, err = b.member(children[0], depth); err != nil {
			return nil, err
		}
		out.ValueType, err = b.member(children[1], depth)
		return out, err
	}
	t, ok := IcebergPrimitive(f.Type)
	if !ok {
		return nil, fault.New(fault.BadStatement, "Column '%s' has a type that an Iceberg table cannot hold (%s); cast it", f.Name, f.Type)
	}
	if ts, ok := f.Type.(*arrow.TimestampType); ok && ts.Unit == arrow.Nanosecond && b.version < 3 {
		return nil, fault.New(fault.BadStatement, "Column '%s' has nanoseconds, which need a table of format version 3", f.Name)
	}
	return t, nil
}

// member is the type of an element, a key or a value.
func (b *schemaBuilder) member(f plan.Field, depth int) (iceberg.Type, error) {
	if f.Default != nil && f.Default.Value != nil {
		return nil, fault.New(fault.BadStatement, "What is inside a list or a map has no default")
	}
	return b.typeOf(f, depth+1)
}

// arrowChildren are the fields inside an Arrow type.
func arrowChildren(t arrow.DataType) []plan.Field {
	from := func(f arrow.Field, name string) plan.Field {
		return plan.Field{Name: name, Type: f.Type, Required: !f.Nullable}
	}
	switch t := t.(type) {
	case *arrow.StructType:
		var out []plan.Field
		for _, f := range t.Fields() {
			out = append(out, from(f, f.Name))
		}
		return out
	case *arrow.ListType:
		return []plan.Field{from(t.ElemField(), "element")}
	case *arrow.LargeListType:
		return []plan.Field{from(t.ElemField(), "element")}
	case *arrow.MapType:
		return []plan.Field{from(t.KeyField(), "key"), from(t.ItemField(), "value")}
	}
	return nil
}

// IcebergPrimitive is the Iceberg type that holds the values of an Arrow type; false
// for one that has none. It is the inverse of Primitive, and takes narrower
// integers, JSON (as text) and timestamps of coarser units as well: who writes them
// casts.
func IcebergPrimitive(t arrow.DataType) (iceberg.Type, bool) {
	switch {
	case plan.IsUUID(t):
		return iceberg.PrimitiveTypes.UUID, true
	case plan.IsJSON(t):
		return iceberg.PrimitiveTypes.String, true
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return iceberg.PrimitiveTypes.Bool, true
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Uint8Type, *arrow.Uint16Type:
		return iceberg.PrimitiveTypes.Int32, true
	case *arrow.Int64Type, *arrow.Uint32Type:
		return iceberg.PrimitiveTypes.Int64, true
	case *arrow.Uint64Type:
		return iceberg.DecimalTypeOf(20, 0), true
	case *arrow.Float32Type:
		return iceberg.PrimitiveTypes.Float32, true
	case *arrow.Float64Type:
		return iceberg.PrimitiveTypes.Float64, true
	case *arrow.Decimal128Type:
		if t.Precision < 1 || t.Precision > 38 || t.Scale < 0 || t.Scale > t.Precision {
			return nil, false
		}
		return iceberg.DecimalTypeOf(int(t.Precision), int(t.Scale)), true
	case *arrow.Date32Type:
		return iceberg.PrimitiveTypes.Date, true
	case *arrow.Time64Type:
		return iceberg.PrimitiveTypes.Time, t.Unit == arrow.Microsecond
	case *arrow.TimestampType:
		switch {
		case t.Unit == arrow.Nanosecond && t.TimeZone == "":
			return iceberg.PrimitiveTypes.TimestampNs, true
		case t.Unit == arrow.Nanosecond:
			return iceberg.PrimitiveTypes.TimestampTzNs, true
		case t.TimeZone == "":
			return iceberg.PrimitiveTypes.Timestamp, true
		}
		return iceberg.PrimitiveTypes.TimestampTz, true
	case *arrow.StringType, *arrow.LargeStringType:
		return iceberg.PrimitiveTypes.String, true
	case *arrow.FixedSizeBinaryType:
		return iceberg.FixedTypeOf(t.ByteWidth), t.ByteWidth > 0
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		return iceberg.PrimitiveTypes.Binary, true
	}
	return nil, false
}

// indexOf finds a field by its name: exactly, else alone without case; -1 for none.
func indexOf(fields []iceberg.NestedField, name string) int {
	found := -1
	for i, f := range fields {
		if f.Name == name {
			return i
		}
		if strings.EqualFold(f.Name, name) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// sourceOf finds the column of a partition or sort field, which lies in structs only.
func sourceOf(fields []iceberg.NestedField, column []string) (f iceberg.NestedField, name []string, err error) {
	for i, part := range column {
		k := indexOf(fields, part)
		if k < 0 {
			break
		}
		f = fields[k]
		name = append(name, f.Name)
		if i == len(column)-1 {
			if _, ok := f.Type.(iceberg.PrimitiveType); !ok {
				return f, nil, fault.New(fault.BadStatement, "A table cannot be partitioned or sorted by column '%s', which has no simple value", strings.Join(column, "."))
			}
			return f, name, nil
		}
		s, ok := f.Type.(*iceberg.StructType)
		if !ok {
			break
		}
		fields = s.FieldList
	}
	return f, nil, noColumn(column)
}

func noColumn(column []string) error {
	return fault.New(fault.NoColumn, "Unknown column '%s' in the table", strings.Join(column, "."))
}

// transformOf reads a transform; suffix is what the usual name of a partition field
// by it ends with.
func transformOf(name string, arg int) (t iceberg.Transform, suffix string, err error) {
	name = strings.ToLower(name)
	wantArg := name == "bucket" || name == "truncate"
	if wantArg && (arg < 1 || arg > 1<<30) {
		return nil, "", fault.New(fault.BadStatement, "The transform %s needs a positive number", name)
	}
	if !wantArg && arg != 0 {
		return nil, "", fault.New(fault.BadStatement, "The transform %s takes no number", name)
	}
	switch strings.TrimSuffix(name, "s") {
	case "", "identity":
		return iceberg.IdentityTransform{}, "", nil
	case "bucket":
		return iceberg.BucketTransform{NumBuckets: arg}, "_bucket", nil
	case "truncate":
		return iceberg.TruncateTransform{Width: arg}, "_trunc", nil
	case "year":
		return iceberg.YearTransform{}, "_year", nil
	case "month":
		return iceberg.MonthTransform{}, "_month", nil
	case "day":
		return iceberg.DayTransform{}, "_day", nil
	case "hour":
		return iceberg.HourTransform{}, "_hour", nil
	}
	return nil, "", fault.New(fault.BadStatement, "There is no transform %s; there are identity, bucket, truncate, year, month, day and hour", name)
}

// nameOf is the inverse of transformOf.
func nameOf(t iceberg.Transform) (name string, arg int) {
	name, rest, found := strings.Cut(t.String(), "[")
	if found {
		arg, _ = strconv.Atoi(strings.TrimSuffix(rest, "]"))
	}
	return name, arg
}

// partitionField resolves one field of a partition spec.
func partitionField(fields []iceberg.NestedField, p PartitionField) (iceberg.PartitionField, error) {
	source, name, err := sourceOf(fields, p.Path)
	if err != nil {
		return iceberg.PartitionField{}, err
	}
	t, suffix, err := transformOf(p.Transform, p.Arg)
	if err != nil {
		return iceberg.PartitionField{}, err
	}
	if !t.CanTransform(source.Type) {
		return iceberg.PartitionField{}, fault.New(fault.BadStatement, "Column '%s' of type %s cannot be partitioned by %s", strings.Join(name, "."), source.Type, t)
	}
	out := iceberg.PartitionField{SourceIDs: []int{source.ID}, Transform: t, Name: p.Name}
	if out.Name == "" {
		out.Name = strings.Join(name, ".") + suffix
	}
	return out, checkName(out.Name)
}

// specOf makes a partition spec; a field with an id keeps it.
func specOf(schema *iceberg.Schema, fields []iceberg.PartitionField) (iceberg.PartitionSpec, error) {
	opts := make([]iceberg.PartitionOption, len(fields))
	for i, f := range fields {
		for _, other := range fields[:i] {
			switch {
			case other.Name == f.Name:
				return iceberg.PartitionSpec{}, fault.New(fault.BadStatement, "Two partition fields are named '%s'", f.Name)
			case other.SourceID() == f.SourceID() && other.Transform.String() == f.Transform.String():
				return iceberg.PartitionSpec{}, fault.New(fault.BadStatement, "The table is partitioned twice by %s of one column", f.Transform)
			}
		}
		if k := slices.IndexFunc(schema.Fields(), func(c iceberg.NestedField) bool { return c.Name == f.Name }); k >= 0 && schema.Field(k).ID != f.SourceID() {
			return iceberg.PartitionSpec{}, fault.New(fault.BadStatement, "The name '%s' is that of a partition field and that of a column; choose another one", f.Name)
		}
		var id *int
		if f.FieldID != 0 {
			id = &f.FieldID
		}
		opts[i] = iceberg.AddPartitionFieldBySourceID(f.SourceID(), f.Name, f.Transform, schema, id)
	}
	spec, err := iceberg.NewPartitionSpecOpts(opts...)
	if err != nil {
		return spec, fault.Wrap(fault.BadStatement, err, "The table cannot be partitioned so: %s", err)
	}
	return spec, nil
}

// sortOf makes a sort order.
func sortOf(fields []iceberg.NestedField, by []SortField) (table.SortOrder, error) {
	if len(by) == 0 {
		return table.UnsortedSortOrder, nil
	}
	var out []table.SortField
	for _, s := range by {
		source, name, err := sourceOf(fields, s.Path)
		if err != nil {
			return table.SortOrder{}, err
		}
		t, _, err := transformOf(s.Transform, s.Arg)
		if err != nil {
			return table.SortOrder{}, err
		}
		if !t.CanTransform(source.Type) {
			return table.SortOrder{}, fault.New(fault.BadStatement, "Column '%s' of type %s cannot be sorted by %s", strings.Join(name, "."), source.Type, t)
		}
		f := table.SortField{SourceIDs: []int{source.ID}, Transform: t, Direction: table.SortASC, NullOrder: table.NullsLast}
		if s.Desc {
			f.Direction = table.SortDESC
		}
		if s.NullsFirst {
			f.NullOrder = table.NullsFirst
		}
		out = append(out, f)
	}
	order, err := table.NewSortOrder(1, out)
	if err != nil {
		return order, fault.Wrap(fault.BadStatement, err, "The table cannot be sorted so: %s", err)
	}
	return order, nil
}

// DefinitionOf reads the definition of a table as it is loaded: its columns, layout,
// properties and tags, but no rows and no place. It is what CREATE TABLE LIKE
// creates and SHOW CREATE TABLE shows.
func DefinitionOf(t *plan.Table) (TableDefinition, error) {
	h, ok := t.Handle.(*Handle)
	if !ok || t.Metadata != "" {
		return TableDefinition{}, fmt.Errorf("the definition of %s was asked, which is no table of a catalog", t.Name)
	}
	meta := h.Table.Metadata()
	d := TableDefinition{Fields: slices.Clone(t.Fields), Properties: map[string]string{}, FormatVersion: max(2, meta.Version())}
	for k, v := range t.Properties {
		switch {
		case k == commentProperty:
			d.Comment = v
		case Reserved(k), k == table.DefaultNameMappingKey, slices.Contains(placeProperties, k):
		default:
			d.Properties[k] = v
		}
	}
	paths := map[int][]string{}
	var walk func(fields []plan.Field, above []string)
	walk = func(fields []plan.Field, above []string) {
		for _, f := range fields {
			paths[f.ID] = append(slices.Clone(above), f.Name)
			walk(f.Children, paths[f.ID])
		}
	}
	walk(t.Fields, nil)
	for _, f := range meta.CurrentSchema().IdentifierFieldIDs {
		if path := paths[f]; path != nil {
			d.Identifiers = append(d.Identifiers, path)
		}
	}
	spec := meta.PartitionSpec()
	for _, f := range spec.Fields() {
		name, arg := nameOf(f.Transform)
		if path := paths[f.SourceID()]; path != nil && name != "void" {
			d.Partitions = append(d.Partitions, PartitionField{Path: path, Transform: name, Arg: arg, Name: f.Name})
		}
	}
	for _, f := range meta.SortOrder().Fields() {
		name, arg := nameOf(f.Transform)
		if path := paths[f.SourceID()]; path != nil {
			d.Sort = append(d.Sort, SortField{Path: path, Transform: name, Arg: arg, Desc: f.Direction == table.SortDESC, NullsFirst: f.NullOrder == table.NullsFirst})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.Tags)) {
		if path, ok := paths[id]; ok || id == 0 {
			d.Tags = append(d.Tags, TaggedPath{Path: path, Tags: t.Tags[id]})
		}
	}
	return d, nil
}
