//go:build e2e

package parity

import (
	"bytes"
	"context"
	"encoding/json"
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
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
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
		return fmt.Errorf("%s %s: HTTP %d: %.500s", method, path, resp.StatusCode, text)
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
		service := object{"name": s[0], "type": s[1], "isEnabled": true, "configs": configs}
		switch s[1] {
		case "trino":
			configs["username"], configs["password"] = "nobody", "unused"
			configs["jdbc.driverClassName"], configs["jdbc.url"] = "io.trino.jdbc.TrinoDriver", "none"
			configs["ranger.plugin.super.users"] = ""
		case "polaris":
			configs["polaris.url"], configs["username"], configs["password"] = "none", "nobody", "unused"
		}
		if s[2] != "" {
			service["tagService"] = s[2]
		}
		if err := r.call(ctx, http.MethodPost, "public/v2/api/service", service, nil); err != nil {
			return err
		}
		var own []object // a Ranger Admin makes policies of its own
		if err := r.call(ctx, http.MethodGet, "public/v2/api/service/"+s[0]+"/policy?pageSize=1000", nil, &own); err != nil {
			return err
		}
		for _, o := range own {
			if err := r.call(ctx, http.MethodDelete, fmt.Sprintf("public/v2/api/policy/%v", o["id"]), nil, nil); err != nil {
				return err
			}
		}
	}
	for _, policy := range merged(slices.Concat(p.Data, p.Objects, p.Tags)) {
		if err := r.call(ctx, http.MethodPost, "public/v2/api/policy", policy, nil); err != nil {
			return err
		}
	}
	return r.call(ctx, http.MethodPut, "tags/importservicetags", p.tags(), nil)
}
