package policystore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// carries is a tag document: each entry is a resource ("db.table.column") and the
// types of its tags.
func carries(op string, entries map[string][]string) *model.ServiceTags {
	d := &model.ServiceTags{Op: op, ServiceName: "hive", TagDefinitions: map[string]model.TagDefinition{}, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	next := int64(0)
	for name, types := range entries {
		id := int64(len(d.ServiceResources))
		elements := map[string]model.Resource{}
		for n, v := range strings.Split(name, ".") {
			elements[[]string{"database", "table", "column"}[n]] = model.Resource{Values: []string{v}}
		}
		d.ServiceResources = append(d.ServiceResources, model.ServiceResource{ID: id, ResourceElements: elements})
		key := fmt.Sprint(id)
		d.ResourceToTagIDs[key] = []int64{}
		for _, typ := range types {
			d.TagDefinitions[typ] = model.TagDefinition{Name: typ}
			d.Tags[fmt.Sprint(next)] = model.Tag{Type: typ}
			d.ResourceToTagIDs[key] = append(d.ResourceToTagIDs[key], next)
			next++
		}
	}
	return d
}

// carried is what a document says, in one line.
func carried(d *model.ServiceTags) string {
	var all []string
	for _, r := range d.ServiceResources {
		var name, tags []string
		for _, e := range []string{"database", "table", "column"} {
			name = append(name, r.ResourceElements[e].Values...)
		}
		for _, id := range d.ResourceToTagIDs[fmt.Sprint(r.ID)] {
			x := d.Tags[fmt.Sprint(id)]
			text := x.Type
			for k, v := range x.Attributes {
				text += "(" + k + "=" + v + ")"
			}
			tags = append(tags, text)
		}
		slices.Sort(tags)
		all = append(all, strings.Join(name, ".")+":"+strings.Join(tags, "+"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestImportTags(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	type entries = map[string][]string
	version := int64(1)
	for _, c := range []struct {
		name    string
		doc     *model.ServiceTags
		want    string
		changes bool
	}{
		{"first", carries("add_or_update", entries{"a.b": {"PII"}, "a.c": {"PII", "FINANCE"}}), "a.b:PII a.c:FINANCE+PII", true},
		{"again", carries("add_or_update", entries{"a.b": {"PII"}, "a.c": {"PII", "FINANCE"}}), "a.b:PII a.c:FINANCE+PII", false},
		{"op left out", carries("", entries{"a.d": {"TEMP"}}), "a.b:PII a.c:FINANCE+PII a.d:TEMP", true},
		{"other tags of one", carries("add_or_update", entries{"a.c": {"TEMP"}}), "a.b:PII a.c:TEMP a.d:TEMP", true},
		{"no tags of one", carries("ADD_OR_UPDATE", entries{"a.c": {}}), "a.b:PII a.d:TEMP", true},
		{"delete", carries("delete", entries{"a.d": {}, "a.unknown": {}}), "a.b:PII", true},
		{"delete again", carries("delete", entries{"a.d": {}}), "a.b:PII", false},
		{"replace by the same", carries("replace", entries{"a.b": {"PII"}}), "a.b:PII", false},
		{"replace", carries("replace", entries{"x": {"FINANCE"}, "y.z": {"PII"}}), "x:FINANCE y.z:PII", true},
		{"replace by nothing", carries("replace", entries{}), "", true},
	} {
		if err := s.ImportTags(ctx, c.doc); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		body := get(s.DownloadTags(ctx, "hive", -1))(t)
		d := get(model.DecodeTags(body, "hive"))(t)
		if got := carried(d); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if (*d.TagVersion != version) != c.changes {
			t.Errorf("%s: the version went from %d to %d", c.name, version, *d.TagVersion)
		}
		version = *d.TagVersion
	}
	if n := counted(t, s, "tags"); n != 0 {
		t.Errorf("%d tags are left of no resource", n)
	}
	if c := get(s.History(ctx, HistoryFilter{What: "tags"}))(t); len(c) != 7 || c[0].Version != version || !strings.Contains(string(c[0].Document), `"replace"`) {
		t.Errorf("the history of tags is %+v", c)
	}
}

func counted(t testing.TB, s *Store, table string) (n int) {
	t.Helper()
	if err := s.read(t.Context(), func(q *tx) error { return q.one(`SELECT count(*) FROM `+table, nil, &n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTagAttributes(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	with := func(level string, change ...func(*model.Tag)) *model.ServiceTags {
		d := carries("add_or_update", map[string][]string{"a": {"PII"}})
		tag := d.Tags["0"]
		tag.Attributes = model.Strings{"level": level}
		for _, f := range change {
			f(&tag)
		}
		d.Tags["0"] = tag
		return d
	}
	apply := func(d *model.ServiceTags) *model.ServiceTags {
		t.Helper()
		if err := s.ImportTags(ctx, d); err != nil {
			t.Fatal(err)
		}
		return get(s.Tags(ctx, "hive"))(t)
	}
	apply(with("low"))
	if got := carried(apply(with("high"))); got != "a:PII(level=high)" {
		t.Error(got)
	}
	// A period is a property of the tag.
	before := apply(with("high"))
	after := apply(with("high", func(x *model.Tag) { x.ValidityPeriods = []model.Schedule{{StartTime: "2026/01/01 00:00:00"}} }))
	if *after.TagVersion != *before.TagVersion+1 || len(after.Tags) != 1 {
		t.Errorf("version %d after %d, tags %v", *after.TagVersion, *before.TagVersion, after.Tags)
	}
	// With its guid a tag is changed in place.
	var guid, id string
	for k, x := range after.Tags {
		guid, id = x.GUID, k
	}
	changed := apply(with("low", func(x *model.Tag) { x.GUID = guid }))
	if changed.Tags[id].Attributes["level"] != "low" {
		t.Errorf("the tags are %v", changed.Tags)
	}
	// What Tags yields can be imported again, and changes nothing.
	if again := apply(changed); *again.TagVersion != *changed.TagVersion {
		t.Errorf("importing what was exported moved the version from %d to %d", *changed.TagVersion, *again.TagVersion)
	}
}

// A shared tag is one for all services that have it.
func TestSharedTag(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	doc := func(service, level string) *model.ServiceTags {
		d := carries("add_or_update", map[string][]string{"a": {"PII"}})
		d.ServiceName = service
		d.Tags["0"] = model.Tag{GUID: "the-shared-one", Type: "PII", Owner: model.TagShared, Attributes: model.Strings{"level": level}}
		if service == "polaris" {
			d.ServiceResources[0].ResourceElements = resource("root", "POLARIS", "catalog", "c")
		}
		return d
	}
	for _, d := range []*model.ServiceTags{doc("hive", "low"), doc("polaris", "high")} {
		if err := s.ImportTags(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, service := range []string{"hive", "polaris"} {
		d := get(s.Tags(ctx, service))(t)
		for _, x := range d.Tags {
			if x.Attributes["level"] != "high" || x.GUID != "the-shared-one" {
				t.Errorf("%s has the tag %+v", service, x)
			}
		}
		if service == "hive" && *d.TagVersion != 3 {
			t.Errorf("version %d of hive", *d.TagVersion)
		}
	}
	if n := counted(t, s, "tags"); n != 1 {
		t.Errorf("%d tags", n)
	}
	// It outlives a service.
	if err := s.DeleteService(ctx, "hive"); err != nil {
		t.Fatal(err)
	}
	if d := get(s.Tags(ctx, "polaris"))(t); len(d.Tags) != 1 {
		t.Errorf("polaris has the tags %v", d.Tags)
	}
}

// Equal tags of many resources are one in a download.
func TestTagsAreDeduplicated(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	if err := s.ImportTags(ctx, carries("add_or_update", map[string][]string{"a": {"PII"}, "b": {"PII"}, "c": {"PII", "TEMP"}})); err != nil {
		t.Fatal(err)
	}
	d := get(model.DecodeTags(get(s.DownloadTags(ctx, "hive", -1))(t), "hive"))(t)
	if len(d.Tags) != 2 || !d.IsTagsDeduped || carried(d) != "a:PII b:PII c:PII+TEMP" {
		t.Errorf("%d tags of %s", len(d.Tags), carried(d))
	}
	if n := len(get(s.Tags(ctx, "hive"))(t).Tags); n != 4 {
		t.Errorf("%d tags in the whole document", n)
	}
}

func TestTagRefusals(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	good := func() *model.ServiceTags {
		return carries("add_or_update", map[string][]string{"a": {"PII"}})
	}
	for name, c := range map[string]struct {
		change func(*model.ServiceTags)
		kind   admin.Kind
		code   int
	}{
		"unknown service": {func(d *model.ServiceTags) { d.ServiceName = "nosuch" }, admin.NotFound, 0},
		"unknown op":      {func(d *model.ServiceTags) { d.Op = "merge" }, admin.Invalid, 0},
		"unknown element": {func(d *model.ServiceTags) { d.ServiceResources[0].ResourceElements = resource("planet", "x") }, admin.Invalid, 0},
		"no element":      {func(d *model.ServiceTags) { d.ServiceResources[0].ResourceElements = nil }, admin.Invalid, 0},
		"unknown guid":    {func(d *model.ServiceTags) { d.ServiceResources[0] = model.ServiceResource{GUID: "x"} }, admin.NotFound, 0},
		"no value":        {func(d *model.ServiceTags) { d.ServiceResources[0].ResourceElements["database"] = model.Resource{} }, admin.Invalid, 0},
		"no definition":   {func(d *model.ServiceTags) { d.TagDefinitions = nil }, admin.Invalid, 0},
		"missing tag":     {func(d *model.ServiceTags) { d.Tags = nil }, admin.Invalid, 0},
		"period": {func(d *model.ServiceTags) {
			d.Tags["0"] = model.Tag{Type: "PII", ValidityPeriods: []model.Schedule{{StartTime: "x"}}}
		}, admin.Invalid, 3029},
		"nameless definition": {func(d *model.ServiceTags) { d.TagDefinitions["x"] = model.TagDefinition{} }, admin.Invalid, 0},
	} {
		bad := good()
		c.change(bad)
		t.Log(name)
		refused(t, s.ImportTags(ctx, bad), c.kind, c.code)
	}
	// Nothing of a refused document is there.
	if n := counted(t, s, "tags") + counted(t, s, "tag_resources") + counted(t, s, "tag_definitions"); n != 0 {
		t.Errorf("%d rows of refused documents", n)
	}
	if err := s.ImportTags(ctx, good()); err != nil {
		t.Error(err)
	}
}

// Attribute definitions keep their names on the wire.
func TestTagDefinitionOnTheWire(t *testing.T) {
	b := get(json.Marshal(model.TagDefinition{Name: "PII", AttributeDefs: []model.AttributeDef{{Name: "level", Type: "string"}}}))(t)
	if string(b) != `{"name":"PII","attributeDefs":[{"name":"level","type":"string"}]}` {
		t.Errorf("%s", b)
	}
}
