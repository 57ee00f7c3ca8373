package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"sqe/catalog"
	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// showCreate is SHOW CREATE TABLE and SHOW CREATE VIEW: a statement that makes
// another one like it. nil: the binder answers. Types have their MySQL names where
// there are any, because clients read them.
func (st *statement) showCreate(ctx context.Context, ref parse.TableRef, view bool) (*Result, error) {
	database := ref.Database
	if database == "" {
		database = st.session.Database()
	}
	if _, meta := metadataSuffix(ref.Name); database == "" || meta != "" {
		return nil, nil
	}
	if strings.EqualFold(database, "information_schema") {
		return nil, nil
	}
	r, err := relations{st}.Relation(ctx, database, ref.Name, plan.AsOf{})
	switch {
	case err != nil:
		return nil, err
	case r.View != nil:
		out := table("View", "Create View", "character_set_client", "collation_connection")
		out.row(ref.Name, "CREATE VIEW "+quoteName(ref.Name)+" AS "+r.View.SQL, "utf8mb4", "utf8mb4_0900_bin")
		return out.result(), nil
	case view:
		return nil, fault.New(fault.BadStatement, "'%s.%s' is not VIEW", database, ref.Name)
	}
	d, err := catalog.DefinitionOf(r.Table)
	if err != nil {
		return nil, err
	}
	if err := st.hideDefaults(ctx, r.Table, &d); err != nil {
		return nil, err
	}
	out := table("Table", "Create Table")
	out.row(ref.Name, createText(ref.Name, d))
	return out.result(), nil
}

// hideDefaults takes away the defaults of columns that a policy masks or withholds:
// they are values of rows.
func (st *statement) hideDefaults(ctx context.Context, t *plan.Table, d *catalog.TableDefinition) error {
	b, err := st.bound(ctx, t)
	if err != nil {
		return err
	}
	ruled := map[int]bool{}
	for _, c := range b.Record().Columns {
		ruled[c.Field] = true
	}
	for i, f := range d.Fields {
		d.Fields[i] = withoutDefaults(f, ruled, false)
	}
	return nil
}

// withoutDefaults is the field without the defaults of those that are ruled, and of
// what is inside them.
func withoutDefaults(f plan.Field, ruled map[int]bool, above bool) plan.Field {
	above = above || ruled[f.ID]
	if above {
		f.Initial, f.Default = nil, nil
	}
	f.Children = slices.Clone(f.Children)
	for i, c := range f.Children {
		f.Children[i] = withoutDefaults(c, ruled, above)
	}
	return f
}

// createText is the statement, in the grammar of package parse.
func createText(name string, d catalog.TableDefinition) string {
	var lines []string
	for _, f := range d.Fields {
		lines = append(lines, "  "+fieldText(f, false))
	}
	if keys := plainColumns(d.Identifiers); keys != "" {
		lines = append(lines, "  PRIMARY KEY ("+keys+")")
	}
	text := "CREATE TABLE " + quoteName(name) + " (\n" + strings.Join(lines, ",\n") + "\n)"
	if d.Comment != "" {
		text += " COMMENT=" + quoteText(d.Comment)
	}
	if len(d.Partitions) > 0 {
		parts := make([]string, len(d.Partitions))
		for i, p := range d.Partitions {
			parts[i] = transformText(p.Transform, p.Arg, p.Path)
			if p.Name != "" && p.Transform != "identity" {
				parts[i] += " AS " + quoteName(p.Name)
			}
		}
		text += " PARTITIONED BY (" + strings.Join(parts, ", ") + ")"
	}
	if len(d.Sort) > 0 {
		parts := make([]string, len(d.Sort))
		for i, s := range d.Sort {
			parts[i] = transformText(s.Transform, s.Arg, s.Path)
			if s.Desc {
				parts[i] += " DESC"
			}
			if s.NullsFirst == s.Desc {
				parts[i] += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[s.NullsFirst]
			}
		}
		text += " SORTED BY (" + strings.Join(parts, ", ") + ")"
	}
	props := maps.Clone(d.Properties)
	if d.FormatVersion > 2 {
		props["format-version"] = strconv.Itoa(d.FormatVersion)
	}
	if len(props) > 0 {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(props)) {
			parts = append(parts, quoteText(k)+" = "+quoteText(props[k]))
		}
		text += " TBLPROPERTIES (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// plainColumns are the columns of a PRIMARY KEY; "" when one is inside a struct,
// which only ALTER TABLE can say.
func plainColumns(paths [][]string) string {
	var out []string
	for _, p := range paths {
		if len(p) != 1 {
			return ""
		}
		out = append(out, quoteName(p[0]))
	}
	return strings.Join(out, ", ")
}

func transformText(name string, arg int, path []string) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = quoteName(p)
	}
	column := strings.Join(quoted, ".")
	switch strings.ToLower(name) {
	case "", "identity":
		return column
	case "bucket", "truncate":
		return fmt.Sprintf("%s(%d, %s)", strings.ToUpper(name), arg, column)
	}
	return strings.ToUpper(name) + "(" + column + ")"
}

// fieldText is a column, or a field inside a struct.
func fieldText(f plan.Field, inside bool) string {
	text := quoteName(f.Name) + " " + typeText(f)
	if inside {
		text = quoteName(f.Name) + ": " + typeText(f)
	}
	if f.Required {
		text += " NOT NULL"
	}
	if f.Default != nil && !inside {
		if v, ok := literalText(f.Default); ok {
			text += " DEFAULT " + v
		}
	}
	if f.Doc != "" {
		text += " COMMENT " + quoteText(f.Doc)
	}
	return text
}

// typeText is the name of a type, in the grammar of package parse.
func typeText(f plan.Field) string {
	member := func(c plan.Field) string {
		if c.Required {
			return typeText(c) + " NOT NULL"
		}
		return typeText(c)
	}
	switch {
	case plan.IsUUID(f.Type):
		return "uuid"
	case plan.IsString(f.Type):
		return "longtext"
	}
	switch t := f.Type.(type) {
	case *arrow.BooleanType:
		return "tinyint(1)"
	case *arrow.Int32Type:
		return "int"
	case *arrow.Int64Type:
		return "bigint"
	case *arrow.Float32Type:
		return "float"
	case *arrow.Float64Type:
		return "double"
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case *arrow.Date32Type:
		return "date"
	case *arrow.Time64Type:
		return "time(6)"
	case *arrow.TimestampType:
		switch nano := t.Unit == arrow.Nanosecond; {
		case nano && t.TimeZone != "":
			return "timestamptz_ns"
		case nano:
			return "timestamp_ns"
		case t.TimeZone != "":
			return "timestamp(6) with time zone"
		}
		return "datetime(6)"
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("binary(%d)", t.ByteWidth)
	case *arrow.StructType:
		fields := make([]string, len(f.Children))
		for i, c := range f.Children {
			fields[i] = fieldText(c, true)
		}
		return "struct<" + strings.Join(fields, ", ") + ">"
	case *arrow.ListType, *arrow.LargeListType:
		if len(f.Children) == 1 {
			return "array<" + member(f.Children[0]) + ">"
		}
	case *arrow.MapType:
		if len(f.Children) == 2 {
			return "map<" + typeText(f.Children[0]) + ", " + member(f.Children[1]) + ">"
		}
	}
	return "longblob"
}

// literalText is a default; false for one that has no text.
func literalText(l *plan.Literal) (string, bool) {
	if l.Value == nil || l.Typ == nil {
		return "", false
	}
	switch v := l.Value.(type) {
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case string:
		return quoteText(v), true
	case decimal128.Num:
		if t, ok := l.Typ.(*arrow.Decimal128Type); ok {
			return v.ToString(t.Scale), true
		}
	case []byte:
		if plan.IsUUID(l.Typ) && len(v) == 16 {
			h := hex.EncodeToString(v)
			return quoteText(strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")), true
		}
		return quoteText(string(v)), true
	case arrow.Date32:
		return quoteText(v.ToTime().Format("2006-01-02")), true
	case arrow.Time64:
		return quoteText(v.ToTime(arrow.Microsecond).Format("15:04:05.999999")), true
	case arrow.Timestamp:
		if t, ok := l.Typ.(*arrow.TimestampType); ok {
			return quoteText(v.ToTime(t.Unit).UTC().Format("2006-01-02 15:04:05.999999999")), true
		}
	}
	return "", false
}

// quoteText quotes a string of the grammar.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}
