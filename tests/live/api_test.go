//go:build e2e

package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

type object = map[string]any

// adminAPI is the REST interface of the policy server, as an administrator's
// script uses it.
type adminAPI struct{ base, user, password string }

var client = &http.Client{Timeout: 30 * time.Second}

// call makes one request; the status is an error unless it is 2xx.
func (a *adminAPI) call(method, path string, body any) ([]byte, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, a.base+path, in)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(a.user, a.password)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return out, fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, out)
	}
	return out, nil
}

func (a *adminAPI) must(t testing.TB, method, path string, body any) object {
	t.Helper()
	out, err := a.call(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	o := object{}
	if len(out) > 0 && out[0] == '{' {
		if err := json.Unmarshal(out, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// prepare makes the services, users, groups and roles of the tests anew, and who
// may read which object.
func (a *adminAPI) prepare() error {
	if err := a.cleanUp(); err != nil {
		return err
	}
	user := func(name string) error {
		if _, err := a.call("GET", "xusers/users/userName/"+name, nil); err == nil {
			return nil
		}
		_, err := a.call("POST", "xusers/secure/users", object{
			"name": name, "firstName": name, "lastName": "", "password": enginePassword, "status": 1, "isVisible": 1, "userSource": 0,
			"userRoleList": []string{"ROLE_USER"}, "groupIdList": []string{}, "otherAttributes": `{"region":"EU"}`,
		})
		return err
	}
	for _, name := range []string{engineUser, "carol", "bob", "alice", "dave"} {
		if err := user(name); err != nil {
			return err
		}
	}
	for _, name := range []string{"governance", "engineering", "analytics"} {
		if _, err := a.call("GET", "xusers/groups/groupName/"+name, nil); err != nil {
			if _, err := a.call("POST", "xusers/secure/groups", object{"name": name, "description": name, "isVisible": 1, "groupSource": 0}); err != nil {
				return err
			}
		}
	}
	for role, users := range map[string][]string{"engineer": {"carol", "bob"}, "analyst": {"carol", "bob", "alice"}, "sqe_admin": {"carol"}} {
		if _, err := a.call("GET", "public/v2/api/roles/name/"+role, nil); err == nil {
			continue
		}
		var members []object
		for _, u := range users {
			members = append(members, object{"name": u, "isAdmin": false})
		}
		if _, err := a.call("POST", "public/v2/api/roles", object{"name": role, "users": members}); err != nil {
			return err
		}
	}
	configs := object{}
	for _, key := range []string{"policy.download.auth.users", "tag.download.auth.users", "userstore.download.auth.users"} {
		configs[key] = engineUser
	}
	for _, s := range []struct{ name, kind string }{{tagService, "tag"}, {dataService, "hive"}, {polarisService, "polaris"}} {
		body := object{"name": s.name, "type": s.kind, "isEnabled": true, "configs": configs}
		if s.kind != "tag" {
			body["tagService"] = tagService
		}
		if s.kind == "hive" {
			with := object{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}
			for k, v := range configs {
				with[k] = v
			}
			body["configs"] = with
		}
		if _, err := a.call("POST", "public/v2/api/service", body); err != nil {
			return err
		}
		out, err := a.call("GET", "public/v2/api/service/"+s.name+"/policy?pageSize=1000", nil)
		if err != nil {
			return err
		}
		var made []object // a Ranger Admin makes policies with a service
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		for _, p := range made {
			if _, err := a.call("DELETE", fmt.Sprintf("public/v2/api/policy/%.0f", p["id"]), nil); err != nil {
				return err
			}
		}
	}
	// carol, and the roles analyst and engineer, find and read everything; dave
	// nothing.
	all := values("*")
	for name, resources := range map[string]object{
		"catalogs":   {"root": all, "catalog": all},
		"namespaces": {"root": all, "catalog": all, "namespace": all},
		"tables":     {"root": all, "catalog": all, "namespace": all, "table": all},
	} {
		var accesses []object
		for _, access := range map[string][]string{
			"catalogs":   {"catalog-list", "catalog-properties-read", "namespace-list"},
			"namespaces": {"namespace-list", "namespace-properties-read", "table-list", "view-list"},
			"tables":     {"table-list", "table-properties-read", "table-data-read", "view-list", "view-properties-read"},
		}[name] {
			accesses = append(accesses, object{"type": access, "isAllowed": true})
		}
		if _, err := a.call("POST", "public/v2/api/policy", object{
			"service": polarisService, "name": "readers of " + name, "policyType": 0, "isEnabled": true, "resources": resources,
			"policyItems": []object{{"roles": []string{"analyst", "engineer", "sqe_admin"}, "accesses": accesses}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp removes the services, with their policies and tags.
func (a *adminAPI) cleanUp() error {
	for _, name := range []string{dataService, polarisService, tagService} {
		if _, err := a.call("GET", "public/v2/api/service/name/"+name, nil); err != nil {
			continue
		}
		if _, err := a.call("DELETE", "public/v2/api/service/name/"+name, nil); err != nil {
			return err
		}
	}
	return nil
}

func values(v ...string) object {
	return object{"values": v, "isExcludes": false, "isRecursive": false}
}

// policy stores a policy until the end of the test and returns its id.
func policy(t testing.TB, body object) int64 {
	t.Helper()
	stored := server.must(t, "POST", "public/v2/api/policy", body)
	id := int64(stored["id"].(float64))
	t.Cleanup(func() { _, _ = server.call("DELETE", fmt.Sprintf("public/v2/api/policy/%d", id), nil) })
	return id
}

var selects = []object{{"type": "select", "isAllowed": true}}

// mask stores a mask policy on a column for a role.
func mask(t testing.TB, namespace, table, column, kind, expression, role string) int64 {
	t.Helper()
	return policy(t, object{
		"service": dataService, "name": "sqe-live-" + namespace + "-" + table + "-" + column + "-" + kind, "policyType": 1, "isEnabled": true,
		"resources":           object{"database": values(namespace), "table": values(table), "column": values(column)},
		"dataMaskPolicyItems": []object{{"roles": []string{role}, "accesses": selects, "dataMaskInfo": object{"dataMaskType": kind, "valueExpr": expression}}},
	})
}

// filter stores a row filter for a role.
func filter(t testing.TB, namespace, table, condition, role string) int64 {
	t.Helper()
	return policy(t, object{
		"service": dataService, "name": "sqe-live-filter-" + namespace + "-" + table, "policyType": 2, "isEnabled": true,
		"resources":            object{"database": values(namespace), "table": values(table)},
		"rowFilterPolicyItems": []object{{"roles": []string{role}, "accesses": selects, "rowFilterInfo": object{"filterExpr": condition}}},
	})
}

var hiveSelects = []object{{"type": "hive:select", "isAllowed": true}}

// tagMask stores a mask policy on a tag for a role.
func tagMask(t testing.TB, tag, kind, expression, role string) int64 {
	t.Helper()
	info := object{"dataMaskType": kind}
	if expression != "" {
		info["valueExpr"] = expression
	}
	return policy(t, object{
		"service": tagService, "name": "sqe-live-mask-" + tag, "policyType": 1, "isEnabled": true, "resources": object{"tag": values(tag)},
		"dataMaskPolicyItems": []object{{"roles": []string{role}, "accesses": hiveSelects, "dataMaskInfo": info}},
	})
}

// tagFilter stores a row filter on a tag for a role.
func tagFilter(t testing.TB, tag, condition, role string) int64 {
	t.Helper()
	return policy(t, object{
		"service": tagService, "name": "sqe-live-filter-" + tag, "policyType": 2, "isEnabled": true, "resources": object{"tag": values(tag)},
		"rowFilterPolicyItems": []object{{"roles": []string{role}, "accesses": hiveSelects, "rowFilterInfo": object{"filterExpr": condition}}},
	})
}

// drop deletes a policy now.
func drop(t testing.TB, id int64) {
	t.Helper()
	server.must(t, "DELETE", fmt.Sprintf("public/v2/api/policy/%d", id), nil)
}

// tagColumns imports tags of columns into the policy server's own tag store.
func tagColumns(t testing.TB, op, database, table string, tags map[string][]string) {
	t.Helper()
	definitions, list, ids := object{}, object{}, object{}
	var resources []object
	n, r := 0, 0
	for column, names := range tags {
		var of []int
		for _, name := range names {
			key := fmt.Sprint(n)
			definitions[key] = object{"id": n, "name": name, "source": "live"}
			list[key] = object{"id": n, "type": name}
			of = append(of, n)
			n++
		}
		resources = append(resources, object{"id": r, "serviceName": dataService, "resourceElements": object{
			"database": values(database), "table": values(table), "column": values(column),
		}})
		ids[fmt.Sprint(r)] = of
		r++
	}
	server.must(t, "PUT", "tags/importservicetags", object{
		"op": op, "serviceName": dataService, "tagVersion": 1, "tagDefinitions": definitions, "tags": list,
		"serviceResources": resources, "resourceToTagIds": ids,
	})
}
