package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sqe/rangerclient/model"
)

// Policies implements Server. A list of several pages is read again when the
// policies of the service changed meanwhile, since a policy could have moved from
// one page to another.
func (r *REST) Policies(ctx context.Context, service string) ([]*model.Policy, error) {
	for range 5 {
		// A search in an unknown service finds nothing and says nothing.
		before, err := r.Service(ctx, service)
		if err != nil {
			return nil, err
		}
		policies, pages, err := listed[*model.Policy](ctx, r, api+"service/"+seg(service)+"/policy", nil)
		if err != nil {
			return nil, err
		}
		if pages > 1 {
			after, err := r.Service(ctx, service)
			if err != nil {
				return nil, err
			}
			if before.PolicyVersion != after.PolicyVersion {
				continue
			}
		}
		for _, p := range policies {
			if p == nil || p.Service != service {
				return nil, fmt.Errorf("%s answered with policies of another service", r.Name())
			}
		}
		slices.SortFunc(policies, func(a, b *model.Policy) int { return cmp.Compare(a.ID, b.ID) })
		return policies, nil
	}
	return nil, &Error{Kind: Conflict, Reason: "the policies of the service change faster than they can be listed"}
}

// Policy implements Server.
func (r *REST) Policy(ctx context.Context, id int64) (*model.Policy, error) {
	p, err := one[model.Policy](ctx, r, http.MethodGet, api+"policy/"+num(id), nil, nil)
	return p, missing(err, "")
}

// PolicyNamed implements Server.
func (r *REST) PolicyNamed(ctx context.Context, service, zone, name string) (*model.Policy, error) {
	if strings.ContainsAny(name, `/\;%`) || name == "." || name == ".." {
		return r.policySearched(ctx, service, zone, name)
	}
	var query url.Values
	if zone != "" {
		query = url.Values{"zoneName": {zone}}
	}
	p, err := one[model.Policy](ctx, r, http.MethodGet, api+"service/"+seg(service)+"/policy/"+seg(name), query, nil)
	return p, missing(err, name)
}

// policySearched is PolicyNamed for names that web servers do not take in a path,
// escaped or not.
func (r *REST) policySearched(ctx context.Context, service, zone, name string) (*model.Policy, error) {
	query := url.Values{"policyName": {name}}
	if zone != "" {
		query.Set("zoneName", zone)
	}
	found, _, err := listed[*model.Policy](ctx, r, api+"service/"+seg(service)+"/policy", query)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		if p.Name == name && p.ZoneName == zone && p.Service == service {
			return r.Policy(ctx, p.ID)
		}
	}
	return nil, &Error{Kind: NotFound, Reason: "Not found", Name: name}
}

// PolicyVersions implements Server.
func (r *REST) PolicyVersions(ctx context.Context, id int64) ([]int64, error) {
	list, err := one[struct {
		Value string `json:"value"`
	}](ctx, r, http.MethodGet, "/service/plugins/policy/"+num(id)+"/versionList", nil, nil)
	if err == nil && list.Value == "" {
		err = errors.New("no versions")
	}
	if err != nil {
		return nil, r.withoutPolicy(ctx, id, err)
	}
	var out []int64
	for _, text := range strings.Split(list.Value, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s answered with a list of versions that is none", r.Name())
		}
		out = append(out, v)
	}
	slices.Sort(out)
	return out, nil
}

// PolicyAt implements Server.
func (r *REST) PolicyAt(ctx context.Context, id, version int64) (*model.Policy, error) {
	p, err := one[model.Policy](ctx, r, http.MethodGet, "/service/plugins/policy/"+num(id)+"/version/"+num(version), nil, nil)
	if err == nil && p.Version == version {
		return p, nil
	}
	if err == nil {
		return nil, &Error{Kind: NotFound, Reason: fmt.Sprintf("policy %d has no version %d", id, version)}
	}
	known, verr := r.PolicyVersions(ctx, id)
	if verr == nil && !slices.Contains(known, version) {
		return nil, &Error{Kind: NotFound, Reason: fmt.Sprintf("policy %d has no version %d", id, version)}
	}
	return nil, r.withoutPolicy(ctx, id, err)
}

// withoutPolicy says that the policy does not exist if that is why err came: the
// calls about versions have no words for it.
func (r *REST) withoutPolicy(ctx context.Context, id int64, err error) error {
	if KindOf(err) == Unauthenticated || KindOf(err) == Forbidden {
		return err
	}
	if _, perr := r.Policy(ctx, id); KindOf(perr) == NotFound {
		return perr
	}
	return err
}

// CreatePolicy implements Server.
func (r *REST) CreatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	body, err := policyBody(p)
	if err != nil {
		return nil, err
	}
	return one[model.Policy](ctx, r, http.MethodPost, api+"policy", nil, body)
}

// UpdatePolicy implements Server.
func (r *REST) UpdatePolicy(ctx context.Context, p *model.Policy) (*model.Policy, error) {
	body, err := policyBody(p)
	if err != nil {
		return nil, err
	}
	out, err := one[model.Policy](ctx, r, http.MethodPut, api+"policy/"+num(p.ID), nil, body)
	return out, missing(err, p.Name)
}

// policyBody is the policy as a Ranger Admin wants to read it: a recurrence names
// every field of its schedule, also those that it leaves open, which an Admin
// drops when it stores them and fails without.
func policyBody(p *model.Policy) (any, error) {
	if !slices.ContainsFunc(p.ValiditySchedules, func(s model.Schedule) bool { return len(s.Recurrences) > 0 }) {
		return p, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return nil, err
	}
	for _, s := range objects(body["validitySchedules"]) {
		for _, r := range objects(s["recurrences"]) {
			schedule, _ := r["schedule"].(map[string]any)
			for _, field := range []string{"minute", "hour", "dayOfMonth", "dayOfWeek", "month", "year"} {
				if _, ok := schedule[field]; !ok && schedule != nil {
					schedule[field] = ""
				}
			}
		}
	}
	return body, nil
}

// objects are the objects of a list.
func objects(list any) []map[string]any {
	var out []map[string]any
	elements, _ := list.([]any)
	for _, e := range elements {
		if o, ok := e.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// DeletePolicy implements Server.
func (r *REST) DeletePolicy(ctx context.Context, id int64) error {
	return missing(r.call(ctx, http.MethodDelete, api+"policy/"+num(id), nil, nil, nil), "")
}
