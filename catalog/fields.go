package catalog

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"sqe/plan"
)

// Fields maps the columns of an Iceberg schema to fields of the plan, ids and
// documentation included. A top-level column whose type SQE cannot show
// (geometry, geography, variant, unknown, or a nested type that holds one) has
// type plan.Null and no children: such a column can be listed and never read.
func Fields(s *iceberg.Schema) []plan.Field {
	out := make([]plan.Field, 0, s.NumFields())
	for _, f := range s.Fields() {
		out = append(out, topLevel(f))
	}
	return out
}

// beneath are the ids of the fields inside columns that cannot be shown, and the column
// of each; nil when there are none.
func beneath(s *iceberg.Schema, shown []plan.Field) (out map[int]int) {
	for i, f := range s.Fields() {
		n, ok := f.Type.(iceberg.NestedType)
		if !ok || len(shown[i].Children) > 0 {
			continue
		}
		walkFields(n.Fields(), func(inner iceberg.NestedField) {
			if out == nil {
				out = map[int]int{}
			}
			out[inner.ID] = f.ID
		})
	}
	return out
}

func topLevel(f iceberg.NestedField) plan.Field {
	if p, ok := field(f); ok {
		return p
	}
	return plan.Field{ID: f.ID, Name: f.Name, Type: plan.Null, Required: f.Required, Doc: f.Doc}
}

func field(f iceberg.NestedField) (plan.Field, bool) {
	p := plan.Field{ID: f.ID, Name: f.Name, Required: f.Required, Doc: f.Doc}
	nested, ok := f.Type.(iceberg.NestedType)
	if !ok {
		if p.Type, ok = Primitive(f.Type); ok {
			p.Initial, p.Default = loadedDefault(f.InitialDefault, p.Type), loadedDefault(f.WriteDefault, p.Type)
		}
		return p, ok
	}
	for _, c := range nested.Fields() {
		child, ok := field(c)
		if !ok {
			return plan.Field{}, false
		}
		p.Children = append(p.Children, child)
	}
	p.Type, ok = nestedType(f.Type, p.Children)
	return p, ok
}

func nestedType(t iceberg.Type, children []plan.Field) (arrow.DataType, bool) {
	fields := make([]arrow.Field, len(children))
	for i, c := range children {
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: !c.Required}
	}
	switch t.(type) {
	case *iceberg.StructType:
		return arrow.StructOf(fields...), true
	case *iceberg.ListType:
		return arrow.ListOfField(fields[0]), true
	case *iceberg.MapType:
		return arrow.MapOfFields(fields[0], fields[1]), true
	}
	return nil, false
}

// Primitive maps a primitive Iceberg type; false for one that SQE cannot show.
func Primitive(t iceberg.Type) (arrow.DataType, bool) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return plan.Bool, true
	case iceberg.Int32Type:
		return plan.Int32, true
	case iceberg.Int64Type:
		return plan.Int64, true
	case iceberg.Float32Type:
		return plan.Float32, true
	case iceberg.Float64Type:
		return plan.Float64, true
	case iceberg.DecimalType:
		return plan.Decimal(int32(t.Precision()), int32(t.Scale())), true
	case iceberg.DateType:
		return plan.Date, true
	case iceberg.TimeType:
		return plan.Time, true
	case iceberg.TimestampType:
		return plan.Timestamp, true
	case iceberg.TimestampTzType:
		return plan.TimestampTZ, true
	case iceberg.TimestampNsType:
		return plan.TimestampNS, true
	case iceberg.TimestampTzNsType:
		return plan.TimestampTZNS, true
	case iceberg.StringType:
		return plan.String, true
	case iceberg.UUIDType:
		return plan.UUID, true
	case iceberg.FixedType:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Len()}, true
	case iceberg.BinaryType:
		return plan.Binary, true
	}
	return nil, false
}

// otherNames collects, for every field id of the table at any depth, the names
// that the field has in other schemas than shown, oldest schema first. Older and
// newer names both count: a policy that names today's column holds for the same
// field under its old name in time travel.
func otherNames(shown *iceberg.Schema, all []*iceberg.Schema) map[int][]string {
	now := map[int]string{}
	walkFields(shown.Fields(), func(f iceberg.NestedField) { now[f.ID] = f.Name })
	out := map[int][]string{}
	seen := map[int]map[string]bool{}
	for _, s := range all {
		walkFields(s.Fields(), func(f iceberg.NestedField) {
			if now[f.ID] == f.Name || seen[f.ID][f.Name] {
				return
			}
			if seen[f.ID] == nil {
				seen[f.ID] = map[string]bool{}
			}
			seen[f.ID][f.Name] = true
			out[f.ID] = append(out[f.ID], f.Name)
		})
	}
	return out
}

func walkFields(fields []iceberg.NestedField, visit func(iceberg.NestedField)) {
	for _, f := range fields {
		visit(f)
		if n, ok := f.Type.(iceberg.NestedType); ok {
			walkFields(n.Fields(), visit)
		}
	}
}
