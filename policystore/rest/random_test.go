package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sqe/rangerclient/model"
)

// mutated is a document with some members gone, doubled or something else.
func mutated(r *rand.Rand, v any) any {
	other := []any{nil, true, 0.0, -1.0, 1e300, 1.5, "", "x", "plain", "hive", "*", "\x00", []any{}, []any{nil}, map[string]any{}, map[string]any{"": nil}, "{", "select", "2026/13/99 00:00:00"}
	if r.Intn(12) == 0 {
		return other[r.Intn(len(other))]
	}
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			e := x[k]
			if r.Intn(4) == 0 {
				e = mutated(r, e)
			}
			if r.Intn(40) > 0 {
				out[k] = e
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range x {
			out = append(out, mutated(r, e))
			if r.Intn(20) == 0 {
				out = append(out, e)
			}
		}
		return out
	}
	return v
}

// documents are ones of every kind that calls take.
func documents(t *testing.T) []any {
	whole := policyOf("p", "t")
	expr := "x"
	item := func() []*model.Item {
		return []*model.Item{{Users: []string{"plain"}, Accesses: []model.Access{{Type: "select"}}}}
	}
	whole.Conditions = []model.Condition{{Type: "_expression", Values: []string{"x"}}}
	whole.ValiditySchedules = []model.Schedule{{StartTime: "2026/01/01 00:00:00", Recurrences: []model.Recurrence{{}}}}
	whole.AdditionalResources = []map[string]model.Resource{whole.Resources}
	whole.DenyPolicyItems, whole.RowFilterPolicyItems, whole.DataMaskPolicyItems = item(), item(), item()
	whole.RowFilterPolicyItems[0].RowFilterInfo = &model.RowFilterInfo{FilterExpr: &expr}
	whole.DataMaskPolicyItems[0].DataMaskInfo = &model.DataMaskInfo{DataMaskType: "MASK"}
	whole.Options = map[string]any{"a": 1}
	var out []any
	for _, v := range []any{
		whole, policyOf("p", "t"),
		&model.Role{Name: "r", Users: []model.Member{{Name: "plain"}}, Roles: []model.Member{{Name: "r"}}},
		&model.Zone{Name: "z", AdminUsers: []string{"plain"}, AuditUsers: []string{"plain"}, Services: map[string]model.ZoneService{"hive": {Resources: []map[string][]string{{"database": {"d"}}}}}},
		&model.Service{Name: "s", Type: "hive", Configs: model.Strings{"username": "b", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "z"}},
		&model.ServiceTags{
			Op: "replace", ServiceName: "hive", TagDefinitions: map[string]model.TagDefinition{"1": {Name: "T"}}, Tags: map[string]model.Tag{"1": {Type: "T"}},
			ServiceResources: []model.ServiceResource{{ID: 1, ResourceElements: map[string]model.Resource{"database": {Values: []string{"x"}}}}}, ResourceToTagIDs: map[string][]int64{"1": {1}},
		},
		&grantRequest{Grantor: "steward", Resource: map[string]string{"database": "a,b"}, Users: []string{"plain"}, AccessTypes: []string{"select"}},
		&grantRole{TargetRoles: []string{"r"}, Users: []string{"plain"}},
		&vxUser{Name: "u", FirstName: "u", Attributes: `{"a":1}`, GroupNames: []string{"public"}},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		out = append(out, doc)
	}
	return out
}

// TestAnything: whatever an administrator sends is answered, and never by a
// failure of the server.
func TestAnything(t *testing.T) {
	f := newFace(t, Options{})
	var calls []string
	for method, routes := range f.routes {
		for _, r := range routes {
			calls = append(calls, method+" "+strings.Join(r.segments, "/"))
		}
	}
	slices.Sort(calls)
	docs := documents(t)
	const seed = 1
	r := rand.New(rand.NewSource(seed))
	names := []string{"1", "2", "3", "hive", "r", "p", "plain", "tag", "z"}
	accepted := map[string]int{}
	for n := range 4000 {
		method, path, _ := strings.Cut(calls[r.Intn(len(calls))], " ")
		segments := strings.Split(path, "/")
		for i, s := range segments {
			if s[0] == ':' {
				segments[i] = names[r.Intn(len(names))]
			}
		}
		path = strings.Join(segments, "/")
		if strings.HasSuffix(path, "users/1") || strings.HasSuffix(path, "users/id/1") {
			continue // the administrator who asks
		}
		if method == http.MethodDelete && r.Intn(10) > 0 {
			continue // something must be there to be changed
		}
		doc := docs[r.Intn(len(docs))]
		for _, c := range []struct {
			part string
			doc  int
		}{{"polic", 1}, {"roles", 2}, {"zones", 3}, {"tags", 5}, {"services/", 6}, {"roles/grant", 7}, {"users", 8}} {
			if strings.Contains(path, c.part) && r.Intn(4) > 0 {
				doc = docs[c.doc]
				break
			}
		}
		if r.Intn(3) > 0 {
			doc = mutated(r, doc)
		}
		body, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest(method, "/service/"+path, strings.NewReader(string(body)))
		req.SetBasicAuth("admin", password)
		w := httptest.NewRecorder()
		f.log.Reset()
		f.ServeHTTP(w, req)
		if w.Code >= http.StatusInternalServerError || w.Code == http.StatusUnauthorized {
			t.Fatalf("seed %d, request %d: %s %s %s: %d\n%s", seed, n, method, path, body, w.Code, &f.log)
		}
		if w.Code < 300 {
			accepted[method]++
		}
	}
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		if accepted[method] == 0 {
			t.Errorf("no %s was accepted: %s", method, fmt.Sprint(accepted))
		}
	}
}
