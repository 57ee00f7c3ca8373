package policystore

import (
	"strings"
	"testing"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func zoneOf(name string, resources ...map[string][]string) *model.Zone {
	return &model.Zone{
		Name: name, AdminUsers: []string{"carol"}, AuditRoles: []string{"auditor"}, TagServices: []string{"tag"},
		Services: map[string]model.ZoneService{"hive": {Resources: resources}},
	}
}

func in(values ...string) map[string][]string {
	r := map[string][]string{}
	for n := 0; n < len(values); n += 2 {
		r[values[n]] = strings.Split(values[n+1], ",")
	}
	return r
}

func TestZones(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	z := get(s.CreateZone(ctx, zoneOf("eu", in("database", "eu_*", "table", "*"))))(t)
	must(t)(s.CreateZone(ctx, zoneOf("us", in("database", "us_*"))))
	for name, c := range map[string]struct {
		z    *model.Zone
		kind admin.Kind
		code int
	}{
		"no name":           {zoneOf(""), admin.Invalid, 3035},
		"taken":             {zoneOf("eu", in("database", "x")), admin.Exists, 3036},
		"no administrators": {func() *model.Zone { z := zoneOf("x"); z.AdminUsers = nil; return z }(), admin.Invalid, 3038},
		"no auditors":       {func() *model.Zone { z := zoneOf("x"); z.AuditRoles = nil; return z }(), admin.Invalid, 3038},
		"unknown user":      {func() *model.Zone { z := zoneOf("x"); z.AdminUsers = []string{"ghost"}; return z }(), admin.UnknownPrincipal, 0},
		"unknown service": {func() *model.Zone {
			z := zoneOf("x")
			z.Services["nosuch"] = model.ZoneService{}
			return z
		}(), admin.NotFound, 3040},
		"tags of no tag service": {func() *model.Zone { z := zoneOf("x"); z.TagServices = []string{"hive"}; return z }(), admin.NotFound, 3040},
		"hierarchy":              {zoneOf("x", in("database", "x", "planet", "y")), admin.Invalid, 3042},
		"no values":              {zoneOf("x", map[string][]string{"database": nil}), admin.Invalid, 3039},
		"twice":                  {zoneOf("x", in("database", "x,y"), in("database", "y,x")), admin.Invalid, 3052},
		"overlap":                {zoneOf("x", in("database", "eu_x", "table", "*")), admin.Exists, 3046},
		"wider":                  {zoneOf("x", in("database", "*")), admin.Exists, 3046},
		"overlap of wildcards":   {zoneOf("x", in("database", "*_x")), admin.Exists, 3046},
		"other case":             {zoneOf("x", in("database", "EU_x")), admin.Exists, 3046},
	} {
		t.Log(name)
		_, err := s.CreateZone(ctx, c.z)
		refused(t, err, c.kind, c.code)
	}
	must(t)(s.CreateZone(ctx, zoneOf("apart", in("database", "asia,e?"))))

	// A policy of the zone may lie outside of it, and does not leave it.
	p := get(s.CreatePolicy(ctx, zoned(access("t", "select"), "eu")))(t)
	must(t)(s.CreatePolicy(ctx, access("unzoned", "select")))
	must(t)(s.PolicyNamed(ctx, "hive", "eu", "access t"))
	p.ZoneName = ""
	_, err := s.UpdatePolicy(ctx, p)
	refused(t, err, admin.Invalid, 3032)
	_, err = s.PolicyNamed(ctx, "hive", "us", "access t")
	refused(t, err, admin.NotFound, 0)

	d := get(model.DecodePolicies(get(s.DownloadPolicies(ctx, "hive", -1))(t), "hive"))(t)
	if len(d.SecurityZones) != 3 || len(d.SecurityZones["eu"].Policies) != 1 || !d.SecurityZones["eu"].ContainsAssociatedTagService || len(d.Policies) != 1 {
		t.Errorf("the download has zones %+v", d.SecurityZones)
	}

	// A zone that is renamed takes its policies along.
	before := *d.PolicyVersion
	z.Name, z.TagServices = "europe", nil
	must(t)(s.UpdateZone(as("carol"), z))
	d = get(model.DecodePolicies(get(s.DownloadPolicies(ctx, "hive", before))(t), "hive"))(t)
	if x := d.SecurityZones["europe"]; x == nil || x.ContainsAssociatedTagService || x.Policies[0].ZoneName != "europe" || x.Policies[0].Version != 2 {
		t.Errorf("the download has zones %+v", d.SecurityZones)
	}
	got := get(s.Policy(ctx, p.ID))(t)
	if got.ResourceSignature != signature(got) || got.UpdatedBy != "carol" {
		t.Errorf("the policy is %+v", got)
	}
	_, err = s.CreatePolicy(ctx, zoned(changed(access("t", "select"), func(p *model.Policy) { p.Name = "again" }), "europe"))
	refused(t, err, admin.Exists, 3010)
	_, err = s.UpdateZone(ctx, &model.Zone{ID: 999, Name: "x"})
	refused(t, err, admin.NotFound, 3037)

	if err := s.DeleteZone(ctx, "europe"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Policy(ctx, p.ID)
	refused(t, err, admin.NotFound, 0)
	refused(t, s.DeleteZone(ctx, "europe"), admin.NotFound, 0)
	d = get(model.DecodePolicies(get(s.DownloadPolicies(ctx, "hive", *d.PolicyVersion))(t), "hive"))(t)
	if d.SecurityZones["europe"] != nil || len(d.Policies) != 1 {
		t.Errorf("the download has zones %+v", d.SecurityZones)
	}
}

func TestPatternsMeet(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"", "*", true},
		{"a", "", false},
		{"a", "a", true},
		{"a", "b", false},
		{"?", "b", true},
		{"a*", "*b", true},
		{"a*c", "b*", false},
		{"a*", "ab?d*", true},
		{"a?", "a", false},
		{"*a*", "b*b", true},
		{"eu_*", "us_*", false},
		{"*x", "*y", false},
		{"ü*", "?b", true},
	} {
		if got := patternsMeet([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("%q and %q: %t", c.a, c.b, got)
		}
		if got := patternsMeet([]rune(c.b), []rune(c.a)); got != c.want {
			t.Errorf("%q and %q: %t", c.b, c.a, got)
		}
	}
}
