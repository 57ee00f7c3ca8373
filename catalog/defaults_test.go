package catalog

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

// TestDefaults: a default is read back as it was given, here and in iceberg-go, and
// later commits do not change it.
func TestDefaults(t *testing.T) {
	c, dir := lake(t)
	num, err := decimal128.FromString("-12.30", 9, 2)
	must(t, err)
	values := map[string]plan.Literal{
		"b": {Value: true, Typ: plan.Bool}, "i": {Value: int64(-7), Typ: plan.Int32}, "l": {Value: int64(1<<53 - 1), Typ: plan.Int64}, "f": {Value: 1.5, Typ: plan.Float32},
		"d": {Value: 0.1, Typ: plan.Float64}, "dec": {Value: num, Typ: plan.Decimal(9, 2)}, "day": {Value: arrow.Date32(-1), Typ: plan.Date}, "clock": {Value: arrow.Time64(86399999999), Typ: plan.Time},
		"ts": {Value: arrow.Timestamp(1_700_000_000_123_456), Typ: plan.Timestamp}, "tz": {Value: arrow.Timestamp(-1), Typ: plan.TimestampTZ}, "s": {Value: "Zürich \"🏦\"", Typ: plan.String},
		"u": {Value: []byte("0123456789abcdef"), Typ: plan.UUID}, "fix": {Value: []byte{0, 1, 255}, Typ: &arrow.FixedSizeBinaryType{ByteWidth: 3}}, "bin": {Value: []byte{0xde}, Typ: plan.Binary},
		"ns": {Value: arrow.Timestamp(1_700_000_000_123_456_789), Typ: plan.TimestampNS}, "nstz": {Value: arrow.Timestamp(-1), Typ: plan.TimestampTZNS},
	}
	d := TableDefinition{FormatVersion: 3, Fields: []plan.Field{fld("id", plan.Int64)}}
	var adds []Change
	for _, k := range slices.Sorted(maps.Keys(values)) {
		v := values[k]
		d.Fields = append(d.Fields, plan.Field{Name: k, Type: v.Typ, Default: &v})
		adds = append(adds, AddColumn{Path: []string{"added_" + k}, Field: req(plan.Field{Type: v.Typ, Default: &v})})
	}
	made(t, c, "t", d)
	appended(t, c, "t", `[{"id": 1}]`)
	_, err = c.AlterTable(ctx, name("ns", "t"), adds)
	must(t, err)
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{SetProperties{map[string]string{"another": "commit"}}})
	must(t, err)
	again := open(t, dir)
	tb, err := again.Table(ctx, name("ns", "t"), plan.AsOf{}, "")
	must(t, err)
	for k, v := range values {
		f, _ := tb.FieldNamed(k)
		if f.Default == nil || !reflect.DeepEqual(*f.Default, v) || f.Initial != nil {
			t.Errorf("%s: %+v", k, f.Default)
		}
		f, _ = tb.FieldNamed("added_" + k)
		if f.Default == nil || !reflect.DeepEqual(*f.Default, v) || f.Initial == nil || !reflect.DeepEqual(*f.Initial, v) || !f.Required {
			t.Errorf("added %s: %+v %+v", k, f.Default, f.Initial)
		}
	}
	v := values["i"]
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{SetDefault{[]string{"i"}, &plan.Literal{Value: int64(8), Typ: plan.Int32}}, SetDefault{[]string{"l"}, nil}})
	must(t, err)
	tb = loaded(t, c, "t")
	if f, _ := tb.FieldNamed("i"); f.Default.Value != int64(8) {
		t.Errorf("%+v", f.Default)
	}
	if f, _ := tb.FieldNamed("l"); f.Default != nil {
		t.Errorf("%+v", f.Default)
	}
	for what, l := range map[string]plan.Literal{
		"large": {Value: int64(1 << 53), Typ: plan.Int64}, "a text": {Value: "x", Typ: plan.String},
	} {
		_, err := c.AlterTable(ctx, name("ns", "t"), []Change{SetDefault{[]string{"l"}, &l}})
		wants(t, what, err, fault.BadStatement, "default")
	}
	_, err = c.AlterTable(ctx, name("ns", "t"), []Change{AddColumn{Path: []string{"x"}, Field: req(fld("", plan.Int32))}})
	wants(t, "required without a default", err, fault.BadStatement, "required")
	made(t, c, "v2", humans)
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{AddColumn{Path: []string{"x"}, Field: plan.Field{Type: v.Typ, Default: &v}}})
	wants(t, "version 2", err, fault.BadStatement, "TBLPROPERTIES ('format-version' = '3')")
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{SetDefault{[]string{"id"}, &v}})
	wants(t, "version 2, a column that is there", err, fault.BadStatement, "TBLPROPERTIES ('format-version' = '3')")
	// Django and Alembic take a default away that is not there.
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{SetDefault{[]string{"id"}, nil}})
	must(t, err)
	// Both in one statement.
	_, err = c.AlterTable(ctx, name("ns", "v2"), []Change{SetProperties{map[string]string{"format-version": "3"}}, AddColumn{Path: []string{"x"}, Field: plan.Field{Type: v.Typ, Default: &v}}})
	must(t, err)
	ice, err := c.Iceberg().LoadTable(ctx, table.Identifier{"ns", "v2"})
	if err != nil || ice.Metadata().Version() != 3 {
		t.Error(err)
	}
}
