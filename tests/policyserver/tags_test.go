//go:build e2e

package policyserver

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// tagged is a document with one tag a table of the test's database; a tag is
// "TYPE" or "TYPE:level".
func tagged(t *testing.T, op, service string, of map[string]string) *model.ServiceTags {
	d := &model.ServiceTags{Op: op, ServiceName: service, TagDefinitions: map[string]model.TagDefinition{}, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	tables := []string{}
	for table := range of {
		tables = append(tables, table)
	}
	sort.Strings(tables)
	for i, table := range tables {
		id := int64(i)
		kind, level, has := strings.Cut(of[table], ":")
		tag := model.Tag{Type: kind}
		if has {
			tag.Attributes = model.Strings{"level": level}
		}
		key := string(rune('0' + i))
		d.TagDefinitions[key] = model.TagDefinition{Name: kind, Source: "sqe", AttributeDefs: []model.AttributeDef{{Name: "level", Type: "string"}}}
		d.Tags[key] = tag
		d.ServiceResources = append(d.ServiceResources, model.ServiceResource{ID: id, ResourceElements: map[string]model.Resource{
			"database": {Values: []string{database(t)}}, "table": {Values: []string{table}},
		}})
		d.ResourceToTagIDs[key] = []int64{id}
	}
	return d
}

// tagsOf are the tags of the tables of the test's database, as in tagged.
func tagsOf(t *testing.T, d *model.ServiceTags) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range d.ServiceResources {
		if !slices.Equal(r.ResourceElements["database"].Values, []string{database(t)}) {
			continue
		}
		table := r.ResourceElements["table"].Values[0]
		var list []string
		for _, id := range d.ResourceToTagIDs[itoa(r.ID)] {
			tag, ok := d.Tags[itoa(id)]
			if !ok {
				t.Errorf("%s carries tag %d, which the document does not have", table, id)
			}
			text := tag.Type
			if l := tag.Attributes["level"]; l != "" {
				text += ":" + l
			}
			list = append(list, text)
		}
		slices.Sort(list)
		if len(list) > 0 {
			out[table] = strings.Join(list, " ")
		}
	}
	return out
}

func TestTags(t *testing.T) {
	version := func() int64 { return documents[1].version(t, documents[1].get(t, engine, hive, -1)) }
	imported := func(d *model.ServiceTags) {
		t.Helper()
		if err := server.ImportTags(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	want := func(of map[string]string) {
		t.Helper()
		got := tagsOf(t, must[*model.ServiceTags](t)(server.Tags(ctx, hive)))
		if len(got) != len(of) {
			t.Errorf("tags %v, want %v", got, of)
			return
		}
		for k, v := range of {
			if got[k] != v {
				t.Errorf("tags %v, want %v", got, of)
			}
		}
	}
	t.Cleanup(func() { _ = server.ImportTags(ctx, &model.ServiceTags{Op: "replace", ServiceName: hive}) })
	before := version()
	first := tagged(t, "add_or_update", hive, map[string]string{"customers": "PII:high", "orders": "FINANCE"})
	imported(first)
	want(map[string]string{"customers": "PII:high", "orders": "FINANCE"})
	after := version()
	if after <= before {
		t.Errorf("tag version %d after %d", after, before)
	}
	if r := documents[1].get(t, engine, hive, after); r.status != 304 {
		t.Errorf("%d for the present version", r.status)
	}
	// The same again changes nothing.
	imported(first)
	if v := version(); v != after {
		t.Errorf("tag version %d after the same document, was %d", v, after)
	}
	// A document changes the resources that it lists.
	imported(tagged(t, "add_or_update", hive, map[string]string{"customers": "PII:low", "more": "FINANCE"}))
	want(map[string]string{"customers": "PII:low", "orders": "FINANCE", "more": "FINANCE"})
	if version() <= after {
		t.Error("the version stands still")
	}
	imported(tagged(t, "delete", hive, map[string]string{"orders": "FINANCE"}))
	want(map[string]string{"customers": "PII:low", "more": "FINANCE"})
	imported(tagged(t, "replace", hive, map[string]string{"only": "PII:x"}))
	want(map[string]string{"only": "PII:x"})
	// Tags are the service's own.
	if got := tagsOf(t, must[*model.ServiceTags](t)(server.Tags(ctx, polaris))); len(got) != 0 {
		t.Errorf("tags of another service: %v", got)
	}
	wantKind(t, server.ImportTags(ctx, tagged(t, "add_or_update", prefix+"nosuch", map[string]string{"x": "PII"})), admin.NotFound, "an unknown service")
	_, err := server.Tags(ctx, prefix+"nosuch")
	wantKind(t, err, admin.NotFound, "tags of an unknown service")
	// The newer call: "set" adds, and leaves the others.
	send(t, account, "PUT", "public/v2/api/service/"+hive+"/tags", tagged(t, "set", hive, map[string]string{"set": "PII:y"})).into(t, 204, nil)
	want(map[string]string{"only": "PII:x", "set": "PII:y"})
	var d model.ServiceTags
	send(t, account, "GET", "public/v2/api/service/"+hive+"/tags", nil).into(t, 200, &d)
	if got := tagsOf(t, &d); len(got) != 2 || got["set"] != "PII:y" {
		t.Errorf("%v", got)
	}
}

func TestZones(t *testing.T) {
	zone := func(name, db string) *model.Zone {
		return &model.Zone{
			Name: prefix + name, Description: "d", TagServices: []string{tagService}, AdminUsers: []string{carol}, AuditUsers: []string{alice},
			Services: map[string]model.ZoneService{hive: {Resources: []map[string][]string{{"database": {prefix + db}, "table": {"*"}}}}},
		}
	}
	made := must[*model.Zone](t)(server.CreateZone(ctx, zone("z1", "eu_*")))
	t.Cleanup(func() { _ = server.DeleteZone(ctx, made.Name) })
	if made.ID == 0 || made.Services[hive].Resources[0]["database"][0] != prefix+"eu_*" || made.AdminUsers[0] != carol || made.TagServices[0] != tagService {
		t.Errorf("%+v", made)
	}
	_, err := server.CreateZone(ctx, zone("z1", "other_*"))
	wantKind(t, err, admin.Exists, "the same name")
	_, err = server.CreateZone(ctx, zone("z2", "eu_x"))
	wantKind(t, err, admin.Exists, "an overlap")
	bad := zone("z3", "z3_*")
	bad.Services[prefix+"nosuch"] = bad.Services[hive]
	_, err = server.CreateZone(ctx, bad)
	wantKind(t, err, admin.NotFound, "an unknown service")
	// Ranger's own policies of a new zone are its own business.
	inZone := on(t, "orders", allow(bob, "select"))
	inZone.ZoneName, inZone.Resources["database"] = made.Name, model.Resource{Values: []string{prefix + "eu_a"}}
	inZone = must[*model.Policy](t)(server.CreatePolicy(ctx, inZone))
	if inZone.ZoneName != made.Name {
		t.Errorf("zone %q", inZone.ZoneName)
	}
	// The same name and resource outside of the zone is another policy.
	outside := on(t, "orders", allow(bob, "select"))
	outside.Resources["database"] = inZone.Resources["database"]
	outside = create(t, outside)
	for zone, id := range map[string]int64{made.Name: inZone.ID, "": outside.ID} {
		if p, err := server.PolicyNamed(ctx, hive, zone, inZone.Name); err != nil || p.ID != id {
			t.Errorf("%q: %v %v", zone, p, err)
		}
	}
	doc, err := model.DecodePolicies(documents[0].get(t, engine, hive, -1).body, hive)
	if err != nil {
		t.Fatal(err)
	}
	has := func(list []*model.Policy, id int64) bool {
		return slices.ContainsFunc(list, func(p *model.Policy) bool { return p.ID == id })
	}
	z := doc.SecurityZones[made.Name]
	if z == nil || !has(z.Policies, inZone.ID) || has(z.Policies, outside.ID) || has(doc.Policies, inZone.ID) || !has(doc.Policies, outside.ID) || !z.ContainsAssociatedTagService {
		t.Errorf("zones of the download: %+v", z)
	}
	made.Services[hive] = model.ZoneService{Resources: append(made.Services[hive].Resources, map[string][]string{"database": {prefix + "more"}})}
	if changed := must[*model.Zone](t)(server.UpdateZone(ctx, made)); len(changed.Services[hive].Resources) != 2 || changed.ID != made.ID {
		t.Errorf("%+v", changed)
	}
	if all := must[[]*model.Zone](t)(server.Zones(ctx)); !slices.ContainsFunc(all, func(z *model.Zone) bool { return z.Name == made.Name }) {
		t.Error("the zone is not in the list")
	}
	if err := server.DeleteZone(ctx, made.Name); err != nil {
		t.Fatal(err)
	}
	_, err = server.Policy(ctx, inZone.ID)
	wantKind(t, err, admin.NotFound, "a policy of a deleted zone")
	if _, err := server.Policy(ctx, outside.ID); err != nil {
		t.Error(err)
	}
	if server.DeleteZone(ctx, made.Name) == nil {
		t.Error("a zone is deleted twice")
	}
}
