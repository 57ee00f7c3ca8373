package rangerclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// capturedDocuments are the documents of a live Ranger Admin.
func capturedDocuments(t *testing.T) *documents {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", "ranger-2.9", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	d := &documents{objectsName: "polaris", tablesName: "hive"}
	var err error
	if d.tables, err = model.DecodePolicies(read("policies_download_hive.json"), "hive"); err != nil {
		t.Fatal(err)
	}
	if d.objects, err = model.DecodePolicies(read("policies_download_polaris.json"), "polaris"); err != nil {
		t.Fatal(err)
	}
	if d.tableTags, err = model.DecodeTags(read("tags_download_hive.json"), "hive"); err != nil {
		t.Fatal(err)
	}
	if d.roles, err = model.DecodeRoles(read("roles_download.json")); err != nil {
		t.Fatal(err)
	}
	if d.users, err = model.DecodeUserStore(read("userstore_download.json")); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAdvice(t *testing.T) {
	access := []model.Access{{Type: "select"}}
	public := &model.Item{Accesses: access, Groups: []string{"public"}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: "MASK_NULL"}}
	bob := &model.Item{Accesses: access, Users: []string{"bob"}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: "MASK_NONE"}}
	mask := func(items ...*model.Item) *model.Policy {
		return &model.Policy{ID: 900, Name: "ordered", PolicyType: model.MaskPolicy, DataMaskPolicyItems: items}
	}
	for name, c := range map[string]struct {
		change func(d *documents)
		want   string // "" for the captured state: nothing of this is said
	}{
		"no tag service":      {func(d *documents) { d.tables.TagPolicies = nil }, "has no tag service"},
		"no tag row filters":  {func(d *documents) { d.tables.TagPolicies.ServiceDef.RowFilterDef = nil }, "autopropagate.rowfilterdef.to.tag"},
		"no roles":            {func(d *documents) { d.roles = nil }, "gives no roles"},
		"no users":            {func(d *documents) { d.users = nil }, "userstore.download.auth.users"},
		"no tags":             {func(d *documents) { d.tableTags = nil }, "tag.download.auth.users"},
		"no objects":          {func(d *documents) { d.objects = nil }, "no polaris-service"},
		"no object policies":  {func(d *documents) { d.objects.Policies = nil }, "has no policies"},
		"default policies":    {func(d *documents) { d.tables.Policies = append(d.tables.Policies, &model.Policy{Name: "all - global"}) }, "makes with a service"},
		"everybody first":     {func(d *documents) { d.tables.Policies = append(d.tables.Policies, mask(public, bob)) }, "put that last"},
		"everybody last":      {func(d *documents) { d.tables.Policies = append(d.tables.Policies, mask(bob, public)) }, ""},
		"policies of a realm": {func(d *documents) { foreignRealm(d) }, "set realm in the configuration"},
		"as captured":         {func(*documents) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := capturedDocuments(t)
			c.change(d)
			var list []string
			for _, f := range newState("ranger", Options{Realm: "POLARIS"}, d, time.Now).Findings(nil) {
				list = append(list, f.String())
			}
			got := strings.Join(list, "\n")
			if c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("advice:\n%s\nlacks %q", got, c.want)
			}
			for _, other := range []string{"put that last", "set realm", "gives no"} {
				if c.want == "" && strings.Contains(got, other) {
					t.Errorf("advice without need:\n%s", got)
				}
			}
		})
	}
}

func foreignRealm(d *documents) {
	for _, p := range d.objects.Policies {
		p.Resources["root"] = model.Resource{Values: []string{"another"}}
	}
}
