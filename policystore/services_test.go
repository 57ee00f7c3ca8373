package policystore

import (
	"fmt"
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

func TestServiceRefusals(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	good := func() *model.Service {
		return &model.Service{Name: "other", Type: "hive", TagService: "tag", Configs: hiveConfigs()}
	}
	for name, c := range map[string]struct {
		change func(*model.Service)
		kind   admin.Kind
		code   int
	}{
		"no name":             {func(s *model.Service) { s.Name = "" }, admin.Invalid, 1006},
		"a taken name":        {func(s *model.Service) { s.Name = "hive" }, admin.Exists, 1007},
		"a bad name":          {func(s *model.Service) { s.Name = "a/b" }, admin.Invalid, 3031},
		"a bad display name":  {func(s *model.Service) { s.DisplayName = " x" }, admin.Invalid, 3050},
		"no type":             {func(s *model.Service) { s.Type = "" }, admin.Invalid, 1009},
		"unknown type":        {func(s *model.Service) { s.Type = "nosuch" }, admin.NotFound, 1010},
		"missing configs":     {func(s *model.Service) { delete(s.Configs, "jdbc.url") }, admin.Invalid, 1011},
		"unknown tag service": {func(s *model.Service) { s.TagService = "nosuch" }, admin.Invalid, 0},
		"no tag service":      {func(s *model.Service) { s.TagService = "polaris" }, admin.Invalid, 0},
		"tags of tags":        {func(s *model.Service) { s.Type = "tag" }, admin.Invalid, 0},
	} {
		bad := good()
		c.change(bad)
		_, err := s.CreateService(ctx, bad)
		t.Log(name)
		refused(t, err, c.kind, c.code)
	}
	made := get(s.CreateService(ctx, good()))(t)
	if made.Configs["password"] != hidden || made.PolicyVersion != 1 || made.TagVersion != 1 || made.DisplayName != "other" || made.Configs[auditFilters] == "" {
		t.Errorf("the service is %+v", made)
	}
	renamed := must1(copyOf(made))
	renamed.Name = "renamed"
	_, err := s.UpdateService(ctx, renamed)
	refused(t, err, admin.Invalid, 0)
	_, err = s.UpdateService(ctx, &model.Service{ID: 999, Name: "x"})
	refused(t, err, admin.NotFound, 0)
	made.Description = "new"
	u := get(s.UpdateService(ctx, made))(t)
	if u.Version != 2 || u.PolicyVersion != 2 || u.Description != "new" || u.GUID != made.GUID {
		t.Errorf("the updated service is %+v", u)
	}
	// The password of a service is nowhere in the file.
	if err := s.read(ctx, func(q *tx) error {
		found, err := q.exists(`SELECT 1 FROM services WHERE CAST(doc AS TEXT) LIKE '%secret%'`)
		if found {
			t.Error("a service keeps its password")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// Which changes move which versions.
func TestVersions(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	versions := func() string {
		var b strings.Builder
		for _, r := range get(s.Services(ctx))(t) {
			fmt.Fprintf(&b, "%s %d/%d ", r.Name, r.PolicyVersion, r.TagVersion)
		}
		return strings.TrimSpace(b.String())
	}
	expect := func(what, want string) {
		t.Helper()
		if got := versions(); got != want {
			t.Errorf("after %s the versions are %q, want %q", what, got, want)
		}
	}
	expect("nothing", "tag 1/1 hive 1/1 polaris 1/1")
	p := get(s.CreatePolicy(ctx, access("t", "select")))(t)
	expect("a policy of hive", "tag 1/1 hive 2/1 polaris 1/1")
	tag := get(s.CreatePolicy(ctx, onTag("hive:select")))(t)
	expect("a policy of tag", "tag 2/1 hive 3/1 polaris 2/1")
	if err := s.DeletePolicy(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	expect("a deleted policy of hive", "tag 2/1 hive 4/1 polaris 2/1")
	must(t)(s.UpdatePolicy(ctx, tag))
	expect("an unchanged policy of tag", "tag 3/1 hive 5/1 polaris 3/1")
	if err := s.ImportTags(ctx, fixtureOf[model.ServiceTags](t, "tags_import_request")); err != nil {
		t.Fatal(err)
	}
	expect("tags of hive", "tag 3/1 hive 5/2 polaris 3/1")
	must(t)(s.CreateRole(ctx, &model.Role{Name: "r"}))
	must(t)(s.CreateUser(ctx, &model.User{Name: "u"}))
	expect("a role and a user", "tag 3/1 hive 5/2 polaris 3/1")
	must(t)(s.UpdateService(ctx, get(s.Service(ctx, "tag"))(t)))
	expect("the service tag", "tag 4/1 hive 6/2 polaris 4/1")

	// A known version yields nothing, any other one everything.
	for known, changed := range map[int64]bool{6: false, 5: true, 7: true, -1: true, 0: true} {
		if body := get(s.DownloadPolicies(ctx, "hive", known))(t); (body != nil) != changed {
			t.Errorf("with version %d known there are %d bytes", known, len(body))
		}
	}
	if body := get(s.DownloadTags(ctx, "hive", 2))(t); body != nil {
		t.Error("known tags are sent")
	}
	if body := get(s.DownloadRoles(ctx, "hive", counterOf(t, s, roleVersion)))(t); body != nil {
		t.Error("known roles are sent")
	}
	if body := get(s.DownloadUserStore(ctx, "hive", counterOf(t, s, userStoreVersion)))(t); body != nil {
		t.Error("known users are sent")
	}
	_, err := s.DownloadPolicies(ctx, "nosuch", -1)
	refused(t, err, admin.NotFound, 0)
	if e, ok := err.(*admin.Error); ok && !strings.Contains(e.Reason, "RANGER_ERROR_SERVICE_NOT_FOUND") {
		t.Error(err)
	}
}

// A disabled service is refused even to whoever knows its version.
func TestDisabledService(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	r := get(s.Service(ctx, "hive"))(t)
	no := false
	r.Enabled = &no
	r = get(s.UpdateService(ctx, r))(t)
	for _, known := range []int64{-1, r.PolicyVersion} {
		_, err := s.DownloadPolicies(ctx, "hive", known)
		refused(t, err, admin.Invalid, 0)
	}
	must(t)(s.DownloadPolicies(ctx, "polaris", -1))
}

func TestDeleteService(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	must(t)(s.CreateZone(ctx, fixtureOf[model.Zone](t, "zone_create_request")))
	p := get(s.CreatePolicy(ctx, access("t", "select")))(t)
	must(t)(s.CreatePolicy(ctx, zoned(access("zoned", "select"), "eu")))
	if err := s.ImportTags(ctx, fixtureOf[model.ServiceTags](t, "tags_import_request")); err != nil {
		t.Fatal(err)
	}
	must(t)(s.DownloadPolicies(ctx, "hive", -1))
	refused(t, s.DeleteService(ctx, "tag"), admin.InUse, 0)
	refused(t, s.DeleteService(ctx, "nosuch"), admin.NotFound, 0)
	if err := s.DeleteService(ctx, "hive"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Policy(ctx, p.ID)
	refused(t, err, admin.NotFound, 0)
	_, err = s.DownloadPolicies(ctx, "hive", -1)
	refused(t, err, admin.NotFound, 0)
	if z := get(s.Zones(ctx))(t)[0]; len(z.Services) != 0 {
		t.Errorf("the zone has services %v", z.Services)
	}
	if c := get(s.History(ctx, HistoryFilter{What: "policy"}))(t); len(c) != 4 {
		t.Errorf("%d changes of policies", len(c))
	}
	if n := len(get(s.PolicyVersions(ctx, p.ID))(t)); n != 1 {
		t.Errorf("%d versions of the policy are kept", n)
	}
	// One of the same name is another one: what was downloaded before is not its.
	made := get(s.CreateService(ctx, &model.Service{Type: "hive", Name: "hive", Configs: hiveConfigs()}))(t)
	body := string(get(s.DownloadPolicies(ctx, "hive", -1))(t))
	if strings.Contains(body, "access t") || strings.Contains(body, "tagPolicies") || made.PolicyVersion != 1 {
		t.Errorf("the new service starts with %s", body)
	}
	if d := get(s.Tags(ctx, "hive"))(t); len(d.Tags) != 0 {
		t.Errorf("the new service has tags %v", d.Tags)
	}
}

func TestCreateServiceDef(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	def := `{"name":"lake","own":{"kept":true},"resources":[{"name":"path","level":1,"mandatory":true}],"accessTypes":[{"itemId":1,"name":"read"}]}`
	if err := s.CreateServiceDef(ctx, []byte(def)); err != nil {
		t.Fatal(err)
	}
	got := string(get(s.ServiceDef(ctx, "lake"))(t))
	for _, want := range []string{`"own":{"kept":true}`, `"id":1001`, `"guid":"`, `"version":1`, `"isEnabled":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("the definition has no %s: %s", want, got)
		}
	}
	for name, c := range map[string]struct {
		def  string
		kind admin.Kind
		code int
	}{
		"taken":         {def, admin.Exists, 2007},
		"no name":       {strings.Replace(def, "lake", "", 1), admin.Invalid, 2006},
		"no resources":  {`{"name":"x","accessTypes":[{"name":"read"}]}`, admin.Invalid, 2016},
		"a cycle":       {`{"name":"x","resources":[{"name":"a","parent":"b"},{"name":"b","parent":"a"}],"accessTypes":[{"name":"read"}]}`, admin.Invalid, 2016},
		"no accesses":   {`{"name":"x","resources":[{"name":"a"}]}`, admin.Invalid, 2002},
		"unknown grant": {`{"name":"x","resources":[{"name":"a"}],"accessTypes":[{"name":"read","impliedGrants":["fly"]}]}`, admin.Invalid, 2009},
		"no document":   {`[]`, admin.Invalid, 0},
		"null":          {`null`, admin.Invalid, 0},
	} {
		t.Log(name)
		refused(t, s.CreateServiceDef(ctx, []byte(c.def)), c.kind, c.code)
	}
	must(t)(s.CreateService(ctx, &model.Service{Name: "lake", Type: "lake", TagService: "tag"}))
	must(t)(s.CreatePolicy(ctx, onTag("lake:read")))
	p := access("t", "read")
	p.Service, p.Resources = "lake", resource("path", "/a")
	must(t)(s.CreatePolicy(ctx, p))
	get(model.DecodePolicies(get(s.DownloadPolicies(ctx, "lake", -1))(t), "lake"))(t)
}

// A definition reaches tag policies as a Ranger Admin lets it: taken out of the
// definition of tag policies and put in again, Ranger's own are as they were.
func TestPropagatedDefinition(t *testing.T) {
	for _, typ := range []string{"hive", "trino", "polaris"} {
		def := get(parseTree(get(servicedef.JSON(typ))(t)))(t)
		want := get(servicedef.JSON("tag"))(t)
		tags := get(parseTree(want))(t)
		without := func(in tree, key string) {
			var kept []any
			for _, x := range items(in, key) {
				if !strings.HasPrefix(x["name"].(string), typ+":") {
					kept = append(kept, x)
				}
			}
			in[key] = kept
		}
		without(tags, "accessTypes")
		for _, part := range []string{"dataMaskDef", "rowFilterDef"} {
			without(tags[part].(tree), "accessTypes")
		}
		without(tags["dataMaskDef"].(tree), "maskTypes")
		delete(tags, "markerAccessTypes")
		intoTags(tags, def, int64(get(servicedef.Definition(typ))(t).ID), typ)
		same(t, "tag with "+typ, tags, want)

		own := get(parseTree(get(servicedef.JSON(typ))(t)))(t)
		withMarkers(own)
		same(t, "the markers of "+typ, own, get(servicedef.JSON(typ))(t))
	}
}
