package policystore

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"sqe/rangerclient/model"
)

// plain decodes a document, without the members that differ between two servers,
// with lists in a fixed order: Ranger's are often sets.
func plain(t testing.TB, doc []byte, without ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return clean(v, without)
}

func clean(v any, without []string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, w := range without {
			delete(v, w)
		}
		for k, x := range v {
			v[k] = clean(x, without)
		}
	case []any:
		for n, x := range v {
			v[n] = clean(x, without)
		}
		slices.SortStableFunc(v, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return cmp.Compare(string(x), string(y))
		})
	}
	return v
}

// serverMade are members that no two servers have in common.
var serverMade = []string{"id", "guid", "createdBy", "updatedBy", "createTime", "updateTime"}

func same(t testing.TB, what string, got any, want []byte, without ...string) {
	t.Helper()
	doc, ok := got.([]byte)
	if !ok {
		doc = get(encode(got))(t)
	}
	if d := gocmp.Diff(plain(t, want, without...), plain(t, doc, without...)); d != "" {
		t.Errorf("%s differs from Ranger's (-) in:\n%s", what, d)
	}
}

// What a Ranger Admin answered to a policy is what the store answers.
func TestCapturedPolicies(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	p := get(s.CreatePolicy(ctx, fixtureOf[model.Policy](t, "policy_create_request")))(t)
	same(t, "the created policy", p, fixture(t, "policy_create_response"), serverMade...)
	want := fixtureOf[model.Policy](t, "policy_update_response")
	want.ID, want.Version = p.ID, 1 // the version that is sent is not looked at
	u := get(s.UpdatePolicy(ctx, want))(t)
	same(t, "the updated policy", u, fixture(t, "policy_update_response"), serverMade...)
	m := get(s.CreatePolicy(ctx, fixtureOf[model.Policy](t, "tag_mask_policy_request")))(t)
	same(t, "the tag policy", m, fixture(t, "tag_mask_policy_response"), serverMade...)
	same(t, "the stored policy", get(s.Policy(ctx, p.ID))(t), get(encode(u))(t))
}

func TestCapturedService(t *testing.T) {
	s := seeded(t)
	configs := fixtureOf[model.Service](t, "service_hive_response")
	configs.ID, configs.Configs["password"] = 0, "secret"
	delete(configs.Configs, auditFilters) // Ranger fills it in on creation
	if err := s.DeleteService(as("admin"), "hive"); err != nil {
		t.Fatal(err)
	}
	made := get(s.CreateService(as("admin"), configs))(t)
	same(t, "the service", made, fixture(t, "service_hive_response"),
		append(serverMade, "policyVersion", "policyUpdateTime", "tagVersion", "tagUpdateTime")...)
}

// The roles of the captures, and their download.
func TestCapturedRoles(t *testing.T) {
	s := seeded(t)
	r := get(s.CreateRole(as("admin"), fixtureOf[model.Role](t, "role_create_request")))(t)
	same(t, "the created role", r, fixture(t, "role_create_response"), serverMade...)
	body := get(s.DownloadRoles(t.Context(), "hive", -1))(t)
	// Ids are as in Ranger, and so is the version after five roles.
	same(t, "the download", body, fixture(t, "roles_download"), "createdBy", "updatedBy", "createTime", "updateTime", "roleUpdateTime")
	get(model.DecodeRoles(body))(t)
}

func TestCapturedUserStore(t *testing.T) {
	s := seeded(t)
	body := get(s.DownloadUserStore(t.Context(), "hive", -1))(t)
	// Users of Ranger's own parts that the store does not have.
	same(t, "the download", body, fixture(t, "userstore_download"),
		"userStoreVersion", "userStoreUpdateTime", "keyadmin", "rangerusersync", "rangertagsync")
	get(model.DecodeUserStore(body))(t)
}

func TestCapturedTags(t *testing.T) {
	s := seeded(t)
	if err := s.ImportTags(as("admin"), fixtureOf[model.ServiceTags](t, "tags_import_request")); err != nil {
		t.Fatal(err)
	}
	body := get(s.DownloadTags(t.Context(), "hive", -1))(t)
	same(t, "the download of hive", body, fixture(t, "tags_download_hive"), "tagVersion")
	get(model.DecodeTags(body, "hive"))(t)

	polaris := fixtureOf[model.ServiceTags](t, "tags_download_polaris")
	if err := s.ImportTags(as("admin"), polaris); err != nil {
		t.Fatal(err)
	}
	body = get(s.DownloadTags(t.Context(), "polaris", -1))(t)
	same(t, "the download of polaris", body, fixture(t, "tags_download_polaris"), "tagVersion")
}

func TestCapturedZone(t *testing.T) {
	s := seeded(t)
	z := get(s.CreateZone(as("admin"), fixtureOf[model.Zone](t, "zone_create_request")))(t)
	same(t, "the zone", z, fixture(t, "zone_create_response"), append(serverMade, "resourcesBaseInfo")...)
}

// A store that was filled with the policies of a captured download makes the same
// download of them.
func TestCapturedPolicyDownloads(t *testing.T) {
	s := seeded(t)
	ctx := as("admin")
	must(t)(s.CreateRole(ctx, fixtureOf[model.Role](t, "role_create_request")))
	must(t)(s.CreateZone(ctx, fixtureOf[model.Zone](t, "zone_create_request")))
	for _, service := range []string{"hive", "polaris"} {
		d := fixtureOf[model.ServicePolicies](t, "policies_download_"+service)
		all := slices.Clone(d.Policies)
		if service == "hive" {
			all = append(all, d.TagPolicies.Policies...)
		}
		for _, z := range d.SecurityZones {
			all = append(all, z.Policies...)
		}
		for _, p := range all {
			must(t)(s.CreatePolicy(ctx, p))
		}
		off := access("disabled", "select")
		no := false
		off.Enabled = &no
		if service == "hive" {
			must(t)(s.CreatePolicy(ctx, off))
		}
	}
	for _, service := range []string{"hive", "polaris"} {
		body := get(s.DownloadPolicies(t.Context(), service, -1))(t)
		want := fixture(t, "policies_download_"+service)
		if service == "polaris" {
			// The capture is older than the tag policies of the other.
			var d map[string]json.RawMessage
			if err := json.Unmarshal(want, &d); err != nil {
				t.Fatal(err)
			}
			hive := fixtureOf[struct {
				TagPolicies struct {
					Policies json.RawMessage `json:"policies"`
				} `json:"tagPolicies"`
			}](t, "policies_download_hive")
			var tags map[string]json.RawMessage
			if err := json.Unmarshal(d["tagPolicies"], &tags); err != nil {
				t.Fatal(err)
			}
			tags["policies"] = hive.TagPolicies.Policies
			d["tagPolicies"] = get(json.Marshal(tags))(t)
			want = get(json.Marshal(d))(t)
		}
		same(t, "the download of "+service, body, want, "id", "version", "serviceId", "policyVersion", "policyUpdateTime", "createTime", "updateTime")
		get(model.DecodePolicies(body, service))(t)
	}
}
