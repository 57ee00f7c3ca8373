//go:build e2e

package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// ranger is a policy server as an administrator reaches it.
type ranger struct {
	url, user, password string
}

// The user with which plugins download, and its password.
const (
	pluginUser     = "engine"
	pluginPassword = "Passw0rd1"
)

// call sends a request below /service and decodes the answer into out, if there is
// one to decode and somewhere to put it.
func (r ranger) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+"/service/"+path, body)
	if err != nil {
		return err
	}
	req.SetBasicAuth(r.user, r.password)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return &statusError{resp.StatusCode, fmt.Sprintf("%s %s: HTTP %d: %.500s", method, path, resp.StatusCode, text)}
	}
	if out == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, out)
}

// itemLists are the members of a policy that hold items.
var itemLists = []string{"policyItems", "denyPolicyItems", "allowExceptions", "denyExceptions", "dataMaskPolicyItems", "rowFilterPolicyItems"}

// merged puts the items of policies on one resource into one policy: a policy
// server refuses a second policy on a resource.
func merged(policies []object) (out []object) {
	byResource := map[string]object{}
	for _, p := range policies {
		key, err := json.Marshal([]any{p["service"], p["policyType"], p["resources"]})
		if err != nil {
			panic(err)
		}
		first, ok := byResource[string(key)]
		if !ok {
			first = object{}
			for k, v := range p {
				if k != "id" && k != "guid" && k != "version" {
					first[k] = v
				}
			}
			byResource[string(key)] = first
			out = append(out, first)
			continue
		}
		for _, list := range itemLists {
			more, _ := p[list].([]object)
			if len(more) > 0 {
				have, _ := first[list].([]object)
				first[list] = slices.Concat(have, more)
			}
		}
	}
	return out
}

// principals are the users that policies, roles and groups name.
func (p *Policies) principals() (names []string) {
	add := func(list ...string) {
		for _, n := range list {
			if n != "{USER}" && n != "admin" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, policy := range slices.Concat(p.Data, p.Objects, p.Tags) {
		for _, list := range itemLists {
			items, _ := policy[list].([]object)
			for _, it := range items {
				list, _ := it["users"].([]string)
				add(list...)
			}
		}
	}
	add("dave", "nobody") // who have no rights
	for _, members := range roleMembers {
		add(members...)
	}
	for _, members := range groupMembers {
		add(members...)
	}
	slices.Sort(names)
	return names
}

// prefix is before the names of services, so that those of a Ranger Admin that is
// used for other things stay alone.
const prefix = "sqe_parity_"

// statusError is an answer that is no success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// remove deletes what publish makes. What is not there is passed over.
func (r ranger) remove(ctx context.Context, p *Policies) error {
	var failed error
	try := func(method, path string, out any) bool {
		err := r.call(ctx, method, path, nil, out)
		var status *statusError
		if errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusBadRequest) {
			return false
		}
		failed = errors.Join(failed, err)
		return err == nil
	}
	for _, s := range []string{p.peer.kind, p.peer.kind + "_tag", "polaris"} {
		if try(http.MethodGet, "public/v2/api/service/name/"+prefix+s, nil) {
			try(http.MethodDelete, "public/v2/api/service/name/"+prefix+s, nil)
		}
	}
	for role := range roleMembers {
		if try(http.MethodGet, "public/v2/api/roles/name/"+role, nil) {
			try(http.MethodDelete, "public/v2/api/roles/name/"+role, nil)
		}
	}
	byID := func(find, remove string) {
		var found struct {
			ID json.Number `json:"id"`
		}
		if try(http.MethodGet, find, &found) && found.ID != "" {
			try(http.MethodDelete, remove+found.ID.String()+"?forceDelete=true", nil)
		}
	}
	for _, u := range append(p.principals(), pluginUser) {
		byID("xusers/users/userName/"+u, "xusers/secure/users/id/")
	}
	for g := range groupMembers {
		byID("xusers/groups/groupName/"+g, "xusers/secure/groups/id/")
	}
	return failed
}

// publish makes services, principals, policies and tags.
func (r ranger) publish(ctx context.Context, p *Policies) error {
	groupIDs := map[string]string{}
	for g := range groupMembers {
		var made struct {
			ID json.Number `json:"id"`
		}
		if err := r.call(ctx, http.MethodPost, "xusers/secure/groups", object{"name": g, "groupType": 1, "groupSource": 0, "isVisible": 1}, &made); err != nil {
			return err
		}
		groupIDs[g] = made.ID.String()
	}
	of := groupsOfUsers()
	for _, u := range append(p.principals(), pluginUser) {
		ids := []string{}
		for _, g := range of[u] {
			ids = append(ids, groupIDs[g])
		}
		attributes := "{}"
		if u == "s_attr" {
			attributes = `{"region": "US"}`
		}
		if err := r.call(ctx, http.MethodPost, "xusers/secure/users", object{
			"name": u, "firstName": u, "lastName": "", "password": pluginPassword, "status": 1, "isVisible": 1, "userSource": 0,
			"userRoleList": []string{"ROLE_USER"}, "groupIdList": ids, "otherAttributes": attributes,
		}, nil); err != nil {
			return err
		}
	}
	for _, role := range rangerRoles() {
		delete(role, "id")
		if err := r.call(ctx, http.MethodPost, "public/v2/api/roles", role, nil); err != nil {
			return err
		}
	}
	data := p.peer.kind
	for _, s := range [][3]string{{data + "_tag", "tag", ""}, {data, data, data + "_tag"}, {"polaris", "polaris", ""}} {
		configs := object{}
		for _, what := range []string{"policy", "tag", "role", "userstore"} {
			configs[what+".download.auth.users"] = pluginUser
		}
		service := object{"name": prefix + s[0], "type": s[1], "isEnabled": true, "configs": configs}
		switch s[1] {
		case "trino":
			configs["username"], configs["password"] = "nobody", "unused"
			configs["jdbc.driverClassName"], configs["jdbc.url"] = "io.trino.jdbc.TrinoDriver", "none"
			configs["ranger.plugin.super.users"] = ""
		case "polaris":
			configs["polaris.url"], configs["username"], configs["password"] = "none", "nobody", "unused"
		}
		if s[2] != "" {
			service["tagService"] = prefix + s[2]
		}
		if err := r.call(ctx, http.MethodPost, "public/v2/api/service", service, nil); err != nil {
			return err
		}
		var own []object // a Ranger Admin makes policies of its own
		if err := r.call(ctx, http.MethodGet, "public/v2/api/service/"+prefix+s[0]+"/policy?pageSize=1000", nil, &own); err != nil {
			return err
		}
		for _, o := range own {
			if err := r.call(ctx, http.MethodDelete, fmt.Sprintf("public/v2/api/policy/%v", o["id"]), nil, nil); err != nil {
				return err
			}
		}
	}
	for _, policy := range merged(slices.Concat(p.Data, p.Objects, p.Tags)) {
		policy["service"] = prefix + policy["service"].(string)
		if err := r.call(ctx, http.MethodPost, "public/v2/api/policy", policy, nil); err != nil {
			return err
		}
	}
	return r.call(ctx, http.MethodPut, "tags/importservicetags", p.tags(prefix+data), nil)
}
