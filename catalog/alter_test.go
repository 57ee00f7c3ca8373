package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

func dotted(p string) []string { return strings.Split(p, ".") }

// shape is the columns of a table on one line.
func shape(fields []plan.Field) string {
	var out []string
	for _, f := range fields {
		s := fmt.Sprintf("%d:%s", f.ID, f.Name)
		if f.Required {
			s += "!"
		}
		if f.Doc != "" {
			s += "'" + f.Doc + "'"
		}
		if len(f.Children) > 0 {
			s += "(" + shape(f.Children) + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

var nested = TableDefinition{Fields: []plan.Field{
	req(fld("id", plan.Int32)), fld("f", plan.Float32), fld("d", plan.Decimal(9, 2)),
	{Name: "s", Type: arrow.StructOf(), Children: []plan.Field{req(fld("x", plan.Int32)), fld("y", plan.String)}},
	{Name: "l", Type: arrow.ListOf(plan.Null), Children: []plan.Field{{Name: "element", Type: arrow.StructOf(), Children: []plan.Field{fld("z", plan.Int32)}}}},
	{Name: "m", Type: arrow.MapOf(plan.String, plan.Int32), Children: []plan.Field{req(fld("key", plan.String)), req(fld("value", plan.Int32))}},
}}

func TestAlterColumns(t *testing.T) {
	c, _ := lake(t)
	const start = "1:id! 2:f 3:d 4:s(7:x! 8:y) 5:l(9:element(10:z)) 6:m(11:key! 12:value!)"
	if got := shape(made(t, c, "start", nested).Fields); got != start {
		t.Fatal(got)
	}
	rename := func(p, to string) Change { return RenameColumn{dotted(p), to} }
	drop := func(p string) Change { return DropColumn{Path: dotted(p)} }
	add := func(p string, at Position) Change {
		return AddColumn{Path: dotted(p), Field: fld("", plan.String), Position: at}
	}
	i := 0
	for _, k := range []struct {
		changes []Change
		want    string // or the text of a refusal
	}{
		{[]Change{add("n", Position{})}, start + " 13:n"},
		{[]Change{add("n", Position{First: true}), add("o", Position{After: "ID"})}, "13:n 1:id! 14:o" + start[len("1:id!"):]},
		{[]Change{add("n", Position{Before: "d"})}, "1:id! 2:f 13:n 3:d" + start[len("1:id! 2:f 3:d"):]},
		{[]Change{add("s.n", Position{After: "x"})}, strings.Replace(start, "7:x!", "7:x! 13:n", 1)},
		{[]Change{add("l.element.n", Position{})}, strings.Replace(start, "10:z", "10:z 13:n", 1)},
		{[]Change{add("l.n", Position{First: true})}, strings.Replace(start, "10:z", "13:n 10:z", 1)},
		{[]Change{AddColumn{Path: dotted("n"), Field: plan.Field{Type: arrow.StructOf(), Doc: "new", Children: []plan.Field{req(fld("p", plan.Date)), fld("q", arrow.ListOf(plan.UUID))}}}}, start + " 13:n'new'(14:p! 15:q(16:element))"},
		{[]Change{AddColumn{Path: dotted("F"), Field: fld("", plan.Int32), IfNotExists: true}}, start},
		{[]Change{drop("f"), add("f", Position{})}, strings.Replace(start, "2:f ", "", 1) + " 13:f"},
		{[]Change{drop("s.x"), drop("l")}, "1:id! 2:f 3:d 4:s(8:y) 6:m(11:key! 12:value!)"},
		{[]Change{DropColumn{Path: dotted("none"), IfExists: true}}, start},
		{[]Change{rename("f", "d2"), rename("d", "f"), rename("d2", "d")}, strings.Replace(strings.Replace(start, "2:f", "2:d", 1), "3:d", "3:f", 1)},
		{[]Change{rename("S.X", "xx"), rename("f", "F")}, strings.Replace(strings.Replace(start, "7:x", "7:xx", 1), "2:f", "2:F", 1)},
		{[]Change{DropRequired{dotted("id")}, DropRequired{dotted("s.x")}, DropRequired{dotted("m.value")}}, strings.NewReplacer("1:id!", "1:id", "7:x!", "7:x", "12:value!", "12:value").Replace(start)},
		{[]Change{CommentColumn{dotted("s.y"), "why"}, CommentColumn{dotted("id"), "key"}}, strings.NewReplacer("8:y", "8:y'why'", "1:id!", "1:id!'key'").Replace(start)},
		{[]Change{MoveColumn{dotted("d"), Position{First: true}}, MoveColumn{dotted("s.y"), Position{Before: "x"}}}, "3:d 1:id! 2:f 4:s(8:y 7:x!) 5:l(9:element(10:z)) 6:m(11:key! 12:value!)"},

		{[]Change{add("F", Position{})}, "Duplicate"},
		{[]Change{add("none.n", Position{})}, "Unknown column 'none'"},
		{[]Change{add("id.n", Position{})}, "no struct"},
		{[]Change{add("n", Position{After: "none"})}, "Unknown column 'none'"},
		{[]Change{add("n", Position{First: true, After: "id"})}, "two places"},
		{[]Change{add("_pos", Position{})}, "reserved"},
		{[]Change{AddColumn{Path: dotted("n"), Field: req(fld("", plan.Int32))}}, "required"},
		{[]Change{AddColumn{}}, "name"},
		{[]Change{AddColumn{Path: dotted("n"), Field: fld("", plan.TimestampNS)}}, "version 3"},
		{[]Change{drop("none")}, "Unknown column 'none'"},
		{[]Change{drop("s.none")}, "Unknown column 's.none'"},
		{[]Change{drop("m.value")}, "list or a map"},
		{[]Change{drop("l.element")}, "list or a map"},
		{[]Change{drop("l.z")}, "only one"},
		{[]Change{drop("m.key")}, "keys"},
		{[]Change{DropColumn{}}, "Unknown column"},
		{[]Change{rename("f", "ID")}, "Duplicate"},
		{[]Change{rename("l.element", "e")}, "list or a map"},
		{[]Change{rename("f", "")}, "empty"},
		{[]Change{rename("f", "_file")}, "reserved"},
		{[]Change{rename("f", "g"), drop("f")}, "Unknown column 'f'"}, // one after the other, and none when one fails
		{[]Change{MoveColumn{dotted("f"), Position{After: "f"}}}, "Unknown column 'f'"},
	} {
		i++
		tableName := fmt.Sprintf("t%d", i)
		before := made(t, c, tableName, nested)
		got, err := c.AlterTable(ctx, name("ns", tableName), k.changes)
		if err != nil {
			if !strings.Contains(err.Error(), k.want) || (!fault.Is(err, fault.BadStatement) && !fault.Is(err, fault.NoColumn)) {
				t.Errorf("%d: %v, want %s", i, err, k.want)
			}
			if loaded(t, c, tableName).Version != before.Version {
				t.Errorf("%d: a refusal changed the table", i)
			}
			continue
		}
		again := loaded(t, c, tableName)
		if shape(got.Fields) != k.want || shape(again.Fields) != k.want {
			t.Errorf("%d:\n got %s\nread %s\nwant %s", i, shape(got.Fields), shape(again.Fields), k.want)
		}
		if n := versionOf(again.Version); n > 1 {
			t.Errorf("%d: %d commits", i, n)
		}
		if _, err := c.Iceberg().LoadTable(ctx, table.Identifier{"ns", tableName}); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestWiden(t *testing.T) {
	c, _ := lake(t)
	d := nested
	d.Fields = slices.Clone(nested.Fields)
	d.Fields[5].Children = []plan.Field{req(fld("key", plan.String)), fld("value", plan.Int32)} // what Arrow's JSON can say
	made(t, c, "t", d)
	n := name("ns", "t")
	appended(t, c, "t", `[{"id": 1, "f": 1.5, "d": "1.25", "s": {"x": 2}, "l": [{"z": 3}], "m": [{"key": "k", "value": 4}]}]`)
	got, err := c.AlterTable(ctx, n, []Change{
		WidenColumn{dotted("id"), plan.Int64},
		WidenColumn{dotted("f"), plan.Float64},
		WidenColumn{dotted("d"), plan.Decimal(20, 2)},
		WidenColumn{dotted("s.x"), plan.Int64},
		WidenColumn{dotted("l.z"), plan.Int64},
		WidenColumn{dotted("m.value"), plan.Int64},
		WidenColumn{dotted("s.y"), plan.String},
	})
	must(t, err)
	var types []string
	for _, f := range got.Handle.(*Handle).Schema.Fields() {
		types = append(types, f.Type.String())
	}
	if text := strings.Join(types, " "); text != "long double decimal(20, 2) struct<7: x: required long, 8: y: optional string> list<struct<10: z: optional long>> map<string, long>" {
		t.Error(text)
	}
	if scanned(t, got) != 1 {
		t.Error("the row is gone")
	}
	for _, k := range []struct {
		path string
		to   arrow.DataType
	}{
		{"id", plan.Int32},
		{"id", plan.String},
		{"f", plan.Float32},
		{"d", plan.Decimal(10, 2)},
		{"d", plan.Decimal(30, 3)},
		{"s.y", plan.Binary},
		{"s", plan.String},
		{"l", plan.Int64},
		{"id", nil},
		{"id", plan.Null},
	} {
		_, err := c.AlterTable(ctx, n, []Change{WidenColumn{dotted(k.path), k.to}})
		wants(t, fmt.Sprintf("%s to %v", k.path, k.to), err, fault.BadStatement, "cannot become")
	}
	_, err = c.AlterTable(ctx, n, []Change{WidenColumn{dotted("m.key"), plan.String}})
	wants(t, "a key", err, fault.BadStatement, "keys")
}

func TestAlterLayout(t *testing.T) {
	c, _ := lake(t)
	d := humans
	d.Partitions = []PartitionField{{Path: dotted("born"), Transform: "day"}}
	made(t, c, "t", d)
	n := name("ns", "t")
	appended(t, c, "t", `[{"id": 1, "born": "2024-01-01 00:00:00"}]`)
	spec := func() string {
		t.Helper()
		s := loaded(t, c, "t").Handle.(*Handle).Table.Spec()
		return fmt.Sprint(s.ID(), s.String())
	}
	alter := func(changes ...Change) error {
		_, err := c.AlterTable(ctx, n, changes)
		return err
	}
	must(t, alter(AddPartition{PartitionField{Path: dotted("id"), Transform: "bucket", Arg: 4}}))
	if s := spec(); !strings.HasPrefix(s, "1") || !strings.Contains(s, "1000: born_day: day(3)") || !strings.Contains(s, "1001: id_bucket: bucket[4](1)") {
		t.Error(s)
	}
	must(t, alter(DropPartition{PartitionField{Path: dotted("born"), Transform: "day"}}, AddColumn{Path: dotted("region"), Field: fld("", plan.String)}, AddPartition{PartitionField{Path: dotted("region")}}))
	if s := spec(); strings.Contains(s, "born_day") || !strings.Contains(s, "1002: region: identity(4)") {
		t.Error(s)
	}
	// The same field again has its old id, and the same spec its old id.
	must(t, alter(ReplacePartition{PartitionField{Name: "region"}, PartitionField{Path: dotted("born"), Transform: "day"}}))
	if s := spec(); !strings.Contains(s, "1000: born_day: day(3)") {
		t.Error(s)
	}
	appended(t, c, "t", `[{"id": 2, "born": "2024-01-02 00:00:00", "region": "EU"}]`)
	if got := loaded(t, c, "t"); scanned(t, got) != 2 {
		t.Error("rows are gone")
	}
	must(t, alter(DropPartition{PartitionField{Name: "ID_BUCKET"}}, DropPartition{PartitionField{Name: "born_day"}}))
	if s := spec(); strings.Contains(s, "(") && strings.Contains(s, "1000") {
		t.Error(s)
	}
	// The column of a field of former specs can go, and its rows are still read.
	must(t, alter(DropColumn{Path: dotted("born")}))
	if n := scanned(t, appended(t, c, "t", `[{"id": 3}]`)); n != 3 {
		t.Errorf("%d rows", n)
	}

	must(t, alter(SetSort{[]SortField{{Path: dotted("id"), Desc: true}}}))
	wants(t, "sorted by", alter(DropColumn{Path: dotted("id")}), fault.BadStatement, "sorted")
	must(t, alter(SetSort{}, DropColumn{Path: dotted("id")}))
	if got := loaded(t, c, "t").Handle.(*Handle).Table; !got.SortOrder().IsUnsorted() {
		t.Error(got.SortOrder())
	}
	must(t, alter(AddPartition{PartitionField{Path: dotted("ssn"), Transform: "truncate", Arg: 2, Name: "start"}}))
	for what, err := range map[string]error{
		"a field that is not there":   alter(DropPartition{PartitionField{Name: "none"}}),
		"another transform":           alter(DropPartition{PartitionField{Path: dotted("ssn"), Transform: "bucket", Arg: 3}}),
		"twice":                       alter(AddPartition{PartitionField{Path: dotted("ssn"), Transform: "truncate", Arg: 2, Name: "x"}}),
		"the name of a column":        alter(AddPartition{PartitionField{Path: dotted("ssn"), Transform: "bucket", Arg: 2, Name: "region"}}),
		"a column of that name":       alter(AddColumn{Path: dotted("start"), Field: fld("", plan.String)}),
		"renamed to a field":          alter(RenameColumn{dotted("region"), "start"}),
		"the column of a field":       alter(DropColumn{Path: dotted("ssn")}),
		"format version back":         alter(SetProperties{map[string]string{"format-version": "1"}}),
		"a format version that none":  alter(SetProperties{map[string]string{"format-version": "4"}}),
		"tags":                        alter(SetProperties{map[string]string{TagsProperty: "{}"}}),
		"remove tags":                 alter(RemoveProperties{[]string{ColumnTagsProperty}}),
		"remove reserved":             alter(RemoveProperties{[]string{"uuid"}}),
		"data elsewhere":              alter(SetProperties{map[string]string{"Write.Data.Path": "/etc"}}),
		"a name mapping":              alter(SetProperties{map[string]string{"schema.name-mapping.default": "[]"}}),
		"a name mapping that is gone": alter(RemoveProperties{[]string{"schema.name-mapping.default"}}),
	} {
		wants(t, what, err, fault.BadStatement, "")
	}
	must(t, alter(SetProperties{map[string]string{"a": "1", "b": "2"}}, RemoveProperties{[]string{"b", "none"}}, CommentTable{"hello"}))
	if got := loaded(t, c, "t").Properties; !maps.Equal(got, map[string]string{"a": "1", "comment": "hello"}) {
		t.Errorf("%v", got)
	}
	must(t, alter(CommentTable{}))
	if got := loaded(t, c, "t").Properties; !maps.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("%v", got)
	}
	version := loaded(t, c, "t").Version
	must(t, alter(SetProperties{map[string]string{"a": "1"}}))
	if loaded(t, c, "t").Version != version {
		t.Error("nothing to do was a commit")
	}
	_, err := c.AlterTable(ctx, name("ns", "none"), []Change{CommentTable{"x"}})
	wants(t, "no table", err, fault.NotFound, "none")
}

// TestAlterTags: tags stay with their field, whatever it is called, and both
// properties say so after the one commit.
func TestAlterTags(t *testing.T) {
	c, _ := lake(t)
	n := name("ns", "t")
	d := humans
	d.Tags = []TaggedPath{{Path: dotted("ssn"), Tags: []plan.Tag{{Name: "PII", Attributes: map[string]string{"level": "high"}}}}, {Tags: []plan.Tag{{Name: "BANK"}}}}
	made(t, c, "t", d)
	check := func(columns, tags string) *plan.Table {
		t.Helper()
		got := loaded(t, c, "t")
		if got.Properties[ColumnTagsProperty] != columns {
			t.Errorf("%s, want %s", got.Properties[ColumnTagsProperty], columns)
		}
		var all []string
		for _, id := range []int{0, 1, 2, 3, 4, 5} {
			for _, tag := range got.Tags[id] {
				all = append(all, fmt.Sprintf("%d:%s:%v", id, tag.Name, tag.Inherited))
			}
		}
		if text := strings.Join(all, " "); text != tags {
			t.Errorf("%s, want %s", text, tags)
		}
		return got
	}
	check(`{"ssn":["PII"]}`, "0:BANK:false 2:PII:false")
	alter := func(changes ...Change) {
		t.Helper()
		before := versionOf(loaded(t, c, "t").Version)
		_, err := c.AlterTable(ctx, n, changes)
		must(t, err)
		if after := versionOf(loaded(t, c, "t").Version); after != before+1 {
			t.Errorf("%d commits", after-before)
		}
	}
	alter(RenameColumn{dotted("ssn"), "secret"})
	if got := check(`{"secret":["PII"]}`, "0:BANK:false 2:PII:false"); got.Tags[2][0].Attributes["level"] != "high" {
		t.Errorf("%+v", got.Tags[2])
	}
	// Names are swapped: the tag goes with the field, and the other field has none.
	alter(RenameColumn{dotted("secret"), "tmp"}, RenameColumn{dotted("born"), "secret"}, RenameColumn{dotted("tmp"), "born"})
	check(`{"born":["PII"]}`, "0:BANK:false 2:PII:false")
	alter(RenameColumn{dotted("secret"), "plain"})
	// The name of a tagged column that is dropped leaves the tag to who takes it.
	alter(DropColumn{Path: dotted("born")}, AddColumn{Path: dotted("born"), Field: fld("", plan.String)})
	check(`{"born":["PII"]}`, "0:BANK:false 2:PII:false 4:PII:true")
	// A tag that stands by name only, as another engine writes it, is settled first.
	_, err := c.UpdateProperties(ctx, n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{ColumnTagsProperty: `{"born":["PII"],"id":["KEY"]}`}, nil, nil
	})
	must(t, err)
	alter(RenameColumn{dotted("id"), "key"})
	check(`{"born":["PII"],"key":["KEY"]}`, "0:BANK:false 1:KEY:false 2:PII:false 4:PII:true")
	// Tags that cannot be read: nothing is changed.
	_, err = c.UpdateProperties(ctx, n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{TagsProperty: `broken`}, nil, nil
	})
	wants(t, "broken tags", err, fault.PolicyBroken, "")
	_, err = c.AlterTable(ctx, n, []Change{RenameColumn{dotted("key"), "id"}})
	wants(t, "broken tags", err, fault.PolicyBroken, "")
}

// TestTagsOfDefinition: tags are put on what lies in a column, and follow it.
func TestTagsOfDefinition(t *testing.T) {
	c, _ := lake(t)
	d := nested
	d.Tags = []TaggedPath{
		{Path: dotted("s.y"), Tags: []plan.Tag{{Name: "A"}}}, {Path: dotted("l.element.z"), Tags: []plan.Tag{{Name: "B"}}}, {Path: dotted("m.value"), Tags: []plan.Tag{{Name: "C", Inherited: true}}},
	}
	got := made(t, c, "t", d)
	for id, want := range map[int]string{8: "A", 10: "B", 12: "C"} {
		if len(got.Tags[id]) != 1 || got.Tags[id][0].Name != want || got.Tags[id][0].Inherited != (want == "C") {
			t.Errorf("%d: %+v", id, got.Tags[id])
		}
	}
	got, err := c.AlterTable(ctx, name("ns", "t"), []Change{RenameColumn{dotted("s.y"), "why"}, RenameColumn{dotted("s"), "ess"}})
	must(t, err)
	if text := got.Properties[ColumnTagsProperty]; !strings.Contains(text, `"ess.why":["A"]`) || strings.Contains(text, `"s.y"`) || len(got.Tags[8]) != 1 {
		t.Errorf("%s %v", text, got.Tags[8])
	}
	like, err := DefinitionOf(got)
	must(t, err)
	if copied := made(t, c, "like", like); len(copied.Tags) != 3 || !copied.Tags[12][0].Inherited || copied.Tags[8][0].Inherited {
		t.Errorf("%v", copied.Tags)
	}
	for what, tags := range map[string]TaggedPath{"no column": {Path: dotted("none"), Tags: []plan.Tag{{Name: "A"}}}, "no name": {Path: dotted("id"), Tags: []plan.Tag{{}}}} {
		d.Tags = []TaggedPath{tags}
		if _, _, err := c.CreateTable(ctx, name("ns", "u"), d, CreateOptions{}); !fault.Is(err, fault.NoColumn) && !fault.Is(err, fault.BadStatement) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
