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
// with lists that are sets in a fixed order.
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
}
