package admin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sqe/identity"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

// full is a bundle with something of everything.
func full(t *testing.T) *Bundle {
	t.Helper()
	no := false
	filter := "region < 'm' AND x > 1"
	zoned := masks(mask("MASK", "alice"))
	zoned.Name, zoned.ZoneName = "zoned", "eu"
	zoned.Resources = on("database", "eu_x", "table", "t", "column", "c")
	disabled := masks(mask("MASK_NULL", "bob"))
	disabled.Name, disabled.Enabled, disabled.PolicyLabels = "disabled", &no, []string{"b", "a"}
	timed := &model.Policy{
		Name: "timed", PolicyType: model.RowFilterPolicy, Resources: on("database", "d", "table", "t"), PolicyPriority: 1, Description: "why",
		ValiditySchedules:    []model.Schedule{{StartTime: "2026/01/01 00:00:00", TimeZone: "Europe/Berlin"}},
		Conditions:           []model.Condition{{Type: "_expression", Values: []string{"true"}}},
		RowFilterPolicyItems: []*model.Item{{Roles: []string{"inner", "outer"}, Groups: []string{"public"}, Accesses: accesses("select"), RowFilterInfo: &model.RowFilterInfo{FilterExpr: &filter}}},
	}
	grant := granting(allow("alice,bob", "SELECT", "update"))
	grant.DenyPolicyItems = []*model.Item{{Groups: []string{"staff"}, Accesses: accesses("drop")}}
	grant.DenyExceptions = []*model.Item{{Users: []string{"bob"}, Accesses: accesses("drop")}}
	tagged := &model.Policy{Name: "on PII", PolicyType: model.MaskPolicy, Resources: on("tag", "PII"), DataMaskPolicyItems: []*model.Item{
		{Groups: []string{"public"}, Accesses: accesses("hive:select"), DataMaskInfo: &model.DataMaskInfo{DataMaskType: "hive:CUSTOM", ValueExpr: "left({col}, 1)"}},
	}}
	tags := newTags("lake", "add_or_update")
	pii := model.Tag{Type: "PII", Attributes: model.Strings{"level": "high"}}
	addTags(tags, model.ServiceResource{ResourceElements: on("database", "d", "table", "t", "column", "c")}, []model.Tag{pii, {Type: "X", ValidityPeriods: []model.Schedule{{EndTime: "2030/01/01 00:00:00"}}}}, map[string]model.TagDefinition{"7": {Name: "PII", Source: "atlas", AttributeDefs: []model.AttributeDef{{Name: "level", Type: "string"}}}})
	addTags(tags, model.ServiceResource{ResourceElements: on("database", "d", "table", "u")}, []model.Tag{pii}, nil)
	f := newFake()
	b := &Bundle{
		Services: []*model.Service{
			{Name: "lake", Type: "hive", TagService: "tags", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}},
			{Name: "tags", Type: "tag"},
			{Name: "objects", Type: "polaris", TagService: "tags", Description: "d"},
		},
		Policies: map[string][]*model.Policy{"lake": {grant, disabled, timed, zoned}, "tags": {tagged}, "objects": {{Name: "p", Resources: on("root", "POLARIS", "catalog", "bank"), PolicyItems: []*model.Item{allow("alice", "catalog-list")}}}},
		Zones:    []*model.Zone{{Name: "eu", TagServices: []string{"tags"}, Services: map[string]model.ZoneService{"lake": {Resources: []map[string][]string{{"database": {"eu_*"}, "table": {"*"}}}}}, AdminUsers: []string{"alice"}, AuditUsers: []string{"alice"}}},
		Roles: []*model.Role{
			{Name: "outer", Roles: []model.Member{{Name: "inner"}}, Users: []model.Member{{Name: "bob", IsAdmin: true}, {Name: "alice"}}},
			{Name: "inner", Groups: []model.Member{{Name: "staff"}}, Description: "d"},
		},
		Users: []*model.User{
			{Name: "bob", Groups: []string{"staff"}, Attributes: map[string]string{"dept": "<sales>"}, AdminRoles: []string{"ROLE_USER"}},
			{Name: "alice", FirstName: "Alice", LastName: "A", Email: "a@example.org", AdminRoles: []string{"ROLE_USER"}},
		},
		Groups:      []*model.Group{{Name: "staff", Description: "d", Attributes: map[string]string{"k": "v"}}},
		Tags:        map[string]*model.ServiceTags{"lake": tags, "objects": newTags("objects", "")},
		Definitions: map[string]json.RawMessage{},
	}
	for _, s := range b.Services {
		d, err := f.ServiceDef(context.Background(), s.Type)
		if err != nil {
			t.Fatal(err)
		}
		b.Definitions[s.Type] = d
	}
	if err := b.normalize(); err != nil {
		t.Fatal(err)
	}
	return b
}

// files reads a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = string(b)
	}
	return out
}

func export(t *testing.T, s Server) string {
	t.Helper()
	b, err := Read(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := b.WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// apply brings a folder to a server and returns the changes.
func apply(t *testing.T, s Server, dir string, o TransferOptions) (changes []string) {
	t.Helper()
	b, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.Change = func(c string) { changes = append(changes, c) }
	if err := b.Apply(context.Background(), NewWriter(s), o); err != nil {
		t.Fatal(err)
	}
	return changes
}

// transfers moves a bundle to a server and out again, and to another one.
func transfers(t *testing.T, open func() Server) {
	source := t.TempDir()
	if err := full(t).WriteFolder(source); err != nil {
		t.Fatal(err)
	}
	first := open()
	dry := apply(t, first, source, TransferOptions{DryRun: true})
	changes := apply(t, first, source, TransferOptions{})
	// What a service comes with is not known before it is made.
	if missing := slices.DeleteFunc(slices.Clone(changes), func(c string) bool { return slices.Contains(dry, c) || strings.HasPrefix(c, "delete policy") }); len(dry) < 10 || len(missing) > 0 {
		t.Errorf("the dry run did not tell: %q", missing)
	}
	if again := apply(t, first, source, TransferOptions{}); len(again) > 0 {
		t.Errorf("the second time changes %q", again)
	}
	one := export(t, first)
	if again := apply(t, first, one, TransferOptions{Prune: true}); len(again) > 0 {
		t.Errorf("its own export changes %q", again)
	}
	second := open()
	apply(t, second, one, TransferOptions{})
	if diff := cmp.Diff(files(t, one), files(t, export(t, second))); diff != "" {
		t.Errorf("export, import, export (-first +second):\n%s", diff)
	}
	// What was put in is in the export, whatever the server itself adds.
	got, err := ReadFolder(one)
	if err != nil {
		t.Fatal(err)
	}
	want := full(t)
	if diff := cmp.Diff(want.Policies, got.Policies); diff != "" {
		t.Errorf("policies (-put in +got out):\n%s", diff)
	}
	if diff := cmp.Diff(want.Roles, got.Roles); diff != "" {
		t.Errorf("roles (-put in +got out):\n%s", diff)
	}
	if diff := cmp.Diff(want.Zones, got.Zones); diff != "" {
		t.Errorf("zones (-put in +got out):\n%s", diff)
	}
	if diff := cmp.Diff(want.Tags["lake"], got.Tags["lake"]); diff != "" {
		t.Errorf("tags (-put in +got out):\n%s", diff)
	}
	for _, u := range want.Users {
		if !slices.ContainsFunc(got.Users, func(x *model.User) bool { return text(x) == text(u) }) {
			t.Errorf("user %s is not as it was put in: %s", text(u), text(got.Users))
		}
	}
}

func TestTransfer(t *testing.T) {
	transfers(t, func() Server { f := newFake(); f.strict = true; return f })
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	if err := full(t).WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.users = []*model.User{{Name: "root", AdminRoles: []string{adminRole}}}
	apply(t, f, dir, TransferOptions{})
	extra := masks(mask("MASK", "bob"))
	extra.Name = "extra"
	extra.Resources = on("database", "x", "table", "t", "column", "c")
	stored(t, f, extra)
	// In the place of one that the folder has, under another name.
	for _, p := range f.policies {
		if p.Name == "g" {
			p.Name = "usurper"
		}
	}
	f.roles = append(f.roles, &model.Role{Name: "extra"})
	f.users = append(f.users, &model.User{Name: "extra"})
	f.groups = append(f.groups, &model.Group{Name: "extra"})
	b, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(context.Background(), testWriter(f), TransferOptions{}); err == nil || !strings.Contains(err.Error(), `"usurper"`) {
		t.Errorf("got %v, want to be told what is in the way", err)
	}
	changes := apply(t, f, dir, TransferOptions{Prune: true})
	for _, want := range []string{`create policy "g" of lake`, `delete policy "usurper" of lake`, `delete policy "extra" of lake`, "delete role extra", "delete user extra", "delete group extra"} {
		if !slices.Contains(changes, want) {
			t.Errorf("%q is not among %q", want, changes)
		}
	}
	if again := apply(t, f, dir, TransferOptions{Prune: true}); len(again) > 0 {
		t.Errorf("the second time changes %q", again)
	}
	if _, err := f.User(context.Background(), "root"); err != nil {
		t.Error("the administrator of the server is gone")
	}
}

// loginFake is a server that is written with a user of its own.
type loginFake struct{ *fake }

func (loginFake) Username() string { return "sqe_admin" }

// Pruning shuts out neither SQE nor whom the settings of services let in.
func TestPruneKeepsLogins(t *testing.T) {
	dir := t.TempDir()
	if err := full(t).WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	f := newFake()
	apply(t, f, dir, TransferOptions{})
	f.services[0].Configs = model.Strings{
		"policy.download.auth.users": "engine, other", "service.admin.users": "steward", "service.admin.groups": "stewards",
		"policy.grantrevoke.auth.users": "granter", "policy.download.auth.groups": "engines", "username": "plain",
	}
	kept := []string{"sqe_admin", "sqe_reader", "engine", "other", "steward", "granter"}
	for _, name := range append([]string{"extra", "plain"}, kept...) {
		f.users = append(f.users, &model.User{Name: name})
	}
	for _, name := range []string{"stewards", "engines", "extra"} {
		f.groups = append(f.groups, &model.Group{Name: name})
	}
	b, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	if err := b.Apply(context.Background(), NewWriter(loginFake{f}), TransferOptions{
		Prune: true, Keep: []string{"sqe_reader"}, Note: func(n string) { notes = append(notes, n) },
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := f.User(t.Context(), name); err != nil {
			t.Errorf("user %s is gone", name)
		}
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "user "+name+" ") }) {
			t.Errorf("nobody is told of user %s: %q", name, notes)
		}
	}
	for _, name := range []string{"stewards", "engines"} {
		if _, err := f.Group(t.Context(), name); err != nil {
			t.Errorf("group %s is gone", name)
		}
	}
	for _, name := range []string{"extra", "plain"} {
		if _, err := f.User(t.Context(), name); err == nil {
			t.Errorf("user %s is still there", name)
		}
	}
	if _, err := f.Group(t.Context(), "extra"); err == nil {
		t.Error("group extra is still there")
	}
}

// TestFolderIsASource: a folder source reads what was exported, and decides by it.
func TestFolderIsASource(t *testing.T) {
	dir := t.TempDir()
	if err := full(t).WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	s, err := rangerclient.OpenFolder(rangerclient.FolderConfig{Name: "folder", Dir: dir, DataService: "lake", PolarisService: "objects"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	state, err := s.State()
	if err != nil {
		t.Fatal(err, s.Status())
	}
	r, err := state.Restrict(identity.Principal{Name: "alice"}, &plan.Table{Name: plan.TableName{Catalog: "c", Namespace: []string{"d"}, Name: "t"}, Fields: []plan.Field{{ID: 1, Name: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	if rule := r.Columns[1]; rule.Kind != policy.Mask || !strings.Contains(rule.SQL, "left(") {
		t.Errorf("the mask of the tag policy does not act: %+v", r)
	}
}

// TestBareFolder: the bodies of downloads alone are enough.
func TestBareFolder(t *testing.T) {
	dir := t.TempDir()
	if err := full(t).WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"service_lake.json", "service_tags.json", "service_objects.json", "policies_tags.json", "policies_objects.json", "tags_objects.json", "zones.json", "users.json", "groups.json", "servicedef_hive.json", "servicedef_tag.json", "servicedef_polaris.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := newFake()
	f.strict = true
	apply(t, f, dir, TransferOptions{})
	got, err := Read(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	want := full(t)
	for _, s := range []string{"lake", "tags"} {
		if diff := cmp.Diff(want.Policies[s], got.Policies[s]); diff != "" {
			t.Errorf("%s", diff)
		}
	}
	if diff := cmp.Diff(want.Roles, got.Roles); diff != "" {
		t.Error(diff)
	}
	if len(got.Users) != 2 || len(got.Groups) != 1 || got.Users[1].Attributes["dept"] != "<sales>" {
		t.Errorf("%s %s", text(got.Users), text(got.Groups))
	}
}

func TestBrokenFolder(t *testing.T) {
	for name, content := range map[string]string{
		"policies_lake.json": `{"serviceName": "other"`, "policies_x.json": `{"serviceName": "other", "serviceDef": {"name": "hive"}}`,
		"policies_y.json": `{"serviceName": "y"}`, "policies_z.json": `{"serviceName": "z", "serviceDef": {"name": "hive"}, "policies": [null]}`,
		"other.json": `{}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFolder(dir); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
